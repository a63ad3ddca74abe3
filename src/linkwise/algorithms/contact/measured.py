"""Residuals of a robot's own contact problems: how many sweeps and Newton's steps it needs.

States are drawn at random: joints in the middle half of their ranges, a floating base that is nearly upright, the
ground just under every candidate, so that most of them touch. That is harder than what robots meet when they stand,
walk and fall. Random numbers have a fixed seed: a robot gets the same effort each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import coupling
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.contact import candidates, law, solver
from linkwise.algorithms.contact.solver import Effort, Problem
from linkwise.model.mechanism import Mechanism

SAMPLES = 256
SPEED = 0.5  # [rad/s or m/s]
GAP = 0.003  # [m]
STEP = 0.002  # [s]


def least_effort(
    model: Any, links: Mechanism, scene: law.Scene, efforts: Sequence[Effort], residual: float, share: float
) -> Effort | None:
    """The first of the efforts with which the robot's problems have this residual, else the last one.

    None where the links have symbols: then there are no numbers to measure.

    Args:
        model: the robot, for the ranges of its joints and its mass.
        links: its links.
        scene: what may touch what.
        efforts: in the order of their cost.
        residual: relative to velocities without impulses.
        share: of the samples that must have it.
    """
    with constraints.computed_in("float64"), np.errstate(all="ignore"):
        problem, size = _problem(model, links, scene)
        if problem is None:
            return None
        for effort in efforts:
            _, residuals = solver.solve(problem, effort)
            worst = np.max([np.abs(np.broadcast_to(_numbers(x), SAMPLES)) for x in residuals], axis=0)
            if np.mean(worst <= residual * size) >= share:
                return effort
    return efforts[-1]


def _problem(model: Any, links: Mechanism, scene: law.Scene) -> tuple[Problem | None, np.ndarray]:
    """(the problems of all samples, their largest velocities without impulses)."""
    rng = np.random.default_rng(0)
    weight = 9.81 * sum(link.inertia.mass for link in model.links)
    q = _lanes(links, _positions(model, rng), positions=True)
    qd = _lanes(links, SPEED * rng.normal(size=(SAMPLES, model.dof)))
    torques = 0.03 * weight * rng.normal(size=(SAMPLES, model.dof))
    gaps = candidates.gaps(links, q, scene.candidates, [0.0] * len(scene.candidates))
    if not all(isinstance(gap, (float, np.ndarray)) for gap in gaps):
        return None, np.zeros(0)
    away = GAP * rng.normal(size=(len(gaps), SAMPLES)) * rng.integers(0, 2, size=(len(gaps), SAMPLES))
    given = law.Given(
        STEP,
        [each.friction for each in scene.candidates],
        [gap - some for gap, some in zip(gaps, away, strict=True)],
    )
    problems: list[Problem] = []

    def kept(problem: Problem, *_: Any) -> tuple[list[Any], list[Any]]:
        problems.append(problem)
        return [0.0] * len(problem.c), [0.0] * len(problem.c)

    law.step(links, q, qd, _lanes(links, torques, forces=True), scene, given, Effort(), solve=kept)
    free = np.array([np.broadcast_to(_numbers(x), SAMPLES) for x in problems[0].c], dtype=float)
    return problems[0], np.abs(free).max(axis=0)


def _lanes(links: Mechanism, values: np.ndarray, **kind: bool) -> Any:
    columns: Any = [np.ascontiguousarray(column) for column in values.T]
    return coupling.expanded(links, columns, **kind)


def _numbers(x: Any) -> Any:
    return np.asarray(x, dtype=float)


def _positions(model: Any, rng: np.random.Generator) -> np.ndarray:
    columns: list[np.ndarray] = []
    for joint in model.coordinate_joints:
        own = joint.random(rng, (SAMPLES,))
        if joint.type == "floating":
            own = 0.1 * rng.normal(size=(SAMPLES, joint.nq))
            own[:, :3], own[:, -1] = 0.0, 1.0
        elif np.isfinite(joint.limits.lower) and np.isfinite(joint.limits.upper) and joint.nq == 1:
            own = 0.25 * (joint.limits.lower + joint.limits.upper) + 0.5 * own
        columns.append(own)
    return np.concatenate(columns, axis=1)
