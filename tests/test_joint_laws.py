"""What joints add to the equation of motion: each law by itself, and springs through everything that uses them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, joint_laws, motion
from linkwise.compiler.ir import interpret
from linkwise.formats.toml.reader import read_toml
from linkwise.formats.urdf.reader import read_urdf
from linkwise.joint_laws.direction import direction
from linkwise.model.joint import Joint
from linkwise.realtime.program import TwoRatePrograms
from linkwise.simulate import simulate, simulate_adaptive

ROUND_OFF = 1e-12
FINITE_DIFFERENCES = 1e-6

JOINT = Joint(
    "j",
    "revolute",
    "a",
    "b",
    rotor_inertia=0.3,
    viscous_friction=0.7,
    coulomb_friction=(1.1, 1.3),
    terms={
        "stiffness": 5.0,
        "spring_reference": 0.4,
        "torque_offset": -0.8,
        "stribeck_friction": 0.6,
        "stribeck_speed": 0.3,
        "saturating_friction": 0.9,
        "saturating_speed": 0.2,
        "unmodelled_viscous": -0.2,
        "unmodelled_square": 0.15,
        "unmodelled_coulomb": -0.3,
        "unmodelled_speed": 0.25,
        "unmodelled_cos_1": 0.4,
        "unmodelled_sin_1": -0.7,
        "unmodelled_cos_2": 0.2,
        "unmodelled_sin_2": 0.1,
        "ripple_speed": 0.7,
        "ripple_1_count": 5.0,
        "ripple_1_cos_0": 0.3,
        "ripple_1_cos_3": -0.2,
        "ripple_1_sin_1": 0.5,
        "ripple_1_sin_2": 0.1,
        "ripple_3_count": 2.0,
        "ripple_3_sin_0": -0.4,
        "network_1_weight": 0.6,
        "network_1_position": 1.3,
        "network_1_speed": -0.7,
        "network_1_bias": 0.2,
        "network_4_weight": -0.9,
        "network_4_speed": 2.1,
    },
)
SMOOTH = dataclasses.replace(JOINT, terms={**JOINT.terms, "friction_speed": 0.4})
STATES = [(0.9, 0.8), (-0.6, -0.5), (0.1, 0.0)]


def sprung(robot: lw.Robot) -> lw.Robot:
    """A robot with a spring of its own at every second joint."""
    given = {}
    for k, name in enumerate(robot.joint_names[::2]):
        given |= {f"{name}.stiffness": 3.0 + k, f"{name}.spring_reference": 0.2 - 0.3 * k}
    return robot.with_parameters(given)


@pytest.fixture(scope="module")
def robot():
    return sprung(lw.load("puma560"))


@pytest.fixture(scope="module")
def state(robot):
    return np.random.default_rng(3).normal(size=(3, robot.dof))


def springs(robot: lw.Robot, q: np.ndarray) -> np.ndarray:
    """k (q − q₀), from the model's numbers alone."""
    numbers = np.array([[j.number("stiffness"), j.number("spring_reference")] for j in robot.moving_joints])
    return numbers[:, 0] * (q - numbers[:, 1])


# -- each law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", joint_laws.LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("joint", [JOINT, SMOOTH], ids=["jumps", "smooth"])
@pytest.mark.parametrize(("q", "qd"), STATES[:2])
def test_slopes_and_energy_of_a_law_are_derivatives(law, joint, q, qd):
    h = 1e-6
    by_q = (law.torque(joint, q + h, qd) - law.torque(joint, q - h, qd)) / (2 * h)
    by_qd = (law.torque(joint, q, qd + h) - law.torque(joint, q, qd - h)) / (2 * h)
    assert law.by_q(joint, q, qd) == pytest.approx(by_q, abs=FINITE_DIFFERENCES)
    assert law.by_qd(joint, q, qd) == pytest.approx(by_qd, abs=FINITE_DIFFERENCES)
    if not law.dissipates:
        power = (law.energy(joint, q + h) - law.energy(joint, q - h)) / (2 * h)
        assert law.torque(joint, q, qd) == pytest.approx(power, abs=FINITE_DIFFERENCES)


@pytest.mark.parametrize("law", joint_laws.LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("joint", [JOINT, SMOOTH], ids=["jumps", "smooth"])
@pytest.mark.parametrize(("q", "qd"), STATES)
def test_columns_times_coefficients_are_the_torque(law, joint, q, qd):
    qdd = 0.6
    total = sum(law.number(joint, name) * law.column(name, joint, q, qd, qdd) for name in law.labels([joint]))
    rotor = joint.rotor_inertia * qdd if law.name == "rotor_inertia" else 0.0
    assert total == pytest.approx(law.torque(joint, q, qd) + rotor, abs=ROUND_OFF)


@pytest.mark.parametrize("law", [law for law in joint_laws.LAWS if not law.of_load], ids=lambda law: law.name)
@pytest.mark.parametrize("joint", [JOINT, SMOOTH], ids=["jumps", "smooth"])
def test_friction_brakes_and_what_jumps_has_limits(law, joint):
    for q, qd in STATES:
        power = law.torque(joint, q, qd) * qd
        if law.dissipates and law.brakes:
            assert power >= 0.0
            assert (power > 0.0) == (qd != 0.0)
        if law.jumps:
            for speed in (abs(qd) + 1.0, -abs(qd) - 1.0):
                forward, backward = law.limits(joint, speed)
                expected = (
                    forward * direction(joint, speed) if speed > 0 else backward * direction(joint, speed)
                )
                assert law.torque(joint, q, speed) == pytest.approx(expected, rel=ROUND_OFF)


@pytest.mark.parametrize("name", joint_laws.settable())
def test_every_number_can_be_read_back(name):
    changed = joint_laws.changed(JOINT, name, 0.123)
    assert changed.number(name) == 0.123
    others = [n for n in joint_laws.settable() if not n.startswith(name) and not name.startswith(n)]
    assert [changed.number(n) for n in others] == [JOINT.number(n) for n in others]


def test_an_unknown_term_is_refused():
    with pytest.raises(lw.UnknownNameError, match="no term 'stifness'; did you mean 'stiffness'"):
        dataclasses.replace(JOINT, terms={"stifness": 1.0})


@pytest.mark.parametrize(
    ("terms", "message"),
    [({"stiffness": np.nan}, "stiffness nan is not finite"), ({"spring_reference": np.inf}, "reference inf")],
)
def test_numbers_that_cannot_be_are_refused(terms, message):
    robot = lw.load("two_link")
    joints = [dataclasses.replace(joint, terms=terms) if joint.moves else joint for joint in robot.joints]
    with pytest.raises(lw.ModelError, match=message):
        lw.Robot("r", robot.links, joints)


# -- springs through the functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["newton_euler", "boundary_value", "gibbs_appell", "compound_link"])
@pytest.mark.parametrize("friction", [True, False])
def test_inverse_dynamics_with_springs(robot, state, algorithm, friction):
    plain = lw.load("puma560").inverse_dynamics(*state, algorithm=algorithm, friction=friction)
    found = robot.inverse_dynamics(*state, algorithm=algorithm, friction=friction)
    np.testing.assert_allclose(found, plain + springs(robot, state[0]), rtol=ROUND_OFF, atol=ROUND_OFF)


@pytest.mark.parametrize(
    "algorithm", ["kalman", "compound_link", "conjugate_gradient", "preconditioned_conjugate_gradient"]
)
def test_forward_dynamics_undoes_inverse_dynamics(robot, state, algorithm):
    q, qd, qdd = state
    tau = robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau, algorithm=algorithm), qdd, rtol=1e-8)


def test_the_equation_of_motion_adds_up(robot, state):
    q, qd, qdd = state
    g, c, b = robot.gravity_torques(q), robot.velocity_torques(q, qd), robot.bias_torques(q, qd)
    np.testing.assert_allclose(g, lw.load("puma560").gravity_torques(q) + springs(robot, q), rtol=ROUND_OFF)
    np.testing.assert_allclose(g, robot.gravity_torques(q, algorithm="newton_euler"), rtol=1e-10)
    np.testing.assert_allclose(b, c + g, rtol=1e-10)
    tau = robot.mass_matrix(q) @ qdd + b
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd, friction=False), tau, rtol=1e-10)


def test_gravity_torques_are_the_gradient_of_the_potential_energy(robot, state):
    q, h = state[0], 1e-6
    steps = h * np.eye(robot.dof)
    gradient = (robot.potential_energy(q + steps) - robot.potential_energy(q - steps)) / (2 * h)
    np.testing.assert_allclose(robot.gravity_torques(q), gradient, atol=1e-6)


def test_derivatives_with_springs(robot, state):
    q, qd, qdd = state
    h = 1e-6
    steps = h * np.eye(robot.dof)
    by_q, by_qd, M = robot.inverse_dynamics_derivatives(q, qd, qdd)
    expected = (robot.inverse_dynamics(q + steps, qd, qdd) - robot.inverse_dynamics(q - steps, qd, qdd)) / (
        2 * h
    )
    np.testing.assert_allclose(by_q, expected.T, atol=1e-5)
    expected = (robot.inverse_dynamics(q, qd + steps, qdd) - robot.inverse_dynamics(q, qd - steps, qdd)) / (
        2 * h
    )
    np.testing.assert_allclose(by_qd, expected.T, atol=1e-5)
    np.testing.assert_allclose(M, robot.mass_matrix(q), rtol=1e-10)
    tau = robot.inverse_dynamics(q, qd, qdd)
    found = robot.forward_dynamics_derivatives(q, qd, tau)[0]
    expected = (robot.forward_dynamics(q + steps, qd, tau) - robot.forward_dynamics(q - steps, qd, tau)) / (
        2 * h
    )
    np.testing.assert_allclose(found, expected.T, rtol=1e-5, atol=1e-4)


def test_the_regressor_has_columns_for_the_springs_a_robot_has(robot, state):
    plain = lw.load("puma560")
    assert not any("stiffness" in label for label in plain.parameter_labels)
    assert robot.parameter_labels[-6:] == tuple(f"{name}.stiffness" for name in robot.joint_names)
    tau = robot.regressor(*state) @ robot.parameters
    np.testing.assert_allclose(tau, robot.inverse_dynamics(*state), rtol=1e-10)
    again = plain.with_parameters(dict(zip(robot.parameter_labels, robot.parameters, strict=True)))
    assert [j.number("stiffness") for j in again.joints] == [j.number("stiffness") for j in robot.joints]


def test_springs_as_run_time_parameters(robot, state):
    """Also on a robot that has none."""
    name = robot.joint_names[1]
    labels = (f"{name}.stiffness", f"{name}.spring_reference")
    for start in (robot, lw.load("puma560")):
        kernel = start.kernel("inverse_dynamics", inputs=labels)
        changed = start.with_parameters(dict(zip(labels, (7.0, 0.3), strict=True)))
        found = kernel(*state, np.array([7.0]), np.array([0.3]))
        np.testing.assert_allclose(found, changed.inverse_dynamics(*state), rtol=1e-10)


def _parts(model) -> dict:
    return {"name": model.name, "links": model.links, "joints": model.joints, "gravity": model.gravity}


def test_machine_code_has_the_bits_of_the_interpreter(robot, state):
    for name in ("inverse_dynamics", "potential_energy"):
        kernel = robot.kernel(name)
        given = state[: len(kernel.program().inputs)]
        assert (interpret.run(kernel.program(), *given)[0] == kernel(*given)).all()


def test_a_robot_without_springs_keeps_its_program(state):
    plain = lw.load("puma560")
    none = plain.with_parameters({f"{plain.joint_names[0]}.spring_reference": 0.5})
    for name in ("inverse_dynamics", "forward_dynamics", "potential_energy", "gravity_torques"):
        assert none.kernel(name).operations == plain.kernel(name).operations


# -- files ------------------------------------------------------------------------------------------------------------


def test_springs_in_toml_and_urdf(robot, tmp_path):
    for ending in ("toml", "urdf"):
        lw.save(robot, tmp_path / f"arm.{ending}")
        again = lw.load(tmp_path / f"arm.{ending}")
        assert [dict(j.terms) for j in again.moving_joints] == [dict(j.terms) for j in robot.moving_joints]


def test_springs_of_a_chain_in_toml():
    text = b"""
name = "one"
convention = "mdh"
[[joint]]
name = "j"
type = "prismatic"
mass = 2.0
stiffness = 50.0
spring_reference = 0.1
"""
    joint = read_toml(text, "one.toml").moving_joints[0]
    assert dict(joint.terms) == {"stiffness": 50.0, "spring_reference": 0.1}


def test_a_bad_spring_in_a_file_is_named():
    text = b'name = "r"\nconvention = "mdh"\n[[joint]]\nname = "j"\nmass = 1.0\nstiffness = "hard"\n'
    with pytest.raises(lw.ModelError, match="stiffness"):
        read_toml(text, "r.toml")
    urdf = b"""<robot name="r" xmlns:linkwise="urn:linkwise:urdf:1"><link name="a"/><link name="b"/>
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/>
      <linkwise:joint stiffness="soft"/></joint></robot>"""
    with pytest.raises(lw.ModelError, match="stiffness"):
        read_urdf(urdf, "r.urdf")


MJCF = """
<mujoco><compiler angle="{angle}"/><option><flag spring="{flag}"/></option><default><joint damping="0.3"/></default>
<worldbody><body name="a" pos="0 0 1">
  <joint name="j1" type="hinge" axis="0 1 0" stiffness="5" springref="{rest}" ref="{ref}"/>
  <inertial pos="0.2 0 0.1" mass="2" diaginertia="0.02 0.03 0.04"/>
  <body name="b" pos="0.4 0 0"><joint name="j2" type="slide" axis="1 0 0" stiffness="80" springref="0.15" ref="-0.1"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    <body name="c" pos="0.1 0 0.2"><joint name="j3" type="hinge" axis="1 1 0"/>
      <inertial pos="0 0.1 0" mass="0.5" diaginertia="0.01 0.02 0.02"/></body></body></body></worldbody></mujoco>
"""


@pytest.mark.parametrize("flag", ["enable", "disable"])
@pytest.mark.parametrize(("angle", "rest", "ref"), [("degree", "40", "25"), ("radian", "0.7", "0.4")])
def test_springs_of_mjcf_are_mujocos(angle, rest, ref, flag, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = MJCF.format(angle=angle, rest=rest, ref=ref, flag=flag)
    path = tmp_path / "sprung.xml"
    path.write_text(text)
    robot = lw.load(path)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    start = None
    for _ in range(5):
        q, qd, qdd = rng.normal(size=(3, 3))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(
            robot.inverse_dynamics(q, qd, qdd), data.qfrc_inverse, rtol=1e-10, atol=1e-10
        )
        passive = robot.bias_torques(q, qd) - data.qfrc_bias  # springs stand on the other side there
        np.testing.assert_allclose(passive, -data.qfrc_spring, atol=1e-10)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(
            robot.forward_dynamics(q, qd, np.zeros(3)), data.qacc, rtol=1e-8, atol=1e-8
        )
        difference = robot.potential_energy(q) - data.energy[0]
        start = difference if start is None else start
        assert difference == pytest.approx(start, abs=1e-10)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('stiffness="3 1"', "only linear springs"),
        ('stiffness="3" springyield="0.1"', "springyield"),
        ('springdamper="1 0"', "springdamper"),
        ('stiffness="much"', "stiffness"),
    ],
)
def test_other_springs_of_mjcf_are_refused(attributes, message, tmp_path):
    path = tmp_path / "odd.xml"
    path.write_text(
        f'<mujoco><worldbody><body><joint name="j" {attributes}/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(lw.ModelError, match=message):
        lw.load(path)


def test_a_negative_stiffness_is_a_warning(tmp_path):
    path = tmp_path / "odd.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j" stiffness="-2"/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    with pytest.warns(lw.ModelWarning, match="stiffness -2 is negative: it would push the joint away"):
        lw.load(path)


# -- simulation and control -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def oscillator():
    """A mass of 2 kg on a spring of 50 N/m."""
    text = b'name = "o"\nconvention = "mdh"\ngravity = [0.0, 0.0, 0.0]\n[[joint]]\nname = "j"\ntype = "prismatic"\n'
    text += b"mass = 2.0\nstiffness = 50.0\nspring_reference = 0.1\n"
    model = read_toml(text, "o.toml")
    return lw.Robot(**_parts(model))


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
def test_a_mass_on_a_spring_swings(oscillator, integrator):
    found = simulate(
        oscillator, control.Passive(oscillator), duration=2.0, step=1e-3, q=[0.4], integrator=integrator
    )
    exact = 0.1 + 0.3 * np.cos(5.0 * found.t)
    np.testing.assert_allclose(found.q[:, 0], exact, atol=1e-9 if integrator == "rk4" else 1e-3)
    if integrator == "rk4":
        np.testing.assert_allclose(found.energy(), found.energy()[0], rtol=1e-9)
    adaptive = simulate_adaptive(oscillator, duration=2.0, q=[0.4])
    assert adaptive.q[-1, 0] == pytest.approx(0.1 + 0.3 * np.cos(10.0), abs=1e-8)


def test_controllers_know_the_springs(robot):
    start, end = np.zeros(6), np.full(6, 0.3)
    move = motion.quintic(start, end, 0.5)
    for law in (
        control.ComputedTorque(robot, control.Gains.from_frequency(10.0), torque_limits=False),
        control.FeedForward(robot, torque_limits=False),
    ):
        at = [part for part in move.at(0.2)]
        tau = law.kernel(1e-3)(at[0], at[1], *at)
        np.testing.assert_allclose(tau, robot.inverse_dynamics(*at), rtol=1e-9)
    hold = control.GravityPD(robot, control.Gains(10.0, 1.0), torque_limits=False).kernel(1e-3)
    zero = np.zeros(6)
    np.testing.assert_allclose(hold(end, zero, end, zero, zero), robot.gravity_torques(end), rtol=1e-10)


def test_the_two_rate_controller_knows_the_springs(robot):
    q = np.full(6, 0.2)
    _, gravity = interpret.run(TwoRatePrograms(robot).inertia, q)
    np.testing.assert_allclose(gravity, robot.gravity_torques(q), rtol=1e-10)
