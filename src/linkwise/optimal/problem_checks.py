"""Checks of a problem as a whole: motors, costs, limits, contacts, start; what cannot be right is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.model.checks import check_no_tendons
from linkwise.model.constraints import CONSTRAINT_ERROR
from linkwise.model.contacts import candidate_count
from linkwise.model.coordinates import velocity_coordinates
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ContactSchedule
from linkwise.optimal.dynamics import SEMI_IMPLICIT
from linkwise.optimal.timings import Timings
from linkwise.robot.robot import Robot
from linkwise.simulate.integrators import INTEGRATORS

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem


def check_terms(problem: Problem) -> None:
    """Refuse contacts, costs and limits that contradict each other or do not fit."""
    check_contacts(problem)
    if not problem.costs and not problem.terminal:
        raise ProblemError("costs: expected at least one cost: without one every motion is optimal")
    for kind, terms in (("costs", problem.costs), ("terminal", problem.terminal), ("limits", problem.limits)):
        labels = [term.label for term in terms]
        for term in terms:
            if labels.count(term.label) > 1:
                raise ProblemError(f"{kind}: two are named {term.label!r}; give one another name=")
            term.check(problem.dynamics)
            if kind == "terminal" and getattr(term, "running_only", False):
                raise ProblemError(f"terminal: {term.label} needs torques, which the last state has not")
    shared = {term.label for term in (*problem.costs, *problem.terminal)} & {
        term.label for term in problem.limits
    }
    if shared:
        raise ProblemError(f"limits: a cost is named {sorted(shared)[0]!r} too; give one another name=")


def check_constraints(problem: Problem) -> None:
    """Refuse a start that does not meet the constraints."""
    wrong = float(np.abs(np.asarray(problem.robot.constraint_errors(problem.x0[: problem.robot.nq]))).max())
    if not wrong <= CONSTRAINT_ERROR:
        raise ProblemError(
            f"start: q does not meet the constraints of {problem.robot.name}: the largest of "
            f"robot.constraint_errors(q) is {wrong:.2g}; give another start, or stabilization="
        )


def torque_limits(problem: Problem, given: Any) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) limits of the motors (m,)."""
    most = problem.robot.effort_limits[list(problem.dynamics.driven)]
    if given is False or given is None:
        most = np.full(problem.dynamics.motors, np.inf)
    elif given is not True:
        sides = given
        if not isinstance(given, tuple):
            _, most = arguments.bounds("torque_limits", 0.0, given, problem.dynamics.motors)
            sides = (-most, most)
        if len(sides) != 2:
            raise ProblemError(f"torque_limits: expected (lower, upper), got {given!r:.80}")
        lower, upper = arguments.bounds("torque_limits", sides[0], sides[1], problem.dynamics.motors)
        for name, low, high in zip(problem.motor_names, lower, upper, strict=True):
            if low > high:
                raise ProblemError(
                    f"torque_limits: {name}: the lower limit {low:g} is {low - high:g} above the upper one "
                    f"{high:g}: no torque can meet both"
                )
        return lower, upper
    return -most, most


def check_contacts(problem: Problem) -> None:
    """Refuse what steps with contacts do not cover."""
    d = problem.dynamics
    if problem.timings is not None and not isinstance(problem.timings, Timings):
        raise ProblemError(f"timings: expected optimal.Timings, got {problem.timings!r:.80}")
    if d.timed and d.damping:
        raise ProblemError("timings: implicit_damping=True is for durations that are given")
    if d.through is not None:
        d.through.check(problem.robot)
    else:
        check_no_tendons(problem.robot, "optimal motion")
    for cost in problem.costs:
        if d.timed and cost.of_forces:
            raise ProblemError(f"{cost.label}: costs of forces need durations that are given; use limits")
    if d.contacts is None:
        if d.through is None and candidate_count(problem.robot):
            names = ", ".join(problem.robot.contact_names[:3])
            raise ProblemError(
                f"contacts: {problem.robot.name} touches things ({names} …), which free motion ignores; give contacts="
                "optimal.ContactSchedule(…) or optimal.ThroughContact(), or plan for robot.with_contacts(())"
            )
        return
    if not isinstance(d.contacts, ContactSchedule):
        raise ProblemError(f"contacts: expected a ContactSchedule, got {type(d.contacts).__name__}")
    d.contacts.check(problem.robot)
    if not d.in_parts:
        raise ProblemError(
            "contacts: these are for the semi-implicit integrator, robots without constraints and without friction "
            'that grows with the load, and costs without of="torque"'
        )


def driven(robot: Robot, motors: Sequence[str] | None) -> tuple[int, ...]:
    """Velocity coordinates that are driven."""
    coordinates = velocity_coordinates(robot)
    names = {coordinate.joint.name for coordinate in coordinates}
    if motors is not None:
        for name in motors:
            if name not in names:
                raise UnknownNameError(f"motors: no joint {name!r}; {suggest(name, sorted(names))}")
        chosen = set(motors)
    else:
        chosen = {
            c.joint.name
            for c in coordinates
            if c.joint.type != "floating" and c.joint.name not in robot.passive
        }
    chosen_ones = tuple(k for k, c in enumerate(coordinates) if c.joint.name in chosen)
    if not chosen_ones:
        raise ProblemError(f"motors: {robot.name} has no joint with a motor: there is nothing to choose")
    return chosen_ones


def integrator_name(name: str) -> str:
    """As the table of integrators has it."""
    full = SEMI_IMPLICIT if name == "semi_implicit" else name
    if full not in INTEGRATORS:
        raise UnknownNameError(f"integrator: {suggest(name, INTEGRATORS)}")
    return full


def pair(start: Any) -> tuple[Any, Any]:
    """(q, q̇) of a start."""
    if not isinstance(start, (tuple, list)) or len(start) != 2:
        raise ProblemError(f"start: expected (q, qd), got {start!r:.80}")
    return start[0], start[1]


def listed(name: str, given: Any, kind: type) -> tuple[Any, ...]:
    """One object of a kind or a list of them."""
    if not isinstance(given, (kind, list, tuple)):
        raise ProblemError(f"{name}: expected a list of objects of linkwise.optimal, got {given!r:.80}")
    objects = (given,) if isinstance(given, kind) else tuple(given)
    for each in objects:
        if not isinstance(each, kind):
            raise ProblemError(f"{name}: expected objects of linkwise.optimal, got {type(each).__name__}")
    return objects
