"""Programs that check configurations of one robot against any world, as statements with loops over obstacles.

Each link has a bounding sphere around its spheres. Its spheres are compared with an obstacle only where the bounding
sphere of a state that is computed side by side touches it and the state is not known to collide: ``IfNegative``. In the
same way small spheres are compared only where the spheres that they replace touch. The numbers of obstacles are numbers
of the call, so one program serves every world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.collision.body_pairs import BodyPairs
from linkwise.collision.clearance import traced_poses
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
ASKED = 0.5  # part of the usual distance of two links that they are asked to keep, at most
SLACK = 1e-4  # [m] by which a bound may be above the distances that it bounds, by rounding
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

    def centres(self, q: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Centres of all spheres, and of the bounding spheres of all bodies, in base axes; poses of ``turned`` bodies:
        numbers in a row."""
        poses: dict[int, Any] = {BASE: np.eye(4)[:3], **dict(enumerate(traced_poses(self.robot, q)))}
        centres: list[Any] = []
        for body, point in zip(self.spheres.body.tolist(), self.spheres.centre, strict=True):
            centres += _placed(poses[body], point)
        bounds = [
            x for body in self.spheres.bodies for x in _placed(poses[body], self.spheres.bound(body)[0])
        ]
        return centres, bounds, [x for body in self.turned for x in poses[body].ravel().tolist()]

    @property
    def small(self) -> _Small:
        """Groups of small spheres."""
        return _Small(self)

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


SECOND = ("second_x", "second_y", "second_z", "second_r")
GROUP, SMALL = ("group_x", "group_y", "group_z", "group_r"), ("small_x", "small_y", "small_z", "small_r")


class _Small:
    """Groups of small spheres of a robot in the order of tables; a sphere that is not divided is a group of one."""

    def __init__(self, checked: Checked):
        self.pairs, spheres = checked.pairs, checked.spheres
        small = self.pairs.small
        self.groups, self.rows, starts = small.groups, small.rows, small.starts
        self.places: dict[int, int] = {}  # groups of spheres that are not divided
        if len(self.groups):
            divided = set(small.parent.tolist())
            whole_ones = [k for k in range(len(spheres)) if k not in divided]
            self.places = {k: len(self.groups) + place for place, k in enumerate(whole_ones)}
            own = np.column_stack([spheres.centre[whole_ones], spheres.radius[whole_ones]])
            starts = np.append(starts, starts[-1] + 1 + np.arange(len(own)))
            self.groups, self.rows = np.concatenate([self.groups, own]), np.concatenate([self.rows, own])
        self.starts: list[int] = starts.tolist()
        owner = small.parent.tolist()
        owners = [[owner[k] if k >= 0 else -1 - k for k in pair] for pair in self.pairs.apart]
        self.partly = {(one, two) for one, two in owners}  # spheres of which some groups are not compared

    def __bool__(self) -> bool:
        return len(self.groups) > 0

    @property
    def constants(self) -> dict[str, np.ndarray]:
        groups, rows = (each if self else np.zeros((1, 4)) for each in (self.groups, self.rows))
        named = {key: groups[:, k] for k, key in enumerate(GROUP)}
        return named | {key: rows[:, k] for k, key in enumerate(SMALL)}

    def of(self, sphere: int) -> range:
        return self.pairs.of(sphere) or range(self.places[sphere], self.places[sphere] + 1)

    def runs(self, first: int, second: int) -> Iterator[tuple[int, int, int]]:
        """(group of the first, start, stop): ranges of groups of the second that it is compared with."""
        theirs = self.of(second)
        if (first, second) not in self.partly:
            yield from ((mine, theirs.start, theirs.stop) for mine in self.of(first))
            return
        names = [{self.of(k).start: -1 - k} if not self.pairs.of(k) else {} for k in (first, second)]
        for mine in self.of(first):
            start = theirs.start
            for other in (*theirs, theirs.stop):
                pair = (names[0].get(mine, mine), names[1].get(other, other))
                if other == theirs.stop or pair in self.pairs.apart:
                    if start < other:
                        yield mine, start, other
                    start = other + 1


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
            [
                cells(_CENTRES, 3 * count),
                cells(_BOUNDS, 3 * len(self.bound)),
                cells(_POSES, 12 * len(self.checked.turned)),
            ],
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
        body: its place ``firsts``, and the range of numbers of ``seconds``, places of spheres of the second body, to
        ``stops`` those that are compared themselves and from there to ``ends`` those of which small spheres are
        compared; ``row_reaches`` are sums of its radius and that of the bounding sphere of the second body, ``reaches``
        those of two spheres, ``SECOND`` the second spheres in axes of their body. Second sphere number t: a range of
        ``groups`` from ``group_starts[t]`` to ``group_stops[t]``, groups of small spheres of the first sphere, each
        with a range of groups of the second one from ``run_starts`` to ``run_stops``. Group g: small spheres from
        ``small_starts[g]`` to ``small_starts[g + 1]``.
        """
        names = "bound_first bound_second row_starts row_stops pose_first pose_second firsts row_bounds starts stops"
        names += " ends seconds group_starts group_stops groups run_starts run_stops"
        whole_tables: dict[str, list[int]] = {key: [] for key in names.split()}
        reals: dict[str, list[float]] = {"bound_reaches": [], "row_reaches": [], "reaches": []}
        seconds: list[int] = []
        pairs_of, spheres = self.checked.pairs, self.checked.spheres
        radius = spheres.radius
        self.small = self.checked.small
        turned = {body: 12 * k for k, body in enumerate(self.checked.turned)}
        for (one, two), pairs in pairs_of.compared.items():
            whole_tables["bound_first"].append(3 * self.place[one])
            whole_tables["bound_second"].append(3 * self.place[two])
            whole_tables["pose_first"].append(turned.get(one, 0))
            whole_tables["pose_second"].append(turned.get(two, 0))
            whole_tables["row_starts"].append(len(whole_tables["firsts"]))
            reals["bound_reaches"].append(self.bound[one] + self.bound[two])
            for first in np.unique(pairs[:, 0]).tolist():
                others = pairs[pairs[:, 0] == first, 1].tolist()
                plain = [k for k in others if not pairs_of.of(first) and not pairs_of.of(k)]
                divided = [k for k in others if pairs_of.of(first) or pairs_of.of(k)]
                whole_tables["firsts"].append(3 * first)
                whole_tables["row_bounds"].append(3 * self.place[two])
                whole_tables["starts"].append(len(whole_tables["seconds"]))
                whole_tables["stops"].append(len(whole_tables["seconds"]) + len(plain))
                whole_tables["ends"].append(len(whole_tables["seconds"]) + len(others))
                for other in (*plain, *divided):
                    whole_tables["seconds"].append(3 * other)
                    whole_tables["group_starts"].append(len(whole_tables["groups"]))
                    for number, start, stop in self.small.runs(first, other) if other in divided else ():
                        whole_tables["groups"].append(number)
                        whole_tables["run_starts"].append(start)
                        whole_tables["run_stops"].append(stop)
                    whole_tables["group_stops"].append(len(whole_tables["groups"]))
                    reals["reaches"].append(float(radius[first] + radius[other]))
                    seconds.append(other)
                reals["row_reaches"].append(float(radius[first]) + self.bound[two])
            whole_tables["row_stops"].append(len(whole_tables["firsts"]))
        whole_tables["small_starts"] = self.small.starts
        constants = {key: np.array(values or [0.0]) for key, values in reals.items()}
        rows = np.column_stack([spheres.centre, radius])[seconds or [0]]
        constants |= {key: rows[:, k] for k, key in enumerate(SECOND)}
        constants |= {"radii": radius, **self.small.constants}
        constants["most_asked"] = np.array([ASKED * x for x in pairs_of.usual.values()] or [0.0])
        return {key: values or [0] for key, values in whole_tables.items()}, constants

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
        sphere = [Element(key, turn) for key in SECOND]

        def spheres(a: list[Any], b: list[Any], reach: list[Any], held: list[Any]) -> list[list[Any]]:
            found = self.apart(a, b, reach[0], held)
            return [[found], [self.matters(found, held)]]

        def moved(
            pose: list[Any], a: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            local = [_sum(pose[4 * i : 4 * i + 3], a) + pose[4 * i + 3] for i in range(3)]
            found = _larger(before[0], self.apart(local, b[:3], a[3] + b[3], held))
            return [[found], [self.matters(found, held)], local]

        def groups(
            a: list[Any], size: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            found = _larger(before[0], self.apart(a, b[:3], size[0] + b[3], held))
            return [[found], [self.matters(found, held)]]

        def small_ones(
            a: list[Any], size: list[Any], b: list[Any], before: list[Any], held: list[Any]
        ) -> list[list[Any]]:
            found = _larger(before[0], self.apart(a, b[:3], size[0] + b[3], held))
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
            ("item", entry("group_starts", turn), entry("group_stops", turn)),
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
            Array(_POSES, "scratch", max(1, 12 * len(self.checked.turned))),
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

    def apart(self, a: Sequence[Any], b: Sequence[Any], reach: Any, held: Sequence[Any]) -> Any:
        return _square(a, b) - (reach + held[1]) * (reach + held[1])

    def matters(self, gap: Any, held: Sequence[Any]) -> Any:
        return gap + FAR * held[0]

    def result(self, gap: Any, held: Sequence[Any]) -> Any:
        return where(gap < 0.0, 1.0, held[0])

    def _itself(self) -> For:
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
        return For("pair", whole(0), whole(len(self.checked.pairs.compared)), body)


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
        body: list[Statement] = [self.positions(), Declare(dict.fromkeys(self.least.values(), 0.0))]
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


def _sum(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _relative(own: Sequence[Any], other: Sequence[Any]) -> list[list[Any]]:
    """The pose of one body in axes of another one, from poses in base axes: rows of numbers."""
    columns = [[other[4 * i + k] for i in range(3)] for k in range(3)]
    away = [own[4 * i + 3] - other[4 * i + 3] for i in range(3)]
    turned = [[_sum(column, [own[4 * i + k] for i in range(3)]) for k in range(3)] for column in columns]
    return [[x for row, column in zip(turned, columns, strict=True) for x in (*row, _sum(column, away))]]


def _less(a: Any, b: Any) -> Any:
    return where(a < b, a, b)


def _larger(a: Any, b: Any) -> Any:
    return where(a > b, a, b)
