"""States, torques and mass matrices in the numbering of Pinocchio, MuJoCo and frax, against those engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import Joint, Link, Robot, Transform, compat
from linkwise.bench.peers.built import mujoco_model, pinocchio_model
from linkwise.model.joint import Mimic
from strategies import body, pose

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
ORIGIN = Transform.identity()


def walker(base: str = "floating", mimic: bool = False) -> Robot:
    """A trunk with two legs, a ball joint in one hip."""
    rng = np.random.default_rng(4)
    names = ("left_hip", "left_knee", "right_hip", "right_knee")
    parents = ("trunk", "left_thigh", "trunk", "right_thigh")
    children = ("left_thigh", "left_shin", "right_thigh", "right_shin")
    kinds = ("ball", "revolute", "continuous", "prismatic")
    joints = [
        Joint(name, kind, parent, child, pose(rng), rotor_inertia=0.1)
        for name, kind, parent, child in zip(names, kinds, parents, children, strict=True)
    ]
    if mimic:
        joints[1] = replace(joints[1], mimic=Mimic("right_hip", -0.7, 0.2, True))
    links = [Link(name, body(rng)) for name in ("trunk", *children)]
    return Robot("walker", links, joints).with_base(base)


def state(robot: Robot, count: int | None = None):
    rng = np.random.default_rng(1)
    shape = (robot.dof,) if count is None else (count, robot.dof)
    return robot.random(rng, count), *rng.normal(size=(2, *shape))


@pytest.mark.parametrize("mimic", [False, True])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_pinocchio(base, mimic):
    pin = pytest.importorskip("pinocchio")
    robot = walker(base, mimic)
    model = pinocchio_model(pin, robot)
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    them = compat.coordinates(robot, "pinocchio", model)
    model.armature = np.array([j.rotor_inertia for j in robot.moving_joints for _ in range(j.dof)])
    q, v, a = state(robot)
    theirs = compat.to_pinocchio(robot, q, v, a, model=model)
    tau = them.own_torques(q, pin.rnea(model, data, *theirs))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a, friction=False), tau, **CLOSE)
    M = np.array(pin.crba(model, data, theirs[0]))
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(robot.mass_matrix(q), them.own_matrix(q, M), **CLOSE)
    if not mimic:
        found = pin.aba(model, data, *theirs[:2], them.torques(q, tau))
        np.testing.assert_allclose(them.own_accelerations(q, v, found), a, **CLOSE)
    else:
        with pytest.raises(lw.ModelError, match="follow others as its own"):
            them.torques(q, tau)
    for ours, back in zip((q, v, a), compat.from_pinocchio(robot, *theirs, model=model), strict=True):
        np.testing.assert_allclose(back, ours, **CLOSE)


def test_pinocchio_planar_base_and_its_own_root_joints(tmp_path):
    """A URDF with JointModelPlanar or JointModelFreeFlyer in front; velocities of the former turn with the base."""
    pin = pytest.importorskip("pinocchio")
    path = tmp_path / "arm.urdf"
    arm = lw.random_robot(3, 3)
    links = [replace(link, inertia=body(np.random.default_rng(0))) for link in arm.links]
    lw.save(Robot("arm", links, arm.joints, gravity=arm.gravity), path)
    for base, root in (("planar", pin.JointModelPlanar()), ("floating", pin.JointModelFreeFlyer())):
        robot = lw.load(path, base=base)
        model = pin.buildModelFromUrdf(str(path), root)
        model.gravity.linear = np.array(robot.gravity)
        data = model.createData()
        q, v, a = state(robot)
        them = compat.coordinates(robot, "pinocchio", model)
        theirs = compat.to_pinocchio(robot, q, v, a, model=model)
        model.armature[them.velocity_matrix(q).argmax(axis=0)[-3:]] = [
            joint.rotor_inertia for joint in robot.moving_joints[-3:]
        ]
        tau = them.own_torques(q, pin.rnea(model, data, *theirs))
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, a, friction=False), tau, **CLOSE)
        for ours, back in zip((q, v, a), compat.from_pinocchio(robot, *theirs, model=model), strict=True):
            np.testing.assert_allclose(back, ours, **CLOSE)


@pytest.mark.parametrize("base", ["fixed", "floating", "planar"])
def test_mujoco(base):
    mujoco = pytest.importorskip("mujoco")
    robot = walker(base)
    model = mujoco_model(mujoco, robot)
    model.opt.gravity[:] = robot.gravity
    data = mujoco.MjData(model)
    them = compat.coordinates(robot, "mujoco", model)
    q, v, a = state(robot)
    data.qpos[:], data.qvel[:], data.qacc[:] = theirs = compat.to_mujoco(robot, q, v, a, model=model)
    mujoco.mj_inverse(model, data)
    tau = robot.inverse_dynamics(q, v, a, friction=False)
    np.testing.assert_allclose(them.own_torques(q, data.qfrc_inverse), tau, **CLOSE)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    np.testing.assert_allclose(robot.mass_matrix(q), them.own_matrix(q, M), **CLOSE)
    inverse = np.linalg.inv(M)
    np.testing.assert_allclose(robot.inverse_mass_matrix(q), them.own_inverse(q, inverse), **CLOSE)
    data.qfrc_applied[:] = them.torques(q, tau)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(them.own_accelerations(q, v, data.qacc), a, **CLOSE)
    for ours, back in zip((q, v, a), compat.from_mujoco(robot, *theirs, model=model), strict=True):
        np.testing.assert_allclose(back, ours, **CLOSE)


def test_frax_has_the_numbering_of_mujoco_and_batches_go_through():
    rng = np.random.default_rng(4)
    links = [Link("trunk", body(rng)), Link("leg", body(rng))]
    robot = Robot("leg", links, [Joint("hip", "revolute", "trunk", "leg", pose(rng))]).with_base("floating")
    q, v, a = state(robot, 5)
    moved = compat.to_frax(robot, q, v, a)
    np.testing.assert_allclose(moved[0][:, :7], q[:, [0, 1, 2, 6, 3, 4, 5]], **CLOSE)
    turn = robot.pose(q, "trunk")[:, :3, :3]
    np.testing.assert_allclose(moved[1][:, :3], np.einsum("kij,kj->ki", turn, v[:, 3:6]), **CLOSE)
    np.testing.assert_allclose(moved[1][:, 3:], v[:, [0, 1, 2, 6]], **CLOSE)
    for ours, theirs in zip(moved, compat.to_mujoco(robot, q, v, a), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, back in zip((q, v, a), compat.from_frax(robot, *moved), strict=True):
        np.testing.assert_allclose(back, ours, **CLOSE)
    np.testing.assert_allclose(compat.from_frax(robot, compat.to_frax(robot, q)), q, **CLOSE)
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(\.\.\., 8\)"):
        compat.to_mujoco(robot, q[:, :7])


def test_joints_that_do_not_fit_are_named():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco_model(mujoco, walker("floating"))
    with pytest.raises(lw.ModelError, match="the engine has 12 velocities, of which 5"):
        compat.coordinates(walker("fixed").lock({"left_knee": 0.0}), "mujoco", model)
    with pytest.raises(lw.UnknownNameError, match="valid: pinocchio, mujoco, frax"):
        compat.coordinates(walker(), "drake")
