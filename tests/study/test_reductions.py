"""Statistics, quantiles and trees, against NumPy and in any order."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.compiler.columns import classes, moments
from linkwise.compiler.ir.interpret import run_nest
from linkwise.study.engines.native import columns, counter, reducer
from linkwise.study.reduce import exact, sketch
from linkwise.study.reduce.reductions import (
    Histograms,
    folded_leaves,
    merged_extremes,
    merged_leaves,
    no_extremes,
)
from linkwise.study.reduce.tree import Tree


def reduced(values: np.ndarray, first: int = 0):
    """(leaves, extremes) of rows."""
    rows, count = values.shape
    table = columns(rows, max(count, 1))
    table[:, :count] = values
    leaf, extremes = np.empty((rows, 3)), no_extremes(rows)
    reducer(rows, table.shape[1])(first, count, *(a.ctypes.data for a in (table, leaf, extremes)))
    assert np.array_equal(table[:, :count], values, equal_nan=True)
    return leaf, extremes


def counted(x: np.ndarray) -> np.ndarray:
    tables = np.zeros((1, sketch.CLASSES), np.uint32)
    counter(1, len(x), sketch.BITS)(len(x), x.ctypes.data, tables.ctypes.data)
    return tables


@pytest.mark.parametrize("count", [1, 5, 16, 17, 1000, 4096])
@pytest.mark.parametrize("holes", [False, True])
def test_moments(count, holes):
    rng = np.random.default_rng(count)
    x = rng.normal(size=(3, count)) * [[1.0], [1e6], [1e-3]] + [[0.0], [1e6], [5.0]]
    if holes and count > 4:
        x[2, 3] = x[0, 0] = np.nan
    leaf, extremes = reduced(x, first=100)
    number = np.sum(~np.isnan(x), axis=1)
    assert np.array_equal(leaf[:, 0], number)
    assert np.allclose(leaf[:, 1], np.nanmean(x, axis=1), rtol=1e-14, atol=1e-16)
    assert np.allclose(leaf[:, 2], np.nanvar(x, axis=1) * number, rtol=1e-12, atol=1e-30)
    assert np.array_equal(extremes[:, 0], np.nanmin(x, axis=1))
    assert np.array_equal(extremes[:, 1] - 100, np.nanargmin(x, axis=1))
    assert np.array_equal(extremes[:, 2], np.nanmax(x, axis=1))
    assert np.array_equal(extremes[:, 3] - 100, np.nanargmax(x, axis=1))


@pytest.mark.parametrize("count", [3, 32, 50])
@pytest.mark.parametrize("kind", ["numbers", "holes", "infinite", "zeros"])
def test_machine_code_has_the_bits_of_the_interpreter(count, kind):
    x = np.random.default_rng(count).normal(size=count)
    if kind == "holes":
        x[::3] = np.nan
    elif kind == "infinite":
        x[1], x[2] = np.inf, -np.inf
    elif kind == "zeros":
        x = np.copysign(0.0, x)
    leaf, extremes = reduced(x[np.newaxis], first=7)
    rows = -(-count // 16)
    data = np.full(16 * rows, 1e9)  # what lies behind the end counts for nothing
    data[:count] = x
    arrays = {"data": data, "leaf": np.empty(3), "extremes": no_extremes(1)[0]}
    run_nest(moments(), arrays, first=7, count=count, rows=rows)
    assert np.array_equal(arrays["leaf"], leaf[0], equal_nan=True)
    assert np.isnan(leaf[0, 1:]).all() == (kind == "infinite")
    assert arrays["extremes"].tobytes() == extremes.tobytes()
    table = np.zeros(sketch.CLASSES, np.uint32)
    run_nest(classes(sketch.BITS), {"data": x, "table": table}, count=count)
    assert np.array_equal(table, counted(x)[0])


def test_nothing_but_nan():
    leaf, extremes = reduced(np.full((1, 20), np.nan))
    assert leaf.tolist() == [[0.0, 0.0, 0.0]]
    assert extremes.tolist() == [[np.inf, -1.0, -np.inf, -1.0]]


def test_the_order_of_sums_is_as_stated():
    """Entry k goes into sum k mod 16; the sums are added pairwise. Checked against plain Python."""
    x = np.random.default_rng(1).normal(size=1000) * 1e3
    sums = [0.0] * 16
    for k, value in enumerate(x):
        sums[k % 16] += value
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [sums[k] + sums[k + half] for k in range(half)]
    leaf, _ = reduced(x[np.newaxis])
    assert leaf[0, 1] == sums[0] / 1000


def test_merged_moments():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(2, n)) * 100 + 1e4 for n in (100, 1, 57, 300)]
    leaves = [*(reduced(part)[0] for part in parts), np.zeros((2, 3))]
    found = folded_leaves(np.stack(leaves))
    tree = Tree(len(leaves), merged_leaves)
    for k, leaf in enumerate(leaves):
        tree.add(k, leaf)
    assert np.array_equal(found, tree.result())
    x = np.concatenate(parts, axis=1)
    assert np.allclose(found[:, 1], x.mean(axis=1), rtol=1e-14)
    assert np.allclose(found[:, 2] / x.shape[1], x.var(axis=1), rtol=1e-12)


def test_of_equal_extremes_the_earlier_counts():
    a, b = np.array([[1.0, 5.0, 2.0, 6.0]]), np.array([[1.0, 9.0, 2.0, 8.0]])
    assert merged_extremes(a, b).tolist() == a.tolist()
    assert merged_extremes(no_extremes(1), b).tolist() == b.tolist()


@given(st.integers(1, 40), st.integers(0, 10**6), st.sets(st.integers(0, 39)))
def test_a_tree_does_not_care_about_the_order(count, seed, missing):
    parts = [None if k in missing else f"{k}" for k in range(count)]

    def result(order):
        tree = Tree(count, lambda a, b: f"({a} {b})")
        for k in order:
            assert not tree.complete
            tree.add(k, parts[k])
        assert tree.complete
        return tree.result()

    order = list(range(count))
    expected = result(order)
    random.Random(seed).shuffle(order)
    assert result(order) == expected
    present = [p for p in parts if p is not None]
    assert (expected or "").replace("(", "").replace(")", "").split() == present


VALUES = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(VALUES, min_size=1, max_size=60), st.sampled_from([0.0, 0.1, 0.5, 0.99, 1.0]))
def test_quantiles_lie_in_their_class(values, level):
    x = np.array(values)
    tables = counted(x)
    keys, counts = sketch.harvested(tables)
    assert not tables.any()
    found = sketch.located(keys, counts, 0, level)
    assert found is not None
    rank, place, inside = found
    exact = np.quantile(x, level, method="inverted_cdf")
    same_class = np.sort(x[sketch.ordered(x) >> np.uint64(64 - sketch.BITS) == rank])
    assert inside == len(same_class)
    assert [sketch.number(int(key)) for key in sketch.ordered(x)] == values
    assert same_class[place] == exact
    if np.abs(exact) > 1e-300:
        assert abs(sketch.middle(rank) - exact) <= sketch.ERROR * abs(exact) * (1 + 1e-12) or not np.isfinite(
            sketch.middle(rank)
        )


def test_counts_add_up_in_any_order():
    rng = np.random.default_rng(0)
    parts = []
    for n in (100, 50, 70):
        parts.append(sketch.harvested(counted(rng.normal(size=n))))
    one = sketch.merged(sketch.merged(parts[0], parts[1]), parts[2])
    other = sketch.merged(parts[2], sketch.merged(parts[1], parts[0]))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert one[1].sum() == 220


def test_every_column_is_counted_in_a_table_of_its_own():
    values = np.random.default_rng(0).normal(size=(3, 100)) * [[1.0], [1e6], [-1e-3]]
    table = columns(3, 100)
    table[:, :100] = values
    tables = np.zeros((3, sketch.CLASSES), np.uint32)
    counter(3, table.shape[1], sketch.BITS)(100, table.ctypes.data, tables.ctypes.data)
    for own, x in zip(tables, values, strict=True):
        assert np.array_equal(own, counted(x)[0])
        assert own.sum() == 100


@pytest.mark.parametrize("most", [3, 1 << 18])
def test_exact_quantiles_of_many_equal_values(monkeypatch, most):
    """Classes that are too large to be gathered are divided, down to a single number."""
    monkeypatch.setattr(exact, "MOST_GATHERED", most)
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(3, 7, 500) * 1.0, rng.normal(size=500), np.full(500, -2.5)], axis=1)
    values[::7, 1] = np.nan
    passes = []

    def read():
        passes.append(1)
        return iter(np.array_split(values, 4))

    targets, expected = [], []
    for element, column in enumerate(values.T):
        valid = np.sort(column[column == column])
        ranks = sketch.ordered(valid) >> np.uint64(64 - sketch.BITS)
        for level in (0.0, 0.3, 0.5, 1.0):
            place = max(0, int(np.ceil(level * len(valid))) - 1)
            same = np.flatnonzero(ranks == ranks[place])
            targets.append(exact.Quantile(element, int(ranks[place]), place - int(same[0]), len(same)))
            expected.append(valid[place])
    assert exact.quantiles(read, targets) == expected
    assert len(passes) == (4 if most == 3 else 1)


def test_histograms_of_rows_with_different_numbers_of_bins():
    bins = [(0.0, 1.0, 3), (-1.0, 1.0, 40), (0.0, 2.0, 7)]
    values = np.random.default_rng(1).normal(size=(3, 500))
    values[:, 7] = np.nan
    histograms = Histograms(0, 3, 1, bins)
    state = histograms.begin(None)
    histograms.add(state, 0, 500, values)
    for row, (low, high, count) in enumerate(bins):
        x = values[row][~np.isnan(values[row])]
        inner, _ = np.histogram(x, np.linspace(low, high, count + 1))
        expected = [(x < low).sum(), *inner, (x >= high).sum(), 1]
        assert histograms.finish(state)["counts"][row, : count + 3].tolist() == expected
