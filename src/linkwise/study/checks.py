"""Checks across entries of a study: unknown names, draws that are not used."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.errors import suggest
from linkwise.study.description import Description
from linkwise.study.errors import StudyError
from linkwise.study.quantities import JOINT, Quantity
from linkwise.study.sampling.axes import Axes
from linkwise.study.steps.formula import FormulaStep
from linkwise.study.tracing import Trace


def of_flags(flags: Sequence[FormulaStep], known: Sequence[str]) -> None:
    """That the formulas of failures use names that there are."""
    for flag in flags:
        for name in flag.takes:
            if name not in known:
                where = flag.expression.where
                raise StudyError(
                    f"{where}: needs {name}, which is neither varied nor computed; {suggest(name, known)}"
                )


def of_names(description: Description, trace: Trace, known: Sequence[str]) -> None:
    """That what is kept exists, and that every variable changes something."""
    for keep in description.keeps:
        if keep.name not in known:
            raise StudyError(f"keep.{keep.name}: neither varied nor computed; {suggest(keep.name, known)}")
    for failure in description.failures:
        for name in failure.keep:
            if name not in known:
                raise StudyError(f"failures.{failure.name}.keep: no {name!r}; {suggest(name, known)}")
    used = {name for step in (*trace.steps, *trace.later) for name in step.takes}
    used |= {keep.name for keep in description.keeps}
    for v in description.variables:
        if v.name not in used and not (v.element and v.element[0] in used):
            computed = ", ".join(step.name for step in description.steps) or "nothing"
            raise StudyError(f"vary.{v.name}: nothing uses it; computed: {computed}")


def of_cells(description: Description, axes: Axes) -> None:
    """That quantiles at each combination of the grids find all their samples in one chunk."""
    whole = axes.samples is None or axes.chunk_shape[-1] == axes.samples
    for keep in description.keeps:
        if keep.by_cell and keep.quantiles and not whole:
            raise StudyError(
                f"keep.{keep.name}.quantiles: quantiles at each grid point need all its samples in one chunk; "
                f"give chunk = {axes.samples} or more"
            )


def of_arrays(description: Description, quantities: Sequence[Quantity]) -> None:
    """That no two arrays of the store have one name."""
    owners: dict[str, str] = {JOINT: "the joints"}
    owners |= {q.axes[0]: f"the parameters of {q.name}" for q in quantities if q.entries}
    owners |= {v.name: f"the axis vary.{v.name}" for v in description.variables if v.kind == "grid"}
    for keep in description.keeps:
        for name in keep.arrays():
            if name in owners:
                raise StudyError(f"keep.{keep.name}: the array {name} would also be that of {owners[name]}")
            owners[name] = f"keep.{keep.name}"
