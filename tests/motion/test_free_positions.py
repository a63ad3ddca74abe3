"""Inverse kinematics among obstacles: what is returned as found touches nothing, as judged by the checks."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.collision import HalfSpace, Sphere, Validity, World, spheres_of, validity_of
from linkwise.collision.clearance import position_range
from linkwise.errors import ArgumentError


def problem(name, count=60):
    """A robot, a world, and poses of free positions."""
    robot, rng = lw.load(name), np.random.default_rng(0)
    spheres = [Sphere(0.5 * rng.normal(size=3) + [0, 0, 0.5], 0.12) for _ in range(8)]
    world = World([*spheres, HalfSpace((0, 0, 1), -0.2)])
    q = rng.uniform(*position_range(robot, None, None), (1500, robot.nq))
    q = q[~robot.in_collision(q, world, clearance=0.01)][:count]
    return robot, world, robot.pose(q)


@pytest.mark.parametrize("name", ["ur10e", "panda", "iiwa14"])
def test_positions_that_are_found_are_free(name):
    robot, world, poses = problem(name)
    plain = motion.inverse_kinematics(robot, poses)
    assert robot.in_collision(plain.q, world, clearance=0.01).sum() > 5  # else this shows nothing
    found = motion.inverse_kinematics(robot, poses, world=world, clearance=0.01, strict=False)
    assert found.converged.mean() > 0.95
    reached = found.converged
    assert not robot.in_collision(found.q, world, clearance=0.01)[reached].any()
    assert np.abs(robot.pose(found.q) - poses)[reached].max() < 1e-8
    limits = robot.limits
    assert ((found.q >= limits.lower) & (found.q <= limits.upper)).all()
    free = ~robot.in_collision(plain.q, world, clearance=0.01)
    assert np.array_equal(found.q[free], plain.q[free])  # what was free stays


def test_a_target_does_not_depend_on_the_others():
    robot, world, poses = problem("ur10e", 30)
    together = robot.inverse_kinematics(poses, world=world, strict=False)
    for k in range(0, 30, 3):
        alone = robot.inverse_kinematics(poses[k], world=world, strict=False)
        assert np.array_equal(alone.q, together.q[k])
        assert alone.converged == together.converged[k]


def test_the_free_position_nearest_to_the_start_is_taken():
    """All branches of a UR10e: none that is free is nearer than the one that is returned."""
    robot, world, poses = problem("ur10e", 30)
    checks, (lower, upper) = validity_of(robot), position_range(robot, None, None)
    start = np.full(6, 0.3)
    first = robot.inverse_kinematics(poses, start=start)
    found = robot.inverse_kinematics(poses, start=start, world=world, strict=False)
    moved = checks.in_collision(first.q, world) & found.converged
    assert moved.sum() > 3
    nearer = 0
    for k in np.flatnonzero(moved):
        branches = motion.closed_form_inverse_kinematics(robot, poses[k])
        turned = branches + 2 * np.pi * np.round(
            (start - branches) / (2 * np.pi)
        )  # the nearest turn of each joint
        branches = turned[((turned >= lower) & (turned <= upper)).all(axis=1)]
        free = branches[~checks.in_collision(branches, world)]
        nearer += (
            np.abs(free - start).max(axis=1).min(initial=np.inf) < np.abs(found.q[k] - start).max() - 1e-6
        )
    assert nearer <= 0.2 * moved.sum()  # draws miss a branch now and then


def test_what_cannot_be_free_is_said():
    robot, _, poses = problem("ur10e", 4)
    around = [Sphere(poses[0, :3, 3], 0.3)]
    with pytest.raises(motion.UnreachableError, match=r"none of 64 further positions is free.*the world"):
        robot.inverse_kinematics(poses[0], world=around)
    left = robot.inverse_kinematics(poses[0], world=around, strict=False)
    assert not left.converged
    assert left.position_error < 1e-9
    far = poses[0].copy()
    far[0, 3] = 5.0
    with pytest.raises(motion.UnreachableError, match="out of reach"):
        robot.inverse_kinematics(far, world=[])
    for wrong in ({"clearance": 0.1}, {"validity": validity_of(robot)}):
        with pytest.raises(ArgumentError, match="only with world="):
            robot.inverse_kinematics(poses[0], **wrong)
    with pytest.raises(lw.LinkwiseError):
        robot.inverse_kinematics(poses[0], world=[], clearance=np.nan)


def test_checks_of_ones_own_are_used():
    robot, world, poses = problem("ur10e", 20)
    thick = Validity(robot, spheres=spheres_of(robot, margin=0.04))
    found = robot.inverse_kinematics(poses, world=world, validity=thick, strict=False)
    assert not thick.in_collision(found.q[found.converged], world).any()
    other = robot.inverse_kinematics(poses, world=world, strict=False)
    assert thick.in_collision(other.q[other.converged], world).any()
