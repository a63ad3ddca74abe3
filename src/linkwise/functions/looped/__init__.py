"""Functions that grow with the square or the cube of the number of joints, as loops over joints.

Straight-line code prepares some numbers for every joint, and loops do what is left: sums over pairs of joints of which
one carries the other, and solutions with the mass matrix. The arithmetic is that of ``algorithms``. Code is as long as
the robot has links, so it is compiled in a second or two where written out it would take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from linkwise.compiler.ir.program import Dtype
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest
from linkwise.compiler.trace.room import in_one_room
from linkwise.functions.looped.christoffel import christoffel
from linkwise.functions.looped.coriolis import coriolis_matrix
from linkwise.functions.looped.regressor import regressor
from linkwise.functions.looped.slopes import coefficients, inverse_dynamics_derivatives, mass_matrix
from linkwise.functions.looped.solutions import forward_dynamics_derivatives, inverse_mass_matrix
from linkwise.functions.table import Function, Setting

LOOPED: dict[str, Callable[[Function, Setting, Procedure], ProcedureNest]] = {
    "christoffel": christoffel,
    "coefficients": coefficients,
    "coriolis_matrix": coriolis_matrix,
    "mass_matrix": mass_matrix,
    "inverse_mass_matrix": inverse_mass_matrix,
    "inverse_dynamics_derivatives": inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": forward_dynamics_derivatives,
    "regressor": regressor,
}
"""By the names of functions; which of their algorithms are loops is in ``Function.looped``."""


def program(function: Function, setting: Setting, dtype: Dtype, *, fused: bool = True) -> ProcedureNest:
    """The loops of a function, with or without fused multiply-adds; all that they keep is one array, ``room``."""
    made = LOOPED[function.name](function, replace(setting, dtype=dtype), Procedure(dtype, fused=fused))
    return in_one_room(replace(made, unfused=lambda: program(function, setting, dtype, fused=False)))
