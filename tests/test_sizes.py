"""Sizes that must not grow again: loops around arithmetic for each target, and functions anywhere."""

import ast
from pathlib import Path

import pytest

import linkwise

ROOT = Path(linkwise.__file__).parent
EMIT = "compiler/emit"

# What surrounds arithmetic with loops for one target: frames, layouts of memory, machine code of study columns. Shapes
# of loops have one builder each for all targets, in compiler/shapes.py and compiler/columns.py.
GROUPS = {
    "LLVM": [f"{EMIT}/blocks.py", f"{EMIT}/memory.py"],
    "CUDA": [f"{EMIT}/cuda/{part}.py" for part in ("source", "frame", "layout", "rollout", "rows", "sweeps")],
    "study columns": [f"{EMIT}/tiles.py", "study/engines/native.py", "study/sampling/draws.py"],
}
MOST_LINES = (
    1805  # with imports, which name folders, places where blocks compute states again, blocks of long code and
    # rollouts whose warps begin every step together, with rows of their own in shared memory
)
DIVIDED = [f"{EMIT}/cuda/parts.py"]  # arithmetic divided among warps: no loop around it, so counted apart
MOST_LINES_DIVIDED = 300
# loops that an algorithm writes itself, around steps of its own: a thread or a warp for each state
PROCEDURES = [f"{EMIT}/cuda/{part}.py" for part in ("procedure", "team")]
MOST_LINES_PROCEDURES = 240
QUEUED = [f"{EMIT}/cuda/queued.py"]  # states in turns: before, in and after a loop that some leave early
MOST_LINES_QUEUED = 325
PACKED = [f"{EMIT}/packing.py"]  # states of a batch that are computed again
MOST_LINES_PACKED = 245
TARGET_TEXT = ("getelementptr", "shufflevector", "__global__", "__syncthreads", "threadIdx")

MOST_LINES_OF_A_FUNCTION = 60


def lines(name: str) -> int:
    return (ROOT / name).read_text(encoding="utf-8").count("\n")


def test_loops_of_all_targets_are_short():
    counted = {group: sum(map(lines, files)) for group, files in GROUPS.items()}
    assert sum(counted.values()) <= MOST_LINES, counted
    assert sum(map(lines, DIVIDED)) <= MOST_LINES_DIVIDED
    assert sum(map(lines, PROCEDURES)) <= MOST_LINES_PROCEDURES
    assert sum(map(lines, QUEUED)) <= MOST_LINES_QUEUED
    assert sum(map(lines, PACKED)) <= MOST_LINES_PACKED


def test_every_file_with_such_loops_is_counted():
    counted = {name for files in (*GROUPS.values(), DIVIDED, PROCEDURES, QUEUED) for name in files}
    cuda = {f"{EMIT}/cuda/{path.name}" for path in (ROOT / EMIT / "cuda").glob("[!_]*.py")}
    study = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "study").rglob("*.py")
        if "linkwise.compiler.emit" in path.read_text(encoding="utf-8")
    }
    assert cuda | study <= counted


def test_no_text_of_a_target_outside_the_compiler():
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] != "compiler":
            text = path.read_text(encoding="utf-8")
            assert not any(word in text for word in TARGET_TEXT), path


def functions(path: Path):
    """(name, lines without the docstring) of every function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                length -= node.body[0].end_lineno - node.body[0].lineno + 1
            yield node.name, length


@pytest.mark.parametrize("part", sorted({path.relative_to(ROOT).parts[0] for path in ROOT.rglob("*.py")}))
def test_functions_are_short(part):
    found = {}
    for path in [ROOT / part] if part.endswith(".py") else sorted((ROOT / part).rglob("*.py")):
        for name, length in functions(path):
            where = f"{path.relative_to(ROOT)} {name}"
            if length > MOST_LINES_OF_A_FUNCTION:
                found[where] = length
    assert not found
