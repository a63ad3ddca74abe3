"""The MJCF reader against MuJoCo itself, on mutated files.

    python benchmarks/mjcf_fuzz.py --files 10000
    python benchmarks/mjcf_fuzz.py --seed 1234 --files 1 --show     # one file, printed

Random arms are written as MJCF with default classes, frames, settings and geoms; then attributes are changed, left
out, misspelt or given to another element, and elements are repeated, moved, nested or left out. Where both readers
take a file every number must agree: masses, inertias, poses, axes, limits, damping, springs, armature, friction loss
and gravity, and mass matrix, bias forces and inverse dynamics at random states. A file that MuJoCo refuses must be
refused, unless ``LISTED`` has the reason. ``--files N`` counts files that both readers take.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import mujoco
import numpy as np

from linkwise import arrays
from linkwise.errors import LinkwiseError, ModelError, ModelWarning
from linkwise.functions import Setting, function_named
from linkwise.model.mjcf import read_mjcf
from linkwise.model.model import Model
from linkwise.model.transform import Transform
from linkwise.robot import Robot

TOLERANCE = 1e-8  # relative to the largest number of its kind; MuJoCo diagonalises inertias to about 1e-12
SAME_FRAME = 1e3  # sites that MuJoCo takes as parallel to their body are so to 1e-5 rad
STATES = 3

# What MuJoCo refuses and is read here: a pattern of its message, and why.
NOT_READ = "values and references in sections that are not read are not checked"
LISTED = {
    r"unrecognized name|sensor|Element '(jointpos|\w+vel|frame\w+|gyro|accelerometer)'": NOT_READ,
    r"transmission|actuator|Element '(motor|general|position|velocity|adhesion)'": NOT_READ,
    r"bodypair|in collision|Element '(pair|exclude)'": NOT_READ,
    r"keyframe|Element 'key'|in light": NOT_READ,
    r"tendon|in wrap|'coef'|missing: '(joint|site)'|Element '(fixed|spatial)'": NOT_READ,
    r"Element '(camera|light|headlight|global|quality|map|scale|rgba|statistic|size|numeric|text)'": NOT_READ,
    "top-level default class 'main' cannot be renamed": "older versions allowed it, and the meaning is clear",
}


# -- random files -----------------------------------------------------------------------------------------------------


def random_file(rng: Random) -> Element:
    """An arm of a few bodies, with most of what MJCF has to describe one."""
    root = Element("mujoco", {"model": "arm"})
    if rng.random() < 0.6:
        SubElement(root, "compiler", some(rng, COMPILER))
    if rng.random() < 0.6:
        option = SubElement(root, "option", some(rng, OPTION))
        if rng.random() < 0.5:
            SubElement(option, "flag", some(rng, FLAG))
    classes = ["main"]
    if rng.random() < 0.7:
        top = SubElement(root, "default")
        defaults(rng, top)
        for name in ("x", "y"):
            if rng.random() < 0.6:
                inner = SubElement(rng.choice([e for e in top.iter("default")]), "default", {"class": name})
                defaults(rng, inner)
                classes.append(name)
    world = SubElement(root, "worldbody")
    if rng.random() < 0.4:
        SubElement(world, "geom", {"type": "plane", "size": "1 1 1"})
    places = [world]
    for k in range(rng.randint(1, 4)):
        place = rng.choice(places[-2:])
        if rng.random() < 0.2:
            place = SubElement(place, "frame", pose(rng))
        given = {"name": f"b{k}", **pose(rng)}
        if rng.random() < 0.2:
            given["childclass"] = rng.choice(classes)
        body = SubElement(place, "body", given)
        inside = body
        if rng.random() < 0.15:
            inside = SubElement(body, "frame", pose(rng))
        free = place is world and rng.random() < 0.1
        if free:
            SubElement(inside, "freejoint", {"name": f"f{k}"})
        for j in range(0 if free else rng.choice((0, 1, 1, 1, 1, 2))):
            SubElement(inside, "joint", {"name": f"j{k}{j}", **joint(rng), **classed(rng, classes)})
        stated = rng.random() < 0.6
        if stated:
            inertial(rng, body)
        for _ in range(rng.choice((0 if stated else 1, 1, 2))):
            SubElement(inside, "geom", {**geom(rng), **classed(rng, classes)})
        if rng.random() < 0.4:
            SubElement(inside, "site", {"name": f"s{k}", **pose(rng), **classed(rng, classes)})
        places.append(body)
    if rng.random() < 0.2:
        SubElement(SubElement(root, "actuator"), "motor", {"joint": "j00", "gear": "2"})
    if rng.random() < 0.2:
        SubElement(SubElement(root, "sensor"), "jointpos", {"joint": "j00"})
    return root


def number(rng: Random, low: float = -1.0, high: float = 1.0) -> str:
    return f"{rng.uniform(low, high):.4g}"


def vector(rng: Random, count: int = 3, low: float = -1.0, high: float = 1.0) -> str:
    return " ".join(number(rng, low, high) for _ in range(count))


ANGLES = {
    "euler": (3, -90, 90),
    "quat": (4, -1, 1),
    "axisangle": (4, -2, 2),
    "xyaxes": (6, -1, 1),
    "zaxis": (3, -1, 1),
}

# attribute -> how to draw a value for it
COMPILER = {
    "angle": lambda rng: rng.choice(("degree", "radian")),
    "eulerseq": lambda rng: rng.choice(("xyz", "XYZ", "zyx", "zYx", "xyx")),
    "autolimits": lambda rng: rng.choice(("true", "true", "true", "false")),
    "inertiafromgeom": lambda rng: rng.choice(("auto", "true", "false")),
    "inertiagrouprange": lambda rng: rng.choice(("0 5", "0 2", "1 3")),
    "balanceinertia": lambda rng: rng.choice(("true", "false")),
    "boundmass": lambda rng: rng.choice(("0", "1e-4", "0.3")),
    "boundinertia": lambda rng: rng.choice(("0", "1e-7", "0.05")),
    "settotalmass": lambda rng: rng.choice(("-1", "0", "2.5")),
    "fusestatic": lambda rng: "false",
    "usethread": lambda rng: "false",
}
OPTION = {
    "gravity": vector,
    "timestep": lambda rng: "0.002",
    "density": lambda rng: "0",
    "viscosity": lambda rng: "0",
    "wind": vector,
    "integrator": lambda rng: rng.choice(("Euler", "RK4", "implicitfast")),
}
FLAG = {
    key: (lambda rng: rng.choice(("enable", "disable")))
    for key in (
        "gravity",
        "damper",
        "spring",
        "constraint",
        "frictionloss",
        "equality",
        "limit",
        "contact",
        "energy",
    )
}
JOINT = {
    "type": lambda rng: rng.choice(("hinge", "hinge", "slide", "slide", "ball")),
    "axis": vector,
    "pos": vector,
    "ref": lambda rng: number(rng, -30, 30),
    "range": lambda rng: rng.choice((f"{number(rng, -3, 0)} {number(rng, 0, 3)}", "0 0", "-1 2", "2 -1")),
    "limited": lambda rng: rng.choice(("auto", "true", "false", "false")),
    "armature": lambda rng: number(rng, 0, 1),
    "damping": lambda rng: number(rng, 0, 2),
    "frictionloss": lambda rng: number(rng, 0, 1),
    "actuatorfrcrange": lambda rng: rng.choice(("-5 5", "-3 10", "0 0")),
    "actuatorfrclimited": lambda rng: rng.choice(("auto", "true", "false")),
    "stiffness": lambda rng: rng.choice(("0", number(rng, 0, 5))),
    "springref": number,
    "group": lambda rng: rng.choice(("0", "3")),
    "margin": lambda rng: "0.01",
}
GEOM = {
    "type": lambda rng: rng.choice(("sphere", "capsule", "cylinder", "ellipsoid", "box")),
    "size": lambda rng: vector(rng, rng.choice((1, 2, 3, 3)), 0.05, 0.4),
    "mass": lambda rng: rng.choice((number(rng, 0, 3), "0")),
    "density": lambda rng: rng.choice(("500", "0", "2000")),
    "group": lambda rng: rng.choice(("0", "2", "4")),
    "fromto": lambda rng: vector(rng, 6),
    "shellinertia": lambda rng: rng.choice(("false", "false", "false", "true")),
    "contype": lambda rng: "0",
    "rgba": lambda rng: "1 0 0 1",
}


def some(rng: Random, attributes, share: float = 0.35) -> dict[str, str]:
    return {key: draw(rng) for key, draw in attributes.items() if rng.random() < share}


def pose(rng: Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.7:
        found["pos"] = vector(rng)
    if rng.random() < 0.5:
        key = rng.choice(list(ANGLES))
        found[key] = vector(rng, *ANGLES[key])
    return found


def geom(rng: Random) -> dict[str, str]:
    found = {**pose(rng), **some(rng, GEOM, 0.2), "size": vector(rng, 3, 0.05, 0.4)}
    if rng.random() < 0.6:
        found["type"] = GEOM["type"](rng)
    if "fromto" in found and rng.random() < 0.9:
        found["type"] = rng.choice(("capsule", "cylinder", "ellipsoid", "box"))
        found.pop("pos", None)
    return found


def joint(rng: Random) -> dict[str, str]:
    found = some(rng, JOINT)
    for switch, ends in (("limited", "range"), ("actuatorfrclimited", "actuatorfrcrange")):
        if found.get(switch) == "true":  # needs a range
            found[ends] = f"{number(rng, -3, -1)} {number(rng, 0, 3)}"
    return found


def inertial(rng: Random, body: Element) -> None:
    given = {"pos": vector(rng), "mass": number(rng, 0.1, 5)}
    moments = [rng.uniform(0.5, 0.9) for _ in range(3)]
    if rng.random() < 0.3:
        products = [rng.uniform(-0.1, 0.1) for _ in range(3)]
        given["fullinertia"] = " ".join(f"{x:.4g}" for x in (*moments, *products))
    else:
        given["diaginertia"] = " ".join(f"{x:.4g}" for x in moments)
        given.update({key: value for key, value in pose(rng).items() if key != "pos"})
    SubElement(body, "inertial", given)


def defaults(rng: Random, parent: Element) -> None:
    if rng.random() < 0.7:
        SubElement(
            parent, "joint", joint(rng) if rng.random() < 0.3 else {"damping": "0.3", "armature": "0.1"}
        )
    if rng.random() < 0.6:
        SubElement(parent, "geom", {**some(rng, GEOM, 0.08), **(pose(rng) if rng.random() < 0.2 else {})})
    if rng.random() < 0.3:
        SubElement(parent, "site", pose(rng) if rng.random() < 0.5 else {"size": "0.1"})


def classed(rng: Random, classes: list[str]) -> dict[str, str]:
    return {"class": rng.choice(classes)} if rng.random() < 0.15 else {}


# -- mutations --------------------------------------------------------------------------------------------------------

VALUES = (
    "0",
    "1",
    "-1",
    "0.5",
    "3",
    "-20",
    "90",
    "1e-3",
    "1e-9",
    "1e-16",
    "1e3",
    "true",
    "auto",
    "0 0 1",
    "0 0 0",
)


def elements(root: Element) -> list[Element]:
    return [element for element in root.iter() if element is not root]


def parents(root: Element) -> dict[Element, Element]:
    return {child: parent for parent in root.iter() for child in parent}


def with_attributes(rng: Random, root: Element) -> Element | None:
    found = [element for element in root.iter() if element.attrib]
    return rng.choice(found) if found else None


def change_number(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is None:
        return
    key = rng.choice(list(element.attrib))
    words = element.get(key, "").split()
    if words:
        k = rng.randrange(len(words))
        words[k] = rng.choice((rng.choice(VALUES), number(rng, -2, 2)))
        element.set(key, " ".join(words))


def change_length(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is None:
        return
    key = rng.choice(list(element.attrib))
    words = element.get(key, "").split()
    if words:
        element.set(key, " ".join(words[:-1] if rng.random() < 0.5 else [*words, words[-1]]))


def drop_attribute(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is not None:
        del element.attrib[rng.choice(list(element.attrib))]


def add_attribute(rng: Random, root: Element) -> None:
    pools = {"compiler": COMPILER, "option": OPTION, "flag": FLAG, "joint": JOINT, "geom": GEOM}
    element = rng.choice([e for e in root.iter() if e.tag in pools] or [root])
    if element is root:
        return
    pool = pools[element.tag]
    key = rng.choice(list(pool))
    element.set(key, pool[key](rng))


def turn(rng: Random, root: Element) -> None:
    """Another pose for something that has one."""
    found = [e for e in root.iter() if e.tag in ("body", "geom", "site", "frame", "inertial")]
    if found:
        rng.choice(found).attrib.update(pose(rng))


def misspell(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is None:
        return
    key = rng.choice(list(element.attrib))
    k = rng.randrange(len(key))
    element.set(
        rng.choice((key[:k] + key[k + 1 :], key[:k] + "e" + key[k:], key.upper())) or "x",
        element.attrib.pop(key),
    )


def give_away(rng: Random, root: Element) -> None:
    """An attribute of one element to another one."""
    element = with_attributes(rng, root)
    if element is not None:
        key = rng.choice(list(element.attrib))
        rng.choice(elements(root)).set(key, element.get(key, ""))


def repeat(rng: Random, root: Element) -> None:
    everything = elements(root)
    if not everything:
        return
    element = rng.choice(everything)
    twin = copy.deepcopy(element)
    for k, inner in enumerate(twin.iter()):
        if "name" in inner.attrib and rng.random() < 0.9:
            inner.set("name", f"{inner.get('name')}_{rng.randrange(1000)}_{k}")
    above = parents(root)[element]
    above.insert(rng.randint(0, len(above)), twin)


def repeat_section(rng: Random, root: Element) -> None:
    """One more <compiler>, <option>, <default> or <worldbody>, somewhere in the file."""
    tag = rng.choice(("compiler", "option", "option", "default", "worldbody"))
    section = Element(tag, some(rng, {"compiler": COMPILER, "option": OPTION}.get(tag, {}), 0.25))
    if tag == "option" and rng.random() < 0.7:
        SubElement(section, "flag", some(rng, FLAG, 0.25))
    if tag == "default":
        defaults(rng, section)
    root.insert(rng.randint(0, len(root)), section)


def move(rng: Random, root: Element) -> None:
    everything = elements(root)
    element = rng.choice(everything)
    target = rng.choice([e for e in everything if e not in list(element.iter())] or [root])
    parents(root)[element].remove(element)
    target.insert(rng.randint(0, len(target)), element)


def nest(rng: Random, root: Element) -> None:
    """Put an element into a <frame> or a <body> of its own."""
    found = [e for e in root.iter() if e.tag in ("body", "geom", "site", "joint", "frame", "inertial")]
    if not found:
        return
    element = rng.choice(found)
    above = parents(root)[element]
    tag = rng.choice(("frame", "frame", "body"))
    k = list(above).index(element)
    above.remove(element)
    around = Element(tag, pose(rng))
    around.append(element)
    above.insert(k, around)


def drop(rng: Random, root: Element) -> None:
    everything = elements(root)
    if len(everything) > 1:
        element = rng.choice(everything)
        parents(root)[element].remove(element)


def swap(rng: Random, root: Element) -> None:
    above = rng.choice([e for e in root.iter() if len(e) > 1] or [root])
    if len(above) > 1:
        order = list(above)
        rng.shuffle(order)
        above[:] = order


MUTATIONS = (
    *(
        change_number,
        change_number,
        change_length,
        drop_attribute,
        add_attribute,
        add_attribute,
        turn,
        misspell,
    ),
    *(give_away, repeat, repeat, repeat_section, repeat_section, move, nest, drop, swap),
)


def mutated(seed: int, bases: Sequence[str] = ()) -> str:
    """File number ``seed``; from one of the given files instead of a random one, if there are any."""
    rng = Random(seed)
    root = ElementTree.fromstring(rng.choice(bases)) if bases else random_file(rng)
    for _ in range(rng.randint(0, 3)):
        if len(root):
            rng.choice(MUTATIONS)(rng, root)
    return ElementTree.tostring(root, encoding="unicode")


# -- comparison -------------------------------------------------------------------------------------------------------


def read_here(xml: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_mjcf(xml.encode(), "arm.xml")


class Disagreement(AssertionError):
    pass


def compare(model: Model, peer: mujoco.MjModel, seed: int) -> None:
    """Raise a Disagreement at the first number that differs."""
    model = model.with_constraints([])
    flags = int(peer.opt.disableflags)
    # friction loss, limits and equalities are constraints there
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    peer.opt.enableflags = 0
    data = mujoco.MjData(peer)
    if (model.dof, model.nq) != (peer.nv, peer.nq):
        raise Disagreement(f"{model.dof} velocities here, {peer.nv} there")
    near("gravity", model.gravity, gravity_of(peer))
    compare_joints(model, peer, flags)
    compare_bodies(model, peer)
    rng = np.random.default_rng(seed)
    robot = Robot.from_model(model)
    viscous = np.concatenate(
        [[0.0], *([joint.viscous_friction] * joint.dof for joint in model.coordinate_joints)]
    )[1:]
    for _ in range(STATES):
        q = robot.random(rng)
        qd, qdd = rng.normal(size=(2, model.dof))
        data.qpos[:], turn, rest = as_mujoco(model, q, qd)
        data.qvel[:], data.qacc[:] = turn @ qd, turn @ qdd + rest
        mujoco.mj_inverse(peer, data)
        compare_poses(model, q, peer, data)
        if model.dof:
            M = np.zeros((peer.nv, peer.nv))
            mujoco.mj_fullM(peer, data, M)
            near("mass matrix", value(robot, "mass_matrix", q=q), turn.T @ M @ turn)
            size = float(np.abs(M).max() * np.abs(data.qacc).max() + np.abs(data.qfrc_bias).max())
            size += float(np.abs(data.qfrc_passive).max())
            # springs belong to the robot here, and are passive forces there
            bias = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=0 * qdd)
            near("bias forces", bias, turn.T @ (data.qfrc_bias - data.qfrc_spring + M @ rest), size)
            tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
            near("inverse dynamics", tau + viscous * qd, turn.T @ data.qfrc_inverse, size)


def as_mujoco(model: Model, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(qpos, B, b): MuJoCo's positions, and its velocities B q̇ and accelerations B q̈ + b.

    Quaternions begin with w there; the linear velocity of a free joint comes first, in the axes of the world.
    """
    qpos, turn, rest = q.copy(), np.eye(model.dof), np.zeros(model.dof)
    at = first = 0
    for joint in model.coordinate_joints:
        if joint.free:
            x, y, z, w = q[at + joint.nq - 4 : at + joint.nq]
            qpos[at + joint.nq - 4 : at + joint.nq] = w, x, y, z
            if joint.dof == 6:
                R = Transform.from_quaternion((0, 0, 0), (w, x, y, z)).rotation
                own = slice(first, first + 6)
                turn[own, own] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                rest[first : first + 3] = R @ np.cross(qd[first : first + 3], qd[first + 3 : first + 6])
        at, first = at + joint.nq, first + joint.dof
    return qpos, turn, rest


def gravity_of(peer: mujoco.MjModel) -> np.ndarray:
    off = peer.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    return np.zeros(3) if off else np.array(peer.opt.gravity)


def compare_joints(model: Model, peer: mujoco.MjModel, flags: int) -> None:
    off = mujoco.mjtDisableBit
    damped = not flags & int(off.mjDSBL_DAMPER)
    rubs = not flags & (int(off.mjDSBL_FRICTIONLOSS) | int(off.mjDSBL_CONSTRAINT))
    for k, joint in enumerate(model.coordinate_joints):
        theirs = mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_JOINT, k)
        if theirs and joint.name != theirs:
            raise Disagreement(f"joint {joint.name!r} here, {theirs!r} there")
        name, dof = f"joint {joint.name!r}: ", peer.jnt_dofadr[k]
        slides = peer.jnt_type[k] == mujoco.mjtJoint.mjJNT_SLIDE
        if joint.dof != (1 if peer.jnt_type[k] >= 2 else 3 if peer.jnt_type[k] == 1 else 6):
            raise Disagreement(f"{name}{joint.type} here")
        if joint.dof == 1:
            if (joint.type == "prismatic") != slides:
                raise Disagreement(f"{name}{joint.type} here")
            ends = peer.jnt_range[k] if peer.jnt_limited[k] else (-np.inf, np.inf)
            near(name + "range", (joint.limits.lower, joint.limits.upper), ends, 1.0)
            effort = np.abs(peer.jnt_actfrcrange[k]).max() if peer.jnt_actfrclimited[k] else np.inf
            near(name + "effort", joint.limits.effort, effort, 1.0)
        near(name + "armature", joint.rotor_inertia, peer.dof_armature[dof], 1.0)
        near(name + "damping", joint.viscous_friction, peer.dof_damping[dof] if damped else 0.0, 1.0)
        lost = peer.dof_frictionloss[dof] if rubs else 0.0
        near(name + "friction loss", joint.coulomb_friction, (lost, lost), 1.0)


def compare_bodies(model: Model, peer: mujoco.MjModel) -> None:
    """Mass, centre and inertia of each named body that moves."""
    for k in range(1, peer.nbody):
        name = mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_BODY, k)
        if not name or model.carrier(name)[0] < 0:
            continue
        inertia = next(link.inertia for link in model.links if link.name == name)
        near(f"body {name!r}: mass", inertia.mass, peer.body_mass[k], 1.0)
        if inertia.mass > 0:
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, peer.body_iquat[k])
            turn = turn.reshape(3, 3)
            near(f"body {name!r}: centre of mass", inertia.com, peer.body_ipos[k], 1.0)
            theirs = turn @ np.diag(peer.body_inertia[k]) @ turn.T
            size = float(np.abs(inertia.inertia_about_origin).max())
            near(f"body {name!r}: inertia", inertia.matrix_about_com, theirs, size)


def compare_poses(model: Model, q: np.ndarray, peer: mujoco.MjModel, data: mujoco.MjData) -> None:
    poses = {model.base: Transform.identity()}
    at = np.cumsum([joint.nq for joint in model.coordinate_joints])[:-1]
    own = dict(zip(model.joint_names, np.split(q, at), strict=True)) if model.nq else {}
    for joint in model.joints:
        moved = own[joint.name] if joint.free else float(own[joint.name][0]) if joint.moves else 0.0
        poses[joint.child] = poses[joint.parent] @ joint.motion(moved)
    for frame in model.frames:
        poses[frame.name] = poses[frame.link] @ frame.pose
    shared = {link.name for link in model.links}  # a site of this name is called NAME_site here
    for kind, count, places, turns in (
        (mujoco.mjtObj.mjOBJ_BODY, peer.nbody, data.xpos, data.xmat),
        (mujoco.mjtObj.mjOBJ_SITE, peer.nsite, data.site_xpos, data.site_xmat),
    ):
        for k in range(count):
            name = mujoco.mj_id2name(peer, kind, k)
            if not name:
                continue
            if kind == mujoco.mjtObj.mjOBJ_SITE and name in shared:
                name = f"{name}_site"
            if name not in poses:
                raise Disagreement(f"{name!r} is missing here")
            # MuJoCo takes a site that is turned by less than about 1e-6 rad as not turned at all
            size = SAME_FRAME if kind == mujoco.mjtObj.mjOBJ_SITE and peer.site_sameframe[k] else 1.0
            near(f"place of {name!r}", poses[name].translation, places[k], size)
            near(f"orientation of {name!r}", poses[name].rotation.ravel(), turns[k], size)


def value(robot: Robot, name: str, **given) -> np.ndarray:
    """A function by the reference algorithm on NumPy arrays: nothing is compiled."""
    function = function_named(name)
    results = arrays.run_on_arrays(function, Setting(robot, friction=False), function.algorithm(None), given)
    return next(iter(results.values()))


def near(what: str, mine, theirs, scale: float = 0.0) -> None:
    mine, theirs = np.asarray(mine, dtype=float), np.asarray(theirs, dtype=float)
    finite = np.isfinite(theirs)
    if not np.array_equal(np.isfinite(mine), finite) or not np.array_equal(mine[~finite], theirs[~finite]):
        raise Disagreement(f"{what}: {mine} here, {theirs} there")
    scale = max(scale, float(np.abs(theirs[finite]).max(initial=0.0)), 1e-12)
    if float(np.abs(mine[finite] - theirs[finite]).max(initial=0.0)) > TOLERANCE * scale:
        raise Disagreement(f"{what}: {mine} here, {theirs} there")


# -- the run ----------------------------------------------------------------------------------------------------------


def without_meshes(path: Path) -> str:
    """An MJCF file without its geoms and assets: the meshes that they name are not here."""
    xml = re.sub(r"<!--.*?-->|<asset>.*?</asset>", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"<geom\b[^>]*/>", "", xml)


def judge(seed: int, bases: Sequence[str] = ()) -> tuple[str, str]:
    """(outcome, why) of one file: agrees, DISAGREES, refused by both, refused here, READ HERE ONLY, FAILS."""
    xml = mutated(seed, bases)
    try:
        model, here = read_here(xml), ""
    except ModelError as error:
        model, here = None, str(error)
    except Exception as error:
        return "FAILS", f"{type(error).__name__}: {error}"
    try:
        peer, there = mujoco.MjModel.from_xml_string(xml), ""
    except ValueError as error:
        peer, there = None, " ".join(str(error).split())
    if model is None or peer is None:
        if model is None and peer is None:
            return "refused by both", here
        if model is None:
            return "refused here", here
        reason = next((why for part, why in LISTED.items() if re.search(part, there)), None)
        return ("READ HERE ONLY", there) if reason is None else ("read here, listed", reason)
    try:
        compare(model, peer, seed)
    except (Disagreement, LinkwiseError) as error:
        return "DISAGREES", str(error)
    return "agrees", ""


def loads_there(xml: str) -> bool:
    try:
        return mujoco.MjModel.from_xml_string(xml).nv > 0
    except ValueError:
        return False


def general(reason: str) -> str:
    """A reason without the names and numbers of its file."""
    reason = re.sub(r"arm.xml:\d+: <.*?>( of <.*?>)*: ", "", reason)
    reason = re.sub(r'"[^"]*"|\'[^\']*\'', "…", reason)
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", reason).split(";")[0][:90]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000, help="files that both readers take")
    parser.add_argument("--seed", type=int, default=0, help="number of the first file")
    parser.add_argument(
        "--mutate", type=Path, nargs="*", default=(), help="files to mutate instead of random ones"
    )
    parser.add_argument("--show", action="store_true", help="print the files with findings")
    parser.add_argument("--reasons", action="store_true", help="list why files were refused")
    options = parser.parse_args()
    mujoco.set_mju_user_warning(lambda _: None)  # else it writes them into a file
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    findings = 0
    bases = [without_meshes(path) for path in options.mutate]
    bases = [xml for xml in bases if loads_there(xml)]
    seed = options.seed
    while counts["agrees"] + counts["DISAGREES"] < options.files:
        outcome, why = judge(seed, bases)
        counts[outcome] += 1
        reasons[outcome, general(why)] += 1
        if outcome.isupper():
            findings += 1
            print(f"file {seed}: {outcome}: {why}"[:400])
            if options.show:
                print(mutated(seed, bases))
        elif options.show and options.files == 1:
            print(f"file {seed}: {outcome}: {why}\n{mutated(seed, bases)}")
        seed += 1
    print(f"{seed - options.seed} files, seeds {options.seed} to {seed - 1}: ", end="")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    if options.reasons:
        for (outcome, why), count in reasons.most_common():
            if why:
                print(f"{count:7}  {outcome}: {why}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
