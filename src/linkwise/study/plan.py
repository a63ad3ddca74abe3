"""A study made ready to run: the program, the columns it fills, and what is done with them.

The same description gives the same plan in every process, so that any of them can compute any chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.compiler.runtime.arrays import address
from linkwise.core.identity import digest
from linkwise.core.once import once
from linkwise.study import checks
from linkwise.study import sizes as sizing
from linkwise.study.description import Description
from linkwise.study.engines import devices
from linkwise.study.engines.attempts import Attempts
from linkwise.study.engines.devices import DeviceBlocks, DeviceProgram
from linkwise.study.engines.native import Native, columns, over_columns, stride_padding, tiles
from linkwise.study.errors import StudyError
from linkwise.study.quantities import STATES, Quantity, variable
from linkwise.study.reduce.keep import Failure, Keep
from linkwise.study.reduce.reductions import (
    CellMoments,
    CellQuantiles,
    Classes,
    Histograms,
    Moments,
    Reduction,
)
from linkwise.study.sampling.axes import Axes
from linkwise.study.sampling.points import Sampler
from linkwise.study.steps import formula
from linkwise.study.tracing import Trace

PROBES = 16
"""Points at which the steps are tried, one after the other, until one succeeds."""


@dataclass(frozen=True)
class Slot:
    """Where a quantity is among the values of a block."""

    quantity: Quantity
    start: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.quantity.size)


class Workspace:
    """The columns of one thread."""

    def __init__(self, plan: Plan, attempts: Attempts):
        self.inputs = columns(plan.sampler.rows, plan.sampler.width)
        self.values = columns(plan.rows, plan.block)
        self.both = np.array([address(self.inputs), address(self.values)])
        self.tiled = np.zeros(4, np.int64)
        self.device = DeviceBlocks(plan.on_device) if plan.on_device is not None else None
        self.attempts = attempts


class Plan:
    """What to compute for any run of points, and what is done with the results."""

    def __init__(self, description: Description):
        self.description = description
        self.robot = description.robot
        flags = [
            formula.read(f.flag, f.when, f"failures.{f.name}", description.robot)
            for f in description.failures
        ]
        checks.of_flags(flags, self._everything())
        self.trace = Trace(description.robot, description.variables, [*description.steps, *flags])
        self.later = self.trace.later
        checks.of_names(description, self.trace, self._everything())
        self.block = sizing.block(self.later)
        self.stride = self.block + stride_padding(self.block)
        self.names = self._traced_names()
        self.slots: dict[str, Slot] = {}
        self.rows = 0
        for name in self.names:
            self._place(self._traced_quantity(name))
        self.program = self.trace.program(self.names)
        self._probe()
        checks.of_arrays(description, [slot.quantity for slot in self.slots.values()])
        self.raws = [keep for keep in description.keeps if keep.raw]
        self.axes = self._axes(sizing.chunk(self))
        checks.of_cells(description, self.axes)
        self.sampler = self._sampler(self.axes)
        self.reductions = self._reductions()

    def _everything(self) -> list[str]:
        """Every name that there is."""
        names = [v.name for v in self.description.variables]
        names += [v.element[0] for v in self.description.variables if v.element]
        names += [name for step in self.description.steps for name in step.gives()]
        return list(dict.fromkeys(names))

    # -- layout ---------------------------------------------------------------------------------------------------

    def _traced_names(self) -> list[str]:
        """What the program computes: what is kept, and what later steps take; reduced quantities side by side."""
        wanted: dict[str, tuple] = {}
        for keep in self.description.keeps:
            wanted[keep.name] = (not keep.statistics, keep.by_cell, not keep.quantiles, not keep.histogram)
        last = (True, True, True, True, True)
        for failure in self.description.failures:
            for name in (failure.flag, *failure.keep):
                wanted.setdefault(name, last)
        for step in self.later:
            for name in step.takes:
                wanted.setdefault(name, last)
        return sorted((n for n in wanted if n in self.trace.known), key=lambda n: wanted[n])

    def _place(self, quantity: Quantity) -> None:
        self.slots[quantity.name] = Slot(quantity, self.rows)
        self.rows += quantity.size

    def _traced_quantity(self, name: str) -> Quantity:
        shape = self.trace.shape(name)
        for v in self.description.variables:
            if v.name == name:
                return v.quantity
        if name in STATES and name not in {n for step in self.trace.steps for n in step.gives()}:
            return variable(self.robot, name, self.robot.dof, False, None)  # put together from its elements
        step = next(s for s in self.trace.steps if name in s.gives())
        return step.quantity(self.robot, name, shape)

    def _axes(self, limit: int = 1) -> Axes:
        grid = tuple((v.name, len(v.values)) for v in self.description.variables if v.kind == "grid")
        drawn = any(v.draws for v in self.description.variables)
        return Axes(grid, self.description.samples if drawn or not grid else None, limit)

    def _sampler(self, axes: Axes) -> Sampler:
        return Sampler(axes, self.description.variables, self.description.seed, self.block)

    def _probe(self) -> None:
        """A few points, to see that the later steps run and what shapes they give."""
        if not self.later:
            return
        _ = (
            self.description.identity
        )  # of functions before their first call: they may change what they refer to
        axes = self._axes()
        self.sampler = self._sampler(axes)
        spread = np.unique(np.linspace(0, axes.points - 1, PROBES).astype(np.int64))
        problem: StudyError | None = None
        for points in (np.arange(min(2, axes.points)), *spread[:, np.newaxis]):
            try:
                placed = self._trial_results(points)
            except StudyError as error:
                problem = problem or error  # it may fail at these points only
                continue
            for quantity in placed:
                self._place(quantity)
            return
        assert problem is not None
        raise problem

    def _trial_results(self, points: np.ndarray) -> list[Quantity]:
        """The results of all later steps at some points: what they mean."""
        given, quantities = self.at(points, self.names), []
        for step in self.later:
            try:
                results = step.tried({name: given[name] for name in step.takes})
            except StudyError:
                raise
            except Exception as error:
                raise StudyError(f"compute.{step.name}: {type(error).__name__}: {error}") from error
            for name, array in results.items():
                quantities.append(step.quantity(self.robot, name, array.shape[1:]))
                given[name] = array
        return quantities

    # -- reductions ---------------------------------------------------------------------------------------------------

    def _reductions(self) -> dict[str, Reduction]:
        keeps = {keep.name: keep for keep in self.description.keeps}
        rows: list[Keep | None] = [None] * self.rows
        for name, slot in self.slots.items():
            rows[slot.rows] = [keeps.get(name)] * slot.quantity.size
        found: dict[str, Reduction] = {}

        def add(reduction: Reduction) -> None:
            found[f"{reduction.name}:{reduction.start}"] = reduction

        for start, run in _runs(rows, lambda k: bool(k.statistics) and not k.by_cell):
            add(Moments(start, len(run), self.stride))
        for start, run in _runs(rows, lambda k: bool(k.statistics) and k.by_cell):
            add(CellMoments(start, len(run), self.stride, self.axes))
        for start, run in _runs(rows, lambda k: bool(k.quantiles) and not k.by_cell):
            add(Classes(start, len(run), self.stride))
        for start, run in _runs(rows, lambda k: bool(k.quantiles) and k.by_cell):
            add(CellQuantiles(start, len(run), self.stride, self.axes, [k.quantiles for k in run]))
        for start, run in _runs(rows, lambda k: k.histogram is not None):
            add(Histograms(start, len(run), self.stride, [k.histogram for k in run if k.histogram]))
        return found

    def reduced(self, name: str, kind: str) -> tuple[str, slice]:
        """(key of the reduction of this kind that has a quantity, its rows there)."""
        slot = self.slots[name]
        for key, reduction in self.reductions.items():
            start = slot.start - reduction.start
            if reduction.name == kind and 0 <= start < reduction.rows:
                return key, slice(start, start + slot.quantity.size)
        raise KeyError((name, kind))

    # -- computing ----------------------------------------------------------------------------------------------------

    @once
    def _native(self) -> Native:
        return over_columns(self.program, (self.sampler.stride, self.stride))

    @once
    def _tiles(self) -> Native:
        return tiles()

    def _run_program(self, space: Workspace, count: int) -> None:
        if self.names:
            self._native(0, count, space.both)

    @once
    def on_device(self) -> DeviceProgram | None:
        """The program on a GPU, if this process is to use one."""
        return DeviceProgram(self.program, self.sampler) if self.names and devices.wanted() else None

    def compute(self, space: Workspace, first: int, count: int, end: int) -> None:
        """The values of a block, in the workspace; ``end`` is the end of the chunk."""
        if space.device is not None:
            space.device.copy(first, count, end, space.values)
        elif self.sampler.tiled and self.names:
            self._compute_tiles(space, first, count)
        else:
            self.sampler.fill(first, count, space.inputs)
            self._run_program(space, count)
        if self.later:
            self._run_later(space, first, count)

    def _compute_tiles(self, space: Workspace, first: int, count: int) -> None:
        self.sampler.fill_grids(first, space.inputs)
        program, (inputs, values) = self._native.address, space.both
        for generator, sample, offset, length in self.sampler.parts(first, count):
            space.tiled[:] = generator.address, program, inputs, values + 8 * offset
            self._tiles(sample, length, space.tiled)

    def _run_later(self, space: Workspace, first: int, count: int) -> None:
        given = self._arrays(space.values, count, self.names)
        space.attempts.begin()
        for step in self.later:
            shapes = {name: self.slots[name].quantity.shape for name in step.gives()}
            results = space.attempts.results(step, given, first, count, shapes)
            for name, array in results.items():
                space.values[self.slots[name].rows, :count] = array.reshape(count, -1).T
                given[name] = array

    def _arrays(self, values: np.ndarray, count: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Columns as arrays (count, *shape)."""
        arrays = {}
        for name in names:
            slot = self.slots[name]
            arrays[name] = np.ascontiguousarray(values[slot.rows, :count].T).reshape(
                count, *slot.quantity.shape
            )
        return arrays

    def at(self, points: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Variables and traced results at any points: arrays (points, *shape)."""
        known = set(names) <= set(self.names)  # then it has the bits of what is kept
        program = self.program if known else self.trace.program(names)
        sizes = [int(np.prod(shape, dtype=int)) for _, shape in program.outputs]
        inputs, values = columns(self.sampler.rows, sizing.BLOCK), columns(sum(sizes), sizing.BLOCK)
        run = over_columns(program, (inputs.shape[1], values.shape[1]))
        arguments = np.array([address(inputs), address(values)])
        rows = np.empty((sum(sizes), len(points)))
        for start in range(0, len(points), sizing.BLOCK):
            part = points[start : start + sizing.BLOCK]
            self.sampler.fill_at(part, inputs)
            run(0, len(part), arguments)
            rows[:, start : start + len(part)] = values[: sum(sizes), : len(part)]
        result, row = {}, 0
        for (name, shape), size in zip(program.outputs, sizes, strict=True):
            if name in names:
                result[name] = np.ascontiguousarray(rows[row : row + size].T).reshape(len(points), *shape)
            row += size
        return result

    def variables_at(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The values of all variables at points: a column for each element, by its label."""
        columns: dict[str, np.ndarray] = {}
        values = self.at(points, [v.name for v in self.description.variables])
        for v in self.description.variables:
            flat = values[v.name].reshape(len(points), -1).T
            columns |= dict(zip(v.quantity.labels(self.robot), flat, strict=True))
        return columns

    # -- facts --------------------------------------------------------------------------------------------------------

    def quantity(self, name: str) -> Quantity:
        return self.slots[name].quantity

    def layout(self) -> dict[str, str]:
        """What is computed, and what the elements of each are called: the same for all that goes into one store."""
        return {
            name: f"{slot.quantity.shape} {digest(*map(str.encode, slot.quantity.labels(self.robot)))[:16]}"
            for name, slot in self.slots.items()
        }

    def by_sample(self, name: str) -> bool:
        """Whether a quantity is the same at every combination of the grids: a drawn variable."""
        for v in self.description.variables:
            if v.name == name:
                mixed = any(
                    e.element and e.element[0] == name and e.kind == "grid"
                    for e in self.description.variables
                )
                return bool(v.draws) and not mixed
        return False

    @property
    def points(self) -> int:
        """Known before the size of the chunks is."""
        return self._axes().points

    def failures(self) -> Iterator[tuple[Failure, int, list[str], list[int]]]:
        """(failure, row of its flag, names of its columns, their rows)."""
        for failure in self.description.failures:
            names, rows = [], []
            for name in failure.keep:
                slot = self.slots[name]
                names += slot.quantity.labels(self.robot)
                rows += range(slot.rows.start, slot.rows.stop)
            yield failure, self.slots[failure.flag].start, names, rows


def _runs(rows: Sequence[Keep | None], chosen) -> Iterator[tuple[int, list[Keep]]]:
    """(first row, rows) of every run of rows that are chosen."""
    run: list[Keep] = []
    for k, keep in enumerate([*rows, None]):
        if keep is not None and chosen(keep):
            run.append(keep)
        elif run:
            yield k - len(run), run
            run = []
