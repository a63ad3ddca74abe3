"""A. Izaguirre et al., A new computational structure for real-time dynamics, 1992."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise.model import Inertia
from linkwise.robot.loading import load
from linkwise.robot.robot import Robot
from research.claims import izaguirre_program
from research.claims.claim import CONFIRMED, PARTLY, Claim, Outcome, judged
from research.claims.states import ROUND_OFF, states

PAPER = "Izaguirre 1992"
AFFECTED = {(1, 1), (1, 2), (1, 3)}


def printed_program() -> Outcome:
    """Every entry of the printed program against the mass matrix of its own model."""
    robot = load("puma260")
    q, _, _ = states(robot, 500)
    printed, corrected, others, gravity = 0.0, 0.0, 0.0, 0.0
    for angles, M, g in zip(q, robot.mass_matrix(q), robot.gravity_torques(q), strict=True):
        numbered = [0.0, *angles]
        D, D_i = izaguirre_program.dyn_robot(numbered)
        fixed, _ = izaguirre_program.dyn_robot(numbered, correction=1.0)
        for (i, j), value in D.items():
            off = abs(value - M[i - 1, j - 1])
            if (i, j) in AFFECTED:
                printed = max(printed, off)
                corrected = max(corrected, abs(fixed[i, j] - M[i - 1, j - 1]))
            else:
                others = max(others, off)
        gravity = max(gravity, *(abs(value - g[i - 1]) for i, value in D_i.items()))
    assert max(others, gravity) < ROUND_OFF, (others, gravity)
    return judged(
        printed < ROUND_OFF,
        f"500 positions: D11, D12 and D13 are off by up to {printed:.4f} kg·m²; with the products J413 and J423, which "
        f"it leaves out, by {corrected:.0e}; all other entries agree to {max(others, gravity):.0e}",
    )


def program_operations() -> Outcome:
    counted = izaguirre_program.operations()
    ours = load("puma260").kernel("coefficients").operations
    text = (
        f"the listing has {counted[0]} multiplications and {counted[1]} additions; the compiler needs "
        f"{ours.multiplications} and {ours.additions} for the same (correct) coefficients"
    )
    return Outcome(CONFIRMED if counted[0] <= 98 and counted[1] <= 70 else PARTLY, text)


def velocity_operations() -> Outcome:
    ours = load("puma260").kernel("velocity_torques", algorithm="velocity_recursion").operations
    best = load("puma260").kernel("velocity_torques").operations
    return judged(
        ours.multiplications <= 140 and ours.additions <= 110,
        f"by its recursion the compiler needs {ours.multiplications} and {ours.additions}, by Newton–Euler "
        f"{best.multiplications} and {best.additions}",
    )


def gravity_coefficients() -> Outcome:
    """c15 = −g z6, c13 = −g (y4 + m6 d4) and c12 = g m6 a2 from the numbers of the specification file."""
    p = izaguirre_program
    c15, c13, c12 = -p.GRAV * p.Z6, -p.GRAV * (p.Y4 + p.M6 * p.D4), p.GRAV * p.M6 * p.A2
    fine = abs(c15 + 0.13743) < 1e-4 and abs(c12 - 5.51792) < 1e-4
    text = f"c15 = {_minus(c15, 5)} and c12 = {c12:.5f} as printed, but c13 = {_minus(c13, 4)}, printed −1.176644"
    return Outcome(PARTLY, text) if fine and abs(c13 + 1.176644) > 0.1 else judged(fine, text)


def independent_parameters() -> Outcome:
    """The rank of the regressor of an arm with this geometry and all 78 parameters."""
    reduced = load("puma260")
    rng = np.random.default_rng(0)
    links = [replace(link, inertia=_some_inertia(rng)) for link in reduced.links]
    full = Robot(reduced.name, links, reduced.joints, gravity=reduced.gravity)
    labels = [
        label
        for label in full.parameter_labels
        if not label.endswith(("viscous_friction", "coulomb_friction"))
    ]
    of_links = full.base_parameters(links_only=True)
    everything = full.base_parameters()
    count = len(everything.labels)
    text = (
        f"{len(full.parameter_labels)} parameters, rank {count}; the {len(labels) - full.dof} moments of links alone "
        f"have rank {len(of_links.labels)}"
    )
    return judged(len(full.parameter_labels) == 78 and count == 52, text)


def _some_inertia(rng: np.random.Generator) -> Inertia:
    return Inertia.from_com(rng.uniform(1, 2), rng.normal(size=3), rng.uniform(1, 2, 3))


def synchronous_task() -> Outcome:
    """Σ_j D_ij q̈_j and the sum of the rest: n multiplications, n − 1 additions and one more."""
    n = 6
    return judged(
        (n, n - 1 + 1) == (6, 6), "six products, five sums, and one for velocity and gravity torques together"
    )


def first_moment_of_link_six() -> Outcome:
    c15 = {z6: -izaguirre_program.GRAV * z6 for z6 in (0.01401, 0.014041)}
    return judged(
        False,
        f"0.014041 and 0.01401: c15 = {_minus(c15[0.014041], 5)} with one, {_minus(c15[0.01401], 5)} with the other",
    )


def _minus(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


CLAIMS = (
    Claim(
        "printed_program",
        PAPER,
        "Appendix A",
        "The generated C program computes D_ij and D_i.",
        printed_program,
    ),
    Claim(
        "program_operations",
        PAPER,
        "section 7",
        "Coefficients in 98 multiplications and 70 additions.",
        program_operations,
    ),
    Claim("velocity_operations", PAPER, "section 7", "Velocity torques in 140 and 110.", velocity_operations),
    Claim(
        "c13", PAPER, "section 7", "c15 = −0.13743, c13 = −1.176644, c12 = 5.51792 N·m.", gravity_coefficients
    ),
    Claim(
        "independent_parameters",
        PAPER,
        "section 6.1",
        "Of 78 parameters 52 are independent.",
        independent_parameters,
    ),
    Claim(
        "synchronous_task",
        PAPER,
        "abstract",
        "Six multiplications and six additions per joint.",
        synchronous_task,
    ),
    Claim(
        "z6",
        PAPER,
        "Table 2, Appendix A",
        "z6 is the same in the table and in the file.",
        first_moment_of_link_six,
    ),
)
