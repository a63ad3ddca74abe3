"""The regressor as loops over links and the axes that carry them, see ``algorithms.regressor``."""

from __future__ import annotations

from typing import Any

from linkwise import joint_laws
from linkwise.algorithms import coriolis, coupling, joint_terms
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.algorithms.newton_euler import Moving, acceleration_matrix, body_force, motion
from linkwise.algorithms.regressor import carried_weights
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.loops import Array, Element, Let, Register, entry, whole
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.functions.looped.parts import A, J, K, Loops, each, numbers_of, rows, spatial
from linkwise.functions.table import Function, Setting
from linkwise.model.inertia import LABELS
from linkwise.scalar import Scalar
from linkwise.spatial import Matrix, RigidInertia, Spatial, Symmetric, Vector

LINK = 33  # numbers of a link: ω, ω̇, v̇, its pose, and the pose of the frame of its parameters
TEN = len(LABELS)


def regressor(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """The force that each unit parameter of a link causes, along all axes that carry the link; and the columns of the
    joints, which are written out."""
    joint_terms.check_no_drag(setting.links())
    parts = _Parts(setting, made)
    loops, model, count = parts.loops, setting.model, parts.count
    ((output, (_, width)),) = function.shapes(model).items()
    forces = [Register(f"force{k}") for k in range(6 * (TEN + len(parts.weights)))]
    size = 6 * len(parts.weights)
    row = entry("leaders", A) * width
    at = [Element(output, row + K * TEN + k) for k in range(TEN)]
    at += [Element(output, row + (count * (TEN + k)) + K) for k in parts.weights]
    joints = [
        Element(output, entry("leaders", whole(i)) * width + column) for i, column in parts.own_places()
    ]
    given = [cells(name, scalars) for name, scalars in function.input_sizes(setting).items()]
    written = [rows("axes", loops.axes, 6), rows("moving", count, LINK), rows("weights", count, size), joints]
    loops.tables["first"] = parts.links.first_coordinates()
    body = [
        *loops.zeros(Array(output, "output", model.dof * width)),
        loops.step(parts.prepared, given, written, apart=True),
        each(
            count,
            Let("j", entry("first", K)),
            loops.step(unit_forces, [cells("moving", LINK, 0, K), cells("weights", size, 0, K)], [forces]),
            loops.carriers(loops.step(sums, [cells("axes", 6, 0, A), forces, at], [at]), of=J),
            loop="k",
        ),
    ]
    scratch = [Array("axes", "scratch", 6, loops.axes), Array("moving", "scratch", LINK, count)]
    if size:
        scratch.append(Array("weights", "scratch", size, count))
    return loops.nest(function, setting, scratch, body)


class _Parts:
    """What is written out: numbers of every axis and every link, and the columns of the joints."""

    def __init__(self, setting: Setting, made: Procedure):
        self.links, self.model = setting.links(), setting.model
        self.loops, self.count = Loops(self.links, made), len(self.links)
        self.laws = joint_laws.coefficients(self.model.moving_joints)
        self.weights = [k for k, (law, _) in enumerate(self.laws) if law.on_body]
        """Numbers of the laws whose columns are forces on links."""

    def moved(self, q: Any, qd: Any, qdd: Any) -> tuple[Any, Any, Any]:
        positions = coupling.expanded(self.links, q, positions=True)
        return positions, coupling.expanded(self.links, qd), coupling.expanded(self.links, qdd)

    def own_columns(self, q: Any, qd: Any, qdd: Any) -> list[tuple[int, int, Scalar]]:
        """Axis, column and entry of coefficients of the joints."""
        return [
            (i, self.count * (TEN + number) + k, self.loops.ratios[i] * entry)
            for number, (law, name) in enumerate(self.laws)
            if not law.on_body
            for i, (k, _) in enumerate(self.links.coordinates())
            if not joint_laws.is_zero(entry := joint_terms.column(law, name, self.links, i, q, qd, qdd))
        ]

    def own_places(self) -> list[tuple[int, int]]:
        """Axis and column of these entries."""
        graph, n = Graph(), self.model.dof
        q, qd, qdd = graph.inputs("q", self.model.nq), graph.inputs("qd", n), graph.inputs("qdd", n)
        return [(i, column) for i, column, _ in self.own_columns(*self.moved(q, qd, qdd))]

    def prepared(self, *given: Any) -> list[list[Scalar]]:
        links = self.links
        q, qd, qdd = self.moved(*given)
        turned, poses = links.turned(q), link_poses(links, q)
        axes = [axis for own in links.each(coriolis.joint_axes, poses) for axis in own]
        numbers: list[Scalar] = []
        for link, pose, moving in zip(links, poses, motion(links, turned, qd, qdd), strict=True):
            frame = link.parameter_frame
            numbers += [*moving.w, *moving.wd, *moving.vd, *pose.rotation, *pose.position]
            numbers += [*map(float, frame.rotation.ravel()), *map(float, frame.translation)]
        carried = [carried_weights(links, turned, self.laws[k][1]) for k in self.weights]
        forces = [_in_base(pose, own[k]) for k, pose in enumerate(poses) for own in carried]
        return [
            [
                ratio * x
                for axis, ratio in zip(axes, self.loops.ratios, strict=True)
                for x in numbers_of(axis)
            ],
            numbers,
            numbers_of(*forces),
            [value for _, _, value in self.own_columns(q, qd, qdd)],
        ]


def unit_forces(link: Any, known: Any) -> list[list[Scalar]]:
    """The forces of all columns of a link."""
    return [[*numbers_of(*_unit_forces(link)), *known]]


def sums(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
    """Entries of all columns of a link in the row of an axis that carries it."""
    S = spatial(axis)
    return [[x + S.dot(spatial(force[6 * k :])) for k, x in enumerate(before)]]


def _unit_forces(numbers: Any) -> list[Spatial]:
    """The forces of unit parameters, about the base's origin and in its axes."""
    w, wd, vd = Vector(*numbers[:3]), Vector(*numbers[3:6]), Vector(*numbers[6:9])
    pose = Pose(Matrix(*numbers[9:18]), Vector(*numbers[18:21]))
    turn, place = Matrix(*numbers[21:30]), Vector(*numbers[30:33])
    back = turn.transposed()
    vd = back @ (vd + acceleration_matrix(w, wd) @ place)
    w, wd = back @ w, back @ wd
    moving = Moving(w, wd, vd, acceleration_matrix(w, wd))
    frame = Pose(pose.rotation.times(turn), pose.position + pose.rotation @ place)
    units = [[1.0 if i == k else 0.0 for i in range(TEN)] for k in range(TEN)]
    bodies = [RigidInertia(unit[0], Vector(*unit[1:4]), Symmetric(*unit[4:])) for unit in units]
    return [_in_base(frame, body_force(body, moving)) for body in bodies]


def _in_base(pose: Pose, force: Spatial) -> Spatial:
    """A force about the origin of a frame at ``pose`` and in its axes, about the base's origin and in its axes."""
    linear = pose.rotation @ force.linear
    return Spatial(pose.rotation @ force.angular + pose.position.cross(linear), linear)
