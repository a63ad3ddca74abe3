"""Robots are immutable: a payload, a locked joint or another gravity gives a new robot."""

import numpy as np

import linkwise as lw

robot = lw.load("ur10e")
q = np.radians([0, -60, 90, -30, 90, 0])

# 5 kg in the hand, its centre of mass 8 cm along z of the flange frame.
loaded = robot.with_payload(5.0, com=(0.0, 0.0, 0.08), inertia=(0.02, 0.02, 0.01))
print("holding torques [N·m], empty: ", robot.gravity_torques(q).round(2))
print("holding torques [N·m], loaded:", loaded.gravity_torques(q).round(2))

# The same by the principle of virtual work: the weight of the load, seen by the joints through the Jacobian.
tip = robot.default_frame()
pose = robot.pose(q, tip)
lever = pose[:3, :3] @ (0.0, 0.0, 0.08)
weight = np.array([0.0, 0.0, -9.81 * 5.0])
wrench = np.concatenate([np.cross(lever, weight), weight])  # about the frame's origin, base axes
expected = robot.gravity_torques(q) - robot.jacobian(q, tip).T @ wrench

# Or as an external wrench (moment, force) on the empty arm, in the axes of the frame itself.
local = np.concatenate([pose[:3, :3].T @ wrench[:3], pose[:3, :3].T @ wrench[3:]])
pushed = robot.inverse_dynamics(q, np.zeros(6), np.zeros(6), wrench=local)

# With the wrist locked, three joints are left; the links beyond them stay, as one rigid body.
wrist = dict(zip(robot.joint_names[3:], q[3:], strict=True))
short = loaded.lock(wrist)
print(short, short.joint_names)

# On the Moon everything weighs a sixth.
moon = loaded.with_gravity((0.0, 0.0, -1.62))
print("on the Moon:", moon.gravity_torques(q).round(2))

assert np.allclose(loaded.gravity_torques(q), expected, atol=1e-12)
assert np.allclose(pushed, expected, atol=1e-12)
assert np.allclose(short.gravity_torques(q[:3]), loaded.gravity_torques(q)[:3], atol=1e-12)
assert np.allclose(moon.gravity_torques(q) * (9.81 / 1.62), loaded.gravity_torques(q), atol=1e-12)
assert robot.dof == 6, "the original has not changed"
