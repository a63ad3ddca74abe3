"""The report of a tour: one HTML page."""

from __future__ import annotations

import platform
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise.bench.comparison import Timing
from linkwise.errors import LinkwiseError
from linkwise.geometry.posture import first_position
from linkwise.report import (
    Bar,
    Figure,
    HtmlTable,
    Raw,
    Report,
    Section,
    Text,
    Warned,
    cell_map,
    sections,
)
from linkwise.report.page import Commands, Fold, Framed
from linkwise.report.svg import short
from linkwise.tour.agreed import BATCH, STATES, TIMED, Agreed
from linkwise.tour.capability import DOUBTFUL_PAYLOAD, Capability
from linkwise.tour.code import Code
from linkwise.tour.look import Tour
from linkwise.tour.motions import FastMotion
from linkwise.view.offline.page import page_file


def tour_report(tour: Tour, command: str = "") -> Report:
    """The page of a tour; ``write`` saves it.

    Args:
        tour: what was found.
        command: the command that was typed, for the last section.
    """
    robot = tour.robot
    mass = sum(link.inertia.mass for link in robot.links)
    report = Report(
        f"A first look at {robot.name}",
        f"{len(robot.moving_joints)} moving joints, {robot.dof} degrees of freedom, {short(mass)} kg",
    )
    report.add(_robot(tour))
    report.add(_odd(tour.odd))
    report.add(_payload(tour.capability))
    for section in _motion(tour.motion):
        report.add(section)
    report.add(_agreement(tour.agreed))
    report.add(_speed(tour.agreed))
    report.add(_code(tour.code))
    report.add(_next(tour))
    report.add(_made(command))
    return report


def _robot(tour: Tour) -> Section:
    model = tour.robot
    position = first_position(model)
    shown = sections.robot(model, position, caption="drawn from its kinematics, at one of many positions")
    return Section(f"What is in {Path(tour.source).name}", [*_movable(tour), *shown.parts])


def _movable(tour: Tour) -> list[Framed | Text]:
    """The 3-D view of page files, with the meshes that are found and the fast motion to play."""
    robot, found = tour.robot, tour.motion
    plays = not isinstance(found, str) and found.robot.joint_names == robot.joint_names
    motion = found.trajectory if not isinstance(found, str) and plays else None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            page = page_file(robot, motion=motion)
    except LinkwiseError as error:
        return [Text(f"No movable view: {_sentence(str(error))}")]
    return [Framed(f"{robot.name}, to move", page), *(Text(_sentence(str(each.message))) for each in caught)]


def _odd(odd: Sequence[str]) -> Section:
    if not odd:
        return Section("What is odd about it", [Text("Nothing was found.")])
    return Section("What is odd about it", [Warned(_sentence(text)) for text in odd])


def _payload(found: Capability | str) -> Section:
    title = "What it can hold, and where"
    if isinstance(found, str):
        return Section(title, [Text(_not_computed(found))])
    rows = [
        [
            name,
            short(float(most), 3),
            short(float(limit), 3),
            f"{most / limit:.0%}" if 0 < limit < np.inf else "",
        ]
        for name, most, limit in zip(found.names, found.gravity, found.limits, strict=True)
    ]
    notes = [
        f"largest torque or force over {len(found.radius)} random positions within the limits, at rest, without load"
    ]
    if found.held:
        notes.append(f"held still: {', '.join(found.held)}")
    table = HtmlTable(["joint", ">to hold itself [N·m or N]", ">limit", ">share"], rows, notes)
    if not found.payload.size:
        words = "No joint that feels a load has an effort limit in the file, so a payload cannot be computed."
        return Section(title, [Text(words), table])
    x, y, least = found.map()
    drawn = cell_map(x, y, least, x_label="distance from the base axis [m]", y_label="height [m]", unit="kg")
    caption = f"Load at {found.frame} [kg] that every position found in a cell holds; orange: none."
    picture = Figure(
        "payload",
        drawn,
        caption,
    )
    weakest = found.names[int(found.limiting[np.argmin(found.payload)])]
    doubt = [Warned(DOUBTFUL_PAYLOAD)] if found.doubtful else []
    facts = HtmlTable(
        ["", ">payload [kg]"],
        [
            [f"every position (limited by {weakest})", short(float(found.payload.min()), 3)],
            ["the outer 5 % of the workspace", short(found.stretched(), 3)],
            ["99 % of all positions", short(found.holds(0.99), 3)],
            ["half of all positions", short(found.holds(0.5), 3)],
        ],
        ["at rest, by effort limits alone: a maker's payload also covers accelerations, bearings and safety"],
    )
    return Section(
        title, [*doubt, sections._Pair(picture, facts), Fold("Torques that hold the robot", [table])]
    )


def _motion(found: FastMotion | str) -> list[Section]:
    title = "A fast motion"
    if isinstance(found, str):
        return [Section(title, [Text(_not_computed(found))])]
    words = f"{found.duration:.3g} s from rest to rest: {found.how}."
    if found.bounded_by:
        words += f" The {found.bounded_by} is nearest to its limit."
    torques = sections.torques(found.robot, found.t, found.tau)
    moves = sections.motion(found.robot, found.t, found.q, found.qd)
    return [
        Section(title, [Text(words), *torques.parts, Fold("Positions and velocities", list(moves.parts))])
    ]


def _agreement(found: Agreed | str) -> Section:
    title = "Do other engines agree?"
    if isinstance(found, str):
        return Section(title, [Text(_not_computed(found))])
    parts: list = []
    if found.wrong:
        why = f" {found.reason}." if found.reason else ""
        parts.append(Warned(f"{len(found.wrong)} of {len(found.findings)} comparisons disagree.{why}"))
    else:
        engines = f" with {' and '.join(found.engines)}" if found.engines else ""
        parts.append(
            Text(
                f"{found.agreeing} comparisons agree{engines}, at {STATES} random states; "
                f"the largest relative difference is {short(found.worst, 2)}."
            )
        )
    rows = [
        [f.function, f.who, "" if f.difference is None else short(f.difference, 2), f.verdict, f.refusal]
        for f in found.findings
    ]
    columns = ["function", "by", ">difference", "verdict", "reason"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    notes = [f"{name}: {reason}" for name, reason in found.absent.items()]
    parts.append(Fold("All comparisons", [HtmlTable(columns, rows, notes)]))
    return Section(title, parts)


def _speed(found: Agreed | str) -> Section:
    title = "How fast it computes"
    if isinstance(found, str):
        return Section(title, [Text(_not_computed(found))])
    parts: list = []
    for states, words in ((1, "one state, called from Python"), (BATCH, f"{BATCH} states in one call")):
        timed = [t for t in found.timings if t.group.states == states and t.nanoseconds]
        if timed:
            parts += [Raw(f"<h3>{words}</h3>"), *_bars(timed, states)]
    notes = [
        "Nanoseconds per state, float64, one core, without friction and rotors; every result was checked first."
    ]
    if found.busy:
        notes.append("Other programs were running on this machine: the figures are rough.")
    if len({t.who for t in found.timings}) == 1:
        notes.append('No other engine is installed; "pip install pin mujoco" adds two to compare with.')
    return Section(title, [*parts, *map(Text, notes)])


def _bars(timed: Sequence[Timing], states: int) -> list[Figure | Text]:
    libraries = list(dict.fromkeys(t.who for t in timed))
    bars = [
        Bar(
            f"{t.group.function}, {t.who} {t.version}",
            t.nanoseconds or 0.0,
            libraries.index(t.who),
            _time(t.nanoseconds),
        )
        for function in TIMED
        for t in timed
        if t.group.function == function
    ]
    return [sections.bar_figure(f"speed_{states}", bars)]


def _time(nanoseconds: float | None) -> str:
    value = nanoseconds or 0.0
    if value >= 1e4:
        return f"{value / 1000:.3g} µs"
    return f"{value:.0f} ns" if value >= 100 else f"{value:.3g} ns"


def _code(found: list[Code] | str) -> Section:
    title = "Its C code"
    if isinstance(found, str):
        return Section(title, [Text(_not_computed(found))])
    compiled = any(each.machine is not None for each in found)
    rows = [
        [each.function, f"{each.multiplications} / {each.additions}", each.lines, f"{each.bytes / 1024:.1f}"]
        + ([f"{each.machine / 1024:.1f}" if each.machine is not None else ""] if compiled else [])
        for each in found
    ]
    columns = ["function", ">multiplications / additions", ">lines", ">source [KiB]"]
    columns += [">machine code [KiB]"] if compiled else []
    notes = [
        "C99 without allocation and libraries; divisions count as multiplications, sines and cosines are not counted"
    ]
    notes += (
        ["machine code: instructions and constants of the object file, -O2, for this machine"]
        if compiled
        else []
    )
    return Section(title, [HtmlTable(columns, rows, notes)])


def _next(tour: Tour) -> Section:
    name = tour.source
    typed = shlex.quote(name)
    rows = [
        ("Move it in the browser:", f"linkwise view {typed}"),
        ("A page to send to a colleague:", f"linkwise view {typed} --out arm.html"),
        ("Torques along a motion:", f"linkwise inverse {typed} --trajectory motion.csv --out torques.csv"),
        ("A motion that touches nothing, in the shortest time:", f"linkwise plan {typed} --help"),
        ("C for a controller:", f"linkwise generate {typed} inverse_dynamics --out arm.c --header"),
        (
            "Parameters from a recording:",
            f"linkwise identify {typed} log.csv --out identified.toml --report report.html",
        ),
        ("In Python:", f"import linkwise as lw; robot = lw.load({name!r})"),
    ]
    return Section("Go on", [Commands(rows)])


def _made(command: str) -> Section:
    from linkwise import __version__

    versions = f"linkwise {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    return sections.facts(
        {"command": command, "library": versions, "machine": f"{platform.machine()}, {platform.system()}"},
        "How this page was made",
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _not_computed(reason: str) -> str:
    return f"Not computed: {_sentence(reason)}"
