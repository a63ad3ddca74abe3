"""Programs that check configurations of one robot against any world, as statements with loops over obstacles.

Each link has a bounding sphere around its spheres. Its spheres are compared with an obstacle only where the bounding
sphere of a state that is computed side by side touches it and the state is not known to collide: ``IfNegative``. The
numbers of obstacles are numbers of the call, so one program serves every world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.collision.body_pairs import BodyPairs
from linkwise.collision.spheres import Spheres
from linkwise.collision.validity import solids
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
from linkwise.geometry.skeleton import BASE
from linkwise.robot.robot import Robot
from linkwise.scalar import sqrt, where

LARGEST = 1e5  # [rad or m] sines of larger numbers have no digits in single precision
FAR = 1e9  # added to what is compared with zero where a state is known to collide
BEYOND = 1e4  # [m] distance where there is nothing to compare with
SLACK = 1e-4  # [m] by which a bound may be above the distances that it bounds, by rounding
_HIT = Register("hit")
_CENTRES, _BOUNDS, _MARGIN = "centres", "bounds", "margin"


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

    def centres(self, q: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Centres of all spheres, and of the bounding spheres of all bodies, in base axes: numbers in a row."""
        poses: dict[int, Any] = {BASE: np.eye(4)}
        for body in self.moving:
            frame = self.robot.moving_joints[body].child
            poses[body] = np.asarray(self.robot.pose(np.array(q, dtype=object), frame))
        centres: list[Any] = []
        for body, point in zip(self.spheres.body.tolist(), self.spheres.centre, strict=True):
            centres += _placed(poses[body], point)
        bounds = [
            x for body in self.spheres.bodies for x in _placed(poses[body], self.spheres.bound(body)[0])
        ]
        return centres, bounds


def _placed(pose: np.ndarray, point: np.ndarray) -> list[Any]:
    x, y, z = point.tolist()
    return [pose[i, 3] + pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z for i in range(3)]


class _Builder:
    """Statements that both programs need."""

    def __init__(self, checked: Checked, dtype: Dtype, fused: bool):
        self.checked, self.dtype = checked, dtype
        self.made = Procedure(dtype, fused=fused)
        spheres = checked.spheres
        self.bound = {body: checked.spheres.bound(body)[1] for body in spheres.bodies}
        self.place = {body: k for k, body in enumerate(spheres.bodies)}
        self.registers = 0
        self.places, self.constants = self.tables()

    def register(self) -> Register:
        self.registers += 1
        return Register(f"near{self.registers}")

    def positions(self) -> Step:
        nq, count = self.checked.robot.nq, len(self.checked.spheres)
        return self.made.step(
            self.checked.centres,
            [cells("q", nq)],
            [cells(_CENTRES, 3 * count), cells(_BOUNDS, 3 * len(self.bound))],
            apart=True,
        )

    def row(self, kind: str) -> list[Place]:
        return [Element(kind, whole(k), name(f"k_{kind}")) for k in range(COLUMNS[kind])]

    def at_bound(self, body: int) -> list[Place]:
        return cells(_BOUNDS, 3, 3 * self.place[body])

    def over_world(self, body: Callable[[str], Sequence[Statement]]) -> list[Statement]:
        return [For(f"k_{kind}", whole(0), name(f"count_{kind}"), body(kind)) for kind in COLUMNS]

    def tables(self) -> tuple[dict[str, list[int]], dict[str, np.ndarray]]:
        """Tables of whole numbers and constants of the pairs of bodies.

        Pair of bodies k: places of their bounding spheres ``bound_first[k]`` and ``bound_second[k]``, the sum of their
        radii ``bound_reaches[k]``, and rows from ``row_starts[k]`` to ``row_stops[k]``. A row is a sphere of the first
        body: its place ``firsts``, and the range of numbers of ``seconds``, places of spheres of the second body;
        ``row_reaches`` are sums of its radius and that of the bounding sphere of the second body, ``reaches`` those of
        two spheres.
        """
        whole_tables: dict[str, list[int]] = {
            key: []
            for key in (
                *("bound_first", "bound_second", "row_starts", "row_stops"),
                *("firsts", "row_bounds", "starts", "stops", "seconds"),
            )
        }
        reals: dict[str, list[float]] = {"bound_reaches": [], "row_reaches": [], "reaches": []}
        radius = self.checked.spheres.radius
        for (one, two), pairs in self.checked.pairs.compared.items():
            sums = self.checked.pairs.reaches[one, two]
            whole_tables["bound_first"].append(3 * self.place[one])
            whole_tables["bound_second"].append(3 * self.place[two])
            whole_tables["row_starts"].append(len(whole_tables["firsts"]))
            reals["bound_reaches"].append(self.bound[one] + self.bound[two])
            for first in np.unique(pairs[:, 0]).tolist():
                mine = pairs[:, 0] == first
                others = pairs[mine, 1].tolist()
                whole_tables["firsts"].append(3 * first)
                whole_tables["row_bounds"].append(3 * self.place[two])
                whole_tables["starts"].append(len(whole_tables["seconds"]))
                whole_tables["seconds"] += [3 * k for k in others]
                whole_tables["stops"].append(len(whole_tables["seconds"]))
                reals["row_reaches"].append(float(radius[first]) + self.bound[two])
                reals["reaches"] += sums[mine].tolist()
            whole_tables["row_stops"].append(len(whole_tables["firsts"]))
        constants = {key: np.array(values or [0.0]) for key, values in reals.items()}
        return {key: values or [0] for key, values in whole_tables.items()}, {**constants, "radii": radius}

    def compared(
        self,
        what: Any,
        places: tuple[Sequence[Place], Sequence[Place], Place],
        held: Sequence[Place],
        to: Register,
    ) -> Step:
        """``what`` of two points, the sum of two radii and ``held``."""

        def arithmetic(a: list[Any], b: list[Any], reach: list[Any], *others: list[Any]) -> list[list[Any]]:
            return [[what(a, b, reach[0], *(each[0] for each in others))]]

        return self.made.step(arithmetic, [*places[:2], [places[2]], *([each] for each in held)], [[to]])

    def over_rows(self, near: Register, coarse: Any, fine: Any, held: Sequence[Place], to: Register) -> For:
        """Spheres of the first body of a pair with the bounding sphere of the second one, then with its spheres."""
        row, turn = name("row"), name("turn")
        first = cells(_CENTRES, 3, entry("firsts", row))
        bound = cells(_BOUNDS, 3, entry("row_bounds", row))
        second = cells(_CENTRES, 3, entry("seconds", turn))
        step = self.compared(coarse, (first, bound, Element("row_reaches", row)), held, near)
        inner = self.compared(fine, (first, second, Element("reaches", turn)), held, to)
        loop = For("turn", entry("starts", row), entry("stops", row), [inner])
        pair = name("pair")
        return For(
            "row", entry("row_starts", pair), entry("row_stops", pair), [step, IfNegative(near, [loop])]
        )

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
        body: list[Statement] = [self.positions(), Declare({_HIT: 0.0})]
        body += self.over_world(self._against)
        if self.checked.pairs.compared:
            body.append(self._itself())
        body.append(
            self.made.step(_finite, [cells("q", self.checked.robot.nq), [_HIT]], [cells("collides", 1)])
        )
        return self.nest("in_collision", body, [Array("collides", "output", 1)])

    def _against(self, kind: str) -> list[Statement]:
        """All bodies against one obstacle."""
        moving = self.checked.moving
        near = {body: self.register() for body in moving}

        def coarse(row: list[Any], bounds: list[Any], margin: list[Any], hit: list[Any]) -> list[list[Any]]:
            found = [
                solids.touching(kind, row, _point(bounds, k), self.bound[body] + margin[0]) + FAR * hit[0]
                for k, body in enumerate(moving)
            ]
            return [found]

        bounds = [place for body in moving for place in self.at_bound(body)]
        reads = [self.row(kind), bounds, cells(_MARGIN, 1), [_HIT]]
        statements: list[Statement] = [Declare(dict.fromkeys(near.values(), 0.0))]
        statements.append(self.made.step(coarse, reads, [list(near.values())]))
        for body in moving:
            statements.append(IfNegative(near[body], [self._spheres(kind, body)]))
        return statements

    def _spheres(self, kind: str, body: int) -> For:
        """The spheres of a body against one obstacle."""

        def fine(
            row: list[Any], point: list[Any], radius: list[Any], margin: list[Any], hit: list[Any]
        ) -> list[list[Any]]:
            gap = solids.touching(kind, row, _point(point, 0), radius[0] + margin[0])
            return [[where(gap < 0.0, 1.0, hit[0])]]

        mine = self.checked.spheres.of(body)
        turn = name(f"s_{kind}_{self.place[body]}")
        reads = [
            self.row(kind),
            cells(_CENTRES, 3, turn * 3),
            [Element("radii", turn)],
            cells(_MARGIN, 1),
            [_HIT],
        ]
        step = self.made.step(fine, reads, [[_HIT]])
        return For(turn.args[0], whole(int(mine[0])), whole(int(mine[-1]) + 1), [step])

    def _itself(self) -> For:
        """All pairs of bodies that are compared."""
        near, nearer, pair = Register("near"), Register("nearer"), name("pair")

        def gap(a: list[Any], b: list[Any], reach: Any, hit: Any, margin: Any) -> Any:
            return _square(a, b) - (reach + margin) * (reach + margin) + FAR * hit

        def fine(a: list[Any], b: list[Any], reach: Any, hit: Any, margin: Any) -> Any:
            return where(_square(a, b) - (reach + margin) * (reach + margin) < 0.0, 1.0, hit)

        held = [_HIT, *cells(_MARGIN, 1)]
        bounds = [cells(_BOUNDS, 3, entry(key, pair)) for key in ("bound_first", "bound_second")]
        step = self.compared(gap, (bounds[0], bounds[1], Element("bound_reaches", pair)), held, near)
        rows = self.over_rows(nearer, gap, fine, held, _HIT)
        body = [Declare({near: 0.0, nearer: 0.0}), step, IfNegative(near, [rows])]
        return For("pair", whole(0), whole(len(self.checked.pairs.compared)), body)


def clearance_nest(checked: Checked, dtype: Dtype = "float64", *, fused: bool = True) -> ProcedureNest:
    """Smallest signed distances [m]: of each moving body to the world, and of each pair of bodies that is compared.

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
        body: list[Statement] = [self.positions(), Declare(dict.fromkeys(self.least.values(), BEYOND))]
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

    def _itself(self, count: int) -> For:
        least, near = Register("least"), Register("near")

        def bound(a: list[Any], b: list[Any], reach: Any, held: Any) -> Any:
            return sqrt(_square(a, b)) - reach - held - SLACK

        def fine(a: list[Any], b: list[Any], reach: Any, held: Any) -> Any:
            return _less(sqrt(_square(a, b)) - reach, held)

        body: list[Statement] = [
            Declare({least: BEYOND, near: 0.0}),
            self.over_rows(near, bound, fine, [least], least),
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


def _less(a: Any, b: Any) -> Any:
    return where(a < b, a, b)
