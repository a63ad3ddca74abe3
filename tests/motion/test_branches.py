"""Closed forms of inverse kinematics: which arms have one, all branches, limits, the branch nearest to a start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.kinematics import closed_form, inverse, subproblems
from linkwise.motion.kinematics.arm_geometry import Arm, known_arm
from linkwise.motion.kinematics.closed_form import branches_kernel, nearest_kernel

KINDS = ("parallel", "meeting", "three parallel")


def random_chain(kind: str, joints: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(axes, points) at zero of an arm of a kind, in general position otherwise."""
    axes = rng.normal(size=(6, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    points = rng.uniform(-0.4, 0.4, (6, 3)) + np.arange(6)[:, np.newaxis] * [0.1, 0.0, 0.2]
    if kind == "three parallel":
        axes[2], axes[3] = axes[1], -axes[1]
        points[4] = points[5]
    else:
        points[4] = points[5] = points[3]
        if kind == "parallel":
            axes[2] = -axes[1]
        else:
            points[1] = points[0]
    if joints == 7:  # another axis in the middle or at the end
        place = 2 if kind == "meeting" else 6
        axes = np.insert(axes, place, (0.0, 0.6, 0.8), axis=0)
        points = np.insert(points, place, (0.1, -0.2, 0.3), axis=0)
    return axes, points


def arm_of(axes: np.ndarray, points: np.ndarray, rng: np.random.Generator, limit: float = 3.0) -> lw.Robot:
    """A robot with these axes at zero, and a tool."""
    links, joints = [lw.Link("base")], []
    before = np.zeros(3)
    for k, (axis, point) in enumerate(zip(axes, points, strict=True)):
        slid = point + rng.uniform(-0.3, 0.3) * axis  # the origin may be anywhere on the axis
        links.append(lw.Link(f"link{k + 1}"))
        origin = lw.Transform(np.eye(3), slid - before)
        joints.append(
            lw.Joint(
                f"joint{k + 1}",
                "revolute",
                links[-2].name,
                links[-1].name,
                origin,
                tuple(axis),
                lw.Limits(lower=-limit, upper=limit),
            )
        )
        before = slid
    links.append(lw.Link("tool"))
    tool = lw.Transform(motion.turn_about(rng.normal(size=3)), rng.uniform(-0.2, 0.2, 3))
    joints.append(lw.Joint("mount", "fixed", links[-2].name, "tool", tool))
    return lw.Robot("arm", links, joints)


def all_branches(robot: lw.Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    arm = known_arm(robot, None)
    assert isinstance(arm, Arm), arm
    locked = None if arm.locked is None else q[:, arm.coordinates[arm.locked]]
    target = np.asarray(robot.pose(q))
    return target, motion.closed_form_inverse_kinematics(robot, target, locked=locked)


@pytest.mark.parametrize("kind", KINDS)
def test_random_arms_of_every_kind_from_either_end(kind):
    rng = np.random.default_rng(len(kind))
    for joints in (6, 7):
        for backwards in (False, True):
            axes, points = random_chain(kind, joints, rng)
            robot = arm_of(*((-axes[::-1], points[::-1]) if backwards else (axes, points)), rng)
            q = rng.uniform(-2.8, 2.8, (40, joints))
            target, found = all_branches(robot, q)
            good = ~np.isnan(found).any(axis=-1)
            errors = np.abs(np.asarray(robot.pose(np.nan_to_num(found))) - target[:, None]).max(axis=(-2, -1))
            assert errors[good].max() < 1e-8
            away = np.where(good, np.abs(np.angle(np.exp(1j * (found - q[:, None])))).max(axis=-1), np.inf)
            assert away.min(axis=1).max() < 1e-6  # the position that the pose was made from is among them
            assert good.sum(axis=1).mean() >= 2.0


def test_bundled_arms():
    kinds = {}
    for name in lw.robots():
        robot = lw.load(name)
        arm = known_arm(robot, None)
        kinds[name] = arm.kind if isinstance(arm, Arm) else None
        if isinstance(arm, Arm):
            target, found = all_branches(robot, np.random.default_rng(0).uniform(-2.5, 2.5, (50, robot.dof)))
            good = ~np.isnan(found).any(axis=-1)
            errors = np.abs(np.asarray(robot.pose(np.nan_to_num(found))) - target[:, None]).max(axis=(-2, -1))
            assert errors[good].max() < 1e-9, name
            assert (good.sum(axis=1) >= 2).all(), name
    assert kinds["panda"] == kinds["iiwa14"] == "wrist, 1 meets 2"
    assert kinds["puma560"] == "wrist, 2 and 3 parallel"
    assert kinds["ur10e"] == "2, 3, 4 parallel"
    assert kinds["stanford"] is None
    assert motion.locked_joint(lw.load("iiwa14")) == lw.load("iiwa14").joint_names[2]
    assert motion.locked_joint(lw.load("panda")) == "panda_joint7"
    assert motion.locked_joint(lw.load("ur10e")) is None


def test_an_axis_that_is_off_by_more_than_the_tolerance_is_no_closed_form():
    rng = np.random.default_rng(4)
    for kind in KINDS:
        axes, points = random_chain(kind, 6, rng)
        for off, has in ((0.0, True), (1e-9, True), (1e-5, False)):
            moved, turned = points.copy(), axes.copy()
            moved[4] = moved[4] + off * np.array([1.0, -1.0, 1.0])
            turned[1] = turned[1] + off * np.array([1.0, 1.0, -1.0])
            turned[1] /= np.linalg.norm(turned[1])
            known = known_arm(arm_of(turned, moved, rng), None)
            assert isinstance(known, Arm) == has or (kind == "meeting" and not has), (kind, off)


def test_limits_start_and_whole_turns():
    rng = np.random.default_rng(2)
    for name in ("ur10e", "puma560", "iiwa14"):
        robot = lw.load(name)
        lower, upper = np.maximum(robot.limits.lower, -6.0), np.minimum(robot.limits.upper, 6.0)
        q = lower + (upper - lower) * rng.random((300, robot.dof))
        near = np.clip(q + rng.uniform(-0.05, 0.05, q.shape), lower, upper)
        rows = np.ascontiguousarray(np.asarray(robot.pose(q))[:, :3]).reshape(-1, 12)
        found, error = nearest_kernel(robot, None)(rows, near, robot.limits.lower, robot.limits.upper)
        good = np.abs(error).max(axis=1) < 1e-8
        assert good.mean() > 0.99
        assert (found >= robot.limits.lower).all()
        assert (found <= robot.limits.upper).all()
        if robot.dof == 6:  # the branch that is next to the start, if it is not singular
            regular = np.linalg.svd(np.asarray(robot.jacobian(q)), compute_uv=False)[:, -1] > 0.02
            assert np.abs(found - q)[good & regular].max() < 1e-6


def test_every_returned_position_is_checked_by_forward_kinematics():
    """Poses out of reach are never solved, near the border or far away."""
    rng = np.random.default_rng(6)
    for name in ("ur10e", "panda", "puma560"):
        robot = lw.load(name)
        target = np.array(robot.pose(rng.uniform(-1.0, 1.0, (60, robot.dof))))
        target[:, :3, 3] *= rng.uniform(0.8, 3.0, (60, 1))
        found = motion.inverse_kinematics(robot, target, strict=False, starts=8)
        errors = np.abs(np.asarray(robot.pose(found.q)) - target).max(axis=(-2, -1))
        assert (errors[found.converged] < 1e-8).all()
        assert (errors[~found.converged] > 1e-9).all()
        assert 0 < found.converged.sum() < 60


def test_the_search_is_not_needed_where_there_is_a_closed_form(monkeypatch):
    def search(*_):
        raise AssertionError("the search")

    monkeypatch.setattr(inverse._Problem, "search", search)
    for name in ("ur10e", "puma560", "puma260"):
        robot = lw.load(name)
        lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
        q = lower + (upper - lower) * np.random.default_rng(1).random((500, 6))
        assert motion.inverse_kinematics(robot, robot.pose(q)).converged.all()


def test_kernels_have_the_same_bits_alone_and_in_c():
    from linkwise.compiler.ir import interpret

    robot = lw.load("ur10e")
    q = np.random.default_rng(3).uniform(-2, 2, (9, 6))
    rows = np.ascontiguousarray(np.asarray(robot.pose(q))[:, :3]).reshape(-1, 12)
    kernel = branches_kernel(robot, None)
    together, missed = kernel(rows, np.zeros((9, 1)))
    for k in range(9):
        alone, _ = kernel(rows[k], np.zeros(1))
        assert np.array_equal(alone, together[k])
    exact, _ = interpret.run(kernel.program("float64"), rows[0], [0.0])
    assert np.array_equal(np.reshape(exact, (8, 6)), together[0])
    assert (missed <= 0).sum() >= 9


def test_locked_is_checked():
    with pytest.raises(ValueError, match="locked: ur10e has six joints"):
        motion.closed_form_inverse_kinematics(lw.load("ur10e"), np.eye(4), locked=0.1)
    with pytest.raises(ValueError, match="locked: expected a shape"):
        motion.closed_form_inverse_kinematics(lw.load("panda"), np.eye(4), locked=[0.1, 0.2])
    coupled = lw.load("puma560")
    joints = [replace(j, limits=lw.Limits()) if j.moves else j for j in coupled.joints]
    free = lw.Robot("free", coupled.links, joints)
    assert motion.inverse_kinematics(free, free.pose(np.full(6, 0.3))).converged


def test_the_closest_branch_of_seven_joints_is_nearer_than_the_first():
    for name in ("panda", "iiwa14"):
        robot = lw.load(name)
        lower, upper = robot.limits.lower, robot.limits.upper
        rng = np.random.default_rng(9)
        q, start = (lower + (upper - lower) * rng.random((200, 7)) for _ in range(2))
        poses = np.asarray(robot.pose(q))
        far = {}
        for closest in (False, True):
            found = motion.inverse_kinematics(robot, poses, start=start, closest=closest)
            assert found.converged.all()
            assert ((found.q >= lower) & (found.q <= upper)).all()
            far[closest] = np.abs(found.q - start).max(axis=1)
        assert np.median(far[True]) < np.median(far[False])
        one = motion.inverse_kinematics(robot, poses[3], start=start[3], closest=True)
        assert np.array_equal(
            one.q, motion.inverse_kinematics(robot, poses[:5], start=start[:5], closest=True).q[3]
        )


def test_angles_of_a_locked_joint_are_tried_from_the_nearest_on():
    """All of them, evenly over what the limits allow, first those beside the start."""
    for begin, low, high in ((0.2, -2.0, 1.5), (-1.9, -2.0, 1.5), (0.0, -9.0, 9.0)):
        tried: list[float] = []

        def at(angle, tried=tried):
            tried.append(float(angle))
            return closed_form.FAR, [0.0, 0.0]

        closed_form._over_angles(at, 2, begin, low, high, closed_form.OUTWARD)
        low, high = max(low, begin - np.pi), min(high, begin + np.pi)
        assert len(tried) == closed_form.ANGLES
        assert tried[0] == begin
        assert min(tried) >= low - 1e-12
        assert max(tried) <= high + 1e-12
        np.testing.assert_allclose(np.diff(np.sort(tried)), (high - low) / len(tried), rtol=1e-9)
        round_about = np.abs(np.array(tried) - begin)
        assert (np.diff(np.minimum(round_about, high - low - round_about)) >= -1e-9).all()
        for search in (closed_form.OUTWARD, closed_form.SPREAD, closed_form.CLOSEST):
            found, (angle, _) = closed_form._over_angles(
                lambda angle: (np.where(angle > 0.5, 0.1, closed_form.FAR), [angle, 0.0]),
                2,
                begin,
                low,
                high,
                search,
            )
            assert found < closed_form.FAR
            assert 0.5 < angle <= high + 1e-12


def test_spread_angles_leave_no_gap():
    """After n tries no part of the range that is wider than 2.7/n of it is without one."""
    for begin, low, high in ((0.2, -2.0, 1.5), (-1.9, -2.0, 1.5), (0.0, -9.0, 9.0)):
        tried: list[float] = []

        def at(angle, tried=tried):
            tried.append(float(angle))
            return closed_form.FAR, []

        closed_form._over_angles(at, 0, begin, low, high, closed_form.SPREAD)
        low, high = max(low, begin - np.pi), min(high, begin + np.pi)
        assert len(tried) == closed_form.SPREAD_ANGLES
        assert tried[0] == begin
        for n in range(1, len(tried) + 1):
            some = np.sort(tried[:n])
            gaps = np.diff([*some, some[0] + high - low])
            assert gaps.max() <= 2.7 / n * (high - low)
            assert some[0] >= low - 1e-12
            assert some[-1] <= high + 1e-12


def test_ways_within_limits_are_those_of_the_angles():
    """Ranges of any width, without ends too: the shorter way that stays inside, by its own formula over angles."""
    rng = np.random.default_rng(3)
    turn = 2.0 * np.pi
    kinds = set()
    for _ in range(4000):
        here = rng.uniform(-4.0, 4.0)
        lower = here - rng.choice([0.01, 1.0, 4.0, 9.0, np.inf]) * rng.uniform()
        upper = here + rng.choice([0.01, 1.0, 4.0, 9.0, np.inf]) * rng.uniform()
        x = rng.uniform(-np.pi, np.pi)
        ways = [abs(x + k * turn - here) for k in range(-4, 5) if lower <= x + k * turn <= upper]
        way = closed_form.Range.about(here, lower, upper).way((np.cos(x), np.sin(x)))
        if not ways:
            kinds.add("none")
            assert way == closed_form.FAR
            continue
        wanted = min(ways)
        kinds.add("long" if wanted > np.pi else "short")
        assert way == pytest.approx(
            3.0 + np.cos(wanted) if wanted > np.pi else 1.0 - np.cos(wanted), abs=1e-12
        )
    assert kinds == {"none", "long", "short"}


def test_a_pose_whose_branches_are_all_outside_the_limits_is_not_solved():
    """The same poses with wide and with narrow limits: what is found there is one of all branches."""
    rng, robot = np.random.default_rng(12), lw.load("ur10e")
    q, near = rng.uniform(-1.5, 1.5, (2, 200, robot.dof))
    rows = np.ascontiguousarray(np.asarray(robot.pose(q))[:, :3]).reshape(-1, 12)
    every, missed = branches_kernel(robot, None)(rows, np.zeros((200, 1)))
    lower, upper = np.full(robot.dof, -1.6), np.full(robot.dof, 1.6)
    turned = every - 2.0 * np.pi * np.round(every / (2.0 * np.pi))
    turned[missed > 0.0] = np.inf
    inside = ((turned > lower) & (turned < upper)).all(axis=-1)
    _, wide = nearest_kernel(robot, None)(rows, near, np.full(robot.dof, -6.0), np.full(robot.dof, 6.0))
    assert (np.abs(wide).max(axis=1) < 1e-8).all()
    narrow = rng.uniform(0.1, 1.6, robot.dof)
    some = ((turned > -narrow) & (turned < narrow)).all(axis=-1).any(axis=-1)
    assert inside.any(axis=-1).all()
    assert 0 < some.sum() < 200
    found, error = nearest_kernel(robot, None)(rows, np.clip(near, -narrow, narrow), -narrow, narrow)
    np.testing.assert_array_equal(np.abs(error).max(axis=1) < 1e-8, some)
    assert (np.abs(found) <= narrow + 1e-9).all()


def assert_reached(arm, q):
    """There are branches for the pose of every position, and all of them have it."""
    poses = arm.pose(q)
    branches = motion.closed_form_inverse_kinematics(arm, poses)
    there = np.isfinite(branches).all(axis=-1)
    assert there.any(axis=1).all()
    missed = np.abs(arm.pose(np.nan_to_num(branches)) - poses[:, None]).max(axis=(-1, -2))
    assert missed[there].max() < 1e-6


@pytest.mark.parametrize("name", ["ur10e", "slanted"])
def test_arms_whose_last_axis_is_parallel_to_three_others_have_branches_there(name):
    """Where axis 6 is parallel to 2, 3 and 4, any turn of it does: one is given for which the links reach."""
    rng = np.random.default_rng(32)
    if name == "slanted":  # 6 parallel to 2 at 0.7 rad of 5
        axes, points = random_chain("three parallel", 6, rng)
        across = np.cross(axes[1], axes[4])
        axes[4] = across / np.linalg.norm(across)
        turned = closed_form.arm_geometry.turn_about(-0.7 * axes[4]) @ axes[1]
        axes[5], bend = turned, 0.7
        arm = arm_of(axes, points, rng)
    else:
        arm, bend = lw.load(name), 0.0
    q = rng.uniform(-3.0, 3.0, (2000, 6))
    q[:, 4] = bend
    assert_reached(arm, q)


def test_a_level_that_no_turn_changes_has_unit_vectors_as_turns():
    for height in (0.0, 1.0, -1.0):
        first, second, _ = subproblems.levelled(0.0, 0.0, height)
        assert np.hypot(*first) == np.hypot(*second) == 1.0


def test_branches_of_wrists_above_the_waist_reach_the_pose():
    """A wrist that is exactly on the first axis, straight or not, at positions that are exact in binary."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1)]
    points = [(0, 0, 0), (0, 0, 0.5), (0, 0, 1.0), (0, 0, 1.25), (0, 0, 1.25), (0, 0, 1.25)]
    rng = np.random.default_rng(1)
    arm = arm_of(np.array(axes, float), np.array(points, float), rng)
    q = np.where(rng.random((500, 6)) < 0.6, 0.0, rng.uniform(-3, 3, (500, 6)))
    q[:, 1:3] = 0.0
    assert_reached(arm, q)
