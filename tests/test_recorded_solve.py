"""Numerical methods on plain numbers beside the results that are recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from linkwise.solve import factors, limited, linear, riccati, softness
from linkwise.solve.active_set import ActiveSet
from linkwise.solve.cones import facets
from linkwise.solve.cost_factors import CostFactors
from linkwise.solve.limited import Programme, Rows
from linkwise.solve.quadratic import interior_point
from linkwise.solve.tridiagonal import solve_tridiagonal
from recorded import Scenarios, told

scenarios = Scenarios("solve")
TURNS = 0.4
"""Of a rotation in blocks of a Riccati step."""
PYRAMID = np.array([[1, 0, -0.5], [-1, 0, -0.5], [0, 1, -0.5], [0, -1, -0.5], [0, 0, 1], [0, 0, -1]], float)


def plain(x: Any) -> Any:
    return None if x is None else np.asarray(x, float).astype(object)


def gram(A: np.ndarray) -> np.ndarray:
    """Aᵀ A, by NumPy's sums and not by BLAS."""
    return (A[:, :, None] * A[:, None, :]).sum(axis=0)


def numbers(x: Any) -> Any:
    return np.array(np.asarray(x, dtype=object).tolist(), float)


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    return gram(rng.normal(size=(n, n))) + np.eye(n)


@scenarios
def factors_of_matrices():
    rng, found = np.random.default_rng(1), {}
    for n in (1, 3, 8, 14):
        A, b, B = definite(rng, n), rng.normal(size=n), rng.normal(size=(n, 3))
        low = np.tri(n, k=-1)
        L, inverse = factors.ldl(plain(A))
        found[f"ldl {n}"] = [numbers(np.where(low, L, 0.0)), numbers(inverse)]
        for given in (b, B):
            found[f"solved {n} {given.ndim}"] = numbers(factors.solve(L, inverse, plain(given)))
        for name in ("solve_lower", "solve_upper"):
            x = plain(b)
            getattr(factors, name)(L, x)
            found[f"{name} {n}"] = numbers(x)
        L, inverse = factors.ldl_from_last(plain(A))
        back = factors.back_substituted(L, plain(b))
        found[f"from last {n}"] = numbers(factors.substituted(L, factors.scaled(inverse, back)))
        for shift in (0.0, 2.0, 9.0):
            L, inverse, sound = factors.ldl_of_any(plain(A - shift * np.eye(n)), 1e-3)
            found[f"any {n} {shift}"] = [numbers(np.where(low, L, 0.0)), numbers(inverse), float(sound)]
        found[f"largest {n}"] = float(factors.largest(plain(b)))
    L, inverse, sound = factors.ldl_of_any(plain([[1.0, 1.0], [1.0, 1.0]]), 1e-9)
    return found | {"singular": [numbers(inverse), float(sound)]}


@scenarios
def linear_algebra():
    rng, found = np.random.default_rng(2), {}
    for rows, columns in ((3, 3), (5, 3), (7, 7), (12, 5)):
        A, b = rng.normal(size=(rows, columns)), rng.normal(size=rows)
        name = f"{rows} {columns}"
        found[f"product {name}"] = linear.product(A.T, A)
        found[f"dot {name}"] = linear.dot(A[:, 0], b)
        found[f"triangle {name}"] = linear.triangle(A)
        found[f"singular {name}"] = linear.singular_values(A)
        values, V = linear.svd(A)
        found[f"svd {name}"] = [values, np.abs(V)]
        found[f"least {name}"] = linear.solve_least_squares(A, b)
        found[f"cut {name}"] = linear.solve_least_squares(A, b, 0.5)
        found[f"pseudo {name}"] = linear.pseudo_inverse(A)
        found[f"orthonormal {name}"] = linear.orthonormal(A)
        S = gram(A)
        values, V = linear.symmetric_eigen(S)
        found[f"eigen {name}"] = [values, np.abs(V)]
        found[f"cholesky {name}"] = linear.cholesky(S)
        found[f"solve {name}"] = linear.solve(S, A[0])
        found[f"inverse {name}"] = linear.inverse(S)
    thin = np.outer([1.0, 2.0, -1.0], [0.5, 1.5])
    return found | {
        "rank": [linear.solve_least_squares(thin, [1.0, 0.0, 2.0]), linear.pseudo_inverse(thin)],
        "logarithm": linear.logarithm([0.03, 1.0, 7.7, 1e9]),
        "sine": linear.sine_and_cosine([0.03, -1.0, 7.7, 1e3]),
        "singular": told(linear.solve, [[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]),
        "not definite": told(linear.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
    }


@cache
def given(
    seed: int, others: int = 0, points: int = 2, bounds: int = 3, tasks: int = 7, boxes: int = 5
) -> tuple:
    """(rows, P, p, S, limits) with a point inside all limits; limits of upper and lower ends differ."""
    rng = np.random.default_rng(seed)
    rows = Rows(boxes, others, (PYRAMID,) * points, bounds)
    N = rows.unknowns
    units = rng.uniform(0.3, 3.0, size=boxes)  # powers of NumPy differ between processors
    A = rng.normal(size=(tasks, boxes)) * units
    P, p = np.zeros((N, N)), np.zeros(N)
    P[:boxes, :boxes] = gram(A)
    p[:boxes] = (A * rng.normal(size=(tasks, 1)) * 3.0).sum(axis=0)
    S = rng.normal(size=(bounds + 3 * points, N))
    S[:, :boxes] *= units
    S[:bounds, boxes:] = 0.0
    inside = (S[bounds:] * (0.01 / np.concatenate([units, np.ones(others)]))).sum(axis=1)
    normal = np.concatenate([(PYRAMID * f).sum(axis=1) for f in inside.reshape(-1, 3)] or [np.zeros(0)])
    slack = rng.uniform(0.1, 0.5, len(normal))
    wide = rng.uniform(0.3, 0.8, 2 * boxes) / np.tile(units, 2)
    limits = np.concatenate([wide, normal + slack, rng.uniform(0.3, 0.7, 2 * bounds)])
    return rows, P, p, S if len(S) else None, limits


SETS = {
    "plain": {"seed": 1, "points": 0, "bounds": 0},
    "bounds": {"seed": 2, "points": 0, "bounds": 4},
    "feet": {"seed": 3, "points": 2, "bounds": 2},
    "rank": {"seed": 4, "tasks": 3, "points": 1},
    "others": {"seed": 5, "others": 3, "points": 1, "bounds": 2},
    "many": {"seed": 6, "boxes": 9, "tasks": 11, "bounds": 5, "points": 1},
}


def state(solver: ActiveSet) -> dict[str, Any]:
    return {
        "x": numbers(solver.x),
        "active": numbers(solver.active()),
        "worst": float(solver.worst()) > 1e-6,
        "multipliers": float(np.sum(numbers(solver.u))),
    }


@scenarios(tolerance=1e-7)
def active_sets():
    found: dict[str, Any] = {}
    for name, options in SETS.items():
        rows, P, p, S, limits = given(**options)
        for label, steps, other in (("", 20, limits), ("few", 4, limits), ("narrow", 24, 0.4 * limits)):
            solver = ActiveSet(rows, plain(P), plain(p), plain(S), plain(other), steps)
            solver.run(np.zeros(rows.count))
            found[f"{name} {label}"] = state(solver)
        again = ActiveSet(rows, plain(P), plain(p), plain(S), plain(limits), 3)
        again.run(plain(found[f"{name} "]["active"]))
        found[f"{name} again"] = state(again)
        if rows.bounds:
            moved = plain(0.1 * np.arange(1, rows.bounds + 1))
            again.move_bounds(moved, plain(np.full(rows.bounds, 0.05)), 4)
            found[f"{name} moved"] = state(again)
            opposed = limits.copy()
            opposed[-rows.bounds :] = -1.5 * limits[-2 * rows.bounds : -rows.bounds]
            solver = ActiveSet(rows, plain(P), plain(p), plain(S), plain(opposed), 24)
            solver.run(np.zeros(rows.count))
            found[f"{name} opposed"] = state(solver)
    return found


@scenarios(tolerance=1e-7)
def active_sets_whose_boxes_give_way():
    found = {}
    for firm in (0, 1, 2):
        rows, P, p, S, limits = given(7, points=0, bounds=3)
        rows = replace(rows, firm=firm, unlimited=(1,))
        limits = limits.copy()
        limits[[1, rows.boxes + 1]] = 1e9
        solver = ActiveSet(rows, plain(P), plain(p), plain(S), plain(0.5 * limits), 20)
        solver.run(np.zeros(rows.count))
        found[f"{firm}"] = state(solver)
        solver.move_bounds(plain(np.full(rows.boxes, 0.03)), plain(np.full(rows.boxes, 0.01)), 4)
        found[f"{firm} moved"] = state(solver)
    return found


@scenarios
def rows_and_weights():
    rows = replace(given(3)[0], firm=1)
    names = ("unknowns", "forces", "hard", "moving", "count", "movable", "each_facet", "each_force")
    values = {name: getattr(rows, name) for name in names}
    P, S = given(3)[1], given(3)[3]
    runs = [(0, 2, 0), (3, 5, 1)]
    return {
        **{name: value() if callable(value) else value for name, value in values.items()},
        "weights": [
            softness.usual_weight(r) for r in (rows, given(5)[0], given(1, points=0)[0], Rows(3, 1, (), 0))
        ],
        "softness": numbers(softness.softness(given(3)[0], plain(P), plain(S), 1e4, [])),
        "soft boxes": numbers(softness.softness(rows, plain(P), plain(S), 1e4, runs)),
        "scale": [float(limited.unit_scale(3, total)) for total in (0.0, 2.0, -1.0)],
        "within": [float(limited.within(x, -0.3, 0.7)) for x in (-1.0, 0.1, 2.0)],
    }


@scenarios
def factors_of_costs():
    found = {}
    for name, options in SETS.items():
        rows, P, p, _, _ = given(**options)
        cost = CostFactors(plain(P), plain(p), rows)
        half = cost.halved(plain(-p))
        x = cost.solved(half)
        before = numbers(x)
        cost.lend(x, half, plain(p))
        found[name] = [before, numbers(cost.root), numbers(cost.lent), float(cost.lacks.value), numbers(half)]
    return found


@scenarios(tolerance=1e-6)
def programmes_by_interior_points():
    found = {}
    for name, options in SETS.items():
        rows, P, p, S, limits = given(**options)
        rng = np.random.default_rng(9)
        for equations in (0, 1, 2):
            E = rng.normal(size=(equations, rows.unknowns)) if equations else None
            e = rng.normal(size=equations) * 0.05 if equations else None
            programme = Programme(rows, plain(P), plain(p), plain(E), plain(e), plain(S), plain(limits))
            programme.begin(plain(np.full(rows.count, 0.3)))
            programme.iterate(2)
            early = numbers(programme.x)
            programme.iterate(16)
            dual, equal, unequal = programme.residuals()
            found[f"{name} {equations}"] = {
                "early": early,
                "x": numbers(programme.x),
                "z": numbers(programme.z),
                "active": numbers(programme.active()),
                "residuals": [np.abs(numbers(r)).max() < 1e-7 for r in (dual, unequal) if r is not None],
                "equal": equal is None or np.abs(numbers(equal)).max() < 1e-7,
                "worst": float(programme.worst()) < 1e-7,
            }
    return found


@scenarios(tolerance=1e-6)
def small_interior_points():
    found = {}
    for n, m, k in ((2, 1, 3), (4, 2, 7), (6, 0, 9), (5, 3, 2)):
        rng = np.random.default_rng(n)
        P, q = definite(rng, n), rng.normal(size=n) * 3.0
        A, b = rng.normal(size=(m, n)), 0.1 * rng.normal(size=m)
        G, h = rng.normal(size=(k, n)), rng.uniform(0.2, 0.5, k)
        for turns in (3, 20):
            x, y, z, residual = interior_point(*(plain(each) for each in (P, q, A, b, G, h)), turns)
            values = {"x": numbers(x), "y": numbers(y), "z": numbers(z)}
            found[f"{n} {m} {k} {turns}"] = values | {
                "residual": float(residual) if turns == 3 else residual < 1e-7
            }
    return found


@scenarios
def block_systems_and_cones():
    rng, found = np.random.default_rng(11), {}
    for N, m in ((2, 1), (3, 2), (5, 3)):
        D = np.array([definite(rng, m) + 4.0 * np.eye(m) for _ in range(N)])
        E, b = rng.normal(size=(N - 1, m, m)), rng.normal(size=(N, m))
        found[f"tridiagonal {N} {m}"] = numbers(solve_tridiagonal(plain(D), plain(E), plain(b)))
    for count, d in ((3, 3), (5, 3), (8, 4)):
        rays = rng.normal(size=(count, d)) * 0.4 + np.eye(d)[0]
        found[f"cone {count} {d}"] = np.sort((facets(rays) * np.arange(1.0, d + 1.0)).sum(axis=1))
    return found | {"flat": told(facets, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))}


def stage(shape: riccati.Shape, seed: int, mu: float, room: float) -> dict[str, Any]:
    """A step of the recursion, then a second one on its value function."""
    rng = np.random.default_rng(seed)
    n, v, q, m, w = shape.states, shape.full, shape.shifted, shape.controls, shape.width
    step = riccati.Riccati(shape, 1e-9)
    V = definite(rng, n)
    for name, rows, columns in (("Vqq", (0, q), (0, q)), ("Vqv", (0, q), (q, n)), ("Vvv", (q, n), (q, n))):
        target = getattr(step, name)
        if 0 not in target.shape:
            target[:, :] = plain(V[slice(*rows), slice(*columns)])
    step.vx[:] = plain(rng.normal(size=n))
    found: dict[str, Any] = {}
    for turn in range(2):
        gap, G = 0.1 * rng.normal(size=n), 0.4 * rng.normal(size=(v, w))
        gradient, H = rng.normal(size=w), definite(rng, w)
        ends = {"q": slice(0, q), "v": slice(q, n), "x": slice(0, n), "u": slice(n, w)}
        cost = {}
        for name in shape.blocks:
            block = plain(H[ends[name[0]], ends[name[1]]])
            cost[name] = np.diag(block) if len(shape.block_shape(name)) == 1 else block
        angles = rng.normal(size=(2, len(shape.turned), 3, 3)) * TURNS
        turns = [[plain(block) for block in blocks] for blocks in angles]
        step.next_value(plain(gap), mu, turns)
        limits = -room * rng.uniform(0.1, 1.0, m), room * rng.uniform(0.1, 1.0, m)
        k, K = plain(np.zeros(m)), plain(np.zeros((m, n)))
        box = tuple(plain(each) for each in limits) if shape.boxed else None
        step.stage(plain(G), plain(gradient), cost, box, mu, k, K)
        values = {"k": k, "K": K, "vx": step.vx, "Vvv": step.Vvv, "Vqq": step.Vqq, "Vqv": step.Vqv}
        found |= {f"{name} {turn}": numbers(x) for name, x in values.items() if 0 not in x.shape}
        for name in ("expected", "gradient", "closing", "largest", "sound"):
            found[f"{name} {turn}"] = float(getattr(step, name).value)
    return found


def entries(width: int, joints: int, full: bool) -> frozenset[tuple[int, int]]:
    """All of a Hessian, or its diagonal and what couples the first states."""
    pairs = [(i, j) for i in range(width) for j in range(i + 1)]
    return frozenset((i, j) for i, j in pairs if full or i == j or (i < joints and j < joints))


@scenarios
def riccati_steps():
    found = {}
    for joints, controls, shifted, boxed, turned in (
        (1, 1, True, False, ()),
        (3, 2, True, True, ()),
        (3, 3, False, True, ()),
        (4, 3, True, True, (range(3),)),
        (14, 2, True, False, ()),
    ):
        q, v = (joints, joints) if shifted else (0, 2 * joints)
        for full in (True, False):
            shape = riccati.Shape(
                q, v, controls, 0.07, entries(q + v + controls, joints, full), boxed, turned
            )
            name = f"{joints} {controls} {shifted} {boxed} {full}"
            found[name] = stage(shape, joints, 1e-3, 0.4)
            if boxed:
                found[f"{name} narrow"] = stage(shape, joints + 1, 0.0, 0.02)
    return found


@scenarios
def controls_within_boxes():
    found = {}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        m = 2 + seed % 4
        Q, gradient, k = definite(rng, m), 4.0 * rng.normal(size=m), plain(0.1 * rng.normal(size=m))
        low, high = -rng.uniform(0.0, 0.6, m), rng.uniform(0.0, 0.6, m)
        low[0], high[-1] = 0.0, 1e301
        for mu in (0.0, 0.1):
            *_, sound, free = riccati.within_box(
                plain(Q), plain(gradient), (plain(low), plain(high)), 1e-9, k, mu
            )
            found[f"{seed} {mu}"] = [numbers(k), numbers(free), float(sound)]
        found[f"{seed} ends"] = [
            [bool(riccati.close(a, b)), bool(riccati.pushed(g, a, b))]
            for a, b, g in zip(low * 1e-4, high, gradient, strict=True)
        ]
    found["larger"] = [float(riccati.larger(*pair)) for pair in ((1.0, 2.0), (2.0, 1.0), (1.0, np.nan))]
    return found


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
