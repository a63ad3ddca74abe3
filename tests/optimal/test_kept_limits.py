"""Limits of positions, velocities and torques over random trees: kept in every solved problem, and said where no motion
keeps them; several first guesses of one problem."""

import numpy as np
import pytest
from test_one_iteration import tree

import linkwise as lw
from linkwise import optimal
from linkwise.optimal.descent import step_of

MOST = 300


def bounded(seed: int, joints: int, limited: bool = True) -> optimal.Problem:
    """A tree that shall move by half a radian or metre within narrow limits of all three kinds."""
    rng = np.random.default_rng(seed)
    robot = tree(seed, joints, "fixed")
    start = 0.2 * rng.normal(size=joints)
    goal = start + 0.5 * rng.choice([-1.0, 1.0], size=joints)
    hold = np.abs(np.asarray(robot.gravity_torques(start))).max() + np.abs(np.diag(robot.mass_matrix(start)))
    near = np.stack([np.minimum(start, goal) - 0.05, np.maximum(start, goal) - 0.1 * (goal > start)])
    near[0] = np.where(goal < start, goal + 0.1, near[0])
    return optimal.Problem(
        robot,
        horizon=20,
        step=0.05,
        start=(start, np.zeros(joints)),
        costs=[optimal.Effort(1e-4), optimal.JointTracking(goal, 1.0, velocity=0.0, velocity_weight=1e-3)],
        terminal=[optimal.JointTracking(goal, 10.0, velocity=0.0, velocity_weight=1.0, name="end")],
        limits=[optimal.StateLimits((near[0], near[1]), 0.8)] if limited else [],
        torque_limits=3.0 * hold,
        friction=False,
    )


def test_solved_problems_keep_all_limits_over_random_trees():
    solved = reached = 0
    for seed in range(6):
        joints = 2 + seed % 3
        problem = bounded(seed, joints)
        rng = np.random.default_rng(seed)
        rates = 0.3 * rng.normal(size=(6, joints)) * (np.arange(6) > 0)[:, None]
        starts = np.concatenate([np.tile(problem.x0[:joints], (6, 1)), rates], axis=1)
        many = optimal.solve_many(problem, start=starts, iterations=MOST)
        lower, upper = (problem.p[0, problem.where(f"torque.{side}")] for side in ("lower", "upper"))
        assert (many.steps_taken <= MOST).all()
        good = many.converged
        solved += good.sum()
        assert (many.torques >= lower).all()
        assert (many.torques <= upper).all()
        assert (many.violation[good] <= 1e-6).all()
        assert (np.abs(many.states[good][:, 1:, joints:]) <= 0.8 + 1e-6).all()
        assert many.gap[good].max(initial=0.0) < 1e-8
        assert many.multipliers.shape == (6, problem.horizon + 1, problem.nm)
        reached += (np.abs(many.states[good][..., joints:]).max(axis=(1, 2), initial=0.0) > 0.8 - 1e-4).sum()
        # what is not solved is said: limits by name, within the iterations that were allowed
        for k in np.flatnonzero(~good)[:1]:
            found = optimal.solve(
                problem.with_values({}, start=(starts[k, :joints], starts[k, joints:])), iterations=MOST
            )
            assert not found.converged
            assert found.iterations <= MOST
            assert found.message.startswith("not converged: ")
    assert solved >= 30
    assert reached >= 10  # limits do hold back


def around_a_motion(seed: int, joints: int, base: str, wide: float, horizon: int, step: float, coupled=False):
    """A problem whose limits are a little wider than what a known motion uses, with a target beyond; that motion."""
    rng = np.random.default_rng(seed)
    robot = tree(seed, joints, base)
    if coupled:
        robot = robot.with_constraints([lw.Coupling("joint1", "joint2", 0.8)])
    n, nq, q = robot.dof, robot.nq, np.array(robot.neutral)
    if not coupled:
        q = robot.integrate(q, 0.3 * rng.normal(size=n))
    options = {"horizon": horizon, "step": step, "start": (q, np.zeros(n)), "friction": False}
    free = optimal.Problem(robot, costs=[optimal.Effort(1e-3)], torque_limits=False, **options)
    driven, t = list(free.dynamics.driven), step * np.arange(horizon)[:, None]
    push = np.diag(np.asarray(robot.mass_matrix(q))) * rng.uniform(0.5, 2.0) * rng.normal(size=n)
    rate, phase = rng.uniform(2, 12, n) / (horizon * step), rng.uniform(0, 6, n)
    tau = (np.asarray(robot.gravity_torques(q)) + push * np.sin(rate * t + phase))[:, driven]
    xs, advance = [free.x0], step_of(free)
    for k in range(horizon):
        xs.append(np.asarray(advance(xs[-1], tau[k], free.p[k])).ravel())
    xs = np.array(xs)
    position = None
    if base == "fixed":
        position = (xs[:, :nq].min(axis=0) - 0.1 * wide, xs[:, :nq].max(axis=0) + 0.1 * wide)
    velocity = wide * np.abs(xs[:, nq : nq + n]).max(axis=0) + 1e-3
    goal = xs[-1, :nq] if coupled else robot.integrate(xs[-1, :nq], 0.3 * rng.normal(size=n))
    problem = optimal.Problem(
        robot,
        costs=[optimal.Effort(1e-4), optimal.JointTracking(goal, 1.0, velocity=0.0, velocity_weight=1e-3)],
        terminal=[optimal.JointTracking(goal, 100.0, velocity=0.0, velocity_weight=1.0, name="end")],
        limits=[optimal.StateLimits(position, velocity)],
        torque_limits=wide * np.abs(tau).max(axis=0) + 1e-3,
        **options,
    )
    return problem, xs, tau


HARD = (  # seeds and sizes
    (30, 1, "fixed", 1.5, 13, 0.02, False),
    (0, 2, "floating", 1.05, 20, 0.015, False),
    (7, 3, "fixed", 1.05, 20, 0.04, False),
    (4, 3, "fixed", 1.3, 20, 0.05, True),
)


def test_problems_that_a_known_motion_solves_are_solved():
    """Torques go from limit to limit. Feedback of those that leave a limit once made steps that no length helped; the
    regularisation then went in a circle, and limits that are not reached held back a part of the cost."""
    saturated = 0
    for given in HARD:
        problem, xs, tau = around_a_motion(*given)
        most = problem.p[0, problem.where("torque.upper")]
        for guess in ({}, {"states": xs, "torques": tau}):
            found = optimal.solve(problem, iterations=2 * MOST, **guess)
            assert found.converged, (given, found.message)
            assert found.violation <= 1e-6
            (limits,) = problem.limits
            assert (np.abs(found.qd[1:]) <= limits.velocity + 1e-6).all()
            if limits.position is not None:
                assert (found.q[1:] >= limits.position[0] - 1e-6).all()
                assert (found.q[1:] <= limits.position[1] + 1e-6).all()
            assert (np.abs(found.tau) <= most).all()
            # the motion is that of its torques
            state, advance = problem.x0, step_of(problem)
            for k, torques in enumerate(found.tau):
                state = np.asarray(advance(state, torques, problem.p[k])).ravel()
            assert np.abs(state - found.states[-1]).max() < 1e-6
            saturated += (np.abs(found.tau) >= most).sum()
    assert saturated > 50


def test_fewer_iterations_are_never_called_a_solution_before_they_are_one():
    problem, _, _ = around_a_motion(*HARD[0])
    best = optimal.solve(problem, iterations=MOST).cost
    early = 0
    for most in range(1, 40, 2):
        found = optimal.solve(problem, iterations=most)
        many = optimal.solve_many(problem, iterations=most)
        assert found.converged == many.converged
        assert not found.converged or found.cost == pytest.approx(best, rel=1e-6)
        assert found.converged or found.message.startswith("not converged: ")
        early += not found.converged and found.violation <= 1e-6
    assert early > 1  # limits are kept there, and only the multipliers still change


def test_what_limits_add_while_they_are_sought_is_no_part_of_the_cost():
    """h Σ ½ (w_τ τ² + w_q Δq² + w_v q̇²) + ½ (W_q Δq² + W_v q̇²) of the motion that was found."""
    problem = bounded(0, 2)
    found = optimal.solve(problem, iterations=MOST)
    assert found.converged
    assert np.abs(found.multipliers[:, :-2]).max() > 1e-3
    away = found.q - problem.p[0, problem.where("joints.target")]
    rates = found.qd[:-1]
    running = 1e-4 * (found.tau**2).sum() + (away[:-1] ** 2).sum() + 1e-3 * (rates**2).sum()
    final = 10.0 * (away[-1] ** 2).sum() + (found.qd[-1] ** 2).sum()
    assert found.cost == pytest.approx(0.5 * (0.05 * running + final), rel=1e-9)


def test_problems_that_no_motion_solves_are_said_within_bounded_iterations():
    for seed in range(4):
        joints = 2 + seed % 2
        problem = bounded(seed, joints)
        fast = problem.with_values({}, start=(problem.x0[:joints], np.full(joints, 2.0)))
        narrow = optimal.solve(fast, iterations=MOST)
        assert not narrow.converged
        assert narrow.iterations <= MOST
        assert narrow.violation > 1e-6
        assert narrow.violation == max(each.size for each in narrow.violations)
        assert "velocity limit is exceeded" in narrow.message
        assert np.isfinite(narrow.tau).all()
        # multipliers grow without bound, and the cost is that of the motion all the same
        away = narrow.q - fast.p[0, fast.where("joints.target")]
        running = 1e-4 * (narrow.tau**2).sum() + (away[:-1] ** 2).sum() + 1e-3 * (narrow.qd[:-1] ** 2).sum()
        final = 10.0 * (away[-1] ** 2).sum() + (narrow.qd[-1] ** 2).sum()
        assert narrow.cost == pytest.approx(0.5 * (0.05 * running + final), rel=1e-9)
        many = optimal.solve_many(fast, iterations=MOST)
        assert not many.converged  # a start beyond its limits counts here, too
        assert many.violation == narrow.violation


def test_first_guesses_that_end_in_worse_optima_are_said():
    """A pendulum may swing up to either side: from a start beside the lowest point one of them costs more."""
    rod = lw.Inertia.from_com(1.0, (0.0, 0.0, -0.5), np.diag([0.02, 0.02, 0.001]))
    joint = lw.Joint("pivot", "continuous", "world", "rod", axis=(0, 1, 0))
    robot = lw.Robot("pendulum", [lw.Link("world"), lw.Link("rod", rod)], [joint])

    def upright(q, qd, tau):
        return [3.0 * (1.0 + np.cos(q[0])), 3.0 * np.sin(q[0]), 0.3 * qd[0]]

    problem = optimal.Problem(
        robot,
        horizon=30,
        step=0.05,
        start=([0.3], [0.0]),
        costs=[optimal.Effort(1e-2), optimal.Own(upright, least_squares=True, name="up")],
        torque_limits=False,
    )
    guesses = np.zeros((4, 31, 2))
    guesses[..., 0] = np.linspace(0.3, [3.0, -3.0, 2.8, -2.8], 31).T
    found = optimal.solve_many(problem, states=guesses)
    assert found.converged.all()
    assert found.worse.tolist() == (found.cost > found.cost.min() * (1 + 1e-6)).tolist()
    assert found.worse.any()
    assert not found.worse.all()
    other = optimal.solve_many(problem, start=np.array([[0.3, 0.0], [0.31, 0.0]]), states=guesses[:2])
    assert not other.worse.any()  # another start is another problem
