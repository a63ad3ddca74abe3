"""Large robots: every function is compiled, and a call that is not says so."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from example_robots import loaded, path_of
from linkwise.algorithms import kalman
from linkwise.control import Gains, GravityPD
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels
from linkwise.simulate import simulate

LARGE = ["g1_29dof_with_hand_rev_1_0", "icub", "romeo", "talos_full_v2", "tiago"]
BASES = ["fixed", "floating"]


def exists(name: str, base: str) -> bool:
    """There are no Christoffel symbols of a floating base, and no constrained functions without constraints."""
    return not (name == "christoffel" and base == "floating")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", LARGE)
def test_every_function_of_large_robots_is_compiled(name, base):
    robot = loaded(name, base)
    missing = set()
    for function in FUNCTIONS.values():
        setting = Setting(robot, frame=robot.link_names[-1])
        chosen, setting, algorithm = kernels._settled(function.name, setting, None)
        if exists(function.name, base) and not kernels.compiles(chosen, setting, algorithm):
            missing.add(function.name)
    assert not missing


@pytest.mark.parametrize("size", [51, 120])
def test_every_function_of_long_chains_is_compiled(size):
    """From 50 joints on Coriolis matrices, regressors and Delassus matrices were computed without compiled code."""
    chain = lw.general_chain(size)
    held = chain.with_constraints([lw.Point(chain.link_names[-1], (1.0, 0.0, 0.0))])
    missing = set()
    for robot in (chain, held):
        for function in FUNCTIONS.values():
            setting = Setting(robot, frame=robot.link_names[-1])
            chosen, setting, algorithm = kernels._settled(function.name, setting, None)
            if not kernels.compiles(chosen, setting, algorithm):
                missing.add((robot is held, function.name))
    assert {name for loops, name in missing if not loops} == set()
    assert {name for loops, name in missing if loops} <= UNDER_CONSTRAINTS


UNDER_CONSTRAINTS = {"inverse_dynamics_derivatives", "forward_dynamics_derivatives"}
"""Functions whose loops over joints are not for robots with constraints."""


def test_rows_times_the_inverse_mass_matrix_are_solved_one_by_one(monkeypatch):
    """Large robots have no M⁻¹ there: as with it, and as NumPy computes it."""
    arm = lw.random_robot(5, 8, tree=True)
    rng = np.random.default_rng(0)
    q, qd, tau = arm.random(rng), *rng.normal(size=(2, arm.dof))
    points = [lw.Point(name, arm.pose(q, name)[:3, 3]) for name in arm.link_names[-1:]]
    results = []
    for start in (1000, 1):
        monkeypatch.setattr(kalman, "SOLVED_FROM", start)
        robot = arm.with_constraints(points)
        results.append([
            arrays.run_on_arrays(FUNCTIONS[name], Setting(robot), FUNCTIONS[name].default, given)
            for name, given in (
                ("delassus_matrix", {"q": q}),
                ("constrained_forward_dynamics", {"q": q, "qd": qd, "tau": tau}),
                ("impact", {"q": q, "qd": qd, "restitution": [0.5]}),
            )
        ])  # fmt: skip
    J = robot.constraint_jacobian(q)
    wanted = J @ np.linalg.solve(arm.mass_matrix(q), J.T)
    for one, other in zip(*results, strict=True):
        for key, values in one.items():
            np.testing.assert_allclose(
                values, other[key], atol=1e-9 * (1 + np.abs(values).max()), err_msg=key
            )
    (delassus,) = results[1][0].values()
    np.testing.assert_allclose(delassus, wanted, atol=1e-10 * np.abs(wanted).max())


def test_couplings_of_a_large_tree_are_compiled_and_right():
    """Talos with twelve followers, which took 25 ms a call. Judged by Pinocchio: torques of the uncoupled robot for
    these accelerations, reduced to the leaders."""
    pin = pytest.importorskip("pinocchio")
    robot = loaded("talos_full_v2", "fixed")
    followers = [joint for joint in robot.moving_joints if joint.mimic is not None]
    assert len(followers) == 12
    generator = np.random.default_rng(0)
    q, qd, tau = robot.random(generator), *generator.normal(size=(2, robot.dof))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qdd = robot.forward_dynamics(q, qd, tau, friction=False)
    model = pin.buildModelFromUrdf(str(path_of("talos_full_v2")))
    rates, offsets = np.zeros((model.nv, robot.dof)), np.zeros(model.nv)
    for k, leader in enumerate(robot.joint_names):
        rates[model.joints[model.getJointId(leader)].idx_v, k] = 1.0
    for joint in followers:
        row, k = model.joints[model.getJointId(joint.name)].idx_v, robot.joint_names.index(joint.mimic.joint)
        rates[row, k], offsets[row] = joint.mimic.multiplier, joint.mimic.offset
    needed = pin.rnea(model, model.createData(), rates @ q + offsets, rates @ qd, rates @ qdd)
    needed += model.armature * (rates @ qdd)
    np.testing.assert_allclose(rates.T @ needed, tau, atol=1e-9 * np.abs(needed).max())


def test_a_call_without_compiled_code_says_so_once(monkeypatch):
    robot = lw.general_chain(40)
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 10)
    monkeypatch.setattr(arrays, "run_on_arrays", lambda *about: {"coriolis_matrix": np.zeros((40, 40))})
    q = np.zeros(40)
    with pytest.warns(lw.SlowWarning, match=r"coriolis_matrix of .* without compiled code") as caught:
        robot.coriolis_matrix(q, q)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.coriolis_matrix(q, q)
        lw.load("panda").coriolis_matrix(np.zeros(7), np.zeros(7))


def test_a_simulation_with_a_loop_in_python_says_so():
    robot = lw.general_chain(40)
    robot = robot.with_parameters({f"{joint.name}.coulomb_friction": 0.1 for joint in robot.moving_joints})
    controller = GravityPD(robot, Gains(10.0, 1.0))
    with pytest.warns(lw.SlowWarning, match=r"loop over time runs in Python; .* fused=True compiles it"):
        simulate(robot, controller, np.zeros(40), duration=2e-3, step=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.SlowWarning)
        simulate(robot, controller, np.zeros(40), duration=2e-3, step=1e-3, fused=False)


def test_the_loop_over_time_of_a_large_robot_is_compiled():
    """18 joints: no limit on their number; the same motion as from Python's loop."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.SlowWarning)
        arm = lw.planar_chain(18)
        controller = GravityPD(arm, Gains(10.0, 1.0))
        fused = simulate(arm, controller, np.zeros(18), duration=3e-3, step=1e-3)
    stepped = simulate(arm, controller, np.zeros(18), duration=3e-3, step=1e-3, fused=False)
    np.testing.assert_allclose(fused.q, stepped.q, atol=1e-12)
