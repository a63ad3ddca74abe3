"""How many sweeps and Newton's steps a contact problem gets, from tables of measured residuals.

Measured by ``benchmarks/contact.py --table``: quantiles of the residual over states of moving robots. Candidates are
redundant where they have more rows than the links that carry them have directions: several on one link, or more rows
than velocity coordinates. Their Delassus matrix is singular, and more steps are needed.
"""

from __future__ import annotations

from collections import Counter

from linkwise.algorithms.contact.law import Scene
from linkwise.algorithms.contact.solver import Effort

DEFAULT_ACCURACY = 1e-6
SINGLE = {1e-2: Effort(6, 0), 1e-3: Effort(4, 1), 1e-6: Effort(4, 2), 1e-12: Effort(4, 3)}
REDUNDANT = {
    1e-2: Effort(10, 2, 1, (0.5,), 1e-3),
    1e-3: Effort(8, 4, 1, (0.5, 0.2), 1e-3),
    1e-6: Effort(8, 6, 1, (0.5, 0.2), 1e-3),
    1e-12: Effort(8, 20, 1, (0.5, 0.2, 0.1), 1e-3),
}
"""Efforts by the residual that nearly all states reach."""


def is_redundant(scene: Scene, dof: int) -> bool:
    """Whether the candidates can have more impulses than the robot has directions for them."""
    per_link = Counter(each.body for each in scene.candidates)
    return any(count > 1 for count in per_link.values()) or 3 * len(scene.candidates) > dof


def chosen(scene: Scene, dof: int, accuracy: float | None = None) -> Effort:
    """The least effort of the table for this residual, or the largest one there is."""
    table = REDUNDANT if is_redundant(scene, dof) else SINGLE
    wanted = DEFAULT_ACCURACY if accuracy is None else accuracy
    return next((effort for reached, effort in table.items() if reached <= wanted), list(table.values())[-1])
