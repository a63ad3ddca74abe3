"""Contact problems as numbers: w = G p + c with the laws of contact, and solutions of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise import arrays
from linkwise.algorithms.contact import effort, solver
from linkwise.functions import FUNCTIONS


@dataclass(frozen=True, eq=False)
class Problems:
    """Matrices G (problems, n, n), velocities c without impulses (problems, n), μ of every contact."""

    G: np.ndarray
    c: np.ndarray
    friction: np.ndarray

    def velocities(self, p: np.ndarray) -> np.ndarray:
        return self.c + np.einsum("nij,nj->ni", self.G, p)

    @property
    def size(self) -> np.ndarray:
        """The largest velocity without impulses, (problems,)."""
        return np.abs(self.c).max(axis=1)

    def residual(self, p: np.ndarray) -> np.ndarray:
        """How far impulses are from the laws, as velocities relative to ``size``; in long doubles."""
        G, p = self.G.astype(np.longdouble), p.astype(np.longdouble)
        w = self.c + np.einsum("nij,nj->ni", G, p)
        worst = np.zeros(len(p), np.longdouble)
        for k in range(self.friction.shape[1]):
            x, z = slice(3 * k, 3 * k + 2), 3 * k + 2
            stiff = 0.5 * (G[:, 3 * k, 3 * k] + G[:, 3 * k + 1, 3 * k + 1])
            normal = np.maximum(p[:, z] - w[:, z] / G[:, z, z], 0.0)
            across = p[:, x] - w[:, x] / stiff[:, None]
            length = np.sqrt((across**2).sum(axis=1)) + np.longdouble(1e-300)
            part = np.minimum(1.0, self.friction[:, k] * normal / length)
            tangents = np.abs(p[:, x] - part[:, None] * across).max(axis=1) * stiff
            worst = np.maximum(worst, np.maximum(tangents, np.abs(p[:, z] - normal) * G[:, z, z]))
        return (worst / self.size).astype(float)


class _FoundError(Exception):
    """Carries a problem out of the step that solves it."""


def problems_of(robot: lw.Robot, states) -> Problems:
    """The problems of a robot's steps from these states (q, qd, tau); it has no stops and no dry friction."""

    def caught(problem, *_):
        raise _FoundError(problem)

    kept = solver.solve, effort.chosen
    solver.solve, effort.chosen = caught, lambda *_: solver.Effort(1, 0)
    try:
        given = dict(zip(("q", "qd", "tau"), states, strict=True))
        setting = robot.contact_setting({})
        arrays.run_on_arrays(FUNCTIONS["contact_step"], setting, "compound_link", given)
    except _FoundError as caught_problem:
        problem = caught_problem.args[0]
    finally:
        solver.solve, effort.chosen = kept
    count = len(states[0])
    full = np.array([[np.broadcast_to(x, count) for x in row] for row in problem.G], float)
    return Problems(
        np.ascontiguousarray(np.moveaxis(full, 2, 0)),
        np.array([np.broadcast_to(x, count) for x in problem.c], float).T.copy(),
        np.array([np.broadcast_to(x, count) for x in problem.friction], float).T.copy(),
    )


def solved_by_pinocchio(pin, problems: Problems, k: int) -> np.ndarray | None:
    """Impulses of one problem by Pinocchio's ADMM solver at its tightest tolerance, None where it does not end."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for friction in problems.friction[k]:
        contact = pin.PointContactConstraintModel(model, joint, pin.SE3.Identity())
        contact.setFriction(float(friction))
        models.append(pin.ConstraintModel(contact))
        datas.append(models[-1].createData())
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.max_iterations = 10_000
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-13
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    c = problems.c[k]
    found = pin.ADMMConstraintSolver(len(c))
    ended = found.solve(pin.DelassusOperatorDense(problems.G[k]), c, models, datas, settings, result)
    return np.array(result.retrieveConstraintImpulses()) if ended else None


def swept(problems: Problems, sweeps: int) -> np.ndarray:
    """Impulses by projected sweeps in long doubles: slow, plain, and independent of the package."""
    G, c = problems.G.astype(np.longdouble), problems.c.astype(np.longdouble)
    p = np.zeros_like(c)
    for _ in range(sweeps):
        for k in range(problems.friction.shape[1]):
            own, z = slice(3 * k, 3 * k + 3), 3 * k + 2
            w = c[:, own] + np.einsum("nij,nj->ni", G[:, own], p)
            normal = np.maximum(p[:, z] - w[:, 2] / G[:, z, z], 0.0)
            stiff = G[:, 3 * k, 3 * k] + G[:, 3 * k + 1, 3 * k + 1]
            across = p[:, 3 * k : z] - w[:, :2] / stiff[:, None]
            length = np.sqrt((across**2).sum(axis=1)) + np.longdouble(1e-300)
            p[:, 3 * k : z] = across * np.minimum(1.0, problems.friction[:, k] * normal / length)[:, None]
            p[:, z] = normal
    return p.astype(float)
