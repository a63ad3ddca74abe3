"""Calls of Pinocchio for one state, for the functions that both have; results are compared before they are timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.bench.calls import parts
from linkwise.bench.peers.pinocchio import Pinocchio
from linkwise.robot.robot import Robot

TOLERANCE = 1e-8  # relative to the largest number


def one_state(peer: Pinocchio, robot: Robot, name: str, args: list[np.ndarray]) -> Callable[[], Any] | None:
    """What computes the same as ``getattr(robot, name)(*args)``; None where Pinocchio has no such function or other
    coordinates."""
    if peer.engine is not None or peer.model.nq != peer.model.nv:
        return None
    if not np.array_equal(peer.order, np.arange(robot.dof)):
        return None
    found = _calls(peer, robot, *[np.ascontiguousarray(a) for a in args]).get(name)
    if found is None:
        return None
    run, result = found
    wanted = getattr(robot, name)(*args)
    pairs = zip(parts(result()), parts(wanted), strict=False)
    for theirs, ours in pairs:
        if not np.allclose(theirs, ours, rtol=0, atol=TOLERANCE * max(1.0, np.abs(ours).max())):
            return None
    return run


def calls_of(pin: Any, model: Any, data: Any, q: Any, v: Any, a: Any) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions by the names that they have here: those whose results need no other order.

    Args:
        pin: the module.
        model: its robot.
        data: its memory.
        q: positions.
        v: velocities.
        a: accelerations or torques.
    """
    return {
        "inverse_dynamics": lambda: pin.rnea(model, data, q, v, a),
        "forward_dynamics": lambda: pin.aba(model, data, q, v, a),
        "mass_matrix": lambda: pin.crba(model, data, q),
        "inverse_mass_matrix": lambda: pin.computeMinverse(model, data, q),
        "gravity_torques": lambda: pin.computeGeneralizedGravity(model, data, q),
        "bias_torques": lambda: pin.nonLinearEffects(model, data, q, v),
        "coriolis_matrix": lambda: pin.computeCoriolisMatrix(model, data, q, v),
        "inverse_dynamics_derivatives": lambda: pin.computeRNEADerivatives(model, data, q, v, a),
        "forward_dynamics_derivatives": lambda: pin.computeABADerivatives(model, data, q, v, a),
        "kinetic_energy": lambda: pin.computeKineticEnergy(model, data, q, v),
        "potential_energy": lambda: pin.computePotentialEnergy(model, data, q),
        "center_of_mass": lambda: pin.centerOfMass(model, data, q),
        "com_jacobian": lambda: pin.jacobianCenterOfMass(model, data, q),
        "integrate": lambda: pin.integrate(model, q, v),
        "difference": lambda: pin.difference(model, q, v),
    }


def _calls(peer: Pinocchio, robot: Robot, *args: np.ndarray) -> dict[str, tuple[Callable, Callable]]:
    """For each function: what is timed, and what gives its result in the order of Linkwise."""
    pin, model, data = peer.pinocchio, peer.model, peer.data
    q, v, a = (*args, *args[-1:] * 2)[:3]
    frame = model.getFrameId(robot.default_frame()) if model.existFrame(robot.default_frame()) else None
    found = {name: (call, call) for name, call in calls_of(pin, model, data, q, v, a).items()}
    swapped = [3, 4, 5, 0, 1, 2]  # Pinocchio has linear before angular
    momentum, matrix = _centroidal(pin, model, data, q, v)
    found["centroidal_momentum"] = momentum, lambda: momentum().vector[swapped]
    found["centroidal_matrix"] = matrix, lambda: matrix()[swapped]
    if frame is not None:
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

        def pose() -> None:
            pin.framesForwardKinematics(model, data, q)

        def jacobian() -> Any:
            return pin.computeFrameJacobian(model, data, q, frame, world)

        found["pose"] = pose, lambda: (pose(), data.oMf[frame].homogeneous)[1]

        def velocity() -> Any:
            pin.forwardKinematics(model, data, q, v)
            return pin.getFrameVelocity(model, data, frame, world)

        still = np.zeros(model.nv)

        def jacobian_rate() -> Any:
            pin.forwardKinematics(model, data, q, v, still)
            return pin.getFrameClassicalAcceleration(model, data, frame, world)

        found["jacobian"] = jacobian, lambda: jacobian()[swapped]
        found["velocity"] = velocity, lambda: velocity().vector[swapped]
        found["jacobian_rate"] = jacobian_rate, lambda: jacobian_rate().vector[swapped]
    return found


def _centroidal(pin: Any, model: Any, data: Any, q: np.ndarray, v: np.ndarray) -> tuple[Callable, Callable]:
    """Momentum about the centre of mass, and the matrix that maps velocities to it."""
    return (
        lambda: pin.computeCentroidalMomentum(model, data, q, v),
        lambda: pin.ccrba(model, data, q, v),
    )
