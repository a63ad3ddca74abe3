"""Weight that is carried from outside, through every function that has gravity in it."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.model.inertia import Inertia
from linkwise.robot import kernels
from linkwise.simulate import simulate

NAMES = ("compensated_mass", "compensated_hx", "compensated_hy", "compensated_hz")


def balanced(robot: lw.Robot, seed: int = 0) -> lw.Robot:
    """A robot in which part of the weight of every second link is carried."""
    rng = np.random.default_rng(seed)
    given = {}
    for name in robot.joint_names[::2]:
        given |= {f"{name}.{term}": float(x) for term, x in zip(NAMES, rng.uniform(0.1, 1.0, 4), strict=True)}
    return robot.with_parameters(given)


def weights(robot: lw.Robot) -> lw.Robot:
    """Nothing but what is carried: bodies of that mass and first moment."""
    carried = {joint.child: [joint.terms.get(name, 0.0) for name in NAMES] for joint in robot.moving_joints}
    links = [
        lw.Link(link.name, Inertia.from_parameters([*carried.get(link.name, [0.0] * 4), *[0.0] * 6]))
        for link in robot.links
    ]
    joints = [lw.Joint(j.name, j.type, j.parent, j.child, j.origin, j.axis) for j in robot.joints]
    return lw.Robot("weights", links, joints, gravity=robot.gravity)


@pytest.fixture(scope="module")
def plain():
    arm = lw.random_robot(5, 3, tree=True, joints="RP")
    return arm.with_base("floating").with_payload(3.0, inertia=(0.2, 0.3, 0.4), frame=arm.base)


@pytest.fixture(scope="module")
def robot(plain):
    return balanced(plain)


@pytest.fixture(scope="module")
def state(robot):
    rng = np.random.default_rng(3)
    return robot.random(rng), *rng.normal(size=(2, robot.dof))


def test_every_inverse_dynamics(plain, robot, state):
    q, qd, qdd = state
    expected = plain.inverse_dynamics(q, qd, qdd) - weights(robot).gravity_torques(q)
    for algorithm in robot.algorithms("inverse_dynamics"):
        np.testing.assert_allclose(
            robot.inverse_dynamics(q, qd, qdd, algorithm=algorithm), expected, rtol=1e-10, atol=1e-10
        )
    bias = plain.bias_torques(q, qd) - weights(robot).gravity_torques(q)
    np.testing.assert_allclose(robot.bias_torques(q, qd), bias, rtol=1e-10, atol=1e-10)
    for algorithm in robot.algorithms("gravity_torques"):
        np.testing.assert_allclose(
            robot.gravity_torques(q, algorithm=algorithm) + robot.velocity_torques(q, qd), bias, atol=1e-10
        )


@pytest.mark.parametrize("algorithm", ["kalman", "compound_link"])
def test_forward_dynamics_undoes_inverse_dynamics(robot, state, algorithm):
    q, qd, qdd = state
    tau = robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, qd, tau, algorithm=algorithm), qdd, rtol=1e-7, atol=1e-8
    )


def test_gravity_torques_are_the_gradient_of_the_energy(robot, state):
    q, h = state[0], 1e-6
    ends = [robot.potential_energy(robot.integrate(q, sign * h * np.eye(robot.dof))) for sign in (1, -1)]
    np.testing.assert_allclose(robot.gravity_torques(q), (ends[0] - ends[1]) / (2 * h), atol=1e-6)


def test_derivatives(robot, state):
    q, qd, qdd = state
    h = 1e-6
    by_q = robot.inverse_dynamics_derivatives(q, qd, qdd)[0]
    ends = [
        robot.inverse_dynamics(robot.integrate(q, sign * h * np.eye(robot.dof)), qd, qdd) for sign in (1, -1)
    ]
    np.testing.assert_allclose(by_q, ((ends[0] - ends[1]) / (2 * h)).T, atol=1e-5)


def test_regressor_and_labels(robot, state):
    assert set(robot.parameter_labels) > {f"{name}.compensated_hy" for name in robot.joint_names}
    tau = robot.regressor(*state) @ robot.parameters
    np.testing.assert_allclose(tau, robot.inverse_dynamics(*state), rtol=1e-9, atol=1e-9)


def test_run_time_parameters():
    start = lw.load("two_link")
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
    label = f"{start.joint_names[1]}.compensated_hx"
    kernel = start.kernel("inverse_dynamics", inputs=(label,))
    changed = start.with_parameters({label: 0.7})
    found = kernel(q, qd, qdd, np.array([0.7]))
    np.testing.assert_allclose(found, changed.inverse_dynamics(q, qd, qdd), rtol=1e-12)
    assert np.abs(found - start.inverse_dynamics(q, qd, qdd)).max() > 0.1


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_as_loops_over_links(monkeypatch, name):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 0)
    robot = balanced(lw.random_robot(7, 6, tree=True, joints="RP"))
    function = FUNCTIONS[name]
    given = dict(zip(function.inputs, np.random.default_rng(1).normal(size=(3, 4, 6)), strict=True))
    kernel = kernels.kernel(function, Setting(robot), function.default)
    assert isinstance(kernel.program(), SweptProgram)
    (expected,) = arrays.run_on_arrays(function, Setting(robot), function.default, given).values()
    np.testing.assert_allclose(kernel(*given.values()), expected, rtol=1e-10, atol=1e-10)


def test_a_locked_joint_passes_on_what_it_carried(plain, robot, state):
    q = state[0]
    name = robot.joint_names[2]
    at = 8  # after the seven positions of the base and joint 1
    locked = robot.lock({name: float(q[at])})
    left = np.delete(np.arange(robot.nq), at)
    np.testing.assert_allclose(
        locked.gravity_torques(q[left]), np.delete(robot.gravity_torques(q), 7), atol=1e-10
    )


def test_a_robot_whose_weight_is_carried_stays_where_it_is():
    arm = lw.load("two_link")
    given = {}
    for joint, body in zip(arm.moving_joints, arm.bodies(), strict=True):
        given |= {f"{joint.name}.{term}": x for term, x in zip(NAMES, body.parameters[:4], strict=True)}
    free = arm.with_parameters(given)
    assert np.abs(free.gravity_torques([0.3, 0.4])).max() < 1e-12
    assert np.abs(arm.gravity_torques([0.3, 0.4])).max() > 1.0
    result = simulate(
        free,
        lambda t, q, qd, reference: np.zeros_like(q),
        q=[0.3, 0.4],
        qd=[0.0, 0.0],
        duration=0.02,
        step=1e-3,
    )
    np.testing.assert_allclose(result.q[-1], [0.3, 0.4], atol=1e-9)


def test_machine_code_has_the_bits_of_the_interpreter():
    arm = balanced(lw.load("two_link"))
    state = np.random.default_rng(2).normal(size=(3, 2))
    for name in ("inverse_dynamics", "forward_dynamics", "potential_energy"):
        kernel = arm.kernel(name)
        given = state[: len(kernel.program().inputs)]
        np.testing.assert_array_equal(interpret.run(kernel.program(), *given)[0], kernel(*given))


def test_a_fused_loop_knows_what_is_carried():
    """A controller that holds the arm against its own weight keeps it where it is only if both know the same."""
    arm, start = lw.load("two_link"), np.array([0.3, 0.4])
    carried = balanced(arm)
    for model, stays in ((carried, True), (arm, False)):
        result = simulate(
            carried,
            control.GravityPD(model, control.Gains(kp=1.0, kd=1.0)),
            start,
            q=start,
            qd=np.zeros(2),
            duration=0.05,
            fused=True,
        )
        assert (np.abs(result.q[-1] - start).max() < 1e-9) == stays
