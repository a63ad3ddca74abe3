"""A changed robot moves as the change says: lumped links, locked joints, payloads, parameters, gravity."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from evaluation import EXACT, algorithms, assert_near, norm, torque_scale, value
from hypothesis import given
from hypothesis import strategies as st

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot
from strategies import body, pose, robots, seeds, states_of


def torques(robot, s, algorithm=None, **options):
    return value(robot, "inverse_dynamics", algorithm, q=s.q, qd=s.qd, qdd=s.qdd, **options)


@given(robots(max_dof=6), seeds)
def test_fixed_links_count_as_one_link(robot, seed):
    """The robot whose moving links carry the sum of what is bolted to them is the same robot."""
    s = states_of(robot, seed, 2)
    lumped = dict(zip((joint.child for joint in robot.moving_joints), robot.bodies(), strict=True))
    by_hand = {joint.child: Inertia() for joint in robot.moving_joints}
    for link in robot.links:  # the sum, by the parallel-axis theorem
        k, place = robot.carrier(link.name)
        if k >= 0:
            name = robot.moving_joints[k].child
            m, c = link.inertia.mass, place.rotation @ link.inertia.com + place.translation
            at_com = place.rotation @ link.inertia.matrix_about_com @ place.rotation.T
            by_hand[name] = by_hand[name] + Inertia.from_com(m, c, at_com)
    for name, inertia in lumped.items():
        assert_near(inertia.parameters, by_hand[name].parameters, 1e-12, 1.0, name)
    links = [replace(link, inertia=lumped.get(link.name, Inertia())) for link in robot.links]
    one = Robot("lumped", links, robot.joints, gravity=robot.gravity)
    assert_near(torques(one, s), torques(robot, s), EXACT, torque_scale(robot, s.q, s.qd, s.qdd))


@given(robots(min_dof=2, max_dof=7), seeds, st.data())
def test_a_locked_joint_is_one_that_does_not_move(robot, seed, data):
    s = states_of(robot, seed)
    names = data.draw(st.sets(st.sampled_from(robot.joint_names), min_size=1, max_size=robot.dof - 1))
    k = [i for i, name in enumerate(robot.joint_names) if name not in names]
    still = [i for i in range(robot.dof) if i not in k]
    s.qd[still] = s.qdd[still] = 0.0
    locked = robot.lock({robot.joint_names[i]: s.q[i] for i in still})
    assert locked.joint_names == tuple(robot.joint_names[i] for i in k)
    tau = value(locked, "inverse_dynamics", q=s.q[k], qd=s.qd[k], qdd=s.qdd[k])
    assert_near(tau, torques(robot, s)[k], EXACT, torque_scale(robot, s.q, s.qd, s.qdd))
    M = value(robot, "mass_matrix", q=s.q)
    assert_near(value(locked, "mass_matrix", q=s.q[k]), M[np.ix_(k, k)], EXACT, np.max(np.abs(M)))
    assert_near(
        value(locked, "pose", q=s.q[k], frame="tool"), value(robot, "pose", q=s.q, frame="tool"), 1e-13, 3.0
    )
    J = value(robot, "jacobian", q=s.q, frame="tool")
    assert_near(value(locked, "jacobian", q=s.q[k], frame="tool"), J[:, k], 1e-12, 10.0)


@given(robots(max_dof=6), seeds)
def test_a_payload_is_a_link_bolted_on(robot, seed):
    s = states_of(robot, seed, 2)
    rng = np.random.default_rng(seed)
    [tool] = robot.frames
    load = body(rng)
    carried = robot.with_payload(load.mass, load.com, load.matrix_about_com, frame="tool")
    bolted = Robot(
        "bolted",
        [*robot.links, Link("load", load)],
        [*robot.joints, Joint("bolt", "fixed", tool.link, "load", tool.pose)],
        gravity=robot.gravity,
    )
    assert bolted.joint_names == robot.joint_names
    scale = torque_scale(bolted, s.q, s.qd, s.qdd)
    for name in algorithms("inverse_dynamics"):
        heavy = torques(carried, s, algorithm=name)
        assert_near(heavy, torques(bolted, s, algorithm=name), EXACT, scale, name)
    if robot.carrier(tool.link)[0] >= 0:
        assert np.max(norm(torques(carried, s) - torques(robot, s))) > 1e-6
    xx, xy, xz, yy, yz, zz = load.matrix_about_com[np.triu_indices(3)]
    same = robot.with_payload(load.mass, load.com, (xx, xy, xz, yy, yz, zz), frame="tool")
    assert same == carried


def test_an_impossible_payload_is_a_warning():
    arm = lw.planar_chain(2)
    with pytest.warns(
        lw.ModelWarning, match="payload: principal moments 1, 1, 10 violate the triangle inequality"
    ):
        arm.with_payload(1.0, (0, 0, 0), (10, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm.with_payload(1.0, (0, 0, 0.3), (1, 1, 1))


def test_a_payload_is_a_point_mass_unless_more_is_said():
    robot = lw.load("two_link")
    s = states_of(robot, 3)
    tip = robot.link_names[-1]
    heavy = robot.with_payload(2.0, (0.1, 0.0, 0.0))
    T = value(robot, "pose", q=s.q, frame=tip)
    J = value(robot, "jacobian", q=s.q, frame=tip)
    arm = T[:3, :3] @ [0.1, 0.0, 0.0]
    Jp = J[3:] - np.cross(arm, J[:3], axis=0)  # of the point
    gained = value(heavy, "mass_matrix", q=s.q) - value(robot, "mass_matrix", q=s.q)
    assert_near(gained, 2.0 * Jp.T @ Jp, 1e-12)
    weight = value(heavy, "gravity_torques", q=s.q) - value(robot, "gravity_torques", q=s.q)
    assert_near(weight, -2.0 * Jp.T @ np.array(robot.gravity), 1e-12, 50.0)


@given(robots(max_dof=6), seeds)
def test_parameters_make_the_round_trip(robot, seed):
    s = states_of(robot, seed)
    again = robot.with_parameters(robot.parameters)
    assert np.array_equal(again.parameters, robot.parameters)
    assert np.array_equal(torques(again, s), torques(robot, s))
    assert again.with_parameters(dict(zip(again.parameter_labels, again.parameters, strict=True))) == again


@given(robots(max_dof=5), seeds, st.data())
def test_torques_are_linear_in_the_parameters(robot, seed, data):
    """One changed parameter, whatever it is, changes the torques by its column of the regressor."""
    s = states_of(robot, seed)
    k = data.draw(st.integers(0, len(robot.parameter_labels) - 1))
    label = robot.parameter_labels[k]
    changed = robot.with_parameters({label: robot.parameters[k] + 0.125})
    assert_near(
        changed.parameters, robot.parameters + 0.125 * (np.arange(len(robot.parameters)) == k), 1e-13, 10.0
    )
    column = value(robot, "regressor", q=s.q, qd=s.qd, qdd=s.qdd)[:, k]
    scale = torque_scale(robot, s.q, s.qd, s.qdd) + norm(column)
    assert_near(torques(changed, s), torques(robot, s) + 0.125 * column, EXACT, scale, label)


def test_coulomb_friction_may_become_asymmetric_and_back():
    robot = lw.random_robot(1, 3)
    s = states_of(robot, 1)
    lopsided = robot.with_parameters(
        {
            "joint2.coulomb_friction_forward": 3.0,
            "joint2.coulomb_friction_backward": 0.5,
            "joint1.viscous_friction": 2.0,
        }
    )
    assert lopsided.asymmetric_friction
    assert lopsided.moving_joints[1].coulomb_friction == (3.0, 0.5)
    for v, wanted in ((0.7, 3.0), (-0.7, -0.5), (0.0, 0.0)):
        s.qd[1] = v
        rubbing = torques(lopsided, s) - torques(lopsided, s, friction=False)
        assert_near(rubbing, [2.0 * s.qd[0], wanted, 0.0], 1e-12, 50.0)
    even = lopsided.with_parameters({"joint2.coulomb_friction": 1.5})
    assert even.moving_joints[1].coulomb_friction == (1.5, 1.5)
    assert not even.asymmetric_friction


@given(robots(max_dof=6), seeds)
def test_gravity(robot, seed):
    """Gravity torques are linear in g, and nothing else knows of it."""
    s = states_of(robot, seed, 2)
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    scale = torque_scale(robot, s.q, s.qd, s.qdd)
    assert_near(value(weightless, "gravity_torques", q=s.q), np.zeros_like(s.q), 1e-15, 1.0)
    assert_near(
        torques(weightless, s), torques(robot, s) - value(robot, "gravity_torques", q=s.q), EXACT, scale
    )
    assert_near(value(weightless, "mass_matrix", q=s.q), value(robot, "mass_matrix", q=s.q))
    total = sum(
        g * value(robot.with_gravity(unit), "gravity_torques", q=s.q)
        for g, unit in zip(robot.gravity, np.eye(3), strict=True)
    )
    assert_near(value(robot, "gravity_torques", q=s.q), total, EXACT, scale + 100.0)


@pytest.mark.parametrize("slide", [True, False])
def test_how_frames_are_prepared_does_not_show(slide):
    """Origins may slide along revolute axes: no result knows."""
    from linkwise.model.mechanism import prepare

    for seed in range(5):
        robot = lw.random_robot(seed, 5, tree=True, friction=True, rotor=True)
        other = Robot.from_model(robot)
        other.__dict__["_mechanisms"] = {(True, False): prepare(robot, slide=slide)}
        s = states_of(robot, seed, 2)
        assert_near(torques(other, s), torques(robot, s), 1e-13, torque_scale(robot, s.q, s.qd, s.qdd))
        for function in ("mass_matrix", "potential_energy", "inverse_mass_matrix"):
            assert_near(value(other, function, q=s.q), value(robot, function, q=s.q), 1e-12, what=function)
        Y = value(robot, "regressor", q=s.q, qd=s.qd, qdd=s.qdd)
        assert_near(value(other, "regressor", q=s.q, qd=s.qd, qdd=s.qdd), Y, 1e-12)


@given(robots(max_dof=6), seeds)
def test_another_file_layout_is_the_same_robot(robot, seed):
    """Where the file puts a link's frame on its axis, and how it turns it, does not matter."""
    rng = np.random.default_rng(seed)
    s = states_of(robot, seed)
    moved = {}
    for joint in robot.moving_joints:  # new frame in the old one: slid along the axis, turned anyhow
        turn = pose(rng).rotation
        slide = rng.uniform(-0.3, 0.3) * np.array(joint.axis) if joint.revolute else rng.uniform(-0.3, 0.3, 3)
        moved[joint.child] = lw.Transform(turn, slide)
    one = lw.Transform.identity()
    joints = []
    for joint in robot.joints:
        origin = moved.get(joint.parent, one).inverse() @ joint.origin @ moved.get(joint.child, one)
        axis = tuple((moved.get(joint.child, one).rotation.T @ joint.axis).tolist())
        joints.append(replace(joint, origin=origin, axis=axis))
    links = [
        replace(link, inertia=link.inertia.expressed_in(moved[link.name].inverse()))
        if link.name in moved
        else link
        for link in robot.links
    ]
    other = Robot("moved", links, joints, gravity=robot.gravity)
    scale = torque_scale(robot, s.q, s.qd, s.qdd)
    assert_near(torques(other, s), torques(robot, s), EXACT, scale)
    assert_near(value(other, "mass_matrix", q=s.q), value(robot, "mass_matrix", q=s.q))
    assert_near(
        value(other, "potential_energy", q=s.q), value(robot, "potential_energy", q=s.q), EXACT, 100.0
    )
