"""What cannot be right is noticed, and the message names the cause: faults of simulated recordings with noise."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, condition, identify
from linkwise.identify.judging import diagnosis
from linkwise.identify.judging.diagnosis import Fitted, Search, diagnose
from linkwise.identify.judging.hypotheses import Hypothesis
from linkwise.identify.judging.screening import Screen, thinned
from linkwise.identify.judging.searched import searched

NOISE = 0.03  # of each torque


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    """Three joints: many faults are tried."""
    return lw.load("puma560").lock({"wrist_roll": 0.0, "wrist_bend": 0.3, "flange": 0.0})


def recorded(robot: lw.Robot, share: float = NOISE) -> Log:
    """Of a robot that is a bit heavier than the file, with friction."""
    n = robot.dof
    factors = 1.0 + 0.15 * np.random.default_rng(3).uniform(size=n)
    values = zip(robot.parameter_labels[: 10 * n], robot.parameters, strict=False)
    links = {label: float(factors[k // 10] * value) for k, (label, value) in enumerate(values)}
    friction = {
        f"{name}.{kind}": float(value)
        for name, value in zip(robot.joint_names, [5.0, 5.0, 3.0, 0.6, 0.5, 0.3], strict=False)
        for kind in ("viscous_friction", "coulomb_friction")
    }
    truth = robot.with_parameters(links | friction)
    t, q, qd, qdd = motion(5, dof=n, seconds=10.0, size=0.5)
    tau = truth.inverse_dynamics(q, qd, qdd)
    noise = share * np.sqrt((tau**2).mean(axis=0)) * np.random.default_rng(1).normal(size=tau.shape)
    return Log(t, q, tau + noise, name="run1")


@pytest.fixture(scope="module")
def log(robot) -> Log:
    return recorded(robot)


def said(robot: lw.Robot, log: Log) -> str:
    found = diagnose(robot, [condition(log, cutoff=10.0)])
    words = (*found.causes, *found.remarks)
    assert len(words) <= 1
    return "".join(words)


def exchanged(log: Log, *places: int, q: bool = True, tau: bool = True) -> Log:
    order = np.arange(log.dof)
    order[list(places)] = order[list(places)[::-1]]
    return replace(log, q=log.q[:, order] if q else log.q, tau=log.tau[:, order] if tau else log.tau)


def test_nothing_is_said_of_a_good_recording(robot, log):
    assert said(robot, log) == ""


def test_exchanged_joints(robot, log):
    words = said(robot, exchanged(log, 1, 2))
    assert "columns of shoulder and elbow look exchanged" in words
    before, after = (float(part.split(" %")[0]) for part in words.split("residual ")[1][5:].split(" to "))
    assert before > 15
    assert after < 6


def test_exchanged_columns_of_one_quantity(robot, log):
    torques = said(robot, exchanged(log, 0, 2, q=False))
    assert "columns of torques of waist and elbow look exchanged" in torques
    positions = said(robot, exchanged(log, 0, 1, tau=False))
    assert "columns of positions of waist and shoulder look exchanged" in positions


def test_two_exchanges_are_both_named():
    whole = lw.load("puma560")
    words = said(whole, exchanged(exchanged(recorded(whole), 0, 1), 2, 4))
    assert "waist and shoulder look exchanged" in words
    assert "elbow and wrist_bend look exchanged" in words


@pytest.mark.parametrize("gravity", [(9.81, 0.0, 0.0), (0.0, 0.0, 9.81)])  # a wall, the ceiling
def test_direction_of_gravity(robot, log, gravity):
    found = said(robot.with_gravity(gravity), log)
    assert "gravity looks directed along −z of the base" in found
    assert "--gravity 0,0,-9.81" in found


def test_a_tilted_base_is_measured(robot, log):
    truth = np.array([0.0, 3.355, -9.218])
    tilted = robot.with_gravity(truth)
    _, q, qd, qdd = motion(5, dof=3, seconds=10.0, size=0.5)
    added = tilted.inverse_dynamics(q, qd, qdd) - robot.inverse_dynamics(q, qd, qdd)
    words = said(robot, replace(log, tau=log.tau + added))
    found = [float(number) for number in words.split("--gravity ")[1].split(")")[0].split(",")]
    np.testing.assert_allclose(found, truth, atol=0.6)  # [m/s²], 3°


def test_signs(robot, log):
    last = np.array([1, 1, -1])
    assert "torques of elbow look counted in the opposite" in said(robot, replace(log, tau=last * log.tau))
    assert "torques of all joints look counted in the opposite" in said(robot, replace(log, tau=-log.tau))
    assert "positions of elbow look counted in the opposite" in said(robot, replace(log, q=last * log.q))


def test_signs_of_all_joints_are_always_tried(robot, log, monkeypatch):
    """Least squares do not notice them, and every joint's own sign helps: an xMate3 had those of three joints."""
    monkeypatch.setattr(diagnosis, "TRIED", 0)
    for sign in (1.0, -1.0):
        signals = [condition(replace(log, tau=sign * log.tau), cutoff=10.0)]
        search = Search(Screen(robot), thinned(signals, np.array(robot.gravity)))
        causes = [hypothesis.cause for hypothesis, _ in search._shortlist(search.start)]
        assert ("torques of all joints look counted in the opposite direction" in causes) == (sign < 0)


def test_gravity_along_all_axes_and_none_is_tried(robot, log):
    """Each direction once: six axes without the one that counts already, what explains most, and no gravity."""
    recording = thinned([condition(log, cutoff=10.0)], np.array(robot.gravity))
    search = Search(Screen(robot), recording)
    tried = [np.array(each.corrected.gravity) for each in search._gravities(search.start)]
    size = np.linalg.norm(robot.gravity)
    for axis in np.eye(3):
        for sign in (1.0, -1.0):
            near = [g for g in tried if np.linalg.norm(g - sign * size * axis) < 1e-9 * size]
            assert len(near) == (not np.allclose(sign * size * axis, robot.gravity))
    assert sum(not g.any() for g in tried) == 1
    angles = [diagnosis._angle(g, h) for k, g in enumerate(tried) for h in tried[:k]]
    assert min(angles) > diagnosis.TILTED


def test_zero_positions(robot, log):
    q = log.q + np.radians([0, 90, 0])
    words = said(robot, replace(log, q=q))
    assert "positions of shoulder look counted from another zero" in words
    assert "adding -90°" in words


def test_any_zero_of_one_joint_is_searched(robot):
    """Other first moments explain most of another zero, so noise hides it for short arms: the search alone."""
    t, q, qd, qdd = motion(5, dof=3, seconds=10.0, size=0.5)
    tau = robot.inverse_dynamics(q, qd, qdd)
    screen = Screen(robot)
    for shift in (0.6, -0.35):
        recording = thinned(
            [condition(Log(t, q + (0.0, shift, 0.0), tau), cutoff=10.0)], np.array(robot.gravity)
        )
        found = searched(screen, recording, screen.columns(recording))
        remedies = [
            each.remedy for each in found if "of shoulder look counted from another zero" in each.cause
        ]
        assert float(remedies[0].split("adding ")[1].split("°")[0]) == pytest.approx(
            -np.degrees(shift), abs=6.0
        )


@pytest.mark.parametrize("factor", [0.01, 2.5])
def test_the_torque_of_one_joint_in_another_unit(robot, log, factor):
    words = said(robot, replace(log, tau=log.tau * (1.0, factor, 1.0)))
    assert "torques of shoulder look" in words
    assert float(words.split("multiplying them with ")[1].split(" ")[0]) == pytest.approx(1 / factor, rel=0.2)


def test_causes_that_torques_do_not_distinguish_are_both_said():
    """A planar arm whose axes are parallel to gravity's plane: a turned base and another zero are the same."""
    arm = lw.load("two_link")
    t, q, qd, qdd = motion(5, seconds=10.0)
    tau = arm.inverse_dynamics(q, qd, qdd)
    noise = NOISE * np.sqrt((tau**2).mean(axis=0)) * np.random.default_rng(1).normal(size=tau.shape)
    words = said(arm, Log(t, q + (np.pi, 0.0), tau + noise))
    assert "joint1 look counted from another zero" in words
    assert "gravity looks directed along" in words
    assert words.startswith("one of these, which torques do not distinguish: ")


@pytest.mark.parametrize(
    ("agreement", "falls", "trusted", "clearer"),
    [
        ((0.9, 0.65), (2.0, 2.0), True, True),  # the file's masses agree better by more than 0.2
        ((0.9, 0.75), (2.0, 2.0), True, False),
        ((0.9, 0.65), (2.0, 2.0), False, False),  # masses that are guesses decide nothing
        ((0.9, 0.9), (2.3, 2.0), True, True),  # or residuals fall by a tenth more
        ((0.9, 0.9), (2.1, 2.0), True, False),
    ],
)
def test_by_how_much_one_cause_is_clearer_than_another(robot, log, agreement, falls, trusted, clearer):
    recording = thinned([condition(log, cutoff=10.0)], np.array(robot.gravity))
    places = recording, replace(recording, gravity=-recording.gravity)
    search = Search.__new__(Search)
    search.screen, search.weights = SimpleNamespace(trusted=trusted), np.ones(3)
    now = Fitted(Hypothesis("", "", recording), np.zeros(0), np.ones(3), 0.0)
    best, rival = (
        Fitted(Hypothesis("", "", place), np.zeros(0), np.ones(3) / fall, agrees)
        for place, fall, agrees in zip(places, falls, agreement, strict=True)
    )
    assert search._clearer(now, best, rival) == clearer
    same = replace(rival, hypothesis=best.hypothesis)
    assert search._clearer(now, best, same)  # two ways to say one thing


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda log: replace(log, q=np.degrees(log.q)), "look like deg"),
        (lambda log: replace(log, q=log.q / 57.3), "radians that were taken for degrees"),
        (lambda log: replace(log, t=1000 * log.t), "look like ms"),
        (lambda log: replace(log, t=10 * log.t), "10 times too slow"),
        (lambda log: replace(log, tau=1000 * log.tau), "look like N·mm"),
        (lambda log: replace(log, tau=log.tau / 14), "currents"),
        (lambda log: replace(log, qd=np.degrees(np.gradient(log.q, log.t, axis=0))), "look like deg/s"),
    ],
)
def test_units(robot, log, change, words):
    changed = change(log)
    found = diagnose(robot, [condition(changed, cutoff=10.0 / (changed.duration / log.duration))])
    assert words in "".join((*found.causes, *found.remarks))


def test_any_factor_of_time_is_searched(robot):
    """Three times too slow was "2 times", and a torque 2.1 times too large besides."""
    log = recorded(robot, 0.005)
    for factor in (3.0, 0.3):
        late = replace(log, t=factor * log.t)
        (cause,) = diagnose(robot, [condition(late, cutoff=10.0 / factor)]).causes
        assert cause.startswith("the motion looks 3")
        assert f"times too {'slow' if factor > 1 else 'fast'}: time stamps have another unit" in cause
        found = float(cause.split("multiplying times with ")[1].split(" ")[0])
        assert found == pytest.approx(1 / factor, rel=0.05)
    assert said(robot, log) == ""


def test_positions_over_another_link(robot, log):
    """As those of arms with a parallel linkage."""
    q = log.q.copy()
    q[:, 2] += q[:, 1]
    words = said(robot, replace(log, q=q))
    assert "positions of elbow look counted together with those of shoulder: subtracting the latter" in words


def test_weight_that_counts_twice(robot, log):
    """Links twice as heavy that move more slowly have the same torques: the file's masses decide."""
    words = said(robot, replace(log, tau=log.tau + robot.gravity_torques(log.q)))
    assert "weight were counted twice" in words
    assert "taking it away once" in words
    assert "weight" not in said(robot, replace(log, t=log.t / np.sqrt(2.0)))


def test_exchanged_velocities(robot, log):
    slope = np.gradient(log.q, log.t, axis=0)
    words = said(robot, replace(log, qd=slope[:, [0, 2, 1]]))
    assert "velocities of shoulder follow the positions of elbow" in words


def test_a_robot_of_another_size(robot, log):
    bodies = zip(robot.parameter_labels[:30], robot.parameters, strict=False)
    small = robot.with_parameters({label: 0.4 * float(value) for label, value in bodies})
    words = said(small, log)
    assert "times those of the masses in puma560" in words
    assert "another robot or another size of it" in words


def test_friction_alone_says_nothing_of_masses():
    """Where friction is nearly all of every torque, what is left of it contradicts nothing: the file's robot moves."""
    robot = lw.load("puma560")
    rng = np.random.default_rng(0)
    t = np.arange(2500) / 250.0
    rate = 2 * np.pi * rng.uniform(0.1, 0.6, (3, 6))
    size, phase = rng.normal(size=(3, 6)) * 0.4, rng.uniform(0.0, 6.0, (3, 6))
    size[:, 1] = 0.0  # the shoulder stands
    angle = t[:, None, None] * rate + phase
    q, qd = (size * np.sin(angle)).sum(axis=1), (size * rate * np.cos(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, qd, -(size * rate**2 * np.sin(angle)).sum(axis=1))
    tau += 0.01 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    log = Log(t, q + 1e-5 * rng.normal(size=q.shape), tau)
    found = diagnose(robot, [condition(log, cutoff=8.0)])
    assert [*found.causes, *found.remarks] == []


def test_positions_that_the_robot_cannot_reach(robot, log):
    joints = [replace(joint, limits=replace(joint.limits, lower=-0.2, upper=0.2)) for joint in robot.joints]
    other = lw.Robot(robot.name, robot.links, joints, gravity=robot.gravity)
    strange = replace(log, tau=log.tau + 30 * np.sin(7 * log.q[:, :1]))
    assert "cannot reach all positions: waist moves from" in said(other, strange)


def test_identification_warns_of_the_cause(robot, log):
    """With its defaults, and of nothing that follows from the cause."""
    wrong = exchanged(log, 1, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = identify(robot, wrong, friction="coulomb")
    words = [str(each.message) for each in caught if each.category is IdentificationWarning]
    assert len([each for each in words if "shoulder and elbow look exchanged" in each]) == 1
    assert not any("would have to drive" in each for each in words)
    assert not any("later than" in each or "earlier than" in each for each in words)  # nor a lag that is none
    assert any("look exchanged" in each for each in found.summary()["warnings"])


def test_a_lag_is_no_other_cause(robot, log):
    late = Log(log.t[10:], log.q[10:], log.tau[:-10], name="late")  # 50 ms
    assert said(robot, late) == ""


def test_another_clock_must_not_cost_a_joint_anything():
    """It is that of all joints: two joints that it helps do not outvote one that it hurts."""
    search = Search.__new__(Search)
    search.weights, search.weightless = np.ones(4), False
    search.screen = SimpleNamespace(trusted=False)
    recording = SimpleNamespace(gravity=np.ones(3))
    before = np.array([0.15, 0.30, 0.14, 0.10])

    def accepted(clock: bool, hurt: float) -> bool:
        after = np.array([hurt * 0.15, 0.07, 0.07, 0.10])
        hypothesis = Hypothesis("", "", recording, clock=clock)
        now, other = (Fitted(hypothesis, np.zeros(0), x, 0.0) for x in (before, after))
        return search._is_accepted(now, other)

    assert accepted(False, 1.12)
    assert accepted(True, 1.04)
    assert not accepted(True, 1.06)


def test_another_clock_is_no_remedy_for_noise():
    """Of an Airbot with a load, filtered at 36 Hz: columns of accelerations are noise, and a slower clock has less."""
    search = Search.__new__(Search)
    search.weights, search.weightless = np.ones(6), False
    search.screen = SimpleNamespace(trusted=False)
    hypothesis = Hypothesis("", "", SimpleNamespace(gravity=np.ones(3)), clock=True)

    def accepted(before: list[float], after: list[float]) -> bool:
        now, other = (Fitted(hypothesis, np.zeros(0), np.array(x), 0.0) for x in (before, after))
        return search._is_accepted(now, other)

    noisy = [0.484, 0.373, 0.171, 0.283, 0.393, 0.215], [0.442, 0.276, 0.129, 0.185, 0.226, 0.211]
    slow = [0.341, 0.132, 0.209, 0.153, 0.097, 0.347], [0.118, 0.025, 0.056, 0.078, 0.092, 0.365]  # a UR10
    assert not accepted(*noisy)
    assert accepted(*slow)
