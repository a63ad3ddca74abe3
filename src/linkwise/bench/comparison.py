"""The comparison: check first, then time, everything of one group interleaved on one core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.bench.agreement import difference
from linkwise.bench.clock import medians
from linkwise.bench.peers.base import Peer, Task
from linkwise.bench.subject import random_states
from linkwise.robot.robot import Robot

ALLOWED = {"float64": 1e-8, "float32": 1e-4}  # relative: enough to know that the same thing is computed
LARGE_FOR_SLOW = 64  # most states for a library that takes milliseconds per state


@dataclass(frozen=True)
class Group:
    """What is compared: a function, a number of states in one call, a precision."""

    function: str
    states: int
    dtype: str


@dataclass(frozen=True)
class Timing:
    """One line: nanoseconds per state of one library, or why there are none."""

    group: Group
    who: str
    version: str
    path: str
    dtype: str  # of this library; float64 where it has no other
    nanoseconds: float | None
    problem: str = ""


def compare(robot: Robot, peers: Sequence[Peer], group: Group, rounds: int) -> Iterator[Timing]:
    """The timings of one group, Linkwise's among them."""
    ready: list[tuple[Peer, str, Task]] = []
    for peer in peers:
        if not peer.has(group.function) or (peer.slow and group.states > LARGE_FOR_SLOW):
            continue
        dtype = group.dtype if group.dtype in peer.precisions else "float64"
        made = _checked(robot, peer, group, dtype)
        if isinstance(made, Timing):
            yield made
        elif made is not None:
            ready.append((peer, dtype, made))
    times = medians([task.run for _, _, task in ready], rounds)
    for (peer, dtype, task), seconds in zip(ready, times, strict=True):
        yield Timing(group, peer.name, peer.version, task.path, dtype, 1e9 * seconds / group.states)


def _checked(robot: Robot, peer: Peer, group: Group, dtype: str) -> Task | Timing | None:
    """A task whose results are right; a line that says why there is none; or nothing."""
    exact = random_states(robot, group.states)
    states = {name: values.astype(dtype) for name, values in exact.items()}

    def failed(path: str, problem: str) -> Timing:
        return Timing(group, peer.name, peer.version, path, dtype, None, problem)

    try:
        task = peer.one(group.function, states) if group.states == 1 else peer.batch(group.function, states)
        if task is None:
            return None
        result = np.asarray(task.result(), dtype=float)
    except Exception as error:  # a library that fails is reported, whatever it raises
        return failed("", f"fails: {' '.join(str(error).split())[:80]}")
    wanted = (
        (group.states, *result.shape[-1:])
        if group.function not in ("mass_matrix", "inverse_mass_matrix")
        else None
    )
    shaped = result.reshape(wanted or (group.states, robot.dof, robot.dof))
    off = difference(robot, group.function, exact, shaped)
    return task if off <= ALLOWED[dtype] else failed(task.path, f"gives other results ({off:.0e} off)")
