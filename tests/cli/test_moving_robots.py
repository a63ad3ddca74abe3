"""Commands with floating and planar bases, ball joints and joints that follow others."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linkwise as lw

BALL = """<mujoco model="swing"><compiler angle="radian"/><worldbody>
<body name="upper"><joint name="shoulder" type="ball"/>
<inertial pos="0 0 -0.2" mass="2" diaginertia="0.03 0.03 0.01"/>
<body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0"/>
<inertial pos="0 0 -0.2" mass="1" diaginertia="0.02 0.02 0.005"/></body></body></worldbody></mujoco>"""

INERTIAL = '<inertial><origin xyz="0 0 0.1"/><mass value="2"/>' + (
    '<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial>'
)
GRIPPER = f"""<robot name="gripper"><link name="palm">{INERTIAL}</link><link name="left">{INERTIAL}</link>
<link name="right">{INERTIAL}</link>
<joint name="open" type="revolute"><parent link="palm"/><child link="left"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
<joint name="follow" type="revolute"><parent link="palm"/><child link="right"/><axis xyz="0 1 0"/>
<origin xyz="0.1 0 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/>
<mimic joint="open" multiplier="-1.5" offset="0.1"/></joint></robot>"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "swing.xml").write_text(BALL)
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    return tmp_path


def test_names_and_numbers_of_joints(files, linkwise):
    gripper = files / "gripper.urdf"
    assert repr(lw.load(gripper)) == "<Robot 'gripper': 1 joint>"
    assert repr(lw.load(gripper, base="floating")) == "<Robot 'gripper': 2 joints, 7 velocities>"
    told = linkwise("info", str(gripper), "--base", "floating").out
    assert "3 moving joints" in told
    assert "8 positions, 7 velocities" in told
    assert "follow = -1.5·open + 0.1: no coordinate of its own" in told
    told = linkwise("info", str(gripper), "--mimic", "independent").out
    assert "in the file; its coordinate is independent" in told
    facts = json.loads(linkwise("info", str(files / "swing.xml"), "--json").out)
    assert (facts["nq"], facts["dof"], facts["moving_joints"]) == (5, 4, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("gripper.urdf", "--base", "floating"),
        ("gripper.urdf", "--base", "planar"),
        ("gripper.urdf", "--mimic", "independent", "--base", "floating"),
        ("swing.xml",),
        ("swing.xml", "--base", "floating"),
    ],
)
def test_check_with_both_engines(files, linkwise, arguments):
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    name, *options = arguments
    result = linkwise("check", str(files / name), *options, "--states", "3", "--json")
    facts = json.loads(result.out)
    verdicts = {(row["function"], row["who"].split()[0]): row["verdict"] for row in facts["findings"]}
    if "--base" in options and name == "swing.xml":
        # the base of that file has no mass: accelerations are refused, torques compared
        assert "the mass matrix is singular" in result.out
    for engine in ("pinocchio", "mujoco"):
        if engine in facts["absent"]:
            assert "mass and inertia of moving bodies" in facts["absent"][engine]
            continue
        assert verdicts["inverse_dynamics", engine] == verdicts["mass_matrix", engine] == "agrees"
    assert "DISAGREES" not in verdicts.values()
    assert facts["agree"]


def test_torques_and_back(files, linkwise):
    """A motion with a quaternion: torques, a report, and the accelerations that belong to them."""
    path = files / "swing.xml"
    robot = lw.load(path)
    rng = np.random.default_rng(0)
    t, rates = np.linspace(0.0, 1.0, 5), rng.normal(size=robot.dof)
    q = robot.integrate(robot.random(rng), t[:, np.newaxis] * rates)
    states = np.column_stack([t, q, np.tile(rates, (5, 1)), rng.normal(size=(5, robot.dof))])
    np.savetxt(files / "motion.csv", states, delimiter=",")
    torques, page = files / "torques.csv", files / "page.html"
    told = linkwise(
        *("inverse", str(path), "--trajectory", str(files / "motion.csv"), "--states"),
        *("--out", str(torques), "--report", str(page)),
    ).out
    assert "shoulder.wx" in told
    assert "quaternion" in page.read_text()
    back = linkwise("forward", str(path), "--torques", str(torques), "--json").out
    columns = json.loads(back)["columns"]
    found = np.column_stack([columns[f"qdd{k}"] for k in range(1, robot.dof + 1)])
    np.testing.assert_allclose(found, states[:, -robot.dof :], atol=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        ("inverse", "--trajectory", "quintic", "--to", "1,1,1,1"),
        ("excite",),
        ("identify", "log.csv"),
    ],
)
def test_what_is_for_arms_only_says_so(files, linkwise, arguments):
    (files / "log.csv").write_text("t,q1\n0,0\n")
    command, *rest = arguments
    rest = [str(files / part) if part.endswith(".csv") else part for part in rest]
    told = linkwise(command, str(files / "swing.xml"), *rest).refused()
    assert "for robots whose joints have one coordinate each; swing has the ball joint 'shoulder'" in told


def test_springs_and_constraints_are_left_out_of_the_comparison(files, linkwise):
    """And a file whose base floats already is not given a second floating base."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    text = BALL.replace('name="elbow"', 'name="elbow" stiffness="30" springref="0.5"')
    text = text.replace('<joint name="shoulder" type="ball"/>', '<freejoint name="shoulder"/>')
    text = text.replace(
        "</worldbody>", '</worldbody><equality><connect body1="lower" anchor="0 0 0"/></equality>'
    )
    (files / "held.xml").write_text(text)
    assert lw.load(files / "held.xml").constraint_rows == 3
    assert lw.load(files / "held.xml", base="floating").joint_names == ("shoulder", "elbow")
    facts = linkwise("check", files / "held.xml", "--base", "floating", "--states", "2", "--json").json
    engines = [
        row["verdict"] for row in facts["findings"] if row["who"].split()[0] in ("pinocchio", "mujoco")
    ]
    assert engines == ["agrees"] * 9
