"""A model read from MJCF beside MuJoCo's model of the same file: every number, and dynamics at random states."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np

from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named
from linkwise.model.model import Model
from linkwise.model.transform import Transform
from linkwise.robot.robot import Robot

TOLERANCE = 1e-8  # relative to the largest number of its kind; MuJoCo diagonalises inertias to about 1e-12
SAME_FRAME = 1e3  # sites that MuJoCo takes as parallel to their body are so to 1e-5 rad
STATES = 3


class Disagreement(AssertionError):
    pass


def compare(model: Model, peer: mujoco.MjModel, seed: int) -> None:
    """Raise a Disagreement at the first number that differs."""
    model = model.with_constraints([])
    flags = int(peer.opt.disableflags)
    # friction loss, limits and equalities are constraints there
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    peer.opt.enableflags = 0
    data = mujoco.MjData(peer)
    if (model.dof, model.nq) != (peer.nv, peer.nq):
        raise Disagreement(f"{model.dof} velocities here, {peer.nv} there")
    near("gravity", model.gravity, gravity_of(peer))
    compare_joints(model, peer, flags)
    compare_bodies(model, peer)
    rng = np.random.default_rng(seed)
    robot = Robot.from_model(without_coulomb(model))
    bare = model.with_motors(()) if model.motors else model
    for _ in range(STATES):
        q = robot.random(rng)
        qd, qdd = rng.normal(size=(2, model.dof))
        data.qpos[:], turn, rest = as_mujoco(model, q, qd)
        data.qvel[:], data.qacc[:] = turn @ qd, turn @ qdd + rest
        mujoco.mj_inverse(peer, data)
        compare_poses(bare, q, peer, data)
        if model.dof:
            M = np.zeros((peer.nv, peer.nv))
            mujoco.mj_fullM(peer, data, M)
            near("mass matrix", value(robot, "mass_matrix", q=q), turn.T @ M @ turn)
            size = float(np.abs(M).max() * np.abs(data.qacc).max() + np.abs(data.qfrc_bias).max())
            size += float(np.abs(data.qfrc_passive).max())
            tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
            near("inverse dynamics", tau, turn.T @ data.qfrc_inverse, size)
            still = value(robot, "inverse_dynamics", q=q, qd=0 * qd, qdd=0 * qdd)
            data.qvel[:], data.qacc[:] = 0.0, 0.0
            mujoco.mj_inverse(peer, data)
            near("torques at rest", still, turn.T @ data.qfrc_inverse, size)


def without_coulomb(model: Model) -> Model:
    """The robot without Coulomb friction, which is a constraint in MuJoCo."""
    joints = [replace(joint, coulomb_friction=(0.0, 0.0)) if joint.moves else joint for joint in model.joints]
    return model._with(joints=joints)


def compare_held(model: Model, peer: mujoco.MjModel) -> None:
    """Which directions equalities hold in the pose that the file draws, where they are met there."""
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    peer.opt.enableflags = 0
    data = mujoco.MjData(peer)
    peer.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    mujoco.mj_forward(peer, data)
    equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    if np.abs(data.efc_pos[equality]).max(initial=0.0) > 1e-9 or not model.dof:
        return
    q = from_mujoco(model, peer.qpos0)
    turn = as_mujoco(model, q, np.zeros(model.dof))[1]
    J = data.efc_J.reshape(-1, peer.nv)[: data.nefc]
    rows = [following(model)]
    if model.constraints:
        rows.append(value(Robot.from_model(model), "constraint_jacobian", q=q))
    near("directions that are held", projector(np.vstack(rows)), projector(J[equality] @ turn), 1.0)


def following(model: Model) -> np.ndarray:
    """One row for each joint that follows another: it is zero along motions that keep the relation."""
    first = dict(
        zip(
            model.joint_names, np.cumsum([0, *(joint.dof for joint in model.coordinate_joints)]), strict=False
        )
    )
    rows = np.zeros((0, model.dof))
    for joint in model.coordinate_joints:
        if joint.mimic is not None:
            row = np.zeros(model.dof)
            row[first[joint.name]] = 1.0
            row[first[joint.mimic.joint]] = -joint.mimic.multiplier
            rows = np.vstack([rows, row])
    return rows


def projector(rows: np.ndarray) -> np.ndarray:
    """Onto the space that the rows span."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[sizes > 1e-9 * max(1.0, sizes.max(initial=0.0))]
    return kept.T @ kept


def from_mujoco(model: Model, qpos: np.ndarray) -> np.ndarray:
    """Positions with w of quaternions last."""
    q, at = qpos.copy(), 0
    for joint in model.coordinate_joints:
        if joint.free:
            q[at + joint.nq - 4 : at + joint.nq] = np.roll(qpos[at + joint.nq - 4 : at + joint.nq], -1)
        at += joint.nq
    return q


def as_mujoco(model: Model, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(qpos, B, b): MuJoCo's positions, and its velocities B q̇ and accelerations B q̈ + b.

    Quaternions begin with w there; the linear velocity of a free joint comes first, in the axes of the world.
    """
    qpos, turn, rest = q.copy(), np.eye(model.dof), np.zeros(model.dof)
    at = first = 0
    for joint in model.coordinate_joints:
        if joint.free:
            x, y, z, w = q[at + joint.nq - 4 : at + joint.nq]
            qpos[at + joint.nq - 4 : at + joint.nq] = w, x, y, z
            if joint.dof == 6:
                R = Transform.from_quaternion((0, 0, 0), (w, x, y, z)).rotation
                own = slice(first, first + 6)
                turn[own, own] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                rest[first : first + 3] = R @ np.cross(qd[first : first + 3], qd[first + 3 : first + 6])
        at, first = at + joint.nq, first + joint.dof
    return qpos, turn, rest


def gravity_of(peer: mujoco.MjModel) -> np.ndarray:
    off = peer.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    return np.zeros(3) if off else np.array(peer.opt.gravity)


def compare_joints(model: Model, peer: mujoco.MjModel, flags: int) -> None:
    off = mujoco.mjtDisableBit
    damped = not flags & int(off.mjDSBL_DAMPER)
    rubs = not flags & (int(off.mjDSBL_FRICTIONLOSS) | int(off.mjDSBL_CONSTRAINT))
    for k, joint in enumerate(model.coordinate_joints):
        theirs = mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_JOINT, k)
        if theirs and joint.name != theirs:
            raise Disagreement(f"joint {joint.name!r} here, {theirs!r} there")
        name, dof = f"joint {joint.name!r}: ", peer.jnt_dofadr[k]
        slides = peer.jnt_type[k] == mujoco.mjtJoint.mjJNT_SLIDE
        if joint.dof != (1 if peer.jnt_type[k] >= 2 else 3 if peer.jnt_type[k] == 1 else 6):
            raise Disagreement(f"{name}{joint.type} here")
        if joint.dof == 1:
            if (joint.type == "prismatic") != slides:
                raise Disagreement(f"{name}{joint.type} here")
            ends = peer.jnt_range[k] if peer.jnt_limited[k] else (-np.inf, np.inf)
            near(name + "range", (joint.limits.lower, joint.limits.upper), ends, 1.0)
            effort = np.abs(peer.jnt_actfrcrange[k]).max() if peer.jnt_actfrclimited[k] else np.inf
            near(name + "effort", joint.limits.effort, effort, 1.0)
        near(name + "armature", joint.rotor_inertia, peer.dof_armature[dof], 1.0)
        near(name + "damping", joint.viscous_friction, peer.dof_damping[dof] if damped else 0.0, 1.0)
        lost = peer.dof_frictionloss[dof] if rubs else 0.0
        near(name + "friction loss", joint.coulomb_friction, (lost, lost), 1.0)


def compare_bodies(model: Model, peer: mujoco.MjModel) -> None:
    """Mass, centre and inertia of each named body that moves."""
    for k in range(1, peer.nbody):
        name = mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_BODY, k)
        if not name or model.carrier(name)[0] < 0:
            continue
        inertia = next(link.inertia for link in model.links if link.name == name)
        near(f"body {name!r}: mass", inertia.mass, peer.body_mass[k], 1.0)
        if inertia.mass > 0:
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, peer.body_iquat[k])
            turn = turn.reshape(3, 3)
            near(f"body {name!r}: centre of mass", inertia.com, peer.body_ipos[k], 1.0)
            theirs = turn @ np.diag(peer.body_inertia[k]) @ turn.T
            size = float(np.abs(inertia.inertia_about_origin).max())
            near(f"body {name!r}: inertia", inertia.matrix_about_com, theirs, size)


def compare_poses(model: Model, q: np.ndarray, peer: mujoco.MjModel, data: mujoco.MjData) -> None:
    poses = {model.base: Transform.identity()}
    at = np.cumsum([joint.nq for joint in model.coordinate_joints])[:-1]
    own = dict(zip(model.joint_names, np.split(q, at), strict=True)) if model.nq else {}
    for joint in model.joints:
        moved = own[joint.name] if joint.free else float(own[joint.name][0]) if joint.moves else 0.0
        poses[joint.child] = poses[joint.parent] @ joint.motion(moved)
    for frame in model.frames:
        poses[frame.name] = poses[frame.link] @ frame.pose
    shared = {link.name for link in model.links}  # a site of this name is called NAME_site here
    for kind, count, places, turns in (
        (mujoco.mjtObj.mjOBJ_BODY, peer.nbody, data.xpos, data.xmat),
        (mujoco.mjtObj.mjOBJ_SITE, peer.nsite, data.site_xpos, data.site_xmat),
    ):
        for k in range(count):
            name = mujoco.mj_id2name(peer, kind, k)
            if not name:
                continue
            if kind == mujoco.mjtObj.mjOBJ_SITE and name in shared:
                name = f"{name}_site"
            if name not in poses:
                raise Disagreement(f"{name!r} is missing here")
            # MuJoCo takes a site that is turned by less than about 1e-6 rad as not turned at all
            size = SAME_FRAME if kind == mujoco.mjtObj.mjOBJ_SITE and peer.site_sameframe[k] else 1.0
            near(f"place of {name!r}", poses[name].translation, places[k], size)
            near(f"orientation of {name!r}", poses[name].rotation.ravel(), turns[k], size)


def value(robot: Robot, name: str, **given) -> np.ndarray:
    """A function by the reference algorithm on NumPy arrays: nothing is compiled."""
    function = function_named(name)
    results = arrays.run_on_arrays(function, Setting(robot), function.algorithm(None), given)
    return next(iter(results.values()))


def near(what: str, mine, theirs, scale: float = 0.0) -> None:
    mine, theirs = np.asarray(mine, dtype=float), np.asarray(theirs, dtype=float)
    finite = np.isfinite(theirs)
    if not np.array_equal(np.isfinite(mine), finite) or not np.array_equal(mine[~finite], theirs[~finite]):
        raise Disagreement(f"{what}: {mine} here, {theirs} there")
    scale = max(scale, float(np.abs(theirs[finite]).max(initial=0.0)), 1e-12)
    if float(np.abs(mine[finite] - theirs[finite]).max(initial=0.0)) > TOLERANCE * scale:
        raise Disagreement(f"{what}: {mine} here, {theirs} there")
