"""Sections of reports; each function takes plain data and returns a section.

Your own report can combine them::

    report = Report("A pick and place", "UR10e, 2 kg")
    report.add(sections.robot(arm, q[0]))
    report.add(sections.motion(arm, t, q, qd))
    report.add(sections.torques(arm, t, tau))
    report.write("report.html")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.model import Model
from linkwise.model.checks import masslessness
from linkwise.model.coordinates import Coordinate, position_coordinates, velocity_coordinates
from linkwise.report.page import Figure, HtmlTable, Raw, Section, Text, Warned
from linkwise.report.picture import robot_picture
from linkwise.report.plots import Bar, Line, bar_chart, legend, line_plot
from linkwise.report.svg import colour, short

FLAT = 0.1  # lines whose peak is a smaller fraction of the largest one get a plot of their own


def facts(rows: Mapping[str, object], title: str = "How it was run") -> Section:
    """HtmlTable of settings: name and value per row."""
    return Section(title, [HtmlTable(["", ""], [[name, value] for name, value in rows.items()])])


def robot(
    model: Model,
    q: np.ndarray,
    *,
    ghosts: Sequence[np.ndarray] = (),
    trace: np.ndarray | None = None,
    caption: str = "",
    friction: bool = True,
) -> Section:
    """The robot as a drawing at q (n,), and its joints with their limits; ``friction``: whether it was used."""
    friction = flag("friction", friction)
    picture = Figure("robot", robot_picture(model, q, ghosts=ghosts, trace=trace), caption)
    rows = []
    for joint in model.coordinate_joints:
        scale = 180.0 / np.pi if joint.turns else 1000.0
        low, high = (short(scale * limit, 4) for limit in (joint.limits.lower, joint.limits.upper))
        unit = "°" if joint.turns else " mm"
        rows.append(
            [
                joint.name,
                joint.type,
                "" if joint.free else f"{low} … {high}{unit}",
                short(joint.limits.largest_effort),
                short(joint.rotor_inertia, 3),
                short(joint.viscous_friction, 3) if friction else "",
            ]
        )
    columns = ["joint", "type", ">range", ">effort limit", ">rotor inertia", ">viscous friction"]
    notes = ["SI units; the colours of the joints are those of the lines in all plots"]
    if (without := masslessness(model)) is not None:
        notes.append(f"Warning: {without}")
    joints = _known(HtmlTable(columns, rows, notes), nothing=("∞", "", "0"))
    return Section(model.name, [_Pair(picture, joints)])


@dataclass(frozen=True)
class _Pair(Figure):
    """A figure with a table beside it (below it in a narrow window)."""

    def __init__(self, figure: Figure, table: HtmlTable):
        super().__init__(figure.name, figure.svg, figure.caption)
        object.__setattr__(self, "table", table)

    def html(self) -> str:
        return f'<div class="pair">{super().html()}<div>{self.table.html()}</div></div>'  # type: ignore[attr-defined]


def motion(
    model: Model, t: np.ndarray, q: np.ndarray, qd: np.ndarray | None = None, *, title: str = "Motion"
) -> Section:
    """Positions and, where given, velocities over t (points,) with their limits; arrays (points, n)."""
    positions = position_coordinates(model)
    limits = [(each.limits.lower, each.limits.upper) for each in positions]
    parts = _by_unit("positions", positions, t, q, ("position [°]", "position [mm]"), limits, True)
    if qd is not None:
        rates = velocity_coordinates(model)
        limits = [(-each.limits.largest_velocity, each.limits.largest_velocity) for each in rates]
        parts += _by_unit("velocities", rates, t, qd, ("velocity [°/s]", "velocity [mm/s]"), limits, True)
        parts = [*_leaving(rates, t, qd, "velocity", ("°/s", "mm/s")), *parts]
    return Section(title, [*_leaving(positions, t, q, "range", ("°", "mm")), *parts])


def accelerations(model: Model, t: np.ndarray, qdd: np.ndarray) -> Section:
    """Accelerations (points, n) over time, in the units in which ``motion`` shows positions and velocities."""
    rates = velocity_coordinates(model)
    labels = ("acceleration [°/s²]", "acceleration [mm/s²]")
    limits = [(-np.inf, np.inf)] * len(rates)
    return Section("Accelerations", _by_unit("accelerations", rates, t, qdd, labels, limits, True))


def _leaving(
    coordinates: Sequence[Coordinate], t: np.ndarray, values: np.ndarray, what: str, units: tuple[str, str]
) -> list[Warned]:
    """A sentence for every joint that leaves a limit: which one, when first, how far."""
    sentences = []
    for k, each in enumerate(coordinates):
        low, high = each.limits.lower, each.limits.upper
        if what == "velocity":
            low, high = -each.limits.largest_velocity, each.limits.largest_velocity
        own = np.asarray(values, dtype=float)[:, k]
        beyond = np.maximum(own - high, low - own)
        outside = np.flatnonzero(beyond > 1e-9 * (1.0 + np.abs(own)))
        if each.quaternion or not outside.size:
            continue
        scale, unit = (180.0 / np.pi, units[0]) if each.revolute else (1000.0, units[1])
        allowed = f"{short(scale * low, 4)} … {short(scale * high, 4)} {unit}"
        sentences.append(
            Warned(
                f"{each.name} leaves its {what} of {allowed}: first at {short(float(t[outside[0]]), 3)} s, by at most "
                f"{short(scale * float(beyond.max()), 3)} {unit}. Limits of the file are the dashed lines; they are "
                "not enforced, and stops of joints are not modelled."
            )
        )
    return sentences


def torques(
    model: Model, t: np.ndarray, tau: np.ndarray, *, title: str = "Torques", words: str = ""
) -> Section:
    """Torques (points, n) over time with the effort limits, and a table of the largest ones."""
    joints = velocity_coordinates(model)
    limits = [(-j.limits.largest_effort, j.limits.largest_effort) for j in joints]
    parts: list = [Text(words)] if words else []
    parts += _beyond_effort(joints, t, tau)
    parts += _by_unit("torques", joints, t, tau, ("torque [N·m]", "force [N]"), limits, False, own_scale=True)
    rows = []
    for k, joint in enumerate(joints):
        peak, rms = float(np.abs(tau[:, k]).max()), float(np.sqrt(np.mean(tau[:, k] ** 2)))
        limit = joint.limits.largest_effort
        share = f"{peak / limit:.0%}" if np.isfinite(limit) else ""
        rows.append(
            [joint.name, short(peak), short(rms), short(limit), share, "N·m" if joint.revolute else "N"]
        )
    parts.append(_known(HtmlTable(["joint", ">largest", ">rms", ">limit", ">share", "unit"], rows)))
    return Section(title, parts)


def _beyond_effort(joints: Sequence[Coordinate], t: np.ndarray, tau: np.ndarray) -> list[Warned]:
    """A sentence for every joint that needs more than its effort limit."""
    sentences = []
    for k, joint in enumerate(joints):
        limit, own = joint.limits.largest_effort, np.abs(np.asarray(tau)[:, k])
        beyond = np.flatnonzero(own > limit * (1 + 1e-9))
        if beyond.size:
            unit = "N·m" if joint.revolute else "N"
            sentences.append(
                Warned(
                    f"{joint.name} needs {short(float(own.max()))} {unit}, more than its limit of {short(limit)} "
                    f"{unit}: first at {short(float(t[beyond[0]]), 3)} s. A slower motion or less load needs less."
                )
            )
    return sentences


@dataclass(frozen=True)
class Agreement:
    """Relative difference of one algorithm from the reference, and its residual if it has one."""

    function: str
    algorithm: str
    difference: float
    residual: float | None = None


def agreement(rows: Sequence[Agreement], notes: Sequence[str] = ()) -> Section:
    """Comparison of all algorithms."""
    table = [[r.function, r.algorithm, _tiny(r.difference), _tiny(r.residual)] for r in rows]
    return Section(
        "Do the algorithms agree?",
        [HtmlTable(["function", "algorithm", ">relative difference", ">residual"], table, notes)],
    )


@dataclass(frozen=True)
class Counts:
    """Operations of one algorithm on this robot, on a general arm, and as published for such an arm."""

    function: str
    algorithm: str
    own: tuple[int, int]  # multiplications (and divisions), additions
    general: tuple[int, int] | None = None
    published: Sequence[tuple[str, int, int]] = ()  # source, multiplications, additions


def operations(rows: Sequence[Counts], robot_name: str, notes: Sequence[str] = ()) -> Section:
    """Operation counts and published counts: a bar is the sum, the numbers are ×/+."""
    parts: list = []
    for function in dict.fromkeys(row.function for row in rows):
        bars = []
        for row in (r for r in rows if r.function == function):
            bars.append(_count_bar(f"{row.algorithm}, {robot_name}", *row.own, 0))
            if row.general is not None:
                bars.append(_count_bar(f"{row.algorithm}, general arm", *row.general, 5))
            bars += [_count_bar(f"{source}, printed", m, a, 1) for source, m, a in row.published]
        parts += [Raw(f"<h3>{function}</h3>"), bar_figure(f"operations_{function}", bars)]
    tints = [colour(0), colour(5), colour(1)]
    parts.insert(
        0, Raw(legend([robot_name, "general arm of as many joints", "printed in the papers"], tints))
    )
    parts += [Text(note) for note in notes]
    return Section("Operations", parts)


@dataclass(frozen=True)
class Timing:
    """Duration of one evaluation."""

    function: str
    library: str
    nanoseconds: float


def timings(rows: Sequence[Timing], notes: Sequence[str] = ()) -> Section:
    """Time per evaluation of Linkwise and other libraries."""
    libraries = list(dict.fromkeys(row.library for row in rows))
    parts: list = []
    for function in dict.fromkeys(row.function for row in rows):
        bars = [
            Bar(row.library, row.nanoseconds, libraries.index(row.library), _nanoseconds(row.nanoseconds))
            for row in rows
            if row.function == function
        ]
        parts += [Raw(f"<h3>{function}</h3>"), bar_figure(f"timings_{function}", bars)]
    parts += [Text(note) for note in notes]
    return Section("Time per evaluation", parts)


def tracking(model: Model, t: np.ndarray, errors: Mapping[str, np.ndarray]) -> Section:
    """Errors q − q_d (points, n) of one or several controllers by name: a plot of each, and a table of their sizes."""
    parts: list = []
    rows = []
    names = [each.name for each in velocity_coordinates(model)]
    turns = np.array([each.revolute for each in velocity_coordinates(model)])
    for name, error in errors.items():
        shown = np.where(turns, np.degrees(error), 1000.0 * error)
        lines = [Line(each, shown[:, k]) for k, each in enumerate(names)]
        label = "error [°]" if turns.all() else "error [° or mm]"
        figure = Figure(f"tracking_{slug(name)}", line_plot(t, lines, y_label=label), name, legend(names))
        parts.append(figure)
        rows.append([name, short(float(np.abs(shown).max()), 3), short(float(np.sqrt(np.mean(shown**2))), 3)])
    unit = "°" if turns.all() else "° or mm"
    parts.append(HtmlTable(["controller", f">largest error [{unit}]", f">rms [{unit}]"], rows))
    return Section("Tracking", parts)


def contacts(
    t: np.ndarray,
    names: Sequence[str],
    forces: np.ndarray,
    slip: np.ndarray,
    gaps: np.ndarray,
    residual: np.ndarray,
) -> Section:
    """Contacts of a simulation over t (points,): forces (points, contacts, 3) with the normal last [N], speeds of
    sliding [m/s] and gaps [m] (points, contacts), residuals (points,): a plot of normal forces, and a table."""
    touched = [int(k) for k in np.flatnonzero((forces[..., 2] > 0.0).any(axis=0))]
    if not touched:
        return Section("Contact", [Text("Nothing touched.")])
    lines = [Line(names[k], forces[:, k, 2]) for k in touched]
    labels = [names[k] for k in touched]
    figure = Figure(
        "contact_forces", line_plot(t, lines, y_label="normal force [N]", zero=True), "", legend(labels)
    )
    rows = [
        [
            names[k],
            short(100.0 * float((forces[:, k, 2] > 0.0).mean()), 3),
            short(float(forces[:, k, 2].max()), 4),
            short(float(forces[:, k, 2].mean()), 4),
            short(1000.0 * float(slip[:, k].max()), 3),
            short(1000.0 * float(max(0.0, -gaps[:, k].min())), 3),
        ]
        for k in touched
    ]
    columns = ["contact", ">touches [%]", ">largest [N]", ">mean [N]", ">slides [mm/s]", ">depth [mm]"]
    notes = [f"laws of contact hold to {residual.max():.0e} of the velocities without contact"]
    if len(touched) < len(names):
        notes.append(f"{len(names) - len(touched)} of {len(names)} candidates never touched")
    return Section("Contact", [figure, HtmlTable(columns, rows, notes)])


def identification(
    labels: Sequence[str],
    values: np.ndarray,
    deviations: np.ndarray,
    *,
    t: np.ndarray | None = None,
    measured: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    names: Sequence[str] = (),
    most: int = 40,
) -> Section:
    """Estimated parameters with their standard deviations; measured and predicted torques (points, n) where given."""
    values, deviations = np.asarray(values, dtype=float), np.asarray(deviations, dtype=float)
    relative = np.divide(deviations, np.abs(values), out=np.full(values.shape, np.inf), where=values != 0)
    order = np.argsort(relative)
    rows = [
        [labels[k], short(float(values[k])), short(float(deviations[k]), 2), f"{100 * relative[k]:.2g} %"]
        for k in order[:most]
    ]
    notes = [f"the {most} best known of {len(labels)}"] if len(labels) > most else []
    parts: list = [HtmlTable(["parameter", ">value", ">standard deviation", ">relative"], rows, notes)]
    if t is not None and measured is not None and predicted is not None:
        fits = []
        for k in range(measured.shape[1]):
            name = names[k] if k < len(names) else f"joint {k + 1}"
            lines = [
                Line("measured", measured[:, k], "#9aa5b3"),
                Line("predicted", predicted[:, k], colour(k)),
            ]
            svg = line_plot(t, lines, y_label="torque [N·m]", height=190)
            parts.append(
                Figure(
                    f"fit_{slug(name)}", svg, name, legend(["measured", "predicted"], ["#9aa5b3", colour(k)])
                )
            )
            left = measured[:, k] - predicted[:, k]
            size = float(np.sqrt(np.mean(measured[:, k] ** 2)))
            rms = float(np.sqrt(np.mean(left**2)))
            fits.append([name, short(rms, 3), f"{100 * rms / size:.1f} %" if size > 0 else ""])
        parts.append(HtmlTable(["joint", ">rms residual [N·m]", ">of the rms torque"], fits))
    return Section("Identification", parts)


def bar_figure(name: str, bars: Sequence[Bar], caption: str = "") -> Figure | Text:
    """Bars as a figure; a single one, which compares nothing, as a sentence.

    Args:
        name: of the figure's file.
        bars: the bars, from the top.
        caption: below the figure.
    """
    if len(bars) == 1:
        return Text(f"{bars[0].name}: {bars[0].note or short(bars[0].value)}.")
    return Figure(name, bar_chart(bars), caption)


# -- shared -----------------------------------------------------------------------------------------------------------


def _by_unit(
    name: str,
    coordinates: Sequence[Coordinate],
    t,
    values,
    labels: tuple[str, str],
    limits: Sequence,
    angles: bool,
    own_scale: bool = False,
) -> list[Figure]:
    """Separate plots for angles, lengths and quaternions; with ``angles`` in degrees and millimetres; with
    ``own_scale`` another one for those that would be flat lines beside the largest, such as torques of a wrist."""
    turns = np.array([each.revolute for each in coordinates], dtype=bool)
    turned = np.array([each.quaternion for each in coordinates], dtype=bool)
    names = [each.name for each in coordinates]
    figures = []
    for kind, label, suffix, scale in (
        (turns, labels[0], "", 180.0 / np.pi),
        (~turns & ~turned, labels[1], "_sliding", 1000.0),
        (turned, "quaternion", "_orientation", 1.0),
    ):
        scale = scale if angles else 1.0
        for part, chosen in _by_size(np.asarray(values), np.flatnonzero(kind).tolist(), own_scale).items():
            lines = [Line(names[k], scale * np.asarray(values)[:, k], colour(k)) for k in chosen]
            scaled = [(scale * limits[k][0], scale * limits[k][1]) for k in chosen]
            picture = line_plot(t, lines, y_label=label, limits=scaled)
            key = legend([names[k] for k in chosen], [colour(k) for k in chosen])
            caption = "the smaller ones, on a scale of their own" if part else ""
            figures.append(Figure(name + suffix + part, picture, caption, key))
    return figures


def _by_size(values: np.ndarray, chosen: list[int], own_scale: bool) -> dict[str, list[int]]:
    """The columns of each plot, by the end of its name; no plot without columns."""
    peaks = {k: float(np.abs(values[:, k]).max()) for k in chosen}
    small = [k for k in chosen if own_scale and peaks[k] < FLAT * max(peaks.values())]
    if len(chosen) < 3 or not any(peaks[k] > 0 for k in small):
        small = []
    large = [k for k in chosen if k not in small]
    return {part: columns for part, columns in (("", large), ("_small", small)) if columns}


def _count_bar(name: str, multiplications: int, additions: int, group: int) -> Bar:
    return Bar(name, multiplications + additions, group, f"{multiplications} / {additions}")


def _nanoseconds(value: float) -> str:
    return f"{value:.0f} ns" if value >= 100 else f"{value:.3g} ns"


def _known(table: HtmlTable, nothing: Sequence[str] = ("∞", "")) -> HtmlTable:
    """The table without empty columns."""
    kept = [k for k in range(len(table.columns)) if any(row[k] not in nothing for row in table.rows)]
    return HtmlTable(
        [table.columns[k] for k in kept], [[row[k] for k in kept] for row in table.rows], table.notes
    )


def _tiny(value: float | None) -> str:
    return "" if value is None else short(value, 2)


def slug(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
