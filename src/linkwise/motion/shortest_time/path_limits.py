"""Limits along paths: what ``time_optimal`` keeps, as linear inequalities in u = σ̈ and x = σ̇² of every cell.

    q̇ = q′ √x,   q̈ = q′ u + q″ x,   τ = a u + b x + c,   a = M q′,   b = M q″ + c(q, q′),   c = g(q)

Friction depends on the speed, and may depend on the torque: it is evaluated along the solution before and continued
linearly in x.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.functions.table import mechanism_of
from linkwise.model.coordinates import check_motors
from linkwise.motion import arguments
from linkwise.motion.limits import LimitError, holding_torques
from linkwise.motion.shortest_time.cells import SAMPLES
from linkwise.motion.shortest_time.reachability import PARABOLA
from linkwise.motion.trajectory import Moment
from linkwise.robot.robot import Robot

CREEP = 1e-8  # [1/s²]: x that stands for zero where friction needs a direction
TURNING = 1e-5  # tangent of a joint relative to the largest one: it turns back there
RISE = 1e-3  # relative change of x from which slopes of friction are taken


@dataclass(frozen=True)
class Limits:
    """Limits of all joints; infinity where there is none."""

    robot: Robot
    torque: tuple[np.ndarray, np.ndarray]  # lowest and highest [N·m or N], (n,)
    velocity: np.ndarray  # [rad/s or m/s], (n,)
    acceleration: np.ndarray  # [rad/s² or m/s²], (n,)
    tip_speed: float  # [m/s]
    frame: str | None
    friction: bool
    rubs: bool = field(init=False)  # there is friction
    turns: bool = field(init=False)  # there is some that jumps where a joint turns back
    torques: np.ndarray = field(init=False)  # joints with a torque limit
    accelerations: np.ndarray = field(init=False)  # joints with an acceleration limit

    def __post_init__(self):
        rubs, turns = _rubbing(self.robot)
        object.__setattr__(self, "rubs", self.friction and rubs)
        object.__setattr__(self, "turns", self.friction and turns)
        limited = np.isfinite(self.torque[0]) | np.isfinite(self.torque[1])
        object.__setattr__(self, "torques", limited.nonzero()[0])
        object.__setattr__(self, "accelerations", np.isfinite(self.acceleration).nonzero()[0])

    @property
    def torque_scale(self) -> np.ndarray:
        """Sizes of the torque limits of joints that have one."""
        low, high = self.torque[0][self.torques], self.torque[1][self.torques]
        return np.maximum(np.where(np.isfinite(high), np.abs(high), np.abs(low)), 1e-9)

    @property
    def bound(self) -> bool:
        """Whether there is a limit at all that bounds the time."""
        return bool(self.torques.size or self.accelerations.size)


@lru_cache(maxsize=32)
def _rubbing(robot: Robot) -> tuple[bool, bool]:
    """Whether a robot has friction, and dry friction."""
    links = mechanism_of(robot)
    return joint_terms.has_friction(links), joint_terms.has_dry_friction(links)


def limits_of(
    robot: Robot,
    torque: Any,
    velocity: Any,
    acceleration: Any,
    tip_speed: Any,
    frame: str | None,
    friction: bool,
) -> Limits:
    """Checked limits; the robot's own where None is given."""
    check_motors(robot, "time_optimal")
    n = robot.dof

    def chosen(name: str, value: Any) -> np.ndarray | None:
        if value is None:
            return None
        limit = arguments.limits(name, value, n)
        if not limit.all():
            raise ValueError(
                f"{name}: expected positive limits, got zero for {robot.joint_names[int(np.argmin(limit))]}"
            )
        return limit

    speed = (
        np.inf if tip_speed is None else arguments.number("tip_speed", tip_speed, positive=True, unit="m/s")
    )
    speeds, accelerations = chosen("velocity", velocity), chosen("acceleration", acceleration)
    return Limits(
        robot,
        _torques(robot, torque, n),
        robot.velocity_limits if speeds is None else speeds,
        np.full(n, np.inf) if accelerations is None else accelerations,
        float(speed),
        frame,
        friction,
    )


def _torques(robot: Robot, torque: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest torques: one number, one per joint, or a row of the lowest and a row of the highest."""
    if torque is None:
        return -robot.effort_limits, np.array(robot.effort_limits)
    array = arguments.numbers("torque", torque)
    if array.shape != (2, n):
        high = arguments.limits("torque", torque, n)
        return -high, high
    if not (array[0] < array[1]).all():
        raise ValueError("torque: expected lowest limits below the highest ones in its two rows")
    return array[0], array[1]


class Strips:
    """The limits of paths at the samples of their cells: arrays (paths, cells, samples, rows).

    A row is the torque or the acceleration of a joint. ``a``, ``b`` and ``c`` give it as a·u + b·x + c.
    """

    def __init__(
        self, limits: Limits, moment: Moment, lengths: np.ndarray, rests: np.ndarray, threads: int | None
    ):
        """``rests``: grid points at which the path is at rest, (paths, cells + 1)."""
        self.limits, self.moment, self.lengths, self.rests = limits, moment, lengths, rests
        self.threads = threads
        q, first, second = moment
        robot, torques, accelerations = limits.robot, limits.torques, limits.accelerations
        shape = (*q.shape[:-1], torques.size + accelerations.size)
        self.a: np.ndarray = np.empty(shape)
        self.b: np.ndarray = np.empty(shape)
        self.c: np.ndarray = np.zeros(shape)
        k = torques.size
        if k:
            n = q.shape[-1]
            flat, rest = [part.reshape(-1, n) for part in moment], np.zeros(n)
            c = holding_torques(robot, flat[0], threads)
            a = robot.inverse_dynamics(flat[0], rest, flat[1], friction=False, threads=threads)
            b = robot.inverse_dynamics(*flat, friction=False, threads=threads)
            a -= c
            b -= c
            for mine, given in ((self.a, a), (self.b, b), (self.c, c)):
                mine[..., :k] = given.reshape(q.shape)[..., torques if k < n else slice(None)]
        self.a[..., k:], self.b[..., k:] = first[..., accelerations], second[..., accelerations]
        most = limits.acceleration[accelerations]
        self.low = np.concatenate([limits.torque[0][torques], -most])
        self.high = np.concatenate([limits.torque[1][torques], most])
        self.scale = np.concatenate([limits.torque_scale, np.maximum(most, 1e-9)])
        self.speeds = self._speeds(first)

    def of(self, paths: np.ndarray) -> Strips:
        """Those of some paths."""
        some = copy.copy(self)
        some.moment = Moment(*(part[paths] for part in self.moment))
        some.lengths, some.rests, some.speeds = self.lengths[paths], self.rests[paths], self.speeds[paths]
        some.a, some.b, some.c = self.a[paths], self.b[paths], self.c[paths]
        return some

    def _speeds(self, first: np.ndarray) -> np.ndarray:
        """1/x of the fastest x at the samples: that of the joint, or of the tip, that is nearest to its limit."""
        with np.errstate(all="ignore"):
            ratio = first / self.limits.velocity
            ratio *= ratio
        fastest = ratio.max(axis=-1)
        if np.isfinite(self.limits.tip_speed):
            jacobian = self.limits.robot.jacobian(self.moment.q, self.limits.frame, threads=self.threads)
            with np.errstate(all="ignore"):
                tip = np.einsum("...ij,...j->...i", jacobian[..., 3:, :], first) / self.limits.tip_speed
                fastest = np.maximum(fastest, (tip * tip).sum(axis=-1))
        return fastest if np.isfinite(fastest).all() else self._of_moving(ratio, first)

    def _of_moving(self, ratio: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The same where joints with a velocity limit of zero stand still; an error where one moves."""
        if not np.isfinite(first).all():
            raise ValueError("path: derivatives of its positions are beyond the range of numbers")
        moves = np.abs(first) > 1e-12 * np.abs(first).max()
        small = np.argwhere(moves & ~np.isfinite(ratio))
        standing = np.where(np.isfinite(ratio), ratio, 0.0).max(axis=-1)
        if small.size or np.isfinite(self.limits.tip_speed):
            name = self.limits.robot.joint_names[small[0, -1]] if small.size else "the tip"
            raise LimitError(
                f"{name} moves along the path, but its velocity limit is zero or too small to count"
            )
        return standing

    def most(self) -> np.ndarray:
        """The greatest x at grid points, (paths, cells + 1)."""
        with np.errstate(divide="ignore"):
            first, last = 1 / self.speeds[..., 0], 1 / self.speeds[..., -1]
        greatest = np.empty((len(first), first.shape[1] + 1))
        greatest[:, 0], greatest[:, -1] = first[:, 0], last[:, -1]
        np.minimum(first[:, 1:], last[:, :-1], out=greatest[:, 1:-1])
        inner = self.rests[:, 1:-1]
        if inner.any():
            greatest[:, 1:-1][inner] = 0.0
        return greatest

    def at_samples(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u of the cells and x at their samples, (paths, cells, 1) and (paths, cells, samples), of x at grid points."""
        rise = x[:, 1:] - x[:, :-1]
        u = rise / (2 * self.lengths)
        return u[..., np.newaxis], x[:, :-1, np.newaxis] + rise[..., np.newaxis] * SAMPLES

    def friction(self, u: np.ndarray, x: np.ndarray, *, rest: bool) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest friction of the joints with a torque limit at the samples.

        Both are the same, but where a joint hardly moves in the whole cell, with friction of both directions, and where
        the path comes to ``rest``, with friction that is zero at that moment and not before it; otherwise that moment
        is left out. Where a joint turns back at an end of a cell, its friction is that of the direction inside.
        """
        q, first, second = self.moment
        robot, x = self.limits.robot, np.maximum(x, CREEP)[..., np.newaxis]
        slow = TURNING * np.abs(first).max(axis=(1, 2, 3), keepdims=True)
        turns = np.abs(first) < slow
        inside = first[:, :, 1:2] + first[:, :, 2:3]
        first = np.where(turns, slow * np.sign(inside), first)
        either = turns & (np.abs(inside) < 2 * slow)
        qd, qdd = first * np.sqrt(x), first * u[..., np.newaxis] + second * x
        flat = [part.reshape(-1, q.shape[-1]) for part in (q, qd, qdd)]
        rubbing = robot.inverse_dynamics(*flat, threads=self.threads)
        rubbing -= robot.inverse_dynamics(*flat, friction=False, threads=self.threads)
        rubbing = rubbing.reshape(q.shape)
        rests = np.zeros(x.shape, dtype=bool)
        if rest:
            rests[:, :, 0, 0], rests[:, :, -1, 0] = self.rests[:, :-1], self.rests[:, 1:]
        joints = self.limits.torques
        rubbing, either = rubbing[..., joints], either[..., joints]
        other = np.where(either, -rubbing, np.where(rests, 0.0, rubbing))
        return np.minimum(rubbing, other), np.maximum(rubbing, other)

    def allowed(self, u: np.ndarray, x: np.ndarray, *, rest: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest values of all rows, torques without friction, for arguments as in ``friction``."""
        if not self.limits.rubs or not self.limits.torques.size:
            return self.low, self.high
        low, high = np.zeros(self.a.shape), np.zeros(self.a.shape)
        k = self.limits.torques.size
        low[..., :k], high[..., :k] = self.friction(u, x, rest=rest)
        return self.low - low, self.high - high

    def rows(
        self, margin: np.ndarray, u: np.ndarray, x: np.ndarray, *, sloping: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """a, b, low and high of low ≤ a·u + b·x ≤ high at all samples, (paths, cells, samples, rows).

        ``margin`` (paths, cells, rows) is kept to all limits; friction is that at u and x, as in ``friction``, and with
        ``sloping`` it changes with x.
        """
        b, c = self.b, self.c
        low, high = self.allowed(u, x)
        if low.ndim > 1 and sloping:
            base = np.maximum(x, CREEP)
            more = self.allowed(u, base * (1 + RISE))[0]
            base = base[..., np.newaxis]
            with np.errstate(invalid="ignore"):
                slope = (more - low) / (RISE * base)
            slope = np.where(np.isfinite(slope), slope, 0.0)
            b, c = b - slope, c + slope * base
        margin = margin[:, :, np.newaxis]
        return self.a, b, low + margin - c, high - margin - c

    def values(self, x: np.ndarray) -> np.ndarray:
        """The values of all rows at the samples, of x at grid points."""
        u, inside = self.at_samples(x)
        return self.a * u[..., np.newaxis] + self.b * inside[..., np.newaxis] + self.c

    def beyond(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far each row goes beyond its limits inside of each cell, (paths, cells, rows); negative: it does not.

        And the squares of speeds as multiples of their limits, (paths, cells).
        """
        values, (u, inside) = self.values(x), self.at_samples(x)
        low, high = self.allowed(u, inside, rest=False)
        return (
            np.maximum(peak(values - high), peak(low - values)),
            peak((self.speeds * inside)[..., np.newaxis])[..., 0],
        )

    def excess(self, x: np.ndarray) -> np.ndarray:
        """By which fraction x and u would have to be smaller in each cell, (paths, cells): 1 where no speed helps."""
        values, (u, inside) = self.values(x), self.at_samples(x)
        low, high = self.allowed(u, inside, rest=False)
        worst = peak((self.speeds * inside)[..., np.newaxis])[..., 0]
        worst = np.where(worst > 1, 1 - 1 / np.maximum(worst, 1.0), 0.0)
        for over, slack in ((values - high, high - self.c), (low - values, self.c - low)):
            beyond, room = np.maximum(peak(over), 0.0), slack.min(axis=-2)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(beyond > 0, np.where(room > 0, beyond / (beyond + room), 1.0), 0.0)
            worst = np.maximum(worst, part.max(axis=-1, initial=0.0))
        return worst


def peak(values: np.ndarray) -> np.ndarray:
    """The greatest value between four samples, axis −2: of parabolas through three, and how far they may be off."""
    before, here, after = values[..., :-2, :], values[..., 1:-1, :], values[..., 2:, :]
    slope, bend = 0.5 * (after - before), before - 2 * here + after
    with np.errstate(all="ignore"):
        top = np.where((bend < 0) & (np.abs(slope) < -bend), here - 0.5 * slope * slope / bend, -np.inf)
    off = PARABOLA * np.abs(bend[..., 1, :] - bend[..., 0, :])
    return np.maximum(values.max(axis=-2), top.max(axis=-2)) + off


def check_speed(name: str, value: Any) -> float:
    """A speed along a path [rad/s or m/s], not negative."""
    speed = arguments.number(name, value, unit="rad/s or m/s")
    if speed < 0:
        raise ValueError(f"{name}: expected a speed that is not negative, got {value!r}")
    return speed
