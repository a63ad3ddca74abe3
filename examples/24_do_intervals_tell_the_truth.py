"""A simulated campaign: do 95 % confidence intervals hold the truth in 95 % of the cases?

A robot with rotors and friction follows an exciting motion; noise on positions and torques passes the same filters as
any recording's, so neighbouring residuals are correlated, and the fit has eaten part of them. Both are accounted for: a
textbook covariance would be too sure of itself. ``benchmarks/campaign.py`` repeats this 200 times and more.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.identify import Noise, coverage, excite, simulated_log

RUNS = 50
robot = lw.load("puma260")
motion = excite(robot, duration=10.0, starts=1, iterations=45)
log = simulated_log(robot, motion.trajectory, motion.duration, rate=500.0)
found = coverage(robot, log, noise=Noise(position=1e-5, torque=0.05), runs=RUNS)

print(f"{len(found.labels)} base parameters, {RUNS} recordings with different noise")
print(f"95 % intervals held the truth in {100 * found.overall:.1f} % of all cases")
ratio = found.spread / found.claimed
print(f"spread of the estimates / claimed deviation: median {np.median(ratio):.2f}")
for k in np.argsort(-np.abs(found.truth))[:8]:
    print(
        f"  {found.labels[k]:<24}{found.truth[k]:9.4f} ± {found.claimed[k]:.4f}, held {100 * found.share[k]:3.0f} %"
    )

axes = panels(1, 2, f"Confidence intervals of {len(found.labels)} parameters in {RUNS} runs", (12, 4.5))
if axes is not None:
    axes[0].loglog(found.claimed, found.spread, "o")
    axes[0].loglog(found.claimed, found.claimed, "k", linewidth=0.8)
    axes[0].set(xlabel="claimed standard deviation [SI]", ylabel="spread of the estimates [SI]")
    chance = np.random.default_rng(24).binomial(RUNS, 0.95, 100_000)
    bins = np.arange(int(0.75 * RUNS), RUNS + 2) - 0.5
    each = np.full(len(chance), len(found.labels) / len(chance))
    axes[1].hist(np.round(found.share * RUNS), bins=bins, label="found")
    axes[1].hist(
        chance, bins=bins, weights=each, histtype="step", color="k", label="if all were exactly 95 %"
    )
    axes[1].set(xlabel="runs in which the interval held the truth", ylabel="parameters")
    axes[1].legend()
assert 0.92 < found.overall < 0.98
assert 0.9 < np.median(ratio) < 1.1
