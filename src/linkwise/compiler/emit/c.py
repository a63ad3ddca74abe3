"""Self-contained C99: one function, no allocation, no library but libm (if fused multiply-adds need it).

Every program can be written: straight-line code, sweeps over the links of long chains, whole
simulations. Memory that a function needs besides its arguments is one more argument, ``room``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch

from linkwise.arguments.flags import flag
from linkwise.compiler.emit import c_lanes, clike
from linkwise.compiler.emit.clike import Dialect, Printer
from linkwise.compiler.ir import program as programs
from linkwise.compiler.ir import sweeps
from linkwise.compiler.ir.loops import Array, Nest, Step, statements
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.shapes import CONSTANTS, ROOM, SEED, nest
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.errors import TraceError

_RESERVED = clike.WORDS | {
    *("memcpy", "printf", "scanf", "uint32_t", "uint64_t", "size_t", "NAN", "INFINITY", "NULL", "EOF"),
    *("complex", "linux", "unix", "k"),
}

_CONTRACTION = """\
/* Every rounding below is meant: the compiler must not fuse, reorder or drop any. gcc from 12 on fuses products and
 * sums where it vectorises, whatever fp-contract says. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ != 0)) \
    || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "do not compile this file with -ffast-math or a part of it: its results rely on IEEE arithmetic"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ != 0) && (__FLT_EVAL_METHOD__ != 16)
#error "do not compile this file for the x87: its results rely on IEEE arithmetic without excess digits (-mfpmath=sse)"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#if defined(__clang_major__) && (__clang_major__ >= 12)
#pragma clang fp reassociate(off)
#endif
#else
#pragma GCC optimize("fp-contract=off", "no-tree-vectorize", "no-tree-slp-vectorize", "no-tree-loop-vectorize")
#endif
"""

# Without branches, because the quadrant of an angle cannot be predicted.
_HELPERS = {
    "rounded": """\
/* x itself. gcc 12 makes -(a*b + c) an instruction whose zeros have another sign; it must not see what x is. */
static inline {real} {name}_rounded({real} x)
{{
#if !defined(__GNUC__) || defined(__clang__)
    return x;
#elif defined(__x86_64__) || (defined(__i386__) && defined(__SSE2__))
    __asm__("" : "+x"(x));
    return x;
#elif defined(__aarch64__) || (defined(__ARM_FP) && (__ARM_FP & {arm}))
    __asm__("" : "+w"(x));
    return x;
#elif defined(__riscv_flen) && (__riscv_flen >= {bits})
    __asm__("" : "+f"(x));
    return x;
#else
    __asm__("" : "+m"(x));
    return x;
#endif
}}
""",
    "hidden": """\
/* The bits themselves, of which the compiler knows nothing: else it would turn masks back into branches. */
static inline {word} {name}_hidden({word} bits)
{{
#if defined(__GNUC__)
    __asm__("" : "+r"(bits));
#endif
    return bits;
}}
""",
    "bit": """\
/* Bit k of the representation of x. */
static inline bool {name}_bit({real} x, unsigned int k)
{{
    {word} bits;
    (void)memcpy(&bits, &x, sizeof bits);
    return ((bits >> k) & 1u) != 0u;
}}
""",
    "pick": """\
/* a if bit k of t is set, else b. */
static inline {real} {name}_pick({real} t, unsigned int k, {real} a, {real} b)
{{
    {word} bits;
    {word} bits_a;
    {word} bits_b;
    (void)memcpy(&bits, &t, sizeof bits);
    (void)memcpy(&bits_a, &a, sizeof bits_a);
    (void)memcpy(&bits_b, &b, sizeof bits_b);
    bits = {hidden}(0u - ((bits >> k) & 1u));
    bits = (bits & bits_a) | (~bits & bits_b);
    (void)memcpy(&a, &bits, sizeof a);
    return a;
}}
""",
    "select": """\
/* a if the condition holds, else b. */
static inline {real} {name}_select(bool condition, {real} a, {real} b)
{{
    const {word} bits = {hidden}(0u - ({word})condition);
    {word} bits_a;
    {word} bits_b;
    (void)memcpy(&bits_a, &a, sizeof bits_a);
    (void)memcpy(&bits_b, &b, sizeof bits_b);
    bits_a = (bits & bits_a) | (~bits & bits_b);
    (void)memcpy(&a, &bits_a, sizeof a);
    return a;
}}
""",
    "flip": """\
/* -x if bit k of t is set, else x. */
static inline {real} {name}_flip({real} x, {real} t, unsigned int k)
{{
    {word} bits;
    {word} bits_x;
    (void)memcpy(&bits, &t, sizeof bits);
    (void)memcpy(&bits_x, &x, sizeof bits_x);
    bits_x ^= ((bits >> k) & 1u) << {sign};
    (void)memcpy(&x, &bits_x, sizeof x);
    return x;
}}
""",
}


_NO_BRANCHES = """\
/* Constant time: no branch depends on data. sqrt must not set errno; clang needs the option -fno-math-errno. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif
"""

_HARDWARE_FMA = """\
#if !(defined(__FP_FAST_FMA{suffix}) || defined(__FMA__) || defined(__aarch64__) || {arm} || {riscv})
#error "constant time needs a fused multiply-add of the processor; allow it (-mfma, -mfpu) or generate with --no-fma"
#endif
"""

_HARDWARE_DOUBLE = """\
#define LW_CONSTANT_TIME /* lw_fma.h uses no function of a library */
#if !(defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__) || {arm} || {riscv} \\
      || (defined(__ARM_FP) && (__ARM_FP & 8)) || defined(__SSE2__))
#error "constant time needs a fused multiply-add or doubles of the processor; allow them (-mfpu) or use --no-fma"
#endif
"""

STATUS = "fault"
"""An output of this name, one number that is 1 or 0, is what the function returns."""

AnyProgram = Program | SweptProgram | RolloutProgram | Nest


@dataclass(frozen=True)
class Package:
    """What a source that is one file of a package takes from the others."""

    headers: tuple[str, ...]
    """Headers to include, the one with the function's prototype among them."""
    fma: tuple[str, str]
    """Functions in place of ``fma`` and ``fmaf``."""


def source(
    program: AnyProgram,
    *,
    function_name: str | None = None,
    header: bool = False,
    main: bool = False,
    description: str = "",
    fma: bool = True,
    constant_time: bool = False,
    package: Package | None = None,
    lanes: int = 1,
) -> str:
    """The program as the text of a C file.

    ``header=True`` gives the header instead. ``main=True`` adds a main function that reads states from
    standard input and prints the outputs with all digits. ``fma=False`` gives a variant without fused
    multiply-adds for processors that have none; its results differ in the last bits. ``constant_time=True``
    writes selects as operations on bits, so that compilers make no branches of them, and refuses loops whose
    number of rounds depends on data. ``package`` makes it one file of a package. ``lanes``, a power of two, writes a
    function for that many states at once, which computes the same bits with vectors (GCC, Clang); it is quick where a
    register has room for them, 64 bytes with AVX-512, 32 with AVX2.
    """
    header, main, fma = flag("header", header), flag("main", main), flag("fma", fma)
    if lanes != 1 and (constant_time or package):
        raise ValueError("lanes: not with constant_time, and not in packages")
    function = CFunction(
        program if fma else unfused(program),
        clike.function_name(function_name, program.name, _RESERVED),
        description,
        constant_time=flag("constant_time", constant_time),
        package=package,
        lanes=lanes,
    )
    if header:
        return function.header()
    name, text = function.name, function.text()
    helpers = [helper for helper in _HELPERS if f"{name}_{helper}(" in text and lanes == 1]
    if constant_time and {"pick", "select"} & set(helpers):
        helpers.insert(0, "hidden")
    own = "".join(f'#include "{name}"\n' for name in (package.headers if package else ()))
    # options of the compiler come first: functions with other options are not inlined
    parts = [function.comment(), _CONTRACTION]
    if constant_time:
        parts.append(_NO_BRANCHES + (_hardware_fma(function.real, package is not None) if fma else ""))
    if lanes != 1:
        parts += [_includes("bool ", ["bit"], main), c_lanes.helpers(name, program.dtype, lanes)]
    else:
        parts.append(own + _includes(text, helpers, main))
    parts += [
        _HELPERS[helper].format(
            name=name,
            hidden=f"{name}_hidden" if constant_time else "",
            real=function.real,
            word="uint64_t" if function.real == "double" else "uint32_t",
            sign=63 if function.real == "double" else 31,
            bits=64 if function.real == "double" else 32,
            arm=8 if function.real == "double" else 4,
        )
        for helper in helpers
    ]
    parts.append(text)
    if main:
        parts.append(function.main())
    return "\n".join(parts)


@singledispatch
def unfused(program: AnyProgram) -> AnyProgram:
    """The same function without fused multiply-adds."""
    return programs.unfused(program)  # type: ignore[arg-type]


@unfused.register
def _(program: SweptProgram) -> SweptProgram:
    return sweeps.unfused(program)


@unfused.register
def _(program: RolloutProgram) -> RolloutProgram:
    return replace(program, step=programs.unfused(program.step))


@unfused.register
def _(program: Nest) -> Nest:
    if program.unfused is not None:
        return program.unfused()
    raise TraceError(f"{program.name}: code with loops of its own is written with fused multiply-adds only")


def _hardware_fma(real: str, packaged: bool) -> str:
    """A check of the compiler's options: a library's fused multiply-add has branches.

    Packages compute that of floats in doubles, without branches, where the processor has no instruction for it.
    """
    double = real == "double"
    return (_HARDWARE_DOUBLE if packaged and not double else _HARDWARE_FMA).format(
        suffix="" if double else "F",
        arm=f"(defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & {8 if double else 4}))",
        riscv=f"(defined(__riscv_flen) && __riscv_flen >= {64 if double else 32})",
    )


def _reserved(name: str) -> frozenset[str]:
    return frozenset({*_RESERVED, name, *(f"{name}_{helper}" for helper in _HELPERS)})


def _dialect(dtype: str, name: str, constant_time: bool, package: Package | None) -> Dialect:
    suffix = "" if dtype == "float64" else "f"
    real = clike.REAL[dtype]
    dialect = Dialect(
        real=real,
        negated_fma=f"-{name}_rounded({{0}})",
        condition="bool",
        suffix=suffix,
        infinity=f"({real})INFINITY",
        nan=f"({real})NAN",
        reserved=_reserved(name),
    )
    multiply_add = package.fma[bool(suffix)] if package else f"fma{suffix}"
    if constant_time:
        chosen = f"{name}_select({{0}}, {{1}}, {{2}})"
        dialect.operations.update({"select": chosen, "and": "{0} & {1}", "or": "{0} | {1}"})
    dialect.operations.update(
        fma=f"{multiply_add}({{0}}, {{1}}, {{2}})",
        sqrt=f"sqrt{suffix}({{0}})",
        abs=f"fabs{suffix}({{0}})",
        bit=f"{name}_bit({{0}}, {{bit}}u)",
        pick=f"{name}_pick({{0}}, {{bit}}u, {{1}}, {{2}})",
        flip=f"{name}_flip({{0}}, {{1}}, {{bit}}u)",
    )
    return dialect


def _includes(text: str, helpers: list[str], main: bool) -> str:
    names = ["math.h"]
    if "bool " in text or {"bit", "select"} & set(helpers):
        names.append("stdbool.h")
    if helpers:
        names += ["stdint.h", "string.h"]
    if main:
        names.append("stdio.h")
    return "".join(f"#include <{name}>\n" for name in sorted(names))


@dataclass(frozen=True)
class Argument:
    """One argument of the function: an array."""

    name: str
    array: Array
    shape: str  # for people
    lanes: int = 1

    @property
    def size(self) -> int | None:
        """Number of scalars; None where it depends on the call."""
        return None if isinstance(self.array.rows, str) else self.array.rows * self.array.columns * self.lanes

    @property
    def role(self) -> str:
        return {"input": "in ", "output": "out", "both": "i/o", "scratch": "tmp"}[self.array.kind]

    def declared(self, real: str, qualifier: str) -> str:
        """C declares an array argument by its length; an empty one, or one of any length, is a pointer."""
        constant = "const " if self.array.kind == "input" else ""
        if not self.size:
            return (
                f"{constant}{real} *{f'{qualifier} ' if self.size is None and qualifier else ''}{self.name}"
            )
        return f"{constant}{real} {self.name}[{' '.join(filter(None, (qualifier, str(self.size))))}]"


class CFunction:
    """The function of a program, and the texts around it."""

    def __init__(
        self,
        program: AnyProgram,
        name: str,
        description: str,
        *,
        constant_time: bool = False,
        package: Package | None = None,
        lanes: int = 1,
    ):
        self.program, self.name, self.description, self.lanes = program, name, description, lanes
        self.nest = nest(program)
        if constant_time:
            _refuse_loops_over_data(self.nest, name)
        if lanes != 1:
            self.printer: Printer = c_lanes.LanePrinter(self.nest, name, lanes, _reserved(name))
        else:
            self.printer = Printer(self.nest, _dialect(self.nest.dtype, name, constant_time, package))
        self.printer.skips = not constant_time
        self.real = clike.REAL[self.nest.dtype]
        shapes = _shapes(program)
        self.status = self._status()
        self.arguments = [
            Argument(
                self.printer.spelled.get(array.name, array.name),
                array,
                shapes[array.kind == "output"][array.title] + (f" x {lanes}" if lanes > 1 else ""),
                lanes,
            )
            for array in self.nest.arrays
            if array.kind != "constant" and (array.kind != "scratch" or array.columns)
            if self.status is None or self.printer.spelled.get(array.name) != self.status
        ]

    def _status(self) -> str | None:
        """How the array with the status is spelled; None: the function returns nothing."""
        if self.lanes != 1:  # every state has its own
            return None
        found = [
            a
            for a in self.nest.arrays
            if a.kind == "output" and (a.title, a.columns, a.rows) == (STATUS, 1, 1)
        ]
        return self.printer.spelled[found[0].name] if found else None

    def text(self) -> str:
        """Tables and the function."""
        statements = self.printer.statements()
        used = set(re.findall(r"\w+(?=\[)", "\n".join(statements)))  # whole words: dqdd_dqd[ is no use of qd
        unused = [f"    (void){a.name};" for a in self.arguments if a.name not in used]
        words = set(re.findall(r"\w+", "\n".join(statements)))
        unused += [f"    (void){number};" for number in self.nest.numbers if number not in words]
        tables = self.printer.tables()
        if self.status is not None:
            statements = [f"    {self.real} {self.status}[1];", *statements]
            zero = "0.0" if self.real == "double" else "0.0f"
            statements.append(f"    return ({self.status}[0] > {zero}) ? 1 : 0;")
        function = "\n".join([self.signature("restrict"), "{", *unused, *statements, "}", ""])
        return f"{tables}\n{function}" if tables else function

    def signature(self, qualifier: str = "") -> str:
        arguments = [argument.declared(self.real, qualifier) for argument in self.arguments]
        arguments += [f"long {number}" for number in self.nest.numbers]
        kind = "void" if self.status is None else "int"
        line = f"{kind} {self.name}({', '.join(arguments) or 'void'})"
        if len(line) <= 100:
            return line
        return f"{kind} {self.name}(\n    " + ",\n    ".join(arguments) + ")"

    def returned(self) -> list[str]:
        """What it returns, as a line for people."""
        return [] if self.status is None else [RETURNED]

    @property
    def ignored(self) -> str:
        """What stands before a call whose result is not used."""
        return "" if self.status is None else "(void)"

    def comment(self) -> str:
        arguments = self.arguments
        lines = [f"{self.name}: {self.description}" if self.description else self.name, ""]
        program, unit = self.program, ""
        if isinstance(program, RolloutProgram):
            program, unit = program.step, " of a step"
        if not isinstance(program, Nest):
            lines += [f"Cost{unit}: {program.operations}.", ""]
        if isinstance(program, ProcedureNest):
            numbers = sum(a.size or 0 for a in arguments if a.array.kind == "scratch")
            size = numbers * (8 if self.real == "double" else 4)
            lines += [f"Cost: {program.operations}.", ""]
            lines += [
                f"Memory that the caller gives (tmp), of any content: {numbers} numbers, {size} bytes.",
                "",
            ]
        lines += ["Arguments, arrays that do not overlap, matrices row by row:"]
        if self.lanes != 1:
            lines += [f"(each number of all {self.lanes} states, then the next number)"]
            lines += [f"Quick where registers have {self.lanes} numbers; else choose fewer lanes."]
        lines += [f"  {a.name:<12} {a.role}  {a.shape}" for a in arguments]
        lines += [
            f"  {number:<12} in   {NUMBERS.get(number, 'a whole number')}" for number in self.nest.numbers
        ]
        lines += [*self.returned(), ""]
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
        return clike.comment(lines, 100)

    def header(self) -> str:
        guard = f"{self.name.upper()}_H"
        opening = ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
        closing = ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
        start = [self.comment() + f"#ifndef {guard}", f"#define {guard}", ""]
        return "\n".join([*start, *opening, self.signature() + ";", *closing])

    # -- main ------------------------------------------------------------------------------------------------

    def main(self) -> str:
        """Reads one state after another and prints one line for each, so that it can be compared bit for bit."""
        if self.nest.numbers:
            return self._main_of_rollout()
        given = [a for a in self.arguments if a.array.kind == "input" and a.size]
        lines = [
            "/* Reads states from standard input, one input after another; prints a line of outputs for each. */",
            "int main(void)",
            "{",
            *self._declared(static=any(a.array.kind == "scratch" for a in self.arguments)),
            "    for (;;) {",
            *(line for a in given for line in self._scanned(a)),
            f"        {self.ignored}{self.name}({', '.join(a.name for a in self.arguments)});",
            *(line for a in self.arguments if a.array.kind == "output" for line in self._printed(a)),
            '        printf("\\n");',
            *([] if given else ["        return 0;"]),
            "    }",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _main_of_rollout(self) -> str:
        """One step a call: feeds and samples need room for one step alone."""
        fixed = [a for a in self.arguments if a.array.kind in ("both", "input") and a.size is not None]
        feeds = [a for a in self.arguments if a.array.kind == "input" and a.size is None]
        calls = ", ".join([*(a.name for a in self.arguments), *("1" for _ in self.nest.numbers)])
        lines = [
            "/* Reads the number of steps, what is carried and the parameters, then the feeds of each step; prints a",
            " * line of what is written in each step, and at the end what is carried. */",
            "int main(void)",
            "{",
            *self._declared(static=False),
            "    long number;",
            '    if (scanf("%ld", &number) != 1)',
            "        return 0;",
            "    {",
            *(line for a in fixed for line in self._scanned(a)),
            "    }",
            "    while (number-- > 0) {",
            *(line for a in feeds for line in self._scanned(a)),
            f"        {self.ignored}{self.name}({calls});",
            *(line for a in self.arguments if a.array.kind == "output" for line in self._printed(a)),
            '        printf("\\n");',
            "    }",
            "    {",
            *(line for a in fixed if a.array.kind == "both" for line in self._printed(a)),
            "    }",
            '    printf("\\n");',
            "    return 0;",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _declared(self, static: bool) -> list[str]:
        prefix = "static " if static else ""
        return [f"    {prefix}{self.real} {a.name}[{max(_at_once(a), 1)}];" for a in self.arguments]

    def _scanned(self, argument: Argument) -> list[str]:
        if not _at_once(argument):
            return []
        form = "%lf" if self.real == "double" else "%f"
        return [
            f"        for (int k = 0; k < {_at_once(argument)}; ++k)",
            f'            if (scanf("{form}", &{argument.name}[k]) != 1)',
            "                return 0;",
        ]

    def _printed(self, argument: Argument) -> list[str]:
        if not _at_once(argument):
            return []
        shown = "%.17g" if self.real == "double" else "%.9g"  # enough digits to be read back exactly
        return [
            f"        for (int k = 0; k < {_at_once(argument)}; ++k)",
            f'            printf("{shown} ", (double){argument.name}[k]);',
        ]


def _refuse_loops_over_data(found: Nest, name: str) -> None:
    steps = [s for s in statements(found.body) if isinstance(s, Step)]
    if any(isinstance(item, LoopRegion) for step in steps for item in step.body):
        raise TraceError(
            f"{name}: it repeats until a condition on its data holds, so its time depends on data; "
            "choose another algorithm or leave --constant-time out"
        )


RETURNED = "Returns 1 where a number that the function needs is not finite, else 0."

NUMBERS = {
    "steps": "how many steps to take",
    "every": "a sample is written in every step whose number is a multiple of this",
}


def _at_once(argument: Argument) -> int:
    """Scalars of one call of a main function, which takes one step at a time."""
    return argument.array.columns if argument.size is None else argument.size


def _shapes(program: AnyProgram) -> tuple[dict[str, str], dict[str, str]]:
    """What the comment says about the size of each array: (of inputs and memory, of outputs)."""
    if isinstance(program, Nest):
        sizes = {array.title: f"{array.rows} x {array.columns}" for array in program.arrays}
        shapes: Mapping[str, tuple[int, ...]] = program.shapes if isinstance(program, ProcedureNest) else {}
        return sizes, sizes | {key: " x ".join(map(str, shape)) or "1" for key, shape in shapes.items()}
    if not isinstance(program, RolloutProgram):
        given = {key: str(size) for key, size in program.inputs}
        if isinstance(program, SweptProgram):
            given |= {ROOM: f"{program.scratch_scalars(1)}, of any content; overwritten"}
            given |= dict.fromkeys((CONSTANTS, SEED), "")
        return given, {key: " x ".join(map(str, shape)) or "1" for key, shape in program.outputs}
    interface = program.interface
    given = {key: str(size) for key, size in {**interface.carried, **interface.parameters}.items()}
    for key, feed in interface.feeds.items():
        given[key] = f"(steps - 1) * {feed.advance} + {feed.size}: {feed.advance} further in every step"
    return given, {
        key: " x ".join(["samples", *map(str, shape)]) + ", samples = ceil(steps / every)"
        for key, shape in interface.written.items()
    }
