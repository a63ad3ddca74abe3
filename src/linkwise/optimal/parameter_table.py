"""Run-time parameters of a problem: where each lies in the list p of a stage, and the table of all stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.model.constraints import TARGETS, target_values
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.through_contact import SMOOTHING

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem

LOWER, UPPER = "torque.lower", "torque.upper"
SHORTEST, LONGEST = "duration.lower", "duration.upper"


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
        values = cost.parameters(problem.robot, problem.dynamics, rows)
        put(cost.label, values, slice(0, rows))  # stages without such a running cost do not read it
    for cost in problem.costs:
        put(cost.label, cost.parameters(problem.robot, problem.dynamics, rows), slice(0, rows - 1))
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
