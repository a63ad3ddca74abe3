"""The page with floating bases, ball joints and joints that follow others; sliders for orientations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import Joint, Link, Robot
from linkwise.model.joint import Mimic
from linkwise.view import dials
from linkwise.view import page as pages
from strategies import body

viser = pytest.importorskip("viser")


def walker() -> Robot:
    rng = np.random.default_rng(2)
    hip = lw.Transform.from_rpy((0.3, 0.0, 0.0))
    joints = [
        Joint("shoulder", "ball", "trunk", "upper", hip),
        Joint("elbow", "revolute", "upper", "lower", lw.Transform.from_rpy((0.0, 0.0, -0.4))),
        Joint("finger", "revolute", "lower", "tip", hip, mimic=Mimic("elbow", -0.5, 0.1, True)),
    ]
    links = [Link(name, body(rng)) for name in ("trunk", "upper", "lower", "tip")]
    return Robot("walker", links, joints).with_base("floating")


def linkage() -> Robot:
    """Crank, coupler and rocker in a loop."""
    rng = np.random.default_rng(3)
    names = ("crank", "coupler", "rocker")
    places = {"crank": ("base", 0.0), "coupler": ("crank", 0.2), "rocker": ("base", 0.5)}
    joints = [
        Joint(name, "revolute", parent, name, lw.Transform.from_rpy((x, 0.0, 0.0)))
        for name, (parent, x) in places.items()
    ]
    loop = lw.Point("coupler", "rocker", position=(0.4, 0.0, 0.0), offset=(0.5, 0.0, 0.0))
    robot = Robot("linkage", [Link("base"), *(Link(name, body(rng)) for name in names)], joints)
    return robot.with_constraints([loop], passive=["coupler", "rocker"])


@pytest.fixture(scope="module")
def page():
    with_page = pages.serve(walker(), port=0)
    yield with_page
    with_page.close()


def test_sliders_and_positions_are_the_same_thing():
    robot = walker()
    assert [dial.name for dial in dials.dials_of(robot)] == [
        *(
            "root_joint x",
            "root_joint y",
            "root_joint z",
            "root_joint roll",
            "root_joint pitch",
            "root_joint yaw",
        ),
        *("shoulder roll", "shoulder pitch", "shoulder yaw", "elbow"),
    ]
    q = robot.random(np.random.default_rng(0))
    back = dials.positions(robot, dials.values_of(robot, q))
    np.testing.assert_allclose(robot.difference(q, back), 0.0, atol=1e-9)
    turned = dials.positions(robot, np.array([0, 0, 0, 0.2, 0.3, 0.4, 0, 0, 0, 0]))
    wanted = lw.Transform.from_rpy((0, 0, 0), (0.2, 0.3, 0.4)).rotation
    np.testing.assert_allclose(robot.pose(turned, "trunk")[:3, :3], wanted, atol=1e-12)


def test_a_slider_turns_the_base_and_every_body_with_it(page):
    robot, (joints, *_) = page.robot, page.tabs
    assert [tab.title for tab in page.tabs] == ["Joints", "Code", "Show"]
    joints.go("zero")
    joints.sliders[0].value, joints.sliders[4].value = 250.0, 30.0
    joints.slid(4, 180 / np.pi)
    q = page.live.q
    np.testing.assert_allclose(robot.pose(q, "trunk")[:3, 3], (0.25, 0.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(dials.values_of(robot, q)[4], np.radians(30.0), atol=1e-12)
    for node, joint in zip(page.scene.bodies, robot.moving_joints, strict=True):
        np.testing.assert_allclose(node.position, robot.pose(q, joint.child)[:3, 3], atol=1e-6)
    assert page.bars.content.count("data-torque") == robot.dof
    assert "root_joint.wx" in page.bars.content
    joints.go("random")
    shown = np.array(
        [slider.value / dial.unit for dial, slider in zip(joints.dials, joints.sliders, strict=True)]
    )
    off = robot.difference(dials.positions(robot, shown), page.live.q)
    assert np.abs(off).max() < 5e-3  # sliders have steps of 0.1


def test_the_base_is_dragged_to_a_pose(page):
    joints = page.tabs[0]
    joints.drag.value = True
    joints.show_handle()
    q = joints.reach(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.0, 0.0, 1.0]))
    pose = page.robot.pose(q, "trunk")
    np.testing.assert_allclose(pose[:3, 3], (0.1, 0.2, 0.3), atol=1e-12)
    np.testing.assert_allclose(pose[:3, :3], np.diag((-1.0, -1.0, 1.0)), atol=1e-12)
    joints.drag.value = False
    joints.show_handle()


def test_followers_of_an_arm_move_on_the_page():
    arm = lw.planar_chain(3)
    joints = [
        replace(joint, mimic=Mimic("joint1", 2.0, 0.1, True)) if joint.name == "joint3" else joint
        for joint in arm.joints
    ]
    robot = Robot("follower", arm.links, joints, gravity=arm.gravity)
    page = pages.serve(robot, port=0)
    try:
        page.pose(np.array([0.3, -0.2]))
        for node, joint in zip(page.scene.bodies, robot.moving_joints, strict=True):
            np.testing.assert_allclose(node.position, robot.pose(page.live.q, joint.child)[:3, 3], atol=1e-6)
    finally:
        page.close()


def test_loops_are_closed_on_the_page():
    page = pages.serve(linkage(), port=0)
    try:
        assert [tab.title for tab in page.tabs] == ["Joints", "Code", "Show"]
        joints = page.tabs[0]
        joints.sliders[0].value = 40.0
        joints.slid(0, 180 / np.pi)
        assert np.abs(page.robot.constraint_errors(page.live.q)).max() < 1e-9
        assert page.live.q[0] == pytest.approx(np.radians(40.0), abs=0.3)
        assert len(page.scene.groups["constraints"]) == 2
    finally:
        page.close()


def test_the_camera_follows_a_floating_base(page):
    page.pose(np.array([9.0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0]))
    assert page._watched[0] == pytest.approx(9.0, abs=1.5)
