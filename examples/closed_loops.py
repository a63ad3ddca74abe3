"""What examples with closed loops share: rods, a swing of the motors, and a report of how well loops stay closed."""

import time

import numpy as np

from linkwise import Inertia, Robot, Transform
from linkwise.simulate import simulate

DURATION, STEP = 10.0, 1e-3
CLOSED = 1e-8  # [m]


def rod(length: float, mass: float, along: int) -> Inertia:
    """A uniform rod from the frame's origin along one of its axes."""
    centre, moments = np.zeros(3), np.full(3, mass * length**2 / 12)
    centre[along], moments[along] = length / 2, 1e-3 * mass * abs(length)
    return Inertia.from_com(mass, centre, moments)


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> Transform:
    return Transform.from_rpy((x, y, z), (0.0, 0.0, yaw))


def swung(robot: Robot, q: np.ndarray, stiffness: float, amplitude: float):
    """Ten seconds in which the motors swing about a position, by PD control around the torques that hold it."""
    motors = np.array([name not in robot.passive for name in robot.joint_names])
    hold = robot.inverse_dynamics(q, np.zeros(robot.dof), np.zeros(robot.dof))
    phases = np.arange(motors.sum())

    def law(t, q_now, qd, reference):
        swing = amplitude * (1.0 - np.cos(2.0 * t)) * np.cos(phases)
        tau = hold.copy()
        tau[motors] -= stiffness * (q_now[motors] - q[motors] - swing) + 0.1 * stiffness * qd[motors]
        return tau

    return simulate(robot, law, duration=DURATION, step=STEP, control_period=4 * STEP, q=q, every=10)


def report(found, began: float) -> None:
    robot = found.robot
    worst = float(np.abs(found.constraint_errors()).max())
    rank = np.linalg.matrix_rank(robot.constraint_jacobian(found.q[0]), tol=1e-9)
    rows = f"{robot.constraint_rows} constraint rows of rank {rank}"
    print(f"{robot.name}: {robot.dof} joint coordinates, {rows}, mobility {robot.dof - rank}")
    print(
        f"  fastest joint {np.abs(found.qd).max():.2f} rad/s or m/s, largest loop-closure error {worst:.1e} m"
    )
    print(f"  {DURATION:g} s simulated in {time.perf_counter() - began:.1f} s, compiling included")
    assert worst < CLOSED
    assert not found.unmet
