"""Valera's straight line (2003, section 4): 0.1 m/s at a constant orientation, and the torques it takes (Fig.
4).
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion

robot = lw.load("puma_valera")
rotation = motion.euler_zyz(np.radians([45, 60, 90]))
first, last = (0.6, 0.175, 0.25), (0.018, 0.757, 0.0)

# The closed form lists all eight ways to reach the first point; the arm takes the one nearest to its zero
# position.
begin = np.eye(4)
begin[:3, :3], begin[:3, 3] = rotation, first
ways = motion.closed_form_inverse_kinematics(robot, begin)
near = ways[np.argmin(np.abs(ways).max(axis=-1))]
print(f"{(~np.isnan(ways[:, 0])).sum()} joint positions reach the first point")
move = motion.line(robot, first, last, speed=0.1, profile="constant", rotation=rotation, q=near)
samples = move.sampled(rate=100)
pose = robot.pose(samples.q)
tau = robot.inverse_dynamics(samples.q, samples.qd, samples.qdd)

print(f"total time {move.duration:.2f} s (the paper: 8.6 s)")
print("joint   from [°]   to [°]   torque from … to [N·m]")
for k in range(6):
    ends = np.degrees(samples.q[[0, -1], k])
    print(f"{k + 1:5d} {ends[0]:10.1f} {ends[1]:8.1f} {tau[:, k].min():10.2f} … {tau[:, k].max():.2f}")

assert abs(move.duration - 8.6) < 0.01
speed = np.linalg.norm(robot.velocity(samples.q, samples.qd)[1:-1, 3:], axis=-1)
assert np.allclose(speed, 0.1)
assert np.allclose(motion.zyz_angles(pose[:, :3, :3]), np.radians([45, 60, 90]))
away = np.cross(pose[:, :3, 3] - first, np.subtract(last, first)) / np.linalg.norm(np.subtract(last, first))
assert np.linalg.norm(away, axis=-1).max() < 1e-9  # it is a straight line
# so slow a motion is almost a sequence of equilibria: gravity makes up nearly all of the torques
moving = np.abs(tau - robot.gravity_torques(samples.q))[1:-1].max()
print(f"without gravity at most {moving:.2f} N·m are left")
assert moving < 0.02 * np.abs(tau).max()

axes = panels(1, 2, "Valera 2003: the straight line at 0.1 m/s", (12, 4.5))
if axes is not None:
    for values, axis, unit in (
        (tau, axes[0], "torque [N·m] (Fig. 4)"),
        (np.degrees(samples.q), axes[1], "position [°]"),
    ):
        for k in range(6):
            axis.plot(samples.t, values[:, k], label=f"joint {k + 1}")
        axis.set(xlabel="t [s]", ylabel=unit)
        axis.grid(alpha=0.3)
    axes[0].legend(ncols=2)
