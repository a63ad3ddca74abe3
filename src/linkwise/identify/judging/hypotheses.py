"""What may be wrong with a recording as a whole: columns, signs, zero positions, units, the clock, gravity.

A hypothesis corrects a recording, and says in words what it corrects. ``diagnosis`` tries them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.robot.robot import Robot

TIMES = (1e-3, 0.1, 0.5, 2.0, 10.0, 1e3)  # factors of time stamps and rates that people mistake
FASTER = 2.0  # times the speed limit of the file, and
FASTEST = 100.0  # [rad/s or m/s] beyond which no robot moves
HALF, QUARTER = math.pi, math.pi / 2


@dataclass(frozen=True)
class Recording:
    """Some samples of a recording: q, qd, qdd, tau (N, n), and gravity [m/s²] in the base frame, (3,).

    ``channels`` (n,): which recorded column of torques each joint has.
    """

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    gravity: np.ndarray
    channels: np.ndarray

    @property
    def dof(self) -> int:
        return self.q.shape[1]

    def same_as(self, other: Recording) -> bool:
        """Whether both hold the same samples and the same gravity."""
        pairs = zip(
            (self.q, self.qd, self.tau, self.gravity),
            (other.q, other.qd, other.tau, other.gravity),
            strict=True,
        )
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def turned(self, factors: np.ndarray | float) -> Recording:
        """Positions and their derivatives times factors, (n,) or one for all."""
        return replace(self, q=self.q * factors, qd=self.qd * factors, qdd=self.qdd * factors)

    def moved_by(self, order: Sequence[int]) -> Recording:
        """Columns of positions and their derivatives in another order."""
        p = list(order)
        return replace(self, q=self.q[:, p], qd=self.qd[:, p], qdd=self.qdd[:, p])

    def driven_by(self, order: Sequence[int]) -> Recording:
        """Columns of torques in another order."""
        p = list(order)
        return replace(self, tau=self.tau[:, p], channels=self.channels[p])

    def slower(self, factor: float) -> Recording:
        """The same path in ``factor`` times the time."""
        return replace(self, qd=self.qd / factor, qdd=self.qdd / factor**2)


@dataclass(frozen=True)
class Hypothesis:
    """What is wrong and what to do, in words, and the recording as it should be.

    ``moves``: whether positions differ, so that columns of the regression must be computed again. ``drive``: the
    recorded column of torques whose sign is changed, if it is one alone: only friction may tell that it is wrong.
    ``clock``: whether times alone are changed, which weight does not depend on. ``all_joints``: whether the signs of
    all are changed, which least squares do not notice. ``weight``: whether weight is there twice, which heavier links
    that move more slowly have as well.
    """

    cause: str
    remedy: str
    corrected: Recording
    moves: bool = True
    drive: int | None = None
    clock: bool = False
    all_joints: bool = False
    weight: bool = False


def hypotheses(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    """All that are tried on every recording; directions of gravity are searched by ``diagnosis``."""
    yield from _exchanges(robot, recording)
    yield from _signs(robot, recording)
    yield from _zeros(robot, recording)
    yield from _sums(robot, recording)
    yield from _units(robot, recording)
    yield Hypothesis(
        "torques look as if weight were counted twice: that of a model was added to torques which have it already",
        "taking it away once",
        replace(recording, gravity=2.0 * recording.gravity),
        weight=True,
    )


def _exchanges(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    names, n = robot.joint_names, robot.dof
    orders = []
    for i, j in itertools.combinations(range(n), 2):
        order = list(range(n))
        order[i], order[j] = j, i
        orders.append((f"of {names[i]} and {names[j]} look exchanged", "exchanging them", order))
    if n > 2:
        orders.append(("look reversed", "the order from the last joint to the first", list(range(n))[::-1]))
        for step, words in ((1, "to the right"), (-1, "to the left")):
            order = np.roll(np.arange(n), -step).tolist()
            orders.append((f"look shifted by one {words}", "shifting them back", order))
    for words, remedy, order in orders:
        moved = recording.moved_by(order)
        yield Hypothesis(f"columns {words}", remedy, moved.driven_by(order))
        yield Hypothesis(f"columns of positions {words}, not those of torques", remedy, moved)
        yield Hypothesis(
            f"columns of torques {words}, not those of positions", remedy, recording.driven_by(order), False
        )


def _signs(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    remedy = "the opposite sign"
    for j, name in enumerate(robot.joint_names):
        signs = np.ones(robot.dof)
        signs[j] = -1.0
        turned = recording.turned(signs)
        reversed_torque = replace(recording, tau=recording.tau * signs)
        words = f"torques of {name} look counted in the opposite direction"
        yield Hypothesis(words, remedy, reversed_torque, False, int(recording.channels[j]))
        yield Hypothesis(f"positions of {name} look counted in the opposite direction", remedy, turned)
        yield Hypothesis(
            f"positions and torques of {name} look counted in the opposite direction",
            remedy,
            replace(turned, tau=recording.tau * signs),
        )
    if robot.dof > 1:
        opposite = replace(recording, tau=-recording.tau)
        for what, corrected, moves in (
            ("torques", opposite, False),
            ("positions", recording.turned(-1.0), True),
        ):
            words = f"{what} of all joints look counted in the opposite direction"
            yield Hypothesis(words, remedy, corrected, moves, all_joints=True)


def _zeros(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    for j, joint in enumerate(robot.coordinate_joints):
        for shift in (QUARTER, -QUARTER, HALF) if joint.revolute else ():
            q = recording.q.copy()
            q[:, j] += shift
            yield Hypothesis(
                f"positions of {joint.name} look counted from another zero than in {robot.name}",
                f"adding {math.degrees(shift):.0f}° to them",
                replace(recording, q=q),
            )


def _sums(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    """Positions of a link over the base or another link, as parallel linkages and some controllers count them."""
    joints = robot.coordinate_joints
    for j, (before, joint) in enumerate(itertools.pairwise(joints), 1):
        for sign, remedy in ((-1.0, "subtracting"), (1.0, "adding")):
            if before.revolute and joint.revolute:
                q, qd, qdd = (x.copy() for x in (recording.q, recording.qd, recording.qdd))
                for x in (q, qd, qdd):
                    x[:, j] += sign * x[:, j - 1]
                yield Hypothesis(
                    f"positions of {joint.name} look counted together with those of {before.name}",
                    f"{remedy} the latter",
                    replace(recording, q=q, qd=qd, qdd=qdd),
                )


def _units(robot: Robot, recording: Recording) -> Iterator[Hypothesis]:
    turns = np.array([joint.revolute for joint in robot.coordinate_joints])
    for unit, factor in (("degrees", math.pi / 180), ("turns", 2 * math.pi)):
        yield Hypothesis(
            f"positions look like {unit}",
            "reading them so",
            recording.turned(np.where(turns, factor, 1.0)),
        )
    yield Hypothesis(
        "positions look like radians that were taken for degrees",
        "reading them as radians",
        recording.turned(np.where(turns, 180 / math.pi, 1.0)),
    )
    yield from (other_clock(recording, factor) for factor in TIMES if is_possible(robot, recording, factor))


def is_possible(robot: Robot, recording: Recording, factor: float) -> bool:
    """Whether such a robot may move along the path in ``factor`` times the time.

    Args:
        robot: with its limits.
        recording: the samples.
        factor: of times.
    """
    fastest = np.array([min(FASTER * j.limits.largest_velocity, FASTEST) for j in robot.coordinate_joints])
    return factor >= 1 or not (np.abs(recording.qd).max(axis=0) / factor > fastest).any()


def other_clock(recording: Recording, factor: float) -> Hypothesis:
    """That time stamps or the rate are wrong.

    Args:
        recording: the samples.
        factor: of times.
    """
    words, times = ("fast", factor) if factor > 1 else ("slow", 1 / factor)
    return Hypothesis(
        f"the motion looks {times:.3g} times too {words}: time stamps have another unit, or the rate is another",
        f"multiplying times with {factor:.3g}",
        recording.slower(factor),
        clock=True,
    )
