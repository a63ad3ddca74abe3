"""Forward dynamics over the number of joints: the filter, the mass matrix and conjugate gradients.

Operations are those of ``research.records.crossovers``; times are medians of interleaved repeats, for batches on one
thread. Writes two figures and the measured numbers, from which ``python -m research.records`` makes its page.

    python benchmarks/crossovers.py [--states 1024] [--repeats 41] [--joints 2,3,...] [--out docs/figures]
                                    [--counts-only] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.compiler.runtime import host

sys.path.append(str(Path(__file__).parents[1]))
from research.records import crossovers

JOINTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20)
LINES = {  # published formulas: legend, source, style
    "Kozłowski 1990, filter": ("Kozłowski 1990", (0, (6, 2))),
    "Brandl et al. 1986": ("Brandl–Johanni–Otter 1986", (0, (1, 1.5))),
    "McMillan–Orin 1995": ("McMillan–Orin 1995", (0, (4, 1.5, 1, 1.5))),
    "Kozłowski's rival, mass matrix": ("mass matrix and solution", (0, (2, 2))),
}
COLOURS = {"kalman": "#0072b2", "compound_link": "#d55e00", "conjugate_gradient": "#009e73"}  # of the reports
WORDS = {
    "kalman": "filter",
    "compound_link": "mass matrix, factorised",
    "conjugate_gradient": "conjugate gradients",
}


@dataclass(frozen=True)
class Measured:
    """Times of forward dynamics, general chains."""

    joints: tuple[int, ...]
    states: int
    repeats: int
    lanes: int
    nanoseconds: dict[str, list[float]]  # per state, by method
    matrix_is_faster: str


def runner(robot: lw.Robot, method: str, states: int) -> Callable[[], float]:
    """A compiled kernel with its arrays: each call gives the nanoseconds per state of one run."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (states, robot.dof))
    qd, qdd = rng.normal(size=(2, states, robot.dof))
    tau = robot.inverse_dynamics(q, qd, qdd)
    kernel = robot.kernel("forward_dynamics", algorithm=method)
    first = kernel(q, qd, tau, threads=1)  # compiles

    def run() -> float:
        start = time.perf_counter()
        kernel(q, qd, tau, threads=1, out=first)
        return 1e9 * (time.perf_counter() - start) / states

    return run


def measure(states: int, repeats: int, joints: tuple[int, ...] = JOINTS) -> Measured:
    """The methods side by side, n by n."""
    found: dict[str, list[float]] = {method: [] for method in crossovers.METHODS}
    for n in joints:
        robot = lw.general_chain(n, base_offsets=False)
        runs = {method: runner(robot, method, states) for method in found}
        times: dict[str, list[float]] = {method: [] for method in found}
        for _ in range(repeats):
            for method, run in runs.items():
                times[method].append(run())
        for method, each in times.items():
            found[method].append(round(statistics.median(each), 1))
    ahead = [m < f for m, f in zip(found["compound_link"], found["kalman"], strict=True)]
    last = ahead.index(False) if False in ahead else len(ahead)
    words = "no n measured" if last == 0 else f"n ≤ {joints[last - 1]}"
    return Measured(joints, states, repeats, host.lanes("float64"), found, words)


def plot_counts(path: Path) -> None:
    """Operations per joint over n."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    over = range(crossovers.SMALLEST, crossovers.LARGEST + 1)
    for words, (source, style) in LINES.items():
        row = crossovers.published(source)
        axes.plot(over, [row.total(n) / n for n in over], color="#888888", linestyle=style, label=words)
    for method, colour in COLOURS.items():
        each = [crossovers.ours("general", method, n) / n for n in over]
        axes.plot(over, each, color=colour, marker=".", label=f"ours, {WORDS[method]}")
    axes.set_ylim(0, 1250)
    axes.set_ylabel("operations per joint")
    axes.set_title(
        "Forward dynamics of general chains: multiplications, additions, divisions", fontsize=10, loc="left"
    )
    _finish(figure, axes, path)


def plot_times(measured: Measured, path: Path) -> None:
    """Nanoseconds per state and joint over n."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    for method, colour in COLOURS.items():
        each = [t / n for t, n in zip(measured.nanoseconds[method], measured.joints, strict=True)]
        axes.plot(measured.joints, each, color=colour, marker=".", label=WORDS[method])
    highest = max(
        t / n
        for method in ("kalman", "compound_link")
        for t, n in zip(measured.nanoseconds[method], measured.joints, strict=True)
    )
    axes.set_ylim(0, 2.5 * highest)
    axes.set_ylabel("ns per state and joint")
    how = f"batches of {measured.states}, float64, one thread"
    axes.set_title(f"Forward dynamics of general chains: {how}", fontsize=10, loc="left")
    _finish(figure, axes, path)


def _pyplot():
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "linkwise", "svg.fonttype": "path", "font.size": 9})
    import matplotlib.pyplot as plt

    return plt


def _finish(figure, axes, path: Path) -> None:
    axes.set_xlabel("joints n")
    axes.set_xticks(range(2, 21, 2))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument(
        "--joints", type=lambda text: tuple(map(int, text.split(","))), default=JOINTS, metavar="N,N,..."
    )
    parser.add_argument("--out", type=Path, default=Path("docs") / "figures")
    parser.add_argument("--counts-only", action="store_true", help="draw the counts, measure nothing")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    options = parser.parse_args()
    plot_counts(options.out / "crossover_counts.svg")
    if options.counts_only:
        return
    measured = measure(options.states, options.repeats, options.joints)
    plot_times(measured, options.out / "crossover_times.svg")
    text = json.dumps(asdict(measured), indent=1, ensure_ascii=False)
    (options.out / "crossovers.json").write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(text)
        return
    print(f"{'ns/state, n =':24}" + "".join(f"{n:9}" for n in measured.joints))
    for method, each in measured.nanoseconds.items():
        print(f"{method:24}" + "".join(f"{value:9.1f}" for value in each))
    print(f"the mass matrix is ahead of the filter for {measured.matrix_is_faster}")


if __name__ == "__main__":
    main()
