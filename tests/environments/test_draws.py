"""Random numbers of environments: the same for the same place, in both precisions, and nothing else in common."""

import numpy as np
import pytest

from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.environments import draws

ENVS, EPISODES, STEPS, CHANNELS = 24, 5, 60, 6


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    """Uniform numbers, (envs, episodes, steps, channels)."""
    stream = draws.environment_streams(3, np.arange(ENVS))
    found = np.empty((ENVS, EPISODES, STEPS, CHANNELS))
    steps = np.arange(STEPS, dtype=float)
    for k in range(EPISODES):
        episode = draws.episode_stream([column[:, None] for column in stream.T], float(k))
        draw = draws.Draw(episode, steps[None], 0)
        for channel in range(CHANNELS):
            found[:, k, :, channel] = draw.uniform(0.0, 1.0)
    return found


def test_range_mean_and_variance(drawn):
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    assert abs(drawn.mean() - 0.5) < 4 / np.sqrt(12 * drawn.size)
    assert abs(drawn.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / drawn.size)
    counts = np.histogram(drawn, 32, (0.0, 1.0))[0]
    expected = drawn.size / 32
    assert ((counts - expected) ** 2 / expected).sum() < 31 + 4.5 * np.sqrt(62)


def test_neighbours_have_nothing_in_common(drawn):
    """Along environments, episodes, steps and channels, of the numbers and of their squares."""
    centred = (drawn - 0.5) * np.sqrt(12.0)
    for values in (centred, (centred**2 - 1.0) / (centred**2).std()):
        for axis in range(4):
            for lag in (1, 2, 3, 4):
                first = np.take(values, range(values.shape[axis] - lag), axis)
                second = np.take(values, range(lag, values.shape[axis]), axis)
                assert abs((first * second).mean()) * np.sqrt(first.size) < 4.5, (axis, lag)


def test_every_environment_and_episode_has_words_of_its_own():
    stream = draws.environment_streams(0, np.arange(1 << 17))
    assert len(np.unique(stream % 4096, axis=0)) == 1 << 17
    few = [np.asarray(column[:300, None]) for column in stream.T]
    words = np.stack([np.asarray(w) for w in draws.episode_stream(few, np.arange(300.0)[None])], -1)
    assert len(np.unique(words.reshape(-1, 4) % 4096, axis=0)) == 300 * 300
    other = draws.environment_streams(1, np.arange(1000))
    assert (other != stream[:1000]).any(axis=1).all()


def test_machine_code_draws_the_same_in_both_precisions():
    def numbers(stream, place):
        draw = draws.Draw(draws.episode_stream(stream, place[0]), place[1], 7)
        return [draw.noise(2.0), draw.normal(1.0), draw.chance(0.3), draw.word()]

    sizes, shapes = {"stream": 4, "place": 2}, {"x": (4,)}
    build = lambda dtype: trace(numbers, sizes, shapes, dtype=dtype)  # noqa: E731
    kernel = Kernel("drawn", sizes.items(), shapes.items(), "float64", build)
    stream = draws.environment_streams(9, np.arange(50))
    place = np.stack([np.arange(50.0) * 8191, np.arange(50.0) * 97], axis=-1)
    double = kernel(stream, place)
    single = kernel(stream.astype(np.float32), place.astype(np.float32))
    assert (double[:, [2, 3]] == single[:, [2, 3]]).all()  # whole numbers
    np.testing.assert_allclose(double, single, rtol=2e-7)
    expected = np.stack([np.asarray(x) for x in numbers([*stream.T], [*place.T])], axis=-1)
    assert (double[:, [2, 3]] == expected[:, [2, 3]]).all()
    assert set(np.unique(double[:, 2])) <= {0.0, 1.0}
