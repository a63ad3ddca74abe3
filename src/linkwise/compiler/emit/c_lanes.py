"""C that computes several states at once, one in each lane of a vector, with the same bits as for one state.

Vectors are those of GCC and Clang; conditions are the masks of AVX-512 where the compiler may use it, else vectors of
whole numbers. Square roots and fused multiply-adds have no operator: they are instructions of AVX where there are
some, else calls for every lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.emit.clike import REAL, Dialect, Printer
from linkwise.compiler.ir.graph import WORDS
from linkwise.compiler.ir.loops import Element, Nest, Step
from linkwise.compiler.ir.schedule import scheduled
from linkwise.errors import TraceError

MOST_BYTES = 64  # of a vector

_TYPES = """\
#if !defined(__GNUC__)
#error "vectors of several states need GCC or Clang"
#endif
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are arguments of inline functions only */
#if defined(__AVX2__)
#include <immintrin.h>
#endif
typedef {real} {name}_reals __attribute__((vector_size({bytes})));
typedef {real} {name}_memory __attribute__((vector_size({bytes}), aligned({size}), may_alias));
typedef {whole} {name}_wholes __attribute__((vector_size({bytes})));
typedef u{whole} {name}_words __attribute__((vector_size({bytes})));

static inline {name}_reals {name}_all({real} x)
{{
    return ({name}_reals){{{all}}};
}}

static inline {name}_reals {name}_at(const {real} *x)
{{
    return *(const {name}_memory *)x;
}}

static inline {name}_reals {name}_abs({name}_reals x)
{{
    return ({name}_reals)(({name}_wholes)x & {largest});
}}

/* -x. gcc 12 makes -(a*b + c) an instruction whose zeros have another sign. */
static inline {name}_reals {name}_negated({name}_reals x)
{{
    return ({name}_reals)(({name}_wholes)x ^ {smallest});
}}
"""

_MASKS = """\
typedef __mmask{lanes} {name}_mask;
#define {name}_compared(a, b, how) _mm512_cmp_p{s}_mask((__m512{d})(a), (__m512{d})(b), how)

static inline {name}_mask {name}_lt({name}_reals a, {name}_reals b)
{{
    return {name}_compared(a, b, _CMP_LT_OQ);
}}

static inline {name}_mask {name}_le({name}_reals a, {name}_reals b)
{{
    return {name}_compared(a, b, _CMP_LE_OQ);
}}

static inline {name}_mask {name}_eq({name}_reals a, {name}_reals b)
{{
    return {name}_compared(a, b, _CMP_EQ_OQ);
}}

static inline {name}_reals {name}_select({name}_mask c, {name}_reals a, {name}_reals b)
{{
    return ({name}_reals)_mm512_mask_blend_p{s}(c, (__m512{d})b, (__m512{d})a);
}}

static inline {name}_mask {name}_bit({name}_reals x, int k)
{{
    return _mm512_test_epi{bits}_mask((__m512i)x, _mm512_set1_epi{bits}(({any_whole})1 << k));
}}

static inline bool {name}_any({name}_mask c)
{{
    return c != 0;
}}
"""

_WHOLE_MASKS = """\
typedef {name}_wholes {name}_mask;

static inline {name}_mask {name}_lt({name}_reals a, {name}_reals b)
{{
    return ({name}_mask)(a < b);
}}

static inline {name}_mask {name}_le({name}_reals a, {name}_reals b)
{{
    return ({name}_mask)(a <= b);
}}

static inline {name}_mask {name}_eq({name}_reals a, {name}_reals b)
{{
    return ({name}_mask)(a == b);
}}

static inline {name}_reals {name}_select({name}_mask c, {name}_reals a, {name}_reals b)
{{
    return ({name}_reals)((c & ({name}_wholes)a) | (~c & ({name}_wholes)b));
}}

static inline {name}_mask {name}_bit({name}_reals x, int k)
{{
    return -({name}_mask)((({name}_words)x >> k) & 1);
}}

static inline bool {name}_any({name}_mask c)
{{
    return ({any}) != 0;
}}
"""

_LOGIC = """\
static inline {name}_mask {name}_and({name}_mask a, {name}_mask b)
{{
    return ({name}_mask)(a & b);
}}

static inline {name}_mask {name}_or({name}_mask a, {name}_mask b)
{{
    return ({name}_mask)(a | b);
}}

static inline {name}_mask {name}_not({name}_mask a)
{{
    return ({name}_mask)~a;
}}

static inline {name}_reals {name}_flip({name}_reals x, {name}_reals t, int k)
{{
    return ({name}_reals)(({name}_words)x ^ (((({name}_words)t >> k) & 1) << {sign}));
}}
"""

_FUNCTION = """\
static inline {name}_reals {name}_{function}({parameters})
{{
#if defined(__AVX512F__) && {whole_vector}
    return ({name}_reals)_mm512_{instruction}_p{s}({given});
#elif defined(__AVX2__) && defined(__FMA__) && {in_halves}
    union {{
        {name}_reals all;
        __m256{d} part[{pieces}];
    }} {unions};
{parts}
    return A.all;
#else
    return ({name}_reals){{{each}}};
#endif
}}
"""


@dataclass(frozen=True)
class LaneDialect(Dialect):
    """Constants are the same number in all lanes."""

    all: str = ""

    def number(self, value: float) -> str:
        """The constant in all lanes."""
        return f"{self.all}({super().number(value)})"


class LanePrinter(Printer):
    """The statements of one nest, for several states.

    Args:
        nest: without loops over links or time.
        name: of the function.
        lanes: number of states, a power of two.
    """

    def __init__(self, nest: Nest, name: str, lanes: Any, reserved: frozenset[str]):
        size = 8 if nest.dtype == "float64" else 4
        most = MOST_BYTES // size
        if not isinstance(lanes, int) or lanes not in (2, 4, 8, 16) or lanes > most:
            raise ValueError(f"lanes: expected a power of two, 2 to {most} in {nest.dtype}, got {lanes!r}")
        steps = [statement for statement in nest.body if isinstance(statement, Step)]
        nodes = [node for step in steps for node in scheduled(step.body)]
        if len(steps) != len(nest.body) or any(node.op in WORDS for node in nodes):
            raise TraceError(
                f"{name}: lanes are for programs without loops over links or time and without draws"
            )
        self.name, self.lanes = name, lanes
        super().__init__(nest, _dialect(name, nest.dtype, reserved))

    def element(self, place: Element) -> str:
        return f"{self.name}_at({self._address(place)})"

    def target(self, place: Element) -> str:
        return f"*({self.name}_memory *)({self._address(place)})"

    def left_where_not(self, condition: str) -> str:
        return f"if (!{self.name}_any({condition})) break;"

    def _address(self, place: Element) -> str:
        array = self.arrays[place.array]
        return f"{self.spelled.get(array.name, array.name)} + {self.whole(self.offset(array, place) * self.lanes)}"


def _dialect(name: str, dtype: str, reserved: frozenset[str]) -> LaneDialect:
    real = REAL[dtype]

    def call(function: str, *arguments: str) -> str:
        return f"{name}_{function}({', '.join(arguments)})"

    dialect = LaneDialect(
        real=f"{name}_reals",
        condition=f"{name}_mask",
        suffix="" if dtype == "float64" else "f",
        infinity=f"({real})INFINITY",
        nan=f"({real})NAN",
        negated_fma=call("negated", "{0}"),
        reserved=reserved,
        all=f"{name}_all",
    )
    two, three = ("{0}", "{1}"), ("{0}", "{1}", "{2}")
    calls = {key: call(key, *two) for key in ("lt", "le", "eq", "and", "or")}
    calls |= {key: call(key, *three) for key in ("fma", "select")}
    calls |= {key: call(key, "{0}") for key in ("not", "sqrt", "abs")}
    calls |= {
        "bit": call("bit", "{0}", "{bit}"),
        "pick": call("select", call("bit", "{0}", "{bit}"), "{1}", "{2}"),
        "flip": call("flip", *two, "{bit}"),
    }
    dialect.operations.update(calls)
    return dialect


def helpers(name: str, dtype: str, lanes: int) -> str:
    """Types and functions that the statements use."""
    double = dtype == "float64"
    size = 8 if double else 4
    bits = 8 * size
    numbers = range(lanes)
    words = {
        "name": name,
        "real": REAL[dtype],
        "whole": f"int{bits}_t",
        "any_whole": "long long" if double else "int",
        "size": size,
        "bits": bits,
        "lanes": lanes,
        "bytes": lanes * size,
        "all": ", ".join("x" for _ in numbers),
        "any": " | ".join(f"c[{k}]" for k in numbers),
        "largest": f"INT{bits}_MAX",
        "smallest": f"INT{bits}_MIN",
        "sign": bits - 1,
        "s": "d" if double else "s",
        "d": "d" if double else "",
    }
    masks = _WHOLE_MASKS.format(**words)
    if lanes * size == MOST_BYTES:
        masks = f"#if defined(__AVX512F__)\n{_MASKS.format(**words)}#else\n{masks}#endif\n"
    suffix = "" if double else "f"
    functions = [
        _function(words, "fma", "fmadd", "abc", lambda *given: f"fma{suffix}({', '.join(given)})"),
        _function(words, "sqrt", "sqrt", "a", lambda *given: f"sqrt{suffix}({', '.join(given)})"),
    ]
    text = "\n".join([_TYPES.format(**words), masks, _LOGIC.format(**words), *functions])
    return text.replace("static inline", "static inline __attribute__((unused, always_inline))")


def _function(
    words: Mapping[str, Any], function: str, instruction: str, arguments: str, one: Callable[..., str]
) -> str:
    """A function of vectors that has no operator."""
    name, lanes, width, d, s = words["name"], words["lanes"], words["bytes"], words["d"], words["s"]
    pieces = max(width // 32, 1)
    union = [f"{x.upper()}.part[{{k}}]" for x in arguments]
    calls = [
        f"    A.part[{k}] = _mm256_{instruction}_p{s}({', '.join(union).format(k=k)});" for k in range(pieces)
    ]
    each = ", ".join(one(*(f"{x}[{k}]" for x in arguments)) for k in range(lanes))
    return _FUNCTION.format(
        **words,
        function=function,
        instruction=instruction,
        parameters=", ".join(f"{name}_reals {x}" for x in arguments),
        given=", ".join(f"(__m512{d}){x}" for x in arguments),
        whole_vector=int(width == MOST_BYTES),
        in_halves=int(width % 32 == 0),
        unions=", ".join(f"{x.upper()} = {{{x}}}" for x in arguments),
        pieces=pieces,
        parts="\n".join(calls),
        each=each,
    )
