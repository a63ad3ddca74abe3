"""Processors that packages are checked on under QEMU: how to build for them, run and look at the result."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

BARE = "-nographic -monitor none -serial none -semihosting-config enable=on,target=native"
"""Of QEMU, for programs without an operating system."""


@dataclass(frozen=True)
class Processor:
    """A processor, its compiler and its emulator."""

    name: str
    title: str
    tools: str
    """How the names of its compiler and binutils begin."""
    emulator: str
    arguments: str
    """Of the emulator; the program follows."""
    flags: str = "-O2"
    linking: str = "-static"
    start: str = ""
    """A file of the package that starts the program."""
    fused: tuple[str, ...] = ("float32", "float64")
    """Precisions in which it has an instruction for fused multiply-adds."""

    @property
    def compiler(self) -> str:
        return f"{self.tools}gcc"

    @property
    def counts(self) -> bool:
        """Whether the program reads a counter of instructions itself."""
        return bool(self.start)

    @property
    def here(self) -> bool:
        """Whether compiler and emulator are installed."""
        return all(map(shutil.which, (self.compiler, self.emulator)))

    def rules(self) -> str:
        """Its rules in the Makefile of a package."""
        goals = [f"check-{self.name}", *([f"count-{self.name}"] if self.counts else [])]
        start = f" START={self.start}" if self.start else ""
        return (
            f"{' '.join(goals)}: %-{self.name}:\n"
            f"\t$(call need,{self.compiler},make $@)\n\t$(call need,{self.emulator},make $@)\n"
            f'\t$(MAKE) $* BUILD=build/{self.name} CC={self.compiler} CFLAGS="{self.flags}"{start} \\\n'
            f'\t    LDFLAGS="{self.linking}" \\\n'
            f'\t    RUN="{self.emulator}{" " if self.arguments else ""}{self.arguments}"\n'
        )


def _arm(
    name: str,
    title: str,
    flags: str,
    machine: str,
    script: str,
    fused: tuple[str, ...] = ("float32", "float64"),
) -> Processor:
    return Processor(
        name,
        title,
        "arm-none-eabi-",
        "qemu-system-arm",
        f"{BARE} {machine}",
        f"-O2 {flags} -mfloat-abi=hard",
        f"-T check/{script}.ld --specs=rdimon.specs",
        f"check/{script}.c",
        fused,
    )


PROCESSORS = (
    Processor("aarch64", "aarch64 (Cortex-A)", "aarch64-linux-gnu-", "qemu-aarch64", ""),
    Processor("riscv64", "riscv64 (RV64GC)", "riscv64-linux-gnu-", "qemu-riscv64", ""),
    _arm(
        "cortex-m4",
        "Cortex-M4F",
        "-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16",
        "-icount shift=10 -M mps2-an386 -kernel",
        "cortex_m",
        ("float32",),
    ),
    _arm(
        "cortex-m7",
        "Cortex-M7",
        "-mthumb -mcpu=cortex-m7 -mfpu=fpv5-d16",
        "-icount shift=10 -M mps2-an500 -kernel",
        "cortex_m",
    ),
    _arm(
        "cortex-r5",
        "Cortex-R5F",
        "-marm -mcpu=cortex-r5 -mfpu=vfpv3-d16",
        "-icount shift=0 -M none -cpu cortex-r5f -m 64M -device loader,cpu-num=0,file=",
        "cortex_r",
        (),
    ),
)
"""In the order of tables."""

_JUMPS = re.compile(
    r"j(?!mp)[a-z]+|loop\w*"  # x86
    r"|b\.?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo)(\.[nw])?|t?cbn?z|tbn?z|tb[bh]"  # ARM
    r"|b(eqz|nez|ltu|geu|gtz|lez|gez|ltz|gt|le|gtu|leu)"  # RISC-V
)


def conditional_jumps(disassembly: str) -> list[str]:
    """Lines of ``objdump -d`` with a jump that may be taken or not.

    Args:
        disassembly: what objdump printed.
    """
    found = []
    for line in disassembly.splitlines():
        columns = line.split("\t")
        if len(columns) > 2 and _JUMPS.fullmatch(columns[2].split(" ")[0].strip()):
            found.append(line)
    return found
