"""inverse, forward, demo, and the tables they read and write."""

import inspect
import io
import re
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.parts import counting, demo_report, experiment
from linkwise.cli.parts.trajectories import quintic
from linkwise.files.tables import read_states


def table(text: str) -> np.ndarray:
    return np.genfromtxt(io.StringIO(text), delimiter=",", names=True)


def stacked(data: np.ndarray, quantity: str, n: int) -> np.ndarray:
    return np.stack([np.atleast_1d(data[f"{quantity}{k}"]) for k in range(1, n + 1)], axis=-1)


# -- quintic -----------------------------------------------------------------------------------------------------------


def test_a_quintic_is_at_rest_at_both_ends_and_its_own_derivative():
    start, end = np.array([0.3, -1.0]), np.array([-2.0, 0.5])
    motion = quintic(start, end, 4.0, 4001)
    np.testing.assert_array_equal(motion.q[0], start)
    np.testing.assert_allclose(motion.q[-1], end, rtol=1e-15)
    for rate in (motion.qd, motion.qdd):
        assert np.abs(rate[[0, -1]]).max() == 0.0
    step = 4.0 / 4000
    np.testing.assert_allclose(np.gradient(motion.q, step, axis=0)[1:-1], motion.qd[1:-1], atol=1e-6)
    np.testing.assert_allclose(np.gradient(motion.qd, step, axis=0)[1:-1], motion.qdd[1:-1], atol=1e-6)
    same = lw.motion.quintic(start, end, 4.0).at(motion.t)
    for ours, theirs in zip((motion.q, motion.qd, motion.qdd), same, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("duration", "points"), [(0.0, 5), (-1.0, 5), (float("nan"), 5), (1.0, 1)])
def test_a_quintic_needs_time_and_points(duration, points):
    with pytest.raises(ValueError, match=r"duration|points"):
        quintic([0.0], [1.0], duration, points)


# -- inverse and forward -----------------------------------------------------------------------------------------------


def test_inverse_along_a_quintic(linkwise):
    ran = linkwise(
        "inverse",
        "puma560",
        "--trajectory",
        "quintic",
        "--to",
        "90,-45,45,0,30,0",
        "--degrees",
        "--points",
        "5",
    )
    motion = quintic(np.zeros(6), np.radians([90, -45, 45, 0, 30, 0]), 2.0, 5)
    tau = lw.load("puma560").inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_array_equal(stacked(table(ran.out), "tau", 6), tau)


def test_the_shortest_time_along_the_path_of_a_quintic(linkwise, tmp_path):
    """The timing of the motion is replaced, its ends are not; torques stay within the limits of the file."""
    arm = lw.load("two_link")
    ends = ("--trajectory", "quintic", "--to", "0.4,-0.3", "--points", "41", "--time-optimal")
    ran = linkwise(
        "inverse", "two_link", *ends, "--acceleration", "5", "--states", "--out", tmp_path / "fast.csv"
    )
    assert (ran.status, ran.err) == (0, "")
    found = table((tmp_path / "fast.csv").read_text())
    expected = lw.motion.time_optimal(arm, [[0.0, 0.0], [0.4, -0.3]], acceleration=5.0)
    assert found["t"][-1] == pytest.approx(expected.duration, rel=1e-2)
    np.testing.assert_allclose(stacked(found, "q", 2)[[0, -1]], [[0, 0], [0.4, -0.3]], atol=1e-9)
    assert np.abs(stacked(found, "qdd", 2)).max() <= 5.0
    ran = linkwise("inverse", "two_link", *ends[:4], "--jerk", "5")
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert "--time-optimal" in ran.err


def test_limits_that_a_motion_breaks_are_told(linkwise, tmp_path):
    ends = ("--from", "0,0,0,-1,0,1,0", "--to", "3,0,0,-1,0,1,0")
    ran = linkwise("inverse", "panda", "--trajectory", "quintic", *ends, "--out", tmp_path / "torques.csv")
    assert (ran.status, ran.err) == (0, "")
    told = [line for line in ran.out.splitlines() if "beyond" in line]
    assert len(told) == 2, told
    assert told[0].startswith("panda_joint1: position beyond its limits -2.8973 … 2.8973, first at t = 1.")
    assert told[0].endswith("worst 3")
    assert "panda_joint1: velocity beyond its limits -2.175 … 2.175" in told[1]


def test_degrees_are_for_joints_that_turn(linkwise):
    ran = linkwise(
        "inverse",
        "stanford",
        "--trajectory",
        "quintic",
        "--to",
        "90,0,0.3,0,0,0",
        "--degrees",
        "--points",
        "3",
        "--states",
    )
    assert stacked(table(ran.out), "q", 6)[-1].tolist() == [np.pi / 2, 0, 0.3, 0, 0, 0]


@pytest.mark.parametrize("algorithm", ["kalman", "compound_link", "conjugate_gradient"])
def test_forward_returns_the_accelerations_of_inverse(linkwise, tmp_path, algorithm):
    states = tmp_path / "states.csv"
    ran = linkwise(
        "inverse",
        "puma560",
        "--trajectory",
        "quintic",
        "--to",
        "1,-1,1,0,1,0",
        "--points",
        "9",
        "--states",
        "--out",
        states,
    )
    assert "waist" in ran.out
    assert "9 points written" in ran.out
    ran = linkwise("forward", "puma560", "--torques", states, "--algorithm", algorithm)
    wanted = stacked(table(states.read_text()), "qdd", 6)
    np.testing.assert_allclose(stacked(table(ran.out), "qdd", 6), wanted, atol=1e-9)


def test_forward_reads_standard_input(linkwise, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("0.1,0.2,0,0,1,2\n"))
    ran = linkwise("forward", "two_link", "--torques", "-")
    qdd = lw.load("two_link").forward_dynamics([0.1, 0.2], [0.0, 0.0], [1.0, 2.0])
    assert stacked(table(ran.out), "qdd", 2)[0].tolist() == qdd.tolist()


def test_json_has_the_columns(linkwise, tmp_path):
    facts = linkwise(
        "inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--points", "3", "--json"
    ).json
    assert set(facts["columns"]) == {"t", "tau1", "tau2"}
    out = tmp_path / "a.csv"
    facts = linkwise(
        "forward", "two_link", "--torques", _file(tmp_path, "0,0,0,0,0,0"), "--out", out, "--json"
    ).json
    assert facts["out"] == str(out)
    assert out.exists()


def test_friction_can_be_left_out(linkwise, tmp_path):
    path = _file(tmp_path, ",".join(["0"] * 6 + ["1"] * 6 + ["0"] * 6))
    with_friction, without = (
        stacked(table(linkwise("inverse", "puma560", "--trajectory", path, *extra).out), "tau", 6)
        for extra in ([], ["--no-friction"])
    )
    assert (with_friction > without).all()


def _file(folder, text: str) -> str:
    path = folder / "table.csv"
    path.write_text(text)
    return str(path)


# -- tables ------------------------------------------------------------------------------------------------------------

STATE = "0.1,0.2,0.3,0.4,0.5,0.6"


@pytest.mark.parametrize(
    "text",
    [
        STATE,
        "7," + STATE,
        "# a comment\n\n" + STATE + "\n",
        STATE.replace(",", " "),
        STATE.replace(",", "\t"),
        STATE.replace(",", ";"),
        "\ufeffq1,q2,qd1,qd2,qdd1,qdd2\n" + STATE,
        '"q1","q2","qd1","qd2","qdd1","qdd2"\n' + STATE,
        "qdd2,qdd1,qd2,qd1,q2,q1,other\n" + "0.6,0.5,0.4,0.3,0.2,0.1,9",
        "t,q.shoulder,q.elbow,qd.shoulder,qd.elbow,qdd.shoulder,qdd.elbow\n7," + STATE,
    ],
)
def test_tables_in_many_forms(tmp_path, text):
    t, found = read_states(_file(tmp_path, text), ("q", "qd", "qdd"), ("shoulder", "elbow"))
    assert t is None or t.tolist() == [7.0]
    assert {name: values.tolist() for name, values in found.items()} == {
        "q": [[0.1, 0.2]],
        "qd": [[0.3, 0.4]],
        "qdd": [[0.5, 0.6]],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no numbers"),
        ("q1,q2,qd1,qd2,qdd1,qdd2\n", "a header and no rows"),
        ("1,2,3", "expected 6 columns"),
        (STATE + "\n1,2", "line 2: expected 6 columns, got 2"),
        (STATE + "\n1,2,3,4,5,x", "line 2: column 6: expected a number, got 'x'"),
        ("q1,q2,qd1,qd2\n1,2,3,4", "no columns of acceleration for 2 joints (qdd1 …, or qdd.joint1 …)"),
        ("q1,q2,qd1,qd2,qdd1,qdd2,q1\n1,2,3,4,5,6,7", "columns 1 and 7 are both called 'q1'"),
        ("\0\1\2\n\3", "not a text file"),
    ],
)
def test_wrong_tables_are_one_line(linkwise, tmp_path, text, expected):
    path = tmp_path / "wrong.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    robot = tmp_path / "arm.urdf"
    lw.save(lw.planar_chain(2), robot)
    message = linkwise("inverse", robot, "--trajectory", path).refused()
    assert expected in message
    assert "wrong.csv" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--trajectory", "missing.csv"], "missing.csv: no such file"),
        (["--trajectory", "quintic"], "needs --to"),
        (["--trajectory", "quintic", "--to", "1"], "--to: expected 2 numbers"),
        (["--trajectory", "quintic", "--to", "1,1", "--from", "1"], "--from: expected 2 numbers"),
        (["--trajectory", "quintic", "--to", "1,1", "--duration", "0"], "duration"),
        (["--trajectory", "quintic", "--to", "1,1", "--points", "1"], "points"),
        (["--trajectory", "x.csv", "--to", "1,1"], "belongs to --trajectory quintic"),
        (
            ["--trajectory", "quintic", "--to", "1,1", "--algorithm", "newton_eulr"],
            "did you mean 'newton_euler'?",
        ),
        (["--trajectory", "quintic", "--to", "1,1", "--out", "."], "a folder; expected the name of a file"),
        (["--trajectory", "quintic", "--to", "1,1", "--out", "no/such/folder.csv"], "no such folder as"),
    ],
)
def test_wrong_options_of_inverse(linkwise, options, expected):
    assert expected in linkwise("inverse", "two_link", *options).refused()


# -- demo --------------------------------------------------------------------------------------------------------------


def test_demo(linkwise, tmp_path, monkeypatch):
    """Tables, plots and a page; the same numbers as JSON, without computing them twice."""
    kept = []
    for module, name in ((experiment, "run"), (counting, "rows"), (demo_report, "write")):
        monkeypatch.setattr(module, name, remembered(getattr(module, name), kept))
    folder = tmp_path / "results"
    ran = linkwise("demo", "--out", folder)
    for words in ("Kozłowski 1990", "523/432 Kozłowski", "conjugate_gradient", "torques.csv", "report.html"):
        assert words in ran.out
    assert (folder / "figures" / "torques.svg").read_text().startswith("<svg")
    assert len(kept) == 3
    ran = linkwise("demo", "--out", folder, "--json")
    assert len(kept) == 3
    assert ran.status == 0
    facts = ran.json
    assert facts["points"] == 300
    for judged in facts["algorithms"]:
        assert judged["relative_difference"] <= 1e-9
        assert judged["residual"] is None or judged["residual"] <= 1e-11
    data = table((folder / "torques.csv").read_text())
    robot = lw.load("puma560")
    q, qd, qdd, tau = (stacked(data, name, 6) for name in ("q", "qd", "qdd", "tau"))
    np.testing.assert_array_equal(robot.inverse_dynamics(q, qd, qdd, friction=False), tau)
    np.testing.assert_allclose(np.degrees(q[0]), [-150, -220, -240, -130, -90, -150])
    np.testing.assert_allclose(np.degrees(q[-1]), [150, 40, 70, 130, 90, 150])
    assert data["t"][-1] == 4.0


def remembered(function, kept: list):
    """The function, which gives its first result again; generators give lists."""
    results = []

    def call(*arguments, **options):
        if not results:
            found = function(*arguments, **options)
            results.append(list(found) if inspect.isgenerator(found) else found)
            kept.append(function.__name__)
        return results[0]

    return call


def test_figures_of_a_report_are_files(linkwise, tmp_path):
    ran = linkwise(
        "inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--figures", tmp_path / "plots"
    )
    assert ran.status == 0
    assert f"figures written to {tmp_path / 'plots'}" in ran.out
    assert {"positions.svg", "torques.svg", "robot.svg"} <= {
        path.name for path in (tmp_path / "plots").iterdir()
    }


def test_a_simulation_has_a_page_too(linkwise, tmp_path):
    more = (
        "--duration",
        0.2,
        "--step",
        0.002,
        "--report",
        tmp_path / "run.html",
        "--figures",
        tmp_path / "plots",
    )
    ran = linkwise("simulate", "two_link", "--to", "0.3,0.2", *more)
    assert ran.status == 0
    assert f"report written to {tmp_path / 'run.html'}" in ran.out
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "linkwise simulate two_link" in page
    titles = re.findall(r"<h2>([^<]*)</h2>", page)  # what is wanted first, how it was run last
    assert titles == ["Tracking", "Torques", "Motion", "two_link", "How it was run"]
    assert (tmp_path / "plots" / "tracking_computed_torque.svg").is_file()


def test_robots_are_completed(monkeypatch, capsys):
    from linkwise.cli.app import linkwise as group

    monkeypatch.setenv("COMP_WORDS", "linkwise info pu")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_LINKWISE_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit):
        group.main([], prog_name="linkwise")
    assert capsys.readouterr().out.split() == ["plain,puma260", "plain,puma560", "plain,puma_valera"]
