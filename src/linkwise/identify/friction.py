"""Torques of an axis that are not its links': rotor inertia, friction, offset, stiffness. Each term has one
coefficient.

With s = |q̇| and the direction z, which is sgn q̇ with a memory:

    rotor_inertia   q̈                       viscous       q̇
    coulomb         sgn q̇                   offset        1
    presliding(δ)   z                       load(δ)       z·|τ_link|
    saturating(v,δ) z·s/(s + v)             stiffness     q
    tanh(v)         tanh(q̇/v)               stribeck(v)   sgn q̇·exp(−(q̇/v)²)
    forward         1 if q̇ > 0              backward      −1 if q̇ < 0

The direction z of *presliding* friction depends on positions: it goes from −1 to 1 while the axis moves by 2δ [rad or
m], and stays where it is while the axis rests, as the bristles of a gear do (the stop operator of Prandtl, the
elements of a Maxwell slip model). For small δ it is sgn q̇ that remembers the last direction, so it does not chatter
at rest. *Load* friction grows with the torque that the gear carries; *saturating* friction describes the viscous
friction of a greased gear. All of these are linear in their coefficients, so they are columns of a regression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.errors import UnknownNameError
from linkwise.flags import flag
from linkwise.model.model import suggest
from linkwise.once import once


@dataclass(frozen=True)
class Term:
    """One term of an axis: its kind, and a speed [rad/s] and a width δ [rad] for the kinds that have them."""

    kind: str
    speed: float = 0.0
    width: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError(f"friction: no term {self.kind!r}; {suggest(self.kind, KINDS)}")

    @property
    def label(self) -> str:
        """The name of its coefficient."""
        known = LABELS.get(self.kind, self.kind)
        numbers = [f"{value:g}" for value in (self.speed, self.width) if value]
        return f"{known}({', '.join(numbers)})" if numbers else known

    @property
    def dissipates(self) -> bool:
        """Whether it cannot drive the axis as long as its coefficient is not negative."""
        return self.kind not in ("rotor_inertia", "offset", "stiffness")


@dataclass
class AxisSignals:
    """The motion of axes, shape (N, axes), and the torque that links put on them.

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
        """Of joint motions (N, n) and the torques of the links (N, n); ``axes`` (axes, n)."""
        share = axes / (axes**2).sum(axis=1, keepdims=True)
        return cls(q @ axes.T, qd @ axes.T, qdd @ axes.T, load @ share.T, sampled_sign=sampled_sign)

    def with_load(self, load: np.ndarray, axes: np.ndarray) -> AxisSignals:
        """The same motion under other torques of the links, (N, n)."""
        share = axes / (axes**2).sum(axis=1, keepdims=True)
        return AxisSignals(self.q, self.qd, self.qdd, load @ share.T, self._directions, self.sampled_sign)

    @once
    def sign(self) -> np.ndarray:
        """sgn q̇ (N, axes)."""
        return mean_sign(self.qd) if self.sampled_sign is None else self.sampled_sign

    def direction(self, width: float) -> np.ndarray:
        """z (N, axes) in [−1, 1] for a width δ."""
        if width not in self._directions:
            self._directions[width] = directions(self.q, (width,))[0]
        return self._directions[width]

    def prepare(self, widths: Sequence[float]) -> None:
        """Compute the directions of several widths together, which is faster."""
        missing = [width for width in widths if width not in self._directions]
        if missing:
            self._directions.update(zip(missing, directions(self.q, missing), strict=True))


def directions(q: np.ndarray, widths: Sequence[float]) -> np.ndarray:
    """z of positions q (N, axes), shape (widths, N, axes): z ← clip(z + Δq/δ, −1, 1).

    What happened before the recording is not known: z starts as if the axis had begun to move one sample earlier.
    """
    steps = np.diff(q, axis=0) / np.asarray(widths, dtype=float)[:, None, None]
    z = np.zeros((len(widths), *q.shape))
    if not steps.shape[1]:
        return z
    state = z[:, 0] = np.clip(steps[:, 0], -1.0, 1.0)
    for k in range(steps.shape[1]):
        state = np.minimum(np.maximum(state + steps[:, k], -1.0), 1.0)
        z[:, k + 1] = state
    return z


def mean_sign(v: np.ndarray) -> np.ndarray:
    """sgn v (N, …), averaged from half a sample before to half a sample after, with v straight in between.

    A reversal lies somewhere between two samples; the interpolation gives its time. The mean of sgn v along a
    straight line from a to b is (|b| − |a|)/(b − a).
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
    "coulomb": lambda a, term: a.sign,
    "offset": lambda a, term: np.ones_like(a.qd),
    "presliding": lambda a, term: a.direction(term.width),
    "load": lambda a, term: a.direction(term.width) * np.abs(a.load),
    "saturating": lambda a, term: a.direction(term.width) * np.abs(a.qd) / (np.abs(a.qd) + term.speed),
    "stiffness": lambda a, term: a.q,
    "tanh": lambda a, term: np.tanh(a.qd / term.speed),
    "stribeck": lambda a, term: a.sign * np.exp(-((a.qd / term.speed) ** 2)),
    "forward": lambda a, term: 0.5 * (1 + a.sign),
    "backward": lambda a, term: -0.5 * (1 - a.sign),
}
LABELS = {
    "viscous": "viscous_friction",
    "coulomb": "coulomb_friction",
    "forward": "coulomb_friction_forward",
    "backward": "coulomb_friction_backward",
}


def column(signals: AxisSignals, term: Term) -> np.ndarray:
    """The torque that a unit coefficient causes on every axis, shape (N, axes)."""
    return KINDS[term.kind](signals, term)


Friction = tuple[tuple[Term, ...], ...]
"""The terms of every axis: joints first, then the axes of coupled motors."""

MODELS: dict[str, tuple[Term, ...]] = {
    "none": (),
    "viscous": (Term("viscous"), Term("offset")),
    "coulomb": (Term("viscous"), Term("coulomb"), Term("offset")),
    "asymmetric": (Term("viscous"), Term("forward"), Term("backward")),
    "tanh": (Term("viscous"), Term("tanh", speed=0.02), Term("offset")),
    "stribeck": (Term("viscous"), Term("coulomb"), Term("stribeck", speed=0.1), Term("offset")),
    "presliding": (Term("viscous"), Term("presliding", width=3e-4), Term("offset")),
    "rich": (
        *(Term("viscous"), Term("offset"), Term("presliding", width=3e-4), Term("load", width=3e-4)),
        Term("saturating", speed=0.1, width=3e-4),
    ),
}


def friction_named(name: str, joints: int, coupled: int = 0, *, rotor: bool = True) -> Friction:
    """A friction model by name for every axis.

    Args:
        name: a name of ``MODELS``.
        joints: number of joints.
        coupled: number of coupled axes, which have no offset.
        rotor: whether the rotor's inertia is added.
    """
    if name not in MODELS:
        raise UnknownNameError(f"friction: no model {name!r}; {suggest(name, [*MODELS, 'auto'])}")
    terms = ((Term("rotor_inertia"),) if flag("rotor", rotor) else ()) + MODELS[name]
    return (terms,) * joints + (tuple(term for term in terms if term.kind != "offset"),) * coupled
