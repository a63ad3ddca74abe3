"""Motions in files come back as they were."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import motion


def test_what_is_written_is_read_back(tmp_path):
    move = motion.quintic([0.1, 0.2], [1.0, -1.0], 2.0)
    path = tmp_path / "move.csv"
    motion.write_csv(path, move, rate=50)
    back = motion.read_csv(path)
    t = np.linspace(0, 2, 333)
    for found, wanted in zip(back.at(t), move.at(t), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    samples = move.sampled(50)
    assert (back.at(samples.t).q == samples.q).all()
    assert list(tmp_path.iterdir()) == [path]


def test_positions_alone_become_a_spline(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("# a comment\nt,q2,q1\n0,1,0\n1,2,5\n3,0,1\n")
    back = motion.read_csv(path)
    np.testing.assert_allclose(back.at([0, 1, 3]).q, [[0, 1], [5, 2], [1, 0]], atol=1e-12)


def test_without_a_header_the_columns_are_in_the_usual_order(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("0,1,0\n1,2,5\n3,0,1\n")
    back = motion.read_csv(path, joints=["a", "b"])
    np.testing.assert_allclose(back.at([0, 1, 3]).q, [[1, 0], [2, 5], [0, 1]], atol=1e-12)
    path.write_text("0,1,0.5,0\n1,2,0,0\n")
    assert back.dof == 2
    assert motion.read_csv(path, joints=["a"]).at(0.0).qd == 0.5
    with pytest.raises(ValueError, match="4 columns without a header; expected 3"):
        motion.read_csv(path, joints=["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,q1\n0,1\n", "at least two lines"),
        ("t,q1\n0,1\n1,x\n", "line 3: column 2: expected a number, got 'x'"),
        ("t,q1\n# a remark\n0,1\n1\n", "line 4: expected 2 columns, got 1"),
        ("t,q1,q1\n0,1,2\n1,2,3\n", "columns 2 and 3 are both called 'q1'"),
        ("q1,q2\n0,1\n1,2\n", "no column t"),
        ("t,q2,q3\n0,1,2\n1,2,3\n", "no columns q1"),
        ("t,x\n0,1\n1,2\n", "no columns q1"),
        ("t,q1\n0,1\n0,2\n", "not later"),
        ("0,1\n1,2\n", "no header; expected columns t, q1"),
    ],
)
def test_wrong_files_are_named(tmp_path, text, message):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        motion.read_csv(path)
    assert "wrong.csv" in str(caught.value)
