"""Learning curves of several seeds as a picture: mean length of episodes over the time since the start.

    python benchmarks/learning_curve.py CURVE.json [CURVE.json …] --out learning.svg

The files are those that ``examples/60_learn_to_walk.py --out`` writes beside its policies: rows of seconds, steps,
return, length and reward.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np

from linkwise.report import Figure, Line, line_plot


def picture(curves: list[np.ndarray]) -> str:
    """Lines over a common grid of times, each from its first row to its last."""
    last = max(curve[-1, 0] for curve in curves)
    t = np.linspace(0.0, last, 200)
    lines = []
    for seed, curve in enumerate(curves):
        y = np.interp(t, curve[:, 0], curve[:, 3])
        lines.append(Line(f"seed {seed}", np.where((t >= curve[0, 0]) & (t <= curve[-1, 0]), y, np.nan)))
    svg = line_plot(t, lines, y_label="steps of an episode, of 1000", hover=False)
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'  # readable on dark pages too
    return re.sub(r"(<svg [^>]*>)", rf"\1{paper}", Figure("learning", svg).file(), count=1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("curves", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("learning.svg"))
    given = parser.parse_args()
    tables = [np.array(json.loads(path.read_text(encoding="utf-8"))) for path in given.curves]
    made_up = np.column_stack([np.arange(1.0, 6.0), *np.ones((2, 5)), 1000.0 * np.arange(5) / 5, np.ones(5)])
    given.out.write_text(picture(tables or [made_up]), encoding="utf-8")
    print(f"{given.out} written: {len(tables) or 'no'} curves" + ("" if tables else ", a made-up one"))


if __name__ == "__main__":
    main()
