"""What is kept of a quantity: raw arrays, statistics, quantiles, histograms; and the sets of points that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.errors import suggest
from linkwise.study.errors import StudyError
from linkwise.study.schema import StudySettings, file_name, numbers

STATISTICS = ("count", "mean", "variance", "min", "max")
OVER = ("all", "sample")
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Keep:
    """What is kept of one quantity; ``over`` are the points that a reduction is taken over: all, or the samples at each
    combination of the grids."""

    name: str
    raw: bool = False
    dtype: str = "float64"
    statistics: tuple[str, ...] = ()
    quantiles: tuple[float, ...] = ()
    histogram: tuple[float, float, int] | None = None
    over: str = "all"

    @property
    def by_cell(self) -> bool:
        return self.over == "sample"

    def arrays(self) -> list[str]:
        """Names of the arrays that it may become."""
        endings = list(self.statistics)
        endings += [f"{entry}_point" for entry in self.statistics if entry in ("min", "max")]
        endings += ["quantiles", "quantile_level"] if self.quantiles else []
        endings += ["histogram", "outside", "bin"] if self.histogram else []
        endings += ["left_out"] if endings else []
        return [*([self.name] if self.raw else []), *(f"{self.name}_{ending}" for ending in endings)]


@dataclass(frozen=True)
class Failure:
    """A set of points: those at which a formula holds, with the values of some quantities there."""

    name: str
    when: str
    keep: tuple[str, ...]

    @property
    def flag(self) -> str:
        """The name under which the formula is computed."""
        return f"failure:{self.name}"


def read(table: Mapping[str, Any]) -> list[Keep]:
    """The table ``keep``."""
    return [_one(name, value) for name, value in table.items()]


def _one(name: str, value: Any) -> Keep:
    path = f"keep.{name}"
    file_name(name, path)
    if value == "raw":
        value = {"raw": True}
    elif isinstance(value, str):
        value = [value]
    if isinstance(value, (list, tuple)):
        listed = [str(entry) for entry in value]
        value = {"statistics": [s for s in listed if s != "raw"], "raw": "raw" in listed}
    if not isinstance(value, Mapping):
        raise StudyError(f'{path}: expected a table, a list of statistics or "raw", got {value!r}')
    table = StudySettings(value, path)
    statistics = tuple(table.get("statistics", list, []))
    for entry in statistics:
        if entry not in STATISTICS:
            raise table.fail("", f"no statistic {entry!r}; {suggest(str(entry), ('raw', *STATISTICS))}")
    keep = Keep(
        name,
        table.get("raw", bool, False),
        table.choice("dtype", DTYPES, "float64"),
        statistics,
        _quantiles(table),
        _histogram(table),
        table.choice("over", OVER, "all"),
    )
    table.finish()
    if not (keep.raw or keep.statistics or keep.quantiles or keep.histogram):
        raise StudyError(f"{path}: nothing is kept; give raw, statistics, quantiles or histogram")
    if keep.by_cell and keep.histogram:
        raise table.fail("histogram", 'a histogram is taken over all points; use over = "all"')
    return keep


def _quantiles(table: StudySettings) -> tuple[float, ...]:
    if "quantiles" not in table:
        return ()
    levels = numbers(table.raw("quantiles"), table.where("quantiles"))
    for level in levels:
        if not 0.0 <= level <= 1.0:
            raise table.fail("quantiles", f"expected numbers from 0 to 1, got {level:g}")
    return tuple(levels)


def _histogram(table: StudySettings) -> tuple[float, float, int] | None:
    if "histogram" not in table:
        return None
    inner = StudySettings(table.get("histogram", dict), table.where("histogram"))
    low, high, bins = inner.get("low", float), inner.get("high", float), inner.whole("bins", 1)
    inner.finish()
    if not low < high:
        raise inner.fail("low", f"expected low < high, got {low:g} and {high:g}")
    return low, high, bins


def read_failures(table: Mapping[str, Any], everything: Iterable[str]) -> list[Failure]:
    """The table ``failures``; without ``keep`` the values of all variables are kept."""
    names = []
    for name, value in table.items():
        file_name(name, f"failures.{name}")
        inner = StudySettings({"when": value} if isinstance(value, str) else value, f"failures.{name}")
        keep = tuple(str(entry) for entry in inner.get("keep", list, list(everything)))
        names.append(Failure(name, inner.get("when", str), keep))
        inner.finish()
    return names
