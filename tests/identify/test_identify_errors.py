"""Malformed recordings: one line that names the file, the place and the reason. Doubtful ones: a warning that says
why.
"""

import warnings

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.errors import UnknownNameError
from linkwise.identify import IdentificationWarning, Log, LogError, Stages, identify, read_log

T = np.arange(30) / 100.0
Q = np.column_stack([np.sin(T), np.cos(T)])
ROWS = [f"{t:.3f},{a:.6f},{b:.6f},{3 * a:.6f},{b:.6f}" for t, (a, b) in zip(T, Q, strict=True)]
HEADER = "t,q1,q2,tau1,tau2"


def edited(number: int, line: str) -> str:
    """The recording with one line (from 1, the header is line 1) replaced."""
    lines = [HEADER, *ROWS]
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def row(number: int, **cells: str) -> str:
    values = dict(zip(HEADER.split(","), ROWS[number - 2].split(","), strict=True))
    return edited(number, ",".join((values | cells).values()))


MALFORMED = {
    "truncated at the end": (edited(31, "0.290,0.28"), "line 31", "expected 5 columns, got 2"),
    "short row": (edited(7, "0.05,1,2,3"), "line 7", "expected 5 columns, got 4"),
    "long row": (edited(7, "0.05,1,2,3,4,5"), "line 7", "expected 5 columns, got 6"),
    "a word": (row(9, q2="fast"), "line 9", "'fast'"),
    "an empty cell": (row(9, q2=""), "line 9", "empty cell"),
    "NaN": (row(12, tau1="nan"), "line 12", "tau1"),
    "infinity": (row(12, tau1="inf"), "line 12", "tau1"),
    "repeated stamp": (row(15, t="0.120"), "line 15", "repeats"),
    "backward stamp": (row(15, t="0.05"), "line 15", "earlier"),
    "empty file": ("", "run.csv", "empty"),
    "header alone": (HEADER + "\n", "run.csv", "no rows"),
    "no torques": ("\n".join([HEADER.replace("tau", "x"), *ROWS]), "run.csv", "torque"),
    "no positions": ("\n".join([HEADER.replace("q", "x"), *ROWS]), "run.csv", "position"),
    "no time": ("\n".join([HEADER.replace("t,", "x,", 1), *ROWS]), "run.csv", "time"),
    "currents": ("\n".join([HEADER.replace("tau", "i"), *ROWS]), "run.csv", "gains"),
    "columns of another robot": ("\n".join(f"{line},1,2,3" for line in ROWS), "run.csv", "8 columns"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path, arm, name):
    text, *expected = MALFORMED[name]
    (tmp_path / "run.csv").write_text(text)
    with pytest.raises(LogError) as caught:
        read_log(tmp_path / "run.csv", arm)
    message = str(caught.value)
    assert "\n" not in message
    assert "run.csv" in message
    for words in expected:
        assert words in message


def test_files_that_are_no_tables(tmp_path, arm):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    (tmp_path / "run.npz").write_bytes(b"PK nothing")
    for name in ("picture.csv", "run.npz", "missing.csv"):
        with pytest.raises(LogError, match=name):
            read_log(tmp_path / name, arm)


@pytest.mark.parametrize(
    ("columns", "unit"),
    [
        ((T, np.degrees(3 * Q), Q), "deg"),
        ((1000 * T, Q, Q), "ms"),
        ((1e9 * T, Q, Q), "ns"),
    ],
)
def test_unit_mistakes(tmp_path, columns, unit):
    robot = lw.load("two_link")
    np.savetxt(tmp_path / "run.csv", np.column_stack(columns), delimiter=",")
    with pytest.raises(LogError, match=rf"run\.csv.*look like {unit}"):
        read_log(tmp_path / "run.csv", robot)
    quantity = "time" if unit != "deg" else "position"
    read_log(tmp_path / "run.csv", robot, {"units": {quantity: unit}})  # said so, it is fine


def test_millimetres_and_wrong_velocities(tmp_path):
    t = np.arange(100) / 100.0
    stanford = lw.load("stanford")  # joint 3 slides, up to some decimetres
    limit = max(abs(stanford.moving_joints[2].limits.lower), abs(stanford.moving_joints[2].limits.upper))
    q = 0.2 * np.sin(np.outer(3 * t, np.arange(1, 7)))
    q[:, 2] = 0.5 * (limit if np.isfinite(limit) else 0.5) + 0.1 * np.sin(t)
    good = Log(t, q, q, np.gradient(q, t, axis=0))

    def check(log: Log) -> None:
        from linkwise.identify import Layout
        from linkwise.identify.recordings.units import check

        check(log, stanford, Layout(), "run.csv")

    check(good)
    if np.isfinite(limit):
        far = q.copy()
        far[:, 2] *= 1000
        with pytest.raises(LogError, match="look like mm"):
            check(Log(t, far, q))
    with pytest.raises(LogError, match="look like deg/s"):
        check(Log(t, q, q, np.degrees(good.qd)))
    with pytest.raises(LogError, match="opposite sign"):
        check(Log(t, q, q, -good.qd))


def test_newton_millimetres(tmp_path, truth):
    t, q, qd, qdd = motion(1)
    tau = truth.inverse_dynamics(q, qd, qdd)
    np.savetxt(tmp_path / "run.csv", np.column_stack([t, q, 1000 * tau]), delimiter=",")
    with pytest.raises(LogError, match="N·mm"):
        read_log(tmp_path / "run.csv", truth)
    log = read_log(tmp_path / "run.csv", truth, {"units": {"torque": "Nmm"}})
    np.testing.assert_allclose(log.tau, tau, rtol=1e-12)


def test_arrays_that_do_not_fit():
    with pytest.raises(LogError, match="tau"):
        Log(T, Q, Q[:-1])
    with pytest.raises(LogError, match="increase"):
        Log(T[::-1], Q, Q)
    with pytest.raises(LogError, match="finite"):
        Log(T, Q * np.nan, Q)
    with pytest.raises(LogError, match="sensed"):
        Log(T, Q, Q, sensed="both")


def test_another_robots_log_is_refused(record):
    with pytest.raises(LogError, match="2 joints; puma560 has 6"):
        identify(lw.load("puma560"), record())


def test_torques_that_were_not_recorded(arm, record):
    log = record()
    with pytest.raises(LogError, match="run1: all torques are zero"):
        identify(arm, Log(log.t, log.q, 0 * log.tau, name="run1"))


def test_unknown_names_list_the_known(arm, record):
    for option in ("friction", "estimator", "significance", "derivatives"):
        with pytest.raises(UnknownNameError, match=option):
            identify(arm, record(seconds=5.0), **{option: "nonsense"})


def test_joints_without_a_torque_of_their_own_are_refused():
    """Held frames carry forces that nobody measured, and followers have no torque; the remedies work."""
    chain, rng = lw.planar_chain(3), np.random.default_rng(1)
    held = chain.with_constraints([lw.Point(chain.default_frame(), (0.5, 0.2, 0.0))])
    follows = chain.with_constraints([lw.Coupling("joint3", "joint2", -0.5)])
    for robot, words in (
        (held, "forces of the constraints"),
        (follows, "'joint3' of .* follows another joint"),
    ):
        t = np.arange(50) / 100.0
        log = Log(t, *rng.normal(size=(2, 50, robot.dof)))
        for call in (
            lambda robot=robot, log=log: identify(robot, log),
            lambda robot=robot, log=log: lw.identify.didim(robot, log),
            lambda robot=robot: lw.identify.excite(robot),
        ):
            with pytest.raises(lw.ModelError, match=words):
                call()
    alone = follows.lock({"joint2": 0.3})
    assert len(alone.moving_joints) == alone.dof == 1


def test_a_wrong_robot_is_said_plainly(arm, record):
    log = record(noise=0.01)
    strange = np.random.default_rng(0).normal(size=log.tau.shape)
    with pytest.warns(IdentificationWarning, match="explains no joint better than the mean"):
        found = identify(arm, Log(log.t, log.q, strange), friction="coulomb")
    assert any("another robot" in words for words in found.warnings)


def test_torques_of_the_opposite_sign(arm, record):
    log = record(noise=0.01)
    with pytest.warns(IdentificationWarning, match="torques of joint2 look counted in the opposite"):
        identify(arm, Log(log.t, log.q, log.tau * [1.0, -1.0]), friction="coulomb")
    with pytest.warns(IdentificationWarning, match="torques of all joints look counted in the opposite"):
        identify(arm, Log(log.t, log.q, -log.tau), friction="coulomb")


def test_swapped_columns_of_one_joint_are_named(arm, record):
    log = record(noise=0.01)
    tau = log.tau.copy()
    tau[:, 1] = np.random.default_rng(0).normal(size=len(tau))
    with pytest.warns(IdentificationWarning, match="does not explain joint2"):
        identify(arm, Log(log.t, log.q, tau), friction="coulomb")


def identified_when(arm, truth, second_joint):
    """Identification of a run whose second joint moves as told, and all warnings in one."""
    t, q, qd, qdd = motion(1)
    for x, given in zip((q, qd, qdd), second_joint(t), strict=True):
        x[:, 1] = given
    with pytest.warns(IdentificationWarning, match="too little excitation") as caught:
        found = identify(arm, Log(t, q, truth.inverse_dynamics(q, qd, qdd)), friction="coulomb")
    assert not found.excitation.complete
    return " ".join(str(one.message) for one in caught)


def test_a_joint_that_stands_still_says_nothing_of_its_drive(arm, truth):
    words = identified_when(arm, truth, lambda t: (0 * t, 0 * t, 0 * t))
    for name in ("rotor_inertia", "viscous_friction", "coulomb_friction"):
        assert f"joint2.{name}" in words


def test_noise_of_a_joint_that_stands_still_is_no_motion(arm, truth):
    noise = 1e-4 * np.random.default_rng(0).normal(size=4000)
    assert "joint2 hardly moves" in identified_when(arm, truth, lambda t: (noise, 0 * t, 0 * t))


def test_friction_at_one_speed_cannot_be_told_apart(arm, truth):
    words = identified_when(arm, truth, lambda t: (0.3 * t, 0 * t + 0.3, 0 * t))
    assert "cannot be told apart" in words
    for name in ("viscous_friction", "coulomb_friction", "torque_offset"):
        assert f"joint2.{name}" in words


def test_a_good_recording_warns_of_nothing(arm, record):
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentificationWarning)
        found = identify(arm, record(noise=0.01), friction="coulomb")
    assert found.excitation.complete
    assert found.warnings == ()


def test_a_stage_may_fail_in_its_own_words(arm, record):
    def broken(log, cutoff=None):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        identify(arm, record(seconds=5.0), stages=Stages(condition=broken))


@pytest.mark.parametrize(("there", "joints"), [(6, "2 joints"), (2, "6 joints")])
def test_a_recording_of_another_number_of_joints(tmp_path, there, joints):
    """Columns that no joint has are not passed over in silence, nor are missing ones."""
    names = ["t", *(f"{kind}{k + 1}" for kind in ("q", "qd", "tau") for k in range(there))]
    path = tmp_path / "run.csv"
    path.write_text(",".join(names) + "\n" + "\n".join(",".join(["0.1"] * len(names)) for _ in range(5)))
    robot = lw.load("two_link" if there == 6 else "puma560")
    with pytest.raises(
        LogError, match=rf"run.csv: {there} columns of position \(q1 … q{there}\), .* {joints}"
    ):
        read_log(path, robot)
    layout = {"columns": {"position": "q{}", "velocity": "qd{}", "torque": "tau{}"}}
    if there == 6:
        with pytest.raises(LogError, match="stamp"):  # named, so they are taken; the stamps are next
            read_log(path, robot, layout)


def test_stamps_that_do_not_increase_are_named_by_row():
    t, zeros = np.array([0.0, 0.1, 0.1, 0.2, 0.15]), np.zeros((5, 1))
    with pytest.raises(LogError, match=r"0\.1 s of row 3 comes after 0\.1 s, 2 times in 5 rows"):
        Log(t, zeros, zeros)
