"""A quadruped walks under predictive control, is pushed, turns and stops.

Every 20 ms a new plan of the next 0.6 s is made by one iteration; every 2 ms whole-body control follows it. Which feet
stand when is a number of each stage of the plan, so one program has all phases of the gait. The push of 0.4 m/s to the
side is answered by where the next feet come down.

    python examples/59_quadruped_walks.py walk.html          writes the walk as one page that needs no network
"""

import sys

import numpy as np

import linkwise as lw
from linkwise import optimal
from linkwise.simulate import Plant, Push, simulate

robot = lw.quadruped(limits=lw.Limits(-2.6, 2.6, velocity=25.0, effort=40.0))
walk = optimal.Walking(robot, "trot", (0.5, 0.0, 0.0), stand=[0.0, 0.7, -1.4] * 4)
print(walk)


def controller(t, q, qd, reference):
    if 2.0 <= t < 2.001:
        walk.command((0.3, 0.0, 0.6))
    if 3.0 <= t < 3.001:
        walk.halt()
    return walk(t, q, qd)


mass, begin = sum(link.inertia.mass for link in robot.links), 1.2
push = Push(wrench=(0, 0, 0, 0, 4.0 * mass, 0), frame="body", begin=begin, end=begin + 0.1 - 1e-9)
stand = walk.feet.stand
result = simulate(
    Plant(robot, push=push), controller, stand, duration=4.0, step=0.002, every=10, q=stand, accuracy=1e-4
)
q = result.q
upright = 1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2)
heading = np.degrees(2.0 * np.arctan2(q[:, 5], q[:, 6]))
speed = np.linalg.norm(np.diff(q[:, :2], axis=0), axis=1) / np.diff(result.t)
for t in np.arange(0.5, 4.0, 0.5):
    k = np.searchsorted(result.t, t - 1e-9)
    print(
        f"{t:.1f} s: x {q[k, 0]:5.2f} m, y {q[k, 1]:5.2f} m, heading {heading[k]:4.0f}°, height {q[k, 2]:.3f} m"
    )
print(f"cosine of the tilt at least {upright.min():.4f}; {walk.plans} plans, {walk.failures} not used")
assert upright.min() > 0.98, "it fell"
assert heading[-1] > 20.0
assert speed[-1] < 0.05, "it stands at the end"
if len(sys.argv) > 1:
    print(f"{lw.view.write_page(robot, sys.argv[1], result=result)}: the walk, to be played in a browser")
