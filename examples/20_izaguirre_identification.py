"""Izaguirre's identification of a PUMA 260 (1992, sections 6 and 7), on a simulated one with his parameters.

Ten runs over polynomials through points inside the ranges, sampled every 28 ms; velocities and accelerations by
central differences; 15 samples cut at each end; independent parameters by rank, rotor inertias first (78 → 52); a
weighted fit of every run; what causes less than 1 % of the largest torque is dropped (52 → 23), and the rest fitted
again. The truth of our robot is his Table 2.
"""

import numpy as np
from figures import panels
from izaguirre_tables import CONDITION, GRAVITY, TABLE_1, TABLE_2, draw, label, print_beside

import linkwise as lw
from linkwise import control, motion
from linkwise.identify import Regression, base_by_rank, by_contribution, weighted
from linkwise.simulate import simulate

SAMPLE, CUT, VIA = 0.028, 15, 9
robot, rng = lw.load("puma260"), np.random.default_rng(1992)
base = base_by_rank(robot, order="rotors first")
names = {label(name): name for name in TABLE_1}
assert sorted(base.labels) == sorted(names), "the 52 of his Table 1"


def recorded():
    """One run: nine points inside the ranges in 7 s, noise of encoders, noise of 4 % in the torques."""
    points = rng.uniform(-1.2, 1.2, (VIA, robot.dof)) + np.array([0, -0.8, 0.8, 0, 0, 0])
    move = motion.quintic_spline(np.linspace(0, 7.0, VIA), points)
    law = control.ComputedTorque(robot, control.Gains.from_frequency(20.0))
    run = simulate(robot, law, move, duration=7.0, step=0.001, every=28, continuous=True)
    q = run.q + 2e-5 * rng.normal(size=run.q.shape)
    tau = run.tau + 0.04 * np.sqrt((run.tau**2).mean(axis=0)) * rng.normal(size=q.shape)
    qd = np.gradient(q, SAMPLE, axis=0)
    qdd = np.gradient(qd, SAMPLE, axis=0)
    Y = robot.regressor(q, qd, qdd)[CUT:-CUT, :, list(base.columns)]
    return Regression(Y, tau[CUT:-CUT], base.labels, len(base), ())


def statistics(columns):
    """Average and standard deviation over the ten runs by the names of the paper."""
    x = np.array([weighted(run.pick(columns)).x for run in runs]).T
    return {names[base.labels[k]]: (row.mean(), row.std()) for k, row in zip(columns, x, strict=True)}


runs = [recorded() for _ in range(10)]
both = [np.concatenate(parts) for parts in zip(*((run.Y, run.tau) for run in runs), strict=True)]
together = Regression(*both, base.labels, len(base), ())
found = by_contribution(together, full := weighted(together))
ours_1, ours_2 = statistics(range(len(base))), statistics(found.kept)
counts = len(robot.parameters), len(base), len(found.kept)
print("parameters, independent, significant: his 78, 52, 23; ours {}, {}, {}".format(*counts))
print_beside(ours_1, ours_2)

condition = [np.linalg.cond(part.stacked(full.weights)[0]) for part in (together, together.pick(found.kept))]
print("\ncondition numbers: his {:.0f} → {:.0f}, ours {:.0f} → {:.0f}".format(*CONDITION, *condition))
g, (m6, y4, z6) = 9.81, (ours_2[name][0] for name in ("m6", "y4", "z6"))
gravity = {"c12": g * m6 * 0.2032, "c13": -g * (y4 + m6 * 0.2032), "c15": -g * z6}
for name, (lloyd, paper) in GRAVITY.items():
    print(f"{name}: Lloyd {lloyd:.3f}, paper {paper:.3f}, ours {gravity[name]:.3f} N·m")

axes = panels(1, 1, "Standard deviations over ten runs: among 52 parameters, and alone", (13, 4))
if axes is not None:
    draw(axes[0], ours_1, ours_2)

assert set(ours_2) == set(TABLE_2)
assert condition[1] < condition[0] / 5
for name, (value, _) in TABLE_2.items():
    assert abs(ours_2[name][0] - value) < 4 * ours_2[name][1] / 10**0.5 + 0.02 * abs(value), name
assert np.allclose(list(gravity.values()), [5.518, -1.769, -0.1374], rtol=0.02)
