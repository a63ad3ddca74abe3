"""Report of an identification: preprocessing, prediction quality, confidence."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.report import sections
from linkwise.report.coverage import coverage
from linkwise.report.estimators import estimators
from linkwise.report.identified_parameters import (
    base_parameters,
    correlations,
    friction,
    links,
    reduced_model,
)
from linkwise.report.page import Figure, Fold, HtmlTable, Report, Section, Text, Warned
from linkwise.report.plots import Line, legend, line_plot
from linkwise.report.replayed import replayed
from linkwise.report.residual_patterns import residual_patterns
from linkwise.report.svg import INK, colour, short
from linkwise.version import __version__

if TYPE_CHECKING:
    from linkwise.identify.judging.validation import Validation
    from linkwise.identify.result import Identification

MEASURED = "#9aa5b3"
DETAIL, LEAST_DETAIL = (
    1500,
    300,
)  # samples of torques that can be seen by zooming: of the first recording, of others
MANY = 4  # recordings from which they are folded together
ZOOM = "Zoom with the wheel, with + and −, or by dragging over a range; a double click shows everything."
WRITTEN = {"robot": "identified robot", "code": "C code of its inverse dynamics", "report": "this page"}


def identification_report(
    found: Identification, *, command: str | None = None, written: Mapping[str, str] | None = None
) -> Report:
    """The report page.

    Args:
        found: the identification.
        command: the command line shown in the table at the top.
        written: files that were saved, such as {"robot": "arm.urdf"}, named at the top.
    """
    judged = found.validation
    report = Report(
        f"Identification of {found.prior.name}",
        f"{_recordings(found)}; judged on {judged.log.name}",
    )
    report.add(verdict(found, written or {}))
    report.add(accuracy(found))
    report.add(torques(found))
    if not found.walks:  # what drives a base that walks was not measured
        report.add(replayed(found))
        report.add(coverage(found))
    report.add(residual_patterns(found))
    report.add(friction(found))
    q, trace = found.poses, None if found.walks else _trace(found)
    caption = "pose in the middle of the recording, start pose faded"
    caption += "" if trace is None else "; the line is the path of the end effector"
    report.add(sections.robot(found.robot, q[len(q) // 2], ghosts=[q[0]], trace=trace, caption=caption))
    report.add(links(found))
    report.add(reduced_model(found))
    report.add(folded(base_parameters(found)))
    report.add(folded(estimators(found)))
    report.add(folded(correlations(found)))
    report.add(processing(found))
    report.add(what_was_run(found, command))
    return report


def folded(section: Section) -> Section:
    """The same, closed until the reader opens it."""
    return replace(section, folded=True)


def verdict(found: Identification, written: Mapping[str, str]) -> Section:
    """What was saved, how well it predicts every recording, and warnings."""
    rows = found.verdict()
    note = "Residuals 100·‖τ − τ̂‖/‖τ‖ of all joints together. C code has the torques of the saved robot."
    parts: list = []
    if written:
        files = [[WRITTEN.get(what, what), path] for what, path in written.items()]
        parts.append(HtmlTable(["saved", "file"], files))
    parts += [
        Text(_in_words(found)),
        HtmlTable(rows[0].columns, [row.cells for row in rows], [note]),
    ]
    if any(row.fitted for row in rows):
        parts.append(
            Text(
                "The recording that is predicted is one that the model was fitted to: a separate one (--validate) or "
                "a part that is kept back (--split) shows more about other motions."
            )
        )
    if found.failed:
        failure = f"This model fails: {found.failure}. Robot and code are written only with --force."
        parts.insert(0, Warned(failure))
    uses = ", ".join(use.text for use in found.uses())
    parts.append(Text(f"Good for {uses} of the torque left."))
    said = [*(f"{line[0].upper()}{line[1:]}." for line in found.warnings), *doubts(found)]
    parts += [Warned(line) for line in said]
    if not said:
        parts.append(
            Text(
                "No warnings: all base parameters are excited, and every joint is predicted better than by its mean."
            )
        )
    return Section("In short", parts)


def _in_words(found: Identification) -> str:
    judged, given = found.validations[0], found.of_prior[0]
    others = found.validations[1:]
    more = ""
    if others:
        worst = max(others, key=lambda each: each.total)
        more = f" On {len(others)} further recordings it is at most {worst.total:.3g} % ({worst.log.name})."
    if all(row.best == "reduced model" for row in found.verdict()):
        more += " The reduced model predicts every recording better still (--code with --reduce)."
    return (
        f"The saved robot predicts the torques of {judged.log.name} with a residual of {judged.total:.3g} % "
        f"({judged.total_in_band:.3g} % below {judged.band:.3g} Hz, where it was fitted); the robot as it was given is "
        f"{given.total:.3g} % off.{more}"
    )


def doubts(found: Identification) -> list[str]:
    """Warnings about the recording and the result."""
    lines = []
    judged = found.validation
    names = found.row_names
    lines += found.worse_than_given()
    worse = [
        n
        for n, new, old in zip(names, judged.relative, found.of_prior[0].relative, strict=True)
        if new > 1.05 * old
    ]
    if worse:
        lines.append(
            f"The robot as it was given predicts {', '.join(worse)} better than the identified model."
        )
    if found.excitation.condition > 1000:
        lines.append(
            f"The condition number is {found.excitation.condition:.3g}: the motion mixes some parameters. A motion "
            "from linkwise excite separates them better."
        )
    return lines


def what_was_run(found: Identification, command: str | None) -> Section:
    rows: dict[str, object] = {} if command is None else {"command": command}
    rows["robot"] = f"{found.prior.name}, {found.prior.dof} joints: {', '.join(found.prior.joint_names)}"
    rows["identified from"] = _recordings(found)
    rows["judged on"] = ", ".join(f"{v.log.name} ({len(v.t)} samples)" for v in found.validations)
    rows["torques taken"] = (
        "at the motors: rotor inertia and drive friction are in them"
        if found.signals[0].log.sensed == "motor"
        else "behind the gears"
    )
    rows["estimator"] = f"{found.estimate.method} least squares; links by semidefinite programming"
    rows["significance"] = f"by {found.reduction.significance.rule}"
    rows["library"] = f"linkwise {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    return sections.facts(rows)


def processing(found: Identification) -> Section:
    """Preprocessing of every recording."""
    rows = []
    for signals in found.signals:
        log = signals.log
        used = len(signals.filtered(signals.t))
        rows.append(
            [log.name, "recorded", f"{len(log)} samples in {log.duration:.4g} s, {log.rate:.5g} per second"]
        )
        rows += [["", str(k), line] for k, line in enumerate(signals.record, 1)]
        rows.append(
            [
                "",
                "in the equations",
                f"{used} samples of {len(log)}: low-passed at {signals.cutoff:.3g} Hz forwards and backwards (no "
                f"delay), torques and columns alike, ends cut, {_every(signals.thinning)} kept",
            ]
        )
    notes = [
        "Figures of accuracy are about the torques as they were recorded, at every sample, unless they say otherwise."
    ]
    return Section("Processing", [HtmlTable(["recording", "step", "what was done"], rows, notes)])


def accuracy(found: Identification) -> Section:
    """Per joint: predicted against measured torques, of the saved robot, the robot as given and the reduced model."""
    tables = [
        (judged.log.name, _accuracy_table(found, judged, prior, reduced))
        for judged, prior, reduced in zip(found.validations, found.of_prior, found.of_reduced, strict=True)
    ]
    parts: list = [Text(f"Residuals on {tables[0][0]}"), tables[0][1]]
    parts.append(
        Text(
            "Relative: 100·‖τ − τ̂‖/‖τ‖ of the torques as recorded. While moving: without samples at which the joint is "
            "slower than 0.01 rad/s (or m/s), where friction may be anything. At rest, in range: samples slower than "
            "that whose torque is between those at which the joint would begin to slide. As given: the robot before "
            "identification. All other columns but the last are of the saved robot."
        )
    )
    if tables[1:]:
        others = [part for name, table in tables[1:] for part in (Text(f"Residuals on {name}"), table)]
        parts.append(Fold(_count(tables[1:]), others))
    return Section("How well it predicts", parts)


def _count(others: Sequence[object]) -> str:
    return f"{len(others)} more recordings" if len(others) > 1 else "One more recording"


def _accuracy_table(
    found: Identification, judged: Validation, prior: Validation, reduced: Validation
) -> HtmlTable:
    rows = []
    for k, name in enumerate(found.row_names):
        rows.append(
            [name, short(float(judged.rms[k]), 3)]
            + [_percent(v[k]) for v in (judged.relative, judged.moving, judged.held, judged.in_band)]
            + [_percent(v[k]) for v in (prior.relative, reduced.relative)]
        )
    rows.append(
        ["all together", "", _percent(judged.total), "", "", _percent(judged.total_in_band)]
        + [_percent(prior.total), _percent(reduced.total)]
    )
    columns = ["joint", ">RMS [N·m or N]", ">relative", ">while moving", ">at rest, in range"]
    columns.append(f">below {judged.band:.3g} Hz")
    return HtmlTable([*columns, ">as given", ">reduced model"], rows)


def torques(found: Identification) -> Section:
    """Measured torques, predicted torques and residuals of every joint; all recordings but the first are folded."""
    first, *others = found.validations
    parts: list = [
        Text(
            "Zoom with the wheel, with + and −, or by dragging over a range; a double click shows everything."
        )
    ]
    parts += _torque_figures(found, first, DETAIL)
    title = f"Measured and predicted: {first.log.name}" + (f" and {len(others)} more" if others else "")
    detail = max(LEAST_DETAIL, DETAIL // max(len(others), 1))
    folds = [
        Fold(f"{judged.log.name}: residual {judged.total:.3g} %", _torque_figures(found, judged, detail))
        for judged in others
    ]
    parts += folds if len(folds) < MANY else [Fold(_count(folds), folds)]
    return Section(title, parts)


def _torque_figures(found: Identification, judged: Validation, detail: int) -> list[Figure]:
    figures = []
    for k, (row, unit) in enumerate(zip(found.row_names, found.row_units, strict=True)):
        lines = [
            Line("measured", judged.measured[:, k], MEASURED),
            Line("predicted", judged.predicted[:, k], colour(k)),
            Line("residual", judged.residuals[:, k], INK),
        ]
        t = judged.t - judged.t[0]
        plot = line_plot(t, lines, y_label=f"torque [{unit}]", height=210, detail=detail)
        key = legend([line.name for line in lines], [line.colour or "" for line in lines])
        name = f"torque_{sections.slug(judged.log.name)}_{sections.slug(row)}"
        figures.append(Figure(name, plot, f"{row}: residual {judged.relative[k]:.3g} %", key))
    return figures


# -- shared -----------------------------------------------------------------------------------------------------------


def _recordings(found: Identification) -> str:
    return ", ".join(f"{s.log.name} ({len(s.log)} samples)" for s in found.signals)


def _trace(found: Identification) -> np.ndarray | None:
    """Path of the end effector; None for trees (several leaves)."""
    try:
        frame = found.prior.default_frame()
    except ValueError:
        return None
    q = found.signals[0].q
    return found.prior.pose(q[:: max(1, len(q) // 400)], frame)[:, :3, 3]


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g} %"


def _every(step: int) -> str:
    if step == 1:
        return "every sample"
    return f"every {step}{ {2: 'nd', 3: 'rd'}.get(step, 'th') } sample"
