"""Same problem, same solution: velocities of contacts beside Pinocchio's ADMM solver and plain sweeps in long doubles.

Problems are those of states of robots that are kicked and fall: a quadruped, a biped with four corners at each foot, a
box, a gripper that holds a cube, a stack of boxes. Where impulses are not unique, the velocities are: these are
compared, relative to the largest velocity without impulses. A reference counts where it keeps the laws to 1e-10,
computed in long doubles; Pinocchio's comes first, then ``--sweeps`` projected sweeps for those that it does not solve.
Coulomb friction may allow two motions. Where both solutions keep the laws and differ, both are improved
(``polished``): if they then keep the laws to 1e-13 and still differ, the problem has two solutions. A reference whose
contacts cannot all be at rest, by more than that, is none (``contradiction``). The last line compares ours with the
solutions in long doubles that are found from them: also where no reference is one.

    python benchmarks/contact_solutions.py [--robots legs biped box gripper stack] [--problems 10000] [--sweeps 2000]
"""

from __future__ import annotations

import argparse

import numpy as np
from contact_parts.problems import Problems, contradiction, polished, problems_of, solved_by_pinocchio, swept
from contact_parts.robots import loaded, moving_states
from contact_parts.scenes import SCENES, scene_states

SOLVED = 1e-10
CLOSE = 1e-8
EXACT = 1e-13


def references(problems: Problems, sweeps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(impulses, whether they are a solution, whether they are Pinocchio's)."""
    p = np.zeros_like(problems.c)
    found = np.zeros(len(p), dtype=bool)
    try:
        import pinocchio as pin

        if hasattr(pin, "ADMMConstraintSolver"):
            for k in range(len(p)):
                own = solved_by_pinocchio(pin, problems, k)
                if own is not None:
                    p[k], found[k] = own, True
    except ImportError:
        print("Pinocchio is not installed")
    found &= problems.residual(p) < SOLVED
    others = np.flatnonzero(~found)
    if len(others) and sweeps:
        p[others] = swept(problems.part(others), sweeps)
    return p, problems.residual(p) < SOLVED, found


def print_pairs(problems: Problems, which: np.ndarray, own: np.ndarray, wanted: np.ndarray) -> None:
    """What pairs of solutions that differ are when both are improved."""
    two, same, wrong, apart = 0, 0, 0, []
    for k in which:
        (a, first), (b, second) = (polished(problems, k, p[k]) for p in (own, wanted))
        away = np.abs(problems.G[k] @ (a - b)).max() / problems.size[k]
        apart.append(away)
        if away <= CLOSE:
            same += 1
        elif max(first, second) < EXACT:
            two += 1
        elif first < EXACT and contradiction(problems, k, wanted[k]) > EXACT:
            wrong += 1
    if len(which):
        middle, most = np.median(apart), max(apart)
        print(
            f"  they differ in {len(which)}: two solutions to 1e-13 in {two}, one after all in {same}, contacts of the "
            f"reference contradict each other in {wrong}, open {len(which) - two - same - wrong}; "
            f"difference median {middle:.0e}, largest {most:.0e}"
        )


def print_nearest(problems: Problems, own: np.ndarray) -> None:
    """How far ours are from solutions in long doubles, which are found from them."""
    moved = np.full(len(own), np.inf)
    for k in range(len(own)):
        p, residual = polished(problems, k, own[k])
        if residual < EXACT:
            moved[k] = np.abs(problems.G[k] @ (p - own[k])).max() / problems.size[k]
    near = moved < CLOSE
    print(
        f"  a solution to 1e-13 is within 1e-8 of ours in {near.sum()}, largest difference of these "
        f"{moved[near].max(initial=0.0):.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="*", default=["legs", "biped", "box", "gripper", "stack"])
    parser.add_argument("--problems", type=int, default=10_000, help="of all robots together")
    parser.add_argument("--sweeps", type=int, default=2000)
    options = parser.parse_args()
    share = -(-options.problems // len(options.robots))
    for name in options.robots:
        if name in SCENES:
            scene = SCENES[name]()
            robot, states = scene.robot, scene_states(scene, -(-share // 10), 100)[:3]
        else:
            robot, stand = loaded(name)
            states = moving_states(robot, stand, -(-share // 10), 100)[:3]
        states = tuple(part[:share] for part in states)
        problems = problems_of(robot, states)
        touching = (problems.c[:, 2::3] < 0.0).any(axis=1)
        wanted, solved, theirs = references(problems, options.sweeps)
        own = robot.contact_step(*states, accuracy=1e-12)[2].reshape(len(wanted), -1)
        residual = problems.residual(own)
        apart = np.abs(problems.velocities(own) - problems.velocities(wanted)).max(axis=1) / problems.size
        both = solved & (residual < SOLVED)
        agree = both & (apart < CLOSE)
        print(
            f"{name}: {len(own)} problems, {touching.sum()} with contact; ours keep the laws to 1e-10 in "
            f"{(residual < SOLVED).sum()}, references in {solved.sum()} ({theirs.sum()} of Pinocchio)"
        )
        print(
            f"  both: {both.sum()}; velocities agree to 1e-8: {agree.sum()}, largest difference of these "
            f"{apart[agree].max(initial=0.0):.1e}"
        )
        print_pairs(problems, np.flatnonzero(both & ~agree), own, wanted)
        print_nearest(problems, own)


if __name__ == "__main__":
    main()
