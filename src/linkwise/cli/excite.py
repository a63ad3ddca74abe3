"""``linkwise excite``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import numpy as np

from linkwise.cli.parts.standing import STANDING, check_stance, excite_on_feet, held_base, stance_options
from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import (
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
from linkwise.cli.support.output import Table, fraction_done, number, say, say_json, show
from linkwise.cli.support.pages import announce, until_interrupted
from linkwise.cli.support.room_options import room_of, room_options
from linkwise.cli.support.written import check_targets, write_table
from linkwise.errors import needed
from linkwise.files.tables import bounds, numbered

if TYPE_CHECKING:
    from linkwise.identify import Excited, MotionLimits
    from linkwise.robot.robot import Robot

# written out, so that completion and --help stay quick
FAMILIES = ("fourier", "spline")
CRITERIA = ("condition", "log_det")
PLAYED_RATE = 100.0  # [Hz] samples of the motion on the 3-D page


_HEADINGS = {
    "Motion": "duration family order share acceleration rate periods",
    "Floating base": "stance feet stand",
    "Search": "criterion friction starts iterations seed",
    "Surroundings": "floor box forbid clearance links-may-touch tool tool-frame radius meshes",
    "Output": "out report figures open view json",
}


@headings.command("excite", _HEADINGS)
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
    default=300,
    show_default=True,
    help="Steps of improving each, at most.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="The same seed gives the same motion.")
@click.option(
    "--rate", type=POSITIVE, default=1000.0, show_default=True, help="Rows per second of the table."
)
@click.option("--periods", type=POSITIVE, default=1.0, show_default=True, help="Periods in the table.")
@click.option(
    "--out",
    type=headings.TABLE,
    metavar="FILE.csv",
    help="Write the motion: t, q, qd, qdd; - is standard output.",
)
@stance_options
@room_options
@report_option
@figures_option
@click.option(
    "--view", is_flag=True, help="Play the motion in the browser, with floor and boxes, until Ctrl+C."
)
@json_option
def command(
    robot,
    gravity,
    lock,
    base,
    mimic,
    acceleration,
    rate,
    periods,
    out,
    report,
    figures,
    view,
    as_json,
    stance,
    **options,
):
    """Find a motion that shows every base parameter of a robot, within its limits.

    Run it on the robot, record positions and torques, and give the recording to linkwise identify. The motion begins
    and ends at rest, keeps limits of position, speed, acceleration and torque at 2000 points of a period or more, and
    makes the condition number of the equations small. It keeps a clearance to the floor, to boxes and between links
    that are not neighbours, at all times. Look at it before you run it: --report has views of the space that it needs,
    --view plays it.

    A robot with a floating base (--base floating) stands: its base and free limbs move, its feet stay where they are
    and only push, within the friction of the ground. With --stance hanging the base is held and the legs move.

    \b
    Example:
      linkwise excite panda --out motion.csv --report motion.html
      linkwise excite arm.urdf --share 0.5 --acceleration 5 --box -1,-1,0.1,1,1,1.5 --forbid 0.4,-1,0,1,1,0.3
      linkwise excite go2.urdf --base floating --stance standing --out sway.csv
      linkwise excite arm.urdf --floor -0.7 --tool 0.05,0.2 --meshes ../arm_meshes --view
    """
    from linkwise.identify import MotionLimits, excite
    from linkwise.identify.walking.log import is_floating

    if view:
        needed("viser", "view")
    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    check_targets(out, report)
    stance = check_stance(is_floating(loaded), stance)
    if stance == "standing":
        excite_on_feet(loaded, out, rate, as_json, options)
        return
    loaded = held_base(loaded, options) if stance == "hanging" else loaded
    options = {key: value for key, value in options.items() if key not in STANDING}
    rows = options["duration"] * rate * periods + 1
    if out is None:
        refuse_given(("rate", "periods"), "is for the table of --out")
    else:
        bounds.check(f"--rate and --periods: {rows:.6g} rows", rows * (1 + 3 * loaded.dof))
    limits = MotionLimits.of(loaded, _accelerations(loaded, acceleration), options.pop("share"))
    room = room_of(options)
    with fraction_done("preparing") as advance:
        excitation = excite(loaded, limits=limits, room=room, progress=advance, **options)
    if out is not None:
        samples = excitation.sampled(rate, periods)
        table = {"t": samples.t} | numbered("q", samples.q)
        write_table(out, table | numbered("qd", samples.qd) | numbered("qdd", samples.qdd))
    if report is not None or figures is not None:
        _report(excitation, limits, report, figures)
    written = {"motion": out, "report": report, "figures": figures}
    if as_json:
        say_json(
            _facts(excitation, limits) | {"written": {k: v for k, v in written.items() if v is not None}}
        )
    else:
        _show(excitation, limits)
        for what, path in written.items():
            if path is not None:
                say(f"{what} written to {path}")
        if out is None:
            say("the motion was not written: give --out FILE.csv")
    if view:
        _play(excitation, as_json)


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
    _show_distances(found)
    say(
        f"condition number {found.condition:.4g} of {len(found.labels)} base parameters "
        f"({found.condition_random:.4g} for random motions within the same limits)"
    )
    ended = "at an optimum" if found.converged else "at the limit of iterations (--iterations)"
    say(f"{found.evaluations} evaluations in {found.seconds:.1f} s; the search ended {ended}")


def _show_distances(found: Excited) -> None:
    """What comes nearest to what, and what stood for the links."""
    clearance = found.clearance
    if clearance is None:
        say("distances were not checked: nothing is compared")
        return
    kinds = {
        kind: (contact, found.samples.t[row])
        for kind, (contact, row) in clearance.by_kind(found.samples.q).items()
    }
    for kind, (contact, when) in kinds.items():
        say(
            f"{kind}: {contact.first} and {contact.second} {100 * contact.distance:.1f} cm apart at {when:.2f} s"
        )
    say(f"at all times, also between the points of the grid, at least {100 * found.proved:.1f} cm")
    for note in clearance.shapes.notes:
        say(note)
    if "floor" not in kinds and clearance.room.floor is not None:
        say("floor: not checked, because gravity is zero or no link can reach it")
    if clearance.skipped:
        say(f"not compared, because they touch by construction: {'; '.join(clearance.skipped)}")


def _distances(found: Excited) -> dict:
    """The same for JSON."""
    clearance = found.clearance
    if clearance is None:
        return {"distances": None}
    return {
        "distances": {
            kind: {
                "between": [contact.first, contact.second],
                "least": contact.distance,
                "time": found.samples.t[row],
                "where": contact.where,
            }
            for kind, (contact, row) in clearance.by_kind(found.samples.q).items()
        },
        "clearance": {"wanted": clearance.room.clearance, "proved": found.proved},
        "shapes": {"notes": clearance.shapes.notes, "not_compared": clearance.skipped},
    }


def _play(found: Excited, as_json: bool) -> None:
    """The motion on the 3-D page, until Ctrl+C."""
    from linkwise.motion import through_samples
    from linkwise.view import serve

    room = None if found.clearance is None else found.clearance.room
    folders = () if room is None else room.meshes
    played = through_samples(found.sampled(PLAYED_RATE))
    page = serve(found.robot, meshes=folders, motion=played, clearance=found.clearance)
    page.play()
    with until_interrupted(page, as_json):
        if as_json:  # standard output has one JSON document
            click.echo(page.url, err=True)
        else:
            announce(page, page.port, as_json)


def _facts(found: Excited, limits: MotionLimits) -> dict:
    return {
        "robot": found.robot.name,
        "joints": found.robot.joint_names,
        "criterion": found.criterion,
        "condition": found.condition,
        "condition_random": found.condition_random,
        "converged": found.converged,
        "log_det": found.log_det,
        "log_det_random": found.log_det_random,
        "base_parameters": list(found.labels),
        "duration": found.duration,
        "lowest": found.samples.q.min(axis=0),
        "highest": found.samples.q.max(axis=0),
        "lower_limit": limits.lower,
        "upper_limit": limits.upper,
        **_distances(found),
    } | {name: {"largest": values, "limit": allowed} for name, values, allowed in _used(found, limits)}


def _report(found: Excited, limits: MotionLimits, path: str | None, figures: str | None) -> None:
    from linkwise.report.excitation import excitation_report

    page = excitation_report(found, limits)
    if path is not None:
        page.write(path)
    if figures is not None:
        page.write_figures(figures)
