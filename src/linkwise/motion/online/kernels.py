"""Kernels of online moves of one joint: the earliest duration, the plan for a duration, the state at a time of it.

Many joints are lanes of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.motion.online.earliest import DOUBLE, SINGLE, Precision
from linkwise.motion.online.extremes import Task
from linkwise.motion.online.scalars import PHASES, earliest, sampled, tracks
from linkwise.scalar import Scalar, where

STATE = ("q", "qd", "qdd")
TARGET = ("target", "target_velocity", "target_acceleration")
LIMITS = ("velocity_upper", "velocity_lower", "acceleration_upper", "acceleration_lower", "jerk")
_TRACKS = 2 * PHASES
_ONE = dict.fromkeys((*STATE, *TARGET, *LIMITS), 1)

Given = Mapping[str, Sequence[Scalar]]


@lru_cache
def earliest_kernel(dtype: str = "float64") -> Kernel:
    """(state, target, limits, shortest) -> duration [s]: the first that is possible, ``shortest`` or later."""

    def function(given: Given, precision: Precision) -> dict[str, Any]:
        return {"duration": earliest(_task(given), given["shortest"][0], precision)}

    return _kernel("online_earliest", function, {**_ONE, "shortest": 1}, {"duration": ()}, dtype)


@lru_cache
def plan_kernel(dtype: str = "float64") -> Kernel:
    """(state, target, limits, duration) -> (durations, jerks, weight, fault)."""

    def function(given: Given, precision: Precision) -> dict[str, Any]:
        plan = tracks(_task(given), given["duration"][0], precision)
        return {
            "durations": [x for track in plan.durations for x in track],
            "jerks": [x for track in plan.jerks for x in track],
            "weight": plan.weight,
            "fault": where(plan.fault, 1.0, 0.0),
        }

    shapes = {"durations": (_TRACKS,), "jerks": (_TRACKS,), "weight": (), "fault": ()}
    return _kernel("online_plan", function, {**_ONE, "duration": 1}, shapes, dtype)


@lru_cache
def state_kernel(dtype: str = "float64") -> Kernel:
    """(time, state, durations, jerks, weight) -> (q_d, qd_d, qdd_d)."""

    def function(given: Given, precision: Precision) -> dict[str, Any]:
        tables = [
            [list(given[name][k * PHASES :][:PHASES]) for k in range(2)] for name in ("durations", "jerks")
        ]
        start = (given["q"][0], given["qd"][0], given["qdd"][0])
        state = sampled(given["time"][0], start, (tables[0], tables[1], given["weight"][0]))
        return dict(zip(("q_d", "qd_d", "qdd_d"), state, strict=True))

    sizes = {"time": 1, **dict.fromkeys(STATE, 1), "durations": _TRACKS, "jerks": _TRACKS, "weight": 1}
    return _kernel("online_state", function, sizes, {"q_d": (), "qd_d": (), "qdd_d": ()}, dtype)


def _task(given: Given) -> Task:
    q, v, a, qf, vf, af, *limits = (given[name][0] for name in (*STATE, *TARGET, *LIMITS))
    return Task(qf - q, abs(qf) + abs(q), v, a, vf, af, *limits)


def _kernel(
    name: str,
    function: Callable[[Given, Precision], dict[str, Any]],
    sizes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    dtype: str,
) -> Kernel:
    def build(dtype: Any) -> Any:
        def traced(**given: Sequence[Scalar]) -> dict[str, Any]:
            return function(given, SINGLE if dtype == "float32" else DOUBLE)

        return trace(traced, sizes, shapes, name=name, dtype=dtype)

    return Kernel(name, sizes.items(), shapes.items(), dtype, build, name.encode())
