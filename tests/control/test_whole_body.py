"""Whole-body control: optimal by an independent check of the full problem, limits kept, levels strict, the same in a
kernel."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import linkwise as lw
from linkwise import control
from linkwise.control.whole_body.limits import largest_acceleration, position_of_velocity
from linkwise.control.whole_body.mobilities import Halves, support_rows
from linkwise.control.whole_body.tasks import State, quaternion_of, turn_error
from linkwise.model.joint import Mimic

ROUND_OFF = 1e-7
BONE = ((0.0, 0.0, 0.0), (0.0, 0.0, -0.1))


def legged(seed, legs=2, joints=2, base="floating"):
    """A random body on legs with random axes; feet are points."""
    rng = np.random.default_rng(seed)
    links = [lw.Link("body", lw.Inertia.from_com(6.0, (0.01, 0.0, 0.02), (0.1, 0.15, 0.2)))]
    bones, frames = [], []
    for leg in range(legs):
        parent, at = "body", (0.25 * np.cos(2.1 * leg), 0.25 * np.sin(2.1 * leg), -0.05)
        for k in range(joints):
            name = f"leg{leg}_{k}"
            axis = rng.normal(size=3)
            limits = lw.Limits(-2.0, 2.0, velocity=8.0, effort=rng.uniform(20.0, 40.0))
            links.append(lw.Link(name, lw.Inertia.from_com(0.6, (0.0, 0.02, -0.1), (3e-3, 3e-3, 1e-3))))
            place = lw.Transform.from_rpy(at)
            bones.append(
                lw.Joint(name, "revolute", parent, name, place, axis / np.linalg.norm(axis), limits=limits)
            )
            parent, at = name, (0.02, 0.01, -0.2)
        frames.append(lw.Frame(f"foot{leg}", parent, lw.Transform.from_rpy((0.0, 0.03, -0.2))))
    robot = lw.Robot(f"legs{seed}", links, bones, frames=frames)
    return robot.with_base(base) if base != "fixed" else robot


def controller(robot, feet, *, torque=None, levels=(1, 1, 1), iterations=14, **limits):
    tasks = [
        control.CenterOfMassTask(frequency=0.0, level=levels[0]),
        control.PoseTask("body", "turn", weight=0.4, frequency=0.0, level=levels[1]),
        control.PostureTask(weight=0.05, frequency=0.0, level=levels[2]),
        control.ForceTask(weight=1e-3, level=levels[2]),
    ]
    supports = [control.Support(f"foot{k}", friction=0.6, smallest=1.0, largest=300.0) for k in range(feet)]
    chosen = control.MotionLimits(torque=torque, **limits)
    return control.WholeBody(robot, tasks, chosen, supports=supports, iterations=iterations)


def state(law, seed, size=1.0):
    """(q, qd, wanted accelerations as targets)."""
    rng = np.random.default_rng(seed)
    robot = law.robot
    q = robot.integrate(robot.neutral, 0.4 * rng.normal(size=robot.dof))
    targets = np.zeros(law.input_shapes()["targets"])
    for task, parts in zip(law.tasks, law.target_slices(), strict=True):
        if isinstance(task, control.ForceTask):
            targets[parts[0]] = (0.0, 0.0, 20.0)
        else:
            targets[parts[2]] = size * rng.normal(size=parts[2].stop - parts[2].start)
        if isinstance(task, control.PoseTask):
            targets[parts[0].stop - 1] = 1.0
        if task.posture:
            targets[parts[0]] = q
    return q, 0.2 * rng.normal(size=robot.dof), targets


def on_numbers(law, q, qd, targets, stance=None):
    """The sample without a compiler, on plain numbers."""
    given = {"q": q, "qd": qd, "targets": targets, "gains": law.default_gains, "start": law.cold_start}
    given["stance"] = np.ones(len(law.supports)) if stance is None else stance
    arrays = {name: np.array(np.asarray(given[name]).tolist(), object) for name in law.input_shapes()}
    return {name: np.asarray(value, dtype=float) for name, value in law._run(**arrays).items()}


class Full:
    """The problem over accelerations, torques and forces, as other libraries state it, from the robot's own
    functions."""

    def __init__(self, law, q, qd, targets):
        robot, n, a, p = law.robot, law.robot.dof, len(law.motors), law.points
        self.sizes = (n, a, 3 * p)
        S = np.zeros((n, a))
        S[law.motors, range(a)] = 1.0
        J = np.vstack([np.zeros((0, n)), *(robot.jacobian(q, s.frame)[3:] for s in law.supports)])
        bias = np.hstack([np.zeros(0), *(robot.jacobian_rate(q, qd, s.frame)[3:] for s in law.supports)])
        M, h = robot.mass_matrix(q), robot.bias_torques(q, qd)
        axes = np.kron(np.eye(p), law.supports[0].axes()) if p else np.zeros((0, 0))
        J, bias = axes @ J, axes @ bias
        self.E = np.vstack([np.hstack([M, -S, -J.T]), np.hstack([J, np.zeros((3 * p, a + 3 * p))])])
        self.e = np.concatenate([-h, -bias])
        rows, right, weights, levels = [], [], [], []
        for task, parts in zip(law.tasks, law.target_slices(), strict=True):
            if isinstance(task, control.ForceTask):
                A, b = np.hstack([np.zeros((3 * p, n + a)), np.eye(3 * p)]), np.tile(targets[parts[0]], p)
            else:
                A, b = self.motion(robot, task, q, qd, law)
                b = targets[parts[2]][-len(law.motors) :] - b if task.posture else targets[parts[2]] - b
                A = np.hstack([A, np.zeros((len(A), a + 3 * p))])
            rows.append(A), right.append(b), weights.append(np.full(len(b), task.weight))
            levels.append(np.full(len(b), task.level))
        self.A, self.b, self.w, self.level = (np.concatenate(x) for x in (rows, right, weights, levels))
        self.G, self.g = self.limits(law, q, qd, S)

    @staticmethod
    def motion(robot, task, q, qd, law):
        if isinstance(task, control.CenterOfMassTask):
            mass = sum(body.mass for body in robot.bodies())
            return robot.com_jacobian(q), robot.centroidal_bias(q, qd)[3:] / mass
        if isinstance(task, control.PoseTask):
            return robot.jacobian(q, task.frame)[:3], robot.jacobian_rate(q, qd, task.frame)[:3]
        return np.eye(robot.dof)[law.motors], np.zeros(len(law.motors))

    def limits(self, law, q, qd, S):
        n, a, f = self.sizes
        zero = np.zeros((a, f))
        rows = [np.hstack([sign * np.zeros((a, n)), sign * np.eye(a), zero]) for sign in (1.0, -1.0)]
        right = [law.bounds.torque, law.bounds.torque]
        for k, support in enumerate(law.supports):
            C, c = support.pyramid()
            row = np.zeros((len(C), n + a + f))
            row[:, n + a + 3 * k : n + a + 3 * k + 3] = C
            rows.append(row), right.append(c)
        free = law.robot.nq - n
        bounds = [
            law.bounds.accelerations(k, q[law.motors[k] + free], qd[law.motors[k]])
            for k in law.bounds.limited
        ]
        moving = np.hstack([S.T, np.zeros((a, a + f))])[list(law.bounds.limited)]
        if bounds:
            rows += [moving, -moving]
            right += [np.array([high for _, high in bounds]), -np.array([low for low, _ in bounds])]
        return np.vstack(rows), np.concatenate(right)

    def violation(self, x):
        return np.abs(self.E @ x - self.e).max(), (self.G @ x - self.g).max()

    def stationarity(self, x):
        """The least gradient of the cost that multipliers of equations and of reached limits leave, relative to it."""
        gradient = self.A.T @ (self.w * (self.A @ x - self.b))
        reached = self.G @ x - self.g > -1e-4 * (1.0 + np.abs(self.g))
        matrix = np.hstack([self.E.T, self.G[reached].T])
        low = np.concatenate([np.full(len(self.E), -np.inf), np.zeros(reached.sum())])
        found = lsq_linear(matrix, -gradient, (low, np.inf), tol=1e-14, lsmr_tol="auto", method="bvls")
        return np.abs(matrix @ found.x + gradient).max() / (1.0 + np.abs(gradient).max()), reached.sum()


def unknowns(law, found):
    return np.concatenate([found["qdd"], found["tau"][law.motors], found.get("forces", np.zeros(0)).ravel()])


def test_solutions_are_optimal():
    """Random floating robots and a fixed one, with few and with many limits reached: KKT conditions of the full
    problem."""
    reached = 0
    for seed, (legs, joints, base) in enumerate(
        [(2, 2, "floating"), (3, 2, "floating"), (2, 3, "floating"), (2, 2, "fixed")]
    ):
        robot = legged(seed, legs, joints, base)
        law = controller(robot, legs if base == "floating" else 0) if base == "floating" else control.WholeBody(
            robot, [control.PointTask("foot0", frequency=0.0), control.PostureTask(weight=0.05, frequency=0.0)]
        )  # fmt: skip
        if base == "fixed":
            q, qd = 0.3 * np.ones(robot.dof), 0.1 * np.ones(robot.dof)
            targets = np.full(law.input_shapes()["targets"], 3.0)
            found = on_numbers(law, q, qd, targets)
            assert found["report"][0] < ROUND_OFF
            continue
        for size in (0.5, 4.0):
            q, qd, targets = state(law, seed, size)
            found, full = on_numbers(law, q, qd, targets), Full(law, q, qd, targets)
            x = unknowns(law, found)
            if found["report"][1] > 1e-5:
                continue  # supports cannot be held
            broken, beyond = full.violation(x)
            assert broken < 1e-5
            assert beyond < 1e-5
            left, count = full.stationarity(x)
            assert left < 1e-5, (seed, size)
            reached += count
    assert reached > 3


def test_what_cannot_be_met_keeps_the_limits():
    """Motors that are far too weak, and tasks that ask for too much: torques, pyramids and dynamics hold, and what
    gave way is named."""
    robot = legged(1)
    for torque, size in ((0.5, 1.0), (None, 1e4)):
        law = controller(robot, 2, torque=torque, iterations=20)
        for seed in range(3):
            q, qd, targets = state(law, seed, size)
            found = on_numbers(law, q, qd, targets)
            assert np.isfinite(found["tau"]).all()
            assert (np.abs(found["tau"][law.motors]) <= law.bounds.torque).all()
            for force, support in zip(found["forces"], law.supports, strict=True):
                C, c = support.pyramid()
                assert (C @ force - c < 1e-9).all()
            J = np.vstack([robot.jacobian(q, s.frame)[3:] for s in law.supports])
            pushed = found["tau"] + J.T @ (found["forces"] @ law.supports[0].axes()).ravel()
            needed = robot.mass_matrix(q) @ found["qdd"] + robot.bias_torques(q, qd)
            assert np.abs(needed - pushed).max() < 1e-8 * (1.0 + np.abs(needed).max())
            assert found["report"][1] > 1e-3 or found["errors"][0] > 1e-3


def test_a_level_is_kept_exactly():
    """What level 1 reaches does not depend on the weight of level 2, and a lower level does not change it."""
    law_alone = controller(legged(2, 2, 3), 2)
    strict = controller(law_alone.robot, 2, levels=(1, 2, 3), iterations=16)
    q, qd, targets = state(strict, 4, 1.0)
    found = on_numbers(strict, q, qd, targets)
    assert found["errors"][0] < 1e-6  # the centre of mass is met
    weighed = on_numbers(law_alone, q, qd, targets)
    assert weighed["errors"][0] > 1e-4  # where weights only weigh, it is not


def test_default_steps_are_enough_for_many_legs():
    """Robots with more motors have more limits active at once: with 16 steps some of these are not solved."""
    robot = legged(1, 6, 3)
    law = controller(robot, 6, iterations=None)
    states = [state(law, k, (1.0, 5.0, 20.0)[k % 3]) for k in range(90)]
    stance = 1.0 * (np.random.default_rng(5).uniform(size=(90, 6)) > 0.4)
    solution, _ = law.solve(*(np.array(part) for part in zip(*states, strict=True)), stance=stance)
    assert solution.residual.max() < 1e-6
    assert solution.active.sum(axis=1).max() > 12
    assert (np.abs(solution.tau[:, 6:]) <= robot.effort_limits[6:]).all()
    arm = lw.load("panda")
    assert control.WholeBody(arm, [control.PostureTask()]).iterations == 35  # limits may contradict
    free = control.MotionLimits(torque=False)
    assert control.WholeBody(arm, [control.PostureTask()], free).iterations == 24


def test_feet_in_the_air_push_nothing():
    law = controller(legged(3, 3, 2), 3)
    q, qd, targets = state(law, 0, 0.3)
    found = on_numbers(law, q, qd, targets, stance=np.array([1.0, 1.0, 0.0]))
    assert (found["forces"][2] == 0.0).all()
    assert found["forces"][:2, 2].min() > 0.9
    assert (
        found["report"][1] < ROUND_OFF
    )  # they need not stay where they are: only those that stand could slip
    standing = on_numbers(law, q, qd, targets, stance=np.ones(3))
    assert np.abs(standing["qdd"] - found["qdd"]).max() > 0.1


def test_every_choice_is_part_of_the_key():
    """Compiled code is found by it: two controllers that compute differently may not share one."""
    robot = legged(3, 2, 2)
    feet = [control.Support(f"foot{k}", friction=0.6) for k in range(2)]
    usual = {"robot": robot, "tasks": [control.PostureTask(frequency=3.0)], "supports": feet, "iterations": 9}
    others = [
        {"robot": robot.with_payload(0.3, (0.0, 0.0, 0.1), frame="foot1")},
        {"tasks": [control.PostureTask(frequency=4.0)]},
        {"tasks": [control.PostureTask(frequency=3.0), control.CenterOfMassTask(level=2)]},
        {"limits": control.MotionLimits(torque=False)},
        {"limits": control.MotionLimits(torque=[30.0] * 10)},
        {"supports": feet[:1]},
        {"supports": [feet[0], replace(feet[1], friction=0.7)]},
        {"separations": [control.Separation("leg0_1", BONE, "leg1_1", BONE, margin=0.02)]},
        {"damping": 20.0},
        {"iterations": 10},
    ]
    keys = [
        control.WholeBody(**usual).key(),
        *(control.WholeBody(**(usual | other)).key() for other in others),
    ]
    assert keys[0] == control.WholeBody(**usual).key()
    assert len(set(keys)) == len(keys)


def test_a_joint_at_full_speed_stops_before_its_limit():
    """The bound of acceleration followed from any state from which a joint can stop: it never passes its limit, and
    braking is never more than stated."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        brake, speed, h = rng.uniform(5, 200), rng.uniform(1, 20), rng.uniform(5e-4, 5e-3)
        q, rate = -rng.uniform(0.0, 2.0), 0.0
        for _ in range(4000):
            a = float(largest_acceleration(-q, rate, speed, brake, h))
            assert a >= -brake * (1.0 + 1e-9) - 1e-9
            a = min(a, 3.0 * brake)
            q, rate = q + h * rate + 0.5 * h * h * a, rate + h * a
            assert q < 1e-9
            assert rate <= speed + 1e-9


def test_a_joint_that_cannot_stop_before_its_limit_is_told():
    """At rest beyond a limit, too fast before it, and too fast for its velocity limit; none of it inside."""
    robot = lw.load("panda")
    law = control.WholeBody(robot, [control.PostureTask()])
    high = robot.limits.upper
    middle, b = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]), law.bounds.deceleration
    q, qd = np.tile(middle, (5, 1)), np.zeros((5, 7))
    q[1, 2] = high[2] + 0.01
    q[2, 2], qd[2, 2] = high[2] - 0.01, np.sqrt(2.0 * b[2] * 0.01) + 0.1
    qd[3, 4] = 2.0 * robot.limits.velocity[4]
    q[4, 2], qd[4, 2] = high[2] - 0.01, -1.0  # it leaves the limit
    solution, _ = law.solve(q, qd, law.targets(middle))
    assert (solution.beyond[[0, 4]] == 0.0).all()
    assert solution.beyond[1] > 0.0
    assert 0.02 < solution.beyond[2] < 0.2
    assert solution.beyond[3] > 0.5 * robot.limits.velocity[4]
    (told, _), (kept, _) = (law.solve(q[k], qd[k], law.targets(middle)) for k in (2, 0))
    assert "limits of joints" in told.gave_way(1e-3)
    assert "limits of joints" not in kept.gave_way(1e-3)


def test_default_decelerations_can_be_reached_wherever_the_robot_stands():
    """Straight up an arm's first axes show next to no inertia; and gravity takes a part of the torque."""
    for name in ("panda", "ur10e"):
        robot = lw.load(name)
        law = control.WholeBody(robot, [control.PostureTask()])
        q = robot.random(np.random.default_rng(9), 200)
        inertia = np.diagonal(robot.mass_matrix(q), axis1=-2, axis2=-1)
        needed = inertia * law.bounds.deceleration + np.abs(robot.gravity_torques(q))
        assert (needed <= law.bounds.torque).all(), name


def test_orientation_errors():
    rng = np.random.default_rng(2)
    for angle in (0.0, 1e-10, 0.3, 3.0, np.pi - 1e-9):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        turn = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        Q *= np.sign(np.linalg.det(Q))
        found = np.array(turn_error(turn @ Q, [-2.0 * x for x in quaternion_of(Q)]), dtype=float)
        assert np.abs(found - angle * axis).max() < 1e-7


def test_kernel_warm_start_and_c():
    """The kernel gives the numbers of plain Python, for one state and many; a warm start ends at the same place."""
    law = controller(legged(0), 2, iterations=10)
    states = [state(law, seed, 1.0) for seed in range(3)]
    q, qd, targets = (np.array([s[k] for s in states]) for k in range(3))
    solution, start = law.solve(q, qd, targets)
    for k, given in enumerate(states):
        plain = on_numbers(law, *given)
        assert np.abs(plain["tau"] - solution.tau[k]).max() < 1e-7
        assert np.abs(law.solve(*given)[0].tau - solution.tau[k]).max() == 0.0
    always = law.kernel(constant_time=True)  # solver steps that change nothing are not left out
    given = {
        "q": q,
        "qd": qd,
        "targets": targets,
        "gains": law.default_gains.ravel(),
        "start": law.cold_start,
    }
    given["stance"] = np.ones(len(law.supports))
    for mine, other in zip(
        law.kernel()(*(given[name] for name, _ in always.inputs)),
        always(*(given[name] for name, _ in always.inputs)),
        strict=True,
    ):
        assert mine.tobytes() == other.tobytes()
    assert "if (s" not in always.source("c")
    again, _ = law.solve(q, qd, targets, start=start)
    assert np.abs(again.tau - solution.tau).max() < 1e-4
    assert len(solution.names) == solution.active.shape[1]
    assert "malloc" not in law.kernel().source("c")
    assert law.targets(q[0]).shape == targets[0].shape


def test_half_solutions_are_those_of_the_inverse_mass_matrix():
    """Products, solutions and copies from numbers, of trees, floating ones and robots with followers."""
    rng = np.random.default_rng(5)
    for robot in [legged(0), lw.random_robot(2, 6, tree=True), *(follower(seed) for seed in range(3))]:
        q, rows = robot.random(rng), rng.normal(size=(4, robot.dof))
        W = np.linalg.inv(robot.mass_matrix(q))
        halves = Halves.at(robot, q)
        for each in (halves, Halves.of_numbers(robot, halves.numbers())):
            half = [each.row(list(row)) for row in rows]
            assert np.allclose(np.reshape(each.symmetric(half), (4, 4)), rows @ W @ rows.T, rtol=1e-9)
            assert np.allclose(
                np.reshape(each.products(half[:1], half), (1, 4)), rows[:1] @ W @ rows.T, rtol=1e-9
            )
            assert np.allclose(each.solved(list(rows[0])), W @ rows[0], rtol=1e-9)


def follower(seed):
    """A tree of seven joints, two of which follow another."""
    robot = lw.random_robot(seed, 7, tree=True)
    names = [joint.name for joint in robot.moving_joints]
    relations = {names[-1]: Mimic(names[2], 1.7, 0.2, True), names[3]: Mimic(names[0], -0.6, -0.1, True)}
    joints = [replace(joint, mimic=relations.get(joint.name)) for joint in robot.joints]
    return lw.Robot(robot.name, robot.links, joints, gravity=robot.gravity)


def test_wrong_arguments():
    robot = legged(0)
    for call, words in (
        (lambda: control.WholeBody(robot, []), "at least one"),
        (lambda: control.WholeBody(robot, [3]), "expected tasks"),
        (lambda: control.WholeBody(robot, [control.ForceTask()]), "expected one of the supports"),
        (lambda: control.PostureTask(weight=-1.0), "weight"),
        (lambda: control.PostureTask(level=0), "level"),
        (lambda: control.Support("foot0", friction=0.0), "friction"),
        (lambda: control.Support("foot0", [(0, 0, 0), (1, 0, 0), (2, 0, 0)]).shares, "on a line"),
        (lambda: control.MotionLimits(period=0.0), "period"),
        (
            lambda: control.WholeBody(robot, [control.PostureTask()], control.MotionLimits(velocity=-1.0)),
            "velocity",
        ),
    ):
        with pytest.raises(control.TaskError, match=words):
            call()
    with pytest.raises(lw.UnknownNameError):
        control.WholeBody(robot, [control.PointTask("no such frame")])


def test_references_are_the_derivatives_of_what_tasks_measure():
    """Values, rates and accelerations of every task along a motion with given q̈, for random bodies on every base: the
    rows of a task are met by just that q̈."""
    h = 1e-5
    for seed, base in enumerate(("floating", "fixed", "floating", "planar")):
        robot = legged(40 + seed, legs=2, joints=1 + seed % 3, base=base)
        rng = np.random.default_rng(seed)
        q = robot.integrate(robot.neutral, 0.5 * rng.normal(size=robot.dof))
        qd, qdd = rng.normal(size=(2, robot.dof))
        ends = []
        for t in (-h, h):
            ends.append(State(robot, robot.integrate(q, t * qd + 0.5 * t * t * qdd), qd + t * qdd))
        now = State(robot, q, qd)
        for task in (
            control.PointTask("foot0"),
            control.PoseTask("foot1"),
            control.PoseTask("foot1", "turn"),
            control.CenterOfMassTask(),
            control.AngularMomentumTask(),
            control.PostureTask(),
        ):
            before, after = (task.reference(end, qdd) for end in ends)
            target = task.reference(now, qdd)
            label = (seed, base, task.label)
            rate = (np.asarray(after.rate, float) - np.asarray(before.rate, float)) / (2 * h)
            if task.kind != "angular momentum":  # its rate is what is measured, its acceleration not aimed at
                np.testing.assert_allclose(target.acceleration, rate, atol=1e-6, err_msg=str(label))
            if len(target.value) != 4 and (
                base == "fixed" or not task.posture
            ):  # quaternions are tested below
                count = 3 if task.kind == "pose" else len(target.value)
                change = (np.asarray(after.value, float) - np.asarray(before.value, float))[:count] / (2 * h)
                wanted = np.asarray(target.rate, float)[-count:]  # a turn comes before its point
                np.testing.assert_allclose(change, wanted, atol=1e-6, err_msg=str(label))
            if task.posture:
                continue
            rows, right = task.rows(now, target, 3.0, 4.0)
            np.testing.assert_allclose(np.asarray(rows, float) @ qdd, right, atol=1e-9, err_msg=str(label))


def test_errors_of_tasks_decay_without_overshoot():
    """ë = −2 ω ė − ω² e with the frequency of the task and default gains, where nothing limits it."""
    for seed, frequency in enumerate((3.0, 8.0, 20.0)):
        robot = legged(60 + seed, legs=1, joints=4, base="fixed")
        rng = np.random.default_rng(seed)
        q, qd = 0.5 * rng.normal(size=4), rng.normal(size=4)
        free = control.MotionLimits(torque=False, velocity=False, position=False)
        law = control.WholeBody(robot, [control.PostureTask(frequency=frequency)], free)
        goal, speed, further = 0.3 * rng.normal(size=(3, 4))
        found, _ = law.solve(q, qd, law.targets(goal, speed, further))
        expected = further + 2.0 * frequency * (speed - qd) + frequency**2 * (goal - q)
        np.testing.assert_allclose(found.qdd, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_a_round_foot_rolls():
    """What a support should not accelerate is the derivative of the velocity at which it touches, below its centre; but
    for what pulls two points of a body that turns towards each other, which no force can hold."""
    robot = legged(4, 2, 3)
    rng, h = np.random.default_rng(2), 1e-6
    q, qd = robot.random(rng), 3.0 * rng.normal(size=robot.dof)
    foot = control.Support(
        "foot1", ((0.01, 0.02, -0.03), (0.04, 0.0, 0.01)), radius=0.05, normal=(0.2, 0.1, 1.0)
    )
    _, wanted = support_rows(State(robot, q, qd), foot, 0.0)
    rates = [
        np.array(support_rows(State(robot, robot.integrate(q, side * h * qd), qd), foot, 0.0)[0]) @ qd
        for side in (1.0, -1.0)
    ]
    along = np.array(foot.along_line(robot.pose(q, "foot1")[:3, :3]))
    both = np.r_[along, -along] / np.sqrt(2.0)
    rate = (rates[0] - rates[1]) / (2.0 * h)
    assert abs(both @ rate) > 0.01
    np.testing.assert_allclose(-np.array(wanted), rate - both * (both @ rate), rtol=0.0, atol=1e-6)


class ByTorques(control.WholeBody):
    """Torques as unknowns, as for robots that stand."""

    by_accelerations = False


def test_accelerations_and_torques_as_unknowns_have_the_same_solution():
    """Two formulations of one problem: torques as boxes and accelerations as rows, and the other way around; with and
    without torque limits, limits of motion and distances, some of them active, and where they contradict."""
    seen: set[str] = set()
    cases = [
        ("fixed", {}, 8.0, 0),
        ("planar", {"torque": False, "velocity": 0.205, "position": False}, 3.0, 0),
        ("fixed", {"torque": 2.0, "velocity": 0.21}, 20.0, 1),
        ("fixed", {"torque": 6.0, "velocity": False, "position": False}, 8.0, 0),
        ("planar", {"torque": False, "velocity": False, "position": False}, 1.0, 0),
    ]
    for seed, (base, limits, size, apart) in enumerate(cases):
        robot = legged(60 + seed, legs=2, joints=2, base=base)
        tasks = [control.PointTask("foot0"), control.CenterOfMassTask(), control.PostureTask(weight=0.05)]
        near = (
            [control.Separation("foot0", [(0, 0, 0), (0, 0, 0.05)], "foot1", [(0, 0, 0), (0, 0, 0.05)])]
            if apart
            else []
        )
        chosen = control.MotionLimits(ahead=False, **limits)
        laws = [
            kind(robot, tasks, chosen, separations=near, iterations=30)
            for kind in (control.WholeBody, ByTorques)
        ]
        for number in range(2):
            given = state(laws[0], 10 * seed + number, size)
            own, other = (on_numbers(law, *given) for law in laws)
            label = (seed, number)
            scale = np.abs(other["tau"]).max() + 1.0
            np.testing.assert_allclose(own["tau"], other["tau"], atol=1e-6 * scale, err_msg=str(label))
            for name in ("qdd", "errors"):
                scale = np.abs(other[name]).max() + 1.0
                np.testing.assert_allclose(own[name], other[name], atol=1e-6 * scale, err_msg=str(label))
            names = [
                {law.limit_names[k] for k in np.flatnonzero(found["active"])}
                for law, found in zip(laws, (own, other), strict=True)
            ]
            assert names[0] == names[1], label
            seen |= {name.split(" ", 1)[1].rsplit(" ", 1)[0].split(" ")[0] for name in names[0]}
    assert {"torque", "motion"} <= seen


def test_positions_of_velocities_are_those_that_move_with_them():
    """Turning joints before, between and after joints that have a number more in q than in q̇."""
    rng = np.random.default_rng(6)
    legs = lw.quadruped(None)
    several = lw.Scene([lw.load("panda"), legs, lw.load("two_link")])
    for robot in (legs, lw.load("panda"), several):
        q = robot.random(rng)
        for k, place in enumerate(position_of_velocity(robot)):
            moved = np.asarray(robot.integrate(q, 0.1 * np.eye(robot.dof)[k])) - q
            if place is None:
                assert np.count_nonzero(np.abs(moved) > 1e-12) > 1 or robot.nq > robot.dof
            else:
                np.testing.assert_allclose(moved, 0.1 * np.eye(robot.nq)[place], atol=1e-12)
