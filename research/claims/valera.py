"""A. Valera et al., Solving the inverse dynamic control for low cost real-time industrial robot control, 2003."""

from __future__ import annotations

import math

import numpy as np

from linkwise.robot.loading import general_chain, load
from research.claims.claim import Claim, Outcome, judged
from research.claims.states import ROUND_OFF, difference, states

PAPER = "Valera 2003"
TABLE_2 = (
    ((4, 0), (0, 0)),
    ((62, -75), (46, -61)),
    ((24, -23), (18, -18)),
    ((31, -38), (26, -37)),
    ((0, 0), (1, 0)),
)


def gibbs_appell() -> Outcome:
    robot = load("puma_valera")
    q, qd, qdd = states(robot, 200)
    found = robot.inverse_dynamics(q, qd, qdd, algorithm="gibbs_appell")
    off = difference(found, robot.inverse_dynamics(q, qd, qdd))
    return judged(
        off < ROUND_OFF, f"the PUMA of Tables 5 to 7, 200 states: at most {off:.0e} from Newton–Euler"
    )


def table_2() -> Outcome:
    sums = [(sum(row[k][0] for row in TABLE_2), sum(row[k][1] for row in TABLE_2)) for k in (0, 1)]
    right = sums == [(121, -136), (91, -116)]
    at_six = [a * 6 + b for a, b in sums]
    return judged(
        right and at_six == [590, 430], f"its steps sum to 121n − 136 and 91n − 116; {at_six} for six joints"
    )


def pauls_convention() -> Outcome:
    found = (133 * 6 - 74, 97 * 6 - 71)
    return judged(found == (724, 511), f"133n − 74 and 97n − 71 are {found} for six joints")


def cheaper_than_newton_euler() -> Outcome:
    """Both algorithms on one general arm, through one compiler, with all ten parameters per link."""
    arm = general_chain(6, base_offsets=False)
    counts = {}
    for algorithm in ("gibbs_appell", "newton_euler"):
        found = arm.kernel("inverse_dynamics", algorithm=algorithm, base_parameters=False).operations
        counts[algorithm] = found.multiplications + found.additions
    text = f"general arm of six joints: {counts['gibbs_appell']} operations, Newton–Euler {counts['newton_euler']}"
    return judged(counts["gibbs_appell"] < counts["newton_euler"], text)


def velocity_term() -> Outcome:
    """A ramp of 0.5 rad/s under v = q̈_d − K_d q̇ − K_p e, and with K_d ė in place of K_d q̇."""
    from linkwise.motion import ramp
    from linkwise.simulate import simulate

    robot = load("two_link")
    kp, kd, speed = 100.0, 20.0, 0.5
    errors = {}
    for name in ("printed", "corrected"):

        def law(t, q, qd, reference, name=name):
            wanted, wanted_speed, acceleration = reference
            velocity = qd if name == "printed" else qd - wanted_speed
            v = acceleration - kd * velocity - kp * (q - wanted)
            return robot.inverse_dynamics(q, qd, v, friction=False)

        motion = ramp([0.0, 0.0], [speed, speed], 1.0)
        start = {"q": np.zeros(2), "qd": np.full(2, speed)}
        found = simulate(robot, law, motion, duration=0.9, step=2e-3, **start)
        errors[name] = float(np.abs(found.error[-1]).max())
    expected = kd / kp * speed
    return judged(
        errors["printed"] < 1e-3,
        f"along a ramp of {speed} rad/s the printed law lags by {errors['printed']:.3f} rad (K_d q̇_d / K_p is "
        f"{expected:.3f}), the law with K_d ė by {errors['corrected']:.0e} rad",
    )


def straight_move() -> Outcome:
    way = math.dist((0.6, 0.175, 0.250), (0.018, 0.757, 0.0))
    return judged(abs(way / 0.1 - 8.6) < 0.05, f"{way:.4f} m at 0.1 m/s take {way / 0.1:.2f} s")


CLAIMS = (
    Claim(
        "gibbs_appell",
        PAPER,
        "(9)–(26)",
        "Gibbs–Appell inverse dynamics in O(n), with the corrections noted.",
        gibbs_appell,
    ),
    Claim(
        "valera_table_2",
        PAPER,
        "Tables 2, 3",
        "121n − 136 and 91n − 116, 590 and 430 for six joints.",
        table_2,
    ),
    Claim(
        "pauls_convention",
        PAPER,
        "section 2",
        "133n − 74 and 97n − 71 in Paul's convention, 724 and 511.",
        pauls_convention,
    ),
    Claim(
        "cheaper_than_newton_euler",
        PAPER,
        "section 5",
        "Slightly fewer operations than Newton–Euler.",
        cheaper_than_newton_euler,
    ),
    Claim("velocity_term", PAPER, "Table 4", "Tracking control by v = q̈_d − K_d q̇ − K_p e.", velocity_term),
    Claim("straight_move", PAPER, "section 4", "The straight move at 0.1 m/s takes 8.6 s.", straight_move),
)
