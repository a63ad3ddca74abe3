"""Time-optimal motions beside TOPP-RA of the package toppra: the same paths, limits and grids.

    python benchmarks/time_optimal.py [--robots panda,puma560] [--paths 3] [--cells 200] [--many 1000] [--friction 64]

For each robot: durations, whether limits hold on a dense grid, the time of one call for one path (each library from
way-points to a motion, best of alternating repetitions) and the paths per second of one call with many, without and
with friction. Beside toppra friction is left out, because that has none that depends on the speed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import motion

try:
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
except ImportError:
    toppra = None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", default="panda,puma560,ur10,two_link", help="bundled names or files")
    parser.add_argument("--paths", type=int, default=3, help="random paths of each robot")
    parser.add_argument("--cells", type=int, default=200, help="cells of the grid, the same for both")
    parser.add_argument("--many", type=int, default=1000, help="paths in one call")
    parser.add_argument("--friction", type=int, default=64, help="paths in one call with friction")
    parser.add_argument("--repeats", type=int, default=15, help="repetitions, the two libraries in turn")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    rows = [row for name in options.robots.split(",") for row in measured(name, options)]
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


def measured(name: str, options: argparse.Namespace) -> list[dict]:
    robot = lw.load(name)
    rng = np.random.default_rng(19)
    ways = middle(robot) + rng.uniform(-0.5, 0.5, (max(options.paths, options.many), 5, robot.dof))
    torque, velocity = limits(robot, ways)
    print(f"{robot.name}: {robot.dof} joints, {options.cells} cells")
    rows = []
    for k in range(options.paths):
        row = {"robot": robot.name, "path": k} | one_path(robot, ways[k], torque, velocity, options)
        rows.append(row)
        other = "" if toppra is None else beside(row)
        print(f"  {row['seconds']:.4f} s in {1e3 * row['time']:.3f} ms, limits used {row['used']:.4%}{other}")
    rows.append(many_paths(robot, ways[: options.many], torque, velocity, friction=False))
    if options.friction:
        rows.append(many_paths(robot, ways[: options.friction], torque, velocity, friction=True))
    return rows


def many_paths(robot: lw.Robot, ways: np.ndarray, torque, velocity, *, friction: bool) -> dict:
    """Rates of one call with many paths."""
    best, least, count = np.inf, np.inf, len(ways)
    for _ in range(3):
        start, spent = time.perf_counter(), time.process_time()
        many = motion.time_optimal(robot, ways, torque=torque, velocity=velocity, friction=friction)
        best = min(best, time.perf_counter() - start)
        least = min(least, time.process_time() - spent)
    failed = sum(failure is not None for failure in many.failures)
    print(
        f"  {count} paths in one call{' with friction' if friction else ''}: {count / best:.0f} per second, "
        f"{count / least:.0f} per second of processor time, {failed} not possible"
    )
    rates = {"per_second": count / best, "per_cpu_second": count / least}
    return {"robot": robot.name, "many": count, "friction": friction} | rates


def beside(row: dict) -> str:
    """toppra's figures of the same path."""
    return (
        f", toppra {row['toppra']:.4f} s ({row['seconds'] / row['toppra'] - 1:+.2%}) "
        f"in {1e3 * row['toppra_time']:.2f} ms: {row['toppra_time'] / row['time']:.0f} times; "
        f"it exceeds limits by {row['toppra_beyond']:.1%}"
    )


def middle(robot) -> np.ndarray:
    """A position away from the limits of the joints."""
    low, high = (
        np.array([getattr(joint.limits, side) for joint in robot.coordinate_joints])
        for side in ("lower", "upper")
    )
    return np.where(np.isfinite(low) & np.isfinite(high), 0.5 * (low + high), 0.3)


def limits(robot, ways: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torques that hold the robot and leave something for motion, and the robot's speeds, at most 3."""
    hold = np.abs(robot.gravity_torques(ways)).max(axis=(0, 1))
    inertia = robot.mass_matrix(ways.reshape(-1, robot.dof)).diagonal(axis1=-2, axis2=-1).max(axis=0)
    return 1.3 * hold + 10.0 * inertia, np.minimum(robot.velocity_limits, 3.0)


def one_path(robot, ways, torque, velocity, options) -> dict:
    grid = np.linspace(0, 1, options.cells + 1)

    def mine():
        return motion.time_optimal(robot, ways, torque=torque, velocity=velocity, friction=False, grid=grid)

    found = mine()
    usage = found.usage(np.linspace(0, found.duration, 20001))
    row = {"seconds": found.duration, "used": max(float(values.max()) for values in usage.values())}
    row["time"] = np.inf
    if toppra is not None:
        row["toppra_time"] = np.inf
        other = theirs(robot, ways, torque, velocity, grid)
        t = np.linspace(0, other.duration, 20001)
        q, qd, qdd = other(t), other(t, 1), other(t, 2)
        tau = np.abs(robot.inverse_dynamics(q, qd, qdd, friction=False)) / torque
        row["toppra"] = float(other.duration)
        row["toppra_beyond"] = float(max(tau.max(), (np.abs(qd) / velocity).max())) - 1
    for _ in range(options.repeats):
        for _ in range(5):
            row["time"] = min(row["time"], seconds(mine))
        if toppra is not None:
            again = seconds(lambda: theirs(robot, ways, torque, velocity, grid))
            row["toppra_time"] = min(row["toppra_time"], again)
    return row


def theirs(robot, ways, torque, velocity, grid):
    """The motion by toppra with its interpolation scheme, which keeps limits at both ends of each cell."""
    scheme = constraint.DiscretizationType.Interpolation
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(ways, axis=0), axis=1))])
    path = toppra.SplineInterpolator(length, ways, bc_type="natural")
    both = [
        constraint.JointVelocityConstraint(np.stack([-velocity, velocity], axis=1)),
        constraint.JointTorqueConstraint(
            robot.kernel("inverse_dynamics", friction=False),
            np.stack([-torque, torque], axis=1),
            np.zeros(robot.dof),
            discretization_scheme=scheme,
        ),
    ]
    return algorithm.TOPPRA(
        both, path, gridpoints=length[-1] * grid, solver_wrapper="seidel"
    ).compute_trajectory(0, 0)


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
