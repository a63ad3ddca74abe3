"""Whether a planned motion keeps its limits everywhere, and a slower one that does.

The passes of ``reachability`` see four samples of a cell. Here torques are those of inverse dynamics of the motion
itself, with its friction, at nine points of every cell. The greatest value between points is that of parabolas
through three of them and how far a cubic may be off. Cells in which that is beyond a limit are evaluated at more
points, up to 513.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from linkwise.motion.shortest_time.path_limits import Limits
from linkwise.motion.shortest_time.reachability import PARABOLA
from linkwise.motion.trajectory import Moment
from linkwise.scalar import sqrt, where

POINTS = (9, 33, 129, 513)  # in a cell, evenly in time: more where the bound is beyond a limit
SETTLED = 0.2  # relative difference of bound and largest value from which more points tell nothing new
SPREAD = 0.8  # of the range of values in a cell: at most so far is the bound from the largest value
ROUGH = 0.02  # of a limit: points that are so far from a cubic through their neighbours are too few
BLOCK = 2048  # cells that are evaluated together: their values fit into a cache
UNCLEAR = 0.05  # of a limit: the same for values that are far from it
ASIDE = 1e-6  # of a cell: so far from its ends it is evaluated; nearer, its speed would round to zero
SLOWINGS = 4  # attempts at a slower motion


class Along(NamedTuple):
    """Cells of one or of many paths."""

    at: Callable[[np.ndarray, np.ndarray], Moment]
    """The path in cells (cells,) at fractions ρ (cells, points): (cells, points, n) each."""
    resting: np.ndarray
    """Cells at one of whose ends the tangent vanishes."""
    beside_rest: Callable[[np.ndarray, int], np.ndarray]
    """ρ of points of such cells, closer and closer to that end: (cells, points)."""


class Excess(NamedTuple):
    """How far limits are exceeded in cells, (cells,) each."""

    part: np.ndarray
    """The part by which x and u would have to be smaller: 0 where limits are kept, 1 where no speed helps."""
    row: np.ndarray
    """The limit that is exceeded most, as ``Limits`` numbers them in ``labels``; −1 where none is."""
    rho: np.ndarray
    """Where in the cell."""


def excess(
    limits: Limits,
    along: Along,
    x: np.ndarray,
    lengths: np.ndarray,
    threads: int | None,
    only: np.ndarray | None = None,
) -> Excess:
    """How far limits are exceeded; ``x`` at both ends of all cells, (cells, 2); ``only`` in these cells."""
    worst = Excess(np.zeros(len(lengths)), np.full(len(lengths), -1), np.zeros(len(lengths)))
    rho, q = np.zeros((0, 0)), np.zeros((0, 0, 0))
    low, high, scale = limit_rows(limits)
    every = np.arange(len(lengths)) if only is None else only

    def values_at(cell: np.ndarray, points: int, *, beside: bool) -> np.ndarray:
        nonlocal rho, q
        rho = along.beside_rest(cell, points) if beside else _evenly(x[cell], points)
        moment = _moving(along.at(cell, rho), x[cell], lengths[cell], rho)
        q = moment.q
        return value_rows(limits, moment, threads)

    blocks = [(False, every[k : k + BLOCK]) for k in range(0, len(every), BLOCK)]
    if along.resting.size:
        blocks.append((True, np.intersect1d(every, along.resting)))
    for beside, chosen in blocks:
        for peaks in exceeded(partial(values_at, beside=beside), low, high, scale, chosen):
            k, place = peaks.local, peaks.place
            part = slower_part(limits, q[k, place], peaks.row, peaks.value, peaks.over)
            worse = part > worst.part[peaks.cell]
            cell, k, place = peaks.cell[worse], k[worse], place[worse]
            worst.part[cell], worst.row[cell] = part[worse], peaks.row[worse]
            worst.rho[cell] = rho[k, place]
    return worst


class Peaks(NamedTuple):
    """Cells in which a limit is exceeded, (some,) each."""

    cell: np.ndarray
    local: np.ndarray
    """Where they are among the cells whose values were asked for last."""
    row: np.ndarray
    """The limit that is exceeded most."""
    place: np.ndarray
    """The point with the largest value."""
    value: np.ndarray
    """The value there."""
    over: np.ndarray
    """A bound of how far the limit is exceeded, relative to its size."""


def exceeded(
    values_at: Callable[[np.ndarray, int], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    scale: np.ndarray,
    left: np.ndarray,
) -> Iterator[Peaks]:
    """Of the cells ``left`` those in which rows of values go beyond their limits.

    More and more points are taken where that is not certain. ``values_at(cells, points)`` gives values at points of
    cells, (cells, points, rows).
    """
    for points in POINTS if left.size else ():
        values = np.ascontiguousarray(
            values_at(left, points).swapaxes(0, 1)
        )  # points first: quick to go over
        greatest, least = values.max(axis=0), values.min(axis=0)
        spread = SPREAD * (greatest - least)
        bound, beyond = np.zeros(len(left)), np.zeros(len(left), dtype=bool)
        row, place = np.zeros(len(left), dtype=int), np.zeros(len(left), dtype=int)
        for side, limit, near in ((1.0, high, greatest), (-1.0, low, -least)):
            cell, column = np.nonzero(near + spread > side * limit)
            if not cell.size:
                continue
            some = (side * (values[:, cell, column] - limit[column])) / scale[column]
            highest, peak = some.max(axis=0), _bound(some)
            beyond[cell[peak > 0]] = True
            # a row that is not certain, such as a torque that jumps where friction does, must not hide one that is
            certain = (peak > 0) & (peak - highest <= SETTLED * highest)
            if points == POINTS[-1]:
                certain |= (peak > 0) & (highest > 0)
            order = np.flatnonzero(certain)
            order = order[
                np.argsort(peak[order], kind="stable")
            ]  # of several rows of a cell the worst is entered last
            order = order[peak[order] > bound[cell[order]]]
            bound[cell[order]], row[cell[order]] = peak[order], column[order]
            place[cell[order]] = some[:, order].argmax(axis=0)
        odd = np.abs(values[1::2] - _between(values[::2])).max(axis=0)
        unclear = (odd > UNCLEAR * scale).any(axis=1)  # wherever the limits are
        sure = bound > 0
        if sure.any():
            k = np.flatnonzero(sure)
            yield Peaks(left[k], k, row[k], place[k], values[place[k], k, row[k]], bound[k])
        left = left[(beyond | unclear) & ~sure]
        if not left.size:
            break


def slower(
    limits: Limits,
    along: Along,
    x: np.ndarray,
    lengths: np.ndarray,
    most: np.ndarray,
    threads: int | None,
    only: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Excess]:
    """x of motions (paths, cells + 1) that are slower as a whole by at most the part ``most``, (paths,), whether they
    keep all limits, and what the last check found, for all cells of all paths; at first ``only`` these are checked.

    A slower motion needs torques between those of the faster one and those that hold still; with friction that is not
    certain, so all cells are checked again.
    """
    paths, cells = lengths.shape
    flat = lengths.ravel()
    x, total = x.copy(), np.zeros(paths)
    beyond = excess(limits, along, _both(x), flat, threads, only)
    for _ in range(SLOWINGS):
        part = beyond.part.reshape(paths, cells).max(axis=1)
        open_ = (part > 0) & (total + 1.1 * part <= most)
        if not open_.any():
            break
        total = np.where(open_, total + 1.1 * part + 1e-7, total)
        x[open_] *= (1 - 1.1 * part - 1e-7)[open_, np.newaxis]
        chosen = np.repeat(open_, cells)
        if not limits.rubs:
            chosen &= beyond.part > 0
        only = np.flatnonzero(chosen)
        again = excess(limits, along, _both(x), flat, threads, only)
        for old, new in zip(beyond, again, strict=True):
            old[only] = new[only]
    return x, beyond.part.reshape(paths, cells).max(axis=1) <= 0, beyond


def _both(x: np.ndarray) -> np.ndarray:
    """x at both ends of all cells, (paths · cells, 2)."""
    return np.stack([x[:, :-1].ravel(), x[:, 1:].ravel()], axis=1)


def _evenly(x: np.ndarray, points: int) -> np.ndarray:
    """ρ at times that are evenly spaced in cells with these x at their ends, (cells, points).

    Joints turn back at ends of cells. Friction there is that of the direction inside, so that the round-off of a speed
    of zero does not choose it.
    """
    return evenly(x[:, :1], x[:, 1:], np.linspace(ASIDE, 1.0 - ASIDE, points))


def evenly(x: Any, following: Any, z: Any) -> Any:
    """ρ at a share z of a cell's time, of x at its ends; of arrays or scalars."""
    first, last = sqrt(x), sqrt(following)
    total = first + last
    moves = total > 0.0
    return where(moves, z * (2.0 * first + (last - first) * z) / where(moves, total, 1.0), z)


def _moving(path: Moment, x: np.ndarray, lengths: np.ndarray, rho: np.ndarray) -> Moment:
    """q, q̇ and q̈ of points of a path that is passed with squares of speeds from x[:, 0] to x[:, 1]."""
    rise = (x[:, 1] - x[:, 0])[:, np.newaxis]
    inside = np.maximum(x[:, :1] + rise * rho, 0.0)[..., np.newaxis]
    u = (rise / (2 * lengths[:, np.newaxis]))[..., np.newaxis]
    return Moment(path.q, path.qd * np.sqrt(inside), path.qd * u + path.qdd * inside)


def labels(limits: Limits) -> list[tuple[str, str]]:
    """Quantity and joint of the rows of ``Excess``."""
    names = limits.robot.joint_names
    rows = [("torque", names[k]) for k in limits.torques]
    rows += [("acceleration", names[k]) for k in limits.accelerations]
    rows += [("velocity", names[k]) for k in _with_speeds(limits)]
    return [*rows, ("tip speed", "tip")] if np.isfinite(limits.tip_speed) else rows


def _with_speeds(limits: Limits) -> np.ndarray:
    """Joints with a velocity limit; those whose limit is too small to count stand still."""
    return np.flatnonzero(np.isfinite(limits.velocity) & (limits.velocity > 1e-100))


def limit_rows(limits: Limits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lowest and highest limits of all rows, and their sizes."""
    most = [limits.acceleration[limits.accelerations], limits.velocity[_with_speeds(limits)]]
    if np.isfinite(limits.tip_speed):
        most.append(np.array([limits.tip_speed]))
    wide, joints = np.concatenate(most), limits.torques
    low, high = (np.concatenate([limits.torque[k][joints], (2 * k - 1) * wide]) for k in (0, 1))
    return low, high, np.concatenate([limits.torque_scale, wide])


def value_rows(limits: Limits, moment: Moment, threads: int | None) -> np.ndarray:
    """Values of all rows, (cells, points, rows)."""
    q, qd, qdd = moment
    speeds, accelerations = _with_speeds(limits), limits.accelerations
    rows = [qdd[..., accelerations], qd if speeds.size == q.shape[-1] else qd[..., speeds]]
    if (joints := limits.torques).size:
        flat = [part.reshape(-1, q.shape[-1]) for part in moment]
        tau = limits.robot.inverse_dynamics(*flat, friction=limits.friction, threads=threads).reshape(q.shape)
        rows.insert(0, tau if joints.size == q.shape[-1] else tau[..., joints])
    if np.isfinite(limits.tip_speed):
        jacobian = limits.robot.jacobian(q, limits.frame, threads=threads)[..., 3:, :]
        rows.append(np.linalg.norm(np.einsum("...ij,...j->...i", jacobian, qd), axis=-1)[..., np.newaxis])
    return np.concatenate(rows, axis=-1)


def _bound(over: np.ndarray) -> np.ndarray:
    """The greatest value between points, of (points, rows): parabolas through three, and how far they may be off."""
    before, here, after = over[:-2], over[1:-1], over[2:]
    slope, bend = 0.5 * (after - before), before - 2 * here + after
    with np.errstate(all="ignore"):
        top = np.where((bend < 0) & (np.abs(slope) < -bend), here - 0.5 * slope * slope / bend, here)
    top = np.maximum(top, np.maximum(before, after))
    off = PARABOLA * np.abs(np.diff(bend, axis=0))
    greatest = np.maximum((top[1:] + off).max(axis=0), (top[:-1] + off).max(axis=0))
    odd = np.abs(over[1::2] - _between(over[::2]))  # what every second point would not have told
    rough = np.where(odd > ROUGH, top[::2] + odd, -np.inf)
    return np.maximum(greatest, rough.max(axis=0))


def _between(values: np.ndarray) -> np.ndarray:
    """Values in the middle between points, the first axis, by cubics through four of them."""
    inner = 0.5625 * (values[1:-2] + values[2:-1]) - 0.0625 * (values[:-3] + values[3:])
    first, last = (
        0.3125 * part[0] + 0.9375 * part[1] - 0.3125 * part[2] + 0.0625 * part[3]
        for part in (values[:4], values[:-5:-1])
    )
    return np.concatenate([first[np.newaxis], inner, last[np.newaxis]])


def slower_part(
    limits: Limits, q: np.ndarray, row: np.ndarray, value: np.ndarray, over: np.ndarray
) -> np.ndarray:
    """The part by which x and u must be smaller where values of rows are beyond their limits by ``over``."""
    torques = limits.torques
    part = over / (1 + over)  # accelerations are proportional to x and u
    speeds = row >= torques.size + limits.accelerations.size
    part[speeds] = 1 - 1 / np.square(1 + over[speeds])
    mine = row < torques.size
    if mine.any():
        joint = torques[row[mine]]
        hold = limits.robot.gravity_torques(q[mine])[np.arange(joint.size), joint]
        low, high = limits.torque[0][joint], limits.torque[1][joint]
        room = np.where(value[mine] > hold, high - hold, hold - low) / limits.torque_scale[row[mine]]
        over = over[mine]
        part[mine] = np.where(room > 0, over / (over + np.maximum(room, 1e-300)), 1.0)
    return part
