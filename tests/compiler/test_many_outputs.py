"""Functions with very many outputs: divided into blocks, and runs of zeros stored as they are; the bits stay."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.emit import llvm, transpose
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import NativeProgram

COUNT = 900


def function(x):
    """Runs of zeros of every length up to 30, of either sign, between values."""
    values, run = [], 0
    while len(values) < COUNT:
        values += [x[run % 3] * x[0] + float(run), *[0.0] * (run % 31), -0.0, x[1]]
        run += 1
    return values[:COUNT]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits(dtype):
    def build(precision):
        return trace(function, {"x": 3}, {"out": (COUNT,)}, name="many", dtype=precision)

    kernel = Kernel("many", [("x", 3)], [("out", (COUNT,))], dtype, build)
    assert llvm.MANY_OUTPUTS < COUNT
    text = NativeProgram(lambda: build(dtype), None).text(2)
    assert "further2:" in text
    assert f"<{transpose.WIDEST} x " in text
    rows = np.random.default_rng(0).normal(size=(19, 3)).astype(dtype)
    found = kernel(rows)
    (wanted,) = zip(*(interpret.run(build(dtype), row) for row in rows), strict=True)
    wanted = np.array(wanted)
    assert np.array_equal(found.view(f"u{found.itemsize}"), wanted.view(f"u{wanted.itemsize}"))
    for k in (0, 7, 18):
        assert np.array_equal(kernel(rows[k]), found[k])
