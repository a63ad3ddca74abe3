"""Robots and kernels inside JAX."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)


def test_arrays_give_the_bits_of_the_numpy_call(panda):
    states = [np.random.default_rng(k).standard_normal((5, 7)) for k in range(3)]
    found = panda.inverse_dynamics(*map(jax.numpy.asarray, states))
    assert isinstance(found, jax.Array)
    assert np.array_equal(np.asarray(found), panda.inverse_dynamics(*states))
