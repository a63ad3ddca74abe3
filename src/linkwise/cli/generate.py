"""``linkwise generate``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from linkwise.cli.parts.generate_fixed_point import write_fixed_point
from linkwise.cli.parts.generate_package import chosen_options, cost, write_package
from linkwise.cli.parts.generate_system import SYSTEMS, write_system
from linkwise.cli.support import headings, written
from linkwise.cli.support.gains import NAMES as GAINS
from linkwise.cli.support.gains import check_gains, gain_options
from linkwise.cli.support.options import (
    POSITIVE,
    Numbers,
    OneOf,
    SomeOf,
    WholeNumber,
    completions,
    json_option,
    load_robot,
    robot_argument,
)
from linkwise.cli.support.output import say, say_json, say_verbatim
from linkwise.compiler.emit import DIFFERENTIATED, TARGETS
from linkwise.compiler.emit.clike import spelt
from linkwise.compiler.rollout import RolloutKernel
from linkwise.control import CONTROLLERS
from linkwise.control.safe_stop import MODES
from linkwise.embedded import ENTRIES, entries
from linkwise.embedded.entries import LAWS
from linkwise.files import outputs
from linkwise.functions.table import FUNCTIONS
from linkwise.robot.calls import FRAME_FUNCTIONS
from linkwise.robot.robot import Robot
from linkwise.systems import VERSIONS

MPC = "mpc"
OF_TARGETS = {"fmi": "fmu", "second": "casadi", "maintainer": "ros2_control", "license": "ros2_control"}
"""Options of single targets."""
NAMES = tuple(dict.fromkeys((*FUNCTIONS, *CONTROLLERS, *ENTRIES)))  # what FUNCTION may be


def _complete_function(ctx: click.Context, param: click.Parameter, incomplete: str):
    """Shell completion: functions, controllers and other entries that are not named yet."""
    named = ctx.params.get("functions") or ()
    return completions((name for name in NAMES if name not in named), incomplete)


def _complete_algorithm(ctx: click.Context, param: click.Parameter, incomplete: str):
    """Shell completion: algorithms of the functions that are named."""
    named = [FUNCTIONS[name] for name in ctx.params.get("functions") or () if name in FUNCTIONS]
    return completions(
        dict.fromkeys(name for row in named or FUNCTIONS.values() for name in row.algorithms), incomplete
    )


_HEADINGS = {
    "Code": "target name main dtype constant-time no-fma",
    "Functions": "algorithm frame wrench payload no-friction",
    "Controllers and loops": (
        f"controller trajectory stop stop-time period {GAINS} fixed-gains torque-limits horizon step iterations weights"
    ),
    "Other systems": "fmi maintainer license",
    "Output": "out header force states certify json",
}


@headings.command("generate", _HEADINGS)
@robot_argument
@click.argument("functions", nargs=-1, required=True, metavar="FUNCTION…", shell_complete=_complete_function)
@click.option(
    "--target",
    type=OneOf((*TARGETS, *SYSTEMS), "target"),
    default="c",
    show_default=True,
    help="c, cuda, python, wasm (WebAssembly in a JavaScript module), casadi (C for casadi.external, with the "
    "Jacobian), acados (C with its interface for discrete dynamics), fmu or ros2_control (a package).",
)
@click.option(
    "--maintainer",
    metavar='"NAME <MAIL>"',
    help="In the package of --target ros2_control.  [default: a TODO]",
)
@click.option("--license", metavar="NAME", help="In the package of --target ros2_control.  [default: a TODO]")
@click.option(
    "--fmi", type=OneOf(VERSIONS, "version"), help="Version of FMI of --target fmu.  [default: 2.0]"
)
@click.option("--casadi", "older", flag_value="casadi", hidden=True)
@click.option("--acados", "older", flag_value="acados", hidden=True)
@click.option(
    "--step",
    type=POSITIVE,
    metavar="SECONDS",
    help="Length of the step of --target acados and of mpc.  [default: 0.01]",
)
@click.option(
    "--second", is_flag=True, help="Second derivatives with --target casadi: the adjoint, its Jacobian."
)
@click.option(
    "--horizon", type=WholeNumber(1, 1000), help="Number of steps of the plans of mpc.  [default: 30]"
)
@click.option(
    "--iterations", type=WholeNumber(1, 100), help="Iterations of the solver in a call of mpc.  [default: 1]"
)
@click.option(
    "--out",
    metavar="FILE|DIR",
    help="Write here; default: standard output. A folder, or a name without an ending, becomes a C package.",
)
@click.option("--header", is_flag=True, help="Write a C header beside FILE too.")
@click.option(
    "--main",
    "with_main",
    is_flag=True,
    help="Add a main function to the C that reads states, prints results.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the function in the code; default: ROBOT_FUNCTION. Of a package: how names begin.",
)
@click.option(
    "--algorithm",
    metavar="NAME",
    shell_complete=_complete_algorithm,
    help="Which algorithm; default: that of the Python function.",
)
@click.option(
    "--dtype",
    type=OneOf(("float64", "float32", "q31", "q15"), "dtype"),
    default="float64",
    show_default=True,
    help="Precision; q31, q15: whole numbers of 32 or 16 bits, for one FUNCTION as a C file.",
)
@click.option(
    "--frame",
    metavar="NAME",
    help="For pose, jacobian, velocity, task-space controllers and --wrench; default: the only leaf.",
)
@click.option("--wrench", is_flag=True, help="Take an external wrench as one more argument.")
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@click.option(
    "--payload",
    is_flag=True,
    help="Take a payload at --frame (ten numbers) as one more argument, at run time.",
)
@click.option(
    "--constant-time", is_flag=True, help="C without branches that depend on data: selects instead."
)
@click.option(
    "--period", type=POSITIVE, help="Sample period of controllers, step of loops [s].  [default: 0.001]"
)
@gain_options
@click.option(
    "--fixed-gains", is_flag=True, help="Gains and torque limits of controllers as constants, not arguments."
)
@click.option(
    "--torque-limits",
    type=Numbers(each=POSITIVE),
    metavar="T1,T2,…",
    help="Of controllers [N·m or N]; default: the effort limits of the robot.",
)
@click.option(
    "--controller",
    type=SomeOf(tuple(CONTROLLERS), "name"),
    help="The one of closed_loop and guarded_controller, or those of switched_controller, separated by commas.  "
    "[default: computed_torque, and gravity_pd]",
)
@click.option("--stop", type=OneOf(MODES, "mode"), help="Mode of safe_stop: hold or ramp.  [default: hold]")
@click.option("--stop-time", type=POSITIVE, metavar="SECONDS", help="Duration of safe_stop.  [default: 0.5]")
@click.option(
    "--trajectory",
    metavar="FILE",
    help="The motion of trajectory and closed_loop, a table of t, q1 …; default: quintic moves.",
)
@click.option(
    "--weights", metavar="FILE", help="The network of policy, an NPZ file of linkwise.environments.Policy."
)
@click.option(
    "--states",
    type=WholeNumber(1, 10000),
    help="Reference states of every function in a package.  [default: 32]",
)
@click.option(
    "--certify",
    is_flag=True,
    help="Put bounds that hold for all states within the limits of the robot into a package: certificate.json.",
)
@click.option("--force", is_flag=True, help="Write a package into a folder that has other contents.")
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
    functions: tuple[str, ...],
    target: str,
    out: str | None,
    as_json: bool,
    older: str | None,
    step: float | None,
    **options,
) -> None:
    """Write the source code of one FUNCTION of one robot, or of several as a C package.

    FUNCTION is a method of the robot (inverse_dynamics, forward_dynamics, mass_matrix, gravity_torques, pose, …), a
    controller (computed_torque, tracking, gravity_pd, …), state_observer, momentum_observer, guarded_controller,
    switched_controller, safe_stop, recursive_least_squares, extended_kalman_filter, trajectory, two_rate, closed_loop,
    rollout, mpc (predictive control), inverse_kinematics, online (jerk-limited moves to new targets) or policy (a
    learned network). The C code is C99 and allocates nothing; on a machine with fused multiply-add it returns the same
    bits as the Python function. A package has a header, a C++ wrapper, one source for each function, files for make,
    CMake and pkg-config, and a self-test: make check.

    \b
    Example:
      linkwise generate puma560 inverse_dynamics --target c --out puma560.c --header
      linkwise generate arm.urdf forward_dynamics --algorithm compound_link --main --out arm.c
      linkwise generate panda computed_torque gravity_torques --dtype float32 --out panda_controller
      linkwise generate panda computed_torque trajectory --trajectory motion.csv --out panda_controller
      linkwise generate panda mpc --horizon 30 --step 0.01 --dtype float32 --out panda_mpc
      linkwise generate go2.xml policy --weights go2.npz --dtype float32 --out go2_policy
      linkwise generate panda forward_dynamics --target casadi --second --out panda.c
      linkwise generate panda forward_dynamics --target fmu --out panda.fmu
    """
    target = _target(target, older)
    options["step"] = step
    if step is not None and target != "acados" and MPC not in functions:
        raise click.UsageError("--step is for --target acados and mpc")
    loading = (robot, gravity, lock, base, mimic)
    function, *others = functions
    for option, own in OF_TARGETS.items():
        if options[option] and target != own:
            raise click.UsageError(f"--{option} is for --target {own}")
    if target in SYSTEMS:
        untimed = {**options, "period": None} if function == "forward_dynamics" else options
        _check(function, target, out, untimed)
        write_system(loading, functions, target, out, as_json, options)
        return
    fixed = options["dtype"] in ("q31", "q15")
    if fixed or others or _is_folder(out, target):
        _check_functions(functions, options)
        (write_fixed_point if fixed else write_package)(loading, functions, target, out, as_json, options)
        return
    _check(function, target, out, options)
    header = str(Path(out).with_suffix(".h")) if out is not None and options["header"] else None
    written.check_targets(out, header)
    loaded = load_robot(*loading)
    kernel, what = _kernel(loaded, function, options)
    style: dict[str, Any] = {
        "function_name": options["name"] or spelt(f"{loaded.name}_{function}"),
        "description": what,
    }
    if isinstance(kernel, RolloutKernel):
        style["dtype"] = options["dtype"]
    if target == "acados":
        style["step"] = 0.01 if step is None else step
    if options["second"]:
        style["second"] = True
    if target in ("c", *DIFFERENTIATED):
        style["fma"] = not options["no_fma"]
    if options["constant_time"]:
        style["constant_time"] = True
    more: dict[str, Any] = {"main": True} if options["with_main"] else {}
    texts = {out or "": kernel.source(target, **more, **style)}
    if header is not None:
        texts[header] = kernel.source(target, header=True, **style)
    if out is not None:
        for path, text in texts.items():
            written.write(path, text)
    _say(loaded.name, function, target, kernel, what, texts, as_json)


def _say(
    robot: str, function: str, target: str, kernel, what: str, texts: dict[str, str], as_json: bool
) -> None:
    """What was written, or the source itself where no file was asked for."""
    operations = kernel.program().step.operations if isinstance(kernel, RolloutKernel) else kernel.operations
    printed = texts.get("")
    if as_json:
        where = {"source": printed} if printed is not None else {"files": list(texts)}
        say_json(
            {"robot": robot, "function": function, "target": target, "operations": cost(operations), **where}
        )
    elif printed is not None:
        say_verbatim(printed.rstrip("\n"))
    else:
        say(f"{what}: {operations}")
        say(f"written: {', '.join(texts)}")


def _is_folder(out: str | None, target: str) -> bool:
    """Whether --out is a place for a package: a folder, or a name without an ending that nothing has yet."""
    if out is None or target != "c" or outputs.is_standard_output(out):
        return False
    path = Path(out)
    return path.is_dir() or out.endswith(os.sep) or (not path.suffix and not path.exists())


def _target(target: str, older: str | None) -> str:
    """The target; --casadi and --acados, which version 0.2 had, say what to type."""
    if older is None:
        return target
    if target not in ("c", older):
        raise click.UsageError(f"--target {target} and --{older} name different targets; give --target alone")
    click.echo(f"--{older}: type --target {older} instead", err=True)
    return older


_ENDINGS = {
    "cuda": headings.Output("CUDA", ".cu"),
    "python": headings.Output("Python", ".py"),
    "wasm": headings.Output("a JavaScript module", ".js", ".mjs"),
    "fmu": headings.Output("a functional mock-up unit", ".fmu"),
}  # all others are C


def _check(function: str, target: str, out: str | None, options: dict[str, Any]) -> None:
    """Refuse options that go with something else."""
    if out is not None and target != "ros2_control":
        _ENDINGS.get(target, headings.C_FILE).convert(out, None, click.get_current_context())
    if options["header"] and (out is None or outputs.is_standard_output(out)):
        raise click.UsageError("--header needs --out FILE")
    for option in ("header", "with_main", "no_fma", "constant_time"):
        if options[option] and target != "c" and not (option == "no_fma" and target in DIFFERENTIATED):
            raise click.UsageError(f"--{option.removeprefix('with_').replace('_', '-')} is for --target c")
    if options["trajectory"] and target != "c":
        raise click.UsageError("--trajectory is for --target c")
    for option in ("force", "states", "certify"):
        if options[option]:
            raise click.UsageError(f"--{option} is for packages: --out DIR")
    _check_functions((function,), options)


def _check_functions(functions: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse options that none of the functions has."""
    named = " and ".join(functions)
    if options["wrench"] and not {"inverse_dynamics", "forward_dynamics"} & set(functions):
        raise click.UsageError(f"{named} takes no wrench; inverse_dynamics and forward_dynamics do")
    with_tool = {name for name, law in CONTROLLERS.items() if law.has_frame}
    placed = (
        options["wrench"]
        or options["payload"]
        or {*functions, *(options["controller"] or ())} & {*FRAME_FUNCTIONS, MPC, *with_tool}
    )
    if options["frame"] and not placed:
        raise click.UsageError(
            f"{named} has no frame; --frame is for pose, jacobian, velocity, mpc, task-space controllers, "
            "--payload and --wrench"
        )
    for option in ("horizon", "iterations"):
        if options[option] is not None and MPC not in functions:
            raise click.UsageError(f"--{option} is for mpc")
    if options["controller"] and not {"closed_loop", *LAWS} & set(functions):
        raise click.UsageError(f"--controller is for closed_loop, {' and '.join(LAWS)}")
    if len(options["controller"] or ()) > 1 and "switched_controller" not in functions:
        raise click.UsageError("--controller: several are for switched_controller")
    if (options["stop"] or options["stop_time"]) and "safe_stop" not in functions:
        raise click.UsageError("--stop and --stop-time are for safe_stop")
    if options["weights"] and "policy" not in functions:
        raise click.UsageError("--weights is for policy")
    if options["trajectory"] and not {"closed_loop", "trajectory"} & set(functions):
        raise click.UsageError("--trajectory is for trajectory and closed_loop")
    for option in (
        "period",
        "frequency",
        "damping",
        "torque_limits",
        "kp",
        "kd",
        "ki",
        "gain",
        "fixed_gains",
    ):
        if options[option] not in (None, (), False) and not {*CONTROLLERS, *ENTRIES} & set(functions):
            raise click.UsageError(f"--{option.replace('_', '-')} is for controllers; {named} is none")
    check_gains(options)
    if MPC in functions and options["frequency"] is not None and len(options["frequency"]) > 1:
        raise click.UsageError("--frequency: mpc has one frequency for all joints")


def _kernel(robot: Robot, function: str, options: dict[str, Any]) -> tuple[Any, str]:
    """The kernel, and what it is in words."""
    made = entries(robot, (function,), chosen_options(robot, (function,), options))
    made = [entry for entry in made if entry.name == function] or made
    if len(made) != 1:
        raise click.UsageError(f"{function} is several functions: write them as a package, --out DIR")
    return made[0].kernel, made[0].summary
