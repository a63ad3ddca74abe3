"""What a function is made of: every change that matters is noticed and named, others are not."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.study.code import parts
from linkwise.study.identity import SINCE, _changes


@pytest.fixture
def project(tmp_path, monkeypatch):
    """``project({"own": "…", "helpers": "…"})`` writes modules of a project and gives the function ``f`` of ``own``."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def forget():
        for name in set(sys.modules) - before:
            if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
                del sys.modules[name]
        importlib.invalidate_caches()

    def make(modules):
        forget()
        for name, text in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return importlib.import_module("own").f

    yield make
    forget()


def told(before: dict, now: dict) -> list[str]:
    return _changes(before, now, SINCE)


BASE = {
    "own": "import helpers\nK = 2.0\ndef f(q):\n    return helpers.g(q) * K\n",
    "helpers": "import deeper\ndef g(q):\n    return q + deeper.OFFSET\n",
    "deeper": "OFFSET = 1.0\ndef unused():\n    return 1\n",
}
CHANGES = {
    "a constant": (
        {"own": BASE["own"].replace("* K", "* K * 3.0")},
        ["function 'f' in own.py changed"],
    ),
    "a sign": (
        {"own": BASE["own"].replace("return helpers", "return -helpers")},
        ["function 'f' in own.py changed"],
    ),
    "a global": (
        {"own": BASE["own"].replace("K = 2.0", "K = 2.5")},
        ["global 'K' of function 'f' in own.py changed"],
    ),
    "a function of another file": (
        {"helpers": BASE["helpers"].replace("q + ", "q - ")},
        ["function 'g' in helpers.py changed"],
    ),
    "a constant two files away": (
        {"deeper": BASE["deeper"].replace("1.0", "1.5")},
        ["'OFFSET' in deeper.py changed"],
    ),
    "something else of a file that is imported": (
        {"deeper": BASE["deeper"].replace("return 1", "return 2")},
        ["file deeper.py changed"],
    ),
    "a default": (
        {"own": BASE["own"].replace("f(q)", "f(q, gain=1.0)")},
        ["function 'f' in own.py changed"],
    ),
    "comments and blank lines": (
        {"own": "# about this\n\n\n" + BASE["own"], "deeper": BASE["deeper"] + "\n# the end\n"},
        [],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_named(project, change):
    files, expected = CHANGES[change]
    before = parts(project(BASE))
    now = parts(project({**BASE, **files}))
    assert told(before, now) == expected
    assert told(now, parts(project({**BASE, **files}))) == []


def test_imports_inside_functions_and_relative_ones(project):
    files = {
        "own": "def f(q):\n    from package import inner\n    return inner.g(q)\n",
        "package/__init__": "",
        "package/inner": "from . import lowest\nimport importlib\nx = importlib.import_module('named')\n"
        "def g(q):\n    return q * lowest.K\n",
        "package/lowest": "K = 1.0\n",
        "named": "N = 1\n",
    }
    before = parts(project(files))
    assert {"file package/__init__.py", "file package/inner.py", "file package/lowest.py"} <= set(before)
    assert told(before, parts(project({**files, "package/lowest": "K = 2.0\n"}))) == [
        "file package/lowest.py changed"
    ]
    assert told(before, parts(project({**files, "named": "N = 2\n"}))) == ["file named.py changed"]


def test_a_value_set_from_outside(project):
    function = project(BASE)
    before = parts(function)
    sys.modules["deeper"].OFFSET = 7.0
    assert told(before, parts(function)) == ["'OFFSET' in deeper.py changed"]


def scaled(factor, also=None):
    def inner(q):
        return q * factor if also is None else also(q)

    return inner


def test_closures():
    label = "function 'scaled.<locals>.inner' in test_study_code.py"
    assert told(parts(scaled(1.0)), parts(scaled(1.0))) == []
    assert told(parts(scaled(1.0)), parts(scaled(2.0))) == [f"'factor' in the closure of {label} changed"]
    one, two = (scaled(1.0, scaled(x)) for x in (1.0, 2.0))
    assert told(parts(one), parts(two)) == [f"'factor' in the closure of {label} (2) changed"]


class Gain:
    offset = 0.0

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, q):
        return self.gain * q + self.offset


class OtherGain(Gain):
    def __call__(self, q):
        return -self.gain * q


def same(a, b) -> bool:
    return parts(a) == parts(b)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: Gain(x),
        lambda x: Gain(x).__call__,
        lambda x: __import__("functools").partial(scaled, also=x),
        lambda x: scaled(np.array([x, 2.0])),
        lambda x: scaled({"a": [x, {1, 2}, (None, True)]}),
        lambda x: scaled(np.random.default_rng(int(x))),
        lambda x: scaled(lw.load("two_link").with_payload(x)),
        lambda x: scaled(lw.load("two_link").with_payload(x).kernel("gravity_torques")),
        lambda x: scaled(lw.load("two_link").with_payload(x).gravity_torques),
        lambda x: lw.kernel(q=2)(lambda q: q * x),
        lambda x: np.vectorize(scaled(x)),
        lambda x: __import__("functools").lru_cache(scaled(x)),
    ],
)
def test_all_kinds_of_values(make):
    assert same(make(1.0), make(1.0))
    assert not same(make(1.0), make(2.0))


def test_small_differences():
    for a, b in ((0.0, -0.0), (1, 1.0), (1, True), ("1", 1), ([1], (1,)), (Gain(1), OtherGain(1))):
        assert not same(scaled(a), scaled(b))
    assert not same(scaled(np.zeros(4)), scaled(np.zeros((2, 2))))
    assert not same(scaled(np.zeros(2)), scaled(np.zeros(2, np.int64)))


def test_a_method_of_a_class_changes(monkeypatch):
    before = parts(Gain(1.0))
    monkeypatch.setattr(Gain, "__call__", lambda self, q: q)
    assert any("changed" in change or "is new" in change for change in told(before, parts(Gain(1.0))))


def test_containers_that_contain_themselves_and_things_that_cannot_be_taken_apart(tmp_path):
    endless: list = [1]
    endless.append(endless)
    assert same(scaled(endless), scaled(endless))
    with (tmp_path / "x").open("w") as file:
        assert same(scaled(file), scaled(file))


def test_functions_of_libraries_count_by_name():
    assert parts(np.cos) == parts(np.cos) != parts(np.sin)
    assert any(label.startswith("installed package 'numpy'") for label in parts(np.linalg.norm))


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from linkwise.study.code import parts
import test_study_code
rate = {{"a", "bc", "d", "e"}}
def f(q):
    return test_study_code.scaled(3.0)(q) if q in {{"x", "y", "z"}} else rate
print(sorted(parts(f).items()))
"""


def test_every_process_finds_the_same(monkeypatch):
    """Sets have another order in each."""
    from pathlib import Path

    script = SCRIPT.format(folder=str(Path(__file__).parent))
    found = set()
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        found.add(ran.stdout)
    assert len(found) == 1
