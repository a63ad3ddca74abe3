"""Forward dynamics by conjugate gradients: the iteration, its end, and lanes that end at different times."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from evaluation import EXACT, assert_near, norm, value
from hypothesis import given

import linkwise as lw
from linkwise.algorithms import conjugate_gradient
from linkwise.compiler.ir import interpret
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting, mechanism_of
from linkwise.spatial import Vector
from strategies import robots, seeds, states_of

METHODS = ("conjugate_gradient", "preconditioned_conjugate_gradient")


def system_of(robot, s, preconditioned=True):
    return conjugate_gradient.assemble(
        mechanism_of(robot), s.q.tolist(), s.qd.tolist(), s.tau.tolist(), None, preconditioned
    )


@given(robots(max_dof=8), seeds)
def test_product_right_side_and_diagonal(robot, seed):
    """A·p without A is M·p; the right side is τ − b; the diagonal by composite bodies is that of M."""
    s = states_of(robot, seed)
    M = value(robot, "mass_matrix", q=s.q)
    system = system_of(robot, s)
    scale = np.linalg.norm(M)
    assert_near(system.product(s.qdd.tolist()), M @ s.qdd, EXACT, scale * norm(s.qdd))
    assert_near(system.diagonal, np.diag(M), EXACT, scale)
    b = value(robot, "bias_torques", q=s.q, qd=s.qd)
    assert_near(system.right_side, s.tau - b, EXACT, norm(s.tau) + norm(b))
    assert system_of(robot, s, preconditioned=False).diagonal is None


def test_the_fixed_frame_is_the_tips_for_a_chain_and_the_bases_for_a_tree():
    chain, tree = lw.random_robot(3, 5), lw.random_robot(3, 5, tree=True)
    for robot, is_chain in ((chain, True), (tree, False)):
        links = mechanism_of(robot)
        assert all(link.parent == link.index - 1 for link in links) == is_chain
        turned = links.each(lambda link, q: link.turned(q), states_of(robot, 1).q.tolist())
        rotations, gravity = conjugate_gradient._rotations(links, turned)
        assert len(rotations) == 6
        unchanged = rotations[4] if is_chain else rotations[5]  # the tip's own axes, the base's own axes
        assert [*unchanged] == [1, 0, 0, 0, 1, 0, 0, 0, 1]
        other = rotations[5] if is_chain else rotations[4]
        assert np.max(np.abs(np.array([*other]) - np.eye(3).ravel())) > 0.1
        assert_near([*gravity], [*(rotations[5] @ Vector(*links.gravity))], 1e-14, 10.0)


@given(robots(max_dof=6), seeds)
def test_every_iteration_comes_closer(robot, seed):
    """In the norm of A (‖r‖ itself may rise for a while), and the estimated error meets the tolerance."""
    s = states_of(robot, seed)
    M = value(robot, "mass_matrix", q=s.q)
    b = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=0 * s.qdd)
    solution = np.linalg.solve(M, s.tau - b)
    for preconditioned in (False, True):
        whole = robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=preconditioned)
        assert whole.converged
        assert whole.error <= 1e-9
        assert np.abs(whole.qdd - solution).max() <= 1e-9 * np.abs(solution).max()
        assert whole.count == len(whole.residuals) - 1 <= 10 * robot.dof
        assert_near(M @ whole.qdd, s.tau - b, EXACT, norm(s.tau) + norm(b))
        errors = []
        for limit in range(whole.count + 1):
            partial = robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=preconditioned, limit=limit)
            assert partial.residuals == whole.residuals[: limit + 1]
            assert partial.converged == (limit == whole.count)
            assert partial.error > 1e-9 or limit == whole.count
            e = partial.qdd - solution
            errors.append(e @ M @ e)
        floor = 1e-20 * (solution @ M @ solution)
        assert all(after <= before * (1 + 1e-9) + floor for before, after in itertools.pairwise(errors))


def test_the_last_of_n_iterations_is_the_solution_of_a_good_natured_robot():
    robot = lw.planar_chain(3)
    s = states_of(robot, 2)
    for preconditioned in (False, True):
        found = robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=preconditioned)
        assert found.count <= 5
        assert found.residuals[3] <= 1e-9  # n iterations in exact arithmetic


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["puma560", "panda"])
def test_lanes_of_a_compiled_batch_do_not_see_each_other(method, name):
    """One has converged before it begins, some are easy, some hard, one is no number: each is as if alone."""
    robot = lw.load(name)
    s = states_of(robot, 7, 11)
    start = np.zeros_like(s.q)
    start[2] = start[7] = robot.forward_dynamics(s.q[2], s.qd[2], s.tau[2])
    s.q[7], s.qd[7], s.tau[7] = s.q[2], s.qd[2], s.tau[2]
    s.tau[4] = robot.bias_torques(s.q[4], s.qd[4]) + 1e-9  # easy: next to the solution
    s.qd[5] = 0.0
    s.tau[9, 3] = np.nan
    batch = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, start=start)
    for k in range(11):
        alone = robot.forward_dynamics(s.q[k], s.qd[k], s.tau[k], algorithm=method, start=start[k])
        assert np.array_equal(batch[k], alone, equal_nan=True), k
    assert np.isnan(batch[9]).all()
    assert np.array_equal(batch[2], start[2])  # nothing to do
    assert np.isfinite(np.delete(batch, 9, axis=0)).all()
    order = np.random.default_rng(0).permutation(11)
    again = robot.forward_dynamics(
        s.q[order], s.qd[order], s.tau[order], algorithm=method, start=start[order]
    )
    assert np.array_equal(again, batch[order], equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_iterations_are_counted_lane_by_lane(method):
    robot = lw.load("iiwa14")
    s = states_of(robot, 3, 9)
    start = np.zeros_like(s.q)
    solution = value(robot, "forward_dynamics", q=s.q, qd=s.qd, tau=s.tau)
    start[1] = solution[1]
    start[4] = solution[4] * (1 + 1e-11)
    given = {"q": s.q, "qd": s.qd, "tau": s.tau, "start": start}
    result = arrays.run_on_arrays(
        FUNCTIONS["iterated_forward_dynamics"], Setting(robot, start=True), method, given
    )
    counts = result["iterations"]
    assert counts[1] == 0
    assert len(set(counts)) > 2  # they end at different times
    assert (result["error"] <= 1e-9).all()
    for k in range(9):
        alone = robot.conjugate_gradient(
            s.q[k], s.qd[k], s.tau[k], preconditioned=method.startswith("pre"), start=start[k]
        )
        assert alone.count == counts[k]


@pytest.mark.parametrize("method", METHODS)
def test_a_warm_start_saves_iterations(method):
    robot = lw.load("iiwa14")
    s = states_of(robot, 1)
    preconditioned = method.startswith("pre")
    solution = robot.forward_dynamics(s.q, s.qd, s.tau)
    cold = robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=preconditioned)
    done = robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=preconditioned, start=solution)
    assert done.count <= 3
    assert_near(done.qdd, solution, 1e-12, norm(solution))
    near = robot.conjugate_gradient(
        s.q, s.qd, s.tau, preconditioned=preconditioned, start=solution * (1 + 1e-11)
    )
    assert 0 < near.count <= cold.count
    again = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, start=solution)
    assert_near(again, solution, 1e-12, norm(solution))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_compare_with(method):
    """τ = b = 0: the solution is zero at once, and from a warm start too."""
    robot = lw.load("puma560").with_gravity((0, 0, 0))
    q, rest = states_of(robot, 1).q, np.zeros(6)
    assert not robot.forward_dynamics(q, rest, rest, algorithm=method).any()
    found = robot.forward_dynamics(q, rest, rest, algorithm=method, start=np.ones(6))
    assert np.max(np.abs(found)) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_too_few_iterations_are_an_error_with_the_estimate(method):
    robot = lw.load("puma560")
    s = states_of(robot, 1, 4)
    with pytest.raises(
        lw.ConvergenceError,
        match=r"relative error of 1e-09 in q̈: it stopped before a first estimate; raise limit=",
    ):
        robot.forward_dynamics(s.q[0], s.qd[0], s.tau[0], algorithm=method, limit=2)
    with pytest.raises(lw.ConvergenceError, match=r"of 1e-06 in q̈: state \d stopped before"):
        robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, limit=2, tolerance=1e-6)
    square = [x.reshape(2, 2, 6) for x in (s.q, s.qd, s.tau)]
    with pytest.raises(lw.ConvergenceError, match=r"state \(\d, \d\) stopped before"):
        robot.forward_dynamics(*square, algorithm=method, limit=2)
    # a tolerance beyond what rounding allows: the message names the worst state with its estimate
    with pytest.raises(lw.ConvergenceError, match=r"of 1e-25 in q̈: state \d stopped at [0-9.]+e-1\d"):
        robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, tolerance=1e-25)
    assert issubclass(lw.ConvergenceError, lw.LinkwiseError)


def test_a_loose_tolerance_is_enough_for_those_who_ask():
    robot = lw.load("puma560")
    s = states_of(robot, 1, 4)
    exact = robot.forward_dynamics(s.q, s.qd, s.tau)
    for method in METHODS:
        rough = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, tolerance=1e-3)
        assert 1e-14 < np.max(np.abs(rough - exact)) <= 1e-3 * np.max(np.abs(exact))
        back = robot.inverse_dynamics(s.q, s.qd, rough)
        # the Coulomb friction is part of neither τ nor b of the method
        assert (norm(back - s.tau) <= 1e-3 * (norm(s.tau) + norm(robot.bias_torques(s.q, s.qd)) + 20.0)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [0.0, -1e-9, float("nan"), 1.0, float("inf"), 10**400, "small"])
def test_a_tolerance_is_positive(method, bad):
    robot = lw.load("two_link")
    zero = np.zeros(2)
    with pytest.raises(ValueError, match="tolerance: expected a positive number below 1, got"):
        robot.forward_dynamics(zero, zero, zero, algorithm=method, tolerance=bad)


@pytest.mark.parametrize("bad", [-1, 1.5, "3"])
def test_a_limit_is_a_whole_number(bad):
    robot = lw.load("two_link")
    zero = np.zeros(2)
    with pytest.raises(ValueError, match="limit: expected a whole number from 0 on, got"):
        robot.forward_dynamics(zero, zero, zero, algorithm=METHODS[0], limit=bad)


def test_options_of_the_iteration_belong_to_it():
    robot = lw.load("two_link")
    zero = np.zeros(2)
    for option in ({"tolerance": 1e-6}, {"limit": 3}, {"start": zero}):
        for algorithm in (None, "kalman", "compound_link"):
            with pytest.raises(TypeError, match="conjugate-gradient"):
                robot.forward_dynamics(zero, zero, zero, algorithm=algorithm, **option)


def test_the_start_broadcasts_and_is_checked():
    robot = lw.load("two_link")
    s = states_of(robot, 1, 5)
    wanted = robot.forward_dynamics(s.q, s.qd, s.tau)
    found = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=METHODS[1], start=np.ones(2))
    assert_near(found, wanted, 1e-9, 1.0 + np.max(np.abs(wanted)))
    with pytest.raises(lw.ShapeError, match=r"start: expected shape \(\.\.\., 2\), got \(3,\)"):
        robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=METHODS[1], start=np.ones(3))


@pytest.mark.parametrize("method", METHODS)
def test_results_go_where_they_are_wanted(method):
    robot = lw.load("two_link")
    s = states_of(robot, 1, 5)
    wanted = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method)
    out = np.empty((5, 2))
    assert robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, out=out) is out
    assert np.array_equal(out, wanted)
    with pytest.raises(lw.ShapeError, match=r"out: expected shape \(5, 2\), got \(4, 2\)"):
        robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=method, out=np.empty((4, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_single_precision(method):
    robot = lw.load("iiwa14")
    s = states_of(robot, 2, 6)
    q, qd, tau = (x.astype(np.float32) for x in (s.q, s.qd, s.tau))
    found = robot.forward_dynamics(q, qd, tau, algorithm=method)
    assert found.dtype == np.float32
    b = robot.bias_torques(s.q, s.qd)
    residual = robot.inverse_dynamics(s.q, s.qd, found.astype(float)) - s.tau
    M = np.linalg.norm(robot.mass_matrix(s.q), axis=(-2, -1))
    assert (norm(residual) <= 1e-5 * (norm(s.tau) + norm(b) + M * norm(found))).all()
    # the array path knows the precision too
    slow = value(robot, "iterated_forward_dynamics", method, q=q, qd=qd, tau=tau)
    assert slow.dtype == np.float32
    assert np.isfinite(slow).all()


def moving_states(robot, count: int, seed: int = 0):
    """(q, q̇, τ) of accelerations of about 1 rad/s² under gravity."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (count, robot.dof))
    qd, qdd = rng.normal(size=(2, count, robot.dof))
    return q, qd, robot.inverse_dynamics(q, qd, qdd)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ur10e", "panda", "iiwa14"])
def test_accelerations_in_single_precision_are_right(name, method):
    """Torques that gravity dominates hide an error of q̈ from the residual, and light wrists magnify it."""
    robot = lw.load(name)
    single = [x.astype(np.float32) for x in moving_states(robot, 300)]
    exact = robot.forward_dynamics(*(x.astype(float) for x in single))
    size = np.abs(exact).max(axis=-1)
    found = robot.forward_dynamics(*single, algorithm=method)
    by_filter = robot.forward_dynamics(*single)

    def worst(qdd) -> float:
        return float((np.abs(qdd - exact).max(axis=-1) / size).max())

    assert worst(found) < 3e-4
    assert worst(found) < 10.0 * worst(by_filter)


@pytest.mark.parametrize("method", METHODS)
def test_the_estimate_is_no_less_than_the_error(method):
    """In float64, where the rounding of the bias does not matter, at tolerances from loose to tight."""
    for name in ("ur10e", "panda"):
        robot = lw.load(name)
        states = moving_states(robot, 50)
        exact = robot.forward_dynamics(*states)
        for tolerance in (1e-1, 1e-3, 1e-6, 1e-9):
            qdd, error, _ = arrays.run_on_arrays(
                FUNCTIONS["iterated_forward_dynamics"],
                Setting(robot, tolerance=tolerance),
                method,
                dict(zip(("q", "qd", "tau"), states, strict=True)),
            ).values()
            true = np.abs(qdd - exact).max(axis=-1) / np.abs(exact).max(axis=-1)
            assert (error <= tolerance).all()
            assert (true <= error + 1e-11).all()


def test_what_single_precision_cannot_solve_is_an_error():
    """A mass matrix with a condition number of 6e13: float64 has room, and with the preconditioner float32 too."""
    robot = lw.load("ur10e")
    light = {
        label: 1e-9 * value
        for label, value in zip(robot.parameter_labels, robot.parameters, strict=True)
        if label.startswith(robot.moving_joints[-1].child + ".")
    }
    assert light
    robot = robot.with_parameters(light)
    states = moving_states(robot, 20)
    with pytest.raises(lw.ConvergenceError, match=r"relative error of 0\.001"):
        robot.forward_dynamics(*(x.astype(np.float32) for x in states), algorithm=METHODS[0])
    for method in METHODS:
        assert_near(
            robot.forward_dynamics(*states, algorithm=method), robot.forward_dynamics(*states), 1e-8, 10.0
        )


def test_tiny_torques_in_single_precision_do_not_underflow():
    robot = lw.load("panda").with_gravity((0, 0, 0))
    q = states_of(robot, 1, 5).q.astype(np.float32)
    rest = np.zeros_like(q)
    for size in (1e-6, 1e-12, 1e-18):
        tau = np.full_like(q, size)
        exact = robot.forward_dynamics(q.astype(float), rest.astype(float), tau.astype(float), friction=False)
        for method in METHODS:
            try:
                found = robot.forward_dynamics(q, rest, tau, algorithm=method, friction=False)
            except lw.ConvergenceError:
                assert size < 1e-8
                continue
            assert np.abs(found - exact).max() <= 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("method", METHODS)
def test_the_default_limit_is_ten_iterations_a_joint(method):
    """A tolerance out of reach uses up the limit."""
    for robot in (lw.load("two_link"), lw.load("puma560")):
        s = states_of(robot, 1, 4)
        given = {"q": s.q, "qd": s.qd, "tau": s.tau}
        setting = Setting(robot, tolerance=1e-30)
        found = arrays.run_on_arrays(FUNCTIONS["iterated_forward_dynamics"], setting, method, given)
        assert found["iterations"].max() == 10 * robot.dof
        one = robot.conjugate_gradient(
            s.q[0], s.qd[0], s.tau[0], preconditioned=method.startswith("pre"), tolerance=1e-30
        )
        assert one.count <= 10 * robot.dof


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", METHODS)
def test_compiled_loops_have_the_bits_of_the_interpreter(method, dtype):
    """q̈, the estimated error and the number of iterations, of a batch and of single states."""
    robot = lw.load("ur10e")
    states = [x.astype(dtype) for x in moving_states(robot, 2)]
    kernel = robot.kernel("forward_dynamics", algorithm=method, dtype=dtype)
    batch = kernel(*states)
    for k in range(2):
        wanted = interpret.run(kernel.program(), *(x[k].tolist() for x in states))
        alone = kernel(*(x[k] for x in states))
        for exact, one, many in zip(wanted, alone, batch, strict=True):
            assert np.array_equal(np.ravel(exact), np.ravel(one))
            assert np.array_equal(np.ravel(exact), np.ravel(many[k]))
