"""Elastic joints: a motor, a spring and a damper, against two masses by hand and against MuJoCo."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise import Elastic, Inertia, Joint, Link, ModelError, Robot, UnknownNameError, control
from linkwise.simulate import simulate


def disc(moment: float = 0.3) -> Robot:
    """A link that turns about its centre."""
    body = Inertia.from_com(1.0, (0.0, 0.0, 0.0), (moment, moment, moment))
    joint = Joint("joint", "revolute", "base", "disc", rotor_inertia=0.1)
    return Robot("disc", [Link("base"), Link("disc", body)], [joint], gravity=(0.0, 0.0, 0.0))


def test_two_masses_and_a_spring_by_hand():
    """B θ̈ = τ + K δ + D δ̇ and J q̈ = −K δ − D δ̇: mass matrix, forces, and the frequency of the free motion."""
    B, J, K, D = 0.1, 0.3, 50.0, 0.7
    robot = disc(J).with_elastic_joints({"joint": Elastic(K, D)})
    assert robot.joint_names == ("joint", "joint_spring")
    theta, deflection, speed, rate, torque = 0.4, 0.05, 0.2, -0.3, 1.5
    accelerations = robot.forward_dynamics([theta, deflection], [speed, rate], [torque, 0.0])
    carried = -K * deflection - D * rate
    expected = np.array([(torque - carried) / B, carried / J])
    np.testing.assert_allclose(accelerations, [expected[0], expected[1] - expected[0]], rtol=1e-12)
    free = disc(J).with_elastic_joints({"joint": K})
    omega = math.sqrt(K * (1 / B + 1 / J))
    found = simulate(free, control.Passive(free), duration=1.0, step=1e-3, q=[0.0, 0.1])
    np.testing.assert_allclose(found.q[:, 1], 0.1 * np.cos(omega * found.t), atol=1e-7)
    np.testing.assert_allclose(found.energy(), 0.5 * K * 0.1**2, rtol=1e-8)


def test_mujoco_with_extra_bodies_and_springs():
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody><body>
      <joint name="a" axis="0 1 0" armature="0.4" damping="0.3"/>
      <joint name="a_s" axis="0 1 0" stiffness="900" damping="2"/>
      <inertial pos="0.2 0 0" mass="3" diaginertia=".02 .05 .05"/>
      <body pos="0.5 0 0"><joint name="b" axis="0 0 1" armature="0.2"/><joint name="b_s" axis="0 0 1" stiffness="400"/>
        <inertial pos="0.15 0.05 0.1" mass="1.5" diaginertia=".01 .02 .02"/></body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    links = [
        Link("base"),
        Link("upper", Inertia.from_com(3.0, (0.2, 0.0, 0.0), (0.02, 0.05, 0.05))),
        Link("lower", Inertia.from_com(1.5, (0.15, 0.05, 0.1), (0.01, 0.02, 0.02))),
    ]
    joints = [
        Joint(
            "a", "revolute", "base", "upper", axis=(0.0, 1.0, 0.0), rotor_inertia=0.4, viscous_friction=0.3
        ),
        Joint("b", "revolute", "upper", "lower", lw.Transform.from_rpy((0.5, 0.0, 0.0)), (0.0, 0.0, 1.0)),
    ]
    robot = Robot("arm", links, joints).with_elastic_joints(
        {"a": Elastic(900.0, 2.0), "b": Elastic(400.0, motor_inertia=0.2)}
    )
    rng = np.random.default_rng(1)
    q, qd, tau = rng.normal(size=(3, 4)) * [[1.0, 0.1, 1.0, 0.1], [1.0] * 4, [5.0, 0.0, 3.0, 0.0]]
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, tau
    mujoco.mj_forward(model, data)
    for name in robot.algorithms("forward_dynamics")[:2]:
        found = robot.forward_dynamics(q, qd, tau, algorithm=name)
        np.testing.assert_allclose(found, data.qacc, rtol=1e-9, atol=1e-9 * np.abs(data.qacc).max())


def test_stiff_springs_move_like_the_rigid_arm():
    arm = lw.load("puma560")
    arm = arm.with_parameters({label: 0.0 for label in arm.parameter_labels if "friction" in label})
    stiff = arm.with_elastic_joints(dict.fromkeys(arm.joint_names[:3], 1e9))
    assert stiff.dof == 9
    rng = np.random.default_rng(0)
    q, qd, tau = rng.normal(size=(3, 6))
    springs = [name.endswith("_spring") for name in stiff.joint_names]
    wide = np.zeros((3, 9))
    wide[:, ~np.array(springs)] = q, qd, tau
    settled = wide[0]
    rigid = arm.forward_dynamics(q, qd, tau)
    # where the springs carry what the rigid arm needs, accelerations are the same
    load = stiff.link_side().inverse_dynamics(q, qd, rigid)
    settled[np.flatnonzero(springs)] = -load[:3] / 1e9
    found = stiff.forward_dynamics(settled, wide[1], wide[2])
    total = found[~np.array(springs)]
    np.testing.assert_allclose(total[:3] + found[springs], rigid[:3], rtol=1e-5, atol=1e-5)


def test_pairs_are_found_in_files(tmp_path):
    robot = lw.load("panda").with_elastic_joints({"panda_joint2": Elastic(12000.0, 3.0, 0.8)})
    (pair,) = robot.elastic_joints
    assert (pair.motor.name, pair.spring.name) == ("panda_joint2", "panda_joint2_spring")
    assert (pair.stiffness, pair.damping, pair.motor.rotor_inertia) == (12000.0, 3.0, 0.8)
    assert not lw.load("panda").elastic_joints
    for ending in ("toml", "urdf"):
        lw.save(robot, tmp_path / f"robot.{ending}")
        again = lw.load(tmp_path / f"robot.{ending}")
        assert [p.spring.name for p in again.elastic_joints] == ["panda_joint2_spring"]
        assert again.elastic_joints[0].stiffness == 12000.0
        assert again.passive == ("panda_joint2_spring",)
        q, qd, tau = np.random.default_rng(0).normal(size=(3, robot.dof))
        np.testing.assert_array_equal(again.forward_dynamics(q, qd, tau), robot.forward_dynamics(q, qd, tau))
    soft = lw.load("panda").with_constraints([lw.Point("panda_link4", (0.1, 0.2, 0.3), compliance=0.25)])
    for ending in ("toml", "urdf"):
        lw.save(soft, tmp_path / f"soft.{ending}")
        assert lw.load(tmp_path / f"soft.{ending}").constraints[0].compliance == 0.25


@pytest.mark.parametrize(
    ("springs", "message"),
    [
        ({"joint": 0.0}, "elastic joint 'joint': stiffness: expected a positive number"),
        ({"joint": math.nan}, "stiffness"),
        ({"joint": Elastic(10.0, -1.0)}, "damping: expected a number of at least 0"),
        ({"joint": Elastic(10.0, 0.0, 0.0)}, "its motor has no inertia; give motor_inertia="),
        ({"elbow": 10.0}, "disc has no joint 'elbow'"),
    ],
)
def test_impossible_springs_are_refused_by_name(springs, message):
    with pytest.raises((ModelError, UnknownNameError), match=message):
        disc().with_elastic_joints(springs)


def test_joints_that_cannot_be_elastic_are_named():
    once = disc().with_elastic_joints({"joint": 10.0})
    with pytest.raises(ModelError, match="'joint_spring' is without a motor"):
        once.with_elastic_joints({"joint_spring": 10.0})
    with pytest.raises(ModelError, match="has a link, frame or joint 'joint_motor' already"):
        once.with_elastic_joints({"joint": 10.0})
    floating = disc().with_base("floating")
    with pytest.raises(ModelError, match="'root_joint' is floating; expected one of revolute"):
        floating.with_elastic_joints({"root_joint": 10.0})
    with pytest.raises(ModelError, match="it has stiffness of its own"):
        disc().with_parameters({"joint.stiffness": 3.0}).with_elastic_joints({"joint": 10.0})
