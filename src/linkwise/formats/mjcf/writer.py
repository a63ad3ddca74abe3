"""A ``Model`` as MJCF text that MuJoCo loads, and that gives the same robot back here, to the last bit.

Standard elements say what MuJoCo can compute. A copy of the robot in TOML stands beside them in a <custom> text, which
MuJoCo keeps and does not use; a digest shows whether the file was edited since, and then the standard elements count
(``mjcf_copy``). Massless links get the smallest mass that MuJoCo allows, 2·10⁻¹⁵ kg.

Not for MuJoCo, and therefore errors: helical joints, inertias that no body has, floating joints that do not start at
the world, Coulomb friction of floating joints, carried weight that is no sum of shares of the links' weights. Kept for
Linkwise alone: speed limits, friction that differs by direction (MuJoCo gets the mean), independent mimic relations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.constraint_parts import parts_of
from linkwise.formats.mjcf.copy import with_copy
from linkwise.formats.xml import MAX_DEPTH
from linkwise.formats.xml_text import element, numbers, quoted
from linkwise.joint_laws.plain import plain_friction
from linkwise.model import compensation
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint
from linkwise.model.model import Frame, Model
from linkwise.model.transform import Transform

WORLD = "world"
TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "ball": "ball", "floating": "free"}
SMALLEST_MASS = 2e-15  # above mjMINVAL [kg]
SMALLEST_MOMENT = 2e-14  # what MuJoCo takes as a positive principal moment [kg·m²]
NO_LIMIT = 1e10  # one end of a range whose other end is a limit
SHARE = 1e-9  # relative difference under which carried weight is a share of a link's weight


def write_mjcf(model: Model) -> str:
    """The robot as the text of an MJCF file."""
    bare = model.with_motors(()) if model.motors else model
    lines = [
        f"<mujoco model={quoted(model.name)}>",
        element("compiler", {"angle": "radian"}, indent=1),
        element("option", {"gravity": numbers(model.gravity)}, indent=1),
        "  <worldbody>",
        *_bodies(bare),
        "  </worldbody>",
        *_equality(bare),
        *_tendons(model),
        "</mujoco>",
    ]
    return with_copy("\n".join(lines) + "\n", model)


# -- bodies -----------------------------------------------------------------------------------------------------------


def _bodies(model: Model) -> list[str]:
    """The tree, without recursion: chains may be long."""
    below: dict[str, list[Joint]] = {}
    for joint in model.joints:
        below.setdefault(joint.parent, []).append(joint)
    sites = _sites(model)
    shares = _shares(model)
    lines: list[str] = [_site(site, 2) for site in sites.get(None, [])]
    if model.base == WORLD:
        lines += [_site(site, 2) for site in sites.get(WORLD, [])]
        roots = below.get(WORLD, [])
    else:
        roots = [joint for joint in below.get(model.base, []) if joint.type == "floating"]
        below[model.base] = [joint for joint in below.get(model.base, []) if joint.type != "floating"]
        roots = [Joint("", "fixed", WORLD, model.base), *roots]
    inertias = {link.name: link.inertia for link in model.links}
    stack: list[tuple[Joint | None, int]] = [(joint, 2) for joint in reversed(roots)]
    while stack:
        joint, depth = stack.pop()
        if joint is None:
            lines.append(f"{'  ' * depth}</body>")
            continue
        name = joint.child
        if depth + 2 > MAX_DEPTH:
            raise ModelError(
                f"link {name!r}: bodies within bodies more than {MAX_DEPTH - 3} deep are not read again; "
                "save the robot as .toml or .urdf"
            )
        if name == WORLD:
            raise ModelError(f"link {name!r}: MuJoCo keeps this name for the base; rename the link")
        more = {"gravcomp": repr(shares[name])} if shares.get(name) else {}
        place = _place(joint.origin)
        if joint.type == "floating":
            _check_floating(joint, model)
            place: dict[str, str] = {}
        opened = "".join(f" {key}={quoted(text)}" for key, text in {"name": name, **place, **more}.items())
        lines.append(f"{'  ' * depth}<body{opened}>")
        if joint.moves:
            lines.append(_joint(joint, depth + 1))
        lines += _inertial(name, inertias[name], joint.moves, depth + 1, model.reduced)
        lines += [_site(site, depth + 1) for site in sites.get(name, [])]
        stack.append((None, depth))
        stack += [(child, depth + 1) for child in reversed(below.get(name, []))]
    return lines


def _place(pose: Transform) -> dict[str, str]:
    """Axes instead of a quaternion: what a rotation matrix holds, without a conversion."""
    place: dict[str, str] = {}
    if pose.translation.any():
        place["pos"] = numbers(pose.translation)
    if not np.array_equal(pose.rotation, np.eye(3)):
        place["xyaxes"] = numbers([*pose.rotation[:, 0], *pose.rotation[:, 1]])
    return place


def _inertial(name: str, inertia: Inertia, moves: bool, depth: int, reduced: bool) -> list[str]:
    if inertia.is_zero and not moves:
        return []
    moments = inertia.matrix_about_com
    axes = np.linalg.eigvalsh(moments)
    size = max(float(np.abs(moments).max()), SMALLEST_MOMENT)
    if inertia.mass < 0 or axes[0] < -1e-9 * size or axes[0] + axes[1] < axes[2] - 1e-9 * size:
        why = "a set of base parameters need not be one; " if reduced else ""
        raise ModelError(
            f"link {name!r}: no body has this inertia, which MuJoCo would refuse; {why}save the robot as .toml"
        )
    # the sum of two moments must not be below the third by round-off
    lift = max(0.0, SMALLEST_MOMENT - float(axes[0]), float(axes[2] - axes[0] - axes[1]) * 2)
    moments = moments + lift * np.eye(3)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = moments
    given = {
        "pos": numbers(inertia.com),
        "mass": repr(max(inertia.mass, SMALLEST_MASS)),
        "fullinertia": numbers((xx, yy, zz, xy, xz, yz)),
    }
    return [element("inertial", given, indent=depth)]


def _check_floating(joint: Joint, model: Model) -> None:
    pose = joint.origin
    if joint.parent != model.base or pose.translation.any() or not np.array_equal(pose.rotation, np.eye(3)):
        raise ModelError(
            f"joint {joint.name!r}: a free joint of MuJoCo starts at the origin of the world; "
            "save the robot as .toml or .urdf"
        )
    if any(joint.coulomb_friction):
        raise ModelError(
            f"joint {joint.name!r}: MuJoCo has no Coulomb friction along the axes of a floating link; "
            "save the robot as .toml or .urdf"
        )


# -- joints -----------------------------------------------------------------------------------------------------------


def _joint(joint: Joint, depth: int) -> str:
    if joint.type not in TYPES:
        raise ModelError(
            f"joint {joint.name!r}: MuJoCo has no {joint.type} joints; save the robot as .toml or .urdf"
        )
    given = {"name": joint.name, "type": TYPES[joint.type]}
    if not joint.free:
        given["axis"] = numbers(joint.axis)
        given |= _range(joint)
    damping, friction = plain_friction(joint)  # MuJoCo knows no other
    springs = joint.type != "floating"  # those of MuJoCo's free joints act along other axes
    rotor = springs or joint.rotor_inertia == joint.number("world_rotor_inertia")
    for key, value in (
        ("armature", joint.rotor_inertia if rotor else 0.0),
        ("damping", damping),
        ("frictionloss", friction),
        ("stiffness", joint.number("stiffness") if springs else 0.0),
        ("springref", joint.number("spring_reference") if springs else 0.0),
    ):
        if value:
            given[key] = repr(float(value))
    effort = joint.limits.largest_effort
    if math.isfinite(effort) and not joint.free:
        given["actuatorfrcrange"] = numbers((-effort, effort))
    return element("joint", given, indent=depth)


def _range(joint: Joint) -> dict[str, str]:
    ends = joint.limits.lower, joint.limits.upper
    if all(map(math.isinf, ends)) or not ends[0] < ends[1]:
        return {}
    return {"range": numbers(end if math.isfinite(end) else math.copysign(NO_LIMIT, end) for end in ends)}


def _shares(model: Model) -> dict[str, float]:
    """``gravcomp`` of links, so that their weights add up to what each joint has as carried weight."""
    shares: dict[str, float] = {}
    for k, joint in enumerate(model.moving_joints):
        carried = np.array([joint.terms.get(name, 0.0) for name in compensation.NAMES])
        if not carried.any():
            continue
        links = [link for link in model.links if model.carrier(link.name)[0] == k and link.inertia.mass > 0]
        columns = [link.inertia.expressed_in(model.carrier(link.name)[1]).parameters[:4] for link in links]
        weights = np.array(columns).reshape(-1, 4).T
        solution = np.linalg.lstsq(weights, carried, rcond=None)[0]
        if np.abs(weights @ solution - carried).max() > SHARE * np.abs(carried).max():
            raise ModelError(
                f"joint {joint.name!r}: its carried weight is no sum of shares of the weights of its links, as MuJoCo "
                "needs; save the robot as .toml or .urdf"
            )
        shares |= {link.name: float(share) for link, share in zip(links, solution, strict=True)}
    return shares


# -- frames and constraints -------------------------------------------------------------------------------------------


def _sites(model: Model) -> dict[str | None, list[Frame]]:
    """Sites by the link that carries them (None: the world): named frames, and the two ends of each constraint."""
    sites: dict[str | None, list[Frame]] = {}
    frames = {frame.name: frame for frame in model.frames}
    for frame in model.frames:
        sites.setdefault(frame.link, []).append(frame)
    for constraint, names in zip(model.constraints, _ends(model), strict=True):
        for (where, pose), name in zip(constraint.ends(), names, strict=True):
            if where in frames:
                pose, where = frames[where].pose @ pose, frames[where].link
            sites.setdefault(where, []).append(Frame(name, "", pose))
    return sites


def _ends(model: Model) -> list[tuple[str, str]]:
    """Names of the two sites of each constraint, which no frame has."""
    taken = {frame.name for frame in model.frames}

    def unused(name: str) -> str:
        while name in taken:
            name = f"{name}_"
        return name

    return [
        (unused(f"constraint_{k}_first"), unused(f"constraint_{k}_second"))
        for k in range(1, len(model.constraints) + 1)
    ]


def _site(frame: Frame, depth: int) -> str:
    return element("site", {"name": frame.name, **_place(frame.pose)}, indent=depth)


def _equality(model: Model) -> Iterable[str]:
    lines: list[str] = []
    for joint in model.moving_joints:
        if joint.mimic is not None and joint.mimic.coupled:
            relation = joint.mimic
            if relation.also:
                raise ModelError(f"joint {joint.name!r}: only a motor may follow several joints in a file")
            given = {
                "joint1": joint.name,
                "joint2": relation.joint,
                "polycoef": numbers((relation.offset, relation.multiplier, 0, 0, 0)),
            }
            lines.append(element("joint", given, indent=2))
    for constraint, (first, second) in zip(model.constraints, _ends(model), strict=True):
        if constraint.compliance:
            raise ModelError(
                f"{constraint.label}: MJCF describes softness by solref and solimp; save it as TOML or URDF"
            )
        tag = {"weld": "weld", "point": "connect"}[parts_of(constraint).kind]
        named = {"name": constraint.name} if constraint.name else {}
        lines.append(element(tag, {**named, "site1": first, "site2": second}, indent=2))
    return ["  <equality>", *lines, "  </equality>"] if lines else []


def _tendons(model: Model) -> list[str]:
    """Motors that move several joints, as fixed tendons: their length is a weighted sum of joint positions."""
    lines: list[str] = []
    for motor in model.motors:
        damping, friction = plain_friction(motor)
        numbers_of = {"armature": motor.rotor_inertia, "damping": damping, "frictionloss": friction}
        stiffness = float(motor.terms.get("stiffness", 0.0))
        if stiffness:
            rest = float(motor.terms.get("spring_reference", 0.0)) - motor.offset
            numbers_of |= {"stiffness": stiffness, "springlength": _length(rest)}
        given = {"name": motor.name} | {key: repr(float(value)) for key, value in numbers_of.items() if value}
        lines.append("    <fixed" + "".join(f" {key}={quoted(text)}" for key, text in given.items()) + ">")
        lines += [
            element("joint", {"joint": name, "coef": repr(float(factor))}, indent=3)
            for name, factor in motor.joints.items()
        ]
        lines.append("    </fixed>")
    return ["  <tendon>", *lines, "  </tendon>"] if lines else []


def _length(rest: float) -> float:
    """A length at which a tendon is at rest. MuJoCo takes −1 as "not given" and 0 is left out of the file, so these two
    become their neighbours, which changes the torque by round-off."""
    return math.nextafter(rest, math.inf) if rest in (0.0, -1.0) else rest
