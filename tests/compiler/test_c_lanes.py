"""Generated C for several states at once: no warning, and the bits of one state alone."""

import subprocess

import numpy as np
import pytest
from random_programs import INPUTS, every_program, random_function, same_bits, states
from test_c import COMPILERS, STRICT, built, outputs, rounded

from linkwise.compiler.emit import c
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace
from linkwise.errors import TraceError
from linkwise.scalar import while_loop


def expect_bits_in_lanes(program, executable, rows, lanes):
    """Groups of states; the numbers of all states of a group follow one another."""
    rows = rounded(rows, program.dtype)
    groups = [rows[k : k + lanes] for k in range(0, len(rows) - lanes + 1, lanes)]
    given = [[np.stack(parts, axis=-1).ravel() for parts in zip(*group, strict=True)] for group in groups]
    for group, got in zip(groups, outputs(executable, given), strict=True):
        for row, one in zip(group, got.reshape(-1, lanes).T, strict=True):
            wanted = np.concatenate([part.ravel() for part in interpret.run(program, *row)])
            assert same_bits(one.astype(wanted.dtype), wanted), f"{row}: {one} instead of {wanted}"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_operation_in_every_number_of_lanes(tmp_path, compiler):
    """Masks of AVX-512, halves of AVX2, and calls for every lane."""
    for options in (["-O3", "-march=native"], ["-O2"], ["-O0"]):
        for dtype, lanes in (("float64", 8), ("float64", 2), ("float32", 16), ("float32", 4)):
            program = every_program(dtype)
            text = c.source(program, main=True, lanes=lanes)
            executable = built(tmp_path, compiler, text, *STRICT, *options)
            expect_bits_in_lanes(program, executable, states(48, 1), lanes)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_random_programs_and_loops_that_lanes_leave_at_different_times(tmp_path, compiler):
    def halved(x, y):
        active, body = (lambda n, v: (abs(v) > 1.0) & (n < 40.0)), (lambda n, v: (n + 1.0, 0.5 * v))
        n, v = while_loop(active, body, (0.0 * x[0], x[0] * y[1]))
        return [n, v - x[1]]

    programs = [trace(halved, INPUTS, {"out": (2,)}, name="halved")]
    programs += [trace(random_function(seed, 40), INPUTS, {"out": (6,)}, name="f") for seed in (3, 4)]
    for program in programs:
        executable = built(
            tmp_path, compiler, c.source(program, main=True, lanes=8), *STRICT, "-O2", "-march=native"
        )
        expect_bits_in_lanes(program, executable, states(64, 6), 8)


def test_online_moves_have_the_bits_of_the_kernel(tmp_path):
    """Joints are lanes: durations and plans."""
    from linkwise.embedded.online import _states
    from linkwise.motion.online import kernels

    for kernel in (kernels.earliest_kernel(), kernels.plan_kernel()):
        given = {name: a for name, a in _states(64).items() if name in dict(kernel.inputs)}
        wanted = kernel(*given.values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        executable = built(tmp_path, "gcc", kernel.source("c", main=True, lanes=8), "-O2", "-march=native")
        groups = [[a[k : k + 8].T.ravel() for a in given.values()] for k in range(0, 64, 8)]
        got = np.concatenate([row.reshape(-1, 8).T for row in outputs(executable, groups)])
        assert same_bits(got, np.concatenate([a.reshape(64, -1) for a in wanted], axis=1))


def test_what_lanes_cannot_do_is_refused(tmp_path):
    program = every_program("float64")
    for lanes in (3, 0, 16, 8.0, "8"):
        with pytest.raises(ValueError, match="lanes: expected a power of two, 2 to 8"):
            c.source(program, lanes=lanes)
    with pytest.raises(ValueError, match="lanes"):
        c.source(program, lanes=8, constant_time=True)
    import linkwise as lw

    with pytest.raises(TraceError, match="loops over links"):
        lw.planar_chain(60).kernel("inverse_dynamics").source("c", lanes=8)
    header = c.source(program, lanes=8, header=True)
    assert "[24]" in header
    (tmp_path / "program.c").write_text(c.source(program, lanes=8))
    command = ["gcc", "-ffast-math", "-c", "program.c"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0
