"""MJCF, MuJoCo's format: nested bodies with hinge, slide, ball and free joints.

Read: bodies and <frame>s with every way to write an orientation, several joints in one body, joint ``pos``
and ``ref``, <inertial>, inertia from geoms that are simple solids, default classes, ``armature`` (rotor
inertia), ``damping`` (viscous friction), ``frictionloss`` (Coulomb friction), linear springs
(``stiffness``, ``springref``), ranges, gravity, sites (as frames), linear joint equalities (as couplings),
connect and weld equalities (as constraints), ``gravcomp``, <include>, <replicate> and
<attach>.
Of actuators the torque limits are read (``actuators.py``); contacts, sensors, keyframes and the like do not belong to
the arm's equation of motion and are left out. What would change it and cannot be represented
(springs that are not linear, tendons with stiffness) is refused by name. Only files that are
included, in the folder of the main file, and meshes from which an inertia comes are ever opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from linkwise.errors import ModelError, UnknownNameError
from linkwise.formats.mjcf.actuators import driven, together, with_effort
from linkwise.formats.mjcf.attach import DEEPEST, MOST_ATTACHED, graft, submodel
from linkwise.formats.mjcf.constraints import (
    WORLD,
    check_sections,
    equalities,
    read_constraints,
    read_mimics,
    read_motors,
)
from linkwise.formats.mjcf.copy import copy_in
from linkwise.formats.mjcf.defaults import Defaults
from linkwise.formats.mjcf.files import expanded
from linkwise.formats.mjcf.fluid import axes_of, drag_bodies, fluid
from linkwise.formats.mjcf.geom import check_geom, geom_inertia, site_pose
from linkwise.formats.mjcf.joint import Ends, MjcfJoint, read_joint
from linkwise.formats.mjcf.mesh import Meshes
from linkwise.formats.mjcf.schema import check_names, check_unique
from linkwise.formats.mjcf.settings import TURNS, flag, read_settings
from linkwise.formats.mjcf.springdamper import with_springdampers
from linkwise.formats.xml import Element, parse_xml
from linkwise.model import compensation
from linkwise.model.constraints import Constraint
from linkwise.model.fluid import DragBody
from linkwise.model.inertia import Inertia, matrix_of
from linkwise.model.joint import Joint
from linkwise.model.model import Frame, Link, Model, suggest
from linkwise.model.motors import Motor
from linkwise.model.transform import Transform

SMALLEST = 1e-15  # mass [kg] and principal moments [kg·m²] that a moving body must have, mjMINVAL of MuJoCo
ATTACHED = ""  # stands for the body that a model is attached to; no link has this name
MOST_DOF = 6  # degrees of freedom between a body and the one that carries it


def read_mjcf(data: bytes, where: str, allow: Sequence[str] = ()) -> Model:
    """The robot of an MJCF file; ``where`` (usually the file's name) begins every error message. Files that it names
    lie in its folder or in one of the folders ``allow``."""
    root = parse_xml(data, where)
    if root.tag != "mujoco":
        raise root.error("the root element of an MJCF file is <mujoco>")
    copy = copy_in(root, data, where)
    if copy is not None:
        return copy
    return _Reader(root, where, allow=allow).model()


@dataclass(frozen=True)
class _Item:
    """A child of a body, with the pose and the class of the <frame>s around it."""

    element: Element
    frame: Transform
    childclass: str | None


class _Reader:
    def __init__(self, root: Element, where: str, outer: _Reader | None = None, allow: Sequence[str] = ()):
        root = expanded(root, where, allow)
        self.allow = allow
        check_names(root)
        check_unique(root)
        self.root, self.where = root, where
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.attached: list[str] = [] if outer is None else outer.attached  # of all levels together
        self.settings = read_settings(root)
        self.defaults = Defaults(root)
        self.meshes = Meshes(root, self.defaults, self.settings, where, allow)
        self.links = [Link(WORLD)]
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.named: dict[str, MjcfJoint] = {}
        self.carried: dict[str, Element] = {}  # bodies with gravcomp
        self.resisted: list[DragBody] = []  # by a fluid
        self.drawn: dict[str, Transform] = {}  # poses of free bodies as the file draws them
        self.taken = {WORLD, *(element.get("name", "") for element in root.iter())}
        self.held: list[Element] = []  # equalities that came with attached models
        self.attached_tendons: dict[str, Element] = {}
        self.attached_motors: list[Motor] = []
        self.driven: dict[str, Ends] = {}  # forces of the actuators of attached models

    def check(self) -> None:
        self.defaults.check(self.root)
        check_sections(self.root, self.defaults, self.settings)

    def motors(self, *, of_read_joints: bool = False) -> list[Motor]:
        """Tendons that are motors of several joints, those of attached models too."""
        own = read_motors(self.root, self.defaults, self.settings, self.named, of_read_joints=of_read_joints)
        return [*own, *self.attached_motors]

    def forces(self) -> dict[str, Ends]:
        """The least and the largest force of all actuators on each joint that has some."""
        own = driven(self.root, self.defaults, self.settings, self.named, self.tendons())
        return {name: together(own.get(name), self.driven.get(name)) for name in {**own, **self.driven}}

    def tendons(self) -> dict[str, Element]:
        """The tendons by name, those of attached models under their prefix."""
        own = {
            each.get("name", ""): each for section in self.root if section.tag == "tendon" for each in section
        }
        return {**own, **self.attached_tendons}

    def equalities(self) -> list[Element]:
        return [*equalities(self.root, self.defaults, self.settings), *self.held]

    def model(self) -> Model:
        self.check()
        for item in self._world():
            if item.element.tag == "body":
                self._body(item, WORLD, moving=False)
            elif item.element.tag in ("joint", "freejoint", "inertial"):
                raise item.element.error("the world has no joints and no inertia")
            elif item.element.tag == "site":
                self._site(item, WORLD)
            elif item.element.tag == "geom":
                self._geom(item, moving=False)
            elif item.element.tag == "attach":
                self._attach(item, WORLD, moving=False)
        held = self.equalities()
        mimics = read_mimics(held, self.named, self.tendons())
        forces = self.forces()
        joints = [
            replace(
                joint,
                mimic=mimics.get(joint.name),
                limits=with_effort(joint, self.named.get(joint.name), forces.get(joint.name), self.where),
            )
            for joint in self.joints
        ]
        try:
            drawn = Model(
                self.root.get("model") or PurePath(self.where).stem,
                self._scaled_links(),
                joints,
                gravity=self.settings.gravity,
                frames=self._unique_frames(),
                fluid=fluid(self.resisted, self.settings),
            )
            motors = self.motors()
            self._check_rotors(drawn, motors)
            drawn = self._with_springdampers(drawn, motors)
            joints = compensation.of_shares(drawn, self._shares(drawn))
            drawn = drawn._with(joints=joints)  # pyright: ignore[reportPrivateUsage]
            sites = dict(
                zip((frame.name for frame in self.frames), (f.name for f in drawn.frames), strict=True)
            )
            constraints = [
                constraint
                for constraint in read_constraints(held, lambda name: self._drawn(drawn, name), sites)
                if not _holds_nothing(drawn, constraint)
            ]
            held_robot = drawn.with_constraints(constraints) if constraints else drawn
            return held_robot.with_motors(motors) if motors else held_robot
        except ModelError as error:
            text = str(error)
            raise ModelError(text if text.startswith(self.where) else f"{self.where}: {text}") from None

    def _check_rotors(self, model: Model, motors: Sequence[Motor]) -> None:
        """MuJoCo's mass matrix has no place for the inertia that a tendon's armature puts between two branches."""
        above = {joint.name: {joint.name, *_joints_to(model, joint.parent)} for joint in model.joints}
        for motor in motors:
            longest = max((above[name] for name in motor.joints), key=len, default=set[str]())
            if motor.rotor_inertia and not set(motor.joints) <= longest:
                raise ModelError(
                    f"tendon {motor.name!r}: armature over joints of different branches, of which MuJoCo leaves out "
                    "a part, is not supported"
                )

    def _with_springdampers(self, model: Model, motors: Sequence[Motor]) -> Model:
        given = {
            name: joint.springdamper for name, joint in self.named.items() if joint.springdamper is not None
        }
        joints = with_springdampers(
            model,
            motors,
            given,
            lambda link: self._drawn(model, link),
            springs=self.settings.springs,
            dampers=self.settings.dampers,
        )
        return model._with(joints=joints)  # pyright: ignore[reportPrivateUsage]

    def _shares(self, model: Model) -> dict[str, float]:
        """The share of each body's weight that is carried from outside. Joints with ``actuatorgravcomp`` carry it by
        their motors, whose torques are inputs: for them it is weight like any other."""
        shares: dict[str, float] = {}
        for name, body in self.carried.items():
            by_motor = [self.named[joint].carries for joint in _joints_to(model, name) if joint in self.named]
            if any(by_motor) and not all(by_motor):
                raise body.error(
                    f"gravcomp={body.get('gravcomp')!r}: some joints between it and the world have "
                    "actuatorgravcomp='true', others not, which is not supported"
                )
            if not any(by_motor):
                shares[name] = body.number("gravcomp")
        return shares

    def _drawn(self, model: Model, link: str) -> Transform:
        """Where the file draws a link: joints at their ``ref``, free bodies at their pose."""
        if link not in model.link_names:
            raise UnknownNameError(f"no body {link!r}; {suggest(link, model.link_names)}")
        pose, name = Transform.identity(), link
        by_child = {joint.child: joint for joint in model.joints}
        while name != model.base:
            joint = by_child[name]
            step = self.drawn.get(name)
            if step is None:
                ref = self.named[joint.name].ref if joint.name in self.named else 0.0
                step = joint.motion(joint.neutral.tolist() if joint.free else ref)
            pose, name = step @ pose, joint.parent
        return pose

    def _items(self, parent: Element, frame: Transform, childclass: str | None) -> Iterator[_Item]:
        """The children of a body in the order of the file; <frame>s are gone through, not given."""
        for child in parent:
            if child.tag == "frame":
                yield from self._items(
                    child, frame @ self.settings.pose(child), child.get("childclass", childclass)
                )
            else:
                yield _Item(child, frame, childclass)

    def _body(self, item: _Item, parent: str, moving: bool) -> bool:
        """Read a body and what it carries; says whether it has mass, alone or with what is fixed to it."""
        body = item.element
        name = body.get("name") or self._new_name("body")
        items = list(self._items(body, Transform.identity(), body.get("childclass", item.childclass)))
        joints = [inner for inner in items if inner.element.tag in ("joint", "freejoint")]
        if flag(body, "mocap", False) and (joints or parent != WORLD):
            raise body.error("mocap: only a body without joints in the <worldbody> can have it")
        self._check_joints(body, joints)
        moving = moving or bool(joints)
        if moving and body.number("gravcomp", 0.0) != 0 and self.settings.gravity_compensation:
            self.carried[name] = body
        place = self.settings.pose(body)
        self._connect(name, parent, item.frame @ place, joints)
        inertia = self._inertia(name, body, items, moving, place)
        self._check_alignment(joints, items, inertia)
        self.links.append(Link(name, inertia))
        solid = inertia.mass >= SMALLEST and np.linalg.eigvalsh(inertia.matrix_about_com)[0] >= SMALLEST
        for inner in items:
            if inner.element.tag == "site":
                self._site(inner, name)
            elif inner.element.tag == "body":
                fixed = not any(
                    child.tag in ("joint", "freejoint") for child in _through_frames(inner.element)
                )
                solid = (self._body(inner, name, moving) and fixed) or solid
            elif inner.element.tag == "attach":
                solid = self._attach(inner, name, moving) or solid
        if joints and not solid:
            raise body.error(
                f"it moves and has no mass or no inertia (at least {SMALLEST:g} kg and kg·m², as in MuJoCo); "
                "add an <inertial> or a <geom>"
            )
        return bool(solid)

    def _attach(self, item: _Item, parent: str, moving: bool) -> bool:
        """Read a body of another model (or all of its world); says whether it adds mass that is fixed to the parent."""
        attach = item.element
        if self.depth >= DEEPEST:
            raise attach.error(f"models are attached to models more than {DEEPEST} times")
        if len(self.attached) >= MOST_ATTACHED:
            raise attach.error(f"more than {MOST_ATTACHED} models are attached")
        root, where = submodel(attach, self.root, self.where, self.allow)
        self.attached.append(where)
        child = _Reader(root, where, self, self.allow)
        for key in (
            "flags",
            "acceleration",
            "density",
            "viscosity",
            "wind",
        ):  # <option>s of the outer file count
            setattr(child.settings, key, getattr(self.settings, key))
        child.check()
        anchor = WORLD if parent == WORLD else ATTACHED
        solid = False
        for inner in child._chosen(attach):
            tag = inner.element.tag
            if tag == "body":
                fixed = not any(each.tag in ("joint", "freejoint") for each in _through_frames(inner.element))
                solid = (child._body(inner, anchor, moving) and fixed) or solid
            elif tag == "site":
                child._site(inner, anchor)
            elif tag == "attach":
                solid = child._attach(inner, anchor, moving) or solid
            elif tag == "geom" and moving and child.settings.inertiafromgeom != "false":
                raise attach.error(
                    "the geoms of the world of another model cannot be attached; name a body of it"
                )
        prefix = attach.get("prefix", "")
        graft(self, child, anchor, parent, item.frame, lambda name: f"{prefix}{name}{attach.suffix}")
        return solid

    def _chosen(self, attach: Element) -> Iterator[_Item]:
        """What an <attach> takes of this model: a body, what a frame holds, or all of its world."""
        body, frame = attach.get("body"), attach.get("frame")
        if body and frame:
            raise attach.error("'body' and 'frame' exclude each other")
        if body:
            yield self._find(attach, body)
        elif frame:
            frames = [each for each in self.root.iter("frame") if each.get("name") == frame]
            if not frames:
                raise attach.error(f"no frame {frame!r} in {self.where}")
            element = frames[0]
            assert isinstance(element, Element)
            if element.parent is not None and element.parent.tag != "worldbody":
                raise attach.error(f"frame {frame!r}: only frames of the <worldbody> can be attached")
            yield from self._items(element, self.settings.pose(element), element.get("childclass"))
        else:
            yield from self._world()

    def _world(self) -> Iterator[_Item]:
        for section in self.root:
            if section.tag == "worldbody":
                yield from self._items(section, Transform.identity(), section.get("childclass"))

    def _find(self, attach: Element, name: str) -> _Item:
        """A body of this model by its name, with the class around it. As in MuJoCo, <frame>s around it do not count."""
        todo = list(self._world())
        while todo:
            item = todo.pop()
            if item.element.tag == "body":
                if item.element.get("name") == name:
                    return replace(item, frame=Transform.identity())
                childclass = item.element.get("childclass", item.childclass)
                todo += self._items(item.element, Transform.identity(), childclass)
        names = [each.get("name", "") for each in self.root.iter("body")]
        raise attach.error(f"no body {name!r} in {self.where}; {suggest(name, names)}")

    def _check_alignment(self, joints: list[_Item], items: list[_Item], inertia: Inertia) -> None:
        """Refuse where MuJoCo would move the frame of a free body to its centre of mass and principal axes."""
        if not joints or any(item.element.tag == "body" for item in items):
            return
        joint = joints[0].element
        kind = "free" if joint.tag == "freejoint" else self._joint(joints[0]).get("type", "hinge")
        asked = joint.get("align", "auto")
        if kind != "free" or not (asked == "true" or (asked == "auto" and self.settings.alignfree)):
            return
        moments = inertia.matrix_about_com
        if np.any(inertia.com) or np.any(moments != np.diag(np.diag(moments))):
            raise joint.error(
                "align: MuJoCo would move the frame of the body to its centre of mass and principal axes, which is not "
                "supported; give the <freejoint> align='false'"
            )

    def _check_joints(self, body: Element, joints: list[_Item]) -> None:
        """Refuse what MuJoCo refuses: more than six degrees of freedom, or a rotation behind a ball."""
        kinds = [
            "free"
            if item.element.tag == "freejoint"
            else self.defaults.resolve(item.element, item.childclass).get("type", "hinge")
            for item in joints
        ]
        dof = sum({"free": 6, "ball": 3}.get(kind, 1) for kind in kinds)
        if dof > MOST_DOF:
            raise body.error(f"its joints have {dof} degrees of freedom; a body can have {MOST_DOF}")
        if "ball" in kinds and set(kinds[kinds.index("ball") + 1 :]) - {"slide"}:
            raise body.error("a ball joint is followed by another rotation in the same body")

    def _connect(self, body: str, parent: str, pose: Transform, joints: list[_Item]) -> None:
        """From the parent to the body, through as many joints as the body has.

        MuJoCo's joints of one body act one after the other, each turning about an axis through its own
        anchor. Here a joint's axis passes through the origin of its child, so every joint but a last one with
        its anchor in the body's origin gets a massless link of its own, which has the body's axes and the
        joint's anchor.
        """
        at = np.zeros(3)  # the origin of the link reached so far, in the axes of the body
        for k, item in enumerate(joints):
            given = self._joint(item)
            joint = read_joint(given, item.frame, self.settings)
            name = given.get("name") or self._new_name(f"{body}_joint")
            if joint.type == "floating":
                if parent != WORLD or len(joints) > 1:
                    raise given.error("a free joint must be the only joint of a body in the <worldbody>")
                self.drawn[body] = pose
                pose = Transform.identity()  # the joint's position is the body's pose in the world
            if joint.type in ("revolute", "ball"):
                pose, at = pose @ Transform(np.eye(3), joint.anchor - at), joint.anchor
            last = k == len(joints) - 1 and (not at.any() or joint.type == "floating")
            child = body if last else self._new_name(f"{body}_{name}")
            self.joints.append(
                Joint(
                    name=name,
                    type=joint.type,
                    parent=parent,
                    child=child,
                    origin=pose @ _displacement(joint, -joint.ref),
                    axis=joint.axis,
                    limits=joint.limits,
                    rotor_inertia=joint.rotor_inertia,
                    viscous_friction=joint.viscous_friction,
                    coulomb_friction=(joint.coulomb_friction, joint.coulomb_friction),
                    terms=joint.terms,
                )
            )
            self.named[name] = joint
            if last:
                return
            self.links.append(Link(child))
            parent, pose = child, Transform.identity()
        if joints:
            pose = Transform(np.eye(3), -at)
        self.joints.append(Joint(self._new_name(f"{body}_fixed"), "fixed", parent, body, pose))

    def _joint(self, item: _Item) -> Element:
        """A joint with its defaults; <freejoint> has none."""
        if item.element.tag == "joint":
            return self.defaults.resolve(item.element, item.childclass)
        element = item.element
        name = {"name": element.text_of("name")} if element.get("name") else {}
        return Element("joint", {**name, "type": "free"}, element.where, element.line, element.parent)

    # -- inertia ---------------------------------------------------------------------------------------------

    def _inertia(
        self, name: str, body: Element, items: list[_Item], moving: bool, place: Transform
    ) -> Inertia:
        """What <inertial> states, or what the geoms add up to; a body that cannot move needs neither."""
        inertials = [item for item in items if item.element.tag == "inertial"]
        stated = [self._from_inertial(item) for item in inertials]
        if len(stated) > 1:
            raise body.error("it has more than one <inertial>")
        geoms = [(self._geom(item, moving), item.frame) for item in items if item.element.tag == "geom"]
        if not moving and self.settings.settotalmass <= 0:
            return stated[0] if stated else Inertia()
        mode, used = self.settings.inertiafromgeom, list[tuple[Element, Transform]]()
        if mode == "true" or (mode == "auto" and not stated):
            solids = [geom_inertia(geom, frame, self.settings, self.meshes) for geom, frame in geoms]
            counted = [solid for solid in solids if solid is not None]
            stated = [sum(counted[1:], start=counted[0])] if counted else stated
            inertials = [] if counted else inertials
            used = [pair for pair, solid in zip(geoms, solids, strict=True) if solid is not None]
        # MuJoCo takes ``pos`` as the centre of a body without inertia, to which boundmass may give some
        inertia = self._bounded(stated[0] if stated else Inertia(), place.translation if not stated else None)
        if moving and self.settings.fluid:
            axes = place.rotation
            if inertials and "fullinertia" not in inertials[0].element.attrib:
                axes = (inertials[0].frame @ self.settings.pose(inertials[0].element)).rotation
            elif stated:
                axes = axes_of(stated[0], used, self.settings)
            self.resisted += drag_bodies(name, inertia, axes, geoms, self.settings)
        return inertia

    def _geom(self, item: _Item, moving: bool) -> Element:
        """A geom with its defaults, checked, whether or not its inertia counts."""
        geom = self.defaults.resolve(item.element, item.childclass)
        check_geom(geom, self.settings, moving)
        return geom

    def _from_inertial(self, item: _Item) -> Inertia:
        inertial = item.element
        inertial.text_of("pos")
        mass = inertial.number("mass")
        if mass < 0:
            raise inertial.error(f"mass {mass:g} is negative")
        full, diagonal = "fullinertia" in inertial.attrib, "diaginertia" in inertial.attrib
        if full and (diagonal or any(key in inertial.attrib for key in TURNS)):
            raise inertial.error("fullinertia excludes diaginertia and an orientation")
        pose = self.settings.pose(inertial)
        if full:
            xx, yy, zz, xy, xz, yz = inertial.numbers("fullinertia", 6)
            moments = (xx, xy, xz, yy, yz, zz)
        else:
            moments = inertial.numbers("diaginertia", 3) if diagonal else (0.0, 0.0, 0.0)
        pose = item.frame @ pose
        a, b, c = np.linalg.eigvalsh(matrix_of(moments))
        if not self.settings.balanceinertia and a + b < c * (1 - 1e-9):
            raise inertial.error(
                f"no body has the principal moments {a:.4g}, {b:.4g}, {c:.4g}: "
                "the sum of two is never below the third"
            )
        return Inertia.from_com(mass, pose.translation.tolist(), moments, pose.rotation)

    def _bounded(self, inertia: Inertia, centre: np.ndarray | None = None) -> Inertia:
        """What ``boundmass``, ``boundinertia`` and ``balanceinertia`` of the <compiler> make of an inertia."""
        settings = self.settings
        moments, axes = np.linalg.eigh(inertia.matrix_about_com)
        mass = max(inertia.mass, settings.boundmass)
        bounded = np.maximum(moments, settings.boundinertia)
        if settings.balanceinertia and bounded[0] + bounded[1] < bounded[2]:
            bounded = np.full(3, bounded.mean())
        if mass == inertia.mass and np.array_equal(bounded, moments):
            return inertia
        return Inertia.from_com(mass, inertia.com if centre is None else centre, np.diag(bounded), axes)

    def _scaled_links(self) -> list[Link]:
        """The links with ``settotalmass`` applied."""
        wanted, total = self.settings.settotalmass, sum(link.inertia.mass for link in self.links)
        if wanted <= 0 or total <= 0:
            return self.links
        factor = wanted / total
        return [
            Link(link.name, Inertia.from_parameters([factor * x for x in link.inertia.parameters]))
            for link in self.links
        ]

    # -- names -----------------------------------------------------------------------------------------------

    def _site(self, item: _Item, link: str) -> None:
        site = self.defaults.resolve(item.element, item.childclass)
        pose = site_pose(site, self.settings)
        if site.get("name"):
            self.frames.append(Frame(site.text_of("name"), link, item.frame @ pose))

    def _unique_frames(self) -> list[Frame]:
        """MuJoCo lets a site have the name of a body; here both are frames."""
        taken = {link.name for link in self.links}
        return [
            Frame(f"{frame.name}_site" if frame.name in taken else frame.name, frame.link, frame.pose)
            for frame in self.frames
        ]

    def _new_name(self, stem: str) -> str:
        """The stem, with a number where the file (or this reader) has used it already."""
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name


def _holds_nothing(model: Model, constraint: Constraint) -> bool:
    """Whether both ends belong to one link (or to the world), which cannot move against itself."""
    first, second = (-1 if frame is None else model.locate(frame)[0] for frame, _ in constraint.ends())
    return first == second


def _joints_to(model: Model, link: str) -> Iterator[str]:
    """The moving joints between a link and the base."""
    above = {joint.child: joint for joint in model.joints}
    while link in above:
        if above[link].moves:
            yield above[link].name
        link = above[link].parent


def _through_frames(body: Element) -> Iterator[Element]:
    """The children of a body, those in <frame>s too."""
    for child in body:
        if child.tag == "frame":
            yield from _through_frames(child)
        else:
            yield child


def _displacement(joint: MjcfJoint, q: float) -> Transform:
    """The motion of a joint by q from where the file draws it."""
    return Transform.about(joint.axis, q) if joint.type == "revolute" else Transform.along(joint.axis, q)
