"""Sentences of the documentation that promise something, and the tests that try to break them.

``promises.toml`` has a row for every sentence of README.md and docs/ with one of ``WORDS``, and of public docstrings
with one of ``STRONG``: the tests of a promise, or the reason why it is none. ``python tests/promises.py`` prints rows
for sentences that have none yet and names rows whose sentences are gone. The page of the site is made when it is built.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from public_functions import public_functions

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "promises.toml"
WORDS = re.compile(
    r"\b(keeps|always|never|same bits|bit for bit|at any|at all times|every|guarantee[sd]?|exactly|cannot|no \w+ is)\b",
    re.I,
)
STRONG = re.compile(WORDS.pattern.replace("|every", ""), re.I)  # "every" in docstrings is about shapes
# written by programs and compared with their output by tests, or this list itself
GENERATED = (
    "docs/records.md",
    "docs/processors.md",
    "docs/refuted.md",
    "docs/robot_files.md",
)
DOCSTRINGS = "linkwise."  # before the names of classes and functions
LENGTH = 90  # of the text by which a sentence is known

HEAD = """# What these pages promise

Every sentence of the README and of these pages with one of the words *keeps, always, never, same bits, bit for bit, at
any, at all times, every, guarantees, exactly, cannot, no … is* that promises something, and the tests that try to break
it. At the end are sentences of docstrings of public classes and functions with these words but *every*. Made from
`tests/promises.toml`, which also lists the sentences with such words that promise nothing; a new sentence without a row
fails `tests/test_promises.py`.
"""


class Sentence(NamedTuple):
    page: str
    text: str

    @property
    def start(self) -> str:
        """The text by which the table knows it."""
        return self.text if len(self.text) <= LENGTH else self.text[:LENGTH].rsplit(" ", 1)[0]


def sentences(page: Path) -> list[str]:
    """The sentences of a page without its code blocks; cells of tables and items of lists count as sentences."""
    text = re.sub(r"```.*?```", "\n\n", page.read_text(encoding="utf-8"), flags=re.S)
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*|#] ?)|\n(?=\s*\d+\. )", text):
        line = " ".join(paragraph.split())
        found += [part.strip() for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[(\"])| \| ", line)]
    return [each for each in found if each]


def of_docstrings() -> list[Sentence]:
    """Sentences of public docstrings with strong words, each once; the page is the name of the class or function."""
    found: dict[str, Sentence] = {}
    for each in public_functions():
        text = inspect.cleandoc(each.texts[0] or "")
        for paragraph in re.split(r"\n\s*\n|\n(?=\s+\w[\w, ]*: )", text):
            line = " ".join(paragraph.split())
            for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[(\"])", line):
                if STRONG.search(part):
                    found.setdefault(part, Sentence(f"{DOCSTRINGS}{each.label}", part))
    return list(found.values())


def with_words() -> list[Sentence]:
    """All sentences that have to be in the table, each once."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [(page, page.relative_to(ROOT).as_posix()) for page in pages]
    found = [
        Sentence(name, text)
        for page, name in names
        if name not in GENERATED
        for text in sentences(page)
        if WORDS.search(text)
    ]
    return list(dict.fromkeys(found + of_docstrings()))


def table() -> dict[str, dict[str, str | list[str]]]:
    """Of every page: the starts of sentences, each with its tests or the reason why it promises nothing."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def gone() -> list[str]:
    """Rows of the table whose sentences no page has."""
    known = {(each.page, each.start) for each in with_words()}
    return [
        f"{name}: {start}" for name, some in table().items() for start in some if (name, start) not in known
    ]


def page() -> str:
    """The page of the site; ``ValueError`` names rows whose sentences are gone."""
    if old := gone():
        raise ValueError("\n".join(["sentences of tests/promises.toml that no page has:", *old]))
    rows, found = table(), with_words()
    wholes = {(each.page, each.start): each.text for each in reversed(found)}
    lines = [HEAD]
    for name in dict.fromkeys(each.page for each in found):
        promises = [(start, tests) for start, tests in rows.get(name, {}).items() if isinstance(tests, list)]
        if not promises:
            continue
        title = f"`{name}`" if name.startswith(DOCSTRINGS) else name
        lines += [f"## {title}", "", "| sentence | tests |", "|---|---|"]
        for start, tests in promises:
            shown = start if start == wholes[name, start] else f"{start} …"
            plain = (
                re.sub(r"\[([^\]]*)\](\([^)]*\)?)?", r"\1", shown)
                .replace("|", "")
                .replace("`", "")
                .replace("*", "")
            )
            lines.append(f"| {plain.strip(' -#')} | {', '.join(f'`{test}`' for test in tests)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    for row in gone():
        print(f"# gone: {row}")
    rows, last = table(), ""
    for each in with_words():
        if each.start not in rows.get(each.page, {}):
            if each.page != last:
                print(f'["{each.page}"]')
                last = each.page
            print(f"{quoted(each.start)} = []")


def quoted(text: str) -> str:
    """As a key of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    main()
