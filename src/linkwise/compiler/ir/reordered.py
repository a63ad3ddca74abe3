"""Programs in another order of their operations, with the same results: what suits compilers that order them again."""

from __future__ import annotations

import functools
from dataclasses import replace

from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import schedule
from linkwise.compiler.rollout import RolloutProgram


@functools.lru_cache(maxsize=4)
def ordered(program: Program | RolloutProgram) -> Program | RolloutProgram:
    """The program in the order that leaves the compiler fewer spills: with changes of sign as values of their own."""
    if isinstance(program, RolloutProgram):
        step = ordered(program.step)
        assert isinstance(step, Program)
        return replace(program, step=step)
    values = [node for nodes in program.values for node in nodes]
    return replace(program, body=schedule(values, free_signs=False))
