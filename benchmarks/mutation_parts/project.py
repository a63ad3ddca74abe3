"""A copy of the project in which mutants are switched on, and the tests that reach them."""

from __future__ import annotations

import ast
import contextlib
import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutation_parts.changes import ROOT, SWITCH, Mutant, instrumented, mutated, switchable, visited

TESTS = {
    "motion": ("motion", "cli/test_motion.py"),
    "control": ("control", "simulate/test_tracking.py", "environments/test_policy.py"),
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
    "solve": (
        "test_linear.py",
        "optimal",
        "control",
        "compiler/test_rolled.py",
        "compiler/test_loop_derivatives.py",
    ),
    "optimal": ("optimal",),
    "collision": ("collision", "motion", "geometry"),
    "embedded": ("embedded", "cli"),
    "realtime": ("realtime",),
    "compiler": ("compiler", "gpu", "test_methods.py", "test_combined.py", "test_forks.py"),
}
"""Where the tests of each part are. Its mutants are run against these first, then against those of all parts."""
SOURCE_IS_READ = "compiler/entry/"
"""Functions whose source is translated: no switches there. Each of these mutants is written into the file."""
TESTS_OF_SOURCE = (
    "tests/compiler/test_dispatch.py", "tests/test_methods.py", "tests/compiler/test_kernel.py",
    "tests/compiler/test_many_outputs.py", "tests/algorithms/test_not_a_number.py",
)  # fmt: skip
NOT_FOUND_BY_TEXT = (
    "collision/",
    "compiler/native.py",
    "compiler/runtime/",
    "compiler/emit/routines.py",
    "compiler/ir/structures.py",
)
"""Where something is decided besides the text that is compiled: their mutants run without the shared cache."""
TESTS_OF_CACHE = "tests/compiler/test_cache.py"
"""They need it as it is, see ``IN_THE_COPY``."""
KEYED = ("identify", "motion", "study")
"""Parts whose mutants cannot change a program that is found in the cache by its model and options. For all others,
compiled code is found by the text that it was made from."""
IN_THE_COPY = (
    (
        "compiler/native.py", "text = None if self.key else ",
        'text = None if self.key and "MUTATION_BY_TEXT" not in __import__("os").environ else ',
    ),
    (
        "compiler/runtime/cache.py", "identity.package_digest())",
        'identity.package_digest() if "MUTATION_FRESH" in os.environ else "")',
    ),
    (
        "compiler/runtime/cache.py", "SIZE_LIMIT = 256 << 20",
        'SIZE_LIMIT = (256 if "MUTATION_FRESH" in os.environ else 4096) << 20',
    ),
    (
        "compiler/runtime/dispatch.py", 'f"entry {layout.VECTORCALL}"', 'f"entry {layout.VECTORCALL} {entry_text()}"',
    ),
)  # fmt: skip
"""(file, text, what stands there in the copy): how compiled code is found in the cache."""
STAGES = ((20, 10.0), (40, 12.0))
"""(most tests, most seconds of them) that a mutant is run against, one after the other."""
SLOWEST = 5.0  # [s] of a test; slower ones are not used
VARIANTS = 4  # most sets of parameters that a test is run with
CAUGHT = ("failed", "timeout")
SPARE_TIME = 60.0  # [s] that a mutant gets beyond five times what its tests take

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
    """Copies of the project in a folder that is kept, one for each job, with switches for mutants in them.

    Maps of what each test reaches and compiled code belong to all jobs; the copy and what a run writes to one.
    """

    def __init__(self, folder: Path, chosen: list[Mutant], job: int = 1):
        self.folder, self.own = folder, folder / f"job{job}"
        self.root, self.log = self.own / "project", self.own / "log"
        self.cache, self.maps = folder / "cache", folder / "maps"
        self.maps.mkdir(parents=True, exist_ok=True)
        self.own.mkdir(exist_ok=True)
        if not self.root.is_dir():
            self._copy(chosen)
        self._renew_tests()

    def _copy(self, chosen: list[Mutant]) -> None:
        aside = self.own / "unfinished"
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
        if (ROOT.parent / "shared").is_dir() and not (self.own / "shared").exists():
            (self.own / "shared").symlink_to((ROOT.parent / "shared").resolve())
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
        return self.own / "original" / path

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
        options = ("-q", "--tb=short", "-p", "no:cacheprovider", f"--basetemp={self.own / 'tmp'}")
        return int(pytest.main([*options, *arguments]))

    def _settings(self, part: str, fresh: bool) -> dict[str, str]:
        """Which cache of compiled code the tests use; see ``NOT_FOUND_BY_TEXT`` and ``KEYED``."""
        if fresh:
            shutil.rmtree(self.own / "fresh", ignore_errors=True)
            return {"LINKWISE_CACHE": str(self.own / "fresh"), "MUTATION_FRESH": "1"}
        by_text = {} if part in KEYED else {"MUTATION_BY_TEXT": "1"}
        return {"LINKWISE_CACHE": str(self.cache), **by_text}

    def unmapped(self, parts: tuple[str, ...]) -> list[str]:
        """Test files of some parts of which it is not known which mutants they reach."""
        return [name for name in _test_files(parts) if not self._map_of(name).is_file()]

    def map(self, name: str) -> str:
        """Run a test file and write down which mutants its tests reach; what is to be told of it."""
        where, part = self._map_of(name), name.split("/")[1]
        shutil.rmtree(self.own / "seen", ignore_errors=True)
        start = time.perf_counter()
        self.pytest(
            "-p", "mutation_plugin", name, timeout=900.0, **self._settings(part, part == "compiler"),
            MUTATION_MAP=str(where), MUTATION_SLOWEST=str(SLOWEST),
            MUTATION_VARIANTS=str(VARIANTS), MUTATION_SEEN=str(self.own / "seen"),
        )  # fmt: skip
        if not where.is_file():
            return f"{name} did not run:\n{self.log.read_text(errors='replace')[-2000:]}"
        return f"{name}: {time.perf_counter() - start:.1f} s"

    def reached(self, parts: tuple[str, ...]) -> tuple[dict[str, dict[str, Any]], set[int]]:
        """(for every passing test the seconds it takes and the mutants it reaches, those reached by imports)."""
        tests: dict[str, dict[str, Any]] = {}
        imported: set[int] = set()
        for name in _test_files(parts):
            if self._map_of(name).is_file():
                found = json.loads(self._map_of(name).read_text(encoding="utf-8"))
                tests.update(found["tests"])
                imported.update(found["imported"])
        return tests, imported

    def judged(self, number: int, mutant: Mutant, tests: list[tuple[float, str]]) -> tuple[str, str]:
        """(verdict, the test that failed)."""
        part = mutant.path.partition("/")[0]
        path = self.root / "src/linkwise" / mutant.path
        instrumented = path.read_bytes()
        within = f"_mutation_on({number})".encode() in instrumented
        if not within:
            original = self._original(mutant.path).read_text(encoding="utf-8")
            path.write_text(mutated(mutant, original), encoding="utf-8")
            os.utime(path, (number, number))  # compiled files are recognised by time and size
        fresh = mutant.path.startswith(NOT_FOUND_BY_TEXT)
        settings = self._settings(part, fresh)
        tests = [test for test in tests if fresh or not test[1].startswith(TESTS_OF_CACHE)]
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
