"""Rollouts with arrays that are not NumPy's: the whole loop is one launch, and nothing waits for it.

What is given as NumPy arrays among arrays of a GPU (gains, a table, a time step) is copied there; the batch itself is
best given on the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler import arrays
from linkwise.errors import ShapeError
from linkwise.gpu.call import common_place, rows_of, scratch_for
from linkwise.gpu.device import rollout_kernel
from linkwise.gpu.frameworks import Framework, View
from linkwise.gpu.host import host_view, same_kind

if TYPE_CHECKING:
    from linkwise.compiler.rollout import Interface, RolloutKernel

Results = tuple[dict[str, Any], dict[str, Any]]


def call_rollout(
    kernel: RolloutKernel, given: Mapping[str, Any], steps: int, every: int, dtype: str, threads: int | None
) -> Results:
    """What ``RolloutKernel.__call__`` gives, as arrays of the kind that was given."""
    foreign = {name: value for name, value in given.items() if arrays.is_foreign(value)}
    framework, device = common_place(list(foreign), list(foreign.values()))
    if device is None:
        here = {name: host_view(value) if name in foreign else value for name, value in given.items()}
        found = kernel(here, steps=steps, every=every, dtype=dtype, threads=threads)
        final, written = ({k: same_kind(v, framework.name) for k, v in part.items()} for part in found)
        return final, written
    return _on_device(kernel, given, set(foreign), steps, every, dtype, framework, device)


def _on_device(
    kernel: RolloutKernel,
    given: Mapping[str, Any],
    foreign: set[str],
    steps: int,
    every: int,
    dtype: str,
    framework: Framework,
    device: int,
) -> Results:
    interface = kernel.interface
    stream = framework.stream(device)

    def view(name: str) -> View:
        value = given[name]
        if name not in foreign:
            value = framework.placed(np.asarray(value, dtype), device)
        found = framework.view(value, stream)
        if found.dtype != dtype:
            found = framework.view(framework.converted(found.owner, dtype), stream)
        return found

    sizes = {**interface.carried, **interface.parameters}
    sizes |= {name: feed.length(steps) for name, feed in interface.feeds.items() if not feed.shared}
    views = {name: view(name) for name in (*sizes, *interface.feeds)}
    batch = arrays.batch_shape([views[name] for name in sizes], list(sizes.items()))  # type: ignore[misc]
    count, samples = math.prod(batch), -(-steps // every)
    final = {
        name: framework.dense(views[name].owner, (*batch, size)) for name, size in interface.carried.items()
    }
    written = {
        name: framework.empty((*batch, samples, *shape), dtype, device)
        for name, shape in interface.written.items()
    }
    inputs = _input_rows(interface, views, batch, steps, dtype, framework, stream)
    if count and steps:
        outputs = [framework.view(array, stream).address for array in (*final.values(), *written.values())]
        found = rollout_kernel(kernel, dtype, device)
        rows = [samples] if written else []
        addresses, strides = ([view.address for view, _ in inputs], [stride for _, stride in inputs])
        scratch = scratch_for(found, count, framework, device, stream)
        room = () if scratch is None else (scratch.address,)
        words = (*outputs, *addresses, *strides, steps, every, *rows, count, *room)
        found.function.launch(found.blocks(count), stream, *words)
    done = [{name: framework.finished(made) for name, made in part.items()} for part in (final, written)]
    return done[0], done[1]


def _input_rows(
    interface: Interface,
    views: Mapping[str, View],
    batch: tuple[int, ...],
    steps: int,
    dtype: str,
    framework: Framework,
    stream: int,
) -> list[tuple[View, int]]:
    """Parameters and feeds with the distance of their rows in scalars; 0 where one serves all robots."""
    found = []
    for name in (*interface.parameters, *interface.feeds):
        feed = interface.feeds.get(name)
        if feed is None or not feed.shared:
            found.append(rows_of(views[name], batch, dtype, framework, stream))
            continue
        wanted = (feed.length(steps),)
        if views[name].shape != wanted:
            raise ShapeError(f"{name}: expected shape {wanted} for {steps} steps, got {views[name].shape}")
        found.append((rows_of(views[name], (), dtype, framework, stream)[0], 0))
    return found


def placed_like(array: np.ndarray, other: Any) -> Any:
    """A NumPy array as one of another array's kind, precision and place."""
    framework, device = common_place(["array"], [other])
    if device is None:
        return same_kind(np.asarray(array, host_view(other).dtype), framework.name)
    dtype = framework.view(other, framework.stream(device)).dtype
    return framework.finished(framework.placed(np.asarray(array, dtype), device))
