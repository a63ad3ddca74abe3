"""The mutation script: it changes what it says, and only in its copy."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def mutation():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
        script, changes, project = (
            importlib.import_module(name)
            for name in ("mutation", "mutation_parts.changes", "mutation_parts.project")
        )
        return SimpleNamespace(**vars(changes) | vars(project) | vars(script))


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


def _both(mutation, text: str, wanted: dict[tuple[int, int], int], active: int) -> dict:
    """The names that a text defines, with both forms of each wanted mutant in it and one switched on."""
    made = mutation.instrumented(text, wanted, -1)
    line = "from linkwise._mutation import on as _mutation_on"
    assert line in made
    names = {"_mutation_on": lambda number: number == active}
    exec(made.replace(line, ""), names)
    return names


def test_one_text_holds_every_mutant(mutation):
    text = '''"""Doc."""
from __future__ import annotations
LIMIT = 3
def f(a, b=2):
    """Doc."""
    total = 0
    for k in range(LIMIT):
        total += a * (k + 1)
    if total > b and not a == 5:
        return -total
    return max(total, b)
'''
    places = list(mutation.visited(ast.parse(text)))
    every = [(n, c) for n, place in enumerate(places) for c in range(len(mutation.changed(place.node)))]
    wanted = {key: number for number, key in enumerate(every, 1)}
    assert len(wanted) > 15
    arguments = [(a, b) for a in (-3, 0, 1, 2, 5) for b in (-40, 0, 2, 12, 30)]

    def results(names: dict) -> list:
        return [names["f"](a, b) for a, b in arguments] + [names["f"](2)]

    original: dict = {}
    exec(text, original)
    assert results(_both(mutation, text, wanted, 0)) == results(original)
    for (node, choice), number in wanted.items():
        alone: dict = {}
        exec(mutation.mutated(mutation.Mutant("", node, choice, 0, ""), text), alone)
        assert results(_both(mutation, text, wanted, number)) == results(alone), number


def test_tests_are_chosen_by_the_mutants_they_reach(mutation):
    tests = {
        "slow": {"seconds": 2.0, "seen": [7, -1]},
        "quick": {"seconds": 1.0, "seen": [7, -1]},
        "other": {"seconds": 0.1, "seen": [-1]},
        "elsewhere": {"seconds": 0.1, "seen": [-2]},
    }
    assert mutation.nearest(7, -1, tests, set()) == [(1.0, "quick"), (2.0, "slow")]
    assert [name for _, name in mutation.nearest(7, -1, tests, {7})] == ["other", "quick", "slow"]


def test_a_mutant_in_a_pattern_has_no_switch(mutation):
    places = list(mutation.visited(ast.parse("match a:\n    case 3:\n        b = 4")))
    found = [mutation.switchable(place) for place in places if isinstance(place.node, ast.Constant)]
    assert found == [False, True]


def test_what_the_copy_of_the_project_relies_on(mutation):
    """Paths of tests and source, and the texts that are replaced in the copy, are those of today."""
    source = mutation.ROOT / "src/linkwise"
    for part, tests in mutation.TESTS.items():
        assert (source / part).is_dir()
        assert all((mutation.ROOT / "tests" / name).exists() for name in tests)
    paths = [*mutation.NOT_FOUND_BY_TEXT, mutation.SOURCE_IS_READ, *mutation.KEYED]
    assert all((source / path).exists() for path in paths)
    for path, old, _ in mutation.IN_THE_COPY:
        assert (source / path).read_text(encoding="utf-8").count(old) == 1, (path, old)
