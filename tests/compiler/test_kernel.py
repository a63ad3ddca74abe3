"""Kernels as functions of arrays: shapes, types, memory layouts, ``out`` and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_programs import everything, interpreted, loop, same_bits, samples, sweep

import linkwise as lw
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime import arrays, host
from linkwise.errors import LinkwiseError, ShapeError


def kernel_of(make, dtype="float64") -> Kernel:
    program = make("float64")
    return Kernel(program.name, program.inputs, program.outputs, dtype, make)


@pytest.fixture(scope="module")
def arm() -> Kernel:
    return kernel_of(lambda dtype: sweep(4, dtype))


@pytest.fixture(scope="module")
def mixed() -> Kernel:
    return kernel_of(everything)


@pytest.fixture(scope="module")
def states(arm):
    return samples(arm.program(), 60, seed=1)


@pytest.fixture(scope="module")
def expected(arm, states):
    return interpreted(arm.program(), states)[0]


def test_one_state(arm, states, expected):
    result = arm(*[a[3] for a in states])
    assert same_bits(result, expected[3])


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 60])
def test_batches(arm, states, expected, count):
    assert same_bits(arm(*[a[:count] for a in states]), expected[:count])


@pytest.mark.parametrize("shape", [(3, 4, 5), (60, 1), (1, 60), (1, 1, 60), (2, 0, 5), (1,), (1, 1)])
def test_any_leading_axes(arm, states, expected, shape):
    count = int(np.prod(shape))
    result = arm(*[a[:count].reshape(*shape, 4) for a in states])
    assert same_bits(result, expected[:count].reshape(*shape, 4))


def test_leading_axes_broadcast_like_numpy(arm, states):
    q, qd, qdd = states[0][:6].reshape(2, 3, 4), states[1][:3], states[2][:2].reshape(2, 1, 4)
    full = [np.array(np.broadcast_to(a, (2, 3, 4))) for a in (q, qd, qdd)]
    assert same_bits(arm(q, qd, qdd), arm(*full))
    assert same_bits(
        arm(q, qd[0], qdd[0]), arm(q, *[np.array(np.broadcast_to(a, (2, 3, 4))) for a in (qd[0], qdd[0, 0])])
    )
    assert arm(q[0, 0], qd[:0], qdd[0, 0]).shape == (0, 4)


def test_all_kinds_of_outputs(mixed):
    inputs = samples(mixed.program(), 19)
    expected = interpreted(mixed.program(), inputs)
    result = mixed(*inputs)
    assert isinstance(result, tuple)
    assert all(same_bits(r, e) for r, e in zip(result, expected, strict=True))
    one = mixed(*[a[2] for a in inputs])
    assert all(same_bits(np.asarray(r), e[2]) for r, e in zip(one, expected, strict=True))
    assert isinstance(one[2], np.float64)  # an output without axes is a number


def test_loops_and_float32():
    kernel = kernel_of(loop)
    inputs = samples(kernel.program("float32"), 33)
    assert same_bits(kernel(*inputs), interpreted(kernel.program("float32"), inputs)[0])


def test_float32_when_all_inputs_are(arm, states):
    small = [a[:9].astype(np.float32) for a in states]
    wanted = interpreted(arm.program("float32"), small)[0]
    assert same_bits(arm(*small), wanted)
    assert same_bits(arm(*[a[4] for a in small]), wanted[4])
    assert same_bits(arm(*[a.astype(">f4") for a in small]), wanted)
    mixed_types = arm(small[0], small[1], small[2].astype(np.float64))
    assert same_bits(mixed_types, arm(*[a.astype(np.float64) for a in small]))


def test_a_float32_kernel_rounds_its_inputs(states):
    kernel = kernel_of(lambda dtype: sweep(4, dtype), dtype="float32")
    result = kernel(*[a[:5] for a in states])
    assert same_bits(result, kernel(*[a[:5].astype(np.float32) for a in states]))
    assert result.dtype == np.float32


@pytest.mark.parametrize("kind", ["int8", "uint64", "bool", "float16", ">f8", "longdouble"])
def test_other_real_numbers_become_float64(arm, kind):
    values = np.arange(12).reshape(3, 4) % 2
    wanted = arm(*[values.astype(np.float64)] * 3)
    assert same_bits(arm(*[values.astype(kind)] * 3), wanted)
    assert same_bits(arm(values.tolist(), values.astype(kind), values), wanted)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "columns of a wider array": lambda a: np.concatenate([a, a], axis=-1)[:, : a.shape[-1]],
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every second column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "columns backwards": lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    "misaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "fields of records": lambda a: _records(a)["x"],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "subclass": lambda a: a.view(np.matrix),
}


def _records(a):
    records = np.zeros(len(a), np.dtype([("odd", "i1"), ("x", a.dtype, a.shape[1])]))
    records["x"] = a
    return records


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_layout_does_not_matter(arm, states, layout, dtype):
    arrays_ = [a[:21].astype(dtype) for a in states]
    assert same_bits(arm(*[LAYOUTS[layout](a) for a in arrays_]), arm(*arrays_))
    assert same_bits(arm(LAYOUTS[layout](arrays_[0]), *arrays_[1:]), arm(*arrays_))


def test_gaps_are_read_without_a_copy(states):
    wide = np.concatenate(states, axis=1)
    row = arrays.rows(wide[:, 4:8], (60,))
    assert row.owner.base is not None
    assert np.shares_memory(row.owner, wide)
    assert row.stride == 12
    assert arrays.rows(np.broadcast_to(states[0][0], (60, 4)), (60,)).stride == 0
    assert np.shares_memory(arrays.rows(wide[::-1, :4], (60,)).owner, wide)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_views_of_any_shape(arm, data):
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    inputs = []
    for name in ("q", "qd", "qdd"):
        dropped = data.draw(st.integers(0, len(lengths)), label=f"{name}: axes left out")
        own = [length if data.draw(st.booleans()) else 1 for length in lengths[dropped:]]
        base = np.random.default_rng(len(inputs)).normal(size=(*[2 * k for k in own], 8))
        steps = [slice(None, None, data.draw(st.sampled_from((2, -2)))) for _ in own]
        inputs.append(base[(*steps, slice(0, 4) if data.draw(st.booleans()) else slice(None, None, 2))])
    full = np.broadcast_arrays(*inputs)
    wanted = arm(*[np.array(a).reshape(-1, 4) for a in full]).reshape(full[0].shape)
    assert same_bits(arm(*inputs), wanted)


# -- out -----------------------------------------------------------------------------------------------------


def test_out_is_written_and_returned(arm, states, expected):
    out = np.empty((60, 4))
    assert arm(*states, out=out) is out
    assert same_bits(out, expected)
    one = np.empty(4)
    assert arm(*[a[5] for a in states], out=one) is one
    assert same_bits(one, expected[5])


def test_out_need_not_be_contiguous(arm, states, expected):
    wide = np.full((60, 8), 7.0)
    arm(*states, out=wide[:, ::2])
    assert same_bits(np.ascontiguousarray(wide[:, ::2]), expected)
    assert (wide[:, 1::2] == 7.0).all()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_out_may_be_an_input(arm, states, expected, which):
    own = [a.copy() for a in states]
    arm(*own, out=own[which])
    assert same_bits(own[which], expected)


@pytest.mark.parametrize("shift", [-9, -1, 1, 8])
def test_out_may_overlap_an_input_in_any_way(arm, states, expected, shift):
    memory = np.zeros((80, 4))
    memory[10:70] = states[0]
    out = memory[10 + shift : 70 + shift]
    arm(memory[10:70], states[1], states[2], out=out)
    assert same_bits(out, expected)


def test_dense_batches_take_a_short_way(arm, states, expected):
    """Large batches on threads; what it does not take goes the long way."""
    given = tuple(states)
    assert same_bits(arm._call_dense(given, None, 2), expected)
    few = tuple(a.astype(np.float32) for a in given)
    assert same_bits(arm._call_dense(few, None, 1), arm(*few))
    out = np.zeros_like(expected)
    fixed = [a.copy() for a in given]
    for a in fixed:
        a.flags.writeable = False
    assert arm._call_dense(tuple(fixed), out, 1) is out
    assert same_bits(out, expected)
    gaps, other = np.repeat(given[0], 2, axis=0)[::2], given[0].astype(np.int64)
    for first in (gaps, other, given[0].tolist(), given[0][:-1], given[0][None], few[0], given[0][0]):
        assert arm._call_dense((first, *given[1:]), None, 1) is None
    fixed_out = np.zeros_like(expected)
    fixed_out.flags.writeable = False
    for wrong in (fixed_out, out[:-1], out.astype(np.float32), (out,), np.zeros((120, 4))[::2]):
        assert arm._call_dense(given, wrong, 1) is None


@pytest.mark.parametrize("shift", [-10, -1, 0, 1, 10])
def test_dense_batches_are_not_written_over_inputs(arm, states, shift):
    memory = np.zeros((80, 4))
    memory[10:70] = states[0]
    assert arm._call_dense((memory[10:70], *states[1:]), memory[10 + shift : 70 + shift], 1) is None
    assert np.array_equal(memory[10:70], states[0])


def test_dense_outputs_are_apart(mixed):
    inputs = tuple(samples(mixed.program(), 19))
    wanted = mixed(*inputs)
    outs = tuple(np.zeros_like(w) for w in wanted)
    assert all(map(same_bits, mixed._call_dense(inputs, outs, 1), wanted))
    assert mixed._call_dense(inputs, outs[:-1], 1) is None
    memory = np.zeros(4 * 19 + 2 * 19 - 1)  # the last number of one is the first of the other
    shared = (*outs[:3], memory[-2 * 19 :].reshape(19, 2), memory[: 4 * 19].reshape(19, 4), outs[5])
    assert mixed._call_dense(inputs, shared, 1) is None


def test_several_outs(mixed):
    inputs = samples(mixed.program(), 19)
    wanted = mixed(*inputs)
    outs = tuple(np.zeros_like(w) for w in wanted)
    result = mixed(*inputs, out=outs)
    assert all(r is o for r, o in zip(result, outs, strict=True))
    assert all(same_bits(o, w) for o, w in zip(outs, wanted, strict=True))
    with pytest.raises(TypeError, match=r"out: expected 6 arrays \(flat, .*\) as a tuple, got ndarray"):
        mixed(*inputs, out=outs[0])


def test_bad_out(arm, states):
    with pytest.raises(ShapeError, match=r"out: expected shape \(60, 4\), got \(60, 3\)"):
        arm(*states, out=np.empty((60, 3)))
    with pytest.raises(TypeError, match="out: expected an array of float64, got float32"):
        arm(*states, out=np.empty((60, 4), np.float32))
    with pytest.raises(TypeError, match="out: expected a NumPy array, got list"):
        arm(*states, out=[0.0] * 4)
    locked = np.empty((60, 4))
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="out: the array is read-only"):
        arm(*states, out=locked)


# -- errors --------------------------------------------------------------------------------------------------


def test_wrong_shapes_name_the_argument(arm):
    good = np.zeros((5, 4))
    with pytest.raises(ShapeError, match=r"qd: expected shape \(\.\.\., 4\), got \(5, 3\)"):
        arm(good, np.zeros((5, 3)), good)
    with pytest.raises(ValueError, match=r"q: expected shape \(\.\.\., 4\), got \(\)"):
        arm(1.0, good, good)
    with pytest.raises(ShapeError, match=r"do not broadcast together: q \(5, 4\), qd \(5, 4\), qdd \(3, 4\)"):
        arm(good, good, np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="qdd: "):
        arm(good, good, [[1.0, 2.0], [3.0]])


def test_what_is_no_real_number_is_refused(arm):
    good = np.zeros(4)
    for bad in (good.astype(complex), np.array(["a"] * 4), np.array([None] * 4), None, good.astype("M8[s]")):
        with pytest.raises((LinkwiseError, TypeError), match="qd: expected"):
            arm(good, bad, good)


def test_wrong_number_of_arguments(arm):
    with pytest.raises(TypeError, match=r"sweep takes 3 arrays \(q, qd, qdd\), got 2"):
        arm(np.zeros(4), np.zeros(4))


def test_unknown_dtype_and_target(arm):
    with pytest.raises(ValueError, match="float64 or float32, got 'float16'"):
        Kernel("x", (), (), "float16", sweep)
    with pytest.raises(ValueError, match="target"):
        arm.source("fortran")


# -- laziness ------------------------------------------------------------------------------------------------


def test_nothing_is_built_before_it_is_needed(states):
    built = []

    def build(dtype):
        built.append(dtype)
        return sweep(4, dtype)

    kernel = Kernel("sweep", [("q", 4), ("qd", 4), ("qdd", 4)], [("tau", (4,))], "float64", build)
    assert not built
    kernel(*[a[0] for a in states])
    kernel(*states)
    assert built == ["float64"]
    assert kernel.operations.multiplications > 0
    assert "sweep" in kernel.source("c")
    assert built == ["float64"]


def test_an_output_depends_on_nan_only_where_it_must(mixed):
    inputs = [a.copy() for a in samples(mixed.program(), 2 * host.lanes("float64"))]
    clean = mixed(*inputs)
    row = len(inputs[2]) - 1
    inputs[2][row] = np.nan
    spoiled = mixed(*inputs)
    for a, b in zip(clean, spoiled, strict=True):
        rows = np.arange(len(a)) != row
        assert same_bits(np.ascontiguousarray(a[rows]), np.ascontiguousarray(b[rows]))
    flat = spoiled[0][row]
    assert np.isnan(flat[-2:]).all()  # the two that use z
    assert np.isnan(flat).sum() == np.isnan(clean[0][row]).sum() + 2


def test_a_kernel_without_inputs_or_scalars():
    from linkwise.compiler.ir.program import trace

    program = trace(lambda: [1.0, 2.0], {}, {"y": (2,)})
    kernel = Kernel("constant", program.inputs, program.outputs, "float64", lambda dtype: program)
    assert kernel().tolist() == [1.0, 2.0]
    empty = trace(lambda x: [], {"x": 0}, {"y": (0,)})
    kernel = Kernel("empty", empty.inputs, empty.outputs, "float64", lambda dtype: empty)
    assert kernel(np.zeros((5, 0))).shape == (5, 0)


def test_a_formula_too_long_for_sympy_says_so():
    @lw.kernel(x=2)
    def long(x):
        total = x[0]
        for k in range(1500):
            total = total * x[1] + float(k)
        return total

    with pytest.raises(lw.LinkwiseError, match=r"too many for one formula; source\('python'\)"):
        long.latex()
    assert long(np.array([1.0, 0.0])) == 1499.0
