"""Joint states from rosbags of both versions, written by the package rosbags, packed in every way that it knows."""

import random
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.files import tables
from linkwise.files.tables import bounds
from linkwise.identify import LogError, read_log

rosbag1 = pytest.importorskip("rosbags.rosbag1")
rosbag2 = pytest.importorskip("rosbags.rosbag2")
typesys = pytest.importorskip("rosbags.typesys")

N = 60
T = np.cumsum(np.random.default_rng(0).uniform(0.004, 0.006, N))
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
QD = np.column_stack([np.cos(T), -2 * np.sin(2 * T)])
TAU = np.column_stack([3 * Q[:, 0], -Q[:, 1]])
START = 1_700_000_000
NAMES = ["joint2", "finger", "joint1"]  # in another order than the robot's, with a gripper


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def stores():
    return {
        1: typesys.get_typestore(typesys.Stores.ROS1_NOETIC),
        2: typesys.get_typestore(typesys.Stores.ROS2_HUMBLE),
    }


def state(store, version, k, names=NAMES, effort=True, stamped=True, scale=1.0):
    """Message k; its header has the time at which it was measured."""
    types = store.types
    seconds, nanoseconds = divmod(START * 10**9 + round(T[k] * 1e9), 10**9) if stamped else (0, 0)
    stamp = types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=nanoseconds)
    more = {"seq": k} if version == 1 else {}
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="base", **more)
    values = [dict(zip(("joint1", "joint2"), each[k], strict=True)) for each in (Q, QD, TAU)]
    position, velocity, force = (np.array([scale * v.get(name, 7.0) for name in names]) for v in values)
    return types["sensor_msgs/msg/JointState"](
        header=header,
        name=list(names),
        position=position,
        velocity=velocity,
        effort=force if effort else force[:0],
    )


def fill(writer, store, version, topics):
    """Write messages {topic: options of ``state``}; they are received late and in bursts."""
    connections = {
        topic: writer.add_connection(topic, "sensor_msgs/msg/JointState", typestore=store) for topic in topics
    }
    other = writer.add_connection("/chatter", "std_msgs/msg/String", typestore=store)
    pack = store.serialize_ros1 if version == 1 else store.serialize_cdr
    for k in range(N):
        late = START * 10**9 + round((T[k - k % 5 + 4] + 0.003) * 1e9) + k
        writer.write(
            other, late, pack(store.types["std_msgs/msg/String"](data="x" * 50), "std_msgs/msg/String")
        )
        for topic, options in topics.items():
            message = state(store, version, k, **options)
            writer.write(connections[topic], late, pack(message, "sensor_msgs/msg/JointState"))


def bag1(path: Path, stores, topics=None, packed=None) -> Path:
    writer = rosbag1.Writer(path)
    if packed:
        writer.set_compression(getattr(rosbag1.Writer.CompressionFormat, packed))
    with writer:
        fill(writer, stores[1], 1, topics or {"/joint_states": {}})
    return path


def bag2(path: Path, stores, storage, topics=None, packed=None) -> Path:
    writer = rosbag2.Writer(path, version=9, storage_plugin=getattr(rosbag2.StoragePlugin, storage))
    if packed:
        writer.set_compression(getattr(rosbag2.CompressionMode, packed), rosbag2.CompressionFormat.ZSTD)
    with writer:
        fill(writer, stores[2], 2, topics or {"/joint_states": {}})
    return path


WAYS = {
    "bag": lambda path, stores: bag1(path / "run.bag", stores),
    "bag, bz2": lambda path, stores: bag1(path / "run.bag", stores, packed="BZ2"),
    "bag, lz4": lambda path, stores: bag1(path / "run.bag", stores, packed="LZ4"),
    "sqlite": lambda path, stores: bag2(path / "run", stores, "SQLITE3"),
    "sqlite, packed files": lambda path, stores: bag2(path / "run", stores, "SQLITE3", packed="FILE"),
    "sqlite, packed messages": lambda path, stores: bag2(path / "run", stores, "SQLITE3", packed="MESSAGE"),
    "mcap": lambda path, stores: bag2(path / "run", stores, "MCAP"),
    "mcap, packed files": lambda path, stores: bag2(path / "run", stores, "MCAP", packed="FILE"),
    "mcap, packed chunks": lambda path, stores: bag2(path / "run", stores, "MCAP", packed="STORAGE"),
}


def inside(path: Path) -> Path:
    """The file in the folder of a rosbag 2."""
    return next(file for file in path.iterdir() if file.suffix != ".yaml") if path.is_dir() else path


def same(log):
    np.testing.assert_allclose(log.t, T - T[0], atol=2e-9)
    for found, true in ((log.q, Q), (log.qd, QD), (log.tau, TAU)):
        np.testing.assert_array_equal(found, true)


@pytest.mark.parametrize("way", WAYS)
def test_joints_by_name_with_the_stamps_of_messages(tmp_path, arm, stores, way):
    path = WAYS[way](tmp_path, stores)
    for source in dict.fromkeys((path, inside(path))):
        log = read_log(source, arm)
        same(log)
        assert "topic /joint_states" in log.notes
        assert "1 other joints were left out: finger" in log.notes


def test_an_arm_and_a_gripper_that_share_a_topic(tmp_path, arm, stores):
    with rosbag1.Writer(tmp_path / "run.bag") as writer:
        kind = "sensor_msgs/msg/JointState"
        arms, grippers = (
            writer.add_connection("/joint_states", kind, typestore=stores[1], callerid=name)
            for name in ("/a", "/g")
        )
        for k in range(N):
            time = START * 10**9 + round(T[k] * 1e9)
            writer.write(arms, time, stores[1].serialize_ros1(state(stores[1], 1, k), kind))
            hand = state(stores[1], 1, k, names=["finger"])
            writer.write(grippers, time, stores[1].serialize_ros1(hand, kind))
    log = read_log(tmp_path / "run.bag", arm)
    same(log)
    assert "60 messages without the joints of the robot were left out" in log.notes


def test_a_choice_among_topics(tmp_path, arm, stores):
    topics = {"/left/joint_states": {}, "/right/joint_states": {"scale": 2.0}}
    path = bag2(tmp_path / "run", stores, "MCAP", topics)
    with pytest.raises(
        LogError, match=r"several topics: /left/joint_states, /right/joint_states; choose one .--topic"
    ):
        read_log(path, arm)
    np.testing.assert_array_equal(read_log(path, arm, {"recording": {"topic": "left/joint_states"}}).q, Q)
    np.testing.assert_array_equal(
        read_log(path, arm, {"recording": {"topic": "/right/joint_states"}}).q, 2 * Q
    )
    with pytest.raises(
        LogError, match="no joint states on topic '/up'; there are /left/joint_states, /right"
    ):
        read_log(path, arm, {"recording": {"topic": "/up"}})
    commanded = {"/joint_states": {}, "/wanted": {"effort": False}, "/joint_states_desired": {"scale": 3.0}}
    same(read_log(bag2(tmp_path / "one", stores, "SQLITE3", commanded), arm))


def test_what_a_bag_does_not_have(tmp_path, arm, stores):
    path = bag1(tmp_path / "silent.bag", stores, {"/joint_states": {"effort": False}})
    with pytest.raises(
        LogError, match=r"silent\.bag: no columns of torques or currents for 2 joints; it has time,"
    ):
        read_log(path, arm)
    path = bag1(tmp_path / "hand.bag", stores, {"/joint_states": {"names": ["finger", "joint1"]}})
    with pytest.raises(LogError, match=r"hand\.bag: topic /joint_states: no joint2; it has finger, joint1"):
        read_log(path, arm)
    with rosbag1.Writer(tmp_path / "empty.bag") as writer:
        writer.add_connection("/chatter", "std_msgs/msg/String", typestore=stores[1])
    with pytest.raises(LogError, match=r"no messages of type sensor_msgs/JointState in it; it has"):
        read_log(tmp_path / "empty.bag", arm)
    path = bag1(tmp_path / "unstamped.bag", stores, {"/joint_states": {"stamped": False}})
    assert "messages have no stamps: times are when they were received" in tables.read(path).notes


@pytest.mark.parametrize("way", ["bag", "bag, lz4", "mcap", "mcap, packed chunks"])
def test_a_recording_that_was_cut_off(tmp_path, arm, stores, way):
    file = inside(WAYS[way](tmp_path, stores))
    whole = file.read_bytes()
    file.write_bytes(whole[: int(0.4 * len(whole))])
    try:
        log = read_log(file, arm)
    except LogError as error:  # all of it was packed at once
        assert "packed" in way or "lz4" in way, error  # noqa: PT017
    else:
        assert 3 < len(log) < N
        np.testing.assert_array_equal(log.q, Q[: len(log)])
        assert any("ends in the middle of a record" in note for note in log.notes)


def test_a_missing_package_is_named_with_its_extra(tmp_path, arm, stores, monkeypatch):
    path = WAYS["bag, lz4"](tmp_path, stores)
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    with pytest.raises(lw.LinkwiseError, match=r"pip install 'linkwise\[logs\]'"):
        read_log(path, arm)


# -- files that could do harm -----------------------------------------------------------------------------------------


def test_a_chunk_that_unpacks_to_more_than_is_allowed(tmp_path, arm, stores, monkeypatch):
    for way in ("bag, bz2", "bag, lz4", "mcap, packed chunks", "sqlite, packed files"):
        folder = tmp_path / way.replace(", ", "_")
        folder.mkdir()
        path = WAYS[way](folder, stores)
        monkeypatch.setenv(bounds.VARIABLE, "0.012")
        with pytest.raises(LogError, match=r"unpacked: .* more than the 12582 bytes that are allowed"):
            read_log(path, arm)
        monkeypatch.delenv(bounds.VARIABLE)


def test_a_database_whose_messages_are_a_view(tmp_path, arm):
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT k"
    with sqlite3.connect(tmp_path / "run.db3") as base:
        base.execute("CREATE TABLE topics(id INTEGER, name TEXT, type TEXT)")
        base.execute("INSERT INTO topics VALUES (1, '/j', 'sensor_msgs/msg/JointState')")
        base.execute(
            f"CREATE VIEW messages AS {endless} AS topic_id, k AS timestamp, x'00' AS data, k AS id FROM n"
        )
    with pytest.raises(LogError, match="without a table 'messages'"):
        read_log(tmp_path / "run.db3", arm)


@pytest.mark.parametrize("way", ["bag", "bag, lz4", "sqlite", "mcap", "mcap, packed chunks"])
def test_damaged_bags_are_refused_in_one_line_or_read(tmp_path, arm, stores, way):
    file = inside(WAYS[way](tmp_path, stores))
    whole, draw = file.read_bytes(), random.Random(1)
    for number in range(40):
        data = bytearray(whole)
        if number % 4 == 0:
            data = data[: draw.randrange(len(data))]
        for _ in range(draw.randrange(1, 20)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        target = tmp_path / f"damaged{number}{file.suffix}"
        target.write_bytes(data)
        try:
            read_log(target, arm, drop_bad_rows=True)
        except LogError as error:
            assert str(error).startswith(str(target))  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
