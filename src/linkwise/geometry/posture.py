"""A position in which a robot is shown first: bent, above its floor, its links apart, in round angles."""

from __future__ import annotations

import math

import numpy as np

from linkwise.core.products import length, times
from linkwise.geometry.keyframes import keyframe_position
from linkwise.geometry.skeleton import Skeleton, body_poses, skeleton
from linkwise.model import Model, Transform
from linkwise.model.joint import Joint

CANDIDATES = 24  # positions of which the best is improved, joint by joint
ANGLES = tuple(math.radians(angle) for angle in (-90, -60, -45, -30, 0, 30, 45, 60, 90))
SLIDES = (0.0, 0.25, 0.5)  # of the range of a joint that slides, the middle of which is ``rest``
TIP = (0.5, 0.35)  # distance from the base axis and height of the last link, as a fraction of the reach
ABOVE = 0.06  # height of all links over the base, as a fraction of the reach
LIMB = 3  # joints of a chain that counts as an arm or a leg
MOST_JOINTS = 12  # of a robot that is bent: legs and hands that are bent at random look broken


def bent_position(model: Model) -> np.ndarray:
    """A position for a drawing, shape (nq,): joints bent in round angles, inside the limits, the links above the base
    and away from each other, the tip in front. The same for the same robot. Robots with several arms or legs stand at
    zero, or in the middle of a range without zero.

    Args:
        model: the robot.
    """
    rest = np.array(model.neutral)
    joints = model.coordinate_joints
    places = np.cumsum([0, *(joint.nq for joint in joints)])[:-1]
    for at, joint in zip(places, joints, strict=True):
        if not joint.free:
            rest[at] = _within(joint, 0.0)
    if len(joints) > MOST_JOINTS or _has_limbs(model) or all(joint.free for joint in joints):
        return rest
    solids, up = skeleton(model), up_of(model)
    rng = np.random.default_rng(0)
    best, most = rest, _score(model, solids, up, rest)
    bent = [(at, _choices(joint)) for at, joint in zip(places, joints, strict=True) if not joint.free]
    tried = []
    for _ in range(CANDIDATES):
        tried.append(rest.copy())
        for at, choices in bent:
            tried[-1][at] = rng.choice(choices)
    for q in tried:
        score = _score(model, solids, up, q)
        best, most = (q, score) if score > most else (best, most)
    for at, choices in bent:
        for choice in choices:
            q = best.copy()
            q[at] = choice
            score = _score(model, solids, up, q)
            best, most = (q, score) if score > most else (best, most)
    return best


def first_position(model: Model) -> np.ndarray:
    """A position in which a robot is shown first, shape (nq,): that of a keyframe of its file, else a bent one.

    Args:
        model: the robot.
    """
    stated = keyframe_position(model)
    return bent_position(model) if stated is None else stated


def _has_limbs(model: Model) -> bool:
    """Whether the robot branches into several chains of ``LIMB`` joints or more; fingers of a gripper are shorter."""
    moving = {joint.child for joint in model.moving_joints}
    longest: dict[str, int] = {}  # joints on the longest chain that begins at a link
    limbs: dict[str, int] = {}
    for joint in reversed(model.joints):  # parents stand before their children
        below = longest.get(joint.child, 0) + (joint.child in moving)
        longest[joint.parent] = max(longest.get(joint.parent, 0), below)
        limbs[joint.parent] = limbs.get(joint.parent, 0) + (below >= LIMB)
    return any(count > 1 for count in limbs.values())


def _choices(joint: Joint) -> list[float]:
    """The round numbers that the limits of a joint allow."""
    low, high = sorted((joint.limits.lower, joint.limits.upper))
    if joint.turns:
        return [angle for angle in ANGLES if low <= angle <= high] or [_within(joint, 0.0)]
    bounded = math.isfinite(low) and math.isfinite(high)
    return [low + part * (high - low) if bounded else 0.2 * part for part in SLIDES]


def _within(joint: Joint, value: float) -> float:
    """The value, or the middle of the range where it is outside."""
    low, high = sorted((joint.limits.lower, joint.limits.upper))
    if low <= value <= high:
        return value
    return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else min(max(value, low), high)


def up_of(model: Model) -> np.ndarray:
    """Opposite to gravity; +z without gravity."""
    gravity = np.array(model.gravity)
    size = length(gravity)
    return -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])


def _score(model: Model, solids: Skeleton, up: np.ndarray, q: np.ndarray) -> float:
    """How well a position shows the robot: larger is better."""
    poses = body_poses(model, q)
    here = Transform.identity()
    ends = []
    for capsule in solids.capsules:
        pose = poses[capsule.body] if capsule.body >= 0 else here
        ends.append([times(pose.rotation, end) + pose.translation for end in (capsule.start, capsule.end)])
    if not ends or solids.reach <= 0:
        return 0.0
    points = np.array(ends) / solids.reach
    moving = np.array([capsule.body >= 0 for capsule in solids.capsules])
    heights = times(points, up)
    low = float(np.minimum(heights[moving] - ABOVE, 0.0).min()) if moving.any() else 0.0
    tip = points[-1, 1]
    aside = length(tip - up * float(times(tip, up)))
    away = abs(aside - TIP[0]) + abs(float(times(tip, up)) - TIP[1])
    middles = points.mean(axis=1)
    gaps = [
        length(middles[i] - middles[j])
        for i in range(len(middles))
        for j in range(i + 2, len(middles))
        if solids.capsules[i].body + 1 < solids.capsules[j].body
    ]
    close = min(min(gaps, default=1.0) - 0.25, 0.0)
    bending = (float(np.abs(q).sum()) + 2.0 * abs(float(q[0]))) / (10.0 * math.pi)
    elbow = float(times(middles, up)[moving].max()) if moving.any() else 0.0
    return 10.0 * low + 4.0 * close - 2.0 * away - bending + 0.5 * elbow
