"""Programs that try to break the bounds: every value is compared with 50 digits at states of the box."""

import math
import random
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise import evidence, language, scalar
from linkwise.compiler.emit import c
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.graph import CONDITIONS
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.evidence import forms as forms_
from linkwise.evidence import patterns, precise, rounding
from linkwise.evidence.box import Box
from linkwise.evidence.certified_bounds import _Ranges, rounded_box, straight_line
from linkwise.model.joint import Mimic
from strategies import robots

NUMBERS = {"float64": np.float64, "float32": np.float32}


def violations(program, box, seed=0, states=8, extra=()):
    """Sentences on values that are outside of their range or further from the exact one than their error bound."""
    box = rounded_box(box, program.dtype)
    forms = forms_.analyse(program, box, keep=True)
    errors = rounding.errors(forms)
    ranges = _Ranges(forms, 0.3, 0.02)
    known = {node: ranges.interval(node) for nodes in program.values for node in nodes}
    drawn = box.draw(np.random.default_rng(seed), states)
    states = [{n: x[s].astype(program.dtype).astype(float) for n, x in drawn.items()} for s in range(states)]
    for state in [*states, *extra]:
        state = {n: np.clip(x.astype(program.dtype).astype(float), *box.bounds[n]) for n, x in state.items()}
        try:
            exact = precise.at(program, state, forms.patterns)
        except ZeroDivisionError:
            if not forms.problems:
                yield "a division by 0 is not named"
            continue
        order = [n for n in program.nodes() if n not in forms.patterns.inner or n in exact]
        kind = NUMBERS[program.dtype]
        inputs = {
            n: kind(state[n.value[0]][n.value[1]]) for p in program.nodes() for n in p.args if n.op == "input"
        }
        computed = interpret.values(list(program.nodes()), kind, inputs)
        for node in order:
            if node.op in CONDITIONS or node not in exact:
                continue
            value, error = exact[node], errors.of(node)
            if isinstance(value, mpmath.mpc):
                if not forms.problems:
                    yield "a root of a negative number is not named"
                break
            for low, high in (forms.intervals[node], known.get(node, (-math.inf, math.inf))):
                if not mpmath.mpf(low) <= value <= mpmath.mpf(high):
                    yield f"v{node.index} {node.op} {float(value)!r} is not in {low!r} … {high!r}"
            number = float(computed[node])
            if not math.isfinite(number):
                if error < math.inf and not forms.problems:
                    yield f"v{node.index} {node.op} is {number}"
            elif error < math.inf and not abs(mpmath.mpf(number) - value) <= mpmath.mpf(error):
                yield f"v{node.index} {node.op}: error {float(abs(mpmath.mpf(number) - value))!r} > {error!r}"


def box(*ends):
    return Box({"x": (np.array([float(a) for a, _ in ends]), np.array([float(b) for _, b in ends]))})


def made(f, size, dtype="float64", fused=True):
    return trace(f, {"x": size}, {"y": (1,)}, dtype=dtype, fused=fused)


CASES = {
    "a cosine without the sine of its angle": (lambda x: [x[0].cos() * x[1]], [(-3, 3), (0.5, 2)]),
    "and a sine without the cosine": (lambda x: [x[0].sin() * x[1]], [(-3, 3), (0.5, 2)]),
    "largest inside, not at an end": (lambda x: [x[1] - x[0] * x[0] * x[1]], [(-1, 1), (-1, 1)]),
    "a cube": (lambda x: [x[0] - x[0] * x[0] * x[0] + x[0] * x[1] * 0.0001], [(-1, 1), (-1, 1)]),
    "compared with a constant that is rounded": (
        lambda x: [scalar.where(x[0] <= 0.1, 1.0, -1.0)],
        [(0.05, 0.2)],
    ),
    "a condition that the box decides, and not after rounding": (
        lambda x: [x[1] * scalar.where(x[0] * 0.7 <= 0.69999999, 5.0, x[1])],
        [(1, 2), (0.5, 1)],
    ),
    "a quotient below the smallest normal number": (
        lambda x: [x[0] / (x[1] * 3.0)],
        [(1e-40, 3e-40), (1, 2)],
    ),
    "large angles": (lambda x: [x[0].sin() * x[1] + (x[0] + x[0]).cos()], [(70000, 70002), (0.9, 1)]),
    "very large angles": (lambda x: [x[0].sin() * x[0].sin() * x[0].sin()], [(3e8 + 0.1, 3e8 + 0.1)]),
    "an angle with a factor": (lambda x: [(0.3 * x[0] + 0.1).sin() * x[1]], [(-3, 3), (0.9, 1)]),
    "underflow": (lambda x: [(x[0] * 1e-170) * (x[0] * 1e-170)], [(0.5, 1)]),
    "underflow and back": (
        lambda x: [x[0] * 1e-200 * x[1] * 1e-200 * 1e300 * x[0] * 1e300],
        [(0, 1), (0, 1)],
    ),
    "an arctangent of a number whose sign rounding changes": (
        lambda x: [scalar.atan2(0.7 - x[0] * 7.0, x[1])],
        [(0.0999, 0.1001), (-2, -1)],
    ),
    "an arctangent": (lambda x: [scalar.atan2(x[0] * x[1], x[1] - x[0])], [(0.1, 2), (-3, -1)]),
    "a root near 0": (lambda x: [scalar.sqrt(x[0] * x[0] - 0.009999999)], [(0.1, 0.3)]),
    "an absolute value of an angle": (lambda x: [x[0].sin() * abs(x[0]) + abs(x[0]).cos()], [(-2, 2)]),
    "a clipped value": (
        lambda x: [scalar.minimum(scalar.maximum(x[0] * x[1], x[1] * 0.3), x[1] * 0.3 + 1e-9)],
        [(-2, 2), (0.1, 0.3)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_hard_cases(name):
    f, ends = CASES[name]
    near = [{"x": np.array([value] + [b for _, b in ends[1:]])} for value in (0.1, np.float32(0.1), 0.0)]
    for dtype in NUMBERS:
        for fused in (True, False):
            program = made(f, len(ends), dtype, fused)
            assert not list(violations(program, box(*ends), states=12, extra=near)), (name, dtype, fused)


def test_an_arctangent_may_jump_where_rounding_changes_a_sign():
    f, ends = CASES["an arctangent of a number whose sign rounding changes"]
    program = made(f, len(ends), "float32", False)
    forms = forms_.analyse(program, rounded_box(box(*ends), "float32"), keep=True)
    assert rounding.errors(forms).of(program.values[0][0]) > 2 * math.pi - 1e-3


def test_a_cosine_alone_is_a_cosine():
    """Of a pendulum that lies at position 0; its package is checked, too, in ``test_certificate``."""
    for f, kind in ((lambda x: [x[0].cos()], "cos"), (lambda x: [x[0].sin()], "sin")):
        program = made(f, 1)
        forms = forms_.analyse(program, box((0.1, 0.2)))
        assert [turn.kind for turn in forms.patterns.turns.values()] == [kind]
        low, high = forms.interval(program.values[0][0])
        ends = sorted(getattr(math, kind)(x) for x in (0.1, 0.2))
        assert (low, high) == pytest.approx(ends, abs=1e-12)


def number(r, wide):
    if wide and r.random() < 0.4:
        return r.uniform(1, 9) * 10.0 ** r.randint(-200, 200)
    return r.choice([0.1, 0.5, 1.0, 2.0, -1.0, r.uniform(-3, 3), r.uniform(-3, 3) * 10.0 ** r.randint(-6, 6)])


def interval(r, wide, dtype):
    least = r.uniform(-4, 4)
    far = r.uniform(-1e5, 1e5) if dtype == "float64" else r.uniform(-1e4, 1e4)
    size = 10.0 ** (r.randint(-150, 150) if dtype == "float64" else r.randint(-30, 30)) if wide else 1.0
    return r.choice(
        [
            (least, least),
            (-math.pi, math.pi),
            (0, r.uniform(0, 2)),
            (-size, size),
            (far, far + r.uniform(0, 3)),
        ]
        + [(1e-40, 3e-40), (least, least + r.uniform(0, 4) ** 2), (least, least + r.uniform(0, 1))]
    )


OPERATIONS = [
    (lambda a, b: a + b, True),
    (lambda a, b: a - b, True),
    (lambda a, b: a * b, True),
    (lambda a, b: a * a * b, True),
    (lambda a, b: a * b - a, True),
    (lambda a, b: a.sin() * b, True),
    (lambda a, b: (a + b).cos(), True),
    (lambda a, b: (a + 0.3).sin(), True),
    (lambda a, b: abs(a), True),
    (lambda a, b: scalar.maximum(a, b), True),
    (lambda a, b: scalar.minimum(a, b), True),
    (lambda a, b: scalar.sign(a), False),
    (lambda a, b: scalar.atan2(a, b + 0.0 * a), False),
]
"""Of random programs, and whether they exist in fixed point."""


def random_program(r, wide, fixed=False):
    """A function of random operations."""
    choices = [
        *(operation for operation, whole in OPERATIONS if whole or not fixed),
        lambda a, b: scalar.where(a <= b, a * 0.5, b + 1.0),
        *([] if fixed else [lambda a, b: a / (b * b + r.choice([1e-3, 0.5]))]),
        *([] if fixed else [lambda a, b: scalar.sqrt(a * a + r.choice([0.01, 0.0]))]),
    ]
    count = r.randint(1, 20)

    def f(x):
        values = list(x)
        for _ in range(count):
            a = r.choice(values[-6:])
            b = number(r, wide) if r.random() < 0.2 else r.choice(values)
            values.append(r.choice(choices)(a, b) + 0.0 * x[0])
        return values[-1:]

    return f


@pytest.mark.parametrize("first", [0, 20])
def test_random_programs(first):
    for seed in range(first, first + 20):
        r = random.Random(seed)
        dtype, fused, wide, size = (
            r.choice(["float64", "float32"]),
            r.random() < 0.6,
            r.random() < 0.2,
            r.randint(1, 4),
        )
        ends = [interval(r, wide, dtype) for _ in range(size)]
        program = made(random_program(r, wide), size, dtype, fused)
        if any(True for _ in program.nodes()):
            assert not list(violations(program, box(*ends), seed, states=5)), (seed, dtype, fused)


@settings(max_examples=6, deadline=None)
@given(robot=robots(min_dof=1, max_dof=5), data=st.data())
def test_random_trees(robot, data):
    """Some with a base that moves, some with a joint that follows another one at a ratio."""
    name = data.draw(
        st.sampled_from(["inverse_dynamics", "gravity_torques", "mass_matrix", "jacobian", "pose"])
    )
    turning = [j for j in robot.joints if j.type in ("revolute", "continuous")]
    if len(turning) > 1 and data.draw(st.booleans()):
        follower = replace(turning[-1], mimic=Mimic(turning[0].name, 0.7, 0.1, coupled=True))
        robot = lw.Robot("drawn", robot.links, [follower if j is turning[-1] else j for j in robot.joints])
    elif data.draw(st.booleans()):
        robot = robot.with_base("floating")
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    options = {"frame": robot.links[-1].name} if name in ("jacobian", "pose") else {}
    program = robot.kernel(name, dtype=dtype, **options).program(dtype)
    given_ = {n: (-1.5, 1.5) for n, _ in program.inputs if n == "q"}
    states_box = evidence.box_of(robot, program.inputs, given=given_)
    assert not list(violations(program, states_box, states=2)), (name, dtype)


def looped_program(r, size, dtype):
    """A program with a loop whose values pass through random operations."""
    step, turns, weight = random_program(r, False), r.randint(2, 5), r.uniform(0.1, 0.9)

    def f(x):
        state, trail = language.array([x[k] for k in range(size)]), language.zeros(turns)
        for k in language.span(turns):
            old = [state[i] for i in range(size)]
            moved = weight * (step(old)[0] + 0.1 * x[0]).sin()
            trail[k] = moved + old[0]
            for i, value in enumerate([*old[1:], moved]):
                state[i] = value
        return {"y": language.array([state[size - 1] + language.dot(trail, trail)])}

    traced = TracedFunction(f, {"x": (size,)}, "looped", longest=0, loops=True)
    return traced.program(dtype, fused=r.random() < 0.6)


def test_random_loops():
    """What is bounded is written out: it has the bits of the code with its loops, and the bounds hold for it."""
    for seed in range(6):
        r = random.Random(seed)
        size, dtype = r.randint(2, 4), r.choice(["float64", "float32"])
        ends = [interval(r, False, dtype) for _ in range(size)]
        looped = looped_program(r, size, dtype)
        assert "for (" in c.source(looped)
        program = straight_line(looped)
        kernel = Kernel("looped", [("x", size)], [("y", (1,))], dtype, lambda _, made=looped: made, None)
        for state in box(*ends).draw(np.random.default_rng(seed), 4)["x"].astype(dtype):
            (node,) = program.values[0]
            inputs = {n: state[n.value[1]] for p in program.nodes() for n in p.args if n.op == "input"}
            written_out = interpret.values(list(program.nodes()), NUMBERS[dtype], inputs)[node]
            np.testing.assert_array_equal(written_out, kernel(state)[0])
        assert not list(violations(program, box(*ends), seed, states=5)), (seed, dtype)


def test_random_programs_in_fixed_point():
    """Values are within their bounds of the exact ones at inputs that have been rounded; no value leaves its bits."""
    written = 0
    for seed in range(60):
        r = random.Random(seed)
        size, bits = r.randint(1, 4), r.choice([31, 31, 15])
        ends = [sorted((r.uniform(-4, 4), r.uniform(-4, 4))) for _ in range(size)]
        program, states = made(random_program(r, False, fixed=True), size), box(*ends)
        try:
            fixed = evidence.fixed_point(program, states, bits=bits)
        except evidence.EvidenceError:
            continue
        written += 1
        (_, _, f), (_, _, scale), bound = fixed.inputs[0], fixed.outputs[0], fixed.errors[0][0]
        whole = fixed.given(states.draw(np.random.default_rng(seed), 12))["x"]
        turns = patterns.find(program)
        for row in whole.tolist():
            (found,) = fixed.run({"x": row})["y"]
            exact = precise.at(program, {"x": np.array(row) * 2.0**-f}, turns)[program.values[0][0]]
            assert abs(mpmath.mpf(found) * mpmath.mpf(2) ** -scale - exact) <= bound, (seed, bits)
    assert written > 30
