"""The report of ``linkwise demo``: the PUMA 560 experiment on one page."""

from __future__ import annotations

import platform
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import SimulationWarning
from linkwise.report import Report, Section, Text, sections

if TYPE_CHECKING:
    from linkwise.cli.parts.counting import Row
    from linkwise.cli.parts.experiment import Experiment
    from linkwise.robot.robot import Robot

TIMED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
STATES, ROUNDS = 300, 5
SHOWN = 0.66  # of the motion, in the picture
BANDWIDTH = 15.0  # [rad/s] of the controllers
PERIOD = 2e-3  # [s]


def write(done: Experiment, counted: list[Row], folder: Path) -> Path:
    """Write report.html and its figures into the folder; the path of the report."""
    robot, motion, tau = done.robot, done.motion, done.tau
    assert motion.t is not None
    report = Report(
        "PUMA 560: the experiment of 1990",
        "K. Kozłowski, New computational algorithms for a discrete Kalman filter in robot dynamics, section 5",
    )
    words = "The shoulder is joint 5 of the paper, which counts from the tip, and its torque is the one of its Fig. 3."
    report.add(sections.torques(robot, motion.t, tau, words=words))
    report.add(sections.motion(robot, motion.t, motion.q, motion.qd))
    chosen = int(SHOWN * len(motion.t))
    report.add(
        sections.robot(
            robot,
            motion.q[chosen],
            ghosts=[motion.q[0], motion.q[-1]],
            trace=robot.pose(motion.q)[:, :3, 3],
            caption=f"at {motion.t[chosen]:.1f} s, start and end poses faded; the line is the wrist's path",
            friction=False,
        )
    )
    report.add(
        sections.agreement(
            [sections.Agreement(e.function, e.algorithm, e.error, e.residual) for e in done.judged],
            [
                "inverse dynamics: torques against newton_euler; forward dynamics: accelerations against the motion's",
                "residual: ‖ID(q̈) − τ‖ / (‖τ‖ + ‖b‖ + ‖M‖‖q̈‖), worst of the points",
            ],
        )
    )
    report.add(_operations(counted))
    report.add(_timings(robot))
    report.add(_tracking(robot, motion.q[0], motion.q[-1], float(motion.t[-1])))
    report.add(
        sections.facts(
            {
                "command": "linkwise demo",
                "robot": f"{robot.name}, {robot.dof} joints, parameters of Corke and Armstrong, no friction",
                "motion": f"all joints at once along quintics, {motion.t[-1]:g} s, {len(motion.t)} points",
                "library": _versions(),
                "machine": f"{platform.machine()}, {platform.system()}",
            }
        )
    )
    report.write_figures(folder / "figures")
    return report.write(folder / "report.html")


def _operations(counted: list[Row]) -> Section:
    from linkwise.cli.parts.counting import totals

    def pair(operations, iterations: int) -> tuple[int, int]:
        multiplications, additions, divisions = totals(operations, iterations)
        return multiplications + divisions, additions

    rows = [
        sections.Counts(
            row.function,
            row.algorithm,
            pair(row.own, row.iterations),
            None if row.general_regrouped is None else pair(row.general_regrouped, row.iterations),
            row.printed,
        )
        for row in counted
    ]
    notes = [
        "Multiplications with divisions / additions, without sines and cosines; conjugate gradients: 6 iterations. The "
        "general arm has six revolute joints, axes parallel or perpendicular, all offsets and ten parameters per link."
    ]
    return sections.operations(rows, "PUMA 560", notes)


def _timings(robot: Robot) -> Section:
    """Ours, and Pinocchio's where it is installed, on one core."""
    from linkwise.bench.clock import is_busy, one_core
    from linkwise.bench.comparison import Group, compare
    from linkwise.bench.peers import absent, find
    from linkwise.bench.subject import Subject, without_drives

    plain = without_drives(robot)
    busy = is_busy()
    with tempfile.TemporaryDirectory() as folder, one_core():
        installed, missing = find(Subject.of(plain, Path(folder)), ("linkwise", "pinocchio"))
        timed = [
            t for name in TIMED for t in compare(plain, installed, Group(name, STATES, "float64"), ROUNDS)
        ]
    rows = [
        sections.Timing(t.group.function, f"{t.who} {t.version}", t.nanoseconds)
        for t in timed
        if t.nanoseconds
    ]
    notes = [
        f"Nanoseconds per state of {STATES} states in one call, float64, one core, without friction and rotors."
    ]
    notes += [f"{line}." for line in absent(missing)]
    if busy:
        notes.append("Other programs were running on this machine: the figures are rough.")
    return sections.timings(rows, notes)


def _tracking(robot: Robot, first: np.ndarray, last: np.ndarray, duration: float) -> Section:
    """The same motion under two controllers whose model lacks a load of 2 kg."""
    from linkwise.control import ComputedTorque, Gains, GravityPD
    from linkwise.motion import quintic
    from linkwise.simulate import simulate

    reference = quintic(first.tolist(), last.tolist(), duration)
    loaded = robot.with_payload(2.0, (0.0, 0.0, 0.1))
    gains = Gains.from_frequency(BANDWIDTH)
    felt = np.diagonal(robot.mass_matrix(np.zeros(robot.dof)))
    laws = {
        "computed torque": ComputedTorque(robot, gains),
        "PD with gravity compensation": GravityPD(robot, Gains(felt * gains.kp, felt * gains.kd)),
    }
    errors, t = {}, np.zeros(1)
    for name, law in laws.items():
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", SimulationWarning
            )  # the paper's motion leaves the ranges of the file
            simulation = simulate(loaded, law, reference, duration=duration, step=PERIOD, every=5)
        errors[f"{name}, 2 kg unknown to the model"] = simulation.error
        t = simulation.t
    simulation = sections.tracking(robot, t, errors)
    words = "The motion is the paper's and leaves the ranges of some joints; joint stops are not simulated."
    return Section(simulation.title, [*simulation.parts, Text(words)])


def _versions() -> str:
    from linkwise import __version__

    return f"linkwise {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
