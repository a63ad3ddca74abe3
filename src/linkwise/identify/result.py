"""What an identification found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import LinkwiseError
from linkwise.files import outputs
from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.base import Excitation
from linkwise.identify.estimation.choices import Plain
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import ESTIMATORS, estimator_named
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.lag import Lag
from linkwise.identify.estimation.network import ResidualNetwork
from linkwise.identify.estimation.reduction import Reduction
from linkwise.identify.estimation.regression import axes_of, axis_names
from linkwise.identify.estimation.ripple import Ripple
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.estimation.unmodelled import Unexplained
from linkwise.identify.judging.competitors import Competitor, plain_competitors
from linkwise.identify.judging.ratios import error_ratio
from linkwise.identify.judging.replay import WINDOW, Replay, replay
from linkwise.identify.judging.validation import AT_REST, Validation
from linkwise.identify.judging.verdict import FAILED, Use, VerdictRow, uses, verdict_rows
from linkwise.identify.recordings.signals import Signals
from linkwise.joint_laws.direction import MEMORY
from linkwise.model.coordinates import check_one_axis
from linkwise.robot.directions import next_directions, remembers, torque_range, torques_along
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

if TYPE_CHECKING:
    from linkwise.report import Plot


@dataclass(frozen=True)
class BaseRow:
    """One base parameter: its estimate with uncertainty, the physically consistent value, which is saved, and the
    prior's.

    ``lower`` and ``upper`` are an interval around the saved value: noise and motions that disagree (``deviation``), and
    the distance between the saved value and the estimate, which is an error of the model. Both are infinite where the
    recordings say nothing at all.
    """

    label: str
    expression: str
    value: float
    deviation: float
    lower: float
    upper: float
    physical: float
    prior: float
    contribution: float
    """Largest torque it causes, in parts of the joint's largest measured torque."""


@dataclass(frozen=True, repr=False)
class Identification(Summarised):
    """An identified robot, and how far it can be trusted.

    ``robot`` is the model: physically possible links, rotors and all friction that was found. It is what is saved and
    what code is generated from, and ``validations`` judge it. ``of_prior`` and ``of_reduced`` judge the robot that was
    given and the reduced model on the same recordings. ``lag`` is that between positions and torques; ``plain`` are the
    cut-offs and lags that were tried, with the errors of plain least squares on left-out motions. ``ripple`` are the
    lines of drive ripple in ``robot``, ``unmodelled`` torques that neither possible bodies nor friction that brakes
    explain, ``network`` small networks of joints, where these were asked for; the reduced model has none of them.
    ``contradiction`` says why the recordings are not of the robot as it was given, such as reversed torques; else it is
    empty.
    """

    prior: Robot
    robot: Robot
    fit: Fit
    base: BaseParameters
    estimate: Estimate
    excitation: Excitation
    reduction: Reduction
    signals: tuple[Signals, ...]
    validations: tuple[Validation, ...]
    of_prior: tuple[Validation, ...]
    of_reduced: tuple[Validation, ...]
    warnings: tuple[str, ...] = ()
    lag: Lag = field(default_factory=Lag)
    plain: tuple[Plain, ...] = ()
    ripple: Ripple = field(default_factory=Ripple)
    network: ResidualNetwork = field(default_factory=ResidualNetwork)
    unmodelled: Unexplained = field(default_factory=Unexplained)
    contradiction: str = ""

    @property
    def row_names(self) -> list[str]:
        """Names of the rows of validations: the joints."""
        return list(self.prior.joint_names)

    @property
    def row_units(self) -> list[str]:
        """Units of the rows of validations."""
        return ["N·m" if joint.revolute else "N" for joint in self.prior.moving_joints]

    @property
    def walks(self) -> bool:
        """Whether the base of the robot floats, see ``WalkingIdentification``."""
        return False

    @property
    def poses(self) -> np.ndarray:
        """Positions of all coordinates along the first fitted recording, (N, nq)."""
        return self.signals[0].q

    def _summary(self) -> Summary:
        names, judged = self.row_names, self.validation
        parts = (judged.rms, judged.relative, self.of_prior[0].relative)
        columns = ("joint", ">rms residual", ">robot [%]", ">before [%]")
        title = f"{self.prior.name} identified from {', '.join(s.log.name for s in self.signals)}"
        found = f"{len(self.base.labels)} base parameters, condition {self.excitation.condition:.3g}"
        said = [f"{found}; %: part of the torque that is not explained", *self.warnings]
        return Summary(title, columns, list(zip(names, *parts, strict=True)), said)

    def plot(self) -> Plot:
        """Measured and predicted torques of every joint on the first validation recording."""
        judged = self.validation
        from linkwise import report

        return report.torque_plot(judged.t, judged.measured, judged.predicted, self.row_names)

    @property
    def validation(self) -> Validation:
        """The first of the validations."""
        return self.validations[0]

    @property
    def axes(self) -> np.ndarray:
        """All axes with friction terms of their own, shape (axes, n): the joints, then coupled motors."""
        return axes_of(self.prior.dof, self.signals[0].log.axes)

    @property
    def axis_names(self) -> list[str]:
        """Names of ``axes``: joints, and sums of joints for coupled motors."""
        return axis_names(self.prior, self.axes)

    def estimates(self, names: Sequence[str] = ()) -> dict[str, Estimate]:
        """The base parameters by several estimators (default: all), for comparison."""
        independent = self.fit.regression.pick(self.base.columns)
        with one_thread():
            return {name: estimator_named(name)(independent) for name in names or ESTIMATORS}

    def table(self, level: float = 0.95) -> list[BaseRow]:
        """Base parameters with labels, what they combine, estimates, and confidence intervals of what is saved."""
        from linkwise.identify.estimation.significance import contributions

        lower, upper = self.estimate.interval(level)
        physical = product(self.base.combination, self.fit.x)
        unknown = np.isin(self.base.labels, self.excitation.unknown)
        deviations = np.where(unknown, np.inf, self.estimate.deviations)
        reach = np.where(unknown, np.inf, np.hypot(0.5 * (upper - lower), physical - self.estimate.x))
        before = product(self.base.combination, self._prior_parameters())
        caused = contributions(self.fit.regression.pick(self.base.columns), self.estimate.x)
        return [
            BaseRow(
                label,
                self.base.expression(k),
                float(self.estimate.x[k]),
                float(deviations[k]),
                float(physical[k] - reach[k]),
                float(physical[k] + reach[k]),
                float(physical[k]),
                float(before[k]),
                float(caused[k]),
            )
            for k, label in enumerate(self.base.labels)
        ]

    def _prior_parameters(self) -> np.ndarray:
        """Parameters of the robot that was given, in the order of the regression's columns; unknown ones are 0."""
        known = dict(zip(self.prior.parameter_labels, self.prior.parameters.tolist(), strict=True))
        # a robot has two magnitudes of Coulomb friction; here they are a symmetric part and an offset
        for joint in self.prior.moving_joints:
            forward, backward = joint.coulomb_friction
            known.setdefault(f"{joint.name}.coulomb_friction", (forward + backward) / 2)
            known.setdefault(f"{joint.name}.torque_offset", (forward - backward) / 2)
        return np.array([known.get(label, 0.0) for label in self.fit.regression.labels])

    @property
    def remembers(self) -> bool:
        """Whether friction of a joint depends on the motion before, see ``Robot.directions``."""
        return remembers(self.robot)

    def predict(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, *, in_order: bool = False
    ) -> np.ndarray:
        """The torques that the identified robot needs, as ``robot.inverse_dynamics`` gives them.

        Args:
            q: positions, (..., n).
            qd: velocities, (..., n).
            qdd: accelerations, (..., n).
            in_order: the states are samples of one motion, (..., samples, n), in the order of time: friction that
                remembers the direction of motion is followed along it, as it is in ``validations``.

        Returns:
            Torques [N·m or N], (..., n).
        """
        if flag("in_order", in_order):
            return torques_along(self.robot, q, qd, qdd)
        return self.robot.inverse_dynamics(q, qd, qdd)

    def predict_range(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        *,
        in_order: bool = False,
        at_rest: float = AT_REST,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Torques between which the identified robot may be held: of a joint at rest any that static friction allows.

        In generated code, ``inverse_dynamics_along`` with directions −1 and 1 of joints at rest gives the same ends.

        Args:
            q: positions, (..., n).
            qd: velocities, (..., n).
            qdd: accelerations, (..., n).
            in_order: the states are samples of one motion, (..., samples, n), as for ``predict``.
            at_rest: speed [rad/s or m/s] up to which a joint rests.

        Returns:
            Lower and upper torques [N·m or N], each (..., n); both are those of ``predict`` where all joints move.
        """
        ordered = flag("in_order", in_order)
        check_one_axis(self.robot, "the range at rest")
        return torque_range(self.robot, q, qd, qdd, at_rest, in_order=ordered)

    def code(self, *, reduced: bool = False, function_name: str | None = None) -> str:
        """C99 source of the inverse dynamics of the identified robot, or of the reduced model.

        ``inverse_dynamics`` takes one state. Where friction remembers the motion there are two more functions:
        ``inverse_dynamics_along`` takes the directions of friction as well, and ``next_directions`` follows them from
        one sample to the next.

        Args:
            reduced: whether parameters that are not significant are left out.
            function_name: of the C function; inverse_dynamics by default.
        """
        robot = self.reduction.robot if flag("reduced", reduced) else self.robot
        name = function_name or "inverse_dynamics"
        words = f"{robot.name}, identified from {self.signals[0].log.name}"
        parts = [robot.kernel("inverse_dynamics").source("c", function_name=name, description=words)]
        if remembers(robot):
            along = robot.kernel("inverse_dynamics", inputs=(MEMORY,))
            parts.append(along.source("c", function_name=f"{name}_along", description=words))
            parts.append(next_directions(robot).source("c", description=words))
        return "\n".join(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the identified robot as .urdf or .toml."""
        from linkwise.robot.loading import save

        save(self.robot, path)

    def write_code(self, path: str | os.PathLike[str], *, reduced: bool = False) -> None:
        """Write the C code.

        Args:
            path: the file.
            reduced: as for ``code``.
        """
        outputs.write(path, self.code(reduced=reduced))

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was found as one HTML page with plots; it appears whole or not at all."""
        from linkwise.report import identification_report

        identification_report(self).write(path)

    def verdict(self) -> list[VerdictRow]:
        """Residuals of what can be taken away, beside the robot as it was given, for every recording."""
        fitted = [any(judged.log is s.log for s in self.signals) for judged in self.validations]
        return verdict_rows(self.robot, fitted, self.validations, self.of_reduced, self.of_prior)

    @once
    def competitors(self) -> tuple[Competitor, ...]:
        """Plain least squares, as people do them by hand, on every recording: two laws of friction, three cut-offs."""
        with one_thread():
            return plain_competitors(self.prior, self.signals, self.validations)

    @property
    def failure(self) -> str:
        """Why the model is of no use; empty where it is of some.

        More than ``verdict.FAILED`` % of the torque is left on some recording, or the recordings contradict the robot:
        a function of position and speed explains torques of the wrong sign as well, and would drive the robot.
        """
        left = max((judged.total for judged in self.validations), key=lambda x: (x != x, x))
        if not left <= FAILED:
            return f"{left:.3g} % of the torque is left (at most {FAILED:g} %)"
        return self.contradiction

    @property
    def failed(self) -> bool:
        """Whether the model is of no use, see ``failure``."""
        return bool(self.failure)

    def uses(self) -> list[Use]:
        """What the identified robot is good for, by its worst recording; nothing where it fails."""
        return uses(max(judged.total for judged in self.validations), self.failed)

    def replay(self, place: int = 0, window: float = WINDOW) -> tuple[Replay, Replay | None]:
        """A recording simulated with its torques, by the identified robot and by the robot as it was given.

        Args:
            place: which of the validations.
            window: time [s] after which a simulation starts again at the recorded state.

        Returns:
            Both simulations; None for a robot as given that cannot be simulated, such as one without masses.
        """
        judged = self.validations[place]
        try:
            given = replay(self.prior, judged, window)
        except LinkwiseError:
            given = None
        return replay(self.robot, judged, window), given

    def worse_than_given(self) -> list[str]:
        """A sentence for every recording and model that predicts it worse than the robot as it was given: by more than
        2 % of the error and two standard errors, see ``judging.ratios``."""
        return [
            f"{model.log.name}: the {name} predicts worse ({model.total:.3g} %) than the robot as it was given "
            f"({prior.total:.3g} %); do not use it for motions like this one"
            for name, models in (("identified robot", self.validations), ("reduced model", self.of_reduced))
            for model, prior in zip(models, self.of_prior, strict=True)
            if error_ratio(model, prior).clear
        ]

    def summary(self) -> dict[str, Any]:
        """Everything in plain types, for JSON."""
        judged = self.validation
        return {
            "robot": self.prior.name,
            "verdict": [row.plain() for row in self.verdict()],
            "joints": self.row_names,
            "recordings": [s.log.name for s in self.signals],
            "processing": [list(s.record) for s in self.signals],
            "lag": self.lag.summary(),
            "choices": [
                {"law": p.law, "cutoff": p.cutoff, "lag": p.lag.corrected, "error": p.error}
                for p in self.plain
            ],
            "plain_least_squares": [each.summary() for each in self.competitors],
            "failed": self.failed,
            "failure": self.failure,
            "good_for": {use.name: use.holds for use in self.uses()},
            "friction": {
                name: [term.text for term in terms]
                for name, terms in zip(self.axis_names, self.fit.friction, strict=True)
            },
            "unmodelled": [vars(torque) for torque in self.unmodelled.torques],
            "ripple": [vars(line) for line in self.ripple.lines],
            "network": [{"joint": each.joint, "gain": each.gain} for each in self.network.joints],
            "condition": self.excitation.condition,
            "estimator": {"name": self.estimate.method, "notes": list(self.estimate.notes)},
            "noise": self.estimate.sigma,
            "base_parameters": [vars(row) for row in self.table()],
            "validation": {
                "recording": judged.log.name,
                "samples": len(judged.t),
                "rms": judged.rms,
                "relative": judged.relative,
                "relative_in_band": judged.in_band,
                "band": judged.band,
                "relative_moving": judged.moving,
                "relative_standing": judged.standing,
                "total_moving": judged.total_moving,
                "total_standing": judged.total_standing,
                "total_beyond_range_at_rest": judged.total_beyond,
                "within_range_at_rest": judged.held,
                "total": judged.total,
                "total_in_band": judged.total_in_band,
                "relative_prior": self.of_prior[0].relative,
                "relative_robot": judged.relative,
                "relative_reduced": self.of_reduced[0].relative,
            },
            "reduced": {
                "rule": self.reduction.significance.rule,
                "base_parameters": self.reduction.base_count,
                "significant": list(self.reduction.significance.labels),
                "relative": self.reduction.relative,
                "multiplications": self.reduction.operations.multiplications,
                "additions": self.reduction.operations.additions,
                "multiplications_before": self.reduction.operations_before.multiplications,
                "additions_before": self.reduction.operations_before.additions,
            },
            "warnings": list(self.warnings),
        }
