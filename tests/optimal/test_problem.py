"""Problems of optimal motion: their functions over scalars, derivatives, parameters and checks."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import optimal
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace

STEP = 1e-6
SLOPE_TOLERANCE = 2e-5  # of central differences, relative to the largest slope
POSE = np.eye(4)
POSE[:3, 3] = 0.4, 0.1, 0.5


def own(q, qd, tau, factor):
    more = 0.0 if tau is None else (tau * tau).sum()
    return factor[0] * lw.cos(q[0]) * q[1] + 0.5 * (qd @ qd) * q[0] + more


def floating_arm():
    """A floating body with an arm of one joint."""
    body = lw.Link("body", lw.Inertia.from_com(3.0, (0.01, 0.02, 0.0), np.diag([0.1, 0.2, 0.25])))
    leg = lw.Link("leg", lw.Inertia.from_com(0.5, (0.1, 0.0, 0.0), np.diag([0.001, 0.01, 0.01])))
    joints = [
        lw.Joint("base", "floating", "world", "body"),
        lw.Joint("knee", "revolute", "body", "leg", axis=(0, 1, 0)),
    ]
    return lw.Robot("hopper", [lw.Link("world"), body, leg], joints)


def arm_problem():
    return optimal.Problem(
        lw.load("two_link"),
        costs=[
            optimal.TipVelocity(1.0, 0.5),
            optimal.TipTracking(POSE, 2.0, 0.5),
            optimal.Smoothness(1e-3),
            optimal.Smoothness(1e-3, "torque", name="rate"),
            optimal.SphereAvoidance([0.3, 0.1, 0.2], margin=3.0),
        ],
        terminal=[optimal.TipTracking(POSE, 10.0, 5.0)],
        limits=[optimal.TipLimits(-0.1, 0.2), optimal.KeepOut([0.3, 0.2, 0.2], 0.1)],
        state_limits=True,
    )


def own_problem():
    costs = [optimal.Own(own, {"factor": 2.0})]
    end = [optimal.Own(own, {"factor": 3.0})]
    return optimal.Problem(lw.load("two_link"), costs=costs, terminal=end, integrator="rk4")


def floating_problem():
    robot = floating_arm()
    target = robot.random(np.random.default_rng(3))
    costs = [
        optimal.JointTracking(target, 0.3, velocity=0.1),
        optimal.Effort(1e-2),
        optimal.CenterOfMass([0.1, 0.2, 0.3], [1.0, 2.0, 3.0]),
        optimal.TipTracking(POSE, 0.7, 0.4),
        optimal.TipVelocity(0.3, 0.2),
        optimal.SphereAvoidance([0.3, 0.1, 0.2], margin=3.0),
    ]
    end = [optimal.JointTracking(target, 2.0), optimal.CenterOfMass([0.3, 0.2, 0.1], 2.0)]
    return optimal.Problem(robot, costs=costs, terminal=end)


def timed_problem():
    return optimal.Problem(
        lw.load("two_link"),
        costs=[
            optimal.Smoothness(1e-3),
            optimal.Smoothness(1e-3, "torque", name="rate"),
            optimal.Effort(0.1),
            optimal.Duration(0.7),
            optimal.Own(own, {"factor": 2.0}),
        ],
        timings=optimal.Timings(0.1, 3.0, phases=[0, 2]),
        integrator="rk4",
    )


def timed_floating_problem():
    robot = floating_arm()
    target = robot.random(np.random.default_rng(3))
    costs = [optimal.JointTracking(target, 0.3, velocity=0.1), optimal.ScaledEffort(1e-2)]
    return optimal.Problem(robot, costs=costs, timings=optimal.Timings(0.1, 3.0))


def turning_problem():
    """A floating body whose step is differentiated by its graph: changes of a quaternion along velocities."""
    robot = floating_arm()
    costs = [optimal.JointTracking(robot.random(np.random.default_rng(3)), 0.3, velocity=0.1)]
    return optimal.Problem(robot, costs=costs, integrator="rk4")


def held_problem():
    """An arm whose tip is held: its accelerations have no derivatives by a recursion."""
    arm, q = lw.random_robot(4, 4), np.array([0.4, 1.0, 0.7, -0.5])
    tip = arm.default_frame()
    held = arm.with_constraints([lw.Point(tip, np.asarray(arm.pose(q, tip))[:3, 3])])
    costs = [optimal.JointTracking(q, 0.3, velocity=0.1), optimal.Effort(1e-2)]
    return optimal.Problem(held, start=(q, np.zeros(4)), stabilization=20.0, costs=costs)


def slopes_of(problem):
    """A function of a state that gives the derivatives of one stage."""
    nx, nu, nm = problem.nx, problem.nu, problem.nm
    inputs = {"x": problem.ns, "u": nu, "p": problem.np} | ({"m": nm} if nm else {})

    def slopes(x, u, p, m=()):
        moved = problem.linearised(x, u, p)
        first, last = problem.stage_quadratic(x, u, p, m), problem.terminal_quadratic(x, p, m)
        return (*moved.matrices(), first.gradient, first.hessian, last.gradient, last.hessian)

    n = nx + nu
    shapes = {"A": (nx, nx), "B": (nx, nu), "g": (n,), "H": (n, n), "g_end": (nx,), "H_end": (nx, nx)}
    program = trace(slopes, inputs, shapes)
    return lambda *given: interpret.run(program, *given)


def values_of(problem, x, u, p, m=()):
    """(next state, costs of the stage and of the end with penalties), on floats."""
    x, u, p, m = ([float(value) for value in each] for each in (x, u, p, m))
    more = problem.penalty(x, p, m) if m else 0.0
    costs = [problem.stage_cost(x, u, p) + more, problem.terminal_cost(x, p) + more]
    return problem.next_state(x, u, p), np.array(costs)


@pytest.mark.parametrize(
    ("make", "stage"),
    [
        (arm_problem, 0),
        (own_problem, 0),
        (floating_problem, 0),
        (timed_problem, 0),
        (timed_problem, 1),
        (timed_floating_problem, 0),
        (timed_floating_problem, 1),
        (turning_problem, 0),
        (held_problem, 0),
    ],
)
def test_derivatives_are_those_of_the_functions(make, stage):
    problem = make()
    d, rng = problem.dynamics, np.random.default_rng(1)
    slopes = slopes_of(problem)
    x = problem.state(problem.robot.random(rng), rng.normal(size=d.dof))
    x[d.nq + d.dof : d.nq + d.dof + d.remembered] = rng.normal(size=d.remembered)
    u, p = rng.normal(size=problem.nu), problem.p[stage]
    if d.timed:
        x[-1], u[-1] = 0.3, 0.2
    m = [np.r_[rng.uniform(0, 1, problem.nm - 2), 10.0, 0.1]] if problem.nm else []
    A, B, g, _, g_end, _ = slopes(x, u, p, *m)
    x_next = values_of(problem, x, u, p, *m)[0]

    def changed(k, by):
        change, more = np.zeros(problem.nx + problem.nu), u.copy()
        change[k] = by
        more += change[problem.nx :]
        moved = np.array(d.moved(x.tolist(), change[: problem.nx].tolist()), float)
        following, costs = values_of(problem, moved, more, p, *m)
        return np.array(d.difference(x_next, following), float), costs

    for k in range(problem.nx + problem.nu):
        (after, more), (before, less) = changed(k, STEP), changed(k, -STEP)
        column = np.hstack([A, B])[:, k]
        assert np.allclose((after - before) / (2 * STEP), column, atol=1e-6 * (1 + np.abs(column).max()))
        measured = (more - less) / (2 * STEP)
        assert abs(measured[0] - g[k]) < SLOPE_TOLERANCE * (1 + np.abs(g).max())
        if k < problem.nx:
            assert abs(measured[1] - g_end[k]) < SLOPE_TOLERANCE * (1 + np.abs(g_end).max())


def test_costs_are_their_formulas():
    """Every cost alone, of an arm, a random tree and a robot with a floating base, beside NumPy."""
    rng = np.random.default_rng(7)
    for robot in (lw.load("panda"), lw.random_robot(2, 4), floating_arm()):
        n, driven = robot.dof, robot.dof - 6 if robot.nq != robot.dof else robot.dof
        q, qd, u = robot.random(rng), rng.normal(size=n), rng.normal(size=driven)
        target, speed, weight = robot.random(rng), rng.normal(size=n), rng.uniform(0.1, 2.0, n)
        point, three, own = rng.normal(size=3), rng.uniform(0.1, 2.0, 3), rng.uniform(0.1, 2.0, driven)
        pose, T, S = np.asarray(robot.pose(target)), robot.pose(q), rng.normal(size=(driven, driven))
        turn = Rotation.from_matrix(pose[:3, :3].T @ T[:3, :3]).as_rotvec()
        twist, six = robot.jacobian(q) @ qd, rng.uniform(0.1, 2.0, 6)
        gap = np.linalg.norm(T[:3, 3] - point) - 0.05 - 0.1
        formulas = [
            (optimal.JointTracking(target, weight), weight @ robot.difference(target, q) ** 2),
            (optimal.JointTracking(velocity=speed, velocity_weight=weight), weight @ (qd - speed) ** 2),
            (optimal.TipTracking(point, three), three @ (T[:3, 3] - point) ** 2),
            (optimal.TipTracking(pose, None, three), three @ turn**2),
            (optimal.TipVelocity(six[::-1], six), six @ (twist - six[::-1]) ** 2),
            (optimal.CenterOfMass(point, three), three @ (robot.center_of_mass(q) - point) ** 2),
            (optimal.Effort(own, 0.3), own @ (u - 0.3) ** 2),
            (optimal.ScaledEffort(S, 0.3), ((S @ (u - 0.3)) ** 2).sum()),
            (optimal.SphereAvoidance(point, 0.1, margin=5.0, weight=0.7), 0.7 * (5.0 - gap) ** 2),
            (optimal.SphereAvoidance(point, 0.1, margin=gap - 0.01), 0.0),
        ]
        for cost, twice in formulas:
            problem = optimal.Problem(
                robot, costs=[cost], terminal=[] if cost.running_only else [cost], step=0.03
            )
            given = (problem.state(q, qd).tolist(), u.tolist(), problem.p[0].tolist())
            assert np.isclose(float(problem.stage_cost(*given)), 0.03 * 0.5 * twice), cost
            if not cost.running_only:
                assert np.isclose(float(problem.terminal_cost(given[0], given[2])), 0.5 * twice), cost


def test_a_stage_that_begins_no_phase_takes_the_duration_of_the_one_before():
    """Semi-implicit steps of a floating robot and of an arm, by forward dynamics."""
    rng = np.random.default_rng(2)
    for robot in (lw.load("two_link"), floating_arm()):
        timings = optimal.Timings(0.01, 0.5, phases=[0, 3])
        problem = optimal.Problem(robot, horizon=6, costs=[optimal.Effort(1.0)], timings=timings)
        d, q, qd = problem.dynamics, robot.random(rng), rng.normal(size=robot.dof)
        before, chosen, u = 0.02, 0.05, rng.normal(size=problem.nu)
        u[-1] = chosen
        x = problem.state(q, qd)
        x[-1] = before
        for stage in range(6):
            h = chosen if stage in (0, 3) else before
            tau = np.zeros(robot.dof)
            tau[list(d.driven)] = u[:-1]
            after = qd + h * robot.forward_dynamics(q, qd, tau)
            found = np.array(problem.next_state(x.tolist(), u.tolist(), problem.p[stage].tolist()), float)
            assert np.allclose(found, [*robot.integrate(q, h * after), *after, h], atol=1e-9), stage


def test_limits_are_their_formulas():
    """Must not be positive: positions, speeds, a box for the tip, a sphere that spheres of links must not enter."""
    rng = np.random.default_rng(8)
    for robot in (lw.load("panda"), lw.random_robot(2, 4), floating_arm()):
        q, qd = robot.random(rng), rng.normal(size=robot.dof)
        p, point, low = robot.pose(q)[:3, 3], rng.normal(size=3), rng.normal(size=3)
        first = 7 if robot.nq != robot.dof else 0  # of the coordinates that have limits
        least, most = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
        least[first:], most[first:-1] = -1.0, rng.uniform(0.1, 2.0, robot.nq - first - 1)
        link = robot.link_names[-1]
        T, centre = robot.pose(q, link), rng.normal(size=3)
        sides = [[a - x, x - b] for a, x, b in zip(least, q, most, strict=True)]
        formulas = [
            (optimal.StateLimits((least, most), None), [x for pair in sides for x in pair if np.isfinite(x)]),
            (optimal.StateLimits(None, 0.7), [x for v in qd for x in (-0.7 - v, v - 0.7)]),
            (optimal.TipLimits([low[0], -np.inf, low[2]], 5.0), [*(low - p)[[0, 2]], *(p - 5.0)]),
            (optimal.KeepOut(point, 0.2), [0.25 - np.linalg.norm(p - point)]),
            (
                optimal.KeepOut(point, 0.2, on=[(link, centre, 0.07)]),
                [0.27 - np.linalg.norm(T[:3, :3] @ centre + T[:3, 3] - point)],
            ),
        ]
        for limit, wanted in formulas:
            problem = optimal.Problem(robot, costs=[optimal.Effort(1.0)], limits=[limit])
            at = problem._point(problem.state(q, qd).tolist(), None, problem.p[0].tolist())
            assert np.allclose(np.array(problem._limits(at, False), float), wanted), limit
            assert len(problem.limit_words) == len(wanted)


def test_hessians_of_own_functions_are_exact():
    problem = own_problem()
    slopes = slopes_of(problem)
    rng = np.random.default_rng(2)
    x, u, p = rng.normal(size=4), rng.normal(size=2), problem.p[0]
    hessian = slopes(x, u, p)[3]
    for k in range(6):
        change = np.zeros(6)
        change[k] = STEP
        more = slopes(x + change[:4], u + change[4:], p)[2]
        less = slopes(x - change[:4], u - change[4:], p)[2]
        assert np.allclose((more - less) / (2 * STEP), hessian[k], atol=1e-7)


def test_parameters_have_a_row_per_stage():
    robot = lw.load("two_link")
    path = np.linspace(0, 1, 22).reshape(11, 2)
    problem = optimal.Problem(
        robot,
        horizon=10,
        torque_limits=50.0,
        costs=[optimal.JointTracking(path, 2.0), optimal.Effort(1e-2)],
        terminal=[optimal.JointTracking([1.0, 2.0], 50.0)],
    )
    at = problem.where("joints.target")
    assert np.array_equal(problem.p[:-1, at], path[:-1])
    assert np.array_equal(problem.p[-1, at], [1.0, 2.0])
    assert np.array_equal(problem.p[[0, -1], problem.where("joints.weight")], [[2.0, 2.0], [50.0, 50.0]])
    other = problem.with_values({"joints.target": [3.0, 4.0]}, start=([0.1, 0.2], [0.0, 0.0]))
    assert np.array_equal(other.p[:, at], np.tile([3.0, 4.0], (11, 1)))
    assert other.key() == problem.key()
    assert np.array_equal(other.x0, [0.1, 0.2, 0, 0])
    assert np.array_equal(problem.p[-1, at], [1.0, 2.0])
    for values, message in (
        ({"joints.weight": -1.0}, "expected weights from 0 on, got -1"),
        ({"joints.target": [np.nan, 0.0]}, "expected finite numbers, got nan"),
        ({"joints.target": np.zeros((3, 2))}, r"expected shape \(2,\) or \(11, 2\), got \(3, 2\)"),
        ({"torque.lower": 1.0, "torque.upper": 0.0}, r"torque\.lower: 1 is 1 above torque\.upper 0"),
        ({"torque.lower": np.nan}, r"torque\.lower: expected numbers, got nan"),
    ):
        with pytest.raises(optimal.ProblemError, match=message):
            problem.table(values)
    with pytest.raises(lw.UnknownNameError, match=r"joints\.target"):
        problem.table({"joint.target": 1.0})


def test_targets_of_tips_are_poses():
    problem = arm_problem()
    turned = np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1.0]])
    p = problem.table({"tip.target": turned})
    assert np.allclose(p[0, problem.where("tip.position")], turned[:3, 3])
    half = np.sqrt(0.5)
    assert np.allclose(p[0, problem.where("tip.orientation")], [0, 0, half, half])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": []}, "at least one cost"),
        ({"start": ([0.0, np.nan], [0, 0])}, r"start: q: expected finite numbers, got nan at \[1\]"),
        ({"start": ([0.0], [0, 0])}, r"start: q: expected shape \(2,\), got \(1,\)"),
        ({"torque_limits": ([1.0, 2.0], [1.0, 1.5])}, "the lower limit 2 is 0.5 above the upper one 1.5"),
        ({"costs": [optimal.Effort(-1.0)]}, "effort: weight: expected finite numbers from 0 on, got -1"),
        ({"costs": [optimal.Effort(1), optimal.Effort(2)]}, "two are named 'effort'"),
        ({"terminal": [optimal.Effort(1)]}, "needs torques"),
        ({"limits": [optimal.TipLimits(1, -1)]}, "x: the lower limit 1 m is 2 m above the upper one -1 m"),
        ({"limits": [optimal.StateLimits(([0, 1], [1, 0]))]}, "is 1 above the upper one 0: no motion"),
        ({"costs": [optimal.TipTracking(2 * np.eye(4), 1.0, 1.0)]}, "no rotation"),
        ({"costs": 3}, "costs: expected a list of objects"),
        ({"costs": ["effort"]}, "costs: expected objects of linkwise.optimal, got str"),
        ({"torque_limits": "strong"}, "torque_limits: upper: expected numbers, got 'strong'"),
        ({"torque_limits": [1.0, 2.0, 3.0]}, r"expected one number or 2, got shape \(3,\)"),
        ({"horizon": 0}, "horizon: expected a whole number from 1 on, got 0"),
        ({"step": 0.0}, "step: expected finite numbers above 0"),
        ({"integrator": "euler"}, "rk4, semi_implicit_euler"),
        ({"motors": ["elbo"]}, "motors: no joint 'elbo'"),
        ({"motors": []}, "no joint with a motor"),
    ],
)
def test_bad_problems_are_refused(options, message):
    given = {"costs": [optimal.Effort(1.0)]} | options
    with pytest.raises(lw.LinkwiseError, match=message):
        optimal.Problem(lw.load("two_link"), **given)


def test_dry_friction_is_smooth_and_not_stiffer_than_the_steps():
    robot = lw.load("two_link").with_parameters(
        {"joint1.coulomb_friction": 5.0, "joint2.coulomb_friction": 2.0}
    )
    problem = optimal.Problem(robot, step=0.01, costs=[optimal.Effort(1.0)])
    q, tau = np.zeros(2), np.zeros(2)
    slow, fast = np.full(2, 1e-9), np.full(2, 20.0)
    smooth = problem.dynamics.robot
    assert np.allclose(
        smooth.forward_dynamics(q, slow, tau), robot.forward_dynamics(q, 0 * slow, tau), atol=1e-3
    )
    assert np.allclose(smooth.forward_dynamics(q, fast, tau), robot.forward_dynamics(q, fast, tau), rtol=1e-2)

    def amplification(robot):
        """Of q̇ in one step at rest; above 1 steps of this length are unstable."""
        return np.abs(
            np.linalg.eigvals(np.eye(2) + 0.01 * robot.forward_dynamics_derivatives(q, slow, tau)[1])
        ).max()

    assert amplification(smooth) < 1.0
    stiff = optimal.Problem(robot, step=0.01, costs=[optimal.Effort(1.0)], friction_speed=1e-3).dynamics.robot
    assert amplification(stiff) > 2.0


def test_constraints_are_part_of_the_dynamics():
    arm = lw.planar_chain(3)
    q = np.array([0.4, 1.0, 0.7])
    held = arm.with_constraints(
        [lw.Point("link3", np.asarray(arm.pose(q))[:3, 3])], passive=["joint2", "joint3"]
    )
    problem = optimal.Problem(held, step=0.01, start=(q, np.zeros(3)), costs=[optimal.Effort(1.0)])
    following = np.array(problem.next_state(problem.x0.tolist(), [2.0]), float)
    qdd = held.forward_dynamics(q, np.zeros(3), [2.0, 0.0, 0.0])
    assert np.allclose(following[3:], 0.01 * np.asarray(qdd), atol=1e-12)
    with pytest.raises(optimal.ProblemError, match="does not meet the constraints"):
        optimal.Problem(held, start=(q + 0.1, np.zeros(3)), costs=[optimal.Effort(1.0)])


def test_where_frames_are_held_is_a_parameter():
    """Another foothold, also one that moves along the horizon, needs no other code and gives its own motion."""
    arm = lw.planar_chain(4)
    q = np.array([0.4, 1.0, 0.7, -0.5])
    place = np.asarray(arm.pose(q, "link4"))[:3, 3]

    def problem(position):
        held = arm.with_constraints([lw.Point("link4", position)])
        return optimal.Problem(
            held, horizon=6, step=0.02, start=(q, np.zeros(4)), stabilization=20.0, costs=[optimal.Effort(1e-2)],
            terminal=[optimal.JointTracking(q, 1.0, velocity=0.0, velocity_weight=1.0)],
        )  # fmt: skip

    moved = place + [0.02, -0.01, 0.0]
    first, other = problem(place), problem(moved)
    assert first.key() == other.key()
    assert first.parameters["targets"] == 3
    aimed = first.with_values({"targets": moved})
    wanted, found = optimal.solve(other), optimal.solve(aimed)
    assert wanted.converged
    assert (found.tau == wanted.tau).all()
    assert found.cost != optimal.solve(first).cost
    kernels = vars(first.robot)["_optimal"]
    count = len(kernels)
    path = np.linspace(place, moved, 7)
    assert optimal.solve(first.with_values({"targets": path})).converged
    assert len(kernels) == count
    x, u = first.x0.tolist(), [0.1, 0.2, 0.0, -0.1]
    mine = np.array(aimed.next_state(x, u, aimed.p[0].tolist()), float)
    theirs = np.array(other.next_state(x, u), float)
    assert np.allclose(mine, theirs, atol=1e-13)
    assert not np.allclose(mine, np.array(first.next_state(x, u), float), atol=1e-6)


def test_limits_of_one_side_are_compared_with_those_of_the_same_quantity():
    """The lower limit of one joint is above the upper one of another: nothing contradicts itself."""
    given = {"costs": [optimal.Effort(1.0)], "start": ([0.0, 0.6], [0.0, 0.0])}
    sides = optimal.StateLimits(([-np.inf, 0.5], [0.2, np.inf]), None)
    box = optimal.TipLimits([-np.inf, 0.5, 0.0], [0.2, np.inf, 1.0])
    problem = optimal.Problem(lw.load("two_link"), limits=[sides, box], **given)
    other = problem.with_values({"state.position_lower": 0.4, "tip_box.upper": [0.1, 0.2]})
    assert np.array_equal(other.p[0, other.where("state.position_lower")], [0.4])
    with pytest.raises(optimal.ProblemError, match=r"tip_box\.lower: 0 is 0\.1 above tip_box\.upper -0\.1"):
        problem.with_values({"tip_box.upper": [0.3, -0.1]})


def wrong_values() -> list[tuple[optimal.Problem, dict[str, object], str]]:
    """Problems, values that they cannot have, and what is said."""
    given = {"horizon": 4, "torque_limits": 5.0, "start": ([0.1, 0.2], [0.0, 0.0])}
    tip = np.asarray(lw.load("puma560").pose(np.full(6, 0.3)))
    floating = lw.load("two_link").with_base("floating")
    arm = optimal.Problem(
        lw.load("two_link"),
        costs=[optimal.Effort(1.0), optimal.SphereAvoidance([1.0, 0.0, 0.0])],
        limits=[optimal.StateLimits(([-1, -1], [1, 1]), None), optimal.KeepOut([2.0, 0.0, 0.0], 0.1)],
        **given,
    )
    base = optimal.Problem(floating, costs=[optimal.JointTracking(floating.neutral)], horizon=4)
    wrist = optimal.Problem(
        lw.load("puma560"), horizon=4, costs=[optimal.Effort(1.0), optimal.TipTracking(tip, 1.0, 1.0)]
    )
    legs = optimal.Problem(
        floating, horizon=4, costs=[optimal.Effort(1.0)], limits=[optimal.FrictionCone(0.5)],
        contacts=optimal.ContactSchedule(["link2"]),
    )  # fmt: skip
    nothing = np.zeros(floating.nq)
    return [
        (arm, {"torque.lower": [5.0, 5.0], "torque.upper": [3.0, 3.0]}, "torque.lower: 5 is 2 above torque.upper 3"),
        (arm, {"torque.lower": [np.inf, 0.0]}, "nothing is above"),
        (arm, {"torque.upper": [np.nan, 0.0]}, "torque.upper: expected numbers, got (nan|NaN)"),
        (arm, {"effort.weight": [-1.0, 1.0]}, "effort.weight: expected weights from 0 on, got -1"),
        (arm, {"sphere.radius": [-0.5]}, "sphere.radius: expected numbers from 0 on, got -0.5"),
        (arm, {"sphere.margin": [-0.5]}, "sphere.margin: expected numbers from 0 on, got -0.5"),
        (arm, {"keep_out.radius": [-1.0]}, "keep_out.radius: expected numbers from 0 on, got -1"),
        (arm, {"state.position_lower": [0.0, 2.0]}, "state.position_lower: 2 is 1 above state.position_upper 1"),
        (base, {"joints.target": nothing}, "joints.target: root_joint: a quaternion of length 0 is no orientation"),
        (wrist, {"tip.orientation": np.zeros(4)}, "tip.orientation: .*a quaternion of length 0"),
        (legs, {"friction_cone.friction": [0.0]}, "friction_cone.friction: expected numbers above 0, got 0"),
        (legs, {"contacts.active": [0.5]}, "contacts.active: expected 0 or 1"),
    ]  # fmt: skip


def test_values_that_cannot_be_are_refused_in_one_problem_and_in_batches():
    """Batches were not checked: with a lower limit above the upper one they "converged" to torques beyond both."""
    for problem, values, message in wrong_values():
        with pytest.raises(optimal.ProblemError, match=message):
            problem.with_values(values)
        good = {name: problem.p[0, problem.where(name)] for name in values}
        several = {name: np.stack([good[name], np.asarray(value, float)]) for name, value in values.items()}
        with pytest.raises(optimal.ProblemError, match=message):
            optimal.solve_many(problem, values=several)
    for options, message in (
        ({"torque_limits": (np.inf, np.inf)}, "torque_limits: lower: no number is beyond"),
        ({"limits": [optimal.StateLimits((-np.inf, -np.inf), None)]}, "upper: no number is beyond"),
    ):
        with pytest.raises(optimal.ProblemError, match=message):
            optimal.Problem(lw.load("two_link"), costs=[optimal.Effort(1.0)], **options)
    floating = lw.load("two_link").with_base("floating")
    with pytest.raises(optimal.ProblemError, match=r"joints\.target: root_joint: a quaternion of length 0"):
        optimal.Problem(floating, costs=[optimal.JointTracking(0.0)])


def test_what_could_be_rows_of_stages_or_of_problems_is_refused():
    """A target for each of five problems with four steps was taken for one target that moves along the stages."""
    problem = optimal.Problem(
        lw.load("two_link"),
        horizon=4,
        costs=[optimal.Effort(1.0), optimal.JointTracking([0.0, 0.0])],
        torque_limits=False,
    )
    starts, targets = np.zeros((5, 4)), np.linspace(0.0, 0.5, 10).reshape(5, 2)
    with pytest.raises(
        optimal.ProblemError, match=r"joints\.target: \(5, 2\) may be a row for each of 5 problems"
    ):
        optimal.solve_many(problem, start=starts, values={"joints.target": targets})
    of_stages = optimal.solve_many(problem, start=starts, values={"joints.target": targets[None]})
    alone = optimal.solve(problem.with_values({"joints.target": targets}))
    assert all(states.tobytes() == alone.states.tobytes() for states in of_stages.states)
    apart = np.repeat(targets[:, None], 5, axis=1)
    of_problems = optimal.solve_many(problem, start=starts, values={"joints.target": apart})
    for k, target in enumerate(targets):
        one = optimal.solve(problem.with_values({"joints.target": target}))
        assert of_problems.states[k].tobytes() == one.states.tobytes()
