"""A thousand robots in one call: how does a controller do under loads, frictions and gains that nobody knows
exactly?

Controller, friction, dynamics and integrator are one compiled loop; the robots differ in payload, viscous
friction and gains, their sensors are noisy, and every one has its own move. The same seed gives the same
bits, alone or in a batch.
"""

import time

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import control
from linkwise.simulate import Moves, Plant, Sensors, simulate

robot = lw.load("panda")
rng = np.random.default_rng(3)
COUNT = 1000
home = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
moves = Moves(home, home + rng.uniform(-0.4, 0.4, (COUNT, 7)), rng.uniform(0.5, 1.0, COUNT))
mass = rng.uniform(0.0, 3.0, COUNT)
payload = np.zeros((COUNT, 10))  # m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz, in the axes of the flange
payload[:, 0], payload[:, 3] = mass, 0.1 * mass  # 10 cm in front of the flange
payload[:, 4] = payload[:, 7] = 0.01 * mass
frequency = rng.uniform(5.0, 30.0, (COUNT, 1)) * np.ones(7)
vary = {"payload": payload, "kp": frequency**2, "kd": 2 * frequency}
vary |= {f"{name}.viscous_friction": rng.uniform(0.0, 0.2, (COUNT, 1)) for name in robot.joint_names}

plant = Plant(robot, sensors=Sensors(position_noise=1e-4, velocity_noise=1e-2))
controller = control.ComputedTorque(robot, control.Gains.from_frequency(10.0))  # it knows none of this
options = {"duration": 1.5, "step": 1e-3, "every": 10, "seed": 7}
simulate(plant, controller, moves, vary=vary, **options | {"duration": 1e-3})  # compiled
begin = time.perf_counter()
found = simulate(plant, controller, moves, vary=vary, **options)
spent = time.perf_counter() - begin
print(f"{COUNT} robots for 1.5 s in {spent:.2f} s: {COUNT * 1500 / spent / 1e6:.1f} million steps a second")

worst = np.degrees(np.abs(found.error).max(axis=(1, 2)))
print("frequency [rad/s]   payload [kg]   worst error [°], median and 95 %")
for low, high in ((5, 10), (10, 20), (20, 30)):
    for light, heavy in ((0.0, 1.0), (1.0, 3.0)):
        chosen = (frequency[:, 0] >= low) & (frequency[:, 0] < high) & (mass >= light) & (mass < heavy)
        middle, most = np.percentile(worst[chosen], (50, 95))
        print(f"{low:8d} … {high:<8d} {light:6.0f} … {heavy:<4.0f} {middle:12.2f} {most:10.2f}")

first, its = Moves(home, moves.end[0], moves.duration[0]), {name: values[0] for name, values in vary.items()}
alone = simulate(plant, controller, first, vary=its, **options)
assert (alone.q == found.q[0]).all()  # the batch changes nothing
stiff, soft = worst[frequency[:, 0] > 20], worst[frequency[:, 0] < 10]
assert np.median(stiff) < 0.5 * np.median(soft)
assert np.isfinite(worst).all()
if (axes := panels(1, 1, "Worst error against natural frequency; colour: payload [kg]", (8, 5))) is not None:
    dots = axes[0].scatter(frequency[:, 0], worst, c=mass, s=8, cmap="viridis")
    axes[0].set(xlabel="natural frequency [rad/s]", ylabel="worst error [°]", yscale="log")
    axes[0].figure.colorbar(dots)
