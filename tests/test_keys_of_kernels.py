"""Kernels with equal keys have equal programs: code that was compiled for other numbers would be taken in silence.

A key stands for all that a function depends on, without tracing it. Here every option of many functions is changed by
itself, and what has the same key must be the same program. An option that is forgotten in a key gives the results of
the kernel that was made first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, optimal
from linkwise.compiler.emit import blocks
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program
from linkwise.compiler.shapes import nest
from linkwise.control.named import CONTROLLERS
from linkwise.control.safe_stop import stop_kernel_with_settings
from linkwise.optimal.descent import limits_of, step_of

Makers = Iterator[tuple[str, Callable[[], Any]]]


def arm(**changes: Any) -> lw.Robot:
    """Two joints with limits, friction and rotors."""
    robot = lw.random_robot(7, 2, joints="R", friction=True, rotor=True)
    limits = lw.Limits(-1.3, 1.7, 2.9, 31.0)
    joints = [replace(joint, limits=limits) for joint in robot.joints]
    made = lw.Robot(robot.name, robot.links, joints, gravity=changes.get("gravity", robot.gravity))
    return made.with_parameters({key: value for key, value in changes.items() if key != "gravity"})


def robots() -> Iterator[tuple[str, lw.Robot]]:
    """The arm, and arms that differ from it in one number."""
    usual = arm()
    yield "usual", usual
    for label, value in zip(usual.parameter_labels, usual.parameters, strict=True):
        yield label, arm(**{label: 1.07 * float(value) if value else 0.013})
    yield "gravity", arm(gravity=(0.3, 0.0, -9.0))
    last = usual.joints[-1]
    moved = replace(last, origin=lw.Transform.from_rpy((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)))
    yield "place", lw.Robot(usual.name, usual.links, [*usual.joints[:-1], moved])
    slow = [replace(joint, limits=lw.Limits(-1.2, 1.6, 2.7, 29.0)) for joint in usual.joints]
    yield "limits", lw.Robot(usual.name, usual.links, slow)


def results_of(kernel: Any) -> str:
    """Results at one state, or the text of a program with loops."""
    program = kernel.program()
    if not isinstance(program, Program):
        return blocks.module(nest(program), 1)
    rng = np.random.default_rng(0)
    given = [(name != "memory") * rng.uniform(0.1, 1.0, size) for name, size in kernel.inputs]
    return repr([np.asarray(x, float).tolist() for x in interpret.run(program, *given)])


def judged(made: Makers) -> int:
    """Number of different programs; equal keys with different programs are an error."""
    programs: dict[Any, tuple[str, str]] = {}  # results stand for them
    for label, make in made:
        kernel = make()
        if getattr(kernel, "key", None) is None:  # compiled from its text, or of several kernels
            continue
        results = results_of(kernel)
        known, other = programs.setdefault(kernel.content(), (results, label))
        assert results == known, f"{kernel.name}: {label} has the key of {other}, and other results"
    return len({results for results, _ in programs.values()})


KERNEL_OPTIONS: tuple[dict[str, Any], ...] = (
    {"period": 0.02},
    {"fault": True},
    {"tunable": True},
    {"inputs": ("payload",)},
    {"inputs": ("payload",), "frame": "link1"},
    {"inputs": ("joint1.viscous_friction",)},
    {"dtype": "float32"},
)


def _of_controller(name: str) -> Makers:
    tuned = CONTROLLERS[name].feedback and name != "passive"
    usual: dict[str, Any] = {"frequency": 7.0 if tuned else None}
    if "frame" in inspect.signature(CONTROLLERS[name].__init__).parameters:
        usual["frame"] = arm().default_frame()

    def made(robot: lw.Robot, options: dict[str, Any], period: float = 0.01, **kernel: Any) -> Any:
        given = {key: value for key, value in (usual | options).items() if value is not None}
        return control.named(name, robot, **given).kernel(period, **kernel)

    for label, robot in robots():
        if "frame" not in usual or label in ("usual", "gravity", "limits"):
            yield label, lambda robot=robot: made(robot, {})
    changed: list[dict[str, Any]] = [{"torque_limits": 3.0}, {"torque_limits": False}]
    changed += [] if not tuned else [{"frequency": 5.0}, {"damping": 0.6}]
    for options in changed:
        for kernel in ({}, {"tunable": True}):
            yield f"{options} {kernel}", lambda o=options, k=kernel: made(arm(), o, **k)
    accepted = inspect.signature(CONTROLLERS[name].kernel).parameters
    for options in KERNEL_OPTIONS:
        if name == "whole_body_tracking" and "inputs" in options:  # refused there
            continue
        if all(key in accepted for key in options):
            yield str(options), lambda o=options: made(arm(), {}, **o)


@pytest.mark.parametrize("name", sorted(set(CONTROLLERS) - {"hybrid_force_motion"}))
def test_controllers(name):
    assert judged(_of_controller(name)) >= (2 if name == "passive" else 8)


def test_functions_of_robots():
    def made() -> Makers:
        for label, robot in robots():
            for name in ("inverse_dynamics", "forward_dynamics", "pose", "jacobian"):
                yield f"{name} {label}", lambda r=robot, n=name: r.kernel(n)
        for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            for options in ({"inputs": ("payload",)}, {"friction": False}, {"wrench": True}):
                if name != "mass_matrix" or "inputs" in options:
                    yield f"{name} {options}", lambda n=name, o=options: arm().kernel(n, **o)
        for frame in ("link1", "link2", "base"):
            yield f"pose {frame}", lambda f=frame: arm().kernel("pose", frame=f)

    assert judged(made()) > 60


def test_observers_and_safe_stops():
    def made() -> Makers:
        for label, robot in robots():
            yield label, lambda r=robot: stop_kernel_with_settings(r)
            yield label, lambda r=robot: control.StateObserver(r, 30.0).kernel(0.01)
        for frequency, damping, period in ((20.0, 1.0, 0.01), (30.0, 0.7, 0.01), (30.0, 1.0, 0.02)):
            numbers = (frequency, damping, period)
            yield str(numbers), lambda n=numbers: control.StateObserver(arm(), *n[:2]).kernel(n[2])
        for inputs, frame in (
            (("payload",), None),
            (("payload",), "link1"),
            (("joint1.viscous_friction",), None),
        ):
            observer = control.StateObserver(arm(), 30.0)
            yield str(inputs), lambda o=observer, i=inputs, f=frame: o.kernel(0.01, inputs=i, frame=f)

    assert judged(made()) > 15


def test_problems():
    """Of optimal motion: every argument of a problem and of its costs."""
    usual: dict[str, Any] = {
        "horizon": 4,
        "step": 0.02,
        "costs": [optimal.Effort(1e-3), optimal.TipTracking(np.eye(4), 1.0)],
        "state_limits": True,
    }
    changes: tuple[dict[str, Any], ...] = (
        {"step": 0.03},
        {"horizon": 5},
        {"integrator": "rk4"},
        {"friction": False},
        {"implicit_damping": True},
        {"state_limits": False, "limits": [optimal.StateLimits(position=False, velocity=1.5)]},
        {"limits": [optimal.TipLimits(-0.1, 0.2)]},
        {"limits": [optimal.TipLimits(-0.1, 0.2, frame="link1")]},
        {"limits": [optimal.KeepOut([0.3, 0.2, 0.2], 0.1)]},
        {"costs": [optimal.Smoothness(1e-3)]},
    )

    def made() -> Makers:
        for label, robot in robots():
            for of in (step_of, limits_of):
                yield label, lambda r=robot, of=of: of(optimal.Problem(r, **usual))
        for change in changes:
            for of in (step_of, limits_of):
                if of is limits_of and change.get("costs"):
                    continue
                yield str(change), lambda c=change, of=of: of(optimal.Problem(arm(), **(usual | c)))

    assert judged(made()) > 20
