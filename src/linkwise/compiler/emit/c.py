"""Self-contained C99: one function, no allocation, no library but libm (if fused multiply-adds need it)."""

from __future__ import annotations

import re
import textwrap

from linkwise.compiler.emit import clike
from linkwise.compiler.emit.clike import Dialect, Printer
from linkwise.compiler.program import Program, unfused

# C's and C++'s own words (the header can be included there), and what the generated code uses.
_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while asm bool class complex delete false new true this template typename namespace operator private
    public protected catch throw try using virtual friend and or not xor export mutable explicit
    fma fmaf sqrt sqrtf fabs fabsf memcpy printf scanf main uint32_t uint64_t size_t NAN INFINITY NULL EOF
    linux unix k
"""
_RESERVED = frozenset(_WORDS.split())

_CONTRACTION = """\
/* Every rounding below is meant: the compiler must not fuse, reorder or drop any. */
#if defined(__FAST_MATH__)
#error "do not compile this file with -ffast-math: its results rely on IEEE arithmetic"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
"""

# Without branches, because the quadrant of an angle cannot be predicted.
_HELPERS = {
    "bit": """\
/* Bit k of the representation of x. */
static inline int {name}_bit({real} x, int k)
{{
    {word} bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)((bits >> k) & 1u);
}}
""",
    "pick": """\
/* a if bit k of t is set, else b. */
static inline {real} {name}_pick({real} t, int k, {real} a, {real} b)
{{
    {word} bits, bits_a, bits_b;
    memcpy(&bits, &t, sizeof bits);
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    bits = 0u - ((bits >> k) & 1u);
    bits = (bits & bits_a) | (~bits & bits_b);
    memcpy(&a, &bits, sizeof a);
    return a;
}}
""",
    "flip": """\
/* -x if bit k of t is set, else x. */
static inline {real} {name}_flip({real} x, {real} t, int k)
{{
    {word} bits, bits_x;
    memcpy(&bits, &t, sizeof bits);
    memcpy(&bits_x, &x, sizeof bits_x);
    bits_x ^= ((bits >> k) & 1u) << {sign};
    memcpy(&x, &bits_x, sizeof x);
    return x;
}}
""",
}


def source(
    program: Program,
    *,
    function_name: str | None = None,
    header: bool = False,
    main: bool = False,
    description: str = "",
    fma: bool = True,
) -> str:
    """The program as the text of a C file.

    ``header=True`` gives the header instead. ``main=True`` adds a main function that reads states from
    standard input and prints the outputs with all digits. ``fma=False`` gives a variant without fused
    multiply-adds for processors that have none; its results differ in the last bits.
    """
    name = clike.function_name(function_name, program.name, _RESERVED)
    if not fma:
        program = unfused(program)
    dialect = _dialect(program.dtype, name)
    printer = Printer(program, dialect)
    comment = _comment(program, name, printer, description)
    if header:
        return _header(program, name, printer, dialect, comment)
    statements = printer.statements()
    text = "\n".join(statements)
    helpers = [helper for helper in _HELPERS if f"{name}_{helper}(" in text]
    parts = [comment, _includes(helpers, main), _CONTRACTION]
    parts += [
        _HELPERS[helper].format(
            name=name,
            real=dialect.real,
            word="uint64_t" if dialect.real == "double" else "uint32_t",
            sign=63 if dialect.real == "double" else 31,
        )
        for helper in helpers
    ]
    used = set(re.findall(r"\w+(?=\[)", text))  # whole words: dqdd_dqd[ is no use of qd
    unused = [argument for argument in printer.arguments if argument not in used]
    body = [f"    (void){argument};" for argument in unused] + statements
    parts.append("\n".join([_signature(program, name, printer, dialect, "restrict"), "{", *body, "}", ""]))
    if main:
        parts.append(_main(program, name, printer, dialect))
    return "\n".join(parts)


def _dialect(dtype: str, name: str) -> Dialect:
    suffix = "" if dtype == "float64" else "f"
    real = "double" if dtype == "float64" else "float"
    dialect = Dialect(
        real=real,
        condition="int",
        suffix=suffix,
        infinity=f"({real})INFINITY",
        nan=f"({real})NAN",
        reserved=frozenset({*_RESERVED, name, *(f"{name}_{helper}" for helper in _HELPERS)}),
    )
    dialect.operations.update(
        fma=f"fma{suffix}({{0}}, {{1}}, {{2}})",
        sqrt=f"sqrt{suffix}({{0}})",
        abs=f"fabs{suffix}({{0}})",
        bit=f"{name}_bit({{0}}, {{bit}})",
        pick=f"{name}_pick({{0}}, {{bit}}, {{1}}, {{2}})",
        flip=f"{name}_flip({{0}}, {{1}}, {{bit}})",
    )
    return dialect


def _includes(helpers: list[str], main: bool) -> str:
    names = ["math.h"]
    if helpers:
        names += ["stdint.h", "string.h"]
    if main:
        names.append("stdio.h")
    return "".join(f"#include <{name}>\n" for name in sorted(names))


def _signature(program: Program, name: str, printer: Printer, dialect: Dialect, qualifier: str = "") -> str:
    """C declares an array argument by its length; an empty one is a pointer."""
    arguments = []
    for argument, size, constant in _arguments(program, printer):
        inside = " ".join(filter(None, (qualifier, str(size))))
        spelled = f"{argument}[{inside}]" if size else f"*{argument}"
        arguments.append(f"{'const ' if constant else ''}{dialect.real} {spelled}")
    line = f"void {name}({', '.join(arguments) or 'void'})"
    if len(line) <= 100:
        return line
    return f"void {name}(\n    " + ",\n    ".join(arguments) + ")"


def _arguments(program: Program, printer: Printer) -> list[tuple[str, int, bool]]:
    """(name, number of scalars, is an input) in the order of the call."""
    sizes = [size for _, size in program.inputs] + [len(nodes) for nodes in program.values]
    inputs = len(program.inputs)
    return [
        (name, size, k < inputs) for k, (name, size) in enumerate(zip(printer.arguments, sizes, strict=True))
    ]


def _comment(program: Program, name: str, printer: Printer, description: str) -> str:
    shapes = [f"{size}" for _, size in program.inputs]
    shapes += [" x ".join(map(str, shape)) or "1" for _, shape in program.outputs]
    lines = [f"{name}: {description}" if description else name, ""]
    lines += ["Cost: " + str(program.operations) + ".", ""]
    lines += ["Arguments, arrays that do not overlap, matrices row by row:"]
    for (argument, _, constant), shape in zip(_arguments(program, printer), shapes, strict=True):
        lines.append(f"  {argument:<12} {'in ' if constant else 'out'}  {shape}")
    lines.append("")
    if program.fused:
        lines.append(
            "Build: cc -std=c99 -O3 -march=native -c FILE.c. On a processor with fused multiply-add no "
            "library is needed; elsewhere link with -lm: slower, the same bits."
        )
    else:
        lines.append(
            "This variant uses no fused multiply-add: its results differ in the last bits from those of the "
            "variant that does. Build: cc -std=c99 -O3 -c FILE.c"
        )
    wrapped = [part for line in lines for part in (textwrap.wrap(line, 100) or [""])]
    safe = [line.replace("*/", "* /").replace("/*", "/ *").rstrip("\\") for line in wrapped]
    return "\n".join(["/* " + safe[0], *(f" * {line}".rstrip() for line in safe[1:]), " */", ""])


def _header(program: Program, name: str, printer: Printer, dialect: Dialect, comment: str) -> str:
    guard = f"{name.upper()}_H"
    return "\n".join(
        [
            comment + f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            _signature(program, name, printer, dialect) + ";",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def _main(program: Program, name: str, printer: Printer, dialect: Dialect) -> str:
    """Reads one state after another and prints one line for each, so that it can be compared bit for bit."""
    arguments = _arguments(program, printer)
    double = dialect.real == "double"
    scan = '"%lf"' if double else '"%f"'
    shown = "%.17g" if double else "%.9g"  # enough digits to be read back exactly
    lines = [
        "/* Reads states from standard input, one input after another; prints a line of outputs for each. */",
        "int main(void)",
        "{",
        *(f"    {dialect.real} {argument}[{max(size, 1)}];" for argument, size, _ in arguments),
        "    for (;;) {",
    ]
    for argument, size, constant in arguments:
        if constant and size:
            lines += [
                f"        for (int k = 0; k < {size}; ++k)",
                f"            if (scanf({scan}, &{argument}[k]) != 1)",
                "                return 0;",
            ]
    lines.append(f"        {name}({', '.join(argument for argument, _, _ in arguments)});")
    for argument, size, constant in arguments:
        if not constant and size:
            lines += [
                f"        for (int k = 0; k < {size}; ++k)",
                f'            printf("{shown} ", (double){argument}[k]);',
            ]
    lines.append('        printf("\\n");')
    if not any(size for _, size, constant in arguments if constant):
        lines.append("        return 0;")
    lines += ["    }", "}", ""]
    return "\n".join(lines)
