"""The counter-based generator: the same number for the same place, and nothing else in common."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import trace
from linkwise.simulate import noise

STEPS, ROBOTS, CHANNELS = 600, 60, 6


@pytest.fixture(scope="module", params=["float64", "float32"])
def drawn(request):
    dtype = request.param
    stream = noise.streams(7, ROBOTS, dtype)
    steps = np.arange(STEPS, dtype=dtype)[:, np.newaxis]
    return dtype, np.stack([noise.normal([*stream.T], steps, float(c), dtype) for c in range(CHANNELS)])


def test_mean_variance_and_range(drawn):
    _, x = drawn
    count = x.size
    assert abs(x.mean()) < 4 / np.sqrt(count)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / count)
    assert np.abs(x).max() <= 3.47
    assert (x**4).mean() == pytest.approx(2.7, abs=0.03)  # of four uniform numbers


def test_no_correlation_with_neighbours(drawn):
    """Along channels, steps and robots, of the numbers and of their squares: within 4.5 standard
    deviations.
    """
    _, x = drawn
    x = x.astype(float)
    for values in (x, (x**2 - 1) / (x**2).std()):
        for axis in range(3):
            for lag in (1, 2, 3, 4, 8, 16):
                if lag < values.shape[axis]:
                    first = np.take(values, range(values.shape[axis] - lag), axis)
                    second = np.take(values, range(lag, values.shape[axis]), axis)
                    assert abs((first * second).mean()) * np.sqrt(first.size) < 4.5


def test_machine_code_draws_the_same_numbers(drawn):
    dtype, x = drawn
    build = lambda precision: trace(  # noqa: E731
        lambda stream, step: [noise.normal(stream, step[0], 2.0, precision)],
        {"stream": 2, "step": 1},
        {"x": (1,)},
        dtype=precision,
    )
    kernel = Kernel("noise", [("stream", 2), ("step", 1)], [("x", (1,))], dtype, build)
    steps = np.broadcast_to(np.arange(STEPS, dtype=dtype)[:, np.newaxis, np.newaxis], (STEPS, ROBOTS, 1))
    found = kernel(noise.streams(7, ROBOTS, dtype), steps)[..., 0]
    np.testing.assert_array_equal(found, x[2])


def test_streams_do_not_depend_on_how_many_there_are():
    np.testing.assert_array_equal(noise.streams(3, 10), noise.streams(3, 1000)[:10])
    assert (noise.streams(3, 10) != noise.streams(4, 10)).any()
