"""Tables in text files, read piece by piece, so that memory holds the numbers and little else."""

from __future__ import annotations

import io
import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from linkwise.tables import bounds
from linkwise.tables.table import NumberTable, TableError
from linkwise.tables.units import is_unit

SEPARATORS = (";", "\t", "|", ",")  # a comma last: beside any other it is a decimal comma
COMMENTS = ("#", "%")
LONGEST_LINE = 1 << 20  # characters
PIECE = 20_000  # lines that are converted at once
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_MAGIC = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd"}


def read(stream: IO, name: str) -> NumberTable:
    """The table in a stream of bytes (or of text)."""
    lines = _content(_decoded(stream, name), name)
    first = next(lines, None)
    if first is None:
        raise TableError(f"{name}: the file is empty: no numbers in it")
    chosen = re.fullmatch("sep=(.)", first[1].strip(), re.IGNORECASE)  # written by spreadsheet programs
    if chosen:
        first = next(lines, first)
    ahead = [first, *itertools.islice(lines, 2)]
    form = _Form(name, chosen[1] if chosen else _separator([line for _, line in ahead]))
    names, units = _heads(form, ahead)
    if not ahead:
        raise TableError(f"{name}: a header and no rows under it")
    width = len(names) if names is not None else len(form.cells(ahead[0][1]))
    numbers = array("q")
    pieces: list[np.ndarray] = []
    rows = itertools.chain(ahead, lines)
    while piece := list(itertools.islice(rows, PIECE)):
        numbers.extend(k for k, _ in piece)
        bounds.check(name, len(numbers) * width)
        pieces.append(_converted(form, piece, width))
    return NumberTable(name, np.concatenate(pieces), names, np.array(numbers), units)


# -- lines ------------------------------------------------------------------------------------------------------------


def _decoded(stream: IO, name: str) -> IO[str]:
    """Text from bytes. What is not UTF-8 is left as escapes: numbers are ASCII, and names become Latin-1."""
    if isinstance(stream, io.TextIOBase):
        return stream
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    head = buffered.peek(8)[:8]
    for magic, kind in _MAGIC.items():
        if head.startswith(magic) and _CONTROL.search(head.decode("latin-1")):
            raise TableError(f"{name}: a {kind} file; expected text (unpack it first)")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return io.TextIOWrapper(buffered, encoding="utf-16")
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="surrogateescape")


def _content(stream: IO[str], name: str) -> Iterator[tuple[int, str]]:
    """(line number, line) without blank lines and comments."""
    try:
        for number in itertools.count(1):
            line = stream.readline(LONGEST_LINE + 1)
            if not line:
                return
            if len(line) > LONGEST_LINE:
                raise TableError(
                    f"{name}, line {number}: longer than {LONGEST_LINE} characters; not a table of numbers"
                )
            line = line.strip().lstrip("\ufeff")
            if line and not line.startswith(COMMENTS):
                if _CONTROL.search(line):
                    raise TableError(f"{name}: not a text file (control characters in line {number})")
                yield number, line
    except UnicodeDecodeError as error:
        raise TableError(f"{name}: not a text file ({error.reason} at byte {error.start})") from None


def _named(cell: str) -> str:
    """A name as it was meant; bytes that are not UTF-8 are read as Latin-1."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        return cell.encode("utf-8", "surrogateescape").decode("latin-1")
    return cell


# -- cells ------------------------------------------------------------------------------------------------------------


@dataclass
class _Form:
    """How the cells of a file are written; ``separator`` None stands for blanks."""

    name: str
    separator: str | None
    commas: bool = False
    points: bool = False

    def cells(self, line: str) -> list[str]:
        if self.separator is None:
            return [cell.strip('"') for cell in line.split()]
        return [cell.strip().strip('"').strip() for cell in line.split(self.separator)]

    def numeric(self, number: int, line: str) -> str:
        """A line of numbers with decimal points; points and commas must not be mixed in a file."""
        line = line.replace('"', "")
        if self.separator == ",":
            return line
        self.commas |= "," in line
        self.points |= "." in line
        if self.commas and self.points:
            raise TableError(
                f"{self.name}, line {number}: decimal commas and decimal points in one file; expected one of them"
            )
        return line.replace(",", ".") if self.commas else line


def _separator(lines: Sequence[str]) -> str | None:
    """What separates the cells of these first lines: that which leaves numbers in one of them."""
    for line in reversed(lines):
        for separator in (*SEPARATORS, None):
            cells = _Form("", separator).cells(line)
            numbers = all(_is_number(cell, comma=separator != ",") or not cell for cell in cells)
            if len(cells) > 1 and any(cells) and numbers:
                return separator
    return next((s for s in SEPARATORS if s in lines[0]), None)


def _is_number(text: str, *, comma: bool = False) -> bool:
    if comma and "." not in text:
        text = text.replace(",", ".")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # which Python would read


def _heads(
    form: _Form, ahead: list[tuple[int, str]]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Names and units from the first lines, which are taken from ``ahead``; None where there are none."""
    first = form.cells(ahead[0][1])
    if all(_is_number(cell, comma=form.separator != ",") or not cell for cell in first):
        return None, None
    del ahead[0]
    names = tuple(_named(cell) for cell in first)
    width = len(names)
    if names[-1] == "" and width > 1 and ahead and _trimmed(form.cells(ahead[0][1]), width - 1):
        names = names[:-1]  # a separator at the end of every line
    if ahead:
        second = [_named(cell) for cell in form.cells(ahead[0][1])]
        if len(second) == len(names) and any(second) and all(not cell or is_unit(cell) for cell in second):
            del ahead[0]
            return names, tuple(second)
    return names, None


def _trimmed(cells: list[str], width: int) -> bool:
    return len(cells) == width or (len(cells) == width + 1 and not cells[-1])


def _converted(form: _Form, piece: Sequence[tuple[int, str]], width: int) -> np.ndarray:
    """Lines as numbers (lines, width)."""
    separator, rows = form.separator, []
    for number, line in piece:
        row = form.numeric(number, line)
        count = row.count(separator) + 1 if separator else len(row.split())
        if count == width + 1 and separator and row.endswith(separator):
            row, count = row[:-1], width
        if count != width:
            raise _diagnosis(form, piece, width)
        rows.append(row)
    try:
        return np.loadtxt(rows, delimiter=separator, ndmin=2, comments=None).reshape(len(rows), width)
    except ValueError:
        raise _diagnosis(form, piece, width) from None


def _diagnosis(form: _Form, piece: Sequence[tuple[int, str]], width: int) -> TableError:
    """The first thing that is wrong with lines that are not rows of numbers."""
    for number, line in piece:
        cells = form.cells(line)
        if not _trimmed(cells, width):
            short = (
                " (the file ends in the middle of a row)"
                if number == piece[-1][0] and len(cells) < width
                else ""
            )
            return TableError(
                f"{form.name}, line {number}: expected {width} columns, got {len(cells)}{short}"
            )
        for column, cell in enumerate(cells[:width], 1):
            if not _is_number(cell, comma=form.separator != ","):
                what = repr(_named(cell)) if cell else "an empty cell"
                return TableError(
                    f"{form.name}, line {number}: column {column}: expected a number, got {what}"
                )
    return TableError(f"{form.name}: not a table of numbers")
