"""Functions of a frame that is fixed to the base: nothing moves it."""

import numpy as np
import pytest

import linkwise as lw


@pytest.fixture(scope="module")
def arm():
    return lw.load("puma560")


def test_it_neither_moves_nor_accelerates(arm):
    q = np.full(arm.dof, 0.3)
    assert not arm.jacobian(q, frame=arm.base).any()
    assert not arm.jacobian_rate(q, q, frame=arm.base).any()
    assert (arm.pose(q, arm.base) == np.eye(4)).all()


@pytest.mark.parametrize("name", ["task_inertia", "consistent_inverse"])
def test_its_inertia_is_infinite(arm, name):
    with pytest.raises(lw.SingularError, match=f"{arm.base!r} cannot be moved in all six directions"):
        getattr(arm, name)(np.full(arm.dof, 0.3), frame=arm.base)
