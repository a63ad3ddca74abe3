"""The self-test of a package: a C program that compares every function with reference states, bit by bit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from linkwise.compiler.emit import c
from linkwise.embedded import online_move
from linkwise.embedded.coded import Coded
from linkwise.embedded.reference import States


def program(prefix: str, functions: Sequence[tuple[Coded, States]]) -> str:
    """The text of check.c.

    Args:
        prefix: how names of the package begin.
        functions: each with its reference states.
    """
    word = "uint64_t" if functions[0][0].real == "double" else "uint32_t"
    parts = [_HEAD.format(prefix=prefix, word=word, real=functions[0][0].real)]
    parts += [_check(f, states, word) for f, states in functions]
    names = [f.name for f, _ in functions]
    if moves := online_move.functions_of([f for f, _ in functions]):
        parts.append(online_move.check(prefix, moves))
        names.append(f"{prefix}_{online_move.NAME}")
    calls = "\n".join(f"    wrong += check_{name}();" for name in names)
    total = sum(states.count for _, states in functions)
    parts.append(_MAIN.format(calls=calls, total=total))
    return "\n".join(parts)


_HEAD = """\
/* Compares the functions of this package with reference states, bit by bit. */

#include "{prefix}.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int differs(const char *what, int state, int element, {real} found, {word} expected)
{{
    {word} bits;
    {real} wanted;
    (void)memcpy(&bits, &found, sizeof bits);
    (void)memcpy(&wanted, &expected, sizeof wanted);
    if ((bits == expected) || (isnan(found) && isnan(wanted))) {{ /* NaN has many bits */
        return 0;
    }}
    (void)printf("%s: state %d: element %d is %.17g, expected %.17g\\n", what, state, element, (double)found,
                 (double)wanted);
    return 1;
}}
"""

_MAIN = """\
int main(void)
{{
    int wrong = 0;
{calls}
    if (wrong != 0) {{
        (void)printf("%d of the numbers of {total} states differ\\n", wrong);
        return 1;
    }}
    (void)printf("{total} states, all bits equal\\n");
    return 0;
}}
"""


def _check(f: Coded, states: States, word: str) -> str:
    given = {a.name: states.given[a.array.title] for a in f.arguments if a.array.kind in ("input", "both")}
    expected = {
        a.name: states.expected[a.array.title] for a in f.arguments if a.array.kind in ("both", "output")
    }
    status = f.function.status
    if status is not None:
        expected[status] = states.expected[c.STATUS]
    given = {name: values for name, values in given.items() if values.shape[1]}
    expected = {name: values for name, values in expected.items() if values.shape[1]}
    lines = [f"static int check_{f.name}(void)", "{"]
    for label, arrays in (("given", given), ("expected", expected)):
        for name, values in arrays.items():
            lines.append(_table(f"{label}_{name}", values, word))
    for a in f.arguments:
        lines.append(f"    static {f.real} {a.name}[{_length(a, states)}];")
    lines += [] if status is None else [f"    static {f.real} {status}[1];"]
    passed = [a.name for a in f.arguments]
    passed += [{"steps": f"{states.steps}L"}.get(number, "1L") for number in f.function.nest.numbers]
    lines += ["    int wrong = 0;", f"    for (int state = 0; state < {states.count}; ++state) {{"]
    lines += [f"        (void)memcpy({name}, given_{name}[state], sizeof {name});" for name in given]
    kept = "" if status is None else f"{status}[0] = ({f.real})"
    lines.append(f"        {kept}{f.name}({', '.join(passed)});")
    for name, values in expected.items():
        lines += [
            f"        for (int k = 0; k < {values.shape[1]}; ++k) {{",
            f'            wrong += differs("{f.name}: {name}", state, k, {name}[k], expected_{name}[state][k]);',
            "        }",
        ]
    return "\n".join([*lines, "    }", "    return wrong;", "}", ""])


def _length(argument: c.Argument, states: States) -> int:
    for arrays in (states.given, states.expected):
        if argument.array.title in arrays:
            return max(1, arrays[argument.array.title].shape[1])
    return max(1, argument.size or 0)


def _table(name: str, values: np.ndarray, word: str) -> str:
    """An array of words: what a float's bits are."""
    kind, digits = (np.uint64, 16) if word == "uint64_t" else (np.uint32, 8)
    rows = np.ascontiguousarray(values).view(kind)
    suffix = "ull" if digits == 16 else "u"
    text = f"    static const {word} {name}[{rows.shape[0]}][{rows.shape[1]}] = {{\n"
    for row in rows:
        listed = ", ".join(f"0x{int(v):0{digits}x}{suffix}" for v in row)
        text += textwrap.indent(textwrap.fill(f"{{{listed}}},", 110), "        ") + "\n"
    return text + "    };"
