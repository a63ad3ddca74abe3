"""What a study costs beside the kernel it runs, what its store takes, and whether it survives being killed.

    python benchmarks/study.py throughput [--points 1e8]   states generated in the kernel, reductions kept
    python benchmarks/study.py raw [--points 1e8]          raw torques kept, beside the store's own bandwidth
    python benchmarks/study.py scheduling                  cost of a chunk: embedded, and on a Dask cluster
    python benchmarks/study.py kill [--trials 20]          kill -9 of workers and drivers at random moments
    python benchmarks/study.py flips [--trials 1000]       single flipped bits anywhere in a store: how many are found
    python benchmarks/study.py power                       every state that a loss of power could leave, resumed

Kernel and study run in turns, so that what else the machine does falls on both. Seconds are those on the clock and,
where that says "processor", those that the process spent computing: on a machine with other work to do the second
is what the code costs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

import linkwise as lw
from linkwise.study import run as running
from linkwise.study.store.folder import Store

sys.path[0] = str(
    Path(__file__).parents[1] / "tests" / "study"
)  # a cluster, a small study; not its own folder

BATCH = 4096  # states of a call of the bare kernel: where it is fastest, they stay in the second cache
PANDA = {
    "robot": "panda",
    "seed": 1,
    "vary": {"q": {"uniform": "limits"}, "qd": {"uniform": [-1.0, 1.0]}, "qdd": {"uniform": [-3.0, 3.0]}},
    "compute": {"tau": {"function": "inverse_dynamics"}},
}
REDUCED = {"tau": ["mean", "variance", "min", "max"]}

T = TypeVar("T")


class Clock:
    """Seconds on the clock and of the processor, added up over several stretches."""

    def __init__(self):
        self.wall = self.processor = 0.0

    def time(self, work: Callable[[], T]) -> T:
        wall, processor = time.perf_counter(), time.process_time()
        found = work()
        self.wall += time.perf_counter() - wall
        self.processor += time.process_time() - processor
        return found


def bare_kernel(threads: int) -> Callable[[float], int]:
    """Runs the kernel for so many seconds, every thread on arrays of its own; gives the number of states."""
    kernel = lw.load("panda").kernel("inverse_dynamics")
    given = [np.random.default_rng(k).uniform(-1, 1, (3, BATCH, 7)) for k in range(threads)]
    found = [np.empty((BATCH, 7)) for _ in range(threads)]
    kernel(*given[0], out=found[0], threads=1)

    def run(seconds: float) -> int:
        counts = [0] * threads
        end = time.perf_counter() + seconds

        def work(k: int) -> None:
            while time.perf_counter() < end:
                kernel(*given[k], out=found[k], threads=1)
                counts[k] += BATCH

        team = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        return sum(counts)

    return run


def throughput(points: int, threads: int, rounds: int, quantiles: bool) -> None:
    keep = {"tau": {"statistics": REDUCED["tau"], **({"quantiles": [0.01, 0.5, 0.99]} if quantiles else {})}}
    study = lw.study(PANDA, samples=points, keep=keep)
    kernel = bare_kernel(threads)
    bare, studied = [], []  # (states a second on the clock, processor seconds a state)
    with tempfile.TemporaryDirectory() as folder:
        lw.study(PANDA, samples=points // 50, keep=keep).run(
            f"{folder}/warm", threads=threads, progress=False
        )
        for k in range(rounds):
            for found, work in (
                (bare, lambda: kernel(1.0)),
                (studied, lambda k=k: study.run(f"{folder}/{k}", threads=threads, progress=False) and points),
            ):
                clock = Clock()
                states = clock.time(work)
                found.append((states / clock.wall, clock.processor / states))
    kept = "statistics and quantiles" if quantiles else "statistics"
    print(f"{points:.0e} inverse dynamics of a Panda, {threads} threads, {kept}; {rounds} rounds in turns")
    print(f"{'':28}{'M states/s':>12}{'processor ns/state':>20}")
    for name, found in (("kernel on arrays", bare), ("study", studied)):
        rate, cost = (median(column) for column in zip(*found, strict=True))
        print(f"{name:28}{rate / 1e6:12.1f}{1e9 * cost:20.1f}")
    shares = [s[0] / b[0] for s, b in zip(studied, bare, strict=True)]
    own = [b[1] / s[1] for s, b in zip(studied, bare, strict=True)]
    print(
        f"of the kernel, median of the rounds: {median(shares):.0%} on the clock, {median(own):.0%} by processor"
    )
    print(f"  each round on the clock: {' '.join(f'{share:.0%}' for share in shares)}")
    say_memory(study, threads)


def say_memory(study, threads: int) -> None:
    stated = study.memory(threads) / 2**20
    print(f"memory: stated {stated:.0f} MiB; the process had {peak() / 2**20:.0f} MiB at most")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def raw(points: int, threads: int, rounds: int, folder: str | None, compression: str | None) -> None:
    keep = {"tau": {"raw": True, "statistics": REDUCED["tau"]}}
    more = {} if compression is None else {"compression": compression}
    study = lw.study(PANDA, samples=points, keep=keep, **more)
    size = 56 * study.points
    own, studied, shown, kept = [], [], "", 0
    with tempfile.TemporaryDirectory(dir=folder) as place:
        values = np.ascontiguousarray(study.at(np.arange(study.plan.axes.limit), ["tau"])["tau"].T)
        for k in range(-1, rounds):  # the first one is not counted
            for found, name in ((own, "own"), (studied, "study"), (own, "own")):
                path, clock = Path(place) / name, Clock()
                if name == "own":
                    store = Store(path, study.plan)
                    store.create()
                    clock.time(lambda store=store: write_all(store, study, values, threads))
                else:
                    clock.time(lambda path=path: study.run(path, threads=threads, progress=False))
                    kept = sum(file.stat().st_size for file in (path / "data.zarr" / "tau").rglob("c/*/*"))
                    data = lw.open_study(path).dataset()
                    shown = str(data.tau.isel(sample=slice(0, 2)).load())
                shutil.rmtree(path)
                if k >= 0:
                    found.append(clock)
    print(shown)
    where = folder or "the temporary folder"
    used = study.plan.description.compression
    print(f"{points:.0e} torques of a Panda kept ({56e-9 * points:.1f} GB), {threads} threads, in {where}")
    print(f"{used}: to {kept / size:.0%} of their size; {rounds} rounds in turns, medians")
    rates = [median(size / clock.wall for clock in clocks) / 1e6 for clocks in (own, studied)]
    beside = zip(own[::2], studied, own[1::2], strict=True)  # the store before the study, and after it
    shares = [(a.wall + c.wall) / (2 * b.wall) for a, b, c in beside]
    print(f"the store alone {rates[0]:.0f} MB/s, the study {rates[1]:.0f} MB/s: {median(shares):.0%} of it")
    print(f"  each round: {' '.join(f'{share:.0%}' for share in shares)}")
    each = [1e9 * median(clock.processor for clock in clocks) / study.points for clocks in (own, studied)]
    print(
        f"processor: {each[0]:.0f} ns a state to encode and write, {each[1]:.0f} ns with all that is computed"
    )
    say_memory(study, threads)


def write_all(store: Store, study, values: np.ndarray, threads: int) -> None:
    """The same values as every chunk of the store, as a study writes them: one is written, the next is encoded."""
    numbers = iter(range(study.chunks))
    lock = threading.Lock()

    def work() -> None:
        with ThreadPoolExecutor(1) as writer:
            before = None
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                chunk = study.plan.axes.chunk(number)
                shard = store.shards(chunk)["tau"]
                for start in range(0, chunk.count, study.plan.block):
                    shard.add(values[:, start : min(start + study.plan.block, chunk.count)])
                shard.finish()
                if before is not None:
                    before.result()
                before = writer.submit(shard.put)

    team = [threading.Thread(target=work) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()


LOOPS = {
    "robot": "puma_valera",
    "seed": 1,
    "vary": {"inertia": {"labels": "*.[mhI]*", "relative": True, "uniform": [0.8, 1.2], "together": "link"}},
    "compute": {
        "run": {
            "simulate": "tracking",
            "duration": 1.0,
            "gains": {"frequency": 8.0},
            "reference": {"to": 0.5},
        }
    },
    "keep": {"run.max_error": ["max"]},
}
"""Closed loops of a second, six joints, steps of a millisecond by Runge and Kutta's rule."""


def scheduling(share: float = 1.0) -> None:
    """Chunks with next to nothing in them: what each costs beyond the first few; then what that means for clusters.

    ``share`` of the points are computed.
    """
    from processes import Cluster

    from linkwise.study.engines import cluster as engine

    tables = {**PANDA, "chunk": 64, "keep": REDUCED}

    def cost(what: str, counts: tuple[int, int], scheduler: int | None = None, **options) -> float:
        """Seconds of a chunk, of the busier of driver and scheduler."""
        small, large = (64 * max(2 + k, int(share * count)) for k, count in enumerate(counts))
        found = [64 * seconds for seconds in per_point(tables, (small, large), scheduler, **options)]
        wall, driver, other = (1e3 * seconds for seconds in found)
        print(
            f"{what}: {wall:.2f} ms on the clock for a chunk, {driver:.2f} ms of the driver's processor",
            end="",
        )
        print(f", {other:.2f} ms of the scheduler's" if scheduler else "")
        return max(found[1:])

    cost("embedded, one thread", (200, 8000), threads=1)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        far = {"scheduler": cluster.scheduler.pid, "cluster": cluster.address}
        try:
            chunk = cost("two workers, tasks of up to 0.5 s", (400, 16000), **far)
            engine.MOST_CHUNKS = 1
            task = cost("two workers, a task for every chunk", (100, 1600), **far)
        finally:
            cluster.close()
    many = int(share * (1 << 24))
    state = per_point({**PANDA, "keep": REDUCED}, (many >> 4, many), None, threads=1)[1]
    loop = per_point(LOOPS, (64, 576) if share == 1.0 else (8, 16), None, threads=1)[1]
    print(
        f"one thread: {1e9 * state:.1f} ns for a Panda's state, {1e6 * loop:.0f} µs for a closed loop of 1 s"
    )
    print(
        f"largest useful cluster: W = min(max(T, t) / s, t / d) with T = 0.5 s, s = {1e3 * task:.2f} ms,",
        end=" ",
    )
    print(f"d = {1e3 * chunk:.2f} ms (processor seconds of the busier of driver and scheduler)")
    task, chunk = max(task, 1e-9), max(chunk, 1e-9)  # a difference of short runs may be none
    print(f"{'chunk':36}{'t [s]':>10}{'max(T, t)/s':>14}{'t/d':>10}{'W threads':>12}")
    for name, t in (
        *((f"2^{k} states of a Panda", state * 2**k) for k in (17, 20, 24, 27)),
        ("4096 closed loops of 1 s", 4096 * loop),
        ("4096 closed loops of 10 s", 40960 * loop),
    ):
        by_task, by_driver = max(engine.TASK_SECONDS, t) / task, t / chunk
        print(f"{name:36}{t:10.3g}{by_task:14.0f}{by_driver:10.0f}{min(by_task, by_driver):12.0f}")


def per_point(
    tables: dict, counts: tuple[int, int], scheduler: int | None, **options
) -> tuple[float, float, float]:
    """Seconds of a point on the clock, of this processor and of the scheduler's: the difference of two runs."""
    import psutil

    def used() -> tuple[float, float, float]:
        other = psutil.Process(scheduler).cpu_times() if scheduler else None
        return time.perf_counter(), time.process_time(), other.user + other.system if other else 0.0

    spent = []
    for points in (counts[0], *counts):  # the first one is not counted: packages are imported
        study = lw.study(tables, samples=points)
        with tempfile.TemporaryDirectory() as place:
            before = used()
            study.run(f"{place}/s", progress=False, **options)
            spent.append([after - start for after, start in zip(used(), before, strict=True)])
    more = counts[1] - counts[0]
    wall, own, other = ((many - few) / more for few, many in zip(*spent[1:], strict=True))
    return wall, own, other


RUN = """
import json, sys, linkwise as lw
cluster = sys.argv[3] or None
lw.study(json.load(open(sys.argv[1]))).run(sys.argv[2], cluster=cluster, progress=False)
"""


class Killing:
    """A small study that is killed at random moments, in the middle of its run, and resumed."""

    def __init__(self, folder: Path, cluster, samples: int):
        from stores import SMALL, contents

        self.folder, self.cluster, self.contents = folder, cluster, contents
        self.tables = {**SMALL, "samples": samples, "chunk": 4096}
        self.random = random.Random(0)
        self.expected = contents(self.run(folder / "whole"))
        self.files = sum("/tau/c/" in name for name in self.expected)
        (folder / "study.json").write_text(json.dumps(self.tables))

    def run(self, store: Path, cluster: str | None = None, resume: bool = False) -> Path:
        return lw.study(self.tables).run(store, cluster=cluster, resume=resume, progress=False).path

    def same(self, store: Path) -> bool:
        found = self.contents(store) == self.expected
        shutil.rmtree(store)
        return found

    def trials(self, what: str, trial: Callable[[int, Path], bool | None], count: int) -> None:
        """Trials until so many were in time; None: the run was over before it was killed."""
        same: list[bool] = []
        late = 0
        while len(same) < count:
            found = trial(len(same), self.folder / f"store{len(same)}-{late}")
            if found is None:
                late += 1
            else:
                same.append(found)
        print(f"{what} killed, {count} trials: {sum(same)} identical afterwards ({late} more came too late)")

    def _wait(self, store: Path, going: Callable[[], bool]) -> str:
        """Until a random part of all raw files is there."""
        wanted = self.random.randrange(self.files - self.files // 10)
        while going() and len(list(store.rglob("tau/c/*/*/*"))) < wanted:
            time.sleep(0.002)
        return f"with {wanted} of {self.files} raw files written"

    def driver(self, number: int, store: Path) -> bool | None:
        """Embedded and on the cluster in turns; who resumes it changes, too."""
        far = self.cluster.address if number % 2 else ""
        command = [sys.executable, "-c", RUN, str(self.folder / "study.json"), str(store), far]
        process = subprocess.Popen(command)
        when = self._wait(store, lambda: process.poll() is None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not (store / "journal").exists():
            shutil.rmtree(store, ignore_errors=True)
            return None
        self.run(store, self.cluster.address if number // 2 % 2 else None, resume=True)
        same = self.same(store)
        print(f"  {'cluster' if far else 'embedded'} driver killed {when}: {'same' if same else 'DIFFERENT'}")
        return same

    def worker(self, number: int, store: Path) -> bool | None:
        run = threading.Thread(target=self.run, args=(store, self.cluster.address))
        run.start()
        when = self._wait(store, run.is_alive)
        alive = run.is_alive()
        self.cluster.kill_worker(self.random.randrange(len(self.cluster.workers)))
        self.cluster.add_worker()
        run.join()
        self.cluster.wait(2)
        same = self.same(store)
        if not alive:
            return None
        print(f"  worker killed {when}: {'same' if same else 'DIFFERENT'}")
        return same


def kill(trials: int, samples: int) -> None:
    from processes import Cluster

    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(Path(name))
        try:
            killing = Killing(Path(name), cluster, samples)
            killing.trials("driver", killing.driver, trials)
            killing.trials("worker", killing.worker, trials)
        finally:
            cluster.close()


def flips(trials: int) -> None:
    """In a complete store, in one that was stopped halfway and in one with points that failed."""
    import faults
    from stores import SMALL

    from linkwise.study.engines.local import LocalEngine
    from linkwise.study.errors import StoppedError
    from linkwise.study.store.verify import verify

    class Half(LocalEngine):
        def run(self, plan, store, chunks):
            yield from super().run(plan, store, chunks[: len(chunks) // 2])
            raise StoppedError("halfway")

    def fails(q):
        if (abs(q[:, 0]) < 0.01).any():
            raise ValueError("no solution")
        return q.sum(axis=1)

    bad = {**faults.TINY, "compute": {**faults.TINY["compute"], "s": fails}}
    bad["keep"] = {**faults.TINY["keep"], "s": ["mean"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lw.study(SMALL, samples=4000, chunk=1024).run(folder / "complete", progress=False)
        lw.study(bad).run(folder / "with points that failed", progress=False)
        real, running.LocalEngine = running.LocalEngine, Half
        try:
            lw.study(faults.TINY).run(folder / "half done", progress=False)
        except StoppedError:
            running.LocalEngine = real
        for number, store in enumerate(sorted(folder.iterdir())):
            assert not verify(store).damage
            missed = [where for where in faults.flips(store, trials, number) if not verify(store).damage]
            print(
                f"{store.name}: {trials - len(missed)} of {trials} flipped bits found",
                *missed[:10],
                sep="\n  ",
            )


def power(every: int) -> None:
    """The states after each operation (or every so many), resumed and compared with the undisturbed run."""
    import faults
    from stores import contents

    from linkwise.study.store import files
    from linkwise.study.store.verify import verify

    study = lw.study(faults.TINY)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "first").mkdir()
        files.disk = recorder = faults.Recorder(folder / "first", every)
        expected = contents(study.run(folder / "first" / "store", progress=False, threads=1).path)
        files.disk = faults.Quick()
        same = early = 0
        for number, state in enumerate(recorder.states.values()):
            place = folder / str(number)
            place.mkdir()
            faults.laid_out(state, place)
            store = place / "store"
            if store.exists():
                early += any(damage.file != "journal" for damage in verify(store).damage)
            study.run(store, resume=store.exists(), progress=False, threads=1)
            same += contents(store) == expected
            shutil.rmtree(place)
        files.disk = files.Disk()
    print(f"{recorder.operations} operations, {len(recorder.states)} states that a loss of power could leave")
    print(f"resumed to the same bytes: {same}; states whose journal tells of what is not there: {early}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("throughput", "raw", "scheduling", "kill", "flips", "power"))
    parser.add_argument("--points", type=float)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, help="throughput (5), raw (3): how often, in turns")
    parser.add_argument("--compression", help="raw: zstd, lz4 or none; default: the study's own")
    parser.add_argument("--quantiles", action="store_true", help="throughput: keep quantiles, too")
    parser.add_argument("--folder", help="raw: where to write; default: the temporary folder")
    parser.add_argument("--trials", type=int, help="kill (20), flips (1000): how often")
    parser.add_argument(
        "--quick", action="store_true", help="scheduling, kill, power: less of it, to see that it runs"
    )
    options = parser.parse_args()
    if options.what == "throughput":
        throughput(int(options.points or 1e8), options.threads, options.rounds or 5, options.quantiles)
    elif options.what == "raw":
        raw(
            int(options.points or 1e8),
            options.threads,
            options.rounds or 3,
            options.folder,
            options.compression,
        )
    elif options.what == "scheduling":
        scheduling(0.01 if options.quick else 1.0)
    elif options.what == "flips":
        flips(options.trials or 1000)
    elif options.what == "power":
        power(40 if options.quick else 1)
    else:
        kill(options.trials or 20, 60_000 if options.quick else 400_000)


if __name__ == "__main__":
    main()
