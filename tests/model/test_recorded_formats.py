"""Robot files of every format, read and written, beside what is recorded: also with each of their parts changed."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from recorded import Scenarios, everything, packed
from recorded_robots import ROBOTS
from rich_files import FILES

scenarios = Scenarios("formats")
SPOTS = {
    ".xml": re.compile(r'(?<=[ <])([\w:]+)="([^"]*)"'),
    ".urdf": re.compile(r'(?<=[ <])([\w:]+)="([^"]*)"'),
    ".toml": re.compile(r"^(?:.*[{,] )?(\w+) = (.+?)$", re.M),
    ".spec": re.compile(r"^(\w+) (.+)$", re.M),
}
"""Names and values in files of each format."""
LONG = re.compile(r"-?\d+\.\d{7,}(?:e-?\d+)?")
"""Numbers whose last digits products of BLAS may change."""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """An empty one, so that messages name files without their folders."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        yield


def read(name: str, text: str) -> dict[str, Any]:
    """The robot of a file in a few numbers, and all that is said about it."""
    Path(name).write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("always")
        try:
            found = packed(everything(lw.load(f"./{name}")))
        except lw.LinkwiseError as error:
            found = {"texts": str(error), "numbers": [0.0] * 4}
    said = "\n".join(str(each.message) for each in kept)
    return {"texts": LONG.sub("#", f"{found['texts']}\n{said}"), "numbers": found["numbers"]}


def edits(text: str, ending: str, most: int = 2) -> Iterator[tuple[str, str]]:
    """(label, text) with each attribute or key left out, with other numbers and with nonsense.

    Of equal names so many have other numbers, and the first one the rest.
    """
    seen: dict[str, int] = {}
    for spot in SPOTS[ending].finditer(text):
        element = re.findall(r"[<\[](\w+)", text[: spot.start()])[-1:]
        name = f"{''.join(element)} {spot[1]}"
        count = seen[name] = seen.get(name, 0) + 1
        if count > most or spot[1] in ("xmlns", "mujoco"):
            continue
        start, end = spot.span(2)
        number = NUMBER.search(text, start, end)
        values = ["odd"] if number is None else ["1 nan 2" if len(seen) % 2 else f"{text[start:end]} 0.3"]
        changed = {each: text[:start] + each + text[end:] for each in values}
        if number is not None:
            other = f"{1.37 * float(number[0]) + 0.013:.6f}"
            changed["other"] = text[: number.start()] + other + text[number.end() :]
        if count > 1:
            changed = {"other": changed["other"]} if number is not None else {}
        else:
            changed["without"] = text[: spot.start(1)] + text[end + (text[end : end + 1] == '"') :]
        yield from ((f"{name} {count} {label}", each) for label, each in changed.items())


def results_of_edits(name: str, text: str, most: int = 2) -> dict[str, Any]:
    """By the first word of their labels: the texts as one, and the numbers of all."""
    found: dict[str, list[dict[str, Any]]] = {}
    for label, each in edits(text, Path(name).suffix, most):
        found.setdefault(label.split()[0], []).append(read(name, each))
    return {
        group: {
            "count": len(rows),
            "texts": hashlib.sha256("\n".join(row["texts"] for row in rows).encode()).hexdigest()[:16],
            "numbers": [x for row in rows for x in row["numbers"]],
        }
        for group, rows in found.items()
    }


def _of_file(name: str) -> Any:
    def scenario() -> dict[str, Any]:
        with folder():
            return {"": read(name, FILES[name]), "changed": results_of_edits(name, FILES[name])}

    scenario.__name__ = f"changes_of_{name.replace('.', '_')}"
    return scenario


for _name in FILES:
    scenarios(_of_file(_name))


def written(robot: lw.Robot, name: str) -> dict[str, Any]:
    """The text of a file without its numbers, the numbers by their places, and what is read from it."""
    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("always")
        try:
            robot.save(name)
        except lw.LinkwiseError as error:
            return {"text": LONG.sub("#", str(error))}
    text = re.sub(r"\s*<custom>.*</custom>", "", Path(name).read_text(encoding="utf-8"), flags=re.S)
    numbers = np.array([float(each) for each in NUMBER.findall(text)])
    said = LONG.sub("#", "\n".join(str(each.message) for each in kept))
    return {
        "text": NUMBER.sub("#", text.replace("-", "")),
        "numbers": np.where(abs(numbers) < 1e-12, 0.0, numbers),
        "said": said,
        "read": read(name, text),
    }


@scenarios
def written_files():
    with folder():
        return {
            f"{name} {ending}": written(make(), f"{name}.{ending}")
            for name, make in ROBOTS.items()
            for ending in ("urdf", "xml", "toml")
        }


@scenarios
def rich_files_in_other_formats():
    found = {}
    with folder():
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                robot = lw.load(f"./{name}")
            for ending in ("urdf", "xml", "toml"):
                found[f"{name} {ending}"] = written(robot, f"other.{ending}")
    return found


@scenarios
def changes_of_written_files():
    """What only files of Linkwise have: extensions of URDF, tables of TOML."""
    found = {}
    with folder():
        for robot, ending in (
            ("with_laws", "urdf"),
            ("linkage", "toml"),
            ("coupled", "urdf"),
            ("swimmer", "toml"),
        ):
            name = f"{robot}.{ending}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ROBOTS[robot]().save(name)
            text = LONG.sub(lambda number: f"{float(number[0]) + 0.0:.10f}", Path(name).read_text("utf-8"))
            found[name] = results_of_edits(name, text.replace("-0.0000000000", "0.0"), 1)
    return found


@scenarios
def options_of_load():
    found = {}
    with folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        calls: list[tuple[str, str, dict[str, Any]]] = [
            ("gravity", "arm.xml", {"gravity": (0.1, 0.2, 0.3)}),
            ("lock", "arm.xml", {"lock": {"second": 0.2, "fourth": -0.4}}),
            ("lock urdf", "odd.urdf", {"lock": {"push": 0.2, "follows": -0.4}, "mimic": "independent"}),
            ("independent", "odd.urdf", {"mimic": "independent"}),
        ]
        for label, name, options in calls:
            found[label] = everything(lw.load(f"./{name}", **options))
    return found


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
