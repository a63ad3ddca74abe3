"""The largest torques of actuators that MuJoCo itself computes, to compare torque limits with."""

from __future__ import annotations

import math

import mujoco
import numpy as np

FAR = 1e9  # controls, activations, positions and speeds at which every clipped force is at its limit
SAMPLES = 64
ONE_AXIS = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
FILTERS = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)


def largest_efforts(peer: mujoco.MjModel) -> dict[str, float]:
    """For each hinge or slide joint with actuators; infinity where nothing bounds the force. Changes ``peer.opt``."""
    rng = np.random.default_rng(0)
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    peer.opt.gravity[:] = 0.0  # MuJoCo adds weights that motors carry (actuatorgravcomp)
    data = mujoco.MjData(peer)
    joints = [j for j in range(peer.njnt) if mujoco.mjtJoint(peer.jnt_type[j]) in ONE_AXIS]
    places, dofs = peer.jnt_qposadr[joints], peer.jnt_dofadr[joints]
    largest = np.zeros(len(joints))
    for k in range(SAMPLES):
        side = (
            (lambda n, k=k: rng.choice([-FAR, FAR], n))
            if k > 1
            else (lambda n, k=k: np.full(n, FAR - 2 * FAR * k))
        )
        data.qpos[places], data.qvel[dofs], data.ctrl[:] = side(len(joints)), side(len(joints)), side(peer.nu)
        if k <= 1:
            data.ctrl[:] *= -1  # servos pull the other way
        for i in np.flatnonzero(peer.actuator_actnum):
            act = side(1)[0] * (-1 if k <= 1 else 1)
            if peer.actuator_ctrllimited[i] and mujoco.mjtDyn(peer.actuator_dyntype[i]) in FILTERS:
                act = np.clip(act, *peer.actuator_ctrlrange[i])
            if peer.actuator_actlimited[i]:
                act = np.clip(act, *peer.actuator_actrange[i])
            data.act[peer.actuator_actadr[i] :][: peer.actuator_actnum[i]] = act
        mujoco.mj_fwdPosition(peer, data)
        mujoco.mj_fwdVelocity(peer, data)
        mujoco.mj_fwdActuation(peer, data)
        largest = np.maximum(largest, np.abs(data.qfrc_actuator[dofs]))
    return {
        peer.joint(j).name: math.inf if effort > FAR / 1e3 else float(effort)
        for j, effort in zip(joints, largest, strict=True)
        if effort
    }
