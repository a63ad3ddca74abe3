"""Robots of the benchmarks of contact, and states of simulations in which they are kicked and fall."""

from __future__ import annotations

import warnings

import numpy as np

import linkwise as lw
from linkwise.model.inertia import LABELS

FRICTION = 0.8
CORNERS = ((-0.06, -0.03), (-0.06, 0.03), (0.12, -0.03), (0.12, 0.03))
"""Of a foot, about the ankle [m]."""
MASS_RATIO = 1e4


def branch(parent: str, name: str, at, parts, links, joints) -> None:
    """Add a leg: links with their axis, length and mass."""
    for part, axis, length, mass in parts:
        label = f"{name}_{part}"
        inertia = mass * np.array([0.005 + length**2 / 12.0, 0.005 + length**2 / 12.0, 0.002])
        links.append(lw.Link(label, lw.Inertia.from_com(mass, (0, 0, -0.5 * length), inertia)))
        place = lw.Transform.from_rpy(at)
        joints.append(lw.Joint(f"{label}_joint", "revolute", parent, label, place, axis))
        parent, at = label, (0.0, 0.0, -length)


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def legs() -> tuple[lw.Robot, np.ndarray]:
    """A body with four legs of three joints, and how it stands."""
    links, joints = [lw.Link("body", lw.Inertia.from_com(8.0, (0, 0, 0), (0.1, 0.2, 0.25)))], []
    parts = (("side", X, 0.0, 0.5), ("hip", Y, 0.2, 0.5), ("knee", Y, 0.2, 0.5))
    for leg, at in enumerate(((0.2, 0.1, 0), (0.2, -0.1, 0), (-0.2, 0.1, 0), (-0.2, -0.1, 0))):
        branch("body", f"leg{leg}", at, parts, links, joints)
    feet = [
        lw.Contact(f"leg{leg}_knee", offset=(0, 0, -0.2), radius=0.02, friction=FRICTION) for leg in range(4)
    ]
    robot = lw.Robot("legs", links, joints).with_base("floating").with_contacts(feet)
    return robot, np.tile([0.0, 0.3, -0.6], 4)


def biped() -> tuple[lw.Robot, np.ndarray]:
    """A body with two legs of six joints and flat feet with four corners each."""
    links, joints = [lw.Link("body", lw.Inertia.from_com(20.0, (0, 0, 0.2), (0.6, 0.5, 0.2)))], []
    parts = (
        ("yaw", Z, 0.0, 1.0),
        ("roll", X, 0.0, 1.0),
        ("pitch", Y, 0.35, 4.0),
        ("knee", Y, 0.35, 3.0),
        ("ankle", Y, 0.0, 0.3),
        ("foot", X, 0.05, 0.8),
    )
    for side, at in (("left", (0.0, 0.1, 0.0)), ("right", (0.0, -0.1, 0.0))):
        branch("body", side, at, parts, links, joints)
    points = [(x, y, -0.05) for x, y in CORNERS]
    feet = [lw.Contact(f"{side}_foot", points=points, friction=FRICTION) for side in ("left", "right")]
    robot = lw.Robot("biped", links, joints).with_base("floating").with_contacts(feet)
    return robot, np.tile([0.0, 0.0, -0.3, 0.6, -0.3, 0.0], 2)


def box() -> tuple[lw.Robot, np.ndarray]:
    """A box that is thrown onto a table."""
    link = lw.Link("box", lw.Inertia.from_com(2.0, (0, 0, 0), (0.0167, 0.0083, 0.0217)))
    robot = lw.Robot("box", [link], []).with_base("floating")
    return robot.with_contacts([lw.Contact.box("box", (0.2, 0.3, 0.1), friction=FRICTION)]), np.zeros(0)


def ratio(heavy_below: bool = False) -> tuple[lw.Robot, np.ndarray]:
    """Two bodies with a slide between them whose masses differ by 10⁴; the lower one is a box on the ground."""
    masses = (100.0, 0.01) if heavy_below else (0.01, 100.0)
    lower, upper = (lw.Inertia.from_com(m, (0, 0, 0), m * np.array([0.0108, 0.0042, 0.0108])) for m in masses)
    links = [lw.Link("lower", lower), lw.Link("upper", upper)]
    place = lw.Transform.from_rpy((0.0, 0.0, 0.1))
    joints = [
        lw.Joint("slide", "prismatic", "lower", "upper", place, Z, limits=lw.Limits(lower=0.0, upper=0.05))
    ]
    robot = lw.Robot("ratio", links, joints).with_base("floating")
    contacts = [lw.Contact.box("lower", (0.2, 0.3, 0.1), friction=FRICTION)]
    return robot.with_contacts(contacts, stops=True), np.zeros(1)


BUILT_IN = {
    "legs": legs,
    "biped": biped,
    "box": box,
    "ratio": ratio,
    "ratio_below": lambda: ratio(heavy_below=True),
}


def loaded(text: str) -> tuple[lw.Robot, np.ndarray]:
    """A robot of this file by name, or from FILE:FRAME,FRAME,…:RADIUS:ANGLE,ANGLE,… (angles that one leg stands with).

    RADIUS may be followed by the corners of a flat foot in its frame: RADIUS@X,Y,Z/X,Y,Z/….
    """
    if text in BUILT_IN:
        return BUILT_IN[text]()
    path, feet, radius, angles = text.split(":")
    radius, _, corners = radius.partition("@")
    points = [[float(x) for x in corner.split(",")] for corner in corners.split("/")] if corners else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = lw.load(path, base="floating")
        except lw.ModelError:  # the file has a free joint of its own
            robot = lw.load(path)
    robot = possible(robot)
    touching = [
        lw.Contact(foot, radius=float(radius), friction=FRICTION, points=points) for foot in feet.split(",")
    ]
    stand = np.array([float(x) for x in angles.split(",")])
    return robot.with_contacts(touching), np.resize(stand, robot.dof - 6)


def possible(robot: lw.Robot) -> lw.Robot:
    """The robot with moments of inertia that a body can have, which MuJoCo asks for."""
    values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint in robot.moving_joints:
        names = [f"{joint.body_link}.{name}" for name in LABELS]
        while lw.Inertia.from_parameters([values[name] for name in names]).violations():
            more = 0.02 * sum(values[names[k]] for k in (4, 7, 9))
            for k in (4, 7, 9):
                values[names[k]] += more
    return robot.with_parameters(values)


def total_mass(robot: lw.Robot) -> float:
    return sum(link.inertia.mass for link in robot.links)


def moving_states(robot: lw.Robot, stand: np.ndarray, count: int, steps: int = 400, kick: float = 1.0):
    """(q, qd, tau, impulses of the step before) of robots that stand under a PD law, are kicked every 40 ms, and fall.

    Args:
        robot: with contacts.
        stand: positions of its joints.
        count: robots.
        steps: of each.
        kick: size of the kicks; half of the robots get a fifth of it and keep standing longer.
    """
    rng = np.random.default_rng(0)
    n = robot.dof - 6
    kernel = robot.kernel("contact_step", inputs="start_impulse")
    q = np.repeat(np.concatenate([robot.neutral[:7], stand])[None], count, 0)
    q[:, 2] -= robot.contact_gaps(q).min(axis=1) - 0.005
    q[:, 3:6] += 0.03 * rng.normal(size=(count, 3))
    qd = 0.3 * rng.normal(size=(count, robot.dof))
    limit = 0.15 * 9.81 * total_mass(robot)
    sizes = kick * np.where(np.arange(count) % 2, 0.2, 1.0)[:, None]
    impulse = np.zeros((count, 3 * len(robot.contact_names)))
    kept, push = [], np.zeros((count, robot.dof))
    for k in range(steps):
        if k % 20 == 0:
            push = limit * sizes * rng.normal(size=(count, robot.dof))
            push[:, :3] *= 0.1 if n else 0.01
            push[:, :6] *= 0.0 if n and k % 60 else 1.0
        law = 4.0 * limit * (stand - q[:, 7:]) - 0.1 * limit * qd[:, 6:]
        tau = np.clip(np.concatenate([np.zeros((count, 6)), law], axis=1) + push, -limit, limit)
        if k % 10 == 5:
            kept.append((q, qd, tau, impulse))
        q, qd, impulse = kernel(q, qd, tau, impulse)
        impulse = impulse.reshape(count, -1)
    return tuple(np.concatenate(part) for part in zip(*kept, strict=True))
