"""Is the model that was judged the model that is kept? One table of residuals, for recordings and simulated campaigns.

Every row is one call of ``identify`` with its defaults. Its columns are 100·‖τ − τ̂‖/‖τ‖ of all joints together, on a
recording that was not fitted:

- headline: what the report leads with
- saved: the robot loaded again from its TOML and its URDF file, the worse of both
- C: the generated C code, compiled by gcc and called sample by sample
- sign, tanh: plain weighted least squares of base parameters, rotors, viscous and Coulomb friction and offsets, links
  possible or not, with the sign of the speed and with a smooth sign
- given: the robot as it was given

Recordings are found in a folder of measured data that is not part of this repository (``--data``, LINKWISE_DATA, or
../shared/data). A campaign is a random arm with one of six laws of friction that moves along sums of sines; torques
have 2 % of noise and positions 10 µrad, the given robot has masses up to 30 % off and no friction, and the test
motion is another one, faster.

    python benchmarks/kept_models.py [--data FOLDER] [--only lwr4,campaigns] [--arms 10] [--json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import identification
import numpy as np

import linkwise as lw
from linkwise.identify import Identification, IdentificationWarning, Log, condition, identify, read_log
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.estimators import estimator_named
from linkwise.identify.estimation.friction import friction_named
from linkwise.identify.estimation.lag import shifted
from linkwise.identify.estimation.regression import Observer
from linkwise.identify.judging.validation import by_columns
from linkwise.identify.recordings.signals import Signals
from linkwise.robot.directions import directions_along, torques_along

RATE, SECONDS = 250.0, 20.0  # of campaigns [Hz], [s]
NOISE = 0.02  # of each torque's root mean square
POSITION_NOISE = 1e-5  # [rad]
CLOSE = 1.02  # saved robot and C code: at most this times the headline
UR10E_LAYOUT = {
    "columns": {"time": 1, "position": 2, "velocity": 8, "current": 14},
    "drive": {"gains": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]},
}
LAWS = ("viscous and Coulomb", "asymmetric", "smooth", "Stribeck", "load", "presliding")


@dataclass(frozen=True)
class Case:
    """Recordings to be fitted, and one to be predicted; ``band`` [Hz] in which its source judges it, if any."""

    group: str
    name: str
    robot: lw.Robot
    train: tuple[Log, ...]
    test: Log
    band: float | None = None


# -- recordings -------------------------------------------------------------------------------------------------------


def recordings(data: Path, wanted: list[str]) -> Iterator[Case]:
    """The measured ones."""
    for group in wanted:
        if group == "ur10e":
            yield from _ur10e(data)
        elif group == "lwr4":
            yield from _lwr4(data)
        else:
            for each in identification.RECORDINGS[group](data):
                yield Case(
                    group, f"{each.name}: {each.protocol}", each.robot, (each.train,), each.test, each.band
                )


def _ur10e(data: Path) -> Iterator[Case]:
    first = next(identification.ur10e(data))
    yield Case("ur10e", "UR10e: 12 harmonics → point to point", first.robot, (first.train,), first.test)
    folder = data / "ur10e" / "identification_data"
    harmonics = read_log(folder / "ur-20_02_19_14harm50sec.csv", first.robot, UR10E_LAYOUT)
    whole = read_log(folder / "ur-20_02_10-30sec_12harm.csv", first.robot, UR10E_LAYOUT)
    yield Case("ur10e", "UR10e: 12 harmonics → 14 harmonics", first.robot, (whole,), harmonics)


def _lwr4(data: Path) -> Iterator[Case]:
    robot = lw.load(data / "lwr4" / "kuka_lwr4.urdf")
    layout = {"drive": {"sensed": "joint"}}
    logs = [read_log(data / "lwr4" / f"measurements_{k}.npz", robot, layout) for k in (1, 2, 3)]
    yield Case("lwr4", "LWR4+: run 1 → 2", robot, (logs[0],), logs[1])
    yield Case("lwr4", "LWR4+: runs 1 + 2 → 3, twice as fast", robot, tuple(logs[:2]), logs[2])


# -- campaigns --------------------------------------------------------------------------------------------------------


def campaigns(arms: int, laws: int) -> Iterator[Case]:
    """Random arms of three to seven joints, each with each law."""
    for seed in range(arms):
        bare = lw.random_robot(seed, 3 + seed % 5, joints="R", rotor=False)
        for law in LAWS[:laws]:
            rng = np.random.default_rng((seed, LAWS.index(law)))
            truth = with_friction(bare, law, rng)
            train, test = (recorded(truth, rng, speed) for speed in (1.0, 1.3))
            yield Case("campaigns", f"arm {seed}, {bare.dof} joints: {law}", guess(bare, rng), (train,), test)


def with_friction(robot: lw.Robot, law: str, rng: np.random.Generator) -> lw.Robot:
    """The arm with rotors and friction in proportion to what its joints carry."""
    q, qd, qdd = motion(robot.dof, rng, 1.0)[1:]
    carried = np.sqrt((robot.inverse_dynamics(q, qd, qdd) ** 2).mean(axis=0))
    inertia = robot.mass_matrix(q).diagonal(axis1=1, axis2=2).mean(axis=0)
    given: dict[str, float] = {}
    for joint, torque, mass in zip(robot.joint_names, carried, inertia, strict=True):
        dry, share = float(torque * rng.uniform(0.05, 0.2)), rng.uniform(0.6, 1.0)
        numbers = {
            "rotor_inertia": float(mass * rng.uniform(0.1, 0.5)),
            "viscous_friction": float(torque * rng.uniform(0.02, 0.1)),
            "coulomb_friction": dry,
        }
        more = {
            "asymmetric": {"coulomb_friction_backward": float(dry * share)},
            "smooth": {"friction_speed": 0.05},
            "Stribeck": {"stribeck_friction": 0.5 * dry, "stribeck_speed": 0.1, "friction_speed": 0.01},
            "load": {"load_friction": float(rng.uniform(0.05, 0.15)), "friction_speed": 0.01},
            "presliding": {"presliding_distance": 3e-3, "friction_speed": 0.01},
        }.get(law, {})
        given |= {f"{joint}.{name}": value for name, value in (numbers | more).items()}
    return robot.with_parameters(given)


def motion(dof: int, rng: np.random.Generator, speed: float) -> tuple[np.ndarray, ...]:
    """(t, q, q̇, q̈) of sums of five sines."""
    t = np.arange(round(RATE * SECONDS)) / RATE
    q, qd, qdd = np.zeros((3, len(t), dof))
    for j in range(dof):
        for k in range(1, 6):
            w = 2 * np.pi * speed * k / 10.0
            a, phase = 0.6 * rng.normal() / k**0.5, rng.uniform(0, 2 * np.pi)
            q[:, j] += a * np.sin(w * t + phase)
            qd[:, j] += a * w * np.cos(w * t + phase)
            qdd[:, j] -= a * w * w * np.sin(w * t + phase)
    return t, q, qd, qdd


def recorded(truth: lw.Robot, rng: np.random.Generator, speed: float) -> Log:
    """A noisy recording of the arm."""
    t, q, qd, qdd = motion(truth.dof, rng, speed)
    tau = torques_along(truth, q, qd, qdd)
    tau = tau + NOISE * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Log(t, q + POSITION_NOISE * rng.normal(size=q.shape), tau, name=f"{truth.name}, speed {speed:g}")


def guess(robot: lw.Robot, rng: np.random.Generator) -> lw.Robot:
    """The arm as its drawing might have it: links up to 30 % too heavy or too light, no friction."""
    given = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint in robot.moving_joints:
        factor = rng.uniform(0.7, 1.3)
        for label in lw.model.LABELS:
            given[f"{joint.body_link}.{label}"] *= factor
    return robot.with_parameters(given)


# -- what is measured -------------------------------------------------------------------------------------------------


def judged(case: Case) -> dict:
    """One row of the table."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = identify(case.robot, case.train, validation=case.test, band=case.band)
    seconds = time.perf_counter() - begin
    shown = found.validation
    measured = shown.measured
    unseen = shifted(condition(case.test, cutoff=found.signals[0].cutoff), found.lag)
    _, (q, qd, qdd) = unseen.at_stamps()

    def total(torques: np.ndarray) -> float:
        return float(100 * np.linalg.norm(measured - torques) / np.linalg.norm(measured))

    with tempfile.TemporaryDirectory() as folder:
        saved = []
        for ending in ("toml", "urdf"):
            found.save(Path(folder) / f"robot.{ending}")
            loaded = lw.load(Path(folder) / f"robot.{ending}", strict=False)
            saved.append(total(torques_along(loaded, q, qd, qdd)))
        code = total(by_c(found, Path(folder), q, qd, qdd))
    sign, tanh = (plain(case, found, unseen, name) for name in ("coulomb", "tanh"))
    row = {"headline": shown.total, "saved": max(saved), "c": code, "sign": sign, "tanh": tanh}
    row |= {"given": found.of_prior[0].total, "reduced": found.of_reduced[0].total}
    return {
        "group": case.group,
        "case": case.name,
        **row,
        "in_band": shown.total_in_band if case.band else None,
        "kept": max(row["saved"], row["c"]) <= CLOSE * row["headline"],
        "best": row["headline"] <= min(row["sign"], row["tanh"]),
        "friction": [[term.text for term in terms] for terms in found.fit.friction],
        "seconds": seconds,
    }


def by_c(
    found: Identification,
    folder: Path,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    along: bool = True,
) -> np.ndarray:
    """Torques of the generated C code along a motion, or of single states."""
    found.write_code(folder / "robot.c")
    library_file = folder / f"robot_{along}.so"  # a loaded file must not be written again
    command = [
        "gcc",
        "-std=c99",
        "-O1",
        "-shared",
        "-fPIC",
        "-o",
        library_file,
        folder / "robot.c",
        "-lm",
    ]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(library_file))
    inputs, follows = [q, qd, qdd], along and found.remembers
    if follows:
        inputs.append(directions_along(found.robot, q, qd))
    function = library.inverse_dynamics_along if follows else library.inverse_dynamics
    rows = [np.ascontiguousarray(x) for x in inputs]
    torques = np.zeros((len(q), found.robot.dof))
    pointers = [(x.ctypes.data, x.strides[0]) for x in (*rows, torques)]
    for k in range(len(q)):
        function(*(ctypes.c_void_p(start + k * stride) for start, stride in pointers))
    return torques


def plain(case: Case, found: Identification, unseen: Signals, name: str) -> float:
    """The same by weighted least squares alone, with textbook friction."""
    robot, signals = case.robot, found.signals
    observer = Observer(robot, signals)
    friction = friction_named(name, robot.dof, len(observer.axes) - robot.dof)
    regression = observer.regression(friction)
    base = base_of(robot, observer.axes, friction)
    x = np.zeros(len(regression.labels))
    x[list(base.columns)] = estimator_named("weighted")(regression.pick(base.columns)).x
    return by_columns(robot, x, regression.terms, unseen).total


# -- what is shown ----------------------------------------------------------------------------------------------------

COLUMNS = ("headline", "saved", "c", "sign", "tanh", "given", "reduced")


def show(rows: list[dict]) -> None:
    print(f"{'100·‖τ − τ̂‖/‖τ‖ [%]':<52}" + "".join(f"{name:>9}" for name in COLUMNS))
    for row in rows:
        marks = "" if row["kept"] else "  NOT KEPT"
        marks += "" if row["best"] else "  plain least squares are better"
        band = "" if row["in_band"] is None else f"  ({row['in_band']:.2f} in the band)"
        print(f"{row['case']:<52}" + "".join(f"{row[name]:9.2f}" for name in COLUMNS) + band + marks)
    print(
        f"{len(rows)} rows: saved robot and C code within 2 % of the headline in {sum(r['kept'] for r in rows)}, "
        f"headline at most that of plain least squares in {sum(r['best'] for r in rows)}; "
        f"{sum(r['seconds'] for r in rows):.0f} s of identification"
    )


def main(arguments: list[str] | None = None) -> int:
    groups = [*identification.RECORDINGS, "campaigns"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("LINKWISE_DATA", identification.DEFAULT_DATA))
    )
    parser.add_argument("--only", default=",".join(groups), help="groups, separated by commas")
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--laws", type=int, default=len(LAWS))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    wanted = given.only.split(",")
    unknown = [name for name in wanted if name not in groups]
    if unknown:
        print(f"no group {unknown[0]!r}; there are {', '.join(groups)}", file=sys.stderr)
        return 2
    measured = [name for name in wanted if name != "campaigns"]
    if measured and not given.data.is_dir():
        print(f"no folder {given.data}: only campaigns", file=sys.stderr)
        measured = []
    cases = list(recordings(given.data, measured))
    if "campaigns" in wanted:
        cases += campaigns(given.arms, given.laws)
    rows = [judged(case) for case in cases]
    if given.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
