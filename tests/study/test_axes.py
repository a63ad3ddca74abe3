"""Chunks and blocks cover every point once, in order."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise as lw
from linkwise.study import quantities
from linkwise.study.errors import StudyError
from linkwise.study.sampling.axes import Axes

shapes = st.lists(st.integers(1, 7), max_size=3)


@given(shapes, st.one_of(st.none(), st.integers(1, 300)), st.integers(1, 200), st.sampled_from([4, 16, 64]))
def test_chunks_and_blocks_partition_the_points(lengths, samples, limit, block):
    axes = Axes(tuple((f"a{k}", n) for k, n in enumerate(lengths)), samples, limit)
    points = []
    for number in range(axes.chunks):
        chunk = axes.chunk(number)
        assert 0 < chunk.count <= limit
        assert chunk.number == number
        covered = list(axes.blocks(chunk, block))
        points += [p for first, count in covered for p in range(first, first + count)]
        for first, count in covered:
            segments = list(axes.segments(first, count))
            assert sum(length for _, _, length in segments) == count
            if axes.per_cell > block:
                assert len(segments) == 1
    assert points == list(range(axes.points))


@given(shapes, st.integers(1, 300), st.integers(1, 200))
def test_a_chunk_is_a_box(lengths, samples, limit):
    axes = Axes(tuple((f"a{k}", n) for k, n in enumerate(lengths)), samples, limit)
    assert math.prod(axes.chunk_shape) <= limit
    for number in range(axes.chunks):
        chunk = axes.chunk(number)
        starts = [p * c for p, c in zip(chunk.place, axes.chunk_shape, strict=True)]
        first = 0
        for n, start in zip(axes.shape, starts, strict=True):
            first = first * n + start
        assert first == chunk.first


def test_parameters_of_one_unit_have_it_together():
    robot = lw.load("two_link")
    masses = quantities.variable(robot, "errors", 2, False, None, ("link1.m", "link2.m"))
    assert (masses.unit, masses.entries) == ("kg", ("link1.m", "link2.m"))
    assert quantities.variable(robot, "errors", 2, False, None, ("link1.m", "link1.hx")).unit == ""


def test_joints_that_are_not_named_need_a_value():
    name = lw.load("two_link").joint_names[0]
    vary = {f"q.{name}": {"uniform": [0, 1]}}
    with pytest.raises(StudyError, match="is missing; give it, or q for all joints"):
        lw.study(robot="two_link", samples=2, vary=vary, keep={"q": "raw"})
    both = lw.study(robot="two_link", samples=2, vary={**vary, "q": {"value": 0.5}}, keep={"q": "raw"})
    assert both.plan.axes.shape == (2,)
