"""Generated robots: for tests, for scaling studies, and for comparing operation counts.

Everything random comes from ``numpy.random.default_rng(seed)``: one seed, one robot, on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import ModelError
from linkwise.model.dh import DhJoint, chain, radians
from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.joint import Joint, Limits
from linkwise.model.model import STANDARD_GRAVITY, Frame, Link, Model, suggest
from linkwise.model.transform import Transform

KINDS = {"R": "revolute", "P": "prismatic"}
REACH = {"R": np.pi, "P": 0.5}  # limits of random joints [rad or m], to either side


MOST_JOINTS = 1_000_000


def planar_chain(
    n: int,
    *,
    length: float = 1.0,
    mass: float = 1.0,
    radius: float = 0.05,
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> Model:
    """n equal solid rods [m, kg] in the vertical plane x-z, joints about +y; at q = 0 they lie along x.

    The frame ``tip`` is the end of the last rod.
    """
    _check_count("planar_chain", "n", n)
    across = mass * (radius**2 / 4 + length**2 / 12)
    rod = Inertia.from_com(mass, (length / 2, 0, 0), (mass * radius**2 / 2, across, across))
    links, joints = [Link("base")], list[Joint]()
    for k in range(1, n + 1):
        origin = Transform.along((1, 0, 0), length if k > 1 else 0.0)
        joints.append(
            Joint(f"joint{k}", "revolute", links[-1].name, f"link{k}", origin, axis=(0.0, 1.0, 0.0))
        )
        links.append(Link(f"link{k}", rod))
    tip = Frame("tip", f"link{n}", Transform.along((1, 0, 0), length))
    return Model(f"planar_chain_{n}", links, joints, gravity=gravity, frames=[tip])


LEGS = (
    (0.2, 0.1),
    (0.2, -0.1),
    (-0.2, 0.1),
    (-0.2, -0.1),
)  # hips [m]: front left, front right, rear left, rear right
PARTS = {"side": ((1.0, 0.0, 0.0), 0.0), "hip": ((0.0, 1.0, 0.0), 0.2), "knee": ((0.0, 1.0, 0.0), 0.2)}
"""Axes and lengths [m] of a leg."""


def quadruped(limits: Limits | Mapping[str, Limits] | None = None) -> Model:
    """A body of 8 kg on four legs of three links of 0.5 kg; joints and their links are side0, hip0, knee0, … knee3.

    The frames ``foot0`` … ``foot3`` are the ends of the legs. The base is fixed in the middle of the body.
    ``limits``: of all joints, or by part: side, hip, knee.
    """
    own = dict(limits) if isinstance(limits, Mapping) else dict.fromkeys(PARTS, limits or Limits())
    if set(own) != set(PARTS):
        raise ModelError(f"quadruped: limits of {', '.join(own) or 'nothing'}: expected {', '.join(PARTS)}")
    links = [Link("body", Inertia.from_com(8.0, (0, 0, 0), (0.1, 0.2, 0.25)))]
    joints, frames = list[Joint](), list[Frame]()
    for leg, (x, y) in enumerate(LEGS):
        parent, place = "body", Transform.from_rpy((x, y, 0.0))
        for part, (axis, length) in PARTS.items():
            name = f"{part}{leg}"
            links.append(Link(name, Inertia.from_com(0.5, (0, 0, -0.5 * length), (2e-3, 2e-3, 5e-4))))
            joints.append(Joint(name, "revolute", parent, name, place, axis, limits=own[part]))
            parent, place = name, Transform.from_rpy((0.0, 0.0, -length))
        frames.append(Frame(f"foot{leg}", parent, place))
    return Model("quadruped", links, joints, frames=frames)


def random_model(
    seed: int,
    dof: int,
    *,
    tree: bool = False,
    joints: str = "RP",
    friction: bool = False,
    rotor: bool = False,
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> Model:
    """A robot with arbitrary axes, poses and physically possible inertias, of arm-like size.

    ``tree``: links may branch anywhere. ``joints``: "R", "P", "RP" (a random mix), or one letter for every
    joint. ``friction``: viscous and direction-dependent Coulomb friction. ``rotor``: rotor inertias.
    """
    tree, friction, rotor = flag("tree", tree), flag("friction", friction), flag("rotor", rotor)
    _check_count("random_robot", "dof", dof)
    if not joints or set(joints) - set(KINDS) or (joints not in ("R", "P", "RP") and len(joints) != dof):
        raise ModelError(
            f'random_model: joints = {joints!r}: expected "R", "P", "RP" or {dof} letters R and P'
        )
    rng = np.random.default_rng(seed)
    drives = np.random.default_rng([seed, 1])  # apart, so that a robot is the same with and without them
    links, made = [Link("base")], list[Joint]()
    for k in range(1, dof + 1):
        letter = joints[k - 1] if joints not in ("R", "P", "RP") else str(rng.choice(list(joints)))
        parent = int(rng.integers(0, k)) if tree else k - 1
        x, y, z = _direction(rng)
        inertia, viscous, forward, backward = drives.uniform(
            (0.05, 0.1, 0.1, 0.1), (0.5, 2.0, 2.0, 2.0)
        ).tolist()
        made.append(
            Joint(
                name=f"joint{k}",
                type=KINDS[letter],
                parent=links[parent].name,
                child=f"link{k}",
                origin=Transform.from_quaternion(rng.uniform(-0.4, 0.4, 3), _quaternion(rng)),
                axis=(x, y, z),
                limits=Limits(-REACH[letter], REACH[letter]),
                rotor_inertia=inertia if rotor else 0.0,
                viscous_friction=viscous if friction else 0.0,
                coulomb_friction=(forward, backward) if friction else (0.0, 0.0),
            )
        )
        links.append(Link(f"link{k}", _body(rng)))
    shape = "tree" if tree else "chain"
    return Model(f"random_{shape}_{dof}_{seed}", links, made, gravity=gravity)


def general_chain(n: int, seed: int = 0, *, twists: str = "general", base_offsets: bool = True) -> Model:
    """A revolute chain by modified Denavit–Hartenberg numbers with a and d free and ten free parameters per
    link.

    ``twists="general"``: free angles; ``"perpendicular"``: 0°, −90°, 0°, −90°, 90°, −90°, repeated. With
    ``base_offsets=False`` alpha, a and d of the first joint are zero, as most papers have it.
    """
    _check_count("general_chain", "n", n)
    if twists not in ("general", "perpendicular"):
        raise ModelError(f"general_chain: twists = {twists!r}: expected 'general' or 'perpendicular'")
    right = (0, -90, 0, -90, 90, -90)
    table = {
        "joints": "R" * n,
        "alpha": [f"al{k}" if twists == "general" else right[(k - 1) % 6] for k in range(1, n + 1)],
        "a": [f"a{k}" for k in range(1, n + 1)],
        "d": [f"d{k}" for k in range(1, n + 1)],
    }
    if not flag("base_offsets", base_offsets):
        for key in ("alpha", "a", "d"):
            table[key] = [0, *table[key][1:]]
    return record_robot(table, seed, name=f"{twists}_chain_{n}")


_PUMA = {
    "joints": "RRRRRR",
    "alpha": [0, -90, 0, -90, 90, -90],
    "a": [0, 0, "a3", "a4", 0, 0],
    "d": [0, 0, "d3", "d4", 0, 0],
}
_STANFORD = {
    "joints": "RRPRRR",
    "alpha": [0, -90, 90, 0, -90, 90],
    "a": [0] * 6,
    "d": [0, "d2", "joint", 0, 0, 0],
}
_FREE = {key: [f"{key}{k}" for k in range(1, 7)] for key in ("alpha", "a", "d")}

# The robots behind published operation counts: numbers are meant (angles in degrees), a text is any generic
# number.
RECORD_ROBOTS: dict[str, dict[str, Any]] = {
    "general_6r": {"joints": "RRRRRR", **_FREE},
    "perpendicular_6r": {"joints": "RRRRRR", **_FREE, "alpha": [0, -90, 0, -90, 90, -90]},
    "puma560": _PUMA,
    "puma560_sparse": {
        **_PUMA,
        "nonzero": [
            ["Ixx", "Iyy", "Izz"],
            [*LABELS],
            ["Ixx", "Iyy", "Izz", "Iyz", "hy", "hz", "m"],
            ["Ixx", "Iyy", "Izz", "hz", "m"],
            ["Ixx", "Iyy", "Izz", "m"],
            ["Ixx", "Iyy", "Izz", "hz", "m"],
        ],
    },
    "stanford": _STANFORD,
    "stanford_sparse": {
        **_STANFORD,
        "nonzero": [
            ["Ixx", "Iyy", "Izz", "Iyz", "hy", "hz", "m"],
            ["Ixx", "Iyy", "Izz", "hy", "m"],
            ["Ixx", "Iyy", "Izz", "hz", "m"],
            ["Ixx", "Iyy", "Izz", "hz", "m"],
            ["Ixx", "Iyy", "Izz", "hy", "m"],
            ["Ixx", "Iyy", "Izz", "hz", "m"],
        ],
    },
    "rx90": {
        "joints": "RRRRRR",
        "alpha": [0, 90, 0, -90, 90, -90],
        "a": [0, 0, "a3", 0, 0, 0],
        "d": [0, 0, 0, "d4", 0, 0],
    },
}


def record_robot(which: str | Mapping[str, Any], seed: int = 0, *, name: str | None = None) -> Model:
    """A robot behind a published operation count, by name or as a table with joints, alpha, a, d and perhaps
    nonzero.

    Modified Denavit–Hartenberg; a text in the table becomes a random number, "joint"
    marks the coordinate of a prismatic joint. ``nonzero`` lists the labels of the inertial parameters of each
    link that are not zero (all ten otherwise); such sparse sets are marked as reduced. No friction, no rotor
    inertia."""
    if isinstance(which, str):
        if which not in RECORD_ROBOTS:
            raise ModelError(f"record_robot: no robot {which!r}; {suggest(which, RECORD_ROBOTS)}")
        return record_robot(RECORD_ROBOTS[which], seed, name=name or which)
    rng = np.random.default_rng(seed)
    sparse = which.get("nonzero")
    rows = [
        DhJoint(
            name=f"joint{k + 1}",
            link=f"link{k + 1}",
            type=KINDS[letter],
            alpha=radians(_generic(which["alpha"][k], rng, 20.0, 70.0)),
            a=_generic(which["a"][k], rng, 0.1, 0.5),
            d=0.0 if which["d"][k] == "joint" else _generic(which["d"][k], rng, 0.1, 0.5),
            inertia=_body(rng) if sparse is None else _sparse_body(rng, sparse[k]),
        )
        for k, letter in enumerate(which["joints"])
    ]
    return chain(name or "record_robot", rows, "mdh", reduced=sparse is not None)


def _check_count(what: str, name: str, value: Any) -> None:
    """A number of joints; the upper bound keeps a mistyped one from taking all memory."""
    if not isinstance(value, (int, np.integer)) or not 1 <= value <= MOST_JOINTS:
        raise ModelError(
            f"{what}: expected a whole number of joints from 1 to {MOST_JOINTS}, got {name} = {value!r}"
        )


def _generic(value: float | str, rng: np.random.Generator, low: float, high: float) -> float:
    """A text stands for any number of either sign, away from zero."""
    if not isinstance(value, str):
        return float(value)
    return float(rng.uniform(low, high) * rng.choice([-1.0, 1.0]))


def _body(rng: np.random.Generator) -> Inertia:
    """Eight point masses around some centre: a possible body, and never close to a rod or a plate."""
    centre = rng.uniform(-0.2, 0.2, 3)
    corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    places = centre + 0.15 * corners + rng.uniform(-0.05, 0.05, (8, 3))
    total = Inertia()
    for place, mass in zip(places, rng.uniform(0.1, 0.6, 8), strict=True):
        total = total + Inertia.from_com(float(mass), place, (0.0, 0.0, 0.0))
    return total


def _sparse_body(rng: np.random.Generator, labels: Sequence[str]) -> Inertia:
    """Only the labelled parameters are not zero; moments large enough for a regular mass matrix."""
    span = {"m": (1.0, 4.0), "Ixx": (0.5, 1.5), "Iyy": (0.5, 1.5), "Izz": (0.5, 1.5)}
    return Inertia.from_parameters(
        [float(rng.uniform(*span.get(label, (0.02, 0.1)))) if label in labels else 0.0 for label in LABELS]
    )


def _direction(rng: np.random.Generator) -> list[float]:
    v = rng.normal(size=3)
    return (v / np.linalg.norm(v)).tolist()


def _quaternion(rng: np.random.Generator) -> np.ndarray:
    """Uniform over all rotations, as a quaternion of any length."""
    return rng.normal(size=4)
