"""The public class ``Study``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.study import memory
from linkwise.study.description import describe, read_file
from linkwise.study.errors import StudyError
from linkwise.study.plan import Plan
from linkwise.study.results import Results


class Study:
    """A study that has been read and checked, ready to run."""

    def __init__(self, tables: Mapping[str, Any], folder: Path | None = None):
        self.plan = Plan(describe(tables, folder))

    @property
    def points(self) -> int:
        """How many points are computed: combinations of the grids times samples."""
        return self.plan.axes.points

    @property
    def chunks(self) -> int:
        """Into how many parts the points are cut, each committed on its own."""
        return self.plan.axes.chunks

    @property
    def shape(self) -> dict[str, int]:
        """The axes of the points: the grids, then the samples."""
        return dict(zip(self.plan.axes.names, self.plan.axes.shape, strict=True))

    def memory(self, threads: int = 1) -> int:
        """Bytes that a run with so many threads needs beside the interpreter itself, whatever the number of samples.

        Reductions over the samples (``over = "sample"``) are held for all combinations of the grids, and counted.
        """
        return memory.needed(self.plan, threads)

    @property
    def raw_bytes(self) -> int:
        """Bytes of all raw arrays before they are compressed."""
        return memory.of_raw_arrays(self.plan)

    def at(
        self, points: Sequence[int] | np.ndarray, names: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Variables and compiled results at points by their numbers: arrays (points, ...). Default: all variables."""
        chosen = list(names) if names is not None else [v.name for v in self.plan.description.variables]
        numbers = np.atleast_1d(np.asarray(points, dtype=np.int64))
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.points:
            raise StudyError(f"points: expected numbers from 0 to {self.points - 1}")
        for name in chosen:
            if name not in self.plan.trace.known:
                raise StudyError(
                    f"names: no {name!r} that is compiled; there are: {', '.join(self.plan.trace.known)}"
                )
        return self.plan.at(numbers, chosen)

    def run(
        self,
        out: str | os.PathLike[str],
        *,
        resume: bool = False,
        cluster: Any = None,
        threads: int | None = None,
        accept_changed_code: bool = False,
        progress: bool = True,
    ) -> Results:
        """Compute everything into the folder ``out``.

        ``resume`` completes a folder that was left unfinished, to the same bytes; it is refused where Linkwise, the
        robot or a function of your own changed since, unless ``accept_changed_code`` allows mixed results, which the
        folder then records. ``cluster`` is the address of a Dask scheduler, a ``distributed.Client`` or a cluster
        object such as ``LocalCluster``; default: ``threads`` of this process (None: all cores, or what
        LINKWISE_THREADS says). ``progress``: a bar on a terminal, elsewhere a line a minute, on standard error.
        """
        from contextlib import nullcontext

        from linkwise.study.progress import bar
        from linkwise.study.run import run

        resume, progress = flag("resume", resume), flag("progress", progress)
        accept_changed_code = flag("accept_changed_code", accept_changed_code)
        silent = lambda *_: nullcontext(lambda _: None)  # noqa: E731
        run(
            self.plan,
            out,
            resume=resume,
            cluster=cluster,
            threads=threads,
            accept_changed_code=accept_changed_code,
            bar=bar if progress else silent,
        )
        return Results(out)

    def __repr__(self) -> str:
        axes = " × ".join(f"{n} {name}" for name, n in self.shape.items()) or "1 point"
        return f"<Study of {self.plan.robot.name}: {axes}, {self.chunks} chunks>"


def make(description: str | os.PathLike[str] | Mapping[str, Any] | None, tables: Mapping[str, Any]) -> Study:
    """See ``linkwise.study``."""
    folder = None
    if isinstance(description, Mapping):
        settings = dict(description)
    elif description is not None:
        settings, folder = read_file(description)
    else:
        settings = {}
    return Study({**settings, **tables}, folder)
