"""``linkwise generate ROBOT FUNCTION --target fmu|ros2_control``: code for systems that controllers live in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from linkwise.cli.parts.generate_package import chosen_options
from linkwise.cli.support import written
from linkwise.cli.support.options import load_robot
from linkwise.cli.support.output import say, say_json
from linkwise.embedded.package import check_folder
from linkwise.files import outputs
from linkwise.systems import Fmu, Ros2Controller

SYSTEMS = ("fmu", "ros2_control")
"""Targets that are files for another system rather than source code of one function."""


def write_system(
    loading: tuple[Any, ...],
    functions: Sequence[str],
    target: str,
    out: str | None,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Write the files and say what they have.

    Args:
        loading: the robot and the options that change it, as ``load_robot`` takes them.
        functions: one name of a function or a controller.
        target: one of ``SYSTEMS``.
        out: the file, or the folder.
        as_json: whether JSON is printed.
        options: the other options of the command.
    """
    if len(functions) > 1:
        raise click.UsageError(f"--target {target} takes one function, got {' '.join(functions)}")
    if out is None or outputs.is_standard_output(out):
        raise click.UsageError(f"--target {target} needs --out {'FILE' if target == 'fmu' else 'DIR'}")
    write = _write_fmu if target == "fmu" else _write_ros2
    write(loading, functions[0], out, as_json, options)


def _write_fmu(
    loading: tuple[Any, ...], function: str, out: str, as_json: bool, options: dict[str, Any]
) -> None:
    written.check_targets(out)
    robot = load_robot(*loading)
    fmu = Fmu(
        robot,
        function,
        chosen_options(robot, (function,), options),
        version=options["fmi"] or "2.0",
        identifier=options["name"],
    )
    size = fmu.write(out)
    kinds = [*(["model exchange"] if fmu.model.exchange else []), "co-simulation"]
    binary = None if fmu.binary is None else fmu.binary[0]
    if as_json:
        names = [each.name for each in fmu.model.variables]
        say_json(
            {
                "robot": robot.name, "function": function, "target": "fmu", "fmi": fmu.version, "interfaces": kinds,
                "binary": binary, "variables": names, "files": [out],
            }
        )  # fmt: skip
        return
    say(f"{fmu.model.summary}")
    say(f"FMI {fmu.version}, {' and '.join(kinds)}, {len(fmu.model.variables)} variables")
    say(
        f"binary: {binary}"
        if binary
        else "sources only: no C compiler here, or FMI has no name for this machine"
    )
    say(f"written: {out} ({size} bytes)")


def _write_ros2(
    loading: tuple[Any, ...], function: str, out: str, as_json: bool, options: dict[str, Any]
) -> None:
    check_folder(out)
    robot = load_robot(*loading)
    named = {key: options[key] for key in ("maintainer", "license") if options[key] is not None}
    package = Ros2Controller(
        robot, function, chosen_options(robot, (function,), options), package=options["name"], **named
    )
    files = package.write(out)
    if as_json:
        say_json({"robot": robot.name, "function": function, "target": "ros2_control", "files": files})
        return
    say(package.functions[0].entry.summary)
    say(f"ROS 2 package {package.package} written: {out} ({len(files)} files), {package.rate} Hz")
