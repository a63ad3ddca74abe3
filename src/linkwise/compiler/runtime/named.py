"""Inputs whose numbers have names: dictionaries, tables of pandas and Polars, arrays of xarray, structured arrays.

They are matched by name and never by position. Results with one number per name are given back in the same form: a
DataFrame for DataFrames, a DataArray for DataArrays; dictionaries and all other results give plain arrays.
"""

# pyright: standard
from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.errors import DtypeError, ShapeError, UnknownNameError

MAPPING, TABLE, SERIES, LABELLED, RECORDS = (
    "dictionary",
    "table",
    "series",
    "labelled array",
    "structured array",
)
SHOWN = 40  # names in a message

Labels = Sequence[str]


@functools.cache
def _kind_of_type(cls: type) -> str | None:
    if hasattr(cls, "to_numpy") and hasattr(cls, "columns"):
        return TABLE
    if hasattr(cls, "to_numpy") and hasattr(cls, "index") and hasattr(cls, "loc"):
        return SERIES
    if hasattr(cls, "coords") and hasattr(cls, "dims"):
        return LABELLED
    return MAPPING if issubclass(cls, Mapping) else None


def kind(value: Any) -> str | None:
    """What names the numbers of an input; None for plain numbers."""
    if type(value) is np.ndarray:
        return RECORDS if value.dtype.names else None
    return _kind_of_type(type(value))


def any_named(values: Iterable[Any]) -> bool:
    return any(kind(value) is not None for value in values)


def refuse(what: str, value: Any) -> None:
    """Raise where the names of an input could only be ignored."""
    if (found := kind(value)) is not None:
        raise DtypeError(
            f"{what}: the numbers of this {found} ({type(value).__name__}) have names, and it is not known here which "
            f"joints they are for; give an array in the order of robot.joint_names"
        )


class Unnamed:
    """Inputs as plain arrays in the order of their labels, and the form in which results are given back.

    ``given``: name, value and labels of every input; labels None where its numbers have no names.
    """

    def __init__(self, given: Iterable[tuple[str, Any, Labels | None]]):
        self._tables: list[tuple[str, Any]] = []
        self._series: list[Any] = []
        self._labelled: list[
            tuple[int, Any, str]
        ] = []  # place, the array in the order of its labels, its dimension
        self.arrays: list[Any] = []
        for what, value, labels in given:
            if kind(value) is None:
                self.arrays.append(value)
            elif labels is None:
                refuse(what, value)
            else:
                self.arrays.append(self._plain(what, value, labels))
        self._align_tables()
        self._align_labelled()

    def _plain(self, what: str, value: Any, labels: Labels) -> Any:
        found = kind(value)
        if found == TABLE:
            order = matched(what, value, [*value.columns], labels)
            self._tables.append((what, value))
            return _table_numbers(what, value, order)
        if found == SERIES:
            order = matched(what, value, [*value.index], labels)
            self._series.append(value)
            return np.asarray(value.to_numpy())[order]
        if found == LABELLED:
            array, dimension = _ordered(what, value, labels)
            self._labelled.append((len(self.arrays), array, dimension))
            return array
        names = [*value.dtype.names] if found == RECORDS else [*value]
        matched(what, value, names, labels)
        return _stacked(what, value, labels)

    def _align_tables(self) -> None:
        indexed = [(what, table.index) for what, table in self._tables if hasattr(table, "index")]
        for what, index in indexed[1:]:
            if not index.equals(indexed[0][1]):
                raise ShapeError(
                    f"{indexed[0][0]} and {what}: the rows of these tables have different labels (index)"
                )

    def _align_labelled(self) -> None:
        """Bring arrays of xarray to the same leading dimensions, by their names."""
        if not self._labelled:
            return
        xarray = sys.modules["xarray"]
        own = {dimension for _, _, dimension in self._labelled}
        try:
            arrays = xarray.align(*(array for _, array, _ in self._labelled), join="exact", exclude=own)
        except ValueError as error:
            raise ShapeError(f"coordinates of the inputs differ: {error}") from None
        arrays = xarray.broadcast(*arrays, exclude=own)
        for (place, _, dimension), array in zip(self._labelled, arrays, strict=True):
            leading = [name for name in arrays[0].dims if name not in own]
            self.arrays[place] = array.transpose(*leading, dimension).to_numpy()

    def dressed(self, result: Any, labels: Labels | None) -> Any:
        """A result with one number per label in the form of the inputs."""
        if labels is None or not isinstance(result, np.ndarray):
            return result
        if self._labelled:
            return self._as_labelled(result, labels)
        if self._tables and result.ndim == 2 and len(result) == len(self._tables[0][1]):
            table = self._tables[0][1]
            if not hasattr(table, "index"):  # Polars
                return type(table)(result, schema=list(labels))
            return sys.modules["pandas"].DataFrame(result, index=table.index, columns=list(labels))
        if self._series and not self._tables and result.ndim == 1:
            return sys.modules["pandas"].Series(result, index=list(labels))
        return result

    def _as_labelled(self, result: np.ndarray, labels: Labels) -> Any:
        _, first, dimension = self._labelled[0]
        sizes = {
            name: size
            for _, array, own in self._labelled
            for name, size in array.sizes.items()
            if name != own
        }
        if result.shape[:-1] != tuple(sizes.values()):
            return result
        coordinates = {
            name: array.coords[name]
            for _, array, own in self._labelled
            for name in array.coords
            if name != own and own not in array.coords[name].dims
        }
        return type(first)(result, dims=(*sizes, dimension), coords={**coordinates, dimension: list(labels)})


def numbers(what: str, value: Any, labels: Labels) -> Any:
    """One input as a plain array in the order of its labels; other values as they are."""
    return Unnamed([(what, value, labels)]).arrays[0]


def matched(what: str, value: Any, names: Sequence[Any], labels: Labels) -> list[int]:
    """Where each label is among the names; an error lists those that are missing, unknown or there twice."""
    places = {name: k for k, name in enumerate(names)}
    missing, unknown = [x for x in labels if x not in places], [x for x in names if x not in set(labels)]
    if missing and len(missing) == len(labels):
        raise UnknownNameError(
            f"{what}: none of the names of this {type(value).__name__} ({_listed(names)}) is one of {_listed(labels)}; "
            f"name them so, or give an array in the order of robot.joint_names"
        )
    if missing or unknown:
        parts = [f"no {_listed(missing)}"] * bool(missing) + [f"unknown: {_listed(unknown)}"] * bool(unknown)
        raise UnknownNameError(f"{what}: {'; '.join(parts)}; expected {_listed(labels)}")
    if len(places) != len(names):
        twice = [name for name in labels if list(names).count(name) > 1]
        raise UnknownNameError(f"{what}: several columns are named {_listed(twice)}")
    return [places[label] for label in labels]


def _listed(names: Iterable[Any]) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:SHOWN]) + (f", … ({len(names)} in all)" if len(names) > SHOWN else "") or "none"


def _table_numbers(what: str, table: Any, order: list[int]) -> np.ndarray:
    numbers = table.to_numpy()
    if numbers.dtype.kind not in "biuf":
        raise DtypeError(f"{what}: expected real numbers in the table, got columns of {numbers.dtype}")
    return np.ascontiguousarray(numbers[:, order])


def _stacked(what: str, value: Any, labels: Labels) -> np.ndarray:
    """The values of a dictionary, numbers or arrays that broadcast together, along a new last axis."""
    arrays = [np.asarray(value[label]) for label in labels]
    try:
        return np.stack(np.broadcast_arrays(*arrays), axis=-1)
    except ValueError:
        shapes = ", ".join(f"{label} {array.shape}" for label, array in zip(labels, arrays, strict=True))
        raise ShapeError(f"{what}: the values do not broadcast together: {shapes}") from None


def _ordered(what: str, value: Any, labels: Labels) -> tuple[Any, str]:
    """An array of xarray in the order of the labels, and the dimension that has them as its coordinate."""
    if hasattr(value, "data_vars"):  # a Dataset: one variable per joint
        matched(what, value, [*value.data_vars], labels)
        value = value.to_dataarray("joint")
    known = set(labels)
    for dimension in value.dims:
        names = [*value.coords[dimension].to_numpy().tolist()] if dimension in value.coords else []
        if known.intersection(name for name in names if isinstance(name, str)):
            return value.isel({dimension: matched(what, value, names, labels)}), dimension
    raise UnknownNameError(
        f"{what}: no dimension of this {type(value).__name__} ({', '.join(map(str, value.dims)) or 'none'}) has a "
        f"coordinate with the names {_listed(labels)}"
    )
