"""Scenes of robots and bodies in every form: kernels, batches, C, simulations, pages, the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.cli import main
from linkwise.compiler.ir import interpret
from linkwise.embedded import Options, Package
from linkwise.simulate import simulate
from linkwise.view import page_file

CREEP = 1e-11  # [m/s]
GRAVITY = 9.81
DOG = """<mujoco model="dog"><worldbody><geom name="floor" type="plane" size="5 5 .1" pos="0 0 .1"/>
<body name="trunk" pos="0 0 .3"><freejoint/><geom type="box" size=".2 .1 .05" mass="5" {trunk}/>{legs}</body>
</worldbody><contact>{contact}</contact></mujoco>"""
LEG = """<body name="leg{k}" pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0"/><geom name="foot{k}" {foot}/></body>"""
CAPSULE = 'type="capsule" fromto="0 0 0 0 0 -.25" size=".02" mass=".3" friction=".7"'


def pinch(friction: float = 0.8) -> tuple[lw.Robot, np.ndarray]:
    """Two fingers that hold a ball between them, and how it starts."""
    links = [lw.Link("stand")]
    joints = []
    for side, y in (("left", -1.0), ("right", 1.0)):
        links.append(lw.Link(side, lw.Inertia.from_com(0.05, (0, 0, 0), (2e-5, 2e-5, 2e-5))))
        place = lw.Transform.from_rpy((0, 0.06 * y, 0.3))
        joints.append(lw.Joint(f"{side}_joint", "prismatic", "stand", side, place, (0.0, -y, 0.0)))
    shapes = [lw.Shape.box(name, (0.03, 0.02, 0.03), friction=friction) for name in ("left", "right")]
    fingers = lw.Robot("fingers", links, joints).with_contacts(shapes)
    scene = lw.Scene(
        [fingers, lw.Body.box((0.04, 0.04, 0.04), mass=0.1, name="cube")],
        contacts=[lw.Contact("left", "cube"), lw.Contact("right", "cube")],
    )
    q = scene.neutral.copy()
    q[:5] = (0.03, 0.03, 0.0, 0.0, 0.3)
    return scene, q


def dog(foot: str = CAPSULE, trunk: str = "", contact: str = "") -> str:
    corners = ((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1))
    legs = "".join(LEG.format(k=k, x=x, y=y, foot=foot) for k, (x, y) in enumerate(corners))
    return DOG.format(legs=legs, trunk=trunk, contact=contact)


def test_what_is_gripped_does_not_creep_and_slips_where_friction_is_too_small():
    scene, q = pinch()
    squeeze = np.array([2.0, 2.0, *[0.0] * 6])  # holds 2 · 0.8 · 2 N > 0.98 N
    kernel = scene.kernel("contact_step", inputs=("contact_friction", "start_impulse"))
    start = np.zeros(24)
    for friction in (0.8, 0.2):
        at, v, impulse = q, np.zeros(8), start
        heights = []
        for _ in range(300):
            at, v, impulse = kernel(at, v, squeeze, np.full(8, friction), impulse.ravel())
            heights.append(at[4])
        if friction == 0.8:
            assert abs(heights[-1] - heights[100]) / (200 * 0.002) < CREEP
            axes = scene.contact_frames(at)[:, :3, :3]
            force = np.einsum("kij,kj->i", axes, impulse) / 0.002  # of the cube on the fingers
            np.testing.assert_allclose(force, [0.0, 0.0, -0.1 * GRAVITY], atol=1e-6)
        else:  # 0.8 N of friction: it accelerates
            fall = (GRAVITY - 2 * 0.2 * 2.0 / 0.1) * (0.002**2) * 60 * 61 / 2
            np.testing.assert_allclose(q[4] - heights[59], fall, rtol=0.02)


def test_arrows_of_contacts_are_forces_in_the_axes_of_the_base():
    """Two fingers press a cube from both sides and carry its weight."""
    scene, q = pinch()
    tau = np.zeros(scene.dof)
    tau[:2] = 3.0
    found = simulate(scene, control.ConstantTorque(scene, tau), duration=0.3, q=q, step=2e-3, every=10)
    left, right = found.contact_arrows[-1].reshape(2, 4, 3).sum(axis=1)
    np.testing.assert_allclose(left, [0.0, -3.0, -0.05 * GRAVITY], atol=0.01)
    np.testing.assert_allclose(right, [0.0, 3.0, -0.05 * GRAVITY], atol=0.01)


def test_kernels_batches_and_the_interpreter_have_the_same_bits():
    scene, q = pinch()
    rng = np.random.default_rng(0)
    states = np.repeat(q[None], 5, axis=0)
    states[:, 2:5] += 0.001 * rng.normal(size=(5, 3))
    states[:, 5:8] += 0.05 * rng.normal(size=(5, 3))
    qd, tau = 0.1 * rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
    for name in ("contact_step", "contact_frames", "contact_gaps"):
        kernel = scene.kernel(name)
        given = (states, qd, tau) if name == "contact_step" else (states,)
        many = kernel(*given)
        many = many if isinstance(many, tuple) else (many,)
        for k in range(5):
            row = [x[k] for x in given]
            wanted = interpret.run(kernel.program(), *(x.tolist() for x in row))
            single = kernel(*row)
            for batch, one, want in zip(
                many, single if isinstance(single, tuple) else (single,), wanted, strict=True
            ):
                np.testing.assert_array_equal(one, np.reshape(want, one.shape))
                np.testing.assert_array_equal(batch[k], one)


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("make")), reason="gcc or make is not installed")
def test_c_packages_of_scenes_have_the_same_bits(tmp_path):
    scene = lw.Scene(
        [lw.Body.box((0.1, 0.1, 0.1), mass=1.0, name="cube"), lw.Body.sphere(0.2, name="rock"), lw.Ground()]
    )
    Package(scene, ["contact_gaps", "contact_frames"], Options(), count=6).write(tmp_path / "c")
    said = subprocess.run(
        ["make", "check", "CC=gcc", "CFLAGS=-O1 -march=native"],
        cwd=tmp_path / "c", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "all bits equal" in said.stdout


def test_scenes_keep_what_their_robots_have():
    arm = lw.load("puma560")
    other = arm.with_payload(1.0, frame=arm.leaf_names[0])
    poses = {"puma560": lw.Transform.from_rpy((0.0, 1.0, 0.5), (0.0, 0.0, 0.7))}
    alone = lw.Scene([arm], poses=poses)
    rng = np.random.default_rng(1)
    q, qd, tau = rng.normal(size=(3, 6))
    np.testing.assert_allclose(
        alone.inverse_dynamics(q, qd, tau), arm.inverse_dynamics(q, qd, tau), atol=1e-10
    )
    tip = arm.leaf_names[0]
    moved = np.eye(4)
    moved[:3, :3], moved[:3, 3] = poses["puma560"].rotation, poses["puma560"].translation
    np.testing.assert_allclose(alone.pose(q, tip), moved @ arm.pose(q, tip), atol=1e-12)
    two = lw.Scene([arm, other.with_contacts([lw.Contact(tip)], stops=[arm.joint_names[0]]), lw.Ground()])
    assert two.dof == 12
    assert two.joint_names[6] == "puma560/" + arm.joint_names[0]
    both = two.inverse_dynamics(np.r_[q, q], np.r_[qd, qd], np.r_[tau, tau])
    np.testing.assert_allclose(both[:6], arm.inverse_dynamics(q, qd, tau), atol=1e-9)
    np.testing.assert_allclose(both[6:], other.inverse_dynamics(q, qd, tau), atol=1e-9)
    assert two.contact_names == ("puma560/" + tip,)
    assert lw.Scene([two.with_contacts([])]).dof == 12
    floating = lw.Scene([arm.with_base("floating"), lw.Body.sphere(0.1, mass=1.0, name="ball")])
    assert floating.nq == 20
    assert floating.joint_names[0] == "root_joint"
    with pytest.raises(lw.ModelError, match="gravity"):
        lw.Scene([arm, other.with_gravity((0, 0, -1.0))])
    with pytest.raises(lw.ModelError, match="part of q"):
        lw.Scene([arm.with_base("floating")], poses=poses)


def test_files_say_what_touches(tmp_path, recwarn):
    file = tmp_path / "dog.xml"

    def loaded(text: str) -> lw.Robot:
        file.write_text(text)
        return lw.load(file, contact=True)

    ball = 'type="sphere" size=".02" pos="0 0 -.25" mass=".3" friction=".7" {more}'
    plain = loaded(dog(ball.format(more="")))
    assert plain.contact_names == (*(f"box of trunk[{k}]" for k in range(4)), *(f"foot{k}" for k in range(4)))
    assert {contact.friction for contact in plain.contacts} == {1.0}  # MuJoCo takes the larger one
    assert plain.contact_parts[0] == lw.Ground(friction=1.0, height=0.1)
    feet = loaded(dog(ball.format(more='priority="1"'), trunk='contype="0" conaffinity="0"'))
    pairs = [f"foot{i}:foot{k}" for i in range(4) for k in range(i + 1, 4)]
    assert feet.contact_names == (*(f"foot{k}" for k in range(4)), *pairs)
    assert {contact.friction for contact in feet.contacts} == {0.7}
    rolling = loaded(
        dog(
            ball.format(more='condim="6"').replace('".7"', '".7 .02 .01"'),
            trunk='contype="0"  conaffinity="0"',
        )
    )
    foot = rolling.contacts[0]
    assert (foot.friction, foot.torsional_friction, foot.rolling_friction) == (1.0, 0.02, 0.01)
    smooth = loaded(dog(ball.format(more='priority="1" condim="1"'), trunk='contype="0" conaffinity="0"'))
    assert {contact.friction for contact in smooth.contacts[:4]} == {0.0}
    only = dog(
        ball.format(more='contype="0" conaffinity="0"'),
        trunk='contype="0" conaffinity="0"',
        contact='<pair geom1="foot0" geom2="floor" friction=".3 .3 0 0 0"/><pair geom1="foot1" geom2="foot2"/>',
    )
    # geoms that no pair names do not touch
    pairs = loaded(only)
    assert pairs.contact_names == ("foot0", "foot1:foot2")
    # MuJoCo does not look at the friction of its geoms
    assert [contact.friction for contact in pairs.contacts] == [0.3, 1.0]
    excluded = loaded(dog(ball.format(more=""), contact='<exclude body1="world" body2="trunk"/>'))
    assert not any(name.startswith("box of trunk") for name in excluded.contact_names)
    many = loaded(dog(CAPSULE))
    assert len(many.contact_names) == 8
    assert many.contact_names[0] == "ground[0]"
    assert any("of 12 candidates" in str(each.message) for each in recwarn)
    nothing, before = 'contype="0" conaffinity="0"', "<worldbody>"
    mesh = '<asset><mesh name="foot" file="foot.stl"/></asset><worldbody>'
    disabled = "<option><flag contact='disable'/></option><worldbody>"
    for text, message in (
        (dog('type="mesh" mesh="foot" mass="1"').replace(before, mesh, 1), "foot.stl"),
        (dog(ball.format(more=nothing), trunk=nothing), "nothing that touches"),
        (dog(ball.format(more="")).replace(before, disabled, 1), "disable"),
    ):
        with pytest.raises(lw.ModelError, match=message):
            loaded(text)
    alone = 'contype="1" conaffinity="0"'  # touches a floor, not its own kind
    bare = re.sub(r'<geom name="floor"[^>]*/>', "", dog(ball.format(more=alone), trunk=alone))
    (tmp_path / "bare.xml").write_text(bare)
    (tmp_path / "room.xml").write_text(
        '<mujoco><include file="bare.xml"/><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>'
    )
    with pytest.raises(lw.ModelError, match=r"nothing to touch.* load .*room\.xml, which includes it"):
        lw.load(tmp_path / "bare.xml", contact=True)
    assert "foot0" in lw.load(tmp_path / "room.xml", contact=True).contact_names
    with pytest.raises(lw.ModelError, match="with_contacts"):
        lw.load("puma560", contact=True)
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(
        '<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision><origin xyz="0 0 .1"/><geometry><sphere radius=".1"/>'
        '</geometry></collision></link><joint name="j" type="revolute"><parent link="base"/><child link="tip"/>'
        '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>'
    )
    arm = lw.load(urdf, contact=True)
    np.testing.assert_allclose(arm.contact_gaps([0.0]), [0.0], atol=1e-12)


def test_a_file_stands_as_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = dog(CAPSULE.replace("/>", ' solref=".004 1"/>'), contact="").replace(
        'axis="0 1 0"', 'axis="0 1 0" stiffness="40" damping="2"'
    )
    file = tmp_path / "dog.xml"
    file.write_text(text)
    robot = lw.load(file, contact=True)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    q = robot.neutral.copy()
    q[2] = data.qpos[2] = 0.38
    result = simulate(robot, control.Passive(robot), duration=1.0, step=0.002, q=q)
    mujoco.mj_step(model, data, nstep=500)
    np.testing.assert_allclose(result.final_q[2], data.qpos[2], rtol=0.02)
    weight = sum(link.inertia.mass for link in robot.links) * GRAVITY
    np.testing.assert_allclose(result.contact_forces[-1, :, 2].sum(), weight, rtol=1e-6)
    force = np.zeros(6)
    total = 0.0
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, force)
        total += force[0]
    np.testing.assert_allclose(total, weight, rtol=0.02)
    assert result.penetration.max() < 1e-3
    assert result.contact_points.shape == (500, 8, 3)
    page = page_file(robot, result=result)
    assert "class Simulation" in page


def test_the_command_simulates_contacts(tmp_path, capsys):
    file, report = tmp_path / "dog.xml", tmp_path / "report.html"
    file.write_text(
        dog('type="sphere" size=".02" pos="0 0 -.25" mass=".3"', trunk='contype="0" conaffinity="0"')
    )
    page = tmp_path / "page.html"
    options = ("--contact", "--duration", "0.05", "--step", "0.001", "--page", page, "--report", report)
    assert main(["simulate", str(file), *map(str, options), "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert sum(columns[f"f{k}n"][-1] for k in range(1, 5)) == pytest.approx(6.2 * GRAVITY, rel=1e-6)
    assert "Contact" in report.read_text()
    assert page.stat().st_size > 1000
    assert main(["simulate", "two_link", "--controller", "joint_pd"]) == 2
    assert main(["simulate", str(file), "--contact", "--to", "1,2"]) == 2


def test_what_cannot_be_computed_says_what_it_costs():
    scene = lw.Scene([lw.Body.box((0.1, 0.1, 0.1), mass=1.0, name="cube")])
    points = np.random.default_rng(0).normal(size=(1000, 3))
    many = scene.with_contacts([lw.Contact("cube", points=points)])
    for call in (
        lambda: many.contact_step(many.neutral, np.zeros(6), np.zeros(6)),
        lambda: many.kernel("contact_gaps"),
        lambda: simulate(many, control.Passive(many), duration=0.1, q=many.neutral),
    ):
        with pytest.raises(lw.LinkwiseError, match=r"1000 candidates.*operations.*nearest"):
            call()
    # deep inside, without friction: it comes out slowly; NaN stays in its state
    cube = scene.with_contacts(
        [lw.Contact("cube"), lw.Shape.box("cube", (0.1, 0.1, 0.1)), lw.Ground(friction=0.0)]
    )
    q = np.tile(scene.neutral, (3, 1))
    q[:, 2] = -2.0, np.nan, 0.05
    after, qd, impulse = cube.contact_step(q, np.zeros((3, 6)), np.zeros((3, 6)))
    np.testing.assert_allclose(qd[0, 5], 0.1, atol=1e-9)
    assert np.isnan(after[1, 2])
    assert np.isfinite(after[[0, 2]]).all()
    np.testing.assert_allclose(impulse[2, :, 2].sum(), GRAVITY * 0.002, rtol=1e-9)
