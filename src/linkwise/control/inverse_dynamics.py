"""Controllers by inverse dynamics: τ = M(q)·v + c(q, q̇) + g(q), so that the closed loop is q̈ = v.

A. Valera et al., 2003, (29) and Table 4: what v is makes the controller. In the table the velocity term of
the tracking controllers is printed K_d·q̇; it must be K_d·ė, or a moving reference is braked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwise.algorithms import coordinates
from linkwise.control.controller import Controller, Reference, errors
from linkwise.control.gains import Gains, product
from linkwise.errors import ArgumentError
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, where


def torques_for(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], v: Sequence[Scalar]
) -> list[Scalar]:
    """(29): the torques that give the accelerations v, without friction."""
    return coordinates.inverse_dynamics(links, q, qd, v, friction=False)


class PointToPoint(Controller):
    """v = −K_d q̇ − K_p e: to a point, whatever the reference's velocity."""

    def __init__(self, robot: Robot, gains: Gains, *, torque_limits=None):
        vectors = gains.vectors(robot.dof)
        super().__init__(robot, {"kp": vectors["kp"], "kd": vectors["kd"]}, torque_limits)

    def control(self, links, gains, q, qd, reference, memory, period):
        e, _ = errors(links, q, qd, reference)
        damping, spring = product(gains["kd"], qd), product(gains["kp"], e)
        v = [-d - s for d, s in zip(damping, spring, strict=True)]
        return torques_for(links, q, qd, v), []


class Tracking(Controller):
    """v = q̈_d − K_d ė − K_p e: along a trajectory."""

    def __init__(self, robot: Robot, gains: Gains, *, torque_limits=None):
        vectors = gains.vectors(robot.dof)
        super().__init__(robot, {"kp": vectors["kp"], "kd": vectors["kd"]}, torque_limits)

    def control(self, links, gains, q, qd, reference, memory, period):
        v = tracking_acceleration(links, gains, q, qd, reference)
        return torques_for(links, q, qd, v), []


class ComputedTorque(Tracking):
    """Tracking, with the model's friction compensated: at the measured speed, and Coulomb friction at the
    reference's.

    The sign of a measured speed near zero is noise; the reference's is not.
    """

    def control(self, links, gains, q, qd, reference, memory, period):
        v = tracking_acceleration(links, gains, q, qd, reference)
        tau = torques_for(links, q, qd, v)
        return with_friction(links, tau, q, qd, reference), []


class IntegralTracking(Controller):
    """v = q̈_d − K_d ė − K_p e − K_i ∫e: the integral removes what a wrong model or stiction leaves of the
    error.

    Anti-windup: while a joint's torque is saturated, its integral does not grow in the direction that
    saturates it more.
    """

    def __init__(self, robot: Robot, gains: Gains, *, torque_limits=None):
        super().__init__(robot, gains.vectors(robot.dof), torque_limits)
        self.memory_size = robot.dof

    def check_gains(self) -> None:
        if not Gains(**self.gains).stable():
            raise ArgumentError(
                "gains: unstable; K_p and K_d must be positive, and K_d·K_p must exceed K_i in every joint"
            )

    @classmethod
    def gains_for(cls, robot: Robot, frequency, damping=1.0) -> Gains:
        """With a third pole at −ω beside the pair: (s + ω)(s² + 2ζωs + ω²)."""
        return Gains.from_frequency(frequency, damping, integral=True)

    def control(self, links, gains, q, qd, reference, memory, period):
        e, _ = errors(links, q, qd, reference)
        v = tracking_acceleration(links, gains, q, qd, reference)
        v = [a - integral for a, integral in zip(v, product(gains["ki"], memory), strict=True)]
        wanted = torques_for(links, q, qd, v)
        following = [
            where((want - given) * error < 0.0, integral, integral + period * error)
            for want, given, error, integral in zip(wanted, self.saturated(wanted), e, memory, strict=True)
        ]
        return wanted, following


def tracking_acceleration(
    links: Mechanism,
    gains: Mapping[str, Sequence[Scalar]],
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    reference: Reference,
) -> list[Scalar]:
    """q̈_d − K_d ė − K_p e."""
    e, ed = errors(links, q, qd, reference)
    damping, spring = product(gains["kd"], ed), product(gains["kp"], e)
    return [a - d - s for a, d, s in zip(reference.qdd, damping, spring, strict=True)]


def with_friction(
    links: Mechanism, tau: Sequence[Scalar], q: Sequence[Scalar], qd: Sequence[Scalar], reference: Reference
) -> list[Scalar]:
    """Torques with the model's friction: of the measured state, and what jumps with its sign of the planned one."""
    smooth = coordinates.smooth_friction(links, q, qd)
    dry = coordinates.dry_friction(links, reference.q, reference.qd)
    loaded = coordinates.add_load_friction(links, tau, reference.qd)
    return [a + (b + c) for a, b, c in zip(loaded, smooth, dry, strict=True)]
