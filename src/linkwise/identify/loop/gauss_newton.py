"""Gauss–Newton on the torques of a simulated closed loop: the iteration of CLOE."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise import joint_laws
from linkwise.core.products import length as vector_length
from linkwise.errors import needed
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.coloured import uncertainty
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.solvers import column_lengths
from linkwise.identify.estimation.solvers import condition as condition_number
from linkwise.identify.loop.problem import Iteration, LoopProblem, norms
from linkwise.identify.loop.simulation import term_numbers, values_of
from linkwise.model.inertia import LABELS
from linkwise.solve.linear import product, pseudo_inverse, singular_values, solve_least_squares, triangle

INDEPENDENT = 1e-8  # smallest singular value of unit columns that are independent
FLAT = 2e-3  # change of the error, in parts of it, below which further steps are of no use
STALLED = 100.0  # tolerances: a step that no longer lowers the error counts as converged below this
CHANGE = 1e-3  # of the torques, that a parameter is changed by for its sensitivity
SMALLER = 5  # times that the change of a parameter is reduced to a tenth, where the robot is lost with it
FRACTIONS = 0.5 ** np.arange(8.0)  # of a step, tried at once
EXACT = 1e-6  # residuals under this part of the torques weigh no more
NOT_NEGATIVE = {
    LABELS[0],
    *(each.name for law in joint_laws.LAWS for each in law.parameters if each.negative == "refused"),
}
"""Numbers that simulations refuse below zero."""


def gauss_newton(
    problem: LoopProblem, iterations: int, tolerance: float
) -> tuple[np.ndarray, list[Iteration], Regression, np.ndarray, bool]:
    """(parameters of all columns, history, the last linearisation, its weights, whether it has converged)."""
    columns, x = free_columns(problem), problem.start.copy()
    size = np.maximum(norms(problem.recorded.tau), 1e-300)
    history: list[Iteration] = []
    linear, weights = problem.whole, np.ones(problem.robot.dof)
    for number in range(1, iterations + 1):
        _, followed = problem.followed(x, number)
        residual = problem.recorded.tau - problem.torques(followed)
        linear = _linear_model(problem, x, columns, residual)
        weights = 1.0 / np.maximum(norms(residual), EXACT * size)
        W, y = linear.compressed(weights)
        step = _bounded_step(problem, W, y, x, columns)
        change = float(np.sqrt(np.mean((norms(product(linear.Y, step)) / size) ** 2)))
        history.append(problem.measured_by(number, followed, change))
        if change <= tolerance:
            return x, history, linear, weights, True
        share = _best_share(problem, x, columns, step, weights, vector_length(residual * weights))
        if share == 0.0 or flat(history):
            if share != 0.0 or change <= STALLED * tolerance:
                return x, history, linear, weights, True
            raise IdentificationError(
                f"step {number}: no step lowers the error of the torques, {history[-1].residual:.3g} % of them; the "
                "parameters to start from are too far away, or controller and reference are not those of the recording"
            )
        x = _parameters_after(problem, x, columns, share * step)
    return x, history, linear, weights, False


def free_columns(problem: LoopProblem) -> list[int]:
    """Columns that carry all base parameters: those of the links before rotors, whose inertias cannot be negative.

    A parameter that is not among them stays as it was, and what it should change passes to the others.
    """
    whole = problem.whole
    combination = base_of(problem.robot, problem.recorded.axes, problem.friction).combination

    def last(column: int) -> int:
        if column < whole.links:
            return int(whole.labels[column].endswith(f".{LABELS[0]}"))
        return 2 + (whole.terms[column - whole.links][1].kind == "rotor_inertia")

    kept: list[int] = []
    length = np.sqrt((combination**2).sum(axis=0))
    for column in sorted(range(len(whole.labels)), key=last):
        if length[column] > 0 and len(kept) < len(combination):
            chosen = combination[:, [*kept, column]] / length[[*kept, column]]
            if singular_values(chosen)[-1] > INDEPENDENT:
                kept.append(column)
    return sorted(kept)


def flat(history: list[Iteration]) -> bool:
    """Whether the last two steps have not changed the error: the rest is exchanged between parameters."""
    last = [each.residual for each in history[-3:]]
    return len(last) == 3 and max(last) - min(last) <= FLAT * last[-1]


def _bounded_step(
    problem: LoopProblem, W: np.ndarray, y: np.ndarray, x: np.ndarray, columns: list[int]
) -> np.ndarray:
    """The step of least squares after which friction does not drive and rotors are not negative."""
    length = column_lengths(W)
    whole = problem.whole
    never = {
        place
        for place, (_, term) in enumerate(whole.terms, whole.links)
        if term.dissipates or term.kind == "rotor_inertia"
    }
    lower = np.array([-x[column] if column in never else -np.inf for column in columns])
    free = solve_least_squares(W / length, y, 1e-9)
    if (free >= lower * length).all():
        return free / length
    solve = needed("scipy.optimize", "identify").lsq_linear
    return solve(W / length, y, bounds=(np.minimum(lower * length, -1e-300), np.inf)).x / length


def _linear_model(
    problem: LoopProblem, x: np.ndarray, columns: list[int], residual: np.ndarray
) -> Regression:
    """How simulated torques depend on the base parameters, by central differences: all robots at once.

    A parameter is changed so that torques change by ``CHANGE`` of them; less where the robot is then lost.
    """
    whole = problem.whole
    picked = whole.pick(columns)
    lengths = column_lengths(picked.compressed(1.0 / np.maximum(norms(whole.tau), 1e-300))[0])
    steps = CHANGE / np.maximum(lengths, 1e-6 * lengths.max())
    lost = np.ones(len(columns), dtype=bool)
    for _ in range(SMALLER):
        slopes, lost = _slopes(problem, x, columns, steps)
        if not lost.any():
            return replace(picked, Y=slopes, tau=residual)
        steps = np.where(lost, 0.1 * steps, steps)
    names = ", ".join(label for label, bad in zip(picked.labels, lost, strict=True) if bad)
    raise IdentificationError(
        f"sensitivities: with slightly other values of {names} the simulated robot does not follow its reference; the "
        "loop is hardly stable, or the parameters to start from are hardly possible"
    )


def _slopes(
    problem: LoopProblem, x: np.ndarray, columns: list[int], steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(slopes of the filtered torques (rows, n, p), which of them are of lost robots (p,))."""
    whole = problem.whole
    middle = values_of(problem.robot_of(x), problem.loops[0].labels)
    lanes = {label: np.full(2 * len(columns), value) for label, value in middle.items()}
    width = np.empty(len(columns))
    for place, column in enumerate(columns):
        h = float(steps[place])
        for label in _robot_labels(problem, whole, column):
            refused = middle[label] - h < 0.0 and label.rpartition(".")[2] in NOT_NEGATIVE
            lanes[label][2 * place] += h
            lanes[label][2 * place + 1] -= 0.0 if refused else h
            width[place] = h if refused else 2 * h
    parts, lost = [], np.zeros(len(columns), dtype=bool)
    for loop in problem.loops:
        tau = loop.run(lanes).tau
        slopes = (tau[0::2] - tau[1::2]) / width[:, None, None]
        lost |= ~np.isfinite(slopes).all(axis=(1, 2))
        parts.append(loop.signals.filtered(np.moveaxis(np.nan_to_num(slopes), 0, -1)))
    return np.concatenate(parts), lost


def _robot_labels(problem: LoopProblem, whole: Regression, column: int) -> list[str]:
    """The parameters of a robot that are the parameter of a column."""
    if column < whole.links:
        return [whole.labels[column]]
    axis, term = whole.terms[column - whole.links]
    return [f"{problem.robot.joint_names[axis]}.{name}" for name in term_numbers(term)]


def _parameters_after(
    problem: LoopProblem, x: np.ndarray, columns: list[int], step: np.ndarray
) -> np.ndarray:
    """The parameters after a step, as far as a robot can have them."""
    found = x.copy()
    found[columns] += step
    whole = problem.whole
    for place, (_, term) in enumerate(whole.terms, whole.links):
        if term.dissipates or term.kind == "rotor_inertia":
            found[place] = max(found[place], 0.0)
    return found


def _best_share(
    problem: LoopProblem,
    x: np.ndarray,
    columns: list[int],
    step: np.ndarray,
    weights: np.ndarray,
    before: float,
) -> float:
    """The part of a step with the smallest error; 0 where all are worse than no step."""
    labels = problem.loops[0].labels
    tried = [
        values_of(problem.robot_of(_parameters_after(problem, x, columns, share * step)), labels)
        for share in FRACTIONS
    ]
    lanes = {label: np.array([values[label] for values in tried]) for label in labels}
    for label in labels:
        if label.rpartition(".")[2] in NOT_NEGATIVE:
            lanes[label] = np.maximum(lanes[label], 0.0)
    runs = [loop.run(lanes) for loop in problem.loops]
    errors = []
    for place in range(len(FRACTIONS)):
        if all(np.isfinite(run.tau[place]).all() for run in runs):
            left = problem.recorded.tau - problem.torques(runs, place)
            errors.append(vector_length(left * weights))
        else:
            errors.append(np.inf)
    best = int(np.argmin(errors))
    return float(FRACTIONS[best]) if errors[best] < before else 0.0


def estimate_of(
    problem: LoopProblem, x: np.ndarray, linear: Regression, weights: np.ndarray, steps: int
) -> Estimate:
    """Base parameters and their uncertainty, from the last linearisation."""
    base = base_of(problem.robot, problem.recorded.axes, problem.friction)
    W, _ = linear.compressed(weights)
    length = column_lengths(W)
    half = pseudo_inverse(triangle(W / length)) / length[:, None]
    covariance, freedom = uncertainty(linear, weights, np.zeros(len(linear.labels)), product(half, half.T))
    passed = base.combination[:, free_columns(problem)]  # from the free columns to the usual base parameters
    covariance = product(product(passed, covariance), passed.T)
    freedom = np.full(len(base.labels), float(freedom.min()))
    spare = max(len(linear) - len(linear.labels) / linear.dof, 1.0)
    sigma = np.sqrt((linear.tau**2).sum(axis=0) / spare)
    return Estimate(
        "cloe",
        base.labels,
        product(base.combination, x),
        covariance,
        sigma,
        weights,
        condition_number(W),
        len(linear),
        (f"{steps} steps",),
        freedom,
    )
