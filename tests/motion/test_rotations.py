"""Rotation vectors and Euler angles give back what they were made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise import motion
from linkwise.motion.kinematics.rotations import check_poses


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(0, np.pi))
def test_rotation_vector_is_the_inverse_of_turn_about(direction, angle):
    length = np.linalg.norm(direction)
    if length < 1e-3:
        return
    vector = np.array(direction) / length * angle
    R = motion.turn_about(vector)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0)
    back = motion.rotation_vector(R)
    np.testing.assert_allclose(motion.turn_about(back), R, atol=1e-14)
    if angle < np.pi - 1e-6:
        np.testing.assert_allclose(back, vector, atol=1e-13)


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), np.array([1, 1, 0]) / np.sqrt(2)])
def test_half_a_turn_is_found(axis):
    back = motion.rotation_vector(motion.turn_about(np.pi * axis))
    assert np.linalg.norm(back) == pytest.approx(np.pi)
    assert abs(back @ axis) == pytest.approx(np.pi)


def test_tiny_turns_keep_their_digits():
    vector = np.array([1e-9, -2e-9, 3e-9])
    np.testing.assert_allclose(motion.rotation_vector(motion.turn_about(vector)), vector, rtol=1e-6)


@given(st.floats(-3.1, 3.1), st.floats(0, np.pi), st.floats(-3.1, 3.1))
def test_zyz_angles_give_the_rotation_back(alpha, beta, gamma):
    R = motion.euler_zyz([alpha, beta, gamma])
    np.testing.assert_allclose(motion.euler_zyz(motion.zyz_angles(R)), R, atol=1e-13)


def test_zyz_is_z_then_y_then_z():
    R = motion.euler_zyz(np.radians([45, 60, 90]))
    np.testing.assert_allclose(motion.zyz_angles(R), np.radians([45, 60, 90]))
    np.testing.assert_allclose(R[:, 2], [np.sin(np.pi / 3) * np.cos(np.pi / 4)] * 2 + [0.5])
    np.testing.assert_allclose(R[2], [0.0, np.sin(np.pi / 3), 0.5], atol=1e-15)


def test_every_entry_of_a_rotation_is_checked():
    """Scaled, sheared and mirrored poses are refused, whichever entry is wrong and wherever in a batch."""
    poses = np.tile(np.eye(4), (5, 1, 1))
    check_poses("poses", poses)
    for i in range(3):
        for j in range(3):
            wrong = poses.copy()
            wrong[3, i, j] += 1e-3
            with pytest.raises(ValueError, match="poses"):
                check_poses("poses", wrong)
        wrong = poses.copy()
        wrong[1, i, i] = -1.0
        with pytest.raises(ValueError, match="poses"):
            check_poses("poses", wrong)
