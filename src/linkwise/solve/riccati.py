"""The Riccati recursion of optimal control: from the value function of the next stage to that of this one, and gains.

The recursion is the dual of the Kalman filter's: it runs backward in time over the cost to go as the filter runs
forward over the covariance.

    control, backward                                  filter, forward
    V  Hessian of the cost to go                       P  covariance of the estimate
    A, B  dynamics                                     Aᵀ, Hᵀ  dynamics and measurement, transposed
    predict:  Qxx = lxx + Aᵀ V' A                      P⁻ = W + A P Aᵀ
    innovation: Quu = luu + Bᵀ V' B                    S = R + H P⁻ Hᵀ
    gain:     K = −Quu⁻¹ (lux + Bᵀ V' A)               G = P⁻ Hᵀ S⁻¹
    update:   V = Qxx + Quxᵀ K                         P = P⁻ − G H P⁻

A stage has rows of which only some are full matrices: δv' = G (δq, δv, δu), and δq' = T δq + h S δv' where the
integrator is semi-implicit (``shifted`` rows; otherwise there are none and v is the whole state). T and S are
identities but for the blocks of orientations and floating bases (``turned``). In the coordinates (q, v') the value
function of the next stage has the Hessian

    Pqq = Tᵀ Vqq T     Pvq = (h Sᵀ Vqq + Vvq) T     Pvv = h² Sᵀ Vqq S + h (Sᵀ Vqv + Vvq S) + Vvv

so that the products need the rows of G alone: Y = Pvv G + (Pvq, 0, 0), then

    Qux = Guᵀ Yx    Quu = Guᵀ Yu    Qqq = Pqq + Yqᵀ Gq + Gqᵀ Pvq    Qqv = Yqᵀ Gv    Qvv = Gvᵀ Yv

each plus the cost's; with Z = Yq + Pvq, Qqq is the symmetric part of Pqq + Gqᵀ Z. Quu = L D Lᵀ gives z = L⁻¹ Qux, K =
−L⁻ᵀ D⁻¹ z and V = Qxx − zᵀ D⁻¹ z. Symmetric matrices are computed by half. With gaps f̄ between the shooting
intervals (C. Mastalli et al., "Crocoddyl: an efficient and versatile framework for multi-contact optimal control",
2020) the gradient of the next value function is taken where the dynamics lead: v'⁺ = v' + V' f̄. Limits of controls
follow Y. Tassa, N. Mansard and E. Todorov, "Control-limited differential dynamic programming", 2014: the step is the
minimum over the box, and rows of K are zero where a control is at its limit. Where a step was refused, so that there is
regularisation, they are zero, too, where a control leaves its limit: its feedback could push it back, the limit would
cut that off however short the step, and the step would not be one that lowers the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.core.once import once
from linkwise.language import (
    SIDE_BY_SIDE,
    dot,
    empty,
    less,
    span,
    straight,
    sums,
    sums_of,
    tiles,
    variable,
    zeros,
)
from linkwise.scalar import where
from linkwise.solve.factors import ldl_of_any, solve, solve_lower, solve_upper

BY_HALF = 12  # rows of a symmetric matrix that are computed by half; of larger ones whole rows, side by side
PASSES = 4  # over the controls that are held at their limits, in each stage
NEAR = 1e-4  # of the room to the other limit: a control that is so near to a limit gets no feedback
FAR = 1e300  # no limit is as far as that


@dataclass(frozen=True)
class Shape:
    """Sizes of a stage, and which entries of the cost's Hessian are not always zero."""

    shifted: int
    """Rows q' = q + h v'; 0 or as many as ``full``."""
    full: int
    """Rows v' that are full."""
    controls: int
    step: float
    """h."""
    entries: frozenset[tuple[int, int]]
    """(i, j), i ≥ j, of (x, u)."""
    boxed: bool
    """Whether controls have limits."""
    turned: tuple[range, ...] = ()
    """Rows of the blocks of T and S that are not identities."""

    @property
    def states(self) -> int:
        return self.shifted + self.full

    @property
    def width(self) -> int:
        return self.states + self.controls

    @once
    def blocks(self) -> dict[str, list[tuple[int, int]]]:
        """Blocks of the cost's Hessian that are not zero: "qq", "vv" and "uu", of which some are diagonals, "vq", "ux";
        the entries of each, row by row."""
        q, v, x, u = (
            range(*ends)
            for ends in (
                (self.shifted,),
                (self.shifted, self.states),
                (self.states,),
                (self.states, self.width),
            )
        )
        blocks = {"qq": (q, q), "vv": (v, v), "uu": (u, u), "vq": (v, q), "ux": (u, x)}
        found: dict[str, list[tuple[int, int]]] = {}
        for name, (rows, columns) in blocks.items():
            places = [(i, j) for i in rows for j in columns]
            given = [(i, j) for i, j in places if (max(i, j), min(i, j)) in self.entries]
            if given:
                found[name] = [(i, i) for i in rows] if all(i == j for i, j in given) else places
        return found

    def block_shape(self, name: str) -> tuple[int, ...]:
        """(rows,) of a diagonal, (rows, columns) of a matrix."""
        places = self.blocks[name]
        rows = len({i for i, _ in places})
        return (rows,) if all(i == j for i, j in places) else (rows, len(places) // rows)


class Riccati:
    """Memory of the recursion, and its steps; ``smallest`` is the pivot that counts as positive, by its diagonal."""

    def __init__(self, shape: Shape, smallest: float):
        s = self.shape = shape
        self.smallest = smallest
        n, v, q, m = s.states, s.full, s.shifted, s.controls
        self.Vqq, self.Vqv, self.Vvv, self.vx = empty(q, q), empty(q, v), empty(v, v), empty(n)
        self.moved = empty(n)  # gradient of the next value function beyond the gap, by q and v
        self.ahead = empty(v) if q else self.moved  # by q and v'
        self.Pqq, self.Pvq = empty(q, q), empty(v, q)
        self.Pvv = empty(v, v) if q else self.Vvv
        self.Y, self.Z = empty(v, s.width), empty(v, q)
        self.Quu, self.qu = empty(m, m), empty(m)
        self.Qux, self.z, self.scaled = empty(m, n), empty(m, n), empty(m, n)
        self.expected, self.gradient = variable(0.0), variable(0.0)
        self.closing, self.largest, self.sound = variable(0.0), variable(0.0), variable(1.0)

    def clear(self) -> None:
        """Before a sweep: first-order change of the cost, that by closing the gaps to second order, largest
        multiplier, largest |Qu| of a free control, and the soundness of ``factors.ldl_of_any``."""
        self.expected.value = self.gradient.value = self.closing.value = self.largest.value = 0.0
        self.sound.value = 1.0

    def next_value(self, gap: Any, mu: Any, turns: Sequence[Sequence[Any]] = ((), ())) -> None:
        """The value function of the stage that follows, seen from this one.

        Args:
            gap: f(x, u) less the state that follows (n,).
            mu: regularisation, in units of the diagonal of Pvv: new states stay near the old ones.
            turns: (T, S), the blocks of each.
        """
        s = self.shape
        v, q, h = s.full, s.shifted, s.step
        Vqq, Vqv, Vvv, moved, Pvq, Pvv = self.Vqq, self.Vqv, self.Vvv, self.moved, self.Pvq, self.Pvv
        if q:
            for i, total in sums([self.vx[:q]], (Vqq, gap[:q], 1), (Vqv, gap[q:], 1)):
                moved[i] = total
        for i, total in sums([self.vx[q:]], *[(Vqv.T, gap[:q], 1)][: bool(q)], (Vvv, gap[q:], 1)):
            moved[q + i] = total
        for i in span(s.states):
            self.closing += 0.5 * gap[i] * (self.vx[i] + moved[i])
            self.largest.value = larger(self.largest.value, abs(self.vx[i]))
        for i in span(q):
            self.ahead[i] = moved[q + i] + h * moved[i]
        if s.turned:
            self._turned(*turns)
        else:
            for i in span(q):
                for j in span(q):
                    self.Pqq[i, j] = Vqq[i, j]
                    Pvq[j, i] = h * Vqq[i, j] + Vqv[i, j]
            for i in span(q):
                for j in span(i + 1):
                    Pvv[i, j] = Vvv[i, j] + h * (Pvq[j, i] + Vqv[j, i])
                    Pvv[j, i] = Pvv[i, j]
        for i in span(v):
            Pvv[i, i] = Pvv[i, i] + mu * abs(Pvv[i, i])

    def _turned(self, T: Sequence[Any], S: Sequence[Any]) -> None:
        """The value function by (q, v') where some blocks of T and S are not identities."""
        s, n = self.shape, self.shape.shifted
        h, moved, Pvv, Pvq, Pqq = s.step, self.moved, self.Pvv, self.Pvq, self.Pqq
        held = empty(n)
        for at, turn, gain in zip(s.turned, T, S, strict=True):
            size = len(at)
            for i in span(size):
                self.ahead[at.start + i] = moved[n + at.start + i] + h * dot(
                    gain[:, i], moved[at.start : at.stop]
                )
                held[i] = dot(turn[:, i], moved[at.start : at.stop])
            for i in span(size):
                moved[at.start + i] = held[i]
        Vqq, Vqv = self.Vqq, self.Vqv  # used up: those of this stage take their place
        for i in span(n):
            for j in span(n, parallel=True):
                Pqq[i, j] = Vqq[i, j]
        turn_rows(Pqq, s.turned, T)
        turn_columns(Pqq, s.turned, T)
        turn_rows(Vqq, s.turned, S)
        for i in span(n):
            for j in span(n, parallel=True):
                Pvq[i, j] = h * Vqq[i, j] + Vqv[j, i]
        turn_columns(Pvq, s.turned, T)
        turn_columns(Vqq, s.turned, S)
        turn_rows(Vqv, s.turned, S)
        for i in span(n):
            for j in span(n, parallel=True):
                Pvv[i, j] = self.Vvv[i, j] + h * (h * Vqq[i, j] + (Vqv[i, j] + Vqv[j, i]))

    def stage(self, G: Any, gradient: Any, H: Mapping[str, Any], room: Any, mu: Any, k: Any, K: Any) -> None:
        """k and K of δu = k + K δx, and the value function of this stage.

        Args:
            G: rows of δv' by (δx, δu), (v, n + m).
            gradient: of the cost by (x, u).
            H: its Hessian, by the names of ``Shape.blocks``.
            room: (lowest, largest) change of the controls, two vectors, or None.
            mu: regularisation, in units of the diagonal of Quu.
            k: step of the controls (m,), which is written.
            K: gains (m, n), which are written.
        """
        s = self.shape
        n, q, m = s.states, s.shifted, s.controls
        Y, Quu, qu, Qux, z, scaled = self.Y, self.Quu, self.qu, self.Qux, self.z, self.scaled
        for j in span(q, parallel=True):
            for i, total in sums([self.Pvq[:, j]], (self.Pvv, G[:, j], 1)):
                Y[i, j] = total
                self.Z[i, j] = total + self.Pvq[i, j]
        for j in span(q, s.width, parallel=True):
            for i, total in sums([], (self.Pvv, G[:, j], 1)):
                Y[i, j] = total
        symmetric(Quu, H.get("uu"), lambda j: [(G[:, n:].T, Y[:, n + j], 1)])
        for i in span(m):
            Quu[i, i] = Quu[i, i] + mu * abs(Quu[i, i])
        for i, total in sums([gradient[n:]], (G[:, n:].T, self.ahead, 1)):
            qu[i] = total
        free = None
        if room is None:
            L, inverse, sound = ldl_of_any(Quu, self.smallest)
            k[:] = solve(L, inverse, -qu)
        else:
            L, inverse, sound, free = within_box(Quu, qu, room, self.smallest, k, mu)
            for i in span(m):
                qu[i] = where(pushed(qu[i], room[0][i], room[1][i]), 0.0 * qu[i], qu[i])
        self.sound.value = where(sound < self.sound.value, sound, self.sound.value)
        for i in span(m):
            self.expected += qu[i] * k[i]
            self.gradient.value = larger(self.gradient.value, abs(qu[i]))
        crossed = H.get("ux")
        for j in span(n, parallel=True):
            for i, total in sums([] if crossed is None else [crossed[:, j]], (G[:, n:].T, Y[:, j], 1)):
                Qux[i, j] = total
            self.vx[j] = dot(Qux[:, j], k, dot(G[:, j], self.ahead, gradient[j]))
            for i in span(m):
                z[i, j] = Qux[i, j] if free is None else Qux[i, j] * free[i]
            solve_lower(L, z[:, j])
            for i in span(m):
                scaled[i, j] = z[i, j] * inverse[i]
                K[i, j] = -scaled[i, j]
            solve_upper(L, K[:, j])
        for j in span(q):
            self.vx[j] = self.vx[j] + self.moved[j]
        self._value(G, H)

    def _value(self, G: Any, H: Mapping[str, Any]) -> None:
        """V of this stage: the block qv by columns, the symmetric blocks by half."""
        v, q = self.shape.full, self.shape.shifted
        Y, z, scaled, mixed = self.Y, self.z, self.scaled, H.get("vq")
        for j in span(v, parallel=True):
            products = (Y[:, :q].T, G[:, q + j], 1), (scaled[:, :q].T, z[:, q + j], -1)
            for i, total in sums([] if mixed is None else [mixed[j, :]], *products):
                self.Vqv[i, j] = total

        def of_positions(j: Any) -> list[Any]:
            return [(G[:, :q].T, self.Z[:, j], 1), (scaled[:, :q].T, z[:, j], -1)]

        def of_velocities(j: Any) -> list[Any]:
            return [(G[:, q : q + v].T, Y[:, q + j], 1), (scaled[:, q:].T, z[:, q + j], -1)]

        symmetric(self.Vqq, H.get("qq"), of_positions, self.Pqq)
        symmetric(self.Vvv, H.get("vv"), of_velocities)


def turn_rows(A: Any, places: Sequence[range], blocks: Sequence[Any]) -> None:
    """A ← Sᵀ A, where S is an identity but for these blocks on its diagonal."""
    for at, S in zip(places, blocks, strict=True):
        for j in span(A.shape[1], parallel=True):
            column = A[at.start : at.stop, j]
            straight(_turned, [S, column], [column])


def turn_columns(A: Any, places: Sequence[range], blocks: Sequence[Any]) -> None:
    """A ← A S, where S is an identity but for these blocks on its diagonal."""
    for at, S in zip(places, blocks, strict=True):
        for i in span(A.shape[0], parallel=True):
            row = A[i, at.start : at.stop]
            straight(_turned, [S, row], [row])


def _turned(S: Sequence[Any], a: Sequence[Any]) -> list[list[Any]]:
    """Sᵀ a; S row by row."""
    size, found = len(a), []
    for i in range(size):
        total = S[i] * a[0]
        for k in range(1, size):
            total = total + S[k * size + i] * a[k]
        found.append(total)
    return [found]


def symmetric(S: Any, cost: Any, products: Callable[[Any], list[Any]], part: Any = None) -> None:
    """Set a symmetric matrix to sums of products: those of small and of large ones are computed by half, of others by
    columns.

    Args:
        S: (n, n), which is written.
        cost: what is added to: a matrix, a diagonal or None.
        products: the sums of a column, as for ``language.sums``.
        part: a matrix that is added, where the symmetric part of the sums is wanted.
    """
    n = S.shape[0]
    diagonal = cost if cost is not None and len(cost.shape) == 1 else None
    given = [matrix for matrix in (part, None if diagonal is not None else cost) if matrix is not None]
    if part is not None or BY_HALF < n <= SIDE_BY_SIDE:
        for j in span(n, parallel=True):
            for i, total in sums([matrix[:, j] for matrix in given], *products(j)):
                S[i, j] = total
        for i in span(n):
            for j in span(i):
                S[i, j] = S[j, i] = 0.5 * (S[i, j] + S[j, i]) if part is not None else S[i, j]
    elif n > SIDE_BY_SIDE:
        for rows in tiles(n):
            for j in span(rows[0], n, parallel=True):
                totals = sums_of(rows, [matrix[:, j] for matrix in given], *products(j))
                for i, total in zip(rows, totals, strict=True):
                    S[i, j] = total
        for i in span(n):
            for j in span(i):
                S[i, j] = S[j, i]
    else:
        for i in span(n):
            for j in span(i + 1):
                S[i, j] = S[j, i] = _one(given, i, j, products(j))
    if diagonal is not None:
        for i in span(n):
            S[i, i] = S[i, i] + diagonal[i]


def _one(starts: list[Any], i: Any, j: Any, products: list[Any]) -> Any:
    """One of the sums of a column."""
    value: Any = starts[0][i, j] if starts else 0.0
    for A, b, sign in products:
        value = dot(A[i, :], b, value) if sign > 0 else less(value, A[i, :], b)
    return value


def within_box(
    Q: Any, gradient: Any, room: Any, smallest: float, k: Any, mu: Any
) -> tuple[Any, Any, Any, Any]:
    """The smallest ½ kᵀQk + gradient·k with k between its limits, by ``PASSES`` of an active set method.

    Args:
        Q: symmetric matrix (m, m).
        gradient: at k = 0, (m,).
        room: (lowest, largest) k, two vectors; 0 is between them.
        smallest: pivot that counts as positive, in units of the diagonal.
        k: (m,), which is written.
        mu: regularisation; above 0, entries near a limit are held at their k.

    Returns:
        (L, 1/D, soundness) of the free entries with ones for those that are held, and 1 for free entries.
    """
    m = Q.shape[0]
    low, high = room
    below, above, free, fixed, pulled = zeros(m), zeros(m), zeros(m), zeros(m), zeros(m)
    S = empty(m, m)
    factors: tuple[Any, Any, Any] = (None, None, None)
    for i in span(m):
        below[i] = where((low[i] >= 0.0) & (gradient[i] > 0.0), 1.0, 0.0)
        above[i] = where((high[i] <= 0.0) & (gradient[i] < 0.0), 1.0, 0.0)
    for turn in range(PASSES):
        last = turn == PASSES - 1
        for i in span(m):
            held = below[i] + above[i] > 0.5
            fixed[i] = where(below[i] > 0.5, low[i], where(above[i] > 0.5, high[i], 0.0 * gradient[i]))
            if last:
                near = (close(low[i], high[i]) | close(-high[i], -low[i])) & (mu > 0.0)
                inside = where(k[i] < low[i], low[i], where(k[i] > high[i], high[i], k[i]))
                fixed[i] = where(held, fixed[i], where(near, inside, fixed[i]))
                held = held | near
            free[i] = where(held, 0.0, 1.0)
        for i in span(m):
            pulled[i] = -(dot(Q[i, :], fixed, gradient[i]) * free[i])
            for j in span(i):
                S[i, j] = Q[i, j] * (free[i] * free[j])
            S[i, i] = Q[i, i] * free[i] + (1.0 - free[i])
        factors = ldl_of_any(S, smallest)
        moved = solve(factors[0], factors[1], pulled)
        for i in span(m):
            k[i] = moved[i] + fixed[i]
        if not last:
            for i in span(m):
                left = dot(Q[i, :], k, gradient[i])  # 0 where free
                is_free = free[i] > 0.5
                below[i] = where(is_free, where(k[i] < low[i], 1.0, 0.0), where(left > 0.0, below[i], 0.0))
                above[i] = where(is_free, where(k[i] > high[i], 1.0, 0.0), where(left < 0.0, above[i], 0.0))
    return (*factors, free)


def close(low: Any, high: Any) -> Any:
    """Whether the lower limit is near; arguments as for ``pushed``."""
    return low >= -(NEAR * where(high < FAR, high, 0.0))


def pushed(gradient: Any, low: Any, high: Any) -> Any:
    """Whether an entry at its limit is pushed outwards; ``low`` and ``high`` are what is left to the limits."""
    return ((low >= 0.0) & (gradient > 0.0)) | ((high <= 0.0) & (gradient < 0.0))


def larger(a: Any, b: Any) -> Any:
    """The larger one; a where b is not a number."""
    return where(a < b, b, a)
