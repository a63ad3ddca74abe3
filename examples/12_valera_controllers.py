"""Valera's three controllers (2003, Table 4 and Fig. 5) on ramp and spline references, with a model that is
10 % off.

The plant has the hardware of section 3: encoders of 200 and 250 counts per motor turn behind the gears of a
PUMA 560, ±10 V through 12 bits. A wrong model moves the equilibrium; the integral action moves it back.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import control, motion
from linkwise.simulate import Drives, Plant, Sensors, simulate
from linkwise.simulate.puma_hardware import COUNTS_PER_TURN, GEAR_RATIOS, TORQUE_AT_10_VOLTS

robot = lw.load("puma_valera")
sensors = Sensors.encoders(COUNTS_PER_TURN, GEAR_RATIOS, cutoff=150.0)
plant = Plant(robot, sensors=sensors, drives=Drives(np.array(TORQUE_AT_10_VOLTS) / 10.0))
values = dict(zip(robot.parameter_labels, robot.parameters, strict=True))
model = robot.with_parameters({label: 0.9 * value for label, value in values.items()})  # all 10 % too small

points = np.array([[0, 0, 0, 0, 0, 0], [0.3, -0.2, 0.2, 0.2, 0.2, 0.1], [0.5, -0.5, 0.4, 0.3, 0.4, 0.2]])
references = {
    "ramp": motion.ramp(points[0], points[2], 2.0),
    "spline": motion.quintic_spline([0, 1, 2], points),
}
plain, integral = (control.Gains.from_frequency(8.0, integral=flag) for flag in (False, True))
laws = {
    "point to point": control.PointToPoint(model, plain),
    "tracking": control.Tracking(model, plain),
    "tracking with integral": control.IntegralTracking(model, integral),
}
axes = panels(2, 2, "Valera 2003, Fig. 5: joint 2 of the PUMA, model 10 % off", sharex=True)
print("reference   controller               worst error [°]   error at rest [°]")
rest = {}
for j, (kind, reference) in enumerate(references.items()):
    for name, law in laws.items():
        options = {"step": 1e-3, "control_period": 2e-3, "every": 5, "q": points[0], "qd": np.zeros(6)}
        found = simulate(plant, law, reference, duration=5.0, **options)
        error = np.degrees(found.error)
        rest[kind, name] = np.abs(error[-1]).max()
        print(f"{kind:<11} {name:<24} {np.abs(error).max():15.3f} {rest[kind, name]:19.4f}")
        if axes is not None:
            axes[j].plot(found.t, np.degrees(found.q[:, 1]), label=name)
            axes[2 + j].plot(found.t, error[:, 1], label=name)
    if axes is not None:
        axes[j].plot(found.t, np.degrees(found.reference[0][:, 1]), "k--", label="reference")
        axes[j].set(title=kind, ylabel="q2 [°]")
        axes[2 + j].set(xlabel="t [s]", ylabel="error [°]")
        axes[j].legend()

count = np.degrees(sensors.resolution.max())
for kind in references:  # only the integral brings the error down to what the encoders can see
    assert rest[kind, "tracking with integral"] < 2 * count < 0.1 < rest[kind, "tracking"]
    assert rest[kind, "point to point"] > 0.1
