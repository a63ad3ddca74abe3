"""``linkwise excite`` for robots with a floating base: on their feet, or hanging."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support.given import is_given, refuse_given
from linkwise.cli.support.options import Numbers, OneOf
from linkwise.cli.support.output import Table, fraction_done, number, say, say_json, show
from linkwise.cli.support.room_options import NAMES
from linkwise.cli.support.written import write_table

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

STANCES = ("standing", "hanging")
STANDING = ("stand", "feet")
NOT_STANDING = (
    "family",
    "criterion",
    "acceleration",
    "starts",
    "periods",
    "report",
    "figures",
    "view",
    *NAMES,
)


def stance_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of robots with a floating base."""
    for option in reversed(
        (
            click.option(
                "--stance",
                type=OneOf(STANCES, "name"),
                help="Of a floating base: standing (the feet stay where they are) or hanging (the base is held).",
            ),
            click.option("--feet", metavar="FRAME …", help="Frames of the feet, as for linkwise identify."),
            click.option(
                "--stand",
                type=Numbers(),
                metavar="Q1,Q2,…",
                help="Joint positions in which it stands [rad or m].",
            ),
        )
    ):
        command = option(command)
    return command


def held_base(robot: Robot, options: dict[str, Any]) -> Robot:
    """The robot that hangs: its base is held, and there is no floor unless one was given."""
    from linkwise.identify.walking.log import joints_alone

    if not is_given("floor"):
        options["floor"] = None
    return joints_alone(robot)


def check_stance(floating: bool, stance: str | None) -> str | None:
    """The stance of a floating base, None for others; raises for options that do not belong to it."""
    if not floating:
        refuse_given(("stance", *STANDING), "is for robots with a floating base (--base floating)")
        return None
    if stance == "hanging":
        refuse_given(STANDING, "is for --stance standing")
        return stance
    refuse_given(NOT_STANDING, "does not go with --stance standing")
    return "standing"


def excite_on_feet(
    robot: Robot, out: str | None, rate: float, as_json: bool, options: dict[str, Any]
) -> None:
    """Search a motion on standing feet, write and show it."""
    from linkwise.identify.excitation.standing import excite_standing

    taken = {key: options[key] for key in ("duration", "order", "share", "friction", "seed")}
    if is_given("iterations"):
        taken["iterations"] = options["iterations"]
    feet = options["feet"].split() if options["feet"] else None
    with fraction_done("preparing") as advance:
        found = excite_standing(robot, feet=feet, stand=options["stand"], progress=advance, **taken)
    if out is not None:
        write_table(out, found.table(rate))
    names = list(robot.joint_names[1:])
    low, high = found.q[:, 7:].min(axis=0), found.q[:, 7:].max(axis=0)
    if as_json:
        facts = {
            "robot": robot.name,
            "feet": [foot.name for foot in found.feet],
            "condition": found.condition,
        }
        facts |= {"condition_random": found.random, "base_parameters": found.parameters, "joints": names}
        facts |= {"lowest": low, "highest": high, "torque": found.torque, "least_push": found.push}
        say_json(facts | {"largest_lean": found.slope, "written": {} if out is None else {"motion": out}})
        return
    rows = [
        [name, f"{number(a, 3)} … {number(b, 3)}", number(speed, 3), number(torque, 3)]
        for name, a, b, speed, torque in zip(
            names, low, high, abs(found.qd[:, 6:]).max(axis=0), found.torque, strict=True
        )
    ]
    title = (
        f"An exciting motion of {robot.name} on {len(found.feet)} feet, {found.t[-1]:g} s, all limits kept"
    )
    show(
        Table(
            title,
            ["joint", ">from … to", ">speed", ">torque"],
            rows,
            ["rad, rad/s, N·m (m and N where a joint slides)"],
        )
    )
    say(f"every foot pushes with at least {found.push:.3g} N, forces lean by at most {found.slope:.2g}")
    say(
        f"condition number {found.condition:.4g} of {found.parameters} base parameters ({found.random:.4g} for a "
        "random motion); a second recording with --stance hanging shows the legs better"
    )
    say("the motion was not written: give --out FILE.csv" if out is None else f"motion written to {out}")
