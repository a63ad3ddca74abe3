"""A motion that cannot be right says so: divergence, joints beyond their range, torques beyond their limits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.simulate import Moves, Plant, SimulationWarning, simulate, watch

STIFF = control.Gains(4e8, 4e4)  # far beyond what a step of 1 ms can follow


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link").with_gravity((0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


# -- divergence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 25])
@pytest.mark.parametrize("fused", [True, False])
def test_a_simulation_that_diverges_says_when_and_which_joint(arm, every, fused):
    law = control.Tracking(arm, STIFF)
    with pytest.warns(
        SimulationWarning, match=r"two_link: the simulation diverged at t = 0\.\d+ s: joint 'joint"
    ):
        found = simulate(arm, law, [0.3, 0.2], q=[0.0, 0.0], duration=0.1, every=every, fused=fused)
    assert found.diverged
    assert found.divergence.joint in arm.joint_names
    assert found.divergence.robot == ()
    every_row = simulate(arm, law, [0.3, 0.2], q=[0.0, 0.0], duration=0.1, warn=False)
    bad = ~(np.abs(every_row.qd) < watch.FASTEST).all(axis=-1)
    first = every_row.t[np.argmax(bad)]
    # the kernel is run again to find the moment; a Python function cannot be
    assert found.divergence.time == pytest.approx(first if fused else found.t[found.t >= first - 1e-9][0])
    assert found.diverged_at == pytest.approx(found.t[found.t >= first - 1e-9][0])


def test_the_robot_that_diverges_is_named_and_the_others_are_not(arm):
    law = control.Tracking(arm, control.Gains.from_frequency(5.0))
    kp = np.full((3, 2), 25.0)
    kd = np.full((3, 2), 10.0)
    kp[1], kd[1] = 4e8, 4e4
    with pytest.warns(SimulationWarning, match=r"of robot 1 .*\(1 of 3 robots diverged\)"):
        found = simulate(
            arm, law, [0.3, 0.2], q=np.zeros((3, 2)), duration=0.05, every=5, vary={"kp": kp, "kd": kd}
        )
    assert found.diverged.tolist() == [False, True, False]
    assert np.isfinite(found.diverged_at).tolist() == [False, True, False]
    assert found.divergence.robot == (1,)
    assert found.left_range == []


def test_the_moment_is_found_for_moves_and_tables(arm):
    law = control.Tracking(arm, STIFF)
    start, end = np.zeros((2, 2)), np.array([[0.0, 0.0], [0.4, 0.2]])
    times = []
    table = [lw.motion.quintic(a, b, 0.02) for a, b in zip(start, end, strict=True)]
    for reference in (Moves(start, end, 0.02), table):
        with pytest.warns(SimulationWarning, match="robot 1"):
            found = simulate(arm, law, reference, duration=0.06, every=20)
        times.append(found.divergence.time)
    assert times[0] == pytest.approx(times[1], abs=2e-3)
    assert times[0] < found.diverged_at[1]


def test_only_the_final_state_is_lost(arm):
    """The last recorded row is still fine: the end counts too."""
    law = control.Tracking(arm, STIFF)
    with pytest.warns(SimulationWarning, match="diverged"):
        found = simulate(arm, law, [0.3, 0.2], q=[0.0, 0.0], duration=0.1, every=100)
    assert len(found.t) == 1
    assert found.diverged_at == pytest.approx(0.1)
    assert 0.0 < found.divergence.time < 0.1


def test_a_nan_at_the_start_is_a_divergence_at_zero(arm):
    with pytest.warns(SimulationWarning, match=r"diverged at t = 0 s: joint 'joint2'"):
        found = simulate(arm, control.Passive(arm), q=[0.0, np.nan], duration=0.01)
    assert found.diverged_at == 0.0


def test_an_ordinary_motion_gives_no_warning(arm):
    law = control.Tracking(arm, control.Gains.from_frequency(5.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = simulate(arm, law, [0.3, 0.2], q=[0.0, 0.0], duration=0.1)
    assert not found.diverged
    assert found.divergence is None
    assert found.diverged_at == np.inf
    assert found.left_range == []


def test_the_fastest_of_the_lost_joints_is_named(arm):
    t = np.arange(3.0)
    q = np.zeros((3, 2))
    qd = np.array([[1.0, 2.0], [10.0, 20.0], [np.nan, np.nan]])
    assert watch.first_lost(arm, t, q, qd) == (2.0, "joint2")
    qd = np.array([[1.0, 2.0], [10.0, 20.0], [np.nan, 30.0]])
    assert watch.first_lost(arm, t, q, qd) == (2.0, "joint1")
    qd = np.array([[1.0, 2.0], [10.0, -2e6], [1.0, 1.0]])
    assert watch.first_lost(arm, t, q, qd) == (1.0, "joint2")
    q[0, 0] = np.inf
    assert watch.first_lost(arm, t, q, qd) == (0.0, "joint1")
    assert watch.first_lost(arm, t, np.zeros((3, 2)), np.full((3, 2), 0.9e6)) is None


# -- ranges -----------------------------------------------------------------------------------------------------------


def test_a_joint_that_leaves_its_range_is_reported(panda):
    """Joint 4 of a Panda ranges from −3.07 to −0.07."""
    q = np.array([0.0, -0.785, 0.0, -0.2, 0.0, 1.571, 0.785])
    move = lw.motion.quintic(q, q + [0, 0, 0, 0.5, 0, 0, 0], 0.2)
    law = control.ComputedTorque(panda, control.Gains.from_frequency(20.0), torque_limits=False)
    with pytest.warns(
        SimulationWarning, match=r"joint 'panda_joint4' left its range at t = 0\.\d+ s: beyond -0.0698"
    ):
        found = simulate(panda, law, move, duration=0.3)
    (excursion,) = found.left_range
    upper = panda.coordinate_joints[3].limits.upper
    row = int(np.argmax(found.q[:, 3] > upper))
    assert (excursion.joint, excursion.robot, excursion.limit, excursion.unit) == (
        "panda_joint4",
        (),
        upper,
        "rad",
    )
    assert excursion.time == found.t[row]
    assert excursion.by == pytest.approx(found.q[:, 3].max() - upper, abs=1e-8)
    back = simulate(
        panda, law, lw.motion.quintic(q, q - [0, 0, 0, 3.0, 0, 0, 0], 0.5), duration=0.6, warn=False
    )
    (excursion,) = back.left_range
    assert excursion.limit == panda.coordinate_joints[3].limits.lower
    assert excursion.by == pytest.approx(excursion.limit - back.q[:, 3].min(), abs=1e-8)


def limited(arm, lower, upper):
    from dataclasses import replace

    joints = [
        replace(joint, limits=replace(joint.limits, lower=lower, upper=upper)) if joint.moves else joint
        for joint in arm.joints
    ]
    return lw.Robot("limited", arm.links, joints, gravity=arm.gravity)


def test_a_joint_at_the_end_of_its_range_has_not_left_it(panda):
    lower, upper = panda.limits.lower, panda.limits.upper
    q = np.stack([lower, upper, 0.5 * (lower + upper)])
    assert not watch.beyond_range(panda, q).any()
    for k in range(panda.dof):
        for end, way in ((lower, -1e-3), (upper, 1e-3)):
            beyond = q.copy()
            beyond[2, k] = end[k] + way
            assert np.flatnonzero(watch.beyond_range(panda, beyond)).tolist() == [k]


def test_every_robot_and_joint_of_a_batch_is_looked_at(arm):
    robot = limited(arm, -1.0, 1.0)
    t, q = np.arange(5.0), np.zeros((300, 5, 2))
    q[250, 3:, 1] = [1.5, 1.2]
    q[17, 2, 0] = -1.25
    found = list(watch.excursions(robot, t, q))
    assert [(e.robot, e.joint, e.time, e.limit) for e in found] == [
        ((17,), "joint1", 2.0, -1.0),
        ((250,), "joint2", 3.0, 1.0),
    ]
    assert [e.by for e in found] == pytest.approx([0.25, 0.5], abs=1e-8)
    for edge in (1.0 + 1e-12, -1.0 - 1e-12, 1.0, -1.0):
        assert list(watch.excursions(robot, t, np.full((300, 5, 2), edge))) == []
    for edge in (1.0 + 1e-8, -1.0 - 1e-8):
        assert len(list(watch.excursions(robot, t, np.full((300, 5, 2), edge)))) == 600
    far = limited(arm, -1e3, 1e3)  # round-off is relative to limits beyond 1
    assert list(watch.excursions(far, t, np.full((5, 2), 1e3 + 1e-7))) == []
    assert len(list(watch.excursions(far, t, np.full((5, 2), 1e3 + 1e-5)))) == 2
    assert list(watch.excursions(robot, t, np.full((5, 2), np.nan))) == []
    assert [e.joint for e in watch.excursions(robot, t, np.array([[0.0, 0.0]] * 4 + [[1.1, -1.1]]))] == [
        "joint1",
        "joint2",
    ]


def test_excursions_beside_lost_states_and_open_ranges():
    """Beside a definition in plain Python: floating robots, ranges that are open at one end, states that are lost."""
    rng = np.random.default_rng(4)
    for name, base in (("two_link", None), ("panda", "floating")):
        given = lw.load(name) if base is None else lw.load(name, base=base)
        for ends in ((-1.0, 1.0), (-np.inf, 1.0), (-1.0, np.inf)):
            robot = limited(given, *ends)
            t, q = np.arange(6.0), rng.normal(0.0, 0.8, (20, 6, robot.nq))
            lost = rng.random(q.shape) < 0.2
            q[lost] = rng.choice([np.nan, np.inf, -np.inf], np.count_nonzero(lost))
            found = {(e.robot[0], e.joint): e for e in watch.excursions(robot, t, q)}
            expected = {}
            place = 0
            for joint in robot.coordinate_joints:
                for number, column in enumerate(q[:, :, place]):
                    off = [(x - 1.0 if x > 0.0 else -1.0 - x, at) for x, at in zip(column, t, strict=True)]
                    inside = (joint.free or not np.isfinite(x) or ends[0] <= x <= ends[1] for x in column)
                    off = [pair for pair, is_inside in zip(off, inside, strict=True) if not is_inside]
                    if off:
                        first = off[0][1]
                        passed = 1.0 if column[int(first)] > 0.0 else -1.0
                        expected[number, joint.name] = (first, passed, max(off)[0])
                place += joint.nq
            assert found.keys() == expected.keys()
            for key, (time, limit, by) in expected.items():
                assert (found[key].time, found[key].limit) == (time, limit)
                assert found[key].by == pytest.approx(by, abs=1e-8)


def test_only_the_end_is_beyond(arm):
    robot = limited(arm, -1.0, 1.0)
    with pytest.warns(
        SimulationWarning, match=r"'joint1' left its range at t = 1 s.*and 1 more: see left_range"
    ):
        found = simulate(
            robot, control.Passive(robot), q=[0.9, -0.9], qd=[0.5, -0.5], duration=1.0, every=1000
        )
    assert [(e.joint, e.time) for e in found.left_range] == [("joint1", 1.0), ("joint2", 1.0)]


# -- torques ----------------------------------------------------------------------------------------------------------


def test_a_python_function_is_bounded_by_the_robots_effort(panda):
    q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])

    def strong(t, q, qd, reference):
        return np.array([500.0, -500.0, 1.0, 0.0, 500.0, 0.0, -500.0])

    found = simulate(panda, strong, q=q, duration=0.002, record=("command",), warn=False)
    np.testing.assert_array_equal(found.tau[0], [87.0, -87.0, 1.0, 0.0, 12.0, 0.0, -12.0])
    np.testing.assert_array_equal(found.recorded["command"], found.tau)
    free = simulate(panda, strong, q=q, duration=0.002, torque_limits=False, warn=False)
    assert free.tau[0, 0] == 500.0
    given = simulate(panda, strong, q=q, duration=0.002, torque_limits=3.0, warn=False)
    assert np.abs(given.tau).max() == 3.0


def test_nan_of_a_python_function_is_not_hidden(arm):
    with pytest.warns(SimulationWarning, match="diverged"):
        found = simulate(arm, lambda t, q, qd, r: np.array([np.nan, 0.0]), q=[0.0, 0.0], duration=0.01)
    assert np.isnan(found.tau[0, 0])


def test_torques_of_a_wrong_shape_are_refused(arm):
    with pytest.raises(lw.LinkwiseError, match=r"controller: expected torques of shape \(2,\), got \(3,\)"):
        simulate(arm, lambda t, q, qd, r: np.zeros(3), q=[0.0, 0.0], duration=0.01)


class Strong(control.Controller):
    """Somebody's own law, which does not look at its limits."""

    def control(self, links, gains, q, qd, reference, memory, period):
        return [500.0 + 0.0 * x for x in q], []


@pytest.mark.parametrize("fused", [True, False])
def test_a_law_of_ones_own_is_bounded_too(panda, fused):
    q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
    found = simulate(panda, Strong(panda, {}), q=q, duration=0.002, fused=fused, warn=False)
    np.testing.assert_array_equal(found.tau[0], panda.effort_limits)
    zero = np.zeros(7)
    np.testing.assert_array_equal(Strong(panda, {}).kernel(1e-3)(q, zero, q, zero, zero), panda.effort_limits)


def test_flaws_of_a_plant_do_not_hide_a_divergence(arm):
    plant = Plant(arm, sensors=lw.simulate.Sensors(position_noise=1e-3, resolution=1e-3))
    with pytest.warns(SimulationWarning, match="diverged"):
        found = simulate(
            plant, control.Tracking(arm, STIFF), [0.3, 0.2], q=np.zeros((2, 2)), duration=0.05, every=10
        )
    assert found.diverged.all()


def test_the_joint_is_named_by_its_speed_in_the_row_before():
    """Random chains and rows: of the joints that are lost the one that was fastest just before, not at the start."""
    rng = np.random.default_rng(2)
    for n in (2, 4, 7):
        robot, t = lw.planar_chain(n), np.linspace(0.0, 1.0, 9)
        for _ in range(20):
            q, qd = rng.normal(size=(2, 9, n))
            row = int(rng.integers(0, 9))
            bad = rng.random(n) < 0.5
            bad[rng.integers(n)] = True
            q[row:, bad] = np.nan
            speeds = np.where(bad, np.abs(qd[max(row - 1, 0)]), -1.0)
            assert watch.first_lost(robot, t, q, qd) == (t[row], robot.joint_names[int(np.argmax(speeds))])
    assert watch.first_lost(robot, t, np.zeros((9, n)), np.zeros((9, n))) is None


def test_joints_that_begin_beyond_their_stop_come_back():
    """Only the end of the text differs: nothing has to be added to a robot with stops."""
    link = lw.Link("rod", lw.Inertia.from_com(1.0, (0, 0, -0.2), (0.02, 0.02, 0.01)))
    joint = lw.Joint(
        "hinge", "revolute", "base", "rod", axis=(0.0, 1.0, 0.0), limits=lw.Limits(lower=-1.0, upper=1.0)
    )
    pendulum = lw.Robot("pendulum", [lw.Link("base"), link], [joint], gravity=(0.0, 0.0, 0.0))
    texts = []
    for robot in (pendulum, pendulum.with_contacts([], stops=True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = simulate(robot, control.Passive(robot), duration=0.1, step=0.002, q=[1.2])
        texts.append([str(each.message) for each in caught if "left its range" in str(each.message)])
        assert [each.stops for each in found.left_range] == [robot is not pendulum]
    assert "only stops would hold it" in texts[0][0]
    assert "its stop brings it back with at most 0.1 rad/s" in texts[1][0]
    np.testing.assert_allclose(found.q[-1], 1.2 - 0.1 * found.t[-1], atol=1e-9)
