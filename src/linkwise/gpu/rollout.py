"""Rollouts with arrays that are not NumPy's: the whole loop is one launch, and nothing waits for it.

What is given as NumPy arrays among arrays of a GPU (gains, a table, a time step) is copied there; the batch itself is
best given on the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.runtime import arrays
from linkwise.errors import ShapeError
from linkwise.gpu.call import common_place, is_dense, rows_of, scratch_for
from linkwise.gpu.device import rollout_kernel
from linkwise.gpu.frameworks import Framework, View
from linkwise.gpu.graph import Graph, Place, copies, fixed_stride
from linkwise.gpu.host import host_view, same_kind

if TYPE_CHECKING:
    from linkwise.compiler.rollout import RolloutKernel

Results = tuple[dict[str, Any], dict[str, Any]]


def call_rollout(
    kernel: RolloutKernel, given: Mapping[str, Any], steps: int, every: int, dtype: str, threads: int | None
) -> Results:
    """What ``RolloutKernel.__call__`` gives, as arrays of the kind that was given.

    Args:
        kernel: the kernel.
        given: every carried input, parameter and feed, by name.
        steps: number of steps.
        every: steps from one recorded row to the next.
        dtype: "float64" or "float32".
        threads: number of threads, for arrays on the CPU.
    """
    foreign = {name: value for name, value in given.items() if arrays.is_foreign(value)}
    framework, device = common_place(list(foreign), list(foreign.values()))
    if device is None:
        here = {name: host_view(value) if name in foreign else value for name, value in given.items()}
        found = kernel(here, steps=steps, every=every, dtype=dtype, threads=threads)
        final, written = ({k: same_kind(v, framework.name) for k, v in part.items()} for part in found)
        return final, written
    made = _Arranged(kernel, given, steps, every, dtype, framework, device)
    made.run(framework.stream(device))
    final, written = (
        {name: framework.finished(array) for name, array in part.items()}
        for part in (made.final, made.written)
    )
    return final, written


class _Arranged:
    """A rollout's arrays on a GPU: what it reads, and new arrays for what it carries and writes.

    ``fixed``: for a graph, which reads what is given where it is; nothing is converted or copied then.
    """

    def __init__(
        self,
        kernel: RolloutKernel,
        given: Mapping[str, Any],
        steps: int,
        every: int,
        dtype: str,
        framework: Framework,
        device: int,
        fixed: bool = False,
    ):
        self._kernel, self._steps, self._every, self._dtype = kernel, steps, every, dtype
        self._framework, self._device, self._fixed = framework, device, fixed
        interface = kernel.interface
        self._stream = framework.stream(device)
        sizes = {**interface.carried, **interface.parameters}
        sizes |= {name: feed.length(steps) for name, feed in interface.feeds.items() if not feed.shared}
        self.views = {name: self._view(name, given[name]) for name in (*sizes, *interface.feeds)}
        batch = arrays.batch_shape([self.views[name] for name in sizes], list(sizes.items()))  # type: ignore[misc]
        self._count, self._samples = math.prod(batch), -(-steps // every)
        self.final = {name: self._start(name, (*batch, size)) for name, size in interface.carried.items()}
        self.written = {
            name: framework.empty((*batch, self._samples, *shape), dtype, device)
            for name, shape in interface.written.items()
        }
        self._inputs = [self._rows(name, batch) for name in (*interface.parameters, *interface.feeds)]
        self._function = (
            rollout_kernel(kernel, dtype, device, self._stream) if self._count and steps else None
        )
        self._scratch = (
            None
            if self._function is None
            else scratch_for(self._function, self._count, framework, device, self._stream)
        )

    def _view(self, name: str, value: Any) -> View:
        framework = self._framework
        if not arrays.is_foreign(value):
            value = framework.placed(np.asarray(value, self._dtype), self._device)
        found = framework.view(value, self._stream)
        if found.dtype == self._dtype:
            return found
        if self._fixed:
            raise arrays.DtypeError(
                f"{name}: a graph reads its inputs where they are and expects {self._dtype}, got {found.dtype}; "
                "convert it first"
            )
        return framework.view(framework.converted(found.owner, self._dtype), self._stream)

    def _start(self, name: str, shape: tuple[int, ...]) -> Any:
        """The array of a carried value: it begins as a copy, which a graph makes in every repetition."""
        view = self.views[name]
        if not self._fixed:
            return self._framework.dense(view.owner, shape)
        if view.shape != shape or not is_dense(view):
            raise ShapeError(
                f"{name}: a graph copies it from where it is and expects a contiguous array of shape {shape}"
            )
        return self._framework.empty(shape, self._dtype, self._device)

    def _rows(self, name: str, batch: tuple[int, ...]) -> tuple[View, int]:
        """A parameter or feed with the distance of its rows in scalars; 0 where one serves all robots."""
        view, feed, steps = self.views[name], self._kernel.interface.feeds.get(name), self._steps
        shared = feed is not None and feed.shared
        if feed is not None and shared and view.shape != (feed.length(steps),):
            wanted = (feed.length(steps),)
            raise ShapeError(f"{name}: expected shape {wanted} for {steps} steps, got {view.shape}")
        leading = () if shared else batch
        if self._fixed:
            stride = fixed_stride(name, view, leading)
        else:
            view, stride = rows_of(view, leading, self._dtype, self._framework, self._stream)
        return view, 0 if shared else stride

    def copies(self) -> list[tuple[View, View]]:
        """(target, source) of what is carried."""
        return [
            (self._framework.view(made, self._stream), self.views[name]) for name, made in self.final.items()
        ]

    def run(self, stream: int) -> None:
        """Start the loop; nothing waits for it."""
        if self._function is None:
            return
        made = (*self.final.values(), *self.written.values())
        words = [self._framework.view(array, stream).address for array in made]
        words += [view.address for view, _ in self._inputs]
        words += [stride for _, stride in self._inputs]
        words += [self._steps, self._every]
        words += [self._samples] if self.written else []
        words += [self._count]
        words += [] if self._scratch is None else [self._scratch.address]
        self._function.function.launch(self._function.blocks(self._count), stream, *words)


def rollout_graph(
    kernel: RolloutKernel, given: Mapping[str, Any], steps: int, every: int, dtype: str
) -> Graph:
    """A rollout as a graph: it begins with what the carried inputs hold when it is repeated.

    Args:
        kernel: the kernel.
        given: every carried input, parameter and feed, by name.
        steps: number of steps.
        every: steps from one recorded row to the next.
        dtype: "float64" or "float32".
    """
    place = Place(kernel.name, given, others=True)
    made = _Arranged(kernel, given, steps, every, dtype, place.framework, place.device, fixed=True)
    copy = copies(made.copies())

    def work(stream: int) -> None:
        copy(stream)
        made.run(stream)

    inputs = {name: view.owner for name, view in made.views.items()}
    outputs = made.final | made.written
    return Graph(kernel.name, place, inputs, outputs, work, made, (made.final, made.written))


def placed_like(array: np.ndarray, other: Any) -> Any:
    """A NumPy array as one of another array's kind, precision and place."""
    framework, device = common_place(["array"], [other])
    if device is None:
        return same_kind(np.asarray(array, host_view(other).dtype), framework.name)
    dtype = framework.view(other, framework.stream(device)).dtype
    return framework.finished(framework.placed(np.asarray(array, dtype), device))
