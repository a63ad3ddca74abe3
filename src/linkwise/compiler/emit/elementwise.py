"""CUDA: statements for one element of arrays, without a frame, as elementwise kernels of CuPy take them."""

from __future__ import annotations

from dataclasses import replace

from linkwise.compiler.emit.clike import Printer
from linkwise.compiler.emit.cuda.frame import dialect
from linkwise.compiler.ir import loops
from linkwise.compiler.ir.loops import Nest, Place, Register


def elementwise(made: Nest) -> str:
    """The statements for one element of arrays, as an elementwise kernel of CuPy takes them: its inputs have the names
    of registers, output k of ``x`` is ``xk``."""

    class Element(Printer):
        def place(self, place: Place) -> str:
            return place.name if isinstance(place, Register) else super().place(place)

        def element(self, place: loops.Element) -> str:
            return f"{place.array}{self.whole(place.column)}"

    spelled = replace(dialect(made.dtype, made.name, "int"), real="double")
    return "\n".join(Element(made, spelled).statements())
