"""Friction terms are chosen by what they predict."""

from __future__ import annotations

import numpy as np

from linkwise.identify.friction import Term
from linkwise.identify.friction_choice import ALWAYS, FURTHER, _Trials, offered


def chosen(truth: dict[Term, float]) -> set[Term]:
    """What is picked for torques that these terms explain, with random columns."""
    terms = offered(joint=True)
    columns = np.random.default_rng(0).normal(size=(400, len(terms)))
    noise = 0.1 * np.random.default_rng(1).normal(size=400)
    wanted = noise + sum(factor * columns[:, terms.index(term)] for term, factor in truth.items())
    trials = _Trials(columns, wanted[:, None], np.ones(1), np.ones(1), set())
    return {terms[k] for k in trials.grow([terms.index(term) for term in ALWAYS], terms)}


def test_what_is_worth_it_joins_and_nothing_else():
    truth = {
        Term("viscous"): 2.0,
        Term("offset"): 0.5,
        Term("presliding", width=1e-3): 1.0,
        Term("saturating", speed=0.1, width=1e-3): 0.7,
    }
    assert chosen(truth) == set(truth)


def test_two_widths_of_presliding_friction_at_most():
    first, second, third = (Term("presliding", width=width) for width in (1e-3, 1e-2, 3e-3))
    truth = {first: 1.0, second: 0.9, third: 0.8, Term("stiffness"): 0.3}
    assert chosen(truth) == {*ALWAYS, first, second, Term("stiffness")}


def test_further_axes_have_neither_offset_nor_stiffness():
    assert set(offered(joint=True)) == {*ALWAYS, *FURTHER}
    assert set(offered(joint=False)) == {*ALWAYS, *FURTHER} - {Term("offset"), Term("stiffness")}
