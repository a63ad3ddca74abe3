"""A C program that counts the instructions of every function of a package under QEMU.

On a Cortex-M it reads a timer. Started with ``-icount shift=10``, QEMU lets 1024 ns pass for every instruction and the
boards MPS2 count at 25 MHz, so a difference of ticks is a number of instructions; on a Cortex-R it reads the counter of
cycles. Elsewhere it only calls a function a
number of times, and an emulator that writes down what it executes counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.embedded.coded import Coded

_SCALES = {"q": 3.0, "q_d": 3.0, "start": 3.0, "end": 3.0, "estimated_q": 3.0, "tau": 20.0, "time": 2.0}
"""Half the range of inputs; of others 1."""


def program(prefix: str, functions: Sequence[Coded]) -> str:
    """The text of count.c.

    Args:
        prefix: how names of the package begin.
        functions: those of the package; loops take one step.
    """
    parts = [_HEAD.format(prefix=prefix, real=functions[0].real)]
    parts += [_call(f) for f in functions]
    names = ", ".join(f'"{f.name}"' for f in functions)
    parts.append(f"static const char *const names[] = {{{names}}};\n")
    calls = ", ".join(f"call_{f.name}" for f in functions)
    draws = ", ".join(f"draw_{f.name}" for f in functions)
    parts.append(
        f"static void (*const calls[])(void) = {{{calls}}};\nstatic void (*const draws[])(void) = {{{draws}}};\n"
    )
    parts.append(_MAIN)
    return "\n".join(parts)


def _call(f: Coded) -> str:
    """Functions that draw the inputs of one function, and call it."""
    lines = []
    for a in f.arguments:
        size = max(1, a.array.columns if a.size is None else a.size)
        lines.append(f"static {f.real} of_{f.name}_{a.name}[{size}];")
    lines += ["", f"static void draw_{f.name}(void)", "{"]
    for a in f.arguments:
        if a.array.kind in ("input", "both"):
            size = a.array.columns if a.size is None else a.size
            scale = _SCALES.get(a.array.title, 1.0)
            lines.append(
                f"    draw(of_{f.name}_{a.name}, {size}, {scale}{'f' if f.real == 'float' else ''});"
            )
    passed = [f"of_{f.name}_{a.name}" for a in f.arguments] + ["1L" for _ in f.function.nest.numbers]
    lines += [
        "}",
        "",
        f"static void call_{f.name}(void)",
        "{",
        f"    {f.function.ignored}{f.name}({', '.join(passed)});",
        "}",
        "",
    ]
    return "\n".join(lines)


_HEAD = """\
/* Counts the instructions of the functions of this package: make count-cortex-m7. */

#include "{prefix}.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef {real} number;

static uint32_t state = 1u;
static int special = 0; /* whether numbers that are no states of a robot are drawn too */

static uint32_t drawn(void)
{{
    state = (state * 1664525u) + 1013904223u;
    return state >> 8;
}}

static void draw(number *x, int count, number scale)
{{
    static const float others[] = {{0.0f, -0.0f, 1e-40f, 1e5f, -1e30f, 3e38f}};
    for (int k = 0; k < count; ++k) {{
        const uint32_t kind = (special != 0) ? (drawn() % 16u) : 16u;
        x[k] = scale * (((number)drawn() / (number)8388608) - (number)1);
        if (kind < 6u) {{
            x[k] = (number)others[kind];
        }} else if (kind == 6u) {{
            x[k] = (number)INFINITY;
        }} else if (kind == 7u) {{
            x[k] = (number)NAN;
        }} else {{
            /* a typical number */
        }}
    }}
}}
"""

_MAIN = """\
#ifndef COUNT
#define COUNT 200
#endif

static void nothing(void)
{
}

#if defined(__ARM_ARCH_PROFILE) && (__ARM_ARCH_PROFILE == 'M')
/* The first timer of the board, which has 32 bits: 25 MHz, 1024 ns for an instruction. */
#define NANOSECONDS 40
#define INSTRUCTION 1024

static uint32_t now(void)
{
    volatile uint32_t *const timer = (volatile uint32_t *)0x40000000u; /* control, value, reload */
    if (timer[0] == 0u) {
        timer[2] = 0xffffffffu;
        timer[1] = 0xffffffffu;
        timer[0] = 1u;
    }
    return 0xffffffffu - timer[1];
}
#elif defined(__ARM_ARCH_PROFILE) && (__ARM_ARCH_PROFILE == 'R')
/* The counter of cycles, one for an instruction. */
#define NANOSECONDS 1
#define INSTRUCTION 1

static uint32_t now(void)
{
    uint32_t cycles;
    __asm volatile("mcr p15, 0, %0, c9, c12, 0" : : "r"(1u));
    __asm volatile("mcr p15, 0, %0, c9, c12, 1" : : "r"(0x80000000u));
    __asm volatile("mrc p15, 0, %0, c9, c13, 0" : "=r"(cycles));
    return cycles;
}
#endif

#ifdef INSTRUCTION
static int64_t ticks(void (*call)(void))
{
    const uint32_t before = now();
    call();
    return (int64_t)(now() - before);
}

/* One line for each function: its name, the fewest and the most instructions. */
int main(void)
{
    special = SPECIAL;
    for (size_t f = 0; f < (sizeof calls / sizeof calls[0]); ++f) {
        unsigned long least = 0xffffffffu;
        unsigned long most = 0;
        draws[f]();
        (void)ticks(calls[f]); /* the emulator translates what it meets first */
        (void)ticks(nothing);
        for (int k = 0; k < COUNT; ++k) {
            draws[f]();
            const int64_t extra = ticks(calls[f]) - ticks(nothing);
            const unsigned long found = (unsigned long)(((extra * NANOSECONDS) + (INSTRUCTION / 2)) / INSTRUCTION);
            least = (found < least) ? found : least;
            most = (found > most) ? found : most;
        }
        (void)printf("%s %lu %lu\\n", names[f], least, most);
    }
    return 0;
}
#else
/* Calls the function with the number of the first argument as often as the second one says. */
int main(int count, char **words)
{
    const size_t f = (size_t)((count > 1) ? atoi(words[1]) : 0);
    const int times = (count > 2) ? atoi(words[2]) : 1;
    void (*const call)(void) = (f < (sizeof calls / sizeof calls[0])) ? calls[f] : nothing;
    special = SPECIAL;
    if (call != nothing) {
        draws[f]();
        (void)fprintf(stderr, "%s\\n", names[f]);
    }
    for (int k = 0; k < times; ++k) {
        call();
    }
    return 0;
}
#endif
"""
