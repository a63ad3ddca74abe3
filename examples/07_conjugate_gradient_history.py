"""Forward dynamics by conjugate gradients (Fijany and Scheid), iteration by iteration, with and without preconditioner.

In exact arithmetic n iterations suffice. In floating point an ill-conditioned arm needs more, so the iteration stops at
a tolerance, not after n steps, and says so when it does not get there.
"""

import numpy as np

import linkwise as lw

robot = lw.load("panda")
rng = np.random.default_rng(5)
q, qd, qdd = rng.normal(size=(3, robot.dof))
tau = robot.inverse_dynamics(q, qd, qdd)

histories = {
    "classical": robot.conjugate_gradient(q, qd, tau, preconditioned=False),
    "preconditioned": robot.conjugate_gradient(q, qd, tau, preconditioned=True),
}
for name, history in histories.items():
    print(f"{name}: {history.count} iterations")
    for k, residual in enumerate(history.residuals):
        print(f"  {k:3d}  {residual:.2e}")

# A warm start from a good guess needs hardly anything.
warm = robot.conjugate_gradient(q, qd, tau, start=qdd + 1e-9)
print(f"warm start: {warm.count} iterations")

# Too few iterations are an error, never a silently wrong answer.
try:
    robot.forward_dynamics(q, qd, tau, algorithm="conjugate_gradient", limit=3)
except lw.ConvergenceError as error:
    print("refused:", error)
else:
    raise AssertionError("three iterations cannot be enough for seven joints")

for history in histories.values():
    assert history.converged
    assert np.allclose(history.qdd, qdd, rtol=1e-8)
assert warm.count < histories["preconditioned"].count
