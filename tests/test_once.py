"""A property computed once, also by threads that ask at the same time."""

import ast
import threading
import time
from pathlib import Path

import linkwise
from linkwise.once import once


class Slow:
    def __init__(self):
        self.made = 0

    @once
    def value(self):
        """What is slow."""
        time.sleep(0.02)
        self.made += 1
        return object()


def test_threads_get_one_value():
    slow, seen, start = Slow(), [], threading.Barrier(8)

    def ask():
        start.wait()
        seen.append(slow.value)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slow.made == 1
    assert len(set(map(id, seen))) == 1
    assert slow.__dict__["value"] is seen[0]


def test_objects_have_values_of_their_own():
    assert Slow().value is not Slow().value
    assert Slow.value.__doc__ == "What is slow."


def test_nobody_uses_a_property_without_a_lock():
    """From Python 3.12 on ``functools.cached_property`` has none."""
    for path in Path(linkwise.__file__).parent.rglob("*.py"):
        names = {
            getattr(n, "attr", getattr(n, "id", None)) for n in ast.walk(ast.parse(path.read_text("utf-8")))
        }
        assert "cached_property" not in names, path
