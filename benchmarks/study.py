"""What a study costs beside the kernel it runs, what its store takes, and whether it survives being killed.

    python benchmarks/study.py throughput [--points 1e8]   states generated in the kernel, reductions kept
    python benchmarks/study.py raw [--points 2e7]          raw torques kept, beside the store's own bandwidth
    python benchmarks/study.py scheduling                  cost of a chunk: embedded, and on a Dask cluster
    python benchmarks/study.py kill [--trials 20]          kill -9 of workers and drivers at random moments

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
from collections.abc import Callable
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.study.store import Store

sys.path[0] = str(
    Path(__file__).parents[1] / "tests" / "study"
)  # a cluster, a small study; not its own folder

BATCH = 16_384  # states of a call of the bare kernel: they stay in the caches
PANDA = {
    "robot": "panda",
    "seed": 1,
    "vary": {"q": {"uniform": "limits"}, "qd": {"uniform": [-1.0, 1.0]}, "qdd": {"uniform": [-3.0, 3.0]}},
    "compute": {"tau": {"function": "inverse_dynamics"}},
}
REDUCED = {"tau": ["mean", "variance", "min", "max"]}


class Clock:
    """Seconds on the clock and of the processor, added up over several stretches."""

    def __init__(self):
        self.wall = self.processor = 0.0

    def time(self, work: Callable[[], object]) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        work()
        self.wall += time.perf_counter() - wall
        self.processor += time.process_time() - processor


def bare_kernel(threads: int) -> Callable[[float], int]:
    """Runs the kernel on arrays that are there already for so many seconds; gives the number of states."""
    kernel = lw.load("panda").kernel("inverse_dynamics")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, BATCH, 7))
    out = np.empty((BATCH, 7))
    kernel(q, qd, qdd, out=out, threads=threads)

    def run(seconds: float) -> int:
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            kernel(q, qd, qdd, out=out, threads=threads)
            count += BATCH
        return count

    return run


def throughput(points: int, threads: int, quantiles: bool) -> None:
    keep = {"tau": {"statistics": REDUCED["tau"], **({"quantiles": [0.01, 0.5, 0.99]} if quantiles else {})}}
    study = lw.study(PANDA, samples=points, keep=keep)
    parts = 4
    small = [lw.study(PANDA, samples=points // parts, seed=k, keep=keep) for k in range(parts)]
    kernel = bare_kernel(threads)
    with tempfile.TemporaryDirectory() as folder:
        small[0].run(f"{folder}/warm", threads=threads, progress=False)  # packages imported, code compiled
        bare, studied, states = Clock(), Clock(), 0
        for k, part in enumerate(small):
            counted = []
            bare.time(lambda counted=counted: counted.append(kernel(1.0)))
            states += counted[0]
            studied.time(lambda k=k, part=part: part.run(f"{folder}/{k}", threads=threads, progress=False))
        whole = Clock()
        whole.time(lambda: study.run(f"{folder}/whole", threads=threads, progress=False))
    kept = "statistics and quantiles" if quantiles else "statistics"
    print(f"{points:.0e} inverse dynamics of a Panda, {threads} threads, {kept}")
    rows = [
        ("kernel on arrays", bare, states),
        (f"study, {parts} parts, in turns", studied, points),
        ("study, whole", whole, points),
    ]
    print(f"{'':28}{'M states/s':>12}{'processor ns/state':>20}{'of the kernel':>15}{'by processor':>14}")
    for name, clock, count in rows:
        rate, cost = count / clock.wall, clock.processor / count
        share, own = rate / (states / bare.wall), (bare.processor / states) / cost
        print(f"{name:28}{rate / 1e6:12.1f}{1e9 * cost:20.1f}{share:15.0%}{own:14.0%}")
    print(
        f"memory: stated {study.memory(threads) / 2**20:.0f} MiB; the process had {peak() / 2**20:.0f} MiB at most"
    )


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def raw(points: int, threads: int, folder: str | None) -> None:
    keep = {"tau": {"raw": True, "statistics": REDUCED["tau"]}}
    parts = 4
    studies = [lw.study(PANDA, samples=points // parts, seed=k, keep=keep) for k in range(parts)]
    size = 56 * (points // parts)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        studies[0].run(f"{place}/warm", threads=threads, progress=False)
        own, studied = Clock(), Clock()
        for k, study in enumerate(studies):
            store = Store(f"{place}/own{k}", study.plan)
            store.create()
            values = np.ascontiguousarray(study.at(np.arange(study.plan.axes.limit), ["tau"])["tau"].T)
            own.time(lambda store=store, study=study, values=values: write_all(store, study, values, threads))
            shutil.rmtree(store.path)
            studied.time(lambda k=k, study=study: study.run(f"{place}/{k}", threads=threads, progress=False))
            if k < parts - 1:
                shutil.rmtree(f"{place}/{k}")
        data = lw.open_study(f"{place}/{parts - 1}").dataset()
        print(data.tau.isel(sample=slice(0, 2)).load())
    total = parts * size
    where = folder or "the temporary folder"
    print(f"{points:.0e} torques of a Panda kept ({total / 1e9:.1f} GB), {threads} threads, in {where}")
    print(
        f"the store alone {total / own.wall / 1e6:.0f} MB/s, the study {total / studied.wall / 1e6:.0f} MB/s:",
        end=" ",
    )
    print(f"{own.wall / studied.wall:.0%} of it")
    each = [1e9 * clock.processor / points for clock in (own, studied)]
    print(
        f"processor: {each[0]:.0f} ns a state to encode and write, {each[1]:.0f} ns with all that is computed"
    )
    print(
        f"memory: stated {studies[0].memory(threads) / 2**20:.0f} MiB; the process had {peak() / 2**20:.0f} MiB at most"
    )


def write_all(store: Store, study, values: np.ndarray, threads: int) -> None:
    """The same values as every chunk of the store, with several threads."""
    numbers = iter(range(study.chunks))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            chunk = study.plan.axes.chunk(number)
            store.write_raw("tau", values[:, : chunk.count], chunk)

    team = [threading.Thread(target=work) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()


def scheduling() -> None:
    """Chunks with next to nothing in them: what each costs beyond the first few, on the clock and of this processor."""
    from processes import Cluster

    from linkwise.study import cluster as engine

    tables = {**PANDA, "chunk": 64, "keep": REDUCED}

    def cost(what: str, counts: tuple[int, int], **options) -> None:
        clocks = []
        for chunks in counts:
            clocks.append(Clock())
            study = lw.study(tables, samples=64 * chunks)
            with tempfile.TemporaryDirectory() as place:
                clocks[-1].time(
                    lambda study=study, place=place: study.run(f"{place}/s", progress=False, **options)
                )
        more = counts[1] - counts[0]
        wall, processor = (
            1e3 * (getattr(clocks[1], kind) - getattr(clocks[0], kind)) / more
            for kind in ("wall", "processor")
        )
        print(f"{what}: {wall:.2f} ms on the clock for a chunk, {processor:.2f} ms of this processor")

    cost("embedded, one thread", (200, 4000), threads=1)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        try:
            cost("two workers, tasks of up to 0.5 s", (200, 8000), cluster=cluster.address)
            engine.MOST_CHUNKS = 1
            cost("two workers, a task for every chunk", (50, 800), cluster=cluster.address)
        finally:
            cluster.close()


RUN = """
import json, sys, linkwise as lw
lw.study(json.load(open(sys.argv[1]))).run(sys.argv[2], resume=sys.argv[3] == "True", progress=False)
"""


def kill(trials: int) -> None:
    from processes import Cluster
    from stores import SMALL, contents

    tables = {**SMALL, "samples": 300_000, "chunk": 4096}
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = contents(lw.study(tables).run(folder / "whole", progress=False).path)
        (folder / "study.json").write_text(json.dumps(tables))
        same = [
            _killed_driver(folder / f"driver{k}", folder, tables, moments, contents) == expected
            for k in range(trials)
        ]
        print(f"driver killed, {trials} trials: {sum(same)} identical after resume")
        cluster = Cluster(folder)
        try:
            same = [
                _killed_worker(folder / f"worker{k}", cluster, tables, moments, contents) == expected
                for k in range(trials)
            ]
        finally:
            cluster.close()
        print(f"worker killed, {trials} trials: {sum(same)} identical")


def _killed_driver(store: Path, folder: Path, tables: dict, moments: random.Random, contents) -> dict:
    process = subprocess.Popen([sys.executable, "-c", RUN, str(folder / "study.json"), str(store), "False"])
    while process.poll() is None and not store.exists():
        time.sleep(0.005)
    time.sleep(moments.uniform(0.0, 1.5))
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    done = len(list(store.rglob("c/*/*/*")))
    if (store / "journal").exists():
        lw.study(tables).run(store, resume=True, progress=False)
    found = contents(store)
    print(f"  {'killed' if killed else 'too late'} with {done} raw files written")
    shutil.rmtree(store)
    return found


def _killed_worker(store: Path, cluster, tables: dict, moments: random.Random, contents) -> dict:
    run = threading.Thread(
        target=lambda: lw.study(tables).run(store, cluster=cluster.address, progress=False)
    )
    run.start()
    while not (store / "data.zarr" / "tau" / "c").exists():
        time.sleep(0.005)
    time.sleep(moments.uniform(0.0, 1.0))
    alive = run.is_alive()
    cluster.kill_worker(moments.randrange(len(cluster.workers)))
    cluster.add_worker()
    run.join()
    cluster.wait(2)
    found = contents(store)
    print(f"  {'killed in time' if alive else 'too late'}")
    shutil.rmtree(store)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("throughput", "raw", "scheduling", "kill"))
    parser.add_argument("--points", type=float)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quantiles", action="store_true", help="throughput: keep quantiles, too")
    parser.add_argument("--folder", help="raw: where to write; default: the temporary folder")
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    if options.what == "throughput":
        throughput(int(options.points or 1e8), options.threads, options.quantiles)
    elif options.what == "raw":
        raw(int(options.points or 2e7), options.threads, options.folder)
    elif options.what == "scheduling":
        scheduling()
    else:
        kill(options.trials)


if __name__ == "__main__":
    main()
