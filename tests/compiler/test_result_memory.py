"""Memory of large results is used again: never while anything refers to it, and within bounds."""

from __future__ import annotations

import ctypes
import gc
import pickle
import random
import threading

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import dispatch, layout

pytestmark = pytest.mark.skipif(
    not dispatch.SUPPORTED, reason="the layout of Python's or NumPy's objects is not known"
)
STATES = layout.LARGE // 32  # of four numbers: the smallest batch whose results are large


@lw.kernel(x=4)
def both(x):
    return [2.0 * a for a in x], [[a + 1.0] for a in x]


@pytest.fixture(autouse=True, scope="module")
def connected():
    dispatch.entry_points(wait=True)
    x = np.zeros((20, 4))
    for given in (x, x.astype(np.float32)):
        for _ in range(4):
            both(given), both(given[0])
    assert type(both)._vectorcall.__get__(both)
    own, before = dispatch._blocks, list(dispatch._blocks)
    own[:] = [0] * layout.BLOCKS  # whatever other tests keep
    yield
    for place in filter(None, own):
        ctypes.pythonapi.Py_DecRef(ctypes.cast(place, ctypes.py_object))
    own[:] = before


def through_python(x):
    return type(both).__call__(both, x, threads=1)


def directly(x):
    return both(x, threads=1)


def address(array):
    return array.__array_interface__["data"][0]


def kept_bytes():
    """Of all blocks, and how many there are."""
    objects = [ctypes.cast(place, ctypes.py_object).value for place in dispatch._blocks if place]
    return sum(block.nbytes for block in objects), len(objects)


@pytest.mark.parametrize("call", [directly, through_python])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_results_are_ordinary_arrays_and_their_memory_is_used_again(call, dtype):
    x = np.arange(4 * 3 * STATES, dtype=dtype).reshape(-1, 4)
    first, second = call(x)
    plain = np.empty(second.shape, dtype)
    assert second.flags.owndata is False
    for name in ("c_contiguous", "f_contiguous", "aligned", "writeable", "writebackifcopy"):
        assert getattr(second.flags, name) == getattr(plain.flags, name), name
    assert (second.strides, second.dtype, second.shape) == (plain.strides, plain.dtype, (len(x), 4, 1))
    assert (first == 2 * x).all()
    assert (second[..., 0] == x + 1).all()
    assert (pickle.loads(pickle.dumps(first)) == first).all()
    places = {address(first), address(second)}
    del first, second
    again = call(x)
    assert {address(part) for part in again} == places


@pytest.mark.parametrize("call", [directly, through_python])
def test_memory_that_anything_refers_to_is_not_used_again(call):
    x = np.ones((STATES, 4))
    referring = (
        lambda a: a[5:7],
        lambda a: a.T[1:][:, ::3],
        memoryview,
        lambda a: a.view(np.int64).reshape(-1)[9:10],
        lambda a: np.from_dlpack(a),
        lambda a: a.base,
        lambda a: iter(a),
        lambda a: a.ctypes,
    )
    for refer in referring:
        result = call(x)[0]
        place, kept = address(result), refer(result)
        del result
        others = [call(x) for _ in range(3)]
        assert place not in {address(part) for pair in others for part in pair}
        del kept, others
    assert place in {address(part) for part in call(x)}


def mixed_calls(seed: int, rounds: int, failures: list) -> None:
    """Keep some results, or parts of them, and compare all that are kept with their marks after every call."""
    rng, kept = random.Random(seed), []
    for turn in range(rounds):
        mark = 1000.0 * seed + turn
        count = rng.choice((STATES - 1, STATES, STATES + 3, 2 * STATES, 5 * STATES))
        x = np.full((count, 4), mark, rng.choice((np.float64, np.float32)))
        double, one_more = rng.choice((directly, through_python))(x)
        kept += [(double[rng.randrange(9) :: 2], 2 * mark), (one_more, mark + 1)]
        rng.shuffle(kept)
        del kept[rng.randrange(1, 12) :]
        failures += [mark for part, wanted in kept if not (part == wanted).all()]


def test_results_that_live_never_share_memory():
    failures: list = []
    mixed_calls(0, 60, failures)
    workers = [threading.Thread(target=mixed_calls, args=(seed, 30, failures)) for seed in (1, 2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_what_is_kept_is_bounded():
    """Results beyond the bound have memory of their own; blocks of other sizes make room for new ones."""
    x = np.zeros((layout.MOST_KEPT // 32 // 8, 4))  # an eighth of the bound
    alive = [directly(x) for _ in range(6)]
    total, number = kept_bytes()
    assert total <= layout.MOST_KEPT
    assert number <= layout.BLOCKS
    assert any(part.flags.owndata for pair in alive for part in pair)
    assert all((part == value).all() for pair in alive for part, value in zip(pair, (0.0, 1.0), strict=True))
    del alive
    for count in range(STATES, STATES + 40 * 700, 700):  # other sizes, more of them than places
        assert not directly(x[:count])[0].flags.owndata
        total, number = kept_bytes()
        assert total <= layout.MOST_KEPT
        assert number <= layout.BLOCKS
    too_large = np.zeros((layout.LARGEST // 32 + 1, 4))
    assert directly(too_large)[0].flags.owndata


def test_no_reference_is_lost_or_kept():
    """Each block has one reference of the list once results are gone."""
    x = np.zeros((3 * STATES, 4))
    for call in (directly, through_python):
        for _ in range(20):
            call(x)
        gc.collect()
        counts = [ctypes.c_int.from_address(place).value for place in dispatch._blocks if place]
        assert counts
        assert set(counts) == {1}
