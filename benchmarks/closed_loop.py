"""Least squares, instrumental variables, DIDIM and CLOE on simulated recordings of a loose PD loop.

The true robot is a fifth heavier than the file says and has friction. Positions are recorded with noise, torques with
2 %; filters are chosen from the data, or cut off far too high or too low. The error is that of torques at random
states, 100·‖Y(x − x*)‖/‖Y x*‖ with the true base parameters x*: 2 % noise, and no model error.

    python benchmarks/closed_loop.py [--robots two_link puma560] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np

import linkwise as lw
from linkwise import identify
from linkwise.control import GravityPD
from linkwise.identify.campaign import true_parameters
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.friction import friction_named
from linkwise.motion import FourierSeries
from linkwise.simulate import simulate

FREQUENCY = 25.0  # [rad/s] of the loop
HARMONICS = 5
FRICTION = {"rotor_inertia": 0.05, "viscous_friction": 0.3, "coulomb_friction": 0.5}
NAMES = ("least squares", "idim-iv", "didim", "cloe")
CASES = ((1e-5, None), (3e-4, None), (1e-3, None), (1e-3, 60.0), (3e-4, 2.0))
"""(noise of positions [rad], cut-off [Hz])."""


def recording(name: str, noise: float, seconds: float, seed: int = 0):
    """(robot as given, true robot, reference, controller, log)."""
    given = lw.load(name)
    links = zip(given.parameter_labels[: 10 * given.dof], given.parameters.tolist(), strict=False)
    more = {f"{joint}.{key}": value for joint in given.joint_names for key, value in FRICTION.items()}
    truth = given.with_parameters({label: 1.2 * value for label, value in links} | more)
    rng = np.random.default_rng(seed)
    shape = (2, HARMONICS, given.dof)
    sine, cosine = rng.normal(size=shape) * 0.5 / np.arange(1, HARMONICS + 1)[:, None]
    reference = FourierSeries(np.zeros(given.dof), sine, cosine, seconds)
    law = GravityPD(given, GravityPD.gains_for(truth, FREQUENCY), torque_limits=False)
    run = simulate(truth, law, reference, duration=seconds, step=5e-4, every=10, warn=False)
    size = 0.02 * np.sqrt((run.tau**2).mean(axis=0))
    q = run.q + noise * rng.normal(size=run.q.shape)
    tau = run.tau + size * rng.normal(size=run.tau.shape)
    return given, truth, reference, law, identify.Log(run.t, q, tau, name=name)


def _column(robot: lw.Robot, label: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """The torques (states, n) that a unit of a parameter causes."""
    owner, _, name = label.rpartition(".")
    if label in robot.parameter_labels[: 10 * robot.dof]:
        return robot.regressor(q, qd, qdd)[..., robot.parameter_labels.index(label)]
    shape = {"rotor_inertia": qdd, "viscous_friction": qd, "coulomb_friction": np.sign(qd)}.get(
        name, np.ones_like(q)
    )
    return shape * (np.arange(robot.dof) == robot.joint_names.index(owner))


def measured(name: str, noise: float, cutoff: float | None, seconds: float, names: tuple[str, ...]) -> dict:
    """Errors [%] by method, and seconds."""
    given, truth, reference, law, log = recording(name, noise, seconds)
    base = base_of(truth, np.eye(truth.dof), friction_named("coulomb", truth.dof))
    wanted = base.combination @ true_parameters(truth, base.parameter_labels)
    states = np.random.default_rng(1).normal(size=(3, 300, truth.dof))
    Y = np.stack([_column(given, label, *states) for label in base.labels], axis=-1)
    loop = {"reference": reference, "controller": law}
    methods = {
        "least squares": lambda: identify.identify(given, log, friction="coulomb", cutoff=cutoff),
        "idim-iv": lambda: identify.identify(
            given, log, friction="coulomb", cutoff=cutoff, estimator="idim-iv"
        ),
        "didim": lambda: identify.didim(given, log, friction="coulomb", cutoff=cutoff, **loop),
        "cloe": lambda: identify.cloe(given, log, friction="coulomb", cutoff=cutoff, **loop),
    }
    row: dict = {"robot": name, "noise": noise, "cutoff": cutoff}
    for method in names:
        run, begun = methods[method], time.monotonic()
        try:
            x = run().estimate.x
            row[method] = 100 * float(np.linalg.norm(Y @ (x - wanted)) / np.linalg.norm(Y @ wanted))
        except lw.LinkwiseError as error:
            row[method] = None
            row[f"{method} failed"] = str(error)
        row[f"{method} seconds"] = time.monotonic() - begun
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["two_link", "puma560"])
    parser.add_argument(
        "--quick", action="store_true", help="one case of the first robot by two methods, four seconds long"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    robots, cases, names = given.robots, CASES, NAMES
    if given.quick:
        robots, cases, names = robots[:1], CASES[2:3], ("least squares", "didim")
    seconds = 4.0 if given.quick else 12.0
    if not given.json:
        print(
            f"{'robot':<10}{'noise [rad]':>12}{'cut-off [Hz]':>14}" + "".join(f"{name:>15}" for name in names)
        )
    rows = []
    for robot in robots:
        for case in cases:
            rows.append(measured(robot, *case, seconds, names))
            if not given.json:
                print(_line(rows[-1], names), flush=True)
    if given.json:
        print(json.dumps(rows, indent=1))


def _line(row: dict, names: tuple[str, ...]) -> str:
    cut = "chosen" if row["cutoff"] is None else f"{row['cutoff']:g}"
    cells = "".join(f"{'failed' if row[name] is None else f'{row[name]:.2f} %':>15}" for name in names)
    return f"{row['robot']:<10}{row['noise']:>12g}{cut:>14}{cells}"


if __name__ == "__main__":
    main()
