"""The class ``Robot``: a model whose methods pick a kernel and call it.

Equation of motion and signs, for all methods: M(q) q̈ + c(q, q̇) + g(q) + friction = τ + Jᵀ w. A wrench w = (moment,
force) acts *on* the robot at the origin of a frame, in that frame's own axes. SI units and radians. Every argument has
shape (..., n): leading batch axes broadcast together as in NumPy. float64, or float32 when all inputs are float32.
``out`` is an array (or a tuple of them) that takes the results, ``threads`` the number of threads of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.guesses import RobotType
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime.arrays import Array, check_out, is_foreign
from linkwise.errors import DtypeError, UnknownNameError, suggest
from linkwise.functions.contact_functions import CONTACT_FUNCTIONS, CONTACT_INPUTS, DEFAULT_STEP
from linkwise.functions.table import FUNCTIONS, ITERATED, Setting, function_named
from linkwise.model import Model
from linkwise.model.coordinates import CoordinateLimits, coordinate_limits
from linkwise.robot.kernels import checked, chosen_algorithm, compiled, evaluate, evaluate_checked
from linkwise.robot.kernels import kernel as make_kernel
from linkwise.robot.methods import computed
from linkwise.robot.preparation import Prepared

if TYPE_CHECKING:
    from linkwise.compiler.parametric import ParametricKernel
    from linkwise.functions.base_parameters import BaseParameters

LOOKED_INTO = (  # a NaN in the results means a singular matrix
    *("forward_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives"),
    *("task_inertia", "consistent_inverse"),
)
FRAME_FUNCTIONS = ("pose", "jacobian", "velocity", "jacobian_rate", "task_inertia", "consistent_inverse")


class Robot(Prepared, metaclass=RobotType):
    """A robot and its dynamics. Make one with ``linkwise.load``."""

    __slots__ = ()

    @classmethod
    def from_model(cls, model: Model, source: Sequence[str] = ()) -> Robot:
        """The robot of a model.

        Args:
            model: the model.
            source: its file, then folders with its meshes, in place of those of the model.
        """
        parts = model._parts()
        if source:
            parts["source"] = tuple(source)
        return cls(**parts)

    # -- torques --------------------------------------------------------------------------------------------------

    @computed
    def inverse_dynamics(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        algorithm: str | None = None,
        wrench: Array | None = None,
        wrench_frame: str | None = None,
        friction: bool = True,
        nearest: bool = False,
        out: Any = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Joint torques τ for a motion: M(q) q̈ + c(q, q̇) + g(q) + friction − Jᵀ w; with constraints the smallest ones.

        Args:
            q: positions [rad or m], shape (..., nq).
            qd: velocities, shape (..., n).
            qdd: accelerations, shape (..., n).
            algorithm: newton_euler (default), boundary_value, gibbs_appell, compound_link.
            wrench: (moment [N·m], force [N]) on the robot, shape (..., 6), in the axes of ``wrench_frame``.
            wrench_frame: where the wrench acts; by default the only leaf.
            friction: whether viscous and Coulomb terms count; rotor inertia always does.
            nearest: whether to return (nearest torques of the motors, residual) instead of raising ConstraintError
                where joints without a motor (``passive``) need torques: the residual are these, shape (..., n).
            out: array that takes the result.
            threads: number of threads; by default all cores where the batch is large enough.

        Returns:
            Torques [N·m or N], shape (..., n); under constraints zero at joints without a motor.
        """
        given = {"q": q, "qd": qd, "qdd": qdd}
        if flag("nearest", nearest) or (self.passive and self.constraints):
            return self._motor_torques(
                given, algorithm, wrench, wrench_frame, friction, nearest, out, threads
            )
        options: dict[str, Any] = {
            "algorithm": algorithm,
            "wrench": wrench,
            "wrench_frame": wrench_frame,
            "friction": friction,
        }
        return self._compute("inverse_dynamics", given, out, threads, **options)

    @computed
    def forward_dynamics(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        algorithm: str | None = None,
        wrench: Array | None = None,
        wrench_frame: str | None = None,
        friction: bool = True,
        out: Any = None,
        threads: int | None = None,
        tolerance: float | None = None,
        limit: int | None = None,
        start: Array | None = None,
        stabilization: float | None = None,
    ) -> np.ndarray:
        """Joint accelerations q̈ for torques; constraints are kept.

        Results on a GPU are not checked, because that would wait for it: see ``kernel`` for the estimated errors.

        Args:
            q: positions [rad or m], shape (..., nq).
            qd: velocities, shape (..., n).
            tau: torques [N·m or N], shape (..., n).
            algorithm: kalman (default), compound_link (mass matrix and a factorised solve), conjugate_gradient,
                preconditioned_conjugate_gradient; parallel_scan for long chains on a GPU, with rotor inertia at every
                joint: its depth grows with the logarithm of the number of joints.
            wrench: (moment [N·m], force [N]) on the robot, shape (..., 6), in the axes of ``wrench_frame``.
            wrench_frame: where the wrench acts; by default the only leaf.
            friction: whether viscous and Coulomb terms count; rotor inertia always does.
            out: array that takes the result.
            threads: number of threads; by default all cores where the batch is large enough.
            tolerance: conjugate gradients: estimated error of q̈ relative to its largest component; 1e-9, in float32
                1e-3.
            limit: conjugate gradients: most iterations; 10 n.
            start: conjugate gradients: first estimate of q̈, shape (..., n).
            stabilization: rate [1/s] at which errors of constraints decay (Baumgarte); none by default.

        Returns:
            Accelerations [rad/s² or m/s²], shape (..., n).

        Raises:
            SingularError: the mass matrix is singular; the message names the joint.
            ConvergenceError: conjugate gradients did not reach the tolerance.
            ConstraintError: a constraint cannot be met together with the others.
        """
        given = {"q": q, "qd": qd, "tau": tau}
        if self.constraints and algorithm not in FUNCTIONS[ITERATED].algorithms:
            return self._constrained_forward_dynamics(
                given, algorithm, wrench, wrench_frame, friction, stabilization, out, threads
            )
        if algorithm not in FUNCTIONS[ITERATED].algorithms:
            row = FUNCTIONS["forward_dynamics"]
            if algorithm not in (None, *row.algorithms, *row.scanned):
                valid = self.algorithms("forward_dynamics")
                raise UnknownNameError(f"algorithm: no {algorithm!r}; {suggest(algorithm, valid)}")
            if tolerance is not None or limit is not None or start is not None:
                raise DtypeError("tolerance, limit and start belong to the conjugate-gradient algorithms")
            options = {"algorithm": algorithm, "wrench": wrench, "wrench_frame": wrench_frame}
            result = self._compute("forward_dynamics", given, out, threads, friction=friction, **options)
            self._look_at(result, given)
            return result
        from linkwise.robot import diagnose

        diagnose.check_stop(tolerance, limit)
        setting = self._iterated_setting(
            wrench is not None, wrench_frame, friction, tolerance, limit, start is not None
        )
        if wrench is not None:
            given["wrench"] = wrench
        if start is not None:
            given["start"] = start
        kernel = checked(ITERATED, setting, algorithm, diagnose.convergence_tolerances(tolerance))
        if (result := evaluate_checked(kernel, given, out, threads)) is not None:
            return result
        qdd, error, _ = evaluate(ITERATED, setting, algorithm, given, None, threads)
        if is_foreign(qdd):  # looking at the error would wait for the GPU
            if out is None:
                return qdd
            out[...] = qdd
            return out
        diagnose.check_convergence(self, qdd, error, tolerance, given)
        if out is None:
            return qdd
        check_out("out", out, qdd.shape, qdd.dtype)[...] = qdd
        return out

    @computed
    def gravity_torques(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Torques that hold the robot still against gravity, g(q) [N·m or N], shape (..., n)."""
        return self._compute("gravity_torques", {"q": q}, out, threads, algorithm=algorithm)

    @computed
    def velocity_torques(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Coriolis and centrifugal torques c(q, q̇) [N·m or N], shape (..., n)."""
        return self._compute("velocity_torques", {"q": q, "qd": qd}, out, threads)

    @computed
    def bias_torques(self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """c(q, q̇) + g(q) [N·m or N], shape (..., n): torques at zero acceleration, without friction."""
        return self._compute("bias_torques", {"q": q, "qd": qd}, out, threads)

    # -- matrices -------------------------------------------------------------------------------------------------

    @computed
    def mass_matrix(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Mass matrix M(q), rotor inertias included, shape (..., n, n), symmetric.

        ``algorithm`` is compound_link (default), covariance or newton_euler (n unit accelerations).
        """
        return self._compute("mass_matrix", {"q": q}, out, threads, algorithm=algorithm)

    @computed
    def inverse_mass_matrix(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """M(q)⁻¹, shape (..., n, n), symmetric. ``algorithm``: kalman (default), compound_link."""
        result = self._compute("inverse_mass_matrix", {"q": q}, out, threads, algorithm=algorithm)
        self._look_at(result, {"q": q})
        return result

    @computed
    def coriolis_matrix(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """C(q, q̇) from Christoffel's symbols, shape (..., n, n): C q̇ = velocity torques and Ṁ − 2C is skew."""
        return self._compute("coriolis_matrix", {"q": q, "qd": qd}, out, threads)

    @computed
    def christoffel(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """D_ijk of Izaguirre's (1), shape (..., n, n, n), symmetric in j and k: c_i = Σ_jk D_ijk q̇_j q̇_k.

        A robot with ball or floating joints has none: its angular rates are not derivatives of coordinates, so these
        symbols do not exist; use ``coriolis_matrix``.
        """
        return self._compute("christoffel", {"q": q}, out, threads)

    @computed
    def regressor(
        self, q: Array, qd: Array, qdd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Y with Y @ robot.parameters = τ, shape (..., n, parameters); columns as in ``parameter_labels``."""
        return self._compute("regressor", {"q": q, "qd": qd, "qdd": qdd}, out, threads)

    # -- derivatives ----------------------------------------------------------------------------------------------

    @computed
    def inverse_dynamics_derivatives(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        algorithm: str | None = None,
        friction: bool = True,
        out: Any = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = M, each of shape (..., n, n), with viscous friction unless ``friction=False``.

        ``algorithm``: the inverse-dynamics algorithm that is differentiated, or "recursion" for the analytic one.
        """
        given = {"q": q, "qd": qd, "qdd": qdd}
        options: dict[str, Any] = {"algorithm": algorithm, "friction": friction}
        return self._compute("inverse_dynamics_derivatives", given, out, threads, **options)

    @computed
    def forward_dynamics_derivatives(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        algorithm: str | None = None,
        friction: bool = True,
        out: Any = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ = M⁻¹, each of shape (..., n, n); ``algorithm`` computes the q̈ they are taken at.

        Under constraints ∂q̈/∂q is exact along motions that they allow. Raises SingularError where it does not exist:
        the constraints hold fewer directions in this state than beside it, as in a flat four-bar linkage.
        """
        given = {"q": q, "qd": qd, "tau": tau}
        options: dict[str, Any] = {"algorithm": algorithm, "friction": friction}
        results = self._compute("forward_dynamics_derivatives", given, out, threads, **options)
        for result in results:  # a joint that moves nothing may leave its NaN in the inverse alone
            self._look_at(result, given)
        self._check_derivatives(results[0], given)
        return results

    # -- energy and kinematics ------------------------------------------------------------------------------------

    @computed
    def kinetic_energy(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """½ q̇ᵀ M q̇ [J], shape (...); rotors included."""
        return self._compute("kinetic_energy", {"q": q, "qd": qd}, out, threads)

    @computed
    def potential_energy(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Potential energy [J], shape (...), zero for masses in the base frame's origin."""
        return self._compute("potential_energy", {"q": q}, out, threads)

    @computed
    def pose(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Pose of a frame in the base frame, shape (..., 4, 4) [m]; default frame: the only leaf."""
        return self._compute("pose", {"q": q}, out, threads, frame=frame)

    @computed
    def jacobian(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Jacobian of a frame, shape (..., 6, n): rows angular then linear velocity of its origin, in base axes."""
        return self._compute("jacobian", {"q": q}, out, threads, frame=frame)

    @computed
    def velocity(
        self, q: Array, qd: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Velocity of a frame, shape (..., 6): angular [rad/s], then linear of its origin [m/s], in base axes."""
        return self._compute("velocity", {"q": q, "qd": qd}, out, threads, frame=frame)

    @computed
    def jacobian_rate(
        self, q: Array, qd: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """J̇ q̇ of a frame, shape (..., 6): its angular and linear acceleration at q̈ = 0, in base axes."""
        return self._compute("jacobian_rate", {"q": q, "qd": qd}, out, threads, frame=frame)

    # -- the robot as a whole -------------------------------------------------------------------------------------

    @computed
    def center_of_mass(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Centre of mass of all moving links in the base frame [m], shape (..., 3). ModelError if they have no mass."""
        return self._compute("center_of_mass", {"q": q}, out, threads)

    @computed
    def com_jacobian(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Jacobian of the centre of mass, shape (..., 3, n), in base axes. ModelError if no moving link has mass."""
        return self._compute("com_jacobian", {"q": q}, out, threads)

    @computed
    def centroidal_momentum(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Momentum of the robot, shape (..., 6): angular about its centre of mass [kg·m²/s], linear [kg·m/s]."""
        return self._compute("centroidal_momentum", {"q": q, "qd": qd}, out, threads)

    @computed
    def centroidal_matrix(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """A(q) with A q̇ = centroidal momentum, shape (..., 6, n), in base axes (Orin, Goswami and Lee 2013)."""
        return self._compute("centroidal_matrix", {"q": q}, out, threads)

    @computed
    def centroidal_bias(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Ȧ q̇, shape (..., 6): the rate of the centroidal momentum is A q̈ + Ȧ q̇."""
        return self._compute("centroidal_bias", {"q": q, "qd": qd}, out, threads)

    @computed
    def task_inertia(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """(J M⁻¹ Jᵀ)⁻¹ of a frame, shape (..., 6, 6), in base axes: the inertia that a wrench at the frame has to move.

        Raises SingularError where the frame cannot be moved in all six directions.
        """
        result = self._compute("task_inertia", {"q": q}, out, threads, frame=frame)
        self._check_task(result, q, frame)
        return result

    @computed
    def consistent_inverse(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Khatib's dynamically consistent inverse of the Jacobian, M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹, shape (..., n, 6)."""
        result = self._compute("consistent_inverse", {"q": q}, out, threads, frame=frame)
        self._check_task(result, q, frame)
        return result

    # -- limits ---------------------------------------------------------------------------------------------------

    @property
    def limits(self) -> CoordinateLimits:
        """Lower and upper of q, shape (nq,), largest velocities and efforts, shape (n,); infinite without a limit."""
        return coordinate_limits(self)

    # -- positions ------------------------------------------------------------------------------------------------

    @computed
    def integrate(self, q: Array, v: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """The position, shape (..., nq), after a step v (..., n) [rad or m] along the velocity coordinates.

        q + v for joints with one axis; for ball and floating joints the motion at constant velocity in the link's own
        axes (the exponential of SO(3) and SE(3), as in Pinocchio).

        Args:
            q: positions [rad or m], shape (..., nq).
            v: the step, shape (..., n).
            out: array that takes the result.
            threads: number of threads.
        """
        return self._compute("integrate", {"q": q, "step": v}, out, threads)

    @computed
    def difference(self, q0: Array, q1: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """The step, shape (..., n), with integrate(q0, step) = q1; orientations take the shorter way."""
        return self._compute("difference", {"q": q0, "other": q1}, out, threads)

    @computed
    def normalize(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """The same position, shape (..., nq), with quaternions of length one (any length but zero means the same)."""
        return self._compute("normalize", {"q": q}, out, threads)

    # -- kernels --------------------------------------------------------------------------------------------------

    def kernel(
        self,
        function: str | Sequence[str],
        *,
        algorithm: str | None = None,
        dtype: str = "float64",
        inputs: str | Sequence[str] = (),
        friction: bool = True,
        frame: str | None = None,
        wrench: bool = False,
        base_parameters: bool | None = None,
        step: float = DEFAULT_STEP,
        accuracy: float | None = None,
        smoothing: float = 0.0,
    ) -> Kernel | ParametricKernel:
        """A function of this robot as a compiled object that is called with arrays and can be counted, differentiated
        and printed.

        Args:
            function: a name such as "inverse_dynamics". A list of names gives one kernel that computes what they have
                in common once and returns a tuple of all results; it takes ``dtype``, ``friction`` and ``frame`` only.
            algorithm: one of ``algorithms(function)``.
            dtype: "float64" or "float32".
            inputs: parameters that stay inputs at run time, after the state: "payload" (ten numbers m hx hy hz Ixx Ixy
                Ixz Iyy Iyz Izz about the origin and along the axes of ``frame``) or labels of ``parameter_labels``; of
                contact functions also time_step, contact_friction, ground_height and start_impulse.
            friction: whether viscous and Coulomb terms count.
            frame: of poses, Jacobians, wrenches and payloads; by default the only leaf.
            wrench: whether an external wrench is an input.
            base_parameters: whether inertial parameters are regrouped first; by default where results are the same.
            step: of contact functions: length of the step [s], where it is no input.
            accuracy: of contact functions: largest residual that nearly all states should have.
            smoothing: of derivatives of contact functions [m/s], see ``contact_step``.

        Returns:
            The kernel, compiled when it is called first.

        Raises:
            UnknownNameError: no such function, algorithm, frame or parameter.
        """
        friction, wrench = flag("friction", friction), flag("wrench", wrench)
        if not isinstance(function, str):
            return self._combined(function, dtype, friction, frame, algorithm or inputs or wrench)
        inputs = (inputs,) if isinstance(inputs, str) else tuple(dict.fromkeys(inputs))
        name = function
        if name == "forward_dynamics" and algorithm in FUNCTIONS[ITERATED].algorithms:
            name = ITERATED
        row = function_named(name)
        regroup = row.regroups if base_parameters is None else flag("base_parameters", base_parameters)
        if regroup and not row.regroups:
            raise ValueError(f"base_parameters: regrouping would change the result of {name}")
        if frame is not None:
            self.locate(frame)
        touching = {given: given in inputs for given in CONTACT_INPUTS} if name in CONTACT_FUNCTIONS else {}
        inputs = tuple(given for given in inputs if given not in touching)
        needs_frame = wrench or "payload" in inputs or name in FRAME_FUNCTIONS
        setting = Setting(
            self,
            friction=friction,
            frame=self._frame(frame) if needs_frame else None,
            wrench=wrench,
            base_parameters=regroup,
            parameters=inputs,
        )
        if touching:
            own = self.contact_setting(
                {"step": step, "accuracy": accuracy, "smoothing": smoothing, **touching}
            )
            setting = replace(own, friction=friction, base_parameters=regroup, parameters=inputs)
        return make_kernel(row, setting, chosen_algorithm(row, setting, algorithm), dtype)

    def _combined(
        self, names: Sequence[str], dtype: str, friction: bool, frame: str | None, others: object
    ) -> Kernel:
        from linkwise.robot.combined import combined_kernel

        if others:
            raise ValueError("kernel: several functions in one kernel take dtype, friction and frame only")
        needs_frame = any(name in FRAME_FUNCTIONS for name in names)
        setting = Setting(self, friction=friction, frame=self._frame(frame) if needs_frame else None)
        return combined_kernel(tuple(names), setting, dtype)

    def base_parameters(self, *, first: Sequence[str] = (), links_only: bool = False) -> BaseParameters:
        """The smallest set of parameters that leaves every torque unchanged: labels, values, combinations.

        Args:
            first: parameters to be kept where there is a choice (Izaguirre puts rotor inertias first).
            links_only: whether rotor inertia and friction are left out.
        """
        from linkwise.functions.base_parameters import base_parameters

        return base_parameters(self, first=first, links_only=links_only)

    # -- shared ---------------------------------------------------------------------------------------------------

    def _compute(
        self,
        name: str,
        given: dict[str, Any],
        out: Any,
        threads: int | None,
        *,
        algorithm: str | None = None,
        wrench: Array | None = None,
        **options: Any,
    ) -> Any:
        """A function of the table with the options of a call."""
        setting = self._setting(name, wrench=wrench is not None, **options)
        if wrench is not None:
            given["wrench"] = wrench
        return evaluate(name, setting, algorithm, given, out, threads)

    def _setting(
        self,
        name: str,
        *,
        frame: str | None = None,
        wrench: bool = False,
        wrench_frame: str | None = None,
        friction: bool = True,
    ) -> Setting:
        """What the options of a call mean."""
        if name in FRAME_FUNCTIONS:
            frame = self._frame(frame)
        elif wrench:
            frame = self._frame(wrench_frame)
        elif wrench_frame is not None:
            self.locate(wrench_frame)  # an unknown name is an error even without a wrench
            frame = wrench_frame
        return Setting(self, friction=flag("friction", friction), frame=frame, wrench=wrench)

    def kernel_for(self, method: str, options: Mapping[str, Any]) -> tuple[Any, bool] | None:
        """The kernel that computes a method with these options, and whether a NaN in its results is looked into.

        None where a call is more than one kernel.

        Args:
            method: its name.
            options: its options; ``wrench`` and ``start`` say whether these are given.
        """
        options = dict(options)
        algorithm = options.pop("algorithm", None)
        if method == "inverse_dynamics":
            nearest = options.pop("nearest", False)
            if nearest or (self.passive and self.constraints):
                return None
        if method == "forward_dynamics":
            if self.constraints or algorithm in FUNCTIONS[ITERATED].algorithms:
                found = self._checked_kernel(algorithm, options)
                return None if found is None else (found, True)
            if any(options.pop(name, None) for name in ("tolerance", "limit", "start", "stabilization")):
                return None
        touches = method in CONTACT_FUNCTIONS
        setting = self.contact_setting(options) if touches else self._setting(method, **options)
        found = compiled(method, setting, algorithm)
        if found is None or method not in LOOKED_INTO:
            return None if found is None else (found, False)
        from linkwise.algorithms.singularity import may_be_singular

        looked_into = method in FRAME_FUNCTIONS or bool(self.constraints) or may_be_singular(setting.links())
        return found, looked_into
