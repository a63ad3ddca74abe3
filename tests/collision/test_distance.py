"""Distances of segments, points and boxes: against dense samples, over numbers, arrays and symbols."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import distance as apart


def segment(start, end):
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    return apart.Segment.between(
        tuple(start.tolist()), tuple(end.tolist()), float((end - start) @ (end - start))
    )


def sampled(start, end, count=400):
    return np.asarray(start) + np.linspace(0, 1, count)[:, None] * (np.asarray(end) - np.asarray(start))


CASES = {
    "crossing": ((-1, 0, 0), (1, 0, 0), (0, -1, 0.3), (0, 1, 0.3)),
    "skew": ((0, 0, 0), (1, 2, 0.5), (0.3, -0.2, 1.0), (2.0, 0.1, 0.7)),
    "parallel side by side": ((0, 0, 0), (1, 0, 0), (0.4, 0.2, 0), (3, 0.2, 0)),
    "parallel one behind the other": ((0, 0, 0), (1, 0, 0), (1.5, 0.2, 0), (3, 0.2, 0)),
    "in one line": ((0, 0, 0), (1, 0, 0), (1.25, 0, 0), (3, 0, 0)),
    "end to end": ((0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 3, 1)),
    "point and segment": ((0.3, 0.5, 0), (0.3, 0.5, 0), (0, 0, 0), (1, 0, 0)),
    "segment and point": ((0, 0, 0), (1, 0, 0), (2, 0.5, 0), (2, 0.5, 0)),
    "two points": ((0, 0, 0), (0, 0, 0), (1, 2, 2), (1, 2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_segments_against_dense_samples(name):
    a, b, c, d = CASES[name]
    found = apart.segment_distance(segment(a, b), segment(c, d))
    brute = np.linalg.norm(sampled(a, b)[:, None] - sampled(c, d)[None], axis=2).min()
    assert found <= brute + 1e-9
    assert found == pytest.approx(brute, abs=5e-3)
    assert found == pytest.approx(apart.segment_distance(segment(c, d), segment(a, b)), abs=1e-9)


def test_many_random_segments_at_once_and_as_a_kernel():
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(300, 4, 3))
    ends[:50, 3] = ends[:50, 2] + (ends[:50, 1] - ends[:50, 0]) * rng.uniform(0.2, 2, (50, 1))  # parallel
    a, b, c, d = ends.transpose(1, 2, 0)
    lengths = [np.linalg.norm(end - start, axis=0) ** 2 for start, end in ((a, b), (c, d))]
    found = apart.segment_distance(
        apart.Segment.between(tuple(a), tuple(b), lengths[0]),
        apart.Segment.between(tuple(c), tuple(d), lengths[1]),
    )
    for k in range(0, 300, 7):
        points = sampled(ends[k, 0], ends[k, 1], 150)[:, None] - sampled(ends[k, 2], ends[k, 3], 150)[None]
        brute = np.linalg.norm(points, axis=2).min()
        assert brute - 0.05 <= found[k] <= brute + 1e-9

    @lw.kernel(ends=9)
    def moved(ends):  # the first segment turns with constant length
        start, along, other = ends[:3], ends[3:6], ends[6:]
        first = apart.Segment(tuple(start), tuple(along), 1.0)
        return apart.segment_distance(first, apart.Segment(tuple(other), (0.0, 0.0, 2.0), 4.0))

    way = rng.normal(size=(40, 3))
    states = np.hstack(
        [rng.normal(size=(40, 3)), way / np.linalg.norm(way, axis=1)[:, None], rng.normal(size=(40, 3))]
    )
    slope, h = moved.jacobian("ends")(states), 1e-6
    for k in (0, 2, 7):
        shift = h * np.eye(9)[k]
        np.testing.assert_allclose(
            slope[..., k].ravel(), (moved(states + shift) - moved(states - shift)) / (2 * h), atol=1e-6
        )


@pytest.mark.parametrize("seed", range(3))
def test_boxes_against_dense_samples(seed):
    rng = np.random.default_rng(seed)
    half = rng.uniform(0.2, 1.0, 3)
    start, end = rng.uniform(-2, 2, (2, 3))
    if seed == 2:  # inside
        start, end = 0.3 * half, -0.2 * half
    points = sampled(start, end, 2000)
    beyond = np.abs(points) - half
    brute = np.where(
        (beyond <= 0).all(axis=1), beyond.max(axis=1), np.linalg.norm(np.maximum(beyond, 0), axis=1)
    ).min()
    found = apart.segment_box_distance(segment(start, end), tuple(half.tolist()))
    assert brute - 2e-3 <= found <= brute + 1e-9  # never too large
    point = apart.box_distance(tuple(points[0].tolist()), tuple(half.tolist()))
    assert point == pytest.approx(
        beyond[0].max() if (beyond[0] <= 0).all() else np.linalg.norm(np.maximum(beyond[0], 0))
    )


def test_planes_and_spheres():
    assert apart.plane_distance((1.0, 2.0, 3.0), (0.0, 0.0, 1.0), 0.5) == 2.5
    assert apart.sphere_distance((1.0, 2.0, 3.0), (1.0, 2.0, 5.0)) == 2.0
