"""External torques from the momentum of the arm, without acceleration and without a force sensor.

A. De Luca and R. Mattone, 2005; S. Haddadin, A. De Luca and A. Albu-Schäffer, "Robot collisions: a survey on detection,
isolation, and identification", 2017. With p = M q̇ and ṗ = τ − friction + Cᵀq̇ − g + τ_ext the residual

    r = K ( p − ∫ (τ − friction + Cᵀq̇ − g + r) dt − p(0) )        obeys        ṙ = K (τ_ext − r),

so every joint's external torque is seen through a first-order filter with the time constant 1/K.

From sample to sample the mean external torque of the interval follows from the balance of momentum itself,

    ē = (p₁ − p₀)/h − (τ − friction + ½ (b₀ + b₁)),        b = Cᵀq̇ − g,

with the torque τ that was held, and the filter is then solved exactly: r₁ = a r₀ + (1 − a) ē with a = e^(−Kh). As
0 ≤ a < 1 this is stable for every K h. No sum grows with time, so nothing drifts.

A joint at rest, or one that turns back within the interval, may have any dry friction between its limits; one that
moves while its friction is still changing its direction (``friction_speed``), any between what the law says and its
limit. Its external torque is then the smallest that explains the motion: stiction causes no false alarm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import coordinates, coupling, dense, joint_terms, kinematics
from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.recursion import Recursion
from linkwise.control.bounds import all_finite
from linkwise.control.controller import symbolic_links
from linkwise.errors import LinkwiseError
from linkwise.functions.parameters import parameter_sizes
from linkwise.functions.table import mechanism_of
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, all_of, where

GAIN, THRESHOLD = "observer_gain", "contact_threshold"
SHARE_OF_EFFORT = 0.1  # of the torque of a joint, where no threshold is given
USUAL_STATES = 200
HALVINGS = 5  # of the argument of ``decay``
LOST = -1.0  # first number of a memory after a sample that was no number; 0: no sample yet, 1: all is well


@dataclass(frozen=True)
class Observed:
    """What the observer found at one sample or, with one more axis before the last, at many."""

    external_torque: Any
    """The residual r: estimated external torques [N·m or N], (..., n)."""
    contact: Any
    """1 for joints whose residual is beyond its threshold for longer than ``confirm``, else 0, (..., n)."""
    collision: Any
    """1 from the first contact of any joint on, else 0, (..., 1)."""
    wrench: Any = None
    """Estimated external (moment, force) [N·m, N] at the frame's origin in its axes, (..., 6); None without a frame."""


class MomentumObserver:
    """Estimates external torques and detects contacts.

    Args:
        robot: the model, with its friction.
        gain: K [1/s], one number or (n,); the estimates follow with the time constant 1/K.
        threshold: external torque that counts as a contact [N·m or N], one number or (n,); None: a tenth of the
            effort limits, at joints without one a tenth of the torques of usual motions.
        confirm: how long the estimate must be beyond the threshold [s].
        cutoff: of a further first-order filter between estimate and threshold [rad/s]; None: no filter.
        rest_speed: joints slower than this count as resting, where dry friction is not known [rad/s or m/s].
        frame: where the external wrench is estimated; None: the only leaf, and no wrench for robots with several.
        damping: λ of the wrench: it minimises ‖Jᵀw − r‖² + λ²‖w‖², in N·m and N.
        force_only: whether the contact is a point, so that there is a force and no moment at the frame's origin.

    Raises:
        ValueError: a number is not positive, or has the wrong length.
        LinkwiseError: the robot has constraints, whose forces cannot be told from external ones.
    """

    def __init__(
        self,
        robot: Robot,
        gain: Any = 50.0,
        *,
        threshold: Any = None,
        confirm: float = 0.0,
        cutoff: float | None = None,
        rest_speed: float = 1e-2,
        frame: str | None = None,
        damping: float = 1e-3,
        force_only: bool = False,
    ):
        if robot.constraints:
            raise LinkwiseError(
                f"{robot.name}: forces of its constraints cannot be told from external forces; "
                "observe the robot without them"
            )
        self.robot = robot
        self.gain = positive("gain", gain, robot.dof)
        self.threshold = (
            SHARE_OF_EFFORT * _usual_torques(robot)
            if threshold is None
            else positive("threshold", threshold, robot.dof, infinite=True)
        )
        self.confirm = Numbers().number("confirm", confirm, least=0.0)
        self.cutoff = None if cutoff is None else float(positive("cutoff", cutoff, 1)[0])
        self.rest_speed = Numbers().number("rest_speed", rest_speed, least=0.0)
        self.damping = float(positive("damping", damping, 1)[0])
        self.force_only = flag("force_only", force_only)
        self.frame = frame if frame is not None or len(robot.leaf_names) != 1 else robot.default_frame()
        if self.frame is not None:
            robot.locate(self.frame)

    def __repr__(self) -> str:
        return f"<MomentumObserver of {self.robot.name}: gain {np.array2string(self.gain, precision=4)} 1/s>"

    # -- over scalars -------------------------------------------------------------------------------------------------

    @property
    def memory_size(self) -> int:
        """Scalars that are kept from sample to sample, zero at the start."""
        return 2 + self._per_joint * self.robot.dof

    @property
    def _per_joint(self) -> int:
        # momentum, its rate without torques, speed, estimate, time beyond the threshold, and the filtered estimate
        return 5 + (self.cutoff is not None)

    @property
    def initial_memory(self) -> np.ndarray:
        """The memory before the first sample; to forget a collision, go on with it."""
        return np.zeros(self.memory_size)

    def links(self) -> Mechanism:
        """The model prepared for torques."""
        return mechanism_of(self.robot, base_parameters=True)

    def numbers(self) -> dict[str, np.ndarray]:
        """Gain and thresholds by the names that controllers and simulations use."""
        return {GAIN: self.gain, THRESHOLD: self.threshold}

    def options(self) -> tuple[Any, ...]:
        """What besides model, gain and thresholds decides what is computed."""
        return (self.confirm, self.cutoff, self.rest_speed, self.frame, self.damping, self.force_only)

    def observe(
        self,
        links: Mechanism,
        numbers: Mapping[str, Sequence[Scalar]],
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        tau: Sequence[Scalar],
        memory: Sequence[Scalar],
        period: Scalar,
    ) -> tuple[Observed, list[Scalar]]:
        """One sample, over scalars.

        Args:
            links: those of the observer's model.
            numbers: values of the gain and the thresholds, see ``numbers``.
            q: measured positions, nq scalars.
            qd: measured velocities, n scalars.
            tau: torques of the motors since the last sample, n scalars; not used at the first.
            memory: what the last sample left.
            period: time since the last sample [s].

        Returns:
            What was found (without the wrench, see ``wrench``), and the next memory. A number that is not finite counts
            as a contact of every joint; the external torques are then those numbers, and the next memory has none.
        """
        n = self.robot.dof
        started, caught, *rest = memory
        old_p, old_b, old_qd, r, beyond, *filtered = (
            rest[k * n : (k + 1) * n] for k in range(self._per_joint)
        )
        p, carried = coordinates.momentum(links, q, qd)
        gravity, smooth = coordinates.gravity_torques(links, q), coordinates.smooth_friction(links, q, qd)
        b = [c - g - s for c, g, s in zip(carried, gravity, smooth, strict=True)]
        rate, first = 1.0 / period, started <= 0.0
        balance = [
            rate * (new - old) - 0.5 * (b_new + b_old)
            for new, old, b_new, b_old in zip(p, old_p, b, old_b, strict=True)
        ]
        mean = self._external(links, balance, tau, smooth, q, qd, old_qd)
        estimates: list[Scalar] = []
        for value, last, gain in zip(mean, r, numbers[GAIN], strict=True):
            a = decay(gain * period)
            estimates.append(value + a * (last - value))
        good = all_finite(estimates) if n else True
        found = [where(good, where(first, 0.0, value), value) for value in estimates]
        judged = found
        if self.cutoff is not None:
            a = decay(self.cutoff * period)
            judged = [x + a * (y - x) for x, y in zip(found, filtered[0], strict=True)]
        times = [
            # written so that NaN counts as a contact
            where(all_of(x <= limit, -x <= limit), 0.0, t + period)
            for x, t, limit in zip(judged, beyond, numbers[THRESHOLD], strict=True)
        ]
        contact = [where(t <= self.confirm, where(good, 0.0, 1.0), 1.0) for t in times]
        for hit in contact:
            caught = where(hit > 0.0, 1.0, caught)
        # after a sample with a number that is not finite the filters start again, and a collision was found
        again = where(abs(started) > 0.0, LOST, 0.0)
        kept = [*p, *b, *qd, *found, *times, *(judged if self.cutoff is not None else [])]
        following = [where(good, 1.0 + 0.0 * started, again), where(caught <= 0.0, caught, 1.0)]
        following += [where(good, value, 0.0) for value in kept]
        return Observed(found, contact, following[1:2]), following

    def _external(self, links: Mechanism, balance, tau, smooth, q, qd, old_qd) -> list[Scalar]:
        """ē: the mean external torques of an interval; ``balance`` is ṗ − (Cᵀq̇ − g − smooth friction)."""
        given = [t - x for t, x in zip(tau, smooth, strict=True)]
        speed = [0.5 * (new + old) for new, old in zip(qd, old_qd, strict=True)]
        dry = coordinates.dry_friction(links, q, speed)
        if joint_terms.has_load_friction(links):
            rest = [g - d for g, d in zip(given, dry, strict=True)]
            left = coordinates.subtract_load_friction(links, rest, speed)
            dry = [d + (x - y) for d, x, y in zip(dry, rest, left, strict=True)]
        limits = coordinates.dry_friction_limits(links, speed, given)
        found: list[Scalar] = []
        for k, (forward, backward) in enumerate(limits):
            free = balance[k] - tau[k]
            if all(is_zero(each) for each in (forward, backward, dry[k])):
                found.append(free)
                continue
            # friction lies between two values; the external torque is the one nearest to zero
            ahead = all_of(qd[k] > self.rest_speed, old_qd[k] > self.rest_speed)
            back = all_of(qd[k] < -self.rest_speed, old_qd[k] < -self.rest_speed)
            least = free + where(ahead, dry[k], -backward)
            most = free + where(back, dry[k], forward)
            found.append(where(least <= 0.0, where(most >= 0.0, 0.0, most), least))  # NaN stays NaN
        return found

    def wrench(self, links: Mechanism, q: Sequence[Scalar], external: Sequence[Scalar]) -> list[Scalar]:
        """The external (moment, force) at the frame's origin in its axes, over scalars: damped least squares.

        Args:
            links: those of the observer's model.
            q: positions, nq scalars.
            external: external torques, n scalars.
        """
        at = coupling.expanded(links, q, positions=True)
        body, pose = self.robot.locate(self.frame)
        J = coupling.reduced(links, kinematics.jacobian(links, at, body, pose), (False, True))
        rows = J[3:] if self.force_only else J
        w = _damped(rows, external, self.damping * self.damping)
        R = dense.transposed([row[:3] for row in kinematics.pose(links, at, body, pose)[:3]])
        force = [dense.dot(row, w[-3:]) for row in R]
        moment = [0.0, 0.0, 0.0] if self.force_only else [dense.dot(row, w[:3]) for row in R]
        return [*moment, *force]

    # -- as a kernel, and over recordings -----------------------------------------------------------------------------

    def recursion(self, period: float | None, parameters: Sequence[str] = ()) -> Recursion:
        """The observer as a function with a memory.

        Args:
            period: the sample period [s]; None: it is one more input.
            parameters: of the model that stay inputs.
        """
        n, nq = self.robot.dof, self.robot.nq
        constants = {name: [float(x) for x in values] for name, values in self.numbers().items()}

        def sample(q, qd, tau, memory, **given) -> dict[str, Any]:
            time = given.pop("period")[0] if period is None else float(period)
            links = symbolic_links(self.robot, given, self.frame) if given else self.links()
            found, following = self.observe(links, constants, q, qd, tau, memory, time)
            outputs = {"external_torque": found.external_torque, "contact": found.contact}
            outputs |= {"collision": found.collision, "next_memory": following}
            if self.frame is not None:
                outputs["wrench"] = self.wrench(links, q, found.external_torque)
            return outputs

        if period is not None:
            positive("period", period, 1)
        inputs = {"q": nq, "qd": n, "tau": n} | ({"period": 1} if period is None else {})
        inputs |= parameter_sizes(self.robot, tuple(parameters))
        shapes: dict[str, tuple[int, ...]] = {"external_torque": (n,)}
        if self.frame is not None:
            shapes["wrench"] = (6,)
        shapes |= {"contact": (n,), "collision": (1,)}
        content = (self.robot.content(), self.options(), period, inputs, sorted(constants.items()))
        return Recursion("momentum_observer", inputs, shapes, self.memory_size, sample, content)

    def kernel(self, period: float, dtype: str = "float64", inputs: Sequence[str] = ()) -> Kernel:
        """(q, qd, tau, inputs, memory) -> (external_torque, wrench, contact, collision, next_memory).

        ``tau`` are the torques of the motors between the last sample and this one. Robots without a frame have no
        wrench. Its C source is what a controller with this sample period [s] runs.

        Args:
            period: the sample period [s].
            dtype: "float64" or "float32".
            inputs: parameters of the model that stay inputs: "payload" (a load that is no external force) or labels.
        """
        made = self.recursion(period, inputs).kernel(dtype)
        made.origin = (MomentumObserver.kernel, (self, period, dtype, tuple(inputs)))
        return made

    def calibrated(
        self, q: Any, qd: Any, tau: Any, period: float, *, margin: float = 1.5
    ) -> MomentumObserver:
        """The same observer with thresholds from a recording without contact: the largest estimates times a margin.

        Args:
            q, qd, tau, period: as for ``over``.
            margin: how far above the largest estimates of each joint the thresholds are.
        """
        seen = np.abs(np.asarray(self.over(q, qd, tau, period).external_torque))
        found = copy(self)
        largest = seen.reshape(-1, self.robot.dof).max(axis=0)
        found.threshold = positive("thresholds of the recording", margin * largest, self.robot.dof)
        return found

    def over(self, q: Any, qd: Any, tau: Any, period: float, *, threads: int | None = None) -> Observed:
        """The observer over recordings: arrays of shape (..., samples, n).

        Args:
            q: positions, (..., samples, nq).
            qd: velocities, (..., samples, n).
            tau: torques [N·m or N]; row k is the torque between sample k − 1 and sample k.
            period: time between samples [s].
            threads: number of threads.
        """
        recursion = self.recursion(period)
        found, _ = recursion.over({"q": q, "qd": qd, "tau": tau}, self.initial_memory, threads=threads)
        return Observed(**found)


def _usual_torques(robot: Robot) -> np.ndarray:
    """Effort limits; where none are stated, the largest torques at random states with rates of up to 1 (SI units)."""
    limits = robot.effort_limits
    if np.isfinite(limits).all():
        return limits
    rng = np.random.default_rng(0)
    qd, qdd = rng.uniform(-1.0, 1.0, (2, USUAL_STATES, robot.dof))
    largest = np.abs(robot.inverse_dynamics(robot.random(rng, USUAL_STATES), qd, qdd)).max(axis=0)
    return np.where(np.isfinite(limits), limits, np.maximum(largest, 1e-3 * largest.max()))


def decay(x: Scalar) -> Scalar:
    """e^(−x) for x ≥ 0, between 0 and 1 for every such x; its error is below 1e-6, and 1e-11 for x < 0.05.

    Padé's approximation with the degrees 1 and 2 vanishes for large x, as e^(−x) does; squaring it makes it precise.
    """
    y = (1.0 / 2**HALVINGS) * x
    found = (1.0 - (1.0 / 3.0) * y) / (1.0 + y * (2.0 / 3.0 + (1.0 / 6.0) * y))
    for _ in range(HALVINGS):
        found = found * found
    return found


def positive(name: str, value: Any, size: int, *, infinite: bool = False) -> np.ndarray:
    """Positive numbers, shape (size,), from one number or so many."""
    return Numbers().each(name, value, size, above=0.0, finite=not infinite)


def _damped(rows: Sequence[Sequence[Scalar]], right: Sequence[Scalar], square: float) -> list[Scalar]:
    """w that minimises ‖rowsᵀ w − right‖² + square·‖w‖², by the smaller of the two systems."""
    A = [list(row) for row in rows]
    if len(A) <= len(right):
        L, inverse = dense.factorised(dense.raised(dense.symmetric_product(A, A), square))
        return dense.solved(L, inverse, [dense.dot(row, right) for row in A])
    columns = dense.transposed(A)
    L, inverse = dense.factorised(dense.raised(dense.symmetric_product(columns, columns), square))
    x = dense.solved(L, inverse, right)
    return [dense.dot(row, x) for row in A]
