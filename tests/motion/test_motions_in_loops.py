"""Robots with constraints: motions of joints that these hold together are refused, not given with open loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.errors import ConstraintError, ModelError
from linkwise.identify import Log, excite, identify, identify_payload

LIMITS = lw.Limits(-3.0, 3.0, velocity=2.0, effort=200.0)
Q = np.array([0.3, 0.7, -0.5, 0.4])


def chain() -> lw.Robot:
    """Four links in a plane, and a hand that a joint of its own turns."""
    inertia = lw.Inertia.from_com(1.0, (0.25, 0, 0), (0.01, 0.02, 0.02))
    links = [lw.Link("base"), *(lw.Link(f"link{k}", inertia) for k in range(4)), lw.Link("tip")]
    joints = [
        lw.Joint(
            f"joint{k}", "revolute", links[k].name, f"link{k}", lw.Transform.from_rpy((0.5 * (k > 0), 0, 0)), (0, 0, 1),
            limits=LIMITS,
        )
        for k in range(4)
    ]  # fmt: skip
    joints.append(lw.Joint("end", "fixed", "link3", "tip", lw.Transform.from_rpy((0.5, 0, 0))))
    return lw.Robot("chain", links, joints)


def held() -> lw.Robot:
    """Its third link is held where it is: joints 0 to 2 move together, the hand is free."""
    free = chain()
    return free.with_constraints(
        [lw.Point("link2", free.pose(Q, frame="link3")[:3, 3], offset=(0.5, 0, 0), name="ring")]
    )


def test_joints_that_a_constraint_holds_are_not_moved_one_by_one():
    robot, target = held(), chain().pose(Q + 0.1)
    for call in (
        lambda: motion.inverse_kinematics(robot, target),
        lambda: robot.inverse_kinematics(target, frame="link2"),
        lambda: motion.reach_frames(robot, {"tip": target}),
        lambda: motion.line(robot, chain().pose(Q), target, duration=1.0).at(0.5),
        lambda: motion.plan(robot, Q, Q + 0.1),
    ):
        with pytest.raises(ModelError, match=r"'ring'.*joint0.*robot\.lock"):
            call()


def test_the_other_joints_move():
    """What lies outside of all loops: the hand, or everything once the joints of the loop are locked."""
    robot = held()
    loop = lw.Robot("two", [*_arm_links(), lw.Link("rod", _arm_links()[1].inertia)], _arm_joints())
    loop = loop.with_constraints([lw.Point("rod", [0.0, 1.0, 0.0], offset=(0.5, 0, 0), name="rod's end")])
    target = loop.pose([0.2, 0.3, 0.0], frame="upper")
    found = motion.inverse_kinematics(loop, target, frame="upper", task="pose").q
    assert np.abs(loop.pose(found, frame="upper") - target).max() < 1e-9
    locked = robot.lock({f"joint{k}": Q[k] for k in range(3)})
    assert not locked.constraints
    target = locked.pose([0.7])
    assert motion.inverse_kinematics(locked, target).q == pytest.approx([0.7])


def test_locked_joints_take_constraints_and_contacts_along():
    """What no longer moves is left out, what still moves stays; positions that open a loop are refused."""
    robot = held()
    with pytest.raises(ModelError, match=r"break the constraint 'ring' by 0\.\d+ m"):
        robot.lock({f"joint{k}": Q[k] + 0.1 for k in range(3)})
    assert robot.lock({"joint0": Q[0]}).constraint_rows == 3
    ball = {"radius": 0.02, "other_shapes": [lw.Shape.sphere("link2", 0.05)]}
    touching = robot.with_contacts([lw.Contact("tip", "link2", **ball), lw.Contact("tip", radius=0.02)])
    assert touching.lock({"joint3": 0.2}).contact_names == ("tip",)
    assert touching.lock({f"joint{k}": Q[k] for k in range(3)}).contact_names == ("tip:link2", "tip")
    assert not touching.lock(dict(zip(robot.joint_names, Q, strict=True))).contact_parts
    welded = chain().with_constraints([lw.Weld("tip", chain().pose(Q), name="weld")])
    with pytest.raises(ModelError, match="'weld' by"):
        welded.lock(dict(zip(robot.joint_names, Q + [0, 0, 0, 0.01], strict=True)))
    assert not welded.lock(dict(zip(robot.joint_names, Q, strict=True))).constraints


def _arm_links() -> list[lw.Link]:
    inertia = lw.Inertia.from_com(1.0, (0.25, 0, 0), (0.01, 0.02, 0.02))
    return [lw.Link("base"), lw.Link("lower", inertia), lw.Link("upper", inertia)]


def _arm_joints() -> list[lw.Joint]:
    bent = lw.Transform.from_rpy((0.5, 0, 0))
    return [
        lw.Joint("first", "revolute", "base", "lower", axis=(0, 0, 1), limits=LIMITS),
        lw.Joint("second", "revolute", "lower", "upper", bent, (0, 0, 1), limits=LIMITS),
        lw.Joint(
            "swing", "revolute", "base", "rod", lw.Transform.from_rpy((0, 0.5, 0)), (0, 0, 1), limits=LIMITS
        ),
    ]


def test_paths_keep_constraints_or_are_refused():
    """Along a path that keeps it the times are those of its torques; a path that breaks it has none."""
    robot = held()
    hand = np.array([0.0, 0.0, 0.0, 1.0])
    for direction, keeps in ((hand, True), (np.ones(4), False)):
        path = Q + np.linspace(0, 0.5, 5)[:, None] * direction
        moved = motion.quintic(path[0], path[-1], 2.0)
        calls = [
            lambda path=path: motion.time_optimal(robot, path),
            lambda path=path: motion.time_optimal(robot, np.stack([path, path])),
            lambda path=path: motion.time_optimal(robot, path, jerk=200.0),
            lambda m=moved: motion.check(m, robot),
            lambda m=moved: motion.fastest(m, robot),
        ]
        for call in calls:
            if keeps:
                call()
            else:
                with pytest.raises(ConstraintError, match=r"'ring'.*meet_constraints"):
                    call()
    soft = chain().with_constraints(
        [lw.Point("link2", robot.constraints[0].to, offset=(0.5, 0, 0), compliance=0.1)]
    )
    motion.time_optimal(soft, Q + np.linspace(0, 0.5, 5)[:, None] * np.ones(4))


def test_recordings_of_joints_that_constraints_hold_are_refused():
    t = np.arange(0, 2, 0.01)
    q = Q + 0.2 * np.sin(np.outer(t, [3.0, 4.0, 5.0, 6.0]))
    log = Log(t, q, tau=np.zeros_like(q))
    for call in (
        lambda: identify(held(), log),
        lambda: identify_payload(held(), log, log),
        lambda: excite(held(), duration=2.0),
    ):
        with pytest.raises(ModelError, match="constraints of chain are not measured"):
            call()
