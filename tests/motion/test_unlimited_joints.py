"""Plans of robots with joints without limits: turns beyond π, slides of many metres, bases that drive."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, Clearance, Room, Sphere, Validity, World, validity_of
from linkwise.collision.body_pairs import body_poses_of
from linkwise.collision.validity.nests import LARGEST
from linkwise.motion import Keep, plan

LINK = """<link name="{name}"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
</inertial>{shape}</link>"""
SHAPE = '<collision><origin xyz="{at}"/><geometry><{shape}/></geometry></collision>'


def urdf(tmp_path, joints, shapes=None):
    """A chain: rows (type, axis, origin, limit or None), and shapes of links."""
    shapes = shapes or {}
    parts = []
    for k in range(len(joints) + 1):
        at, shape = shapes.get(k, ("0 0 0.1", 'sphere radius="0.05"'))
        parts.append(LINK.format(name=f"l{k}", shape=SHAPE.format(at=at, shape=shape) if shape else ""))
    for k, (kind, axis, origin, limit) in enumerate(joints):
        lower_upper = f'lower="{limit[0]}" upper="{limit[1]}"' if limit else ""
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="{axis}"/>'
            f'<origin xyz="{origin}"/><limit {lower_upper} velocity="2" effort="200"/></joint>'
        )
    file = tmp_path / "robot.urdf"
    file.write_text('<robot name="robot">' + "".join(parts) + "</robot>")
    return lw.load(file)


@pytest.fixture
def turning_arm(tmp_path):
    """Six joints, four of them without limits."""
    axes = ("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "0 0 1")
    origins = ("0 0 0.1", "0 0 0.2", "0 0 0.4", "0 0 0.2", "0 0 0.2", "0 0 0.1")
    kinds = ("continuous", "revolute", "revolute", "continuous", "continuous", "continuous")
    rows = [
        (kind, axis, origin, (-2.5, 2.5) if kind == "revolute" else None)
        for kind, axis, origin in zip(kinds, axes, origins, strict=True)
    ]
    return urdf(tmp_path, rows)


@pytest.mark.parametrize("turned", [0.0, 4.0, -25.0])
def test_a_pose_is_reached_by_joints_without_limits(turning_arm, turned):
    """Goals were moved into ±π, which is another pose, and the plan said nothing."""
    robot, rng = turning_arm, np.random.default_rng(3)
    free = np.isinf(robot.limits.lower)
    solved = 0
    for _ in range(12):
        start, goal = rng.uniform(-2.4, 2.4, (2, robot.nq))
        start[free] += turned
        pose = robot.pose(goal)
        found = plan(robot, start, pose, timing=False)
        if found:
            solved += 1
            begin, end = found.path.at(found.path.times[[0, -1]]).q
            assert np.abs(robot.pose(end) - pose).max() < 1e-6
            assert np.abs(begin - start).max() < 1e-12
            assert np.abs(end - start)[free].max() <= np.pi + 1e-9  # no more than half a turn
    assert solved >= 5


def test_a_slide_without_an_upper_limit_is_not_moved(tmp_path):
    """Starts beyond π m were moved there."""
    rows = [("prismatic", "1 0 0", "0 0 0", (0, 1)), ("revolute", "0 0 1", "0 0 0.3", (-2, 2))]
    robot = urdf(tmp_path, rows)
    joints = [replace(each, limits=replace(each.limits, upper=np.inf)) for each in robot.joints]
    robot = lw.Robot(robot.name, robot.links, joints)
    found = plan(robot, [5.0, 0.0], [7.0, 1.0], timing=False)
    assert np.allclose(found.path.at(found.path.times[[0, -1]]).q, [[5, 0], [7, 1]], atol=1e-12)


@pytest.mark.parametrize("reach", [1.0, 30.0])
def test_the_clearance_is_kept_by_slides_far_out(tmp_path, reach):
    """Levers were those of ±π m, whatever the slide: proofs were none at 30 m."""
    robot = slide_on_a_turntable(tmp_path)
    checks = validity_of(robot)
    for angle in np.linspace(-0.9, 0.9, 7):
        world = World([Sphere((reach * np.cos(angle), reach * np.sin(angle), 0.1), 0.005)])
        found = plan(robot, [-1.2, reach], [1.2, reach], world, timing=False)
        assert found, found.message
        u = np.linspace(found.path.times[0], found.path.times[-1], 20_000)
        assert checks.distance(found.path.at(u).q, world).min() >= found.clearance >= 0.0


def slide_on_a_turntable(tmp_path):
    return urdf(tmp_path, [("revolute", "0 0 1", "0 0 0", (-3, 3)), ("prismatic", "1 0 0", "0 0 0", None)])


def test_a_bound_along_a_motion_counts_slides_beyond_their_range(tmp_path):
    """As above for ``Clearance.bound_along``; the wall is met between the samples."""
    robot = slide_on_a_turntable(tmp_path)
    room = Room(floor=None, forbidden=[Box((30.0 * np.cos(0.1) - 0.01, 2.9, 0.0), (30.0, 3.0, 0.2))])
    clearance = Clearance(robot, room)

    def motion(t):
        q = np.stack([t, np.full_like(t, 30.0)], axis=-1)
        return q, np.broadcast_to([1.0, 0.0], q.shape)

    t = np.array([-1.0, 1.0])
    bound, _ = clearance.bound_along(motion, t, np.zeros(2), wanted=0.01)
    truth = clearance.least(motion(np.linspace(-1.0, 1.0, 20_001))[0]).min()
    assert truth < 0.0
    assert bound <= truth + 1e-9


def test_constraints_are_kept_beyond_half_a_turn(turning_arm):
    """Projections moved joints without limits into ±π."""
    upright = Keep(axis=(0, 0, 1), direction=(0, 0, 1), tilt=0.05)
    q = np.array([9.0, 0.4, 0.5, 0.0, -0.9, 0.0])
    start, kept = upright.projected(turning_arm, q[None])
    goal, too = upright.projected(turning_arm, (q + [0.6, 0.2, -0.2, 0.0, 0.0, 0.0])[None])
    assert kept.all()
    assert too.all()
    assert abs(start[0, 0] - 9.0) < 0.5
    found = plan(turning_arm, start[0], goal[0], constraint=upright, timing=False)
    assert found, found.message
    u = np.linspace(found.path.times[0], found.path.times[-1], 2000)
    assert upright.error(turning_arm, found.path.at(u).q).max() <= 1.0


def test_whole_turns_change_no_check(turning_arm):
    """In single precision large angles have few digits; those that are the same within a turn have all."""
    checks = validity_of(turning_arm)
    free = np.isinf(turning_arm.limits.lower)
    rng = np.random.default_rng(0)
    world = World([Sphere(rng.uniform(-0.8, 0.8, 3), 0.1) for _ in range(10)])
    q = rng.uniform(-2.5, 2.5, (2000, turning_arm.nq))
    expected, distance = checks.in_collision(q, world), checks.distance(q, world)
    sure = np.abs(distance) > 2e-4
    assert expected.any()
    assert not expected.all()
    turned = q + 2.0 * np.pi * 50_000 * free
    assert np.array_equal(checks.in_collision(turned, world)[sure], expected[sure])
    assert np.allclose(checks.distance(turned, world), distance, atol=1e-8)


def test_slides_of_kilometres_are_refused(tmp_path):
    robot = slide_on_a_turntable(tmp_path)
    checks = validity_of(robot)
    q = np.array([[0.3, 2.0 * LARGEST], [0.3, 0.5 * LARGEST], [np.nan, 0.0], [0.0, -np.inf]])
    assert checks.in_collision(q).tolist() == [True, False, True, True]
    assert np.isnan(checks.distance(q)).tolist() == [True, False, True, True]
    distance, gradient = checks.distance_gradient(q, [Sphere((1, 0, 0), 0.1)])
    assert np.isnan(distance).tolist() == [True, False, True, True]
    assert np.isnan(gradient).all(axis=1).tolist() == [True, False, True, True]
    assert np.isfinite(gradient[1]).all()
    distance, gradient = checks.distance_gradient(np.zeros((0, 2)))
    assert distance.shape == (0,)
    assert gradient.shape == (0, 2)


def test_clearance_along_a_motion_is_that_of_the_checks_that_were_used(turning_arm):
    """It was that of the default checks, whatever pairs and spheres a plan had."""
    world = [Sphere((0.5, 0.5, 0.5), 0.1)]
    checks = Validity(turning_arm, spheres=lw.collision.spheres_of(turning_arm, margin=0.02))
    q = np.array([0.0, 0.3, 0.3, 0.0, 0.3, 0.0])
    found = plan(turning_arm, q, q + [0.5, 0, 0, 0, 0, 0], world, validity=checks, acceleration=10.0)
    assert found, found.message
    t = np.linspace(0.0, found.motion.duration, 50)
    assert np.array_equal(found.clearance_along(t), checks.distance(found.motion.at(t).q, World(world)))
    assert found.validity is checks


def test_bodies_of_joints_that_follow_several_others():
    """Poses for the checks, and levers, counted the first of the joints that are followed."""
    arm = lw.load("two_link")
    robot = arm.with_motors(
        [lw.Motor("m", {arm.joint_names[0]: 2.0, arm.joint_names[1]: -3.0}, 0.1, offset=0.2)]
    )
    q = np.random.default_rng(0).uniform(-1, 1, (20, robot.dof))
    found = body_poses_of(robot, q)
    for k, joint in enumerate(robot.moving_joints):
        assert np.allclose(found[:, k], robot.pose(q, joint.child)[:, :3], atol=1e-12), joint.name
