"""``linkwise payload``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.parts.recorded import read_layout, read_source
from linkwise.cli.support import headings
from linkwise.cli.support.options import (
    NOT_NEGATIVE,
    POSITIVE,
    Number,
    Numbers,
    OneOf,
    RowRange,
    json_option,
    load_robot,
    robot_argument,
)
from linkwise.cli.support.output import Table, number, say, say_json, show, status
from linkwise.cli.support.written import check_targets
from linkwise.identify.estimation.friction import MODELS
from linkwise.identify.estimation.lag import WIDE as LARGEST_LAG

if TYPE_CHECKING:
    from linkwise.identify import DriveGains, Layout, Log, Payload
    from linkwise.model.inertia import Inertia
    from linkwise.robot.robot import Robot

LEVEL = 0.95


_HEADINGS = {
    "Recordings": "layout rows loaded-rows more-unloaded more-loaded drop-bad-rows",
    "Model": "cutoff friction frame gain-deviation",
    "Gains of drives": "gains load-mass load-com load-inertia start",
}


@headings.command("payload", _HEADINGS)
@robot_argument
@click.argument("unloaded", metavar="UNLOADED")
@click.argument("loaded", metavar="LOADED")
@click.option(
    "--more-unloaded", multiple=True, metavar="LOG", help="A further recording without the load; repeatable."
)
@click.option("--more-loaded", multiple=True, metavar="LOG", help="A further recording with it; repeatable.")
@click.option("--layout", metavar="FILE.toml", help="What the columns of the recordings mean.")
@click.option(
    "--rows", type=RowRange(), metavar="FIRST-LAST", help="Use these rows of UNLOADED only, from 1."
)
@click.option("--loaded-rows", type=RowRange(), metavar="FIRST-LAST", help="The same for LOADED.")
@click.option(
    "--drop-bad-rows", is_flag=True, help="Leave out rows with missing numbers or stamps that go back."
)
@click.option("--cutoff", type=POSITIVE, metavar="HZ", help="Cut-off of the filters; default: from the data.")
@click.option(
    "--lag",
    type=Number(above=-LARGEST_LAG, below=LARGEST_LAG),
    metavar="SECONDS",
    help="Torques were recorded so much later than positions; default: estimated, and corrected if certain.",
)
@click.option(
    "--friction",
    type=OneOf(tuple(MODELS), "model"),
    default="coulomb",
    show_default=True,
    help=f"One of {', '.join(MODELS)}.",
)
@click.option("--frame", metavar="NAME", help="Frame that carries the load; default: the only leaf.")
@click.option(
    "--gains",
    is_flag=True,
    help="Find the gains of the drives from a load of known mass; LOGs have currents.",
)
@click.option("--load-mass", type=POSITIVE, metavar="KG", help="For --gains: the mass of the load.")
@click.option(
    "--load-com",
    type=Numbers(3),
    metavar="X,Y,Z",
    help="For --gains, where it is known: centre of mass in the frame [m].",
)
@click.option(
    "--load-inertia",
    type=Numbers(),
    metavar="XX,YY,ZZ",
    help="With --load-com: inertia about it [kg·m²], 3 numbers or XX,XY,XZ,YY,YZ,ZZ.",
)
@click.option("--start", type=POSITIVE, metavar="GAIN", help="For --gains: a rough gain to start from; 10.")
@click.option(
    "--gain-deviation",
    type=NOT_NEGATIVE,
    metavar="PERCENT",
    help="Standard deviation of the drive gains; default: 13, and 0 of torque sensors behind the gears.",
)
@click.option("--out", metavar="ROBOT2", help="Write the robot with the load: .urdf or .toml.")
@json_option
def command(robot, gravity, lock, base, mimic, unloaded, loaded, **options: Any) -> None:
    """Find the load that a robot carried, or the gains of its drives.

    UNLOADED and LOADED are recordings without and with the load, as of linkwise identify. Mass, centre of mass and
    inertia of the load come with confidence intervals. With --gains and a load of known mass, the recordings have motor
    currents, and torques per ampere are found instead: without a known mass gains cannot be told apart from masses.

    \b
    Example:
      linkwise payload ur10e.urdf empty.csv loaded.csv --layout ur.toml --frame tool0 --out ur10e_loaded.urdf
      linkwise payload ur10e.urdf empty.csv loaded.csv --layout ur.toml --frame tool0 --gains --load-mass 5.0
    """
    from linkwise import identify as library

    load = _known_load(options)
    check_targets(options["out"])
    if options["out"] and Path(options["out"]).suffix not in (".urdf", ".toml"):
        raise click.UsageError(f"--out: {options['out']}: a robot is saved as .urdf or .toml")
    arm = load_robot(robot, gravity, lock, base, mimic, moving=True)
    layout = read_layout(options["layout"])
    chosen = {key: options[key] for key in ("frame", "friction", "cutoff", "lag")}
    with status(f"reading {unloaded}") as now:
        empty = _read_all(arm, (unloaded, *options["more_unloaded"]), layout, options["rows"], options)
        full = _read_all(arm, (loaded, *options["more_loaded"]), layout, options["loaded_rows"], options)
        now("fitting")
        if load is not None:
            start = {} if options["start"] is None else {"start": options["start"]}
            estimate = library.drive_gains(arm, empty, full, load, **chosen, **start)
            _show_gains(arm, estimate, options)
            return
        if options["gain_deviation"] is not None:
            chosen["gain_deviation"] = 0.01 * options["gain_deviation"]
        carried = library.identify_payload(arm, empty, full, **chosen)
    _show_payload(arm, carried, options)


def _known_load(options: dict[str, Any]) -> Inertia | float | None:
    """The known load of --gains; None where the load itself is looked for."""
    from linkwise.identify.payload import UNKNOWN_MASS
    from linkwise.model.inertia import Inertia

    given = [name for name in ("load_mass", "load_com", "load_inertia", "start") if options[name] is not None]
    if not options["gains"]:
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} belongs to --gains")
        return None
    if options["out"]:
        raise click.UsageError("--out writes the robot with the load, which --gains does not look for")
    if options["load_mass"] is None:
        raise click.UsageError(f"{UNKNOWN_MASS} by --load-mass")
    if options["load_com"] is None:
        if options["load_inertia"] is not None:
            raise click.UsageError("--load-inertia belongs to --load-com")
        return options["load_mass"]
    inertia = options["load_inertia"]
    if inertia is None:
        raise click.UsageError("--load-com needs --load-inertia as well; leave both out to estimate them")
    if len(inertia) not in (3, 6):
        raise click.UsageError(f"--load-inertia: expected 3 or 6 numbers, got {len(inertia)}")
    return Inertia.from_com(options["load_mass"], options["load_com"], inertia)


def _read_all(robot: Robot, sources, layout: Layout, rows, options) -> list[Log]:
    """The recordings; ``rows`` are those of the first. For --gains they are used as they are: currents."""
    given = {"drop_bad_rows": options["drop_bad_rows"], "currents": options["gains"]}
    return [
        read_source(robot, source, layout, None if place else rows, **given)
        for place, source in enumerate(sources)
    ]


def _show_payload(robot: Robot, found: Payload, options) -> None:
    from linkwise.robot.loading import save

    if options["out"]:
        save(found.carried_by(robot), options["out"])
    rows = found.table(LEVEL)
    if options["as_json"]:
        facts = {"robot": robot.name, "frame": found.frame, "mass": found.mass, "com": found.com}
        facts |= {"inertia_about_com": found.inertia.matrix_about_com, "level": LEVEL}
        facts |= {"rows": [vars(row) for row in rows], "samples": found.estimate.samples}
        facts |= {"lags": [lag.summary() for lag in found.lags]}
        say_json(facts | {"written": {"robot": options["out"]} if options["out"] else {}})
        return
    cells = [
        [row.name, *(number(x) for x in (row.value, row.least_squares, row.lower, row.upper)), row.unit]
        for row in rows
    ]
    columns = ["", ">value", ">least squares", ">from", ">to", "unit"]
    notes = [
        "value: the possible body nearest to the data; from, to: 95 % interval around it, as noise, gains and its "
        "distance to least squares have it",
        f"in the axes of {found.frame}; drive gains are taken as known to {100 * found.gain_deviation:.3g} % "
        "(--gain-deviation), which is in the intervals",
        *_lags(found),
    ]
    show(Table(f"What {robot.name} carried", columns, cells, notes))
    if options["out"]:
        say(f"robot with this load written to {options['out']}")


def _show_gains(robot: Robot, found: DriveGains, options) -> None:
    lower, upper = found.interval(LEVEL)
    load = {} if found.load is None else dict(zip(found.load.labels, found.load.x.tolist(), strict=True))
    if options["as_json"]:
        facts = {"robot": robot.name, "joints": list(robot.joint_names), "gains": found.gains}
        facts |= {"lower": lower, "upper": upper, "level": LEVEL, "load": load}
        facts |= {"iterations": found.iterations, "lags": [lag.summary() for lag in found.lags]}
        say_json(facts)
        return
    rows = [
        [name, *(number(float(x)) for x in numbers)]
        for name, *numbers in zip(robot.joint_names, found.gains, lower, upper, strict=True)
    ]
    notes = ["torque per unit of the recorded current, N·m/A or N/A; from, to: 95 % interval"]
    notes.append(f"for a layout: [drive] gains = [{', '.join(f'{gain:.5g}' for gain in found.gains)}]")
    notes += _lags(found)
    show(Table(f"Drive gains of {robot.name}", ["joint", ">gain", ">from", ">to"], rows, notes))


def _lags(found: Payload | DriveGains) -> list[str]:
    """What was found about the lags of both kinds of recordings."""
    pairs = zip(("without", "with"), found.lags, strict=True)
    return [f"{which} the load: {lag.note}" for which, lag in pairs if lag.note]
