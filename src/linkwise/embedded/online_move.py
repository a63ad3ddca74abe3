"""Online moves of all joints in C: one function that calls those of one joint, or computes joints as lanes of vectors.

Where the compiler may use AVX2 or AVX-512 the joints are lanes; everywhere else, as on microcontrollers, one joint is
computed after the other. Both return the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.compiler.emit import c, clike
from linkwise.embedded.coded import Coded
from linkwise.motion.online import kernels
from linkwise.motion.online.moves import MOST_ROUNDS

NAME = "online_move"
_GIVEN = (*kernels.STATE, *kernels.TARGET, *kernels.LIMITS)
_NUMBERS = 2 * kernels.PHASES  # of durations and of jerks of a joint
_VECTORS = (  # bytes of a register, and where there are such
    (64, "defined(__AVX512F__)"),
    (32, "defined(__AVX2__) && defined(__FMA__)"),
)


def functions_of(functions: Sequence[Coded]) -> tuple[Coded, Coded] | None:
    """The functions of one joint that moves are made of; None if a package has no function of all joints.

    Args:
        functions: those of the package.
    """
    named = {f.entry.name: f for f in functions if not f.constant_time}
    pair = (named.get("online_earliest"), named.get("online_plan"))
    return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])


def prototype(prefix: str) -> str:
    """What the header says of the function.

    Args:
        prefix: how names of the package begin.
    """
    lines = [
        f"{prefix}_{NAME}: jerk-limited move of all joints, which arrive together: the calls of "
        f"{prefix}_online_earliest and {prefix}_online_plan that it needs, with the same bits, joints side by side "
        "where the compiler may use AVX2 or AVX-512. Arguments are those of both, for all joints.",
        "",
        "  shortest     in   1: shortest duration [s]",
        "  duration     out  1: of the move [s]",
        f"  durations    out  N x {_NUMBERS}: a row for each joint, as {prefix}_online_state takes it",
        f"  jerks        out  N x {_NUMBERS}",
        "  weight       out  N",
        "",
        "Returns 1 where a joint has no such move, else 0.",
    ]
    return clike.comment(lines, 110, indent=" " * 20) + _signature(prefix) + ";\n"


def _signature(prefix: str) -> str:
    big, real = prefix.upper(), f"{prefix}_real"
    given = [f"const {real} {name}[{big}_N]" for name in _GIVEN]
    made = [f"{real} {name}[{big}_N * {_NUMBERS}]" for name in ("durations", "jerks")]
    arguments = [*given, f"const {real} shortest[1]", f"{real} duration[1]", *made, f"{real} weight[{big}_N]"]
    return f"int {prefix}_{NAME}(\n    " + ",\n    ".join(arguments) + ")"


def source(prefix: str, functions: tuple[Coded, Coded]) -> str:
    """The C file.

    Args:
        prefix: how names of the package begin.
        functions: of one joint.
    """
    real = functions[0].real
    choices = []
    for number, (width, where) in enumerate(_VECTORS):
        lanes = width // (8 if real == "double" else 4)
        text = "\n".join(_with_lanes(f, lanes) for f in functions)
        choices.append(
            f"#{'el' if number else ''}if defined(__GNUC__) && {where}\n#define LANES {lanes}\n{text}"
        )
    words = {
        "prefix": prefix,
        "big": prefix.upper(),
        "real": real,
        "numbers": _NUMBERS,
        "given": len(_GIVEN),
        "rounds": MOST_ROUNDS + 1,
        "names": ", ".join(_GIVEN),
        "rows": ", ".join(f"rows[{k}]" for k in range(len(_GIVEN))),
        "places": ", ".join(f"given[{k}] + joint" for k in range(len(_GIVEN))),
        "signature": _signature(prefix),
        "earliest": functions[0].name,
        "plan": functions[1].name,
        "suffix": "" if real == "double" else "f",
    }
    return (
        f"/* Online moves of all joints: joints are lanes of vectors where there are some. */\n\n"
        f'#include "{prefix}.h"\n\n' + "".join(choices) + "#endif\n" + _MOVE.format(**words)
    )


def _with_lanes(f: Coded, lanes: int) -> str:
    """The function for several joints at once, known in this file alone."""
    name = f"{f.name}_lanes"
    text = c.source(f.entry.program, function_name=name, fma=f.fma, lanes=lanes)
    return text.replace(f"\nvoid {name}(", f"\nstatic void {name}(")


_MOVE = """
#if defined(LANES)
#define GROUPS (({big}_N + LANES - 1) / LANES)

/* The inputs of all joints, as many at a time as a vector has lanes; the last joint fills the rest. */
static void packed(const {real} *const given[{given}], {real} rows[GROUPS][{given}][LANES])
{{
    for (int group = 0; group < GROUPS; ++group) {{
        for (int k = 0; k < {given}; ++k) {{
            for (int lane = 0; lane < LANES; ++lane) {{
                const int joint = (group * LANES) + lane;
                rows[group][k][lane] = given[k][(joint < {big}_N) ? joint : ({big}_N - 1)];
            }}
        }}
    }}
}}

/* The longest of the first durations that are possible for the joints, from T on. */
static {real} slowest({real} groups[GROUPS][{given}][LANES], {real} T)
{{
    {real} found = T;
    {real} from[LANES];
    {real} first[LANES];
    for (int lane = 0; lane < LANES; ++lane) {{
        from[lane] = T;
    }}
    for (int group = 0; group < GROUPS; ++group) {{
        {real} (*rows)[LANES] = groups[group];
        {earliest}_lanes({rows}, from, first);
        for (int lane = 0; lane < LANES; ++lane) {{
            found = (first[lane] > found) ? first[lane] : found;
        }}
    }}
    return found;
}}

/* The moves of all joints in the time T; whether one has none. */
static int planned({real} groups[GROUPS][{given}][LANES], {real} T, {real} *durations, {real} *jerks, {real} *weight)
{{
    int wrong = 0;
    {real} whole[LANES];
    for (int lane = 0; lane < LANES; ++lane) {{
        whole[lane] = T;
    }}
    for (int group = 0; group < GROUPS; ++group) {{
        {real} (*rows)[LANES] = groups[group];
        {real} times[{numbers} * LANES];
        {real} changes[{numbers} * LANES];
        {real} weights[LANES];
        {real} fault[LANES];
        {plan}_lanes({rows}, whole, times, changes, weights, fault);
        for (int lane = 0; (lane < LANES) && (((group * LANES) + lane) < {big}_N); ++lane) {{
            const int joint = (group * LANES) + lane;
            for (int k = 0; k < {numbers}; ++k) {{
                durations[(joint * {numbers}) + k] = times[(k * LANES) + lane];
                jerks[(joint * {numbers}) + k] = changes[(k * LANES) + lane];
            }}
            weight[joint] = weights[lane];
            wrong |= (fault[lane] > 0.0{suffix}) ? 1 : 0;
        }}
    }}
    return wrong;
}}
#else
static {real} slowest(const {real} *const given[{given}], {real} T)
{{
    {real} found = T;
    for (int joint = 0; joint < {big}_N; ++joint) {{
        {real} first[1];
        {earliest}({places}, &T, first);
        found = (first[0] > found) ? first[0] : found;
    }}
    return found;
}}

static int planned(const {real} *const given[{given}], {real} T, {real} *durations, {real} *jerks, {real} *weight)
{{
    int wrong = 0;
    for (int joint = 0; joint < {big}_N; ++joint) {{
        const int first = joint * {numbers};
        wrong |= {plan}({places}, &T, durations + first, jerks + first, weight + joint);
    }}
    return wrong;
}}
#endif

{signature}
{{
    const {real} *const given[{given}] = {{{names}}};
    {real} T = shortest[0];
    int wrong = 1;
#if defined(LANES)
    {real} all[GROUPS][{given}][LANES];
    packed(given, all);
#else
    const {real} *const *const all = given;
#endif
    /* A duration that one joint needs can be impossible for another one. */
    for (int turn = 0; turn < {rounds}; ++turn) {{
        const {real} before = T;
        T = slowest(all, T);
        wrong = planned(all, T, durations, jerks, weight);
        if ((wrong == 0) || ((turn > 0) && !(T > before))) {{
            break;
        }}
    }}
    duration[0] = T;
    return wrong;
}}
"""


def check(prefix: str, functions: tuple[Coded, Coded]) -> str:
    """A function of the self-test: moves of all joints are those of single joints, bit by bit.

    Args:
        prefix: how names of the package begin.
        functions: of one joint.
    """
    real = functions[0].real
    words = {
        "prefix": prefix,
        "big": prefix.upper(),
        "real": real,
        "suffix": "" if real == "double" else "f",
        "numbers": _NUMBERS,
        "given": len(_GIVEN),
        "rounds": MOST_ROUNDS + 1,
        "all": ", ".join(f"given[{k}]" for k in range(len(_GIVEN))),
        "places": ", ".join(f"&given[{k}][joint]" for k in range(len(_GIVEN))),
        "earliest": functions[0].name,
        "plan": functions[1].name,
    }
    return _CHECK.format(**words)


_CHECK = """\
static {real} drawn({real} low, {real} high)
{{
    static unsigned long state = 1u;
    state = ((state * 1103515245u) + 12345u) & 0x7fffffffu;
    return low + ((high - low) * ({real})state / 2147483648.0{suffix});
}}

static int check_{prefix}_online_move(void)
{{
    int wrong = 0;
    for (int turn = 0; turn < 50; ++turn) {{
        static {real} given[{given}][{big}_N];
        static {real} made[2][{big}_N * {numbers}];
        static {real} one[2][{numbers}];
        static {real} weight[{big}_N];
        {real} single[1];
        {real} duration[1];
        const {real} shortest[1] = {{drawn(0.0{suffix}, 1.0{suffix})}};
        {real} T = shortest[0];
        int fault = 1;
        for (int joint = 0; joint < {big}_N; ++joint) {{
            for (int k = 0; k < 6; ++k) {{
                given[k][joint] = drawn(-1.0{suffix}, 1.0{suffix});
            }}
            for (int k = 6; k < {given}; ++k) {{
                given[k][joint] = drawn(1.0{suffix}, 5.0{suffix});
            }}
            given[5][joint] *= (turn % 3 == 0) ? 1.0{suffix} : 0.0{suffix};
            given[7][joint] = -given[7][joint];
            given[9][joint] = -given[9][joint];
            given[10][joint] *= 10.0{suffix};
        }}
        const int found = {prefix}_online_move({all}, shortest, duration, made[0], made[1], weight);
        for (int round = 0; round < {rounds}; ++round) {{
            const {real} before = T;
            for (int joint = 0; joint < {big}_N; ++joint) {{
                {earliest}({places}, &before, single);
                T = (single[0] > T) ? single[0] : T;
            }}
            fault = 0;
            for (int joint = 0; joint < {big}_N; ++joint) {{
                fault |= {plan}({places}, &T, one[0], one[1], single);
            }}
            if ((fault == 0) || ((round > 0) && !(T > before))) {{
                break;
            }}
        }}
        wrong += (found != fault) || (memcmp(&T, duration, sizeof T) != 0);
        for (int joint = 0; joint < {big}_N; ++joint) {{
            (void){plan}({places}, &T, one[0], one[1], single);
            for (int k = 0; k < 2; ++k) {{
                wrong += (memcmp(one[k], &made[k][joint * {numbers}], sizeof one[k]) != 0);
            }}
            wrong += (memcmp(single, &weight[joint], sizeof single) != 0);
        }}
    }}
    if (wrong != 0) {{
        (void)printf("{prefix}_online_move: %d numbers differ from those of single joints\\n", wrong);
    }}
    return wrong;
}}
"""
