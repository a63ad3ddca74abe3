"""Izaguirre's reduced PUMA 260 against an independent model, and against the figures of the paper."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
VALUES = DATA.parent / "reference" / "puma260.json"
needs_values = pytest.mark.skipif(not VALUES.exists(), reason=f"no {VALUES}")


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma260")


@needs_values
def test_mass_matrix_and_gravity_torques(puma):
    samples = json.loads(VALUES.read_text())["samples"]
    assert len(samples) == 16
    q = np.array([sample["q"] for sample in samples])
    for algorithm in puma.algorithms("mass_matrix"):
        M = puma.mass_matrix(q, algorithm=algorithm)
        np.testing.assert_allclose(M, [sample["mass_matrix"] for sample in samples], rtol=0, atol=1e-12)
    expected = [sample["gravity_torques"] for sample in samples]
    np.testing.assert_allclose(puma.gravity_torques(q), expected, rtol=0, atol=1e-12)


def test_one_configuration_of_those(puma):
    q = [2.4166, 1.0762, 1.1276, -2.302, 0.1869, -2.4028]
    gravity = [0.0, 1.074282027827323, -1.544952071963349, -0.015326628461949814, 0.08781399930533752, 0.0]
    np.testing.assert_allclose(puma.gravity_torques(q), gravity, rtol=0, atol=1e-12)
    row = [
        0.15906681409740614,
        -0.04887878868982276,
        0.013272693632306782,
        2.7588166777717305e-05,
        -0.0011119384970409835,
        0,
    ]
    np.testing.assert_allclose(puma.mass_matrix(q)[0], row, rtol=0, atol=1e-12)


@needs_values
def test_motors_and_friction(puma):
    values = json.loads(VALUES.read_text())
    for key, mine in (("motor_inertia", "rotor_inertia"), ("viscous_friction", "viscous_friction")):
        assert [getattr(joint, mine) for joint in puma.moving_joints] == values[key]
    assert [joint.coulomb_friction for joint in puma.moving_joints] == [
        (f, f) for f in values["coulomb_friction"]
    ]


def test_gravity_coefficients_of_the_paper(puma):
    # section 7: the terms of the gravity torques, c15 = -g z6, c13 = -g (y4 + m6 d4) and c12 = g m6 a2, the
    # second corrected from the specification file (-1.1766 is printed)
    g, m6, y4, a2, d4 = 9.81, 2.768114, -0.38219, 0.2032, 0.2032
    assert abs(-g * 0.01401 + 0.13743) < 1e-4
    assert abs(-g * (y4 + m6 * d4) + 1.769) < 1e-3
    assert abs(g * m6 * a2 - 5.51792) < 1e-4
    still = puma.gravity_torques([0.0, 0.0, -np.pi / 2, 0.0, 0.0, 0.0])
    assert abs(still[1] - (g * m6 * a2 + g * (y4 + m6 * d4) + g * 0.01401)) < 1e-12
