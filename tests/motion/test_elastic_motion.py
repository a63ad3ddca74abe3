"""Feed-forward for elastic joints: the links follow the plan although springs give way."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise import Elastic, control, motion
from linkwise.simulate import simulate

PLAN = motion.nonic([0.0, 0.5], [1.0, -0.4], 1.0)


def arm(damping: float = 0.0) -> lw.Robot:
    springs = {"joint1": Elastic(2000.0, damping, 0.5), "joint2": Elastic(800.0, damping, 0.2)}
    return lw.planar_chain(2).with_elastic_joints(springs)


def links(robot, q):
    return q[..., [0, 2]] + q[..., [1, 3]]


@pytest.mark.parametrize(("damping", "most"), [(0.0, 1e-10), (0.5, 2e-5)])
def test_links_follow_the_plan(damping, most):
    robot = arm(damping)
    planned = motion.ElasticMotion(robot, PLAN)
    law = control.FeedForward(robot, torque_limits=False)
    found = simulate(robot, law, planned, duration=1.0, step=5e-4, continuous=True)
    assert np.abs(links(robot, found.q) - PLAN.at(found.t).q).max() < most
    assert np.abs(found.q[:, [1, 3]]).max() > 1e-2  # what the springs give way
    assert not found.tau[:, [1, 3]].any()
    np.testing.assert_allclose(planned.torques(found.t), found.tau, atol=1e-9)


def test_springs_and_dampers_carry_the_torque_of_the_links():
    """−K δ − D δ̇ = τ of the rigid robot, and the same of its derivative by time."""
    t, h, stiffness = np.linspace(0.2, 0.8, 7), 1e-5, np.array([2000.0, 800.0])
    rigid = [lw.planar_chain(2).inverse_dynamics(*PLAN.at(t + dt)) for dt in (-h, 0.0, h)]
    for damping in (4.0, 0.5):
        springs = [part[:, [1, 3]] for part in motion.ElasticMotion(arm(damping), PLAN).at(t)]
        assert np.allclose(-stiffness * springs[0] - damping * springs[1], rigid[1], rtol=0, atol=1e-11)
        slopes = (rigid[2] - rigid[0]) / (2 * h)
        assert np.allclose(-stiffness * springs[1] - damping * springs[2], slopes, rtol=0, atol=1e-4)


def test_motions_of_motors_are_derivatives_of_each_other():
    planned = motion.ElasticMotion(arm(), PLAN)
    t, h = np.linspace(0.1, 0.9, 7), 1e-5
    ahead, behind, here = planned.at(t + h), planned.at(t - h), planned.at(t)
    np.testing.assert_allclose((ahead.q - behind.q) / (2 * h), here.qd, atol=1e-8)
    np.testing.assert_allclose((ahead.qd - behind.qd) / (2 * h), here.qdd, atol=1e-6)
    np.testing.assert_allclose(links(None, here.q), PLAN.at(t).q, atol=1e-14)


def test_friction_of_motors_and_periodic_plans():
    robot = arm().with_parameters({"joint1.viscous_friction": 4.0})
    swing = motion.FourierSeries([0.3, -0.2], [[0.2, 0.1]], [[0.05, -0.1]], 2.0)
    planned = motion.ElasticMotion(robot, swing)
    start = planned.at(0.0)
    law = control.FeedForward(robot, torque_limits=False)
    found = simulate(robot, law, planned, duration=1.0, step=5e-4, continuous=True, q=start.q, qd=start.qd)
    assert np.abs(links(robot, found.q) - swing.at(found.t).q).max() < 1e-9


def test_dry_friction_of_motors_and_of_rigid_joints_does_not_load_springs():
    """It ended in a TypeError at joints without a spring."""
    rubbing = {"joint1.coulomb_friction_forward": 3.0, "joint1.coulomb_friction_backward": 2.0}
    rigid = lw.planar_chain(2)
    parts = {"stiffness": 900.0, "damping": 1.0, "motor_inertia": 0.2}
    for name in rigid.joint_names:
        smooth = rigid.with_elastic_joints({name: lw.Elastic(**parts)})
        rough = rigid.with_parameters({f"{j}.coulomb_friction": 2.0 for j in rigid.joint_names} | rubbing)
        rough = rough.with_elastic_joints({name: lw.Elastic(**parts)})
        t = np.linspace(0.1, 0.9, 5)
        for ours, wanted in zip(
            motion.ElasticMotion(rough, PLAN).at(t), motion.ElasticMotion(smooth, PLAN).at(t), strict=True
        ):
            np.testing.assert_array_equal(ours, wanted)


def test_a_nonic_begins_and_ends_at_rest_to_the_fourth_derivative():
    from linkwise.motion.elastic import derivatives

    ends = derivatives(PLAN, np.array([0.0, 1.0]))
    np.testing.assert_allclose(ends[0], [[0.0, 0.5], [1.0, -0.4]], atol=1e-12)
    for part in ends[1:]:
        assert np.abs(part).max() < 1e-9
    middle = derivatives(PLAN, np.array(0.5))
    h = 1e-4
    for k in range(4):
        slope = (derivatives(PLAN, np.array(0.5 + h))[k] - derivatives(PLAN, np.array(0.5 - h))[k]) / (2 * h)
        np.testing.assert_allclose(slope, middle[k + 1], atol=1e-3)


def paced(factor):
    """``PLAN`` in two pieces, the second in ``factor`` times its time."""
    middle = np.array(motion.elastic.derivatives(PLAN, np.array(0.5)))
    rows = PLAN.coefficients[0]
    later = [
        sum(math.comb(j, k) * 0.5 ** (j - k) * rows[j] for j in range(k, 10)) / factor**k for k in range(10)
    ]
    assert np.allclose(later[0], middle[0])
    return motion.PiecewisePolynomial([0.0, 0.5, 0.5 + 0.5 * factor], np.array([rows, later]))


PACED = paced(2.0)


def test_a_plan_may_have_several_pieces():
    """Divided at a point it is the same motion."""
    t = np.linspace(0.0, 1.0, 101)
    for one, two in zip(
        motion.ElasticMotion(arm(), PLAN).at(t), motion.ElasticMotion(arm(), paced(1.0)).at(t), strict=True
    ):
        assert np.allclose(one, two, rtol=1e-9, atol=1e-9 * np.abs(one).max())


@pytest.mark.parametrize(
    ("robot", "plan", "message"),
    [
        (
            arm(),
            motion.quintic([0.0, 0.0], [1.0, 1.0], 1.0),
            "its derivative of order 3 does not vanish at an end",
        ),
        (arm(), PACED, "its derivative of order 1 jumps at 0.5 s"),
        (arm(), motion.nonic([0.0], [1.0], 1.0), "expected a motion of the 2 joints joint1, joint2"),
        (lw.planar_chain(2), PLAN, "has no elastic joints"),
    ],
)
def test_plans_that_motors_cannot_follow_are_refused(robot, plan, message):
    with pytest.raises(motion.ElasticMotionError, match=message):
        motion.ElasticMotion(robot, plan)
