"""``linkwise calibrate``: a table of measured poses in; a robot and its accuracy out."""

import numpy as np
import pytest

import linkwise as lw

ZERO = 5e-3  # [rad] of the second joint


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two tables of positions of a target on the arm's second link, seen from (1, 2, 0)."""
    arm, rng = lw.load("two_link"), np.random.default_rng(0)
    paths = []
    for name in ("train.csv", "test.csv"):
        q = rng.uniform(-1.5, 1.5, (30, 2))
        seen = arm.pose(q + np.array([0.0, ZERO])) @ np.array([0.9, 0.1, 0.0, 1.0])
        seen = seen[:, :3] + np.array([1.0, 2.0, 0.0]) + 1e-5 * rng.normal(size=(30, 3))
        paths.append(tmp_path_factory.mktemp("poses") / name)
        np.savetxt(paths[-1], np.column_stack([q, seen]), delimiter=",", header="q1,q2,x,y,z", comments="")
    return paths


def test_a_zero_is_found_and_the_robot_written(linkwise, tables, tmp_path):
    out = tmp_path / "arm.urdf"
    options = ("--parameters", "base,offsets", "--tool", "0.9,0.1,0", "--out", out)
    facts = linkwise("calibrate", "two_link", tables[0], "--validate", tables[1], *options, "--json").json
    found = {row["label"]: row for row in facts["parameters"]}
    assert found["joint2.offset"]["lower"] < ZERO < found["joint2.offset"]["upper"]
    assert "joint1.offset" in facts["left_out"]  # the base turns as well
    assert facts["after"]["distance"] < 3e-5 < facts["before"]["distance"]
    assert lw.load(out).pose([0.0, 0.0], frame="link2") == pytest.approx(
        lw.load("two_link").pose([0.0, ZERO], frame="link2"), abs=1e-4
    )
    said = linkwise("calibrate", "two_link", tables[0], *options).out
    assert "held-out measurements" in said
    assert "cannot be told apart" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--parameters", "zeros"), "no 'zeros'"),
        (("--out", "arm.txt"), "saved as .urdf or .toml"),
        (("--hold-out", "1.5"), "--hold-out"),
        (("--frame", "nothing"), "nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused(linkwise, tables, options, words):
    assert words in linkwise("calibrate", "two_link", tables[0], *options).refused()
