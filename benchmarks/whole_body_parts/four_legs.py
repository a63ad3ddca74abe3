"""A body on four legs of three joints, which scripts and tests give feet and limits of their own."""

from __future__ import annotations

from typing import Any

import linkwise as lw

LEGS = ((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1))
PARTS = (("side", (1, 0, 0), 0.0), ("hip", (0, 1, 0), 0.2), ("knee", (0, 1, 0), 0.2))
"""Axes and lengths [m]."""


def four_legs(straight: float | None = None, **limits: Any) -> lw.Robot:
    """On a floating base, without contacts; joints are named as the links that they move, ends of legs are foot0 to 3.

    Args:
        straight: largest position of the knees [rad]; by default that of all joints.
        **limits: of all joints, as ``lw.Limits`` takes them.
    """
    links = [lw.Link("body", lw.Inertia.from_com(8.0, (0, 0, 0), (0.1, 0.2, 0.25)))]
    joints, frames = [], []
    for leg, (x, y) in enumerate(LEGS):
        parent, at = "body", (x, y, 0.0)
        for part, axis, length in PARTS:
            name = f"{part}{leg}"
            links.append(lw.Link(name, lw.Inertia.from_com(0.5, (0, 0, -0.5 * length), (2e-3, 2e-3, 5e-4))))
            own = {**limits, "upper": straight} if part == "knee" and straight is not None else limits
            place = lw.Transform.from_rpy(at)
            joints.append(lw.Joint(name, "revolute", parent, name, place, axis, limits=lw.Limits(**own)))
            parent, at = name, (0.0, 0.0, -length)
        frames.append(lw.Frame(f"foot{leg}", parent, lw.Transform.from_rpy(at)))
    return lw.Robot("legs", links, joints, frames=frames).with_base("floating")


def round_feet(radius: float = 0.02) -> list[lw.Contact]:
    """Spheres at the ends of the legs."""
    legs, end = range(len(LEGS)), (0.0, 0.0, -PARTS[-1][2])
    return [
        lw.Contact(f"knee{k}", offset=end, radius=radius, friction=0.8, name=f"foot{k} sphere") for k in legs
    ]
