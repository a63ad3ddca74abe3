"""Files and lines of the package by part, now and in an earlier commit: ``python benchmarks/sizes.py 47ebcd3``."""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from pathlib import Path

PACKAGE = "src/linkwise"
ROOT = Path(__file__).resolve().parent.parent
Sizes = dict[str, tuple[int, int]]


def part_of(path: str) -> str:
    """src/linkwise/model/joint.py -> model/; src/linkwise/compat.py -> single files."""
    first, *rest = path.removeprefix(f"{PACKAGE}/").split("/")
    return f"{first}/" if rest else "single files"


def summed(lines: dict[str, int]) -> Sizes:
    """(files, lines) of every part."""
    found: dict[str, list[int]] = defaultdict(list)
    for path, count in lines.items():
        found[part_of(path)].append(count)
    return {part: (len(counts), sum(counts)) for part, counts in found.items()}


def now() -> Sizes:
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    return summed({file.relative_to(ROOT).as_posix(): len(file.read_bytes().splitlines()) for file in files})


def at(commit: str) -> Sizes:
    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout

    paths = git("ls-tree", "-r", "--name-only", commit, PACKAGE).decode().split()
    return summed(
        {path: len(git("show", f"{commit}:{path}").splitlines()) for path in paths if path.endswith(".py")}
    )


def table(before: Sizes | None, after: Sizes) -> str:
    """A table in Markdown; without ``before`` it has the present sizes only."""
    columns = [after] if before is None else [before, after]
    names = ["now"] if before is None else ["before", "now"]
    head = ["part", *(f"{what}, {name}" for name in names for what in ("files", "lines"))]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    parts = sorted({part for sizes in columns for part in sizes}, key=lambda part: (part[-1:] != "/", part))
    for part in parts:
        rows.append([f"`{part}`" if part.endswith("/") else part, *cells(columns, [part])])
    rows.append(["all", *cells(columns, parts)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cells(columns: list[Sizes], parts: list[str]) -> list[str]:
    known = [[sizes[part] for part in parts if part in sizes] for sizes in columns]
    return [str(sum(size[k] for size in sizes)) for sizes in known for k in (0, 1)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", help="compare with this commit")
    given = parser.parse_args()
    print(table(None if given.commit is None else at(given.commit), now()))
