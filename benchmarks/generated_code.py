"""Generated C with numbers that are no states of a robot, and with all compilers and options: bits, and sanitizers.

    python benchmarks/generated_code.py special      every function of a package, NaN and infinities in its inputs
    python benchmarks/generated_code.py compilers    robots, precisions, compilers and options, with and without fma
    python benchmarks/generated_code.py loops        closed loops along tables of all sizes

Every function is compared with the bits that Linkwise computes in Python. ``special`` builds with the sanitizers for
addresses, undefined behaviour and conversions: an access outside an array or an undefined conversion ends the program.
The exit status is 1 if anything differs. ``--quick``: two_link alone, and fewer functions and options.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.control import CONTROLLERS
from linkwise.embedded import ENTRIES, Options, entries, header, online_move, selftest
from linkwise.embedded.coded import Coded
from linkwise.embedded.entry import EntryError
from linkwise.embedded.package import support_file
from linkwise.embedded.reference import states
from linkwise.functions.table import FUNCTIONS
from linkwise.robot.robot import Robot

SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
COMPILERS = tuple(name for name in ("gcc", "clang") if shutil.which(name))
OPTIONS = (
    "-O0",
    "-O2",
    "-O3",
    "-O2 -march=native",
    "-O3 -march=native",
    "-O3 -march=native -ftree-slp-vectorize -ftree-loop-vectorize",
)
ROWS = (2, 3, 9, 72, 1000)
QUICK = ("iterated_forward_dynamics", "integral_tracking", *(name for name in ENTRIES if name != "two_rate"))
SECONDS = 600
PREFIX = "arm"


def coded(robot: Robot, names: Iterable[str], options: Options, **choices: bool) -> list[Coded]:
    """Functions of a robot as C; names that the robot cannot have are left out.

    Args:
        robot: the robot.
        names: of functions, controllers and other entries.
        options: choices.
        choices: ``fma`` and ``constant_time``.
    """
    found: list[Coded] = []
    for name in names:
        try:
            made = entries(robot, [name], options)
        except EntryError:
            continue
        found += [Coded(entry, f"{PREFIX}_{entry.name}", f"{PREFIX}.h", **choices) for entry in made]
    return found


def write(folder: Path, robot: Robot, functions: Sequence[Coded], count: int, special: bool = False) -> None:
    """The sources and the self-test, without what else a package has.

    Args:
        folder: a new folder.
        robot: the robot.
        functions: those to compare.
        count: states of each.
        special: whether inputs have special numbers.
    """
    checked = [(f, states(robot, f.entry, count, f.fma, special)) for f in functions]
    files = {f"{f.name}.c": f.text for f in functions}
    files |= {f"{f.name}_tables.c": header.tables(f, PREFIX) for f in functions if f.entry.tables}
    if moves := online_move.functions_of(functions):
        files[f"{online_move.NAME}.c"] = online_move.source(PREFIX, moves)
    files |= {"lw_fma.h": support_file("lw_fma.h"), "check.c": selftest.program(PREFIX, checked)}
    files[f"{PREFIX}.h"] = header.header(robot, PREFIX, functions, {}, "", "a check")
    if robot.dof:
        files["limits.c"] = header.limits(robot, PREFIX, functions[0].real)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def check(folder: Path, compiler: str, options: str) -> str:
    """Build the self-test and run it; "" if all bits are equal, else what it said.

    Args:
        folder: from ``write``.
        compiler: gcc or clang.
        options: of the compiler.
    """
    command = [compiler, "-std=c99", *options.split(), "-I.", *sorted(p.name for p in folder.glob("*.c"))]
    for step in ([*command, "-lm", "-o", "check"], ["./check"]):
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            return (done.stdout + done.stderr)[-1500:] or f"exit status {done.returncode}"
    return "" if "all bits equal" in done.stdout else done.stdout


def planned(robot: Robot, rows: int = 12) -> motion.Trajectory:
    """A motion through so many random positions."""
    rng = np.random.default_rng(rows)
    times = np.cumsum(rng.uniform(0.1, 1.0, rows))
    return motion.cubic_spline(times, 0.5 * rng.normal(size=(rows, robot.dof)))


def special(quick: bool, folder: Path) -> list[str]:
    """Every function with special numbers, in both precisions, with sanitizers; what went wrong."""
    wrong: list[str] = []
    names = QUICK if quick else (*FUNCTIONS, *CONTROLLERS, *ENTRIES)
    robots = ("two_link",) if quick else lw.robots()
    for name in robots:
        robot = lw.load(name)
        for dtype in ("float64",) if quick else ("float64", "float32"):
            options = Options(
                dtype=dtype, trajectory=planned(robot), horizon=3, integrator="semi_implicit_euler"
            )
            functions = coded(robot, names, options)
            count = 26 if quick else 78
            write(folder / f"{name}_{dtype}", robot, functions, count, special=True)
            for compiler in COMPILERS[:1] if quick else COMPILERS:
                said = check(
                    folder / f"{name}_{dtype}", compiler, f"{'-O0' if quick else '-O1'} {SANITIZERS}"
                )
                print(
                    f"{name:12} {dtype} {compiler:6} {len(functions):3} functions: {said or 'the same bits'}"
                )
                wrong += [f"{name} {dtype} {compiler}: {said}"] if said else []
    return wrong


def compilers(quick: bool, folder: Path) -> list[str]:
    """Bits of two functions with all compilers and options; what differs."""
    wrong: list[str] = []
    names = ["inverse_dynamics"] if quick else ["inverse_dynamics", "forward_dynamics"]
    total = 0
    for name in ("puma560",) if quick else lw.robots():
        robot = lw.load(name)
        for dtype in ("float64",) if quick else ("float64", "float32"):
            for fma in (False,) if quick else (False, True):
                place = folder / f"{name}_{dtype}_{'fma' if fma else 'no_fma'}"
                write(place, robot, coded(robot, names, Options(dtype=dtype), fma=fma), 8)
                for compiler in COMPILERS:
                    for options in OPTIONS[-2:-1] if quick else OPTIONS:
                        if compiler == "clang" and "-ftree" in options:
                            continue
                        said = check(place, compiler, options)
                        total += 1
                        if said:
                            wrong.append(f"{place.name} {compiler} {options}: {said}")
                            print(wrong[-1])
    print(f"{total} builds, {len(wrong)} with other bits")
    return wrong


def loops(quick: bool, folder: Path) -> list[str]:
    """Closed loops along tables of all sizes; what differs."""
    wrong: list[str] = []
    for name in ("two_link",) if quick else lw.robots():
        robot = lw.load(name)
        for rows in ROWS[:2] if quick else ROWS:
            options = Options(trajectory=planned(robot, rows))
            place = folder / f"{name}_{rows}"
            write(place, robot, coded(robot, ["closed_loop", "trajectory"], options), 8)
            said = check(place, COMPILERS[0], "-O1 -march=native")
            print(f"{name:12} {rows:5} rows: {said or 'the same bits'}")
            wrong += [f"{name}, {rows} rows: {said}"] if said else []
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("special", "compilers", "loops"))
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)
    if not COMPILERS:
        raise SystemExit("neither gcc nor clang is installed")
    with tempfile.TemporaryDirectory() as folder:
        parts = {"special": special, "compilers": compilers, "loops": loops}
        wrong = parts[chosen.part](chosen.quick, Path(folder))
    print(f"{len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
