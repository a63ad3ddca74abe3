"""The README of a package: how to build, check, run and connect it."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.core import foreign
from linkwise.embedded import example, online_move
from linkwise.embedded.coded import Coded
from linkwise.embedded.entry import Options
from linkwise.robot.robot import Robot


def text(robot: Robot, prefix: str, functions: Sequence[Coded], about: str, options: Options) -> str:
    """The text of README.md.

    Args:
        robot: the robot.
        prefix: how names of the package begin.
        functions: those of the package.
        about: what the package is, one line.
        options: choices that it was made with.
    """
    law = example.controller(functions)
    joints = ", ".join(_plain(joint.name) for joint in robot.coordinate_joints)
    parts = [
        f"# {prefix}\n\n{_plain(about)}.\n\nJoints, in this order: {joints}.\n",
        "## Start\n\n```sh\nmake help       # everything that can be made\nmake check      # compares every function "
        "with reference states, bit by bit\nmake example    # builds and runs example.c\n```\n\n"
        "It needs make and a C compiler. A goal that needs another tool names it.\n",
        _cycle(law) if law is not None and robot.nq == robot.dof else "",
        "## Functions\n\n" + "".join(_function(f) for f in functions) + _moves(prefix, functions),
        _settings(law) if law is not None and law.entry.settings else "",
        _building(prefix),
    ]
    return "\n".join(filter(None, parts))


def _plain(words: str) -> str:
    """Text of others in Markdown."""
    return foreign.rust_comment(words)


def _function(f: Coded) -> str:
    arguments = ", ".join(a.name for a in f.arguments)
    return f"- `{f.name}({arguments})`: {_plain(f.entry.summary)}.\n"


def _moves(prefix: str, functions: Sequence[Coded]) -> str:
    if online_move.functions_of(functions) is None:
        return ""
    return (
        f"- `{prefix}_{online_move.NAME}(...)`: the move of all joints, which arrive together, computed side by "
        "side where the compiler may use AVX2 or AVX-512 (`make` compiles for this processor; with other tools say "
        "`-O2 -march=native`), else one after the other.\n"
    )


def _cycle(law: Coded) -> str:
    return f"""\
## The cycle

`example.c` has the whole cycle around `{law.name}`: readings are taken and checked (numbers, speeds, ranges), the
reference of this moment is computed, the law gives torques, limits are applied, and from the first fault on the safe
stop is called in place of the law, until the brakes close. `read_joints`, `send_torques` and `close_brakes` stand for
your drives: replace them, and call `cycle` once in every period.

A package with `trajectory`, `safe_stop` and `forward_dynamics` beside the law has all parts. Without them the example
holds a target, gives no torques after a fault, and follows the reference in place of a simulated arm.

```sh
make example                # a move
build/example fault         # sensors fail on the way: the arm stops
```
"""


def _settings(law: Coded) -> str:
    names = ", ".join(f"`{name}`" for name in law.entry.settings)
    return (
        "## Gains and limits\n\n"
        f"They are arguments of the law ({names}) and may change from call to call:\n\n"
        f"```c\n{law.name}_settings s = {law.name}_defaults;\n"
        + "".join(
            f"s.{a.name}[0] *= 2;\n" for a in law.arguments if a.array.title == next(iter(law.entry.settings))
        )
        + f"{law.name}_with(&s, ...);\n```\n\n"
        "Torques are zero, and the function returns 1, where one of these numbers is not finite or a torque limit is "
        "negative. `linkwise generate ... --fixed-gains` makes them constants.\n"
    )


def _building(prefix: str) -> str:
    return f"""\
## Your own program

- make: `make`, then `cc -Iinclude main.c build/lib{prefix}.a -lm`
- CMake: `add_subdirectory`, target `{prefix}`; or `make install`, `find_package({prefix})`, target `{prefix}::{prefix}`
- pkg-config: `pkg-config --cflags --libs {prefix}` after `make install`
- C++17: `include/{prefix}.hpp`; Rust: `rust/`, `no_std`

Do not compile with `-ffast-math`: results rely on IEEE arithmetic, and make refuses it.
"""
