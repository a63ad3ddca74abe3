"""An identification at every point: ``id = { identify = "least_squares", torque_noise = 0.5, … }``.

The robot with the parameters of the point follows a fixed periodic motion; its torques, with noise, are explained
by base parameters in the sense of least squares. So a study shows how well parameters can be identified, from which
robots, with which noise. Everything is done with kernels and sums of fixed order: the same bits on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import linkwise.robot.user as lw
from linkwise.core.once import once
from linkwise.robot.robot import Robot
from linkwise.study.errors import StudyError
from linkwise.study.quantities import JOINT, Quantity, per_joint
from linkwise.study.sampling import philox
from linkwise.study.sampling.special import normal_quantile
from linkwise.study.steps.base import Arrays, Step
from linkwise.study.steps.robot_parameters import RobotParameters

METHODS = ("least_squares", "pipeline")
LEAST_EXCITED = 1e-8
"""Of a column's length, what must be left of it beside the others."""


@lw.kernel(u=1)
def _normal(u):
    return normal_quantile(u[0])


@dataclass(frozen=True)
class ExcitingMotion:
    """Random Fourier series for all joints: [rad], [s]."""

    period: float
    harmonics: int
    amplitude: tuple[float, ...]
    seed: int
    rows: int

    def states(self, robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd at equal distances over a period, each (rows, n)."""
        n, key = robot.dof, philox.key_of(self.seed, "excitation")
        drawn = philox.ticks(np.arange(2 * self.harmonics * n, dtype=np.uint64), key, 0, 32) * 2.0**-31 - 1.0
        factors = drawn.reshape(2, self.harmonics, n) * (np.array(self.amplitude) / self.harmonics)
        w = 2.0 * math.pi / self.period

        def series(t):
            q, qd, qdd = ([0.0] * n for _ in range(3))
            for k in range(1, self.harmonics + 1):
                s, c = lw.sin(k * w * t[0]), lw.cos(k * w * t[0])
                for j in range(n):
                    a, b = (float(x) for x in factors[:, k - 1, j])
                    q[j] += a * s + b * c
                    qd[j] += (k * w) * (a * c - b * s)
                    qdd[j] -= (k * w) ** 2 * (a * s + b * c)
            return {"q": np.array(q), "qd": np.array(qd), "qdd": np.array(qdd)}

        t = np.arange(self.rows) * (self.period / self.rows)
        return lw.kernel(t=1)(series)(t[:, np.newaxis], threads=1)


@dataclass(frozen=True, eq=False)
class IdentificationStep(Step):
    """A motion, a noise, and the robot whose parameters vary."""

    name: str
    robot: Robot
    motion: ExcitingMotion
    noise: str | tuple[float, ...]
    parameters: RobotParameters
    seed: int

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*((self.noise,) if isinstance(self.noise, str) else ()), *self.parameters.takes)

    def gives(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{output}" for output in ("estimate", "error", "residual"))

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        if name.endswith(".residual"):
            return Quantity(
                name,
                shape,
                (JOINT,),
                per_joint(robot, "N·m", "N"),
                "root mean square of what is not explained",
            )
        text = "estimated base parameters" if name.endswith(".estimate") else "their errors"
        return Quantity(name, shape, (f"{self.name}_parameter",), "", text, self._base)

    def bytes_per_point(self) -> int:
        return 12 * 8 * self.motion.rows * self.robot.dof

    @once
    def states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd of the motion, each (rows, n)."""
        return self.motion.states(self.robot)

    @once
    def _columns(self) -> tuple[int, ...]:
        return self.robot.base_parameters().columns

    @once
    def _base(self) -> tuple[str, ...]:
        return tuple(self.robot.parameter_labels[k] for k in self._columns)

    @once
    def _solution(self) -> tuple[np.ndarray, np.ndarray]:
        """(observations W (rows·n, p), inverse (p, rows·n)): the estimate is inverse · torques."""
        W = self.robot.kernel("regressor")(*self.states, threads=1)[..., list(self._columns)]
        W = np.ascontiguousarray(W.reshape(-1, len(self._columns)))
        return W, _pseudo_inverse(W, self._base, self.name)

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        exact, noise = self.measurements(given, first)
        count, rows, n = exact.shape
        measured = (exact + noise).reshape(count, rows * n)
        W, inverse = self._solution
        estimate = _products(inverse, measured)
        residual = (measured - _products(W, estimate)).reshape(count, rows, n)
        rms = np.sqrt(np.add.reduce(residual * residual, axis=1) * (1.0 / rows))
        error = _products(inverse, np.ascontiguousarray(noise.reshape(count, rows * n)))
        return dict(zip(self.gives(), (estimate, error, rms), strict=True))

    def measurements(self, given: Arrays, first: int) -> tuple[np.ndarray, np.ndarray]:
        """(torques, their noise) of every point along the motion, each (count, rows, n)."""
        count = len(next(iter(given.values())))
        kernel = self.robot.kernel("inverse_dynamics", inputs=self.parameters.inputs)
        values = dict(zip(("q", "qd", "qdd"), self.states, strict=True))
        values |= {name: array[:, np.newaxis] for name, array in self.parameters.arrays(given).items()}
        exact = kernel(*(values[name] for name, _ in kernel.inputs), threads=1)
        noise = self.normal(first, count, "torque") * self._deviation(given, count)
        return np.broadcast_to(exact, noise.shape), noise

    def normal(self, first: int, count: int, what: str) -> np.ndarray:
        """Normal numbers (count, rows, n) that belong to the points, not to their places in a block."""
        size = self.motion.rows * self.robot.dof
        index = np.arange(first, first + count, dtype=np.uint64)[:, np.newaxis]
        blocks = np.arange(-(-size // 2), dtype=np.uint64)
        key = philox.key_of(self.seed, f"{self.name} {what} noise")
        a, b, c, d = philox.words(index, key, blocks)
        whole = np.stack([(a << 20) | (b >> 12), (c << 20) | (d >> 12)], axis=-1).reshape(count, -1)[:, :size]
        u = (whole.astype(np.float64) + 0.5) * 2.0**-52
        return _normal(u[..., np.newaxis], threads=1).reshape(count, self.motion.rows, self.robot.dof)

    def _deviation(self, given: Arrays, count: int) -> np.ndarray:
        if isinstance(self.noise, str):
            return given[self.noise].reshape(count, 1, -1)
        return np.array(self.noise)


def _products(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for every row of x, summed in NumPy's own fixed order instead of a library's."""
    return np.stack([np.add.reduce(row * x, axis=-1) for row in A], axis=-1)


def _pseudo_inverse(W: np.ndarray, labels: tuple[str, ...], name: str) -> np.ndarray:
    """(WᵀW)⁻¹Wᵀ by Gram and Schmidt, every column twice: W = QR."""
    p = W.shape[1]
    Q, R = np.array(W), np.zeros((p, p))
    for k in range(p):
        length = math.sqrt(float(np.add.reduce(Q[:, k] * Q[:, k])))
        for _ in range(2):
            for j in range(k):
                overlap = float(np.add.reduce(Q[:, j] * Q[:, k]))
                Q[:, k] -= overlap * Q[:, j]
                R[j, k] += overlap
        R[k, k] = math.sqrt(float(np.add.reduce(Q[:, k] * Q[:, k])))
        if not R[k, k] > LEAST_EXCITED * length:
            raise StudyError(
                f"compute.{name}: the motion does not excite {labels[k]}; give it more harmonics or amplitude"
            )
        Q[:, k] /= R[k, k]
    inverse = np.ascontiguousarray(Q.T)
    for k in reversed(range(p)):  # R x = Qᵀ, from the last row up
        for j in range(k + 1, p):
            inverse[k] -= R[k, j] * inverse[j]
        inverse[k] /= R[k, k]
    return inverse
