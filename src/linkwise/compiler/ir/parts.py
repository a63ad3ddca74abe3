"""A straight-line program as parts for the warps of one block; see ``partition`` for how it is divided.

Each warp has a graph of its own. What it needs from others it reads from the array ``exchange``, one element for each
value that is passed on; an element is used again when all have read it. Conditions are not passed on: every warp
evaluates those that it needs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from linkwise.compiler.ir.graph import CONDITIONS, WORDS, Graph, Node
from linkwise.compiler.ir.loops import Array, Barrier, Element, Nest, Place, Statement, Step, whole
from linkwise.compiler.ir.partition import Division, Work, divisions
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.shapes import nest

EXCHANGE = "exchange"
_Reads = dict[int, set[tuple[int, int]]]
_COST = {"div": 10, "sqrt": 10}  # in additions; everything else counts as one


@dataclass(frozen=True, eq=False)
class Parts:
    """What each warp does in each stage, and the memory for it."""

    nest: Nest
    """All parts one after the other, stage by stage."""
    steps: Sequence[Sequence[tuple[Step, Step]]]
    """The same: for each stage and each warp what others wait for, then the rest."""
    exchanged: int
    """Elements of the array ``exchange``."""
    stores: int
    loads: int


def divisible(program: Program) -> bool:
    """Whether the program is straight-line arithmetic on numbers."""
    return not any(isinstance(item, LoopRegion) or item.op in WORDS for item in program.body)


def parts(program: Program, warps: int, held: int, overlaid: Sequence[bool] = ()) -> Parts:
    """The program for so many warps.

    ``held``: values that a warp may keep in registers from one stage to the next; those that wait longest beyond that
    are kept in the shared memory. ``overlaid``: for each output whether its scalars lie in
    ``exchange``, one output after the other from the first element on.
    """
    return _Builder(program, warps, held, overlaid or [False] * len(program.outputs)).parts()


class _Builder:
    def __init__(self, program: Program, warps: int, held: int, overlaid: Sequence[bool]):
        self.program, self.warps, self.held, self.overlaid = program, warps, held, overlaid
        self.values = [node for node in program.nodes() if node.op != "neg" and node.op not in CONDITIONS]
        self.number = {node.index: k for k, node in enumerate(self.values)}
        self._needs: dict[int, tuple[int, ...]] = {}
        uses = [self._needed(node.args) for node in self.values]
        self.work = Work(uses, [_COST.get(node.op, 1) for node in self.values])
        # of the two divisions, the one that needs less shared memory: that decides how many groups of warps fit
        self.division, self.reads, self.slots, self.exchanged = min(
            map(self._passed_on, divisions(self.work, warps)), key=lambda found: found[-1]
        )
        self.graphs = [Graph() for _ in range(warps)]
        self.made: list[dict[int, Node]] = [{} for _ in range(warps)]
        self.listed: list[set[int]] = [set() for _ in range(warps)]  # signs and conditions so far

    def _needed(self, nodes: Iterable[Node]) -> tuple[int, ...]:
        """The values that these nodes are, or are made of by signs and conditions."""
        found: dict[int, None] = {}
        for node in nodes:
            if node.index in self.number:
                found[self.number[node.index]] = None
            elif node.args:
                if node.index not in self._needs:
                    self._needs[node.index] = self._needed(node.args)
                found.update(dict.fromkeys(self._needs[node.index]))
        return tuple(found)

    # -- what passes through shared memory ----------------------------------------------------------------------------

    def _passed_on(self, division: Division) -> tuple[Division, _Reads, dict[int, int], int]:
        """(the division, who reads what in shared memory, the element of each value there, how many there are)."""
        reads = self._reads(division)
        return division, reads, *self._slots(division, reads)

    def _reads(self, division: Division) -> _Reads:
        """For each value in shared memory the (warp, stage) pairs that read it there."""
        owner, stage = division.owner, division.stage
        users: list[set[tuple[int, int]]] = [set() for _ in owner]
        for value, used in enumerate(self.work.uses):
            for a in used:
                users[a].add((owner[value], stage[value]))
        reads = {
            value: others
            for value, seen in enumerate(users)
            if (others := {pair for pair in seen if pair[0] != owner[value]})
        }
        for warp in range(self.warps):
            later = {
                value: {at for who, at in seen if who == warp and at > stage[value]}
                for value, seen in enumerate(users)
                if owner[value] == warp
            }
            kept = {value: at for value, at in later.items() if at}
            for value in self._evicted(division, kept, reads):
                reads.setdefault(value, set()).update((warp, at) for at in later[value])
        return reads

    def _evicted(self, division: Division, later: dict[int, set[int]], shared: Container[int]) -> list[int]:
        """Which of a warp's own values, used in these later stages, do not fit into its registers.

        The first to go are those that wait longest; one that is in shared memory anyway needs no store.
        """
        stage = division.stage
        found: list[int] = []
        for number in range(division.stages):
            alive = {
                value: min(at for at in uses if at > number)
                for value, uses in later.items()
                if stage[value] <= number < max(uses)
            }
            order = sorted(alive, key=lambda value: (alive[value] + (value in shared), value))
            for value in order[self.held :]:
                found.append(value)
                del later[value]
        return found

    def _slots(self, division: Division, reads: _Reads) -> tuple[dict[int, int], int]:
        """(the element of each value in ``exchange``, how many there are).

        A warp that writes in stage s knows that all others are done with stage s - 2. The first elements lie where
        outputs are written later.
        """
        stage = division.stage
        until = self._until(division)  # for each element the stage from which it holds an output
        since = [0] * len(until)  # for each element the stage from which it is free
        slots: dict[int, int] = {}
        for value in sorted(reads, key=lambda value: (stage[value], value)):
            end = max(at for _, at in reads[value]) + 2
            fitting = (k for k, last in enumerate(until) if since[k] <= stage[value] and end <= last)
            slot = min(fitting, key=lambda k: (until[k], k), default=len(until))
            if slot == len(until):
                until.append(division.stages + 2)
                since.append(0)
            slots[value], since[slot] = slot, end
        return slots, len(until)

    def _until(self, division: Division) -> list[int]:
        """For each element that lies in the place of an output the stage that writes it."""
        last = division.stages - 1  # of constants and inputs
        numbers = [
            self.number.get(_without_sign(node).index)
            for nodes, overlaid in zip(self.program.values, self.overlaid, strict=True)
            for node in nodes
            if overlaid
        ]
        return [last if k is None else division.stage[k] for k in numbers]

    # -- steps --------------------------------------------------------------------------------------------------------

    def parts(self) -> Parts:
        plain = nest(self.program)
        (given,) = plain.body
        assert isinstance(given, Step)
        outputs = self._outputs(given.writes)
        order: dict[tuple[int, int], list[int]] = {}
        for value in range(len(self.values)):
            order.setdefault((self.division.stage[value], self.division.owner[value]), []).append(value)
        steps: list[list[tuple[Step, Step]]] = []
        for number in range(self.division.stages):
            steps.append([])
            for warp in range(self.warps):
                first, rest = self._awaited(order.get((number, warp), []))
                awaited = self._step(warp, number, first, outputs, given)
                known = outputs.pop(-1 - warp, ()) if number + 1 == self.division.stages else ()
                steps[-1].append((awaited, self._step(warp, number, rest, outputs, given, known)))
        body: list[Statement] = []
        for row in steps:
            body += [*(step for pair in row for step in pair), Barrier()]
        arrays = (*plain.arrays, Array(EXCHANGE, "scratch", self.exchanged))
        made = Nest(plain.name, plain.dtype, arrays, body)
        loads = sum(map(len, self.reads.values()))
        return Parts(made, steps, self.exchanged, len(self.reads), loads)

    def _awaited(self, values: Sequence[int]) -> tuple[list[int], list[int]]:
        """What a warp computes in a stage: the values that others need with all that leads to them; the rest."""
        owner = self.division.owner
        needed = {
            value for value in values if any(warp != owner[value] for warp, _ in self.reads.get(value, ()))
        }
        here = set(values)
        for value in reversed(values):
            if value in needed:
                needed.update(here.intersection(self.work.uses[value]))
        return [v for v in values if v in needed], [v for v in values if v not in needed]

    def _outputs(self, writes: Sequence[tuple[Place, Node]]) -> dict[int, list[tuple[Place, Node]]]:
        """The outputs that each value gives; constants and inputs are written by warp k: number -1 - k."""
        found: dict[int, list[tuple[Place, Node]]] = {}
        for k, (place, node) in enumerate(writes):
            value = self.number.get(_without_sign(node).index, -1 - k % self.warps)
            found.setdefault(value, []).append((place, node))
        return found

    def _step(
        self,
        warp: int,
        number: int,
        values: Sequence[int],
        outputs: dict[int, list[tuple[Place, Node]]],
        given: Step,
        also: Sequence[tuple[Place, Node]] = (),
    ) -> Step:
        body: list[Node | LoopRegion] = []
        reads: dict[object, Place] = dict(given.reads)
        writes: list[tuple[Place, Node]] = []
        graph, made = self.graphs[warp], self.made[warp]

        def image(node: Node) -> Node:
            """The node in the warp's own graph; signs and conditions are computed where they are first needed."""
            value = self.number.get(node.index)
            if value is not None:
                if (warp, number) not in self.reads.get(value, ()):
                    return made[value]
                name = (EXCHANGE, value)
                reads[name] = Element(EXCHANGE, whole(self.slots[value]))
                return graph.make("input", (), name)
            new = graph.make(node.op, tuple(image(a) for a in node.args), node.value)
            if new.args and new.index not in self.listed[warp]:
                self.listed[warp].add(new.index)
                body.append(new)
            return new

        for value in values:
            node = self.values[value]
            new = made[value] = graph.make(node.op, tuple(image(a) for a in node.args), node.value)
            body.append(new)
            if value in self.slots:
                writes.append((Element(EXCHANGE, whole(self.slots[value])), new))
            writes += [(place, image(output)) for place, output in outputs.pop(value, ())]
        writes += [(place, image(output)) for place, output in also]
        return Step(reads, body, writes)


def _without_sign(node: Node) -> Node:
    return _without_sign(node.args[0]) if node.op == "neg" else node
