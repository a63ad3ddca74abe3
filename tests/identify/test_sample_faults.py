"""Faults that samples show by themselves are named; correct and rounded recordings get no hint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_arm import motion

from linkwise.identify import Log
from linkwise.identify.judging.samples import sample_faults


@pytest.fixture(scope="module")
def log(truth) -> Log:
    t, q, qd, qdd = (each[:1500] for each in motion(3))
    noise = 0.05 * np.random.default_rng(0).normal(size=q.shape)
    return Log(t, q, truth.inverse_dynamics(q, qd, qdd) + noise, qd)


def test_correct_and_rounded_recordings_get_no_hint(arm, log):
    assert sample_faults(arm, log) == []
    rounded = replace(log, q=np.round(log.q, 4), qd=np.round(log.qd, 2), tau=np.round(log.tau, 1))
    assert sample_faults(arm, rounded) == []
    noisy = replace(log, qd=log.qd + 0.05 * np.random.default_rng(1).normal(size=log.qd.shape))
    assert sample_faults(arm, noisy) == []


def test_each_fault_is_named(arm, log):
    (said,) = sample_faults(arm, replace(log, t=2.0 * log.t))
    assert "2 times the slopes" in said
    assert "multiplying times with 0.5" in said
    (said,) = sample_faults(arm, replace(log, t=log.t / 1.3))
    assert "0.77 times the slopes" in said
    (said,) = sample_faults(arm, replace(log, qd=-log.qd))
    assert "opposite sign" in said
    (said,) = sample_faults(arm, replace(log, qd=log.qd * (1.0, 3.0)))
    assert "joint2 3" in said
    (said,) = sample_faults(arm, replace(log, qd=log.qd * (1.0, 0.0)))
    assert "velocities of joint2 are zero" in said
    (said,) = sample_faults(arm, replace(log, tau=log.tau * (0.0, 1.0)))
    assert "torques of joint1 never change" in said
    limit = np.quantile(np.abs(log.tau), 0.85, axis=0)
    (said,) = sample_faults(arm, replace(log, tau=np.clip(log.tau, -limit, limit)))
    assert "cut off" in said
    rows = np.arange(len(log)) // 2 * 2
    (said,) = sample_faults(arm, replace(log, tau=log.tau[rows]))
    assert "held" in said
    (said,) = sample_faults(arm, replace(log, q=log.q[rows], qd=log.qd[rows], tau=log.tau[rows]))
    assert "50 % of the rows repeat" in said
