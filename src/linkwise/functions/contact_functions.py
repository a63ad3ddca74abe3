"""The functions of the table that are about contact: names, shapes, and quantities that can be inputs of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from linkwise.model.contacts import candidate_count, contact_rows

if TYPE_CHECKING:
    from linkwise.model import Model

Shapes = Mapping[str, tuple[int, ...]]

CONTACT_INPUTS = ("time_step", "contact_friction", "ground_height", "start_impulse")
"""What may be an input of a step."""
DEFAULT_STEP = 0.002  # [s]
_PER_CANDIDATE = {"contact_friction": 1, "ground_height": 1, "start_impulse": 3}


def contact_input_sizes(model: Model, names: Iterable[str]) -> dict[str, int]:
    """Scalars of each of these inputs."""
    return {name: candidate_count(model) * _PER_CANDIDATE.get(name, 0) or 1 for name in names}


def contact_operations(name: str, model: Model) -> int:
    """A rough estimate of the operations for the contact problem of a function, 0 for those without one.

    Where there are many rows their matrix is not formed.
    """
    rows = contact_rows(model) if name in CONTACT_FUNCTIONS[:4] else 0
    return rows * min(rows * (14 + rows), 1200)


def _of_candidates(name: str, *shape: int) -> Callable[[Model], Shapes]:
    return lambda model: {name: (candidate_count(model), *shape)}


CONTACT_SHAPES: dict[str, tuple[Callable[[Model], Shapes], str]] = {
    "contact_step": (
        lambda model: {"q": (model.nq,), "qd": (model.dof,), "impulse": (candidate_count(model), 3)},
        "positions and velocities after a step in time with contact, and its impulses",
    ),
    "contact_forces": (_of_candidates("forces", 3), "forces of contacts, mean over a step"),
    "contact_velocities": (_of_candidates("velocities", 3), "velocities of contacts after a step"),
    "contact_residual": (lambda model: {"residual": ()}, "largest error of the laws of contact after a step"),
    "contact_gaps": (_of_candidates("gaps"), "distances of contacts"),
    "contact_frames": (_of_candidates("frames", 4, 4), "points and axes of contacts"),
}
"""Outputs of each function, and what it computes."""
CONTACT_FUNCTIONS = tuple(CONTACT_SHAPES)
