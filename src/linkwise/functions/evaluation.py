"""How every function of the table is computed: which algorithm. What joints add is in ``algorithms.equation``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from linkwise import joint_laws
from linkwise.algorithms import (
    boundary_value,
    centroidal,
    compound_link,
    conjugate_gradient,
    coriolis,
    coupling,
    dense,
    derivatives,
    drag,
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
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained import derivatives as constraint_derivatives
from linkwise.algorithms.singularity import may_be_singular
from linkwise.compiler.ir.derivative import forward, reverse, substituted
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.operations import total
from linkwise.errors import ModelError
from linkwise.functions import contact_evaluation
from linkwise.functions.evaluation_motion import (
    HeldState,
    constrained,
    constrained_by_mass_matrix,
    constraint_rank,
    constraint_residuals,
    delassus_by,
    filtered,
    filtered_with_unmet,
    forces_of,
    forward_compound,
    forward_kalman,
    free_compound,
    impact,
    inverse_mass_compound,
    inverse_mass_kalman,
    net_torques,
    rows_of,
    with_unmet,
    wrenches,
)
from linkwise.functions.parameters import with_symbols
from linkwise.functions.table import COORDINATES, MOTOR_TORQUES, POSITIONS, Function, Setting, mechanism_of
from linkwise.model import Model
from linkwise.model.constraints import TARGETS
from linkwise.model.mechanism import Mechanism, flat
from linkwise.scalar import Scalar, all_of, maximum, where

# -- torques ----------------------------------------------------------------------------------------------------------


def _inverse(method: equation.Torques):
    def run(setting: Setting, q, qd, qdd, wrench=None):
        loads = wrenches(setting, wrench)
        return equation.inverse_dynamics(
            setting.links(), q, qd, qdd, loads, friction=setting.friction, method=method
        )

    return run


def _gravity(setting: Setting, q):
    links = setting.links()
    return equation.bias_torques(links, q, equation.zeros(links))


def _velocity(setting: Setting, q, qd):
    return equation.velocity_torques(setting.links(), q, qd, velocity_torques.velocity_torques)


# -- motion -----------------------------------------------------------------------------------------------------------


def _forward_scan(setting: Setting, q, qd, tau, wrench=None):
    links, net = setting.links(), net_torques(setting, q, qd, tau)
    return parallel_scan.forward_dynamics(links, q, qd, net, wrenches(setting, wrench))


def _under_constraints(method: equation.Torques):
    """Inverse dynamics of a robot that is held: the smallest torques, see ``constraints.least_torques``."""

    def run(setting: Setting, q, qd, qdd, wrench=None):
        if not setting.model.constraints:
            return _inverse(method)(setting, q, qd, qdd, wrench)
        least, _, _ = _motor_torques(method, setting, q, qd, qdd, wrench)
        # the table applies Sᵀ once more: put the torques on the leaders' own axes
        return coupling.expanded(setting.links(), least, forces=True)

    return run


def _motor_torques(method: equation.Torques, setting: Setting, q, qd, qdd, wrench=None):
    """(τ of the motors, what joints without a motor miss, torques without constraints), of leaders' coordinates."""
    tau = _inverse(method)(setting, q, qd, qdd, wrench)
    links, passive = setting.links(), setting.model.passive
    needed = coupling.reduced(links, flat(tau), (True,))
    joints = setting.model.coordinate_joints
    motors = [joint.name not in passive for joint in joints for _ in range(joint.dof)]
    if not setting.model.constraints:
        both = list(zip(needed, motors, strict=True))
        return [t if m else 0.0 for t, m in both], [0.0 if m else t for t, m in both], needed
    if setting.friction:
        joint_terms.check_no_load_friction(links)  # what constraints carry is not known before
    _, J = rows_of(setting, q)
    return *constraints.least_torques(J, needed, motors), needed


def _with_missing(method: equation.Torques):
    """(τ of the motors, the largest part of a torque that no motor can make, torques that are missing)."""

    def run(setting: Setting, q, qd, qdd, wrench=None):
        tau, missing, needed = _motor_torques(method, setting, q, qd, qdd, wrench)
        size = sum((abs(t) for t in needed), start=1e-9)
        most = functools.reduce(maximum, (abs(t) for t in missing))
        return tau, most / size, missing

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
            net_torques(setting, q, qd, tau),
            wrenches(setting, wrench),
            preconditioned=preconditioned,
            tolerance=setting.tolerance,
            limit=setting.limit,
            start=None if start is None else coupling.leaders(links, start),
            dtype=setting.dtype,
        )
        if may_be_singular(links):
            # where there are many solutions the iteration finds one: as undefined as the results of other methods
            if links.coupled:
                solved = flat(free_compound(setting, q, qd, tau, wrench))
                regular = functools.reduce(all_of, (x <= math.inf for x in solved))
            else:
                regular = kalman.is_regular(links, q)
            return [where(regular, x, math.nan) for x in qdd], where(regular, error, math.nan), iterations
        return qdd, error, iterations

    return run


# -- matrices ---------------------------------------------------------------------------------------------------------


def _mass(method):
    return lambda setting, q: equation.mass_matrix(setting.links(), q, method)


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
    inverse = inverse_mass_kalman(setting, q)
    return inverse, J, dense.product(J, dense.product(inverse, dense.transposed(J)))


# -- derivatives ------------------------------------------------------------------------------------------------------


def _inverse_derivatives(method: equation.Torques | None):
    """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ of an algorithm; None takes the analytic recursions alone."""

    def run(setting: Setting, q, qd, qdd):
        if setting.model.constraints or _friction_is_shared(setting):
            least = _under_constraints(method or newton_euler.inverse_dynamics)
            return _differentiated(setting, least, q, qd, qdd)
        return _free_inverse_derivatives(setting, method, q, qd, qdd)

    return run


def _free_inverse_derivatives(setting: Setting, method: equation.Torques | None, q, qd, qdd):
    """The same for a robot that is not held."""
    links = setting.links()
    by_q, by_qd, M = _torque_derivatives(links, method, q, qd, qdd)
    by_q = joint_terms.add_derivatives_by_q(links, by_q, q, qd, friction=setting.friction)
    by_qd = joint_terms.add_derivatives_by_qd(links, by_qd, q, qd, friction=setting.friction)
    return by_q, by_qd, joint_terms.add_rotor_inertia(links, M)


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
        if _friction_is_shared(setting):
            return _differentiated(setting, method, q, qd, tau)
        if setting.model.constraints:
            if method not in _CONSTRAINED:
                method(setting, q, qd, tau)  # says that it does not support constraints
            return _constrained_derivatives(setting, _CONSTRAINED[method], q, qd, tau)
        qdd = method(setting, q, qd, tau)
        if isinstance(qdd, tuple):  # conjugate gradients also give their error
            qdd = qdd[0]
        qdd = coupling.expanded(links, flat(qdd))
        matrices = _inverse_derivatives(newton_euler.inverse_dynamics)(setting, q, qd, qdd)
        by_q, by_qd, M = (coupling.reduced(links, matrix, (True, True)) for matrix in matrices)
        inverse = dense.inverted(M) if links.coupled else factorised.invert(links, M)
        return dense.minus_product(inverse, by_q), dense.minus_product(inverse, by_qd), inverse

    return run


_CONSTRAINED = {forward_kalman: constrained, forward_compound: constrained_by_mass_matrix}


def _constrained_derivatives(
    setting: Setting, solve: Callable[..., tuple[constraints.Solved, HeldState]], q, qd, tau
):
    """The same under constraints, see ``constraint_derivatives``."""
    links = setting.links()
    solved, own = solve(setting, q, qd, tau)
    qdd = coupling.expanded(links, solved.qdd)
    matrices = _free_inverse_derivatives(setting, None, q, qd, qdd)
    by_q, by_qd, M = (coupling.reduced(links, matrix, (True, True)) for matrix in matrices)
    rows_by_q, rows_by_qd, pulls = constraint_derivatives.of_rows(links, q, qd, qdd, own.held, solved.forces)
    by_q = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(by_q, pulls, strict=True)]
    mixed = [a + b for a, b in zip(solved.qdd, coupling.leaders(links, qd), strict=True)]
    v = constraint_derivatives.allowed(own.J, own.held, own.floor, mixed)
    still, none = equation.zeros(links), [0.0] * len(own.J)
    along = coupling.expanded(links, v)
    bent, _, _ = constraint_derivatives.of_rows(links, q, still, along, own.held, none)
    return constraint_derivatives.of_accelerations(
        M, own.J, own.held, own.floor, (by_q, by_qd), (rows_by_q, rows_by_qd), bent, may_be_singular(links)
    )


def _friction_is_shared(setting: Setting) -> bool:
    """Whether friction depends on more than the joint's own motion: on the carried torque, or on the motion of links in
    a fluid."""
    links = setting.links()
    return setting.friction and (joint_terms.has_load_friction(links) or drag.present(links))


def _christoffel(setting: Setting, q):
    return coriolis.christoffel(without_free_joints(setting), q)


def without_free_joints(setting: Setting) -> Mechanism:
    """The links, all with coordinates whose rates are the velocities: else there are no Christoffel symbols."""
    links = setting.links()
    if any(link.free for link in links):
        raise ModelError(
            f"{setting.model.name}: Christoffel's symbols do not exist for ball and floating joints, whose angular "
            "rates are the rates of no coordinates; use coriolis_matrix"
        )
    return links


def _regressor(setting: Setting, q, qd, qdd):
    links = setting.links()
    joint_terms.check_no_drag(links)
    return regressor.regressor(links, q, qd, qdd, joint_laws.coefficients(setting.model.moving_joints))


def _differentiated(setting: Setting, method: Callable[..., Any], q, qd, given):
    """Derivatives of a function under constraints, or with load friction, by q (along the velocities), q̇ and its third
    argument."""
    links = setting.links()
    by = [coupling.leaders(links, value) for value in (q, qd, given)]
    if not by[0] or not isinstance(by[0][0], Node):
        raise ModelError(
            f"{setting.model.name}: derivatives of torques under constraints, with load friction or in a fluid are for "
            "robots that are small enough to be written out; lock joints that do not move (robot.lock)"
        )
    graph = by[0][0].graph
    values = method(setting, q, qd, given)
    n, nq = len(by[1]), len(by[0])
    torques = links.coupled and len(flat(values)) != n  # one for each axis, those of followers are zero
    results = [graph.lift(x) for x in (coupling.leaders(links, values) if torques else flat(values))]
    symbols: list[Any] = [symbol for group in by for symbol in group]
    rows = reverse(results, symbols)
    by_q = manifold.by_velocities(links, q, [list(row[:nq]) for row in rows])
    matrices: tuple[Any, ...] = (
        by_q,
        [list(row[nq : nq + n]) for row in rows],
        [list(row[nq + n :]) for row in rows],
    )
    return tuple(coupling.with_followers(links, matrix) for matrix in matrices) if torques else matrices


ALGORITHMS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "inverse_dynamics": {
        "newton_euler": _under_constraints(newton_euler.inverse_dynamics),
        "boundary_value": _under_constraints(boundary_value.inverse_dynamics),
        "gibbs_appell": _under_constraints(gibbs_appell.inverse_dynamics),
        "compound_link": _under_constraints(compound_link.inverse_dynamics),
    },
    MOTOR_TORQUES: {
        "newton_euler": _with_missing(newton_euler.inverse_dynamics),
        "boundary_value": _with_missing(boundary_value.inverse_dynamics),
        "gibbs_appell": _with_missing(gibbs_appell.inverse_dynamics),
        "compound_link": _with_missing(compound_link.inverse_dynamics),
    },
    "forward_dynamics": {
        "kalman": forward_kalman,
        "compound_link": forward_compound,
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
        "kalman": _forward_derivatives(forward_kalman),
        "compound_link": _forward_derivatives(forward_compound),
        "conjugate_gradient": _forward_derivatives(_forward_gradient(False)),
        "preconditioned_conjugate_gradient": _forward_derivatives(_forward_gradient(True)),
    },
    "mass_matrix": {
        "compound_link": _mass(compound_link.mass_matrix),
        "covariance": _mass(kalman.mass_matrix),
        "newton_euler": _mass(newton_euler.mass_matrix),
    },
    "coefficients": {"compound_link": lambda setting, q: equation.coefficients(setting.links(), q)},
    "inverse_mass_matrix": {
        "kalman": inverse_mass_kalman,
        "compound_link": inverse_mass_compound,
    },
    "gravity_torques": {
        "compound_link": lambda setting, q: equation.gravity_torques(setting.links(), q),
        "newton_euler": _gravity,
    },
    "velocity_torques": {
        "newton_euler": lambda setting, q, qd: equation.velocity_torques(setting.links(), q, qd),
        "velocity_recursion": _velocity,
    },
    "bias_torques": {"newton_euler": lambda setting, q, qd: equation.bias_torques(setting.links(), q, qd)},
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
        "kalman": with_unmet(constrained),
        "compound_link": with_unmet(constrained_by_mass_matrix),
        "filter": filtered_with_unmet,
    },
    "constraint_forces": {
        "kalman": forces_of(constrained),
        "compound_link": forces_of(constrained_by_mass_matrix),
        "filter": lambda setting, q, qd, tau: filtered(setting, q, qd, tau)[1],
    },
    "constraint_residuals": {"kalman": constraint_residuals},
    "constraint_rank": {"kalman": constraint_rank},
    "constraint_jacobian": {"kinematics": lambda setting, q: rows_of(setting, q)[1]},
    "constraint_errors": {
        "kinematics": lambda setting, q: constraints.errors(setting.links(), q, setting.held())
    },
    "delassus_matrix": {
        "kalman": delassus_by(),
        "compound_link": delassus_by(inverse_mass_compound),
    },
    "impact": {"kalman": impact},
    **contact_evaluation.ALGORITHMS,
    "regressor": {
        "newton_euler": _regressor,
    },
}


def outputs_of(
    function: Function, setting: Setting, algorithm: str, /, **inputs: Sequence[Scalar]
) -> dict[str, Any]:
    """The outputs by name, as nested lists of scalars: floats, arrays or symbols, as the inputs are."""
    if setting.parameters:
        values = {name: inputs.pop(name) for name in setting.parameters}
        setting = replace(setting, targets=values.pop(TARGETS, None))
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
