"""Mutation testing: small changes to the source that some test should notice.

Each mutant changes one thing: a sign, a constant, an operator, a comparison, ``min``/``max``, ``and``/``or``, a
negation. The project is copied, and the copy of the source holds every mutant of the sample behind a switch, so that
one tree of files serves all of them. First the tests run once and report which mutants they reach; then each mutant is
switched on and the tests that reach it are run, the quickest first, in a process forked from one that has imported
everything except the package.

    python benchmarks/mutation.py --sample 400 --work build/mutation
    python benchmarks/mutation.py --files simulate/friction.py --sample 1000 --work build/mutation

The folder ``--work`` keeps the copy, what each test reaches and all verdicts (``verdicts.jsonl``). A second run with
the same folder judges what is not judged yet, and the survivors once more with the tests as they are now.

Survivors are listed with file, line and change. Some change no result (a tolerance, a limit of a loop that is never
reached, what speed alone depends on): these have to be judged by a person.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import filecmp
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("algorithms", "compiler", "identify", "motion", "control", "simulate", "study")
TESTS = {
    "motion": ("motion", "cli/test_motion.py"),
    "control": ("control", "simulate/test_tracking.py"),
    "simulate": ("simulate", "test_joint_laws.py"),
    "identify": ("identify", "test_parameters.py"),
    "algorithms": (
        "algorithms",
        "test_robot.py",
        "test_derivatives.py",
        "test_sweeps.py",
        "test_moving_sweeps.py",
    ),
    "study": ("study",),
    "compiler": ("compiler", "gpu", "test_methods.py", "test_combined.py", "test_forks.py"),
}
"""Where the tests of each part are. Its mutants are run against these first, then against those of all parts."""
SOURCE_IS_READ = "compiler/entry/"
"""Functions whose source is translated: no switches there. Each of these mutants is written into the file."""
TESTS_OF_SOURCE = (
    "tests/compiler/test_dispatch.py", "tests/test_methods.py", "tests/compiler/test_kernel.py",
    "tests/compiler/test_many_outputs.py", "tests/algorithms/test_not_a_number.py",
)  # fmt: skip
AFTER_THE_TEXT = (
    *(
        "cache",
        "native",
        "native_threads",
        "machine",
        "image",
        "host",
        "dispatch",
        "layout",
        "targets",
        "quick",
    ),
    *("emit/routines", "structures"),
)
"""Files of the compiler that decide something besides the text that is compiled. Their mutants run without the shared
cache of compiled code."""
TESTS_OF_CACHE = "tests/compiler/test_cache.py"
"""They need it as it is, see ``IN_THE_COPY``."""
KEYED = ("identify", "motion", "study")
"""Parts whose mutants cannot change a program that is found in the cache by its model and options. For all others,
compiled code is found by the text that it was made from."""
IN_THE_COPY = (
    (
        "compiler/native.py", "content = self.key or ",
        'content = (None if __import__("os").environ.get("MUTATION_BY_TEXT") else self.key) or ',
    ),
    (
        "compiler/cache.py", "identity.package_digest())",
        'identity.package_digest() if "MUTATION_FRESH" in os.environ else "")',
    ),
    (
        "compiler/cache.py", "SIZE_LIMIT = 64 << 20",
        'SIZE_LIMIT = (64 if "MUTATION_FRESH" in os.environ else 4096) << 20',
    ),
    (
        "compiler/dispatch.py", 'f"entry {layout.VECTORCALL}"', 'f"entry {layout.VECTORCALL} {entry_text()}"',
    ),
)  # fmt: skip
"""(file, text, what stands there in the copy): how compiled code is found in the cache."""
STAGES = ((20, 10.0), (40, 12.0))
"""(most tests, most seconds of them) that a mutant is run against, one after the other."""
SLOWEST = 5.0  # [s] of a test; slower ones are not used
VARIANTS = 4  # most sets of parameters that a test is run with
SPARE_TIME = 60.0  # [s] that a mutant gets beyond five times what its tests take
CAUGHT = ("failed", "timeout")


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


class Place(NamedTuple):
    """Where a node stands: ``owner.field``, or ``owner.field[index]``."""

    owner: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def put(self, new: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            getattr(self.owner, self.field)[self.index] = new


def visited(owner: ast.AST) -> Iterator[Place]:
    """Every node that counts, in a fixed order, owners before what they own.

    Annotations, messages of errors and what is for type checkers alone are left out: changing them changes no result.
    """

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
            yield Place(owner, name, index, node)
            yield from visited(node)


def mutants(path: str) -> list[Mutant]:
    tree = ast.parse((ROOT / "src/linkwise" / path).read_text(encoding="utf-8"))
    found = []
    for number, place in enumerate(visited(tree)):
        for choice, new in enumerate(changed(place.node)):
            text = f"{_short(place.node)}  ->  {_short(new)}"
            found.append(Mutant(path, number, choice, getattr(place.node, "lineno", 0), text))
    return found


def _short(node: ast.AST) -> str:
    shown = copy.copy(node)
    if isinstance(shown, ast.If):
        shown.body, shown.orelse = [ast.Expr(ast.Constant(...))], []
    return " ".join(ast.unparse(ast.fix_missing_locations(shown)).split())[:100]


def mutated(mutant: Mutant, text: str) -> str:
    """The text of the file with the change in it."""
    tree = ast.parse(text)
    for number, place in enumerate(visited(tree)):
        if number == mutant.number:
            place.put(ast.copy_location(changed(place.node)[mutant.choice], place.node))
            return ast.unparse(ast.fix_missing_locations(tree))
    raise AssertionError("no such node")


# -- all mutants of a file in one text ----------------------------------------------------------------------

SWITCH = """
import os
import sys

active = int(os.environ.get("MUTATION_ACTIVE", "0"))
seen = set()

def on(number):
    if number not in seen:
        seen.add(number)
        in_function = sys._getframe(1).f_code.co_flags & 1  # else in a module or a class, while it is imported
        where = os.environ.get("MUTATION_SEEN" if in_function else "MUTATION_IMPORTED")
        if where:
            with open(where, "a") as file:
                file.write(f"{number}\\n")
    return number == active
"""
"""A module of the copied package: which mutant is switched on, and which were reached (in child processes too)."""


def switchable(place: Place) -> bool:
    """Whether both forms can stand in one text: not so in the patterns of ``match``."""
    return not isinstance(place.owner, ast.pattern)


def instrumented(text: str, wanted: dict[tuple[int, int], int], file: int) -> str:
    """The text with both forms of every wanted mutant: ``(new if on(its number) else old)``.

    Args:
        text: Python source.
        wanted: the number of each mutant by (node, choice).
        file: every function says by ``on(file)`` that it was executed.
    """
    tree = ast.parse(text)
    places, originals = list(visited(tree)), list(visited(ast.parse(text)))
    for (node, choice), number in sorted(wanted.items(), reverse=True):  # what is inside first
        place = places[node]
        new = changed(originals[node].node)[choice]
        old = getattr(place.owner, place.field)
        old = old if place.index is None else old[place.index]  # may hold other mutants by now
        switch = ast.parse(f"_mutation_on({number})", mode="eval").body
        if isinstance(old, ast.If) and isinstance(new, ast.If):
            old.test = ast.IfExp(switch, new.test, old.test)
        elif isinstance(new, ast.stmt):
            place.put(ast.If(switch, [new], [old]))  # type: ignore[list-item]
        else:
            place.put(ast.IfExp(switch, new, old))  # type: ignore[arg-type]
    for node in list(ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body.insert(_first(node.body), ast.parse(f"_mutation_on({file})").body[0])
    tree.body.insert(
        _first(tree.body), ast.parse("from linkwise._mutation import on as _mutation_on").body[0]
    )
    return ast.unparse(ast.fix_missing_locations(tree))


def _first(body: list[ast.stmt]) -> int:
    """Where a statement may be inserted: after the docstring and imports from ``__future__``."""
    index = int(isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
    while index < len(body):
        statement = body[index]
        if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        index += 1
    return index


# -- tests --------------------------------------------------------------------------------------------------

PLUGIN = """
import json, os, signal, time
import pytest

folder, fixtures, found, passed = os.environ["MUTATION_SEEN"], {}, {}, set()
os.makedirs(folder)
count = 0

def watch(where):
    import sys
    os.environ["MUTATION_SEEN"] = where
    switch = sys.modules.get("linkwise._mutation")
    if switch:
        switch.seen.clear()

def start():
    global count
    count += 1
    watch(f"{folder}/{count}")
    return f"{folder}/{count}"

def numbers(where):
    return set(map(int, open(where).read().split())) if os.path.exists(where) else set()

imported = os.environ["MUTATION_IMPORTED"] = folder + "/imported"
collected = start()

@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope == "function":
        yield
        return
    before, where = os.environ["MUTATION_SEEN"], start()
    yield
    fixtures.setdefault(fixturedef, set()).update(numbers(where))
    watch(before)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    where, begin = start(), time.perf_counter()
    yield
    seen, shared = numbers(where), numbers(collected)
    for name in item._fixtureinfo.name2fixturedefs.values():
        for fixture in name:
            seen |= fixtures.get(fixture, set())
    seconds = time.perf_counter() - begin
    found[item.nodeid] = {"seconds": seconds, "seen": sorted(seen), "shared": sorted(shared)}

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    variants = {}
    for item in items:
        variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    most = int(os.environ["MUTATION_VARIANTS"])
    chosen = {item for found in variants.values() for item in found[:: -(-len(found) // most)]}
    items[:] = [item for item in items if item in chosen]

class TooSlow(BaseException):
    pass

def stop(number, frame):
    raise TooSlow

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, float(os.environ["MUTATION_SLOWEST"]))
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)

def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        passed.add(report.nodeid)

def pytest_sessionfinish():
    tests = {name: test for name, test in found.items() if name in passed}
    with open(os.environ["MUTATION_MAP"], "w") as file:
        json.dump({"imported": sorted(numbers(imported)), "tests": tests}, file)
"""


class Project:
    """A copy of the project in a folder that is kept, with switches for mutants in it."""

    def __init__(self, folder: Path, chosen: list[Mutant]):
        self.folder, self.root, self.log = folder, folder / "project", folder / "log"
        self.cache, self.maps = folder / "cache", folder / "maps"
        self.maps.mkdir(parents=True, exist_ok=True)
        if not self.root.is_dir():
            self._copy(chosen)
        self._renew_tests()

    def _copy(self, chosen: list[Mutant]) -> None:
        aside = self.folder / "unfinished"
        shutil.rmtree(aside, ignore_errors=True)
        for name in _listed():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, aside / name)
        package = aside / "src/linkwise"
        for file, path in enumerate(sorted({mutant.path for mutant in chosen}), 1):
            text = (package / path).read_text(encoding="utf-8")
            self._original(path).parent.mkdir(parents=True, exist_ok=True)
            self._original(path).write_text(text, encoding="utf-8")
            places = list(visited(ast.parse(text)))
            wanted = {
                (mutant.number, mutant.choice): number
                for number, mutant in enumerate(chosen, 1)
                if mutant.path == path and switchable(places[mutant.number])
            }
            if not path.startswith(SOURCE_IS_READ):
                (package / path).write_text(instrumented(text, wanted, -file), encoding="utf-8")
        (package / "_mutation.py").write_text(SWITCH, encoding="utf-8")
        for path, old, new in IN_THE_COPY:
            text = (package / path).read_text(encoding="utf-8")
            old = old if old in text else old.replace('"', "'")  # as ``ast.unparse`` writes it
            assert text.count(old) == 1, (path, old)
            (package / path).write_text(text.replace(old, new), encoding="utf-8")
        (aside / "mutation_plugin.py").write_text(PLUGIN, encoding="utf-8")
        if (ROOT.parent / "shared").is_dir() and not (self.folder / "shared").exists():
            (self.folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
        aside.rename(self.root)

    def _renew_tests(self) -> None:
        """Tests as they are now; what changed is run anew under the plugin."""
        for name in _listed():
            old = self.root / name
            if name.startswith("tests/") and not (old.is_file() and filecmp.cmp(ROOT / name, old, False)):
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, old)
                self._map_of(name).unlink(missing_ok=True)

    def _original(self, path: str) -> Path:
        return self.folder / "original" / path

    def _map_of(self, test: str) -> Path:
        return self.maps / (test.replace("/", "-") + ".json")

    def pytest(self, *arguments: str, timeout: float, **environment: str) -> str:
        """ "passed", "failed" or "timeout"."""
        child = os.fork()
        if not child:
            code = 3
            try:
                code = self._in_child(arguments, environment)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                _kill(child)  # processes that a test left
                return "failed" if os.waitstatus_to_exitcode(status) else "passed"
            time.sleep(0.02)
        _kill(child)
        os.waitpid(child, 0)
        return "timeout"

    def _in_child(self, arguments: tuple[str, ...], environment: dict[str, str]) -> int:
        import pytest

        os.setsid()
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.root)
        path = (str(self.root / "src"), str(self.root))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
        os.environ.update({"PYTHONPATH": os.pathsep.join(path), **environment})
        sys.path[:0] = path
        options = ("-q", "--tb=short", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'tmp'}")
        return int(pytest.main([*options, *arguments]))

    def _settings(self, part: str, fresh: bool) -> dict[str, str]:
        """Which cache of compiled code the tests use; see ``AFTER_THE_TEXT`` and ``KEYED``."""
        if fresh:
            shutil.rmtree(self.folder / "fresh", ignore_errors=True)
            return {"LINKWISE_CACHE": str(self.folder / "fresh"), "MUTATION_FRESH": "1"}
        by_text = {} if part in KEYED else {"MUTATION_BY_TEXT": "1"}
        return {"LINKWISE_CACHE": str(self.cache), **by_text}

    def reached(self, parts: tuple[str, ...]) -> tuple[dict[str, dict[str, Any]], set[int]]:
        """(for every passing test the seconds it takes and the mutants it reaches, those reached by imports)."""
        tests: dict[str, dict[str, Any]] = {}
        imported: set[int] = set()
        for name in _test_files(parts):
            where = self._map_of(name)
            if not where.is_file():
                part = name.split("/")[1]
                shutil.rmtree(self.folder / "seen", ignore_errors=True)
                start = time.perf_counter()
                self.pytest(
                    "-p", "mutation_plugin", name, timeout=900.0, **self._settings(part, part == "compiler"),
                    MUTATION_MAP=str(where), MUTATION_SLOWEST=str(SLOWEST),
                    MUTATION_VARIANTS=str(VARIANTS), MUTATION_SEEN=str(self.folder / "seen"),
                )  # fmt: skip
                print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
            if not where.is_file():
                print(f"{name} did not run:\n{self.log.read_text(errors='replace')[-2000:]}", flush=True)
                continue
            found = json.loads(where.read_text(encoding="utf-8"))
            tests.update(found["tests"])
            imported.update(found["imported"])
        return tests, imported

    def judged(self, number: int, mutant: Mutant, tests: list[tuple[float, str]]) -> tuple[str, str]:
        """(verdict, the test that failed)."""
        part, _, name = mutant.path.partition("/")
        path = self.root / "src/linkwise" / mutant.path
        instrumented = path.read_bytes()
        within = f"_mutation_on({number})".encode() in instrumented
        if not within:
            original = self._original(mutant.path).read_text(encoding="utf-8")
            path.write_text(mutated(mutant, original), encoding="utf-8")
            os.utime(path, (number, number))  # compiled files are recognised by time and size
        after = part == "compiler" and name.removesuffix(".py") in AFTER_THE_TEXT
        settings = self._settings(part, after)
        tests = [test for test in tests if after or not test[1].startswith(TESTS_OF_CACHE)]
        try:
            for stage in _stages(tests):
                verdict = self.pytest(
                    *("-x", "-p", "no:randomly", *(test for _, test in stage)),
                    timeout=5 * sum(seconds for seconds, _ in stage) + SPARE_TIME,
                    **settings,
                    MUTATION_ACTIVE=str(number),
                )
                if verdict in CAUGHT:
                    found = re.findall(r"^(?:FAILED|ERROR) (.*)$", self.log.read_text(errors="replace"), re.M)
                    return verdict, found[0] if found else "?"
            return "passed", ""
        finally:
            if not within:
                path.write_bytes(instrumented)
                os.utime(path, (0, 0))


def _listed() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def _test_files(parts: tuple[str, ...]) -> list[str]:
    chosen = [f"tests/{name}" for part in parts for name in TESTS[part]]
    files = [name for name in _listed() if Path(name).name.startswith("test_")]
    found = [name for where in chosen for name in files if name == where or name.startswith(where + "/")]
    return list(dict.fromkeys(found))


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _stages(tests: list[tuple[float, str]]) -> Iterator[list[tuple[float, str]]]:
    first = 0
    for most, seconds in STAGES:
        stage: list[tuple[float, str]] = []
        for test in tests[first : first + most]:
            if stage and test[0] > seconds:
                break
            seconds -= test[0]
            stage.append(test)
        if stage:
            yield stage
        first += len(stage)


def nearest(
    number: int, file: int, tests: dict[str, dict[str, Any]], imported: set[int]
) -> list[tuple[float, str]]:
    """(seconds, name) of the tests that reach a mutant, the quickest first.

    Those come last that reach it only by what their file does before the first test. A mutant that is evaluated when
    its module is imported is reached by all tests that execute some function of it.
    """
    wanted = {number, file} if number in imported else {number}
    found = [
        (not wanted.intersection(test["seen"]), test["seconds"], name)
        for name, test in tests.items()
        if wanted.intersection(test["seen"]) or wanted.intersection(test.get("shared", ()))
    ]
    return [(seconds, name) for _, seconds, name in sorted(found)]


# -- the run ------------------------------------------------------------------------------------------------


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


class Verdicts:
    """What was found, kept in a file as it comes."""

    def __init__(self, project: Project, chosen: list[Mutant]):
        self.project, self.chosen = project, chosen
        self.file = project.folder / "verdicts.jsonl"
        rows = self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else []
        self.found: dict[int, str] = {row["number"]: row["verdict"] for row in map(json.loads, rows)}

    def judge(self, part: str, parts: tuple[str, ...]) -> None:
        """All mutants of a part that are not caught yet, with the tests of some parts."""
        tests, imported = self.project.reached(parts)
        files = {path: -file for file, path in enumerate(sorted({mutant.path for mutant in self.chosen}), 1)}
        for number, mutant in enumerate(self.chosen, 1):
            if self.found.get(number) in CAUGHT or not mutant.path.startswith(part + "/"):
                continue
            if mutant.path.startswith(SOURCE_IS_READ):
                near = sorted(
                    (tests[name]["seconds"], name) for name in tests if name.startswith(TESTS_OF_SOURCE)
                )
            else:
                near = nearest(number, files[mutant.path], tests, imported)
            began = time.perf_counter()
            verdict, test = self.project.judged(number, mutant, near) if near else ("not reached", "")
            self.found[number] = verdict
            took = round(time.perf_counter() - began, 2)
            row = {"number": number, "mutant": str(mutant), "verdict": verdict, "test": test, "seconds": took}
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if verdict not in CAUGHT:
                print(f"{'survived' if verdict == 'passed' else verdict}: {number} {mutant}", flush=True)
            if len(self.found) % 20 == 0:
                print(f"{len(self.found)} of {len(self.chosen)}: {self.caught()} caught", flush=True)

    def caught(self) -> int:
        return sum(verdict in CAUGHT for verdict in self.found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=400, help="mutants, drawn at random")
    parser.add_argument("--parts", default=",".join(PARTS), help="folders of src/linkwise")
    parser.add_argument("--files", default="", help="files below src/linkwise instead, e.g. control/gains.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder that is kept, to go on later")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="linkwise-mutation-") as temporary:
        folder = (options.work or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        chosen = _sample_of(folder, options)
        _warm()
        start = time.perf_counter()
        verdicts = Verdicts(Project(folder, chosen), chosen)
        parts = tuple(part for part in TESTS if any(mutant.path.startswith(part + "/") for mutant in chosen))
        for part in parts:
            verdicts.judge(part, (part,))
        for part in parts if len(parts) > 1 else ():
            print(f"survivors of {part} with the tests of all parts", flush=True)
            verdicts.judge(part, tuple(TESTS))
    spent, share = time.perf_counter() - start, 100 * verdicts.caught() / max(len(chosen), 1)
    print(f"{verdicts.caught()} of {len(chosen)} caught ({share:.1f} %) in {spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
