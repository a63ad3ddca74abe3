"""``linkwise certify``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from linkwise.cli.support import headings
from linkwise.cli.support.options import (
    POSITIVE,
    Numbers,
    OneOf,
    WholeNumber,
    json_option,
    load_robot,
    robot_argument,
)
from linkwise.cli.support.output import Table, number, progress, say, say_json, show

_HEADINGS = {
    "Code": "dtype no-fma algorithm no-friction",
    "Box": "velocity acceleration payload around divide",
    "Bounds": "tolerance seconds constants",
}


@headings.command("certify", _HEADINGS)
@robot_argument
@click.argument("functions", nargs=-1, metavar="[FUNCTION…]")
@click.option("--dtype", type=OneOf(("float64", "float32"), "dtype"), default="float64", show_default=True)
@click.option("--no-fma", is_flag=True, help="The code for processors without fused multiply-add.")
@click.option("--algorithm", metavar="NAME", help="Which algorithm; default: that of the Python function.")
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@click.option(
    "--velocity",
    type=Numbers(each=POSITIVE),
    metavar="V1,V2,…",
    help="Largest joint velocities [rad/s or m/s], one or one for each joint.  [default: limits of the robot]",
)
@click.option(
    "--acceleration",
    type=Numbers(each=POSITIVE),
    metavar="A1,A2,…",
    help="Largest joint accelerations [rad/s² or m/s²], one or one for each joint.  [default: 10]",
)
@click.option(
    "--around",
    type=POSITIVE,
    metavar="RADIANS",
    help="Joint positions within this distance of the middle of their limits (0 without limits), not all of them.",
)
@click.option(
    "--payload",
    type=Numbers(count=2, each=POSITIVE),
    metavar="KG,METRES",
    help="Code with a payload as an argument: at most this mass, within this distance of its frame.",
)
@click.option(
    "--divide",
    type=WholeNumber(1, 100_000),
    metavar="PARTS",
    help="Cut the box of positions into at most so many parts, and list those where a NaN, an infinity or a division "
    "by 0 cannot be excluded.",
)
@click.option(
    "--tolerance",
    type=POSITIVE,
    default=0.1,
    show_default=True,
    help="What bounds may add to the largest value, as a part of it.",
)
@click.option(
    "--seconds",
    type=POSITIVE,
    default=60.0,
    show_default=True,
    help="For the bounds of one output; they are wider if the time ends.",
)
@click.option("--constants", is_flag=True, help="Constants of the equation of motion instead of a FUNCTION.")
@json_option
def command(
    robot: str, gravity, lock, base, mimic, functions: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Bounds of generated code that hold for every state within the limits of a robot.

    Each FUNCTION is one of `linkwise generate`. The range and the rounding error of every output are bounded for all
    states of a box: joint limits, velocity limits and accelerations. Beside each bound stands the largest value that a
    search finds. --constants bounds what robust and adaptive control ask for: eigenvalues of the mass matrix, gravity
    torques, Coriolis terms. For the folder of a package with a certificate instead of a ROBOT, the code and all bounds
    are computed again and compared.

    \b
    Example:
      linkwise certify puma560 gravity_torques
      linkwise certify ur10e inverse_dynamics --dtype float32 --acceleration 5
      linkwise certify puma560 forward_dynamics --around 0.2 --divide 64
      linkwise certify two_link --constants
      linkwise certify certified_arm
    """
    if Path(robot, "certificate.json").is_file():
        _compute_again(robot, functions)
        return
    loaded = load_robot(robot, gravity, lock, base, mimic)
    box = {name: _one_or_all(options[name]) for name in ("velocity", "acceleration")}
    box |= {"payload": options["payload"], "given": _around(loaded, options["around"])}
    if options["constants"]:
        if functions:
            raise click.UsageError("--constants takes no FUNCTION")
        _show_constants(loaded, as_json)
        return
    if not functions:
        raise click.UsageError("Missing argument 'FUNCTION…'")
    chosen = _code(options)
    if options["divide"] is not None:
        _show_parts(loaded, functions, chosen, box, options, as_json)
        return
    _show_bounds(loaded, functions, chosen, box, options, as_json)


def _compute_again(folder: str, functions: tuple[str, ...]) -> None:
    """Of a package: all bounds once more."""
    from linkwise.evidence.recomputed import recompute

    if functions:
        raise click.UsageError("a package takes no FUNCTION: all of its bounds are computed again")
    differences = recompute(folder)
    for sentence in differences:
        say(sentence)
    if differences:
        raise click.exceptions.Exit(1)
    say(f"{folder}: code and bounds were computed again and are those of the certificate")


def _one_or_all(values: Any) -> Any:
    return None if not values else values[0] if len(values) == 1 else values


def _code(options: Any) -> Any:
    """Choices of the generated code."""
    from linkwise.embedded import Options

    return Options(
        dtype=options["dtype"],
        algorithm=options["algorithm"],
        friction=not options["no_friction"],
        payload=options["payload"] is not None,
    )


def _around(robot: Any, distance: float | None) -> Any:
    """Positions within a distance of the middle of their limits; None: all."""
    if distance is None:
        return None
    low, high = robot.limits.lower, robot.limits.upper
    limited = np.isfinite(low) & np.isfinite(high)
    middle = np.where(limited, np.nan_to_num(low) / 2 + np.nan_to_num(high) / 2, 0.0)
    return {"q": (middle - distance, middle + distance)}


def _show_parts(
    robot: Any, functions: tuple[str, ...], chosen: Any, box: Any, options: Any, as_json: bool
) -> None:
    """Parts of the box of positions: shown, and not."""
    from linkwise.embedded.entries import entries
    from linkwise.evidence import divide
    from linkwise.evidence.certified_bounds import program_and_box

    found = {}
    with progress("dividing", len(functions)) as advance:
        for function in functions:
            entry = next(e for e in entries(robot, (function,), chosen) if e.name == function)
            program, whole = program_and_box(robot, entry, fma=not options["no_fma"], **box)
            found[function] = divide(program, whole, most=options["divide"], robot=robot)
            advance()
    if as_json:
        say_json(
            [
                {
                    "function": name,
                    "shown": [part.json() for part in d.shown],
                    "left": [{"box": part.json(), "node": p.node, "what": p.what} for part, p in d.left],
                }
                for name, d in found.items()
            ]
        )
        return
    for name, d in found.items():
        rows = [[_positions(part), f"v{p.node}: {p.what}"] for part, p in d.left]
        notes = [
            f"{len(d.shown)} of {len(d.shown) + len(d.left)} parts are shown, {100 * d.share:.3g} % of the volume: all "
            "values are finite numbers there"
        ]
        show(Table(f"{name} of {robot.name}: parts that are not shown", ["q", "not excluded"], rows, notes))


def _positions(part: Any) -> str:
    return ", ".join(f"{a:.3g}…{b:.3g}" for a, b in zip(*part.bounds["q"], strict=True))


def _show_bounds(
    robot: Any, functions: tuple[str, ...], chosen: Any, box: Any, options: Any, as_json: bool
) -> None:
    from linkwise.evidence import certify

    found = []
    with progress("bounding", len(functions)) as advance:
        for function in functions:
            found.append(
                certify(
                    robot,
                    function,
                    options=chosen,
                    fma=not options["no_fma"],
                    tolerance=options["tolerance"],
                    seconds=options["seconds"],
                    **box,
                )
            )
            advance()
    if as_json:
        say_json([certificate.json() for certificate in found])
        return
    for certificate in found:
        show(_table(certificate))


def _table(certificate: Any) -> Table:
    rows = [
        [
            f"{o.name}[{o.index}]",
            *(number(x) for x in (o.low, o.high, o.lowest.value, o.highest.value)),
            *(f"{x:.2g}" for x in (o.error, o.worst.value)),
        ]
        for o in certificate.outputs
    ]
    notes = [certificate.verdict, *(f"assumed: {sentence}" for sentence in certificate.box.assumed)]
    notes += [f"not excluded: v{p.node}: {p.what}" for p in certificate.problems[:5]]
    notes.append(f"{certificate.seconds:.1f} s")
    head = [
        "output",
        ">at least",
        ">at most",
        ">lowest found",
        ">highest found",
        ">error at most",
        ">worst found",
    ]
    return Table(f"{certificate.function} of {certificate.robot}, {certificate.dtype}", head, rows, notes)


def _show_constants(robot: Any, as_json: bool) -> None:
    from linkwise.evidence import constants

    found = constants(robot)
    if as_json:
        say_json(asdict(found))
        return
    shown = found.least_inertia if found.definite else None
    rows = [
        ["smallest eigenvalue of the mass matrix, at least", shown, found.least_inertia_found],
        ["largest eigenvalue of the mass matrix, at most", found.most_inertia, found.most_inertia_found],
        ["length of the gravity torques, at most", found.gravity, found.gravity_found],
        ["k of |C(q, x) y| ≤ k |x| |y|, at most", found.coriolis, None],
    ]
    table = [[what, *("not shown" if x is None else number(x) for x in pair)] for what, *pair in rows]
    notes = [f"for all positions within the joint limits; a grid of {found.points} points"]
    show(Table(f"Equation of motion of {robot.name}", ["constant", ">bound", ">found"], table, notes))
