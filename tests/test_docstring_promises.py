"""Promises of docstrings and pages that no other test tries to break: over all bundled robots and random ones."""

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import compat, control, motion
from linkwise.bench.peers.built import pinocchio_model
from linkwise.files import tables
from linkwise.simulate import Drives, Plant, Sensors, simulate


def test_followers_follow_exactly():
    """A coupled robot is the free one with the follower at ratio·q + offset, in every function of a state."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        tree = lw.random_robot(seed, 5, tree=True)
        leader, follower = (tree.joint_names[k] for k in rng.permutation(5)[:2])
        ratio, offset = rng.normal(size=2)
        robot = tree.with_constraints([lw.Coupling(follower, leader, ratio, offset)])
        q = dict(zip(robot.joint_names, rng.normal(size=(4, 7)), strict=True))
        free = np.array([q[name] if name in q else ratio * q[leader] + offset for name in tree.joint_names])
        own = np.array([q[name] for name in robot.joint_names])
        for link in tree.link_names:
            np.testing.assert_allclose(robot.pose(own.T, link), tree.pose(free.T, link), atol=1e-12)


def test_motions_through_samples_have_the_samples():
    rng = np.random.default_rng(1)
    for dof in (1, 6, 7):
        t = np.cumsum(rng.uniform(0.01, 0.5, 12))
        parts = rng.normal(size=(3, 12, dof))
        found = motion.through_samples(motion.Samples(t, *parts))
        for time, *wanted in zip(t, *parts, strict=True):
            for one, other in zip(found.at(time - t[0] + found.begin), wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-8 * np.abs(parts).max())


def test_motions_are_never_made_faster_where_that_is_forbidden():
    rng = np.random.default_rng(2)
    for name in lw.robots():
        robot = lw.load(name)
        for duration in (0.05, 3.0):
            move = motion.quintic(np.zeros(robot.dof), rng.uniform(-0.2, 0.2, robot.dof), duration)
            torque = 3 * np.abs(robot.gravity_torques(move.sampled(points=50).q)).max(axis=0) + 50
            found = motion.fastest(move, robot, torque=torque, velocity=False, speed_up=False)
            assert found.duration >= duration * (1 - 1e-12), name


def test_frames_that_cannot_be_moved_in_six_directions_have_no_task_inertia():
    rng = np.random.default_rng(3)
    arms = [lw.load(name) for name in lw.robots()] + [lw.planar_chain(3), lw.general_chain(5)]
    few = [arm for arm in arms if arm.dof < 6]
    assert len(few) >= 3
    for arm in few:
        with pytest.raises(lw.SingularError):
            arm.task_inertia(arm.random(rng), frame=arm.link_names[-1])


def test_rates_of_pinocchio_are_a_permutation():
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(4)
    for arm in [lw.load(name) for name in lw.robots()] + [lw.random_robot(1, 6, tree=True)]:
        for robot in (arm, arm.with_base("floating")):
            try:
                model = pinocchio_model(pin, robot)
            except RuntimeError:  # Pinocchio refuses inertias of the PUMA 560
                continue
            order = compat.pinocchio_order(robot, model)
            assert sorted(order) == list(range(robot.dof))
            wanted = np.zeros((robot.dof, robot.dof))
            wanted[order, np.arange(robot.dof)] = 1.0
            for _ in range(2):
                assert np.array_equal(compat.pinocchio_rates(robot, model, robot.random(rng)), wanted)


def test_noise_and_voltages_differ_from_robot_to_robot():
    """``vary`` gives each robot its own sensors and drives: as it moves alone with these."""
    arm = lw.load("two_link")
    law = control.Tracking(arm, control.Gains.from_frequency(8.0), torque_limits=False)
    noise, volts = np.array([[1e-3, 1e-3], [1e-2, 5e-3]]), np.array([[9.0], [3.0]])

    def plant(k):
        sensors = Sensors(position_noise=noise[k])
        return Plant(
            arm, sensors=sensors, drives=Drives(volts=float(volts[k, 0]), torque_per_volt=2.0, bits=None)
        )

    vary = {"position_noise": noise, "volts": volts}
    options = {"duration": 0.05, "step": 1e-3, "seed": 3, "warn": False}
    together = simulate(plant(0), law, [0.4, -0.3], q=[0.0, 0.0], vary=vary, **options)
    for k in range(2):
        alone = simulate(plant(k), law, [0.4, -0.3], q=[0.0, 0.0], first=k, **options)
        np.testing.assert_allclose(together.q[k], alone.q, atol=1e-12)
    assert np.abs(together.q[0] - together.q[1]).max() > 1e-4


def test_gradual_friction_keeps_the_order_of_the_integrator():
    """Friction over a speed, resolved by the step: judged by SciPy on the same law."""
    from scipy.integrate import solve_ivp

    arm = lw.load("two_link")
    terms = {
        f"{name}.{key}": x
        for name in arm.joint_names
        for key, x in (("coulomb_friction", 0.4), ("friction_speed", 0.5))
    }
    arm = arm.with_parameters(terms)
    q, qd = np.array([-1.2, -0.4]), np.array([0.3, -0.2])
    exact = solve_ivp(
        lambda t, y: np.concatenate([y[2:], arm.forward_dynamics(y[:2], y[2:], np.zeros(2))]),
        (0, 0.2), np.concatenate([q, qd]), method="DOP853", rtol=1e-13, atol=1e-14,
    ).y[:, -1]  # fmt: skip
    errors = []
    for step in (4e-3, 2e-3, 1e-3):
        found = simulate(arm, control.Passive(arm), duration=0.2, step=step, q=q, qd=qd, warn=False)
        errors.append(np.abs([*found.final_q, *found.final_qd] - exact).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(4, abs=0.4)


@pytest.mark.parametrize("name", ["Excel", "MATLAB, compressed", "NPZ"])
def test_changed_bits_of_packed_tables_are_not_read_as_numbers(name, tmp_path, monkeypatch):
    """Bits all over the file: the table is refused, noted as incomplete, or has its numbers."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import damaged_recordings as files

    if name != "NPZ":
        pytest.importorskip("openpyxl" if name == "Excel" else "scipy")
    ending, write, _ = files.FORMATS[name]
    path = tmp_path / f"x{ending}"
    write(path)
    whole, data = tables.read(path), path.read_bytes()
    results = []
    for place in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
        results.append(files.tried(path, whole))
    assert "other" not in results
    assert results.count("refused") + results.count("noted") > 20
