"""Targets: what a program can be written as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.core.upper import upper
from linkwise.errors import UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Program
    from linkwise.compiler.ir.sweeps import SweptProgram
    from linkwise.compiler.rollout import RolloutProgram

DIFFERENTIATED = ("casadi", "acados")  # targets that write derivatives too, see ``Kernel.derivatives``
# what writes them is registered (``linkwise.registered``): it needs shapes of programs, which are above kernels
TARGETS = ("c", "cuda", "python", "wasm", "casadi", "acados")


def source(program: Program | SweptProgram | RolloutProgram, target: str, **options: Any) -> str:
    """The program as source code of a target."""
    if target not in TARGETS:
        raise UnknownNameError(f"target: no {target!r}; expected one of {', '.join(TARGETS)}")
    return upper(f"source in {target}")(program, **options)
