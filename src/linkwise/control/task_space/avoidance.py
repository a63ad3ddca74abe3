"""Away from joint limits and from singular positions: torques for any law, and accelerations for null spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates, coupling, dense, kinematics
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Controller
from linkwise.functions.table import mechanism_of
from linkwise.model.coordinates import coordinate_limits
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, where

Rows = list[list[Scalar]]
POSITIONS = 32  # random ones, for usual inertias
MARGIN = 0.1
"""Before a limit, where the spring begins [rad or m]."""
LIMIT_FREQUENCY = 30.0
"""Natural frequency of a joint on the spring of a limit [rad/s]."""
SINGULAR = 1e-4
"""Added to J Jᵀ (with rotations in rad times a length of 1 m): keeps the gradient bounded in singular positions."""
LIMIT_STIFFNESS, LIMIT_DAMPING, AWAY = "limit_stiffness", "limit_damping", "avoidance"


def usual_joint_inertia(robot: Robot) -> np.ndarray:
    """Diagonal of the mass matrix, median over random positions [kg·m² or kg], (n,), three digits each."""
    lanes: Any = list(
        robot.random(np.random.default_rng(0), POSITIONS).T
    )  # scalars with one lane per position
    M, _ = coordinates.coefficients(mechanism_of(robot, base_parameters=True), lanes)
    diagonal = [np.median(np.broadcast_to(np.asarray(M[k][k]), POSITIONS)) for k in range(robot.dof)]
    return np.array([float(f"{x:.3g}") for x in diagonal])


def limited_coordinates(robot: Robot, margin: float) -> list[tuple[int, int, float, float]]:
    """(place in q, place in q̇, lower, upper) of joints with limits, both moved inward by the margin [rad or m]."""
    limits = coordinate_limits(robot)
    found: list[tuple[int, int, float, float]] = []
    place_q = place_v = 0
    for joint in robot.coordinate_joints:
        if joint.nq == 1:
            lower, upper = float(limits.lower[place_q]), float(limits.upper[place_q])
            inward = min(margin, 0.25 * (upper - lower))
            if np.isfinite(lower) or np.isfinite(upper):
                found.append((place_q, place_v, lower + inward, upper - inward))
        place_q, place_v = place_q + joint.nq, place_v + joint.dof
    return found


def limit_torques(
    places: Sequence[tuple[int, int, float, float]],
    stiffness: Sequence[Scalar],
    damping: Sequence[Scalar],
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
) -> list[Scalar]:
    """Springs that begin a margin before the joint limits, with dampers that act on the way out alone [N·m or N].

    A spring takes and gives back the same energy and a damper only takes, so they cannot drive the robot. Torques
    are continuous: a damper grows with the depth, to its full value at a hundredth of a radian or metre.

    Args:
        places: of ``limited_coordinates``.
        stiffness: of the springs [N·m/rad or N/m], n scalars.
        damping: of the dampers [N·m·s/rad or N·s/m], n scalars.
        q: positions, nq scalars.
        qd: velocities, n scalars.
    """
    tau: list[Scalar] = [0.0] * len(qd)
    for at, k, lower, upper in places:
        x: Any = q[at]
        beyond = x - x
        if np.isfinite(upper):
            beyond = where(x > upper, x - upper, beyond)
        if np.isfinite(lower):
            beyond = where(x < lower, x - lower, beyond)
        outward: Any = beyond * qd[k]
        share = abs(beyond) * 100.0
        share = where(share > 1.0, 1.0, share)
        tau[k] = -(stiffness[k] * beyond) - where(outward > 0.0, damping[k] * share * qd[k], 0.0)
    return tau


def manipulability_gradient(
    links: Mechanism, q: Sequence[Scalar], frame: tuple[int, Transform]
) -> list[Scalar]:
    """∂w/∂q of w = ½ log det(J Jᵀ + ε 1), n scalars: the way out of singular positions; zero in the middle of them.

    Args:
        links: those of the model.
        q: positions, nq scalars.
        frame: (body, pose) of ``Robot.locate``.
    """
    body, pose = frame
    at = coupling.expanded(links, q, positions=True)
    full = kinematics.jacobian(links, at, body, pose)
    J = coupling.reduced(links, full, (False, True))
    S = dense.raised(dense.symmetric_product(J, J), SINGULAR)
    W = dense.inverse_of(*dense.factorised(S, 0.0))
    B = dense.product(W, J)
    spread = [_over_all_axes(links, row) for row in B]  # 6×axes
    columns, weights = dense.transposed(full), dense.transposed(spread)
    moving = {body, *links.ancestors(body)}
    axes = [(i, k) for i, (k, _) in enumerate(links.coordinates()) if k in moving]
    gradient: list[Scalar] = [0.0] * len(columns)
    for j, owner in axes:
        terms: list[Scalar] = []
        for i, other in axes:
            before = owner == other or owner in links.ancestors(other)
            turn = columns[j][:3] if before else columns[i][:3]
            moved = columns[i][3:] if before else columns[j][3:]
            terms.append(dense.dot(weights[i][3:], dense.cross(turn, moved)))
            if before and i != j:
                terms.append(dense.dot(weights[i][:3], dense.cross(turn, columns[i][:3])))
        gradient[j] = sum(terms[1:], start=terms[0])
    return coupling.reduced(links, gradient, (True,))


def _over_all_axes(links: Mechanism, row: Sequence[Scalar]) -> list[Scalar]:
    """Rates of all axes from those of the joints that lead."""
    return coupling.parts(coupling.expanded(links, row))


class Avoiding(Controller):
    """Any law, with torques that keep the joints away from their limits and the tool from singular positions.

    Args:
        law: the law.
        margin: before a joint limit, where a spring begins [rad or m].
        frequency: natural frequency of a joint on that spring [rad/s], with the joint's usual inertia.
        singularities: acceleration per unit of ∂w/∂q [rad/s²], w = ½ log det(J Jᵀ + ε); 0: none.
        frame: the tool; None: the only leaf.
    """

    units: ClassVar[dict[str, str]] = {
        LIMIT_STIFFNESS: "stiffness at joint limits [N*m/rad or N/m]",
        LIMIT_DAMPING: "damping at joint limits [N*m*s/rad or N*s/m]",
        AWAY: "torques per gradient of the manipulability [N*m or N]",
    }

    def __init__(
        self,
        law: Controller,
        *,
        margin: float = MARGIN,
        frequency: float = LIMIT_FREQUENCY,
        singularities: float = 0.0,
        frame: str | None = None,
    ):
        check, robot = Numbers(), law.robot
        self.law, self.memory_size, self.structure = law, law.memory_size, law.structure
        self.margin = check.number("margin", margin, above=0.0)
        w = check.number("frequency", frequency, above=0.0)
        strength = check.number("singularities", singularities, least=0.0)
        inertia = usual_joint_inertia(robot)
        self.places = limited_coordinates(robot, self.margin)
        self.located = robot.locate(frame) if strength else None
        gains = {**law.gains, LIMIT_STIFFNESS: w * w * inertia, LIMIT_DAMPING: 2.0 * w * inertia}
        if strength:
            gains[AWAY] = strength * inertia
        super().__init__(robot, gains, np.array(law.torque_limits))

    @property
    def known(self) -> bool:
        return super().known and self.law.known

    def options(self) -> tuple[Any, ...]:
        frame = None if self.located is None else (self.located[0], self.located[1].matrix.tobytes())
        return (self.law.key(), self.margin, frame)

    def control(self, links, gains: Mapping[str, Sequence[Scalar]], q, qd, reference, memory, period):
        tau, following = self.law.control(links, gains, q, qd, reference, memory, period)
        more = limit_torques(self.places, gains[LIMIT_STIFFNESS], gains[LIMIT_DAMPING], q, qd)
        tau = [a + b for a, b in zip(tau, more, strict=True)]
        if self.located is not None:
            away = manipulability_gradient(links, q, self.located)
            tau = [t + k * x for t, k, x in zip(tau, gains[AWAY], away, strict=True)]
        return tau, following
