"""Optimal motion of robots that the ground holds: equations, derivatives, gaits, limits of forces, bad input."""

from types import SimpleNamespace

import numpy as np
import pinocchio
import pytest

import linkwise as lw
from example_robots import loaded
from linkwise import optimal
from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.bench.peers.built import pinocchio_model
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.optimal import gaits, phase_iteration
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.descent import forces_of, step_of
from linkwise.optimal.iteration import input_shapes, iteration
from linkwise.optimal.iterations import stage_shape
from linkwise.optimal.phase_iteration import PhaseIterations
from linkwise.solve.factors import ldl_from_last

QUADRUPEDS = {
    "go2": (["FL_foot", "FR_foot", "RL_foot", "RR_foot"], np.tile([0.0, 0.8, -1.5], 4)),
    "solo12": (
        ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"],
        np.r_[np.tile([0.0, 0.8, -1.6], 2), np.tile([0.0, -0.8, 1.6], 2)],
    ),
    "anymal": (
        ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"],
        np.array([-0.1, 0.7, -1.0, -0.1, -0.7, 1.0, 0.1, 0.7, -1.0, 0.1, -0.7, 1.0]),
    ),
}


def quadruped(name):
    """(robot, feet, positions in which it stands)."""
    robot = loaded(name)
    feet, legs = QUADRUPEDS[name]
    q = np.array(robot.neutral)
    q[7:] = legs
    q[2] -= min(np.asarray(robot.pose(q, frame=foot))[2, 3] for foot in feet)
    return robot, feet, q


def two_legs(parts=("hip", "knee")):
    """(a floating body with two legs of one or two joints, feet, positions)."""
    links = [lw.Link("body", lw.Inertia.from_com(5.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.05)))]
    joints, feet = [], []
    for side in ("left", "right"):
        parent, at = "body", (0.0, 0.1 if side == "left" else -0.1, 0.0)
        for part in parts:
            own = f"{side}_{part}"
            links.append(lw.Link(own, lw.Inertia.from_com(0.6, (0.01, 0.0, -0.1), (3e-3, 3e-3, 1e-3))))
            place = lw.Transform.from_rpy(at)
            joints.append(lw.Joint(f"{own}_joint", "revolute", parent, own, place, (0, 1, 0)))
            parent, at = own, (0.0, 0.0, -0.2)
        feet.append(f"{side}_foot")
        links.append(lw.Link(feet[-1]))
        joints.append(lw.Joint(f"{side}_end", "fixed", parent, feet[-1], lw.Transform.from_rpy(at)))
    robot = lw.Robot("two legs", links, joints).with_base("floating")
    legs = {"hip": (0.5, 0.4), "knee": (-1.0, -0.9)}
    angles = [legs[part][side] for side in range(2) for part in parts]
    return robot, feet, np.array([0.0, 0.0, 0.35, 0.0, 0.0, 0.0, 1.0, *angles])


def held(robot, q, rng, feet, **options):
    """A problem of four stages with frames held at random."""
    active = rng.integers(0, 2, (4, len(feet)))
    active[0], active[1] = 1, 0
    return optimal.Problem(
        robot,
        horizon=4,
        step=0.01,
        start=(q, np.zeros(robot.dof)),
        costs=[
            optimal.Effort(1e-3),
            optimal.JointTracking(q, 1.0, velocity=0.0),
            optimal.ContactForces(weight=1e-3),
            optimal.ConePenalty(0.3, 1e-3, facets=6),
            optimal.Smoothness(1e-4),  # of accelerations, which contacts change
        ],
        terminal=[optimal.JointTracking(q, 1.0, velocity=0.0, name="end")],
        limits=[optimal.FrictionCone(0.6)],
        contacts=optimal.ContactSchedule(feet, active, **options),
        torque_limits=False,
        friction=False,
    )


def random_trajectory(problem, rng):
    """States and torques of a trajectory that no dynamics connect."""
    robot, d = problem.robot, problem.dynamics
    xs = []
    for _ in range(problem.horizon + 1):
        q = np.asarray(robot.integrate(problem.x0[: d.nq], 0.3 * rng.normal(size=d.dof)))
        xs.append(np.concatenate([q, rng.normal(size=d.dof)]))
    return np.array(xs), 5.0 * rng.normal(size=(problem.horizon, problem.nu))


def models(problem, xs, us):
    """Slopes, blocks of positions and gradients of all stages, from the compiled iteration."""
    shape, d = stage_shape(problem), problem.dynamics
    N, w = problem.horizon, shape.width
    outputs = {"slopes": (N, shape.full, w), "gradients": (N, w), "turn": (N, 6, 6), "gain": (N, 6, 6)}

    def function(**given):
        made = PhaseIterations(problem, shape, (1.0,), 1e-12, given)
        made._take_in()
        made._linearise_in_parts(0)
        return {
            "slopes": made.slopes,
            "gradients": made.gradients,
            "turn": made.turns[0][0],
            "gain": made.turns[1][0],
        }

    traced = TracedFunction(function, input_shapes(problem), "models", longest=None, loops=True)

    def build(dtype):
        with computed_in(dtype):
            return traced.program(dtype)

    sizes = {name: int(np.prod(size)) for name, size in input_shapes(problem).items()}
    kernel = Kernel("models", sizes.items(), outputs.items(), "float64", build, None)
    m = np.zeros((N + 1, problem.nm))
    m[:, :-2], m[:, -2], m[:, -1] = 0.3, 2.0, 0.5
    given = [xs[0], problem.p.ravel(), m.ravel(), xs.ravel(), us.ravel(), np.zeros(1)]
    assert d.dof == shape.full
    one = dict(zip(outputs, kernel(*given), strict=True))
    if problem.dynamics.contacts.surface:
        return one, m
    many = dict(zip(outputs, kernel(*(np.tile(value, (3, 1)) for value in given)), strict=True))
    for key in outputs:
        assert np.asarray(many[key])[1].tobytes() == np.asarray(one[key]).tobytes(), key
    return one, m


def tangent(robot, d, x, y):
    return np.concatenate([np.asarray(robot.difference(x[: d.nq], y[: d.nq])), y[d.nq :] - x[d.nq :]])


@pytest.mark.parametrize("hold", ["velocity", "acceleration"])
def test_slopes_and_gradients_of_stages_are_those_of_differences(hold):
    """Also: one problem and several in lanes give the same bits."""
    rng = np.random.default_rng(3)
    robot, feet, q = two_legs()  # the code of a quadruped takes three times as long to compile
    problem = held(robot, q, rng, feet, hold=hold, surface=hold == "acceleration")
    xs, us = random_trajectory(problem, rng)
    found, m = models(problem, xs, us)
    d, n, step = problem.dynamics, robot.dof, step_of(problem)
    e = 1e-6

    def penalty(x, u, p, own):
        x, u, p, own = (list(map(float, value)) for value in (x, u, p, own))
        return float(problem.stage_cost(x, u, p) + problem.penalty(x, p, own, problem.force_limits(x, u, p)))

    directions = rng.normal(size=(2 * n + problem.nu, 6))  # a wrong entry shows along any of them
    for k in range(3):
        p = problem.p[k]
        slopes, costs = [], []
        for direction in directions.T:
            ends, values = [], []
            for change in (e * direction, -e * direction):
                x = np.concatenate(
                    [
                        np.asarray(robot.integrate(xs[k, : d.nq], change[:n])),
                        xs[k, d.nq :] + change[n : 2 * n],
                    ]
                )
                ends.append(np.asarray(step(x, us[k] + change[2 * n :], p)))
                if k == 0:
                    values.append(penalty(x, us[k] + change[2 * n :], p, m[k]))
            slopes.append(tangent(robot, d, ends[1], ends[0]) / (2 * e))
            costs.append((values[0] - values[1]) / (2 * e) if values else 0.0)
        wanted = np.array(slopes).T
        rates = found["slopes"][k]
        scale = np.abs(wanted).max()
        got = rates @ directions
        assert np.allclose(got, wanted[n:], atol=2e-6 * scale), (k, np.abs(got - wanted[n:]).max())
        moved = problem.step * rates.copy()
        moved[:6] = problem.step * found["gain"][k] @ rates[:6]
        moved[:, :n] += np.eye(n)
        moved[:6, :6] += found["turn"][k] - np.eye(6)
        assert np.allclose(moved @ directions, wanted[:n], atol=2e-6 * scale)
        if k == 0:
            gradient = found["gradients"][k] @ directions
            assert np.allclose(gradient, costs, atol=2e-5 * np.abs(costs).max()), np.abs(
                gradient - costs
            ).max()


@pytest.mark.parametrize("name", ["go2", "anymal"])
def test_accelerations_and_forces_are_those_of_pinocchio(name):
    rng = np.random.default_rng(5)
    robot, feet, q = quadruped(name)
    damping = 30.0 if name == "anymal" else 0.0  # [1/s] at which velocities of feet decay
    problem = held(robot, q, rng, feet, hold="acceleration", damping=damping)
    model = pinocchio_model(pinocchio, robot)
    model.gravity.linear = np.array(robot.gravity)
    model.armature = np.array([j.rotor_inertia for j in robot.coordinate_joints for _ in range(j.dof)])
    data = model.createData()
    for foot in feet:
        body, pose = robot.locate(foot)
        place = pinocchio.SE3(pose.rotation, pose.translation)
        model.addFrame(pinocchio.Frame(foot, body + 1, 0, place, pinocchio.FrameType.OP_FRAME))
    data = model.createData()
    order = np.r_[3:6, 0:3, 6 : robot.dof]  # (ω, v) of the base as (v, ω)
    xs, us = random_trajectory(problem, rng)
    d = problem.dynamics
    for k in range(problem.horizon):
        x, active = xs[k], problem.p[k, problem.where(ACTIVE)]
        tau = np.concatenate([np.zeros(6), us[k]])
        at, rates = x[: d.nq], x[d.nq :][order]
        pinocchio.computeAllTerms(model, data, at, rates)
        pinocchio.forwardKinematics(model, data, at, rates, np.zeros(model.nv))
        pinocchio.updateFramePlacements(model, data)
        rows, drift = [], []
        for foot, on in zip(feet, active, strict=True):
            if on:
                frame = model.getFrameId(foot)
                axes = pinocchio.LOCAL_WORLD_ALIGNED
                rows.append(pinocchio.computeFrameJacobian(model, data, at, frame, axes)[:3])
                speed = pinocchio.getFrameVelocity(model, data, frame, axes).linear
                bend = pinocchio.getFrameClassicalAcceleration(model, data, frame, axes).linear
                drift.append(bend + damping * speed)
        M = data.M
        M = np.triu(M) + np.triu(M, 1).T
        bias = pinocchio.nonLinearEffects(model, data, at, rates)
        J = np.vstack([*rows, np.zeros((0, model.nv))])
        zero = np.zeros((len(J), len(J)))
        both = np.block([[M, -J.T], [J, zero]])
        wanted = np.linalg.solve(both, np.concatenate([tau - bias, *(-each for each in drift)]))
        following = np.asarray(step_of(problem)(x, us[k], problem.p[k]))
        qdd = ((following[d.nq :] - x[d.nq :]) / problem.step)[order]
        forces = np.asarray(forces_of(problem)(x, us[k], problem.p[k])).reshape(-1, 3)
        assert np.allclose(qdd, wanted[: model.nv], atol=1e-8 * np.abs(wanted).max())
        assert np.allclose(forces[active > 0.5].ravel(), wanted[model.nv :], atol=1e-8 * np.abs(wanted).max())
        assert not forces[active < 0.5].any()


@pytest.mark.parametrize(("name", "gait"), [("go2", "trot"), ("solo12", "jump")])
def test_gaits_converge_hold_the_feet_and_keep_cones_and_torques(name, gait):
    robot, feet, q = quadruped(name)
    problem = getattr(gaits, gait)(robot, feet=feet[::-1], start=q, swing=0.12, stance=0.08)
    solution = optimal.solve(problem)
    assert solution.converged, solution.message
    active = problem.p[:-1, problem.where(ACTIVE)]
    names = problem.dynamics.contacts.frames
    forces = np.asarray(forces_of(problem)(solution.states[:-1], solution.tau, problem.p[:-1])).reshape(
        -1, 4, 3
    )
    outside = np.linalg.norm(forces[..., :2], axis=-1) - 0.7 * forces[..., 2]
    weight = 9.81 * sum(link.inertia.mass for link in robot.links)
    assert outside.max() <= 1e-6 * weight
    assert (np.abs(solution.tau) <= robot.effort_limits[6:] + 1e-9).all()
    for k in range(problem.horizon):
        for foot, on in zip(names, active[k], strict=True):
            if on:
                J = np.asarray(robot.jacobian(solution.q[k], frame=foot))
                assert np.abs(J[3:] @ solution.qd[k + 1]).max() < 1e-9
    # momentum: what the ground pushes is what the centre of mass gains
    mass = weight / 9.81
    speeds = [np.asarray(robot.com_jacobian(a)) @ b for a, b in zip(solution.q, solution.qd, strict=True)]
    gained = mass * (np.array(speeds)[1:] - np.array(speeds)[:-1]) / problem.step
    pushed = forces.sum(axis=1) + [0.0, 0.0, -weight]
    still = np.abs(solution.qd[:-1]).max(axis=1) < 0.05  # elsewhere the step of the Jacobian counts
    assert np.allclose(gained[still], pushed[still], atol=0.02 * weight)
    travelled = solution.q[-1, 0] - q[0]
    wanted = problem.p[-1, problem.where("end.target")][0] - q[0]
    assert travelled == pytest.approx(wanted, abs=0.05 + 0.25 * abs(wanted))


@pytest.mark.parametrize("gait", ["walk", "trot", "pace", "bound", "jump"])
def test_forward_is_where_the_robot_heads(gait):
    """A start elsewhere and with another heading gives the same problem there: places, feet, orientations. The
    velocities are those of the trunk, and its places are their integral."""
    robot, rng = lw.quadruped(), np.random.default_rng(3)
    q, velocity, step = np.array(robot.neutral), (0.4, -0.2, 0.7), 0.01
    plain = getattr(gaits, gait)(robot, velocity, start=q, step=step)
    for _ in range(4):
        heading, place = rng.uniform(-np.pi, np.pi), rng.uniform(-2.0, 2.0, 3)
        c, s = np.cos(heading), np.sin(heading)
        R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        there = q.copy()
        there[:3] = place
        there[3:7] = 0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2)
        problem = getattr(gaits, gait)(robot, velocity, start=there, step=step)
        trunk, moved = plain.costs[0], problem.costs[0]
        assert np.allclose(moved.target[:, :3], trunk.target[:, :3] @ R.T + place, atol=1e-12)
        assert np.array_equal(moved.velocity, trunk.velocity)
        assert np.array_equal(problem.p[:, problem.where(ACTIVE)], plain.p[:, plain.where(ACTIVE)])
        turned = robot.pose(moved.target, frame="body")[:, :3, :3]
        assert np.allclose(turned, R @ robot.pose(trunk.target, frame="body")[:, :3, :3])
        going = (turned @ moved.velocity[:, 3:6, None])[..., 0]
        rates = np.diff(moved.target[:, :3], axis=0) / step
        assert np.allclose(rates, 0.5 * (going[1:] + going[:-1]), atol=1e-4)
        for before, foot in zip(plain.costs[2:], problem.costs[2:], strict=True):
            assert before.name == foot.name
            assert np.allclose(foot.target, before.target @ R.T + place, atol=1e-12)


def test_spans_of_a_schedule_end_before_their_last_number():
    contacts = optimal.ContactSchedule(["a", "b", "c"], {"a": [(0, 3), (5, 7)], "c": [(2, 8)]})
    table = contacts.table(8)
    assert [np.flatnonzero(column).tolist() for column in table[:8].T] == [
        [0, 1, 2, 5, 6],
        [],
        [2, 3, 4, 5, 6, 7],
    ]
    assert np.array_equal(table[8], table[7])


@pytest.mark.parametrize("gait", ["walk", "trot", "pace", "bound"])
def test_feet_stand_below_their_hips_in_the_middle_of_a_stance(gait):
    robot, step = lw.quadruped(), 0.01
    problem = getattr(gaits, gait)(robot, (0.5, -0.2, 0.0), cycles=3, step=step)
    active = problem.p[:, problem.where(ACTIVE)] > 0.5
    trunk = problem.costs[0].target[:, :2]
    for k, foot in enumerate(problem.costs[2:]):
        beside = robot.pose(robot.neutral, frame=foot.name)[:2, 3]
        ends = np.flatnonzero(np.diff(active[:, k])) + 1  # swings and stances in turn
        for first, stop in zip(ends[1:-1:2], ends[2::2], strict=True):
            assert active[first:stop, k].all()
            middle = 0.5 * (trunk[(first + stop) // 2] + trunk[(first + stop + 1) // 2])
            assert np.allclose(foot.target[first, :2], middle + beside, atol=1e-9)
            assert abs(foot.target[first : stop + 1, 2] - foot.target[0, 2]).max() < 1e-12


def test_the_limits_of_a_sole_are_those_of_forces_inside_its_area():
    """Forces at random points: each limit is missed where the point, the direction or the turn is beyond it, alone."""
    rng, friction, (length, width) = np.random.default_rng(0), 0.6, (0.12, 0.05)
    contacts = optimal.ContactSchedule(["a", "b"], 1.0, surface=True)
    cone = optimal.FrictionCone(friction, area=(length, width))
    names = [what for what, _ in cone.frame_words(contacts)]
    for _ in range(200):
        forces, missed = [], []
        for frame in contacts.frames:
            x, y = rng.uniform(-1.6, 1.6, 2) * (length, width)
            z = rng.uniform(50.0, 300.0)
            along, turn = rng.uniform(0.0, 1.4) * friction * z, rng.uniform(-1.4, 1.4) * friction * width * z
            angle = rng.uniform(0.0, 2.0 * np.pi)
            force = np.array([along * np.cos(angle), along * np.sin(angle), z])
            moment = np.array([y * z, -x * z, turn])  # of a force that presses there, and a turn
            forces += [*force, *moment]
            facts = {
                "friction cone": along > friction * z,
                "pressure beyond the front": x > length,
                "pressure beyond the back": x < -length,
                "pressure beyond the left": y > width,
                "pressure beyond the right": y < -width,
                "moment about the normal": turn > friction * width * z,
                "opposite moment about the normal": -turn > friction * width * z,
            }
            missed += [f"{frame}: {what}" for what, yes in facts.items() if yes]
        point = SimpleNamespace(forces=forces, dynamics=SimpleNamespace(active=None, contacts=contacts))
        found = cone.functions(point, {"friction": [friction], "unit": [1.0 / 400.0]})
        assert [name for name, value in zip(names, found, strict=True) if value > 0.0] == missed
        point.dynamics.active = [0.0, 1.0]  # what is not held has no limits
        assert all(float(c) <= 0.0 for c in cone.functions(point, {"friction": [0.6], "unit": [0.0025]})[:7])


@pytest.mark.parametrize("facets", [4, 6])
def test_the_penalty_of_cones_is_that_of_a_pyramid_around_them(facets):
    rng = np.random.default_rng(8)
    robot, feet, q = two_legs()
    problem = optimal.Problem(
        robot,
        horizon=2,
        step=0.02,
        start=(q, np.zeros(robot.dof)),
        costs=[optimal.ConePenalty(0.5, 0.7, facets=facets)],
        contacts=optimal.ContactSchedule(feet),
    )
    angles = 2 * np.pi * np.arange(facets) / facets
    for forces in rng.normal(size=(5, 2, 3)):
        fx, fy, fz = forces.T[..., None]
        outside = np.maximum(np.cos(angles) * fx + np.sin(angles) * fy - 0.5 * fz, 0.0)
        given = problem.x0.tolist(), [0.0] * problem.nu, problem.p[0].tolist(), forces.ravel().tolist()
        assert np.isclose(float(problem.stage_cost(*given)), 0.02 * 0.5 * 0.7 * (outside**2).sum())
        inside = np.hypot(fx, fy) < 0.5 * fz  # a force within the cone costs nothing
        assert not outside[inside[:, 0]].any()


def test_many_starts_and_schedules_give_the_results_of_single_ones():
    robot, feet, q = quadruped("go2")
    # the problem of a test above, so that its code is compiled once
    problem = gaits.trot(robot, feet=feet[::-1], start=q, swing=0.12, stance=0.08)
    rng = np.random.default_rng(0)
    starts = np.tile(problem.x0, (3, 1))
    starts[:, 7:] += 0.02 * rng.normal(size=(3, problem.ns - 7))
    tables = np.tile(problem.p[:, problem.where(ACTIVE)], (3, 1, 1))
    tables[1, :4], tables[2, 6:9, 0] = 1.0, 1.0  # other schedules
    together = optimal.solve_many(problem, start=starts, values={ACTIVE: tables}, iterations=12, threads=1)
    for k in range(3):
        own = problem.with_values({ACTIVE: tables[k]}, start=(starts[k, : robot.nq], starts[k, robot.nq :]))
        alone = optimal.solve(own, iterations=12)
        assert together.states[k].tobytes() == alone.states.tobytes()


def test_feet_come_down_on_the_ground_and_stay_above_it():
    """Where a foot comes down it is held, be it above or below the ground."""
    robot, feet, q = quadruped("go2")
    for gait in (gaits.trot, gaits.pace, gaits.bound):  # one program: that of the test above
        problem = gait(robot, (0.4, 0.05, 0.2), feet=feet[::-1], start=q, swing=0.12, stance=0.08)
        found = optimal.solve(problem)
        assert found.converged
        for number, foot in enumerate(problem.dynamics.contacts.frames):
            heights = np.asarray(robot.pose(found.q, frame=foot))[:, 2, 3]
            heights = heights - heights[0]
            assert heights.min() > -1e-3
            assert heights.max() > 0.02
            landed = gaits.landings(problem.p[:, problem.where(ACTIVE)][:, number])
            assert len(landed) == 1
            assert abs(heights[landed]).max() < 5e-4, (gait.__name__, foot)


def test_the_weight_of_a_landing_does_not_depend_on_the_step():
    """It is that of one stage, and costs of stages are multiplied by their duration: with steps of 5 ms feet came down
    0.6 mm beside the ground instead of 0.15."""
    robot, feet, q = quadruped("go2")
    found = set()
    for step in (0.02, 0.01, 0.005):
        problem = gaits.trot(robot, (0.4, 0.05, 0.2), feet=feet, start=q, step=step)
        for number, foot in enumerate(problem.dynamics.contacts.frames):
            (landed,) = gaits.landings(problem.p[:, problem.where(ACTIVE)][:, number])
            found.add(round(step * problem.p[landed, problem.where(f"{foot}.position_weight")][2], 3))
    assert len(found) == 1


def test_a_foot_that_comes_down_fast_is_stopped_within_the_step():
    robot, feet, q = quadruped("go2")
    problem = held(robot, q, np.random.default_rng(0), feet)
    x = problem.x0.copy()
    x[robot.nq + 5] = -1.0  # falling
    following = np.asarray(step_of(problem)(x, np.zeros(12), problem.p[0]))
    for foot in feet:
        J = np.asarray(robot.jacobian(x[: robot.nq], frame=foot))[3:]
        assert np.abs(J @ following[robot.nq :]).max() < 1e-9
    free = np.asarray(step_of(problem)(x, np.zeros(12), problem.p[1]))  # no foot is held
    assert free[robot.nq + 5] < -1.0


@pytest.mark.parametrize("surface", [False, True])
def test_loops_of_large_robots_with_contacts_give_what_is_written_out(monkeypatch, surface):
    rng = np.random.default_rng(5)
    robot, feet, q = two_legs(
        ("hip",) if surface else ("hip", "knee")
    )  # six rows per foot take twice as long
    problem = held(robot, q, rng, feet, surface=surface)
    xs, us = random_trajectory(problem, rng)
    m = np.zeros((problem.horizon + 1, problem.nm))
    m[:, :-2], m[:, -2], m[:, -1] = 0.3, 2.0, 0.5
    given = [xs[0], problem.p.ravel(), m.ravel(), xs.ravel(), us.ravel(), np.zeros(1)]
    monkeypatch.setattr(optimal.Problem, "key", lambda self: None)
    results = []
    for entries in (phase_iteration.WRITTEN_OUT, 0):
        monkeypatch.setattr(phase_iteration, "WRITTEN_OUT", entries)
        results.append([np.asarray(part) for part in iteration(problem, steps=(1.0, 0.5))(*given)])
    for short, long in zip(*results, strict=True):
        np.testing.assert_allclose(long, short, rtol=1e-8, atol=1e-8 * np.abs(short).max())


def test_branches_stay_apart_in_the_equations_of_a_stage():
    """Four legs cost little more than twice as much as two: entries of different legs are zero, and cost nothing."""
    rows = np.zeros((12, 12))
    rng = np.random.default_rng(1)
    for leg in range(3):  # of a body with three coordinates
        own = [0, 1, 2, *range(3 + 3 * leg, 6 + 3 * leg)]
        part = rng.normal(size=(6, 6))
        rows[np.ix_(own, own)] += part @ part.T
    L, inverse = (np.array(part, float) for part in ldl_from_last(rows))
    apart = np.array([[i // 3 != j // 3 and min(i, j) >= 3 for j in range(12)] for i in range(12)])
    assert (np.tril(L)[apart] == 0.0).all()
    unit = np.tril(L, -1) + np.eye(12)
    np.testing.assert_allclose(unit.T @ np.diag(1.0 / inverse) @ unit, rows, atol=1e-12)


def test_what_cannot_be_right_is_refused_by_name():
    robot, feet, q = quadruped("go2")
    start = (q, np.zeros(robot.dof))
    effort = [optimal.Effort(1.0)]
    for schedule, words in (
        (lambda: optimal.ContactSchedule([]), "frames: expected a list"),
        (lambda: optimal.ContactSchedule([feet[0], feet[0]]), "named twice"),
        (lambda: optimal.ContactSchedule(feet, hold="glue"), "hold: expected one of"),
        (lambda: optimal.ContactSchedule(feet, 0.5), "expected 0"),
        (lambda: optimal.ContactSchedule(feet, {"hand": [(0, 1)]}), "no frame 'hand'"),
        (lambda: optimal.ContactSchedule(["hand"]), "hand"),
        (lambda: optimal.ContactSchedule(feet, np.ones((3, 4))), "active"),
    ):
        with pytest.raises(lw.LinkwiseError, match=words):
            optimal.Problem(robot, horizon=5, start=start, costs=effort, contacts=schedule())
    contacts = optimal.ContactSchedule(feet)
    with pytest.raises(optimal.ProblemError, match="semi-implicit"):
        optimal.Problem(robot, start=start, costs=effort, contacts=contacts, integrator="rk4")
    with pytest.raises(optimal.ProblemError, match="no contacts"):
        optimal.Problem(robot, start=start, costs=effort, limits=[optimal.FrictionCone()])
    with pytest.raises(optimal.ProblemError, match="facets"):
        optimal.Problem(robot, start=start, costs=[optimal.ConePenalty(facets=5)], contacts=contacts)
    with pytest.raises(optimal.ProblemError, match="floating base"):
        gaits.trot(lw.load("panda"))
    with pytest.raises(optimal.ProblemError, match="feet: give the names"):
        gaits.trot(robot)
    with pytest.raises(lw.LinkwiseError, match=r"no option 'heigth'.*height"):
        lw.optimal.gaits.trot(robot, heigth=0.1)
    with pytest.raises(optimal.ProblemError, match="expected a Robot"):
        gaits.trot("go2")
