"""Why no motion along a path keeps the limits: where, which joint, which limit, by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.motion.shortest_time.cells import Cells
from linkwise.motion.shortest_time.optimal_motion import InfeasiblePathError, TimeOptimal
from linkwise.motion.shortest_time.path_limits import CREEP, Limits, Strips
from linkwise.motion.shortest_time.verified import Excess, labels

if TYPE_CHECKING:
    from linkwise.motion.shortest_time.optimal_timing import Problem


def explained(problem: Problem, cells: Cells, k: int) -> InfeasiblePathError:
    """The error for path ``k``, from the intervals that the passes left."""
    greatest, least = problem.greatest[k], problem.least[k]
    if not (greatest < least).any():
        held = _holding(problem.strips, cells, k, 0) if problem.ends[k, 0] < least[0] else None
        return held or _start(problem, k)
    node = int(np.flatnonzero(greatest < least)[-1])
    if node == len(greatest) - 1:
        most = np.sqrt(problem.most[k, -1]) * problem.tangents[k, 1]
        given = np.sqrt(problem.ends[k, 1]) * problem.tangents[k, 1]
        return InfeasiblePathError(
            f"end_speed: {given:.4g} is too fast, velocity limits allow {most:.4g} at the end of the path", 1.0,
            quantity="velocity", limit=float(most), needed=float(given),
        )  # fmt: skip
    return _holding(problem.strips, cells, k, node) or _crossing(problem.strips, cells, k, node)


def not_kept(limits: Limits, cells: Cells, x: np.ndarray, found: Excess) -> InfeasiblePathError:
    """The error for a motion that exceeds a limit on all grids that were tried."""
    cell = int(np.argmax(found.part))
    quantity, joint = labels(limits)[int(found.row[cell])]
    motion = TimeOptimal(limits, cells, x)
    h, rho = cells.lengths[cell], float(found.rho[cell])
    reached = np.sqrt(x[cell] + (x[cell + 1] - x[cell]) * rho)
    t = float(motion.grid[cell] + 2 * h * rho / (np.sqrt(x[cell]) + reached))
    used = motion.usage(t)[quantity]
    k = None if quantity == "tip speed" else limits.robot.joint_names.index(joint)
    limit = {
        "torque": limits.torque[1],
        "acceleration": limits.acceleration,
        "velocity": limits.velocity,
        "tip speed": np.array(limits.tip_speed),
    }[quantity]
    limit = float(limit if k is None else limit[k])
    value = float(used if k is None else used[k]) * limit
    ends = np.concatenate([[0.0], np.cumsum(cells.lengths)])
    fraction = float(np.interp(ends[cell] + rho * h, ends, cells.fractions))
    return InfeasiblePathError(
        f"no motion was found that keeps all limits: with {len(cells.lengths)} cells the {quantity} of {joint} reaches "
        f"{value:.4g} at {t:.4f} s ({fraction:.1%} of the path), its limit is {limit:.4g}; is a derivative of the path "
        "not continuous?",
        fraction, joint, quantity, limit, value,
    )  # fmt: skip


def _start(problem: Problem, k: int) -> InfeasiblePathError:
    """The end can be reached, but not at the speed at the start."""
    given, tangent = problem.ends[k, 0], problem.tangents[k, 0]
    low, high = (float(np.sqrt(max(x[k, 0], 0.0))) * tangent for x in (problem.least, problem.greatest))
    speed = float(np.sqrt(given)) * tangent
    limit = high if speed > high else low
    what = "too fast" if speed > high else "too slow"
    bound = "at most" if speed > high else "at least"
    return InfeasiblePathError(
        f"start_speed: {speed:.4g} is {what} for the limits along the path, {bound} {limit:.4g} is possible", 0.0,
        quantity="velocity", limit=limit, needed=speed,
    )  # fmt: skip


def _holding(strips: Strips, cells: Cells, k: int, node: int) -> InfeasiblePathError | None:
    """Whether a joint cannot hold still in this cell."""
    limits, fraction = strips.limits, float(cells.fractions[node])
    names, units = limits.robot.joint_names, [joint.revolute for joint in limits.robot.coordinate_joints]
    shape = strips.a.shape[:3]
    low, high = strips.allowed(np.zeros((*shape[:2], 1)), np.full(shape, CREEP))
    holding, torques = strips.c, limits.torques
    over = np.broadcast_to(np.maximum(holding - high, low - holding), strips.c.shape)[k, node].max(axis=0)
    if not over.size or over.max() <= 0:
        return None
    row = int(np.argmax(over))
    joint = int(torques[row])
    value = strips.c[k, node, :, row]
    torque = float(value[np.argmax(np.abs(value))])
    bound = limits.torque[1][joint] if torque > 0 else limits.torque[0][joint]
    unit = "N·m" if units[joint] else "N"
    return InfeasiblePathError(
        f"no speed along the path is possible at {fraction:.1%} of the path: {names[joint]} is {over.max():.4g} {unit} "
        f"beyond its torque limit of {bound:.4g} {unit} when it holds still (gravity and friction)",
        fraction, names[joint], "torque", float(bound), float(abs(bound) + over.max()) * float(np.sign(bound)),
    )  # fmt: skip


def _crossing(strips: Strips, cells: Cells, k: int, node: int) -> InfeasiblePathError:
    """Two limits of moving joints leave no acceleration along the path."""
    limits, fraction = strips.limits, float(cells.fractions[node])
    torques, accelerations = limits.torques, limits.accelerations
    labels = [("torque", limits.robot.joint_names[j]) for j in torques]
    labels += [("acceleration", limits.robot.joint_names[j]) for j in accelerations]
    shape = strips.a.shape[:3]
    a, _, low, high = strips.rows(
        np.zeros(strips.a[:, :, 0].shape), np.zeros((*shape[:2], 1)), np.full(shape, CREEP), sloping=False
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.stack([low, high])[:, k, node] / a[k, node]
    bounds = np.where(np.isfinite(bounds), bounds, np.array([-np.inf, np.inf])[:, np.newaxis, np.newaxis])
    least, greatest = bounds.min(axis=0).max(axis=0), bounds.max(axis=0).min(axis=0)
    top, bottom = labels[int(np.argmin(greatest))], labels[int(np.argmax(least))]
    quantity, joint = top
    limit = dict(zip(labels, strips.high, strict=True))[top]
    return InfeasiblePathError(
        f"the limits cannot be kept at {fraction:.1%} of the path: the {bottom[0]} limit of {bottom[1]} needs an "
        f"acceleration along the path of at least {least.max():.4g}, the {top[0]} limit of {top[1]} allows at most "
        f"{greatest.min():.4g}",
        fraction, joint, quantity, float(limit),
    )  # fmt: skip
