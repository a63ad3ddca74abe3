"""``linkwise generate``."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.cli.columns import replacing
from linkwise.cli.options import OneOf, json_option, load_robot, robot_argument
from linkwise.cli.output import say, say_json


@click.command("generate")
@robot_argument
@click.argument("function")
@click.option("--target", type=OneOf(("c",), "target"), default="c", show_default=True, help="The language.")
@click.option("--out", metavar="FILE", help="Write here; default: standard output.")
@click.option("--header", is_flag=True, help="Write a header beside FILE too.")
@click.option(
    "--main", "with_main", is_flag=True, help="Add a main function that reads states and prints results."
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
    "--no-fma", is_flag=True, help="For processors without fused multiply-add; differs in the last bits."
)
@json_option
def command(
    robot,
    gravity,
    lock,
    function,
    target,
    out,
    header,
    with_main,
    name,
    algorithm,
    dtype,
    frame,
    wrench,
    no_friction,
    no_fma,
    as_json,
):
    """Write the source code of one FUNCTION of one robot.

    FUNCTION is a method of the robot: inverse_dynamics, forward_dynamics, mass_matrix, gravity_torques, pose, …
    The C code is C99 and allocates nothing; on a machine with fused multiply-add it returns the same bits as the
    Python function.

    \b
    Example:
      linkwise generate puma560 inverse_dynamics --target c --out puma560.c --header
      linkwise generate arm.urdf forward_dynamics --algorithm compound_link --main --out arm.c
    """
    if header and out is None:
        raise click.UsageError("--header needs --out FILE")
    loaded = load_robot(robot, gravity, lock)
    kernel, what = _kernel(loaded, function, algorithm, dtype, frame, wrench, not no_friction)
    options = {"function_name": name or f"{loaded.name}_{function}", "description": what, "fma": not no_fma}
    files = {out: kernel.source(target, main=with_main, **options)}
    if out is None:
        if not as_json:
            say(files[None].rstrip("\n"))
            return
    else:
        if header:
            files[str(Path(out).with_suffix(".h"))] = kernel.source(target, header=True, **options)
        for path, text in files.items():
            with replacing(Path(path)) as aside:
                aside.write_text(text, encoding="utf-8")
    if as_json:
        say_json(
            {
                "robot": loaded.name,
                "function": function,
                "files": [f for f in files if f],
                **_cost(kernel, files, out),
            }
        )
    else:
        say(f"{what}: {kernel.operations}")
        say(f"written: {', '.join(files)}")


def _kernel(robot, function: str, algorithm: str | None, dtype: str, frame, wrench: bool, friction: bool):
    """The kernel, and what it is in words."""
    from linkwise.errors import LinkwiseError
    from linkwise.functions import FUNCTIONS, Setting, function_named
    from linkwise.kernels import is_straight
    from linkwise.kernels import kernel as kernel_of

    iterated = FUNCTIONS["iterated_forward_dynamics"]
    chosen = (
        iterated
        if function == "forward_dynamics" and algorithm in iterated.algorithms
        else function_named(function)
    )
    method = chosen.algorithm(algorithm)
    needs_frame = wrench or chosen.name in ("pose", "jacobian", "velocity")
    if frame is not None and not needs_frame:
        raise click.UsageError(
            f"{function} has no frame; --frame is for pose, jacobian, velocity and --wrench"
        )
    if wrench and function not in ("inverse_dynamics", "forward_dynamics"):
        raise click.UsageError(f"{function} takes no wrench; inverse_dynamics and forward_dynamics do")
    if needs_frame:
        frame = frame or robot.default_frame()
        robot.locate(frame)
    setting = Setting(
        robot, friction=friction, frame=frame, wrench=wrench, dtype=dtype, base_parameters=chosen.regroups
    )
    if not is_straight(chosen, setting):
        raise LinkwiseError(
            f"{robot.name} has {robot.dof} joints: too many to write {function} out as straight-line code"
        )
    what = f"{chosen.summary} of {robot.name}, by {method.replace('_', ' ')}"
    return kernel_of(chosen, setting, method, dtype), what


def _cost(kernel, files, out) -> dict:
    operations = kernel.operations
    cost = {
        "multiplications": operations.multiplications,
        "additions": operations.additions,
        "divisions": operations.divisions,
        "trigonometric": operations.trigonometric,
    }
    return {"operations": cost, **({"source": files[None]} if out is None else {})}
