"""Small batches by every kind of call: time until the call returns, until the result is there, of the kernel alone.

"To launch" is the mean over many calls between two synchronisations, the best of many such runs: what a call costs the
program that makes it. "To result" is one call and a synchronisation, the median of many. "Alone" is one launch among
many of a CUDA graph. Before anything is timed the result of every kind of call is compared with the CPU's, bit by bit.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

import linkwise as lw
from gpu_parts.measuring import DTYPES, Size, as_tuple, device_seconds, host_seconds, random_states
from linkwise.gpu.launch import launch_address, prepare

COUNTS = (1, 16, 256, 4096, 65536)
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
COMBINED = ("mass_matrix", "bias_torques", "jacobian")
LONGEST = 100  # calls between two synchronisations: fewer than the driver's queue of launches holds
ENOUGH = 0.15  # seconds of one measurement


class Call(NamedTuple):
    """One kind of call, ready to be timed."""

    label: str
    work: Callable[[], Any]
    finish: Callable[[], Any]  # waits for the GPU
    wanted: tuple[np.ndarray, ...]  # the CPU's result


def small_batches(robot: lw.Robot, counts: Sequence[int]) -> list[dict[str, Any]]:
    """A row for every function, precision, number of states and kind of call."""
    rows = []
    for name in FUNCTIONS:
        for dtype in DTYPES:
            for count in counts[:2] if Size.quick else counts:
                about = {"function": name, "dtype": dtype, "states": count}
                rows += [{**about, **_timed(call, count)} for call in _calls(robot, name, dtype, count)]
    for count in counts[:2] if Size.quick else counts:
        about = {"function": "+".join(COMBINED), "dtype": "float64", "states": count}
        rows += [{**about, **_timed(call, count)} for call in _several(robot, count)]
    return rows


def _timed(call: Call, count: int) -> dict[str, Any]:
    label, work, finish, wanted = call
    try:
        different = _different(work(), wanted)
    except Exception as error:  # a library that is missing or cannot do this does not end the run
        return {"call": label, "failed": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}

    def until_result() -> None:
        work()
        finish()

    launch = _launch_seconds(work, finish)
    done = host_seconds(until_result)
    row = {"call": label, "to_launch": launch, "to_result": done, "different_scalars": different}
    if label == "CuPy, out=":
        row["alone"] = graph_seconds(work)
    return row


def _launch_seconds(work: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """Host time of a call that does not wait for the GPU: the best of many runs of many calls.

    The best, because other work on the host only adds to it.
    """
    count, means = Size.of("repeats", LONGEST), []
    for _ in range(Size.of("repeats", 25)):
        if sum(means) * count > ENOUGH:
            break
        finish()
        began = time.perf_counter()
        for _ in range(count):
            work()
        means.append((time.perf_counter() - began) / count)
    finish()
    return min(means)


def graph_seconds(work: Callable[[], Any]) -> float:
    """Time of one launch among many of a graph: what is left without Python and without launching one by one."""
    count = Size.of("repeats", 100)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.begin_capture()
        for _ in range(count):
            work()
        graph = stream.end_capture()
        seconds, _ = device_seconds(lambda: graph.launch(), 10, 2)
    stream.synchronize()
    return seconds / count


def _different(got: Any, wanted: tuple[np.ndarray, ...]) -> int:
    found = 0
    for a, b in zip(map(_on_host, as_tuple(got)), wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        found += int((~((a == b) | (np.isnan(a) & np.isnan(b)))).sum())
    return found


def _on_host(array: Any) -> np.ndarray:
    if isinstance(array, cupy.ndarray):
        return cupy.asnumpy(array)
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)


# -- kinds of calls ---------------------------------------------------------------------------------------------------


def _calls(robot: lw.Robot, name: str, dtype: str, count: int) -> Iterator[Call]:
    kernel = robot.kernel(name)
    method: Any = getattr(robot, name)
    there = random_states(kernel, count, dtype)
    here = [cupy.asnumpy(a) for a in there]
    wanted = as_tuple(method(*here))
    plain = as_tuple(method(*here, friction=False))
    out = cupy.empty(wanted[0].shape, dtype)
    finish = cupy.cuda.get_current_stream().synchronize
    yield Call("CuPy", lambda: method(*there), finish, wanted)
    yield Call("CuPy, out=", lambda: method(*there, out=out), finish, wanted)
    yield Call("CuPy, friction=False", lambda: method(*there, friction=False), finish, plain)
    wrench = cupy.asarray(np.ones((count, 6), dtype))
    pushed = as_tuple(method(*here, wrench=np.ones((count, 6), dtype)))
    yield Call("CuPy, wrench=", lambda: method(*there, wrench=wrench), finish, pushed)
    yield Call("CuPy, kernel", lambda: kernel(*there), finish, wanted)
    yield _graph("CuPy, graph", kernel, there, finish, wanted)
    if torch := _library("torch"):
        tensors = [torch.as_tensor(a, device="cuda") for a in here]
        target = torch.empty_like(tensors[0])
        finish = torch.cuda.synchronize
        yield Call("PyTorch", lambda: method(*tensors), finish, wanted)
        yield Call("PyTorch, out=", lambda: method(*tensors, out=target), finish, wanted)
        yield Call("PyTorch, friction=False", lambda: method(*tensors, friction=False), finish, plain)
        yield Call("PyTorch, kernel", lambda: kernel(*tensors), finish, wanted)
        yield _graph("PyTorch, graph", kernel, tensors, finish, wanted)
        followed = [a.clone().requires_grad_() for a in tensors]
        yield Call("PyTorch, for gradients", lambda: method(*followed), finish, wanted)
    if jax := _library("jax"):
        jax.config.update("jax_enable_x64", True)
        given = [jax.device_put(a) for a in here]
        compiled = jax.jit(method)
        yield Call("JAX", lambda: method(*given), lambda: jax.device_put(0.0).block_until_ready(), wanted)
        yield Call("JAX, jit", lambda: compiled(*given), lambda: compiled(*given).block_until_ready(), wanted)


def _graph(label: str, kernel: Any, there: list[Any], finish: Callable[[], Any], wanted: tuple) -> Call:
    try:
        work = kernel.graph(*there)
    except Exception as error:
        reason = error

        def work() -> Any:
            raise reason

    return Call(label, work, finish, wanted)


def _several(robot: lw.Robot, count: int) -> Iterator[Call]:
    """Three functions of the same states, by three calls and by one kernel."""
    kernel: Any = robot.kernel([*COMBINED])
    there = random_states(kernel, count, "float64")
    wanted = as_tuple(kernel(*(cupy.asnumpy(a) for a in there)))
    states = dict(zip([name for name, _ in kernel.inputs], there, strict=True))
    q, qd = states["q"], states["qd"]
    finish = cupy.cuda.get_current_stream().synchronize

    def apart() -> tuple:
        return robot.mass_matrix(q), robot.bias_torques(q, qd), robot.jacobian(q)

    yield Call("CuPy, three calls", apart, finish, wanted)
    yield Call("CuPy, one kernel", lambda: kernel(*there), finish, wanted)
    yield _graph("CuPy, one kernel, graph", kernel, there, finish, wanted)


def _library(name: str) -> Any:
    """An installed library; None where it is missing or does not load."""
    try:
        __import__(name)
    except Exception:
        return None
    return sys.modules[name]


# -- what the parts of a call cost ------------------------------------------------------------------------------------


def parts_of_a_call(robot: lw.Robot) -> dict[str, float]:
    """Host seconds of the single steps that a call is made of."""
    array = cupy.empty((4096, 7))
    kernel: Any = robot.kernel("gravity_torques")
    (q,), tau = random_states(kernel, 4096, "float64"), cupy.empty((4096, robot.dof))
    prepared = prepare(kernel, "float64", cupy.cuda.runtime.getDevice())
    words = (ctypes.c_int64 * 4)(*prepared.words([tau.data.ptr, q.data.ptr], 4096))
    start = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(launch_address())
    about = (prepared.address, ctypes.addressof(words), 4096, cupy.cuda.get_current_stream().ptr)
    kind, shape = np.dtype("float64"), (4096, 7)
    steps: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "launch by addresses, with ctypes": lambda: start(*about),
        "cupy.empty": lambda: cupy.empty(shape, kind),
        "cupy.ndarray": lambda: cupy.ndarray(shape, kind),
        "CuPy: shape": lambda: array.shape,
        "CuPy: dtype": lambda: array.dtype,
        "CuPy: data.ptr": lambda: array.data.ptr,
        "CuPy: current stream": lambda: cupy.cuda.get_current_stream().ptr,
    }
    if torch := _library("torch"):
        tensor, place = torch.empty(shape, dtype=torch.float64, device="cuda"), torch.device("cuda", 0)
        steps |= {
            "torch.empty": lambda: torch.empty(shape, dtype=torch.float64, device=place),
            "torch.empty_like": lambda: torch.empty_like(tensor),
            "Tensor.new_empty": lambda: tensor.new_empty(shape),
            "PyTorch: shape": lambda: tensor.shape,
            "PyTorch: dtype": lambda: tensor.dtype,
            "PyTorch: data_ptr()": tensor.data_ptr,
            "PyTorch: is_contiguous()": tensor.is_contiguous,
            "PyTorch: get_device()": tensor.get_device,
            "PyTorch: requires_grad": lambda: tensor.requires_grad,
            "PyTorch: is_neg()": tensor.is_neg,
            "PyTorch: current stream": lambda: torch.cuda.current_stream().cuda_stream,
            "PyTorch: raw stream": lambda: torch._C._cuda_getCurrentRawStream(0),
        }
    finish = cupy.cuda.get_current_stream().synchronize
    return {label: _launch_seconds(work, finish) for label, work in steps.items()}


def print_small(report: dict[str, Any]) -> None:
    for label, seconds in report.get("parts_of_a_call", {}).items():
        print(f"{label:32} {seconds * 1e6:6.2f} us")
    print(
        f"{'function':40} {'dtype':8} {'states':>6} {'call':26} {'launch':>7} {'result':>7} {'alone':>6} "
        f"{'G/s':>8} bits"
    )
    for row in report["small"]:
        head = f"{row['function']:40} {row['dtype']:8} {row['states']:6} {row['call']:26}"
        if "failed" in row:
            print(f"{head} {row['failed']}")
            continue
        alone = f"{row['alone'] * 1e6:6.2f}" if "alone" in row else f"{'':6}"
        print(
            f"{head} {row['to_launch'] * 1e6:7.2f} {row['to_result'] * 1e6:7.2f} {alone} "
            f"{row['states'] / row['to_launch'] / 1e9:8.4f} {row['different_scalars'] or 'same'}"
        )
