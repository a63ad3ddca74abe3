"""Writes the notebooks beside this file and runs them: python examples/notebooks/write.py [NAME ...].

Outputs are stored, so that code-hosting pages show them. Needs linkwise[frameworks].
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

NOTEBOOKS = {
    "1_first_steps": """
--- text
# First steps

Load a robot, look at it, compute with it.
--- code
import linkwise as lw

robot = lw.load("panda")
robot
--- text
Every function takes arrays of shape `(..., n)`: one state, or as many as you like. States may also be dictionaries or
tables; their numbers are matched by the joints' names.
--- code
q = dict(zip(robot.joint_names, [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]))
robot.gravity_torques(q).round(3)
--- code
import pandas as pd

motion = lw.motion.quintic(list(q.values()), [0.8, -0.2, 0.2, -1.6, 0.1, 1.4, 0.4], 1.5)
samples = motion.sampled(points=6)
table = pd.DataFrame(samples.q, columns=robot.joint_names, index=samples.t)
robot.gravity_torques(table).round(2)
--- text
Motions print a table and plot themselves.
--- code
motion
--- code
motion.plot(robot)
--- text
Inverse kinematics, and the robot at the result.
--- code
pose = robot.pose(q)
pose[2, 3] -= 0.15
found = robot.inverse_kinematics(pose, start=q)
found
--- code
robot.plot(found.q, ghosts=[q])
--- text
A name of another library says what to type here.
--- code
try:
    robot.fkine(q)
except AttributeError as error:
    print(error)
""",
    "2_from_a_log_to_a_model": """
--- text
# From a log to a model

A recording of positions and torques becomes a robot with masses, inertias and friction. Here the recording is
simulated, so that the result can be compared with the truth.
--- code
import numpy as np

import linkwise as lw

known = lw.load("two_link")
labels = known.parameter_labels
truth = known.with_parameters(
    {label: 1.2 * value for label, value in zip(labels[:20], known.parameters)}
    | {"joint1.viscous_friction": 0.8, "joint1.coulomb_friction": 1.5, "joint2.coulomb_friction": 0.7}
)
truth
--- text
A periodic motion excites the arm; the recording has noise.
--- code
def recording(seed):
    rng = np.random.default_rng(seed)
    series = lw.motion.FourierSeries([0.3, -0.2], rng.normal(size=(4, 2)) * 0.3, rng.normal(size=(4, 2)) * 0.3, 10.0)
    t = np.arange(0.0, 20.0, 0.005)
    q, qd, qdd = series.at(t)
    tau = truth.inverse_dynamics(q, qd, qdd)
    return lw.identify.Log(t, q, tau + 0.02 * np.std(tau, axis=0) * rng.normal(size=tau.shape), name=f"run{seed}")


log = recording(1)
log
--- code
result = lw.identify.identify(known, log, validation=recording(2))
result
--- text
The identified robot predicts a recording that it has not seen; the robot we started from does not.
--- code
result.plot()
--- text
The parameters that the recording determines, with their standard deviations.
--- code
result.estimate
--- code
result.robot
""",
    "3_control_and_simulation": """
--- text
# Control and simulation

Controller, robot and integrator run as one compiled loop.
--- code
import numpy as np

import linkwise as lw

robot = lw.load("panda")
start, goal = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8], [0.8, -0.2, 0.2, -1.6, 0.1, 1.4, 0.4]
motion = lw.motion.quintic(start, goal, 1.0)
law = lw.control.Tracking(robot, lw.control.Gains.from_frequency(20.0))
result = lw.simulate.simulate(robot, law, motion, duration=1.2)
result
--- code
result.plot()
--- text
The same controller on a robot that carries a load of which the controller knows nothing.
--- code
loaded = robot.with_payload(1.0, (0.0, 0.0, 0.05))
lw.simulate.simulate(loaded, law, motion, duration=1.2)
--- text
A hundred robots with other loads, in one call.
--- code
loads = np.zeros((100, 10))
loads[:, 0] = np.linspace(0.0, 2.0, 100)  # mass; the other numbers: first moments and inertias
many = lw.simulate.simulate(robot, law, motion, duration=1.2, vary={"payload": loads}, every=10)
worst = np.abs(many.error).max(axis=(1, 2))
print(f"largest error without load {worst[0]:.2e} rad, with 2 kg {worst[-1]:.2e} rad")
--- text
The equation of motion for SciPy's solvers.
--- code
from scipy.integrate import solve_ivp

ode = robot.as_ode(lambda t, q, qd: robot.gravity_torques(q) - 20.0 * (q - np.array(goal)) - 8.0 * qd, friction=False)
solution = solve_ivp(ode, (0.0, 3.0), ode.state(start), method="Radau", jac=ode.jac)
q, qd = ode.split(solution.y)
print(f"{len(solution.t)} steps; {np.abs(q[-1] - goal).max():.3f} rad from the goal")
""",
    "4_a_million_states_and_frameworks": """
--- text
# A million states, and other frameworks

The same call takes one state or a million.
--- code
import numpy as np

import linkwise as lw

robot = lw.load("panda")
rng = np.random.default_rng(0)
q = robot.random(rng, 1_000_000)
torques = robot.gravity_torques(q)
print(torques.shape, "largest:", np.abs(torques).max(axis=0).round(1), "N·m")
--- text
Where the arm can reach and how well it can move there: a slice of a million positions.
--- code
places = robot.pose(q[:20_000])[:, :3, 3]
print("reach:", np.linalg.norm(places, axis=1).max().round(3), "m")
print("manipulability: median", np.median(robot.manipulability(q[:20_000])).round(3))
--- text
A kernel is one function of one robot, compiled; it can be counted, differentiated and written as source code.
--- code
kernel = robot.kernel("inverse_dynamics")
print(kernel)
print(kernel.operations)
print(kernel.source("c")[:400])
--- text
PyTorch and JAX call the same machine code: gradients, `vmap` and `jit` work as usual.
--- code
import torch

angles = torch.tensor(q[0], requires_grad=True)
robot.potential_energy(angles).backward()
print("PyTorch:", np.abs(angles.grad.numpy() - robot.gravity_torques(q[0])).max() < 1e-12)
--- code
import jax

jax.config.update("jax_enable_x64", True)
energy = jax.jit(jax.vmap(jax.grad(lambda x: robot.potential_energy(x))))
print("JAX:", np.abs(np.asarray(energy(q[:100])) - robot.gravity_torques(q[:100])).max() < 1e-12)
--- text
An expression of CasADi, for optimal control: exact derivatives of any order.
--- code
import casadi as ca

dynamics = robot.kernel("forward_dynamics").casadi()
x = ca.SX.sym("x", 7)
hessian, gradient = ca.hessian(ca.sumsqr(dynamics(x, np.zeros(7), np.zeros(7))), x)
print(dynamics)
print(dynamics.n_nodes(), "nodes; Hessian", hessian.shape)
""",
}


def build(name: str):
    """A notebook from its text: cells start with a line ``--- text`` or ``--- code``."""
    import nbformat

    cells = []
    pieces = re.split(r"^--- (text|code)$", NOTEBOOKS[name], flags=re.MULTILINE)[1:]
    for number, (kind, text) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)):
        make = nbformat.v4.new_markdown_cell if kind == "text" else nbformat.v4.new_code_cell
        cells.append(make(text.strip(), id=f"cell-{number}"))
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(notebook):
    """Execute a notebook; outputs stay in it, times and numbers of the machine do not."""
    from nbclient import NotebookClient

    NotebookClient(notebook, timeout=300, record_timing=False).execute()
    notebook["metadata"] = METADATA
    return notebook


def main(names: list[str]) -> None:
    import nbformat

    for name in names or NOTEBOOKS:
        nbformat.write(run(build(name)), FOLDER / f"{name}.ipynb")
        print(f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
