"""The model of an FMU: where its numbers are, its variables, and the C that connects them with generated functions.

A robot's forward dynamics is a plant: positions and velocities are states, which a fixed-step integrator moves. All
other functions give their outputs for their inputs at once; what controllers and observers remember changes once in
every sample period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.compiler.emit import c
from linkwise.compiler.emit.clike import spelt
from linkwise.core import foreign
from linkwise.embedded import ENTRIES, Entry, Options, entries, header
from linkwise.embedded.coded import Coded
from linkwise.embedded.package_files import support_file
from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot
from linkwise.systems.variables import POSITIONS, Variable, scalars
from linkwise.version import __version__

PLANT = "forward_dynamics"
_LOOPS = ("closed_loop", "rollout", "two_rate", "online", "inverse_kinematics")


class SystemExportError(LinkwiseError, ValueError):
    """A function cannot be written for another system; the message says why."""


@dataclass(frozen=True)
class Layout:
    """Places of the arguments of generated functions in one array of numbers."""

    places: dict[str, int] = field(default_factory=dict)
    size: int = 1
    """Numbers so far; 0 is the time."""

    def add(self, title: str, size: int) -> Layout:
        return Layout({**self.places, title: self.size}, self.size + size)


@dataclass(frozen=True)
class FmuModel:
    """What the description and the sources of an FMU are written from."""

    identifier: str
    summary: str
    functions: Sequence[Coded]
    variables: Sequence[Variable]
    size: int
    """Numbers in an instance: the variables and what is not visible."""
    first_state: int
    stepped: int
    """Numbers from ``first_state`` on that a step changes."""
    period: float
    sampled: bool
    """Whether communication steps must be whole numbers of ``period``."""
    plant: bool
    exchange: bool
    """Whether there is model exchange, with directional derivatives."""
    calls: Mapping[str, str]
    """Bodies of model_outputs, model_step and model_directional."""
    step_variable: int | None = None

    @property
    def states(self) -> list[Variable]:
        """Continuous states."""
        wanted = {each.derivative for each in self.variables}
        return [each for each in self.variables if each.reference in wanted]


def fmu_model(robot: Robot, name: str, options: Options, identifier: str | None = None) -> FmuModel:
    """The model of a function, a controller or an observer.

    Args:
        robot: the robot.
        name: a function of the robot, a controller or an entry of C packages.
        options: choices, as for packages.
        identifier: name of the model and of the binary; by default from robot and function.

    Raises:
        SystemExportError: there is no FMU of this function.
        UnknownNameError: there is no function of this name.
    """
    if name in _LOOPS:
        raise SystemExportError(
            f"{name}: no FMU of a loop; forward_dynamics is the robot, a controller is an FMU of its own"
        )
    if options.dtype != "float64":
        raise SystemExportError(f"{name}: an FMU computes in float64, not {options.dtype}")
    identifier = identifier or spelt(f"{robot.name}_{name}")
    return _plant(robot, options, identifier) if name == PLANT else _direct(robot, name, options, identifier)


# -- the robot -----------------------------------------------------------------------------------------------


def _plant(robot: Robot, options: Options, identifier: str) -> FmuModel:
    n, nq = robot.dof, robot.nq
    if not n:
        raise SystemExportError(f"{robot.name}: it has no moving joints")
    if robot.constraints:
        raise SystemExportError(f"{robot.name}: no FMU of a robot with constraints; lw.simulate simulates it")
    if robot.contact_parts:
        raise SystemExportError(f"{robot.name}: no FMU of a robot with contacts; lw.simulate simulates it")
    if options.wrench or options.payload:
        raise SystemExportError(
            "forward_dynamics: an FMU of a robot has neither a payload nor a wrench as input"
        )
    exchange = nq == n
    names = (PLANT, "rollout", *(["forward_dynamics_derivatives"] if exchange else []))
    coded = _coded(entries(robot, names, options), identifier)
    layout = Layout()
    for title, size in (("q", nq), ("qd", n), ("qdd", n), ("tau", n), ("step", 1)):
        layout = layout.add(title, size)
    visible = layout.size
    forward, rollout, *slopes = coded
    layout = _with_hidden(layout, coded, {"path_q": nq, "path_qd": n})
    at = layout.places
    calls = {
        "outputs": _call(forward, layout),
        "step": f"    const double own = v[{at['step']}];\n    v[{at['step']}] = h;\n{_call(rollout, layout)}"
        f"    v[{at['step']}] = own;\n",
    }
    if slopes:
        calls["directional"] = _directional(slopes[0], layout, n)
    starts: dict[str, np.ndarray] = {
        "q": np.asarray(robot.neutral, float),
        "qd": np.zeros(n),
        "tau": np.zeros(n),
        "step": np.array([options.period]),
    }
    roles = {"q": "output", "qd": "output", "qdd": "output", "tau": "input", "step": "parameter"}
    variables = _variables(robot, layout, roles, starts, {"q": nq, "qd": n, "qdd": n, "tau": n, "step": 1})
    if exchange:
        variables = [
            replace(each, derivative=each.reference - n) if 1 + n <= each.reference < 1 + 3 * n else each
            for each in variables
        ]
    assert len(variables) == visible
    summary = (
        f"{robot.name}: positions and velocities under joint torques; {options.integrator} with a fixed step in "
        "co-simulation"
    )
    return FmuModel(
        identifier, summary, coded, variables, layout.size, at["q"], nq + n, options.period, False, True, exchange,
        calls, at["step"],
    )  # fmt: skip


def _directional(slopes: Coded, layout: Layout, n: int) -> str:
    """Derivatives of q̈ along a direction; the other variables depend on nothing but themselves."""
    at = layout.places
    rows = "\n".join(
        f"            sum += v[{at[matrix]} + {n} * i + k] * d[{at[by]} + k];"
        for matrix, by in (("dqdd_dq", "q"), ("dqdd_dqd", "qd"), ("dqdd_dtau", "tau"))
    )
    return (
        _call(slopes, layout)
        + f"    for (int i = 0; i < {n}; ++i) {{\n        double sum = 0.0;\n"
        + f"        for (int k = 0; k < {n}; ++k) {{\n{rows}\n        }}\n        d[{at['qdd']} + i] = sum;\n    }}\n"
    )


# -- functions, controllers, observers -----------------------------------------------------------------------


def _direct(robot: Robot, name: str, options: Options, identifier: str) -> FmuModel:
    (entry,) = entries(robot, (name,), options)
    (function,) = _coded([entry], identifier)
    inputs = {a.array.title: a.size or 0 for a in function.arguments if a.array.kind == "input"}
    outputs = {a.array.title: a.size or 0 for a in function.arguments if a.array.kind == "output"}
    outputs |= {} if function.function.status is None else {c.STATUS: 1}
    kept = _kept(inputs, outputs)
    shown = {title: size for title, size in inputs.items() if title not in (*kept, "time")}
    results = {title: size for title, size in outputs.items() if title not in kept.values()}
    remembered = [title for title in kept if title != "memory"]
    layout, roles = Layout({"time": 0}), {}
    sizes: dict[str, int] = {}
    for title, size in (*shown.items(), *((t, inputs[t]) for t in remembered), *results.items()):
        key = f"out_{title}" if title in sizes else title
        layout, sizes[key] = layout.add(key, size), size
        roles[key] = "input" if title in shown and key == title else "output"
        roles[key] = "tunable" if title in entry.settings else roles[key]
    starts = {
        title: _start(robot, title, size)
        for title, size in (shown | {t: inputs[t] for t in remembered}).items()
    }
    starts |= {title: np.clip(values, -1e30, 1e30) for title, values in entry.settings.items()}
    for title in kept:
        if title not in layout.places:
            layout = layout.add(title, inputs[title])
    layout = _with_hidden(layout, [function], {})
    calls = {"outputs": _call(function, layout), "step": ""}
    if kept:
        at = layout.places
        moves = [
            f"    (void)memcpy(v + {at[title]}, v + {at[following]}, {inputs[title]} * sizeof *v);\n"
            for title, following in kept.items()
        ]
        calls["step"] = "    (void)h;\n    model_outputs(v);\n" + "".join(moves)
    first = layout.places[next(iter(kept))] if kept else 0
    variables = _variables(robot, layout, roles, starts, sizes)
    stepped = sum(inputs[title] for title in kept)
    return FmuModel(
        identifier, entry.summary, [function], variables, layout.size, first, stepped, options.period, bool(kept),
        False, False, calls,
    )  # fmt: skip


def _kept(inputs: Mapping[str, int], outputs: Mapping[str, int]) -> dict[str, str]:
    """Inputs that the function itself gives for its next call, and the outputs that they come from."""
    found = {}
    for title in inputs:
        following = f"next_{title.removeprefix('estimated_')}"
        if following in outputs and (title == "memory" or title.startswith("estimated_")):
            found[title] = following
    return found


def _start(robot: Robot, title: str, size: int) -> np.ndarray:
    if title in POSITIONS and size == robot.nq:
        return np.asarray(robot.neutral, float)
    return np.ones(size) if title == "duration" else np.zeros(size)


# -- shared --------------------------------------------------------------------------------------------------


def _coded(found: Sequence[Entry], identifier: str) -> list[Coded]:
    return [Coded(entry, f"{identifier}_{entry.name}", "functions.h") for entry in found]


def _with_hidden(layout: Layout, functions: Sequence[Coded], lengths: Mapping[str, int]) -> Layout:
    """Places for all other arguments."""
    for function in functions:
        for a in function.arguments:
            title = _title(function, a)
            if title not in layout.places:
                size = lengths[a.array.title] if a.size is None and a.array.title in lengths else a.size
                assert size is not None, a.name
                layout = layout.add(title, size)
    return layout


def _title(function: Coded, argument) -> str:
    """The key of an argument in the layout; an output with the name of an input has a place of its own."""
    title = argument.array.title
    if argument.array.kind == "scratch":
        return f"{function.name} {title}"
    inputs = {a.array.title for a in function.arguments if a.array.kind == "input"}
    return f"out_{title}" if argument.array.kind == "output" and title in inputs else title


def _call(function: Coded, layout: Layout) -> str:
    passed = [f"v + {layout.places[_title(function, a)]}" for a in function.arguments]
    passed += ["1L"] * len(function.function.nest.numbers)
    status = function.function.status
    kept = "" if status is None else f"v[{layout.places[c.STATUS]}] = (double)"
    return f"    {kept}{function.name}({', '.join(passed)});\n"


def _variables(
    robot: Robot,
    layout: Layout,
    roles: Mapping[str, str],
    starts: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
) -> list[Variable]:
    found = [Variable("time", 0, "independent", "time", "s")]
    for title, role in roles.items():
        for k, (name, unit, what) in enumerate(scalars(robot, title, sizes[title])):
            start = float(starts[title][k]) if title in starts else None
            if title == "step":
                what = "longest step of the integrator in co-simulation"
            found.append(Variable(name, layout.places[title] + k, role, what, unit, start))
    return found


def sources(robot: Robot, model: FmuModel, token: str, version: str) -> dict[str, str]:
    """The C files of an FMU by name.

    Args:
        robot: the robot.
        model: its model.
        token: what an importer must give to instantiate it.
        version: "2.0" or "3.0".
    """
    about = f"{robot.name}: C code by Linkwise {__version__}"
    files = {f"{f.name}.c": f.text for f in model.functions}
    prototypes = header.header(robot, model.identifier, model.functions, {}, "", about)
    return {
        **files,
        "functions.h": _without_limits(prototypes),
        "lw_fma.h": support_file("lw_fma.h"),
        "fmu_model.h": _declared(model, token),
        "fmu_model.c": _defined(model),
        **{
            name: support_file(name, "linkwise.systems")
            for name in ("fmu_core.h", "fmu_functions.h", f"fmi{version[0]}.c")
        },
    }


def _without_limits(text: str) -> str:
    """Prototypes only: an FMU has no file with limits of joints."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("extern const", "/* Limits of the joints")))


def _declared(model: FmuModel, token: str) -> str:
    steps = model.plant or model.sampled
    step = repr(model.period) if model.step_variable is None else f"(v)[{model.step_variable}]"
    numbers = {
        "MODEL_TOKEN": f'"{token}"',
        "MODEL_VARIABLES": f"{len(model.variables)}u",
        "MODEL_SIZE": model.size,
        "MODEL_STEPS": int(steps),
        "MODEL_SAMPLED": int(model.sampled),
        "MODEL_STEP(v)": f"({step})",
        "MODEL_FIRST_STATE": model.first_state,
        "MODEL_STEPPED": f"{model.stepped}u",
        "MODEL_EXCHANGE": int(model.exchange),
        "MODEL_DIRECTIONAL": int(model.exchange),
        "MODEL_STATES": f"{len(model.states)}u",
        "MODEL_FIRST_DERIVATIVE": 1 + len(model.states) // 2,
        "MODEL_FAULT": next((each.reference for each in model.variables if each.name == c.STATUS), 0),
        "MODEL_CALCULATED": 0,
        "MODEL_INITIAL": 1,
        "MODEL_INPUT": 2,
    }
    defined = "\n".join(f"#define {name} {value}" for name, value in numbers.items())
    return f"""\
/* The model of this FMU: sizes, and functions of its array of values. */

#ifndef FMU_MODEL_H
#define FMU_MODEL_H

{defined}

/* Start values of the variables, and who may set them. */
extern const double model_start[MODEL_VARIABLES];
extern const unsigned char model_access[MODEL_VARIABLES];

/* Outputs from inputs and states. */
void model_outputs(double *v);
/* One internal step of h seconds. */
void model_step(double *v, double h);
/* d: a direction of inputs and states; the derivatives of the outputs along it are added to it. */
void model_directional(double *v, double *d);

#endif
"""


def _defined(model: FmuModel) -> str:
    access = {
        "independent": "MODEL_INITIAL",
        "parameter": "MODEL_INITIAL",
        "input": "MODEL_INPUT",
        "tunable": "MODEL_INPUT",
    }
    starts, rights = [], []
    for each in model.variables:
        starts.append(f"    {each.start or 0.0!r}, /* {foreign.c_comment(each.name)} */")
        kind = "MODEL_CALCULATED" if each.calculated else "MODEL_INITIAL"
        rights.append(f"    {access.get(each.causality, kind)},")
    text = '#include "fmu_model.h"\n#include "functions.h"\n\n#include <string.h>\n\n'
    text += "const double model_start[MODEL_VARIABLES] = {\n" + "\n".join(starts) + "\n};\n\n"
    text += "const unsigned char model_access[MODEL_VARIABLES] = {\n" + "\n".join(rights) + "\n};\n\n"
    text += f"void model_outputs(double *v)\n{{\n{model.calls['outputs']}}}\n\n"
    unused = "    (void)v, (void)h;\n"
    text += f"void model_step(double *v, double h)\n{{\n{model.calls['step'] or unused}}}\n\n"
    unused = "    (void)v, (void)d;\n"
    text += f"void model_directional(double *v, double *d)\n{{\n{model.calls.get('directional', unused)}}}\n"
    return text


NAMES = tuple(name for name in ENTRIES if name not in _LOOPS)
"""Entries of packages, besides functions and controllers, that can be FMUs."""
