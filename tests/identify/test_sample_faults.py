"""Faults that samples show by themselves are named; correct and rounded recordings get no hint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_arm import motion

from linkwise.identify import Log, LogError, identify
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


def test_torques_that_were_not_recorded_for_a_while_are_named(arm, log):
    """Less than a third of the rows: a lower rate does not explain them."""
    tau = log.tau.copy()
    tau[900:1100] = 0.0
    (said,) = sample_faults(arm, replace(log, tau=tau))
    assert f"torques of all joints stay zero for 1 s from {log.t[900]:.4g} s on" in said
    tau = log.tau.copy()
    tau[600:1000, 1] = tau[600, 1]
    (said,) = sample_faults(arm, replace(log, tau=tau))
    assert f"torques of joint2 stay the same for 2 s from {log.t[600]:.4g} s on" in said
    short = log.tau.copy()
    short[600:650, 1] = short[600, 1]  # a quarter of a second
    assert sample_faults(arm, replace(log, tau=short)) == []


def test_a_constant_torque_at_constant_speed_is_no_fault(arm, log):
    """As simulations without friction and noise have it."""
    q, qd, tau = log.q.copy(), log.qd.copy(), log.tau.copy()
    first, last = 600, 1000
    q[first:, 0] = q[first, 0] + 0.5 * (log.t[first:] - log.t[first])
    q[last:, 0] += np.sin(log.t[last:] - log.t[last]) ** 2
    qd[:, 0] = np.gradient(q[:, 0], log.t)
    tau[first:last, 0] = 0.0
    assert sample_faults(arm, replace(log, q=q, qd=qd, tau=tau)) == []


def test_stamps_far_too_short_are_named(arm, log):
    (said,) = sample_faults(arm, replace(log, t=1e-3 * log.t))  # all of the recording lasts 7.5 ms
    assert "0.001 times the slopes" in said, said
    for each in (log, replace(log, qd=None)):
        with pytest.raises(
            LogError, match=r"time stamps are 5e-06 s apart, 2e.05 samples a second: too near"
        ):
            identify(arm, replace(each, t=1e-3 * log.t))


def test_a_jump_that_is_too_small_is_no_wrong_velocity(arm, log):
    """Slopes across it are far off; ratios of recorded velocities and slopes are those of the other samples."""
    q = log.q.copy()
    q[700:, 0] += 0.02 * np.ptp(q[:, 0])
    assert not [said for said in sample_faults(arm, replace(log, q=q)) if "velocities" in said]


def test_held_columns_are_named_and_coarse_ones_are_not(arm, log):
    rows = np.arange(len(log)) // 6 * 6
    (said,) = sample_faults(arm, replace(log, q=log.q[rows], qd=None))
    assert "positions of all joints change only once in 6 rows" in said
    tau = log.tau.copy()
    tau[:, 1] = tau[rows, 1]
    (said,) = sample_faults(arm, replace(log, tau=tau))
    assert "torques of joint2 change only once in 6 rows" in said
    assert sample_faults(arm, replace(log, q=np.round(log.q, 2), qd=None)) == []


def test_rows_that_are_missing_or_wrong_are_named(arm, log):
    keep = np.r_[0:500, 800 : len(log)]
    joined = replace(log, t=log.t[: len(keep)], q=log.q[keep], qd=log.qd[keep], tau=log.tau[keep])
    (said,) = sample_faults(arm, joined)
    assert "positions jump" in said
    assert "after row 500" in said
    gap = replace(joined, t=log.t[keep])
    assert sample_faults(arm, gap) == []  # stamps say so: nothing is wrong
    q = log.q.copy()
    q[:, 0] = np.mod(q[:, 0], 2 * np.pi)
    assert np.ptp(q[:, 0]) > 6.0
    assert "positions jump (joint1 by" in sample_faults(arm, replace(log, q=q))[0]
    tau = log.tau.copy()
    tau[100:1400:100] += 20.0 * tau.std(axis=0)
    (said,) = sample_faults(arm, replace(log, tau=tau))
    assert "single samples far from their neighbours (joint1 13, joint2 13)" in said


def test_columns_of_something_else_are_named(arm, log):
    (said,) = sample_faults(arm, replace(log, tau=np.abs(log.tau - log.tau.mean(axis=0))))
    assert "never change their sign" in said
    (said,) = sample_faults(arm, replace(log, tau=log.tau[:, [1, 1]]))
    assert "the same numbers" in said
    (said,) = sample_faults(arm, replace(log, tau=np.stack([log.tau[:, 0], 3.0 * log.q[:, 1]], axis=1)))
    assert "torques of joint2 are its positions" in said
    (said,) = sample_faults(arm, replace(log, q=log.q * (1.0, 0.0), qd=None))
    assert "positions of joint2 never change" in said


def test_late_velocities_are_named(arm, log):
    late = np.concatenate([log.qd[:1].repeat(10, axis=0), log.qd[:-10]])  # 50 ms
    (said,) = sample_faults(arm, replace(log, qd=late))
    assert "those of positions about 50 ms earlier" in said


def test_a_torque_that_comes_near_zero_once_has_a_sign(arm, log):
    """Noise near zero crosses the limit many times; the size of a torque that changes its sign comes back."""
    tau = log.tau.copy()
    t = np.linspace(0.0, 1.0, len(tau))
    noise = 0.01 * np.random.default_rng(0).normal(size=len(tau))
    tau[:, 0] = 0.06 + 5.0 * (2.0 * t - 1.0) ** 2 + np.abs(noise)
    assert not [words for words in sample_faults(arm, replace(log, tau=tau)) if "change their sign" in words]
    tau[:, 0] = np.abs(5.0 * np.sin(20.0 * t) + noise)
    assert [words for words in sample_faults(arm, replace(log, tau=tau)) if "change their sign" in words]


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_rows_that_are_missing_are_named(arm, log, share):
    """Anywhere, under stamps that go on as if none were; stamps with the gaps explain them, and every third row is
    a lower rate."""

    def part(rows, t):
        return Log(t, log.q[rows], log.tau[rows])

    kept = np.flatnonzero(np.random.default_rng(1).random(len(log)) > share)
    (said,) = sample_faults(arm, part(kept, log.t[: len(kept)]))
    assert "rows are missing though the stamps go on" in said
    assert sample_faults(arm, part(kept, log.t[kept])) == []
    assert sample_faults(arm, part(slice(None, None, 3), log.t[:500])) == []
    noisy = log.q + 0.5 * np.abs(np.diff(log.q, axis=0)).max() * np.random.default_rng(2).normal(
        size=log.q.shape
    )
    assert sample_faults(arm, Log(log.t, noisy, log.tau)) == []


def test_velocities_of_something_else_are_named(arm, log):
    """Noise of a sensor hides slopes between two samples, but not means over some."""
    accelerations = np.gradient(log.qd, log.t, axis=0)
    (said,) = sample_faults(arm, replace(log, qd=np.column_stack([log.qd[:, 0], accelerations[:, 1]])))
    assert "velocities of joint2 do not follow the slopes of positions" in said
    noise = 2.0 * log.qd.std(axis=0) * np.random.default_rng(2).normal(size=log.qd.shape)
    assert sample_faults(arm, replace(log, qd=log.qd + noise)) == []


def test_torques_of_whole_numbers_that_overflow_are_named(arm, log):
    limit = np.quantile(np.abs(log.tau), 0.85, axis=0)
    (said,) = sample_faults(arm, replace(log, tau=(log.tau + limit) % (2.0 * limit) - limit))
    assert "from one end of their range to the other" in said


def test_dry_friction_that_changes_its_sign_is_no_overflow(arm, log):
    """A joint that carries nothing has the torque of friction alone, which jumps where it turns back."""
    slow = 30.0 * (log.t - log.t[0])
    tau = 2.0 * np.sign(np.cos(slow)) + 0.05 * np.random.default_rng(4).normal(size=len(log))
    friction = np.column_stack([log.tau[:, 0], tau])
    turning = np.column_stack([log.q[:, 0], 0.1 * np.sin(slow)])
    assert sample_faults(arm, replace(log, q=turning, qd=None, tau=friction)) == []


def test_rows_in_another_order_are_named(arm, log):
    rows = np.random.default_rng(5).permutation(len(log))
    (said,) = sample_faults(arm, replace(log, q=log.q[rows], qd=log.qd[rows], tau=log.tau[rows]))
    assert "not in the order of time" in said


def test_a_torque_that_is_taken_twice_in_other_units_is_named(arm, log):
    (said,) = sample_faults(arm, replace(log, tau=log.tau[:, [0, 0]] * (1.0, 10.0)))
    assert "same signal in other units" in said


def test_counts_of_a_coarse_encoder_are_no_jumps(arm, log):
    """A joint that moves little makes steps of one count that are a large part of its range."""
    slow = 0.012 * np.sin(0.2 * np.pi * (log.t - log.t[0]))
    coarse = np.column_stack([log.q[:, 0], np.round(slow / 0.003) * 0.003])
    assert sample_faults(arm, replace(log, q=coarse, qd=None)) == []
