"""Which part of the package may import which, read from the source; and how light the package is to import."""

import ast
import functools
import importlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import linkwise

ROOT = Path(linkwise.__file__).parent

# All parts of the package, from the lowest to the highest: a part imports only itself and
# parts named before it.
# Imports inside functions count too. Imports under TYPE_CHECKING do not: they are gone when the code runs.
ORDER = (
    *("core", "errors", "version", "arguments", "scalar", "spatial", "language", "files"),
    *("joint_laws", "model", "formats", "geometry", "algorithms", "compiler", "solve"),
    *("functions", "gpu", "frameworks", "robot", "compat"),
    *("collision", "motion", "control", "simulate", "optimal", "realtime", "embedded", "evidence", "systems"),
    *(
        "records",
        "report",
        "identify",
        "study",
        "view",
        "environments",
        "registered",
        "linkwise",
        "bench",
        "tour",
        "cli",
        "__main__",
    ),
)

# Parts that may import less than the order allows: the lowest are independent of robots, and the compiler of models.
ALLOWED = {
    "core": set(),
    "errors": {"core"},
    "version": set(),
    "arguments": {"core", "errors"},
    "scalar": {"errors"},
    "spatial": {"errors", "scalar"},
    "language": {"arguments", "scalar"},
    "files": {"core", "errors"},
    "joint_laws": {"errors", "scalar"},
    "model": {"core", "errors", "arguments", "scalar", "spatial", "joint_laws"},
    "formats": {"core", "errors", "arguments", "files", "joint_laws", "model"},
    "geometry": {"core", "errors", "model", "formats"},
    "algorithms": {"errors", "scalar", "spatial", "language", "joint_laws", "model"},
    "compiler": {"core", "errors", "arguments", "scalar", "spatial", "language", "files"},
    "solve": {"core", "scalar", "language", "compiler"},
    "gpu": {"core", "errors", "arguments", "scalar", "compiler"},
    "frameworks": {"core", "errors", "compiler", "gpu"},
    "report": {"core", "errors", "arguments", "version", "files", "model", "geometry"},
}

# Modules that import each other, by lazy imports: a program and its builders.
CYCLES = [
    {f"linkwise.compiler.{name}" for name in ("calculus", "kernel", "native", "rollout", "shapes")},
]

# Packages that are optional or slow: outside cli and bench never imported while a module is being imported.
HEAVY = {
    *(
        "pinocchio",
        "mujoco",
        "matplotlib",
        "rich",
        "click",
        "scipy",
        "casadi",
        "cupy",
        "torch",
        "jax",
        "pandas",
        "sympy",
    ),
    *("gymnasium", "rsl_rl", "skrl", "tensordict"),
    *("adam", "frax", "pybullet", "roboticstoolbox", "urdf2casadi", "plotly", "viser", "dask"),
}


# Modules that are imported with the first array of the package they are about.
ABOUT = {f"linkwise.frameworks.{package}": {package} for package in ("jax", "torch")}


def part_of(module: str) -> str:
    """linkwise.compiler.emit.c -> compiler; linkwise itself -> linkwise."""
    return (module.split(".") + [module])[1] if module != "linkwise" else "linkwise"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


class Source(NamedTuple):
    """What is asked of a file; its tree is not kept."""

    imports: set[str]
    """Dotted names that it imports, wherever in its text; not those for type checkers."""
    imports_at_once: set[str]
    """Without those inside functions."""
    docstring: str | None


@functools.cache
def source(path: Path) -> Source:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: tuple[set[str], set[str]] = (set(), set())

    def visit(node: ast.AST, inside: bool) -> None:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; name the module in full"
            names = [_named(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = True
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for child in node.orelse:
                visit(child, inside)
            return
        for group in found[:1] if inside else found:
            group.update(names)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):  # expressions import nothing
                visit(child, inside)

    visit(tree, False)
    return Source(*found, ast.get_docstring(tree))


def _named(module: str, name: str) -> str:
    """``from linkwise.model import files`` names a module, ``from linkwise.model import Link`` something inside one."""
    inner = f"{module}.{name}"
    return inner if inner in MODULES else module


def imported_modules(module: str) -> set[str]:
    """The other modules of the package that a module imports, wherever in its text."""
    return {name for name in source(MODULES[module]).imports if name.split(".")[0] == "linkwise"} - {module}


def imported_parts(module: str) -> set[str]:
    """The other parts of the package that a module imports, wherever in its text."""
    return {part_of(name) for name in imported_modules(module)} - {part_of(module)}


def test_every_part_has_a_place_in_the_order():
    assert sorted(ORDER) == sorted({part_of(module) for module in MODULES})


def test_parts_import_lower_parts_only():
    for module in MODULES:
        part = part_of(module)
        lower = set(ORDER[: ORDER.index(part)])
        allowed = ALLOWED.get(part, lower)
        assert allowed <= lower, "the table of exceptions must follow the order"
        others = imported_parts(module) - allowed
        assert not others, (
            f"{module} imports {sorted(others)}; {part} may import {sorted(allowed) or 'nothing'}"
        )


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that import each other, directly or through others."""

    def reached(start: str) -> set[str]:
        found, todo = set(), [start]
        while todo:
            new = graph.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    below = {name: reached(name) for name in graph}
    groups = []
    for name in graph:
        if name in below[name] and not any(name in group for group in groups):
            groups.append({other for other in below[name] if name in below.get(other, set())})
    return groups


def test_modules_do_not_import_each_other():
    assert sorted(map(sorted, cycles({name: imported_modules(name) for name in MODULES}))) == sorted(
        map(sorted, CYCLES)
    )


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert cycles(graph) == [{"b", "c"}, {"e", "f"}]


def test_heavy_packages_are_imported_where_they_are_used():
    for module in (name for name in MODULES if part_of(name) not in ("cli", "bench")):
        packages = {name.split(".")[0] for name in source(MODULES[module]).imports_at_once}
        assert not (packages & HEAVY) - ABOUT.get(module, set()), module


def test_the_guard_sees_every_import(tmp_path):
    text = """
from typing import TYPE_CHECKING
import numpy.linalg
from linkwise.model import Link
if TYPE_CHECKING:
    import torch
def f():
    from scipy import optimize
class C:
    import mujoco
"""
    path = tmp_path / "module.py"
    path.write_text(text)
    here = {"typing", "numpy.linalg", "linkwise.model", "mujoco"}
    assert source(path).imports_at_once == here
    assert source(path).imports == here | {"scipy"}


def fresh(code: str) -> str:
    """Run code in a new process and give what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_is_light():
    loaded = set(fresh("import sys, linkwise; print(*sys.modules)").split())
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    assert not {name for name in loaded if name.startswith(("linkwise.cli", "linkwise.bench"))}
    assert "llvmlite.binding" not in loaded, "the JIT is imported when something is compiled"


def test_help_needs_no_table_library():
    """``linkwise --help`` must be quick: it imports click, but no command and no rich."""
    code = "import sys; from linkwise.cli import main; main(['--help']); print('modules:', *sys.modules)"
    loaded = set(fresh(code).split("modules:")[1].split())
    assert not {name.split(".")[0] for name in loaded} & (HEAVY - {"click"})
    support = ("ending", "headings", "layout", "streams", "warned")
    wanted = {
        "linkwise.cli.app",
        "linkwise.cli.support",
        *(f"linkwise.cli.support.{name}" for name in support),
    }
    assert not {name for name in loaded if name.startswith("linkwise.cli.")} - wanted


def test_folders_have_a_size_that_can_be_read():
    """And say what is in them: a newcomer finds the file from the question."""
    for folder in {path.parent for path in MODULES.values()}:
        files = [path for path in folder.glob("*.py") if path.stem != "__init__"]
        assert len(files) <= 28, (
            f"{folder.name} has {len(files)} files: make folders of what belongs together"
        )
        text = source(folder / "__init__.py").docstring if (folder / "__init__.py").is_file() else ""
        assert text or not files, f"{folder.name}/__init__.py does not say what is in it"
        if folder != ROOT and (folder / "__init__.py").is_file():  # ``motion.fastest`` cannot be both
            inside = {path.parent.name for path in folder.glob("*/__init__.py")}
            module = ".".join(["linkwise", *folder.relative_to(ROOT).parts])
            assert not inside & set(getattr(importlib.import_module(module), "__all__", ())), folder


def test_files_say_what_they_are_and_stay_small():
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if text.strip():
            assert source(path).docstring, f"{module}: a module starts by saying what it is for"
        assert text.count("\n") <= 600, f"{module}: a file that long has more than one subject"


def test_files_of_tests_have_different_names():
    """pytest imports them by their name alone: two of one name stop the whole run."""
    tests = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted({name for name in tests if tests.count(name) > 1}) == []


def test_no_part_is_imported_by_a_string():
    """The order above is read from import statements, so parts of the package are imported by these alone.

    Exceptions: ``linkwise.NAME`` and commands and peers by their names, each in the file that lists them.
    """
    lists_them = {"linkwise", "linkwise.cli.app", "linkwise.bench.peers"}
    others = {
        "linkwise.errors",
        "linkwise.formats.descriptions",
        "linkwise.study.steps.call",
    }  # of other packages
    others |= {
        "linkwise.compiler.runtime.dispatch",
        "linkwise.arguments.wrong_arguments",
        "linkwise.environments.arrays",
    }
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "import_module(" in text or "__import__(" in text else ():
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called not in ("importlib.import_module", "import_module", "__import__"):
                continue
            name = ast.unparse(node.args[0])
            ours = "linkwise" in name or not isinstance(node.args[0], ast.Constant)
            assert not ours or module in lists_them | others, f"{module}: {name}"


def test_a_robot_is_a_model_with_methods_of_one_list():
    """No chain of classes: every method of a robot is in the body of its class, or in that of ``Model``."""
    names = [base.__name__ for base in linkwise.Robot.__mro__]
    assert names == [
        "Robot",
        "Model",
        "Guesses",
        "object",
    ]  # the third answers misspelt names, for the metaclass


def test_a_type_of_joints_stands_in_few_files():
    """What differs between types is a row of ``model.axes.MOVING_TYPES``; formats have names of their own."""
    spelled = [path for path in ROOT.rglob("*.py") if '"helical"' in path.read_text(encoding="utf-8")]
    assert len(spelled) <= 4, spelled
