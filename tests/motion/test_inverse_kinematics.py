"""Inverse kinematics: reached poses are reached, limits hold, failures are reported."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.kinematics import damped_least_squares, inverse, restarts, starts

PUMAS = ("puma560", "puma260", "puma_valera")


def limits(robot):
    return (
        np.array([getattr(joint.limits, side) for joint in robot.moving_joints])
        for side in ("lower", "upper")
    )


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


def test_a_batch_of_a_redundant_arm_within_its_limits(panda):
    lower, upper = limits(panda)
    q = np.random.default_rng(0).uniform(lower, upper, (4, 5, 7))
    target = panda.pose(q)
    found = motion.inverse_kinematics(panda, target)
    assert found.converged.shape == (4, 5)
    assert found.converged.all()
    assert ((found.q >= lower) & (found.q <= upper)).all()
    np.testing.assert_allclose(panda.pose(found.q), target, atol=1e-8)


def test_a_solution_stays_near_a_good_start(panda):
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.5, 0.7])
    found = motion.inverse_kinematics(panda, panda.pose(q), start=q + 0.01, starts=1)
    assert np.abs(found.q - q).max() < 0.05


def test_without_a_start_the_middle_of_the_limits_is_one(panda):
    lower, upper = limits(panda)
    q = (lower + upper) / 2 + 0.1  # a little beside the middle
    found = motion.inverse_kinematics(panda, panda.pose(q), starts=1)
    np.testing.assert_allclose(found.q, q, atol=1e-9)


def test_positions_only(panda):
    point = np.array([0.4, 0.2, 0.5])
    found = motion.inverse_kinematics(panda, point, task="position")
    np.testing.assert_allclose(panda.pose(found.q)[:3, 3], point, atol=1e-8)
    assert found.rotation_error == 0.0


def test_an_unreachable_pose_says_what_is_left(panda):
    target = panda.pose(np.zeros(7))
    target[:3, 3] = [2.0, 0.0, 0.3]
    with pytest.raises(
        motion.UnreachableError,
        match=r"out of reach: [0-9.]+ m from the first joint, and the links reach 0\.986\d m; .* m and .* rad",
    ):
        motion.inverse_kinematics(panda, target, starts=3)
    found = motion.inverse_kinematics(panda, target, starts=3, strict=False)
    assert not found.converged
    assert found.position_error > 0.9  # the arm is about 1.19 m long


def test_an_unreachable_one_of_a_batch_is_named(panda):
    targets = panda.pose(np.zeros((3, 7)) + [0, 0, 0, -1.5, 0, 1.5, 0])
    targets[1, 0, 3] = 5.0
    with pytest.raises(motion.UnreachableError, match=r"target \[1\] [^;]*; [^;]*$"):
        motion.inverse_kinematics(panda, targets, starts=2)
    targets[0, 0, 3] = 4.0
    with pytest.raises(motion.UnreachableError, match=r"target \[1\] .*; 1 more targets are not reached"):
        motion.inverse_kinematics(panda, targets, starts=2)


def test_limits_are_what_makes_a_pose_unreachable():
    robot = lw.load("two_link")
    joints = [
        type(j)(**{**{f: getattr(j, f) for f in j.__dataclass_fields__}, "limits": lw.Limits(-0.5, 0.5)})
        for j in robot.joints
    ]
    bounded = lw.Robot("bounded", robot.links, joints, gravity=robot.gravity)
    point = robot.pose(np.array([0.9, 0.8]))[:3, 3]
    assert motion.inverse_kinematics(robot, point, task="position").converged
    found = motion.inverse_kinematics(bounded, point, task="position", strict=False)
    assert not found.converged
    assert (np.abs(found.q) <= 0.5).all()


def test_singular_poses_are_marked(panda):
    straight = np.zeros(7)
    found = motion.inverse_kinematics(panda, panda.pose(straight), start=straight, limits=False, starts=1)
    assert found.converged
    assert found.smallest_singular_value < 1e-6
    bent = motion.inverse_kinematics(panda, panda.pose(np.array([0, -0.5, 0, -2.0, 0, 1.5, 0.5])))
    assert bent.smallest_singular_value > 1e-2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.zeros((3, 3)), r"target: expected shape \(..., 4, 4\)"),
        (np.full((4, 4), np.nan), "finite"),
        (np.diag([2.0, 2.0, 2.0, 1.0]), "target: expected poses, but the columns"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "right-handed"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), "last row is 0 0 0 1"),
    ],
)
def test_bad_targets_are_named(panda, target, message):
    with pytest.raises(ValueError, match=message):
        motion.inverse_kinematics(panda, target)


def test_targets_of_the_other_task_say_so(panda):
    poses = np.broadcast_to(np.eye(4), (5, 4, 4))
    for points in (np.zeros(3), np.zeros((5, 3)), np.zeros((3, 3)), np.zeros((4, 3))):
        with pytest.raises(ValueError, match=r"; for a point give task='position'$"):
            motion.inverse_kinematics(panda, points)
    for target in (poses[0], poses):
        with pytest.raises(ValueError, match=r"; for a pose give task='pose'$"):
            motion.inverse_kinematics(panda, target, task="position")
    for task in ("pose", "position"):
        with pytest.raises(ValueError, match=r"a pose is a 4×4 matrix as .* a point has three numbers"):
            motion.inverse_kinematics(panda, np.zeros((2, 5)), task=task)


def test_a_start_that_is_no_position_is_named(panda):
    with pytest.raises(ValueError, match="start: expected finite numbers"):
        motion.inverse_kinematics(panda, panda.pose(np.zeros(7)), start=np.full(7, np.nan))


@pytest.mark.parametrize("name", PUMAS)
def test_closed_form_gives_eight_solutions_and_the_right_one_among_them(name):
    robot = lw.load(name)
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (3, 20, 6))
    target = robot.pose(q)
    found = motion.closed_form_inverse_kinematics(robot, target)
    assert found.shape == (3, 20, 8, 6)
    assert not np.isnan(found).any()
    np.testing.assert_allclose(
        robot.pose(found), np.broadcast_to(target[..., None, :, :], (3, 20, 8, 4, 4)), atol=1e-10
    )
    away = np.abs(np.angle(np.exp(1j * (found - q[..., None, :])))).max(axis=-1)
    assert away.min(axis=-1).max() < 1e-8
    first = found[0, 0]
    apart = np.abs(np.angle(np.exp(1j * (first[:, None] - first)))).max(axis=-1) + np.eye(8)
    assert apart.min() > 1e-3  # eight different ones


def test_closed_form_is_nan_out_of_reach_and_agrees_with_the_iteration():
    robot = lw.load("puma560")
    target = robot.pose(np.array([0.2, 0.4, -0.5, 0.3, 0.7, -0.1]))
    numerical = motion.inverse_kinematics(robot, target)
    closed = motion.closed_form_inverse_kinematics(robot, target)
    assert np.abs(np.angle(np.exp(1j * (closed - numerical.q)))).max(axis=-1).min() < 1e-6
    target[:3, 3] = [3.0, 0.0, 0.0]
    assert np.isnan(motion.closed_form_inverse_kinematics(robot, target)).all()


def test_closed_form_of_an_arm_whose_wrist_is_bent_at_zero():
    robot = lw.load("puma560")
    fifth = robot.moving_joints[4]
    bent = replace(fifth, origin=fifth.origin @ lw.Transform.about(fifth.axis, 0.7))
    joints = [bent if joint is fifth else joint for joint in robot.joints]
    arm = lw.Robot("bent", robot.links, joints)
    q = np.array([0.9, -0.4, 0.5, 0.3, 0.7, -0.1])
    assert np.abs(arm.pose(q) - robot.pose(q)).max() > 0.1
    found = motion.closed_form_inverse_kinematics(arm, arm.pose(q))
    np.testing.assert_allclose(arm.pose(found), np.broadcast_to(arm.pose(q), (8, 4, 4)), atol=1e-10)


def test_joints_without_limits_are_drawn_within_half_a_turn_or_a_metre():
    robot = lw.load("stanford")
    free = [replace(j, limits=lw.Limits()) if j.moves else j for j in robot.joints]
    lower, upper = starts.sampling_range(lw.Robot("free", robot.links, free))
    reach = [np.pi if j.revolute else 1.0 for j in robot.moving_joints]
    assert set(reach) == {np.pi, 1.0}
    assert (upper == reach).all()
    assert (lower == np.negative(reach)).all()


@pytest.mark.parametrize("q5", [0.0, 1e-9])
def test_closed_form_at_a_straight_wrist(q5):
    robot = lw.load("puma560")
    target = robot.pose(np.array([0.2, 0.4, -0.5, 0.3, q5, -0.1]))
    found = motion.closed_form_inverse_kinematics(robot, target)
    np.testing.assert_allclose(robot.pose(found), np.broadcast_to(target, (8, 4, 4)), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("stanford", "six or seven turning joints"), ("two_link", "six or seven turning joints")],
)
def test_closed_form_refuses_other_arms(name, reason):
    with pytest.raises(lw.ModelError, match=reason):
        motion.closed_form_inverse_kinematics(lw.load(name), np.eye(4))


def found_within_limits(robot, count: int, **options) -> np.ndarray:
    """Whether poses at random positions within the limits are found, within the limits."""
    lower, upper = limits(robot)
    q = np.random.default_rng(3).uniform(
        np.where(np.isfinite(lower), lower, -np.pi),
        np.where(np.isfinite(upper), upper, np.pi),
        (count, robot.dof),
    )
    target = robot.pose(q, options.get("frame"))
    found = motion.inverse_kinematics(robot, target, strict=False, **options)
    near = np.abs(robot.pose(found.q, options.get("frame")) - target).max(axis=(-2, -1)) < 1e-8
    return near & found.converged & ((found.q >= lower) & (found.q <= upper)).all(axis=-1)


@pytest.mark.parametrize("name", ["panda", "ur10e", "puma560", "iiwa14", "stanford", "puma260"])
def test_every_pose_that_can_be_reached_is_found(name):
    assert found_within_limits(lw.load(name), 150).all()


def test_closed_form_comes_first_where_there_is_one():
    """One start would find 98 of 100 poses of a PUMA 560; the closed form needs none."""
    assert found_within_limits(lw.load("puma560"), 200, starts=2, iterations=4).all()


def test_closed_form_solutions_are_turned_into_the_limits():
    """The limits of joints 4 and 6 are wider than a turn on one side only."""
    robot = lw.load("puma560")
    moved = [
        replace(joint, limits=replace(joint.limits, lower=2.0, upper=2.0 + 2 * np.pi))
        if k in (3, 5)
        else joint
        for k, joint in enumerate(robot.joints)
    ]
    assert found_within_limits(lw.Robot("turned", robot.links, moved), 100, starts=2, iterations=4).all()


def test_the_solution_of_the_closed_form_is_the_one_nearest_to_the_start():
    robot = lw.load("puma560")
    q = np.array([0.2, -0.4, 0.5, 0.3, 0.7, -0.1])
    found = motion.inverse_kinematics(robot, robot.pose(q), start=q + 1e-3)
    np.testing.assert_allclose(found.q, q, atol=1e-7)


def test_what_was_not_found_is_not_called_out_of_reach():
    """A pose within the links' length that the limits exclude."""
    robot = lw.load("ur10e")
    target = robot.pose(np.array([0.1, -1.0, 1.5, 0.3, 0.7, -0.1]))
    bounded = lw.Robot(
        "bounded",
        robot.links,
        [replace(j, limits=replace(j.limits, lower=2.0, upper=2.5)) if j.moves else j for j in robot.joints],
    )
    with pytest.raises(
        motion.UnreachableError,
        match=r"target was not found within the limits in 16 starts; the nearest position",
    ):
        motion.inverse_kinematics(bounded, target, starts=16)
    with pytest.raises(motion.UnreachableError, match=r"was not found within the limits in 1 start;"):
        motion.inverse_kinematics(bounded, target, starts=1, iterations=2)


@pytest.mark.parametrize("seed", range(4))
def test_no_pose_lies_beyond_the_reach(seed):
    robot = lw.random_robot(seed, 5)
    for bounded in (True, False):
        centre, radius = starts.reach(robot, None, bounded)
        q = np.random.default_rng(seed).uniform(*starts.sampling_range(robot), (500, 5))
        distance = np.linalg.norm(robot.pose(q)[:, :3, 3] - centre, axis=-1)
        assert (distance <= radius * (1 + 1e-12)).all()


def test_reach_of_a_plane_arm_is_exact():
    robot = lw.planar_chain(3)
    centre, radius = starts.reach(robot, None, True)
    assert not centre.any()
    assert radius == pytest.approx(np.linalg.norm(robot.pose(np.zeros(3))[:3, 3]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": 0}, "starts: expected a whole number from 1 on, got 0"),
        ({"starts": 2.5}, "starts: expected a whole number"),
        ({"iterations": -1}, "iterations: expected a whole number from 1 on, got -1"),
        ({"tolerance": 0.0}, "tolerance: expected a positive number, got 0.0"),
        ({"tolerance": np.nan}, "tolerance: expected a positive number, got nan"),
        ({"tolerance": np.inf}, "tolerance: expected a positive number, got inf"),
        ({"start": np.zeros((3, 7))}, r"start: expected a shape that broadcasts to \(2, 7\), got \(3, 7\)"),
        ({"task": "turn"}, "task: expected 'pose' or 'position'"),
    ],
)
def test_options_are_checked(panda, options, message):
    with pytest.raises(ValueError, match=message):
        motion.inverse_kinematics(panda, panda.pose(np.zeros((2, 7))), **options)


def test_no_targets_and_no_joints(panda):
    assert motion.inverse_kinematics(panda, np.zeros((0, 4, 4))).q.shape == (0, 7)
    still = panda.lock(dict.fromkeys(panda.joint_names, 0.1))
    with pytest.raises(lw.ModelError, match="no joint of panda moves"):
        motion.inverse_kinematics(still, np.eye(4))


def test_the_benchmark_runs(capsys):
    path = Path(__file__).parents[2] / "benchmarks" / "inverse_kinematics.py"
    main = runpy.run_path(str(path))["main"]
    main(["puma560", "two_link", "--poses", "5", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["found"] for row in rows] == [5, 5]
    main(["puma560", "--poses", "3"])
    assert "3 of 3 (100.0 %)" in capsys.readouterr().out


@pytest.mark.parametrize("angle", [0.0, 1e-14, 1e-8, 0.3, 2.0, np.pi - 1e-9, np.pi])
def test_the_rotation_vector_of_the_compiled_loop(angle):
    """Judged by the matrix exponential of SciPy; at half a turn either sign is right."""
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    axes = np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(0).normal(size=(40, 3))])
    for axis in axes / np.linalg.norm(axes, axis=1, keepdims=True):
        matrix = rotation.from_rotvec(angle * axis).as_matrix()
        vector = np.array(damped_least_squares.rotation_vector(matrix.tolist()))
        np.testing.assert_allclose(rotation.from_rotvec(vector).as_matrix(), matrix, atol=3e-15)
        assert np.linalg.norm(vector) <= np.pi + 1e-12
        if angle < 3.0:
            np.testing.assert_allclose(vector, angle * axis, atol=2e-15)


def test_one_target_gives_the_bits_of_a_batch(panda):
    """Neighbours in a vector register do not change a lane of the loop."""
    lower, upper = limits(panda)
    q = np.random.default_rng(5).uniform(lower, upper, (11, 7))
    kernel = damped_least_squares.iteration(panda, None, "pose")
    target = panda.pose(q)[:, :3].reshape(-1, 12)
    given = (
        np.clip(q + 0.4, lower, upper),
        target,
        lower,
        upper,
        np.ones((11, 1)),
        np.array([30.0, 1.0, 1e-11]),
    )
    together = kernel(*given)
    assert np.abs(together[1]).max() < 1e-9
    for k in range(11):
        alone = kernel(given[0][k], target[k], lower, upper, np.ones(1), given[5])
        for one, all_ in zip(alone, together, strict=True):
            assert np.array_equal(one, all_[k])


def test_one_target_alone_has_the_position_and_bits_of_many():
    """Over all bundled arms, poses and points, with and without limits, with a start."""
    rng = np.random.default_rng(8)
    for name in lw.robots():
        robot = lw.load(name)
        task = "pose" if robot.dof >= 6 else "position"
        lower, upper = np.maximum(robot.limits.lower, -3.0), np.minimum(robot.limits.upper, 3.0)
        q = lower + (upper - lower) * rng.random((6, robot.dof))
        poses = np.asarray(robot.pose(q))
        targets = poses if task == "pose" else poses[:, :3, 3]
        for options in ({}, {"limits": False}, {"start": q[0] + 0.05}):
            many = motion.inverse_kinematics(robot, targets, task=task, strict=False, **options)
            for k, target in enumerate(targets):
                one = motion.inverse_kinematics(robot, target, task=task, strict=False, **options)
                assert one.q.shape == (robot.dof,)
                assert (one.q == many.q[k]).all(), (name, options)
                assert bool(one.converged) == bool(many.converged[k])
                assert one.smallest_singular_value == pytest.approx(
                    many.smallest_singular_value[k], abs=1e-12
                )


def gantry() -> lw.Robot:
    """Three slides and a turn: its direction is often right before its position."""
    axes = (*np.eye(3).tolist(), (0.0, 0.0, 1.0))
    joints = [
        lw.Joint(
            f"joint{k}",
            "prismatic" if k < 3 else "revolute",
            f"link{k}",
            f"link{k + 1}",
            axis=tuple(axis),
            limits=lw.Limits(-2.0, 2.0),
        )
        for k, axis in enumerate(axes)
    ]
    return lw.Robot("gantry", [lw.Link(f"link{k}") for k in range(5)], joints)


@pytest.mark.parametrize("make", [lambda: lw.load("panda"), gantry], ids=["panda", "gantry"])
def test_steps_in_one_call_or_in_many_end_at_the_same_bits(make, monkeypatch):
    """Targets are taken out of a call when they have arrived: with position and direction, not with one of them."""
    robot = make()
    low, high = np.maximum(robot.limits.lower, -2.0), np.minimum(robot.limits.upper, 2.0)
    q = low + (high - low) * np.random.default_rng(6).random((30, robot.dof))
    targets = np.asarray(robot.pose(q))[:, :3].reshape(-1, 12)
    kernel, start = restarts.restarting(robot, None, "pose"), np.tile(low + 0.3 * (high - low), (30, 1))
    found = []
    for together in (1.0, 16.0, restarts.LONGEST):
        monkeypatch.setattr(restarts, "TOGETHER", together)
        found.append(
            restarts.restarted(kernel, start, targets, (low, high, low, high), (1.0, 1e-10, 60, 40, 0))
        )
    for q, error in found:
        assert np.array_equal(q, found[0][0])
        assert (np.linalg.norm(error.reshape(-1, 2, 3), axis=2) <= 1e-10).all()


def test_one_target_does_without_what_many_need(monkeypatch):
    """The search over many targets is not entered where a first start arrives: single calls stay fast."""
    robot = lw.load("panda")
    poses = [
        np.asarray(robot.pose(np.full(7, 0.2) + 0.1 * k * np.array([1, 1, 1, -6, 1, 5, 1]))) for k in range(3)
    ]

    def many(*_):
        raise AssertionError("the search over many targets")

    monkeypatch.setattr(inverse._Problem, "solve", many)
    for pose in poses:
        assert motion.inverse_kinematics(robot, pose).converged


def test_starts_are_spread_over_every_joint():
    """However many joints there are: the widest gap between 64 draws is below 0.3."""
    for joints in range(1, 9):
        for joint in range(joints):
            draws = np.sort([float(restarts._share(float(k), 0.3, joint, joints)) for k in range(64)])
            assert draws[0] >= 0.0
            assert draws[-1] <= 1.0
            assert np.diff(draws, prepend=draws[-1] - 1.0).max() < 0.3
