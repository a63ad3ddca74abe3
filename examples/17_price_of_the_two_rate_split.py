"""What Izaguirre's two-rate structure costs: torque errors as the background slows down from 1 kHz to 50 Hz.

Inertias, gravity and velocity torques are as old as the background's period and the time it takes;
accelerations are current. In 1992 the background took 20 ms of an Intel 8087, and moves took about a second.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion
from linkwise.realtime import TwoRatePrograms, split_error, split_torques

robot = lw.load("puma260")
programs = TwoRatePrograms(robot)
print("task                multiplications  additions     the paper")
for program, paper in ((programs.inertia, "98/70"), (programs.velocity, "140/110 without friction")):
    counted = program.operations
    print(f"{program.name:<20} {counted.multiplications:14d} {counted.additions:10d}     {paper}")
task = programs.synchronous.operations
print(
    f"synchronous          {task.multiplications / 6:9.0f} a joint {task.additions / 6:8.0f}     6/6, without feedback"
)

RATES = np.array([1000, 500, 250, 100, 50])
MOVES = {"90° in 2 s": 2.0, "90° in 1 s": 1.0, "90° in 0.5 s": 0.5}
start, way = np.array([0, -0.8, 0.8, 0, 0, 0]), np.array([1, 1, -1, 1, 1, 1]) * np.pi / 2
print("largest torque error, in % of the largest torque of the joint, coefficients at least a sample old")
print("background [Hz]   " + "".join(f"{rate:8d}" for rate in RATES))
errors = {}
for name, duration in MOVES.items():
    move = motion.quintic(start, start + way, duration)
    errors[name] = 100 * np.array([split_error(robot, move, 1 / rate, latency=1e-3).max() for rate in RATES])
    print(f"{name:<17} " + "".join(f"{error:8.2f}" for error in errors[name]))

assert all((np.diff(found) > 0).all() for found in errors.values())  # slower is worse,
assert (errors["90° in 0.5 s"] > errors["90° in 2 s"]).all()  # and so is faster motion
assert errors["90° in 1 s"][-1] < 15.0  # at the paper's rate the split is still a good model
assert errors["90° in 1 s"][0] < 1.0

axes = panels(1, 2, "The price of the two-rate split, PUMA 260", (12, 4.5))
if axes is not None:
    for name, found in errors.items():
        axes[0].semilogx(RATES, found, "o-", label=name)
    axes[0].set(xlabel="background rate [Hz]", ylabel="largest torque error [%]")
    move, t = motion.quintic(start, start + way, 1.0), np.arange(0, 1, 1e-3)
    axes[1].plot(t, robot.inverse_dynamics(*move.at(t))[:, 1], "k", label="exact")
    axes[1].plot(
        t, split_torques(robot, move, t, 0.02, latency=0.02)[:, 1], "r", label="background 50 Hz, 20 ms late"
    )
    axes[1].set(xlabel="t [s]", ylabel="torque of joint 2 [N·m]", title="90° in 1 s")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
