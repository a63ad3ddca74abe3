"""Everything that the package and its parts export: functions, constructors and methods, by name."""

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import linkwise

PARTS = (
    *(
        "collision",
        "compat",
        "control",
        "gpu",
        "identify",
        "motion",
        "optimal",
        "realtime",
        "report",
        "simulate",
        "view",
    ),
    *("model", "study"),
)


class Public(NamedTuple):
    label: str  # such as load, Robot.pose, motion.check; a class by its own name
    texts: list[str | None]  # docstrings: its own and, of methods and classes, those of the base classes
    function: Callable[..., Any]
    written: bool  # False: the constructor of a dataclass, which explains its fields


def public_functions() -> Iterator[Public]:
    seen: set[Any] = set()
    for module in (linkwise, *(importlib.import_module(f"linkwise.{part}") for part in PARTS)):
        prefix = module.__name__.removeprefix("linkwise").removeprefix(".")
        for name in getattr(module, "__all__", None) or _own_names(module):
            value = getattr(module, name)
            label = f"{prefix}.{name}" if prefix else name
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if value in seen or not _is_ours(value):
                continue
            seen.add(value)
            if inspect.isfunction(value):
                yield Public(label, [value.__doc__], value, True)
            elif not issubclass(value, Exception):
                yield from _of_class(label, value)


def _of_class(label: str, owner: type) -> Iterator[Public]:
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        value = getattr(value, "__func__", getattr(value, "function", value))
        if not inspect.isfunction(value) or (name.startswith("_") and name != "__init__"):
            continue
        if name == "__init__":
            written = not hasattr(owner, "__dataclass_fields__")
            yield Public(label, [base.__doc__ for base in owner.__mro__], value, written)
        elif _is_ours(value):
            texts = [getattr(vars(base).get(name), "__doc__", None) for base in owner.__mro__]
            yield Public(f"{label}.{name}", texts, value, True)


def _own_names(module) -> list[str]:
    named = {n: getattr(value, "__module__", "") for n, value in vars(module).items()}
    return [n for n, where in named.items() if where == module.__name__ and not n.startswith("_")]


def _is_ours(value) -> bool:
    return value.__module__.startswith("linkwise")
