"""Calls of kernels through machine code: the same results as through Python, no leaks, everything else left alone."""

from __future__ import annotations

import functools
import gc
import inspect
import pickle
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from sample_programs import everything, loop, same_bits, samples, sweep

import linkwise as lw
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime import dispatch, host, layout

pytestmark = pytest.mark.skipif(
    not dispatch.SUPPORTED, reason="the layout of Python's or NumPy's objects is not known"
)


def kernel_of(make, dtype="float64") -> Kernel:
    program = make("float64")
    return Kernel(program.name, program.inputs, program.outputs, dtype, make)


def python(kernel, *args, **options):
    """The same call through Python."""
    return Kernel.__call__(kernel, *args, **options)


_seen: list = []


@pytest.fixture(autouse=True, scope="module")
def watched():
    """Every kernel connected here notes the calls that go through Python."""
    own = dispatch.Connection

    class Watched(own):
        def __init__(self, kernel, main, prelude, fallback):
            def watching(kernel, *args, **options):
                _seen.append((args, options))
                return fallback(kernel, *args, **options)

            super().__init__(kernel, main, prelude, watching)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "Connection", Watched)
        yield


@pytest.fixture
def calls():
    """The calls that go through Python, as (arguments, options)."""
    _seen.clear()
    return _seen


def arm(dtype: str):
    return sweep(4, dtype)


@functools.cache
def ready(make, dtype="float64") -> Kernel:
    """A kernel with machine code in all four forms."""
    kernel = kernel_of(make, dtype)
    inputs = samples(kernel.program(), 9)
    for given in (inputs, [a[0] for a in inputs]):
        kernel(*given)
        kernel(*[a.astype(np.float32) for a in given])
    return kernel


@pytest.fixture
def kernel(calls) -> Kernel:
    made = ready(arm)
    calls.clear()
    return made


@pytest.fixture(scope="module")
def states():
    program = sweep(4, "float64")
    return [np.array(a) for a in samples(program, 50)]


def one(states, k=0):
    return [np.array(a[k]) for a in states]


def test_a_kernel_looks_the_same_before_and_after_its_first_call(states):
    made = kernel_of(lambda dtype: sweep(4, dtype))
    before = type(made), inspect.signature(made), made.__doc__, made.__call__.__doc__, sorted(vars(made))
    made(*one(states))
    assert made._vectorcall
    assert (
        type(made),
        inspect.signature(made),
        made.__doc__,
        made.__call__.__doc__,
        sorted(vars(made)),
    ) == before
    assert list(inspect.signature(made).parameters) == ["args", "out", "threads"]


def test_a_single_state_is_taken(kernel, calls, states):
    for k in range(50):
        assert same_bits(kernel(*[a[k] for a in states]), python(kernel, *[a[k] for a in states]))
    assert not calls


def test_rows_that_overlap_are_read_as_numpy_reads_them(kernel, states):
    """Windows along an array have the same step for both leading axes; others are read backwards or every second."""
    sizes = [a.shape[-1] for a in states]
    for cut in (
        lambda flat, n: np.lib.stride_tricks.as_strided(flat, (4, 3, n), (8, 8, 8)),
        lambda flat, n: np.lib.stride_tricks.as_strided(flat, (4, 3, n), (8 * n, 8 * n, 8)),
        lambda flat, n: flat[: 12 * n].reshape(4, 3, n)[::-1],
        lambda flat, n: flat[: 12 * n].reshape(3, 4, n).swapaxes(0, 1),
        lambda flat, n: flat[: 24 * n].reshape(4, 6, n)[:, ::2],
    ):
        given = [cut(np.concatenate([a.ravel(), a.ravel()]), n) for a, n in zip(states, sizes, strict=True)]
        assert same_bits(kernel(*given), kernel(*[np.ascontiguousarray(a) for a in given]))


def test_the_result_is_an_ordinary_array(kernel, states):
    for result in (kernel(*one(states)), kernel(*states)):
        assert type(result) is np.ndarray
        assert result.flags.owndata
        assert result.flags.writeable
        assert result.flags.c_contiguous
        assert result.base is None
    result = kernel(*one(states))
    assert sys.getrefcount(result) == 2


@pytest.mark.parametrize("make", [everything, loop])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_kinds_of_outputs(make, dtype, calls):
    kernel = ready(make)
    calls.clear()
    inputs = [a.astype(dtype) for a in samples(kernel.program(), 21)]
    for batch in (inputs, [a[3] for a in inputs]):
        found, wanted = kernel(*batch), python(kernel, *batch)
        assert type(found) is type(wanted)
        if not isinstance(found, tuple):
            found, wanted = (found,), (wanted,)
        for f, w in zip(found, wanted, strict=True):
            assert type(f) is type(w)
            assert same_bits(np.asarray(f), np.asarray(w))
    assert not calls


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_number_as_the_only_output(dtype):
    kernel = ready(lambda dtype: trace(lambda q: q[0] * q[1], {"q": 2}, {"e": ()}, dtype=dtype))
    q = np.array([3.0, 5.0], dtype)
    assert kernel(q) == 15.0
    assert type(kernel(q)) is np.dtype(dtype).type
    assert kernel(np.stack([q, q])).tolist() == [15.0, 15.0]
    out = np.empty((), dtype)
    assert kernel(q, out=out) is out
    assert out == 15.0


def test_batches_of_every_length(kernel, calls, states):
    for count in range(1, 3 * host.lanes("float64") + 2):
        cut = [a[:count] for a in states]
        assert same_bits(kernel(*cut), python(kernel, *cut))
    assert not calls


def test_batches_that_are_worth_threads_go_through_python(kernel, calls):
    limit = kernel.native("float64", host.lanes("float64")).states_for_one_thread
    for count, number in ((limit, 0), (limit + 1, 1)):
        kernel(*[np.zeros((count, 4))] * 3)
        assert len(calls) == number
    kernel(*[np.zeros((limit + 1, 4))] * 3, threads=1)
    assert len(calls) == 1


def rows(a, *shape):
    return np.broadcast_to(a, (*shape, 4)).copy() + np.arange(np.prod(shape)).reshape(*shape, 1)


TAKEN = {
    "lists": lambda a: ([x.tolist() for x in a], {}),
    "tuples": lambda a: ([tuple(x.tolist()) for x in a], {}),
    "one list": lambda a: ([a[0], a[1].tolist(), a[2]], {}),
    "whole numbers": lambda a: ([[1, -2, 3, 2**62], [0, -1, 0.5, 7], a[2]], {}),
    "NumPy's numbers": lambda a: ([list(a[0]), tuple(a[1]), a[2]], {}),
    "integers": lambda a: ([(10 * a[0]).astype(np.int64), *a[1:]], {}),
    "mixed precision": lambda a: ([a[0].astype(np.float32), *a[1:]], {}),
    "float32": lambda a: ([x.astype(np.float32) for x in a], {}),
    "not contiguous": lambda a: ([np.repeat(x, 2)[::2] for x in a], {}),
    "backwards": lambda a: ([x[::-1] for x in a], {}),
    "one row": lambda a: ([a[0].reshape(1, 4), *a[1:]], {}),
    "two leading axes": lambda a: ([a[0].reshape(1, 1, 4), *a[1:]], {}),
    "broadcast": lambda a: ([rows(a[0], 5, 1), rows(a[1], 1, 3), a[2]], {}),
    "broadcast, mixed": lambda a: ([rows(a[0], 5, 1), rows(a[1], 3).astype(np.float32), a[2].tolist()], {}),
    "three axes": lambda a: ([rows(x, 2, 3, 2) for x in a], {}),
    "fortran order": lambda a: ([np.asfortranarray(rows(a[0], 6)), *a[1:]], {}),
    "every second row": lambda a: ([rows(x, 6)[::2] for x in a], {}),
    "rows backwards": lambda a: ([rows(x, 6)[::-1] for x in a], {}),
    "columns of a table": lambda a: (np.split(np.hstack([rows(x, 7) for x in a]), 3, axis=1), {}),
    "swapped axes": lambda a: ([rows(x, 2, 3).swapaxes(0, 1) for x in a], {}),
    "repeated": lambda a: ([np.broadcast_to(x, (6, 4)) for x in a], {}),
    "read only": lambda a: ([np.frombuffer(x.tobytes()) for x in a], {}),
    "out": lambda a: (a, {"out": np.empty(4)}),
    "out of a batch": lambda a: ([rows(x, 6) for x in a], {"out": np.empty((6, 4))}),
    "out in single precision": lambda a: (
        [x.astype(np.float32) for x in a],
        {"out": np.empty(4, np.float32)},
    ),
    "no out": lambda a: (a, {"out": None}),
    "threads": lambda a: (a, {"threads": 1}),
    "threads of a batch": lambda a: ([rows(x, 6) for x in a], {"threads": 1, "out": np.empty((6, 4))}),
    "many threads for one state": lambda a: (a, {"threads": 100}),
    "no threads": lambda a: ([rows(x, 6) for x in a], {"threads": None}),
}


@pytest.mark.parametrize("call", TAKEN)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_kind_of_call_gives_the_same_bits(calls, states, call, dtype):
    kernel = ready(arm, dtype)
    calls.clear()
    args, options = TAKEN[call](one(states))
    if isinstance(options.get("out"), np.ndarray) and dtype == "float32":
        options["out"] = options["out"].astype(np.float32)
    found = kernel(*args, **options)
    assert not calls
    if options.get("out") is not None:
        assert found is options["out"]
    wanted = python(kernel, *args)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert same_bits(found, wanted)


def laid_out(rng, values):
    """The same numbers somewhere else in memory: axes in another order, backwards, with gaps, repeated, converted."""
    order = rng.permutation(values.ndim)
    steps = rng.choice([1, 1, -1, 2, -2], values.ndim)
    shape = [abs(step) * length for step, length in zip(steps, values.shape, strict=True)]
    memory = np.full([shape[k] for k in order], np.nan)
    view = memory.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]
    view[...] = values
    if rng.random() < 0.2 and values.ndim > 1 and values.shape[0] > 1:
        view = np.broadcast_to(view[:1], values.shape)
    return view.astype(np.float32) if rng.random() < 0.2 else view


def test_random_layouts_and_leading_axes(kernel, calls):
    """By machine code and by Python: what dense rows give, which NumPy's own broadcasting makes. Shapes that do not fit
    are refused by both."""
    rng = np.random.default_rng(8)
    refused = taken = 0
    for _ in range(300):
        lengths = rng.integers(1, 4, rng.integers(0, 4))
        given = []
        for _ in range(3):
            own = [n if rng.random() < 0.7 else 1 for n in lengths[rng.integers(0, len(lengths) + 1) :]]
            if own and rng.random() < 0.06:
                own[rng.integers(len(own))] += 1
            given.append(laid_out(rng, rng.normal(size=(*own, 4))))
        calls.clear()
        try:
            shape = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        except ValueError:
            refused += 1
            for call in (kernel, functools.partial(python, kernel)):
                with pytest.raises(lw.ShapeError, match="do not broadcast"):
                    call(*given)
            continue
        dense = [np.ascontiguousarray(np.broadcast_to(x, (*shape, 4)), float).reshape(-1, 4) for x in given]
        expected = kernel(*dense).reshape(*shape, 4)
        if all(x.dtype == np.float32 for x in given):
            expected = kernel(*[x.astype(np.float32) for x in dense]).reshape(*shape, 4)
        for found in (kernel(*given), python(kernel, *given)):
            assert same_bits(found, expected)
        taken += not calls
    assert refused > 5
    assert taken > 250


LEFT_TO_PYTHON = {
    "unknown keyword": lambda a: (a, {"thread": 1}),
    "booleans": lambda a: ([a[0] > 0, *a[1:]], {}),
    "numbers too large": lambda a: ([[2**63, 0, 0, 0], *a[1:]], {}),
    "much too large": lambda a: ([[-(2**2000), 0, 0, 0], *a[1:]], {}),
    "a list with a NumPy float32": lambda a: ([[np.float32(1), 0, 0, 0], *a[1:]], {}),
    "a list of strings": lambda a: ([list("1234"), *a[1:]], {}),
    "nested lists": lambda a: ([[a[0].tolist()] * 2, *a[1:]], {}),
    "other byte order": lambda a: ([a[0].astype(">f8"), *a[1:]], {}),
    "misaligned": lambda a: ([np.frombuffer(b"\0" + a[0].tobytes(), np.uint8)[1:].view("f8"), *a[1:]], {}),
    "subclass": lambda a: ([a[0].view(np.recarray), *a[1:]], {}),
    "no rows": lambda a: ([np.empty((0, 4)), *a[1:]], {}),
    "many axes": lambda a: ([a[0].reshape((1,) * 12 + (4,)), *a[1:]], {}),
    "out is an input": lambda a: (a, {"out": a[1]}),
    "out overlaps": lambda a: ([(b := np.arange(8.0))[:4], *a[1:]], {"out": b[3:7]}),
    "out overlaps rows": lambda a: ([(b := rows(a[0], 8))[::-2], *a[1:]], {"out": b[4:]}),
    "out is strided": lambda a: (a, {"out": np.empty(8)[::2]}),
    "out has another precision": lambda a: (a, {"out": np.empty(4, np.float32)}),
    "out has another shape": lambda a: (a, {"out": np.empty(5)}),
    "out has another number of axes": lambda a: (a, {"out": np.empty((1, 4))}),
    "out is a list": lambda a: (a, {"out": [0.0] * 4}),
    "out is read only": lambda a: (a, {"out": np.frombuffer(bytes(32))}),
    "threads as a boolean": lambda a: (a, {"threads": True}),
    "zero threads": lambda a: (a, {"threads": 0}),
    "threads beyond all numbers": lambda a: (a, {"threads": -(10**30)}),
    "threads as NumPy's number": lambda a: (a, {"threads": np.int64(1)}),
    "several threads": lambda a: ([rows(x, 200_000) for x in a], {"threads": 2}),
    "too few": lambda a: (a[:2], {}),
    "none": lambda a: ([], {}),
    "too many": lambda a: ([*a, a[0]], {}),
    "no arrays": lambda a: ([None] * 3, {}),
    "a number": lambda a: ([np.array(1.0)] * 3, {}),
    "wrong length": lambda a: ([a[0], np.zeros((2, 5)), a[2]], {}),
    "wrong list": lambda a: ([a[0], [1.0], a[2]], {}),
    "no broadcasting": lambda a: ([np.zeros((2, 4)), np.zeros((3, 4)), a[2]], {}),
}


def outcome(call):
    """The result, or the error as text."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("call", LEFT_TO_PYTHON)
def test_everything_else_goes_through_python_unchanged(kernel, calls, states, call):
    args, options = LEFT_TO_PYTHON[call](one(states))
    found = outcome(lambda: kernel(*args, **options))
    assert len(calls) == 1
    got_args, got_options = calls[0]
    assert all(g is a for g, a in zip(got_args, args, strict=True))
    assert got_options.keys() == options.keys()
    assert all(got_options[k] is options[k] for k in options)
    args, options = LEFT_TO_PYTHON[call](one(states))
    wanted = outcome(lambda: python(kernel, *args, **options))
    if isinstance(wanted, str):
        assert found == wanted
    else:
        assert same_bits(found, wanted)


def two_outputs(dtype: str):
    """A number and an array."""
    return trace(lambda q: (q[0] * q[1], [q[2], q[0] - q[2]]), {"q": 3}, {"e": (), "d": (2,)}, dtype=dtype)


def test_out_for_several_outputs(calls):
    kernel = ready(two_outputs)
    calls.clear()
    q = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for given, shape in ((q, (2,)), (q[0], ())):
        out = np.empty(shape), np.empty((*shape, 2))
        for kind in (tuple, list):
            found = kernel(given, out=kind(out))
            assert type(found) is tuple
            assert all(f is o for f, o in zip(found, out, strict=True))
            assert same_bits(found[1], python(kernel, given)[1])
    assert not calls
    both = np.empty((2, 2, 2))
    for out in (
        (both[0, 0], both[0]),
        (np.empty(2),),
        (np.empty(2), None),
        np.empty(2),
    ):  # overlap, one missing
        assert outcome(lambda out=out: kernel(q, out=out)).__class__ in (tuple, str)
        assert calls.pop()


def test_references_are_balanced(kernel, states):
    args, batch = one(states), [np.array(a[:5]) for a in states]
    small, mixed = [a.astype(np.float32) for a in args], [args[0], batch[1], args[2]]
    listed, out, counts = [a.tolist() for a in args], np.empty(4), 10**9 + 1
    own = [*args, *batch, *small, kernel, out, *listed[0], *listed, counts]
    shared = [np.ndarray, np.dtype(np.float64), np.dtype(np.float32), np.float64]  # others use them meanwhile
    before = [sys.getrefcount(x) for x in own], [sys.getrefcount(x) for x in shared]
    for _ in range(1000):
        for each in (args, batch, small, mixed, listed):
            kernel(*each)
        kernel(*args, out=out, threads=counts)
        with pytest.raises(TypeError):
            kernel(1)
    del each
    assert [sys.getrefcount(x) for x in own] == before[0]
    for x, count in zip(shared, before[1], strict=True):
        assert abs(sys.getrefcount(x) - count) < 500


@pytest.mark.parametrize("make", [arm, everything])
def test_no_memory_is_lost(make):
    kernel = ready(make)
    inputs = samples(kernel.program(), 6)
    single = [np.array(a[0]) for a in inputs]
    large = [np.repeat(a.astype(np.float32), 300, axis=0) for a in inputs]  # its copies are allocated

    def calls():
        for _ in range(300):
            kernel(*single)
            kernel(*inputs)
            kernel(*[a.tolist() for a in single])
            kernel(*large[:-1], large[-1].astype(float))

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


def test_the_code_goes_with_the_kernel():
    kernel = ready.__wrapped__(lambda dtype: sweep(3, dtype))
    ends = [weakref.ref(kernel), weakref.ref(kernel.native("float64", 1).code)]
    del kernel
    gc.collect()
    assert [end() for end in ends] == [None, None]


def test_a_subclass_may_compute_otherwise(states):
    class Own(Kernel):
        def __call__(self, *args, **options):
            return -super().__call__(*args, **options)

    program = sweep(4, "float64")
    own = Own(program.name, program.inputs, program.outputs, "float64", lambda dtype: sweep(4, dtype))
    wanted = -kernel_of(lambda dtype: sweep(4, dtype))(*one(states))
    for _ in range(3):
        assert same_bits(own(*one(states)), wanted)


def test_many_threads_at_once(kernel, states):
    wanted_one, wanted_all = python(kernel, *one(states)), python(kernel, *states)
    wrong = []

    def work():
        for _ in range(200):
            if not same_bits(kernel(*one(states)), wanted_one) or not same_bits(kernel(*states), wanted_all):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unknown_versions_are_not_trusted(monkeypatch):
    assert layout.supported()
    for module, name, value in (
        (np, "__version__", "3.0.0"),
        (np, "__version__", "1.25.2"),
        (sys, "version_info", (3, 15, 0)),
        (sys, "abiflags", "t"),
        *((layout, name, 48) for name in ("DATA", "AXES", "NUMBER", "LENGTH", "CTYPES_ADDRESS")),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(module, name, value)
            assert not layout.supported(), name


def test_without_its_source_calls_go_through_python(monkeypatch, states):
    def missing(module):
        raise OSError("could not get source code")

    monkeypatch.setattr(dispatch, "_entry", dispatch._Entry())
    monkeypatch.setattr("inspect.getsource", missing)
    monkeypatch.setattr("linkwise.compiler.runtime.cache.load", lambda name: None)
    made = kernel_of(arm)
    wanted = python(made, *one(states))
    for _ in range(2):
        assert same_bits(made(*one(states)), wanted)
    assert made._vectorcall == 0


def test_arrays_from_pickles_are_no_matter_for_python(monkeypatch):
    """Their types of numbers are objects of their own; types of the other byte order are converted."""
    robots = [lw.load(name) for name in ("two_link", "panda")]
    rng = np.random.default_rng(0)

    def refused(*_args):
        raise AssertionError("a call went through Python")

    for robot in robots:
        for shape in ((robot.dof,), (3, robot.dof), (2, 3, robot.dof)):
            for dtype in ("float64", "float32"):
                given = [rng.normal(size=shape).astype(dtype) for _ in range(3)]
                wanted = robot.inverse_dynamics(*given)
                copies = pickle.loads(pickle.dumps(given))
                assert copies[0].dtype is not given[0].dtype
                with monkeypatch.context() as patch:
                    patch.setattr(Kernel, "_as_arrays", refused)
                    assert same_bits(robot.inverse_dynamics(*copies), wanted)
                    assert same_bits(robot.inverse_dynamics(copies[0], *given[1:]), wanted)
                swapped = [array.astype(array.dtype.newbyteorder()) for array in given]
                assert same_bits(robot.inverse_dynamics(*swapped), wanted)


def test_methods_without_their_robot_are_refused():
    """Called through the class without a robot, or with something else in its place: as Python refuses it."""
    robot = lw.load("two_link")
    robot.gravity_torques(np.zeros(2))  # now the interpreter knows the method
    for name in ("gravity_torques", "inverse_dynamics", "mass_matrix", "forward_dynamics"):
        for given in ((), (np.zeros(2),), (None, np.zeros(2)), (3.0,)):
            with pytest.raises((TypeError, AttributeError)):
                getattr(lw.Robot, name)(*given)
