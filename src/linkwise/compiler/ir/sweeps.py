"""Programs with loops over rows (the links of a robot), for chains too long to be written out.

The same traversals that an algorithm uses on a list of links are recorded here instead of run: each step is traced once
per kind of row, over symbols that stand for "this row's" constants and values. What is recorded is a list of sweeps,
loops over all rows in one direction. Consecutive traversals in one direction share a loop, so a value that only the
same row needs never reaches memory. In a chain a row's parent is the row before it: its values stay in registers.

A scan (see ``scan_order``) is two more loops, over pairs of rows: ``Pairs``. The rows must form a chain.

Rows refer to memory by ``input`` nodes, so the passes of the compiler do not depend on this:

=====================  ================================================================
("given", (name, k))   this row's element of an input, or the k-th where a row has several
("table", column)      a constant of this row
("at", field)          a value that an earlier sweep stored for this row
("above", field)       the parent row's value, or the root's
("received", field)    the sum of what the row's children carried inward
("inner", field)       what a scan from the base knows before this row
("outer", field)       what a scan from the tip knows before this row
("left", field)        in a scan: of the pair's first row, or the root's
("right", field)       in a scan: of the pair's second row, where the result goes
("seed", k)            in derivatives: 1 where the direction is this row's k-th element, else 0
=====================  ================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise.compiler.ir import operations as operations_
from linkwise.compiler.ir.derivative import tangents
from linkwise.compiler.ir.expand import expand
from linkwise.compiler.ir.fuse import fuse
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.ir.schedule import Body, LoopRegion, schedule
from linkwise.compiler.ir.structures import Rows, aligned, leaves, rebuilt
from linkwise.compiler.ir.walks import reachable
from linkwise.core import scan_order
from linkwise.errors import TraceError
from linkwise.scalar import Scalar


@dataclass(eq=False)
class Array:
    """A value for every row: an input, a list of constants, or what a sweep computed."""

    template: Any
    sweep: Sweep | Scan | None = None
    given: str | None = None
    sizes: Mapping[Any, int] = field(
        default_factory=dict[Any, int]
    )  # scalars of an input for a row of each kind
    fields: list[int] = field(default_factory=list)  # the numbers of all fields that rows of some kind use
    own: dict[Any, tuple[Any, list[int]]] = field(default_factory=dict)  # per kind: its template and fields
    per_kind: dict[Any, list[Node]] = field(default_factory=dict)  # the nodes, where it was computed
    source: str = "at"  # how later sweeps refer to it; "" where a scan has overwritten it

    def __len__(self) -> int:
        raise TraceError("a value per link is not a list while links are swept; use links.each")


@dataclass(eq=False)
class Kind:
    """The rows of one kind in one sweep: the graph of their step and what it stores and carries."""

    graph: Graph
    row: Any  # what the algorithm sees as the link
    stored: dict[int, Node] = field(default_factory=dict)  # field -> node
    carried: dict[int, Node] = field(default_factory=dict)  # accumulated field of the parent -> node
    body: Body = field(default_factory=list["Node | LoopRegion"])
    traced: list[Node] = field(default_factory=list)  # what is stored and carried, before it is lowered
    elements: dict[str, int] = field(default_factory=dict)  # how many scalars of each input a row has
    directions: int = 1  # in which its elements can change

    def lowered(self, dtype: str, fused: bool = True) -> Kind:
        """The same step as scheduled IEEE operations."""
        nodes = expand(self.traced, dtype, fused=fused)
        if fused:
            nodes = fuse(nodes)
        stored = dict(zip(self.stored, nodes, strict=False))
        carried = dict(zip(self.carried, nodes[len(stored) :], strict=True))
        return Kind(
            self.graph,
            self.row,
            stored,
            carried,
            schedule(nodes),
            self.traced,
            self.elements,
            self.directions,
        )


@dataclass(eq=False)
class Sweep:
    """One loop over all rows."""

    inward: bool
    kinds: dict[Any, Kind]
    above: set[int] = field(default_factory=set)  # fields read of the parent
    received: dict[int, float] = field(default_factory=dict)  # accumulated field -> its start


@dataclass(eq=False)
class Pairs:
    """A loop over pairs of rows, level by level: right ← step(left, right)."""

    step: Kind
    levels: list[scan_order.Level]  # START: the root's row

    def rows(self, level: scan_order.Level, inward: bool, count: int) -> list[tuple[int, int]]:
        """The pairs of a level as rows in memory; the root's row is the last."""
        if not inward:
            return [(count if left == scan_order.START else left, right) for left, right in level]
        return [(count - 1 - left, count - 1 - right) for left, right in level]


@dataclass(eq=False)
class Scan:
    """Runs of rows are joined, then applied to what is known before them."""

    inward: bool
    join: Pairs
    apply: Pairs
    states: list[int]  # the fields of what is known

    @property
    def loops(self) -> tuple[Pairs, Pairs]:
        return self.join, self.apply


@dataclass(frozen=True, eq=False)
class SweptProgram:
    """A program of sweeps over rows, with a row of memory for each and one more for the root."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[tuple[int, ...], ...]  # per output the fields that hold it, row by row
    layouts: Mapping[str, Rows]  # of the inputs
    result_rows: Rows  # of the outputs, and of directions
    dtype: str
    rows: int
    parents: tuple[int, ...]
    kind_of: tuple[int, ...]
    table: np.ndarray  # (rows, columns)
    sweeps: tuple[Sweep | Scan, ...]
    kinds: tuple[Any, ...]
    roots: dict[int, float]  # field -> what the root row holds
    places: dict[int, int]  # field -> its place in a row's memory, for those that are kept there
    operations: Operations
    fused: bool = True
    """Whether fused multiply-adds are used."""
    directions: bool = False
    """Whether the sweeps are repeated for every row as the direction of derivatives; then outputs are matrices."""

    @property
    def chain(self) -> bool:
        return all(parent == k - 1 for k, parent in enumerate(self.parents))

    @property
    def scanned(self) -> bool:
        return any(isinstance(sweep, Scan) for sweep in self.sweeps)

    def roots_in_memory(self) -> dict[int, float]:
        """What the root's row must hold before anything is computed."""
        if not self.chain:
            return {f: v for f, v in self.roots.items() if f in self.places}
        states = {f for sweep in self.sweeps if isinstance(sweep, Scan) for f in sweep.states}
        return {f: self.roots[f] for f in sorted(states & self.places.keys())}

    def sums_in_memory(self) -> list[tuple[int, float]]:
        """In a tree: the sums that rows receive, and their start; in a chain there is one child, and no sum."""
        if self.chain:
            return []
        sweeps = [sweep for sweep in self.sweeps if isinstance(sweep, Sweep)]
        return [item for sweep in sweeps for item in sweep.received.items()]

    def passed(self, sweep: Sweep) -> dict[int, float]:
        """In a chain: the fields that pass from row to row in registers, and their start."""
        if not self.chain:
            return {}
        return {f: self.roots[f] for f in sorted(sweep.above)} | dict(sorted(sweep.received.items()))

    def scratch_scalars(self, width: int) -> int:
        """Memory that one call needs beside its inputs and outputs."""
        return (self.rows + 1) * len(self.places) * width


class Sweeper:
    """Records traversals. The rows of a kind are seen through ``make_row(kind, constant)``, where ``constant(values)``
    turns one number per row of that kind into a constant or a table entry. ``join`` makes one value of the scalars
    that a row has of an input."""

    def __init__(
        self,
        parents: Sequence[int],
        kind_of: Sequence[Any],
        make_row: Callable[..., Any],
        join: Callable[[list[Any]], Any] = lambda parts: parts[0],
        directions: Mapping[Any, int] | None = None,
    ):
        self.join = join
        self.directions = directions or {}  # per kind: in how many a row's elements can change
        self.parents = tuple(parents)
        self.kind_of = tuple(kind_of)
        self.kinds = tuple(dict.fromkeys(kind_of))
        self.make_row = make_row
        self.columns: list[np.ndarray] = []
        self.column_of: dict[bytes, int] = {}
        self.sweeps: list[Sweep | Scan] = []
        self.roots: dict[int, float] = {}
        self.field_count = 0

    # -- the traversals of a mechanism ----------------------------------------------------------------------------

    def outward(self, step: Callable[..., Any], root: Any, *per_row: Any) -> Array:
        sweep = self._sweep(inward=False)
        root_leaves = leaves(root)
        fields = [self._field() for _ in root_leaves]
        self.roots.update(dict(zip(fields, root_leaves, strict=True)))
        result = Array(root, sweep, fields=list(fields))
        further: list[int] = []  # of rows whose values have more scalars than the root's
        for name, kind in sweep.kinds.items():
            parent = rebuilt(root, [kind.graph.make("input", (), ("above", f)) for f in fields])
            value = step(kind.row, parent, *self._own(kind, name, per_row))
            own: list[int] = []
            more = 0
            for f, count in zip(fields, aligned(root, value), strict=True):
                own.append(f)
                while len(further) < more + count - 1:
                    further.append(self._field())
                own += further[more : more + count - 1]
                more += count - 1
            self._store(result, name, kind, value, own)
        result.fields += further
        sweep.above.update(fields)
        return result

    def inward(self, step: Callable[..., Any], zero: Any, *per_row: Any) -> Array:
        sweep = self._sweep(inward=True)
        starts = leaves(zero)
        sums = [self._field() for _ in starts]
        sweep.received.update(dict(zip(sums, starts, strict=True)))
        result: Array | None = None
        for name, kind in sweep.kinds.items():
            received = rebuilt(zero, [kind.graph.make("input", (), ("received", f)) for f in sums])
            value, carried = step(kind.row, received, *self._own(kind, name, per_row))
            if result is None:
                result = Array(value, sweep)
            self._store(result, name, kind, value, self._fields(result, len(leaves(value))))
            kind.carried.update({f: kind.graph.lift(c) for f, c in zip(sums, leaves(carried), strict=True)})
        assert result is not None
        return result

    def each(self, step: Callable[..., Any], *per_row: Any) -> Array:
        last = self.sweeps[-1] if self.sweeps else None
        sweep = last if isinstance(last, Sweep) else self._sweep(inward=False)
        result: Array | None = None
        for name, kind in sweep.kinds.items():
            value = step(kind.row, *self._own(kind, name, per_row))
            if result is None:
                result = Array(value, sweep)
            self._store(result, name, kind, value, self._fields(result, len(leaves(value))))
        assert result is not None
        return result

    def scan(
        self,
        join: Callable[[Any, Any], Any],
        apply: Callable[[Any, Any], Any],
        start: Any,
        elements: Array,
        inward: bool = False,
    ) -> Array:
        if any(parent != k - 1 for k, parent in enumerate(self.parents)):
            raise TraceError("only the links of a chain can be scanned")
        runs = list(elements.fields)
        states = [self._field() for _ in leaves(start)]
        self.roots.update(dict(zip(states, leaves(start), strict=True)))

        def pairs(
            step: Callable[..., Any], left: Any, fields: list[int], levels: list[scan_order.Level]
        ) -> Pairs:
            graph = Graph()
            first = rebuilt(left, [graph.make("input", (), ("left", f)) for f in fields])
            second = rebuilt(elements.template, [graph.make("input", (), ("right", f)) for f in runs])
            results = [graph.lift(x) for x in leaves(step(first, second))]
            return Pairs(Kind(graph, None, dict(zip(fields, results, strict=True))), levels)

        count = len(self.parents)
        scan = Scan(
            inward,
            pairs(join, elements.template, runs, scan_order.joins(count)),
            pairs(apply, start, states, scan_order.applications(count)),
            states,
        )
        self.sweeps.append(scan)
        elements.source = ""
        return Array(start, scan, fields=list(states), source="outer" if inward else "inner")

    # -- derivatives ----------------------------------------------------------------------------------------------

    def differentiated(
        self, result: Array, by: Sequence[str], along: Callable[[Any, str, Any, Any], Any]
    ) -> list[Array]:
        """The derivatives of a value per row along one direction for each of these inputs; see ``directions``.

        ``along(row, name, value, direction)``: how an input changes where the row's elements have this direction.
        """
        fields: dict[tuple[int, str], int] = {}  # what changes -> the field of its change

        def field_of(f: int, name: str) -> int:
            return fields.setdefault((f, name), -1 - len(fields))

        wanted = list(result.fields)
        for name in by:
            for f in wanted:
                field_of(f, name)
        known = -1
        while len(fields) != known:  # until no more fields are found to change
            known = len(fields)
            for sweep in self.sweeps:
                if isinstance(sweep, Scan):
                    raise TraceError("scans are not differentiated")
                for kind in sweep.kinds.values():
                    for f, name, tangent in self._tangents(kind, fields, by, along):
                        if tangent is not kind.graph.zero:
                            field_of(f, name)
        for key in fields:
            fields[key] = self._field()
        for sweep in self.sweeps:
            assert isinstance(sweep, Sweep)
            for kind in sweep.kinds.values():
                carried = set(kind.carried)
                for f, name, tangent in self._tangents(kind, fields, by, along):
                    if (f, name) in fields:
                        (kind.carried if f in carried else kind.stored)[fields[f, name]] = tangent
            for (f, _), changing in fields.items():
                if f in sweep.above:
                    sweep.above.add(changing)
                    self.roots[changing] = 0.0
                if f in sweep.received:
                    sweep.received[changing] = 0.0
        return [Array(0.0, result.sweep, fields=[fields[f, name] for f in wanted]) for name in by]

    def _tangents(
        self,
        kind: Kind,
        fields: dict[tuple[int, str], int],
        by: Sequence[str],
        along: Callable[[Any, str, Any, Any], Any],
    ) -> list[tuple[int, str, Node]]:
        """(field, input, change of the field along that input's direction) of all that a step stores and carries."""
        graph = kind.graph
        own = {f: n for f, n in (*kind.stored.items(), *kind.carried.items()) if f not in fields.values()}
        inputs = [node for node in reachable(own.values()) if node.op == "input" and node.value[0] != "table"]
        found: list[tuple[int, str, Node]] = []
        for name in by if own else ():
            seeds = self._seeds(kind, name, along)
            for node in inputs:
                source, which = node.value
                if source != "given" and (which, name) in fields:
                    seeds[node] = graph.make("input", (), (source, fields[which, name]))
            changes = tangents(list(own.values()), seeds)
            found += [(f, name, change) for f, change in zip(own, changes, strict=True)]
        return found

    def _seeds(self, kind: Kind, name: str, along: Callable[[Any, str, Any, Any], Any]) -> dict[Node, Node]:
        """How a row's elements of an input change along the direction."""
        graph, count = kind.graph, kind.elements.get(name, 0)
        if not count:
            return {}
        given = [graph.make("input", (), ("given", (name, k))) for k in range(count)]
        ways = [graph.make("input", (), ("seed", k)) for k in range(kind.directions)]
        changes = leaves(along(kind.row, name, self.join(given), self.join(ways)))
        return {node: graph.lift(change) for node, change in zip(given, changes, strict=True)}

    # -- recording ------------------------------------------------------------------------------------------------

    def _fields(self, array: Array, count: int) -> list[int]:
        """The first so many fields of an array, new ones where there are fewer."""
        while len(array.fields) < count:
            array.fields.append(self._field())
        return array.fields[:count]

    def _field(self) -> int:
        self.field_count += 1
        return self.field_count - 1

    def _sweep(self, inward: bool) -> Sweep:
        """The current loop if it runs the right way, else a new one."""
        last = self.sweeps[-1] if self.sweeps else None
        if isinstance(last, Sweep) and last.inward == inward:
            return last
        kinds: dict[Any, Kind] = {}
        for kind in self.kinds:
            graph = Graph()
            members = [k for k, other in enumerate(self.kind_of) if other == kind]

            def constant(
                values: Sequence[float], graph: Graph = graph, members: list[int] = members
            ) -> Scalar:
                if len(set(values)) == 1:
                    return float(values[0])
                return graph.make("input", (), ("table", self._column(members, values)))

            kinds[kind] = Kind(graph, self.make_row(kind, members, constant))
            kinds[kind].directions = self.directions.get(kind, 1)
        made = Sweep(inward, kinds)
        self.sweeps.append(made)
        return made

    def _column(self, members: Sequence[int], values: Sequence[float]) -> int:
        column = np.zeros(len(self.parents))
        column[list(members)] = values
        key = column.tobytes()
        if key not in self.column_of:
            self.column_of[key] = len(self.columns)
            self.columns.append(column)
        return self.column_of[key]

    def _own(self, kind: Kind, name: Any, per_row: Sequence[Any]) -> list[Any]:
        return [self._element(kind, name, array) for array in per_row]

    def _element(self, kind: Kind, name: Any, array: Any) -> Any:
        """What a value per row is for the row at hand."""
        graph = kind.graph
        if not isinstance(array, Array):  # one constant per row
            return self._constant(kind, name, list(array))
        if array.given is not None:
            count = kind.elements[array.given] = array.sizes[name]
            return self.join([graph.make("input", (), ("given", (array.given, k))) for k in range(count)])
        template, fields = array.own.get(name, (array.template, array.fields))
        if array.sweep is self.sweeps[-1]:
            return rebuilt(template, array.per_kind[name])
        if not array.source:
            raise TraceError("what was given to a scan cannot be used after it")
        return rebuilt(template, [graph.make("input", (), (array.source, f)) for f in fields])

    def _constant(self, kind: Kind, name: Any, values: list[Any]) -> Any:
        """One constant per row, or several where a row of this kind has several."""
        members = [k for k, other in enumerate(self.kind_of) if other == name]
        if all(isinstance(value, float) for value in values):
            if len(set(values)) == 1:
                return float(values[0])
            return kind.graph.make("input", (), ("table", self._column(range(len(self.parents)), values)))
        own = [values[k] for k in members]
        columns: list[Scalar] = []
        for each in zip(*map(leaves, own), strict=True):
            same = len(set(each)) == 1
            columns.append(
                float(each[0])
                if same
                else kind.graph.make("input", (), ("table", self._column(members, each)))
            )
        return rebuilt(own[0], columns)

    def _store(self, array: Array, name: Any, kind: Kind, value: Any, fields: list[int]) -> None:
        nodes = [kind.graph.lift(scalar) for scalar in leaves(value)]
        array.per_kind[name] = nodes
        array.own[name] = (value, fields)
        for f, node in zip(fields, nodes, strict=True):
            kind.stored[f] = node

    # -- the program ----------------------------------------------------------------------------------------------

    def program(
        self,
        name: str,
        inputs: dict[str, int],
        outputs: dict[str, Array],
        dtype: str,
        layouts: Mapping[str, Rows],
        results_layout: Rows,
        directions: bool = False,
    ) -> SweptProgram:
        """What was recorded; with ``directions`` the outputs are derivatives along those."""
        results = tuple(tuple(array.fields) for array in outputs.values())
        needed = self._needed([f for fields in results for f in fields])
        size = results_layout.total
        counted: list[tuple[Operations, int]] = []
        for sweep in self.sweeps:
            if isinstance(sweep, Sweep):
                sweep.above = {f for f in sweep.above if f in needed}
                sweep.received = {f: v for f, v in sweep.received.items() if f in needed}
            for kind, times in self._steps(sweep):
                kind.stored = {f: n for f, n in kind.stored.items() if f in needed}
                kind.carried = {f: n for f, n in kind.carried.items() if f in needed}
                counted.append((operations_.count([*kind.stored.values(), *kind.carried.values()]), times))
                kind.traced = [*kind.stored.values(), *kind.carried.values()]
                lowered = kind.lowered(dtype)
                kind.stored, kind.carried, kind.body = lowered.stored, lowered.carried, lowered.body
        return SweptProgram(
            name=name,
            inputs=tuple(inputs.items()),
            outputs=tuple((key, (size, size) if directions else (size,)) for key in outputs),
            results=results,
            layouts=dict(layouts),
            result_rows=results_layout,
            dtype=dtype,
            rows=len(self.parents),
            parents=self.parents,
            kind_of=tuple(self.kinds.index(kind) for kind in self.kind_of),
            table=np.array(self.columns).T.reshape(len(self.parents), len(self.columns)),
            sweeps=tuple(self.sweeps),
            kinds=self.kinds,
            roots={f: v for f, v in self.roots.items() if f in needed},
            places={f: k for k, f in enumerate(sorted(self._in_memory()))},
            operations=self._operations(
                [(part, times * (size if directions else 1)) for part, times in counted]
            ),
            directions=directions,
        )

    def _steps(self, sweep: Sweep | Scan) -> list[tuple[Kind, int]]:
        """The steps of a loop and how often each is taken."""
        if isinstance(sweep, Scan):
            return [(pairs.step, sum(map(len, pairs.levels))) for pairs in sweep.loops]
        return [(kind, self.kind_of.count(name)) for name, kind in sweep.kinds.items()]

    @staticmethod
    def _operations(counted: list[tuple[Operations, int]]) -> Operations:
        def total(key: str) -> int:
            return sum(getattr(part, key) * times for part, times in counted)

        return Operations(
            multiplications=total("multiplications"),
            additions=total("additions"),
            divisions=total("divisions"),
            trigonometric=total("trigonometric"),
            square_roots=total("square_roots"),
        )

    def _needed(self, results: Sequence[int]) -> set[int]:
        """The fields that the results depend on, through every sweep."""
        needed: set[int] = set()
        new = set(results)
        while new:
            needed |= new
            new: set[int] = set()
            for sweep in self.sweeps:
                for kind, _ in self._steps(sweep):
                    roots = [n for f, n in (*kind.stored.items(), *kind.carried.items()) if f in needed]
                    for node in reachable(roots):
                        if node.op == "input" and node.value[0] not in ("given", "table", "seed"):
                            new.add(node.value[1])
            new -= needed
        return needed

    def _in_memory(self) -> set[int]:
        """Fields that pass from one sweep to another or, in a tree, from row to row."""
        chain = all(parent == k - 1 for k, parent in enumerate(self.parents))
        remembered = ("at", "inner", "outer", "left", "right")
        kept: set[int] = set()
        for sweep in self.sweeps:
            if isinstance(sweep, Scan):
                kept |= {f for pairs in sweep.loops for f in pairs.step.stored}
            elif not chain:
                kept |= sweep.above | set(sweep.received)
            for kind, _ in self._steps(sweep):
                targets = [*kind.stored.values(), *kind.carried.values()]
                kept |= {
                    n.value[1] for n in reachable(targets) if n.op == "input" and n.value[0] in remembered
                }
        return kept


def unfused(program: SweptProgram) -> SweptProgram:
    """The same function without fused multiply-adds."""

    def again(kind: Kind) -> Kind:
        return kind.lowered(program.dtype, fused=False)

    sweeps: list[Sweep | Scan] = []
    for sweep in program.sweeps:
        if isinstance(sweep, Scan):
            join, apply = (replace(pairs, step=again(pairs.step)) for pairs in sweep.loops)
            sweeps.append(replace(sweep, join=join, apply=apply))
        else:
            sweeps.append(replace(sweep, kinds={name: again(kind) for name, kind in sweep.kinds.items()}))
    return replace(program, sweeps=tuple(sweeps), fused=False)
