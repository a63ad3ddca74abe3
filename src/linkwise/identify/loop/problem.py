"""What DIDIM and CLOE have in common: recordings, their loops, and robots simulated along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.control import Controller
from linkwise.core.products import length as vector_length
from linkwise.identify.campaign import true_parameters
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.fitting import Fit, fit
from linkwise.identify.estimation.friction import Friction, check_springs, friction_named
from linkwise.identify.estimation.friction_choice import choose_friction
from linkwise.identify.estimation.instrumental import steppable
from linkwise.identify.estimation.lag import Lag, as_given, estimate_lag, shifted
from linkwise.identify.estimation.prior import prior_bodies, scale_of
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.representable import robot_of
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.loop.simulation import (
    Followed,
    OwnModel,
    RecordedLoop,
    matched_law,
    reference_samples,
    smoothed_reference,
    stiff_law,
    values_of,
    varied_labels,
)
from linkwise.identify.recordings.log import Log, as_logs
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.model.coordinates import check_torques
from linkwise.motion import Samples, Trajectory
from linkwise.robot.robot import Robot

NOT_EXPLAINED = 0.9  # part of the torques left from which the simulation explains nothing
ELSEWHERE = 0.5  # part of the recorded motion by which the simulated one may differ
MATCHED = 2  # iterations after which an unknown controller is looked for again


@dataclass(frozen=True)
class Iteration:
    """One simulation: what it left of the torques [%], how far its positions are from the recorded ones (rms of all
    joints, rad or m), and by how much the estimate that followed changes the torques [%]."""

    number: int
    residual: float
    distance: float
    change: float


@dataclass
class LoopProblem:
    """Recordings of a robot, and the loops that are simulated along them."""

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
    lag: Lag
    """Of the recorded torques, which ``loops`` have without it."""

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
        lag: float | None = None,
    ) -> LoopProblem:
        logs = as_logs(log)
        _check(robot, logs, controller, start)
        check_springs(robot, friction)
        with one_thread():
            first = condition(logs[0], cutoff=cutoff)
            signals = [first, *(condition(each, cutoff=first.cutoff) for each in logs[1:])]
            # what is read from recorded positions has the cut-off that follows from them, whatever torques are given
            smooth = signals if cutoff is None else [condition(each) for each in logs]
            late = estimate_lag(Observer(robot, smooth)) if lag is None else as_given(lag)
            signals = [shifted(each, late) for each in signals]
            smooth = Observer(robot, [shifted(each, late) for each in smooth])
            observer = smooth if cutoff is None else Observer(robot, signals)
            prior = prior_bodies(robot)
            prior = scale_of(smooth, prior) * prior
            if isinstance(friction, str):
                friction = (
                    choose_friction(smooth, prior).friction
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
            followed = _references(reference, [log] if isinstance(log, Log) else list(log), signals)
            loops = [
                RecordedLoop(template, labels, s, samples, law)
                for s, samples in zip(signals, followed, strict=True)
            ]
        matching = controller is None and reference is not None
        return cls(robot, logs, observer, friction, prior, loops, x, matching, late)

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

    def solved(self, x: np.ndarray, number: int, strength: float) -> tuple[Regression, Fit, list[Followed]]:
        """Parameters from measured torques and the columns of the simulated motion.

        A robot that the given controller cannot hold is held by one that knows the robot's parameters: the motion is
        nearly the same, and the next robot is nearer.
        """
        loops = self.loops
        try:
            current, followed = self.followed(x, number)
        except IdentificationError:
            if isinstance(loops[0].controller, OwnModel):
                raise
            law = stiff_law(loops[0].template, loops[0].labels)
            loops = [replace(loop, controller=law) for loop in self.loops]
            current, followed = replace(self, loops=loops).followed(x, number)
        simulated = [loop.signals_of(current, run) for loop, run in zip(loops, followed, strict=True)]
        found = fit(Observer(self.robot, simulated), self.friction, self.prior, strength=strength)
        return found.regression, found, followed

    def torques(self, followed: list[Followed], robot: int = 0) -> np.ndarray:
        """Filtered simulated torques of all recordings, one below the other (rows, n)."""
        return np.concatenate(
            [loop.signals.filtered(run.tau[robot]) for loop, run in zip(self.loops, followed, strict=True)]
        )

    def measured_by(self, number: int, followed: list[Followed], change: float) -> Iteration:
        wanted = self.recorded.tau
        away = [loop.distance(run)[0] for loop, run in zip(self.loops, followed, strict=True)]
        left = vector_length(wanted - self.torques(followed)) / max(vector_length(wanted), 1e-300)
        return Iteration(
            number, 100.0 * float(left), float(np.sqrt(np.mean(np.square(away)))), 100.0 * change
        )

    def check_end(self, x: np.ndarray) -> None:
        """Raise where the loop with the found parameters does not move as recorded, or needs other torques altogether.

        Torques alone do not show it: those that hold the robot against gravity are needed in any motion.
        """
        _, followed = self.followed(x, 0)
        wanted, found = self.recorded.tau, self.torques(followed)
        left = norms(wanted - found) / np.maximum(norms(wanted - wanted.mean(axis=0)), 1e-300)
        away, extent = (
            np.sqrt(
                np.sum(
                    [loop.distance(run)[0] ** 2 for loop, run in zip(self.loops, followed, strict=True)],
                    axis=0,
                )
            ),
            np.sqrt(np.sum([loop.signals.q.var(axis=0) for loop in self.loops], axis=0)),
        )
        if vector_length(away) > ELSEWHERE * vector_length(extent):
            worst, wrong = int(np.argmax(away)), "does not move as recorded"
        elif vector_length(wanted - found) > NOT_EXPLAINED * vector_length(wanted):
            worst, wrong = int(np.argmax(left)), "does not need the measured torques"
        else:
            return
        raise IdentificationError(
            f"the simulated loop {wrong} (worst at {self.robot.joint_names[worst]}): the parameters to start from are "
            "too far away, or controller and reference are not those of the recording"
        )


def _check(robot: Robot, logs: Sequence[Log], controller: Controller | None, start: Robot | None) -> None:
    check_torques(robot, "identification")
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
        raise IdentificationError(
            f"controller: of {controller.robot.dof} joints; {robot.name} has {robot.dof}"
        )
    if start is not None and start.joint_names != robot.joint_names:
        raise IdentificationError(f"start: its joints are not those of {robot.name}")


def _references(reference: Any, logs: Sequence[Log], signals: Sequence[Signals]) -> list[Samples]:
    """The reference at the samples of every part of the recordings; positions are cut at gaps as the recordings are."""
    if reference is None:
        return [smoothed_reference(s, condition(s.log)) for s in signals]
    given = list(reference) if isinstance(reference, (list, tuple)) else [reference]
    if len(given) != len(logs):
        raise IdentificationError(
            f"reference: {len(given)} for {len(logs)} recordings; expected one for each"
        )
    parts: list[Any] = []
    for log, each in zip(logs, given, strict=True):
        if isinstance(each, Trajectory):
            parts += [each] * len(as_logs(log))
        else:
            parts += [part.q for part in as_logs(replace(log, q=_positions(log, each), qd=None))]
    return [reference_samples(s, each) for s, each in zip(signals, parts, strict=True)]


def _positions(log: Log, reference: Any) -> np.ndarray:
    try:
        q = np.asarray(reference, dtype=float)
    except (TypeError, ValueError):
        q = np.zeros(())
    if q.shape != log.q.shape or not np.isfinite(q).all():
        raise IdentificationError(
            f"reference: expected a trajectory, or finite positions {log.q.shape} as those of {log.name}, got "
            f"{f'shape {q.shape}' if q.shape else repr(reference)}"
        )
    return q


def norms(x: np.ndarray) -> np.ndarray:
    """Lengths of the columns."""
    return np.sqrt((x**2).sum(axis=0))
