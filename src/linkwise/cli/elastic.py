"""``linkwise elastic``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.parts.closed_loop import reference_layout
from linkwise.cli.support import headings
from linkwise.cli.support.options import POSITIVE, RowRange, json_option, load_robot, robot_argument
from linkwise.cli.support.output import Table, number, say, say_json, show, status

if TYPE_CHECKING:
    from linkwise.identify import Elasticity, Layout, Log, Resonance
    from linkwise.robot.robot import Robot


_HEADINGS = {
    "Recording": "link-positions layout rows drop-bad-rows",
    "Signals": "cutoff",
}


@headings.command("elastic", _HEADINGS)
@robot_argument
@click.argument("log", metavar="LOG")
@click.option(
    "--link-positions",
    metavar="COLUMNS",
    help="Columns with the positions of the links, such as 'link{}'; the others are those of the motors.",
)
@click.option("--layout", metavar="FILE.toml", help="What the columns of the recording mean.")
@click.option("--rows", type=RowRange(), metavar="FIRST-LAST", help="Use these rows only, from 1.")
@click.option(
    "--drop-bad-rows", is_flag=True, help="Leave out rows with missing numbers or stamps that go back."
)
@click.option("--cutoff", type=POSITIVE, metavar="HZ", help="Cut-off of the filters; default: from the data.")
@json_option
def command(robot, gravity, lock, base, mimic, log, **options: Any) -> None:
    """Find elastic joints in a recording, and their stiffness.

    With positions of motors and links, brought to the joints both, every joint has a stiffness with a confidence
    interval, or a bound where it does not give way. Without positions of the links a rigid model is identified, and
    narrow peaks in what it leaves of the torques are named: signs of elastic joints.

    \b
    Example:
      linkwise elastic arm.urdf log.csv --link-positions 'link{}'
      linkwise elastic arm.urdf log.csv
    """
    from linkwise import identify as library

    arm = load_robot(robot, gravity, lock, base, mimic, moving=True)
    layout = library.Layout() if options["layout"] is None else library.Layout.read(options["layout"])
    with status(f"reading {log}") as now:
        recording = _read(arm, log, layout, options)
        if options["link_positions"] is not None:
            links = _read(arm, log, reference_layout(layout, options["link_positions"]), options)
            if len(links) != len(recording):
                raise click.UsageError(
                    f"--link-positions: {len(links)} usable rows, the others have {len(recording)}"
                )
            joints = library.elastic_joints(arm, recording, links.q, cutoff=options["cutoff"])
        else:
            now("identifying a rigid model")
            rigid = library.identify(arm, recording, friction="coulomb", cutoff=options["cutoff"])
            joints = library.resonances(rigid.robot, rigid.validation)
    if isinstance(joints, list):
        _show_resonances(arm, joints, options)
    else:
        _show_springs(joints, options)


def _read(robot: Robot, source: str, layout: Layout, options) -> Log:
    from linkwise.identify import read_log

    drop = options["drop_bad_rows"]
    return read_log(source, robot, layout, rows=options["rows"], drop_bad_rows=drop, name=Path(source).name)


def _show_springs(found: Elasticity, options) -> None:
    if options["as_json"]:
        say_json({"robot": found.robot.name, "joints": [vars(joint) for joint in found.joints]})
        return
    rows = []
    for joint in found.joints:
        numbers = (
            joint.stiffness,
            joint.lower,
            joint.upper,
            joint.damping,
            joint.motor_inertia,
            joint.deflection,
        )
        rows.append([joint.name, *("" if math.isnan(x) else number(x) for x in numbers)])
    columns = ["joint", ">stiffness", ">from", ">to", ">damping", ">motor inertia", ">deflection"]
    notes = [
        "N·m/rad, N·m·s/rad, kg·m², rad (slides: N/m, N·s/m, kg, m); from, to: 95 % interval of the stiffness;",
        "deflection: root mean square of motor minus link",
    ]
    show(Table(f"Springs in the joints of {found.robot.name}", columns, rows, notes))
    for line in found.words():
        say(line)


def _show_resonances(robot: Robot, found: list[Resonance], options) -> None:
    if options["as_json"]:
        say_json({"robot": robot.name, "resonances": [vars(each) for each in found]})
        return
    for each in found:
        say(each.words())
    if not found:
        say("no narrow peak in what a rigid model leaves of the torques: no sign of an elastic joint")
