"""Task-space laws on numbers, over random robots: formulas, Pinocchio's terms, singular positions, 180°."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import control
from linkwise.algorithms import centroidal, coordinates, coupling, kinematics
from linkwise.control.controller import Reference
from linkwise.control.task_space import law as laws
from linkwise.control.task_space.admittance import rotation_of, turned_further
from linkwise.control.task_space.avoidance import limit_torques, limited_coordinates, manipulability_gradient
from linkwise.control.task_space.hand_guiding import compensation
from linkwise.control.task_space.impedance import spring_wrench
from linkwise.control.task_space.matrices import critical_damping, inverse_square_root
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.control.task_space.tool import Tool, acceleration_without_torques
from linkwise.functions.table import mechanism_of
from strategies import robots, states_of

PERIOD = 1e-3
EXACT = 1e-8  # round-off of small formulas, relative to the largest number
NAMES = (
    "cartesian_impedance",
    "operational_space",
    "cartesian_admittance",
    "hybrid_force_motion",
    "hand_guiding",
)
FEW = settings(max_examples=8, deadline=None)


def torques(
    law: control.Controller, q, qd, q_d=None, qd_d=None, qdd_d=None, memory=None, **other
) -> np.ndarray:
    """The law on plain numbers."""
    n = law.robot.dof
    still = [0.0] * n
    reference = Reference(
        list(map(float, q if q_d is None else q_d)),
        still if qd_d is None else list(map(float, qd_d)),
        still if qdd_d is None else list(map(float, qdd_d)),
    )
    gains = {name: [float(x) for x in values] for name, values in law.gains.items()} | other
    memory = [0.0] * law.memory_size if memory is None else memory
    found = law.control(
        law.links(), gains, list(map(float, q)), list(map(float, qd)), reference, memory, PERIOD
    )
    return np.array(found[0], dtype=float)


class State:
    """A robot in a state, by the algorithms on plain numbers: nothing is compiled."""

    def __init__(self, robot: lw.Robot, q, qd=None, frame="tool"):
        links = mechanism_of(robot)
        q, qd = list(map(float, q)), [0.0] * robot.dof if qd is None else list(map(float, qd))
        at, rates, place = (
            coupling.expanded(links, q, positions=True),
            coupling.expanded(links, qd),
            robot.locate(frame),
        )
        self.pose = np.array(kinematics.pose(links, at, *place), dtype=float)
        self.J = np.array(
            coupling.reduced(links, kinematics.jacobian(links, at, *place), (False, True)), dtype=float
        )
        self.rate = np.array(centroidal.jacobian_rate(links, at, rates, *place), dtype=float)
        M, g = coordinates.coefficients(links, q)
        self.M, self.g = np.array(M, dtype=float), np.array(g, dtype=float)
        self.bias = np.array(
            coordinates.inverse_dynamics(links, q, qd, [0.0] * robot.dof, friction=False), dtype=float
        )


def turn(axis, angle) -> np.ndarray:
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    S = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * S + (1 - np.cos(angle)) * (S @ S)


def stiffnesses(rng) -> np.ndarray:
    """A 6×6 stiffness without structure."""
    A = rng.normal(size=(6, 6)) * np.array([2.0] * 3 + [20.0] * 3)[:, None]
    return A @ A.T


# -- orientation ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_moment_is_the_slope_of_the_potential_and_does_not_jump_at_180_degrees(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    K = A @ A.T + 0.1 * np.eye(3)
    size = np.linalg.norm(K)
    E = turn(rng.normal(size=3), rng.uniform(0, np.pi))
    moment = np.array(RotationError.of(E.tolist()).moment(K.tolist()))
    h = 1e-6
    for axis in np.eye(3):
        ahead, behind = (
            RotationError.of((turn(axis, s * h) @ E).tolist()).potential(K.tolist()) for s in (1, -1)
        )
        assert abs((ahead - behind) / (2 * h) - axis @ moment) < 1e-7 * size
    a = rng.normal(size=3)
    angles = np.linspace(np.pi - 0.5, np.pi + 0.5, 401)
    along = np.array([RotationError.of(turn(a, x).tolist()).moment(K.tolist()) for x in angles])
    steps = np.linalg.norm(np.diff(along, axis=0), axis=1)
    # The slope is at most 2/δ times K: a jump would be a step that does not shrink with the spacing.
    assert steps.max() < 10.0 * size * (angles[1] - angles[0])
    values = [
        RotationError.of(turn(a, x).tolist()).potential(K.tolist()) for x in np.linspace(0.01, np.pi, 60)
    ]
    assert (np.diff(values) > 0).all()  # no other position of rest on the way


def test_small_turns_are_measured_as_angles():
    for angle in (1e-6, 1e-3, 0.1):
        found = RotationError.of(turn([1.0, 2.0, 3.0], angle).tolist()).vector()
        assert np.linalg.norm(found) == pytest.approx(angle, rel=0.2 * angle**2 + 1e-9)
    assert np.linalg.norm(RotationError.of(turn([0, 1, 0], np.deg2rad(120)).tolist()).vector()) > 1.5
    assert np.linalg.norm(RotationError.of(np.diag([1.0, -1.0, -1.0]).tolist()).vector()) == 0.0


# -- damping ----------------------------------------------------------------------------------------------------------


def test_inverse_square_root_for_every_condition():
    rng = np.random.default_rng(3)
    for spread in (1.0, 1e2, 1e4, 1e6):
        Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
        A = (Q * np.geomspace(1e-3, 1e-3 * spread, 6)) @ Q.T
        Y = np.array(inverse_square_root((0.5 * (A + A.T)).tolist()))
        np.testing.assert_allclose(Y @ A @ Y, np.eye(6), atol=1e-14 * spread + 1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.7, 1.0]))
@settings(max_examples=25, deadline=None)
def test_every_mode_has_the_damping_ratio(seed, ratio):
    """The eigenvalues of Λ s² + D s + K are those of modes with the ratio ζ, for full matrices."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 6))
    G, K = A @ A.T + 0.05 * np.eye(6), stiffnesses(rng) + 1.0 * np.eye(6)
    D = np.array(critical_damping(K.tolist(), G.tolist(), ratio))
    np.testing.assert_allclose(D, D.T)
    frequencies = np.sqrt(np.linalg.eigvals(G @ K).real)
    if frequencies.max() > 100 * frequencies.min():
        return  # beyond what the floor promises
    if ratio == 1.0:  # double roots: compare traces instead, eigenvalues are ill-conditioned
        assert np.trace(G @ D) == pytest.approx(2 * frequencies.sum(), rel=5e-3)
        return
    roots = np.linalg.eigvals(np.block([[np.zeros((6, 6)), np.eye(6)], [-G @ K, -G @ D]]))
    np.testing.assert_allclose(-roots.real / np.abs(roots), ratio, rtol=1e-2)


def test_damping_without_stiffness_or_mobility_is_bounded():
    rng = np.random.default_rng(0)
    for k in range(7):
        A = rng.normal(size=(6, k))
        for K in (np.diag([0.0, 1.0, 2.0, 300.0, 0.0, 500.0]), np.zeros((6, 6)), stiffnesses(rng)):
            D = np.array(critical_damping(K.tolist(), (A @ A.T).tolist(), 1.0), dtype=float)
            assert np.isfinite(D).all()
            assert np.linalg.eigvalsh(D).min() > -1e-6 * max(np.abs(D).max(), 1e-300)
            assert np.abs(D[:, np.diag(K) == 0]).max(initial=0.0) == 0.0


# -- laws -------------------------------------------------------------------------------------------------------------


@given(robots(min_dof=1, max_dof=8, friction=False, rotor=True))
@FEW
def test_impedance_is_a_spring_and_damper_in_the_axes_that_were_asked_for(robot):
    rng = np.random.default_rng(robot.dof)
    K, D = stiffnesses(rng), stiffnesses(rng)
    states = states_of(robot, 1, 2)
    q, qd = states.q
    for axes in ("base", "tool"):
        spring = control.CartesianImpedance(
            robot, "tool", K, D, axes=axes, posture=0.0, posture_damping=0.0, torque_limits=False
        )
        state = State(robot, q, qd)
        target, J = state.pose, state.J
        shift = np.array([0.02, -0.01, 0.015])
        small = 1e-5 * rng.normal(size=3)
        R, p = target[:3, :3] @ turn(small, np.linalg.norm(small)).T, target[:3, 3] - shift
        moved = np.vstack([np.column_stack([R, p]), [0, 0, 0, 1]])
        law = control.CartesianImpedance(
            robot,
            "tool",
            K,
            D,
            axes=axes,
            target=moved,
            posture=0.0,
            posture_damping=0.0,
            torque_limits=False,
        )
        A = np.eye(3) if axes == "base" else R
        B = np.eye(3) if axes == "base" else target[:3, :3]  # the damper turns with the tool
        T, U = np.kron(np.eye(2), A), np.kron(np.eye(2), B)
        x = np.concatenate([target[:3, :3] @ small, shift])  # from the target to the tool, in base axes
        wrench = -T @ K @ T.T @ x - U @ D @ U.T @ (J @ qd)
        expected = state.g + J.T @ wrench
        scale = np.abs(expected).max() + np.abs(K).max() * 1e-3
        np.testing.assert_allclose(torques(law, q, qd), expected, atol=1e-5 * scale)
        np.testing.assert_allclose(
            torques(spring, q, 0 * qd), state.g, atol=EXACT * (1 + np.abs(expected).max())
        )


@given(robots(min_dof=1, max_dof=8, friction=False, rotor=True))
@FEW
def test_what_impedance_adds_takes_energy_out_of_every_motion(robot):
    """Power of the law's torques, less gravity's, is that of the spring's potential, less damping: also where it is
    singular."""
    rng = np.random.default_rng(robot.dof)
    K = stiffnesses(rng)
    states = states_of(robot, 2, 4)
    law = control.CartesianImpedance(robot, "tool", K, posture=0.0, torque_limits=False)
    for q, qd, q_d in zip([*states.q, np.zeros(robot.dof)], [*states.qd, states.qd[0]], [*states.q[::-1], states.q[0]],
                          strict=True):  # fmt: skip
        tau = torques(law, q, qd, q_d)
        still = torques(law, q, 0 * qd, q_d)
        taken = (tau - still) @ qd
        assert taken <= 1e-9 * (1 + np.abs(tau).max()) * (1 + np.abs(qd).max())


@given(robots(min_dof=7, max_dof=9, tree=False, friction=False, rotor=True))
@FEW
def test_the_posture_does_not_move_the_tool_and_operational_space_is_exact(robot):
    states = states_of(robot, 3, 3)
    usual = control.usual_inertia(robot, "tool")
    for q, qd, qdd in zip(states.q, states.qd, states.qdd, strict=True):
        state = State(robot, q, qd)
        J, M = state.J, state.M
        G = J @ np.linalg.solve(M, J.T)
        law = control.OperationalSpace(robot, "tool", torque_limits=False)
        # what is left of the posture's acceleration of the tool: E Λ of it
        least = np.diag(law.least)
        left = np.linalg.norm(least @ np.linalg.inv(G + least), 2)
        if left > 0.05:
            continue  # singular
        rng = np.random.default_rng(0)
        q_d = q + 0.1 * rng.normal(size=robot.dof)
        tau = torques(law, q, qd, q_d, qd_d=0.5 * qd, qdd_d=qdd)
        found = J @ np.linalg.solve(M, tau - state.bias) + state.rate
        planned = State(robot, q_d, 0.5 * qd)
        there, R = planned.pose, state.pose
        e = [*RotationError.of((R[:3, :3] @ there[:3, :3].T).tolist()).vector(), *(R[:3, 3] - there[:3, 3])]
        J_d = planned.J
        wanted = J_d @ qdd + planned.rate
        wanted = wanted - 20.0 * (J @ qd - J_d @ (0.5 * qd)) - 100.0 * np.array(e)
        v = state.rate + J @ (qdd - 10.0 * 0.5 * qd - 25.0 * (q - q_d))
        scale = np.abs(wanted - v).max()
        np.testing.assert_allclose(
            found, wanted, atol=(2 * left * np.sqrt(max(usual) / min(usual)) + 1e-6) * scale + 1e-6
        )
        tool = Tool.at(law.links(), q.tolist(), qd.tolist(), law.located)
        null = np.array(laws.null_torques(tool, law.inertia(tool), qdd.tolist()))
        moved, free = J @ np.linalg.solve(M, null), J @ qdd
        assert (
            np.abs(moved).max()
            <= (2 * left * np.sqrt(max(usual) / min(usual)) + 1e-9) * np.abs(free).max() + 1e-9
        )


@given(robots(min_dof=1, max_dof=8))
@FEW
def test_all_laws_are_finite_and_continuous_in_singular_positions(robot):
    """At q = 0, at random positions, and with targets that cannot be reached."""
    states = states_of(robot, 4, 3)
    for name in NAMES:
        options = {"frame": "tool", "torque_limits": False}
        law = (
            control.named(name, robot, frequency=10.0, **options)
            if control.CONTROLLERS[name].feedback
            else control.named(name, robot, **options)
        )
        for q in (np.zeros(robot.dof), *states.q):
            near = [torques(law, q + h, 0.1 * states.qd[0], states.q[1]) for h in (0.0, 1e-7)]
            assert np.isfinite(near).all(), name
            assert np.abs(near[1] - near[0]).max() <= 1e-3 * (1 + np.abs(near[0]).max()), name


@given(robots(min_dof=1, max_dof=7))
@FEW
def test_the_way_out_of_singular_positions_is_the_slope_of_the_manipulability(robot):
    law = control.OperationalSpace(robot, "tool", torque_limits=False)
    q = states_of(robot, 5).q

    def w(q):
        J = State(robot, q).J
        return 0.5 * np.linalg.slogdet(J @ J.T + 1e-4 * np.eye(6))[1]

    found = np.array(manipulability_gradient(law.links(), q.tolist(), law.located), dtype=float)
    h = 1e-5
    expected = [(w(q + h * e) - w(q - h * e)) / (2 * h) for e in np.eye(robot.dof)]
    np.testing.assert_allclose(found, expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_terms_agree_with_pinocchio():
    """Jacobian, its rate, mobility and task inertia of the laws on all bundled robots and random ones."""
    pin = pytest.importorskip("pinocchio")
    from linkwise.bench.peers.built import pinocchio_model

    arms = [lw.load(name) for name in lw.robots()] + [
        lw.random_robot(seed, 7, rotor=True) for seed in range(6)
    ]
    for robot in arms:
        try:
            model = pinocchio_model(pin, robot)
        except RuntimeError:  # a reduced set of parameters, which describes no body
            continue
        model.armature = np.array([joint.rotor_inertia for joint in robot.moving_joints])
        data, frame = model.createData(), robot.moving_joints[-1].child
        rng = np.random.default_rng(1)
        q, qd = robot.random(rng), rng.normal(size=robot.dof)
        law = control.OperationalSpace(robot, frame, torque_limits=False)
        tool = Tool.at(law.links(), q.tolist(), qd.tolist(), law.located)
        pin.computeJointJacobiansTimeVariation(model, data, q, qd)
        pin.forwardKinematics(model, data, q, qd, 0 * qd)
        where = pin.LOCAL_WORLD_ALIGNED
        J = pin.getJointJacobian(model, data, robot.dof, where)[[3, 4, 5, 0, 1, 2]]
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        acceleration = pin.getClassicalAcceleration(model, data, robot.dof, where).vector[[3, 4, 5, 0, 1, 2]]
        # Pinocchio's joint frames have other axes, but the same origins as the links: compare base axes
        np.testing.assert_allclose(tool.J, J, atol=1e-12)
        np.testing.assert_allclose(tool.M, M, atol=1e-12 * (1 + np.abs(M).max()))
        G = J @ np.linalg.solve(M, J.T)
        np.testing.assert_allclose(tool.mobility, G, atol=1e-11 * np.abs(G).max())
        np.testing.assert_allclose(
            law.inertia(tool), np.linalg.inv(G + np.diag(law.least)), rtol=1e-6, atol=1e-9
        )
        bias = acceleration_without_torques(law.links(), q.tolist(), qd.tolist(), law.located)
        np.testing.assert_allclose(bias, acceleration, atol=1e-11 * (1 + np.abs(acceleration).max()))


def test_a_law_says_what_cannot_be_right():
    arm = lw.load("panda")
    wrong = np.eye(6)
    wrong[0, 1] = 1.0
    for arguments, message in (
        ({"stiffness": -1.0}, "stiffness: expected finite numbers from 0 on"),
        ({"stiffness": [1.0, 2.0]}, "stiffness: expected one number, 6 or a 6×6 matrix"),
        ({"stiffness": wrong}, "stiffness: expected a symmetric matrix"),
        ({"damping": -np.eye(6) - 0.1 * np.ones((6, 6))}, "damping: expected a matrix without negative"),
        ({"axes": "world"}, "axes: expected one of tool, base"),
        ({"target": np.zeros((4, 4))}, "target: its first three columns are no rotation"),
        ({"frame": "base"}, "does not move"),
        ({"frame": "panda_linc8"}, "did you mean 'panda_link8'"),
    ):
        with pytest.raises((ValueError, lw.LinkwiseError), match=message):
            control.CartesianImpedance(arm, **arguments)
    with pytest.raises(ValueError, match="force: expected one of observer, input"):
        control.CartesianAdmittance(arm, force="sensor")
    with pytest.raises(ValueError, match="selection: expected numbers from 0 to 1"):
        control.HybridForceMotion(arm, selection=2.0)
    with pytest.raises(ValueError, match="walls: expected"):
        control.HandGuiding(arm, walls=[1.0, 2.0])


def test_frequencies_of_a_tool_are_one_number_or_six():
    """Seven, one for each joint, were an error of NumPy about shapes."""
    panda = lw.load("panda")
    for name in ("cartesian_impedance", "cartesian_admittance", "operational_space", "hybrid_force_motion"):
        for argument in ("frequency", "damping"):
            given = {"frequency": 10.0, argument: np.full(7, 2.0)}
            with pytest.raises(ValueError, match=f"{argument}: expected one number or 6"):
                control.named(name, panda, **given)


def test_a_spring_gives_no_energy_along_a_closed_path():
    """Any stiffness, also one that couples turns with shifts: the work around a loop of poses is zero."""
    rng, count = np.random.default_rng(0), 4000
    s = 2.0 * np.pi * np.arange(count) / count
    for seed in range(4):
        K = stiffnesses(rng)
        K[:3, 3:] = 0.2 * np.abs(K).max() * rng.normal(size=(3, 3))
        K[3:, :3] = K[:3, 3:].T
        a, b, c, d = rng.normal(size=(4, 3))
        p = np.outer(np.cos(s), a) + np.outer(np.sin(s), b)
        R = Rotation.from_rotvec(0.6 * (np.outer(np.sin(s), c) + np.outer(np.cos(2 * s), d)))
        R_d, p_d = Rotation.from_rotvec(rng.normal(size=3)).as_matrix(), rng.normal(size=3)
        after = Rotation.concatenate([R[1:], R[:1]])
        twist = np.column_stack([(after * R.inv()).as_rotvec(), np.roll(p, -1, axis=0) - p])
        for in_tool in (False, True):
            lanes = [[R.as_matrix()[:, i, j] for j in range(3)] for i in range(3)]
            felt: Any = spring_wrench(K.tolist(), lanes, list(p.T), R_d.tolist(), p_d.tolist(), in_tool)
            rows = np.stack(felt, axis=-1).reshape(-1, 2, 3)
            rows = (rows @ R_d.T if in_tool else rows).reshape(-1, 6)
            power = (0.5 * (rows + np.roll(rows, -1, axis=0)) * twist).sum(axis=1)
            assert abs(power.sum()) < 1e-5 * np.abs(power).sum(), (seed, in_tool)


@given(robots(min_dof=2, max_dof=7, friction=False, rotor=True))
@FEW
def test_axes_of_the_tool_mean_a_stiffness_that_turns_with_the_target(robot):
    """The same torques as in the axes of the base with the matrix turned, with the damping that the law chooses."""
    rng = np.random.default_rng(robot.dof)
    K = np.kron(np.eye(2), np.ones((3, 3))) * stiffnesses(rng)
    q, qd = states_of(robot, 1, 2).q
    away = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    # dampers are in the axes of the tool: they are compared where these are those of the target
    for R, speed in ((away, 0.0 * qd), (robot.pose(q, frame="tool")[:3, :3], qd)):
        target = np.eye(4)
        target[:3, :3], target[:3, 3] = R, rng.normal(size=3)
        T = np.kron(np.eye(2), R)
        rest = {"target": target, "posture": 0.0, "posture_damping": 0.0, "torque_limits": False}
        own = control.CartesianImpedance(robot, "tool", K, axes="tool", **rest)
        turned = control.CartesianImpedance(robot, "tool", T @ K @ T.T, axes="base", **rest)
        one, two = torques(own, q, speed), torques(turned, q, speed)
        np.testing.assert_allclose(one, two, atol=1e-6 * (1.0 + np.abs(two).max()))


def test_the_virtual_body_turns_about_the_axes_of_the_base():
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, step = Rotation.from_rotvec(rng.normal(size=3)), 1e-3 * rng.normal(size=3)
        x, y, z, w = first.as_quat()
        turn = turned_further([w, x, y, z], step.tolist())
        assert np.isclose(np.dot(turn, turn), 1.0)
        wanted = (Rotation.from_rotvec(step) * first).as_matrix()
        assert np.allclose(np.array(rotation_of(turn)), wanted, atol=1e-8)


def test_guiding_compensates_the_friction_of_the_direction():
    """Far above the speed over which it turns round it is the friction of inverse dynamics, forward and backward, also
    where that of the two differs; at rest it is nothing. Never does it drive a joint."""
    rng = np.random.default_rng(0)
    for name in ("puma560", "panda", "stanford"):
        robot = lw.load(name)
        joints = [replace(j, coulomb_friction=tuple(rng.uniform(1, 5, 2).tolist())) for j in robot.joints]
        robot = lw.Robot(name, robot.links, joints, gravity=robot.gravity)
        links, n = mechanism_of(robot, base_parameters=True), robot.dof
        for share in (0.3, 1.0):
            q, qd = robot.random(rng), rng.choice([-1.0, 1.0], n) * rng.uniform(1.0, 3.0, n)
            zero, weight = np.zeros(n), list(robot.gravity_torques(q))
            rubbed = robot.inverse_dynamics(q, qd, zero) - robot.inverse_dynamics(q, qd, zero, friction=False)
            eased = np.array(compensation(links, weight, list(q), list(qd), share, 1e-3), float)
            assert np.allclose(eased, share * rubbed, rtol=1e-5)
            slow = np.array(compensation(links, weight, list(q), list(1e-2 * qd), share, 1e-3), float)
            assert (slow * qd >= 0.0).all()
            assert not np.any(compensation(links, weight, list(q), [0.0] * n, share, 1e-3))


def test_a_wall_is_where_its_numbers_say():
    """Free is where normal · p ≥ offset, whatever the length of the normal."""
    arm, rng = lw.load("panda"), np.random.default_rng(4)
    walls = rng.normal(size=(5, 4))
    law = control.HandGuiding(arm, walls=walls)
    numbers = law.gains["walls"].reshape(-1, 4)
    np.testing.assert_allclose(np.linalg.norm(numbers[:, :3], axis=1), 1.0)
    points = rng.normal(size=(200, 3))
    away = points @ numbers[:, :3].T - numbers[:, 3]
    expected = (points @ walls[:, :3].T - walls[:, 3]) / np.linalg.norm(walls[:, :3], axis=1)
    np.testing.assert_allclose(away, expected)


# -- by formulas ------------------------------------------------------------------------------------------------------


def called(law, q, qd, reference=None, memory=None, **gains):
    """(torques, memory) of a law on plain numbers."""
    values = {name: np.ravel(x).tolist() for name, x in law.gains.items()} | gains
    still = [0.0] * law.robot.dof
    target = Reference(list(map(float, q)), still, still) if reference is None else reference
    kept = [0.0] * law.memory_size if memory is None else list(memory)
    return law.control(law.links(), values, list(map(float, q)), list(map(float, qd)), target, kept, PERIOD)


def blocks(R):
    return np.kron(np.eye(2), R)


@given(robots(min_dof=2, max_dof=7, friction=False))
@FEW
def test_hybrid_control_pushes_by_its_formula_along_task_axes(robot):
    """f_d + k e + ∫ − d ẋ in the selected directions, e = f_d − what the tool exerts; the integral is at most f_d."""
    rng = np.random.default_rng(robot.dof)
    state, A = states_of(robot, 3), Rotation.random(random_state=robot.dof).as_matrix()
    selection = rng.choice([0.0, 0.4, 1.0], 6)
    wanted, gain, rate, damping = rng.normal(size=(4, 6)) * np.array([[5.0], [1.0], [300.0], [4.0]])
    gain, rate, damping = np.abs(gain), np.abs(rate), np.abs(damping)
    law = control.HybridForceMotion(
        robot, "tool", selection, wanted, task_axes=A, force_gain=gain, force_rate=rate, force_damping=damping,
        force="input", torque_limits=False,
    )  # fmt: skip
    wrench, sums = rng.normal(size=6) * 3.0, rng.normal(size=6)
    tau, memory = called(law, state.q, state.qd, memory=sums, wrench=wrench.tolist())
    nothing = [0.0] * 6
    motion, _ = called(
        law,
        state.q,
        state.qd,
        force_target=nothing,
        force_gain=nothing,
        force_rate=nothing,
        force_damping=nothing,
    )
    tool = State(robot, state.q)
    J = tool.J
    exerted = -blocks(A.T) @ blocks(tool.pose[:3, :3]) @ wrench
    error = wanted - exerted
    integral = np.clip(sums + PERIOD * rate * selection * error, -np.abs(wanted), np.abs(wanted))
    chosen = selection > 0.0
    np.testing.assert_allclose(memory[:6], np.where(chosen, integral, 0.0), rtol=1e-9, atol=1e-9)
    force = selection * (wanted + gain * error + integral - damping * (blocks(A.T) @ J @ state.qd))
    expected = J.T @ blocks(A) @ force
    np.testing.assert_allclose(np.subtract(tau, motion), expected, atol=1e-8 * (1.0 + np.abs(tau).max()))


def test_springs_before_joint_limits_push_inward_and_dampers_take_energy():
    """Ranges that are wide, narrow or open at one end; the damper acts on the way out alone."""
    rng = np.random.default_rng(1)
    for name in ("panda", "stanford", "puma560"):
        robot = lw.load(name)
        ends = [
            (-2.0, 1.0),
            (0.1, 0.2),
            (-np.inf, 0.5),
            (-0.5, np.inf),
            (-0.3, 0.9),
            (-np.inf, np.inf),
            (-1.0, 2.0),
        ]
        moving = iter(ends)
        joints = []
        for joint in robot.joints:
            lower, upper = next(moving) if joint.moves else (joint.limits.lower, joint.limits.upper)
            joints.append(replace(joint, limits=replace(joint.limits, lower=lower, upper=upper)))
        robot = lw.Robot(name, robot.links, joints, gravity=robot.gravity)
        n, margin = robot.dof, 0.15
        stiffness, damping = rng.uniform(5.0, 50.0, (2, n))
        places = limited_coordinates(robot, margin)
        for _ in range(20):
            q, qd = rng.uniform(-2.5, 2.5, n), rng.normal(size=n)
            expected = np.zeros(n)
            for k in range(n):
                lower, upper = ends[k]
                inward = min(margin, 0.25 * (upper - lower))
                beyond = min(q[k] - lower - inward, 0.0) + max(q[k] - upper + inward, 0.0)
                expected[k] = -stiffness[k] * beyond
                if beyond * qd[k] > 0.0:
                    expected[k] -= damping[k] * qd[k] * min(1.0, 100.0 * abs(beyond))
            found = limit_torques(places, stiffness.tolist(), damping.tolist(), q.tolist(), qd.tolist())
            np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-9, atol=1e-9)


def test_guiding_eases_friction_up_to_its_kinetic_energy_and_its_budget():
    """Above ½ q̇ᵀMq̇ = guiding_energy, and without energy left, nothing but gravity and damping is left."""
    robot, rng = lw.load("puma560"), np.random.default_rng(2)
    law = control.HandGuiding(robot, guiding_energy=3.0, friction_energy=2.0, margin=0.0, torque_limits=False)
    for _ in range(5):
        q, qd = robot.random(rng), rng.normal(size=6)
        qd *= np.sqrt(3.0 / (0.5 * qd @ robot.mass_matrix(q) @ qd))
        bare = robot.gravity_torques(q) - law.gains["guiding_damping"] * qd
        eased = {}
        for part in (0.8, 0.999, 1.001):
            for used in (0.0, 2.0):
                tau, _ = called(law, q, np.sqrt(part) * qd, memory=[used])
                eased[part, used] = np.abs(
                    tau - (bare + (1.0 - np.sqrt(part)) * law.gains["guiding_damping"] * qd)
                ).max()
        assert eased[0.8, 0.0] > 0.1
        assert eased[0.999, 0.0] > 1e-4
        assert max(eased[1.001, 0.0], eased[0.8, 2.0]) < 1e-9
