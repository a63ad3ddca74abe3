"""Permutations, Sobol's sequence, and the sampler that puts them together: any point alone, whatever the chunks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise as lw
from linkwise.study.engines.native import columns
from linkwise.study.sampling import sobol as sobol_module
from linkwise.study.sampling.axes import Axes
from linkwise.study.sampling.permutation import permuted
from linkwise.study.sampling.philox import philox
from linkwise.study.sampling.sobol import sobol
from linkwise.study.sampling.variables import read


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_permutation_hits_everything_once(n, key):
    found = permuted(np.arange(n, dtype=np.uint64), n, (key, 1))
    assert np.array_equal(np.sort(found), np.arange(n))


@given(st.integers(2, 10**15), st.data())
def test_permutation_of_any_part_alone(n, data):
    indices = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8, unique=True))
    together = permuted(np.array(indices, np.uint64), n, (5, 6))
    assert together.tolist() == [permuted(np.array([i], np.uint64), n, (5, 6))[0] for i in indices]
    assert len(set(together.tolist())) == len(indices)
    assert (together < n).all()


def test_permutation_looks_random():
    n = 100_000
    found = permuted(np.arange(n, dtype=np.uint64), n, (1, 2)).astype(float)
    assert abs(np.corrcoef(np.arange(n), found)[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize("dimension", [0, 1, 2, 17, 255])
def test_sobol_points_fill_every_stratum(dimension):
    u = sobol(np.arange(1024, dtype=np.uint64), dimension, (3, 4))
    assert np.array_equal(np.sort((u * 1024).astype(int)), np.arange(1024))


def test_sobol_pairs_fill_boxes():
    """The first two dimensions are a (0, 2)-sequence: each of 32 × 32 boxes has one of 1024 points."""
    index = np.arange(1024, dtype=np.uint64)
    boxes = [(sobol(index, d, (3, 4)) * 32).astype(int) for d in (0, 1)]
    assert len(set(zip(*boxes, strict=True))) == 1024


def test_sobol_is_the_published_sequence():
    qmc = pytest.importorskip("scipy.stats.qmc")
    known = qmc.Sobol(40, scramble=False, bits=52).random(5000 - 5000 % 4096)
    index = np.arange(len(known), dtype=np.uint64)
    gray = index ^ (index >> 1)  # the order in which SciPy gives them
    for dimension in (0, 1, 5, 39):
        a, b, _, _ = philox([dimension, 0, 0, 0], (3, 4))
        shift = (a << 32 | b) >> 12
        whole = (sobol(gray, dimension, (3, 4)) * 2.0**52 - 0.5).astype(np.uint64) ^ np.uint64(shift)
        assert np.array_equal(whole, (known[:, dimension] * 2.0**52).astype(np.uint64))
    assert sobol_module.dimensions() == 256


ROBOT = lw.load("two_link")
VARY = {
    "q": {"uniform": [-1.0, 1.0]},
    "qd": {"normal": [0.0, 1.0], "design": "latin_hypercube"},
    "qdd": {"uniform": [0.0, 1.0], "design": "sobol"},
    "payload.mass": {"grid": [1.0, 2.0, 3.0]},
    "other": {"grid": {"from": 0.0, "to": 1.0, "points": 2}},
    "one": {"choice": [1.0, 5.0]},
}


def sampler(samples: int, block: int, vary=VARY):
    from linkwise.study.sampling.points import Sampler

    variables = read(vary, ROBOT, "random")
    grid = tuple((v.name, len(v.values)) for v in variables if v.kind == "grid")
    return Sampler(Axes(grid, samples, 1000), variables, 11, block)


def test_random_numbers_that_each_variable_takes():
    found = {v.name: (v.draws, v.loaded) for v in read(VARY, ROBOT, "random")}
    assert found == {
        "q": (2, 0), "qd": (2, 0), "qdd": (2, 0), "payload.mass": (0, 1), "other": (0, 1), "one": (1, 0),
    }  # fmt: skip


def test_sobol_dimensions_are_counted_from_zero():
    made = sampler(100, 64, {**VARY, "qd": {"normal": [0.0, 1.0], "design": "sobol"}})
    assert [c.dimension for c in made.columns if c.variable.design == "sobol"] == [0, 1, 2, 3]


@given(st.integers(1, 400), st.sampled_from([16, 64, 256]), st.integers(0, 100))
def test_blocks_are_what_the_definitions_say(samples, block, start):
    made = sampler(samples, block)
    first = start % made.axes.points
    for place, count in list(made.axes.blocks(made.axes.chunk(0), block))[:3] + [(first, 1)]:
        found, wanted = columns(made.rows, block), columns(made.rows, block)
        made.fill(place, count, found)
        made.fill_at(np.arange(place, place + count), wanted)
        assert np.array_equal(found[:, :count], wanted[:, :count])


@given(st.integers(2, 500), st.integers(1, 7))
def test_latin_hypercube_for_any_chunks(samples, parts):
    """Every stratum of every column has exactly one sample, however the samples are cut into chunks."""
    made = sampler(samples, 16, {"qd": {"uniform": [0.0, 1.0], "design": "latin_hypercube"}})
    cuts = np.linspace(0, samples, parts + 1).astype(int)
    rows = []
    for a, b in itertools.pairwise(cuts):
        table = columns(made.rows, max(16, b - a))
        made.fill_at(np.arange(a, b), table)
        rows.append(table[:, : b - a])
    u = np.concatenate(rows, axis=1)
    for column in u:
        assert np.array_equal(np.sort(np.floor(column * samples)), np.arange(samples))
    assert not np.array_equal(u[0], u[1])


def test_indices_beyond_32_bits():
    made = sampler(2**40, 256, {"q": {"uniform": [0.0, 1.0]}})
    assert made.tiled
    start = 2**33 - 100  # a block that crosses a multiple of 2^32
    table, wanted = columns(made.rows, 256), columns(made.rows, 256)
    parts = list(made.parts(start, 200))
    assert [length for _, _, _, length in parts] == [100, 100]
    for generator, sample, offset, length in parts:
        generator(sample, length, np.array([table.ctypes.data + 8 * offset]))
    made.fill_at(np.arange(start, start + 200), wanted)
    assert np.array_equal(table[:, :200], wanted[:, :200])
