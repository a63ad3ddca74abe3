"""Threads: the same bits however many there are, bad requests refused, forks survived."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sample_programs import loop, same_bits, samples, sweep

from linkwise.compiler import host, threads
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import Native


@pytest.fixture(scope="module", params=("sweep", "loop"))
def kernel(request) -> Kernel:
    make = (lambda dtype: sweep(4, dtype)) if request.param == "sweep" else loop
    program = make("float64")
    return Kernel(program.name, program.inputs, program.outputs, "float64", make)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 64])
def test_the_number_of_threads_changes_no_bit(kernel, number):
    inputs = samples(kernel.program(), 20 * host.lanes("float64") + 3)
    wanted = kernel(*inputs, threads=1)
    for count in (0, 1, 2, host.lanes("float64") + 1, len(inputs[0])):
        assert same_bits(kernel(*[a[:count] for a in inputs], threads=number), wanted[:count])


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 100, 1000])
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_every_state_is_computed_once_in_whole_blocks(count, number):
    visited = np.zeros(count, int)
    starts, workers = [], set()
    lock = threading.Lock()

    def work(first, length):
        with lock:
            visited[first : first + length] += 1
            starts.append(first)
            workers.add(threading.get_ident())

    threads.run(work, count, 8, number)
    assert (visited == 1).all()
    assert all(start % 8 == 0 for start in starts)
    assert len(workers) <= number


@pytest.mark.parametrize(("size", "repeats", "blocks"), [(1024, 1, 8193), (1024, 32, 257), (16 << 20, 1, 1)])
def test_a_batch_is_worth_threads_from_eight_mebibytes_of_code_on(size, repeats, blocks):
    """About a tenth of a millisecond; the batch's size follows from the code that a block of states runs through."""
    code = SimpleNamespace(size=size)
    assert Native(code, 8, repeats).states_for_one_thread == 8 * blocks  # type: ignore[arg-type]


def test_threads_work_at_the_same_time():
    barrier = threading.Barrier(3, timeout=30)  # passes only if three are there at once

    def work(first, length):
        if first == 0 or first == 8 or first == 16:
            barrier.wait()

    threads.run(work, 24, 8, 3)


def test_the_lock_is_released_while_code_runs():
    """Another Python thread goes on during one long call."""
    program = sweep(4)
    kernel = Kernel(program.name, program.inputs, program.outputs, "float64", lambda dtype: program)
    inputs = [np.ones((400_000, 4))] * 3
    kernel(*[a[:16] for a in inputs])
    beats, stop = [0], threading.Event()

    def beat():
        while not stop.is_set():
            beats[0] += 1
            time.sleep(0.0002)

    thread = threading.Thread(target=beat)
    thread.start()
    most = 0
    for _ in range(50):  # on a busy machine the other thread may not get its turn at once
        before = beats[0]
        kernel(*inputs, threads=1)
        most = max(most, beats[0] - before)
        if most > 2:
            break
    stop.set()
    thread.join()
    assert most > 2


def test_the_environment_is_read_at_every_call(monkeypatch):
    monkeypatch.setenv("LINKWISE_THREADS", "3")
    assert threads.wanted(None) == 3
    monkeypatch.setenv("LINKWISE_THREADS", "5")
    assert threads.wanted(None) == 5
    assert threads.wanted(2) == 2
    monkeypatch.delenv("LINKWISE_THREADS")
    assert threads.wanted(None) == len(os.sched_getaffinity(0))
    assert threads.wanted(np.int64(4)) == 4


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True, [1]])
def test_bad_numbers_are_refused(kernel, bad):
    inputs = samples(kernel.program(), 3)
    with pytest.raises(ValueError, match="threads: expected a whole number from 1 on, got"):
        kernel(*inputs, threads=bad)


@pytest.mark.parametrize("bad", ["0", "many", "-2", "1.5"])
def test_a_bad_environment_is_refused(monkeypatch, bad):
    monkeypatch.setenv("LINKWISE_THREADS", bad)
    with pytest.raises(ValueError, match="LINKWISE_THREADS: expected a whole number from 1 on, got"):
        threads.wanted(None)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(kernel):
    inputs = samples(kernel.program(), 200)
    wanted = kernel(*inputs, threads=3)
    child = os.fork()
    if child == 0:
        try:
            ok = same_bits(kernel(*inputs, threads=3), wanted)
        finally:
            os._exit(0 if ok else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert same_bits(kernel(*inputs, threads=3), wanted)


def test_calls_from_many_threads_share_the_pool(kernel):
    inputs = samples(kernel.program(), 300)
    wanted = kernel(*inputs, threads=1)
    wrong = []

    def call():
        for _ in range(20):
            if not same_bits(kernel(*inputs, threads=3), wanted):
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
