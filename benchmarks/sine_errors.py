"""Largest absolute error of the float32 sine and cosine over all float32 angles, one by one.

python benchmarks/sine_errors.py
python benchmarks/sine_errors.py --every 1001

The angles are all floats from 0 to --to (a sine is odd and a cosine even, bit by bit). The reference is the sine of the
C library in float64, whose own error is below 2^-52. Needs gcc. ``evidence/rounding.py`` has the figures as constants.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from linkwise.compiler.emit import c
from linkwise.compiler.ir.program import trace

MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
int main(void)
{
    const float to = %(to)sf;
    uint32_t last;
    memcpy(&last, &to, 4);
    double worst[2] = {0.0, 0.0};
    float where[2] = {0.0f, 0.0f};
    for (uint32_t bits = 0; bits <= last; bits += %(every)du) {
        float x[1], y[2];
        memcpy(x, &bits, 4);
        turn(x, y);
        const double errors[2] = {fabs(y[0] - sin((double)x[0])), fabs(y[1] - cos((double)x[0]))};
        for (int k = 0; k < 2; k++) {
            if (!(errors[k] <= worst[k])) { worst[k] = errors[k]; where[k] = x[0]; }
        }
    }
    for (int k = 0; k < 2; k++) printf("%%.6g %%.9g\\n", worst[k] * 16777216.0, where[k]);
    return 0;
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=float, default=8.0, help="largest angle [rad]")
    parser.add_argument("--every", type=int, default=1, help="only every so many floats")
    options = parser.parse_args()
    for fused in (True, False):
        program = trace(
            lambda x: [x[0].sin(), x[0].cos()], {"x": 1}, {"y": (2,)}, dtype="float32", fused=fused
        )
        with tempfile.TemporaryDirectory() as folder:
            text = c.source(program, function_name="turn") + MAIN % {
                "to": repr(options.to),
                "every": options.every,
            }
            Path(folder, "turn.c").write_text(text, encoding="utf-8")
            command = ["gcc", "-O2", "-march=native", "-ffp-contract=off", "turn.c", "-o", "turn", "-lm"]
            subprocess.run(command, cwd=folder, check=True)
            found = subprocess.run([f"{folder}/turn"], capture_output=True, text=True, check=True).stdout
        for kind, line in zip(("sine", "cosine"), found.splitlines(), strict=True):
            error, where = line.split()
            name = "fused" if fused else "not fused"
            print(f"{kind}, {name}: {error} units of 2^-24, at {where} rad")


if __name__ == "__main__":
    main()
