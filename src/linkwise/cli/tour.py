"""``linkwise tour``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support import headings, written
from linkwise.cli.support.options import command_line, json_option, load_robot, robot_argument
from linkwise.cli.support.output import Table, number, progress, say, say_json, show
from linkwise.core.foreign import file_name, line

if TYPE_CHECKING:
    from linkwise.tour import Agreed, Capability, Code, FastMotion, Tour


@headings.command("tour", {"Output": "out no-open json"})
@robot_argument
@click.option(
    "--frame", metavar="NAME", help="The link that carries the load.  [default: end of the longest chain]"
)
@click.option("--out", type=headings.PAGE, metavar="FILE.html", help="The report.  [default: NAME-tour.html]")
@click.option("--no-open", is_flag=True, help="Do not open the report in the browser.")
@json_option
def command(robot: str, gravity, lock, base, mimic, frame, out, no_open, as_json) -> None:
    """Take a first look at a robot: what is odd about its file, what it can hold where, a fast motion, agreement with
    the engines that are installed and speed beside them, size of its C code. Writes one page and opens it.

    A part that cannot be computed for this robot says why, and the others go on.

    \b
    Example:
      linkwise tour panda
      linkwise tour arm.urdf --out arm.html --no-open
      linkwise tour quadruped.urdf --base floating --json
    """
    from linkwise.tour import PARTS, look_at, tour_report

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_robot(robot, gravity, lock, base, mimic)
    if frame is not None:
        loaded.locate(frame)  # an unknown name is refused before the work
    target = out or f"{file_name(loaded.name, 'robot')}-tour.html"
    written.check_targets(target)
    unchanged = Path(robot) if gravity is None and not lock else None
    with progress(loaded.name, len(PARTS)) as advance:
        tour = look_at(
            loaded,
            robot,
            warned=[str(warning.message) for warning in caught],
            unchanged=unchanged,
            base=base,
            frame=frame,
            advance=advance,
        )
    report = tour_report(tour, " ".join(["linkwise", *command_line()]))
    written.write(target, report.html())
    if as_json:
        say_json(_facts(tour) | {"report": target})
    else:
        _show(tour)
        say(f"report written to {target}")
    if target != "-" and not no_open and not as_json:
        headings.open_in_browser(Path(target).resolve().as_uri())


def _show(tour: Tour) -> None:
    robot = tour.robot
    mass = sum(link.inertia.mass for link in robot.links)
    say(f"{line(robot.name)}: {len(robot.moving_joints)} moving joints, {number(mass)} kg")
    say()
    say("What is odd about it" if tour.odd else "Nothing is odd about it")
    for text in tour.odd:
        say(f"  - {text}")
    say()
    _show_payload(tour.capability)
    _show_motion(tour.motion)
    _show_agreement(tour.agreed)
    _show_code(tour.code)


def _show_payload(found: Capability | str) -> None:
    if isinstance(found, str):
        say(f"Payload: not computed: {found}")
    elif not found.payload.size:
        say("Payload: cannot be computed, no joint that feels a load has an effort limit in the file")
    else:
        least, most = found.payload.min(), found.holds(0.5)
        say(
            f"Payload at {found.frame}, at rest: every position holds {number(least, 3)} kg, half of them "
            f"{number(most, 3)} kg, the outer 5 % of the workspace {number(found.stretched(), 3)} kg"
        )
        if found.doubtful:
            from linkwise.tour.capability import DOUBTFUL_PAYLOAD

            say(f"  {DOUBTFUL_PAYLOAD}")


def _show_motion(found: FastMotion | str) -> None:
    if isinstance(found, str):
        say(f"Fast motion: not computed: {found}")
    else:
        near = f"; the {found.bounded_by} is nearest to its limit" if found.bounded_by else ""
        say(f"Fast motion: {found.duration:.3g} s, {found.how}{near}")


def _show_agreement(found: Agreed | str) -> None:
    if isinstance(found, str):
        say(f"Agreement and speed: not computed: {found}")
        say()
        return
    if found.wrong:
        why = found.reason or "see the report"
        say(f"Agreement: {len(found.wrong)} of {len(found.findings)} comparisons disagree: {why}")
    else:
        engines = (
            f", with {' and '.join(found.engines)}" if found.engines else "; no other engine is installed"
        )
        say(f"Agreement: {found.agreeing} comparisons agree to {found.worst:.0e}{engines}")
    say()
    rows = [
        [
            t.group.function,
            str(t.group.states),
            f"{t.who} {t.version}",
            f"{t.nanoseconds:,.0f}".replace(",", " "),
        ]
        for t in found.timings
        if t.nanoseconds is not None
    ]
    if rows:
        note = ["other programs were running: the figures are rough"] if found.busy else []
        show(Table("Speed, one core", ["function", ">states", "library", ">ns per state"], rows, note))


def _show_code(found: list[Code] | str) -> None:
    if isinstance(found, str):
        say(f"C code: not computed: {found}")
        return
    rows = [
        [
            each.function,
            f"{each.multiplications} / {each.additions}",
            str(each.lines),
            f"{each.bytes / 1024:.1f}",
            "" if each.machine is None else f"{each.machine / 1024:.1f}",
        ]
        for each in found
    ]
    columns = ["function", ">× / +", ">lines", ">source [KiB]", ">compiled [KiB]"]
    show(Table("C code", columns, rows))


def _facts(tour: Tour) -> dict[str, Any]:
    robot = tour.robot
    facts: dict[str, Any] = {
        "robot": robot.name,
        "joints": robot.joint_names,
        "dof": robot.dof,
        "mass": sum(link.inertia.mass for link in robot.links),
        "odd": tour.odd,
    }
    return facts | {
        "payload": _payload_facts(tour.capability),
        "motion": _motion_facts(tour.motion),
        "agreement": _agreement_facts(tour.agreed),
        "code": _refused(tour.code) if isinstance(tour.code, str) else [vars(each) for each in tour.code],
    }


def _payload_facts(found: Capability | str) -> dict[str, Any]:
    if isinstance(found, str):
        return _refused(found)
    known = bool(found.payload.size)
    return {
        "frame": found.frame,
        "held": found.held,
        "largest_holding_torque": found.gravity,
        "limits": found.limits,
        "everywhere": found.payload.min() if known else None,
        "outer_five_percent": found.stretched() if known else None,
        "half_of_positions": found.holds(0.5) if known else None,
    }


def _motion_facts(found: FastMotion | str) -> dict[str, Any]:
    if isinstance(found, str):
        return _refused(found)
    return {"duration": found.duration, "how": found.how, "bounded_by": found.bounded_by or None}


def _agreement_facts(found: Agreed | str) -> dict[str, Any]:
    if isinstance(found, str):
        return _refused(found)
    return {
        "engines": found.engines,
        "absent": found.absent,
        "agree": found.agreeing,
        "disagree": len(found.wrong),
        "worst": found.worst,
        "timings": [
            {
                "function": t.group.function,
                "states": t.group.states,
                "library": t.who,
                "version": t.version,
                "nanoseconds_per_state": t.nanoseconds,
            }
            for t in found.timings
        ],
    }


def _refused(reason: str) -> dict[str, Any]:
    return {"refused": reason}
