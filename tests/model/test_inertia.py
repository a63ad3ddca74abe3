"""The ten parameters of a body."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import ModelError
from linkwise.model import LABELS, Inertia, Transform

number = st.floats(-3, 3)
positive = st.floats(0.01, 10)


@st.composite
def bodies(draw) -> Inertia:
    """Point masses: what any possible body is made of."""
    points = draw(st.lists(st.tuples(positive, number, number, number), min_size=1, max_size=5))
    total = Inertia()
    for mass, *place in points:
        total = total + Inertia.from_com(mass, place, (0.0, 0.0, 0.0))
    return total


@st.composite
def poses(draw) -> Transform:
    return Transform.from_rpy(
        draw(st.tuples(number, number, number)), draw(st.tuples(number, number, number))
    )


def test_centre_and_origin_form():
    body = Inertia.from_com(2, (1, 2, 3), (0.1, 0.01, 0.02, 0.2, 0.03, 0.25))
    assert body.parameters == pytest.approx((2, 2, 4, 6, 26.1, -3.99, -5.98, 20.2, -11.97, 10.25))
    np.testing.assert_allclose(body.com, [1, 2, 3])
    np.testing.assert_allclose(
        body.matrix_about_com, [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.25]], atol=1e-14
    )
    assert Inertia.from_parameters(body.parameters) == body
    assert dict(zip(LABELS, body.parameters, strict=True))["hz"] == 6


def test_inertia_may_be_given_in_three_ways():
    full = Inertia.from_com(1, (0, 0, 0), np.diag([1.0, 2.0, 2.5]))
    assert (
        full
        == Inertia.from_com(1, (0, 0, 0), (1, 0, 0, 2, 0, 2.5))
        == Inertia.from_com(1, (0, 0, 0), (1, 2, 2.5))
    )
    with pytest.raises(ValueError, match=r"inertia: expected shape"):
        Inertia.from_com(1, (0, 0, 0), (1, 2))
    with pytest.raises(ModelError, match=r"inertia: expected a symmetric matrix, got \[\[1.0, 0.1"):
        Inertia.from_com(1, (0, 0, 0), [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match=r"com: expected shape \(3,\), got \(1,\)"):
        Inertia.from_com(1, (0,), (1, 2, 2.5))
    with pytest.raises(ValueError, match=r"parameters: expected 10 values \(m hx"):
        Inertia.from_parameters([1, 2, 3])


def test_a_turned_inertia():
    quarter = Transform.from_rpy(rpy=(0, 0, np.pi / 2)).rotation
    assert Inertia.from_com(1, (0, 0, 0), (1, 2, 2.5), quarter) == Inertia.from_com(1, (0, 0, 0), (2, 1, 2.5))


@given(bodies(), poses())
def test_another_frame_and_back(body, pose):
    again = body.expressed_in(pose).expressed_in(pose.inverse())
    np.testing.assert_allclose(again.parameters, body.parameters, rtol=0, atol=1e-11)
    there = body.expressed_in(pose)
    np.testing.assert_allclose(there.com, pose.rotation @ body.com + pose.translation, atol=1e-12)
    moments = np.linalg.eigvalsh(body.matrix_about_com), np.linalg.eigvalsh(there.matrix_about_com)
    np.testing.assert_allclose(*moments, rtol=0, atol=1e-10)


@given(bodies(), poses())
def test_possible_bodies_stay_possible(body, pose):
    assert body.violations() == []
    assert body.expressed_in(pose).violations() == []
    assert np.linalg.eigvalsh(body.pseudo_inertia)[0] > -1e-9 * body.pseudo_inertia.max()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (Inertia.from_com(-1, (0, 0, 0), (1, 1, 1)), ["mass -1 is negative"]),
        (Inertia.from_com(1, (0, 0, 0), (1, 1, -1)), ["not positive semidefinite"]),
        (Inertia.from_com(1, (5, 0, 0), (1, 1, 3)), ["1, 1, 3 violate the triangle inequality"]),
        (Inertia(0.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)), ["mass is zero but moments are not"]),
        (Inertia(), []),
        (Inertia.from_com(1, (1, 2, 3), (0, 0, 0)), []),
        (Inertia.from_com(1, (0, 0, 0), (1, 1, 2)), []),
    ],
)
def test_what_makes_a_body_impossible(body, words):
    found = body.violations()
    assert len(found) == len(words)
    assert all(word in violation for word, violation in zip(words, found, strict=True))
