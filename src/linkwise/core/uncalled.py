"""Values that other libraries have as functions: they are plain tuples and arrays, and a call of one says what to type.

``robot.neutral()`` would otherwise be "'numpy.ndarray' object is not callable".
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


class UncalledVector(tuple[float, float, float]):
    """Three numbers, for ``robot.gravity``."""

    __slots__ = ()

    def __call__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "robot.gravity is a vector [m/s²], not a function: use robot.gravity_torques(q) for its torques, "
            "robot.with_gravity((0, 0, -9.81)) for another gravity"
        )

    def __reduce__(self) -> Any:
        return (tuple, (tuple(self),))


class UncalledArray(np.ndarray):
    """An array that is a property of robots. Results computed from it, parts and copies of it are plain arrays."""

    said = "this"

    def __call__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(f"{self.said} is an array, not a function: use it without parentheses")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(plain(each) for each in options["out"])
        return getattr(ufunc, method)(*(plain(each) for each in inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        arrays = tuple(plain(each) for each in arguments)
        return super().__array_function__(function, (np.ndarray,), arrays, options)

    def __getitem__(self, key: Any) -> Any:
        return plain(self)[key]

    def copy(self, order: Any = "C") -> np.ndarray:
        """A plain array with the same numbers."""
        return plain(self).copy(order)

    def __repr__(self) -> str:
        return repr(plain(self))

    def __reduce__(self) -> Any:
        return plain(self).__reduce__()


def uncalled(array: np.ndarray, said: str) -> np.ndarray:
    """The array as a property of robots.

    Args:
        array: the numbers.
        said: what it is, for the message of a call, such as "robot.neutral".
    """
    value = array.view(UncalledArray)
    value.said = said
    return value


def plain(value: Any) -> Any:
    """The numbers of an array of a derived class as a plain array, without a copy; everything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return value.view(np.ndarray) if isinstance(value, UncalledArray) else value
