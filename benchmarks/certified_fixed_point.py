"""Fixed point (whole numbers of 32 or 16 bits) on processors without a floating-point unit, under QEMU.

python benchmarks/certified_fixed_point.py --robot panda --function computed_torque
python benchmarks/certified_fixed_point.py --robot puma560 --function gravity_torques --bits 15

The same states on this machine, RISC-V, Cortex-M3 and (instructions of) Cortex-M0: outputs must have the bits of the
interpreter. On a Cortex-M3 instructions are counted beside those of the float32 code, whose arithmetic is a library
there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.emit import c
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.embedded.package_files import support_file
from linkwise.embedded.processors import BARE
from linkwise.evidence import search

BOARD = f"qemu-system-arm {BARE} -icount shift=10 -M mps2-an385 -kernel"
ARM = "-O2 -mthumb -mfloat-abi=soft -T cortex_m.ld --specs=rdimon.specs cortex_m.c"
BUILDS = {
    "x86-64": ("gcc -O2", ""),
    "riscv64": ("riscv64-linux-gnu-gcc -O2 -static", "qemu-riscv64"),
    "cortex-m3": (f"arm-none-eabi-gcc -mcpu=cortex-m3 {ARM}", BOARD),
    "cortex-m0": (f"arm-none-eabi-gcc -mcpu=cortex-m0 {ARM}", BOARD),
}
HARNESS = """\
#include <stdint.h>
#include <stdio.h>
typedef {real} real;
{prototype};
enum {{ STATES = {states} }};
{tables}
static uint32_t now(void)
{{
#if defined(__ARM_ARCH_PROFILE) || defined(__ARM_ARCH_6M__)
    volatile uint32_t *const timer = (volatile uint32_t *)0x40000000u;
    if (timer[0] == 0u) {{ timer[2] = 0xffffffffu; timer[1] = 0xffffffffu; timer[0] = 1u; }}
    return 0xffffffffu - timer[1];
#else
    return 0u;
#endif
}}
int main(void)
{{
    int different = 0;
    unsigned long most = 0;
    for (int s = 0; s < STATES; ++s) {{
        {locals}
        (void)now();
        const uint32_t before = now();
        {call};
        const uint32_t after = now();
        const unsigned long found = (unsigned long)((((uint64_t)(after - before) * 40u) + 512u) / 1024u);
        most = ((s > 0) && (found > most)) ? found : most;
        {compare}
    }}
    (void)printf("%d %lu\\n", different, most);
    return 0;
}}
"""


def table(name: str, values: np.ndarray, suffix: str = "") -> str:
    rows = ", ".join("{" + ", ".join(f"{x}{suffix}" for x in row) + "}" for row in values.tolist())
    return f"static const real {name}[STATES][{values.shape[1]}] = {{{rows}}};"


def build(folder: Path, source: str, harness: str, processor: str) -> tuple[int, int] | None:
    """(states with other bits, instructions of a call); None where a tool is missing."""
    compiler, emulator = BUILDS[processor]
    if shutil.which(compiler.split()[0]) is None or (emulator and shutil.which(emulator.split()[0]) is None):
        return None
    (folder / "function.c").write_text(source, encoding="utf-8")
    (folder / "main.c").write_text(harness, encoding="utf-8")
    for name in ("cortex_m.c", "cortex_m.ld"):
        text = support_file(name)
        if processor == "cortex-m0":
            text = text.replace('__asm volatile("dsb\\n isb");', "")
        (folder / name).write_text(text, encoding="utf-8")
    command = f"{compiler} function.c main.c -o program -lm"
    subprocess.run(command.split(), cwd=folder, check=True)
    done = subprocess.run(
        [*emulator.split(), str(folder / "program")], capture_output=True, text=True, timeout=300, check=True
    )
    different, count = done.stdout.split()
    return int(different), int(count)


def harness(real: str, prototype: str, given: dict, expected: dict, call: str, suffix: str = "") -> str:
    tables = [table(f"of_{n}", x, suffix) for n, x in given.items()]
    tables += [table(f"expected_{n}", x, suffix) for n, x in expected.items()]
    local = " ".join(f"real {n}[{x.shape[1]}];" for n, x in expected.items())
    compare = " ".join(
        f"for (int k = 0; k < {x.shape[1]}; ++k) {{ different += {n}[k] != expected_{n}[s][k]; }}"
        for n, x in expected.items()
    )
    return HARNESS.format(
        real=real,
        prototype=prototype,
        states=len(next(iter(given.values()))),
        tables="\n".join(tables),
        locals=local,
        call=call,
        compare=compare,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--function", default="computed_torque")
    parser.add_argument("--bits", type=int, default=31, choices=[31, 15], help="of a value without its sign")
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument(
        "--encoder", type=float, default=2 * np.pi / 2**14, help="resolution of encoders [rad]"
    )
    options = parser.parse_args()
    robot = lw.load(options.robot)
    function = options.function
    entry = next(e for e in entries(robot, (function,), Options(dtype="float32")) if e.name == function)
    program = entry.program
    box = evidence.box_of(robot, program.inputs, values=entry.settings)
    fixed = evidence.fixed_point(program, box, bits=options.bits)
    states = box.draw(np.random.default_rng(0), options.states)
    given = fixed.given(states)
    rows = [fixed.run({n: x[s].tolist() for n, x in given.items()}) for s in range(options.states)]
    expected = {n: np.array([row[n] for row in rows]) for n, _, _ in fixed.outputs}
    exact = search.exact(program, {n: given[n] * 2.0**-f for n, _, f in fixed.inputs})
    name, _, f = fixed.outputs[0]
    worst = np.abs(expected[name] * 2.0**-f - exact[0].astype(float)).max()
    print(
        f"{options.robot} {function}: error at most {max(fixed.errors[0]):.3g}, worst of the states {worst:.3g}"
    )
    moved = {n: x.copy() for n, x in states.items()}
    moved["q"] = moved["q"] + options.encoder
    step = np.abs(search.exact(program, moved)[0] - search.exact(program, states)[0]).max(axis=0)
    print(
        f"one step of the encoders ({options.encoder:.3g} rad) changes {name} by up to {float(step.max()):.3g}"
    )
    prototype = fixed.source("fixed").split("\nvoid ")[1].split("\n")[0]
    call = "fixed(" + ", ".join([*(f"of_{n}[s]" for n, _, _ in fixed.inputs), *expected]) + ")"
    text = harness(f"int{options.bits + 1}_t", f"void {prototype}", given, expected, call)
    counts = {}
    with tempfile.TemporaryDirectory() as place:
        for processor in BUILDS:
            found = build(Path(place), fixed.source("fixed"), text, processor)
            if found is None:
                print(f"{processor}: compiler or emulator is not installed")
                continue
            counts[processor] = found[1]
            more = f", {found[1]} instructions" if found[1] else ""
            print(f"{processor}: {found[0]} numbers of {options.states} states with other bits{more}")
        short = {n: x.astype(np.float32) for n, x in states.items()}
        plain = c.unfused(program)
        results = search.without_fusing(plain, short)
        outputs = [n for n, _ in plain.outputs if n != c.STATUS]
        expected = {n: r for (n, _), r in zip(plain.outputs, results, strict=True) if n in outputs}
        source = c.source(program, function_name="floating", fma=False)
        prototype = source.split(" floating(")[1].split(")\n{")[0]
        kind = "int" if "int floating(" in source else "void"
        call = f"(void)floating({', '.join([*(f'of_{n}[s]' for n, _ in plain.inputs), *outputs])})"
        text = harness("float", f"{kind} floating({prototype})", short, expected, call, "f")
        found = build(Path(place), source, text, "cortex-m3")
        if found is not None and "cortex-m3" in counts:
            print(f"cortex-m3, float32 in software: {found[0]} other bits, {found[1]} instructions")
            print(f"fixed point needs {found[1] / counts['cortex-m3']:.1f} times fewer")


if __name__ == "__main__":
    main()
