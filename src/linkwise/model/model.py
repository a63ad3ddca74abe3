"""What a robot is: an immutable tree of links and joints, in the frames of the file it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from linkwise import joint_laws
from linkwise.arguments.flags import flag
from linkwise.core.uncalled import UncalledVector, uncalled
from linkwise.errors import ModelError, ModelWarning, UnknownNameError, suggest, warn
from linkwise.model import contacts as touching
from linkwise.model import motors, variants
from linkwise.model.checks import check_numbers, check_tree
from linkwise.model.constraints import Constraint, Coupling, check_constraints, with_couplings
from linkwise.model.constraints import content as constraint_content
from linkwise.model.fluid import Fluid, around
from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.joint import Joint, Mimic, coordinate_joints, followed_joints
from linkwise.model.link import Frame, Link
from linkwise.model.motors import Motor
from linkwise.model.quantity import finite
from linkwise.model.transform import Transform

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


class Model:
    """An immutable robot: a tree of links. Every ``with_…`` method gives a new one.

    Joint coordinates are those of the moving joints, parents before children, branches in the order of the file.

    Args:
        name: of the robot.
        links: the links, each with its inertia.
        joints: the joints, which form a tree.
        gravity: [m/s²] in the base frame, shape (3,).
        frames: further frames that are fixed to links.
        reduced: marks a set of identified (base) parameters, which need not be physically possible link by link.
        constraints: points and poses that are held.
        passive: names of joints without a motor.
        fluid: what surrounds the robot and resists its motion.
        contacts: what may touch what: contacts, the ground, stops of joints.
        source: the file that it came from and folders with its meshes, for its geometry; equal robots may differ in it.

    Raises:
        ModelError: links and joints are no tree, or a number is impossible.
    """

    def __init__(
        self,
        name: str,
        links: Iterable[Link],
        joints: Iterable[Joint],
        *,
        gravity: Sequence[float] = STANDARD_GRAVITY,
        frames: Iterable[Frame] = (),
        reduced: bool = False,
        constraints: Iterable[Constraint] = (),
        passive: Iterable[str] = (),
        contacts: Iterable[touching.Part] = (),
        source: Iterable[str] = (),
        fluid: Fluid | None = None,
    ):
        links, joints, frames = tuple(links), tuple(joints), tuple(frames)
        check_tree(links, joints, frames)
        check_numbers(links, joints, frames, gravity)
        put = self.__dict__.__setitem__
        put("name", name)
        put("links", links)
        put("gravity", UncalledVector(float(g) for g in gravity))
        put("frames", frames)
        put("reduced", flag("reduced", reduced))
        children: dict[str, list[Joint]] = {}
        for joint in joints:
            children.setdefault(joint.parent, []).append(joint)
        below = {joint.child for joint in joints}
        put("base", next(link.name for link in links if link.name not in below))
        ordered: list[Joint] = []
        stack = list(reversed(children.get(self.base, [])))
        while stack:
            joint = stack.pop()
            ordered.append(joint)
            stack.extend(reversed(children.get(joint.child, [])))
        put("joints", tuple(ordered))
        put("moving_joints", tuple(joint for joint in ordered if joint.moves))
        put("followed", followed_joints(self.moving_joints))
        put("coordinate_joints", coordinate_joints(self.moving_joints, self.followed))
        put("constraints", tuple(constraints))
        put("passive", tuple(passive))
        put("contact_parts", tuple(contacts))
        put("source", tuple(source))
        put("fluid", None if fluid is None else around(self, fluid))
        check_constraints(self)
        touching.check_contacts(self, self.contact_parts)
        for k, joint in enumerate(self.moving_joints):
            if joint.body and (joint.body not in self.link_names or self.carrier(joint.body)[0] != k):
                raise ModelError(
                    f"joint {joint.name!r}: its body {joint.body!r} is not a link that it moves directly"
                )

    # -- names ----------------------------------------------------------------------------------------------------

    base: str
    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    moving_joints: tuple[Joint, ...]
    # those of them that have coordinates of their own, in their order; limits are such that followers keep theirs
    coordinate_joints: tuple[Joint, ...]
    followed: tuple[Mimic | None, ...]  # for each moving joint the coordinate joint that it follows, if any
    gravity: tuple[float, float, float]
    frames: tuple[Frame, ...]
    reduced: bool
    constraints: tuple[Constraint, ...]  # points and poses that are held
    # joints without a motor: inverse dynamics under constraints gives them no torque
    passive: tuple[str, ...]
    fluid: Fluid | None  # what surrounds it and resists its motion; its bodies are those of moving links
    contact_parts: tuple[touching.Part, ...]  # contacts, ground and stops as they were given
    # the file that it came from, then folders with its meshes; not part of ``content``
    source: tuple[str, ...]

    @property
    def dof(self) -> int:
        """Number of velocity coordinates n: the size of q̇, q̈ and τ."""
        return sum(joint.dof for joint in self.coordinate_joints)

    @property
    def nq(self) -> int:
        """Number of position coordinates: the size of q. It exceeds ``dof`` by one for each ball or floating joint."""
        return sum(joint.nq for joint in self.coordinate_joints)

    @property
    def neutral(self) -> np.ndarray:
        """The position at which every joint is at zero, shape (nq,): quaternions are (0, 0, 0, 1)."""
        numbers = np.concatenate([joint.neutral for joint in self.coordinate_joints] or [np.zeros(0)])
        return uncalled(numbers, "robot.neutral")

    def random(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> np.ndarray:
        """Random positions, shape (nq,) or (*size, nq): uniform between the limits (±π rad or ±1 m where there is
        none), orientations uniform over all rotations.

        Args:
            rng: a generator or a seed.
            size: leading axes of the result; none by default.
        """
        rng = np.random.default_rng(rng)
        shape = () if size is None else np.atleast_1d(size)
        parts = [joint.random(rng, tuple(int(k) for k in shape)) for joint in self.coordinate_joints]
        return np.concatenate(parts or [np.zeros((*shape, 0))], axis=-1)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints with coordinates of their own, in the order of the coordinates."""
        return tuple(joint.name for joint in self.coordinate_joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links, those behind fixed joints too; each is also the name of a frame."""
        return tuple(link.name for link in self.links)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every name that may be passed as a frame."""
        return (*self.link_names, *(frame.name for frame in self.frames))

    @property
    def leaf_names(self) -> tuple[str, ...]:
        """Links (or the named frames on them, see ``default_frame``) without children; no rotors of ``motors``."""
        parents = {joint.parent for joint in self.joints} | {
            motor.name + motors.ROTOR for motor in self.motors
        }
        return tuple(name for name in self.link_names if name not in parents)

    @property
    def motors(self) -> tuple[Motor, ...]:
        """Motors that move several joints, see ``with_motors``."""
        known = self.__dict__.get("_motors")
        if known is None:
            known = self.__dict__["_motors"] = motors.motors_of(self.joints, self.links, self.base)
        return known

    def default_frame(self) -> str:
        """The only leaf; with several leaves a ValueError lists them."""
        leaves = self.leaf_names
        if len(leaves) == 1:
            return leaves[0]
        raise UnknownNameError(
            f"{self.name} has {len(leaves)} leaves; name the frame: one of {', '.join(leaves)}, or any other link "
            "(frame=NAME, --frame NAME)"
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("robots are immutable; use with_parameters, with_payload, with_gravity or lock")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        count = len(self.joint_names)
        rates = "" if self.dof == count else f", {self.dof} velocities"
        return f"<{type(self).__name__} {self.name!r}: {count} joint{'s' * (count != 1)}{rates}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._parts())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.content() == other.content()

    def __hash__(self) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash(self.content())
        return known

    def content(self) -> tuple[Any, ...]:
        """Everything that defines the robot, as nested tuples: equal content, equal robot."""
        known = self.__dict__.get("_content")
        if known is None:
            known = self.__dict__["_content"] = self._defining(targets=True)
        return known

    def content_without_targets(self) -> tuple[Any, ...]:
        """The same, but not where in the world frames are held: robots that differ there alone share code."""
        return self._defining(targets=False)

    def _defining(self, *, targets: bool) -> tuple[Any, ...]:
        return (
            self.name,
            tuple((link.name, link.inertia.parameters) for link in self.links),
            tuple(
                (
                    *(j.name, j.type, j.parent, j.child),
                    *(j.origin.rotation.tobytes(), j.origin.translation.tobytes()),
                    *(j.axis, j.limits, j.rotor_inertia, j.viscous_friction, j.coulomb_friction),
                    *(j.mimic, j.body),
                    tuple(sorted((k, v) for k, v in j.terms.items() if v != 0.0)),
                    j.pitch,
                )
                for j in self.joints
            ),
            self.gravity,
            tuple(
                (f.name, f.link, f.pose.rotation.tobytes(), f.pose.translation.tobytes()) for f in self.frames
            ),
            self.reduced,
            tuple(constraint_content(constraint, targets=targets) for constraint in self.constraints),
            self.passive,
            None if self.fluid is None else self.fluid.content(),
            self.contact_parts,
        )

    def _parts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "links": self.links,
            "joints": self.joints,
            "gravity": self.gravity,
            "frames": self.frames,
            "reduced": self.reduced,
            "constraints": self.constraints,
            "passive": self.passive,
            "contacts": self.contact_parts,
            "source": self.source,
            "fluid": self.fluid,
        }

    def _with(self, **changes: Any) -> Self:
        return _rebuild(type(self), {**self._parts(), **changes})

    # -- where things are -----------------------------------------------------------------------------------------

    def carrier(self, link: str) -> tuple[int, Transform]:
        """(k, pose): the link is fixed to the child of moving joint k (−1: the base), at this pose in its frame."""
        table = self.__dict__.get("_carriers")
        if table is None:
            table = {self.base: (-1, Transform.identity())}
            number = {joint.name: k for k, joint in enumerate(self.moving_joints)}
            for joint in self.joints:
                if joint.moves:
                    table[joint.child] = (number[joint.name], Transform.identity())
                else:
                    body, pose = table[joint.parent]
                    table[joint.child] = (body, pose @ joint.origin)
            self.__dict__["_carriers"] = table
        if link not in table:
            raise UnknownNameError(
                f"link: {self.name} has no link {link!r}; {suggest(link, self.link_names)}"
            )
        return table[link]

    def locate(self, frame: str | None) -> tuple[int, Transform]:
        """(k, pose) of a named frame, see ``carrier``; None is the only leaf."""
        name = self.default_frame() if frame is None else frame
        for known in self.frames:
            if known.name == name:
                body, pose = self.carrier(known.link)
                return body, pose @ known.pose
        if name not in self.link_names:
            raise UnknownNameError(
                f"frame: {self.name} has no frame {name!r}; {suggest(name, self.frame_names)}"
            )
        return self.carrier(name)

    def bodies(self) -> list[Inertia]:
        """The inertia of each moving link with what is fixed to it, in the frame of the joint's child link."""
        total = [Inertia() for _ in self.moving_joints]
        for link in self.links:
            body, pose = self.carrier(link.name)
            if body >= 0 and not link.inertia.is_zero:
                # the moving link itself stays as it is, to the last bit
                moved = (
                    link.inertia
                    if pose is _IDENTITY or _is_identity(pose)
                    else link.inertia.expressed_in(pose)
                )
                total[body] = moved if total[body].is_zero else total[body] + moved
        return total

    @property
    def massless_joints(self) -> tuple[str, ...]:
        """Names of the moving joints behind which no link has mass or inertia; reduced sets of parameters have none."""
        if self.reduced:
            return ()
        joints = self.moving_joints
        carries = [not inertia.is_zero for inertia in self.bodies()]
        for k in reversed(range(len(joints))):  # children come behind their parents
            parent, _ = self.carrier(joints[k].parent)
            if parent >= 0 and carries[k]:
                carries[parent] = True
        moved = {joint.name for joint, carried in zip(joints, carries, strict=True) if carried}
        # what a joint that follows another one carries is moved by the coordinate of the other
        moved |= {
            name
            for joint, way in zip(joints, self.followed, strict=True)
            if way and joint.name in moved
            for name, _ in way.leaders
        }
        return tuple(name for name in self.joint_names if name not in moved)

    def labelled_bodies(self) -> list[Inertia]:
        """The same in the frames that ``parameter_labels`` refer to."""
        found: list[Inertia] = []
        for joint, inertia in zip(self.moving_joints, self.bodies(), strict=True):
            frame = self.carrier(joint.body_link)[1]
            found.append(inertia.expressed_in(frame.inverse()) if joint.body else inertia)
        return found

    # -- parameters -----------------------------------------------------------------------------------------------

    @property
    def effort_limits(self) -> np.ndarray:
        """The largest torques or forces of the joints [N·m or N], infinite where none are stated; shape (dof,)."""
        return np.array([j.limits.largest_effort for j in self.coordinate_joints for _ in range(j.dof)])

    @property
    def velocity_limits(self) -> np.ndarray:
        """The largest speeds of the joints [rad/s or m/s], infinite where none are stated; shape (dof,)."""
        return np.array([j.limits.largest_velocity for j in self.coordinate_joints for _ in range(j.dof)])

    @property
    def asymmetric_friction(self) -> bool:
        """Whether some joint's Coulomb friction differs by direction (then two columns describe it, else one)."""
        return any(j.coulomb_friction[0] != j.coulomb_friction[1] for j in self.moving_joints)

    @property
    def parameter_labels(self) -> tuple[str, ...]:
        """A label for every entry of ``parameters`` and every column of ``regressor``.

        ``LINK.m LINK.hx … LINK.Izz`` for each moving link, then for all joints ``JOINT.rotor_inertia``,
        ``JOINT.viscous_friction``, ``JOINT.coulomb_friction`` (or ``…_forward`` and ``…_backward`` where it is
        asymmetric), and the coefficients of further laws that some joint has, as ``JOINT.stiffness``.
        """
        joints = self.moving_joints
        labels = [f"{joint.body_link}.{label}" for joint in joints for label in LABELS]
        for _, name in joint_laws.coefficients(joints):
            labels += [f"{joint.name}.{name}" for joint in joints]
        return tuple(labels)

    def is_parameter(self, label: object) -> bool:
        """Whether a number may be changed under this label: one of ``parameter_labels``, or any number of a joint."""
        if not isinstance(label, str):
            return False
        owner, _, name = label.rpartition(".")
        known = any(joint.name == owner for joint in self.moving_joints) and name in joint_laws.settable()
        return known or label in self.parameter_labels

    @property
    def parameters(self) -> np.ndarray:
        """All dynamic parameters in the order of ``parameter_labels``: regressor @ parameters = torques."""
        joints = self.moving_joints
        values = [p for body in self.labelled_bodies() for p in body.parameters]
        for _, name in joint_laws.coefficients(joints):
            values += [joint.number(name) for joint in joints]
        return uncalled(np.array(values), "robot.parameters, in the order of robot.parameter_labels,")

    def with_parameters(self, parameters: Mapping[str, float] | Sequence[float] | np.ndarray) -> Self:
        """A new robot with other parameters: a vector in the order of ``parameter_labels``, or some of them by label.

        Labels may also name numbers of joints that are not among ``parameter_labels``: ``JOINT.stiffness`` of a robot
        without springs, ``JOINT.spring_reference``, ``JOINT.coulomb_friction_forward``.
        A moving link's inertia includes what is fixed to it, so the inertias of links fixed to a changed one are
        merged into it.
        """
        labels = self.parameter_labels
        values = dict(zip(labels, self.parameters.tolist(), strict=True))
        if isinstance(parameters, Mapping):
            given = {label: finite(f"with_parameters: {label}", value) for label, value in parameters.items()}
            for label in given:
                if not self.is_parameter(label):
                    raise UnknownNameError(
                        f"with_parameters: no parameter {label!r}; {suggest(label, labels)}"
                    )
        else:
            try:
                flat = np.asarray(parameters, dtype=float)
            except (TypeError, ValueError, OverflowError):
                raise ModelError(
                    f"with_parameters: expected {len(labels)} numbers, got {parameters!r:.80}"
                ) from None
            if flat.shape != (len(labels),):
                raise ModelError(f"with_parameters: expected shape ({len(labels)},), got {flat.shape}")
            for label, value in zip(labels, flat.tolist(), strict=True):
                finite(f"with_parameters: {label}", value)
            given = dict(zip(labels, flat.tolist(), strict=True))
        touched = {label.rsplit(".", 1)[0] for label, value in given.items() if values.get(label) != value}
        values.update(given)
        links: list[Link] = []
        for link in self.links:
            body, _ = self.carrier(link.name)
            mover = self.moving_joints[body].body_link if body >= 0 else None
            if mover in touched:
                ten = [values[f"{mover}.{label}"] for label in LABELS]
                inertia = Inertia.from_parameters(ten) if link.name == mover else Inertia()
                links.append(replace(link, inertia=inertia))
            else:
                links.append(link)
        joints = [_with_numbers(joint, given) if joint.moves else joint for joint in self.joints]
        return self._with(links=links, joints=joints)

    def with_gravity(self, gravity: Sequence[float]) -> Self:
        """A new robot under another gravity [m/s²] in the base frame, shape (3,)."""
        try:
            values = np.asarray(gravity, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"gravity: expected three numbers [m/s²], such as (0, 0, -9.81), got {gravity!r:.80}"
            ) from None
        if values.shape != (3,):
            given = repr(gravity) if values.ndim == 0 else f"shape {values.shape}"
            raise ModelError(f"gravity: expected three numbers [m/s²], such as (0, 0, -9.81), got {given}")
        return self._with(gravity=values.tolist())

    def with_payload(
        self,
        mass: float,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        frame: str | None = None,
    ) -> Self:
        """A new robot carrying a load fixed to a frame.

        Args:
            mass: [kg].
            com: centre of mass [m] in the frame.
            inertia: [kg·m²] about the load's centre of mass in the frame's axes: (3, 3), (Ixx, Ixy, Ixz, Iyy, Iyz,
                Izz) or a diagonal.
            frame: that carries the load; by default the only leaf.
        """
        body, pose = self.locate(frame)
        if finite("payload: mass", mass) < 0:
            raise ModelError(f"payload: mass: expected a number of at least 0 [kg], got {mass!r}")
        for what, numbers in (("com", com), ("inertia", inertia)):
            for value in np.ravel(np.asarray(numbers, dtype=object)):
                finite(f"payload: {what}", value)
        if body < 0:
            return self
        load = Inertia.from_com(mass, com, inertia)
        for violation in load.violations():
            warn(f"payload: {violation}", ModelWarning)
        load = load.expressed_in(pose)
        mover = self.moving_joints[body].child
        links = [replace(k, inertia=k.inertia + load) if k.name == mover else k for k in self.links]
        return self._with(links=links)

    @property
    def constraint_rows(self) -> int:
        """Number of directions that constraints hold: the size of constraint forces."""
        return sum(constraint.rows for constraint in self.constraints)

    def with_constraints(
        self, constraints: Sequence[Constraint | Coupling], *, passive: Sequence[str] | None = None
    ) -> Self:
        """A new robot that is held by these points and poses, in place of those it had; followers go on following.

        Args:
            constraints: points, poses and couplings; a ``Coupling`` makes a joint follow another and takes its
                coordinate away.
            passive: names of joints without a motor; by default as before.
        """
        held = tuple(c for c in constraints if not isinstance(c, Coupling))
        kept = self.passive if passive is None else tuple(passive)
        return self._with(joints=with_couplings(self, constraints), constraints=held, passive=kept)

    def with_motors(self, given: Iterable[Motor]) -> Self:
        """A new robot with motors that move several joints each, in place of those it had; none: ``with_motors(())``.

        Args:
            given: the motors, each with rotor inertia and friction along a weighted sum of joint positions.
        """
        return self._with(**motors.with_motors(self, given))

    def with_fluid(self, fluid: Fluid | None) -> Self:
        """A new robot in a fluid that resists its motion, which counts as friction; None: in no fluid."""
        return self._with(fluid=fluid)

    def with_mimics(self, coupled: bool, *, undecided_only: bool = False) -> Self:
        """A new robot in which joints that mimic another one have no coordinate of their own (or keep it).

        Args:
            coupled: whether they have no coordinate of their own.
            undecided_only: leaves relations as they are that a file has called coupled or independent.
        """
        joints = variants.with_mimics(self, flag("coupled", coupled), flag("undecided_only", undecided_only))
        return self if joints is None else self._with(joints=joints)

    def with_frames(self, frames: Sequence[Frame]) -> Self:
        """A new robot with further named frames, such as those of feet."""
        return self._with(frames=[*self.frames, *frames])

    def with_coupled_mimics(self) -> Self:
        """A new robot in which joints that mimic another one have no coordinate of their own."""
        return self.with_mimics(True)

    def with_base(self, base: str) -> Self:
        """A new robot whose base link is "fixed" (as it is), "floating" or "planar".

        A floating base gets the joint ``root_joint``, unless all that the base carries floats already; a planar one
        the joints ``root_joint_x``, ``root_joint_y`` and ``root_joint_theta``, which move it in the plane z = 0 of the
        world.
        """
        if base == "fixed":
            return self
        bare = self.with_motors(()) if self.motors else self
        moved = bare._with(**variants.with_base(bare, base))
        return moved.with_motors(self.motors) if self.motors else moved

    def lock(self, positions: Mapping[str, float]) -> Self:
        """A new robot in which the named joints are fixed at the given positions [rad or m].

        Constraints and contacts between links that no longer move are left out; a constraint that the positions break
        is an error.
        """
        positions = variants.positions_of_lock(positions)
        passive = [name for name in self.passive if name not in positions]
        bare = self.with_motors(()) if self.motors else self
        free = bare._with(
            joints=variants.locked(bare, positions), passive=passive, constraints=(), contacts=()
        )
        locked = free._with(**variants.remaining(free, self.constraints, self.contact_parts, positions))
        return locked.with_motors(motors.locked_motors(self.motors, positions)) if self.motors else locked


_IDENTITY = Transform.identity()
_M = TypeVar("_M", bound=Model)


def _is_identity(pose: Transform) -> bool:
    return bool(np.array_equal(pose.rotation, np.eye(3)) and not pose.translation.any())


def _rebuild(cls: type[_M], parts: dict[str, Any]) -> _M:
    parts = dict(parts)
    return cls(parts.pop("name"), parts.pop("links"), parts.pop("joints"), **parts)


def _with_numbers(joint: Joint, given: Mapping[str, float]) -> Joint:
    """The joint with other numbers; that of both directions is set before that of one."""
    for name in joint_laws.settable():
        value = given.get(f"{joint.name}.{name}")
        if value is not None:
            joint = joint_laws.changed(joint, name, value)
    return joint
