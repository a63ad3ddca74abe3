"""References as a kernel reads them and as Python does: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.simulate import Moves, simulate
from linkwise.simulate.reference import Along, StandingStill, source_of

START, END = np.array([0.1, -0.2]), np.array([0.5, 0.3])


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


def read(source, t: float, places=(0.0,)):
    """What a kernel gets at a time: q_d, q̇_d, q̈_d."""
    period = 0.01
    steps = round(t / period) + 1
    values = {name: list(np.ravel(v)) for name, v in source.parameters(2).items()}
    for name, table in source.tables(steps, period, places).items():
        feed = source.feeds(2, places)[name]
        first = (steps - 1) * feed.advance
        values[name] = list(table[first : first + feed.size])
    return [
        [source.at(values, k, (steps - 1 + place) * period, 2) for place in places][k]
        for k in range(len(places))
    ]


@pytest.mark.parametrize("t", [0.0, 0.2, 0.5, 0.8])
def test_moves_and_tables_are_the_quintic(t):
    exact = motion.quintic(START, END, 0.5)
    for source in (Moves(START, END, 0.5), Along((exact,), True)):
        (found,) = read(source, t)
        expected = exact.at(t)
        np.testing.assert_allclose(found.q, expected.q, atol=1e-12)
        np.testing.assert_allclose(np.array(found.qd, dtype=float), expected.qd, atol=1e-11)
        np.testing.assert_allclose(np.array(found.qdd, dtype=float), expected.qdd, atol=1e-9)
        there = source.moment(np.array([t]), (), 2)
        for part, number in zip(there, (found.q, found.qd, found.qdd), strict=True):
            np.testing.assert_allclose(np.asarray(part)[..., 0, :], np.array(number, dtype=float), atol=1e-12)


def test_a_table_has_the_middle_and_the_end_of_a_step():
    exact = motion.quintic(START, END, 0.5)
    found = read(Along((exact,), True), 0.2, (0.0, 0.5, 1.0))
    for reference, t in zip(found, (0.2, 0.205, 0.21), strict=True):
        np.testing.assert_allclose(reference.q, exact.at(t).q, atol=1e-14)
        np.testing.assert_allclose(reference.qdd, exact.at(t).qdd, atol=1e-12)


@pytest.mark.parametrize("fused", [True, False])
def test_a_continuous_law_has_the_reference_of_every_stage(arm, fused):
    """Moves are computed at the middle and the end of a step as tables have them."""
    law = control.named("computed_torque", arm, frequency=15.0)
    options = {
        "duration": 0.4,
        "step": 0.02,
        "q": [0.2, 0.1],
        "qd": [0.0, 0.0],
        "continuous": True,
        "fused": fused,
    }
    exact, moves = (
        simulate(arm, law, reference, **options)
        for reference in (motion.quintic(START, END, 0.5), Moves(START, END, 0.5))
    )
    np.testing.assert_allclose(moves.q, exact.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(moves.qd, exact.qd, rtol=0, atol=1e-10)


def test_a_point_stands_still(arm):
    point = StandingStill(END)
    (found,) = read(point, 0.3)
    assert (list(found.q), found.qd, found.qdd) == (END.tolist(), [0.0, 0.0], [0.0, 0.0])
    q, qd, qdd = point.moment(np.array([0.0, 1.0]), (3,), 2)
    assert q.shape == qd.shape == qdd.shape == (3, 2, 2)
    assert (q == END).all()
    assert not qd.any()
    assert not qdd.any()
    law = control.Tracking(arm, control.Gains(30.0, 7.0), torque_limits=False)
    row = simulate(arm, law, END, q=START, qd=[0.2, -0.1], duration=0.001).tau[0]
    np.testing.assert_allclose(row, law.kernel(1e-3)(START, [0.2, -0.1], END, [0, 0], [0, 0]), rtol=1e-12)


def test_leading_axes_are_the_batch():
    assert StandingStill(np.zeros((4, 2))).batch() == (4,)
    assert Moves(np.zeros((4, 1, 2)), np.zeros((3, 2)), np.ones(3)).batch() == (4, 3)
    assert Moves(START, END, np.ones(5)).batch() == (5,)
    exact = motion.quintic(START, END, 0.5)
    assert source_of(exact, 2).batch() == ()
    assert source_of([exact, exact], 2).batch() == (2,)
    assert source_of((exact,), 2).batch() == (1,)
    several = source_of([exact, motion.quintic(END, START, 0.5)], 2)
    assert several.moment(np.array([0.0]), (2,), 2).q[:, 0].tolist() == [START.tolist(), END.tolist()]
