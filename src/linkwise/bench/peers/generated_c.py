"""The C that Linkwise generates, compiled like the C of others: one state after another, no vectors across states."""

from __future__ import annotations

import linkwise
from linkwise.bench.peers.base import INPUTS, Peer
from linkwise.bench.peers.c_loop import CompiledC, compiler, loop_source
from linkwise.bench.subject import Subject


def make(subject: Subject) -> Peer:
    """Linkwise's C with this robot."""
    compiler()
    return GeneratedC(subject)


class GeneratedC(CompiledC):
    """``Kernel.source("c")``."""

    name = "linkwise C"

    def __init__(self, subject: Subject):
        super().__init__(subject.robot.dof)
        self.robot = subject.robot
        self.version = linkwise.__version__

    def has(self, function: str) -> bool:
        return True

    def source(self, function: str, dtype: str) -> str:
        text = self.robot.kernel(function, dtype=dtype).source("c", function_name="one_state")
        pointers = ", ".join(f"a{k}" for k in range(len(INPUTS[function])))
        return text + loop_source(function, dtype, self.dof, f"one_state({pointers}, out);")
