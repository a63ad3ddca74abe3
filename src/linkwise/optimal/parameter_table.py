"""Run-time parameters of a problem: where each lies in the list p of a stage, and the table of all stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.model.constraints import TARGETS, target_values
from linkwise.model.coordinates import position_coordinates
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.costs import Cost, JointTracking, Own, TipTracking
from linkwise.optimal.through_contact import SMOOTHING
from linkwise.optimal.timings import BEGINS

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem

LOWER, UPPER = "torque.lower", "torque.upper"
SHORTEST, LONGEST = "duration.lower", "duration.upper"
POSITIVE = (SHORTEST, LONGEST, SMOOTHING)
FLAGS = (ACTIVE, BEGINS)
SMALLEST = 1e-280  # weight from which costs can be told from zero


@dataclass(frozen=True)
class Slot:
    """Where a parameter lies in p."""

    name: str
    at: slice


def arranged(problem: Problem) -> tuple[list[Slot], np.ndarray]:
    """The place of every parameter in p, and its table."""
    rows = problem.horizon + 1
    tables: dict[str, np.ndarray] = {}

    def put(label: str, values: Mapping[str, np.ndarray], where: slice) -> None:
        for key, value in values.items():
            name = f"{label}.{key}"
            table = tables.setdefault(name, np.zeros((rows, value.shape[-1])))
            if table.shape[1] != value.shape[-1]:
                raise ProblemError(
                    f"{name}: the running and the terminal cost have {table.shape[1]} and {value.shape[-1]} "
                    "numbers; give one another name="
                )
            table[where] = value[where] if value.ndim > 1 else value

    for cost in problem.terminal:
        put(
            cost.label, _of_cost(problem, cost), slice(0, rows)
        )  # stages without such a running cost do not read it
    for cost in problem.costs:
        put(cost.label, _of_cost(problem, cost), slice(0, rows - 1))
    for limit in problem.limits:
        put(limit.label, limit.parameters(problem.robot), slice(0, rows))
    if not tables:
        tables["unused"] = np.zeros((rows, 1))  # a function of the user's own without parameters
    held = target_values(problem.robot.constraints)
    if held.size and problem.dynamics.stabilization is not None:  # else only velocities are held
        tables[TARGETS] = np.tile(held, (rows, 1))
    if problem.dynamics.through is not None:
        tables[SMOOTHING] = np.full((rows, 1), problem.dynamics.through.stages()[0])
    if problem.dynamics.contacts is not None:
        tables[ACTIVE] = problem.dynamics.contacts.table(problem.horizon)
    if problem.boxed:
        sides = ((LOWER, SHORTEST, problem.torque_lower), (UPPER, LONGEST, problem.torque_upper))
        for k, (torque, duration, limits) in enumerate(sides):
            tables[torque] = np.tile(limits, (rows, 1))
            if problem.timings is not None:  # right behind: ``Problem.control_limits``
                tables[duration] = problem.timings.limits(rows)[k]
    slots, at = [], 0
    for name, table in tables.items():
        slots.append(Slot(name, slice(at, at + table.shape[1])))
        at += table.shape[1]
    return slots, np.concatenate(list(tables.values()), axis=1)


def _of_cost(problem: Problem, cost: Cost) -> dict[str, np.ndarray]:
    """Its parameters by name."""
    values = cost.parameters(problem.robot, problem.dynamics, problem.horizon + 1)
    for key, value in values.items():
        if isinstance(cost, (JointTracking, TipTracking)):
            _check_turns(problem, f"{cost.label}.{key}", key, value)
    return values


def weight_columns(problem: Problem) -> list[tuple[list[int], list[int]]]:
    """Columns of weights, and of scales, whose squares are weights, of running and final costs; none where
    functions of the user's own, or prices of time, have another unit.

    Args:
        problem: the problem.
    """
    of_costs = (problem.costs, problem.terminal)
    if problem.timings is not None or any(isinstance(cost, Own) for costs in of_costs for cost in costs):
        return [([], []), ([], [])]
    found: list[tuple[list[int], list[int]]] = []
    for costs in of_costs:
        labels, columns = {cost.label for cost in costs}, ([], [])
        for name in problem.parameters:
            label, _, key = name.rpartition(".")
            if label in labels and (key.endswith("weight") or key == "scale"):
                at = problem.where(name)
                columns[key == "scale"].extend(range(at.start, at.stop))
        found.append(columns)
    return found


def units_of_cost(problem: Problem, p: np.ndarray) -> np.ndarray:
    """Largest weight of each problem, at most 1, (B,): costs far below it are those of rounding. 1 where it is not
    known.

    Args:
        problem: the problem.
        p: run-time parameters (B, horizon + 1, np).
    """
    units = np.zeros(len(p))
    parts = ((p[:, :-1], problem.step), (p[:, -1:], 1.0))
    for columns, (rows, factor) in zip(problem.weight_columns, parts, strict=True):
        for power, some in enumerate(columns, 1):
            if some:
                largest = np.abs(rows[..., some]).max(axis=(1, 2), initial=0.0)
                units = np.maximum(units, factor * largest**power)
    return np.where(units == 0.0, 1.0, np.clip(units, SMALLEST, 1.0))


def check_values(problem: Problem, name: str, values: np.ndarray) -> None:
    """Refuse numbers that a parameter cannot have.

    Args:
        problem: the problem.
        name: of the parameter.
        values: what it shall be, in any number of stages and problems, (..., size).
    """
    if name in FLAGS and not np.isin(values, (0.0, 1.0)).all():
        raise ProblemError(f"{name}: expected 0 or 1")
    above, least = name in POSITIVE, False
    for term in (*problem.costs, *problem.terminal, *problem.limits):
        if name.rpartition(".")[0] == term.label:
            key = name.rpartition(".")[2]
            above, least = above or key in term.above_zero, least or key in term.from_zero
            if isinstance(term, (JointTracking, TipTracking)):
                _check_turns(problem, name, key, values)
    if above and not (values > 0.0).all():
        raise ProblemError(f"{name}: expected numbers above 0, got {values.min():g}")
    if least and not (values >= 0.0).all():
        what = "weights" if name.endswith("weight") else "numbers"
        raise ProblemError(f"{name}: expected {what} from 0 on, got {values.min():g}")


def _check_turns(problem: Problem, name: str, key: str, values: np.ndarray) -> None:
    """Refuse quaternions of length 0, which are no orientation."""
    if key == "orientation":
        groups = {"orientation": [0, 1, 2, 3]}
    elif key == "target":
        groups = {}
        for k, each in enumerate(position_coordinates(problem.robot)):
            if each.quaternion:
                groups.setdefault(each.joint.name, []).append(k)
    else:
        return
    for what, numbers in groups.items():
        if not (np.abs(values[..., numbers]).max(axis=-1) > 0.0).all():
            raise ProblemError(
                f"{name}: {what}: a quaternion of length 0 is no orientation; that of no turn is (0, 0, 0, 1)"
            )


def check_sides(problem: Problem, p: np.ndarray) -> None:
    """Refuse lower limits above upper ones.

    Args:
        problem: the problem.
        p: run-time parameters (..., horizon + 1, np).
    """
    pairs = [((LOWER, k), (UPPER, k)) for k in range(problem.dynamics.motors if problem.boxed else 0)]
    if problem.timings is not None:
        pairs.append(((SHORTEST, 0), (LONGEST, 0)))
    for limit in problem.limits:
        own = limit.sides(problem.robot)
        pairs += [((f"{limit.label}.{a}", i), (f"{limit.label}.{b}", j)) for (a, i), (b, j) in own]
    for (lower, i), (upper, j) in pairs:
        low, high = p[..., problem.where(lower).start + i], p[..., problem.where(upper).start + j]
        if (low == np.inf).any() or (high == -np.inf).any():
            raise ProblemError(f"{lower}, {upper}: nothing is above +inf or below -inf (number {i})")
        if (low > high).any():
            *_, t = at = tuple(np.argwhere(low > high)[0])
            raise ProblemError(
                f"{lower}: {low[at]:g} is {low[at] - high[at]:g} above {upper} {high[at]:g} (number {i}, stage {t}): "
                "nothing can meet both"
            )
