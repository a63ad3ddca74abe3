"""What a robot finds out while it works: a push, without a force sensor; a load that it picks up; speeds.

Three functions with a memory, each a kernel, C code, and one call over a recording: a momentum observer with a
reaction, recursive least squares with forgetting, an extended Kalman filter.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.control import ComputedTorque, Gains, Guarded, MomentumObserver
from linkwise.identify import ExtendedKalmanFilter, RecursiveLeastSquares
from linkwise.motion import quintic
from linkwise.simulate import Plant, Push, simulate

robot, rng = lw.load("puma560"), np.random.default_rng(25)

# a push of 25 N·m on the first joint, half a second into a move: found within 10 ms, and the arm stops
observer = MomentumObserver(robot, 50.0, threshold=6.0)
guarded = Guarded(ComputedTorque(robot, Gains.from_frequency(20.0)), observer, reaction="stop")
push = Push(torque=[25.0, 0.0, 0.0, 0.0, 0.0, 0.0], begin=0.5)
move = quintic(np.zeros(6), [0.8, -0.5, 0.6, 0.5, 0.6, 0.4], 1.0)
hit = simulate(Plant(robot, push=push), guarded, move, duration=1.0, record=("memory",))
seen = guarded.observed(hit.recorded["memory"])
row = int(seen.collision[:, 0].argmax())
print(
    f"pushed at 0.500 s, found at {hit.t[row]:.3f} s, at rest {np.abs(hit.q[-1] - hit.q[row]).max():.3f} rad further"
)
assert 0.5 < hit.t[row] < 0.51
assert np.abs(hit.qd[-1]).max() < 0.05
assert "void momentum_observer(" in observer.kernel(1e-3).source("c")

# a load of 2 kg from the sixth hundred samples on
q, qd, qdd = rng.uniform(-1.5, 1.5, (3, 1200, 6))
loaded = robot.with_payload(2.0, [0.0, 0.02, 0.1])
before, after = robot.inverse_dynamics(q, qd, qdd), loaded.inverse_dynamics(q, qd, qdd)
tau = np.where(np.arange(1200)[:, None] < 600, before, after) + 0.3 * rng.normal(size=(1200, 6))
load = RecursiveLeastSquares(robot, "payload", forgetting=0.98, noise=0.3).over(q, qd, qdd, tau)
print(
    f"load: {load.parameters[599, 0]:.3f} kg, then {load.parameters[-1, 0]:.3f} ± {load.deviations[-1, 0]:.3f} kg"
)
assert abs(load.parameters[599, 0]) < 5 * load.deviations[599, 0]
assert abs(load.parameters[-1, 0] - 2.0) < 5 * load.deviations[-1, 0]

# speeds and friction of two joints from positions with noise, and torques
arm = lw.load("two_link").with_parameters({"joint1.viscous_friction": 0.4, "joint2.viscous_friction": 0.2})
names = ("joint1.viscous_friction", "joint2.viscous_friction")
run = simulate(
    arm, ComputedTorque(arm, Gains(60.0, 4.0)), quintic([0, 0], [1, -1], 0.4), duration=2.0, step=2e-3
)
noisy = run.q[1:] + 1e-4 * rng.normal(size=run.q[1:].shape)
states = ExtendedKalmanFilter(arm, 2e-3, names, position_noise=1e-4, torque_noise=0.05)
found = states.over(noisy, run.tau[:-1], memory=states.memory_of(run.q[0], run.qd[0], [0.0, 0.0]))
plain = np.abs(np.gradient(noisy, 2e-3, axis=0) - run.qd[1:])[200:].max()
error = np.abs(found.qd - run.qd[1:])[200:].max()
print(
    f"friction {found.parameters[-1].round(3)}; speed off by {error:.4f} rad/s, from differences by {plain:.4f} rad/s"
)
assert np.abs(found.parameters[-1] - [0.4, 0.2]).max() < 0.05
assert error < plain / 5

axes = panels(1, 2, "A push and a load, as the robot sees them", (10, 4))
if axes is not None:
    axes[0].plot(hit.t, seen.external_torque[:, 0], label="estimated external torque of joint 1 [N·m]")
    axes[0].axvline(hit.t[row], color="k", linewidth=0.8)
    axes[1].plot(load.parameters[:, 0], label="estimated load [kg]")
    axes[1].axhline(2.0, color="k", linewidth=0.8)
    for axis in axes:
        axis.legend()
