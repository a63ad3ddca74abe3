"""Steps with contact beside MuJoCo's, in one run on one core.

For each robot: operations; seconds of processor time of the first call; microseconds a step in a batch of states that
move (the best of ``--rounds``), once from nothing and once from the impulses of the step before, as ``simulate`` does;
for one state called from Python; and of ``mj_step`` for the same masses, joints, candidates, friction and step, which
starts from the step before, too; how many times faster; quantiles of the residual of the laws over states of robots
that are kicked and fall. MuJoCo's contact is soft (default solver and cone; ``--elliptic`` for the other one), so it
is a comparison of cost: its feet creep, and its residual has another meaning. Robots of MuJoCo are written by Linkwise
(``lw.save``) with spheres at the same places; springs and dampers of its joints take the place of the PD law.
``--table`` prints residuals for several numbers of sweeps and Newton's steps instead.

``gripper`` is the Panda with a gripper that holds a cube, ``stack`` four boxes: both with boxes as geoms in MuJoCo.

    python benchmarks/contact.py [--robots legs biped box ratio gripper stack FILE:FOOT,FOOT:RADIUS:ANGLES ...]
        [--quick] [--table]
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from contact_parts.peers import time_of_mujoco
from contact_parts.robots import loaded, moving_states
from contact_parts.scenes import SCENES, scene_states, time_of_scene_in_mujoco

import linkwise as lw
from linkwise.algorithms.contact import effort
from linkwise.algorithms.contact.solver import Effort


def best_time(call, rounds: int, count: int) -> float:
    """Processor time of one of ``count`` steps [µs]."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / count * 1e6


def quantiles(residual: np.ndarray) -> str:
    parts = " ".join(f"{np.quantile(residual, x):.0e}" for x in (0.5, 0.99, 0.999, 1.0))
    return f"{parts} ({(residual < 1e-6).mean():.2%} under 1e-6)"


def table(robot: lw.Robot, states) -> None:
    """Residuals for several efforts."""
    for tried in (
        *(
            Effort(sweeps, newton)
            for sweeps, newton in ((4, 0), (8, 0), (0, 4), (2, 1), (1, 2), (2, 2), (3, 2), (6, 3))
        ),
        *effort.REDUNDANT.values(),
    ):
        number = 1 + tried.sweeps + 10 * tried.newton_steps + (tried.filtered.most if tried.filtered else 0)
        marked = robot.with_contacts([*robot.contacts, lw.Ground(height=1e-12 * number)])
        effort.chosen = lambda *_, tried=tried: tried
        operations = marked.kernel("contact_step").operations
        name = f"{tried.filtered}" if tried.filtered else f"{tried.sweeps} sweeps, {tried.newton_steps} steps"
        print(f"{name}: residuals {quantiles(marked.contact_residual(*states[:3]))}; {operations}")


def measured(robot: lw.Robot, states, options: argparse.Namespace, their_time) -> None:
    """Print times and residuals of one robot."""
    q, qd, tau, impulse = states
    started = robot.kernel("contact_step", inputs="start_impulse")
    robot.compile("contact_step")
    # into the same arrays, as MuJoCo does: pages of new ones may cost half as much as the step
    given = {"threads": 1, "out": robot.contact_step(q, qd, tau)}
    batch = best_time(lambda: robot.contact_step(q, qd, tau, **given), options.rounds, len(q))
    warm = best_time(lambda: started(q, qd, tau, impulse, **given), options.rounds, len(q))
    q_one, qd_one, tau_one = (np.ascontiguousarray(part[0]) for part in states[:3])

    def singly() -> None:
        for _ in range(200):
            robot.contact_step(q_one, qd_one, tau_one)

    single = best_time(singly, options.rounds, 200)
    residual = robot.kernel("contact_residual", inputs="start_impulse")
    print(f"  residuals {quantiles(robot.contact_residual(q, qd, tau))}, {len(q)} states")
    print(f"  residuals from the last impulses {quantiles(residual(q, qd, tau, impulse))}")
    print(f"  batch {batch:.3f} us a step, {warm:.3f} us from the last impulses, one state {single:.2f} us")
    try:
        theirs, contacts = their_time()
    except (ImportError, lw.ModelError) as error:
        print(f"  no MuJoCo: {error}")
        return
    best = min(batch, warm)
    print(
        f"  MuJoCo {theirs:.2f} us a step, {contacts:.1f} contacts: "
        f"{theirs / best:.1f} times the batch, {theirs / single:.1f} times one state"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="*", default=["legs"])
    parser.add_argument("--states", type=int, default=200, help="robots; ten states of each")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--elliptic", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.states, options.rounds = 20, 1
    for text in options.robots:
        steps = 40 if options.quick else 400
        if text in SCENES:
            scene = SCENES[text]()
            robot, start = scene.robot, scene.start
            make, their_time = (
                partial(scene_states, scene, options.states, steps),
                partial(time_of_scene_in_mujoco, scene, options.rounds, options.elliptic),
            )
        else:
            robot, stand = loaded(text)
            start = np.concatenate([robot.neutral[:7], stand])
            make, their_time = (
                partial(moving_states, robot, stand, options.states, steps),
                partial(time_of_mujoco, robot, stand, options.rounds, options.elliptic),
            )
        begin = time.process_time()
        robot.contact_step(start, np.zeros(robot.dof), np.zeros(robot.dof))
        first = time.process_time() - begin
        print(f"{robot.name}: {robot.kernel('contact_step').operations}")
        print(f"  first call {first:.2f} s of processor time")
        if options.table:
            table(robot, make())
        else:
            measured(robot, make(), options, their_time)


if __name__ == "__main__":
    main()
