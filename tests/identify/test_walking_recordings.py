"""Recordings of robots with a floating base: conventions, arrays of all coordinates, what is wrong with a base."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from walking_robot import FEET, FIELDS, recording, true_robot, urdf, walker_of, waves

import linkwise as lw
from linkwise import identify
from linkwise.identify.walking import rotations
from linkwise.identify.walking.conventions import Readings
from linkwise.identify.walking.states import condition_walking


@pytest.fixture(scope="module")
def walker(tmp_path_factory) -> lw.Robot:
    return walker_of(tmp_path_factory.mktemp("walker"))


@pytest.fixture(scope="module")
def truth(walker) -> lw.Robot:
    return true_robot(walker)


def test_conventions_are_found_by_what_agrees(walker, truth):
    run = recording(truth, seconds=4.0)
    g, t = np.asarray(walker.gravity), run["t"]
    u, R = run["base_quat"], rotations.matrices(run["base_quat"])
    wxyz = u[:, [3, 0, 1, 2]]
    inside = rotations.turned_back(R, run["base_vel"])
    spin = run["imu_gyro"]
    cases = {
        "usual": {"base_orientation": u, "base_velocity": run["base_vel"], "base_position": run["base_pos"]},
        "w first": {"base_orientation": wxyz, "base_velocity": inside, "base_position": run["base_pos"]},
        "w first, no gyro": {"base_orientation": wxyz, "base_velocity": inside, "gyro": None},
        "world to base": {"base_orientation": u * [-1, -1, -1, 1], "base_velocity": run["base_vel"]},
        "pinocchio": {"base_pose": np.c_[run["base_pos"], u], "base_twist": np.c_[inside, spin]},
        "mujoco": {"base_pose": np.c_[run["base_pos"], wxyz], "base_twist": np.c_[run["base_vel"], spin]},
        "angular first": {
            "base_orientation": u,
            "base_twist": np.c_[spin, inside],
            "base_position": run["base_pos"],
        },
        "without gravity": {"base_orientation": u, "base_velocity": run["base_vel"], "accelerometer": None},
        "downwards": {"base_orientation": u, "accelerometer": -run["imu_acc"]},
    }
    for name, given in cases.items():
        arrays = {"gyro": spin, "accelerometer": run["imu_acc"]} | given
        if name == "without gravity":
            arrays["accelerometer"] = run["imu_acc"] + rotations.turned_back(
                R, np.broadcast_to(g, spin.shape)
            )
        reading = Readings("log", t, {k: x for k, x in arrays.items() if x is not None}, g)
        got = reading.decide()
        assert np.abs((got["base_orientation"] * u).sum(axis=1)).min() > 1 - 1e-9, name
        if "base_velocity" in got:
            assert np.allclose(got["base_velocity"], run["base_vel"], atol=1e-9), name
        assert np.allclose(got["accelerometer"], run["imu_acc"], atol=1e-9), name
        if "base_twist" in given:
            assert np.allclose(got["base_angular_velocity"], spin, atol=1e-9), name
        assert reading.notes, name


def test_axes_of_every_velocity_are_found_on_a_base_that_turns_far():
    """Half a turn of heading with tilts, by SciPy's rotations: angular and linear velocities in axes of world or base,
    alone and as six numbers in both orders; accelerations in m/s² and in multiples of gravity."""
    from scipy.spatial.transform import Rotation

    t, g = np.arange(0.0, 4.0, 0.01), np.array([0.0, 0.0, -9.81])
    angles = np.c_[0.5 * t, 0.25 * np.sin(1.7 * t), 0.2 * np.sin(2.3 * t + 1.0)]
    turns = Rotation.from_euler("ZYX", angles)
    h = 1e-6
    ahead = Rotation.from_euler(
        "ZYX",
        np.c_[0.5 * (t + h), 0.25 * np.sin(1.7 * (t + h)), 0.2 * np.sin(2.3 * (t + h) + 1.0)],
    )
    world = (ahead * turns.inv()).as_rotvec() / h
    place = np.c_[0.4 * np.sin(1.3 * t), 0.3 * np.cos(1.9 * t), 0.02 * np.sin(4.0 * t)]
    speed = np.c_[0.52 * np.cos(1.3 * t), -0.57 * np.sin(1.9 * t), 0.08 * np.cos(4.0 * t)]
    pull = np.c_[-0.676 * np.sin(1.3 * t), -1.083 * np.cos(1.9 * t), -0.32 * np.sin(4.0 * t)]
    spin, inside, felt = (turns.inv().apply(x) for x in (world, speed, pull - g))
    cases = (
        {"base_angular_velocity": world, "base_velocity": inside},
        {"base_angular_velocity": spin, "base_velocity": speed},
        {"base_twist": np.c_[world, speed]},
        {"base_twist": np.c_[speed, spin]},
        {"base_twist": np.c_[inside, world]},
        {"base_angular_velocity": world, "accelerometer": felt},
        {"base_angular_velocity": world, "accelerometer": felt / 9.81},
        {"base_angular_velocity": world, "accelerometer": -felt},
        {"base_angular_velocity": world, "accelerometer": turns.inv().apply(pull)},
    )
    u = turns.as_quat()
    for given, places in itertools.product(cases, ([0, 1, 2, 3], [3, 0, 1, 2])):
        reading = Readings("log", t, {"base_orientation": u[:, places], "base_position": place, **given}, g)
        got = reading.decide()
        assert np.abs((got["base_orientation"] * u).sum(axis=1)).min() > 1 - 1e-9, reading.notes
        expected = {"base_angular_velocity": spin, "base_velocity": speed, "accelerometer": felt}
        for key in expected.keys() & got.keys():
            np.testing.assert_allclose(got[key], expected[key], atol=1e-5, err_msg=f"{key}: {reading.notes}")
        assert "base_angular_velocity" in got


def test_the_order_of_a_quaternion_alone_is_that_of_an_upright_base(walker, truth):
    run = recording(truth, seconds=2.0)
    for places in ([0, 1, 2, 3], [3, 0, 1, 2]):
        reading = Readings(
            "log", run["t"], {"base_orientation": run["base_quat"][:, places]}, np.asarray(walker.gravity)
        )
        got = reading.decide()["base_orientation"]
        assert np.abs((got * run["base_quat"]).sum(axis=1)).min() > 1 - 1e-9
        assert "upright" in " ".join(reading.notes)


def test_arrays_of_all_coordinates_are_divided(walker, truth, tmp_path):
    run = recording(truth, seconds=2.0)
    t, tau = run["t"], run["tau"]
    whole = {
        "q": np.c_[run["base_pos"], run["base_quat"], run["q"]],
        "v": np.c_[
            rotations.turned_back(rotations.matrices(run["base_quat"]), run["base_vel"]),
            run["imu_gyro"],
            run["dq"],
        ],
        "tau": np.c_[np.zeros((len(t), 6)), tau],
    }
    np.savez(tmp_path / "whole.npz", t=t, **whole, contacts=run["touching"].astype(bool))
    log = identify.read_log(tmp_path / "whole.npz", walker)
    assert np.array_equal(log.q, run["q"])
    assert np.array_equal(log.tau, tau)
    assert np.array_equal(log.contacts, run["touching"])
    assert np.allclose(log.base_velocity, run["base_vel"], atol=1e-9)
    # a velocity of six columns has the angular one
    six = {"q": run["q"], "tau": tau, "base_quat": run["base_quat"], "base_pos": run["base_pos"]}
    np.savez(tmp_path / "six.npz", t=t, **six, base_velocity=np.c_[run["base_vel"], run["imu_gyro"]])
    six_columns = identify.read_log(tmp_path / "six.npz", walker)
    assert np.allclose(six_columns.base_velocity, run["base_vel"], atol=1e-9)
    assert np.allclose(six_columns.base_angular_velocity, run["imu_gyro"], atol=1e-9)
    # the same as text, axes and feet by name
    columns = (
        {"t": t}
        | {f"q{k}": x for k, x in enumerate(run["q"].T)}
        | {f"tau{k}": x for k, x in enumerate(tau.T)}
    )
    columns |= {f"base_quat_{a}": x for a, x in zip("xyzw", run["base_quat"].T, strict=True)}
    columns |= {f"base_pos_{a}": x for a, x in zip("xyz", run["base_pos"].T, strict=True)}
    columns |= {f"imu_gyro_{a}": x for a, x in zip("xyz", run["imu_gyro"].T, strict=True)}
    columns |= {f"imu_acc_{a}": x for a, x in zip("xyz", run["imu_acc"].T, strict=True)}
    columns |= {f"{leg}_contact": x for leg, x in zip(FEET, run["touching"].T, strict=True)}
    text = (
        ",".join(columns)
        + "\n"
        + "\n".join(",".join(f"{x:.17g}" for x in row) for row in np.array(list(columns.values())).T)
    )
    (tmp_path / "walk.csv").write_text(text)
    again = identify.read_log(tmp_path / "walk.csv", walker)
    assert again.feet == tuple(leg.lower() for leg in FEET)
    for key in ("base_position", "base_orientation", "gyro", "accelerometer", "contacts"):
        wanted = {"base_position": "base_pos", "base_orientation": "base_quat", "gyro": "imu_gyro"}
        wanted |= {"accelerometer": "imu_acc", "contacts": "touching"}
        assert np.allclose(getattr(again, key), run[wanted[key]], atol=1e-12), key


def test_names_of_a_public_logger(walker, truth, tmp_path):
    """Camel case, two orientations and two accelerations: those that belong together are taken."""
    run = recording(truth, seconds=2.0)
    turned = run["base_quat"][:, [1, 0, 2, 3]]  # of another device, whose world is another one
    names = {"q_mes": "q", "v_mes": "dq", "torquesFromCurrentMeasurment": "tau", "mocapPosition": "base_pos"}
    names |= {
        "mocapOrientationQuat": "base_quat",
        "baseAngularVelocity": "imu_gyro",
        "baseAccelerometer": "imu_acc",
    }
    arrays = {new: run[old] for new, old in names.items()} | {"baseOrientationQuat": turned, "t": run["t"]}
    np.savez(tmp_path / "data.npz", baseLinearAcceleration=0 * run["imu_acc"], **arrays)
    log = identify.read_log(tmp_path / "data.npz", walker)
    assert np.array_equal(log.q, run["q"])
    assert np.array_equal(log.tau, run["tau"])
    assert np.array_equal(log.accelerometer, run["imu_acc"])
    assert np.abs((log.base_orientation * run["base_quat"]).sum(axis=1)).min() > 1 - 1e-9


def test_what_is_wrong_with_a_base_is_named(walker, truth, tmp_path):
    run = recording(truth, seconds=2.0)
    path = tmp_path / "run.npz"

    def written(**changes):
        arrays = {key: run[key] for key in FIELDS} | changes
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
        return path

    base = ("base_pos", "base_quat", "base_vel", "imu_gyro", "imu_acc")
    for changes, words in (
        ({"base_quat": 2 * run["base_quat"]}, "has the length 2; expected 1"),
        ({"imu_gyro": run["imu_gyro"] * 180 / np.pi}, "looks like deg/s"),
        (dict.fromkeys(base), "no columns of a base were found"),
        ({"base_quat": None, "base_vel": None, "imu_gyro": None}, "does not follow from this recording"),
        ({"imu_acc": 20 * run["imu_acc"]}, "times gravity along the vertical"),
    ):
        with pytest.raises(identify.LogError, match=words):
            identify.read_log(written(**changes), walker)
    joints = identify.Log(run["t"], run["q"], run["tau"])
    with pytest.raises(identify.LogError, match="a recording of joints alone"):
        identify.identify(walker, joints)


def test_a_moving_base_is_named_where_the_robot_is_fixed(walker, truth, tmp_path):
    run = recording(truth, seconds=2.0)
    (tmp_path / "walker.urdf").write_text(urdf())
    fixed = lw.load(tmp_path / "walker.urdf")
    np.savez(tmp_path / "run.npz", **{key: run[key] for key in FIELDS})
    with pytest.raises(
        identify.LogError, match=r'columns of a moving base: base_pos1 .* load it with base="floating"'
    ):
        identify.read_log(tmp_path / "run.npz", fixed)
    whole = np.c_[run["base_pos"], run["base_quat"], run["q"]]
    np.savez(tmp_path / "whole.npz", t=run["t"], q=whole, tau=run["tau"])
    with pytest.raises(identify.LogError, match="columns of a moving base"):
        identify.read_log(tmp_path / "whole.npz", fixed)
    log = identify.WalkingLog(
        run["t"], run["q"], run["tau"], gyro=run["imu_gyro"], accelerometer=run["imu_acc"]
    )
    with pytest.raises(identify.LogError, match="the base of walker is fixed"):
        identify.identify(fixed, log)


def test_a_log_of_a_fixed_robot_stays_fixed(tmp_path):
    """A base that stands still, an inertial unit at the wrist, a camera that sees the tool: still an arm."""
    arm = lw.load("two_link")
    t = np.arange(300) / 100
    q, qd, qdd = waves(np.random.default_rng(0), t, 2, 0.5)
    tau = arm.inverse_dynamics(q, qd, qdd)
    still = np.broadcast_to((0.0, 0.0, 0.0, 1.0), (300, 4))
    np.savez(
        tmp_path / "arm.npz",
        t=t,
        q=q,
        tau=tau,
        base_quat=still,
        imu_gyro=qd[:, [0, 1, 1]],
        mocap_pos=q[:, [0, 1, 0]],
    )
    log = identify.read_log(tmp_path / "arm.npz", arm)
    assert type(log) is identify.Log
    assert np.array_equal(log.tau, tau)


def test_offsets_of_gyroscope_and_accelerometer_are_taken_away(walker):
    """Orientations and velocities show them: with and without offsets the motion is the same."""
    run = recording(walker, seconds=4.0)
    seen = []
    for gyro, pull in (((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), ((0.02, -0.05, 0.03), (0.3, -0.2, 0.4))):
        log = identify.WalkingLog(
            run["t"],
            run["q"],
            run["tau"],
            base_orientation=run["base_quat"],
            base_velocity=run["base_vel"],
            gyro=run["imu_gyro"] + gyro,
            accelerometer=run["imu_acc"] + pull,
        )
        seen.append(condition_walking(walker, log, "accelerometer", cutoff=20.0))
    inside = slice(60, -60)
    np.testing.assert_allclose(seen[1].velocities[inside], seen[0].velocities[inside], atol=1e-9)
    np.testing.assert_allclose(seen[1].accelerations[inside], seen[0].accelerations[inside], atol=1e-9)
    assert any("offset of the gyroscope, 0.062 rad/s, taken away" in note for note in seen[1].record)
    assert any("offset of the accelerometer, 0.54 m/s²" in note for note in seen[1].record)
