"""Recursive least squares: parameters and friction of a robot while it works, one sample after the other.

With the covariance as factors U D Uᵀ (``algorithms.ud_factors``) it stays symmetric and positive for ever. Old samples
count less by a forgetting factor λ per sample, P ← P/λ. Directions that a motion does not excite would so grow without
bound; here every parameter has a largest standard deviation, and one that has reached it is forgotten no further, while
the others are (a forgetting factor for every parameter, S. Saelid and B. Foss, 1983): P ← S P S with
s_i = min(λ^(−1/2), bound_i/deviation_i).

Friction changes with temperature and wear while bodies stay as they are: ``parameters="friction"`` follows it alone, so
that the robot remains one that can exist; estimates are kept at or above ``lowest``, which is zero for what brakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms.ud_factors import UD, measure, packed_size
from linkwise.arguments.numbers import Numbers
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.recursion import Recursion
from linkwise.control.chosen_parameters import BASE, FRICTION, OFFSET, Chosen
from linkwise.control.momentum_observer import positive
from linkwise.core.once import once
from linkwise.language import array, dot, empty, span
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, sqrt, where

VAGUE = 10.0  # standard deviation of parameters before the first sample, in their own units
LARGEST = 1e300  # stands for infinity in code
FASTEST = 0.5  # forgetting factor below which nothing is estimated


@dataclass(frozen=True)
class Followed:
    """Estimates after every sample; rows are samples."""

    parameters: np.ndarray
    """(..., samples, parameters)."""
    deviations: np.ndarray
    """Their standard deviations."""
    residual: np.ndarray
    """Measured less predicted torques before each update [N·m or N], (..., samples, n)."""
    memory: np.ndarray
    """To go on with later samples."""


class RecursiveLeastSquares:
    """Follows parameters of a robot from positions, velocities, accelerations and torques.

    Args:
        robot: the model; parameters that are not followed keep its values.
        parameters: "base" (all base parameters of links, rotors and friction), "payload" (ten numbers
            m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz of a load at ``frame``), "friction" (its coefficients and offsets of
            torques, the bodies as they are), or labels of ``robot.parameter_labels``.
        forgetting: λ per sample, from 0.5 to 1; 1: all samples count alike, and the result is that of least squares.
        noise: standard deviation of the torques [N·m or N], one number or (n,).
        start: values before the first sample, (parameters,); None: the robot's.
        deviation: their standard deviation, one number or (parameters,).
        bound: largest standard deviation to which forgetting leads, one number or (parameters,); None: ``deviation``.
        frame: of the payload; None: the only leaf.
        lowest: smallest values, one number or (parameters,); None: 0 for coefficients of friction with
            parameters="friction", no limit for all others.

    Raises:
        ValueError: a number has the wrong sign or length.
        UnknownNameError: there is no such parameter.
    """

    def __init__(
        self,
        robot: Robot,
        parameters: str | Sequence[str] = BASE,
        *,
        forgetting: float = 1.0,
        noise: Any = 1.0,
        start: Any = None,
        deviation: Any = VAGUE,
        bound: Any = None,
        frame: str | None = None,
        lowest: Any = None,
    ):
        self.robot = robot
        self.chosen = Chosen(robot, parameters, frame)
        if not FASTEST <= forgetting <= 1.0:
            raise ValueError(f"forgetting: expected a number from {FASTEST} to 1, got {forgetting!r}")
        self.forgetting = float(forgetting)
        self.noise = positive("noise", noise, robot.dof)
        self.deviation = positive("deviation", deviation, self.chosen.size)
        self.bound = self.deviation if bound is None else positive("bound", bound, self.chosen.size)
        if (self.bound < self.deviation).any():
            raise ValueError("bound: expected at least the deviation before the first sample")
        self.start = self.chosen.start if start is None else np.asarray(start, dtype=float)
        if self.start.shape != (self.chosen.size,):
            raise ValueError(f"start: expected {self.chosen.size} numbers, got shape {self.start.shape}")

        brakes = [parameters == FRICTION and not label.endswith(OFFSET) for label in self.chosen.labels]
        given = np.where(brakes, 0.0, -np.inf) if lowest is None else lowest
        self.lowest = Numbers().each("lowest", given, self.chosen.size, finite=False)

    def __repr__(self) -> str:
        return f"<RecursiveLeastSquares of {self.robot.name}: {self.chosen.size} parameters, λ = {self.forgetting:g}>"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.chosen.labels

    @property
    def initial_memory(self) -> np.ndarray:
        """The memory before the first sample: zeros, which mean ``start`` and ``deviation``."""
        return np.zeros(1 + self.chosen.size + packed_size(self.chosen.size))

    def update(
        self,
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
        tau: Sequence[Scalar],
        memory: Sequence[Scalar],
    ) -> dict[str, Any]:
        """One sample, over scalars.

        Args:
            q: positions, nq scalars.
            qd: velocities, n scalars.
            qdd: accelerations, n scalars.
            tau: measured torques, n scalars.
            memory: what the last sample left.
        """
        size, n = self.chosen.size, self.robot.dof
        first = memory[0] <= 0.0
        x, factors = empty(size), UD.unpacked(memory[1 + size :], size)
        start, spread = array(self.start.tolist()), array((self.deviation**2).tolist())
        for k in span(size):
            x[k] = where(first, start[k], memory[1 + k])
            factors.D[k] = where(first, spread[k], factors.D[k])
        if self.forgetting < 1.0:
            self._forget(factors)
        rows = array(self.chosen.columns(list(q), list(qd), list(qdd)))
        known = self.chosen.known(list(q), list(qd), list(qdd))
        given = array([t - k for t, k in zip(tau, known, strict=True)])
        variance = array((self.noise**2).tolist())
        residual = empty(n)
        for r in span(n):
            residual[r] = given[r] - dot(rows[r, :], x)
        for r in span(n):
            measure(factors, x, rows[r, :], given[r] - dot(rows[r, :], x), variance[r])
        if np.isfinite(self.lowest).any():
            least = array(np.maximum(self.lowest, -LARGEST).tolist())
            for k in span(size):
                x[k] = where(x[k] < least[k], least[k], x[k])
        deviations, following = empty(size), empty(1 + size + packed_size(size))
        variances = factors.variances()
        following[0] = 1.0
        for k in span(size):
            deviations[k] = sqrt(variances[k])
            following[1 + k] = x[k]
            following[1 + size + k] = factors.D[k]
        for k in span(packed_size(size) - size):
            following[1 + 2 * size + k] = factors.U[k]
        return {"parameters": x, "deviations": deviations, "residual": residual, "next_memory": following}

    def _forget(self, factors: UD) -> None:
        """P/λ, as far as the bounds allow."""
        growth, size = 1.0 / self.forgetting, self.chosen.size
        most, variances = array((self.bound**2).tolist()), factors.variances()
        scale, inverse = empty(size), empty(size)
        for k in span(size):
            allowed = where(growth * variances[k] <= most[k], growth, most[k] / variances[k])
            scale[k] = sqrt(where(allowed > 1.0, allowed, 1.0))
            inverse[k] = 1.0 / scale[k]
        factors.scale(scale, inverse)

    @once
    def recursion(self) -> Recursion:
        """The update as a function with a memory."""
        n, size = self.robot.dof, self.chosen.size
        inputs = {"q": self.robot.nq, "qd": n, "qdd": n, "tau": n}
        shapes: dict[str, tuple[int, ...]] = {"parameters": (size,), "deviations": (size,), "residual": (n,)}
        numbers = (self.noise, self.bound, self.start, self.deviation, self.lowest)
        content = (self.chosen.content(), self.forgetting, [x.tobytes() for x in numbers])
        return Recursion(
            "recursive_least_squares", inputs, shapes, 1 + size + packed_size(size), self.update, content
        )

    def kernel(self, dtype: str = "float64") -> Kernel:
        """(q, qd, qdd, tau, memory) -> (parameters, deviations, residual, next_memory), any leading axes; its C source
        is what a controller runs."""
        made = self.recursion.kernel(dtype)
        made.origin = (RecursiveLeastSquares.kernel, (self, dtype))
        return made

    def over(
        self, q: Any, qd: Any, qdd: Any, tau: Any, *, memory: Any = None, threads: int | None = None
    ) -> Followed:
        """The estimator over recordings, in one call.

        Args:
            q: positions [rad or m], (..., samples, nq).
            qd: velocities, (..., samples, n).
            qdd: accelerations, (..., samples, n).
            tau: torques [N·m or N], (..., samples, n).
            memory: what earlier samples left; None: the beginning.
            threads: number of threads.
        """
        begin = self.initial_memory if memory is None else memory
        samples = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        if not isinstance(self.kernel().program(), Program):  # a rollout has no loops inside its steps
            return self._sample_by_sample(self.recursion.table(samples), begin, threads)
        found, last = self.recursion.over(samples, begin, threads=threads)
        return Followed(**found, memory=last)

    def _sample_by_sample(self, given: dict[str, np.ndarray], memory: Any, threads: int | None) -> Followed:
        kernel = self.kernel()
        rows: list[tuple[np.ndarray, ...]] = []
        for k in range(given["q"].shape[-2]):
            *found, memory = kernel(*(array[..., k, :] for array in given.values()), memory, threads=threads)
            rows.append(tuple(found))
        if not rows:
            empty = [
                np.zeros((*given["q"].shape[:-2], 0, *shape)) for shape in self.recursion.outputs.values()
            ]
            return Followed(*empty, memory=np.asarray(memory))
        return Followed(*(np.stack(column, axis=-2) for column in zip(*rows, strict=True)), memory=memory)
