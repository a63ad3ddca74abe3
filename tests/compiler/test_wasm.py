"""WebAssembly in Node.js: the interpreter's bits, fused multiply-adds included."""

import base64
import json
import shutil
import subprocess

import numpy as np
import pytest
import test_rollout as rollouts
from random_programs import every_program, same_bits, states

import linkwise as lw
from linkwise.compiler.emit import source
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.interpret import nest_outputs
from linkwise.compiler.ir.program import trace
from linkwise.compiler.rollout import interpret as interpret_rollout
from linkwise.compiler.shapes import nest
from linkwise.robot import kernels

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

CALL = """
import {load} from "./module.mjs";
import {readFileSync} from "node:fs";
const {states, call, real} = JSON.parse(readFileSync("states.json"));
const kind = {Float64Array, Float32Array}[real];
const read = text => new kind(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
const write = array => btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
const both = (object, f) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, f(value)]));
const run = await load();
console.log(JSON.stringify(states.map(state => both(run(both(state, read), call), write))));
"""


def run(folder, program, rows, **call) -> list[dict[str, np.ndarray]]:
    """What the module gives for each state, {name: array}."""
    dtype = program.dtype
    (folder / "module.mjs").write_text(source(program, "wasm"))
    (folder / "call.mjs").write_text(CALL)
    text = [
        {name: base64.b64encode(np.asarray(x, dtype).tobytes()).decode() for name, x in row.items()}
        for row in rows
    ]
    real = "Float64Array" if dtype == "float64" else "Float32Array"
    (folder / "states.json").write_text(json.dumps({"states": text, "call": call, "real": real}))
    ran = subprocess.run(["node", "call.mjs"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [
        {name: np.frombuffer(base64.b64decode(x), dtype) for name, x in found.items()}
        for found in json.loads(ran.stdout)
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation(tmp_path, dtype):
    program = every_program(dtype)
    with np.errstate(over="ignore"):
        rows = [tuple(part.astype(dtype) for part in row) for row in states(60, 1)]
    names = [name for name, _ in program.inputs]
    found = run(tmp_path, program, [dict(zip(names, row, strict=True)) for row in rows])
    for row, got in zip(rows, found, strict=True):
        wanted = np.concatenate([part.ravel() for part in interpret.run(program, *row)])
        assert same_bits(np.concatenate(list(got.values())), wanted), row


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fused_multiply_add_rounds_once(tmp_path, dtype):
    """Halfway cases, cancellation, and both ends of the range."""
    program = trace(lambda x: [x[0] * x[1] + x[2]], {"x": 3}, {"out": (1,)}, name="fused", dtype=dtype)
    assert [node.op for node in program.nodes()] == ["fma"]
    rng = np.random.default_rng(0)
    top = 1000 if dtype == "float64" else 120
    with np.errstate(all="ignore"):
        scaled = (rng.normal(size=(400, 3)) * 2.0 ** rng.integers(-top, top, (400, 3))).astype(dtype)
        near = rng.normal(size=(400, 3)).astype(dtype)
        near[:, 2] = -(near[:, 0] * near[:, 1]) * (1 + rng.integers(-1, 2, 400) * np.finfo(dtype).eps)
        small = (rng.normal(size=(200, 3)) * np.finfo(dtype).tiny ** rng.uniform(0.3, 0.7, (200, 1))).astype(
            dtype
        )
        small[:, 2] = rng.integers(-9, 9, 200) * np.finfo(dtype).smallest_subnormal
        big = np.finfo(dtype).max
    special = np.array(
        [[0, 5, -0.0], [-0.0, 5, 0], [np.inf, 0, 1], [np.inf, 2, -np.inf], [big, 2, -np.inf], [big, 2, -big],
         [big, 1, big], [np.nan, 1, 1], [1, 1, np.nan], [3, -1, 3], [big, big, np.nan], [big, 0.5, big]], dtype
    )  # fmt: skip
    rows = np.concatenate([scaled, near, small, special])
    found = run(tmp_path, program, [{"x": row} for row in rows])
    for row, got in zip(rows, found, strict=True):
        with np.errstate(all="ignore"):
            assert same_bits(got["out"], np.array([interpret.fma(*row)])), row


@pytest.mark.parametrize(
    ("function", "algorithm", "tree"),
    [
        ("inverse_dynamics", "newton_euler", True),
        ("forward_dynamics", "kalman", False),
        ("forward_dynamics", "parallel_scan", False),
        ("inverse_dynamics_derivatives", None, False),
    ],
)
def test_loops_over_links(tmp_path, monkeypatch, function, algorithm, tree):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 0)
    robot = lw.random_robot(4, 6, joints="RP", rotor=True, friction=True, tree=tree)
    program = robot.kernel(function, algorithm=algorithm).program()
    rng = np.random.default_rng(1)
    rows = [{name: rng.normal(size=size) for name, size in program.inputs} for _ in range(2)]
    for row, got in zip(rows, run(tmp_path, program, rows), strict=True):
        wanted = nest_outputs(nest(program), row)
        for name, value in got.items():
            np.testing.assert_array_equal(value, wanted[name])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rollout(tmp_path, dtype):
    program = rollouts.build(rollouts.OWN, dtype)
    rng, steps, every = np.random.default_rng(2), 10, 3
    sizes = {**rollouts.OWN.carried, **rollouts.OWN.parameters}
    sizes |= {name: feed.length(steps) for name, feed in rollouts.OWN.feeds.items()}
    given = {name: rng.normal(size=size).astype(dtype) for name, size in sizes.items()}
    final, written = interpret_rollout(program, given, steps, every)
    (got,) = run(tmp_path, program, [given], steps=steps, every=every)
    assert set(got) == {*final, *written}
    for name, value in {**final, **written}.items():
        np.testing.assert_array_equal(got[name], value.ravel())


def test_wrong_lengths_are_named(tmp_path):
    program = trace(lambda x: [x[0]], {"x": 1}, {"out": (1,)}, name="one")
    with pytest.raises(AssertionError, match="RangeError: x: expected 1 numbers, got 2"):
        run(tmp_path, program, [{"x": [1.0, 2.0]}])
