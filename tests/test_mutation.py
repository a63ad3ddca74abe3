"""The mutation script: it changes what it says, and only in its copy."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "mutation.py"


@pytest.fixture(scope="module")
def mutation():
    spec = importlib.util.spec_from_file_location("mutation", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutation"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutation"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b", ["a - b"]),
        ("-a", ["a"]),
        ("a < b", ["a <= b", "a > b"]),
        ("a and b", ["a or b"]),
        ("min(a, b)", ["max(a, b)"]),
        ("3", ["4", "2"]),
        ("0.0", ["1.0"]),
        ("0.5", ["1.0"]),
        ("not a", ["a"]),
        ("True", ["False"]),
        ("'text'", []),
    ],
)
def test_what_a_mutant_changes(mutation, text, expected):
    node = ast.parse(text, mode="eval").body
    assert [ast.unparse(ast.fix_missing_locations(new)) for new in mutation.changed(node)] == expected


def test_a_mutant_differs_from_its_file_in_one_place(mutation):
    path = "control/gains.py"
    text = (mutation.ROOT / "src/linkwise" / path).read_text(encoding="utf-8")
    before = ast.unparse(ast.parse(text))
    found = mutation.mutants(path)
    assert len(found) > 20
    for mutant in found[::7]:
        pairs = zip(before.splitlines(), mutation.mutated(mutant, text).splitlines(), strict=True)
        assert sum(a != b for a, b in pairs) == 1, mutant


def test_tests_are_chosen_by_the_functions_they_execute(mutation):
    mutant = mutation.Mutant("control/gains.py", 0, 0, 31, 30, "a  ->  b")
    tests = {
        "slow": {"seconds": 2.0, "functions": ["control/gains.py:30"]},
        "quick": {"seconds": 1.0, "functions": ["control/gains.py:30"]},
        "other": {"seconds": 0.1, "functions": ["control/gains.py:12"]},
    }
    assert mutation.nearest(mutant, tests) == (["quick", "slow"], 3.0)
    outside = mutation.Mutant("control/gains.py", 0, 0, 3, 0, "a  ->  b")
    own = {"tests/control/test_gains.py::test_table": {"seconds": 0.2, "functions": []}}
    assert mutation.nearest(outside, {**tests, **own})[0] == ["other", *own, "quick", "slow"]
