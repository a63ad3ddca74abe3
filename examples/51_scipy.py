"""SciPy with exact derivatives: a spring-damper controller with solve_ivp, and a posture with scipy.optimize."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import linkwise as lw

robot = lw.load("panda")
q0, goal = np.array([0, -0.6, 0, -2.2, 0, 1.6, 0.8]), np.array([0.4, -0.4, 0.2, -1.8, 0.1, 1.5, 0.5])

# 1. a stiff controller: an implicit method with the exact Jacobian takes far fewer steps
stiffness, damping = 200.0, 20.0


def controlled(t, q, qd):
    return robot.gravity_torques(q) + stiffness * (goal - q) - damping * qd


ode = robot.as_ode(controlled, friction=False)
for method in ("RK45", "Radau"):
    options = {"jac": ode.jac} if method == "Radau" else {}
    found = solve_ivp(ode, (0.0, 3.0), ode.state(q0), method=method, rtol=1e-6, atol=1e-8, **options)
    q, qd = ode.split(found.y)
    print(
        f"{method:6} {found.nfev:6} evaluations, {len(found.t):5} steps, ends {np.abs(q[-1] - goal).max():.1e} rad off"
    )
    assert found.success
    assert np.abs(q[-1] - goal).max() < 1e-4

# 2. the posture with the smallest gravity torques that keeps the hand where it is; both gradients are exact
place = robot.pose(q0)[:3, 3]
gravity = robot.kernel("gravity_torques")
slopes = gravity.jacobian("q")


def cost(q):
    tau = gravity(q)
    return 0.5 * tau @ tau, slopes(q).T @ tau


held = {
    "type": "eq",
    "fun": lambda q: robot.pose(q)[:3, 3] - place,
    "jac": lambda q: robot.jacobian(q)[3:],
}
bounds = list(zip(robot.limits.lower, robot.limits.upper, strict=True))
best = minimize(
    cost, q0, jac=True, bounds=bounds, constraints=[held], method="SLSQP", options={"maxiter": 300}
)
before, after = (np.linalg.norm(robot.gravity_torques(q)) for q in (q0, best.x))
print(f"SLSQP  {best.nfev:6} evaluations, gravity torques {before:.1f} → {after:.1f} N·m")
assert best.success
assert after < before
assert np.allclose(robot.pose(best.x)[:3, 3], place, atol=1e-6)
