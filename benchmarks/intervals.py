"""Do intervals hold from run to run? Identifications of one arm from several recordings, compared two by two.

Every recording is identified alone, with smooth Coulomb friction, so that parameters mean the same in all of them. For
every two of them and every base parameter it is counted whether the saved values differ by less than the combined 95 %
interval, and the same of the estimates by least squares. Saved values follow the file where torques decide little: they
may differ far less between recordings than from the truth, which intervals are about. So of the simulated arm, whose
file is wrong by up to 30 %, it is also counted how many intervals of saved values hold the true value.

Recordings are found as by benchmarks/identification.py; a simulated arm needs none.

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
    """A random arm with the friction that is fitted; another motion each time. Its file has other masses."""
    rng = np.random.default_rng(0)
    return kept_models.guess(lw.random_robot(0, 4, joints="R", rotor=False), np.random.default_rng(1)), [
        kept_models.recorded(true_arm(), rng, 1.0) for _ in range(runs)
    ]


def true_arm() -> lw.Robot:
    bare = lw.random_robot(0, 4, joints="R", rotor=False)
    truth = kept_models.with_friction(bare, "smooth", np.random.default_rng(0))
    return truth.with_parameters({f"{name}.friction_speed": 0.02 for name in bare.joint_names})


GROUPS = {"ur10e": ur10e, "lwr4": lwr4, "simulated": simulated}


class Counts:
    """Of every kind of parameter: what was counted, and the share within intervals."""

    def __init__(self):
        self.inside: dict[str, list[bool]] = {}

    def add(self, labels: list[str], within: np.ndarray) -> None:
        for label, held in zip(labels, within.tolist(), strict=True):
            self.inside.setdefault(kind_of(label), []).append(held)

    @property
    def text(self) -> str:
        return ", ".join(
            f"{kind} {100.0 * sum(held) / len(held):.1f} % of {len(held)}"
            for kind, held in self.inside.items()
        )


def counted(robot: lw.Robot, logs: list[Log], truth: lw.Robot | None) -> dict[str, Counts]:
    """Differences of saved values, and of estimates, within the combined interval; true values within intervals."""
    runs, counts = [], {"saved": Counts(), "least squares": Counts()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = [identify(robot, log, friction="smooth") for log in logs]
    for one in found:
        rows = one.table()
        saved, upper = (np.array([getattr(row, name) for row in rows]) for name in ("physical", "upper"))
        low, high = one.estimate.interval()
        runs.append(([row.label for row in rows], saved, upper - saved, one.estimate.x, 0.5 * (high - low)))
        if truth is not None:
            known = dict(zip(truth.parameter_labels, truth.parameters.tolist(), strict=True))
            for joint in truth.moving_joints:
                known[f"{joint.name}.coulomb_friction"] = float(np.mean(joint.coulomb_friction))
            all_values = np.array([known.get(label, 0.0) for label in one.fit.regression.labels])
            true = one.base.combination @ all_values
            counts.setdefault("true values", Counts()).add(runs[-1][0], np.abs(saved - true) <= upper - saved)
    for (labels, *mine), (_, *other) in itertools.combinations(runs, 2):
        for name, (x, reach, y, reach_y) in (
            ("saved", (*mine[:2], *other[:2])),
            ("least squares", (*mine[2:], *other[2:])),
        ):
            counts[name].add(labels, np.abs(x - y) <= np.hypot(reach, reach_y))
    return counts


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
        counts = counted(robot, logs, true_arm() if name == "simulated" else None)
        for what, each in counts.items():
            print(f"{name}, {len(logs)} recordings, {what}: {each.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
