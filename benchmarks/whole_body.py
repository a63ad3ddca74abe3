"""Whole-body control beside other libraries: the same problem, the same solution, and how long it takes.

    python benchmarks/whole_body.py --urdf GO2.urdf --tsid PYTHON       # an interpreter that has tsid
    python benchmarks/whole_body.py --peer placo=PYTHON --peer pink=PYTHON      # for the mobile arm
    python benchmarks/whole_body.py --quick                             # no other library, a robot made here

Prints for every robot: how far torques and accelerations are from TSID's (largest, relative to the largest torque and
acceleration), whether all limits are kept, residuals, and processor times for one state and in batches on one core.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from whole_body_parts.four_legs import four_legs
from whole_body_parts.mobile_arm import LIBRARIES, LIMIT, MobileArm

import linkwise as lw
from linkwise import control
from linkwise.compiler.runtime import host

TSID = Path(__file__).parent / "whole_body_parts" / "tsid_problem.py"
FRICTION, SMALLEST, LARGEST, FORCE_WEIGHT, PERIOD = 0.6, 5.0, 800.0, 1e-3, 0.002
WEIGHTS = (1.0, 0.5, 0.05)
LARGER = 1e3
"""All weights that TSID gets are multiplied by this. The solution stays the same, but TSID adds 1e-8 to its cost of
every unknown, which moves the torques of a Talos by 1e-5 of the largest; so it moves them by 1e-8."""
CALLS = 8
"""Of one state between two readings of the clock, which take 0.6 µs; the same for other libraries."""
LEGS = {"feet": ("foot0", "foot1", "foot2", "foot3"), "base": "body", "corners": ()}
ROBOTS = {
    "go2": {"feet": ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), "base": "base", "corners": ()},
    "talos": {
        "feet": ("left_sole_link", "right_sole_link"), "base": "base_link",
        "corners": ((0.1, 0.06, 0.0), (0.1, -0.06, 0.0), (-0.1, 0.06, 0.0), (-0.1, -0.06, 0.0)),
    },
}  # fmt: skip


class Problem:
    """Wanted accelerations in random states around one position."""

    def __init__(
        self,
        robot: lw.Robot,
        spec: dict,
        stand: np.ndarray,
        states: int,
        torque,
        velocity: float,
        iterations: int | None = None,
    ):
        rng = np.random.default_rng(1)
        self.robot, self.spec, self.states = robot, spec, states
        limits = control.MotionLimits(
            torque=torque, velocity=velocity, position=False, period=PERIOD, ahead=False
        )
        corners = spec["corners"] or ((0.0, 0.0, 0.0),)
        self.least, self.most = (0.0, 1e4) if spec["corners"] else (SMALLEST, LARGEST)  # of a foot
        least, most = (0.0, None) if spec["corners"] else (SMALLEST, LARGEST)  # of a point
        supports = [
            control.Support(foot, corners, friction=FRICTION, smallest=least, largest=most, inside=False)
            for foot in spec["feet"]
        ]
        tasks = [
            control.CenterOfMassTask(weight=WEIGHTS[0], frequency=0.0),
            control.PoseTask(spec["base"], "turn", weight=WEIGHTS[1], frequency=0.0),
            control.PostureTask(weight=WEIGHTS[2], frequency=0.0),
            control.ForceTask(weight=FORCE_WEIGHT),
        ]
        self.law = control.WholeBody(robot, tasks, limits, supports=supports, iterations=iterations)
        motors, nq, n = len(self.law.motors), robot.nq, robot.dof
        self.q = np.tile(stand, (states, 1))
        self.q[:, 7:] += 0.1 * rng.normal(size=(states, nq - 7))
        self.qd = 0.2 * rng.normal(size=(states, n))
        self.com, self.turn = 2.0 * rng.normal(size=(states, 3)), 4.0 * rng.normal(size=(states, 3))
        self.posture = 10.0 * rng.normal(size=(states, motors))
        self.targets = np.zeros((states, self.law.input_shapes()["targets"][0]))
        for part, wanted in zip(self.law.target_slices(), (self.com, self.turn, self.posture), strict=False):
            at = slice(part[2].stop - wanted.shape[1], part[2].stop)
            self.targets[:, at] = wanted
        self.targets[:, self.law.target_slices()[1][0].stop - 1] = 1.0  # a quaternion

    def arguments(self) -> list[np.ndarray]:
        law, count = self.law, self.states
        return [
            self.q, self.qd, self.targets,
            np.tile(law.default_gains.ravel(), (count, 1)), np.ones((count, len(law.supports))),
            np.broadcast_to(law.cold_start, (count, len(law.cold_start))).copy(),
        ]  # fmt: skip


def by_tsid(problem: Problem, urdf: str, interpreter: str) -> dict | None:
    """What TSID gives, in our order of joints; None where it cannot be asked."""
    robot, law = problem.robot, problem.law
    joints = [joint.name for joint in robot.coordinate_joints][1:]
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "problem.npz", Path(folder) / "solution.npz"
        names = subprocess.run(
            [interpreter, "-c", "import sys, pinocchio as p; print(*list(p.buildModelFromUrdf(sys.argv[1], "
             "p.JointModelFreeFlyer()).names)[2:])", urdf], capture_output=True, text=True)  # fmt: skip
        if names.returncode:
            print(f"TSID: {interpreter} has no Pinocchio: {names.stderr.strip().splitlines()[-1]}")
            return None
        order = [joints.index(name) for name in names.stdout.split()]
        v = problem.qd[:, [3, 4, 5, 0, 1, 2, *(6 + k for k in order)]]
        q = np.hstack([problem.q[:, :7], problem.q[:, 7:][:, order]])
        np.savez(
            asked, urdf=urdf, feet=problem.spec["feet"], base=problem.spec["base"],
            corners=np.array(problem.spec["corners"]).reshape(-1, 3), q=q, v=v, com=problem.com, turn=problem.turn,
            posture=problem.posture[:, order], torque=law.bounds.torque[order], velocity=law.bounds.velocity[order],
            weights=LARGER * np.array(WEIGHTS), friction=FRICTION, smallest=problem.least, largest=problem.most,
            force_weight=LARGER * FORCE_WEIGHT, period=PERIOD,
        )  # fmt: skip
        run = subprocess.run(
            [interpreter, str(TSID), str(asked), str(answered)], capture_output=True, text=True
        )
        if run.returncode:
            print(f"TSID: {(run.stderr.strip().splitlines() or [str(run.returncode)])[-1]}")
            return None
        found = dict(np.load(answered))
    back = np.argsort(order)
    dv = found["dv"]
    found["tau"] = found["tau"][:, back]
    found["qdd"] = np.hstack([dv[:, 3:6], dv[:, :3], dv[:, 6:][:, back]])
    return found


def least(function, seconds: float, calls: int = 1) -> float:
    """The least processor time of a call [s], of so many between two readings of the clock."""
    function()
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.process_time()
        for _ in range(calls):
            function()
        best = min(best, (time.process_time() - begin) / calls)
    return best


def timed(law: control.WholeBody, problem: Problem | MobileArm, seconds: float) -> tuple[np.ndarray, float]:
    """(processor times for one state, of several states; for a state of a batch) [s]."""
    kernel, batch = law.kernel(), problem.arguments()
    for width in (1, host.lanes("float64")):
        kernel.native("float64", width)  # else the first calls run code that was compiled quickly
    results = tuple(np.empty(shape) for _, shape in kernel.outputs)
    one = []
    for k in range(min(problem.states, 32)):
        single = [np.ascontiguousarray(x[k]) for x in batch]
        one.append(least(lambda given=single: kernel(*given, out=results), seconds / 8, CALLS))
    one = np.array(one)
    many = least(lambda: kernel(*batch, threads=1), seconds) / problem.states
    print(
        f"  one state {1e6 * np.median(one):.1f} µs median, {1e6 * one.max():.1f} largest of {len(one)} ",
        end="",
    )
    print(f"(called from Python), in a batch of {problem.states} {1e6 * many:.2f} µs, one core")
    always = law.kernel(constant_time=True)
    always.native("float64", 1)
    single = [np.ascontiguousarray(x[0]) for x in batch]
    print(
        f"  in constant time {1e6 * least(lambda: always(*single, out=results), seconds, CALLS):.1f} µs for one state"
    )
    return one, many


def report(name: str, problem: Problem, urdf: str, interpreter: str | None, seconds: float) -> None:
    """All that is printed about a robot."""
    law, rows = problem.law, problem.law.rows
    solution, _ = law.solve(problem.q, problem.qd, problem.targets)
    print(
        f"{name}: {law.robot.dof} velocities, {rows.unknowns} unknowns, {rows.count} inequalities, ", end=""
    )
    print(f"{law.iterations} iterations")
    print(
        f"  residual: median {np.median(solution.residual):.1e}, largest {solution.residual.max():.1e}; ",
        end="",
    )
    print(f"supports: {solution.slip.max():.1e} m/s²; ", end="")
    print(f"active limits: {solution.active.sum(axis=1).mean():.1f} of {rows.count} on average")
    torque = np.abs(solution.tau[:, law.motors]) / law.bounds.torque
    normal, across = solution.forces[..., 2], np.abs(solution.forces[..., :2]).max(axis=-1)
    print(f"  largest torque over its limit {torque.max():.9f}, ", end="")
    print(f"tangential force beyond the pyramid {(across - FRICTION * normal).max():.1e} N, ", end="")
    print(f"normal forces {normal.min():.3f} to {normal.max():.1f} N")
    one, many = timed(law, problem, seconds)
    if not interpreter:
        print("  TSID: not asked; give --tsid PYTHON, an interpreter that has it")
    elif (found := by_tsid(problem, urdf, interpreter)) is not None:
        compare(law, solution, found, one, many)


def report_arm(states: int, peers: dict[str, str], seconds: float) -> None:
    """The mobile arm."""
    arm = MobileArm(states)
    law = arm.law
    solution, _ = law.solve(arm.q, np.zeros((states, arm.robot.dof)), arm.targets)
    active = solution.active.sum(axis=1)
    print(
        f"mobile Panda: {law.rows.unknowns} unknowns, {law.rows.count} inequalities, {law.iterations} iterations"
    )
    print(
        f"  residual: largest {solution.residual.max():.1e}; active limits: {active.mean():.1f} on average; ",
        end="",
    )
    print(f"largest acceleration over its bound {(np.abs(solution.qdd) / LIMIT).max():.9f}")
    one, many = timed(law, arm, seconds)
    arm.compare(solution, float(np.median(one)), many, peers)


def compare(
    law: control.WholeBody, solution: control.WholeBodySolution, found: dict, one: np.ndarray, many: float
) -> None:
    """Our solutions and times beside those of TSID."""
    solved = found["status"] == 0
    good = solved & (solution.residual < 1e-6)
    tau = np.abs(solution.tau[:, law.motors] - found["tau"])[good].max() / np.abs(found["tau"][good]).max()
    qdd = np.abs(solution.qdd - found["qdd"])[good].max() / np.abs(found["qdd"][good]).max()
    times = 1e6 * found["times"]
    one = np.median(one)
    print(
        f"  TSID solved {solved.sum()} of {len(solved)}; compared where our residual is below 1e-6 ", end=""
    )
    print(f"({good.sum()}): torques differ by {tau:.1e}, accelerations by {qdd:.1e} of the largest")
    print(
        f"  TSID: {times.min():.1f} µs least, {np.median(times):.1f} µs median, {times.max():.1f} µs largest; ",
        end="",
    )
    print(f"its median over ours {1e-6 * np.median(times) / one:.1f} for one state, ", end="")
    print(f"its mean over ours {1e-6 * times.mean() / many:.1f} in a batch")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--urdf", action="append", default=[], help="file of a robot whose name has go2 or talos in it"
    )
    parser.add_argument("--tsid", help="Python interpreter that has tsid")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="LIBRARY=PYTHON",
        help=f"an interpreter that has one of {', '.join(LIBRARIES)}, for the mobile arm",
    )
    parser.add_argument("--iterations", type=int, help="steps of the solver; by default those of WholeBody")
    parser.add_argument("--states", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each timing")
    parser.add_argument("--quick", action="store_true", help="8 states, short timings")
    chosen = parser.parse_args()
    states, seconds = (8, 0.01) if chosen.quick else (chosen.states, chosen.seconds)
    stand = np.concatenate([[0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.8, -1.6], 4)])
    if not chosen.urdf:
        report("legs", Problem(four_legs(), LEGS, stand, states, 40.0, 20.0), "", None, seconds)
    report_arm(states, dict(peer.split("=", 1) for peer in chosen.peer), seconds)
    for urdf in chosen.urdf:
        name = next((name for name in ROBOTS if name in Path(urdf).name), None)
        if name is None:
            print(f"{urdf}: expected a robot of {', '.join(ROBOTS)}")
            return 1
        robot = lw.load(urdf).with_base("floating")
        if name == "go2":
            problem = Problem(robot, ROBOTS[name], stand, states, 24.0, 20.0, chosen.iterations)
        else:
            bent = robot.neutral.copy()
            bent[2] = 1.0
            positions = {joint.name: k + 7 for k, joint in enumerate(robot.coordinate_joints[1:])}
            for side in ("left", "right"):
                for number, angle in ((3, -0.4), (4, 0.8), (5, -0.4)):
                    bent[positions[f"leg_{side}_{number}_joint"]] = angle
            problem = Problem(robot, ROBOTS[name], bent, states, None, 20.0, chosen.iterations)
        report(name, problem, urdf, chosen.tsid, seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
