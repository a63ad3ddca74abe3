"""What a UR10e carried: payloads from its recordings with and without a load.

The recordings are those of Mamedov and Mikhel (github.com/shamilmamedov/dynamic_calibration), motor currents. Two
sets of drive gains come with them: those that the authors identified and "De Luca's"; torques, and so masses, are
proportional to them. The name of one recording, ``load_2600``, suggests 2.6 kg; that is not confirmed anywhere.

    python benchmarks/payload.py [--data FOLDER] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import linkwise as lw
from linkwise.identify import identify_payload, read_log

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[1].parent / "shared" / "data"))
COLUMNS = {"time": 1, "position": 2, "velocity": 8, "current": 14}
GAINS = {
    "De Luca's": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47],
    "authors'": [10.0000, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232],
}
UNLOADED = ("ur-20_01_31-unload.csv", "ur-20_02_10-30sec_12harm.csv", "ur-20_02_12-40sec_12harm.csv")
LOADED = ("ur-20_01_13-load_2600.csv", "ur-20_01_31-load.csv")


def measured(data: Path, quick: bool = False) -> list[dict]:
    """Mass and centre of mass for each loaded recording and each set of gains."""
    robot = lw.load(data / "ur10e" / "ur10e.urdf")
    folder, rows = data / "ur10e" / "identification_data", []
    for name, gains in list(GAINS.items())[: 1 if quick else None]:
        layout = {"columns": COLUMNS, "drive": {"gains": gains}}
        empty = [read_log(folder / file, robot, layout) for file in UNLOADED]
        for file in LOADED[: 1 if quick else None]:
            begun = time.monotonic()
            found = identify_payload(
                robot, empty, read_log(folder / file, robot, layout), frame="tool0", friction="rich"
            )
            lower, upper = found.estimate.interval()
            rows.append(
                {
                    "recording": file,
                    "gains": name,
                    "mass": found.mass,
                    "interval": [float(lower[0]), float(upper[0])],
                    "com": found.com.tolist(),
                    "seconds": time.monotonic() - begun,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="one recording with one set of gains")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not (given.data / "ur10e").exists():
        raise SystemExit(f"no recordings under {given.data}; give their folder by --data or LINKWISE_DATA")
    rows = measured(given.data, given.quick)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(
        f"{'recording':<28}{'gains':<12}{'mass [kg]':>10}  {'95 % interval':<16}{'centre of mass in tool0 [m]':<28}"
    )
    for row in rows:
        interval = f"{row['interval'][0]:.2f} to {row['interval'][1]:.2f}"
        com = " ".join(f"{value:7.3f}" for value in row["com"])
        print(f"{row['recording']:<28}{row['gains']:<12}{row['mass']:>10.2f}  {interval:<16}{com}")


if __name__ == "__main__":
    main()
