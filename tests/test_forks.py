"""A fork while another thread compiles: the child can compile, too."""

import subprocess
import sys
import threading

from linkwise.core import forks
from linkwise.core.once import once

# The main thread forks at several moments of what another thread does; every child does the same and must end.
SCRIPT = """
import os, signal, sys, threading, time, warnings
import numpy as np
import linkwise as lw
warnings.simplefilter("ignore", DeprecationWarning)

def work(robot):
    q = np.full(robot.dof, 0.3)
    return robot.coriolis_matrix(q, q).tobytes() + robot.regressor(q, q, q)[..., :60].tobytes()

def ends(child):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False

good, overlapped = True, 0
results = []
for delay in (0.0, 0.01, 0.1, 0.3):
    robot = lw.load("panda")
    thread = threading.Thread(target=lambda: results.append(work(robot)))
    thread.start()
    time.sleep(delay)
    overlapped += thread.is_alive()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if len(work(robot)) > 100 else 1)
        finally:
            os._exit(2)
    good = ends(child) and good
    thread.join()
print("good" if good and len(set(results)) == 1 else "hangs", overlapped > 1)
"""


def test_a_forked_child_compiles_while_another_thread_did(monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", "")
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=400)
    assert ran.stdout.split() == ["good", "True"], ran.stderr


class Slow:
    def __init__(self, started: threading.Event, finish: threading.Event):
        self.started, self.finish = started, finish

    @once
    def value(self) -> int:
        self.started.set()
        self.finish.wait(30)
        return 7


def test_a_fork_waits_for_what_is_being_computed_and_others_wait_for_the_fork():
    started, finish = threading.Event(), threading.Event()
    slow = Slow(started, finish)
    first = threading.Thread(target=lambda: slow.value)
    first.start()
    started.wait(30)
    forked = threading.Event()

    def fork():
        forks.unforked.before_fork()
        forked.set()
        forks.unforked.after_in_parent()

    forking = threading.Thread(target=fork)
    forking.start()
    assert not forked.wait(0.1)
    finish.set()
    assert forked.wait(30)
    first.join()
    forking.join()
    assert slow.value == 7
    with forks.unforked, forks.unforked:  # free again, and sections nest
        pass


def test_the_forking_thread_keeps_its_own_locks():
    mine, others = forks.lock(), forks.lock()
    thread = threading.Thread(target=others.acquire)
    thread.start()
    thread.join()
    with forks.unforked, mine:
        forks.unforked.before_fork()
        forks.unforked.after_in_child()  # as a child would
        assert mine._is_owned()
        assert others.acquire(blocking=False)
        others.release()
