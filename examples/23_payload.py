"""What is it carrying? A payload from a run with it and one without, and drive gains from a payload that is known.

Both runs are fitted at once: what they have in common is the robot, what they differ in is the load. The same
equations, with the load known, give the gains of the drives from currents.
"""

from dataclasses import replace

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.identify import Noise, drive_gains, excite, identify_payload, simulated_log
from linkwise.model.inertia import LABELS, Inertia

robot, rng = lw.load("puma560"), np.random.default_rng(23)
load = Inertia.from_com(1.5, (0.02, -0.01, 0.08), np.diag([0.004, 0.005, 0.003]))
carrying = robot.with_payload(load.mass, load.com, load.matrix_about_com)
motion = excite(robot, duration=10.0, starts=1, iterations=45).trajectory
unloaded, loaded = (
    Noise(1e-5, 0.03).added(simulated_log(arm, motion, 10.0, rate=500.0), rng) for arm in (robot, carrying)
)

found = identify_payload(robot, unloaded, loaded)
lower, upper = found.estimate.interval(0.99)
print(f"mass {found.mass:.3f} kg (true {load.mass}), centre of mass {found.com.round(4)} m (true {load.com})")
print("      true       found      99 % interval")
for k, label in enumerate(LABELS):
    print(
        f"{label:<4}{load.parameters[k]:9.4f}{found.estimate.x[k]:11.4f}    {lower[k]:8.4f} to {upper[k]:7.4f}"
    )
    assert lower[k] <= load.parameters[k] <= upper[k]

gains = np.array([12.0, 14.0, 9.0, 6.0, 6.5, 7.0])  # [N·m/A]
currents = [replace(run, tau=run.tau / gains) for run in (unloaded, loaded)]
drives = drive_gains(robot, *currents, load)
print("drive gains [N·m/A]:", drives.gains.round(2), "±", drives.deviations.round(2), "true:", gains)
assert (np.abs(drives.gains - gains) < 4 * drives.deviations).all()

axes = panels(1, 1, "The ten parameters of the load: estimate and 99 % interval, less the truth", (10, 4))
if axes is not None:
    width = (upper - lower) / 2
    error = (found.estimate.x - load.parameters) / width
    axes[0].errorbar(LABELS, error, 1.0, fmt="o", capsize=4)
    axes[0].axhline(0.0, color="k", linewidth=0.8)
    axes[0].set(ylabel="in half widths of the interval")
