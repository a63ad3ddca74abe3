"""Torques that no possible body and no friction explain: found where they are, and not where they are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify

TRUE = {"joint2.unmodelled_cos_2": 1.5, "joint2.unmodelled_sin_1": -1.0, "joint2.unmodelled_viscous": -0.4}


def recorded(robot: lw.Robot, seed: int) -> Log:
    """A motion of the first 10 s, which is one period, with noise on the torques."""
    t, q, qd, qdd = (each[:2000] for each in motion(seed))
    tau = robot.inverse_dynamics(q, qd, qdd)
    return Log(t, q, tau + 0.02 * np.random.default_rng(seed).normal(size=tau.shape), name=f"run{seed}")


@pytest.fixture(scope="module")
def results(arm, truth):
    strange = truth.with_parameters(TRUE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        return [identify(arm, recorded(each, 1), validation=recorded(each, 2)) for each in (strange, truth)]


def test_a_cable_is_a_torque_of_its_own_and_predicts_another_motion(results):
    found = results[0]
    assert [each.joint for each in found.unmodelled.torques] == ["joint2"]
    assert "joint2" in found.unmodelled.torques[0].text
    without = found.robot.with_parameters(
        {label: 0.0 for label in found.robot.parameter_labels if "unmodelled" in label}
    )
    judged = found.validation
    q, qd, qdd = judged.motion
    left = judged.measured - without.inverse_dynamics(q, qd, qdd)
    assert np.std(judged.residuals[:, 1]) < 0.7 * np.std(left[:, 1])


def test_the_mass_matrix_is_that_of_possible_bodies(results):
    found = results[0]
    q = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    M = found.robot.mass_matrix(q)
    assert np.linalg.eigvalsh(M).min() > 0
    # forward after inverse dynamics is the identity with this law, too
    qd, qdd = q[::-1] / 3, q / 2
    back = found.robot.forward_dynamics(q, qd, found.robot.inverse_dynamics(q, qd, qdd))
    np.testing.assert_allclose(back, qdd, rtol=1e-8, atol=1e-8)


def test_nothing_where_bodies_and_friction_explain_all(results):
    found = results[1]
    assert found.unmodelled.torques == ()
    assert found.validation.total < 1.5
