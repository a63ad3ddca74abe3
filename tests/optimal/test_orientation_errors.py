"""Rotation vectors and quaternions over scalars: beside SciPy, and slopes beside differences."""

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.optimal.rotations import (
    matrix_of_quaternion,
    product_of_quaternions,
    quaternion_of,
    rotation_vector,
    rotation_vector_slopes,
)


def vectors():
    """Turns of all sizes, near none and near half a turn, also about the axes."""
    rng = np.random.default_rng(0)
    for angle in (0.0, 1e-9, 1e-4, 0.01, 0.3, 1.0, 2.5, 3.0, 3.14):
        for axis in [*rng.normal(size=(4, 3)), *np.eye(3), *-np.eye(3)]:
            yield angle * axis / np.linalg.norm(axis)


def test_rotation_vectors_and_quaternions_are_those_of_scipy():
    for w in vectors():
        turn = Rotation.from_rotvec(w)
        R = turn.as_matrix()
        assert np.allclose(np.array(rotation_vector(R.tolist()), float), w, rtol=1e-9, atol=1e-14)
        q = quaternion_of(R)
        assert abs(abs(q @ turn.as_quat()) - 1.0) < 1e-12
        assert np.allclose(np.array(matrix_of_quaternion((3.0 * q).tolist()), float), R, atol=1e-12)
        other = Rotation.from_rotvec(w[::-1] + [0.1, 0.0, -0.2])
        both = product_of_quaternions(q.tolist(), other.as_quat().tolist())
        assert abs(abs(np.array(both) @ (turn * other).as_quat()) - 1.0) < 1e-12


def test_slopes_of_rotation_vectors_are_those_of_differences():
    h = 1e-6
    for w in vectors():
        if np.linalg.norm(w) > 3.1:
            continue  # half a turn is a jump
        turn = Rotation.from_rotvec(w)
        ends = [[(turn * Rotation.from_rotvec(s * h * e)).as_rotvec() for s in (-1, 1)] for e in np.eye(3)]
        wanted = np.array([(b - a) / (2 * h) for a, b in ends]).T
        found = np.array(rotation_vector_slopes(w.tolist()), float)
        assert np.allclose(found, wanted, atol=1e-5 * (1.0 + np.abs(wanted).max())), w
