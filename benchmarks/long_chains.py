"""Chains of many links: what a link costs as straight-line code and as loops over the links, and what compiling takes.

General links, float64, one thread; medians of interleaved repeats, processor seconds for tracing and compiling.
Straight-line code is measured as far as compiling it stays bearable. The limit between the two,
``robot.kernels.STRAIGHT_LINE_LIMIT``, is read off this table: below it straight-line code is the faster one, above
it loops are, and they compile in a fraction of the time.

    python benchmarks/long_chains.py [--links 10,20,40,...] [--repeats 15] [--longest-straight 80] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import linkwise as lw
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels

LINKS = (10, 20, 30, 40, 50, 60, 80, 120, 200, 400, 1000)
TASKS = {"inverse_dynamics": "qdd", "forward_dynamics": "tau"}  # the function and its third input
SCALARS = 40_000  # states times links of a batch, so that the arrays stay in the cache
FORMS = {"straight": 10**9, "swept": 0}  # the limit that makes the compiler choose it


@dataclass
class Row:
    """One line of the table."""

    task: str
    links: int
    form: str
    chosen: bool  # whether this is what the library runs
    compile_s: float  # of one processor
    ns_per_link: float = 0.0


class Runner:
    """One kernel in one form with its arrays, compiled."""

    def __init__(self, task: str, n: int, form: str):
        robot = lw.general_chain(n, base_offsets=False)
        rng = np.random.default_rng(0)
        states = max(16, SCALARS // n)
        self.given = [rng.uniform(-np.pi, np.pi, (states, n)), *(0.1 * rng.normal(size=(2, states, n)))]
        usual = kernels.STRAIGHT_LINE_LIMIT
        chosen = "straight" if kernels.is_straight(FUNCTIONS[task], Setting(robot)) else "swept"
        kernels.STRAIGHT_LINE_LIMIT = FORMS[form]
        try:
            start = time.process_time()
            self.kernel = robot.kernel(task)
            self.out = self.kernel(*self.given, threads=1)
            seconds = time.process_time() - start
        finally:
            kernels.STRAIGHT_LINE_LIMIT = usual
        self.row = Row(task, n, form, form == chosen, round(seconds, 3))
        self.work = states * n

    def ns_per_link(self) -> float:
        start = time.perf_counter()
        self.kernel(*self.given, threads=1, out=self.out)
        return 1e9 * (time.perf_counter() - start) / self.work


def measure(links: Sequence[int], repeats: int, longest_straight: int) -> list[Row]:
    rows = []
    for task in TASKS:
        for n in links:
            runners = [Runner(task, n, form) for form in FORMS if form == "swept" or n <= longest_straight]
            times: list[list[float]] = [[] for _ in runners]
            for _ in range(repeats):
                for runner, each in zip(runners, times, strict=True):
                    each.append(runner.ns_per_link())
            for runner, each in zip(runners, times, strict=True):
                runner.row.ns_per_link = round(statistics.median(each), 2)
                rows.append(runner.row)
            check([runner.out for runner in runners])
    return rows


def check(results: list[np.ndarray]) -> None:
    """Both forms must give the same results."""
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-6, atol=1e-6 * np.abs(results[0]).max())


def show(rows: list[Row], say: Callable[[str], None] = print) -> None:
    say(f"{'':18}{'links':>6}{'straight-line code':>26}{'loops':>26}   what runs")
    say(f"{'':24}{'compile s':>14}{'ns/link':>12}{'compile s':>14}{'ns/link':>12}")
    by_size: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        by_size.setdefault((row.task, row.links), {})[row.form] = row
    for (task, n), forms in by_size.items():
        text = f"{task:18}{n:6}"
        for form in FORMS:
            row = forms.get(form)
            text += f"{'':26}" if row is None else f"{row.compile_s:14.2f}{row.ns_per_link:12.2f}"
        chosen = next((form for form, row in forms.items() if row.chosen), "straight")
        say(text + f"   {chosen}")
    say(
        f"limit: {kernels.STRAIGHT_LINE_LIMIT} estimated operations (400 per link of inverse, 500 of forward dynamics)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--links", type=lambda text: tuple(map(int, text.split(","))), default=LINKS, metavar="N,N,..."
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--longest-straight", type=int, default=80, metavar="N")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["LINKWISE_CACHE"] = ""  # every kernel is compiled here and now
    rows = measure(options.links, options.repeats, options.longest_straight)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    show(rows)


if __name__ == "__main__":
    main()
