"""Functions of parts above: a part below calls them by a name, a part above both has registered them.

A part imports only parts below it. Where a robot's method needs a part above it (``robot.show`` the page, an array of
PyTorch the operators for it), ``linkwise.registered`` has a function that imports that part when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LOADERS: dict[str, Callable[[], Any]] = {}


def register(name: str, load: Callable[[], Any]) -> None:
    """Say where something above is.

    Args:
        name: by which parts below ask for it.
        load: imports and gives it.
    """
    _LOADERS[name] = load


def upper(name: str) -> Any:
    """What is registered by this name: a module or a class of a part above."""
    return _LOADERS[name]()
