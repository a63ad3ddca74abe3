"""Python processes that the package starts import nothing from the current folder, and the same package as this one."""

import ast
import importlib.metadata
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.cli.app import COMMANDS
from linkwise.core import children

ROOT = Path(lw.__file__).parent
FOLDER_OF_PACKAGE = str(ROOT.parent)
SCRIPT = Path(sys.executable).with_name("linkwise")

# Every command, on small robots. Together they compile, write packages and pages, run C compilers and start children.
RUNS = {
    "tour": ["two_link", "--no-open", "--out", "{out}/tour.html"],
    "demo": ["--help"],  # the commands around it do all that it does
    "robots": [],
    "info": ["two_link"],
    "convert": ["two_link", "{out}/two.urdf"],
    "check": ["two_link"],
    "inverse": ["two_link", "--trajectory", "quintic", "--to", "1,1", "--out", "{out}/torques.csv"],
    "forward": ["two_link", "--torques", "{out}/log.csv"],
    "simulate": ["two_link", "--controller", "computed_torque", "--to", "1,1", "--duration", "0.1"],
    "operations": ["two_link"],
    "generate": ["two_link", "gravity_torques", "--out", "{out}/package"],
    "excite": [
        "two_link",
        "--starts",
        "1",
        "--iterations",
        "2",
        "--duration",
        "1",
        "--out",
        "{out}/excite.csv",
    ],
    "identify": ["two_link", "{out}/log.csv", "--rows", "1-9"],
    "calibrate": ["two_link", "{out}/log.csv"],
    "elastic": ["two_link", "{out}/log.csv", "--rows", "1-9"],
    "payload": ["two_link", "{out}/log.csv", "{out}/log.csv", "--rows", "1-9"],
    "view": ["two_link", "--out", "{out}/view.html"],
    "plan": ["two_link", "--from", "0,0", "--to", "1,1", "--acceleration", "5", "--out", "{out}/plan.csv"],
    "certify": ["two_link", "gravity_torques"],
    "study": ["{out}/study.toml", "--out", "{out}/store"],
    "bench": [
        "--robot",
        "two_link",
        "--function",
        "mass_matrix",
        "--batch",
        "1",
        "--rounds",
        "1",
        "--peer",
        "frax",
    ],
}

STUDY = """
robot = "two_link"
samples = 4
[vary]
q = { uniform = [-1.0, 1.0] }
[compute]
g = { function = "gravity_torques" }
[keep]
g = ["mean"]
"""

DRIVER = """
import json, sys
from linkwise.cli.app import run
from linkwise.compiler.runtime import background
from linkwise.compiler import native
native.LARGE = 1  # every program is compiled in the background
started = []
job = background.Job
background.Job = lambda tasks: started.append(1) or job(tasks)
statuses = {}
for line in json.loads(sys.argv[1]):
    statuses[line[0]] = run(line)
for each in background._running:
    each.wait(60)
with open(sys.argv[2], "w") as file:  # other things may be printed, also while Python ends
    json.dump([statuses, len(started)], file)
"""


def hostile_names() -> set[str]:
    """Modules of the standard library, of everything installed, of what may be missing, and what Python looks for."""
    optional = {
        "cupy",
        "torch",
        "jax",
        "casadi",
        "viser",
        "dask",
        "zarr",
        "pandas",
        "robot_descriptions",
        "nvidia",
    }
    found = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions()) | optional
    return {name for name in found if name.isidentifier()} | {"linkwise", "sitecustomize", "usercustomize"}


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory):
    """A folder in which every module, header, make file and setting says that it was used."""
    parent = tmp_path_factory.mktemp("strangers")
    folder, ran = parent / "hostile", parent / "ran.txt"
    folder.mkdir()
    for name in hostile_names():
        text = f"with open({str(ran)!r}, 'a') as file:\n    print({name!r}, file=file)\nraise SystemExit(7)\n"
        (folder / f"{name}.py").write_text(text)
    for name in ("math.h", "stdio.h", "stdint.h", "string.h", "stddef.h"):
        (folder / name).write_text("#error the header of the current folder was included\n")
    for name in ("GNUmakefile", "makefile", "Makefile"):
        (folder / name).write_text(f"all:\n\techo {name} >> {ran}\n")
    (folder / "hostile.pth").write_text(f"import os; open({str(ran)!r}, 'a').write('pth')\n")
    (folder / "matplotlibrc").write_text("backend: module://json\n")
    for name in ("linkwise.toml", "pyproject.toml", ".env", "two_link", "two_link.toml"):
        (folder / name).write_text("this is not TOML = [\n")
    return folder, ran


@pytest.fixture
def hostile(hostile_folder):
    """The folder, and a file with the names of what was executed."""
    hostile_folder[1].unlink(missing_ok=True)
    return hostile_folder


def environment_of(tmp_path, **more) -> dict[str, str]:
    known = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")
    }
    return {
        **known,
        "LINKWISE_CACHE": str(tmp_path / "cache"),
        "CPATH": os.pathsep,
        "LINKWISE_BACKGROUND": "1",
        **more,
    }


def test_every_command_runs_in_a_hostile_folder(hostile, tmp_path):
    """One process runs them all, as the console script does, with an empty cache."""
    folder, ran = hostile
    out = tmp_path / "out"
    out.mkdir()
    (out / "study.toml").write_text(STUDY)
    rows = [",".join(f"{math.sin(0.01 * (j + 1) * k)}" for j in range(6)) for k in range(60)]
    lines = ["t,q1,q2,qd1,qd2,tau1,tau2", *(f"{k / 100},{row}" for k, row in enumerate(rows))]
    (out / "log.csv").write_text("\n".join(lines))
    assert RUNS.keys() == COMMANDS.keys()
    lines = [[name, *(word.format(out=out) for word in words)] for name, words in RUNS.items()]
    command = [sys.executable, "-P", "-c", DRIVER, json.dumps(lines), str(tmp_path / "statuses.json")]
    done = subprocess.run(
        command, cwd=folder, env=environment_of(tmp_path), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    statuses, started = json.loads((tmp_path / "statuses.json").read_text())
    refused = {"identify", "calibrate", "elastic", "payload"}  # short recordings
    assert {name for name, status in statuses.items() if status} <= refused, done.stderr
    assert started
    assert not ran.exists(), f"executed from the current folder: {ran.read_text()}"


@pytest.mark.parametrize("how", ["script", "module"])
def test_the_command_itself_imports_nothing_from_the_current_folder(hostile, tmp_path, how):
    folder, ran = hostile
    if how == "module":  # Python itself looks for these in the current folder before the package is imported
        listed = [sys.executable, "-P", "-c", "import runpy, sys; print(*sys.modules)"]
        loaded = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
        folder = shutil.copytree(folder, tmp_path / "hostile")
        for name in {"linkwise", *loaded}:
            (folder / f"{name}.py").unlink(missing_ok=True)
    command = [str(SCRIPT)] if how == "script" else [sys.executable, "-m", "linkwise"]
    done = subprocess.run(
        [*command, "robots"], cwd=folder, env=environment_of(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "two_link" in done.stdout
    assert not ran.exists(), f"executed from the current folder: {ran.read_text()}"


def child(folder, tmp_path, program, *arguments, setup="", flags=("-P",), **variables):
    """What a child prints that a process prepared by ``setup`` starts."""
    text = f"import sys\n{setup}\nfrom linkwise.core import children\nimport subprocess\n" + (
        f"command = children.command({program!r}, *{arguments!r})\n"
        "done = subprocess.run(command, env=children.environment(), capture_output=True, text=True)\n"
        "print(done.stdout, done.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, *flags, "-c", text],
        cwd=folder,
        env=environment_of(tmp_path, **variables),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_child_imports_the_same_package(tmp_path):
    """From a source folder on PYTHONPATH, from the current folder, and where another version comes first."""
    where = "import linkwise; print(linkwise.__path__[0])"
    own = str(ROOT)
    (tmp_path / "other" / "linkwise").mkdir(parents=True)
    (tmp_path / "other" / "linkwise" / "__init__.py").write_text("raise SystemExit('another version')")
    late = f"import linkwise; sys.path.insert(0, {str(tmp_path / 'other')!r})"
    assert child(tmp_path, tmp_path, where, PYTHONPATH=FOLDER_OF_PACKAGE) == own
    assert child(FOLDER_OF_PACKAGE, tmp_path, where, flags=()) == own
    assert child(tmp_path, tmp_path, where, setup=late) == own
    assert child(tmp_path, tmp_path, where, flags=("-I",)) == own


def test_a_child_finds_other_modules_where_this_process_does(tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "mine.py").write_text("print('mine')")
    setup = f"sys.path.append({str(tmp_path / 'beside')!r})"
    assert child(tmp_path, tmp_path, "import mine", setup=setup) == "mine"
    assert child(tmp_path, tmp_path, "import sys; print(sys.argv[1:])", "a b", "ü") == "['a b', 'ü']"


@pytest.mark.parametrize("path", ["", ".", ":", "relative", "{here}"])
def test_relative_folders_of_a_path_are_left_out(hostile, tmp_path, path):
    """``PYTHONPATH=$PYTHONPATH:folder`` with an empty variable means the current folder, and Python obeys."""
    folder, ran = hostile
    setup = f"import linkwise, os; os.environ['PYTHONPATH'] = {path.format(here=folder)!r}; os.chdir({str(folder)!r})"
    setup += f"; sys.path[:0] = ['', {path.format(here=folder)!r}]"
    said = child(
        tmp_path, tmp_path, "import csv, sys; print(sys.path)", setup=f"import json, subprocess\n{setup}"
    )
    assert str(folder) not in said
    assert "''" not in said
    assert not ran.exists(), f"executed from the current folder: {ran.read_text()}"


def test_functions_of_users_are_found_in_the_current_folder_where_this_process_finds_them(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (tmp_path / "mine.py").write_text("print('mine')")
    command = children.command("import mine", current_folder=True)
    assert subprocess.run(command, capture_output=True, text=True).stdout == "mine\n"
    assert (
        "mine" not in subprocess.run(children.command("import mine"), capture_output=True, text=True).stdout
    )


STARTERS = {
    "subprocess": {
        *("bench/cold.py", "bench/peers/c_loop.py", "compiler/runtime/background.py", "embedded/stack.py"),
        *(
            "evidence/objects.py",
            "realtime/build.py",
            "study/engines/guarded.py",
            "systems/fmu.py",
            "tour/code.py",
        ),
    },
    "multiprocessing": set(),
    "concurrent.futures.process": set(),
    "runpy": set(),
    "pty": set(),
}
"""Modules that start processes, and the files that may import them."""
PYTHON = {"compiler/runtime/background.py", "bench/cold.py", "study/engines/guarded.py"}
"""Files whose processes are Python: they use ``children.command``. All others run C compilers."""


def test_no_other_place_starts_python():
    """Files that import what starts processes are listed; ``sys.executable`` is in one."""
    found: dict[str, set[str]] = {name: set() for name in STARTERS}
    executable, starts = set(), set()
    for path in ROOT.rglob("*.py"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        suspect = re.search(r"executable|\bos\.(exec|spawn|posix|system|popen)|" + "|".join(STARTERS), text)
        for node in ast.walk(ast.parse(text)) if suspect else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for module in STARTERS.keys() & set(names):
                found[module].add(name)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = f"{node.value.id}.{node.attr}"
                executable |= {name} if called in ("sys.executable", "sys._base_executable") else set()
                is_start = called.startswith(
                    ("os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.popen")
                )
                starts |= {name} if is_start else set()
    assert found == STARTERS
    assert executable == {"core/children.py"}
    assert not starts
    users = {name for name in found["subprocess"] if "children.command" in (ROOT / name).read_text("utf-8")}
    assert users == PYTHON
