"""The printed results of ``linkwise identify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.cli.support.output import Table, number, say, show
from linkwise.identify.judging.competitors import best_competitor
from linkwise.identify.judging.verdict import NOTE, VerdictRow
from linkwise.identify.walking.result import WalkingIdentification

if TYPE_CHECKING:
    from linkwise.identify import Identification, Validation

MIXED = 1000  # a condition number from which single parameters are hardly known


def show_identification(found: Identification) -> None:
    """A table for every recording that was predicted, then a few lines about how it was done."""
    fitted = ", ".join(f"{s.log.name} ({len(s.log)} samples)" for s in found.signals)
    show(_verdict(found))
    for line in (*found.worse_than_given(), *_beside(found)):
        say(line)
    for place, judged in enumerate(found.validations):
        own = any(judged.log is s.log for s in found.signals)
        on = "the same recording" if own else f"{judged.log.name} ({len(judged.t)} samples)"
        show(_table(f"{found.prior.name} identified from {fitted}, judged on {on}", found, place))
    for line in dict.fromkeys(words for s in found.signals for words in s.record):
        say(line)
    mixed = ": the motion mixes them up, see linkwise excite" if found.excitation.condition > MIXED else ""
    say(f"{len(found.base)} base parameters, condition number {found.excitation.condition:.3g}{mixed}")
    if isinstance(found, WalkingIdentification) and found.mass.seen:  # else it is among the warnings
        say(found.mass.text)
    for torque in found.unmodelled.torques:
        say(f"unmodelled, {torque.text}")
    for line in found.ripple.lines:
        say(f"drive ripple, {line.text}")
    for each in found.network.joints:
        say(f"network, {each.text}")
    before, after = found.reduction.operations_before, found.reduction.operations
    say(
        f"reduced model: {len(found.reduction.significance.labels)} of {found.reduction.base_count} parameters, "
        f"{after.multiplications} multiplications and {after.additions} additions instead of "
        f"{before.multiplications} and {before.additions}"
    )


def _beside(found: Identification) -> list[str]:
    """The best of plain least squares on every recording, moving and standing apart, and what the model is good for."""
    lines = []
    for place, judged in enumerate(found.validations):
        best = best_competitor(found.competitors, place)
        other = best.validations[place]
        lines.append(
            f"{judged.log.name}: saved robot {_parts(judged)}; {best.text}, the best of "
            f"{len(found.competitors)}: {_parts(other)}"
        )
    fitted = all(any(judged.log is s.log for s in found.signals) for judged in found.validations)
    doubt = "; judged by what was fitted, --split or --validate tell more" if fitted else ""
    return [*lines, f"good for {', '.join(use.text for use in found.uses())} of the torque left{doubt}"]


def _parts(judged: Validation) -> str:
    """Totals of a recording; of a part that never happens nothing is said."""
    parts = [("moving", judged.total_moving), ("standing", judged.total_standing)]
    said = ", ".join(f"{name} {value:.3g} %" for name, value in parts if value == value)
    if judged.total_beyond == judged.total_beyond:
        said += f", of it beyond the range at rest {judged.total_beyond:.3g} %"
    return f"{judged.total:.3g} % ({said})"


def all_validations(found: Identification) -> list[dict[str, Any]]:
    """The main figures of every recording that was predicted, for JSON."""
    return [
        {
            "recording": judged.log.name,
            "samples": len(judged.t),
            "rms": judged.rms,
            "relative": judged.relative,
            "relative_moving": judged.moving,
            "relative_standing": judged.standing,
            "total_moving": judged.total_moving,
            "total_standing": judged.total_standing,
            "total_beyond_range_at_rest": judged.total_beyond,
            "within_range_at_rest": judged.held,
            "relative_in_band": judged.in_band,
            "total": judged.total,
            "total_prior": prior.total,
            "total_robot": judged.total,
            "total_reduced": reduced.total,
        }
        for judged, prior, reduced in zip(found.validations, found.of_prior, found.of_reduced, strict=True)
    ]


def _verdict(found: Identification) -> Table:
    """What one takes away, on every recording: saved robot, its C code, reduced model; beside the robot as given."""
    rows = [row.cells for row in found.verdict()]
    title = f"{found.prior.name}: residuals of the saved robot, its code and the reduced model"
    return Table(title, VerdictRow.columns, rows, [NOTE])


def _table(title: str, found: Identification, place: int) -> Table:
    judged, prior, reduced = found.validations[place], found.of_prior[place], found.of_reduced[place]
    rows = [
        [name, number(float(judged.rms[k]), 3), *_percents(judged, prior, reduced, k)]
        for k, name in enumerate(found.row_names)
    ]
    totals = (judged.total, float("nan"), judged.total_in_band, prior.total, reduced.total)
    rows.append(["all together", "", *map(_percent, totals)])
    columns = [
        "joint",
        ">RMS",
        ">relative",
        ">moving",
        f">below {judged.band:.3g} Hz",
        ">as given",
        ">reduced model",
    ]
    notes = [
        "100·‖τ − τ̂‖/‖τ‖ of measured and predicted torques; moving: without samples slower than 0.01 rad/s;",
        "as given: the robot before; all other columns but the last are of the saved robot;",
        "RMS: of the residuals, N·m or N",
    ]
    return Table(title, columns, rows, notes if place == len(found.validations) - 1 else ())


def _percents(judged: Validation, prior: Validation, reduced: Validation, k: int) -> list[str]:
    figures = (judged.relative, judged.moving, judged.in_band, prior.relative, reduced.relative)
    return [_percent(float(figure[k])) for figure in figures]


def _percent(value: float) -> str:
    return f"{value:.3g} %" if value == value else ""
