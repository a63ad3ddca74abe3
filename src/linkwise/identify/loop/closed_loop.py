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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.control import Controller
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import warn
from linkwise.identify.errors import IdentificationWarning
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import weighted
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.friction import Friction
from linkwise.identify.estimation.lag import shifted
from linkwise.identify.estimation.physical import STRENGTH, physical_from_gram
from linkwise.identify.estimation.regression import Carried, Observer, Regression
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.loop.gauss_newton import EXACT, estimate_of, flat, gauss_newton
from linkwise.identify.loop.problem import Iteration, LoopProblem, norms
from linkwise.identify.loop.simulation import BANDWIDTH
from linkwise.identify.pipeline import Stages, identify
from linkwise.identify.recordings.log import Log, as_logs
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.identify.result import Identification
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

ITERATIONS = 25
SLOW = 5.0  # tolerances: below this an estimate has converged as well, once the error stays the same
TOLERANCE = 1e-4  # change of the torques, in parts of them, at which estimates have converged


@dataclass(frozen=True, repr=False)
class ClosedLoopIdentification(Summarised):
    """A robot identified through simulations of its closed loop.

    ``identification`` is all that ``identify`` gives, from the simulated motion: the robot, its validations, code and
    report. ``estimate`` are the base parameters with their uncertainty. ``t`` (N,), ``measured`` and ``simulated``
    (N, n) are the torques of the first recording and of the loop with the identified robot; ``relative`` (n,) is
    100·‖τ − τ̂‖/‖τ‖ of both below the cut-off, by joint.
    """

    method: str
    identification: Identification
    estimate: Estimate
    history: tuple[Iteration, ...]
    converged: bool
    controller: Controller
    t: np.ndarray
    measured: np.ndarray
    simulated: np.ndarray
    relative: np.ndarray

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.identification.robot

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
    lag: float | None = None,
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
        validation: recordings to be predicted, along their recorded motion; by default those that were used, along
            the simulated one.
        cutoff: of the filter of torques and columns [Hz]; by default chosen from the data.
        friction: "auto", a name of ``friction.MODELS``, or the terms of every joint.
        strength: of the prior.
        start: a robot whose parameters are where the iteration begins; ``robot`` by default.
        lag: how much later than positions torques were recorded [s]; by default estimated, as by ``identify``.
        iterations: most simulations.
        tolerance: change of the torques, in parts of them, at which the iteration ends.

    Raises:
        IdentificationError: the simulated robot does not follow, or its torques have nothing to do with the
            measured ones: the message names the joint, the time and what to change.
    """
    problem = LoopProblem.of(robot, log, reference, controller, bandwidth, cutoff, friction, start, lag)
    with one_thread():
        x, history, done = problem.start, [], False
        before: np.ndarray | None = None
        for number in range(1, iterations + 1):
            problem.adapt(x, number)
            regression, found, followed = problem.solved(x, number, strength)
            change = 1.0 if before is None else _change(regression, found, before)
            history.append(problem.measured_by(number, followed, change))
            before = x = found.x
            done = change <= tolerance or (flat(history) and change <= SLOW * tolerance)
            if done:
                break
        problem.check_end(x)
        return _loop_estimate(problem, "didim", x, history, done, validation, strength)


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
    lag: float | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> ClosedLoopIdentification:
    """Identify a robot by CLOE: Gauss–Newton on measured minus simulated torques of the closed loop.

    The base parameters are free of the prior; the robot that is returned is the possible one nearest to them.

    Args:
        robot, log, reference, controller, bandwidth, validation, cutoff, friction, strength, start, lag: as for
            ``didim``.
        iterations: most steps.
        tolerance: change of the torques, in parts of them, at which the iteration ends.

    Raises:
        IdentificationError: as for ``didim``; or no step lowers the error while it is still large.
    """
    problem = LoopProblem.of(robot, log, reference, controller, bandwidth, cutoff, friction, start, lag)
    with one_thread():
        problem.adapt(problem.start, 1)
        x, history, linear, weights, done = gauss_newton(problem, iterations, tolerance)
        problem.check_end(x)
        estimate = estimate_of(problem, x, linear, weights, len(history))
        return _loop_estimate(problem, "cloe", x, history, done, validation, strength, estimate)


def _loop_estimate(
    problem: LoopProblem,
    method: str,
    x: np.ndarray,
    history: list[Iteration],
    converged: bool,
    validation: Log | Sequence[Log] | None,
    strength: float,
    estimate: Estimate | None = None,
) -> ClosedLoopIdentification:
    """All that ``identify`` gives, with the simulated motion in place of the recorded one."""
    current, followed = problem.followed(x, len(history))
    simulated = {
        id(log): loop.signals_of(current, run)
        for log, loop, run in zip(problem.logs, problem.loops, followed, strict=True)
    }

    def motion(log: Log, **options: Any) -> Signals:
        return simulated[id(log)] if id(log) in simulated else shifted(condition(log, **options), problem.lag)

    stages = Stages(condition=motion)
    options: dict[str, Any] = {}
    if estimate is not None:
        stages = replace(stages, fit=_nearest(x))
        # the reduced model has other columns, along the same motion
        options["estimator"] = lambda given: estimate if given.labels == estimate.labels else weighted(given)
    # given recordings are judged along their recorded motion: copies, which are not simulated
    tests = problem.logs if validation is None else [replace(each) for each in as_logs(validation)]
    found = identify(
        problem.robot,
        problem.logs,
        validation=tests,
        cutoff=problem.loops[0].signals.cutoff,
        friction=problem.friction,
        strength=strength,
        lag=0.0,  # torques have been shifted
        stages=stages,
        **options,
    )
    if not converged:
        warn(
            f"{method}: not converged after {len(history)} simulations: the last one changed the torques by "
            f"{history[-1].change:.2g} %",
            IdentificationWarning,
        )
    first, wanted = problem.loops[0], problem.recorded.tau
    return ClosedLoopIdentification(
        method,
        replace(found, lag=problem.lag),
        found.estimate,
        tuple(history),
        converged,
        first.controller,
        first.signals.t,
        first.signals.tau,
        followed[0].tau[0],
        100.0 * norms(wanted - problem.torques(followed)) / np.maximum(norms(wanted), 1e-300),
    )


def _nearest(x: np.ndarray) -> Callable[..., Fit]:
    """A stage that gives the possible parameters whose torques are nearest to those of x."""

    def nearest(observer: Observer, friction: Friction, prior: np.ndarray, *, strength: float) -> Fit:
        carried = Carried.of(observer.regression(friction), x)
        regression = observer.regression(friction, carried)
        weights = 1.0 / np.maximum(regression.spread(x), EXACT * np.sqrt((regression.tau**2).mean(axis=0)))
        never = [
            place
            for place, (_, term) in enumerate(regression.terms, regression.links)
            if term.dissipates or term.kind == "rotor_inertia"
        ]
        gram, _ = regression.gram(weights)
        found = physical_from_gram(gram, product(gram, x), prior, strength=strength, nonnegative=never)
        return Fit(found.x, weights, regression, friction)

    return nearest


def _change(regression: Regression, found: Fit, before: np.ndarray) -> float:
    """By how much the torques of two estimates differ, in parts of the measured ones, joints weighted alike."""
    size = np.maximum(norms(regression.tau), 1e-300)
    return float(np.sqrt(np.mean((norms(product(regression.Y, found.x - before)) / size) ** 2)))
