"""What an identification found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise import outputs
from linkwise.base_parameters import BaseParameters
from linkwise.flags import flag
from linkwise.identify.base import Excitation
from linkwise.identify.estimate import Estimate
from linkwise.identify.estimators import ESTIMATORS, estimator_named
from linkwise.identify.fitting import Fit
from linkwise.identify.reduction import Reduction
from linkwise.identify.regression import axes_of, axis_names
from linkwise.identify.signals import Signals
from linkwise.identify.small_blas import one_thread
from linkwise.identify.validation import Validation
from linkwise.robot import Robot


@dataclass(frozen=True)
class BaseRow:
    """One base parameter: its estimate with uncertainty, the physically consistent value, and the prior's."""

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


@dataclass(frozen=True)
class Identification:
    """An identified robot, and how far it can be trusted.

    ``robot`` has physically possible links, rotor inertias, viscous and Coulomb friction: it can be saved, and code
    can be generated from it. ``fit`` is the whole model with its richer friction, which ``validations`` judge;
    ``of_prior`` and ``of_robot`` judge the robot that was given and the identified one on the same recordings.
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
    of_robot: tuple[Validation, ...]
    warnings: tuple[str, ...] = ()

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
        """Base parameters with labels, what they combine, estimates and confidence intervals."""
        from linkwise.identify.significance import contributions

        lower, upper = self.estimate.interval(level)
        physical = self.base.combination @ self.fit.x
        before = self.base.combination @ self._prior_parameters()
        caused = contributions(self.fit.regression.pick(self.base.columns), self.estimate.x)
        return [
            BaseRow(
                label,
                self.base.expression(k),
                float(self.estimate.x[k]),
                float(self.estimate.deviations[k]),
                float(lower[k]),
                float(upper[k]),
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
            known.setdefault(f"{joint.name}.offset", (forward - backward) / 2)
        return np.array([known.get(label, 0.0) for label in self.fit.regression.labels])

    def code(self, *, reduced: bool = True, function_name: str | None = None) -> str:
        """C99 source of the inverse dynamics, of the reduced model or of the whole robot.

        Args:
            reduced: whether parameters that are not significant are left out.
            function_name: of the C function; inverse_dynamics by default.
        """
        robot = self.reduction.robot if flag("reduced", reduced) else self.robot
        kernel = robot.kernel("inverse_dynamics")
        words = f"{robot.name}, identified from {self.signals[0].log.name}"
        return kernel.source("c", function_name=function_name, description=words)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the identified robot as .urdf or .toml."""
        from linkwise.loading import save

        save(self.robot, path)

    def write_code(self, path: str | os.PathLike[str], *, reduced: bool = True) -> None:
        """Write the C code; the function is called inverse_dynamics.

        Args:
            path: the file.
            reduced: as for ``code``.
        """
        outputs.write(path, self.code(reduced=reduced))

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was found as one HTML page with plots; it appears whole or not at all."""
        from linkwise.report import identification_report

        identification_report(self).write(path)

    def summary(self) -> dict[str, Any]:
        """Everything in plain types, for JSON."""
        judged = self.validation
        return {
            "robot": self.prior.name,
            "joints": list(self.prior.joint_names),
            "recordings": [s.log.name for s in self.signals],
            "processing": [list(s.record) for s in self.signals],
            "friction": {
                name: [term.label for term in terms]
                for name, terms in zip(self.axis_names, self.fit.friction, strict=True)
            },
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
                "total": judged.total,
                "total_in_band": judged.total_in_band,
                "relative_prior": self.of_prior[0].relative,
                "relative_robot": self.of_robot[0].relative,
                "whiteness": judged.whiteness(),
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
