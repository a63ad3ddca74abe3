"""Plans of predictive control: how one is moved on in time, when a new one counts, and the torques that it says.

Everything is arithmetic over scalars. ``plan_program`` is one program from the last plan to the next one, which Python,
the real-time loop and C packages run: the plan so far, some steps later; iterations of the solver; the verdict on what
they leave. ``torques`` is the feedback along a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.algorithms import dense
from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.compiler.trace.room import in_one_room
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.control.bounds import all_finite, is_finite, or_zero
from linkwise.language import empty, span, variable
from linkwise.optimal.iteration import (
    WRITTEN_OUT,
    count_of,
    iterated,
    iteration,
    step_sizes,
)
from linkwise.optimal.iteration import input_shapes as iteration_inputs
from linkwise.optimal.iteration import output_shapes as iteration_outputs
from linkwise.optimal.iterations import REPORT as OF_ITERATIONS
from linkwise.optimal.iterations import stage_shape
from linkwise.scalar import Scalar, clipped, where

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Dtype
    from linkwise.compiler.trace.procedure import ProcedureNest
    from linkwise.optimal.problem import Problem

STEPS = (1.0, 0.5, 0.25)
"""Step sizes that an iteration tries."""
STUBBORN = 1.0
"""Regularisation at which a plan that is still refused is tried without any again, in the next sample."""
CLOSED = 0.1
"""Sum of |gaps| below which a plan that could not be improved still belongs to the measured state."""
REPORT = (*OF_ITERATIONS, "usable")
"""That of iterations, with the regularisation for the next call; and 1 where the new plan counts."""
NAME = "plan"


def plan_kernel(
    problem: Problem, *, iterations: int = 1, steps: Sequence[float] = STEPS, one_room: bool = False
) -> Kernel:
    """A kernel from the last plan to the next one.

    Inputs are those of ``optimal.iteration`` and, after the torques, ``late`` (1): the time since the last plan was
    made, by the duration of a step. Outputs are the same, with ``REPORT``; new_states are those that the gains belong
    to.

    Args:
        problem: what is optimised.
        iterations: of the solver.
        steps: step sizes that are tried in each.
        one_room: whether all scratch memory is one array, for callers in C.
    """
    same = iteration(problem, iterations=iterations, steps=steps)  # checks the arguments
    key = None if same.key is None else same.key + b" plan" + repr(one_room).encode()
    inputs = {name: count_of(shape) for name, shape in input_shapes(problem).items()}

    def build(dtype: Any) -> Any:
        loops = plan_program(problem, iterations, steps, dtype)
        return in_one_room(loops) if one_room else loops

    return Kernel(NAME, inputs.items(), output_shapes(problem).items(), "float64", build, key)


def input_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is given."""
    shapes = iteration_inputs(problem)
    last = shapes.pop("regularisation")
    return {**shapes, "late": (1,), "regularisation": last}


def output_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is computed."""
    return {**iteration_outputs(problem), "report": (len(REPORT),)}


def plan_program(problem: Problem, iterations: int, steps: Sequence[float], dtype: Dtype) -> ProcedureNest:
    """The program in one precision."""
    shape, sizes = stage_shape(problem), step_sizes(steps)

    def function(late: Any, **given: Any) -> dict[str, Any]:
        states, torques = shifted(given["states"], late[0]), shifted(given["torques"], late[0])
        given |= {"states": states, "torques": torques}
        return judged(iterated(problem, shape, sizes, iterations, dtype, given, plans=True), states)

    longest = None if problem.dynamics.in_parts else WRITTEN_OUT
    traced = TracedFunction(function, input_shapes(problem), NAME, longest=longest, loops=True)
    with computed_in(dtype):
        return traced.program(dtype)  # type: ignore[return-value]


def shifted(table: Any, steps: Scalar) -> Any:
    """Rows some steps later: between two rows interpolated, the last one kept.

    Whole steps are taken by the binary digits of their number, so that no place in memory depends on data.

    Args:
        table: shape (rows, size).
        steps: how many; below zero, or not finite: none.
    """
    rows, size = table.shape
    result = empty(rows, size)
    for k in span(rows):
        for i in span(size):
            result[k, i] = table[k, i]
    left: Any = clipped(or_zero(steps), 0.0, float(rows - 1))
    digit = 1 << (rows - 1).bit_length()
    while digit := digit >> 1:
        moves = left >= float(digit)
        for k in span(rows - digit):
            for i in span(size):
                result[k, i] = where(moves, result[k + digit, i], result[k, i])
        for k in span(rows - digit, rows):
            for i in span(size):
                result[k, i] = where(moves, result[rows - 1, i], result[k, i])
        left = where(moves, left - float(digit), left)
    for k in span(rows - 1):
        for i in span(size):
            result[k, i] = result[k, i] + left * (result[k + 1, i] - result[k, i])
    return result


def judged(made: dict[str, Any], states: Any) -> dict[str, Any]:
    """What iterations leave, as a plan: whether it counts, and the regularisation that the next one begins with.

    A plan counts if all its numbers are finite, the iteration was sound, and it took a step or has nearly no gaps.
    Where no step was taken the gains belong to the states that were given.

    Args:
        made: outputs of iterations.
        states: that they began with.
    """
    before = dict(zip(OF_ITERATIONS, (made["report"][k] for k in range(len(OF_ITERATIONS))), strict=True))
    stepped = before["step"] > 0.0
    of_gains = empty(*states.shape)
    for k in span(states.shape[0]):
        for i in span(states.shape[1]):
            of_gains[k, i] = where(stepped, made["new_states"][k, i], states[k, i])
    mu = before["regularisation"]
    belongs = where(stepped, 1.0, where(before["gap"] <= CLOSED, 1.0, 0.0)) > 0.5
    usable = variable(where(belongs & (before["sound"] > 0.5) & is_finite(mu), 1.0, 0.0))
    for table in (of_gains, made["new_torques"]):
        for k in span(table.shape[0]):
            for i in span(table.shape[1]):
                usable.value = where(is_finite(table[k, i]), usable.value, 0.0)
    gains = made["gains"]
    for k in span(gains.shape[0]):
        for i in span(gains.shape[1]):
            for j in span(gains.shape[2]):
                usable.value = where(is_finite(gains[k, i, j]), usable.value, 0.0)
    counts = usable.value > 0.5
    before |= {"regularisation": where(counts, mu, where(mu < STUBBORN, mu, 0.0)), "usable": usable.value}
    report = empty(len(REPORT))
    for k, name in enumerate(REPORT):
        report[k] = before[name]
    return {"new_states": of_gains, "new_torques": made["new_torques"], "gains": gains, "report": report}


def torques(
    measured: Sequence[Scalar],
    planned: Sequence[Scalar],
    following: Sequence[Scalar],
    part: Scalar,
    torque: Sequence[Scalar],
    gain: Sequence[Scalar],
    lower: Sequence[Scalar],
    upper: Sequence[Scalar],
) -> tuple[list[Scalar], Scalar]:
    """(torques of a plan with feedback, 1 where a number that is needed is not finite: then there is no feedback).

    Args:
        measured: state, nx scalars.
        planned: state of the plan at the begin of its step.
        following: at the end of the step.
        part: of the step that has passed, 0 to 1.
        torque: of the plan in this step, m scalars.
        gain: of the plan in this step, m·nx scalars.
        lower: limits of the torques.
        upper: limits of the torques.
    """
    f: Any = clipped(part, 0.0, 1.0)
    error = [x - (a + f * (b - a)) for x, a, b in zip(measured, planned, following, strict=True)]
    wide = len(error)
    wanted: list[Scalar] = [
        value + dense.dot(gain[i * wide : (i + 1) * wide], error) for i, value in enumerate(torque)
    ]
    good = all_finite(wanted)
    sent = [
        or_zero(clipped(where(good, total, or_zero(value)), low, high))
        for total, value, low, high in zip(wanted, torque, lower, upper, strict=True)
    ]
    return sent, where(good, 0.0, 1.0)


def torques_kernel(problem: Problem, dtype: str = "float64") -> Kernel:
    """``torques`` as a kernel: (measured, planned, following, part, torque, gain, lower, upper) -> (tau, fault)."""
    x, u = problem.nx, problem.nu
    sizes = {"measured": x, "planned": x, "following": x, "part": 1}
    sizes |= {"torque": u, "gain": u * x, "lower": u, "upper": u}

    def function(part: Sequence[Scalar], **given: Any) -> dict[str, list[Scalar]]:
        tau, fault = torques(part=part[0], **given)
        return {"tau": tau, "fault": [fault]}

    shapes: dict[str, tuple[int, ...]] = {"tau": (u,), "fault": (1,)}
    return traced_kernel("plan_torques", function, sizes, shapes, dtype, f"torques {x} {u}".encode())
