"""How many iterations do conjugate gradients need on random arms, with and without rotor inertia?

Fijany and Scheid expect √n iterations of their preconditioned algorithm; in exact arithmetic n suffice. Here every
sample is another arm of six joints: geometry, inertias and state are inputs of one kernel (see random_arms.py).
``--full`` takes 100 000 arms.
"""

import tempfile

import numpy as np
from figures import panels, size
from random_arms import SIZES, N, iterations

import linkwise as lw

ranges = {"alpha": [-3.14, 3.14], "a": [-0.4, 0.4], "d": [-0.4, 0.4], "com": [-0.2, 0.2]}
ranges |= {"mass": [0.05, 20.0], "spread": [0.005, 0.2]}  # these two on a logarithmic scale
states = {"q": [-3.14, 3.14], "qd": [-1.0, 1.0], "tau": [-20.0, 20.0]}
scale = {name: "log_uniform" if name in ("mass", "spread") else "uniform" for name in ranges}
samples = size(10_000, 100_000)
study = lw.study(
    name="conjugate gradients on random arms",
    robot=lw.general_chain(N),  # what the states belong to; the arms are the kernels'
    samples=samples,
    chunk=samples,
    design="latin_hypercube",
    vary={name: {scale[name]: ends, "size": SIZES[name]} for name, ends in ranges.items()}
    | {name: {"uniform": ends} for name, ends in states.items()}
    | {"rotor": {"grid": [0.0, 0.1, 1.0]}},
    compute={
        "plain": iterations(False),
        "scaled": iterations(True),
        "back": {"call": "random_arms:torques", "inputs": {"qdd": "scaled.qdd"}},
        "wrong": "norm(back - tau) / norm(tau)",
    },
    keep={
        name: {"raw": True, "statistics": ["mean", "max"], "quantiles": [0.5, 0.999], "over": "sample"}
        for name in ("plain.count", "scaled.count")
    }
    | {"wrong": ["max"]},
    failures={"stuck": {"when": "plain.count >= 300 or scaled.count >= 300", "keep": ["rotor"]}},
)
with tempfile.TemporaryDirectory() as folder:
    results = study.run(f"{folder}/arms.study")
    data, stuck = results.dataset().load(), results.table("failures/stuck").num_rows

print(f"{study.points // 3} arms at 3 rotor inertias; {stuck} did not get to 1e-9 in 300 iterations")
assert stuck == 0
print("rotor inertia       plain: mean median 99.9 %   most     preconditioned: mean median 99.9 %   most")
for k, rotor in enumerate(data.rotor.values):
    row = f"{rotor:8.1f} kg·m²"
    for name, gap in (("plain.count", 12), ("scaled.count", 21)):
        numbers = (*data[f"{name}_quantiles"].values[k], data[f"{name}_max"].values[k])
        row += f"{data[f'{name}_mean'].values[k]:{gap}.2f}" + "".join(f"{x:7.0f}" for x in numbers)
    print(row)

means = {name: data[f"{name}.count_mean"].values for name in ("plain", "scaled")}
assert float(data.wrong_max) < 1e-6  # what they converge to needs the torques that were given
assert (means["scaled"] > 2 * np.sqrt(N)).all()  # √n is far from enough
assert (means["scaled"] < means["plain"]).all()  # the preconditioner pays, and so does rotor inertia:
assert (np.diff(means["scaled"]) < 0).all()
axes = panels(1, 2, f"Iterations to 1e-9 on {samples} random arms of six joints", (11, 5), sharey=True)
if axes is not None:
    for ax, name, title in ((axes[0], "plain.count", "plain"), (axes[1], "scaled.count", "preconditioned")):
        for k, rotor in enumerate(data.rotor.values):
            share = np.bincount(data[name].values[k].astype(int), minlength=14)[:14] / data.sizes["sample"]
            ax.bar(np.arange(14) + 0.25 * (k - 1), share, 0.25, label=f"rotors of {rotor:g} kg·m²")
        ax.set(yscale="log", xlim=(3, 14), xlabel="iterations", ylabel="share of the arms", title=title)
        ax.legend()
