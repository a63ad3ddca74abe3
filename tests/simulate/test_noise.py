"""The counter-based generator: the same number for the same place, and nothing else in common."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
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


@pytest.mark.parametrize(
    ("dtype", "robot", "step", "channel", "expected"),
    [
        ("float64", 0, 0, 0, -1.4229372479173026),
        ("float64", 0, 0, 5, -1.9853463236171578),
        ("float64", 0, 2**25 + 3, 0, -1.1658359561687974),
        ("float64", 2, 1, 5, 0.5962381930351848),
        ("float64", 2, 2**25 + 3, 5, 1.752348277970075),
        ("float32", 0, 0, 0, -0.29389044642448425),
        ("float32", 0, 0, 5, 1.1764075756072998),
        ("float32", 0, 5000, 0, 0.02283465303480625),
        ("float32", 2, 1, 5, -0.246529683470726),
        ("float32", 2, 5000, 5, 1.2394142150878906),
    ],
)
def test_a_seed_gives_the_same_numbers_for_ever(dtype, robot, step, channel, expected):
    """Recorded simulations with noise can be repeated with later versions."""
    stream = [np.dtype(dtype).type(word) for word in noise.streams(7, 3, dtype)[robot]]
    assert float(noise.normal(stream, np.dtype(dtype).type(step), float(channel), dtype)) == expected


def test_streams_are_whole_numbers_that_fit_a_word():
    for dtype, bits in (("float64", 24), ("float32", 12)):
        found = noise.streams(3, 5000, dtype)
        assert (found == np.rint(found)).all()
        assert -(2 ** (bits - 1)) <= found.min() < -0.99 * 2 ** (bits - 1)
        assert 0.99 * 2 ** (bits - 1) < found.max() < 2 ** (bits - 1)
