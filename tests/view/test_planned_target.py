"""Planning on the page: a target is dragged, the plan is shown and can be played."""

import socket

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, Clearance, Room

pages = pytest.importorskip("linkwise.view.page")
pytest.importorskip("viser")


def test_a_dragged_target_gives_a_plan_around_a_box():
    robot = lw.load("ur10e")
    box = Box((0.5, -0.1, 0.0), (0.9, 0.1, 0.9))
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    page = pages.serve(robot, port=port, clearance=Clearance(robot, Room(floor=-0.3, forbidden=[box])))
    try:
        tab = next(tab for tab in page.tabs if tab.title == "Motion")
        planned = tab.planned
        start, there = (
            np.array([0.8, -1.2, 1.5, -1.8, -1.5, 0.0]),
            np.array([-0.8, -1.2, 1.5, -1.8, -1.5, 0.0]),
        )
        page.pose(start)
        planned.on.value = True
        planned.switch()
        goal = robot.pose(there)
        planned.dragged(goal[:3, 3], pages_quaternion(goal[:3, :3]))
        found = planned.found
        assert found, found.message
        t = np.linspace(0.0, found.motion.duration, 500)
        moved = found.motion.at(t).q
        assert np.allclose(moved[0], start, atol=1e-9)
        assert np.allclose(robot.pose(moved[-1]), goal, atol=1e-5)
        assert not robot.in_collision(moved, [box]).any()
        assert tab.recording is not None
        assert tab.recording.duration == pytest.approx(found.motion.duration, abs=0.02)
        assert planned.line is not None
        assert "kept" in planned.says.content
        planned.dragged([50.0, 0.0, 0.0], planned.handle.wxyz)
        assert "goal unreachable" in planned.says.content
        planned.dragged([np.nan] * 3, planned.handle.wxyz)  # ignored
        planned.on.value = False
        planned.switch()
        assert planned.handle is None
        assert planned.line is None
    finally:
        page.close()


def pages_quaternion(rotation):
    from linkwise.view.scene import quaternion

    return quaternion(rotation)
