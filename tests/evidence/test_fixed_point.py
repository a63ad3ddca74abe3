"""Fixed point: the bits of the interpreter on this machine and others, errors within their bounds, no overflow."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.ir.program import trace
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.evidence import search
from strategies import robots


def made(robot, function, bits=31, **options):
    entry = next(e for e in entries(robot, (function,), Options(**options)) if e.name == function)
    box = evidence.box_of(robot, entry.program.inputs, values=entry.settings)
    return entry.program, box, evidence.fixed_point(entry.program, box, bits=bits)


@settings(max_examples=5, deadline=None)
@given(
    robot=robots(min_dof=1, max_dof=3, tree=False), seed=st.integers(0, 99), bits=st.sampled_from([31, 15])
)
def test_errors_are_within_their_bounds_and_nothing_overflows(robot, seed, bits):
    try:
        program, box, fixed = made(robot, "inverse_dynamics", bits)
    except evidence.EvidenceError:
        if bits == 31:
            raise
        return  # 15 bits are not enough for all robots
    states = box.draw(np.random.default_rng(seed), 40)
    whole = fixed.given(states)
    exact = search.exact(program, {n: whole[n] * 2.0**-f for n, _, f in fixed.inputs})[0]
    (name, _, f), bounds = fixed.outputs[0], np.array(fixed.errors[0])
    for s in range(40):
        outputs = fixed.run({n: x[s].tolist() for n, x in whole.items()})[name]
        assert all(-(2**bits) <= x < 2**bits for x in outputs)
        assert (np.abs(np.array(outputs) * 2.0**-f - exact[s].astype(float)) <= bounds).all()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(
    ("name", "function", "bits"),
    [
        ("puma560", "gravity_torques", 31),
        ("two_link", "computed_torque", 31),
        ("puma560", "inverse_dynamics", 15),
        ("two_link", "computed_torque", 15),
    ],
)
def test_c_code_has_the_bits_of_the_interpreter(tmp_path, name, function, bits):
    _, box, fixed = made(lw.load(name), function, bits)
    kind = np.int32 if bits == 31 else np.int16
    (tmp_path / "f.c").write_text(fixed.source("f"), encoding="utf-8")
    options = [
        "-O2",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsanitize=signed-integer-overflow,shift-exponent",
    ]
    command = ["gcc", *options, "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC", "f.c", "-o", "f.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function_ = ctypes.CDLL(str(tmp_path / "f.so")).f
    whole = fixed.given(box.draw(np.random.default_rng(0), 50))
    for s in range(50):
        arrays = [np.array(whole[n][s], kind) for n, _, _ in fixed.inputs]
        outputs = [np.zeros(len(values), kind) for _, values, _ in fixed.outputs]
        function_(*(a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, *outputs)))
        expected = fixed.run({n: x[s].tolist() for n, x in whole.items()})
        assert [x.tolist() for x in outputs] == [expected[n] for n, _, _ in fixed.outputs]


def test_an_angle_of_many_turns_is_rounded_as_the_bound_says():
    """1/(2π) has 30 bits: what it lacks grows with the angle."""
    program = trace(lambda q: [q[0].sin(), q[0].cos()], {"q": 1}, {"y": (2,)})
    box = evidence.Box({"q": (np.array([-60.0]), np.array([60.0]))})
    fixed = evidence.fixed_point(program, box)
    whole = fixed.given(box.draw(np.random.default_rng(0), 50))["q"]
    (_, _, f), (_, _, scale) = fixed.inputs[0], fixed.outputs[0]
    angles = whole[:, 0] * 2.0**-f
    found = np.array([fixed.run({"q": x})["y"] for x in whole.tolist()]) * 2.0**-scale
    errors = np.abs(found - np.stack([np.sin(angles), np.cos(angles)], axis=-1))
    assert (errors <= np.array(fixed.errors[0])).all()
    assert errors.max() > 2.0**-26


def test_divisions_are_refused():
    with pytest.raises(evidence.EvidenceError, match=r"fixed point has no div|finite ranges"):
        made(lw.load("two_link"), "forward_dynamics")
