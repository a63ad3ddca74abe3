"""A planned motion at every point: ``move = { plan = "shelf.json", start = "q", goal = [ … ], clearance = 0.01 }``.

A point gives whether a motion was found, how long it takes and what clearance is proved; NaN where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.collision.world import World
from linkwise.collision.world_file import read_world
from linkwise.errors import LinkwiseError, ModelError
from linkwise.motion import MotionPlan, plan
from linkwise.robot.robot import Robot
from linkwise.study.errors import StudyError
from linkwise.study.quantities import Quantity
from linkwise.study.schema import StudySettings, numbers
from linkwise.study.steps.base import Arrays, Step

NOTHING = "empty"
Ends = str | tuple[float, ...]


@dataclass(frozen=True, eq=False)
class PlanStep(Step):
    """``linkwise.motion.plan`` from one position to another.

    Args:
        name: of the step.
        robot: the robot.
        world: the obstacles.
        start: positions [rad or m], or the name of a variable.
        goal: positions, or the name of a variable.
        clearance: distance to keep [m].
        acceleration: limit [rad/s² or m/s²].
        seed: of the searches.
    """

    name: str
    robot: Robot
    world: World
    start: Ends
    goal: Ends
    clearance: float
    acceleration: float
    seed: int

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(each for each in (self.start, self.goal) if isinstance(each, str)))

    def gives(self) -> tuple[str, ...]:
        return (f"{self.name}.solved", f"{self.name}.duration", f"{self.name}.clearance")

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        if name.endswith(".solved"):
            return Quantity(name, shape, (), "1", "1 where a motion was found, else 0")
        if name.endswith(".duration"):
            return Quantity(name, shape, (), "s", "duration of the motion")
        return Quantity(name, shape, (), "m", "distance that is proved to be kept")

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        """NaN where there is no motion."""
        count = len(next(iter(given.values())))
        plans = [self._one(given, k) for k in range(count)]
        motions = [each.motion if isinstance(each, MotionPlan) else None for each in plans]
        solved = np.array([float(motion is not None) for motion in motions])
        duration = np.array([np.nan if motion is None else motion.duration for motion in motions])
        kept = [
            each.clearance if isinstance(each, MotionPlan) and each.motion is not None else np.nan
            for each in plans
        ]
        return dict(zip(self.gives(), (solved, duration, np.array(kept)), strict=True))

    def tried(self, given: Arrays) -> dict[str, np.ndarray]:
        result = self._one(given, 0)
        if isinstance(result, LinkwiseError) and not self.takes:
            raise StudyError(f"compute.{self.name}: {result}")
        return self.computed(given, 0)

    def _one(self, given: Arrays, k: int) -> MotionPlan | LinkwiseError:
        start, goal = (
            np.asarray(given[each][k] if isinstance(each, str) else each, dtype=float)
            for each in (self.start, self.goal)
        )
        try:
            return plan(
                self.robot,
                start,
                goal,
                self.world,
                clearance=self.clearance,
                acceleration=self.acceleration,
                seed=self.seed,
            )
        except LinkwiseError as error:
            return error


def read(name: str, table: StudySettings, robot: Robot, seed: int) -> PlanStep:
    """The step of an entry with the key ``plan``."""
    file = table.get("plan", str)
    try:
        world = World() if file == NOTHING else read_world(file)
    except ModelError as error:
        raise table.fail("plan", f"expected a file with obstacles, or {NOTHING!r}: {error}") from None
    start, goal = (_ends(table, key, robot) for key in ("start", "goal"))
    if not isinstance(start, str) and not isinstance(goal, str):
        raise table.fail("", "nothing varies that it depends on; give start or goal the name of a variable")
    clearance, acceleration = table.get("clearance", float, 0.0), table.get("acceleration", float, 20.0)
    if not clearance >= 0.0 or not acceleration > 0.0:
        raise table.fail("", "expected a clearance of at least 0 and a positive acceleration")
    return PlanStep(name, robot, world, start, goal, clearance, acceleration, seed % 2**31)


def _ends(table: StudySettings, key: str, robot: Robot) -> Ends:
    value = table.raw(key)
    if isinstance(value, str):
        return value
    given = tuple(numbers(value, table.where(key)))
    if len(given) != robot.nq:
        raise table.fail(
            key, f"expected {robot.nq} positions or the name of a variable, got {len(given)} numbers"
        )
    return given
