"""Switching a law, a target, a gain: torques are continuous, and those of the chosen law after the transition."""

import os
from copy import copy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from c_functions import c_function
from linkwise.control import CONTROLLERS, Gains, GravityPD, Reference, Switched, named
from linkwise.simulate.loop import step_kernel

PERIOD, DURATION = 2e-3, 0.05
DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
MORE = ("urdf/example-robot-data/ur10_robot.urdf", "urdf/example-robot-data/talos_left_arm.urdf")


def robots():
    yield from map(lw.load, lw.robots())
    for path in MORE:
        if (DATA / path).exists():
            yield lw.load(DATA / path)


def laws(robot):
    return {
        "computed_torque": named("computed_torque", robot, frequency=8.0),
        "gravity_pd": named("gravity_pd", robot, frequency=5.0),
        "integral_tracking": named("integral_tracking", robot, frequency=6.0),
    }


class Loop:
    """A law over Python floats along a smooth measured motion, with everything that may be switched."""

    def __init__(self, law):
        self.law, robot, rng = law, law.robot, np.random.default_rng(5)
        low, high = np.maximum(robot.limits.lower, -1.5), np.minimum(robot.limits.upper, 1.5)
        self.middle, self.size = 0.5 * (low + high), 0.1 * (high - low)
        self.phase = rng.uniform(0.0, 6.0, robot.dof)
        self.target = self.middle + 0.3 * self.size * rng.normal(size=robot.dof)
        self.gains = {name: np.asarray(values) for name, values in law.gains.items()}
        self.memory, self.time, self.links = [0.0] * law.memory_size, 0.0, law.links()

    def step(self):
        """Torques, and those of the chosen law alone."""
        angle = 3.0 * self.time + self.phase
        q, qd = self.middle + self.size * np.sin(angle), 3.0 * self.size * np.cos(angle)
        still = [0.0] * len(q)
        state = (q.tolist(), qd.tolist(), Reference(self.target.tolist(), still, still))
        gains = self.law.shaped({name: values.ravel().tolist() for name, values in self.gains.items()})
        found = self.law.commanded(self.links, gains, *state, self.memory, PERIOD)
        self.memory, self.time = found.memory, self.time + PERIOD
        return np.array(found.tau), found.fault, state


def change(loop, k):
    """What is switched before sample k; whether something is."""
    if k in (20, 140, 150):  # the last one during a transition
        loop.gains["selected"] = np.array([{20: 1.0, 140: 2.0, 150: 0.0}[k]])
    elif k == 60:
        loop.target = loop.target + 0.4
    elif k == 100:
        loop.gains["gravity_pd_kp"] = 2.0 * loop.gains["gravity_pd_kp"]
    return k in (20, 60, 100, 140, 150)


def test_nothing_that_is_switched_makes_torques_jump_on_any_robot():
    """On every robot: the law, the target, a gain. The sample of the change repeats the last torque; no later step is
    more than a sixth of the range of torques, and the law's own torques come back within the duration."""
    for robot in robots():
        loop = Loop(Switched(laws(robot), duration=DURATION))
        rows = []
        for k in range(190):
            changed = change(loop, k)
            tau, fault, state = loop.step()
            assert fault == 0.0
            if changed:
                np.testing.assert_allclose(tau, rows[-1], rtol=1e-9, atol=1e-9, err_msg=robot.name)
            rows.append(tau)
        rows = np.array(rows)
        steps, spread = np.abs(np.diff(rows, axis=0)).max(axis=0), np.ptp(rows, axis=0)
        assert (steps <= spread / 6.0).all(), (robot.name, steps, spread)
        chosen = laws(robot)["computed_torque"]
        gains = {name: values.tolist() for name, values in chosen.gains.items()}
        alone = chosen.commanded(chosen.links(), gains, *state, [], PERIOD)
        np.testing.assert_allclose(rows[-1], alone.tau, rtol=1e-9, atol=1e-9, err_msg=robot.name)


def laws_apart(law, loop, state):
    """How far the torques of two laws are apart in a state."""
    found = []
    for each in list(law.laws.values())[:2]:
        gains = {k: v.tolist() for k, v in each.gains.items()}
        found.append(
            np.array(each.commanded(each.links(), gains, *state, [0.0] * each.memory_size, PERIOD).tau)
        )
    return found[0] - found[1]


def test_without_the_wrapper_they_do_jump():
    robot = lw.load("panda")
    loop = Loop(Switched(laws(robot), duration=DURATION))
    *_, state = loop.step()
    assert np.abs(laws_apart(loop.law, loop, state)).max() > 1.0


def test_a_target_jumps_where_its_own_velocity_does_not_lead():
    """Positions by the mean velocity, velocities by the mean acceleration; beyond ``jump``, and 50 of it a second."""
    law = Switched({"pd": GravityPD(lw.load("two_link"), Gains(50.0, 10.0))}, jump=0.01)
    h, links = 0.1, law.links()
    last = Reference([0.1, 0.2], [1.0, -2.0], [3.0, 8.0])
    qdd = [-2.0, 1.0]
    qd = [v + 0.5 * h * (a + b) for v, a, b in zip(last.qd, last.qdd, qdd, strict=True)]
    q = [x + 0.5 * h * (a + b) for x, a, b in zip(last.q, last.qd, qd, strict=True)]
    for k in (0, 1):
        for off, faster in ((0.01, 0.0), (0.0, 0.2), (0.025, 0.5)):  # limits of a position, and of a velocity
            for part in (0.9, -0.9, 1.1, -1.1):
                new = Reference(list(q), list(qd), qdd)
                new.q[k] += part * off
                new.qd[k] += part * faster
                assert law._jumped(links, last, new, h) == (1.0 if abs(part) > 1.0 else 0.0), (k, off, part)


def test_smooth_targets_are_no_jumps_and_bad_choices_are_faults():
    robot = lw.load("two_link")
    law = Switched({"pd": GravityPD(robot, Gains(50.0, 10.0))})
    assert law.settings().keys() == {"kp", "kd", "selected", "torque_limits"}
    memory, links = [0.0] * law.memory_size, law.links()
    gains = {name: values.tolist() for name, values in law.gains.items()}
    for k in range(50):
        t = PERIOD * k
        moving = Reference([0.5 * np.sin(6 * t)] * 2, [3.0 * np.cos(6 * t)] * 2, [-18.0 * np.sin(6 * t)] * 2)
        found = law.commanded(links, gains, [0.0, 0.0], [0.0, 0.0], moving, memory, PERIOD)
        plain = law.laws["pd"].commanded(links, gains, [0.0, 0.0], [0.0, 0.0], moving, [], PERIOD)
        assert found.tau == plain.tau  # the same bits: nothing was taken for a jump
        memory = found.memory
    for selected in (1.0, -1.0, np.nan):
        bad = law.commanded(
            links, {**gains, "selected": [selected]}, [0.1] * 2, [0.0] * 2, moving, memory, PERIOD
        )
        assert bad.fault == 1.0
        assert bad.tau == [0.0, 0.0]
    after = law.commanded(links, gains, [0.1] * 2, [0.0] * 2, moving, bad.memory, PERIOD)
    assert after.fault == 0.0
    assert after.tau == [0.0, 0.0]  # from no torque on, without a jump
    with pytest.raises(ValueError, match="at least one"):
        Switched({})
    with pytest.raises(lw.UnknownNameError, match="no 'dp'"):
        law.selecting("dp")
    for nq, dof in ((3, 2), (2, 3)):  # as many joints or positions are not enough
        other = copy(law.laws["pd"])
        other.robot = SimpleNamespace(nq=nq, dof=dof)
        with pytest.raises(ValueError, match="other is for another robot"):
            Switched({"pd": law.laws["pd"], "other": other})


def test_an_arm_that_is_switched_settles():
    """The compiled law in a closed loop: the choice, then the target, change while it runs."""
    robot = lw.load("two_link")
    law = Switched(laws(robot), duration=DURATION, torque_limits=False)
    kernel, plant = law.kernel(PERIOD, tunable=True, fault=True), step_kernel(robot)
    settings, memory = law.settings() | {"torque_limits": np.full(2, 1e30)}, np.zeros(law.memory_size)
    q, qd, target, still, last = np.zeros(2), np.zeros(2), np.array([0.3, -0.3]), np.zeros(2), None
    for k in range(1500):
        if k in (300, 900):
            settings["selected"] = np.array([1.0 if k == 300 else 0.0])
        if k == 600:
            target = np.array([-0.4, 0.6])
        tau, memory, fault = kernel(q, qd, target, still, still, memory, *settings.values())
        assert fault == 0.0
        if k in (300, 600, 900):
            np.testing.assert_allclose(tau, last, rtol=1e-12)
        q, qd = plant(q, qd, tau, np.array([PERIOD]))
        last = tau
    np.testing.assert_allclose(q, target, atol=1e-3)


def walk_over_all_pairs(count):
    """Numbers below ``count`` in which every ordered pair of different ones stands next to each other, once."""
    left = {a: [b for b in range(count) if b != a] for a in range(count)}
    stack, found = [0], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            found.append(stack.pop())
    return found[::-1]


def switched_between_all(robot):
    """One law with every row of ``CONTROLLERS``."""
    laws = {
        n: named(n, robot, **({"frequency": 8.0} if law.feedback else {})) for n, law in CONTROLLERS.items()
    }
    return Switched(laws, duration=DURATION)


def test_every_pair_of_controllers_is_switched_without_a_jump(tmp_path):
    """All ordered pairs of ``CONTROLLERS``, every third one during the transition before, while targets jump, too. The
    generated C does the same, bit by bit."""
    law = switched_between_all(lw.load("two_link"))
    kernel, settings, memory = (
        law.kernel(PERIOD, tunable=True, fault=True),
        law.settings(),
        np.zeros(law.memory_size),
    )
    generated, order = c_function(kernel, tmp_path), walk_over_all_pairs(len(CONTROLLERS))
    assert len(set(pairwise(order))) == len(CONTROLLERS) * (len(CONTROLLERS) - 1)
    target, still, last, time = np.array([0.3, -0.4]), np.zeros(2), None, 0.0

    def sample():
        nonlocal memory, time
        angle = 3.0 * time + np.array([0.3, 1.7])
        q, qd = 0.3 * np.sin(angle), 0.9 * np.cos(angle)
        given = (q, qd, target, still, still, memory, *settings.values())
        tau, memory, fault = kernel(*given)
        for here, there in zip((tau, memory, fault), generated(*given), strict=True):
            assert here.tobytes() == there.tobytes()
        time += PERIOD
        assert fault == 0.0
        return tau

    for number, chosen in enumerate(order):
        if number % 2:
            target = -target
        settings["selected"] = np.array([float(chosen)])
        for k in range(5 if number % 3 else 30):
            tau = sample()
            if not k and last is not None:
                np.testing.assert_allclose(tau, last, rtol=1e-9, err_msg=str(list(law.laws)[chosen]))
            last = tau
