"""Task-space laws in closed loops: the closed form, energy, 180°, walls, forces, guiding; names on the command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.simulate import Plant, Push, simulate

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from task_space_parts.environment import Touched

PERIOD = 1e-3
Q = np.array([0.3, 0.6, 0.5, 0.4, 0.7, 0.2])


@pytest.fixture(scope="module")
def arm():
    return lw.load("stanford")


def potential(law, there, poses) -> np.ndarray:
    """Energy of the spring in the axes of the tool (times,)."""
    K = law.gains["stiffness"]
    E = np.einsum("ji,...jk->...ik", there[:3, :3], poses[..., :3, :3])
    turn = RotationError.of([[E[..., i, j] for j in range(3)] for i in range(3)])
    x = (poses[..., :3, 3] - there[:3, 3]) @ there[:3, :3]
    return turn.potential(np.diag(K[:3]).tolist()) + 0.5 * (x**2 @ K[3:])


def test_impedance_pulled_and_turned_by_180_degrees(arm):
    """One batch: six small pulls, two large ones that end, two starts with the hand turned by nearly 180°."""
    law = control.CartesianImpedance(arm, torque_limits=False)
    there, K = arm.pose(Q), law.gains["stiffness"]
    rng = np.random.default_rng(0)
    pulls = np.vstack([np.diag(1e-3 * K), 0.2 * K * rng.uniform(-1, 1, (2, 6)), np.zeros((2, 6))])
    start = np.tile(Q, (10, 1))
    start[8:, 5] += np.pi + np.array([-0.05, 0.02])
    plant = Plant(arm, friction=False, push=Push(wrench=np.zeros(6), end=4.0))
    ends = np.array([[1e9]] * 6 + [[1.0]] * 2 + [[1e9]] * 2)
    found = simulate(
        plant, law, Q, duration=4.0, q=start, vary={"push_wrench": pulls, "push_end": ends}, warn=False
    )
    poses = arm.pose(found.q)
    # the closed form at rest: displacement = K⁻¹ pull, within 1 %
    for k in range(6):
        E = there[:3, :3].T @ poses[k, -1, :3, :3]
        turn = 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])
        moved = np.concatenate([turn, (poses[k, -1, :3, 3] - there[:3, 3]) @ there[:3, :3]])
        np.testing.assert_allclose(moved, pulls[k] / K, atol=1e-5)
    # energy: no more than the person's work, and falling when nobody pulls
    for k in (6, 7):
        energy = arm.kinetic_energy(found.q[k], found.qd[k]) + potential(law, there, poses[k])
        twist = np.einsum("tij,tj->ti", arm.jacobian(found.q[k]), found.qd[k])
        wrench = np.concatenate([poses[k, :, :3, :3] @ pulls[k, :3], poses[k, :, :3, :3] @ pulls[k, 3:]], -1)
        power = (twist * wrench).sum(-1)[:1000]
        work = np.concatenate([[0.0], np.cumsum(0.5 * PERIOD * (power[1:] + power[:-1]))])
        assert (energy[:1000] - work).max() < 2e-2 * energy.max()
        assert np.diff(energy[1001:]).max() < 1e-4 * energy.max()
    # 180°: no jump of a torque, and both ways round end at the target
    for k in (8, 9):
        steps = np.abs(np.diff(found.tau[k], axis=0)).max()
        assert steps < 0.02 * np.abs(found.tau[k]).max()
        np.testing.assert_allclose(poses[k, -1], there, atol=5e-3)


def test_walls_of_100_kilonewtons_a_metre():
    """A stiff wall behind which the target lies: impedance pushes with the force of its law, hybrid control with the
    force that it was told."""
    robot = lw.load("two_link")  # moves in the plane of x and z
    q = np.array([0.4, 0.9])
    p = robot.pose(q)[:3, 3]
    depth, wanted = 0.02, 5.0
    soft = np.array([5.0, 5.0, 5.0, 400.0, 400.0, 400.0])
    along_z = {"selection": [0, 0, 0, 0, 0, 1], "force_target": [0, 0, 0, 0, 0, wanted], "force": "input"}
    laws = {
        "impedance": control.CartesianImpedance(robot, stiffness=soft, axes="base", torque_limits=False),
        "hybrid": control.HybridForceMotion(robot, torque_limits=False, **along_z),
    }
    wall = np.array([0.0, 0.0, -1.0, depth - p[2], 1e5, 0.0])  # free: below the wall
    begin = q.copy()
    for _ in range(20):  # 1 cm in front of the wall
        missing = p - [0, 0, depth + 0.01] - robot.pose(begin)[:3, 3]
        begin = begin + np.linalg.lstsq(robot.jacobian(begin)[3:], missing, rcond=None)[0]
    for name, law in laws.items():
        found = simulate(
            Plant(robot, friction=False), Touched(law, law.frame), q, duration=3.0, step=2e-4, continuous=True,
            q=begin, every=5, vary={"wall": wall, "hold": np.array([5.0])}, warn=False,
        )  # fmt: skip
        force = 1e5 * np.maximum(robot.pose(found.q)[:, 2, 3] - (p[2] - depth), 0.0)
        tail = force[-200:]
        expected = wanted
        if (
            name == "impedance"
        ):  # the spring, which also gives way along x and by turning, in series with the wall
            J = robot.jacobian(q)
            expected = depth / (J[5] @ np.linalg.solve(J.T @ (soft[:, None] * J), J[5]) + 1e-5)
        assert tail.std() < 0.01 * expected, name
        assert tail.mean() == pytest.approx(expected, rel=0.05), name


def test_admittance_gives_way_to_a_force_by_sensor_and_by_observer(arm):
    wrench = np.array([0.0, 0.0, 0.0, 3.0, -2.0, 1.0])
    plant = Plant(arm, friction=False, push=Push(wrench=wrench, begin=0.5))
    turned = arm.pose(Q)[:3, :3] @ wrench[3:]
    for force in ("input", "observer"):
        law = control.CartesianAdmittance(arm, force=force, torque_limits=False)
        found = simulate(plant, law, Q, duration=2.5, q=Q, warn=False, record=("memory",))
        offset = found.recorded["memory"][-1][:3]
        np.testing.assert_allclose(offset, turned / law.gains["virtual_stiffness"][3:], rtol=0.03, atol=1e-4)
        away = arm.pose(found.q[-1])[:3, 3] - arm.pose(Q)[:3, 3]
        assert np.linalg.norm(away - offset) < 0.5 * np.linalg.norm(offset)  # the inner law follows
        assert np.abs(found.q[400] - Q).max() < 1e-9


def test_hand_guiding_cannot_run_away():
    """The model has far more friction than the arm: after a push the compensation stops by itself, and never gives
    out more than its budget, whatever share is compensated."""
    robot = lw.load("two_link")
    joints = [replace(joint, coulomb_friction=(2.0, 2.0), viscous_friction=0.5) for joint in robot.joints]
    model = lw.Robot(robot.name, robot.links, joints, gravity=robot.gravity)
    law = control.HandGuiding(model, friction_share=1.0, friction_energy=3.0)
    q = np.array([0.3, 0.7])
    pushes = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, -2.0], [5.0, 5.0], [-1.0, 0.3]])
    plant = Plant(robot, friction=False, push=Push(torque=np.zeros(2), end=0.2))
    found = simulate(plant, law, q, duration=20.0, q=np.tile(q, (5, 1)), vary={"push_torque": pushes}, every=10,
                     record=("memory",), warn=False)  # fmt: skip
    energy = robot.kinetic_energy(found.q, found.qd)
    limit = law.gains["guiding_energy"][0]
    assert np.abs(found.qd[0]).max() < 1e-9  # at rest it stays at rest
    after = energy[:, 21:]
    assert (after.max(1) <= np.maximum(after[:, 0], limit) * 1.01).all()  # it is not driven beyond the limit
    assert (after[:, -1] < 0.02 * limit).all()  # and stops
    assert found.recorded["memory"].max() <= 3.0 + 1e-9
    # with the friction that the model has, a person's push ends in a rest, too
    pushed = Plant(model, push=Push(torque=np.array([4.0, 0.0]), end=0.3))
    rubbed = simulate(pushed, control.HandGuiding(model), q, duration=3.0, q=q, warn=False)
    assert np.abs(rubbed.qd[-1]).max() < 1e-3
    assert np.abs(rubbed.q[-1] - q).max() > 0.01


def test_virtual_walls_and_joint_limits_hold_the_arm_back():
    robot = lw.load("two_link")
    q = np.array([0.3, 0.7])
    x = robot.pose(q)[0, 3]
    law = control.HandGuiding(
        robot, walls=[[1.0, 0.0, 0.0, x - 0.05]], wall_stiffness=5000.0, torque_limits=False
    )
    plant = Plant(robot, friction=False, push=Push(torque=np.array([4.0, 0.0])))
    found = simulate(plant, law, q, duration=2.0, q=q, warn=False)
    path = robot.pose(found.q)[:, 0, 3]
    assert path.min() < x - 0.05  # it was pushed into the wall
    assert path.min() > x - 0.05 - 0.02
    limited = lw.Robot(
        robot.name,
        robot.links,
        [replace(joint, limits=lw.Limits(-1.0, 0.8)) for joint in robot.joints],
        gravity=robot.gravity,
    )
    free = control.named("gravity_pd", limited, frequency=3.0, torque_limits=False)
    held = control.Avoiding(free, margin=0.2)
    plant, goal, q = Plant(limited, friction=False), np.array([0.95, 0.95]), np.array([0.3, 0.4])
    reach = {law: simulate(plant, law, goal, duration=2.0, q=q, warn=False).q.max() for law in (free, held)}
    assert reach[free] > 0.85
    assert reach[held] < 0.7


def test_names_on_the_command_line(tmp_path):
    from click.testing import CliRunner

    from linkwise.cli.app import linkwise as main

    for name in ("cartesian_impedance", "hand_guiding"):
        out = CliRunner().invoke(main, ["generate", "two_link", name, "--frame", "link2"])
        assert out.exit_code == 0, out.output
        assert f"two_link_{name}(" in out.output
    arguments = [
        "simulate",
        "two_link",
        "--controller",
        "operational_space",
        "--to",
        "0.2,0.4",
        "--duration",
        "1.5",
    ]
    out = CliRunner().invoke(main, [*arguments, "--json"])
    assert out.exit_code == 0, out.output
    out = CliRunner().invoke(main, ["generate", "two_link", "tracking", "--frame", "link2"])
    assert out.exit_code == 2
    assert "task-space controllers" in out.output
