"""Limits of states and tips: functions c(x, u) that must not be positive, handled by barriers with multipliers.

The numbers are run-time parameters; which limits exist at all (which are finite) decides the code. Limits of the state
hold from the first step on: the start is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.model.coordinates import position_coordinates, velocity_coordinates
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import Point, check_spheres, places_of_spheres, sphere_gap, spheres_on
from linkwise.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class Limit:
    """The base of all limits."""

    name: str = ""
    """Of its parameters; by default that of its kind."""

    kind = "limit"
    of_forces = False
    """Whether its functions are functions of the forces of contacts alone."""
    from_zero = ()
    """Those of its parameters that are not negative."""
    above_zero = ()
    """Those of its parameters that are positive."""

    @property
    def label(self) -> str:
        return self.name or self.kind

    def parameters(self, robot: Robot) -> dict[str, np.ndarray]:
        """Values by name, (size,)."""
        raise NotImplementedError

    def sides(self, robot: Robot) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        """Lower and upper limits of the same quantity, each as (name of the parameter, number in it)."""
        return []

    def words(self, robot: Robot) -> list[tuple[str, str]]:
        """(what is limited, its unit) of every function."""
        raise NotImplementedError

    def frame_words(self, contacts: Any) -> list[tuple[str, str]]:
        """The same for limits of forces of contacts.

        Args:
            contacts: the schedule of contacts.
        """
        raise NotImplementedError

    def functions(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
        """Must not be positive; in the units of ``words``.

        Args:
            point: state and torques.
            values: the limit's parameters by name.
        """
        raise NotImplementedError

    def check(self, dynamics: Dynamics) -> None:
        """Refuse limits that contradict each other or do not fit the robot."""

    def key(self, robot: Robot) -> tuple[Any, ...]:
        """What decides the code."""
        return (type(self).__name__, self.label, tuple(self.words(robot)))


@dataclass(frozen=True, eq=False)
class StateLimits(Limit):
    """Limits of joint positions and speeds."""

    position: Any = True
    """True: the robot's; (lower, upper) [rad or m], each (nq,) or one number; None: none."""
    velocity: Any = True
    """True: the robot's; one number or (n,) [rad/s or m/s]; None: none."""

    kind = "state"

    def _sides(self, robot: Robot) -> list[tuple[str, int, float, str, str]]:
        """(which list, index, limit, words, unit) of every finite limit."""
        found = []
        for which, coordinates, pair in (
            ("position", position_coordinates(robot), self.positions(robot)),
            ("velocity", velocity_coordinates(robot), self.velocities(robot)),
        ):
            if pair is None:
                continue
            for k, coordinate in enumerate(coordinates):
                if which == "position" and coordinate.joint.free:
                    continue
                unit = ("rad" if coordinate.revolute else "m") + ("/s" if which == "velocity" else "")
                for side, values in zip(("lower", "upper"), pair, strict=True):
                    if np.isfinite(values[k]):
                        words = f"{coordinate.name}: {side} {which} limit"
                        found.append((f"{which}_{side}", k, float(values[k]), words, unit))
        return found

    def positions(self, robot: Robot) -> tuple[np.ndarray, np.ndarray] | None:
        """(lower, upper) limits of positions; None where there are none."""
        if self.position is None or self.position is False:
            return None
        if self.position is True:
            limits = robot.limits
            return limits.lower, limits.upper
        if not isinstance(self.position, (tuple, list, np.ndarray)) or len(self.position) != 2:
            raise ProblemError(f"{self.label}: position: expected (lower, upper), got {self.position!r:.80}")
        lower, upper = arguments.bounds(
            f"{self.label}: position", self.position[0], self.position[1], robot.nq
        )
        for coordinate, low, high in zip(position_coordinates(robot), lower, upper, strict=True):
            if low > high:
                raise ProblemError(
                    f"{self.label}: {coordinate.name}: the lower position limit {low:g} is {low - high:g} above "
                    f"the upper one {high:g}: no motion can meet both"
                )
        return lower, upper

    def velocities(self, robot: Robot) -> tuple[np.ndarray, np.ndarray] | None:
        """(lower, upper) limits of velocities; None where there are none."""
        if self.velocity is None or self.velocity is False:
            return None
        most = robot.velocity_limits if self.velocity is True else self.velocity
        _, upper = arguments.bounds(f"{self.label}: velocity", 0.0, most, robot.dof)
        if (upper <= 0).any():
            raise ProblemError(f"{self.label}: velocity: expected limits above 0, got {upper.min():g}")
        return -upper, upper

    def check(self, dynamics: Dynamics) -> None:
        self.positions(dynamics.robot)

    def parameters(self, robot):
        found: dict[str, list[float]] = {}
        for which, _, limit, *_ in self._sides(robot):
            found.setdefault(which, []).append(limit)
        return {which: np.array(values) for which, values in found.items()}

    def sides(self, robot):
        return _opposite((which, k) for which, k, *_ in self._sides(robot))

    def words(self, robot):
        return [(words, unit) for *_, words, unit in self._sides(robot)]

    def functions(self, point, values):
        found, taken = [], dict.fromkeys(values, 0)
        for which, k, *_ in self._sides(point.dynamics.robot):
            limit = values[which][taken[which]]
            taken[which] += 1
            value = (point.q if which.startswith("position") else point.qd)[k]
            found.append(limit - value if which.endswith("lower") else value - limit)
        return found


def _opposite(listed: Iterable[tuple[str, int]]) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    """Lower and upper limits of the same quantity, where both are there.

    Args:
        listed: (name of the parameter, quantity) of every limit: numbers of a parameter are in this order.
    """
    found: dict[tuple[str, int], int] = {}
    taken: dict[str, int] = {}
    for which, k in listed:
        found[which, k] = taken[which] = taken.get(which, -1) + 1
    pairs = []
    for (which, k), at in found.items():
        other = which.removesuffix("lower") + "upper"
        if which.endswith("lower") and (other, k) in found:
            pairs.append(((which, at), (other, found[other, k])))
    return pairs


@dataclass(frozen=True, eq=False)
class TipLimits(Limit):
    """A box in the base frame that the origin of a frame must not leave."""

    lower: Any = -np.inf
    """(3,) or one number [m]; −∞ where there is no limit."""
    upper: Any = np.inf
    """(3,) or one number [m]."""
    frame: str | None = None
    """By default the only leaf."""

    kind = "tip_box"

    def _sides(self) -> list[tuple[str, int, float]]:
        pair = arguments.bounds(self.label, self.lower, self.upper, 3)
        return [
            (side, k, float(values[k]))
            for side, values in zip(("lower", "upper"), pair, strict=True)
            for k in range(3)
            if np.isfinite(values[k])
        ]

    def check(self, dynamics: Dynamics) -> None:
        dynamics.robot.locate(self.frame)
        lower, upper = arguments.bounds(self.label, self.lower, self.upper, 3)
        for axis, low, high in zip("xyz", lower, upper, strict=True):
            if low > high:
                raise ProblemError(
                    f"{self.label}: {axis}: the lower limit {low:g} m is {low - high:g} m above the upper one "
                    f"{high:g} m: no motion can meet both"
                )

    def parameters(self, robot):
        found: dict[str, list[float]] = {}
        for side, _, limit in self._sides():
            found.setdefault(side, []).append(limit)
        return {side: np.array(values) for side, values in found.items()}

    def sides(self, robot):
        return _opposite((side, k) for side, k, _ in self._sides())

    def words(self, robot):
        frame = self.frame or robot.default_frame()
        return [(f"{frame}: {side} limit of {'xyz'[k]}", "m") for side, k, _ in self._sides()]

    def functions(self, point, values):
        T = point.of_frame("pose", self.frame)
        found, taken = [], {"lower": 0, "upper": 0}
        for side, k, _ in self._sides():
            limit = values[side][taken[side]]
            taken[side] += 1
            found.append(limit - T[k][3] if side == "lower" else T[k][3] - limit)
        return found

    def key(self, robot):
        return (*super().key(robot), self.frame)


@dataclass(frozen=True, eq=False)
class KeepOut(Limit):
    """A sphere in the room that spheres on links must not enter."""

    center: Any
    """In the base frame [m], (3,)."""
    radius: float = 0.1
    """[m]."""
    on: Sequence[tuple[str, Sequence[float], float]] = ()
    """Spheres of the robot: (link or frame, centre in it [m], radius [m]); by default one of 0.05 m at the tip."""

    kind = "keep_out"
    from_zero = ("radius",)

    def check(self, dynamics: Dynamics) -> None:
        check_spheres(dynamics, self.label, self.on)

    def parameters(self, robot):
        return {
            "center": arguments.numbers(f"{self.label}: center", self.center, (3,)),
            "radius": np.array([arguments.number(f"{self.label}: radius", self.radius, least=0.0)]),
        }

    def words(self, robot):
        return [
            (f"{frame or robot.default_frame()}: edge of {self.label}", "m")
            for frame, *_ in spheres_on(self.on)
        ]

    def functions(self, point, values):
        (radius,) = values["radius"]
        places = places_of_spheres(point, spheres_on(self.on))
        return [-sphere_gap(place, values["center"], own + radius) for place, own in places]

    def key(self, robot):
        return (*super().key(robot), tuple((f, tuple(map(float, c)), float(r)) for f, c, r in self.on))
