"""Files as people and other programs write them: read where their meaning is plain, else refused in one line."""

import os
import pickle

import numpy as np
import pytest

from linkwise.identify import LogError, read_log

T = np.arange(40) / 100.0
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
TAU = np.column_stack([3 * Q[:, 0], -Q[:, 1]])
HEADER = "t,q1,q2,tau1,tau2"
TEXT = (
    "\n".join([HEADER, *(",".join(f"{v:.9f}" for v in row) for row in np.column_stack([T, Q, TAU]))]) + "\n"
)

READABLE = {
    "every cell quoted": '"' + TEXT.replace(",", '","').replace("\n", '"\n"').removesuffix('"'),
    "decimal commas": TEXT.replace(",", ";").replace(".", ","),
    "decimal commas without a header": TEXT.split("\n", 1)[1].replace(",", ";").replace(".", ","),
    "bars": TEXT.replace(",", "|"),
    "byte order mark and line ends of Windows": "\ufeff" + TEXT.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", READABLE)
def test_text_whose_meaning_is_plain(tmp_path, arm, name):
    (tmp_path / "run.csv").write_text(READABLE[name], encoding="utf-8", newline="")
    log = read_log(tmp_path / "run.csv", arm)
    np.testing.assert_allclose(
        np.column_stack([log.t, log.q, log.tau]), np.column_stack([T, Q, TAU]), atol=1e-9
    )


def refused(path, arm, layout=None) -> str:
    """The one line with which a recording is refused."""
    with pytest.raises(LogError) as caught:
        read_log(path, arm, layout)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_name_that_two_columns_have(tmp_path, arm):
    (tmp_path / "run.csv").write_text(TEXT.replace("q2", "q1"))
    message = refused(tmp_path / "run.csv", arm)
    assert "run.csv: columns 2 and 3 are both called 'q1'" in message
    read_log(tmp_path / "run.csv", arm, {"columns": {"time": 1, "position": [2, 3], "torque": 4}})


def test_numbers_that_only_python_reads(tmp_path, arm):
    lines = TEXT.splitlines()
    lines[4] = lines[4].rsplit(",", 1)[0] + ",1_000"
    (tmp_path / "run.csv").write_text("\n".join(lines))
    assert "run.csv, line 5: column 5: expected a number, got '1_000'" in refused(tmp_path / "run.csv", arm)


def test_missing_columns_are_said_beside_those_that_are_there(tmp_path, arm):
    (tmp_path / "run.csv").write_text(TEXT.replace("q2", "other"))
    assert "for 2 joints; it has t, q1, other, tau1, tau2" in refused(tmp_path / "run.csv", arm)


def test_a_folder(tmp_path, arm):
    (tmp_path / "run.csv").mkdir()
    assert "run.csv: a folder" in refused(tmp_path / "run.csv", arm)


ARRAYS = {
    "another length": ({"q": Q[:-1]}, "q: expected 40 rows"),
    "three dimensions": ({"tau": np.stack([TAU, TAU], axis=2)}, "tau: expected 40 rows"),
    "text": ({"q": Q.astype(str)}, "q: expected real numbers"),
    "complex": ({"q": Q + 0j}, "q: expected real numbers, got complex128"),
    "one number as time": ({"t": np.float64(1.0)}, "t: expected 40 rows"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_no_signals_are_named(tmp_path, arm, name):
    changed, expected = ARRAYS[name]
    np.savez(tmp_path / "run.npz", **({"t": T, "q": Q, "tau": TAU} | changed))
    assert f"run.npz: {expected}" in refused(tmp_path / "run.npz", arm)


def test_archives_that_are_none(tmp_path, arm):
    np.savez(tmp_path / "good.npz", t=T, q=Q, tau=TAU)
    whole = (tmp_path / "good.npz").read_bytes()
    for name, data in {
        "begins.npz": whole[:50],
        "cut.npz": whole[: len(whole) // 2],
        "text.npz": b"t,q1",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert f"{name}: not an NPZ file" in refused(tmp_path / name, arm)
    np.savez(tmp_path / "none.npz", t=T[:0], q=Q[:0], tau=TAU[:0])
    assert "none.npz: no arrays of numbers" in refused(tmp_path / "none.npz", arm)


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_unpickled(tmp_path, arm):
    trap = Trap(str(tmp_path / "sprung"))
    np.savez(tmp_path / "inside.npz", t=T, q=np.array([trap] * len(T), dtype=object), tau=TAU)
    (tmp_path / "whole.npz").write_bytes(pickle.dumps(trap))
    assert "inside.npz: q: pickled objects, which are not read" in refused(tmp_path / "inside.npz", arm)
    assert "whole.npz: not an NPZ file" in refused(tmp_path / "whole.npz", arm)
    assert not (tmp_path / "sprung").exists()


LAYOUTS = {
    "a rate in words": ('[recording]\nrate = "fast"', "rate: expected a positive number"),
    "rows without an end": ("[recording]\nrows = [3]", "rows: expected [first, last]"),
    "rows in words": ('[recording]\nrows = ["a", "b"]', "rows: expected [first, last]"),
    "files without names": ("[recording]\nfiles = 3", "files: expected the name"),
    "a truth as a column": ("[columns]\ntime = true", "columns.time: expected names or numbers"),
    "one column for two joints": (
        "[columns]\nposition = [2, 2]",
        "columns.position: a column is named twice",
    ),
    "gains in words": ('[drive]\ngains = "high"', "drive.gains: expected numbers"),
    "a gain that is no number": ("[drive]\ngains = [nan, 1]", "drive.gains: expected finite numbers"),
    "a reduction of nothing": ("[drive]\nreduction = [0, 1]", "drive.reduction: expected finite numbers"),
    "an offset for one joint": ("[drive]\noffset = [0.1]", "drive.offset: expected 2 numbers, got 1"),
    "motors that move no joint": (
        "[drive]\ncoupling = [[1, 1], [1, 1]]",
        "drive.coupling: the matrix is singular",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_that_cannot_be_meant(tmp_path, arm, name):
    text, expected = LAYOUTS[name]
    (tmp_path / "run.csv").write_text(TEXT)
    (tmp_path / "layout.toml").write_text(text)
    message = refused(tmp_path / "run.csv", arm, tmp_path / "layout.toml")
    assert expected in message
    assert "layout.toml" in message or "run.csv" in message
