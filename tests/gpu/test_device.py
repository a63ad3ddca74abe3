"""On a GPU: every framework's arrays, any stream, bits of the CPU. Skipped where there is no GPU."""

import ctypes

import numpy as np
import pytest

import linkwise as lw
from linkwise import gpu
from linkwise.control import Gains, GravityPD
from linkwise.gpu import DeviceError, launch
from linkwise.simulate import simulate
from linkwise.simulate.loop import ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of

cupy = pytest.importorskip("cupy")
try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as reason:
    pytest.skip(f"no GPU: {reason}", allow_module_level=True)

ROBOT = lw.load("panda")


def states(*shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(*shape, 7)).astype(dtype) for _ in range(3)]


def to_cupy(array):
    return cupy.asarray(array)


def to_torch(array):
    torch = pytest.importorskip("torch")
    return torch.as_tensor(array, device="cuda")


def to_jax(array):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.device_put(array, jax.devices("gpu")[0])


def on_host(array) -> np.ndarray:
    if isinstance(array, cupy.ndarray):
        return array.get()
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def same_bits(a, b) -> bool:
    a, b = on_host(a) if not isinstance(a, np.ndarray) else a, np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("convert", [to_cupy, to_torch, to_jax])
def test_same_kind_and_same_bits(convert, dtype):
    given = states(1000, dtype=dtype)
    there = [convert(a) for a in given]
    for name in ("inverse_dynamics", "forward_dynamics"):
        got = getattr(ROBOT, name)(*there)
        assert type(got) is type(there[0])
        assert same_bits(got, getattr(ROBOT, name)(*given))


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 65, 1000])
def test_counts(count):
    q = states(count)[0]
    assert same_bits(ROBOT.mass_matrix(cupy.asarray(q)), ROBOT.mass_matrix(q))


def test_broadcasting_and_strides():
    q, qd, qdd = states(20, 5)
    wide = cupy.zeros((20, 5, 12))
    wide[..., 3:10] = cupy.asarray(qd)
    for view in (wide[..., 3:10], cupy.asarray(np.asfortranarray(qd))):
        got = ROBOT.inverse_dynamics(cupy.asarray(q), view, cupy.asarray(qdd[0, 0]))
        assert same_bits(got, ROBOT.inverse_dynamics(q, qd, qdd[0, 0]))
    got = ROBOT.inverse_dynamics(cupy.asarray(q[:, :1]), cupy.asarray(qd), cupy.asarray(qdd))
    assert same_bits(got, ROBOT.inverse_dynamics(q[:, :1], qd, qdd))
    assert same_bits(ROBOT.gravity_torques(cupy.asarray(q)[::-1]), ROBOT.gravity_torques(q[::-1]))


def test_out():
    given = states(100)
    there = [cupy.asarray(a) for a in given]
    wanted = ROBOT.inverse_dynamics(*given)
    out = cupy.full((100, 7), np.nan)
    assert ROBOT.inverse_dynamics(*there, out=out) is out
    assert same_bits(out, wanted)
    ROBOT.inverse_dynamics(*there, out=there[0])  # over an input
    assert same_bits(there[0], wanted)
    spaced = cupy.full((100, 14), np.nan)[:, ::2]
    ROBOT.inverse_dynamics(cupy.asarray(given[0]), *there[1:], out=spaced)
    assert same_bits(spaced, wanted)
    with pytest.raises(lw.ShapeError, match="out"):
        ROBOT.inverse_dynamics(*there, out=cupy.empty((99, 7)))


def test_streams():
    """Work is ordered by the stream that is current, without waiting for the others."""
    given = states(100_000)
    wanted = ROBOT.inverse_dynamics(*given)
    with cupy.cuda.Stream(non_blocking=True):
        there = [cupy.asarray(a) for a in given]
        got = ROBOT.inverse_dynamics(*there) + 0.0
        assert same_bits(got, wanted)
    torch = pytest.importorskip("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        there = [torch.as_tensor(a, device="cuda") for a in given]
        assert same_bits(ROBOT.inverse_dynamics(*there) + 0.0, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("convert", [to_cupy, to_torch])
def test_every_kind_of_call_has_the_same_bits(convert, dtype):
    """Python's way and machine code's, options, ``out``, kernels, graphs, repeated rows, one state and many."""
    kernel = ROBOT.kernel("inverse_dynamics")
    for count in (1, 33, 4096):
        given = states(count, dtype=dtype)
        there = [convert(a) for a in given]
        wanted = ROBOT.inverse_dynamics(*given)
        out = convert(np.full((count, 7), np.nan, dtype))
        graph = kernel.graph(*there)
        for _ in range(3):
            assert same_bits(ROBOT.inverse_dynamics(*there), wanted)
            assert ROBOT.inverse_dynamics(*there, out=out) is out
            assert same_bits(out, wanted)
            out[...] = 0
            assert same_bits(kernel(*there), wanted)
            assert same_bits(graph(), wanted)
            graph.outputs[0][...] = 0
            assert same_bits(gpu.call(kernel, there), wanted)
            got = ROBOT.inverse_dynamics(*there, friction=False)
            assert same_bits(got, ROBOT.inverse_dynamics(*given, friction=False))
            got = ROBOT.forward_dynamics(there[0], there[1][0], there[2])
            assert same_bits(got, ROBOT.forward_dynamics(given[0], given[1][0], given[2]))
            parts = ROBOT.inverse_dynamics_derivatives(*there)
            assert all(map(same_bits, parts, ROBOT.inverse_dynamics_derivatives(*given)))
    one = [a[0] for a in there]
    assert same_bits(ROBOT.inverse_dynamics(*one), ROBOT.inverse_dynamics(*(a[0] for a in given)))


@pytest.mark.parametrize("convert", [to_cupy, to_torch])
def test_several_functions_as_one_kernel(convert):
    kernel = ROBOT.kernel(["mass_matrix", "bias_torques", "jacobian"])
    q, qd, _ = states(1000)
    there = convert(q), convert(qd)
    graph = kernel.graph(*there)
    for _ in range(2):
        for got in (kernel(*there), graph()):
            assert all(map(same_bits, got, kernel(q, qd)))


@pytest.mark.parametrize("convert", [to_cupy, to_torch])
def test_graphs_read_what_their_inputs_hold(convert):
    kernel = ROBOT.kernel("forward_dynamics", inputs=("payload",))
    payload = np.array([1.5, 0.1, 0.0, 0.2, 0.02, 0.0, 0.0, 0.02, 0.0, 0.02])
    first, second = ([*states(500, seed=seed), seed * payload] for seed in (1, 2))
    graph = kernel.graph(*map(convert, first))
    assert same_bits(graph(), kernel(*first))
    for array, new in zip(graph.inputs, second, strict=True):
        array[...] = convert(new)
    graph.replay()
    assert same_bits(graph.outputs[0], kernel(*second))


def test_graph_of_a_long_chain():
    """Kernels that need memory besides their arrays."""
    chain = lw.random_robot(4, 50, rotor=True)
    given = list(np.random.default_rng(0).normal(size=(3, 100, 50)))
    graph = chain.kernel("forward_dynamics").graph(*map(cupy.asarray, given))
    for _ in range(3):
        graph.outputs[0][...] = 0
        assert same_bits(graph(), chain.forward_dynamics(*given))
        assert same_bits(chain.forward_dynamics(*map(cupy.asarray, given)), chain.forward_dynamics(*given))


def test_graph_of_a_rollout():
    loop = ClosedLoop(
        Plant(ROBOT), GravityPD(ROBOT, Gains(100.0, 10.0)), source_of(np.zeros(7), 7),
        "semi_implicit_euler", False, False, 0, (), ("q",),
    )  # fmt: skip
    kernel = loop.kernel()
    q, qd, _ = states(300)
    here = {**loop.numbers(1e-3, 1), "kp": np.full(7, 100.0), "kd": np.full(7, 10.0), "target": np.zeros(7)}
    there = {**here, "q": cupy.asarray(q), "qd": cupy.asarray(qd)}
    graph = kernel.graph(there, steps=50, every=10)
    for seed in (0, 1):
        q, qd, _ = states(300, seed=seed)
        graph.inputs["q"][...], graph.inputs["qd"][...] = cupy.asarray(q), cupy.asarray(qd)
        wanted = kernel({**here, "q": q, "qd": qd}, steps=50, every=10)
        for part, other in zip(graph(), wanted, strict=True):
            assert all(same_bits(part[name], other[name]) for name in other)


def captured_by_cupy(work):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            result = work()
        finally:
            graph = stream.end_capture()
    # a stream that does not block waits for no other: the copies of new inputs before it are work of the default one
    return result, lambda: (cupy.cuda.Stream.null.synchronize(), graph.launch(stream), stream.synchronize())


def captured_by_torch(work):
    torch = pytest.importorskip("torch")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    # JAX's threads ask the GPU all the time, which the default mode forbids to all threads
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = work()
    return result, lambda: (graph.replay(), torch.cuda.synchronize())


CAPTURES = [(to_cupy, captured_by_cupy), (to_torch, captured_by_torch)]


@pytest.mark.parametrize(("convert", "captured"), CAPTURES)
def test_calls_inside_a_capture(convert, captured):
    for robot in (ROBOT, lw.load("puma560")):
        first, second = (
            [np.ascontiguousarray(a[:, : robot.dof]) for a in states(700, seed=k)] for k in (0, 3)
        )
        there = [convert(a) for a in first]
        robot.forward_dynamics(*there, friction=False)
        result, replay = captured(lambda: robot.forward_dynamics(*there, friction=False))  # noqa: B023
        for array, new in zip(there, second, strict=True):
            array[...] = convert(new)
        replay()
        assert same_bits(result, robot.forward_dynamics(*second, friction=False))


@pytest.mark.parametrize(("convert", "captured"), CAPTURES)
def test_a_first_call_inside_a_capture_is_refused_and_harms_nothing(convert, captured):
    robot = lw.random_robot(31, 5)
    given = [np.ascontiguousarray(a[:, :5]) for a in states(70)]
    there = [convert(a) for a in given]
    with pytest.raises(DeviceError, match="call it once with such arrays before the capture"):
        captured(lambda: robot.forward_dynamics(*there))
    for other in (to_cupy, to_torch, to_jax):
        result = robot.forward_dynamics(*map(other, given))
        assert same_bits(result, robot.forward_dynamics(*given)), other.__name__
    result, replay = captured(lambda: robot.forward_dynamics(*there))
    replay()
    assert same_bits(result, robot.forward_dynamics(*given))


def test_launch_by_addresses():
    """What other callers use: pointers and a stream."""
    kernel = ROBOT.kernel("inverse_dynamics")
    given = states(77)
    there = [cupy.asarray(a) for a in given]
    out = cupy.empty((77, 7))
    prepared = launch.prepare(kernel, "float64", 0)
    pointers = [a.data.ptr for a in (out, *there)]
    stream = cupy.cuda.get_current_stream().ptr
    launch.launch(prepared, pointers, 77, stream)
    assert same_bits(out, ROBOT.inverse_dynamics(*given))
    out[...] = 0
    words = (ctypes.c_int64 * 8)(*prepared.words(pointers, 77))
    start = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(launch.launch_address())
    assert start(prepared.address, ctypes.addressof(words), 77, stream) == 0
    assert same_bits(out, ROBOT.inverse_dynamics(*given))


def test_mixed_places():
    q, qd, qdd = states(4)
    with pytest.raises(
        DeviceError, match=r"q is CuPy's on cuda:0, qd is a numpy.ndarray, qdd is CuPy's on cuda:0"
    ):
        ROBOT.inverse_dynamics(cupy.asarray(q), qd, cupy.asarray(qdd))
    torch = pytest.importorskip("torch")
    with pytest.raises(DeviceError, match="qd is PyTorch's on the CPU"):
        ROBOT.inverse_dynamics(to_torch(q), torch.as_tensor(qd), to_torch(qdd))


def test_inside_jit():
    jax = pytest.importorskip("jax")
    q = states(4)[0]
    assert same_bits(jax.jit(ROBOT.gravity_torques)(to_jax(q)), ROBOT.gravity_torques(q))


def test_too_little_memory():
    row = cupy.zeros((1, 7))
    with pytest.raises(DeviceError, match="too little free memory") as caught:
        ROBOT.mass_matrix(cupy.broadcast_to(row, (2**34, 7)))
    assert "\n" not in str(caught.value)


def test_more_scalars_than_32_bits():
    """2.2 thousand million scalars per array: indices must be 64 bits wide."""
    count = 320_000_000
    if cupy.cuda.runtime.memGetInfo()[0] < 40 << 30:
        pytest.skip("needs 40 GB of GPU memory")
    q = cupy.zeros((count, 7), "float32")
    tail = states(1000, dtype="float32")[0]
    q[-1000:] = cupy.asarray(tail)
    got = ROBOT.gravity_torques(q)
    assert same_bits(got[-1000:], ROBOT.gravity_torques(tail))
    assert same_bits(got[:10], ROBOT.gravity_torques(np.zeros((10, 7), "float32")))
    del q, got
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("convert", [to_cupy, to_torch, to_jax])
def test_closed_loops(convert, dtype):
    """A whole simulation in one launch; arrays of NumPy among the parameters are copied to the GPU."""
    q, qd, kp = states(500, dtype=dtype)
    kp = np.abs(kp) + 20
    controller = GravityPD(ROBOT, Gains(50.0, 10.0))
    options = {"duration": 0.05, "integrator": "semi_implicit_euler", "every": 7, "dtype": dtype}
    wanted = simulate(ROBOT, controller, np.zeros(7), q=q, qd=qd, vary={"kp": kp}, **options)
    got = simulate(ROBOT, controller, np.zeros(7), q=convert(q), qd=convert(qd), vary={"kp": kp}, **options)
    for name in ("q", "qd", "tau", "final_q", "final_qd"):
        assert type(getattr(got, name)) is type(convert(q)), name
        assert same_bits(getattr(got, name), getattr(wanted, name)), name
    assert same_bits(got.error, wanted.error.astype(dtype))


def test_conjugate_gradients():
    """Nothing looks at the residual on a GPU."""
    q, qd, tau = states(300)
    for algorithm in ("conjugate_gradient", "preconditioned_conjugate_gradient"):
        got = ROBOT.forward_dynamics(*map(cupy.asarray, (q, qd, tau)), algorithm=algorithm)
        assert same_bits(got, ROBOT.forward_dynamics(q, qd, tau, algorithm=algorithm))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_gradients_in_torch(name, dtype):
    """Through a broadcast input; the bits of the CPU before anything is summed."""
    torch = pytest.importorskip("torch")
    q, qd, third = states(300, dtype=dtype)
    bar = states(300, dtype=dtype, seed=4)[0]
    method = getattr(ROBOT, name)
    given = [to_torch(a).requires_grad_() for a in (q, qd, third)]
    result = method(*given)
    assert same_bits(result.detach(), method(q, qd, third))
    got = torch.autograd.grad(result, given, to_torch(bar))
    wanted = ROBOT.kernel(name).vjp()(q, qd, third, bar)
    assert all(same_bits(a, b) for a, b in zip(got, wanted, strict=True))
    one = to_torch(qd[0]).requires_grad_()
    method(given[0], one, given[2]).sum().backward()
    by_qd = ROBOT.kernel(name).vjp("qd")(q, qd[0], third, np.ones((300, 7), dtype)).sum(0)
    assert one.grad.shape == (7,)
    np.testing.assert_allclose(on_host(one.grad), by_qd, rtol=1e-9 if dtype == "float64" else 1e-3)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_gradients_in_jax(name):
    jax = pytest.importorskip("jax")
    q, qd, third = states(300)
    bar = states(300, seed=4)[0]
    there, weights = [to_jax(a) for a in (q, qd, third)], to_jax(bar)
    method = getattr(ROBOT, name)
    got = jax.grad(lambda *x: (method(*x) * weights).sum(), argnums=(0, 1, 2))(*there)
    wanted = ROBOT.kernel(name).vjp()(q, qd, third, bar)
    for a, b in zip(got, wanted, strict=True):
        assert isinstance(a, jax.Array)
        assert same_bits(a, b)


def test_other_threads():
    """Launches from several threads at once do not mix their parameters."""
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        q = states(50, seed=seed)[0]
        there = cupy.asarray(q)
        got = [ROBOT.gravity_torques(there) for _ in range(50)]
        cupy.cuda.get_current_stream().synchronize()
        return all(same_bits(g, ROBOT.gravity_torques(q)) for g in got)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("algorithm", ["kalman", "parallel_scan"])
@pytest.mark.parametrize("convert", [to_cupy, to_torch, to_jax])
def test_long_chains(convert, algorithm, dtype):
    """Loops over links: a thread for each state, or a block; more states than run at once."""
    robot = lw.random_robot(4, 150, joints="RP", rotor=True, friction=True)
    for count in (1, 70):
        given = list(np.random.default_rng(0).normal(size=(3, count, 150)).astype(dtype))
        got = robot.forward_dynamics(*(convert(a) for a in given), algorithm=algorithm)
        assert same_bits(got, robot.forward_dynamics(*given, algorithm=algorithm))


def test_long_chains_on_two_streams():
    """Each launch has room of its own."""
    robot = lw.random_robot(4, 100, rotor=True)
    given = list(np.random.default_rng(0).normal(size=(3, 40, 100)))
    there = [cupy.asarray(a) for a in given]
    cupy.cuda.get_current_stream().synchronize()
    results = []
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)):
        with stream:
            results += [robot.forward_dynamics(*there) for _ in range(10)]
    cupy.cuda.runtime.deviceSynchronize()
    wanted = robot.forward_dynamics(*given)
    assert all(same_bits(result, wanted) for result in results)
