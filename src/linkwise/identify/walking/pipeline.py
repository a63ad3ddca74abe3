"""From recordings of a robot with a floating base to a model of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.identify.errors import IdentificationError, LogError
from linkwise.identify.estimation.base import excitation_of
from linkwise.identify.estimation.choices import Plain
from linkwise.identify.estimation.clustered import ENOUGH, clusters
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import Estimator, estimator_named
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.friction import Friction, friction_named
from linkwise.identify.estimation.lag import Lag, as_given
from linkwise.identify.estimation.prior import prior_bodies
from linkwise.identify.estimation.reduction import reduce
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.representable import robot_of
from linkwise.identify.estimation.significance import Rule, rule_named
from linkwise.identify.judging.competitors import Competitor
from linkwise.identify.recordings.log import Log
from linkwise.identify.walking.choosing import (
    CUTOFFS,
    ROWS,
    Held,
    PlainBase,
    Rows,
    all_held,
    decide,
    first_scale,
    fitted,
    lag_profile,
    left_out_error,
    needed_forces,
    recorded_flags,
)
from linkwise.identify.walking.contacts import Foot, feet_of
from linkwise.identify.walking.judging import Judge
from linkwise.identify.walking.log import WalkingLog
from linkwise.identify.walking.mass import total_mass
from linkwise.identify.walking.observer import BASE, WalkingObserver, floating_base_of
from linkwise.identify.walking.result import WalkingIdentification
from linkwise.identify.walking.states import WalkingSignals, condition_walking, shifted, sources_of
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

LAG_WORTH = 0.02  # of the squared error of left-out stretches, by which a lag must lower it
LAG_SURE = 2.5  # deviations from zero beyond which a lag is corrected
LAG_LEAST = 5e-4  # [s] smaller ones are not corrected
AS_GOOD = 1.5  # times the least error, up to which another cut-off says something about parameters
PASSES = 2  # in which contacts and errors of rows are decided


@dataclass(frozen=True)
class Reading:
    """How recordings are read: source of the base's motion, cut-off [Hz], whether the robot hangs; its error [%]."""

    source: str
    cutoff: float
    hanging: bool
    error: float

    def like(self, other: Reading) -> bool:
        """Whether only the cut-off is another one, and it predicts nearly as well."""
        same = (self.source, self.hanging) == (other.source, other.hanging)
        return same and self.cutoff != other.cutoff and self.error < AS_GOOD * other.error


def walking_logs(robot: Robot, logs: Sequence[Log]) -> list[WalkingLog]:
    """Recordings that have the motion of a base.

    Args:
        robot: with a floating base.
        logs: the recordings.
    """
    found = []
    for log in logs:
        if not isinstance(log, WalkingLog):
            raise LogError(
                f"{log.name}: a recording of joints alone; {robot.name} has a floating base: read it with read_log, or "
                "give identify.WalkingLog with the motion of the base"
            )
        if log.dof != robot.dof - BASE:
            raise LogError(
                f"{log.name}: {log.dof} joints; {robot.name} has {robot.dof - BASE} and a floating base"
            )
        if not log.tau.any():
            raise LogError(f"{log.name}: all torques are zero")
        found.append(log)
    return found


@dataclass
class Choice:
    """Everything that is decided before the fit: signals, held feet, errors of rows, plain least squares.

    ``moved`` (p,) is how far the parameters of ``base`` move with the cut-off that predicts second best.
    """

    robot: Robot
    feet: tuple[Foot, ...]
    base: PlainBase
    reading: Reading
    options: dict[str, Any]
    lag: Lag
    tried: tuple[Plain, ...]
    x: np.ndarray
    scale: np.ndarray
    moved: np.ndarray

    def signals(self, log: WalkingLog) -> WalkingSignals:
        """A recording conditioned as was decided."""
        made = condition_walking(
            self.robot, log, self.reading.source, cutoff=self.reading.cutoff, **self.options
        )
        return shifted(made, self.lag.corrected, self.lag.note)

    def held(self, signals: WalkingSignals) -> Held:
        """Which feet are held along signals, by the plain least squares."""
        if self.reading.hanging:
            said = "the base is held and no foot touches anything: rows of the joints alone are used"
            return Held(all_held(signals, self.feet, True), (said,))
        sizes = needed_forces(self.robot, signals, self.feet, self.error(signals), self.scale)
        return decide(self.robot, signals, self.feet, sizes)

    def error(self, signals: WalkingSignals) -> np.ndarray:
        """What plain least squares leave of all rows, forces included, (N, dof)."""
        predicted = self.predicted(signals, signals.states)
        predicted[:, BASE:] -= signals.tau
        return predicted

    def predicted(
        self, signals: WalkingSignals, states: Sequence[np.ndarray], most: int = 2000
    ) -> np.ndarray:
        """Generalised forces of plain least squares along states, (N, dof)."""
        count = len(states[0])
        parts = []
        for first in range(0, count, most):
            part = slice(first, min(first + most, count))
            q, v, a = (x[part] for x in states)
            own = replace(signals, q=q[:, 7:], qd=v[:, BASE:], qdd=a[:, BASE:])
            Y = self.base.columns_of(own, np.arange(part.stop - part.start), (q, v, a))
            parts.append(product(Y, self.x))
        return np.concatenate(parts)


def choose(
    robot: Robot,
    logs: Sequence[WalkingLog],
    feet: tuple[Foot, ...],
    cutoff: float | None,
    lag: float | None,
    options: dict[str, Any],
) -> Choice:
    """Source of the base's motion, cut-off and lag by what predicts left-out motions, contacts and errors of rows.

    Args:
        robot: the robot.
        logs: the recordings that are fitted.
        feet: what may touch the ground.
        cutoff: [Hz], where it is given.
        lag: [s], where it is given.
        options: derivatives and decimation, where they are given.
    """
    base = PlainBase(robot)
    most = max(200, ROWS // len(logs))
    rate = min(log.rate for log in logs)
    cutoffs = [cutoff] if cutoff is not None else [c for c in CUTOFFS if c < 0.2 * rate] or [0.2 * rate]
    sources = [s for s in sources_of(robot, logs[0]) if all(s in sources_of(robot, log) for log in logs)]
    if not sources:
        raise LogError("the recordings have no source of the base's acceleration in common")
    tried: list[tuple[Reading, list[Rows]]] = []
    middle = cutoffs[len(cutoffs) // 2]
    for frequency in (middle, *(each for each in cutoffs if each != middle)):
        # the source is chosen at the first cut-off, others are tried with it
        for source in sources if not tried else [min(tried, key=lambda each: each[0].error)[0].source]:
            signals = [condition_walking(robot, log, source, cutoff=frequency, **options) for log in logs]
            rows = [Rows.of(robot, s, feet, base, most) for s in signals]
            for hanging in _hypotheses(robot, signals, feet):
                held = [all_held(s, feet, hanging) for s in signals]
                _, scale = fitted(rows, held, first_scale(robot, signals), 2)
                tried.append((Reading(source, frequency, hanging, left_out_error(rows, held, scale)), rows))
    reading, rows = min(tried, key=lambda each: each[0].error)
    alike = [each for each in tried if each[0].like(reading)]
    signals = [r.signals for r in rows]
    held = [all_held(s, feet, reading.hanging) for s in signals]
    x, scale = fitted(rows, held, first_scale(robot, signals))
    plain = tuple(
        Plain(f"smooth, {each.source}", each.cutoff, Lag(), each.error)
        for each, _ in sorted(tried, key=lambda each: each[0].error)
    )
    choice = Choice(robot, feet, base, reading, options, Lag(), plain, x, scale, np.zeros_like(x))
    for _ in range(PASSES):
        held = [choice.held(s).held for s in signals]
        choice.x, choice.scale = fitted(rows, held, choice.scale)
    choice.lag = as_given(lag) if lag is not None else _lag(choice, rows, held, [other for _, other in alike])
    if choice.lag.corrected:
        rows = [Rows.of(robot, shifted(r.signals, choice.lag.corrected), feet, base, most) for r in rows]
        for _ in range(PASSES):
            held = [choice.held(r.signals).held for r in rows]
            choice.x, choice.scale = fitted(rows, held, choice.scale)
    if alike:
        choice.moved = _moved(choice, min(alike, key=lambda each: each[0].error)[1])
    return choice


def _moved(choice: Choice, others: Sequence[Rows]) -> np.ndarray:
    """How far plain least squares move with rows of another cut-off, (p,)."""
    late = [shifted(r.signals, choice.lag.corrected) for r in others]
    rows = [
        Rows.of(choice.robot, s, choice.feet, choice.base, len(r.where))
        for s, r in zip(late, others, strict=True)
    ]
    return np.abs(fitted(rows, [choice.held(s).held for s in late], choice.scale)[0] - choice.x)


def _hypotheses(robot: Robot, signals: Sequence[WalkingSignals], feet: Sequence[Foot]) -> list[bool]:
    """Whether the robot hangs: as the recorded contacts say; both are tried where there are none."""
    flags = [recorded_flags(robot, s, feet)[0] for s in signals]
    known = [each for each in flags if each is not None]
    return [False, True] if not known else [not any(each.any() for each in known)]


def _lag(
    choice: Choice, rows: Sequence[Rows], held: Sequence[np.ndarray], others: Sequence[Sequence[Rows]]
) -> Lag:
    """The lag of torques, corrected where it is surer than stretches differ and helps to predict.

    Its deviation includes how far it moves with the rows of ``others``, other cut-offs: what makes the model wrong
    looks like a lag, and differs with the frequencies that are used.
    """
    seconds, stretches, gain = lag_profile(rows, held, choice.scale)
    moved = [
        lag_profile(each, [choice.held(r.signals).held for r in each], choice.scale)[0] - seconds
        for each in others
    ]
    deviation = float(np.hypot(stretches, max(map(abs, moved), default=0.0)))
    shown = f"lag of the torques: {1e3 * seconds:.2g} ± {1e3 * deviation:.2g} ms"
    if abs(seconds) < max(LAG_LEAST, LAG_SURE * stretches):
        return Lag(seconds, deviation, 0.0, f"{shown}, not corrected: not distinguishable from none")
    if gain < LAG_WORTH:
        return Lag(seconds, deviation, 0.0, f"{shown}, not corrected: it does not help to predict")
    return Lag(seconds, deviation, seconds, f"{shown}, corrected (positive: recorded later than positions)")


def identify_walking(
    robot: Robot,
    logs: Sequence[Log],
    tests: Sequence[Log],
    *,
    cutoff: float | None,
    friction: str | Friction,
    estimator: str | Estimator,
    significance: str | Rule,
    strength: float,
    band: float | None,
    lag: float | None,
    feet: Sequence[str] | None,
    options: dict[str, Any],
    stages: Any,
) -> WalkingIdentification:
    """Identify a robot with a floating base; arguments as for ``identify``.

    Args:
        robot: its kinematics; its inertias are the prior.
        logs: the recordings to be used.
        tests: recordings to be predicted.
        cutoff: of the filters [Hz].
        friction: model of friction.
        estimator: for the base parameters.
        significance: for the reduced model.
        strength: of the prior.
        band: frequencies [Hz] in which predictions are judged as well.
        lag: of the torques [s].
        feet: frames of the feet.
        options: derivatives and decimation, where they are given.
        stages: how friction is chosen and parameters are fitted.
    """
    fits, judged_on = walking_logs(robot, logs), walking_logs(robot, tests)
    feet_found = feet_of(robot, feet)
    choice = choose(robot, fits, feet_found, cutoff, lag, options)
    observer = _observer(choice, fits)
    prior = prior_bodies(robot)
    found = _fit_of(observer, friction, prior, strength, stages)
    base = floating_base_of(robot, found.friction)
    independent = found.regression.pick(base.columns)
    chosen = estimator_named(estimator) if isinstance(estimator, str) else estimator
    estimated = chosen(independent)
    strength *= samples_like_one(independent, estimated)
    found = stages.fit(observer, found.friction, prior, strength=strength, start=found)
    estimated = widened(estimated, choice)
    identified = robot_of(observer, found.x, found.regression.terms)
    rule = rule_named(significance) if isinstance(significance, str) else significance
    reduction = reduce(
        observer, found, identified, base, rule(independent, estimated, chosen), prior, strength
    )
    judges = _judges(choice, observer, fits, judged_on, band)
    judged = [tuple(judge.robot(model) for judge in judges) for model in (identified, robot, reduction.robot)]
    plain = tuple(judge.of(choice.predicted(judge.signals, judge.states)) for judge in judges)
    excitation = excitation_of(independent, estimated.weights)
    mass = total_mass(identified, robot, base, independent, estimated, found.x)
    return WalkingIdentification(
        prior=robot,
        robot=identified,
        fit=found,
        base=base,
        estimate=replace(estimated, sigma=estimated.sigma * choice.scale),
        excitation=excitation,
        reduction=reduction,
        signals=tuple(observer.signals),
        validations=judged[0],
        of_prior=judged[1],
        of_reduced=judged[2],
        warnings=tuple(filter(None, (excitation.words(), mass.doubt, choice.lag.doubt))),
        lag=choice.lag,
        plain=choice.tried,
        feet=feet_found,
        held=tuple(observer.held),
        scale=choice.scale,
        plain_fits=(Competitor("smooth", choice.reading.cutoff, plain),),
        mass=mass,
    )


def widened(estimated: Estimate, choice: Choice) -> Estimate:
    """The estimate with the error of a model that contacts, rolling feet and noise of the base make wrong.

    Residuals do not show all of it: what is wrong in the same way in every step shifts the estimate. It depends on the
    frequencies that are used, so how far the estimate moves with the cut-off is added to its deviations.

    Args:
        estimated: of the base parameters.
        choice: what was decided before.
    """
    moved = dict(zip(choice.base.base.labels, choice.moved.tolist(), strict=True))
    added = np.array([moved.get(label, 0.0) for label in estimated.labels])
    return replace(estimated, covariance=estimated.covariance + np.diag(added**2))


def samples_like_one(regression: Regression, estimated: Estimate) -> float:
    """How many samples count like one independent sample, at least 1.

    The prior counts like one sample of each link. Where the model is wrong in the same way for as long as a motion
    lasts, thousands of samples outvote it even where they know nothing: mass near feet that stand does not move.

    Args:
        regression: with independent columns.
        estimated: from it.
    """
    found = clusters(regression, estimated.weights, estimated.x)
    return 1.0 if found is None or len(found.shares) < ENOUGH else max(1.0, found.effect)


def _observer(choice: Choice, logs: Sequence[WalkingLog]) -> WalkingObserver:
    """Rows of the recordings that are fitted, read as was decided; what was done is in the records of their signals."""
    signals, held = [], []
    for log in logs:
        made = choice.signals(log)
        own = choice.held(made)
        signals.append(replace(made, record=(*made.record, *own.notes, *_why(choice))))
        held.append(own.held)
    observer = WalkingObserver(choice.robot, signals, choice.feet, held, choice.scale)
    less = observer.trust(choice.base.friction, choice.base.base)
    note = f"{100 * less:.2g} % of the samples count less: the model leaves more of them than of others"
    observer.signals = [replace(each, record=(*each.record, note)) for each in signals]
    return observer


def _judges(
    choice: Choice,
    observer: WalkingObserver,
    fits: Sequence[WalkingLog],
    logs: Sequence[WalkingLog],
    band: float | None,
) -> list[Judge]:
    """Judges of recordings, those that were fitted with the feet that were held there."""
    found = []
    for log in logs:
        place = next((k for k, each in enumerate(fits) if each is log), None)
        made = choice.signals(log) if place is None else observer.signals[place]
        held = choice.held(made).held if place is None else observer.held[place]
        found.append(Judge(choice.robot, made, choice.feet, held, band))
    return found


def _why(choice: Choice) -> list[str]:
    """Why source and cut-off were taken; nothing where there was no choice."""
    reading = choice.reading
    others = [f"{p.law.removeprefix('smooth, ')} {p.cutoff:g} Hz {p.error:.3g} %" for p in choice.tried[1:5]]
    said = f"{reading.source} and {reading.cutoff:g} Hz predict left-out motions best ({reading.error:.3g} %"
    return [f"{said}; {', '.join(others)})"] if others else []


def _fit_of(
    observer: WalkingObserver, friction: str | Friction, prior: np.ndarray, strength: float, stages: Any
) -> Fit:
    if friction == "auto":
        return stages.choose_friction(observer, prior, strength=strength)
    given = friction_named(friction, observer.joints) if isinstance(friction, str) else friction
    usable = observer.adapted(given)
    if isinstance(friction, str) and friction == "presliding":
        raise IdentificationError(
            "friction: laws with a memory are not for robots that walk; use smooth or coulomb"
        )
    return stages.fit(observer, usable, prior, strength=strength)


__all__ = ["Choice", "Reading", "choose", "identify_walking", "walking_logs"]
