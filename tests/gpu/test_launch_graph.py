"""Graphs without a GPU: pretended libraries, and a recording that keeps what was put on its stream."""

import numpy as np
import pytest
from pretended_libraries import ByAttributes, ByExchange, Driver, Function, install

import linkwise as lw
from linkwise.control import Gains, GravityPD
from linkwise.gpu import DeviceError, driver, rollout
from linkwise.gpu.device import DeviceKernel
from linkwise.simulate.loop import ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of

RECORDED, STREAM = 99, 77
LIBRARIES = [ByAttributes, ByExchange]


class Recording:
    """In place of a CUDA graph: repeats the work on the stream it is started on."""

    def __init__(self, on, name, work):
        self.work = work

    def start(self, stream):
        assert stream == STREAM
        self.work(RECORDED)


@pytest.fixture
def launched(monkeypatch):
    """Launches that graphs made."""
    pretended = install(monkeypatch)
    monkeypatch.setattr(driver, "device", lambda number: number)
    monkeypatch.setattr(driver, "Recording", Recording)
    return pretended.by_python


def states(*shape, dtype="float64", seed=1):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(*shape, 2)).astype(dtype) for _ in range(3)]


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_graph_repeats_a_call_with_what_its_inputs_hold(launched, kind, dtype):
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    given = states(9, dtype=dtype)
    graph = kernel.graph(*map(kind, given))
    assert not launched, "nothing runs before the graph is called"
    result = graph()
    assert result is graph.outputs[0]
    np.testing.assert_array_equal(result.array, kernel(*given))
    changed = states(9, dtype=dtype, seed=2)
    for array, new in zip(graph.inputs, changed, strict=True):
        array.array[...] = new
    assert graph.replay() is None
    np.testing.assert_array_equal(result.array, kernel(*changed))
    assert [stream for _, stream, _ in launched] == [RECORDED, RECORDED]


def test_rows_that_need_no_copy(launched):
    """One row for all states, and rows with gaps between them."""
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    q, qd, qdd = states(9)
    wide = np.zeros((9, 5))
    wide[:, 1:3] = qd
    graph = kernel.graph(ByAttributes(q), ByAttributes(wide[:, 1:3]), ByAttributes(qdd[0]))
    np.testing.assert_array_equal(graph().array, kernel(q, qd, qdd[0]))


def test_out(launched):
    kernel = lw.load("two_link").kernel("inverse_dynamics_derivatives")
    given = states(4)
    out = tuple(ByAttributes(np.zeros((4, 2, 2))) for _ in range(3))
    graph = kernel.graph(*map(ByAttributes, given), out=out)
    assert graph.outputs == out
    assert graph() == out
    for got, wanted in zip(out, kernel(*given), strict=True):
        np.testing.assert_array_equal(got.array, wanted)


def test_several_functions(launched):
    kernel = lw.load("two_link").kernel(["mass_matrix", "bias_torques"])
    q, qd, _ = states(5)
    graph = kernel.graph(ByAttributes(q), ByAttributes(qd))
    for got, wanted in zip(graph(), kernel(q, qd), strict=True):
        np.testing.assert_array_equal(got.array, wanted)
    assert len(launched) == 1


def test_parameters_as_inputs(launched):
    kernel = lw.load("two_link").kernel("inverse_dynamics", inputs=("payload",))
    payload = np.array([1.5, 0.1, 0.0, 0.2, 0.02, 0.0, 0.0, 0.02, 0.0, 0.02])
    given = [*states(9), payload]
    graph = kernel.graph(*map(ByAttributes, given))
    np.testing.assert_array_equal(graph().array, kernel(*given))
    lighter = 0.5 * payload
    graph.inputs[3].array[...] = lighter
    np.testing.assert_array_equal(graph().array, kernel(*given[:3], lighter))


def test_what_a_graph_refuses(launched):
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    q, qd, qdd = states(6)
    there = [ByAttributes(a) for a in (q, qd, qdd)]
    with pytest.raises(DeviceError, match=r"inverse_dynamics: a graph needs arrays .* on a GPU"):
        kernel.graph(q, qd, qdd)
    with pytest.raises(DeviceError, match=r"qd is a numpy\.ndarray"):
        kernel.graph(there[0], qd, there[2])
    with pytest.raises(TypeError, match=r"qd: a graph reads .* expects float64, got float32"):
        kernel.graph(there[0], ByAttributes(qd.astype("float32")), there[2])
    with pytest.raises(TypeError, match=r"q: a graph reads .* expects float64, got int64"):
        kernel.graph(ByAttributes(np.zeros((6, 2), "int64")), *there[1:])
    with pytest.raises(lw.ShapeError, match=r"q: .* rows of equal distance; copy it .* shape \(6, 2\)"):
        kernel.graph(ByAttributes(np.asfortranarray(q)), *there[1:])
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(..., 2\), got \(6, 3\)"):
        kernel.graph(ByAttributes(np.zeros((6, 3))), *there[1:])
    with pytest.raises(lw.ShapeError, match="out: a graph writes its outputs where they are"):
        kernel.graph(*there, out=there[0])
    with pytest.raises(lw.ShapeError, match=r"out: expected shape \(6, 2\), got \(5, 2\)"):
        kernel.graph(*there, out=ByAttributes(np.zeros((5, 2))))
    with pytest.raises(TypeError, match="takes 3 arrays"):
        kernel.graph(*there[:2])
    assert not launched


def test_rollouts(launched, monkeypatch):
    """A rollout begins with what the carried inputs hold when the graph is called."""
    robot = lw.load("two_link")
    loop = ClosedLoop(
        Plant(robot), GravityPD(robot, Gains(400.0, 40.0)), source_of(np.zeros(2), 2),
        "semi_implicit_euler", False, False, 0, (), ("q",),
    )  # fmt: skip
    kernel = loop.kernel()
    interface, copied = kernel.interface, []
    there: dict = {name: ByAttributes(np.ones((4, size))) for name, size in interface.carried.items()}
    there |= {name: np.ones((4, size)) for name, size in interface.parameters.items()}
    there |= dict(loop.numbers(1e-3, 1))

    class Loop(Function):
        def launch(self, blocks, stream, *words):
            copied.append(("launch", stream, words))

    def rollout_kernel(kernel, dtype, device, stream):
        return DeviceKernel(Loop(Driver(), kernel, dtype, 0))

    monkeypatch.setattr(driver, "copy", lambda *words: copied.append(("copy", words[3], words[:3])))
    monkeypatch.setattr(rollout, "rollout_kernel", rollout_kernel)
    graph = kernel.graph(there, steps=7, every=7)
    assert not copied
    final, written = graph()
    assert set(graph.outputs) == set(final) | set(written)
    names = [name for name, *_ in copied]
    assert names == ["copy"] * len(interface.carried) + ["launch"]
    assert {stream for _, stream, _ in copied} == {RECORDED}
    targets = [words[0] for name, _, words in copied if name == "copy"]
    assert targets == [array.array.ctypes.data for array in final.values()]
    sources = [words[1] for name, _, words in copied if name == "copy"]
    assert sources == [there[name].array.ctypes.data for name in interface.carried]
    with pytest.raises(lw.ShapeError, match=r"q: a graph copies .* contiguous array of shape \(4, 2\)"):
        kernel.graph({**there, "q": ByAttributes(np.zeros(2))}, steps=7)
    with pytest.raises(TypeError, match=r"q: a graph reads .* expects float64, got float32"):
        kernel.graph({**there, "q": ByAttributes(np.zeros((4, 2), "float32"))}, steps=7)
    with pytest.raises(ValueError, match="steps and every"):
        kernel.graph(there, steps=-1)
