"""Programs that check configurations of one robot against any world, as statements with loops over obstacles.

Each link has a bounding sphere around its spheres. Its spheres are compared with an obstacle only where the bounding
sphere of a state that is computed side by side touches it and the state is not known to collide: ``IfNegative``. In the
same way small spheres are compared only where the spheres that they replace touch. The numbers of obstacles are numbers
of the call, so one program serves every world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.collision.body_pairs import BodyPairs
from linkwise.collision.clearance import traced_poses
from linkwise.collision.spheres import Spheres
from linkwise.collision.validity import solids
from linkwise.collision.validity.tables import GROUP, SMALL, SPHERE, Small, tables
from linkwise.collision.world import COLUMNS
from linkwise.compiler.ir.loops import (
    Array,
    Declare,
    Element,
    For,
    IfNegative,
    Place,
    Register,
    Statement,
    Step,
    entry,
    name,
    whole,
)
from linkwise.compiler.ir.program import Dtype
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.core.once import once
from linkwise.geometry.skeleton import BASE
from linkwise.robot.robot import Robot
from linkwise.scalar import sqrt, where
from linkwise.solve.softness import larger

LARGEST = 1e3  # [rad or m] larger positions are rounded by more than ``spheres.ROUNDING`` allows, in single precision
FAR = 1e9  # added to what is compared with zero where a state is known to collide
BEYOND = 1e4  # [m] distance where there is nothing to compare with
ASKED = 0.5  # part of the usual distance of two links that they are asked to keep, at most
SLACK = 1e-4  # [m] by which a bound may be above the distances that it bounds, by rounding
TOGETHER = 6  # bodies that are compared with an obstacle by one step
WHOLE = 12  # of robots with no more than these it is all of them
LOOPED = 24  # of robots with more moving bodies, centres are placed in a loop
CHUNK = 16  # pairs of bodies between looks at whether all states collide
FEW_PAIRS = 128  # of bodies; a loop over no more is quicker without these looks
BOUND = ("bound_x", "bound_y", "bound_z")
_HIT = Register("hit")
_CENTRES, _BOUNDS, _POSES, _RELATIVE, _MARGIN = "centres", "bounds", "poses", "relative", "margin"


@dataclass(frozen=True)
class Checked:
    """What a program compares: a robot, its spheres and their pairs."""

    robot: Robot
    spheres: Spheres
    pairs: BodyPairs

    @property
    def moving(self) -> list[int]:
        """Bodies that move and have spheres."""
        return [body for body in self.spheres.bodies if body != BASE]

    def poses(self, q: Sequence[Any], bodies: Sequence[int]) -> list[Any]:
        """Poses of bodies in base axes: numbers in a row."""
        poses = self._traced(q)
        return [x for body in bodies for x in poses[body].ravel().tolist()]

    def _traced(self, q: Sequence[Any]) -> dict[int, Any]:
        return {BASE: np.eye(4)[:3], **dict(enumerate(traced_poses(self.robot, q)))}

    def centres(self, q: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Centres of all spheres, and of the bounding spheres of all bodies, in base axes; poses of ``turned`` bodies:
        numbers in a row."""
        poses = self._traced(q)
        centres: list[Any] = []
        for body, point in zip(self.spheres.body.tolist(), self.spheres.centre, strict=True):
            centres += _placed(poses[body], point)
        bounds = [
            x for body in self.spheres.bodies for x in _placed(poses[body], self.spheres.bound(body)[0])
        ]
        return centres, bounds, [x for body in self.turned for x in poses[body].ravel().tolist()]

    @once
    def small(self) -> Small:
        """Groups of small spheres."""
        return Small(self.spheres, self.pairs)

    @property
    def turned(self) -> list[int]:
        """Bodies of spheres in pairs of which small spheres are compared."""
        divided = np.isin(np.arange(len(self.spheres)), self.pairs.small.parent)
        pairs = [each[divided[each].any(axis=1)] for each in self.pairs.compared.values()]
        used = np.unique(np.concatenate([each.ravel() for each in pairs])) if pairs else np.zeros(0, int)
        return [int(body) for body in np.unique(self.spheres.body[used])]


def _placed(pose: np.ndarray, point: np.ndarray) -> list[Any]:
    x, y, z = point.tolist()
    return [pose[i, 3] + pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z for i in range(3)]


class _Builder:
    """Statements that both programs need."""

    def __init__(self, checked: Checked, dtype: Dtype, fused: bool):
        self.checked, self.dtype = checked, dtype
        self.made = Procedure(dtype, fused=fused)
        spheres = checked.spheres
        self.bound = {body: spheres.bound(body)[1] for body in spheres.bodies}
        self.place = {body: k for k, body in enumerate(spheres.bodies)}
        self.registers = 0
        self.small = checked.small
        moving = len(checked.moving)
        self.together = moving if moving <= WHOLE else -(-moving // -(-moving // TOGETHER))
        self.looped = moving > LOOPED
        self.placed = spheres.bodies if self.looped else checked.turned
        turned = {body: 12 * k for k, body in enumerate(self.placed)}
        self.places, self.constants = tables(spheres, checked.pairs, checked.small, turned)
        first, last = len(spheres.bodies) - moving, len(spheres.bodies)
        starts = range(first, last, max(1, self.together))
        self.places["blocks"] = [min(k, last - self.together) for k in starts] or [0]
        bounds = np.array([spheres.bound(body)[0] for body in spheres.bodies] or [np.zeros(3)])
        self.constants |= dict(zip(BOUND, bounds.T, strict=True))
        self.constants["most_asked"] = np.array([ASKED * x for x in checked.pairs.usual.values()] or [0.0])

    def register(self) -> Register:
        self.registers += 1
        return Register(f"near{self.registers}")

    def positions(self) -> list[Statement]:
        """Centres of all spheres and bounding spheres, and poses; of robots with many bodies the centres in a loop, as
        written out they take most of the time that compiling needs."""
        nq, count = self.checked.robot.nq, len(self.checked.spheres)
        poses = cells(_POSES, 12 * len(self.placed))
        if self.looped:
            step = self.made.step(
                lambda q: [self.checked.poses(q, self.placed)], [cells("q", nq)], [poses], apart=True
            )
            return [step, self._centres()]
        writes = [cells(_CENTRES, 3 * count), cells(_BOUNDS, 3 * len(self.bound)), poses]
        return [self.made.step(self.checked.centres, [cells("q", nq)], writes, apart=True)]

    def _centres(self) -> For:
        """Centres of the spheres of all bodies from their poses."""
        body, sphere = name("placed"), name("sphere")
        held: list[Place] = [Register(f"pose{k}") for k in range(12)]

        def turned(pose: list[Any], point: list[Any]) -> list[list[Any]]:
            return [[dense.dot(pose[4 * i : 4 * i + 3], point) + pose[4 * i + 3] for i in range(3)]]

        step = self.made.step
        loop = For(
            sphere.args[0],
            entry("sphere_starts", body),
            entry("sphere_starts", body + 1),
            [
                step(
                    turned,
                    [held, [Element(key, sphere * 3) for key in SPHERE[:3]]],
                    [cells(_CENTRES, 3, sphere * 3)],
                )
            ],
        )
        around = [Element(key, body) for key in BOUND]
        statements: list[Statement] = [
            Declare(dict.fromkeys(held, 0.0)),  # type: ignore[arg-type]
            step(lambda pose: [pose], [cells(_POSES, 12, body * 12)], [held]),
            step(turned, [held, around], [cells(_BOUNDS, 3, body * 3)]),
            loop,
        ]
        return For(body.args[0], whole(0), whole(len(self.bound)), statements)

    def row(self, kind: str) -> list[Place]:
        return [Element(kind, whole(k), name(f"k_{kind}")) for k in range(COLUMNS[kind])]

    def at_bound(self, body: int) -> list[Place]:
        return cells(_BOUNDS, 3, 3 * self.place[body])

    def over_world(self, body: Callable[[str], Sequence[Statement]]) -> list[Statement]:
        return [For(f"k_{kind}", whole(0), name(f"count_{kind}"), body(kind)) for kind in COLUMNS]

    def apart(self, a: Sequence[Any], b: Sequence[Any], reach: Any, held: Sequence[Any]) -> Any:
        """How far two spheres are apart: a number that is negative where they touch."""
        raise NotImplementedError

    def matters(self, gap: Any, held: Sequence[Any]) -> Any:
        """Negative where spheres whose bounds are so far apart can change the result."""
        raise NotImplementedError

    def result(self, gap: Any, held: Sequence[Any]) -> Any:
        """The new result from spheres that are so far apart."""
        raise NotImplementedError

    def bounds_apart(self, held: Sequence[Place], to: Register) -> Step:
        """Whether the bounding spheres of two bodies matter."""
        bounds = [cells(_BOUNDS, 3, entry(key, name("pair"))) for key in ("bound_first", "bound_second")]
        return self._compared(
            bounds[0], bounds[1], Element("bound_reaches", name("pair")), held, self.matters, to
        )

    def _compared(
        self,
        a: Sequence[Place],
        b: Sequence[Place],
        reach: Place,
        held: Sequence[Place],
        what: Any,
        to: Register,
    ) -> Step:
        """``what`` of how far two spheres are apart."""

        def arithmetic(a: list[Any], b: list[Any], reach: list[Any], held: list[Any]) -> list[list[Any]]:
            return [[what(self.apart(a, b, reach[0], held), held)]]

        return self.made.step(arithmetic, [a, b, [reach], held], [[to]])

    def over_rows(self, held: Sequence[Place]) -> list[Statement]:
        """Spheres of the first body of a pair with the bounding sphere of the second one, then with its spheres, or
        small spheres of both with each other. ``held``: the result, and what else is needed."""
        row, turn, pair, near = name("row"), name("turn"), name("pair"), Register("near_row")
        result = held[0]
        assert isinstance(result, Register)
        first = cells(_CENTRES, 3, entry("firsts", row))
        bound = cells(_BOUNDS, 3, entry("row_bounds", row))
        second = cells(_CENTRES, 3, entry("seconds", turn))
        step = self._compared(first, bound, Element("row_reaches", row), held, self.matters, near)
        inner = self._compared(first, second, Element("reaches", turn), held, self.result, result)
        loops: list[Statement] = [For("turn", entry("starts", row), entry("stops", row), [inner])]
        if self.small:
            loops += self._over_small(first, second, held, result)
        body = [Declare({near: 0.0}), step, IfNegative(near, loops)]
        rows = For("row", entry("row_starts", pair), entry("row_stops", pair), body)
        if not self.small:
            return [rows]
        poses = [cells(_POSES, 12, entry(key, pair)) for key in ("pose_first", "pose_second")]
        return [self.made.step(_relative, poses, [cells(_RELATIVE, 12)]), rows]

    def _over_small(
        self, first: Sequence[Place], second: Sequence[Place], held: Sequence[Place], result: Register
    ) -> list[Statement]:
        """Two spheres, then groups of the first with the second, groups of both, small spheres of the first with groups
        of the second, small spheres of both; points of both in axes of the second body. The largest of these distances
        counts, so states for which an outer one does not matter keep their result."""
        row, turn, item = name("row"), name("turn"), name("item")
        other, inner, last = name("other"), name("inner"), name("last")
        gaps = [Register(f"gap{k}") for k in range(4)]
        signs = [Register(f"sign{k}") for k in range(4)]
        group, small = ([Register(f"{axis}_{key}") for axis in "xyz"] for key in ("group", "small"))
        pose = cells(_RELATIVE, 12)
        mine, theirs = ([Element(key, k) for key in GROUP] for k in (entry("groups", item), other))
        one, two = ([Element(key, k) for key in SMALL] for k in (inner, last))
        sphere = [Element(key, entry("seconds", turn)) for key in SPHERE]

        def spheres(a: list[Any], b: list[Any], reach: list[Any], held: list[Any]) -> list[list[Any]]:
            found = self.apart(a, b, reach[0], held)
            return [[found], [self.matters(found, held)]]

        def moved(
            pose: list[Any], a: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            local = [dense.dot(pose[4 * i : 4 * i + 3], a[:3]) + pose[4 * i + 3] for i in range(3)]
            found = larger(before[0], self.apart(local, b[:3], a[3] + b[3], held))
            return [[found], [self.matters(found, held)], local]

        def groups(
            a: list[Any], size: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            found = larger(before[0], self.apart(a, b[:3], size[0] + b[3], held))
            return [[found], [self.matters(found, held)]]

        def small_ones(
            a: list[Any], size: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            found = larger(before[0], self.apart(a, b[:3], size[0] + b[3], held))
            return [[self.result(found, held)]]

        step = self.made.step
        steps = [
            step(spheres, [first, second, [Element("reaches", turn)], held], [gaps[:1], signs[:1]]),
            step(moved, [pose, mine, sphere, gaps[:1], held], [gaps[1:2], signs[1:2], group]),
            step(groups, [group, mine[3:], theirs, gaps[1:2], held], [gaps[2:3], signs[2:3]]),
            step(moved, [pose, one, theirs, gaps[2:3], held], [gaps[3:], signs[3:], small]),
            step(small_ones, [small, one[3:], two, gaps[3:], held], [[result]]),
        ]
        ranges = [
            ("last", entry("small_starts", other), entry("small_starts", other + 1)),
            (
                "inner",
                entry("small_starts", entry("groups", item)),
                entry("small_starts", entry("groups", item) + 1),
            ),
            ("other", entry("run_starts", item), entry("run_stops", item)),
            ("item", entry("group_starts", turn), entry("group_starts", turn + 1)),
            ("turn", entry("stops", row), entry("ends", row)),
        ]
        body: list[Statement] = [steps[4]]
        for k, (title, start, stop) in enumerate(ranges):
            loop = For(title, start, stop, body)
            body = [steps[3 - k], IfNegative(signs[3 - k], [loop])] if k < 4 else [loop]
        return [Declare(dict.fromkeys([*gaps, *signs, *group, *small], 0.0)), *body]

    def nest(self, label: str, body: Sequence[Statement], outputs: Sequence[Array]) -> ProcedureNest:
        tables, constants = self.places, self.constants
        arrays = [
            Array("q", "input", self.checked.robot.nq),
            Array(_MARGIN, "input", 1, shared=True),
            *(
                Array(kind, "input", columns, rows=f"count_{kind}", shared=True)
                for kind, columns in COLUMNS.items()
            ),
            *outputs,
            Array(_CENTRES, "scratch", 3 * len(self.checked.spheres)),
            Array(_BOUNDS, "scratch", 3 * len(self.bound)),
            Array(_POSES, "scratch", max(1, 12 * len(self.placed))),
            Array(_RELATIVE, "scratch", 12),
            *(Array(key, "constant", len(values)) for key, values in constants.items()),
        ]
        return ProcedureNest(
            label,
            self.dtype,
            tuple(arrays),
            body,
            numbers=tuple(f"count_{kind}" for kind in COLUMNS),
            constants=constants,
            tables=tables,
        )


def collision_nest(checked: Checked, dtype: Dtype = "float32", *, fused: bool = True) -> ProcedureNest:
    """1 for a configuration that collides with the world or with itself, or is not finite; else 0.

    Args:
        checked: what is compared.
        dtype: precision.
        fused: whether multiplications and additions may be fused.
    """
    return _Collision(checked, dtype, fused).made_nest()


class _Collision(_Builder):
    def made_nest(self) -> ProcedureNest:
        body: list[Statement] = [*self.positions(), Declare({_HIT: 0.0})]
        body += self.over_world(self._against)
        if self.checked.pairs.compared:
            body += self._itself()
        body.append(
            self.made.step(_finite, [cells("q", self.checked.robot.nq), [_HIT]], [cells("collides", 1)])
        )
        return self.nest("in_collision", body, [Array("collides", "output", 1)])

    def _against(self, kind: str) -> list[Statement]:
        """All moving bodies against one obstacle, some at a time."""
        block, turn = name(f"block_{kind}"), name(f"sphere_{kind}")
        near = [self.register() for _ in range(self.together)]
        blocks = self.places["blocks"]
        at = whole(blocks[0]) if len(blocks) == 1 else entry("blocks", block)
        known = [self.bound[body] for body in self.checked.moving] if len(blocks) == 1 else []

        def coarse(
            row: list[Any], bounds: list[Any], radii: list[Any], margin: list[Any], hit: list[Any]
        ) -> list[list[Any]]:
            gaps = [
                solids.touching(kind, row, _point(bounds, k), radius + margin[0])
                for k, radius in enumerate(radii or known)
            ]
            return [[gap + FAR * hit[0] for gap in gaps]]

        def fine(
            row: list[Any], point: list[Any], radius: list[Any], margin: list[Any], hit: list[Any]
        ) -> list[list[Any]]:
            gap = solids.touching(kind, row, _point(point, 0), radius[0] + margin[0])
            return [[where(gap < 0.0, 1.0, hit[0])]]

        rest = [cells(_MARGIN, 1), [_HIT]]
        radii = cells("bound_radii", 0 if known else len(near), at)
        bounds = [cells(_BOUNDS, 3 * len(near), at * 3), radii]
        sphere = [cells(_CENTRES, 3, turn * 3), [Element("radii", turn)]]
        step = self.made.step(fine, [self.row(kind), *sphere, *rest], [[_HIT]])
        statements: list[Statement] = [
            Declare(dict.fromkeys(near, 0.0)),
            self.made.step(coarse, [self.row(kind), *bounds, *rest], [near]),
        ]
        for k, gap in enumerate(near):
            start, stop = (entry("sphere_starts", at + (k + end)) for end in (0, 1))
            statements.append(IfNegative(gap, [For(turn.args[0], start, stop, [step])]))
        return self._while_free([For(block.args[0], whole(0), whole(len(blocks)), statements)])

    def _while_free(self, body: Sequence[Statement]) -> list[Statement]:
        """Statements that are left out once all states that are computed side by side collide; of robots with few
        bodies they cost less than this look."""
        if self.together == len(self.checked.moving):
            return [*body]
        left = self.register()
        look = self.made.step(lambda hit: [[hit[0] - 0.5]], [[_HIT]], [[left]])
        return [Declare({left: 0.0}), look, IfNegative(left, [*body])]

    def apart(self, a: Sequence[Any], b: Sequence[Any], reach: Any, held: Sequence[Any]) -> Any:
        return _square(a, b) - (reach + held[1]) * (reach + held[1])

    def matters(self, gap: Any, held: Sequence[Any]) -> Any:
        return gap + FAR * held[0]

    def result(self, gap: Any, held: Sequence[Any]) -> Any:
        return where(gap < 0.0, 1.0, held[0])

    def _itself(self) -> list[Statement]:
        """All pairs of bodies that are compared."""
        near, room = Register("near_bounds"), Register("room")
        held = [_HIT, room]
        margins = self.made.step(
            lambda wanted, most: [[_less(wanted[0], most[0])]],
            [cells(_MARGIN, 1), [Element("most_asked", name("pair"))]],
            [[room]],
        )
        body: list[Statement] = [Declare({near: 0.0, room: 0.0}), margins, self.bounds_apart(held, near)]
        body.append(IfNegative(near, self.over_rows(held)))
        count = len(self.checked.pairs.compared)
        if count <= FEW_PAIRS:
            return [For("pair", whole(0), whole(count), body)]
        starts = [*range(0, count, CHUNK), count]
        self.places["chunks"] = starts
        chunk = name("chunk")
        pairs = For("pair", entry("chunks", chunk), entry("chunks", chunk + 1), body)
        return [For(chunk.args[0], whole(0), whole(len(starts) - 1), self._while_free([pairs]))]


def clearance_nest(checked: Checked, dtype: Dtype = "float64", *, fused: bool = True) -> ProcedureNest:
    """Smallest signed distances [m]: of each moving body to the world, and of each pair of bodies that is compared.
    Larger ones than the margin are not looked for: the margin stands for them.

    Args:
        checked: what is compared.
        dtype: precision.
        fused: whether multiplications and additions may be fused.
    """
    return _Clearance(checked, dtype, fused).made_nest()


class _Clearance(_Builder):
    def made_nest(self) -> ProcedureNest:
        moving, compared = self.checked.moving, self.checked.pairs.compared
        self.least = {body: Register(f"least{k}") for k, body in enumerate(moving)}
        body: list[Statement] = [*self.positions(), Declare(dict.fromkeys(self.least.values(), 0.0))]
        body += [self._from_margin(least) for least in self.least.values()]
        body += self.over_world(self._against)
        outputs = [Array("world", "output", max(1, len(moving)))]
        written: list[Place] = [*self.least.values()]
        body.append(
            self.made.step(
                lambda *values: [[v[0] for v in values]],
                [[w] for w in written],
                [cells("world", len(written))],
            )
        )
        if compared:
            outputs.append(Array("self", "output", len(compared)))
            body.append(self._itself(len(compared)))
        return self.nest("clearances", body, outputs)

    def _against(self, kind: str) -> list[Statement]:
        statements: list[Statement] = []
        for body in self.checked.moving:
            near, least = self.register(), self.least[body]

            def coarse(
                row: list[Any], bound: list[Any], held: list[Any], body: int = body
            ) -> list[list[Any]]:
                return [[solids.distance(kind, row, _point(bound, 0), self.bound[body]) - held[0] - SLACK]]

            def fine(row: list[Any], point: list[Any], radius: list[Any], held: list[Any]) -> list[list[Any]]:
                return [[_less(solids.distance(kind, row, _point(point, 0), radius[0]), held[0])]]

            reads = [self.row(kind), self.at_bound(body), [least]]
            statements += [Declare({near: 0.0}), self.made.step(coarse, reads, [[near]])]
            mine, turn = self.checked.spheres.of(body), name(f"s_{kind}_{self.place[body]}")
            reads = [self.row(kind), cells(_CENTRES, 3, turn * 3), [Element("radii", turn)], [least]]
            step = self.made.step(fine, reads, [[least]])
            loop = For(turn.args[0], whole(int(mine[0])), whole(int(mine[-1]) + 1), [step])
            statements.append(IfNegative(near, [loop]))
        return statements

    def apart(self, a: Sequence[Any], b: Sequence[Any], reach: Any, held: Sequence[Any]) -> Any:
        return sqrt(_square(a, b)) - reach

    def matters(self, gap: Any, held: Sequence[Any]) -> Any:
        return gap - held[0] - SLACK

    def result(self, gap: Any, held: Sequence[Any]) -> Any:
        return _less(gap, held[0])

    def _from_margin(self, to: Register) -> Step:
        return self.made.step(lambda margin: [margin], [cells(_MARGIN, 1)], [[to]])

    def _itself(self, count: int) -> For:
        least, near = Register("least"), Register("near_bounds")
        body: list[Statement] = [
            Declare({least: 0.0, near: 0.0}),
            self._from_margin(least),
            self.bounds_apart([least], near),
            IfNegative(near, self.over_rows([least])),
            self.made.step(lambda value: [value], [[least]], [cells("self", 1, name("pair"))]),
        ]
        return For("pair", whole(0), whole(count), body)


def _finite(q: list[Any], hit: list[Any]) -> list[list[Any]]:
    """Positions that are not finite, or beyond ``LARGEST``, collide."""
    value = hit[0]
    for position in q:
        value = where(abs(position) <= LARGEST, value, 1.0)
    return [[value]]


def _point(values: Sequence[Any], k: int) -> tuple[Any, Any, Any]:
    return values[3 * k], values[3 * k + 1], values[3 * k + 2]


def _square(a: Sequence[Any], b: Sequence[Any]) -> Any:
    x, y, z = (u - v for u, v in zip(a, b, strict=True))
    return x * x + y * y + z * z


def _relative(own: Sequence[Any], other: Sequence[Any]) -> list[list[Any]]:
    """The pose of one body in axes of another one, from poses in base axes: rows of numbers."""
    columns = [[other[4 * i + k] for i in range(3)] for k in range(3)]
    away = [own[4 * i + 3] - other[4 * i + 3] for i in range(3)]
    turned = [[dense.dot(column, [own[4 * i + k] for i in range(3)]) for k in range(3)] for column in columns]
    return [[x for row, column in zip(turned, columns, strict=True) for x in (*row, dense.dot(column, away))]]


def _less(a: Any, b: Any) -> Any:
    return where(a < b, a, b)
