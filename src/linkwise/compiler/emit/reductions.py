"""Reductions of columns as LLVM text, in an order that never changes.

``moments``: sixteen sums run side by side, entry k into sum k mod 16, and are added pairwise at the end: the order is
part of the definition, whatever the width of the machine's vectors. NaN counts for nothing. The squared deviations are
taken from the mean in a second pass. An extreme comes with the first place where it was found.
``run(first, count, arguments)``; the arguments are addresses: the columns, the leaves that this block gives (count,
mean, squared deviations), and the running extremes (smallest, its index, largest, its index), each a row per column.
Indices are exact whole numbers in doubles, up to 2^53.

``classes``: how many values fall into each class, which is the upper bits of a double. ``run(0, count, [columns,
tables])``: a table of counts (uint32) for every column; NaN counts for nothing.
"""

from __future__ import annotations

from linkwise.compiler.emit.lanes import HEAD

LANES = 16
"""Sums that run side by side; columns have room for so many more entries than they hold, so that vectors may reach over
their end."""

_RUN = """
declare {R} @llvm.fma.v{lanes}f64({R}, {R}, {R})
{columns_text}
{head}
entry:
  %leaves.at = getelementptr i64, ptr %arguments, i64 1
  %extremes.at = getelementptr i64, ptr %arguments, i64 2
  %columns = load ptr, ptr %arguments
  %leaves = load ptr, ptr %leaves.at
  %extremes = load ptr, ptr %extremes.at
  %over = and i64 %count, {mask}
  %whole = icmp eq i64 %over, 0
  br label %column
column:
  %c = phi i64 [ 0, %entry ], [ %c1, %column.end ]
  %data.offset = mul i64 %c, {stride}
  %data = getelementptr double, ptr %columns, i64 %data.offset
  %leaf.offset = mul i64 %c, 3
  %leaf = getelementptr double, ptr %leaves, i64 %leaf.offset
  %extreme.offset = mul i64 %c, 4
  %extreme = getelementptr double, ptr %extremes, i64 %extreme.offset
  br i1 %whole, label %try, label %careful
try:
  %tried = call i1 @clean(i64 %first, i64 %count, ptr %data, ptr %leaf, ptr %extreme)
  br i1 %tried, label %column.end, label %careful
careful:
  %done = call i1 @masked(i64 %first, i64 %count, ptr %data, ptr %leaf, ptr %extreme)
  br label %column.end
column.end:
  %c1 = add i64 %c, 1
  %column.more = icmp slt i64 %c1, {columns}
  br i1 %column.more, label %column, label %end
end:
  ret void
}}
"""

# One column. "masked" leaves out what is not a number; "clean" is the same for columns of whole vectors of numbers, and
# gives up (false) when it meets something else.
_COLUMN = """
define internal i1 @{kind}(i64 %first, i64 %count, ptr %data, ptr %leaf, ptr %extreme) nounwind noinline {{
entry:
  %rounded = add i64 %count, {mask}
  %end = and i64 %rounded, -{lanes}
  %all = sitofp i64 %count to double
  br label %fill
fill: ; NaN up to a whole vector
  %f = phi i64 [ %count, %entry ], [ %f1, %fill.one ]
  %fill.more = icmp slt i64 %f, %end
  br i1 %fill.more, label %fill.one, label %sums
fill.one:
  %fill.at = getelementptr double, ptr %data, i64 %f
  store double 0x7FF8000000000000, ptr %fill.at
  %f1 = add i64 %f, 1
  br label %fill

sums:
  %i = phi i64 [ 0, %fill ], [ %i1, %sums.one ]
  %sum = phi {R} [ zeroinitializer, %fill ], [ %sum1, %sums.one ]
  %number = phi {R} [ zeroinitializer, %fill ], [ %number1, %sums.one ]
  %least = phi {R} [ splat (double 0x7FF0000000000000), %fill ], [ %least1, %sums.one ]
  %most = phi {R} [ splat (double 0xFFF0000000000000), %fill ], [ %most1, %sums.one ]
  %sums.more = icmp slt i64 %i, %end
  br i1 %sums.more, label %sums.one, label %sums.end
sums.one:
  %x.at = getelementptr double, ptr %data, i64 %i
  %x = load {R}, ptr %x.at, align 8
{take}
  %less = fcmp olt {R} %x, %least
  %least1 = select {F} %less, {R} %x, {R} %least
  %greater = fcmp ogt {R} %x, %most
  %most1 = select {F} %greater, {R} %x, {R} %most
  %i1 = add i64 %i, {lanes}
  br label %sums
sums.end:
{combined_sums}
{judge}
usable:
  %some = fcmp ogt double {number}, 0.0
  %divisor = select i1 %some, double {number}, double 1.0
  %mean = fdiv double %sum.1, %divisor
  %mean.lane = insertelement {R} poison, double %mean, i32 0
  %means = shufflevector {R} %mean.lane, {R} poison, <{lanes} x i32> zeroinitializer
  br label %squares

squares:
  %j = phi i64 [ 0, %usable ], [ %j1, %squares.one ]
  %square = phi {R} [ zeroinitializer, %usable ], [ %square1, %squares.one ]
  %squares.more = icmp slt i64 %j, %end
  br i1 %squares.more, label %squares.one, label %squares.end
squares.one:
  %y.at = getelementptr double, ptr %data, i64 %j
  %y = load {R}, ptr %y.at, align 8
  %away = fsub {R} %y, %means
{measure}
  %square1 = call {R} @llvm.fma.v{lanes}f64({R} {distance}, {R} {distance}, {R} %square)
  %j1 = add i64 %j, {lanes}
  br label %squares
squares.end:
{combined_squares}
  store double {number}, ptr %leaf
  %leaf.mean = getelementptr double, ptr %leaf, i64 1
  store double %mean, ptr %leaf.mean
  %leaf.squares = getelementptr double, ptr %leaf, i64 2
  store double %square.1, ptr %leaf.squares
{searches}
  ret i1 true
}}
"""

_VARIANTS = {
    "clean": {
        "take": """
  %sum1 = fadd {R} %sum, %x
  %number1 = fadd {R} zeroinitializer, zeroinitializer""",
        "judge": """
  %spoiled = fcmp uno double %sum.1, %sum.1
  br i1 %spoiled, label %refuse, label %usable
refuse:
  ret i1 false""",
        "number": "%all",
        "measure": "",
        "distance": "%away",
    },
    "masked": {
        "take": """
  %valid = fcmp ord {R} %x, %x
  %added = select {F} %valid, {R} %x, {R} zeroinitializer
  %one = select {F} %valid, {R} splat (double 1.0), {R} zeroinitializer
  %sum1 = fadd {R} %sum, %added
  %number1 = fadd {R} %number, %one""",
        "judge": "  br label %usable",
        "number": "%number.1",
        "measure": """
  %counts = fcmp ord {R} %y, %y
  %distance = select {F} %counts, {R} %away, {R} zeroinitializer""",
        "distance": "%distance",
    },
}

# Where the block has a better extreme than all before it, its first place is looked for.
_SEARCH = """
  %{name}.at = getelementptr double, ptr %extreme, i64 {k}
  %{name}.known = load double, ptr %{name}.at
  %{name}.better = fcmp {relation} double %{name}.1, %{name}.known
  br i1 %{name}.better, label %{name}.look, label %{name}.end
{name}.look:
  br label %{name}.search
{name}.search:
  %{name}.s = phi i64 [ 0, %{name}.look ], [ %{name}.s1, %{name}.search ]
  %{name}.here = getelementptr double, ptr %data, i64 %{name}.s
  %{name}.value = load double, ptr %{name}.here
  %{name}.same = fcmp oeq double %{name}.value, %{name}.1
  %{name}.s1 = add i64 %{name}.s, 1
  br i1 %{name}.same, label %{name}.found, label %{name}.search
{name}.found:
  %{name}.index = add i64 %first, %{name}.s
  %{name}.real = sitofp i64 %{name}.index to double
  store double %{name}.1, ptr %{name}.at
  %{name}.place = getelementptr double, ptr %{name}.at, i64 1
  store double %{name}.real, ptr %{name}.place
  br label %{name}.end
{name}.end:"""


def moments(columns: int, stride: int) -> str:
    """The text for so many columns, ``stride`` numbers apart. It overwrites what lies behind ``count``."""
    words = {"R": f"<{LANES} x double>", "F": f"<{LANES} x i1>", "lanes": LANES, "mask": LANES - 1}
    text = "".join(_column(kind, words) for kind in _VARIANTS)
    return _RUN.format(head=HEAD, columns=columns, stride=stride, columns_text=text, **words)


def _column(kind: str, words: dict) -> str:
    sums = (("sum", None), ("number", None), ("least", "olt"), ("most", "ogt"))
    searches = (("least", 0, "olt"), ("most", 2, "ogt"))
    return _COLUMN.format(
        kind=kind,
        combined_sums="\n".join(_pairwise(name, relation) for name, relation in sums),
        combined_squares=_pairwise("square", None),
        searches="".join(_SEARCH.format(name=name, k=k, relation=relation) for name, k, relation in searches),
        **{key: part.format(**words) for key, part in _VARIANTS[kind].items()},
        **words,
    )


def _pairwise(name: str, relation: str | None) -> str:
    """%name.1: the entries of %name added, or the better one taken, as a tree: 0 with 8, 1 with 9 …, then 0 with 4 …"""
    lines, width, vector = [], LANES, f"%{name}"
    while width > 1:
        half, kind, halved = width // 2, f"<{width} x double>", f"<{width // 2} x double>"
        parts = []
        for part, start in (("low", 0), ("high", half)):
            chosen = ", ".join(f"i32 {start + k}" for k in range(half))
            parts.append(f"%{name}.{part}{half}")
            lines.append(
                f"{parts[-1]} = shufflevector {kind} {vector}, {kind} poison, <{half} x i32> <{chosen}>"
            )
        low, high = parts
        vector = f"%{name}.of{half}"
        if relation is None:
            lines.append(f"{vector} = fadd {halved} {low}, {high}")
        else:
            lines.append(f"%{name}.if{half} = fcmp {relation} {halved} {high}, {low}")
            lines.append(f"{vector} = select <{half} x i1> %{name}.if{half}, {halved} {high}, {halved} {low}")
        width = half
    lines.append(f"%{name}.1 = extractelement <1 x double> {vector}, i32 0")
    return "\n".join(f"  {line}" for line in lines)


_CLASSES = """
{head}
entry:
  %tables.at = getelementptr i64, ptr %arguments, i64 1
  %columns = load ptr, ptr %arguments
  %tables = load ptr, ptr %tables.at
  br label %column
column:
  %c = phi i64 [ 0, %entry ], [ %c1, %column.end ]
  %data.offset = mul i64 %c, {stride}
  %data = getelementptr i64, ptr %columns, i64 %data.offset
  %table.offset = mul i64 %c, {classes}
  %table = getelementptr i32, ptr %tables, i64 %table.offset
  br label %values
values:
  %i = phi i64 [ 0, %column ], [ %i1, %value ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %value, label %column.end
value:
  %x.at = getelementptr i64, ptr %data, i64 %i
  %x = load i64, ptr %x.at
  %real = bitcast i64 %x to double
  %valid = fcmp ord double %real, %real
  %one = zext i1 %valid to i32
  %class = lshr i64 %x, {shift}
  %n.at = getelementptr i32, ptr %table, i64 %class
  %n = load i32, ptr %n.at
  %n1 = add i32 %n, %one
  store i32 %n1, ptr %n.at
  %i1 = add i64 %i, 1
  br label %values
column.end:
  %c1 = add i64 %c, 1
  %again = icmp slt i64 %c1, {columns}
  br i1 %again, label %column, label %done
done:
  ret void
}}
"""


def classes(columns: int, stride: int, bits: int) -> str:
    """The text for so many columns, ``stride`` numbers apart, and classes of ``bits`` bits."""
    return _CLASSES.format(head=HEAD, columns=columns, stride=stride, classes=1 << bits, shift=64 - bits)
