"""Threads: the same bits however many there are, bad requests refused, forks survived."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sample_programs import loop, same_bits, samples, sweep

import linkwise as lw
from linkwise.compiler.emit import pool as pool_text
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import Native
from linkwise.compiler.runtime import host, native_threads, python_threads, threads
from linkwise.compiler.runtime.layout import SHORT_WORK
from linkwise.scalar import while_loop


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

    python_threads.run(work, count, 8, number)
    assert (visited == 1).all()
    assert all(start % 8 == 0 for start in starts)
    assert len(workers) <= number


@pytest.mark.parametrize(("size", "repeats", "blocks"), [(1024, 1, 16385), (1024, 32, 513), (32 << 20, 1, 1)])
def test_a_batch_is_worth_a_second_thread_from_sixteen_mebibytes_of_code_on(size, repeats, blocks):
    """About a fifth of a millisecond; the batch's size follows from the code that a block of states runs through."""
    native = Native(SimpleNamespace(size=size), 8, repeats)  # type: ignore[arg-type]
    assert native.states_for_one_thread == 8 * blocks
    assert native.useful_threads(8 * (blocks - 1)) == (2 if blocks > 1 else 1)


def test_no_more_threads_than_blocks_and_than_the_work_is_worth():
    native = Native(SimpleNamespace(size=1 << 20), 8, 1)  # type: ignore[arg-type]
    assert [native.useful_threads(count) for count in (1, 8, 128, 129, 8 * 80)] == [1, 1, 2, 2, 10]
    assert native.useful_threads(16, repeats=100) == 2


def test_one_state_of_a_loop_that_most_states_leave_early_is_short_work():
    """The interpreter then goes straight to its code (``Plan.quick``); a loop of unknown length is long work."""

    def repeats(uneven):
        smaller = 0.5 if uneven else 0.25  # other code: that of one state is the same for both in the cache

        @lw.kernel(x=1)
        def halved(x):
            return while_loop(lambda v: v > 1.0, lambda v: (v * smaller,), (x[0],), uneven=uneven)

        return halved.native("float64", 1).repeats

    few, many = (
        Native(SimpleNamespace(size=120_000), 1, repeats(uneven))  # type: ignore[arg-type]
        for uneven in (True, False)
    )
    assert 1 < few.repeats < many.repeats
    assert few.states_for_one_thread >> SHORT_WORK
    assert not many.states_for_one_thread >> SHORT_WORK


def test_threads_work_at_the_same_time():
    barrier = threading.Barrier(3, timeout=30)  # passes only if three are there at once

    def work(first, length):
        if first == 0 or first == 8 or first == 16:
            barrier.wait()

    python_threads.run(work, 24, 8, 3)


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
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.wanted(None) == len(os.sched_getaffinity(0))
    assert threads.wanted(np.int64(4)) == 4


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True, [1]])
def test_bad_numbers_are_refused(kernel, bad):
    inputs = samples(kernel.program(), 3)
    with pytest.raises(ValueError, match="threads: expected a whole number from 1 on, got"):
        kernel(*inputs, threads=bad)


def test_openmp_lowers_the_number(monkeypatch):
    monkeypatch.delenv("LINKWISE_THREADS", raising=False)
    monkeypatch.setattr(threads, "available", lambda: 8)
    monkeypatch.setattr(threads, "limit", None)  # threadpoolctl leaves the number that it found
    for text, count in [("1", 1), ("3", 3), ("4,2", 4), ("64", 8), ("", 8), ("many", 8), ("0", 8), ("-1", 8)]:
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert threads.wanted(None) == count
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(threads, "limit", 5)
    assert threads.wanted(None) == 2
    assert threads.wanted(6) == 6
    monkeypatch.setenv("LINKWISE_THREADS", "7")
    assert threads.wanted(None) == 7


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


def large_batch(kernel) -> list[np.ndarray]:
    """One that is worth several threads."""
    native = kernel.native("float64", host.lanes("float64"))
    return samples(kernel.program(), 6 * native.states_for_one_thread + 5)


@pytest.mark.skipif(os.name != "posix", reason="no POSIX threads here")
def test_large_batches_run_on_threads_without_the_interpreter(kernel, monkeypatch):
    jobs = []
    run = native_threads.run
    monkeypatch.setattr(native_threads, "run", lambda *given: jobs.append(given) or run(*given))
    inputs = large_batch(kernel)
    wanted = kernel(*inputs, threads=1)
    assert not jobs
    for number in (2, 3, 8):
        assert same_bits(kernel(*inputs, threads=number), wanted)
        assert jobs[-1][-1] == number


@pytest.mark.skipif(os.name != "posix", reason="no POSIX threads here")
@pytest.mark.parametrize("calls", [{}, pool_text.FUTEX], ids=["condition", "futex"])
def test_threads_that_sleep_wake_up_and_wake_others(kernel, calls, monkeypatch):
    """By a condition of the C library and, on Linux, by the system call."""
    monkeypatch.setattr(pool_text, "FUTEX", calls)
    monkeypatch.setattr(pool_text, "SPINS", 1)  # the caller sleeps, too
    monkeypatch.setattr(native_threads, "_code", native_threads._code.__wrapped__)
    pool = native_threads._Pool(native_threads._code(), ctypes.CDLL(None))
    monkeypatch.setattr(native_threads, "_pool", lambda: pool)
    asleep = ctypes.c_int64.from_address(pool.start + pool_text.PLACES["sleepers"])
    inputs = large_batch(kernel)
    wanted = kernel(*inputs, threads=1)
    for number in (8, 8, 8, 3, 8):
        assert same_bits(kernel(*inputs, threads=number), wanted)
        limit = time.monotonic() + 120.0
        while asleep.value < 7 and time.monotonic() < limit:
            time.sleep(0.01)
        assert asleep.value == 7


def test_a_call_that_finds_the_threads_at_work_computes_alone(kernel):
    inputs = large_batch(kernel)
    wanted = kernel(*inputs, threads=3)
    pool = native_threads._pool()
    assert pool is not None
    with pool._busy:
        assert same_bits(kernel(*inputs, threads=3), wanted)


def test_threads_of_python_do_the_same(kernel, monkeypatch):
    inputs = large_batch(kernel)
    wanted = kernel(*inputs, threads=1)
    monkeypatch.setattr(native_threads, "_pool", lambda: None)
    assert same_bits(kernel(*inputs, threads=3), wanted)


def test_helpers_follow_the_affinity_of_the_caller(kernel):
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor, or a system without affinity")
    inputs = large_batch(kernel)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert threads.wanted(None) == 1
        kernel(*inputs, threads=3)
        helpers = native_threads._pool()._helpers  # type: ignore[union-attr]
        assert all(os.sched_getaffinity(helper.native_id) == {min(before)} for helper in helpers)
    finally:
        os.sched_setaffinity(0, before)
    kernel(*inputs, threads=3)
    assert all(os.sched_getaffinity(helper.native_id) == before for helper in helpers)


EXIT = """
import threading, numpy as np, linkwise as lw
robot = lw.load("panda")
q = np.ones((200_000, 7))
robot.inverse_dynamics(q, q, q, threads=4)
threading.Thread(target=lambda: [robot.inverse_dynamics(q, q, q, threads=4) for _ in range(3)], daemon=True).start()
robot.inverse_dynamics(q, q, q, threads=4)
"""


def test_the_interpreter_ends_while_threads_wait_or_work():
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_limits_of_threadpoolctl_are_respected(monkeypatch):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    monkeypatch.delenv("LINKWISE_THREADS", raising=False)
    monkeypatch.setattr(threads, "available", lambda: 6)
    monkeypatch.setattr(threads, "limit", None)  # workers of Dask in this process leave one
    assert threads.wanted(None) == 6
    with threadpoolctl.threadpool_limits(limits=2):
        assert threads.wanted(None) == 2
        assert threads.wanted(5) == 5  # what a call asks for itself
        with threadpoolctl.threadpool_limits(limits={"linkwise": 1}):
            assert threads.wanted(None) == 1
        assert threads.wanted(None) == 2
    assert threads.wanted(None) == 6
    shown = [row for row in threadpoolctl.threadpool_info() if row["user_api"] == "linkwise"]
    assert [row["num_threads"] for row in shown] == [6]
