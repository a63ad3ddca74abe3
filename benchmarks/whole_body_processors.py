"""Instructions of whole-body control on a microcontroller: its C package for one arm, under QEMU.

    python benchmarks/whole_body_processors.py [--robot panda] [--processor cortex-m7] [--states 8]

Prints whether the C has the bits of Python there, bytes of code and stack, and the fewest and most instructions of a
call over random inputs: equal numbers are constant time. Needs make, the cross compiler and QEMU; says so without them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from processors import bits, costs

import linkwise as lw
from linkwise.embedded import Options, Package
from linkwise.embedded.processors import PROCESSORS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--processor", default="cortex-m7")
    parser.add_argument("--states", type=int, default=8)
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    chosen = parser.parse_args()
    known = PROCESSORS.values() if isinstance(PROCESSORS, dict) else PROCESSORS
    processor = next(each for each in known if each.name == chosen.processor)
    missing = [tool for tool in ("make", processor.compiler, processor.emulator) if not shutil.which(tool)]
    if missing:
        print(f"{processor.name}: not counted, {', '.join(missing)} missing")
        return 0
    made = Package(lw.load(chosen.robot), ("whole_body",), Options(dtype=chosen.dtype), count=chosen.states)
    law = made.functions[0].entry
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder) / "package")
        print(f"{chosen.robot}: {law.summary}")
        print(f"{processor.name}, {chosen.dtype}: {bits(Path(folder) / 'package', processor)}")
        for name, cost in costs(
            Path(folder) / "package", processor, list(made.functions), chosen.states
        ).items():
            code, stack, instructions = cost.cells()
            print(f"  {name}: {code} bytes of code, {stack} of stack, {instructions} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
