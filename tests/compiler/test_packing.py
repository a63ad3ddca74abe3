"""Batches of loops whose lanes need very different numbers of turns: the slow states are computed again, together."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.emit import packing
from linkwise.compiler.emit.lanes import Lanes
from linkwise.compiler.runtime import host
from linkwise.scalar import where, while_loop

TURNS = 40


def halved(uneven: bool):
    """How often x must be halved until it is below 1, what is left, and something of another input."""

    @lw.kernel(x=3, scale=2)
    def steps(x, scale):
        def body(count, value, total):
            return count + 1.0, 0.5 * value, total + value * scale[0]

        def active(count, value, _):
            return (value > 1.0) & (count < float(TURNS))

        count, value, total = while_loop(active, body, (0.0 * x[0], x[0], x[1] * scale[1]), uneven=uneven)
        return [count, value, total + x[2], where(count > 3.0, total, value)]

    return steps


def numbers(count: int, slow: float, seed: int) -> np.ndarray:
    """Most states need no or one turn, a share ``slow`` of them up to forty."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 1.9, size=(count, 3))
    many = rng.random(count) < slow
    x[many, 0] = 2.0 ** rng.uniform(2.0, 38.0, size=many.sum())
    return x


@pytest.fixture(scope="module")
def kernels():
    return halved(True), halved(False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_are_those_of_blocks_that_wait(kernels, dtype):
    packed, waiting = kernels
    for seed, (count, slow) in enumerate(
        [(1, 1.0), (3, 0.5), (8, 0.1), (9, 1.0), (64, 0.0), (64, 1.0), (257, 0.05), (1000, 0.2), (1003, 0.6)]
    ):
        x = numbers(count, slow, seed).astype(dtype)
        scale = np.random.default_rng(seed).normal(size=(count, 2)).astype(dtype)
        expected = waiting(x, scale, threads=1)
        np.testing.assert_array_equal(packed(x, scale, threads=1), expected)
        np.testing.assert_array_equal(packed(x, scale, threads=2), expected)
        alone = np.array([packed(a, b) for a, b in zip(x[:20], scale[:20], strict=True)])
        np.testing.assert_array_equal(alone, expected[:20])
        assert expected[:, 0].max() > 3.0 or count * slow < 1.0


def test_inputs_of_one_state_and_with_gaps(kernels):
    packed, waiting = kernels
    x, scale = numbers(300, 0.15, 5), np.array([0.3, -2.0])
    np.testing.assert_array_equal(packed(x, scale), waiting(x, scale))
    np.testing.assert_array_equal(packed(x[::2], scale), waiting(x, scale)[::2])
    wide = np.zeros((300, 5))
    wide[:, 1:4] = x
    np.testing.assert_array_equal(packed(wide[:, 1:4], scale), waiting(x, scale))


def test_a_state_with_nan_stays_alone(kernels):
    packed, _ = kernels
    x, scale = numbers(100, 0.2, 7), np.array([1.0, 1.0])
    expected = packed(x, scale)
    x[37] = np.nan
    found = packed(x, scale)
    assert np.isnan(found[37, 2])
    np.testing.assert_array_equal(np.delete(found, 37, 0), np.delete(expected, 37, 0))


def test_only_wide_blocks_and_uneven_loops_are_packed(kernels):
    packed, waiting = kernels
    assert [packing.few(Lanes(width, "float64")) for width in (1, 2, 4, 8, 16)] == [0, 0, 1, 1, 2]
    width = host.lanes("float64")
    if packing.few(Lanes(width, "float64")):
        assert "@gather_rows" in packed.native_program("float64").text(width)
        assert "@gather_rows" not in waiting.native_program("float64").text(width)
