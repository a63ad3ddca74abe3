"""Derivatives of graphs against exact rules, finite differences and each other."""

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.derivative import (
    CLEARLY_FEWER,
    estimates,
    forward,
    jacobian,
    reverse,
    substituted,
)
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.operations import count
from linkwise.compiler.ir.program import lower, trace
from linkwise.errors import TraceError, UnknownNameError


def every_operation(graph):
    """A function that uses each differentiable operation."""
    x, y = graph.inputs("x", 2)
    return [
        x * y + 3.0 * x - y / x,
        x.sin() * y.cos(),
        (x * x + y * y).sqrt(),
        abs(x - y) * y,
        x.sign() * y,
        (x > y).where(x * x, y * y * y),
        x.arctan2(y),
        -(x - 2.0) * (y + 1.0),
    ]


def value(x, y):
    return np.array(
        [
            x * y + 3 * x - y / x,
            math.sin(x) * math.cos(y),
            math.hypot(x, y),
            abs(x - y) * y,
            np.sign(x) * y,
            x * x if x > y else y**3,
            math.atan2(x, y),
            -(x - 2) * (y + 1),
        ]
    )


@pytest.mark.parametrize("mode", [forward, reverse, jacobian])
@pytest.mark.parametrize("at", [(0.7, 1.3), (1.3, 0.7), (-0.4, 0.9), (-0.4, -0.9)])
def test_every_operation(mode, at):
    graph = Graph()
    outputs = every_operation(graph)
    rows = mode(outputs, graph.inputs("x", 2))
    sympy = pytest.importorskip("sympy")
    from linkwise.compiler.emit.formulas import to_sympy

    program = (
        lower({"J": ((8, 2), [entry for row in rows for entry in row])}, {"x": 2}, name="J") if mode else None
    )
    assert program is not None
    symbols = sympy.symbols("x1 x2", real=True)
    found = np.array(to_sympy(program)["J"].subs(dict(zip(symbols, at, strict=True))).evalf(), dtype=float)
    step = 1e-6
    expected = np.empty((8, 2))
    for k in range(2):
        ahead, behind = list(at), list(at)
        ahead[k] += step
        behind[k] -= step
        expected[:, k] = (value(*ahead) - value(*behind)) / (2 * step)
    np.testing.assert_allclose(found, expected, atol=2e-9)


def test_sign_has_no_derivative_even_at_zero():
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    assert forward([x.sign()], [x]) == [[graph.zero]]
    robot = lw.load("puma560")  # Coulomb friction that differs by direction
    q = np.zeros(6)
    _, by_qd, _ = robot.inverse_dynamics_derivatives(q, q, q)
    _, without, _ = robot.inverse_dynamics_derivatives(q, q, q, friction=False)
    viscous = np.diag([joint.viscous_friction for joint in robot.moving_joints])
    np.testing.assert_allclose(by_qd - without, viscous, atol=1e-12)


def test_the_cheaper_mode_is_taken():
    graph = Graph()
    x = graph.inputs("x", 6)
    many_in = [sum((v * v.sin() for v in x[1:]), start=x[0] * x[0].sin()) ** 2]
    rows = jacobian(many_in, x)
    assert count(rows[0]).total == min(
        count(forward(many_in, x)[0]).total, count(reverse(many_in, x)[0]).total
    )


@pytest.mark.parametrize("seed", range(6))
def test_estimates_decide_as_the_counts_would(seed):
    """On random functions with many more inputs than outputs, many fewer, and as many."""
    rng = np.random.default_rng(seed)
    graph = Graph()
    inputs = graph.inputs("x", int(rng.integers(2, 40)))
    values = list(inputs)
    for _ in range(400):
        a, b = (values[k] for k in rng.integers(max(0, len(values) - 60), len(values), 2))
        values.append([a + b, a - b, a * b, a * b, a.sin(), (a > b).where(a, b)][rng.integers(6)])
    outputs = values[-int(rng.integers(2, 40)) :]
    own = count(outputs).total
    counts = [
        count([*outputs, *(node for row in mode(outputs, inputs) for node in row)]).total - own
        for mode in (forward, reverse)
    ]
    found = estimates(outputs, inputs)
    for estimate, wanted in zip(found, counts, strict=True):
        assert 0.5 * wanted <= estimate <= 2.0 * wanted, (found, counts)
    if min(found) < CLEARLY_FEWER * max(found):
        assert counts[int(np.argmin(found))] == min(counts), (found, counts)


def test_loops_are_refused():
    from linkwise.scalar import while_loop

    graph = Graph()
    (x,) = graph.inputs("x", 1)
    (y,) = while_loop(lambda v: v > 1.0, lambda v: (v * 0.5,), (x,))
    with pytest.raises(TraceError, match="loop"):
        jacobian([y], [x])


def test_substitution():
    graph = Graph()
    x, y = graph.inputs("x", 2)
    (out,) = substituted([x * y + y.sin()], {y.index: graph.const(0.0)})
    assert out is graph.zero


def test_kernel_jacobian_and_second_derivative():
    robot = lw.load("two_link")
    kernel = robot.kernel("inverse_dynamics")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 5, 2))
    by_q = kernel.jacobian("q")
    step = 1e-5
    expected = np.stack(
        [(kernel(q + step * e, qd, qdd) - kernel(q - step * e, qd, qdd)) / (2 * step) for e in np.eye(2)],
        axis=-1,
    )
    np.testing.assert_allclose(by_q(q, qd, qdd), expected, rtol=1e-7, atol=1e-8)
    twice = by_q.jacobian("qd")
    expected = np.stack(
        [(by_q(q, qd + step * e, qdd) - by_q(q, qd - step * e, qdd)) / (2 * step) for e in np.eye(2)], axis=-1
    )
    np.testing.assert_allclose(twice(q, qd, qdd), expected, rtol=1e-7, atol=1e-8)
    with pytest.raises(UnknownNameError, match="q, qd, qdd"):
        kernel.jacobian("x")


def test_constant_outputs_have_zero_derivative():
    program = trace(lambda x: [x[0] * 0.0 + 1.0, x[1]], {"x": 2}, {"y": (2,)})
    rows = jacobian(program.source_values[0], program.source_values[0][1].graph.inputs("x", 2))
    assert [[node.value for node in row] for row in rows] == [[0.0, 0.0], [0.0, 1.0]]


def test_a_value_can_have_the_derivative_of_another_one():
    """An iteration is differentiated by one more step from its result, not through its loop."""
    from linkwise.scalar import like, while_loop

    @lw.kernel(a=1)
    def root(a):
        step = lambda x: 0.5 * (x + a[0] / x)  # noqa: E731
        _, x = while_loop(lambda k, x: k < 30.0, lambda k, x: (k + 1.0, step(x)), (0.0 * a[0], a[0]))
        constant = like(x, 0.0)
        return like(x, step(constant))

    value = np.array([2.0])
    np.testing.assert_allclose(root(value), np.sqrt(2.0), rtol=1e-15)
    np.testing.assert_allclose(root.jacobian("a")(value), 0.5 / np.sqrt(2.0), rtol=1e-14)
    np.testing.assert_allclose(root.vjp()(value, np.ones(1)), 0.5 / np.sqrt(2.0), rtol=1e-14)
    np.testing.assert_allclose(root.jvp()(value, np.ones(1)), 0.5 / np.sqrt(2.0), rtol=1e-14)
    # nothing of the other value is computed where only the value is asked for
    assert root.operations.per_iteration.divisions == 1
    assert root.operations.divisions == 0
