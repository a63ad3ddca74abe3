"""Programs with loops over links as CUDA: NVRTC compiles them, and run on the CPU they return the CPU kernel's bits."""

from dataclasses import replace

import numpy as np
import pytest
from on_cpu import COMPILER, OnCpu

import linkwise as lw
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.gpu import DeviceError, nvrtc

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")


def long_chain(dof=67, joints="RP"):
    return lw.random_robot(4, dof, joints=joints, rotor=True, friction=True)


def same_bits(a, b):
    return a.dtype == b.dtype and np.array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


def run(program, inputs, folder, blocks):
    """The output of the kernel on the CPU, in blocks that must go on to further states."""
    count, rows = inputs[0].shape
    on_cpu = OnCpu(cuda.module(program), folder, len(inputs) + 1, len(inputs) + 1)
    results = []
    for reverse in (False, True):
        out = np.full((count, rows), np.inf, program.dtype)
        on_cpu([out], inputs, [rows] * len(inputs) + [count], count, reverse, blocks)
        results.append(out)
    assert same_bits(*results)  # no thread waits for another without a barrier
    return results[0]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("function", "algorithm", "tree"),
    [
        ("inverse_dynamics", "newton_euler", False),
        ("inverse_dynamics", "newton_euler", True),
        ("forward_dynamics", "kalman", False),
        ("forward_dynamics", "kalman", True),
        ("forward_dynamics", "parallel_scan", False),
    ],
)
def test_the_cpus_bits(tmp_path, function, algorithm, tree, dtype):
    robot = lw.random_robot(4, 67, joints="RP", rotor=True, friction=True, tree=tree)
    found = robot.kernel(function, algorithm=algorithm)
    inputs = list(np.random.default_rng(0).normal(size=(3, 35, 67)).astype(dtype))
    got = run(found.program(dtype), inputs, tmp_path, blocks=1 if algorithm != "parallel_scan" else 3)
    assert same_bits(got, found(*inputs))


@needs_compiler
@pytest.mark.parametrize("dof", [1, 2, 3, 300])
def test_scans_of_any_length(tmp_path, dof):
    """300 links: more pairs than the threads of a block."""
    robot = long_chain(dof, "R")
    found = robot.kernel("forward_dynamics", algorithm="parallel_scan")
    inputs = list(np.random.default_rng(0).normal(size=(3, 2, dof)))
    assert same_bits(run(found.program(), inputs, tmp_path, 1), found(*inputs))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("algorithm", ["kalman", "parallel_scan"])
def test_nvrtc_compiles_it(algorithm, dtype):
    try:
        compiler = nvrtc.compiler()
    except DeviceError as error:
        pytest.skip(str(error))
    program = long_chain().kernel("forward_dynamics", algorithm=algorithm).program(dtype)
    table = program.table.copy()
    table[0, 0], table[1, 0], table[2, 0] = (
        np.inf,
        -np.inf,
        np.nan,
    )  # such as floors of inertias that never vanish
    made = cuda.module(replace(program, table=table))
    options = [*cuda.options(), "--gpu-architecture=sm_90"]
    assert made.name.encode() in compiler.compile(made.text, made.name, options)


def test_source():
    found = long_chain().kernel("forward_dynamics", algorithm="parallel_scan")
    text = found.source("cuda", function_name="accelerations", description="a long */ chain")
    assert "accelerations: a long * / chain" in text
    assert "__syncthreads();" in text
