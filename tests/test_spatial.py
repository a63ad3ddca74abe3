"""Vectors, matrices and inertias over scalars, against plain NumPy matrices; and the scalars themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise import scalar
from linkwise.spatial import (
    ArticulatedInertia,
    Matrix,
    RigidInertia,
    Spatial,
    Symmetric,
    Vector,
    articulated,
    diagonal,
    outer,
    shifted_square,
    skew,
    zero_articulated,
    zero_rigid,
    zero_spatial,
    zero_symmetric,
    zero_vector,
)

RNG = np.random.default_rng(0)
ANGLE = 0.7
C, S = math.cos(ANGLE), math.sin(ANGLE)
TURNS = {
    "turn_x": np.array([[1, 0, 0], [0, C, -S], [0, S, C]]),
    "turn_z": np.array([[C, -S, 0], [S, C, 0], [0, 0, 1]]),
}


def vector() -> Vector:
    return Vector(*RNG.normal(size=3).tolist())


def matrix() -> Matrix:
    return Matrix(*RNG.normal(size=9).tolist())


def symmetric() -> Symmetric:
    return Symmetric(*RNG.normal(size=6).tolist())


def spatial() -> Spatial:
    return Spatial(vector(), vector())


def rigid() -> RigidInertia:
    return RigidInertia(float(RNG.uniform(1, 2)), vector(), symmetric())


def general() -> ArticulatedInertia:
    return ArticulatedInertia(symmetric(), matrix(), symmetric())


def array(x) -> np.ndarray:
    """The same thing as a NumPy array."""
    if isinstance(x, Vector):
        return np.array([*x])
    if isinstance(x, Matrix):
        return np.array([*x]).reshape(3, 3)
    if isinstance(x, Symmetric):
        return array(x.matrix())
    if isinstance(x, Spatial):
        return np.concatenate([array(x.angular), array(x.linear)])
    if isinstance(x, RigidInertia):
        H = array(skew(x.first_moment))
        return np.block([[array(x.second_moment), H], [H.T, x.mass * np.eye(3)]])
    return np.block([[array(x.A), array(x.B)], [array(x.B).T, array(x.C)]])


def close(found, wanted) -> None:
    np.testing.assert_allclose(array(found), wanted, rtol=0, atol=1e-13)


def twice(R: np.ndarray) -> np.ndarray:
    return np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])


@pytest.mark.parametrize("make", [vector, matrix, symmetric, spatial])
def test_sums_differences_and_multiples(make):
    a, b = make(), make()
    close(a + b, array(a) + array(b))
    close(a - b, array(a) - array(b))
    if make is not matrix:
        close(1.7 * a, 1.7 * array(a))
    if make in (vector, spatial):
        close(-a, -array(a))
        assert a.dot(b) == pytest.approx(array(a) @ array(b), abs=1e-14)


@pytest.mark.parametrize("turn", TURNS)
def test_turns(turn):
    R = TURNS[turn]
    for make in (vector, spatial):
        x = make()
        close(getattr(x, turn)(C, S), (R if make is vector else twice(R)) @ array(x))
    for make in (matrix, symmetric):
        x = make()
        close(getattr(x, turn)(C, S), R @ array(x) @ R.T)
    for make in (rigid, general):
        x = make()
        close(getattr(x, turn)(C, S), twice(R) @ array(x) @ twice(R).T)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("make", [vector, matrix, symmetric, spatial, rigid, general])
def test_a_turn_and_its_opposite(turn, make):
    x = make()
    close(getattr(getattr(x, turn)(C, S), turn)(C, -S), array(x))


def test_products():
    a, b, M, N, A = vector(), vector(), matrix(), matrix(), symmetric()
    close(a.cross(b), np.cross(array(a), array(b)))
    close(skew(a) @ b, np.cross(array(a), array(b)))
    close(M @ a, array(M) @ array(a))
    close(A @ a, array(A) @ array(a))
    close(M.times(N), array(M) @ array(N))
    close(M.transposed(), array(M).T)
    close(M.transposed_times(a), array(M).T @ array(a))
    close(outer(a, 2.5 * a), 2.5 * np.outer(array(a), array(a)))
    close(diagonal(3.0), 3.0 * np.eye(3))


def test_shifted_square():
    l, h = vector(), vector()
    L, H = array(skew(l)), array(skew(h))
    close(shifted_square(l, h), -L @ H - H @ L)


@pytest.mark.parametrize("make", [rigid, general])
def test_inertias(make):
    P, Q, motion, l = make(), make(), spatial(), vector()
    close(P @ motion, array(P) @ array(motion))
    close(P + Q, array(P) + array(Q))
    phi = np.block([[np.eye(3), array(skew(l))], [np.zeros((3, 3)), np.eye(3)]])
    close(P.shifted(l), phi @ array(P) @ phi.T)
    close(P.shifted(l).shifted(-l), array(P))


def test_a_rigid_inertia_is_an_articulated_one():
    body, l = rigid(), vector()
    close(articulated(body), array(body))
    close(articulated(body).shifted(l), array(body.shifted(l)))


def test_zeros():
    for zero, size in (
        (zero_vector(), (3,)),
        (zero_symmetric(), (3, 3)),
        (zero_spatial(), (6,)),
        (zero_rigid(), (6, 6)),
        (zero_articulated(), (6, 6)),
    ):
        assert array(zero).shape == size
        assert not array(zero).any()


def test_wrench_names():
    x = spatial()
    assert x.moment is x.angular
    assert x.force is x.linear


def test_lanes():
    """NumPy arrays as scalars: one lane per state, and an array times a vector is a vector of lanes."""
    lanes = RNG.normal(size=(3, 5))
    v, scale = Vector(*lanes), RNG.normal(size=5)
    scaled = scale * v
    assert isinstance(scaled, Vector)
    np.testing.assert_array_equal(np.stack([*scaled]), scale * lanes)
    crossed = v.cross(Vector(1.0, 2.0, 3.0))
    np.testing.assert_allclose(
        np.stack([*crossed]), np.cross(lanes, [1.0, 2.0, 3.0], axisa=0, axisb=0, axisc=0)
    )
    assert isinstance(np.float64(2.0) * v, Vector)
    assert isinstance(np.float64(2.0) * spatial(), Spatial)
    for inertia in (rigid(), general()):
        motion = Spatial(v, v)
        found = inertia @ motion
        np.testing.assert_allclose(
            np.stack([*found.angular, *found.linear]), array(inertia) @ np.vstack([lanes, lanes])
        )


# -- scalars ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sin", "cos", "sqrt"])
def test_functions_of_floats_and_arrays(name):
    function, reference = getattr(scalar, name), getattr(np, name)
    x = np.array([0.25, 1.0, 3.5])
    np.testing.assert_array_equal(function(x), reference(x))
    for v in x.tolist():
        assert function(v) == pytest.approx(reference(v), abs=1e-16)
        assert isinstance(function(v), float)
    assert function(1) == pytest.approx(reference(1.0))


def test_functions_take_everything():
    for bad in (math.nan, math.inf, -math.inf):
        assert math.isnan(scalar.sin(bad))
        assert math.isnan(scalar.cos(bad))
    assert math.isnan(scalar.sqrt(-1.0))
    assert math.isnan(scalar.sqrt(math.nan))
    assert scalar.sqrt(math.inf) == math.inf


def test_sign():
    assert [scalar.sign(v) for v in (2.0, -3.0, 0.0)] == [1.0, -1.0, 0.0]
    assert math.isnan(scalar.sign(math.nan))
    found = scalar.sign(np.array([2.0, -3.0, 0.0, np.nan]))
    np.testing.assert_array_equal(found, [1.0, -1.0, 0.0, np.nan])


def test_where_and_all_of():
    assert scalar.where(True, 1.0, 2.0) == 1.0
    assert scalar.where(np.False_, 1.0, 2.0) == 2.0
    x = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(scalar.where(x > 0, x, 5.0), [5.0, 5.0, 1.0])
    np.testing.assert_array_equal(scalar.all_of(x > -0.5, x < 0.5), [False, True, False])
    assert scalar.all_of(1.0 > 0.0, 2.0 > 1.0)
    assert not scalar.all_of(1.0 > 0.0, 2.0 < 1.0)


def test_while_loop_of_floats():
    total, count = scalar.while_loop(
        lambda total, count: count < 5.0, lambda t, c: (t + c, c + 1.0), (0.0, 0.0)
    )
    assert (total, count) == (10.0, 5.0)
    assert scalar.while_loop(lambda x: x < 0.0, lambda x: (1 / 0,), (3.0,)) == (
        3.0,
    )  # the body is never entered


def test_while_loop_of_lanes():
    """Every lane stops by itself and keeps what it had, whatever the others do; one that is NaN never starts."""
    limit = np.array([0.0, 3.0, 7.0, np.nan, 1.0])
    start = np.zeros(5)
    value, count = scalar.while_loop(lambda v, c: c < limit, lambda v, c: (v + c, c + 1.0), (start, start))
    np.testing.assert_array_equal(count, [0, 3, 7, 0, 1])
    np.testing.assert_array_equal(value, [0, 3, 21, 0, 0])
    with np.errstate(
        all="ignore"
    ):  # what the body makes of a lane that has stopped (here 0/0) does not matter
        x, _ = scalar.while_loop(
            lambda x, left: left > 0.0,
            lambda x, left: (x + left / left, left - 1.0),
            (start, np.array([0.0, 2, 5, 0, 1])),
        )
    np.testing.assert_array_equal(x, [0, 2, 5, 0, 1])


def test_stages_nest():
    assert scalar.current_stage.get() == ""
    with scalar.stage("outer"):
        with scalar.stage("inner"):
            assert scalar.current_stage.get() == "inner"
        assert scalar.current_stage.get() == "outer"
    with pytest.raises(KeyError), scalar.stage("broken"):
        raise KeyError
    assert scalar.current_stage.get() == ""
