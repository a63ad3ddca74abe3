"""Foreign text in files, commands and terminals: one function for each language that it is written in.

Names of robots, links, joints, frames and columns, paths and messages come from files of strangers and may contain
anything: ends of comments and strings, line ends, terminal commands, letters that turn the direction of writing. A text
that goes into a comment, a string, an attribute or a line of output goes through the function of that language here;
what comes back is that text as people read it and never code. ``fill`` does so for templates: a value that is not
marked as ``Code`` is foreign. SECURITY.md lists where foreign text is written; ``tests/test_foreign.py`` sends hostile
names through all of it, builds what was generated, and runs it.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "Code",
    "ascii_line",
    "c_comment",
    "c_string",
    "cmake_comment",
    "file_name",
    "fill",
    "html_text",
    "json_in_html",
    "json_text",
    "latex_text",
    "line",
    "line_comment",
    "pkg_config",
    "python_comment",
    "python_docstring",
    "rust_comment",
    "spelt_letters",
    "terminal",
    "toml_string",
    "xml_text",
    "yaml_string",
]

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories of what people do not see: control and format characters (also those that turn the direction of
writing), surrogates, private and unassigned characters, separators of lines and paragraphs."""

_UNUSUAL = re.compile(r"[^ -~]")

_LETTERS = {
    "q̇": "qd", "q̈": "qdd", "Ṁ": "dM/dt", "J̇": "dJ/dt", "τ": "tau", "⁻¹": "^-1", "ᵀ": "^T", "·": "*", "²": "^2",
    "−": "-", "…": "...", "–": "-", "’": "'", "½": "1/2",
}  # fmt: skip
_SPELT = _LETTERS | {
    "∞": "inf", "×": "x", "÷": "/", "°": "deg", "±": "+-", "³": "^3", "⁻": "^-", "¹": "1", "µ": "u", "μ": "u",
    "√": "sqrt", "≤": "<=", "≥": ">=", "≈": "~", "→": "->", "“": '"', "”": '"', "‘": "'", "Δ": "delta",
    "ω": "omega", "σ": "sigma", "─": "-", "│": "|", "\u0307": "d", "\u0308": "dd",
}  # fmt: skip


class Code(str):
    """Text made by this package, which ``fill`` inserts as it is."""

    __slots__ = ()


# -- people -----------------------------------------------------------------------------------------------------------


def terminal(text: str) -> str:
    """For a terminal: line ends and tabs stay, other characters that people do not see become escapes.

    An escape character moves the cursor, changes colours or types commands; format characters show another order of
    letters than there is.
    """
    return _UNUSUAL.sub(lambda found: found[0] if found[0] in "\n\t" else _seen(found[0]), text)


def line(text: str) -> str:
    """For one line of a terminal or a log: as ``terminal``, and line ends become escapes too."""
    return _UNUSUAL.sub(lambda found: _seen(found[0]), text)


def spelt_letters(error: UnicodeError) -> tuple[str, int]:
    """For ``codecs.register_error``: letters that an encoding does not have are spelt, or become escapes.

    Args:
        error: what the encoder could not write.

    Returns:
        The text in its place, in ASCII, and where the encoder goes on.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SPELT.get(c) or _escaped(c) for c in error.object[error.start : error.end]), error.end


def _is_unseen(c: str) -> bool:
    return unicodedata.category(c) in _UNSEEN


def _seen(c: str) -> str:
    return _escaped(c) if _is_unseen(c) else c


def _escaped(c: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    code = ord(c)
    return short.get(c) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


# -- comments ---------------------------------------------------------------------------------------------------------


def ascii_line(text: str) -> str:
    """One line of printable ASCII characters, which every compiler reads."""
    for letter, instead in _LETTERS.items():
        text = text.replace(letter, instead)
    return re.sub(r"[^ -~]", "?", re.sub(r"\s", " ", text))


def _without_continuation(text: str) -> str:
    """No backslash at the end, which continues a line comment in the next line; ``??/`` means one in old C."""
    text = re.sub(r"\?\?(?=[=/'()!<>-])", "? ?", text)
    return re.sub(r"\\+$", "", text)


def c_comment(text: str) -> str:
    """Inside ``/* */`` of C, C++, CUDA or JavaScript."""
    safe = _without_continuation(ascii_line(text)).replace("*/", "* /").replace("/*", "/ *")
    return f"{safe} " if safe.endswith("*") else safe


def line_comment(text: str) -> str:
    """After ``//`` of C++."""
    return _without_continuation(ascii_line(text))


def rust_comment(text: str) -> str:
    """After ``//``, ``///`` or ``//!`` of Rust. Documentation is Markdown, whose code blocks are compiled as tests."""
    marks = str.maketrans({"`": "'", "~": "-", "[": "(", "]": ")", "<": "(", ">": ")"})
    return _without_continuation(" ".join(ascii_line(text).split())).translate(marks)


def cmake_comment(text: str) -> str:
    """After ``#`` of CMake, where ``#[[`` begins a comment of several lines; also for ``configure_file``."""
    return _without_continuation(ascii_line(text)).replace("[", "(").replace("]", ")").replace("@", " at ")


def python_comment(text: str) -> str:
    """After ``#`` of Python."""
    return line(text)


def python_docstring(text: str) -> str:
    """Inside triple double quotes of Python."""
    return line(text).replace("\\", "\\\\").replace('"', '\\"')


def pkg_config(text: str) -> str:
    """A value of a file of pkg-config, where ``#`` begins a comment, ``$`` a variable and ``@`` one of CMake."""
    return re.sub(r"[#$@\\]", "?", ascii_line(text))


# -- strings ----------------------------------------------------------------------------------------------------------


def c_string(text: str) -> str:
    """A string of C or C++ with its quotes; letters beyond ASCII as the bytes of UTF-8."""
    plain = re.compile(rb"[ !#->@-\[\]-~]")  # neither " nor \ nor ? (which begins trigraphs)
    codes = (bytes([code]) for code in text.encode("utf-8", "replace"))
    return '"' + "".join(c.decode() if plain.fullmatch(c) else f"\\{c[0]:03o}" for c in codes) + '"'


def json_text(data: Any, only_ascii: bool = False, **options: Any) -> str:
    """Data as JSON whose strings have escapes for all that people do not see.

    Args:
        data: what ``json.dumps`` takes.
        only_ascii: escapes for all letters beyond ASCII.
        options: of ``json.dumps``.

    Returns:
        The text. Every character that is escaped here can only be inside a string.
    """
    text = json.dumps(data, ensure_ascii=only_ascii, **options)
    return _UNUSUAL.sub(
        lambda found: json.dumps(found[0])[1:-1] if _is_unseen(found[0]) and found[0] != "\n" else found[0],
        text,
    )


def json_in_html(data: Any, **options: Any) -> str:
    """JSON inside a ``script`` element, or as a value of JavaScript there.

    Args:
        data: what ``json.dumps`` takes.
        options: of ``json.dumps``.

    Returns:
        The text, without characters that end the element or begin a comment.
    """
    return json_text(data, **options).translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"})


def toml_string(text: str) -> str:
    """A basic string of TOML with its quotes."""
    return _quoted(text)


def yaml_string(text: str) -> str:
    """A double-quoted scalar of YAML."""
    return _quoted(text)


def _quoted(text: str) -> str:
    """Quotes, and escapes that TOML and YAML share; surrogates, which neither has, become question marks."""
    text = re.sub("[\ud800-\udfff]", "?", text).replace("\\", "\\\\").replace('"', '\\"')

    def seen(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (
            found[0] if not _is_unseen(found[0]) else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        )

    return f'"{_UNUSUAL.sub(seen, text)}"'


# -- marked text ------------------------------------------------------------------------------------------------------


def xml_text(text: object) -> str:
    """Content of an element or an attribute of XML or SVG. Characters that XML cannot hold become escapes."""
    held = re.sub(
        "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", lambda found: _escaped(found[0]), str(text)
    )
    safe = html.escape(held, quote=True)
    return safe.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def html_text(text: object) -> str:
    """Content of an element or an attribute of HTML, or of an SVG drawing in it."""
    return html.escape(terminal(str(text)), quote=True)


def html_page(text: str) -> str:
    """A whole page of our own as an attribute, such as ``srcdoc`` of a frame; its lines and signs stay as they are."""
    return html.escape(text, quote=True)


def latex_text(text: str) -> str:
    """Letters and digits of a text for LaTeX; everything else becomes a blank."""
    return " ".join(re.sub(r"[^0-9A-Za-z]+", " ", text).split())


# -- files ------------------------------------------------------------------------------------------------------------


def file_name(text: str, instead: str = "unnamed") -> str:
    """A name of a file that is in the folder it is written to: letters, digits, points, minus signs and underscores.

    Args:
        text: any text.
        instead: for a text without any of these.

    Returns:
        At most 150 characters; no point at the beginning.
    """
    found = re.sub(r"[^\w.-]+", "_", text.encode("utf-8", "replace").decode()).strip("._-")
    return found.encode()[:150].decode("utf-8", "ignore") or instead


def fill(template: str, values: Mapping[str, str], emitter: Callable[[str], str]) -> str:
    """A template in which ``@key@`` stands for a value.

    Args:
        template: the text.
        values: texts by key. What is not ``Code`` is foreign and goes through ``emitter``.
        emitter: the function of this module for the places of foreign text in the template, such as ``line_comment``.

    Returns:
        The text. Values are inserted once: an ``@key@`` in a value stays.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        given = values[found[1]]
        return given if isinstance(given, Code) else emitter(given)

    return re.sub(r"@(\w+)@", value, template)
