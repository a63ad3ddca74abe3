"""Feet of robots that walk: from the contacts of a robot, and from measured forces of a recording."""

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.identify.walking.choosing import recorded_flags
from linkwise.identify.walking.contacts import feet_of

ENDS = ("left", "right")


def standing():
    """A floating trunk with two legs of one joint; no frame is called after a foot."""
    solid = lw.Inertia.from_com(1.0, (0.0, 0.0, -0.1), np.diag([1e-2, 1e-2, 1e-2]))
    joints = [lw.Joint(end, "revolute", "trunk", f"{end}_leg", axis=(0, 1, 0)) for end in ENDS]
    links = [lw.Link("trunk", solid), *(lw.Link(f"{end}_leg", solid) for end in ENDS)]
    return lw.Robot("two legs", links, joints).with_base("floating")


def test_feet_are_the_contacts_with_the_ground():
    robot = standing()
    with pytest.raises(lw.LinkwiseError, match="its feet are not known"):
        feet_of(robot)
    corners = [(x, y, -0.3) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    touching = robot.with_contacts(
        [
            lw.Contact("trunk", radius=0.1),
            lw.Contact("left_leg", points=[(0.0, 0.02, -0.3)], radius=0.03),
            lw.Contact("right_leg", points=corners),
            lw.Shape.box("right_leg", (0.05, 0.05, 0.05)),
            lw.Contact("left_leg", "right_leg", radius=0.01),
        ]
    )
    left, right = feet_of(touching)  # the trunk is no foot, and one leg on the other is none
    assert (left.frame, left.offset, left.radius, left.area) == ("left_leg", (0.0, 0.02, -0.3), 0.03, False)
    assert (right.frame, right.area) == ("right_leg", True)


def test_measured_forces_tell_which_feet_touch():
    robot = standing()
    feet = feet_of(robot, ["left_leg:0,0,-0.3", "right_leg:0,0,-0.3"])
    t = np.arange(0.0, 1.0, 0.01)
    up = np.stack([30.0 * (t < 0.6), 30.0 * (t > 0.4)], axis=1) + 0.2
    truth = up > 1.0

    def flags(**recorded):
        log = SimpleNamespace(t=t, feet=(), **recorded)
        return recorded_flags(robot, SimpleNamespace(log=log, stamps=None, t=t[::2]), feet)

    for forces in (up, -up, np.stack([0.6 * up, 0.0 * up, 0.8 * up], axis=2).reshape(len(t), -1)):
        found, notes = flags(foot_forces=forces)
        assert (found == truth[::2]).all()
        assert notes == ["contacts: from measured forces"]
    found, notes = flags(contacts=np.ones((len(t), 3)), foot_forces=up)
    assert (found == truth[::2]).all()
    assert notes[0] == "contacts: 3 columns for 2 feet were not used"
    assert flags(foot_forces=np.ones((len(t), 5)))[0] is None
    assert (flags(contacts=truth * 7.0)[0] == truth[::2]).all()
