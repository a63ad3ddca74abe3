"""The programmes of ``limited`` by a dual active-set method with a fixed number of steps.

Goldfarb and Idnani ("A numerically stable dual method for solving strictly convex quadratic programs", 1983): from the
minimum without inequalities, a step takes the inequality that is exceeded most into the active set, or, where a
multiplier would become negative first, takes that one out of it. So it needs about as many steps as inequalities are
active in the end, and a step is some products of a matrix and a vector, where a step of an interior-point method is a
factorisation. A step always has the same operations: what is chosen is a vector of zeros and a one.

Inequalities are exceeded by u / SOFT, in units of their rows, boxes not at all (with ``Rows.firm`` boxes are
exceeded, and the first bounds are not): multipliers u of active ones solve (A P⁻¹ Aᵀ + C) u = …, with C of 1/SOFT on
the diagonal. B, the inverse of this matrix, changes by a rank of one when an inequality enters or leaves. Active
normals are columns of L⁻¹ Aᵀ, with P = L Lᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from linkwise.language import (
    array,
    dot,
    dots,
    elementwise,
    empty,
    needed,
    span,
    tiles,
    variable,
    zeros,
)
from linkwise.scalar import all_of, where
from linkwise.solve.cost_factors import SHARING, CostFactors
from linkwise.solve.factors import largest
from linkwise.solve.limited import CONTRADICTING, STIFF, Rows
from linkwise.solve.slots import Slots
from linkwise.solve.softness import larger, softness, usual_weight
from linkwise.solve.steps import refine, run_together, settle, take_steps

REFINED = 1e-12
"""There is no refinement after one that moves unknowns by less than this, of their size, from 1 on."""
TOLERANCE = 1e-10
"""Of the size of a limit, from 1 on: less than that is not exceeded."""
LEFT_OUT = 256
"""Products with rows of one kind, from which they are left out where no candidate of this kind is chosen."""
AGAIN = 1e3
"""Inequalities that were active in the last sample are chosen as if they were exceeded by so many times more."""

NEVER = 1e30
"""No candidate is exceeded by so much."""
APART = 2.0**-40
"""By which candidates are chosen more or less eagerly than their neighbours, so that no two are chosen at once: those
of a symmetric robot are exceeded by exactly the same."""


class ActiveSet:
    """One programme, and what its steps change.

    Pairs of an upper and a lower limit are one candidate, because one of them is active at most: boxes, facets, bounds.

    Args:
        rows: numbers of unknowns and inequalities.
        P, p: cost, (N, N) and (N,); P is overwritten. Entries of unknowns without a box are zero.
        S: rows of bounds and of forces one above the other, (bounds + forces, N); None: there are none.
        limits: right sides of all inequalities (count,), in the order of ``Rows``.
        steps: how many.
        soft, stiff: weights of what inequalities are exceeded by, during the steps and afterwards; None: as above.
    """

    def __init__(
        self,
        rows: Rows,
        P: Any,
        p: Any,
        S: Any,
        limits: Any,
        steps: int,
        *,
        soft: float | None = None,
        stiff: float = STIFF,
    ):
        self.rows, self.S, self.P, self.p, self.steps = rows, S, P, p, steps
        N = rows.unknowns
        self.soft, self.stiff = soft or usual_weight(rows), stiff
        self.facets, self.runs = rows.each_facet(), self._runs()
        self.boxes_alone = not rows.bounds and not self.facets
        self.first_facet = rows.boxes - len(rows.unlimited)
        self.first_bound = self.first_facet + len(self.facets)
        self.candidates = self.first_bound + rows.bounds
        # two of three steps take something in, as a rule; fours for vectors. More than N where limits contradict: up
        # to 16 for 12 unknowns were seen with facets.
        self.slots = min(self.candidates, 4 * -(-steps // 6))
        if self.facets:
            self.slots = min(self.slots, max(16, 4 * (5 * N // 16 + 2)))
        self._read_limits(limits)
        self.cost = CostFactors(P, p, rows)
        self.bound_give = softness(rows, P, S, self.soft, [] if rows.firm is None else self.runs)
        self.rest = self.cost.halved(elementwise(lambda v: -v, self.p))
        self.x = self.cost.solved(self.rest)
        self.cost.lend(self.x, self.rest, self.p)
        self.start = array(self.x)
        slots, K = self.slots, self.candidates
        self.places = Slots(N, slots)
        self.u = zeros(slots)
        self.give, self.used, self.right = zeros(slots), zeros(slots), zeros(slots)
        self.excess, self.chosen, self.shift = empty(K), zeros(K), zeros(N)
        self.along = empty(max(1, rows.bounds + rows.forces))
        self.moved, self.narrowed = zeros(max(1, rows.movable)), zeros(max(1, rows.movable))
        self.own, self.pending, self.over = variable(0.0), variable(0.0), variable(0.0)
        self.still = variable(-1.0)  # negative as long as a candidate is exceeded
        self.numbers = array([float(k + 1) for k in range(slots)])
        self.kind_chosen = variable(-1.0)
        self.reach, self.r, self.column, self.du = zeros(slots), zeros(slots), zeros(slots), zeros(slots)
        self.enter, self.out = zeros(slots), zeros(slots)

    # -- the programme ------------------------------------------------------------------------------------------------

    def _runs(self) -> list[tuple[int, int, int]]:
        """Boxes with a limit: (first, end, first candidate) of those that follow each other."""
        found: list[tuple[int, int, int]] = []
        limited = [i for i in range(self.rows.boxes) if i not in self.rows.unlimited]
        for place, i in enumerate(limited):
            if found and found[-1][1] == i:
                found[-1] = (found[-1][0], i + 1, found[-1][2])
            else:
                found.append((i, i + 1, place))
        return found

    def _read_limits(self, h: Any) -> None:
        """Half width of every candidate, with the tolerance, and the middle of bounds."""
        r, first = self.rows, self.first_bound
        self.middle, self.half = empty(max(1, r.bounds)), empty(self.candidates)
        self.box_middle = None if r.firm is None else zeros(r.boxes)
        for start, end, at in self.runs:
            for i in span(start, end):
                if self.box_middle is None:
                    self.half[i + (at - start)] = h[i] * (1.0 + TOLERANCE) + TOLERANCE
                else:
                    self.box_middle[i], self.half[i + (at - start)] = _interval(h[i], h[r.boxes + i])
        for k, (number, _, _) in enumerate(self.facets):
            self.half[self.first_facet + k] = h[number] + TOLERANCE * (1.0 + abs(h[number]))
        for i in span(r.bounds):
            self.middle[i], self.half[first + i] = _interval(h[r.moving + i], h[r.moving + r.bounds + i])

    # -- the steps ----------------------------------------------------------------------------------------------------

    def run(self, start: Any) -> None:
        """All steps.

        Args:
            start: not zero for inequalities that were active in the last sample, (count,).
        """
        run_together([self], [start])

    def _begin(self, start: Any) -> None:
        r = self.rows
        # above zero: how eagerly a candidate is chosen; below: minus the number of its slot
        self.place = array([1.0 + APART * k for k in range(self.candidates)])
        for begin, end, first in self.runs:
            for i in span(begin, end):
                both, at = start[i] + start[r.boxes + i], i + (first - begin)
                self.place[at] = self.place[at] * where(both > 0.0, AGAIN, 1.0)
        for k, (number, _, _) in enumerate(self.facets):
            at = self.first_facet + k
            self.place[at] = self.place[at] * where(start[number] > 0.0, AGAIN, 1.0)
        for i in span(r.bounds):
            both = start[r.moving + i] + start[r.moving + r.bounds + i]
            at = self.first_bound + i
            self.place[at] = self.place[at] * where(both > 0.0, AGAIN, 1.0)

    def move_bounds(self, moved: Any, narrowed: Any, steps: int) -> None:
        """The solution again, after bounds that depend on it have moved: the same ones stay active, and some steps take
        in those that are exceeded now. Where limits contradict each other nothing changes. After ``run``.

        Args:
            moved: how far the middle of every bound is from where it was for ``run``, (bounds,); with ``Rows.firm`` of
                every box, (boxes,).
            narrowed: how much smaller its half width is.
            steps: how many; 0: none.
        """
        self._measure()
        worst = variable(-1.0)
        for k in span(self.candidates):
            worst.value = larger(worst.value, self.excess[k] - CONTRADICTING * (1.0 + self.half[k]))
        kept = worst.value < 0.0
        self.own.value, self.pending.value = 0.0, 0.0
        self.over.value = where(kept, 0.0, 1.0)  # no further steps, also beside states that take some
        middle = self.middle if self.box_middle is None else self.box_middle
        for k, at, value in self._movable():
            half = larger(self.half[at] + self.narrowed[k] - narrowed[k], TOLERANCE)
            more = moved[k] - self.moved[k]
            sided = half - self.half[at] + where(value > middle[k], more, -more)
            for first, end in self.places.used():
                for i in span(first, end):
                    own = all_of(kept, abs(self.numbers[i] + self.place[at]) < 0.5)
                    self.right[i] = self.right[i] + where(own, sided, 0.0)
            middle[k] = middle[k] + where(kept, more, 0.0)
            self.narrowed[k] = where(kept, self.narrowed[k] + (self.half[at] - half), self.narrowed[k])
            self.half[at] = where(kept, half, self.half[at])
            self.moved[k] = where(kept, moved[k], self.moved[k])
        refine([self], kept)
        if steps:
            self.still.value = where(kept, -1.0, 1.0)
            take_steps([self], steps)
            settle([self], kept)

    def _movable(self) -> Iterator[tuple[Any, Any, Any]]:
        """(number, candidate, value) of bounds, or of boxes, that ``move_bounds`` moves."""
        if self.box_middle is None:
            for k in span(self.rows.bounds):
                yield k, self.first_bound + k, self.along[k]
            return
        for start, end, at in self.runs:
            for i in span(start, end):
                yield i, i + (at - start), self.x[i]

    def _exceeded(self) -> Any:
        """Sum of squares of what candidates are exceeded by where they contradict each other."""
        self._measure()
        total = variable(0.0)
        for k in span(self.candidates):
            over = larger(self.excess[k] - CONTRADICTING * (1.0 + self.half[k]), 0.0)
            total += over * over
        return total.value

    def _begin_refining(self, sound: Any) -> tuple[Any, Any]:
        """(memory of a round, how much softer the steps were than refinements)."""
        self.still.value = where(all_of(sound, self.places.count.value > 0.5), -1.0, 1.0)
        return empty(self.rows.unknowns), self._stiffer()

    def _stiffer(self) -> Any:
        """What inequalities are exceeded by after refinements, over what they are exceeded by during steps."""
        if self.rows.facets and not self.rows.others:  # of forces and accelerations, not of their sizes
            return (1.0 / self.stiff) / self.bound_give
        return self.soft / self.stiff

    def _refine_once(self, y: Any, stiffer: Any) -> None:
        r, N, shift, wrong = self.rows, self.rows.unknowns, self.shift, self.reach
        goes_on = self.still.value < 0.0
        for i in span(r.boxes, N):
            shift[i] = where(goes_on, (SHARING * self.cost.root[i]) * self.x[i], shift[i])
        self._take_back(goes_on)
        self._without_multipliers(y)
        self.places.of_normals(y, wrong)
        for first, end in self.places.used():
            for i in span(first, end):
                softer = stiffer * self.give[i] * self.u[i]
                wrong[i] = self.used[i] * (wrong[i] - self.right[i] - softer)
        self.places.of_inverse(wrong, self.du)
        for first, end in self.places.used():
            for i in span(first, end):
                more = self.u[i] + self.used[i] * self.du[i]
                self.u[i] = where(goes_on, more, self.u[i])
        self._without_multipliers(y)
        moved, most = self.cost.solved(y), variable(0.0)
        for j in span(N):
            change = abs(moved[j] - self.x[j]) - REFINED * (1.0 + abs(moved[j]))
            most.value = larger(most.value, change)
            self.x[j] = where(goes_on, moved[j], self.x[j])
        further = where(most.value > 0.0, -1.0, 1.0)
        if self.boxes_alone:  # with nothing to take back, unless something is lent
            further = where(self.cost.lacks.value < 0.0, further, 1.0)
        self.still.value = where(goes_on, further, self.still.value)

    def _take_back(self, goes_on: Any) -> None:
        """The shift with which what ``CostFactors`` lends costs nothing at x."""
        for _ in needed(self.cost.lacks):
            b = zeros(self.rows.unknowns)
            for i in span(self.rows.boxes):
                b[i] = self.cost.lent[i] * (self.x[i] - self.start[i])
            half, own = self.cost.halved(b), all_of(goes_on, self.cost.lacks.value < 0.0)
            for i in span(self.rows.boxes):
                self.shift[i] = where(own, half[i], self.shift[i])

    def _without_multipliers(self, y: Any) -> None:
        """y = L⁻¹ (−p) + shift − N u."""
        for j in span(self.rows.unknowns):
            y[j] = self.rest[j] + self.shift[j]
        self.places.less_normals(y, self.u)

    def _measure(self) -> None:
        """By how much every candidate is exceeded."""
        r, first = self.rows, self.first_bound
        for start, end, at in self.runs:
            for i in span(start, end):
                self.excess[i + (at - start)] = abs(self._off_middle(i)) - self.half[i + (at - start)]
        if self.S is None:
            return
        for rows in tiles(self.S.shape[0]):
            sums = dots([self.S[i, :] for i in rows], self.x, [0.0] * len(rows))
            for i, total in zip(rows, sums, strict=True):
                self.along[i] = total
        for i in span(r.bounds):
            self.excess[first + i] = abs(self.along[i] - self.middle[i]) - self.half[first + i]
        for k, (_, at, row) in enumerate(self.facets):
            value = -self.half[self.first_facet + k]
            for a, c in enumerate(row):
                value = value + c * self.along[r.bounds + at + a] if c else value
            self.excess[self.first_facet + k] = value

    def _off_middle(self, i: Any) -> Any:
        """How far an unknown is from the middle of its box."""
        return self.x[i] if self.box_middle is None else self.x[i] - self.box_middle[i]

    def _key(self, k: Any) -> Any:
        """By which the candidate is chosen: largest first, active ones never."""
        return where(self.place[k] > 0.0, self.excess[k] * self.place[k], -1.0)

    def _choose(self) -> Any:
        """The candidate that is exceeded most, or again the one of the last step; what is left of its excess.

        Boxes, facets and bounds are counted apart: sums of a single state wait for their last addition.
        """
        ends = (0, self.first_facet, self.first_bound, self.candidates)
        kinds = [span_of for span_of in pairwise(ends) if span_of[0] < span_of[1]]
        parts = []
        for first, end in kinds:
            most = variable(0.0)
            for k in span(first, end):
                most.value = larger(most.value, self._key(k))
            parts.append(most.value)
        best = parts[0]
        for part in parts[1:]:
            best = larger(best, part)
        best = where(self.over.value > 0.5, 0.0, best)
        held, least = self.pending.value > 0.0, where(best > 0.0, best, NEVER)
        self.still.value = where(held, -1.0, where(best > 0.0, -1.0, 1.0))
        left: Any = 0.0
        for first, end in kinds:
            own = variable(0.0)
            for k in span(first, end):
                fresh = where(self._key(k) >= least, 1.0, 0.0)
                self.chosen[k] = where(held, self.chosen[k], fresh)
                own += self.chosen[k] * self.excess[k]
            left = left + own.value
        return left

    def _normal(self) -> tuple[Any, Any, Any]:
        """(L⁻¹ n of the chosen candidate, n x, what it may be exceeded by for a multiplier of one)."""
        r, first = self.rows, self.first_bound
        n, boxed = zeros(r.unknowns), variable(0.0)
        for start, end, at in self.runs:
            for i in span(start, end):
                own = self.chosen[i + (at - start)]
                n[i] = where(self._off_middle(i) > 0.0, own, -own)
                boxed += own
        if self.S is not None:
            parts = empty(r.bounds + r.forces)
            for i in span(r.bounds):
                own = self.chosen[first + i]
                parts[i] = where(self.along[i] > self.middle[i], own, -own)
            for k, own in enumerate(r.each_force()):
                total: Any = 0.0
                for facet, c in own:
                    total = total + c * self.chosen[self.first_facet + facet]
                parts[r.bounds + k] = total
            self._add_rows(n, parts, slice(r.bounds), range(first, self.candidates))
            forces = slice(r.bounds, r.bounds + r.forces)
            self._add_rows(n, parts, forces, range(self.first_facet, first))
        reached = dot(n, self.x)
        moving = variable(0.0 if r.firm is None else boxed.value)
        for k in span(r.firm or 0, r.bounds):
            moving += self.chosen[first + k]
        if r.firm is not None:
            return self.cost.halved(n), reached, where(moving.value > 0.5, self.bound_give, 0.0)
        return self.cost.halved(n), reached, where(boxed.value > 0.5, 0.0, self.bound_give)

    def _add_rows(self, n: Any, parts: Any, rows: slice, candidates: range) -> None:
        """n ← n + Sᵀ parts over rows of one kind; many of them only where one of their candidates is chosen."""
        S, parts, size = self.S[rows, :], parts[rows], self.rows.unknowns
        if S.shape[0] * size < LEFT_OUT:
            for j in span(size if S.shape[0] else 0, parallel=True):
                n[j] = dot(S[:, j], parts, n[j])
            return
        one = variable(0.0)
        for k in span(candidates.start, candidates.stop):
            one += self.chosen[k]
        own = one.value > 0.5
        self.kind_chosen.value = where(own, -1.0, 1.0)
        for _ in needed(self.kind_chosen):
            for j in span(size, parallel=True):
                n[j] = where(own, dot(S[:, j], parts, n[j]), n[j])

    def _step(self, left: Any) -> None:
        """Towards the chosen candidate. Where none is exceeded nothing changes, to the last bit."""
        n, right, give = self._normal()
        right = right - left
        left = larger(left - give * self.own.value, 0.0)
        N, r = self.rows.unknowns, self.r
        self.places.open()
        self.places.of_normals(n, self.reach)
        self.places.of_inverse(self.reach, r)
        length = variable(give)
        for first, end in self.places.used():
            for i in span(first, end):
                r[i] = self.used[i] * r[i]
                length += self.give[i] * r[i] * r[i]
        d = array(n)
        self.places.less_normals(d, r)
        for j in span(N):
            length += d[j] * d[j]
        size = where(left > 0.0, length.value, 1.0)
        # the first multiplier that would be negative: u / r < left / size, without a division; those that moved bounds
        # have made negative leave at once
        above, below, leaving = variable(left), variable(size), variable(0.0)
        for first, end in self.places.used():
            for i in span(first, end):
                u = larger(self.u[i], 0.0)
                sooner = u * below.value < above.value * r[i]
                above.value = where(sooner, u, above.value)
                below.value = where(sooner, r[i], below.value)
                leaving.value = where(sooner, self.numbers[i], leaving.value)
        t = above.value / below.value
        self.own.value = self.own.value + t
        for first, end in self.places.used():
            for i in span(first, end):
                self.u[i] = where(left > 0.0, larger(self.u[i] - t * r[i], 0.0), self.u[i])
        moved = self.cost.solved(d)
        for j in span(N):
            self.x[j] = where(left > 0.0, self.x[j] - t * moved[j], self.x[j])
        self._exchange(n, right, give, size, left, leaving.value)

    def _exchange(self, n: Any, right: Any, give: Any, size: Any, left: Any, leaving: Any) -> None:
        """Take the chosen candidate into a free slot, or empty the slot ``leaving``."""
        enter, out, column, r = self.enter, self.out, self.column, self.r
        drops = leaving > 0.5
        enters = where(drops, 0.0, where(left > 0.0, 1.0, 0.0))
        missing, number = variable(enters), variable(0.0)
        for first, end in self.places.used():
            for i in span(first, end):
                enter[i] = where(self.used[i] > 0.5, 0.0, missing.value)
                missing.value = missing.value - enter[i]
                number += enter[i] * self.numbers[i]
                out[i] = where(abs(self.numbers[i] - leaving) < 0.5, 1.0, 0.0)
        self.places.of_inverse(out, column)
        corner = variable(0.0)
        for first, end in self.places.used():
            for i in span(first, end):
                corner += column[i] * out[i]
                column[i] = where(drops, column[i], r[i] - enter[i])
        factor = where(drops, -1.0, enters - missing.value) / where(drops, corner.value, size)
        for first, end in self.places.used():
            for i in span(first):
                part = factor * column[i]
                for j in span(first, end, parallel=True):
                    self.places.B[i, j] = self.places.B[i, j] + part * column[j]
            for i in span(first, end):
                part = factor * column[i]
                for j in span(i, end, parallel=True):
                    self.places.B[i, j] = self.places.B[i, j] + part * column[j]
            for j in span(self.rows.unknowns):
                for i in span(first, end, parallel=True):
                    self.places.normals[j, i] = (
                        where(out[i] > 0.5, 0.0, self.places.normals[j, i]) + enter[i] * n[j]
                    )
            for i in span(first, end):
                stays = 1.0 - out[i]
                self.u[i] = stays * self.u[i] + enter[i] * self.own.value
                self.give[i] = stays * self.give[i] + enter[i] * give
                self.used[i] = stays * self.used[i] + enter[i]
                self.right[i] = stays * self.right[i] + enter[i] * right
        entered, freed = number.value > 0.5, 1.0 - APART * leaving
        for k in span(self.candidates):
            old = where(all_of(drops, abs(self.place[k] + leaving) < 0.5), freed, self.place[k])
            self.place[k] = where(all_of(entered, self.chosen[k] > 0.5), -number.value, old)
        self.own.value = where(drops, self.own.value, 0.0)
        self.pending.value = where(drops, 1.0, 0.0)
        self.places.count.value = self.places.count.value + where(drops, -1.0, where(entered, 1.0, 0.0))

    # -- results ------------------------------------------------------------------------------------------------------

    def worst(self) -> Any:
        """The largest violation of the optimality conditions: of stationarity, in units of the mean diagonal of P
        and of L⁻¹, and of inequalities, active or not."""
        self._measure()
        a = self.rows.boxes
        gradient = zeros(self.rows.unknowns)
        for i in span(a):
            gradient[i] = dot(self.P[i, :a], self.x[:a], self.p[i])
        for _ in needed(self.cost.lacks):
            for i in span(a):
                lent = self.cost.lent[i] * (self.x[i] - self.start[i])
                gradient[i] = where(self.cost.lent[i] > 0.0, gradient[i] + lent, gradient[i])
        for i in span(a, self.rows.unknowns):
            gradient[i] = SHARING * self.x[i]
        half = self.cost.halved(gradient)
        for j in span(self.rows.unknowns):
            half[j] = self.shift[j] - half[j]
        self.places.less_normals(half, self.u)
        most = variable(largest(half))
        for k in span(self.candidates):
            most.value = larger(most.value, self.excess[k])
        return most.value

    def slope(self, x: Any) -> tuple[Any, Any]:
        """(f, its gradient (N,)) of half the sum of squares f of what inequalities that may be exceeded are exceeded
        by; zeros where it is nothing that ``CONTRADICTING`` counts. The last call: x takes the place of the solution.

        Args:
            x: the unknowns, within what is kept whatever happens.
        """
        r, first = self.rows, self.first_bound
        found, total, over = zeros(r.unknowns), variable(0.0), variable(-1.0)
        for k in span(self.candidates):
            over.value = larger(over.value, self.excess[k] - CONTRADICTING * (1.0 + self.half[k]))
        missed = over.value > 0.0
        over.value = where(missed, -1.0, 1.0)
        for _ in needed(over):
            for j in span(r.unknowns):
                self.x[j] = where(missed, x[j], self.x[j])
            self._measure()
            parts = zeros(max(1, r.bounds + r.forces))

            def beyond(k: Any) -> Any:
                value = larger(self.excess[k], 0.0)
                total.value = total.value + where(missed, 0.5 * value * value, 0.0)
                return value

            for start, end, at in self.runs if r.firm is not None else ():
                for i in span(start, end):
                    value = beyond(i + (at - start))
                    found[i] = where(missed, where(self._off_middle(i) > 0.0, value, -value), found[i])
            for i in span(r.firm or 0, r.bounds):
                value = beyond(first + i)
                parts[i] = where(self.along[i] > self.middle[i], value, -value)
            for k, (_, at, row) in enumerate(self.facets):
                value = beyond(self.first_facet + k)
                for a, c in enumerate(row):
                    if c:
                        parts[r.bounds + at + a] = parts[r.bounds + at + a] + c * value
            if self.S is not None:
                rows = parts[: r.bounds + r.forces]
                for j in span(r.unknowns):
                    found[j] = where(missed, dot(self.S[:, j], rows, found[j]), found[j])
        return total.value, found

    def active(self) -> Any:
        """1 for inequalities that are active, (count,). After ``worst``."""
        r, found = self.rows, zeros(self.rows.count)

        def pair(k: Any, off: Any, upper: Any, lower: Any) -> None:
            on = where(self.place[k] < 0.0, 1.0, 0.0)
            above = where(off > 0.0, on, 0.0)
            found[upper] = above
            found[lower] = on - above

        for start, end, at in self.runs:
            for i in span(start, end):
                pair(i + (at - start), self._off_middle(i), i, r.boxes + i)
        for k, (number, _, _) in enumerate(self.facets):
            found[number] = where(self.place[self.first_facet + k] < 0.0, 1.0, 0.0)
        for i in span(r.bounds):
            off = self.along[i] - self.middle[i]
            pair(self.first_bound + i, off, r.moving + i, r.moving + r.bounds + i)
        return found


def _interval(upper: Any, lower: Any) -> tuple[Any, Any]:
    """(middle, half width with the tolerance) of −lower ≤ v ≤ upper."""
    half = larger(0.5 * (upper + lower), 0.0)
    return 0.5 * (upper - lower), half + TOLERANCE * (1.0 + larger(abs(upper), abs(lower)))
