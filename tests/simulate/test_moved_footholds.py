"""Footholds are inputs: robots that are held elsewhere share all code, and every function uses its own targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from example_robots import loaded
from linkwise import control
from linkwise.compiler.ir import program
from linkwise.control.named import CONTROLLERS
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.simulate import loop, simulate

MOVED = np.array([0.1, 0.0, 0.0])  # [m]


def table() -> lw.Robot:
    """A body on four legs of one joint each."""
    links = [lw.Link("body", lw.Inertia.from_com(2.0, (0, 0, 0), (0.02, 0.03, 0.04)))]
    joints = []
    for k, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]):
        links.append(lw.Link(f"{k}_FOOT", lw.Inertia.from_com(0.2, (0, 0, -0.1), (0.001, 0.001, 0.0001))))
        place = lw.Transform.from_rpy((x, y, 0))
        joints.append(lw.Joint(f"leg{k}", "revolute", "body", f"{k}_FOOT", place, axis=(0, 1, 0)))
    return lw.Robot("table", links, joints).with_base("floating")


def standing(robot: lw.Robot, shift: np.ndarray) -> tuple[lw.Robot, np.ndarray]:
    """The robot on four points, all of it ``shift`` further, and its position."""
    q = robot.neutral.copy()
    if robot.dof == 18:
        q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    q[:3] += shift
    feet = [name for name in robot.link_names if name.endswith("FOOT")]
    assert len(feet) == 4
    low = np.zeros(3) if robot.dof == 18 else np.array([0.0, 0.0, -0.2])
    points = [lw.Point(foot, robot.pose(q, foot)[:3, 3] + low, offset=low) for foot in feet]
    return robot.with_constraints(points), q


def refuse(*_, **__):
    raise AssertionError("traced again")


@pytest.mark.parametrize("stepped", ["in one kernel", "one kernel a step", "kernels of parts"])
def test_moving_four_feet_compiles_nothing(stepped, monkeypatch):
    """With the base moved as well, the motion is the same, 0.1 m further; nothing is traced for it."""
    robot = loaded("solo12") if stepped == "kernels of parts" else table()

    def run(shift):
        held, q = standing(robot, shift)
        law: Any = control.GravityPD(held, control.Gains(20.0, 2.0))
        if stepped != "in one kernel":
            law = lambda t, q, qd, moment: 0.1 + 0 * qd  # noqa: E731
        found = simulate(held, law, q + 0.05 * (np.arange(len(q)) > 6), q=q, duration=0.01, step=1e-3)
        assert np.abs(found.constraint_errors()).max() < 1e-6
        return found

    first = run(0 * MOVED)
    monkeypatch.setattr(program, "lower", refuse)
    again = run(MOVED)
    expected = first.q.copy()
    expected[..., :3] += MOVED
    assert np.abs(first.qd).max() > 1e-3
    np.testing.assert_allclose(again.q, expected, atol=1e-9)
    np.testing.assert_allclose(again.qd, first.qd, atol=1e-7)


@pytest.mark.parametrize("name", ["two_link", "stanford"])
def test_every_function_uses_the_targets_of_its_robot(name):
    """Functions of contact were found by a key without targets, and had those of another robot in their code."""
    arm = lw.load(name)
    rng = np.random.default_rng(3)
    tip, q = arm.link_names[-1], rng.uniform(-1, 1, arm.dof)
    given = {"q": q, "qd": rng.normal(size=arm.dof), "tau": rng.normal(size=arm.dof)}

    def held(shift):
        place = arm.pose(q, tip)[:3, 3] + shift
        return arm.with_constraints([lw.Point(tip, place, compliance=0.01)]).with_contacts([lw.Contact(tip)])

    results = []
    for robot in (held(0 * MOVED), held(MOVED)):
        for function, options in (
            ("contact_step", {}), ("contact_forces", {}), ("contact_velocities", {}), ("contact_residual", {}),
            ("constraint_errors", {}), ("forward_dynamics", {"stabilization": 20.0}),
        ):  # fmt: skip
            row = FUNCTIONS[function]
            inputs = {each: given[each] for each in row.inputs}
            setting = Setting(robot, **options)
            wanted = arrays.run_on_arrays(row, setting, row.default, inputs)
            found = getattr(robot, function)(**inputs, **options)
            for one, other in zip(
                found if isinstance(found, tuple) else (found,), wanted.values(), strict=False
            ):
                np.testing.assert_allclose(
                    one, other, atol=1e-7 * (1 + np.abs(other).max()), err_msg=function
                )
            results.append(np.ravel(found[1] if isinstance(found, tuple) else found))
    moved = [not np.allclose(a, b) for a, b in zip(results[:6], results[6:], strict=True)]
    assert moved[0]
    assert moved[4:] == [True, True]


def test_laws_of_the_package_do_not_use_constraints():
    """So that where frames are held is no part of what their code is found by; a law that does says so."""
    arm = lw.load("puma560")
    q = np.linspace(0.2, 0.9, 6)
    for name, law in CONTROLLERS.items():
        texts = []
        for shift in (0.0, 0.1):
            point = lw.Point("link6", arm.pose(q)[:3, 3] + shift)
            robot = arm.with_constraints([point])
            try:
                made = control.named(name, robot, **({"frequency": 10.0} if law.feedback else {}))
            except lw.LinkwiseError:  # refuses robots with constraints
                continue
            texts.append((made.kernel(1e-3).source("python"), made.key()))
        if texts and not law.holds:
            assert texts[0] == texts[1], name


def test_contacts_of_a_robot_that_is_too_large_for_a_fused_loop_are_kept(monkeypatch):
    """Such robots fell through the ground."""
    ball = lw.Robot("ball", [lw.Link("ball", lw.Inertia.from_com(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))], [])
    ball = ball.with_base("floating").with_contacts([lw.Contact("ball", radius=0.1)])
    q = ball.neutral.copy()
    q[2] = 0.13
    monkeypatch.setitem(loop.FUSED_OPERATIONS, "contact_step", 10)
    stepped, fused = (
        simulate(ball, control.Passive(ball), q=q, duration=0.2, step=2e-3, control_period=4e-3, fused=fused)
        for fused in (False, True)
    )
    assert stepped.final_q[2] == pytest.approx(0.1, abs=2e-3)
    np.testing.assert_allclose(stepped.final_q, fused.final_q, atol=1e-9)
