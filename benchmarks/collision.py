"""Distances of links: kernels of ``linkwise.collision`` beside coal (hpp-fcl), on the same capsules and states.

For each robot: the number of comparisons; microseconds for all distances of one state, by the kernel over many states,
by the same functions on NumPy arrays, and by coal: Pinocchio's ``computeDistances``, one call of C++ for all pairs with
the placements given (without them the column is empty); the largest difference between the two; milliseconds for
compiling. One thread, all in one process, the best of ``--rounds``.

    python benchmarks/collision.py [--robots panda ur10e] [--states 2000] [--rounds 7] [--json]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time

import numpy as np

import linkwise as lw
from linkwise.collision import Clearance, Room


class Coal:
    """The pairs of capsules, compared by coal through Pinocchio."""

    def __init__(self, clearance: Clearance):
        import coal
        import pinocchio

        self.pin, self.pairs = pinocchio, clearance.checks.pairs.tolist()
        self.model = pinocchio.GeometryModel()
        for k, c in enumerate(clearance.checks.capsules):
            shape = coal.Capsule(c.radius, float(np.linalg.norm(c.end - c.start)))
            self.model.addGeometryObject(pinocchio.GeometryObject(str(k), 0, pinocchio.SE3.Identity(), shape))
        for i, k in self.pairs:
            self.model.addCollisionPair(pinocchio.CollisionPair(i, k))

    def placed(self, ends: np.ndarray):
        """Capsules at their ends (2·capsules, 3): this is not timed."""
        data = self.pin.GeometryData(self.model)
        for k, (start, end) in enumerate(zip(ends[::2], ends[1::2], strict=True)):
            way = end - start
            size = float(np.linalg.norm(way))
            z = way / size if size > 0 else np.array([0.0, 0.0, 1.0])
            x = np.linalg.svd(z[None])[2][1]
            turn = np.column_stack([x, np.cross(z, x), z])
            data.oMg[k] = self.pin.SE3(turn, (start + end) / 2)
        return data

    def compute(self, data) -> None:
        self.pin.computeDistances(self.model, data)

    def distances(self, data) -> list[float]:
        self.compute(data)
        return [result.min_distance for result in data.distanceResults]


def best(function, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def measured(name: str, states: int, rounds: int) -> dict:
    clearance = Clearance(lw.load(name), Room(floor=None))
    rng = np.random.default_rng(0)
    q = rng.uniform(clearance.lower, clearance.upper, (states, clearance.robot.nq))
    begun = time.perf_counter()
    ours = clearance.kernel(q)
    compiled = time.perf_counter() - begun
    row = {
        "robot": name,
        "comparisons": len(clearance.checks),
        "kernel_us": 1e6 * best(lambda: clearance.kernel(q, threads=1), rounds) / states,
        "arrays_us": 1e6 * best(lambda: clearance._of_arrays(q), rounds) / states,
        "compile_ms": 1e3 * compiled,
        "coal_us": None,
        "difference": None,
    }
    if all(importlib.util.find_spec(name) is not None for name in ("coal", "pinocchio")):
        coal, few = Coal(clearance), q[: min(states, 50)]
        placed = [coal.placed(ends) for ends in clearance._ends(few)]
        theirs = np.array([coal.distances(each) for each in placed])
        row["coal_us"] = 1e6 * best(lambda: [coal.compute(each) for each in placed], rounds) / len(few)
        apart = theirs > 0  # for overlapping shapes coal gives depths of another definition
        row["difference"] = float(np.abs(np.where(apart, ours[: len(few)] - theirs, 0.0)).max())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["panda", "ur10e", "puma560"])
    parser.add_argument("--states", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured(name, options.states, options.rounds) for name in options.robots]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(
        f"{'robot':<12}{'comparisons':>12}{'kernel [µs]':>13}{'arrays [µs]':>13}{'coal [µs]':>11}{'ratio':>8}"
        f"{'difference [m]':>16}{'compile [ms]':>14}"
    )
    for r in rows:
        coal = (
            ("", "", "")
            if r["coal_us"] is None
            else (f"{r['coal_us']:.1f}", f"{r['coal_us'] / r['kernel_us']:.0f}", f"{r['difference']:.1e}")
        )
        print(
            f"{r['robot']:<12}{r['comparisons']:>12}{r['kernel_us']:>13.2f}{r['arrays_us']:>13.2f}{coal[0]:>11}"
            f"{coal[1]:>8}{coal[2]:>16}{r['compile_ms']:>14.0f}"
        )


if __name__ == "__main__":
    main()
