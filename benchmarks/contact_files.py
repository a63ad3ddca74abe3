"""Scenes of MJCF files with a floor: contacts as the file says, beside MuJoCo's simulation of the same file.

Every scene file below ``--folder`` is loaded by both without geoms that are meshes (for collections without mesh
files), with ``lw.load(contact=True)`` and by MuJoCo. Both then hold the pose of the file's first keyframe by the same
PD law at every joint (``--frequency`` times the inertia that the joint moves) for one second; free bodies fall. The
table has the height of the first free body and the total normal force with the world, the mean of the last tenth of a
second, and the largest difference of joint positions [rad or m]. Contact is rigid here; MuJoCo's is as soft as
``solref`` and ``solimp`` of the file say: the depth to which its feet sink is listed, and added to its height. A robot
stands where its speed is small. Files that are refused are listed with the reason. ``--markdown`` prints the table of
docs/contact.md.

    python benchmarks/contact_files.py [--folder FOLDER] [--only TEXT] [--count N] [--markdown]
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import linkwise as lw
from linkwise.robot.engine_coordinates import coordinates

STEP, DURATION = 0.002, 1.0
FOLDER = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mjcf"


class Missing(Exception):
    """What a scene needs and the collection does not have."""


def without_meshes(path: Path) -> str:
    """The file as one text, without geoms that are meshes, textures, and what refers to them."""
    spec = mujoco.MjSpec.from_file(str(path))
    lost, touching, left = set(), 0, 0
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH or geom.meshname:
            lost.add(geom.name)
            touching += bool(geom.contype or geom.conaffinity)
            spec.delete(geom)
        elif geom.type != mujoco.mjtGeom.mjGEOM_PLANE:
            left += bool(geom.contype or geom.conaffinity)
    for pair in list(spec.pairs):
        if {pair.geomname1, pair.geomname2} & lost:
            spec.delete(pair)
    left += len(spec.pairs)
    if not left:
        raise Missing(f"all {touching} geoms that touch are meshes, whose files the collection does not have")
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for each in (*spec.meshes, *spec.textures, *spec.skins, *spec.sensors):
        spec.delete(each)
    try:
        spec.compile()
    except ValueError as error:
        if "mass and inertia" in str(error):
            raise Missing(
                "masses of bodies are those of meshes, whose files the collection does not have"
            ) from error
        raise
    return re.sub(r' material="[^"]*"', "", spec.to_xml())


@dataclass(frozen=True)
class Outcome:
    """One second of a scene on both sides: (height, force, speed) here and in MuJoCo, how deep it is there, and how far
    joints are apart."""

    candidates: int
    ours: np.ndarray
    theirs: np.ndarray
    depth: float
    apart: float
    is_free: bool
    pairs_left: str
    """What the warning says about pairs of links that are left out."""

    @property
    def verdict(self) -> str:
        if not np.isfinite(self.ours).all():
            return "diverges"
        still = max(self.ours[2], self.theirs[2]) < 0.1
        if not self.is_free:
            return f"{'holds' if still else 'moves'}, joints {self.apart:.1g} apart"
        size = np.maximum(np.abs(self.theirs[:2]), 1e-3)
        near = (np.abs(self.ours[:2] - self.theirs[:2]) / size).max()
        if near > 0.5 and self.pairs_left:
            return f"another motion: {self.pairs_left}"
        return f"{'stands' if still else 'moves'}, {100 * near:.2f} % apart"


def held(text: str, frequency: float) -> Outcome:
    """Load and hold a scene on both sides."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scene.xml")
        file.write_text(text)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            robot = lw.load(file, contact=True)
    left = re.search(
        r"\d+ pairs of (links|shapes)[^(:]*\([^)]*\) are left out", " ".join(str(w.message) for w in said)
    )
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = STEP
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    model.actuator_gainprm[:], model.actuator_biasprm[:] = 0.0, 0.0
    data.qvel[:] = 0.0
    between = coordinates(robot, "mujoco", model)
    q = between.own_positions(data.qpos)
    starts = np.cumsum([0, *(joint.dof for joint in robot.coordinate_joints)])
    single = [int(k) for k, joint in zip(starts, robot.coordinate_joints, strict=False) if joint.dof == 1]
    free = [joint.type == "floating" for joint in robot.coordinate_joints]
    place = (
        int(np.cumsum([0, *(joint.nq for joint in robot.coordinate_joints)])[free.index(True)])
        if any(free)
        else None
    )
    if free[0]:  # the lowest point at the floor, so that the drop is that of the sag of the joints alone
        q[2] -= robot.contact_gaps(q).min()
        data.qpos[:] = between.positions(q)
    inertia = np.diagonal(robot.mass_matrix(q))[single]
    least = (
        1.0 / np.diagonal(robot.inverse_mass_matrix(q))[single]
    )  # what a step of a PD law must be stable with
    stiff = np.minimum(frequency**2 * inertia, 0.2 * least / STEP**2)
    damping = np.minimum(1.4 * frequency * inertia, 0.4 * least / STEP)

    def pushed(q, qd, target):
        tau = np.zeros(robot.dof)
        tau[single] = stiff * robot.difference(q, target)[single] - damping * qd[single]
        return tau

    target, qd = q.copy(), np.zeros(robot.dof)
    ours, theirs = [], []
    n = round(DURATION / STEP)
    for k in range(n):
        gone = robot.contact_frames(q)[:, 2, 2] if k >= 0.9 * n else None
        q, qd, impulse = robot.contact_step(q, qd, pushed(q, qd, target), step=STEP)
        mq = between.own_positions(data.qpos)
        mv = between.own_velocities(mq, data.qvel)
        data.qfrc_applied[:] = torques(between, mq, pushed(mq, mv, target))
        mujoco.mj_step(model, data)
        if gone is not None:
            height, force = q[place + 2] if place is not None else 0.0, gone @ impulse[:, 2] / STEP
            ours.append((height, force, np.abs(qd).max()))
            depth = max((-contact.dist for contact in data.contact), default=0.0)
            height = mq[place + 2] + depth if place is not None else 0.0
            theirs.append((height, floor_force(model, data), np.abs(data.qvel).max(), depth))
    here, there = np.mean(ours, axis=0), np.mean(theirs, axis=0)
    apart = np.abs(robot.difference(q, between.own_positions(data.qpos)))[single].max(initial=0.0)
    return Outcome(
        len(robot.contact_names),
        here,
        there[:3],
        there[3],
        float(apart),
        place is not None,
        left.group() if left else "",
    )


def torques(between, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Torques as MuJoCo numbers them; where joints follow others there, those of the joints that lead."""
    if between.square:
        return between.torques(q, tau)
    found = np.zeros(between.nv)
    for part in between.parts:
        if part.kind == "one" and part.joint.mimic is None:
            found[part.their_v] = tau[part.v]
    return found


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


def row(name: str, outcome: Outcome | str, markdown: bool) -> str:
    """One line of the table."""
    if isinstance(outcome, str):
        return f"| {name} | | | | {outcome} |" if markdown else f"{name:38} refused: {outcome}"
    (height, force, speed), (h, f, s) = outcome.ours, outcome.theirs
    if markdown:
        numbers = f"{height:.3f} / {h:.3f} | {force:.1f} / {f:.1f}"
        return f"| {name} | {outcome.candidates} | {numbers} | {outcome.verdict} |"
    return (
        f"{name:38} {outcome.candidates:10d} {height:7.4f} {h:7.4f}  {force:8.2f} {f:8.2f} {speed:6.2f} {s:6.2f} "
        f"{1e3 * outcome.depth:10.1f}  {outcome.verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="text that the path of a file contains")
    parser.add_argument("--count", type=int, default=1000, help="largest number of files")
    parser.add_argument("--frequency", type=float, default=60.0, help="of the PD law [rad/s]")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    files = [path for path in sorted(options.folder.glob("**/*scene*.xml")) if options.only in str(path)]
    if not files:
        raise SystemExit(print(f"no scene files in {options.folder}"))
    if options.markdown:
        print("| scene | candidates | height [m] / MuJoCo | force [N] / MuJoCo | after 1 s |")
        print("|---|---|---|---|---|")
    else:
        names = f"{'height [m]':>16} {'force [N]':>18} {'speed':>13} {'sinks [mm]':>10}  verdict"
        print(f"{'file':38} {'candidates':>10} {names}")
    for path in files[: options.count]:
        outcome: Outcome | str
        try:
            outcome = held(without_meshes(path), options.frequency)
        except (Missing, lw.LinkwiseError, ValueError, RuntimeError) as error:
            outcome = str(error).splitlines()[0][-200:]
        print(row(str(path.relative_to(options.folder)), outcome, options.markdown), flush=True)


if __name__ == "__main__":
    main()
