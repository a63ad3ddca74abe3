"""Calls through Python alone, as on interpreters whose memory layout is not known: the same bits and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import linkwise as lw

HERE = str(Path(__file__).parent)
SOURCES = str(Path(lw.__file__).parent.parent)


def outcomes() -> list[str]:
    """What many kinds of calls give, as text."""
    robot = lw.load("two_link")
    rng = np.random.default_rng(7)
    kernels = [robot.kernel(name) for name in ("inverse_dynamics", "forward_dynamics_derivatives")]
    kernels.append(robot.kernel("inverse_dynamics", dtype="float32"))
    found = []

    def note(call):
        for _ in range(3):  # the first one compiles, the others may take another way
            try:
                result = call()
            except (TypeError, ValueError) as error:
                found.append(f"{type(error).__name__}: {error}")
                continue
            parts = result if isinstance(result, tuple) else (result,)
            found.extend(f"{part.dtype} {part.shape} {np.asarray(part).tobytes().hex()}" for part in parts)

    for shape in ((2,), (1, 2), (5, 2), (3, 2, 2)):
        args = list(rng.normal(size=(3, *shape)))
        few = [a.astype(np.float32) for a in args]
        strided = [np.repeat(a, 2, axis=-1)[..., ::2] for a in args]
        for given in (args, few, strided, [a.tolist() for a in args], [args[0], few[1], args[2]]):
            for kernel in kernels:
                note(lambda kernel=kernel, given=given: kernel(*given))
                note(lambda kernel=kernel, given=given: kernel(*given, threads=1))
            note(lambda given=given: robot.inverse_dynamics(*given))
            note(lambda given=given: robot.forward_dynamics(*given, friction=False))
            note(lambda given=given: robot.inverse_dynamics_derivatives(*given, algorithm="recursion"))
            note(lambda given=given: robot.pose(given[0], robot.link_names[-1]))
            note(lambda given=given: robot.potential_energy(given[0]))
        out = np.full(shape, np.nan)
        note(lambda args=args, out=out: robot.inverse_dynamics(*args, out=out))
        note(lambda args=args: robot.inverse_dynamics(*args, out=args[0].copy()))
        note(lambda args=args, shape=shape: robot.mass_matrix(args[0], out=np.empty((*shape, 2))))
        for wrong in (
            np.empty(7),
            np.empty(shape, np.float32),
            [0.0, 0.0],
            np.frombuffer(bytes(8 * out.size)).reshape(shape),
        ):
            note(lambda args=args, wrong=wrong: robot.inverse_dynamics(*args, out=wrong))
        note(lambda args=args: robot.inverse_dynamics(*args, threads=0))
        note(lambda args=args: robot.inverse_dynamics(args[0], args[1], args[2][..., :1]))
        note(lambda args=args: robot.inverse_dynamics(*args, algorithm="none"))
    return found


def test_every_call_gives_the_same_through_python_alone():
    script = f"import sys; sys.path[:0] = [{SOURCES!r}, {HERE!r}]\n" + (
        "from linkwise.compiler.runtime import layout\nfrom test_quick import outcomes\n"
        "assert not layout.SUPPORTED\nprint(*outcomes(), sep='\\n')"
    )
    environment = {**os.environ, "LINKWISE_CALLS": "python"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == outcomes()


def test_what_can_be_asked_of_a_method_without_machine_code():
    script = (
        f"import sys; sys.path[:0] = [{SOURCES!r}]\n"
        + """
import inspect, pickle, threading
import numpy as np
import linkwise as lw
robot, q = lw.load("two_link"), np.array([0.3, 0.4])
wanted = robot.gravity_torques(q)
assert list(inspect.signature(robot.gravity_torques).parameters) == ["q", "algorithm", "out", "threads"]
assert np.array_equal(pickle.loads(pickle.dumps(robot.gravity_torques))(q), wanted)
wrong = []
sys.setswitchinterval(1e-6)
def work(q, wanted):
    for _ in range(2000):
        if not np.array_equal(robot.gravity_torques(q), wanted):
            wrong.append(1)
threads = [threading.Thread(target=work, args=(q + k, robot.gravity_torques(q + k))) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong
"""
    )
    environment = {**os.environ, "LINKWISE_CALLS": "python"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
