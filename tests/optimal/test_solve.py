"""Solutions of problems of optimal motion: against linear control theory, small quadratic programs, and bad input."""

import numpy as np
import pytest
from scipy import linalg, optimize

import linkwise as lw
from linkwise import optimal
from linkwise.optimal.descent import LENGTHS, kernel_of
from linkwise.solve.riccati import within_box

COST_TOLERANCE = 1e-8  # relative; the solver stops at 1e-9


@pytest.fixture(scope="module")
def slider():
    """Two masses that slide on perpendicular axes without gravity: linear dynamics."""
    inertia = [lw.Inertia.from_com(mass, (0, 0, 0), np.diag([0.1, 0.1, 0.1])) for mass in (2.0, 1.0)]
    links = [lw.Link("world"), lw.Link("cart", inertia[0]), lw.Link("lift", inertia[1])]
    joints = [
        lw.Joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
        lw.Joint("y", "prismatic", "cart", "lift", axis=(0, 1, 0)),
    ]
    return lw.Robot("slider", links, joints, gravity=(0.0, 0.0, 0.0))


def regulator(robot, **options):
    still = optimal.JointTracking([0.0, 0.0], [3.0, 2.0], velocity=0.0, velocity_weight=[0.2, 0.1])
    given = {
        "horizon": 20,
        "step": 0.05,
        "start": ([0.5, -1.0], [0.1, 0.4]),
        "torque_limits": False,
    } | options
    return optimal.Problem(robot, costs=[still, optimal.Effort([0.1, 0.2])], terminal=[still], **given)


def matrices(problem):
    """A, B, Q, R of the regulator's discrete problem, from its definition."""
    h, mass = problem.step, np.array([3.0, 1.0])
    B = np.vstack([h * h * np.diag(1 / mass), h * np.diag(1 / mass)])
    A = np.block([[np.eye(2), h * np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
    return A, B, h * np.diag([3.0, 2.0, 0.2, 0.1]), h * np.diag([0.1, 0.2])


@pytest.mark.processor
def test_linear_problems_take_one_step_to_the_riccati_solution(slider):
    problem = regulator(slider, horizon=400)
    found = optimal.solve(problem)
    A, B, Q, R = matrices(problem)
    P = linalg.solve_discrete_are(A, B, Q, R)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    assert found.converged
    assert found.iterations <= 2  # the second one sees that the first was exact
    assert np.allclose(found.gains[0], -K, atol=1e-9)
    assert found.cost == pytest.approx(0.5 * problem.x0 @ P @ problem.x0, rel=1e-8)
    assert found.gap < 1e-12
    states = [problem.x0]
    for _ in range(400):
        states.append((A - B @ K) @ states[-1])
    assert np.allclose(found.states, states, atol=1e-8)


@pytest.mark.processor
def test_limits_of_torques_are_those_of_the_quadratic_program(slider):
    problem = regulator(slider, torque_limits=[1.0, 0.6])
    found = optimal.solve(problem, tolerance=1e-12)
    A, B, Q, R = matrices(problem)
    N, end = problem.horizon, np.diag([3.0, 2.0, 0.2, 0.1])
    # all states as functions of all torques: a bounded least-squares problem
    maps, shift = [np.zeros((4, 2 * N))], [problem.x0]
    for t in range(N):
        own = np.zeros((4, 2 * N))
        own[:, 2 * t : 2 * t + 2] = B
        maps.append(A @ maps[-1] + own)
        shift.append(A @ shift[-1])
    weights = [np.sqrt(Q)] * N + [np.sqrt(end)]
    rows = [w @ m for w, m in zip(weights, maps, strict=True)] + [np.kron(np.eye(N), np.sqrt(R))]
    right = [-(w @ s) for w, s in zip(weights, shift, strict=True)] + [np.zeros(2 * N)]
    most = np.tile([1.0, 0.6], N)
    answer = optimize.lsq_linear(np.vstack(rows), np.concatenate(right), (-most, most), tol=1e-14)
    assert found.converged
    assert np.allclose(found.tau.ravel(), answer.x, atol=1e-6)
    assert found.cost == pytest.approx(answer.cost, rel=COST_TOLERANCE)
    assert (np.abs(answer.x) > most - 1e-9).any()
    assert (np.abs(found.tau) <= [1.0, 0.6]).all()


def test_limits_of_states_are_kept_and_have_multipliers(slider):
    free = optimal.solve(regulator(slider))
    most = 0.7 * np.abs(free.qd).max(axis=0)
    found = optimal.solve(regulator(slider, limits=[optimal.StateLimits(None, most)]))
    assert found.converged, found.message
    assert (np.abs(found.qd[1:]) <= most + 1e-6).all()
    assert np.abs(found.qd).max(axis=0) == pytest.approx(most, abs=2e-6)
    assert found.cost > free.cost
    assert found.multipliers is not None
    assert found.multipliers[:, :-2].max() > 1e-3


def test_a_step_of_the_sweep_is_the_minimum_of_its_box():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.normal(size=(4, 4))
        Q, q = root @ root.T + 0.1 * np.eye(4), 3 * rng.normal(size=4)
        low, high = -rng.uniform(0, 1, 4), rng.uniform(0, 1, 4)
        found = np.zeros(4, object)
        within_box(Q.astype(object), q, (low, high), 1e-12, found, 0.0)
        L = np.linalg.cholesky(Q)
        answer = optimize.lsq_linear(L.T, -np.linalg.solve(L, q), (low, high), tol=1e-15)
        assert np.allclose(np.array(found, float), answer.x, atol=1e-6)


def test_a_control_that_leaves_its_limit_gets_no_feedback():
    """Feedback could push it back beyond the limit, and no step would be short enough."""
    rng = np.random.default_rng(1)
    left = 0
    for _ in range(20):
        root = rng.normal(size=(3, 3))
        Q, q = root @ root.T + 0.1 * np.eye(3), rng.normal(size=3)
        low, high = np.array([0.0, -1.0, -1.0]), np.array([1.0, 1.0, np.inf])
        found = np.zeros(3, object)
        *_, free = within_box(Q.astype(object), q, (low, high), 1e-12, found, 1e-4)
        k = np.array(found, float)
        assert (k >= low - 1e-12).all()
        assert (k <= high + 1e-12).all()
        assert float(free[0]) == 0.0
        # others have it inside, and what is held stays at its k: the minimum over the box
        answer = optimize.lsq_linear(
            np.linalg.cholesky(Q).T, -np.linalg.solve(np.linalg.cholesky(Q), q), (low, high)
        )
        assert np.allclose(k, answer.x, atol=1e-6)
        inside = (k > low + 1e-3) & (k < high - 1e-3)
        assert (np.array(free, float)[1:] == inside[1:]).all()
        left += k[0] > 1e-3
        # only after a step was refused: plans of predictive control need feedback
        *_, free = within_box(Q.astype(object), q, (low, high), 1e-12, found, 0.0)
        assert float(free[0]) == inside[0]
    assert left > 3


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


def reach(robot, target=(1.0, 0.5), **options):
    goal = optimal.JointTracking(target, 10.0, velocity=0.0, velocity_weight=1.0)
    costs = [optimal.Effort(1e-4), optimal.JointTracking(target, 0.1, velocity=0.0, velocity_weight=0.01)]
    return optimal.Problem(
        robot, **({"horizon": 20, "step": 0.02, "costs": costs, "terminal": [goal]} | options)
    )


@pytest.fixture(scope="module")
def reached(arm):
    return optimal.solve(reach(arm, torque_limits=[30.0, 8.0]))


@pytest.mark.processor
def test_motions_follow_the_dynamics_and_cost_what_they_say(reached):
    problem = reached.problem
    assert reached.converged
    assert reached.gap < 1e-12
    total = 0.0
    for t in range(problem.horizon):
        x, u, p = reached.states[t].tolist(), reached.tau[t].tolist(), problem.p[t].tolist()
        assert np.allclose(np.array(problem.next_state(x, u, p), float), reached.states[t + 1], atol=1e-12)
        total += float(problem.stage_cost(x, u, p))
    total += float(problem.terminal_cost(reached.states[-1].tolist(), problem.p[-1].tolist()))
    assert total == pytest.approx(reached.cost, rel=1e-12)
    assert (np.abs(reached.tau) <= [30.0, 8.0]).all()
    assert (np.abs(reached.tau) == [30.0, 8.0]).any()


@pytest.mark.processor
def test_no_motion_nearby_is_better(reached):
    problem, rng = reached.problem, np.random.default_rng(5)
    for _ in range(20):
        us = np.clip(reached.tau + 0.1 * rng.normal(size=reached.tau.shape), [-30, -8], [30, 8])
        x, cost = problem.x0.tolist(), 0.0
        for u, p in zip(us.tolist(), problem.p.tolist(), strict=False):
            cost, x = cost + problem.stage_cost(x, u, p), problem.next_state(x, u, p)
        assert cost + problem.terminal_cost(x, problem.p[-1].tolist()) > reached.cost


def test_another_target_needs_no_other_code(reached):
    problem = reached.problem.with_values({"joints.target": [0.2, -0.3]})
    assert kernel_of(problem, 1, LENGTHS) is kernel_of(reached.problem, 1, LENGTHS)
    other = optimal.solve(problem)
    assert other.converged
    assert np.allclose(other.q[-1], [0.2, -0.3], atol=0.1)


def test_costs_that_leave_torques_open_get_the_smallest_regularisation(arm):
    goal = optimal.TipTracking([0.3, 1.0, 0.2], 10.0)
    found = optimal.solve(optimal.Problem(arm, horizon=10, costs=[], terminal=[goal]), iterations=50)
    assert np.isfinite(found.tau).all()
    assert np.isfinite(found.q).all()
    nothing = optimal.Problem(arm, horizon=5, costs=[optimal.Effort(0.0)])
    found = optimal.solve(nothing)
    assert found.converged
    assert "do not determine all torques" in found.message
    assert np.isfinite(found.tau).all()


def test_targets_out_of_reach_are_named(arm):
    goal = optimal.TipTracking([5.0, 0.0, 0.0], 100.0)
    problem = optimal.Problem(arm, horizon=10, costs=[optimal.Effort(1e-3)], terminal=[goal])
    found = optimal.solve(problem, iterations=60)
    assert np.isfinite(found.tau).all()
    (missed,) = found.missed
    assert missed.cost == "tip"
    assert missed.unreachable > 2.0
    assert "out of reach" in repr(found)


def test_limits_that_cannot_be_kept_are_named(slider):
    # from x = 0.5 at 0.1 m/s no force of 1 N reaches x <= 0.2 in the first steps
    limit = optimal.StateLimits(([-1.0, -2.0], [0.2, 2.0]), None)
    found = optimal.solve(regulator(slider, torque_limits=1.0, limits=[limit]))
    assert not found.converged
    worst = found.violations[0]
    assert worst.what == "x: upper position limit"
    assert worst.unit == "m"
    assert 0.25 < worst.size < 0.35
    assert "x: upper position limit is exceeded by" in found.message
    assert np.isfinite(found.tau).all()
    assert (np.abs(found.tau) <= 1.0).all()


def test_costs_that_are_no_numbers_are_named(arm):
    def root(q, qd, tau):
        return lw.sqrt(q[0] - 1.0)

    problem = optimal.Problem(arm, horizon=3, costs=[optimal.Own(root, name="root")])
    with pytest.raises(lw.ConvergenceError, match="the cost 'root' is not a finite number at stage 0"):
        optimal.solve(problem)


def test_costs_by_methods_of_the_robot_that_are_no_numbers_are_named(arm):
    def divided(q, qd, tau):
        return arm.kinetic_energy(q, qd) / (0.0 * q[0])

    problem = optimal.Problem(arm, horizon=3, costs=[optimal.Own(divided, name="divided")])
    with pytest.raises(lw.ConvergenceError, match="the cost 'divided' is not a finite number at stage 0"):
        optimal.solve(problem)


@pytest.mark.parametrize("least_squares", [False, True])
def test_limits_beside_a_function_of_the_users_own(arm, least_squares):
    """A scalar function beside any limit ended in "expected one scalar": the scale of the cost was computed for all
    stages at once, which traced functions do not know. Where limits cannot be kept, the cost is computed by itself."""

    def energy(q, qd, tau, weight):
        value = arm.kinetic_energy(q, qd)
        return [weight[0] * qd[0], lw.sqrt(weight[0] * value + 1.0)] if least_squares else weight[0] * value

    def made(most, speed):
        return optimal.Problem(
            arm,
            horizon=10,
            step=0.02,
            start=([0.0, 0.0], [0.0, speed]),
            costs=[optimal.Effort(1e-4), optimal.Own(energy, {"weight": 0.05}, least_squares=least_squares)],
            terminal=[optimal.JointTracking([0.2, 0.3], 10.0)],
            limits=[optimal.StateLimits(None, most)],
        )

    def cost_of(problem, found):
        total = 0.0
        for q, qd, tau in zip(found.q, found.qd, found.tau, strict=False):
            value = 0.05 * float(arm.kinetic_energy(q, qd))
            own = 0.5 * ((0.05 * qd[0]) ** 2 + value + 1.0) if least_squares else value
            total += problem.step * (0.5e-4 * tau @ tau + own)
        return total + 5.0 * ((found.q[-1] - [0.2, 0.3]) ** 2).sum()

    loose, tight = made(3.0, 0.0), made(1e-3, 5.0)
    found = optimal.solve(loose)
    assert found.converged
    assert found.cost == pytest.approx(cost_of(loose, found), rel=1e-9)
    many = optimal.solve_many(loose, start=np.zeros((3, 4)))
    assert many.converged.all()
    np.testing.assert_allclose(many.cost, found.cost, rtol=1e-9)
    found = optimal.solve(tight)
    assert not found.converged
    assert found.cost == pytest.approx(cost_of(tight, found), rel=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda q, qd, tau: 1 / 0, "own cannot be traced: ZeroDivisionError"),
        (lambda q, qd, tau: None, "own: expected one scalar, got a NoneType"),
        (lambda q, qd, tau: q, r"own: expected one scalar, got shape \(2,\)"),
        (lambda q, qd, tau: q[0] if q[0] > 0 else q[1], "lw.where"),
    ],
)
def test_functions_that_cannot_be_traced_are_named(arm, function, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        optimal.solve(optimal.Problem(arm, horizon=2, costs=[optimal.Own(function)]))


def test_limits_may_all_be_infinite(slider):
    free, same = regulator(slider), regulator(slider, limits=[optimal.TipLimits()])
    assert optimal.solve(same).cost == optimal.solve(free).cost


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"torques": np.full((20, 2), np.nan)}, "torques: expected finite numbers, got nan"),
        ({"torques": np.zeros((3, 2))}, "torques: expected shape"),
        ({"states": np.zeros((20, 4))}, "states: expected shape"),
        ({"iterations": 0}, "iterations"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_bad_guesses_are_refused(reached, given, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        optimal.solve(reached.problem, **given)


def test_something_else_is_no_problem():
    with pytest.raises(optimal.ProblemError, match="expected linkwise"):
        optimal.solve("panda")  # type: ignore[arg-type]


def test_results_are_shown(reached):
    assert repr(reached).startswith("Solution: converged")
    assert "converged" in reached._repr_html_()
    assert "problem" in repr(reached.problem).lower()
    assert reached.t[-1] == pytest.approx(0.4)
    assert "<svg" in reached.plot()._repr_svg_()


def test_one_step_and_no_freedom(arm):
    found = optimal.solve(reach(arm, horizon=1, torque_limits=0.0))
    assert found.converged
    assert np.array_equal(found.tau, [[0.0, 0.0]])


def test_few_iterations_say_so(arm):
    found = optimal.solve(reach(arm, torque_limits=[30.0, 8.0]), iterations=1)
    assert not found.converged
    assert "1 iterations were not enough" in found.message


def test_speed_limits_of_a_seven_joint_arm_end_soon():
    """Many limits of speeds and torques at once: converged within a bounded number of iterations."""
    robot = lw.load("iiwa14")
    effort = np.array([320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0])
    for k in range(3):
        rng = np.random.default_rng(k)
        start = rng.uniform(-1, 1, 7)
        end = np.clip(start + rng.choice([-1, 1], 7) * rng.uniform(0.5, 1.2, 7), -2, 2)
        problem = lw.optimal.Problem(
            robot,
            horizon=100,
            step=0.01,
            start=(start, np.zeros(7)),
            costs=[lw.optimal.Effort(1e-4)],
            terminal=[lw.optimal.JointTracking(end, 1e4, velocity=0.0, velocity_weight=1e3)],
            limits=[lw.optimal.StateLimits(position=False, velocity=1.3)],
            torque_limits=effort,
        )
        found = lw.optimal.solve(problem)
        assert found.converged, found.message
        assert found.iterations <= 150
        assert np.abs(found.qd[1:]).max() <= 1.3 + 1e-6
        assert (np.abs(found.tau) <= effort).all()


def test_limits_that_cannot_be_kept_are_said_within_bounds():
    """A start far above the speed limit with weak motors: no motion keeps it."""
    robot = lw.load("two_link")
    problem = lw.optimal.Problem(
        robot,
        horizon=20,
        step=0.02,
        start=([0.0, 0.0], [5.0, 0.0]),
        costs=[lw.optimal.Effort(1e-3)],
        limits=[lw.optimal.StateLimits(position=False, velocity=0.5)],
        torque_limits=[5.0, 2.0],
    )
    found = lw.optimal.solve(problem)
    assert not found.converged
    assert found.iterations <= 200
    assert "velocity limit" in found.message


def test_the_multipliers_of_a_solution_are_a_start(slider):
    """Solved again from its own trajectory and multipliers, a problem with limits is at its minimum at once."""
    free = optimal.solve(regulator(slider))
    limits = [optimal.StateLimits(None, 0.7 * np.abs(free.qd).max(axis=0))]
    problem = regulator(slider, limits=limits)
    cold = optimal.solve(problem)
    states = np.concatenate([cold.q, cold.qd], axis=1)
    warm = optimal.solve(problem, states=states, torques=cold.tau, multipliers=cold.multipliers)
    assert warm.converged, warm.message
    assert warm.iterations < cold.iterations
    assert warm.cost == pytest.approx(cold.cost, rel=1e-6)
    for rows in (-2, -1, 1):
        wrong = np.zeros((len(cold.multipliers) + rows, cold.multipliers.shape[1]))
        with pytest.raises(optimal.ProblemError, match="multipliers"):
            optimal.solve(problem, multipliers=wrong)


def test_the_step_that_is_chosen_is_the_one_of_the_rule():
    """Random merits, some of them no numbers: the first that keeps a tenth of its promise, else the smallest."""
    from linkwise.optimal import acceptance

    rng = np.random.default_rng(5)
    kinds = {"first": 0, "least": 0, "none": 0}
    for _ in range(500):
        before = rng.choice([rng.normal(), np.nan, np.inf], p=[0.8, 0.1, 0.1])
        merits, promised = rng.normal(size=4), rng.uniform(0.0, 8.0, 4)
        merits[rng.random(4) < 0.2] = np.nan
        start = before if abs(before) < acceptance.HUGE else acceptance.HUGE
        enough = [k for k in range(4) if merits[k] < start - acceptance.PART * promised[k]]
        better = [k for k in range(4) if merits[k] < start]
        expected = np.zeros(4)
        if enough:
            expected[enough[0]] = 1.0
        elif better:
            expected[min(better, key=lambda k: merits[k])] = 1.0
        kinds["first" if enough else "least" if better else "none"] += 1
        picks = acceptance.chosen(float(before), merits.tolist(), promised.tolist())
        np.testing.assert_array_equal(np.array(picks, dtype=float), expected)
    assert min(kinds.values()) > 20, kinds


def test_the_regularisation_follows_the_steps():
    """It grows after none or a short step, stays after one between, and shrinks to exactly zero after long ones."""
    from linkwise.optimal import acceptance as a

    for mu in (0.0, 1e-5, 1e-3, 0.4, 1e7, 1e8):
        for taken, expected in (
            *((step, min(max(a.GROWTH * mu, a.SMALLEST), a.LARGEST)) for step in (0.0, 0.03, 0.05)),
            *((step, mu) for step in (0.06, 0.2)),
            *((step, a.DECAY * mu if a.DECAY * mu >= 0.5 * a.SMALLEST else 0.0) for step in (0.21, 1.0)),
        ):
            assert a.regularised(mu, taken) == pytest.approx(expected, rel=1e-15), (mu, taken)


def test_the_code_of_a_problem_is_looked_up_once(slider, monkeypatch):
    """To find it a robot is described as a whole, which took as long as half an iteration of a quadruped."""
    calls, key = [], optimal.Problem.key
    monkeypatch.setattr(optimal.Problem, "key", lambda self: calls.append(1) or key(self))
    problem = regulator(slider, torque_limits=0.4)
    few = optimal.solve(problem, iterations=1), len(calls)
    many = optimal.solve(problem, iterations=30), len(calls) - few[1]
    assert many[0].iterations > few[0].iterations
    assert many[1] <= few[1]
