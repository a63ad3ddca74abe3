"""Contact problems as numbers: w = G p + c with the laws of contact, and solutions of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.algorithms.contact import law
from linkwise.algorithms.contact.solver import Effort


@dataclass(frozen=True, eq=False)
class Problems:
    """Matrices G (problems, n, n), velocities c without impulses (problems, n), μ of every contact, and c without what
    gaps add to it."""

    G: np.ndarray
    c: np.ndarray
    friction: np.ndarray
    free: np.ndarray

    def part(self, which) -> Problems:
        """Some of them."""
        return Problems(self.G[which], self.c[which], self.friction[which], self.free[which])

    def velocities(self, p: np.ndarray) -> np.ndarray:
        return self.c + np.einsum("nij,nj->ni", self.G, p)

    @property
    def size(self) -> np.ndarray:
        """The largest velocity without impulses, (problems,): far gaps would make it as large as one likes."""
        return np.abs(self.free).max(axis=1)

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
    c, friction, free = (
        np.array([np.broadcast_to(x, count) for x in rows], float).T.copy()
        for rows in (problem.c, problem.friction, problem.free)
    )
    return Problems(np.ascontiguousarray(np.moveaxis(full, 2, 0)), c, friction, free)


OPEN, STICKS, SLIDES = range(3)
SLIDING = (1e-9, 1e-7, 1e-5)
"""Velocities of a contact, relative to the largest one without impulses, from which it slides, as they are tried."""
INSIDE = 1e-6
"""Part of the cone by which impulses of contacts at rest are moved inside of it at first."""


def polished(problems: Problems, k: int, p: np.ndarray, rounds: int = 400) -> tuple[np.ndarray, float]:
    """(Impulses of one problem from a solution, their residual in long doubles): nearer to the same solution.

    For ten rounds contacts stay open, sticking or sliding. A round takes the impulses of those that stick into their
    cones, and then the shortest steps that solve the equations of all contacts. Where impulses are not unique, as those
    of four corners at rest, they leave the edges of their cones, where round-off would decide what slides. It ends
    where ten rounds do not make the residual smaller by a tenth.
    """
    one = problems.part([k])
    best = np.array(p, np.longdouble)
    least = one.residual(best[None])[0]
    for sliding in SLIDING:
        now, kinds, before = np.array(p, np.longdouble), [], np.inf
        for place in range(rounds):
            if place % 10 == 0:
                kinds = choices(one, now, sliding)
            now = _improved(one, kinds, now, INSIDE * 0.9**place)
            residual = one.residual(now[None])[0]
            if residual < least:
                best, least = now, residual
            if place % 10 == 9:
                if residual < 1e-15 or not residual < 0.9 * before:
                    break
                before = residual
        if least < 1e-14:
            break
    return best.astype(float), float(least)


def _improved(one: Problems, kinds: list[int], p: np.ndarray, inside: float) -> np.ndarray:
    """After a round of ``polished``."""
    p = p.copy()
    for i, (kind, friction) in enumerate(zip(kinds, (1.0 - inside) * one.friction[0], strict=True)):
        if kind == STICKS:
            p[3 * i : 3 * i + 3] = _in_cone(p[3 * i : 3 * i + 3], friction)
    for _ in range(3):
        wrong, slope = _equations(one, kinds, p)
        p = p - np.linalg.lstsq(slope, wrong.astype(float), rcond=1e-12)[0]
    return p


def contradiction(problems: Problems, k: int, p: np.ndarray) -> float:
    """What no impulses can take from the velocities that must be zero, where contacts stay open, sticking or sliding as
    they are at p; relative to the largest velocity without impulses. A solution has round-off."""
    one = problems.part([k])
    kinds = choices(one, p, SLIDING[0])
    closed = [3 * i + j for i, kind in enumerate(kinds) for j in range(3) if kind != OPEN]
    zero = [
        3 * i + j
        for i, kind in enumerate(kinds)
        for j in range(3)
        if kind == STICKS or (kind, j) == (SLIDES, 2)
    ]
    G, c = one.G[0][np.ix_(zero, closed)], one.c[0][zero]
    left = c - G @ np.linalg.lstsq(G, c, rcond=1e-12)[0]
    return float(np.sqrt((left**2).mean()) / one.size[0]) if zero else 0.0


def choices(one: Problems, p: np.ndarray, sliding: float) -> list[int]:
    """What each contact of a single problem does at these impulses; it slides from this relative velocity on."""
    w = one.velocities(np.asarray(p, float)[None])[0]
    found = []
    for i in range(one.friction.shape[1]):
        x, z = slice(3 * i, 3 * i + 2), 3 * i + 2
        slides = np.linalg.norm(w[x]) > sliding * one.size[0]
        found.append(OPEN if p[z] <= w[z] / one.G[0, z, z] else SLIDES if slides else STICKS)
    return found


def _in_cone(p: np.ndarray, friction: float) -> np.ndarray:
    """The nearest impulse of the cone."""
    length = np.sqrt((p[:2] ** 2).sum())
    if length <= friction * p[2]:
        return p
    normal = max((p[2] + friction * length) / (1.0 + friction**2), 0.0)
    return np.array([*(friction * normal / length * p[:2]), normal])


def _equations(one: Problems, kinds: list[int], p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(what must be zero, its derivatives): impulses of open contacts, velocities of those that stick, normal
    velocities and p_t + μ p_n w_t/|w_t| of those that slide; all as impulses."""
    G, unit = one.G[0], np.eye(len(p))
    w = one.c[0] + G.astype(np.longdouble) @ p
    wrong, slope = np.array(p), np.array(unit)
    for i, (kind, friction) in enumerate(zip(kinds, one.friction[0], strict=True)):
        x, z = slice(3 * i, 3 * i + 2), 3 * i + 2
        if kind == OPEN:
            continue
        wrong[z], slope[z] = w[z] / G[z, z], G[z] / G[z, z]
        stiff = 0.5 * (G[3 * i, 3 * i] + G[3 * i + 1, 3 * i + 1])
        if kind == STICKS:
            wrong[x], slope[x] = w[x] / stiff, G[x] / stiff
            continue
        speed = np.sqrt((w[x] ** 2).sum())
        along = (w[x] / speed).astype(float)
        turn = float(friction * p[z] / speed) * (np.eye(2) - np.outer(along, along))
        wrong[x] = p[x] + friction * p[z] * along
        slope[x] = unit[x] + friction * np.outer(along, unit[z]) + turn @ G[x]
    return wrong, slope


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
