"""Progress of a run, on standard error: a bar on a terminal, elsewhere a line a minute."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from linkwise.core import foreign

Advance = Callable[[int], None]
"""Called with the points that have been done since the last call."""
LINE_SECONDS = 60.0
"""Between lines where standard error is no terminal."""


@contextmanager
def bar(title: str, points: int, done: int) -> Iterator[Advance]:
    """Shows the progress while the block runs."""
    shown = _on_terminal if sys.stderr is not None and sys.stderr.isatty() else _as_lines
    with shown(title, points, done) as advance:
        yield advance


@contextmanager
def _on_terminal(title: str, points: int, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(escape(foreign.line(title)), total=points, completed=done, rate="")

        def advance(count: int) -> None:
            progress.advance(task, count)
            speed = progress.tasks[0].speed
            if speed:
                progress.update(task, rate=f"{short(speed)} points/s")

        yield advance


@contextmanager
def _as_lines(title: str, points: int, done: int) -> Iterator[Advance]:
    """A line a minute, also while a chunk takes longer than that; nothing for a run that is over before."""
    start, before, now = time.monotonic(), done, done
    over = threading.Event()

    def advance(count: int) -> None:
        nonlocal now
        now += count

    def speak() -> None:
        while not over.wait(LINE_SECONDS):
            rate = (now - before) / (time.monotonic() - start)
            with contextlib.suppress(OSError, ValueError, AttributeError):  # the reader is gone
                print(f"{foreign.line(title)}: {line(points, now, rate)}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=speak, name="linkwise-study-progress", daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        over.set()
        thread.join()


def line(points: int, done: int, rate: float | None) -> str:
    """``12 % (1200 of 10000 points), 3.4 k points/s, about 5 min left``."""
    share = 100.0 * done / max(points, 1)
    text = f"{share:.3g} % ({done} of {points} points)"
    if rate:
        text += f", {short(rate)} points/s, about {_duration((points - done) / rate)} left"
    return text


def _duration(seconds: float) -> str:
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"
