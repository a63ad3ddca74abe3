"""Predictive control for C packages: from one plan to the next, torques with feedback gains, and the functions of
``optimal.predictive.guard`` that watch readings, keep limits and set the numbers of the problem."""

from __future__ import annotations

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.embedded.entry import Entry, Options
from linkwise.optimal.predictive import plans, progress, watching
from linkwise.optimal.predictive.guard import Bounds, Guard, finite_torques
from linkwise.optimal.predictive.standard import EFFORT, JOINTS, TIP, reaching, target_distance, tip_distance
from linkwise.optimal.problem import Problem
from linkwise.robot.robot import Robot

FEWER = 8
"""Of an iteration there are so many times fewer reference states: each has thousands of numbers."""
GUARD_WORDS = {
    "acceleration": "that the last torques should cause, from mpc_guard; zeros at first",
    "period": "since the last sample, and until the next one [s]",
    "speed": "limits of speed [rad/s or m/s]",
    "believed": "positions and velocities that are believed",
    "modelled": "positions and velocities for the acceleration: by the model where a reading does not change",
    "disturbance": "accelerations that the model misses [rad/s^2 or m/s^2]",
    "verdict": "code (0: no fault, 1: readings that cannot be, 2: a joint that stands still though it should "
    "move), its joint or -1, whether a reading was not believed, whether there has been a state",
    "torque": "of the plan [N*m or N]",
    "stop": "1: brake, whatever the plan says",
    "low": "lower limits of the torques [N*m or N]",
    "high": "upper limits of the torques [N*m or N]",
    "lowest": "lower limits of positions [rad or m]",
    "highest": "upper limits of positions [rad or m]",
    "action": "0: torques of the plan, 1: changed to keep limits, 2: braked",
    "target": "of the joints [rad or m]",
    "reach": "largest distance of a target that a plan sees",
    "frequency": "natural frequency of the motion [rad/s]",
    "aimed_at": "for joints.target of the parameters",
    "hold": "torques that hold the arm: to start a plan from, and for effort.target where the parameters have it",
    "scale": "for effort.scale where the parameters have it, row by row",
    "least": "for torque.lower",
    "most": "for torque.upper",
    "position": "of the target [m]",
    "orientation": "of the target, quaternion x y z w",
    "near_position": "for tip.position of the parameters",
    "near_orientation": "for tip.orientation",
    "distance": "of the target [m], [rad]",
    "progress": "code (0: approaching, 1: at rest elsewhere, 2: it moves and is not approached), whether the arm "
    "rests at the target, its distance [rad or m]",
}
"""What inputs and outputs of the functions of ``optimal.guard`` are."""


def predictive_entries(robot: Robot, options: Options) -> list[Entry]:
    """The functions of a predictive controller.

    Args:
        robot: the robot.
        options: horizon, step, iterations, frequency, frame (its pose is the target), torque_limits, friction.
    """
    problem = reaching(
        robot,
        horizon=options.horizon,
        step=options.step,
        frequency=options.highest_frequency,
        tip=options.frame is not None,
        frame=options.frame,
        torque_limits=True
        if options.torque_limits is None
        else np.asarray(options.torque_limits, dtype=float),
        friction=options.friction,
    )
    N = problem.horizon
    target = f"pose of {options.frame}" if options.frame is not None else "joint positions"
    summary = (
        f"predictive control of {robot.name}, {N} steps of {problem.step:g} s: {options.iterations} iteration(s) of "
        f"the solver from a measured state (q, qd) and the last plan, moved on in time. The target ({target}), "
        f"weights and torque limits are numbers of parameters, {problem.np} for each of {N + 1} stages; mpc_aim gives "
        "those for the state that the arm is in. Use the plan if 'usable' in the report is 1, else keep the last one"
    )
    words = {
        "start": "measured state: positions, velocities",
        "parameters": "targets, weights and limits, row by row; see the _AT_ definitions and _parameters",
        "states": "states of the last plan, row by row",
        "torques": "torques of the last plan, row by row",
        "late": "time since that was made, by the duration of a step",
        "regularisation": "0 at first, then that of the last report",
        "new_states": "states of the new plan",
        "new_torques": "torques of the new plan",
        "gains": "K of every step, row by row: tau = torques + K (x - states)",
        "report": ", ".join(plans.REPORT),
    }
    numbers = {"HORIZON": N, "ROW": problem.np, "REPORT": len(plans.REPORT)}
    numbers |= {f"REPORT_{name.upper()}": k for k, name in enumerate(plans.REPORT)}
    numbers |= {
        f"AT_{name.replace('.', '_').upper()}": problem.where(name).start for name in problem.parameters
    }
    return [
        Entry(
            "mpc",
            summary,
            plans.plan_kernel(problem, iterations=options.iterations, one_room=True),
            options.dtype,
            definitions=numbers,
            tables={"parameters": _with_gravity(robot, problem)},
            states=lambda count: _typical(robot, problem, max(1, count // FEWER)),
            words=words,
        ),
        _torques(robot, problem, options),
        *_guarding(robot, problem, options),
    ]


def _guarding(robot: Robot, problem: Problem, options: Options) -> list[Entry]:
    """What stands between sensors, plan and motors."""
    guard = Guard(problem.dynamics, robot, options.dtype, options.frame, options.frame is not None)
    bounds = Bounds.of(robot)
    limits = bounds.numbers()
    reach = {"reach": np.minimum(target_distance(bounds.speed, options.highest_frequency), 1e9)}
    torques = {"low": finite_torques(problem.torque_lower), "high": finite_torques(problem.torque_upper)}
    n = robot.dof

    def made(name: str, kernel: Kernel, summary: str, tables: dict[str, np.ndarray]) -> Entry:
        def states(count: int) -> dict[str, np.ndarray]:
            return _states(kernel, {**limits, **torques, **reach, **tables}, count)

        own = {key: values for key, values in tables.items() if key in dict(kernel.inputs)}
        return Entry(name, summary, kernel, options.dtype, tables=own, states=states, words=GUARD_WORDS)

    found = [
        made(
            "mpc_watch",
            guard.watch,
            f"which readings of {robot.name} are believed: a measured state beside what the last torques should have "
            "led to. Call it first in every sample; on a fault give stop = 1 to mpc_guard",
            {"memory": np.zeros(watching.Memory(n).size), "speed": limits["speed"]},
        ),
        made(
            "mpc_guard",
            guard.command,
            f"torques of {robot.name} that keep the limits of speed and position one sample ahead, braking torques "
            "where those of the plan cannot be made to",
            {**limits, **torques},
        ),
        made(
            "mpc_aim",
            guard.aim,
            f"numbers of the parameters for the state that {robot.name} is in: a target nearby, weights, torque limits "
            "with room for the disturbance; for every row",
            reach,
        ),
    ]
    found.append(
        made(
            "mpc_progress",
            guard.progress,
            f"whether {robot.name} gets nearer to its target. Call it after mpc_watch in every sample; stop where the "
            "code is 2, and set the memory to zeros for another target",
            {"memory": np.zeros(len(progress.MEMORY)), **limits},
        )
    )
    if options.frame is not None:
        found.append(
            made(
                "mpc_aim_tip",
                guard.tip,
                f"a pose of {options.frame} on the way to a target that may be far away; for every row",
                {"reach": tip_distance(problem, bounds.speed, options.highest_frequency)},
            )
        )
    return found


def _states(kernel: Kernel, known: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """Inputs of a check: random states near rest, the limits of the robot."""
    rng = np.random.default_rng(13)
    usual = {"period": 1e-3, "frequency": 10.0, "stop": 0.0}
    found: dict[str, np.ndarray] = {}
    for name, size in dict(kernel.inputs).items():
        if name in known:
            found[name] = np.tile(known[name], (count, 1))
        elif name in usual:
            found[name] = np.full((count, size), usual[name])
        else:
            found[name] = rng.uniform(-0.5, 0.5, (count, size))
    if "memory" in found:  # some samples follow others
        found["memory"] = (
            rng.uniform(-0.01, 0.01, found["memory"].shape) * (np.arange(count) % 2)[:, np.newaxis]
        )
        found["memory"][:, -1] = np.arange(count) % 2
    return found


def _torques(robot: Robot, problem: Problem, options: Options) -> Entry:
    """Torques with feedback, within the limits."""
    summary = (
        f"torques of {robot.name} by a plan: torque + gain (measured - state of the plan), within the limits, and "
        "torque alone and fault = 1 where a number that is needed is not finite"
    )
    words = {
        "measured": "measured state: positions, velocities",
        "planned": "state of the plan at the begin of its step",
        "following": "state of the plan at the end of the step",
        "part": "of the step that has passed: 0 to 1",
        "torque": "of the plan in this step",
        "gain": "of the plan in this step, row by row",
    }
    kernel = plans.torques_kernel(problem, options.dtype)
    return Entry("mpc_torques", summary, kernel, options.dtype, words=words)


def _with_gravity(robot: Robot, problem: Problem) -> np.ndarray:
    """The table of parameters for resting at the default target."""
    p = problem.p.copy()
    rest = p[0, problem.where(f"{JOINTS}.target")]
    if f"{EFFORT}.target" in problem.parameters:
        p[:, problem.where(f"{EFFORT}.target")] = _holding(robot, problem, rest)
    return p


def _holding(robot: Robot, problem: Problem, q: np.ndarray) -> np.ndarray:
    held = np.asarray(robot.gravity_torques(q))[..., list(problem.dynamics.driven)]
    return np.clip(held, -problem.torque_upper, problem.torque_upper)


def _typical(robot: Robot, problem: Problem, count: int) -> dict[str, np.ndarray]:
    """Inputs of an iteration: random states and targets near the rest position, plans that hold the arm."""
    rng = np.random.default_rng(11)
    N, n = problem.horizon, robot.dof
    rest = problem.p[0, problem.where(f"{JOINTS}.target")]
    q, qd = rest + rng.uniform(-0.2, 0.2, (count, n)), rng.uniform(-0.5, 0.5, (count, n))
    start = np.concatenate([q, qd], axis=1)
    tables = np.tile(_with_gravity(robot, problem), (count, 1, 1))
    wanted = rest + rng.uniform(-0.4, 0.4, (count, n))
    tables[:, :, problem.where(f"{JOINTS}.target")] = wanted[:, np.newaxis]
    if f"{TIP}.position" in problem.parameters:
        pose = np.asarray(robot.pose(wanted, problem.costs[1].frame))  # type: ignore[attr-defined]
        tables[:, :, problem.where(f"{TIP}.position")] = pose[:, np.newaxis, :3, 3]
    torques = np.repeat(_holding(robot, problem, q)[:, np.newaxis], N, axis=1)
    torques = torques + rng.uniform(-0.5, 0.5, torques.shape)
    return {
        "start": start,
        "parameters": tables.reshape(count, -1),
        "states": np.repeat(start[:, np.newaxis], N + 1, axis=1).reshape(count, -1),
        "torques": torques.reshape(count, -1),
        "late": rng.uniform(0.0, 2.0, (count, 1)),
        "regularisation": np.zeros((count, 1)),
    }
