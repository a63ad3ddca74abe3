"""The short way for single states and plain batches: the same results as the long way, no leaks, every
fallback."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from sample_programs import everything, loop, same_bits, samples, sweep

from linkwise.compiler import dispatch, host
from linkwise.compiler.dispatch import fast_callable
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import trace

pytestmark = pytest.mark.skipif(
    not dispatch.SUPPORTED, reason="the short way does not fit this Python or NumPy"
)


def kernel_of(make, dtype="float64") -> Kernel:
    program = make("float64")
    return Kernel(program.name, program.inputs, program.outputs, dtype, make)


class Fallback:
    """The kernel itself, counting its calls."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.calls = []

    def __call__(self, *args, **options):
        self.calls.append((args, options))
        return self.kernel(*args, **options)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_of(lambda dtype: sweep(4, dtype))


@pytest.fixture
def fallback(kernel) -> Fallback:
    return Fallback(kernel)


@pytest.fixture
def fast(kernel, fallback):
    return fast_callable(kernel, fallback, "sweep", "Torques.", "(q, qd, qdd, *, out=None)")


@pytest.fixture(scope="module")
def states(kernel):
    return [np.array(a) for a in samples(kernel.program(), 50)]


def one(states, k=0):
    return [np.array(a[k]) for a in states]


def test_a_single_state_takes_the_short_way(fast, fallback, kernel, states):
    for k in range(50):
        assert same_bits(fast(*[a[k] for a in states]), kernel(*[a[k] for a in states]))
    assert not fallback.calls


def test_it_looks_like_a_function(fast):
    import inspect

    assert fast.__name__ == "sweep"
    assert fast.__doc__ == "Torques."
    assert str(inspect.signature(fast)) == "(q, qd, qdd, *, out=None)"
    assert fast.__module__ == "linkwise"


def test_the_result_is_an_ordinary_array(fast, states):
    result = fast(*one(states))
    assert type(result) is np.ndarray
    assert result.flags.owndata
    assert result.flags.writeable
    assert result.flags.c_contiguous
    assert sys.getrefcount(result) == 2
    assert result.base is None


@pytest.mark.parametrize("make", [everything, loop])
def test_all_kinds_of_outputs(make):
    kernel = kernel_of(make)
    fallback = Fallback(kernel)
    fast = fast_callable(kernel, fallback, kernel.name, "")
    for dtype in (np.float64, np.float32):
        inputs = [a.astype(dtype) for a in samples(kernel.program(), 21)]
        for batch in (inputs, [a[3] for a in inputs]):
            fast(*batch)
            fallback.calls.clear()
            found, wanted = fast(*batch), kernel(*batch)
            assert not fallback.calls
            assert type(found) is type(wanted)
            if not isinstance(found, tuple):
                found, wanted = (found,), (wanted,)
            for f, w in zip(found, wanted, strict=True):
                assert type(f) is type(w)
                assert same_bits(np.asarray(f), np.asarray(w))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_number_as_the_only_output(dtype):
    kernel = kernel_of(lambda dtype: trace(lambda q: q[0] * q[1], {"q": 2}, {"e": ()}, dtype=dtype))
    fast = fast_callable(kernel, kernel, "energy", "")
    q = np.array([3.0, 5.0], dtype)
    fast(q)
    assert fast(q) == 15.0
    assert type(fast(q)) is np.dtype(dtype).type
    assert fast(np.stack([q, q])).tolist() == [15.0, 15.0]


def test_batches_take_it_once_their_code_is_there(fast, fallback, kernel, states):
    fast(*states)
    fallback.calls.clear()
    for count in range(2, 3 * host.lanes("float64") + 2):
        assert same_bits(fast(*[a[:count] for a in states]), kernel(*[a[:count] for a in states]))
    q, qd, qdd = states
    assert same_bits(fast(q, qd[3], qdd), kernel(q, qd[3], qdd))
    assert same_bits(fast(q[0], qd[3], qdd), kernel(q[0], qd[3], qdd))
    assert not fallback.calls


def test_batches_that_are_worth_threads_go_to_the_fallback(fast, fallback, kernel, states):
    fast(*states)
    fallback.calls.clear()
    limit = kernel.native("float64", host.lanes("float64")).states_for_one_thread
    for count, calls in ((limit, 0), (limit + 1, 1)):
        fast(*[np.zeros((count, 4))] * 3)
        assert len(fallback.calls) == calls


def test_float32_takes_it_from_the_second_call_on(fast, fallback, kernel, states):
    small = [a[0].astype(np.float32) for a in states]
    results = [fast(*small) for _ in range(3)]
    assert len(fallback.calls) == 1
    assert all(same_bits(r, kernel(*small)) for r in results)
    fast(*[a[:5].astype(np.float32) for a in states])
    fallback.calls.clear()
    fast(*[a[:5].astype(np.float32) for a in states])
    fast(*one(states))
    assert not fallback.calls


OTHER_CALLS = {
    "keyword": lambda a: (a, {"out": np.empty(4)}),
    "list": lambda a: ([a[0].tolist(), *a[1:]], {}),
    "last is a list": lambda a: ([*a[:2], a[2].tolist()], {}),
    "integers": lambda a: ([a[0].astype(int), *a[1:]], {}),
    "mixed precision": lambda a: ([a[0].astype(np.float32), *a[1:]], {}),
    "other byte order": lambda a: ([a[0].astype(">f8"), *a[1:]], {}),
    "not contiguous": lambda a: ([np.repeat(a[0], 2)[::2], *a[1:]], {}),
    "misaligned": lambda a: ([np.frombuffer(b"\0" + a[0].tobytes(), np.uint8)[1:].view("f8"), *a[1:]], {}),
    "subclass": lambda a: ([a[0].view(np.recarray), *a[1:]], {}),
    "two leading axes": lambda a: ([a[0].reshape(1, 1, 4), *a[1:]], {}),
    "one row": lambda a: ([a[0].reshape(1, 4), *a[1:]], {}),
    "no rows": lambda a: ([np.empty((0, 4)), *a[1:]], {}),
    "fortran order": lambda a: ([np.asfortranarray(np.stack([a[0], a[1]])), *a[1:]], {}),
    "threads": lambda a: (a, {"threads": 1}),
}


@pytest.mark.parametrize("call", OTHER_CALLS)
def test_everything_else_goes_to_the_fallback_unchanged(fast, fallback, kernel, states, call):
    args, options = OTHER_CALLS[call](one(states))
    result = fast(*args, **options)
    assert len(fallback.calls) == 1
    got_args, got_options = fallback.calls[0]
    assert all(g is a for g, a in zip(got_args, args, strict=True))
    assert got_options == options
    assert same_bits(result, kernel(*args))


def test_read_only_inputs_are_fine(fast, fallback, kernel, states):
    locked = one(states)
    for array in locked:
        array.flags.writeable = False
    assert same_bits(fast(*locked), kernel(*locked))
    assert not fallback.calls


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ([np.zeros(3), np.zeros(4), np.zeros(4)], r"q: expected shape \(\.\.\., 4\), got \(3,\)"),
        ([np.zeros(4), np.zeros((2, 5)), np.zeros(4)], r"qd: expected shape \(\.\.\., 4\), got \(2, 5\)"),
        ([np.zeros((2, 4)), np.zeros((3, 4)), np.zeros(4)], "do not broadcast together"),
        ([np.zeros(4), np.zeros(4)], "takes 3 arrays"),
        ([], "takes 3 arrays"),
        ([np.zeros(4)] * 4, "takes 3 arrays"),
        ([None] * 3, "q: expected"),
        ([np.array(1.0)] * 3, "q: expected shape"),
    ],
)
def test_errors_come_through(fast, args, error):
    with pytest.raises((ValueError, TypeError), match=error):
        fast(*args)


def test_the_fallback_may_raise_anything(kernel):
    def broken(*args, **options):
        raise KeyError("mine")

    fast = fast_callable(kernel, broken, "sweep", "")
    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            fast(1, 2, 3)
    assert same_bits(fast(*[np.ones(4)] * 3), kernel(*[np.ones(4)] * 3))


def two_outputs(dtype: str):
    """A number and an array."""
    return trace(lambda q: (q[0] * q[1], [q[2], q[0] - q[2]]), {"q": 3}, {"e": (), "d": (2,)}, dtype=dtype)


@pytest.mark.parametrize("make", [lambda dtype: sweep(4, dtype), loop, two_outputs])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nan_can_be_left_to_the_fallback(make, dtype):
    kernel = kernel_of(make)
    fallback = Fallback(kernel)
    fast = fast_callable(kernel, fallback, "f", "", nan_to_fallback=True)
    inputs = [np.abs(a).astype(dtype) + dtype(0.1) for a in samples(kernel.program(), 21)]
    single = [np.array(a[3]) for a in inputs]
    for _ in range(2):
        fallback.calls.clear()
        fast(*inputs)
        fast(*single)
    assert not fallback.calls
    for state in range(21):
        for k in range(len(inputs)):
            spoiled = [a.copy() for a in inputs]
            spoiled[k][state, -1] = np.nan
            for batch in (spoiled, [np.array(a[state]) for a in spoiled]):
                fallback.calls.clear()
                found, wanted = fast(*batch), kernel(*batch)
                assert len(fallback.calls) == 1
                for f, w in zip(found, wanted, strict=True):
                    assert same_bits(np.asarray(f), np.asarray(w))


def test_references_are_balanced(kernel, states):
    fast = fast_callable(kernel, kernel, "sweep", "")
    args = one(states)
    batch = [np.array(a[:5]) for a in states]
    small = [a.astype(np.float32) for a in args]
    mixed = [args[0], batch[1], args[2]]
    for each in (args, batch, small, mixed):
        fast(*each)
    own = [*args, *batch, *small, fast, fast.__self__, fast.__self__.fallback]
    shared = [
        np.ndarray,
        np.dtype(np.float64),
        np.dtype(np.float32),
        np.float64,
    ]  # others come and go meanwhile
    del each
    before = [sys.getrefcount(x) for x in own], [sys.getrefcount(x) for x in shared]
    for _ in range(1000):
        for each in (args, batch, small, mixed):
            fast(*each)
        with pytest.raises(TypeError):
            fast(1)
    del each
    assert [sys.getrefcount(x) for x in own] == before[0]
    for x, count in zip(shared, before[1], strict=True):
        assert abs(sys.getrefcount(x) - count) < 500


@pytest.mark.parametrize("make", [lambda dtype: sweep(4, dtype), everything])
def test_no_memory_is_lost(make):
    kernel = kernel_of(make)
    fast = fast_callable(kernel, kernel, "f", "")
    inputs = samples(kernel.program(), 6)
    single = [np.array(a[0]) for a in inputs]

    def calls():
        for _ in range(300):
            fast(*single)
            fast(*inputs)
            fast(*[a.tolist() for a in single])

    calls()
    tracemalloc.start()
    try:
        calls()
        before = tracemalloc.get_traced_memory()[0]
        calls()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 4000


def test_the_callable_keeps_its_code_alive():
    fast = fast_callable(kernel_of(lambda dtype: sweep(3, dtype)), lambda *a: None, "sweep", "doc")
    gc.collect()
    junk = [np.full(4000, 255, np.uint8) for _ in range(100)]
    results = {tuple(fast(*[np.full(3, 0.5)] * 3)) for _ in range(100)}
    assert len(results) == 1
    assert fast.__doc__ == "doc"
    del junk


def test_the_code_goes_with_the_callable():
    kernel = kernel_of(lambda dtype: sweep(3, dtype))
    fast = fast_callable(kernel, kernel, "sweep", "")
    fast(*[np.ones((9, 3))] * 3)
    fast(*[np.ones(3, np.float32)] * 3)
    ends = [weakref.ref(kernel), weakref.ref(kernel.native("float64", 1).code)]
    del kernel, fast
    gc.collect()
    assert [end() for end in ends] == [None, None]


def test_many_threads_at_once(fast, kernel, states):
    fast(*states)
    wanted_one, wanted_all = kernel(*one(states)), kernel(*states)
    wrong = []

    def work():
        for _ in range(200):
            if not same_bits(fast(*one(states)), wanted_one) or not same_bits(fast(*states), wanted_all):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_support_the_fallback_is_all_there_is(kernel, monkeypatch):
    monkeypatch.setattr(dispatch, "SUPPORTED", False)
    assert fast_callable(kernel, kernel, "sweep", "") is kernel


def test_unknown_versions_are_not_trusted(monkeypatch):
    assert dispatch._supported()
    monkeypatch.setattr(np, "__version__", "3.0.0")
    assert not dispatch._supported()
    monkeypatch.setattr(np, "__version__", "1.25.2")
    assert not dispatch._supported()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "version_info", (3, 15, 0))
    assert not dispatch._supported()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "abiflags", "t")
    assert not dispatch._supported()
    monkeypatch.undo()
    monkeypatch.setattr(dispatch, "DATA", 24)
    assert not dispatch._layout_is_known()
