"""``linkwise excite``: a motion that keeps its limits and shows the parameters."""

import io
import sys

import numpy as np
import pytest

import linkwise as lw

pytest.importorskip("scipy")

QUICK = ("--starts", 1, "--iterations", 9, "--order", 3, "--duration", 5)


def table(text: str) -> dict[str, np.ndarray]:
    names = text.partition("\n")[0].split(",")
    return dict(zip(names, np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1).T, strict=True))


def test_limits_are_kept_and_the_motion_is_consistent(linkwise, tmp_path):
    out, page = tmp_path / "motion.csv", tmp_path / "motion.html"
    more = ("--share", 0.5, "--acceleration", "4,6", "--rate", 100, "--out", out, "--report", page)
    ran = linkwise("excite", "two_link", *QUICK, *more, "--figures", tmp_path / "figures", "--json")
    assert ran.status == 0
    motion = table(out.read_text())
    q, qd, qdd = (np.column_stack([motion[f"{name}{k}"] for k in (1, 2)]) for name in ("q", "qd", "qdd"))
    assert motion["t"] == pytest.approx(np.arange(501) / 100)
    limits = [joint.limits for joint in lw.load("two_link").moving_joints]
    for k, limit in enumerate(limits):
        assert limit.lower <= q[:, k].min()
        assert q[:, k].max() <= limit.upper
    assert (np.abs(qdd).max(axis=0) <= [2.0, 3.0]).all()  # half of what was given
    assert np.gradient(q, 0.01, axis=0)[5:-5] == pytest.approx(qd[5:-5], abs=2e-2)
    assert np.abs(np.concatenate([qd[[0, -1]], qdd[[0, -1]]])).max() < 1e-9  # from rest to rest
    facts = ran.json
    assert facts["condition"] <= facts["condition_random"]
    assert facts["acceleration"]["limit"] == [2.0, 3.0]
    assert "Limits kept" in page.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "positions.svg").is_file()


def test_summary_and_pipe(linkwise):
    ran = linkwise("excite", "two_link", *QUICK)
    assert "all limits kept" in ran.out
    assert "condition number" in ran.out
    assert "give --out" in ran.out
    piped = linkwise("excite", "two_link", *QUICK, "--out", "-", "--rate", 50)
    assert len(table(piped.out)["t"]) == 251


def test_the_same_seed_gives_the_same_motion(linkwise):
    first, again, other = (
        linkwise("excite", "two_link", *QUICK, "--out", "-", "--rate", 10, "--seed", seed).out
        for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--family", "fouier"), "did you mean 'fourier'?"),
        (("--criterion", "conditions"), "did you mean 'condition'?"),
        (("--friction", "columb"), "did you mean 'coulomb'?"),
        (("--acceleration", "1,2,3"), "expected 1 or 2 numbers, got 3"),
        (("--box", "1,2,3"), "expected 6 numbers, got 3"),
        (("--out", "nowhere/motion.csv"), "no such folder as"),
        (("--duration", "-1"), "duration"),
        (("--rate", "0"), "expected a positive number"),
    ],
)
def test_bad_input_is_one_line(linkwise, tmp_path, monkeypatch, more, expected):
    monkeypatch.chdir(tmp_path)
    assert expected in linkwise("excite", "two_link", *QUICK, *more).refused()


def test_without_the_extra(linkwise, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert "pip install 'linkwise[identify]'" in linkwise("excite", "two_link", *QUICK).refused()
