"""Quick code first, better code in the background; see ``compiler.background``."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import native
from linkwise.compiler.runtime import background, cache, machine

PATIENCE = 120.0  # [s]


@pytest.fixture
def everything_is_large(monkeypatch, tmp_path):
    """Quick code for every program, nothing in the cache, background processes allowed."""
    monkeypatch.setenv("LINKWISE_BACKGROUND", "1")
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "LARGE", 0)


def state(robot: lw.Robot, *batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=(*batch, robot.dof)) for _ in range(3)]


def until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing came from the background"
        time.sleep(0.01)


@pytest.mark.parametrize("batch", [(), (5,)])
def test_quick_code_is_replaced_and_the_bits_stay(everything_is_large, batch):
    robot = lw.load("two_link")
    kernel = robot.kernel("inverse_dynamics")
    args = state(robot, *batch)
    width = 1 if not batch else native_width()
    wanted = lw.load("two_link").kernel("inverse_dynamics").program()
    first = kernel(*args).tobytes()
    assert kernel.known_native("float64", width) is None

    def better() -> bool:
        assert kernel(*args).tobytes() == first
        return kernel.known_native("float64", width) is not None

    until(better)
    assert kernel(*args).tobytes() == first
    assert wanted.operations == kernel.operations


def native_width() -> int:
    from linkwise.compiler.runtime import host

    return host.lanes("float64")


def test_nothing_is_started_for_one_call(everything_is_large, monkeypatch):
    monkeypatch.setattr(background, "Job", lambda tasks: pytest.fail("started a process"))
    robot = lw.load("two_link")
    robot.kernel("mass_matrix")(np.zeros(2))


def test_switched_off(everything_is_large, monkeypatch):
    monkeypatch.setenv("LINKWISE_BACKGROUND", "0")
    monkeypatch.setattr(background, "Job", lambda tasks: pytest.fail("started a process"))
    kernel = lw.load("two_link").kernel("mass_matrix")
    for _ in range(3):
        kernel(np.zeros(2))
    assert kernel.known_native("float64", 1) is not None


def test_quick_code_alone_is_kept_apart_and_has_the_same_bits(everything_is_large, monkeypatch, tmp_path):
    monkeypatch.setattr(background, "Job", lambda tasks: pytest.fail("started a process"))
    compiled, compile_text = [], machine.compile_text

    def noted(text, **options):
        compiled.append(options.get("quick", False))
        return compile_text(text, **options)

    monkeypatch.setattr(machine, "compile_text", noted)
    robot = lw.random_robot(5, 6, tree=True)
    results = []
    for mode in ("quick", "0", "quick", "0"):  # the last two from the cache
        monkeypatch.setenv("LINKWISE_BACKGROUND", mode)
        kernel = lw.Robot.from_model(robot).kernel("forward_dynamics")
        results.append([kernel(*state(robot, *batch)).tobytes() for batch in ((), (5,))])
        assert kernel.known_native("float64", 1) is not None
    assert results[0] == results[1] == results[2] == results[3]
    assert [quick for quick in compiled if quick] == [True, True]
    assert len(compiled) - 2 in (
        2,
        3,
    )  # for one state and for batches; the direct path where it is not there yet


def test_large_batches_and_small_programs_are_compiled_well_at_once(everything_is_large, monkeypatch):
    kernel = lw.load("two_link").kernel("mass_matrix")
    kernel(np.zeros((5000, 2)))
    assert kernel.known_native("float64", native_width()) is not None
    monkeypatch.setattr(native, "LARGE", 10**9)
    kernel(np.zeros(2))
    assert kernel.known_native("float64", 1) is not None


def test_a_child_that_fails_is_replaced_by_this_process(everything_is_large, monkeypatch):
    monkeypatch.setattr(background, "_PROGRAM", "raise SystemExit(3)")
    kernel = lw.load("two_link").kernel("gravity_torques")
    first = kernel(np.ones(2)).tobytes()

    def better() -> bool:
        assert kernel(np.ones(2)).tobytes() == first
        return kernel.known_native("float64", 1) is not None

    until(better)


def test_no_process_can_be_started(everything_is_large, monkeypatch):
    def refuse(tasks):
        raise OSError("no more processes")

    monkeypatch.setattr(background, "Job", refuse)
    kernel = lw.load("two_link").kernel("gravity_torques")
    results = {kernel(np.ones(2)).tobytes() for _ in range(4)}
    assert len(results) == 1


def test_code_that_another_process_has_stored_is_taken(everything_is_large, monkeypatch):
    """Forked workers that call the same function do not all compile it."""
    first, second = (lw.load("two_link").kernel("mass_matrix") for _ in range(2))
    wanted = first(np.ones(2)).tobytes()
    second.native_program("float64").stored(1)
    monkeypatch.setattr(background, "Job", lambda tasks: pytest.fail("started a process"))
    assert first(np.ones(2)).tobytes() == wanted
    assert first.known_native("float64", 1) is not None


def test_half_a_result_is_no_result():
    whole = background._packed(b"first") + background._packed(b"second")
    for size in range(len(whole)):
        assert background._whole_results(whole[:size]) in ([], [b"first"])
    assert background._whole_results(whole) == [b"first", b"second"]
    damaged = bytearray(whole)
    damaged[-1] ^= 1
    assert background._whole_results(bytes(damaged)) == [b"first"]


def test_threads_see_one_result_while_code_is_replaced(everything_is_large):
    robot = lw.load("two_link")
    args = state(robot)
    wanted = robot.forward_dynamics(*args).tobytes()
    kernel, _ = robot.kernel_for("forward_dynamics", type(robot).forward_dynamics.options({}))
    wrong, stop = [], threading.Event()

    def work() -> None:
        while not stop.is_set():
            if robot.forward_dynamics(*args).tobytes() != wanted:
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    try:
        until(lambda: kernel.known_native("float64", 1) is not None)
        time.sleep(0.05)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_goes_on_by_itself(everything_is_large):
    robot = lw.load("two_link")
    kernel, args = robot.kernel("inverse_dynamics"), state(robot)
    wanted = kernel(*args).tobytes()
    kernel(*args)  # starts the process
    child = os.fork()
    if child == 0:
        end, same = time.monotonic() + PATIENCE, True
        while same and kernel.known_native("float64", 1) is None and time.monotonic() < end:
            same = kernel(*args).tobytes() == wanted
        os._exit(0 if same and kernel.known_native("float64", 1) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    until(lambda: kernel(*args).tobytes() == wanted and kernel.known_native("float64", 1) is not None)


SCRIPT = textwrap.dedent("""
    import linkwise as lw, numpy as np
    from linkwise.compiler import native
    from linkwise.compiler.runtime import background
    native.LARGE = 0
    kernel = lw.load("two_link").kernel("coriolis_matrix")
    for _ in range(3):
        kernel(np.ones(2), np.ones(2))
    print(len(background._running), background._running[0]._process.pid)
""")


@pytest.mark.parametrize("cached", [True, False])
def test_the_end_of_the_program(tmp_path, cached):
    """No message, no error; with a cache the child finishes its work, without one it is ended."""
    folder = tmp_path / "cache"
    environment = {**os.environ, "LINKWISE_BACKGROUND": "1", "LINKWISE_CACHE": str(folder) if cached else ""}
    environment["PYTHONDEVMODE"] = "1"
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    number, child = map(int, ran.stdout.split())
    assert number == 1
    if cached:
        until(lambda: list((folder / "code").glob("*.code")))
    else:
        until(lambda: not os.path.exists(f"/proc/{child}"))
        assert not folder.exists()


def test_the_output_of_a_job_is_closed_though_nobody_asks_for_it(monkeypatch):
    monkeypatch.setattr(background, "_running", [])
    first = background.start(background.Task(bytes, (3,)))
    assert first is not None
    (job,) = background._running
    assert job.wait(PATIENCE)
    background.start(background.Task(bytes, (4,)))
    assert job._output.closed
    assert first.get() == bytes(3)
    assert background._running[-1].wait(PATIENCE)
    assert background._running[-1].results() == [bytes(4)]


def test_a_removed_cache_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "gone"))
    monkeypatch.setattr(cache, "creates", False)
    cache.store("0" * 64, b"code")
    assert not (tmp_path / "gone").exists()


def test_levels_of_the_code_generator_give_the_same_bits():
    robot = lw.load("panda")
    kernel = robot.kernel("forward_dynamics")
    args = state(robot)
    text = kernel.native_program("float64").text(1)
    out = [np.empty(robot.dof) for _ in range(2)]
    for target, quick in zip(out, (True, False), strict=True):
        code = native.Native(machine.load(machine.compile_text(text, quick=quick)), 1, 1)
        words = [target.ctypes.data, *(a.ctypes.data for a in args), *[robot.dof] * 3]
        code(0, 1, np.array(words, np.int64))
    assert out[0].tobytes() == out[1].tobytes()
