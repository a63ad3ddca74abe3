"""On a GPU: every framework's arrays, any stream, bits of the CPU. Skipped where there is no GPU."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Gains, GravityPD
from linkwise.gpu import DeviceError
from linkwise.simulate import simulate

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
    with pytest.raises(DeviceError, match="jit"):
        jax.jit(ROBOT.gravity_torques)(to_jax(states(4)[0]))


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
