"""A small arm with friction, its motions and recordings of them: fast to compile, fully known."""

from __future__ import annotations

import numpy as np
import pytest
from known_arm import TRUE_FRICTION, motion

import linkwise as lw
from linkwise.identify import Log


@pytest.fixture(scope="session")
def arm() -> lw.Robot:
    """What the file says: links, no friction."""
    return lw.load("two_link")


@pytest.fixture(scope="session")
def truth(arm) -> lw.Robot:
    """The real one: heavier by a fifth, with rotors and friction."""
    links = {
        label: 1.2 * value for label, value in zip(arm.parameter_labels[:20], arm.parameters, strict=False)
    }
    return arm.with_parameters(links | TRUE_FRICTION)


@pytest.fixture(scope="session")
def record(truth):
    """record(seed, noise) → a Log of the real arm; noise in parts of each torque's rms."""

    def made(seed: int = 1, noise: float = 0.0, seconds: float = 20.0) -> Log:
        t, q, qd, qdd = motion(seed, seconds=seconds)
        tau = truth.inverse_dynamics(q, qd, qdd)
        size = noise * np.sqrt((tau**2).mean(axis=0))
        return Log(
            t, q, tau + size * np.random.default_rng(seed + 100).normal(size=tau.shape), name=f"run{seed}"
        )

    return made
