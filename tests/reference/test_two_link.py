"""The two-link arm against its closed form and the values of Spong's book (as in robotics-toolbox-python's
tests)."""

from math import pi

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.toml.reader import read_toml

POINT = "mass = 1.0\ncom = [0.5, 0, 0]\n"
WITH_A_STATIC_LINK = f"""
name = "two_link_static"
convention = "tree"
[[link]]
name = "base"
[[link]]
name = "upper"
{POINT}
[[link]]
name = "between"
[[link]]
name = "lower"
{POINT}
[[joint]]
name = "shoulder"
type = "revolute"
parent = "base"
child = "upper"
axis = [0, 1, 0]
[[joint]]
name = "rivet"
type = "fixed"
parent = "upper"
child = "between"
xyz = [0.25, 0, 0]
[[joint]]
name = "elbow"
type = "revolute"
parent = "between"
child = "lower"
axis = [0, 1, 0]
xyz = [0.75, 0, 0]
"""


@pytest.fixture(scope="module", params=["bundled", "with a massless fixed link"])
def arm(request) -> lw.Robot:
    if request.param == "bundled":
        return lw.load("two_link")
    return lw.Robot.from_model(read_toml(WITH_A_STATIC_LINK.encode(), "static"))


def close(mine, expected):
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-13)


def test_closed_form(arm):
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-3, 3, (3, 100, 2))
    (q1, q2), (v1, v2) = q.T, qd.T
    c2, h = np.cos(q2), -0.5 * np.sin(q2)
    M = np.stack(
        [np.stack([1.5 + c2, 0.25 + 0.5 * c2], -1), np.stack([0.25 + 0.5 * c2, np.full(100, 0.25)], -1)], -2
    )
    velocity = np.stack([h * (2 * v1 * v2 + v2**2), -h * v1**2], -1)
    gravity = -9.81 * np.stack([1.5 * np.cos(q1) + 0.5 * np.cos(q1 + q2), 0.5 * np.cos(q1 + q2)], -1)
    close(arm.mass_matrix(q), M)
    close(arm.velocity_torques(q, qd), velocity)
    close(arm.gravity_torques(q), gravity)
    expected = np.einsum("...ij,...j->...i", M, qdd) + velocity + gravity
    for algorithm in arm.algorithms("inverse_dynamics"):
        close(arm.inverse_dynamics(q, qd, qdd, algorithm=algorithm), expected)
    close(arm.kinetic_energy(q, qd), 0.5 * np.einsum("...i,...ij,...j->...", qd, M, qd))
    close(arm.potential_energy(q), -9.81 * (1.5 * np.sin(q1) + 0.5 * np.sin(q1 + q2)))


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ((0, 0), (-2, -0.5)),
        ((0, -pi / 2), (-1.5, 0)),
        ((-pi / 2, pi / 2), (-0.5, -0.5)),
        ((-pi / 2, 0), (0, 0)),
    ],
)
def test_gravity_of_spong(arm, q, expected):
    close(arm.inverse_dynamics(q, (0, 0), (0, 0)) / 9.81, expected)


@pytest.mark.parametrize(("qd", "expected"), [((1, 0), (0, -1)), ((0, 1), (1, 0)), ((1, 1), (3, -1))])
def test_velocity_torques_of_spong(arm, qd, expected):
    floating = arm.with_gravity((0, 0, 0))
    close(floating.inverse_dynamics((0, -pi / 2), qd, (0, 0)), 0.5 * np.array(expected))


def test_accelerations_of_spong(arm):
    floating = arm.with_gravity((0, 0, 0))
    for q2 in (0.0, -pi / 2, 0.7):
        c = np.cos(q2)
        close(floating.inverse_dynamics((0, q2), (0, 0), (1, 0)), (1.5 + c, 0.25 + 0.5 * c))
        close(floating.inverse_dynamics((0, q2), (0, 0), (0, 1)), (0.25 + 0.5 * c, 0.25))


def test_tip():
    arm = lw.load("two_link")
    q1, q2 = 0.3, -1.2
    tip = arm.pose((q1, q2), "tip")[:3, 3]
    close(tip, [np.cos(q1) + np.cos(q1 + q2), 0, -np.sin(q1) - np.sin(q1 + q2)])
