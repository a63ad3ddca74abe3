"""The wrapper that CPython calls, as LLVM text; see ``linkwise.compiler.dispatch``.

Two functions with the same arguments try one after the other: ``call`` takes single states, ``call_batch``
arrays with one leading axis (beside single states, which then serve the whole batch); what is neither goes to
the fallback.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.compiler.dispatch import (
    AXES,
    CTYPES_ADDRESS,
    DATA,
    DENSE_AND_ALIGNED,
    DTYPE,
    FLAGS,
    SHAPE,
    TYPE,
    TYPE_NUMBER,
    DispatchTable,
)
from linkwise.compiler.emit.lanes import Lanes, Writer

_ARGUMENTS = "ptr %self, ptr %args, i64 %count, ptr %keywords"
STACK_LIMIT = 1 << 16  # bytes of scratch that a wrapper puts on the stack; larger batches go to the fallback


@dataclass(frozen=True)
class Interface:
    """What a kernel takes and returns, for one state."""

    inputs: Sequence[int]
    outputs: Sequence[tuple[int, ...]]
    dtype: str

    def scratch_bytes(self, width: int) -> int:
        scalars = sum(self.inputs) + sum(math.prod(shape) for shape in self.outputs)
        return scalars * width * Lanes(1, self.dtype).bytes


def wrapper(interface: Interface, batch_width: int) -> str:
    """The functions for a module that has ``run`` for single states; the batch's ``run`` is in the table."""
    lanes = Lanes(1, interface.dtype)
    text = _HAS_NAN.format(scalar=lanes.scalar, bytes=lanes.bytes) + _Single(interface).text()
    if interface.inputs and interface.scratch_bytes(batch_width) <= STACK_LIMIT:
        return text + _Batch(interface, batch_width).text()
    return text + (_NO_BATCH + _OTHER).format(arguments=_ARGUMENTS, **_offsets())


_OTHER = """
other:
  %fallback_at = getelementptr i8, ptr %table, i64 {fallback}
  %vectorcall_at = getelementptr i8, ptr %table, i64 {vectorcall}
  %hold_at = getelementptr i8, ptr %table, i64 {hold}
  %release_at = getelementptr i8, ptr %table, i64 {release}
  %fallback = load ptr, ptr %fallback_at
  %vectorcall = load ptr, ptr %vectorcall_at
  %hold = load ptr, ptr %hold_at
  %release = load ptr, ptr %release_at
  call void %hold(ptr %fallback) ; it may be exchanged while it runs
  %others = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %count, ptr %keywords)
  call void %release(ptr %fallback)
  ret ptr %others
}}
"""

_NO_BATCH = """
define internal ptr @call_batch({arguments}) nounwind {{
entry:
  %place = getelementptr i8, ptr %self, i64 {address}
  %table = load ptr, ptr %place
  br label %other
"""


_HAS_NAN = """
define internal i1 @has_nan(ptr %data, i64 %count) nounwind {{
entry:
  br label %eights
eights:
  %k = phi i64 [ 0, %entry ], [ %k8, %eight ]
  %seen = phi <8 x i1> [ zeroinitializer, %entry ], [ %seen8, %eight ]
  %k8 = add i64 %k, 8
  %fits = icmp sle i64 %k8, %count
  br i1 %fits, label %eight, label %ones
eight:
  %at8 = getelementptr {scalar}, ptr %data, i64 %k
  %x8 = load <8 x {scalar}>, ptr %at8, align {bytes}
  %nan8 = fcmp uno <8 x {scalar}> %x8, %x8
  %seen8 = or <8 x i1> %seen, %nan8
  br label %eights
ones:
  %j = phi i64 [ %k, %eights ], [ %j1, %one ]
  %found = phi i1 [ false, %eights ], [ %found1, %one ]
  %more = icmp slt i64 %j, %count
  br i1 %more, label %one, label %done
one:
  %at1 = getelementptr {scalar}, ptr %data, i64 %j
  %x1 = load {scalar}, ptr %at1
  %nan1 = fcmp uno {scalar} %x1, %x1
  %found1 = or i1 %found, %nan1
  %j1 = add i64 %j, 1
  br label %ones
done:
  %bits = bitcast <8 x i1> %seen to i8
  %any = icmp ne i8 %bits, 0
  %all = or i1 %any, %found
  ret i1 %all
}}
"""


def _offsets() -> dict[str, int]:
    fields = {
        name: getattr(DispatchTable, name).offset for name in (field[0] for field in DispatchTable._fields_)
    }
    return {**fields, "address": CTYPES_ADDRESS}


class _Wrapper:
    """What both functions have in common: looking at the arguments and making the results."""

    def __init__(self, interface: Interface):
        self.interface = interface
        self.lanes = Lanes(1, interface.dtype)
        self.writer = Writer()
        self.data: list[str] = []  # addresses of the inputs
        self.sizes = [math.prod(shape) for shape in interface.outputs]
        self.several = len(interface.outputs) != 1
        self.tuple: str | None = None
        self.result: str | None = None
        self._labels = 0

    def start(self) -> None:
        """Read the table and count the arguments."""
        writer, interface = self.writer, self.interface
        words = len(interface.outputs) + 2 * len(interface.inputs)
        writer.value(f"alloca [{max(words, 1)} x i64], align 16", "%arguments")
        self.prepare_stack()
        place = writer.value(f"getelementptr i8, ptr %self, i64 {CTYPES_ADDRESS}")
        writer.value(f"load ptr, ptr {place}", "%table")
        self.array_type = self.field("array_type", "ptr")
        self.dtype = self.field("dtype", "ptr")
        plain = writer.value("icmp eq ptr %keywords, null")
        complete = writer.value(f"icmp eq i64 %count, {len(interface.inputs)}")
        self.require(writer.value(f"and i1 {plain}, {complete}"))

    def prepare_stack(self) -> None:
        """Room on the stack, which must be taken in the first block."""

    def require(self, condition: str) -> None:
        """Go on if the condition holds, else leave the call to others."""
        self._labels += 1
        self.writer.effect(f"br i1 {condition}, label %step{self._labels}, label %other")
        self.writer.start_block(f"step{self._labels}")

    def field(self, name: str, kind: str) -> str:
        return self.member("%table", kind, getattr(DispatchTable, name).offset)

    def member(self, base: str, kind: str, offset: int) -> str:
        at = self.writer.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.writer.value(f"load {kind}, ptr {at}")

    def array(self, k: int) -> tuple[str, str]:
        """Argument k if it is a dense array of the right type; also its number of axes."""
        writer = self.writer
        argument = self.member("%args", "ptr", 8 * k)
        self.require(writer.value(f"icmp eq ptr {self.member(argument, 'ptr', TYPE)}, {self.array_type}"))
        dense = writer.value(f"and i32 {self.member(argument, 'i32', FLAGS)}, {DENSE_AND_ALIGNED}")
        is_dense = writer.value(f"icmp eq i32 {dense}, {DENSE_AND_ALIGNED}")
        is_dtype = writer.value(f"icmp eq ptr {self.member(argument, 'ptr', DTYPE)}, {self.dtype}")
        self.require(writer.value(f"and i1 {is_dense}, {is_dtype}"))
        return argument, self.member(argument, "i32", AXES)

    def results(self, shapes: Sequence[str | None], axes: Sequence[int]) -> list[str]:
        """New arrays (no array where a shape is None); the result is where their elements begin."""
        writer = self.writer
        new_array = self.field("new_array", "ptr")
        if self.several:
            self.tuple = self.call("new_tuple", "ptr", f"i64 {len(shapes)}")
            self.stop_if_null(self.tuple, "failed")
        targets = []
        for k, (shape, count) in enumerate(zip(shapes, axes, strict=True)):
            if shape is None:
                targets.append(f"%scalar{k}")
                continue
            array = writer.value(
                f"call ptr {new_array}(ptr {self.array_type}, i32 {count}, ptr {shape}, "
                f"i32 {TYPE_NUMBER[self.interface.dtype]}, ptr null, ptr null, i32 0, i32 0, ptr null)"
            )
            self.keep(k, array)
            targets.append(self.member(array, "ptr", DATA))
        return targets

    def keep(self, k: int, result: str) -> None:
        """Make a new object the k-th result."""
        self.stop_if_null(result, "partial" if self.several else "failed")
        if self.several:
            self.call("set_item", "i32", f"ptr {self.tuple}, i64 {k}, ptr {result}")
        else:
            self.result = result

    def call(self, function: str, kind: str, arguments: str) -> str:
        """Call a function of the table."""
        address = self.field(function, "ptr")
        if kind == "void":
            self.writer.effect(f"call void {address}({arguments})")
            return ""
        return self.writer.value(f"call {kind} {address}({arguments})")

    def stop_if_null(self, pointer: str, label: str) -> None:
        self._labels += 1
        missing = self.writer.value(f"icmp eq ptr {pointer}, null")
        self.writer.effect(f"br i1 {missing}, label %{label}, label %step{self._labels}")
        self.writer.start_block(f"step{self._labels}")

    def store_arguments(self, words: Sequence[str]) -> None:
        for k, word in enumerate(words):
            place = self.writer.value(f"getelementptr i64, ptr %arguments, i64 {k}")
            self.writer.effect(f"store {word}, ptr {place}")

    def refuse_nan(self, targets: Sequence[str], counts: Sequence[str]) -> None:
        """If the table says so, leave a call whose results have a NaN to others, who may know why."""
        writer = self.writer
        check = writer.value(f"icmp ne i64 {self.field('nan_is_for_others', 'i64')}, 0")
        writer.effect(f"br i1 {check}, label %look, label %fine")
        writer.start_block("look")
        found = "false"
        for target, count in zip(targets, counts, strict=True):
            one = writer.value(f"call i1 @has_nan(ptr {target}, i64 {count})")
            found = writer.value(f"or i1 {found}, {one}")
        writer.effect(f"br i1 {found}, label %spoiled, label %fine")
        writer.start_block("spoiled")
        made = self.tuple if self.several else self.result
        if made is not None:
            self.call("release", "void", f"ptr {made}")
        writer.effect("br label %other")
        writer.start_block("fine")

    def finish(self) -> None:
        """Return the results; an error leaves nothing behind."""
        writer = self.writer
        writer.effect(f"ret ptr {self.tuple if self.several else self.result}")
        if self.several:
            writer.start_block("partial")
            self.call("release", "void", f"ptr {self.tuple}")
            writer.effect("br label %failed")
        writer.start_block("failed")
        writer.effect("ret ptr null")


class _Single(_Wrapper):
    """Single states."""

    def prepare_stack(self) -> None:
        for k, shape in enumerate(self.interface.outputs):
            if not shape:
                self.writer.value(f"alloca {self.lanes.scalar}, align 8", f"%scalar{k}")

    def text(self) -> str:
        writer, interface = self.writer, self.interface
        self.start()
        for k, size in enumerate(interface.inputs):
            argument, axes = self.array(k)
            self.require(writer.value(f"icmp eq i32 {axes}, 1"))
            length = self.member(self.member(argument, "ptr", SHAPE), "i64", 0)
            self.require(writer.value(f"icmp eq i64 {length}, {size}"))
            self.data.append(self.member(argument, "ptr", DATA))
        shapes = [f"@shape{k}" if shape else None for k, shape in enumerate(interface.outputs)]
        targets = self.results(shapes, [len(shape) for shape in interface.outputs])
        self.store_arguments([f"ptr {p}" for p in (*targets, *self.data)] + ["i64 0"] * len(interface.inputs))
        writer.effect("call void @run(i64 0, i64 1, ptr %arguments, ptr null)")
        self.refuse_nan(targets, [str(size) for size in self.sizes])
        for k, shape in enumerate(interface.outputs):
            if not shape:
                self.keep(k, self.call("new_scalar", "ptr", f"ptr %scalar{k}, ptr {self.dtype}, ptr null"))
        self.finish()
        writer.start_block("other")
        others = writer.value(f"call ptr @call_batch({_ARGUMENTS})")
        writer.effect(f"ret ptr {others}")
        constants = [
            f"@shape{k} = private unnamed_addr constant [{len(shape)} x i64] "
            f"[{', '.join(f'i64 {length}' for length in shape)}]\n"
            for k, shape in enumerate(interface.outputs)
            if shape
        ]
        body = "\n".join(writer.lines)
        return f"{''.join(constants)}\ndefine ptr @call({_ARGUMENTS}) nounwind {{\nentry:\n{body}\n}}\n"


class _Batch(_Wrapper):
    """Arrays with one leading axis, all of the same length, and single states beside them."""

    def __init__(self, interface: Interface, width: int):
        super().__init__(interface)
        self.scratch_bytes = interface.scratch_bytes(width)

    def prepare_stack(self) -> None:
        self.writer.value(f"alloca [{max(self.scratch_bytes, 1)} x i8], align 64", "%scratch")
        for k, shape in enumerate(self.interface.outputs):
            self.writer.value(f"alloca [{1 + len(shape)} x i64], align 8", f"%shape{k}")

    def text(self) -> str:
        writer, interface = self.writer, self.interface
        self.start()
        states = "-1"
        strides = []
        for k, size in enumerate(interface.inputs):
            argument, axes = self.array(k)
            # One or two axes: minus one is an unsigned number below two.
            self.require(writer.value(f"icmp ult i32 {writer.value(f'sub i32 {axes}, 1')}, 2"))
            shape = self.member(argument, "ptr", SHAPE)
            is_batch = writer.value(f"icmp eq i32 {axes}, 2")
            first = self.member(shape, "i64", 0)
            last_at = writer.value(f"select i1 {is_batch}, i64 1, i64 0")
            last = writer.value(
                f"load i64, ptr {writer.value(f'getelementptr i64, ptr {shape}, i64 {last_at}')}"
            )
            fits = writer.value(f"icmp eq i64 {last}, {size}")
            is_new = writer.value(f"icmp eq i64 {states}, -1")
            wanted = writer.value(f"select i1 {is_new}, i64 {first}, i64 {states}")
            agrees = writer.value(f"icmp eq i64 {wanted}, {first}")
            is_single = writer.value(f"xor i1 {is_batch}, true")
            agrees = writer.value(f"or i1 {agrees}, {is_single}")
            self.require(writer.value(f"and i1 {fits}, {agrees}"))
            states = writer.value(f"select i1 {is_batch}, i64 {wanted}, i64 {states}")
            strides.append(writer.value(f"select i1 {is_batch}, i64 {size}, i64 0"))
            self.data.append(self.member(argument, "ptr", DATA))
        several = writer.value(f"icmp sgt i64 {states}, 1")
        small = writer.value(f"icmp sle i64 {states}, {self.field('batch_limit', 'i64')}")
        self.require(writer.value(f"and i1 {several}, {small}"))

        for k, shape in enumerate(interface.outputs):
            for axis, length in enumerate((states, *shape)):
                place = writer.value(f"getelementptr i64, ptr %shape{k}, i64 {axis}")
                writer.effect(f"store i64 {length}, ptr {place}")
        axes = [1 + len(shape) for shape in interface.outputs]
        targets = self.results([f"%shape{k}" for k in range(len(axes))], axes)
        self.store_arguments([f"ptr {p}" for p in (*targets, *self.data)] + [f"i64 {s}" for s in strides])
        thread = self.call("unlock", "ptr", "")
        self.call("batch_run", "void", f"i64 0, i64 {states}, ptr %arguments, ptr %scratch")
        self.call("lock", "void", f"ptr {thread}")
        self.refuse_nan(targets, [writer.value(f"mul i64 {states}, {size}") for size in self.sizes])
        self.finish()
        body = "\n".join(writer.lines)
        other = _OTHER.format(**_offsets())
        return f"\ndefine internal ptr @call_batch({_ARGUMENTS}) nounwind {{\nentry:\n{body}\n{other}"
