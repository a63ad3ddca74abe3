"""Calls that are not methods of one kernel each: robots with constraints, impacts, controllers, one integration step.

``NOT_TIMED`` names every other public method of ``Robot`` with the reason why ``linkwise bench --calls`` has no row for
it; a method that is in neither list fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.bench.calls import BATCHES, CONVERTED, DENSE, KEYWORD, Kind, bound, kinds
from linkwise.compiler.kernel import Kernel
from linkwise.control.named import named
from linkwise.errors import LinkwiseError
from linkwise.model.constraints import Point
from linkwise.robot.methods import Method
from linkwise.robot.robot import Robot
from linkwise.simulate.loop import step_kernel

CONSTRAINED = ("forward_dynamics", "constraint_jacobian", "constraint_errors", "delassus_matrix")
PERIOD = 1e-3  # [s]

_MODELS = "makes another robot or a kernel; once, not in a loop"
_FACTS = "says something about the robot; no state goes in"
_SEARCHES = "an iteration over many calls; benchmarks/inverse_kinematics.py times it"
_INSIDE = "shows the inside of an algorithm for one state, for people"
NOT_TIMED = {
    "in_collision": "needs a world; benchmarks/planning.py times it",
    **dict.fromkeys(("from_model", "kernel", "compile", "link_side", "lock", "with_base"), _MODELS),
    **dict.fromkeys(
        (
            "with_constraints",
            "with_contacts",
            "with_coupled_mimics",
            "with_elastic_joints",
            "with_frames",
            "with_gravity",
            "with_motors",
        ),
        _MODELS,
    ),
    **dict.fromkeys(
        ("with_fluid", "with_mimics", "with_parameters", "with_payload", "base_parameters"), _MODELS
    ),
    "content_without_targets": _FACTS,
    **dict.fromkeys(("algorithms", "bodies", "carrier", "content", "default_frame", "is_parameter"), _FACTS),
    **dict.fromkeys(("contact_setting", "kernel_for", "labelled_bodies", "locate", "directions"), _FACTS),
    **dict.fromkeys(("inverse_kinematics", "meet_constraints"), _SEARCHES),
    **dict.fromkeys(("acceleration_parts", "conjugate_gradient", "constraint_rank", "filter"), _INSIDE),
    **dict.fromkeys(("as_ode", "plot", "save", "show", "random"), "files, pictures, pages, random numbers"),
    "manipulability": "jacobian and a determinant by NumPy",
}
TIMED = ("constraint_forces", "impact")  # by ``rows``, besides the methods that are one kernel each


def without_a_row() -> list[str]:
    """Public methods of robots that are neither timed nor listed above."""
    public = [name for name in dir(Robot) if not name.startswith("_") and callable(getattr(Robot, name))]
    known = {*NOT_TIMED, *TIMED}
    return [name for name in public if not isinstance(getattr(Robot, name), Method) and name not in known]


def rows(robot: Robot) -> Iterator[tuple[str, list[Kind]]]:
    """Title and kinds of calls of every further row that this robot has."""
    rng = np.random.default_rng(6)
    yield "controller", list(_controller(robot, rng))
    if robot.nq == robot.dof:
        step = step_kernel(robot)
        yield "one step", list(_plain("one step", step, step, robot, rng))
    held = constrained(robot)
    if held is None:
        return
    for name in CONSTRAINED:
        try:
            found = [_titled(kind) for kind in kinds(held, name)]
        except LinkwiseError:
            return  # too few joints to hold a point
        yield f"constrained {name}", found
    for name in TIMED:
        kernel = held.kernel(name)
        assert isinstance(kernel, Kernel)
        yield name, list(_plain(name, getattr(held, name), kernel, held, rng, CONVERTED))


def constrained(robot: Robot) -> Robot | None:
    """The robot held at one point of its first leaf; None where it has constraints that cannot be added to."""
    frame = robot.leaf_names[0]
    try:
        return robot.with_constraints([Point(frame, robot.pose(robot.neutral, frame)[:3, 3])])
    except LinkwiseError:
        return None


def _titled(kind: Kind) -> Kind:
    return replace(kind, function=f"constrained {kind.function}")


def _controller(robot: Robot, rng: np.random.Generator) -> Iterator[Kind]:
    kernel = named("gravity_pd", robot, frequency=5.0).kernel(PERIOD)
    return _plain("controller", kernel, kernel, robot, rng)


def _plain(
    title: str,
    call: Callable[..., Any],
    kernel: Kernel,
    robot: Robot,
    rng: np.random.Generator,
    limit: float = DENSE,
) -> Iterator[Kind]:
    """The kinds of calls that every function has."""

    def arguments(*batch: int) -> list[np.ndarray]:
        made = []
        for name, size in kernel.inputs:
            if name in ("q", "q_d"):
                made.append(np.ascontiguousarray(robot.random(rng, batch) if batch else robot.random(rng)))
            elif name != "restitution":
                made.append(rng.uniform(0.0, 1e-3 if name == "step" else 1.0, (*batch, size)))
        return made

    one = arguments()
    yield Kind(title, "arrays", limit, bound(call, one, {}), kernel)
    few = [a.astype(np.float32) for a in one]
    yield Kind(title, "float32", limit, bound(call, few, {}), kernel, dtype="float32")
    yield Kind(title, "threads=1", max(limit, KEYWORD), bound(call, one, {"threads": 1}), kernel)
    yield Kind(title, "lists", CONVERTED, bound(call, [a.tolist() for a in one], {}), kernel)
    yield Kind(title, "strided", CONVERTED, bound(call, [np.repeat(a, 2)[::2] for a in one], {}), kernel)
    for count in BATCHES:
        yield Kind(
            title, f"batch {count}", max(limit, KEYWORD), bound(call, arguments(count), {}), kernel, count
        )
