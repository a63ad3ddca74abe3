"""G. Rodriguez, Kalman filtering, smoothing and recursive robot arm forward and inverse dynamics, JPL 86-48, 1986."""

from __future__ import annotations

import numpy as np

from linkwise.robot.loading import general_chain, load
from research.claims.claim import Claim, Outcome, judged
from research.claims.states import ROUND_OFF, arms, difference, states

PAPER = "Rodriguez 1986"


def bias_force() -> Outcome:
    """The torques of the term m ω×(ω×p) that (4.11) leaves out of the force of every link."""
    robot = load("puma560")
    q, qd, qdd = states(robot)
    right = robot.inverse_dynamics(q, qd, qdd, friction=False)
    missing = np.zeros_like(right)
    for joint, body in zip(robot.moving_joints, robot.bodies(), strict=True):
        J = robot.jacobian(q, joint.child)
        w = np.einsum("bij,bj->bi", J[:, :3], qd)
        p = np.einsum("bij,j->bi", robot.pose(q, joint.child)[:, :3, :3], body.com)
        force = body.mass * np.cross(w, np.cross(w, p))
        missing += np.einsum("bij,bi->bj", J[:, 3:], force)
    off = difference(right - missing, right)
    return judged(
        off < ROUND_OFF, f"without m ω×(ω×p) the torques of the PUMA 560 are off by up to {off:.0%}"
    )


def boundary_value() -> Outcome:
    worst = 0.0
    for robot in arms():
        q, qd, qdd = states(robot)
        found = robot.inverse_dynamics(q, qd, qdd, algorithm="boundary_value")
        worst = max(worst, difference(found, robot.inverse_dynamics(q, qd, qdd)))
    return judged(worst < ROUND_OFF, f"five arms: at most {worst:.0e} from Newton–Euler")


def covariance() -> Outcome:
    worst = 0.0
    for robot in arms():
        q, _, _ = states(robot)
        worst = max(worst, difference(robot.mass_matrix(q, algorithm="covariance"), robot.mass_matrix(q)))
    return judged(worst < ROUND_OFF, f"five arms: at most {worst:.0e} from the mass matrix by compound links")


def filter_and_smoother() -> Outcome:
    worst = 0.0
    for robot in arms():
        q, qd, qdd = states(robot)
        tau = robot.inverse_dynamics(q, qd, qdd)
        back = robot.inverse_dynamics(q, qd, robot.forward_dynamics(q, qd, tau, algorithm="kalman"))
        worst = max(worst, difference(back, tau))
    return judged(
        worst < ROUND_OFF, f"five arms: torques of the filter's accelerations at most {worst:.0e} off"
    )


def closed_form_inverse() -> Outcome:
    worst = 0.0
    for robot in arms():
        q, _, _ = states(robot)
        product = robot.inverse_mass_matrix(q, algorithm="kalman") @ robot.mass_matrix(q)
        worst = max(worst, float(np.abs(product - np.eye(robot.dof)).max()))
    return judged(worst < 1e-10, f"five arms: M⁻¹M differs from 1 by at most {worst:.0e}")


def linear_cost() -> Outcome:
    """Operations of the filter on general arms of growing length: each joint must add as many as the one before."""
    totals = [
        general_chain(n).kernel("forward_dynamics", algorithm="kalman").operations.total for n in range(4, 9)
    ]
    growth = np.diff(totals)
    return judged(
        len(set(growth.tolist())) == 1,
        f"general arms of 4 to 8 joints: {', '.join(map(str, totals))} operations, {growth[-1]} more for every joint",
    )


CLAIMS = (
    Claim("bias_force", PAPER, "(4.4), (4.11)", "The bias force, as printed.", bias_force),
    Claim(
        "boundary_value",
        PAPER,
        "sections 4–6",
        "Inverse dynamics is a two-point boundary-value problem; forces are states, accelerations costates.",
        boundary_value,
    ),
    Claim("covariance", PAPER, "(7.7)–(7.11)", "The mass matrix is a covariance of the states.", covariance),
    Claim(
        "filter_and_smoother",
        PAPER,
        "(8.2)–(8.13)",
        "Forward dynamics is a Kalman filter inward and a Bryson–Frazier smoother outward.",
        filter_and_smoother,
    ),
    Claim(
        "closed_form_inverse",
        PAPER,
        "(10.2)–(10.6), (10.30)",
        "The inverse of the mass matrix in closed form from the filter's gains.",
        closed_form_inverse,
    ),
    Claim(
        "linear_cost", PAPER, "section 1", "The cost grows linearly with the number of links.", linear_cost
    ),
)
