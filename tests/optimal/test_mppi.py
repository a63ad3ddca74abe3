"""Sampling control: against NumPy, the same bits on any number of threads, limits, failures."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.optimal import (
    Effort,
    JointTracking,
    KeepOut,
    Mppi,
    Own,
    Problem,
    SphereAvoidance,
    StateLimits,
    TipLimits,
)
from linkwise.optimal.path_integral.mppi import BLOCK
from linkwise.optimal.path_integral.sampling import PENALTY, Sampling
from linkwise.optimal.path_integral.weights import exponential
from linkwise.simulate.noise import normal, streams

TARGET = np.array([0.5, -0.4])
LIMITS = np.array([30.0, 8.0])


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def problem(robot):
    tip = robot.pose(TARGET)[:3, 3]
    reach = JointTracking(target=TARGET, weight=20.0, velocity=0.0, velocity_weight=1.0)
    return Problem(
        robot,
        horizon=12,
        step=0.03,
        costs=[reach, Effort(weight=1e-3), SphereAvoidance(center=tip, radius=0.1, margin=0.05, weight=30.0)],
        terminal=[JointTracking(target=TARGET, weight=200.0, velocity=0.0, velocity_weight=20.0)],
        limits=[StateLimits(position=False, velocity=3.0)],
        torque_limits=LIMITS,
    )


@pytest.fixture(scope="module")
def mppi(problem):
    return Mppi(problem, samples=130, temperature=5.0, noise=[1.5, 0.4], hold=2, seed=3)


def reference(mppi, q, qd, u, draw):
    """One improvement, in NumPy alone: the equations of the paper with the same random numbers."""
    problem, robot, h = mppi.problem, mppi.problem.robot, mppi.problem.step
    count, knots = mppi.samples, mppi.knots
    names = streams(mppi.seed, count).T
    spread = (np.arange(count) > 0).astype(float)
    torques = np.empty((count, knots, 2))
    for k in range(knots):
        for j in range(2):
            drawn = normal(list(names), np.full(count, float(draw * knots + k)), float(j))
            torques[:, k, j] = u[k, j] + spread * mppi.noise[j] * drawn
    torques = np.clip(torques, -LIMITS, LIMITS)
    q, v, cost = np.tile(q, (count, 1)), np.tile(qd, (count, 1)), np.zeros(count)
    tip, speed = robot.pose(TARGET)[:3, 3], 3.0

    def beyond(v):
        return 0.5e4 * (np.maximum(v - speed, 0.0) ** 2 + np.maximum(-v - speed, 0.0) ** 2).sum(axis=1)

    for t in range(problem.horizon):
        tau = torques[:, t // mppi.hold]
        near = 0.05 - (np.linalg.norm(robot.pose(q)[:, :3, 3] - tip, axis=1) - 0.15)
        rate = 10.0 * ((q - TARGET) ** 2).sum(axis=1) + 0.5 * (v**2).sum(axis=1)
        rate += 0.5e-3 * (tau**2).sum(axis=1) + 15.0 * np.maximum(near, 0.0) ** 2
        cost += h * rate + beyond(v)
        v = v + h * robot.forward_dynamics(q, v, tau)
        q = q + h * v
    cost += 100.0 * ((q - TARGET) ** 2).sum(axis=1) + 10.0 * (v**2).sum(axis=1) + beyond(v)
    weights = np.exp(-(cost - cost.min()) / mppi.temperature)
    return np.einsum("s,skj->kj", weights, torques) / weights.sum(), cost, weights


def test_a_plan_is_that_of_numpy(mppi):
    q, qd = np.array([0.1, 0.2]), np.array([-0.3, 0.4])
    u = mppi.problem.robot.gravity_torques(q) + np.linspace(3.0, -1.0, 12).reshape(6, 2) * [1.0, 0.2]
    found = mppi.plan(q, qd, u, draw=4)
    expected, costs, weights = reference(mppi, q, qd, u, 4)
    assert mppi.samples == 3 * BLOCK
    np.testing.assert_allclose(found.u, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([found.cost_before, found.least], [costs[0], costs.min()], rtol=1e-11)
    _, own, _ = reference(mppi, q, qd, found.u, 4)
    np.testing.assert_allclose(found.cost, own[0], rtol=1e-9)  # the first sample has no noise
    assert found.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-8)
    assert 1.5 < found.effective < 100  # several samples count: the mean is tested, not one sample


def test_same_bits_on_any_number_of_threads(mppi):
    q, qd = np.array([0.1, 0.2]), np.zeros(2)
    one, two = (mppi.plan(q, qd, draw=1, iterations=2, threads=count) for count in (1, 2))
    assert one.u.tobytes() == two.u.tobytes()
    assert mppi.plan(q, qd, draw=2).u.tobytes() != mppi.plan(q, qd, draw=1).u.tobytes()


def test_float32_is_near(mppi, problem):
    single = Mppi(problem, samples=130, temperature=5.0, noise=[1.5, 0.4], hold=2, seed=3, dtype="float32")
    q, qd = np.array([0.1, 0.2]), np.zeros(2)
    found = single.plan(q, qd)
    assert found.cost_before == pytest.approx(mppi.plan(q, qd).cost_before, rel=1e-4)
    assert (np.abs(found.u) <= LIMITS).all()
    narrow = single.plan(q.astype(np.float32), qd.astype(np.float32))
    assert narrow.u.tobytes() == single.plan(q.astype(np.float32).astype(float), qd).u.tobytes()
    first = single._first(np.float32([0.1, 0.2]))
    np.testing.assert_array_equal(first, single._first(np.float64(np.float32([0.1, 0.2]))))


def test_torques_are_always_within_their_limits(mppi, problem):
    wild = Mppi(problem, samples=64, temperature=1e3, noise=100.0, seed=1)
    found = wild.plan(np.zeros(2), np.zeros(2), np.full(2, 1e6))
    assert (np.abs(found.u) <= LIMITS).all()
    closer = mppi.plan(
        np.zeros(2), np.zeros(2), values={"torque.lower": [-1.0, -0.5], "torque.upper": [0.5, 2.0]}
    )
    assert (closer.u >= [-1.0, -0.5]).all()
    assert (closer.u <= [0.5, 2.0]).all()


def test_a_state_that_is_no_number_keeps_the_plan(mppi):
    u = np.full((6, 2), 1.5)
    found = mppi.plan(np.array([np.nan, 0.0]), np.zeros(2), u)
    assert found.failed
    assert np.isinf(found.least)
    np.testing.assert_array_equal(found.u, u)
    assert not mppi.plan(np.zeros(2), np.zeros(2), u).failed


def test_targets_are_run_time_parameters(mppi):
    q, qd = np.zeros(2), np.zeros(2)
    values = {"joints.target": -TARGET}
    other = mppi.plan(q, qd, values=values, iterations=6).u
    same = mppi.plan(q, qd, iterations=6).u
    assert mppi.plan(q, qd, other, values=values).cost < mppi.plan(q, qd, same, values=values).cost
    assert mppi.plan(q, qd, same).cost < mppi.plan(q, qd, other).cost


def test_shifting_interpolates_and_keeps_the_last_torque(mppi):
    u = np.random.default_rng(1).normal(size=(6, 2))
    knot = mppi.hold * mppi.problem.step
    for knots in (0.0, 0.2, 0.5, 0.8, 1.0, 2.7, 4.9, 5.0, 5.3, 1e3):
        expected = [np.interp(np.arange(6) + knots, np.arange(6), column) for column in u.T]
        np.testing.assert_allclose(mppi.shifted(u, knots * knot), np.transpose(expected), atol=1e-12)


def test_noise_by_default_moves_joints_as_far_as_promised(problem):
    """White accelerations for a knot each, through a double integrator: a deviation of ``SPREAD`` at the end of the
    horizon, less where torques are limited."""
    from linkwise.optimal.path_integral.mppi import SPREAD

    free = Problem(problem.robot, horizon=12, step=0.03, costs=[Effort(weight=1.0)])
    for hold in (1, 2, 4):
        inertias = np.diag(problem.robot.mass_matrix(problem.robot.neutral))
        accelerations = Mppi(free, samples=64, hold=hold).noise / inertias
        knot, horizon = hold * 0.03, 12 * 0.03
        left = horizon - (np.arange(12 // hold) + 0.5) * knot  # from the middle of a knot to the end
        np.testing.assert_allclose(accelerations * np.sqrt(((knot * left) ** 2).sum()), SPREAD, rtol=0.02)


def test_the_cost_is_near_the_optimum(robot):
    """A reach: the plan is less than one per cent worse than that of the solver with derivatives, and never better."""
    goal = JointTracking(target=TARGET, weight=5.0, velocity=0.0, velocity_weight=1.0)
    start = ([0.0, 0.0], [0.0, 0.0])
    problem = Problem(
        robot.with_gravity((0, 0, 0)), horizon=5, step=0.08, start=start, costs=[goal, Effort(weight=1e-2)],
        terminal=[goal], torque_limits=LIMITS,
    )  # fmt: skip
    best = lw.optimal.solve(problem)
    assert best.converged
    plan = Mppi(problem, samples=512, temperature=0.05, noise=[1.0, 0.3], seed=2).plan(*start, iterations=100)
    finer = Mppi(problem, samples=512, temperature=0.005, noise=[0.3, 0.09], seed=3)
    plan = finer.plan(*start, plan.u, iterations=100)
    assert best.cost - 1e-9 <= plan.cost < 1.01 * best.cost


def test_a_users_own_cost_decides_the_code(robot):
    def key(scale):
        own = Own(lambda q, qd, tau: scale * (q @ q), name="own")
        return Mppi(robot, horizon=4, step=0.01, costs=[own], torque_limits=9.0).kernels.key

    assert key(2.0) == key(2.0)
    assert key(2.0) != key(1.0)


def test_limits_beside_a_users_own_cost_decide_the_code(robot):
    """Spheres on other links, a limit of another frame: costs of a motion are those of the problem itself."""
    own = Own(lambda q, qd, tau: q @ q, name="own")
    places = [[(link, (0.1, 0.0, 0.0), 0.1)] for link in robot.link_names[1:]]
    limits = [KeepOut(robot.pose(robot.neutral)[:3, 3], 0.3, on=on) for on in places]
    limits += [TipLimits(upper=0.0, frame=frame) for frame in robot.link_names[-2:]]
    problems = [Problem(robot, horizon=4, step=0.01, costs=[own], limits=[limit]) for limit in limits]
    x, found = np.concatenate([robot.neutral + 0.1, np.zeros(robot.dof)]), []
    for problem in problems:
        sampling, p = Sampling(problem, "float64"), problem.p[-1]
        found.append(float(sampling.ending(x, [0.0], p)[0]))
        expected = problem.terminal_cost(x.tolist(), p.tolist())
        expected += (
            0.5 * PENALTY * sum(max(0.0, g) ** 2 for g in problem.stage_limits(x.tolist(), p.tolist()))
        )
        assert found[-1] == pytest.approx(expected)
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hold": 5}, "hold: expected a divisor of the horizon 12"),
        ({"temperature": 0.0}, "temperature"),
        ({"noise": [1.0, -1.0]}, "noise"),
        ({"dtype": "float16"}, "dtype"),
        ({"samples": 1}, "samples"),
        ({"horizon": 5}, "problem: expected a Problem"),
    ],
)
def test_bad_options_are_refused(problem, options, words):
    with pytest.raises(lw.LinkwiseError, match=words):
        Mppi(problem, **options)


def test_bad_plans_are_refused(mppi):
    with pytest.raises(lw.ShapeError, match=r"u: expected shape \(6, 2\)"):
        mppi.plan(np.zeros(2), np.zeros(2), np.zeros((5, 2)))
    with pytest.raises(lw.LinkwiseError, match="finite torques"):
        mppi.plan(np.zeros(2), np.zeros(2), np.full(2, np.nan))
    with pytest.raises(lw.ShapeError, match="q: expected shape"):
        mppi.plan(np.zeros((3, 2)), np.zeros(2))


def test_bad_times_and_plans_are_not_shifted(mppi):
    """A negative time took torques from the end of the plan."""
    for time in (-0.05, np.nan, np.inf):
        with pytest.raises(lw.LinkwiseError, match="time: expected"):
            mppi.shifted(np.zeros((6, 2)), time)
    with pytest.raises(lw.ShapeError, match=r"u: expected shape \(6, 2\), got \(5, 2\)"):
        mppi.shifted(np.zeros((5, 2)), 0.01)


def test_weights():
    x = np.array([0.0, 1e-9, 0.3, 5.0, 79.9, 80.1, np.inf, np.nan])
    expected = np.where(x <= 80.0, np.exp(-np.where(np.isfinite(x), x, 0.0)), 0.0)
    np.testing.assert_allclose(exponential(x), expected, rtol=1e-12, atol=0)
