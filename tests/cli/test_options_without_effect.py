"""Options that would be ignored are refused, and names of outputs that say another format than is written."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main

TABLE = "t,q1,q2,qd1,qd2,qdd1,qdd2\n" + "\n".join(f"{k / 10},0,0,0,0,0,0" for k in range(5))

IGNORED = [
    ("inverse two_link --trajectory motion.csv --duration 3", "--duration"),
    ("inverse two_link --trajectory motion.csv --degrees", "--degrees"),
    ("inverse two_link --trajectory motion.csv --points 7", "--points"),
    ("inverse two_link --trajectory motion.csv --to 1,1", "--to"),
    ("simulate two_link --trajectory motion.csv --move 3", "--move"),
    ("simulate two_link --trajectory motion.csv --degrees", "--degrees"),
    ("operations --compare two_link", "ROBOT"),
    ("operations two_link --compare", "ROBOT"),
    ("operations --compare --stages", "--stages"),
    ("operations --compare --gravity 0,0,1", "--gravity"),
    ("operations two_link --markdown", "--markdown"),
    ("view two_link --out x.html --port 8081", "--port"),
    ("view two_link --out x.html --host 0.0.0.0", "--host"),
    ("view two_link --out x.html --no-shadows", "--no-shadows"),
    ("excite two_link --rate 100", "--rate"),
    ("bench --calls --batch 4", "--batch"),
    ("study --verify x --resume", "--resume"),
    ("study --status x --threads 2", "--threads"),
    ("study x.toml --accept-changed-code", "--accept-changed-code"),
    ("study x.toml --cluster tcp://x:1 --threads 2", "--threads"),
    ("info puma560 --lock waist=0 --lock waist=1", "'waist' is given 2 times"),
    ("info puma560 --lock waist=0 --lock elbow=1 --lock waist=0", "'waist' is given 2 times"),
]

DENIED = [
    "view two_link --out x.pdf",
    "view two_link --out x.HTML.png",
    "tour two_link --out x.pdf",
    "generate two_link gravity_torques --out x.py",
    "generate two_link gravity_torques --out x.h --header",
    "generate two_link gravity_torques --out x.c --target python",
    "generate two_link gravity_torques --out x.py --target cuda",
    "generate two_link gravity_torques --out x.c --target wasm",
    "generate two_link gravity_torques --out x.c --target fmu",
    "generate two_link forward_dynamics --out x.py --target casadi",
    "identify two_link motion.csv --code x.py",
    "inverse two_link --trajectory motion.csv --out x.fmu",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "motion.csv").write_text(TABLE)
    return tmp_path


def test_options_without_effect_are_refused(capsys):
    for command, name in IGNORED:
        assert main(command.split()) == 2, command
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert f"{name} " in said, said


def test_names_that_deny_what_is_written_are_refused(capsys, folder):
    for command in DENIED:
        assert main(command.split()) == 2, command
        assert " is written as ." in capsys.readouterr().err, command
    assert [path.name for path in folder.iterdir()] == ["motion.csv"]


def test_the_usual_names_are_written(capsys, folder):
    for target, name in [
        ("c", "x.c"),
        ("c", "x.cc"),
        ("python", "x.py"),
        ("cuda", "x.cu"),
        ("wasm", "x.mjs"),
    ]:
        assert main(["generate", "two_link", "gravity_torques", "--target", target, "--out", name]) == 0
    assert main(["view", "two_link", "--out", "x.HTM"]) == 0
    assert {path.name for path in folder.iterdir()} >= {"x.c", "x.cc", "x.py", "x.cu", "x.mjs", "x.HTM"}


def test_a_simulated_table_lasts_as_long_as_it_says(capsys, folder):
    """Longer and shorter than the two seconds of a move."""
    for last in (0.5, 3.0):
        t = np.linspace(1.0, 1.0 + last, 20)
        rows = [f"{each},{0.1 * np.sin(each)},0" for each in t]
        (folder / "table.csv").write_text("\n".join(["t,q1,q2", *rows]))
        assert main(["simulate", "two_link", "--trajectory", "table.csv", "--out", "out.csv"]) == 0
        assert f"for {last:g} s" in capsys.readouterr().out


def test_closed_loops_along_a_table_for_every_robot(capsys, folder):
    """The documented command; tests/embedded compares the bits of what it writes."""
    for name in lw.robots():
        n = lw.load(name).dof
        t = np.linspace(0.0, 1.0, 72)
        columns = ["t", *(f"q{k + 1}" for k in range(n))]
        rows = np.column_stack([t, 0.1 * np.sin(np.outer(t, np.arange(1, n + 1)))])
        np.savetxt("table.csv", rows, delimiter=",", header=",".join(columns), comments="")
        command = ["generate", name, "closed_loop", "--trajectory", "table.csv", "--out", f"{name}.c"]
        assert main(command) == 0, (name, capsys.readouterr().err)
        assert f"{3 * n} further in every step" in (folder / f"{name}.c").read_text()
