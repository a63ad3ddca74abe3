"""Loops as data: the interpreter defines sweeps, scans and rollouts; machine code and C return its bits."""

import ctypes
import functools
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import test_rollout as rollouts
from test_c import COMPILERS, STRICT, built

import linkwise as lw
from linkwise.compiler.emit import blocks, c
from linkwise.compiler.ir import loops
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.interpret import run as interpret_straight
from linkwise.compiler.ir.interpret import run_nest
from linkwise.compiler.ir.loops import (
    Array,
    Change,
    Declare,
    Element,
    For,
    If,
    Let,
    Nest,
    Register,
    Step,
    name,
    whole,
)
from linkwise.compiler.ir.schedule import schedule
from linkwise.compiler.ir.sweeps import SweptProgram, unfused
from linkwise.compiler.native import RUN
from linkwise.compiler.rollout import interpret
from linkwise.compiler.runtime import machine
from linkwise.compiler.shapes import nest
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.functions.arrays import run_on_arrays
from linkwise.functions.table import Setting, function_named
from linkwise.robot import kernels

SWEPT = [
    ("inverse_dynamics", "newton_euler", False),
    ("inverse_dynamics", "newton_euler", True),
    ("forward_dynamics", "kalman", False),
    ("forward_dynamics", "kalman", True),
    ("forward_dynamics", "parallel_scan", False),
]


@pytest.fixture(autouse=True)
def _everything_is_long(monkeypatch):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 0)


@functools.cache
def swept_kernel(function, algorithm, tree, dof=7):
    """Traced once for all compilers and precisions."""
    robot = lw.random_robot(4, dof, joints="RP", rotor=True, friction=True, tree=tree)
    return robot.kernel(function, algorithm=algorithm)


def interpreted(program, inputs) -> np.ndarray:
    arrays = {key: np.array(x, program.dtype) for (key, _), x in zip(program.inputs, inputs, strict=True)}
    ((output, shape),) = program.outputs
    arrays[output] = np.full(shape, np.inf, program.dtype)
    run_nest(nest(program), arrays)
    return arrays[output]


def library(tmp_path, compiler, text, *options):
    (tmp_path / "code.c").write_text(text)
    command = [compiler, *STRICT, *options, "-shared", "-fPIC", "code.c", "-o", "code.so", "-lm"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return ctypes.CDLL(str(tmp_path / "code.so"))


def pointers(*arrays):
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


# -- sweeps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("function", "algorithm", "tree"), SWEPT)
def test_machine_code_of_sweeps_equals_the_interpreter(function, algorithm, tree, dtype):
    found = swept_kernel(function, algorithm, tree)
    inputs = np.random.default_rng(1).normal(size=(3, 9, 7)).astype(dtype)
    got = found(*inputs)
    for k in (0, 4, 8):
        np.testing.assert_array_equal(got[k], interpreted(found.program(dtype), inputs[:, k]))
        np.testing.assert_array_equal(found(*inputs[:, k]), got[k])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("function", "algorithm", "tree"), SWEPT)
def test_c_of_sweeps_equals_the_interpreter(tmp_path, function, algorithm, tree, dtype, compiler):
    program = swept_kernel(function, algorithm, tree).program(dtype)
    compiled = library(tmp_path, compiler, c.source(program), "-O1", "-march=native")
    inputs = np.random.default_rng(2).normal(size=(3, 7)).astype(dtype)
    out, room = np.full(7, np.inf, dtype), np.full(program.scratch_scalars(1), np.nan, dtype)
    compiled[function](*pointers(*inputs, out, room))
    np.testing.assert_array_equal(out, interpreted(program, inputs))


@pytest.mark.parametrize("dof", [1, 2, 3, 40])
def test_c_of_scans_of_any_length(tmp_path, dof):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    found = swept_kernel("forward_dynamics", "parallel_scan", False, dof)
    compiled = library(tmp_path, "gcc", found.source("c"), "-O1")
    inputs = np.random.default_rng(2).normal(size=(3, dof))
    out, room = np.zeros(dof), np.zeros(found.program().scratch_scalars(1))
    compiled.forward_dynamics(*pointers(*inputs, out, room))
    np.testing.assert_array_equal(out, found(*inputs))
    np.testing.assert_array_equal(out, interpreted(found.program(), inputs))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_main_of_a_long_chain(tmp_path, compiler):
    found = swept_kernel("inverse_dynamics", "newton_euler", False)
    executable = built(tmp_path, compiler, found.source("c", main=True), *STRICT, "-O2")
    inputs = np.random.default_rng(3).normal(size=(4, 3, 7))
    given = " ".join(float(x).hex() for x in inputs.ravel())
    printed = subprocess.run([executable], input=given, capture_output=True, text=True, check=True).stdout
    got = np.array([[float(word) for word in line.split()] for line in printed.splitlines()])
    np.testing.assert_array_equal(got, found(*np.moveaxis(inputs, 1, 0)))


def test_sweeps_without_fused_operations(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    found = swept_kernel("forward_dynamics", "kalman", True)
    text = found.source("c", fma=False)
    assert "fma(" not in text
    assert "differ in the last bits" in text
    compiled = library(tmp_path, "gcc", text, "-O2")
    inputs = np.random.default_rng(2).normal(size=(3, 7))
    out, room = np.zeros(7), np.zeros(found.program().scratch_scalars(1))
    compiled.forward_dynamics(*pointers(*inputs, out, room))
    np.testing.assert_array_equal(out, interpreted(unfused(found.program()), inputs))
    np.testing.assert_allclose(out, found(*inputs), rtol=1e-9)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_header_of_a_long_chain(tmp_path, compiler):
    found = swept_kernel("inverse_dynamics", "newton_euler", True)
    (tmp_path / "chain.h").write_text(found.source("c", header=True, function_name="chain"))
    (tmp_path / "chain.c").write_text('#include "chain.h"\n' + found.source("c", function_name="chain"))
    command = [compiler, *STRICT, "-c", "chain.c", "-o", "chain.o"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_an_input_may_have_the_name_of_a_loop():
    """Names that the loops use themselves are taken."""
    graph = Graph()
    x = graph.make("input", (), ("row", 0))
    body = [
        For(
            "row",
            whole(0),
            whole(3),
            [Step({("row", 0): Element("row", name("row"))}, [], [(Element("out", name("row")), x)])],
        )
    ]
    made = Nest("odd", "float64", (Array("row", "input", 3), Array("out", "output", 3)), body)
    from linkwise.compiler.emit.clike import Dialect, Printer

    printer = Printer(made, Dialect("double", "int", "", "INFINITY", "NAN"))
    assert printer.arguments == ["row_", "out"]
    assert any("= row_[row];" in line for line in printer.statements())


# -- matrices and derivatives -----------------------------------------------------------------------------------------

OTHER = {  # algorithms that do other arithmetic
    "inverse_dynamics_derivatives": "gibbs_appell",
    "forward_dynamics_derivatives": "kalman",
    "mass_matrix": "covariance",
    "inverse_mass_matrix": "kalman",
    "christoffel": "christoffel",
}
DERIVATIVES = list(OTHER)[:2]
BY_JOINTS = [
    (name, "joints", tree) for name in OTHER for tree in (False, True) if tree or name in DERIVATIVES
]
BY_LINKS = [(name, "links", tree) for name in DERIVATIVES for tree in (False, True)]


def chain(tree, dof=4):
    return lw.random_robot(4, dof, joints="RP", rotor=True, friction=True, tree=tree)


@pytest.fixture(scope="module")
def looped_kernels():
    return {}


@pytest.fixture
def looped_kernel(monkeypatch, looped_kernels):
    """Makes a kernel as loops over joints, or over links once for every direction; traced once for all compilers."""

    def made(function, form, tree):
        key = function, form, tree
        if key not in looped_kernels:
            looped_kernels[key] = traced(*key)
        return looped_kernels[key]

    def traced(function, form, tree):
        can_be = (lambda row, _, algorithm: algorithm in row.looped) if form == "joints" else lambda *_: False
        monkeypatch.setattr(kernels, "is_looped", can_be)
        monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 0)
        found = chain(tree).kernel(function)
        assert isinstance(found.program(), ProcedureNest if form == "joints" else SweptProgram)
        assert form == "joints" or found.program().directions
        return found

    return made


def outputs_interpreted(program, inputs):
    loops = nest(program)
    written = [array for array in loops.arrays if array.kind == "output"]
    arrays = {key: np.array(x) for (key, _), x in zip(program.inputs, inputs, strict=True)}
    arrays |= {array.name: np.full(array.columns, np.inf) for array in written}
    run_nest(loops, arrays)
    return [
        arrays[array.name].reshape(shape) for array, (_, shape) in zip(written, program.outputs, strict=True)
    ]


def in_c(compiled, found, inputs):
    """What a compiled function writes, given memory of NaNs."""
    out = [np.full(shape, np.inf) for _, shape in found.outputs]
    room = np.full(found.program().scratch_scalars(1), np.nan)
    compiled[found.name](*pointers(*inputs, *out, room))
    return out


def assert_same(got, expected):
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("function", "form", "tree"), BY_JOINTS + BY_LINKS)
def test_loops_of_matrices_and_derivatives(looped_kernel, function, form, tree):
    found = looped_kernel(function, form, tree)
    inputs = np.random.default_rng(3).normal(size=(len(found.inputs), 9, 4))
    got = found(*inputs)
    got = got if isinstance(got, tuple) else (got,)
    row, given = function_named(function), dict(zip(dict(found.inputs), inputs, strict=True))
    expected = run_on_arrays(row, Setting(chain(tree)), OTHER[function], given)
    for mine, other in zip(got, expected.values(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-11 * np.abs(other).max())
    assert_same([mine[4] for mine in got], outputs_interpreted(found.program(), inputs[:, 4]))
    assert found.program().outputs == found.outputs
    assert found.operations.total > 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("function", "form", "tree"), BY_JOINTS + BY_LINKS)
def test_c_of_matrices_and_derivatives(tmp_path, looped_kernel, function, form, tree, compiler):
    found = looped_kernel(function, form, tree)
    text = found.source("c")
    assert f"Cost: {found.operations}." in text.replace("\n * ", " ")
    compiled = library(tmp_path, compiler, text, "-O1", "-march=native")
    inputs = np.random.default_rng(3).normal(size=(len(found.inputs), 4))
    got = in_c(compiled, found, inputs)
    assert_same(got, outputs_interpreted(found.program(), inputs))
    in_python = found(*inputs)
    assert_same(got, in_python if isinstance(in_python, tuple) else (in_python,))


def test_loops_over_joints_without_fused_operations(tmp_path, looped_kernel):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    found = looped_kernel("forward_dynamics_derivatives", "joints", True)
    text = found.source("c", fma=False)
    assert "fma(" not in text
    assert "differ in the last bits" in text.replace("\n * ", " ")
    inputs = np.random.default_rng(2).normal(size=(3, 4))
    got = in_c(library(tmp_path, "gcc", text, "-O2"), found, inputs)
    assert_same(got, outputs_interpreted(c.unfused(found.program()), inputs))
    for mine, fused in zip(got, found(*inputs), strict=True):
        np.testing.assert_allclose(mine, fused, rtol=0, atol=1e-11 * np.abs(fused).max())


def test_header_and_main_of_loops_over_joints(tmp_path, looped_kernel):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    found = looped_kernel("mass_matrix", "joints", True)
    header = found.source("c", header=True)
    assert "out  4 x 4\n" in header
    assert f"double room[{found.program().scratch_scalars(1)}]);" in header
    executable = built(tmp_path, "gcc", found.source("c", main=True), *STRICT, "-O2")
    inputs = np.random.default_rng(3).normal(size=(3, 4))
    given = " ".join(float(x).hex() for x in inputs.ravel())
    printed = subprocess.run([executable], input=given, capture_output=True, text=True, check=True).stdout
    got = np.array([[float(word) for word in line.split()] for line in printed.splitlines()])
    np.testing.assert_array_equal(got.reshape(3, 4, 4), found(inputs))


def test_formulas_of_loops_over_joints_are_written_out_where_they_can_be():
    """Christoffel's symbols are loops although they could be written out; formulas are made from what is written."""
    robot = lw.random_robot(4, 3, joints="RP")
    found = robot.kernel("christoffel")
    assert isinstance(found.program(), ProcedureNest)
    q = np.array([0.3, -0.7, 0.5])
    np.testing.assert_allclose(interpret_straight(found.straight("float64"), q)[0], found(q), atol=1e-13)
    assert found.explain(index=0).operations.total < found.operations.total
    h, along = 1e-6, np.array([0.2, -1.0, 0.4])
    slope = (found(q + h * along) - found(q - h * along)) / (2 * h)
    np.testing.assert_allclose(found.jvp()(q, along), slope, atol=1e-8)


def test_what_has_no_loops_is_written_out(monkeypatch):
    robot = chain(False)
    text = robot.kernel("mass_matrix").source("c")
    assert "for (" not in text
    monkeypatch.undo()
    assert robot.kernel("mass_matrix", algorithm="covariance").source("c") != text


# -- rollouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("interface", [rollouts.INTERFACE, rollouts.OWN], ids=["shared feed", "own feeds"])
@pytest.mark.parametrize(("steps", "every"), [(7, 1), (10, 3)])
def test_c_of_rollouts_equals_the_interpreter(tmp_path, interface, compiler, dtype, steps, every):
    program = rollouts.build(interface, dtype)
    compiled = library(tmp_path, compiler, c.source(program), "-O2", "-march=native")
    rng = np.random.default_rng(5)
    sizes = {**interface.carried, **interface.parameters}
    sizes |= {key: feed.length(steps) for key, feed in interface.feeds.items()}
    given = {key: rng.normal(size=size).astype(dtype) for key, size in sizes.items()}
    final, written = interpret(program, given, steps, every)
    arrays = {key: value.copy() for key, value in given.items()}
    arrays |= {key: np.full(value.shape, np.inf, dtype) for key, value in written.items()}
    compiled.test(*pointers(*arrays.values()), ctypes.c_long(steps), ctypes.c_long(every))
    for key, value in {**final, **written}.items():
        np.testing.assert_array_equal(arrays[key], value, err_msg=key)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_main_of_a_rollout(tmp_path, compiler):
    program = rollouts.build(rollouts.OWN, "float64")
    executable = built(tmp_path, compiler, c.source(program, main=True), *STRICT, "-O2")
    rng, steps = np.random.default_rng(6), 4
    given = {"x": rng.normal(size=3), "v": rng.normal(size=3), "gain": rng.normal(size=2)}
    given |= {"push": rng.normal(size=5), "own": rng.normal(size=7)}
    words = [str(steps), *(float(x).hex() for key in ("x", "v", "gain") for x in given[key])]
    for k in range(steps):
        words += [float(x).hex() for x in (*given["push"][k : k + 2], given["own"][2 * k])]
    run = subprocess.run([executable], input=" ".join(words), capture_output=True, text=True, check=True)
    *lines, last = [[float(word) for word in line.split()] for line in run.stdout.splitlines()]
    final, written = interpret(program, given, steps)
    np.testing.assert_array_equal(lines, np.column_stack([written["energy"], written["rounded"]]))
    np.testing.assert_array_equal(last, np.concatenate([final["x"], final["v"]]))


# -- nests ------------------------------------------------------------------------------------------------------------


def nested() -> Nest:
    """A loop over time around two sweeps: a string of masses, x += h·v after v += h·(left − 2x + right)."""
    graph = Graph()
    row, t = name("row"), name("t")
    read = {key: graph.make("input", (), (key, 0)) for key in ("x", "v", "left", "right", "h")}
    places = {
        ("x", 0): Element("x", row),
        ("v", 0): Element("v", row),
        ("left", 0): Register("before"),
        ("right", 0): Element("x", loops.choose((row + 1) < 5, row + 1, 4)),
        ("h", 0): Element("h", whole(0)),
    }
    force = graph.sub(graph.add(read["left"], read["right"]), graph.add(read["x"], read["x"]))
    product = graph.mul(read["h"], force)
    faster = graph.add(read["v"], product)
    moved = graph.add(read["x"], graph.mul(read["h"], read["v"]))
    speeds = Step(places, schedule([faster]), [(Element("v", row), faster), (Register("before"), read["x"])])
    moves = Step(places, schedule([moved]), [(Element("x", row), moved)])
    total = Step({("x", 0): Register("before")}, [], [(Element("path", whole(0), name("sample")), read["x"])])
    body = [
        Let("sample", whole(0)),
        For(
            "t",
            whole(0),
            name("steps"),
            [
                Declare({Register("before"): 0.0}),
                For("row", whole(0), whole(5), [speeds]),
                For("row", whole(4), whole(-1), [moves], whole(-1), parallel=True),
                If(t.equals(2), [total, Change("sample", name("sample") + 1)]),
            ],
        ),
    ]
    arrays = (
        Array("x", "both", 5),
        Array("v", "both", 5),
        Array("h", "input", 1),
        Array("path", "output", 1, "samples"),
    )
    return Nest("string", "float64", arrays, body, numbers=("steps",))


def forked() -> Nest:
    """Registers that both sides of a choice read and change, one side alone, or one that is empty; an input that is
    first read on one side."""
    graph = Graph()
    t, a, b, out = name("t"), Register("a"), Register("b"), Element("out", name("t"))
    x, y = graph.make("input", (), ("a", 0)), graph.make("input", (), ("b", 0))
    scale = graph.make("input", (), ("scale", 0))
    total, product = graph.add(x, y), graph.mul(x, scale)
    both = {("a", 0): a, ("b", 0): b, ("scale", 0): Element("scale", whole(0))}
    then = [
        Step(both, schedule([total]), [(a, total)]),
        Step(both, schedule([product]), [(b, product)]),
    ]
    other = [Step(both, schedule([product, total]), [(a, product), (b, total)])]
    larger, smaller, seldom = (
        graph.mul(y, scale),
        graph.sub(y, scale),
        {("b", 0): b, ("scale", 0): Element("scale", whole(1))},
    )
    body = [
        Declare({a: 1.0, b: 0.25}),
        For(
            "t",
            whole(0),
            whole(6),
            [
                If(t.equals(2), then, other),
                If(t.equals(3), [], other),
                If(t.equals(4), then),
                Step({("a", 0): a}, [], [(out, x)]),
            ],
        ),
        Let("last", whole(1)),
        If(name("last").equals(0), [Step(seldom, schedule([smaller]), [(b, smaller)])]),
        Step(seldom, schedule([larger]), [(Element("out", whole(6)), larger)]),
    ]
    return Nest("forked", "float64", (Array("scale", "input", 2), Array("out", "output", 7)), body)


SCALE = np.array([0.7, 1.3])


def taken_sides() -> np.ndarray:
    """The same in Python."""
    a, b, found = 1.0, 0.25, []
    for t in range(6):
        for side in ("then" if t == 2 else "other", "" if t == 3 else "other", "then" if t == 4 else ""):
            if side == "then":
                a = a + b
                b = SCALE[0] * a
            elif side:
                a, b = SCALE[0] * a, a + b
        found.append(a)
    return np.array([*found, SCALE[1] * b])


def test_both_sides_of_a_choice_start_from_what_was_before():
    out = np.zeros(7)
    run_nest(forked(), {"scale": SCALE, "out": out})
    np.testing.assert_array_equal(out, taken_sides())
    for width in (1, 4):
        code = machine.load(machine.compile_text(blocks.module(forked(), width)))
        rows, given, scratch = np.zeros((5, 7)), np.tile(SCALE, (5, 1)), np.zeros(1000)
        arguments = np.array([rows.ctypes.data, given.ctypes.data, 2], np.int64)
        room = scratch.ctypes.data + -scratch.ctypes.data % 64
        RUN(code.functions["run"])(0, 5, arguments.ctypes.data, room)
        np.testing.assert_array_equal(rows, np.tile(taken_sides(), (5, 1)))


@pytest.mark.parametrize("compiler", COMPILERS[:1])
def test_both_sides_of_a_choice_as_c(tmp_path, compiler):
    out = np.zeros(7)
    library(tmp_path, compiler, c.source(forked()), "-O2").forked(*pointers(SCALE, out))
    np.testing.assert_array_equal(out, taken_sides())


def string(steps):
    x, v, h, path = np.arange(5.0), np.zeros(5), 0.1, []
    for t in range(steps):
        before = 0.0
        for k in range(5):
            v[k] = v[k] + h * ((before + x[min(k + 1, 4)]) - (x[k] + x[k]))
            before = x[k]
        x = np.array([a + h * b for a, b in zip(x, v, strict=True)])
        if t == 2:
            path.append(before)
    return x, v, path


def test_a_loop_over_time_around_sweeps_interpreted():
    arrays = {"x": np.arange(5.0), "v": np.zeros(5), "h": np.array([0.1]), "path": np.zeros(1)}
    run_nest(nested(), arrays, steps=6)
    for got, wanted in zip((arrays["x"], arrays["v"], arrays["path"]), string(6), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_loop_over_time_around_sweeps_as_c(tmp_path, compiler):
    compiled = library(tmp_path, compiler, c.source(nested()), "-O2")
    x, v, h, path = np.arange(5.0), np.zeros(5), np.array([0.1]), np.zeros(1)
    compiled.string(*pointers(x, v, h, path), ctypes.c_long(6))
    for got, wanted in zip((x, v, path), string(6), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("width", [1, 4, 8])
def test_a_loop_over_time_around_sweeps_as_machine_code(width):
    code = machine.load(machine.compile_text(blocks.module(nested(), width)))
    count, steps = 11, 6
    x, v, path = np.tile(np.arange(5.0), (count, 1)), np.zeros((count, 5)), np.zeros((count, 1))
    x[3] += 0.5
    h = np.full((count, 1), 0.1)
    other = {"x": x[3].copy(), "v": np.zeros(5), "h": h[3], "path": np.zeros(1)}
    run_nest(nested(), other, steps=steps)
    words = [steps, *(word for a in (x, v, h, path) for word in (a.ctypes.data, a.shape[1]))]
    arguments = np.array(words, np.int64)
    RUN(code.functions["run"])(0, count, arguments.ctypes.data, 0)
    for k in (0, 10):
        for got, wanted in zip((x[k], v[k], path[k]), string(steps), strict=True):
            np.testing.assert_array_equal(got, wanted)
    for got, key in zip((x[3], v[3], path[3]), ("x", "v", "path"), strict=True):
        np.testing.assert_array_equal(got, other[key])


def rolled(dof, tree, dtype) -> Nest:
    """A long chain in time: forward dynamics as sweeps over its links, then a loop over joints that moves them."""
    program = swept_kernel("forward_dynamics", "kalman", tree, dof).program(dtype)
    made, graph, row = nest(program), Graph(), name("row")
    q, qd, qdd, h = (graph.make("input", (), (key, 0)) for key in ("q", "qd", "qdd", "h"))
    reads = {(key, 0): Element(key, row) for key in ("q", "qd", "qdd")} | {("h", 0): Element("h", whole(0))}
    faster = graph.fma(h, qdd, qd)
    moved = graph.fma(h, faster, q)
    move = Step(reads, schedule([faster, moved]), [(Element("qd", row), faster), (Element("q", row), moved)])
    arrays = [replace(a, kind="both") if a.name in ("q", "qd") else a for a in made.arrays]
    steps = [*made.body, For("row", whole(0), whole(dof), [move], parallel=True)]
    return replace(
        made,
        name="rolled",
        arrays=(*arrays, Array("h", "input", 1)),
        body=[For("t", whole(0), name("steps"), steps)],
        numbers=("steps",),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
def test_a_rollout_of_a_long_chain(tmp_path, tree, dtype):
    """Time around sweeps around links: the same bits interpreted, as machine code of every width and as C."""
    dof, steps, count = 9, 4, 5
    made = rolled(dof, tree, dtype)
    rng = np.random.default_rng(7)
    first = {key: rng.normal(size=(count, dof)).astype(dtype) for key in ("q", "qd", "tau")}
    first |= {"qdd": np.zeros((count, dof), dtype), "h": np.full((count, 1), 0.01, dtype)}
    wanted = [{key: value[k].copy() for key, value in first.items()} for k in range(count)]
    for state in wanted:
        run_nest(made, state, steps=steps)
        assert np.isfinite(state["q"]).all()
    order = [array.name for array in made.arrays if array.kind in ("input", "output", "both")]
    room = sum(int(a.rows) * a.columns for a in made.arrays if a.kind == "scratch")
    for width in (1, 4):
        code = machine.load(machine.compile_text(blocks.module(made, width)))
        got = {key: value.copy() for key, value in first.items()}
        words = [steps, *(word for key in order for word in (got[key].ctypes.data, got[key].shape[1]))]
        arguments, scratch = np.array(words, np.int64), np.full(room * width, np.nan, dtype)
        RUN(code.functions["run"])(0, count, arguments.ctypes.data, scratch.ctypes.data)
        for k in range(count):
            for key in ("q", "qd"):
                np.testing.assert_array_equal(got[key][k], wanted[k][key])
    if compiler := shutil.which("gcc") or shutil.which("clang"):
        compiled = library(tmp_path, compiler, c.source(made), "-O1")
        state = {key: value[2].copy() for key, value in first.items()} | {
            "room": np.full(room, np.nan, dtype)
        }
        given = [state[a.name] for a in made.arrays if a.kind != "constant"]
        compiled.rolled(*pointers(*given), ctypes.c_long(steps))
        for key in ("q", "qd"):
            np.testing.assert_array_equal(state[key], wanted[2][key])


def test_whole_numbers():
    k = name("k")
    assert (k * 1 + 0) is k
    assert (whole(3) + 4).number == 7
    assert ((2 * k - 1) < 5).value({"k": 2}, {}) == 1
    assert (1 << k).value({"k": 5}, {}) == 32
    assert loops.choose(k.equals(0), 9, loops.entry("t", k - 1)).value({"k": 2}, {"t": [4, 6]}) == 6


def test_whole_numbers_are_written_with_the_parentheses_they_need():
    """C and Python agree on how strongly these operators bind."""
    from operator import add, mul, sub

    from linkwise.compiler.emit.clike import Printer

    class Text:
        whole = Printer.whole

    names = {"a": 7, "b": 3, "c": 2}
    a, b, c = (loops.Whole("name", (name,)) for name in names)
    pairs = [f(x, y) for f in (add, sub, mul) for x, y in ((a, b), (b, c))]
    for made in [f(x, y) for f in (add, sub, mul) for x in (*pairs, a) for y in (*pairs, c)]:
        assert eval(Text().whole(made), {}, names) == made.value(names, {}), made
    assert Text().whole(a - b - c) == "a - b - c"
    assert Text().whole(a - (b + c)) == "a - (b + c)"
