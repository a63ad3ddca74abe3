"""Names that other libraries and textbooks have for algorithms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linkwise.errors import suggest

_OTHER_NAMES = {
    "newton_euler": "rnea rne recursive_newton_euler newton-euler",
    "kalman": "aba articulated_body articulated_body_algorithm featherstone",
    "compound_link": "crba crb composite_rigid_body composite_rigid_body_algorithm cholesky",
    "conjugate_gradient": "cg conjugate_gradients",
    "preconditioned_conjugate_gradient": "pcg",
}


def usual_name(name: Any, valid: Iterable[str]) -> str:
    """Which algorithms there are, and which of them has this name elsewhere."""
    names = list(valid)
    for ours, others in _OTHER_NAMES.items():
        if ours in names and str(name).lower() in others.split():
            return f"{name} is {ours!r} here; valid: {', '.join(names)}"
    return suggest(name, names)
