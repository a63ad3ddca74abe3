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
The robot in 3-D, with sliders and the torques that hold it. The page is stored in this notebook; no server runs.
--- code
robot.show(found.q)
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
    "5_contact": """
--- text
# Contact

A quadruped stands on four feet, is pushed and stays where it is. Contact is rigid: impulses obey Signorini's and
Coulomb's laws in every step.
--- code
import numpy as np

import linkwise as lw

robot = lw.quadruped()
robot
--- text
Springs and dampers at the joints; the base has no motors. The law is traced and becomes part of the simulation.
--- code
from linkwise import control
from linkwise.simulate import Plant, Push, simulate


class JointPD(control.Controller):
    def control(self, links, gains, q, qd, reference, memory, period):
        parts = zip(gains["kp"][6:], gains["kd"][6:], reference.q[7:], q[7:], qd[6:], strict=True)
        return [0.0] * 6 + [kp * (wanted - at) - kd * rate for kp, kd, wanted, at, rate in parts], memory


stand = np.concatenate([[0.0, 0.0, 0.42, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.3, -0.6], 4)])
gains = {"kp": np.r_[np.zeros(6), np.full(12, 80.0)], "kd": np.r_[np.zeros(6), np.full(12, 2.0)]}
push = Push(wrench=(0.0, 0.0, 0.0, 0.0, 20.0, 0.0), frame="body", begin=1.0, end=1.2)
law = JointPD(robot, gains, 60.0)
result = simulate(Plant(robot, push=push), law, stand, duration=2.0, step=0.002, every=10, q=stand)
forces = result.contact_forces[-1, :, 2]
weight = 9.81 * sum(link.inertia.mass for link in robot.links)
print(f"weight {weight:.2f} N; carried by the feet {forces.sum():.1f} N")
print("largest residual of the laws of contact below 1e-6:", bool(result.residual.max() < 1e-6))
--- text
The simulation in 3-D, with arrows for the forces: press *Play*. The page is stored in this notebook; no server runs.
--- code
robot.show(result=result)
""",
    "6_whole_bodies": """
--- text
# Whole bodies

Tasks (the pose of the trunk, a posture) become torques of all motors, within friction cones and torque limits: one
quadratic programme in every sample.
--- code
import numpy as np

import linkwise as lw

robot = lw.quadruped()
robot.plot(np.concatenate([[0.0, 0.0, 0.38, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.5, -1.0], 4)]))
--- code
from linkwise import control

law = control.WholeBody(
    robot,
    [control.PoseTask("body", weight=1.0, frequency=10.0), control.PostureTask(weight=0.01, frequency=5.0)],
    control.MotionLimits(torque=40.0, period=0.002),
    supports=[control.Support(f"foot{leg}", friction=0.7) for leg in range(4)],
)
print(len(law.limit_names), "limits")
--- text
The trunk should be 2 cm lower. All feet stand; the solution has torques, accelerations and forces.
--- code
q = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.5, -1.0], 4)])
q[2] = -robot.pose(q, "foot0")[2, 3]
lower = q.copy()
lower[2] -= 0.02
solution, start = law.solve(q, np.zeros(18), law.targets(lower))
print("residual below 1e-6:", bool(solution.residual < 1e-6))
print("torques [N·m] of the first leg:", solution.tau[6:9].round(1))
print("force on the first foot [N]:", solution.forces[0].round(1))
--- text
A foot is lifted by an input, `stance`; nothing is compiled again.
--- code
stance = np.array([0.0, 1.0, 1.0, 1.0])
lifted, start = law.solve(q, np.zeros(18), law.targets(q), stance=stance, start=start)
print("three feet carry it:", bool(lifted.residual < 1e-6))
""",
    "7_optimal_motion_with_contacts": """
--- text
# Optimal motion with contacts

A trot of a quadruped: which feet stand when is a table of numbers, forces stay in Coulomb's cone, the solver is
differential dynamic programming.
--- code
import numpy as np

import linkwise as lw

robot = lw.quadruped()
from linkwise import optimal
from linkwise.optimal import gaits

free = lw.quadruped(friction=None)
stand = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.6, -1.2], 4)])
stand[2] = -free.pose(stand, "foot0")[2, 3]
problem = gaits.trot(free, (0.4, 0.0, 0.0), feet=[f"foot{leg}" for leg in range(4)], start=stand)
problem
--- code
solution = optimal.solve(problem)
print(solution.converged, f"{solution.q[-1, 0]:.2f} m in {solution.t[-1]:.2f} s")
print("largest violation of a limit below 1e-5:", bool(solution.violation < 1e-5))
--- code
solution.plot()
--- text
Another velocity is another number: nothing is compiled again.
--- code
sideways = gaits.trot(free, (0.0, 0.2, 0.0), feet=[f"foot{leg}" for leg in range(4)], start=stand)
found = optimal.solve(sideways)
print(found.converged, f"{found.q[-1, 1]:.2f} m to the left")
""",
    "8_learning": """
--- text
# Learning

Many copies of a task side by side: control, physics, observation, reward and resets are one kernel. Here a small
policy for a cart-pole is found by random search; `examples/60_learn_to_walk.py` takes PPO and PyTorch for a quadruped.
--- code
import numpy as np

import linkwise as lw

env = lw.environments.make("cart_pole", num_envs=512)
observation = env.reset(seed=0)
print(observation.shape, lw.environments.names())
--- text
Each copy gets its own linear policy; the best ones are kept and varied.
--- code
rng = np.random.default_rng(0)
mean, spread = np.zeros(4), 2.0
scores = []
for generation in range(6):
    weights = mean + spread * rng.normal(size=(512, 4))
    observation = env.reset(seed=generation)
    alive, total = np.ones(512), np.zeros(512)
    for _ in range(200):
        action = np.tanh((weights * observation).sum(axis=1, keepdims=True)).astype(np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += reward * alive
        alive *= 1 - terminated
    best = np.argsort(total)[-32:]
    mean, spread = weights[best].mean(axis=0), 0.6 * spread
    scores.append(total[best].mean())
print("rewards of the best of each generation:", np.round(scores).astype(int))
assert scores[-1] > 190
--- text
An episode can be computed again from its seed, with the same bits.
--- code
actions = rng.uniform(-1, 1, (512, 20, 1)).astype(np.float32)
env.reset(seed=3)
for k in range(20):
    last = env.step(actions[:, k])[0]
print("same bits:", bool((env.replay(3, actions).observation[:, -1] == last).all()))
--- text
A policy as C, in float32, for a controller:
--- code
policy = lw.environments.Policy.random((4, 16, 1), seed=3)
print(env.rollout(100, policy).observation.shape)
""",
    "9_planning": """
--- text
# Planning

From one position to another around obstacles, in the shortest time that torques and speeds allow, with a clearance
that was proved between samples, too.
--- code
import numpy as np

import linkwise as lw
from linkwise.collision import Box, HalfSpace, World

robot = lw.load("panda").with_payload(1.0, (0.0, 0.0, 0.1), np.zeros((3, 3)))
world = World([
    Box((0.35, -0.7, 0.0), (0.85, 0.7, 0.3)),
    Box((0.45, -0.05, 0.3), (0.85, 0.05, 0.75)),
    HalfSpace((0, 0, 1), -0.05),
])
start, goal = np.array([[-0.7, 0.1, 0.0, -1.8, 0.0, 2.0, 0.0], [0.7, 0.1, 0.0, -1.8, 0.0, 2.0, 0.0]])
found = lw.motion.plan(robot, start, goal, world, acceleration=20.0)
print(found.status, f"{found.motion.duration:.2f} s, clearance at least {1000 * found.clearance:.1f} mm")
--- code
found.motion.plot(robot)
--- text
The motion in 3-D: press *Play*. The obstacles are not drawn here.
--- code
robot.show(motion=found.motion)
--- text
Where there is no motion, the status says why.
--- code
blocked = lw.motion.plan(robot, start, [0.0, 0.9, 0.0, -1.2, 0.0, 2.0, 0.0], world, acceleration=20.0)
print(bool(blocked), blocked.status)
""",
    "10_identification_in_depth": """
--- text
# Identification in depth

What a recording can tell, whether its columns are right, and what the robot carries.
--- code
import numpy as np

import linkwise as lw
from linkwise import identify

robot = lw.load("two_link")
truth = robot.with_parameters({"joint1.viscous_friction": 0.3, "joint2.coulomb_friction": 0.4})
motion = identify.excite(robot, duration=8.0, starts=1, iterations=30)
motion
--- code
rng = np.random.default_rng(0)
log = identify.simulated_log(truth, motion.trajectory, motion.duration, rate=250.0)
log = identify.Noise(position=1e-5, torque=0.01).added(log, rng)
train, test = log.split(0.7)
found = identify.identify(robot, train, validation=test)
found
--- text
A recording whose second joint has the wrong sign: the result says so.
--- code
import warnings
from dataclasses import replace

wrong = replace(train, tau=train.tau * (1.0, -1.0))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the result says it, too
    odd = identify.identify(robot, wrong)
print(str(odd).splitlines()[-1])
--- text
The load that the arm carries, from a recording with and one without it.
--- code
loaded = identify.simulated_log(truth.with_payload(0.8, (0.1, 0, 0)), motion.trajectory, 8.0, rate=250.0)
load = identify.identify_payload(robot, train, loaded)
print(f"{load.mass:.2f} kg at x = {load.com[0]:.2f} m")
--- code
found.plot()
""",
    "11_evidence": """
--- text
# Evidence

Bounds that hold for all states of a box, beside what a search finds: ranges and rounding errors of the generated code.
--- code
import linkwise as lw
from linkwise import evidence

robot = lw.load("two_link")
certificate = evidence.certify(robot, "inverse_dynamics", velocity=2.0, acceleration=5.0)
for output in certificate.outputs:
    print(f"{output.name}: bounds {output.low:.3f} … {output.high:.3f}, rounding error at most {output.error:.1e}")
    print(f"    found {output.lowest.value:.3f} … {output.highest.value:.3f}, worst error {output.worst.value:.1e}")
print("finite for all states of the box:", certificate.holds)
--- text
Constants of the equation of motion, as proofs of controllers need them.
--- code
constants = evidence.constants(robot)
print(f"inertia between {constants.least_inertia:.4f} and {constants.most_inertia:.4f} kg·m² in all positions")
print(f"gravity torques at most {constants.gravity:.2f} N·m")
--- text
The same in float32, as on a microcontroller.
--- code
from linkwise.embedded import Options

single = evidence.certify(robot, "inverse_dynamics", velocity=2.0, acceleration=5.0, options=Options(dtype="float32"))
print(f"{single.outputs[0].error:.1e} N·m")
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
