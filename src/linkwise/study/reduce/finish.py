"""When all chunks are done: reductions and tables are written, and the journal is no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.study.plan import Plan
from linkwise.study.quantities import Quantity
from linkwise.study.reduce import sketch
from linkwise.study.reduce.collect import Collection
from linkwise.study.reduce.exact import Quantile, quantiles
from linkwise.study.reduce.keep import Keep
from linkwise.study.store.folder import TABLES, ArrayFiles, Store, read_study
from linkwise.study.store.tables import parquet

_EXTREMES = {"min": (0, "smallest"), "max": (2, "largest")}
_TEXT = {"count": "number", "mean": "mean", "variance": "variance", "min": "smallest", "max": "largest"}


def finished(plan: Plan, store: Store, collection: Collection) -> dict[str, bytes]:
    """The content of every file that is known only at the end, by its name."""
    sets = [failure.name for failure in plan.description.failures]
    attributes: dict[str, Any] = {
        "failures": dict(zip(sets, collection.failures, strict=True)),
        "chunks_set_aside": len(collection.aside),
        "points_failed": sum(collection.errors.values()),
    }
    if any(collection.unknown):
        attributes["failures_left_out"] = dict(zip(sets, collection.unknown, strict=True))
    if accepted := read_study(store.path).get("accepted_changes"):
        attributes["accepted_changes"] = accepted
    arrays = store.arrays(**attributes)
    extremes: list[dict[str, Any]] = []
    for keep in plan.description.keeps:
        if not (keep.statistics or keep.quantiles or keep.histogram):
            continue
        span = Span.of(plan, collection, keep)
        if keep.statistics:
            extremes += _statistics(plan, arrays, collection, keep, span)
        if keep.quantiles:
            _quantiles(plan, store, arrays, collection, keep, span)
        if keep.histogram:
            _histogram(plan, arrays, collection, keep, span)
        span.add_array(plan, arrays, keep)
    content = arrays.files()
    if extremes:
        content[f"{TABLES}/extremes.parquet"] = parquet(_with_arguments(plan, extremes))
    if collection.aside:
        content[f"{TABLES}/aside.parquet"] = parquet(_aside(plan, collection.aside))
    return content


def _aside(plan: Plan, aside: dict[int, str]) -> dict[str, Any]:
    numbers = sorted(aside)
    chunks = [plan.axes.chunk(number) for number in numbers]
    return {
        "chunk": np.array(numbers),
        "first_point": np.array([chunk.first for chunk in chunks]),
        "points": np.array([chunk.count for chunk in chunks]),
        "error": [aside[number] for number in numbers],
    }


# -- statistics -------------------------------------------------------------------------------------------------------


def _statistics(
    plan: Plan, arrays: ArrayFiles, collection: Collection, keep: Keep, span: Span
) -> list[dict[str, Any]]:
    """Writes the arrays; gives a row for each extreme."""
    quantity = plan.quantity(keep.name)
    leaves, extremes, outer, axes = _moments(plan, collection, keep, quantity)
    count = leaves[..., 0]
    shape = (*outer, *quantity.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = {
            "count": count,
            "mean": np.where(count > 0, leaves[..., 1], np.nan),
            "variance": np.where(count > 1, leaves[..., 2] / (count - 1), np.nan),
        }
    rows: list[dict[str, Any]] = []
    for statistic in keep.statistics:
        text = f"{_TEXT[statistic]} of {keep.name} over {span.text}"
        if statistic in statistics:
            values, unit = (
                statistics[statistic],
                {"variance": _square_of_unit(quantity.unit), "count": "1"}.get(statistic, quantity.unit),
            )
            if statistic == "count":
                values = np.nan_to_num(values).astype(np.int64)
            name = f"{keep.name}_{statistic}"
            arrays.add(name, values.reshape(shape), axes, unit, text, **span.facts)
            continue
        column, _ = _EXTREMES[statistic]
        at = np.nan_to_num(extremes[..., column + 1], nan=-1.0).astype(np.int64)
        values = np.where(at >= 0, extremes[..., column], np.nan)
        name = f"{keep.name}_{statistic}"
        arrays.add(name, values.reshape(shape), axes, quantity.unit, text, **span.facts)
        where = f"number of the point of {text}"
        arrays.add(f"{name}_point", at.reshape(shape), axes, "1", where, **span.facts)
        rows += _rows(plan, quantity, statistic, values, at, span)
    return rows


def _moments(plan: Plan, collection: Collection, keep: Keep, quantity: Quantity):
    """(leaves, extremes, lengths and names of the axes): (..., elements, 3) and (..., elements, 4)."""
    if keep.by_cell:
        key, rows = plan.reduced(keep.name, "cell_moments")
        try:
            leaves, extremes = (collection.by_cell(key, part)[:, rows] for part in ("leaves", "extremes"))
        except LookupError:
            leaves, extremes = (np.full((plan.axes.cells, quantity.size, n), np.nan) for n in (3, 4))
        outer = tuple(n for _, n in plan.axes.grid)
        return leaves, extremes, outer, (*(name for name, _ in plan.axes.grid), *quantity.axes)
    key, rows = plan.reduced(keep.name, "moments")
    whole = collection.whole(key)
    if whole is None:
        return np.zeros((quantity.size, 3)), np.full((quantity.size, 4), -1.0), (), quantity.axes
    return whole["leaves"][rows], whole["extremes"][rows], (), quantity.axes


def _rows(
    plan: Plan, quantity: Quantity, statistic: str, values: np.ndarray, at: np.ndarray, span: Span
) -> list[dict[str, Any]]:
    labels = quantity.labels(plan.robot)
    entries = zip(values.ravel().tolist(), at.ravel().tolist(), span.left_out.ravel().tolist(), strict=True)
    return [
        {
            "quantity": labels[place % quantity.size],
            "statistic": statistic,
            "value": value,
            "point": point,
            "points_left_out": left_out,
        }
        for place, (value, point, left_out) in enumerate(entries)
        if point >= 0
    ]


def _with_arguments(plan: Plan, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows as columns, with the values of all variables at their points."""
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in rows[0]}
    columns["point"] = np.array(columns["point"])
    return columns | plan.variables_at(columns["point"])


def _square_of_unit(unit: str) -> str:
    return f"({unit})²" if unit else ""


# -- quantiles and histograms -----------------------------------------------------------------------------------------


def _quantiles(
    plan: Plan, store: Store, arrays: ArrayFiles, collection: Collection, keep: Keep, span: Span
) -> None:
    quantity = plan.quantity(keep.name)
    level = f"{keep.name}_quantile_level"
    levels = np.array(keep.quantiles)
    facts: dict[str, Any] = {"exact": True}
    if keep.by_cell:
        key, rows = plan.reduced(keep.name, "cell_quantiles")
        try:
            quantiles = collection.by_cell(key, "quantiles")[:, rows, : len(levels)]
        except LookupError:
            quantiles = np.full((plan.axes.cells, quantity.size, len(levels)), np.nan)
        shape = (*(n for _, n in plan.axes.grid), *quantity.shape, len(levels))
        axes = (*(name for name, _ in plan.axes.grid), *quantity.axes, level)
    else:
        quantiles, facts["exact"] = _whole_quantiles(plan, store, collection, keep)
        shape, axes = (*quantity.shape, len(levels)), (*quantity.axes, level)
        if not facts["exact"]:
            facts["relative_error"] = sketch.ERROR
    arrays.add(level, levels, (level,), "1", f"levels of the quantiles of {keep.name}")
    name, text = f"{keep.name}_quantiles", f"quantiles of {keep.name} over {span.text}"
    arrays.add(name, quantiles.reshape(shape), axes, quantity.unit, text, **facts, **span.facts)


def _whole_quantiles(plan: Plan, store: Store, collection: Collection, keep: Keep) -> tuple[np.ndarray, bool]:
    """(quantiles (elements, levels), whether they are exact): exact where the raw values are kept."""
    quantity = plan.quantity(keep.name)
    levels = np.full((quantity.size, len(keep.quantiles)), np.nan)
    key, rows = plan.reduced(keep.name, "classes")
    whole = collection.whole(key)
    if whole is None:
        return levels, False
    places = {
        (element, k): sketch.located(whole["keys"], whole["counts"], rows.start + element, level)
        for element in range(quantity.size)
        for k, level in enumerate(keep.quantiles)
    }
    known = {key: place for key, place in places.items() if place is not None}
    exact = keep.raw and keep.dtype == "float64" and not plan.by_sample(keep.name)
    if exact:
        targets = [Quantile(element, *place) for (element, _), place in known.items()]
        for key, value in zip(known, quantiles(lambda: _raw_chunks(plan, keep, store), targets), strict=True):
            levels[key] = value
    else:
        for key, (rank, _, _) in known.items():
            levels[key] = sketch.middle(rank)
    return levels, exact


def _raw_chunks(plan: Plan, keep: Keep, store: Store) -> Iterator[np.ndarray]:
    """The raw values of one chunk after the other, (points, elements)."""
    axes, array = plan.axes, store.raw(keep.name)
    for number in range(axes.chunks):
        place = axes.chunk(number).place
        box = tuple(
            slice(p * c, min(n, (p + 1) * c))
            for p, c, n in zip(place, axes.chunk_shape, axes.shape, strict=True)
        )
        yield array[box].reshape(-1, plan.quantity(keep.name).size)


def _histogram(plan: Plan, arrays: ArrayFiles, collection: Collection, keep: Keep, span: Span) -> None:
    assert keep.histogram is not None
    low, high, bins = keep.histogram
    quantity = plan.quantity(keep.name)
    counts = _histogram_counts(plan, collection, keep)
    axis = f"{keep.name}_bin"
    centres = np.array([low + (high - low) * (k + 0.5) / bins for k in range(bins)])
    arrays.add(axis, centres, (axis,), quantity.unit, f"middles of the bins of {keep.name}")
    arrays.add(
        f"{keep.name}_histogram",
        counts[:, 1:-2].reshape(*quantity.shape, bins),
        (*quantity.axes, axis),
        "1",
        f"points in each bin of {keep.name}, of {span.text}",
        low=low,
        high=high,
        **span.facts,
    )
    outside = np.stack([counts[:, 0], counts[:, -2]], axis=-1).reshape(*quantity.shape, 2)
    text = f"points of {keep.name} below and above the bins, of {span.text}"
    arrays.add(f"{keep.name}_outside", outside, (*quantity.axes, "side"), "1", text, **span.facts)


def _histogram_counts(plan: Plan, collection: Collection, keep: Keep) -> np.ndarray:
    """(elements, below, the bins, above, not a number)."""
    assert keep.histogram is not None
    key, rows = plan.reduced(keep.name, "histograms")
    whole, columns = collection.whole(key), keep.histogram[2] + 3
    if whole is None:
        return np.zeros((plan.quantity(keep.name).size, columns), np.int64)
    return whole["counts"][rows, :columns]


# -- which points a reduction is over ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """The points that the reductions of a quantity are over: all but those that failed or gave NaN."""

    total: int
    """Points, or samples at each combination of the grids."""
    left_out: np.ndarray
    """Points that are not among them, (..., elements)."""
    by_cell: bool

    @classmethod
    def of(cls, plan: Plan, collection: Collection, keep: Keep) -> Span:
        total = plan.axes.per_cell if keep.by_cell else plan.axes.points
        used = np.nan_to_num(_point_counts(plan, collection, keep)).astype(np.int64)
        return cls(total, total - used, keep.by_cell)

    @property
    def facts(self) -> dict[str, Any]:
        """What marks an array: how many points it leaves out at most; nothing if none."""
        most = int(self.left_out.max(initial=0))
        return {"points_left_out": most} if most else {}

    @property
    def text(self) -> str:
        if not self.facts:
            return "the samples" if self.by_cell else "all points"
        fewest, most = self.total - int(self.left_out.max()), self.total - int(self.left_out.min())
        used = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        return f"{used} of {self.total} {'samples' if self.by_cell else 'points'}"

    def add_array(self, plan: Plan, arrays: ArrayFiles, keep: Keep) -> None:
        """How many points are left out of each number, if any are."""
        if not self.facts:
            return
        quantity, grid = plan.quantity(keep.name), plan.axes.grid if self.by_cell else ()
        shape = (*(n for _, n in grid), *quantity.shape)
        axes = (*(name for name, _ in grid), *quantity.axes)
        text = f"points that failed or gave NaN, left out of what is kept of {keep.name}"
        arrays.add(f"{keep.name}_left_out", self.left_out.reshape(shape), axes, "1", text)


def _point_counts(plan: Plan, collection: Collection, keep: Keep) -> np.ndarray:
    """Points that count, (..., elements)."""
    quantity = plan.quantity(keep.name)
    if keep.statistics:
        return _moments(plan, collection, keep, quantity)[0][..., 0]
    if keep.histogram:
        return _histogram_counts(plan, collection, keep)[:, :-1].sum(axis=1)
    if keep.by_cell:
        key, rows = plan.reduced(keep.name, "cell_quantiles")
        try:
            return collection.by_cell(key, "counts")[:, rows]
        except LookupError:
            return np.zeros((plan.axes.cells, quantity.size))
    key, rows = plan.reduced(keep.name, "classes")
    whole = collection.whole(key)
    if whole is None:
        return np.zeros(quantity.size)
    return np.array(
        [sketch.total(whole["keys"], whole["counts"], row) for row in range(rows.start, rows.stop)]
    )
