"""Scenes of MJCF files with a floor: contacts as the file says, beside MuJoCo's simulation of the same file.

Every scene file below ``--folder`` is loaded by both without geoms that are meshes (for collections without mesh
files), with ``lw.load(contact=True)`` and by MuJoCo. Both then hold the pose of the file's first keyframe by the same
PD law at every joint (``--frequency`` times the inertia that the joint moves) for one second. The table has the height
of the base and the total normal force with the floor, the mean of the last tenth of a second. Contact is rigid here;
MuJoCo's is as soft as ``solref`` and ``solimp`` of the file say: the depth to which its feet sink is listed, and added
to its height. A robot stands where its speed is small. Files that are refused are listed with the reason.

    python benchmarks/contact_files.py [--folder FOLDER] [--only TEXT] [--count N]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from pathlib import Path

import mujoco
import numpy as np

import linkwise as lw
from linkwise.robot.engine_coordinates import coordinates

STEP, DURATION = 0.002, 1.0
FOLDER = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mjcf"


def without_meshes(path: Path) -> str:
    """The file as one text, without geoms that are meshes, textures, and what refers to them."""
    spec = mujoco.MjSpec.from_file(str(path))
    lost = set()
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH or geom.meshname:
            lost.add(geom.name)
            spec.delete(geom)
    for pair in list(spec.pairs):
        if {pair.geomname1, pair.geomname2} & lost:
            spec.delete(pair)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for each in (*spec.meshes, *spec.textures, *spec.skins, *spec.sensors):
        spec.delete(each)
    for geom in spec.geoms:
        geom.material = ""
    spec.compile()
    return spec.to_xml()


def held(text: str, frequency: float) -> tuple[lw.Robot, np.ndarray, np.ndarray]:
    """(robot, (height, force, speed) here, (height, force, speed, depth) in MuJoCo)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scene.xml")
        file.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = lw.load(file, contact=True)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = STEP
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    model.actuator_gainprm[:], model.actuator_biasprm[:] = 0.0, 0.0
    data.qvel[:] = 0.0
    # the lowest point at the floor, so that the drop is that of the sag of the joints alone
    free = [k for k in range(model.njnt) if model.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE]
    if not free or robot.coordinate_joints[0].type != "floating":
        raise lw.ModelError("no robot with a free base: nothing stands")
    between = coordinates(robot, "mujoco", model)
    q = between.own_positions(data.qpos)
    lowest = robot.contact_gaps(q).min()
    q[2] -= lowest
    data.qpos[2] -= lowest
    inertia = np.diagonal(robot.mass_matrix(q))[6:]
    least = 1.0 / np.diagonal(robot.inverse_mass_matrix(q))[6:]  # what a step of a PD law must be stable with
    stiff = np.minimum(frequency**2 * inertia, 0.2 * least / STEP**2)
    damping = np.minimum(1.4 * frequency * inertia, 0.4 * least / STEP)
    target, qd = q.copy(), np.zeros(robot.dof)
    ours, theirs = [], []
    n = round(DURATION / STEP)
    for k in range(n):
        tau = np.zeros(robot.dof)
        tau[6:] = stiff * robot.difference(q, target)[6:] - damping * qd[6:]
        q, qd, impulse = robot.contact_step(q, qd, tau, step=STEP)
        mq = between.own_positions(data.qpos)
        mv = between.own_velocities(mq, data.qvel)
        push = np.zeros(robot.dof)
        push[6:] = stiff * robot.difference(mq, target)[6:] - damping * mv[6:]
        data.qfrc_applied[:] = between.torques(mq, push)
        mujoco.mj_step(model, data)
        if k >= 0.9 * n:
            ours.append((q[2], impulse[:, 2].sum() / STEP, np.abs(qd).max()))
            depth = max((-contact.dist for contact in data.contact), default=0.0)
            theirs.append((data.qpos[2] + depth, floor_force(model, data), np.abs(data.qvel).max(), depth))
    return robot, np.mean(ours, axis=0), np.mean(theirs, axis=0)


def floor_force(model, data) -> float:
    """The vertical force of all contacts with the world [N]."""
    total, force = 0.0, np.zeros(6)
    for k in range(data.ncon):
        contact = data.contact[k]
        bodies = [model.body_weldid[model.geom_bodyid[g]] for g in contact.geom]
        if 0 in bodies:
            mujoco.mj_contactForce(model, data, k, force)
            way = contact.frame.reshape(3, 3).T @ force[:3]
            total += way[2] * (1.0 if bodies[0] == 0 else -1.0)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="text that the path of a file contains")
    parser.add_argument("--count", type=int, default=1000, help="largest number of files")
    parser.add_argument("--frequency", type=float, default=60.0, help="of the PD law [rad/s]")
    options = parser.parse_args()
    files = [path for path in sorted(options.folder.glob("**/*scene*.xml")) if options.only in str(path)]
    if not files:
        raise SystemExit(print(f"no scene files in {options.folder}"))
    print(
        f"{'file':44} {'candidates':>10} {'height [m]':>16} {'force [N]':>18} {'speed':>13} {'sinks [mm]':>10}  verdict"
    )
    for path in files[: options.count]:
        name = str(path.relative_to(options.folder))
        try:
            robot, ours, theirs = held(without_meshes(path), options.frequency)
        except (lw.LinkwiseError, ValueError, RuntimeError) as error:
            print(f"{name:44} refused: {str(error).splitlines()[0][-110:]}")
            continue
        near = np.abs(ours[:2] / theirs[:2] - 1.0).max()
        still = max(ours[2], theirs[2]) < 0.1
        if not np.isfinite(ours).all():
            print(f"{name:44} {len(robot.contact_names):10d} diverges")
            continue
        verdict = f"{'stands' if still else 'moves'}, {100 * near:.2f} % apart"
        print(
            f"{name:44} {len(robot.contact_names):10d} {ours[0]:7.4f} {theirs[0]:7.4f}  {ours[1]:8.2f} "
            f"{theirs[1]:8.2f} {ours[2]:6.2f} {theirs[2]:6.2f} {1e3 * theirs[3]:10.1f}  {verdict}"
        )


if __name__ == "__main__":
    main()
