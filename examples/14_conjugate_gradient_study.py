"""The study that Fijany and Scheid left open: how many iterations do their conjugate gradients need?

They expect O(√n) iterations of the preconditioned algorithm, because inertia matrices "can be practically
considered as diagonal dominant". Here: iterations to an estimated error of 1e-10, the share of mass matrices that
are diagonally dominant, what rotor inertia changes, and what a warm start saves along a motion.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion

ARMS = {name: lw.load(name) for name in ("puma560", "ur10e", "panda")}
SIZES, rows = (3, 6, 12, 24), {}
CHAINS = {f"chain {n}": lw.general_chain(n, seed=1) for n in SIZES}


def geared(robot: lw.Robot) -> lw.Robot:
    """The same robot with rotor inertias of a fifth of the largest own inertia of a joint."""
    rotor = 0.2 * np.diagonal(robot.mass_matrix(np.zeros(robot.dof))).max()
    return robot.with_parameters({f"{name}.rotor_inertia": rotor for name in robot.joint_names})


def study(robot: lw.Robot) -> tuple[int, float, float, float]:
    """(n, iterations without and with preconditioner, share of diagonally dominant mass matrices)."""
    states = np.random.default_rng(0).uniform(-2, 2, (5, 3, robot.dof))
    options = ({"preconditioned": scaled, "tolerance": 1e-10} for scaled in (False, True))
    counts = [np.median([robot.conjugate_gradient(*s, **o).count for s in states]) for o in options]
    M = np.abs(robot.mass_matrix(np.random.default_rng(1).uniform(-2, 2, (200, robot.dof))))
    dominant = (2 * np.einsum("sii->si", M) > M.sum(axis=-1)).all(axis=-1)
    return robot.dof, *counts, dominant.mean()


print("robot                 n    √n   plain   preconditioned   diagonally dominant")
for name, robot in (ARMS | CHAINS).items():
    for label, variant in ((name, robot), (name + ", geared", geared(robot))):
        n, plain, scaled, dominant = rows[label] = study(variant)
        print(f"{label:<18} {n:4d} {np.sqrt(n):5.1f} {plain:7.0f} {scaled:16.0f} {dominant:21.0%}")

move, panda = motion.quintic(np.zeros(7), np.full(7, 0.5), 1.0), ARMS["panda"]
moments = [move.at(t) for t in np.arange(0.3, 0.31, 1e-3)]
states = [(q, qd, panda.inverse_dynamics(q, qd, qdd)) for q, qd, qdd in moments]
cold = [panda.conjugate_gradient(*s, tolerance=1e-4).count for s in states[1:]]
pairs = zip(states[1:], [moment.qdd for moment in moments[:-1]], strict=True)  # a sample before
warm = [panda.conjugate_gradient(*s, tolerance=1e-4, start=a).count for s, a in pairs]
print(f"panda along a move at 1 kHz, to 1e-4: {np.median(cold):.0f} cold, {np.median(warm):.0f} warm")
assert np.median(warm) <= np.median(cold)  # the error of q̈ is known after about n steps, wherever they start
assert all(scaled > np.sqrt(n) for n, _, scaled, _ in rows.values())  # √n iterations are never enough
assert all(rows[name][3] < 0.05 for name in ("ur10e", "panda"))  # without rotors: almost never dominant
assert rows["puma560"][3] > 0.95  # behind gears of 54 to 108: dominant indeed
assert all(rows[name + ", geared"][1] <= rows[name][1] for name in ARMS)  # rotor inertia saves iterations
axes = panels(1, 1, "Iterations of conjugate gradients, general chains of n links", (7, 4.5))
if axes is not None:
    for k, label in ((1, "plain"), (2, "preconditioned")):
        for ending, style in (("", "o-"), (", geared", "o--")):
            axes[0].plot(SIZES, [rows[f"chain {n}{ending}"][k] for n in SIZES], style, label=label + ending)
    axes[0].plot(SIZES, np.sqrt(SIZES), "k:", label="√n")
    axes[0].legend()
