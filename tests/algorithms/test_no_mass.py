"""Robots whose moving links have no mass: momentum is zero, and there is no centre of mass."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.model import LABELS

MOMENTA = {"centroidal_matrix": 1, "centroidal_momentum": 2, "centroidal_bias": 2}
CENTRES = {"center_of_mass": 1, "com_jacobian": 1}


def without_mass(name: str) -> lw.Robot:
    """A bundled robot whose links have neither mass nor moments of inertia."""
    robot = lw.load(name)
    labels = [label for label in robot.parameter_labels if label.rsplit(".", 1)[-1] in LABELS]
    return robot.with_parameters(dict.fromkeys(labels, 0.0))


def test_every_bundled_robot_without_mass_has_no_momentum_and_says_so():
    for name in lw.robots():
        robot = without_mass(name)
        state = (robot.neutral, np.ones(robot.dof))
        for function, count in MOMENTA.items():
            values = getattr(robot, function)(*state[:count])
            assert np.array_equal(values, np.zeros_like(values)), (name, function)
        for function, count in CENTRES.items():
            with pytest.raises(lw.ModelError, match="no mass"):
                getattr(robot, function)(*state[:count])


def test_robots_without_joints_have_no_momentum():
    robot = lw.load("panda")
    fixed = robot.lock(dict.fromkeys(robot.joint_names, 0.0))
    none = np.zeros(0)
    assert fixed.centroidal_matrix(none).shape == (6, 0)
    assert np.array_equal(fixed.centroidal_momentum(none, none), np.zeros(6))
    assert np.array_equal(fixed.centroidal_bias(none, none), np.zeros(6))
    with pytest.raises(lw.ModelError, match="no joint of panda moves"):
        fixed.center_of_mass(none)


def test_momentum_of_links_with_inertia_but_without_mass(tmp_path):
    """The linear momentum is zero, so the angular momentum is the same about every point."""
    file = tmp_path / "wheel.urdf"
    file.write_text(
        """<robot name="wheel"><link name="base"/><link name="rim"><inertial><mass value="0"/>
        <inertia ixx="1" iyy="1" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="axle" type="continuous"><parent link="base"/><child link="rim"/><axis xyz="0 0 1"/>
        <origin xyz="1 2 3"/></joint></robot>"""
    )
    wheel = lw.load(file)
    assert np.allclose(wheel.centroidal_momentum([0.3], [2.0]), [0.0, 0.0, 4.0, 0.0, 0.0, 0.0])
