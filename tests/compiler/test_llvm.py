"""Machine code against the interpreter: the same bits for every width, batch size and place in the batch."""

from __future__ import annotations

import ctypes
import math
import platform

import numpy as np
import pytest
from sample_programs import everything, interpreted, loop, same_bits, samples, sweep

from linkwise.compiler.emit import blocks
from linkwise.compiler.emit.arithmetic import REGION
from linkwise.compiler.emit.lanes import Lanes, literal
from linkwise.compiler.emit.transpose import tiles
from linkwise.compiler.ir.program import Program, trace
from linkwise.compiler.native import RUN
from linkwise.compiler.runtime import host, image, machine
from linkwise.compiler.shapes import nest

WIDTHS = (1, 2, 4, 8, 16)
PROGRAMS = {"sweep": lambda dtype: sweep(7, dtype), "everything": everything, "loop": loop}
GUARD = 12345.0  # around the arrays: nothing may be written there, and what is read there must not matter


class Compiled:
    """A program for one width, called on guarded memory."""

    def __init__(self, program: Program, width: int, load=machine.load):
        self.program, self.width = program, width
        self.code = load(machine.compile_text(blocks.module(nest(program), width)))
        self.run = RUN(self.code.functions["run"])

    def __call__(
        self, inputs: list[np.ndarray], count: int, strides: list[int] | None = None, first: int = 0
    ):
        dtype = np.dtype(self.program.dtype)
        sizes = [size for _, size in self.program.inputs]
        out_sizes = [math.prod(shape) for _, shape in self.program.outputs]
        total = inputs[0].shape[0] if count else 0
        guarded = [np.full(total * size + 64, GUARD, dtype) for size in out_sizes]
        places = [array.ctypes.data + 32 * dtype.itemsize for array in guarded]
        words = [*places, *(array.ctypes.data for array in inputs), *(strides or sizes)]
        arguments = (ctypes.c_int64 * len(words))(*words)
        room = blocks.scratch_scalars(sizes, out_sizes, self.width)
        scratch = np.full(room + 64, np.nan, dtype)
        self.run(first, count, ctypes.addressof(arguments), scratch.ctypes.data + 32 * dtype.itemsize)
        assert np.isnan(scratch[:32]).all()
        assert np.isnan(scratch[32 + room :]).all()
        for array, size in zip(guarded, out_sizes, strict=True):
            assert (array[: 32 + first * size] == GUARD).all()
            assert (array[32 + (first + count) * size :] == GUARD).all()
        return [
            array[32 : 32 + total * size].reshape(total, *shape)
            for array, size, (_, shape) in zip(guarded, out_sizes, self.program.outputs, strict=True)
        ]


@pytest.fixture(
    scope="module", params=[(name, dtype) for name in PROGRAMS for dtype in ("float64", "float32")]
)
def case(request):
    name, dtype = request.param
    program = PROGRAMS[name](dtype)
    inputs = samples(program, 3 * max(WIDTHS) + 1)
    return program, inputs, interpreted(program, inputs)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_batch_size_gives_the_bits_of_the_interpreter(case, width):
    program, inputs, expected = case
    compiled = Compiled(program, width)
    for count in range(3 * width + 2):
        found = compiled([np.ascontiguousarray(a[:count]) for a in inputs], count)
        for output, wanted in zip(found, expected, strict=True):
            assert same_bits(output, wanted[:count]), f"batch of {count}"


@pytest.mark.parametrize("width", WIDTHS)
def test_place_in_the_batch_and_first_state_do_not_matter(case, width):
    program, inputs, expected = case
    compiled = Compiled(program, width)
    total = len(inputs[0])
    for first, count in ((0, total), (width, total - width), (1, 5), (total - 1, 1), (3, 0)):
        for output, wanted in zip(compiled(inputs, count, first=first), expected, strict=True):
            if count:
                assert same_bits(output[first : first + count], wanted[first : first + count])
    shift = [np.roll(a, 5, axis=0) for a in inputs]
    for output, wanted in zip(compiled(shift, total), expected, strict=True):
        assert same_bits(output, np.roll(wanted, 5, axis=0))


@pytest.mark.parametrize("width", WIDTHS)
def test_gaps_between_rows_and_one_state_for_all(case, width):
    program, inputs, expected = case
    compiled = Compiled(program, width)
    sizes = [size for _, size in program.inputs]
    for count in (1, width, 2 * width + 1):
        wide = [np.full((count, size + 3), GUARD, program.dtype) for size in sizes]
        for array, source, size in zip(wide, inputs, sizes, strict=True):
            array[:, :size] = source[:count]
        found = compiled(wide, count, strides=[size + 3 for size in sizes])
        assert all(same_bits(f, e[:count]) for f, e in zip(found, expected, strict=True))
        first = [inputs[0][:count], *[a[2:3] for a in inputs[1:]]]
        repeated = [inputs[0][:count], *[np.repeat(a[2:3], count, axis=0) for a in inputs[1:]]]
        found = compiled(
            [np.ascontiguousarray(a) for a in first], count, strides=[sizes[0], *[0] * (len(sizes) - 1)]
        )
        again = compiled([np.ascontiguousarray(a) for a in repeated], count)
        assert all(same_bits(f, e) for f, e in zip(found, again, strict=True))


@pytest.mark.parametrize("width", [4, 8, 16])
def test_nan_and_infinity_stay_in_their_lane(case, width):
    program, inputs, expected = case
    compiled = Compiled(program, width)
    count = 2 * width + 3
    for state in (0, 1, width - 1, width, 2 * width + 2):
        for poison in (np.nan, np.inf, -np.inf):
            spoiled = [a[:count].copy() for a in inputs]
            for array in spoiled:
                array[state] = poison
            others = np.arange(count) != state
            for output, wanted in zip(compiled(spoiled, count), expected, strict=True):
                assert same_bits(output[others], wanted[:count][others])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [*range(1, 12), 13, 16, 17, 31, 49])
def test_rows_of_every_size_are_transposed_faithfully(size, dtype):
    program = trace(
        lambda x, y: ([a + b for a, b in zip(x, y, strict=True)], list(reversed(x))),
        {"x": size, "y": size},
        {"sum": (size,), "reversed": (size,)},
        dtype=dtype,
    )
    inputs = samples(program, 37)
    for width in (2, 4, 8, 16):
        compiled = Compiled(program, width)
        total, backwards = compiled(inputs, 37)
        assert same_bits(total, inputs[0] + inputs[1])
        assert same_bits(backwards, np.ascontiguousarray(inputs[0][:, ::-1]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", WIDTHS)
def test_tiles_cover_every_column_and_stay_inside(width, dtype):
    for size in range(70):
        found = tiles(size, Lanes(width, dtype))
        assert {column for tile in found for column in tile.columns} == set(range(size))


@pytest.mark.parametrize(("width", "whole"), [(4, True), (8, False), (2, False)])
def test_constants_of_256_bits_are_operands_in_memory(width, whole):
    """AVX2 has no operand that is one scalar for all lanes: broadcasts would be instructions of their own."""
    text = blocks.module(nest(sweep(7, "float64")), width)
    assert ("= private unnamed_addr constant <4 x double> splat (double" in text) == whole
    assert not any("splat (" in line for line in text.splitlines() if whole and "@llvm.fma" in line)


def test_llvm_keeps_the_order_of_the_program():
    """Its own scheduler, which sees one region at a time, would need more values at once."""
    program = sweep(7, "float64")
    text = blocks.module(nest(program), 4)
    operations = sum(node.op in ("add", "sub", "mul", "div", "fma") for node in program.nodes())
    assert text.count("  call void @llvm.codeview.annotation") == operations // REGION > 3


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-320, 1e300, math.inf, -math.inf, math.pi])
def test_literals_are_exact(value):
    with np.errstate(over="ignore"):
        as_float = np.float32(value)
    for dtype, expected in (("float64", np.float64(value)), ("float32", np.float64(as_float))):
        assert literal(value, dtype) == f"0x{int(expected.view(np.uint64)):016X}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only")
@pytest.mark.parametrize(("processor", "width"), [("x86-64", 2), ("x86-64", 1), ("haswell", 4)])
def test_older_processors_give_the_same_bits(processor, width, monkeypatch):
    """Without fused multiply-add in hardware the C library's is called."""
    import llvmlite.binding as llvm

    def older(optimization=2):
        target = llvm.Target.from_triple(llvm.get_process_triple())
        return target.create_target_machine(
            cpu=processor, features="", opt=optimization, reloc="pic", codemodel="default"
        )

    if processor != "x86-64" and host.vector_bits() < 256:
        pytest.skip("this machine has no AVX2")
    machine._initialize()
    monkeypatch.setattr(machine, "_target_machine", older)
    for dtype in ("float64", "float32"):
        program = sweep(3, dtype)
        inputs = samples(program, 2 * width + 1)
        assert same_bits(Compiled(program, width)(inputs, 2 * width + 1)[0], interpreted(program, inputs)[0])


def test_what_the_linker_does_not_know_is_left_to_llvm(monkeypatch):
    def refuse(binary):
        raise image.UnsupportedObject("anything")

    program = sweep(3)
    inputs = samples(program, 11)
    monkeypatch.setattr(machine, "link", refuse)
    compiled = Compiled(program, 4)
    assert isinstance(compiled.code, machine.LoadedObject)
    assert same_bits(compiled(inputs, 11)[0], interpreted(program, inputs)[0])


def test_the_linker_refuses_what_it_does_not_know():
    with pytest.raises(image.UnsupportedObject, match="not an ELF file of 64 bits"):
        image.link(b"MZ" + bytes(100))
    for text, reason in (
        ("@x = global i64 1\ndefine ptr @run() { ret ptr @x }", "writable data"),
        ("declare void @abort()\ndefine void @run() { call void @abort()\n ret void }", "abort"),
        (
            "declare void @abort()\n@t = constant ptr @abort\ndefine ptr @run() { ret ptr @t }",
            "writable|relocation",
        ),
    ):
        import llvmlite.binding as llvm

        machine._initialize()
        with pytest.raises(image.UnsupportedObject, match=reason):
            image.link(machine._target_machine().emit_object(llvm.parse_assembly(text)))


@pytest.mark.parametrize("width", [1, 8])
def test_an_output_may_be_called_like_an_input(width):
    program = trace(lambda x: {"x": [x[1], 2.0 * x[0]]}, {"x": 2}, {"x": (2,)}, name="turned")
    code = machine.load(machine.compile_text(blocks.module(nest(program), width)))
    x, out, scratch = np.arange(26.0).reshape(13, 2), np.zeros((13, 2)), np.zeros(200)
    arguments = np.array([out.ctypes.data, x.ctypes.data, 2], np.int64)
    RUN(code.functions["run"])(0, 13, arguments.ctypes.data, scratch.ctypes.data)
    np.testing.assert_array_equal(out, np.column_stack([x[:, 1], 2.0 * x[:, 0]]))


def test_constants_are_spelled_by_their_bits():
    """Doubles as they are; floats rounded first, beyond the largest one infinite with their sign."""
    values = [0.0, -0.0, 1.5, -1e300, 1e300, 3.5e38, -3.5e38, 1e-46, -1e-46, 0.1, np.inf, -np.inf]
    for value in values:
        assert literal(value, "float64") == f"0x{np.float64(value).view(np.uint64):016X}"
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.float64(np.float32(value))
        assert literal(value, "float32") == f"0x{rounded.view(np.uint64):016X}", value
