"""Contact problems as numbers: w = G p + c with the laws of contact, and solutions of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.algorithms.contact import law
from linkwise.algorithms.contact.solver import Effort


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


def problems_of(robot: lw.Robot, states) -> Problems:
    """The problems of a robot's steps from these states (q, qd, tau); it has no stops and no dry friction."""
    links, scene = robot.contact_setting({}).links(), law.scene_of(robot)
    lanes = [[np.ascontiguousarray(column) for column in part.T] for part in states]
    q, qd, tau = (links.grouped(own, positions=k == 0) for k, own in enumerate(lanes))
    frictions = [each.friction for each in scene.candidates]
    given = law.Given(0.002, frictions, [0.0] * len(frictions))
    caught = []

    def kept(problem, *_):
        caught.append(problem)
        return [0.0] * len(problem.c), [0.0] * len(problem.c)

    with np.errstate(all="ignore"):
        law.step(links, q, qd, tau, scene, given, Effort(), solve=kept)
    (problem,) = caught
    count = len(states[0])
    full = np.array([[np.broadcast_to(x, count) for x in row] for row in problem.G], float)
    return Problems(
        np.ascontiguousarray(np.moveaxis(full, 2, 0)),
        np.array([np.broadcast_to(x, count) for x in problem.c], float).T.copy(),
        np.array([np.broadcast_to(x, count) for x in problem.friction], float).T.copy(),
    )


def polished(problems: Problems, k: int, p: np.ndarray, steps: int = 8) -> tuple[np.ndarray, float]:
    """(Impulses of one problem after Newton's steps from a solution, their residual): nearer to the same solution.

    Residuals are computed in long doubles. A step is the shortest one that solves the equations of the contacts as they
    are: open, sticking or sliding.
    """
    one = Problems(problems.G[k : k + 1], problems.c[k : k + 1], problems.friction[k : k + 1])
    G, c, best = one.G[0], one.c[0], np.array(p, np.longdouble)
    least = one.residual(best[None])[0]
    for _ in range(steps):
        w = c + G.astype(np.longdouble) @ best
        wrong, slope = np.zeros(len(c), np.longdouble), np.zeros_like(G)
        for i, friction in enumerate(one.friction[0]):
            x, z = slice(3 * i, 3 * i + 2), 3 * i + 2
            stiff = 0.5 * (G[3 * i, 3 * i] + G[3 * i + 1, 3 * i + 1])
            normal, across = best[z] - w[z] / G[z, z], best[x] - w[x] / stiff
            length = np.sqrt((across**2).sum())
            limit = friction * max(normal, 0.0)
            unit = np.eye(len(c))
            dnormal = unit[z] - G[z] / G[z, z] if normal > 0.0 else 0.0 * unit[z]
            dacross = unit[x] - G[x] / stiff
            if length > limit:
                along = (across / length).astype(float)
                turn = (limit / length) * (np.eye(2) - np.outer(along, along))
                moved = turn.astype(float) @ dacross + friction * np.outer(along, dnormal)
            else:
                moved = dacross if normal > 0.0 else 0.0 * dacross
            wrong[x] = best[x] - across * min(1.0, limit / max(length, np.longdouble(1e-300)))
            wrong[z] = best[z] - max(normal, 0.0)
            slope[x], slope[z] = unit[x] - moved, unit[z] - dnormal
        new = best - np.linalg.lstsq(slope, wrong.astype(float), rcond=1e-12)[0]
        residual = one.residual(new[None])[0]
        if residual >= least:
            break
        best, least = new, residual
    return best.astype(float), float(least)


def solved_by_pinocchio(
    pin, problems: Problems, k: int, method: str = "ADMM", tightest: bool = True
) -> np.ndarray | None:
    """Impulses of one problem by a solver of Pinocchio (ADMM or PGS), None where it does not end.

    At its tightest tolerance, or with its default settings.
    """
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for friction in problems.friction[k]:
        contact = pin.PointContactConstraintModel(model, joint, pin.SE3.Identity())
        contact.setFriction(float(friction))
        models.append(pin.ConstraintModel(contact))
        datas.append(models[-1].createData())
    settings, result = getattr(pin, f"{method}SolverSettings")(), getattr(pin, f"{method}SolverResult")()
    if tightest:
        settings.max_iterations = 10_000
        settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-13
        settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    c = problems.c[k]
    found = getattr(pin, f"{method}ConstraintSolver")(len(c))
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
