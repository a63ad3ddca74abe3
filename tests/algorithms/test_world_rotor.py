"""Armature of MuJoCo's free joints, an inertia without weight along the axes of the world, in every function."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named

mujoco = pytest.importorskip("mujoco")

ARMATURE = 0.7
XML = f"""<mujoco><worldbody><body name="trunk" pos="0 0 1">
  <joint name="root" type="free" armature="{ARMATURE}"/>
  <geom type="box" size=".2 .1 .05" pos=".05 .02 0"/>
  <body name="leg" pos=".1 0 0"><joint name="hip" axis="0 1 .3" armature=".1"/>
  <geom type="capsule" size=".03 .1" pos="0 0 -.1"/>
  <body name="foot" pos="0 0 -.2"><joint name="knee" axis="1 0 0" damping=".2"/>
  <geom size=".05" pos="0 .02 -.1"/></body>
  </body></body></worldbody></mujoco>"""
STEP, DIFFERENCE = 1e-6, 1e-6


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    return lw.Robot.from_model(read_mjcf(XML.encode(), "arm.xml"))


@pytest.fixture(scope="module")
def state(robot):
    rng = np.random.default_rng(2)
    return robot.random(rng), *rng.normal(size=(2, robot.dof))


def value(robot, name, algorithm=None, **given):
    row = function_named(name)
    found = arrays.run_on_arrays(row, Setting(robot), row.algorithm(algorithm), given)
    return list(found.values())


def test_torques_and_mass_matrix_are_those_of_mujoco(robot, state):
    q, qd, qdd = state
    peer = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(peer)
    x, y, z, w = q[3:7]
    R = lw.Transform.from_quaternion((0, 0, 0), (w, x, y, z)).rotation
    turn, rest = np.eye(robot.dof), np.zeros(robot.dof)
    turn[:6, :6] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
    rest[:3] = R @ np.cross(qd[:3], qd[3:6])
    data.qpos[:] = [*q[:3], w, x, y, z, *q[7:]]
    data.qvel[:], data.qacc[:] = turn @ qd, turn @ qdd + rest
    mujoco.mj_inverse(peer, data)
    M = np.zeros((peer.nv, peer.nv))
    mujoco.mj_fullM(peer, data, M)
    np.testing.assert_allclose(value(robot, "mass_matrix", q=q)[0], turn.T @ M @ turn, atol=1e-12)
    for algorithm in robot.algorithms("inverse_dynamics"):
        tau = value(robot, "inverse_dynamics", algorithm, q=q, qd=qd, qdd=qdd)[0]
        np.testing.assert_allclose(tau, turn.T @ data.qfrc_inverse, atol=1e-11)
    # it has no weight: the mass and its centre are those of the bodies alone
    com = value(robot, "center_of_mass", q=q)[0]
    np.testing.assert_allclose(com, data.subtree_com[1], atol=1e-12)


def test_accelerations_undo_torques(robot, state):
    q, qd, qdd = state
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)[0]
    for algorithm in ("kalman", "compound_link"):
        found = value(robot, "forward_dynamics", algorithm, q=q, qd=qd, tau=tau)[0]
        np.testing.assert_allclose(found, qdd, atol=1e-8)
    found = robot.forward_dynamics(q, qd, tau, algorithm="conjugate_gradient")
    np.testing.assert_allclose(found, qdd, atol=1e-8)


def test_parts_of_the_torques_add_up(robot, state):
    q, qd, qdd = state
    C = value(robot, "coriolis_matrix", q=q, qd=qd)[0]
    for algorithm in robot.algorithms("velocity_torques"):
        c = value(robot, "velocity_torques", algorithm, q=q, qd=qd)[0]
        np.testing.assert_allclose(C @ qd, c, atol=1e-11)
    g = value(robot, "gravity_torques", q=q)[0]
    np.testing.assert_allclose(value(robot, "bias_torques", q=q, qd=qd)[0], c + g, atol=1e-11)
    Y = value(robot, "regressor", q=q, qd=qd, qdd=qdd)[0]
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)[0]
    np.testing.assert_allclose(Y @ robot.parameters, tau, atol=1e-11)


def test_derivatives_are_differences(robot, state):
    q, qd, qdd = state
    by_qd = value(robot, "inverse_dynamics_derivatives", q=q, qd=qd, qdd=qdd)[1]
    for j, unit in enumerate(np.eye(robot.dof)):
        ahead, behind = (
            value(robot, "inverse_dynamics", q=q, qd=qd + sign * STEP * unit, qdd=qdd)[0] for sign in (1, -1)
        )
        np.testing.assert_allclose(by_qd[:, j], (ahead - behind) / (2 * STEP), atol=DIFFERENCE)


def test_compiled_code_has_it(robot, state):
    q, qd, qdd = state
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)[0]
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, atol=1e-11)


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_files_keep_it(robot, tmp_path, ending):
    robot.save(tmp_path / f"arm.{ending}")
    assert lw.load(tmp_path / f"arm.{ending}").content() == robot.content()


def test_mujoco_reads_it_back(robot, tmp_path):
    robot.save(tmp_path / "arm.xml", strict=True)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml")).dof_armature[0] == ARMATURE


def test_other_joints_have_no_such_term(robot):
    with pytest.raises(lw.ModelError, match="for floating joints"):
        robot.with_parameters({"hip.world_rotor_inertia": 0.1})
