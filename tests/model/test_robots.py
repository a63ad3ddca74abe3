"""The bundled robots: complete, cited, quiet, and equal to the files their numbers were taken from."""

import os
import tomllib
import warnings
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.formats.toml.reader import read_citation, read_toml, write_toml

NAMES = ("iiwa14", "panda", "puma260", "puma560", "puma_valera", "stanford", "two_link", "ur10e")
DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def needs(path: str):
    return pytest.mark.skipif(not (DATA / path).exists(), reason=f"no {DATA / path}")


def states(robot, count=5):
    return np.random.default_rng(1).uniform(-1.5, 1.5, (3, count, robot.dof))


def test_the_list_is_complete():
    assert set(NAMES) <= set(lw.robots())


@pytest.mark.parametrize("name", NAMES)
def test_every_robot(name):
    data = resources.files("linkwise.model.robots").joinpath(f"{name}.toml").read_bytes()
    assert tomllib.loads(data.decode())["name"] == name
    assert len(read_citation(data, name)) > 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # physically possible, or marked as reduced
        robot = lw.load(name, strict=True)
    assert robot.reduced == (name in ("puma560", "puma260"))
    assert read_toml(write_toml(robot).encode(), "again") == robot
    q, qd, tau = states(robot)
    qdd = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, rtol=1e-9, atol=1e-9)


@needs("urdf/example-robot-data/panda.urdf")
def test_panda_is_the_urdf_without_its_hand():
    panda = lw.load("panda")
    path = DATA / "urdf/example-robot-data/panda.urdf"
    whole = lw.load(path, lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    assert whole.joint_names == panda.joint_names
    mine = {link.name: link.inertia for link in panda.links}
    for link in whole.links:
        if link.name in mine and link.name != "panda_link0":
            np.testing.assert_allclose(
                link.inertia.parameters, mine[link.name].parameters, rtol=1e-15, atol=1e-18
            )
    for theirs, ours in zip(whole.moving_joints, panda.moving_joints, strict=True):
        assert theirs.limits == ours.limits
        assert theirs.viscous_friction == ours.viscous_friction
    q = states(panda)[0]
    for frame in panda.link_names[1:]:
        np.testing.assert_allclose(panda.pose(q, frame), whole.pose(q, frame), atol=1e-14)


@needs("mjcf/franka_emika_panda/panda_nohand.xml")
def test_panda_is_the_mjcf_without_its_armature():
    panda = lw.load("panda")
    path = DATA / "mjcf/franka_emika_panda/panda_nohand.xml"
    menagerie = lw.Robot.from_model(read_mjcf(path.read_bytes(), path.name))
    q = states(panda)[0]
    np.testing.assert_allclose(menagerie.mass_matrix(q) - 0.1 * np.eye(7), panda.mass_matrix(q), atol=1e-13)
    np.testing.assert_allclose(menagerie.gravity_torques(q), panda.gravity_torques(q), atol=1e-12)


@needs("mjcf/kuka_iiwa_14/iiwa14.xml")
def test_iiwa14_is_the_mjcf():
    iiwa = lw.load("iiwa14")
    path = DATA / "mjcf/kuka_iiwa_14/iiwa14.xml"
    menagerie = lw.Robot.from_model(read_mjcf(path.read_bytes(), path.name))
    q, qd, qdd = states(iiwa)
    np.testing.assert_allclose(
        iiwa.inverse_dynamics(q, qd, qdd), menagerie.inverse_dynamics(q, qd, qdd), atol=1e-12
    )
    np.testing.assert_allclose(iiwa.pose(q), menagerie.pose(q, "attachment_site"), atol=1e-14)
    assert [joint.limits for joint in iiwa.moving_joints] == [
        joint.limits for joint in menagerie.moving_joints
    ]


@needs("ur10e/ur10e.urdf")
def test_ur10e_is_the_urdf_with_exact_right_angles():
    ur = lw.load("ur10e")
    urdf = lw.load(DATA / "ur10e/ur10e.urdf")
    assert urdf.joint_names == ur.joint_names
    q, qd, qdd = states(ur)
    # the URDF's angles are right to eleven decimals
    np.testing.assert_allclose(
        ur.inverse_dynamics(q, qd, qdd), urdf.inverse_dynamics(q, qd, qdd), rtol=1e-9, atol=1e-9
    )
    for frame in ("tool0", "ee_link", "wrist_3_link", "base"):
        np.testing.assert_allclose(ur.pose(q, frame), urdf.pose(q, frame), atol=1e-10)
    for theirs, ours in zip(urdf.moving_joints, ur.moving_joints, strict=True):
        np.testing.assert_allclose(
            [theirs.limits.lower, theirs.limits.upper, theirs.limits.velocity, theirs.limits.effort],
            [ours.limits.lower, ours.limits.upper, ours.limits.velocity, ours.limits.effort],
        )


def test_puma_valera_has_the_shape_of_a_puma():
    puma = lw.load("puma_valera")
    # stretched out: the wrist centre lies 0.432 + 0.433 out along the upper arm and the forearm, 0.15 to the
    # side
    wrist = puma.pose([0.0, 0.0, np.pi / 2, 0.0, 0.0, 0.0], "link4")[:3, 3]
    np.testing.assert_allclose(np.abs(wrist), [0.432 + 0.433, 0.15, 0.02], atol=1e-12)
    # the two wrist joints and the flange meet in that point
    q = [0.3, -0.2, 0.4, 0.5, 0.6, 0.7]
    for frame in ("link5", "link6"):
        np.testing.assert_allclose(puma.pose(q, frame)[:3, 3], puma.pose(q, "link4")[:3, 3], atol=1e-15)


def test_stanford_slides():
    arm = lw.load("stanford")
    assert [joint.type for joint in arm.moving_joints] == [
        "revolute",
        "revolute",
        "prismatic",
        *["revolute"] * 3,
    ]
    near, far = (arm.pose([0.0, np.pi / 2, d, 0.0, 0.0, 0.0]) for d in (0.4, 0.9))
    np.testing.assert_allclose(far[:3, 3] - near[:3, 3], [0.5, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(far[:3, 3], [0.9 + 0.263, 0.154, 0.412], atol=1e-15)
