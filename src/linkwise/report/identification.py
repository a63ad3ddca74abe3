"""Report of an identification: preprocessing, prediction quality, confidence."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np

from linkwise.report import sections
from linkwise.report.estimators import estimators
from linkwise.report.identified_parameters import (
    base_parameters,
    correlations,
    friction,
    links,
    reduced_model,
)
from linkwise.report.page import Figure, HtmlTable, Report, Section, Text
from linkwise.report.plots import Line, legend, line_plot
from linkwise.report.svg import INK, colour, short
from linkwise.version import __version__

if TYPE_CHECKING:
    from linkwise.identify.result import Identification
    from linkwise.identify.validation import Validation

MEASURED = "#9aa5b3"
LAGS = 60
WHITE = 1.96  # standard deviations: 95 % of the autocorrelations of white noise are within


def identification_report(found: Identification, *, command: str | None = None) -> Report:
    """The report page.

    Args:
        found: the identification.
        command: the command line shown in the table at the top.
    """
    judged = found.validation
    report = Report(
        f"Identification of {found.prior.name}",
        f"{_recordings(found)}; judged on {judged.log.name}",
    )
    report.add(verdict(found))
    report.add(what_was_run(found, command))
    q, trace = found.signals[0].q, _trace(found)
    caption = "pose in the middle of the recording, start pose faded"
    caption += "" if trace is None else "; the line is the path of the end effector"
    report.add(sections.robot(found.robot, q[len(q) // 2], ghosts=[q[0]], trace=trace, caption=caption))
    report.add(processing(found))
    report.add(accuracy(found))
    for validation in found.validations:
        report.add(torques(found, validation))
    report.add(residuals(found))
    report.add(friction(found))
    report.add(base_parameters(found))
    report.add(estimators(found))
    report.add(correlations(found))
    report.add(links(found))
    report.add(reduced_model(found))
    return report


def verdict(found: Identification) -> Section:
    """Summary with warnings."""
    judged, prior = found.validation, found.of_prior[0]
    own = _same_recordings(found)
    words = (
        f"The identified model predicts the torques of {judged.log.name} with a residual of {judged.total:.3g} % "
        f"(all joints together; {judged.total_in_band:.3g} % below {judged.band:.3g} Hz, where the model was fitted). "
        f"The robot as it was given is {prior.total:.3g} % off."
    )
    rows = [
        [v.log.name, *(_percent(each.total) for each in (saved, saved, reduced, given))]
        for v, saved, reduced, given in zip(
            found.validations, found.of_robot, found.of_reduced, found.of_prior, strict=True
        )
    ]
    columns = ["recording", ">saved robot", ">its C code", ">reduced model", ">robot as given"]
    note = "Residuals 100·‖τ − τ̂‖/‖τ‖ of all joints together, of what can be taken away."
    parts: list = [Text(words), HtmlTable(columns, rows, [note])]
    if own:
        parts.append(
            Text(
                "The recording that is predicted is one that the model was fitted to: a separate one (--validate) or "
                "a part that is kept back (--split) shows more about other motions."
            )
        )
    parts += [Text(f"⚠ {line[0].upper()}{line[1:]}.") for line in found.warnings]
    parts += [Text(f"⚠ {line}") for line in doubts(found)]
    if len(parts) == 2 + own:
        parts.append(
            Text(
                "No warnings: all base parameters are excited, and every joint is predicted better than by its mean."
            )
        )
    return Section("In short", parts)


def doubts(found: Identification) -> list[str]:
    """Warnings about the recording and the result."""
    lines = []
    judged = found.validation
    names = found.prior.joint_names
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
    unsure = [row.label for row in found.table() if row.lower <= 0.0 <= row.upper]
    if unsure:
        lines.append(
            f"{len(unsure)} of {len(found.base)} base parameters do not differ from zero at 95 %: see the table."
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
    """Per joint: predicted against measured torques, for the model, the prior and the robot that is saved."""
    parts: list = []
    triples = zip(found.validations, found.of_prior, found.of_robot, strict=True)
    for judged, prior, robot in triples:
        rows = []
        for k, joint in enumerate(found.prior.moving_joints):
            rows.append(
                [joint.name, short(float(judged.rms[k]), 3)]
                + [_percent(v[k]) for v in (judged.relative, judged.moving, judged.in_band)]
                + [_percent(v[k]) for v in (prior.relative, robot.relative)]
            )
        rows.append(
            ["all together", "", _percent(judged.total), "", _percent(judged.total_in_band)]
            + [_percent(prior.total), _percent(robot.total)]
        )
        columns = ["joint", ">RMS [N·m or N]", ">relative", ">while moving", f">below {judged.band:.3g} Hz"]
        columns += [">as given", ">saved robot"]
        parts.append(Text(f"Residuals on {judged.log.name}"))
        parts.append(HtmlTable(columns, rows))
    parts.append(
        Text(
            "Relative: 100·‖τ − τ̂‖/‖τ‖ of the torques as recorded. While moving: without samples at which the joint is "
            "slower than 0.01 rad/s (or m/s), where friction may be anything. As given: the robot before "
            "identification. Saved robot: what URDF and TOML files can hold, with viscous and Coulomb friction only."
        )
    )
    return Section("How well it predicts", parts)


def torques(found: Identification, judged: Validation) -> Section:
    """Measured torques, predicted torques and residuals of every joint."""
    parts: list = []
    for k, joint in enumerate(found.prior.moving_joints):
        unit = "N·m" if joint.revolute else "N"
        lines = [
            Line("measured", judged.measured[:, k], MEASURED),
            Line("predicted", judged.predicted[:, k], colour(k)),
            Line("residual", judged.residuals[:, k], INK),
        ]
        parts.append(
            Figure(
                f"torque_{_slug(judged.log.name)}_{joint.name}",
                line_plot(judged.t - judged.t[0], lines, y_label=f"torque [{unit}]", height=210),
                f"{joint.name}: residual {judged.relative[k]:.3g} %",
                legend([line.name for line in lines], [line.colour or "" for line in lines]),
            )
        )
    return Section(f"Measured and predicted: {judged.log.name}", parts)


def residuals(found: Identification) -> Section:
    """Autocorrelation of the residuals: for a complete model they are white noise."""
    judged = found.validation
    e = judged.residuals - judged.residuals.mean(axis=0)
    count = min(LAGS, len(e) - 1)
    power = np.maximum((e**2).sum(axis=0), 1e-300)
    lags = np.arange(1, count + 1)
    at_lag = np.array([(e[:-k] * e[k:]).sum(axis=0) / power for k in lags])
    bound = WHITE / np.sqrt(len(e))
    step = float(judged.t[-1] - judged.t[0]) / (len(judged.t) - 1)
    lines = [Line(name, at_lag[:, k]) for k, name in enumerate(found.prior.joint_names)]
    plot = line_plot(
        lags * step,
        lines,
        x_label="lag [s]",
        y_label="autocorrelation",
        limits=[(-bound, bound)],
        zero=True,
    )
    figure = Figure(
        "whiteness", plot, f"dashed: ±{bound:.2g}, within which 95 % would lie if residuals were white"
    )
    white = judged.whiteness()
    rows = [
        [name, short(float(at_lag[0, k]), 2), short(float(white[k]), 3), _white_words(float(white[k]))]
        for k, name in enumerate(found.prior.joint_names)
    ]
    columns = ["joint", ">at one sample", ">largest, in parts of the bound", ""]
    table = HtmlTable(columns, rows)
    key = legend(found.prior.joint_names)
    return Section(
        "Residuals: are they white?",
        [Figure(figure.name, figure.svg, figure.caption, key), table],
    )


def _white_words(value: float) -> str:
    if value <= 1.5:
        return "white"
    return "nearly white" if value < 5 else "not white: there is more in the data than in the model"


# -- shared -----------------------------------------------------------------------------------------------------------


def _recordings(found: Identification) -> str:
    return ", ".join(f"{s.log.name} ({len(s.log)} samples)" for s in found.signals)


def _same_recordings(found: Identification) -> bool:
    fitted = [s.log for s in found.signals]
    return any(v.log is log for v in found.validations for log in fitted)


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


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
