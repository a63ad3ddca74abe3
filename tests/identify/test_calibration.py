"""Geometric calibration on robots whose true geometry is known; against SciPy and finite differences."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.identify import IdentificationError, LogError, calibrate, read_poses
from linkwise.identify.kinematic_chain import KinematicChain, geometric_parameters, path_to
from linkwise.model.transform import Transform
from linkwise.motion.kinematics.rotations import rotation_vector, turn_about

COUNT = 60
NOISE, TURN = 5e-5, 1e-4  # [m], [rad] of a laser tracker
BASE = Transform.from_rpy((1.0, 2.0, 0.3), (0.5, -0.3, 2.0)).matrix
TOOL = Transform.from_rpy((0.02, -0.03, 0.15), (0.1, 0.2, 0.3)).matrix
SURE = 4.5


def bent(robot: lw.Robot, seed: int = 0, size: float = 1.0) -> lw.Robot:
    """A robot whose joints are about a millimetre and 3 mrad from where its file says."""
    rng = np.random.default_rng(seed)
    joints = [
        replace(
            joint,
            origin=joint.origin
            @ Transform.from_rpy(size * 1e-3 * rng.normal(size=3), size * 3e-3 * rng.normal(size=3)),
        )
        if joint.moves
        else joint
        for joint in robot.joints
    ]
    return robot._with(joints=joints)


def measured(robot: lw.Robot, seed: int, count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.8, 1.8, (count, robot.dof))
    poses = BASE @ robot.pose(q) @ TOOL
    poses[:, :3, 3] += NOISE * rng.normal(size=(count, 3))
    poses[:, :3, :3] = turn_about(TURN * rng.normal(size=(count, 3))) @ poses[:, :3, :3]
    return q, poses


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma560")


@pytest.fixture(scope="module")
def true(puma) -> lw.Robot:
    return bent(puma)


@pytest.fixture(scope="module")
def data(true):
    return measured(true, 1)


@pytest.fixture(scope="module")
def found(puma, data):
    return calibrate(puma, *data)


def test_held_out_poses_are_as_good_as_the_measurement(found):
    assert found.held_out == COUNT // 4
    assert found.before.distance > 2e-3
    assert found.after.distance < 1.3 * np.sqrt(3) * NOISE
    assert found.after.angle < 1.3 * np.sqrt(3) * TURN
    # six revolute joints: four parameters each, and six of the base: Everett, Driels and Mooring 1987
    assert len(found.estimate.x) == 4 * 6 + 6
    assert len(found.left_out) == 6 * 6 + 12 - 30


def test_poses_that_nobody_measured(found, true):
    q = np.random.default_rng(9).uniform(-1.8, 1.8, (100, 6))
    errors = found.poses(q)[:, :3, 3] - (BASE @ true.pose(q) @ TOOL)[:, :3, 3]
    assert np.sqrt((errors**2).sum(axis=1).mean()) < 1e-4


def test_slopes_are_those_of_differences(puma):
    q = np.random.default_rng(2).uniform(-1, 1, (3, 6))
    chain = KinematicChain.of(puma, q, "link6", BASE, TOOL)
    every = geometric_parameters(path_to(puma, "link6")[0])
    turns, shifts = chain.slopes(every)
    np.testing.assert_allclose(chain.poses(), BASE @ puma.pose(q) @ TOOL, atol=1e-12)
    h = 1e-6
    for k in range(len(every)):
        step = h * (np.arange(len(every)) == k)
        more, less = chain.corrected(every, step).poses(), chain.corrected(every, -step).poses()
        np.testing.assert_allclose(shifts[..., k], (more - less)[:, :3, 3] / (2 * h), atol=1e-8)
        turned = rotation_vector(more[:, :3, :3] @ np.swapaxes(less[:, :3, :3], 1, 2)) / (2 * h)
        np.testing.assert_allclose(turns[..., k], turned, atol=1e-8)


def test_another_solver_finds_the_same(puma, data):
    """SciPy's least squares, with differences for slopes, on positions alone and the same parameters."""
    optimize = pytest.importorskip("scipy.optimize")
    q, poses = data
    positions = poses[:, :3, 3]
    start = calibrate(puma, q, positions, tool=TOOL[:3, 3], parameters=("base", "tool"), validation=0.0)
    mine = calibrate(
        puma,
        q,
        positions,
        base=start.base,
        tool=start.tool,
        parameters=("base", "tool", "offsets"),
        validation=0.0,
    )
    chain = KinematicChain.of(puma, q, "link6", start.base, start.tool)
    every = {each.label: each for each in geometric_parameters(path_to(puma, "link6")[0])}
    kept = [every[label] for label in mine.estimate.labels]

    def residuals(x):
        return (positions - chain.corrected(kept, x).poses()[:, :3, 3]).ravel()

    other = optimize.least_squares(residuals, np.zeros(len(kept)), x_scale="jac", xtol=1e-12, ftol=1e-12)
    np.testing.assert_allclose(other.x, mine.estimate.x, atol=1e-6)
    slopes = other.jac
    sigma = np.sqrt(2 * other.cost / (other.fun.size - len(kept)))
    deviations = sigma * np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    np.testing.assert_allclose(deviations, mine.estimate.deviations, rtol=1e-3)


def test_joint_zeros_alone_are_found_within_their_intervals(puma):
    zeros = np.array([0.0, 4e-3, -3e-3, 2e-3, 5e-3, 0.0])
    rng = np.random.default_rng(4)
    q = rng.uniform(-1.8, 1.8, (COUNT, 6))
    poses = BASE @ puma.pose(q + zeros) @ TOOL
    poses[:, :3, 3] += NOISE * rng.normal(size=(COUNT, 3))
    poses[:, :3, :3] = turn_about(TURN * rng.normal(size=(COUNT, 3))) @ poses[:, :3, :3]
    found = calibrate(puma, q, poses, parameters=("base", "tool", "offsets"))
    names = [f"{joint.name}.offset" for joint in puma.moving_joints]
    assert set(found.left_out) == {names[0], names[-1]}  # the base and the tool turn as well
    for name, value in list(zip(names, zeros, strict=True))[1:-1]:
        place = found.estimate.labels.index(name)
        assert abs(found.estimate.x[place] - value) < SURE * found.estimate.deviations[place]
    # the zeros are part of the robot: the controller's positions are used as they are
    np.testing.assert_allclose(
        found.poses(q)[:, :3, 3], (BASE @ puma.pose(q + zeros) @ TOOL)[:, :3, 3], atol=1e-4
    )


def test_positions_alone_are_enough(puma, true, data):
    q, poses = data
    found = calibrate(puma, q, poses[:, :3, 3], tool=(0.0, 0.0, 0.1))
    assert len(found.estimate.x) == 4 * 6 + 3
    assert found.after.distance < 1.5 * np.sqrt(3) * NOISE
    assert found.after.angle is None


def test_the_calibrated_robot_is_saved(found, tmp_path):
    q = np.random.default_rng(3).uniform(-1, 1, (5, 6))
    for name in ("arm.urdf", "arm.toml"):
        found.save(tmp_path / name)
        again = lw.load(tmp_path / name)
        np.testing.assert_allclose(again.pose(q), found.robot.pose(q), atol=1e-12)


def test_a_slide_and_axes_that_are_not_along_coordinates():
    """A prismatic joint has a zero along its axis, and turns of it move nothing but its axis."""
    robot = lw.load("stanford") if "stanford" in lw.robots() else lw.load("scara")
    true = bent(robot, 3)
    rng = np.random.default_rng(6)
    q = rng.uniform(0.1, 0.9, (COUNT, robot.dof))
    found = calibrate(robot, q, BASE @ true.pose(q) @ TOOL)
    assert found.after.distance < 1e-8
    slides = sum(not joint.turns for joint in path_to(robot, found.frame)[0])
    assert slides
    assert len(found.estimate.x) <= 4 * (robot.dof - slides) + 2 * slides + 6


def test_errors_are_radians_and_metres_along_any_axes():
    """Joints with axes in every direction: an error of size v moves its origin by v, and is read off again."""
    rng = np.random.default_rng(8)
    axes = [*np.eye(3), *(a / np.linalg.norm(a) for a in rng.normal(size=(5, 3)))]
    joints = [
        lw.Joint(f"joint{k}", "revolute" if k % 3 else "prismatic", f"link{k}", f"link{k + 1}", axis=tuple(a))
        for k, a in enumerate(axes)
    ]
    parameters = geometric_parameters(joints)
    assert len({each.label for each in parameters}) == len(parameters) == 6 * (len(axes) + 2)
    elements = BASE, *(joint.origin.matrix for joint in joints), TOOL
    exact = KinematicChain(tuple(joints), elements, np.zeros((len(joints), 1, 4, 4)), ())
    for k, each in enumerate(parameters):
        size = 1e-3 * (k + 1)
        moved = exact.corrected([each], np.array([size]))
        error = np.linalg.inv(exact.elements[each.element]) @ moved.elements[each.element]
        turn = np.linalg.norm(rotation_vector(error[:3, :3]))
        shift = np.linalg.norm(error[:3, 3])
        assert (turn, shift) == pytest.approx((size, 0.0) if each.turns else (0.0, size), abs=1e-12), (
            each.label
        )
        read = moved.errors_from(exact, parameters)
        np.testing.assert_allclose(read, size * (np.arange(len(parameters)) == k), atol=1e-12)


def test_a_wrong_row_is_named(puma, data):
    q, poses = data
    poses = poses.copy()
    poses[8, :3, 3] += 0.01
    found = calibrate(puma, q, poses, validation=0.0)
    assert found.outliers == (8,)
    assert "9 (counted from 1)" in found.words()[-1]


def test_what_cannot_be_meant_is_refused(puma, data):
    q, poses = data
    for arguments, words in (
        ((q, poses[:, :3]), "poses: expected shape"),
        ((q[:, :5], poses), "q: expected shape"),
        ((q[:4], poses[:4]), "4 measurements for|3 measurements for"),
        ((q, 2 * poses), "no rotation and translation"),
        ((q, np.where(np.arange(COUNT)[:, None, None] == 3, np.nan, poses)), "measurement 4 is not finite"),
    ):
        with pytest.raises(IdentificationError, match=words):
            calibrate(puma, *arguments)
    with pytest.raises(IdentificationError, match="does not move"):
        calibrate(puma, q, poses, frame=puma.base)
    with pytest.raises(lw.LinkwiseError, match="no 'offset'"):
        calibrate(puma, q, poses, parameters=("offset",))


def table(path, q, poses, orientation: str, scale: float = 1.0, unit: str = ""):
    names = [f"q{k + 1}" for k in range(q.shape[1])] + [f"{axis}{unit}" for axis in "xyz"]
    columns = [q, scale * poses[:, :3, 3]]
    vectors = rotation_vector(poses[:, :3, :3])
    if orientation == "vector":
        columns, names = [*columns, vectors], [*names, "rx", "ry", "rz"]
    if orientation == "rpy":
        angles = [Transform(T[:3, :3], T[:3, 3]).rpy for T in poses]
        columns, names = [*columns, np.degrees(angles)], [*names, "roll [deg]", "pitch [deg]", "yaw [deg]"]
    if orientation == "quaternion":
        half = np.linalg.norm(vectors, axis=1, keepdims=True) / 2
        xyz = vectors / (2 * half) * np.sin(half)
        columns, names = [*columns, xyz, np.cos(half)], [*names, "qx", "qy", "qz", "qw"]
    np.savetxt(
        path, np.column_stack(columns), delimiter=",", header=",".join(names), comments="", fmt="%.17g"
    )
    return path


@pytest.mark.parametrize("orientation", ["vector", "rpy", "quaternion", "none"])
def test_tables_of_poses(puma, data, tmp_path, orientation):
    q, poses = data
    path = table(tmp_path / "poses.csv", q, poses, orientation, 1e3, " [mm]")
    read_q, found = read_poses(path, puma)
    np.testing.assert_allclose(read_q, q, atol=1e-14)
    np.testing.assert_allclose(found, poses[:, :3, 3] if orientation == "none" else poses, atol=1e-12)


def test_odd_tables_are_refused(puma, data, tmp_path):
    q, poses = data
    with pytest.raises(LogError, match=r"look like mm"):
        read_poses(table(tmp_path / "mm.csv", q, poses, "none", 1e3), puma)
    with pytest.raises(LogError, match="no unit 'deg'"):
        read_poses(table(tmp_path / "deg.csv", q, poses, "none", 1.0, " [deg]"), puma)
    (tmp_path / "q.csv").write_text("q1,q2,q3,q4,q5,q6\n" + "0,0,0,0,0,0\n" * 5)
    with pytest.raises(LogError, match="no columns of measured positions"):
        read_poses(tmp_path / "q.csv", puma)
    (tmp_path / "x.csv").write_text("x,y,z\n" + "0,0,0\n" * 5)
    with pytest.raises(LogError, match="no columns of joint positions"):
        read_poses(tmp_path / "x.csv", puma)
