"""Mutation testing for a small sample: each mutant is written into a copy of the project, and the nearest tests run.

``mutation.py`` asks every test which mutants it reaches; this script takes the tests by their names and imports
instead, so that a sample of some dozens is judged within minutes:

    python benchmarks/mutation_by_name.py --sample 40 --seed 27 --minutes 30

Nearest are the tests named like the file, then those that import it, then those of its folder; at most ``--files`` of
them. Survivors are listed with file, line and change.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutation_parts.changes import ROOT, Mutant, mutants, mutated

PARTS = "solve,optimal,motion,control,simulate,embedded,compiler,identify"
COPIED = ("src", "tests", "examples", "docs", "benchmarks")


def nearest_files(path: str, most: int) -> list[str]:
    """Test files near a file below ``src/linkwise``, the nearest first."""
    module = path.removesuffix(".py").replace("/", ".")
    part, stem = path.split("/")[0], Path(path).stem
    above = re.escape(module.rpartition(".")[0])
    ranked: list[tuple[int, int, str]] = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(ROOT).as_posix()
        if file.stem == f"test_{stem}":
            rank = 0
        elif re.search(rf"linkwise\.{re.escape(module)}\b", text) or re.search(
            rf"linkwise\.{above} import .*\b{stem}\b", text
        ):
            rank = 1
        elif f"tests/{part}/" in name:
            rank = 2 if stem.split("_")[0] in file.stem else 3
        else:
            continue
        ranked.append((rank, len(text), name))
    return [name for _, _, name in sorted(ranked)[:most]]


def judged(copy: Path, mutant: Mutant, tests: list[str], seconds: float) -> str:
    """failed, passed or timeout."""
    file = copy / "src/linkwise" / mutant.path
    original = file.read_text(encoding="utf-8")
    file.write_text(mutated(mutant, original), encoding="utf-8")
    settings = {"PYTHONPATH": f"{copy / 'src'}", "LINKWISE_CACHE": str(copy / "cache")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, **settings},
            timeout=seconds,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        file.write_text(original, encoding="utf-8")
        shutil.rmtree(copy / "cache", ignore_errors=True)
    return "passed" if done.returncode == 0 else "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--parts", default=PARTS, help="folders of src/linkwise")
    parser.add_argument("--files", type=int, default=3, help="test files for each mutant")
    parser.add_argument("--seconds", type=float, default=150.0, help="for each mutant")
    parser.add_argument("--minutes", type=float, default=30.0, help="after which no further one is begun")
    options = parser.parse_args()
    source = ROOT / "src/linkwise"
    paths = [
        file.relative_to(source).as_posix()
        for part in options.parts.split(",")
        for file in sorted((source / part).rglob("*.py"))
    ]
    every = [mutant for path in paths for mutant in mutants(path)]
    chosen = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    print(f"{len(every)} mutants of {len(paths)} files", flush=True)
    counts = {"failed": 0, "passed": 0, "timeout": 0}
    end = time.monotonic() + 60.0 * options.minutes
    with tempfile.TemporaryDirectory(prefix="linkwise-mutation-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for mutant in chosen:
            if time.monotonic() > end:
                break
            tests = nearest_files(mutant.path, options.files)
            verdict = judged(Path(folder), mutant, tests, options.seconds)
            counts[verdict] += 1
            print(f"{verdict}: {mutant} {'' if verdict == 'failed' else tests}", flush=True)
    total = sum(counts.values())
    print(
        f"{counts['failed']} of {total} noticed, {counts['timeout']} ran out of time, {counts['passed']} survived"
    )


if __name__ == "__main__":
    main()
