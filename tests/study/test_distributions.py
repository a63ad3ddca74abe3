"""Distributions and the functions they are made of, against other implementations."""

import math

import mpmath
import numpy as np
import pytest

import linkwise as lw
from linkwise.study.sampling import special
from linkwise.study.sampling.distributions import DISTRIBUTIONS, chosen, fault


def kernel_of(function):
    return lw.kernel(x=1)(lambda x: function(x[0]))


def test_logarithm_and_exponential():
    x = 2.0 ** np.linspace(-60, 60, 4001)
    assert np.allclose(kernel_of(special.log)(x[:, np.newaxis]), np.log(x), rtol=4e-16, atol=1e-16)
    y = np.linspace(-30, 30, 4001)
    assert np.allclose(kernel_of(special.exp)(y[:, np.newaxis]), np.exp(y), rtol=8e-15)
    assert special.exp(0.0) == 1.0
    assert special.log(1.0) == 0.0


def test_normal_quantile():
    mpmath.mp.dps = 30
    levels = [2.0**-52, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.51, 0.925, 0.9251, 0.999, 1 - 2.0**-50]
    found = kernel_of(special.normal_quantile)(np.array(levels)[:, np.newaxis])
    for u, x in zip(levels, found, strict=True):
        exact = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(u) - 1)
        assert float(abs(x - exact)) <= 2e-15 * max(1.0, float(abs(exact)))


def test_the_same_bits_in_python_and_compiled():
    u = (np.arange(200) + 0.5) / 200
    compiled = kernel_of(special.normal_quantile)(u[:, np.newaxis])
    assert np.allclose(compiled, [special.normal_quantile(float(x)) for x in u], rtol=1e-14, atol=1e-15)


CASES = {
    "uniform": ((-1.0, 3.0), lambda s: s.uniform(-1.0, 4.0)),
    "log_uniform": ((0.1, 10.0), lambda s: s.loguniform(0.1, 10.0)),
    "normal": ((2.0, 3.0), lambda s: s.norm(2.0, 3.0)),
    "lognormal": ((2.0, 0.5), lambda s: s.lognorm(0.5, scale=2.0)),
    "triangular": ((-1.0, 0.5, 2.0), lambda s: s.triang(0.5, loc=-1.0, scale=3.0)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles(name):
    stats = pytest.importorskip("scipy.stats")
    parameters, known = CASES[name]
    assert fault(name, parameters) is None
    u = (np.arange(999) + 1.0) / 1000
    found = kernel_of(lambda x: DISTRIBUTIONS[name].quantile(x, *parameters))(u[:, np.newaxis])
    assert np.allclose(found, known(stats).ppf(u), rtol=1e-12, atol=1e-12)


def test_choice_has_equal_chances():
    values = [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]
    picked = [chosen(u, values) for u in (np.arange(300) + 0.5) / 300]
    assert [sum(p == list(v) for p in picked) for v in values] == [100, 100, 100]


@pytest.mark.parametrize(
    ("name", "parameters", "word"),
    [
        ("uniform", (1.0, 1.0), "low < high"),
        ("normal", (0.0, -1.0), "negative"),
        ("log_uniform", (0.0, 1.0), "positive"),
        ("lognormal", (-1.0, 1.0), "median"),
        ("triangular", (0.0, 5.0, 1.0), "mode"),
        ("normal", (math.nan, 1.0), "finite"),
    ],
)
def test_impossible_parameters(name, parameters, word):
    assert word in fault(name, parameters)


def test_one_number_that_is_not_finite_is_enough_to_be_refused():
    for name, kind in DISTRIBUTIONS.items():
        count = kind.fault.__code__.co_argcount
        for place in range(count):
            for bad in (math.nan, math.inf, -math.inf):
                parameters = [0.5 + k for k in range(count)]
                parameters[place] = bad
                assert "finite" in (fault(name, parameters) or ""), (name, parameters)
