"""Kozłowski's Fig. 3 (1990): the torque of the shoulder of a PUMA 560 while all joints move for 4 s.

The paper counts joints from the tip, so its joint 5 is the shoulder. Beside the torque stand its parts:
inertial, velocity and gravity torques. "Interactive forces and torques are the strongest between the first
three links."
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion

robot = lw.load("puma560")
start, end = np.radians([[-150, -220, -240, -130, -90, -150], [150, 40, 70, 130, 90, 150]])
move = motion.quintic(start, end, 4.0)
samples = move.sampled(points=300)  # "For each joint 300 data points were recorded"
q, qd, qdd = samples.q, samples.qd, samples.qdd

tau = robot.inverse_dynamics(q, qd, qdd, friction=False)
parts = {
    "inertia": np.einsum("tij,tj->ti", robot.mass_matrix(q), qdd),
    "velocity": robot.velocity_torques(q, qd),
    "gravity": robot.gravity_torques(q),
}
shoulder = robot.joint_names.index("shoulder")
print(f"shoulder torque: largest {np.abs(tau[:, shoulder]).max():.1f} N·m")
for name, part in parts.items():
    print(f"  {name:<9} up to {np.abs(part[:, shoulder]).max():6.1f} N·m")
assert np.allclose(sum(parts.values()), tau)

# "interactive": what the other joints' accelerations and the velocities add to a joint's own inertia and
# gravity
own = np.einsum("tii,ti->ti", robot.mass_matrix(q), qdd)
interaction = np.abs(tau - own - parts["gravity"]).max(axis=0)
for name, value in zip(robot.joint_names, interaction, strict=True):
    print(f"  interaction on {name:<11} {value:7.3f} N·m")
assert interaction[:3].min() > interaction[3:].max()

# The paper's program, backwards: the torques give the accelerations again.
back = robot.forward_dynamics(q, qd, tau, friction=False)
assert np.abs(back - qdd).max() < 1e-11

axes = panels(1, 1, "Kozłowski 1990, Fig. 3: torque of joint 5 (the shoulder)", (8, 4.5))
if axes is not None:
    axes[0].plot(samples.t, tau[:, shoulder], "k", linewidth=2, label="torque")
    for name, part in parts.items():
        axes[0].plot(samples.t, part[:, shoulder], label=name)
    axes[0].set(xlabel="t [s]", ylabel="N·m")
    axes[0].grid(alpha=0.3)
    axes[0].legend()
