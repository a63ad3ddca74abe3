"""The same chunks on Dask distributed: tasks of a few chunks each, sent as fast as they come back.

A worker builds the plan once from the description, computes chunks, writes raw arrays and tables straight to the
store (which it must see under the same path) and returns the rest. When a worker fails nothing is lost: Dask assigns
its task to another one, and a chunk that is written twice has the same bytes. A worker with other code, or without the
store, that joins during a run gets no tasks after its first error; that one is given to another worker.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linkwise.errors import LinkwiseError, first_line, warn
from linkwise.robot.loading import load
from linkwise.robot.robot import Robot
from linkwise.study import identity
from linkwise.study.description import Description, describe
from linkwise.study.engines import devices
from linkwise.study.engines.chunks import Worker
from linkwise.study.engines.guarded import guarded
from linkwise.study.engines.local import ChunkOutcome, Engine, outcomes
from linkwise.study.errors import StoppedError, StudyError, StudyWarning, needed
from linkwise.study.identity import Identity
from linkwise.study.plan import Plan
from linkwise.study.steps.call import CallStep
from linkwise.study.store import files
from linkwise.study.store.folder import Store, read_study

CONNECT_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
"""How long a cluster may be without workers."""
ASKING_SECONDS = 1.0
"""How often the scheduler is asked for the number of threads."""
TASK_SECONDS = 0.5
"""What a task should last, so that scheduling it costs next to nothing."""
MOST_CHUNKS = 256
"""Of a task."""
TASKS_PER_THREAD = 2
"""In flight: one that runs and one that waits."""


@dataclass(frozen=True)
class Job:
    """Everything that a worker needs."""

    tables: dict[str, Any]
    robot: Robot | None
    robot_source: str | None
    robot_options: dict[str, Any]
    digest: str
    identity: str
    """Digest of what the driver computes with."""
    path: str = ""
    """Of the store."""

    def loaded_robot(self) -> Robot:
        """The robot: sent along, or read where the worker is."""
        return self.robot if self.robot is not None else load(self.robot_source or "", **self.robot_options)


def job_for(plan: Plan) -> Job:
    description = plan.description
    for step in description.steps:
        if isinstance(step, CallStep) and "call" not in description.tables["compute"][step.name]:
            raise StudyError(
                f"compute.{step.name}: an object of this process cannot be sent to a cluster; "
                'name it: call = "module:name"'
            )
    return Job(
        dict(description.tables),
        description.robot if description.robot_source is None else None,
        description.robot_source,
        dict(description.robot_options),
        description.digest(),
        identity.digest(description.identity),
    )


# -- on the workers ---------------------------------------------------------------------------------------------------


def fault(job: Job, expected: Identity) -> str | None:
    """What this worker lacks for a job, or how it differs from the driver, in a few words."""
    try:
        own = _description(job).identity
    except (LinkwiseError, OSError) as error:
        return f"cannot read the study: {error}"
    if identity.digest(own) != job.identity:
        changed = identity.changes(expected, own, identity.THERE)
        return f"has other code or another robot: {identity.listed(changed)}; restart it with the same"
    if devices.wanted():
        try:
            devices.arrays()
        except StudyError as error:
            return f"cannot be used: {error}"
    return None


def _description(job: Job) -> Description:
    """The study as this worker sees it."""
    return describe(job.tables, robot=job.loaded_robot(), robot_source=job.robot_source)


def blind(job: Job) -> str | None:
    """Why this worker cannot write to the store of a job."""
    try:
        known = read_study(Path(job.path))
        if known["digest"] != job.digest:
            return f"finds another study in {job.path}"
    except LinkwiseError:
        return f"cannot access the store {job.path}; it must be on a file system that all workers share"
    return None


_workers: dict[tuple[str, str, str], Worker] = {}
_making = threading.Lock()


def run_chunks(job: Job, chunks: Sequence[int]) -> tuple[list[ChunkOutcome], float]:
    """(what became of each chunk, seconds they took)."""
    worker = _worker(job)
    start = time.perf_counter()
    if any(isinstance(step, CallStep) for step in worker.plan.later):
        chunk_outcomes = [_outcome_with_marker(job, worker, chunk) for chunk in chunks]
    else:
        chunk_outcomes = list(outcomes(worker, chunks))
    return chunk_outcomes, time.perf_counter() - start


def _worker(job: Job) -> Worker:
    """Made once for a job; threads of one process share it."""
    key = (job.path, job.digest, job.identity)
    with _making:
        if key not in _workers:
            # it may have joined after the check
            problem = blind(job) or fault(job, read_study(Path(job.path)).get("identity") or {})
            if problem:
                raise StudyError(f"a worker {problem}")
            _workers.clear()
            _workers[key] = worker_for(job)
        return _workers[key]


def worker_for(job: Job) -> Worker:
    """What computes the chunks of a job."""
    plan = Plan(_description(job))
    return Worker(plan, Store(job.path, plan))


def _outcome_with_marker(job: Job, worker: Worker, chunk: int) -> ChunkOutcome:
    """What becomes of a chunk with functions of the user, which may end the process: a marker file exists while it is
    computed, and a worker that finds one computes the chunk in separate processes."""
    mark = files.mark(worker.store.path, f"chunk-{chunk}")
    if mark.exists():
        return guarded(worker_for, job, chunk)
    mark.touch()
    try:
        return next(outcomes(worker, [chunk]))
    finally:
        mark.unlink(missing_ok=True)


# -- here -------------------------------------------------------------------------------------------------------------


_LOST = object()  # a result that is gone: its chunks are computed again, with the same bytes


@dataclass(frozen=True)
class _Task:
    """Chunks that were sent."""

    chunks: list[int]
    workers: frozenset[str]
    """That may take it; empty: any."""
    unfit_before: int
    """Workers that were known to be unfit when it was sent."""


class ClusterEngine(Engine):
    """A connection to a scheduler; the workers are checked before anything is computed."""

    def __init__(self, cluster: Any, plan: Plan):
        self._job = job_for(plan)
        self._client, self._own = _client(cluster)
        self._address = cluster if isinstance(cluster, str) else _address_of(self._client)
        self._asked: tuple[float, frozenset[str], int] = (-ASKING_SECONDS, frozenset(), 0)
        self._identity = plan.description.identity
        self._alone: float | None = None
        """Since when there are no workers."""
        self._unfit: dict[str, str] = {}
        """Workers that get no tasks, with the reason."""
        try:
            if not self._client.nthreads():
                raise StudyError(f"cluster {self._address}: the scheduler has no workers")
            self._ask(fault, plan.description.identity)
        except BaseException:
            self.close()
            raise

    def meet(self, store: Store) -> None:
        self._job = replace(self._job, path=str(store.path.resolve()))
        self._ask(blind)

    def _ask(self, question: Callable[..., str | None], *more: Any) -> None:
        """Check every worker; an error names the first one that cannot be used."""
        try:
            faults = self._client.run(question, self._job, *more)
        except Exception as error:
            raise StudyError(
                f"cluster {self._address}: the workers cannot run linkwise ({first_line(error)})"
            ) from None
        for worker, problem in sorted(faults.items()):
            if problem:
                raise StudyError(f"cluster {self._address}: worker {worker} {problem}")

    @property
    def threads(self) -> int:
        return sum(self._client.nthreads().values())

    def close(self) -> None:
        if not self._own:
            return
        with suppress(OSError, TimeoutError, CancelledError):  # the scheduler may be gone already
            self._client.close(timeout=2)

    def run(self, plan: Plan, store: Store, chunks: Sequence[int]) -> Generator[ChunkOutcome]:
        todo = list(reversed(chunks))
        flying: dict[Any, _Task] = {}
        landed: queue.SimpleQueue = queue.SimpleQueue()
        size = 1
        tried: set[int] = set()

        def send(part: list[int]) -> None:
            chosen = {"workers": sorted(self._fit()), "allow_other_workers": False} if self._unfit else {}
            future = self._client.submit(run_chunks, self._job, part, pure=False, **chosen)
            flying[future] = _Task(part, frozenset(chosen.get("workers", ())), len(self._unfit))
            future.add_done_callback(landed.put)

        while todo or flying:
            with self._talking():
                while todo and len(flying) < self._room():
                    send([todo.pop() for _ in range(min(size, len(todo)))])
                future = self._next(landed)
                for stranded in self._tasks_without_worker(flying):
                    send(flying.pop(stranded).chunks)
                    stranded.cancel()
                task = flying.pop(future, None)
                if task is None:  # nothing came for a while, or it was sent again
                    continue
                part = task.chunks
                result = self._result(future)
                if result is _LOST or (future.status == "error" and self._was_unfit(future, task)):
                    outcomes = []
                    send(part)
                elif result is not None:
                    outcomes, seconds = result
                    size = _task_size(seconds / len(part))
                elif future.status != "error" or (len(part) == 1 and not _was_killed(future, part, tried)):
                    outcomes = [self._failure(future, part[0])]
                else:
                    outcomes = []
                    for chunk in part:  # find out which of them it was
                        send([chunk])
            yield from outcomes

    def _result(self, future: Any) -> Any:
        """What a task returned; None where it failed, ``_LOST`` where the worker that held its result died since."""
        if future.status in ("pending", "lost"):
            return _LOST
        if future.status != "finished":
            return None
        try:
            return future.result()
        except (OSError, TimeoutError, CancelledError):
            if self._client.status != "running":
                raise
            return _LOST

    def _room(self) -> int:
        """Tasks that may be in flight; the number of threads is read from the scheduler at intervals."""
        return TASKS_PER_THREAD * max(1, self._workers()[1])

    def _fit(self) -> frozenset[str]:
        """The workers that get tasks."""
        return self._workers()[0]

    def _workers(self) -> tuple[frozenset[str], int]:
        """(workers that get tasks, their threads)."""
        when, known, threads = self._asked
        if time.monotonic() - when > ASKING_SECONDS:
            present = self._present()
            if present is not None:
                there = {name: n for name, n in present.items() if name not in self._unfit}
                known, threads = frozenset(there), sum(there.values())
            self._asked = (time.monotonic(), known, threads)
        return known, threads

    def _present(self) -> dict[str, int] | None:
        """The workers and their threads; None where the scheduler is there but too busy to answer in time."""
        try:
            return self._client.nthreads()
        except (OSError, TimeoutError):
            if self._client.status != "running":
                raise
            return None

    def _was_unfit(self, future: Any, task: _Task) -> bool:
        """Whether a task failed because its worker has other code or does not see the store: then every worker is
        asked again, and those that cannot be used get no more tasks."""
        error = future.exception()
        if isinstance(error, StoppedError) or type(error).__name__ == "KilledWorker":
            return False
        if len(self._unfit) > task.unfit_before:
            return True  # it was sent before that was known
        for question, more in ((fault, (self._identity,)), (blind, ())):
            answers = self._client.run(question, self._job, *more, on_error="return")
            for worker, answer in answers.items():
                if answer is not None and worker not in self._unfit:
                    reason = first_line(answer) if isinstance(answer, BaseException) else answer
                    self._unfit[worker] = reason
                    warn(
                        f"cluster {self._address}: worker {worker} {reason}; it gets no chunks of this study",
                        StudyWarning,
                    )
        self._asked = (-ASKING_SECONDS, frozenset(), 0)
        return len(self._unfit) > task.unfit_before

    def _tasks_without_worker(self, flying: dict[Any, _Task]) -> list[Any]:
        """Tasks that none of the present workers may take."""
        fit = self._fit() if self._unfit else frozenset()
        return [
            future
            for future, task in flying.items()
            if fit and task.workers and not task.workers & fit and future.status == "pending"
        ]

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Every error of the connection to the scheduler means that it is lost."""
        try:
            yield
        except (OSError, TimeoutError, CancelledError):
            raise StoppedError(f"cluster {self._address}: the scheduler is gone") from None

    def _next(self, landed: queue.SimpleQueue) -> Any:
        """The next finished task, or None after a second; gives up on a cluster without workers after some time."""
        try:
            return landed.get(timeout=1.0)
        except queue.Empty:
            if self._client.status != "running":
                raise StoppedError(f"cluster {self._address}: the scheduler is gone") from None
            present = self._present()
            if present is None or set(present) - set(self._unfit):
                self._alone = None
            elif self._alone is None:
                self._alone = time.monotonic()
            elif time.monotonic() - self._alone > PATIENCE_SECONDS:
                unfit = f" but {len(self._unfit)} that cannot be used" if self._unfit else ""
                raise StoppedError(
                    f"cluster {self._address}: no workers{unfit} for {PATIENCE_SECONDS:.0f} s"
                ) from None
            return None

    def _failure(self, future: Any, chunk: int) -> ChunkOutcome:
        if future.status != "error":
            raise StoppedError(f"cluster {self._address}: the scheduler is gone")
        error = future.exception()
        if isinstance(error, StoppedError):
            raise error
        return ChunkOutcome(chunk, None, f"{type(error).__name__}: {first_line(error)}")


def _client(cluster: Any) -> tuple[Any, bool]:
    """(client, whether it is to be closed) for an address, a client, or an object that a client can be made of."""
    distributed = needed("distributed")
    if isinstance(cluster, distributed.Client):
        if cluster.asynchronous:
            raise StudyError(
                "cluster: an asynchronous Client cannot be used; give one that is not, or an address"
            )
        if cluster.status != "running":
            raise StudyError(f"cluster: the Client is {cluster.status}")
        return cluster, False
    if not isinstance(cluster, str):
        if not hasattr(cluster, "scheduler_address"):
            raise StudyError(
                f"cluster: expected an address, a Client or a cluster of Dask, got a {type(cluster).__name__}"
            )
        return distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False), True
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        _reach(cluster)
        return distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False), True
    except (OSError, ValueError, TimeoutError, TypeError, RuntimeError) as error:
        hint = ""
        if cluster.startswith("tls://"):
            hint = "; certificates come from the configuration of Dask: distributed.comm.tls"
        raise StudyError(
            f"cluster {cluster}: no scheduler answers there ({first_line(error)}){hint}"
        ) from None


def _address_of(client: Any) -> str:
    return getattr(client.scheduler, "address", "") or repr(client)


def _reach(address: str) -> None:
    """Probe the scheduler before a client is made: one that cannot connect retries its shutdown and logs errors."""
    connect = needed("distributed.comm").connect
    security = needed("distributed.security").Security()  # from Dask's configuration, as a client has it
    arguments = security.get_connection_args("client")

    async def probe() -> None:
        connection = await connect(address, timeout=CONNECT_SECONDS, **arguments)
        await connection.close()

    with ThreadPoolExecutor(1) as other:  # which has no event loop yet
        other.submit(lambda: asyncio.run(probe())).result()


def _was_killed(future: Any, part: list[int], tried: set[int]) -> bool:
    """Whether workers were killed while computing a chunk, for the first time: the next attempt runs it in separate
    processes."""
    killed = type(future.exception()).__name__ == "KilledWorker" and not tried & set(part)
    tried.update(part)
    return killed


def _task_size(seconds: float) -> int:
    """Chunks of a task, given what one of them takes."""
    return max(1, min(MOST_CHUNKS, int(TASK_SECONDS / max(seconds, 1e-6))))
