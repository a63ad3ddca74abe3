"""Friction that changes its direction smoothly, remembers it, or grows with the torque that a joint carries."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.compiler.ir import interpret
from linkwise.formats.toml.reader import read_toml
from linkwise.joint_laws import load
from linkwise.model.joint import Joint
from linkwise.realtime.program import TwoRatePrograms
from linkwise.simulate import simulate, simulate_adaptive

NUMBERS = {
    "coulomb_friction_forward": 1.1,
    "coulomb_friction_backward": 1.6,
    "viscous_friction": 0.4,
    "stribeck_friction": 0.5,
    "stribeck_speed": 0.2,
    "saturating_friction": 0.8,
    "saturating_speed": 0.3,
    "load_friction": 0.12,
    "torque_offset": -0.7,
    "friction_speed": 0.05,
    "presliding_distance": 2e-3,
}


def rubbing(robot: lw.Robot, numbers=NUMBERS) -> lw.Robot:
    """A robot with this friction, a little different at every joint."""
    return robot.with_parameters(
        {
            f"{name}.{key}": (1.0 + 0.1 * k) * value
            for k, name in enumerate(robot.joint_names)
            for key, value in numbers.items()
        }
    )


@pytest.fixture(scope="module")
def robot():
    return rubbing(lw.load("ur10e"))


@pytest.fixture(scope="module")
def state(robot):
    return np.random.default_rng(4).normal(size=(3, 4, robot.dof))


def expected_torques(robot, q, qd, qdd, d=None):
    """By the formulas of the laws, from rigid bodies and numbers alone."""
    carried = robot.inverse_dynamics(q, qd, qdd, friction=False)
    x = {key: np.array([joint.number(key) for joint in robot.moving_joints]) for key in NUMBERS}
    d = qd / np.sqrt(qd**2 + x["friction_speed"] ** 2) if d is None else d
    coulomb = np.where(d > 0, x["coulomb_friction_forward"], x["coulomb_friction_backward"])
    stribeck = x["stribeck_friction"] / (1 + (qd / x["stribeck_speed"]) ** 2)
    saturating = x["saturating_friction"] * qd / (np.abs(qd) + x["saturating_speed"])
    rest = x["viscous_friction"] * qd + saturating
    return carried + d * (coulomb + stribeck + x["load_friction"] * np.abs(carried)) + rest


@pytest.mark.parametrize("algorithm", ["newton_euler", "boundary_value", "gibbs_appell", "compound_link"])
def test_inverse_dynamics_has_every_law(robot, state, algorithm):
    found = robot.inverse_dynamics(*state, algorithm=algorithm)
    np.testing.assert_allclose(found, expected_torques(robot, *state), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "algorithm", ["kalman", "compound_link", "conjugate_gradient", "preconditioned_conjugate_gradient"]
)
def test_forward_dynamics_undoes_inverse_dynamics(robot, state, algorithm):
    q, qd, qdd = state
    tau = robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau, algorithm=algorithm), qdd, rtol=1e-8)


def test_derivatives(robot, state):
    q, qd, qdd = (x[0] for x in state)
    tau, h = robot.inverse_dynamics(q, qd, qdd), 1e-6
    steps = h * np.eye(robot.dof)

    def differences(function, *given):
        for k in range(3):
            moved = [[x + sign * steps if j == k else x for j, x in enumerate(given)] for sign in (1, -1)]
            yield ((function(*moved[0]) - function(*moved[1])) / (2 * h)).T

    for found, expected in zip(
        robot.inverse_dynamics_derivatives(q, qd, qdd),
        differences(robot.inverse_dynamics, q, qd, qdd),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for found, expected in zip(
        robot.forward_dynamics_derivatives(q, qd, tau),
        differences(robot.forward_dynamics, q, qd, tau),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_directions_as_an_input(robot, state):
    kernel = robot.kernel("inverse_dynamics", inputs=("direction",))
    d = np.random.default_rng(5).uniform(-1, 1, state[0].shape)
    np.testing.assert_allclose(kernel(*state, d), expected_torques(robot, *state, d), rtol=1e-10, atol=1e-10)
    one = [x[0] for x in (*state, d)]
    assert (interpret.run(kernel.program(), *one)[0] == kernel(*one)).all()
    assert "direction" in kernel.source("c")
    with pytest.raises(lw.UnknownNameError, match="did you mean 'direction'"):
        robot.kernel("inverse_dynamics", inputs=("directions",))


def test_directions_along_a_motion(robot):
    t = np.linspace(0.0, 2.0, 400)[:, None]
    distance = np.array([joint.number("presliding_distance") for joint in robot.moving_joints])
    q, qd = 0.3 * np.sin(3 * t) * np.ones(6), 0.9 * np.cos(3 * t) * np.ones(6)
    d = robot.directions(q, qd)
    expected = np.zeros_like(q)
    expected[0] = np.clip((q[1] - q[0]) / distance, -1, 1)
    for k in range(1, len(t)):
        expected[k] = np.clip(expected[k - 1] + (q[k] - q[k - 1]) / distance, -1, 1)
    np.testing.assert_allclose(d, expected, rtol=1e-12, atol=1e-12)
    assert np.abs(d).max() == 1.0
    rests = robot.directions(np.concatenate([q, np.repeat(q[-1:], 5, axis=0)]), np.zeros((405, 6)))
    assert (rests[-5:] == rests[-1]).all()
    again = robot.directions(q[200:], qd[200:], start=d[200])
    np.testing.assert_array_equal(again, d[200:])
    plain = lw.load("ur10e")
    np.testing.assert_array_equal(plain.directions(q, qd), np.sign(qd))
    with pytest.raises(ValueError, match="expected shape"):
        robot.directions(q[0], qd[0])


def test_machine_code_has_the_bits_of_the_interpreter(robot, state):
    for name in ("inverse_dynamics", "forward_dynamics"):
        kernel = robot.kernel(name)
        one = [x[0] for x in state]
        assert (interpret.run(kernel.program(), *one)[0] == kernel(*one)).all()


def test_smooth_at_rest_and_not_a_number(robot, state):
    q, qd, qdd = (x[0].copy() for x in state)
    near, rest = robot.inverse_dynamics(q, 1e-9 + 0 * qd, qdd), robot.inverse_dynamics(q, 0 * qd, qdd)
    np.testing.assert_allclose(near, rest, atol=1e-6)
    qd[2] = np.nan
    assert np.isnan(robot.inverse_dynamics(q, qd, qdd)[2])


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_files_keep_every_number(robot, state, ending, tmp_path):
    lw.save(robot, tmp_path / f"arm.{ending}")
    again = lw.load(tmp_path / f"arm.{ending}")
    np.testing.assert_array_equal(again.inverse_dynamics(*state), robot.inverse_dynamics(*state))
    assert [dict(j.terms) for j in again.moving_joints] == [dict(j.terms) for j in robot.moving_joints]


def test_other_programs_get_the_nearest_plain_friction(robot, tmp_path):
    for ending in ("urdf", "xml"):
        lw.save(robot, tmp_path / f"arm.{ending}")
        text = (tmp_path / f"arm.{ending}").read_text()
        plain = text.replace("linkwise:joint", "other:joint").replace("linkwise_", "other_")
        (tmp_path / f"plain.{ending}").write_text(plain.replace("xmlns:linkwise", "xmlns:other"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = lw.load(tmp_path / f"plain.{ending}")
        v = np.linspace(0.05, 2.0, 40)
        for joint, other in zip(robot.moving_joints, others.moving_joints, strict=True):
            given = [
                joint.number(key) for key in ("viscous_friction", "saturating_friction", "saturating_speed")
            ]
            wanted = given[0] * v + given[1] * v / (v + given[2]) + np.mean(joint.coulomb_friction)
            got = other.viscous_friction * v + other.coulomb_friction[0]
            assert np.abs(got - wanted).max() < 0.25 * wanted.max()
            assert got.mean() == pytest.approx(wanted.mean(), rel=0.1)


def test_friction_that_was_edited_by_hand_counts(robot, tmp_path):
    lw.save(robot, tmp_path / "arm.urdf")
    text = (tmp_path / "arm.urdf").read_text()
    (tmp_path / "edited.urdf").write_text(re.sub('damping="[^"]*"', 'damping="7.5"', text, count=1))
    with pytest.warns(lw.ModelWarning, match="friction numbers disagree with the standard elements"):
        edited = lw.load(tmp_path / "edited.urdf")
    assert edited.moving_joints[0].viscous_friction == 7.5
    assert edited.moving_joints[0].number("saturating_friction") == 0.0


def test_numbers_that_cannot_be_are_refused():
    robot = lw.load("two_link")
    name = robot.joint_names[0]
    for numbers, message in (
        ({"load_friction": 1.0}, "load friction 1 is not below 1"),
        ({"load_friction": -0.1}, "load friction -0.1 is negative"),
        ({"stribeck_friction": 1.0}, "stribeck_friction needs a stribeck_speed above 0"),
        ({"saturating_friction": 1.0}, "saturating_friction needs a saturating_speed above 0"),
        ({"friction_speed": -1.0}, "is negative"),
    ):
        with pytest.raises(lw.ModelError, match=message):
            robot.with_parameters({f"{name}.{key}": value for key, value in numbers.items()})


def test_load_friction_of_a_joint_that_follows_is_refused():
    hand = lw.load("panda")
    joints = [
        Joint(**{**vars(j), "mimic": None, "terms": {"load_friction": 0.1}}) if j.moves else j
        for j in hand.joints
    ]
    ball = [Joint(**{**vars(j), "type": "ball"}) if j.name == hand.joint_names[0] else j for j in joints]
    with pytest.raises(lw.ModelError, match="load_friction is for joints of one axis"):
        lw.Robot("r", hand.links, ball)


def test_what_does_not_know_carried_torques_says_so(robot):
    move = motion.quintic(np.zeros(6), np.full(6, 0.3), 1.0)
    with pytest.raises(lw.ModelError, match="load_friction"):
        motion.fastest(move, robot)
    with pytest.raises(lw.ModelError, match="load_friction"):
        _ = TwoRatePrograms(robot).velocity


@pytest.mark.parametrize("carried", [3.0, -2.0, 0.0])
@pytest.mark.parametrize("qd", [0.7, -0.4])
def test_load_friction_is_undone_and_has_limits(carried, qd):
    joint = Joint("j", "revolute", "a", "b", terms={"load_friction": 0.3})
    given = load.added(joint, carried, qd)
    assert load.removed(joint, given, qd) == pytest.approx(carried, rel=1e-12)
    assert (given - carried) * qd >= 0.0
    assert load.limit(joint, given, qd > 0) == pytest.approx(abs(given - carried), rel=1e-12)


def test_controllers_compensate_it(robot):
    move = motion.quintic(np.zeros(6), np.full(6, 0.3), 0.5)
    at = list(move.at(0.2))
    gains = control.Gains.from_frequency(10.0)
    for law in (
        control.ComputedTorque(robot, gains, torque_limits=False),
        control.FeedForward(robot, torque_limits=False),
    ):
        tau = law.kernel(1e-3)(at[0], at[1], *at)
        np.testing.assert_allclose(tau, robot.inverse_dynamics(*at), rtol=1e-9)


def test_simulations_brake_and_stick():
    """A block on a slope: it slides where the weight along it exceeds the friction, and rests where it does not."""
    text = 'name = "s"\nconvention = "mdh"\ngravity = [0.0, 0.0, -1.0]\n[[joint]]\nname = "j"\ntype = "prismatic"\n'
    text += "mass = 2.0\nload_friction = 0.3\nstribeck_friction = 0.2\nstribeck_speed = 0.1\n"

    for coulomb, moves in ((0.5, True), (2.5, False)):
        model = read_toml(f"{text}coulomb_friction = {coulomb}\n".encode(), "s.toml")
        block = lw.Robot.from_model(model)
        found = simulate(block, control.Passive(block), duration=1.0, step=1e-3, q=[0.0])
        if not moves:
            assert (found.q == 0.0).all()
            continue
        # sliding down against its friction the joint carries no torque but friction: T = τ − f, see joint_laws.load
        other = simulate_adaptive(block, duration=1.0, q=[0.0], smoothing=1e-4)
        assert found.q[-1, 0] == pytest.approx(other.q[-1, 0], rel=5e-3)
        assert found.q[-1, 0] < -0.1
