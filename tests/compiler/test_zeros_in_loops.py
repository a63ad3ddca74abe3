"""Zeros that straight-line parts of loops always write: written by loops, once where that is enough; the bits stay."""

import re
import shutil

import numpy as np
from test_rolled import interpreted
from test_wasm import run as run_wasm

import linkwise as lw
from c_functions import call_c
from linkwise.compiler.emit import llvm
from linkwise.compiler.ir.loops import For, Step, statements
from linkwise.compiler.native import NativeProgram
from linkwise.compiler.trace import rolled
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.language import empty, straight

SIZE = 12
TURNS = 6


def sparse(seed):
    """A kernel and its function, whose loop fills matrices that are mostly zero: one that only this part writes, one
    that the part reads, one that another loop overwrites."""
    rng = np.random.default_rng(seed)
    kept = rng.random((3, SIZE, SIZE)) < 0.15

    def sums(x):
        own, again, shared = empty(TURNS, SIZE, SIZE), empty(SIZE, SIZE), empty(SIZE, SIZE)
        total = empty(SIZE)
        total[:] = 1.0
        again[:, :] = 0.5

        def filled(row, before, sums):
            tables = [
                [row[i] * row[j] + 0.25 if kept[k, i, j] else 0.0 for i in range(SIZE) for j in range(SIZE)]
                for k in range(3)
            ]
            tables[1][0] = tables[1][0] + before[0] * 0.5 + before[-1]
            return [*tables, [a + b for a, b in zip(sums, row, strict=True)]]

        for t in lw.span(TURNS):
            straight(filled, [x[t], again, total], [own[t], again, shared, total])
            for i in lw.span(SIZE):
                total[i] = total[i] + lw.dot(again[i, :], x[t]) + lw.dot(shared[:, i], x[t])
                shared[i, i] = total[i]
        for t in lw.span(TURNS):
            for i in lw.span(SIZE):
                total[i] = total[i] + lw.dot(own[t, i, :], x[t])
        return total

    return lw.kernel(x=(TURNS, SIZE))(sums), sums


def zeros_written(program):
    """(single zeros in steps, loops that write zeros) of a nest."""
    steps = [s for s in statements(program.body) if isinstance(s, Step)]
    single = sum(node.op == "const" and node.value == 0.0 for s in steps for _, node in s.writes)
    loops = [s for s in statements(program.body) if isinstance(s, For) and s.name.startswith("zero")]
    return single - len(loops), loops


def test_zeros_are_written_by_loops_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)
    for seed in range(3):
        kernel, function = sparse(seed)
        program = kernel.program()
        assert isinstance(program, ProcedureNest)
        single, loops = zeros_written(program)
        # what the part itself reads keeps its zeros; before everything else the array that only the part writes
        assert 0 < single <= SIZE * SIZE
        assert len(loops) == 2
        assert program.body[0] is loops[0]
        assert program.body[0].stop.number == TURNS * SIZE * SIZE
        states = [np.random.default_rng(10 * seed + k).normal(size=(TURNS, SIZE)) for k in range(9)]
        wanted = [interpreted(kernel, [state])[0] for state in states]
        batch = kernel(np.array(states))
        for k, state in enumerate(states):
            assert kernel(state).tobytes() == batch[k].tobytes() == wanted[k].tobytes()
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert call_c(kernel, folder, states[0].ravel())[0].tobytes() == wanted[0].tobytes()
        if shutil.which("node"):
            (found,) = run_wasm(folder, program, [{"x": states[0].ravel()}])
            assert found[kernel.outputs[0][0]].tobytes() == wanted[0].tobytes()
        assert np.allclose(wanted[0], np.asarray(function(states[0]), float), rtol=1e-12)


def test_long_blocks_are_divided_with_the_same_bits(monkeypatch):
    """Straight-line code of thousands of operations, alone and in a loop; shorter code stays in one block."""

    @lw.kernel(x=8)
    def chain(x):
        x = list(x)
        for k in range(1500):
            x[k % 8] = (
                x[k % 8] * 0.75 + lw.sin(x[(k + 3) % 8]) * 0.125
                if k % 50 == 0
                else (x[k % 8] * 0.75 + x[(k + 5) % 8] * x[(k + 1) % 8] * 0.125)
            )
        return x

    states = np.random.default_rng(0).normal(size=(19, 8))
    whole = NativeProgram(chain.program, None).text(1)
    assert "further" not in whole
    monkeypatch.setattr(llvm, "LONG_BODY", whole.count("\n") // 2)
    found = chain(states)
    for k in (0, 7, 18):
        assert chain(states[k]).tobytes() == found[k].tobytes()
        assert interpreted(chain, [states[k]])[0].tobytes() == found[k].tobytes()
    for width in (1, 4):
        text = NativeProgram(chain.program, None).text(width)
        body = text[text.index("define void @run") :].split("\n")
        starts = [k for k, line in enumerate(body) if re.match(r"[\w.]+:$", line)]
        lengths = np.diff([*starts, len(body)])
        assert len(starts) > 5
        assert lengths.max() < llvm.LONG_BLOCK + 150
