"""A chunk in processes of its own, after a worker failed while it computed it: finds the points that end a process.

A process reports every call of a step before it makes it. If it dies, the next one calls that step point by point in
the block where it happened; if that dies, too, the point is known, and left out from then on.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linkwise.core import children
from linkwise.study.engines.attempts import Attempts
from linkwise.study.engines.local import ChunkOutcome

if TYPE_CHECKING:
    from linkwise.study.engines.chunks import Worker

MOST_DEATHS = 64
"""Of one chunk; then it is set aside as a whole."""


@dataclass
class WorkerTask:
    """What a process needs for its work."""

    make: Callable[[Any], Worker]
    job: Any
    chunk: int
    fatal: dict[int, tuple[str, str]] = field(default_factory=dict)
    single: set[int] = field(default_factory=set)
    """First points of the blocks that are computed point by point."""


def guarded(make: Callable[[Any], Worker], job: Any, chunk: int) -> ChunkOutcome:
    """Compute a chunk; ``make`` gives a worker for a job and can be pickled."""
    task = WorkerTask(make, job, chunk)
    how = ""
    for _ in range(MOST_DEATHS):
        last, result, how = _run(task)
        if isinstance(result, ChunkOutcome):
            return result
        if last is None:
            break
        step, block, first, count = last
        if count == 1:
            task.fatal[first] = (step, f"the process {how} at this point")
        else:
            task.single.add(block)
    return ChunkOutcome(chunk, None, f"a process of its own {how}")


def _run(task: WorkerTask) -> tuple[tuple[str, int, int, int] | None, Any, str]:
    """(last call that was begun, result, how the process ended)."""
    program = "from linkwise.study.engines import guarded; guarded.main()"
    command = children.command(program, current_folder=True)  # the user's functions may be there
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=children.environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps(task))
            process.stdin.close()
        except BrokenPipeError:
            pass  # it died early
        last, result = None, None
        with process.stdout as reports:
            while True:
                try:
                    report = pickle.load(reports)
                except (EOFError, pickle.UnpicklingError):
                    break
                if isinstance(report, tuple):
                    last = report
                else:
                    result = report
    return last, result, _how_it_ended(process.returncode)


def _how_it_ended(status: int) -> str:
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"ended with status {status}"


def main() -> None:
    """What a process does: the task comes by standard input, reports go to standard output; what is printed goes to
    standard error instead."""
    reports = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115  # open to the end
    os.dup2(2, 1)
    task: WorkerTask = pickle.load(sys.stdin.buffer)
    worker = task.make(task.job)

    def report(step: str, block: int, first: int, count: int) -> None:
        reports.write(pickle.dumps((step, block, first, count)))

    retries = worker.plan.description.retries
    worker.attempts = lambda: Attempts(retries, task.fatal, task.single.__contains__, report)
    from linkwise.study.engines.local import outcomes

    for outcome in outcomes(worker, [task.chunk]):
        reports.write(pickle.dumps(outcome))
    reports.close()
