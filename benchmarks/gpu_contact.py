"""Steps with contact, and a traced loop, on a GPU beside the CPU: the same bits, and steps a second.

    python benchmarks/gpu_contact.py [--states 1048576] [--calls 12] [--robot FILE:FOOT,…:RADIUS:ANGLE,…]

Needs CuPy and an NVIDIA GPU. States are on the device; random velocities and torques, not standing still. The last
line solves systems of equations by ``linkwise.solve``, a program with loops.
"""

from __future__ import annotations

import argparse

import cupy
import numpy as np
from contact import loaded

import linkwise as lw
from linkwise.solve.factors import ldl, solve

SIZE = 24  # of the systems of equations


def compared(name: str, kernel, given: list[np.ndarray], calls: int) -> None:
    """Bits of some states on both, and the median rate of all on the device."""
    few = [array[:512] for array in given]
    there = [cupy.asarray(array) for array in given]
    here = kernel(*few)
    device = kernel(*(array[:512] for array in there))
    pairs = zip(here, device, strict=True) if isinstance(here, tuple) else [(here, device)]
    same = all(cupy.asnumpy(b).tobytes() == np.asarray(a).tobytes() for a, b in pairs)
    kernel(*there)
    times = []
    for _ in range(calls):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        kernel(*there)
        end.record()
        end.synchronize()
        times.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    rate = len(given[0]) / float(np.median(times))
    print(f"{name:32} {given[0].dtype}  {rate / 1e6:10.1f} million a second, bits of the CPU: {same}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=1 << 20)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--robot", default="legs")
    given = parser.parse_args()
    robot, stand = loaded(given.robot)
    rng, count = np.random.default_rng(0), given.states
    q = np.repeat(np.concatenate([robot.neutral[:7], stand])[None], count, axis=0)
    q[:, 2] = 0.38
    q[:, 7:] += 0.1 * rng.normal(size=(count, len(stand)))
    qd, tau = 0.3 * rng.normal(size=(count, robot.dof)), rng.normal(size=(count, robot.dof))
    tau[:, :6] = 0.0
    for dtype in ("float32", "float64"):
        states = [array.astype(dtype) for array in (q, qd, tau)]
        compared(
            f"contact_step of {robot.name}", robot.kernel("contact_step", step=0.002), states, given.calls
        )
    solved = lw.kernel(A=(SIZE, SIZE), b=SIZE)(lambda A, b: solve(*ldl(A), b))
    count = max(count // 64, 512)
    A = rng.normal(size=(count, SIZE, SIZE))
    A = A @ A.swapaxes(1, 2) + SIZE * np.eye(SIZE)
    b = rng.normal(size=(count, SIZE))
    for dtype in ("float32", "float64"):
        compared(
            f"{SIZE} equations", solved, [A.reshape(count, -1).astype(dtype), b.astype(dtype)], given.calls
        )


if __name__ == "__main__":
    main()
