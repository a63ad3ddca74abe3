"""Tables in text files, read piece by piece, so that memory holds the numbers and little else."""

from __future__ import annotations

import io
import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO

import numpy as np

from linkwise.files.tables import bounds
from linkwise.files.tables.table import NumberTable, TableError
from linkwise.files.tables.units import is_unit

SEPARATORS = (";", "\t", "|", ",")  # a comma last: beside any other it is a decimal comma
COMMENTS = ("#", "%")
MIXED = "decimal commas and decimal points in one file; expected one of them"
ROSTOPIC = "%time,"  # with which the header of `rostopic echo -p` begins
LONGEST_LINE = 1 << 20  # characters
LONGEST_SHOWN = 100  # characters of a cell in a message
PIECE = 20_000  # lines that are converted at once
MOST_FAULTS = 10_000  # whose reasons are remembered
_DATE = re.compile(
    r"(?:([0-9]{4}-[0-9]{2}-[0-9]{2})[T ])?([0-9]{1,2}):([0-9]{2}):([0-9]{2}(?:[.,][0-9]{1,12})?)"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
LIST = re.compile(r"""["']?(?:array\(\s*(?:'\w',\s*)?)?[\[(]([^\[\]()]*)[\])]\)?\s*["']?""")  # "[0.1, 0.2]"
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_MAGIC = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd"}


def read(stream: IO, name: str, *, tolerant: bool = False) -> NumberTable:
    """The table in a stream of bytes (or of text); see ``reader.read`` for ``tolerant``."""
    decoded = _decoded(stream, name)
    try:
        return _read(decoded, name, tolerant)
    finally:
        if decoded is not stream:
            decoded.detach()  # type: ignore[attr-defined]


def _read(stream: IO[str], name: str, tolerant: bool) -> NumberTable:
    comments: list[str] = []
    lines = _content(stream, name, comments)
    first = next(lines, None)
    if first is None:
        raise TableError(f"{name}: the file is empty: no numbers in it")
    _refuse_binary(name, *first)
    chosen = re.fullmatch("sep=(.)", first[1].strip(), re.IGNORECASE)  # written by spreadsheet programs
    if chosen:
        first = next(lines, first)
    commented = comments[-1] if comments else ""
    ahead = [first, *itertools.islice(lines, 2)]
    form = _Form(name, chosen[1] if chosen else _separator([_without_lists(line) for _, line in ahead]))
    names, units = _heads(form, ahead)
    if not ahead:
        raise TableError(f"{name}: a header and no rows under it")
    rows = itertools.chain(ahead, lines)
    groups: dict[str, tuple[int, ...]] = {}
    if LIST.search(ahead[0][1]):
        names, groups = _named_lists(form, names, ahead[0][1])
        rows = ((number, form.expanded(line)) for number, line in rows)
    piece = list(itertools.islice(rows, PIECE))
    width = len(names) if names is not None else _usual_width(form, piece)
    found = _Rows(form, width)
    while piece:
        found.add(piece, tolerant)
        piece = list(itertools.islice(rows, PIECE))
    in_comment = tuple(_named(cell) for cell in form.cells(commented)) if commented else ()
    return NumberTable(
        name,
        np.concatenate(found.values),
        names,
        np.array(found.numbers),
        units,
        groups or None,
        faults=found.faults,
        texts=found.texts,
        commented=in_comment if names is None and len(in_comment) == width > 1 else None,
    )


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


def _content(stream: IO[str], name: str, comments: list[str]) -> Iterator[tuple[int, str]]:
    """(line number, line) without blank lines and comments; the last comment before the first line is kept."""
    begun = False
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
            if line.startswith(ROSTOPIC) and not begun:
                line = line[1:]
            if line.startswith(COMMENTS) and not begun:
                comments[:] = [line.lstrip("#% \t")]
            if line and not line.startswith(COMMENTS):
                begun = True
                yield number, line
    except UnicodeDecodeError as error:
        raise TableError(f"{name}: not a text file ({error.reason} at byte {error.start})") from None


def _refuse_binary(name: str, number: int, line: str) -> None:
    if _CONTROL.search(line):
        raise TableError(_binary(name, number))


def _binary(name: str, number: int) -> str:
    return f"{name}: not a text file (control characters in line {number})"


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

    def numeric(self, line: str) -> str | None:
        """A line of numbers with decimal points; None where a file mixes points and commas."""
        line = line.replace('"', "")
        if self.separator == ",":
            return line
        commas, points = "," in line, "." in line
        if (commas and (points or self.points)) or (points and self.commas):
            return None
        self.commas |= commas
        self.points |= points
        return line.replace(",", ".") if self.commas else line

    def number(self, cell: str) -> tuple[float, str]:
        """The number in a cell and "", or NaN and what is wrong with it."""
        before = self.commas, self.points
        text = self.numeric(cell)
        if text is not None and _is_number(text):
            return float(text), ""
        self.commas, self.points = before  # a text says nothing about how numbers are written
        seconds = _moment(cell)
        if seconds is not None:
            return seconds, ""
        if text is None and _is_number(re.sub("[.,]", "", cell)):
            return math.nan, MIXED
        shown = _named(cell if len(cell) <= LONGEST_SHOWN else f"{cell[:LONGEST_SHOWN]}…")
        what = repr(shown).replace("{", "{{").replace("}", "}}") if cell else "an empty cell"
        return math.nan, f"column {{column}}: expected a number, got {what}"

    def expanded(self, line: str) -> str:
        """A line whose cells may be lists, with a cell for each of their items."""
        between = self.separator or " "
        return LIST.sub(lambda found: between.join(_items(found[1])), line)


def _is_value(text: str, *, comma: bool) -> bool:
    return _is_number(text, comma=comma) or _moment(text) is not None


def _moment(cell: str) -> float | None:
    """Seconds of a date with a time (since 1970) or of a time of day (since midnight); None where it is neither."""
    found = _DATE.fullmatch(cell)
    if found is None:
        return None
    date, hours, minutes, seconds, zone = found.groups()
    total = 3600 * int(hours) + 60 * int(minutes) + float(seconds.replace(",", "."))
    try:
        start = datetime.fromisoformat(f"{date}T00:00:00{zone or '+00:00'}").timestamp() if date else 0.0
    except (ValueError, OverflowError):
        return None
    return start + total


def _separator(lines: Sequence[str]) -> str | None:
    """What separates the cells of these first lines: that which leaves numbers in one of them."""
    for line in reversed(lines):
        for separator in (*SEPARATORS, None):
            cells = _Form("", separator).cells(line)
            numbers = all(_is_value(cell, comma=separator != ",") or not cell for cell in cells)
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
    if all(_is_value(cell, comma=form.separator != ",") or not cell for cell in first):
        return None, None
    echoed = _echoed(first)
    if echoed is not None:
        return echoed, None
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


def _echoed(cells: list[str]) -> tuple[str, ...] | None:
    """Names for a row of ``ros2 topic echo --csv`` with a joint state, which has no header; None for other rows."""
    if not (len(cells) > 6 and cells[0].isdigit() and cells[1].isdigit()):
        return None
    rest = cells[3:]
    count = next((k for k, cell in enumerate(rest) if not cell or _is_number(cell)), 0)
    if not count or len(rest) != 4 * count or not all(map(_is_number, rest[count:])):
        return None
    quantities = ("name", "position", "velocity", "effort")
    return ("sec", "nanosec", "frame_id", *(f"{name}{k}" for name in quantities for k in range(count)))


def _trimmed(cells: list[str], width: int) -> bool:
    return len(cells) == width or (len(cells) == width + 1 and not cells[-1])


def _without_lists(line: str) -> str:
    """The same with a number in place of each list, to see what separates the cells."""
    return LIST.sub("0", line)


def _items(inside: str) -> list[str]:
    return [item.strip("'\"") for item in re.split(r"[,;\s]+", inside.strip()) if item]


def _named_lists(
    form: _Form, names: tuple[str, ...] | None, line: str
) -> tuple[tuple[str, ...] | None, dict[str, tuple[int, ...]]]:
    """Names of the items of lists (``q`` with three items: q1, q2, q3), and the columns of each list."""
    if names is None:
        return None, {}
    counts = [1] * len(names)
    marked = LIST.sub(lambda found: f"\0{len(_items(found[1]))}", line)
    for k, cell in enumerate(form.cells(marked)[: len(names)]):
        counts[k] = max(1, int(cell[1:])) if cell.startswith("\0") else 1
    expanded: list[str] = []
    groups: dict[str, tuple[int, ...]] = {}
    for name, count in zip(names, counts, strict=True):
        if count > 1:
            groups[name] = tuple(range(len(expanded), len(expanded) + count))
        expanded += [name] if count == 1 else [f"{name}{k}" for k in range(1, count + 1)]
    return tuple(expanded), groups


# -- rows -------------------------------------------------------------------------------------------------------------


def _usual_width(form: _Form, piece: Sequence[tuple[int, str]]) -> int:
    """The number of cells that most lines have; that of the first line where several numbers are as frequent."""
    counts = Counter(len(form.cells(line)) for _, line in piece)
    first = len(form.cells(piece[0][1]))
    return max(counts, key=lambda width: (counts[width], width == first))


class _Rows:
    """Rows of numbers and what is wrong with them."""

    def __init__(self, form: _Form, width: int):
        self.form, self.width = form, width
        self.values: list[np.ndarray] = []
        self.numbers = array("q")
        self.faults: dict[tuple[int, int | None], str] = {}
        self.texts: dict[int, str] = {}

    def add(self, piece: Sequence[tuple[int, str]], tolerant: bool) -> None:
        """Convert lines; what is not a number is NaN and a fault where ``tolerant``, else raise TableError."""
        start = len(self.numbers)
        self.numbers.extend(number for number, _ in piece)
        bounds.check(self.form.name, len(self.numbers) * self.width)
        values = self._at_once([line for _, line in piece])
        if values is None:
            values = np.full((len(piece), self.width), np.nan)
            for k, (number, line) in enumerate(piece):
                self._one(values[k], start + k, number, line, last=k == len(piece) - 1)
                if self.faults and not tolerant:
                    raise TableError(next(iter(self.faults.values())))
        self.values.append(values)

    def _at_once(self, lines: Sequence[str]) -> np.ndarray | None:
        """All lines as numbers (lines, width), None where one of them is not such a row."""
        separator, rows = self.form.separator, []
        before = self.form.commas, self.form.points
        try:
            for line in lines:
                rows.append(self._row(line))
            return np.loadtxt(rows, delimiter=separator, ndmin=2, comments=None).reshape(
                len(rows), self.width
            )
        except ValueError:
            self.form.commas, self.form.points = before
            return None

    def _row(self, line: str) -> str:
        """A line as ``loadtxt`` reads it; else ValueError."""
        separator = self.form.separator
        row = None if _CONTROL.search(line) else self.form.numeric(line)
        count = 0 if row is None else row.count(separator) + 1 if separator else len(row.split())
        if row and count == self.width + 1 and separator and row.endswith(separator):
            row, count = row[:-1], self.width
        if row is None or count != self.width:
            raise ValueError(line)
        return row

    def _one(self, target: np.ndarray, row: int, number: int, line: str, *, last: bool) -> None:
        """One line into ``target`` (width,), cell by cell."""
        where = f"{self.form.name}, line {number}"
        if _CONTROL.search(line):
            self._fault(row, None, _binary(self.form.name, number))
            return
        cells = self.form.cells(line)
        if not _trimmed(cells, self.width):
            short = " (the file ends in the middle of a row)" if last and len(cells) < self.width else ""
            self._fault(row, None, f"{where}: expected {self.width} columns, got {len(cells)}{short}")
            return
        for column, cell in enumerate(cells[: self.width]):
            number_found, reason = self.form.number(cell)
            if reason:
                self._fault(row, column, f"{where}: {reason.format(column=column + 1)}")
                if row == 0:
                    self.texts[column] = _named(cell)
            target[column] = number_found

    def _fault(self, row: int, column: int | None, reason: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults[row, column] = reason
