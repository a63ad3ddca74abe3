"""Default springs for tools that turn far more easily about one axis, such as the last one of a slender wrist."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import control
from linkwise.control.controller import Reference
from linkwise.control.gains import not_too_fast
from linkwise.control.task_space.tool import FASTEST, MOST_UNEQUAL, mobilities, spring_inertia
from linkwise.simulate import Plant, Sensors, simulate

FREQUENCY = 10.0
BETWEEN = 1.5  # positions between those for which the stiffness was chosen may be so much faster


def slender(robot: lw.Robot, share: float) -> lw.Robot:
    """The arm with a last link that has only a share of its inertia, and no rotor."""
    link, joint = robot.link_names[-1], robot.joint_names[-1]
    own = zip(robot.parameter_labels, robot.parameters, strict=True)
    lighter = {label: share * value for label, value in own if label.startswith(f"{link}.") and value != 0.0}
    rotor = f"{joint}.rotor_inertia"
    return robot.with_parameters(lighter | ({rotor: 0.0} if rotor in robot.parameter_labels else {}))


def arms() -> Iterator[lw.Robot]:
    for name in ("puma560", "ur10e", "panda"):
        yield from (lw.load(name), slender(lw.load(name), 1e-2), slender(lw.load(name), 1e-4))
    yield lw.load("two_link")
    yield lw.random_robot(2, 6, joints="R")


def rates(robot: lw.Robot, law: control.CartesianImpedance, q: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """How fast motions decay by the law's damping [1/s], with the target turned away: eigenvalues of −M⁻¹ ∂τ/∂q̇."""
    n = robot.dof
    target = robot.pose(q)
    target[:3, :3] = target[:3, :3] @ Rotation.from_rotvec(turn).as_matrix()
    gains = {name: values.tolist() for name, values in law.gains.items()} | {
        "target_pose": target[:3].ravel().tolist()
    }
    lanes = list(np.column_stack([np.zeros(n), np.eye(n)]))  # q̇ = 0, then 1 for one joint after the other
    reference = Reference(q.tolist(), [0.0] * n, [0.0] * n)
    tau, _ = law.control(law.links(), gains, q.tolist(), lanes, reference, [0.0] * law.memory_size, 1e-3)
    tau = np.array([np.broadcast_to(x, n + 1) for x in tau])
    return np.linalg.eigvals(np.linalg.solve(robot.mass_matrix(q), tau[:, :1] - tau[:, 1:])).real


def test_no_motion_is_damped_much_faster_than_meant():
    """However far the tool is turned away. With 2 ms of delay more than some 200/s are unstable."""
    rng = np.random.default_rng(3)
    for robot in arms():
        law = control.CartesianImpedance(robot, target=np.eye(4), torque_limits=False)
        for q in robot.random(rng, 2):
            for angle in (0.0, 1.0, 2.0):
                axis = rng.normal(size=3)
                found = rates(robot, law, q, angle * axis / np.linalg.norm(axis))
                assert found.min() > -1e-6, (robot, angle)
                assert found.max() < BETWEEN * 2.0 * FREQUENCY * FASTEST, (robot, angle, found.max())


def test_springs_about_axes_are_not_too_unequal():
    for robot in arms():
        for axes in ("tool", "base"):
            inertia = spring_inertia(robot, None, axes)
            assert inertia[:3].max() <= 1.01 * MOST_UNEQUAL * inertia[:3].min(), robot
            fastest = np.linalg.eigvals(mobilities(robot, None, axes) * inertia).real.max()
            assert fastest <= 1.01 * FASTEST**2, (robot, axes, fastest)


def test_usual_tools_keep_their_usual_inertia():
    for name in ("puma560", "panda", "stanford"):
        robot = lw.load(name)
        np.testing.assert_array_equal(spring_inertia(robot), control.usual_inertia(robot))


def test_a_named_frequency_and_the_default_are_the_same_spring():
    robot = slender(lw.load("ur10e"), 1e-2)
    by_name = control.named("cartesian_impedance", robot, frequency=FREQUENCY)
    np.testing.assert_allclose(
        by_name.gains["stiffness"], control.CartesianImpedance(robot).gains["stiffness"]
    )
    assert by_name.gains["stiffness"][:3].min() > 1.5 * 100.0 * control.usual_inertia(robot)[:3].min()


def test_only_motions_that_are_too_fast_are_changed():
    G = np.array([np.diag([1.0, 4.0, 100.0])])
    np.testing.assert_allclose(not_too_fast(np.ones(3), G, 9.0), [1.0, 1.0, 0.09])


def test_a_light_wrist_does_not_swing_up_with_wrong_masses_noise_and_delay():
    """With the damper in the axes of the target, a light joint swung up once the tool was turned away from it."""
    robot = slender(lw.load("puma560"), 1e-4)
    law = control.CartesianImpedance(robot, torque_limits=False)
    q = np.array([0.3, -0.6, 0.5, 0.4, 0.9, 0.2])
    bodies = [label for label in robot.parameter_labels if "friction" not in label and "rotor" not in label]
    own = dict(zip(robot.parameter_labels, robot.parameters, strict=True))
    masses = {label: own[label] * np.array([[0.7], [1.3]]) for label in bodies if own[label] != 0.0}
    plant = Plant(
        robot, friction=False, sensors=Sensors(position_noise=1e-5, velocity="difference", cutoff=400.0)
    )
    start, goal = np.tile(q, (2, 1)), q + np.array([0.1, 0.1, -0.1, 0.8, -0.5, 0.8])
    found = simulate(
        plant, law, goal, duration=2.0, step=1e-3, delay=2, q=start, vary=masses, warn=False, every=20
    )
    assert np.abs(found.qd[:, -10:]).max() < 0.5
