"""Whole-body control: one quadratic programme per sample, as one kernel.

Unknowns are the torques of the motors; where every joint has a motor and nothing stands, the accelerations
(``unsupported``). Soles, supports with three or more points, push inside the cone of all wrenches
that forces inside the pyramids of their points make; how the points share the wrench is found afterwards. Where points
of a sole have limits of their own, how they share it are further unknowns. Wrenches of the supports follow from the
torques, because supports do not move, and accelerations from both,

    w = (J M⁻¹ Jᵀ)⁻¹ (−J̇ q̇ − J M⁻¹ (Sᵀ τ − h)),    q̈ = M⁻¹ (Sᵀ τ + Jᵀ w − h),

so the equation of motion and the motion of the supports need no equations. In the order of what is kept:

1. torques within their limits: always, also where everything else contradicts them;
2. forces inside their pyramids; joints and distances within bounds from which they can still brake. Where these
   cannot be kept, they are missed as little as possible, the forces that are given out are moved into their pyramids,
   the accelerations are those of these forces, and ``slip`` says how the supports would move;
3. tasks of level 1, weighed against each other;
4. tasks of level 2, and so on: what the levels before have reached stays as it is.

Tasks of one level are solved by ``solve.active_set``, several levels one after another, each by ``solve.limited``; both
have a fixed number of iterations.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.singularity import may_be_singular
from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control.whole_body.limits import (
    UNLIMITED,
    Bounds,
    MotionLimits,
    Support,
)
from linkwise.control.whole_body.separations import Separation
from linkwise.control.whole_body.tasks import (
    ForceTask,
    State,
    Task,
    TaskError,
    checked_tasks,
    motors_of,
    vector,
)
from linkwise.core.once import once
from linkwise.core.summaries import Summarised, Summary
from linkwise.functions.table import mechanism_of
from linkwise.language import SIDE_BY_SIDE
from linkwise.model.checks import check_no_tendons
from linkwise.robot import diagnose
from linkwise.robot.robot import Robot
from linkwise.solve.limited import Rows

if TYPE_CHECKING:
    from linkwise.control.whole_body.sample import Sample

STEPS, SUPPORTED, OF_MOTOR, OF_CONTRADICTING = 24, 16, 2, 5
"""Of the active-set method, for tasks of one level: so many at least, with supports, and for every motor. The last
number is for every motor where limits of torques and of joints may contradict each other, on feet that are points too:
with 24 steps bounds of an iiwa14 were missed by up to 67 % more than needed then (sum of squares), and a Go2 whose
joints move near their limits was not solved."""
ITERATIONS = 10
"""Of the interior-point method, for each of several levels."""
SOLVED, NEEDED = 1e-6, 0.1
"""Residual up to which a sample counts as solved, and ``avoidable`` up to which limits contradict each other."""
CONTRADICT, NOT_SOLVED = "limits contradict", "not solved"
"""What ``status`` says of others."""
METHODS = ("active_set", "interior_point")
WRITTEN_OUT, OF_LARGE = 8000, 2000
"""Operations up to which a loop is unrolled: of programmes with more than ``SIDE_BY_SIDE`` unknowns fewer, because
machine code is read faster then (1.4 MB for a Talos: a state takes a tenth less time, one by itself a seventh)."""


@dataclass(frozen=True)
class WholeBodySolution:
    """What a sample gives; leading axes are those of the states."""

    tau: np.ndarray
    """Torques [N·m or N], (..., n); zero where there is no motor."""
    qdd: np.ndarray
    """Accelerations [rad/s² or m/s²], (..., n)."""
    forces: np.ndarray
    """On the points of the supports [N], (..., points, 3): tangent, tangent, normal."""
    errors: np.ndarray
    """Largest error of every task [its acceleration, N for forces], (..., tasks)."""
    residual: np.ndarray
    """Largest violation of the optimality conditions, (...)."""
    slip: np.ndarray
    """Largest acceleration of a support beside what it should be [m/s² or rad/s²], (...)."""
    beyond: np.ndarray
    """How much too fast the worst joint is to keep its limits [rad/s or m/s], (...): now, by the deceleration of
    ``MotionLimits``, or after the sample, with these torques held and supports that hold. Zero as long as limits are
    kept; above it the joint brakes as well as torques allow, and may pass its limit."""
    active: np.ndarray
    """1 for limits that are reached, (..., limits); ``WholeBody.limit_names`` has their names."""
    avoidable: np.ndarray
    """How much of what limits of accelerations and forces are missed by might be avoided, (...): at most this share of
    the sum of squares, by any torques within their limits. 0 only where nothing is missed, 1 where it is not known."""
    names: tuple[str, ...]
    tasks: tuple[str, ...]
    tolerance: float = 1e-3

    @property
    def status(self) -> Any:
        """One word, or an array of them (...): "solved"; "limits contradict": what cannot be kept is missed by a tenth
        more than needed at most (sum of squares, ``avoidable``); "not solved", also where limits are kept and tasks
        might be met better: take more ``iterations`` or ``method="interior_point"``."""
        needed = (self.avoidable > 0.0) & (self.avoidable <= NEEDED)
        others = np.where(needed, CONTRADICT, NOT_SOLVED)
        found = np.where(self.residual <= SOLVED, "solved", others)
        return found if found.ndim else str(found)

    def gave_way(self, tolerance: float | None = None) -> list[str]:
        """Of one state: tasks that are not met, the supports' motion among them as "supports", and "limits of joints"
        where a joint is too fast to keep them.

        Args:
            tolerance: errors up to this count as met; by default ``tolerance``.
        """
        most = self.tolerance if tolerance is None else tolerance
        names = [] if np.max(self.slip) <= most else ["supports"]  # NaN is not met
        names += [] if np.max(self.beyond) <= most else ["limits of joints"]
        return names + [name for k, name in enumerate(self.tasks) if not np.max(self.errors[..., k]) <= most]


class WholeBody(Summarised):
    """Control of a whole robot by tasks, within limits. Friction of joints is not compensated.

    Args:
        robot: the model; joints of type "floating" and passive joints have no motor.
        tasks: what is wanted, see ``tasks``.
        limits: of motors and joints; None: those that the robot states.
        supports: what stands on something. Which of them do is an input, ``stance``.
        separations: capsules that stay apart.
        damping: rate at which a velocity of a support decays [1/s].
        iterations: of the solver, for every level; None: for tasks of one level two steps of the active-set method for
            every motor, 24 at least (16 with supports), which are enough for about half as many active limits at once,
            five where torques and joints have limits, without soles; for each level 10 of the interior-point method, 30
            with supports on two points.
        method: "active_set", for tasks of one level, or "interior_point", which takes longer and also solves what has
            many more limits than unknowns, such as soles whose points have limits; None: the first one for one level
            without supports on two points.

    Raises:
        SingularError: a joint moves no inertia, wherever the robot stands: the message names it.
    """

    def __init__(
        self,
        robot: Robot,
        tasks: Sequence[Task],
        limits: MotionLimits | None = None,
        *,
        supports: Sequence[Support] = (),
        separations: Sequence[Separation] = (),
        damping: float = 0.0,
        iterations: int | None = None,
        method: str | None = None,
    ):
        if robot.constraints:
            raise TaskError(f"{robot.name}: whole-body control has no constraints; leave them out")
        check_no_tendons(robot, "whole-body control")
        diagnose.always_singular(robot)
        self.robot, self.tasks = robot, checked_tasks(robot, tasks)
        self.supports, self.damping = tuple(supports), float(damping)
        self.method = self._method(method)
        self.limits = limits or MotionLimits()
        self.motors = motors_of(robot)
        if not self.motors:
            raise TaskError(f"{robot.name}: no joint has a motor")
        self.bounds = Bounds.of(robot, self.limits)
        self.separations = tuple(separations)
        frames = [frame for each in self.separations for frame in (each.first, each.second)]
        for frame in (*frames, *(support.frame for support in self.supports)):
            robot.locate(frame)
        for task in self.tasks:
            self.size_of(task)
        self.points = sum(len(support.points) for support in self.supports)
        self.rows = self._rows()
        wanted = self._usual_iterations() if iterations is None else iterations
        self.iterations = Numbers(TaskError).whole("iterations", wanted, 1)
        self._kernels: dict[str, Kernel] = {}

    def _method(self, method: str | None) -> str:
        levels = len({task.level for task in self.tasks})
        if method is None:
            return METHODS[levels > 1 or self.on_lines]
        if method not in METHODS:
            raise TaskError(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
        if method == "active_set" and levels > 1:
            raise TaskError(f"method: active_set solves tasks of one level, these have {levels}")
        return method

    def _usual_iterations(self) -> int:
        if not self.by_active_set:
            return ITERATIONS * (3 if self.on_lines else 1)
        without_soles = self.by_accelerations or (
            bool(self.supports) and not any(s.sole for s in self.supports)
        )
        contradicting = without_soles and self.limited_torques and self.bounds.limited
        each = OF_CONTRADICTING if contradicting else OF_MOTOR
        return max(SUPPORTED if self.supports else STEPS, each * len(self.motors))

    def _rows(self) -> Rows:
        """Of the programme, with the limits in ``bounds``."""
        shares = sum(support.free_shares for support in self.supports)
        pushes = tuple(C for support in self.supports for C, _ in support.limited())
        limited, count = self.bounds.limited, len(self.motors)
        free = tuple(k for k in range(count) if k not in self.limited_torques)
        if self.by_accelerations:
            bounds = len(self.limited_torques) + len(self.separations)
            unlimited = tuple(k for k in range(count) if k not in limited)
            alone = len(unlimited) == count and not bounds
            return Rows(count, 0, (), bounds, () if alone else unlimited, len(self.limited_torques))
        bounds = len(limited) + len(self.separations)
        alone = len(free) == count and not pushes and not bounds
        return Rows(count, shares, pushes, bounds, () if alone else free)

    def with_bounds(self, bounds: Bounds) -> WholeBody:
        """The same with other limits of motors and joints, which may be scalars of a traced function.

        Args:
            bounds: the limits.
        """
        other = copy.copy(self)
        other.bounds = bounds
        other.rows = other._rows()
        other.__dict__.pop("limit_names", None)  # they depend on what is limited
        return other

    @property
    def on_lines(self) -> bool:
        """Whether a support has two points: of 12 random states of a leg on them, the active-set method left three, 10
        steps of the interior-point method one, and 30 none."""
        return any(support.line for support in self.supports)

    @once
    def by_accelerations(self) -> bool:
        """Whether accelerations are the unknowns: where every joint has a motor and nothing stands, with the active-set
        method. Not where the mass matrix may be singular: torques as unknowns find that out."""
        if not self.by_active_set or self.supports or len(self.motors) < self.robot.dof:
            return False
        return not may_be_singular(mechanism_of(self.robot))

    @property
    def limited_torques(self) -> list[int]:
        """Motors with a torque limit, as places in the list of motors; those whose limits are inputs among them."""
        numbers = [x if isinstance(x, (int, float)) else None for x in self.bounds.torque]
        return [k for k, x in enumerate(numbers) if x is None or x < UNLIMITED]

    # -- names and sizes ----------------------------------------------------------------------------------------------

    @property
    def task_names(self) -> tuple[str, ...]:
        return tuple(task.label for task in self.tasks)

    @once
    def limit_names(self) -> tuple[str, ...]:
        """A name for every limit, in the order of ``active``."""
        own = self.robot.coordinate_joints
        joints = [joint.name for joint in own for _ in range(joint.dof)]
        motors = [joints[k] for k in self.motors]
        sides = ("upper", "lower")
        torques = [f"{name} torque" for name in motors]
        motions = [f"{name} motion" for name in motors]
        distances = [f"distance of {each.label}" for each in self.separations]
        if self.by_accelerations:
            bounds = [*(torques[k] for k in self.limited_torques), *distances]
            return tuple(f"{name} {side}" for names in (motions, bounds) for side in sides for name in names)
        names = [f"{name} {side}" for side in sides for name in torques]
        for support in self.supports:
            if support.by_wrench:
                names += [f"{support.label} wrench {f + 1}" for f in range(len(support.cone))]
                continue
            for k in range(len(support.points)):
                label = support.label if len(support.points) == 1 else f"{support.label} {k + 1}"
                names += [f"{label} friction {f + 1}" for f in range(support.facets)]
                names += [f"{label} {side} force" for side in ("largest", "smallest")]
        bounds = [*(motions[k] for k in self.bounds.limited), *distances]
        return (*names, *(f"{name} {side}" for side in sides for name in bounds))

    def target_slices(self) -> list[tuple[slice, slice, slice]]:
        """Where value, rate and acceleration of every task lie in ``targets``."""
        found: list[tuple[slice, slice, slice]] = []
        at = 0
        for task in self.tasks:
            force = isinstance(task, ForceTask)
            sizes = (self.size_of(task), 0, 0) if force else task.target_sizes(self.robot)
            parts = []
            for size in sizes:
                parts.append(slice(at, at + size))
                at += size
            found.append((parts[0], parts[1], parts[2]))
        return found

    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Inputs of the kernel and their shapes."""
        shapes = {
            "q": (self.robot.nq,),
            "qd": (self.robot.dof,),
            "targets": (self.target_slices()[-1][2].stop,),
            "gains": (len(self.tasks), 3),
            "stance": (len(self.supports),),
            "start": (self.rows.count,),
        }
        return {name: shape for name, shape in shapes.items() if 0 not in shape}

    @property
    def by_active_set(self) -> bool:
        """Whether the active-set method solves the programme, or else the interior-point method."""
        return self.method == "active_set"

    @property
    def default_gains(self) -> np.ndarray:
        """(weight, k_p, k_d) of every task, (tasks, 3)."""
        return np.array([task.gains for task in self.tasks])

    @property
    def cold_start(self) -> np.ndarray:
        """For the first sample."""
        return np.zeros(self.rows.count)

    def size_of(self, task: Task) -> int:
        """Number of rows of a task, of one support for forces."""
        if not isinstance(task, ForceTask):
            return task.size(self.robot)
        sizes = {support.rows for support in self._pushed_by(task)}
        if len(sizes) != 1:
            labels = [support.label for support in self.supports]
            raise TaskError(
                f"{task.label}: expected one of the supports {labels}, or None where all are alike"
            )
        return sizes.pop()

    def _pushed_by(self, task: ForceTask) -> list[Support]:
        return [support for support in self.supports if task.contact in (None, support.label)]

    def _support_of_rows(self) -> list[int]:
        return [k for k, support in enumerate(self.supports) for _ in range(support.rows)]

    def _support_of_facets(self) -> list[int]:
        return [k for k, support in enumerate(self.supports) for C, _ in support.limited() for _ in C]

    # -- calls --------------------------------------------------------------------------------------------------------

    def targets(self, q: Any, qd: Any = None, qdd: Any = None) -> np.ndarray:
        """Targets of all tasks that a motion of the joints means, (..., targets); forces are zero.

        Args:
            q: positions, (..., nq).
            qd: velocities, (..., n); None: zero.
            qdd: accelerations, (..., n); None: zero.
        """
        q = np.asarray(q, dtype=float)
        rest = np.zeros((*q.shape[:-1], self.robot.dof))
        qd, qdd = (rest if x is None else np.asarray(x, dtype=float) for x in (qd, qdd))
        return self.reference_kernel()(q, qd, qdd)

    def reference_kernel(self, dtype: str = "float64") -> Kernel:
        """``targets`` as a kernel of (q_d, qd_d, qdd_d).

        Args:
            dtype: "float64" or "float32".
        """
        key = f"targets {dtype}"
        if key not in self._kernels:

            def targets(q_d: Any, qd_d: Any, qdd_d: Any) -> dict[str, Any]:
                return {"targets": self.references(q_d, qd_d, qdd_d)[0]}

            n = self.robot.dof
            sizes = {"q_d": self.robot.nq, "qd_d": n, "qdd_d": n}
            shapes = {"targets": (self.target_slices()[-1][2].stop,)}
            self._kernels[key] = traced_kernel(
                "whole_body_targets", targets, sizes, shapes, dtype, self.key() + b"targets"
            )
        return self._kernels[key]

    def references(self, q_d: Any, qd_d: Any, qdd_d: Any) -> list[list[Any]]:
        """[targets] of a motion of the joints, over scalars.

        Args:
            q_d, qd_d, qdd_d: positions, velocities and accelerations.
        """
        state = State(self.robot, vector(q_d), vector(qd_d))
        numbers: list[Any] = []
        for task in self.tasks:
            if isinstance(task, ForceTask):
                numbers += [0.0] * self.size_of(task)
                continue
            target = task.reference(state, vector(qdd_d))
            numbers += [*target.value, *target.rate, *target.acceleration]
        return [numbers]

    def solve(
        self, q: Any, qd: Any, targets: Any, *, gains: Any = None, stance: Any = None, start: Any = None
    ) -> tuple[WholeBodySolution, np.ndarray]:
        """(solution, start of the next sample) for one state or many.

        Args:
            q: positions, (..., nq).
            qd: velocities, (..., n).
            targets: of the tasks, (..., targets), see ``targets`` and ``target_slices``.
            gains: weight, k_p and k_d of every task, (..., tasks, 3); None: those of the tasks.
            stance: 1 for supports that stand, 0 for those in the air, (..., supports); None: all stand.
            start: from the last sample; None: ``cold_start``.

        Raises:
            SingularError: the mass matrix is singular at q, so accelerations do not follow from torques; the message
                names the joint. The kernel returns NaN then, as for states that are not numbers.
            TaskError: two supports on one body stand at the same time.
        """
        given = {
            "q": q, "qd": qd, "targets": targets,
            "gains": self.default_gains if gains is None else gains,
            "stance": np.ones(len(self.supports)) if stance is None else stance,
            "start": self.cold_start if start is None else start,
        }  # fmt: skip
        kernel, rows = self.kernel(), len(self.tasks)
        table = np.asarray(given["gains"], dtype=float)
        if table.shape[-2:] == (rows, 3):  # as a row of numbers: machine code is called directly then
            given["gains"] = table.reshape(*table.shape[:-2], 3 * rows)
        arrays = {name: np.asarray(given[name], dtype=float) for name, _ in kernel.inputs}
        found = dict(zip((name for name, _ in kernel.outputs), kernel(*arrays.values()), strict=True))
        self._check_stance(arrays)  # behind the kernel, which checks shapes
        report = found["report"]
        diagnose.singular(self.robot, report, arrays)
        forces = found.get("forces", np.zeros((*report.shape[:-1], 0, 3)))
        return WholeBodySolution(
            found["tau"], found["qdd"], forces, found["errors"], report[..., 0], report[..., 1], report[..., 2],
            found["active"], report[..., 3], self.limit_names, self.task_names,
        ), found["next_start"]  # fmt: skip

    @once
    def _on_one_body(self) -> list[tuple[int, int]]:
        """Pairs of supports that cannot stand at the same time: their points hold each other, so that a body that turns
        cannot be held by both, and how they press against each other would not be chosen."""
        bodies = [self.robot.locate(support.frame)[0] for support in self.supports]
        return [(i, k) for i, k in combinations(range(len(bodies)), 2) if bodies[i] == bodies[k]]

    def _check_stance(self, given: Mapping[str, np.ndarray]) -> None:
        for i, k in self._on_one_body:
            stands = given["stance"] > 0.0
            if (stands[..., i] & stands[..., k]).any():
                raise TaskError(
                    f"stance: {self.supports[i].label} and {self.supports[k].label} are on one body and stand at the "
                    "same time; points of a body that stand together belong to one Support"
                )

    def follow(self, stance: Any = None) -> Any:
        """A function (t, q, qd, reference) -> torques for ``simulate``: tasks follow the joints of the reference.

        It remembers its last solution.

        Args:
            stance: as for ``solve``.
        """
        held: dict[str, Any] = {"start": None}

        def controller(t: float, q: Any, qd: Any, reference: Any) -> np.ndarray:
            targets = self.targets(*reference)
            solution, held["start"] = self.solve(q, qd, targets, stance=stance, start=held["start"])
            return solution.tau

        return controller

    def _summary(self) -> Summary:
        rows = [
            ["robot", f"{self.robot.name}, {len(self.motors)} motors"],
            ["tasks", ", ".join(self.task_names)],
            ["supports", ", ".join(support.label for support in self.supports) or "none"],
            ["limits", len(self.limit_names)],
            ["iterations", f"{self.iterations}, {self.method.replace('_', ' ')}"],
        ]
        return Summary("WholeBody", ("", ""), rows)

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def kernel(self, dtype: str = "float64", *, constant_time: bool = False) -> Kernel:
        """The controller as one kernel: inputs as ``input_shapes`` says, outputs ``tau``, ``qdd``, ``forces``,
        ``errors``, ``report`` (residual, slip, beyond, avoidable), ``active`` and ``next_start``.

        Args:
            dtype: "float64" or "float32".
            constant_time: whether steps of the solver that change nothing any more are computed all the same: the time
                does not depend on the data then, and the results are the same.
        """
        constant_time = flag("constant_time", constant_time)
        key = f"{dtype} constant" if constant_time else dtype
        if key not in self._kernels:
            from linkwise.compiler.trace.room import in_one_room
            from linkwise.compiler.trace.traced_function import TracedFunction

            inputs = self.input_shapes()
            traced: list[Any] = []

            def build(precision: Any) -> Any:
                if not traced:
                    traced.append(
                        TracedFunction(
                            self._run,
                            inputs,
                            "whole_body",
                            longest=OF_LARGE if self.rows.unknowns > SIDE_BY_SIDE else WRITTEN_OUT,
                            loops=True,
                            constant_time=constant_time,
                        )
                    )
                return in_one_room(traced[0].program(precision), "tables")

            sizes = {name: int(np.prod(shape)) for name, shape in inputs.items()}
            own = self.key() + (b"constant time" if constant_time else b"")
            made = Kernel("whole_body", sizes.items(), self.output_shapes().items(), dtype, build, own)
            made.shapes = {name: shape for name, shape in inputs.items() if len(shape) > 1}
            self._kernels[key] = made
        return self._kernels[key]

    def key(self) -> bytes:
        """Stands for all that the kernel computes."""
        bounds = tuple(
            np.asarray(getattr(self.bounds, name)).tobytes() for name in self.bounds.__dataclass_fields__
        )
        parts = (
            self.robot.content(),
            self.tasks,
            self.supports,
            self.separations,
            bounds,
            self.iterations,
            self.method,
            self.damping,
        )
        return hashlib.sha256(repr(parts).encode()).digest()

    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.robot.dof
        shapes = {
            "tau": (n,), "qdd": (n,), "forces": (self.points, 3), "errors": (len(self.tasks),), "report": (4,),
            "active": (self.rows.count,), "next_start": (self.rows.count,),
        }  # fmt: skip
        return {name: shape for name, shape in shapes.items() if 0 not in shape}

    def _run(self, **given: Any) -> dict[str, Any]:
        return self.sample(given).run()

    def sample(self, given: dict[str, Any]) -> Sample:
        """One sample, to be run.

        Args:
            given: inputs by name, as arrays.
        """
        from linkwise.control.whole_body.sample import Sample
        from linkwise.control.whole_body.unsupported import UnsupportedSample

        return (UnsupportedSample if self.by_accelerations else Sample)(self, given)
