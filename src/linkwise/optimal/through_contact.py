"""Optimal motion through contact: no schedule, every step is one of the contact simulation. Over any scalar.

The laws of contact say which foot touches when, so the solver finds the contacts as it finds the torques. Values are
those of ``robot.contact_step``, with Signorini's condition and Coulomb's cone; derivatives are those of a contact that
acts over a range of velocities s (``algorithms.contact.derivatives``): without it, what does not touch yet has no
derivative, and no torque would be worth trying. s is the run-time parameter "contacts.smoothing" of the stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.model.contacts import candidate_count
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot

SMOOTHING = "contacts.smoothing"


@dataclass(frozen=True)
class ThroughContact:
    """Contacts of the robot (``Robot.with_contacts``) act in every step of a problem, without a schedule.

    Args:
        smoothing: range of velocities s over which derivatives let a contact act, at the begin [m/s]; a range s h of
            gaps.
        sharpest: s of the last round [m/s].
        rounds: of the solver, each with a smaller s, from the solution of the one before.
    """

    smoothing: float = 0.3
    sharpest: float = 0.003
    rounds: int = 5

    def __post_init__(self):
        arguments.number("contacts: smoothing", self.smoothing, above=0.0)
        arguments.number("contacts: sharpest", self.sharpest, above=0.0)
        arguments.whole("contacts: rounds", self.rounds, 1)
        if self.sharpest > self.smoothing:
            raise ProblemError(
                f"contacts: sharpest: expected at most smoothing {self.smoothing:g}, got {self.sharpest:g}"
            )

    def check(self, robot: Robot) -> None:
        """Refuse robots that touch nothing.

        Args:
            robot: the robot.
        """
        if not candidate_count(robot):
            raise ProblemError(
                f"contacts: {robot.name} touches nothing; use robot.with_contacts([lw.Contact(FRAME)])"
            )

    def stages(self) -> list[float]:
        """s of every round."""
        if self.rounds == 1:
            return [float(self.smoothing)]
        ratio = (self.sharpest / self.smoothing) ** (1.0 / (self.rounds - 1))
        return [self.smoothing * ratio**k for k in range(self.rounds)]

    def stepped(
        self, dynamics: Dynamics, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Positions and velocities after a step.

        Args:
            dynamics: of the stage.
            q: positions, nq scalars.
            qd: velocities, n scalars.
            tau: torques, n scalars.
        """
        from linkwise.functions.evaluation import outputs_of

        smoothing: Any = dynamics.smoothing
        setting = Setting(dynamics.robot, friction=dynamics.friction, smoothing=smoothing)
        given = {"q": list(q), "qd": list(qd), "tau": list(tau), "time_step": [dynamics.step]}
        outputs = outputs_of(FUNCTIONS["contact_step"], setting, "compound_link", **given)
        return outputs["q"], outputs["qd"]
