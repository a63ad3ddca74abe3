"""Mutation testing for a small sample: each mutant is written into a copy of the project, and the nearest tests run.

``mutation.py`` asks every test which mutants it reaches; this script takes the tests by their names and imports
instead, so that a sample of some dozens is judged within minutes:

    python benchmarks/mutation_by_name.py --sample 40 --seed 27 --minutes 30

Nearest are the tests named like the file, or like its folder and the file, then those that import it, those named like
what imports it, those of recorded results of its folder, and those that name most of what it defines or what its
importers define, at most ``--files`` of them. Survivors are listed
with file, line and change; ``--again OUTPUT`` judges those of an earlier run once more, with the tests as they are now.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mutation_parts.changes import ROOT, Mutant, mutants, mutated

PARTS = "solve,optimal,motion,control,simulate,embedded,compiler,identify"
COPIED = ("src", "tests", "examples", "docs", "benchmarks", "research")


def names_in(path: Path) -> set[str]:
    """Names of functions, methods and classes that a file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds) and not node.name.startswith("_")}


def imports_of(path: str) -> re.Pattern[str]:
    """The lines that import a file below ``src/linkwise``."""
    module = path.removesuffix(".py").replace("/", ".")
    above, _, stem = module.rpartition(".")
    whole = re.escape(f"linkwise.{module}")
    part = re.escape(f"linkwise.{above}".removesuffix("."))
    return re.compile(rf"{whole} import|import {whole}\b|{part} import (?:.*\b{stem}\b|\([^)]*\b{stem}\b)")


def importers(path: str) -> list[Path]:
    """Files of the package that import a file below ``src/linkwise``."""
    imported, files = imports_of(path), sorted((ROOT / "src/linkwise").rglob("*.py"))
    return [file for file in files if imported.search(file.read_text(encoding="utf-8"))]


def names_of_tests(path: str) -> dict[str, float]:
    """Names that tests of a file may have, and how near they are: of the file, of its importers, of theirs."""
    names: dict[str, float] = {}
    level = [path]
    for weight in (1000.0, 300.0, 100.0):
        above: list[str] = []
        for each in level[:12]:
            stem, folder = Path(each).stem, Path(each).parent.name
            own = [f"test_{folder}"] if stem == "__init__" else [f"test_{stem}", f"test_{folder}_{stem}"]
            for name in own:
                names.setdefault(name, weight)
            source = ROOT / "src/linkwise"
            above += [file.relative_to(source).as_posix() for file in importers(each)]
        level = [each for each in dict.fromkeys(above) if Path(each).stem not in ("__init__", "registered")]
    return names


def nearest_files(path: str, most: int) -> list[str]:
    """Test files near a file below ``src/linkwise``: by names, then by how often they name what it defines.

    Names that its importers define count, too, and tests of its folder before others.
    """
    own = names_in(ROOT / "src/linkwise" / path)
    users = {name for file in importers(path)[:12] for name in names_in(file)} - own
    part, stem, named = path.split("/")[0], Path(path).stem, names_of_tests(path)
    imported = imports_of(path)
    scores: list[tuple[float, str]] = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        words = Counter(re.findall(r"\w+", text))
        score = 3.0 * sum(min(words[name], 5) for name in own if len(name) > 3)
        score += sum(min(words[name], 3) for name in users if len(name) > 5) + 4.0 * min(words[stem], 5)
        name = file.relative_to(ROOT).as_posix()
        score *= 2.0 if f"tests/{part}/" in name else 1.0
        near = file.parent.name in (part, "tests")  # a file of another part may have the same name
        score += named.get(file.stem, 0.0) * (1.0 if near else 0.3) + 600.0 * bool(imported.search(text))
        score += 650.0 * (f"tests/{part}/test_recorded_" in name)
        scores.append((-score, name))
    return [name for score, name in sorted(scores)[:most] if score < 0.0]


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
        for code in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            code.unlink()  # of the mutant: it would count for the original, which may be as old and as long
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
    parser.add_argument("--skip", type=int, default=0, help="mutants of the sample that are judged already")
    parser.add_argument(
        "--again", type=Path, help="output of an earlier run, whose survivors are judged again"
    )
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
    chosen = chosen[options.skip :]
    if options.again:
        lines = options.again.read_text(encoding="utf-8").splitlines()
        left = [line.partition(": ")[2] for line in lines if line.startswith(("passed: ", "timeout: "))]
        chosen = [mutant for mutant in chosen if any(line.startswith(str(mutant) + " ") for line in left)]
    counts = {"failed": 0, "passed": 0, "timeout": 0}
    end = time.monotonic() + 60.0 * options.minutes
    with tempfile.TemporaryDirectory(prefix="linkwise-mutation-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for mutant in chosen:
            if time.monotonic() > end:
                break
            tests = nearest_files(mutant.path, options.files)
            tests.sort(key=lambda name: "test_recorded_" not in name)  # those end soonest
            verdict = judged(Path(folder), mutant, tests, options.seconds)
            counts[verdict] += 1
            print(f"{verdict}: {mutant} {'' if verdict == 'failed' else tests}", flush=True)
    total = sum(counts.values())
    print(
        f"{counts['failed']} of {total} noticed, {counts['timeout']} ran out of time, {counts['passed']} survived"
    )


if __name__ == "__main__":
    main()
