"""``linkwise generate ROBOT FUNCTION --dtype q31`` or ``q15``: C in whole numbers of 32 or 16 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from linkwise.cli.parts.generate_package import chosen_options
from linkwise.cli.support import written
from linkwise.cli.support.options import load_robot
from linkwise.cli.support.output import say, say_json, say_verbatim
from linkwise.compiler.emit.clike import spelt
from linkwise.compiler.ir.program import Program
from linkwise.embedded.entries import entries
from linkwise.evidence import EvidenceError, box_of, fixed_point


def write_fixed_point(
    loading: tuple[Any, ...],
    functions: Sequence[str],
    target: str,
    out: str | None,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Write the function and say how it is scaled.

    Args:
        loading: the robot and the options that change it, as ``load_robot`` takes them.
        functions: one name.
        target: must be C.
        out: the file; None: standard output.
        as_json: whether JSON is printed.
        options: the other options of the command.
    """
    dtype = options["dtype"]
    if len(functions) != 1 or target != "c" or options["certify"]:
        raise click.UsageError(f"--dtype {dtype} is for one FUNCTION as a C file")
    if out is not None and not out.endswith(".c"):
        raise click.UsageError(f"--dtype {dtype}: --out must be a C file, FILE.c")
    written.check_targets(out)
    robot = load_robot(*loading)
    function = functions[0]
    made = entries(robot, (function,), chosen_options(robot, functions, {**options, "dtype": "float64"}))
    entry = next(e for e in made if e.name == function)
    if not isinstance(entry.program, Program):
        raise EvidenceError(f"{function}: fixed point is for straight-line code; this function has loops")
    box = box_of(robot, entry.program.inputs, values=entry.settings)
    fixed = fixed_point(entry.program, box, bits=int(dtype[1:]))
    text = fixed.source(options["name"] or spelt(f"{robot.name}_{function}_{dtype}"))
    if out is not None:
        written.write(out, text)
    scales = {name: f for name, _, f in (*fixed.inputs, *fixed.outputs)}
    errors = {name: max(e, default=0.0) for (name, _, _), e in zip(fixed.outputs, fixed.errors, strict=True)}
    if as_json:
        where = {"source": text} if out is None else {"files": [out]}
        say_json({"robot": robot.name, "function": function, "scales": scales, "errors": errors, **where})
    elif out is None:
        say_verbatim(text.rstrip("\n"))
    else:
        for name, error in errors.items():
            say(f"{name}: numbers times 2^{scales[name]}, errors at most {error:.2g}")
        for sentence in box.assumed:
            say(f"assumed: {sentence}")
        say(f"written: {out}")
