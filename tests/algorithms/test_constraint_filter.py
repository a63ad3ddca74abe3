"""Constraints as measurements: hard and soft ones, against the full equations, the other algorithms and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import assert_near

import linkwise as lw
from linkwise import ConstraintError, ModelError
from linkwise.compiler.ir.interpret import run
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting, function_named

ALGORITHMS = ("kalman", "compound_link", "filter")
HOME = np.array([0.2, -0.785, 0.1, -2.356, 0.3, 1.571, 0.785])


def test_the_filter_is_an_algorithm_of_every_function_of_forces():
    for name in ("constrained_forward_dynamics", "constraint_forces"):
        assert FUNCTIONS[name].algorithms == ALGORITHMS


def solved(robot, function, algorithm, q, qd, tau, wrench=None, frame=None, stabilization=None):
    """The first result of a function on the array path, which needs no compiling."""
    setting = Setting(robot, frame=frame, wrench=wrench is not None, stabilization=stabilization)
    given = {"q": q, "qd": qd, "tau": tau} | ({} if wrench is None else {"wrench": wrench})
    row = function_named(function)
    return next(iter(arrays.run_on_arrays(row, setting, algorithm, given).values()))


def accelerations(robot, algorithm, *state, **options):
    return solved(robot, "constrained_forward_dynamics", algorithm, *state, **options)


@pytest.fixture(scope="module")
def gripping():
    """A Panda whose hand holds a rail, with velocities that it allows and a wrench."""
    arm = lw.load("panda")
    held = arm.with_constraints([lw.Weld(arm.default_frame(), arm.pose(HOME), name="rail")])
    J = held.constraint_jacobian(HOME)
    rng = np.random.default_rng(0)
    qd, tau = np.linalg.svd(J)[2][-1], 5.0 * rng.normal(size=7)
    return held, qd, tau


def test_a_gripping_arm(gripping):
    held, qd, tau = gripping
    wanted = accelerations(held, "kalman", HOME, qd, tau)
    forces = solved(held, "constraint_forces", "kalman", HOME, qd, tau)
    wrench = np.array([0.3, -0.2, 0.1, 2.0, 5.0, -3.0])
    for name in ("compound_link", "filter"):
        found = accelerations(held, name, HOME, qd, tau)
        assert_near(found, wanted, 1e-9, np.abs(wanted).max(), name)
        found = solved(held, "constraint_forces", name, HOME, qd, tau)
        assert_near(found, forces, 1e-9, np.abs(forces).max(), name)
        pulled, by_matrix = (
            accelerations(held, each, HOME, qd, tau, wrench=wrench, frame="panda_link5", stabilization=7.0)
            for each in (name, "kalman")
        )
        assert_near(pulled, by_matrix, 1e-9, np.abs(by_matrix).max(), f"{name} with a wrench")


def test_errors_and_the_other_order_of_the_ends(gripping):
    held, _, tau = gripping
    arm = held.with_constraints([])
    away = HOME + 0.01
    pose = arm.pose(HOME)
    turned = lw.Weld(arm.base, arm.default_frame(), np.linalg.inv(pose))  # the world's end is named first
    for constraint in (held.constraints[0], turned):
        robot = arm.with_constraints([constraint])
        results = [
            accelerations(robot, name, away, 0.3 * tau, tau, stabilization=20.0) for name in ALGORITHMS
        ]
        for found in results[1:]:
            assert_near(found, results[0], 1e-8, np.abs(results[0]).max(), constraint.label)


def test_soft_constraints_give_way_by_their_compliance():
    arm = lw.load("panda")
    rng = np.random.default_rng(2)
    qd, tau = 0.2 * rng.normal(size=(2, 7))
    point = lw.Point("panda_link4", arm.pose(HOME, "panda_link4")[:3, 3], compliance=0.5, name="pad")
    for others in ([], [lw.Weld(arm.default_frame(), arm.pose(HOME))]):
        held = arm.with_constraints([point, *others])
        J, M = held.constraint_jacobian(HOME), held.mass_matrix(HOME)
        if others:
            qd = held.impact(HOME, qd)
        R = np.diag([0.5] * 3 + [0.0] * (len(J) - 3))
        step = 1e-6
        rate = (held.constraint_jacobian(HOME + step * qd) - held.constraint_jacobian(HOME - step * qd)) @ qd
        n = arm.dof
        system = np.block([[M, -J.T], [J, R]])
        right = np.r_[tau - arm.inverse_dynamics(HOME, qd, np.zeros(7)), -rate / (2 * step)]
        exact = np.linalg.solve(system, right)
        for name in ALGORITHMS:
            found = accelerations(held, name, HOME, qd, tau)
            assert_near(found, exact[:n], 1e-7, np.abs(exact[:n]).max(), name)
            forces = solved(held, "constraint_forces", name, HOME, qd, tau)
            assert_near(forces, exact[n:], 1e-6, np.abs(exact[n:]).max(), name)
    with pytest.raises(ModelError, match="pad: compliance: expected a number of at least 0"):
        arm.with_constraints([lw.Point("panda_link4", (0, 0, 0), compliance=-1.0, name="pad")])


def test_mujoco_has_the_same_soft_constraint():
    """A body hung by a soft ``connect``: our compliance is MuJoCo's efc_R, our rate that of its solref."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <body name="a" pos="0 0 1"><joint name="h1" axis="0 1 0"/>
        <inertial pos="0.2 0 0" mass="2" diaginertia=".02 .03 .04"/>
        <body name="b" pos="0.4 0 0"><joint name="h2" axis="0 1 0"/><joint name="h3" axis="1 0 0"/>
          <inertial pos="0.2 0.1 0" mass="1" diaginertia=".01 .02 .02"/></body></body></worldbody>
      <equality><connect body1="b" anchor="0.3 0 0" solref="0.05 1" solimp="0.8 0.8 1"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    data = mujoco.MjData(model)
    data.qvel[:] = [0.3, -0.4, 0.5]
    mujoco.mj_forward(model, data)
    (softness,) = set(np.round(data.efc_R, 12))
    robot = lw.Robot.from_model(read_mjcf(text.encode(), "text"))
    q = np.zeros(3)
    place = robot.pose(q, "b") @ [0.3, 0.0, 0.0, 1.0]
    held = robot.with_constraints(
        [lw.Point("b", place[:3], offset=(0.3, 0.0, 0.0), compliance=float(softness))]
    )
    decay = 1.0 / (0.8 * 0.05)  # 2 / (dmax·timeconst) of velocities is twice our rate
    for name in ALGORITHMS:
        found = held.forward_dynamics(q, data.qvel, np.zeros(3), algorithm=name, stabilization=decay)
        assert_near(found, data.qacc, 1e-6, np.abs(data.qacc).max(), name)


def test_constraints_between_links_are_refused_by_the_filter(gripping):
    arm = gripping[0].with_constraints([lw.Point("panda_link7", "panda_link3", position=(0.1, 0.0, 0.0))])
    with pytest.raises(ModelError, match="ties two moving links to each other; use algorithm='kalman'"):
        arm.forward_dynamics(HOME, np.zeros(7), np.zeros(7), algorithm="filter")


def test_what_cannot_be_met_is_named_by_every_algorithm():
    arm = lw.planar_chain(2)
    held = arm.with_constraints([lw.Weld("tip", arm.pose([0.3, 0.4], "tip"), name="hold the tip")])
    for name in ALGORITHMS:
        with pytest.raises(ConstraintError, match="hold the tip"):
            held.forward_dynamics([0.3, 0.4], [3.0, 1.0], [0.0, 0.0], algorithm=name)


def test_kernels_of_the_filter_have_the_bits_of_the_interpreter(gripping):
    held, qd, tau = gripping
    kernel = held.kernel("constraint_forces", algorithm="filter")
    found = kernel(HOME, qd, tau)
    (same,) = run(kernel.program(), HOME, qd, tau)
    assert np.array_equal(found, same)
    expected = solved(held, "constraint_forces", "filter", HOME, qd, tau)
    assert_near(found, expected, 1e-9, np.abs(expected).max(), "compiled")


def test_redundant_constraints_in_single_precision():
    arm = lw.planar_chain(3)
    q, tau = np.array([2.0, -1.2, -0.9]), np.array([1.0, -2.0, 0.5])
    point = arm.pose(q)[:3, 3]
    held = arm.with_constraints([lw.Point("tip", point), lw.Point("tip", point, name="again")])
    qd = np.linalg.svd(held.constraint_jacobian(q))[2][-1]
    exact = held.forward_dynamics(q, qd, tau)
    state = [np.asarray(x, dtype=np.float32) for x in (q, qd, tau)]
    for name in ALGORITHMS:
        found = held.forward_dynamics(*state, algorithm=name)
        assert found.dtype == np.float32
        assert_near(found, exact, 1e-2, np.abs(exact).max(), name)
        assert np.isfinite(held.constraint_forces(*state, algorithm=name)).all()
