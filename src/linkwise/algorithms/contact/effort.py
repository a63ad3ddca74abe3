"""How many sweeps and Newton's steps a contact problem gets, from tables of measured residuals.

Measured by ``benchmarks/contact.py --table``: 99.9 % of the states of a quadruped that is kicked and falls are under
the residual in the table ``SINGLE``. Candidates are redundant where some have less than three directions of their own:
several on one link, or on branches with fewer than three axes that move no other candidate. Their Delassus matrix may
be singular, and more steps are needed; ``REDUNDANT`` has what most states reach, the residual of others says so.
"""

from __future__ import annotations

from linkwise.algorithms.contact.law import Scene
from linkwise.algorithms.contact.solver import Effort
from linkwise.model.mechanism import Mechanism

DEFAULT_ACCURACY = 1e-6
SINGLE = {1e-2: Effort(2, 1), 1e-3: Effort(3, 1), 1e-6: Effort(3, 2), 1e-12: Effort(6, 3)}
REDUNDANT = {
    1e-2: Effort(6, 2, 1, (0.5,)),
    1e-3: Effort(6, 3, 1, (0.5, 0.2), (1e-3, 1e-3, 1e-6)),
    1e-6: Effort(6, 5, 1, (0.5, 0.2), (1e-3, 1e-3, 1e-3, 1e-6, 1e-9)),
    1e-12: Effort(8, 10, 1, (0.5, 0.2), (*(8 * (1e-3,)), 1e-6, 1e-9)),
}
"""Efforts by the residual that nearly all states reach."""
MANY = {
    1e-2: Effort(6, 1),
    1e-3: Effort(8, 1, 1),
    1e-6: Effort(8, 2, 1, (), (1e-3, 1e-6)),
    1e-12: REDUNDANT[1e-12],
}
"""The same for more than ``FEW`` redundant candidates: a Newton step grows with the cube of their number."""
FEW = 6


def is_redundant(scene: Scene, links: Mechanism) -> bool:
    """Whether some candidate has fewer than three axes that move no other one."""
    branches = [each.axes_of(links) for each in scene.candidates]
    if len(branches) == 1:
        return sum(len(links[k].axes) for k in branches[0]) < 3
    for k, own in enumerate(branches):
        others = set[int]().union(*(branches[:k] + branches[k + 1 :]))
        if sum(len(links[link].axes) for link in own - others) < 3:
            return True
    return False


def chosen(scene: Scene, links: Mechanism, accuracy: float | None = None) -> Effort:
    """The least effort of the table for this residual, or the largest one there is."""
    table = SINGLE
    if is_redundant(scene, links):
        table = REDUNDANT if len(scene.candidates) <= FEW else MANY
    wanted = DEFAULT_ACCURACY if accuracy is None else accuracy
    return next((effort for reached, effort in table.items() if reached <= wanted), list(table.values())[-1])
