"""Tables in Excel files (.xlsx): the first sheet with numbers, read as the text that it would be in a CSV file."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from linkwise.files.tables import bounds, text
from linkwise.files.tables.table import NumberTable, TableError

_SEPARATOR = "|"
_MOST_COLUMNS = 16_384  # that Excel allows
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    DefusedXmlException,
    KeyError,
    EOFError,
    RuntimeError,
    ValueError,
)


def read_xlsx(path: Path, *, tolerant: bool = False) -> NumberTable:
    """The first sheet with at least two rows; line numbers of messages are those of its rows."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                total, packed = sum(member.file_size for member in members), path.stat().st_size
                bounds.check(f"{path}: unpacked", total, 1, packed)
                if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
                    raise RuntimeError("packed by a method that Excel does not write")
                texts, dates = _shared_texts(archive), _dates(archive)
                sheets = sorted(
                    (name for name in archive.namelist() if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name)),
                    key=lambda name: [int(n) for n in re.findall("[0-9]+", name)],
                )
                lines = next(
                    filter(_has_rows, (_lines(archive, name, texts, dates, packed) for name in sheets)), None
                )
        except TableError:
            raise
        except _BROKEN as error:
            raise TableError(f"{path}: not an Excel file, or damaged ({error})") from None
    if lines is None:
        raise TableError(f"{path}: no sheet with a header and numbers in it")
    return text.read(io.StringIO("\n".join(lines) + "\n"), str(path), tolerant=tolerant)


def _has_rows(lines: list[str]) -> bool:
    return sum(map(bool, lines)) > 1


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    found = []
    with archive.open("xl/sharedStrings.xml") as stream:
        for element in _elements(stream, "si"):
            found.append("".join(part.text or "" for part in element.iter() if _tag(part) == "t"))
            element.clear()
    return found


def _dates(archive: zipfile.ZipFile) -> set[str]:
    """Numbers of the styles in which numbers of days are shown as dates or times."""
    if "xl/styles.xml" not in archive.namelist():
        return set()
    formats: dict[str, str] = {}
    styles: list[str] = []
    with archive.open("xl/styles.xml") as stream:
        for _, element in iterparse(stream):
            if _tag(element) == "numFmt":
                formats[element.get("numFmtId", "")] = element.get("formatCode", "")
            elif _tag(element) == "cellXfs":
                styles = [each.get("numFmtId", "0") for each in element]
    shown = {
        number
        for number, code in formats.items()
        if re.search("[ymdhs]", re.sub(r'"[^"]*"|\\.|\[[^hms][^]]*\]', "", code.lower()))
    }
    shown |= {str(number) for number in (*range(14, 23), *range(45, 48))}
    return {str(k) for k, number in enumerate(styles) if number in shown}


def _lines(archive: zipfile.ZipFile, name: str, texts: list[str], dates: set[str], packed: int) -> list[str]:
    """A text line for every row of a sheet, empty where a row is; ``packed`` are the bytes of the file."""
    lines: list[str] = []
    total = 0
    with archive.open(name) as stream:
        for row in _elements(stream, "row"):
            number = int(row.get("r") or len(lines) + 1)
            if not len(lines) < number <= 1 << 20:
                raise KeyError(f"row {number} after row {len(lines)}")
            lines += [""] * (number - 1 - len(lines))
            cells: list[str] = []
            for cell in (part for part in row if _tag(part) == "c"):
                place = _column(cell.get("r"), len(cells))
                cells += [""] * (place - len(cells))
                cells.append(_value(cell, texts, dates))
            lines.append(_SEPARATOR.join(cells) if any(cells) else "")
            total += len(lines[-1])
            bounds.check(f"{archive.filename or name}: as text", total, 1, packed)
            row.clear()
    return lines


def _column(reference: str | None, following: int) -> int:
    """The number of a column from 0: of ``C7`` it is 2."""
    letters = re.match("[A-Za-z]+", reference or "")
    if letters is None:
        return following
    number = 0
    for letter in letters[0].upper()[:4]:
        number = 26 * number + ord(letter) - 64
    if not following < number <= _MOST_COLUMNS:
        raise KeyError(f"cell {reference}")
    return number - 1


def _value(cell: Any, texts: list[str], dates: set[str]) -> str:
    kind = cell.get("t", "n")
    inside = next((part.text or "" for part in cell if _tag(part) == "v"), "")
    if kind == "s":
        place = int(inside) if inside.isdigit() else -1
        inside = texts[place] if 0 <= place < len(texts) else ""
    elif kind == "inlineStr":
        inside = "".join(part.text or "" for part in cell.iter() if _tag(part) == "t")
    elif kind == "e":
        inside = "nan"
    elif kind == "n" and inside and cell.get("s") in dates:
        inside = repr(86400.0 * float(inside))  # days
    return re.sub(r"[|;,\t\r\n]+", " ", inside).strip()


def _elements(stream: IO[bytes], tag: str) -> Any:
    return (element for _, element in iterparse(stream) if _tag(element) == tag)


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
