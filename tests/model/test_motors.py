"""Motors that move several joints: in every function, in files, beside MuJoCo's tendons."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.robot.directions import directions_along, next_directions

ROW = np.array([0.0, 0.0, 0.0, 0.0, 1.0, -0.5])
SMOOTH = {"friction_speed": 0.01}


@pytest.fixture(scope="module")
def bare() -> lw.Robot:
    return lw.load("ur10e")


@pytest.fixture(scope="module")
def motor(bare) -> lw.Motor:
    joints = {name: float(x) for name, x in zip(bare.joint_names, ROW, strict=True) if x}
    return lw.Motor("wrist motor", joints, 0.3, 0.7, (0.5, 0.4), SMOOTH)


@pytest.fixture(scope="module")
def robot(bare, motor) -> lw.Robot:
    return bare.with_motors([motor])


@pytest.fixture(scope="module")
def state(bare) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, 8, bare.dof))


def test_torques_are_those_of_the_sum(bare, robot, state):
    q, qd, qdd = state
    v = qd @ ROW
    d = v / np.hypot(v, 0.01)
    resisted = 0.3 * (qdd @ ROW) + 0.7 * v + np.where(d > 0, 0.5, 0.4) * d
    expected = bare.inverse_dynamics(q, qd, qdd) + resisted[:, None] * ROW
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), expected, atol=1e-12)
    np.testing.assert_allclose(robot.regressor(q, qd, qdd) @ robot.parameters, expected, atol=1e-11)
    M = bare.mass_matrix(q) + 0.3 * np.outer(ROW, ROW)
    np.testing.assert_allclose(robot.mass_matrix(q), M, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["kalman", "compound_link", "conjugate_gradient"])
def test_accelerations_undo_torques(robot, state, algorithm):
    q, qd, qdd = state
    found = robot.forward_dynamics(q, qd, robot.inverse_dynamics(q, qd, qdd), algorithm=algorithm)
    np.testing.assert_allclose(found, qdd, atol=1e-9)


def test_it_has_no_coordinate_and_no_tip_of_its_own(bare, robot):
    assert robot.dof == bare.dof
    assert robot.leaf_names == bare.leaf_names
    assert robot.with_motors(()) == bare


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_files_keep_it(robot, tmp_path, ending):
    more = lw.Motor("second", {robot.joint_names[0]: 2.0, robot.joint_names[1]: 1.0}, 0.1, offset=0.25)
    both = robot.with_motors([*robot.motors, more])
    lw.save(both, tmp_path / f"arm.{ending}")
    assert lw.load(tmp_path / f"arm.{ending}") == both


def test_other_readers_get_plain_friction(robot, motor, tmp_path):
    pin = pytest.importorskip("pinocchio")
    lw.save(robot, tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    assert model.nv == robot.dof
    np.testing.assert_allclose(model.damping, 0.7 * ROW**2, atol=1e-12)
    np.testing.assert_allclose(model.upperDryFrictionLimit, 0.45 * np.abs(ROW), atol=1e-12)


def test_mujoco_has_it_as_a_tendon(bare, motor, state, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot = bare.with_motors([lw.Motor("tendon", motor.joints, 0.3, 0.7)])
    lw.save(robot, tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = state[:, 0]
    mujoco.mj_inverse(model, data)
    np.testing.assert_allclose(data.qfrc_inverse, robot.inverse_dynamics(*state[:, 0]), rtol=1e-8, atol=1e-8)
    # without the copy of the robot that only Linkwise reads
    text = (tmp_path / "arm.xml").read_text()
    start, end = text.index("  <custom>"), text.index("</custom>") + len("</custom>")
    (tmp_path / "plain.xml").write_text(text[:start] + text[end:])
    (read,) = lw.load(tmp_path / "plain.xml").motors
    assert (read.joints, read.rotor_inertia, read.viscous_friction) == (motor.joints, 0.3, 0.7)


def test_a_locked_joint_is_part_of_the_offset(robot, motor):
    fifth, sixth = motor.joints
    (left,) = robot.lock({fifth: 0.3}).motors
    assert (left.joints, left.offset) == ({sixth: -0.5}, 0.3)
    assert robot.lock({fifth: 0.3, sixth: 0.1}).motors == ()
    assert robot.with_base("floating").motors == robot.motors


def test_directions_follow_the_sum(bare, motor):
    robot = bare.with_motors(
        [lw.Motor("slow", motor.joints, coulomb_friction=(1.0, 1.0), terms={"presliding_distance": 0.1})]
    )
    t = np.linspace(0, 3, 200)[:, None]
    q = np.sin(t) * np.linspace(0.5, 1.0, bare.dof)
    qd = np.cos(t) * np.linspace(0.5, 1.0, bare.dof)
    found = directions_along(robot, q, qd)
    assert found.shape == (200, bare.dof + 1)
    p, d = q @ ROW, found[:, -1]
    expected = np.clip(d[:-1] + np.diff(p) / 0.1, -1, 1)
    np.testing.assert_allclose(d[1:], expected, atol=1e-12)
    step = next_directions(robot)(found[5], q[6] - q[5], qd[6])
    np.testing.assert_allclose(step, found[6], atol=1e-12)
    along = robot.kernel("inverse_dynamics", inputs=("direction",))(q, qd, 0 * q, found)
    np.testing.assert_allclose(along - bare.inverse_dynamics(q, qd, 0 * q), d[:, None] * ROW, atol=1e-12)


def test_errors_name_the_motor(bare):
    with pytest.raises(lw.UnknownNameError, match="motor 'm': no joint 'elbow' with a coordinate"):
        bare.with_motors([lw.Motor("m", {"elbow": 1.0})])
    with pytest.raises(lw.ModelError, match="motor 'm': it moves no joint"):
        bare.with_motors([lw.Motor("m", {})])
