"""Report of a run of the real-time loop: why it ended, timing, age of the coefficients."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot

TIMING = ("time", "late", "task", "finish", "processor", "inertia_age", "velocity_age", "missed")
BLAME = ("", "ours", "the scheduler's", "the plant's")
NO_THREAD = 16
REASONS = {
    0: "finished",
    1: "stopped on request",
    2: "a sensor of {joint} gave {value}",
    3: "the reference has a number that is not finite",
    4: "the torque of {joint} came out as {value}",
    5: "the plant did not answer (status {value:g})",
    6: "{joint} reports over-temperature",
    7: "{joint} crossed its position limit at {value:.6g}",
    8: "{joint} crossed its speed limit at {value:.6g}",
    9: "{value:.0f} deadlines were missed in a row",
    10: "the coefficients were {value:.3g} s old",
    11: "the watchdog found no cycle finished for {value:.3g} s",
    12: "the sensor of {joint} jumped by {value:.6g}, more than its speed limit allows",
    13: "the sensor of {joint} did not change while it should have moved by {value:.3g}",
    14: "{joint} was {value:.3g} away from its reference, more than its following limit",
    15: "refused to start: {setting} is invalid ({value:g})",
    NO_THREAD: "a thread could not be started: {error}",
    18: "the plan was {value:.3g} s old",
    19: "no plan was found at the start",
    20: "the arm moved, and the target was not approached: {value:.3g} rad or m were left",
    17: "{joint} was pushed with {value:.3g} {unit}, more than its threshold of contact",
}
SETTINGS = (
    *(
        "",
        "period",
        "inertia_period",
        "velocity_period",
        "cycles",
        "reference",
        "oldest",
        "patience",
        "stop_time",
    ),
    *(
        "deadlines",
        "priority",
        "stop_mode",
        "read, write or brake",
        "kp",
        "kd",
        "lower or upper",
        "speed",
        "effort",
    ),
    *("following", "frozen", "core", "parameters", "plan_period", "oldest_plan", "first_iterations"),
)


class StoppedError(LinkwiseError, RuntimeError):
    """The loop stopped before its end; the message says why. The stop sequence is complete."""


@dataclass(frozen=True)
class Report:
    """Outcome of a run. Rows are cycles; times in s."""

    robot: Robot
    period: float
    code: int
    joint: int
    value: float
    cycle: int
    rows: np.ndarray
    """Shape (cycles, 8 + 3n), n more columns with an observer; see the properties."""
    fifo_error: int
    lock_error: int
    log: str | None
    stop_rows: np.ndarray
    """Cycles of the stop sequence, with the columns of ``rows``; empty if the loop refused to start."""
    braked: bool
    """Whether the brakes reported that they hold the arm."""
    setting: int = 0
    core_error: int = 0

    @property
    def finished(self) -> bool:
        return self.code == 0

    @property
    def reason(self) -> str:
        """Why the loop ended."""
        joint = self.robot.joint_names[self.joint] if self.joint >= 0 else "a joint"
        setting = SETTINGS[self.setting] + (f" of {joint}" if self.joint >= 0 else "")
        error = os.strerror(int(self.value)) if self.code == NO_THREAD else ""
        slides = self.joint >= 0 and self.robot.coordinate_joints[self.joint].slides
        unit = "N" if slides else "N·m"
        text = REASONS[self.code].format(
            joint=joint, value=self.value, setting=setting, error=error, unit=unit
        )
        return (
            text
            if self.finished or self.setting
            else f"{text}, in cycle {self.cycle} ({self.cycle * self.period:.4f} s)"
        )

    def check(self) -> Report:
        """Return this report; raise StoppedError if the loop did not finish."""
        if not self.finished:
            raise StoppedError(self.reason)
        return self

    @property
    def priority(self) -> str:
        """Scheduling policy of the synchronous task, and why SCHED_FIFO or its core were refused."""
        if self.core_error:
            return f"{self._policy}; the core was refused, {os.strerror(self.core_error)}"
        return self._policy

    @property
    def _policy(self) -> str:
        if not self.fifo_error:
            return "SCHED_FIFO"
        hint = " (it needs CAP_SYS_NICE or an rtprio limit)" if self.fifo_error == errno.EPERM else ""
        return f"normal priority: SCHED_FIFO was refused, {os.strerror(self.fifo_error)}{hint}"

    def _column(self, name: str) -> np.ndarray:
        return self.rows[:, TIMING.index(name)]

    @property
    def time(self) -> np.ndarray:
        """Begin of each cycle since the start."""
        return self._column("time")

    @property
    def cycles(self) -> np.ndarray:
        """Number of each cycle: planned time divided by the period. Missed deadlines leave gaps."""
        return np.rint((self.time - self.late) / self.period).astype(int)

    @property
    def late(self) -> np.ndarray:
        """Jitter: delay of each cycle after its planned time."""
        return self._column("late")

    @property
    def task(self) -> np.ndarray:
        """Duration of the synchronous task's arithmetic."""
        return self._column("task")

    @property
    def finish(self) -> np.ndarray:
        """Duration of each cycle, from its begin until torques are written and the row is recorded."""
        return self._column("finish")

    @property
    def periods(self) -> np.ndarray:
        """From one cycle to the next, shape (cycles − 1,)."""
        return np.diff(self.time)

    @property
    def age(self) -> np.ndarray:
        """Age of the inertia and the velocity coefficients in use, shape (cycles, 2)."""
        return np.stack([self._column("inertia_age"), self._column("velocity_age")], axis=-1)

    @property
    def q(self) -> np.ndarray:
        return self._joints(0)

    @property
    def qd(self) -> np.ndarray:
        return self._joints(1)

    @property
    def tau(self) -> np.ndarray:
        """Commands [N·m or N], shape (cycles, n)."""
        return self._joints(2)

    @property
    def external_torque(self) -> np.ndarray:
        """Estimated external torques [N·m or N], shape (cycles, n); (cycles, 0) without an observer."""
        return self._joints(3)

    @property
    def plan_age(self) -> np.ndarray:
        """Age of the plan in use, of predictive control."""
        return self.rows[:, -1]

    @property
    def stop_time(self) -> np.ndarray:
        """When the cycles of the stop sequence began, since the start of the loop."""
        return self.stop_rows[:, TIMING.index("time")]

    @property
    def stop_q(self) -> np.ndarray:
        """Positions read during the stop sequence, shape (cycles, n); zeros where the plant was not read."""
        return self._joints(0, self.stop_rows)

    @property
    def stop_qd(self) -> np.ndarray:
        return self._joints(1, self.stop_rows)

    @property
    def stop_tau(self) -> np.ndarray:
        """Commands of the stop sequence [N·m or N], shape (cycles, n); the last one stays with the plant."""
        return self._joints(2, self.stop_rows)

    def _joints(self, k: int, rows: np.ndarray | None = None) -> np.ndarray:
        n = self.robot.dof
        return (self.rows if rows is None else rows)[:, len(TIMING) + k * n : len(TIMING) + (k + 1) * n]

    @property
    def missed(self) -> dict[str, int]:
        """Number of cycles that missed their deadline, by cause."""
        codes = self._column("missed").astype(int)
        return {who: int((codes == k).sum()) for k, who in enumerate(BLAME) if k}

    def histogram(
        self, edges=(0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, np.inf)
    ) -> list[tuple[str, int]]:
        """Histogram of the jitter in microseconds."""
        counts, _ = np.histogram(np.maximum(self.late, 0.0) * 1e6, bins=edges)
        names = [f"{a:g}–{b:g} µs" if np.isfinite(b) else f"over {a:g} µs" for a, b in pairwise(edges)]
        return list(zip(names, (int(c) for c in counts), strict=True))

    def summary(self) -> str:
        """Summary in a few lines."""
        lines = [f"{len(self.rows)} cycles of {self.period * 1e3:g} ms: {self.reason}", self.priority]
        if len(self.rows) > 1:
            late, finish, age = self.late * 1e6, self.finish * 1e6, self.age * 1e3
            lines += [
                f"period: mean {self.periods.mean() * 1e3:.4f} ms; jitter: median {np.median(late):.1f} µs, "
                f"99 % {np.percentile(late, 99):.1f} µs, worst {late.max():.1f} µs",
                f"synchronous task: median {np.median(self.task) * 1e6:.3f} µs; whole cycle: median "
                f"{np.median(finish):.1f} µs, worst {finish.max():.1f} µs",
                f"age of coefficients: inertia up to {age[:, 0].max():.2f} ms, "
                f"velocity up to {age[:, 1].max():.2f} ms",
                "missed deadlines: " + ", ".join(f"{count} {who}" for who, count in self.missed.items()),
            ]
        if len(self.stop_rows):
            end = "brakes engaged" if self.braked else "last torques stay with the plant"
            lines.append(f"stop sequence: {len(self.stop_rows)} cycles, {end}")
        if self.log:
            lines.append(f"log: {self.log}")
        return "\n".join(lines)
