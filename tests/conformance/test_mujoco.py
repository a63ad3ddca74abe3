"""MJCF arms against MuJoCo itself: mj_inverse, mj_fullM and the frames of mj_kinematics."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco")

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
FILES = sorted((DATA / "mjcf").glob("*/*.xml"))
# why a file of the collection is refused: it describes no arm, or one with forces that are not modelled
NO_ARMS = ("not supported", "needs at least one", "no <inertial>, and the inertia of a mesh", "closed loops")
TOLERANCE = 1e-9  # relative; what is seen is round-off, 1e-14


def without_meshes(xml: str) -> str:
    """The files name meshes that are not there; inertias are stated, so nothing is lost."""
    xml = re.sub(r"<asset>.*?</asset>", "", xml, flags=re.DOTALL)
    return re.sub(r"<geom\b[^>]*/>", "", xml)


def agree(xml: str, *, for_mujoco: str | None = None, states: int = 8) -> lw.Robot:
    """Compare inverse dynamics (with damping), mass matrix and poses in random states; gives the robot
    back."""
    robot = lw.Robot.from_model(read_mjcf(xml.encode(), "arm.xml"))
    peer = mujoco.MjModel.from_xml_string(for_mujoco or xml)
    # friction loss, limits, contacts and equalities are constraints there
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(peer)
    n = peer.nv
    assert robot.dof == n
    names = [mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(n)]
    assert [
        mine if theirs is None else theirs for mine, theirs in zip(robot.joint_names, names, strict=True)
    ] == [*robot.joint_names]
    damping = np.array([joint.viscous_friction for joint in robot.moving_joints])
    np.testing.assert_allclose(damping, peer.dof_damping)
    rng = np.random.default_rng(0)
    for _ in range(states):
        q, qd, qdd = rng.normal(size=(3, n))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(peer, data)
        M = np.zeros((n, n))
        mujoco.mj_fullM(peer, data, M)
        close(robot.mass_matrix(q), M)
        close(robot.inverse_dynamics(q, qd, qdd, friction=False) + damping * qd, data.qfrc_inverse)
        for k in range(1, peer.nbody):
            name = mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_BODY, k)
            if name is not None:
                pose = robot.pose(q, name)
                close(pose[:3, 3], data.xpos[k], scale=1.0)
                close(pose[:3, :3].ravel(), data.xmat[k], scale=1.0)
        for k in range(peer.nsite):
            pose = robot.pose(q, mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_SITE, k))
            close(pose[:3, 3], data.site_xpos[k], scale=1.0)
            close(pose[:3, :3].ravel(), data.site_xmat[k], scale=1.0)
    return robot


def close(mine, theirs, scale=0.0):
    scale = max(scale, float(np.max(np.abs(theirs))), 1e-3)
    assert float(np.max(np.abs(mine - theirs))) <= TOLERANCE * scale


@pytest.mark.skipif(not FILES, reason=f"no MJCF files under {DATA}")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_arms_as_found_in_the_wild(path):
    xml = path.read_text()
    try:
        robot = agree(xml, for_mujoco=without_meshes(xml))
    except lw.ModelError as error:
        if any(reason in str(error) for reason in NO_ARMS):
            pytest.skip(f"not an arm that can be represented: {error}")
        raise
    print(f"{path.name}: {robot.dof} joints compared")


def arm(body: str, head: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{body}</worldbody></mujoco>"


SOLID = '<inertial pos=".1 .02 -.05" mass="2" diaginertia=".03 .04 .05" quat="1 .2 .3 .4"/>'
TOOL = '<site name="tool" pos="0 0 .2"/>'
TIP = f'<body name="tip" pos=".5 .1 0"><joint name="last" axis="1 0 1"/>{SOLID}{TOOL}</body>'

FEATURES = {
    "plain": arm(f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>'),
    "joint_pos": arm(
        f'<body name="a" pos=".1 .2 .3"><joint name="j" pos=".3 -.1 .2" axis="1 2 3"/>{SOLID}{TIP}</body>'
    ),
    "ref_in_degrees": arm(
        f'<body name="a"><joint name="j" ref="35" pos="0 .1 0" axis="0 1 1"/>{SOLID}{TIP}</body>'
    ),
    "ref_of_a_slide": arm(
        f'<body name="a"><joint name="j" type="slide" ref=".3" axis="0 2 1"/>{SOLID}{TIP}</body>'
    ),
    "several_joints": arm(
        '<body name="a" pos=".1 .2 .3"><joint name="j1" pos=".3 -.1 .2" axis="1 2 3" ref="-20"/>'
        '<joint name="j2" type="slide" axis="0 1 1" ref=".1" pos="5 5 5"/>'
        '<joint name="j3" pos="0 .1 .2" axis="0 1 0"/>'
        f'<joint name="j4" axis="1 0 0" pos="0 0 .1"/>{SOLID}{TIP}</body>'
    ),
    "several_joints_ending_in_the_origin": arm(
        f'<body name="a"><joint name="j1" pos="1 0 0"/><joint name="j2" axis="1 0 0"/>{SOLID}{TIP}</body>'
    ),
    "euler_degrees": arm(f'<body name="a" euler="10 -20 30"><joint name="j"/>{SOLID}{TIP}</body>'),
    "euler_extrinsic_radians": arm(
        f'<body name="a" euler=".1 -.2 .3"><joint name="j" ref=".2"/>{SOLID}{TIP}</body>',
        '<compiler angle="radian" eulerseq="XYZ"/>',
    ),
    "euler_mixed": arm(
        f'<body name="a" euler="10 -20 30"><joint name="j"/>{SOLID}{TIP}</body>', '<compiler eulerseq="zYx"/>'
    ),
    "axisangle": arm(
        f'<body name="a" axisangle="1 2 3 40"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>'
    ),
    "xyaxes": arm(f'<body name="a" xyaxes="1 1 0 0 1 1"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>'),
    "zaxis": arm(
        f'<body name="a" zaxis="1 -2 .5"><joint name="j"/>{SOLID}'
        f'<body name="b" zaxis="0 0 -1" pos="0 0 1"><joint name="k" axis="1 0 0"/>{SOLID}{TIP}</body></body>'
    ),
    "quat_of_any_length": arm(f'<body name="a" quat="1 -1 0 0"><joint name="j"/>{SOLID}{TIP}</body>'),
    "full_inertia": arm(
        '<body name="a"><joint name="j" axis="1 1 0"/>'
        f'<inertial pos=".1 .2 .3" mass="2" fullinertia=".3 .4 .5 .01 .02 .03"/>{TIP}</body>'
    ),
    "default_classes": arm(
        f'<body name="a" childclass="x"><joint name="j"/>{SOLID}'
        f'<body name="b" pos=".3 0 0"><joint name="k" class="y"/>'
        f'{SOLID}<body name="c" pos="0 .3 0"><joint name="l" class="main" axis="1 0 0"/>'
        f"{SOLID}{TIP}</body></body></body>",
        '<default><joint damping=".5" armature=".1"/><default class="x"><joint axis="0 1 0" damping="2"/>'
        '<default class="y"><joint type="slide" armature=".3"/></default></default></default>',
    ),
    "frames": arm(
        '<frame pos="1 2 3" euler="10 20 30"><body name="a" pos=".1 0 0" euler="0 5 0">'
        '<frame pos="0 .1 .2" euler="30 0 0" childclass="x">'
        '<joint name="j" pos=".2 0 0"/><site name="s" pos="1 0 0"/>'
        f'<frame euler="0 40 0"><body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body></frame></frame>'
        f"{SOLID}</body></frame>",
        '<default><default class="x"><joint axis="0 1 0" damping="2"/></default></default>',
    ),
    "bodies_without_joints": arm(
        f'<body name="base" pos="0 0 1" euler="90 0 0">{SOLID}<geom type="mesh" mesh="m"/><body name="a">'
        f'<joint name="j" axis="1 1 0"/>{SOLID}<body name="t" pos=".1 .2 .3" quat=".3 .4 .5 .6">'
        f"{SOLID}{TIP}</body></body></body>"
    ),
    "branches": arm(
        f'<body name="a"><joint name="j"/>{SOLID}<body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body>'
        f"{TIP}</body>"
        f'<body name="c" pos="0 1 0"><joint name="l" axis="0 1 0"/>{SOLID}</body>'
    ),
    "names_left_out": arm(
        f"<body><joint/>{SOLID}<body><joint axis='1 0 0'/><joint axis='0 1 0'/>{SOLID}</body></body>"
    ),
    "other_gravity": arm(
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>', '<option gravity="1 2 -3"/>'
    ),
    "no_gravity": arm(
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>', '<option><flag gravity="disable"/></option>'
    ),
    "mocap_and_world_geoms": arm(
        f'<geom type="plane" size="1 1 1"/><body name="m" mocap="true"><geom size=".1"/></body>'
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>'
    ),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_feature(feature):
    xml = FEATURES[feature]
    agree(xml, for_mujoco=re.sub(r'<geom type="mesh"[^>]*/>', "", xml))


GEOMS = {
    "sphere": '<geom size=".1" pos=".1 0 .2"/>',
    "capsule": '<geom type="capsule" size=".1 .3" pos=".1 0 .2" euler="10 20 30"/>',
    "cylinder": '<geom type="cylinder" size=".1 .3" mass="3" pos=".1 0 .2" euler="10 20 30"/>',
    "box": '<geom type="box" size=".1 .3 .2" density="500" pos=".1 0 .2" euler="10 20 30"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".1 .3 .2" pos=".1 0 .2" euler="10 20 30"/>',
    "without_mass": '<geom size=".1"/><geom size=".2" group="6"/><geom size=".2" mass="0" pos="1 1 1"/>',
    "capsule_fromto": '<geom type="capsule" size=".1" fromto="0 0 0 .3 .4 .5"/>',
    "box_fromto": '<geom type="box" size=".1 .2" fromto=".1 .2 .3 .3 .4 .5"/>',
    "several": '<geom type="box" size=".1 .2 .3"/>'
    '<frame euler="0 30 0" pos="0 0 .3"><geom size=".1" pos=".1 0 0"/></frame>',
    "class": '<geom class="heavy" size=".1 .2"/>',
}


@pytest.mark.parametrize("geom", GEOMS)
def test_inertia_from_geoms(geom):
    head = '<default><default class="heavy"><geom type="cylinder" density="7800"/></default></default>'
    body = f'<body name="a"><joint name="j" axis="1 2 3"/>{GEOMS[geom]}{TIP}</body>'
    agree(arm(body, head))


def test_inertia_from_geoms_only_where_there_are_some():
    inner = f'<body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body>'
    body = f'<body name="a"><joint name="j"/>{SOLID}<geom type="box" size=".1 .2 .3"/>{inner}</body>'
    agree(arm(body, '<compiler inertiafromgeom="true"/>'))
