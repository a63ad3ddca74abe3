"""How well a motion excites the parameters, and the derivative of that by the motion.

The criterion f is a function of the observation matrix W alone, so its derivative by a state is that of ⟨C, Y(q, q̇,
q̈)⟩ with C = ∂f/∂W held constant. That is one scalar: its gradient is one compiled kernel, differentiated backwards,
with about as many operations as the regressor itself, instead of the derivatives of all of its entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.errors import UnknownNameError, suggest
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.friction import friction_named
from linkwise.identify.estimation.rank import random_states
from linkwise.robot.robot import Robot
from linkwise.robot.user import kernel
from linkwise.solve import linear
from linkwise.solve.linear import product

CRITERIA = ("log_det", "condition")
TERMS = {  # columns of an axis from its q̇ and q̈
    "rotor_inertia": lambda qd, qdd: qdd,
    "viscous": lambda qd, qdd: qd,
    "coulomb": lambda qd, qdd: np.sign(qd),
    "forward": lambda qd, qdd: 0.5 * (1 + np.sign(qd)),
    "backward": lambda qd, qdd: -0.5 * (1 - np.sign(qd)),
    "offset": lambda qd, qdd: np.ones_like(qd),
}
SLOPES = {"viscous": 1, "rotor_inertia": 2}  # those with a slope of one by q̇ or q̈; the others have none


class Criterion:
    """Two criteria of a motion, both to be made small.

    "log_det": −log det(WᵀW)/p, the volume of the confidence ellipsoid; "condition": the logarithm of the condition
    number of W. Columns are those of the base parameters of ``identify`` with this friction model: links, rotor
    inertias, friction and offsets, scaled by their size at random states; rows by the size of the joint's torque.
    """

    def __init__(self, robot: Robot, friction: str = "coulomb"):
        self.robot = robot
        terms = friction_named(friction, robot.dof)
        base = base_of(robot, np.eye(robot.dof), terms)
        self.labels = base.labels
        links = 10 * robot.dof
        self._links = [k for k in base.columns if k < links]
        placed = [(joint, term.kind) for joint, own in enumerate(terms) for term in own]
        self._terms = [placed[k - links] for k in base.columns if k >= links]
        used = {term for own in terms for term in own}
        if any(term.kind not in TERMS or term.width for term in used):
            raise IdentificationError(
                f"excite: friction {friction!r} has terms that depend on the motion before or on carried torques; "
                "use viscous, coulomb, smooth or asymmetric"
            )
        Y = self._columns(random_states(robot, 200))
        self.rows = 1.0 / np.maximum(np.sqrt((Y**2).mean(axis=(0, 2))), 1e-9)
        self.scale = 1.0 / np.maximum(np.sqrt(((Y * self.rows[:, None]) ** 2).mean(axis=(0, 1))), 1e-9)
        self._gradient = _gradient_kernel(robot, self._links)

    def _columns(self, motion: Sequence[np.ndarray]) -> np.ndarray:
        Y = np.zeros((*np.shape(motion[0]), len(self.labels)))
        Y[..., : len(self._links)] = self.robot.regressor(*motion)[..., self._links]
        for k, (joint, kind) in enumerate(self._terms, len(self._links)):
            Y[:, joint, k] = TERMS[kind](motion[1][:, joint], motion[2][:, joint])
        return Y

    def matrix(self, motion: Sequence[np.ndarray]) -> np.ndarray:
        """W of a motion (q, q̇, q̈), each (points, n), scaled, shape (points, n, base parameters)."""
        Y = self._columns(motion)
        return Y * self.rows[:, None] * self.scale / np.sqrt(len(Y))

    def value(self, motion: Sequence[np.ndarray], name: str) -> float:
        """A criterion of a motion."""
        W = self.matrix(motion)
        return _value(linear.singular_values(W.reshape(-1, W.shape[2])), name)

    def condition(self, motion: Sequence[np.ndarray]) -> float:
        """Condition number of W with columns of unit length: as in an estimation."""
        W = self.matrix(motion)
        W = W.reshape(-1, W.shape[2])
        s = linear.singular_values(W / np.maximum(np.sqrt((W**2).sum(axis=0)), 1e-300))
        return float(s[0] / max(s[-1], 1e-300))

    def value_and_gradient(self, motion: Sequence[np.ndarray], name: str) -> tuple[float, list[np.ndarray]]:
        """A criterion and its derivatives by q, q̇ and q̈, each (points, n)."""
        W = self.matrix(motion)
        flat = W.reshape(-1, W.shape[2])
        s, Vt = linear.svd(flat)
        s = np.maximum(s, 1e-12 * s[0])
        if name == "log_det":  # U S⁻¹ Vᵀ, with U = W V S⁻¹
            C = -(2.0 / len(s)) * product(flat, product(Vt.T / s**2, Vt))
        else:
            first, last = Vt[0], Vt[-1]
            C = np.outer(product(flat, first), first) / s[0] ** 2
            C = C - np.outer(product(flat, last), last) / s[-1] ** 2
        C = C.reshape(W.shape) * self.rows[:, None] * self.scale / np.sqrt(len(W))
        count, points = len(self._links), len(W)
        by_state = self._gradient(np.hstack(motion), C[..., :count].reshape(points, -1))
        gradients = [np.array(part) for part in np.split(by_state, 3, axis=1)]
        for k, (joint, kind) in enumerate(self._terms, count):
            if kind in SLOPES:
                gradients[SLOPES[kind]][:, joint] += C[:, joint, k]
        return _value(s, name), gradients


def _gradient_kernel(robot: Robot, columns: list[int]) -> Kernel:
    """A kernel of the state (3n) and factors (n · columns): the gradient of Σ factor · regressor entry by the state."""
    n = robot.dof

    @kernel(state=3 * n, factors=n * len(columns))
    def projected(state, factors):
        Y = np.asarray(robot.regressor(state[:n], state[n : 2 * n], state[2 * n :]))
        return (Y[:, columns] * factors.reshape(n, -1)).sum()

    return projected.jacobian("state")


def check_criterion(name: str) -> str:
    """The name of a criterion; an unknown one lists the valid ones."""
    if name not in CRITERIA:
        raise UnknownNameError(f"criterion: no {name!r}; {suggest(name, CRITERIA)}")
    return name


def _value(s: np.ndarray, name: str) -> float:
    s = np.maximum(s, 1e-300)
    logarithms = linear.logarithm(s)
    return float(-2.0 * logarithms.mean() if name == "log_det" else logarithms[0] - logarithms[-1])
