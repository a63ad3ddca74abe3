"""Exciting motions of robots that stand on their feet or hang."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from walking_robot import urdf

import linkwise as lw
from example_robots import loaded
from four_legs import four_legs
from linkwise import identify
from linkwise.identify.excitation.standing import FINE, POINTS, _Search
from linkwise.identify.walking.contacts import feet_of

LEG = 0.4  # [m] a stretched leg of ``four_legs``


@pytest.fixture(scope="module")
def walker(tmp_path_factory) -> lw.Robot:
    path = tmp_path_factory.mktemp("walker") / "walker.urdf"
    path.write_text(urdf())
    return lw.load(path, base="floating")


def test_a_motion_on_standing_feet(walker):
    solo = loaded("solo12")
    found = identify.excite_standing(solo, iterations=4, seed=1)
    again = identify.excite_standing(solo, iterations=4, seed=1)
    assert np.array_equal(found.q, again.q)
    for foot in found.feet:
        place = np.asarray(solo.pose(found.q, frame=foot.frame))[:, :3, 3]
        assert np.ptp(place, axis=0).max() < 2e-5
    assert found.push > 0
    assert found.slope <= 0.5
    assert found.condition <= 1.5 * found.random
    table = found.table(100.0)
    assert table["t"][-1] == pytest.approx(10.0)
    quaternion = np.stack([table[f"base_quat_{axis}"] for axis in "xyzw"], axis=1)
    assert np.allclose((quaternion**2).sum(axis=1), 1.0)
    slope = np.gradient(table["q3"], table["t"])
    assert np.allclose(slope[1:-1], table["qd3"][1:-1], atol=0.02)
    # two joints a leg cannot hold three coordinates of a foot
    with pytest.raises(identify.IdentificationError, match="feet move by"):
        identify.excite_standing(walker, iterations=1)


@pytest.fixture(scope="module")
def search() -> _Search:
    legs = four_legs(lower=-2.6, upper=2.6, velocity=50.0, effort=500.0)
    return _Search(legs, feet_of(legs), None, 4.0, 3, 0.8, "none", 10.0, 3)


def test_velocities_on_standing_feet_are_derivatives_of_all_coordinates(search):
    """Also those of the base, which slides and turns."""
    t, q, v, a = search.motion(0.4 * search.random(np.random.default_rng(0)), FINE)
    rate = search.robot.difference(q[:-2], q[2:]) / (t[2:] - t[:-2])[:, None]
    assert (np.abs(rate).max(axis=0) > 0.05).all()
    np.testing.assert_allclose(v[1:-1], rate, atol=2e-4)
    np.testing.assert_allclose(a[1:-1], (v[2:] - v[:-2]) / (t[2:] - t[:-2])[:, None], atol=2e-3)


def test_postures_have_bent_legs_and_every_foot_pushes(search):
    """Knees may be nearly straight, but are not by default; a twentieth of its share of the weight stays on a foot."""
    legs = search.robot
    least = 0.05 * np.linalg.norm(legs.gravity) * sum(body.mass for body in legs.labelled_bodies()) / 4
    theta, low, high = search.random(np.random.default_rng(0)), 0.0, 1.0
    assert search.forces(search.motion(theta, POINTS))[1] < 0 < least
    for _ in range(12):  # the amplitude at which it is just enough
        middle = 0.5 * (low + high)
        enough = search.forces(search.motion(middle * theta, POINTS))[1] > least
        low, high = (middle, high) if enough else (low, middle)
    assert search.broken(search.motion(low * theta, POINTS)) == ""
    assert search.broken(search.motion(high * theta, POINTS)) == "a foot would leave the ground"
    for seed, straight in itertools.product(range(3), (-0.5, -0.8)):
        narrow = copy.copy(search)
        narrow.limits = four_legs(straight, lower=-1.0, upper=1.0).limits
        stand = narrow._posture(None, seed)
        assert 0.6 * LEG < stand[2] < 0.84 * LEG
        assert np.ptp(search._feet_at(stand[None])[0, :, 2]) < 1e-3 * LEG


def test_a_motion_of_a_hanging_robot(tmp_path, capsys):
    from linkwise.cli import main

    (tmp_path / "walker.urdf").write_text(urdf())
    command = ["excite", str(tmp_path / "walker.urdf"), "--base", "floating", "--stance"]
    quick = ["--starts", "1", "--iterations", "2", "--links-may-touch"]
    assert main([*command, "hanging", *quick, "--out", str(tmp_path / "legs.csv")]) == 0
    assert (tmp_path / "legs.csv").read_text().startswith("t,q1,q2")
    capsys.readouterr()
    assert main([*command, "hanging", "--stand", "0,0"]) == 2
    assert "--stand is for --stance standing" in capsys.readouterr().err
    assert main(["excite", "two_link", "--stance", "hanging"]) == 2
    assert "is for robots with a floating base" in capsys.readouterr().err
