"""Chains by Denavit and Hartenberg's four numbers per joint, standard ("dh") or modified ("mdh").

* standard (Paul 1981, Izaguirre 1992): T = Rz(q+θ)·Tz(d)·Tx(a)·Rx(α); frame i lies *behind* joint i, whose
  axis is z of frame i−1;
* modified (Craig 1986, Khalil and Kleinfinger 1987, Valera 2003): T = Rx(α)·Tx(a)·Rz(q+θ)·Tz(d); z of frame i
  is the axis of joint i.

For a prismatic joint q adds to d; a fixed one (a flange, say) only carries its frame. In both conventions the
inertial terms of link i are constant in frame i, and the link named ``link3`` has frame 3 as its frame. A
link frame of the model must lie on its joint's axis; frame i of the standard convention does not when the
joint turns and a ≠ 0. There a massless link ``link3_hinge`` turns with the joint (axes of frame 3, origin
shifted back by a), and ``link3`` is fixed to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.core.products import times
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint, Limits
from linkwise.model.model import STANDARD_GRAVITY, Frame, Link, Model
from linkwise.model.transform import Transform, cosine, sine, turn

CONVENTIONS = ("dh", "mdh")
NOTHING, UNLIMITED = Inertia(), Limits()


@dataclass(frozen=True)
class DhJoint:
    """One joint of a chain: its four numbers (angles in rad, lengths in m), its terms, the link it moves."""

    name: str
    link: str
    type: str = "revolute"
    alpha: float = 0.0
    a: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    inertia: Inertia = NOTHING
    limits: Limits = UNLIMITED
    rotor_inertia: float = 0.0
    viscous_friction: float = 0.0
    coulomb_friction: tuple[float, float] = (0.0, 0.0)
    terms: Mapping[str, float] = field(default_factory=dict[str, float])


def chain(
    name: str,
    rows: Sequence[DhJoint],
    convention: str,
    *,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    base: Transform | None = None,
    frames: Iterable[Frame] = (),
    reduced: bool = False,
) -> Model:
    """The model of a chain. Frame 0 is the link ``base``; where a pose ``base`` is given, ``link0`` in it."""
    links, joints = [Link("base")], list[Joint]()
    parent = "base"
    if base is not None:
        links.append(Link("link0"))
        joints.append(Joint("base_mount", "fixed", "base", "link0", base))
        parent = "link0"
    for row in rows:
        place = _modified if convention == "mdh" else _standard
        origin, axis, lag = place(row)
        child = row.link if lag is None else f"{row.link}_hinge"
        joints.append(
            Joint(
                name=row.name,
                type=row.type,
                parent=parent,
                child=child,
                origin=origin,
                axis=axis,
                limits=row.limits,
                rotor_inertia=row.rotor_inertia,
                viscous_friction=row.viscous_friction,
                coulomb_friction=row.coulomb_friction,
                terms=row.terms,
                body="" if lag is None else row.link,
            )
        )
        if lag is not None:
            links.append(Link(child))
            joints.append(Joint(f"{row.link}_mount", "fixed", child, row.link, lag))
        links.append(Link(row.link, row.inertia))
        parent = row.link
    return Model(name, links, joints, gravity=gravity, frames=frames, reduced=reduced)


Placing = tuple[Transform, tuple[float, float, float], Transform | None]


def _modified(row: DhJoint) -> Placing:
    """(pose of the child at q = 0, joint axis in the child's frame, None)."""
    twist = turn(0, row.alpha)
    origin = Transform(times(twist, turn(2, row.theta)), np.array([row.a, 0.0, 0.0]) + row.d * twist[:, 2])
    return origin, (0.0, 0.0, 1.0), None


def _standard(row: DhJoint) -> Placing:
    """(pose of the joint's child at q = 0, axis in its frame, pose of frame i in it where the two differ)."""
    theta = turn(2, row.theta)
    rotation = times(theta, turn(0, row.alpha))
    axis = (0.0, sine(row.alpha), cosine(row.alpha))
    up = np.array([0.0, 0.0, row.d])
    # the axis of a slide has a direction only, that of a hinge also a place
    if row.type in ("prismatic", "fixed") or row.a == 0.0:
        return Transform(rotation, up + row.a * theta[:, 0]), axis, None
    return Transform(rotation, up), axis, Transform.along((1.0, 0.0, 0.0), row.a)


def radians(degrees: float) -> float:
    """Degrees in radians; multiples of 90 become multiples of π/2, of which sine and cosine are exact."""
    quarters = degrees / 90.0
    exact = math.isfinite(quarters) and quarters == round(quarters)
    return quarters * (math.pi / 2) if exact else math.radians(degrees)
