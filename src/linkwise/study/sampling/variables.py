"""What varies: constants, grids, choices and distributions, read from the table ``vary``.

A variable is named by what it is: a state ("q"), one joint of it ("q.elbow"), a payload ("payload.mass"), a parameter
of the robot ("link3.m"); any other name is free, for expressions, gains and references, or for the parameters that
its key ``labels`` names.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import suggest
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar
from linkwise.study import quantities
from linkwise.study.errors import StudyError
from linkwise.study.quantities import PAYLOAD, STATES, Quantity
from linkwise.study.sampling.distributions import DISTRIBUTIONS, chosen, fault
from linkwise.study.schema import StudySettings, numbers

DESIGNS = ("random", "latin_hypercube", "sobol")
KINDS = ("value", "grid", "choice", *DISTRIBUTIONS)
LIMITS = "limits"
MOST_CHOICES = 64


@dataclass(frozen=True)
class Variable:
    """One entry of ``vary``. Exactly one of the three last fields is filled unless it is a constant."""

    quantity: Quantity
    kind: str
    design: str
    groups: tuple[int, ...]
    """For every element the draw that it takes: 0, 1, 2 … unless several elements vary together."""
    factors: tuple[float, ...]
    """What every element is multiplied by: the robot's own numbers where it varies relative to them, else 1."""
    labels: tuple[str, ...] = ()
    """The parameters of the robot that it sets."""
    element: tuple[str, int] | None = None
    """The state and the joint that it sets."""
    values: tuple[tuple[float, ...], ...] = ()
    """Of a constant (one), a grid or a choice."""
    parameters: tuple[tuple[float, ...], ...] = ()
    """Of a distribution: those of every draw."""

    @property
    def name(self) -> str:
        return self.quantity.name

    @property
    def size(self) -> int:
        return self.quantity.size

    @property
    def draws(self) -> int:
        """Random numbers that it takes at a sample."""
        return {"value": 0, "grid": 0, "choice": 1}.get(self.kind, len(self.parameters))

    @property
    def loaded(self) -> int:
        """Numbers that it takes from its grid."""
        return len(self.values[0]) if self.kind == "grid" else 0

    @property
    def bits(self) -> int:
        """Of each of its random numbers."""
        return DISTRIBUTIONS[self.kind].bits if self.kind in DISTRIBUTIONS else 52

    def traced(self, given: Sequence[Scalar]) -> list[Scalar]:
        """Its elements, for the numbers it takes: between 0 and 1 if it is drawn, entries of a grid if it has one."""
        match self.kind:
            case "value":
                elements: Sequence[Scalar] = self.values[0]
            case "grid":
                elements = given
            case "choice":
                elements = chosen(given[0], self.values)
            case _:
                quantile = DISTRIBUTIONS[self.kind].quantile
                elements = [quantile(u, *p) for u, p in zip(given, self.parameters, strict=True)]
        return [
            f * elements[g] if f != 1.0 else elements[g]
            for g, f in zip(self.groups, self.factors, strict=True)
        ]


def read(table: Mapping[str, Any], robot: Robot, design: str) -> list[Variable]:
    """All variables; ``design`` is that of the study, which a variable may override."""
    variables = [_Reader(name, value, robot, design).variable() for name, value in table.items()]
    _check_elements(variables, robot)
    _check_labels(variables)
    return variables


class _Reader:
    """Reads one entry."""

    def __init__(self, name: str, value: Any, robot: Robot, design: str):
        self.name, self.robot, self.design = name, robot, design
        self.path = f"vary.{name}"
        self.table = StudySettings(value if isinstance(value, Mapping) else {"value": value}, self.path)
        self.element = _element_of(name, robot)
        self.labels = self._labels()

    def variable(self) -> Variable:
        table = self.table
        kinds = [kind for kind in KINDS if kind in table]
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none of them"
            raise table.fail("", f"expected exactly one of {', '.join(KINDS)}; got {got}")
        kind = kinds[0]
        design = table.choice("design", DESIGNS, self.design)
        unit = table.get("unit", str, None)
        size, scalar = self._size(kind)
        groups = self._groups(size)
        factors = self._factors(size)
        drawn = len(set(groups))
        values: tuple = ()
        parameters: tuple = ()
        if kind in DISTRIBUTIONS:
            parameters = self._parameters(kind, drawn)
        else:
            values = self._values(kind, drawn)
        table.finish()
        quantity = quantities.variable(self.robot, self.name, size, scalar, unit, self.labels)
        return Variable(
            quantity, kind, design, groups, factors, self.labels, self.element, values, parameters
        )

    # -- what it is ---------------------------------------------------------------------------------------------

    def _labels(self) -> tuple[str, ...]:
        known = self.robot.parameter_labels
        if "labels" not in self.table:
            return (self.name,) if self.name in known else ()
        wanted = self.table.raw("labels")
        patterns = [wanted] if isinstance(wanted, str) else list(wanted)
        labels: dict[str, None] = {}
        for pattern in patterns:
            matched = fnmatch.filter(known, str(pattern))
            if not matched:
                raise self.table.fail(
                    "labels", f"no parameter matches {pattern!r}; {suggest(str(pattern), known)}"
                )
            labels.update(dict.fromkeys(matched))
        return tuple(labels)

    def _size(self, kind: str) -> tuple[int, bool]:
        """(number of elements, whether it is a single number rather than a vector)."""
        if self.labels:
            return len(self.labels), len(self.labels) == 1
        if self.element is not None:
            return 1, True
        if self.name in STATES:
            return self.robot.dof, False
        if self.name in PAYLOAD:
            return PAYLOAD[self.name][0], PAYLOAD[self.name][0] == 1
        if self.name == "wrench":
            return 6, False
        given = self.table.raw(kind)
        if kind == "value":
            entries = [given]
        elif isinstance(given, Mapping):
            entries = [v for key, v in given.items() if key != "points"]
        else:
            entries = [] if isinstance(given, str) else list(given) if hasattr(given, "__iter__") else [given]
        sizes = {len(entry) for entry in entries if isinstance(entry, (list, tuple, np.ndarray))}
        stated = self.table.whole("size", 1, None)
        if stated is not None:
            sizes.add(stated)
        if len(sizes) > 1:
            raise self.table.fail(
                "", f"its parts have different lengths: {', '.join(map(str, sorted(sizes)))}"
            )
        return (sizes.pop(), False) if sizes else (1, True)

    def _groups(self, size: int) -> tuple[int, ...]:
        together = self.table.raw("together", False)
        if together is False:
            return tuple(range(size))
        if together is True:
            return (0,) * size
        if together != "link" or not self.labels:
            raise self.table.fail(
                "together", f'expected true, false or (with labels) "link", got {together!r}'
            )
        owners = [label.rsplit(".", 1)[0] for label in self.labels]
        order = list(dict.fromkeys(owners))
        return tuple(order.index(owner) for owner in owners)

    def _factors(self, size: int) -> tuple[float, ...]:
        if not self.table.get("relative", bool, False):
            return (1.0,) * size
        if not self.labels:
            raise self.table.fail("relative", "only parameters of the robot have a value to be relative to")
        nominal = dict(zip(self.robot.parameter_labels, self.robot.parameters.tolist(), strict=True))
        return tuple(nominal[label] for label in self.labels)

    # -- its numbers ----------------------------------------------------------------------------------------------

    def _parameters(self, kind: str, drawn: int) -> tuple[tuple[float, ...], ...]:
        names = DISTRIBUTIONS[kind].parameters
        given = self.table.raw(kind)
        if given == LIMITS:
            given = self._limits(kind)
        elif isinstance(given, Mapping):
            inner = StudySettings(given, self.table.where(kind))
            given = [inner.raw(name) for name in names]
            inner.finish()
        if not isinstance(given, (list, tuple)) or len(given) != len(names) or any(g is None for g in given):
            raise self.table.fail(kind, f"expected {len(names)} entries ({', '.join(names)}), got {given!r}")
        columns = [
            self._broadcast(numbers(part, f"{self.table.where(kind)}, {name}"), drawn, kind)
            for name, part in zip(names, given, strict=True)
        ]
        rows = tuple(zip(*columns, strict=True))
        for k, parameters in enumerate(rows):
            wrong = fault(kind, parameters)
            if wrong:
                place = f"element {k}: " if drawn > 1 else ""
                raise self.table.fail(kind, place + wrong)
        return rows

    def _limits(self, kind: str) -> list[list[float]]:
        """The joints' limits as the ends of a distribution."""
        base = self.element[0] if self.element else self.name
        if kind != "uniform" or base not in ("q", "qd", "tau"):
            raise self.table.fail(kind, '"limits" are those of uniform q, qd or tau')
        joints = self.robot.coordinate_joints
        if self.element:
            joints = (joints[self.element[1]],)
        low, high = [], []
        for joint in joints:
            limits = joint.limits
            size = {"qd": limits.largest_velocity, "tau": limits.largest_effort}.get(base, math.inf)
            a, b = (limits.lower, limits.upper) if base == "q" else (-size, size)
            if not (math.isfinite(a) and math.isfinite(b)):
                raise self.table.fail(kind, f"joint {joint.name} has no such limits; give numbers")
            low.append(a)
            high.append(b)
        return [low, high]

    def _values(self, kind: str, drawn: int) -> tuple[tuple[float, ...], ...]:
        given, where = self.table.raw(kind), self.table.where(kind)
        if kind == "value":
            return (tuple(self._broadcast(numbers(given, where), drawn, kind)),)
        if kind == "grid" and isinstance(given, Mapping):
            given = self._spaced_values(given)
        if not isinstance(given, (list, tuple, np.ndarray)) or len(given) == 0:
            raise self.table.fail(kind, f"expected a list of values, got {given!r}")
        if kind == "choice" and len(given) > MOST_CHOICES:
            raise self.table.fail(kind, f"expected at most {MOST_CHOICES} values, got {len(given)}")
        return tuple(tuple(self._broadcast(numbers(entry, where), drawn, kind)) for entry in given)

    def _spaced_values(self, given: Mapping[str, Any]) -> list[list[float]]:
        inner = StudySettings(given, self.table.where("grid"))
        first, last = (numbers(inner.raw(end), inner.where(end)) for end in ("from", "to"))
        points = inner.whole("points", 1)
        inner.finish()
        length = max(len(first), len(last))
        first, last = (self._broadcast(end, length, "grid") for end in (first, last))
        steps = max(points - 1, 1)
        return [[a + (b - a) * k / steps for a, b in zip(first, last, strict=True)] for k in range(points)]

    def _broadcast(self, values: list[float], size: int, kind: str) -> list[float]:
        if len(values) not in (1, size):
            raise self.table.fail(kind, f"expected 1 or {size} numbers, got {len(values)}")
        return values * size if len(values) == 1 else values


def _element_of(name: str, robot: Robot) -> tuple[str, int] | None:
    base, _, joint = name.partition(".")
    if base not in STATES or not joint:
        return None
    if joint not in robot.joint_names:
        raise StudyError(
            f"vary.{name}: {robot.name} has no joint {joint!r}; {suggest(joint, robot.joint_names)}"
        )
    return base, robot.joint_names.index(joint)


def _check_elements(variables: Sequence[Variable], robot: Robot) -> None:
    """A state of which only some joints are given needs a value for the others."""
    whole = {variable.name for variable in variables}
    for base in STATES:
        joints = {
            variable.element[1] for variable in variables if variable.element and variable.element[0] == base
        }
        if joints and base not in whole and len(joints) < robot.dof:
            missing = next(name for k, name in enumerate(robot.joint_names) if k not in joints)
            raise StudyError(
                f"vary: {base}.{missing} is missing; give it, or {base} for all joints that are not named"
            )


def _check_labels(variables: Sequence[Variable]) -> None:
    owner: dict[str, str] = {}
    for variable in variables:
        for label in variable.labels:
            if label in owner:
                raise StudyError(f"vary.{variable.name}: {label} is varied by {owner[label]} too")
            owner[label] = variable.name
    names = {variable.name for variable in variables}
    if "payload" in names and names & {"payload.mass", "payload.com", "payload.inertia"}:
        raise StudyError("vary.payload: give the ten numbers or mass, com and inertia, not both")
    if names & {"payload.com", "payload.inertia"} and "payload.mass" not in names:
        raise StudyError("vary: payload.mass is missing")
