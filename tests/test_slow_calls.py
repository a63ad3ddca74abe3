"""Large robots: every function is compiled, and a call that is not says so."""

import importlib.metadata
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import linkwise as lw
from linkwise import arrays, kernels
from linkwise.algorithms import kalman
from linkwise.control import Gains, GravityPD
from linkwise.functions import FUNCTIONS, Setting
from linkwise.optimal import Effort, Problem
from linkwise.optimal.arrays_sweep import stage_kernel
from linkwise.optimal.code import Code
from linkwise.simulate import simulate

LARGE = ["g1_29dof_with_hand_rev_1_0", "icub", "romeo", "talos_full_v2", "tiago"]
BASES = ["fixed", "floating"]


def path_of(name: str) -> Path:
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return next(Path(str(file.locate())) for file in files if file.name == f"{name}.urdf")


def loaded(name: str, base: str) -> lw.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        return lw.load(path_of(name), base=base)


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
    robot = lw.general_chain(17)
    controller = GravityPD(robot, Gains(10.0, 1.0))
    with pytest.warns(lw.SlowWarning, match=r"loop over time runs in Python; .* fused=True compiles it"):
        simulate(robot, controller, np.zeros(17), duration=2e-3, step=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.SlowWarning)
        simulate(robot, controller, np.zeros(17), duration=2e-3, step=1e-3, fused=False)


def test_the_sweep_of_a_large_robot_is_compiled():
    """A stage of 18 numbers of state and 9 controls within limits, judged by NumPy and SciPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.SlowWarning)
        Code(Problem(lw.general_chain(9), horizon=3, step=0.01, costs=[Effort(1.0)]))
    nx, nu, rng = 18, 9, np.random.default_rng(0)

    def definite(n):
        root = rng.normal(size=(n, n))
        return root @ root.T + np.eye(n)

    F, V, H = rng.normal(size=(nx, nx + nu)), definite(nx), definite(nx + nu)
    v, gap, gradient = rng.normal(size=nx), rng.normal(size=nx), rng.normal(size=nx + nu)
    low, high, mu = -rng.uniform(0, 0.1, nu), rng.uniform(0, 0.1, nu), 1e-3
    kernel = stage_kernel(nx, nu, True)
    k, K, following, hessian, report = kernel(F, V, v, gap, gradient, H, np.array([mu]), low, high)
    q = gradient + F.T @ (v + V @ gap)
    Q = H + F.T @ (V + mu * np.eye(nx)) @ F
    Quu, Qux = Q[nx:, nx:] + mu * np.eye(nu), Q[nx:, :nx]
    root = np.linalg.cholesky(Quu)
    wanted = optimize.lsq_linear(root.T, -np.linalg.solve(root, q[nx:]), (low, high), tol=1e-15).x
    np.testing.assert_allclose(k, wanted, atol=1e-9)
    free = (k > low + 1e-9) & (k < high - 1e-9)
    gains = np.zeros((nu, nx))
    gains[free] = -np.linalg.solve(Quu[np.ix_(free, free)], Qux[free])
    np.testing.assert_allclose(K, gains, atol=1e-9 * np.abs(gains).max() + 1e-9)
    np.testing.assert_allclose(hessian, Q[:nx, :nx] + Qux.T @ gains, atol=1e-8 * np.abs(Q).max())
    np.testing.assert_allclose(following, q[:nx] + Qux.T @ k + gains.T @ (q[nx:] + Quu @ k), rtol=1e-8)
    np.testing.assert_allclose(report, [k @ q[nx:], k @ Quu @ k, 1.0], rtol=1e-8)
