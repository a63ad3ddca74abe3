"""Five papers, one answer: every algorithm of every function, on a bundled arm and on a random tree."""

import numpy as np

import linkwise as lw

TOLERANCE = 1e-11  # relative; what is seen is round-off

worst = 0.0
for robot in (lw.load("puma560"), lw.random_robot(seed=4, dof=8, tree=True, friction=True, rotor=True)):
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 50, robot.dof))
    tau = robot.inverse_dynamics(q, qd, qdd)
    print(f"\n{robot.name}, 50 states")

    for algorithm in robot.algorithms("inverse_dynamics"):
        off = np.abs(robot.inverse_dynamics(q, qd, qdd, algorithm=algorithm) - tau).max() / np.abs(tau).max()
        print(f"  inverse_dynamics     {algorithm:<34} {off:.1e}")
        worst = max(worst, off)

    # Forward dynamics is judged by what is left of the equation of motion, not by the accelerations themselves.
    M = robot.mass_matrix(q)
    scale = np.linalg.norm(tau, axis=-1) + np.linalg.norm(M, axis=(-2, -1)) * np.linalg.norm(qdd, axis=-1)
    for algorithm in robot.algorithms("forward_dynamics"):
        found = robot.forward_dynamics(q, qd, tau, algorithm=algorithm)
        left = robot.inverse_dynamics(q, qd, found) - tau
        off = (np.linalg.norm(left, axis=-1) / scale).max()
        print(f"  forward_dynamics     {algorithm:<34} {off:.1e}")
        worst = max(worst, off)

    for algorithm in robot.algorithms("mass_matrix"):
        off = np.abs(robot.mass_matrix(q, algorithm=algorithm) - M).max() / np.abs(M).max()
        print(f"  mass_matrix          {algorithm:<34} {off:.1e}")
        worst = max(worst, off)

    for algorithm in robot.algorithms("inverse_mass_matrix"):
        inverse = robot.inverse_mass_matrix(q, algorithm=algorithm)
        size = np.linalg.norm(M, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
        off = (np.linalg.norm(M @ inverse - np.eye(robot.dof), axis=(-2, -1)) / size).max()
        print(f"  inverse_mass_matrix  {algorithm:<34} {off:.1e}")
        worst = max(worst, off)

print(f"\nworst: {worst:.1e}")
assert worst < TOLERANCE
