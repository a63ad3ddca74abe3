"""Recordings as other programs write them: their names of columns, lists in cells, rows that are broken."""

import numpy as np
import pytest

from linkwise.files.tables.naming import plain
from linkwise.identify import LogError, read_log
from linkwise.identify.recordings.rows import forward

T = np.arange(60) / 100.0
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
QD = np.column_stack([np.cos(T), -2 * np.sin(2 * T)])
TAU = np.column_stack([3 * Q[:, 0], -Q[:, 1]])
SECONDS = 1_700_000_000 + np.floor(T + 0.5).astype(int)
NANOSECONDS = np.round((T + 0.5 - np.floor(T + 0.5)) * 1e9).astype(int)
EPOCH = [f"{s}{n:09d}" for s, n in zip(SECONDS, NANOSECONDS, strict=True)]


def table(path, columns, separator=",", head=""):
    """A text with a column for every name; texts and numbers as they are."""
    rows = zip(
        *([str(v) if isinstance(v, str) else repr(float(v)) for v in c] for c in columns.values()),
        strict=True,
    )
    path.write_text(
        head + "\n".join([separator.join(columns), *(separator.join(row) for row in rows)]) + "\n"
    )
    return path


def both(pattern, values, start=1):
    return {pattern.format(k + start, joint=f"joint{k + 1}"): column for k, column in enumerate(values.T)}


def other(*names):
    return {name: np.full(len(T), 7.0) for name in names}


NAMED = {
    "PlotJuggler": {"__time": T + 0.003 * np.sin(T), "/joint_states/header/stamp": T}
    | both("/joint_states/{joint}/position", Q)
    | both("/joint_states/{joint}/velocity", QD)
    | both("/joint_states/{joint}/effort", TAU)
    | other("/joint_states/finger/position", "/joint_states/finger/effort", "/tf/x"),
    "PlotJuggler, arrays": {"__time": T}
    | both("/joint_states/position[{}]", Q, 0)
    | both("/joint_states/velocity.{}", QD, 0)
    | both("/joint_states/effort[{}]", TAU, 0),
    "RTDE": {"timestamp": T}
    | both("target_q_{}", 2 * Q, 0)
    | both("actual_q_{}", Q, 0)
    | both("target_qd_{}", 2 * QD, 0)
    | both("actual_qd_{}", QD, 0)
    | both("actual_TCP_speed_{}", 3 * QD, 0)
    | both("target_moment_{}", TAU, 0)
    | both("actual_current_{}", 9 * TAU, 0),
    "libfranka": {"time": T}
    | both("state.q[{}]", Q, 0)
    | both("state.q_d[{}]", 2 * Q, 0)
    | both("state.dq[{}]", QD, 0)
    | both("state.tau_J[{}]", TAU, 0)
    | both("state.tau_J_d[{}]", 2 * TAU, 0)
    | both("cmd.tau_J_d[{}]", 2 * TAU, 0),
    "tau_J_0": {"time": T} | both("q_{}", Q, 0) | both("dq_{}", QD, 0) | both("tau_J_{}", TAU, 0),
    "q.0": {"t": T} | both("q.{}", Q, 0) | both("qd.{}", QD, 0) | both("tau.{}", TAU, 0),
    "sec and nanosec": {"sec": SECONDS, "nanosec": NANOSECONDS}
    | both("q{}", Q)
    | both("qd{}", QD)
    | both("tau{}", TAU),
    "stamps of messages": {"time": 3 * T, "header.stamp.secs": SECONDS, "header.stamp.nsecs": NANOSECONDS}
    | both("{joint}.position", Q)
    | both("{joint}.velocity", QD)
    | both("{joint}.effort", TAU),
    "rostopic echo -p": {"%time": EPOCH, "field.header.stamp": EPOCH}
    | {"field.name0": ["joint2"] * 60, "field.name1": ["gripper"] * 60, "field.name2": ["joint1"] * 60}
    | {"field.position0": Q[:, 1], "field.position1": 0 * T, "field.position2": Q[:, 0]}
    | {"field.velocity0": QD[:, 1], "field.velocity1": 0 * T, "field.velocity2": QD[:, 0]}
    | {"field.effort0": TAU[:, 1], "field.effort1": 0 * T, "field.effort2": TAU[:, 0]},
    "words in capitals": {"Time": T}
    | both("measuredPosition[{}]", Q, 0)
    | both("measuredVelocity[{}]", QD, 0)
    | both("commandedTorque[{}]", 2 * TAU, 0)
    | both("measuredTorque[{}]", TAU, 0),
    "joints by number": {"t": T} | both("J{}_pos", Q) | both("J{}_vel", QD) | both("J{}_torque", TAU),
}


def same(log, atol=1e-6):
    np.testing.assert_allclose(log.t - log.t[0], T, atol=atol)
    for found, true in ((log.q, Q), (log.qd, QD), (log.tau, TAU)):
        np.testing.assert_allclose(found, true, atol=1e-9)


@pytest.mark.parametrize("name", NAMED)
def test_names_of_other_programs(tmp_path, arm, name):
    log = read_log(table(tmp_path / "run.csv", NAMED[name]), arm)
    same(log)
    said = " ".join(log.notes)
    assert ("1 other joints were left out: finger" in said) == (name == "PlotJuggler")
    assert ("a controller computed and nobody measured" in said) == (name == "RTDE")


def test_currents_are_used_where_their_gains_are_known(tmp_path, arm):
    log = read_log(table(tmp_path / "run.csv", NAMED["RTDE"]), arm, {"drive": {"gains": [1 / 9, 1 / 9]}})
    same(log)
    assert not any("computed" in note for note in log.notes)


def test_a_choice_among_several_topics(tmp_path, arm):
    columns = {"t": T} | both("/left/{joint}/position", Q) | both("/right/{joint}/position", 5 * Q)
    columns |= both("/left/{joint}/effort", TAU) | both("/right/{joint}/effort", 5 * TAU)
    path = table(tmp_path / "run.csv", columns)
    with pytest.raises(
        LogError, match=r"/left/joint1/position, /right/joint1/position; choose one by its topic"
    ):
        read_log(path, arm)
    np.testing.assert_allclose(
        read_log(path, arm, {"recording": {"topic": "/right"}}).tau, 5 * TAU, rtol=1e-9
    )


LISTS = {
    "quoted": ('"[{}, {}]"', ","),
    "beside semicolons": ("[{}, {}]", ";"),
    "of NumPy": ('"[{}  {}]"', ","),
    "of Python": ("\"array('d', [{}, {}])\"", ","),
    "tuples": ('"({}, {})"', ","),
}


@pytest.mark.parametrize("name", LISTS)
def test_cells_that_hold_lists(tmp_path, arm, name):
    form, separator = LISTS[name]
    cells = [[form.format(*row) for row in part.tolist()] for part in (Q, QD, TAU)]
    columns = dict(
        zip(("time", "position", "velocity", "effort"), ([repr(float(t)) for t in T], *cells), strict=True)
    )
    same(read_log(table(tmp_path / "run.csv", columns, separator), arm))
    if separator == ",":
        names = {"time": columns["time"], "name": ["\"['joint2', 'joint1']\""] * 60}
        swapped = table(tmp_path / "named.csv", names | columns)
        log = read_log(swapped, arm)
        np.testing.assert_allclose(log.q, Q[:, ::-1], atol=1e-9)


def test_decimal_commas_beside_texts(tmp_path, arm):
    columns = {"t": T, "state": ["a.b"] * 60} | both("q{}", Q) | both("tau{}", TAU)
    path = table(tmp_path / "run.csv", columns, ";")
    path.write_text(path.read_text().replace(".", ",").replace("a,b", "a.b"))
    np.testing.assert_allclose(read_log(path, arm).q, Q, atol=1e-9)


@pytest.mark.parametrize(
    "form", ["2024-05-06 10:59:{:02d}.{:02d}", "2024-05-06T10:59:{:02d}.{:02d}+02:00", "9:59:{:02d}.{:02d}"]
)
def test_dates_and_times_of_day(tmp_path, arm, form):
    stamps = [form.format(*divmod(50 * k, 100)) for k in range(60)]
    columns = {"time": stamps} | both("q{}", Q) | both("tau{}", TAU)
    for separator in ",;":
        log = read_log(table(tmp_path / "run.csv", columns, separator), arm)
        np.testing.assert_allclose(log.t - log.t[0], 0.5 * np.arange(60), atol=1e-6)


def test_joint_states_without_a_header(tmp_path, arm):
    """As ``ros2 topic echo --csv`` writes them."""
    rows = zip(SECONDS, NANOSECONDS, Q, QD, TAU, strict=True)
    lines = [
        ",".join(
            [str(s), str(n), "", "joint2", "joint1", *(repr(float(v)) for x in (q, qd, tau) for v in x[::-1])]
        )
        for s, n, q, qd, tau in rows
    ]
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    same(read_log(tmp_path / "run.csv", arm))


def test_names_in_a_comment(tmp_path, arm):
    np.savetxt(tmp_path / "run.csv", np.column_stack([TAU, Q, T]), delimiter=",", header="tau1,tau2,q1,q2,t")
    np.testing.assert_allclose(read_log(tmp_path / "run.csv", arm).q, Q, atol=1e-9)
    np.savetxt(tmp_path / "plain.csv", np.column_stack([T, Q, TAU]), delimiter=",", header="a,b,c,d,e")
    np.testing.assert_allclose(read_log(tmp_path / "plain.csv", arm).q, Q, atol=1e-9)


# -- rows that are broken ---------------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    """A text in which rows 5, 21, 31, 40 and 60 are broken in different ways; and those that are whole."""
    path = table(tmp_path / "run.csv", {"t": T} | both("q{}", Q) | both("tau{}", TAU))
    lines = path.read_text().splitlines()
    lines[5] = lines[5].replace(lines[5].split(",")[2], "oops")
    lines[21] = "1e153" + lines[21][lines[21].index(",") :]
    lines[31] = "0.05" + lines[31][lines[31].index(",") :]
    lines[40] = "\0\0\0\0"
    lines[60] = lines[60][: len(lines[60]) // 2].rsplit(",", 1)[0]
    path.write_text("\n".join(lines))
    return path, np.delete(np.arange(60), [4, 20, 30, 39, 59])


def test_broken_rows_are_left_out_and_counted(broken, arm):
    path, whole = broken
    log = read_log(path, arm, drop_bad_rows=True)
    np.testing.assert_allclose(log.q, Q[whole], atol=1e-9)
    assert [note for note in log.notes if "left out" in note] == [
        "2 rows with more or fewer cells than others left out",
        "2 rows with numbers that are missing or not finite left out",
        "1 row whose time stamps did not go forward or were far off left out",
    ]


def test_only_rows_that_are_used_are_checked(broken, arm):
    path, _ = broken
    np.testing.assert_allclose(read_log(path, arm, rows=(6, 20)).q, Q[5:20], atol=1e-9)
    reasons = {
        (1, 20): "line 6: column 3: expected a number, got 'oops'; --drop-bad-rows",
        (6, 30): "line 22: column 1 .* is 1e.153, which is too large to be meant",
        (22, 39): "line 32: the time stamp 0.05 is earlier than the one before",
        (32, 50): "not a text file .control characters in line 41",
        (41, 60): "line 61: expected 5 columns, got [23] .the file ends in the middle of a row",
    }
    for rows, reason in reasons.items():
        with pytest.raises(LogError, match=reason):
            read_log(path, arm, rows=rows)
    with pytest.raises(LogError, match="rows 40 to 61: the recording has rows 1 to 60"):
        read_log(path, arm, rows=(40, 61))


def test_a_stamp_far_ahead_costs_one_row_and_not_the_rest():
    stamps = T.copy()
    stamps[[0, 10, 11, 30]] = [-1e9, 1e12, 1e11, 5.0]
    kept = forward(stamps)
    np.testing.assert_array_equal(kept, np.delete(np.arange(60), [0, 10, 11, 30]))
    np.testing.assert_array_equal(forward(T), np.arange(60))
    np.testing.assert_array_equal(forward(np.array([0.0, 1.0, 1.0, 2.0])), [0, 1, 3])


def test_names_are_compared_by_their_words():
    assert plain("/joint_states/Panda-Joint1/position [rad]") == "joint_states_panda_joint1_position"


def test_units_of_arrays(arm, tmp_path):
    """In the name of an array with a column per joint, and beside it in an HDF5 file."""
    torques = np.column_stack([np.arange(60.0), -np.arange(60.0)])
    np.savez(tmp_path / "run.npz", t_ms=1e3 * T, q_deg=np.degrees(Q), tau=torques)
    read = read_log(tmp_path / "run.npz", arm)
    np.testing.assert_allclose(read.q, Q, atol=1e-9)
    np.testing.assert_allclose(read.t, T, atol=1e-9)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["run/t"], file["run/q"], file["run/tau"] = T, np.degrees(Q), 1e3 * torques
        file["run/q"].attrs["unit"], file["run/tau"].attrs["units"] = "deg", np.bytes_("mNm")
    read = read_log(tmp_path / "run.h5", arm)
    np.testing.assert_allclose(read.q, Q, atol=1e-9)
    np.testing.assert_allclose(read.tau, torques, atol=1e-9)


def test_names_of_what_was_measured_and_of_dates(arm, tmp_path):
    rows = [
        f"2024-03-01T23:59:{t:09.6f},{q[0]},{q[1]},{k},{-k}"
        for k, (t, q) in enumerate(zip(T, Q, strict=True))
    ]
    head = "datetime,qpos1,qpos2,tau_meas1,tau_meas2"
    (tmp_path / "run.csv").write_text("\n".join([head, *rows]))
    read = read_log(tmp_path / "run.csv", arm)
    np.testing.assert_allclose(read.t - read.t[0], T - T[0], atol=1e-6)
    np.testing.assert_array_equal(read.tau[:, 0], np.arange(60.0))
