"""Robots with parameters that are not known yet: symbols in place of numbers.

A payload (Izaguirre's "arbitrary load at the end effector"), the directions of friction (``joint_laws.direction``) or
any labelled parameter become inputs of the kernel; everything else stays a constant and folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from linkwise import joint_laws
from linkwise.errors import UnknownNameError, suggest
from linkwise.joint_laws.direction import MEMORY
from linkwise.model import LABELS, Model, Transform
from linkwise.model.constraints import TARGETS, target_size
from linkwise.model.coordinates import check_one_axis
from linkwise.model.mechanism import Mechanism
from linkwise.model.regroup import regrouped
from linkwise.scalar import Scalar
from linkwise.spatial import Matrix, RigidInertia, Symmetric, Vector

PAYLOAD = "payload"
DIRECTION = MEMORY
GROUPS = (PAYLOAD, DIRECTION, TARGETS)
"""Inputs of several numbers; every other one is a labelled parameter."""


def parameter_sizes(model: Model, names: Sequence[str]) -> dict[str, int]:
    """The scalars of each parameter input: ten for a payload (m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz about the origin and
    along the axes of its frame), one per joint and motor of several joints for directions, three or twelve for every
    frame that is held to the world for targets, one for a labelled parameter."""
    sizes: dict[str, int] = {}
    labels = model.parameter_labels
    for name in names:
        if name not in GROUPS and not model.is_parameter(name):
            raise UnknownNameError(f"inputs: no parameter {name!r}; {suggest(name, (*GROUPS, *labels))}")
        if name == DIRECTION:
            check_one_axis(model, "directions of friction")
        groups = {
            PAYLOAD: len(LABELS),
            DIRECTION: model.dof + len(model.motors),
            TARGETS: sum(map(target_size, model.constraints)),
        }
        sizes[name] = groups.get(name, 1)
        if not sizes[name]:
            raise UnknownNameError(f"inputs: no constraint holds a frame of {model.name} to the world")
    return sizes


def with_symbols(
    links: Mechanism,
    model: Model,
    frame: str | None,
    values: Mapping[str, Sequence[Scalar]],
    base_parameters: bool,
) -> Mechanism:
    """The mechanism with the given parameters replaced (or, for a payload, added) by scalars of any kind."""
    changed = list(links.links)
    bodies = model.labelled_bodies()
    by_link: dict[int, dict[str, Scalar]] = {}
    for name, scalars in values.items():
        if name == PAYLOAD:
            body, pose = model.locate(frame)
            if body >= 0:
                load = _expressed(_body(list(scalars)), changed[body].file_frame @ pose)
                changed[body] = replace(changed[body], inertia=changed[body].inertia + load)
            continue
        if name == DIRECTION:
            names = (*model.joint_names, *(motor.name for motor in model.motors))
            own = dict(zip(names, scalars, strict=True))
            for k, joint in enumerate(model.moving_joints):
                if joint.name in own:
                    changed[k] = replace(changed[k], terms={**changed[k].terms, MEMORY: own[joint.name]})
            continue
        owner, label = name.rsplit(".", 1)
        for k, joint in enumerate(model.moving_joints):
            if label in LABELS and joint.body_link == owner:
                by_link.setdefault(k, {})[label] = scalars[0]
            elif label not in LABELS and joint.name == owner:
                changed[k] = joint_laws.changed(changed[k], label, scalars[0])
    for k, replaced in by_link.items():
        # the difference to the number in the file is added, in the file's frame
        known = dict(zip(LABELS, bodies[k].parameters, strict=True))
        difference = [replaced[label] - known[label] if label in replaced else 0.0 for label in LABELS]
        added = _expressed(_body(difference), changed[k].parameter_frame)
        changed[k] = replace(changed[k], inertia=changed[k].inertia + added)
    result = Mechanism(links.name, changed, links.gravity, links.base, links.original, links.wind)
    return regrouped(result) if base_parameters else result


def _body(ten: list[Scalar]) -> RigidInertia:
    return RigidInertia(ten[0], Vector(*ten[1:4]), Symmetric(*ten[4:]))


def _expressed(body: RigidInertia, pose: Transform) -> RigidInertia:
    """A body given in a frame that lies at ``pose``, in the outer frame."""
    R = Matrix(*(0.0 if abs(x) < 1e-15 else float(x) for x in pose.rotation.ravel()))
    k = R.times(body.second_moment.matrix()).times(R.transposed())
    turned = RigidInertia(body.mass, R @ body.first_moment, Symmetric(k.xx, k.xy, k.xz, k.yy, k.yz, k.zz))
    return turned.shifted(Vector(*pose.translation.tolist()))
