"""Motions that pages and the tour show stay above the floor."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.geometry.posture import up_of
from linkwise.geometry.skeleton import body_poses, skeleton
from linkwise.view import motions
from linkwise.view.placing import floor_of, scene_box

pytest.importorskip("viser")


def heights(robot, q):
    """Of the lowest points of all moving links, by poses of their frames, one position after the other [m]."""
    up, rods = up_of(robot), [rod for rod in skeleton(robot).capsules if rod.body >= 0]
    found = []
    for position in q:
        placed = body_poses(robot, position)
        ends = [(placed[rod.body], end, rod.radius) for rod in rods for end in (rod.start, rod.end)]
        found.append(
            min((pose.rotation @ end + pose.translation) @ up - radius for pose, end, radius in ends)
        )
    return np.array(found)


def test_no_motion_of_a_page_drives_a_robot_through_its_floor():
    """All bundled robots; the page puts the floor at the base, or at the lowest point of the first posture."""
    moved = 0
    for name in lw.robots():
        robot = lw.load(name)
        if robot.nq != robot.dof or not [rod for rod in skeleton(robot).capsules if rod.body >= 0]:
            continue
        bones, up = skeleton(robot), up_of(robot)
        lower, upper = motions.ranges(robot)
        for q in (np.clip(robot.neutral, lower, upper), lower + 0.6 * (upper - lower)):
            floor = min(floor_of(*scene_box(robot, bones, (), q), up, bones.reach), heights(robot, [q])[0])
            for motion in (motions.to_and_fro(robot, q), motions.random_points(robot, q, seed=3)):
                samples = motion.at(np.linspace(motion.begin, motion.end, 37)).q
                assert heights(robot, samples).min() >= floor - 1e-3 * bones.reach, name
                assert np.allclose(samples[[0, -1]], q, atol=1e-9)
                moved += np.abs(samples - q).max() > 0.05
    assert moved > len(lw.robots())


def test_demo_and_tour_stay_above_the_floor():
    """The base frame of a PUMA is at the shoulder, 0.67 m above the floor; the tour: all bundled arms with a way."""
    from linkwise.cli.parts.experiment import run
    from linkwise.tour.motions import fast_motion

    puma = lw.load("puma560")
    assert heights(puma, run().motion.q[::10]).min() > -0.7 * 0.67
    below = []
    for name in lw.robots():
        robot = lw.load(name)
        trajectory = fast_motion(robot).trajectory
        t = np.linspace(trajectory.begin, trajectory.begin + trajectory.duration, 60)
        floor = min(0.0, heights(robot, [robot.neutral])[0])
        below += [name] if heights(robot, trajectory.at(t).q).min() < floor - 1e-6 else []
    assert not below
