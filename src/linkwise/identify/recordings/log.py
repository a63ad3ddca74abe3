"""A recording of a moving robot, and how to cut it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.errors import LogError
from linkwise.robot.robot import Robot

SENSED = ("motor", "joint")
GAP = 0.1  # [s] without samples, where they are usually much closer: what happened meanwhile is not known
GAP_STEPS = 10.0  # usual steps, the same
SHORTEST = 20  # fewest samples of a usable part between gaps


@dataclass(frozen=True, repr=False)
class Log(Summarised):
    """Joint positions and torques over time.

    t [s], shape (N,), strictly increasing; q [rad or m] and tau [N·m or N], shape (N, n); qd [rad/s or m/s] where it
    was recorded. ``sensed`` is "motor" where the torques contain rotor inertia and the friction of the drive
    (currents, motor torques), "joint" for sensors between gear and link. ``axes`` (k, n) are axes of coupled motors,
    see ``Transmission``. ``notes`` say what was done to the recording so far.
    """

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None = None
    name: str = "log"
    sensed: str = "motor"
    axes: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        put = object.__setattr__
        for key in ("t", "q", "tau", "qd", "axes"):
            value = getattr(self, key)
            if value is not None:
                put(self, key, np.ascontiguousarray(value, dtype=float))
        if self.t.ndim != 1 or self.q.ndim != 2 or self.q.shape[0] != len(self.t):
            raise LogError(
                f"{self.name}: expected t (N,) and q (N, n), got {self.t.shape} and {self.q.shape}"
            )
        for key in ("tau", "qd"):
            value = getattr(self, key)
            if value is not None and value.shape != self.q.shape:
                raise LogError(f"{self.name}: {key}: expected shape {self.q.shape}, got {value.shape}")
        if self.axes is None:
            put(self, "axes", np.zeros((0, self.dof)))
        if self.sensed not in SENSED:
            raise LogError(f"{self.name}: sensed: expected one of {', '.join(SENSED)}, got {self.sensed!r}")
        for key in ("t", "q", "tau", "qd"):
            value = getattr(self, key)
            if value is not None and not np.isfinite(value).all():
                raise LogError(f"{self.name}: {key} contains numbers that are not finite")
        late = np.flatnonzero(np.diff(self.t) <= 0)
        if len(late):
            row = int(late[0])
            raise LogError(
                f"{self.name}: time stamps do not increase: {self.t[row + 1]:.9g} s of row {row + 2} comes after "
                f"{self.t[row]:.9g} s, {len(late)} times in {len(self.t)} rows; leave out doubled rows, sort the others"
            )

    @property
    def dof(self) -> int:
        return self.q.shape[1]

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.t[-1] - self.t[0]) if len(self) else 0.0

    @property
    def rate(self) -> float:
        """Samples per second, on average [Hz]."""
        return (len(self) - 1) / self.duration

    def rows(self, first: int, last: int) -> Log:
        """Rows ``first`` to ``last``, counted from 1, both included.

        Args:
            first: the first row.
            last: the last row.
        """
        if not 1 <= first < last <= len(self):
            raise LogError(f"{self.name}: rows {first} to {last}: the recording has rows 1 to {len(self)}")
        return self._pick(slice(first - 1, last), f"rows {first} to {last} of {len(self)}")

    def between(self, start: float, end: float) -> Log:
        """What was recorded from ``start`` to ``end`` [s] after the first stamp.

        Args:
            start: first time [s].
            end: last time [s].
        """
        since = self.t - self.t[0]
        chosen = np.flatnonzero((since >= start) & (since <= end))
        if len(chosen) < 2:
            raise LogError(f"{self.name}: nothing was recorded from {start:g} to {end:g} s")
        return self._pick(slice(int(chosen[0]), int(chosen[-1]) + 1), f"from {start:g} to {end:g} s")

    def trim(self, head: int = 0, tail: int = 0) -> Log:
        """Without the first ``head`` and the last ``tail`` samples.

        Args:
            head: number of samples at the start.
            tail: number of samples at the end.
        """
        if head + tail > len(self) - 2:
            raise LogError(f"{self.name}: trimming {head} and {tail} of {len(self)} samples leaves nothing")
        return self._pick(slice(head, len(self) - tail), f"without the first {head} and last {tail} samples")

    def split(self, share: float) -> tuple[Log, Log]:
        """The first ``share`` (0 to 1) of the samples, and the rest."""
        k = int(share * len(self))
        if not 1 < k < len(self) - 1:
            raise LogError(f"{self.name}: a share of {share:g} leaves an empty part of {len(self)} samples")
        first = self._pick(slice(0, k), f"the first {share:.0%}")
        return first, self._pick(slice(k, len(self)), f"the last {1 - share:.0%}")

    def blocks(self, count: int) -> list[Log]:
        """``count`` consecutive parts of equal length."""
        if not 1 <= count <= len(self):
            raise LogError(f"{self.name}: {len(self)} samples cannot be cut into {count} blocks")
        edges = np.linspace(0, len(self), count + 1).astype(int)
        parts = itertools.pairwise(edges)
        return [self._pick(slice(a, b), f"block {k} of {count}") for k, (a, b) in enumerate(parts, 1)]

    def pieces(self) -> list[Log]:
        """The parts between gaps, itself where there are none; nothing may be interpolated or filtered across a gap."""
        steps = np.diff(self.t)
        if not len(steps):
            return [self]
        gaps = np.flatnonzero(steps > max(GAP, GAP_STEPS * float(np.median(steps)))) + 1
        if not len(gaps):
            return [self]
        parts = [(a, b) for a, b in itertools.pairwise((0, *gaps, len(self))) if b - a >= SHORTEST]
        if not parts:
            raise LogError(f"{self.name}: {len(gaps)} gaps, and no {SHORTEST} samples in a row without one")
        said = f"{len(gaps)} gaps in the recording, the longest of {steps.max():.3g} s"
        return [
            replace(
                self._pick(slice(int(a), int(b)), f"{said}: rows {a + 1} to {b} by themselves"),
                name=f"{self.name}, part {k}" if len(parts) > 1 else self.name,
            )
            for k, (a, b) in enumerate(parts, 1)
        ]

    def noted(self, *notes: str) -> Log:
        """The same with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def _pick(self, which: slice, note: str) -> Log:
        return replace(
            self,
            t=self.t[which],
            q=self.q[which],
            tau=self.tau[which],
            qd=None if self.qd is None else self.qd[which],
            notes=(*self.notes, note),
        )


def as_logs(logs: Log | Sequence[Log]) -> list[Log]:
    """One or several recordings, as a list; one with gaps is several."""
    found = [logs] if isinstance(logs, Log) else list(logs)
    if not found:
        raise LogError("no recording was given")
    return [piece for log in found for piece in log.pieces()]


def with_motors(robot: Robot, logs: Sequence[Log]) -> list[Log]:
    """The recordings, with the axes of the robot's motors of several joints where they state none."""
    rows = [[motor.joints.get(name, 0.0) for name in robot.joint_names] for motor in robot.motors]
    return [
        replace(each, axes=np.array(rows)) if rows and (each.axes is None or not each.axes.size) else each
        for each in logs
    ]
