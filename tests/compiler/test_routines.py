"""The subset of Python that is turned into machine code: it computes what Python computes."""

from __future__ import annotations

import ctypes
import itertools

import llvmlite.binding as llvm
import numpy as np
import pytest

from linkwise.compiler.emit import routines
from linkwise.compiler.runtime import machine

SOURCE = '''
LIMIT = 5

def arithmetic(a: int, b: int) -> int:
    """A docstring is no statement."""
    c = a * b - (a & b) + (a | b)
    c += a << 2
    c -= b >> 1
    return -c

def comparisons(a: int, b: int) -> int:
    result = 0
    if a < b:
        result += 1
    elif a == b:
        result += 2
    else:
        result += 4
    if a <= b and (a != 3 or not b > 2):
        result += 8
    if not (a >= b or a == -b):
        result += 16
    if a > -5 and b != 1 and a + b < 8:
        result += 1000
    if a == 9 or b == 9 or a - b == 3:
        result += 2000
    found = a > 0 and b > 0
    return result + 32 * found + 64 * ((a != b) != 1) + (100 if a > b else 200)

def loops(a: int, b: int) -> int:
    total = 0
    for k in range(a):
        for j in range(k, b):
            if j > LIMIT:
                break
            total += j * k + inner(j, k)
    k = 0
    while k < b:
        k += 2
        total = total * 3
        if total > 10000:
            return total
    return total

def inner(a: int, b: int) -> int:
    if a > b:
        return a - b
    return 0
'''
PAIRS = list(itertools.product((-7, -1, 0, 1, 2, 3, 5, 9), repeat=2))


def compiled(source: str, names: tuple[str, ...], constants=None):
    text = routines.module([(source, constants or {})], names)
    binary = machine._object_file(text, optimize=True, quick=False)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine._target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
    engine.finalize_object()
    found = {}
    for name in names:
        number = source.split(f"def {name}(")[1].split(")")[0].count(":")
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * number)
        found[name] = kind(engine.get_function_address(name))
    return found, engine


def test_it_computes_what_python_computes():
    scope: dict = {}
    exec(SOURCE, scope)
    names = ("arithmetic", "comparisons", "loops", "inner")
    found, _engine = compiled(SOURCE, names, {"LIMIT": 5})
    for name in names:
        for a, b in PAIRS:
            assert found[name](a, b) == scope[name](a, b), (name, a, b)


def test_memory():
    source = """
def numbers(at: int) -> int:
    copy_double(at + 8, at)
    double_to_float(at + 16, at)
    float_to_double(at + 24, at + 16)
    int_to_double(at + 40, at + 32)
    copy_float(at + 20, at + 16)
    store(at + 48, load(at) + 1)
    store(at + 56, load_int(at + 16))
    room = stack(16)
    store(room, 5)
    return is_nan_double(at) + 2 * is_nan_float(at + 16) + 4 * (load(room) == 5)
"""
    found, _engine = compiled(source, ("numbers",))
    for value in (1.1, -3.0, float("nan")):
        memory = np.zeros(8)
        memory[0] = value
        memory.view(np.int64)[4] = -12345678901
        assert found["numbers"](memory.ctypes.data) == (7 if value != value else 4)
        assert memory[:2].tobytes() == np.array([value, value]).tobytes()
        assert memory.view(np.float32)[4:6].tobytes() == np.array([value, value], np.float32).tobytes()
        assert memory[3:4].tobytes() == np.array([np.float32(value)], np.float64).tobytes()
        assert memory[5] == -12345678901.0
        assert memory.view(np.int64)[6] == memory.view(np.int64)[0] + 1
        assert memory.view(np.int64)[7] == memory.view(np.int32)[4]


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: int) -> int:\n    return [a]\n",
        "def f(a: int) -> int:\n    return unknown(a)\n",
        "def f(a: int) -> int:\n    return b\n",
        "def f(a: int) -> int:\n    with a:\n        pass\n",
    ],
)
def test_what_is_not_in_the_subset_is_refused(source):
    with pytest.raises((NotImplementedError, AssertionError, AttributeError)):
        routines.module([(source, {})], ("f",))
