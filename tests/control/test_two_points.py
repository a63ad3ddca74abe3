"""Whole bodies that stand on two points: the force between these along their line is free."""

import numpy as np
import pytest
from scipy.optimize import minimize

import linkwise as lw
from linkwise import control
from linkwise.control.whole_body.mobilities import support_rows
from linkwise.control.whole_body.tasks import State
from linkwise.errors import LinkwiseError, ShapeError

POINTS = ((0.1, 0.0, -0.05), (-0.1, 0.02, -0.05))
AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 0))
STATES = 6


def leg() -> lw.Robot:
    links, joints, parent = (
        [lw.Link("base", lw.Inertia.from_com(5.0, (0, 0, 0), (0.1, 0.1, 0.1)))],
        [],
        "base",
    )
    for k, axis in enumerate(AXES):
        links.append(lw.Link(f"l{k}", lw.Inertia.from_com(0.6, (0.0, 0.01, -0.05), (3e-3, 3e-3, 2e-3))))
        place = lw.Transform.from_rpy((0.0, 0.02, -0.12))
        limits = lw.Limits(-2.5, 2.5, velocity=8.0, effort=200.0)
        joints.append(lw.Joint(f"j{k}", "revolute", parent, f"l{k}", place, axis, limits=limits))
        parent = f"l{k}"
    return lw.Robot("leg", links, joints).with_base("floating")


def least_cost(law, q, qdd, forces):
    """(cost of a solution, least one by scipy) over torques and forces that hold the support: a problem in which the
    force along the line is free."""
    robot, support = law.robot, law.supports[0]
    M, bias = robot.mass_matrix(q), robot.bias_torques(q, np.zeros(robot.dof))
    rows, wanted = (
        np.asarray(x, float) for x in support_rows(State(robot, q, np.zeros(robot.dof)), support, 0.0)
    )
    parts = [
        (1.0, robot.com_jacobian(q), 0.0),
        (0.5, robot.jacobian(q, "base")[:3], 0.0),
        (0.05, np.eye(12)[6:], 0.0),
    ]
    goal = [qdd[number] for number in range(3)]
    n = robot.dof
    # qdd = M⁻¹ (S τ + Jᵀ f − h), held: J q̈ = wanted
    inverse = np.linalg.inv(M)
    A, a0 = inverse @ np.hstack([np.eye(n)[:, 6:], rows.T]), -inverse @ bias
    held, target = rows @ A, wanted - rows @ a0

    def cost(x):
        a = A @ x + a0
        return 0.5 * sum(w * np.sum((J @ a - g) ** 2) for (w, J, _), g in zip(parts, goal, strict=True))

    def slope(x):
        a = A @ x + a0
        return sum(
            (w * A.T @ J.T @ (J @ a - g) for (w, J, _), g in zip(parts, goal, strict=True)), np.zeros(12)
        )

    C, c = support.pyramid()
    cones = np.zeros((2 * len(C), 12))
    cones[: len(C), 6:9], cones[len(C) :, 9:] = C, C
    both = np.concatenate([c, c])
    u, s, vt = np.linalg.svd(held)
    rank = int((s > 1e-9 * s[0]).sum())
    x0, Z = vt[:rank].T @ ((u.T @ target)[:rank] / s[:rank]), vt[rank:].T
    start = Z.T @ forces
    found = minimize(
        lambda z: cost(x0 + Z @ z), start, jac=lambda z: Z.T @ slope(x0 + Z @ z), method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda z: both - cones @ (x0 + Z @ z), "jac": lambda z: -cones @ Z}],
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    return cost(forces), found.fun


def test_the_force_along_the_line_of_two_points_is_free():
    """It was fixed: costs were up to several times the least, with the status "solved"."""
    robot, rng = leg(), np.random.default_rng(3)
    tasks = [
        control.CenterOfMassTask(frequency=0.0),
        control.PoseTask("base", "turn", weight=0.5, frequency=0.0),
        control.PostureTask(weight=0.05, frequency=0.0),
    ]
    limits = control.MotionLimits(torque=False, velocity=False, position=False)
    law = control.WholeBody(robot, tasks, limits, supports=[control.Support("l5", POINTS, friction=0.5)])
    assert law.method == "interior_point"
    for _ in range(STATES):
        q = robot.integrate(robot.neutral, np.concatenate([np.zeros(6), 0.3 * rng.normal(size=6)]))
        targets, goal = np.zeros(law.input_shapes()["targets"]), []
        for task, parts in zip(law.tasks, law.target_slices(), strict=True):
            wanted = 3.0 * rng.normal(size=parts[2].stop - parts[2].start)
            targets[parts[2]] = wanted
            if isinstance(task, control.PoseTask):
                targets[parts[0].stop - 1] = 1.0
            if task.posture:
                targets[parts[0]] = q
            goal.append(wanted[6:] if task.posture else wanted)
        solution, _ = law.solve(q, np.zeros(robot.dof), targets)
        assert solution.status == "solved"
        assert solution.slip < 1e-6
        ours, least = least_cost(law, q, goal, np.concatenate([solution.tau[6:], solution.forces.ravel()]))
        assert ours < least + 1e-5 * (1.0 + least)


@pytest.mark.parametrize("options", [{}, {"radius": 0.02}, {"normal": (0.3, 0.1, 1.0), "facets": 7}])
def test_a_foot_that_turns_is_not_pulled_apart(options):
    """Both points of a body that turns cannot rest: what holds them along their line was up to 10⁶ N."""
    robot, rng = leg(), np.random.default_rng(1)
    tasks = [control.CenterOfMassTask(frequency=0.0), control.PostureTask(frequency=0.0)]
    law = control.WholeBody(robot, tasks, supports=[control.Support("l5", POINTS, friction=0.6, **options)])
    q = robot.integrate(
        robot.neutral, np.concatenate([np.zeros((8, 6)), 0.3 * rng.normal(size=(8, 6))], axis=1)
    )
    solution, _ = law.solve(q, 0.2 * rng.normal(size=(8, robot.dof)), law.targets(q))
    assert (solution.status == "solved").all()
    assert solution.slip.max() < 1e-6
    assert np.abs(solution.forces).max() < 300.0


def test_two_points_differ():
    with pytest.raises(LinkwiseError, match="two that differ"):
        control.Support("l5", (POINTS[0], POINTS[0]))


def test_supports_on_one_body_do_not_stand_together():
    """They held each other with 10⁶ N where the foot turned, and with forces that nothing chose where it rested."""
    robot, rng = leg(), np.random.default_rng(2)
    tasks = [control.CenterOfMassTask(frequency=0.0), control.PostureTask(frequency=0.0)]
    ends = [
        control.Support("l5", POINTS[k : k + 1], friction=0.6, name=name)
        for k, name in enumerate(("heel", "toe"))
    ]
    law = control.WholeBody(robot, tasks, supports=ends)
    q = robot.integrate(robot.neutral, np.concatenate([np.zeros(6), 0.3 * rng.normal(size=6)]))
    qd = 0.2 * rng.normal(size=robot.dof)
    for stance in (None, [1.0, 1.0], [[1.0, 0.0], [1.0, 0.5]]):
        with pytest.raises(LinkwiseError, match="heel and toe are on one body"):
            law.solve(q, qd, law.targets(q), stance=stance)
    with pytest.raises(ShapeError, match=r"stance: expected shape \(\.\.\., 2\), got \(1,\)"):
        law.solve(q, qd, law.targets(q), stance=[1.0])
    for stance in ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0]):
        assert law.solve(q, qd, law.targets(q), stance=stance)[0].status == "solved"
