"""K. Kozłowski, New computational algorithms for a discrete Kalman filter in robot dynamics, 1990."""

from __future__ import annotations

import numpy as np

from linkwise.robot.loading import load
from research.claims.claim import PARTLY, Claim, Outcome, judged
from research.claims.states import ROUND_OFF, difference, states

PAPER = "Kozłowski 1990"

# Rows of the tables as (multiplications, additions, divisions), each (a, b) for a·n + b.
TABLE_1 = {
    "bias terms": ((74, -83), (44, -58)),
    "costate propagation": ((6, -10), (6, -10)),
    "costate update": ((16, -11), (15, -15)),
    "state propagation": ((30, -31), (36, -43)),
    "state update": ((16, -16), (8, -8)),
}
TABLE_1_TOTAL = ((142, -151), (109, -134))
TABLE_2 = {
    "bias terms": ((74, -83), (44, -58), (0, 0)),
    "state propagation": ((6, -10), (12, -21), (0, 0)),
    "inertia propagation": ((56, -104), (22, -115), (0, 0)),
    "gain": ((0, 0), (0, 0), (5, -10)),
    "innovations": ((0, 0), (1, 0), (0, 0)),
    "residuals": ((0, 0), (0, 0), (1, 0)),
    "state update": ((46, -56), (39, -47), (0, 0)),
    "inertia update": ((55, -56), (85, -139), (0, 0)),
    "costate propagation": ((6, -10), (6, -10), (0, 0)),
    "joint acceleration": ((5, -2), (6, -3), (0, 0)),
    "costate update": ((16, -28), (9, -18), (0, 0)),
}
TABLE_2_TOTAL = ((264, -349), (264, -411), (6, -10))


def equivalence() -> Outcome:
    robot = load("puma560")
    q, qd, qdd = states(robot, 300)
    found = robot.inverse_dynamics(q, qd, qdd, algorithm="boundary_value", friction=False)
    off = difference(found, robot.inverse_dynamics(q, qd, qdd, algorithm="newton_euler", friction=False))
    return judged(off < ROUND_OFF, f"PUMA 560, 300 states: at most {off:.0e} apart")


def table_1() -> Outcome:
    sums = _sums(TABLE_1)
    right = sums == TABLE_1_TOTAL
    at_six = tuple(a * 6 + b for a, b in TABLE_1_TOTAL)
    return judged(
        right and at_six == (701, 520), f"the columns sum to {_written(sums)}; {at_six} for six joints"
    )


def table_2() -> Outcome:
    sums = _sums(TABLE_2)
    wrong = [
        f"{name} sum to {_term(found)}, not {_term(total)}"
        for name, found, total in zip(
            ("multiplications", "additions", "divisions"), sums, TABLE_2_TOTAL, strict=True
        )
        if found != total
    ]
    return judged(not wrong, "; ".join(wrong) + "; with 62n − 115 for the inertia propagation they do")


def table_2_totals() -> Outcome:
    total = sum(a * 6 + b for a, b in TABLE_2_TOTAL)
    return judged(total == 2434, f"264n − 349 + 264n − 411 + 6n − 10 = 534n − 770, for six joints {total}")


def faster_than_brandl() -> Outcome:
    cheaper = [n for n in range(1, 21) if _filter(n) < 470 * n - 420]
    return judged(
        cheaper == [1, 2, 3, 4, 5],
        f"534n − 770 is below Brandl's 470n − 420 up to n = {max(cheaper)}; at n = 6 it is {_filter(6)} against 2400",
    )


def faster_than_composite() -> Outcome:
    """The filter beside the mass matrix with a factorised solve, both as the paper counts them."""
    dearer = [n for n in range(2, 51) if _filter(n) >= n**3 / 3 + 20.5 * n**2 + (341 + 1 / 6) * n - 395]
    composite = {n: round(n**3 / 3 + 20.5 * n**2 + (341 + 1 / 6) * n - 395) for n in dearer}
    listed = ", ".join(f"n = {n}: {_filter(n)} to {composite[n]}" for n in dearer)
    return judged(
        not dearer,
        f"by the paper's own polynomials the filter needs more for {listed}; from 6 on it needs less",
    )


def faster_than_newton_euler() -> Outcome:
    """Khosla's polynomial is not printed; Luh, Walker and Paul's is, in Valera's Table 3, counted in the same way."""
    cheaper = [n for n in range(3, 51) if 251 * n - 285 < 211 * n - 194]
    text = (
        "1221 to Khosla's 1199 at n = 6; 251n − 285 exceeds Luh, Walker and Paul's 211n − 194 from n = 3 on"
    )
    return Outcome(PARTLY, text) if not cheaper else judged(True, text)


def gravity_sign() -> Outcome:
    """The base's acceleration as printed, λ = g, gives gravity torques of the other sign."""
    robot = load("puma560")
    q, _, _ = states(robot)
    right = robot.gravity_torques(q)
    printed = robot.with_gravity([-g for g in robot.gravity]).gravity_torques(q)
    upside_down = bool(np.allclose(printed, -right))
    return judged(
        not upside_down, "with λ = g at the base all gravity torques change their sign; λ = −g is right"
    )


def _filter(n: int) -> int:
    return 534 * n - 770


def _sums(table) -> tuple[tuple[int, int], ...]:
    return tuple(
        (sum(a for a, _ in column), sum(b for _, b in column)) for column in zip(*table.values(), strict=True)
    )


def _term(pair: tuple[int, int]) -> str:
    return f"{pair[0]}n {'+' if pair[1] >= 0 else '−'} {abs(pair[1])}"


def _written(pairs) -> str:
    return " and ".join(map(_term, pairs))


CLAIMS = (
    Claim(
        "equivalence",
        PAPER,
        "(3.35)–(3.45)",
        "The boundary-value form and Newton–Euler give the same torques.",
        equivalence,
    ),
    Claim(
        "table_1", PAPER, "Table 1", "142n − 151 multiplications and 109n − 134 additions in all.", table_1
    ),
    Claim("table_2", PAPER, "Table 2", "The columns add up to the totals printed under them.", table_2),
    Claim(
        "table_2_totals", PAPER, "section 4.2", "534n − 770 operations, 2434 for six joints.", table_2_totals
    ),
    Claim(
        "faster_than_brandl",
        PAPER,
        "section 4.2",
        "Fewer operations than Brandl's for n < 6.",
        faster_than_brandl,
    ),
    Claim(
        "faster_than_composite",
        PAPER,
        "section 4.2",
        "Fewer operations than mass matrix and linear solve, for any n.",
        faster_than_composite,
    ),
    Claim(
        "faster_than_newton_euler",
        PAPER,
        "section 4.1",
        "The new inverse dynamics is faster than Khosla's Newton–Euler for n < 6.",
        faster_than_newton_euler,
    ),
    Claim("gravity_sign", PAPER, "section 4.1", "λ at the base is g.", gravity_sign),
)
