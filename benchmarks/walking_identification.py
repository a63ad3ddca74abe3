"""Identification of robots that walk: recordings of MuJoCo with contact, noise and wrong contact flags.

    python benchmarks/walking_identification.py --go2 go2.xml --g1 g1.xml --peers PYTHON

The robot in the file is the truth. What is identified starts from masses that are wrong by up to 30 %, centres that
are wrong by up to 15 mm and no friction. Recorded are joints, torques, an inertial measurement unit and a state
estimator at 500 Hz, all with noise; 5 % of the contact flags are wrong. Columns:

    parameters   ‖β − β*‖ of base parameters of links, each in units of what it causes along the second recording
    held out     residual without foot forces on a second recording, as recorded, in % of the torques without them
    against truth the same without noise, with the forces that the true robot needs

``--peers`` is a Python with figaroh and mujoco[sysid]; without files a small quadruped of our own is used.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from walking_parts import simulated

import linkwise as lw
from linkwise import identify
from linkwise.identify.estimation.clustered import kind_of
from linkwise.identify.walking import rotations
from linkwise.identify.walking.contacts import feet_of
from linkwise.identify.walking.judging import Judge
from linkwise.identify.walking.observer import BASE, floating_base_of
from linkwise.identify.walking.states import condition_walking

FIELDS = ("t", "q", "dq", "tau", "base_pos", "base_quat", "base_vel", "imu_gyro", "imu_acc", "contacts")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--go2", help="MJCF file")
    parser.add_argument("--g1", help="MJCF file")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each recording")
    parser.add_argument("--friction", default="smooth")
    parser.add_argument("--peers", help="a Python with figaroh and mujoco[sysid]")
    parser.add_argument("--only", nargs="*", default=["figaroh", "sysid"], help="peers")
    arguments = parser.parse_args()
    robots = {}
    if arguments.go2:
        robots["Go2"] = simulated.go2(arguments.go2)
    if arguments.g1:
        robots["G1"] = simulated.g1(arguments.g1)
    for name, body in (robots or {"small quadruped": simulated.small()}).items():
        with tempfile.TemporaryDirectory() as folder:
            compare(name, body, arguments, Path(folder))


def compare(name: str, body: simulated.Body, arguments, folder: Path) -> None:
    _, spec = body.model()
    (folder / "robot.xml").write_text(body.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = lw.load(folder / "robot.xml")
    prior = perturbed(truth, np.random.default_rng(0))
    feet = [f"{link}:{','.join(map(str, place))},{radius}" for link, place, radius in body.feet.values()]
    recordings = [simulated.record(body, arguments.seconds, seed) for seed in (1, 2)]
    logs = []
    for k, recording in enumerate(recordings):
        np.savez(folder / f"run{k}.npz", **{key: recording[key] for key in FIELDS})
        logs.append(identify.read_log(folder / f"run{k}.npz", prior))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = identify.identify(prior, logs[0], validation=logs[1], friction=arguments.friction, feet=feet)
    spent = time.process_time() - begun
    table = Table(truth, found, logs[1], recordings[1], feet)
    condition = found.excitation.condition
    print(
        f"\n{name}: {truth.dof - BASE} joints, {len(found.base)} base parameters, condition {condition:.3g}"
    )
    for line in found.signals[0].record:
        print(f"  {line}")
    table.row("robot before", prior)
    table.row(f"Linkwise, friction {arguments.friction}, {spent:.0f} s", found.robot)
    table.row("Linkwise, reduced model", found.reduction.robot)
    table.row("true robot", truth)
    intervals(table.true_values(found.base), found)
    if arguments.peers:
        peers(table, body, spec, prior, recordings[0], arguments, folder)


def intervals(true: np.ndarray, found: identify.Identification) -> None:
    """How many true base parameters are inside the 95 % intervals of saved values, and of least squares."""
    rows = found.table()
    ends = {
        "saved values": (np.array([row.lower for row in rows]), np.array([row.upper for row in rows])),
        "least squares": found.estimate.interval(),
    }
    kinds = np.array([kind_of(row.label) for row in rows])
    for name, (lower, upper) in ends.items():
        inside = (lower <= true) & (true <= upper)
        shares = [f"{kind} {100 * np.mean(inside[kinds == kind]):.0f} %" for kind in dict.fromkeys(kinds)]
        print(f"  true base parameters inside the 95 % intervals of {name}: {', '.join(shares)}")


def perturbed(robot: lw.Robot, rng: np.random.Generator) -> lw.Robot:
    """Wrong masses and centres, no friction and no rotors."""
    given = {}
    for k, body in enumerate(robot.labelled_bodies()):
        mass = body.mass * rng.uniform(0.7, 1.3)
        com = np.asarray(body.com) + rng.uniform(-0.015, 0.015, 3)
        c = np.asarray(body.com)
        second = body.pseudo_inertia[:3, :3] - body.mass * np.outer(c, c)
        own = rng.uniform(0.7, 1.3) * second
        inertia = np.trace(own) * np.eye(3) - own + mass * (com @ com * np.eye(3) - np.outer(com, com))
        values = [mass, *(mass * com), *inertia[np.triu_indices(3)]]
        given |= dict(zip(robot.parameter_labels[10 * k : 10 * k + 10], values, strict=True))
    for label in robot.parameter_labels[10 * len(robot.labelled_bodies()) :]:
        given[label] = 0.0
    return robot.with_parameters(given)


class Table:
    """Rows of models, judged on the second recording."""

    def __init__(self, truth, found, log, recording, feet):
        self.truth, self.found = truth, found
        self.feet = feet_of(truth, feet)
        source = found.signals[0].source
        signals = condition_walking(truth, log, source, cutoff=found.signals[0].cutoff)
        near = np.searchsorted(0.5 * (log.t[1:] + log.t[:-1]), signals.t)
        held = recording["true_contacts"][near]
        reach = int(0.03 * signals.rate) + 1
        held = np.stack([np.convolve(h, np.ones(2 * reach + 1), "same") > 0 for h in held.T], axis=1)
        held = np.concatenate([held, np.zeros((len(held), 1), bool)], axis=1)
        self.judge = Judge(truth, signals, self.feet, held, None)
        self.clean = self.judge.robot(truth).predicted
        self.base = floating_base_of(truth, ((),) * (truth.dof - BASE))
        Y = np.asarray(truth.regressor(*(x[::10] for x in self.judge.states)))
        Y = Y[..., list(self.base.columns)].reshape(-1, len(self.base))
        self.sizes = np.sqrt((Y**2).mean(axis=0))
        print_header()

    def true_values(self, base) -> np.ndarray:
        known = dict(zip(self.truth.parameter_labels, self.truth.parameters.tolist(), strict=True))
        return base.combination @ np.array(
            [known.get(label, 0.0) for label in self.found.fit.regression.labels]
        )

    def peer(self, name: str, prior: lw.Robot, result: dict, by_joint: bool) -> None:
        """A row of what another package found, or why its parameters are no robot."""
        try:
            robot = from_theta(prior, result, by_joint)
        except lw.ModelError as error:
            print(f"| {name:44s} | no possible robot: {error}")
        else:
            self.row(name, robot)

    def row(self, name: str, robot: lw.Robot) -> None:
        judged = self.judge.robot(robot)
        off = judged.predicted - self.clean
        size = np.linalg.norm(self.clean)
        count = self.base.combination.shape[1]
        beta, true = (self.base.combination @ r.parameters[:count] for r in (robot, self.truth))
        error = np.linalg.norm((beta - true) * self.sizes) / np.linalg.norm(true * self.sizes)
        mass = sum(b.mass for b in robot.labelled_bodies()) / sum(
            b.mass for b in self.truth.labelled_bodies()
        )
        shown = f"{100 * error:9.2f} %  {100 * (mass - 1):+9.2f} %  {judged.total:9.2f} %"
        print(f"| {name:44s} | {shown}  {100 * np.linalg.norm(off) / size:9.2f} % |")


def print_header() -> None:
    print(f"| {'':44s} | parameters  total mass   held out   against truth |")


def peers(table: Table, body, spec, prior, recording, arguments, folder: Path) -> None:
    """Other packages, in a process of their own."""
    xml = folder / "prior.xml"
    xml.write_text(spec.to_xml())
    urdf = folder / "prior.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior.save(urdf)
    text = re.sub(r'<joint[^>]*type="floating".*?</joint>', "", urdf.read_text(), flags=re.DOTALL)
    urdf.write_text(re.sub(r'<link name="world"\s*/>|<link name="world">\s*</link>', "", text))
    signals = table.found.signals[0]
    q, v, a = (x[::4] for x in signals.states)
    near = np.searchsorted(recording["t"], signals.t[::4])
    order = [3, 4, 5, 0, 1, 2, *range(BASE, prior.dof)]  # linear before angular
    np.savez(
        folder / "data.npz",
        urdf=str(urdf),
        xml=xml.read_text(),
        joints=np.array(prior.joint_names[1:]),
        bodies=np.array([joint.body_link for joint in prior.moving_joints]),
        before=np.array([body.parameters for body in prior.labelled_bodies()]),
        q=q,
        v=v[:, order],
        a=a[:, order],
        wrench=base_wrench(table.truth, recording)[near],
        t=recording["t"],
        qpos=np.concatenate([recording["base_pos"], recording["base_quat"], recording["q"]], axis=1),
        qvel=np.concatenate([recording["base_vel"], recording["imu_gyro"], recording["dq"]], axis=1),
        tau=recording["tau"],
    )
    script = Path(__file__).parent / "walking_parts" / "peers.py"
    for name in arguments.only:
        begun = time.monotonic()
        done = subprocess.run(
            [arguments.peers, script, name, folder / "data.npz", folder / f"{name}.npz"],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if done.returncode:
            print(f"| {name:44s} | failed: {' / '.join(done.stderr.strip().splitlines()[-3:])[:300]}")
            continue
        result = dict(np.load(folder / f"{name}.npz", allow_pickle=False))
        spent = time.monotonic() - begun
        if name == "figaroh":
            print(f"  figaroh, joint rows of a free-flyer: {result['joint_rows']}")
            table.peer(f"figaroh, base rows, exact foot forces, {spent:.0f} s", prior, result, True)
        else:
            table.peer(f"mujoco.sysid, MuJoCo {result['version']}, {spent:.0f} s", prior, result, False)


def base_wrench(truth, recording) -> np.ndarray:
    """Force and moment of all feet at the base, in its axes, (N, 6): exact, as force plates would show them."""
    quaternion = recording["true_base_quat"][:, [1, 2, 3, 0]]
    R, acc, spin = rotations.matrices(quaternion), recording["true_acc"], recording["true_spin"]
    q = np.concatenate([recording["true_base_pos"], quaternion, recording["true_q"]], axis=1)
    v = np.concatenate([spin, np.zeros((len(q), 3)), recording["true_dq"]], axis=1)
    a = np.concatenate([acc[:, 3:6], rotations.turned_back(R, acc[:, :3]), acc[:, 6:]], axis=1)
    rows = np.asarray(truth.inverse_dynamics(q, v, a))[:, :BASE]
    return np.concatenate([rows[:, 3:], rows[:, :3]], axis=1)


def from_theta(prior, result, by_joint: bool) -> lw.Robot:
    """The robot with bodies as another package found them; unknown friction stays that of the true robot's absence."""
    names = [str(name) for name in result["bodies"]]
    given = {}
    for k, joint in enumerate(prior.moving_joints):
        wanted = joint.name if by_joint else joint.body_link
        row = (
            names.index(wanted) if wanted in names else k
        )  # the first joint is the free-flyer, whatever its name
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = result["theta"][row]
        values = (m, hx, hy, hz, xx, xy, xz, yy, yz, zz)
        given |= dict(zip(prior.parameter_labels[10 * k : 10 * k + 10], values, strict=True))
    for key, label in (
        ("damping", "viscous_friction"),
        ("frictionloss", "coulomb_friction"),
        ("armature", "rotor_inertia"),
    ):
        if key in result:
            given |= {
                f"{joint.name}.{label}": float(x)
                for joint, x in zip(prior.moving_joints[1:], result[key], strict=True)
            }
    return prior.with_parameters(given)


if __name__ == "__main__":
    main()
