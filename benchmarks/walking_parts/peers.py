"""Other packages on the same recordings; runs with a Python that has them: ``peers.py NAME DATA.npz OUT.npz``.

``figaroh``: its regressor of joint torques and its regressor of the six rows of the base, which needs the forces of the
feet. ``mujoco.sysid``: rollouts of MuJoCo, the simulator that made the recordings, over short windows that begin at
recorded states, with contact; masses, centres and friction of all bodies and joints are unknown.
"""

from __future__ import annotations

import sys

import numpy as np

WINDOW, WINDOWS, ITERATIONS = 0.1, 20, 5


def figaroh(data) -> dict:
    """θ (bodies, 10) as Pinocchio has it: m, m c, inertia (xx, xy, yy, xz, yz, zz) about the origin."""
    import pinocchio as pin
    from figaroh.tools.regressor import build_regressor_basic
    from figaroh.tools.robot import Robot

    robot = Robot(str(data["urdf"]), package_dirs=".", isFext=True)
    model = robot.model
    names = [str(name) for name in data["joints"]]
    order = [model.joints[model.getJointId(name)].idx_v for name in names]
    q, v, a = data["q"], data["v"], data["a"]  # (N, 7 + n): position, quaternion xyzw, joints
    Q, V, A = np.zeros((len(q), model.nq)), np.zeros((len(q), model.nv)), np.zeros((len(q), model.nv))
    Q[:, :7], V[:, :6], A[:, :6] = q[:, :7], v[:, :6], a[:, :6]
    for k, place in enumerate(order):
        Q[:, place + 1], V[:, place], A[:, place] = q[:, 7 + k], v[:, 6 + k], a[:, 6 + k]
    settings = {
        "is_external_wrench": False,
        "is_joint_torques": True,
        "has_friction": True,
        "has_actuator_inertia": True,
    }
    settings |= {
        "has_joint_offset": True,
        "has_coupled_wrist": False,
        "force_torque": None,
        "act_idxv": order,
    }
    try:
        build_regressor_basic(robot, Q[:5], V[:5], A[:5], settings)
        joint_rows = "works"
    except Exception as error:
        joint_rows = f"{type(error).__name__}: {error}"
    wrench = settings | {"is_joint_torques": False, "is_external_wrench": True, "has_friction": False}
    wrench |= {
        "has_actuator_inertia": False,
        "has_joint_offset": False,
        "force_torque": ["Fx", "Fy", "Fz", "Mx", "My", "Mz"],
    }
    W = build_regressor_basic(robot, Q, V, A, wrench)
    y = data["wrench"].T.reshape(-1)  # forces, then moments, as rows of the regressor
    bodies = [model.inertias[k] for k in range(1, model.njoints)]
    prior = np.concatenate([body.toDynamicParameters() for body in bodies])
    scale = np.linalg.norm(W, axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    change = np.linalg.lstsq(W / scale, y - W @ prior, rcond=1e-6)[0] / scale
    theta = (prior + change).reshape(-1, 10)
    return {
        "joint_rows": joint_rows,
        "theta": theta,
        "bodies": np.array(list(model.names)[1:]),
        "pin": pin.__version__,
    }


def sysid(data) -> dict:
    """Bodies as (m, m c, inertia (xx, xy, yy, xz, yz, zz) about the origin), damping, friction and rotors of joints."""
    import mujoco
    from mujoco import sysid as library

    spec = mujoco.MjSpec.from_string(str(data["xml"]))
    names = [str(name) for name in data["joints"]]
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    for name in names:
        for kind in ("JOINTPOS", "JOINTVEL"):
            spec.add_sensor(
                name=f"{name}_{kind}",
                type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=name,
            )
    model = spec.compile()
    t, q, v, tau = (data[key] for key in ("t", "qpos", "qvel", "tau"))
    rate = (len(t) - 1) / (t[-1] - t[0])
    length = round(WINDOW * rate)
    starts = np.linspace(0, len(t) - length - 2, WINDOWS).astype(int)
    joint_columns = np.stack([q[:, 7:], v[:, 6:]], axis=2).reshape(len(t), -1)
    states, controls, sensors = [], [], []
    for s in starts:
        states.append(library.create_initial_state(model, q[s], v[s]))
        part = slice(s, s + length)
        fine = np.arange(0, t[part][-1] - t[s] + 1e-9, model.opt.timestep)
        held = tau[part][np.minimum((fine * rate + 1e-6).astype(int), length - 1)]
        controls.append(library.TimeSeries(fine, held))
        sensors.append(library.TimeSeries.from_names(t[part] - t[s], joint_columns[part], model))
    params = library.ParameterDict()
    bodies = [str(name) for name in data["bodies"]]
    # Its pseudo-inertias do not compile with MuJoCo 4.0.0, even at the values of the file ("mass and inertia of moving
    # bodies must be larger than mjMINVAL"). So masses and centres are unknown; rotational inertias are the true ones.
    for name, (m, hx, hy, hz, *_) in zip(bodies, data["before"], strict=True):
        params.add(library.body_inertia_param(spec, model, name, library.InertiaType.MassIpos))
        params[f"{name}_inertia"].value[:] = (m, hx / m, hy / m, hz / m)
    for name in names:
        for key, top in (("damping", 5.0), ("frictionloss", 2.0), ("armature", 0.1)):

            def change(s, p, name=name, key=key):
                joint = s.joint(name)
                old = getattr(joint, key)
                setattr(
                    joint, key, np.full(np.shape(old), p.value[0]) if np.shape(old) else float(p.value[0])
                )

            params.add(library.Parameter(f"{name}_{key}", 0.05 * top, 0.0, top, modifier=change))
    sequences = library.ModelSequences(
        "walk", spec, [f"w{k}" for k in range(WINDOWS)], states, controls, sensors
    )
    residual = library.build_residual_fn(models_sequences=[sequences])
    best, _ = library.optimize(
        initial_params=params, residual_fn=residual, optimizer="mujoco", verbose=False, max_iters=ITERATIONS
    )
    fitted = spec.copy()
    library.apply_param_modifiers_spec(best, fitted)
    found = fitted.compile()
    theta = []
    for name in bodies:
        body = found.body(name)
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, body.iquat)
        R = R.reshape(3, 3)
        m, c = float(body.mass[0]), body.ipos
        J = R @ np.diag(body.inertia) @ R.T + m * (c @ c * np.eye(3) - np.outer(c, c))
        theta.append([m, *(m * c), J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]])
    place = [found.joint(name).dofadr[0] for name in names]
    numbers = {key: getattr(found, f"dof_{key}")[place] for key in ("damping", "frictionloss", "armature")}
    return {"theta": np.array(theta), "bodies": np.array(bodies), "version": mujoco.__version__, **numbers}


if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    np.savez(target, **{"figaroh": figaroh, "sysid": sysid}[name](np.load(source)))
