"""Results of many calls beside those of before: whatever changes a number, a status or a sentence is noticed.

Other tests say why a result is right. They judge single properties, and a changed line often keeps them: of faults put
in at random a third went unnoticed for this reason, although the lines were run. Results of Linkwise have the same bits
on every processor, so they can simply be kept. A scenario returns everything that its calls gave; this file keeps it in
``tests/recorded_results/PART.json`` and compares.

    LINKWISE_RECORD=1 pytest tests/control/test_recorded.py

writes the file again. Do so only after a change that is meant to change results, and read the difference in git: it
names each scenario and each quantity.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

FOLDER = Path(__file__).parent / "recorded_results"
RENEW = "LINKWISE_RECORD"
TOLERANCE = 1e-8
"""Of the largest number of an array. Kernels repeat their bits; sums by NumPy and BLAS differ between processors."""
SHORT = 24
"""Arrays of at most so many numbers are kept whole, longer ones as their range and weighted sums."""
SUMS = 4
TINY = 1e-9
"""Sums of magnitudes up to this are rounding errors."""


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of a result by their path: arrays, numbers, texts; fields of data classes and named tuples by name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, Mapping):
        parts = [flat(part, f"{name}.{key}" if name else str(key)) for key, part in value.items()]
        return {key: leaf for part in parts for key, leaf in part.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and not _is_numbers(value):
        return flat(dict(enumerate(value)), name)
    return {name: value}


def everything(value: Any) -> Any:
    """Fields and public properties of a result and of all results in it, robots as texts and numbers.

    Functions and objects of other kinds are left out.
    """
    if isinstance(value, lw.Robot):
        texts, numbers = _content(value.content())
        return {"texts": texts, "numbers": numbers}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, Mapping):
        return {key: everything(part) for key, part in value.items() if _is_kept(part)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and not _is_numbers(value):
        return {str(place): everything(part) for place, part in enumerate(value) if _is_kept(part)}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
    members = inspect.getmembers(type(value), lambda member: isinstance(member, property))
    names += [name for name, _ in members if not name.startswith("_") and name not in names]
    parts = {name: getattr(value, name) for name in names}
    return {name: everything(part) for name, part in parts.items() if _is_kept(part)}


def told(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The error of a call as text: a scenario of errors is a table of wrong calls."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def warned(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, str]:
    """The result of a call, and its warnings as one text."""
    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("always")
        result = function(*args, **options)
    return result, "\n".join(f"{each.category.__name__}: {each.message}" for each in kept)


def _is_kept(value: Any) -> bool:
    plain = value is None or isinstance(value, str | bool | np.bool_ | lw.Robot | Mapping | Sequence)
    return plain or (dataclasses.is_dataclass(value) and not isinstance(value, type)) or _is_numbers(value)


def _content(content: Any) -> tuple[str, list[float]]:
    """Texts and numbers of nested tuples; poses are bytes there."""
    if isinstance(content, bytes):
        return "", np.frombuffer(content).tolist()
    if content is None or isinstance(content, str):
        return f"{content} ", []
    if isinstance(content, int | float | np.number):
        return "", [float(content)]
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        content = tuple(getattr(content, field.name) for field in dataclasses.fields(content))
    items = content.items() if isinstance(content, Mapping) else content
    parts = [_content(part) for part in items]
    return "".join(text for text, _ in parts), [x for _, numbers in parts for x in numbers]


def packed(value: Any) -> dict[str, Any]:
    """A few numbers for each array below a value, for results that have hundreds of them, and all their texts."""
    leaves = flat(value)
    texts = [f"{name}={leaf}" for name, leaf in leaves.items() if leaf is None or isinstance(leaf, str)]
    arrays = {name: leaf for name, leaf in leaves.items() if leaf is not None and not isinstance(leaf, str)}
    rows = [_proportions(np.asarray(leaf, dtype=np.float64)) for leaf in arrays.values()]
    return {"texts": "\n".join([*texts, *arrays]), "numbers": [x for row in rows for x in row]}


def _proportions(array: np.ndarray) -> list[float]:
    """The size of an array, how its numbers share it, and how many there are: no array drowns beside larger ones."""
    kept = np.where(np.isfinite(array), array, 0.0).ravel()
    size = math.fsum(np.abs(kept).tolist())
    share = math.fsum((_weights(kept.size, 0) * kept).tolist()) / size if size > TINY else 0.0
    odd = float((~np.isfinite(array)).sum())
    return [math.log10(size) if size > TINY else 0.0, share, math.log(1.0 + kept.size), odd]


def _is_numbers(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # rows of different lengths
        return False


def summary(value: Any) -> Any:
    """What is kept of a leaf: short arrays and texts whole, long ones in a few numbers."""
    if value is None or isinstance(value, str | bool | np.bool_):
        text = value if not isinstance(value, np.bool_) else bool(value)
        return text if not isinstance(text, str) or len(text) <= 400 else _shortened(text)
    if not _is_numbers(value):
        raise TypeError(f"a scenario returned {type(value).__name__}: return its numbers, texts or fields")
    array = np.asarray(value, dtype=np.float64)
    if array.size <= SHORT:
        return {"shape": list(array.shape), "values": [_number(x) for x in array.ravel()]}
    kept = np.where(np.isfinite(array), array, 0.0).ravel()
    odd = {name: int(found(array).sum()) for name, found in (("nan", np.isnan), ("inf", np.isinf))}
    sums = [math.fsum((_weights(kept.size, k) * kept).tolist()) for k in range(SUMS)]
    row = {"shape": list(array.shape), "range": [_number(kept.min()), _number(kept.max())]}
    return (
        row
        | {"sums": [_number(x) for x in sums], "size": _number(float(np.abs(kept).sum()))}
        | {name: count for name, count in odd.items() if count}
    )


def _shortened(text: str) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"characters": len(text), "sha256": digest, "begins": text[:80]}


def _number(value: float) -> float | str:
    """12 digits; JSON has no infinity."""
    return float(f"{value:.12g}") if math.isfinite(value) else repr(float(value))


def _weights(count: int, turn: int) -> np.ndarray:
    """Numbers between -1/2 and 1/2 that look random and are the same everywhere."""
    mixed = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761 + 2 * turn)) % np.uint64(2**32)
    mixed = ((mixed ^ (mixed >> np.uint64(15))) * np.uint64(2246822519)) % np.uint64(2**32)
    return mixed.astype(np.float64) / 2**32 - 0.5


def difference(kept: Any, now: Any, tolerance: float) -> str:
    """What differs between two summaries, or nothing."""
    if not (isinstance(kept, dict) and isinstance(now, dict)) or "shape" not in kept or "shape" not in now:
        return "" if kept == now else f"was {kept!r}, is {now!r}"
    if kept["shape"] != now["shape"]:
        return f"had the shape {kept['shape']}, has {now['shape']}"
    for name in sorted({*kept, *now} - {"shape"}):
        before, after = (np.array(_floats(row.get(name, 0.0))) for row in (kept, now))
        scale = _scale(kept, name)
        equal = np.isclose(before, after, rtol=0.0, atol=tolerance * scale, equal_nan=True)
        if not equal.all():
            return f"{name}: was {before.tolist()}, is {after.tolist()} (equal to {tolerance * scale:.1e} wanted)"
    return ""


def _scale(kept: dict[str, Any], name: str) -> float:
    if name in ("nan", "inf"):
        return 0.0
    if name in ("sums", "size"):
        return float(kept["size"]) + 1e-6
    values = [abs(x) for x in _floats(kept.get("values", kept.get("range"))) if math.isfinite(x)]
    return max(values, default=0.0) + 1e-6


def _floats(values: Any) -> list[float]:
    return [float(x) for x in (values if isinstance(values, list) else [values])]


def compare(part: str, name: str, results: Any, tolerance: float = TOLERANCE) -> None:
    """Fail where a result differs from the one that is kept; keep it where records are renewed."""
    now = {path: summary(leaf) for path, leaf in sorted(flat(results).items())}
    if os.environ.get(RENEW):
        _keep(part, name, now)
        return
    kept = _read(part).get(name)
    assert kept is not None, f"{part}.json has no record of {name}: {RENEW}=1 pytest writes it"
    lines = [f"{path}: is missing now" for path in kept if path not in now]
    lines += [f"{path}: is new" for path in now if path not in kept]
    for path in kept.keys() & now.keys():
        if told := difference(kept[path], now[path], tolerance):
            lines.append(f"{path}: {told}")
    assert not lines, f"{name} gives other results than recorded:\n" + "\n".join(sorted(lines))


def _read(part: str) -> dict[str, dict[str, Any]]:
    file = FOLDER / f"{part}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _keep(part: str, name: str, now: dict[str, Any]) -> None:
    FOLDER.mkdir(exist_ok=True)
    rows = dict(sorted((_read(part) | {name: now}).items()))
    lines = [
        f" {json.dumps(scenario)}: {{\n"
        + ",\n".join(f"  {json.dumps(path)}: {json.dumps(leaf)}" for path, leaf in sorted(row.items()))
        + "\n }"
        for scenario, row in rows.items()
    ]
    temporary = FOLDER / f".{part}.json"
    temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    temporary.replace(FOLDER / f"{part}.json")


class Scenarios:
    """The scenarios of one part; ``test = scenarios.test()`` at the end of a module makes a test of each."""

    def __init__(self, part: str):
        self.part = part
        self.functions: dict[str, tuple[Callable[[], Any], float]] = {}

    def __call__(
        self, function: Callable[[], Any] | None = None, *, tolerance: float = TOLERANCE
    ) -> Callable[..., Any]:
        """Decorator: a function without arguments that returns results."""
        if function is None:
            return lambda given: self(given, tolerance=tolerance)
        assert function.__name__ not in self.functions, f"{function.__name__} stands there twice"
        self.functions[function.__name__] = (function, tolerance)
        return function

    def test(self) -> Callable[..., None]:
        @pytest.mark.parametrize("name", sorted(self.functions))
        def test_results_are_those_recorded(name: str) -> None:
            function, tolerance = self.functions[name]
            compare(self.part, name, function(), tolerance)

        return test_results_are_those_recorded

    def test_of_records(self) -> Callable[[], None]:
        def test_every_record_has_its_scenario() -> None:
            assert set(_read(self.part)) == set(self.functions)

        return test_every_record_has_its_scenario
