"""Steps and refinements of one programme of ``active_set``, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.language import array, needed, span, variable
from linkwise.scalar import where

if TYPE_CHECKING:
    from linkwise.solve.active_set import ActiveSet

REFINEMENTS, SHARED_REFINEMENTS = 4, 8
"""After the steps, that take ``SOFT`` and ``SHARING`` back: so many at most, more with facets or unknowns without a
box."""


def run_together(solvers: Sequence[ActiveSet], starts: Sequence[Any]) -> None:
    """All steps of programmes with the same numbers of unknowns, inequalities and steps, side by side: what one waits
    for leaves the processor to others.

    Args:
        solvers: the programmes.
        starts: of each, not zero for inequalities that were active in the last sample, (count,).
    """
    for solver, start in zip(solvers, starts, strict=True):
        solver._begin(start)
    take_steps(solvers, solvers[0].steps)
    settle(solvers)


def take_steps(solvers: Sequence[ActiveSet], steps: int) -> None:
    """So many steps, those after the last one that changes something left out."""
    still = _Any(solvers)
    for _ in span(steps):
        for _ in needed(still.some):
            left = []
            for solver in solvers:
                solver._measure()
                left.append(solver._choose())
            still.look()
            for _ in needed(still.some):
                for solver, own in zip(solvers, left, strict=True):
                    solver._step(own)


def settle(solvers: Sequence[ActiveSet], sound: Any = True) -> None:
    """``refine``, but the solution of the steps stays where inequalities are exceeded by less in it, as squares: where
    limits contradict each other, stiffer ones may ask for more of an unknown than others allow."""
    if solvers[0].boxes_alone:
        refine(solvers, sound)
        return
    before = [(solver._exceeded(), array(solver.u), array(solver.x)) for solver in solvers]
    refine(solvers, sound)
    for solver, (exceeded, u, x) in zip(solvers, before, strict=True):
        worse = solver._exceeded() > exceeded
        for i in span(solver.slots):
            solver.u[i] = where(worse, u[i], solver.u[i])
        for j in span(solver.rows.unknowns):
            solver.x[j] = where(worse, x[j], solver.x[j])


def refine(solvers: Sequence[ActiveSet], sound: Any = True) -> None:
    """Solutions anew from the multipliers, with the same inequalities active, and with what ``SHARING`` and ``SOFT`` do
    to them taken back: the proximal point method, with B as the inverse. Without active inequalities there is nothing
    to take back.

    Args:
        solvers: the programmes.
        sound: whether there is something to refine.
    """
    rows = solvers[0].rows
    rounds = [(solver, *solver._begin_refining(sound)) for solver in solvers]
    still = _Any(solvers)
    still.look()
    for _ in span(SHARED_REFINEMENTS if rows.others or rows.facets else REFINEMENTS):
        for _ in needed(still.some):
            for solver, y, stiffer in rounds:
                solver._refine_once(y, stiffer)
            still.look()


class _Any:
    """``some`` is negative as long as one of several programmes goes on."""

    def __init__(self, solvers: Sequence[ActiveSet]):
        self.solvers = solvers
        self.some = solvers[0].still if len(solvers) == 1 else variable(-1.0)

    def look(self) -> None:
        if len(self.solvers) > 1:
            least = self.solvers[0].still.value
            for solver in self.solvers[1:]:
                least = where(solver.still.value < least, solver.still.value, least)
            self.some.value = least
