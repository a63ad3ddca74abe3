"""What an identification of a robot that walks found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.identify.errors import IdentificationError
from linkwise.identify.judging.competitors import Competitor
from linkwise.identify.judging.replay import WINDOW, Replay
from linkwise.identify.result import Identification
from linkwise.identify.walking.contacts import Foot
from linkwise.identify.walking.mass import TotalMass
from linkwise.identify.walking.observer import ROW_NAMES


@dataclass(frozen=True, repr=False)
class WalkingIdentification(Identification):
    """An identified robot with a floating base, and how far it can be trusted.

    As for arms; but validations have rows of the base and of the joints without the forces of feet that are held:
    measured P S τ and predicted P (M q̈ + c + g + friction), where P takes away whatever these forces can be. ``feet``
    are what may touch the ground, ``held`` (N, feet + 1) of each fitted recording which of them count as touching, the
    base last. ``scale`` (dof,) are the standard deviations of the rows' errors [N·m or N]. ``mass`` is the total mass,
    and whether the recordings tell it.
    """

    feet: tuple[Foot, ...] = ()
    held: tuple[np.ndarray, ...] = ()
    scale: np.ndarray | None = None
    plain_fits: tuple[Competitor, ...] = ()
    mass: TotalMass = field(kw_only=True)

    @property
    def row_names(self) -> list[str]:
        """Names of the rows of validations: base, then joints."""
        return [*ROW_NAMES, *self.prior.joint_names[1:]]

    @property
    def row_units(self) -> list[str]:
        """Units of the rows of validations."""
        joints = self.prior.moving_joints[1:]
        return [*["N·m"] * 3, *["N"] * 3, *("N·m" if joint.revolute else "N" for joint in joints)]

    @property
    def walks(self) -> bool:
        """Whether the base of the robot floats: it does."""
        return True

    @property
    def poses(self) -> np.ndarray:
        """Positions of all coordinates along the first fitted recording, (N, nq)."""
        return self.signals[0].states[0]  # type: ignore[attr-defined]

    @property
    def axes(self) -> np.ndarray:
        """Axes with friction of their own: the joints, (joints, joints)."""
        return np.eye(len(self.prior.joint_names) - 1)

    @property
    def axis_names(self) -> list[str]:
        """Names of the joints."""
        return list(self.prior.joint_names[1:])

    @property
    def competitors(self) -> tuple[Competitor, ...]:  # type: ignore[override]
        """Plain least squares without the forces of the feet: smooth friction, one cut-off."""
        return self.plain_fits

    def replay(self, place: int = 0, window: float = WINDOW) -> tuple[Replay, Replay | None]:
        """Not for robots that walk: foot forces, which drive them, were not measured."""
        raise IdentificationError(
            "replay: not for a floating base: the forces that drive it were not measured"
        )

    def summary(self) -> dict[str, Any]:
        """Everything in plain types, for JSON."""
        scale = [] if self.scale is None else self.scale.tolist()
        free = [float(1.0 - held[:, :-1].mean()) for held in self.held]
        extra = {"feet": [foot.name for foot in self.feet], "free": free, "row_errors": scale}
        extra["total_mass"] = self.mass.plain()
        return super().summary() | extra
