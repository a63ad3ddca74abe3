"""A limit of speed or effort that a file states as 0 is no limit, everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.cli.inverse import _broken_limits
from linkwise.identify.excitation.limits import MotionLimits
from linkwise.model.joint import Limits
from linkwise.realtime.limits import joint_limits
from linkwise.report import sections
from linkwise.simulate import simulate
from linkwise.study.steps.formula import constants

URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="{effort}" velocity="{velocity}"/></joint></robot>"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "r.urdf"
    path.write_text(URDF.format(effort="0", velocity="0"))
    return lw.load(path)


def test_the_one_meaning_of_zero():
    assert Limits(effort=0.0).largest_effort == np.inf
    assert Limits(effort=-1.0).largest_effort == np.inf
    assert Limits(effort=2.5).largest_effort == 2.5
    assert Limits(velocity=0.0).largest_velocity == np.inf
    assert Limits(velocity=1.5).largest_velocity == 1.5


def test_the_file_keeps_what_it_says(robot, tmp_path):
    assert (robot.moving_joints[0].limits.effort, robot.moving_joints[0].limits.velocity) == (0.0, 0.0)
    lw.save(robot, tmp_path / "again.urdf")
    assert lw.load(tmp_path / "again.urdf").moving_joints[0].limits == robot.moving_joints[0].limits


def test_controllers_and_simulations(robot):
    law = control.named("computed_torque", robot, frequency=10.0)
    assert law.torque_limits.tolist() == [np.inf]
    found = simulate(robot, law, [0.5], duration=2.0, q=[0.0])
    assert abs(found.error[-1, 0]) < 1e-3
    assert np.abs(found.tau).max() > 1.0
    by_hand = simulate(robot, lambda t, q, qd, r: np.array([50.0]), duration=0.002, q=[0.0])
    assert (by_hand.tau == 50.0).all()


def test_motion_limits(robot):
    move = motion.quintic([0.0], [1.0], 0.5)
    assert motion.check(move, robot, torque=True) == []
    with pytest.raises(ValueError, match="no limit bounds the speed"):
        motion.fastest(move, robot)


def test_real_time(robot):
    found = joint_limits(robot, None, simulated=True)
    assert found["effort"].tolist() == found["speed"].tolist() == [np.inf]


def test_reports_studies_identification_and_the_command_line(robot):
    t, tau = np.linspace(0, 1, 5), np.full((5, 1), 7.0)
    (row,) = sections.torques(robot, t, tau).parts[-1].rows
    assert row == ["j", "7", "7", "N·m"]  # no limit, no share of it
    known = constants(robot)
    assert known["effort_limit"].tolist() == known["velocity_limit"].tolist() == [np.inf]
    limits = MotionLimits.of(robot)
    assert np.isinf(limits.torque).all()
    assert np.isfinite(limits.velocity).all()

    class Motion:
        q, qd = np.zeros((5, 1)), np.full((5, 1), 3.0)

    Motion.t = t
    assert _broken_limits(robot, Motion, tau) == []
