"""Several robots and bodies as one model: links and joints side by side on one base, the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.bodies import Body
from linkwise.model.constraints import Point, Weld
from linkwise.model.contacts import Contact, Ground, Part, Stop, Tendon, shapes_of
from linkwise.model.joint import Joint
from linkwise.model.link import Frame, Link
from linkwise.model.model import STANDARD_GRAVITY, Model
from linkwise.model.motors import Motor
from linkwise.model.shapes import Shape, candidates_of
from linkwise.model.transform import Transform

WORLD = "world"
_IDENTITY = Transform.identity()


def merged(
    items: Sequence[Any],
    *,
    name: str = "scene",
    poses: Mapping[str, Transform] | None = None,
    contacts: Sequence[Part] | None = None,
) -> Model:
    """Robots, bodies and the ground as one model, see ``linkwise.Scene``."""
    for item in items:
        if not isinstance(item, (Model, Body, Ground)):
            raise ModelError(f"scene: expected robots, lw.Body and lw.Ground, got {item!r:.80}")
    poses = dict(poses or {})
    made = _Scene(poses)
    for item in items:
        if isinstance(item, Model):
            made.add_robot(item)
        elif isinstance(item, Body):
            made.add_body(item)
    if poses.keys() - made.used:
        known = ", ".join(item.name for item in items if isinstance(item, Model))
        raise ModelError(f"scene: poses: no robot {sorted(poses.keys() - made.used)[0]!r}; robots: {known}")
    if all(joint.type == "fixed" for joint in made.joints):
        raise ModelError("scene: nothing moves; give it a robot, or a body with a mass")
    grounds = [item for item in items if isinstance(item, Ground)]
    every = made.contact_parts(grounds, contacts)
    model = Model(
        name,
        made.links,
        made.joints,
        gravity=made.gravity if made.gravity is not None else STANDARD_GRAVITY,
        frames=made.frames,
        reduced=made.reduced,
        constraints=made.constraints,
        passive=made.passive,
        contacts=every,
        fluid=None,
    )
    return model.with_motors(made.motors) if made.motors else model


class _Scene:
    def __init__(self, poses: Mapping[str, Transform]):
        self.poses, self.used = poses, set[str]()
        self.links: list[Link] = [Link(WORLD)]
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.constraints: list[Any] = []
        self.passive: list[str] = []
        self.motors: list[Motor] = []
        self.parts: list[Part] = []
        self.gravity: tuple[float, ...] | None = None
        self.reduced = False
        self.taken = {WORLD}
        self.groups: list[tuple[str, ...]] = []  # frames with shapes, of one item each
        self.bodies: list[Body] = []

    def add_body(self, body: Body) -> None:
        joint = f"{body.name}_joint"
        for each in (body.name, joint):
            if each in self.taken:
                raise ModelError(f"scene: two things are called {each!r}; give the body another name=")
            self.taken.add(each)
        self.links.append(Link(body.name, body.spatial_inertia))
        kind = "fixed" if body.mass is None else "floating"
        self.joints.append(Joint(joint, kind, WORLD, body.name, origin=body.pose))
        self.parts.append(replace(body.shape, frame=body.name))
        self.groups.append((body.name,))
        self.bodies.append(body)

    def add_robot(self, robot: Model) -> None:
        pose = self.poses.get(robot.name, _IDENTITY)
        if robot.name in self.poses:
            self.used.add(robot.name)
        if robot.fluid is not None:
            raise ModelError(
                f"scene: {robot.name} is in a fluid, which scenes do not have; use with_fluid(None)"
            )
        self._check_gravity(robot, pose)
        bare = robot.with_motors(()) if robot.motors else robot
        root = bare.base
        # the empty world of a file is that of the scene
        is_world = next(link for link in bare.links if link.name == root).inertia.is_zero and (
            root == WORLD
            or all(joint.type in ("floating", "planar") for joint in bare.joints if joint.parent == root)
        )
        own = [
            *(link.name for link in bare.links if not (is_world and link.name == root)),
            *(joint.name for joint in bare.joints),
            *(frame.name for frame in bare.frames),
            *(motor.name for motor in robot.motors),
        ]
        prefix = f"{robot.name}/" if self.taken & set(own) else ""
        if prefix and any(prefix + each in self.taken for each in own):
            raise ModelError(f"scene: two robots are called {robot.name!r}; give one of them another name")
        self.taken |= {prefix + each for each in own}

        def renamed(each: str) -> str:
            return WORLD if is_world and each == root else prefix + each

        self.links += [
            Link(renamed(e.name), e.inertia) for e in bare.links if not (is_world and e.name == root)
        ]
        if not is_world:
            self.joints.append(Joint(f"{renamed(root)}_in_world", "fixed", WORLD, renamed(root), origin=pose))
            self.taken.add(f"{renamed(root)}_in_world")
        for joint in bare.joints:
            at_root = is_world and joint.parent == root
            if at_root and joint.type == "floating" and pose is not _IDENTITY:
                raise ModelError(f"scene: {robot.name} floats: where it starts is part of q, not of poses")
            self.joints.append(_joint(joint, renamed, pose if at_root else _IDENTITY))
        self.frames += [
            Frame(renamed(f.name), renamed(f.link), pose @ f.pose if is_world and f.link == root else f.pose)
            for f in bare.frames
        ]
        self.constraints += [_constraint(each, renamed, robot.name, pose) for each in bare.constraints]
        self.passive += [renamed(each) for each in robot.passive]
        self.motors += [
            replace(m, name=renamed(m.name), joints={renamed(j): f for j, f in m.joints.items()})
            for m in robot.motors
        ]
        self.reduced = self.reduced or robot.reduced
        own_parts = [_part(each, renamed) for each in robot.contact_parts]
        self.parts += own_parts
        frames = dict.fromkeys(part.frame for part in own_parts if isinstance(part, Shape))
        self.groups.append(tuple(frames))

    def _check_gravity(self, robot: Model, pose: Transform) -> None:
        turned = tuple(float(x) for x in (pose.rotation * np.array(robot.gravity)).sum(axis=1))
        own = turned if pose is not _IDENTITY else tuple(robot.gravity)
        if self.gravity is None:
            self.gravity = own
        elif np.abs(np.subtract(own, self.gravity)).max() > 1e-9:
            raise ModelError(
                f"scene: gravity of {robot.name} is {own} in the world, that of others {self.gravity}; use with_gravity"
            )

    def contact_parts(self, grounds: Sequence[Ground], contacts: Sequence[Part] | None) -> list[Part]:
        """Shapes, contacts of the robots, of bodies with the ground, and of shapes of different items."""
        own = [part for part in self.parts if isinstance(part, Ground)]
        if len(grounds) > 1 or len({*own, *grounds}) > 1:
            raise ModelError("scene: expected one lw.Ground; robots with contacts may have another one")
        parts: list[Part] = [part for part in self.parts if not isinstance(part, Ground)]
        ground = (*grounds, *own)[:1]
        if ground:
            parts += [Contact(body.name) for body in self.bodies if body.mass is not None]
        parts += self._pairs(parts) if contacts is None else list(contacts)
        return [*ground, *parts]

    def _pairs(self, parts: Sequence[Part]) -> list[Contact]:
        fixed = {body.name for body in self.bodies if body.mass is None}
        found: list[Contact] = []
        for ours, theirs in combinations(self.groups, 2):
            for a in ours:
                for b in theirs:
                    if a in fixed and b in fixed:
                        continue
                    for first in shapes_of(parts, a):
                        for second in shapes_of(parts, b):
                            _check_pair(first, second)
                    found.append(Contact(b, a) if a in fixed or b not in fixed else Contact(a, b))
        return found


def _check_pair(first: Shape, second: Shape) -> None:
    try:
        candidates_of(first, second)
    except ModelError as error:
        raise ModelError(
            f"scene: {error}; list the pairs that may touch, as in contacts=[lw.Contact('finger', 'cube')]"
        ) from None


def _joint(joint: Joint, renamed: Callable[[str], str], pose: Transform) -> Joint:
    mimic = joint.mimic
    if mimic is not None:
        also = tuple((renamed(name), factor) for name, factor in mimic.also)
        mimic = replace(mimic, joint=renamed(mimic.joint), also=also)
    return replace(
        joint,
        name=renamed(joint.name),
        parent=renamed(joint.parent),
        child=renamed(joint.child),
        origin=joint.origin if pose is _IDENTITY else pose @ joint.origin,
        mimic=mimic,
        body=renamed(joint.body) if joint.body else "",
    )


def _constraint(each: Any, renamed: Callable[[str], str], robot: str, pose: Transform) -> Any:
    if isinstance(each.to, str):
        return replace(each, frame=renamed(each.frame), to=renamed(each.to))
    if pose is not _IDENTITY:
        raise ModelError(f"scene: {robot} is held in the world, so it cannot have another pose")
    assert isinstance(each, (Weld, Point))
    return replace(each, frame=renamed(each.frame))


def _part(part: Part, renamed: Callable[[str], str]) -> Part:
    if isinstance(part, Contact):
        other = None if part.other is None else renamed(part.other)
        shapes, others = ([_part(each, renamed) for each in own] for own in (part.shapes, part.other_shapes))
        name = renamed(part.name) if part.name else ""
        return replace(
            part, frame=renamed(part.frame), other=other, shapes=shapes, other_shapes=others, name=name
        )
    if isinstance(part, Shape):
        return replace(part, frame=renamed(part.frame))
    if isinstance(part, Stop):
        return replace(part, joint=renamed(part.joint))
    if isinstance(part, Tendon):
        weights = {renamed(joint): weight for joint, weight in part.weights.items()}
        name = renamed(part.name) if part.name else ""
        return replace(part, joints=weights, through=[renamed(frame) for frame in part.through], name=name)
    return part
