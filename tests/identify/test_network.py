"""A small network for what bodies and friction leave: only where it predicts, and a law like every other."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify

FINITE_DIFFERENCES = 1e-6


def bump(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """A torque of the second joint that no other law has [N·m]."""
    return 2.0 / (1.0 + 12.0 * (q[:, 1] - 0.4) ** 2) * np.tanh(3.0 * qd[:, 1] + 1.0)


def recorded(robot: lw.Robot, seed: int, size: float) -> Log:
    t, q, qd, qdd = (each[:2000] for each in motion(seed))
    tau = robot.inverse_dynamics(q, qd, qdd)
    tau[:, 1] += size * bump(q, qd)
    return Log(t, q, tau + 0.02 * np.random.default_rng(seed).normal(size=tau.shape), name=f"run{seed}")


@pytest.fixture(scope="module")
def results(arm, truth):
    """With a network of a strange arm, without one, and with one of an arm that needs none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        return [
            identify(
                arm,
                [recorded(truth, seed, size) for seed in (1, 3, 4)],
                validation=recorded(truth, 2, size),
                friction="coulomb",
                network=wanted,
            )
            for size, wanted in ((1.0, True), (1.0, False), (0.0, True))
        ]


def test_it_predicts_another_motion(results):
    found, without, _ = results
    assert [each.joint for each in found.network.joints] == ["joint2"]
    assert "joint2" in found.network.joints[0].text
    assert found.validation.rms[1] < 0.75 * without.validation.rms[1]
    assert found.summary()["network"][0]["gain"] == found.network.joints[0].gain


def test_none_where_it_is_not_asked_for_or_explains_nothing(results):
    _, without, plain = results
    assert without.network.joints == ()
    assert plain.network.joints == ()
    assert not [label for label in plain.robot.parameter_labels if "network" in label]


def test_saved_robot_code_and_slopes_have_it(results, tmp_path):
    robot = results[0].robot
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 20, 2))
    torques = robot.inverse_dynamics(q, qd, qdd)
    for ending in ("toml", "urdf"):
        results[0].save(tmp_path / f"robot.{ending}")
        loaded = lw.load(tmp_path / f"robot.{ending}", strict=False)
        np.testing.assert_allclose(loaded.inverse_dynamics(q, qd, qdd), torques, rtol=1e-12, atol=1e-12)
    bare = robot.with_parameters({label: 0.0 for label in robot.parameter_labels if "network" in label})
    assert np.abs(torques - bare.inverse_dynamics(q, qd, qdd))[:, 1].max() > 0.1
    np.testing.assert_allclose(
        np.asarray(robot.regressor(q, qd, qdd)) @ robot.parameters, torques, rtol=1e-9, atol=1e-9
    )
    by_q, by_qd, _ = robot.inverse_dynamics_derivatives(q, qd, qdd)
    h = 1e-6
    for k in range(2):
        step = h * np.eye(2)[k]
        for slope, ends in (
            (by_q, [robot.inverse_dynamics(q + s * step, qd, qdd) for s in (1, -1)]),
            (by_qd, [robot.inverse_dynamics(q, qd + s * step, qdd) for s in (1, -1)]),
        ):
            np.testing.assert_allclose(
                np.asarray(slope)[..., k], (ends[0] - ends[1]) / (2 * h), atol=1e3 * FINITE_DIFFERENCES
            )
    back = robot.forward_dynamics(q, qd, torques)
    np.testing.assert_allclose(back, qdd, rtol=1e-8, atol=1e-8)


def test_the_compiled_c_has_it(results, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    found = results[0]
    found.write_code(tmp_path / "robot.c")
    library = tmp_path / "robot.so"
    command = [compiler, "-std=c99", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "robot.c", "-lm"]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).inverse_dynamics
    rng = np.random.default_rng(1)
    states = rng.normal(size=(3, 30, 2)) * np.array([1.0, 10.0, 100.0])[:, None, None]
    expected, torques = found.robot.inverse_dynamics(*states), np.zeros((30, 2))
    for k in range(30):
        rows = [np.ascontiguousarray(x[k]) for x in states]
        function(*(ctypes.c_void_p(x.ctypes.data) for x in (*rows, torques[k])))
    np.testing.assert_array_equal(torques, expected)


def test_floating_bases_have_none(arm):
    floating = lw.load("two_link", base="floating")
    with pytest.raises(ValueError, match="network: for arms"):
        identify(floating, [], network=True)
