"""Online moves for users: limits, moves to a target from any state, and motions through points."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import LinkwiseError, ShapeError
from linkwise.motion import arguments
from linkwise.motion.online import kernels
from linkwise.motion.online.plans import OnlineMove, OnlinePlan
from linkwise.motion.online.scalars import PHASES
from linkwise.motion.online.through import OnlineSequence, first_within
from linkwise.robot.robot import Robot

MOST_ROUNDS = 32  # of durations that all joints can have; each ends an interval of one joint


class OnlineMoveError(LinkwiseError, ValueError):
    """A target cannot be reached within the limits; the message says which joint, and why."""


class Online:
    """Moves to a new target at any moment, from any state, in the shortest time under limits of speed, acceleration and
    jerk.

    All joints arrive together (``together=False``: each as early as it can). A joint that starts beyond a limit brakes
    first. The method is that of the time-optimal moves of L. Berscheid and T. Kröger, "Jerk-limited real-time
    trajectory generation with arbitrary target states" (2021); how durations are found differs, see ``motion/online``.

    Args:
        velocity: limits [rad/s or m/s], one number or (n,).
        acceleration: limits [rad/s² or m/s²], one number or (n,).
        jerk: limits [rad/s³ or m/s³], one number or (n,).
        lowest_velocity: limits in the negative direction, negative; by default −velocity.
        lowest_acceleration: likewise.
        dof: number of joints; by default that of the limits.
        together: whether all joints arrive at the same time.
    """

    def __init__(
        self,
        velocity: Any,
        acceleration: Any,
        jerk: Any,
        *,
        lowest_velocity: Any = None,
        lowest_acceleration: Any = None,
        dof: int | None = None,
        together: bool = True,
    ):
        self.together = flag("together", together)
        rows = {
            "velocity": _positive("velocity", velocity),
            "lowest_velocity": _negative("lowest_velocity", lowest_velocity, velocity),
            "acceleration": _positive("acceleration", acceleration),
            "lowest_acceleration": _negative("lowest_acceleration", lowest_acceleration, acceleration),
            "jerk": _positive("jerk", jerk),
        }
        sizes = {row.size for row in rows.values() if row.ndim}
        self.dof = arguments.whole("dof", dof, 1) if dof is not None else max(sizes, default=1)
        for name, row in rows.items():
            if row.ndim and row.size != self.dof:
                raise ShapeError(f"{name}: expected one number or shape ({self.dof},), got {row.shape}")
        self.limits = tuple(np.array(np.broadcast_to(row, (self.dof,)), float) for row in rows.values())

    def __repr__(self) -> str:
        velocity, _, acceleration, _, jerk = (limit.tolist() for limit in self.limits)
        how = "together" if self.together else "each for itself"
        return f"<Online: {self.dof} joints, {how}; velocity {velocity}, acceleration {acceleration}, jerk {jerk}>"

    @classmethod
    def of(cls, robot: Robot, acceleration: Any, jerk: Any, *, together: bool = True) -> Online:
        """Moves with the limits of velocity of a robot.

        Args:
            robot: all of its joints have a limit of velocity.
            acceleration: limits [rad/s² or m/s²].
            jerk: limits [rad/s³ or m/s³].
            together: whether all joints arrive at the same time.
        """
        arguments.check_robot(robot)
        velocity = robot.velocity_limits
        if not np.isfinite(velocity).all():
            names = [
                joint.name
                for joint, v in zip(robot.coordinate_joints, velocity, strict=True)
                if not np.isfinite(v)
            ]
            raise ValueError(
                f"{robot.name}: no limit of velocity for {', '.join(names)}; give Online all limits"
            )
        return cls(velocity, acceleration, jerk, dof=robot.dof, together=together)

    def move(
        self,
        q: Any,
        qd: Any = 0.0,
        qdd: Any = 0.0,
        *,
        target: Any,
        velocity: Any = 0.0,
        acceleration: Any = 0.0,
        duration: float | None = None,
    ) -> OnlineMove:
        """The fastest move of one robot to a target.

        Args:
            q: positions now [rad or m], shape (n,).
            qd: velocities now [rad/s or m/s], one number or (n,).
            qdd: accelerations now [rad/s² or m/s²], one number or (n,).
            target: positions at the end, shape (n,).
            velocity: at the end, one number or (n,).
            acceleration: at the end, one number or (n,).
            duration: shortest duration [s]; the move takes the first possible one from there on.

        Raises:
            OnlineMoveError: velocity or acceleration of the target are beyond the limits.
        """
        rows = {
            "q": q,
            "qd": qd,
            "qdd": qdd,
            "target": target,
            "velocity": velocity,
            "acceleration": acceleration,
        }
        vectors = {name: arguments.per_joint(name, value, self.dof) for name, value in rows.items()}
        shortest = 0.0 if duration is None else arguments.duration(duration)
        plan = self.plan(
            vectors["q"],
            vectors["qd"],
            vectors["qdd"],
            target=vectors["target"],
            velocity=vectors["velocity"],
            acceleration=vectors["acceleration"],
            duration=shortest,
        )
        if plan.fault.any():
            joint = int(np.flatnonzero(plan.fault)[0])
            high, low, *_ = (float(limit[joint]) for limit in self.limits)
            raise OnlineMoveError(
                f"joint {joint + 1}: no move to velocity {vectors['velocity'][joint]:g} and acceleration "
                f"{vectors['acceleration'][joint]:g} within the limits of velocity {low:g} … {high:g}"
            )
        return OnlineMove(plan)

    def plan(
        self,
        q: Any,
        qd: Any = 0.0,
        qdd: Any = 0.0,
        *,
        target: Any,
        velocity: Any = 0.0,
        acceleration: Any = 0.0,
        duration: Any = 0.0,
        threads: int | None = None,
    ) -> OnlinePlan:
        """Moves of many robots at once; arguments broadcast.

        Args:
            q: positions now [rad or m], shape (..., n).
            qd: velocities now, shape (..., n).
            qdd: accelerations now, shape (..., n).
            target: positions at the end, shape (..., n).
            velocity: at the end, shape (..., n).
            acceleration: at the end, shape (..., n).
            duration: shortest durations [s], shape (...).
            threads: number of threads; None: as many as are worth it.
        """
        rows = {
            "q": q,
            "qd": qd,
            "qdd": qdd,
            "target": target,
            "velocity": velocity,
            "acceleration": acceleration,
        }
        arrays = [arguments.numbers(name, value) for name, value in rows.items()]
        shortest = arguments.numbers("duration", duration)[..., np.newaxis]
        try:
            shape = np.broadcast_shapes(*(a.shape for a in arrays), shortest.shape, (self.dof,))
        except ValueError:
            shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(rows, arrays, strict=True))
            raise ShapeError(f"expected shapes that broadcast to (..., {self.dof}), got {shapes}") from None
        if shape[-1] != self.dof:
            raise ShapeError(f"expected {self.dof} joints, got {shape[-1]}")
        lanes = [
            np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1, 1) for a in (*arrays, *self.limits)
        ]
        least = np.ascontiguousarray(np.broadcast_to(shortest, shape))
        times, (durations, jerks, weight, fault) = self._planned(lanes, least, threads)
        tracks = (*shape, 2, PHASES)
        now, speed, rate = (a.reshape(shape) for a in lanes[:3])
        return OnlinePlan(
            times,
            (now, speed, rate),
            durations.reshape(tracks),
            jerks.reshape(tracks),
            weight.reshape(shape),
            fault.reshape(shape) > 0.5,
        )

    def through(self, points: Any, *, blend: Any, q: Any, qd: Any = 0.0, qdd: Any = 0.0) -> OnlineSequence:
        """A motion that passes near points and ends at rest at the last one; it keeps the limits everywhere.

        The robot heads for a point and turns to the next one as soon as all joints are within ``blend`` of it.

        Args:
            points: positions [rad or m], shape (points, n).
            blend: distance within which every point but the last is passed [rad or m], one number or (n,).
            q: positions now, shape (n,).
            qd: velocities now, one number or (n,).
            qdd: accelerations now, one number or (n,).
        """
        places = arguments.finite("points", points)
        if places.ndim != 2 or not len(places) or places.shape[1] != self.dof:
            raise ShapeError(f"points: expected shape (points, {self.dof}), got {places.shape}")
        radius = arguments.per_joint("blend", blend, self.dof)
        if not (radius > 0.0).all():
            raise ValueError(f"blend: expected positive distances, got {radius}")
        state = [arguments.per_joint(key, x, self.dof) for key, x in (("q", q), ("qd", qd), ("qdd", qdd))]
        moves, times = [], [0.0]
        for number, place in enumerate(places):
            move = self.move(*state, target=place)
            left = move.end if number == len(places) - 1 else first_within(move, place, radius)
            moves.append(move)
            times.append(times[-1] + left)
            state = [*move.plan.at(left)]
        return OnlineSequence(moves, np.array(times))

    def _planned(
        self, lanes: list[np.ndarray], least: np.ndarray, threads: int | None
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The first durations that are possible, of all joints of a robot together or each for itself, and plans.

        A duration that one joint needs can be impossible for another one, which is a fault of its plan: then the next
        one is looked for.
        """

        def tried(shortest: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
            each = kernels.earliest_kernel()(*lanes, shortest.reshape(-1, 1), threads=threads)
            times = each.reshape(least.shape)
            if self.together:
                times = np.ascontiguousarray(np.broadcast_to(times.max(axis=-1, keepdims=True), least.shape))
            return times, kernels.plan_kernel()(*lanes, times.reshape(-1, 1), threads=threads)

        times, plan = tried(least)
        for _ in range(MOST_ROUNDS):
            before = times
            if not plan[3].any():
                break
            times, plan = tried(before)
            if np.array_equal(times, before, equal_nan=True):
                break
        return times, plan


def _positive(name: str, value: Any) -> np.ndarray:
    """One positive finite limit, or one for each joint."""
    array = arguments.finite(name, value)
    if array.ndim > 1:
        raise ShapeError(f"{name}: expected one number or shape (n,), got {array.shape}")
    if not (array > 0.0).all():
        raise ValueError(f"{name}: expected positive limits, got {array}")
    return array


def _negative(name: str, value: Any, opposite: Any) -> np.ndarray:
    """Negative limits; by default those of the other direction with the other sign."""
    array = -np.asarray(opposite, dtype=float) if value is None else arguments.finite(name, value)
    if array.ndim > 1:
        raise ShapeError(f"{name}: expected one number or shape (n,), got {array.shape}")
    if not (array < 0.0).all():
        raise ValueError(f"{name}: expected negative limits, got {array}")
    return array
