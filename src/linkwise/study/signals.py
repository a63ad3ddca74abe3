"""A request to end the process, such as that of a batch system: the run stops as it does for Control-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linkwise.core import system

SIGNALS = system.ENDING_SIGNALS


class Terminated(BaseException):
    """Raised in the main thread when the process is asked to end.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int):
        super().__init__(number)
        self.number = int(number)


@contextmanager
def terminable() -> Iterator[None]:
    """Raise ``Terminated`` for these signals, the first time; not where the caller has a handler of its own or ignores
    them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        raise Terminated(number)

    taken = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
