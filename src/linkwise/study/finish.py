"""When all chunks are done: reductions and tables are written, and the journal is no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from linkwise.study import sketch
from linkwise.study.collect import Collection
from linkwise.study.errors import needed
from linkwise.study.exact import Target, quantiles
from linkwise.study.keep import Keep
from linkwise.study.plan import Plan
from linkwise.study.quantities import Quantity
from linkwise.study.store import DATA, Store, add_array, zarr_quiet
from linkwise.study.tables import parquet

_EXTREMES = {"min": (0, "smallest"), "max": (2, "largest")}
_TEXT = {"count": "number", "mean": "mean", "variance": "variance", "min": "smallest", "max": "largest"}


def finish(plan: Plan, store: Store, collection: Collection) -> None:
    """Write everything that is known only at the end."""
    with zarr_quiet():
        group = store.group()
        extremes: list[dict[str, Any]] = []
        for keep in plan.description.keeps:
            if keep.statistics:
                extremes += _statistics(plan, group, collection, keep)
            if keep.quantiles:
                _quantiles(plan, store, group, collection, keep)
            if keep.histogram:
                _histogram(plan, group, collection, keep)
        group.attrs["failures"] = dict(
            zip((f.name for f in plan.description.failures), collection.failures, strict=True)
        )
        group.attrs["chunks_set_aside"] = len(collection.aside)
        needed("zarr").consolidate_metadata(store.path / DATA)
    if extremes:
        store.write_table("extremes.parquet", parquet(_with_arguments(plan, extremes)))
    if collection.aside:
        numbers = sorted(collection.aside)
        chunks = [plan.axes.chunk(number) for number in numbers]
        columns = {
            "chunk": np.array(numbers),
            "first_point": np.array([chunk.first for chunk in chunks]),
            "points": np.array([chunk.count for chunk in chunks]),
            "error": [collection.aside[number] for number in numbers],
        }
        store.write_table("aside.parquet", parquet(columns))
    else:
        (store.path / "tables" / "aside.parquet").unlink(missing_ok=True)


# -- statistics -------------------------------------------------------------------------------------------------------


def _statistics(plan: Plan, group: Any, collection: Collection, keep: Keep) -> list[dict[str, Any]]:
    """Writes the arrays; gives a row for each extreme."""
    quantity = plan.quantity(keep.name)
    leaves, extremes, outer, axes = _moments(plan, collection, keep, quantity)
    count = leaves[..., 0]
    shape = (*outer, *quantity.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {
            "count": count,
            "mean": np.where(count > 0, leaves[..., 1], np.nan),
            "variance": np.where(count > 1, leaves[..., 2] / (count - 1), np.nan),
        }
    rows: list[dict[str, Any]] = []
    for statistic in keep.statistics:
        text = f"{_TEXT[statistic]} of {keep.name} over {'the samples' if keep.by_cell else 'all points'}"
        if statistic in found:
            values, unit = (
                found[statistic],
                {"variance": _squared(quantity.unit), "count": "1"}.get(statistic, quantity.unit),
            )
            if statistic == "count":
                values = values.astype(np.int64)
            add_array(group, f"{keep.name}_{statistic}", values.reshape(shape), axes, unit, text)
            continue
        column, _ = _EXTREMES[statistic]
        at = np.nan_to_num(extremes[..., column + 1], nan=-1.0).astype(np.int64)
        values = np.where(at >= 0, extremes[..., column], np.nan)
        add_array(group, f"{keep.name}_{statistic}", values.reshape(shape), axes, quantity.unit, text)
        add_array(
            group,
            f"{keep.name}_{statistic}_point",
            at.reshape(shape),
            axes,
            "1",
            f"number of the point of {text}",
        )
        rows += _rows(plan, keep, quantity, statistic, values, at)
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
    plan: Plan, keep: Keep, quantity: Quantity, statistic: str, values: np.ndarray, at: np.ndarray
) -> list[dict[str, Any]]:
    labels = quantity.labels(plan.robot)
    return [
        {"quantity": labels[place % quantity.size], "statistic": statistic, "value": value, "point": point}
        for place, (value, point) in enumerate(zip(values.ravel().tolist(), at.ravel().tolist(), strict=True))
        if point >= 0
    ]


def _with_arguments(plan: Plan, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows as columns, with the values of all variables at their points."""
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in rows[0]}
    points = np.array(columns["point"])
    columns["point"] = points
    names = [variable.name for variable in plan.description.variables]
    for name, values in plan.at(points, names).items():
        quantity = next(v.quantity for v in plan.description.variables if v.name == name)
        flat = values.reshape(len(points), -1).T
        columns |= dict(zip(quantity.labels(plan.robot), flat, strict=True))
    return columns


def _squared(unit: str) -> str:
    return f"({unit})²" if unit else ""


# -- quantiles and histograms -----------------------------------------------------------------------------------------


def _quantiles(plan: Plan, store: Store, group: Any, collection: Collection, keep: Keep) -> None:
    quantity = plan.quantity(keep.name)
    level = f"{keep.name}_quantile_level"
    levels = np.array(keep.quantiles)
    facts: dict[str, Any] = {"exact": True}
    if keep.by_cell:
        key, rows = plan.reduced(keep.name, "cell_quantiles")
        found = collection.by_cell(key, "quantiles")[:, rows, : len(levels)]
        shape = (*(n for _, n in plan.axes.grid), *quantity.shape, len(levels))
        axes = (*(name for name, _ in plan.axes.grid), *quantity.axes, level)
    else:
        found, facts["exact"] = _whole_quantiles(plan, group, collection, keep)
        shape, axes = (*quantity.shape, len(levels)), (*quantity.axes, level)
        if not facts["exact"]:
            facts["relative_error"] = sketch.ERROR
    over = "the samples" if keep.by_cell else "all points"
    add_array(group, level, levels, (level,), "1", f"levels of the quantiles of {keep.name}")
    name, text = f"{keep.name}_quantiles", f"quantiles of {keep.name} over {over}"
    add_array(group, name, found.reshape(shape), axes, quantity.unit, text, **facts)


def _whole_quantiles(plan: Plan, group: Any, collection: Collection, keep: Keep) -> tuple[np.ndarray, bool]:
    """(quantiles (elements, levels), whether they are exact): exact where the raw values are there to be looked at."""
    quantity = plan.quantity(keep.name)
    found = np.full((quantity.size, len(keep.quantiles)), np.nan)
    key, rows = plan.reduced(keep.name, "classes")
    whole = collection.whole(key)
    if whole is None:
        return found, False
    places = {
        (element, k): sketch.located(whole["keys"], whole["counts"], rows.start + element, level)
        for element in range(quantity.size)
        for k, level in enumerate(keep.quantiles)
    }
    known = {key: place for key, place in places.items() if place is not None}
    exact = keep.raw and keep.dtype == "float64" and not plan.by_sample(keep.name)
    if exact:
        targets = [Target(element, *place) for (element, _), place in known.items()]
        for key, value in zip(known, quantiles(lambda: _raw_chunks(plan, keep, group), targets), strict=True):
            found[key] = value
    else:
        for key, (rank, _, _) in known.items():
            found[key] = sketch.middle(rank)
    return found, exact


def _raw_chunks(plan: Plan, keep: Keep, group: Any) -> Iterator[np.ndarray]:
    """The raw values of one chunk after the other, (points, elements)."""
    axes, array = plan.axes, group[keep.name]
    for number in range(axes.chunks):
        place = axes.chunk(number).place
        box = tuple(
            slice(p * c, min(n, (p + 1) * c))
            for p, c, n in zip(place, axes.chunk_shape, axes.shape, strict=True)
        )
        yield array[box].reshape(-1, plan.quantity(keep.name).size)


def _histogram(plan: Plan, group: Any, collection: Collection, keep: Keep) -> None:
    assert keep.histogram is not None
    low, high, bins = keep.histogram
    quantity = plan.quantity(keep.name)
    key, rows = plan.reduced(keep.name, "histograms")
    whole = collection.whole(key)
    counts = (
        np.zeros((quantity.size, bins + 3), np.int64) if whole is None else whole["counts"][rows, : bins + 3]
    )
    axis = f"{keep.name}_bin"
    centres = np.array([low + (high - low) * (k + 0.5) / bins for k in range(bins)])
    add_array(group, axis, centres, (axis,), quantity.unit, f"middles of the bins of {keep.name}")
    text = f"points in each bin of {keep.name}"
    edges = {"low": low, "high": high}
    add_array(
        group,
        f"{keep.name}_histogram",
        counts[:, 1:-2].reshape(*quantity.shape, bins),
        (*quantity.axes, axis),
        "1",
        text,
        **edges,
    )
    outside = np.stack([counts[:, 0], counts[:, -2]], axis=-1).reshape(*quantity.shape, 2)
    add_array(
        group,
        f"{keep.name}_outside",
        outside,
        (*quantity.axes, "side"),
        "1",
        f"points of {keep.name} below and above the bins",
    )
