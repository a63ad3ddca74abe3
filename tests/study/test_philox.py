"""Random numbers: the published answers, the same bits in machine code, and nothing counts but the counter."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.compiler.columns import Ticks, block, draws
from linkwise.compiler.emit import blocks
from linkwise.compiler.emit.elementwise import elementwise
from linkwise.compiler.ir.interpret import run_nest
from linkwise.compiler.runtime import host
from linkwise.study.engines.native import columns, compiled
from linkwise.study.sampling import philox

# Random123, kat_vectors: philox4x32, 10 rounds
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_published_answers(counter, key, answer):
    assert philox.philox(counter, key) == list(answer)
    arrays = [np.array([word], np.uint64) for word in counter]
    assert [int(word[0]) for word in philox.philox(arrays, key)] == list(answer)


@pytest.mark.parametrize("width", [w for w in (1, 2, 4, 8) if w <= host.lanes("float64")])
@pytest.mark.parametrize("high", [0, 5])
def test_machine_code_has_the_same_bits(width, high):
    keys = [philox.key_of(1, name) for name in ("a", "b", "c")]
    variables = [Ticks(keys[0], 0, 7, 32), Ticks(keys[1], 7, 5, 52), Ticks(keys[2], 12, 1, 32)]
    table = columns(13, 512)
    first = (high << 32) + 4096
    text = blocks.module(draws(variables, high), width, (0, table.shape[1]))
    compiled(text)(first, 500, np.array([table.ctypes.data]))
    index = np.arange(first, first + 500, dtype=np.uint64)
    for v in variables:
        for k in range(v.size):
            assert np.array_equal(table[v.row + k, :500], philox.ticks(index, v.key, k, v.bits))
    one = np.empty(13)
    run_nest(draws(variables, high), {"ticks": one}, index=first + 3)
    assert np.array_equal(one, table[:, 3])


@pytest.mark.parametrize("bits", [32, 52])
def test_cuda_has_the_same_bits(tmp_path, bits):
    """The statements of the GPU's kernel, compiled as C++."""
    if (compiler := shutil.which("g++")) is None:
        pytest.skip("g++ is not installed")
    text = f"""#include <cstring>
static double __longlong_as_double(long long bits) {{ double x; std::memcpy(&x, &bits, 8); return x; }}
extern "C" void run(unsigned long long index, unsigned long long block, unsigned long long key0,
                    unsigned long long key1, double *out)
{{
    double &x0 = out[0], &x1 = out[1], &x2 = out[2], &x3 = out[3];
{elementwise(block(bits))}
}}
"""
    (tmp_path / "draws.cpp").write_text(text)
    subprocess.run([compiler, "-shared", "-fPIC", "draws.cpp", "-o", "draws.so"], cwd=tmp_path, check=True)
    run = ctypes.CDLL(str(tmp_path / "draws.so")).run
    run.argtypes = [ctypes.c_uint64] * 4 + [ctypes.c_void_p]
    key, index, out = philox.key_of(1, "a"), (5 << 32) + 77, np.zeros(4)
    run(index, 3, *key, out.ctypes.data)
    per_block = 4 if bits == 32 else 2
    for k in range(per_block):
        assert out[k] == philox.ticks(np.array([index], np.uint64), key, 3 * per_block + k, bits)[0]


@given(
    st.lists(st.integers(0, 2**53 - 1), min_size=1, max_size=20),
    st.integers(0, 30),
    st.sampled_from([32, 52]),
)
def test_a_number_depends_on_its_own_index_alone(indices, column, bits):
    key = philox.key_of(7, "q")
    together = philox.ticks(np.array(indices, np.uint64), key, column, bits)
    alone = [philox.ticks(np.array([i], np.uint64), key, column, bits)[0] for i in indices]
    assert together.tolist() == alone
    assert (together > 0).all()
    assert (together < 2.0**bits).all()


def test_uniform_and_uncorrelated():
    """χ² of 256 classes, and correlations between columns, variables, seeds and neighbours, each under five sigma."""
    n = 1 << 17
    index = np.arange(n, dtype=np.uint64)
    series = [
        philox.ticks(index, philox.key_of(seed, name), column, bits) * 2.0**-bits
        for seed, name, column, bits in (
            (1, "q", 0, 32),
            (1, "q", 1, 32),
            (1, "q", 3, 32),
            (1, "q", 4, 32),
            (1, "qd", 0, 32),
            (2, "q", 0, 32),
            (1, "p", 0, 52),
            (1, "p", 1, 52),
        )
    ]
    for u in series:
        counts = np.bincount((u * 256).astype(int), minlength=256)
        chi = ((counts - n / 256) ** 2 / (n / 256)).sum()
        assert abs(chi - 255) < 5 * np.sqrt(2 * 255)
        fine = (u * 2**20) % 1.0  # the bits further down, too
        assert abs(fine.mean() - 0.5) < 5 / np.sqrt(12 * n)
    shifted = [*series, series[0][np.r_[1:n, 0]]]
    correlations = np.corrcoef(shifted) - np.eye(len(shifted))
    assert np.abs(correlations).max() < 5 / np.sqrt(n)
