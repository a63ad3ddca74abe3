"""The dispatch without a GPU: a pretended framework whose device is the CPU, and kernels that run through the shim."""

import sys

import numpy as np
import pytest
from on_cpu import COMPILER, OnCpu

import linkwise as lw
from linkwise.compiler.emit import cuda
from linkwise.gpu import DeviceError, driver, frameworks, nvrtc
from linkwise.gpu.call import row_stride


class Pretended:
    """An array that says it lives on a GPU."""

    def __init__(self, array, number=0):
        self.array, self.number = np.asarray(array), number

    __cuda_array_interface__ = property(lambda self: self.array.__array_interface__)


class PretendedArrays:
    name = "Pretended"

    def owns(self, value):
        return isinstance(value, Pretended)

    def device(self, value):
        return value.number

    def view(self, value, stream):
        a = value.array
        strides = tuple(step // a.itemsize for step in a.strides)
        return frameworks.View(value, a.ctypes.data, a.shape, strides, a.dtype.name)

    def stream(self, device):
        return 77

    def converted(self, value, dtype):
        return Pretended(value.array.astype(dtype))

    def dense(self, value, shape):
        return Pretended(np.array(np.broadcast_to(value.array, shape), order="C"))

    def empty(self, shape, dtype, device):
        return Pretended(np.full(shape, np.nan, dtype))

    def placed(self, array, device):
        return Pretended(array, device)

    def finished(self, made):
        return made

    def assign(self, target, source):
        target.array[...] = source.array


@pytest.fixture
def pretended(monkeypatch, tmp_path):
    """A robot whose kernels think that there is a GPU."""
    if COMPILER is None:
        pytest.skip("g++ is not installed")
    try:
        compiler = nvrtc.compiler()
    except DeviceError as error:
        pytest.skip(str(error))
    loaded = {}

    class Function:
        """In place of a function loaded on a GPU: what g++ made of the same text."""

        def __init__(self, on, cubin, name, threads, shared, resident):
            assert cubin[1:4] == b"ELF"
            self.name, self.threads, self.shared = name, threads, shared
            self.most_blocks, self.grows = (resident * 2 if resident else 1000), not resident

        def resources(self):
            return {"registers": 64, "local": 0}

        def launch(self, blocks, stream, *words):
            assert stream == 77
            words = np.array(words, np.int64)
            loaded[self.name, self.threads, self.shared]._entry(words.ctypes.data, blocks, self.threads, 0)

    compiled = []
    original = nvrtc.Compiler.compile

    def compile_(self, text, name, options):
        compiled.append(options)
        head = text.split("__launch_bounds__")[1].split("{")[0]
        pointers = head.count("__restrict__")
        sizes = head.count("const long long")
        threads = int(text.split("__launch_bounds__(")[1].split(",")[0])
        scalars = int(text.split("/ 32 * ")[1].split(";")[0].split(")")[0])
        shared = scalars * (threads // 32) * (8 if "typedef double" in text else 4)
        module = cuda.Module(text, name, threads, shared)
        loaded[name, threads, shared] = OnCpu(module, tmp_path / str(len(compiled)), pointers, sizes)
        return original(self, text, name, options)

    monkeypatch.setattr(frameworks, "FRAMEWORKS", (PretendedArrays(),))
    monkeypatch.setattr(nvrtc, "compiler", lambda newest=None: compiler)
    monkeypatch.setattr(nvrtc.Compiler, "compile", compile_)
    monkeypatch.setattr(driver, "version", lambda: (13, 0))
    monkeypatch.setattr(driver, "device", lambda number: type("On", (), {"architecture": "sm_90"})())
    monkeypatch.setattr(driver, "Function", Function)
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "cache"))
    return lw.load("two_link"), compiled


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
