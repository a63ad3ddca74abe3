"""Random robots and states for property tests.

Hypothesis draws what may go wrong by its structure (tree shape, joint types, special axes, fixed joints, friction);
plain numbers come from a drawn seed, so that examples stay small to print and quick to make.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform
from linkwise.model.model import Frame

SPECIAL_AXES = tuple(tuple(float(v) for v in sign * row) for row in np.eye(3) for sign in (1.0, -1.0))
RIGHT_ANGLES = (0.0, math.pi / 2, -math.pi / 2, math.pi)


def direction(rng: np.random.Generator) -> tuple[float, float, float]:
    v = rng.normal(size=3)
    x, y, z = (v / np.linalg.norm(v)).tolist()
    return x, y, z


def body(rng: np.random.Generator, size: float = 0.15) -> Inertia:
    """A possible body: a few point masses that do not lie in a plane, around a random centre."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    places = rng.uniform(-0.2, 0.2, 3) + size * corners + rng.uniform(-0.05, 0.05, (4, 3))
    total = Inertia()
    for place, mass in zip(places, rng.uniform(0.2, 1.2, 4), strict=True):
        total = total + Inertia.from_com(float(mass), place, (0.0, 0.0, 0.0))
    return total


def pose(rng: np.random.Generator, special: bool = False) -> Transform:
    """A random pose, or one of right angles with some of its coordinates zero."""
    if special:
        xyz = rng.choice([0.0, 0.0, 0.3, -0.25], size=3)
        return Transform.from_rpy(xyz, rng.choice(RIGHT_ANGLES, size=3))
    return Transform.from_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-math.pi, math.pi, 3))


@st.composite
def robots(
    draw,
    min_dof: int = 1,
    max_dof: int = 12,
    *,
    tree: bool | None = None,
    friction: bool | None = None,
    rotor: bool | None = None,
    prismatic: bool = True,
) -> Robot:
    """A robot: moving and fixed joints of any type, axis and pose; ``None`` leaves a choice open."""
    dof = draw(st.integers(min_dof, max_dof), label="dof")
    branches = draw(st.booleans(), label="tree") if tree is None else tree
    kinds = ["revolute", "continuous"] + (["prismatic"] if prismatic else [])
    moving = draw(st.lists(st.sampled_from(kinds), min_size=dof, max_size=dof), label="joints")
    fixed_after = draw(st.sets(st.integers(0, dof), max_size=3), label="fixed joints after")
    special = draw(st.sets(st.integers(1, dof), max_size=dof), label="special places")
    sticky = (
        draw(st.sampled_from(["none", "symmetric", "asymmetric"]), label="friction")
        if friction is None
        else ("asymmetric" if friction else "none")
    )
    geared = draw(st.booleans(), label="rotor inertia") if rotor is None else rotor
    shuffled = draw(st.booleans(), label="shuffled file")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))

    links, joints = [Link("base", body(rng))], []  # the base's inertia must not matter

    def attach_fixed(parent: str) -> str:
        name = f"bolted_{len(links)}"
        joints.append(
            Joint(f"bolt_{len(joints)}", "fixed", parent, name, pose(rng, special=rng.random() < 0.5))
        )
        links.append(Link(name, body(rng) if rng.random() < 0.7 else Inertia()))
        return name

    ends = ["base"]
    if 0 in fixed_after:
        ends = [attach_fixed("base")]
    for k in range(1, dof + 1):
        parent = ends[int(rng.integers(len(ends)))] if branches else ends[-1]
        drag, push, pull = rng.uniform(0.1, 2.0, 3).tolist()
        rare = rng.random() < 0.1 and geared  # a link without mass, driven by a geared motor
        joints.append(
            Joint(
                name=f"joint{k}",
                type=moving[k - 1],
                parent=parent,
                child=f"link{k}",
                origin=pose(rng, special=k in special),
                axis=SPECIAL_AXES[int(rng.integers(6))] if k in special else direction(rng),
                rotor_inertia=float(rng.uniform(0.05, 0.8))
                if rare or (geared and rng.random() < 0.7)
                else 0.0,
                viscous_friction=drag if sticky != "none" else 0.0,
                coulomb_friction={"none": (0.0, 0.0), "symmetric": (push, push), "asymmetric": (push, pull)}[
                    sticky
                ],
            )
        )
        links.append(Link(f"link{k}", Inertia() if rare else body(rng)))
        ends.append(f"link{k}")
        if k in fixed_after:
            ends.append(attach_fixed(f"link{k}"))
    if shuffled:
        links = [links[i] for i in rng.permutation(len(links))]
        joints = [joints[i] for i in rng.permutation(len(joints))]
    tool = Frame("tool", ends[-1], pose(rng))
    gravity = rng.uniform(-10.0, 10.0, 3).tolist()
    return lw.Robot("drawn", links, joints, gravity=gravity, frames=[tool])


@dataclass(frozen=True)
class States:
    """A batch of states, (count, n) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    wrench: np.ndarray

    def __getitem__(self, k) -> States:
        return States(self.q[k], self.qd[k], self.qdd[k], self.tau[k], self.wrench[k])


def states_of(robot: lw.Robot, seed: int = 0, count: int | None = None) -> States:
    """States of moderate size; revolute positions over the whole circle, prismatic ones within half a metre."""
    rng = np.random.default_rng([seed, robot.dof])
    shape = (robot.dof,) if count is None else (count, robot.dof)
    reach = np.array([math.pi if joint.revolute else 0.5 for joint in robot.moving_joints])
    return States(
        q=rng.uniform(-1.0, 1.0, shape) * reach,
        qd=rng.uniform(-2.0, 2.0, shape),
        qdd=rng.uniform(-3.0, 3.0, shape),
        tau=rng.uniform(-20.0, 20.0, shape),
        wrench=rng.uniform(-5.0, 5.0, (*shape[:-1], 6)),
    )


seeds = st.integers(0, 2**32 - 1)
