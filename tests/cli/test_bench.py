"""The bench: nothing here asserts a time, only that results are right and that missing libraries are named."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.bench import calls, clock, cold, other_calls
from linkwise.bench.comparison import Group, compare
from linkwise.bench.peak import Peak
from linkwise.bench.peers import PEERS, Refusal, find
from linkwise.bench.peers.base import INPUTS, Peer
from linkwise.bench.subject import Subject, random_states, without_drives

ROBOT = without_drives(lw.planar_chain(3))


@pytest.fixture
def subject(tmp_path):
    return Subject.of(ROBOT, tmp_path)


def test_bench_prints_one_table_and_what_is_absent(linkwise):
    options = ("--robot", "two_link", "--batch", "1,8", "--dtype", "float64", "--rounds", "1", "--no-cold")
    ran = linkwise("bench", *options, "--function", "inverse_dynamics", "--json")
    assert ran.status == 0
    timings = ran.json["timings"]
    assert {timing["states"] for timing in timings} == {1, 8}
    assert "linkwise" in {timing["library"] for timing in timings}
    assert all(timing["nanoseconds_per_state"] > 0 for timing in timings if timing["problem"] is None)
    assert ran.json["limits"]["float64"] > 0
    text = linkwise("bench", *options, "--function", "mass_matrix", "--peer", "frax").out
    assert "linkwise" in text
    assert "FMA limit" in text
    if "frax" in ran.json["absent"]:
        assert "frax" in text


def test_bench_times_every_kind_of_call(linkwise):
    options = ("--robot", "two_link", "--calls", "--rounds", "1", "--function", "inverse_dynamics")
    ran = linkwise("bench", *options, "--json")
    assert ran.status == 0
    kinds = {line["kind"]: line for line in ran.json["calls"]}
    assert {
        "arrays",
        "float32",
        "out",
        "wrench",
        "lists",
        "strided",
        "batch 256",
        "kernel",
        "jacobian",
    } <= set(kinds)
    assert all(line["seconds"] > 0 and line["arithmetic"] > 0 for line in kinds.values())
    text = linkwise("bench", *options).out
    assert "out of line" in text
    assert ("ratio" in text) == ("pinocchio" not in ran.json["absent"]) or "pinocchio: " in text


def test_calls_with_other_bits_are_not_timed():
    listed = list(calls.kinds(ROBOT, "gravity_torques"))
    calls.check(listed)
    strided = next(k for k, kind in enumerate(listed) if kind.name == "strided")
    listed[strided] = replace(listed[strided], run=lambda: listed[0].run() + 1e-15)
    with pytest.raises(lw.LinkwiseError, match="gravity_torques by strided gives other bits"):
        calls.check(listed)


def test_every_method_of_the_robot_is_timed():
    found = calls.methods(ROBOT)
    assert {"inverse_dynamics", "forward_dynamics_derivatives", "pose", "regressor", "integrate"} <= set(
        found
    )
    assert "delassus_matrix" not in found


def test_every_public_function_of_robots_has_a_row_or_a_reason():
    assert other_calls.without_a_row() == []
    assert all(hasattr(lw.Robot, name) for name in (*other_calls.NOT_TIMED, *other_calls.TIMED))


def test_a_new_public_function_without_a_row_is_found(monkeypatch):
    monkeypatch.setattr(lw.Robot, "new_function", lambda self, q: q, raising=False)
    assert other_calls.without_a_row() == ["new_function"]


def test_rows_of_constraints_controllers_and_steps():
    rows = dict(other_calls.rows(lw.general_chain(4)))
    wanted = {"controller", "one step", "constrained forward_dynamics", "constraint_forces", "impact"}
    assert wanted <= set(rows)
    for listed in rows.values():
        calls.check(listed)
    costs, _ = calls.measure(rows["controller"], 1)
    assert {cost.kind.name for cost in costs} >= {"arrays", "float32", "lists", "batch 256"}


def test_frames_of_trees_are_named():
    tree = lw.random_robot(3, 9, tree=True)
    assert len(tree.leaf_names) > 1
    listed = list(calls.kinds(tree, "pose"))
    calls.check(listed)
    assert {kind.name for kind in listed} >= {"arrays", "frame", "lists", "batch 16"}


def test_bench_refuses_half_a_state(linkwise):
    assert "--batch" in linkwise("bench", "--robot", "two_link", "--batch", "1.5").refused()
    assert "did you mean 'pinocchio'?" in linkwise("bench", "--peer", "pinochio").refused()


@pytest.mark.parametrize("name", ["linkwise", "generated_c", "pinocchio", "mujoco"])
def test_peers_compute_the_same(subject, name):
    """Every adapter, one state and many, gives Linkwise's results in every function that it has."""
    peers, missing = find(subject, [name])
    if missing:
        pytest.skip(f"{name}: {missing[name]}")
    (peer,) = peers
    states = random_states(ROBOT, 6)
    for function in filter(peer.has, INPUTS):
        wanted = getattr(ROBOT, function)(*(states[key] for key in INPUTS[function]))
        many, one = peer.batch(function, states), peer.one(function, states)
        assert many is not None
        assert one is not None
        np.testing.assert_allclose(many.result(), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.reshape(one.result(), wanted[0].shape), wanted[0], rtol=1e-9, atol=1e-9)


def test_a_tree_with_other_joint_order_and_continuous_joints(tmp_path):
    """Pinocchio keeps two numbers for a continuous joint and may order branches otherwise."""
    pytest.importorskip("pinocchio")
    path = tmp_path / "tree.urdf"
    lw.save(lw.random_robot(11, 7, tree=True, joints="R"), path)
    path.write_text(path.read_text().replace('type="revolute"', 'type="continuous"', 3))
    robot = lw.load(path)
    (peer,), _ = find(Subject.of(robot, tmp_path, path), ["pinocchio"])
    states = random_states(robot, 4)
    np.testing.assert_allclose(peer.result("inverse_dynamics", states), states["tau"], atol=1e-9)
    np.testing.assert_allclose(peer.result("mass_matrix", states), robot.mass_matrix(states["q"]), atol=1e-9)


class Wrong(Peer):
    """A library that is off by one part in a hundred."""

    name, version, order = "wrong", "0", np.arange(ROBOT.dof)

    def call(self, function):
        return "wrong", lambda *state: 1.01 * getattr(ROBOT, function)(*state)


class Failing(Wrong):
    """A library that raises."""

    name = "failing"

    def call(self, function):
        return "failing", lambda *state: {}["no such thing"]


def test_wrong_results_are_not_timed():
    timings = list(compare(ROBOT, [Wrong(), Failing()], Group("inverse_dynamics", 4, "float64"), 1))
    assert [timing.nanoseconds for timing in timings] == [None, None]
    assert "gives other results" in timings[0].problem
    assert "fails" in timings[1].problem


def test_absent_and_unwilling_peers_have_a_reason(subject, monkeypatch):
    from linkwise.bench.peers import mujoco, pinocchio

    def absent(_):
        raise ImportError("no module", name="somewhere")

    def unwilling(_):
        raise Refusal("does not like\nthis robot")

    monkeypatch.setattr(pinocchio, "make", absent)
    monkeypatch.setattr(mujoco, "make", unwilling)
    found, missing = find(subject, ["pinocchio", "mujoco"])
    assert found == []
    assert missing == {"pinocchio": "not installed (somewhere)", "mujoco": "does not like this robot"}


def test_every_adapter_can_be_asked_for(subject):
    found, missing = find(subject)
    assert len(found) + len(missing) == len(PEERS)


def test_the_robot_for_all_has_no_drives_and_no_extensions(subject, tmp_path):
    drives = ROBOT.parameters[10 * ROBOT.dof :]
    assert not drives.any()
    text = Subject.of(without_drives(lw.load("puma560")), tmp_path).urdf.read_text()
    assert "<linkwise:" not in text
    assert "<link name=" in text
    assert '<link name="base"/>' not in text, "some readers take a missing inertia for one kilogram"


def test_medians_take_turns():
    order = []

    def work(name):
        order.append(name)
        until = time.process_time() + 2 * clock.SAMPLE
        while time.process_time() < until:
            pass

    seconds = clock.medians([lambda: work("a"), lambda: work("b")], 3)
    assert all(each >= clock.SAMPLE for each in seconds)
    assert order[-6:].count("a") == order[-6:].count("b")


def test_one_core_is_given_back(monkeypatch):
    monkeypatch.setenv("LINKWISE_THREADS", "3")
    before = os.sched_getaffinity(0)
    with clock.one_core():
        assert len(os.sched_getaffinity(0)) == 1
        assert os.environ["LINKWISE_THREADS"] == "1"
    assert os.sched_getaffinity(0) == before
    assert os.environ["LINKWISE_THREADS"] == "3"


def test_the_limit_is_a_rate():
    assert Peak("float32").measure(1) > 1e6


def test_cold_start_in_a_new_process(subject, tmp_path):
    took = cold.measure("linkwise", subject.urdf, tmp_path / "cache")
    assert took is not None
    assert set(took) == {"load", "first call"}
    assert any((tmp_path / "cache").rglob("*")), "the compiled code went into the given cache"
    assert cold.measure("no_such_library", subject.urdf, tmp_path / "cache") is None


def test_generated_c_is_the_one_of_generate(subject):
    if shutil.which("gcc") is None and shutil.which("clang") is None:
        pytest.skip("no C compiler")
    (peer,), _ = find(subject, ["generated_c"])
    states = random_states(ROBOT, 5)
    assert peer.result("inverse_dynamics", states).tolist() == states["tau"].tolist(), "the same bits"
    assert Path(peer.folder.name).is_dir()
