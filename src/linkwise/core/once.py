"""A property that is computed once, whichever thread reads it first.

``functools.cached_property`` has no lock from Python 3.12 on: threads that read it at the same time would each
compute a value, and one of these values would be freed while its machine code may still be in use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from linkwise.core import forks

T = TypeVar("T")
_NOTHING = object()

_busy: dict[
    tuple[int, str], _Busy
] = {}  # what is being computed, by the object's address and the property's name
_bookkeeping = forks.lock()  # held for a moment only, never while something is computed


class _Busy:
    """The lock of one property of one object, while threads use it."""

    def __init__(self, key: tuple[int, str]):
        self.key, self.lock, self.threads = key, forks.lock(), 0

    @classmethod
    def with_object(cls, instance: object, name: str) -> _Busy:
        key = (id(instance), name)
        with _bookkeeping:
            busy = _busy.get(key)
            if busy is None:
                busy = _busy[key] = cls(key)
            busy.threads += 1
        return busy

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        with _bookkeeping:
            self.threads -= 1
            if self.threads == 0:
                del _busy[self.key]


class once(Generic[T]):
    """A method of no arguments as an attribute; its first value is kept in the object's ``__dict__``.

    A lock belongs to one object and exists while threads wait for its value. One lock for all objects of a class would
    be held while other things are computed and locked, in any order: two threads could wait for each other for ever.
    """

    def __init__(self, function: Callable[[Any], T]):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...
    def __get__(self, instance: Any, owner: type) -> once[T] | T:
        if instance is None:
            return self
        known = instance.__dict__
        found = known.get(self.name, _NOTHING)
        if found is _NOTHING:
            with forks.unforked, _Busy.with_object(instance, self.name):
                found = known.get(self.name, _NOTHING)
                if found is _NOTHING:
                    found = known[self.name] = self.function(instance)
        return found  # type: ignore[return-value]
