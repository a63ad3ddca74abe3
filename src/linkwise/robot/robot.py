"""The class ``Robot``: a model whose methods pick a kernel and call it.

Its body is the list of all methods: those of the equation of motion are written here, the others in a file for each
subject, as functions of a robot.

Equation of motion and signs, for all methods: M(q) q̈ + c(q, q̇) + g(q) + friction = τ + Jᵀ w. A wrench w = (moment,
force) acts *on* the robot at the origin of a frame, in that frame's own axes. SI units and radians. Every argument has
shape (..., n): leading batch axes broadcast together as in NumPy. float64, or float32 when all inputs are float32.
``out`` is an array (or a tuple of them) that takes the results, ``threads`` the number of threads of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.guesses import RobotType
from linkwise.compiler.runtime.arrays import Array, check_out, is_foreign
from linkwise.errors import DtypeError, UnknownNameError, suggest
from linkwise.functions.table import FUNCTIONS, ITERATED
from linkwise.model import Model
from linkwise.model import contacts as parts
from linkwise.model.coordinates import CoordinateLimits, coordinate_limits
from linkwise.model.elastic import Pair, elastic_pairs
from linkwise.robot import calls, constrained, contacting, conveniences, inspection, preparation
from linkwise.robot.calls import compute
from linkwise.robot.constrained import constrained_forward_dynamics, iterated_setting, motor_torques
from linkwise.robot.kernels import checked, evaluate, evaluate_checked
from linkwise.robot.methods import SLOT, computed
from linkwise.robot.results import check_derivatives, check_task, look_at


class Robot(Model, metaclass=RobotType):
    """A robot and its dynamics. Make one with ``linkwise.load``."""

    __slots__ = (SLOT,)

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
            return motor_torques(
                self, given, algorithm, wrench, wrench_frame, friction, nearest, out, threads
            )
        options: dict[str, Any] = {
            "algorithm": algorithm,
            "wrench": wrench,
            "wrench_frame": wrench_frame,
            "friction": friction,
        }
        return compute(self, "inverse_dynamics", given, out, threads, **options)

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
            return constrained_forward_dynamics(
                self, given, algorithm, wrench, wrench_frame, friction, stabilization, out, threads
            )
        if algorithm not in FUNCTIONS[ITERATED].algorithms:
            row = FUNCTIONS["forward_dynamics"]
            if algorithm not in (None, *row.algorithms, *row.scanned):
                valid = self.algorithms("forward_dynamics")
                raise UnknownNameError(f"algorithm: no {algorithm!r}; {suggest(algorithm, valid)}")
            if tolerance is not None or limit is not None or start is not None:
                raise DtypeError("tolerance, limit and start belong to the conjugate-gradient algorithms")
            options = {"algorithm": algorithm, "wrench": wrench, "wrench_frame": wrench_frame}
            result = compute(self, "forward_dynamics", given, out, threads, friction=friction, **options)
            look_at(self, result, given)
            return result
        from linkwise.robot import diagnose

        diagnose.check_stop(tolerance, limit)
        setting = iterated_setting(
            self, wrench is not None, wrench_frame, friction, tolerance, limit, start is not None
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
        return compute(self, "gravity_torques", {"q": q}, out, threads, algorithm=algorithm)

    @computed
    def velocity_torques(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Coriolis and centrifugal torques c(q, q̇) [N·m or N], shape (..., n)."""
        return compute(self, "velocity_torques", {"q": q, "qd": qd}, out, threads)

    @computed
    def bias_torques(self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """c(q, q̇) + g(q) [N·m or N], shape (..., n): torques at zero acceleration, without friction."""
        return compute(self, "bias_torques", {"q": q, "qd": qd}, out, threads)

    # -- matrices -------------------------------------------------------------------------------------------------

    @computed
    def mass_matrix(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Mass matrix M(q), rotor inertias included, shape (..., n, n), symmetric.

        ``algorithm`` is compound_link (default), covariance or newton_euler (n unit accelerations).
        """
        return compute(self, "mass_matrix", {"q": q}, out, threads, algorithm=algorithm)

    @computed
    def inverse_mass_matrix(
        self, q: Array, *, algorithm: str | None = None, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """M(q)⁻¹, shape (..., n, n), symmetric. ``algorithm``: kalman (default), compound_link."""
        result = compute(self, "inverse_mass_matrix", {"q": q}, out, threads, algorithm=algorithm)
        look_at(self, result, {"q": q})
        return result

    @computed
    def coriolis_matrix(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """C(q, q̇) from Christoffel's symbols, shape (..., n, n): C q̇ = velocity torques and Ṁ − 2C is skew."""
        return compute(self, "coriolis_matrix", {"q": q, "qd": qd}, out, threads)

    @computed
    def christoffel(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """D_ijk of Izaguirre's (1), shape (..., n, n, n), symmetric in j and k: c_i = Σ_jk D_ijk q̇_j q̇_k.

        A robot with ball or floating joints has none: its angular rates are not derivatives of coordinates, so these
        symbols do not exist; use ``coriolis_matrix``.
        """
        return compute(self, "christoffel", {"q": q}, out, threads)

    @computed
    def regressor(
        self, q: Array, qd: Array, qdd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Y with Y @ robot.parameters = τ, shape (..., n, parameters); columns as in ``parameter_labels``."""
        return compute(self, "regressor", {"q": q, "qd": qd, "qdd": qdd}, out, threads)

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
        return compute(self, "inverse_dynamics_derivatives", given, out, threads, **options)

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
        results = compute(self, "forward_dynamics_derivatives", given, out, threads, **options)
        for result in results:  # a joint that moves nothing may leave its NaN in the inverse alone
            look_at(self, result, given)
        check_derivatives(self, results[0], given)
        return results

    # -- energy and kinematics ------------------------------------------------------------------------------------

    @computed
    def kinetic_energy(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """½ q̇ᵀ M q̇ [J], shape (...); rotors included."""
        return compute(self, "kinetic_energy", {"q": q, "qd": qd}, out, threads)

    @computed
    def potential_energy(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Potential energy [J], shape (...), zero for masses in the base frame's origin."""
        return compute(self, "potential_energy", {"q": q}, out, threads)

    @computed
    def pose(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Pose of a frame in the base frame, shape (..., 4, 4) [m]; default frame: the only leaf."""
        return compute(self, "pose", {"q": q}, out, threads, frame=frame)

    @computed
    def jacobian(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Jacobian of a frame, shape (..., 6, n): rows angular then linear velocity of its origin, in base axes."""
        return compute(self, "jacobian", {"q": q}, out, threads, frame=frame)

    @computed
    def velocity(
        self, q: Array, qd: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Velocity of a frame, shape (..., 6): angular [rad/s], then linear of its origin [m/s], in base axes."""
        return compute(self, "velocity", {"q": q, "qd": qd}, out, threads, frame=frame)

    @computed
    def jacobian_rate(
        self, q: Array, qd: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """J̇ q̇ of a frame, shape (..., 6): its angular and linear acceleration at q̈ = 0, in base axes."""
        return compute(self, "jacobian_rate", {"q": q, "qd": qd}, out, threads, frame=frame)

    # -- the robot as a whole -------------------------------------------------------------------------------------

    @computed
    def center_of_mass(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Centre of mass of all moving links in the base frame [m], shape (..., 3). ModelError if they have no mass."""
        return compute(self, "center_of_mass", {"q": q}, out, threads)

    @computed
    def com_jacobian(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """Jacobian of the centre of mass, shape (..., 3, n), in base axes. ModelError if no moving link has mass."""
        return compute(self, "com_jacobian", {"q": q}, out, threads)

    @computed
    def centroidal_momentum(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Momentum of the robot, shape (..., 6): angular about its centre of mass [kg·m²/s], linear [kg·m/s]."""
        return compute(self, "centroidal_momentum", {"q": q, "qd": qd}, out, threads)

    @computed
    def centroidal_matrix(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """A(q) with A q̇ = centroidal momentum, shape (..., 6, n), in base axes (Orin, Goswami and Lee 2013)."""
        return compute(self, "centroidal_matrix", {"q": q}, out, threads)

    @computed
    def centroidal_bias(
        self, q: Array, qd: Array, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Ȧ q̇, shape (..., 6): the rate of the centroidal momentum is A q̈ + Ȧ q̇."""
        return compute(self, "centroidal_bias", {"q": q, "qd": qd}, out, threads)

    @computed
    def task_inertia(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """(J M⁻¹ Jᵀ)⁻¹ of a frame, shape (..., 6, 6), in base axes: the inertia that a wrench at the frame has to move.

        Raises SingularError where the frame cannot be moved in all six directions.
        """
        result = compute(self, "task_inertia", {"q": q}, out, threads, frame=frame)
        check_task(self, result, q, frame)
        return result

    @computed
    def consistent_inverse(
        self, q: Array, frame: str | None = None, *, out: Any = None, threads: int | None = None
    ) -> np.ndarray:
        """Khatib's dynamically consistent inverse of the Jacobian, M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹, shape (..., n, 6)."""
        result = compute(self, "consistent_inverse", {"q": q}, out, threads, frame=frame)
        check_task(self, result, q, frame)
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
        return compute(self, "integrate", {"q": q, "step": v}, out, threads)

    @computed
    def difference(self, q0: Array, q1: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """The step, shape (..., n), with integrate(q0, step) = q1; orientations take the shorter way."""
        return compute(self, "difference", {"q": q0, "other": q1}, out, threads)

    @computed
    def normalize(self, q: Array, *, out: Any = None, threads: int | None = None) -> np.ndarray:
        """The same position, shape (..., nq), with quaternions of length one (any length but zero means the same)."""
        return compute(self, "normalize", {"q": q}, out, threads)

    # -- constraints ----------------------------------------------------------------------------------------------

    constraint_forces = constrained.constraint_forces
    constraint_jacobian = constrained.constraint_jacobian
    constraint_rank = constrained.constraint_rank
    constraint_errors = constrained.constraint_errors
    delassus_matrix = constrained.delassus_matrix
    impact = constrained.impact
    meet_constraints = constrained.meet_constraints

    # -- contact --------------------------------------------------------------------------------------------------

    @property
    def contacts(self) -> tuple[parts.Contact, ...]:
        """What may touch the ground or another link, see ``with_contacts``."""
        return parts.contacts_of(self.contact_parts)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the candidates: spheres and points that may touch something, one row of impulses each."""
        return parts.candidate_names(self.contact_parts)

    with_contacts = contacting.with_contacts
    contact_step = contacting.contact_step
    contact_forces = contacting.contact_forces
    contact_velocities = contacting.contact_velocities
    contact_residual = contacting.contact_residual
    contact_gaps = contacting.contact_gaps
    contact_frames = contacting.contact_frames
    contact_setting = contacting.contact_setting

    # -- the inside of algorithms -----------------------------------------------------------------------------------

    algorithms = inspection.algorithms
    directions = inspection.directions
    filter = inspection.filter
    acceleration_parts = inspection.acceleration_parts
    conjugate_gradient = inspection.conjugate_gradient

    # -- elastic joints, inverse kinematics, files, pictures, pages, equations --------------------------------------

    @property
    def elastic_joints(self) -> tuple[Pair, ...]:
        """The elastic joints: motor and spring of each."""
        return elastic_pairs(self)

    with_elastic_joints = conveniences.with_elastic_joints
    link_side = conveniences.link_side
    inverse_kinematics = conveniences.inverse_kinematics
    in_collision = conveniences.in_collision
    manipulability = conveniences.manipulability
    as_ode = conveniences.as_ode
    save = conveniences.save
    plot = conveniences.plot
    show = conveniences.show
    _repr_html_ = conveniences.notebook_page

    # -- kernels ----------------------------------------------------------------------------------------------------

    kernel = calls.kernel
    kernel_for = calls.kernel_for
    compile = preparation.compile
    base_parameters = calls.base_parameters
