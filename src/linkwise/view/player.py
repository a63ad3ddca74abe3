"""Plays a recorded motion in real time, in its own thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FRAMES_PER_SECOND = 30.0


@dataclass(frozen=True)
class Recording:
    """A motion with its torques and, if it differs, the reference motion: t (rows,), the others (rows, n)."""

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    wanted: np.ndarray | None = None

    @property
    def duration(self) -> float:
        return float(self.t[-1])

    def at(self, moment: float) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(q, tau, wanted) at a time [s], interpolated between rows."""
        return tuple(
            None if a is None else _between(self.t, a, moment) for a in (self.q, self.tau, self.wanted)
        )  # type: ignore[return-value]


def _between(t: np.ndarray, values: np.ndarray, moment: float) -> np.ndarray:
    k = int(np.clip(np.searchsorted(t, moment) - 1, 0, len(t) - 2)) if len(t) > 1 else 0
    if len(t) == 1:
        return values[0]
    part = np.clip((moment - t[k]) / (t[k + 1] - t[k]), 0.0, 1.0)
    return (1 - part) * values[k] + part * values[k + 1]


class Player:
    """Calls ``show(moment)`` FRAMES_PER_SECOND times a second while playing."""

    def __init__(self, show: Callable[[float], None], ended: Callable[[], None] = lambda: None):
        self.show, self.ended = show, ended
        self.speed, self.loop = 1.0, True
        self.duration, self.moment = 1.0, 0.0
        self._playing = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="linkwise-player", daemon=True)
        self._thread.start()

    @property
    def playing(self) -> bool:
        return self._playing.is_set()

    def play(self) -> None:
        if self.moment >= self.duration:
            self.moment = 0.0
        self._playing.set()

    def pause(self) -> None:
        self._playing.clear()

    def close(self) -> None:
        self._closed = True
        self._playing.set()
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._closed:
            if not self._playing.is_set():
                self._playing.wait()
                last = time.perf_counter()
                continue
            now = time.perf_counter()
            self.moment += (now - last) * self.speed
            last = now
            if self.moment > self.duration:
                self.moment = 0.0 if self.loop else self.duration
                if not self.loop:
                    self._playing.clear()
            self.show(self.moment)
            if not self._playing.is_set():
                self.ended()
            time.sleep(max(0.0, 1.0 / FRAMES_PER_SECOND - (time.perf_counter() - now)))
