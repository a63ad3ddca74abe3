"""A body on four legs of three joints, which scripts and tests give feet and limits of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import linkwise as lw


def four_legs(straight: float | None = None, **limits: Any) -> lw.Robot:
    """``lw.quadruped`` without contacts.

    Args:
        straight: largest position of the knees [rad]; by default that of all joints.
        **limits: of all joints, as ``lw.Limits`` takes them.
    """
    own = lw.Limits(**limits)
    knee = own if straight is None else replace(own, upper=straight)
    return lw.quadruped(None, limits={"side": own, "hip": own, "knee": knee})


def round_feet(radius: float = 0.02) -> list[lw.Contact]:
    """Spheres at the ends of the legs."""
    legs, end = range(4), (0.0, 0.0, -0.2)
    return [
        lw.Contact(f"knee{k}", offset=end, radius=radius, friction=0.8, name=f"foot{k} sphere") for k in legs
    ]
