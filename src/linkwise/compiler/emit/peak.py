"""A loop of nothing but fused multiply-adds as LLVM text: how fast the machine can be."""

from __future__ import annotations

from linkwise.compiler.emit.lanes import Lanes


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
