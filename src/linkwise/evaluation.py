"""How every function of the table is computed: which algorithm. What joints add is in ``algorithms.equation``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from linkwise import contact_evaluation, joint_laws
from linkwise.algorithms import (
    boundary_value,
    centroidal,
    compound_link,
    conjugate_gradient,
    constraint_filter,
    constraints,
    coriolis,
    coupling,
    dense,
    derivatives,
    energy,
    equation,
    factorised,
    gibbs_appell,
    joint_terms,
    kalman,
    kinematics,
    manifold,
    newton_euler,
    parallel_scan,
    regressor,
    velocity_torques,
)
from linkwise.algorithms.singularity import may_be_singular
from linkwise.compiler.derivative import forward, reverse, substituted
from linkwise.compiler.graph import Node
from linkwise.compiler.operations import total
from linkwise.errors import ModelError
from linkwise.functions import COORDINATES, POSITIONS, Function, Setting, mechanism_of
from linkwise.model import Model
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, flat
from linkwise.parameters import with_symbols
from linkwise.scalar import Scalar, all_of, where
from linkwise.spatial import Spatial, zero_spatial, zero_vector

# -- torques ----------------------------------------------------------------------------------------------------------


def _wrenches(setting: Setting, wrench) -> list[Spatial] | None:
    """The wrench on every prepared link; none if it acts on the base."""
    if wrench is None:
        return None
    links = setting.links()
    body, pose = setting.target()
    loads = [zero_spatial() for _ in links]
    if body >= 0:
        loads[body] = kinematics.wrench_on_link(links, wrench, body, pose)
    return loads


def _inverse(method: equation.Torques):
    def run(setting: Setting, q, qd, qdd, wrench=None):
        loads = _wrenches(setting, wrench)
        return equation.inverse_dynamics(
            setting.links(), q, qd, qdd, loads, friction=setting.friction, method=method
        )

    return run


def _zeros(links: Mechanism) -> list[JointValue]:
    return links.grouped([0.0] * links.dof)


def _gravity(setting: Setting, q):
    links = setting.links()
    return equation.bias_torques(links, q, _zeros(links))


def _gravity_compound(setting: Setting, q):
    return equation.gravity_torques(setting.links(), q)


def _velocity(setting: Setting, q, qd):
    return equation.velocity_torques(setting.links(), q, qd, velocity_torques.velocity_torques)


def _velocity_newton_euler(setting: Setting, q, qd):
    return equation.velocity_torques(setting.links(), q, qd)


def _bias(setting: Setting, q, qd):
    return equation.bias_torques(setting.links(), q, qd)


# -- motion -----------------------------------------------------------------------------------------------------------


def _net(setting: Setting, q, qd, tau):
    """What is left of the torques for the rigid bodies."""
    return equation.torques_on_bodies(setting.links(), q, qd, tau, friction=setting.friction)


def _forward_kalman(setting: Setting, q, qd, tau, wrench=None):
    if setting.model.constraints:
        return _constrained(setting, q, qd, tau, wrench)[0]
    return _free_kalman(setting, q, qd, tau, wrench)


def _free_kalman(setting: Setting, q, qd, tau, wrench=None):
    links, net = setting.links(), _net(setting, q, qd, tau)
    if links.coupled and may_be_singular(links):
        # a follower without inertia of its own is moved by its leader: only the coupled mass matrix shows whether it
        # is singular
        return _free_compound(setting, q, qd, tau, wrench)
    qdd = kalman.forward_dynamics(links, q, qd, net, _wrenches(setting, wrench))
    if not links.coupled:
        return qdd
    return coupling.in_step(links, kalman.inverse_mass_matrix(links, q), flat(qdd))


def _forward_scan(setting: Setting, q, qd, tau, wrench=None):
    links, net = setting.links(), _net(setting, q, qd, tau)
    return parallel_scan.forward_dynamics(links, q, qd, net, _wrenches(setting, wrench))


def _forward_compound(setting: Setting, q, qd, tau, wrench=None):
    if setting.model.constraints:
        return _constrained_by_penalty(setting, q, qd, tau, wrench)[0]
    return _free_compound(setting, q, qd, tau, wrench)


def _free_compound(setting: Setting, q, qd, tau, wrench=None):
    links = setting.links()
    M = equation.mass_matrix(links, q)
    bias = newton_euler.inverse_dynamics(links, q, qd, _zeros(links), _wrenches(setting, wrench))
    right = flat(joint_terms.subtracted(links, _net(setting, q, qd, tau), bias))
    return coupling.solve_reduced(links, M, right) if links.coupled else factorised.solve(links, M, right)


# -- constraints ------------------------------------------------------------------------------------------------------


def _rows(setting: Setting, q):
    """(constraints on prepared links, their Jacobian)."""
    held = constraints.prepared(setting.model)
    return held, constraints.jacobian(setting.links(), q, held)


def _constrained(setting: Setting, q, qd, tau, wrench=None):
    """(q̈, λ, J, what J q̈ must be), by the Delassus matrix."""
    links = setting.links()
    held, J = _rows(setting, q)
    wanted = constraints.required(links, q, qd, held, J, setting.stabilization)
    free = flat(_free_kalman(setting, q, qd, tau, wrench))
    soft = constraints.compliances(held)
    qdd, forces = constraints.by_delassus(J, _inverse_mass_kalman(setting, q), free, wanted, soft)
    return qdd, forces, J, constraints.given_way(wanted, soft, forces)


def _constrained_by_penalty(setting: Setting, q, qd, tau, wrench=None):
    """The same by the mass matrix with a penalty."""
    links = setting.links()
    held, J = _rows(setting, q)
    wanted = constraints.required(links, q, qd, held, J, setting.stabilization)
    bias = newton_euler.inverse_dynamics(links, q, qd, _zeros(links), _wrenches(setting, wrench))
    net = flat(joint_terms.subtracted(links, _net(setting, q, qd, tau), bias))
    M = coupling.reduced(links, equation.mass_matrix(links, q), (True, True))
    soft = constraints.compliances(held)
    qdd, forces = constraints.by_penalty(J, M, coupling.reduced(links, net, (True,)), wanted, soft)
    return qdd, forces, J, constraints.given_way(wanted, soft, forces)


def _filtered(setting: Setting, q, qd, tau, wrench=None):
    """(q̈, λ, residuals, sizes) with constraints as measurements of the filter."""
    links, held = setting.links(), constraints.prepared(setting.model)
    if (reason := constraint_filter.applies(links, held)) is not None:
        raise ModelError(
            f"{setting.model.name}: algorithm='filter' holds links to the world, but {reason}; "
            "use algorithm='kalman' or 'compound_link'"
        )
    net, loads = _net(setting, q, qd, tau), _wrenches(setting, wrench)
    return constraint_filter.forward_dynamics(links, q, qd, net, held, setting.stabilization, loads)


def _constraint_residuals(setting: Setting, q, qd, tau, wrench=None):
    """(J q̈ + γ, the sum of the magnitudes of its terms), row by row."""
    qdd, _, J, wanted = _constrained(setting, q, qd, tau, wrench)
    return constraints.left_over(qdd, J, wanted)


def _with_unmet(solve: Callable[..., tuple]):
    """(q̈, the largest part of a row that is not met)."""

    def run(setting: Setting, q, qd, tau, wrench=None):
        qdd, _, J, wanted = solve(setting, q, qd, tau, wrench)
        return qdd, constraints.largest_part(*constraints.left_over(qdd, J, wanted))

    return run


def _filtered_with_unmet(setting: Setting, q, qd, tau, wrench=None):
    qdd, _, residuals, sizes = _filtered(setting, q, qd, tau, wrench)
    return qdd, constraints.largest_part(residuals, sizes)


def _delassus(inverse: Callable[..., list[list[Scalar]]]):
    def run(setting: Setting, q):
        _, J = _rows(setting, q)
        return dense.symmetric_product(dense.product(J, inverse(setting, q)), J)

    return run


def _impact(setting: Setting, q, qd, restitution):
    _, J = _rows(setting, q)
    rates = coupling.leaders(setting.links(), qd)
    return constraints.after_impact(J, _inverse_mass_kalman(setting, q), rates, restitution[0])


def _under_constraints(method: equation.Torques):
    """Inverse dynamics of a robot that is held: the smallest torques, see ``constraints.least_torques``."""

    def run(setting: Setting, q, qd, qdd, wrench=None):
        tau = _inverse(method)(setting, q, qd, qdd, wrench)
        if not setting.model.constraints:
            return tau
        links = setting.links()
        if setting.friction:
            joint_terms.check_no_load_friction(links)  # what constraints carry is not known before
        _, J = _rows(setting, q)
        passive, joints = setting.model.passive, setting.model.coordinate_joints
        motors = [joint.name not in passive for joint in joints for _ in range(joint.dof)]
        needed = coupling.reduced(links, flat(tau), (True,))
        least, _ = constraints.least_torques(J, needed, motors)
        # the table applies Sᵀ once more: put the torques on the leaders' own axes
        return coupling.expanded(links, least, forces=True)

    return run


# -- iterations -------------------------------------------------------------------------------------------------------


def _forward_gradient(preconditioned: bool):
    def run(setting: Setting, q, qd, tau, wrench=None, start=None):
        if setting.model.constraints:
            raise ModelError(
                f"{setting.model.name}: conjugate gradients do not support constraints; "
                "use algorithm='kalman' or 'compound_link'"
            )
        links = setting.links()
        qdd, error, iterations = conjugate_gradient.forward_dynamics(
            links,
            q,
            qd,
            _net(setting, q, qd, tau),
            _wrenches(setting, wrench),
            preconditioned=preconditioned,
            tolerance=setting.tolerance,
            limit=setting.limit,
            start=None if start is None else coupling.leaders(links, start),
            dtype=setting.dtype,
        )
        if may_be_singular(links):
            # where there are many solutions the iteration finds one: as undefined as the results of other methods
            if links.coupled:
                solved = flat(_free_compound(setting, q, qd, tau, wrench))
                regular = functools.reduce(all_of, (x <= math.inf for x in solved))
            else:
                regular = kalman.is_regular(links, q)
            return [where(regular, x, math.nan) for x in qdd], where(regular, error, math.nan), iterations
        return qdd, error, iterations

    return run


# -- matrices ---------------------------------------------------------------------------------------------------------


def _mass(method):
    return lambda setting, q: equation.mass_matrix(setting.links(), q, method)


def _mass_by_columns(links: Mechanism, q):
    """n inverse dynamics with unit accelerations, without velocities and gravity."""
    n = links.dof
    unit = [[1.0 if i == j else 0.0 for i in range(n)] for j in range(n)]
    columns = [
        flat(
            newton_euler.inverse_dynamics(links, q, _zeros(links), links.grouped(row), gravity=zero_vector())
        )
        for row in unit
    ]
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def _inverse_mass_compound(setting: Setting, q):
    links = setting.links()
    M = equation.mass_matrix(links, q)
    return coupling.invert_reduced(links, M) if links.coupled else factorised.invert(links, M)


def _inverse_mass_kalman(setting: Setting, q):
    links = setting.links()
    if links.coupled and may_be_singular(links):
        return _inverse_mass_compound(setting, q)
    inverse = kalman.inverse_mass_matrix(links, q)
    return coupling.inverse_in_step(links, inverse) if links.coupled else inverse


def _of_leaders(setting: Setting, method: Callable[..., Any], *values):
    """One quantity for each link that has coordinates of its own."""
    links = setting.links()
    return [x for link, x in zip(links, links.each(method, *values), strict=True) if link.follows is None]


def _task_inertia(setting: Setting, q):
    links = setting.links()
    if not links.coupled:
        return centroidal.task_inertia(links, q, *setting.target())
    return dense.inverted(_coupled_mobility(setting, q)[2])


def _consistent_inverse(setting: Setting, q):
    links = setting.links()
    if not links.coupled:
        return centroidal.consistent_inverse(links, q, *setting.target())
    inverse, J, mobility = _coupled_mobility(setting, q)
    return dense.product(dense.product(inverse, dense.transposed(J)), dense.inverted(mobility))


def _coupled_mobility(setting: Setting, q):
    """(M⁻¹, J, J M⁻¹ Jᵀ) of a robot with followers."""
    links = setting.links()
    J = coupling.reduced(links, kinematics.jacobian(links, q, *setting.target()), (False, True))
    inverse = _inverse_mass_kalman(setting, q)
    return inverse, J, dense.product(J, dense.product(inverse, dense.transposed(J)))


# -- derivatives ------------------------------------------------------------------------------------------------------


def _inverse_derivatives(method: equation.Torques | None):
    """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ of an algorithm; None takes the analytic recursions alone."""

    def run(setting: Setting, q, qd, qdd):
        links = setting.links()
        if setting.model.constraints or _rubs_with_load(setting):
            least = _under_constraints(method or newton_euler.inverse_dynamics)
            return _differentiated(setting, least, q, qd, qdd)
        by_q, by_qd, M = _torque_derivatives(links, method, q, qd, qdd)
        by_q = joint_terms.add_derivatives_by_q(links, by_q, q, qd, friction=setting.friction)
        by_qd = joint_terms.add_derivatives_by_qd(links, by_qd, q, qd, friction=setting.friction)
        return by_q, by_qd, joint_terms.add_rotor_inertia(links, M)

    return run


def _torque_derivatives(links: Mechanism, method, q, qd, qdd) -> tuple[Any, Any, Any]:
    """(∂τ/∂q, ∂τ/∂q̇, M) of the rigid bodies alone: of several ways the one that takes the fewest operations."""
    analytic = derivatives.inverse_dynamics_derivatives
    M = compound_link.mass_matrix(links, q)
    positions, rates = flat(q), flat(qd)
    if method is None or not positions or not isinstance(positions[0], Node):
        return *analytic(links, q, qd, qdd), M
    graph, n = positions[0].graph, links.dof
    # accelerations may themselves depend on q: differentiate with others in their place, then put them back
    still = [graph.input("acceleration held fixed", k) for k in range(n)]
    fixed = links.grouped(still)
    tau = [graph.lift(t) for t in flat(method(links, q, qd, fixed))]

    def differentiated(
        mode: Callable[..., list[list[Node]]], *by: Sequence[Scalar]
    ) -> list[list[list[Scalar]]]:
        rows = mode(tau, [symbol for group in by for symbol in group])
        starts = [sum(map(len, by[:k])) for k in range(len(by))]
        parts: list[Any] = [
            [row[at : at + len(group)] for row in rows] for at, group in zip(starts, by, strict=True)
        ]
        return [manifold.by_velocities(links, q, parts[0]), *parts[1:]]

    candidates = [[*analytic(links, q, qd, fixed), M]]
    if not links.coupled:  # else positions are no symbols of their own
        # Reverse mode computes M in the same pass; forward mode would need a pass over the whole program for it.
        candidates = [
            [*differentiated(forward, positions, rates), M],
            differentiated(reverse, positions, rates, still),
            *candidates,
        ]
    entries = [[graph.lift(x) for matrix in each for row in matrix for x in row] for each in candidates]
    best = min(entries, key=total)
    values = substituted(best, {node.index: graph.lift(a) for node, a in zip(still, flat(qdd), strict=True)})
    rows = [values[k * n : (k + 1) * n] for k in range(3 * n)]
    return rows[:n], rows[n : 2 * n], rows[2 * n :]


def _forward_derivatives(method: Callable[..., Any]):
    """∂q̈/∂q = −M⁻¹ ∂τ/∂q, ∂q̈/∂q̇ = −M⁻¹ ∂τ/∂q̇, ∂q̈/∂τ = M⁻¹, at the q̈ of an algorithm."""

    def run(setting: Setting, q, qd, tau):
        links = setting.links()
        if setting.model.constraints or _rubs_with_load(setting):
            return _differentiated(setting, method, q, qd, tau)
        qdd = method(setting, q, qd, tau)
        if isinstance(qdd, tuple):  # conjugate gradients also give their error
            qdd = qdd[0]
        qdd = coupling.expanded(links, flat(qdd))
        matrices = _inverse_derivatives(newton_euler.inverse_dynamics)(setting, q, qd, qdd)
        by_q, by_qd, M = (coupling.reduced(links, matrix, (True, True)) for matrix in matrices)
        inverse = dense.inverted(M) if links.coupled else factorised.invert(links, M)
        return _minus_product(inverse, by_q), _minus_product(inverse, by_qd), inverse

    return run


def _rubs_with_load(setting: Setting) -> bool:
    return setting.friction and joint_terms.has_load_friction(setting.links())


def _christoffel(setting: Setting, q):
    links = setting.links()
    if any(link.free for link in links):
        raise ModelError(
            f"{setting.model.name}: Christoffel's symbols do not exist for ball and floating joints, whose angular "
            "rates are the rates of no coordinates; use coriolis_matrix"
        )
    return coriolis.christoffel(links, q)


def _differentiated(setting: Setting, method: Callable[..., Any], q, qd, given):
    """Derivatives of a function under constraints, or with load friction, by q (along the velocities), q̇ and its third
    argument."""
    links = setting.links()
    by = [flat(q), flat(qd), flat(given)]
    if links.coupled or not by[0] or not isinstance(by[0][0], Node):
        raise ModelError(
            f"{setting.model.name}: derivatives under constraints or with load friction are for robots without "
            "followers that are small enough to be written out"
        )
    graph = by[0][0].graph
    results = [graph.lift(x) for x in flat(method(setting, q, qd, given))]
    symbols: list[Any] = [symbol for group in by for symbol in group]
    rows = reverse(results, symbols)
    n, nq = len(by[1]), len(by[0])
    by_q = manifold.by_velocities(links, q, [list(row[:nq]) for row in rows])
    return by_q, [list(row[nq : nq + n]) for row in rows], [list(row[nq + n :]) for row in rows]


def _minus_product(A: list[list[Scalar]], B: list[list[Scalar]]) -> list[list[Scalar]]:
    def entry(row: list[Scalar], j: int) -> Scalar:
        return -sum((a * b[j] for a, b in zip(row[1:], B[1:], strict=True)), start=row[0] * B[0][j])

    return [[entry(row, j) for j in range(len(B))] for row in A]


ALGORITHMS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "inverse_dynamics": {
        "newton_euler": _under_constraints(newton_euler.inverse_dynamics),
        "boundary_value": _under_constraints(boundary_value.inverse_dynamics),
        "gibbs_appell": _under_constraints(gibbs_appell.inverse_dynamics),
        "compound_link": _under_constraints(compound_link.inverse_dynamics),
    },
    "forward_dynamics": {
        "kalman": _forward_kalman,
        "compound_link": _forward_compound,
        "parallel_scan": _forward_scan,
    },
    "iterated_forward_dynamics": {
        "conjugate_gradient": _forward_gradient(False),
        "preconditioned_conjugate_gradient": _forward_gradient(True),
    },
    "inverse_dynamics_derivatives": {
        "newton_euler": _inverse_derivatives(newton_euler.inverse_dynamics),
        "boundary_value": _inverse_derivatives(boundary_value.inverse_dynamics),
        "gibbs_appell": _inverse_derivatives(gibbs_appell.inverse_dynamics),
        "compound_link": _inverse_derivatives(compound_link.inverse_dynamics),
        "recursion": _inverse_derivatives(None),
    },
    "forward_dynamics_derivatives": {
        "kalman": _forward_derivatives(_forward_kalman),
        "compound_link": _forward_derivatives(_forward_compound),
        "conjugate_gradient": _forward_derivatives(_forward_gradient(False)),
        "preconditioned_conjugate_gradient": _forward_derivatives(_forward_gradient(True)),
    },
    "mass_matrix": {
        "compound_link": _mass(compound_link.mass_matrix),
        "covariance": _mass(kalman.mass_matrix),
        "newton_euler": _mass(_mass_by_columns),
    },
    "coefficients": {"compound_link": lambda setting, q: equation.coefficients(setting.links(), q)},
    "inverse_mass_matrix": {
        "kalman": _inverse_mass_kalman,
        "compound_link": _inverse_mass_compound,
    },
    "gravity_torques": {"compound_link": _gravity_compound, "newton_euler": _gravity},
    "velocity_torques": {"newton_euler": _velocity_newton_euler, "velocity_recursion": _velocity},
    "bias_torques": {"newton_euler": _bias},
    "coriolis_matrix": {
        "christoffel": lambda setting, q, qd: coriolis.coriolis_matrix(setting.links(), q, qd)
    },
    "christoffel": {"christoffel": _christoffel},
    "kinetic_energy": {"spatial": lambda setting, q, qd: energy.kinetic_energy(setting.links(), q, qd)},
    "potential_energy": {"spatial": lambda setting, q: equation.potential_energy(setting.links(), q)},
    "pose": {"kinematics": lambda setting, q: kinematics.pose(setting.links(), q, *setting.target())},
    "jacobian": {"kinematics": lambda setting, q: kinematics.jacobian(setting.links(), q, *setting.target())},
    "velocity": {
        "kinematics": lambda setting, q, qd: kinematics.velocity(setting.links(), q, qd, *setting.target())
    },
    "jacobian_rate": {
        "kinematics": lambda setting, q, qd: centroidal.jacobian_rate(
            setting.links(), q, qd, *setting.target()
        )
    },
    "center_of_mass": {"centroidal": lambda setting, q: centroidal.center_of_mass(setting.links(), q)},
    "com_jacobian": {"centroidal": lambda setting, q: centroidal.com_jacobian(setting.links(), q)},
    "centroidal_matrix": {"centroidal": lambda setting, q: centroidal.centroidal_matrix(setting.links(), q)},
    "centroidal_momentum": {
        "centroidal": lambda setting, q, qd: centroidal.centroidal_momentum(setting.links(), q, qd)
    },
    "centroidal_bias": {
        "centroidal": lambda setting, q, qd: centroidal.centroidal_bias(setting.links(), q, qd)
    },
    "task_inertia": {"kalman": _task_inertia},
    "consistent_inverse": {"kalman": _consistent_inverse},
    "integrate": {"exponential": lambda setting, q, step: _of_leaders(setting, manifold.integrated, q, step)},
    "difference": {
        "logarithm": lambda setting, q, other: _of_leaders(setting, manifold.difference, q, other)
    },
    "normalize": {"length": lambda setting, q: _of_leaders(setting, manifold.normalized, q)},
    "constrained_forward_dynamics": {
        "kalman": _with_unmet(_constrained),
        "compound_link": _with_unmet(_constrained_by_penalty),
        "filter": _filtered_with_unmet,
    },
    "constraint_forces": {
        "kalman": lambda setting, q, qd, tau: _constrained(setting, q, qd, tau)[1],
        "compound_link": lambda setting, q, qd, tau: _constrained_by_penalty(setting, q, qd, tau)[1],
        "filter": lambda setting, q, qd, tau: _filtered(setting, q, qd, tau)[1],
    },
    "constraint_residuals": {"kalman": _constraint_residuals},
    "constraint_jacobian": {"kinematics": lambda setting, q: _rows(setting, q)[1]},
    "constraint_errors": {
        "kinematics": lambda setting, q: constraints.errors(
            setting.links(), q, constraints.prepared(setting.model)
        )
    },
    "delassus_matrix": {
        "kalman": _delassus(_inverse_mass_kalman),
        "compound_link": _delassus(_inverse_mass_compound),
    },
    "impact": {"kalman": _impact},
    **contact_evaluation.ALGORITHMS,
    "regressor": {
        "newton_euler": lambda setting, q, qd, qdd: regressor.regressor(
            setting.links(), q, qd, qdd, joint_laws.coefficients(setting.model.moving_joints)
        )
    },
}


def outputs_of(
    function: Function, setting: Setting, algorithm: str, /, **inputs: Sequence[Scalar]
) -> dict[str, Any]:
    """The outputs by name, as nested lists of scalars: floats, arrays or symbols, as the inputs are."""
    if setting.parameters:
        values = {name: inputs.pop(name) for name in setting.parameters}
        links = mechanism_of(setting.model, slide=setting.slide)
        chosen = with_symbols(links, setting.model, setting.frame, values, setting.base_parameters)
        setting = replace(setting, stand_in=chosen)
    links = setting.links()
    grouped = {
        name: coupling.expanded(links, values, positions=name in POSITIONS, forces=name == "tau")
        if name in COORDINATES
        else values
        for name, values in inputs.items()
    }
    with constraints.computed_in(setting.dtype):
        result = ALGORITHMS[function.name][algorithm](setting, **grouped)
    names = list(function.shapes(setting.model))
    results = zip(names, result if len(names) > 1 else (result,), strict=True)
    return {name: _by_coordinate(function, links, name, value) for name, value in results}


def _by_coordinate(function: Function, links: Mechanism, output: str, value: Any) -> Any:
    """An output with one quantity per link as a list of coordinates; torques of followers act on their leaders."""
    if isinstance(value, list) and value and not isinstance(value[0], list):
        value = coupling.parts(value)
    if not (function.reduces and links.coupled):
        return value
    # an axis of the result belongs to the coordinates if its size changes with their number
    few, many = (
        function.shapes(cast(Model, SimpleNamespace(dof=n, nq=n, parameter_labels=()))) for n in (1, 2)
    )
    return coupling.reduced(links, value, [a != b for a, b in zip(few[output], many[output], strict=True)])
