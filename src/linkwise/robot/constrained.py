"""Methods of robots with constraints: forces, errors, impacts, and states that meet the constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime.arrays import Array, is_numeric
from linkwise.errors import ConstraintError, ModelError, ShapeError
from linkwise.functions.table import FUNCTIONS, ITERATED, MOTOR_TORQUES, Setting
from linkwise.robot.kernels import HeldKernel, checked, compiled, evaluate, evaluate_checked, made_once
from linkwise.robot.methods import are_numbers, computed, takes_names
from linkwise.robot.results import frame_of, look_at

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

CONSTRAINED = "constrained_forward_dynamics"
CONSTRAINT_TOLERANCE = {"float64": 1e-6, "float32": 1e-2}  # as ``algorithms.constraints.Precision.tolerance``
MET = 1e-11  # [rad or m] of constraints that are met
CLOSED = 1e-6  # [rad or m] left along directions that constraints do not hold
DEPENDENT = 1e-6  # singular values of J under this part of the largest: round-off of files
NEWTON_STEPS = 200
LONGEST_STEP = 0.5  # [rad or m] of one joint in a Newton step


@takes_names
def constraint_forces(
    self: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    algorithm: str | None = None,
    friction: bool = True,
    stabilization: float | None = None,
    out: Any = None,
    threads: int | None = None,
):
    """Forces along the directions that constraints hold, shape (..., constraint_rows), in base axes.

    For each constraint in turn: moment [N·m] (welds only) and force [N] on its first frame. Redundant constraints
    share them so that they are smallest. Raises ConstraintError where a constraint cannot be met.
    """
    given = {"q": q, "qd": qd, "tau": tau}
    if are_numbers(q, qd, tau):
        forces, check = _forces_kernels(self, algorithm, flag("friction", friction), stabilization)
        if forces is not None and check is not None:
            result = forces(q, qd, tau, out=out, threads=threads)
            if not np.isnan(check(q, qd, tau, threads=threads)).any():
                return result
    setting = Setting(_held(self), friction=flag("friction", friction), stabilization=stabilization)
    result = evaluate("constraint_forces", setting, algorithm, given, out, threads)
    _check_constraints_met(self, result, setting, given)
    return result


@computed
def constraint_jacobian(self: Robot, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
    """J of all constraints, shape (..., constraint_rows, n), in base axes."""
    return evaluate("constraint_jacobian", Setting(_held(self)), None, {"q": q}, out, threads)


@takes_names
def constraint_rank(
    self: Robot, q: Array, *, out: Any = None, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(independent directions that constraints hold, estimated relative error of accelerations), shape (...) each.

    Directions that differ from others by the error of a loop's closure or by round-off count as dependent. Close to
    a singular state, at a sine s, accelerations are exact to round-off over s, forces to round-off over s².

    Args:
        q: positions [rad or m], shape (..., nq).
        out: two arrays that take the results.
        threads: number of threads.
    """
    return evaluate("constraint_rank", Setting(_held(self)), None, {"q": q}, out, threads)


@computed
def constraint_errors(self: Robot, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
    """How far constraints are from being met, shape (..., constraint_rows): sine of the angle, gap [m]."""
    return evaluate("constraint_errors", Setting(_held(self)), None, {"q": q}, out, threads)


@computed
def delassus_matrix(
    self: Robot, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
) -> np.ndarray:
    """J M⁻¹ Jᵀ of the constraints, shape (..., constraint_rows, constraint_rows)."""
    return evaluate("delassus_matrix", Setting(_held(self)), algorithm, {"q": q}, out, threads)


@takes_names
def impact(
    self: Robot, q: Array, qd: Array, *, restitution: float = 0.0, out: Any = None, threads: int | None = None
) -> np.ndarray:
    """Velocities, shape (..., n), after an impact at velocities qd that the constraints take.

    Args:
        q: positions [rad or m], shape (..., nq).
        qd: velocities before the impact, shape (..., n).
        restitution: the part of the approach velocity with which the held points part again.
        out: array that takes the result.
        threads: number of threads.
    """
    if type(restitution) is float and are_numbers(q, qd):
        kernel = made_once(self, ("impact",), lambda own: compiled("impact", Setting(_held(own)), None))
        if kernel is not None:
            return kernel(q, qd, [restitution], out=out, threads=threads)
    given = {"q": q, "qd": qd, "restitution": np.atleast_1d(np.asarray(restitution, dtype=float))}
    return evaluate("impact", Setting(_held(self)), None, given, out, threads)


def constrained_forward_dynamics(
    robot: Robot,
    given: dict[str, Any],
    algorithm: str | None,
    wrench: Array | None,
    wrench_frame: str | None,
    friction: bool,
    stabilization: float | None,
    out: Any,
    threads: int | None,
) -> np.ndarray:
    if wrench is not None:
        given = {**given, "wrench": wrench}
    setting = constrained_setting(robot, wrench is not None, wrench_frame, friction, stabilization)
    kernel = checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE)
    if (result := evaluate_checked(kernel, given, out, threads)) is not None:
        return result
    written = None if out is None else (out, None)
    qdd, unmet = evaluate(CONSTRAINED, setting, algorithm, given, written, threads)
    if is_numeric(qdd):
        if np.isnan(qdd).any():
            look_at(robot, qdd, given)
        if np.any(unmet > CONSTRAINT_TOLERANCE[str(qdd.dtype)]):
            _check_constraints_met(robot, qdd, setting, given)
    return qdd


def motor_torques(
    robot: Robot,
    given: dict[str, Any],
    algorithm: str | None,
    wrench: Array | None,
    wrench_frame: str | None,
    friction: bool,
    nearest: bool,
    out: Any,
    threads: int | None,
) -> Any:
    """Inverse dynamics of a robot with joints without a motor."""
    if wrench is not None:
        given = {**given, "wrench": wrench}
    setting = constrained_setting(robot, wrench is not None, wrench_frame, friction, None)
    if not nearest:
        kernel = checked(MOTOR_TORQUES, setting, algorithm, CONSTRAINT_TOLERANCE)
        if (result := evaluate_checked(kernel, given, out, threads)) is not None:
            return result
    written = None if out is None else (out, None, None)
    tau, unmade, missing = evaluate(MOTOR_TORQUES, setting, algorithm, given, written, threads)
    if nearest:
        return tau, missing
    if is_numeric(tau) and np.any(unmade > CONSTRAINT_TOLERANCE[str(tau.dtype)]):
        from linkwise.robot import diagnose

        diagnose.unmade_motion(robot, unmade, missing)
    return tau


def _forces_kernels(
    robot: Robot, algorithm: str | None, friction: bool, stabilization: float | None
) -> tuple[Kernel | HeldKernel | None, Kernel | HeldKernel | None]:
    """What computes forces of constraints, and what is NaN where a constraint is not met."""

    def make(robot: Robot) -> tuple[Kernel | HeldKernel | None, Kernel | HeldKernel | None]:
        setting = Setting(_held(robot), friction=friction, stabilization=stabilization)
        return (
            compiled("constraint_forces", setting, algorithm),
            checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE),
        )

    return made_once(robot, ("forces", algorithm, friction, stabilization), make)


def constrained_setting(
    robot: Robot, wrench: bool, wrench_frame: str | None, friction: bool, stabilization: float | None
) -> Setting:
    frame = frame_of(robot, wrench_frame) if wrench else wrench_frame
    chosen = flag("friction", friction)
    return Setting(robot, friction=chosen, frame=frame, wrench=wrench, stabilization=stabilization)


def checked_kernel(
    robot: Robot, algorithm: str | None, options: Mapping[str, Any]
) -> Kernel | HeldKernel | None:
    """What computes forward dynamics of a robot with constraints and by conjugate gradients: NaN where a constraint
    is not met or the iteration has not converged. ``options`` as for ``kernel_for``."""
    common = {key: options[key] for key in ("wrench", "wrench_frame", "friction")}
    if algorithm not in FUNCTIONS[ITERATED].algorithms:
        setting = constrained_setting(robot, **common, stabilization=options["stabilization"])
        return checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE)
    from linkwise.robot.diagnose import convergence_tolerances

    setting = iterated_setting(
        robot, **common, tolerance=options["tolerance"], limit=options["limit"], start=options["start"]
    )
    return checked(ITERATED, setting, algorithm, convergence_tolerances(setting.tolerance))


def iterated_setting(
    robot: Robot,
    wrench: bool,
    wrench_frame: str | None,
    friction: bool,
    tolerance: float | None,
    limit: int | None,
    start: bool,
) -> Setting:
    return Setting(
        robot,
        friction=flag("friction", friction),
        frame=wrench_frame,
        wrench=wrench,
        tolerance=tolerance,
        limit=limit,
        start=start,
    )


@takes_names
def meet_constraints(self: Robot, q: Array) -> np.ndarray:
    """The position near q (..., nq) that meets all constraints, by Newton steps: loops are closed.

    Raises ConstraintError, naming the constraint that is furthest off, where it finds none.
    """
    robot = _held(self)
    start = np.asarray(q, dtype=float)
    if start.shape[-1:] != (self.nq,):
        raise ShapeError(f"q: expected shape (..., {self.nq}), got {start.shape}")
    found = np.array(start, dtype=float)
    for place in np.ndindex(start.shape[:-1]):
        found[place] = _met(robot, start[place])
    return found


def _held(robot: Robot) -> Robot:
    if not robot.constraints:
        raise ModelError(f"{robot.name} has no constraints; give it some with robot.with_constraints([...])")
    return robot


def _check_constraints_met(robot: Robot, result: Any, setting: Setting, given: Mapping[str, Any]) -> None:
    if is_numeric(result):
        from linkwise.robot import diagnose

        look_at(robot, result, given)
        residuals, sizes = evaluate("constraint_residuals", setting, None, given)
        diagnose.unmet_constraints(robot, residuals, sizes, CONSTRAINT_TOLERANCE[str(result.dtype)])


def _met(robot: Robot, q: np.ndarray) -> np.ndarray:
    """One position that meets the constraints; steps are halved until the errors shrink.

    Directions that constraints hardly hold are left out of a step: in loops from CAD files they differ from none by
    round-off of the file alone, and what is left along them is accepted up to ``CLOSED``.
    """
    errors = turns_and_gaps(robot, q)
    for _ in range(NEWTON_STEPS):
        size = np.abs(errors).max()
        if size < MET:
            return q
        step = -np.linalg.lstsq(robot.constraint_jacobian(q), errors, rcond=DEPENDENT)[0]
        step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-300))
        for _ in range(12):
            new = robot.integrate(q, step)
            after = turns_and_gaps(robot, new)
            if np.linalg.norm(after) < np.linalg.norm(errors):
                break
            step *= 0.5
        else:
            break
        q, errors = new, after
    if np.abs(errors).max() < CLOSED:
        return q
    rows = [constraint.label for constraint in robot.constraints for _ in range(constraint.rows)]
    worst = int(np.argmax(np.abs(errors)))
    raise ConstraintError(
        f"{robot.name}: no position near the given one meets {rows[worst]}: {abs(errors[worst]):.3g} is left; "
        "start from another position, or make the constraint soft with compliance="
    )


def turns_and_gaps(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Errors of the constraints with rotation vectors [rad] in place of sines, which vanish at half turns."""
    errors = np.array(robot.constraint_errors(q))
    at = 0
    for constraint in robot.constraints:
        if constraint.rows == 6:
            (first, _), (second, pose) = constraint.ends()
            other = pose.matrix if second is None else robot.pose(q, second) @ pose.matrix
            turn = robot.pose(q, first)[..., :3, :3] @ np.swapaxes(other[..., :3, :3], -1, -2)
            errors[..., at : at + 3] = _rotation_vector(turn, errors[..., at : at + 3])
        at += constraint.rows
    return errors


def _rotation_vector(R: np.ndarray, sines: np.ndarray) -> np.ndarray:
    """The rotation vector (..., 3) [rad] of R from the sine of its angle along its axis."""
    sine = np.linalg.norm(sines, axis=-1, keepdims=True)
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1)[..., np.newaxis] - 1.0)
    # at a half turn the axis is the longest column of R + 1
    columns = R + np.eye(3)
    longest = np.argmax(np.linalg.norm(columns, axis=-2), axis=-1)[..., np.newaxis, np.newaxis]
    axis = np.take_along_axis(columns, longest, axis=-1)[..., 0]
    axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    angle = np.arctan2(sine, cosine)
    known = sine > 1e-9
    scaled = np.where(known, angle / np.where(known, sine, 1.0), 1.0) * sines
    return np.where(~known & (cosine < 0.0), angle * axis, scaled)
