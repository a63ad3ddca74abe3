"""Methods of robots with constraints: forces, errors, impacts, and states that meet the constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime.arrays import Array, is_numeric
from linkwise.errors import ConstraintError, ModelError, ShapeError, SingularError
from linkwise.functions.table import FUNCTIONS, ITERATED, MOTOR_TORQUES, Setting
from linkwise.model import Model
from linkwise.robot.kernels import HeldKernel, checked, compiled, evaluate, evaluate_checked
from linkwise.robot.methods import SLOT, computed, takes_names

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

CONSTRAINED = "constrained_forward_dynamics"
CONSTRAINT_TOLERANCE = {"float64": 1e-6, "float32": 1e-2}  # as ``algorithms.constraints.Precision.tolerance``
MET = 1e-11  # [rad or m] of constraints that are met
CLOSED = 1e-6  # [rad or m] left along directions that constraints do not hold
DEPENDENT = 1e-6  # singular values of J under this part of the largest: round-off of files
NEWTON_STEPS = 200
LONGEST_STEP = 0.5  # [rad or m] of one joint in a Newton step


class Constrained(Model):
    """The methods of ``Robot`` that are about constraints."""

    __slots__ = (SLOT,)

    @takes_names
    def constraint_forces(
        self,
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
        if _are_arrays(q, qd, tau):
            forces, check = self._forces_kernels(algorithm, flag("friction", friction), stabilization)
            if forces is not None and check is not None:
                result = forces(q, qd, tau, out=out, threads=threads)
                if not np.isnan(check(q, qd, tau, threads=threads)).any():
                    return result
        setting = Setting(self._held(), friction=flag("friction", friction), stabilization=stabilization)
        result = evaluate("constraint_forces", setting, algorithm, given, out, threads)
        self._check_constraints_met(result, setting, given)
        return result

    @computed
    def constraint_jacobian(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """J of all constraints, shape (..., constraint_rows, n), in base axes."""
        return evaluate("constraint_jacobian", Setting(self._held()), None, {"q": q}, out, threads)

    @takes_names
    def constraint_rank(
        self, q: Array, *, out: Any = None, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(independent directions that constraints hold, estimated relative error of accelerations), shape (...) each.

        Directions that differ from others by the error of a loop's closure or by round-off count as dependent. Close to
        a singular state, at a sine s, accelerations are exact to round-off over s, forces to round-off over s².

        Args:
            q: positions [rad or m], shape (..., nq).
            out: two arrays that take the results.
            threads: number of threads.
        """
        return evaluate("constraint_rank", Setting(self._held()), None, {"q": q}, out, threads)

    @computed
    def constraint_errors(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """How far constraints are from being met, shape (..., constraint_rows): sine of the angle, gap [m]."""
        return evaluate("constraint_errors", Setting(self._held()), None, {"q": q}, out, threads)

    @computed
    def delassus_matrix(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """J M⁻¹ Jᵀ of the constraints, shape (..., constraint_rows, constraint_rows)."""
        return evaluate("delassus_matrix", Setting(self._held()), algorithm, {"q": q}, out, threads)

    @takes_names
    def impact(
        self, q: Array, qd: Array, *, restitution: float = 0.0, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Velocities, shape (..., n), after an impact at velocities qd that the constraints take.

        Args:
            q: positions [rad or m], shape (..., nq).
            qd: velocities before the impact, shape (..., n).
            restitution: the part of the approach velocity with which the held points part again.
            out: array that takes the result.
            threads: number of threads.
        """
        if type(restitution) is float and _are_arrays(q, qd):
            kernel = self.__dict__.get("_impact_kernel")
            if kernel is None:
                kernel = self.__dict__["_impact_kernel"] = compiled("impact", Setting(self._held()), None)
            if kernel is not None:
                return kernel(q, qd, [restitution], out=out, threads=threads)
        given = {"q": q, "qd": qd, "restitution": np.atleast_1d(np.asarray(restitution, dtype=float))}
        return evaluate("impact", Setting(self._held()), None, given, out, threads)

    def _constrained_forward_dynamics(
        self,
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
        setting = self._constrained_setting(wrench is not None, wrench_frame, friction, stabilization)
        kernel = checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE)
        if (result := evaluate_checked(kernel, given, out, threads)) is not None:
            return result
        written = None if out is None else (out, None)
        qdd, unmet = evaluate(CONSTRAINED, setting, algorithm, given, written, threads)
        if is_numeric(qdd):
            if np.isnan(qdd).any():
                self._look_at(qdd, given)
            if np.any(unmet > CONSTRAINT_TOLERANCE[str(qdd.dtype)]):
                self._check_constraints_met(qdd, setting, given)
        return qdd

    def _motor_torques(
        self,
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
        setting = self._constrained_setting(wrench is not None, wrench_frame, friction, None)
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

            diagnose.unmade_motion(self, unmade, missing)
        return tau

    def _forces_kernels(
        self, algorithm: str | None, friction: bool, stabilization: float | None
    ) -> tuple[Kernel | HeldKernel | None, Kernel | HeldKernel | None]:
        """What computes forces of constraints, and what is NaN where a constraint is not met."""
        known = self.__dict__.setdefault("_kernels_of_forces", {})
        key = (algorithm, friction, stabilization)
        if key not in known:
            setting = Setting(self._held(), friction=friction, stabilization=stabilization)
            known[key] = (
                compiled("constraint_forces", setting, algorithm),
                checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE),
            )
        return known[key]

    def _constrained_setting(
        self, wrench: bool, wrench_frame: str | None, friction: bool, stabilization: float | None
    ) -> Setting:
        frame = self._frame(wrench_frame) if wrench else wrench_frame
        chosen = flag("friction", friction)
        return Setting(self, friction=chosen, frame=frame, wrench=wrench, stabilization=stabilization)

    def _checked_kernel(
        self, algorithm: str | None, options: Mapping[str, Any]
    ) -> Kernel | HeldKernel | None:
        """What computes forward dynamics of a robot with constraints and by conjugate gradients: NaN where a constraint
        is not met or the iteration has not converged. ``options`` as for ``kernel_for``."""
        common = {key: options[key] for key in ("wrench", "wrench_frame", "friction")}
        if algorithm not in FUNCTIONS[ITERATED].algorithms:
            setting = self._constrained_setting(**common, stabilization=options["stabilization"])
            return checked(CONSTRAINED, setting, algorithm, CONSTRAINT_TOLERANCE)
        from linkwise.robot.diagnose import convergence_tolerances

        setting = self._iterated_setting(
            **common, tolerance=options["tolerance"], limit=options["limit"], start=options["start"]
        )
        return checked(ITERATED, setting, algorithm, convergence_tolerances(setting.tolerance))

    def _iterated_setting(
        self,
        wrench: bool,
        wrench_frame: str | None,
        friction: bool,
        tolerance: float | None,
        limit: int | None,
        start: bool,
    ) -> Setting:
        return Setting(
            self,
            friction=flag("friction", friction),
            frame=wrench_frame,
            wrench=wrench,
            tolerance=tolerance,
            limit=limit,
            start=start,
        )

    @takes_names
    def meet_constraints(self, q: Array) -> np.ndarray:
        """The position near q (..., nq) that meets all constraints, by Newton steps: loops are closed.

        Raises ConstraintError, naming the constraint that is furthest off, where it finds none.
        """
        robot: Robot = self._held()  # type: ignore[assignment]
        start = np.asarray(q, dtype=float)
        if start.shape[-1:] != (self.nq,):
            raise ShapeError(f"q: expected shape (..., {self.nq}), got {start.shape}")
        found = np.array(start, dtype=float)
        for place in np.ndindex(start.shape[:-1]):
            found[place] = _met(robot, start[place])
        return found

    def _held(self) -> Constrained:
        if not self.constraints:
            raise ModelError(
                f"{self.name} has no constraints; give it some with robot.with_constraints([...])"
            )
        return self

    def _check_constraints_met(self, result: Any, setting: Setting, given: Mapping[str, Any]) -> None:
        if is_numeric(result):
            from linkwise.robot import diagnose

            self._look_at(result, given)
            residuals, sizes = evaluate("constraint_residuals", setting, None, given)
            diagnose.unmet_constraints(self, residuals, sizes, CONSTRAINT_TOLERANCE[str(result.dtype)])

    def _check_derivatives(self, by_q: Any, given: Mapping[str, Any]) -> None:
        """Raise SingularError where the derivatives of accelerations under constraints do not exist."""
        if not (self.constraints and is_numeric(by_q) and np.isnan(by_q).any()):
            return
        if all(np.isfinite(np.asarray(value, dtype=float)).all() for value in given.values()):
            raise SingularError(
                f"{self.name}: accelerations have no derivatives by q in some state: its constraints hold fewer "
                "directions there than beside it (robot.constraint_jacobian(q) loses rank)"
            )

    def _check_task(self, result: Any, q: Array, frame: str | None) -> None:
        if is_numeric(result) and np.isnan(result).any():
            self._look_at(result, {"q": q})
            if np.isfinite(np.asarray(q, dtype=float)).all():
                raise SingularError(
                    f"{self.name}: {self._frame(frame)!r} cannot be moved in all six directions in some state, "
                    "so its task inertia is infinite; look at the rank of robot.jacobian(q)"
                )

    def _frame(self, frame: str | None) -> str:
        return self.default_frame() if frame is None else frame

    def _look_at(self, result: Any, given: Mapping[str, Any]) -> None:
        """A NaN that the inputs do not explain comes from a singular mass matrix: say so, and name the joint."""
        if is_numeric(result) and np.isnan(result).any():
            from linkwise.robot import diagnose

            diagnose.singular(self, result, given)


def _are_arrays(*values: Any) -> bool:
    """Whether these are NumPy's arrays of real numbers, which kernels take as they are."""
    return all(type(value) is np.ndarray and value.dtype.kind == "f" for value in values)


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
