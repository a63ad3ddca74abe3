"""``linkwise generate ROBOT FUNCTION… --out DIR``: a C package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support.gains import check_names, given_gains, one_or_all
from linkwise.cli.support.options import load_robot
from linkwise.cli.support.output import say, say_json
from linkwise.control import CONTROLLERS
from linkwise.embedded import Options, Package
from linkwise.embedded.entries import controller_of, gain_names
from linkwise.embedded.package import check_folder
from linkwise.errors import UnknownNameError, suggest
from linkwise.evidence import CertifiedPackage
from linkwise.functions.table import FUNCTIONS
from linkwise.motion import read_csv

if TYPE_CHECKING:
    from linkwise.compiler.ir.operations import Operations
    from linkwise.robot.robot import Robot


_NUMBERS = (
    *("period", "damping", "torque_limits", "stop", "stop_time"),
    *("horizon", "step", "iterations", "weights"),
)


def write_package(
    loading: tuple[Any, ...],
    functions: Sequence[str],
    target: str,
    out: str | None,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Write the package and say what it has.

    Args:
        loading: the robot and the options that change it, as ``load_robot`` takes them.
        functions: names of functions, controllers and other entries.
        target: must be C.
        out: the folder.
        as_json: whether JSON is printed.
        options: the other options of the command.
    """
    if out is None:
        raise click.UsageError("several functions are written as a package: give --out DIR")
    if target != "c":
        raise click.UsageError(f"a package is C; --target {target} takes one function")
    for option in ("header", "with_main"):
        if options[option]:
            name = option.removeprefix("with_")
            raise click.UsageError(
                f"--{name} is for one function in a file; a package has a header and a check"
            )
    check_folder(out, force=options["force"])
    robot = load_robot(*loading)
    package = (CertifiedPackage if options["certify"] else Package)(
        robot,
        functions,
        chosen_options(robot, functions, options),
        prefix=options["name"],
        fma=not options["no_fma"],
        constant_time=options["constant_time"],
        count=options["states"] or 32,
    )
    files = package.write(out, force=options["force"])
    rows = [
        {
            "function": f.name,
            "operations": cost(operations),
            "stack": f.stack_bound,
            "room": f.room,
        }
        for f in package.functions
        if (operations := f.operations)
    ]
    if as_json:
        say_json({"robot": robot.name, "dtype": package.options.dtype, "functions": rows, "files": files})
        return
    for f in package.functions:
        say(f"{f.name}: {f.operations}")
    if isinstance(package, CertifiedPackage):
        for certificate in package.certificates:
            say(f"{certificate.function}: {certificate.verdict}")
    say(f"package written: {out} ({len(files)} files); to check it: make -C {out} check")


def chosen_options(robot: Robot, functions: Sequence[str], options: dict[str, Any]) -> Options:
    """The choices of the command line; the algorithm must be one of a function that was named."""
    method = options["algorithm"]
    if method is not None:
        known = [
            name for function in functions if function in FUNCTIONS for name in robot.algorithms(function)
        ]
        if method not in known:
            named = " and ".join(functions)
            raise UnknownNameError(f"algorithm: {named} has no {method!r}; {suggest(method, known)}")
    if options["frame"]:
        robot.locate(options["frame"])
    numbers = {name: options[name] for name in _NUMBERS if options.get(name) is not None}
    if options["controller"]:
        numbers |= {"controller": options["controller"][0], "controllers": options["controller"]}
    if options["frequency"] is not None:
        numbers["frequency"] = one_or_all(options["frequency"], 10.0)
    if options["trajectory"]:
        numbers["trajectory"] = read_csv(options["trajectory"], robot.joint_names)
    return Options(
        dtype=options["dtype"],
        constant_time=options["constant_time"],
        algorithm=method,
        frame=options["frame"],
        friction=not options["no_friction"],
        wrench=options["wrench"],
        payload=options["payload"],
        gains=_gains(robot, functions, options),
        fixed_gains=options["fixed_gains"],
        **numbers,
    )


def _gains(robot: Robot, functions: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """Numbers of controllers by name; those that none of the controllers has are refused."""
    found = given_gains(options)
    if found:
        laws = [name for name in functions if name in CONTROLLERS]
        laws += options["controller"] or ([] if laws else [Options().controller])
        check_names(found, {law: gain_names(controller_of(robot, law, Options()), found) for law in laws})
    return found


def cost(operations: Operations) -> dict[str, int]:
    """Operations by kind."""
    names = ("multiplications", "additions", "divisions", "trigonometric")
    return {name: getattr(operations, name) for name in names}
