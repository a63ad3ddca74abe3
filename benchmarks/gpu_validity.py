"""Collision checks of a robot among 20 spheres on a GPU beside the CPU: bits, and configurations a second.

    python benchmarks/gpu_validity.py [--robot panda] [--states 4194304] [--calls 8]

Needs CuPy and an NVIDIA GPU. Bundled robots have no meshes; a URDF file may be given.
"""

from __future__ import annotations

import argparse
import hashlib

import cupy
import numpy as np

import linkwise as lw
from linkwise.collision import Sphere, World, validity_of
from linkwise.collision.clearance import position_range
from linkwise.collision.validity.kernel import BoundWorld
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.gpu import device, driver

OBSTACLES = 20
COMPARED = 1 << 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--states", type=int, default=1 << 22)
    parser.add_argument("--calls", type=int, default=8)
    given = parser.parse_args()
    robot = lw.load(given.robot)
    lower, upper = position_range(robot, None, None)
    rng = np.random.default_rng(0)
    q = rng.uniform(lower, upper, (given.states, robot.nq)).astype(np.float32)
    away = rng.normal(size=(OBSTACLES, 3))
    away *= (rng.uniform(0.35, 0.9, OBSTACLES) / np.sqrt((away * away).sum(axis=1)))[:, None]
    world = BoundWorld(World([Sphere(each, 0.07) for each in away]), "float32")
    checks = validity_of(robot)
    kernel = checks.collision_kernel
    on = driver.device(0)
    _, options = device._target(on, False)
    modules = list(cuda.variants(kernel.program))
    key = hashlib.sha256(modules[-1].text.encode()).digest()
    there = device.DeviceKernel(device.loaded(key, lambda: modules, on, options))
    tables = [cupy.asarray(table) for table in (q, world.margin, *world.tables.values())]
    collides = cupy.empty((given.states, 1), np.float32)
    scratch = cupy.empty(max(1, there.scratch_bytes(given.states)), np.uint8)
    words = [robot.nq, *(0 for _ in tables[1:]), *world.numbers]
    stream = cupy.cuda.get_current_stream()
    times = []
    for _ in range(given.calls + 1):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        inputs = [table.data.ptr for table in tables]
        there.run([collides.data.ptr], inputs, words, given.states, stream.ptr, scratch.data.ptr)
        end.record()
        end.synchronize()
        times.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    (here,) = kernel(q[:COMPARED], world, 1)
    same = cupy.asnumpy(collides[:COMPARED]).tobytes() == here.tobytes()
    rate = given.states / float(np.median(times[1:]))
    print(
        f"{robot.name}, {len(checks.spheres)} spheres, {OBSTACLES} obstacles, {100 * here.mean():.0f} % collide: "
        f"{rate / 1e6:.1f} million configurations a second, bits of the CPU: {same}"
    )


if __name__ == "__main__":
    main()
