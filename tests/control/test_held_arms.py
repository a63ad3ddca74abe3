"""Arms whose joints something holds while a law runs, as brakes do, or a person who moves them."""

import numpy as np

import linkwise as lw
from linkwise.control import named

PERIOD = 2e-3


def largest_torque(robot, law, kernel, seed, size):
    """Over 0.8 s, of joints that move by ``size`` of their range whatever the law sends."""
    rng, n = np.random.default_rng(seed), robot.dof
    low, high = np.maximum(robot.limits.lower, -1.5), np.minimum(robot.limits.upper, 1.5)
    middle, phase = low + (high - low) * rng.uniform(0.2, 0.8, n), rng.uniform(0.0, 6.0, n)
    target, still, memory, most = (
        middle + 0.02 * rng.normal(size=n),
        np.zeros(n),
        np.zeros(law.memory_size),
        0.0,
    )
    for k in range(400):
        angle, swing = 3.0 * k * PERIOD + phase, size * (high - low)
        q, qd = middle + swing * np.sin(angle), 3.0 * swing * np.cos(angle)
        tau, memory = kernel(q, qd, target, still, still, memory)
        most = max(most, np.abs(tau).max())
    return most


def test_admittance_without_a_sensor_is_stable_where_joints_are_held():
    """The observer sees the law's own torques as a wrench there. The virtual body accelerated by the ratio of the
    tool's inertia to its own, and torques of a UR10e grew in each of eight positions, to 10³⁸ N·m."""
    for name in ("ur10e", "stanford"):
        robot = lw.load(name)
        law = named("cartesian_admittance", robot, frequency=10.0, torque_limits=False)
        kernel = law.kernel(PERIOD)
        for seed in range(4):
            gravity = np.abs(robot.gravity_torques(robot.random(np.random.default_rng(0), 64))).max()
            assert largest_torque(robot, law, kernel, seed, 0.0) < 5.0 * gravity + 50.0, (name, seed)
            assert largest_torque(robot, law, kernel, seed, 0.05) < 20.0 * gravity + 200.0, (name, seed)
