"""Studies: samples, formulas, whole runs and refusals beside what is recorded."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.study.reduce import exact, sketch
from linkwise.study.reduce.reductions import folded_leaves, merged_extremes, merged_leaves
from linkwise.study.sampling import special
from linkwise.study.sampling.permutation import permuted
from linkwise.study.sampling.philox import key_of, ticks, words
from linkwise.study.sampling.sobol import directions, sobol
from linkwise.study.store.folder import read_study
from recorded import Scenarios, packed, told

scenarios = Scenarios("study")
BINS = {"low": 0.0, "high": 60.0, "bins": 6}
INDEX = np.arange(9, dtype=np.uint64)


def study(**tables: Any) -> Any:
    given: dict[str, Any] = {
        "robot": "two_link",
        "seed": 5,
        "samples": 9,
        "vary": {"q": {"uniform": [-2.0, 1.5]}, "qd": {"normal": [0.1, 0.7]}},
        "compute": {"tau": {"function": "inverse_dynamics", "inputs": {"qdd": 0.3}}},
        "keep": {"tau": "raw"},
    }
    return lw.study(**(given | tables))


def at(made: Any, *names: str) -> dict[str, np.ndarray]:
    return made.at(np.arange(made.points), list(names))


@scenarios
def samples():
    vary = {
        "q": {"uniform": [[-2.0, -1.0], [1.5, 0.5]]},
        "qd": {"normal": [0.1, [0.7, 0.2]]},
        "qdd": {"triangular": [-1.0, 0.2, 2.0]},
        "payload.mass": {"log_uniform": [0.1, 3.0]},
        "payload.com": {"lognormal": [0.1, 0.5]},
        "changes": {"labels": "*.m", "relative": True, "uniform": [0.8, 1.2], "together": True},
    }
    names = list(vary)
    found = {}
    for design in ("random", "sobol", "latin_hypercube"):
        text = told(study, vary=vary, design=design)
        found[design] = at(study(vary=vary, design=design), *names, "tau") if text == "no error" else text
    grid = {
        "q": {"grid": [[-0.3, 0.2], [0.4, 0.1], [0.0, 1.0]]},
        "payload.mass": {"grid": [0.0, 2.0]},
        "qd": 0.3,
    }
    made = study(vary=grid | {"qd": {"uniform": [-1.0, 1.0]}}, samples=2)
    found["grid"] = at(made, "q", "payload.mass", "tau") | {"shape": str(made.shape)}
    choice = {"q": {"choice": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.9]]}, "qd": {"uniform": [-1.0, 1.0]}}
    found["chosen"] = at(study(vary=choice), "q", "tau")
    return found


@scenarios
def numbers_that_samples_are_made_of():
    u = (np.arange(9) + 0.5) / 9
    key = key_of(7, "q")
    return {
        "log": [float(special.log(x)) for x in (0.1, 1.0, 7.3, 1e9)],
        "exp": [float(special.exp(x)) for x in (-3.0, 0.0, 2.2, 30.0)],
        "normal": [float(special.normal_quantile(float(x))) for x in u],
        "permuted": permuted(INDEX, 9, (3, 4)).astype(float),
        "many": permuted(INDEX, 10**9, (3, 4)).astype(float),
        "words": [np.asarray(word, float) for word in words(INDEX, key, 2)],
        "ticks": [ticks(INDEX, key, column, 53).astype(float) for column in (0, 1, 2, 3)],
        "short": ticks(INDEX, key, 3, 32).astype(float),
        "sobol": [sobol(INDEX, d, (3, 4)) for d in (0, 1, 5, 39)],
        "directions": [float(sum(directions(d)) % 2**50) for d in (0, 2, 17)],
    }


FORMULAS = (
    "max(abs(tau) / 3)",
    "tau[1] + tau[0] ** 2 - 2 * q[0]",
    "norm(tau) ** 2 + dot(q, qd)",
    "1 if tau[0] < 0 else sum(q)",
    "any(q < 0) and not all(qd > 0)",
    "where(tau[0] > 0, pi, mean(qd))",
    "sin(q[0]) * cos(q[1]) + sqrt(abs(tau[1])) + sign(qd[0]) + atan2(q[0], q[1])",
    "exp(q[0]) + log(1 + abs(q[1])) - min(tau)",
    "0 < q[0] <= 1 or q[1] != 0",
    "-q",
    "tan(q[0])",
)


@scenarios
def formulas():
    found = {}
    for text in FORMULAS:
        compute = {"tau": {"function": "inverse_dynamics", "inputs": {"qdd": 0.3}}, "x": text}
        said = told(study, compute=compute, keep={"x": "raw"})
        found[text] = at(study(compute=compute, keep={"x": "raw"}), "x")["x"] if said == "no error" else said
    return found


@scenarios
def steps():
    found = {}
    for name, compute in {
        "forward": {"y": {"function": "forward_dynamics", "inputs": {"tau": [1.0, 2.0]}}},
        "velocity": {"y": {"function": "velocity", "frame": "tip"}},
        "wrench": {
            "y": {"function": "inverse_dynamics", "wrench": True, "inputs": {"qdd": 0.0, "wrench": 1.5}}
        },
        "frictionless": {"y": {"function": "inverse_dynamics", "inputs": {"qdd": 0.0}, "friction": False}},
    }.items():
        said = told(study, compute=compute, keep={"y": "raw"}, samples=3)
        if said == "no error":
            said = packed(at(study(compute=compute, keep={"y": "raw"}, samples=3), "y"))
        found[name] = said
    return found


@scenarios
def studies_of_simulations():
    compute = {
        "x": {"simulate": "tracking", "duration": 0.02, "reference": {"to": 0.1}, "gains": {"frequency": 5}},
        "y": "x.rms_error + 2 * x.max_torque - x.max_error / 3 + x.final_error",
    }
    vary = {"changes": {"labels": "*.m", "relative": True, "uniform": [0.8, 1.2]}}
    made = study(
        compute=compute, vary=vary, keep={"y": "raw", "x.rms_error": {"statistics": ["max"]}}, samples=4
    )
    with tempfile.TemporaryDirectory() as folder:
        data = made.run(Path(folder) / "store", progress=False, threads=1).dataset().load()
        return {name: np.asarray(data[name].values, float) for name in sorted(data.data_vars)}


@scenarios
def whole_runs():
    """Every number of the results."""
    tables = {
        "samples": 300,
        "chunk": 64,
        "vary": {
            "q": {"uniform": [-3.0, 3.0]},
            "qd": {"normal": [0.0, 1.0]},
            "payload.mass": {"grid": [0.0, 2.0]},
        },
        "compute": {"tau": {"function": "inverse_dynamics", "inputs": {"qdd": 0.0}}, "load": "max(abs(tau))"},
        "keep": {
            "tau": {
                "raw": True,
                "statistics": ["count", "mean", "variance", "min", "max"],
                "quantiles": [0.3, 0.9],
                "histogram": BINS,
            },
            "load": {
                "statistics": ["mean", "max"],
                "over": "sample",
            },
        },
        "failures": {"heavy": "load > 40"},
    }
    with tempfile.TemporaryDirectory() as folder:
        made = study(**tables)
        results = made.run(Path(folder) / "store", progress=False, threads=1)
        data = results.dataset().load()
        found = {name: packed({"": np.asarray(data[name].values, float)}) for name in sorted(data.data_vars)}
        units = {
            name: str(data[name].attrs.get("units", "")) + str(data[name].dims)
            for name in sorted(data.data_vars)
        }
        table = results.table("failures/heavy")
        heavy = (
            {name: np.asarray(table[name], float) for name in sorted(table)}
            if isinstance(table, dict)
            else len(table)
        )
    return {
        "data": found,
        "units": units,
        "heavy": packed({"": heavy}),
        "shape": str(made.shape),
        "points": made.points,
    }


@scenarios
def damaged_folders():
    found = {}
    texts = {
        "other": "{}",
        "none": "nothing",
        "cut": '{"linkwise": "1", "digest": "ab", "stu',
        "sum": '{"sha256": 1',
        "list": "[1, 2]",
        "changed": '{"linkwise": "1", "digest": "ab", "study": {"format": 2}}',
    }
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("empty").mkdir()
        found["empty"] = told(read_study, Path("empty"))
        for name, text in texts.items():
            Path(name).mkdir()
            (Path(name) / "study.json").write_text(text, encoding="utf-8")
            found[name] = told(read_study, Path(name))
    return found


@scenarios
def reductions():
    rng = np.random.default_rng(4)
    leaves = np.stack([[np.full(3, 4.0 + k), rng.normal(size=3), rng.uniform(1, 2, 3)] for k in range(5)])
    found = {"merged": told(merged_leaves, leaves[0].T, leaves[1].T)}
    if found["merged"] == "no error":
        found["merged"] = merged_leaves(leaves[0].T, leaves[1].T)
    found["folded"] = told(folded_leaves, np.stack([leaf.T for leaf in leaves]))
    if found["folded"] == "no error":
        found["folded"] = folded_leaves(np.stack([leaf.T for leaf in leaves]))
    found["extremes"] = told(merged_extremes, np.zeros((3, 4)), np.ones((3, 4)))
    values = rng.normal(size=40) * 10.0 ** rng.integers(-3, 3, 40)
    keys = sketch.ordered(values)
    found["ordered"] = [np.argsort(keys).astype(float), np.array([sketch.number(int(key)) for key in keys])]
    found["bounds"] = [list(sketch.bounds(rank)) for rank in (3, 40000, 65000)]
    found["middle"] = [sketch.middle(rank) for rank in (3, 40000, 65000)]
    return found | {"exact": exact.__name__}


@scenarios
def refusals():
    q = {"uniform": [-1.0, 1.0]}

    def wrong(**tables: Any) -> str:
        return told(study, **tables)

    return {
        "robot": wrong(robot="two_lnk"),
        "samples": wrong(samples=0),
        "key": wrong(sample=3),
        "design": wrong(design="halton"),
        "name": wrong(vary={"p": q}),
        "distribution": wrong(vary={"q": {"unifrm": [0, 1]}, "qd": 0.0}),
        "order": wrong(vary={"q": {"uniform": [1.0, -1.0]}, "qd": 0.0}),
        "count": wrong(vary={"q": {"uniform": [1.0]}, "qd": 0.0}),
        "shape": wrong(vary={"q": [1.0, 2.0, 3.0], "qd": 0.0}),
        "deviation": wrong(vary={"q": {"normal": [0.0, -1.0]}, "qd": 0.0}),
        "mode": wrong(vary={"q": {"triangular": [0.0, 3.0, 1.0]}, "qd": 0.0}),
        "log": wrong(vary={"q": {"log_uniform": [0.0, 3.0]}, "qd": 0.0}),
        "labels": wrong(vary={"q": q, "qd": 0.0, "c": {"labels": "*.mass", "uniform": [0, 1]}}),
        "missing": wrong(vary={"q": q}),
        "function": wrong(compute={"tau": {"function": "inverse"}}),
        "formula": wrong(compute={"tau": "max(abs(torque))"}),
        "attribute": wrong(compute={"tau": "q.__class__"}),
        "calls": wrong(compute={"tau": "open(q)"}),
        "keep": wrong(keep={"torque": "raw"}),
        "what": wrong(keep={"tau": "rough"}),
        "statistics": wrong(keep={"tau": {"statistics": ["median"]}}),
        "quantiles": wrong(keep={"tau": {"quantiles": [1.5]}}),
        "histogram": wrong(keep={"tau": {"histogram": [3.0, 1.0, 4]}}),
        "failures": wrong(failures={"heavy": "load > 3"}),
        "chunk": wrong(chunk=-1),
        "none": told(lw.study, "nothing.toml"),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
