"""Mutation testing: small changes to the source that some test should notice.

Each mutant changes one thing: a sign, a constant, an operator, a comparison, ``min``/``max``, ``and``/``or``, a
negation. First the tests of every part run once under a profiler, which tells the functions that each test executes. A
mutant is then run against the tests that execute its function, the quickest first. The project is copied to a temporary
folder and mutated there; the working tree is never touched.

    python benchmarks/mutation.py --sample 400 --parts algorithms,compiler,identify,motion,control,simulate,study
    python benchmarks/mutation.py --files simulate/friction.py --sample 1000 --jobs 2 --json found.json

Survivors are listed with file, line and change. Some change no result (a tolerance, a limit of a loop that is never
reached, what speed alone depends on): these have to be judged by a person.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("algorithms", "compiler", "identify", "motion", "control", "simulate", "study")
FURTHER_TESTS = {
    "algorithms": ("tests/test_robot.py", "tests/test_derivatives.py", "tests/test_sweeps.py"),
    "compiler": ("tests/gpu/test_cuda.py", "tests/gpu/test_cuda_sweeps.py", "tests/gpu/test_gpu_rollout.py"),
    "control": ("tests/simulate/test_tracking.py",),
}
"""Test files of a part besides those in its own folder."""
MOST_TESTS = 200  # of those that execute a mutant's function, the quickest
SPARE_TIME = 60.0  # [s] that a mutant gets beyond five times what its tests take


# -- mutants ------------------------------------------------------------------------------------------------

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: the ``number``-th node of the file's syntax tree, in its ``choice``-th way."""

    path: str
    """Of the file below ``src/linkwise``."""
    number: int
    choice: int
    line: int
    function: int
    """Line of the innermost ``def`` (or its first decorator) around the change; 0 outside of functions."""
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


def changed(node: ast.AST) -> list[ast.AST]:
    """What a node may be replaced by."""
    match node:
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.Constant(value=float(value)):
            return [ast.Constant(2.0 * value if value else 1.0)]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=inner):
            return [inner]
        case ast.BinOp(left, op, right):
            return [ast.BinOp(left, new(), right) for new in SWAPPED.get(type(op), ())]  # type: ignore[arg-type]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(new(), values) for new in SWAPPED[type(op)]]  # type: ignore[arg-type]
        case ast.Compare(left, [op, *rest], comparators):
            return [ast.Compare(left, [new(), *rest], comparators) for new in SWAPPED[type(op)]]  # type: ignore[list-item]
        case ast.AugAssign(target, op, value):
            return [ast.AugAssign(target, new(), value) for new in SWAPPED.get(type(op), ())]  # type: ignore[arg-type]
        case ast.Call(ast.Name(name), args, keywords) if name in NAMES:
            return [ast.Call(ast.Name(NAMES[name], ast.Load()), args, keywords)]
        case ast.Call(ast.Attribute(value, name), args, keywords) if name in NAMES:
            return [ast.Call(ast.Attribute(value, NAMES[name], ast.Load()), args, keywords)]
        case ast.If(test, body, orelse):
            return [ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)]
    return []


def visited(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, int]]:
    """(owner, field, index, node, line of the function) of every node that counts, in a fixed order.

    Annotations, messages of errors and what is for type checkers alone are left out: changing them changes no result.
    """

    def walk(owner: ast.AST, function: int):
        for name, value in ast.iter_fields(owner):
            if name in ("annotation", "returns", "type_params", "slice") and isinstance(
                owner, (ast.arg, ast.AnnAssign, ast.FunctionDef)
            ):
                continue
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST) or isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
                    continue
                if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                    continue
                if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
                    continue
                if isinstance(node, ast.keyword) and node.arg == "strict":  # a check of lengths in zip
                    continue
                inner = function
                if isinstance(node, ast.FunctionDef):
                    inner = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                yield owner, name, index, node, inner
                yield from walk(node, inner)

    yield from walk(tree, 0)


def mutants(path: str) -> list[Mutant]:
    tree = ast.parse((ROOT / "src/linkwise" / path).read_text(encoding="utf-8"))
    found = []
    for number, (_, _, _, node, function) in enumerate(visited(tree)):
        for choice, new in enumerate(changed(node)):
            text = f"{_short(node)}  ->  {_short(new)}"
            found.append(Mutant(path, number, choice, getattr(node, "lineno", 0), function, text))
    return found


def _short(node: ast.AST) -> str:
    shown = copy.copy(node)
    if isinstance(shown, ast.If):
        shown.body, shown.orelse = [ast.Expr(ast.Constant(...))], []
    return " ".join(ast.unparse(ast.fix_missing_locations(shown)).split())[:100]


def mutated(mutant: Mutant, text: str) -> str:
    """The text of the file with the change in it."""
    tree = ast.parse(text)
    for number, (owner, name, index, node, _) in enumerate(visited(tree)):
        if number == mutant.number:
            new = ast.copy_location(changed(node)[mutant.choice], node)
            if index is None:
                setattr(owner, name, new)
            else:
                getattr(owner, name)[index] = new
            return ast.unparse(ast.fix_missing_locations(tree))
    raise AssertionError("no such node")


# -- tests --------------------------------------------------------------------------------------------------

PLUGIN = """
import json, os, sys, threading, time
import pytest

SOURCE = os.path.join(os.getcwd(), "src", "linkwise") + os.sep
found = {}

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    seen = set()
    def profile(frame, event, arg):
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
    start = time.perf_counter()
    threading.setprofile(profile); sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None); threading.setprofile(None)
    took = time.perf_counter() - start
    ours = [code for code in seen if code.co_filename.startswith(SOURCE)]
    functions = {f"{code.co_filename[len(SOURCE):]}:{code.co_firstlineno}" for code in ours}
    found[item.nodeid] = {"seconds": took, "functions": sorted(functions), "passed": False}

def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        passed.add(report.nodeid)

passed = set()

def pytest_sessionfinish():
    for name in passed:
        found[name]["passed"] = True
    with open(os.environ["MUTATION_MAP"], "w") as file:
        json.dump(found, file)
"""


class Project:
    """A copy of the project that may be changed."""

    def __init__(self, folder: Path):
        self.root, self.log = folder / "project", folder / "log"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
        (self.root / "mutation_plugin.py").write_text(PLUGIN, encoding="utf-8")

    def pytest(self, *arguments: str, timeout: float | None = None, **environment: str) -> str:
        """ "passed", "failed" or "timeout"."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        path = os.pathsep.join((str(self.root / "src"), str(self.root)))
        settings = {"PYTHONPATH": path, "LINKWISE_CACHE": "", "PYTHONDONTWRITEBYTECODE": "1", **environment}
        with open(self.log, "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return "timeout"
        return "failed" if code else "passed"

    def judged(self, mutant: Mutant, tests: list[str], seconds: float) -> str:
        path = self.root / "src/linkwise" / mutant.path
        original = path.read_bytes()
        path.write_text(mutated(mutant, original.decode()), encoding="utf-8")
        try:
            return self.pytest("-x", *tests, timeout=5 * seconds + SPARE_TIME)
        finally:
            path.write_bytes(original)


def test_map(part: str, project: Project, folder: Path) -> dict[str, dict]:
    """For every passing test of a part: how long it takes and the functions that it executes."""
    where = folder / f"{part}.json"
    if not where.is_file():
        tests = [f"tests/{part}", *FURTHER_TESTS.get(part, ())]
        project.pytest("-p", "mutation_plugin", *tests, MUTATION_MAP=str(where))
        if not where.is_file():
            raise SystemExit(
                f"the tests of {part} did not run:\n{project.log.read_text(errors='replace')[-3000:]}"
            )
    found = json.loads(where.read_text(encoding="utf-8"))
    return {name: test for name, test in found.items() if test["passed"]}


def nearest(mutant: Mutant, tests: dict[str, dict]) -> tuple[list[str], float]:
    """(the quickest tests that reach the mutant, the seconds they take).

    A test reaches a function that it executes; what stands outside of functions, all tests that execute some function
    of the file, and those of the test file of its name.
    """
    file = f"{mutant.path}:"
    own = f"/test_{Path(mutant.path).stem}.py::"

    def reaches(name: str, functions: list[str]) -> bool:
        if mutant.function:
            return f"{file}{mutant.function}" in functions
        return own in name or any(function.startswith(file) for function in functions)

    chosen = sorted(
        (test["seconds"], name) for name, test in tests.items() if reaches(name, test["functions"])
    )[:MOST_TESTS]
    return [name for _, name in chosen], sum(seconds for seconds, _ in chosen)


# -- the run ------------------------------------------------------------------------------------------------


def sampled(options: argparse.Namespace) -> list[Mutant]:
    source = ROOT / "src/linkwise"
    files = options.files.split(",") if options.files else []
    for part in [] if files else options.parts.split(","):
        files += [str(path.relative_to(source)) for path in sorted((source / part).rglob("*.py"))]
    every = [mutant for path in files for mutant in mutants(path)]
    print(f"{len(every)} mutants of {len(files)} files", file=sys.stderr)
    return random.Random(options.seed).sample(every, min(options.sample, len(every)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=400, help="mutants, drawn at random")
    parser.add_argument("--parts", default=",".join(PARTS), help="folders of src/linkwise")
    parser.add_argument("--files", default="", help="files below src/linkwise instead, e.g. control/gains.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--maps", type=Path, help="folder to keep what each test executes, for the next run")
    parser.add_argument("--json", type=Path, help="write all results here")
    options = parser.parse_args()
    chosen = sampled(options)
    with tempfile.TemporaryDirectory(prefix="linkwise-mutation-") as folder:
        projects: Queue[Project] = Queue()
        for number in range(options.jobs):
            (Path(folder) / str(number)).mkdir()
            projects.put(Project(Path(folder) / str(number)))
        maps = options.maps or Path(folder)
        maps.mkdir(parents=True, exist_ok=True)
        first = projects.get()
        parts = sorted({mutant.path.split("/")[0] for mutant in chosen})
        tests = {part: test_map(part, first, maps.resolve()) for part in parts}
        projects.put(first)

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            names, seconds = nearest(mutant, tests[mutant.path.split("/")[0]])
            if not names:
                return mutant, "not reached"
            project = projects.get()
            try:
                return mutant, project.judged(mutant, names, seconds)
            finally:
                projects.put(project)

        results, start = [], time.perf_counter()
        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, verdict in pool.map(judge, chosen):
                results.append((mutant, verdict))
                if verdict in ("passed", "not reached"):
                    print(f"{'survived' if verdict == 'passed' else verdict}: {mutant}", flush=True)
                if len(results) % 20 == 0:
                    print(
                        f"{len(results)} of {len(chosen)} in {time.perf_counter() - start:.0f} s", flush=True
                    )
    caught = sum(verdict in ("failed", "timeout") for _, verdict in results)
    spent = time.perf_counter() - start
    print(f"{caught} of {len(results)} caught ({100 * caught / max(len(results), 1):.1f} %) in {spent:.0f} s")
    if options.json:
        rows = [{"mutant": str(mutant), "verdict": verdict} for mutant, verdict in results]
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
