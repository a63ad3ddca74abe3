"""A motion of the Panda from one position to another with least torque, solved by IPOPT in three ways.

Forward dynamics is an expression of CasADi (exact Hessian), compiled C with its Jacobian, or a call from Python with
finite differences. Beside them: adam and pinocchio.casadi, where these are installed.
"""

import importlib.util
import tempfile
import timeit
from pathlib import Path

import casadi_peers
import numpy as np

import linkwise as lw

robot = lw.load("panda")
n, steps, h = robot.dof, 10, 0.1
start, goal = np.array([0, -0.6, 0, -2.2, 0, 1.6, 0.8]), np.array([0.8, -0.2, 0.2, -1.6, 0.1, 1.4, 0.4])


def solved(dynamics, hessian: str):
    """Iterations and the largest torque of the best motion: positions, velocities and torques are unknown."""
    q, v, tau = ca.MX.sym("q", n, steps + 1), ca.MX.sym("v", n, steps + 1), ca.MX.sym("tau", n, steps)
    rate = dynamics.map(steps)(q[:, :-1], v[:, :-1], tau)
    gaps = [v[:, 1:] - v[:, :-1] - h * rate, q[:, 1:] - q[:, :-1] - h * v[:, 1:]]
    ends = [q[:, 0] - start, q[:, -1] - goal, v[:, 0], v[:, -1]]
    x = ca.veccat(q, v, tau)
    problem = {"x": x, "f": ca.sumsqr(tau) / 1e3, "g": ca.veccat(*gaps, *ends)}
    quiet = {"print_level": 0, "sb": "yes", "max_iter": 200, "tol": 1e-5, "hessian_approximation": hessian}
    solver = ca.nlpsol("solver", "ipopt", problem, {"ipopt": quiet, "print_time": False})
    way = np.linspace(start, goal, steps + 1)
    guess = np.concatenate([way.ravel(), np.zeros(way.size), robot.gravity_torques(way[:-1]).ravel()])
    found = solver(x0=guess, lbg=0, ubg=0)
    assert solver.stats()["success"], solver.stats()["return_status"]
    return solver.stats()["iter_count"], float(np.abs(found["x"].full()[-n * steps :]).max())


def microseconds(function, count: int = 20) -> float:
    """Of one evaluation among several; the best of ten trials."""
    many, states = function.map(count), [ca.repmat(ca.DM(x), 1, count) for x in (start, goal, goal)]
    return min(timeit.repeat(lambda: many(*states), number=1, repeat=10)) / count * 1e6


if importlib.util.find_spec("casadi") is None:
    print("casadi is not installed: pip install 'linkwise[frameworks]'")
else:
    import casadi as ca

    kernel, torques = robot.kernel("forward_dynamics"), []
    with tempfile.TemporaryDirectory() as folder:
        ways = {"SX": kernel.casadi(), "C with Jacobian": casadi_peers.compiled(kernel, Path(folder))}
        ways["called from Python"] = casadi_peers.called(kernel)
        for name, dynamics in ways.items():
            iterations, torque = solved(dynamics, "exact" if name == "SX" else "limited-memory")
            torques.append(torque)
            print(f"{name:20}{microseconds(dynamics):6.1f} µs an evaluation, {iterations} iterations")
        print(f"the expression has {kernel.casadi().n_nodes()} nodes; other libraries:")
        for name, other in casadi_peers.others(robot, Path(folder)).items():
            known = f"{microseconds(other):6.1f} µs, {other.n_nodes()} nodes" if callable(other) else other
            print(f"{name:20}{known}")
    assert np.ptp(torques) < 0.05 * max(torques)
