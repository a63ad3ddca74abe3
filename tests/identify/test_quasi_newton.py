"""The quasi-Newton method: its matrix beside the dense update, minima in closed form, ends that are told."""

import numpy as np
import pytest

from linkwise.identify.estimation.quasi_newton import _times_inverse, minimize


def pairs(rng: np.random.Generator, size: int, count: int):
    """Steps, and changes of the gradient of a convex quadratic function along them."""
    factor = rng.normal(size=(size, size))
    hessian = factor @ factor.T + 0.1 * np.eye(size)
    steps = list(rng.normal(size=(count, size)))
    return steps, [hessian @ step for step in steps]


def test_two_loops_are_the_dense_update():
    """H ← (1 − ρ s yᵀ) H (1 − ρ y sᵀ) + ρ s sᵀ for one pair after the other, from the scale of the last one."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        size, count = int(rng.integers(1, 8)), int(rng.integers(0, 6))
        steps, changes = pairs(rng, size, count)
        H = np.eye(size)
        if count:
            H *= (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
        for s, y in zip(steps, changes, strict=True):
            left = np.eye(size) - np.outer(s, y) / (s @ y)
            H = left @ H @ left.T + np.outer(s, s) / (s @ y)
        gradient = rng.normal(size=size)
        kept = gradient.copy()
        np.testing.assert_allclose(_times_inverse(gradient, steps, changes), H @ gradient, rtol=1e-9)
        np.testing.assert_array_equal(gradient, kept)


@pytest.mark.parametrize("memory", [1, 3, 20])
def test_minima_of_quadratic_functions(memory):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 7))
        factor = rng.normal(size=(size, size))
        P, q = factor @ factor.T + 0.5 * np.eye(size), rng.normal(size=size)
        found = minimize(
            lambda x, P=P, q=q: (0.5 * x @ P @ x + q @ x, P @ x + q), np.zeros(size), 500, memory
        )
        assert found.converged
        least = -0.5 * q @ np.linalg.solve(P, q)
        assert found.value == pytest.approx(least, abs=1e-6 * max(1.0, abs(least)))


def test_a_valley_that_bends_and_an_edge():
    def valley(x):
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        return a * a + 100.0 * b * b, np.array([-2.0 * a - 400.0 * b * x[0], 200.0 * b])

    found = minimize(valley, np.array([-1.2, 1.0]), 200)
    assert found.converged
    assert found.iterations < 60
    np.testing.assert_allclose(found.x, 1.0, atol=1e-2)
    short = minimize(valley, np.array([-1.2, 1.0]), 3)
    assert not short.converged
    assert short.iterations == 3
    assert short.value == valley(short.x)[0] < valley(np.array([-1.2, 1.0]))[0]

    def edge(x):
        return abs(x[0]) + 0.1 * x[1] ** 2, np.array([np.sign(x[0]), 0.2 * x[1]])

    assert minimize(edge, np.array([1.3, -2.0]), 300).value < 1e-2
