"""Numbers that are not known in steps with contact: they reach every output of their state and no other one."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

OUTPUTS = ("contact_forces", "contact_velocities", "contact_residual")


def pendulum() -> lw.Robot:
    """Few contacts and a stop: the matrix of all rows."""
    links = [lw.Link(name, lw.Inertia.from_com(1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))) for name in "ab"]
    joint = lw.Joint("j", "revolute", "a", "b", axis=(0, 1, 0), limits=lw.Limits(-0.5, 0.5))
    robot = lw.Robot("two", links, [joint], gravity=(0, 0, -9.81)).with_base("floating")
    contacts = [lw.Contact(name, offset=(0.2, y, 0), radius=0.02) for name, y in (("a", 0.0), ("b", 0.1))]
    return robot.with_contacts(contacts, stops=True)


def table() -> lw.Robot:
    """Redundant contacts: measurements of the filter."""
    return pendulum().with_contacts([lw.Contact.box("a", (0.2, 0.2, 0.1)), lw.Contact("b")], stops=True)


@pytest.mark.parametrize("make", [pendulum, table])
def test_nan_reaches_every_output_of_its_state_alone(make):
    """Results were zero impulses with a residual of zero, or a robot that fell through the ground."""
    robot = make()
    count = len(robot.contact_names)
    start = np.array([0, 0, 0.0, 0, 0, 0, 1.0, 0.2])
    given = {
        "q": np.tile(start, (4, 1)),
        "qd": np.tile(np.array([0.1, 0.2, 0, 0.3, 0, -0.5, 1.0]), (4, 1)),
        "tau": np.zeros((4, robot.dof)),
        "contact_friction": np.full((4, count), 0.5),
        "ground_height": np.zeros((4, count)),
    }
    known = [*robot.contact_step(**given), *(getattr(robot, name)(**given) for name in OUTPUTS)]
    assert all(np.isfinite(each).all() for each in known)
    for name, place in (
        ("q", 2),
        ("q", 7),
        ("qd", 6),
        ("tau", 0),
        ("ground_height", 0),
        ("contact_friction", 0),
    ):
        wrong = {key: value.copy() for key, value in given.items()}
        wrong[name][2, place] = np.nan
        for what, found, usual in zip(
            ("q", "qd", "impulse", *OUTPUTS),
            [*robot.contact_step(**wrong), *(getattr(robot, each)(**wrong) for each in OUTPUTS)],
            known,
            strict=True,
        ):
            assert np.isnan(found[2]).any(), (name, what)
            if what in ("impulse", "contact_forces", "contact_residual") and name != "contact_friction":
                assert np.isnan(found[2]).all(), (name, what)
            np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(usual, 2, axis=0))


def test_infinite_grounds_and_friction_are_refused():
    robot = pendulum()
    state = robot.neutral, np.zeros(robot.dof), np.zeros(robot.dof)
    for height in (np.inf, [0.0, -np.inf], np.array([[0.0, np.inf]])):
        with pytest.raises(
            lw.LinkwiseError, match=r"ground_height: expected finite numbers, got .*no ground"
        ):
            robot.contact_step(*state, ground_height=height)
        with pytest.raises(lw.LinkwiseError, match="ground_height"):
            robot.contact_gaps(robot.neutral, ground_height=height)
    with pytest.raises(lw.LinkwiseError, match="contact_friction: expected finite numbers from 0 on"):
        robot.contact_step(*state, contact_friction=np.inf)
