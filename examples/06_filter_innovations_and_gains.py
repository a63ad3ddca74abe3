"""Forward dynamics is a Kalman filter (Rodriguez 1986): look at its covariances, gains and innovations.

Spatial forces are the state, filtered from the tip to the base; joint torques are the measurements. The innovation is
the part of a joint's torque that the filter did not expect; divided by the joint's D it starts the acceleration.
"""

import numpy as np

import linkwise as lw

robot = lw.load("stanford")
rng = np.random.default_rng(2)
q, qd, tau = rng.normal(size=(3, robot.dof))

states = robot.filter(q, qd, tau)
print("joint      D (axis inertia)   innovation   gain (angular, linear)")
for k, name in enumerate(robot.joint_names):
    print(
        f"{name:<10} {states.axis_inertia[k]:16.5f} {states.innovation[k]:12.4f}   {states.gain[k].round(3)}"
    )

# The mass matrix is a covariance, so its determinant is the product of the innovations' variances D.
determinant = np.linalg.det(robot.mass_matrix(q))
print(f"det M = {determinant:.6e}, product of D = {states.axis_inertia.prod():.6e}")

# Rodriguez (10.2): the acceleration is a sum of three parts, each linear in its own cause.
by_torque, by_force, by_acceleration = robot.acceleration_parts(q, qd, tau)
print("from torques:            ", by_torque.round(4))
print("from bias forces:        ", by_force.round(4))
print("from bias accelerations: ", by_acceleration.round(4))

assert np.allclose(states.qdd, robot.forward_dynamics(q, qd, tau), rtol=1e-10)
assert np.isclose(determinant, states.axis_inertia.prod(), rtol=1e-10)
assert np.allclose(by_torque + by_force + by_acceleration, states.qdd, rtol=1e-10)
P = states.inertia
assert np.allclose(P, P.transpose(0, 2, 1)), "covariances are symmetric"
