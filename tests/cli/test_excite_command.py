"""``linkwise excite``: a motion that keeps its limits and shows the parameters."""

import contextlib
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
    floor = facts["distances"]["floor"]
    assert floor["least"] >= facts["clearance"]["proved"] >= facts["clearance"]["wanted"] == 0.02
    assert floor["between"][1] == "the floor"
    assert "Limits kept" in page.read_text(encoding="utf-8")
    assert "from above" in page.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "space.svg").is_file()
    assert (tmp_path / "figures" / "positions.svg").is_file()


def test_summary_and_pipe(linkwise):
    ran = linkwise("excite", "two_link", *QUICK)
    assert "all limits kept" in ran.out
    assert "condition number" in ran.out
    assert "the robot has no geometry: capsules along the kinematics with a radius of" in ran.out
    assert "also between the points of the grid, at least" in ran.out
    assert "give --out" in ran.out
    piped = linkwise("excite", "two_link", *QUICK, "--out", "-", "--rate", 50)
    assert len(table(piped.out)["t"]) == 251


def test_rooms_of_the_command_line(linkwise):
    more = (
        "--floor",
        "none",
        "--forbid",
        "0.9,-1,-0.2,1.3,1,0.2",
        "--box",
        "-3,-3,-3,3,3,3",
        "--tool",
        "0.1,0.2",
    )
    facts = linkwise(
        "excite", "two_link", *QUICK, *more, "--clearance", 0.05, "--radius", 0.03, "--json"
    ).json
    assert set(facts["distances"]) == {"walls", "boxes"}
    assert facts["clearance"]["proved"] >= 0.05
    assert "radius of 3 cm" in facts["shapes"]["notes"][0]
    assert "a capsule of 0.2 m, radius 0.1 m" in facts["shapes"]["notes"][1]


def test_the_motion_is_played_on_the_page(linkwise, monkeypatch):
    pytest.importorskip("viser")
    pages = []

    @contextlib.contextmanager
    def stop(page, as_json):
        yield
        pages.append((page.motion.duration, page.clearance.room.floor, page.tabs[1].player.playing))
        page.close()

    monkeypatch.setattr("linkwise.cli.excite.until_interrupted", stop)
    ran = linkwise("excite", "two_link", *QUICK, "--floor", -0.5, "--view")
    assert pages == [(5.0, -0.5, True)]
    assert "two_link is at http://127.0.0.1" in ran.out


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
        (("--box", "1,1,1,0,0,0"), "lower corner below the upper one"),
        (("--forbid", "-9,-9,-9,9,9,9"), "inside the forbidden box"),
        (("--floor", "3"), "inside the floor, near"),
        (("--floor", "low"), "expected a finite number"),
        (("--tool", "nowhere.stl"), "no such file"),
        (("--tool", "1,2,3"), "a radius and a length"),
        (("--tool", "-1"), "expected a positive radius"),
        (("--tool-frame", "link2"), "give --tool"),
        (("--out", "nowhere/motion.csv"), "no such folder as"),
        (("--duration", "-1"), "duration"),
        (("--rate", "0"), "expected a positive number"),
    ],
)
def test_bad_input_is_one_line(linkwise, tmp_path, monkeypatch, more, expected):
    monkeypatch.chdir(tmp_path)
    assert expected in linkwise("excite", "two_link", *QUICK, *more).refused()


def test_no_extra_is_needed(linkwise, monkeypatch):
    """The search and its linear algebra are our own."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert linkwise("excite", "two_link", *QUICK).status == 0
