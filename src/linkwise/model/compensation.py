"""Weight of links that is carried from outside, as numbers of the joints that move them.

MuJoCo's ``gravcomp`` is a share of each body's weight. A moving link here is several bodies, so its joint has the sum
of their compensated masses and first moments (``joint_laws.gravity_compensation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.core.products import times
from linkwise.joint_laws.gravity_compensation import GravityCompensation
from linkwise.model.joint import Joint
from linkwise.model.transform import Transform

if TYPE_CHECKING:
    from linkwise.model.model import Model

Load = tuple[str, Transform, float, np.ndarray]
"""A joint, the pose of a frame in its child link, a mass and a first moment in that frame."""

NAMES = tuple(parameter.name for parameter in GravityCompensation.parameters)


def of_shares(model: Model, shares: Mapping[str, float]) -> list[Joint]:
    """The joints of a robot in which this share of the weight of each of these links is carried."""
    loads: list[Load] = []
    for link in model.links:
        share = shares.get(link.name, 0.0)
        k, pose = model.carrier(link.name)
        if share and k >= 0:
            m, *h = (share * x for x in link.inertia.parameters[:4])
            loads.append((model.moving_joints[k].name, pose, m, np.array(h)))
    return _with_loads(model.joints, loads)


def carried_over(model: Model, joints: Sequence[Joint]) -> list[Joint]:
    """The joints of ``model`` after some of them were fixed: what those carried is added to the joints before them.
    Further terms of fixed joints have no effect and go."""
    fixed = [joint for joint in joints if not joint.moves and any(map(joint.terms.get, NAMES))]
    plain = [joint if joint.moves or not joint.terms else replace(joint, terms={}) for joint in joints]
    if not fixed:
        return plain
    after = model._with(joints=plain)  # pyright: ignore[reportPrivateUsage]
    loads: list[Load] = []
    for joint in fixed:
        k, pose = after.carrier(joint.child)
        m, *h = (joint.terms.get(name, 0.0) for name in NAMES)
        if k >= 0:
            loads.append((after.moving_joints[k].name, pose, m, np.array(h)))
    return _with_loads(plain, loads)


def _with_loads(joints: Sequence[Joint], loads: Sequence[Load]) -> list[Joint]:
    """The joints with what they carry besides."""
    totals: dict[str, np.ndarray] = {}
    for name, pose, m, h in loads:
        moved = np.array([m, *(times(pose.rotation, h) + m * pose.translation)])
        totals[name] = totals[name] + moved if name in totals else moved
    changed: list[Joint] = []
    for joint in joints:
        more = totals.get(joint.name)
        if more is not None:
            known = np.array([joint.terms.get(name, 0.0) for name in NAMES])
            terms = dict(zip(NAMES, (known + more).tolist(), strict=True))
            joint = replace(joint, terms={**joint.terms, **terms})
        changed.append(joint)
    return changed
