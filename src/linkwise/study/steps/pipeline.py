"""All of ``linkwise.identify`` at every point: ``id = { identify = "pipeline", torque_noise = 0.1, … }``.

The robot of the point is recorded along a periodic motion, with noise on torques and positions; filters, friction,
physically consistent fit and all that follows are those of a real recording. A point gives how well the identified
robot predicts the torques of the true one. Linear algebra is LAPACK's, so the last bits are those of the machine.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot
from linkwise.study.errors import StudyError
from linkwise.study.quantities import JOINT, Quantity
from linkwise.study.steps.base import Arrays
from linkwise.study.steps.identification import IdentificationStep

Found = tuple[np.ndarray, float]
"""Relative error of each joint's torques [%], condition number."""


def frictions() -> tuple[str, ...]:
    """The names of what friction may be."""
    try:
        from linkwise.identify import MODELS
    except ImportError as error:
        raise StudyError(
            f"identifications need the extra: pip install 'linkwise[identify]' ({error})"
        ) from None
    return ("auto", *MODELS)


@dataclass(frozen=True, eq=False)
class PipelineStep(IdentificationStep):
    """As the step by least squares, but by ``linkwise.identify.identify``."""

    position_noise: float = 0.0
    friction: str = "auto"

    def gives(self) -> tuple[str, ...]:
        return (f"{self.name}.relative_error", f"{self.name}.condition")

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        if name.endswith(".condition"):
            return Quantity(name, shape, (), "1", "condition number of the observations")
        return Quantity(
            name, shape, (JOINT,), "%", "torques of the identified robot, against those of the true one"
        )

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        """NaN at points that were refused."""
        rows = [
            (np.full(self.robot.dof, np.nan), np.nan) if isinstance(one, LinkwiseError) else one
            for one in self._identifications(given, first)
        ]
        errors, conditions = zip(*rows, strict=True)
        return dict(zip(self.gives(), (np.array(errors), np.array(conditions)), strict=True))

    def tried(self, given: Arrays) -> dict[str, np.ndarray]:
        identifications = self._identifications(given, 0)
        if all(isinstance(one, LinkwiseError) for one in identifications):
            raise StudyError(f"compute.{self.name}: {identifications[0]}")
        return self.computed(given, 0)

    def _identifications(self, given: Arrays, first: int) -> list[Found | LinkwiseError]:
        exact, noise = self.measurements(given, first)
        shaken = self.position_noise * self.normal(first, len(exact), "position")
        return [self._one(*parts) for parts in zip(exact, exact + noise, shaken, strict=True)]

    def _one(self, exact: np.ndarray, measured: np.ndarray, shaken: np.ndarray) -> Found | LinkwiseError:
        from linkwise.identify import Log, identify

        q, qd, qdd = self.states
        t = np.arange(len(q)) * (self.motion.period / len(q))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                identified = identify(self.robot, Log(t, q + shaken, measured), friction=self.friction)
        except LinkwiseError as error:
            return error
        wrong = identified.robot.inverse_dynamics(q, qd, qdd, threads=1) - exact
        return 100.0 * np.linalg.norm(wrong, axis=0) / np.linalg.norm(
            exact, axis=0
        ), identified.estimate.condition
