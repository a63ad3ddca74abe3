"""A property computed once, also by threads that ask at the same time."""

import ast
import contextlib
import threading
import time
from pathlib import Path

import linkwise
from linkwise.core.once import once


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


class Guarded:
    """An object with a lock of its own, which it holds while it reads its property, and the other way round."""

    def __init__(self, other=None):
        self.lock, self.other = threading.RLock(), other

    @once
    def value(self):
        time.sleep(0.05)
        if self.other is not None:
            with self.other.lock:
                return 1
        return 2

    def read(self):
        with self.lock:
            time.sleep(0.02)
            return self.value


def together(*calls) -> list:
    """The results of calls on threads of their own; an error where one does not come back."""
    results = [None] * len(calls)

    def run(k):
        results[k] = calls[k]()

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "threads wait for each other"
    return results


def test_objects_do_not_wait_for_each_other():
    """One computes its property and needs the lock of the other, which holds it and computes its own."""
    other = Guarded()
    assert together(lambda: Guarded(other).value, other.read) == [1, 2]


def test_a_new_kernel_is_called_while_another_thread_asks_for_its_source():
    """Both trace the program first; with one lock for all kernels beside each kernel's own they waited for ever."""
    for seed in range(4):
        kernel = linkwise.random_robot(seed, 3).kernel("inverse_dynamics")
        state = [0.1] * 3
        torques, text = together(lambda: kernel(state, state, state), lambda: kernel.source("c"))  # noqa: B023
        assert torques.shape == (3,)
        assert "inverse_dynamics" in text


def test_no_lock_is_left():
    from linkwise.core.once import _busy

    class Fails:
        @once
        def value(self):
            raise ValueError("no value")

    for made in (Fails(), Slow()):
        with contextlib.suppress(ValueError):
            assert made.value is not None
    assert not _busy
