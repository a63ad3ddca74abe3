"""What can be computed of a robot: every function of the public surface, with the algorithms that compute it.

A function is a table row: its inputs, the shape of its outputs for one state and the names of its algorithms. How they
compute it is in ``evaluation``, which is imported when something is traced: a kernel from the cache needs only
this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.algorithm_names import usual_name
from linkwise.functions.contact_functions import (
    CONTACT_FUNCTIONS,
    CONTACT_SHAPES,
    DEFAULT_STEP,
    contact_input_sizes,
    contact_operations,
)
from linkwise.functions.sizes import ONE_PASS, SOLVED_ROWS, Cost, extent, solved_rows
from linkwise.model import Model, Transform
from linkwise.model.constraints import target_size

if TYPE_CHECKING:
    from linkwise.algorithms.constrained.constraints import Held
    from linkwise.model.mechanism import Mechanism

POSITIONS = ("q", "other")  # inputs with the position numbers of every joint
COORDINATES = (*POSITIONS, "qd", "qdd", "tau", "start", "step")  # inputs with one quantity per joint

ITERATED = "iterated_forward_dynamics"
"""The function that ``forward_dynamics`` takes for conjugate gradients."""
MOTOR_TORQUES = "motor_torques"
"""The function that ``inverse_dynamics`` takes for robots with joints without a motor."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Setting:
    """What a function is computed for: a robot, and the options that do not depend on the state."""

    model: Model
    friction: bool = True
    frame: str | None = None  # for pose, jacobian, velocity and wrench
    wrench: bool = False  # whether an external wrench is an input
    tolerance: float | None = None  # conjugate gradients
    limit: int | None = None
    start: bool = False  # whether a warm start is an input
    dtype: str = "float64"
    base_parameters: bool = False  # whether inertial parameters are regrouped first
    stabilization: float | None = None  # rate at which constraint errors decay [1/s]
    slide: bool = True  # whether origins slide along joint axes, see ``prepare``
    parameters: tuple[str, ...] = ()  # parameters that stay inputs: "payload" or labels
    targets: Sequence[Any] | None = None  # of frames that are held to the world, where they are inputs
    step: float = DEFAULT_STEP  # of steps with contact [s], where it is no input
    contact_inputs: tuple[str, ...] = ()  # those of ``CONTACT_INPUTS`` that are inputs
    accuracy: float | None = None  # of contacts: largest residual; None is the default of ``contact.effort``
    smoothing: float = 0.0  # of derivatives of contacts [m/s], see ``contact.derivatives``
    stand_in: Mechanism | None = None  # takes the place of the links while loops or parameters are traced

    def options(self) -> tuple[Any, ...]:
        """The choices alone, as a key."""
        iteration = (self.tolerance, self.limit, self.start)
        return (
            self.friction,
            self.frame,
            self.wrench,
            iteration,
            self.base_parameters,
            self.slide,
            self.parameters,
            self.stabilization,
            (self.step, self.contact_inputs, self.accuracy, self.smoothing),
        )

    def links(self) -> Mechanism:
        if self.stand_in is not None:
            return self.stand_in
        return mechanism_of(self.model, slide=self.slide, base_parameters=self.base_parameters)

    def held(self) -> list[Held]:
        """The constraints on the links."""
        from linkwise.algorithms.constrained.constraints import prepared

        return prepared(self.model, self.targets)

    def target(self) -> tuple[int, Transform]:
        return self.model.locate(self.frame)


def mechanism_of(model: Model, *, slide: bool = True, base_parameters: bool = False) -> Mechanism:
    """The prepared robot, made once."""
    known = model.__dict__.setdefault("_mechanisms", {})
    key = (slide, base_parameters)
    if key not in known:
        from linkwise.model.mechanism import prepare
        from linkwise.model.regroup import regrouped

        known[key] = (
            regrouped(mechanism_of(model, slide=slide)) if base_parameters else prepare(model, slide=slide)
        )
    return known[key]


@dataclass(frozen=True)
class Function:
    """One function of the public surface."""

    name: str
    inputs: tuple[str, ...]  # those always given; each has n scalars
    shapes: Callable[[Model], Shapes]
    algorithms: tuple[str, ...]  # the default first
    summary: str = ""
    cost: Cost = ONE_PASS
    swept: tuple[str, ...] = ()  # algorithms that only go outward and inward over the links
    scanned: tuple[str, ...] = ()  # further algorithms, for some robots, that scan the links; always loops
    reduces: bool = True  # whether results of coupled robots are Sᵀ times those of all axes, see ``coupling``
    regroups: bool = False  # whether regrouped inertial parameters give the same result
    looped: tuple[str, ...] = ()  # algorithms that are loops over joints for large robots, see ``looped``
    derivative_of: str | None = None  # outputs are the derivatives of this function by each of its inputs

    def size(self, model: Model) -> int:
        """A rough estimate of the operations, to decide what is compiled as straight-line code."""
        links, pairs, dense = extent(model)
        if self.name in SOLVED_ROWS and (solved := solved_rows(model, self.name)) is not None:
            return (600 + 40 * solved) * links + solved * solved * (model.dof + 3 * solved)
        a, b, c, d = self.cost
        touching = contact_operations(self.name, model)
        return a * links + b * pairs + c * dense + d * links * pairs + touching

    @property
    def default(self) -> str:
        return self.algorithms[0]

    def algorithm(self, name: str | None) -> str:
        """The name of an algorithm, checked; None is the default."""
        if name is None:
            return self.default
        if name not in (*self.algorithms, *self.scanned):
            raise UnknownNameError(
                f"algorithm: {self.name} has no algorithm {name!r}; {usual_name(name, self.algorithms)}"
            )
        return name

    def input_sizes(self, setting: Setting) -> dict[str, int]:
        """Name and number of scalars of every input, in the order of the call."""
        n = setting.model.dof
        sizes = {name: setting.model.nq if name in POSITIONS else n for name in self.inputs}
        if "restitution" in sizes:
            sizes["restitution"] = 1
        if setting.wrench:
            sizes["wrench"] = 6
        if setting.start:
            sizes["start"] = n
        if setting.contact_inputs:
            sizes |= contact_input_sizes(setting.model, setting.contact_inputs)
        if setting.parameters:
            from linkwise.functions.parameters import parameter_sizes

            sizes |= parameter_sizes(setting.model, setting.parameters)
        return sizes


def reads_targets(function: Function, setting: Setting) -> bool:
    """Whether the results depend on where in the world frames are held."""
    held = any(target_size(constraint) for constraint in setting.model.constraints)
    reads = function.name in ("constraint_errors", *CONTACT_FUNCTIONS[:4])
    return held and (reads or setting.stabilization is not None)


def labels_of(model: Model, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Names of the numbers of those quantities that have one per coordinate."""
    known = model.__dict__.get("_labels")
    if known is None:
        from linkwise.model.coordinates import coordinate_names

        velocities, positions = coordinate_names(model)
        known = model.__dict__["_labels"] = (tuple(velocities), tuple(positions))
    return {name: known[name in POSITIONS] for name in names if name in COORDINATES}


def _vector(name: str) -> Callable[[Model], Shapes]:
    return lambda model: {name: (model.dof,)}


def _square(name: str) -> Callable[[Model], Shapes]:
    return lambda model: {name: (model.dof, model.dof)}


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function(
            "inverse_dynamics",
            ("q", "qd", "qdd"),
            _vector("tau"),
            ("newton_euler", "boundary_value", "gibbs_appell", "compound_link"),
            "joint torques for a motion",
            swept=("newton_euler", "boundary_value", "gibbs_appell"),
            regroups=True,
        ),
        Function(
            MOTOR_TORQUES,
            ("q", "qd", "qdd"),
            lambda model: {"tau": (model.dof,), "unmade": (), "missing": (model.dof,)},
            ("newton_euler", "boundary_value", "gibbs_appell", "compound_link"),
            "torques of the motors for a motion, the largest part of a torque that they cannot make, and what joints "
            "without a motor miss",
            regroups=True,
            reduces=False,
        ),
        Function(
            "forward_dynamics",
            ("q", "qd", "tau"),
            _vector("qdd"),
            ("kalman", "compound_link"),
            "joint accelerations for torques",
            Cost(500),
            ("kalman",),
            ("parallel_scan",),
            regroups=True,
            reduces=False,
        ),
        Function(
            ITERATED,
            ("q", "qd", "tau"),
            lambda model: {"qdd": (model.dof,), "error": (), "iterations": ()},
            ("conjugate_gradient", "preconditioned_conjugate_gradient"),
            "joint accelerations by conjugate gradients, with their estimated relative error",
            regroups=True,
            reduces=False,
        ),
        Function(
            "inverse_dynamics_derivatives",
            ("q", "qd", "qdd"),
            lambda model: dict.fromkeys(("dtau_dq", "dtau_dqd", "dtau_dqdd"), (model.dof, model.dof)),
            ("newton_euler", "boundary_value", "gibbs_appell", "compound_link", "recursion"),
            "derivatives of the torques by q, q̇ and q̈",
            Cost(pair=110),
            looped=("newton_euler", "recursion"),
            regroups=True,
            derivative_of="inverse_dynamics",
        ),
        Function(
            "forward_dynamics_derivatives",
            ("q", "qd", "tau"),
            lambda model: dict.fromkeys(("dqdd_dq", "dqdd_dqd", "dqdd_dtau"), (model.dof, model.dof)),
            ("compound_link", "kalman", "conjugate_gradient", "preconditioned_conjugate_gradient"),
            "derivatives of the accelerations by q, q̇ and τ",
            Cost(pair=110, dense=70),
            regroups=True,
            derivative_of="forward_dynamics",
            looped=("compound_link",),
            reduces=False,
        ),
        Function(
            "mass_matrix",
            ("q",),
            _square("mass_matrix"),
            ("compound_link", "covariance", "newton_euler"),
            "mass matrix, rotor inertias included",
            Cost(pair=17),
            looped=("compound_link",),
            regroups=True,
        ),
        Function(
            "coefficients",
            ("q",),
            lambda model: {"mass_matrix": (model.dof, model.dof), "gravity_torques": (model.dof,)},
            ("compound_link",),
            "inertia and gravity coefficients D_ij + I_a and D_i together: Izaguirre's background task",
            Cost(pair=25),
            regroups=True,
            looped=("compound_link",),
        ),
        Function(
            "inverse_mass_matrix",
            ("q",),
            _square("inverse_mass_matrix"),
            ("kalman", "compound_link"),
            "inverse of the mass matrix",
            Cost(pair=45, dense=12),
            looped=("compound_link",),
            regroups=True,
            reduces=False,
        ),
        Function(
            "gravity_torques",
            ("q",),
            _vector("tau"),
            ("compound_link", "newton_euler"),
            "gravity torques",
            swept=("compound_link", "newton_euler"),
            regroups=True,
        ),
        Function(
            "velocity_torques",
            ("q", "qd"),
            _vector("tau"),
            ("newton_euler", "velocity_recursion"),
            "Coriolis and centrifugal torques",
            swept=("newton_euler", "velocity_recursion"),
            regroups=True,
        ),
        Function(
            "bias_torques",
            ("q", "qd"),
            _vector("tau"),
            ("newton_euler",),
            "velocity and gravity torques",
            swept=("newton_euler",),
            regroups=True,
        ),
        Function(
            "coriolis_matrix",
            ("q", "qd"),
            _square("coriolis_matrix"),
            ("christoffel",),
            "Coriolis matrix C with Ṁ − 2C skew",
            Cost(pair=80),
            regroups=True,
            looped=("christoffel",),
        ),
        Function(
            "christoffel",
            ("q",),
            lambda model: {"christoffel": (model.dof, model.dof, model.dof)},
            ("christoffel",),
            "Christoffel's symbols D_ijk",
            Cost(triple=10),
            looped=("christoffel",),
            regroups=True,
        ),
        Function(
            "kinetic_energy",
            ("q", "qd"),
            lambda model: {"kinetic_energy": ()},
            ("spatial",),
            "kinetic energy, rotors included",
        ),
        Function(
            "potential_energy",
            ("q",),
            lambda model: {"potential_energy": ()},
            ("spatial",),
            "potential energy",
        ),
        Function(
            "pose",
            ("q",),
            lambda model: {"pose": (4, 4)},
            ("kinematics",),
            "pose of a frame in the base frame",
        ),
        Function(
            "jacobian",
            ("q",),
            lambda model: {"jacobian": (6, model.dof)},
            ("kinematics",),
            "Jacobian of a frame, angular then linear",
        ),
        Function(
            "velocity",
            ("q", "qd"),
            lambda model: {"velocity": (6,)},
            ("kinematics",),
            "velocity of a frame, angular then linear",
        ),
        Function(
            "jacobian_rate",
            ("q", "qd"),
            lambda model: {"jacobian_rate": (6,)},
            ("kinematics",),
            "J̇ q̇ of a frame: its acceleration at zero joint acceleration",
        ),
        Function(
            "center_of_mass",
            ("q",),
            lambda model: {"center_of_mass": (3,)},
            ("centroidal",),
            "centre of mass of all moving links",
        ),
        Function(
            "com_jacobian",
            ("q",),
            lambda model: {"com_jacobian": (3, model.dof)},
            ("centroidal",),
            "Jacobian of the centre of mass",
        ),
        Function(
            "centroidal_matrix",
            ("q",),
            lambda model: {"centroidal_matrix": (6, model.dof)},
            ("centroidal",),
            "momentum about the centre of mass per joint velocity, angular then linear",
        ),
        Function(
            "centroidal_momentum",
            ("q", "qd"),
            lambda model: {"centroidal_momentum": (6,)},
            ("centroidal",),
            "momentum about the centre of mass, angular then linear",
        ),
        Function(
            "centroidal_bias",
            ("q", "qd"),
            lambda model: {"centroidal_bias": (6,)},
            ("centroidal",),
            "rate of the centroidal momentum at zero joint acceleration",
        ),
        Function(
            "task_inertia",
            ("q",),
            lambda model: {"task_inertia": (6, 6)},
            ("kalman",),
            "inertia that a wrench at a frame has to move, (J M⁻¹ Jᵀ)⁻¹",
            Cost(600),
            reduces=False,
        ),
        Function(
            "consistent_inverse",
            ("q",),
            lambda model: {"consistent_inverse": (model.dof, 6)},
            ("kalman",),
            "dynamically consistent inverse of the Jacobian",
            Cost(pair=40, dense=40),
            reduces=False,
        ),
        Function(
            "integrate",
            ("q", "step"),
            lambda model: {"q": (model.nq,)},
            ("exponential",),
            "position after a step along velocity coordinates",
            Cost(40),
            reduces=False,
        ),
        Function(
            "difference",
            ("q", "other"),
            lambda model: {"step": (model.dof,)},
            ("logarithm",),
            "step along velocity coordinates from one position to another",
            Cost(40),
            reduces=False,
        ),
        Function(
            "normalize",
            ("q",),
            lambda model: {"q": (model.nq,)},
            ("length",),
            "the same position with quaternions of length one",
            Cost(10),
            reduces=False,
        ),
        Function(
            "constraint_forces",
            ("q", "qd", "tau"),
            lambda model: {"forces": (model.constraint_rows,)},
            ("kalman", "compound_link", "filter"),
            "forces along the directions that constraints hold",
            Cost(900),
            reduces=False,
            regroups=True,
        ),
        Function(
            "constrained_forward_dynamics",
            ("q", "qd", "tau"),
            lambda model: {"qdd": (model.dof,), "unmet": ()},
            ("kalman", "compound_link", "filter"),
            "joint accelerations under constraints, and the largest part of a constraint that is not met",
            Cost(900),
            reduces=False,
            regroups=True,
        ),
        Function(
            "constraint_residuals",
            ("q", "qd", "tau"),
            lambda model: {"residuals": (model.constraint_rows,), "scales": (model.constraint_rows,)},
            ("kalman",),
            "what is left of J q̈ + γ, beside the size of what adds up to it",
            Cost(900),
            reduces=False,
            regroups=True,
        ),
        Function(
            "constraint_rank",
            ("q",),
            lambda model: {"rank": (), "accuracy": ()},
            ("kalman",),
            "independent directions that constraints hold, and the estimated relative error of accelerations",
            Cost(pair=40, dense=40),
            reduces=False,
            regroups=True,
        ),
        Function(
            "constraint_jacobian",
            ("q",),
            lambda model: {"jacobian": (model.constraint_rows, model.dof)},
            ("kinematics",),
            "Jacobian of the directions that constraints hold, in base axes",
            reduces=False,
        ),
        Function(
            "constraint_errors",
            ("q",),
            lambda model: {"errors": (model.constraint_rows,)},
            ("kinematics",),
            "how far constraints are from being met",
            reduces=False,
        ),
        Function(
            "delassus_matrix",
            ("q",),
            lambda model: {"delassus_matrix": (model.constraint_rows, model.constraint_rows)},
            ("kalman", "compound_link"),
            "J M⁻¹ Jᵀ of the constraints",
            Cost(pair=40, dense=40),
            reduces=False,
            regroups=True,
        ),
        Function(
            "impact",
            ("q", "qd", "restitution"),
            _vector("qd"),
            ("kalman",),
            "velocities after an impact that the constraints take",
            Cost(pair=40, dense=40),
            reduces=False,
            regroups=True,
        ),
        *(
            Function(
                name,
                ("q",) if name in ("contact_gaps", "contact_frames") else ("q", "qd", "tau"),
                *(shapes, ("compound_link",), summary, Cost(900)),
                reduces=False,
                regroups=True,
            )
            for name, (shapes, summary) in CONTACT_SHAPES.items()
        ),
        Function(
            "regressor",
            ("q", "qd", "qdd"),
            lambda model: {"regressor": (model.dof, len(model.parameter_labels))},
            ("newton_euler",),
            "torques per parameter",
            Cost(pair=90),
            looped=("newton_euler",),
        ),
    )
}


def function_named(name: str) -> Function:
    """The function of this name; an unknown name lists the valid ones."""
    if name not in FUNCTIONS:
        raise UnknownNameError(f"no function {name!r}; {suggest(name, FUNCTIONS)}")
    return FUNCTIONS[name]
