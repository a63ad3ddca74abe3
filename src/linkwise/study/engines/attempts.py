"""A step at the points of a block, when it may fail at some of them: the block is narrowed down to those points.

A step that raises is called again with each half of its points, down to single ones. A point at which it keeps failing
has NaN for the results of this step and of all that take them, and is remembered with its error.
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwise.study.steps.base import Arrays, Step

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of a disk: they are not specific to a point or a chunk, so they stop the run."""
_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep


@dataclass(frozen=True)
class PointError:
    """A point that could not be computed: its number, the step, the error in one line, and where it came from."""

    point: int
    step: str
    error: str
    traceback: str


@dataclass
class Attempts:
    """How steps are called for one block after the other; ``errors`` are those of the block."""

    retries: int = 0
    fatal: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Points that end the process: the step that does, and how."""
    single: Callable[[int], bool] = lambda _: False
    """Whether the points of the block that begins at this one are to be computed one by one."""
    before: Callable[[str, int, int, int], None] = lambda *_: None
    """Called before a step is, with its name, the first points of block and call and how many."""
    errors: list[PointError] = field(default_factory=list)
    _failed: dict[str, np.ndarray] = field(default_factory=dict)
    """By the name of a result: at which points of the block it is missing."""

    def begin(self) -> None:
        """A new block."""
        self.errors.clear()
        self._failed.clear()

    def results(
        self, step: Step, given: Arrays, first: int, count: int, shapes: Mapping[str, tuple[int, ...]]
    ) -> Arrays:
        """The results of a step, arrays (count, *shape); NaN where there are none."""
        out = {name: np.full((count, *shape), np.nan) for name, shape in shapes.items()}
        usable = np.ones(count, dtype=bool)
        for name in step.takes:
            if name in self._failed:
                usable &= ~self._failed[name]
        for point, (name, error) in self.fatal.items():
            if name == step.name and first <= point < first + count:
                usable[point - first] = False
                self.errors.append(PointError(point, name, error, ""))
        done = np.zeros(count, dtype=bool)
        inputs = {name: given[name] for name in step.takes}
        for start, stop in _runs(usable):
            if self.single(first):
                for place in range(start, stop):
                    self._attempt(step, inputs, first, (place, place + 1), out, done)
            else:
                self._attempt(step, inputs, first, (start, stop), out, done)
        if not done.all():
            self._failed |= dict.fromkeys(out, ~done)
        return out

    def _attempt(
        self,
        step: Step,
        given: Arrays,
        first: int,
        part: tuple[int, int],
        out: Arrays,
        done: np.ndarray,
    ) -> None:
        start, stop = part
        problem: Exception | None = None
        for _ in range(1 + (self.retries if stop - start == 1 else 0)):
            problem = self._try(step, given, first, part, out)
            if problem is None:
                done[start:stop] = True
                return
        assert problem is not None
        if stop - start == 1:
            for array in out.values():
                array[start:stop] = np.nan
            self.errors.append(point_error(first + start, step.name, problem))
            return
        middle = (start + stop) // 2
        self._attempt(step, given, first, (start, middle), out, done)
        self._attempt(step, given, first, (middle, stop), out, done)

    def _try(
        self, step: Step, given: Arrays, first: int, part: tuple[int, int], out: Arrays
    ) -> Exception | None:
        """Call a step; what it raised."""
        start, stop = part
        # copies: what a function does to its arguments must not change the next attempt
        arguments = {name: array[start:stop].copy() for name, array in given.items()}
        self.before(step.name, first, first + start, stop - start)
        try:
            for name, array in step.computed(arguments, first + start).items():
                out[name][start:stop] = _in_shape_of(array, out[name][start:stop], name)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                raise
            return error
        return None


def _in_shape_of(array: np.ndarray, like: np.ndarray, name: str) -> np.ndarray:
    """A result, checked: broadcasting would hide a wrong shape."""
    if array.size != like.size:
        raise ValueError(f"{name}: expected shape {like.shape}, got {array.shape}")
    return array.reshape(like.shape)


def _runs(chosen: np.ndarray) -> list[tuple[int, int]]:
    """(start, stop) of every run of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def point_error(point: int, step: str, error: Exception) -> PointError:
    """The error of a point; its traceback begins where this package calls something else."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN):
        frames = frames.tb_next
    lines = traceback.format_exception(type(error), error, frames)
    said = " ".join(str(error).split())
    return PointError(point, step, f"{type(error).__name__}: {said}".rstrip(": "), "".join(lines))
