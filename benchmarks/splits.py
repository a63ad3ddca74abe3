"""Is the identified robot at least as good as plain least squares? Every split of every recording, moving and standing.

Every row is one call of ``identify`` with its defaults, judged on a recording that was not fitted, beside plain least
squares with {sign, tanh} × {5, 8, 12 Hz}, of which the best is taken: for joints that move and for those that stand
still apart. Errors are 100·‖τ − τ̂‖/‖τ‖ of all joints together; a ratio of at most 1.02 is wanted. Its ± is two standard
errors: samples of one rest or one motion are no independent witnesses, so the recording is cut into blocks, and the
ratio is computed without each of them (the jackknife).

The last columns compare with the headline what is kept: the robot loaded again from its TOML file, and each function
of the generated C file, compiled and called sample by sample; ``one state`` is the C function that knows no motion.

Recordings are found as by benchmarks/identification.py; without them a simulated arm is judged. ``--random 4`` takes
other splits: of every recording four random parts that are left out, of the UR10e eight random pairs of recordings.

    python benchmarks/splits.py [--data FOLDER] [--only ur10e,panda] [--random COUNT --seed SEED] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import identification
import kept_models
import numpy as np
from kept_models import Case

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify, read_log
from linkwise.identify.judging.ratios import error_ratio
from linkwise.identify.judging.validation import AT_REST, Validation
from linkwise.robot.directions import torques_along

BOUND = 1.02
SAME = 1e-6  # relative difference of two totals that are the same model
UR10E = {  # recordings of other days: fitted → predicted
    "8 harmonics → 5 harmonics": ("ur-20_02_05-20sec_8harm", "ur-20_02_06-20sec_5harm"),
    "5 harmonics → 8 harmonics": ("ur-20_02_06-20sec_5harm", "ur-20_02_05-20sec_8harm"),
    "7 harmonics → 40 s": ("ur-20_02_10-20sec_7harm", "ur-20_02_12-40sec_12harm"),
    "50 s → 14 harmonics": ("ur-20_02_12-50sec_12harm", "ur-20_02_19_14harm50sec"),
    "14 harmonics → 30 s": ("ur-20_02_19_14harm50sec", "ur-20_02_10-30sec_12harm"),
}


def halves(group: str, name: str, robot: lw.Robot, log: Log) -> Iterator[Case]:
    """The first 70 % predict the rest, and the last 70 % what was before."""
    first, last = log.split(0.7)
    yield Case(group, f"{name}, first 70 % → rest", robot, (first,), last)
    first, last = log.split(0.3)
    yield Case(group, f"{name}, last 70 % → before", robot, (last,), first)


def ur10e(data: Path) -> Iterator[Case]:
    yield from kept_models.recordings(data, ["ur10e"])
    robot, folder = lw.load(data / "ur10e" / "ur10e.urdf"), data / "ur10e" / "identification_data"
    for name, pair in UR10E.items():
        train, test = (read_log(folder / f"{each}.csv", robot, kept_models.UR10E_LAYOUT) for each in pair)
        yield Case("ur10e", f"UR10e: {name}", robot, (train,), test)


def lwr4(data: Path) -> Iterator[Case]:
    slow, fast = kept_models.recordings(data, ["lwr4"])
    yield from (slow, fast)
    yield Case("lwr4", "LWR4+: run 3 → 1, half as fast", slow.robot, (fast.test,), slow.train[0])


def whole(group: str) -> Callable[[Path], Iterator[Case]]:
    """One recording that was split by its row of ``identification``."""

    def cases(data: Path) -> Iterator[Case]:
        for each in identification.RECORDINGS[group](data):
            log = each.train if each.train is each.test else joined(each.train, each.test)
            yield from halves(group, each.name, each.robot, log)

    return cases


def joined(first: Log, last: Log) -> Log:
    """Both parts of a recording that was split."""

    def both(name: str) -> np.ndarray | None:
        parts = [getattr(log, name) for log in (first, last)]
        return None if parts[0] is None else np.concatenate(parts)

    return replace(first, **{name: both(name) for name in ("t", "q", "qd", "tau")})


def airbot(data: Path) -> Iterator[Case]:
    for each in identification.airbot(data):
        yield Case("airbot", f"Airbot: {each.protocol}", each.robot, (each.train,), each.test)
        yield from halves("airbot", f"Airbot, {each.train.name}", each.robot, each.train)


SPLITS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "ur10e": ur10e,
    "lwr4": lwr4,
    "ur10": whole("ur10"),
    "tx40": whole("tx40"),
    "xmate": whole("xmate"),
    "panda": whole("panda"),
    "airbot": airbot,
}


LEFT_OUT = (0.25, 0.5)  # of a recording, in a random split
SHORTEST = 0.1  # of a recording: what is left before or after and is shorter is not fitted


def random_splits(data: Path, wanted: list[str], count: int, seed: int) -> Iterator[Case]:
    """Of every recording ``count`` random parts that are left out; of the UR10e pairs of recordings, twice as many."""
    rng = np.random.default_rng(seed)
    robot, files = lw.load(data / "ur10e" / "ur10e.urdf"), sorted((data / "ur10e").glob("*_data/*.csv"))
    unloaded = [file for file in files if "load" not in file.name.lower() or "unload" in file.name]
    logs = {file.stem: read_log(file, robot, kept_models.UR10E_LAYOUT) for file in unloaded}
    cases = []
    for _ in range(2 * count):
        train, test = (list(logs)[k] for k in rng.choice(len(logs), 2, replace=False))
        cases.append(Case("ur10e", f"{train} → {test}", robot, (logs[train],), logs[test]))
    for group, name, robot, log in _whole_recordings(data):
        for _ in range(count):
            share = rng.uniform(*LEFT_OUT)
            begin = rng.uniform(0.0, 1.0 - share)
            end, length = begin + share, log.duration
            train = [log.between(0.0, begin * length)] * (begin > SHORTEST)
            train += [log.between(end * length, length)] * (end < 1.0 - SHORTEST)
            test = log.between(begin * length, end * length)
            cases.append(Case(group, f"{name}, without {begin:.2f} to {end:.2f}", robot, tuple(train), test))
    yield from (case for case in cases if case.group in wanted)


def _whole_recordings(data: Path) -> Iterator[tuple[str, str, lw.Robot, Log]]:
    for group in ("ur10", "tx40", "xmate", "panda"):
        for each in identification.RECORDINGS[group](data):
            yield (
                group,
                each.name,
                each.robot,
                each.train if each.train is each.test else joined(each.train, each.test),
            )
    for each in identification.airbot(data):
        yield "airbot", f"Airbot, {each.train.name}", each.robot, each.train
    slow, fast = kept_models.recordings(data, ["lwr4"])
    for k, log in enumerate((slow.train[0], slow.test, fast.test), 1):
        yield "lwr4", f"LWR4+, run {k}", slow.robot, log


def simulated() -> Iterator[Case]:
    """An arm of three joints that moves and stands in turn."""
    rng = np.random.default_rng(1)
    truth = kept_models.with_friction(
        lw.random_robot(0, 3, joints="R", rotor=False), "viscous and Coulomb", rng
    )
    train, test = (kept_models.recorded(truth, rng, speed) for speed in (1.0, 1.3))
    yield Case("simulated", "simulated", kept_models.guess(truth, rng), (train,), test)


def judged(case: Case) -> dict:
    """One row."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = identify(case.robot, case.train, validation=case.test)
    seconds = time.process_time() - begin
    ours, others = found.validation, [each.validations[0] for each in found.competitors]
    rests = np.abs(ours.qd) <= AT_REST
    row = {"group": case.group, "case": case.name, "headline": ours.total, "seconds": seconds}
    row["all"] = part(ours, others, np.ones_like(rests))
    row["moving"], row["standing"] = part(ours, others, ~rests), part(ours, others, rests)
    row["at_rest"] = 100.0 * float(rests.mean())
    q, qd, qdd = ours.motion
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder) / "robot.toml")
        loaded = lw.load(Path(folder) / "robot.toml", strict=False)
        row["saved"] = total(ours, torques_along(loaded, q, qd, qdd))
        row["code"] = total(ours, kept_models.by_c(found, Path(folder), q, qd, qdd))
        row["one_state"] = total(ours, kept_models.by_c(found, Path(folder), q, qd, qdd, along=False))
    row["one_state_robot"] = total(ours, found.robot.inverse_dynamics(q, qd, qdd))
    row["kept"] = bool(
        max(abs(row["saved"] - ours.total), abs(row["code"] - ours.total)) < SAME * ours.total
        and abs(row["one_state"] - row["one_state_robot"]) < SAME * ours.total
    )
    return row


def total(shown: Validation, torques: np.ndarray) -> float:
    return float(100 * np.linalg.norm(shown.measured - torques) / np.linalg.norm(shown.measured))


def part(ours: Validation, others: list[Validation], which: np.ndarray) -> dict | None:
    """Our error and the least of the others where ``which`` (N, n) holds, and the standard error of their ratio."""
    if not which.any():
        return None

    def error(shown: Validation) -> float:
        return 100.0 * float(np.linalg.norm(shown.residuals[which]) / np.linalg.norm(shown.measured[which]))

    best = min(others, key=error)
    ratio = error_ratio(ours, best, which)
    return {"ours": error(ours), "plain": error(best), "ratio": ratio.value, "deviation": ratio.deviation}


def show(row: dict) -> None:
    cells = []
    for name in ("moving", "standing"):
        one = row[name]
        if one is None:
            cells.append(f"{'–':>34}")
            continue
        mark = "" if one["ratio"] <= BOUND else " ±" if one["ratio"] - 2 * one["deviation"] <= BOUND else " !"
        text = (
            f"{one['ours']:6.2f} {one['plain']:6.2f} {one['ratio']:6.3f} ± {2 * one['deviation']:.3f}{mark}"
        )
        cells.append(f"{text:>34}")
    kept = f"{row['saved']:7.3f} {row['code']:7.3f} {row['one_state']:7.3f}" + (
        "" if row["kept"] else " NOT KEPT"
    )
    print(
        f"{row['case']:<55}{cells[0]} {cells[1]} {row['at_rest']:5.1f} | {row['headline']:7.3f} {kept}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("LINKWISE_DATA", identification.DEFAULT_DATA))
    )
    parser.add_argument("--only", default=",".join(SPLITS))
    parser.add_argument("--case", default="", help="only splits with this text in their names")
    parser.add_argument("--random", type=int, default=0, help="random splits of each recording instead")
    parser.add_argument("--seed", type=int, default=1, help="of random splits")
    parser.add_argument("--simulated", action="store_true", help="a simulated arm, which needs no recordings")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    unknown = [name for name in given.only.split(",") if name not in SPLITS]
    if unknown or not (given.simulated or given.data.is_dir()):
        what = f"no recordings {unknown[0]!r}" if unknown else f"no folder {given.data}"
        print(f"{what}; there are {', '.join(SPLITS)}", file=sys.stderr)
        return 2
    parts = "".join(f"{part + ': ours  plain  ratio':>35}" for part in ("moving", "standing"))
    print(f"{'100·‖τ − τ̂‖/‖τ‖ [%]':<55}{parts} at rest | headline saved, C, one state")
    rows = []
    wanted = given.only.split(",")
    groups = [lambda n=n: SPLITS[n](given.data) for n in wanted]
    if given.simulated:
        groups = [simulated]
    elif given.random:
        groups = [lambda: random_splits(given.data, wanted, given.random, given.seed)]
    for group in groups:
        for case in group():
            if given.case in case.name:
                rows.append(judged(case))
                show(rows[-1])
    for name in ("moving", "standing"):
        ratios = [row[name]["ratio"] for row in rows if row[name]]
        above = [row for row in rows if row[name] and row[name]["ratio"] > BOUND]
        sure = [r for r in above if r[name]["ratio"] - 2 * r[name]["deviation"] > BOUND]
        if ratios:
            print(
                f"{name}: ratio {min(ratios):.3f} to {max(ratios):.3f}; above {BOUND} in {len(above)} of "
                f"{len(ratios)}, by more than two standard errors in {len(sure)}"
            )
    print(f"kept in {sum(row['kept'] for row in rows)} of {len(rows)} rows")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
