"""What is saved remembers only where that explains torques better; figures of C code are measured."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from known_arm import motion

from linkwise.identify import IdentificationWarning, Log, condition, identify
from linkwise.identify.estimation.memory import useful_memory
from linkwise.robot.directions import torques_along

REMEMBERS = {"joint1.presliding_distance": 0.05, "joint1.friction_speed": 0.05}


def test_memory_is_kept_only_where_it_is_better(truth):
    t, q, qd, qdd = (each[:2000] for each in motion(1))
    smooth = truth.with_parameters({"joint1.friction_speed": 0.05})
    remembering = truth.with_parameters(REMEMBERS)
    along = torques_along(remembering, q, qd, qdd)
    for tau, kept in ((smooth.inverse_dynamics(q, qd, qdd), 0.0), (along, 0.05)):
        signals = condition(Log(t, q, tau), cutoff=12.0)
        found = useful_memory(remembering, [signals])
        assert found.moving_joints[0].number("presliding_distance") == kept


def test_code_is_measured_for_both_functions(arm, truth):
    t, q, qd, qdd = (each[:2000] for each in motion(1))
    remembering = truth.with_parameters(
        {"joint1.presliding_distance": 0.02, "joint2.presliding_distance": 0.02}
    )
    tau = torques_along(remembering, q, qd, qdd)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = identify(arm, Log(t, q, tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)))
    (row,) = found.verdict()
    assert found.remembers
    assert row.code == pytest.approx(row.saved_robot, rel=0.02)
    judged = found.validation
    alone = found.robot.inverse_dynamics(*judged.motion)
    expected = 100 * np.linalg.norm(judged.measured - alone) / np.linalg.norm(judged.measured)
    assert row.code_of_one_state == pytest.approx(expected)
    assert row.code_of_one_state > row.code
