"""A. Fijany, R. Scheid, Efficient conjugate gradient algorithms for computation of the manipulator forward dynamics."""

from __future__ import annotations

import math

import numpy as np

from linkwise.robot.loading import general_chain, load
from research.claims.claim import PARTLY, Claim, Outcome, judged
from research.claims.states import ROUND_OFF, arms, difference, states

PAPER = "Fijany–Scheid"
TOLERANCE = 1e-10
LENGTHS = (4, 8, 16, 32)


def at_most_n_steps() -> Outcome:
    """The relative residual after n iterations, worst of some states."""
    left = {}
    for robot in arms():
        q, qd, qdd = states(robot, 5)
        tau = robot.inverse_dynamics(q, qd, qdd)
        left[robot.name] = max(
            min(
                robot.conjugate_gradient(
                    *state, preconditioned=False, tolerance=1e-15, limit=robot.dof
                ).residuals[-1:]
            )
            for state in zip(q, qd, tau, strict=True)
        )
    worst = max(left, key=left.__getitem__)
    return judged(
        left[worst] < ROUND_OFF,
        f"not in floating point: after {load(worst).dof} iterations {worst} has a residual of {left[worst]:.0e}",
    )


def square_root_of_n() -> Outcome:
    """Iterations of the preconditioned method on general arms of growing length."""
    counts = [_iterations(n, preconditioned=True) for n in LENGTHS]
    power = float(np.polyfit(np.log(LENGTHS), np.log(counts), 1)[0])
    shown = ", ".join(f"{c:.0f} for n = {n}" for n, c in zip(LENGTHS, counts, strict=True))
    return judged(
        power < 0.7, f"general arms to {TOLERANCE:g}: {shown} iterations, growing like n^{power:.1f}"
    )


def diagonal_dominance() -> Outcome:
    """How often every diagonal entry of the mass matrix exceeds the sum of the others in its row."""
    parts = {}
    for robot in arms():
        M = np.abs(robot.mass_matrix(states(robot, 400)[0]))
        diagonal = np.diagonal(M, axis1=-2, axis2=-1)
        parts[robot.name] = float((2 * diagonal > M.sum(axis=-1)).all(axis=-1).mean())
    shown = ", ".join(f"{name} {part:.0%}" for name, part in parts.items())
    shown += "; only the PUMA's rotors, behind high gears, make it so"
    return judged(
        min(parts.values()) > 0.9,
        f"of 400 random positions the mass matrix is dominated by its diagonal in: {shown}",
    )


def preconditioning_helps() -> Outcome:
    ratios = {}
    for robot in arms():
        q, qd, qdd = states(robot, 5)
        tau = robot.inverse_dynamics(q, qd, qdd)
        counts = [
            sum(
                robot.conjugate_gradient(
                    *state, preconditioned=p, tolerance=TOLERANCE, limit=40 * robot.dof
                ).count
                for state in zip(q, qd, tau, strict=True)
            )
            for p in (True, False)
        ]
        ratios[robot.name] = counts[0] / counts[1]
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    text = f"iterations with over without the diagonal, to {TOLERANCE:g}: {shown}"
    if all(ratio <= 1.0 for ratio in ratios.values()):
        return judged(True, text)
    return Outcome(PARTLY, text) if any(ratio < 1.0 for ratio in ratios.values()) else judged(False, text)


def first_residual() -> Outcome:
    """With r₀ = 0 as printed the loop ends before its first step, with x = 0."""
    robot = load("puma560")
    q, qd, qdd = states(robot, 1)
    tau = robot.inverse_dynamics(q, qd, qdd)
    off = difference(np.zeros_like(qdd), qdd)
    found = difference(robot.forward_dynamics(q, qd, tau, algorithm="conjugate_gradient"), qdd)
    return judged(
        off < 0.5, f"r₀ = 0 ends the loop at once with q̈ = 0; with r₀ = τ − b the error is {found:.0e}"
    )


def diagonal_elements() -> Outcome:
    """z_i·K_i z_i from composite bodies (the compound links of the mass matrix), against unit accelerations."""
    worst = 0.0
    for robot in arms():
        q, _, _ = states(robot, 20)
        M = robot.mass_matrix(q, algorithm="newton_euler")
        found = robot.mass_matrix(q, algorithm="compound_link")
        worst = max(worst, difference(*(np.diagonal(m, axis1=-2, axis2=-1) for m in (found, M))))
    text = f"a_ii = z_i·K_i z_i is within {worst:.0e} of unit accelerations; (67) prints k_i·z_i, which is no number"
    return judged(worst < ROUND_OFF, text)


def table_ii() -> Outcome:
    n = 6
    ours = 47 * n * n + 177 * n - 117, 46 * n * n + 118 * n - 87
    theirs = 76 * n * n + 120 * n - 21, 56 * n * n + 87 * n - 6
    return judged((*theirs, *ours) == (3435, 2532, 2637, 2277), f"for n = 6: {theirs} and {ours}")


def diagonal_costs_one_iteration() -> Outcome:
    ratios = [(n - 1) * 101 / (93 * n - 33) for n in (6, 7, 12, 100)]
    return judged(
        all(abs(ratio - 1) < 0.1 for ratio in ratios),
        f"(n − 1)(51 + 50) over n(47 + 46) − (10 + 23): {', '.join(f'{r:.2f}' for r in ratios)} for n = 6, 7, 12, 100",
    )


def _iterations(n: int, preconditioned: bool) -> float:
    """Iterations to the tolerance on a general arm of n joints, the mean of a few states."""
    robot = general_chain(n)
    q, qd, qdd = states(robot, 3)
    counts = []
    for state in zip(q, 0.1 * qd, qdd, strict=True):
        tau = robot.inverse_dynamics(*state).tolist()
        found = robot.conjugate_gradient(
            state[0], state[1], tau, preconditioned=preconditioned, tolerance=TOLERANCE, limit=60 * n
        )
        counts.append(found.count if found.converged else math.inf)
    return float(np.mean(counts))


CLAIMS = (
    Claim(
        "at_most_n_steps",
        PAPER,
        "section II",
        "Convergence in at most n steps is guaranteed.",
        at_most_n_steps,
    ),
    Claim(
        "square_root_of_n",
        PAPER,
        "section II",
        "A well chosen preconditioner often converges after O(√n) iterations.",
        square_root_of_n,
    ),
    Claim(
        "diagonal_dominance",
        PAPER,
        "section II",
        "Inertia matrices of industrial manipulators can be considered diagonal dominant.",
        diagonal_dominance,
    ),
    Claim(
        "preconditioning_helps",
        PAPER,
        "section II",
        "Scaling by the diagonal converges faster.",
        preconditioning_helps,
    ),
    Claim("first_residual", PAPER, "before (5) and (10)", "The residual starts at r₀ = 0.", first_residual),
    Claim(
        "diagonal_elements",
        PAPER,
        "(64)–(67)",
        "The diagonal of the mass matrix from moments of composite bodies.",
        diagonal_elements,
    ),
    Claim("table_ii", PAPER, "Table II", "3435/2532 before, 2637/2277 now, for n = 6.", table_ii),
    Claim(
        "diagonal_costs_one_iteration",
        PAPER,
        "section IV.2",
        "The diagonal costs almost as much as one iteration.",
        diagonal_costs_one_iteration,
    ),
)
