"""A program repeated many times over: what it carries from step to step stays in registers.

One step is an ordinary ``Program``. Some of its inputs are carried (an output of the step replaces them),
some are fed (a window of a table that moves on with every step), the rest are parameters that stay. Chosen
outputs are written every k steps. So a whole simulation is one call, and each target needs nothing but a loop
around its arithmetic.

    carried = initial
    for s in range(steps):
        outputs = step(carried, parameters, feed[s·advance : s·advance + size])
        if s % every == 0: write outputs
        carried = the outputs that follow
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwise.compiler.ir.program import Dtype, Program, Shape, trace
from linkwise.compiler.kernel import Portable
from linkwise.compiler.native import Native, NativeProgram
from linkwise.compiler.runtime import arrays, host, targets, threads
from linkwise.errors import ShapeError, UnknownNameError

NEXT = "next_"  # the output that replaces the carried input of the rest of the name
_CALL_SECONDS = 0.2  # about how long one call of compiled code may last, so that a user can interrupt it
_BYTES_PER_SECOND = 10e9  # of straight-line machine code that a core runs through


@dataclass(frozen=True)
class Feed:
    """A table that is read as the steps go on: ``size`` scalars at a time, ``advance`` further every step.

    ``shared``: one table for all robots, of shape (length,); else one for each, (batch, length).
    """

    size: int
    advance: int
    shared: bool = True

    def length(self, steps: int) -> int:
        """Scalars that so many steps read."""
        return 0 if steps == 0 else (steps - 1) * self.advance + self.size


@dataclass(frozen=True)
class Interface:
    """What goes into a rollout and what comes out, each by name."""

    carried: Mapping[str, int]
    parameters: Mapping[str, int]
    feeds: Mapping[str, Feed]
    written: Mapping[str, Shape]

    def inputs(self) -> dict[str, int]:
        """The inputs of one step."""
        return {**self.carried, **self.parameters, **{name: feed.size for name, feed in self.feeds.items()}}

    def outputs(self) -> dict[str, Shape]:
        """The outputs of one step."""
        return {**{NEXT + name: (size,) for name, size in self.carried.items()}, **self.written}

    def __repr__(self) -> str:
        return repr((dict(self.carried), dict(self.parameters), dict(self.feeds), dict(self.written)))


@dataclass(frozen=True, eq=False)
class RolloutProgram:
    """One step and the way it is repeated."""

    step: Program
    interface: Interface

    @property
    def dtype(self) -> Dtype:
        return self.step.dtype

    @property
    def name(self) -> str:
        return self.step.name


def trace_rollout(
    function: Callable[..., Any], interface: Interface, *, name: str, dtype: Dtype
) -> RolloutProgram:
    """``function`` takes one list of symbols per input of the step and gives its outputs by name."""
    return RolloutProgram(
        trace(function, interface.inputs(), interface.outputs(), name=name, dtype=dtype), interface
    )


class RolloutKernel(Portable):
    """A rollout of many robots, compiled when it is first called.

    ``build`` makes the program for a precision; ``key`` stands for all that the program depends on besides
    this package.
    """

    def __init__(self, name: str, interface: Interface, build: Callable[[Dtype], RolloutProgram], key: bytes):
        self.name = name
        self.interface = interface
        self.on_device: dict[Any, Any] = {}  # what other targets have compiled of this rollout
        self._natives: dict[str, NativeProgram] = {}
        for dtype in ("float64", "float32"):
            own = f"rollout\0{name}\0{interface}\0{dtype}\0".encode() + key
            self._natives[dtype] = NativeProgram(partial(build, dtype), own)  # type: ignore[arg-type]

    def identity(self, dtype: str) -> bytes:
        """What the program in this precision depends on besides this package."""
        key = self._natives[dtype].key
        assert key is not None
        return key

    def program(self, dtype: str = "float64") -> RolloutProgram:
        return self._natives[dtype].program  # type: ignore[return-value]

    def source(self, target: str, dtype: str = "float64", **options: Any) -> str:
        """The rollout as source code in "c", "cuda" or "wasm"; the options are those of the target's ``source``."""
        from linkwise.compiler.emit import source

        return source(self.program(dtype), target, **options)

    def __call__(
        self,
        given: Mapping[str, Any],
        *,
        steps: int,
        every: int = 1,
        dtype: str = "float64",
        threads: int | None = None,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """(what is carried at the end, what was written): {name: (batch..., size)}, {name: (batch...,
        samples, *shape)}.

        ``given`` has every carried input and parameter, (..., size), and every feed, (length,) where it is
        shared, else (..., length); leading axes broadcast together. With arrays of other libraries (CuPy,
        PyTorch, JAX) among them the work is done where these are.
        """
        _check_steps(steps, every)
        if targets.are_foreign(given.values()):
            return targets.call_rollout(self, given, steps, every, dtype, threads)
        interface, kind = self.interface, np.dtype(dtype)
        rows, tables, batch = self._arranged(given, steps, kind)
        count, samples = math.prod(batch), -(-steps // every)
        final = {name: rows.pop(name) for name in interface.carried}
        written = {
            name: np.empty((count, samples, *shape), kind) for name, shape in interface.written.items()
        }
        self._run(
            list(final.values()),
            list(rows.values()),
            tables,
            list(written.values()),
            count,
            steps,
            every,
            dtype,
            threads,
        )
        return (
            {name: array.reshape(*batch, array.shape[-1]) for name, array in final.items()},
            {name: array.reshape(*batch, *array.shape[1:]) for name, array in written.items()},
        )

    def graph(self, given: Mapping[str, Any], *, steps: int, every: int = 1, dtype: str = "float64") -> Any:
        """A rollout with these arrays of CuPy or PyTorch on a GPU, recorded as a CUDA graph, see ``Kernel.graph``.

        Every repetition begins with what the carried inputs hold by then; ``graph.inputs`` and ``graph.outputs`` are
        dictionaries, and ``graph()`` gives what a call gives.
        """
        _check_steps(steps, every)
        return targets.rollout_graph(self, given, steps, every, dtype)

    def _arranged(
        self, given: Mapping[str, Any], steps: int, kind: np.dtype
    ) -> tuple[dict[str, np.ndarray], list[np.ndarray], tuple[int, ...]]:
        """Dense rows of what every robot has for itself (copies of what is carried), the tables, the batch's
        shape.
        """
        sizes = {**self.interface.carried, **self.interface.parameters}
        own = {name: feed.length(steps) for name, feed in self.interface.feeds.items() if not feed.shared}
        values = {name: np.asarray(given[name], kind) for name in (*sizes, *self.interface.feeds)}
        pairs = list({**sizes, **own}.items())
        batch = arrays.batch_shape([values[name] for name, _ in pairs], pairs)
        rows = {
            name: np.array(np.broadcast_to(values[name], (*batch, size)), order="C").reshape(-1, size)
            for name, size in sizes.items()
        }
        tables: list[np.ndarray] = []
        for name, feed in self.interface.feeds.items():
            shape = (feed.length(steps),) if feed.shared else (*batch, feed.length(steps))
            if feed.shared and values[name].shape != shape:
                raise ShapeError(
                    f"{name}: expected shape {shape} for {steps} steps, got {values[name].shape}"
                )
            tables.append(np.ascontiguousarray(np.broadcast_to(values[name], shape)))
        return rows, tables, batch

    def _run(
        self,
        carried: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
        tables: Sequence[np.ndarray],
        written: Sequence[np.ndarray],
        count: int,
        steps: int,
        every: int,
        dtype: str,
        wanted: int | None,
    ) -> None:
        if count == 0 or steps == 0:
            return
        native = self.native(dtype, 1 if count == 1 else host.lanes(dtype))
        feeds = list(self.interface.feeds.values())
        chunk = _chunk(native, count, every)
        if wanted is not None or count > native.width:
            wanted = threads.wanted(wanted)
        for done in range(0, steps, chunk):
            now = min(chunk, steps - done)
            words = [now, every]
            for array in (*carried, *parameters):
                words += [arrays.address(array), array.shape[-1]]
            for array, feed in zip(tables, feeds, strict=True):
                start = done * feed.advance * array.itemsize
                words += [arrays.address(array) + start, 0 if feed.shared else array.shape[-1]]
            for array in written:
                size = math.prod(array.shape[2:])
                start = done // every * size * array.itemsize
                words += [arrays.address(array) + start, array.shape[1] * size]
            arguments = np.array(words, np.int64)
            used = (carried, parameters, tables, written)
            threads.run(native, count, arguments, 0, wanted or 1, used, repeats=now)

    def native(self, dtype: str, width: int) -> Native:
        """The machine code for blocks of ``width`` robots."""
        if dtype not in self._natives:
            raise UnknownNameError(f"dtype: expected {' or '.join(self._natives)}, got {dtype!r}")
        return self._natives[dtype].form(width)


def _chunk(native: Native, count: int, every: int) -> int:
    """Steps for one call of compiled code: a multiple of ``every``."""
    seconds = native.code.size / _BYTES_PER_SECOND * -(-count // native.width)
    return every * max(1, int(_CALL_SECONDS / seconds) // every)


def interpret(
    program: RolloutProgram, given: Mapping[str, Sequence[float]], steps: int, every: int = 1
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The definition: one robot, the loop run by the interpreter. Gives the same two dictionaries as a
    kernel.
    """
    from linkwise.compiler.ir.interpret import run_nest
    from linkwise.compiler.shapes import nest

    interface = program.interface
    arrays = {name: np.array(given[name], program.dtype).ravel() for name in given}
    for name, shape in interface.written.items():
        arrays[name] = np.empty(-(-steps // every) * math.prod(shape), program.dtype)
    run_nest(nest(program), arrays, steps=steps, every=every)
    return (
        {name: arrays[name] for name in interface.carried},
        {name: arrays[name].reshape(-1, *shape) for name, shape in interface.written.items()},
    )


def _check_steps(steps: int, every: int) -> None:
    if steps < 0 or every < 1:
        raise ValueError(f"steps and every: expected at least 0 and 1, got {steps} and {every}")
