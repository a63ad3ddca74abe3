"""How much can a Panda lift, and where? Torques and payloads over its whole workspace.

Joint positions are spread evenly over their limits (Sobol). At each of them the torques that hold the arm are linear in
the load, τ = g(q) + m·9.81·J_z(q), so a formula gives the largest mass that keeps every joint within its limit. The
maps show, by distance from the base axis and height, what the postures there need and hold. ``--full`` takes four
million postures.
"""

import tempfile

import numpy as np
from figures import panels, size

import linkwise as lw

study = lw.study(
    name="capability of a Panda",
    robot="panda",
    samples=size(1 << 16, 1 << 22),
    design="sobol",
    vary={"q": {"uniform": "limits"}},
    compute={
        "g": {"function": "gravity_torques"},
        "J": {"function": "jacobian"},
        "T": {"function": "pose"},
        "effort": "max(abs(g) / effort_limit)",  # of the empty arm
        "payload": {"formula": "min((effort_limit - g * sign(J[5])) / (9.81 * abs(J[5])))", "unit": "kg"},
        "radius": {"formula": "(T[0, 3]**2 + T[1, 3]**2)**0.5", "unit": "m"},
        "height": {"formula": "T[2, 3]", "unit": "m"},
    },
    keep={
        "payload": {"raw": True, "statistics": ["min"], "quantiles": [0.01, 0.5]},
        "effort": {"raw": True, "statistics": ["max"]},
        **dict.fromkeys(("radius", "height"), "raw"),
    },
    failures={"weak": "payload < 5"},
)
with tempfile.TemporaryDirectory() as folder:
    results = study.run(f"{folder}/capability.study")
    data, weak = results.dataset().load(), results.table("failures/weak").num_rows
    worst = next(row for row in results.table("extremes").to_pylist() if row["quantity"] == "payload")

robot = lw.load("panda")
print(f"{study.points} postures; the weakest holds {worst['value']:.2f} kg, {weak} hold less than 5 kg,")
print("99 % hold {:.1f} kg and half of them {:.1f} kg".format(*data.payload_quantiles.values))
q = np.array([worst[f"q.{name}"] for name in robot.joint_names])
loaded = np.abs(robot.with_payload(worst["value"]).gravity_torques(q) / [87, 87, 87, 87, 12, 12, 12])
print("the weakest posture, loaded, works at", loaded.round(2), "of the limits")

cell, columns, rows = 0.04, 25, 44  # cells of 4 cm
x = np.minimum((data.radius.values / cell).astype(int), columns - 1)
z = np.clip(((data.height.values + 0.5) / cell).astype(int), 0, rows - 1)
maps = {"torque that holds the arm [of the limit]": np.full((rows, columns), -np.inf)}
np.maximum.at(next(iter(maps.values())), (z, x), data.effort.values)
for title, function, start in (("every", np.minimum, np.inf), ("the best", np.maximum, -np.inf)):
    maps[f"payload that {title} posture holds [kg]"] = np.full((rows, columns), start)
    function.at(maps[f"payload that {title} posture holds [kg]"], (z, x), data.payload.values)
effort, always, best = (np.where(np.isfinite(values), values, np.nan) for values in maps.values())
assert np.isclose(loaded.max(), 1.0, rtol=1e-6)  # the weakest posture is at a limit, as it must be
assert np.nanmax(effort) == float(data.effort_max) < 1.0  # the empty arm never is
assert np.nanmin(always) == worst["value"]
axes = panels(1, 3, "What a Panda can hold, by the place of its flange", (14, 6.5), sharey=True)
if axes is not None:
    for ax, title, values, most in zip(axes, maps, (effort, always, best), (1, 10, 60), strict=True):
        image = ax.imshow(values, origin="lower", extent=(0, 1, -0.5, 1.26), vmin=0, vmax=most)
        ax.set(title=title, xlabel="distance from the base axis [m]", ylabel="height [m]")
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
