"""An exciting motion for a seven-joint arm: what limits allow, and what it is worth.

The condition number of the base regressor (links, rotors, friction) says how much noise in torques is magnified in
parameters. The motion keeps position, speed, acceleration and torque limits and stays above the table.
``benchmarks/excitation.py`` gives the search more time.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.identify import Box, MotionLimits, excite

robot = lw.load("panda")
table = Box(lower=(-np.inf, -np.inf, 0.1), frames=["panda_link7"])
found = {
    family: excite(robot, family=family, workspace=table, starts=1, iterations=60)
    for family in ("fourier", "spline")
}
limits = MotionLimits.of(robot, share=0.8)
print("family    condition: random   found    largest share of the limits: q, q̇, q̈, τ")
for family, motion in found.items():
    s = motion.samples
    shares = [np.abs(s.q - limits.middle) / limits.half, np.abs(s.qd) / limits.velocity]
    shares += [np.abs(s.qdd) / limits.acceleration, motion.torque / limits.torque]
    used = " ".join(f"{100 * share.max():4.0f} %" for share in shares)
    print(f"{family:<10}{motion.condition_random:16.1f}{motion.condition:9.1f}    {used}")
    height = robot.pose(s.q, "panda_link7")[:, 2, 3]
    assert all((share <= 1.0).all() for share in shares)
    assert (height >= 0.1).all()
    assert motion.condition < motion.condition_random / 2

axes = panels(2, 2, "Exciting motions of a Panda in 10 s", (13, 7), sharex=True)
if axes is not None:
    for column, (family, motion) in enumerate(found.items()):
        s = motion.samples
        axes[column].plot(s.t, s.q, label=robot.joint_names)
        axes[column].set(title=f"{family.title()}: condition number {motion.condition:.1f}", ylabel="q [rad]")
        axes[2 + column].plot(s.t, 100 * s.qd / limits.velocity)
        axes[2 + column].set(xlabel="t [s]", ylabel="speed [% of the limit]", ylim=(-105, 105))
    axes[0].legend(fontsize=7, ncols=4)
