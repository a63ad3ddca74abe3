"""Reading the table ``compute``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from linkwise.errors import suggest
from linkwise.robot.robot import Robot
from linkwise.study.errors import StudyError
from linkwise.study.sampling.variables import Variable
from linkwise.study.schema import StudySettings
from linkwise.study.steps import call, formula, function
from linkwise.study.steps.base import Step
from linkwise.study.steps.robot_parameters import RobotParameters

KINDS = ("function", "formula", "call", "simulate", "identify", "plan")


def read(table: Mapping[str, Any], robot: Robot, variables: Sequence[Variable], seed: int) -> list[Step]:
    """All steps, each after what it needs."""
    parameters = RobotParameters.of(variables)
    steps = [_one(name, value, robot, parameters, seed) for name, value in table.items()]
    return ordered(steps, [variable.name for variable in variables], robot)


def _one(name: str, value: Any, robot: Robot, parameters: RobotParameters, seed: int) -> Step:
    path = f"compute.{name}"
    if isinstance(value, str):
        return formula.read(name, value, path, robot)
    if not isinstance(value, Mapping):
        if callable(value):
            return call.read(name, StudySettings({}, path), value)
        raise StudyError(f"{path}: expected a table or a formula, got {value!r}")
    table = StudySettings(value, path)
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        unknown = [key for key in value if key not in KINDS]
        hint = f"; {suggest(unknown[0], KINDS)}" if not kinds and unknown else ""
        got = " and ".join(kinds) or "none of them"
        raise StudyError(f"{path}: expected exactly one of {', '.join(KINDS)}; got {got}{hint}")
    match kinds[0]:
        case "formula":
            step: Step = formula.read(
                name, table.get("formula", str), path, robot, table.get("unit", str, "")
            )
        case "call":
            step = call.read(name, table)
        case "function":
            step = function.read(name, table, robot, parameters)
        case "simulate":
            from linkwise.study.steps import closed_loop

            step = closed_loop.read(name, table, robot, parameters, seed)
        case "plan":
            from linkwise.study.steps import planned

            step = planned.read(name, table, robot, seed)
        case _:
            from linkwise.study.steps import identification_settings

            step = identification_settings.read(name, table, robot, parameters, seed)
    table.finish()
    return step


def ordered(steps: Sequence[Step], known: Iterable[str], robot: Robot) -> list[Step]:
    """The steps in an order in which each finds what it takes."""
    have = {name: "" for name in known}
    have |= {name.split(".")[0]: "" for name in known if name.split(".")[0] in ("q", "qd", "qdd", "tau")}
    for step in steps:
        for name in step.gives():
            if have.get(name) == "" and name in have:
                raise StudyError(f"compute.{step.name}: {name} is a variable already")
            have[name] = step.name
    done = {name for name, owner in have.items() if owner == ""}
    result, left = [], list(steps)
    while left:
        ready = next((step for step in left if all(name in done for name in step.takes)), None)
        if ready is None:
            step = left[0]
            missing = [name for name in step.takes if name not in have]
            if missing:
                constants = formula.constants(robot)
                raise StudyError(
                    f"compute.{step.name}: needs {missing[0]}, which is neither varied nor computed; "
                    f"{suggest(missing[0], (*have, *constants))}"
                )
            raise StudyError(f"compute.{step.name}: depends on itself through {', '.join(step.takes)}")
        left.remove(ready)
        done.update(ready.gives())
        result.append(ready)
    return result
