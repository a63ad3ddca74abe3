"""The page without a browser: what its server holds, and what its controls do."""

import itertools
import re
import socket
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, needed
from linkwise.view import page as pages

viser = pytest.importorskip("viser")


@pytest.fixture(scope="module")
def page():
    with_page = pages.serve(lw.load("puma560"), port=free_port())
    yield with_page
    with_page.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def tab(page, title):
    return next(tab for tab in page.tabs if tab.title == title)


def torques(page) -> np.ndarray:
    return np.array([float(x) for x in re.findall(r'data-torque="([^"]*)"', page.bars.content)])


def test_bars_are_the_gravity_torques(page):
    q = np.array([0.1, 0.5, -1.0, 0.3, 0.4, 0.0])
    page.pose(q)
    np.testing.assert_allclose(torques(page), page.robot.gravity_torques(q), rtol=1e-4, atol=1e-5)


def test_a_slider_moves_the_arm_and_the_bars(page):
    page.pose(np.zeros(6))
    before = torques(page), np.array(page.scene.bodies[-1].position)
    joints = tab(page, "Joints")
    joints.sliders[1].value = 57.3
    joints.slid(1, 180 / np.pi)
    assert page.live.q[1] == pytest.approx(np.radians(57.3))
    assert not np.allclose(torques(page), before[0])
    assert not np.allclose(page.scene.bodies[-1].position, before[1])


def test_bodies_are_put_where_they_belong(page):
    q = np.array([0.3, -0.5, 1.0, 0.3, 0.4, 2.0])
    page.pose(q)
    for node, joint in zip(page.scene.bodies, page.robot.moving_joints, strict=True):
        pose = page.robot.pose(q, joint.child)
        np.testing.assert_allclose(node.position, pose[:3, 3], atol=1e-6)
        np.testing.assert_allclose(lw.compat.matrix_from_quaternion(node.wxyz), pose[:3, :3], atol=1e-6)


def test_a_load_makes_the_torques_larger(page):
    page.pose(np.zeros(6))
    light = np.abs(torques(page)).max()
    page.carry(5.0)
    assert np.abs(torques(page)).max() > light
    assert page.scene.load.visible
    page.carry(0.0)
    assert not page.scene.load.visible


def test_dragging_the_tip(page):
    page.pose(np.array([0.2, 0.5, -2.0, 0.3, 0.4, 0.0]))
    joints = tab(page, "Joints")
    start = page.live.tip_pose()[:3, 3]
    q = joints.reach(start + [0.02, 0.05, -0.03], np.array([1.0, 0, 0, 0]))
    np.testing.assert_allclose(page.robot.pose(q)[:3, 3], start + [0.02, 0.05, -0.03], atol=1e-4)
    far = joints.reach(np.array([9.0, 9.0, 9.0]), np.array([1.0, 0, 0, 0]))
    assert np.isfinite(far).all()
    joints.drag.value = True
    joints.show_handle()
    assert joints.handle is not None
    joints.drag.value = False
    joints.show_handle()
    assert joints.handle is None


def test_playing_a_motion(page):
    page.pose(np.array([0.2, 0.5, -2.0, 0.3, 0.4, 0.0]))
    motion = tab(page, "Motion")
    motion.choose()
    recording = motion.recording
    assert recording is not None
    motion.show(recording.duration / 2)
    q, tau, _ = recording.at(recording.duration / 2)
    np.testing.assert_allclose(page.live.q, q)
    np.testing.assert_allclose(torques(page), tau, rtol=1e-4, atol=1e-5)
    assert "<svg" in motion.plot.picture.content
    motion.toggle()
    assert motion.player.playing
    time.sleep(0.3)
    motion.toggle()
    assert not motion.player.playing
    assert motion.player.moment > 0


def test_a_wrong_model_tracks_worse(page):
    control = tab(page, "Control")
    page.pose(np.array([0.2, 0.5, -2.0, 0.3, 0.4, 0.0]))
    worst = {}
    control.payload.value = 0.0
    heavy = [label for label in page.robot.parameter_labels if label.endswith(".m")][2]
    for wrong in ("nothing", heavy):
        control.wrong.value = wrong
        control.factor.value = 300.0
        found = control.simulated()
        worst[wrong] = np.abs(found.q - found.wanted).max()
    assert worst[heavy] > 10 * worst["nothing"]


@pytest.mark.parametrize("name", ["gravity_pd", "feed_forward", "passive", "integral_tracking"])
def test_every_controller_can_be_picked(page, name):
    from linkwise.view.tabs.control import controller

    law = controller(name, page.robot, 10.0)
    assert law.robot.dof == 6


def test_code_is_that_of_the_kernel(page):
    code = tab(page, "Code")
    code.function.value = "mass_matrix"
    code.chosen()
    kernel = page.robot.kernel("mass_matrix")
    assert f"<b>{kernel.operations.multiplications}</b> ×" in code.source.content
    assert "void mass_matrix(" in code.source.content.replace("&quot;", '"')


def test_a_busy_port_gives_another():
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        page = pages.serve(lw.load("two_link"), port=busy)
        assert page.port != busy
        page.close()


def test_served_to_this_machine_alone():
    page = pages.serve(lw.load("two_link"), port=free_port())
    with socket.socket(socket.AF_INET) as probe:
        probe.settimeout(1.0)
        probe.connect(("127.0.0.1", page.port))
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {
        "127.0.0.1"
    }
    for address in (a for a in addresses if not a.startswith("127.")):
        with socket.socket(socket.AF_INET) as probe:
            probe.settimeout(1.0)
            assert probe.connect_ex((address, page.port)) != 0, f"{address} answers"
    page.close()


@pytest.mark.parametrize("dof", [0, 1])
def test_small_robots(dof):
    robot = lw.load("two_link").lock({"joint1": 0.1})
    robot = robot if dof else robot.lock({"joint2": 0.1})
    page = pages.serve(robot, port=free_port())
    page.refresh()
    page.close()


def test_a_position_of_another_robot(page):
    with pytest.raises(lw.ShapeError, match=r"expected shape \(6,\), got \(7,\)"):
        page.pose(np.zeros(7))


@pytest.mark.parametrize("gravity", [(0, 0, 9.81), (0, -9.81, 0), (0, 0, 0)])
def test_any_gravity(gravity):
    page = pages.serve(lw.load("two_link").with_gravity(gravity), port=free_port())
    page.pose([0.1, 0.2])
    page.close()


def test_bad_port():
    with pytest.raises(lw.LinkwiseError, match="port"):
        pages.serve(lw.load("two_link"), port=70000)


def test_a_missing_extra_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install 'linkwise\[view\]'"):
        needed("no_such_package_at_all", "view")


def test_an_arm_without_mass_is_said_to_be_one_on_the_page():
    robot = lw.planar_chain(2)
    labels = [label for label in robot.parameter_labels if label.startswith("link2.")]
    shown = pages.serve(robot.with_parameters(dict.fromkeys(labels, 0.0)), port=free_port())
    try:
        assert "1 of 2 joints move no mass (joint2)" in tab(shown, "Joints").warning.content
    finally:
        shown.close()


def test_every_slider_and_field_says_its_unit(page):
    joints, motion, control = (tab(page, title) for title in ("Joints", "Motion", "Control"))
    for slider in (*joints.sliders, joints.load, joints.push.strength, motion.time, motion.speed):
        assert re.search(r"\[.+\]$", slider.label), slider.label
    for slider in (control.frequency, control.payload, control.factor):
        assert re.search(r"\[.+\]$", slider.label), slider.label


def test_the_control_tab_starts_with_a_change_that_shows(page):
    control = tab(pages.serve(page.robot, port=0), "Control")
    assert control.wrong.value == "nothing"
    assert control.payload.value > 0
    found = control.simulated()
    control.payload.value = 0.0
    assert (
        np.abs(found.q - found.wanted).max()
        > 10 * np.abs((known := control.simulated()).q - known.wanted).max()
    )
    control.page.close()


def test_a_force_on_a_link_changes_the_torques(page):
    q = np.array([0.2, 0.5, -2.0, 0.3, 0.4, 0.0])
    page.pose(q)
    push = tab(page, "Joints").push
    link = push.link.value = page.robot.moving_joints[3].child
    push.drag.value = True
    push.show()
    push.handle.position = push.origin() + np.array([0.1, 0.0, -0.2])
    push.pulled()
    force = page.live.force
    assert force @ np.array([0.1, 0.0, -0.2]) > 0
    wanted = page.robot.gravity_torques(q) - page.robot.jacobian(q, link)[3:].T @ force
    np.testing.assert_allclose(torques(page), wanted, rtol=1e-4, atol=1e-5)
    assert "against gravity and the force" in page.bars.content
    push.drag.value = False
    push.show()
    np.testing.assert_allclose(torques(page), page.robot.gravity_torques(q), rtol=1e-4, atol=1e-5)


def test_one_handle_at_a_time(page):
    """Handles of the tip and of a force on the last link would be at the same place."""
    joints = tab(page, "Joints")
    joints.drag.value = True
    joints.show_handle()
    assert joints.handle is not None
    joints.push.drag.value = True
    joints.push.show()
    assert joints.push.handle is not None
    assert joints.handle is None
    assert not joints.drag.value
    joints.drag.value = True
    joints.show_handle()
    assert joints.handle is not None
    assert joints.push.handle is None
    assert page.live.pushed is None
    assert len(page.handles) >= 2
    joints.drag.value = False
    joints.show_handle()


def test_robots_side_by_side():
    arm = lw.load("two_link")
    heavier = arm.with_payload(2.0)
    page = pages.serve(arm, port=0, others=[heavier, lw.planar_chain(3)])
    try:
        page.pose([0.4, -0.7])
        same, other = page.others
        np.testing.assert_allclose(same.live.q, [0.4, -0.7])
        assert f'data-torque="{heavier.gravity_torques([0.4, -0.7])[0]:.6g}"' in same.bars.content
        assert "two_link: gravity torques" in page.bars.content
        assert other.live.q.shape == (3,)  # has no place for two numbers
        boxes = [page.scene.box(page.live.q), *(each.scene.box(each.live.q) for each in page.others)]
        for (_, high), (low, _) in itertools.pairwise(boxes):
            assert high[1] < low[1]
    finally:
        page.close()


def test_ellipsoids_are_smaller_than_the_robot_and_explained():
    from linkwise.view import parts

    robot = lw.load("panda")
    found = [part for part in parts.mass_parts(robot, 1.2) if part.group == "ellipsoids"]
    assert max(np.ptp(part.mesh.vertices, axis=0).max() for part in found) <= 0.2 * 1.2 + 1e-9
    label, _ = parts.group_labels(robot, 1.2, False)["ellipsoids"]
    assert f"at {parts.ellipsoid_scale(robot, 1.2):.0%} of their size" in label


def test_a_phone_sees_the_robot_above_the_panel(page):
    import types

    wide, narrow = (
        types.SimpleNamespace(camera=types.SimpleNamespace(aspect=aspect)) for aspect in (1.6, 0.46)
    )
    page._fit_phone(wide)
    assert vars(wide.camera) == {"aspect": 1.6}  # as it was
    page._fit_phone(narrow)
    assert narrow.camera.look_at @ page.up < page._watched @ page.up
    assert np.linalg.norm(narrow.camera.position - narrow.camera.look_at) > 2 * np.linalg.norm(page._away)


def test_the_floor_of_a_dark_page_is_dark(page):
    page.darken(True)
    assert max(page._floor.cell_color) < 100
    page.darken(False)
    assert min(page._floor.cell_color) > 200
