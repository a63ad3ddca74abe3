"""Errors that name the argument, for every public function and constructor.

Functions are written without checks of types: a call that works costs nothing more. When one raises an error that
does not name an argument (TypeError, AttributeError, KeyError …), the arguments are compared with their annotations,
and the first that does not fit is named in a ``DtypeError``, with its description from the docstring. Text where a list
or a dictionary belongs is named in any case: Python goes through its letters.

An error inside a function whose arguments all fit stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from linkwise.errors import LinkwiseError

RAW = (
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    ValueError,
    AssertionError,
    NotImplementedError,
    OverflowError,
)
_SKIPPED = "__linkwise_explained__"


def explain(namespace: dict[str, Any], part: str = "") -> None:
    """Explain the errors of all functions and constructors that a module exports.

    Args:
        namespace: of the module; its ``__all__``, or what it defines.
        part: what stands before their names in messages, such as ``motion``.
    """
    for name in namespace.get("__all__") or _own(namespace):
        value = namespace[name]
        label = f"{part}.{name}" if part else name
        if isinstance(value, FunctionType) and not _owned_elsewhere(value):
            namespace[name] = explained(value, label)
            namespace[name].__module__ = namespace["__name__"]  # pickles find it under this name
        elif isinstance(value, type) and not issubclass(value, Exception):
            made = getattr(value, "__init__")  # noqa: B009
            if isinstance(made, FunctionType) and not _owned_elsewhere(made):
                setattr(value, "__init__", explained(made, label))  # noqa: B010
            for method, made in list(vars(value).items()):
                if isinstance(made, classmethod) and not method.startswith("_"):
                    setattr(value, method, classmethod(explained(made.__func__, f"{label}.{method}")))
                elif (
                    isinstance(made, FunctionType)
                    and not method.startswith("_")
                    and not hasattr(made, _SKIPPED)
                ):
                    setattr(value, method, explained(made, f"{label}.{method}"))
            if not hasattr(value, "__getattr__"):
                setattr(value, "__getattr__", _missing)  # noqa: B010


def _missing(thing: Any, name: str) -> Any:
    """What an object says of an attribute that it does not have."""
    if not name.startswith("_"):
        if hasattr(type(thing), name):  # a property that raised an AttributeError: raise that one
            return object.__getattribute__(thing, name)
        from linkwise.arguments.guesses import answer, public_names

        kind = type(thing)
        names = {*public_names(kind), *(each for each in getattr(thing, "__dict__", ()) if each[0] != "_")}
        raise AttributeError(answer(name, kind.__name__, names, kind.__name__), name=name, obj=thing)
    raise AttributeError(f"{type(thing).__name__!r} object has no attribute {name!r}", name=name, obj=thing)


def explain_methods(owner: type, label: str) -> None:
    """Explain the errors of the plain methods that a class has or inherits."""
    for base in reversed(owner.__mro__):
        for name, value in list(vars(base).items()):
            if isinstance(value, FunctionType) and not name.startswith("_") and base.__module__ != "builtins":
                setattr(owner, name, explained(value, f"{label}.{name}"))


def _own(namespace: dict[str, Any]) -> list[str]:
    """Functions that a module without ``__all__`` defines."""
    return [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and getattr(value, "__module__", "") == namespace["__name__"]
    ]


def _owned_elsewhere(function: Any) -> bool:
    """Whether it is explained by the part that it comes from, or is not ours."""
    return hasattr(function, _SKIPPED) or not function.__module__.startswith("linkwise")


def explained(function: Callable[..., Any], label: str) -> Callable[..., Any]:
    """A function whose errors name the argument.

    Args:
        function: the function.
        label: its name in messages.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (LinkwiseError, *RAW) as error:
            from linkwise.arguments.wrong_arguments import explanation

            better = explanation(function, label, arguments, options, error)
            if better is None:
                raise
            raise better from error

    setattr(call, _SKIPPED, True)
    return call
