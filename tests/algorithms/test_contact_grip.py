"""Bodies that a gripper holds: fingers with four points each squeeze a cube, so impulses are redundant."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.contact import carried, effort, law

EDGE, GRIP, STEP = 0.04, 20.0, 0.002


def grip(arm_name: str, weight: float = 0.1, **turning: float):
    """(scene of an arm with two fingers and a cube between them, positions, stiffness of the arm's PD law)."""
    arm = lw.load(arm_name)
    tip = arm.links[-1].name
    links = [*arm.links, lw.Link("hand", lw.Inertia.from_com(0.7, (0, 0, 0.03), (1e-3, 2e-3, 1.7e-3)))]
    joints = [*arm.joints, lw.Joint("hand_joint", "fixed", tip, "hand", lw.Transform.identity())]
    pads = []
    for side, yaw in (("left", 0.0), ("right", np.pi)):
        links.append(lw.Link(f"{side}_finger", lw.Inertia.from_com(0.1, (0, 0.01, 0.03), (8e-5, 8e-5, 2e-5))))
        place = lw.Transform.from_rpy((0, 0, 0.06), (0, 0, yaw))
        joints.append(
            lw.Joint(f"{side}_slide", "prismatic", "hand", f"{side}_finger", place, (0.0, 1.0, 0.0))
        )
        pads.append(
            lw.Shape.box(f"{side}_finger", (0.018, 0.008, 0.018), offset=(0, 0.004, 0.045), friction=0.8)
        )
    robot = lw.Robot("grip", links, joints).with_contacts(pads)
    cube = lw.Body.box((EDGE, EDGE, EDGE), mass=weight, name="cube", friction=0.8)
    touching = [lw.Contact(f"{side}_finger", "cube", **turning) for side in ("left", "right")]
    scene = lw.Scene([robot, cube], contacts=touching)
    q, n = scene.neutral.copy(), robot.dof
    q[: n - 2] = np.random.default_rng(1).uniform(0.2, 0.6, n - 2)
    q[n - 2 : n] = 0.5 * EDGE
    hand = robot.pose(q[:n], frame="hand")
    q[n : n + 3] = (hand @ [0.0, 0.0, 0.105, 1.0])[:3]
    q[n + 3 : n + 7] = quaternion(hand[:3, :3])
    return scene, q, n


def quaternion(R: np.ndarray) -> np.ndarray:
    """(x, y, z, w) of a rotation: the eigenvector of K with the largest eigenvalue."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    K = np.array(
        [
            [xx - yy - zz, 0, 0, 0],
            [yx + xy, yy - xx - zz, 0, 0],
            [zx + xz, zy + yz, zz - xx - yy, 0],
            [zy - yz, xz - zx, yx - xy, xx + yy + zz],
        ]
    )
    values, vectors = np.linalg.eigh(K)
    return vectors[:, np.argmax(values)]


@pytest.mark.parametrize(("arm", "weight"), [("panda", 0.1), ("puma560", 1.0)])
def test_grips_that_are_kicked_converge_and_do_not_creep(arm, weight):
    scene, start, n = grip(arm, weight)
    rng, count = np.random.default_rng(0), 24
    step, residual = (
        scene.kernel(f"contact_{name}", inputs="start_impulse") for name in ("step", "residual")
    )
    q, qd = np.repeat(start[None], count, 0), np.zeros((count, scene.dof))
    impulse, push = np.zeros((count, 24)), np.zeros((count, scene.dof))
    inertia = np.diagonal(scene.mass_matrix(start))[: n - 2]
    residuals, kicks = [], np.array([*(8.0 * inertia), 3.0, 3.0, *[0.01] * 3, *[0.3] * 3])
    for k in range(120):
        if k % 20 == 0:
            push = kicks * rng.normal(size=push.shape)
        tau = scene.gravity_torques(q) + (push if k < 100 else 0.0)
        tau[:, n:] = push[:, n:] if k < 100 else 0.0
        tau[:, : n - 2] += inertia * (400.0 * (start[: n - 2] - q[:, : n - 2]) - 40.0 * qd[:, : n - 2])
        tau[:, n - 2 : n] -= GRIP * max(weight / 0.1, 1.0) ** 0.5 + 5.0 * qd[:, n - 2 : n]
        if k:
            residuals.append(residual(q, qd, tau, impulse))
        q, qd, impulse = step(q, qd, tau, impulse)
        impulse = impulse.reshape(count, -1)
    assert (np.concatenate(residuals) < 1e-6).mean() >= 0.999
    if arm == "panda":
        slip = np.linalg.norm(scene.contact_velocities(q, qd, tau)[..., :2], axis=-1)
        assert np.median(slip) < 1e-9


@pytest.mark.parametrize("turning", [{}, {"torsional_friction": 0.005, "rolling_friction": 0.001}])
def test_reduced_coordinates_have_the_same_contact_velocities_and_mobility(turning):
    scene, q, _ = grip("panda", **turning)
    setting = scene.contact_setting({})
    links, parts = setting.links(), law.scene_of(scene)
    rng = np.random.default_rng(2)
    q = q + 1e-3 * rng.normal(size=len(q))
    caught = []

    def kept(*given):
        caught.append(given)
        return original(*given)

    original = carried.reduced
    carried.reduced = kept
    try:
        lanes = [
            links.grouped([np.array([x]) for x in part], positions=k == 0)
            for k, part in enumerate((q, np.zeros(scene.dof), np.zeros(scene.dof)))
        ]
        frictions = [each.friction for each in parts.candidates]
        law.step(links, *lanes, parts, law.Given(STEP, frictions, [0.0] * 8), effort.chosen(parts, links))
    finally:
        carried.reduced = original
    problem = caught[0][3]
    smaller, restricted = original(*caught[0])
    assert len(smaller.M) == 8  # two fingers and the cube relative to the hand; no joint of the arm
    M, S = (np.array([[float(np.ravel(x)[0]) for x in row] for row in part.M]) for part in (problem, smaller))
    J, Y = (
        np.array(
            [
                [float(np.ravel(x)[0]) for x in row]
                for row in (*part.rows, *(row for each in part.turning for row in each.rows))
            ]
        )
        for part in (problem, smaller)
    )
    assert len(J) == len(Y) >= (48 if turning else 24)
    v = rng.normal(size=len(M))
    relative = np.array([float(np.ravel(x)[0]) for x in restricted(list(v))])
    np.testing.assert_allclose(Y @ relative, J @ v, atol=1e-12 * np.abs(J @ v).max())
    G = J @ np.linalg.solve(M, J.T)
    np.testing.assert_allclose(Y @ np.linalg.solve(S, Y.T), G, atol=1e-11 * np.abs(G).max())


def test_a_finer_accuracy_does_not_give_up_steps_that_have_a_solution():
    """Round-off ends some steps above what is asked for. They are not among those that friction holds inside."""
    links, joints, pads = [lw.Link("hand", lw.Inertia.from_com(1.0, (0, 0, 0), (1, 1, 1)))], [], []
    for side, yaw in (("left", 0.0), ("right", np.pi)):
        finger = f"{side}_finger"
        links.append(lw.Link(finger, lw.Inertia.from_com(0.1, (0, 0.01, 0.03), (8e-5, 8e-5, 2e-5))))
        place = lw.Transform.from_rpy((0, 0, 0.06), (0, 0, yaw))
        joints.append(lw.Joint(f"{side}_slide", "prismatic", "hand", finger, place, (0.0, 1.0, 0.0)))
        pads.append(lw.Shape.box(finger, (0.018, 0.008, 0.018), offset=(0, 0.004, 0.045), friction=0.8))
    hand = lw.Robot("hand", links, joints).with_contacts(pads)
    cube = lw.Body.box((EDGE, EDGE, EDGE), mass=0.1, name="cube", friction=0.8)
    touching = [lw.Contact(f"{side}_finger", "cube") for side in ("left", "right")]
    scene, rng, count = lw.Scene([hand, cube], contacts=touching), np.random.default_rng(0), 800
    q = np.repeat(scene.neutral[None], count, 0)
    q[:, :2] = 0.5 * EDGE - 1e-5 * rng.uniform(size=(count, 2))
    q[:, 2:5] = [0.0, 0.0, 0.105] + 1e-4 * rng.normal(size=(count, 3))
    q[:, 5:8] = 1e-4 * rng.normal(size=(count, 3))
    qd = rng.normal(size=(count, scene.dof)) * ([0.05] * 2 + [0.5] * 3 + [0.05] * 3)
    tau = np.repeat([[-GRIP] * 2 + [0.0] * 6], count, 0)
    usual, fine = (scene.contact_residual(q, qd, tau, accuracy=accuracy) for accuracy in (1e-6, 1e-12))
    solved = usual < 1e-7
    assert solved.mean() > 0.9
    assert (fine[solved] < 1e-6).all()
