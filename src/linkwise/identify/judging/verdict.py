"""What can be taken away from an identification, and how well each of it predicts every recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from linkwise.identify.judging.validation import Validation

NOTE = "100·‖τ − τ̂‖/‖τ‖ of all joints together; --code writes the saved robot, --reduce the reduced model"

FAILED = 60.0  # [% of the torque] from which a model is of no use and is not saved
USES = {"feed-forward": 30.0, "simulation": 15.0, "collision detection": 10.0}
"""What models serve for, and the largest part of the torque [%] that may be left unexplained for it.

Feed-forward takes most of the work from a controller. A simulation with a larger error is another robot. A collision
is noticed when it exceeds what the model leaves: a tenth of the torque of common motions."""


@dataclass(frozen=True)
class Use:
    """Whether a model is good for something: at most ``limit`` [% of the torque] may be left."""

    name: str
    limit: float
    holds: bool

    @property
    def text(self) -> str:
        return f"{self.name}: {'yes' if self.holds else 'no'} (at most {self.limit:g} %)"


def uses(left: float) -> list[Use]:
    """Every use of ``USES``.

    Args:
        left: part of the torque that is not explained [%].
    """
    return [Use(name, limit, left <= limit) for name, limit in USES.items()]


@dataclass(frozen=True)
class VerdictRow:
    """Residuals [%] of all joints together on one recording; ``fitted``: the model was fitted to it."""

    columns: ClassVar[tuple[str, ...]] = (
        *("recording", ">saved robot", ">its C code", ">reduced model", ">robot as given"),
    )

    recording: str
    fitted: bool
    saved_robot: float
    code: float
    reduced_model: float
    robot_as_given: float

    @property
    def best(self) -> str:
        """What predicts this recording best."""
        figures = (self.saved_robot, self.reduced_model, self.robot_as_given)
        return min(zip(figures, ("saved robot", "reduced model", "robot as given"), strict=True))[1]

    @property
    def cells(self) -> list[str]:
        """The row as text, below ``columns``."""
        figures = (self.saved_robot, self.code, self.reduced_model, self.robot_as_given)
        name = f"{self.recording} (fitted)" if self.fitted else self.recording
        return [name, *(f"{value:.3g} %" if value == value else "–" for value in figures)]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"best": self.best}


def verdict_rows(
    fitted: Sequence[bool],
    saved: Sequence[Validation],
    reduced: Sequence[Validation],
    given: Sequence[Validation],
) -> list[VerdictRow]:
    """One row for every recording that was predicted; C code has the torques of the saved robot.

    Args:
        fitted: whether the model was fitted to the recording.
        saved: the saved robot.
        reduced: the reduced model.
        given: the robot as it was given.
    """
    return [
        VerdictRow(s.log.name, own, s.total, s.total, r.total, g.total)
        for own, s, r, g in zip(fitted, saved, reduced, given, strict=True)
    ]
