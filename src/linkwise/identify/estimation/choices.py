"""Cut-off of the filters and lag of the torques, chosen together by what they predict.

For every candidate the base parameters are fitted by plain least squares (links, rotors, viscous and Coulomb friction,
with a jump or smooth, and offsets) to all motions but one, and the torques of that one are predicted as they were
recorded: filtered torques would make a low cut-off look good. The candidate with the smallest error of all motions
together is taken. What a spectrum says about noise is only one of the candidates: positions that were rounded or held
have no white noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.friction import AxisSignals, Friction, column, friction_named
from linkwise.identify.estimation.lag import Lag, estimate_lag, shifted
from linkwise.identify.estimation.motions import Folds
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.weights import solved
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import Signals
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

CUTOFFS = (5.0, 8.0, 12.0)  # [Hz] of people who choose one for all arms
LAWS = {"sign": "coulomb", "tanh": "smooth"}
"""Friction of plain least squares: the direction jumps, or changes over a small speed."""
ROWS = 1500  # recorded samples of a recording that are predicted
RIDGE = 1e-12  # of unit columns: what is not excited stays finite
EXACT = 1e-5  # relative residual under which a joint's weight does not grow
BETTER = 0.995  # of the error of what a spectrum chooses: less is no reason to take another cut-off
TIED = 1.015  # times the least error: the higher of two such cut-offs is taken, which filters less away
LAG_PAYS = (
    0.995  # of the error without a lag, that a correction must reach: friction at reversals looks like a lag
)


@dataclass(frozen=True)
class Plain:
    """Plain least squares: its law of friction, cut-off [Hz], lag, and error on left-out motions [% of the torque]."""

    law: str
    cutoff: float
    lag: Lag
    error: float

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {"law": self.law, "cutoff": self.cutoff, "lag": self.lag.corrected, "error": self.error}


def choose(
    robot: Robot,
    logs: Sequence[Log],
    condition: Callable[..., Signals],
    cutoff: float | None = None,
    lag: Lag | None = None,
) -> tuple[Plain, ...]:
    """Every candidate with its error, the best one first.

    Args:
        robot: the robot.
        logs: the recordings that are fitted.
        condition: from a recording to signals; takes ``cutoff``.
        cutoff: [Hz], where it is given.
        lag: where it is given.
    """
    first = condition(logs[0], cutoff=cutoff)
    wanted = [first.cutoff]
    if cutoff is None:
        wanted += [c for c in CUTOFFS if c < 0.2 * first.rate * first.step and c != first.cutoff]
    found: list[Plain] = []
    folds: Folds | None = None
    columns: dict[str, tuple[Friction, BaseParameters]] = {}
    for frequency in wanted:
        signals = [condition(log, cutoff=frequency) for log in logs]
        if any(each.cutoff == signals[0].cutoff for each in found):
            continue  # a condition of the user's own may have a cut-off of its own
        observer = Observer(robot, signals)
        folds = Folds.of(observer) if folds is None else folds
        columns = columns or plain_columns(observer)
        late = [lag] if lag is not None else _lags(observer)
        for each in late:
            moved = [shifted(s, each) for s in signals] if each.corrected else signals
            watched = Observer(robot, moved) if each.corrected else observer
            found += [
                Plain(law, signals[0].cutoff, each, _error(watched, *used, folds))
                for law, used in columns.items()
            ]
    best = _best(found, wanted[0], lag is not None)
    return (best, *sorted((each for each in found if each is not best), key=lambda each: each.error))


def _best(found: Sequence[Plain], by_spectrum: float, lag_given: bool) -> Plain:
    """Of every cut-off the best law, with a lag only where that pays; then the best cut-off."""
    each_best = {}
    for frequency in dict.fromkeys(each.cutoff for each in found):
        here = [each for each in found if each.cutoff == frequency]
        least = min(here, key=lambda each: each.error)
        plain = min((each for each in here if not each.lag.corrected), key=lambda e: e.error, default=least)
        pays = lag_given or least.error < LAG_PAYS * plain.error
        each_best[frequency] = least if pays else plain
    best = min(each_best.values(), key=lambda each: each.error)
    first = each_best[by_spectrum]
    if first.error * BETTER <= best.error:
        return first
    return max(
        (e for e in each_best.values() if e is not first and e.error <= TIED * best.error),
        key=lambda each: each.cutoff,
    )


def _lags(observer: Observer) -> list[Lag]:
    """No lag, and the one that the torques ask for."""
    late = estimate_lag(observer)
    if not late.corrected:
        return [late]
    said = late.note.split(", corrected")[0]
    return [
        Lag(late.seconds, late.deviation, 0.0, f"{said}, not corrected: it does not help to predict"),
        late,
    ]


def _error(observer: Observer, friction: Friction, base: BaseParameters, folds: Folds) -> float:
    """Error of all left-out motions together [% of the torque]."""
    regression = observer.regression(friction).pick(base.columns)
    fitted = np.concatenate([folds.at(k, s.filtered_times) for k, s in enumerate(observer.signals)])
    rows = [recorded_rows(observer.robot, s, friction, base, observer.axes) for s in observer.signals]
    judged = np.concatenate([folds.at(k, t) for k, (t, _, _) in enumerate(rows)])
    Y, tau = (np.concatenate([row[k] for row in rows]) for k in (1, 2))
    grams = _grams(regression, fitted, folds.count)
    wrong = 0.0
    for k in range(folds.count):
        inside = judged == k
        if inside.any():
            x = _weighted_solution(grams.sum(axis=0) - grams[k])
            wrong += float(((tau[inside] - product(Y[inside], x)) ** 2).sum())
    return 100.0 * float(np.sqrt(wrong / max(float((tau**2).sum()), 1e-300)))


def plain_columns(observer: Observer) -> dict[str, tuple[Friction, BaseParameters]]:
    """Friction of plain least squares by ``LAWS``, and its base parameters; both are the same for every cut-off.

    Args:
        observer: the recordings.
    """
    robot, coupled = observer.robot, len(observer.axes) - observer.robot.dof
    laws = {law: friction_named(name, robot.dof, coupled) for law, name in LAWS.items()}
    return {law: (friction, base_of(robot, observer.axes, friction)) for law, friction in laws.items()}


def plain_solution(regression: Regression) -> np.ndarray:
    """Weighted least squares of independent columns (p,).

    Args:
        regression: with independent columns.
    """
    return _weighted_solution(_grams(regression, np.zeros(len(regression), int), 1)[0])


def recorded_rows(
    robot: Robot,
    signals: Signals,
    friction: Friction,
    base: BaseParameters,
    axes: np.ndarray,
    most: int = ROWS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times (N,), columns (N, n, p), torques as recorded (N, n)) of samples of a recording.

    Args:
        robot: the robot.
        signals: its conditioned recording.
        friction: terms of every axis.
        base: the columns that are used.
        axes: all axes with terms, shape (axes, n).
        most: samples.
    """
    t, (q, qd, qdd) = signals.at_stamps()
    keep = slice(None, None, max(1, -(-len(t) // most)))
    motion = AxisSignals.of(q, qd, qdd, np.zeros_like(q), axes)
    placed = [(axis, term) for axis, terms in enumerate(friction) for term in terms]
    used = {term: column(motion, term)[keep] for _, term in placed}
    links = robot.regressor(q[keep], qd[keep], qdd[keep])[..., : 10 * robot.dof]
    others = np.stack([used[term][:, a, None] * axes[a] for a, term in placed], axis=-1)
    Y = np.concatenate([links, others], axis=-1)[..., list(base.columns)]
    return t[keep], Y, signals.log.tau[keep]


def _grams(regression: Regression, fold: np.ndarray, count: int) -> np.ndarray:
    """Products of the columns and the torque of every motion and joint, (motions, n, p + 1, p + 1)."""
    joined = np.concatenate([regression.Y, regression.tau[..., None]], axis=-1)
    found = []
    for k in range(count):
        rows = joined[fold == k]
        found.append(np.stack([product(rows[:, j].T, rows[:, j]) for j in range(regression.dof)]))
    return np.stack(found)


def _weighted_solution(grams: np.ndarray) -> np.ndarray:
    """Weighted least squares from ``_grams`` of one fit, (n, p + 1, p + 1)."""
    size = np.maximum(grams[:, -1, -1], 1e-300)
    return solved(grams / size[:, None, None], RIDGE, EXACT)[1]


__all__ = ["CUTOFFS", "LAWS", "Plain", "choose", "plain_columns", "plain_solution", "recorded_rows"]
