"""Arms whose geometry and inertias are inputs: one kernel for every arm of six turning joints."""

from dataclasses import replace

import numpy as np

import linkwise as lw
from linkwise.algorithms import conjugate_gradient, newton_euler
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import Mechanism, Turn
from linkwise.spatial import RigidInertia, Symmetric, Vector

N = 6
SIZES = {"alpha": N, "a": N, "d": N, "mass": N, "com": 3 * N, "spread": 3 * N, "rotor": 1}


def arm(alpha, a, d, mass, com, spread, rotor) -> Mechanism:
    """Modified Denavit–Hartenberg parameters; masses, their centres, and their spread about them along three axes."""
    pattern = mechanism_of(lw.general_chain(N))
    links = []
    for k, link in enumerate(pattern):
        c, s = lw.cos(alpha[k]), lw.sin(alpha[k])
        x, y, z = com[3 * k : 3 * k + 3]
        m, (u, v, w) = mass[k], (extent * extent for extent in spread[3 * k : 3 * k + 3])
        moments = (
            v + w + y * y + z * z,
            -(x * y),
            -(x * z),
            u + w + x * x + z * z,
            -(y * z),
            u + v + x * x + y * y,
        )
        body = RigidInertia(m, Vector(m * x, m * y, m * z), Symmetric(*(m * moment for moment in moments)))
        lever = Vector(a[k], -(s * d[k]), c * d[k])
        turns = {"twist": Turn(0.0, c, s), "offset": Turn.by(0.0)}
        links.append(replace(link, lever=lever, inertia=body, rotor_inertia=rotor[0], **turns))
    return Mechanism(pattern.name, links, Vector(0.0, 0.0, -9.81), pattern.base)


def iterations(preconditioned: bool):
    """A kernel: conjugate gradients to a relative error of 1e-9, and how many iterations they took."""

    @lw.kernel(**SIZES, q=N, qd=N, tau=N)
    def solve(q, qd, tau, **parameters):
        qdd, error, count = conjugate_gradient.forward_dynamics(
            arm(**parameters), q, qd, tau, preconditioned=preconditioned, tolerance=1e-9, limit=300
        )
        return {"qdd": np.array(qdd), "error": error, "count": count}

    return solve


@lw.kernel(**SIZES, q=N, qd=N, qdd=N)
def torques(q, qd, qdd, **parameters):
    """What those accelerations need, by another algorithm."""
    return (
        np.array(newton_euler.inverse_dynamics(arm(**parameters), q, qd, qdd)) + parameters["rotor"][0] * qdd
    )
