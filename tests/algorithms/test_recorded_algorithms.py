"""Every function of every shape of robot by every algorithm, on arrays, beside the results that are recorded."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.model.constraints import target_size
from recorded import Scenarios, packed
from recorded_robots import ROBOTS, coupled, floating, linkage, states, touching

scenarios = Scenarios("algorithms")


@cache
def six() -> lw.Robot:
    """As many joints as a task has rows."""
    return lw.random_robot(53, 6, joints="R", friction=True)


@cache
def held() -> lw.Robot:
    """Held to the world only, by a point and a soft weld: what a filter takes."""
    robot = lw.random_robot(59, 6, friction=True, rotor=True)
    at = robot.pose(np.array([0.3, -0.2, 0.4, 0.1, -0.5, 0.2]), "link6")
    return robot.with_constraints(
        [lw.Weld("link6", at, compliance=0.02, name="hand"), lw.Point("link3", (0.1, 0.2, 0.3))],
        passive=("joint2", "joint5"),
    )


@cache
def standing() -> lw.Robot:
    """A floating body that touches the ground at points of several shapes and another link."""
    shapes = {"torsional_friction": 0.02, "rolling_friction": 0.01}
    return floating().with_contacts(
        [
            lw.Contact("link2", points=[(0.1, 0.05, -0.1), (-0.08, 0.03, -0.12)], friction=0.5, **shapes),
            lw.Shape.box("link3", (0.31, 0.23, 0.17)),
            lw.Contact("link1", "link3", radius=0.34, friction=0.3),
            lw.Contact("base", edges=(0.2, 0.1, 0.15), friction=0.7, nearest=2),
            lw.Ground(0.6, -0.1),
        ]
    )


@cache
def screw_chain() -> lw.Robot:
    """A chain with rotors at every joint: what a parallel scan takes."""
    return lw.random_robot(61, 4, joints="R", rotor=True)


SHAPES = {**ROBOTS, "six": six, "held": held, "standing": standing, "screw_chain": screw_chain}
FEW = ("contact_step", "contact_gaps", "contact_frames")
"""Functions with contacts of the robot that has many: each one but the first solves all again."""
CONSTRAINED = ("constraint_", "constrained_", "delassus", "impact")


def wanted(robot: lw.Robot, name: str) -> bool:
    if name.startswith("contact_"):
        return bool(robot.contact_parts) and (robot is touching() or name in FEW)
    if robot is standing():  # others are those of ``floating``
        return False
    if name.startswith(CONSTRAINED):
        return bool(robot.constraints)
    return True


def numbers(setting: Setting, function: Any, count: int = 2) -> dict[str, np.ndarray]:
    """States, and odd numbers for what else a function takes."""
    robot = setting.model
    known = states(robot, count)
    known |= {"other": states(robot, count, 5)["q"], "step": 0.3 * known["qd"]}
    rng = np.random.default_rng(7)
    return {
        name: known[name] if name in known else rng.uniform(0.1, 0.9, (count, size))
        for name, size in function.input_sizes(setting).items()
    }


def results(setting: Setting, name: str) -> dict[str, Any]:
    """By every algorithm, or why not."""
    function, found = FUNCTIONS[name], {}
    for algorithm in (*function.algorithms, *function.scanned):
        try:
            found[algorithm] = arrays.run_on_arrays(function, setting, algorithm, numbers(setting, function))
        except (lw.LinkwiseError, TypeError) as error:  # this one, or the options, are not for it
            found[algorithm] = f"{type(error).__name__}: {error}"
    return packed(found)


def _of_shape(make: Any) -> Any:
    def scenario() -> dict[str, Any]:
        robot = make()
        frame = robot.moving_joints[-1].child
        setting = Setting(robot, frame=frame)
        return {name: results(setting, name) for name in FUNCTIONS if wanted(robot, name)}

    scenario.__name__ = f"functions_of_{make.__name__}"
    return scenario


for _make in SHAPES.values():
    scenarios(_of_shape(_make))

PLAIN = ("inverse_dynamics", "forward_dynamics", "iterated_forward_dynamics", "bias_torques")
OPTIONS = {
    "frictionless": ({"friction": False}, (*PLAIN, "inverse_dynamics_derivatives", "regressor")),
    "wrench": ({"wrench": True}, PLAIN),
    "base parameters": (
        {"base_parameters": True},
        (*PLAIN, "mass_matrix", "potential_energy", "gravity_torques"),
    ),
    "unmoved": ({"slide": False}, (*PLAIN, "pose", "jacobian_rate", "center_of_mass", "kinetic_energy")),
    "loose": ({"tolerance": 1e-2, "limit": 2}, PLAIN[2:3]),
    "warm": ({"start": True, "tolerance": 1e-3}, PLAIN[2:3]),
    "payload": ({"parameters": ("payload",)}, (*PLAIN[:2], "mass_matrix", "potential_energy")),
}


@scenarios
def options_of_functions():
    found = {}
    for label, (options, names) in OPTIONS.items():
        for make in (coupled, floating):
            robot = make()
            setting = Setting(robot, frame=robot.moving_joints[-1].child, **options)
            found[f"{label} {make.__name__}"] = packed({name: results(setting, name) for name in names})
    return found


@scenarios
def options_of_constraints():
    found = {}
    for make in (held, linkage):
        robot = make()
        settings = {
            "stabilized": Setting(robot, frame="link3", stabilization=7.3),
            "frictionless": Setting(robot, frame="link3", friction=False, wrench=True),
        }
        names = [
            name for name in FUNCTIONS if name.startswith((*CONSTRAINED, "forward", "motor", "inverse_dyn"))
        ]
        for label, setting in settings.items():
            found[f"{label} {make.__name__}"] = packed({name: results(setting, name) for name in names})
        found[f"targets {make.__name__}"] = [target_size(each) for each in robot.constraints]
    return found


@scenarios
def options_of_contacts():
    found = {}
    names = ("contact_step", "contact_residual")
    inputs = ("time_step", "contact_friction", "ground_height", "start_impulse")
    for make in (touching, standing):
        for label, options in {
            "step": {"step": 0.011},
            "accurate": {"accuracy": 1e-9},
            "smooth": {"smoothing": 0.05},
            "inputs": {"contact_inputs": inputs},
            "frictionless": {"friction": False},
        }.items():
            if make is standing and label != "inputs":
                continue  # as many candidates take long
            setting = Setting(make(), **options)
            found[f"{label} {make.__name__}"] = packed({name: results(setting, name) for name in names})
    return found


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
