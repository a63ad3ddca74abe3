"""The active-set method of ``solve.active_set`` on random programmes: optimality by an independent check."""

import numpy as np
from scipy.optimize import lsq_linear, minimize, nnls

from linkwise.solve import limited
from linkwise.solve.active_set import ActiveSet
from linkwise.solve.limited import Programme, Rows

PYRAMID = np.array([[1, 0, -0.5], [-1, 0, -0.5], [0, 1, -0.5], [0, -1, -0.5], [0, 0, 1], [0, 0, -1]], float)


def programme(seed, others=0, points=2, bounds=3, spread=0.0, tasks=7):
    """(rows, P, p, S, limits) with a point inside all limits; units of unknowns differ by 10^±spread."""
    rng = np.random.default_rng(seed)
    rows = Rows(5, others, (PYRAMID,) * points, bounds)
    N = rows.unknowns
    units = 10.0 ** rng.uniform(-spread, spread, size=5)
    A = rng.normal(size=(tasks, 5)) * units
    P, p = np.zeros((N, N)), np.zeros(N)
    P[:5, :5] = A.T @ A
    p[:5] = A.T @ rng.normal(size=tasks) * 3.0
    S = rng.normal(size=(bounds + 3 * points, N))
    S[:, :5] *= units
    S[:bounds, 5:] = 0.0
    inside = S[bounds:] @ (0.01 / np.concatenate([units, np.ones(others)]))
    normal = np.concatenate([PYRAMID @ f for f in inside.reshape(-1, 3)])
    limits = np.concatenate(
        [np.tile(0.6 / units, 2), normal + rng.uniform(0.1, 0.5, len(normal)), np.full(2 * bounds, 0.5)]
    )
    return rows, P, p, S, limits


def solved(rows, P, p, S, limits, steps, start=None):
    """The method on plain numbers."""
    copies = [np.array(x.tolist(), object) if x.size else None for x in (P, p, S, limits)]
    solver = ActiveSet(rows, *copies, steps)
    solver.run(np.zeros(rows.count) if start is None else start)
    residual = solver.worst()
    return np.array(solver.x, float), np.array(solver.active(), float), float(residual)


def inequalities(rows, S, limits):
    """G of G x ≤ limits."""
    eye, V = np.eye(rows.unknowns)[: rows.boxes], S[: rows.bounds]
    facets = [C @ S[rows.bounds + 3 * k : rows.bounds + 3 * k + 3] for k, C in enumerate(rows.facets)]
    return np.vstack([eye, -eye, *facets, V, -V])


def check(rows, P, p, S, limits, x, active):
    """All limits kept; the gradient is a combination of active normals with multipliers that are not negative."""
    G = inequalities(rows, S, limits)
    scale = np.concatenate([1.0 / limits[: rows.boxes], np.ones(rows.others)])  # of the unknowns
    assert (G @ x - limits <= 1e-6 * (1.0 + np.abs(limits))).all()
    chosen = active > 0.5
    assert np.abs(G[chosen] @ x - limits[chosen]).max(initial=0.0) < 1e-5 * (1.0 + np.abs(limits).max())
    gradient = (P @ x + p) / scale
    _, left = nnls((G[chosen] / scale).T, -gradient) if chosen.any() else (None, np.linalg.norm(gradient))
    assert left <= 1e-6 * (1.0 + np.linalg.norm(p / scale)), left
    return int(chosen.sum())


def test_random_programmes_are_solved_with_limits_of_all_kinds_active():
    active = 0
    for seed in range(8):
        given = programme(seed)
        x, chosen, residual = solved(*given, 20)
        assert residual < 1e-7
        active += check(*given, x, chosen)
        again, same, _ = solved(*given, 20, start=chosen)
        assert np.allclose(again, x, rtol=1e-7, atol=1e-9)
        assert (same == chosen).all()
    assert active > 12


def test_units_of_unknowns_and_unknowns_without_cost_do_not_move_the_solution():
    """Regularised by a part of the mean of P's diagonal, these were off by 1e-3."""
    for seed in range(4):
        given = programme(seed, spread=2.0)
        x, chosen, residual = solved(*given, 24)
        assert residual < 1e-7
        check(*given, x, chosen)
    count = 0
    for seed in range(6):
        given = programme(seed, 2, points=1, bounds=2)
        x, chosen, residual = solved(*given, 24)
        if residual < 1e-6:  # what has not been solved says so
            check(*given, x, chosen)
            count += 1
    assert count >= 4


def test_costs_that_do_not_determine_the_unknowns():
    """Fewer rows of tasks than unknowns: P is singular, and without the little that is added to its diagonal pivots of
    its factors would be round-off. Limits are far away."""
    for seed in range(6):
        for tasks in (1, 2, 3, 4):
            rows, P, p, S, limits = programme(seed, tasks=tasks, spread=1.0)
            x, chosen, _ = solved(rows, P, p, S, 1e9 * limits, 4)
            assert not chosen.any()
            assert np.abs(P @ x + p).max() <= 1e-6 * np.abs(p).max()


def test_active_limits_where_costs_do_not_determine_the_unknowns():
    """Pivots of round-off left nothing of the digits of B: 21 of 24 of these were not solved, and x exceeded its limits
    by up to 10⁷ times their size."""
    count = active = 0
    for seed in range(6):
        for tasks in (1, 2, 3, 4):
            given = programme(seed, tasks=tasks)
            x, chosen, residual = solved(*given, 24)
            if residual < 1e-6:  # what has not been solved says so
                active += check(*given, x, chosen)
                count += 1
    assert count >= 21
    assert active >= 60


def test_costs_that_determine_the_unknowns_are_not_changed():
    """Nothing is lent, to the last bit; and with limits far away the minimum of least norm stays."""
    rows, P, p, S, limits = programme(0)
    solver = ActiveSet(rows, *(np.array(x.tolist(), object) for x in (P, p, S, limits)), 4)
    assert solver.cost.lacks.value > 0.0
    assert not np.any(solver.cost.lent)
    rows, P, p, S, limits = programme(0, tasks=2)
    x, _, _ = solved(rows, P, p, S, 1e9 * limits, 4)
    weights = np.sqrt(np.diag(P)[:5])  # the norm in units of the cost
    least = np.linalg.pinv(P[:5, :5] / np.outer(weights, weights), rcond=1e-9) @ (-p[:5] / weights) / weights
    np.testing.assert_allclose(x[:5], least, rtol=1e-3, atol=1e-3 * np.abs(least).max())


def test_candidates_that_are_exceeded_by_the_same_are_taken_one_by_one():
    rows = Rows(4, 0, (), 0)
    x, chosen, residual = solved(
        rows, np.eye(4), np.array([-2.0, 2.0, -2.0, 2.0]), np.zeros((0, 4)), np.full(8, 1.0), 6
    )
    assert np.allclose(x, [1, -1, 1, -1], atol=1e-9)
    assert residual < 1e-9
    assert chosen.tolist() == [1, 0, 1, 0, 0, 1, 0, 1]


def test_too_few_steps_are_told_by_the_residual():
    given = programme(3)
    _, chosen, _ = solved(*given, 20)
    assert chosen.sum() >= 2
    assert solved(*given, 1)[2] > 1e-3


def test_bounds_that_contradict_the_boxes_are_missed_as_little_as_possible():
    """Bounds that no x within the boxes reaches: what they are missed by, as squares, is the least there is, found by a
    method of least squares within boxes whose active bounds are tried until they stay; boxes are kept."""
    for seed in range(8):
        rows, P, p, S, limits = programme(seed, points=1, bounds=4)
        rng = np.random.default_rng(100 + seed)
        middle = rng.choice([-1, 1], 4) * rng.uniform(1, 3, 4)
        limits[rows.moving :] = np.concatenate([middle + 0.1, 0.1 - middle])
        G = inequalities(rows, S, limits)[2 * rows.boxes :]
        h = limits[2 * rows.boxes :]
        x, _, residual = solved(rows, P, p, S, limits, 40)
        assert (np.abs(x) <= limits[:5] + 1e-4).all()
        missed = np.linalg.norm(np.maximum(G @ x - h, 0.0))
        assert residual > 0.1
        y, scale = np.zeros(5), 1e-3  # of the cost, which is next to nothing
        for _ in range(200):
            over = G @ y - h > 0.0
            root = np.linalg.cholesky(P[:5, :5] + 1e-9 * np.eye(5))
            matrix = np.vstack([scale * root.T, G[over]])
            right = np.concatenate([-scale * np.linalg.solve(root, p[:5]), h[over]])
            new = lsq_linear(matrix, right, (-limits[:5], limits[:5]), method="bvls").x
            if np.abs(new - y).max() < 1e-10:
                break
            y = y + 0.5 * (new - y)
        assert abs(missed - np.linalg.norm(np.maximum(G @ y - h, 0.0))) < 1e-3 * missed, seed


def test_a_step_without_a_candidate_changes_nothing_whatever_multipliers_are():
    """In constant time, and beside other states, steps go on after the last one that is needed. A multiplier that
    moved bounds have made negative once gave torques that were no numbers there."""
    for seed in range(6):
        rows, *arrays = programme(seed)
        solver = ActiveSet(rows, *(np.array(x.tolist(), object) for x in arrays), 20)
        solver.run(np.zeros(rows.count))
        used = [i for i in range(solver.slots) if solver.used[i] > 0.5]
        assert used
        solver.u[used[0]] = -0.01
        solver.chosen[:] = 0.0
        solver.places.open()  # numbers of a block that no step has used are not written before
        before = [np.array(x, float) for x in (solver.x, solver.u, solver.used, solver.places.B)]
        solver._step(0.0)
        for was, now in zip(before, (solver.x, solver.u, solver.used, solver.places.B), strict=True):
            np.testing.assert_array_equal(np.array(now, float), was)


def test_firm_rows_are_kept_and_boxes_give_way():
    """With ``Rows.firm`` the first bounds are kept, boxes have two sides, and what these are exceeded by where rows
    contradict them is the least there is, as squares."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = Rows(4, 0, (), 2, (), 2)
        A, S = rng.normal(size=(6, 4)), rng.normal(size=(2, 4))
        P, p = A.T @ A, A.T @ rng.normal(size=6) * 3.0
        boxes = np.concatenate([rng.uniform(-0.1, 0.4, 4), rng.uniform(0.2, 0.6, 4)])  # upper, −lower
        for wide in (True, False):  # what rows ask for can be had within the boxes, or not
            middle = S @ (0.5 * (boxes[:4] - boxes[4:])) + (0.0 if wide else 3.0)
            limits = np.concatenate([boxes, middle + 0.1, 0.1 - middle])
            x, chosen, residual = solved(rows, P, p, S, limits, 30)
            if wide:
                assert residual < 1e-7
                check_sides = np.vstack([np.eye(4), -np.eye(4), S, -S])
                assert (check_sides @ x - limits < 1e-7).all()
                active = chosen > 0.5
                _, left = (
                    nnls(check_sides[active].T, -(P @ x + p)) if active.any() else (0, abs(P @ x + p).max())
                )
                assert left < 1e-6 * (1.0 + np.abs(p).max())
                continue
            assert (np.abs(S @ x - middle) <= 0.1 + 1e-4).all()
            missed = np.sum(np.maximum(np.concatenate([x, -x]) - boxes, 0.0) ** 2)
            least = minimize(
                lambda y, b=boxes: np.sum(np.maximum(np.concatenate([y, -y]) - b, 0.0) ** 2),
                x,
                method="SLSQP",
                constraints=[{"type": "ineq", "fun": lambda y, m=middle, S=S: 0.1 - np.abs(S @ y - m)}],
                options={"ftol": 1e-14, "maxiter": 300},
            ).fun
            assert missed < least * (1.0 + 1e-3) + 1e-9, (seed, missed, least)


def test_the_interior_point_method_has_the_same_solutions():
    """Boxes, facets and bounds on both sides; with equations, too: the gradient is a combination of normals."""
    bounds_seen, rng = set(), np.random.default_rng(2)
    for seed in range(8):
        rows, P, p, S, limits = given = programme(seed)
        limits[rows.moving :] *= 0.3  # bounds are active as often as the rest
        x, _, residual = solved(*given, 30)
        assert residual < 1e-7
        for E in (None, rng.normal(size=(2, rows.unknowns))):
            e = None if E is None else 0.05 * rng.normal(size=2)
            copies = [np.array(each.tolist(), object) for each in (P, p)]
            method = Programme(rows, *copies, E, e, S, limits)
            method.begin(np.zeros(rows.count))
            method.iterate(25)
            found, z = np.array(method.x, float), np.array(method.z, float)
            G = inequalities(rows, S, limits)
            assert (G @ found <= limits + 1e-5).all()
            active = G @ found > limits - 1e-4
            bounds_seen |= set((np.flatnonzero(active[rows.moving :]) // rows.bounds).tolist())
            normals = G[active] if E is None else np.vstack([G[active], E, -E])
            _, left = (
                nnls(normals.T, -(P @ found + p)) if len(normals) else (0, np.linalg.norm(P @ found + p))
            )
            assert left < 1e-4 * (1.0 + np.linalg.norm(p)), (seed, left)
            if E is None:
                assert np.allclose(found, x, atol=1e-5)
            else:
                assert np.allclose(E @ found, e, atol=1e-6)
            assert (z > -1e-12).all()
    assert bounds_seen == {0, 1}


def test_start_and_direction_of_the_interior_point_method(monkeypatch):
    """The start is the minimum without inequalities, with slacks on the right side; a direction solves Newton's
    equations, here with limits so soft that this shows."""
    monkeypatch.setattr(limited, "STIFF", 10.0)
    rng = np.random.default_rng(6)
    for seed in range(4):
        rows, P, p, S, limits = programme(seed)
        G, N = inequalities(rows, S, limits), rows.unknowns
        scale, soft = N / np.trace(P), np.where(np.arange(rows.count) < rows.hard, 0.0, 0.1)
        for E in (None, rng.normal(size=(2, N))):
            e = None if E is None else rng.normal(size=2)
            method = Programme(rows, *(np.array(x.tolist(), object) for x in (P, p)), E, e, S, limits)
            first = rng.uniform(0.0, 0.1, rows.count)
            method.begin(first)
            K, right = scale * P, -scale * p
            if E is not None:
                K, right = K + limited.RIGID * E.T @ E, right + limited.RIGID * E.T @ e
            x, s, z = (np.array(part, float) for part in (method.x, method.s, method.z))
            np.testing.assert_allclose(K @ x, right, atol=1e-6)
            np.testing.assert_allclose(s, np.maximum(limits - G @ x, limited.START), atol=1e-9)
            np.testing.assert_allclose(z, np.maximum(first, limited.PRODUCT / s), atol=1e-9)
            method.s[:], method.z[:] = s * rng.uniform(0.5, 2.0, len(s)), z * rng.uniform(0.5, 2.0, len(z))
            s, z = np.array(method.s, float), np.array(method.z, float)
            over_soft = method._quotients()[2]
            method._factorise(method._assembled(method.z * over_soft))
            right, unequal, target = rng.normal(size=N), rng.normal(size=len(s)), rng.normal(size=len(s))
            method._direction(over_soft, right, unequal, target)
            dx, ds, dz = (np.array(part, float) for part in (method.dx, method.ds, method.dz))
            np.testing.assert_allclose(K @ dx + G.T @ dz, right, atol=1e-6)
            np.testing.assert_allclose(G @ dx + ds - soft * dz, -unequal, atol=1e-8)
            np.testing.assert_allclose(s * dz + z * ds, target, atol=1e-8)


def test_the_residual_is_the_largest_of_all_conditions():
    """Of the interior-point method after few iterations: stationarity, inequalities and s∘z, by NumPy."""
    rng = np.random.default_rng(4)
    seen = set()
    for seed in range(12):
        N = int(rng.integers(2, 6))
        half = rng.normal(size=(N, N))
        P, p, limits = half @ half.T + 0.1 * np.eye(N), 3.0 * rng.normal(size=N), rng.uniform(0.2, 1.0, 2 * N)
        programme = Programme(Rows(N, 0, (), 0), P.copy(), p, None, None, None, limits)
        programme.begin(np.zeros(2 * N))
        programme.iterate(seed % 6)
        x, s, z = (np.array(part, dtype=float) for part in (programme.x, programme.s, programme.z))
        G, scale = np.concatenate([np.eye(N), -np.eye(N)]), N / np.trace(P)
        parts = [scale * (P @ x + p) + G.T @ z, G @ x + s - limits, s * z]
        parts = [np.abs(part).max() for part in parts]
        np.testing.assert_allclose(float(programme.worst()), max(parts), rtol=1e-9, atol=1e-14)
        seen.add(int(np.argmax(parts)))
    assert len(seen) > 1
