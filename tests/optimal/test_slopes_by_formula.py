"""Derivatives by formula, beside differences: velocities and accelerations of held frames, errors of positions, and
equations of motion as seen from a floating base."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.algorithms import coordinates, derivatives
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.optimal.dynamics import Dynamics
from linkwise.optimal.free_joints import seen_from_base
from strategies import body, direction, pose

STEP = 1e-6
DIFFERENCES = 2e-8  # relative


def chain(seed: int, kinds: list[str], **options) -> lw.Robot:
    """Joints of these types one after the other, each with a leaf of its own beside it."""
    rng = np.random.default_rng(seed)
    links, joints = [lw.Link("base", body(rng))], []
    for k, kind in enumerate(kinds):
        axis = {} if kind in ("ball", "floating") else {"axis": direction(rng)}
        if kind == "helical":
            axis["pitch"] = 0.2
        joints.append(lw.Joint(f"joint{k}", kind, links[-1].name, f"link{k}", pose(rng), **axis))
        links.append(lw.Link(f"link{k}", body(rng)))
        leaf = lw.Joint(f"beside{k}", "revolute", f"link{k}", f"leaf{k}", pose(rng), axis=direction(rng))
        joints.append(leaf)
        links.insert(-1, lw.Link(f"leaf{k}", body(rng)))
    return lw.Robot("chain", links, joints, **options)


CHAINS = [
    ["floating", "revolute", "prismatic", "revolute"],
    ["revolute", "ball", "helical", "revolute"],
    ["prismatic", "revolute", "floating", "ball", "revolute"],
]


def stepped(function, robot, q, qd, step, way):
    """The change of a function along a direction of (q, q̇, h)."""
    n, ends = robot.dof, []
    for sign in (1.0, -1.0):
        change = sign * STEP * way
        moved = np.asarray(robot.integrate(q, change[:n])).tolist()
        rates = (qd + change[n : 2 * n]).tolist()
        ends.append(np.array(function(moved, rates, step + change[2 * n]), float))
    return (ends[0] - ends[1]) / (2 * STEP)


@pytest.mark.parametrize("kinds", CHAINS, ids=["walks", "fixed", "mixed"])
def test_slopes_of_held_frames_are_those_of_differences(kinds):
    robot, rng = chain(3, kinds), np.random.default_rng(5)
    n = robot.dof
    frames = [f"link{len(kinds) - 1}", f"leaf{len(kinds) - 2}", "base"]
    q = np.asarray(robot.integrate(robot.neutral, rng.normal(size=n)))
    qd, qdd = rng.normal(size=(2, n))
    ways = rng.normal(size=(3, 2 * n + 1))
    for hold in ("velocity", "acceleration"):
        for surface in (False, True):
            schedule = optimal.ContactSchedule(frames, 1.0, surface=surface, hold=hold, damping=7.0)
            problem = optimal.Problem(
                robot,
                horizon=4,
                step=0.04,
                costs=[optimal.Effort(1.0)],
                contacts=schedule,
                torque_limits=False,
            )
            d: Dynamics = replace(problem.dynamics, timed=True)

            def rates(q, qd, h, d=d, schedule=schedule):
                return schedule.rates(replace(d, step=h), q, qd, qdd.tolist())

            slopes = schedule.rate_slopes(d, q.tolist(), qd.tolist(), qdd.tolist())
            assert slopes is not None
            found = np.array(slopes, float)
            assert found.shape == (schedule.rows, 2 * n + 1)
            for way in ways:
                wanted = stepped(rates, robot, q, qd, d.step, way)
                size = np.abs(found).max()
                np.testing.assert_allclose(
                    found @ way, wanted, atol=DIFFERENCES * size, err_msg=f"{hold} {surface}"
                )


def test_slopes_of_errors_are_those_of_differences_up_to_half_a_turn():
    robot, rng = chain(7, ["floating", "ball", "revolute"]), np.random.default_rng(2)
    links, n = robot_links(robot), robot.dof
    start = np.asarray(robot.integrate(robot.neutral, rng.normal(size=n)))
    for angle in (1e-9, 1e-3, 0.3, 0.499, 0.501, 1.0, 2.0, 3.1):
        change = rng.normal(size=n)
        for at in (0, 7):  # of the floating joint, of the ball joint behind a leaf
            change[at : at + 3] *= angle / np.linalg.norm(change[at : at + 3])
        end = np.asarray(robot.integrate(start, change))
        slopes = np.array(coordinates.difference_slopes(links, start.tolist(), end.tolist()), float)
        for way in rng.normal(size=(2, n)):
            ends = [robot.difference(start, robot.integrate(end, sign * STEP * way)) for sign in (1, -1)]
            wanted = (np.asarray(ends[0]) - np.asarray(ends[1])) / (2 * STEP)
            np.testing.assert_allclose(slopes @ way, wanted, atol=5e-8, err_msg=f"{angle}")


def robot_links(robot):
    from linkwise.functions.table import mechanism_of

    return mechanism_of(robot)


def test_equations_seen_from_a_floating_base_are_the_same():
    """Its joint is mounted at an angle, and gravity has another direction."""
    robot = chain(4, ["floating", "revolute", "prismatic"], gravity=(1.0, -2.0, -9.0))
    links, n = robot_links(robot), robot.dof
    sizes = {"q": robot.nq, "qd": n, "qdd": n}
    shapes = {"here": (n, 2 * n), "seen": (n, 2 * n)}

    def both(q, qd, qdd):
        found = {}
        for name, (own, at) in {"here": (links, q), "seen": seen_from_base(links, q)}.items():
            grouped = [own.grouped(list(at), positions=True), own.grouped(list(qd)), own.grouped(list(qdd))]
            by_q, by_qd = derivatives.inverse_dynamics_derivatives(own, *grouped)
            found[name] = [[*a, *b] for a, b in zip(by_q, by_qd, strict=True)]
        return found

    build = partial(trace, both, sizes, shapes)
    kernel = Kernel(
        "slopes", sizes.items(), shapes.items(), "float64", lambda dtype: build(dtype=dtype), None
    )
    rng = np.random.default_rng(1)
    q = np.asarray(robot.integrate(robot.neutral, rng.normal(size=n)))
    given = SimpleNamespace(q=q, qd=rng.normal(size=n), qdd=rng.normal(size=n))
    here, seen = (np.asarray(out) for out in kernel(given.q, given.qd, given.qdd))
    assert np.abs(here[:, :3]).max() > 1.0  # gravity turns as seen from the base
    np.testing.assert_allclose(seen, here, atol=1e-12 * np.abs(here).max())
