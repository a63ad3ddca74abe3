"""Keyframes of MJCF files as positions to begin with: in the robot's coordinates, as MuJoCo reads them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.geometry.keyframes import keyframe_position
from linkwise.geometry.posture import bent_position, first_position

LINK = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.02 0.02 0.01"/>'
FILE = f"""<mujoco><default><default class="socket"><joint type="ball"/></default></default>
<worldbody><body name="trunk" pos="0 0 1">
  <body name="arm" pos="0.3 0 0" childclass="socket"><joint name="shoulder"/>{LINK}
    <frame pos="0 0 0.2"><body name="hand"><joint name="wrist" type="hinge" axis="1 0 0"/>{LINK}</body></frame>
  </body>
  <freejoint/>{LINK}
  <body name="tail" pos="-0.3 0 0"><joint name="swing" type="slide" axis="0 1 0"/>{LINK}
    <body name="end" pos="0 0 0.1"><joint name="follower" axis="0 1 0"/>{LINK}</body></body>
</body></worldbody>
<equality><joint joint1="follower" joint2="swing" polycoef="0 2 0 0 0"/></equality>
<keyframe><key name="crouch" qpos="0 0 0.5 1 0 0 0 1 0 0 0 0 0 0"/>
  <key name="Home pose" qpos="0.1 0.2 0.9 0.5 0.5 0.5 0.5 0.6 0 0.8 0 0.7 -0.2 -0.4"/></keyframe></mujoco>"""


def test_a_keyframe_is_where_mujoco_puts_it(tmp_path):
    """The one called home; joints of a body before those that it carries, types from classes, followers left out."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "creature.xml").write_text(FILE)
    (tmp_path / "scene.xml").write_text('<mujoco><include file="creature.xml"/></mujoco>')
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "creature.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    mujoco.mj_kinematics(model, data)
    for name in ("creature.xml", "scene.xml"):
        robot = lw.load(tmp_path / name)
        q = first_position(robot)
        for link in ("trunk", "arm", "hand", "tail", "end"):
            np.testing.assert_allclose(robot.pose(q, link)[:3, 3], data.body(link).xpos, atol=1e-12)
    assert keyframe_position(robot.lock({"wrist": 0.0})) is not None  # of the joints that are left


def test_files_without_a_keyframe_that_fits_are_bent(tmp_path):
    for qpos in ("0 0 1", "0 0 0.5 1 0 0 0 1 0 0 0 0 0 no"):
        key = f'<keyframe><key qpos="{qpos}"/></keyframe></mujoco>'
        (tmp_path / "creature.xml").write_text(FILE[: FILE.index("<keyframe>")] + key)
        robot = lw.load(tmp_path / "creature.xml")
        assert keyframe_position(robot) is None
        np.testing.assert_array_equal(first_position(robot), bent_position(robot))
    assert keyframe_position(lw.load("panda")) is None
