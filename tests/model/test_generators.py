"""Made-up robots: the same for the same seed, physically possible, and what was asked for."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.model.generators import RECORD_ROBOTS, general_chain, planar_chain, random_model, record_robot

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
DEFINITIONS = DATA.parent / "reference" / "record_robots.toml"


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dof=st.integers(1, 12),
    tree=st.booleans(),
    joints=st.sampled_from(["R", "P", "RP"]),
)
def test_random_models(seed, dof, tree, joints):
    model = random_model(seed, dof, tree=tree, joints=joints, friction=True, rotor=True)
    assert model == random_model(seed, dof, tree=tree, joints=joints, friction=True, rotor=True)
    assert model.dof == dof
    for link, joint in zip(model.links[1:], model.joints, strict=True):
        assert np.linalg.eigvalsh(link.inertia.pseudo_inertia)[0] > 1e-3
        assert (
            joint.type in {"R": ("revolute",), "P": ("prismatic",), "RP": ("revolute", "prismatic")}[joints]
        )
    robot = lw.Robot.from_model(model)
    q = np.random.default_rng(seed).uniform(-1, 1, dof)
    assert np.linalg.cond(robot.mass_matrix(q)) < 1e5


def test_options_of_random_models():
    plain, full = random_model(1, 5), random_model(1, 5, friction=True, rotor=True)
    assert plain != random_model(2, 5)
    assert plain.links == full.links
    assert not any(joint.rotor_inertia or joint.viscous_friction for joint in plain.joints)
    assert full.asymmetric_friction
    assert all(joint.rotor_inertia > 0 for joint in full.joints)
    assert [j.type for j in random_model(0, 3, joints="RPR").joints] == ["revolute", "prismatic", "revolute"]
    parents = [joint.parent for joint in random_model(4, 12, tree=True).joints]
    assert len(set(parents)) < len(parents)


def test_planar_chain_of_two_is_the_elbow_arm_with_rods():
    arm = lw.Robot.from_model(planar_chain(2, length=0.5, mass=2.0, radius=0.0))
    q1, q2 = 0.4, -1.1
    M = arm.mass_matrix([q1, q2])
    ml2 = 2.0 * 0.5**2
    expected = ml2 * np.array([[5 / 3 + np.cos(q2), 1 / 3 + np.cos(q2) / 2], [1 / 3 + np.cos(q2) / 2, 1 / 3]])
    np.testing.assert_allclose(M, expected, rtol=1e-14)
    np.testing.assert_allclose(arm.pose([0.0, 0.0], "tip")[:3, 3], [1.0, 0.0, 0.0])


@pytest.mark.parametrize("name", RECORD_ROBOTS)
def test_record_robots(name):
    model = record_robot(name, seed=3)
    table = RECORD_ROBOTS[name]
    assert model == record_robot(name, seed=3)
    assert "".join("P" if j.type == "prismatic" else "R" for j in model.joints) == table["joints"]
    robot = lw.Robot.from_model(model)
    assert np.linalg.cond(robot.mass_matrix(np.full(6, 0.3))) < 1e4
    for k, labels in enumerate(table.get("nonzero", [])):
        given = [
            label
            for label in model.parameter_labels[10 * k : 10 * k + 10]
            if model.parameters[model.parameter_labels.index(label)]
        ]
        assert {label.split(".")[1] for label in given} == set(labels)


@pytest.mark.skipif(not DEFINITIONS.exists(), reason=f"no {DEFINITIONS}")
def test_record_robots_are_those_of_the_definitions():
    definitions = tomllib.loads(DEFINITIONS.read_text())
    for name, mine in RECORD_ROBOTS.items():
        theirs = dict(definitions[name])
        if "same_kinematics_as" in theirs:
            theirs = {**definitions[theirs["same_kinematics_as"]], **theirs}
        for key in ("alpha", "a", "d"):
            # names of free symbols are free
            assert [v if v == "joint" or not isinstance(v, str) else "free" for v in mine[key]] == [
                v if v == "joint" or not isinstance(v, str) else "free" for v in theirs[key]
            ]
        assert [sorted(labels) for labels in mine.get("nonzero", [])] == [
            sorted(v) for v in theirs.get("nonzero", [])
        ]


def test_general_chains():
    chain = general_chain(7, seed=1)
    assert chain.dof == 7
    assert all(np.count_nonzero(joint.origin.translation) == 3 for joint in chain.joints)
    aligned = general_chain(7, seed=1, base_offsets=False)
    assert not aligned.joints[0].origin.translation.any()
    right = general_chain(8, twists="perpendicular")
    assert all(set(np.abs(joint.origin.rotation).ravel()) == {0.0, 1.0} for joint in right.joints)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: random_model(0, 0), "joints from 1 to"),
        (lambda: random_model(0, 3, joints="RX"), "joints = 'RX'"),
        (lambda: random_model(0, 3, joints="RPRP"), "or 3 letters"),
        (lambda: planar_chain(0), "joints from 1 to"),
        (lambda: general_chain(0), "joints from 1 to"),
        (lambda: general_chain(3, twists="odd"), "expected 'general' or 'perpendicular'"),
        (lambda: lw.quadruped(limits={"hip": lw.Limits(-1, 1)}), "limits of hip: expected side, hip, knee"),
        (lambda: record_robot("puma56"), "did you mean 'puma560'?"),
    ],
)
def test_mistakes_are_named(make, expected):
    with pytest.raises(lw.ModelError) as error:
        make()
    assert expected in str(error.value)


def test_a_quadruped_stands_on_its_feet():
    """Its feet are under the hips at q = neutral, and carry its weight."""
    robot = lw.quadruped(
        limits={"side": lw.Limits(-1, 1), "hip": lw.Limits(), "knee": lw.Limits(-2, 0, 20.0, 40.0)}
    )
    assert (robot.nq, robot.dof) == (19, 18)
    assert sum(link.inertia.mass for link in robot.links) == 14.0
    feet = np.array([robot.pose(robot.neutral, f"foot{k}")[:3, 3] for k in range(4)])
    assert np.abs(feet - [[x, y, -0.4] for x in (0.2, -0.2) for y in (0.1, -0.1)]).max() < 1e-15
    assert robot.joint_names[1:4] == ("side0", "hip0", "knee0")
    assert [joint.limits.lower for joint in robot.moving_joints[1:4]] == [-1.0, -np.inf, -2.0]
    stand = robot.neutral + np.r_[0, 0, 0.42, np.zeros(16)]
    forces = robot.contact_forces(
        stand, np.zeros(18), robot.gravity_torques(stand) * np.r_[np.zeros(6), np.ones(12)]
    )
    assert robot.contact_names == ("foot0", "foot1", "foot2", "foot3")
    assert abs(forces[:, 2].sum() - 14.0 * 9.81) < 1e-6
    assert lw.quadruped(None).contact_names == ()
