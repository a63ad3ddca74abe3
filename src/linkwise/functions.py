"""What can be computed of a robot: every function of the public surface, with the algorithms that compute it.

A function is a table row: its inputs, the shape of its outputs for one state and, by name, algorithms that take
scalars and give nested lists of scalars. Whether the scalars are numbers, arrays or symbols is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from linkwise.algorithms import (
    boundary_value,
    compound_link,
    conjugate_gradient,
    coriolis,
    derivatives,
    energy,
    factorised,
    gibbs_appell,
    joint_terms,
    kalman,
    kinematics,
    newton_euler,
    regressor,
    velocity_torques,
)
from linkwise.model import Model, Transform
from linkwise.model.mechanism import Mechanism, MovingLink, prepare
from linkwise.model.model import suggest
from linkwise.model.regroup import regrouped
from linkwise.parameters import parameter_sizes, with_symbols
from linkwise.compiler.derivative import jacobian, substituted
from linkwise.compiler.graph import Node
from linkwise.compiler.operations import count
from linkwise.errors import UnknownNameError
from linkwise.scalar import Scalar
from linkwise.spatial import Spatial, zero_spatial, zero_vector

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Setting:
    """What a function is asked of: a robot, and the choices that are settled before any state is known."""

    model: Model
    friction: bool = True
    frame: str | None = None  # for pose, jacobian, velocity and wrench
    wrench: bool = False  # whether an external wrench is an input
    tolerance: float | None = None  # conjugate gradients
    limit: int | None = None
    start: bool = False  # whether a warm start is an input
    dtype: str = "float64"
    base_parameters: bool = False  # whether inertial parameters are regrouped first
    slide: bool = True  # whether origins slide along joint axes, see ``prepare``
    parameters: tuple[str, ...] = ()  # parameters that stay inputs: "payload" or labels
    stand_in: Mechanism | None = None  # takes the place of the links while loops or parameters are traced

    def options(self) -> tuple:
        """The choices alone, as a key."""
        return (self.friction, self.frame, self.wrench, self.tolerance, self.limit, self.start, self.base_parameters, self.parameters)

    def links(self) -> Mechanism:
        if self.stand_in is not None:
            return self.stand_in
        return mechanism_of(self.model, slide=self.slide, base_parameters=self.base_parameters)

    def target(self) -> tuple[int, Transform]:
        return self.model.locate(self.frame)


def mechanism_of(model: Model, *, slide: bool = True, base_parameters: bool = False) -> Mechanism:
    """The prepared robot, made once."""
    known = model.__dict__.setdefault("_mechanisms", {})
    key = (slide, base_parameters)
    if key not in known:
        known[key] = regrouped(mechanism_of(model, slide=slide)) if base_parameters else prepare(model, slide=slide)
    return known[key]


@dataclass(frozen=True)
class Function:
    """One function of the public surface."""

    name: str
    inputs: tuple[str, ...]  # those always given; each has n scalars
    shapes: Callable[[Model], Shapes]
    algorithms: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    summary: str = ""
    cost: tuple[int, int] = (400, 1)  # about a·nᵏ operations
    swept: tuple[str, ...] = ()  # algorithms that only go outward and inward over the links
    regroups: bool = False  # whether regrouped inertial parameters give the same result

    def size(self, n: int) -> int:
        """A rough estimate of the operations for n joints, to decide what is compiled as straight-line code."""
        factor, power = self.cost
        return factor * n**power

    @property
    def default(self) -> str:
        return next(iter(self.algorithms))

    def algorithm(self, name: str | None) -> str:
        """The name of an algorithm, checked; None is the default."""
        if name is None:
            return self.default
        if name not in self.algorithms:
            raise UnknownNameError(
                f"algorithm: {self.name} has no algorithm {name!r}; {suggest(name, self.algorithms)}"
            )
        return name

    def input_sizes(self, setting: Setting) -> dict[str, int]:
        """Name and number of scalars of every input, in the order of the call."""
        n = setting.model.dof
        sizes = dict.fromkeys(self.inputs, n)
        if setting.wrench:
            sizes["wrench"] = 6
        if setting.start:
            sizes["start"] = n
        return sizes | parameter_sizes(setting.model, setting.parameters)

    def evaluate(self, setting: Setting, algorithm: str, **inputs: Sequence[Scalar]) -> dict[str, Any]:
        """The outputs by name, as nested lists of scalars."""
        if setting.parameters:
            values = {name: inputs.pop(name) for name in setting.parameters}
            links = mechanism_of(setting.model, slide=setting.slide)
            chosen = with_symbols(links, setting.model, setting.frame, values, setting.base_parameters)
            setting = replace(setting, stand_in=chosen)
        result = self.algorithms[algorithm](setting, **inputs)
        names = list(self.shapes(setting.model))
        return dict(zip(names, result if len(names) > 1 else (result,), strict=True))


# -- torques ----------------------------------------------------------------------------------------------------------


def _wrenches(setting: Setting, wrench) -> list[Spatial] | None:
    """The wrench as seen by every prepared link; none if it acts on the base."""
    if wrench is None:
        return None
    links = setting.links()
    body, pose = setting.target()
    loads = [zero_spatial() for _ in links]
    if body >= 0:
        loads[body] = kinematics.wrench_on_link(links, wrench, body, pose)
    return loads


def _inverse(method: Callable[..., list[Scalar]]):
    def run(setting: Setting, q, qd, qdd, wrench=None):
        links = setting.links()
        tau = method(links, q, qd, qdd, _wrenches(setting, wrench))
        tau = _sum(links, tau, joint_terms.rotor_torques(links, qdd))
        return _sum(links, tau, joint_terms.friction(links, qd)) if setting.friction else tau

    return run


def _sum(links: Mechanism, a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return links.each(lambda link, x, y: x + y, a, b)


def _difference(links: Mechanism, a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return links.each(lambda link, x, y: x - y, a, b)


def _zeros(links: Mechanism) -> list[Scalar]:
    return [0.0] * len(links)


def _gravity(setting: Setting, q):
    links = setting.links()
    return newton_euler.inverse_dynamics(links, q, _zeros(links), _zeros(links))


def _gravity_compound(setting: Setting, q):
    return compound_link.gravity_torques(setting.links(), q)


def _velocity(setting: Setting, q, qd):
    return velocity_torques.velocity_torques(setting.links(), q, qd)


def _velocity_newton_euler(setting: Setting, q, qd):
    links = setting.links()
    return newton_euler.inverse_dynamics(links, q, qd, _zeros(links), gravity=zero_vector())


def _bias(setting: Setting, q, qd):
    links = setting.links()
    return newton_euler.inverse_dynamics(links, q, qd, _zeros(links))


# -- motion -----------------------------------------------------------------------------------------------------------


def _net(setting: Setting, qd, tau):
    """Torques less friction."""
    if not setting.friction:
        return tau
    links = setting.links()
    return _difference(links, tau, joint_terms.friction(links, qd))


def _forward_kalman(setting: Setting, q, qd, tau, wrench=None):
    return kalman.forward_dynamics(setting.links(), q, qd, _net(setting, qd, tau), _wrenches(setting, wrench))


def _forward_compound(setting: Setting, q, qd, tau, wrench=None):
    links = setting.links()
    M = joint_terms.add_rotor_inertia(links, compound_link.mass_matrix(links, q))
    bias = newton_euler.inverse_dynamics(links, q, qd, _zeros(links), _wrenches(setting, wrench))
    return factorised.solve(links, M, _difference(links, _net(setting, qd, tau), bias))


def _forward_gradient(preconditioned: bool):
    def run(setting: Setting, q, qd, tau, wrench=None, start=None):
        tolerance = setting.tolerance
        if tolerance is None:
            tolerance = conjugate_gradient.DEFAULT_TOLERANCE[setting.dtype]
        if not setting.parameters and always_singular(setting.model) is not None:
            # the iteration would find some solution wherever there is one: as undefined as the others' results
            return [math.nan] * setting.model.dof, math.nan, 0.0
        return conjugate_gradient.forward_dynamics(
            setting.links(),
            q,
            qd,
            _net(setting, qd, tau),
            _wrenches(setting, wrench),
            preconditioned=preconditioned,
            tolerance=tolerance,
            limit=setting.limit,
            start=start,
        )

    return run


def always_singular(model: Model) -> MovingLink | None:
    """A joint that moves no inertia wherever the robot is: one that moves none at a state which is nothing special."""
    return kalman.singular_joint(mechanism_of(model), [0.7 + 0.37 * k for k in range(model.dof)])


# -- matrices ---------------------------------------------------------------------------------------------------------


def _mass(method):
    def run(setting: Setting, q):
        links = setting.links()
        return joint_terms.add_rotor_inertia(links, method(links, q))

    return run


def _mass_by_columns(links: Mechanism, q):
    """n inverse dynamics with unit accelerations, without velocities and gravity."""
    n = len(links)
    columns = [
        newton_euler.inverse_dynamics(
            links, q, _zeros(links), [1.0 if i == j else 0.0 for i in range(n)], gravity=zero_vector()
        )
        for j in range(n)
    ]
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def _coefficients(setting: Setting, q):
    links = setting.links()
    turned, compound = compound_link.compound_links(links, q)
    M = compound_link.inertia_coefficients(links, turned, compound)
    return joint_terms.add_rotor_inertia(links, M), compound_link.gravity_coefficients(links, turned, compound)


def _inverse_mass_compound(setting: Setting, q):
    links = setting.links()
    return factorised.invert(links, joint_terms.add_rotor_inertia(links, compound_link.mass_matrix(links, q)))


# -- derivatives ------------------------------------------------------------------------------------------------------


def _inverse_derivatives(method: Callable[..., list[Scalar]] | None):
    """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ of an algorithm; None takes the analytic recursions alone."""

    def run(setting: Setting, q, qd, qdd):
        links = setting.links()
        by_q, by_qd = _torque_derivatives(links, method, q, qd, qdd)
        if setting.friction:
            by_qd = [
                [entry + links[i].viscous_friction if i == j else entry for j, entry in enumerate(row)]
                for i, row in enumerate(by_qd)
            ]
        return by_q, by_qd, joint_terms.add_rotor_inertia(links, compound_link.mass_matrix(links, q))

    return run


def _torque_derivatives(links: Mechanism, method, q, qd, qdd):
    """By the rigid bodies alone: symbols are differentiated where that takes fewer operations than the recursions."""
    analytic = derivatives.inverse_dynamics_derivatives
    if method is None or not isinstance(q[0], Node):
        return analytic(links, q, qd, qdd)
    graph, n = q[0].graph, len(links)
    # accelerations may themselves depend on q: differentiate with others in their place, then put them back
    still = [graph.input("acceleration held fixed", k) for k in range(n)]
    tau = [graph.lift(t) for t in method(links, q, qd, still)]
    rows = jacobian(tau, [*q, *qd])
    candidates = [([row[:n] for row in rows], [row[n:] for row in rows]), analytic(links, q, qd, still)]
    flat = [[graph.lift(x) for matrix in pair for row in matrix for x in row] for pair in candidates]
    best = min(flat, key=lambda nodes: count(nodes).total)
    values = substituted(best, {node.index: graph.lift(a) for node, a in zip(still, qdd, strict=True)})
    square = [values[k * n : (k + 1) * n] for k in range(2 * n)]
    return square[:n], square[n:]


def _forward_derivatives(method: Callable[..., Any]):
    """∂q̈/∂q = −M⁻¹ ∂τ/∂q, ∂q̈/∂q̇ = −M⁻¹ ∂τ/∂q̇, ∂q̈/∂τ = M⁻¹, at the q̈ of an algorithm."""

    def run(setting: Setting, q, qd, tau):
        links = setting.links()
        qdd = method(setting, q, qd, tau)
        if isinstance(qdd, tuple):  # conjugate gradients also tell their residual
            qdd = qdd[0]
        by_q, by_qd, M = _inverse_derivatives(newton_euler.inverse_dynamics)(setting, q, qd, qdd)
        inverse = factorised.invert(links, M)
        return _minus_product(inverse, by_q), _minus_product(inverse, by_qd), inverse

    return run


def _minus_product(A: list[list[Scalar]], B: list[list[Scalar]]) -> list[list[Scalar]]:
    n = len(A)
    return [[-sum((A[i][k] * B[k][j] for k in range(1, n)), start=A[i][0] * B[0][j]) for j in range(n)] for i in range(n)]


def _vector(name: str):
    return lambda model: {name: (model.dof,)}


def _square(name: str):
    return lambda model: {name: (model.dof, model.dof)}


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function(
            "inverse_dynamics",
            ("q", "qd", "qdd"),
            _vector("tau"),
            {
                "newton_euler": _inverse(newton_euler.inverse_dynamics),
                "boundary_value": _inverse(boundary_value.inverse_dynamics),
                "gibbs_appell": _inverse(gibbs_appell.inverse_dynamics),
                "compound_link": _inverse(compound_link.inverse_dynamics),
            },
            "joint torques for a motion",
            swept=("newton_euler", "boundary_value", "gibbs_appell"),
            regroups=True,
        ),
        Function(
            "forward_dynamics",
            ("q", "qd", "tau"),
            _vector("qdd"),
            {"kalman": _forward_kalman, "compound_link": _forward_compound},
            "joint accelerations for torques",
            (500, 1),
            ("kalman",),
            regroups=True,
        ),
        Function(
            "iterated_forward_dynamics",
            ("q", "qd", "tau"),
            lambda model: {"qdd": (model.dof,), "residual": (), "iterations": ()},
            {
                "conjugate_gradient": _forward_gradient(False),
                "preconditioned_conjugate_gradient": _forward_gradient(True),
            },
            "joint accelerations by conjugate gradients, with the squared relative residual",
            regroups=True,
        ),
        Function(
            "inverse_dynamics_derivatives",
            ("q", "qd", "qdd"),
            lambda model: dict.fromkeys(("dtau_dq", "dtau_dqd", "dtau_dqdd"), (model.dof, model.dof)),
            {
                "newton_euler": _inverse_derivatives(newton_euler.inverse_dynamics),
                "boundary_value": _inverse_derivatives(boundary_value.inverse_dynamics),
                "gibbs_appell": _inverse_derivatives(gibbs_appell.inverse_dynamics),
                "compound_link": _inverse_derivatives(compound_link.inverse_dynamics),
                "recursion": _inverse_derivatives(None),
            },
            "derivatives of the torques by q, q̇ and q̈",
            (110, 2),
            regroups=True,
        ),
        Function(
            "forward_dynamics_derivatives",
            ("q", "qd", "tau"),
            lambda model: dict.fromkeys(("dqdd_dq", "dqdd_dqd", "dqdd_dtau"), (model.dof, model.dof)),
            {
                "kalman": _forward_derivatives(_forward_kalman),
                "compound_link": _forward_derivatives(_forward_compound),
                "conjugate_gradient": _forward_derivatives(_forward_gradient(False)),
                "preconditioned_conjugate_gradient": _forward_derivatives(_forward_gradient(True)),
            },
            "derivatives of the accelerations by q, q̇ and τ",
            (200, 2),
            regroups=True,
        ),
        Function(
            "mass_matrix",
            ("q",),
            _square("mass_matrix"),
            {
                "compound_link": _mass(compound_link.mass_matrix),
                "covariance": _mass(kalman.mass_matrix),
                "newton_euler": _mass(_mass_by_columns),
            },
            "mass matrix, rotor inertias included",
            (30, 2),
            regroups=True,
        ),
        Function(
            "coefficients",
            ("q",),
            lambda model: {"mass_matrix": (model.dof, model.dof), "gravity_torques": (model.dof,)},
            {"compound_link": _coefficients},
            "inertia and gravity coefficients D_ij + I_a and D_i together: Izaguirre's background task",
            (40, 2),
            regroups=True,
        ),
        Function(
            "inverse_mass_matrix",
            ("q",),
            _square("inverse_mass_matrix"),
            {
                "kalman": lambda setting, q: kalman.inverse_mass_matrix(setting.links(), q),
                "compound_link": _inverse_mass_compound,
            },
            "inverse of the mass matrix",
            (60, 2),
            regroups=True,
        ),
        Function(
            "gravity_torques",
            ("q",),
            _vector("tau"),
            {"compound_link": _gravity_compound, "newton_euler": _gravity},
            "torques that hold the robot against gravity",
            swept=("compound_link", "newton_euler"),
            regroups=True,
        ),
        Function(
            "velocity_torques",
            ("q", "qd"),
            _vector("tau"),
            {"newton_euler": _velocity_newton_euler, "velocity_recursion": _velocity},
            "Coriolis and centrifugal torques",
            swept=("newton_euler", "velocity_recursion"),
            regroups=True,
        ),
        Function(
            "bias_torques",
            ("q", "qd"),
            _vector("tau"),
            {"newton_euler": _bias},
            "velocity and gravity torques",
            swept=("newton_euler",),
            regroups=True,
        ),
        Function(
            "coriolis_matrix",
            ("q", "qd"),
            _square("coriolis_matrix"),
            {"christoffel": lambda setting, q, qd: coriolis.coriolis_matrix(setting.links(), q, qd)},
            "Coriolis matrix C with Ṁ − 2C skew",
            (100, 2),
            regroups=True,
        ),
        Function(
            "christoffel",
            ("q",),
            lambda model: {"christoffel": (model.dof, model.dof, model.dof)},
            {"christoffel": lambda setting, q: coriolis.christoffel(setting.links(), q)},
            "Christoffel's symbols D_ijk",
            (60, 3),
            regroups=True,
        ),
        Function(
            "kinetic_energy",
            ("q", "qd"),
            lambda model: {"kinetic_energy": ()},
            {"spatial": lambda setting, q, qd: energy.kinetic_energy(setting.links(), q, qd)},
            "kinetic energy, rotors included",
        ),
        Function(
            "potential_energy",
            ("q",),
            lambda model: {"potential_energy": ()},
            {"spatial": lambda setting, q: energy.potential_energy(setting.links(), q)},
            "potential energy",
        ),
        Function(
            "pose",
            ("q",),
            lambda model: {"pose": (4, 4)},
            {"kinematics": lambda setting, q: kinematics.pose(setting.links(), q, *setting.target())},
            "pose of a frame in the base frame",
        ),
        Function(
            "jacobian",
            ("q",),
            lambda model: {"jacobian": (6, model.dof)},
            {"kinematics": lambda setting, q: kinematics.jacobian(setting.links(), q, *setting.target())},
            "Jacobian of a frame, angular then linear",
        ),
        Function(
            "velocity",
            ("q", "qd"),
            lambda model: {"velocity": (6,)},
            {"kinematics": lambda setting, q, qd: kinematics.velocity(setting.links(), q, qd, *setting.target())},
            "velocity of a frame, angular then linear",
        ),
        Function(
            "regressor",
            ("q", "qd", "qdd"),
            lambda model: {"regressor": (model.dof, len(model.parameter_labels))},
            {
                "newton_euler": lambda setting, q, qd, qdd: regressor.regressor(
                    setting.links(), q, qd, qdd, setting.model.asymmetric_friction
                )
            },
            "torques per parameter",
            (200, 2),
        ),
    )
}


def function_named(name: str) -> Function:
    """The function of this name; an unknown name lists the valid ones."""
    if name not in FUNCTIONS:
        raise UnknownNameError(f"no function {name!r}; {suggest(name, FUNCTIONS)}")
    return FUNCTIONS[name]
