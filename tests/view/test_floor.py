"""Motions that pages and the tour show stay above the floor."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision.heights import lowest_points, meshes_of, outermost
from linkwise.geometry.posture import up_of
from linkwise.geometry.skeleton import body_poses, skeleton
from linkwise.geometry.visuals import read_looks
from linkwise.view import motions
from linkwise.view.parts import mesh_parts
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


LINK = """<link name="{0}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{1}</link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>
<axis xyz="{4}"/><limit lower="-2" upper="2.5" effort="9" velocity="2"/></joint>"""
BOX = '<visual><origin xyz="{0}"/><geometry><box size="{1}"/></geometry></visual>'


def arm_file(folder, place, size):
    """An arm of two joints whose last link is a box at this place, of this size."""
    file = folder / "arm.urdf"
    file.write_text(
        '<robot name="arm">'
        + LINK.format("base", BOX.format("0 0 0.1", "0.2 0.2 0.2"))
        + LINK.format("upper", BOX.format("0 0 0.2", "0.1 0.1 0.4"))
        + LINK.format("lower", BOX.format(place, size))
        + JOINT.format("first", "base", "upper", 0.25, "0 1 0")
        + JOINT.format("second", "upper", "lower", 0.4, "1 0 0")
        + "</robot>"
    )
    return file


def test_meshes_stay_above_the_floor(tmp_path):
    """Links are wider than the rods that stand for them, which were looked at alone."""
    file = arm_file(tmp_path, "0 0 0.5", "0.1 1.2 1.0")
    robot = lw.load(file)
    bones = skeleton(robot)
    meshes = [(part.body, part.mesh.moved(part.pose)) for part in mesh_parts(robot, read_looks(file), bones)]
    below, moved = [], []
    for shown in (meshes, []):
        for seed in range(4):
            motion = motions.random_points(robot, np.zeros(2), shown, seed=seed)
            least, samples = 0.0, motion.at(np.linspace(motion.begin, motion.end, 60)).q
            moved.append(np.abs(samples).max())
            for q in samples:
                placed = body_poses(robot, q)
                for body, mesh in meshes:
                    if body >= 0:
                        pose = placed[body]
                        least = min(least, (mesh.vertices @ pose.rotation.T + pose.translation)[:, 2].min())
            below.append(least)
    assert max(moved[:4]) > 0.1
    assert min(below[:4]) > -1e-3
    assert min(below[4:]) < -0.1


def test_the_tour_keeps_meshes_above_the_floor(tmp_path):
    """It looked at the rods alone: a Z1 went 25 mm below the floor."""
    from linkwise.tour.motions import fast_motion

    file = arm_file(tmp_path, "0 -0.9 -0.1", "0.1 0.1 0.2")
    robot = lw.load(file)
    meshes = meshes_of(robot)
    assert sorted(body for body, _ in meshes) == [-1, 0, 1]
    samples = fast_motion(robot).trajectory.at(np.linspace(0, fast_motion(robot).duration, 80)).q
    assert lowest_points(robot, samples, outermost(meshes)).min() > -1e-3
