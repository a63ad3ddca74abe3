"""Closed-loop output-error identification: parameters with which the simulated loop needs the measured torques.

Least squares on the inverse dynamics take positions, velocities and accelerations from the recording, with its noise
and its filters. Here they come from a simulation of robot and controller, so only torques are measured.

DIDIM (M. Gautier, A. Janot, P.-O. Vandanjon, "A new closed-loop output error method for parameter identification of
robot dynamics", 2013): simulate with the current parameters, take the simulated motion for the columns of the inverse
dynamics, solve for new parameters, repeat. In a loop that follows its reference the motion hardly depends on the
parameters, so the columns are the sensitivities of the torques, and a few repetitions are enough.

CLOE: the same output error by Gauss–Newton with the sensitivities of the loop itself, by central differences: robots
with one parameter changed each are simulated at once. Slower, and right for loose loops too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise import joint_laws
from linkwise.control import Controller
from linkwise.errors import needed
from linkwise.identify.base import base_of
from linkwise.identify.campaign import true_parameters
from linkwise.identify.coloured import uncertainty
from linkwise.identify.errors import IdentificationError, IdentificationWarning
from linkwise.identify.estimate import Estimate
from linkwise.identify.estimators import weighted
from linkwise.identify.fitting import Fit, fit
from linkwise.identify.friction import Friction, friction_named
from linkwise.identify.friction_choice import choose_friction
from linkwise.identify.instrumental import steppable
from linkwise.identify.log import Log, as_logs
from linkwise.identify.loop_simulation import (
    BANDWIDTH,
    Followed,
    RecordedLoop,
    matched_law,
    reference_samples,
    smoothed_reference,
    stiff_law,
    term_numbers,
    values_of,
    varied_labels,
)
from linkwise.identify.physical import STRENGTH, physical_from_gram
from linkwise.identify.pipeline import Stages, identify
from linkwise.identify.prior import prior_bodies, scale_of
from linkwise.identify.regression import Carried, Observer, Regression
from linkwise.identify.representable import robot_of
from linkwise.identify.result import Identification
from linkwise.identify.signals import Signals, condition
from linkwise.identify.small_blas import one_thread
from linkwise.identify.solvers import column_lengths
from linkwise.identify.solvers import condition as condition_number
from linkwise.model.inertia import LABELS
from linkwise.robot import Robot
from linkwise.summaries import Summarised, Summary

ITERATIONS = 15
TOLERANCE = 1e-4  # change of the torques, in parts of them, at which estimates have converged
FLAT = 2e-3  # change of the error, in parts of it, below which further steps are of no use
STALLED = 100.0  # tolerances: a step that no longer lowers the error counts as converged below this
CHANGE = 1e-3  # of the torques, that a parameter is changed by for its sensitivity
SMALLER = 5  # times that the change of a parameter is reduced to a tenth, where the robot is lost with it
FRACTIONS = 0.5 ** np.arange(8.0)  # of a step, tried at once
EXACT = 1e-6  # residuals under this part of the torques weigh no more
NOT_EXPLAINED = 0.9  # part of the torques left from which the simulation explains nothing
NOT_NEGATIVE = {
    LABELS[0],
    *(each.name for law in joint_laws.LAWS for each in law.parameters if each.negative == "refused"),
}
"""Numbers that simulations refuse below zero."""
MATCHED = 2  # iterations after which an unknown controller is looked for again


@dataclass(frozen=True)
class Iteration:
    """One simulation: what it left of the torques [%], how far its positions are from the recorded ones (rms of all
    joints, rad or m), and by how much the estimate that followed changes the torques [%]."""

    number: int
    residual: float
    distance: float
    change: float


@dataclass(frozen=True, repr=False)
class ClosedLoopIdentification(Summarised):
    """A robot identified through simulations of its closed loop.

    ``identification`` is all that ``identify`` gives, from the simulated motion: the robot, its validations, code and
    report. ``estimate`` are the base parameters with their uncertainty. ``t`` (N,), ``measured`` and ``simulated``
    (N, n) are the torques of the first recording and of the loop with the identified robot.
    """

    method: str
    identification: Identification
    estimate: Estimate
    history: tuple[Iteration, ...]
    converged: bool
    controller: Controller
    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    measured: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    simulated: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.identification.robot

    @property
    def relative(self) -> np.ndarray:
        """100·‖τ − τ̂‖/‖τ‖ of each joint, measured and simulated torques below the cut-off, shape (n,)."""
        return 100.0 * _norms(self.measured - self.simulated) / np.maximum(_norms(self.measured), 1e-300)

    def _summary(self) -> Summary:
        rows = [(each.number, each.residual, each.distance, each.change) for each in self.history]
        name = self.method.upper()
        title = f"{self.identification.prior.name} by {name}: {len(rows)} simulations"
        ended = "converged" if self.converged else "not converged"
        left = ", ".join(f"{value:.3g}" for value in self.relative)
        notes = (f"{ended}; simulated torques are {left} % from the measured ones, by joint",)
        columns = (">simulation", ">residual [%]", ">distance [rad or m]", ">change [%]")
        return Summary(title, columns, rows, notes)


def didim(
    robot: Robot,
    log: Log | Sequence[Log],
    *,
    reference: Any = None,
    controller: Controller | None = None,
    bandwidth: float = BANDWIDTH,
    validation: Log | Sequence[Log] | None = None,
    cutoff: float | None = None,
    friction: str | Friction = "auto",
    strength: float = STRENGTH,
    start: Robot | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> ClosedLoopIdentification:
    """Identify a robot by DIDIM: measured torques, and states from simulations of the closed loop.

    Args:
        robot: its kinematics; its inertias are the prior and, without ``start``, where the iteration begins.
        log: the recordings. Their positions choose friction and, where they are not given, the reference and the
            controller; the fit itself takes their torques alone.
        reference: what the controller was told to follow: a trajectory in the time of the recording's stamps, or
            positions (N, n) at its samples; a list with one for each recording where there are several. By default
            the recorded motion, strongly smoothed.
        controller: the one of the recorded robot, with its own model and gains. By default one whose poles stay
            where they are while parameters change; with a reference its frequencies are chosen so that simulated
            and recorded tracking errors agree.
        bandwidth: [rad/s] of that controller, where there is no reference either.
        validation: recordings to be predicted; by default those that were used.
        cutoff: of the filter of torques and columns [Hz]; by default chosen from the data.
        friction: "auto", a name of ``friction.MODELS``, or the terms of every joint.
        strength: of the prior.
        start: a robot whose parameters are where the iteration begins; ``robot`` by default.
        iterations: most simulations.
        tolerance: change of the torques, in parts of them, at which the iteration ends.

    Raises:
        IdentificationError: the simulated robot does not follow, or its torques have nothing to do with the
            measured ones: the message names the joint, the time and what to change.
    """
    problem = _Problem.of(robot, log, reference, controller, bandwidth, cutoff, friction, start)
    with one_thread():
        x, history = problem.start, []
        before: np.ndarray | None = None
        for number in range(1, iterations + 1):
            problem.adapt(x, number)
            current, followed = problem.followed(x, number)
            regression, found = problem.solved(current, followed, strength)
            change = 1.0 if before is None else _change(regression, found, before)
            history.append(problem.measured_by(number, followed, change))
            before = x = found.x
            if change <= tolerance:
                break
        problem.check_end(x)
        return problem.finished("didim", x, history, history[-1].change <= 100 * tolerance, validation, strength)


def cloe(
    robot: Robot,
    log: Log | Sequence[Log],
    *,
    reference: Any = None,
    controller: Controller | None = None,
    bandwidth: float = BANDWIDTH,
    validation: Log | Sequence[Log] | None = None,
    cutoff: float | None = None,
    friction: str | Friction = "auto",
    strength: float = STRENGTH,
    start: Robot | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> ClosedLoopIdentification:
    """Identify a robot by CLOE: Gauss–Newton on measured minus simulated torques of the closed loop.

    The base parameters are free of the prior; the robot that is returned is the possible one nearest to them.

    Args:
        robot, log, reference, controller, bandwidth, validation, cutoff, friction, strength, start: as for ``didim``.
        iterations: most steps.
        tolerance: change of the torques, in parts of them, at which the iteration ends.

    Raises:
        IdentificationError: as for ``didim``; or no step lowers the error while it is still large.
    """
    problem = _Problem.of(robot, log, reference, controller, bandwidth, cutoff, friction, start)
    with one_thread():
        problem.adapt(problem.start, 1)
        x, history, linear, weights, done = _gauss_newton(problem, iterations, tolerance)
        problem.check_end(x)
        estimate = _estimate_of(problem, x, linear, weights, len(history))
        return problem.finished("cloe", x, history, done, validation, strength, estimate)


# -- what both have in common -----------------------------------------------------------------------------------------


@dataclass
class _Problem:
    robot: Robot
    logs: list[Log]
    recorded: Observer
    """Of the recorded motion: torques, names and axes."""
    friction: Friction
    prior: np.ndarray
    loops: list[RecordedLoop]
    start: np.ndarray
    """Parameters of all columns."""
    matching: bool
    """Whether the controller is to be matched to the recorded motion."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        log: Log | Sequence[Log],
        reference: Any,
        controller: Controller | None,
        bandwidth: float,
        cutoff: float | None,
        friction: str | Friction,
        start: Robot | None,
    ) -> _Problem:
        logs = as_logs(log)
        _check(robot, logs, controller, start)
        with one_thread():
            first = condition(logs[0], cutoff=cutoff)
            signals = [first, *(condition(each, cutoff=first.cutoff) for each in logs[1:])]
            observer = Observer(robot, signals)
            prior = prior_bodies(robot)
            prior = scale_of(observer, prior) * prior
            if isinstance(friction, str):
                friction = (
                    choose_friction(observer, prior).friction
                    if friction == "auto"
                    else friction_named(friction, robot.dof)
                )
            whole = observer.regression(friction)
            x = true_parameters(robot if start is None else start, whole.labels)
            if start is None:
                x[: whole.links] = prior.reshape(-1)
            template = robot_of(observer, x, whole.terms)
            labels = varied_labels(template, friction)
            law = stiff_law(template, labels, bandwidth) if controller is None else controller
            followed = _references(reference, signals)
            loops = [
                RecordedLoop(template, labels, s, samples, law) for s, samples in zip(signals, followed, strict=True)
            ]
        return cls(
            robot, logs, observer, friction, prior, loops, x, controller is None and reference is not None
        )

    @property
    def whole(self) -> Regression:
        """All columns along the recorded motion: for labels and terms."""
        return self.recorded.regression(self.friction)

    def robot_of(self, x: np.ndarray) -> Robot:
        """The robot with these parameters, such that it can be simulated."""
        return steppable(robot_of(self.recorded, x, self.whole.terms))

    def adapt(self, x: np.ndarray, number: int) -> None:
        """Look for the controller that was not given, with what is known of the robot by now."""
        if not self.matching or number > MATCHED:
            return
        found = matched_law(self.loops[0], self.robot_of(x))
        self.loops = [replace(loop, controller=found.controller, gains=found.gains) for loop in self.loops]

    def followed(self, x: np.ndarray, number: int) -> tuple[Robot, list[Followed]]:
        """The robot with these parameters, simulated along all recordings."""
        robot = self.robot_of(x)
        values = {label: np.array([value]) for label, value in values_of(robot, self.loops[0].labels).items()}
        found = []
        for loop in self.loops:
            run = loop.run(values)
            if not np.isfinite(run.tau).all():
                why = loop.why_lost(run) or "the motion is not finite"
                raise IdentificationError(
                    f"simulation {number}: the simulated robot does not follow its reference: {why}; the parameters to "
                    "start from are too far away, or controller and reference are not those of the recording"
                )
            found.append(run)
        return robot, found

    def solved(self, current: Robot, followed: list[Followed], strength: float) -> tuple[Regression, Fit]:
        """Parameters from measured torques and the columns of the simulated motion."""
        simulated = [loop.signals_of(current, run) for loop, run in zip(self.loops, followed, strict=True)]
        found = fit(Observer(self.robot, simulated), self.friction, self.prior, strength=strength)
        return found.regression, found

    def torques(self, followed: list[Followed], robot: int = 0) -> np.ndarray:
        """Filtered simulated torques of all recordings, one below the other (rows, n)."""
        return np.concatenate(
            [loop.signals.filtered(run.tau[robot]) for loop, run in zip(self.loops, followed, strict=True)]
        )

    def measured_by(self, number: int, followed: list[Followed], change: float) -> Iteration:
        wanted = self.recorded.tau
        away = [loop.distance(run)[0] for loop, run in zip(self.loops, followed, strict=True)]
        left = np.linalg.norm(wanted - self.torques(followed)) / max(float(np.linalg.norm(wanted)), 1e-300)
        return Iteration(number, 100.0 * float(left), float(np.sqrt(np.mean(np.square(away)))), 100.0 * change)

    def check_end(self, x: np.ndarray) -> None:
        """Raise where the loop with the found parameters does not need the measured torques at all."""
        _, followed = self.followed(x, 0)
        wanted, found = self.recorded.tau, self.torques(followed)
        left = _norms(wanted - found) / np.maximum(_norms(wanted - wanted.mean(axis=0)), 1e-300)
        if float(np.linalg.norm(wanted - found)) > NOT_EXPLAINED * float(np.linalg.norm(wanted)):
            worst = self.robot.joint_names[int(np.argmax(left))]
            raise IdentificationError(
                f"the simulated loop does not need the measured torques (worst at {worst}): the parameters to start from "
                "are too far away, or controller and reference are not those of the recording"
            )

    def finished(
        self,
        method: str,
        x: np.ndarray,
        history: list[Iteration],
        converged: bool,
        validation: Log | Sequence[Log] | None,
        strength: float,
        estimate: Estimate | None = None,
    ) -> ClosedLoopIdentification:
        """All that ``identify`` gives, with the simulated motion in place of the recorded one."""
        current, followed = self.followed(x, len(history))
        simulated = {
            id(log): loop.signals_of(current, run)
            for log, loop, run in zip(self.logs, self.loops, followed, strict=True)
        }

        def motion(log: Log, **options: Any) -> Signals:
            return simulated[id(log)] if id(log) in simulated else condition(log, **options)

        stages = Stages(condition=motion)
        options: dict[str, Any] = {}
        if estimate is not None:
            stages = replace(stages, fit=self._nearest(x))
            # the reduced model has other columns, along the same motion
            options["estimator"] = lambda given: estimate if given.labels == estimate.labels else weighted(given)
        tests = self.logs if validation is None else as_logs(validation)
        found = identify(
            self.robot,
            self.logs,
            validation=[replace(each) for each in tests],  # copies: judged along their recorded motion
            cutoff=self.loops[0].signals.cutoff,
            friction=self.friction,
            strength=strength,
            stages=stages,
            **options,
        )
        if not converged:
            warnings.warn(
                f"{method}: not converged after {len(history)} simulations: the last one changed the torques by "
                f"{history[-1].change:.2g} %",
                IdentificationWarning,
                stacklevel=3,
            )
        first = self.loops[0]
        return ClosedLoopIdentification(
            method,
            found,
            found.estimate,
            tuple(history),
            converged,
            first.controller,
            first.signals.t,
            first.signals.filtered(first.signals.tau),
            first.signals.filtered(followed[0].tau[0]),
        )

    def _nearest(self, x: np.ndarray) -> Callable[..., Fit]:
        """A stage that gives the possible parameters whose torques are nearest to those of x."""

        def nearest(observer: Observer, friction: Friction, prior: np.ndarray, *, strength: float) -> Fit:
            carried = Carried.of(observer.regression(friction), x)
            regression = observer.regression(friction, carried)
            weights = 1.0 / np.maximum(regression.spread(x), EXACT * _norms(regression.tau))
            never = [
                place
                for place, (_, term) in enumerate(regression.terms, regression.links)
                if term.dissipates or term.kind == "rotor_inertia"
            ]
            gram, _ = regression.gram(weights)
            found = physical_from_gram(gram, gram @ x, prior, strength=strength, nonnegative=never)
            return Fit(found.x, weights, regression, friction)

        return nearest


def _check(robot: Robot, logs: Sequence[Log], controller: Controller | None, start: Robot | None) -> None:
    for each in logs:
        if each.dof != robot.dof:
            raise IdentificationError(f"{each.name}: {each.dof} joints; {robot.name} has {robot.dof}")
        if each.axes is not None and len(each.axes):
            raise IdentificationError(
                f"{each.name}: motors that move several joints are not simulated; use identify instead"
            )
        if each.sensed != "motor":
            raise IdentificationError(
                f"{each.name}: torques behind the gears are not those of a controller; use identify instead"
            )
    if controller is not None and not isinstance(controller, Controller):
        raise IdentificationError(f"controller: expected one of linkwise.control, got {controller!r}")
    if controller is not None and controller.robot.dof != robot.dof:
        raise IdentificationError(f"controller: of {controller.robot.dof} joints; {robot.name} has {robot.dof}")
    if start is not None and start.joint_names != robot.joint_names:
        raise IdentificationError(f"start: its joints are not those of {robot.name}")


def _references(reference: Any, signals: Sequence[Signals]) -> list:
    if reference is None:
        return [smoothed_reference(s, condition(s.log)) for s in signals]
    several = isinstance(reference, (list, tuple)) and len(signals) > 1
    given = list(reference) if several else [reference]
    if len(given) != len(signals):
        raise IdentificationError(f"reference: {len(given)} for {len(signals)} recordings; expected one for each")
    return [reference_samples(s, each) for s, each in zip(signals, given, strict=True)]


def _change(regression: Regression, found: Fit, before: np.ndarray) -> float:
    """By how much the torques of two estimates differ, in parts of the measured ones, joints weighted alike."""
    size = np.maximum(_norms(regression.tau), 1e-300)
    return float(np.sqrt(np.mean((_norms(regression.Y @ (found.x - before)) / size) ** 2)))


def _norms(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=0)


# -- Gauss–Newton -----------------------------------------------------------------------------------------------------


def _gauss_newton(
    problem: _Problem, iterations: int, tolerance: float
) -> tuple[np.ndarray, list[Iteration], Regression, np.ndarray, bool]:
    """(parameters of all columns, history, the last linearisation, its weights, whether it has converged)."""
    base = base_of(problem.robot, problem.recorded.axes, problem.friction)
    columns, x = list(base.columns), problem.start.copy()
    size = np.maximum(_norms(problem.recorded.tau), 1e-300)
    history: list[Iteration] = []
    linear, weights = problem.whole, np.ones(problem.robot.dof)
    for number in range(1, iterations + 1):
        _, followed = problem.followed(x, number)
        residual = problem.recorded.tau - problem.torques(followed)
        linear = _linearised(problem, x, columns, residual)
        weights = 1.0 / np.maximum(_norms(residual), EXACT * size)
        W, y = linear.compressed(weights)
        step = _bounded_step(problem, W, y, x, columns)
        change = float(np.sqrt(np.mean((_norms(linear.Y @ step) / size) ** 2)))
        history.append(problem.measured_by(number, followed, change))
        if change <= tolerance:
            return x, history, linear, weights, True
        share = _best_share(problem, x, columns, step, weights, float(np.linalg.norm(residual * weights)))
        if share == 0.0 or _flat(history):
            if share != 0.0 or change <= STALLED * tolerance:
                return x, history, linear, weights, True
            raise IdentificationError(
                f"step {number}: no step lowers the error of the torques, {history[-1].residual:.3g} % of them; the "
                "parameters to start from are too far away, or controller and reference are not those of the recording"
            )
        x = _stepped(problem, x, columns, share * step)
    return x, history, linear, weights, False


def _flat(history: list[Iteration]) -> bool:
    """Whether the last two steps have not changed the error: the rest is exchanged between parameters."""
    last = [each.residual for each in history[-3:]]
    return len(last) == 3 and max(last) - min(last) <= FLAT * last[-1]


def _bounded_step(
    problem: _Problem, W: np.ndarray, y: np.ndarray, x: np.ndarray, columns: list[int]
) -> np.ndarray:
    """The step of least squares after which friction does not drive and rotors are not negative."""
    length = column_lengths(W)
    whole = problem.whole
    never = {
        place
        for place, (_, term) in enumerate(whole.terms, whole.links)
        if term.dissipates or term.kind == "rotor_inertia"
    }
    lower = np.array([-x[column] if column in never else -np.inf for column in columns])
    free = np.linalg.lstsq(W / length, y, rcond=1e-9)[0]
    if (free >= lower * length).all():
        return free / length
    solve = needed("scipy.optimize", "identify").lsq_linear
    return solve(W / length, y, bounds=(np.minimum(lower * length, -1e-300), np.inf)).x / length


def _linearised(problem: _Problem, x: np.ndarray, columns: list[int], residual: np.ndarray) -> Regression:
    """How simulated torques depend on the base parameters, by central differences: all robots at once.

    A parameter is changed so that torques change by ``CHANGE`` of them; less where the robot is then lost.
    """
    whole = problem.whole
    picked = whole.pick(columns)
    lengths = column_lengths(picked.compressed(1.0 / np.maximum(_norms(whole.tau), 1e-300))[0])
    steps = CHANGE / np.maximum(lengths, 1e-6 * lengths.max())
    for _ in range(SMALLER):
        slopes, lost = _slopes(problem, x, columns, steps)
        if not lost.any():
            return replace(picked, Y=slopes, tau=residual)
        steps = np.where(lost, 0.1 * steps, steps)
    names = ", ".join(label for label, bad in zip(picked.labels, lost, strict=True) if bad)
    raise IdentificationError(
        f"sensitivities: with slightly other values of {names} the simulated robot does not follow its reference; the "
        "loop is hardly stable, or the parameters to start from are hardly possible"
    )


def _slopes(
    problem: _Problem, x: np.ndarray, columns: list[int], steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(slopes of the filtered torques (rows, n, p), which of them are of lost robots (p,))."""
    whole = problem.whole
    middle = values_of(problem.robot_of(x), problem.loops[0].labels)
    lanes = {label: np.full(2 * len(columns), value) for label, value in middle.items()}
    width = np.empty(len(columns))
    for place, column in enumerate(columns):
        h = float(steps[place])
        for label in _robot_labels(problem, whole, column):
            refused = middle[label] - h < 0.0 and label.rpartition(".")[2] in NOT_NEGATIVE
            lanes[label][2 * place] += h
            lanes[label][2 * place + 1] -= 0.0 if refused else h
            width[place] = h if refused else 2 * h
    parts, lost = [], np.zeros(len(columns), dtype=bool)
    for loop in problem.loops:
        tau = loop.run(lanes).tau
        slopes = (tau[0::2] - tau[1::2]) / width[:, None, None]
        lost |= ~np.isfinite(slopes).all(axis=(1, 2))
        parts.append(loop.signals.filtered(np.moveaxis(np.nan_to_num(slopes), 0, -1)))
    return np.concatenate(parts), lost


def _robot_labels(problem: _Problem, whole: Regression, column: int) -> list[str]:
    """The parameters of a robot that are the parameter of a column."""
    if column < whole.links:
        return [whole.labels[column]]
    axis, term = whole.terms[column - whole.links]
    return [f"{problem.robot.joint_names[axis]}.{name}" for name in term_numbers(term)]


def _stepped(problem: _Problem, x: np.ndarray, columns: list[int], step: np.ndarray) -> np.ndarray:
    """The parameters after a step, as far as a robot can have them."""
    found = x.copy()
    found[columns] += step
    whole = problem.whole
    for place, (_, term) in enumerate(whole.terms, whole.links):
        if term.dissipates or term.kind == "rotor_inertia":
            found[place] = max(found[place], 0.0)
    return found


def _best_share(
    problem: _Problem, x: np.ndarray, columns: list[int], step: np.ndarray, weights: np.ndarray, before: float
) -> float:
    """The part of a step with the smallest error; 0 where all are worse than no step."""
    labels = problem.loops[0].labels
    tried = [
        values_of(problem.robot_of(_stepped(problem, x, columns, share * step)), labels) for share in FRACTIONS
    ]
    lanes = {label: np.array([values[label] for values in tried]) for label in labels}
    for label in labels:
        if label.rpartition(".")[2] in NOT_NEGATIVE:
            lanes[label] = np.maximum(lanes[label], 0.0)
    runs = [loop.run(lanes) for loop in problem.loops]
    errors = []
    for place in range(len(FRACTIONS)):
        if all(np.isfinite(run.tau[place]).all() for run in runs):
            left = problem.recorded.tau - problem.torques(runs, place)
            errors.append(float(np.linalg.norm(left * weights)))
        else:
            errors.append(np.inf)
    best = int(np.argmin(errors))
    return float(FRACTIONS[best]) if errors[best] < before else 0.0


def _estimate_of(
    problem: _Problem, x: np.ndarray, linear: Regression, weights: np.ndarray, steps: int
) -> Estimate:
    """Base parameters and their uncertainty, from the last linearisation."""
    base = base_of(problem.robot, problem.recorded.axes, problem.friction)
    W, _ = linear.compressed(weights)
    length = column_lengths(W)
    half = np.linalg.pinv(np.linalg.qr(W / length, mode="r")) / length[:, None]
    covariance, freedom = uncertainty(linear, weights, np.zeros(len(linear.labels)), half @ half.T)
    spare = max(len(linear) - len(linear.labels) / linear.dof, 1.0)
    sigma = np.sqrt((linear.tau**2).sum(axis=0) / spare)
    return Estimate(
        "cloe",
        linear.labels,
        base.combination @ x,
        covariance,
        sigma,
        weights,
        condition_number(W),
        len(linear),
        (f"{steps} steps",),
        freedom,
    )
