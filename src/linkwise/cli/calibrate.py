"""``linkwise calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import Number, Numbers, json_option, load_robot, robot_argument
from linkwise.cli.support.output import Table, number, say, say_json, show, status
from linkwise.cli.support.written import check_targets

if TYPE_CHECKING:
    from linkwise.identify import Calibration


_HEADINGS = {
    "Measurements": "frame positions-only hold-out validate",
    "Model": "parameters tool",
}


@headings.command("calibrate", _HEADINGS)
@robot_argument
@click.argument("measurements", metavar="MEASUREMENTS")
@click.option("--frame", metavar="NAME", help="Frame whose pose was measured; default: the only leaf.")
@click.option(
    "--parameters",
    default="base,tool,offsets,origins",
    show_default=True,
    metavar="GROUPS",
    help="What is looked for: base (robot in the frame of the device), tool (target in the frame), offsets (zeros of "
    "joints), origins (shifts and turns of joint origins).",
)
@click.option(
    "--tool", type=Numbers(3), metavar="X,Y,Z", help="Rough position of the target in the frame [m]."
)
@click.option("--positions-only", is_flag=True, help="Do not use measured orientations.")
@click.option(
    "--hold-out",
    type=Number(least=0, below=1),
    default=0.25,
    show_default=True,
    metavar="SHARE",
    help="Share of the measurements that is only judged.",
)
@click.option("--validate", metavar="MEASUREMENTS", help="Judge on these measurements instead.")
@click.option("--out", metavar="ROBOT2", help="Write the calibrated robot: .urdf or .toml.")
@json_option
def command(robot, gravity, lock, base, mimic, measurements, **options: Any) -> None:
    """Calibrate the geometry of a robot from measured poses of its tool.

    MEASUREMENTS is a table (CSV, NPZ, Parquet) with a row for each pose: joint positions q1 … qn as the controller
    shows them, measured x, y, z and, where they were measured, qx qy qz qw, rx ry rz or roll pitch yaw. Parameters
    that cannot be told apart are left out and named; accuracy is judged on measurements that were held out.

    \b
    Example:
      linkwise calibrate ur10e.urdf tracker.csv --frame tool0 --tool 0,0,0.1 --out ur10e_calibrated.urdf
    """
    from linkwise import identify as library
    from linkwise.identify.recordings.pose_tables import read_poses

    check_targets(options["out"])
    if options["out"] and Path(options["out"]).suffix not in (".urdf", ".toml"):
        raise click.UsageError(f"--out: {options['out']}: a robot is saved as .urdf or .toml")
    arm = load_robot(robot, gravity, lock, base, mimic, moving=True)
    with status(f"reading {measurements}") as now:
        q, poses = _read(read_poses, measurements, arm, options)
        validation = options["hold_out"]
        if options["validate"]:
            refuse_given(("hold_out",), "does not go with --validate")
            validation = _read(read_poses, options["validate"], arm, options)
        now("calibrating")
        groups = [part.strip() for part in options["parameters"].split(",") if part.strip()]
        calibration = library.calibrate(
            arm,
            q,
            poses,
            frame=options["frame"],
            parameters=groups,
            tool=options["tool"],
            validation=validation,
        )
        if options["out"]:
            calibration.save(options["out"])
    _show(calibration, options)


def _read(read_poses, path: str, robot, options):
    q, poses = read_poses(path, robot)
    return q, poses[:, :3, 3] if options["positions_only"] and poses.ndim == 3 else poses


def _show(found: Calibration, options) -> None:
    lower, upper = found.estimate.interval()
    rows = list(
        zip(
            found.estimate.labels,
            found.estimate.x,
            found.estimate.deviations,
            lower,
            upper,
            found.units,
            strict=True,
        )
    )
    if options["as_json"]:
        names = ("label", "value", "deviation", "lower", "upper", "unit")
        judged = {
            name: {"distance": errors.distance, "angle": errors.angle}
            for name, errors in (("before", found.before), ("after", found.after), ("fitted", found.fitted))
        }
        say_json(
            {
                "robot": found.given.name,
                "frame": found.frame,
                "parameters": [dict(zip(names, row, strict=True)) for row in rows],
                "left_out": list(found.left_out),
                "base": found.base,
                "tool": found.tool,
                "held_out": found.held_out,
                **judged,
                "outliers": [k + 1 for k in found.outliers],
                "condition": found.estimate.condition,
                "written": {"robot": options["out"]} if options["out"] else {},
            }
        )
        return
    cells = [[label, *(number(float(x)) for x in numbers), unit] for label, *numbers, unit in rows]
    columns = ["parameter", ">value", ">deviation", ">from", ">to", "unit"]
    notes = ["errors in the axes of the link that the joint moves; from, to: 95 % interval"]
    show(Table(f"Calibration of {found.given.name} at {found.frame}", columns, cells, notes))
    for line in found.words():
        say(line)
    if options["out"]:
        say(f"robot written to {options['out']}")
