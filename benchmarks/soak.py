"""Many mixed calls from many threads: no wrong result, no growth of memory.

Each thread draws calls at random: methods of a robot with all their options, kernels with derivatives and run-time
parameters, users' kernels; arrays of both precisions, lists, strided arrays, batches, ``out=``, wrong arguments. Every
result is compared, bit for bit, with the one computed before the threads started. Memory is read after a first part of
the calls, when everything is compiled, and at the end.

    python benchmarks/soak.py [--robot two_link] [--calls 1000000] [--threads 8] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw


@lw.kernel(q=2, qd=2)
def power(q, qd):
    """A kernel of the user's own."""
    return q[0] * qd[1] + lw.sin(q[1]), q * qd


def outcome(call: Callable[[], Any]) -> bytes:
    """The result as bytes, or the message of its error."""
    try:
        result = call()
    except (TypeError, ValueError) as error:
        return str(error).encode()
    parts = result if isinstance(result, tuple) else (result,)
    return b"".join(np.asarray(part).tobytes() for part in parts)


def kinds_of_calls(robot: lw.Robot) -> list[Callable[[], Any]]:
    """Calls of every kind; each makes its own outputs."""
    rng = np.random.default_rng(0)
    n, made = robot.dof, []
    kernel = robot.kernel("inverse_dynamics")
    derived = [kernel.jacobian("q"), robot.kernel("forward_dynamics_derivatives")]
    loaded = robot.kernel("inverse_dynamics", inputs=("payload",))
    payload = np.array([1.0, *([0.1] * 3), 0.2, 0, 0, 0.2, 0, 0.2])
    frame = robot.link_names[-1]
    for shape in ((n,), (3, n), (40, n), (2, 2, n)):
        dense = [rng.uniform(0.1, 1.0, shape) for _ in range(3)]
        strided = [np.repeat(a, 2, axis=-1)[..., ::2] for a in dense]
        few = [a.astype(np.float32) for a in dense]
        mixed = [dense[0], few[1], dense[2].tolist() if len(shape) == 1 else dense[2]]
        for q, qd, x in (dense, strided, few, mixed, [a.tolist() for a in dense]):
            made += [
                lambda q=q, qd=qd, x=x: robot.inverse_dynamics(q, qd, x),
                lambda q=q, qd=qd, x=x: robot.inverse_dynamics(q, qd, x, friction=False, threads=1),
                lambda q=q, qd=qd, x=x: robot.inverse_dynamics(
                    q, qd, x, wrench=np.ones(6), wrench_frame=frame
                ),
                lambda q=q, qd=qd, x=x: robot.forward_dynamics(q, qd, x, algorithm="compound_link"),
                lambda q=q, qd=qd, x=x: robot.forward_dynamics_derivatives(q, qd, x),
                lambda q=q: robot.pose(q, "".join(list(frame))),
                lambda q=q: robot.jacobian(q, frame=frame),
                lambda q=q, qd=qd: robot.kinetic_energy(q, qd),
                lambda q=q, qd=qd, x=x: kernel(q, qd, x),
                lambda q=q, qd=qd, x=x: loaded(q, qd, x, payload),
                lambda q=q, qd=qd, x=x: derived[0](q, qd, x),
                lambda q=q, qd=qd, x=x: derived[1](q, qd, x, threads=2),
                lambda q=q, qd=qd: robot.inverse_dynamics(q, qd, [1.0]),
                lambda q=q: robot.pose(q, "no such frame"),
            ]
            if n == 2:
                made.append(lambda q=q, qd=qd: power(q, qd))
        q, qd, x = dense
        made.append(lambda q=q, qd=qd, x=x: robot.inverse_dynamics(q, qd, x, out=np.empty_like(x)))
        made.append(lambda q=q, shape=shape: robot.mass_matrix(q, out=np.empty((*shape, n))))
        made.append(lambda q=q, qd=qd, x=x: kernel(q, qd, x, out=q.copy()))
    return made


def resident() -> int:
    """Bytes of memory that this process has."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(calls: list[Callable[[], Any]], wanted: list[bytes], number: int, threads: int, seed: int) -> int:
    """How many of so many calls from so many threads give something else than wanted."""
    wrong = [0] * threads

    def work(k: int) -> None:
        draw = random.Random(f"{seed} {k}")
        for _ in range(number // threads):
            j = draw.randrange(len(calls))
            if outcome(calls[j]) != wanted[j]:
                wrong[k] += 1

    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="two_link")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    robot = lw.load(given.robot)
    calls = kinds_of_calls(robot)
    wanted = [outcome(call) for call in calls]
    first = given.calls // 10
    start = time.perf_counter()
    wrong = soak(calls, wanted, first, given.threads, 1)
    before = resident()
    wrong += soak(calls, wanted, given.calls - first, given.threads, 2)
    facts = {
        "calls": given.calls,
        "threads": given.threads,
        "kinds": len(calls),
        "wrong": wrong,
        "growth_bytes": resident() - before,
        "seconds": time.perf_counter() - start,
    }
    if given.json:
        print(json.dumps(facts))
    else:
        print(
            f"{facts['calls']} calls of {facts['kinds']} kinds from {facts['threads']} threads in "
            f"{facts['seconds']:.0f} s: {wrong} wrong, memory grew by {facts['growth_bytes'] / 1e6:.1f} MB"
        )
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
