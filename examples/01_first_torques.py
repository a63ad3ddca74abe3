"""Load a bundled robot and compute torques: for one state, then for many at once."""

import numpy as np

import linkwise as lw

np.set_printoptions(suppress=True)
robot = lw.load("panda")
print(robot, "with joints", ", ".join(robot.joint_names))

# One state: positions [rad], velocities [rad/s], accelerations [rad/s²], each with one entry per joint.
q = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
qd = np.full(7, 0.5)
qdd = np.zeros(7)
tau = robot.inverse_dynamics(q, qd, qdd)
print("torques [N·m]:", tau.round(3))

# The torques split into gravity, velocity torques and friction (this state has no acceleration).
friction = np.array([joint.viscous_friction for joint in robot.moving_joints]) * qd
parts = robot.gravity_torques(q) + robot.velocity_torques(q, qd) + friction
print("the same from its parts:", parts.round(3))

# A thousand states at once: leading axes are a batch and broadcast as in NumPy.
many = q + np.random.default_rng(0).normal(scale=0.1, size=(1000, 7))
holding = robot.gravity_torques(many)
print("shape of a thousand gravity torques:", holding.shape)

# Back again: what do these torques do to the arm?
back = robot.forward_dynamics(q, qd, tau)
print("accelerations from those torques:", np.abs(back).max())

assert np.allclose(tau, parts, rtol=1e-12)
assert np.allclose(holding[17], robot.gravity_torques(many[17]), rtol=0, atol=0)
assert np.abs(back).max() < 1e-11
