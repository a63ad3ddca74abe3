"""The friction of each axis, chosen by the recording: terms that predict what they have not been fitted to.

Links and friction are fitted with a rich model first. What is left of the torques when the links are taken away is
then explained axis by axis: terms are added as long as they lower the error on blocks of the recording that were left
out of the fit, by enough to be worth a parameter. Links are fitted again with the friction that was found, and so on a
few times. Nothing here depends on the robot: widths and speeds come from a list that covers usual gears.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.identify.fitting import Fit, fit
from linkwise.identify.friction import Term, friction_named
from linkwise.identify.regression import Observer

WIDTHS = (
    3e-4,
    1e-3,
    3e-3,
    1e-2,
)  # [rad or m] in which presliding friction turns over; encoders must resolve it
SPEEDS = (0.03, 0.1, 0.3)  # [rad/s or m/s] at which viscous friction saturates
BLOCKS = 10  # of the recording, each predicted by the others
WORTH = 0.02  # relative reduction of the squared error from which a term is kept
MOST_TERMS = 7
ROUNDS = 3
NEVER = ("load",)

ALWAYS = (Term("viscous"), Term("offset"))
FIRST = (Term("coulomb"), *(Term("presliding", width=w) for w in WIDTHS))
FURTHER = (
    *FIRST,
    *(Term("load", width=w) for w in WIDTHS),
    *(Term("saturating", speed=v, width=w) for w in WIDTHS for v in SPEEDS),
    Term("stiffness"),
)


def choose_friction(observer: Observer, prior: np.ndarray, *, strength: float = 1.0) -> Fit:
    """Friction terms for every axis, and the fit that uses them.

    Args:
        observer: the recordings.
        prior: parameters of the links that are known before, shape (n, 10).
        strength: weight of the prior.
    """
    joints, axes = observer.robot.dof, len(observer.axes)
    plain = friction_named("coulomb", joints, axes - joints)
    found = fit(observer, plain, prior, strength=strength)
    found = fit(
        observer, friction_named("rich", joints, axes - joints), prior, strength=strength, start=found
    )
    for _ in range(ROUNDS):
        friction = tuple(_choose_axis(observer, found, axis) for axis in range(axes))
        same = friction == found.friction
        found = fit(observer, friction, prior, strength=strength, start=found, passes=2)
        if same:
            break
    return found


def _choose_axis(observer: Observer, found: Fit, axis: int) -> tuple[Term, ...]:
    """The terms of one axis, those of the others and the links as they were fitted."""
    mine = [k for k, (a, _) in enumerate(found.regression.terms, found.regression.links) if a == axis]
    inertia = [k for k in mine if found.regression.labels[k].endswith(".rotor_inertia")]
    others = found.x.copy()
    others[[k for k in mine if k not in inertia]] = 0.0
    wanted = found.regression.residuals(others)
    terms = offered(joint=axis < observer.robot.dof)
    columns = observer.term_columns(terms, found.links)[:, axis]
    row = observer.axes[axis]
    never = {k for k, term in enumerate(terms) if term.kind in NEVER}
    trials = _Trials(columns, wanted, row, found.weights, never)
    picked = trials.grow([k for k, term in enumerate(terms) if term in ALWAYS], terms)
    return (Term("rotor_inertia"), *(terms[k] for k in picked))


def offered(*, joint: bool) -> list[Term]:
    """The terms that may be chosen for a joint, or for a further axis, which has no position to hold it."""
    terms = dict.fromkeys((*ALWAYS, *FURTHER))
    return [term for term in terms if joint or term.kind not in ("offset", "stiffness")]


class _Trials:
    """Errors of sets of columns on blocks that were left out, from sums of products alone."""

    def __init__(
        self, columns: np.ndarray, wanted: np.ndarray, row: np.ndarray, weights: np.ndarray, never_negative
    ):
        self.never_negative = never_negative
        importance = float(((weights * row) ** 2).sum())
        target = wanted @ (weights**2 * row)
        self.grams, self.rights, self.squares = [], [], []
        for block in np.array_split(np.arange(len(columns)), BLOCKS):
            C = columns[block]
            self.grams.append(importance * C.T @ C)
            self.rights.append(C.T @ target[block])
            self.squares.append(float(((wanted[block] * weights)[:, row != 0] ** 2).sum()))

    def error(self, chosen: Sequence[int]) -> float:
        """Squared residuals of every block, predicted by the other blocks."""
        pick = np.ix_(chosen, chosen)
        grams = [gram[pick] for gram in self.grams]
        rights = [right[list(chosen)] for right in self.rights]
        gram, right, error = np.sum(grams, axis=0), np.sum(rights, axis=0), 0.0
        never = [k for k, c in enumerate(chosen) if c in self.never_negative]
        if never and (_solution(gram, right)[never] < 0).any():
            return np.inf
        for inside, b, square in zip(grams, rights, self.squares, strict=True):
            x = _solution(gram - inside, right - b)
            error += square - 2 * float(x @ b) + float(x @ inside @ x)
        return error

    def grow(self, start: list[int], terms: Sequence[Term]) -> list[int]:
        """The best first friction term, then further terms that reduce the error enough."""
        chosen = min(([*start, terms.index(term)] for term in FIRST), key=self.error)
        least = self.error(chosen)
        while len(chosen) < MOST_TERMS:
            candidates = _candidates(chosen, terms)
            if not candidates:
                break
            best = min(([*chosen, k] for k in candidates), key=self.error)
            error = self.error(best)
            if error > (1 - WORTH) * least:
                break
            chosen, least = best, error
        return chosen


def _solution(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scaled = gram / np.outer(scale, scale) + 1e-6 * np.eye(len(gram))
    return np.linalg.solve(scaled, right / scale) / scale


def _candidates(chosen: Sequence[int], terms: Sequence[Term]) -> list[int]:
    """Terms that may join: one of load and one of saturating friction, at most two widths of presliding friction."""
    has = [terms[k] for k in chosen]
    kinds = [term.kind for term in has]
    widths = {term.width for term in has if term.kind == "presliding"} or {WIDTHS[0]}
    allowed = []
    for k, term in enumerate(terms):
        if k in chosen or (
            term.kind in ("load", "saturating") and (term.kind in kinds or term.width not in widths)
        ):
            continue
        if term.kind == "presliding" and kinds.count("presliding") == 2:
            continue
        allowed.append(k)
    return allowed
