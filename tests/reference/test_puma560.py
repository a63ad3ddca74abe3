"""The PUMA 560 against published numbers: robotics-toolbox-python's tests, and SymPyBotics' standard-DH
model."""

import json
import os
from math import pi
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.toml.reader import read_toml

# Expected values of robotics-toolbox-python (tests/test_DHRobot.py, 4 decimals); those with ten decimals were
# re-derived with Pinocchio from the parameter table alone.
QN = np.array([0, pi / 4, pi, 0, pi / 4, 0])
Z, O = np.zeros(6), np.ones(6)
PRINTED = 5.1e-5  # values with four decimals
DERIVED = 6e-11  # values with ten


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma560")


def close(mine, expected, tolerance):
    np.testing.assert_allclose(mine, expected, rtol=0, atol=tolerance)


TORQUES = {
    "gravity": (Z, Z, [0, 31.6398803784, 6.035138023, 0, 0.0282528, 0]),
    "acceleration": (
        *(Z, O),
        [3.3531108581, 36.002511244, 7.4259640774, 0.1900430346, 0.2034409311, 0.1941327899],
    ),
    "both": (
        *(O, O),
        [32.4952427549, 60.8669884751, 17.7435949128, 1.4545190261, 1.2991104105, 0.7137808875],
    ),
    "velocity": (
        *(O, Z),
        [29.1421318969, 56.5043576095, 16.3527688584, 1.2644759915, 1.1239222794, 0.5196480975],
    ),
}


@pytest.mark.parametrize("case", TORQUES)
def test_inverse_dynamics_with_friction_and_rotors(puma, case):
    qd, qdd, expected = TORQUES[case]
    for algorithm in puma.algorithms("inverse_dynamics"):
        close(puma.inverse_dynamics(QN, qd, qdd, algorithm=algorithm), expected, DERIVED)


def test_inverse_dynamics_without_gravity(puma):
    expected = [32.4952427549, 29.2271080968, 11.7084568898, 1.4545190261, 1.2708576105, 0.7137808875]
    close(puma.with_gravity((0, 0, 0)).inverse_dynamics(QN, O, O), expected, DERIVED)


def test_wrench(puma):
    # theirs is (force, moment) exerted by the robot, ours (moment, force) on the robot, both in the end's own
    # frame
    wrench = -np.array([1, 2, 3, 1, 2, 3])
    tau = puma.inverse_dynamics(QN, Z, Z, wrench=wrench)
    close(tau, [0.642756, 29.0866, 4.70321, 2.82843, -1.97175, 3], PRINTED)
    share = [0.6427562971, -2.5532403456, -1.3319255131, 2.8284271247, -2, 3]
    close(tau - puma.inverse_dynamics(QN, Z, Z), share, DERIVED)


def test_mass_matrix(puma):
    upper = [
        [3.6593754122, -0.4043612460, 0.1006136478, -0.0025169558, 0, 0],
        [0, 4.4137419336, 0.3508906650, 0, 0.0023595131, 0],
        [0, 0, 0.9378415752, 0, 0.0014801664, 0],
        [0, 0, 0, 0.1925317061, 0, 0.0000282843],
        [0, 0, 0, 0, 0.1713484517, 0],
        [0, 0, 0, 0, 0, 0.1941045057],
    ]
    expected = np.triu(upper) + np.triu(upper, 1).T
    for algorithm in puma.algorithms("mass_matrix"):
        close(puma.mass_matrix(QN, algorithm=algorithm), expected, DERIVED)


def test_rotor_inertias(puma):
    reflected = [0.784030, 2.324815, 0.576873, 0.190791, 0.170706, 0.194065]
    close([joint.rotor_inertia for joint in puma.moving_joints], reflected, 6e-7)


def test_gravity_torques(puma):
    close(puma.gravity_torques(QN), [0, 31.6399, 6.0351, 0, 0.0283, 0], PRINTED)
    close(puma.gravity_torques(Z), [0, 37.48366665, 0.24892875, 0, 0, 0], DERIVED)
    close(puma.gravity_torques([0, pi / 2, -pi / 2, 0, 0, 0]), [0, -0.77523525, 0.24892875, 0, 0, 0], DERIVED)
    close(puma.gravity_torques([0, 0, -pi / 2, 0, 0, 0]), [0, 46.006938, 8.7722001, 0, 0.0282528, 0], DERIVED)


def test_coriolis_matrix(puma):
    qd = np.array([1, 2, 3, 1, 2, 3])
    C = puma.coriolis_matrix(QN, qd)
    expected = [
        [-0.1735, -2.0494, -0.1178, -0.0002, -0.0045, 0.0001],
        [0.6274, 1.1572, 1.9287, -0.0015, -0.0003, -0.0000],
        [-0.3608, -0.7734, -0.0018, -0.0009, -0.0064, -0.0000],
        [0.0011, 0.0005, -0.0001, 0.0002, 0.0002, -0.0001],
        [-0.0002, 0.0028, 0.0046, -0.0002, -0.0000, -0.0000],
        [0.0001, 0.0000, 0.0000, 0.0000, 0.0000, 0],
    ]
    close(C, expected, PRINTED)
    torques = [-4.6344217633, 8.7257112246, -1.9268101609, 0.0022557893, 0.0190524334, 0.0003648528]
    close(C @ qd, torques, DERIVED)
    close(puma.velocity_torques(QN, qd), torques, DERIVED)


def test_forward_dynamics(puma):
    qd, tau = [0.1, 0.2, 0.8, 0.2, 0.5, 1.0], [1.0, 3.2, 1.8, 0.1, 0.7, 4.6]
    rubbing = [-7.4102231637, -9.8432245816, -10.9693984451, -4.4314287514, -0.9881410724, 21.0227819493]
    free = [-0.3540475686, -6.3989262832, -2.0684942475, 0.5112435386, 4.0212231565, 23.6984540652]
    for algorithm in puma.algorithms("forward_dynamics"):
        close(puma.forward_dynamics(QN, qd, tau, algorithm=algorithm), rubbing, 6e-10)
        close(puma.forward_dynamics(QN, qd, tau, algorithm=algorithm, friction=False), free, 6e-10)


def test_inertia_torques(puma):
    expected = [3.1499769076, 9.4805136422, 3.6188800361, 0.1900996031, 0.3518564286, 0.5823418013]
    close(puma.mass_matrix(QN) @ [1, 2, 3, 1, 2, 3], expected, 2 * DERIVED)


def test_cartesian_inertia(puma):
    expected = [
        [17.2954, -2.7542, -9.6233, -0.0000, 0.2795, 0.0000],
        [-2.7542, 12.1909, 1.2459, -0.3254, -0.0703, -0.9652],
        [-9.6233, 1.2459, 13.3348, -0.0000, 0.2767, -0.0000],
        [-0.0000, -0.3254, -0.0000, 0.1941, 0.0000, 0.1941],
        [0.2795, -0.0703, 0.2767, 0.0000, 0.1713, 0.0000],
        [0.0000, -0.9652, -0.0000, 0.1941, 0.0000, 0.5791],
    ]
    J = puma.jacobian(QN)[[3, 4, 5, 0, 1, 2]]  # theirs: linear, then angular
    inverse = np.linalg.inv(J)
    close(inverse.T @ puma.mass_matrix(QN) @ inverse, expected, PRINTED)


def test_joint_dynamics_on_the_motor_side(puma):
    # theirs adds the motor inertia to a mass matrix that has it already; the numbers come from MATLAB
    ratios, motor = np.array([-62.6111, 107.815, -53.7063]), 200e-6
    inertia = np.diag(puma.mass_matrix(QN))[:3] / ratios**2 + motor
    np.testing.assert_allclose(
        inertia, [0.001133478453251, 0.579706964030143e-3, 0.000525146448377], rtol=1e-9
    )
    viscous = [joint.viscous_friction for joint in puma.moving_joints[:3]] / ratios**2
    np.testing.assert_allclose(viscous, [0.00148, 0.817e-3, 0.00138], rtol=1e-14)


def test_friction_depends_on_direction(puma):
    forward = puma.inverse_dynamics(Z, 1e-9 * O, Z) - puma.inverse_dynamics(Z, Z, Z)
    backward = puma.inverse_dynamics(Z, -1e-9 * O, Z) - puma.inverse_dynamics(Z, Z, Z)
    ratios = np.array([62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686])
    close(forward, ratios * [0.395, 0.126, 0.132, 11.2e-3, 9.26e-3, 3.96e-3], 1e-6)
    close(backward, -ratios * [0.435, 0.071, 0.105, 16.9e-3, 14.5e-3, 10.5e-3], 1e-6)


# -- SymPyBotics ---------------------------------------------------------------------------------------------

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
SYMPYBOTICS = DATA.parent / "reference" / "puma560_sympybotics.json"


def standard_dh_arm(rows, parameters) -> lw.Robot:
    """From the JSON's rows (alpha, a, d) and its ten parameters per link: Lxx Lxy Lxz Lyy Lyz Lzz, lx ly lz,
    m."""
    degrees = {"pi/2": 90, "-pi/2": -90, 0: 0}
    text = 'name = "puma"\nconvention = "dh"\nreduced = true\n'
    for (alpha, a, d), ten in zip(rows, np.reshape(parameters, (6, 10)).tolist(), strict=True):
        text += f"[[joint]]\nalpha_deg = {degrees[alpha]}\na = {a}\nd = {d}\nmass = {ten[9]}\n"
        text += f"first_moment = {ten[6:9]}\ninertia_about_origin = {ten[:6]}\n"
    return lw.Robot.from_model(read_toml(text.encode(), "puma"))


@pytest.mark.skipif(not SYMPYBOTICS.exists(), reason=f"no {SYMPYBOTICS}")
@pytest.mark.parametrize(("parameters", "suffix"), [("dynparm_test", "pcorke"), ("dynparm_test2", "assrt2")])
def test_sympybotics(parameters, suffix):
    case = json.loads(SYMPYBOTICS.read_text())["standard_dh"]
    arm = standard_dh_arm(case["dh_rows_alpha_a_d"], case[parameters])
    q, qd, qdd = (np.array(case[key]) for key in ("q_test", "dq_test", "ddq_test"))
    if suffix == "pcorke":  # the geometry is the same in both
        close(arm.pose(q), case["T_pcorke"], 1e-10)
        close(arm.jacobian(q)[[3, 4, 5, 0, 1, 2]], case["J_pcorke"], 1e-10)
    close(arm.mass_matrix(q), case[f"M_{suffix}"], 1e-10)
    close(arm.gravity_torques(q), np.ravel(case[f"g_{suffix}"]), 1e-10)
    close(arm.velocity_torques(q, qd), np.ravel(case[f"c_{suffix}"]), 1e-10)
    for algorithm in arm.algorithms("inverse_dynamics"):
        close(arm.inverse_dynamics(q, qd, qdd, algorithm=algorithm), np.ravel(case[f"tau_{suffix}"]), 1e-10)
