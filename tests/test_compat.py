"""Other libraries' names and orders, against those libraries."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import compat
from linkwise.model import Inertia

RNG = np.random.default_rng(3)
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}  # two engines, a few hundred roundings each


@pytest.fixture(scope="module")
def body() -> Inertia:
    R = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    return Inertia.from_com(2.5, (0.1, -0.2, 0.3), R @ np.diag((0.2, 0.3, 0.4)) @ R.T)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A tree with continuous and prismatic joints, here and in Pinocchio, from one file."""
    pin = pytest.importorskip("pinocchio")
    robot = lw.random_robot(11, 7, tree=True)
    path = tmp_path_factory.mktemp("compat") / "tree.urdf"
    lw.save(robot, path)
    text = path.read_text().replace('type="revolute"', 'type="continuous"', 2)
    path.write_text(text)
    model = pin.buildModelFromUrdf(str(path))
    return lw.load(path), model


def states(robot, count=4):
    return RNG.normal(size=(3, count, robot.dof))


def test_pinocchio_functions(pair):
    pin = pytest.importorskip("pinocchio")
    robot, model = pair
    data = model.createData()
    order = compat.pinocchio_order(robot, model)
    back = np.argsort(order)
    q, v, a = states(robot)
    model.armature[:] = np.array([joint.rotor_inertia for joint in robot.moving_joints])[back]
    for k in range(len(q)):
        theirs = compat.q_to_pinocchio(robot, model, q[k])
        args = (model, data, theirs)
        mixed = np.ix_(order, order)
        tau = pin.rnea(*args, v[k][back], a[k][back])[order]
        np.testing.assert_allclose(compat.rnea(robot, q[k], v[k], a[k]), tau, **TOLERANCE)
        np.testing.assert_allclose(compat.aba(robot, q[k], v[k], tau), a[k], rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(compat.crba(robot, q[k]), pin.crba(*args)[mixed], **TOLERANCE)
        np.testing.assert_allclose(
            compat.computeMinverse(robot, q[k]), pin.computeMinverse(*args)[mixed], rtol=1e-7
        )
        np.testing.assert_allclose(
            compat.nonLinearEffects(robot, q[k], v[k]), pin.nle(*args, v[k][back])[order], **TOLERANCE
        )
        gravity = pin.computeGeneralizedGravity(*args)[order]
        np.testing.assert_allclose(compat.computeGeneralizedGravity(robot, q[k]), gravity, **TOLERANCE)
        C = compat.computeCoriolisMatrix(robot, q[k], v[k])
        np.testing.assert_allclose(C @ v[k], pin.nle(*args, v[k][back])[order] - gravity, **TOLERANCE)
        dq, dv, M = pin.computeRNEADerivatives(*args, v[k][back], a[k][back])
        for ours, wanted in zip(
            compat.computeRNEADerivatives(robot, q[k], v[k], a[k]), (dq, dv, M), strict=True
        ):
            np.testing.assert_allclose(ours, wanted[mixed], rtol=1e-8, atol=1e-8)


def test_configurations_there_and_back(pair):
    robot, model = pair
    q = RNG.uniform(-3, 3, size=(5, robot.dof))
    theirs = compat.q_to_pinocchio(robot, model, q)
    assert theirs.shape == (5, model.nq)
    assert model.nq == robot.dof + 2
    np.testing.assert_allclose(compat.q_from_pinocchio(robot, model, theirs), q, atol=1e-15)


def test_pinocchio_parameters(body):
    pin = pytest.importorskip("pinocchio")
    theirs = pin.Inertia(body.mass, body.com, body.matrix_about_com).toDynamicParameters()
    np.testing.assert_allclose(compat.parameters_to_pinocchio(body.parameters), theirs, atol=1e-15)
    np.testing.assert_allclose(compat.parameters_from_pinocchio(theirs), body.parameters, atol=1e-15)


def test_in_parallel_shapes(pair):
    pin = pytest.importorskip("pinocchio")
    robot, model = pair
    order = compat.pinocchio_order(robot, model)
    back = np.argsort(order)
    q, v, a = states(robot, 6)
    pool = pin.ModelPool(model, 1)
    found = pin.rneaInParallel(
        1,
        pool,
        compat.columns(compat.q_to_pinocchio(robot, model, q)),
        compat.columns(v[:, back]),
        compat.columns(a[:, back]),
    )
    np.testing.assert_allclose(compat.rows(found)[:, order], compat.rnea(robot, q, v, a), **TOLERANCE)
    assert compat.columns(q).flags.f_contiguous


def test_pinocchio_jacobian(pair):
    pin = pytest.importorskip("pinocchio")
    robot, model = pair
    data = model.createData()
    order = compat.pinocchio_order(robot, model)
    q = RNG.normal(size=robot.dof)
    leaf = robot.leaf_names[0]
    frame = model.getFrameId(leaf)
    theirs = pin.computeFrameJacobian(
        model, data, compat.q_to_pinocchio(robot, model, q), frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    )
    np.testing.assert_allclose(
        compat.linear_first(robot.jacobian(q, leaf), axis=-2), theirs[:, order], atol=1e-12
    )
    np.testing.assert_allclose(
        compat.angular_first(theirs[:, order], axis=-2), robot.jacobian(q, leaf), atol=1e-12
    )


def test_mujoco_inertia(body):
    mujoco = pytest.importorskip("mujoco")
    mass, ipos, iquat, moments = compat.inertia_to_mujoco(body)
    numbers = {"pos": ipos, "quat": iquat, "diaginertia": moments}
    written = " ".join(
        f'{name}="{" ".join(repr(float(x)) for x in values)}"' for name, values in numbers.items()
    )
    text = f'<mujoco><worldbody><body><joint/><inertial mass="{mass}" {written}/></body></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    found = compat.inertia_from_mujoco(
        model.body_mass[1], model.body_ipos[1], model.body_iquat[1], model.body_inertia[1]
    )
    np.testing.assert_allclose(found.parameters, body.parameters, atol=1e-14)


def test_mujoco_quaternions_are_ours():
    mujoco = pytest.importorskip("mujoco")
    for _ in range(20):
        quaternion = RNG.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        theirs = np.zeros(9)
        mujoco.mju_quat2Mat(theirs, quaternion)
        np.testing.assert_allclose(
            compat.matrix_from_quaternion(quaternion), theirs.reshape(3, 3), atol=1e-15
        )


def test_quaternions_there_and_back():
    quaternions = RNG.normal(size=(200, 4))
    quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)
    quaternions *= np.where(quaternions[:, :1] < 0, -1, 1)
    matrices = compat.matrix_from_quaternion(quaternions)
    np.testing.assert_allclose(compat.quaternion_from_matrix(matrices), quaternions, atol=1e-14)
    half_turns = compat.matrix_from_quaternion(np.eye(4))
    np.testing.assert_allclose(np.abs(compat.quaternion_from_matrix(half_turns)), np.eye(4), atol=1e-15)
    np.testing.assert_array_equal(compat.xyzw_from_wxyz([1, 2, 3, 4]), [2, 3, 4, 1])
    np.testing.assert_array_equal(compat.wxyz_from_xyzw([2, 3, 4, 1]), [1, 2, 3, 4])


def test_scipy_quaternions_have_the_scalar_last():
    Rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    turns = Rotation.random(20, rng=1)
    ours = compat.quaternion_from_matrix(turns.as_matrix())
    theirs = turns.as_quat(canonical=True)
    np.testing.assert_allclose(compat.xyzw_from_wxyz(ours), theirs, atol=1e-14)


def test_toolbox_names():
    robot = lw.load("puma560")
    q, qd, qdd = states(robot)
    np.testing.assert_array_equal(compat.rne(robot, q, qd, qdd), robot.inverse_dynamics(q, qd, qdd))
    np.testing.assert_allclose(
        compat.accel(robot, q, qd, compat.rne(robot, q, qd, qdd)), qdd, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(compat.inertia(robot, q), robot.mass_matrix(q))
    np.testing.assert_array_equal(compat.gravload(robot, q), robot.gravity_torques(q))
    c = np.einsum("bij,bj->bi", compat.coriolis(robot, q, qd), qd)
    np.testing.assert_allclose(c, robot.velocity_torques(q, qd), atol=1e-12)


def test_toolbox_values_of_the_puma():
    """From the tests of robotics-toolbox-python: gravload at its nominal pose."""
    robot = lw.load("puma560")
    nominal = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    wanted = [0.0, 31.6399, 6.0351, 0.0, 0.0283, 0.0]
    np.testing.assert_allclose(compat.gravload(robot, nominal), wanted, atol=5e-4)


def test_toolbox_inertia_and_wrench(body):
    m, r, six = compat.inertia_to_rtb(body)
    found = compat.inertia_from_rtb(m, r, six)
    np.testing.assert_allclose(found.parameters, body.parameters, atol=1e-15)
    np.testing.assert_array_equal(compat.wrench_from_rtb([1, 2, 3, 4, 5, 6]), [-4, -5, -6, -1, -2, -3])


@pytest.mark.parametrize(
    "call",
    [
        lambda: compat.parameters_to_pinocchio(np.zeros(9)),
        lambda: compat.xyzw_from_wxyz(np.zeros(3)),
        lambda: compat.linear_first(np.zeros(5)),
        lambda: compat.columns(np.zeros(5)),
        lambda: compat.quaternion_from_matrix(np.zeros((2, 3))),
    ],
)
def test_wrong_shapes_are_refused(call):
    with pytest.raises(lw.ShapeError, match="expected"):
        call()
