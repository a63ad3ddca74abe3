"""Torques of an axis that are not its links': rotor inertia, friction, offset, stiffness. Each term has one
coefficient, and is a law of the identified robot's joint (see ``linkwise.joint_laws``).

    rotor_inertia   q̈                       viscous       q̇
    coulomb         d                       offset        1
    load            d·|T|                   stiffness     q
    saturating(v)   q̇/(|q̇| + v)             stribeck(v)   d/(1 + (q̇/v)²)
    forward         d if d > 0              backward      d if d < 0

d is the direction of friction, and T the torque that the axis carries besides friction. All of these are linear in
their coefficients, so they are columns of a regression; that of *load* needs T from a fit before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.errors import UnknownNameError, suggest
from linkwise.identify.errors import IdentificationError
from linkwise.robot.directions import remembered
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product


@dataclass(frozen=True)
class Term:
    """One term of an axis: its kind, a ``speed`` [rad/s or m/s] for the kinds that have one, and how its direction
    changes: over a speed ``blur`` [rad/s or m/s], or with a memory over a distance ``width`` [rad or m].

    With neither the direction jumps; with both, ``blur`` is for those who know no motion before. All terms of an axis
    have the same direction.
    """

    kind: str
    speed: float = 0.0
    blur: float = 0.0
    width: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError(f"friction: no term {self.kind!r}; {suggest(self.kind, KINDS)}")

    @property
    def label(self) -> str:
        """The name of its coefficient: the end of the label of a robot's parameter."""
        return LABELS.get(self.kind, self.kind)

    @property
    def text(self) -> str:
        """The same for people, with its speed and direction."""
        parts = [f"speed {self.speed:g}"] * bool(self.speed)
        if self.kind in DIRECTED:
            parts += [f"over {self.width:g} of way"] * bool(self.width)
            parts += [f"over a speed of {self.blur:g}"] * bool(self.blur and not self.width)
        return f"{self.label} ({', '.join(parts)})" if parts else self.label

    @property
    def dissipates(self) -> bool:
        """Whether it cannot drive the axis as long as its coefficient is not negative."""
        return self.kind not in ("rotor_inertia", "offset", "stiffness")


@dataclass
class AxisSignals:
    """The motion of axes, shape (N, axes), and the torque that they carry besides friction.

    ``sampled_sign`` is sgn q̇ as a sampled torque shows it, see ``Signals.signs``; without it the mean between samples.
    """

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    load: np.ndarray
    _directions: dict[float, np.ndarray] = field(default_factory=dict)
    sampled_sign: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        load: np.ndarray,
        axes: np.ndarray,
        sampled_sign: np.ndarray | None = None,
    ) -> AxisSignals:
        """Of joint motions (N, n) and the torques that joints carry (N, n); ``axes`` (axes, n)."""
        share = axes / (axes**2).sum(axis=1, keepdims=True)
        return cls(
            product(q, axes.T),
            product(qd, axes.T),
            product(qdd, axes.T),
            product(load, share.T),
            sampled_sign=sampled_sign,
        )

    def with_load(self, load: np.ndarray, axes: np.ndarray) -> AxisSignals:
        """The same motion of joints that carry other torques, (N, n)."""
        share = axes / (axes**2).sum(axis=1, keepdims=True)
        return AxisSignals(
            self.q, self.qd, self.qdd, product(load, share.T), self._directions, self.sampled_sign
        )

    @once
    def sign(self) -> np.ndarray:
        """sgn q̇ (N, axes)."""
        return mean_sign(self.qd) if self.sampled_sign is None else self.sampled_sign

    def direction(self, term: Term) -> np.ndarray:
        """d (N, axes) in [−1, 1], as the term has it."""
        if term.width:
            self.prepare([term.width])
            return self._directions[term.width]
        if term.blur:
            return self.qd / np.sqrt(self.qd**2 + term.blur**2)
        return self.sign

    def prepare(self, widths: Sequence[float]) -> None:
        """Compute the directions of several widths together, which is faster."""
        missing = [width for width in widths if width not in self._directions]
        if missing:
            found = remembered(self.q, np.array(missing)[:, None])
            self._directions.update(zip(missing, found, strict=True))


def mean_sign(v: np.ndarray) -> np.ndarray:
    """sgn v (N, …), averaged from half a sample before to half a sample after, with v straight in between.

    A reversal lies somewhere between two samples; this is where. The mean of sgn v along a straight line from a to b is
    (|b| − |a|)/(b − a).
    """
    middle = 0.5 * (v[1:] + v[:-1])
    before = np.concatenate([v[:1], middle])
    after = np.concatenate([middle, v[-1:]])
    return 0.5 * (_mean_sign(before, v) + _mean_sign(v, after))


def _mean_sign(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    flat = a == b
    return np.where(flat, np.sign(a), (np.abs(b) - np.abs(a)) / np.where(flat, 1.0, b - a))


KINDS: dict[str, Callable[[AxisSignals, Term], np.ndarray]] = {
    "rotor_inertia": lambda a, term: a.qdd,
    "viscous": lambda a, term: a.qd,
    "coulomb": lambda a, term: a.direction(term),
    "offset": lambda a, term: np.ones_like(a.qd),
    "load": lambda a, term: a.direction(term) * np.abs(a.load),
    "saturating": lambda a, term: a.qd / (np.abs(a.qd) + term.speed),
    "stiffness": lambda a, term: a.q,
    "stribeck": lambda a, term: a.direction(term) / (1.0 + (a.qd / term.speed) ** 2),
    "forward": lambda a, term: np.maximum(a.direction(term), 0.0),
    "backward": lambda a, term: np.minimum(a.direction(term), 0.0),
}
DIRECTED = ("coulomb", "load", "stribeck", "forward", "backward")
"""Kinds that depend on the direction of friction."""
NOT_COUPLED = ("offset", "stiffness", "load")
"""Kinds that motors of several joints do not have: what they carry is not known, and joints have the others."""
LABELS = {
    "viscous": "viscous_friction",
    "coulomb": "coulomb_friction",
    "forward": "coulomb_friction_forward",
    "backward": "coulomb_friction_backward",
    "offset": "torque_offset",
    "load": "load_friction",
    "saturating": "saturating_friction",
    "stribeck": "stribeck_friction",
}


def column(signals: AxisSignals, term: Term) -> np.ndarray:
    """The torque that a unit coefficient causes on every axis, shape (N, axes)."""
    return KINDS[term.kind](signals, term)


Friction = tuple[tuple[Term, ...], ...]
"""The terms of every axis: joints first, then the axes of coupled motors."""

_VISCOUS, _OFFSET = Term("viscous"), Term("offset")
MODELS: dict[str, tuple[Term, ...]] = {
    "none": (),
    "viscous": (_VISCOUS, _OFFSET),
    "coulomb": (_VISCOUS, Term("coulomb"), _OFFSET),
    "asymmetric": (_VISCOUS, Term("forward"), Term("backward")),
    "smooth": (_VISCOUS, Term("coulomb", blur=0.02), _OFFSET),
    "stribeck": (_VISCOUS, Term("coulomb", blur=0.02), Term("stribeck", speed=0.1, blur=0.02), _OFFSET),
    "presliding": (_VISCOUS, Term("coulomb", width=3e-4), _OFFSET),
    "rich": (
        *(_VISCOUS, _OFFSET, Term("coulomb", width=3e-4), Term("load", width=3e-4)),
        Term("saturating", speed=0.1),
    ),
}
MODELS["tanh"] = MODELS["smooth"]  # the name under which others know it


def check_springs(robot: Robot, friction: str | Friction) -> None:
    """Refuse springs of the robot that no term of a fit has: their torques would count as friction, and be lost.

    Args:
        robot: as its file says.
        friction: the name of a model, or the terms of every axis.
    """
    joints = [joint for joint in robot.coordinate_joints if not joint.free]
    for k, joint in enumerate(joints):
        fitted = not isinstance(friction, str) and any(term.kind == "stiffness" for term in friction[k])
        if joint.number("stiffness") and not fitted:
            raise IdentificationError(
                f"identification: the spring of {joint.name!r} would be taken for friction and lost; set "
                f"{joint.name}.stiffness to 0, or give identify friction= with Term('stiffness') for this joint"
            )


def friction_named(name: str, joints: int, coupled: int = 0, *, rotor: bool = True) -> Friction:
    """A friction model by name for every axis.

    Args:
        name: a name of ``MODELS``.
        joints: number of joints.
        coupled: number of coupled axes, which have fewer terms, see ``NOT_COUPLED``.
        rotor: whether the rotor's inertia is added.
    """
    if name not in MODELS:
        raise UnknownNameError(f"friction: no model {name!r}; {suggest(name, [*MODELS, 'auto'])}")
    terms = ((Term("rotor_inertia"),) if flag("rotor", rotor) else ()) + MODELS[name]
    return (terms,) * joints + (tuple(term for term in terms if term.kind not in NOT_COUPLED),) * coupled
