"""``linkwise generate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise import outputs
from linkwise.cli import written
from linkwise.cli.options import POSITIVE, OneOf, json_option, load_robot, robot_argument
from linkwise.cli.output import say, say_json
from linkwise.compiler.emit import DIFFERENTIATED, TARGETS


@click.command("generate")
@robot_argument
@click.argument("function")
@click.option(
    "--target",
    type=OneOf(tuple(TARGETS), "target"),
    default="c",
    show_default=True,
    help="c, cuda, python, wasm (WebAssembly in a JavaScript module), casadi or acados.",
)
@click.option("--casadi", is_flag=True, help="C for casadi.external, with the Jacobian: --target casadi.")
@click.option(
    "--acados", is_flag=True, help="C with acados' interface for discrete dynamics: --target acados."
)
@click.option(
    "--step",
    type=POSITIVE,
    metavar="SECONDS",
    help="Length of the step of --acados.  [default: 0.01]",
)
@click.option("--out", metavar="FILE", help="Write here; default: standard output.")
@click.option("--header", is_flag=True, help="Write a C header beside FILE too.")
@click.option(
    "--main",
    "with_main",
    is_flag=True,
    help="Add a main function to the C that reads states, prints results.",
)
@click.option("--name", metavar="NAME", help="Name of the function in the code; default: ROBOT_FUNCTION.")
@click.option("--algorithm", metavar="NAME", help="Which algorithm; default: that of the Python function.")
@click.option("--dtype", type=OneOf(("float64", "float32"), "dtype"), default="float64", show_default=True)
@click.option(
    "--frame", metavar="NAME", help="For pose, jacobian, velocity and --wrench; default: the only leaf."
)
@click.option("--wrench", is_flag=True, help="Take an external wrench as one more argument.")
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@click.option(
    "--no-fma", is_flag=True, help="C for processors without fused multiply-add; differs in the last bits."
)
@json_option
def command(
    robot: str,
    gravity,
    lock,
    base,
    mimic,
    function: str,
    target: str,
    out: str | None,
    as_json: bool,
    casadi: bool,
    acados: bool,
    step: float | None,
    **options,
) -> None:
    """Write the source code of one FUNCTION of one robot.

    FUNCTION is a method of the robot: inverse_dynamics, forward_dynamics, mass_matrix, gravity_torques, pose, …
    The C code is C99 and allocates nothing; on a machine with fused multiply-add it returns the same bits as the
    Python function.

    \b
    Example:
      linkwise generate puma560 inverse_dynamics --target c --out puma560.c --header
      linkwise generate arm.urdf forward_dynamics --algorithm compound_link --main --out arm.c
      linkwise generate panda forward_dynamics --casadi --out panda.c
    """
    from linkwise.compiler.emit.clike import spelt

    target = _target(target, casadi, acados, step)
    _check(function, target, out, options)
    header = str(Path(out).with_suffix(".h")) if out is not None and options["header"] else None
    written.check_targets(out, header)
    loaded = load_robot(robot, gravity, lock, base, mimic)
    kernel, what = _kernel(loaded, function, options)
    style = {"function_name": options["name"] or spelt(f"{loaded.name}_{function}"), "description": what}
    if target == "acados":
        style["step"] = 0.01 if step is None else step
    if target in ("c", *DIFFERENTIATED):
        style["fma"] = not options["no_fma"]
    texts = {out or "": kernel.source(target, **style, **({"main": True} if options["with_main"] else {}))}
    if out is not None:
        if header is not None:
            texts[header] = kernel.source(target, header=True, **style)
        for path, text in texts.items():
            written.write(path, text)
    if as_json:
        cost = _cost(kernel.operations)
        where = {"source": texts[""]} if out is None else {"files": list(texts)}
        say_json({"robot": loaded.name, "function": function, "target": target, "operations": cost, **where})
    elif out is None:
        say(texts[""].rstrip("\n"))
    else:
        say(f"{what}: {kernel.operations}")
        say(f"written: {', '.join(texts)}")


def _target(target: str, casadi: bool, acados: bool, step: float | None) -> str:
    """The target that --target, --casadi and --acados mean together."""
    wanted = {name for name, on in (("casadi", casadi), ("acados", acados)) if on}
    if len(wanted | ({target} - {"c"})) > 1:
        raise click.UsageError("--target, --casadi and --acados name different targets; give one")
    found = next(iter(wanted), target)
    if step is not None and found != "acados":
        raise click.UsageError("--step is for --acados")
    return found


def _check(function: str, target: str, out: str | None, options: dict[str, Any]) -> None:
    """Refuse options that go with something else."""
    if options["header"] and (out is None or outputs.is_standard_output(out)):
        raise click.UsageError("--header needs --out FILE")
    for option in ("header", "with_main", "no_fma"):
        if options[option] and target != "c" and not (option == "no_fma" and target in DIFFERENTIATED):
            raise click.UsageError(f"--{option.removeprefix('with_').replace('_', '-')} is for --target c")
    if options["wrench"] and function not in ("inverse_dynamics", "forward_dynamics"):
        raise click.UsageError(f"{function} takes no wrench; inverse_dynamics and forward_dynamics do")
    if options["frame"] and not options["wrench"] and function not in ("pose", "jacobian", "velocity"):
        raise click.UsageError(
            f"{function} has no frame; --frame is for pose, jacobian, velocity and --wrench"
        )


def _kernel(robot, function: str, options: dict[str, Any]):
    """The kernel, and what it is in words."""
    from linkwise.errors import UnknownNameError, suggest
    from linkwise.functions import function_named

    summary = function_named(function).summary
    names = robot.algorithms(function)
    method = options["algorithm"] or names[0]
    if method not in names:
        raise UnknownNameError(f"algorithm: {function} has no {method!r}; {suggest(method, names)}")
    if options["frame"]:
        robot.locate(options["frame"])
    kernel = robot.kernel(
        function,
        algorithm=options["algorithm"],
        dtype=options["dtype"],
        friction=not options["no_friction"],
        frame=options["frame"],
        wrench=options["wrench"],
    )
    return kernel, f"{summary} of {robot.name}, by {method.replace('_', ' ')}"


def _cost(operations) -> dict[str, int]:
    names = ("multiplications", "additions", "divisions", "trigonometric")
    return {name: getattr(operations, name) for name in names}
