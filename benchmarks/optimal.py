"""Time for an iteration of the solver: one problem, many together, Crocoddyl in the same run, and a GPU.

    python benchmarks/optimal.py [--robot panda] [--horizon 50] [--problems 1024] [--iterations 10] [--rounds 10]
    python benchmarks/optimal.py --gpu [--horizon 32] [--problems 16384,65536]
    python benchmarks/optimal.py --large solo12,simple_humanoid [--horizon 20]

The problem: the tip reaches a point, with small weights of positions, velocities and torques. On the CPU one thread
computes; rounds of all contestants alternate, and the best round of each counts, in processor time: other programs on
the machine do not count. Crocoddyl 3.2.1 (with pin 4.0.0) takes
part where it is installed: the same robot, costs, integrator and start, FDDP with the same number of iterations.
Crocoddyl tries step sizes one after the other and mostly takes the first; the kernel tries all of ``--steps`` always.

``--large``: robots of example-robot-data with a floating base keep their posture; processor time to trace and to
compile an iteration without a cache, and to run it.

``--gpu`` needs CuPy and an NVIDIA GPU: iterations per second in float32 with data on the device, and whether the bits
are those of the CPU. With ``--text`` nothing is run: it prints the size of the generated CUDA.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.compiler.runtime import host
from linkwise.optimal import Effort, JointTracking, Problem, TipTracking, iteration
from linkwise.optimal.iterations import REPORT
from linkwise.optimal.many import holding_torques


def reach(name: str, horizon: int) -> Problem:
    """The tip of a robot moves to a point nearby."""
    robot = lw.load(name)
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]) if name == "panda" else robot.neutral
    tip = np.asarray(robot.pose(q0 + 0.4))[:3, 3]
    return Problem(
        robot,
        horizon=horizon,
        step=0.01,
        start=(q0, np.zeros(robot.dof)),
        costs=[
            TipTracking(tip, position=10.0),
            JointTracking(q0, weight=1e-2, velocity=0.0, velocity_weight=1e-2),
            Effort(weight=1e-3),
        ],
        terminal=[TipTracking(tip, position=100.0)],
        torque_limits=False,
        friction=False,
    )


def inputs(problem: Problem, count: int, dtype: str = "float64") -> list[np.ndarray]:
    """Starts near that of the problem, at rest and held against gravity; the first one is the problem's."""
    rng, N = np.random.default_rng(0), problem.horizon
    starts = np.tile(problem.x0, (count, 1))
    starts[1:, : problem.robot.nq] += 0.1 * rng.standard_normal((count - 1, problem.robot.nq))
    torques = np.repeat(holding_torques(problem, starts)[:, None], N, axis=1)
    states = np.repeat(starts[:, None], N + 1, axis=1)
    tables = np.tile(problem.p.ravel(), (count, 1))
    found = [starts, tables, states.reshape(count, -1), torques.reshape(count, -1), np.zeros((count, 1))]
    return [array.astype(dtype) for array in found]


class Crocoddyl:
    """The same problem for Crocoddyl."""

    def __init__(self, problem: Problem, iterations: int):
        import crocoddyl
        import pinocchio as pin

        from linkwise.bench.peers.built import pinocchio_model

        robot, h = problem.robot, problem.step
        model = pinocchio_model(pin, robot)
        data, q0, n = model.createData(), problem.x0[: robot.nq], robot.nq
        pin.forwardKinematics(model, data, q0)
        last = model.njoints - 1
        place = data.oMi[last].inverse() * pin.SE3(np.asarray(robot.pose(q0)))
        frame = model.addFrame(pin.Frame("tip", last, place, pin.FrameType.OP_FRAME))
        state = crocoddyl.StateMultibody(model)
        values = {key: problem.p[:, problem.where(key)] for key in problem.parameters}
        target = values["tip.position"][0]

        def model_of(row: int, running: bool) -> Any:
            costs = crocoddyl.CostModelSum(state)
            residual = crocoddyl.ResidualModelFrameTranslation(state, frame, target)
            weight = float(values["tip.position_weight"][row, 0])
            costs.addCost("tip", crocoddyl.CostModelResidual(state, residual), weight)
            if running:
                rest = np.concatenate([q0, np.zeros(n)])
                weights = np.concatenate(
                    [values["joints.weight"][row], values["joints.velocity_weight"][row]]
                )
                quadratic = crocoddyl.ActivationModelWeightedQuad(weights)
                own = crocoddyl.CostModelResidual(state, quadratic, crocoddyl.ResidualModelState(state, rest))
                costs.addCost("x", own, 1.0)
                effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state))
                costs.addCost("u", effort, float(values["effort.weight"][row, 0]))
            free = crocoddyl.DifferentialActionModelFreeFwdDynamics(
                state, crocoddyl.ActuationModelFull(state), costs
            )
            return crocoddyl.IntegratedActionModelEuler(free, h if running else 0.0)

        N = problem.horizon
        x0 = problem.x0
        shooting = crocoddyl.ShootingProblem(x0, [model_of(0, True)] * N, model_of(-1, False))
        shooting.nthreads = 1
        self.solver = crocoddyl.SolverFDDP(shooting)
        self.solver.th_stop = 1e-30
        self.given = [x0] * (N + 1), [holding_torques(problem, x0)] * N
        self.iterations = iterations

    def __call__(self) -> None:
        """A fixed number of iterations from the same trajectory."""
        self.solver.solve(*self.given, self.iterations, False)


def on_cpu(given: argparse.Namespace) -> None:
    count, iterations = int(given.problems.split(",")[0]), given.iterations
    problem = reach(given.robot, given.horizon)
    steps = [float(size) for size in given.steps.split(",")]
    kernel = iteration(problem, iterations=iterations, steps=steps)
    single = iteration(problem, iterations=iterations, steps=[1.0])
    batch = inputs(problem, count)
    one = [array[0] for array in batch]
    runs = {
        f"one problem, {len(steps)} step sizes": (lambda: kernel(*one), 1),
        f"{count} problems, 1 step size": (lambda: single(*batch, threads=1), count),
        f"{count} problems, {len(steps)} step sizes": (lambda: kernel(*batch, threads=1), count),
    }
    for made, width in ((kernel, 1), (kernel, None), (single, None)):
        made.native("float64", width or host.lanes("float64"))
    try:
        peer = Crocoddyl(problem, iterations)
        runs = {"Crocoddyl, FDDP": (peer, 1), **runs}
    except ImportError:
        peer = None
        print("Crocoddyl is not installed: no comparison")
    best = dict.fromkeys(runs, np.inf)
    for _ in range(given.rounds):
        for label, (run, number) in runs.items():
            begin = time.thread_time()
            run()
            best[label] = min(best[label], (time.thread_time() - begin) / iterations / number)
    report = dict(zip(REPORT, kernel(*one)[3], strict=True))
    print(
        f"{given.robot} reach, horizon {given.horizon}, {iterations} iterations, one thread, best of {given.rounds}"
    )
    print(f"cost after them {report['cost']:.9g}" + (f", Crocoddyl {peer.solver.cost:.9g}" if peer else ""))
    for label, seconds in best.items():
        ratio = f", {best['Crocoddyl, FDDP'] / seconds:6.1f} times as fast as Crocoddyl" if peer else ""
        print(f"{label:36s} {1e6 * seconds:9.2f} µs for an iteration of a problem{ratio}")
    print(f"operations of an iteration: {single.operations.total / iterations:.0f}")


def on_large(given: argparse.Namespace) -> None:
    import os
    import warnings

    sys.path.insert(0, str(Path(__file__).parent))
    from large_robots import path_of

    os.environ["LINKWISE_CACHE"] = ""
    warnings.simplefilter("ignore", lw.ModelWarning)
    for name in given.large.split(","):
        robot = lw.load(path_of(name), base="floating")
        rest = {"velocity": 0.0, "velocity_weight": 0.1}
        problem = Problem(
            robot,
            horizon=given.horizon,
            step=0.01,
            costs=[JointTracking(robot.neutral, weight=1.0, **rest), Effort(1e-3)],
            terminal=[JointTracking(robot.neutral, weight=10.0, **rest)],
            torque_limits=False,
            friction=False,
        )
        begin = time.process_time()
        kernel = iteration(problem, iterations=1)
        kernel.program("float64")
        traced = time.process_time()
        kernel.native("float64", 1)
        compiled = time.process_time()
        one = [array[0] for array in inputs(problem, 1)]
        best = np.inf
        for _ in range(given.rounds):
            start = time.thread_time()
            kernel(*one)
            best = min(best, time.thread_time() - start)
        print(
            f"{name}: {robot.dof} velocity coordinates, horizon {given.horizon}: traced {traced - begin:.1f} s, "
            f"compiled {compiled - traced:.1f} s, an iteration {1e3 * best:.2f} ms",
            flush=True,
        )


def on_gpu(given: argparse.Namespace) -> None:
    from linkwise.compiler.emit.cuda import source as cuda
    from linkwise.compiler.emit.cuda.procedure import ProcedureFrame

    problem = reach(given.robot, given.horizon)
    steps = [float(size) for size in given.steps.split(",")]
    module = cuda.module(iteration(problem, iterations=given.iterations, steps=steps).program("float32"))
    print(
        f"{given.robot} reach, horizon {given.horizon}, float32, {len(steps)} step size(s); CUDA text "
        f"{len(module.text) >> 10} KiB, {module.scratch // module.threads >> 10} KiB of memory for a problem"
    )
    if given.text:
        return
    for resident in map(int, given.resident.split(",")):
        ProcedureFrame.resident = resident
        kernel = iteration(problem, iterations=given.iterations, steps=steps)
        kernel.native_program(
            "float32"
        ).key = None  # code is found by its text, which names the number of blocks
        for count in map(int, given.problems.split(",")):
            print(f"{resident:2d} blocks, {_rate(problem, kernel, count, given)}", flush=True)


def _rate(problem: Problem, kernel: Any, count: int, given: argparse.Namespace) -> str:
    """Iterations per second of so many problems, whether the bits are the CPU's, and residuals."""
    import cupy

    batch = inputs(problem, count, "float32")
    device = [cupy.asarray(array) for array in batch]
    found = kernel(*device)
    checked = min(count, 64)
    wanted = kernel(*(array[:checked] for array in batch))
    same = all(cupy.asnumpy(a[:checked]).tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))
    seconds = []
    for _ in range(given.rounds):
        cupy.cuda.get_current_stream().synchronize()
        begin = time.perf_counter()
        found = kernel(*device)
        cupy.cuda.get_current_stream().synchronize()
        seconds.append(time.perf_counter() - begin)
    report = cupy.asnumpy(found[3])
    return (
        f"{count:7d} problems: {count * given.iterations / min(seconds):.3g} iterations/s, "
        f"{1e3 * min(seconds) / given.iterations:.2f} ms for all; {'same bits as the CPU' if same else 'BITS DIFFER'}; "
        f"largest gap {report[:, 1].max():.2g}, median |gradient| {np.median(report[:, 2]):.2g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--horizon", type=int, default=None)
    parser.add_argument("--problems", default=None)
    parser.add_argument("--iterations", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", default=None)
    parser.add_argument("--resident", default="8", help="blocks of 32 problems on a multiprocessor at a time")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--large", default="", help="robots of example-robot-data, by comma")
    given = parser.parse_args()
    given.horizon = given.horizon or (32 if given.gpu else 20 if given.large else 50)
    given.iterations = given.iterations or (10 if given.gpu else 4)  # Crocoddyl has converged after six
    given.problems = given.problems or ("16384,65536" if given.gpu else "1024")
    given.steps = given.steps or ("1" if given.gpu else "1,0.5,0.25,0.125")
    (on_large if given.large else on_gpu if given.gpu else on_cpu)(given)


if __name__ == "__main__":
    main()
