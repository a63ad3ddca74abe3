"""The wrapper that CPython calls, as LLVM text; see ``linkwise.compiler.dispatch``."""

from __future__ import annotations

from collections.abc import Sequence

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
    Table,
)


def wrapper(inputs: Sequence[int], outputs: Sequence[tuple[int, ...]], dtype: str) -> str:
    """The function ``call``, for a module that has ``run`` for single states.

    ``inputs`` are the sizes of the inputs, ``outputs`` the shapes of the outputs.
    """
    scalar = "double" if dtype == "float64" else "float"
    lines: list[str] = []
    for k, shape in enumerate(outputs):
        lengths = ", ".join(f"i64 {length}" for length in shape)
        if shape:
            lines.append(f"@shape{k} = private unnamed_addr constant [{len(shape)} x i64] [{lengths}]")
    lines += [
        "define ptr @call(ptr %self, ptr %args, i64 %count, ptr %keywords) nounwind {",
        "entry:",
        f"  %arguments = alloca [{len(outputs) + 2 * len(inputs)} x i64], align 16",
        *[f"  %target{k} = alloca {scalar}, align 8" for k, shape in enumerate(outputs) if not shape],
        f"  %place = getelementptr i8, ptr %self, i64 {CTYPES_ADDRESS}",
        "  %table = load ptr, ptr %place",
        *_field("array_type", "ptr"),
        *_field("dtype", "ptr"),
        "  %plain = icmp eq ptr %keywords, null",
        f"  %complete = icmp eq i64 %count, {len(inputs)}",
        "  %usual = and i1 %plain, %complete",
        f"  br i1 %usual, label {'%argument0' if inputs else '%good'}, label %other",
    ]
    for k, size in enumerate(inputs):
        lines += _guard(k, size, f"%argument{k + 1}" if k + 1 < len(inputs) else "%good")
    lines += _results(inputs, outputs, dtype)
    lines += [
        "other:",
        *_field("fallback", "ptr"),
        *_field("vectorcall", "ptr"),
        "  %others = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %count, ptr %keywords)",
        "  ret ptr %others",
        "}",
        "",
    ]
    return "\n".join(lines)


def _field(name: str, kind: str) -> list[str]:
    """Read a field of the table."""
    offset = getattr(Table, name).offset
    return [f"  %{name}_at = getelementptr i8, ptr %table, i64 {offset}", f"  %{name} = load {kind}, ptr %{name}_at"]


def _guard(k: int, size: int, following: str) -> list[str]:
    """Whether argument k is what the arithmetic can read; the shape is looked at only if there is one axis."""

    def member(name: str, kind: str, offset: int) -> list[str]:
        return [
            f"  %{name}{k}_at = getelementptr i8, ptr %a{k}, i64 {offset}",
            f"  %{name}{k} = load {kind}, ptr %{name}{k}_at",
        ]

    return [
        f"argument{k}:",
        f"  %a{k}_at = getelementptr ptr, ptr %args, i64 {k}",
        f"  %a{k} = load ptr, ptr %a{k}_at",
        *member("type", "ptr", TYPE),
        f"  %is_array{k} = icmp eq ptr %type{k}, %array_type",
        f"  br i1 %is_array{k}, label %array{k}, label %other",
        f"array{k}:",
        *member("axes", "i32", AXES),
        *member("dtype", "ptr", DTYPE),
        *member("flags", "i32", FLAGS),
        f"  %dense{k} = and i32 %flags{k}, {DENSE_AND_ALIGNED}",
        f"  %is_dense{k} = icmp eq i32 %dense{k}, {DENSE_AND_ALIGNED}",
        f"  %is_dtype{k} = icmp eq ptr %dtype{k}, %dtype",
        f"  %is_flat{k} = icmp eq i32 %axes{k}, 1",
        f"  %both{k} = and i1 %is_dense{k}, %is_dtype{k}",
        f"  %fits{k} = and i1 %both{k}, %is_flat{k}",
        f"  br i1 %fits{k}, label %vector{k}, label %other",
        f"vector{k}:",
        *member("shape", "ptr", SHAPE),
        f"  %length{k} = load i64, ptr %shape{k}",
        f"  %is_long{k} = icmp eq i64 %length{k}, {size}",
        *member("data", "ptr", DATA),
        f"  br i1 %is_long{k}, label {following}, label %other",
    ]


def _results(inputs: Sequence[int], outputs: Sequence[tuple[int, ...]], dtype: str) -> list[str]:
    """Make the outputs, run the arithmetic and return them: an array, a scalar, or a tuple of those."""
    lines = ["good:", *_field("new_array", "ptr"), *_field("new_scalar", "ptr"), *_field("release", "ptr")]
    several = len(outputs) != 1
    if several:
        lines += [
            *_field("new_tuple", "ptr"),
            *_field("set_item", "ptr"),
            f"  %tuple = call ptr %new_tuple(i64 {len(outputs)})",
            "  %no_tuple = icmp eq ptr %tuple, null",
            "  br i1 %no_tuple, label %failed, label %out0",
        ]
    else:
        lines.append("  br label %out0")
    for k, shape in enumerate(outputs):
        lines.append(f"out{k}:")
        if shape:
            lines += [
                f"  %result{k} = call ptr %new_array(ptr %array_type, i32 {len(shape)}, ptr @shape{k}, "
                f"i32 {TYPE_NUMBER[dtype]}, ptr null, ptr null, i32 0, i32 0, ptr null)",
                f"  %missing{k} = icmp eq ptr %result{k}, null",
                f"  br i1 %missing{k}, label %{'partial' if several else 'failed'}, label %made{k}",
                f"made{k}:",
                *([f"  call i32 %set_item(ptr %tuple, i64 {k}, ptr %result{k})"] if several else []),
                f"  %target{k}_at = getelementptr i8, ptr %result{k}, i64 {DATA}",
                f"  %target{k} = load ptr, ptr %target{k}_at",
            ]
        lines.append(f"  br label %{f'out{k + 1}' if k + 1 < len(outputs) else 'compute'}")
    lines.append("compute:")
    words = [f"ptr %target{k}" for k in range(len(outputs))]
    words += [f"ptr %data{k}" for k in range(len(inputs))] + ["i64 0"] * len(inputs)
    for k, word in enumerate(words):
        lines.append(f"  %word{k} = getelementptr i64, ptr %arguments, i64 {k}")
        lines.append(f"  store {word}, ptr %word{k}")
    lines.append("  call void @run(i64 0, i64 1, ptr %arguments, ptr null)")
    for k, shape in enumerate(outputs):
        if shape:
            continue
        lines.append(f"  %result{k} = call ptr %new_scalar(ptr %target{k}, ptr %dtype, ptr null)")
        if several:
            lines += [
                f"  %missing{k} = icmp eq ptr %result{k}, null",
                f"  br i1 %missing{k}, label %partial, label %made{k}",
                f"made{k}:",
                f"  call i32 %set_item(ptr %tuple, i64 {k}, ptr %result{k})",
            ]
    lines.append("  ret ptr %tuple" if several else "  ret ptr %result0")
    if several:
        lines += ["partial:", "  call void %release(ptr %tuple)", "  br label %failed"]
    lines += ["failed:", "  ret ptr null"]
    return lines
