"""Cartesian impedance against its closed form on many arms: stiffness, damping, energy, singularities, 180°, a wall.

    python benchmarks/task_space.py [--robots NAMES] [--json FILE] [--quick]

For every arm, with the default gains of ``control.CartesianImpedance`` and a plant without friction:

* stiffness, damping: small constant and sinusoidal pulls in six directions, with the law sampled every 0.1 ms. The
  measured 6×6 dynamic stiffness Z(ω) = K − Λω² + iωD is compared with the closed form. Errors are relative to K and
  D as matrices. Arms whose tool cannot move in all six directions have none.
* energy: a person pulls with large wrenches; the largest excess of ½ q̇ᵀMq̇ + V over its start and the person's
  work, as a part of the largest energy, without posture; and with posture, as a part of its energy budget.
* singular, 180°: the law along joint motions through q = 0, and with targets turned through 180°: the largest
  change of a torque between two points, and how it shrinks with their distance. A jump does not shrink: the factor
  is 1 instead of 8.
* wall: the tool meets a wall of 10⁵ N/m with the target 2 cm behind it, sampled every 1 ms; force over that of the
  law, and its standard deviation in the last 0.2 s.

The script fails where stiffness or damping is off by 1 %, energy grows, a torque jumps or a force is off by 5 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from task_space_parts import arms
from task_space_parts.environment import WORK, Touched

import linkwise as lw
from linkwise import control
from linkwise.control.controller import Reference
from linkwise.control.task_space.matrices import critical_damping
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.simulate import Plant, simulate

STEP, HOLD = 1e-4, 10.0  # [s], steps of a control period where the tool meets a wall
PULLS = (0.0, 15.0)  # angular frequencies of small pulls [rad/s]: for the stiffness, and for the damping
SMALL = 1e-3  # size of motions that are measured [rad or m]
WALL, DEPTH = 1e5, 0.02  # [N/m], [m]
ALLOWED = {"stiffness": 0.01, "damping": 0.01, "energy": 1e-3, "wall": 0.05}


def scenes(
    robot: lw.Robot, frame: str, law: control.CartesianImpedance, q: np.ndarray
) -> tuple[dict, np.ndarray, list[str]]:
    """(gains that vary, initial positions, what each lane is)."""
    rng = np.random.default_rng(1)
    usual = law.usual
    rows: list[dict[str, Any]] = []
    start: list[np.ndarray] = []
    kinds: list[str] = []
    for w in PULLS:
        for k in range(6):
            pull = (
                SMALL
                * law.gains["stiffness"][k]
                * np.kron(np.eye(2), robot.pose(q, frame=frame)[:3, :3])[:, k]
            )
            rows.append({"pull": pull, "pull_rate": np.full(6, w)})
            kinds.append("small")
            start.append(q)
    for k in range(4):
        pull = 100.0 * usual * rng.uniform(-1, 1, 6) * np.array([0.5] * 3 + [0.15] * 3)
        free = {"posture_stiffness": np.zeros(1), "posture_damping": np.zeros(1)} if k < 2 else {}
        rows.append(
            {"pull": pull, "pull_rate": rng.uniform(0.5, 15.0, 6), "pull_end": np.array([2.0]), **free}
        )
        kinds.append("energy" if k < 2 else "posture's energy")
        start.append(q)
    J = robot.jacobian(q, frame=frame)
    p = robot.pose(q, frame=frame)[:3, 3]
    for normal in np.eye(3)[: 3 if np.linalg.matrix_rank(J) == 6 else 0]:
        wall = np.concatenate([normal, [normal @ p + DEPTH, WALL, 0.0]])
        rows.append({"wall": wall, "hold": np.array([HOLD])})
        kinds.append("wall")
        start.append(reached(robot, frame, q, 2.0 * DEPTH * normal))
    names = sorted({name for row in rows for name in row})
    defaults = Touched(law, frame).gains
    vary = {name: np.array([row.get(name, defaults[name]) for row in rows]) for name in names}
    return vary, np.array(start), kinds


def reached(robot: lw.Robot, frame: str, q: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """A position near q with the tool moved by ``shift`` [m]."""
    goal, at = robot.pose(q, frame=frame), q.copy()
    for _ in range(20):
        now = robot.pose(at, frame=frame)
        turn = RotationError.of((now[:3, :3] @ goal[:3, :3].T).tolist()).vector()
        missing = np.concatenate([-np.array(turn), goal[:3, 3] + shift - now[:3, 3]])
        at = at + np.linalg.lstsq(robot.jacobian(at, frame=frame), missing, rcond=1e-6)[0]
    return at


def poses(robot: lw.Robot, frame: str, q: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Small motions of the tool along a path: (rotation vector, shift) in base axes, (..., 6)."""
    there, found = robot.pose(q, frame=frame), robot.pose(path, frame=frame)
    E = found[..., :3, :3] @ there[:3, :3].T
    sine = 0.5 * np.stack(
        [E[..., 2, 1] - E[..., 1, 2], E[..., 0, 2] - E[..., 2, 0], E[..., 1, 0] - E[..., 0, 1]], -1
    )
    return np.concatenate([sine, found[..., :3, 3] - there[:3, 3]], -1)


def measured(t: np.ndarray, x: np.ndarray, w: float) -> np.ndarray:
    """Complex amplitude of signals (..., times, 6) at an angular frequency, over whole periods at the end."""
    if w == 0.0:
        return x[..., -1, :].astype(complex)
    count = int(2 * (2 * np.pi / w) / (t[1] - t[0]))
    tail, values = t[-count:], x[..., -count:, :]
    basis = np.stack([np.cos(w * tail), -np.sin(w * tail), np.ones_like(tail)], -1)
    fit = np.einsum("ct,...tk->...ck", np.linalg.pinv(basis), values)
    return fit[..., 0, :] + 1j * fit[..., 1, :]


def impedance_errors(robot, frame, law, q, result, kinds, vary) -> dict[str, float]:
    """Relative errors of the measured stiffness and damping."""
    J, M = robot.jacobian(q, frame=frame), robot.mass_matrix(q)
    if np.linalg.matrix_rank(J, tol=1e-6 * np.abs(J).max()) < 6:
        return {}
    G = J @ np.linalg.solve(M, J.T)
    R = robot.pose(q, frame=frame)[:3, :3]
    T = np.kron(np.eye(2), R)
    K = T @ np.diag(law.gains["stiffness"]) @ T.T
    D = (
        T
        @ np.array(critical_damping(np.diag(law.gains["stiffness"]).tolist(), (T.T @ G @ T).tolist(), 1.0))
        @ T.T
    )
    t = np.arange(result.q.shape[-2]) * STEP * EVERY
    found = []
    for i, w in enumerate(PULLS):
        lanes = slice(6 * i, 6 * i + 6)
        x = measured(t, poses(robot, frame, q, result.q[lanes]), w)  # rows: pulls
        Z = np.linalg.solve(x, vary["pull"][lanes]).T
        found.append(Z.imag / w if w else Z.real)
    return {"stiffness": relative(found[0], K), "damping": relative(found[1], D)}


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """‖L⁻¹ (found − expected) L⁻ᵀ‖ with expected = L Lᵀ."""
    L = np.linalg.inv(np.linalg.cholesky(expected))
    return float(np.linalg.norm(L @ (found - expected) @ L.T, 2))


def energies(robot, frame, law, q, result, k) -> tuple[np.ndarray, np.ndarray]:
    """(½ q̇ᵀMq̇ + V, work of the person) along a lane [J]."""
    R_d = robot.pose(q, frame=frame)
    found = robot.pose(result.q[k], frame=frame)
    stiffness = law.gains["stiffness"]
    E = np.einsum("ji,tjk->tik", R_d[:3, :3], found[:, :3, :3])
    x = (found[:, :3, 3] - R_d[:3, 3]) @ R_d[:3, :3]
    entries: Any = [[E[:, i, j] for j in range(3)] for i in range(3)]
    V = RotationError.of(entries).potential(np.diag(stiffness[:3]).tolist()) + 0.5 * (x**2 @ stiffness[3:])
    return robot.kinetic_energy(result.q[k], result.qd[k]) + V, result.recorded["memory"][k][:, WORK]


def jumps(law: control.CartesianImpedance, lanes_q, lanes_qd, reference: Reference, gains) -> np.ndarray:
    """Torques of the law at many states, (n, states), without compiled code."""
    tau, _ = law.control(law.links(), gains, lanes_q, lanes_qd, reference, [0.0] * law.memory_size, 1e-3)
    size = np.shape(lanes_q[0])[0]
    return np.array([np.broadcast_to(t, size) for t in tau])


def through_singular(robot, law, q) -> tuple[float, float]:
    """(largest change of a torque over the largest torque, how it shrinks with an eighth of the distance)."""
    largest = []
    for count in (2001, 16001):
        s = np.linspace(1.0, -1.0, count)
        lanes: Any = [s * x for x in q]
        rates: Any = [np.full(count, 0.5 * x) for x in q]
        still = [0.0] * robot.dof
        gains = {name: values.tolist() for name, values in law.gains.items()}
        tau = jumps(law, lanes, rates, Reference(q.tolist(), still, still), gains)
        largest.append(np.abs(np.diff(tau)).max() / np.abs(tau).max())
    return largest[1], largest[0] / max(largest[1], 1e-300)


def through_half_turn(robot, frame, law, q) -> tuple[float, float]:
    """The same for targets that are turned through 180° about three axes."""
    pose, largest = robot.pose(q, frame=frame), []
    for count in (2001, 16001):
        worst = size = 0.0
        for axis in np.eye(3):
            angle = np.linspace(np.pi - 0.6, np.pi + 0.6, count)
            S = np.cross(np.eye(3), axis)
            turn = np.eye(3) + np.sin(angle)[:, None, None] * S + (1 - np.cos(angle))[:, None, None] * (S @ S)
            R = pose[:3, :3] @ turn
            numbers: Any = [
                x for i in range(3) for x in (*(R[:, i, j] for j in range(3)), np.full(count, pose[i, 3]))
            ]
            gains = {name: values.tolist() for name, values in law.gains.items()} | {"target_pose": numbers}
            lanes: Any = [np.full(count, x) for x in q]
            still = [0.0] * robot.dof
            tau = jumps(law, lanes, still, Reference(q.tolist(), still, still), gains)
            worst, size = max(worst, np.abs(np.diff(tau)).max()), max(size, np.ptp(tau, axis=1).max())
        largest.append(worst / size)
    return largest[1], largest[0] / max(largest[1], 1e-300)


EVERY = 20


def arm(name: str, duration: float) -> dict[str, Any]:
    """All figures of one arm."""
    robot = arms.load(name)
    frame = arms.tool(robot)
    q = arms.regular_position(robot, frame)
    law = control.CartesianImpedance(robot, frame, torque_limits=False)
    vary, start, kinds = scenes(robot, frame, law, q)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = simulate(
            Plant(robot, friction=False),
            Touched(law, frame),
            q,
            duration=duration,
            step=STEP,
            every=EVERY,
            continuous=True,
            q=start,
            vary=vary,
            record=("memory",),
        )
    row: dict[str, Any] = {"robot": name, "dof": robot.dof}
    row |= impedance_errors(robot, frame, law, q, result, kinds, vary)
    budget = float(law.gains["posture_energy"][0])
    for k, kind in enumerate(kinds):
        if "energy" in kind:
            E, W = energies(robot, frame, law, q, result, k)
            scale = budget if kind == "posture's energy" else float(E.max())
            row[kind] = max(row.get(kind, -np.inf), float((E - E[0] - W).max()) / scale)
        if kind == "wall":
            row |= wall_row(robot, frame, law, q, result, k, vary["wall"][k], row)
    row["singular"], row["singular shrinks"] = through_singular(robot, law, q)
    row["half turn"], row["half turn shrinks"] = through_half_turn(robot, frame, law, q)
    return row


def wall_row(robot, frame, law, q, result, k, wall, row) -> dict[str, float]:
    """Force at the wall over that of the law, and how much it still moves."""
    p = robot.pose(result.q[k], frame=frame)[:, :3, 3]
    force = WALL * np.maximum(wall[3] - p @ wall[:3], 0.0)
    k_t = law.gains["stiffness"][3]
    expected = DEPTH * k_t * WALL / (k_t + WALL)
    tail = force[-int(0.2 / (STEP * EVERY)) :]
    error = abs(tail.mean() / expected - 1.0)
    return {
        "wall": max(row.get("wall", 0.0), error),
        "wall moves": max(row.get("wall moves", 0.0), tail.std() / expected),
    }


def failures(row: dict[str, Any]) -> list[str]:
    """What is not as promised."""
    found = [what for what, most in ALLOWED.items() if row.get(what, 0.0) > most]
    found += [
        what for what, most in (("posture's energy", 1.0), ("wall moves", 0.01)) if row.get(what, 0.0) > most
    ]
    return found + [what for what in ("singular shrinks", "half turn shrinks") if row[what] < 4.0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", help="names, with commas; default: all")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--quick", action="store_true", help="short simulations")
    options = parser.parse_args()
    names = arms.for_laws(options.robots)
    columns = (
        "stiffness",
        "damping",
        "energy",
        "posture's energy",
        "singular shrinks",
        "half turn shrinks",
        "wall",
        "wall moves",
    )
    print("robot          " + "".join(f"{name:>20}" for name in columns))
    rows, wrong = [], 0
    for name in names:
        begin = time.perf_counter()
        row = arm(name, 2.5 if options.quick else 8.0)
        bad = failures(row) if not options.quick else []
        wrong += bool(bad)
        rows.append(row)
        print(f"{name:15}" + "".join(f"{row[c]:20.2e}" if c in row else f"{'-':>20}" for c in columns), *bad,
              f"  {time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    for column in ("stiffness", "damping", "energy", "wall"):
        worst = max((row for row in rows if column in row), key=lambda row: row[column], default=None)
        if worst is not None:
            print(f"worst {column}: {worst['robot']}, {worst[column]:.2e}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1, default=float)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
