"""Friction terms are chosen by what they predict."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify
from linkwise.identify.estimation.friction import Term
from linkwise.identify.estimation.friction_choice import (
    DIRECTIONS,
    Law,
    Trials,
    _all_terms,
    _with_direction,
    simplest,
)

MEMORY = Term("coulomb", width=1e-3)


def trials(truth: dict[Term, float], noise: float = 0.1) -> Trials:
    """Random columns for all terms, and torques that these terms explain."""
    terms = _all_terms()
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(600, len(terms)))
    wanted = noise * rng.normal(size=600)
    wanted = wanted + sum(factor * columns[:, terms.index(term)] for term, factor in truth.items())
    folds = [np.arange(600) // 60 == k for k in range(10)]
    return Trials(terms, columns, wanted[:, None], np.ones(1), np.ones(1), folds)


def test_what_is_worth_it_joins_and_nothing_else():
    truth = {Term("viscous"): 2.0, Term("offset"): 0.5, MEMORY: 1.0, Term("saturating", speed=0.1): 0.7}
    assert set(simplest(list(trials(truth).laws())).terms) == set(truth)


def test_all_terms_have_one_direction():
    load = _with_direction(Term("load"), MEMORY)
    truth = {Term("viscous"): 2.0, Term("offset"): 0.5, MEMORY: 1.0, load: 0.3}
    assert set(simplest(list(trials(truth).laws())).terms) == set(truth)
    for law in trials(truth).laws():
        assert (
            len(
                {
                    (term.blur, term.width)
                    for term in law.terms
                    if term.kind in ("coulomb", "load", "stribeck")
                }
            )
            == 1
        )


def test_a_gear_does_not_lose_most_of_its_load_and_friction_does_not_drive():
    load = _with_direction(Term("load"), MEMORY)
    found = trials({Term("viscous"): -2.0, MEMORY: 1.0, load: 0.8})
    assert found.law([Term("viscous"), Term("offset"), MEMORY, load]) is None
    plain = found.law([Term("viscous"), Term("offset"), MEMORY])
    without = found.law([Term("offset"), MEMORY])
    np.testing.assert_allclose(plain.errors, without.errors, rtol=1e-3)  # a negative coefficient is none


def test_errors_are_those_of_motions_left_out():
    found = trials({Term("viscous"): 2.0, MEMORY: 1.0})
    law = found.law([Term("viscous"), MEMORY])
    columns = [found.terms.index(term) for term in law.terms]
    gram, right = found.grams.sum(axis=0), found.rights.sum(axis=0)
    pick = np.ix_(columns, columns)
    x = np.linalg.solve((gram - found.grams[3])[pick], (right - found.rights[3])[columns])
    expected = found.squares[3] - 2 * x @ found.rights[3][columns] + x @ found.grams[3][pick] @ x
    assert law.errors[3] == pytest.approx(expected, rel=1e-4)


def test_of_equal_laws_the_simpler_one_and_the_one_with_a_memory():
    two, three = np.ones(2), np.ones(3)
    short = Law((Term("viscous"), DIRECTIONS[1]), two, np.array([1.0, 1.2, 0.9, 0.95]))
    remembering = Law((Term("viscous"), MEMORY), two, np.array([1.0, 1.2, 0.9, 0.96]))
    long = Law((*remembering.terms, Term("offset")), three, np.array([1.1, 1.0, 1.0, 0.9]))
    assert simplest([short, remembering, long]) is remembering
    better = Law((*remembering.terms, Term("offset")), three, np.array([0.5, 0.6, 0.4, 0.5]))
    assert simplest([short, remembering, better]) is better
    dear = Law(
        remembering.terms, two, np.array([1.0, 1.5, 0.9, 0.96])
    )  # within one standard error, but 9 % worse
    assert simplest([dear, long]) is long


def test_friction_that_falls_with_the_speed_brakes_at_every_speed():
    """The gears of an arm lose less the faster they turn: a negative viscous coefficient, which would drive later."""
    bare = lw.random_robot(5, 3, joints="R", rotor=False)
    carried = np.sqrt((bare.inverse_dynamics(*motion(1, 3)[1:]) ** 2).mean(axis=0))
    dry, fall = 0.3 * carried, 0.12 * carried

    def recorded(seed: int) -> Log:
        t, q, qd, qdd = (each[:2000] for each in motion(seed, 3))
        friction = dry * qd / np.sqrt(qd**2 + 1e-4) - fall * qd
        tau = bare.inverse_dynamics(q, qd, qdd) + friction
        return Log(t, q, tau + 0.02 * carried * np.random.default_rng(seed).normal(size=tau.shape))

    assert (np.abs(motion(1, 3)[2]).max(axis=0) < dry / fall).all()  # it brakes in this motion
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = identify(bare, recorded(1), validation=recorded(2))
    terms = [{term.kind for term in own} for own in found.fit.friction]
    assert all("stribeck" in own for own in terms), terms
    speeds = np.linspace(0.05, 20.0, 400)
    for axis in range(3):
        assert (found.fit.steady_friction(axis, speeds, 0.0) >= -1e-9).all()
    best = min(each.validations[0].total for each in found.competitors)
    assert found.validation.total < 1.02 * best


def test_falling_friction_is_tried_only_where_viscous_friction_would_be_negative():
    viscous, fall = Term("viscous"), _with_direction(Term("stribeck", speed=1.0), MEMORY)
    for factor, tried in ((2.0, False), (-2.0, True)):
        laws = list(trials({viscous: factor, MEMORY: 1.0, fall: 0.5}).laws())
        assert any(fall in law.terms for law in laws) == tried
