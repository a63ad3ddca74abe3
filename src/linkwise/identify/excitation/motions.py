"""Motions that excite every parameter: Fourier series or splines, optimised under the limits of the robot.

Coefficients are found by a quasi-Newton method with exact gradients. Limits (positions, speeds, accelerations, torques)
and distances between links and to the room enter as penalties; at the end the amplitudes are reduced until the motion
keeps all of them on a fine grid, and the distances also between its points.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.collision import Box, Clearance, Contact, Room
from linkwise.core.summaries import Summarised
from linkwise.errors import UnknownNameError
from linkwise.files.tables import bounds
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.quasi_newton import minimize
from linkwise.identify.excitation.basis import Basis, FourierBasis, SplineBasis
from linkwise.identify.excitation.criteria import Criterion, check_criterion
from linkwise.identify.excitation.limits import ADVICE, Bounds, MotionLimits
from linkwise.model.checks import check_moves, check_no_tendons
from linkwise.model.coordinates import check_motors, check_one_axis, check_torques
from linkwise.motion import Samples, Trajectory
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

POINTS, POINTS_EACH = (
    120,
    8,
)  # at which a motion is judged while it is optimised: at least, and per coefficient
DENSER = 4  # times as many points for distances, which change faster than torques
FINE, FINE_EACH = 2000, 120  # at which it must keep all limits in the end
RANDOM = 20  # random motions that fill the limits, for comparison
EVALUATIONS_EACH = 3.5  # of the criterion for a step of the search, at most about


@dataclass(frozen=True, repr=False)
class Excited(Summarised):
    """An exciting motion and how good it is.

    ``condition`` is the condition number of the base regressor along the motion, rows scaled by joint and columns to
    unit length, as in an estimation; ``condition_random`` the median of that over random motions of the same
    family that fill the same limits. (While it is searched, columns are scaled by their size at random states, so that
    a small motion does not look as good as a large one.) ``log_det`` is log det(WᵀW) per parameter, ``torque`` (n,)
    are the largest torques [N·m or N] and ``labels`` the base parameters.

    ``clearance`` has the shapes and the room, ``nearest`` is what comes nearest to something, at ``nearest_time`` [s],
    on the grid of ``samples``; ``proved`` is a distance [m] that is kept at all times, also between its points. They
    are None, None, 0 and infinity where nothing is compared.

    ``converged``: the search ended at an optimum, from which no step improves the motion, and not at the limit of
    iterations. Either way the motion has the same bits on every processor.
    """

    trajectory: Trajectory
    samples: Samples
    robot: Robot
    criterion: str
    condition: float
    condition_random: float
    log_det: float
    log_det_random: float
    torque: np.ndarray
    seconds: float
    evaluations: int
    labels: tuple[str, ...]
    clearance: Clearance | None = None
    nearest: Contact | None = None
    nearest_time: float = 0.0
    proved: float = np.inf
    converged: bool = True

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.samples.t[-1])

    def sampled(self, rate: float, periods: float = 1.0) -> Samples:
        """Samples at ``rate`` [Hz] for so many periods; a spline has one.

        Args:
            rate: samples per second [Hz].
            periods: number of periods.
        """
        rows = self.duration * periods * rate + 1
        bounds.check(f"{rows:.6g} samples of {self.robot.dof} joints", rows * (1 + 3 * self.robot.dof))
        t = np.arange(round(self.duration * periods * rate) + 1) / rate
        if t[-1] > self.trajectory.end + 1e-9:
            raise ValueError(f"periods: a spline is not periodic, expected at most 1, got {periods:g}")
        return Samples(t, *self.trajectory.at(t))

    def write_csv(self, path: str | os.PathLike[str], rate: float = 1000.0, periods: float = 1.0) -> None:
        """Write t, q, qd, qdd as a table.

        Args:
            path: the file.
            rate: samples per second [Hz].
            periods: number of periods.
        """
        from linkwise.motion import write_csv

        write_csv(path, self.sampled(rate, periods))


def excite(
    robot: Robot,
    *,
    family: str = "fourier",
    duration: float = 10.0,
    order: int = 5,
    criterion: str = "condition",
    acceleration: float | Sequence[float] | None = None,
    share: float = 0.8,
    limits: MotionLimits | None = None,
    workspace: Box | None = None,
    room: Room | None = None,
    friction: str = "coulomb",
    starts: int = 3,
    iterations: int = 300,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Excited:
    """A motion that makes the base parameters of a robot as distinguishable as possible.

    Args:
        robot: the robot to be excited.
        family: "fourier" (``order`` harmonics of 1/duration) or "spline" (``order`` + 4 via points), from rest to rest.
        duration: [s].
        order: number of harmonics, or of via points less 4.
        criterion: "condition" or "log_det".
        acceleration: limit [rad/s² or m/s²], a number or (n,).
        share: fraction of the limits of speed, acceleration and torque that may be used.
        limits: in place of all limits above.
        workspace: a box that moving links must not leave; that of ``room`` in short.
        room: what the robot must not touch: floor, walls, boxes, itself; and the tool that it carries. By default
            itself and a floor through the origin of its base frame, across gravity, with a clearance of 2 cm.
        friction: the friction model to be identified as well, see ``friction.MODELS``; rotor inertias always are.
        starts: number of random motions that are improved; the best one is returned.
        iterations: most steps of improvement for each.
        seed: the same seed gives the same motion.
        progress: called with a text and the fraction done: first with the longest time that it may take, then at
            every step.

    Returns:
        The motion with its condition number.

    Raises:
        IdentificationError: no posture or no motion keeps all limits; the message says what is hit, where and when.
    """
    check_moves(robot)
    check_one_axis(robot, "identification")
    check_torques(robot, "identification")
    check_motors(robot, "excite")
    check_no_tendons(robot, "excitation")
    begun = time.monotonic()
    if starts < 1:
        raise ValueError(f"starts: expected at least 1, got {starts}")
    given = limits or MotionLimits.of(robot, acceleration, share)
    bounds = Bounds(robot, given, _clearance(robot, given, room, workspace))
    basis = _basis(family, duration, order)
    search = Search(Criterion(robot, friction), basis, bounds, check_criterion(criterion), seed, starts)
    rng = np.random.default_rng(seed)
    randoms = [search.motion(search.random(rng)) for _ in range(RANDOM)]
    best: tuple[float, np.ndarray, bool] | None = None
    say = progress or (lambda words, fraction: None)
    if progress is not None:
        any_motion = search.random(np.random.default_rng(seed))
        progress(f"at most about {search.foreseen(any_motion, iterations) * starts:.0f} s", 0.0)
    for number in range(starts):

        def advance(fraction: float, number: int = number) -> None:
            say(f"start {number + 1} of {starts}", (number + fraction) / starts)

        theta, converged = search.improve(
            search.random(rng, fill=0.6, number=number), iterations, advance if progress else None
        )
        theta = search.feasible(theta, number, proved=True)
        value = search.criterion.value(search.motion(theta), criterion)
        say(f"start {number + 1} of {starts}: {criterion} {value:.4g}", (number + 1) / starts)
        if best is None or value < best[0]:
            best = (value, theta, converged)
    assert best is not None
    found = _excited_motion(robot, search, best[1], randoms)
    return replace(found, seconds=time.monotonic() - begun, converged=best[2])


def _excited_motion(
    robot: Robot, search: Search, theta: np.ndarray, randoms: list[list[np.ndarray]]
) -> Excited:
    """The motion with coefficients θ, beside random ones."""
    judge, motion, clearance = search.criterion, search.motion(theta), search.bounds.clearance
    samples = Samples(search.grid, *(product(B, theta) for B in search.fine))
    nearest = None if clearance is None else clearance.contact_and_row(samples.q)
    return Excited(
        search.basis.trajectory(theta),
        samples,
        robot,
        search.name,
        judge.condition(motion),
        float(np.median([judge.condition(each) for each in randoms])),
        -judge.value(motion, "log_det"),
        -float(np.median([judge.value(each, "log_det") for each in randoms])),
        np.abs(robot.inverse_dynamics(samples.q, samples.qd, samples.qdd)).max(axis=0),
        0.0,
        search.evaluations,
        judge.labels,
        clearance if nearest is not None else None,
        None if nearest is None else nearest[0],
        0.0 if nearest is None else float(samples.t[nearest[1]]),
        search.proved(theta),
    )


def _clearance(robot: Robot, limits: MotionLimits, room: Room | None, workspace: Box | None) -> Clearance:
    room = Room() if room is None else room
    if workspace is not None:
        if room.inside is not None:
            raise ValueError("workspace: given twice, also as room.inside")
        room = replace(room, inside=workspace)
    return Clearance(robot, room, lower=limits.lower, upper=limits.upper)


def _basis(family: str, duration: float, order: int) -> Basis:
    duration = Numbers().time("duration", duration)
    if family == "fourier":
        return FourierBasis(duration, order)
    if family == "spline":
        return SplineBasis(duration, order + 4)
    raise UnknownNameError(f"family: no {family!r}; valid: fourier, spline")


class Search:
    """The optimisation: coefficients θ (size, n) in, criterion plus penalties and their gradient out."""

    def __init__(
        self, criterion: Criterion, basis: Basis, bounds: Bounds, name: str, seed: int = 0, starts: int = 1
    ):
        self.criterion, self.basis, self.bounds, self.name = criterion, basis, bounds, name
        points = max(POINTS, POINTS_EACH * basis.size)
        self.B = basis.matrices(basis.times(points))
        self.dense = basis.matrices(basis.times(DENSER * points))[0]
        self.grid = np.linspace(0.0, basis.duration, max(FINE, FINE_EACH * basis.size))
        self.fine = basis.matrices(self.grid)
        self.rests = bounds.resting(seed, starts)
        self.evaluations = 0

    def rest(self, number: int) -> np.ndarray:
        """The posture (n,) about which start ``number`` moves."""
        return self.rests[number % len(self.rests)]

    def motion(self, theta: np.ndarray) -> list[np.ndarray]:
        """q, q̇ and q̈ at the points of the criterion, each (points, n)."""
        return [product(B, theta) for B in self.B]

    def random(self, rng: np.random.Generator, fill: float = 1.0, number: int = 0) -> np.ndarray:
        """A random motion about a resting posture that fills this share of the limits of every joint, or less."""
        rest = self.rest(number)
        # sums of uniform numbers, nearly normal: exact on every processor, which the logarithms of normal ones are not
        theta = rng.random((12, self.basis.size, len(rest))).sum(axis=0) - 6.0
        theta[0] = 0.0
        q, qd, qdd = (product(B, theta) for B in self.fine)
        theta -= _constant(theta, 0.5 * (q.max(axis=0) + q.min(axis=0)))
        limits = self.bounds.limits
        room = np.minimum(rest - limits.lower, limits.upper - rest)
        sizes = [np.ptp(q, axis=0) / 2 / room, np.abs(qd).max(axis=0) / limits.velocity]
        sizes.append(np.abs(qdd).max(axis=0) / limits.acceleration)
        theta *= fill / np.maximum(np.max(sizes, axis=0), 1e-12)
        return self.feasible(theta + _constant(theta, rest), number)

    def foreseen(self, theta: np.ndarray, iterations: int) -> float:
        """The longest time [s] that improving a motion may take, from the time of one evaluation (the second one: the
        first compiles)."""
        self.cost(theta, self.name, 100.0)
        begun = time.monotonic()
        self.cost(theta, self.name, 100.0)
        self.evaluations -= 2
        return EVALUATIONS_EACH * iterations * (time.monotonic() - begun)

    def improve(
        self, theta: np.ndarray, iterations: int, advance: Callable[[float], None] | None = None
    ) -> tuple[np.ndarray, bool]:
        """First by the smooth volume criterion, then by the given one, with growing penalties; and whether the last
        search ended at an optimum. ``advance`` is called with the fraction of the evaluations that are foreseen."""
        shape, converged, before = theta.shape, False, self.evaluations
        scale = np.broadcast_to(self.bounds.limits.half / 2, shape)
        for part, (name, weight) in enumerate((("log_det", 10.0), (self.name, 100.0), (self.name, 1e3))):
            before = self.evaluations

            def cost(
                flat: np.ndarray, name=name, weight=weight, part=part, before=before
            ) -> tuple[float, np.ndarray]:
                if advance is not None:
                    done = (self.evaluations - before) / (EVALUATIONS_EACH * max(1, iterations // 3))
                    advance((part + min(done, 1.0)) / 3)
                value, gradient = self.cost(flat.reshape(shape) * scale, name, weight)
                return value, (gradient * scale).reshape(-1)

            found = minimize(cost, (theta / scale).reshape(-1), max(1, iterations // 3))
            theta, converged = found.x.reshape(shape) * scale, found.converged
        return theta, converged

    def feasible(self, theta: np.ndarray, number: int = 0, *, proved: bool = False) -> np.ndarray:
        """The motion with reduced amplitudes, and if necessary moved towards the resting posture, so that it keeps
        every limit; ``proved``: and distances between the points of the grid, too."""
        q = product(self.fine[0], theta)
        limits = self.bounds.limits
        middle = np.clip((q.max(axis=0) + q.min(axis=0)) / 2, limits.lower, limits.upper)
        moving = theta - _constant(theta, middle)
        tried = theta
        for pull in np.linspace(0.0, 1.0, 6):
            centre = _constant(theta, (1 - pull) * middle + pull * self.rest(number))
            for share in np.cumprod(np.full(100, 0.97)) / 0.97:
                tried = centre + share * moving
                if not self.bounds.keeps(*(product(B, tried) for B in self.fine)):
                    continue
                if not proved or self.proved(tried) >= self.bounds.wanted:
                    return tried
        broken = self.bounds.broken(self.grid, *(product(B, tried) for B in self.fine))
        raise IdentificationError(
            f"excite: no motion keeps all limits: even a small one does not, {broken}; {ADVICE}"
        )

    def proved(self, theta: np.ndarray) -> float:
        """A distance [m] that the motion keeps at all times."""
        clearance = self.bounds.clearance
        if clearance is None:
            return np.inf
        motion = self.basis.trajectory(theta)
        largest = self.basis.acceleration_bound(theta)
        return clearance.bound_along(motion.at, self.grid, largest, self.bounds.wanted)[0]

    def cost(self, theta: np.ndarray, name: str, weight: float) -> tuple[float, np.ndarray]:
        """A criterion plus penalties, and its gradient (size, n)."""
        self.evaluations += 1
        motion = self.motion(theta)
        value, gradients = self.criterion.value_and_gradient(motion, name)
        value += self.bounds.penalty(motion, gradients, weight)
        slope = np.sum([product(B.T, g) for B, g in zip(self.B, gradients, strict=True)], axis=0)
        missing, by_position = self.bounds.room_penalty(product(self.dense, theta), weight)
        return value + missing, slope + product(self.dense.T, by_position)


def _constant(like: np.ndarray, posture: np.ndarray) -> np.ndarray:
    """Coefficients of a motion that rests in a posture (n,): the first coefficient is the constant."""
    theta = np.zeros_like(like)
    theta[0] = posture
    return theta
