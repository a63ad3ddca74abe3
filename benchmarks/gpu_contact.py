"""Steps with contact, and a traced loop, on a GPU beside the CPU and MJX: the same bits, and steps a second.

    python benchmarks/gpu_contact.py [--states 1048576] [--calls 12] [--mjx 8192] [--steps 100]
        [--robots legs biped FILE:FOOT,…:RADIUS:ANGLE,… ...]

Needs CuPy and an NVIDIA GPU. States are on the device; random velocities and torques, not standing still. G1 with four
corners at each foot is FILE:left_ankle_roll_link,right_ankle_roll_link:0@X,Y,Z/X,Y,Z/…:0. With ``--mjx`` as many states
take steps of MJX (JAX on the same GPU) with spheres at the same candidates, the same friction and step, its Newton
solver with one and with its default number of iterations, single precision. Its contact is soft. With ``--steps`` a
quarter as many robots take that many steps in one call of ``simulate``, from the same random states, under a PD law;
each step starts from the impulses of the last one. The last line solves systems of equations by ``linkwise.solve``, a
program with loops.
"""

from __future__ import annotations

import argparse
import os
import time

import cupy
import numpy as np
from contact_parts.peers import in_mujoco
from contact_parts.robots import loaded, total_mass

import linkwise as lw
from linkwise.control import Controller
from linkwise.simulate import simulate
from linkwise.solve.factors import ldl, solve

SIZE = 24  # of the systems of equations
STEP = 0.002  # [s]


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
    print(f"{name:32} {given[0].dtype}  {rate / 1e6:10.3f} million a second, bits of the CPU: {same}")


class JointPD(Controller):
    """Of joints alone: a base that floats has no motors."""

    def control(self, links, gains, q, qd, reference, memory, period):
        errors = zip(gains["kp"][6:], gains["kd"][6:], reference.q[7:], q[7:], qd[6:], strict=True)
        return [0.0] * 6 + [p * (wanted - at) - d * rate for p, d, wanted, at, rate in errors], memory


def rollouts(robot: lw.Robot, stand: np.ndarray, states: list[np.ndarray], steps: int, calls: int) -> None:
    """Steps a second of robots that are simulated under a PD law, and whether a CPU gives the same bits."""
    joints, limit = robot.dof - 6, 0.15 * 9.81 * total_mass(robot)
    gains = {
        "kp": np.r_[np.zeros(6), np.full(joints, 4.0 * limit)],
        "kd": np.r_[np.zeros(6), np.full(joints, 0.1 * limit)],
    }
    law = JointPD(robot, gains, np.full(robot.dof, limit))
    target = np.concatenate([robot.neutral[:7], stand])

    def simulated(q, qd, dtype: str):
        options = {"duration": steps * STEP, "step": STEP, "every": steps, "warn": False, "fused": True}
        return simulate(robot, law, target, q=q, qd=qd, dtype=dtype, **options)

    for dtype in ("float32", "float64"):
        q, qd = (cupy.asarray(array.astype(dtype)) for array in states[:2])
        here = simulated(states[0][:64].astype(dtype), states[1][:64].astype(dtype), dtype)
        there = simulated(q[:64], qd[:64], dtype)
        pairs = ((here.final_q, there.final_q), (here.final_qd, there.final_qd))
        same = all(cupy.asnumpy(b).tobytes() == np.asarray(a).tobytes() for a, b in pairs)
        times = []
        for _ in range(calls):
            begin = time.perf_counter()
            simulated(q, qd, dtype)
            cupy.cuda.Device().synchronize()
            times.append(time.perf_counter() - begin)
        rate = steps * len(q) / float(np.median(times))
        label = f"{steps} steps of {robot.name}"
        print(f"{label:32} {dtype}  {rate / 1e6:10.3f} million a second, bits of the CPU: {same}")


def random_states(robot: lw.Robot, stand: np.ndarray, count: int) -> list[np.ndarray]:
    """Positions near a stand on the ground, velocities and torques at random."""
    rng = np.random.default_rng(0)
    q = np.repeat(np.concatenate([robot.neutral[:7], stand])[None], count, axis=0)
    q[:, 7:] += 0.1 * rng.normal(size=(count, len(stand)))
    for start in range(0, count, 65536):  # the lowest candidate a little in the ground
        part = slice(start, start + 65536)
        q[part, 2] -= robot.contact_gaps(q[part]).min(axis=1) + 0.001
    qd, tau = 0.3 * rng.normal(size=(count, robot.dof)), rng.normal(size=(count, robot.dof))
    tau[:, :6] = 0.0
    return [q, qd, tau]


def time_mjx(robot: lw.Robot, states: list[np.ndarray], calls: int) -> None:
    """Print the rates of MJX for the same robot, or why there are none."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory to CuPy
    try:
        import jax
        from mujoco import mjx
    except ImportError as error:
        print(f"  no MJX: {error}")
        return
    model, _ = in_mujoco(robot)
    q, qd, tau = states
    turned = np.concatenate(
        [q[:, :3], q[:, 6:7], q[:, 3:6], q[:, 7:]], axis=1
    )  # its quaternions begin with w
    moved = np.concatenate([qd[:, 3:6], qd[:, :3], qd[:, 6:]], axis=1)  # linear before angular velocities
    for iterations in (1, model.opt.iterations):
        model.opt.iterations = iterations
        on_device = mjx.put_model(model)
        data = mjx.make_data(on_device)

        def state(qpos, qvel, forces, data=data):
            return data.replace(qpos=qpos, qvel=qvel, qfrc_applied=forces)

        batch = jax.vmap(state)(*(jax.numpy.asarray(x, "float32") for x in (turned, moved, tau)))
        step = jax.jit(jax.vmap(lambda each, of=on_device: mjx.step(of, each)))
        batch = jax.block_until_ready(step(batch))
        times = []
        for _ in range(calls):
            begin = time.perf_counter()
            batch = jax.block_until_ready(step(batch))
            times.append(time.perf_counter() - begin)
        rate, device = len(q) / float(np.median(times)), jax.devices()[0].platform
        print(f"  MJX, {iterations} iterations, {len(q)} states, {device}: {rate / 1e6:.3f} million a second")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=1 << 20)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--robots", nargs="*", default=["legs"])
    parser.add_argument("--mjx", type=int, default=0, help="states of MJX; 0: not at all")
    parser.add_argument("--steps", type=int, default=0, help="of robots that are simulated; 0: none")
    given = parser.parse_args()
    for text in given.robots:
        robot, stand = loaded(text)
        states = random_states(robot, stand, given.states)
        for dtype in ("float32", "float64"):
            kernel = robot.kernel("contact_step", step=STEP)
            label = f"contact_step of {robot.name}"
            compared(label, kernel, [array.astype(dtype) for array in states], given.calls)
        if given.steps:
            some = [array[: -(-given.states // 4)] for array in states]
            rollouts(robot, stand, some, given.steps, min(given.calls, 5))
        if given.mjx:
            time_mjx(robot, [array[: given.mjx] for array in states], given.calls)
    solved = lw.kernel(A=(SIZE, SIZE), b=SIZE)(lambda A, b: solve(*ldl(A), b))
    rng, count = np.random.default_rng(0), max(given.states // 64, 512)
    A = rng.normal(size=(count, SIZE, SIZE))
    A = A @ A.swapaxes(1, 2) + SIZE * np.eye(SIZE)
    b = rng.normal(size=(count, SIZE))
    for dtype in ("float32", "float64"):
        equations = [A.reshape(count, -1).astype(dtype), b.astype(dtype)]
        compared(f"{SIZE} equations", solved, equations, given.calls)


if __name__ == "__main__":
    main()
