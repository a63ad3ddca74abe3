"""XML of untrusted files: common errors are repaired, sizes are bounded, no other file is opened.

The parser is defusedxml's: a file that declares a document type or an entity, or that refers to another file,
is refused, and nothing but the given bytes is ever read. Size, depth and number of elements are limited.
Namespaces are not resolved: ``xacro:macro`` is just a name, whether or not the prefix is declared, as in other
parsers of robot files.

Four faults are common in robot files and accepted by other tools. They are repaired, each with a
``ModelWarning``:

- white space or comments before the ``<?xml ...?>`` declaration;
- the declaration ``<?xml verison="1.0"?>``;
- ``--`` inside a comment;
- bytes that are not the UTF-8 they should be (they are read as Latin-1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn
from xml.etree import ElementTree
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException, DTDForbidden
from defusedxml.expatreader import DefusedExpatParser

from linkwise.errors import ModelError, ModelWarning, warn
from linkwise.model.quantity import LARGEST, in_range

XACRO_COMMAND = "xacro FILE > arm.urdf (xacro is part of ROS; also: pip install xacro)"
XACRO = f"run xacro on the file first: {XACRO_COMMAND}"
"""What to do with a file in the macro language of ROS. It is not run here: its expressions are Python code."""

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 250
MAX_ELEMENTS = 500_000

# the numbers of XML Schema without its infinities and NaN: no hexadecimal, no underscores, no 'inf'
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Element(ElementTree.Element):
    """An element with its line in the file, for error messages."""

    def __init__(self, tag: str, attributes: dict[str, str], where: str, line: int, parent: Element | None):
        super().__init__(tag, attributes)
        self.where, self.line, self.parent = where, line, parent
        self.suffix = ""  # of a copy that a <replicate> of MJCF makes, for names that appear later

    if TYPE_CHECKING:  # what this parser builds has such children only

        def __iter__(self) -> Iterator[Element]: ...

    def describe(self) -> str:
        """``<origin> of <joint name="elbow">``"""
        name = self.get("name")
        if name is not None:
            return f'<{self.tag} name="{name}">'
        owner = self.parent
        while owner is not None and owner.get("name") is None:
            owner = owner.parent
        # the name of the whole robot does not help to find a place in it
        if owner is None or owner.parent is None:
            return f"<{self.tag}>"
        return f"<{self.tag}> of {owner.describe()}"

    def error(self, reason: str) -> ModelError:
        """``file:line: element: reason``"""
        return ModelError(f"{self.where}:{self.line}: {_short(self.describe(), 300)}: {_short(reason, 600)}")

    def warn(self, reason: str) -> None:
        warn(f"{self.where}:{self.line}: {self.describe()}: {reason}", ModelWarning)

    def only(self, tag: str) -> Element | None:
        """The child of this kind; if there are several, the first one, with a warning."""
        children = [child for child in self if child.tag == tag]
        if len(children) > 1:
            children[1].warn(f"a second <{tag}> in one <{self.tag}>; the first one counts")
        return children[0] if children else None

    def text_of(self, attribute: str) -> str:
        """An attribute that must be there and not be empty."""
        text = self.get(attribute)
        if text is None:
            raise self.error(f"attribute {attribute!r} is missing")
        if not text.strip():
            raise self.error(f"attribute {attribute!r} is empty")
        return text

    def numbers(self, attribute: str, count: int, *, any_size: bool = False) -> tuple[float, ...]:
        """An attribute of exactly so many finite numbers, which must be there; in the range that a robot's numbers
        have, unless they may have ``any_size``."""
        text = self.text_of(attribute)
        if "${" in text or "$(" in text:
            raise self.error(f'{attribute}="{_short(text)}" is unexpanded xacro; {XACRO}')
        values = tuple(self._number(attribute, text, word, any_size) for word in text.split())
        if len(values) != count:
            raise self.error(f'{attribute}="{_short(text)}": expected {_count(count)}, got {len(values)}')
        return values

    def number(self, attribute: str, default: float | None = None, *, any_size: bool = False) -> float:
        """An attribute of one finite number; without a default it must be there."""
        if default is not None and self.get(attribute) is None:
            return default
        return self.numbers(attribute, 1, any_size=any_size)[0]

    def integers(self, attribute: str, count: int) -> tuple[int, ...]:
        """An attribute of exactly so many whole numbers, which must be there."""
        text = self.text_of(attribute)
        for word in text.split():
            if not re.fullmatch(r"[+-]?[0-9]{1,9}", word):
                raise self.error(f'{attribute}="{_short(text)}": {_short(word)!r} is not a whole number')
        return tuple(int(number) for number in self.numbers(attribute, count))

    def integer(self, attribute: str, default: int) -> int:
        """An attribute of one whole number."""
        return default if self.get(attribute) is None else self.integers(attribute, 1)[0]

    def _number(self, attribute: str, text: str, word: str, any_size: bool) -> float:
        if not _NUMBER.fullmatch(word):
            raise self.error(f'{attribute}="{_short(text)}": {_short(word)!r} is not a finite number')
        value = float(word)
        if not (math.isfinite(value) if any_size else in_range(value)):
            raise self.error(
                f'{attribute}="{_short(text)}": {_short(word)} is too large; at most {LARGEST:g}'
            )
        return value


def parse_xml(data: bytes, where: str) -> Element:
    """The root element of a document; ``where`` names it in errors. Comments and text are dropped."""
    root, repairs = _parse_tolerantly(data, where)
    for repair in repairs:
        warn(f"{where}: {repair}", ModelWarning)
    return root


def root_tag(data: bytes, where: str) -> str:
    """The name of the root element, without warnings: to choose the reader."""
    return _parse_tolerantly(data, where)[0].tag


def _parse_tolerantly(data: bytes, where: str) -> tuple[Element, list[str]]:
    if len(data) > MAX_BYTES:
        raise ModelError(f"{where}: {len(data)} bytes is more than the {MAX_BYTES} that are read")
    if not data.strip():
        raise ModelError(f"{where}: the file is empty")
    try:
        return _parse(data, where), []
    except ModelError:
        repaired, repairs = data, list[str]()
        for repair, words in _REPAIRS:
            changed = repair(repaired)
            if changed != repaired:
                repaired = changed
                repairs.append(words)
        if not repairs:
            raise
    return _parse(repaired, where), repairs


def _parse(data: bytes, where: str) -> Element:
    parser = DefusedExpatParser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
    builder = _Builder(where, line=parser.getLineNumber)
    parser.setContentHandler(builder)
    try:
        parser.feed(data)
        parser.close()
    except SAXParseException as error:
        _refuse(error, builder, where)
    except DTDForbidden as error:
        raise ModelError(
            f"{where}: it declares a document type (<!DOCTYPE {error.name}>), which is not allowed"
        ) from error
    except DefusedXmlException as error:
        raise ModelError(f"{where}: it declares or uses an entity, which is not allowed ({error})") from error
    except (
        LookupError,
        ValueError,
    ) as error:  # an encoding that Python does not know, or cannot give to the parser
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{where}: not well-formed XML: {error}") from error
    assert builder.root is not None
    return builder.root


def _refuse(error: SAXParseException, builder: _Builder, where: str) -> NoReturn:
    still_open = builder.open_element
    hint = "" if still_open is None else f" (<{still_open.tag}> of line {still_open.line} is still open)"
    place = f"{where}:{error.getLineNumber()}:{(error.getColumnNumber() or 0) + 1}"
    reason = error.getMessage().removeprefix("not well-formed ").strip("()")
    raise ModelError(f"{place}: not well-formed XML: {reason}{hint}") from error


class _Builder(ContentHandler):
    """Builds the tree, without text, and keeps the line of every element."""

    def __init__(self, where: str, line: Callable[[], int]):
        super().__init__()
        self.where = where
        self.line = line
        self.root: Element | None = None
        self.open_element: Element | None = None
        self._depth = self._elements = 0

    def startElement(self, name: str, attrs: Any) -> None:
        parent = self.open_element
        element = Element(name, dict(attrs.items()), self.where, self.line(), parent)
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH:
            raise element.error(f"nested more than {MAX_DEPTH} levels deep")
        if self._elements > MAX_ELEMENTS:
            raise element.error(f"the file has more than {MAX_ELEMENTS} elements")
        if parent is None:
            self.root = element
        else:
            parent.append(element)
        self.open_element = element

    def endElement(self, name: str) -> None:
        assert self.open_element is not None
        self.open_element = self.open_element.parent
        self._depth -= 1


# -- repairs: each gives the bytes back with the same lines -------------------------------------------------

# By hand and not by one regular expression: a hostile file must not be able to make the search quadratic.

_BOM = b"\xef\xbb\xbf"
_ENCODING = re.compile(rb"\sencoding\s*=\s*[\"']([^\"']{0,40})[\"']")


def _declaration(data: bytes) -> tuple[int, int]:
    """Where the <?xml ...?> declaration is, behind white space and comments if need be; else (0, 0)."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    while True:
        start += len(data[start : start + 4096]) - len(data[start : start + 4096].lstrip())
        if data[start : start + 1].isspace():
            continue
        if not data.startswith(b"<!--", start):
            break
        end = data.find(b"-->", start + 4)
        if end < 0:
            break
        start = end + 3
    end = data.find(b"?>", start, start + 1024)
    if end < 0 or data[start : start + 5] != b"<?xml" or not data[start + 5 : start + 6].isspace():
        return 0, 0
    return start, end + 2


def _declaration_first(data: bytes) -> bytes:
    start, end = _declaration(data)
    mark = len(_BOM) if data.startswith(_BOM) else 0
    if start <= mark:
        return data
    return data[:mark] + data[start:end] + b"\n" * data.count(b"\n", 0, start) + data[end:]


def _version_spelt(data: bytes) -> bytes:
    start, end = _declaration(data)
    return data[:start] + data[start:end].replace(b"verison", b"version") + data[end:]


def _comments_without_double_hyphen(data: bytes) -> bytes:
    kept, done = list[bytes](), 0
    while (start := data.find(b"<!--", done)) >= 0 and (end := data.find(b"-->", start + 4)) >= 0:
        comment = data[start + 4 : end]
        if b"--" in comment or comment.endswith(b"-"):
            comment = b"\n" * comment.count(b"\n")
        kept += [data[done:start], b"<!--", comment, b"-->"]
        done = end + 3
    return b"".join([*kept, data[done:]])


def _latin1_as_utf8(data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16 says so itself
        return data
    declared = _ENCODING.search(data, *_declaration(data))
    if declared and declared[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1").encode("utf-8")
        return text if declared is None else text.replace(declared[0], b' encoding="UTF-8"', 1)
    return data


_REPAIRS: tuple[tuple[Callable[[bytes], bytes], str], ...] = (
    (_declaration_first, "text before the <?xml ...?> declaration is ignored"),
    (_version_spelt, "the declaration <?xml verison=...?> is misspelt; read as 'version'"),
    (_comments_without_double_hyphen, "a comment contains '--', which XML forbids; the comment is ignored"),
    (_latin1_as_utf8, "the file is not valid UTF-8; read as Latin-1"),
)


def _count(count: int) -> str:
    return "one number" if count == 1 else f"{count} numbers"


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
