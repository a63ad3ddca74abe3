"""Robots that are equal but for their geometry, from other files or from a file that was written anew."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import spheres_of, validity_of

ROBOT = """<robot name="two"><link name="base"><collision><geometry><sphere radius="{0}"/></geometry></collision></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="{0}"/></geometry></collision></link><joint name="turn" type="revolute">
<parent link="base"/><child link="arm"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""


@pytest.mark.parametrize("names", [("one", "other"), ("one", "one")])
def test_other_geometry_gives_other_spheres(tmp_path, names):
    """They were the spheres of the file that was loaded first."""
    for name, radius in zip(names, (0.1, 0.3), strict=True):
        file = tmp_path / f"{name}.urdf"
        file.write_text(ROBOT.format(radius))
        robot = lw.load(file)
        assert np.allclose(spheres_of(robot).radius, radius, atol=2e-4)
        ball = lw.collision.Sphere((0.0, 0.0, 0.45), 0.2)
        assert validity_of(robot).in_collision([0.0], [ball]) == (radius > 0.25)


def test_the_same_geometry_is_covered_once(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(ROBOT.format(0.1))
    first, second = lw.load(file), lw.load(file)
    assert spheres_of(first) is spheres_of(second)
    assert validity_of(first) is validity_of(second)
