"""Counting operations: of one robot, and of the general arm that the papers count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from linkwise.cli.parts.published import published

if TYPE_CHECKING:
    from linkwise.compiler.ir.operations import Operations
    from linkwise.functions.table import Function
    from linkwise.robot.robot import Robot

USUAL = (
    "inverse_dynamics",
    "forward_dynamics",
    "iterated_forward_dynamics",
    "mass_matrix",
    "inverse_mass_matrix",
    "gravity_torques",
    "coefficients",
    "velocity_torques",
    "bias_torques",
)


@dataclass(frozen=True)
class Row:
    """The counts of one algorithm: on this robot as it runs, and on a general arm with as many joints, with all ten
    parameters of every link (as the papers count) and with parameters regrouped (as it would run)."""

    function: str
    algorithm: str
    own: Operations
    general: Operations | None
    general_regrouped: Operations | None
    printed: list[tuple[str, int, int]]
    iterations: int = 0  # how many passes of its loop are in the totals


def functions(names: Sequence[str] | None = None) -> list[Function]:
    """The functions to count, by name; None: the usual ones."""
    from linkwise.functions.table import function_named

    return [function_named(name) for name in (USUAL if names is None else names)]


def count(
    robot: Robot, function: Function, algorithm: str, *, friction: bool = True, regroup: bool = True
) -> Operations | None:
    """The operations of one algorithm; None if the robot is too large for one straight program.

    ``regroup``: with inertial parameters regrouped into base parameters where that keeps the results, as calls do it.
    """
    from linkwise.functions.table import Setting
    from linkwise.robot.kernels import is_straight

    if not is_straight(function, Setting(robot), algorithm):
        return None
    frame = robot.leaf_names[0] if function.name in ("pose", "jacobian", "velocity") else None
    kernel = robot.kernel(
        function.name,
        algorithm=algorithm,
        friction=friction,
        frame=frame,
        base_parameters=regroup and function.regroups,
    )
    return kernel.operations


def rows(robot: Robot, names: Sequence[str] | None, friction: bool = True) -> Iterator[Row]:
    """The counts of every algorithm of these functions."""
    from linkwise.robot.loading import general_chain

    chosen = functions(names)
    axes = axes_of(robot)
    general = general_chain(robot.dof, twists=axes, base_offsets=False) if axes is not None else None
    for function in chosen:
        for algorithm in function.algorithms:
            own = count(robot, function, algorithm, friction=friction)
            if own is None:
                continue
            loops = robot.dof if own.per_iteration is not None else 0
            plain, regrouped = (
                count(general, function, algorithm, regroup=regroup) if general is not None else None
                for regroup in (False, True)
            )
            name = "forward_dynamics" if function.name == "iterated_forward_dynamics" else function.name
            printed = published(name, algorithm, axes, robot.dof, robot.name) if axes is not None else []
            yield Row(name, algorithm, own, plain, regrouped, printed, loops)


def as_printed(operations: Operations | None, iterations: int = 0) -> str:
    """multiplications/additions, divisions among the multiplications, as the papers have it."""
    if operations is None:
        return ""
    multiplications, additions, divisions = totals(operations, iterations)
    return f"{multiplications + divisions}/{additions}"


def totals(operations: Operations, iterations: int = 0) -> tuple[int, int, int]:
    """(multiplications, additions, divisions), with so many passes of the loop."""
    once = operations.per_iteration
    counts = (operations.multiplications, operations.additions, operations.divisions)
    if once is None or not iterations:
        return counts
    loop = (once.multiplications, once.additions, once.divisions)
    multiplications, additions, divisions = (a + iterations * b for a, b in zip(counts, loop, strict=True))
    return multiplications, additions, divisions


def axes_of(robot: Robot) -> str | None:
    """ "perpendicular" or "general" for a chain of revolute joints, as the papers classify arms; None for others."""
    from linkwise.model import Transform

    joints = robot.moving_joints
    if not joints or not all(joint.revolute for joint in joints):
        return None
    if any(robot.carrier(joint.parent)[0] != k - 1 for k, joint in enumerate(joints)):
        return None
    placed = {robot.base: Transform.identity()}
    for joint in robot.joints:
        placed[joint.child] = placed[joint.parent] @ joint.origin
    directions = [placed[joint.child].rotation @ joint.axis for joint in joints]
    cosines = [abs(float(a @ b)) for a, b in pairwise(directions)]
    plain = all(cosine < 1e-9 or cosine > 1 - 1e-9 for cosine in cosines)
    return "perpendicular" if plain else "general"
