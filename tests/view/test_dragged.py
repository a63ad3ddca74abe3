"""Predictive control on the page: the arm follows a dragged target."""

import socket

import numpy as np
import pytest

import linkwise as lw

pages = pytest.importorskip("linkwise.view.page")
pytest.importorskip("viser")


@pytest.fixture(scope="module")
def dragged():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    page = pages.serve(lw.load("two_link"), port=port)
    yield next(tab for tab in page.tabs if tab.title == "Control").dragged
    page.close()


def test_the_arm_follows_the_target_at_its_limits(dragged):
    robot = dragged.page.robot
    dragged.page.pose(np.array([0.2, 0.4]))
    dragged.start()
    goal = robot.pose([0.5, 0.1])
    dragged.aim(goal[:3, 3], dragged.handle.wxyz)
    before = np.linalg.norm(robot.pose(dragged.q)[:3, 3] - goal[:3, 3])
    tau = dragged.advance(1.0)
    after = np.linalg.norm(robot.pose(dragged.q)[:3, 3] - goal[:3, 3])
    assert after < 0.2 * before
    assert np.isfinite(tau).all()
    dragged.aim([np.nan] * 3, dragged.handle.wxyz)  # ignored
    assert np.isfinite(dragged.advance(0.05)).all()
    dragged.stop()
    assert dragged.handle is None


def test_the_checkbox_starts_and_stops_the_thread(dragged):
    dragged.on.value = True
    dragged.switch()
    assert dragged._thread.is_alive()
    dragged.on.value = False
    dragged.switch()
    assert not dragged._thread.is_alive()
    assert dragged.handle is None
