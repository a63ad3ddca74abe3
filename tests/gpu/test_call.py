"""The dispatch without a GPU: a pretended framework whose device is the CPU, and kernels that run through the shim."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from pretended import Pretended

import linkwise as lw
from linkwise.gpu import DeviceError, device, driver, nvrtc
from linkwise.gpu.call import row_stride


def states(*shape, dtype="float64"):
    generator = np.random.default_rng(1)
    return [generator.normal(size=(*shape, 2)).astype(dtype) for _ in range(3)]


def same(got, wanted):
    return got.array.dtype == wanted.dtype and np.array_equal(got.array, wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_method(pretended, dtype):
    robot, compiled = pretended
    given = states(3, 50, dtype=dtype)
    for _ in range(2):
        got = robot.inverse_dynamics(*map(Pretended, given))
        assert same(got, robot.inverse_dynamics(*given))
    assert len(compiled) == 1
    assert "--fmad=false" in compiled[0]
    assert "--gpu-architecture=sm_90" in compiled[0]


def test_code_comes_from_the_cache(pretended):
    robot, compiled = pretended
    given = states(5)
    robot.inverse_dynamics(*map(Pretended, given))
    again = lw.load("two_link")
    assert same(again.inverse_dynamics(*map(Pretended, given)), robot.inverse_dynamics(*given))
    assert len(compiled) == 1, "the second robot must find the code of the first"


def test_the_first_call_inside_a_capture_is_refused(monkeypatch):
    """Compiling takes too long for a capture: JAX would stop working in the whole process. A kernel that is on the GPU
    may be called."""
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    compiled = []
    monkeypatch.setattr(driver, "device", lambda number: SimpleNamespace(number=number))
    monkeypatch.setattr(device, "_loaded", lambda *about: compiled.append(about))
    monkeypatch.setattr(driver, "is_capturing", lambda on, stream: stream == 77)
    with pytest.raises(
        DeviceError, match=r"inverse_dynamics: .* cuda:1 .* call it once .* before the capture"
    ):
        device.device_kernel(kernel, "float64", 1, stream=77)
    assert not compiled
    device.device_kernel(kernel, "float64", 1, stream=78)
    assert len(compiled) == 1
    device.device_kernel(kernel, "float64", 1, stream=77)
    assert len(compiled) == 1


def test_broadcasting_conversion_and_strides(pretended):
    robot, _ = pretended
    q, qd, qdd = states(4, 6)
    wanted = robot.inverse_dynamics(q, qd[0], qdd[..., :1, :])
    assert same(robot.inverse_dynamics(Pretended(q), Pretended(qd[0]), Pretended(qdd[..., :1, :])), wanted)
    whole = np.arange(48).reshape(4, 6, 2)
    assert same(robot.gravity_torques(Pretended(whole)), robot.gravity_torques(whole))
    reverse = Pretended(np.asfortranarray(q)[::-1])
    assert same(robot.gravity_torques(reverse), robot.gravity_torques(q[::-1]))
    mixed = robot.inverse_dynamics(Pretended(q.astype("float32")), Pretended(qd), Pretended(qdd))
    assert same(mixed, robot.inverse_dynamics(q.astype("float32"), qd, qdd))


def test_gradients(pretended):
    """The kernel of a gradient is a kernel like the others."""
    robot, _ = pretended
    *given, bar = *states(40), states(40)[0][::-1]
    vjp = robot.kernel("inverse_dynamics").vjp()
    got = vjp(*map(Pretended, (*given, bar)))
    assert all(same(a, b) for a, b in zip(got, vjp(*given, bar), strict=True))


def test_out(pretended):
    robot, _ = pretended
    given = states(7)
    wanted = robot.inverse_dynamics(*given)
    out = Pretended(np.empty((7, 2)))
    assert robot.inverse_dynamics(*map(Pretended, given), out=out) is out
    assert same(out, wanted)
    over = Pretended(given[0].copy())
    robot.inverse_dynamics(over, *map(Pretended, given[1:]), out=over)
    assert same(over, wanted)
    spaced = Pretended(np.zeros((7, 4))[:, ::2])
    robot.inverse_dynamics(*map(Pretended, given), out=spaced)
    assert same(spaced, wanted)
    with pytest.raises(lw.ShapeError, match=r"out: expected shape \(7, 2\), got \(6, 2\)"):
        robot.inverse_dynamics(*map(Pretended, given), out=Pretended(np.empty((6, 2))))
    with pytest.raises(TypeError, match="out: expected an array of float64, got float32"):
        robot.inverse_dynamics(*map(Pretended, given), out=Pretended(np.empty((7, 2), "float32")))
    with pytest.raises(
        DeviceError, match=r"out: expected an array of Pretended on cuda:0, got a numpy.ndarray"
    ):
        robot.inverse_dynamics(*map(Pretended, given), out=np.empty((7, 2)))


def test_places_must_agree(pretended):
    robot, _ = pretended
    q, qd, qdd = states(2)
    with pytest.raises(
        DeviceError, match="q is Pretended's on cuda:0, qd is Pretended's on cuda:1, qdd is a list"
    ):
        robot.inverse_dynamics(Pretended(q), Pretended(qd, 1), qdd.tolist())
    with pytest.raises(lw.ShapeError, match="q: expected shape"):
        robot.gravity_torques(Pretended(np.zeros((4, 3))))
    with pytest.raises(TypeError, match="complex128"):
        robot.gravity_torques(Pretended(np.zeros((4, 2), complex)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_row_stride_is_numpys(dtype):
    """What is said of rows must agree with where NumPy finds them."""
    base = np.zeros((4, 3, 8), dtype)
    item = base.itemsize
    for array, batch in [
        (base, (4, 3)),
        (base[:, :, 2:5], (4, 3)),
        (base[0, 0], (4, 3)),
        (base[:1], (4, 3)),
        (base[:, :1], (4, 3)),
        (base[:, :2], (4, 2)),
        (base[::2], (2, 3)),
        (base[..., ::2], (4, 3)),
        (base[0, 0], ()),
        (base[:, 0], (4,)),
        (base[::-1], (4, 3)),
    ]:
        spread = np.broadcast_to(array, (*batch, array.shape[-1]))
        starts = np.array([spread[k].__array_interface__["data"][0] for k in np.ndindex(*batch)], np.int64)
        steps = np.unique(np.diff(starts)) // item
        stride = row_stride(array.shape, tuple(s // item for s in array.strides), batch)
        if stride is None:
            assert len(steps) > 1 or (steps < 0).any() or spread.strides[-1] != item
        else:
            assert len(starts) == 1 or set(steps) == {stride}


def test_without_a_driver(monkeypatch):
    """One line that says what is missing."""
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    driver._library.cache_clear()
    with pytest.raises(DeviceError, match="no NVIDIA driver") as caught:
        driver.version()
    assert "\n" not in str(caught.value)
    with pytest.raises(DeviceError, match=r"libnvrtc.*pip install linkwise\[gpu\]"):
        nvrtc.compiler.__wrapped__()


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"needs CuPy: pip install linkwise\[gpu\]"):
        lw.load("two_link").gravity_torques(Pretended(np.zeros(2)))


@pytest.mark.parametrize("algorithm", ["kalman", "parallel_scan"])
def test_long_chains(pretended, algorithm):
    """Loops over links, with room in memory for every block."""
    robot = lw.random_robot(4, 50, rotor=True)
    given = list(np.random.default_rng(0).normal(size=(3, 5, 50)))
    got = robot.forward_dynamics(*map(Pretended, given), algorithm=algorithm)
    np.testing.assert_array_equal(got.array, robot.forward_dynamics(*given, algorithm=algorithm))
