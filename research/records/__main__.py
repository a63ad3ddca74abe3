"""Write the page of records, or check that it is up to date.

python -m research.records                  print it
python -m research.records --write [FILE]   write it (default: docs/records.md)
python -m research.records --steps          print the papers' tables row by row
python -m research.records --check [FILE]   exit status 1 when the file says something else
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from linkwise.files import outputs
from research.records.page import render, steps

PAGE = Path("docs") / "records.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m research.records", description="The page of records.")
    parser.add_argument("--write", nargs="?", const=PAGE, type=Path, metavar="FILE", help="write the page")
    parser.add_argument(
        "--check", nargs="?", const=PAGE, type=Path, metavar="FILE", help="compare with the page"
    )
    parser.add_argument("--steps", action="store_true", help="print the papers' tables row by row")
    options = parser.parse_args()
    if options.steps:
        sys.stdout.write(steps())
        return 0
    target = options.write or options.check
    text = render(PAGE.parent if target is None else target.parent)
    if target is None:
        sys.stdout.write(text)
    elif options.check:
        return 0 if target.is_file() and target.read_text(encoding="utf-8") == text else 1
    else:
        outputs.write(target, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
