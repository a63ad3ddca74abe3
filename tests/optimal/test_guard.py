"""The rules between a plan and the motors, one sample at a time, over all bundled robots and random states."""

import numpy as np

import linkwise as lw
from linkwise.optimal import Predictive, reaching
from linkwise.optimal.predictive.braking import BRAKING_SHARE, SLACK, SPEED_SHARE, stop_rate
from linkwise.optimal.predictive.guard import AS_PLANNED, BRAKED, LIMITED, Bounds, Guard, finite_torques
from linkwise.optimal.predictive.watching import Memory
from linkwise.simulate.loop import step_kernel

COUNT = 400
SPEED = 2.0  # rad/s or m/s
PERIOD = 5e-3
TEN = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
ACTIONS = {AS_PLANNED, LIMITED, BRAKED}


class Samples:
    """Random states within the limits, torques of plans up to twice their limits, and what the guard makes of them."""

    def __init__(self, robot, stop=0.0):
        rng = np.random.default_rng(7)
        n = robot.dof
        holding = np.abs(robot.gravity_torques(rng.uniform(-3, 3, (200, n)))).max(axis=0)
        problem = reaching(robot, horizon=2, friction=False, torque_limits=1.5 * holding + 5.0)
        self.numbers = Bounds.of(robot, velocity=SPEED).numbers()
        lowest, highest = np.maximum(self.numbers["lowest"], -3.0), np.minimum(self.numbers["highest"], 3.0)
        self.low, self.high = finite_torques(problem.torque_lower), finite_torques(problem.torque_upper)
        self.q = lowest + (highest - lowest) * rng.uniform(0.0, 1.0, (COUNT, n))
        self.qd = SPEED * rng.uniform(-1.0, 1.0, (COUNT, n)) * rng.uniform(0.0, 1.0, (COUNT, 1)) ** 2
        self.torque = self.high * rng.uniform(-2.0, 2.0, (COUNT, n))
        self.torque[::10] = rng.choice([np.nan, np.inf, -np.inf], self.torque[::10].shape)
        state = np.concatenate([self.q, self.qd], axis=1)
        self.tau, self.acceleration, action = Guard(problem.dynamics, robot).command(
            state, state, self.torque, np.zeros(n), np.full(1, stop), np.full(1, PERIOD),
            self.low, self.high, *(self.numbers[name] for name in ("lowest", "highest", "speed")),
        )  # fmt: skip
        self.action = action[:, 0]
        self.caused = robot.forward_dynamics(self.q, self.qd, self.tau, friction=False)


def test_torques_are_finite_and_within_their_limits_and_their_effect_is_known():
    for name in lw.robots():
        samples = Samples(lw.load(name))
        assert ((samples.low <= samples.tau) & (samples.tau <= samples.high)).all(), name
        assert set(samples.action) <= ACTIONS
        size = np.abs(samples.caused).max()
        np.testing.assert_allclose(samples.acceleration, samples.caused, atol=1e-9 * size, err_msg=name)


def test_one_sample_later_joints_are_slow_enough_and_can_stop_before_the_end_of_their_range():
    """Where the arm is not braked; no joint that is faster than that already gets faster."""
    kept = 0
    for name in lw.robots():
        robot = lw.load(name)
        samples = Samples(robot)
        free = samples.action != BRAKED
        after = samples.qd + PERIOD * samples.caused
        bias = robot.inverse_dynamics(samples.q, samples.qd, np.zeros_like(samples.q), friction=False)
        left = np.maximum(np.minimum(samples.high - bias, bias - samples.low), 0.0)
        brake = BRAKING_SHARE * left / np.diagonal(robot.mass_matrix(samples.q), axis1=-2, axis2=-1)
        for sign, end in ((1.0, samples.numbers["highest"]), (-1.0, samples.numbers["lowest"])):
            v, before, distance = sign * after, sign * samples.qd, sign * (end - samples.q)
            slack = SLACK * SPEED + 1e-9
            slow = (v <= SPEED_SHARE * SPEED + slack) | (v <= before + slack)
            w = np.maximum(v - slack, 0.0)  # d = w h + w²/2b is enough to stop
            stops = (w * PERIOD * brake + 0.5 * w * w <= distance * brake + 1e-9) | (v <= before + slack)
            assert slow[free].all(), name
            assert stops[free].all(), name
        kept += int((samples.action == LIMITED).sum())
        within = samples.action == AS_PLANNED
        given = np.nan_to_num(samples.torque, posinf=0.0, neginf=0.0)
        assert (samples.tau[within] == np.clip(given, samples.low, samples.high)[within]).all(), name
    assert kept > 100  # in which torques were changed


def test_the_stop_makes_every_joint_slower():
    """At one rate, or faster where the end of a range is near, wherever the motors can hold the arm as it moves."""
    tried = 0
    for name in lw.robots():
        robot = lw.load(name)
        samples = Samples(robot, stop=1.0)
        assert (samples.action == BRAKED).all()
        bias = robot.inverse_dynamics(samples.q, samples.qd, np.zeros_like(samples.q), friction=False)
        lowest, highest = samples.numbers["lowest"], samples.numbers["highest"]
        # slow enough, and farther away than a second of its speed
        room = np.where(samples.qd > 0.0, highest - samples.q, samples.q - lowest)
        inside = ((room > np.abs(samples.qd)) & (np.abs(samples.qd) < SPEED_SHARE * SPEED)).all(axis=1)
        can = ((0.8 * samples.low < bias) & (bias < 0.8 * samples.high)).all(axis=1)
        rates = -samples.caused / samples.qd
        slower = (rates > -1e-6).all(axis=1)[can & inside]
        assert slower.mean() > 0.99, name  # where motors are nearly at their limits the range comes first
        even = np.ptp(rates, axis=1) < 1e-5 * rates.max(axis=1)
        assert even[can & inside].mean() > 0.5, name
        tried += int((can & inside).sum())
    assert tried > 1000


def test_full_torque_in_any_direction_does_not_lead_out_of_the_range():
    """Bang-bang torques, one end, and random ones; masses of 70, 100 and 130 %, estimated as in the controller."""
    for name in ("iiwa14", "panda", "puma560", "stanford", "two_link", "ur10e"):
        robot, rng, count = lw.load(name), np.random.default_rng(5), 18
        n, speed = robot.dof, np.minimum(robot.velocity_limits, 3.0)
        numbers = Bounds.of(robot, velocity=speed).numbers()
        low, high = np.maximum(numbers["lowest"], -3.0), np.minimum(numbers["highest"], 3.0)
        torque = strong_enough(robot, low, high, speed)
        guard = Guard(reaching(robot, horizon=2, torque_limits=torque).dynamics, robot)
        values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
        for mass in (0.7, 1.0, 1.3):
            plant = step_kernel(
                robot.with_parameters(
                    {key: mass * value for key, value in values.items() if key.rpartition(".")[2] in TEN}
                )
            )
            q, qd = low + (high - low) * rng.uniform(0.1, 0.9, (count, n)), np.zeros((count, n))
            memory, caused = np.zeros((count, Memory(n).size)), np.zeros((count, n))
            signs = rng.choice([-1.0, 1.0], (count, n))
            for k in range(300):
                turns = rng.random((count, n)) < np.where(np.arange(count) % 3 == 0, 0.02, 0.0)[:, np.newaxis]
                signs = np.where(turns, -signs, signs)
                signs[2::3] = rng.uniform(-1.0, 1.0, signs[2::3].shape)
                state = np.concatenate([q, qd], axis=1)
                _, _, missed, _, memory = guard.watch(
                    q, qd, caused, np.full(1, PERIOD * (k > 0)), numbers["speed"], memory
                )
                tau, caused, _ = guard.command(
                    state, state, signs * torque, missed, np.zeros(1), np.full(1, PERIOD), -torque, torque,
                    *(numbers[each] for each in ("lowest", "highest", "speed")),
                )  # fmt: skip
                for _ in range(4):
                    q, qd = plant(q, qd, tau, np.full(1, 0.25 * PERIOD))
                beyond = np.maximum(q - numbers["highest"], numbers["lowest"] - q).max()
                most = 0.01 if mass == 1.0 else 0.03
                assert beyond < most, (name, mass, k)
                assert (np.abs(qd) <= (1.05 if mass == 1.0 else 1.25) * speed).all(), (name, mass, k)


def strong_enough(robot, low, high, speed):
    """Torques of motors that can hold the arm and move it."""
    rng = np.random.default_rng(1)
    q = low + (high - low) * rng.random((300, robot.dof))
    qd, qdd = speed * rng.uniform(-1, 1, q.shape), rng.uniform(-30, 30, q.shape)
    holding = np.abs(robot.gravity_torques(q)).max(axis=0)
    moving = 2.0 * holding + np.abs(robot.inverse_dynamics(q, qd, qdd)).max(axis=0)
    return np.where(np.isfinite(robot.effort_limits), np.maximum(robot.effort_limits, 2.0 * holding), moving)


def test_joints_move_as_under_the_critically_damped_law():
    """Of all joints, without gravity within 3 % of a step; with it, its change on the way may cost a quarter."""
    frequency, period = 10.0, 4e-3
    cases = [
        ("iiwa14", [0.3, 0.9, -0.2, -1.2, 0.4, 0.8, 0.0], -9.81, 0.25),
        ("iiwa14", [0.3, 0.9, -0.2, -1.2, 0.4, 0.8, 0.0], 0.0, 0.03),
        ("stanford", [0.3, 0.9, 0.4, -1.2, 0.4, 0.8], 0.0, 0.03),
    ]
    for name, q, gravity, most in cases:
        robot = lw.load(name).with_gravity((0.0, 0.0, gravity))
        law, step = Predictive(robot, frequency=frequency, friction=False), step_kernel(robot)
        away = 0.02 * np.where(np.arange(robot.dof) % 2, 1.0, -1.0)
        target, x, v = np.array(q) + away, np.array(q), np.zeros(robot.dof)
        law.aim({"joints.target": target})
        for k in range(125):
            expected = (1.0 + frequency * k * period) * np.exp(-frequency * k * period)
            assert np.abs((target - x) / away - expected).max() < most, name
            tau = law(k * period, x, v)
            for _ in range(2):
                x, v = step(x, v, tau, np.array([0.5 * period]))


def test_the_stop_is_the_fastest_that_the_torques_allow():
    """q̈ = −k q̇ needs bias − k M q̇: within all limits, and at one of them unless the period alone decides."""
    rng, decided = np.random.default_rng(9), 0
    for _ in range(200):
        n = int(rng.integers(1, 7))
        half, v = rng.normal(size=(n, n)), rng.normal(size=n)
        M, most = half @ half.T + 0.1 * np.eye(n), rng.uniform(0.5, 20.0, n)
        bias = rng.uniform(-0.9, 0.9, n) * most
        given = M.tolist(), bias.tolist(), v.tolist()
        k, fastest = (
            float(stop_rate(*given, (-size * most).tolist(), (size * most).tolist(), 1e-3, range(n)))
            for size in (1.0, 1e9)
        )
        room = most - np.abs(bias - k * (M @ v))
        assert k > 0.0
        assert room.min() > -1e-9
        assert k <= fastest
        decided += room.min() < 1e-9
        assert room.min() < 1e-9 or k == fastest
    assert decided > 50


def test_joints_without_limits_have_none():
    numbers = Bounds.of(lw.load("ur10e"), position=False, velocity=False).numbers()
    assert (numbers["lowest"] < -1e6).all()
    assert (numbers["highest"] > 1e6).all()
    assert all(np.isfinite(each).all() for each in numbers.values())


def test_the_distance_to_a_target_is_that_to_what_can_be_reached_of_it():
    """Of targets beyond the range the end of the range counts; the joint that is furthest away decides."""
    rng = np.random.default_rng(0)
    for name in ("panda", "two_link", "stanford"):
        robot = lw.load(name)
        n, guard = robot.dof, Guard(reaching(robot, horizon=2).dynamics, robot)
        low, high = -rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, n)
        for _ in range(20):
            q, qd, target = (3.0 * rng.normal(size=n) for _ in range(3))
            given = {"believed": [*q, *qd], "period": [0.01], "speed": np.full(n, 2.0), "target": target}
            given |= {"lowest": low, "highest": high, "memory": np.zeros(4)}
            verdict, _ = guard.progress(*(np.array(given[key], float) for key, _ in guard.progress.inputs))
            assert np.isclose(verdict[2], np.abs(np.clip(target, low, high) - q).max())
