"""Small formulas on plain numbers, beside what defines them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.algorithms import ud_factors
from linkwise.control.task_space.hand_guiding import wall_force
from linkwise.identify.estimation.quasi_newton import _times_inverse
from linkwise.identify.judging.hypotheses import Recording


def test_turns_of_every_size_are_those_of_scipy():
    """Small angles come from series: they end where the sines begin, at half a radian."""
    ball = lw.Robot("ball", [lw.Link("base"), lw.Link("body")], [lw.Joint("ball", "ball", "base", "body")])
    rng = np.random.default_rng(0)
    for angle in (0.0, 1e-9, 1e-3, 0.1, 0.3, 0.45, 0.499, 0.501, 1.0, 3.0):
        axis = rng.normal(size=3)
        turn = angle * axis / np.linalg.norm(axis)
        start = Rotation.from_rotvec(rng.normal(size=3))
        wanted = (start * Rotation.from_rotvec(turn)).as_quat()
        found = ball.integrate(start.as_quat(), turn)
        assert np.abs(found * np.sign(found @ wanted) - wanted).max() < 1e-15, angle
        assert np.abs(ball.difference(start.as_quat(), found) - turn).max() < 4e-15, angle


def test_a_wall_is_a_spring_with_a_damper_on_the_way_in():
    """The damper grows over the first millimetre, so that the force does not jump."""
    for depth, speed, wanted in (
        (-0.01, -1.0, 0.0),
        (0.0, -1.0, 0.0),
        (0.0005, -0.2, 0.5 + 0.5 * 0.2 * 30.0),
        (0.001, -0.2, 1.0 + 0.2 * 30.0),
        (0.02, -0.2, 20.0 + 0.2 * 30.0),
        (0.02, 0.2, 20.0),
    ):
        assert abs(wall_force(depth, speed, 1000.0, 30.0) - wanted) < 1e-12, (depth, speed)


def test_the_inverse_that_steps_tell_is_that_of_a_parabola():
    """Along conjugate steps that fill the space it is the inverse; the last step is told exactly in any case."""
    rng = np.random.default_rng(1)
    for size in (2, 3, 5):
        root = rng.normal(size=(size, size))
        H = root @ root.T + np.eye(size)
        steps = list(np.linalg.eigh(H)[1].T)
        changes, gradient = [H @ step for step in steps], rng.normal(size=size)
        assert np.allclose(_times_inverse(gradient, steps, changes), np.linalg.solve(H, gradient), atol=1e-12)
        steps = list(rng.normal(size=(4, size)))
        changes = [H @ step for step in steps]
        assert np.allclose(_times_inverse(changes[-1], steps, changes), steps[-1], atol=1e-10)


def test_factors_of_weighted_rows_give_the_matrix_back():
    rng = np.random.default_rng(2)
    for size, columns in ((1, 1), (2, 3), (4, 7), (6, 6)):
        W, weights = rng.normal(size=(size, columns)), rng.uniform(0.1, 2.0, columns)
        found = ud_factors.predicted(W.tolist(), weights.tolist())
        U = np.eye(size)
        for j in range(size):
            for i in range(j):
                U[i, j] = found.U[j * (j - 1) // 2 + i]
        assert np.allclose((U * np.array(found.D)) @ U.T, (W * weights) @ W.T, atol=1e-12)


def test_a_slower_recording_is_that_of_another_clock():
    t = np.linspace(0, 1, 5)[:, None]
    q, tau = np.sin(3 * t), np.zeros((5, 1))
    once = Recording(q, 3 * np.cos(3 * t), -9 * np.sin(3 * t), tau, np.zeros(3), np.zeros(1, int))
    slow = once.slower(4.0)
    assert (slow.q == q).all()
    assert np.allclose(slow.qd, 0.75 * np.cos(3 * t), atol=1e-15)
    assert np.allclose(slow.qdd, -9 / 16 * np.sin(3 * t), atol=1e-15)
