"""``linkwise excite``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import numpy as np

from linkwise.cli.options import (
    POSITIVE,
    SEED,
    Number,
    Numbers,
    OneOf,
    WholeNumber,
    figures_option,
    json_option,
    load_robot,
    report_option,
    robot_argument,
)
from linkwise.cli.output import Table, number, progress, say, say_json, show
from linkwise.cli.written import check_targets, write_table
from linkwise.tables import bounds, numbered

if TYPE_CHECKING:
    from linkwise.identify import Excited, MotionLimits
    from linkwise.robot import Robot

# written out, so that completion and --help stay quick
FAMILIES = ("fourier", "spline")
CRITERIA = ("condition", "log_det")


@click.command("excite")
@robot_argument
@click.option("--duration", type=POSITIVE, default=10.0, show_default=True, help="Of one period [s].")
@click.option(
    "--family",
    type=OneOf(FAMILIES, "name"),
    default="fourier",
    show_default=True,
    help="fourier (periodic) or spline.",
)
@click.option(
    "--order",
    type=WholeNumber(2, 100),
    default=5,
    show_default=True,
    help="Harmonics, or via points less four.",
)
@click.option(
    "--criterion",
    type=OneOf(CRITERIA, "name"),
    default="condition",
    show_default=True,
    help="What is made small: the condition number, or the volume of the uncertainty (log_det).",
)
@click.option(
    "--share",
    type=Number(above=0, most=1),
    default=0.8,
    show_default=True,
    help="Of the robot's speeds, accelerations and torques that may be used.",
)
@click.option(
    "--acceleration",
    type=Numbers(each=POSITIVE),
    metavar="A|A1,A2,…",
    help="Limits of acceleration [rad/s² or m/s²].",
)
@click.option(
    "--box",
    type=Numbers(6),
    metavar="X,Y,Z,X,Y,Z",
    help="Lower and upper corner of the space that moving links must not leave [m], base frame.",
)
@click.option(
    "--friction",
    default="coulomb",
    show_default=True,
    metavar="MODEL",
    help="The friction that is to be identified as well: none, viscous, coulomb, rich, …",
)
@click.option(
    "--starts",
    type=WholeNumber(1, 10**6),
    default=3,
    show_default=True,
    help="Random motions that are improved.",
)
@click.option(
    "--iterations",
    type=WholeNumber(1, 10**6),
    default=150,
    show_default=True,
    help="Steps of improving each.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="The same seed gives the same motion.")
@click.option(
    "--rate", type=POSITIVE, default=1000.0, show_default=True, help="Rows per second of the table."
)
@click.option("--periods", type=POSITIVE, default=1.0, show_default=True, help="Periods in the table.")
@click.option("--out", metavar="FILE.csv", help="Write the motion: t, q, qd, qdd; - is standard output.")
@report_option
@figures_option
@json_option
def command(
    robot,
    gravity,
    lock,
    base,
    mimic,
    box,
    acceleration,
    rate,
    periods,
    out,
    report,
    figures,
    as_json,
    **options,
):
    """Find a motion that shows every base parameter of a robot, within its limits.

    Run it on the robot, record positions and torques, and give the recording to linkwise identify. The motion begins
    and ends at rest, keeps limits of position, speed, acceleration and torque at 2000 points of a period, and makes the
    condition number of the equations small.

    \b
    Example:
      linkwise excite panda --out motion.csv --report motion.html
      linkwise excite arm.urdf --duration 20 --order 8 --share 0.5 --acceleration 5 --box -1,-1,0.1,1,1,1.5
    """
    from linkwise.identify import Box, MotionLimits, excite

    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    check_targets(out, report)
    rows = options["duration"] * rate * periods + 1
    if out is not None:
        bounds.check(f"--rate and --periods: {rows:.6g} rows", rows * (1 + 3 * loaded.dof))
    limits = MotionLimits.of(loaded, _accelerations(loaded, acceleration), options.pop("share"))
    space = None if box is None else Box(box[:3], box[3:])
    with progress("starts", options["starts"]) as advance:
        found = excite(
            loaded, limits=limits, workspace=space, progress=lambda words, value: advance(), **options
        )
    if out is not None:
        samples = found.sampled(rate, periods)
        table = {"t": samples.t} | numbered("q", samples.q)
        write_table(out, table | numbered("qd", samples.qd) | numbered("qdd", samples.qdd))
    if report is not None or figures is not None:
        _report(found, limits, report, figures)
    written = {"motion": out, "report": report, "figures": figures}
    if as_json:
        say_json(_facts(found, limits) | {"written": {k: v for k, v in written.items() if v is not None}})
    else:
        _show(found, limits)
        for what, path in written.items():
            if path is not None:
                say(f"{what} written to {path}")
        if out is None:
            say("the motion was not written: give --out FILE.csv")


def _accelerations(robot: Robot, given: tuple[float, ...] | None):
    """One number for all joints, or one per joint."""
    if given is None:
        return None
    if len(given) not in (1, robot.dof):
        raise click.UsageError(f"--acceleration: expected 1 or {robot.dof} numbers, got {len(given)}")
    return given[0] if len(given) == 1 else given


def _used(found: Excited, limits: MotionLimits) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(quantity, largest values (n,), limits (n,)): what the motion takes of what it may."""
    s = found.samples
    return [
        ("speed", np.abs(s.qd).max(axis=0), limits.velocity),
        ("acceleration", np.abs(s.qdd).max(axis=0), limits.acceleration),
        ("torque", found.torque, limits.torque),
    ]


def _show(found: Excited, limits: MotionLimits) -> None:
    s, used = found.samples, _used(found, limits)
    rows = []
    for k, joint in enumerate(found.robot.coordinate_joints):
        ranges = [
            f"{number(a, 3)} … {number(b, 3)}"
            for a, b in ((s.q[:, k].min(), s.q[:, k].max()), (limits.lower[k], limits.upper[k]))
        ]
        rows.append([joint.name, *ranges, *(f"{number(v[k], 3)} of {number(m[k], 3)}" for _, v, m in used)])
    names = ["joint", ">from … to", ">limits", ">speed", ">acceleration", ">torque"]
    notes = ["largest value of what is allowed; rad, rad/s, rad/s², N·m (m and N where a joint slides)"]
    length = float(s.t[-1] - s.t[0])
    show(
        Table(f"An exciting motion of {found.robot.name}, {length:g} s, all limits kept", names, rows, notes)
    )
    say(
        f"condition number {found.condition:.4g} of {len(found.labels)} base parameters "
        f"({found.condition_random:.4g} for random motions within the same limits)"
    )
    say(f"{found.evaluations} evaluations in {found.seconds:.1f} s")


def _facts(found: Excited, limits: MotionLimits) -> dict:
    return {
        "robot": found.robot.name,
        "joints": found.robot.joint_names,
        "criterion": found.criterion,
        "condition": found.condition,
        "condition_random": found.condition_random,
        "log_det": found.log_det,
        "log_det_random": found.log_det_random,
        "base_parameters": list(found.labels),
        "duration": found.duration,
        "lowest": found.samples.q.min(axis=0),
        "highest": found.samples.q.max(axis=0),
        "lower_limit": limits.lower,
        "upper_limit": limits.upper,
    } | {name: {"largest": values, "limit": allowed} for name, values, allowed in _used(found, limits)}


def _report(found: Excited, limits: MotionLimits, path: str | None, figures: str | None) -> None:
    from linkwise.report.excitation import excitation_report

    page = excitation_report(found, limits)
    if path is not None:
        page.write(path)
    if figures is not None:
        page.write_figures(figures)
