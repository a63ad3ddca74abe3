"""The counts that had to be beaten: each with its limit, ours, the best published one and whether the record stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.compiler.ir.operations import Operations
from linkwise.records.published import Published, best
from research.records import counts


@dataclass(frozen=True)
class Goal:
    """A count to beat: ``limit`` is the largest total that does."""

    task: str  # in words
    robot: str  # in words
    limit: int
    count: Callable[[], tuple[str, Operations]]  # (algorithm, operations)
    published: Published | None


@dataclass(frozen=True)
class Verdict:
    """The result for a goal."""

    goal: Goal
    algorithm: str
    operations: Operations

    @property
    def holds(self) -> bool:
        return self.operations.total <= self.goal.limit

    @property
    def saved(self) -> int | None:
        """Operations fewer than the best published count."""
        known = self.goal.published
        return None if known is None else known.total(6) - self.operations.total


def _goal(words: str, robot_words: str, limit: int, robot: str, task: str, *, loaded: bool = False) -> Goal:
    def counted() -> tuple[str, Operations]:
        ours = counts.best(robot, task, inputs=("payload",) if loaded else ())
        return ours.algorithm, ours.operations

    return Goal(words, robot_words, limit, counted, best(task, f"{robot} with load" if loaded else robot))


def _gradients(words: str, limit: int, published: str, count: Callable[[], Operations]) -> Goal:
    return Goal(
        words, "general 6R", limit, lambda: ("conjugate_gradient", count()), best(published, "general")
    )


def _gradient_counts() -> Operations:
    return counts.gradients("general_6r")


def _per_iteration() -> Operations:
    once = _gradient_counts().per_iteration
    assert once is not None
    return once


def _synchronous() -> tuple[str, Operations]:
    n = 6
    whole = counts.synchronous(n)
    return "matrix row", Operations(whole.multiplications // n, whole.additions // n)


_INVERSE, _MASS, _FORWARD = "inverse dynamics", "mass matrix", "forward dynamics"
_COEFFICIENTS, _VELOCITY = "mass matrix and gravity", "velocity torques"
_LOAD = "PUMA 260 reduced, load an input"

GOALS: tuple[Goal, ...] = (
    _goal(_INVERSE, "general 6R, α1 = a1 = d1 = 0", 736, "general_6r_aligned", "inverse_dynamics"),
    _goal(_INVERSE, "general 6R, α1, a1, d1 free", 736, "general_6r", "inverse_dynamics"),
    _goal(_INVERSE, "6R parallel/perpendicular", 597, "perpendicular_6r", "inverse_dynamics"),
    _goal(_INVERSE, "PUMA 560", 540, "puma560", "inverse_dynamics"),
    _goal(_INVERSE, "PUMA 560, sparse", 352, "puma560_sparse", "inverse_dynamics"),
    _goal(_INVERSE, "Stanford arm, sparse", 229, "stanford_sparse", "inverse_dynamics"),
    _goal(_MASS, "PUMA 560, sparse", 278, "puma560_sparse", "mass_matrix"),
    _goal(_MASS, "Stanford arm, sparse", 147, "stanford_sparse", "mass_matrix"),
    _goal(_COEFFICIENTS, "PUMA 260 reduced", 167, "puma260", "coefficients"),
    _goal(_COEFFICIENTS, _LOAD, 339, "puma260", "coefficients", loaded=True),
    _goal(_VELOCITY, "PUMA 260 reduced", 249, "puma260", "velocity_torques"),
    _goal(_VELOCITY, _LOAD, 369, "puma260", "velocity_torques", loaded=True),
    _goal(_FORWARD, "general 6R, α1 = a1 = d1 = 0", 1996, "general_6r_aligned", "forward_dynamics"),
    _goal(_FORWARD, "general 6R, α1, a1, d1 free", 1996, "general_6r", "forward_dynamics"),
    _goal(_FORWARD, "PUMA 560, sparse", 1217, "puma560_sparse", "forward_dynamics"),
    _goal(_FORWARD, "Stanford arm, sparse", 789, "stanford_sparse", "forward_dynamics"),
    _gradients("conjugate gradients, set-up", 1763, "conjugate_gradient_setup", _gradient_counts),
    _gradients("conjugate gradients, one iteration", 524, "conjugate_gradient_iteration", _per_iteration),
    _gradients(
        "conjugate gradients, set-up and six iterations",
        4913,
        "conjugate_gradient",
        lambda: counts.iterated(_gradient_counts(), 6),
    ),
    Goal("synchronous part", "one joint of six", 12, _synchronous, best("synchronous", "per joint")),
)


def verdicts() -> list[Verdict]:
    """All goals, counted."""
    return [Verdict(goal, *goal.count()) for goal in GOALS]
