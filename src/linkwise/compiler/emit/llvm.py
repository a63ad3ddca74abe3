"""Loops and arithmetic as LLVM text, W states side by side in the lanes of vectors.

No fast-math flag appears anywhere and fused multiply-adds are those of the graph, so that every width gives
the same bits. Inputs are loaded just before their first use and outputs stored as soon as they are known: few
values stay alive. ``memory`` decides where scalars are stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from linkwise.compiler.emit import alike, together
from linkwise.compiler.emit.arithmetic import REGION, Arithmetic, holder
from linkwise.compiler.emit.hoist import held_elements
from linkwise.compiler.emit.lanes import Lanes, Writer, gathered
from linkwise.compiler.emit.memory import Memory, Output, spread
from linkwise.compiler.emit.spills import LONG, Spills, signs_elsewhere
from linkwise.compiler.emit.turns import copied, side_by_side
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import (
    Barrier,
    Change,
    Declare,
    Element,
    For,
    If,
    IfNegative,
    Join,
    Let,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    changed,
    statements,
)
from linkwise.compiler.ir.schedule import Body, LoopRegion

MANY_OUTPUTS = 800  # scalars of all outputs from which blocks are divided
STORES = 100  # of one block, then
LONG_BODY = 30_000  # items from which a body is divided: values that pass from block to block cost 1 to 8 % of its time
LONG_BLOCK = 1000  # lines of such a body after which another block begins


class Renderer(Arithmetic):
    """Writes the statements of a nest for one block of states.

    ``memory`` says where each array lies; ``now`` must have the names of the whole numbers of the call.
    """

    def __init__(
        self,
        nest: Nest,
        lanes: Lanes,
        writer: Writer,
        memory: Mapping[str, Memory],
    ):
        super().__init__(lanes, writer)
        self.nest, self.memory = nest, memory
        self.now: dict[Register | str, str] = {}  # what registers and whole numbers are called
        self.held: dict[Element, str] = {}  # of inputs that do not change
        self.hoisted: dict[Element, str] = {}  # what the loop around reads in every turn and does not change
        self.wholes: dict[Whole, str] = {}  # written in this block
        self._step = Step({})
        self._here: dict[Element, str] = {}  # what this step has loaded
        self._waiting: dict[Node, list[Output]] = defaultdict(list)  # node -> stores that need it
        self._ready: list[Output] = []
        self._many_outputs = sum(a.columns for a in nest.arrays if a.kind == "output") > MANY_OUTPUTS
        self._stores = self.divisions = 0
        self._stored: dict[Node, str] = {}  # what vectors have computed -> its address
        self._read_in: dict[Node, int] = {}  # -> the region in which it was read last
        self._spills: Spills | None = None  # of a long body
        self._signs_elsewhere = frozenset[Node]()  # changes of sign that other steps use
        self._short = False  # whether a loop is written whose values all stay in registers
        self._around: list[tuple[Spills | None, bool, dict[Element, str], dict[Element, str]]] = []  # loops

    def write(self, body: Sequence[Statement] | None = None) -> None:
        """All statements, or these."""
        for statement in self.nest.body if body is None else body:
            match statement:
                case Step():
                    self.step(statement)
                case For():
                    self.loop(statement)
                case If():
                    self.choice(statement, self.whole(statement.test))
                case IfNegative():
                    value, zero = self.now[statement.register], self.constant(0.0)
                    negative = self.writer.value(f"fcmp olt {self.lanes.real} {value}, {zero}")
                    self.choice(If(Whole("number", (1,)), statement.then), self._any_lane(negative))
                case Declare():
                    for register, start in statement.registers.items():
                        held = isinstance(start, Element)
                        self.now[register] = self.loaded(start) if held else self.constant(start)
                case Let() | Change():
                    self.now[statement.name] = self.whole(statement.value)
                    self.wholes = {}
                case Join():
                    self.join(statement)
                case Barrier():
                    pass  # one thread computes a state

    # -- whole numbers ---------------------------------------------------------------------------------------

    def whole(self, value: Whole) -> str:
        """A whole number as an operand of type i64; of a comparison, of type i1."""
        if value.op == "number":
            return str(value.args[0])
        if value.op == "name":
            return self.now[value.args[0]]
        if value not in self.wholes:
            self.wholes[value] = self._whole(value)
        return self.wholes[value]

    def _whole(self, value: Whole) -> str:
        writer = self.writer
        if value.op == "entry":
            table, index = value.args
            at = writer.value(f"getelementptr i64, ptr @{table}, i64 {self.whole(index)}")
            return writer.value(f"load i64, ptr {at}")
        args = [self.whole(a) for a in value.args]
        if value.op == "choose":
            return writer.value(f"select i1 {args[0]}, i64 {args[1]}, i64 {args[2]}")
        spelled = {"lt": "icmp slt", "eq": "icmp eq"}.get(value.op, value.op)
        return writer.value(f"{spelled} i64 {args[0]}, {args[1]}")

    # -- loops -----------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        """A loop that is known to have a turn is tested at its end, another one at its head."""
        if loop.side_by_side and self.lanes.width == 1 and side_by_side(self, together.exchanged(loop)):
            return
        if self.lanes.width > 1 and (blocks := together.blocks(loop)):
            self.write(blocks)
            return
        writer, number = self.writer, self.loops
        self.loops += 1
        self._load_before(loop)
        name, turns = f"for{number}", loop.turns
        around, self.hoisted = self.hoisted, self._hoisted(loop)
        first, stop, step = (self.whole(x) for x in (loop.first, loop.stop, loop.step))
        known = list(self.now)
        carried = [key for key in changed(loop.body) if key in self.now]
        before, initial = writer.block, [self.now[key] for key in carried]
        relation = "sgt" if loop.step.number is not None and loop.step.number < 0 else "slt"
        writer.effect(f"br label %{name}")
        writer.start_block(name)
        place = len(writer.lines)  # the phis come here when the next values have names
        phis = [f"%{name}.{k}" for k in range(len(carried))]
        self.now.update(zip(carried, phis, strict=True))
        self.now[loop.name] = f"%{name}.turn"
        if not turns:
            more = writer.value(f"icmp {relation} i64 %{name}.turn, {stop}")
            writer.effect(f"br i1 {more}, label %{name}.body, label %{name}.end")
            writer.start_block(f"{name}.body")
        held = self.enter()
        self.write(loop.body)
        self.leave(held, known)
        following = writer.value(f"add i64 %{name}.turn, {step}")
        last, after = writer.block, [self.now[key] for key in carried]
        if turns:
            more = writer.value(f"icmp {relation} i64 {following}, {stop}")
            writer.effect(f"br i1 {more}, label %{name}, label %{name}.end")
        else:
            writer.effect(f"br label %{name}")
            self.now.update(zip(carried, phis, strict=True))
        lines = [("i64", f"%{name}.turn", first, following)]
        lines += [(self._kind(key), *rest) for key, *rest in zip(carried, phis, initial, after, strict=True)]
        writer.lines[place:place] = [
            f"  {phi} = phi {kind} [ {start}, %{before} ], [ {next_}, %{last} ]"
            for kind, phi, start, next_ in lines
        ]
        writer.start_block(f"{name}.end")
        self.hoisted = around

    def _hoisted(self, loop: For) -> dict[Element, str]:
        """What turns of a loop over vectors read again and again, loaded before it."""
        self._here = {}
        places = held_elements(loop) if self.lanes.width > 1 else []
        return {place: self.loaded(place) for place in places if not self._lasts(place)}

    def _kind(self, key: Register | str) -> str:
        return "i64" if isinstance(key, str) else self.lanes.real

    def enter(self) -> dict[Element, str]:
        """A block that does not always run begins; what to go back to when it ends."""
        held, self.held, self.wholes = self.held, dict(self.held), {}
        self.writer.enter()
        return held

    def leave(self, held: dict[Element, str], known: Iterable[Register | str]) -> None:
        """Such a block ends: only values from before it exist on every path to here."""
        self.held, self.wholes = held, {}
        self.writer.scopes.pop()
        self.now = {key: self.now[key] for key in known}

    def _load_before(self, loop: For) -> None:
        """What a loop reads again and again and nothing writes is loaded once."""
        for statement in statements(loop.body):
            if isinstance(statement, Step):
                for place in statement.reads.values():
                    if isinstance(place, Element) and self._lasts(place):
                        self.loaded(place)

    def _lasts(self, place: Element) -> bool:
        """Whether an element is the same wherever it is read."""
        fixed = place.row is None and place.column.number is not None
        return fixed and self.nest.array(place.array).kind == "input"

    def choice(self, choice: If, test: str) -> None:
        """A choice by a condition that is the same for all lanes."""
        writer, number = self.writer, self.loops
        self.loops += 1
        before = writer.block
        sides = {f"then{number}": choice.then, f"else{number}": choice.otherwise}
        sides = {label: body for label, body in sides.items() if body}
        targets = [
            label if label in sides else f"join{number}" for label in (f"then{number}", f"else{number}")
        ]
        writer.effect(f"br i1 {test}, label %{targets[0]}, label %{targets[1]}")
        carried = [key for key in changed([choice]) if key in self.now]
        known, initial = list(self.now), [self.now[key] for key in carried]
        ends = [] if len(sides) == 2 else [(before, initial)]
        for label, body in sides.items():
            writer.start_block(label)
            held = self.enter()
            self.now.update(zip(carried, initial, strict=True))
            self.write(body)
            self.leave(held, known)
            writer.effect(f"br label %join{number}")
            ends.append((writer.block, [self.now[key] for key in carried]))
        writer.start_block(f"join{number}")
        for k, key in enumerate(carried):
            sources = ", ".join(f"[ {values[k]}, %{block} ]" for block, values in ends)
            self.now[key] = writer.value(f"phi {self._kind(key)} {sources}")

    # -- steps -----------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Outputs of fixed columns are stored as soon as they are known, everything else at the end."""
        if isinstance(step, together.Together):
            self._together(step)
            return
        self._step, self._here = step, {}
        if copied(self, step):
            return
        late = self._expect(step)
        self._store_ready()
        body = self._in_order(self._side_by_side(step))
        if len(body) >= LONG and self.writer.spills:
            self._signs_elsewhere = self.writer.once("signs", lambda: signs_elsewhere(self.nest))
            waiting = {id(output): output for outputs in self._waiting.values() for output in outputs}
            self._spills = Spills(self, body, waiting.values(), [node for _, node in late])
        for place, item in enumerate(body):
            for node in inputs_of(item):
                self.input(node)
            self.item(item)
            self._store_ready()
            self.advance(place, item)
            self.divide_long_block(len(body))
        values = [self.operand(node) for _, node in late]
        if self._spills is not None:
            self._spills.close()
            self._spills = None
        for (place, _), value in zip(late, values, strict=True):
            if isinstance(place, Register):
                self.now[place] = value
                continue
            if isinstance(place, Whole):
                self.now[place.args[0]] = self.first_lane("i64", value)
                self.wholes = {}
                continue
            memory = self.memory[place.array]
            if step.adds:
                held = memory.load(self, place)[place]
                value = self.writer.value(f"{memory.sum.format(R=self.lanes.real)} {held}, {value}")
            memory.store(self, place, value)

    def _together(self, step: together.Together) -> None:
        """All copies, operation by operation; what several of them read is loaded once."""
        self._here, around = {}, self.names
        names = [dict(around) for _ in step.copies]
        for item in step.copies[0].body:
            for copy, self.names in zip(step.copies, names, strict=True):
                self._step = copy
                self.item(item)
        stores: list[tuple[Element, str]] = []
        for copy, self.names in zip(step.copies, names, strict=True):
            self._step = copy
            stores += [
                (place, self.operand(node)) for place, node in copy.writes if isinstance(place, Element)
            ]
        self.names = around
        for place, value in stores:
            self.memory[place.array].store(self, place, value)

    def _side_by_side(self, step: Step) -> Body:
        """Compute functions of single inputs in vectors, where there is one state; the operations that are left."""
        if self.lanes.width > 1 or [*self.nest.body] != [step]:
            return step.body
        outside = [node for _, node in step.writes]
        found = alike.find(step.body, step.reads, outside, self.lanes.bits)
        for lockstep in found:
            self._lockstep(lockstep)
        if not found:
            return step.body
        for node in list(self._waiting):
            if node in self._stored:
                self.announce(node)
        self._store_ready()
        left = alike.left_over(step.body, found, outside)
        return [item for item in step.body if item in left]

    def _lockstep(self, lockstep: alike.Lockstep) -> None:
        """Operations on vectors; what others use is stored to the stack and read from there."""
        lanes, writer = Lanes(len(lockstep.inputs), self.lanes.dtype), self.writer
        vectors = Arithmetic(lanes, writer)
        given = gathered(writer, lanes, [self.read(value) for value in lockstep.inputs])
        for row in lockstep.operations:
            nodes = [node for node in row if node is not None]
            op, value = nodes[0].op, nodes[0].value
            operands = [
                given if argument.op == "input" else vectors.argument(op, argument)
                for argument in nodes[0].args
            ]
            name = vectors.written(op, value, operands)
            vectors.names.update(dict.fromkeys(nodes, name))
        for row in lockstep.used:
            place = f"%alike{len(self._stored)}"
            writer.first_lines.append(f"  {place} = alloca {lanes.real}, align {lanes.width * lanes.bytes}")
            nodes = [node for node in row if node is not None]
            writer.effect(f"store {lanes.real} {vectors.names[nodes[0]]}, ptr {place}")
            for lane, node in enumerate(row):
                if node is not None:
                    at = writer.value(f"getelementptr {lanes.scalar}, ptr {place}, i64 {lane}")
                    self._stored[node] = at
        writer.schedule_as_written()

    @property
    def reads(self) -> Mapping[Any, Place]:
        """Where the inputs of this step lie."""
        return self._step.reads

    def advance(self, place: int, item: Node | LoopRegion) -> None:
        if self._spills is not None and not self._short:
            self._spills.advance(place, item)

    def begin_loop(self, region: LoopRegion, order: Body) -> None:
        self._around.append((self._spills, self._short, self._here, self.held))
        if self._spills is not None and not self._short:
            inner = self._spills.enter(region, order)
            self._spills, self._short = inner or self._spills, inner is None
        self._here, self.held = dict(self._here), dict(self.held)  # what a loop loads does not exist after it

    def end_loop(self) -> None:
        inner = self._spills
        self._spills, self._short, self._here, self.held = self._around.pop()
        if inner is not None and inner is not self._spills:
            inner.close()

    def forgotten(self, value: Any) -> bool:
        """Forget what an input was called, if it can be loaded again as quickly as from the stack."""
        place = self._step.reads[value]
        assert isinstance(place, Element)
        changes = not self._step.apart and self.nest.array(place.array).kind in ("output", "both")
        if changes or not self.memory[place.array].quick(self, place):
            return False
        (self.held if self._lasts(place) else self._here).pop(place, None)
        return True

    def _operation(self, node: Node) -> None:
        if self._spills is not None and node.op == "neg" and node not in self._signs_elsewhere:
            self.announce(node)  # written where it is used
        else:
            super()._operation(node)

    def operand(self, node: Node) -> str:
        if node in self._stored:  # loaded again later instead of kept: a register costs more than a load
            region = self._operations // REGION
            if self._read_in.get(node) != region:
                self._read_in[node] = region
                self.names[node] = self.writer.value(f"load {self.lanes.scalar}, ptr {self._stored[node]}")
        elif self._spills is not None and node.op not in ("const", "word", "input"):
            if node.op == "neg" and node not in self._signs_elsewhere:
                return self._spills.negated(node)
            return self._spills.operand(holder(node)) or super().operand(node)
        return super().operand(node)

    def first_lane(self, kind: str, value: str) -> str:
        """What lane 0 holds."""
        if self.lanes.width == 1:
            return value
        return self.writer.value(f"extractelement {self.lanes.vector(kind)} {value}, i64 0")

    def join(self, join: Join) -> None:
        """Halves of vectors, then of the halves; the result goes to all lanes."""
        writer, scalar, vector = self.writer, self.lanes.scalar, self.now[join.register]
        width = self.lanes.width
        while width > 1:
            whole, half = self.lanes.vector(scalar, width), f"<{width // 2} x {scalar}>"
            parts: list[str] = []
            for start in (0, width // 2):
                chosen = ", ".join(f"i32 {start + k}" for k in range(width // 2))
                mask = f"<{width // 2} x i32> <{chosen}>"
                parts.append(writer.value(f"shufflevector {whole} {vector}, {whole} poison, {mask}"))
            width //= 2
            if join.how == "add":
                vector = writer.value(f"fadd {half} {parts[0]}, {parts[1]}")
                continue
            relation = "olt" if join.how == "least" else "ogt"
            better = writer.value(f"fcmp {relation} {half} {parts[1]}, {parts[0]}")
            vector = writer.value(f"select <{width} x i1> {better}, {half} {parts[1]}, {half} {parts[0]}")
        if self.lanes.width > 1:
            vector = spread(self, scalar, writer.value(f"extractelement <1 x {scalar}> {vector}, i32 0"))
        self.now[join.register] = vector

    def input(self, node: Node) -> str:
        return self.read(node.value)

    def read(self, value: Any) -> str:
        """The value of an input, by the value of its node."""
        if self._spills is not None and (name := self._spills.operand(value)):
            return name
        place = self._step.reads[value]
        if isinstance(place, Whole):
            return spread(self, "i64", self.whole(place))
        return self.now[place] if isinstance(place, Register) else self.loaded(place)

    def loaded(self, place: Element) -> str:
        """The value of an element; neighbours may come with it."""
        if place in self.hoisted:
            return self.hoisted[place]
        known = self.held if self._lasts(place) else self._here
        if place not in known:
            for found, value in self.memory[place.array].load(self, place).items():
                known.setdefault(found, value)
                if self._spills is not None:
                    self._spills.loaded(found, value)
        return known[place]

    def announce(self, node: Node) -> None:
        for output in self._waiting.pop(node, ()):
            output.missing -= 1
            if not output.missing:
                self._ready.append(output)

    def _expect(self, step: Step) -> list[tuple[Place, Node]]:
        """Register outputs to be stored when their values are known; gives those that are not stored that way."""
        late: list[tuple[Place, Node]] = []
        early: dict[str, list[tuple[Element, Node]]] = defaultdict(list)
        for place, node in step.writes:
            if step.adds or not isinstance(place, Element) or not self._stored_early(place):
                late.append((place, node))
            else:
                early[place.array].append((place, node))
        for array, writes in early.items():
            for output in self.memory[array].outputs(self, writes):
                needed = {holder(node) for node in output.nodes if node.op not in ("const", "input")}
                needed = [node for node in needed if node not in self.names]
                output.missing = len(needed)
                for node in needed:
                    self._waiting[node].append(output)
                if not needed:
                    self._ready.append(output)
        return late

    def _stored_early(self, place: Element) -> bool:
        if self._step.apart:
            return True
        return place.column.number is not None and self.nest.array(place.array).kind in ("output", "both")

    def _store_ready(self) -> None:
        for output in self._ready:
            before = len(self.writer.lines)
            output.store([self.operand(node) for node in output.nodes])
            if self._many_outputs:
                self._stores += sum(line.startswith("  store") for line in self.writer.lines[before:])
                if self._stores >= STORES:
                    self._divide()
        self._ready.clear()

    def divide_long_block(self, items: int) -> None:
        if items > LONG_BODY and self.writer.block_length > LONG_BLOCK:
            self._divide()

    def _divide(self) -> None:
        """Begin another basic block: after ``STORES`` stores, and in a long body after ``LONG_BLOCK`` lines.

        LLVM's scheduler compares all stores of a block with each other: with thousands of them it takes ten times
        longer than everything else. Where it moves addresses to their uses it numbers all instructions of the block
        again and again. The branch is never taken; one without a condition would be removed again.
        """
        self._stores = 0
        self.divisions += 1
        never = self.writer.value("icmp slt i64 %count, 0")
        self.writer.effect(f"br i1 {never}, label %done, label %further{self.divisions}")
        self.writer.start_block(f"further{self.divisions}")


def inputs_of(item: Node | LoopRegion) -> Iterator[Node]:
    """The inputs that must be loaded before an item: all at once for a loop."""
    if not isinstance(item, LoopRegion):
        yield from (a for a in item.args if a.op == "input")
        return
    loop = item.loop
    yield from (node for node in (*loop.initial, loop.active, *loop.following) if node.op == "input")
    for inner in item.body:
        yield from inputs_of(inner)
