"""Bounds of generated code beside what a search finds, and states that must not leave them.

python benchmarks/evidence.py --robots puma560 ur10e panda --dtype float32 --states 1000000
python benchmarks/evidence.py --states 67000000 --sub-boxes 1000 --folder certificates
python benchmarks/evidence.py --robots puma560 ur10e panda --states 1000000000 --gpu
python benchmarks/evidence.py --robots puma560 ur10e panda --functions forward_dynamics --dtype float64 --width 0.2
python benchmarks/evidence.py --constants

For each robot and function: the largest bound over the largest value found, over all outputs; the error bound over the
worst error found; how many states give an output outside its bounds, or with a larger error; processor time of the
bounds. Half of the states are random, half of their numbers at the ends of the box. The others lie near the
extreme states that the search has found, at all distances. The error of a float32 function is the distance from its
float64 code.

--folder: certificates, and how many states and sub-boxes were tried, are kept there: a run that was stopped goes on.
--minutes ends a run that has used that much processor time.

--sub-boxes 1000: random sub-boxes over which mpmath's interval arithmetic encloses every value of the program; each
enclosure must lie in the bounds of the certificate. Plain intervals are wider than the values in them, so that a value
for which this does not decide is enclosed again over a smaller sub-box around the same middle.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.ir.graph import CONDITIONS
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.evidence import patterns, precise
from linkwise.evidence.certified_bounds import straight_line

FUNCTIONS = ("inverse_dynamics", "gravity_torques", "computed_torque", "mass_matrix", "jacobian")
CHUNK = 100_000
AGAIN = 100
"""Chunks from the same random numbers, in other combinations."""
PARTS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 0.0)
"""Widths of sub-boxes, as parts of the box."""
GPU_CHUNK = 1 << 21
SAVED = 2_000_000
"""States after which progress is written."""


class Function:
    """One function of one robot with its certificate, as JSON has it, and how many states were tried."""

    def __init__(
        self,
        name: str,
        function: str,
        dtype: str,
        seconds: float,
        folder: Path | None,
        width: float | None = None,
    ):
        self.robot, self.name, self.function, self.dtype = lw.load(name), name, function, dtype
        self.path = None if folder is None else folder / f"{name}_{function}_{dtype}.json"
        if self.path is not None and self.path.exists():
            self.record: dict[str, Any] = json.loads(self.path.read_text())
        else:
            begin = time.process_time()
            made = evidence.certify(
                self.robot,
                function,
                options=Options(dtype=dtype),
                seconds=seconds,
                given=None if width is None else {"q": _around(self.robot, width)},
            )
            moving = [o for o in made.outputs if max(abs(o.low), abs(o.high)) > 1e-9]
            self.record = {
                "certificate": made.json(),
                "seconds": time.process_time() - begin,
                "holds": made.holds,
                "range": max((o.tightness for o in moving), default=1.0),
                "error": max((o.error_tightness for o in moving if o.worst.value > 0), default=1.0),
                "bound": max(o.error for o in made.outputs),
                "states": 0,
                "outside": 0,
                "sub_boxes": 0,
                "outside_sub_boxes": 0,
                "widths": dict.fromkeys(map(str, PARTS), 0),
            }
            self.save()
        self.outputs = self.record["certificate"]["outputs"]
        bounds = self.record["certificate"]["box"]
        self.box = evidence.Box({n: (np.array(low), np.array(high)) for n, (low, high) in bounds.items()})

    def save(self) -> None:
        """Write what is known to the folder."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_suffix(".new")
            beside.write_text(json.dumps(self.record))
            beside.replace(self.path)

    def entry(self, dtype: str) -> Any:
        """The code in one precision."""
        made = entries(self.robot, (self.function,), Options(dtype=dtype))
        return next(e for e in made if e.name == self.function)

    def try_states(self, states: int, until: float, gpu: bool) -> None:
        """Try states up to a number, from where the last run ended, or until so much processor time is used."""
        kernels = {d: self.entry(d).kernel for d in dict.fromkeys((self.dtype, "float64"))}
        names = [name for name, _ in kernels[self.dtype].inputs]
        low = np.array([o["low"] - o["error"] for o in self.outputs])
        high = np.array([o["high"] + o["error"] for o in self.outputs])
        # float64 code has an error, too: 2^-29 of the bound for float32
        error = np.array([o["error"] for o in self.outputs]) * (1.0 + 1e-6)
        chunks = self.gpu_chunks if gpu else self.chunks
        saved = self.record["states"]
        for chunk in chunks(self.record["states"], states):
            results = {
                d: _rows(kernel(*(chunk[n].astype(d) for n in names))) for d, kernel in kernels.items()
            }
            values = results[self.dtype]
            distances = abs(results["float64"] - values)  # 0 for float64
            least, most, far = (
                _host(x) for x in (values.min(axis=0), values.max(axis=0), distances.max(axis=0))
            )
            if not ((least >= low) & (most <= high) & (far <= error)).all():  # NaN is outside, too
                values, distances = _host(values), _host(distances)
                inside = (values >= low) & (values <= high) & (distances <= error)
                self.record["outside"] += int((~inside).any(axis=1).sum())
            self.record["states"] += len(values)
            if self.record["states"] - saved >= SAVED:
                saved = self.record["states"]
                self.save()
                if time.process_time() > until:
                    break
        self.save()

    def chunks(self, done: int, states: int) -> Iterator[dict[str, np.ndarray]]:
        """Groups of states; which states they are depends on how many came before."""
        extremes = [o[key]["state"] for o in self.outputs for key in ("lowest", "highest", "worst")]
        sides = {n: tuple(side.astype(self.dtype) for side in ends) for n, ends in self.box.bounds.items()}
        fixed = {n: np.tile(low, (CHUNK, 1)) for n, (low, high) in sides.items() if (low == high).all()}
        at = {n: np.array([state[n] for state in extremes], dtype=self.dtype) for n in sides}
        pool: dict[str, np.ndarray] = {}
        while done < states:
            count = min(CHUNK, states - done)
            number = done // CHUNK
            rng = np.random.default_rng([1, done])
            if not pool or number % AGAIN == 0:
                drawn = self.box.draw(np.random.default_rng([2, done]), CHUNK)
                pool = {
                    n: np.concatenate([x, x]).astype(self.dtype) for n, x in drawn.items() if n not in fixed
                }
            chunk = {n: x[:count] for n, x in fixed.items()}
            base = rng.integers(0, len(extremes), count)
            size = (10.0 ** rng.uniform(-8, 0, (count, 1))).astype(self.dtype)
            for name, x in pool.items():
                # new states from the same numbers: every column is moved by another distance
                moved = np.empty((count, x.shape[1]), self.dtype)
                for k, offset in enumerate(rng.integers(0, CHUNK, x.shape[1])):
                    moved[:, k] = x[offset : offset + count, k]
                if number % 2:  # near extreme states
                    moved = np.clip(at[name][base] + size * (moved - at[name][base]), *sides[name])
                chunk[name] = moved
            yield chunk
            done += count

    def gpu_chunks(self, done: int, states: int) -> Iterator[dict[str, Any]]:
        """The same kinds of states, from random numbers of a GPU."""
        import cupy

        extremes = [o[key]["state"] for o in self.outputs for key in ("lowest", "highest", "worst")]
        sides = {n: [cupy.asarray(s.astype(self.dtype)) for s in ends] for n, ends in self.box.bounds.items()}
        at = {n: cupy.asarray(np.array([state[n] for state in extremes], dtype=self.dtype)) for n in sides}
        while done < states:
            count = min(GPU_CHUNK, states - done)
            rng = cupy.random.default_rng(done)
            base = (rng.random(count) * len(extremes)).astype("int64")
            # half of the states are near extreme ones, the others anywhere
            size = cupy.where(rng.random((count, 1)) < 0.5, 10.0 ** (-8 * rng.random((count, 1))), 1.0)
            size = size.astype(self.dtype)
            anywhere = size == 1.0
            chunk = {}
            for name, (low, high) in sides.items():
                shape = (count, len(low))
                inside = low + (high - low) * rng.random(shape).astype(self.dtype)
                ends = cupy.where(rng.random(shape) < 0.5, low, high)
                drawn = cupy.where(rng.random(shape) < 0.5, ends, inside)
                near = at[name][base] + size * (drawn - at[name][base])
                chunk[name] = cupy.clip(cupy.where(anywhere, drawn, near), low, high)
            yield chunk
            done += count

    def try_sub_boxes(self, count: int, until: float) -> None:
        """Enclose all values over random sub-boxes up to a number, or until so much processor time is used."""
        program = straight_line(self.entry(self.dtype).program)
        turns = patterns.find(program)
        made = self.record["certificate"]
        bounds = {n: (low, high) for n, low, high in made["nodes"]}
        closer = {node.index: o for node, o in zip(_numbers(program), made["outputs"], strict=True)}
        drawn = self.box.draw(np.random.default_rng(1), count, corners=0.3)
        for k in range(self.record["sub_boxes"], count):
            state = {name: x[k] for name, x in drawn.items()}
            left, widths = self._left(program, turns, state, bounds, closer)
            self.record["outside_sub_boxes"] += left > 0
            for part, some in widths.items():
                self.record["widths"][str(part)] += some
            self.record["sub_boxes"] += 1
            if k % 20 == 19:
                self.save()
                if time.process_time() > until:
                    break
        self.save()

    def _left(
        self, program: Any, turns: Any, state: Mapping[str, np.ndarray], bounds: Any, closer: Any
    ) -> tuple[int, dict[float, int]]:
        """How many values leave their bounds in every sub-box, and how many are decided at each width."""
        waiting: set[int] | None = None
        decided: dict[float, int] = {}
        for part in PARTS:
            sides = {}
            for name, (low, high) in self.box.bounds.items():
                half = part * (high - low) / 2
                sides[name] = (np.maximum(state[name] - half, low), np.minimum(state[name] + half, high))
            enclosed = precise.over(program, evidence.Box(sides), turns)
            left = set()
            for node, value in enclosed.items():
                if node.op in CONDITIONS or (waiting is not None and node.index not in waiting):
                    continue
                ends = [bounds[node.index]] if node.index in bounds else []
                ends += (
                    [(closer[node.index]["low"], closer[node.index]["high"])] if node.index in closer else []
                )
                if not all(low <= float(value.a) and float(value.b) <= high for low, high in ends):
                    left.add(node.index)
            before = len(enclosed) if waiting is None else len(waiting)
            decided[part] = before - len(left)
            waiting = left
            if not waiting:
                break
        return len(waiting or ()), decided

    def row(self) -> str:
        """One row of the table."""
        r, total = self.record, max(1, sum(self.record["widths"].values()))
        wide = sum(n for part, n in r["widths"].items() if float(part) >= 1e-3)
        return (
            f"| {self.name} | {self.function} | {r['range']:.2f} | {r['error']:.1f} | {r['bound']:.2g} | "
            f"{r['outside']} of {r['states']} | {r['outside_sub_boxes']} of {r['sub_boxes']} "
            f"({100 * wide / total:.1f} %) | {r['seconds']:.0f} |"
        )


def _around(robot: lw.Robot, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions in a box of this width, at a random place inside the limits."""
    box = evidence.box_of(robot, robot.kernel("gravity_torques").program("float64").inputs)
    low, high = box.bounds["q"]
    at = low + np.maximum(high - low - width, 0.0) * np.random.default_rng(0).random(robot.dof)
    return at, np.minimum(at + width, high)


def _numbers(program: Any) -> list[Any]:
    return [node for nodes in program.values for node in nodes]


def _rows(results: Any) -> Any:
    """Outputs of a call, (states, numbers)."""
    parts = results if isinstance(results, tuple) else (results,)
    return np.concatenate([x.reshape(len(x), -1) for x in parts], axis=1)


def _host(values: Any) -> np.ndarray:
    """An array of the GPU as one of NumPy."""
    return values.get() if hasattr(values, "get") else values


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["puma560", "ur10e"])
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--states", type=int, default=100_000, help="random states of each function")
    parser.add_argument("--sub-boxes", type=int, default=0, help="sub-boxes that mpmath checks")
    parser.add_argument("--seconds", type=float, default=60.0, help="for the bounds of one output")
    parser.add_argument("--folder", type=Path, help="where certificates and progress are kept")
    parser.add_argument("--gpu", action="store_true", help="try the states on a GPU, with CuPy")
    parser.add_argument(
        "--width", type=float, help="of the positions [rad or m]; by default all inside the limits"
    )
    parser.add_argument("--minutes", type=float, default=1e9, help="of processor time, then it ends")
    parser.add_argument(
        "--constants", action="store_true", help="constants of the equation of motion instead"
    )
    options = parser.parse_args()
    until = time.process_time() + 60 * options.minutes
    if options.constants:
        print(
            "| robot | λ_min, bound | λ_min, found | λ_max, bound | λ_max, found | gravity, bound | found | k_c | s |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for name in options.robots:
            begin = time.perf_counter()
            c = evidence.constants(lw.load(name))
            least = f"{c.least_inertia:.4g}" if c.definite else "not shown"
            cells = (
                c.least_inertia_found,
                c.most_inertia,
                c.most_inertia_found,
                c.gravity,
                c.gravity_found,
                c.coriolis,
            )
            numbers = " | ".join(f"{x:.4g}" for x in cells)
            print(f"| {name} | {least} | {numbers} | {time.perf_counter() - begin:.0f} |", flush=True)
        return
    head = ("range / found", "error / found", "worst error bound", "states outside")
    head += ("sub-boxes outside (values decided in wide ones)", "s")
    print(f"| robot | function | {' | '.join(head)} |")
    print(f"|---|---|{'---:|' * len(head)}")
    for name in options.robots:
        for function in options.functions:
            each = Function(name, function, options.dtype, options.seconds, options.folder, options.width)
            each.try_states(options.states, until, options.gpu)
            each.try_sub_boxes(options.sub_boxes, until)
            print(each.row(), flush=True)


if __name__ == "__main__":
    main()
