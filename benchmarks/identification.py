"""Identification of measured robots: relative residuals beside published ones, and how long it takes.

Recordings of seven real arms, found in a folder of measured data that is not part of this repository (``--data``, the
environment variable LINKWISE_DATA, or ../shared/data). Each is identified twice by the same call, with nothing
but the protocol (rows, drive gains, coupling) told apart: with the columns of plain least squares (rotor inertia,
viscous, Coulomb, offset), and with the default friction. Both are physically consistent. The figures to reach are those
of plain weighted least squares with the same columns, as the folders' SOURCE.txt state them.

Judged is 100·‖τ − τ̂‖/‖τ‖ per joint on torques as recorded, except for two recordings: TX40, whose source filters at
100 Hz, and xMate3, whose motor torques have a ripple that no model of links and friction predicts (over 20 % of the
torques of five joints is above 10 Hz); its source names no filter, and 8 Hz was chosen by hand, because plain least
squares come near its figures there.
LWR4+ has a second row, because plain least squares reach its figure only without the ends of the recordings.

    python benchmarks/identification.py [--data FOLDER] [--only ur10e,tx40] [--no-speed] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import identify as identification
from linkwise.identify import (
    Identification,
    IdentificationWarning,
    Log,
    condition,
    identify,
    read_log,
)
from linkwise.identify.estimation.lag import shifted
from linkwise.identify.estimation.prior import pseudo_inertias
from linkwise.identify.judging.competitors import best_competitor
from linkwise.identify.judging.validation import by_columns
from linkwise.model.dh import DhJoint, chain

BASELINE_SLACK = 1.05  # column (a): within 5 % of every figure
DEFAULT_DATA = Path(__file__).parents[1].parent / "shared" / "data"


@dataclass(frozen=True)
class Recording:
    """A recording with its protocol. ``figures`` are per joint [%], or one for all joints together.

    ``band`` [Hz]: residuals are judged below it. ``total`` [%]: with the default friction, this is judged instead.
    """

    name: str
    protocol: str
    robot: lw.Robot
    train: Log
    test: Log
    figures: tuple[float, ...]
    band: float | None = None
    total: float | None = None


# -- the recordings ---------------------------------------------------------------------------------------------------


def ur10e(data: Path) -> Iterator[Recording]:
    robot = lw.load(data / "ur10e" / "ur10e.urdf")
    layout = {
        "columns": {"time": 1, "position": 2, "velocity": 8, "current": 14},
        "drive": {"gains": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]},
    }
    folder = data / "ur10e"
    train = folder / "identification_data" / "ur-20_02_10-30sec_12harm.csv"
    test = folder / "validation_data" / "ur-20_01_17-ptp_10_points.csv"
    yield Recording(
        "UR10e",
        "12 harmonics, rows 635-3510, then point to point, rows 700-4200",
        robot,
        read_log(train, robot, layout, rows=(635, 3510)),
        read_log(test, robot, layout, rows=(700, 4200)),
        (12.8, 4.9, 5.7, 9.8, 15.8, 55.0),
    )


def lwr4(data: Path) -> Iterator[Recording]:
    robot = lw.load(data / "lwr4" / "kuka_lwr4.urdf")
    layout = {"drive": {"sensed": "joint"}}
    first, second = (read_log(data / "lwr4" / f"measurements_{k}.npz", robot, layout) for k in (1, 2))
    yield Recording("LWR4+", "run 1, then run 2", robot, first, second, (1.86,))
    inner = [log.between(1.5, log.duration - 1.5) for log in (first, second)]
    yield Recording("LWR4+ inner", "the same without 1.5 s at both ends", robot, *inner, (1.86,))


def ur10(data: Path) -> Iterator[Recording]:
    robot = lw.load(data / "urdf" / "example-robot-data" / "ur10_robot.urdf")
    log = read_log(data / "ur10" / "ur10_exciting_trajectory.DERIVED.csv", robot)
    figures = (16.9, 6.7, 5.9, 12.6, 13.8, 16.5)
    yield Recording("UR10", "first 70 %, then last 30 %", robot, *log.split(0.7), figures)


def tx40(data: Path) -> Iterator[Recording]:
    robot = lw.load(data / "tx40" / "tx40_mdh_modified.urdf")
    coupling = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    coupling[5, 4] = 32.0
    layout = {
        "recording": {"rate": 5000.0},
        "drive": {"coupling": coupling.tolist(), "offset": [0, -np.pi / 2, np.pi / 2, 0, 0, 0]},
    }
    files = {"position": data / "tx40" / "pos_read_data.csv", "torque": data / "tx40" / "curr_data.csv"}
    log = read_log(files, robot, layout)
    figures = (9.5, 11.7, 19.1, 16.0, 19.3, 18.4)
    yield Recording("TX40", "all data, wrist coupling, 100 Hz", robot, log, log, figures, 100.0, 12.0)


def xmate(data: Path) -> Iterator[Recording]:
    turns = np.radians([0, -90, 90, -90, 90, -90, 90])
    offsets = (0.3415, 0.0, 0.394, 0.0, 0.366, 0.0, 0.2503)
    joints = [
        DhJoint(name=f"joint{k}", link=f"link{k}", type="revolute", alpha=turn, a=0.0, d=offset)
        for k, (turn, offset) in enumerate(zip(turns, offsets, strict=True), 1)
    ]
    robot = lw.Robot.from_model(chain("xmate3", joints, "mdh"))
    kinds = {"position": "ang", "velocity": "vel", "torque": "motor"}
    files = {kind: data / "xmate" / f"excit_{name}_record.txt" for kind, name in kinds.items()}
    log = read_log(files, robot, {"recording": {"rate": 1000.0}})
    figures = (8.7, 18.9, 8.9, 8.5, 12.3, 31.2, 13.8)
    yield Recording("xMate3", "motor torque, 70/30, 8 Hz", robot, *log.split(0.7), figures, 8.0)


def panda(data: Path) -> Iterator[Recording]:
    robot, folder = lw.load("panda"), data / "panda"
    t = np.loadtxt(folder / "exciting_traj_time.txt")
    q, qd, tau = (
        np.loadtxt(folder / f"exciting_traj_{name}.txt").reshape(len(t), 7)
        for name in ("positions", "velocity", "torques")
    )
    for name, velocities in (("Panda", qd), ("Panda without velocities", None)):
        log = Log(t=t, q=q, qd=velocities, tau=tau, name=name)
        yield Recording(name, "first 70 %, then last 30 %", robot, *log.split(0.7), (2.82,))


def airbot(data: Path) -> Iterator[Recording]:
    robot = lw.load(data / "airbot" / "airbot_play_v3_0_gripper.urdf")
    logs = []
    for name, folder in (("chirp", data / "airbot"), ("trap", data / "airbot" / "trap")):
        q, tau = (
            np.loadtxt(folder / f"identification_{kind}_real.csv", delimiter=",", skiprows=1)
            for kind in ("q", "tau")
        )
        logs.append(Log(t=np.arange(len(q)) / 100.0, q=q, tau=tau, name=name))
    yield Recording("Airbot", "chirp, then trapezoids", robot, *logs, (14.8,))
    yield Recording("Airbot", "trapezoids, then chirp", robot, *reversed(logs), (15.4,))


RECORDINGS: dict[str, Callable[[Path], Iterator[Recording]]] = {
    "ur10e": ur10e,
    "lwr4": lwr4,
    "ur10": ur10,
    "tx40": tx40,
    "xmate": xmate,
    "panda": panda,
    "airbot": airbot,
}


# -- what is measured -------------------------------------------------------------------------------------------------


def judged(recording: Recording, friction: str) -> dict:
    """One identification and how well it predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        begin = time.perf_counter()
        found = identify(
            recording.robot,
            recording.train,
            validation=recording.test,
            friction=friction,
            band=recording.band,
        )
        seconds = time.perf_counter() - begin
    shown = found.validation
    per_joint = shown.in_band if recording.band else shown.relative
    total = shown.total_in_band if recording.band else shown.total
    return {
        "relative": [float(value) for value in per_joint],
        "total": total,
        "moving": [float(value) for value in shown.moving],
        "as_recorded": [float(value) for value in shown.relative],
        "plain": plain(recording, found),
        "beside": beside(found) if friction == "auto" else None,
        "physically_consistent": physically_consistent(found),
        "terms": len(found.fit.regression.terms),
        "cutoff": found.signals[0].cutoff,
        "seconds": seconds,
    }


def plain(recording: Recording, found: Identification) -> list[float]:
    """The same by weighted least squares alone, bodies as they come: per joint, then the total."""
    x = np.zeros(len(found.fit.x))
    x[list(found.base.columns)] = found.estimate.x
    signals = shifted(condition(recording.test, cutoff=found.signals[0].cutoff), found.lag)
    shown = by_columns(found.prior, x, found.fit.regression.terms, signals, recording.band)
    if recording.band:
        return [*shown.in_band.tolist(), shown.total_in_band]
    return [*shown.relative.tolist(), shown.total]


def beside(found: Identification) -> dict:
    """The best of plain least squares over two laws and three cut-offs, and how much of its error the default has."""
    best = best_competitor(found.competitors, 0)
    ours, other = found.validation, best.validations[0]
    return {
        "text": best.text,
        "total": other.total,
        "moving": other.total_moving,
        "standing": other.total_standing,
        "ours": [ours.total, ours.total_moving, ours.total_standing],
        "ratio": ours.total / other.total,
    }


def physically_consistent(found: Identification) -> bool:
    """Whether every link's pseudo-inertia is positive definite."""
    P = np.tensordot(found.fit.links.reshape(-1, 10), pseudo_inertias(), 1)
    return bool((np.linalg.eigvalsh(P) > 0).all())


def row(recording: Recording) -> dict:
    """Both columns for one recording, and whether they reach the figures."""
    baseline, default = judged(recording, "coulomb"), judged(recording, "auto")
    figures, joint_wise = np.array(recording.figures), len(recording.figures) > 1
    a = np.array(baseline["relative"] if joint_wise else [baseline["total"]])
    b = np.array(default["relative"] if joint_wise else [default["total"]])
    below = b < figures if recording.total is None else np.array([default["total"] < recording.total])
    return {
        "recording": recording.name,
        "protocol": recording.protocol,
        "figures": list(recording.figures),
        "baseline": baseline,
        "default": default,
        "baseline_reached": bool((a <= BASELINE_SLACK * figures).all()) and baseline["physically_consistent"],
        "default_reached": bool(below.all()) and default["physically_consistent"],
    }


def speed(data: Path) -> dict:
    """Seconds for everything about UR10e, and the regressor beside Pinocchio's."""
    recording = next(ur10e(data))
    result: dict = {"samples": len(recording.train)}
    for name in ("first", "again"):
        wall, processor = time.perf_counter(), time.process_time()
        identification.all_estimates(identify(recording.robot, recording.train, validation=recording.test))
        result[f"{name}_s"] = time.perf_counter() - wall
        result[f"{name}_processor_s"] = time.process_time() - processor
    return result | regressor_speed(data, recording)


def regressor_speed(data: Path, recording: Recording, repeats: int = 5) -> dict:
    """Microseconds per sample of the regressor, and of a loop over Pinocchio's."""
    try:
        import pinocchio as pin
    except ImportError:
        return {}
    model = pin.buildModelFromUrdf(str(data / "ur10e" / "ur10e.urdf"))
    state = model.createData()
    q = recording.train.q
    qd, qdd = np.gradient(q, axis=0), np.gradient(np.gradient(q, axis=0), axis=0)

    def ours() -> np.ndarray:
        return recording.robot.regressor(q, qd, qdd, threads=1)

    def theirs() -> np.ndarray:
        return np.array(
            [pin.computeJointTorqueRegressor(model, state, *x) for x in zip(q, qd, qdd, strict=True)]
        )

    ours()
    best = {"ours": np.inf, "pinocchio": np.inf}
    for _ in range(repeats):
        for name, work in (("ours", ours), ("pinocchio", theirs)):
            begin = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - begin)
    each = {f"regressor_{name}_us": 1e6 * best[name] / len(q) for name in best}
    return each | {"regressor_ratio": best["pinocchio"] / best["ours"]}


# -- what is shown ----------------------------------------------------------------------------------------------------


def numbers(values: list[float]) -> str:
    return " ".join(f"{value:5.2f}" for value in values)


def show(found: dict) -> None:
    print(f"\n{found['recording']}: {found['protocol']}")
    print(f"  {'to reach':26} {numbers(found['figures'])}")
    for name, title in (("baseline", "(a) baseline's columns"), ("default", "(b) default friction")):
        one = found[name]
        verdict = "reached" if found[f"{name}_reached"] else "NOT REACHED"
        bodies = "possible bodies" if one["physically_consistent"] else "IMPOSSIBLE BODIES"
        print(
            f"  {title:26} {numbers(one['relative'])}  total {one['total']:.2f} %, {one['terms']} terms, "
            f"{bodies}, {one['seconds']:.1f} s: {verdict}"
        )
    *joints, total = found["baseline"]["plain"]
    print(f"  {'(a) plain least squares':26} {numbers(joints)}  total {total:.2f} %")
    best = found["default"]["beside"]
    print(
        f"  (b) as recorded, all, moving, standing: {numbers(best['ours'])}; {best['text']}: "
        f"{numbers([best['total'], best['moving'], best['standing']])}, ratio {best['ratio']:.3f}"
    )
    for name, letter in (("baseline", "a"), ("default", "b")):
        print(f"  {f'({letter}) |q̇| > 0.01 only':26} {numbers(found[name]['moving'])}")
        if found[name]["as_recorded"] != found[name]["relative"]:
            print(f"  {f'({letter}) torque as recorded':26} {numbers(found[name]['as_recorded'])}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LINKWISE_DATA", DEFAULT_DATA)))
    parser.add_argument("--only", default=",".join(RECORDINGS), help="recordings, separated by commas")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.only.split(",") if name not in RECORDINGS]
    if unknown or not chosen.data.is_dir():
        what = f"no recording {unknown[0]!r}" if unknown else f"no folder {chosen.data}"
        print(f"{what}; recordings: {', '.join(RECORDINGS)}", file=sys.stderr)
        return 2
    names = chosen.only.split(",")
    timed = {} if chosen.no_speed else speed(chosen.data)
    rows = [row(recording) for name in names for recording in RECORDINGS[name](chosen.data)]
    if chosen.json:
        print(json.dumps({"recordings": rows, "speed": timed}, indent=1))
        return 0
    print("Relative residuals 100·‖τ − τ̂‖/‖τ‖ [%], joint by joint")
    for found in rows:
        show(found)
    if timed:
        print(
            f"\nUR10e, {timed['samples']} samples, all estimators: {timed['first_s']:.1f} s with kernels compiled on "
            f"the way ({timed['first_processor_s']:.1f} s of one processor), then {timed['again_s']:.1f} s "
            f"({timed['again_processor_s']:.1f} s)"
        )
    if "regressor_ratio" in timed:
        print(
            f"regressor of a sample: {timed['regressor_ours_us']:.2f} µs, a loop over Pinocchio's "
            f"{timed['regressor_pinocchio_us']:.2f} µs: {timed['regressor_ratio']:.0f} times as fast, one core"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
