"""Numbers of a robot from the coefficients of a fit, and how correlations of residuals end: on plain numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from linkwise.identify.estimation.coloured import tapered
from linkwise.identify.estimation.friction import KINDS, Term
from linkwise.identify.estimation.representable import BLURS, NUMBERS, _nearest_blur, joint_numbers


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_become_numbers_that_a_joint_can_have(kind):
    """Friction and rotors are not negative, offsets and springs may be; friction takes a part of a load."""
    term = Term(kind, speed=0.2, blur=0.03, width=0.01)
    signed = kind in ("offset", "stiffness")
    names = {"coulomb": ("coulomb_friction_forward", "coulomb_friction_backward"), "load": ("load_friction",)}
    for value in (0.4, 5.0, -0.3):
        found = joint_numbers([(term, value)])
        kept = value if signed else max(value, 0.0)
        kept = min(kept, 0.9) if kind == "load" else kept
        expected = dict.fromkeys(NUMBERS, 0.0)
        expected |= dict.fromkeys(names.get(kind, (term.label,)), kept)
        if kind in ("saturating", "stribeck"):
            expected[f"{kind}_speed"] = 0.2
        if kind in ("coulomb", "load", "stribeck", "forward", "backward"):
            expected |= {"friction_speed": 0.03, "presliding_distance": 0.01}
        assert found == expected


def test_the_speed_of_a_smooth_direction_is_the_nearest_one():
    v = np.linspace(-0.5, 0.5, 400)[:, None]
    for speed in (0.004, 0.03, 0.2):
        motion = SimpleNamespace(qd=v, direction=lambda term, speed=speed: v / np.sqrt(v**2 + speed**2))
        observer = SimpleNamespace(axis_signals=lambda carried, motion=motion: [motion])
        found = _nearest_blur(observer, 0, [(Term("coulomb", width=0.01), 1.0)])
        assert found == BLURS[np.argmin(np.abs(np.log(BLURS / speed)))]


def test_correlations_end_where_they_are_noise():
    """A flat top: all of the memory counts, and as many lags after it less and less."""
    raw = np.zeros(2000)
    raw[:20] = 1.0 - 0.04 * np.arange(20)
    correlation, taper = tapered(raw, 2000)
    assert len(taper) == 40
    np.testing.assert_array_equal(taper[:21], 1.0)
    np.testing.assert_allclose(taper[20:], 1.0 - np.arange(20) / 20)
    np.testing.assert_allclose(correlation, raw[:40] * taper)
