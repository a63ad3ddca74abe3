"""The friction of each axis, chosen by the recording: the simplest law that predicts what it was not fitted to.

Links and friction are fitted with a rich model first. What is left of the torques when the links are taken away is
then explained axis by axis. For every way in which the direction of friction may change, terms are added as long as
they lower the error on motions that were left out of the fit; of all laws met on the way, the simplest whose error is
within one standard error of the least (Breiman's rule) and within ``SLACK`` of it is taken. Links are
fitted again with the friction that was found, and so on a few times. Nothing here knows a robot: widths and speeds are
taken from lists that span what gears do. Laws that would drive an axis are not considered, nor gears that lose more
than half of what they carry.

Left out are motions, not rows (see ``motions``): else a law would be judged by what it was fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.identify.estimation.fitting import Fit, fit
from linkwise.identify.estimation.friction import DIRECTED, NOT_COUPLED, Term, friction_named
from linkwise.identify.estimation.motions import motions
from linkwise.identify.estimation.regression import Observer
from linkwise.solve import linear
from linkwise.solve.linear import product

WIDTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)  # [rad or m] over which friction turns over; encoders must resolve it
BLURS = (
    0.003,
    0.01,
    0.03,
    0.1,
)  # [rad/s or m/s] over which it changes its direction, of laws without a memory
SATURATE = (0.003, 0.01, 0.03, 0.1, 0.3)  # [rad/s or m/s] at which viscous friction saturates
FALL = (
    0.3,
    1.0,
    3.0,
)  # [rad/s or m/s] over which friction falls to half; faster falls are seen near rest alone
WORTH = 0.005  # relative reduction of the squared error from which a term is tried
COUNTS = 2.0  # of an encoder, over which friction turns over at least: a memory of one count is that of noise
SLACK = 0.02  # of the least squared error, that a simpler law may cost: with few motions a standard error is large
MOST_TERMS = 6
MOST_LOAD = 0.5  # of the carried torque, that a gear may lose
ROUNDS = 3
MANY = 20  # different positions from which a step is recognised
GRID = 0.95  # of the gaps between positions that are multiples of the step

ALWAYS = (Term("viscous"), Term("offset"))
DIRECTIONS = (
    Term("coulomb"),
    *(Term("coulomb", blur=v) for v in BLURS),
    *(Term("coulomb", width=w) for w in WIDTHS),
)
FURTHER = (
    Term("load"),
    *(Term("saturating", speed=v) for v in SATURATE),
    *(Term("stribeck", speed=v) for v in FALL),
)
"""No stiffness: what looks like a spring in one region is none in another. Friction that falls with the speed brakes at
every speed, where a negative coefficient of viscous friction would drive beyond some. No narrow peaks of it: motions
show little of them, and at rest, where they are largest, they show nothing."""


def choose_friction(observer: Observer, prior: np.ndarray, *, strength: float = 1.0) -> Fit:
    """Friction terms for every axis, and the fit that uses them.

    Args:
        observer: the recordings.
        prior: parameters of the links that are known before, shape (n, 10).
        strength: weight of the prior.
    """
    joints, axes = observer.joints, len(observer.axes)
    plain = friction_named("coulomb", joints, axes - joints)
    found = fit(observer, plain, prior, strength=strength)
    rich = observer.adapted(friction_named("rich", joints, axes - joints))
    found = fit(observer, rich, prior, strength=strength, start=found)
    folds = motions(observer)
    for _ in range(ROUNDS):
        friction = tuple(_choose_axis(observer, found, axis, folds) for axis in range(axes))
        same = friction == found.friction
        found = fit(observer, friction, prior, strength=strength, start=found, passes=2)
        if same:
            break
    return found


def _choose_axis(observer: Observer, found: Fit, axis: int, folds: np.ndarray) -> tuple[Term, ...]:
    """The terms of one axis, those of the others and the links as they were fitted."""
    mine = [k for k, (a, _) in enumerate(found.regression.terms, found.regression.links) if a == axis]
    inertia = [k for k in mine if found.regression.labels[k].endswith(".rotor_inertia")]
    others = found.x.copy()
    others[[k for k in mine if k not in inertia]] = 0.0
    joint = axis < observer.joints
    finest = COUNTS * resolution(observer, axis)
    terms = [term for term in _all_terms() if joint or term.kind not in NOT_COUPLED]
    terms = [term for term in terms if not 0.0 < term.width < finest and observer.allows(term)]
    trials = Trials(
        terms,
        observer.term_columns(terms, found.carried, axis),
        found.regression.residuals(others),
        observer.axes[axis],
        found.weights,
        [folds == k for k in range(int(folds.max()) + 1)],
    )
    return (Term("rotor_inertia"), *simplest(list(trials.laws())).terms)


def resolution(observer: Observer, axis: int) -> float:
    """The step of an axis' encoder [rad or m], 0 where recorded positions are not multiples of one.

    Args:
        observer: the recordings.
        axis: number of the axis.
    """
    steps = []
    for signals in observer.signals:
        gaps = np.diff(np.unique(product(signals.log.q, observer.axes[axis])))
        gaps = gaps[gaps > 1e-9 * max(float(gaps.max(initial=0.0)), 1e-300)]
        if len(gaps) < MANY:
            continue
        least = float(np.quantile(gaps, 0.1))
        counts = gaps / least
        if float(np.mean(np.abs(counts - np.round(counts)) < 0.05)) > GRID:
            steps.append(least)
    return max(steps, default=0.0)


def _all_terms() -> list[Term]:
    directed = [_with_direction(term, by) for by in DIRECTIONS for term in FURTHER]
    return list(dict.fromkeys((*ALWAYS, *DIRECTIONS, *directed)))


def _with_direction(term: Term, by: Term) -> Term:
    """The term with the direction of another."""
    return replace(term, blur=by.blur, width=by.width) if term.kind in DIRECTED else term


@dataclass(frozen=True)
class Law:
    """Terms of an axis, their coefficients from all motions (terms,), and squared residuals of every motion as
    predicted by the others, shape (motions,)."""

    terms: tuple[Term, ...]
    values: np.ndarray
    errors: np.ndarray

    @property
    def numbers(self) -> int:
        """How many coefficients it has; all directions have one number more."""
        return len(self.terms)

    @property
    def falls(self) -> bool:
        """Whether viscous friction would have to be negative: friction falls with the speed."""
        return any(
            term.kind == "viscous" and value == 0.0
            for term, value in zip(self.terms, self.values.tolist(), strict=True)
        )

    @property
    def remembers(self) -> bool:
        return any(term.width for term in self.terms)


def simplest(laws: Sequence[Law]) -> Law:
    """Of the laws that are not worse than the best by more than one standard error and ``SLACK``, the one with the
    fewest numbers."""
    best = min(laws, key=lambda law: float(law.errors.sum()))

    def equal(law: Law) -> bool:
        worse = law.errors - best.errors
        count = len(worse)
        if count < 2:
            return law is best
        doubt = float(np.sqrt(count) * worse.std(ddof=1))
        return float(worse.sum()) <= min(doubt, SLACK * float(best.errors.sum()))

    # at rest, which recordings show little of, only a memory can be right
    return min(
        (law for law in laws if equal(law)),
        key=lambda law: (law.numbers, not law.remembers, float(law.errors.sum())),
    )


class Trials:
    """Errors of sets of columns on motions that were left out, from sums of products alone.

    Columns are torques of the axis (N, terms), which are added to joints as ``row`` (n,) says; or, where that changes
    from sample to sample, what they add to every row, (N, n, terms).
    """

    def __init__(
        self,
        terms: Sequence[Term],
        columns: np.ndarray,
        wanted: np.ndarray,
        row: np.ndarray,
        weights: np.ndarray,
        folds: Sequence[np.ndarray],
    ):
        self.terms = list(terms)
        if columns.ndim == 3:
            columns = (columns * weights[:, None]).reshape(-1, columns.shape[2])
            wanted = (wanted * weights).reshape(-1, 1)
            folds = [np.repeat(inside, len(weights)) for inside in folds]
            weights = row = np.ones(1)
        importance = float(((weights * row) ** 2).sum())
        target = product(wanted, weights**2 * row)
        seen = (wanted * weights)[:, row != 0]
        grams, rights, squares = [], [], []
        for inside in folds:
            C = columns[inside]
            grams.append(importance * product(C.T, C))
            rights.append(product(C.T, target[inside]))
            squares.append(float((seen[inside] ** 2).sum()))
        self.grams, self.rights, self.squares = np.array(grams), np.array(rights), np.array(squares)

    def laws(self) -> Iterator[Law]:
        """Laws of growing size, for every direction; those that no gear can have are left out."""
        plain = [term for term in ALWAYS if term in self.terms]
        for by in DIRECTIONS:
            found = self.law([*plain, by]) if by in self.terms else None
            if found is None:
                continue
            yield found
            while len(found.terms) < MOST_TERMS:
                kinds = {term.kind for term in found.terms}
                others = [_with_direction(term, by) for term in FURTHER if term.kind not in kinds]
                others = [term for term in others if found.falls or term.kind != "stribeck"]
                tried = [self.law([*found.terms, term]) for term in others if term in self.terms]
                possible = [law for law in tried if law is not None]
                if not possible:
                    break
                best = min(possible, key=lambda law: float(law.errors.sum()))
                if best.errors.sum() > (1 - WORTH) * found.errors.sum():
                    break
                found = best
                yield found

    def law(self, terms: Sequence[Term]) -> Law | None:
        """A set of terms with its errors; None where a gear would lose most of what it carries."""
        chosen = np.array([self.terms.index(term) for term in terms])
        never = np.array([term.dissipates for term in terms])
        grams = self.grams[:, chosen[:, None], chosen]
        rights = self.rights[:, chosen]
        whole_gram, whole_right = grams.sum(axis=0), rights.sum(axis=0)
        # of all motions, then of all but one each
        x = _solutions(
            np.concatenate([whole_gram[None], whole_gram - grams]),
            np.concatenate([whole_right[None], whole_right - rights]),
            never,
        )
        for term, value in zip(terms, x[0], strict=True):
            if term.kind == "load" and value > MOST_LOAD:
                return None
        others = x[1:]
        along = np.einsum("fi,fi->f", others, rights)
        inside = np.einsum("fi,fij,fj->f", others, grams, others)
        return Law(tuple(terms), x[0], self.squares - 2 * along + inside)


def _solutions(grams: np.ndarray, rights: np.ndarray, never_negative: np.ndarray) -> np.ndarray:
    """Least squares of several problems; coefficients that must not be negative but would be are zero, the most
    negative one of each problem first."""
    scale = np.sqrt(np.maximum(np.einsum("fii->fi", grams), 1e-300))
    scaled = grams / (scale[:, :, None] * scale[:, None, :]) + 1e-6 * np.eye(grams.shape[1])
    right = rights / scale
    while True:
        x = np.stack([linear.solve(A, b) for A, b in zip(scaled, right, strict=True)])
        wrong = np.where(never_negative, x, 0.0)
        problems = np.flatnonzero(wrong.min(axis=1) < -1e-12)
        if not len(problems):
            return x / scale
        column = np.argmin(wrong[problems], axis=1)
        # the problem without this column: its coefficient is zero
        scaled[problems, column, :] = scaled[problems, :, column] = 0.0
        scaled[problems, column, column] = 1.0
        right[problems, column] = 0.0
