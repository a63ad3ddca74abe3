"""Which parameters can be distinguished: Izaguirre's rank procedure (1992, section 6.1).

Columns are taken one after the other. If the smallest singular value of those taken so far vanishes, the last one is
spanned by those before it: it is dropped, and its parameter passes to theirs (27)–(29). He took 1e-10 for zero; here
columns are scaled to unit length first, and the singular values with and without rank are compared: they must lie far
apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.errors import IdentificationError
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

ROUND_OFF, CERTAIN = 1e-12, 1e-4  # a singular value below the first is zero, above the second it is not
STATES = 100  # random states, as in the paper


def base_by_rank(
    robot: Robot, *, order: Sequence[str] | str = "rotors first", seed: int = 0
) -> BaseParameters:
    """The base parameters of a robot by the rank of its regressor at random states.

    Args:
        robot: the robot.
        order: labels in the order in which they are taken (those left out come last), or "rotors first": rotor
            inertias, then the links from the tip to the base, then friction, as in the paper.
        seed: of the random states.
    """
    labels = robot.parameter_labels
    W = robot.regressor(*random_states(robot, STATES, seed)).reshape(-1, len(labels))
    if isinstance(order, str):
        order = rotors_first(labels, robot.dof)
    return independent(W, labels, order, robot.parameters)


def rotors_first(labels: Sequence[str], links: int) -> list[str]:
    """Rotor inertias, then ten parameters of each link from the tip to the base, then the rest."""
    tip_first = [label for k in reversed(range(links)) for label in labels[10 * k : 10 * k + 10]]
    rotors = [label for label in labels[10 * links :] if label.endswith(".rotor_inertia")]
    return [*rotors, *tip_first, *(label for label in labels[10 * links :] if label not in rotors)]


def regrouping_order(labels: Sequence[str], robot: Robot) -> list[str]:
    """Rotor inertias first, and last what can pass to the parent link: m, h along the axis and one moment of inertia.

    The base parameters are then those of Gautier and Khalil, whose zeros make generated code shorter.
    """
    first, last = [], []
    for k, joint in enumerate(robot.coordinate_joints):
        own = list(labels[10 * k : 10 * k + 10])
        along = int(np.argmax(np.abs(joint.axis)))
        if joint.revolute:
            passing = {0, 1 + along, (4, 7, 9)[(along + 2) % 3]}
        else:
            passing = set(range(4, 10))
        first += [label for place, label in enumerate(own) if place not in passing]
        last += [label for place, label in enumerate(own) if place in passing]
    rotors = [label for label in labels if label.endswith(".rotor_inertia")]
    return [*rotors, *first, *last]


def independent(
    W: np.ndarray, labels: Sequence[str], order: Sequence[str] = (), values: np.ndarray | None = None
) -> BaseParameters:
    """Independent columns of W (rows, p), and how the other parameters pass to theirs; values (p,) if known."""
    place = {label: k for k, label in enumerate(labels)}
    for label in order:
        if label not in place:
            raise UnknownNameError(f"order: no parameter {label!r}; {suggest(label, labels)}")
    first = [place[label] for label in order]
    sequence = first + [k for k in range(len(labels)) if k not in set(first)]
    length = np.sqrt((W**2).sum(axis=0))
    unit = W / np.where(length > 0, length, 1.0)
    triangle = linear.triangle(unit)  # the same singular values from far fewer rows
    kept: list[int] = []
    dropped = [k for k in range(len(labels)) if length[k] <= ROUND_OFF * length.max()]
    smallest, largest, weakest = 1.0, 0.0, ""
    for k in sequence:
        if k in dropped:
            continue
        value = float(linear.singular_values(triangle[:, [*kept, k]])[-1])
        if value > np.sqrt(ROUND_OFF * CERTAIN):
            kept.append(k)
            if value < smallest:
                smallest, weakest = value, labels[k]
        else:
            dropped.append(k)
            largest = max(largest, value)
    if smallest < CERTAIN and smallest < 1e3 * largest:
        raise IdentificationError(
            f"rank: no clear gap: with {weakest} the smallest singular value is {smallest:.1e}, "
            f"and {largest:.1e} was taken for zero"
        )
    kept, dropped = sorted(kept), sorted(dropped)
    combination = np.zeros((len(kept), len(labels)))
    combination[np.arange(len(kept)), kept] = 1.0
    if dropped:
        passed = linear.solve_least_squares(unit[:, kept], unit[:, dropped])
        passed *= length[dropped] / length[kept][:, None]
        passed[np.abs(passed) < 1e-9 * np.maximum(1.0, np.abs(passed).max(axis=0))] = 0.0
        combination[:, dropped] = passed
    known = np.full(len(labels), np.nan) if values is None else np.asarray(values, dtype=float)
    return BaseParameters(
        tuple(labels[k] for k in kept),
        combination,
        tuple(kept),
        product(combination, known),
        tuple(labels),
        (smallest, largest),
    )


def random_states(robot: Robot, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, q̇, q̈, each (count, n), q within the limits."""
    rng = np.random.default_rng(seed)
    lower = np.array([max(joint.limits.lower, -np.pi) for joint in robot.coordinate_joints])
    upper = np.array([min(joint.limits.upper, np.pi) for joint in robot.coordinate_joints])
    fixed = upper <= lower
    lower, upper = np.where(fixed, -1.0, lower), np.where(fixed, 1.0, upper)
    q = rng.uniform(lower, upper, (count, robot.dof))
    qd, qdd = rng.uniform(-1, 1, (2, count, robot.dof)) * np.array([2.0, 5.0])[:, None, None]
    return q, qd, qdd
