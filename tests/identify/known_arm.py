"""Motions of the arm that the tests of identification know everything about."""

from __future__ import annotations

import numpy as np

from linkwise.motion import FourierSeries

TRUE_FRICTION = {
    "joint1.rotor_inertia": 0.05,
    "joint2.rotor_inertia": 0.02,
    "joint1.viscous_friction": 0.3,
    "joint2.viscous_friction": 0.2,
    "joint1.coulomb_friction": 0.5,
    "joint2.coulomb_friction": 0.3,
}
RATE = 200.0


def motion(seed: int, dof: int = 2, seconds: float = 20.0, size: float = 0.6):
    """(t, q, q̇, q̈) of a periodic motion, at ``RATE`` samples per second."""
    sine, cosine = np.random.default_rng(seed).normal(size=(2, 5, dof)) * size / np.arange(1, 6)[:, None]
    t = np.arange(int(seconds * RATE)) / RATE
    return t, *FourierSeries(np.zeros(dof), sine, cosine, 10.0).at(t)
