"""The spring of a posture in the null space is no potential: what it gives out beyond what it stored is limited."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.control.controller import Reference
from linkwise.control.task_space import tool
from linkwise.control.task_space.posture_account import PostureAccount

K, BUDGET, POINTS = 25.0, 0.3, 100


def pull(q: np.ndarray, e: np.ndarray) -> np.ndarray:
    """−k N e with a null space of one direction, which depends on the position as that of an arm does."""
    direction = np.array([np.cos(q[0]), np.sin(q[0] + 0.3 * q[1]), 0.2])
    return -K * direction * (direction @ e)


def followed(path: np.ndarray, references: np.ndarray) -> tuple[list[float], list[float]]:
    """(energy used, work of the spring that was given) after every sample of a motion."""
    memory = [0.0] * 11
    used, given = [], [0.0]
    for k, (q, r) in enumerate(zip(path, references, strict=True)):
        account = PostureAccount.of(memory, 3, 3)
        last = np.array(account.reference)
        now = account.used_now(q - last, pull(q, q - last), q - r, pull(q, q - r), BUDGET)
        share = np.clip((BUDGET - now) / (0.1 * BUDGET), 0.0, 1.0)
        memory = [now, 1.0, *r, *(q - r), *pull(q, q - r)]
        used.append(float(now))
        if k + 1 < len(path):
            force = 0.5 * (pull(q, q - r) + pull(path[k + 1], path[k + 1] - r))
            given.append(given[-1] + float(share * force @ (path[k + 1] - q)))
    return used, given


def circles(turns: int, way: float) -> np.ndarray:
    angle = way * np.linspace(0.0, 2.0 * np.pi * turns, POINTS * turns + 1)
    return np.stack([np.cos(angle) - 1.0, np.sin(angle), 0.0 * angle], -1)


def test_turns_for_ever_use_the_budget_up_and_no_more():
    for way in (1.0, -1.0):
        path = circles(8, way)
        _, given = followed(path, np.zeros_like(path))
        assert max(given) <= BUDGET * (1.0 + 1e-9)
        if max(given) > 0.9 * BUDGET:  # the way round in which the spring pushes
            assert abs(given[-1] - given[-1 - POINTS]) < 0.01 * BUDGET
            break
    else:
        raise AssertionError("neither way round does the spring push")


def test_the_way_back_gives_back_what_the_way_out_used():
    out = circles(1, 1.0)[:30]
    used, _ = followed(np.concatenate([out, out[::-1]]), np.zeros((60, 3)))
    assert abs(used[-1]) < 1e-9 or used[-1] < max(used)


def test_references_that_move_use_nothing_up():
    """A streamed reference that the joints follow with an error: the spring works all the time."""
    path = np.linspace([0.0, 0.0, 0.0], [3.0, 2.0, 1.0], 500)
    used, given = followed(path, path + [0.05, 0.05, 0.05])
    assert given[-1] > 3.0 * BUDGET
    assert max(used) < 0.5 * BUDGET


def test_the_law_gives_no_spring_once_the_budget_is_used():
    robot = lw.load("panda")
    law = control.CartesianImpedance(robot, torque_limits=False)
    q, n = np.array([0.3, -0.6, 0.5, -1.4, 0.9, 1.2, 0.2]), robot.dof
    gains = {name: values.tolist() for name, values in law.gains.items()}
    reference = Reference((q + 0.1).tolist(), [0.0] * n, [0.0] * n)

    def torques(memory: list[float]) -> tuple[np.ndarray, list[float]]:
        tau, following = law.control(law.links(), gains, q.tolist(), [0.0] * n, reference, memory, 1e-3)
        return np.array(tau, float), [float(x) for x in following]

    fresh, memory = torques([0.0] * law.memory_size)
    again, _ = torques(memory)
    np.testing.assert_array_equal(fresh, again)
    spent, _ = torques([2.0 * gains["posture_energy"][0], *memory[1:]])
    without = control.CartesianImpedance(robot, posture=0.0, torque_limits=False)
    tau, _ = without.control(
        without.links(),
        {k: v.tolist() for k, v in without.gains.items()},
        q.tolist(),
        [0.0] * n,
        reference,
        [],
        1e-3,
    )
    np.testing.assert_allclose(spent, np.array(tau, float), atol=1e-9)
    assert np.abs(spent - fresh).max() > 1e-3


def test_axes_that_are_much_stiffer_than_the_lightest_are_equally_stiff(monkeypatch):
    """Their difference turned a light wrist that was turned away, faster than its damper and 2 ms of delay can hold."""
    monkeypatch.setattr(tool, "mobilities", lambda *_: 1e-9 * np.eye(6)[None])
    for lightest, expected in ((1e-4, [1e-4, 4e-3, 4e-3]), (1e-3, [1e-3, 5e-3, 4e-3])):
        monkeypatch.setattr(
            tool, "usual_inertia", lambda *_, x=lightest: np.array([x, 5e-3, 4e-3, 2.0, 2.0, 2.0])
        )
        np.testing.assert_allclose(tool.spring_inertia(lw.load("panda"))[:3], expected)
