"""Motions through contact without a schedule: steps of the contact simulation inside the solver."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal


def inertia(mass, down=0.0):
    return lw.Inertia.from_com(mass, (0.0, 0.0, -down), (0.01, 0.01, 0.01))


def pusher():
    """A slider with a motor, and a box before it that only it can move."""
    links = [lw.Link("base"), lw.Link("pusher", inertia(1.0)), lw.Link("box", inertia(0.5))]
    joints = [
        lw.Joint(name, "prismatic", "base", child, axis=(1, 0, 0))
        for name, child in (("push", "pusher"), ("slide", "box"))
    ]
    robot = lw.Robot("pushing", links, joints).with_parameters({"slide.viscous_friction": 1.0})
    shapes = {"shapes": [lw.Shape.sphere("box", 0.05)], "other_shapes": [lw.Shape.sphere("pusher", 0.05)]}
    return robot.with_contacts([lw.Contact("box", "pusher", **shapes)])


def pushing(contacts):
    return optimal.Problem(
        pusher(),
        horizon=40,
        step=0.05,
        start=([0.0, 0.3], [0.0, 0.0]),
        motors=["push"],
        costs=[optimal.Effort(1e-3)],
        terminal=[optimal.JointTracking([0.0, 0.8], [0.0, 50.0], velocity=0.0, velocity_weight=1.0)],
        torque_limits=[5.0],
        contacts=contacts,
    )


def hopper():
    """A leg with two motors below a trunk that moves in a plane and does not turn."""
    links = [lw.Link("base"), lw.Link("x", inertia(1e-3)), lw.Link("trunk", inertia(3.0))]
    links += [lw.Link("thigh", inertia(0.3, 0.1)), lw.Link("shank", inertia(0.2, 0.1)), lw.Link("foot")]
    below = lw.Transform.from_rpy((0.0, 0.0, -0.2))
    joints = [
        lw.Joint("forward", "prismatic", "base", "x", axis=(1, 0, 0)),
        lw.Joint("up", "prismatic", "x", "trunk", axis=(0, 0, 1)),
        lw.Joint("hip", "revolute", "trunk", "thigh", axis=(0, 1, 0)),
        lw.Joint("knee", "revolute", "thigh", "shank", below, (0, 1, 0)),
        lw.Joint("sole", "fixed", "shank", "foot", below),
    ]
    return lw.Robot("hopper", links, joints).with_contacts([lw.Contact("foot", radius=0.02, friction=0.8)])


def replayed(robot, found, step):
    """The motion that the contact simulation makes of the torques."""
    q, qd, rows = found.q[0], found.qd[0], [found.q[0]]
    for tau in found.tau:
        torques = np.zeros(robot.dof)
        torques[list(found.problem.dynamics.driven)] = tau
        q, qd, _ = robot.contact_step(q, qd, torques, step=step)
        rows.append(q)
    return np.array(rows)


def test_a_box_is_pushed_although_nothing_touches_it_at_first():
    """Without smoothing the box has no derivative and stays; with it the pusher goes there and pushes."""
    sharp = optimal.solve(pushing(optimal.ThroughContact(1e-6, 1e-6, 1)))
    assert abs(sharp.q[-1, 1] - 0.3) < 1e-9
    assert abs(sharp.tau).max() < 1e-9
    for smoothing in (0.3, 1.0):
        found = optimal.solve(pushing(optimal.ThroughContact(smoothing)), iterations=200)
        assert abs(found.q[-1, 1] - 0.8) < 0.01
        assert found.cost < 1e-3 * sharp.cost
        assert abs(found.tau).max() <= 5.0
        assert np.abs(replayed(pusher(), found, 0.05) - found.q).max() < 1e-9


def test_a_leg_finds_its_steps():
    """A leg moves its trunk by 0.4 m, more than it reaches, without a schedule: it hops."""
    robot = hopper()
    start = np.array([0.0, 0.0, 0.6, -1.2])
    start[1] = 0.02 - np.asarray(robot.pose(start, "foot"))[2, 3]
    goal = start + [0.4, 0.0, 0.0, 0.0]
    problem = optimal.Problem(
        robot,
        horizon=40,
        step=0.02,
        start=(start, np.zeros(4)),
        motors=["hip", "knee"],
        costs=[
            optimal.Effort(1e-3),
            optimal.JointTracking(goal, [0, 0, 0.1, 0.1], velocity=0.0, velocity_weight=0.005),
        ],
        terminal=[
            optimal.JointTracking(goal, [100, 50, 5, 5], velocity=0.0, velocity_weight=[1, 1, 0.1, 0.1])
        ],
        torque_limits=20.0,
        contacts=optimal.ThroughContact(0.1),
    )
    found = optimal.solve(problem, iterations=300)
    assert found.converged, found.message
    assert np.abs(found.q[-1] - goal).max() < 0.01
    gaps = np.asarray(robot.contact_gaps(found.q))[:, 0]
    assert (gaps > 0.005).any()  # it left the ground
    assert gaps.min() > -0.01
    assert np.abs(replayed(robot, found, 0.02) - found.q).max() < 1e-7
    many = optimal.solve_many(problem, start=np.stack([problem.x0] * 2), iterations=300)
    assert np.abs(many.cost - found.cost).max() < 1e-9


def test_rounds_go_from_the_first_smoothing_to_the_sharpest_by_equal_factors():
    for rounds in (2, 3, 6):
        stages = np.array(optimal.ThroughContact(0.4, 0.002, rounds).stages())
        assert stages.shape == (rounds,)
        np.testing.assert_allclose(stages[[0, -1]], [0.4, 0.002], rtol=1e-12)
        np.testing.assert_allclose(stages[1:] / stages[:-1], (0.002 / 0.4) ** (1 / (rounds - 1)), rtol=1e-12)
    assert optimal.ThroughContact(0.4, 0.002, 1).stages() == [0.4]


def test_what_cannot_be_right_is_refused():
    with pytest.raises(optimal.ProblemError, match="sharpest"):
        optimal.ThroughContact(0.1, 0.2)
    problem = pushing(optimal.ThroughContact())
    with pytest.raises(optimal.ProblemError, match="smoothing"):
        problem.with_values({"contacts.smoothing": 0.0})
    with pytest.raises(optimal.ProblemError, match="touches nothing"):
        optimal.Problem(lw.load("two_link"), costs=[optimal.Effort()], contacts=optimal.ThroughContact())
    with pytest.raises(optimal.ProblemError, match="no contacts"):
        optimal.Problem(pusher(), costs=[optimal.ContactForces()], contacts=optimal.ThroughContact())
    with pytest.raises(optimal.ProblemError, match="without contacts"):
        optimal.Predictive(problem)


def test_free_motion_of_a_robot_that_touches_things_is_refused():
    """Plans would go through what it touches; without contacts, or where only its joints stop, there are plans."""
    robot, free = hopper(), hopper().with_contacts(())
    for make in (
        lambda each: optimal.Problem(each, costs=[optimal.Effort()]),
        lambda each: optimal.Mppi(each, costs=[optimal.Effort()], samples=64),
        optimal.reaching,
        optimal.Predictive,
    ):
        with pytest.raises(optimal.ProblemError, match=r"foot.*free motion ignores.*with_contacts"):
            make(robot)
        make(free)
    arm = lw.load("panda")
    assert optimal.Problem(arm.with_contacts((), stops=True), costs=[optimal.Effort()]).nu == 7


@pytest.mark.parametrize("friction", [True, False])
def test_a_step_is_that_of_the_robot_with_and_without_its_friction(friction):
    rng = np.random.default_rng(4)
    for robot in (
        pusher(),
        hopper().with_parameters({"knee.viscous_friction": 0.4, "hip.viscous_friction": 0.2}),
    ):
        through = optimal.ThroughContact(0.2, 0.2, 1)
        problem = optimal.Problem(
            robot,
            horizon=2,
            step=0.03,
            start=(robot.neutral, np.zeros(robot.dof)),
            costs=[optimal.Effort(1.0)],
            friction=friction,
            contacts=through,
        )
        for _ in range(6):
            q, qd, tau = (scale * rng.normal(size=robot.dof) for scale in (0.3, 1.0, 2.0))
            given = q.tolist(), qd.tolist(), tau.tolist()
            after, speed = through.stepped(problem.dynamics, *given)
            wanted = robot.contact_step(q, qd, tau, step=0.03, friction=friction)[:2]
            np.testing.assert_allclose(np.array(after, float), wanted[0], atol=1e-7)
            np.testing.assert_allclose(np.array(speed, float), wanted[1], atol=1e-6)
