"""Tables of numbers in text files: motions in, torques out.

A file has a line per point in time and, separated by commas, semicolons or blanks, an optional column ``t`` and a
column per quantity and joint. With a header the columns may stand in any order: ``q1 … qn``, ``qd1 … qdn``,
``qdd1 … qddn``, ``tau1 … taun``, or by joint, ``q.JOINT``; others are ignored. Without one they are all there in
exactly that order. Lines that start with # are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from linkwise.cli import written
from linkwise.errors import LinkwiseError


class TableError(LinkwiseError, ValueError):
    """A table of numbers is wrong; the message names the file, the line and the reason."""


def read(
    source: str, quantities: Sequence[str], joints: Sequence[str]
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """(t or None, {quantity: shape (points, n)}) from a file, or from standard input for "-"."""
    name = "standard input" if source == "-" else source
    text = sys.stdin.read() if source == "-" else _text(source)
    lines = [
        (k, line)
        for k, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise TableError(f"{name}: no numbers in it")
    cells = [(k, _split(line)) for k, line in lines]
    header = None if _is_number(cells[0][1][0]) else cells.pop(0)[1]
    width = len(header or cells[0][1]) if cells else 0
    values = np.array([_numbers(name, k, row, width) for k, row in cells]).reshape(len(cells), width)
    if not len(values):
        raise TableError(f"{name}: a header and no numbers under it")
    if header is None:
        return _by_position(name, values, quantities, joints)
    return _by_name(name, header, values, quantities, joints)


def write(target: str | None, columns: Mapping[str, np.ndarray]) -> None:
    """Write named columns with all digits: to a file that appears whole or not at all, or to standard output."""
    written.write("-" if target is None else target, render(columns))


def render(columns: Mapping[str, np.ndarray]) -> str:
    """Columns as comma-separated text; repr keeps every bit."""
    lines = [",".join(columns)]
    lines += [",".join(map(repr, row)) for row in np.column_stack(list(columns.values())).tolist()]
    return "\n".join(lines) + "\n"


def named(quantity: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Columns ``quantity1``, ``quantity2``, … of an array of shape (points, n)."""
    return {f"{quantity}{k}": column for k, column in enumerate(values.T, 1)}


def _text(source: str) -> str:
    try:
        return Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"{source}: not a text file ({error.reason} at byte {error.start})") from None


def _split(line: str) -> list[str]:
    for separator in (",", ";", "\t"):
        if separator in line:
            return [cell.strip().strip('"') for cell in line.strip().strip(separator).split(separator)]
    return line.split()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(name: str, line: int, row: Sequence[str], width: int) -> list[float]:
    if len(row) != width:
        raise TableError(f"{name}, line {line}: expected {width} columns, got {len(row)}")
    for cell in row:
        if not _is_number(cell):
            raise TableError(f"{name}, line {line}: expected a number, got {cell!r}")
    return [float(cell) for cell in row]


def _by_position(name: str, values: np.ndarray, quantities: Sequence[str], joints: Sequence[str]):
    n, width = len(joints), values.shape[1]
    wanted = len(quantities) * n
    if width not in (wanted, wanted + 1):
        order = ", ".join(f"{quantity}1 … {quantity}{n}" for quantity in quantities)
        raise TableError(
            f"{name}: expected {wanted} columns ({order}), or {wanted + 1} with t first; got {width}"
        )
    t = values[:, 0] if width > wanted else None
    parts = np.split(values[:, width - wanted :], len(quantities), axis=1)
    return t, dict(zip(quantities, parts, strict=True))


def _by_name(
    name: str, header: Sequence[str], values: np.ndarray, quantities: Sequence[str], joints: Sequence[str]
):
    place = {column: k for k, column in enumerate(header)}
    if len(place) < len(header):
        twice = next(column for k, column in enumerate(header) if place[column] != k)
        raise TableError(f"{name}: two columns are called {twice!r}")
    found = {}
    for quantity in quantities:
        picked = []
        for k, joint in enumerate(joints, 1):
            column = next((c for c in (f"{quantity}{k}", f"{quantity}.{joint}") if c in place), None)
            if column is None:
                given = ", ".join(header[:12]) + (", …" if len(header) > 12 else "")
                raise TableError(f"{name}: no column {quantity}{k} (or {quantity}.{joint}); it has {given}")
            picked.append(place[column])
        found[quantity] = values[:, picked]
    return (values[:, place["t"]] if "t" in place else None), found
