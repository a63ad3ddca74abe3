"""Predictive control of walking robots: gaits in world time, targets of stages, plans, and a walk with a push."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.control.controller import limits_of_torque
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.walking.feet import feet_of
from linkwise.optimal.walking.planner import table_of
from linkwise.optimal.walking.stages import moved
from linkwise.simulate import Plant, Push, simulate

GAITS = ("trot", "walk", "pace", "bound")


def quadruped(seed):
    """A quadruped of random size and mass, whose rear knees may be turned round: (robot, joints in which it stands)."""
    rng = np.random.default_rng(seed)
    size, mass = rng.uniform(0.2, 0.35), rng.uniform(5.0, 30.0)
    links = [
        lw.Link(
            "body", lw.Inertia.from_com(mass, (0.01, 0, 0), tuple(mass * size**2 * rng.uniform(0.1, 0.4, 3)))
        )
    ]
    joints, contacts, stand = [], [], []
    for leg, (x, y) in enumerate([(1, 0.5), (1, -0.5), (-1, 0.5), (-1, -0.5)]):
        parent, at = "body", (size * x, size * y, 0.0)
        for part, axis, length in (
            ("side", (1, 0, 0), 0.0),
            ("hip", (0, 1, 0), size),
            ("knee", (0, 1, 0), size),
        ):
            name = f"{part}{leg}"
            own = lw.Inertia.from_com(
                0.04 * mass, (0, 0, -0.5 * length), (2e-4 * mass, 2e-4 * mass, 5e-5 * mass)
            )
            links.append(lw.Link(name, own))
            limits = lw.Limits(-2.7, 2.7, velocity=25.0, effort=4.0 * mass * size * 9.81)
            place = lw.Transform.from_rpy(at)
            joints.append(
                lw.Joint(
                    name + "_joint",
                    "revolute",
                    parent,
                    name,
                    place,
                    axis,
                    limits=limits,
                    viscous_friction=0.02 * mass,
                )
            )
            parent, at = name, (0.0, 0.0, -length)
        contacts.append(
            lw.Contact(parent, offset=(0.0, 0.0, -size), radius=0.02, friction=0.8, name=f"foot{leg}")
        )
        turned = -1.0 if leg > 1 and seed % 2 else 1.0
        stand += [0.0, 0.8 * turned, -1.6 * turned]
    return lw.Robot("legs", links, joints).with_base("floating").with_contacts(contacts), np.array(stand)


def test_gaits_hold_every_foot_but_those_of_one_group():
    rng = np.random.default_rng(0)
    for name in GAITS:
        gait = optimal.Gait.named(name, swing=rng.uniform(0.1, 0.4), stance=rng.uniform(0.0, 0.2))
        times = rng.uniform(0.0, 20.0, 400)
        held = np.array([[float(gait.held(t, foot)) for foot in range(4)] for t in times])
        for row in held:
            swinging = set(np.flatnonzero(row < 0.5))
            assert not swinging or swinging in [set(group) for group in gait.groups]
        share = (1.0 - held).mean(axis=0)
        np.testing.assert_allclose(share, gait.swing / gait.period, atol=0.1)
        lifted = gait.lift_off(2) + 7 * gait.period
        assert gait.held(lifted - 1e-6, 2) == 1.0
        assert gait.held(lifted + 1e-6, 2) == 0.0
    with pytest.raises(lw.UnknownNameError, match="trot"):
        optimal.Gait.named("trott")
    with pytest.raises(optimal.ProblemError, match="every foot once"):
        optimal.Gait([[0, 1], [1, 2]])


def test_paths_follow_the_velocity():
    rng = np.random.default_rng(1)
    for turning in (0.0, 1e-9, 0.3, -2.0, 10.0):
        pose, velocity = rng.normal(size=3), np.array([*rng.normal(size=2), turning])
        fine = pose.copy()
        for _ in range(2000):
            c, s = np.cos(fine[2] + 2.5e-4 * turning), np.sin(fine[2] + 2.5e-4 * turning)
            fine += 5e-4 * np.array(
                [c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1], turning]
            )
        np.testing.assert_allclose(moved(pose, velocity, 1.0), fine, atol=2e-6)


def test_targets_of_stages_are_in_world_time():
    """The same instant has the same flags and places of feet, whichever plan it is a stage of."""
    robot, stand = quadruped(0)
    for name in GAITS:
        walk = optimal.Walking(robot, name, (0.3, 0.1, 0.4), stand=stand, begin=0.0)
        stages, problem = walk.stages, walk.problem
        orders = {"walks": (-1.0, 1e6), "velocity": walk.velocity, "drift": (0.01, -0.02)}
        orders["feet"] = walk.feet.places.ravel()
        tables = []
        for shift in (0, 3):
            pose = moved((0.1, 0.2, 0.3), walk.velocity, shift * problem.step)
            own = {**orders, "time": (0.02 + shift * problem.step,), "path": pose, "trunk": pose}
            tables.append(table_of(problem, stages, own))
        assert len(np.unique(tables[0][:, problem.where(ACTIVE)], axis=0)) > 1
        for key in (
            ACTIVE,
            "trunk.target",
            "trunk.velocity",
            *(f"{foot}.position_weight" for foot in walk.feet.names),
        ):
            at = problem.where(key)
            np.testing.assert_allclose(tables[1][:-4, at], tables[0][3:-1, at], atol=1e-9)
        for number, foot in enumerate(walk.feet.names):
            since = stages.gait.since_lift_off(
                0.02 + 0.06 + np.arange(len(tables[0]) - 4) * problem.step, number
            )
            begun = (
                since <= np.arange(len(since)) * problem.step
            )  # their start is not the place that is given
            weight = tables[1][:-4, problem.where(f"{foot}.position_weight")].sum(axis=1) * begun
            away = (
                tables[1][:-4, problem.where(f"{foot}.position")]
                - tables[0][3:-1, problem.where(f"{foot}.position")]
            )
            assert np.abs(weight[:, None] * away).max() < 1e-6 * (1.0 + weight.max())


def test_swinging_feet_move_as_their_velocities_say():
    robot, stand = quadruped(1)
    stages = optimal.Walking(robot, stand=stand).stages
    rng, h = np.random.default_rng(2), 1e-5
    for _ in range(20):
        start, goal, part = rng.normal(size=3), rng.normal(size=3), rng.uniform(0.05, 0.95)
        after, before = (
            stages.swung(start, goal, part + sign * h / stages.gait.swing) for sign in (1.0, -1.0)
        )
        _, velocity, acceleration = stages.swung(start, goal, part)
        np.testing.assert_allclose((np.array(after[0]) - before[0]) / (2 * h), velocity, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            (np.array(after[1]) - before[1]) / (2 * h), acceleration, rtol=1e-4, atol=1e-3
        )
    place, _, _ = stages.swung(start, goal, 1.0)
    assert start[2] + (goal[2] - start[2]) - 0.2 * stages.height < place[2] < goal[2]  # it meets the ground


def test_a_quadruped_walks_and_is_pushed():
    """Plans of 50 Hz that are followed 20 ms after their readings; every plan is used, targets change on the way."""
    seed = 3
    robot, stand = quadruped(seed)
    walk = optimal.Walking(robot, stand=stand, velocity=(0.4, 0.0, 0.0))
    mass = sum(link.inertia.mass for link in robot.links)

    def controller(t, q, qd, reference):
        if 1.6 <= t < 1.601:
            walk.command((0.2, 0.0, 0.5))
        return walk(t, q, qd)

    push = Push(wrench=(0, 0, 0, 0, 3.0 * mass, 0), frame="body", begin=0.9, end=1.0 - 1e-9)  # 0.3 m/s
    start = walk.feet.stand
    result = simulate(Plant(robot, push=push), controller, start, duration=2.4, step=0.002, every=10, q=start)
    q = result.q
    upright = 1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2)
    assert upright.min() > 0.97
    assert np.abs(q[:, 2] / start[2] - 1.0).max() < 0.15
    first, then = np.searchsorted(result.t, [0.6, 1.6])
    speed = (q[then, 0] - q[first, 0]) / 1.0
    assert 0.32 < speed < 0.48
    heading = 2.0 * np.arctan2(q[:, 5], q[:, 6])
    assert heading[-1] - heading[then] > 0.15
    assert walk.failures == 0
    assert walk.follower.unsolved == 0
    assert walk.plans == pytest.approx(2.4 / 0.02, abs=2)
    assert np.abs(result.tau[:, 6:]).max() <= robot.effort_limits[6:].max()
    # bad readings: torques stay finite
    q_bad = q[-1].copy()
    q_bad[8] = np.nan
    assert np.isfinite(walk(2.401, q_bad, np.zeros(robot.dof))).all()
    # the same in a rehearsal; on ice it falls, and that is said before it is tried
    found = walk.rehearse(0.8)
    assert found.walked
    assert np.isnan(found.fell)
    assert found.tilt < 0.3
    assert found.plans == pytest.approx(0.8 / 0.02, abs=2)
    assert walk.plans == 0  # as before its first walk
    icy = walk.rehearse(1.2, friction=0.02)
    assert not icy.walked
    assert 0.2 < icy.fell < 1.2
    assert f"it fell after {icy.fell:.2f} s" in str(icy)
    # it stands after a halt
    walk(2.402, q[-1], np.zeros(robot.dof))
    walk.halt()
    assert walk.held(walk.end + 0.1).all()
    assert walk.end - 2.4 < walk.gait.period


def test_torques_of_an_unsolved_sample_are_not_followed():
    """A law that is not solved says so by its residual, and so does the surer one: the torques of the last sample
    fade."""
    robot, stand = quadruped(3)
    walk = optimal.Walking(robot, stand=stand)
    follower, q = walk.follower, walk.feet.stand
    rest, held = np.zeros(robot.dof), np.ones(4)
    first = follower(q, rest, (q, rest, rest), held, {})
    assert follower.unsolved == 0
    assert np.abs(first).max() > 1.0
    solve, solve_surely = follower.law.solve, follower.surer.solve

    residuals = [1.0, np.nan, 1e6, np.inf]

    def short(method):
        def unsolved(*given, **options):
            solution, start = method(*given, **options)
            residual = np.array(residuals[follower.unsolved])
            return replace(solution, tau=1e3 * solution.tau, residual=residual), start

        return unsolved

    follower.law.solve, follower.surer.solve = short(solve), short(solve_surely)
    for number in range(3):
        tau = follower(q, rest, (q, rest, rest), held, {})
        assert follower.unsolved == number + 1
        np.testing.assert_allclose(tau, 0.95 ** (number + 1) * first)
    # what the surer method solves is followed
    follower.surer.solve = solve_surely
    np.testing.assert_allclose(follower(q, rest, (q, rest, rest), held, {}), first, rtol=1e-4, atol=1e-3)
    assert follower.unsolved == 3
    asked = []

    def watched(q, qd, targets, **options):
        asked.append(targets.copy())
        return solve(q, qd, targets, **options)

    follower.law.solve = watched
    for stance in (held, np.array([1.0, 0.0, 0.0, 1.0]), np.zeros(4)):  # those that stand share the weight
        follower(q, rest, (q, rest, rest), stance, {})
        share = follower.weight / max(1.0, stance.sum())
        np.testing.assert_allclose(asked[-1][follower._slices[-1][0]][-3:], (0.0, 0.0, share))
    follower.law.solve, follower.start = solve, follower.law.cold_start
    np.testing.assert_allclose(follower(q, rest, (q, rest, rest), held, {}), first, atol=1e-6)
    walk.reset()
    assert follower.unsolved == 0


def test_what_cannot_walk_is_said():
    robot, stand = quadruped(0)
    with pytest.raises(optimal.ProblemError, match="floating base"):
        optimal.Walking(lw.load("panda"))
    with pytest.raises(optimal.ProblemError, match="outside of its limits"):
        optimal.Walking(robot, stand=3.0 + stand)
    with pytest.raises(optimal.ProblemError, match="no contacts"):
        optimal.Walking(robot.with_contacts(()), stand=stand)
    with pytest.raises(optimal.ProblemError, match="feet"):
        optimal.Walking(robot, stand=stand, feet=["knee0", "knee1"])
    with pytest.raises(lw.ShapeError, match="one robot"):
        optimal.Walking(robot, stand=stand)(0.0, np.zeros((2, robot.nq)), np.zeros((2, robot.dof)))
    with pytest.raises(optimal.ProblemError, match="t: expected a finite time"):
        optimal.Walking(robot, stand=stand)(np.nan, stand, np.zeros(robot.dof))


def test_contacts_of_a_file_are_feet_where_they_are_one_ball():
    """Files give shapes: the centres of the balls are the feet, not the origins of their links; the trunk is none."""
    robot, stand = quadruped(2)
    expected = feet_of(robot, None, stand, None)
    read = [
        lw.Contact(
            each.frame,
            shapes=[lw.Shape(each.frame, "sphere", [each.radius], offset=each.offset)],
            friction=0.8,
            name=each.name,
        )
        for each in robot.contacts
    ]
    trunk = lw.Contact("body", shapes=[lw.Shape("body", "box", [0.3, 0.1, 0.1])], nearest=4, name="trunk")
    found = feet_of(robot.with_contacts([*read, trunk]), None, stand, None)
    assert found.names == expected.names
    assert found.radius == expected.radius == 0.02
    assert np.array_equal(found.places, expected.places)
    with pytest.raises(optimal.ProblemError, match="no contacts to take them from"):
        feet_of(robot.with_contacts([trunk]), None, stand, None)
    motors = np.arange(1.0, 13.0)
    limits = limits_of_torque(robot, motors)
    assert np.isinf(limits[:6]).all()
    assert np.array_equal(limits[6:], motors)
    with pytest.raises(ValueError, match=r"one number or 18 or 12 \(without those of the base\)"):
        limits_of_torque(robot, np.ones(13))


def test_stiff_friction_of_a_floating_robot_is_implicit():
    """(M + h D) q̈ = τ − b: a joint whose friction brakes it within a part of a step does not swing to and fro."""
    robot, _ = quadruped(1)
    stiff = {f"{part}{leg}_joint.viscous_friction": 20.0 for part in ("hip", "knee") for leg in range(4)}
    robot = robot.with_contacts(()).with_parameters(stiff)
    problem = optimal.Problem(robot, step=0.02, costs=[optimal.Effort()], implicit_damping=True)
    damping = np.array(problem.dynamics.damping)
    assert damping.shape == (robot.dof,)
    assert (damping[:6] == 0.0).all()
    assert (damping > 0.0).sum() >= 8
    x = np.concatenate([robot.neutral, np.zeros(robot.dof)])
    x[robot.nq + 8] = 5.0
    speeds = [5.0]
    for _ in range(5):
        x = np.array(problem.next_state(x, np.zeros(problem.nu)), float)
        speeds.append(x[robot.nq + 8])
    assert abs(speeds[-1]) < 0.5 * abs(speeds[0])
    assert np.abs(speeds).max() <= 5.0


def biped(yaw=True):
    """Two legs of six joints, or five, with soles of four points: (robot, joints in which it stands)."""
    links = [lw.Link("body", lw.Inertia.from_com(20.0, (0, 0, 0.15), (0.5, 0.4, 0.2)))]
    joints, contacts, stand = [], [], []
    parts = (
        *((("yaw", (0, 0, 1), 0.0, 1.0, 0.0),) if yaw else ()),
        ("roll", (1, 0, 0), 0.0, 1.5, 0.0),
        ("hip", (0, 1, 0), 0.35, 3.0, -0.35),
        ("knee", (0, 1, 0), 0.35, 2.0, 0.7),
        ("ankle", (0, 1, 0), 0.0, 0.3, -0.35),
        ("foot", (1, 0, 0), 0.05, 1.0, 0.0),
    )
    for side, y in (("left", 0.1), ("right", -0.1)):
        parent, at = "body", (0.0, y, 0.0)
        for part, axis, length, mass, angle in parts:
            name = f"{side}_{part}"
            links.append(lw.Link(name, lw.Inertia.from_com(mass, (0, 0, -0.5 * length), (0.01 * mass,) * 3)))
            limits = lw.Limits(-2.5, 2.5, velocity=20.0, effort=200.0 if part != "foot" else 40.0)
            place = lw.Transform.from_rpy(at)
            joints.append(
                lw.Joint(
                    name + "_joint", "revolute", parent, name, place, axis, limits=limits, rotor_inertia=0.02
                )
            )
            parent, at = name, (0.0, 0.0, -length)
            stand.append(angle)
        corners = [(x, y, -0.05) for x in (-0.06, 0.12) for y in (-0.04, 0.04)]
        contacts.append(lw.Contact(parent, points=corners, radius=0.005, friction=0.8))
    return lw.Robot("biped", links, joints).with_base("floating").with_contacts(contacts), np.array(stand)


def test_boxes_and_capsules_of_a_file_are_soles():
    """The lowest faces at the ends of the legs; a box of a knee, which is higher, is none."""
    robot, stand = biped()
    expected = feet_of(robot, None, stand, None)
    knee = lw.Contact("left_knee", shapes=[lw.Shape.box("left_knee", (0.1, 0.1, 0.1))], name="knee")
    for shapes in (
        lambda frame, at: [lw.Shape(frame, "box", (0.18, 0.08, 0.04), offset=at + (0, 0, 0.02))],
        lambda frame, at: [
            lw.Shape(
                frame,
                "capsule",
                (0.03, 0.18),
                offset=at + (0, y, 0.03),
                rotation=((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
            )
            for y in (-0.04, 0.04)
        ],
    ):
        solids = []
        for each in ("left_foot", "right_foot"):
            points = np.array(
                [x for c in robot.contacts if c.frame == each for x in (c.points or [c.offset])]
            )
            solids.append(lw.Contact(each, shapes=shapes(each, points.mean(axis=0)), nearest=4, name=each))
        found = feet_of(robot.with_contacts([*solids, knee]), None, stand, None)
        assert found.names == expected.names
        assert np.abs(found.places[:, :2] - expected.places[:, :2]).max() < 1e-12
        assert np.abs(found.places[:, 2]).max() < 1e-12  # the points themselves, without a radius
        assert np.allclose(found.area, expected.area)
        assert found.stand[2] == pytest.approx(
            expected.stand[2] - expected.radius
        )  # soles are below the feet
        # a hand that hangs higher is an end of a limb, and no foot
        hand = lw.Link("hand", lw.Inertia.from_com(0.5, (0, 0, 0), (0.01,) * 3))
        shoulder = lw.Joint("shoulder", "revolute", "body", "hand", lw.Transform.from_rpy((0.0, 0.3, -0.4)))
        armed = lw.Robot("armed", [*robot.links, hand], [*robot.joints, shoulder])
        palm = lw.Contact("hand", shapes=[lw.Shape.box("hand", (0.1, 0.1, 0.1))], name="hand")
        assert (
            feet_of(armed.with_contacts([*solids, palm]), None, [*stand, 0.0], None).names == expected.names
        )
    with pytest.raises(optimal.ProblemError, match="no contacts to take them from"):
        feet_of(robot.with_contacts([knee]), None, stand, None)


def test_soles_are_level_and_the_law_keeps_the_centre_of_pressure_inside():
    robot, stand = biped()
    gait = optimal.Gait([[0], [1]], swing=0.36, stance=0.1)
    walk = optimal.Walking(robot, gait, (0.15, 0.0, 0.2), stand=stand, begin=0.4, horizon=36)
    feet = walk.feet
    assert feet.names == ("left_foot sole", "right_foot sole")
    assert np.allclose(feet.area, (0.09, 0.04))
    assert np.allclose(feet.places[:, 2], 0.005)
    for name in feet.names:  # frames of soles are level while the robot stands
        assert np.allclose(np.asarray(feet.robot.pose(feet.stand, name))[:3, :3], np.eye(3))
    orders = walk.stages.by_name(
        walk._orders_at(0.0, 0.0, feet.stand, np.r_[feet.stand, np.zeros(robot.dof)])
    )
    table = table_of(walk.problem, walk.stages, orders)
    held, swings = (
        table[:, walk.problem.where(ACTIVE)],
        table[:, walk.problem.where(f"{feet.names[0]}.orientation_weight")],
    )
    assert np.isfinite(table).all()  # also at the very moment of a lift-off
    lifted = np.flatnonzero(held[:-1, 0] < 0.5)
    assert lifted[0] == 25  # begin + stance
    assert (swings[lifted[1:], 0] > 0.0).all()
    assert not swings[: lifted[0], 0].any()
    turn = table[lifted[-1], walk.problem.where(f"{feet.names[0]}.orientation")]
    heading = 2.0 * np.arctan2(turn[2], turn[3])
    assert abs(heading - 0.2 * (gait.swing + gait.stance + 0.5 * gait.standing)) < 1e-6
    # before the robot walks its trunk has no velocity to follow
    rates = table[:, walk.problem.where("trunk.velocity")]
    assert not rates[:19, 3].any()
    assert np.allclose(rates[21:, 3], 0.15)
    # the law: a push that the soles can just not hold without limits
    still, wanted = np.zeros(robot.dof), np.zeros(robot.dof)
    wanted[3] = 3.0
    tau = walk.follower(feet.stand, still, (feet.stand, still, wanted), np.ones(2), {})
    assert walk.follower.unsolved == 0
    assert np.isfinite(tau).all()
    forces = np.asarray(walk.follower.solution.forces).reshape(-1, 3)
    assert forces[:, 2].min() >= 0.0
    assert (np.abs(forces[:, :2]) <= 0.6 * forces[:, 2:] + 1e-6).all()
    weight = 9.81 * sum(link.inertia.mass for link in robot.links)
    assert abs(forces[:, 2].sum() / weight - 1.0) < 0.3


@pytest.mark.processor
@pytest.mark.parametrize("yaw", [True, False])
def test_a_biped_walks_on_its_soles(yaw):
    """With five joints a leg two soles that stand cannot be moved in one direction, which is said."""
    robot, stand = biped(yaw)
    gait = optimal.Gait([[0], [1]], swing=0.36, stance=0.1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        walk = optimal.Walking(robot, gait, (0.15, 0.0, 0.0), stand=stand, begin=0.4, horizon=36)
    rank = "biped: its soles are held in 12 directions while all stand, of which the joints can move 11"
    assert [rank in str(each.message) for each in said] == ([] if yaw else [True])
    start = walk.feet.stand
    begin = start.copy()
    begin[7:] += 1e-3 * yaw * np.random.default_rng(0).normal(size=robot.dof - 6)
    result = simulate(
        Plant(robot), lambda t, q, qd, _: walk(t, q, qd), start, duration=2.0, step=0.002, every=10, q=begin
    )
    q = result.q
    assert (1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2)).min() > 0.9
    assert q[:, 2].min() > 0.9 * start[2]
    assert 0.1 < q[-1, 0] < 0.35
    heights = np.array(
        [[np.asarray(walk.feet.robot.pose(x, foot))[2, 3] for foot in walk.feet.names] for x in q]
    )
    assert (heights.max(axis=0) > 0.02).all()  # both feet were lifted
    assert np.abs(result.tau[:, 6:]).max() <= robot.effort_limits[6:].max()
    assert walk.follower.unsolved < 10  # of 1000 samples; some 120 without the interior-point method


def test_soles_must_have_the_same_number_of_corners():
    robot, stand = biped()
    first, second = robot.contacts
    other = lw.Contact(second.frame, points=second.points[:3], radius=0.005)
    with pytest.raises(optimal.ProblemError, match="other numbers of contacts"):
        optimal.Walking(robot.with_contacts([first, other]), optimal.Gait([[0], [1]]), stand=stand)


def test_the_path_is_never_far_from_the_trunk():
    """A robot that is carried away and turned by hand: places and heading of the path follow within their leashes."""
    robot, stand = quadruped(2)
    walk = optimal.Walking(robot, stand=stand, velocity=(0.0, 0.0, 0.0))
    still, start = np.zeros(robot.dof), walk.feet.stand
    first = walk.stages.by_name(walk._orders_at(0.0, 0.0, start, np.r_[start, still]))
    np.testing.assert_allclose(first["path"], first["trunk"])
    for heading, way in ((2.0, (0.7, -1.3)), (-2.0, (-0.4, 0.9)), (0.1, (0.0, 0.01))):
        q = start.copy()
        q[:2] += way
        q[3:7] = 0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2)
        walk._path = (0.0, np.array(first["path"]))
        orders = walk.stages.by_name(walk._orders_at(0.0, 0.0, q, np.r_[q, still]))
        np.testing.assert_allclose(orders["trunk"], [q[0], q[1], heading])
        away = np.array(orders["path"]) - orders["trunk"]
        far = np.linalg.norm(way)
        np.testing.assert_allclose(away[:2], -np.array(way) * min(1.0, walk._leash / far), atol=1e-12)
        assert away[2] == pytest.approx(-np.clip(heading, -0.3, 0.3))
