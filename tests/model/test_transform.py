"""Poses and their angles."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.model.transform import Transform, cosine, sine, turn

angles = st.floats(-math.pi, math.pi)


def test_rpy_turns_about_fixed_axes():
    pose = Transform.from_rpy((1, 2, 3), (math.pi / 2, 0, math.pi / 2))
    # y goes to z by the roll and stays there under the yaw; z goes to −y, then to x
    np.testing.assert_array_equal(pose.rotation @ [0, 1, 0], [0, 0, 1])
    np.testing.assert_array_equal(pose.rotation @ [0, 0, 1], [1, 0, 0])
    np.testing.assert_array_equal(pose.matrix @ [0, 0, 0, 1], [1, 2, 3, 1])


@given(angles, angles, angles)
def test_rpy_gives_the_rotation_back(roll, pitch, yaw):
    pose = Transform.from_rpy(rpy=(roll, pitch, yaw))
    np.testing.assert_allclose(Transform.from_rpy(rpy=pose.rpy).rotation, pose.rotation, rtol=0, atol=2e-15)


@given(
    angles, angles, st.sampled_from([1e-17, 1e-16, 1e-12, 1e-10, 1e-9, 1e-8, 1e-5]), st.sampled_from([-1, 1])
)
def test_rpy_near_gimbal_lock(roll, yaw, distance, sign):
    pose = Transform.from_rpy(rpy=(roll, sign * (math.pi / 2 - distance), yaw))
    np.testing.assert_allclose(Transform.from_rpy(rpy=pose.rpy).rotation, pose.rotation, rtol=0, atol=2e-15)


@pytest.mark.parametrize("quarters", list(itertools.product(range(-1, 3), repeat=3)))
def test_right_angles_come_back_exactly(quarters):
    pose = Transform.from_rpy(rpy=[math.pi / 2 * k for k in quarters])
    assert set(np.abs(pose.rotation).flat) == {0.0, 1.0}
    np.testing.assert_array_equal(Transform.from_rpy(rpy=pose.rpy).rotation, pose.rotation)


def test_cosine_and_sine_are_exact_at_right_angles_only():
    assert [cosine(k * math.pi / 2) for k in range(-2, 5)] == [-1, 0, 1, 0, -1, 0, 1]
    assert [sine(k * math.pi / 2) for k in range(-2, 5)] == [0, -1, 0, 1, 0, -1, 0]
    for angle in (1.0, 1.5707963, 1e-300, 1e9, 1e17, -3e22):
        assert (cosine(angle), sine(angle)) == (math.cos(angle), math.sin(angle))


@pytest.mark.parametrize("angle", [math.nan, math.inf, -math.inf])
def test_an_angle_is_finite(angle):
    with pytest.raises(ValueError, match="angle: expected a finite number"):
        turn(0, angle)


@given(angles, angles, angles, st.tuples(*[st.floats(-5, 5)] * 3))
def test_inverse_and_product(roll, pitch, yaw, xyz):
    pose = Transform.from_rpy(xyz, (roll, pitch, yaw))
    np.testing.assert_allclose((pose @ pose.inverse()).matrix, np.eye(4), atol=1e-14)


def test_about_an_axis_and_along_it():
    np.testing.assert_array_equal(Transform.about((0, 0, 1), 0.3).rotation, turn(2, 0.3))
    np.testing.assert_array_equal(Transform.along((0, 0, 1), 0.3).translation, [0, 0, 0.3])


def test_quaternions_are_normalised():
    pose = Transform.from_quaternion((0, 0, 0), (2, 0, 0, 2))
    np.testing.assert_allclose(pose.rotation, turn(2, math.pi / 2), atol=1e-15)


def test_a_pose_cannot_be_changed():
    pose = Transform.identity()
    with pytest.raises(ValueError, match="read-only"):
        pose.rotation[0, 0] = 2
    with pytest.raises(ValueError, match=r"rotation: expected shape \(3, 3\), got \(2, 2\)"):
        Transform(np.eye(2), np.zeros(3))
