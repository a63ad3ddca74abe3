"""Robots and kernels inside PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def test_tensors_give_the_bits_of_the_numpy_call(panda):
    states = [np.random.default_rng(k).standard_normal((5, 7)) for k in range(3)]
    found = panda.inverse_dynamics(*map(torch.from_numpy, states))
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), panda.inverse_dynamics(*states))
