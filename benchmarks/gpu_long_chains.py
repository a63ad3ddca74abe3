"""Forward dynamics of long chains on a GPU: link by link, a thread for each chain; and as parallel scans, a block.

Both in the same run on the same states, with data on the device; beside them the CPU, one thread. The bits must be
those of the CPU's kernel of the same algorithm, and the residual of the scan that of the others.

    python benchmarks/gpu_long_chains.py [--links 64,256,1024] [--batches 1,16,132,1056] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import cupy
import numpy as np
from gpu_parts.measuring import device_seconds, host_seconds

import linkwise as lw

ALGORITHMS = {"serial": "kalman", "scan": "parallel_scan"}


def measure(links: int, batch: int, dtype: str) -> dict[str, Any]:
    robot = lw.random_robot(1, links, rotor=True)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, batch, links))
    given = [a.astype(dtype) for a in (q, qd, robot.inverse_dynamics(q, qd, qdd))]
    there = [cupy.asarray(a) for a in given]
    row: dict[str, Any] = {"links": links, "batch": batch, "dtype": dtype}
    for name, algorithm in ALGORITHMS.items():
        got = cupy.asnumpy(robot.forward_dynamics(*there, algorithm=algorithm))
        known = robot.forward_dynamics(*given, algorithm=algorithm, threads=1)
        row[f"{name}_differs"] = int((got.view(np.uint8) != known.view(np.uint8)).any(axis=-1).sum())
        again = robot.inverse_dynamics(*(a.astype(float) for a in (given[0], given[1], got)))
        off = np.linalg.norm(again - given[2], axis=-1) / np.linalg.norm(given[2], axis=-1)
        row[f"{name}_residual"] = float(off.max())
        out = cupy.empty_like(there[0])
        row[f"{name}_seconds"], _ = device_seconds(
            lambda algorithm=algorithm, out=out: robot.forward_dynamics(*there, algorithm=algorithm, out=out)
        )
    row["cpu_seconds"] = host_seconds(lambda: robot.forward_dynamics(*given, threads=1), 20)
    row["gain"] = row["serial_seconds"] / row["scan_seconds"]
    return row


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--links", type=numbers, default=[64, 256, 1024])
    parser.add_argument("--batches", type=numbers, default=[1, 16, 132, 1056])
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args()
    rows = []
    print(" links batch   dtype   serial     scan  gain  CPU, 1 thread   residuals        differing states")
    for links in options.links:
        for batch in options.batches:
            for dtype in ("float64", "float32"):
                if batch > 1 and dtype == "float32":
                    continue
                row = measure(links, batch, dtype)
                rows.append(row)
                print(
                    f"{links:6d} {batch:5d} {dtype} {1e6 * row['serial_seconds']:8.1f} "
                    f"{1e6 * row['scan_seconds']:8.1f} µs {row['gain']:5.2f} "
                    f"{1e6 * row['cpu_seconds']:10.1f} µs  {row['serial_residual']:.1e}"
                    f" {row['scan_residual']:.1e}   {row['serial_differs']} {row['scan_differs']}",
                    flush=True,
                )
                if options.json:
                    with open(options.json, "w", encoding="utf-8") as file:
                        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
