"""Valera's three controllers when nobody knows the robot better than to 20 %.

Every sample has its own robot: the inertia of each link and the friction of each joint differ by up to 20 % from
what the controllers were told. All three drive the same robots along the same move, with the encoders and
converters of 2003. ``--full`` takes 5000 robots.
"""

import tempfile

import numpy as np
from figures import panels, size

import linkwise as lw
from linkwise.simulate.puma_hardware import COUNTS_PER_TURN, GEAR_RATIOS, TORQUE_AT_10_VOLTS

LAWS = {"point": "point_to_point", "track": "tracking", "integral": "integral_tracking"}
counts = np.array(COUNTS_PER_TURN, dtype=float) * np.abs(GEAR_RATIOS)
common = {
    "duration": 3.0,
    "step": 1e-3,
    "control_period": 2e-3,
    "every": 5,
    "reference": {"from": 0.0, "to": [0.5, -0.5, 0.4, 0.3, 0.4, 0.2], "duration": 1.5},
    "sensors": {"resolution": (2 * np.pi / counts).tolist(), "velocity": "difference", "cutoff": 150.0},
    "drives": {"torque_per_volt": (np.array(TORQUE_AT_10_VOLTS) / 10).tolist()},
}
twenty_percent = {"relative": True, "uniform": [0.8, 1.2]}
study = lw.study(
    name="Valera's controllers under 20 % parameter errors",
    robot="puma_valera",
    seed=2003,
    samples=size(100, 5000),
    design="latin_hypercube",
    vary={
        "inertia": {"labels": "*.[mhI]*", "together": "link", **twenty_percent},
        "friction": {"labels": ["*.viscous_friction", "*.coulomb_friction"], **twenty_percent},
    },
    compute={name: {"simulate": law, "gains": {"frequency": 8.0}, **common} for name, law in LAWS.items()}
    | {f"{name}_worst": f"max(abs({name}.max_error))" for name in LAWS}
    | {f"{name}_rest": f"max(abs({name}.final_error))" for name in LAWS},
    keep={f"{name}_{k}": {"raw": True, "quantiles": [0.5, 0.95]} for name in LAWS for k in ("worst", "rest")},
    failures={"far": "max(point_rest, track_rest, integral_rest) > 0.01"},
)
with tempfile.TemporaryDirectory() as folder:
    results = study.run(f"{folder}/valera.study")
    data, far = results.dataset().load(), results.table("failures/far").num_rows

print(f"{study.points} robots; {far} of them stop more than 0.01 rad away under some controller")
print("controller           largest error [°], median and 95 %      error at rest [°], median and 95 %")
for name, law in LAWS.items():
    numbers = [np.degrees(data[f"{name}_{kind}_quantiles"].values) for kind in ("worst", "rest")]
    print(f"{law:<20}" + "   ".join(f"{middle:22.3f} {most:12.3f}" for middle, most in numbers))

worst, rest = ({name: data[f"{name}_{k}_quantiles"].values[1] for name in LAWS} for k in ("worst", "rest"))
assert rest["integral"] < 0.2 * rest["track"]  # the integral takes away what a wrong model leaves
assert worst["track"] < worst["point"]  # tracking knows the velocity
if (axes := panels(1, 2, "Valera's controllers on robots that differ by 20 % from the model")) is not None:
    for ax, kind, title in ((axes[0], "worst", "largest error"), (axes[1], "rest", "error at rest")):
        for (name, law), line in zip(LAWS.items(), ("-", "--", "-"), strict=True):
            values = np.sort(np.degrees(data[f"{name}_{kind}"].values))
            ax.plot(values, (np.arange(len(values)) + 1) / len(values), line, label=law.replace("_", " "))
        ax.set(xscale="log", xlabel=f"{title} of any joint [°]", ylabel="share of the robots", title=title)
        ax.legend(fontsize="small")
