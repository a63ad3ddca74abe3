"""Whole-body control on the page: a robot with feet stands while its trunk is dragged."""

import socket

import numpy as np
import pytest

import linkwise as lw
from four_legs import four_legs, round_feet
from linkwise.optimal.walking.feet import feet_of

pages = pytest.importorskip("linkwise.view.page")
pytest.importorskip("viser")


def quadruped() -> lw.Robot:
    return four_legs(straight=-0.5, lower=-2.6, upper=2.6, velocity=20.0, effort=40.0).with_contacts(
        round_feet()
    )


@pytest.fixture(scope="module")
def page():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    page = pages.serve(quadruped(), port=port)
    yield page
    page.close()


def test_the_trunk_follows_its_handle_while_the_feet_stay(page):
    body = next(tab for tab in page.tabs if tab.title == "Body").standing
    begin, robot = page.live.q, page.robot
    np.testing.assert_allclose(robot.contact_gaps(begin), 0.0, atol=1e-9)  # it stands from the start
    knees = [robot.joint_names.index(f"knee{leg}") + 6 for leg in range(4)]
    assert (begin[knees] < -0.5).all()
    body.start()
    feet = robot.contact_frames(begin)[:, :2, 3]
    weight = 9.81 * sum(link.inertia.mass for link in robot.links)
    body.aim(begin[:3] + [0.03, 0.02, -0.05], [np.cos(0.1), 0.0, 0.0, np.sin(0.1)])
    tau = body.advance(1.5)
    np.testing.assert_allclose(body.q[:3], begin[:3] + [0.03, 0.02, -0.05], atol=2e-3)
    assert abs(2.0 * np.arctan2(body.q[5], body.q[6]) - 0.2) < 0.01
    np.testing.assert_allclose(robot.contact_frames(body.q)[:, :2, 3], feet, atol=5e-3)
    forces = body.forces()[1]
    assert abs(forces[:, 2].sum() - weight) < 0.02 * weight
    assert (np.abs(tau[6:]) <= 40.0 + 1e-9).all()
    # what the legs do not reach: it goes there as far as it can stand
    body.aim(begin[:3] + [-2.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0])
    body.aim([np.nan] * 3, [1.0, 0.0, 0.0, 0.0])  # ignored
    body.advance(2.0)
    assert body.upright
    assert body.q[0] < begin[0] - 0.05
    assert body.q[2] > begin[2]
    np.testing.assert_allclose(robot.contact_frames(body.q)[:, :2, 3], feet, atol=1e-2)
    body.frame()
    assert "the ground carries" in body.says.content
    body.stop()
    assert body.handle is None


def test_a_trunk_that_may_touch_the_ground_is_no_foot():
    robot = quadruped()
    trunk = lw.Contact("body", radius=0.05, friction=0.5, name="trunk")
    touching = robot.with_contacts([trunk, *robot.contacts])
    stand = np.array([0.0, 0.6, -1.2] * 4)
    assert feet_of(touching, None, stand, 0.02).names == feet_of(robot, None, stand, 0.02).names
    with pytest.raises(lw.LinkwiseError, match="no contacts to take them from"):
        feet_of(robot.with_contacts([trunk]), None, stand, None)


def test_feet_may_be_contacts_of_frames():
    """A frame at the end of a leg is on its link: the same feet as contacts of the link with an offset."""
    robot = quadruped()
    at_frames = robot.with_contacts([lw.Contact(f"foot{leg}", radius=0.02) for leg in range(4)])
    corners = [(x, y, 0.0) for x in (-0.03, 0.04) for y in (-0.02, 0.02)]
    ends = [(x, y, -0.2) for x, y, _ in corners]
    soles = [robot.with_contacts([lw.Contact(f"foot{leg}", points=corners) for leg in range(4)])]
    soles.append(robot.with_contacts([lw.Contact(f"knee{leg}", points=ends) for leg in range(4)]))
    stand = np.tile([0.0, 0.4, -0.8], 4)
    for one, other in ((at_frames, robot), soles):
        found, wanted = (feet_of(each, None, stand, None) for each in (one, other))
        np.testing.assert_allclose(found.places, wanted.places, atol=1e-12)
        np.testing.assert_allclose(found.stand, wanted.stand, atol=1e-12)
