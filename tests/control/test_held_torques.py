"""Torques are held during a sample, in which accelerations change: limits of joints are kept at a finer grid, and what
cannot be kept is told."""

import numpy as np

import linkwise as lw
from linkwise import control

PERIOD, PARTS = 0.002, 4


def moved(robot, q, qd, tau):
    """(velocities, positions) of a sample at a finer grid, torques held; RK4."""
    h, speeds, places = PERIOD / PARTS, [], []
    for _ in range(PARTS):
        a = robot.forward_dynamics(q, qd, tau)
        b = robot.forward_dynamics(q + h / 2 * qd, qd + h / 2 * a, tau)
        c = robot.forward_dynamics(q + h / 2 * qd + h * h / 4 * a, qd + h / 2 * b, tau)
        d = robot.forward_dynamics(q + h * qd + h * h / 2 * b, qd + h * c, tau)
        q, qd = q + h * qd + h * h / 6 * (a + b + c), qd + h / 6 * (a + 2 * b + 2 * c + d)
        speeds.append(qd)
        places.append(q)
    return np.array(speeds), np.array(places)


def run(robot, speed, samples=70, frequency=30.0, **limits):
    """(largest excess of speed as a share of the limit, samples that pass a limit, those of them without a mark) of
    motions to far targets that change."""
    rng = np.random.default_rng(1)
    tasks = [control.PostureTask(frequency=frequency)]
    law = control.WholeBody(robot, tasks, control.MotionLimits(velocity=speed, period=PERIOD, **limits))
    q, qd, start = robot.random(rng, 4), np.zeros((4, robot.dof)), None
    low, high = robot.limits.lower, robot.limits.upper
    most, passed, silent = 0.0, 0, 0
    for k in range(samples):
        if k % 35 == 0:
            targets = law.targets(robot.random(rng, 4))
        solution, start = law.solve(q, qd, targets, start=start)
        speeds, places = moved(robot, q, qd, solution.tau)
        q, qd = places[-1], speeds[-1]
        excess = (np.abs(speeds) / speed - 1.0).max(axis=(0, 2))
        out = np.maximum(low - places, places - high).max(axis=(0, 2))
        over = (excess > 2e-3) | (out > 1e-4)
        most, passed = max(most, excess.max()), passed + int(over.sum())
        silent += int((over & ~(solution.beyond > 1e-6)).sum())
    return most, passed, silent


def test_velocities_keep_their_limits_between_samples_while_torques_are_held():
    """Arms and a random tree; with the acceleration at the beginning alone limits are passed by many times as much."""
    tree = lw.random_robot(2, 6, tree=True)
    for robot, torque in ((lw.load("panda"), None), (lw.load("ur10e"), None), (tree, 100.0)):
        speed = np.full(6, 3.0) if robot is tree else robot.limits.velocity
        most, passed, silent = run(robot, speed, torque=torque)
        assert most < 1e-3, (robot.name, most)
        assert passed == silent == 0, robot.name
    arm = lw.load("panda")
    assert run(arm, arm.limits.velocity, ahead=False)[0] > 4e-3


def test_an_arm_that_cannot_carry_its_weight_is_told_in_every_sample_that_passes_a_limit():
    for name, share in (("panda", 0.4), ("ur10e", 0.3)):
        robot = lw.load(name)
        positions = robot.random(np.random.default_rng(0), 200)
        weight = np.abs(robot.gravity_torques(positions)).max(axis=0)
        torque = np.maximum(share * weight, 0.5)
        _, passed, silent = run(robot, robot.limits.velocity, frequency=6.0, samples=120, torque=torque)
        assert passed > 10, name
        assert silent == 0, name
