"""Closed loops on a GPU: bits beside the CPU's, and steps per second."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

import linkwise as lw
from gpu_parts.measuring import Size, device_seconds, host_seconds
from linkwise.control import Gains, GravityPD
from linkwise.gpu.device import rollout_kernel
from linkwise.simulate.loop import ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of


def closed_loop(
    robot: lw.Robot, varied: tuple[str, ...] = (), record: tuple[str, ...] = ("q",)
) -> ClosedLoop:
    """PD control with gravity compensation at a fixed point, semi-implicit Euler."""
    controller = GravityPD(robot, Gains(400.0, 40.0))
    source = source_of(np.zeros(robot.dof), robot.dof)
    return ClosedLoop(
        Plant(robot), controller, source, "semi_implicit_euler", False, False, 0, varied, record
    )


def robots_of(loop: ClosedLoop, count: int, dtype: str, seed: int = 0) -> dict[str, Any]:
    """Robots in random states with their own gains, and payloads where the loop has them."""
    generator = cupy.random.default_rng(seed)
    n = loop.dof

    def spread(size: int, low: float, high: float):
        return (generator.random((count, size), dtype=np.float32) * (high - low) + low).astype(dtype)

    given: dict[str, Any] = dict(loop.numbers(1e-3, 1))
    given |= {"q": spread(n, -1.0, 1.0), "qd": spread(n, -1.0, 1.0), "kp": spread(n, 50.0, 100.0)}
    given |= {"kd": spread(n, 5.0, 15.0), "target": spread(n, -1.0, 1.0)}
    if "payload" in loop.varied:
        payload = cupy.zeros((count, 10), dtype)
        payload[:, 0] = spread(1, 0.0, 2.0)[:, 0]
        payload[:, 3] = 0.05 * payload[:, 0]
        for k in (4, 7, 9):
            payload[:, k] = 0.01 * payload[:, 0]
        given["payload"] = payload
    return given


def time_rollout(loop: ClosedLoop, dtype: str, count: int, steps: int) -> dict[str, Any]:
    kernel = loop.kernel()
    given = robots_of(loop, count, dtype)
    seconds, spread = device_seconds(lambda: kernel(given, steps=steps, every=steps, dtype=dtype), 5, 1)
    function = rollout_kernel(kernel, dtype, cupy.cuda.runtime.getDevice()).function
    some, short = min(count, 65536), min(steps, 20)
    few = {name: cupy.asnumpy(value)[:some] for name, value in given.items()}
    few = {
        name: value if np.ndim(given[name]) > 1 else cupy.asnumpy(given[name]) for name, value in few.items()
    }
    here = host_seconds(lambda: kernel(few, steps=short, every=short, dtype=dtype), 3)
    return {
        "robots": count,
        "steps": steps,
        "per_second": count * steps / seconds,
        "spread": spread / seconds,
        "cpu_per_second": some * short / here,
        **function.resources,
        "threads": function.threads,
    }


def check_rollout(loop: ClosedLoop, dtype: str) -> int:
    """Scalars that differ from the CPU's at the end and in every seventh row."""
    count, steps = Size.of("states", 20000), Size.of("steps", 60) // 7 * 7 or 7
    kernel = loop.kernel()
    given = robots_of(loop, count, dtype, seed=5)
    here = {name: cupy.asnumpy(value) for name, value in given.items()}
    different = 0
    for got, wanted in zip(
        kernel(given, steps=steps, every=7, dtype=dtype),
        kernel(here, steps=steps, every=7, dtype=dtype),
        strict=True,
    ):
        for name, a in got.items():
            b, a = wanted[name], cupy.asnumpy(a)
            different += int((~((a == b) | (np.isnan(a) & np.isnan(b)))).sum())
    return different
