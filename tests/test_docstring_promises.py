"""Promises of docstrings that no other test tries to break: over all bundled robots and random ones."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import compat, motion
from linkwise.bench.peers.built import pinocchio_model


def test_followers_follow_exactly():
    """A coupled robot is the free one with the follower at ratio·q + offset, in every function of a state."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        tree = lw.random_robot(seed, 5, tree=True)
        leader, follower = (tree.joint_names[k] for k in rng.permutation(5)[:2])
        ratio, offset = rng.normal(size=2)
        robot = tree.with_constraints([lw.Coupling(follower, leader, ratio, offset)])
        q = dict(zip(robot.joint_names, rng.normal(size=(4, 7)), strict=True))
        free = np.array([q[name] if name in q else ratio * q[leader] + offset for name in tree.joint_names])
        own = np.array([q[name] for name in robot.joint_names])
        for link in tree.link_names:
            np.testing.assert_allclose(robot.pose(own.T, link), tree.pose(free.T, link), atol=1e-12)


def test_motions_through_samples_have_the_samples():
    rng = np.random.default_rng(1)
    for dof in (1, 6, 7):
        t = np.cumsum(rng.uniform(0.01, 0.5, 12))
        parts = rng.normal(size=(3, 12, dof))
        found = motion.through_samples(motion.Samples(t, *parts))
        for time, *wanted in zip(t, *parts, strict=True):
            for one, other in zip(found.at(time - t[0] + found.begin), wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-8 * np.abs(parts).max())


def test_motions_are_never_made_faster_where_that_is_forbidden():
    rng = np.random.default_rng(2)
    for name in lw.robots():
        robot = lw.load(name)
        for duration in (0.05, 3.0):
            move = motion.quintic(np.zeros(robot.dof), rng.uniform(-0.2, 0.2, robot.dof), duration)
            torque = 3 * np.abs(robot.gravity_torques(move.sampled(points=50).q)).max(axis=0) + 50
            found = motion.fastest(move, robot, torque=torque, velocity=False, speed_up=False)
            assert found.duration >= duration * (1 - 1e-12), name


def test_frames_that_cannot_be_moved_in_six_directions_have_no_task_inertia():
    rng = np.random.default_rng(3)
    arms = [lw.load(name) for name in lw.robots()] + [lw.planar_chain(3), lw.general_chain(5)]
    few = [arm for arm in arms if arm.dof < 6]
    assert len(few) >= 3
    for arm in few:
        with pytest.raises(lw.SingularError):
            arm.task_inertia(arm.random(rng), frame=arm.link_names[-1])


def test_rates_of_pinocchio_are_a_permutation():
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(4)
    for arm in [lw.load(name) for name in lw.robots()] + [lw.random_robot(1, 6, tree=True)]:
        for robot in (arm, arm.with_base("floating")):
            try:
                model = pinocchio_model(pin, robot)
            except RuntimeError:  # Pinocchio refuses inertias of the PUMA 560
                continue
            order = compat.pinocchio_order(robot, model)
            assert sorted(order) == list(range(robot.dof))
            wanted = np.zeros((robot.dof, robot.dof))
            wanted[order, np.arange(robot.dof)] = 1.0
            for _ in range(2):
                assert np.array_equal(compat.pinocchio_rates(robot, model, robot.random(rng)), wanted)
