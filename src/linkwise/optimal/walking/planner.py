"""Plans of a walking robot: the problem of its horizon, and one program from the last plan to the next one.

The program makes the targets of all stages from a few orders (``stages.orders_of``), moves the last plan on in time,
and improves it by iterations of the solver, as ``predictive.plans`` does for arms. It runs in Python, for many robots
at once, as C without allocation and as CUDA.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.room import in_one_room
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.core.products import times
from linkwise.language import empty, span, straight, variable
from linkwise.optimal.contact_schedule import ACTIVE, ContactSchedule
from linkwise.optimal.contact_terms import FrictionCone
from linkwise.optimal.costs import Effort, JointTracking, TipTracking
from linkwise.optimal.iteration import count_of, iterated, iteration, step_sizes
from linkwise.optimal.iterations import stage_shape
from linkwise.optimal.limits import StateLimits
from linkwise.optimal.predictive import plans
from linkwise.optimal.problem import Problem
from linkwise.optimal.walking.stages import END, TRUNK, Stages, orders_of
from linkwise.scalar import Scalar
from linkwise.solve.linear import solve_least_squares

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Dtype
    from linkwise.compiler.trace.procedure import ProcedureNest
    from linkwise.robot.robot import Robot

STEPS = (1.0, 0.5)
"""Step sizes that an iteration tries."""
TURN, PLACE, RISE = 20.0, 0.4, 10.0
"""Weights of the trunk: its orientation [1/rad²], its place and its height in units of the standing height."""
SPEED, TURNING, POSTURE, JOINT_SPEED = 20.0, 1.0, 1.0, 0.02
"""Weights of velocities of the trunk [s²/m², s²/rad²], of the joints' posture [1/rad²] and speeds [s²/rad²]."""
EFFORT, LAST = 0.02, 5.0
"""Weight of torques, in units of those that carry the robot; what the last state counts beside the others."""
NAME = "walk_plan"


def walking_problem(
    robot: Robot,
    stages: Stages,
    *,
    horizon: int,
    friction: float,
    torque_limits: Any,
    state_limits: bool,
    area: tuple[float, float] | None = None,
) -> Problem:
    """The problem of a horizon; its targets and which feet stand are set by ``Stages.parameters``.

    Args:
        robot: with a floating base and the frames of its feet.
        stages: what every stage aims at.
        horizon: number of stages.
        friction: coefficient of the ground.
        torque_limits: as for ``Problem``.
        state_limits: whether limits of joint positions and velocities hold.
        area: half length and half width of soles [m]; None: feet like balls.
    """
    n, long = robot.dof, float(stages.stand[2]) - stages.level
    mass = sum(link.inertia.mass for link in robot.links)
    carrying = mass * 9.81 * long / len(stages.feet)
    place = np.array([PLACE, PLACE, RISE]) / long**2
    weight = np.concatenate([[TURN] * 3, place, np.full(n - 6, POSTURE)])
    speeds = np.concatenate([[TURNING] * 3, [SPEED] * 3, np.full(n - 6, JOINT_SPEED)])
    still = np.zeros(n)
    costs: list[Any] = [
        JointTracking(stages.stand, weight, velocity=still, velocity_weight=speeds, name=TRUNK),
        Effort(EFFORT / carrying**2),
    ]
    flat = area is not None
    where_to, turned = (np.eye(4), np.zeros(3)) if flat else (np.zeros(3), None)
    costs += [TipTracking(where_to, np.zeros(3), turned, frame=name, name=name) for name in stages.feet]
    end = JointTracking(
        stages.stand, LAST * stages.step * weight, velocity=still, velocity_weight=LAST * stages.step * speeds, name=END
    )  # fmt: skip
    return Problem(
        robot,
        horizon=horizon,
        step=stages.step,
        start=(stages.stand, still),
        costs=costs,
        terminal=[end],
        limits=[
            FrictionCone(friction, area or (0.1, 0.1)),
            *([StateLimits()] if state_limits else []),
        ],
        torque_limits=torque_limits,
        contacts=ContactSchedule(stages.feet, surface=flat),
        implicit_damping=True,
    )


def table_of(problem: Problem, stages: Stages, orders: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """The run-time parameters of all stages (horizon + 1, np) for some orders.

    Args:
        problem: of the horizon.
        stages: what every stage aims at.
        orders: see ``stages.orders_of``.
    """
    numbers: Any = np.arange(problem.horizon + 1.0)
    values = stages.parameters(numbers, {name: list(value) for name, value in orders.items()})
    p = problem.p.copy()
    for name, columns in values.items():
        arrays: list[Any] = list(columns)
        p[:, problem.where(name)] = np.stack([np.broadcast_to(array, numbers.shape) for array in arrays], 1)
    return p


def guess_of(problem: Problem, q: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(states, torques) to begin the first plan with: the robot stays, carried by the feet that stand in each stage.

    Args:
        problem: of the horizon.
        q: positions of the robot, (nq,).
        table: run-time parameters of all stages, see ``table_of``.
    """
    robot, contacts, still = problem.robot, problem.dynamics.contacts, np.zeros(problem.robot.dof)
    assert contacts is not None
    needed = np.asarray(robot.inverse_dynamics(q, still, still))
    first = 0 if contacts.surface else 3
    columns = [np.asarray(robot.jacobian(q, frame))[first:].T for frame in contacts.frames]
    known: dict[bytes, np.ndarray] = {}
    torques = np.zeros((problem.horizon, problem.nu))
    for stage, flags in enumerate(table[:-1, problem.where(ACTIVE)]):
        key = flags.tobytes()
        if key not in known:
            J = np.hstack([flag * own for flag, own in zip(flags, columns, strict=True)])
            forces = solve_least_squares(J[:6], needed[:6])
            known[key] = (needed - times(J, forces))[list(problem.dynamics.driven)]
        torques[stage] = known[key]
    return np.tile(np.concatenate([q, still]), (problem.horizon + 1, 1)), torques


def plan_kernel(
    problem: Problem,
    stages: Stages,
    *,
    iterations: int = 1,
    steps: Sequence[float] = STEPS,
    one_room: bool = False,
) -> Kernel:
    """A kernel from the last plan and orders to the next plan.

    Inputs are those of ``predictive.plans.plan_kernel`` and before them ``orders`` (their numbers one after the other);
    of ``parameters`` what orders do not set is read. Outputs are the same.

    Args:
        problem: of the horizon.
        stages: what every stage aims at.
        iterations: of the solver.
        steps: step sizes that are tried in each.
        one_room: whether all scratch memory is one array, for callers in C.
    """
    same = iteration(problem, iterations=iterations, steps=steps)  # checks the arguments
    assert same.key is not None
    own = (stages.gait, stages.feet, stages.hips.tolist(), stages.stand.tolist(), stages.step, stages.height)
    key = same.key + repr((NAME, own, stages.level, stages.weight, one_room)).encode()
    inputs = {name: count_of(shape) for name, shape in input_shapes(problem, stages).items()}

    def build(dtype: Any) -> Any:
        loops = plan_program(problem, stages, iterations, steps, dtype)
        return in_one_room(loops) if one_room else loops

    return Kernel(NAME, inputs.items(), plans.output_shapes(problem).items(), "float64", build, key)


def input_shapes(problem: Problem, stages: Stages) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is given."""
    return {"orders": (sum(orders_of(len(stages.feet)).values()),), **plans.input_shapes(problem)}


def plan_program(
    problem: Problem, stages: Stages, iterations: int, steps: Sequence[float], dtype: Dtype
) -> ProcedureNest:
    """The program in one precision."""
    shape, sizes = stage_shape(problem), step_sizes(steps)

    def function(orders: Any, late: Any, **given: Any) -> dict[str, Any]:
        states, torques = plans.shifted(given["states"], late[0]), plans.shifted(given["torques"], late[0])
        parameters = _with_orders(problem, stages, given["parameters"], orders)
        given |= {"states": states, "torques": torques, "parameters": parameters}
        return plans.judged(iterated(problem, shape, sizes, iterations, dtype, given, plans=True), states)

    traced = TracedFunction(function, input_shapes(problem, stages), NAME, longest=None, loops=True)
    with computed_in(dtype):
        return traced.program(dtype)  # type: ignore[return-value]


def _with_orders(problem: Problem, stages: Stages, table: Any, orders: Any) -> Any:
    """The parameters of all stages, inside a traced function."""
    rows, size = problem.horizon + 1, problem.np
    made, number = empty(rows, size), variable(0.0)

    def row(given: Any, at: Any, orders: Any) -> list[list[Scalar]]:
        values = list(given)
        for name, own in stages.parameters(at[0], stages.by_name(orders)).items():
            values[problem.where(name)] = own
        return [values]

    at = empty(rows, 1)
    for k in span(rows):
        at[k, 0] = number.value
        number.value = number.value + 1.0
    for k in span(rows, parallel=True):
        straight(row, [table[k], at[k], orders], [made[k]])
    return made
