"""Exciting motions: exact gradients, limits kept everywhere, better than chance, the same for the same seed."""

import re
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Clearance, shapes_of
from linkwise.errors import UnknownNameError
from linkwise.geometry.skeleton import body_poses
from linkwise.identify import Box, IdentificationError, MotionLimits, Room, Tool, excite, friction_named
from linkwise.identify.estimation.base import base_of
from linkwise.identify.excitation.basis import FourierBasis, SplineBasis
from linkwise.identify.excitation.criteria import Criterion
from linkwise.identify.excitation.limits import Bounds
from linkwise.identify.excitation.motions import Search

BASES = {"fourier": FourierBasis(5.0, 4), "spline": SplineBasis(5.0, 8)}


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma560")


@pytest.fixture(scope="module")
def excited(puma):
    """A motion of each family, under torque and workspace limits."""
    box = Box(lower=(-np.inf, -np.inf, -0.5), upper=(np.inf, 0.7, np.inf))
    limits = MotionLimits.of(puma, acceleration=8.0, share=0.7)
    limits = MotionLimits(
        limits.lower, limits.upper, limits.velocity, limits.acceleration, [40, 70, 30, 10, 10, 10]
    )
    return {
        family: (
            excite(puma, family=family, limits=limits, workspace=box, starts=1, iterations=60),
            limits,
            box,
        )
        for family in BASES
    }


@pytest.mark.parametrize("family", BASES)
def test_a_motion_begins_and_ends_at_rest_and_its_rates_are_derivatives(family):
    basis = BASES[family]
    theta = np.random.default_rng(0).normal(size=(basis.size, 2))
    t = np.linspace(0.0, basis.duration, 2001)
    q, qd, qdd = (B @ theta for B in basis.matrices(t))
    for x in (qd, qdd):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-9)
    h = t[1]
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * h), qd[1:-1], atol=2e-3)
    np.testing.assert_allclose((qd[2:] - qd[:-2]) / (2 * h), qdd[1:-1], atol=2e-2)
    moment = basis.trajectory(theta).at(t)
    for mine, theirs in zip((q, qd, qdd), moment, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    # the first coefficient is a constant, as ``excite`` relies on
    np.testing.assert_allclose(basis.matrices(t)[0][:, 0], 1.0, atol=1e-12)


@pytest.mark.parametrize("name", ["condition", "log_det"])
@pytest.mark.parametrize("family", BASES)
def test_gradient_against_finite_differences(puma, family, name):
    room = Room(inside=Box(upper=(0.3, 0.3, 0.3)))
    tight = MotionLimits(-np.full(6, 0.4), np.full(6, 0.4), np.full(6, 0.5), np.full(6, 1.0), np.full(6, 5.0))
    free = MotionLimits.of(puma)
    search = Search(Criterion(puma), BASES[family], Bounds(puma, free), name)
    assert len(search.grid) == max(2000, 120 * BASES[family].size)
    theta = search.random(np.random.default_rng(1))
    search.bounds = Bounds(puma, tight, Clearance(puma, room))  # every penalty is at work
    for k, quantity in enumerate(("linear", "torque", "room")):
        parts = [np.zeros((120, 6)) for _ in range(3)]
        motion = search.motion(theta)
        value = (
            search.bounds._linear(motion, parts, 1.0),
            search.bounds._torque(motion, parts, 1.0),
            search.bounds.room_penalty(motion[0], 1.0)[0],
        )[k]
        assert value > 0, quantity
    gradient = search.cost(theta, name, 10.0)[1]
    rng, h = np.random.default_rng(2), 1e-6
    for _ in range(5):
        way = rng.normal(size=theta.shape)
        slope = (
            search.cost(theta + h * way, name, 10.0)[0] - search.cost(theta - h * way, name, 10.0)[0]
        ) / (2 * h)
        assert abs(slope - (gradient * way).sum()) < 1e-5 * np.abs(gradient * way).sum()


def test_columns_are_those_of_identification(puma):
    criterion = Criterion(puma)
    assert criterion.labels == base_of(puma, np.eye(6), friction_named("coulomb", 6)).labels
    rng = np.random.default_rng(3)
    motion = rng.normal(size=(3, 50, 6))
    W = criterion.matrix(motion) * np.sqrt(50) / criterion.rows[:, None] / criterion.scale
    for joint, name in enumerate(puma.joint_names):
        for label, expected in (
            ("rotor_inertia", motion[2]),
            ("viscous_friction", motion[1]),
            ("coulomb_friction", np.sign(motion[1])),
            ("torque_offset", np.ones((50, 6))),
        ):
            column = W[..., criterion.labels.index(f"{name}.{label}")]
            np.testing.assert_allclose(column, expected * (np.arange(6) == joint), rtol=1e-12)


@pytest.mark.parametrize("family", BASES)
def test_limits_are_kept_on_a_fine_grid(puma, excited, family):
    found, limits, box = excited[family]
    t = np.linspace(0.0, found.duration, 9973)  # other points than those that were looked at
    q, qd, qdd = found.trajectory.at(t)
    near = 1.0 + 1e-3  # between two points of the grid
    assert (q >= limits.lower - 1e-3).all()
    assert (q <= limits.upper + 1e-3).all()
    assert (np.abs(qd) <= near * limits.velocity).all()
    assert (np.abs(qdd) <= near * limits.acceleration).all()
    torque = np.abs(puma.inverse_dynamics(q, qd, qdd))
    jumps = np.abs(puma.inverse_dynamics(found.samples.q, found.samples.qd, found.samples.qdd))
    assert (jumps <= limits.torque).all()  # Coulomb friction jumps: on the grid itself
    assert (torque <= 1.05 * limits.torque).all()
    for joint in puma.moving_joints:
        p = puma.pose(q, joint.child)[:, :3, 3]
        assert (p >= np.asarray(box.lower) - 1e-3).all()
        assert (p <= np.asarray(box.upper) + 1e-3).all()
    # and they are used: some joint comes close to a limit of speed or acceleration
    assert max((np.abs(qd) / limits.velocity).max(), (np.abs(qdd) / limits.acceleration).max()) > 0.7


@pytest.mark.parametrize("family", BASES)
def test_better_than_random_motions_in_the_same_limits(excited, family):
    found = excited[family][0]
    assert found.condition < found.condition_random / 3
    assert found.log_det > found.log_det_random


def test_more_volume_when_volume_is_asked_for(puma):
    by_volume = excite(puma, criterion="log_det", starts=1, iterations=60)
    by_condition = excite(puma, criterion="condition", starts=1, iterations=60)
    assert by_volume.log_det > by_condition.log_det
    assert by_condition.condition < by_volume.condition


def test_the_same_seed_gives_the_same_motion(tmp_path):
    arm = lw.load("two_link")
    one, two, other = (excite(arm, starts=2, iterations=30, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.samples.q, two.samples.q)
    assert np.abs(one.samples.q - other.samples.q).max() > 1e-3
    assert one.sampled(100.0, periods=2).q.shape == (2001, 2)
    one.write_csv(tmp_path / "motion.csv", rate=50.0)
    assert len((tmp_path / "motion.csv").read_text().splitlines()) == 502


def test_a_middle_posture_that_is_not_allowed_is_replaced(puma):
    """In the middle of its ranges the arm is stretched out: a low ceiling forbids that."""
    reach = puma.pose(MotionLimits.of(puma).middle, puma.moving_joints[-1].child)[:3, 3]
    axis = int(np.argmax(np.abs(reach)))
    upper = np.full(3, np.inf)
    lower = np.full(3, -np.inf)
    (upper if reach[axis] > 0 else lower)[axis] = reach[axis] - 0.2 * np.sign(reach[axis])
    tip = Box(lower, upper, frames=[puma.moving_joints[-1].child])
    found = excite(puma, workspace=tip, starts=1, iterations=9)
    p = puma.pose(found.samples.q, tip.frames[0])[:, :3, 3]
    assert (p <= upper).all()
    assert (p >= lower).all()


def test_bad_requests_are_named(puma):
    with pytest.raises(UnknownNameError, match="family: no 'fouriers'; valid: fourier, spline"):
        excite(puma, family="fouriers")
    with pytest.raises(UnknownNameError, match="criterion: no 'conditions'"):
        excite(puma, criterion="conditions")
    with pytest.raises(ValueError, match="workspace: no frame 'hand'"):
        excite(puma, workspace=Box(frames=["hand"]))
    with pytest.raises(
        IdentificationError, match=r"no posture keeps all limits at rest: in the best .* link\d.* inside"
    ):
        excite(puma, workspace=Box(upper=(-5.0, 0.0, 0.0)))
    weak = MotionLimits.of(puma)
    near = (weak.middle - 0.1, weak.middle + 0.1)
    feeble = MotionLimits(*near, weak.velocity, weak.acceleration, np.full(6, 1e-3))
    with pytest.raises(IdentificationError, match="torque limits do not carry the arm"):
        excite(puma, limits=feeble)
    with pytest.raises(ValueError, match="velocity: expected positive numbers"):
        MotionLimits(weak.lower, weak.upper, -weak.velocity, weak.acceleration, weak.torque)
    with pytest.raises(IdentificationError, match="depend on the motion before"):
        excite(puma, friction="presliding")


@pytest.mark.parametrize("name", ["velocity", "acceleration", "torque"])
def test_one_limit_that_is_not_positive_is_refused(name):
    given = {"lower": -np.ones(3), "upper": np.ones(3)}
    given |= {each: np.ones(3) for each in ("velocity", "acceleration", "torque")}
    given[name] = np.array([1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=f"limits: {name}: expected positive numbers"):
        MotionLimits(**given)


@pytest.mark.parametrize(
    ("upper", "middle", "half"), [(2.0, 1.0, 1.0), (2 * np.pi, np.pi, np.pi), (9.0, 0.0, np.pi)]
)
def test_joints_that_turn_more_than_once_stay_within_a_turn(upper, middle, half):
    robot = lw.load("two_link")
    joints = [replace(j, limits=lw.Limits(0.0, upper)) if j.moves else j for j in robot.joints]
    limits = MotionLimits.of(lw.Robot("limited", robot.links, joints))
    np.testing.assert_allclose(limits.lower, middle - half, atol=1e-12)
    np.testing.assert_allclose(limits.upper, middle + half, atol=1e-12)


# -- what the robot must not touch -------------------------------------------------------------------------------------


def lowest_and_nearest(robot: lw.Robot, q: np.ndarray, neighbours: int) -> tuple[float, float]:
    """Height [m] of the lowest point of capsules around moving links, and the least distance of links that are more
    than ``neighbours`` joints apart: by dense points on the axes of capsules, without the functions of the package."""
    capsules = [c for c in shapes_of(robot).capsules if c.body >= 0]
    lowest, nearest = np.inf, np.inf
    for row in q:
        poses = body_poses(robot, row)
        axes = []
        for c in capsules:
            points = c.start + np.linspace(0, 1, 30)[:, None] * (c.end - c.start)
            axes.append(points @ poses[c.body].rotation.T + poses[c.body].translation)
            lowest = min(lowest, float(axes[-1][:, 2].min() - c.radius) if c.body > 0 else np.inf)
        for i, one in enumerate(capsules):
            for k, two in enumerate(capsules[:i]):
                if abs(one.body - two.body) > neighbours:
                    gap = np.linalg.norm(axes[i][:, None] - axes[k][None], axis=2).min()
                    nearest = min(nearest, float(gap) - one.radius - two.radius)
    return lowest, nearest


def test_the_default_motion_keeps_off_the_floor_and_off_itself():
    robot = lw.load("ur10e")
    found = excite(robot, starts=1, iterations=24)
    q = found.trajectory.at(
        np.linspace(0.0, found.duration, 157)
    ).q  # other points than those that were looked at
    lowest, nearest = lowest_and_nearest(robot, q, 3)
    assert lowest > 0.02
    assert nearest > 0.02
    assert found.proved >= 0.02
    assert found.nearest.distance >= found.proved
    assert found.condition < found.condition_random
    free = excite(robot, starts=1, iterations=24, room=Room(floor=None, links=False))
    assert free.clearance is None
    q = free.trajectory.at(np.linspace(0.0, free.duration, 157)).q
    assert lowest_and_nearest(robot, q, 3)[0] < -0.1  # without a floor it goes below


def test_rooms_are_kept():
    """A low ceiling, a forbidden box, a tool."""
    arm = lw.load("two_link")
    room = Room(
        floor=-1.0, inside=Box(upper=(np.inf, np.inf, 1.2)), forbidden=[Box((0.9, -1, -0.2), (1.3, 1, 0.2))]
    )
    found = excite(arm, starts=1, iterations=15, room=replace(room, tool=Tool(0.2)))
    tip = arm.pose(found.samples.q)[:, :3, 3]
    assert tip[:, 2].max() <= 1.2 - 0.2 - 0.02
    assert tip[:, 2].min() >= -1.0 + 0.2 + 0.02
    into = np.maximum(np.abs(tip - [1.1, 0, 0]) - [0.2, 1.0, 0.2], 0.0)
    assert np.linalg.norm(into, axis=1).min() >= 0.2 + 0.02 - 1e-9
    kinds = found.clearance.by_kind(found.samples.q)
    assert set(kinds) == {"floor", "walls", "boxes"}
    assert min(contact.distance for contact, _ in kinds.values()) == pytest.approx(found.nearest.distance)


def test_no_room_says_what_is_hit():
    arm = lw.load("two_link")
    with pytest.raises(
        IdentificationError, match=r"link\d is .* cm inside the forbidden box .* drop the floor"
    ):
        excite(arm, room=Room(forbidden=[Box((-9, -9, -9), (9, 9, 9))]))
    with pytest.raises(ValueError, match="given twice"):
        excite(arm, workspace=Box(), room=Room(inside=Box()))
    bounds = Bounds(arm, MotionLimits.of(arm), Clearance(arm))
    still, down = np.zeros((3, 2)), np.array([[-1.0, 0.3], [1.0, 0.0], [0.5, 0.0]])
    said = bounds.broken(np.array([0.0, 0.5, 1.0]), down, still, still)
    assert said.startswith("at t = 0.50 s link2 is ")
    assert "inside the floor, near (" in said
    assert "2 cm are wanted" in said


@pytest.mark.parametrize("family", BASES)
def test_accelerations_stay_below_their_bound(family):
    """And a motion that is k times slower has a k² times smaller bound, as it has accelerations."""
    usual, theta = BASES[family], np.random.default_rng(5).normal(size=(BASES[family].size, 3))
    for slower in (0.1, 1.0, 10.0):
        duration = slower * usual.duration
        basis = FourierBasis(duration, 4) if family == "fourier" else SplineBasis(duration, 8)
        assert basis.size == usual.size
        largest = np.abs(basis.matrices(np.linspace(0, duration, 5001))[2] @ theta).max(axis=0)
        bound = basis.acceleration_bound(theta)
        assert (largest <= bound).all()
        assert (bound < 40 * largest).all()
        np.testing.assert_allclose(bound * slower**2, usual.acceleration_bound(theta), rtol=1e-9)


def test_progress_says_the_longest_time_first_and_never_goes_back():
    """And the motion is the same as without."""
    robot, seen = lw.load("two_link"), []
    shown = excite(robot, starts=2, iterations=12, progress=lambda words, part: seen.append((words, part)))
    assert re.fullmatch(r"at most about \d+ s", seen[0][0])
    parts = [part for _, part in seen]
    assert parts[0] == 0.0
    assert parts[-1] == 1.0
    assert parts == sorted(parts)
    assert "start 2 of 2" in seen[-1][0]
    quiet = excite(robot, starts=2, iterations=12)
    assert np.array_equal(shown.samples.q, quiet.samples.q)
    assert shown.evaluations == quiet.evaluations
