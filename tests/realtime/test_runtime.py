"""The real-time loop with a simulated plant: it controls, it reports, and whatever goes wrong it stops
safely.

The machine may be busy: tests of behaviour do not depend on deadlines being met, only on who is blamed for
missed ones.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.control import Gains, MomentumObserver
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
SAFE = {"lower": -3.0, "upper": 3.0, "speed": 20.0, "effort": 50.0}
STILL = motion.hold(np.zeros(6))


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma260")


def controller(robot, **options):
    options = {"limits": SAFE, "deadlines": 0, "oldest": 10.0, "patience": 5.0, "stop_time": 0.05} | options
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
    both = np.concatenate([report.rows, report.stop_rows])
    np.testing.assert_allclose(values, both, rtol=1e-8, atol=1e-12)
    assert len(report.stop_rows) > 1
    assert lines[-1] == "# finished"


def test_a_push_that_the_observer_sees_stops_the_robot(robot, tmp_path):
    observer = MomentumObserver(robot, 100.0, threshold=3.0)
    log = tmp_path / "run.csv"
    free = controller(robot, observer=observer).run(MOVE, 0.3, log=log)
    assert free.finished
    assert free.external_torque.shape == free.tau.shape
    assert np.abs(free.external_torque).max() < 1.0
    assert log.read_text().splitlines()[0].endswith("external5,external6")
    plant = SimulatedPlant(robot, fault=Fault("push", 100, 1, 6.0))
    pushed = controller(robot, plant=plant, observer=observer).run(MOVE, 0.4)
    assert "joint2 was pushed with" in pushed.reason
    assert "N·m, more than its threshold of contact" in pushed.reason
    assert pushed.cycle > 100
    assert 3.0 < pushed.external_torque[-1, 1] < 6.5
    assert len(pushed.stop_rows) > 1


FAULTS = {
    "nan": (Fault("nan", 100, 2), "a sensor of joint3 gave nan"),
    "lost": (Fault("lost", 100), "the plant did not answer"),
    "hot": (Fault("hot", 100, 4), "joint5 reports over-temperature"),
    "jump": (Fault("jump", 100, 0, 10.0), "the sensor of joint1 jumped by 10"),
    "freeze": (
        Fault("freeze", 100, 1),
        "the sensor of joint2 did not change while it should have moved by 0.02",
    ),
    "push": (Fault("push", 100, 0, 300.0), "joint1 was 0.5"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_stop_the_robot_and_say_why(robot, tmp_path, name):
    fault, reason = FAULTS[name]
    log = tmp_path / "run.csv"
    limits = {**SAFE, "speed": 500.0} if name == "push" else SAFE
    plant = SimulatedPlant(robot, fault=fault)
    report = controller(robot, plant=plant, limits=limits, stop="ramp").run(MOVE, 0.5, log=log)
    assert not report.finished
    assert reason in report.reason
    assert report.cycle >= 100
    assert (report.stop_tau[-1] == 0.0).all()
    assert (report.stop_tau[0] != 0.0).all()
    assert np.isfinite(report.stop_tau).all()
    assert np.abs(report.stop_tau).max() <= SAFE["effort"]
    assert (report.tau[50] != 0.0).all()
    with pytest.raises(StoppedError, match=reason.split()[-1]):
        report.check()
    lines = log.read_text().splitlines()
    rows = len(report.rows) + len(report.stop_rows)
    assert len([line for line in lines if not line.startswith("#")]) == rows + 1
    assert reason in lines[-1]


def test_the_normal_end_holds_against_gravity(two_seconds, robot):
    report, _ = two_seconds
    assert not report.braked
    np.testing.assert_allclose(
        report.stop_tau[-1], robot.gravity_torques(report.stop_q[-1]), rtol=1e-9, atol=1e-12
    )
    assert np.abs(report.stop_qd[-1]).max() < 0.1
    assert "last torques stay with the plant" in report.summary()


def test_simulated_brakes_stop_the_arm(robot):
    plant = SimulatedPlant(robot, brakes=True)
    report = controller(robot, plant=plant, stop="brake").run(MOVE, 0.2)
    assert report.finished
    assert report.braked
    assert (report.stop_tau[-1] == 0.0).all()
    assert "brakes engaged" in report.summary()


@pytest.mark.parametrize("brakes", [False, True])
def test_what_a_driver_gets(robot, brakes):
    plant = (WithBrakes if brakes else Recording)(robot, nan_from=50)
    report = controller(robot, plant=plant, period=5e-3).run(STILL, 1.0)
    assert "a sensor of joint1 gave nan" in report.reason
    last = np.zeros(6) if brakes else robot.gravity_torques(np.zeros(6))
    np.testing.assert_allclose(plant.written[-1], last, atol=1e-9)
    assert np.isfinite(plant.written).all()
    assert report.braked == brakes
    assert plant.closed


def test_brakes_that_raise_are_no_brakes(robot):
    plant = WithBrakes(robot, broken=True)
    report = controller(robot, plant=plant, period=5e-3).run(STILL, 0.1)
    assert not report.braked
    np.testing.assert_allclose(plant.written[-1], robot.gravity_torques(np.zeros(6)), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"nan_from": 0}, "a sensor of joint1 gave nan"),
        ({"fail_from": 0}, "the plant did not answer"),
        ({"q": 0.6}, "joint1 was 0.6 away from its reference"),
        ({"q": -0.6}, "joint1 was -0.6 away from its reference"),
        ({"q": 4.0}, "joint1 crossed its position limit at 4"),
        ({"q": -4.0}, "joint1 crossed its position limit at -4"),
        ({"qd": 21.0}, "joint1 crossed its speed limit at 21"),
        ({"qd": -21.0}, "joint1 crossed its speed limit at -21"),
        ({"hot": True}, "joint1 reports over-temperature"),
    ],
)
def test_a_plant_at_fault_is_not_started(robot, options, reason):
    plant = Recording(robot, **options)
    report = controller(robot, plant=plant, period=5e-3).run(STILL, 0.2)
    assert reason in report.reason
    assert plant.written == []
    assert len(report.rows) == len(report.stop_rows) == 0
    assert plant.closed


@pytest.mark.parametrize(("kind", "blamed"), [("sleep", "the plant's"), ("spin", "ours")])
def test_missed_deadlines_stop_and_are_attributed(robot, kind, blamed):
    for _ in range(8):  # a busy machine may hold the process up eight times in a row before the fault comes
        plant = SimulatedPlant(robot, fault=Fault(kind, 100, 0, 0.006))
        report = controller(robot, plant=plant, period=2e-3, deadlines=8).run(MOVE, 1.0)
        assert "deadlines were missed in a row" in report.reason
        if len(report.rows) > 100:
            break
    assert report.missed[blamed] >= 2
    assert report.missed["ours" if blamed != "ours" else "the plant's"] == 0


def test_the_watchdog_stops_a_loop_that_does_not_come_back(robot):
    plant = SimulatedPlant(robot, fault=Fault("sleep", 100, 0, 0.6))
    report = controller(robot, plant=plant, patience=0.2).run(MOVE, 1.0)
    assert "the watchdog found no cycle finished for 0.2" in report.reason


def test_a_driver_that_never_comes_back_does_not_hang_the_caller(robot):
    plant = Recording(robot, hang_from=20)
    report = controller(robot, plant=plant, period=5e-3, patience=0.3).run(STILL, 1.0)
    assert "watchdog" in report.reason
    np.testing.assert_allclose(plant.written[-1], robot.gravity_torques(np.zeros(6)), atol=1e-9)
    np.testing.assert_allclose(report.stop_tau[-1], plant.written[-1])
    assert not plant.closed
    plant.release.set()


def test_a_driver_that_hangs_in_every_call_does_not_hang_the_caller(robot):
    plant = Recording(robot, hang_from=20, hang_writes=True)
    report = controller(robot, plant=plant, period=5e-3, patience=0.3).run(STILL, 1.0)
    assert "watchdog" in report.reason
    assert not plant.expired  # the driver is still stuck, and the caller is not
    plant.release.set()


@pytest.mark.parametrize("background", [0.4, (0.4, 0.002), (0.002, 0.4)])
def test_old_coefficients_stop(robot, background):
    report = controller(robot, background=background, oldest=0.05).run(MOVE, 0.5)
    assert "the coefficients were 0.0" in report.reason


def test_speed_limit(robot):
    report = controller(robot, limits={**SAFE, "speed": 0.5}).run(MOVE, 0.5)
    assert "crossed its speed limit at" in report.reason


class Broken(Trajectory):
    """A motion that goes wrong after a tenth of a second."""

    dof, begin, end = 6, 0.0, 1.0

    def __init__(self, q, qdd):
        self.q, self.qdd = q, qdd

    def _inside(self, t):
        late = t[:, np.newaxis] > 0.1
        q, qdd = (np.where(late, value, np.zeros(6)) for value in (self.q, self.qdd))
        return Moment(q, np.zeros_like(q), qdd)


@pytest.mark.parametrize(
    ("q", "qdd", "reason"),
    [
        (np.nan, 0.0, "the reference has a number that is not finite"),
        (0.0, -np.inf, "the reference has a number that is not finite"),
        (1e308, 0.0, "away from its reference"),
    ],
)
def test_numbers_that_are_not_finite_stop(robot, q, qdd, reason):
    report = controller(robot).run(Broken(q, qdd), 0.3)
    assert reason in report.reason
    assert np.isfinite(report.tau).all()
    np.testing.assert_allclose(report.stop_tau[-1], robot.gravity_torques(report.stop_q[-1]), atol=1e-9)


def test_torques_stay_within_the_effort_limits(robot):
    report = controller(robot, limits={**SAFE, "effort": 2.0}).run(MOVE, 0.3)
    assert np.abs(report.tau).max() == 2.0


class Recording(PlantDriver):
    """A driver in Python: the robot stands still, and what is written is remembered."""

    def __init__(
        self,
        robot,
        nan_from=None,
        hang_from=None,
        fail_from=None,
        q=0.0,
        qd=0.0,
        hot=False,
        hang_writes=False,
    ):
        self.dof, self.nan_from, self.hang_from, self.fail_from = robot.dof, nan_from, hang_from, fail_from
        self.q, self.qd, self.hot, self.hang_writes = q, qd, hot, hang_writes
        self.written, self.cycles, self.closed = [], [], False
        self.hanging, self.expired, self.release = False, False, threading.Event()

    def read(self, cycle):
        self.cycles.append(cycle)
        if self.hang_from is not None and cycle >= self.hang_from:
            self.hanging = True
            self.expired |= not self.release.wait(30)
        if self.fail_from is not None and cycle >= self.fail_from:
            raise OSError("the cable is out")
        q = np.full(self.dof, self.q)
        if self.nan_from is not None and cycle >= self.nan_from:
            q[0] = np.nan
        return q, np.full(self.dof, self.qd), np.full(self.dof, self.hot)

    def write(self, tau):
        if self.hanging and self.hang_writes:
            self.expired |= not self.release.wait(30)
        self.written.append(tau)

    def close(self):
        self.closed = True


class WithBrakes(Recording):
    def __init__(self, robot, broken=False, **options):
        super().__init__(robot, **options)
        self.broken = broken

    def brake(self):
        if self.broken:
            raise OSError("no brakes")
        return True


def test_a_driver_in_python(robot):
    plant = Recording(robot)
    report = controller(robot, plant=plant, period=5e-3).run(STILL, 0.25)
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
    limits = {"speed": 10.0, "effort": 200.0}
    options = {
        "period": 5e-3,
        "deadlines": 0,
        "oldest": 10.0,
        "patience": 10.0,
        "limits": limits,
        "stop": "ramp",
    }
    cool = TwoRateController(puma, Gains.from_frequency(20.0), plant=PumaDriver(arm, 5e-3), **options)
    report = cool.run(move, 1.0)
    assert report.finished
    assert np.abs(arm.positions() - (start + 0.2)).max() < 0.05
    assert (hardware.tau == 0.0).all()
    hardware.temperature[1] = 1.0
    hot = TwoRateController(puma, Gains.from_frequency(20.0), plant=PumaDriver(arm, 5e-3), **options)
    stopped = hot.run(motion.hold(arm.positions()), 0.5)
    assert "shoulder reports over-temperature" in stopped.reason
    assert (hardware.tau == 0.0).all()


def test_an_exception_in_a_driver_is_a_lost_plant(robot):
    plant = Recording(robot, fail_from=20)
    report = controller(robot, plant=plant, period=5e-3).run(STILL, 1.0)
    assert "the plant did not answer" in report.reason
    np.testing.assert_allclose(plant.written[-1], robot.gravity_torques(np.zeros(6)), atol=1e-9)


def test_where_fifo_is_refused_the_report_says_so(two_seconds):
    report, _ = two_seconds
    refused = replace(report, fifo_error=errno.EPERM)
    assert refused.priority.startswith("normal priority: SCHED_FIFO was refused")
    assert "CAP_SYS_NICE" in refused.summary()
    assert replace(report, fifo_error=0).priority == "SCHED_FIFO"


def test_the_synchronous_task_runs_on_the_core_that_is_asked_for(robot):
    """By name: a core that there is none of is refused, and the loop runs elsewhere."""
    here = min(os.sched_getaffinity(0))
    assert "core" not in controller(robot, core=here).run(STILL, 0.02).summary()
    refused = controller(robot, core=1000).run(STILL, 0.02)
    assert refused.finished
    assert "the core was refused" in refused.summary()


def test_a_log_that_cannot_be_written_is_an_error_before_anything_moves(robot, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        controller(robot).run(MOVE, 0.1, log=tmp_path / "nowhere" / "run.csv")


def test_other_bad_input_is_named(robot):
    with pytest.raises(ValueError, match="it has 7 joints, puma260 has 6"):
        TwoRateController(robot, GAINS, plant=SimulatedPlant(lw.load("panda")))
    with pytest.raises(ValueError, match="a trajectory of 6 joints, got one of 1"):
        controller(robot).run(motion.hold([0.0]), 0.1)
    made = controller(robot)
    assert made.period == 1e-3
    assert all(made._cycles(float(f"{k}e-3")) == k for k in range(1, 2000))  # some quotients are below k
    with pytest.raises(ValueError, match="duration: expected at least one period"):
        made.run(MOVE, 0.0)
    with pytest.raises(ValueError, match="kind: expected one of"):
        Fault("rust", 3)


def test_a_missing_compiler_and_broken_source_are_said_plainly(monkeypatch):
    with pytest.raises(BuildError, match="could not build the runtime"):
        library("int f( {")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="there is none"):
        compiler()
