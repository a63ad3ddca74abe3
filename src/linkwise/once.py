"""A property that is computed once, whichever thread reads it first.

``functools.cached_property`` has no lock from Python 3.12 on: threads that read it at the same time would each
compute a value, and one of these values would be freed while its machine code may still be in use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from linkwise import forks

T = TypeVar("T")
_NOTHING = object()


class once(Generic[T]):
    """A method of no arguments as an attribute; its first value is kept in the object's ``__dict__``."""

    def __init__(self, function: Callable[[Any], T]):
        self.function = function
        self.__doc__ = function.__doc__
        self._lock = forks.lock()

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
            with forks.unforked, self._lock:
                found = known.get(self.name, _NOTHING)
                if found is _NOTHING:
                    found = known[self.name] = self.function(instance)
        return found  # type: ignore[return-value]
