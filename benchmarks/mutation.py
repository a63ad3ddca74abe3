"""Mutation testing: small changes to the source that some test should notice.

Each mutant changes one thing: a sign, a constant, an operator, a comparison, ``min``/``max``, ``and``/``or``, a
negation. The project is copied, and the copy of the source holds every mutant of the sample behind a switch, so that
one tree of files serves all of them. First the tests run once and report which mutants they reach; then each mutant is
switched on and the tests that reach it are run, the quickest first, in a process forked from one that has imported
everything except the package.

    python benchmarks/mutation.py --sample 400 --jobs 2 --work build/mutation
    python benchmarks/mutation.py --files simulate/friction.py --sample 1000 --work build/mutation

The folder ``--work`` keeps the copy, what each test reaches and all verdicts (``verdicts.jsonl``). A second run with
the same folder judges what is not judged yet, and the survivors once more with the tests as they are now.

Survivors are listed with file, line and change. Some change no result (a tolerance, a limit of a loop that is never
reached, what speed alone depends on): these have to be judged by a person.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from mutation_parts.changes import ROOT, Mutant, mutants
from mutation_parts.project import CAUGHT, SOURCE_IS_READ, TESTS, TESTS_OF_SOURCE, Project, nearest


def sampled(options: argparse.Namespace) -> list[Mutant]:
    source = ROOT / "src/linkwise"
    files = options.files.split(",") if options.files else []
    for part in [] if files else options.parts.split(","):
        files += [str(path.relative_to(source)) for path in sorted((source / part).rglob("*.py"))]
    every = [mutant for path in files for mutant in mutants(path)]
    print(f"{len(every)} mutants of {len(files)} files", flush=True)
    return random.Random(options.seed).sample(every, min(options.sample, len(every)))


def _sample_of(folder: Path, options: argparse.Namespace) -> list[Mutant]:
    """The sample that the folder was made for, or a new one."""
    where = folder / "sample.json"
    if not where.is_file():
        chosen = [vars(mutant) for mutant in sampled(options)]
        where.write_text(json.dumps(chosen, indent=1, ensure_ascii=False), encoding="utf-8")
    return [Mutant(**row) for row in json.loads(where.read_text(encoding="utf-8"))]


def _warm() -> None:
    """Import what takes long, except the package under test: children are forked from here."""
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.linalg
    import scipy.optimize
    import scipy.stats  # noqa: F401


class Job:
    """One process of several: a copy of the project, in which it runs tests for the others."""

    project: Project

    @classmethod
    def begin(cls, folder: Path, chosen: list[Mutant], numbers: SimpleQueue[int]) -> None:
        cls.project = Project(folder, chosen, numbers.get())

    @classmethod
    def map(cls, test: str) -> str:
        return cls.project.map(test)

    @classmethod
    def judge(cls, number: int, mutant: Mutant, near: list[tuple[float, str]]) -> tuple[str, str, float]:
        """(verdict, test that failed, seconds)."""
        began = time.perf_counter()
        verdict, test = cls.project.judged(number, mutant, near) if near else ("not reached", "")
        return verdict, test, round(time.perf_counter() - began, 2)


class Verdicts:
    """What was found, kept in a file as it comes."""

    def __init__(self, project: Project, chosen: list[Mutant], jobs: Executor):
        self.project, self.chosen, self.jobs = project, chosen, jobs
        self.file = project.folder / "verdicts.jsonl"
        rows = self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else []
        self.found: dict[int, str] = {row["number"]: row["verdict"] for row in map(json.loads, rows)}
        self.reached: dict[tuple[str, ...], tuple[dict[str, dict[str, Any]], set[int]]] = {}
        self.files = {path: -file for file, path in enumerate(sorted({mutant.path for mutant in chosen}), 1)}

    def near(self, number: int, mutant: Mutant, parts: tuple[str, ...]) -> list[tuple[float, str]]:
        """(seconds, name) of the tests of some parts that a mutant is run against."""
        if parts not in self.reached:
            for told in self.jobs.map(Job.map, self.project.unmapped(parts)):
                print(told, flush=True)
            self.reached[parts] = self.project.reached(parts)
        tests, imported = self.reached[parts]
        if mutant.path.startswith(SOURCE_IS_READ):
            return sorted(
                (tests[name]["seconds"], name) for name in tests if name.startswith(TESTS_OF_SOURCE)
            )
        return nearest(number, self.files[mutant.path], tests, imported)

    def judge(self, parts: tuple[str, ...]) -> None:
        """All mutants that are not caught yet: with the tests of their own part, or with those of some parts."""
        open_ones = [(n, m) for n, m in enumerate(self.chosen, 1) if self.found.get(n) not in CAUGHT]
        running = {}
        for number, mutant in open_ones:
            near = self.near(number, mutant, parts or (mutant.path.partition("/")[0],))
            running[self.jobs.submit(Job.judge, number, mutant, near)] = number
        for done, future in enumerate(as_completed(running), 1):
            number = running[future]
            mutant = self.chosen[number - 1]
            verdict, test, took = future.result()
            self.found[number] = verdict
            row = {"number": number, "mutant": str(mutant), "verdict": verdict, "test": test, "seconds": took}
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if verdict not in CAUGHT:
                print(f"{'survived' if verdict == 'passed' else verdict}: {number} {mutant}", flush=True)
            if done % 20 == 0:
                print(f"{done} of {len(running)}: {self.caught()} caught", flush=True)

    def caught(self) -> int:
        return sum(verdict in CAUGHT for verdict in self.found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=400, help="mutants, drawn at random")
    parser.add_argument("--parts", default=",".join(TESTS), help="folders of src/linkwise")
    parser.add_argument("--files", default="", help="files below src/linkwise instead, e.g. control/gains.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that run tests side by side")
    parser.add_argument("--work", type=Path, help="folder that is kept, to go on later")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="linkwise-mutation-") as temporary:
        folder = (options.work or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        chosen = _sample_of(folder, options)
        _warm()
        start = time.perf_counter()
        project = Project(folder, chosen)
        fork = multiprocessing.get_context("fork")
        numbers = fork.SimpleQueue()
        for number in range(1, options.jobs + 1):
            numbers.put(number)
        with ProcessPoolExecutor(options.jobs, fork, Job.begin, (folder, chosen, numbers)) as jobs:
            verdicts = Verdicts(project, chosen, jobs)
            verdicts.judge(())
            if len({mutant.path.partition("/")[0] for mutant in chosen}) > 1:
                print("survivors with the tests of all parts", flush=True)
                verdicts.judge(tuple(TESTS))
    spent, share = time.perf_counter() - start, 100 * verdicts.caught() / max(len(chosen), 1)
    print(f"{verdicts.caught()} of {len(chosen)} caught ({share:.1f} %) in {spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
