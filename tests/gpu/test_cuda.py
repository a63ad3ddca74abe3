"""Generated CUDA: NVRTC compiles it for real architectures, and run on the CPU it returns the CPU kernel's bits."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "compiler"))
from on_cpu import COMPILER, OnCpu
from sample_programs import everything, interpreted, loop, same_bits, samples, sweep

import linkwise as lw
from linkwise.compiler.emit.clike import SpellingError
from linkwise.compiler.emit.cuda import layout as layouts
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir.program import alive, trace
from linkwise.errors import TraceError
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.gpu import DeviceError, nvrtc
from linkwise.robot import kernels
from linkwise.scalar import atan2, sin

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
FEW = 110  # four groups of 32 states, the last one not full
COUNT = 331  # three rounds of two blocks of two warps, the last one not full
PROGRAMS = {"everything": everything, "loop": loop, "sweep": lambda dtype: sweep(6, dtype)}


def nvrtc_compiler():
    try:
        return nvrtc.compiler()
    except DeviceError as error:
        pytest.skip(str(error))


def run(program, inputs, strides, count, folder, layout=None, reverse=False, blocks=None):
    """The outputs of a program's kernel on the CPU; ``count`` states."""
    kernel = OnCpu(cuda.module(program, layout), folder, len(inputs) + len(program.outputs), len(inputs) + 1)
    outputs = [np.full((count, *shape), np.inf, program.dtype) for _, shape in program.outputs]
    kernel(outputs, inputs, [*strides, count], count, reverse, blocks)
    return outputs


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_interpreters_bits(tmp_path, name, dtype, staged, persistent):
    """With a last block that is not full, outputs staged or not, warps that go on or not, threads in either order."""
    program = PROGRAMS[name](dtype)
    layout = cuda.chosen_layout(program)
    layout = replace(
        layout, warps=2, staged=tuple(staged and s for s in layout.staged), persistent=persistent
    )
    inputs = samples(program, COUNT)
    wanted = interpreted(program, inputs)
    sizes = [size for _, size in program.inputs]
    got = run(
        program, inputs, sizes, COUNT, tmp_path, layout, reverse=staged, blocks=2 if persistent else None
    )
    assert all(same_bits(g, w) for g, w in zip(got, wanted, strict=True))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "dtype", "parts", "groups", "staged", "in_step"),
    [
        ("everything", "float64", 2, 1, True, False),
        ("everything", "float32", 3, 2, False, False),
        ("sweep", "float64", 2, 3, True, True),
        ("sweep", "float32", 3, 1, True, False),
    ],
)
def test_warps_that_compute_together(tmp_path, name, dtype, parts, groups, staged, in_step):
    """Threads in either order, several rounds, groups beyond the last states."""
    program = PROGRAMS[name](dtype)
    layout = cuda.WarpLayout(
        parts * groups, 1, (staged,) * len(program.outputs), parts=parts, held=3, in_step=in_step
    )
    inputs = samples(program, FEW)
    wanted = interpreted(program, inputs)
    sizes = [size for _, size in program.inputs]
    got = run(program, inputs, sizes, FEW, tmp_path, layout, reverse=groups > 1, blocks=2)
    assert all(same_bits(g, w) for g, w in zip(got, wanted, strict=True))


def test_a_block_has_sixteen_barriers():
    program = sweep(6, "float64")
    layout = replace(cuda.chosen_layout(program), parts=2, held=10, warps=8)
    with pytest.raises(TraceError, match="16 meetings"):
        cuda.module(program, layout)


def test_large_programs_are_computed_together():
    """By the values that are alive, not by operations: a Panda's Coriolis matrix in float64, not in float32."""
    robot = lw.load("panda")
    function = FUNCTIONS["coriolis_matrix"]
    kernel = kernels.kernel(function, Setting(robot), function.algorithm(None))
    (double,) = cuda.variants(kernel.program("float64"))
    single = list(cuda.variants(kernel.program("float32")))[-1]
    assert "meet<" in double.text.split("__global__")[1]
    assert "meet<" not in single.text.split("__global__")[1]
    assert double.shared <= 227 << 10
    assert double.states == double.threads // 2
    (smaller,) = cuda.variants(kernel.program("float64"), shared=100 << 10)  # fewer groups
    assert smaller.shared <= 100 << 10 < double.shared
    none = cuda.variants(kernel.program("float64"), shared=10 << 10)  # not even one
    assert not any("meet<" in made.text.split("__global__")[1] for made in none)


@needs_compiler
def test_strides(tmp_path):
    """One row for all states, rows with gaps, rows that are not aligned to 16 bytes."""
    program = sweep(6, "float32")
    q, qd, qdd = samples(program, 70)
    wide = np.full((70, 11), np.nan, "float32")
    wide[:, 2:8] = qd
    shifted = np.concatenate([[np.float32(np.nan)], qdd.ravel()])[1:].reshape(70, 6)
    (got,) = run(program, [q[:1], wide[:, 2:], shifted], [0, 11, 6], 70, tmp_path)
    (wanted,) = interpreted(program, [np.repeat(q[:1], 70, axis=0), qd, qdd])
    assert same_bits(got, wanted)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "pose"])
def test_a_robots_kernels(tmp_path, name, dtype):
    robot = lw.load("panda")
    function = FUNCTIONS[name]
    kernel = kernels.kernel(function, Setting(robot, frame=robot.default_frame()), function.default)
    program = kernel.program(dtype)
    inputs = [0.3 * a for a in samples(program, 100)]
    got = run(program, [i.astype(dtype) for i in inputs], [7] * len(inputs), 100, tmp_path)
    assert same_bits(got[0], kernel(*(i.astype(dtype) for i in inputs)))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nvrtc_compiles_it(dtype, architecture):
    compiler = nvrtc_compiler()
    for make in PROGRAMS.values():
        module = cuda.module(make(dtype))
        options = [*cuda.options(), f"--gpu-architecture={architecture}"]
        assert module.name.encode() in compiler.compile(module.text, module.name, options)


def test_nvrtc_says_what_is_wrong():
    with pytest.raises(DeviceError, match=r"cannot compile broken: .*error.*identifier"):
        nvrtc_compiler().compile(
            "__global__ void broken() { nothing = 1; }", "broken", ["--gpu-architecture=sm_90"]
        )


def test_fast_variant_uses_the_hardwares_sine():
    text = cuda.source(sweep(3, "float32"), fast=True)
    assert "__sinf(" in text
    assert "__cosf(" in text
    assert "__sinf(" not in cuda.source(sweep(3, "float32"))
    assert "__sinf(" not in cuda.source(sweep(3, "float64"), fast=True)
    turned = trace(lambda q: [atan2(sin(q[0]), q[1])], {"q": 2}, {"t": (1,)}, name="turned", dtype="float32")
    assert "__sinf(" in cuda.source(turned, fast=True)
    module = cuda.module(sweep(3, "float32"), fast=True)
    nvrtc_compiler().compile(module.text, module.name, [*cuda.options(fast=True), "--gpu-architecture=sm_90"])


def test_registers_of_a_panda():
    """The rule that bounds registers leaves room for what the program needs: the compiler spills nothing."""
    robot = lw.load("panda")
    for name in ("inverse_dynamics", "forward_dynamics"):
        function = FUNCTIONS[name]
        setting = replace(Setting(robot), base_parameters=True)
        for dtype, bound in (("float32", 150), ("float64", 255)):
            program = cuda.ordered(kernels.kernel(function, setting, function.default).program(dtype))
            layout = cuda.chosen_layout(program)
            assert alive(program) * (2 if dtype == "float64" else 1) < bound + 10
            assert layout.resident * layout.warps >= (16 if dtype == "float32" else 8)


def test_names():
    assert 'extern "C" __global__' in cuda.source(everything())
    with pytest.raises(SpellingError):
        cuda.source(everything(), function_name="threadIdx")


@pytest.mark.parametrize(
    ("registers", "warps"), [(1, 64), (8, 64), (9, 32), (32, 16), (64, 8), (65, 7), (255, 2)]
)
def test_warps_share_the_512_registers_of_a_lane_in_eights(registers, warps):
    from linkwise.compiler.emit.cuda.layout import warps_per_scheduler

    assert warps_per_scheduler(registers) == warps


def test_large_outputs_leave_through_shared_memory():
    """As long as one warp's rows fit; the rest is written directly."""
    import linkwise as lw

    chain = lw.general_chain(9)
    for layout in layouts.candidates(chain.kernel("regressor").program("float32")):
        assert layout.staged == (True,)
        assert 1 <= layout.warps * layout.resident < 4
    both = chain.kernel(["regressor", "mass_matrix"], dtype="float64").program("float64")
    assert all(layout.staged == (False, True) for layout in layouts.candidates(both))


def test_warps_that_run_long_code_start_together(monkeypatch):
    """Only in float32, and only where as many warps stay on a multiprocessor."""
    kernel = lw.load("puma560").kernel("forward_dynamics")
    short = {dtype: layouts.candidates(kernel.program(dtype)) for dtype in ("float32", "float64")}
    monkeypatch.setattr(layouts, "_LONG", 100)
    long = {dtype: layouts.candidates(kernel.program(dtype)) for dtype in ("float32", "float64")}
    assert long["float64"] == short["float64"]
    assert {layout.warps for layout in short["float32"]} == {4}
    assert 8 in {layout.warps for layout in long["float32"]}
    for before, after in zip(short["float32"], long["float32"], strict=True):
        assert after.warps * after.resident == before.warps * before.resident
