"""What a UR10e carried: payloads from its recordings with and without a load.

The recordings are those of Mamedov and Mikhel (github.com/shamilmamedov/dynamic_calibration), motor currents. Two
sets of drive gains come with them: those that the authors identified and "De Luca's"; torques, and so masses, are
proportional to them. Intervals include the uncertainty of gains that others published; ``known gains`` is the interval
without it. The name of one recording, ``load_2600``, suggests 2.6 kg; that is not confirmed anywhere.

``--halves`` counts how many of the differences between estimates from two halves of the loaded recordings are within
their combined 95 % intervals: of the ten parameters of the load, with known gains, and of drive gains from the load's
mass; and the same between the two recordings, which are of different days, of gains.

    python benchmarks/payload.py [--data FOLDER] [--halves] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.identify import Log, drive_gains, identify_payload, read_log

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[1].parent / "shared" / "data"))
COLUMNS = {"time": 1, "position": 2, "velocity": 8, "current": 14}
GAINS = {
    "De Luca's": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47],
    "authors'": [10.0000, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232],
}
UNLOADED = ("ur-20_01_31-unload.csv", "ur-20_02_10-30sec_12harm.csv", "ur-20_02_12-40sec_12harm.csv")
DAYS = (  # recordings without and with the load
    ("ur-20_01_31-unload.csv", "ur-20_01_31-load.csv"),
    ("ur-20_02_19_14harm50sec.csv", "ur-20_02_19_15harm50secLoad.csv"),
)
MASS = 2.805  # [kg] of their load
SETTINGS = {"frame": "tool0", "friction": "rich"}
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
            loaded = read_log(folder / file, robot, layout)
            found = identify_payload(robot, empty, loaded, frame="tool0", friction="rich")
            exact = identify_payload(robot, empty, loaded, frame="tool0", friction="rich", gain_deviation=0.0)
            shown, known = found.table()[0], exact.table()[0]
            rows.append(
                {
                    "recording": file,
                    "gains": name,
                    "mass": found.mass,
                    "interval": [shown.lower, shown.upper],
                    "known_gains": [known.lower, known.upper],
                    "com": found.com.tolist(),
                    "seconds": time.monotonic() - begun,
                }
            )
    return rows


def halves(data: Path) -> dict[str, list[bool]]:
    """Which differences between estimates from other samples are within their combined intervals."""
    robot, folder = lw.load(data / "ur10e" / "ur10e.urdf"), data / "ur10e" / "identification_data"
    layout = {"columns": COLUMNS, "drive": {"gains": GAINS["De Luca's"]}}

    def read(name: str) -> Log:
        return read_log(folder / name, robot, layout, drop_bad_rows=True)

    days = [(read(empty), read(full)) for empty, full in DAYS]
    pairs = [
        tuple(zip(*(log.split(0.5) for log in day), strict=True)) for day in days
    ]  # of each day (unloaded, loaded) of the first half, and of the second
    pairs.append((days[0], days[1]))
    found: dict[str, list[bool]] = {
        "halves: load": [],
        "halves: gains": [],
        "days: load": [],
        "days: gains": [],
    }
    for place, parts in enumerate(pairs):
        name = "halves" if place < len(days) else "days"
        loads = [identify_payload(robot, *part, **SETTINGS, gain_deviation=0.0).estimate for part in parts]
        found[f"{name}: load"] += within(*((each.x, each.interval()) for each in loads))
        # torques of published gains in place of currents: a gain of 1 is the published one
        gains = [drive_gains(robot, *part, MASS, **SETTINGS, start=1.0) for part in parts]
        found[f"{name}: gains"] += within(*((each.gains, each.interval()) for each in gains))
    return found


def within(first: tuple, last: tuple) -> list[bool]:
    """Whether two estimates (value, interval) differ by less than their intervals together."""
    reach = np.sqrt(sum(((upper - lower) / 2) ** 2 for _, (lower, upper) in (first, last)))
    return (np.abs(first[0] - last[0]) <= reach).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="one recording with one set of gains")
    parser.add_argument("--halves", action="store_true", help="intervals between halves and between days")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not (given.data / "ur10e").exists():
        raise SystemExit(f"no recordings under {given.data}; give their folder by --data or LINKWISE_DATA")
    if given.halves:
        for name, inside in halves(given.data).items():
            print(f"{name:<14} {sum(inside)} of {len(inside)} differences within the combined 95 % intervals")
        return
    rows = measured(given.data, given.quick)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(
        f"{'recording':<28}{'gains':<12}{'mass [kg]':>10}  {'95 % interval':<16}{'known gains':<16}"
        f"{'centre of mass in tool0 [m]':<28}"
    )
    for row in rows:
        interval, known = (f"{low:.2f} to {high:.2f}" for low, high in (row["interval"], row["known_gains"]))
        com = " ".join(f"{value:7.3f}" for value in row["com"])
        print(f"{row['recording']:<28}{row['gains']:<12}{row['mass']:>10.2f}  {interval:<16}{known:<16}{com}")


if __name__ == "__main__":
    main()
