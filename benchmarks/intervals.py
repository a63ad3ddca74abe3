"""Do intervals hold from run to run? Identifications of one arm from several recordings, compared two by two.

Every recording is identified alone, with smooth Coulomb friction, so that parameters mean the same in all of them. For
every two of them and every base parameter it is counted whether the saved values differ by less than the combined 95 %
interval. Recordings are found as by benchmarks/identification.py; a simulated arm needs none.

    python benchmarks/intervals.py [--data FOLDER] [--only ur10e,lwr4,simulated] [--runs 20]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import warnings
from pathlib import Path

import identification
import kept_models
import numpy as np

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify, read_log
from linkwise.identify.estimation.clustered import kind_of

UR10E = (
    "ur-20_02_05-20sec_8harm",
    "ur-20_02_06-20sec_5harm",
    "ur-20_02_10-20sec_7harm",
    "ur-20_02_10-30sec_12harm",
    "ur-20_02_12-40sec_12harm",
    "ur-20_02_12-50sec_12harm",
    "ur-20_02_19_14harm50sec",
)


def ur10e(data: Path, runs: int) -> tuple[lw.Robot, list[Log]]:
    robot = lw.load(data / "ur10e" / "ur10e.urdf")
    folder = data / "ur10e" / "identification_data"
    return robot, [read_log(folder / f"{name}.csv", robot, kept_models.UR10E_LAYOUT) for name in UR10E[:runs]]


def lwr4(data: Path, runs: int) -> tuple[lw.Robot, list[Log]]:
    cases = list(kept_models.recordings(data, ["lwr4"]))
    return cases[1].robot, [*cases[1].train, cases[1].test][:runs]


def simulated(data: Path, runs: int) -> tuple[lw.Robot, list[Log]]:
    """A random arm with the friction that is fitted; another motion each time."""
    rng = np.random.default_rng(0)
    bare = lw.random_robot(0, 4, joints="R", rotor=False)
    truth = kept_models.with_friction(bare, "smooth", rng)
    truth = truth.with_parameters({f"{name}.friction_speed": 0.02 for name in bare.joint_names})
    return bare, [kept_models.recorded(truth, rng, 1.0) for _ in range(runs)]


GROUPS = {"ur10e": ur10e, "lwr4": lwr4, "simulated": simulated}


def counted(robot: lw.Robot, logs: list[Log]) -> dict[str, tuple[int, float]]:
    """By kind of parameter: how many differences, and the share [%] within the combined interval."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        for log in logs:
            rows = identify(robot, log, friction="smooth").table()
            saved, reach = ([getattr(row, name) for row in rows] for name in ("physical", "upper"))
            found.append(([row.label for row in rows], np.array(saved), np.array(reach) - np.array(saved)))
    inside: dict[str, list[bool]] = {}
    for (labels, x, reach), (_, other, other_reach) in itertools.combinations(found, 2):
        within = np.abs(x - other) <= np.hypot(reach, other_reach)
        for label, held in zip(labels, within.tolist(), strict=True):
            inside.setdefault(kind_of(label), []).append(held)
    return {name: (len(held), 100.0 * sum(held) / len(held)) for name, held in inside.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("LINKWISE_DATA", identification.DEFAULT_DATA))
    )
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--runs", type=int, default=20, help="at most so many recordings of each arm")
    given = parser.parse_args()
    for name in given.only.split(","):
        if name not in GROUPS:
            print(f"no arm {name!r}; there are {', '.join(GROUPS)}", file=sys.stderr)
            return 2
        robot, logs = GROUPS[name](given.data, given.runs)
        parts = [f"{what} {share:.1f} % of {count}" for what, (count, share) in counted(robot, logs).items()]
        print(f"{name}, {len(logs)} recordings: {', '.join(parts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
