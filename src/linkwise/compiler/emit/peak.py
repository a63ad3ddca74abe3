"""Loops as LLVM text that show how fast the machine can be: of nothing but fused multiply-adds, and of any mix of
operations."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.compiler.emit.lanes import Lanes, Writer, function


def module(lanes: Lanes, chains: int) -> str:
    """``run(0, turns, null, scratch)``: ``chains`` independent sums of products, from and to the scratch room."""
    real, intrinsic = lanes.real, f"@llvm.fma.{lanes.suffix}"
    lines = [
        f"declare {real} {intrinsic}({real}, {real}, {real})",
        "define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind {",
        f"entry:\n  %x = load {real}, ptr %scratch, align 8\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %p{k} = phi {real} [ %x, %entry ], [ %q{k}, %loop ]" for k in range(chains)),
        *(f"  %q{k} = call {real} {intrinsic}({real} %p{k}, {real} %x, {real} %x)" for k in range(chains)),
        "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %count\n  br i1 %more, label %loop, label %end",
        "end:",
    ]
    for k in range(chains):
        lines.append(f"  %g{k} = getelementptr {real}, ptr %scratch, i64 {k}")
        lines.append(f"  store {real} %q{k}, ptr %g{k}, align 8")
    return "\n".join([*lines, "  ret void\n}\n"])


KINDS = ("fused", "product", "sum", "quotient", "logic", "shuffle", "load", "store")
MIXED_BYTES = 4096
_CHAINS = 12  # values in registers that operations take turns with


def mixed(lanes: Lanes, counts: Mapping[str, int]) -> str:
    """``run(0, turns, null, scratch)``: every turn has so many operations of each of ``KINDS``, none of which waits for
    those next to it: as fast as the units of the processor can be with this mix.

    ``scratch`` has ``MIXED_BYTES``, the first vector ones, the last one zeros: numbers stay normal.
    """
    real, integer = lanes.real, lanes.vector(f"i{lanes.bits}")
    writer = Writer()
    writer.value(f"load {real}, ptr %scratch, align 8", "%x")
    zeros = writer.value(f"getelementptr i8, ptr %scratch, i64 {MIXED_BYTES - 64}")
    writer.value(f"load {integer}, ptr {zeros}, align 8", "%b")
    writer.effect("br label %loop")
    writer.start_block("loop")
    writer.value("phi i64 [ 0, %entry ], [ %next, %loop ]", "%i")
    place = len(writer.lines)
    chains = [f"%p{k}" for k in range(_CHAINS)]
    mask = ", ".join(f"i32 {k + lanes.width * (k % 2)}" for k in range(lanes.width))
    for number, kind in enumerate(_spread_out(counts)):
        k = number % _CHAINS
        at = (
            writer.value(f"getelementptr i8, ptr %scratch, i64 {64 * (number % 32)}")
            if kind in ("load", "store")
            else ""
        )
        if kind == "load":
            writer.value(f"load volatile {real}, ptr {at}, align 16")
        elif kind == "store":
            writer.effect(f"store volatile {real} %x, ptr {at}, align 16")
        elif kind == "logic":
            bits = writer.value(f"bitcast {real} {chains[k]} to {integer}")
            either = writer.value(f"or {integer} {bits}, %b")
            chains[k] = writer.value(f"bitcast {integer} {either} to {real}")
        elif kind == "shuffle":
            chains[k] = writer.value(
                f"shufflevector {real} {chains[k]}, {real} %x, <{lanes.width} x i32> <{mask}>"
            )
        elif kind == "fused":
            operands = f"{real} {chains[k]}, {real} %x, {real} %x"
            chains[k] = writer.value(f"call {real} @llvm.fma.{lanes.suffix}({operands})")
        else:
            spelled = {"product": "fmul", "sum": "fadd", "quotient": "fdiv"}[kind]
            chains[k] = writer.value(f"{spelled} {real} {chains[k]}, %x")
    writer.lines[place:place] = [
        f"  %p{k} = phi {real} [ %x, %entry ], [ {last}, %loop ]" for k, last in enumerate(chains)
    ]
    writer.value("add i64 %i, 1", "%next")
    more = writer.value("icmp slt i64 %next, %count")
    writer.effect(f"br i1 {more}, label %loop, label %end")
    writer.start_block("end")
    for k, last in enumerate(chains):
        at = writer.value(f"getelementptr i8, ptr %scratch, i64 {64 * k}")
        writer.effect(f"store {real} {last}, ptr {at}, align 8")
    writer.effect("ret void")
    return f"declare {real} @llvm.fma.{lanes.suffix}({real}, {real}, {real})\n" + function(writer.lines)


def _spread_out(counts: Mapping[str, int]) -> list[str]:
    """The kinds, each as evenly distributed as can be."""
    places = [
        ((2 * j + 1) / (2 * count), KINDS.index(kind)) for kind, count in counts.items() for j in range(count)
    ]
    return [KINDS[kind] for _, kind in sorted(places)]
