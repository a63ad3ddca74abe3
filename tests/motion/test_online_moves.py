"""Online moves: limits kept, targets met, no shorter duration, from states within and beyond the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.compiler.ir import interpret
from linkwise.motion.online import kernels
from linkwise.motion.online.extremes import Task
from linkwise.motion.online.scalars import earliest


def random_tasks(count: int, joints: int, seed: int, *, beyond: float = 1.0, spread: float = 1.0) -> dict:
    """States, targets and limits; ``beyond``: how far states are outside the limits, ``spread``: decades of limits."""
    rng = np.random.default_rng(seed)
    shape = (count, joints)

    def limit() -> np.ndarray:
        return 10.0 ** rng.uniform(-spread / 2, spread / 2, shape)

    high_v, low_v, high_a, low_a, jerk = limit(), -limit(), limit(), -limit(), 3.0 * limit()
    af = rng.uniform(low_a, high_a) * (rng.random(shape) < 0.5)
    low = np.where(af > 0, low_v + af**2 / (2 * jerk), low_v)
    high = np.where(af < 0, high_v - af**2 / (2 * jerk), high_v)
    af = np.where(low < high, af, 0.0)
    low, high = np.where(af == 0, low_v, low), np.where(af == 0, high_v, high)
    return {
        "q": rng.normal(size=shape),
        "qd": beyond * rng.uniform(low_v, high_v),
        "qdd": beyond * rng.uniform(low_a, high_a),
        "target": rng.normal(size=shape),
        "target_velocity": np.where(rng.random(shape) < 0.7, rng.uniform(low, high), np.clip(0.0, low, high)),
        "target_acceleration": af,
        "velocity_upper": high_v,
        "velocity_lower": low_v,
        "acceleration_upper": high_a,
        "acceleration_lower": low_a,
        "jerk": jerk,
    }


def largest_speed(tasks: dict) -> np.ndarray:
    """Bound of the speed of every joint, also while it brakes."""
    limit = np.maximum(tasks["velocity_upper"], -tasks["velocity_lower"])
    return limit + np.abs(tasks["qd"]) + tasks["qdd"] ** 2 / tasks["jerk"]


def durations(tasks: dict, shortest: np.ndarray | float = 0.0) -> np.ndarray:
    """Of joints that arrive together, (count,)."""
    shape = tasks["q"].shape
    lanes = [a.reshape(-1, 1) for a in tasks.values()]
    T = np.broadcast_to(np.asarray(shortest, float), shape[:1])
    for _ in range(40):
        new = (
            kernels.earliest_kernel()(*lanes, np.repeat(T, shape[1])[:, np.newaxis])
            .reshape(shape)
            .max(axis=1)
        )
        if np.array_equal(new, T):
            return T
        T = new
    raise AssertionError("durations do not settle")


def plan_of(tasks: dict, T: np.ndarray) -> motion.OnlinePlan:
    shape = tasks["q"].shape
    lanes = [a.reshape(-1, 1) for a in tasks.values()]
    durations, jerks, weight, fault = kernels.plan_kernel()(*lanes, np.repeat(T, shape[1])[:, np.newaxis])
    start = (tasks["q"], tasks["qd"], tasks["qdd"])
    tracks = (*shape, 2, 10)
    times = np.broadcast_to(T[:, np.newaxis], shape)
    return motion.OnlinePlan(
        times,
        start,
        durations.reshape(tracks),
        jerks.reshape(tracks),
        weight.reshape(shape),
        fault.reshape(shape) > 0,
    )


@pytest.mark.parametrize(("joints", "beyond", "spread"), [(1, 0.7, 1.0), (3, 1.6, 1.0), (2, 1.3, 5.0)])
def test_targets_are_met_and_limits_kept(joints: int, beyond: float, spread: float):
    tasks = random_tasks(2000, joints, joints, beyond=beyond, spread=spread)
    T = durations(tasks)
    plan = plan_of(tasks, T)
    assert np.isfinite(T).all()
    assert not plan.fault.any()
    q, qd, qdd = plan.at(T)
    path = plan.at(np.linspace(0.0, 1.0, 101)[:, np.newaxis] * T)
    size, speed = np.abs(path.q).max(axis=0), largest_speed(tasks)
    assert (np.abs(q - tasks["target"]) <= 1e-12 * (size + speed * T[:, np.newaxis])).all()
    top_a = np.maximum(tasks["acceleration_upper"], -tasks["acceleration_lower"]) + np.abs(tasks["qdd"])
    late = 1e-15 * T[:, np.newaxis]  # rounding of times
    assert (np.abs(qd - tasks["target_velocity"]) <= 1e-11 * speed + late * top_a).all()
    assert (np.abs(qdd - tasks["target_acceleration"]) <= 1e-11 * top_a + late * tasks["jerk"]).all()
    braked = plan.durations[..., 0, :3].sum(axis=-1).max(axis=1)
    for share in np.linspace(0.0, 1.0, 41):
        q, qd, qdd = plan.at(braked + share * (T - braked))
        slack_v, slack_a = 1e-11 * speed + late * top_a, 1e-11 * top_a + late * tasks["jerk"]
        assert (qd <= tasks["velocity_upper"] + slack_v).all()
        assert (qd >= tasks["velocity_lower"] - slack_v).all()
        assert (qdd <= tasks["acceleration_upper"] + slack_a).all()
        assert (qdd >= tasks["acceleration_lower"] - slack_a).all()
    mixed = np.abs(plan.jerks).max(axis=(-1, -2))
    assert (mixed <= tasks["jerk"] * (1 + 1e-15)).all()


def test_velocity_and_acceleration_are_continuous_integrals_of_the_jerk():
    tasks = random_tasks(50, 2, 5, beyond=1.4)
    T = durations(tasks)
    plan = plan_of(tasks, T)
    step = 1e-6
    for share in (0.1, 0.37, 0.8):
        a, b = plan.at(share * T), plan.at(share * T + step)
        assert np.abs(b.q - a.q - step * a.qd).max() < 1e-9
        assert np.abs(b.qd - a.qd - step * a.qdd).max() < 1e-8
        assert (np.abs(b.qdd - a.qdd) <= 1.001 * step * tasks["jerk"] + 1e-12).all()


def test_a_plan_says_whether_its_duration_is_possible():
    """Joints arrive together without a second look at their durations: a plan for an impossible one is a fault."""
    tasks = random_tasks(3000, 1, 7, beyond=1.3)
    lanes, T = list(tasks.values()), durations(tasks)
    share = np.random.default_rng(0).uniform(0.0, 3.0, T.shape)
    t = (share * T)[:, np.newaxis]
    following = kernels.earliest_kernel()(*lanes, t)
    impossible = following > t[:, 0] * (1 + 1e-6)
    later = impossible & (share > 1.0)
    assert later.sum() > 5  # in an interval of impossible durations after possible ones
    fault = kernels.plan_kernel()(*lanes, t)[3] > 0
    assert np.array_equal(fault, impossible)


def test_joints_that_arrive_together_have_a_duration_that_all_of_them_can_have():
    tasks = random_tasks(400, 3, 3)
    online = motion.Online(1.0, 2.0, 10.0, dof=3)
    inside = {name: np.clip(tasks[name], -0.9, 0.9) for name in ("qd", "qdd", "target_velocity")}
    plan = online.plan(
        tasks["q"], inside["qd"], inside["qdd"], target=tasks["target"], velocity=inside["target_velocity"]
    )
    ones = np.ones((400, 3))
    limits = (ones, -ones, 2.0 * ones, -2.0 * ones, 10.0 * ones)
    state = (tasks["q"], inside["qd"], inside["qdd"], tasks["target"], inside["target_velocity"], 0.0 * ones)
    names = list(tasks)
    assert not plan.fault.any()
    slowest = durations(dict(zip(names, (*state, *limits), strict=True)))
    assert np.allclose(plan.duration, slowest[:, np.newaxis], rtol=1e-12)


def test_no_shorter_duration_is_possible():
    """The set of durations is searched on a grid, by the definition: the target is between nearest and furthest."""
    from linkwise.motion.online.earliest import Earliest

    tasks = random_tasks(1500, 1, 11, beyond=0.5)
    rows = [a[:, 0] for a in tasks.values()]
    q, v, a, qf, vf, af, *limits = rows
    turn = a * np.abs(a) / (2 * limits[4])  # only states that need no braking
    good = (v + turn < limits[0]) & (v + turn > limits[1])
    T = durations(tasks)
    task = Task(*(x[good] for x in (qf - q, np.abs(q) + np.abs(qf), v, a, vf, af, *limits)))
    with np.errstate(all="ignore"):
        times = Earliest(task)
        for share in np.linspace(0.01, 0.999, 60):
            t = share * T[good]
            short, beyond = times.off(t)
            reachable = (times.past_gaps(t) == t) & (t >= times.first) & (short <= 0) & (beyond <= 0)
            assert not reachable.any()


def test_a_longer_duration_is_kept_or_the_next_possible_one():
    tasks = random_tasks(800, 2, 3, beyond=0.6)
    shortest = durations(tasks)
    for factor in (1.0, 1.01, 1.2, 2.0, 10.0):
        T = durations(tasks, factor * shortest)
        assert (factor * shortest <= T).all()
        assert not plan_of(tasks, T).fault.any()
        if factor >= 10.0:
            assert np.mean(factor * shortest == T) > 0.9


def test_a_new_plan_from_a_state_of_a_plan_ends_at_the_same_time():
    tasks = random_tasks(500, 1, 8, beyond=0.5)
    T = durations(tasks)
    for share in (0.2, 0.5, 0.8):
        state = plan_of(tasks, T).at(share * T)
        again = durations({**tasks, "q": state.q, "qd": state.qd, "qdd": state.qdd})
        assert np.quantile(np.abs(share * T + again - T), 0.99) < 1e-6 * T.max()
        assert (share * T + again <= T * (1 + 1e-3) + 1e-3).all()


def test_python_interpreter_and_kernel_have_the_same_bits():
    tasks = random_tasks(12, 1, 21, beyond=1.3)
    kernel = kernels.earliest_kernel()
    rows = {name: values[:, 0] for name, values in tasks.items()}
    expected = kernel(*(a[:, np.newaxis] for a in rows.values()), np.zeros((12, 1)))
    for k in range(12):
        given = {name: [float(values[k])] for name, values in rows.items()} | {"shortest": [0.0]}
        (value,) = interpret.run(kernel.program("float64"), *given.values())
        assert np.ravel(value)[0] == expected[k]
        q, v, a, qf, vf, af, *limits = (float(values[k]) for values in rows.values())
        number = earliest(
            Task(qf - q, abs(qf) + abs(q), v, a, vf, af, *limits), 0.0
        )  # plain floats, without fma
        assert abs(number - expected[k]) <= 1e-9 * expected[k]
        one = kernel(*(np.array([values[k]]) for values in rows.values()), np.zeros(1))
        assert one == expected[k]


def test_numbers_that_are_no_task_give_a_fault_and_no_other():
    tasks = random_tasks(200, 1, 2, beyond=0.5)
    wrong = [np.nan, np.inf, -np.inf]
    for name in tasks:
        broken = dict(tasks)
        bad = [*wrong, 0.0, -1.0] if name in ("velocity_upper", "acceleration_upper", "jerk") else wrong
        bad = [*wrong, 0.0, 1.0] if name.endswith("lower") else bad
        for k, number in enumerate(bad):
            broken[name] = broken[name].copy()
            broken[name][k] = number
        lanes = [a.reshape(-1, 1) for a in broken.values()]
        T = kernels.earliest_kernel()(*lanes, np.zeros((200, 1)))
        *_, fault = kernels.plan_kernel()(*lanes, T[:, np.newaxis])
        clean = [a.reshape(-1, 1) for a in tasks.values()]
        assert fault[: len(bad)].all(), name
        assert not fault[len(bad) :].any()
        assert np.array_equal(
            T[len(bad) :], kernels.earliest_kernel()(*clean, np.zeros((200, 1)))[len(bad) :]
        )


def test_extreme_numbers_end_and_are_right_or_refused():
    rng = np.random.default_rng(0)
    tasks = {name: a * 10.0 ** rng.uniform(-9, 9, a.shape) for name, a in random_tasks(2000, 1, 4).items()}
    lanes = [a.reshape(-1, 1) for a in tasks.values()]
    T = kernels.earliest_kernel()(*lanes, np.zeros((2000, 1)))
    durations, jerks, weight, fault = kernels.plan_kernel()(*lanes, T[:, np.newaxis])
    good = fault == 0
    assert good.sum() > 200
    state = kernels.state_kernel()(T[:, np.newaxis], *lanes[:3], durations, jerks, weight[:, np.newaxis])
    times = np.linspace(0.0, 1.0, 201)[:, np.newaxis] * T
    path = kernels.state_kernel()(times[..., np.newaxis], *lanes[:3], durations, jerks, weight[:, np.newaxis])
    size = np.abs(path[0]).max(axis=0) + T * largest_speed(tasks)[:, 0]
    off = np.abs(state[0] - tasks["target"][:, 0]) / size
    tame = good & (T < 1e9)
    assert tame.sum() > 200
    assert off[tame].max() < 1e-9


def test_a_velocity_limit_of_zero_is_none():
    chain = lw.planar_chain(2)
    joints = [replace(joint, limits=lw.Limits(velocity=0.0)) for joint in chain.joints if joint.moves]
    with pytest.raises(ValueError, match="no limit of velocity for joint1, joint2"):
        motion.Online.of(lw.Robot("slow", chain.links[:3], joints), 1.0, 1.0)


def test_moves_of_a_robot():
    robot = lw.load("panda")
    online = motion.Online.of(robot, acceleration=10.0, jerk=100.0)
    rng = np.random.default_rng(0)
    q, goal = robot.random(rng)[: robot.dof], robot.random(rng)[: robot.dof]
    move = online.move(q, target=goal)
    assert np.abs(move.at(move.end).q - goal).max() < 1e-12
    assert not motion.check(move, robot)  # positions and velocities
    slow = online.move(q, target=goal, duration=10.0)
    assert slow.duration == 10.0
    apart = motion.Online.of(robot, acceleration=10.0, jerk=100.0, together=False).plan(q, target=goal)
    assert apart.duration.max() == move.duration
    assert (apart.duration < move.duration).any()
    rest = online.move(q, target=q)
    assert rest.duration == 0.0
    assert np.array_equal(rest.at(0.0).q, q)
    fast = online.move(q, target=goal, velocity=0.5)
    assert np.abs(fast.at(fast.end).qd - 0.5).max() < 1e-12


def test_a_rest_to_rest_move_is_as_fast_as_the_profile():
    rng = np.random.default_rng(3)
    for _ in range(50):
        limits = 10.0 ** rng.uniform(-1, 1, 3)
        way = rng.normal()
        profile = motion.jerk_limited(
            [0.0], [way], velocity=limits[0], acceleration=limits[1], jerk=limits[2]
        )
        assert motion.Online(*limits).move([0.0], target=[way]).duration == pytest.approx(
            profile.duration, rel=1e-12
        )


def test_motion_through_points_passes_them_and_does_not_stop():
    rng = np.random.default_rng(1)
    online = motion.Online([2.0, 1.0, 3.0], 6.0, 60.0)
    points = rng.normal(size=(6, 3))
    path = online.through(points, blend=0.05, q=np.zeros(3))
    t = np.linspace(0.0, path.end, 40001)
    q, qd, qdd = path.at(t)
    for point in points[:-1]:
        assert np.abs(q - point).max(axis=1).min() <= 0.05 + 1e-3
    assert np.abs(q[-1] - points[-1]).max() < 1e-10
    for left, point in zip(
        path.times[1:-1], points[:-1], strict=True
    ):  # a point is left as soon as it is near
        assert np.abs(path.at(left).q - point).max() == pytest.approx(0.05, abs=1e-9)
    assert (np.abs(qd) <= online.limits[0] + 1e-9).all()
    assert (np.abs(qdd) <= 6.0 + 1e-9).all()
    assert (np.abs(np.diff(qdd, axis=0)) <= 60.0 * np.diff(t)[:, np.newaxis] + 1e-9).all()
    inside = (t > 0.05) & (t < path.end - 0.05)
    assert np.abs(qd[inside]).max(axis=1).min() > 1e-3
    stops = sum(
        online.move(a, target=b).duration for a, b in zip([np.zeros(3), *points[:-1]], points, strict=True)
    )
    assert path.end < stops


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="jerk: expected positive"):
        motion.Online(1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="lowest_velocity: expected negative"):
        motion.Online(1.0, 1.0, 1.0, lowest_velocity=0.5)
    online = motion.Online(1.0, 2.0, 3.0, dof=2)
    with pytest.raises(ValueError, match="target"):
        online.move([0.0, 0.0], target=[0.0, np.nan])
    with pytest.raises(motion.OnlineMoveError, match="joint 2"):
        online.move([0.0, 0.0], target=[1.0, 1.0], velocity=[0.0, 1.5])
    with pytest.raises(ValueError, match="points"):
        online.through([1.0, 2.0], blend=0.1, q=[0.0, 0.0])
    with pytest.raises(ValueError, match="broadcast"):
        online.plan(np.zeros((4, 3)), target=np.zeros((4, 3)))
