"""The certificate of a package, and the program that checks it: what is changed in code or bounds is found."""

import copy
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.emit import c
from linkwise.compiler.ir.program import trace
from linkwise.embedded import Options, stack
from linkwise.embedded.package_files import support_file
from linkwise.evidence import CertifiedPackage, certified_bounds, objects, search, sheet
from linkwise.evidence.recomputed import RecomputeError, recompute
from linkwise.evidence.sheet import CERTIFICATE, CHECKER, MODEL, PAGE


@pytest.fixture(scope="module", params=[("float32", True), ("float64", False)])
def package(request):
    dtype, fma = request.param
    return CertifiedPackage(
        lw.load("two_link"),
        ["computed_torque" if fma else "inverse_dynamics"],
        Options(dtype=dtype),
        fma=fma,
        constant_time=fma,
        bounds={"seconds": 1.0},
    )


def read_checker(text: str) -> ModuleType:
    module = ModuleType("checker")
    exec(compile(text, CHECKER, "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def checker(package) -> ModuleType:
    return read_checker(package.files[CHECKER])


def test_the_certificate_of_a_package_holds(package, tmp_path):
    package.write(tmp_path / "arm")
    done = subprocess.run(
        ["make", "-C", str(tmp_path / "arm"), "certify", f"PYTHON={sys.executable}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the certificate holds" in done.stdout
    page = Path(tmp_path, "arm", PAGE).read_text(encoding="utf-8")
    assert "all" in page
    assert "are finite numbers" in page
    changed = tmp_path / "arm" / "src" / f"{package.functions[0].name}.c"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(tmp_path / "arm" / CHECKER), str(tmp_path / "arm")])
    assert done.returncode == 1


def test_a_changed_constant_is_found_by_values_alone(package, checker):
    """The digest is set to that of the changed code: values must differ."""
    certified = json.loads(package.files[CERTIFICATE])["functions"][0]
    text = package.files[certified["file"]]
    places = [
        m
        for m in re.finditer(r"(?<![\w.\[])\d+\.\d*(?:e[+-]?\d+)?f?(?![\w\]])", text)
        if m.start() > text.index("\n{") and 1e-4 < abs(float(m[0].rstrip("f"))) < 100
    ]
    rng = np.random.default_rng(0)
    for k in rng.choice(len(places), 10, replace=False):
        place = places[k]
        suffix = "f" if place[0].endswith("f") else ""
        other = f"{float(place[0].rstrip('f')) * 1.05!r}{suffix}"
        changed = text[: place.start()] + other + text[place.end() :]
        row = copy.deepcopy(certified)
        row["sha256"] = checker.hashlib.sha256(changed.encode()).hexdigest()
        assert list(checker.check(row, changed)), f"{place[0]} -> {other} was not found"


def test_a_cosine_without_the_sine_of_its_angle_is_read_as_a_cosine(checker):
    for kind in ("sin", "cos"):
        for fused in (True, False):
            program = trace(
                lambda x, kind=kind: [getattr(x[0], kind)() + abs(x[0])], {"x": 1}, {"y": (1,)}, fused=fused
            )
            function = checker.Function(c.source(program, function_name="f", fma=fused), "f")
            assert [turn[0] for turn in function.turns.values()] == [kind]
            assert not list(checker.check_turns(function))
            value = float(checker.Exact(function, {"x[0]": 0.3}).known["y[0]"])
            assert value == pytest.approx(0.3 + getattr(math, kind)(0.3), abs=1e-14)


def test_wrong_bounds_are_found(package, checker):
    certified = json.loads(package.files[CERTIFICATE])["functions"][0]
    text = package.files[certified["file"]]
    assert not list(checker.check(certified, text))
    rng = np.random.default_rng(1)
    rows = [r for r in certified["outputs"] if r["high"] > 0]
    for kind in ("high", "low", "error", "node", "box") * 2:
        wrong = copy.deepcopy(certified)
        row = wrong["outputs"][certified["outputs"].index(rows[rng.integers(len(rows))])]
        if kind == "high":
            row["high"] = row["highest"]["value"] * 0.99
        elif kind == "low":
            row["low"] = row["lowest"]["value"] * 0.99
        elif kind == "error":
            row["error"] = row["worst"]["value"] * 0.9
        elif kind == "node":
            large = [n for n in wrong["nodes"] if 1.0 < n[2] < 1e3]
            node = large[rng.integers(len(large))]
            node[1], node[2] = node[2] * 2, node[2] * 3
        else:
            name = next(n for n, (low, high) in wrong["box"].items() if low < high)
            wrong["box"][name][1][0] = wrong["box"][name][0][0]
        assert list(checker.check(wrong, text)), kind


def test_a_package_whose_code_has_loops(tmp_path, monkeypatch):
    checker = read_checker(support_file("check_certificate.py.in", "linkwise.evidence"))
    monkeypatch.setattr(objects, "measured", lambda sources, functions: [])
    for module, name, value in ((search, "_WIDTH", 2), (search, "_ROUNDS", 1), (search, "_MANY", 10**9)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(certified_bounds, "_RANDOM", 20)
    monkeypatch.setattr(certified_bounds, "_STARTS", 1)
    robot = lw.planar_chain(40)
    made = CertifiedPackage(robot, ["gravity_torques"], bounds={"given": {"q": (-0.1, 0.1)}, "seconds": 0.1})
    folder = tmp_path / "chain"
    made.write(folder)
    assert "for (" in (folder / "src" / f"{made.functions[0].name}.c").read_text(encoding="utf-8")
    assert checker.main(folder) == 0
    certified = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))["functions"][0]
    text = (folder / certified["file"]).read_text(encoding="utf-8")
    place = next(m for m in re.finditer(r"\d\.\d{6,}", text) if m.start() > text.index("\n{"))
    changed = text[: place.start()] + repr(float(place[0]) * 1.01) + text[place.end() :]
    wrong = {**certified, "sha256": checker.hashlib.sha256(changed.encode()).hexdigest()}
    assert list(checker.check(wrong, changed))
    code = folder / certified["code_with_loops"]["file"]
    code.write_text(code.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert checker.main(folder) == 1


def test_a_package_is_computed_again(package, tmp_path):
    folder = package.write(tmp_path / "arm") and tmp_path / "arm"
    assert recompute(folder) == []
    place = folder / CERTIFICATE
    written = json.loads(place.read_text(encoding="utf-8"))
    changed = copy.deepcopy(written)
    changed["functions"][0]["outputs"][0]["error"] *= 0.999
    changed["functions"][0]["nodes"][3][2] *= 1.001
    place.write_text(json.dumps(changed), encoding="utf-8")
    assert len(recompute(folder)) == 2
    place.write_text(json.dumps(written), encoding="utf-8")
    model = folder / MODEL
    text = model.read_text(encoding="utf-8")
    assert "Izz = 0.25" in text
    model.write_text(text.replace("Izz = 0.25", "Izz = 0.26"), encoding="utf-8")
    assert any("the code is not what Linkwise generates" in sentence for sentence in recompute(folder))
    with pytest.raises(RecomputeError, match="no certificate"):
        recompute(tmp_path)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_instructions_and_stack_are_those_of_the_objects(package):
    certified = json.loads(package.files[CERTIFICATE])["functions"][0]
    here = certified["objects"][0]
    assert here["stack"] <= here["depth"] <= certified["stack_bound"]
    assert here["instructions"] is None or here["instructions"] > 50
    assert (here["instructions"] is not None) == package.constant_time
    looped = (
        "double f(const double x[4]) { double s = 0; for (int k = 0; k < 4; k++) if (x[k] > 0) s += x[k]; "
    )
    looped += "return s; }"
    straight = "double g(const double x[4]) { return x[0] * x[1] + x[2] * x[3]; }"
    counted = {r["function"]: r for r in objects.measured({"f.c": looped, "g.c": straight}, ("f", "g"))}
    assert counted["f"]["instructions"] is None
    assert 4 <= counted["g"]["instructions"] <= 12


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_stack_of_calls_is_that_of_the_deepest_chain():
    keep = "__attribute__((noinline)) "
    source = f"""
    double outside(double x);
    static {keep}double small(double x) {{ volatile double a[4]; a[0] = x; return a[0] + outside(x); }}
    static {keep}double large(double x) {{ volatile double a[100]; a[0] = x; return a[0] + 1.0; }}
    double f(double x) {{ return small(x) + large(x) * 2.0; }}
    double g(double x) {{ return x > 1.0 ? g(x * 0.5) * x + f(x) : x; }}
    """
    found = stack.depths({"f.c": source}, flags=("-O1",))
    own = stack.measured({"f.c": source}, flags=("-O1",))
    assert found["large"].bytes == found["large"].own == own["large"] >= 600
    assert found["f"].bytes == own["f"] + own["large"]
    assert found["f"].outside == ("outside",)
    assert not found["f"].open
    assert found["g"].open


def test_the_page_rounds_bounds_outwards():
    """A bound that is printed with fewer digits is still a bound."""
    rng = np.random.default_rng(0)
    for value in rng.normal(size=200) * 10.0 ** rng.integers(-20, 20, 200):
        low, high = (sheet._outwards(value, 3, side) for side in (sheet.ROUND_FLOOR, sheet.ROUND_CEILING))
        assert float(low) <= value <= float(high)
        assert float(high) - float(low) <= 0.0101 * abs(value)
