"""Compiled kernels return what the same algorithm returns on arrays; one state or many, the bits are the same."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from evaluation import assert_near, norm, torque_scale, value

import linkwise as lw
from linkwise.functions.table import FUNCTIONS, Setting, function_named
from linkwise.robot.kernels import is_straight
from strategies import states_of

CLOSE = 1e-12
INPUTS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
    "gravity_torques": ("q",),
    "velocity_torques": ("q", "qd"),
    "bias_torques": ("q", "qd"),
    "coriolis_matrix": ("q", "qd"),
    "christoffel": ("q",),
    "kinetic_energy": ("q", "qd"),
    "potential_energy": ("q",),
    "pose": ("q",),
    "jacobian": ("q",),
    "velocity": ("q", "qd"),
    "regressor": ("q", "qd", "qdd"),
}
SELECTABLE = {"inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "gravity_torques"}
FRAMED = {"pose", "jacobian", "velocity"}
CASES = [
    (function, algorithm)
    for function in INPUTS
    for algorithm in (FUNCTIONS[function].algorithms if function in SELECTABLE else [None])
]


@functools.cache
def robot_named(name: str) -> lw.Robot:
    if name == "tree":
        return lw.random_robot(11, 5, tree=True, joints="RPRRP", friction=True, rotor=True)
    return lw.load(name)


def call(robot, function, algorithm, *arrays, **options):
    if algorithm is not None:
        options["algorithm"] = algorithm
    if function in FRAMED:
        options["frame"] = robot.link_names[-1]
    return getattr(robot, function)(*arrays, **options)


def on_arrays(robot, function, algorithm, s):
    given = {name: getattr(s, name) for name in INPUTS[function]}
    return value(robot, function, algorithm, frame=robot.link_names[-1], **given)


def scale_of(robot, function, s, wanted):
    """The size of what the result is a sum of."""
    per_state = tuple(range(1, wanted.ndim))
    size = np.max(np.abs(wanted), axis=per_state) if per_state else np.abs(wanted)
    if function == "forward_dynamics":
        M = robot.mass_matrix(s.q)
        W = np.linalg.norm(robot.inverse_mass_matrix(s.q), axis=(-2, -1))
        return size * np.linalg.cond(M) ** 0.5 + W * torque_scale(robot, s.q, s.qd, wanted, s.tau)
    if function == "inverse_mass_matrix":
        return size * np.linalg.cond(robot.mass_matrix(s.q))
    if function == "velocity_torques" or function.endswith("energy"):
        return size + torque_scale(robot, s.q, s.qd, s.qdd)
    return size + 1e-3


@pytest.mark.parametrize("name", ["tree", "puma560"])
@pytest.mark.parametrize(("function", "algorithm"), CASES)
def test_compiled_as_on_arrays(name, function, algorithm):
    if name == "puma560" and function in ("regressor", "christoffel"):
        return  # seconds of compiling that show nothing new
    robot = robot_named(name)
    s = states_of(robot, 1, 9)
    given = [getattr(s, key) for key in INPUTS[function]]
    wanted = on_arrays(robot, function, algorithm, s)
    found = call(robot, function, algorithm, *given)
    assert found.shape == wanted.shape
    assert found.dtype == np.float64
    assert_near(found, wanted, CLOSE, scale_of(robot, function, s, wanted))
    # one by one: the first call and those after it, which may take a shorter way
    for k in (0, 0, 1, 2, 8):
        one = call(robot, function, algorithm, *(x[k] for x in given))
        assert np.array_equal(one, found[k]), f"state {k} alone has other bits"
        assert np.shape(one) == wanted.shape[1:]


@pytest.mark.parametrize("wrench", [False, True])
@pytest.mark.parametrize("friction", [False, True])
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_options_compile_too(function, friction, wrench):
    robot = robot_named("tree")
    s = states_of(robot, 2, 6)
    last = s.qdd if function == "inverse_dynamics" else s.tau
    frame = robot.link_names[3]
    options = {"friction": friction, **({"wrench": s.wrench, "wrench_frame": frame} if wrench else {})}
    found = getattr(robot, function)(s.q, s.qd, last, **options)
    given = {"q": s.q, "qd": s.qd, INPUTS[function][2]: last, **({"wrench": s.wrench} if wrench else {})}
    wanted = value(robot, function, friction=friction, frame=frame, **given)
    assert_near(found, wanted, CLOSE, scale_of(robot, function, s, wanted))
    for k in (0, 5):
        one = {**options, **({"wrench": s.wrench[k]} if wrench else {})}
        assert np.array_equal(getattr(robot, function)(s.q[k], s.qd[k], last[k], **one), found[k])


@pytest.mark.parametrize(
    ("function", "algorithm"),
    [case for case in CASES if case[0] in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "pose")],
)
def test_single_precision(function, algorithm):
    """float32 in, float32 out, computed in float32: about seven digits less what the robot costs."""
    robot = robot_named("tree")
    s = states_of(robot, 3, 9)
    given = [getattr(s, key).astype(np.float32) for key in INPUTS[function]]
    found = call(robot, function, algorithm, *given)
    assert found.dtype == np.float32
    wanted = call(robot, function, algorithm, *(x.astype(float) for x in given))
    assert wanted.dtype == np.float64
    assert_near(found, wanted, 1e-5, scale_of(robot, function, s, wanted))
    assert np.max(np.abs(found - wanted)) > 0  # it is not computed in double and rounded
    for k in (0, 4):
        one = call(robot, function, algorithm, *(x[k] for x in given))
        assert one.dtype == np.float32
        assert np.array_equal(one, found[k])
    mixed = call(robot, function, algorithm, given[0].astype(float), *given[1:])
    assert mixed.dtype == np.float64
    assert np.array_equal(mixed, wanted)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
def test_any_number_of_states(count):
    """Blocks of lanes and what is left over."""
    robot = robot_named("puma560")
    s = states_of(robot, 4, 33)
    whole = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    part = robot.inverse_dynamics(s.q[:count], s.qd[:count], s.qdd[:count])
    assert np.array_equal(part, whole[:count])
    assert np.array_equal(
        robot.forward_dynamics(s.q[:count], s.qd[:count], part),
        robot.forward_dynamics(s.q, s.qd, whole)[:count],
    )


def test_any_number_of_threads(monkeypatch):
    robot = robot_named("puma560")
    s = states_of(robot, 5, 3001)
    one = robot.inverse_dynamics(s.q, s.qd, s.qdd, threads=1)
    for threads in (2, 3, None):
        assert np.array_equal(robot.inverse_dynamics(s.q, s.qd, s.qdd, threads=threads), one)
    monkeypatch.setenv("LINKWISE_THREADS", "2")
    assert np.array_equal(robot.inverse_dynamics(s.q, s.qd, s.qdd), one)


@pytest.mark.parametrize("tree", [False, True])
def test_long_robots(tree):
    """Loops over the links where straight code would be too long, and straight code of thousands of operations."""
    robot = lw.random_robot(3, 60, tree=tree, rotor=True) if tree else lw.planar_chain(40)
    function = function_named("inverse_dynamics")
    assert not is_straight(function, Setting(robot))
    s = states_of(robot, 1, 3)
    scale = torque_scale(robot, s.q, s.qd, s.qdd)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_near(tau, value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd), CLOSE, scale)
    assert np.array_equal(robot.inverse_dynamics(s.q[1], s.qd[1], s.qdd[1]), tau[1])
    for algorithm in ("kalman", "compound_link"):
        qdd = robot.forward_dynamics(s.q, s.qd, tau, algorithm=algorithm)
        back = robot.inverse_dynamics(s.q, s.qd, qdd)
        size = torque_scale(robot, s.q, s.qd, qdd, tau)
        assert (norm(back - tau) <= 1e-10 * size).all(), algorithm
    M = robot.mass_matrix(s.q)
    assert_near(M, value(robot, "mass_matrix", "newton_euler", q=s.q), 1e-11)
