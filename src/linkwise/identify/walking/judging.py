"""How well a robot with a floating base predicts a recording: rows of base and joints without foot forces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.identify.judging.validation import Validation
from linkwise.identify.walking.contacts import Foot, projected
from linkwise.identify.walking.observer import BASE, force_basis
from linkwise.identify.walking.states import WalkingSignals
from linkwise.robot.robot import Robot


class Judge:
    """Judges models on one recording, all with the same feet held.

    Args:
        robot: the robot, whose geometry is used.
        signals: the conditioned recording.
        feet: what may touch the ground.
        held: which feet are held, and the base (last), (N, feet + 1).
        band: frequencies [Hz] in which it is judged as well.
    """

    def __init__(
        self,
        robot: Robot,
        signals: WalkingSignals,
        feet: Sequence[Foot],
        held: np.ndarray,
        band: float | None,
    ):
        self.signals, self.band = signals, band or signals.cutoff
        self.t, self.states = signals.states_at_stamps()
        at = np.clip(self.t - signals.lag, signals.t[0], signals.t[-1])
        near = np.searchsorted(0.5 * (signals.t[1:] + signals.t[:-1]), at)
        q, v, _ = self.states
        up = signals.up[near]
        self.Q = force_basis(robot, feet, q, up, held[near], np.ones(robot.dof))
        tau = signals.log.tau
        self.measured = projected(self.Q, np.concatenate([np.zeros((len(tau), BASE)), tau], axis=1))
        self.velocities = v

    def of(self, predicted: np.ndarray) -> Validation:
        """Of generalised forces (N, dof) that a model needs for the recorded motion."""
        rows = projected(self.Q, predicted)
        return Validation(self.signals.log, self.t, self.velocities, self.measured, rows, self.band)

    def robot(self, robot: Robot) -> Validation:
        """Of a robot with its own friction."""
        return self.of(np.asarray(robot.inverse_dynamics(*self.states)))
