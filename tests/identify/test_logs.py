"""Recordings from every kind of file arrive as the same numbers, and can be cut."""

import numpy as np
import pytest

from linkwise.identify import Layout, Log, LogError, Transmission, read_log

T = np.arange(50) / 100.0
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
QD = np.column_stack([np.cos(T), -2 * np.sin(2 * T)])
TAU = np.column_stack([3 * Q[:, 0], -Q[:, 1]])


def write(path, *columns, header=None, separator=","):
    np.savetxt(
        path, np.column_stack(columns), delimiter=separator, header=header or "", comments="", fmt="%.17g"
    )
    return path


def same(log: Log, *, velocities: bool) -> None:
    np.testing.assert_allclose(log.t, T, atol=1e-15)
    np.testing.assert_allclose(log.q, Q, atol=1e-15)
    np.testing.assert_allclose(log.tau, TAU, atol=1e-15)
    if velocities:
        np.testing.assert_allclose(log.qd, QD, atol=1e-15)
    else:
        assert log.qd is None


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_names_in_a_header(tmp_path, arm, separator):
    names = separator.join(["time", "q1", "q2", "dq1", "dq2", "tau1", "tau2"])
    same(
        read_log(write(tmp_path / "run.csv", T, Q, QD, TAU, header=names, separator=separator), arm),
        velocities=True,
    )


def test_columns_are_counted_where_there_is_no_header(tmp_path, arm):
    same(read_log(write(tmp_path / "run.csv", T, Q, TAU), arm), velocities=False)
    same(read_log(write(tmp_path / "run.txt", T, Q, QD, TAU, separator=" "), arm), velocities=True)


def test_names_of_joints_and_comments(tmp_path, arm):
    header = "# made by a controller\nt,position.joint1,position.joint2,effort.joint1,effort.joint2"
    same(read_log(write(tmp_path / "run.csv", T, Q, TAU, header=header), arm), velocities=False)


def test_a_layout_file(tmp_path, arm):
    header = "stamp_ms,a,b,va,vb,ia,ib,other"
    write(tmp_path / "run.csv", 1000 * T, np.degrees(Q), QD, TAU / [2.0, 4.0], T, header=header)
    (tmp_path / "layout.toml").write_text("""
[columns]
time = "stamp_ms"
position = ["a", "b"]
velocity = 4
current = [6, 7]
[units]
time = "ms"
position = "deg"
[drive]
gains = [2.0, 4.0]
""")
    log = read_log(tmp_path / "run.csv", arm, tmp_path / "layout.toml")
    same(log, velocities=True)
    assert any("gains" in note for note in log.notes)


def test_npz_arrays(tmp_path, arm):
    np.savez(tmp_path / "run.npz", times=T, positions=Q, velocities=QD, torques=TAU, comment="text")
    same(read_log(tmp_path / "run.npz", arm), velocities=True)


def test_parquet_columns_and_lists(tmp_path, arm):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    flat = {"t": T, "q1": Q[:, 0], "q2": Q[:, 1], "tau1": TAU[:, 0], "tau2": TAU[:, 1]}
    parquet.write_table(pyarrow.table(flat), tmp_path / "flat.parquet")
    same(read_log(tmp_path / "flat.parquet", arm), velocities=False)
    nested = {"time": T, "position": Q.tolist(), "velocity": QD.tolist(), "effort": TAU.tolist()}
    parquet.write_table(pyarrow.table(nested), tmp_path / "nested.parquet")
    same(read_log(tmp_path / "nested.parquet", arm), velocities=True)


def test_one_quantity_per_file_at_a_given_rate(tmp_path, arm):
    files = {
        "position": write(tmp_path / "q.txt", Q, separator=" "),
        "torque": write(tmp_path / "tau.txt", TAU, separator=" "),
    }
    same(read_log(files, arm, {"recording": {"rate": 100.0}}), velocities=False)
    (tmp_path / "layout.toml").write_text(
        '[recording]\nrate = 100.0\nfiles = { position = "q.txt", torque = "tau.txt" }\n'
    )
    same(read_log("unused", arm, tmp_path / "layout.toml"), velocities=False)


def test_a_file_with_one_quantity_says_how_files_are_joined(tmp_path, arm):
    for columns in (T, Q):
        path = write(tmp_path / "part.txt", columns, separator=" ")
        with pytest.raises(
            LogError, match=r"one quantity per file: give parts\.toml with \[recording\] and files = "
        ):
            read_log(path, arm)


def test_one_number_per_row_is_read_in_the_order_that_is_smooth(tmp_path, arm):
    """As loggers write whole arrays: samples after each other, or joints after each other."""
    orders = {"sample after sample": lambda x: x.reshape(-1), "joint after joint": lambda x: x.T.reshape(-1)}
    files = {"position": tmp_path / "q.txt", "torque": tmp_path / "tau.txt"}
    rate = {"recording": {"rate": 100.0}}
    for words, order in orders.items():
        for key, values in (("position", Q), ("torque", TAU)):
            np.savetxt(files[key], order(values), fmt="%.17g")
        log = read_log(files, arm, rate)
        same(log, velocities=False)
        assert f"position: one number per row, read {words}" in log.notes
        np.testing.assert_array_equal(read_log(files, arm, rate, rows=(3, 20)).q, log.q[2:20])
    np.savetxt(files["position"], np.arange(31.0))
    with pytest.raises(
        LogError, match=r"one number per row: 31 rows are no samples of 2 joints; give position"
    ):
        read_log(files, arm, rate)
    np.savetxt(files["position"], np.random.default_rng(0).normal(size=100))
    with pytest.raises(LogError, match="samples after each other are as smooth as joints"):
        read_log(files, arm, rate)


def test_motor_side_with_coupling(tmp_path, arm):
    R, offset = np.array([[50.0, 0.0], [30.0, -40.0]]), np.array([0.1, -0.2])
    motor = np.linalg.solve(R.T, TAU.T).T  # τ = Rᵀ τ_motor
    path = write(tmp_path / "run.csv", T, (Q - offset) @ R.T, QD @ R.T, motor)
    log = read_log(path, arm, {"drive": {"coupling": R.tolist(), "offset": offset.tolist()}})
    np.testing.assert_allclose(log.q, Q, atol=1e-13)
    np.testing.assert_allclose(log.qd, QD, atol=1e-13)
    np.testing.assert_allclose(log.tau, TAU, atol=1e-12)
    np.testing.assert_allclose(log.axes, [[-0.75, 1.0]])  # the second motor turns with q2 − ¾ q1


def test_power_is_the_same_on_both_sides():
    drive = Transmission.of(3, coupling=[[10, 0, 0], [0, 20, 0], [0, 5, -30]])
    rng = np.random.default_rng(0)
    speeds, torques = rng.normal(size=(2, 7, 3))
    joint = (drive.joint_velocities(speeds) * drive.joint_torques(torques)).sum(axis=1)
    np.testing.assert_allclose(joint, (speeds * torques).sum(axis=1), rtol=1e-12)


def test_rows_are_counted_from_one_as_in_an_editor(tmp_path, arm):
    path = write(tmp_path / "run.csv", T, Q, TAU)
    log = read_log(path, arm, rows=(11, 20))
    np.testing.assert_allclose(log.t, T[10:20])
    assert "rows 11 to 20 of 50" in log.notes
    cut = read_log(path, arm, {"recording": {"rows": [11, 20]}})
    np.testing.assert_array_equal(cut.q, log.q)


def test_cutting():
    log = Log(T, Q, TAU, QD)
    np.testing.assert_array_equal(log.trim(3, 4).t, T[3:-4])
    np.testing.assert_array_equal(log.trim(head=3).t, T[3:])
    np.testing.assert_array_equal(log.trim(tail=4).t, T[:-4])
    np.testing.assert_array_equal(log.between(0.1, 0.2).t, T[10:21])
    first, rest = log.split(0.7)
    assert (len(first), len(rest)) == (35, 15)
    np.testing.assert_array_equal(np.concatenate([first.qd, rest.qd]), QD)
    assert [len(part) for part in log.blocks(4)] == [12, 13, 12, 13]
    for wrong in (
        lambda: log.rows(0, 5),
        lambda: log.trim(30, 30),
        lambda: log.split(1.0),
        lambda: log.between(3, 4),
    ):
        with pytest.raises(LogError, match="log"):
            wrong()


def test_bad_rows_can_be_left_out(tmp_path, arm):
    t, q = T.copy(), Q.copy()
    t[20], q[30, 1] = t[19], np.nan
    log = read_log(write(tmp_path / "run.csv", t, q, TAU), arm, drop_bad_rows=True)
    np.testing.assert_array_equal(log.t, np.delete(T, [20, 30]))
    assert len([note for note in log.notes if "left out" in note]) == 2


def test_an_unknown_word_in_a_layout_is_named(arm):
    for section, key in (
        ("columns", "positon"),
        ("units", "torqe"),
        ("drive", "gain"),
        ("recording", "freq"),
    ):
        with pytest.raises(LogError, match=key):
            Layout.of({section: {key: "x"}})
    with pytest.raises(LogError, match="units"):
        Layout.of({"unit": {}})
    with pytest.raises(LogError, match="degrees"):
        Layout(units={"position": "degrees"})


def test_gaps_are_not_bridged(arm):
    whole = Log(np.arange(300) / 100.0, np.ones((300, 2)), np.ones((300, 2)), name="run")
    assert whole.pieces() == [whole]

    keep = np.r_[0:100, 103:200, 230:240, 260:300]  # three samples missing are interpolated, thirty are not
    parts = Log(whole.t[keep], whole.q[keep], whole.tau[keep], name="run").pieces()
    assert [part.name for part in parts] == ["run, part 1", "run, part 2"]
    assert [len(part) for part in parts] == [197, 40]
    assert "2 gaps in the recording, the longest of 0.31 s" in parts[0].notes[-1]

    slow = np.arange(60) * 0.1  # ten usual steps are a second here
    for missing, count in ((0.8, 1), (1.2, 2)):
        broken = np.r_[slow[:30], slow[30:] + missing]
        assert len(Log(broken, np.ones((60, 2)), np.ones((60, 2))).pieces()) == count

    pairs = np.sort(np.r_[0:100, 0.01 + np.arange(100)])
    with pytest.raises(LogError, match="run: 99 gaps, and no 20 samples in a row"):
        Log(pairs, np.ones((200, 2)), np.ones((200, 2)), name="run").pieces()
