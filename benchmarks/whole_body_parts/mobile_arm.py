"""The mobile arm of ``whole_body.py``: a Panda on a base that drives in the plane, at rest, as a problem that every
library has: the centre of mass and a posture within bounds of the joints."""

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import control

PEERS = Path(__file__).parent / "arm_peers.py"
LIBRARIES = ("tsid", "placo", "pink", "mink")
WEIGHTS = (1.0, 0.05)
LIMIT = np.concatenate([[0.6, 0.6, 1.0], np.full(7, 1.2)])


class MobileArm:
    """Random states at rest; wanted accelerations that some joints may not reach."""

    def __init__(self, states: int):
        rng = np.random.default_rng(1)
        base = (40.0, (0.0, 0.0, 0.2), (1.0, 1.0, 1.5))
        self.robot = lw.load("panda").with_base("planar").with_payload(*base, frame="base")
        self.states, n = states, self.robot.dof
        tasks = [
            control.CenterOfMassTask(weight=WEIGHTS[0], frequency=0.0),
            control.PostureTask(weight=WEIGHTS[1], frequency=0.0),
        ]
        limits = control.MotionLimits(torque=False, velocity=LIMIT, position=False, period=1.0, ahead=False)
        self.law = control.WholeBody(self.robot, tasks, limits)
        rest = np.array([0.0, 0.0, 0.0, 0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
        self.q = rest + 0.2 * rng.normal(size=(states, n))
        self.com = 0.3 * rng.normal(size=(states, 3)) * np.array([1.0, 1.0, 0.3])
        self.posture = 0.9 * rng.normal(size=(states, n))
        self.targets = np.zeros((states, self.law.input_shapes()["targets"][0]))
        for part, wanted in zip(self.law.target_slices(), (self.com, self.posture), strict=True):
            self.targets[:, part[2]] = wanted

    def arguments(self) -> list[np.ndarray]:
        law, count = self.law, self.states
        return [
            self.q, np.zeros((count, self.robot.dof)), self.targets,
            np.tile(law.default_gains.ravel(), (count, 1)), np.zeros((count, law.rows.count)),
        ]  # fmt: skip

    def by(self, library: str, interpreter: str) -> dict | None:
        """Accelerations (or displacements) and times of another library; None where it cannot be asked."""
        names = [joint.name for joint in self.robot.coordinate_joints]
        with tempfile.TemporaryDirectory() as folder:
            urdf, asked, answered = (
                Path(folder) / name for name in ("arm.urdf", "asked.npz", "answered.npz")
            )
            lw.save(self.robot, urdf)
            text = urdf.read_text()  # joints without a limit have two numbers in Pinocchio
            bounded = 'type="revolute">\\1<limit lower="-1000" upper="1000" '
            urdf.write_text(re.sub(r'type="continuous">(.*?)<limit ', bounded, text, flags=re.DOTALL))
            np.savez(
                asked, urdf=str(urdf), names=names, q=self.q, com=self.com, posture=self.posture, limit=LIMIT,
                weights=WEIGHTS,
            )  # fmt: skip
            command = [interpreter, str(PEERS), library, str(asked), str(answered)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode:
                print(f"  {library}: {(run.stderr.strip().splitlines() or [str(run.returncode)])[-1]}")
                return None
            return dict(np.load(answered))

    def compare(
        self, solution: control.WholeBodySolution, one: float, many: float, peers: dict[str, str]
    ) -> None:
        """A line for every library."""
        for library, interpreter in peers.items():
            found = self.by(library, interpreter)
            if found is None:
                continue
            away = np.abs(found["a"] - solution.qdd).max() / np.abs(solution.qdd).max()
            times = 1e6 * found["times"]
            print(
                f"  {library}: accelerations differ by {away:.1e} of the largest in {len(times)} states, ",
                end="",
            )
            print(
                f"{np.median(times):.1f} µs median; over ours {1e-6 * np.median(times) / one:.1f} for one state, ",
                end="",
            )
            print(f"{1e-6 * times.mean() / many:.1f} in a batch")
