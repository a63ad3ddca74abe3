"""Derivative kernels of kernels with several inputs and outputs of any shapes, beside central differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

STEP = 1e-6


def several(a, b, s):
    """A matrix, a vector, one number and a vector again: places of each depend on the sizes of those before."""
    matrix = [[lw.sin(a[i]) * b[j] + s[0] * a[j] for j in range(3)] for i in range(2)]
    return {
        "matrix": matrix,
        "vector": [a[0] * a[1] + b[0], lw.cos(a[2] * s[0]), b[1] * b[0], a[1] / (2.0 + b[2] * b[2])],
        "number": a[0] * b[1] * s[0] + a[2],
        "last": [s[0] * s[0] + b[2], a[1] * b[2]],
    }


KERNEL = lw.kernel(a=3, b=3, s=1)(several)
GIVEN = {
    "a": np.array([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]]),
    "b": np.array([[0.5, 1.3, -0.6], [-1.2, 0.4, 0.8]]),
    "s": np.array([[0.7], [-0.3]]),
}


def shifted(name: str, direction: np.ndarray) -> list[np.ndarray]:
    """How each output changes along a direction of one input, by central differences."""
    low, high = (
        KERNEL(*(value + sign * STEP * direction if key == name else value for key, value in GIVEN.items()))
        for sign in (-1.0, 1.0)
    )
    return [(b - a) / (2.0 * STEP) for a, b in zip(low, high, strict=True)]


@pytest.mark.parametrize("by", ["a", "b", "s"])
def test_jacobians_have_one_entry_for_each_output_and_input(by):
    slopes = KERNEL.jacobian(by)(*GIVEN.values())
    size = GIVEN[by].shape[-1]
    for k in range(size):
        wanted = shifted(by, np.eye(size)[k])
        for (name, shape), ours, theirs in zip(KERNEL.outputs, slopes, wanted, strict=True):
            assert ours.shape == (2, *shape, size), name
            np.testing.assert_allclose(ours[..., k], theirs, rtol=1e-7, atol=1e-8, err_msg=name)


def test_gradients_and_directions_are_products_with_jacobians():
    rng = np.random.default_rng(1)
    values = KERNEL(*GIVEN.values())
    weights = [rng.normal(size=value.shape) for value in values]
    gradients = KERNEL.vjp("s", "a")(*GIVEN.values(), *(w.reshape(2, -1) for w in weights))
    for by, ours in zip(("s", "a"), gradients, strict=True):
        slopes = KERNEL.jacobian(by)(*GIVEN.values())
        wanted = sum(
            np.einsum("nk,nkj->nj", w.reshape(2, -1), slope.reshape(2, -1, GIVEN[by].shape[-1]))
            for w, slope in zip(weights, slopes, strict=True)
        )
        np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-13)
    directions = {by: rng.normal(size=GIVEN[by].shape) for by in ("b", "a")}
    rates = KERNEL.jvp("b", "a")(*GIVEN.values(), *directions.values())
    slopes = {by: KERNEL.jacobian(by)(*GIVEN.values()) for by in directions}
    for k, ours in enumerate(rates):
        wanted = sum(np.einsum("n...j,nj->n...", slopes[by][k], directions[by]) for by in directions)
        np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-13)


def test_results_of_several_outputs_are_those_of_numbers():
    for row in range(2):
        plain = several(*(value[row].tolist() for value in GIVEN.values()))
        for ours, theirs in zip(KERNEL(*GIVEN.values()), plain.values(), strict=True):
            np.testing.assert_allclose(ours[row], theirs, rtol=1e-14)
