"""How a command ends on a signal: through its ``finally`` blocks, so that temporary files are removed.

Python handles signals between two of its own instructions. Compiled code may run for minutes without one, so a
thread ends the process where Python has not handled a signal after ``GRACE`` seconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from linkwise.core import system
from linkwise.study.signals import Terminated

GRACE = 5.0  # seconds
ENDING = system.ENDING_SIGNALS


class Ended(Terminated):
    """The process received a signal to end; studies finish the current chunks and print how to continue."""

    def __init__(self, number: int):
        super().__init__(number)
        self.status = 128 + number


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``Ended`` in the block. Signals that are ignored or handled already stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    read, write = os.pipe()
    if hasattr(os, "set_blocking"):  # Windows: from Python 3.12 on
        os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    handled = threading.Event()

    def end(number: int, _frame: FrameType | None) -> None:
        handled.set()
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        raise Ended(number)

    threading.Thread(target=_watch, args=(read, handled, {*changed}), daemon=True).start()
    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        handled.set()
        signal.set_wakeup_fd(before)
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
        os.close(write)  # the thread reads the end of the pipe and closes the other side


def _watch(read: int, handled: threading.Event, watched: set[signal.Signals]) -> None:
    with open(read, "rb", buffering=0) as signals:
        while number := signals.read(1):
            if number[0] in watched and not handled.wait(GRACE):
                os._exit(128 + number[0])
