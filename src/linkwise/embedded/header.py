"""The header of a package: the robot, sizes, prototypes; and the C++ wrapper beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np

from linkwise.compiler.emit import c, clike
from linkwise.core import foreign
from linkwise.embedded import online_move
from linkwise.embedded.coded import Coded
from linkwise.robot.robot import Robot

_LIMITS = {
    "lower": "lowest positions [rad or m]",
    "upper": "highest positions [rad or m]",
    "speed": "largest velocities [rad/s or m/s]",
    "effort": "largest torques or forces [N*m or N]",
}


def header(
    robot: Robot,
    prefix: str,
    functions: Sequence[Coded],
    stack: Mapping[str, int],
    measured_by: str,
    about: str,
) -> str:
    """The text of the C header.

    Args:
        robot: the robot.
        prefix: how all names begin.
        functions: those of the package.
        stack: measured bytes of stack by function.
        measured_by: the compiler that they were measured with.
        about: what the package is and how it was made, one line.
    """
    big, real = prefix.upper(), functions[0].real
    guard = f"{big}_H"
    parts = [
        clike.comment(
            [
                *_joints(robot, about),
                "",
                "Arrays do not overlap. Matrices are stored row by row.",
            ],
            110,
        )
        + f"#ifndef {guard}\n#define {guard}\n",
        f"/* Number of velocity coordinates (joints), and of position coordinates. */\n"
        f"#define {big}_N {robot.dof}\n#define {big}_NQ {robot.nq}\n",
    ]
    for f in functions:
        parts.append(_sizes(f, stack.get(f.name), measured_by))
    parts.append(f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\ntypedef {real} {prefix}_real;\n')
    if robot.nq == robot.dof and robot.dof:
        parts.append(
            f"/* Limits of the joints; a huge number stands for no limit ({prefix}_limits.c). */\n"
            + "".join(
                f"extern const {prefix}_real {prefix}_{name}[{big}_N]; /* {what} */\n"
                for name, what in _LIMITS.items()
            )
        )
    for f in functions:
        parts.append(f.comment() + f.function.signature() + ";\n")
        parts += [_structure(f, prefix)] if f.entry.settings else []
        for name, values in f.entry.tables.items():
            parts.append(f"extern const {prefix}_real {f.name}_{name}[{values.size}];\n")
    parts += [online_move.prototype(prefix)] if online_move.functions_of(functions) else []
    parts.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(parts)


def _joints(robot: Robot, about: str) -> list[str]:
    from linkwise.model.coordinates import coordinate_names

    velocities, positions = coordinate_names(robot)
    lines = [about, "", "Order of the coordinates:"]
    if list(velocities) == list(positions):
        kinds = {joint.name: joint for joint in robot.coordinate_joints}
        for k, name in enumerate(velocities):
            unit = "m, N" if name in kinds and not kinds[name].revolute else "rad, N*m"
            lines.append(f"  {k:>2}  {name} [{unit}]")
        return lines
    lines += [f"  q[{k}]  {name}" for k, name in enumerate(positions)]
    return lines + [f"  qd[{k}]  {name}" for k, name in enumerate(velocities)]


def _sizes(f: Coded, measured: int | None, measured_by: str) -> str:
    big = f.name.upper()
    said = "" if measured is None else f"; measured: {measured} ({measured_by})"
    text = f"/* {f.name}: no more bytes of stack than this are needed with any compiler{said}. */\n"
    text += f"#define {big}_STACK {f.stack_bound}\n"
    if f.room:
        text += f"/* Scalars of its argument room. */\n#define {big}_ROOM {f.room}\n"
    return text + "".join(f"#define {big}_{name} {value}\n" for name, value in f.entry.definitions.items())


def _structure(f: Coded, prefix: str) -> str:
    """The structure of a function's settings, its default values, and a function that takes it."""
    names = {a.array.title: a.name for a in f.arguments}
    fields = "".join(
        f"    {prefix}_real {names[title]}[{values.size}]; /* {f.entry.words.get(title, title)} */\n"
        for title, values in f.entry.settings.items()
    )
    others = [a for a in f.arguments if a.array.title not in f.entry.settings]
    declared = ", ".join(
        f"{'const ' if a.array.kind == 'input' else ''}{prefix}_real {a.name}[{a.size}]" for a in others
    )
    passed = ", ".join(
        f"settings->{a.name}" if a.array.title in f.entry.settings else a.name for a in f.arguments
    )
    kind, back = ("void", "") if f.function.status is None else ("int", "return ")
    return (
        f"/* Gains and limits of {f.name}, which may change from call to call. */\n"
        f"typedef struct {{\n{fields}}} {f.name}_settings;\n"
        f"/* Values to start from: {f.name}_settings s = {f.name}_defaults; */\n"
        f"extern const {f.name}_settings {f.name}_defaults;\n"
        f"/* The same function with its settings in one structure. */\n"
        f"static inline {kind} {f.name}_with(const {f.name}_settings *settings, {declared})\n"
        f"{{\n    {back}{f.name}({passed});\n}}\n"
    )


def defaults(f: Coded, prefix: str) -> str:
    """The default values of a function's settings as a C file."""
    names = {a.array.title: a.name for a in f.arguments}
    fields = ",\n".join(
        f"    .{names[title]} = {{\n{textwrap.indent(_numbers(f, values), ' ' * 8)}\n    }}"
        for title, values in f.entry.settings.items()
    )
    return (
        f'/* Default settings of {f.name}. */\n\n#include "{prefix}.h"\n\n'
        f"const {f.name}_settings {f.name}_defaults = {{\n{fields}\n}};\n"
    )


def _numbers(f: Coded, values: np.ndarray) -> str:
    """Numbers of an array in C; a huge one stands for an infinite one."""
    kind, suffix = (np.float32, "f") if f.real == "float" else (np.float64, "")
    numbers = np.clip(np.ravel(values), -1e30, 1e30).astype(kind)
    return textwrap.fill(", ".join(f"{number!s}{suffix}" for number in numbers), 100)


def tables(f: Coded, prefix: str) -> str:
    """Constant arrays of a function as a C file."""
    parts = [f'/* Numbers for {f.name}. */\n\n#include "{prefix}.h"\n']
    for name, values in f.entry.tables.items():
        listed = _numbers(f, values)
        parts.append(
            f"const {prefix}_real {f.name}_{name}[{values.size}] = {{\n{textwrap.indent(listed, '    ')}\n}};\n"
        )
    return "\n".join(parts)


def limits(robot: Robot, prefix: str, real: str) -> str:
    """The limits of the joints as a C file."""
    joints = robot.coordinate_joints
    values = {
        "lower": [joint.limits.lower for joint in joints],
        "upper": [joint.limits.upper for joint in joints],
        "speed": robot.velocity_limits,
        "effort": robot.effort_limits,
    }
    kind = np.float32 if real == "float" else np.float64
    suffix = "f" if real == "float" else ""
    parts = [f'/* Limits of the joints of {foreign.c_comment(robot.name)}. */\n\n#include "{prefix}.h"\n']
    for name, what in _LIMITS.items():
        numbers = np.clip(np.asarray(values[name], float), -1e30, 1e30).astype(kind)
        listed = ",\n    ".join(f"{number!s}{suffix}" for number in numbers)
        parts.append(
            f"/* {what[0].upper()}{what[1:]}. */\n"
            f"const {prefix}_real {prefix}_{name}[{prefix.upper()}_N] = {{\n    {listed}\n}};\n"
        )
    return "\n".join(parts)


# -- C++ --------------------------------------------------------------------------------------------------------------


def wrapper(prefix: str, functions: Sequence[Coded], about: str) -> str:
    """The C++17 header: every function over ``std::array``, with C++20 over ``std::span`` too."""
    guard = f"{prefix.upper()}_HPP"
    texts = [_over_arrays(prefix, f) for f in functions if not f.function.nest.numbers]
    spans = [_over_spans(prefix, f) for f in functions]
    parts = [
        f"// {foreign.line_comment(about)}\n"
        "// C++17: functions of std::array. C++20: the same of std::span, without copies.\n",
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <array>\n#include <cstddef>\n\n#if __cplusplus >= 202002L\n#include <span>\n#endif\n",
        f'#include "{prefix}.h"\n',
        f"namespace {prefix} {{\n",
        f"using real = {prefix}_real;\ninline constexpr std::size_t n = {prefix.upper()}_N;\n"
        f"inline constexpr std::size_t nq = {prefix.upper()}_NQ;\n",
        *texts,
        "#if __cplusplus >= 202002L",
        *spans,
        "#endif\n",
        f"}} // namespace {prefix}\n\n#endif\n",
    ]
    return "\n".join(parts)


def _short(prefix: str, f: Coded) -> str:
    short = f.name.removeprefix(f"{prefix}_")
    return f"{short}_" if short in clike.WORDS or short in ("n", "nq", "real") else short


def _over_arrays(prefix: str, f: Coded) -> str:
    short = _short(prefix, f)
    given = [a for a in f.arguments if a.array.kind == "input"]
    made = [a for a in f.arguments if a.array.kind in ("output", "scratch")]
    results = [a for a in made if a.array.kind == "output"]
    one = len(results) == 1
    kind = f"std::array<real, {results[0].size}>" if one else f"{short}_result"
    text = ""
    if not one:
        fields = "".join(f"    std::array<real, {a.size}> {a.name};\n" for a in results)
        text = f"struct {kind} {{\n{fields}}};\n\n"
    arguments = [f"const std::array<real, {a.size}> &{a.name}" for a in given]
    status = f.function.status
    if status is not None:
        text += f"// {c.RETURNED.replace('Returns', '*fault:')}\n"
        arguments.append("int *fault = nullptr")
    arguments = ", ".join(arguments)
    text += f"inline {kind} {short}({arguments}) noexcept\n{{\n"
    if one:
        text += f"    {kind} {results[0].name}{{}};\n"
    else:
        text += f"    {kind} found_{{}};\n"
    for a in made:
        if a.array.kind == "scratch":
            text += f"    std::array<real, {a.size}> {a.name}{{}};\n"
    passed = [
        f"found_.{a.name}.data()" if a in results and not one else f"{a.name}.data()" for a in f.arguments
    ]
    kept = "" if status is None else "const int status_ = "
    text += f"    {kept}{f.name}({', '.join(passed)});\n"
    text += "" if status is None else "    if (fault != nullptr) {\n        *fault = status_;\n    }\n"
    text += f"    return {results[0].name if one else 'found_'};\n}}\n"
    return text


def _over_spans(prefix: str, f: Coded) -> str:
    def span(a: c.Argument) -> str:
        constant = "const " if a.array.kind == "input" else ""
        size = "" if a.size is None else f", {a.size}"
        return f"std::span<{constant}real{size}> {a.name}"

    numbers = f.function.nest.numbers
    arguments = ", ".join([*map(span, f.arguments), *(f"long {number}" for number in numbers)])
    passed = ", ".join([*(f"{a.name}.data()" for a in f.arguments), *numbers])
    kind, back = ("void", "") if f.function.status is None else ("int", "return ")
    return f"inline {kind} {_short(prefix, f)}({arguments}) noexcept\n{{\n    {back}{f.name}({passed});\n}}\n"
