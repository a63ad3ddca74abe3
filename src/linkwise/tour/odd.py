"""What is odd about a robot file: numbers that are allowed but rarely meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from linkwise.geometry.skeleton import skeleton
from linkwise.model import Link
from linkwise.robot.robot import Robot

SHOWN = 5  # names in one sentence
LEAST_SAME = 3  # joints with one limit from which it may be a placeholder
ROUND = (
    0.1,
    0.5,
    1.0,
    2.0,
    3.0,
    3.14,
    3.1415,
    3.14159,
    4.0,
    5.0,
    10.0,
    20.0,
    30.0,
    50.0,
    99.0,
    100.0,
    150.0,
    200.0,
    300.0,
    500.0,
    999.0,
    1000.0,
    1e4,
    1e5,
    1e6,
)  # numbers that are typed, not measured
LIGHT = 1e-3  # of the whole mass: lighter links do not matter
LARGE, SMALL = (
    1.5,
    1e-4,
)  # radius of gyration of a link [of the robot's reach]: beyond, a unit is likely wrong


_FOLDER = re.compile(r"^[^:]*[/\\](?=[^/\\]+\.(?:urdf|xml|toml|spec)\b)")  # in front of the name of a file


def oddities(robot: Robot, warned: Sequence[str] = ()) -> list[str]:
    """Sentences about what is odd: the warnings of the reader first, then missing limits, doubtful numbers.

    Args:
        robot: the robot.
        warned: texts of the warnings that came while the file was read.
    """
    found = list(dict.fromkeys(_FOLDER.sub("", " ".join(text.split())) for text in warned))
    for check in (_limits, _placeholders, _inertias, _point_masses, _copies, _friction, _followers):
        found += check(robot)
    return found


def _limits(robot: Robot) -> Iterator[str]:
    joints = [joint for joint in robot.coordinate_joints if not joint.free]
    stuck = [joint.name for joint in joints if joint.limits.lower == joint.limits.upper]
    if stuck:
        yield (
            f"lower and upper limit are equal for {_names(stuck)}: within its limits such a joint cannot move; "
            "exporters write 0 where no limit was entered"
        )
    crossed = [joint.name for joint in joints if joint.limits.lower > joint.limits.upper]
    if crossed:
        yield f"the lower limit is above the upper one for {_names(crossed)}"
    for what in ("effort", "velocity"):
        missing = [joint.name for joint in joints if math.isinf(getattr(joint.limits, f"largest_{what}"))]
        if missing:
            zero = " (0 in the file)" if any(getattr(joint.limits, what) == 0 for joint in joints) else ""
            who = "no joint has" if len(missing) == len(joints) else f"{_names(missing)} without"
            needs = "payload" if what == "effort" else "shortest time"
            yield f"{who} {_a(what)} limit{zero}: {needs} cannot be computed"


def same_limits(robot: Robot) -> Iterator[tuple[str, int, str]]:
    """Limits of which all turning joints have the same round number: exporters write them where none were entered.

    Args:
        robot: the robot.

    Yields:
        "effort" or "velocity", the number of joints, the limit in words.
    """
    joints = [joint for joint in robot.coordinate_joints if joint.revolute]
    if len(joints) < LEAST_SAME:
        return
    for what, unit in (("effort", "N·m"), ("velocity", "rad/s")):
        values = {getattr(joint.limits, f"largest_{what}") for joint in joints}
        if len(values) == 1 and (value := values.pop()) in ROUND:
            yield what, len(joints), f"{value:g} {unit}"


def _placeholders(robot: Robot) -> Iterator[str]:
    for what, count, limit in same_limits(robot):
        yield (
            f"all {count} turning joints have the {what} limit {limit}: a placeholder? "
            "Exporters write such numbers where none were entered; payload and fast motions follow from them"
        )


def doubtful_bodies(robot: Robot) -> Iterator[tuple[Link, str, float, float]]:
    """Links whose numbers look like another unit.

    Args:
        robot: the robot.

    Yields:
        The link, "large" or "small" for its radius of gyration or "far" for its centre of mass, that length [m], and
        the reach of the robot [m].
    """
    reach = skeleton(robot).reach
    if reach <= 0:
        return
    for link in robot.links:
        inertia = link.inertia
        if link.name == robot.base or inertia.mass <= 0:
            continue
        moments = np.linalg.eigvalsh(inertia.matrix_about_com)
        size = math.sqrt(max(float(moments[-1]), 0.0) / inertia.mass)
        if size > LARGE * reach:
            yield link, "large", size, reach
        elif 0 < size < SMALL * reach and inertia.mass > 0.05:
            yield link, "small", size, reach
        away = float(np.linalg.norm(inertia.com))
        if away > 2 * reach:
            yield link, "far", away, reach


def _inertias(robot: Robot) -> Iterator[str]:
    for link, kind, size, reach in doubtful_bodies(robot):
        mass = f"{link.inertia.mass:.3g} kg"
        if kind == "large":
            yield (
                f"link {link.name!r}: its inertia is that of a body of {size:.3g} m and {mass}, "
                f"the whole robot reaches {reach:.3g} m; a unit may be wrong"
            )
        elif kind == "small":
            yield f"link {link.name!r}: its inertia is that of a body of {size:.1g} m and {mass}; a unit may be wrong"
        else:
            yield (
                f"link {link.name!r}: its centre of mass is {size:.3g} m from its frame, "
                f"the robot reaches {reach:.3g} m; millimetres instead of metres?"
            )


def _point_masses(robot: Robot) -> Iterator[str]:
    """Links with mass and without inertia, unless they are too light to matter."""
    least = LIGHT * sum(link.inertia.mass for link in robot.links)
    points = [
        link.name
        for link in robot.links
        if link.name != robot.base and link.inertia.mass > least and not link.inertia.matrix_about_com.any()
    ]
    if points:
        yield f"{_names(points)}: mass without inertia, a point mass"


def _copies(robot: Robot) -> Iterator[str]:
    """Links of one chain with the same mass and inertia: placeholders of a template."""
    inertia = {link.name: link.inertia for link in robot.links}
    same = []
    for joint in robot.moving_joints:
        a, b = inertia[joint.parent], inertia[joint.child]
        if (
            joint.parent != robot.base
            and a.mass > 0
            and a.mass == b.mass
            and np.array_equal(a.matrix_about_com, b.matrix_about_com)
        ):
            same += [joint.parent, joint.child]
    if same:
        yield f"{_names(list(dict.fromkeys(same)))} have the same mass and inertia: placeholders?"


def _friction(robot: Robot) -> Iterator[str]:
    joints = robot.moving_joints
    rubs = any(joint.viscous_friction or any(joint.coulomb_friction) or joint.terms for joint in joints)
    if joints and not rubs and not any(joint.rotor_inertia for joint in joints):
        yield (
            "neither friction nor rotor inertia: real arms need more torque than computed here; "
            "linkwise identify finds both from a recording"
        )


def _followers(robot: Robot) -> Iterator[str]:
    names = [joint.name for joint in robot.joints if joint.mimic is not None]
    if names:
        yield (
            f"{_names(names)} follow{'s' if len(names) == 1 else ''} another joint (mimic): no coordinate of "
            f"{'its' if len(names) == 1 else 'their'} own; --mimic independent gives one"
        )


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"
