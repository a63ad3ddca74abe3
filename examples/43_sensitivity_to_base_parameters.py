"""Which parameters does a Panda feel? The share of every base parameter in the torques, over its whole state space.

Torques are linear in the parameters, τ = Y(q, q̇, q̈) β, so the root mean square of a column of Y, times its
parameter, is what that parameter contributes to each joint. The study keeps mean and variance of all columns.
``--full`` takes two million states.
"""

import tempfile

import numpy as np
from figures import panels, size

import linkwise as lw

robot = lw.load("panda")
base = robot.base_parameters(links_only=True)
study = lw.study(
    name="sensitivity of a Panda's torques",
    robot="panda",
    seed=1,
    samples=size(1 << 14, 1 << 21),
    design="sobol",
    vary={"q": {"uniform": "limits"}, "qd": {"uniform": "limits"}, "qdd": {"uniform": [-10.0, 10.0]}},
    compute={"Y": {"function": "regressor"}, "tau": {"function": "inverse_dynamics", "friction": False}},
    keep={"Y": ["mean", "variance"], "tau": ["mean", "variance"]},
)
with tempfile.TemporaryDirectory() as folder:
    data = study.run(f"{folder}/sensitivity.study").dataset().load()

columns = list(base.columns)
square = data.Y_variance.values + data.Y_mean.values**2
share = np.sqrt(square[:, columns]) * np.abs(base.values)  # [N·m], (joints, base parameters)
total = np.sqrt(data.tau_variance.values + data.tau_mean.values**2)
print(
    f"{study.points} states, {len(base)} base parameters; root mean square of the torques [N·m]:",
    total.round(2),
)

importance = (share / total[:, np.newaxis]).max(axis=0)
order = np.argsort(importance)[::-1]
print("what matters most                         share of a joint's torque   which joint")
for k in order[:8]:
    joint = int((share[:, k] / total).argmax())
    print(f"{base.labels[k]:<36}{importance[k]:22.0%}         {robot.joint_names[joint]}")
small = int((importance < 0.01).sum())
print(f"{small} of {len(base)} base parameters contribute less than 1 % to every joint")

# One column checked by what it means: a little more of a parameter, at points of the study.
label, k = base.labels[order[0]], columns[order[0]]
points = study.at(np.arange(1 << 14), ["q", "qd", "qdd"])
value = dict(zip(robot.parameter_labels, robot.parameters, strict=True))[label]
more = robot.with_parameters({label: value + 0.01})
change = more.inverse_dynamics(**points) - robot.inverse_dynamics(**points)
assert np.allclose(np.sqrt((change**2).mean(axis=0)) / 0.01, np.sqrt(square[:, k]), rtol=0.02)
assert 5 < small < len(base)
if (axes := panels(1, 1, "Share of each base parameter in the torques of a Panda", (13, 4.5))) is not None:
    shown = np.log10(np.maximum(share / total[:, np.newaxis], 1e-4))
    image = axes[0].imshow(shown[:, order], aspect="auto", cmap="viridis", vmin=-4, vmax=0)
    short = [base.labels[k].replace("panda_", "") for k in order]
    axes[0].set_xticks(range(len(base)), short, rotation=90, fontsize=7)
    axes[0].set_yticks(range(7), robot.joint_names)
    axes[0].figure.colorbar(image, label="log₁₀ of the share")
