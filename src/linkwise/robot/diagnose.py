"""Diagnosis: why a result is not a number, the states of the filter, the history of the iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.algorithms import conjugate_gradient, coupling, dense, equation, kalman
from linkwise.algorithms.constrained.constraints import PRECISIONS
from linkwise.algorithms.singularity import may_be_singular
from linkwise.arguments.numbers import Numbers
from linkwise.core.summaries import Summarised
from linkwise.errors import ConstraintError, ConvergenceError, ModelError, SingularError
from linkwise.functions.arrays import checked_inputs
from linkwise.functions.table import mechanism_of
from linkwise.model import Model
from linkwise.model.mechanism import flat
from linkwise.spatial import ArticulatedInertia, Spatial, zero_vector


def singular(model: Model, result: np.ndarray | np.generic, given: Mapping[str, Any]) -> None:
    """Raise SingularError, naming the joint, if the result has a NaN that its inputs do not explain."""
    if not isinstance(result, (np.ndarray, np.generic)):  # on a GPU: reading the result would wait for it
        return
    if result.dtype == object or not np.isnan(result).any():  # (symbols are not numbers yet)
        return
    arrays = [np.asarray(value, dtype=float) for value in given.values()]
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    finite = np.ones(batch, dtype=bool)
    for array in arrays:
        finite &= np.broadcast_to(np.isfinite(array).all(axis=-1), batch)
    extra = result.ndim - len(batch)
    broken = np.isnan(result).any(axis=tuple(range(-extra, 0))) & finite
    if not broken.any():
        return
    state = tuple(int(k) for k in np.argwhere(broken)[0])
    q = np.broadcast_to(np.asarray(given["q"], dtype=float), (*batch, model.nq))[state]
    singular_state(model, q, state)


def always_singular(model: Model) -> None:
    """Raise SingularError, naming the joint, if the mass matrix is singular in all of some positions."""
    if not may_be_singular(mechanism_of(model)):
        return
    regular = 0.4 + 0.1 * np.arange(model.nq)  # of one joint or another: no straight arm
    try:
        singular_state(model, regular)
    except SingularError:
        singular_state(model, model.neutral)


def singular_state(model: Model, q: np.ndarray, state: tuple[int, ...] = ()) -> None:
    """Raise SingularError, naming the joint, if the mass matrix is singular at q, the given state of a batch."""
    links = mechanism_of(model)
    positions = coupling.expanded(links, [float(v) for v in q], positions=True)
    if links.coupled:  # a follower without inertia of its own is moved by its leader
        pivots = dense.factorised(
            coupling.reduced(links, equation.mass_matrix(links, positions), (True, True))
        )[1]
        owners = [joint.name for joint in model.coordinate_joints for _ in range(joint.dof)]
        name = next((name for name, pivot in zip(owners, pivots, strict=True) if not pivot > 0.0), None)
    else:
        link = kalman.singular_joint(links, positions)
        name = None if link is None else link.joint_name
    if name is not None:
        where = f" in {state_name(state)}" if state else ""
        raise SingularError(
            f"{model.name}: the mass matrix is singular{where}: joint {name!r} moves no inertia; "
            "give the links beyond it mass, give the joint rotor inertia, or lock it"
        )


def unmet_constraints(model: Model, residuals: np.ndarray, sizes: np.ndarray, tolerance: float) -> None:
    """Raise ConstraintError, naming the constraint, where J q̈ + γ does not vanish beside the size of its terms."""
    nothing = PRECISIONS[str(residuals.dtype)].nothing
    bad = np.abs(residuals) > tolerance * (sizes + nothing * (1.0 + sizes.max(axis=-1, keepdims=True)))
    if not bad.any():
        return
    rows = [constraint.label for constraint in model.constraints for _ in range(constraint.rows)]
    worst = int(np.argmax(np.where(bad, np.abs(residuals), -1.0).reshape(-1, len(rows)).max(axis=0)))
    others = " together with the others" if len(model.constraints) > 1 else ""
    raise ConstraintError(
        f"{model.name}: {rows[worst]} cannot be met{others} in this state: an acceleration of "
        f"{np.abs(residuals[..., worst]).max():.3g} is left; give velocities that it allows (robot.impact), or make it "
        "soft with compliance="
    )


def unmade_motion(model: Model, unmade: np.ndarray, missing: np.ndarray) -> None:
    """Raise ConstraintError, naming the joint without a motor, for the state in which the motion is least possible."""
    worst = tuple(int(k) for k in np.unravel_index(np.argmax(unmade), np.shape(unmade)))
    row = missing[worst]
    joint = int(np.argmax(np.abs(row)))
    owners = [joint.name for joint in model.coordinate_joints for _ in range(joint.dof)]
    where = f" in {state_name(worst)}" if worst else ""
    raise ConstraintError(
        f"{model.name}: its motors cannot make this motion{where}: joint {owners[joint]!r} has no motor and would need "
        f"{row[joint]:.3g} N·m or N; nearest=True gives the nearest torques and what is missing"
    )


def state_name(state: tuple[int, ...]) -> str:
    """The name of one state of a batch in messages."""
    return f"state {state[0] if len(state) == 1 else state}"


@dataclass(frozen=True, repr=False)
class FilterStates(Summarised):
    """The filter and smoother of one state: k is the number of moving joints, n that of velocity coordinates.

    Spatial vectors are (angular, linear) and (moment, force), in the prepared frame of each link (a single joint axis
    is z). The axes of a ball or floating joint are measured one after the other.
    """

    inertia: np.ndarray  # P⁻, shape (k, 6, 6)
    axis_inertia: np.ndarray  # D, shape (n,)
    gain: np.ndarray  # G, shape (n, 6)
    innovation: np.ndarray  # e⁻, shape (n,)
    state: np.ndarray  # z⁻, shape (k, 6)
    costate: np.ndarray  # λ⁻, shape (k, 6)
    qdd: np.ndarray  # shape (n,)
    smoothed_covariance: np.ndarray  # S = P − P Λ P (9.18), shape (k, 6, 6)


@dataclass(frozen=True, repr=False)
class Iterations(Summarised):
    """A conjugate-gradient solution: q̈, ‖residual‖/‖τ − b‖ after each iteration, the estimated relative error of q̈,
    whether that is within the tolerance."""

    qdd: np.ndarray
    residuals: tuple[float, ...]
    error: float
    converged: bool

    @property
    def count(self) -> int:
        return len(self.residuals) - 1


def filter_states(model: Model, q: Any, qd: Any, tau: Any, friction: bool) -> FilterStates:
    """See ``Robot.filter``."""
    arrays, batch = checked_inputs(_sizes(model), {"q": q, "qd": qd, "tau": tau})
    if batch:
        raise ValueError(
            f"filter looks at one state: expected shape ({model.dof},), got a batch of shape {batch}"
        )
    links = mechanism_of(model)
    if links.coupled:
        raise ModelError(
            f"{model.name}: filter shows joints that are independent; load the robot with mimic='independent'"
        )
    n = len(links)
    q, qd, tau = (
        links.grouped([float(v) for v in arrays[name]], positions=name == "q") for name in ("q", "qd", "tau")
    )
    tau = equation.torques_on_bodies(links, q, qd, tau, friction=friction)
    turned = links.turned(q)
    biases = kalman.bias_accelerations(links, turned, qd)
    forces = links.each(lambda link, bias: kalman.bias_force(link, bias[0]), biases)
    bias = [b for _, b in biases]
    filtered, updated = kalman.filter_inertias(links, turned)
    estimates = kalman.filter_states(links, turned, filtered, updated, forces, bias, tau)
    smoothed = kalman.smoothed(
        links, turned, filtered, estimates, bias, Spatial(zero_vector(), -links.gravity)
    )
    qdd = np.array(flat([qdd for qdd, _ in smoothed]))
    singular(model, qdd, arrays)
    covariances = kalman.costate_covariances(links, turned, filtered)
    P = np.array([_full(known.inertia) for known in filtered]).reshape(n, 6, 6)
    costate = np.array([_full(minus) for _, minus in covariances]).reshape(n, 6, 6)
    return FilterStates(
        inertia=P,
        axis_inertia=np.array([D for known in filtered for D in known.axis_inertia]),
        gain=np.array([_flat(gain) for known in filtered for gain in known.gains]).reshape(model.dof, 6),
        innovation=np.array([e for estimate in estimates for e in estimate.innovation]),
        state=np.array([_flat(estimate.state) for estimate in estimates]).reshape(n, 6),
        costate=np.array([_flat(costate) for _, costate in smoothed]).reshape(n, 6),
        qdd=qdd,
        smoothed_covariance=P - P @ costate @ P,
    )


def acceleration_parts(
    model: Model, q: Any, qd: Any, tau: Any, friction: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See ``Robot.acceleration_parts``."""
    n, sizes = model.dof, _sizes(model)
    arrays, batch = checked_inputs(sizes, {"q": q, "qd": qd, "tau": tau})
    links = mechanism_of(model)
    lanes: dict[str, Any] = {
        name: coupling.expanded(
            links,
            [cast(Any, array[..., k]) for k in range(sizes[name])],
            positions=name == "q",
            forces=name == "tau",
        )
        for name, array in arrays.items()
    }
    torque = equation.torques_on_bodies(links, lanes["q"], lanes["qd"], lanes["tau"], friction=friction)
    parts: Any = kalman.acceleration_parts(links, lanes["q"], lanes["qd"], torque)
    if links.coupled:
        inverse = kalman.inverse_mass_matrix(links, lanes["q"])
        parts = [coupling.in_step(links, inverse, flat(part)) for part in parts]
    first, second, third = (
        np.stack([np.broadcast_to(cast(Any, value), batch) for value in flat(part)], axis=-1)
        if n
        else np.zeros((*batch, 0))
        for part in parts
    )
    singular(model, first, arrays)
    return first, second, third


def check_stop(tolerance: float | None, limit: int | None) -> None:
    if tolerance is not None and not (isinstance(tolerance, (int, float, np.number)) and 0 < tolerance < 1):
        raise ValueError(f"tolerance: expected a positive number below 1, got {tolerance!r}")
    if limit is not None:
        Numbers().whole("limit", limit)


def convergence_tolerances(tolerance: float | None) -> dict[str, float]:
    """The largest estimated error that counts as converged, by precision."""
    room = 1.0 + 1e-5  # estimated by a division after the loop: the last bits may differ
    defaults = conjugate_gradient.DEFAULT_TOLERANCE
    return {dtype: room * (usual if tolerance is None else tolerance) for dtype, usual in defaults.items()}


def check_convergence(
    model: Model, qdd: np.ndarray, error: np.ndarray, tolerance: float | None, given: Mapping[str, Any]
) -> None:
    """Raise ConvergenceError where the estimated error of q̈ exceeds the tolerance, SingularError where that is why."""
    if qdd.dtype == object:  # symbols are not numbers yet
        return
    singular(model, qdd, given)
    wanted = conjugate_gradient.DEFAULT_TOLERANCE[str(qdd.dtype)] if tolerance is None else tolerance
    failed = error > convergence_tolerances(tolerance)[str(qdd.dtype)]
    if not np.any(failed):
        return
    worst = np.unravel_index(np.argmax(np.where(failed, error, -1.0)), np.shape(error))
    state = tuple(int(k) for k in worst)
    q = np.asarray(given["q"], dtype=float)
    singular_state(model, np.broadcast_to(q, (*np.shape(error), q.shape[-1]))[state], state)
    where = f"{state_name(state)} stopped" if state else "it stopped"
    reached = f"at {error[worst]:.3g}" if error[worst] < np.inf else "before a first estimate"
    raise ConvergenceError(
        f"conjugate gradients did not reach an estimated relative error of {wanted:g} in q̈: "
        f"{where} {reached}; raise limit= or use algorithm='kalman'"
    )


def conjugate_gradient_history(
    model: Model,
    q: Any,
    qd: Any,
    tau: Any,
    *,
    preconditioned: bool,
    tolerance: float,
    limit: int | None,
    start: Any,
) -> Iterations:
    """See ``Robot.conjugate_gradient``."""
    n = model.dof
    sizes = {**_sizes(model), **({"start": n} if start is not None else {})}
    given = {"q": q, "qd": qd, "tau": tau, **({"start": start} if start is not None else {})}
    arrays, batch = checked_inputs(sizes, given)
    if batch:
        raise ValueError(
            f"the history is that of one state: expected shape ({n},), got a batch of shape {batch}"
        )
    links = mechanism_of(model)
    values = {
        name: coupling.expanded(links, [float(v) for v in array], positions=name == "q", forces=name == "tau")
        for name, array in arrays.items()
    }
    if np.isfinite(arrays["q"]).all():
        singular_state(model, arrays["q"])
    torque = equation.torques_on_bodies(links, values["q"], values["qd"], values["tau"])
    qdd, residuals, error = conjugate_gradient.history(
        links,
        values["q"],
        values["qd"],
        torque,
        preconditioned=preconditioned,
        tolerance=tolerance,
        limit=limit,
        start=None if start is None else arrays["start"].tolist(),
    )
    singular(model, np.array(qdd), arrays)
    return Iterations(np.array(qdd), tuple(residuals), error, error <= tolerance)


def _sizes(model: Model) -> dict[str, int]:
    return {"q": model.nq, "qd": model.dof, "tau": model.dof}


def _flat(x: Spatial) -> list[float]:
    return [float(cast(Any, v)) for v in (*x.angular, *x.linear)]


def _full(P: ArticulatedInertia) -> np.ndarray:
    A = np.array(list(P.A.matrix()), dtype=float).reshape(3, 3)
    B = np.array(list(P.B), dtype=float).reshape(3, 3)
    C = np.array(list(P.C.matrix()), dtype=float).reshape(3, 3)
    return np.block([[A, B], [B.T, C]])
