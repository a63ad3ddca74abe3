"""Robots from names, files and generators."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.products import times
from linkwise.errors import ModelWarning, warn
from linkwise.model import Model, Transform
from linkwise.model.bodies import Body
from linkwise.model.contacts import Contact, Ground, Part
from linkwise.model.joint import Limits
from linkwise.model.model import STANDARD_GRAVITY
from linkwise.robot.robot import Robot

MOST_NOTES = 8
"""About contacts of a file, in one warning."""


def robots() -> tuple[str, ...]:
    """Names of the bundled robots, each of which ``load`` takes."""
    from linkwise.formats import files

    return tuple(files.bundled_names())


def load(
    source: str | os.PathLike[str],
    *,
    gravity: Sequence[float] | None = None,
    lock: Mapping[str, float] | None = None,
    strict: bool = False,
    base: str = "fixed",
    mimic: str = "coupled",
    allow: Sequence[str | os.PathLike[str]] = (),
    contact: bool = False,
) -> Robot:
    """A robot from a bundled name, a file, or a name of the package robot_descriptions.

    Args:
        source: a name of ``robots()``, or a path: .urdf, .xml (MJCF or URDF), .toml (DH or modified DH), .spec (of
            1992); or a name of the package robot_descriptions, such as "ur5e_description", where that is installed.
        gravity: gravity [m/s²] in the base frame, shape (3,), in place of the file's.
        lock: joints to be fixed, with their positions [rad or m].
        strict: whether physically impossible inertias are an error instead of a warning.
        base: "fixed", "floating" or "planar": how the base link moves in the world. An MJCF file defines this by its
            free joints.
        mimic: "coupled": joints that mimic another one have no coordinate of their own; "independent": they keep it.
        allow: folders, besides that of the file, whose files it may name: included and attached files and meshes of
            MJCF. Files elsewhere are never opened.
        contact: whether contacts of the file are taken: of MJCF geoms as ``contype``, ``conaffinity``, ``condim``,
            ``friction`` and ``<contact>`` say, of URDF every collision element with the ground. Of many candidates with
            the ground those that are nearest are taken, and joints stop at the ends of their range; a ``ModelWarning``
            says what is chosen or left out.

    Raises:
        ModelError: the file cannot be read, or is not a robot; the message names file, element and reason.
    """
    from linkwise.formats import files

    folders: tuple[str, ...] = ()
    if isinstance(source, str):
        from linkwise.formats import descriptions

        found = descriptions.locate(source)
        source, folders = found.path, found.folders
    strict = flag("strict", strict)
    if isinstance(allow, (str, os.PathLike)):
        allow = (allow,)
    model = files.read(source, gravity=gravity, lock=lock, strict=strict, mimic=mimic, allow=allow)
    bundled = isinstance(source, str) and source in files.bundled_names()
    allowed = (os.path.abspath(os.fsdecode(folder)) for folder in allow)
    origin = () if bundled else (os.path.abspath(source), *folders, *allowed)
    robot = Robot.from_model(model, origin).with_base(base)
    return _with_contacts(robot, source, origin[1:]) if flag("contact", contact) else robot


def _with_contacts(robot: Robot, source: str | os.PathLike[str], folders: Sequence[str]) -> Robot:
    from linkwise.geometry.contact_files import read_contacts

    parts, notes = read_contacts(robot, source, folders)
    parts = [_with_mass(robot, part) for part in parts]
    if any(isinstance(part, Contact) and part.stiffness is not None for part in parts):
        notes.append(
            "contacts with a negative solref are springs for the mass that they move at the position zero"
        )
    if notes:
        shown = "; ".join(notes[:MOST_NOTES]) + (
            f"; and {len(notes) - MOST_NOTES} more" if len(notes) > MOST_NOTES else ""
        )
        warn(f"contacts of {robot.name}: {shown}", ModelWarning)
    return robot.with_contacts(parts)


def _with_mass(robot: Robot, part: Part) -> Part:
    """A soft contact whose stiffness and damping are those of one kilogram, with the mass that it moves."""
    if not isinstance(part, Contact) or part.stiffness is None:
        return part
    moved = [robot.carrier(shape.frame)[0] for shape in part.shapes]
    inverse = np.mean([_mobility(robot, body) for body in moved])
    if part.other is not None:
        inverse += _mobility(robot, robot.carrier(part.other)[0])
    if inverse == 0.0:  # as in MuJoCo, whose spring for what has no mass to move is rigid
        return replace(part, stiffness=None, damping=0.0)
    return replace(part, stiffness=part.stiffness / inverse, damping=part.damping / inverse)


def _mobility(robot: Robot, body: int) -> float:
    """How much the middle of mass of a link accelerates by a force, mean of all directions, at the position zero."""
    if body < 0:
        return 0.0
    link = robot.moving_joints[body].child
    inertia = next(each.inertia for each in robot.links if each.name == link)
    rows = robot.jacobian(robot.neutral, frame=link)
    arm = times(robot.pose(robot.neutral, frame=link)[:3, :3], np.asarray(inertia.com))
    rows = rows[3:] - np.cross(arm, rows[:3], axisa=0, axisb=0, axisc=0)
    moved = times(robot.inverse_mass_matrix(robot.neutral), rows.T)
    return (
        float(sum((a * b for a, b in zip(rows.ravel().tolist(), moved.T.ravel().tolist(), strict=True))))
        / 3.0
    )


def save(robot: Model, path: str | os.PathLike[str], *, strict: bool = False) -> None:
    """Write a robot as .urdf, .toml or .xml (MJCF); the file appears whole or not at all.

    Loading the file here gives the same robot. Where other programs will see another one, because the format has no
    words for a term (a spring in URDF, say), an ``ExportWarning`` names each such term.

    Args:
        robot: the robot.
        path: the file; its ending chooses the format.
        strict: whether a term that other programs will not see is an error instead of a warning.

    Raises:
        ModelError: the format cannot describe this robot, or with ``strict`` not all of it; the message names what it
            lacks.
    """
    from linkwise.formats import files

    files.save(robot, path, strict=flag("strict", strict))


class Scene:
    """Several robots and bodies in one model, which is a robot like others: every function takes it.

    Coordinates are those of the items, in their order; names that two robots share get the robot's name in front
    (``panda/joint1``). Contacts of the robots stay; bodies with mass touch the ground where there is one; every shape
    of an item may touch those of the others.

    Args:
        items: robots, ``lw.Body`` and at most one ``lw.Ground``.
        name: of the model.
        poses: where the bases of robots are in the world, by the robot's name; the origin by default.
        contacts: which shapes of different items may touch (``lw.Contact(FRAME, OTHER)``), in place of all of them;
            few pairs make a step cheaper.

    Returns:
        The robot.

    Raises:
        ModelError: two items have one name, a pair of shapes is not modelled, gravities differ, or nothing moves.
    """

    def __new__(
        cls,
        items: Sequence[Model | Body | Ground],
        *,
        name: str = "scene",
        poses: Mapping[str, Transform] | None = None,
        contacts: Sequence[Part] | None = None,
    ) -> Robot:
        from linkwise.model.scene import merged

        return Robot.from_model(merged(items, name=name, poses=poses, contacts=contacts))


def planar_chain(
    n: int,
    *,
    length: float = 1.0,
    mass: float = 1.0,
    radius: float = 0.05,
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> Robot:
    """n equal solid rods in the vertical plane x-z, joints about +y; at q = 0 they lie along x.

    Args:
        n: number of links.
        length: of a rod [m].
        mass: of a rod [kg].
        radius: of a rod [m].
        gravity: [m/s²].
    """
    from linkwise.model import generators

    made = generators.planar_chain(n, length=length, mass=mass, radius=radius, gravity=gravity)
    return Robot.from_model(made)


def quadruped(
    friction: float | None = 0.8, *, radius: float = 0.02, limits: Limits | Mapping[str, Limits] | None = None
) -> Robot:
    """A body on four legs of three joints, 14 kg, on a floating base: for standing and walking without a file.

    Joints and the links that they move are side0, hip0, knee0, … knee3: front left, front right, rear left, rear right.
    The frames foot0 … foot3 are the ends of the legs, 0.4 m below the hips at q = ``neutral``.

    Args:
        friction: coefficient of the feet, spheres that touch the ground z = 0; None: no contacts.
        radius: of the feet [m].
        limits: ``lw.Limits`` of all joints, or one for each of side, hip and knee; none by default.

    Returns:
        The robot.

    Raises:
        ModelError: limits of other parts.
    """
    from linkwise.model import generators

    robot = Robot.from_model(generators.quadruped(limits)).with_base("floating")
    if friction is None:
        return robot
    legs = range(len(generators.LEGS))
    return robot.with_contacts([Contact(f"foot{k}", radius=radius, friction=friction) for k in legs])


def random_robot(
    seed: int,
    dof: int,
    *,
    tree: bool = False,
    joints: str = "RP",
    friction: bool = False,
    rotor: bool = False,
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> Robot:
    """A physically possible robot with arbitrary axes and poses, the same for the same seed.

    Args:
        seed: of the random numbers.
        dof: number of joints.
        tree: whether parents are arbitrary; by default it is a chain.
        joints: the joint types to draw from, "R", "P" or "RP", or one letter for every joint.
        friction: whether joints have viscous friction, and dry friction that differs by direction.
        rotor: whether joints have rotor inertias.
        gravity: [m/s²].
    """
    from linkwise.model import generators

    made = generators.random_model(
        seed, dof, tree=tree, joints=joints, friction=friction, rotor=rotor, gravity=gravity
    )
    return Robot.from_model(made)


def general_chain(n: int, *, seed: int = 0, twists: str = "general", base_offsets: bool = True) -> Robot:
    """A chain of general links (free α, a, d and ten parameters each), as in the papers' operation counts.

    Args:
        n: number of joints.
        seed: of the random numbers.
        twists: "general", or "perpendicular": 0°, −90°, 0°, −90°, 90°, −90°, repeated.
        base_offsets: False sets α, a and d of the first joint to zero, as most papers have it.
    """
    from linkwise.model import generators

    made = generators.general_chain(n, seed=seed, twists=twists, base_offsets=base_offsets)
    return Robot.from_model(made)
