"""Whole-body control as a row of ``CONTROLLERS``: the numbers of ``WholeBody``, limits, settings and bad numbers."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.control.controller import Reference

PERIOD = 0.002


def arm(seed=0, joints=3, speed=2.0, torque=40.0):
    """A random arm with limits of torque, velocity and position."""
    rng = np.random.default_rng(seed)
    links, made = [lw.Link("base", lw.Inertia.from_com(1.0, (0, 0, 0), (1, 1, 1)))], []
    for k in range(joints):
        com, length = rng.normal(size=3) * 0.05, 0.3 + 0.2 * rng.uniform()
        links.append(lw.Link(f"l{k}", lw.Inertia.from_com(1.0 + rng.uniform(), com, (0.02, 0.03, 0.01))))
        made.append(
            lw.Joint(
                f"j{k}", "revolute", links[-2].name, f"l{k}",
                lw.Transform.from_rpy((0.0, 0.0, length if k else 0.0)), np.eye(3)[(k + 1) % 3],
                limits=lw.Limits(-2.0, 2.0, speed, torque),
            )
        )  # fmt: skip
    return lw.Robot(f"arm{seed}", links, made)


def reference(rng, n):
    return 0.5 * rng.normal(size=n), 0.2 * rng.normal(size=n), 0.5 * rng.normal(size=n)


def test_torques_are_those_of_whole_body_and_settings_are_inputs():
    """The kernel with constants, with settings, in float32, and the law over numbers: one result."""
    rng = np.random.default_rng(1)
    robot = arm()
    law = control.named("whole_body_tracking", robot, frequency=8.0)
    tasks = [control.PoseTask("l2", frequency=8.0), control.PostureTask(weight=0.01, frequency=8.0)]
    body = control.WholeBody(robot, tasks, control.MotionLimits(period=PERIOD))
    q, qd = 0.4 * rng.normal(size=3), 0.3 * rng.normal(size=3)
    given = reference(rng, 3)
    solution, _ = body.solve(q, qd, body.targets(*given))
    fixed, tuned = law.kernel(PERIOD), law.kernel(PERIOD, tunable=True, fault=True)
    settings = law.settings()
    assert list(settings) == ["tool", "posture", "torque_limits"]
    tau = fixed(q, qd, *given)
    assert np.abs(tau - solution.tau).max() < 1e-9
    again, fault = tuned(q, qd, *given, *settings.values())
    assert again.tobytes() == tau.tobytes()
    assert fault == 0.0
    plain, _ = law.control(
        law.links(), {name: v.tolist() for name, v in law.gains.items()}, q, qd, Reference(*given), [], PERIOD
    )
    assert np.abs(np.array(plain, float) - tau).max() < 1e-9
    other = law.with_gains(tool=[1.0, 9.0, 6.0], posture=[0.01, 9.0, 6.0])
    softer = tuned(q, qd, *given, *other.settings().values())[0]
    assert np.abs(softer - other.kernel(PERIOD)(q, qd, *given)).max() < 1e-12
    assert np.abs(softer - tau).max() > 1e-3
    weak = settings | {"torque_limits": np.full(3, 0.5)}
    assert np.abs(tuned(q, qd, *given, *weak.values())[0]).max() <= 0.5
    for wrong in (settings | {"torque_limits": np.array([1.0, -1.0, 1.0])},):
        torques, fault = tuned(q, qd, *given, *wrong.values())
        assert fault == 1.0
        assert (torques == 0.0).all()
    torques, fault = tuned(np.array([0.0, np.nan, 0.0]), qd, *given, *settings.values())
    assert fault == 1.0
    assert (torques == 0.0).all()


def test_torque_limits_that_are_inputs_count_instead_of_those_of_the_law():
    """Also for the decelerations that follow from them, and for motors that had no limit: joints near their stops."""
    rng, robot, limits = np.random.default_rng(2), arm(), np.array([12.0, 9.0, 5.0])
    fixed = control.named("whole_body_tracking", robot, frequency=8.0, torque_limits=limits)
    constant, tuned = fixed.kernel(PERIOD), fixed.kernel(PERIOD, tunable=True)
    settings = fixed.settings().values()
    gains = {name: values.tolist() for name, values in fixed.gains.items()}
    for others in (False, 40.0):
        law = control.named("whole_body_tracking", robot, frequency=8.0, torque_limits=others)
        kernel = law.kernel(PERIOD, tunable=True)
        for _ in range(20):
            q, qd = rng.uniform(-2.0, 2.0, 3), rng.uniform(-2.0, 2.0, 3)
            given = reference(rng, 3)
            found = kernel(q, qd, *given, *settings)
            np.testing.assert_array_equal(found, tuned(q, qd, *given, *settings))
            np.testing.assert_allclose(found, constant(q, qd, *given), atol=1e-5)  # limits that contradict
            state = (q.tolist(), qd.tolist(), Reference(*given), [], PERIOD)
            numbers = law.bound(limits.tolist()).control(law.links(), gains, *state)[0]
            np.testing.assert_array_equal(numbers, fixed.control(law.links(), gains, *state)[0])


def test_an_arm_follows_and_keeps_its_limits():
    """A step that asks for more than the joints may do: it arrives, and no velocity, position or torque is exceeded."""
    for seed in range(2):
        robot = arm(seed, 2, speed=1.5)
        law = control.named("whole_body_tracking", robot, frequency=10.0)
        kernel = law.kernel(PERIOD)
        q, qd, goal = np.zeros(2), np.zeros(2), np.array([1.2, -1.97])
        fastest = 0.0
        for _ in range(1500):
            tau = kernel(q, qd, goal, np.zeros(2), np.zeros(2))
            assert (np.abs(tau) <= robot.effort_limits).all()
            qd_next = qd + PERIOD * robot.forward_dynamics(q, qd, tau)
            q, qd = q + PERIOD * 0.5 * (qd + qd_next), qd_next
            fastest = max(fastest, np.abs(qd).max())
            assert (np.abs(q) <= 2.0 + 1e-6).all()
        assert 1.4 < fastest <= 1.5 * (1.0 + 1e-6)
        assert np.abs(q - goal).max() < 1e-4


def test_what_it_refuses():
    robot = arm()
    with pytest.raises(control.TaskError, match="one coordinate each"):
        control.named("whole_body_tracking", robot.with_base("floating"), frequency=5.0)
    law = control.named("whole_body_tracking", robot, frequency=5.0)
    with pytest.raises(control.TaskError, match="parameters of the model"):
        law.kernel(PERIOD, inputs=("payload",))
    with pytest.raises(ValueError, match="positive weight"):
        law.with_gains(tool=[0.0, 1.0, 1.0])
    with pytest.raises(lw.UnknownNameError):
        control.named("whole_body_tracking", robot, frequency=5.0, frame="no such frame")
