"""Robots of every shape for scenarios whose results are recorded, with odd numbers: nothing is one or symmetric."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import linkwise as lw

LAWS = {
    "joint1.stiffness": 5.3,
    "joint1.spring_reference": 0.37,
    "joint1.stribeck_friction": 0.61,
    "joint1.stribeck_speed": 0.33,
    "joint1.friction_speed": 0.07,
    "joint1.unmodelled_viscous": -0.21,
    "joint1.unmodelled_square": 0.17,
    "joint1.unmodelled_coulomb": -0.31,
    "joint1.unmodelled_speed": 0.27,
    "joint1.unmodelled_cos_1": 0.43,
    "joint1.unmodelled_sin_2": -0.19,
    "joint2.torque_offset": -0.83,
    "joint2.saturating_friction": 0.91,
    "joint2.saturating_speed": 0.23,
    "joint2.load_friction": 0.05,
    "joint2.ripple_speed": 0.71,
    "joint2.ripple_1_count": 5.0,
    "joint2.ripple_1_cos_0": 0.29,
    "joint2.ripple_1_sin_2": -0.13,
    "joint3.network_1_weight": 0.63,
    "joint3.network_1_position": 1.31,
    "joint3.network_1_speed": -0.73,
    "joint3.network_1_bias": 0.19,
    "joint3.compensated_mass": 0.41,
    "joint3.compensated_hx": 0.11,
    "joint3.compensated_hz": -0.07,
}


@cache
def two_link() -> lw.Robot:
    """A planar arm as the bundled one of this name, whose lengths and masses of one hide powers and factors."""
    links = [
        lw.Link("base"),
        lw.Link("link1", lw.Inertia.from_com(1.7, (0.31, 0.02, 0.0), (0.011, 0.023, 0.029))),
        lw.Link("link2", lw.Inertia.from_com(0.9, (0.27, -0.03, 0.0), (0.007, 0.013, 0.017))),
    ]
    first = lw.Transform.from_rpy((0.03, -0.02, 0.11), (-0.5 * np.pi, 0.0, 0.0))
    joints = [
        lw.Joint("joint1", "revolute", "base", "link1", first, (0.0, 0.0, 1.0)),
        lw.Joint(
            "joint2", "revolute", "link1", "link2", lw.Transform.from_rpy((0.73, 0.0, 0.0)), (0.0, 0.0, 1.0)
        ),
    ]
    tip = lw.Frame("tip", "link2", lw.Transform.from_rpy((0.58, 0.04, 0.0)))
    return lw.Robot("two odd links", links, joints, frames=[tip])


@cache
def chain() -> lw.Robot:
    """Three joints that turn and slide, with friction and rotors."""
    return lw.random_robot(11, 3, friction=True, rotor=True, gravity=(0.7, -1.9, -9.3))


@cache
def tree() -> lw.Robot:
    """Five joints on branches."""
    return lw.random_robot(5, 5, tree=True, friction=True, rotor=True)


@cache
def with_laws() -> lw.Robot:
    """Three joints that turn, with every law of joints."""
    return lw.random_robot(3, 3, joints="R", friction=True, rotor=True).with_parameters(LAWS)


@cache
def floating() -> lw.Robot:
    """A floating base with three joints on branches."""
    return lw.random_robot(17, 3, tree=True, joints="R", rotor=True).with_base("floating")


@cache
def planar() -> lw.Robot:
    """A base that moves in the plane, with two joints."""
    return lw.random_robot(23, 2, friction=True).with_base("planar")


@cache
def odd_joints() -> lw.Robot:
    """A ball joint, a screw, a slide and a fixed link between them."""
    rng = np.random.default_rng(29)
    types = ("ball", "helical", "fixed", "prismatic")
    links, joints = [lw.Link("base")], []
    for k, kind in enumerate(types, 1):
        place = lw.Transform.from_rpy(rng.uniform(-0.3, 0.3, 3), rng.uniform(-2.0, 2.0, 3))
        pitch = 0.013 if kind == "helical" else 0.0
        joints.append(
            lw.Joint(f"j{k}", kind, links[-1].name, f"body{k}", place, (0.48, -0.6, 0.64), pitch=pitch)
        )
        links.append(lw.Link(f"body{k}", _body(rng)))
    tool = lw.Frame("tool", "body4", lw.Transform.from_rpy((0.11, -0.07, 0.23), (0.3, -0.2, 0.7)))
    return lw.Robot("odd joints", links, joints, frames=[tool])


def _body(rng: np.random.Generator) -> lw.Inertia:
    total = lw.Inertia()
    for corner in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)):
        place = 0.1 * np.array(corner) + rng.uniform(-0.05, 0.05, 3)
        total = total + lw.Inertia.from_com(float(rng.uniform(0.2, 0.9)), place, (0.0, 0.0, 0.0))
    return total


@cache
def coupled() -> lw.Robot:
    """A joint that follows another one, a motor of two joints and limits."""
    robot = limited(lw.random_robot(31, 4, joints="R", friction=True))
    robot = robot.with_constraints([lw.Coupling("joint3", "joint2", -0.6, 0.15)])
    motor = lw.Motor("both", {"joint1": 1.4, "joint4": -0.7}, 0.13, 0.43, (0.47, 0.71), offset=0.21)
    return robot.with_motors([motor])


@cache
def linkage() -> lw.Robot:
    """A closed loop, with a joint that has no motor."""
    robot = lw.random_robot(37, 5, joints="R", tree=True, friction=True)
    q = np.array([0.3, -0.4, 0.5, 0.2, -0.6])
    first, last = robot.links[-2].name, robot.links[-1].name
    at = robot.pose(q, first)
    gap = np.linalg.inv(at) @ robot.pose(q, last)[:, 3]
    return robot.with_constraints(
        [
            lw.Point(last, first, offset=tuple(gap[:3]), name="pin"),
            lw.Point(first, tuple(at[:3, 3]), compliance=0.03),
        ],
        passive=("joint4",),
    )


def limited(robot: lw.Robot) -> lw.Robot:
    """The same with limits of all joints, each its own."""
    joints = [
        replace(joint, limits=lw.Limits(-1.1 - 0.2 * k, 1.3 + 0.1 * k, 1.7 + 0.3 * k, 40.0 + 7.0 * k))
        for k, joint in enumerate(robot.joints, 1)
    ]
    return lw.Robot(robot.name, robot.links, joints, gravity=robot.gravity, frames=robot.frames)


@cache
def elastic() -> lw.Robot:
    """Two of three joints are elastic."""
    robot = lw.random_robot(41, 3, joints="R", friction=True, rotor=True)
    return robot.with_elastic_joints(
        {"joint1": lw.Elastic(210.0, 1.3, 0.17), "joint3": lw.Elastic(95.0, 0.7, 0.09)}
    )


@cache
def swimmer() -> lw.Robot:
    """In water that flows."""
    return lw.random_robot(43, 2, joints="R").with_fluid(lw.Fluid(870.0, 0.21, (0.3, -0.2, 0.1)))


@cache
def touching() -> lw.Robot:
    """An arm whose tip and elbow may touch the ground, with a stop and a tendon."""
    arm = limited(lw.random_robot(47, 3, joints="R", friction=True))
    return arm.with_contacts(
        [
            lw.Contact("link3", radius=0.03, offset=(0.05, -0.02, 0.11), friction=0.63, restitution=0.12),
            lw.Contact("link2", radius=0.05, friction=0.41, stiffness=3100.0, damping=17.0),
            lw.Ground(0.7, -0.23),
            lw.Stop("joint2", 0.2),
            lw.Tendon({"joint1": 0.07, "joint3": -0.05}, lower=-0.04, upper=0.05, name="wire"),
        ]
    )


ROBOTS = {
    each.__name__: each
    for each in (
        *(chain, tree, with_laws, floating, planar, odd_joints),
        *(coupled, linkage, elastic, swimmer, touching),
    )
}


def states(robot: lw.Robot, count: int = 3, seed: int = 1) -> dict[str, np.ndarray]:
    """q, qd, qdd and tau (count, ...): positions near the neutral one, quaternions of unit length."""
    rng = np.random.default_rng([seed, robot.dof])
    shape = (count, robot.dof)
    steps = rng.uniform(-1.1, 1.1, shape)
    q = np.asarray(robot.integrate(np.broadcast_to(robot.neutral, (count, robot.nq)), steps))
    return {
        "q": q,
        "qd": rng.uniform(-2.0, 2.0, shape),
        "qdd": rng.uniform(-3.0, 3.0, shape),
        "tau": rng.uniform(-15.0, 15.0, shape),
    }
