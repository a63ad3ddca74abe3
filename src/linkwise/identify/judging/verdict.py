"""What can be taken away from an identification, and how well each of it predicts every recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from linkwise.identify.judging.validation import Validation
from linkwise.joint_laws.direction import MEMORY
from linkwise.robot.directions import friction_axes, next_directions, remembers
from linkwise.robot.robot import Robot

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


def uses(left: float, failed: bool = False) -> list[Use]:
    """Every use of ``USES``.

    Args:
        left: part of the torque that is not explained [%].
        failed: whether the model fails, so that it is good for none.
    """
    return [Use(name, limit, left <= limit and not failed) for name, limit in USES.items()]


@dataclass(frozen=True)
class VerdictRow:
    """Residuals [%] of all joints together on one recording; ``fitted``: the model was fitted to it.

    ``code`` are the functions that follow a motion, called sample by sample, ``code_of_one_state`` the function without
    a memory; both are the same function where friction remembers nothing.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *("recording", ">saved robot", ">its C code", ">C of one state", ">reduced model", ">robot as given"),
    )

    recording: str
    fitted: bool
    saved_robot: float
    code: float
    code_of_one_state: float
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
        figures = (
            *(self.saved_robot, self.code, self.code_of_one_state),
            *(self.reduced_model, self.robot_as_given),
        )
        name = f"{self.recording} (fitted)" if self.fitted else self.recording
        return [name, *(f"{value:.3g} %" if value == value else "–" for value in figures)]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"best": self.best}


def verdict_rows(
    robot: Robot,
    fitted: Sequence[bool],
    saved: Sequence[Validation],
    reduced: Sequence[Validation],
    given: Sequence[Validation],
) -> list[VerdictRow]:
    """One row for every recording that was predicted; programs of the C code are run on it.

    Args:
        robot: the saved robot.
        fitted: whether the model was fitted to the recording.
        saved: the saved robot.
        reduced: the reduced model.
        given: the robot as it was given.
    """
    return [
        VerdictRow(s.log.name, own, s.total, *code_totals(robot, s), r.total, g.total)
        for own, s, r, g in zip(fitted, saved, reduced, given, strict=True)
    ]


def code_totals(robot: Robot, judged: Validation) -> tuple[float, float]:
    """Residuals [%] of the functions of the C file on a recording: along the motion, and of single states.

    The programs are those that are written as C. Directions are followed from one sample to the next, from zero on, as
    a controller calls them.

    Args:
        robot: the robot.
        judged: a validation on the recording.
    """
    if judged.motion is None:
        return judged.total, judged.total
    q, qd, qdd = judged.motion
    alone = _total(judged, robot.kernel("inverse_dynamics")(q, qd, qdd))
    if not remembers(robot):
        return alone, alone
    follow = next_directions(robot)
    directions = np.zeros((len(q), len(friction_axes(robot))))
    steps = np.diff(q, axis=0, prepend=q[:1])
    for k in range(len(q)):
        directions[k] = follow(directions[max(k - 1, 0)], steps[k], qd[k])
    return _total(judged, robot.kernel("inverse_dynamics", inputs=(MEMORY,))(q, qd, qdd, directions)), alone


def _total(judged: Validation, predicted: np.ndarray) -> float:
    size = np.linalg.norm(judged.measured)
    return float(100.0 * np.linalg.norm(judged.measured - predicted) / size)
