"""What users of other libraries type first, in Python and on the command line: what works, what says what to type?

    python benchmarks/habits.py                 # counts, and every line without a good answer
    python benchmarks/habits.py --all           # every line with its answer
    python benchmarks/habits.py --json

The lists are ``habits_parts/python.txt`` and ``commands.txt``: what is typed, and what an answer must name.
An answer is

- ``works`` where the call works and was expected to, or works and nothing else was expected;
- ``named`` where the error names what to type;
- ``bare`` where the error gives no advice;
- ``misleading`` where it advises something else.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.cli import main as command_line

PARTS = Path(__file__).parent / "habits_parts"
ADVISED = re.compile(r"did you mean|: use |(?<!\w)use ", re.IGNORECASE)
KINDS = ("works", "named", "bare", "misleading")
URDF = """<robot name="arm"><link name="base"/>{}{}</robot>"""
LINK = """<link name="l{0}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{0}" type="revolute"><parent link="{1}"/><child link="l{0}"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="10"/></joint>"""


def habits(name: str) -> list[tuple[str, str, str]]:
    """(section, what is typed, what the answer must name) of one list."""
    rows, section = [], ""
    for line in (PARTS / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            typed, _, answer = line.partition(" | ")
            rows.append((section, typed.strip(), answer.strip()))
    return rows


def judged(said: str | None, answer: str) -> str:
    """The kind of an answer; ``said`` is None where the call works."""
    if said is None:
        return "works"
    advice = re.split(r"commands:|valid:(?=(?:[^,]*,){9})", said)[0]  # a list of all names is no advice
    if answer != "works" and re.search(answer, advice):
        return "named"
    return "misleading" if ADVISED.search(advice) else "bare"


def in_python(typed: str, names: dict) -> str | None:
    """The message of the error, or None."""
    try:
        eval(typed, dict(names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def on_the_command_line(typed: str) -> str | None:
    """What is printed on standard error where the command fails, or None."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command_line(typed.split())
    return None if status == 0 else err.getvalue().strip()


def answers() -> list[dict[str, str]]:
    """Every line of both lists with its answer."""
    robot = lw.load("panda")
    zeros = np.zeros(7)
    names = {"lw": lw, "np": np, "robot": robot, **dict.fromkeys(("q", "v", "a", "tau"), zeros)}
    rows = []
    for section, typed, answer in habits("python.txt"):
        said = in_python(typed, names)
        rows.append({"list": section, "typed": typed, "said": said or "", "kind": judged(said, answer)})
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "arm.urdf").write_text(
            URDF.format(LINK.format(1, "base"), LINK.format(2, "l1")), encoding="utf-8"
        )
        Path(folder, "log.csv").write_text("t,q1,q2\n0,0,0\n", encoding="utf-8")
        os.chdir(folder)
        try:
            for section, typed, answer in habits("commands.txt"):
                said = on_the_command_line(typed)
                rows.append(
                    {
                        "list": section,
                        "typed": f"linkwise {typed}",
                        "said": said or "",
                        "kind": judged(said, answer),
                    }
                )
        finally:
            os.chdir(here)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="every line, not only those without a good answer")
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = answers()
    if options.json:
        json.dump(rows, sys.stdout, indent=1, ensure_ascii=False)
        return
    for row in rows:
        if options.all or row["kind"] in ("bare", "misleading"):
            print(f"{row['kind']:10}  {row['typed']}\n{'':12}{' '.join(row['said'].split())[:300]}")
    for name, part in (("Python", False), ("command line", True)):
        counts = Counter(row["kind"] for row in rows if row["typed"].startswith("linkwise ") is part)
        total = sum(counts.values())
        print(f"{name}: {total} habits: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))


if __name__ == "__main__":
    main()
