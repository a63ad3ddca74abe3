"""Iterations of the solver as one kernel, a fixed number of them: what every part of the package runs.

``iterations`` has what an iteration does, ``phase_iteration`` what is another way for robots that the ground holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.arguments import whole as whole_number
from linkwise.optimal.iterations import REPORT, Iterations, stage_shape
from linkwise.optimal.phase_iteration import PhaseIterations

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Dtype
    from linkwise.compiler.trace.procedure import ProcedureNest
    from linkwise.optimal.problem import Problem
    from linkwise.solve.riccati import Shape

STEPS = (1.0, 0.5, 0.25, 0.125)
"""Step sizes that are tried."""
SMALLEST_PIVOT = {"float64": 1e-12, "float32": 1e-5}
"""In units of the diagonal before the elimination."""
ONE_BY_ONE = 24
"""Velocity coordinates from which problems of a batch are solved one by one, columns of matrices side by side: those of
several problems at once leave the near caches."""
WRITTEN_OUT = 6000
"""Operations up to which a loop inside is unrolled, for robots whose equation of motion is written out as well."""
NAME = "iteration"


def iteration(
    problem: Problem,
    *,
    iterations: int = 1,
    steps: Sequence[float] = STEPS,
    constant_time: bool = True,
    curved: bool = False,
) -> Kernel:
    """A kernel that does iterations of the solver, for one problem or many at once.

    Inputs, each (..., size): ``start`` (ns), ``parameters`` ((horizon + 1)·np: ``problem.p`` row by row),
    ``multipliers`` ((horizon + 1)·nm, only for problems with limits), ``states`` ((horizon + 1)·ns) and ``torques``
    (horizon·m) of the trajectory to begin with, ``regularisation`` (1; 0 is a good start). Outputs: ``new_states``
    (horizon + 1, ns), ``new_torques`` (horizon, m), ``gains`` K (horizon, m, nx) of the last sweep with δu = K δx, and
    ``report``, see ``REPORT``. Where no step is taken the trajectory stays, but begins at ``start``. The same object
    gives C without allocation (``source("c")``) and CUDA; with ``constant_time`` the time of a call does not depend on
    the data. The bits are the same.

    Args:
        problem: what is optimised; its parameters and start are inputs.
        iterations: how many, from 1 on.
        steps: step sizes that are tried in each, from (0, 1].
        constant_time: whether all step sizes are tried in any case; else only the longest, where that is taken.
        curved: whether second derivatives of the dynamics count (Newton's method in place of Gauss and Newton's); for
            arms of up to 4 joints.

    Raises:
        ProblemError: a number of iterations below 1, no step size, or a robot without second derivatives.
    """
    count = whole_number("iterations", iterations, 1)
    sizes = step_sizes(steps)
    own = problem.key()
    constant_time, curved = flag("constant_time", constant_time), flag("curved", curved)
    if curved and not problem.dynamics.bends:
        raise ProblemError(f"curved: there are no second derivatives of the dynamics of {problem.robot.name}")
    key = None if own is None else own + repr((problem.horizon, count, sizes, constant_time, curved)).encode()
    inputs = {name: count_of(shape) for name, shape in input_shapes(problem).items()}

    def build(dtype: Any) -> Any:
        return iteration_program(problem, count, sizes, dtype, constant_time, curved)

    kernel = Kernel(NAME, inputs.items(), output_shapes(problem).items(), "float64", build, key)
    kernel.one_by_one = problem.dynamics.dof >= ONE_BY_ONE
    return kernel


def step_sizes(steps: Sequence[float]) -> tuple[float, ...]:
    """Step sizes, the longest first.

    Raises:
        ProblemError: there is none, or one outside of (0, 1].
    """
    sizes = tuple(sorted((float(size) for size in steps), reverse=True))
    if not sizes or any(not 0.0 < size <= 1.0 for size in sizes):
        raise ProblemError(f"steps: expected step sizes above 0 and up to 1, got {steps!r}")
    return sizes


def input_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is given."""
    p, N = problem, problem.horizon
    shapes = {"start": (p.ns,), "parameters": (N + 1, p.np), "multipliers": (N + 1, p.nm)}
    shapes |= {"states": (N + 1, p.ns), "torques": (N, p.nu), "regularisation": (1,)}
    return {key: shape for key, shape in shapes.items() if 0 not in shape}


def output_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is computed."""
    p, N = problem, problem.horizon
    return {
        "new_states": (N + 1, p.ns),
        "new_torques": (N, p.nu),
        "gains": (N, p.nu, p.nx),
        "report": (len(REPORT),),
    }


def iteration_program(
    problem: Problem,
    iterations: int,
    steps: Sequence[float],
    dtype: Dtype,
    constant_time: bool = True,
    curved: bool = False,
) -> ProcedureNest:
    """The loops in one precision."""

    shape = stage_shape(problem, curved)

    def function(**given: Any) -> dict[str, Any]:
        return iterated(
            problem, shape, steps, iterations, dtype, given, constant_time=constant_time, curved=curved
        )

    longest = None if problem.dynamics.in_parts else WRITTEN_OUT
    traced = TracedFunction(function, input_shapes(problem), NAME, longest=longest, loops=True)
    with computed_in(dtype):
        return traced.program(dtype)  # type: ignore[return-value]


def iterated(
    problem: Problem,
    shape: Shape,
    steps: Sequence[float],
    iterations: int,
    dtype: Dtype,
    given: dict[str, Any],
    plans: bool = False,
    constant_time: bool = True,
    curved: bool = False,
) -> dict[str, Any]:
    """What iterations leave, inside a traced function; those of problems with contacts have phases."""
    kind = Iterations if problem.dynamics.contacts is None else PhaseIterations
    return kind(problem, shape, steps, SMALLEST_PIVOT[dtype], given, plans, constant_time, curved).run(
        iterations
    )


def count_of(shape: tuple[int, ...]) -> int:
    """Numbers in an array of this shape."""
    count = 1
    for length in shape:
        count *= length
    return count
