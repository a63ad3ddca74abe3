"""The real-time loop with a simulated plant: it controls, it reports, and whatever goes wrong it stops
safely.

The machine may be busy: tests of behaviour do not depend on deadlines being met, only on who is blamed for
missed ones.
"""

from __future__ import annotations

import errno
import threading
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.control import Gains
from linkwise.motion import Moment, Trajectory
from linkwise.realtime import Fault, PlantDriver, PumaDriver, SimulatedPlant, StoppedError, TwoRateController
from linkwise.realtime.build import BuildError, compiler, library
from linkwise.simulate.puma_hardware import PumaHardware, homed

try:
    compiler()
except BuildError as error:
    pytest.skip(str(error), allow_module_level=True)

END = np.array([0.5, 0.4, -0.3, 0.2, 0.4, 0.1])
MOVE = motion.quintic(np.zeros(6), END, 0.4)
GAINS = Gains.from_frequency(15.0)
SAFE = {"lower": -3.0, "upper": 3.0, "speed": 20.0}


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma260")


def controller(robot, **options):
    options = {"limits": SAFE, "deadlines": 0, "oldest": 10.0, "patience": 5.0} | options
    return TwoRateController(robot, GAINS, **options)


@pytest.fixture(scope="module")
def two_seconds(robot, tmp_path_factory):
    """1 kHz for two seconds, background at 50 Hz."""
    log = tmp_path_factory.mktemp("log") / "run.csv"
    return controller(robot).run(MOVE, 2.0, log=log), log


def test_the_loop_finishes_and_tracks(two_seconds):
    report, _ = two_seconds
    assert report.finished
    assert report.check() is report
    assert report.cycles[0] == 0
    assert (np.diff(report.cycles) >= 1).all()
    error = report.q - MOVE.at(report.cycles * 1e-3).q
    if sum(report.missed.values()) == 0:
        assert len(report.rows) == 2000
        assert np.abs(error).max() < 5e-3
    assert np.abs(error[-1]).max() < 2e-2


def test_no_missed_deadline_is_ours(two_seconds):
    report, _ = two_seconds
    assert report.missed["ours"] == 0
    assert np.median(report.task) < 0.5e-6
    assert np.median(report.finish) < 100e-6


def test_the_report_has_period_jitter_and_age(two_seconds):
    report, _ = two_seconds
    assert np.median(report.periods) == pytest.approx(1e-3, rel=0.05)
    assert (report.late >= -1e-6).all()
    assert (report.age >= -1e-3).all()
    assert np.median(report.age) < 0.1
    assert sum(count for _, count in report.histogram()) == len(report.rows)
    text = report.summary()
    for word in (
        "cycles of 1 ms: finished",
        "jitter",
        "age of coefficients",
        "missed deadlines: 0 ours",
        "run.csv",
    ):
        assert word in text


def test_the_log_is_on_disk(two_seconds):
    report, log = two_seconds
    lines = log.read_text().splitlines()
    assert lines[0].startswith("time,late,task,finish,processor,inertia_age,velocity_age,missed,q1,")
    values = np.array([[float(x) for x in line.split(",")] for line in lines[1:] if not line.startswith("#")])
    np.testing.assert_allclose(values, report.rows, rtol=1e-8, atol=1e-12)
    assert lines[-1] == "# finished"


FAULTS = {
    "nan": (Fault("nan", 100, 2), "a sensor of joint3 gave nan"),
    "lost": (Fault("lost", 100), "the plant did not answer"),
    "hot": (Fault("hot", 100, 4), "joint5 reports over-temperature"),
    "jump": (Fault("jump", 100, 0, 10.0), "joint1 crossed its position limit at 10"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_bring_torques_to_zero_and_say_why(robot, tmp_path, name):
    fault, reason = FAULTS[name]
    log = tmp_path / "run.csv"
    report = controller(robot, plant=SimulatedPlant(robot, fault=fault)).run(MOVE, 0.5, log=log)
    assert not report.finished
    assert reason in report.reason
    assert report.cycle >= 100
    assert (report.tau[-1] == 0.0).all()
    assert (report.tau[50] != 0.0).all()
    with pytest.raises(StoppedError, match=reason.split()[-1]):
        report.check()
    lines = log.read_text().splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == len(report.rows) + 1
    assert reason in lines[-1]


def test_the_plant_really_gets_zero_torques(robot):
    plant = Recording(robot, nan_from=50)
    report = controller(robot, plant=plant, period=5e-3).run(MOVE, 1.0)
    assert "a sensor of joint1 gave nan" in report.reason
    assert (plant.written[-1] == 0.0).all()
    assert plant.closed


@pytest.mark.parametrize(("kind", "blamed"), [("sleep", "the plant's"), ("spin", "ours")])
def test_missed_deadlines_stop_and_are_attributed(robot, kind, blamed):
    plant = SimulatedPlant(robot, fault=Fault(kind, 100, 0, 0.006))
    report = controller(robot, plant=plant, period=2e-3, deadlines=8).run(MOVE, 1.0)
    assert "deadlines were missed in a row" in report.reason
    assert report.missed[blamed] >= 2
    assert report.missed["ours" if blamed != "ours" else "the plant's"] == 0


def test_the_watchdog_stops_a_loop_that_does_not_come_back(robot):
    plant = SimulatedPlant(robot, fault=Fault("sleep", 100, 0, 0.6))
    report = controller(robot, plant=plant, patience=0.2).run(MOVE, 1.0)
    assert "the watchdog found no cycle finished for 0.2" in report.reason


def test_a_driver_that_never_comes_back_does_not_hang_the_caller(robot):
    plant = Recording(robot, hang_from=20)
    report = controller(robot, plant=plant, period=5e-3, patience=0.3).run(MOVE, 1.0)
    assert "watchdog" in report.reason
    assert (plant.written[-1] == 0.0).all()
    assert not plant.closed
    plant.release.set()


def test_old_coefficients_stop(robot):
    report = controller(robot, background=0.4, oldest=0.05).run(MOVE, 0.5)
    assert "the coefficients were 0.0" in report.reason


def test_speed_limit(robot):
    report = controller(robot, limits={**SAFE, "speed": 0.5}).run(MOVE, 0.5)
    assert "crossed its speed limit at" in report.reason


class Broken(Trajectory):
    """A motion that goes wrong after a tenth of a second."""

    dof, begin, end = 6, 0.0, 1.0

    def __init__(self, value):
        self.value = value

    def _inside(self, t):
        q = np.where(t[:, np.newaxis] > 0.1, self.value, np.zeros(6))
        return Moment(q, np.zeros_like(q), np.zeros_like(q))


@pytest.mark.parametrize(
    ("value", "reason"),
    [(np.nan, "the reference has a number that is not finite"), (1e308, "the torque of joint1 came out as")],
)
def test_numbers_that_are_not_finite_stop(robot, value, reason):
    report = controller(robot).run(Broken(value), 0.3)
    assert reason in report.reason
    assert (report.tau[-1] == 0.0).all()


def test_torques_stay_within_the_effort_limits(robot):
    report = controller(robot, limits={**SAFE, "effort": 2.0}).run(MOVE, 0.3)
    assert np.abs(report.tau).max() == 2.0


class Recording(PlantDriver):
    """A driver in Python: the robot stands still, and what is written is remembered."""

    def __init__(self, robot, nan_from=None, hang_from=None, fail_from=None):
        self.dof, self.nan_from, self.hang_from, self.fail_from = robot.dof, nan_from, hang_from, fail_from
        self.written, self.cycles, self.closed = [], [], False
        self.release = threading.Event()

    def read(self, cycle):
        self.cycles.append(cycle)
        if self.hang_from is not None and cycle >= self.hang_from:
            self.release.wait(30)
        if self.fail_from is not None and cycle >= self.fail_from:
            raise OSError("the cable is out")
        q = np.zeros(self.dof)
        if self.nan_from is not None and cycle >= self.nan_from:
            q[0] = np.nan
        return q, np.zeros(self.dof), np.zeros(self.dof, dtype=bool)

    def write(self, tau):
        self.written.append(tau)

    def close(self):
        self.closed = True


def test_a_driver_in_python(robot):
    plant = Recording(robot)
    report = controller(robot, plant=plant, period=5e-3).run(motion.hold(np.zeros(6)), 0.25)
    assert report.finished
    np.testing.assert_allclose(plant.written[10], robot.gravity_torques(np.zeros(6)), atol=1e-9)
    assert plant.cycles[0] == 0
    assert (np.diff(plant.cycles) >= 0).all()
    assert plant.closed


def test_valeras_hardware_behind_the_interface():
    """Counts and volts of the PUMA's cards, homed; then a motor gets too hot."""
    puma = lw.load("puma560")
    hardware = PumaHardware(puma, np.array([0.2, -0.5, 0.4, 0.1, -0.3, 0.5]))
    arm = homed(hardware, puma)
    start = arm.positions()
    move = motion.quintic(start, start + 0.2, 0.6)
    options = {"period": 5e-3, "deadlines": 0, "oldest": 10.0, "patience": 10.0}
    cool = TwoRateController(puma, Gains.from_frequency(20.0), plant=PumaDriver(arm, 5e-3), **options)
    report = cool.run(move, 1.0)
    assert report.finished
    assert np.abs(arm.positions() - (start + 0.2)).max() < 0.05
    hardware.temperature[1] = 1.0
    hot = TwoRateController(puma, Gains.from_frequency(20.0), plant=PumaDriver(arm, 5e-3), **options)
    stopped = hot.run(motion.hold(arm.positions()), 0.5)
    assert "shoulder reports over-temperature" in stopped.reason
    assert (hardware.tau == 0.0).all()


def test_an_exception_in_a_driver_is_a_lost_plant(robot):
    plant = Recording(robot, fail_from=20)
    report = controller(robot, plant=plant, period=5e-3).run(MOVE, 1.0)
    assert "the plant did not answer" in report.reason
    assert (plant.written[-1] == 0.0).all()


def test_where_fifo_is_refused_the_report_says_so(two_seconds):
    report, _ = two_seconds
    refused = replace(report, fifo_error=errno.EPERM)
    assert refused.priority.startswith("normal priority: SCHED_FIFO was refused")
    assert "CAP_SYS_NICE" in refused.summary()
    assert replace(report, fifo_error=0).priority == "SCHED_FIFO"


def test_a_log_that_cannot_be_written_is_an_error_before_anything_moves(robot, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        controller(robot).run(MOVE, 0.1, log=tmp_path / "nowhere" / "run.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": 0.0}, "period: expected a positive"),
        ({"background": -1.0}, "background: expected positive"),
        ({"limits": {"higher": 1.0}}, "limits: expected lower, upper, speed, effort"),
    ],
)
def test_bad_options_are_named(robot, options, message):
    with pytest.raises(ValueError, match=message):
        TwoRateController(robot, GAINS, **options)


def test_other_bad_input_is_named(robot):
    with pytest.raises(ValueError, match="it has 7 joints, puma260 has 6"):
        TwoRateController(robot, GAINS, plant=SimulatedPlant(lw.load("panda")))
    with pytest.raises(ValueError, match="a trajectory of 6 joints, got one of 1"):
        controller(robot).run(motion.hold([0.0]), 0.1)
    with pytest.raises(ValueError, match="duration: expected at least one period"):
        controller(robot).run(MOVE, 0.0)
    with pytest.raises(ValueError, match="kind: expected one of"):
        Fault("rust", 3)


def test_a_missing_compiler_and_broken_source_are_said_plainly(monkeypatch):
    with pytest.raises(BuildError, match="could not build the runtime"):
        library("int f( {")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="there is none"):
        compiler()
