"""Targets: what a program can be written as."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from linkwise.errors import UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Program
    from linkwise.compiler.ir.sweeps import SweptProgram
    from linkwise.compiler.rollout import RolloutProgram

DIFFERENTIATED = ("casadi", "acados")  # targets that write derivatives too, see ``Kernel.derivatives``
TARGETS = {
    "c": ("c", "source"),
    "cuda": ("cuda.source", "source"),
    "python": ("formulas", "python_source"),
    "wasm": ("wasm", "source"),
    "casadi": ("external", "source"),
    "acados": ("acados", "source"),
}


def source(program: Program | SweptProgram | RolloutProgram, target: str, **options: Any) -> str:
    """The program as source code of a target."""
    if target not in TARGETS:
        raise UnknownNameError(f"target: no {target!r}; expected one of {', '.join(TARGETS)}")
    module, function = TARGETS[target]
    return getattr(importlib.import_module(f"linkwise.compiler.emit.{module}"), function)(program, **options)
