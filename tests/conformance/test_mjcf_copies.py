"""Names, tendons and equalities of <replicate> and <attach> beside those of MuJoCo's compiler."""

import itertools

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf

mujoco = pytest.importorskip("mujoco")

BODY = """<body name="b" pos="0 0 .1"><joint name="j"/><geom size=".1"/><site name="s"/>
  <body name="b2" pos="0 .1 0"><joint name="j2" axis="1 0 0"/><geom size=".1"/></body></body>"""
OTHER = '<body name="k"><joint name="jk"/><geom size=".1"/></body>'
CHILD = f"""<mujoco model="child"><default><default class="cc"><joint damping="2"/></default></default><worldbody>
  <frame name="fr" pos="0 0 1" euler="0 30 0">{BODY}<site name="sf"/></frame>
  <body name="o"><joint name="jo" axis="0 1 0"/><geom size=".1"/></body></worldbody>
  <tendon><fixed name="t" damping="3"><joint joint="j" coef="1"/><joint joint="j2" coef="2"/></fixed>
  <fixed name="to" stiffness="3"><joint joint="jo" coef="1"/></fixed></tendon>
  <equality><joint joint1="j" joint2="j2" name="e"/></equality></mujoco>"""
FIXED = """<tendon><fixed name="t" damping="{d}"><joint joint="j" coef="1"/><joint joint="{o}" coef="2"/></fixed>
  </tendon>"""
TAILS = (
    "",
    '<equality><joint joint1="j" joint2="j2" name="e"/></equality>',
    '<equality><joint joint1="j" joint2="jk"/></equality>',
    '<equality><connect body1="b2" anchor="0 0 0"/></equality>',
    '<equality><weld body1="b" body2="b2"/></equality>',
    FIXED.format(d=1, o="j2"),
    FIXED.format(d=1, o="jk"),
    FIXED.format(d=0, o="j2") + '<equality><tendon tendon1="t"/></equality>',
)
COPIES = (
    '<replicate count="2" sep="-" offset="1 0 0">{body}</replicate>',
    '<replicate count="11" offset="1 0 0" euler="0 0 10">{body}</replicate>',
    '<replicate count="2" sep="-"><replicate count="2" sep="+" offset="0 1 0">{body}</replicate></replicate>',
)
ATTACHED = (
    '<attach model="child" body="b" prefix="x_"/>',
    '<attach model="child" prefix="x_"/>',
    '<attach model="child" frame="fr" prefix="x_"/>',
    '<frame pos="1 2 3" euler="10 0 0"><attach model="child" frame="fr" prefix="x_"/></frame>',
    '<attach model="child" body="b" prefix="x_"/><attach model="child" body="o" prefix="y_"/>',
    '<replicate count="2" offset="1 0 0" sep="-"><attach model="child" body="b" prefix="x_"/></replicate>',
)


def compare(robot: lw.Robot, peer) -> None:
    """Names, poses of bodies at rest, damping, tendons and equalities."""
    kinds = mujoco.mjtObj
    names = {
        kind: [mujoco.mj_id2name(peer, kind, k) for k in range(count)]
        for kind, count in ((kinds.mjOBJ_BODY, peer.nbody), (kinds.mjOBJ_JOINT, peer.njnt))
    }
    names[kinds.mjOBJ_SITE] = [mujoco.mj_id2name(peer, kinds.mjOBJ_SITE, k) for k in range(peer.nsite)]
    bare = robot.with_motors(()) if robot.motors else robot
    assert list(bare.link_names) == names[kinds.mjOBJ_BODY]
    assert [joint.name for joint in bare.moving_joints] == names[kinds.mjOBJ_JOINT]
    assert sorted(frame.name for frame in bare.frames) == sorted(names[kinds.mjOBJ_SITE])
    data = mujoco.MjData(peer)
    mujoco.mj_kinematics(peer, data)
    poses = {robot.base: lw.Transform.identity()}
    for joint in bare.joints:
        poses[joint.child] = poses[joint.parent] @ joint.motion(0.0)
    for k, name in enumerate(names[kinds.mjOBJ_BODY]):
        np.testing.assert_allclose(poses[name].translation, data.xpos[k], atol=1e-12)
    np.testing.assert_allclose([j.viscous_friction for j in bare.moving_joints], peer.dof_damping)
    acting = [
        mujoco.mj_id2name(peer, kinds.mjOBJ_TENDON, k)
        for k in range(peer.ntendon)
        if peer.tendon_damping.reshape(peer.ntendon, -1)[k, 0]
        or peer.tendon_stiffness.reshape(peer.ntendon, -1)[k, 0]
    ]
    assert sorted(motor.name for motor in robot.motors) == sorted(acting)
    related = sum(joint.mimic is not None for joint in bare.joints)
    assert related + len(robot.constraints) == peer.neq


@pytest.mark.parametrize(("copies", "tail"), list(itertools.product(COPIES, TAILS)))
def test_copies(copies, tail):
    xml = f"<mujoco><worldbody>{OTHER}{copies.format(body=BODY)}</worldbody>{tail}</mujoco>"
    model = read_mjcf(xml.encode(), "arm.xml")
    compare(lw.Robot.from_model(model), mujoco.MjModel.from_xml_string(xml))


@pytest.mark.parametrize("attached", ATTACHED)
@pytest.mark.parametrize("name", ['name="child" ', ""])
def test_attached_models(attached, name, tmp_path):
    (tmp_path / "child.xml").write_text(CHILD)
    path = tmp_path / "arm.xml"
    path.write_text(
        f"""<mujoco><asset><model {name}file="child.xml"/></asset><worldbody>
        <body name="k"><joint name="jk"/><geom size=".1"/>{attached}</body></worldbody></mujoco>"""
    )
    compare(lw.load(path, mimic="independent"), mujoco.MjModel.from_xml_path(str(path)))


def test_options_of_an_attached_model_are_not_merged(tmp_path):
    """MuJoCo would take its gravity."""
    (tmp_path / "child.xml").write_text(CHILD.replace("<default>", '<option gravity="0 0 -1"/><default>', 1))
    (tmp_path / "arm.xml").write_text(
        """<mujoco><compiler conflict="merge"/><asset><model name="child" file="child.xml"/></asset>
        <worldbody><attach model="child" body="b" prefix="x_"/></worldbody></mujoco>"""
    )
    with pytest.raises(lw.ModelError, match="not merged"):
        lw.load(tmp_path / "arm.xml")


@pytest.mark.parametrize("rule", ["", 'inertia="exact"', 'inertia="shell"'])
def test_an_obj_file_without_faces_is_its_hull(rule, tmp_path):
    (tmp_path / "p.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 1 1\nv .3 .3 .3\n")
    path = tmp_path / "arm.xml"
    path.write_text(
        f'<mujoco><asset><mesh name="p" file="p.obj" {rule}/></asset><worldbody><body name="b"><joint/>'
        '<geom type="mesh" mesh="p"/></body></worldbody></mujoco>'
    )
    peer, inertia = mujoco.MjModel.from_xml_path(str(path)), lw.load(path).links[1].inertia
    assert abs(inertia.mass - peer.body_mass[1]) < 1e-6 * inertia.mass
    np.testing.assert_allclose(inertia.com, peer.body_ipos[1], atol=1e-6)
