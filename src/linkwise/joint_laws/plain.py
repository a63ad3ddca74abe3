"""The plain friction that comes nearest to that of a joint, for programs that know no other."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from linkwise.joint_laws.coulomb import CoulombFriction
from linkwise.joint_laws.law import Law
from linkwise.joint_laws.saturating import SaturatingFriction
from linkwise.joint_laws.stribeck import Stribeck

RICHER: tuple[Law, ...] = (Stribeck(), SaturatingFriction())
SPEEDS = 200  # at which the two are compared
TYPICAL_SPEED = 1.0  # [rad/s or m/s] up to which, for a joint without a speed limit


def plain_friction(joint: Any) -> tuple[float, float]:
    """(viscous friction, Coulomb friction) of a joint: its own, or what is nearest up to its speed limit.

    Coulomb friction is the mean of both directions. Load friction, which depends on torques, is left out.
    """
    forward, backward = joint.coulomb_friction
    coulomb = forward if forward == backward else 0.5 * forward + 0.5 * backward
    if all(law.absent(joint) for law in RICHER):
        return joint.viscous_friction, coulomb
    top = joint.limits.velocity if hasattr(joint, "limits") else 0.0  # a motor of several joints has none
    v = np.linspace(0.0, top if 0.0 < top < np.inf else TYPICAL_SPEED, SPEEDS + 1)[1:]
    both = [CoulombFriction(), *RICHER]
    present = [law for law in both if not law.absent(joint)]
    torque = joint.viscous_friction * v + np.array(
        [sum(float(law.torque(joint, 0.0, s) - law.torque(joint, 0.0, -s)) / 2 for law in present) for s in v]  # type: ignore[arg-type]
    )
    line = cast(np.ndarray, np.polyfit(v, torque, 1))
    slope, height = float(line[0]), float(line[1])
    if slope < 0.0:
        return 0.0, float(torque.mean())
    if height < 0.0:
        return float(v @ torque / (v @ v)), 0.0
    return slope, height
