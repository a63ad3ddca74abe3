"""Sections about what was identified: base parameters, their correlations, friction, links, and the reduced model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.report.heatmap import heat_map
from linkwise.report.page import Figure, HtmlTable, Section, Text
from linkwise.report.plots import Bar, Line, bar_chart, legend, line_plot
from linkwise.report.svg import colour, short

if TYPE_CHECKING:
    from linkwise.identify.result import BaseRow, Identification

PAIRS = 12  # number of strongest correlations listed
CORRELATED = 0.9  # above this, two parameters can hardly be separated
SPEEDS = 241  # points of a friction curve
DOTS = 6000  # samples from which measured friction is shown


def base_parameters(found: Identification) -> Section:
    """Every base parameter: value, interval, contribution, and its values in the physical model and the prior."""
    kept = set(found.reduction.significance.labels)
    table = found.table()
    rows = []
    for row in table:
        values = (short(_clean(v)) for v in (row.physical, row.prior))
        rows.append(
            [row.label, short(row.value), f"{short(row.lower, 3)} … {short(row.upper, 3)}", *values]
            + [f"{100 * row.contribution:.3g} %", _remark(row, row.label in kept)]
        )
    columns = [
        "parameter",
        ">estimate",
        ">95 % interval",
        ">physical model",
        ">as given",
        ">contribution",
        "",
    ]
    notes = [
        "SI units. Estimate and interval: least squares of the independent columns, residuals correlated in time; "
        "physical model: the same combination of links that can exist, which is what is saved.",
        "≈ 0: zero is inside the interval. Kept: it is in the reduced model.",
        "Contribution: the largest torque that it causes, in parts of the largest measured torque of a joint.",
    ]
    words = (
        f"{len(found.fit.regression.labels)} parameters act on the torques in {len(found.base)} combinations; "
        f"{sum(map(_known, table))} of these are known to differ from zero at 95 %. Condition number of the columns, "
        f"scaled to unit length: {found.excitation.condition:.4g}."
    )
    combined = [[row.label, _readable(row.expression)] for row in table if row.expression != row.label]
    parts: list = [Text(words), HtmlTable(columns, rows, notes)]
    if combined:
        parts += [
            Text("A parameter of these stands for a combination:"),
            HtmlTable(["parameter", "is"], combined),
        ]
    return Section("Base parameters", parts)


def _known(row: BaseRow) -> bool:
    """Whether it differs from zero."""
    return not row.lower <= 0.0 <= row.upper


def _remark(row: BaseRow, kept: bool) -> str:
    words = [word for word, holds in (("kept", kept), ("≈\u00a00", not _known(row))) if holds]
    return ",\u00a0".join(words)


def _clean(value: float) -> float:
    """Replace round-off by zero."""
    return 0.0 if abs(value) < 1e-12 else value


def _readable(expression: str) -> str:
    return expression.replace(" 1·", " ").replace(" - ", " − ")


def correlations(found: Identification) -> Section:
    """Correlations of parameter errors: heat map and table of the strongest pairs."""
    matrix, labels = found.estimate.correlation, found.estimate.labels
    upper = np.abs(np.triu(matrix, 1))
    order = np.argsort(upper, axis=None)[::-1][:PAIRS]
    pairs = [divmod(int(k), len(labels)) for k in order]
    rows = [[labels[i], labels[j], short(float(matrix[i, j]), 3)] for i, j in pairs if upper[i, j] > 0]
    strong = int((upper > CORRELATED).sum())
    words = (
        f"{strong} pairs of parameters have errors correlated by more than {CORRELATED:g}: their sum or difference is "
        "known better than each of them."
        if strong
        else f"No two parameters have errors correlated by more than {CORRELATED:g}."
    )
    figure = Figure(
        "correlation",
        heat_map(matrix, labels),
        "correlations of the errors of base parameters: blue together, orange against each other",
    )
    return Section(
        "Correlations", [Text(words), figure, HtmlTable(["parameter", "and", ">correlation"], rows)]
    )


# -- friction ---------------------------------------------------------------------------------------------------------


def friction(found: Identification) -> Section:
    """Friction of every axis over speed: identified, as stored in a robot file, and measured."""
    signals = found.signals[0]
    axes, names = found.axes, found.axis_names
    measured, rest, load = _not_measured(found) if found.walks else _measured_friction(found)
    parts: list = []
    for a, name in enumerate(names):
        speeds = signals.qd @ axes[a]
        top = float(np.abs(speeds).max()) or 1.0
        v = np.linspace(-top, top, SPEEDS)
        lines = [Line("identified", found.fit.steady_friction(a, v, load[a]), colour(a))]
        turns = (
            found.row_units[min(a - len(names), -1) if found.walks else min(a, found.prior.dof - 1)] == "N·m"
        )
        left = rest[a]
        dots = None if left is None else (measured[:, a], left)
        plot = line_plot(
            v,
            lines,
            x_label="speed [rad/s]" if turns else "speed [m/s]",
            y_label="friction [N·m]" if turns else "friction [N]",
            height=190,
            dots=dots,
        )
        key = legend([line.name for line in lines], [line.colour or "" for line in lines])
        parts.append(Figure(f"friction_{a + 1}", plot, _friction_words(found, a, name), key))
    note = "" if found.walks else "Dots: measured torque without links and rotor. "
    note += (
        "Curves: both directions at steady speed, under the typical "
        "load of the recording; friction that remembers the direction of motion has turned over. An offset is included."
    )
    parts += [Text(f"Unmodelled: {torque.text}.") for torque in found.unmodelled.torques]
    parts += [Text(f"Drive ripple: {line.text}.") for line in found.ripple.lines]
    parts += [Text(f"Network: {each.text}.") for each in found.network.joints]
    return Section("Friction", [Text(note), *parts])


def _friction_words(found: Identification, axis: int, name: str) -> str:
    terms = [
        f"{term.text} {short(float(value), 3)}"
        for (a, term), value in zip(
            found.fit.regression.terms, found.fit.x[found.fit.regression.links :], strict=True
        )
        if a == axis
    ]
    return f"{name}: {', '.join(terms)}" if terms else f"{name}: no friction terms"


def _not_measured(found: Identification) -> tuple[np.ndarray, list[np.ndarray | None], np.ndarray]:
    """The same for robots that walk: forces of feet load the joints, so friction alone is not seen."""
    count = len(found.axis_names)
    return np.zeros((0, count)), [None] * count, np.zeros(count)


def _measured_friction(
    found: Identification,
) -> tuple[np.ndarray, list[np.ndarray | None], np.ndarray]:
    """Speeds (N, axes), torques without links and rotors (None where motors are coupled), typical loads (axes,).

    The ends of the recording, where filters lack samples on one side, are left out.
    """
    signals, fit = found.signals[0], found.fit
    axes = found.axes
    margin = min(int(signals.rate / signals.cutoff), len(signals) // 10)
    pick = slice(margin, len(signals) - margin, max(1, len(signals) // DOTS))
    q, qd, qdd = signals.q[pick], signals.qd[pick], signals.qdd[pick]
    by_links = found.prior.regressor(q, qd, qdd)[..., : fit.regression.links] @ fit.links
    carried = by_links.copy()
    for (a, term), value in zip(fit.regression.terms, fit.x[fit.regression.links :], strict=True):
        if term.kind == "rotor_inertia":
            carried += value * (qdd @ axes[a])[:, None] * axes[a]
    rest = signals.tau[pick] - carried
    coupled = np.abs(axes[found.prior.dof :]).sum(axis=0) > 0
    share = axes / (axes**2).sum(axis=1, keepdims=True)
    load = np.sqrt(((by_links @ share.T) ** 2).mean(axis=0))
    measured = [rest[:, k] if not coupled[k] else None for k in range(found.prior.dof)]
    return qd @ axes.T, [*measured, *([None] * (len(axes) - found.prior.dof))], load


# -- links and the reduced model --------------------------------------------------------------------------------------


def links(found: Identification) -> Section:
    """Masses, centres and inertias of the links before and after: possible bodies, though not always the real ones."""
    rows = []
    # by name: motors that move several joints are bodies of their own in the identified robot
    identified = zip(found.robot.moving_joints, found.robot.labelled_bodies(), strict=True)
    bodies = {joint.body_link: body for joint, body in identified}
    for joint, before in zip(found.prior.moving_joints, found.prior.labelled_bodies(), strict=True):
        name, after = joint.body_link, bodies[joint.body_link]
        rows.append(
            [name, short(before.mass), short(after.mass), _place(before), _place(after)]
            + [short(float(np.linalg.eigvalsh(after.pseudo_inertia)[0]), 2)]
        )
    columns = ["link", ">mass as given [kg]", ">mass", ">centre as given [mm]", ">centre"]
    columns.append(">smallest eigenvalue")
    notes = [
        "Smallest eigenvalue of the pseudo-inertia matrix: positive means that a body like this can exist.",
        "Torques settle combinations only (see base parameters); what they leave open stays as near to the given robot "
        "as possible, so a single mass here is not a weighing.",
    ]
    return Section("Links of the saved robot", [HtmlTable(columns, rows, notes)])


def _place(body) -> str:
    return "–" if body.mass <= 0 else ", ".join(f"{1000 * x:.1f}".replace("-", "−") for x in body.com + 0.0)


def reduced_model(found: Identification) -> Section:
    """Accuracy and cost of the full and the reduced model."""
    reduction = found.reduction
    before, after = reduction.operations_before, reduction.operations
    count = len(reduction.significance.labels)
    rows = [
        [name, f"{old:.3g} %", f"{new:.3g} %", f"{new - old:+.2g}".replace("-", "−")]
        for name, old, new in zip(found.row_names, reduction.relative_before, reduction.relative, strict=True)
    ]
    table = HtmlTable(
        ["joint", f">all {reduction.base_count}", f">significant {count}", ">difference"],
        rows,
        [
            "Residuals of the filtered recording that was fitted; viscous and Coulomb friction and offsets in both."
        ],
    )
    bars = [
        Bar(
            name,
            ops.multiplications + ops.divisions + ops.additions,
            group,
            f"{ops.multiplications + ops.divisions} / {ops.additions}",
        )
        for name, ops, group in (("whole robot", before, 0), ("reduced model", after, 1))
    ]
    chart = Figure(
        "reduced_operations",
        bar_chart(bars),
        "multiplications / additions of one evaluation of the inverse dynamics",
    )
    words = (
        f"{count} of {reduction.base_count} base parameters are significant ({_rule(reduction.significance.rule)}). "
        f"Fitted again with these alone, one evaluation costs {after.multiplications + after.divisions} "
        f"multiplications and {after.additions} additions instead of {before.multiplications + before.divisions} "
        f"and {before.additions}."
    )
    return Section("The reduced model", [Text(words), table, chart])


def _rule(name: str) -> str:
    return {
        "contribution": "each causes at least 1 % of some joint's largest torque",
        "statistics": "each improves Akaike's criterion",
    }.get(name, name)
