"""From a recording to a model: ``identify``. Every stage is a function that can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import warn
from linkwise.identify.errors import IdentificationError, IdentificationWarning, LogError
from linkwise.identify.estimation.base import base_of, excitation_of
from linkwise.identify.estimation.choices import Plain, choose
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import Estimator, estimator_named
from linkwise.identify.estimation.fitting import Fit, fit
from linkwise.identify.estimation.friction import Friction, check_springs, column, friction_named
from linkwise.identify.estimation.friction_choice import choose_friction
from linkwise.identify.estimation.lag import Lag, as_given, lags_of_joints, shifted
from linkwise.identify.estimation.memory import useful_memory
from linkwise.identify.estimation.network import ResidualNetwork, find_network
from linkwise.identify.estimation.physical import STRENGTH
from linkwise.identify.estimation.prior import has_masses, prior_bodies, scale_of
from linkwise.identify.estimation.reduction import reduce
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.representable import robot_of
from linkwise.identify.estimation.ripple import Ripple, find_ripple
from linkwise.identify.estimation.significance import Rule, Significance, rule_named
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.estimation.unmodelled import Unexplained, find_unmodelled
from linkwise.identify.judging.diagnosis import Diagnosis, diagnose, diagnose_late
from linkwise.identify.judging.validation import Validation, validate
from linkwise.identify.recordings.derivatives import Motion
from linkwise.identify.recordings.log import Log, as_logs, with_motors
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.identify.recordings.units import check_stamps
from linkwise.identify.result import Identification
from linkwise.identify.walking.log import WalkingLog, is_floating
from linkwise.identify.walking.pipeline import identify_walking
from linkwise.model.coordinates import check_one_axis, check_torques
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

DRIVEN = 0.05  # fraction of joint power above which negative friction power cannot be noise
REVERSALS = 4  # of a joint's direction, from which a constant part of its torque is told from friction
OFFSET = 0.25  # of a joint's torque (root mean square), from which a constant part of it is reported
NOTHING_EXPLAINED = 0.1  # share of a torque's variance under which a model is no better than its mean


@dataclass(frozen=True)
class Stages:
    """What ``identify`` does, in this order; replace any of them.

    condition(log, cutoff=None) → Signals, also derivatives= and decimation= where ``identify`` was given them;
    choose_friction(observer, prior, strength=…) → Fit, for friction="auto"; fit(observer, friction, prior, strength=…)
    → Fit, for a given friction. For friction="auto" two more, of what is left: find_unmodelled(observer, fit) →
    Unexplained and find_ripple(observer, robot) → Ripple; and find_network(observer, robot) → ResidualNetwork, where
    it is asked for.
    """

    condition: Callable[..., Signals] = condition
    choose_friction: Callable[..., Fit] = choose_friction
    fit: Callable[..., Fit] = fit
    find_unmodelled: Callable[[Observer, Fit], Unexplained] = find_unmodelled
    find_ripple: Callable[[Observer, Robot], Ripple] = find_ripple
    find_network: Callable[[Observer, Robot], ResidualNetwork] = find_network


def identify(
    robot: Robot,
    log: Log | Sequence[Log],
    *,
    validation: Log | Sequence[Log] | None = None,
    cutoff: float | None = None,
    derivatives: str | Callable[..., Motion] = "butterworth",
    decimation: int | None = None,
    friction: str | Friction = "auto",
    estimator: str | Estimator = "weighted",
    significance: str | Rule = "contribution",
    strength: float = STRENGTH,
    band: float | None = None,
    lag: float | None = None,
    feet: Sequence[str] | None = None,
    network: bool = False,
    stages: Stages | None = None,
) -> Identification:
    """Identify a robot from one or several recordings.

    A robot with a floating base is identified from ``WalkingLog``s; forces of its feet need not be measured. Warns
    (``IdentificationWarning``) where the recording cannot distinguish parameters, or is not explained by this robot.

    Args:
        robot: its kinematics; its inertias are the prior.
        log: the recordings to be used.
        validation: recordings to be predicted; by default those that were used.
        cutoff: of the filters [Hz]; by default the one with which left-out motions are predicted best, of what the
            spectrum says and 5, 8 and 12 Hz.
        derivatives: how velocities and accelerations are computed: a name of ``derivatives.METHODS`` or a function.
        decimation: every how many filtered samples one is used; by default as many as the cut-off needs.
        friction: "auto" (chosen by cross-validation, with unmodelled torques and drive ripple where these predict
            left-out motions better), a name of ``friction.MODELS``, or the terms of every axis.
        estimator: for the base parameters and their uncertainty: a name of ``estimators.ESTIMATORS`` ("idim-iv":
            instrumental variables) or a function.
        significance: for the reduced model: "contribution", "statistics" or a function.
        strength: of the prior.
        band: frequencies [Hz] in which predictions are judged as well; by default up to the cut-off.
        lag: how much later than positions torques were recorded [s]; by default estimated and, where it is larger than
            its uncertainty and helps to predict left-out motions, corrected. 0 corrects nothing.
        feet: of a floating base: frames that may touch the ground, each with an optional point in it, such as
            "FL_calf:0,0,-0.213"; by default its contacts, else ends of it that are called foot, toe, sole or ankle.
        network: add a small network over position and speed to joints of which it predicts left-out motions better; it
            is a law of the joint, so files, simulations, derivatives and C have it.
        stages: replacements for whole stages.

    Returns:
        The identified robot with estimates, uncertainties and validations.

    Raises:
        IdentificationError: the recording cannot be used; the message says why.
    """
    check_springs(robot, friction)
    conditioning = {"derivatives": derivatives} if derivatives != "butterworth" else {}
    conditioning |= {"decimation": decimation} if decimation is not None else {}
    chosen = Settings(
        cutoff, friction, estimator, significance, strength, band, lag, flag("network", network)
    )
    kind = _identify_floating if is_floating(robot) else _identify_fixed
    with one_thread():
        return kind(robot, log, validation, chosen, conditioning, feet, stages or Stages())


@dataclass(frozen=True)
class Settings:
    """What ``identify`` was asked for, under the names of its arguments."""

    cutoff: float | None
    friction: str | Friction
    estimator: str | Estimator
    significance: str | Rule
    strength: float
    band: float | None
    lag: float | None
    network: bool


def _identify_floating(
    robot: Robot,
    log: Log | Sequence[Log],
    validation: Log | Sequence[Log] | None,
    chosen: Settings,
    conditioning: dict[str, Any],
    feet: Sequence[str] | None,
    stages: Stages,
) -> Identification:
    options = dict(vars(chosen))
    if options.pop("network"):
        raise ValueError(f"network: for arms; the base of {robot.name} floats")
    logs = as_logs(log)
    tests = as_logs(validation) if validation is not None else logs
    found = identify_walking(robot, logs, tests, **options, feet=feet, options=conditioning, stages=stages)
    _as_warnings(found.warnings)
    return found


def _identify_fixed(
    robot: Robot,
    log: Log | Sequence[Log],
    validation: Log | Sequence[Log] | None,
    chosen: Settings,
    conditioning: dict[str, Any],
    feet: Sequence[str] | None,
    stages: Stages,
) -> Identification:
    if feet is not None:
        raise ValueError(f"feet: for robots with a floating base; the base of {robot.name} is fixed")
    check_one_axis(robot, "identification")
    check_torques(robot, "identification")
    stages = replace(stages, condition=partial(stages.condition, **conditioning))
    return _identify(robot, log, validation, chosen, stages)


def _identify(
    given: Robot,
    log: Log | Sequence[Log],
    validation: Log | Sequence[Log] | None,
    asked: Settings,
    stages: Stages,
) -> Identification:
    robot = given.with_motors(()) if given.motors else given
    logs = with_motors(given, as_logs(log))
    tests = with_motors(given, as_logs(validation)) if validation is not None else logs
    _check_logs(robot, (*logs, *tests))
    late = None if asked.lag is None else as_given(asked.lag)
    plain = choose(robot, logs, stages.condition, asked.cutoff, late)
    late, frequency = plain[0].lag, plain[0].cutoff
    as_recorded = [stages.condition(each, cutoff=frequency) for each in logs]
    as_recorded = [_with_reason(each, plain, asked.cutoff) for each in as_recorded]
    signals = [shifted(each, late) for each in as_recorded]
    observer = Observer(robot, signals)
    wrong = diagnose_late(robot, as_recorded, signals) if late.corrected else diagnose(robot, signals)
    scale = scale_of(observer, prior_bodies(robot))
    prior = scale * prior_bodies(robot)
    found = _fit_of(observer, asked, prior, stages, wrong.causes)
    base = base_of(robot, observer.axes, found.friction)
    independent = found.regression.pick(base.columns)
    estimated, significant = _estimate(independent, asked)
    identified = useful_memory(robot_of(observer, found.x, found.regression.terms), signals)
    reduction = reduce(observer, found, identified, base, significant, prior, asked.strength)
    left = _left_over(observer, found, identified, asked, stages)
    excitation = excitation_of(independent, estimated.weights)
    tested = [shifted(stages.condition(each, cutoff=frequency), late) for each in tests]
    models = (left.robot, given, reduction.robot)
    judged = [[validate(model, signals, asked.band) for signals in tested] for model in models]
    doubts = _consequences(observer, found, estimated, wrong, scale, late, judged[0][0])
    return Identification(
        prior=given,
        robot=left.robot,
        fit=found,
        base=base,
        estimate=estimated,
        excitation=excitation,
        reduction=reduction,
        signals=tuple(signals),
        validations=tuple(judged[0]),
        of_prior=tuple(judged[1]),
        of_reduced=tuple(judged[2]),
        warnings=_as_warnings([excitation.words(), *wrong.causes, *doubts]),
        lag=late,
        plain=plain,
        ripple=left.ripple,
        network=left.network,
        unmodelled=left.unmodelled,
        contradiction="; ".join(wrong.causes) if wrong.contradicted else "",
    )


def _consequences(
    observer: Observer,
    found: Fit,
    estimated: Estimate,
    wrong: Diagnosis,
    scale: float,
    late: Lag,
    judged: Validation,
) -> list[str]:
    """Findings that would only follow from a cause: none where there is one."""
    if wrong.causes:
        return []
    said = [*(wrong.remarks or (_other_size(observer.robot, scale),)), late.doubt, lags_of_joints(observer)]
    said += [_friction_that_drives(observer, found, estimated), _unexplained_joints(observer.robot, judged)]
    return [*said, _offsets(observer, found, estimated)]


@dataclass(frozen=True)
class _LeftOver:
    """What joints have besides bodies and friction, and the robot with all of it."""

    robot: Robot
    unmodelled: Unexplained
    ripple: Ripple
    network: ResidualNetwork


def _left_over(observer: Observer, found: Fit, robot: Robot, asked: Settings, stages: Stages) -> _LeftOver:
    """Each where it predicts motions that were left out, one on top of the other."""
    auto = asked.friction == "auto"
    unmodelled = stages.find_unmodelled(observer, found) if auto else Unexplained()
    robot = unmodelled.of(robot)
    ripple = stages.find_ripple(observer, robot) if auto else Ripple()
    robot = ripple.of(robot)
    networks = stages.find_network(observer, robot) if asked.network else ResidualNetwork()
    return _LeftOver(networks.of(robot), unmodelled, ripple, networks)


def _with_reason(signals: Signals, plain: Sequence[Plain], given: float | None) -> Signals:
    """Signals whose record says why their cut-off was taken."""
    if given is not None:
        return signals
    others = {}
    for each in plain:
        others.setdefault(f"{each.cutoff:.3g} Hz", each.error)
    (taken, error), *rest = others.items()
    beside = ", ".join(f"{name}: {value:.3g} %" for name, value in rest)
    said = f"cut-off {taken}: plain least squares predict left-out motions best ({error:.3g} %"
    said += f"; {beside})" if beside else ")"
    kept = [words for words in signals.record if not words.startswith("cut-off ")]
    return replace(signals, record=(*kept, said))


def _estimate(independent: Regression, asked: Settings) -> tuple[Estimate, Significance]:
    """Base parameters by the estimator that was asked for, and which of them are significant."""
    named, rule = asked.estimator, asked.significance
    estimator = estimator_named(named) if isinstance(named, str) else named
    estimated = estimator(independent)
    return estimated, (rule_named(rule) if isinstance(rule, str) else rule)(independent, estimated, estimator)


def _fit_of(
    observer: Observer, asked: Settings, prior: np.ndarray, stages: Stages, causes: Sequence[str]
) -> Fit:
    """The fit with a friction model by name, by its terms, or chosen by the recording; errors name ``causes`` too."""
    friction, strength = asked.friction, asked.strength
    try:
        if friction == "auto":
            return stages.choose_friction(observer, prior, strength=strength)
        if isinstance(friction, str):
            friction = friction_named(friction, observer.joints, len(observer.axes) - observer.joints)
        return stages.fit(observer, friction, prior, strength=strength)
    except IdentificationError as error:
        raise IdentificationError("; ".join([str(error), *causes])) from None


def _as_warnings(doubts: Sequence[str]) -> tuple[str, ...]:
    """Findings as texts, also given as warnings."""
    for words in filter(None, doubts):
        warn(words, IdentificationWarning)
    return tuple(filter(None, doubts))


def _check_logs(robot: Robot, logs: Sequence[Log]) -> None:
    for each in logs:
        if isinstance(each, WalkingLog):
            raise LogError(
                f"{each.name}: a recording of a moving base; the base of {robot.name} is fixed: load it with "
                'base="floating"'
            )
        if each.dof != robot.dof:
            raise LogError(f"{each.name}: {each.dof} joints; {robot.name} has {robot.dof}")
        if not each.tau.any():
            raise LogError(f"{each.name}: all torques are zero")
        check_stamps(each, each.name)


def _other_size(robot: Robot, scale: float) -> str:
    """A finding where torques are much larger or smaller than the file's masses cause."""
    if scale == 1.0 or not has_masses(robot):
        return ""
    return (
        f"measured torques are {scale:.2g} times those of the masses in {robot.name}: units or drive gains differ, or "
        "the file's masses are guesses; they were scaled"
    )


def _friction_that_drives(observer: Observer, found: Fit, estimated: Estimate) -> str:
    """A finding where friction would have to drive a joint, which is impossible: most likely a sign is wrong. The power
    of friction by least squares, which may find friction that drives, must be negative by three standard deviations."""
    place = {label: k for k, label in enumerate(estimated.labels)}
    labels = found.regression.labels[found.regression.links :]
    size, sums = np.zeros(observer.robot.dof), np.zeros((observer.robot.dof, len(place)))
    for signals, motion in zip(observer.signals, observer.axis_signals(found.carried), strict=True):
        size += np.abs(signals.tau * signals.qd).sum(axis=0)
        for (axis, term), label in zip(found.regression.terms, labels, strict=True):
            if axis < len(size) and term.dissipates and label in place:
                sums[axis, place[label]] += linear.dot(column(motion, term)[:, axis], motion.qd[:, axis])
    power = product(sums, estimated.x)
    doubt = np.sqrt(np.maximum((product(sums, estimated.covariance) * sums).sum(axis=1), 0.0))
    driven = power + 3.0 * doubt < -DRIVEN * size
    bad = [name for name, here in zip(observer.robot.joint_names, driven, strict=True) if here]
    if not bad:
        return ""
    return (
        f"friction of {', '.join(bad)} would have to drive {'them' if len(bad) > 1 else 'it'}, which friction cannot: "
        "torques and positions are counted in opposite directions, or their columns are in another order"
    )


def _offsets(observer: Observer, found: Fit, estimated: Estimate) -> str:
    """A finding where torques have a large constant part: by least squares, less three standard deviations, and in the
    fit, more than ``OFFSET`` of the joint's torque. Friction that differs by direction has a small one."""
    free = dict(zip(estimated.labels, zip(estimated.x, estimated.deviations, strict=True), strict=True))
    fitted = dict(zip(found.regression.labels, found.x.tolist(), strict=True))
    said = []
    for j, (joint, tau) in enumerate(zip(observer.robot.coordinate_joints, observer.tau.T, strict=True)):
        if sum(_reversals(signals.qd[:, j]) for signals in observer.signals) < REVERSALS:
            continue  # friction in one direction is a constant as well
        label = f"{joint.name}.torque_offset"
        value, deviation = free.get(label, (0.0, 0.0))
        least = OFFSET * float(np.sqrt((tau**2).mean()))
        if abs(value) - 3.0 * deviation > least and abs(fitted.get(label, 0.0)) > least:
            unit = "N·m" if joint.revolute else "N"
            said.append(f"{joint.name} {fitted[label]:.3g} {unit}")
    if not said:
        return ""
    return (
        f"torques have a constant part that neither weight nor friction explains ({', '.join(said)}): the zero of a "
        "sensor or of a current is off, or a spring or a cable pulls; the identified robot keeps it as torque_offset"
    )


def _reversals(qd: np.ndarray) -> int:
    """How often a joint changes its direction; speeds below a tenth of its largest do not count."""
    sign = np.sign(qd[np.abs(qd) > 0.1 * float(np.abs(qd).max(initial=0.0))])
    return int((np.diff(sign) != 0.0).sum())


def _unexplained_joints(robot: Robot, judged: Validation) -> str:
    """Warning for joints whose torque the model does not explain; empty where it explains all."""
    explained = judged.explained
    bad = [
        name for name, share in zip(robot.joint_names, explained, strict=True) if share < NOTHING_EXPLAINED
    ]
    if not bad:
        return ""
    what = "explains no joint" if len(bad) == robot.dof else f"does not explain {', '.join(bad)}"
    return (
        f"{robot.name} {what} better than the mean of the measured torque: the recording {judged.log.name} is of "
        "another robot, its columns are in another order, units or signs differ, or it moves as no fitted recording did"
    )


def all_estimates(found: Identification, names: Sequence[str] = ()) -> dict[str, Estimate]:
    """The base parameters by several estimators (default: all), for comparison.

    Args:
        found: an identification.
        names: estimators; all by default.

    Returns:
        An estimate by the name of its estimator.
    """
    return found.estimates(names)


def base_values(found: Identification) -> np.ndarray:
    """Base parameters of the physically consistent model, in the order of ``found.base.labels``."""
    return product(found.base.combination, found.fit.x)
