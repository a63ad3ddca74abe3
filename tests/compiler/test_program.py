"""Tracing, counting, explaining, and the checks of the verifier."""

import dataclasses

import numpy as np
import pytest

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.operations import Operations, count
from linkwise.compiler.ir.program import lower, relowered, trace, unfused
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.ir.verify import ProgramError, verify
from linkwise.errors import TraceError, UnknownNameError
from linkwise.scalar import cos, sin, sqrt, stage, where, while_loop


def pendulum(q, qd, m):
    with stage("turns"):
        s, c = sin(q[0]), cos(q[0])
    with stage("forces"):
        torque = m[0] * s * 9.81 + qd[0] * qd[0] * c
    return {"tau": [torque, m[0] * 2.0], "pose": [[c, -s], [s, c]]}


INPUTS = {"q": 1, "qd": 1, "m": 1}
OUTPUTS = {"tau": (2,), "pose": (2, 2)}


def test_trace_gives_named_inputs_and_outputs():
    program = trace(pendulum, INPUTS, OUTPUTS, name="pendulum")
    assert program.inputs == (("q", 1), ("qd", 1), ("m", 1))
    assert program.outputs == (("tau", (2,)), ("pose", (2, 2)))
    tau, pose = interpret.run(program, [0.3], [1.0], [2.0])
    np.testing.assert_allclose(pose, [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]], rtol=1e-15)
    np.testing.assert_allclose(tau, [2 * 9.81 * np.sin(0.3) + np.cos(0.3), 4.0], rtol=1e-15)


@pytest.mark.parametrize("returned", [lambda x: ([x[0]], x[1]), lambda x: [[x[0]], x[1]]])
def test_outputs_may_come_in_order(returned):
    program = trace(returned, {"x": 2}, {"a": (1,), "b": ()})
    first, second = interpret.run(program, [1.5, 2.5])
    assert first.tolist() == [1.5]
    assert second.shape == ()
    assert second == 2.5


def test_constants_and_inputs_may_be_outputs():
    program = trace(lambda x: [x[0], 3.0, x[0]], {"x": 1}, {"a": (3,)})
    assert program.body == []
    assert interpret.run(program, [7.0])[0].tolist() == [7.0, 3.0, 7.0]


@pytest.mark.parametrize(
    ("function", "outputs", "message"),
    [
        (lambda x: [x[0]], {"a": (2,)}, r"output a: expected shape \(2,\), axis 0 has 1"),
        (lambda x: x[0], {"a": (1,)}, "axis 0 has a scalar"),
        (lambda x: {"b": x}, {"a": (2,)}, r"returned \['b'\], expected \['a'\]"),
        (lambda x: (x, x, x), {"a": (2,), "b": (2,)}, "returned 3 outputs, expected 2"),
        (lambda x: [x, x], {"a": (2,)}, "cannot use a list"),
    ],
)
def test_wrong_outputs_are_named(function, outputs, message):
    with pytest.raises(TraceError, match=message):
        trace(function, {"x": 2}, outputs)


def test_values_of_a_loop_stay_inside():
    kept = []

    def body(u):
        kept.append(u + 1.0)
        return (u * 0.5,)

    def function(x):
        while_loop(lambda u: u > 1.0, body, (x[0],))
        return kept

    with pytest.raises(TraceError, match="inside a while_loop"):
        trace(function, {"x": 1}, {"a": (1,)})


def test_operations_are_counted_before_fusing():
    program = trace(pendulum, INPUTS, OUTPUTS)
    counts = program.operations
    assert (counts.multiplications, counts.additions, counts.trigonometric) == (5, 1, 2)
    assert counts.total == 6
    assert counts.by_stage["turns"] == Operations(trigonometric=2)
    assert counts.by_stage["forces"].multiplications == 4
    assert any(node.op == "fma" for node in program.nodes())


def test_count_by_the_papers_rules():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    outputs = [-(a * b), 2.0 * c, a - b, a / b, sqrt(c), where(a < b, a, c), graph.one * 3.0, (a * b) + c]
    counts = count(outputs)
    assert (counts.multiplications, counts.additions, counts.divisions, counts.square_roots) == (2, 2, 1, 1)
    assert str(counts) == "2 multiplications, 2 additions, 1 division, 1 square root"


def test_loops_are_counted_apart():
    def function(x):
        (u,) = while_loop(lambda u: u * u > x[1], lambda u: (0.5 * (u + x[0] / u),), (x[0] * x[1] + 1.0,))
        return [u]

    counts = trace(function, {"x": 2}, {"u": (1,)}).operations
    assert (counts.multiplications, counts.additions, counts.divisions) == (1, 1, 0)
    assert counts.per_iteration == Operations(multiplications=2, additions=1, divisions=1)
    assert "per iteration" in str(counts)


def test_explain():
    program = trace(pendulum, INPUTS, OUTPUTS, name="pendulum")
    pose = program.explain("pose", 1)
    assert pose.inputs == (("q", 0),)
    assert pose.operations.total == 0
    assert program.explain("tau").inputs == (("q", 0), ("qd", 0), ("m", 0))
    assert program.explain("tau", 1).operations == Operations(multiplications=1)
    assert "m[0]" in str(program.explain("tau", -1))
    with pytest.raises(UnknownNameError, match="no output 'torque'; it has tau, pose"):
        program.explain("torque")
    with pytest.raises(IndexError, match="2 elements"):
        program.explain("tau", 2)


def test_another_precision_from_the_source():
    double = trace(pendulum, INPUTS, OUTPUTS)
    outputs = {n: (s, v) for (n, s), v in zip(double.outputs, double.source_values, strict=True)}
    single = lower(outputs, INPUTS, name="single", dtype="float32")
    assert single.operations == double.operations
    (tau, _), (wanted, _) = (interpret.run(p, [0.3], [1.0], [2.0]) for p in (single, double))
    assert tau.dtype == np.float32
    np.testing.assert_allclose(tau, wanted, rtol=1e-6)


def test_without_fusing():
    program = unfused(trace(pendulum, INPUTS, OUTPUTS))
    assert not program.fused
    assert not any(node.op == "fma" for node in program.nodes())
    np.testing.assert_allclose(
        interpret.run(program, [0.3], [1.0], [2.0])[0],
        [2 * 9.81 * np.sin(0.3) + np.cos(0.3), 4.0],
        rtol=1e-15,
    )


# -- the verifier ------------------------------------------------------------------------------------------


@pytest.fixture
def program():
    def function(x):
        (u,) = while_loop(lambda u: u < x[1], lambda u: (u * x[0],), (x[0] * x[1],))
        return [u / x[0], sqrt(x[1]) + x[0]]

    return trace(function, {"x": 2}, {"out": (2,)})


def changed(program, **changes):
    return dataclasses.replace(program, **changes)


def test_a_good_program_passes(program):
    assert verify(program) is program


def test_order_matters(program):
    with pytest.raises(ProgramError, match=r"before it is computed|has not run"):
        verify(changed(program, body=program.body[::-1]))


def test_nothing_is_missing_and_nothing_is_left_over(program):
    for place, item in enumerate(program.body):
        if not isinstance(item, LoopRegion):
            with pytest.raises(ProgramError, match="before it is computed"):
                verify(changed(program, body=program.body[:place] + program.body[place + 1 :]))
    with pytest.raises(ProgramError, match="scheduled twice"):
        verify(changed(program, body=[*program.body, program.body[0] if program.body[0].op else None]))
    graph = program.values[0][0].graph
    extra = graph.make("abs", (graph.input("x", 0),))
    with pytest.raises(ProgramError, match="never used"):
        verify(changed(program, body=[*program.body, extra]))


def test_operations_and_arguments_are_checked(program):
    graph = program.values[0][0].graph
    x = graph.input("x", 0)
    for node, message in [
        (graph.make("sin", (x,)), "no operation sin"),
        (graph.make("add", (x,)), "expected 2 arguments, got 1"),
        (graph.make("select", (x, x, x)), "as a condition"),
        (graph.make("add", (x, graph.make("lt", (x, x)))), "as a number"),
        (graph.make("bit", (x,), 64), "bit 64 of 64"),
        (graph.make("abs", (graph.input("y", 0),)), "not declared"),
        (graph.make("abs", (graph.input("x", 2),)), "not declared"),
    ]:
        with pytest.raises(ProgramError, match=message):
            verify(changed(program, body=[*program.body, node]))


def test_outputs_are_checked(program):
    with pytest.raises(ProgramError, match="has 1 values"):
        verify(changed(program, values=(program.values[0][:1],)))
    with pytest.raises(ProgramError, match="unknown dtype"):
        verify(changed(program, dtype="float16"))
    with pytest.raises(ProgramError, match="1 outputs, values for 2"):
        verify(changed(program, values=program.values * 2))


def test_a_body_stays_inside_its_loop(program):
    (region,) = [item for item in program.body if isinstance(item, LoopRegion)]
    inside = region.body[-1]
    with pytest.raises(ProgramError, match="before it is computed"):
        verify(changed(program, values=((inside, program.values[0][1]),)))
    with pytest.raises(ProgramError, match="before it is computed"):
        verify(changed(program, values=((region.loop.phi[0], program.values[0][1]),)))


def test_other_forms_of_a_program_have_all_but_its_arithmetic():
    """Names, shapes, precision, inputs that are mostly the same; not whether multiply-adds are fused, and sines."""
    for dtype in ("float64", "float32"):
        for steady in ((), ("m",), ("qd", "m")):
            program = trace(pendulum, INPUTS, OUTPUTS, name="pendulum", dtype=dtype, steady=steady)
            for other in (unfused(program), relowered(program, hardware=True)):
                for name in ("name", "inputs", "outputs", "dtype", "steady", "source_values", "operations"):
                    assert getattr(other, name) == getattr(program, name), name
            assert not any(node.op == "fma" for node in unfused(program).nodes())
            assert program.fused
            assert not unfused(program).fused
