"""``robot.compile``: what is ready after it, and its handle."""

from __future__ import annotations

import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import host

LANES = {name: host.lanes(name) for name in ("float64", "float32")}


@pytest.fixture
def robot(monkeypatch, tmp_path) -> lw.Robot:
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    return lw.load("two_link")


def kernel(robot: lw.Robot, name: str, **given):
    return robot.kernel_for(name, getattr(lw.Robot, name).options(given))[0]


def test_now(robot):
    handle = robot.compile(["inverse_dynamics", "mass_matrix"], dtype=("float64", "float32"))
    assert handle.done
    assert handle.progress == 1.0
    assert handle.wait(0.0)
    for name in ("inverse_dynamics", "mass_matrix"):
        for dtype, width in LANES.items():
            assert kernel(robot, name).known_native(dtype, 1) is not None
            assert kernel(robot, name).known_native(dtype, width) is not None


def test_options_choose_the_kernel(robot):
    frame = robot.link_names[1]
    robot.compile(
        ["pose", "inverse_dynamics"],
        frame=frame,
        algorithm="gibbs_appell",
        wrench=True,
        wrench_frame=frame,
        batches=False,
    )
    assert kernel(robot, "pose", frame=frame).known_native("float64", 1) is not None
    assert kernel(robot, "pose", frame=frame).known_native("float64", LANES["float64"]) is None
    chosen = {"algorithm": "gibbs_appell", "wrench": True, "wrench_frame": frame}
    assert kernel(robot, "inverse_dynamics", **chosen).known_native("float64", 1) is not None
    assert kernel(robot, "inverse_dynamics").known_native("float64", 1) is None


def test_kernels_and_single_names(robot):
    given = robot.kernel("inverse_dynamics").jacobian("q")
    robot.compile(given, dtype="float32")
    assert given.known_native("float32", 1) is not None
    payload = robot.kernel("inverse_dynamics", inputs=("payload",))
    robot.compile([payload])
    assert payload.main.known_native("float64", 1) is not None
    robot.compile("coefficients")
    assert robot.kernel("coefficients").known_native("float64", 1) is not None


def test_in_the_background(robot, monkeypatch):
    monkeypatch.setenv("LINKWISE_BACKGROUND", "1")
    args = np.ones((3, 2))
    wanted = lw.load("two_link").inverse_dynamics(*args)
    handle = robot.compile(["inverse_dynamics", "gravity_torques"], background=True)
    assert 0.0 <= handle.progress <= 1.0
    assert handle.wait(120.0)
    assert handle.done
    assert handle.progress == 1.0
    monkeypatch.setenv("LINKWISE_CACHE", "")  # nothing is read again, and nothing compiled
    monkeypatch.setattr(
        "linkwise.compiler.runtime.machine.compile_text", lambda *a, **k: pytest.fail("compiled again")
    )
    assert robot.inverse_dynamics(*args).tobytes() == wanted.tobytes()
    assert robot.gravity_torques(args).shape == (3, 2)


def test_calls_before_it_is_done(robot, monkeypatch):
    monkeypatch.setenv("LINKWISE_BACKGROUND", "1")
    wanted = lw.load("two_link").mass_matrix(np.ones(2)).tobytes()
    handle = robot.compile("mass_matrix", background=True)
    end = time.monotonic() + 120.0
    while not handle.done and time.monotonic() < end:
        assert robot.mass_matrix(np.ones(2)).tobytes() == wanted
    assert robot.mass_matrix(np.ones(2)).tobytes() == wanted


def test_waiting_ends(robot, monkeypatch):
    monkeypatch.setenv("LINKWISE_BACKGROUND", "1")
    handle = robot.compile("regressor", background=True)
    assert not handle.wait(1e-6)
    assert handle.wait(120.0)


def test_a_kernel_that_cannot_be_sent_is_compiled_at_once(robot, monkeypatch):
    monkeypatch.setenv("LINKWISE_BACKGROUND", "1")

    @lw.kernel(q=2)
    def local(q):
        return q[0] * q[1]

    robot.compile(local, background=True)
    assert local.known_native("float64", 1) is not None


@pytest.mark.parametrize(
    ("given", "options", "error", "text"),
    [
        (
            "inverse_dynamic",
            {},
            lw.LinkwiseError,
            "compile: no function 'inverse_dynamic'; did you mean 'inverse_dynamics'",
        ),
        (["pose", "x"], {}, lw.LinkwiseError, "no function 'x'"),
        ("pose", {"frame": "nowhere"}, lw.LinkwiseError, "no frame 'nowhere'"),
        ("inverse_dynamics", {"algorithm": "none"}, lw.LinkwiseError, "no algorithm 'none'"),
        ("pose", {"friction": False}, TypeError, "option 'friction'"),
        ("pose", {"out": None}, TypeError, "option 'out'"),
        ("pose", {"dtype": "float16"}, lw.LinkwiseError, "dtype: expected float64 or float32, got 'float16'"),
        (3, {}, TypeError, "got a int"),
    ],
)
def test_errors(robot, given, options, error, text):
    with pytest.raises(error, match=text):
        robot.compile(given, **options)
