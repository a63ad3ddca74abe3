"""Section of the identification report: several estimators on the same recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.report.page import HtmlTable, Section, Text
from linkwise.report.svg import short

if TYPE_CHECKING:
    from linkwise.identify.estimation.estimate import Estimate
    from linkwise.identify.result import Identification

QUICK = (
    "ordinary",
    "weighted",
    "total",
    "robust",
    "ridge",
)  # a second together; instrumental variables need more


def estimators(found: Identification) -> Section:
    """Residuals of every estimator, and how many of its values lie outside the intervals of the chosen one."""
    rows, remarks, disagree = [], [], 0
    for name in dict.fromkeys((found.estimate.method, *QUICK)):
        chosen = name == found.estimate.method
        try:
            with np.errstate(divide="ignore", invalid="ignore"):  # columns that the motion does not excite
                estimate = found.estimate if chosen else found.estimates([name])[name]
        except LinkwiseError as error:  # total least squares may have no solution
            remarks.append(f"{name}: {error}")
            continue
        rows.append(_row(found, f"{name}, chosen" if chosen else name, estimate))
        remarks += [f"{name}: {note}" for note in estimate.notes]
        disagree = max(disagree, int(_outside(found, estimate).sum()))
    words = (
        "Where estimators differ by more than the intervals, the assumptions behind them matter: joints that weigh "
        "the same (ordinary), columns that are uncertain too (total), single bad samples (robust). "
    )
    words += (
        f"Here at most {disagree} of {len(found.base)} base parameters differ by so much."
        if disagree
        else "Here they agree: all values are inside the intervals of the chosen one."
    )
    columns = ["estimator", *(f">{joint}" for joint in found.row_names), ">outside"]
    notes = [
        "Per joint: residual of the filtered recording in per cent. Outside: values that are not in the 95 % interval "
        "of the chosen one.",
        *remarks,
    ]
    return Section("Do the estimators agree?", [Text(words), HtmlTable(columns, rows, notes)])


def _row(found: Identification, name: str, estimate: Estimate) -> list[str]:
    independent = found.fit.regression.pick(found.base.columns)
    left = np.linalg.norm(independent.residuals(estimate.x), axis=0) / np.linalg.norm(independent.tau, axis=0)
    outside = int(_outside(found, estimate).sum())
    return [name, *(short(100 * float(x), 3) for x in left), str(outside)]


def _outside(found: Identification, estimate: Estimate) -> np.ndarray:
    lower, upper = found.estimate.interval()
    return (estimate.x < lower) | (estimate.x > upper)
