"""Read a URDF file, look at what is in it, change it, and save it again."""

import tempfile
from pathlib import Path

import numpy as np

import linkwise as lw

URDF = """
<robot name="crane">
  <link name="floor"/>
  <link name="mast"><inertial><origin xyz="0 0 0.5"/><mass value="8"/>
    <inertia ixx="0.7" ixy="0" ixz="0" iyy="0.7" iyz="0" izz="0.04"/></inertial></link>
  <link name="boom"><inertial><origin xyz="0.4 0 0"/><mass value="3"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial></link>
  <link name="hook"/>
  <joint name="turn" type="continuous"><parent link="floor"/><child link="mast"/><axis xyz="0 0 1"/></joint>
  <joint name="reach" type="prismatic"><parent link="mast"/><child link="boom"/><origin xyz="0 0 1"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.5" effort="100" velocity="1"/><dynamics damping="2" friction="0.5"/></joint>
  <joint name="hang" type="fixed"><parent link="boom"/><child link="hook"/><origin xyz="0.8 0 0"/></joint>
</robot>
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "crane.urdf"
    path.write_text(URDF)
    crane = lw.load(path)
    print(crane, "joints:", crane.joint_names, "frames:", crane.frame_names)

    # A fixed joint moves nothing, but its link stays a frame that can be asked for.
    where = crane.pose([np.pi / 2, 0.3], "hook")[:3, 3]
    print("the hook hangs at", where.round(3))

    # Turning while the boom is out pushes it further out: a Coriolis and centrifugal effect.
    print("velocity torques:", crane.velocity_torques([0.0, 0.3], [2.0, 0.0]).round(3))

    # Save and load again: the same robot, to the last bit.
    copy = Path(folder) / "copy.urdf"
    lw.save(crane, copy)
    assert lw.load(copy) == crane

    # What is wrong with a file is said in one line that names it.
    path.write_text(URDF.replace('<parent link="mast"/>', '<parent link="mst"/>'))
    try:
        lw.load(path)
    except lw.ModelError as error:
        print("refused:", str(error).split(": ", 1)[1])
    else:
        raise AssertionError("a joint without a parent was accepted")

assert np.allclose(where, [0, 1.1, 1])
assert crane.velocity_torques([0.0, 0.3], [2.0, 0.0])[1] < 0
