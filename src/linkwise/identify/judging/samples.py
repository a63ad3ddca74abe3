"""Faults that samples of a recording show by themselves, before any model: columns without a signal, torques that are
held or cut off, rows that repeat, velocities that are not the slopes of positions.

Each has a margin that correct recordings keep away from: encoders and currents that are rounded repeat values as well.
"""

from __future__ import annotations

import numpy as np

from linkwise.identify.recordings.log import Log
from linkwise.robot.robot import Robot
from linkwise.solve import linear

MOVES = 0.02  # part of a joint's largest speed from which it moves
LIKE = 0.9  # correlation of recorded velocities and slopes from which their ratio is known
FACTOR = 1.1  # ratio of both, or its inverse, from which one of them is wrong
SAME = 1.05  # ratios of joints within this factor of each other are one fault
CUT_OFF = 0.02  # share of samples at the largest torque, one after the other, from which it was cut off
RUN = 3  # samples one after the other that make a stretch
REPEATED = 0.2  # share of moving samples in which a whole row repeats the one before
HELD = 0.35  # share of moving samples in which no torque changes, from which torques are held
LEVELS = 200  # different torques of a joint from which it is no coarse converter


def sample_faults(robot: Robot, log: Log) -> list[str]:
    """What is wrong with single columns and rows of a recording, in words.

    Args:
        robot: for names of joints.
        log: the recording.
    """
    faults = [*_empty(robot, log), *_velocities(robot, log)]
    return faults or [*_repeated(log), *_cut_off(robot, log)]


def _empty(robot: Robot, log: Log) -> list[str]:
    still = [name for name, tau in zip(robot.joint_names, log.tau.T, strict=True) if np.ptp(tau) == 0.0]
    if not still:
        return []
    return [f"torques of {', '.join(still)} never change: nothing was recorded in this column"]


def _velocities(robot: Robot, log: Log) -> list[str]:
    """Recorded velocities by the slopes of positions, over some samples so that noise counts little."""
    if log.qd is None or len(log) < 50:
        return []
    gap = max(1, round(0.02 * (len(log) - 1) / max(log.duration, 1e-9)))
    slope = (log.q[2 * gap :] - log.q[: -2 * gap]) / (log.t[2 * gap :] - log.t[: -2 * gap])[:, None]
    given = log.qd[gap:-gap]
    ratios = {}
    for name, v, s in zip(robot.joint_names, given.T, slope.T, strict=True):
        sizes = np.sqrt((v**2).sum() * (s**2).sum())
        if s.any() and not v.any():
            return [f"velocities of {name} are zero though it moves: nothing was recorded in this column"]
        if sizes > 0.0 and abs(linear.dot(v, s)) > LIKE * sizes:
            ratios[name] = linear.dot(v, s) / float((s**2).sum())
    wrong = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR < ratio < FACTOR}
    if not wrong:
        return []
    values = np.array(list(wrong.values()))
    middle = float(np.median(values))
    if len(wrong) == len(ratios) > 1 and (np.abs(values / middle - 1.0) < SAME - 1.0).all():
        if middle < 0.0:
            return ["velocities of all joints have the opposite sign of the slopes of their positions"]
        return [
            f"recorded velocities of all joints are {middle:.3g} times the slopes of their positions: time stamps "
            f"have another unit or the rate is another (multiplying times with {1 / middle:.3g}), or velocities "
            "have another unit"
        ]
    said = ", ".join(f"{name} {ratio:.3g}" for name, ratio in wrong.items())
    return [
        f"recorded velocities are not the slopes of positions, but these times as large: {said}; the column of "
        "velocities or that of positions has another unit, sign or order"
    ]


def _moving(log: Log) -> np.ndarray:
    """Rows, but the first, in which positions change as they do in motion, (N − 1,)."""
    steps = np.abs(np.diff(log.q, axis=0))
    usual = np.quantile(steps, 0.9, axis=0)
    near = np.maximum.accumulate(steps / np.maximum(usual, 1e-300), axis=1)[:, -1]
    # a row that repeats has no step: a joint moves where it does around it
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(near, 5, mode="edge"), 11).max(axis=1)
    return wide > MOVES


def _repeated(log: Log) -> list[str]:
    moving = _moving(log)
    if moving.sum() < 50:
        return []
    same_q, same_tau = ((np.diff(x, axis=0) == 0.0).all(axis=1)[moving] for x in (log.q, log.tau))
    rows = float((same_q & same_tau).mean())
    if rows > REPEATED:
        return [
            f"{100 * rows:.0f} % of the rows repeat the one before although the robot moves: rows are doubled, or the "
            "signals were recorded more often than they change; leave out the repetitions"
        ]
    held = float((same_tau & ~same_q).mean())
    if held > HELD:
        return [
            f"torques of all joints stay the same in {100 * held:.0f} % of the rows in which positions change: they "
            "were held, because they are recorded at a lower rate or the recording stopped"
        ]
    return []


def _cut_off(robot: Robot, log: Log) -> list[str]:
    cut = []
    for name, tau in zip(robot.joint_names, log.tau.T, strict=True):
        for sign in (1.0, -1.0):
            top = float((sign * tau).max())
            at = sign * tau == top
            stretches = at[RUN - 1 :].copy()
            for k in range(1, RUN):
                stretches &= at[RUN - 1 - k : len(at) - k]
            if top > 0.0 and float(stretches.mean()) > CUT_OFF and len(np.unique(tau)) > LEVELS:
                cut.append(f"{name} at {sign * top:.4g}")
    if not cut:
        return []
    return [f"torques look cut off: {', '.join(cut)}; the drive or its sensor was at its limit"]


__all__ = ["sample_faults"]
