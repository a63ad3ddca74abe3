"""The backward sweep as loops: value function, gains and feed-forward torques of one stage after the other.

A stage has rows of which only some are full matrices: δv' = G (δq, δv, δu), and δq' = δq + h δv' where the integrator
is semi-implicit (``shifted`` rows; otherwise there are none and v is the whole state). In the coordinates (q, v') the
value function of the next stage has the Hessian

    Pqq = Vqq      Pqv = h Vqq + Vqv      Pvv = h² Vqq + h (Vqv + Vqvᵀ) + Vvv

so that the products need the rows of G alone: Y = Pvv G + (Pvq, 0, 0), then

    Qux = Guᵀ Yx    Quu = Guᵀ Yu    Qqq = Pqq + Yqᵀ Gq + Gqᵀ Pvq    Qqv = Yqᵀ Gv    Qvv = Gvᵀ Yv

each plus the cost's. Quu = L D Lᵀ gives z = L⁻¹ Qux, K = −L⁻ᵀ D⁻¹ z and V = Qxx − zᵀ D⁻¹ z. Symmetric matrices are
computed by half. Products of full matrices are loops over columns, which vectors take side by side for one problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.loops import Array, Element, For, Place, Register, Statement, Whole, name, whole
from linkwise.compiler.procedure import Procedure, cells, strided
from linkwise.scalar import Scalar, where

J, K = name("j"), name("k")
EXPECTED, GRADIENT, LARGEST, SOUND = (Register(key) for key in ("expected", "gradient", "largest", "sound"))
"""Of a sweep: first-order change of the cost, largest |Q_u| of a free torque, largest multiplier, whether no pivot was
negative (1)."""
PASSES = 4  # over the torques that are held at their limits, in each stage
_SMALLEST_PIVOT = {"float64": 1e-12, "float32": 1e-5}  # in units of the diagonal before the elimination


@dataclass(frozen=True)
class Shape:
    """Sizes of a stage, and which entries of the cost's Hessian are not always zero."""

    shifted: int
    """Rows q' = q + h v'; 0 or as many as ``full``."""
    full: int
    """Rows v' that are full."""
    controls: int
    step: float
    slots: tuple[tuple[int, int], ...]
    """(i, j), i ≤ j, of (x, u)."""
    boxed: bool

    @property
    def states(self) -> int:
        return self.shifted + self.full

    @property
    def width(self) -> int:
        return self.states + self.controls


class Riccati:
    """Statements of the sweep. Arrays over the horizon are those of ``arrays``; ``row`` is the stage."""

    def __init__(self, shape: Shape, horizon: int, procedure: Procedure):
        self.shape, self.horizon, self.made = shape, horizon, procedure
        self.slot = {pair: k for k, pair in enumerate(shape.slots)}

    def arrays(self) -> list[Array]:
        s, N = self.shape, self.horizon
        n, v, q, m = s.states, s.full, s.shifted, s.controls
        over = {
            "slopes": v * s.width,
            "gradients": s.width,
            "hessians": len(s.slots),
            "feedback": m * n,
            "forward": m,
        }
        single = {"Pqq": q * q, "Pvq": q * v, "Pvv": v * v, "Vqq": q * (q + 1) // 2, "Vqv": q * v}
        single |= {"Vvv": v * (v + 1) // 2, "vx": n, "ahead": v, "behind": n, "Y": v * s.width}
        single |= {"z": m * n, "scaled": m * n, "factor": m * (m - 1) // 2, "inverse": m, "free": m}
        single |= {key: len(rows) * len(columns) for key, (rows, columns) in self._blocks().items()}
        return [
            *(Array(key, "scratch", size, N) for key, size in over.items()),
            Array("gaps", "scratch", n, N + 1),
            *(Array(key, "scratch", size) for key, size in single.items() if size),
        ]

    # -- places

    def _slopes(self, column: int, count: int) -> list[Place]:
        """G of this stage, columns from ``column`` on, row by row."""
        s = self.shape
        return [p for i in range(s.full) for p in cells("slopes", count, i * s.width + column, K)]

    def _y(self, column: int, count: int) -> list[Place]:
        s = self.shape
        return [p for i in range(s.full) for p in cells("Y", count, i * s.width + column)]

    def _cost(self, rows: range, columns: range) -> tuple[list[Place], dict[tuple[int, int], int]]:
        """Entries of the cost's Hessian that are not always zero, and where they are in that list."""
        found: dict[tuple[int, int], int] = {}
        places: list[Place] = []
        for i in rows:
            for j in columns:
                pair = (min(i, j), max(i, j))
                if pair in self.slot:
                    found[i, j] = len(places)
                    places.append(Element("hessians", whole(self.slot[pair]), K))
        return places, found

    # -- statements

    def stage(self, controls: list[Place], limits: list[Place], mu: Place) -> list[Statement]:
        """What a stage does with the value function that ``passed_on`` left."""
        first = [*self._spread_costs(), *self._products()]
        return [*first, self._factor(controls, limits, mu), self._columns(), *self._value()]

    def _blocks(self) -> dict[str, tuple[range, range]]:
        """Blocks of the cost's Hessian that loops over columns read, where they are not always zero."""
        s = self.shape
        x, q, v, u = (
            range(*ends)
            for ends in ((0, s.states), (0, s.shifted), (s.shifted, s.states), (s.states, s.width))
        )
        blocks = {"crossed": (u, x), "lqv": (q, v)}
        return {key: block for key, block in blocks.items() if self._cost(*block)[0]}

    def _spread_costs(self) -> list[Statement]:
        """Those blocks as full matrices."""
        found: list[Statement] = []
        for key, (rows, columns) in self._blocks().items():
            places, at = self._cost(rows, columns)

            def full(
                costs: Any, rows: range = rows, columns: range = columns, at: dict[tuple[int, int], int] = at
            ) -> list[list[Scalar]]:
                return [[costs[at[i, j]] if (i, j) in at else 0.0 for i in rows for j in columns]]

            size = len(rows) * len(columns)
            found.append(self.made.step(full, [places], [cells(key, size)], apart=True))
        return found

    def _products(self) -> list[Statement]:
        """Y, column by column."""
        s = self.shape
        v, w, q = s.full, s.width, s.shifted

        def shifted(P: Any, G: Any, start: Any) -> list[list[Scalar]]:
            return [[_dot(P[i * v : (i + 1) * v], G, start[i]) for i in range(v)]]

        def plain(P: Any, G: Any) -> list[list[Scalar]]:
            return [[_dot(P[i * v : (i + 1) * v], G) for i in range(v)]]

        found: list[Statement] = []
        P = cells("Pvv", v * v)
        if q:
            reads = [P, strided("slopes", v, w, J, K), strided("Pvq", v, q, J)]
            step = self.made.step(shifted, reads, [strided("Y", v, w, J)], apart=True)
            found.append(_columns(0, q, step))
        step = self.made.step(plain, [P, strided("slopes", v, w, J, K)], [strided("Y", v, w, J)], apart=True)
        return [*found, _columns(q, w, step)]

    def _factor(self, controls: list[Place], limits: list[Place], mu: Place) -> Statement:
        """Quu and its factors, Qu, which torques are held at their limits, and the feed-forward torques."""
        s = self.shape
        n, m = s.states, s.controls
        places, cost = self._cost(range(n, n + m), range(n, n + m))

        def factor(
            G: Any, Y: Any, costs: Any, lu: Any, ahead: Any, u: Any, bounds: Any, mu: Any, so_far: Any
        ) -> list[list[Scalar]]:
            Q = [
                [
                    _dot(G[i::m], Y[j::m], costs[cost[n + i, n + j]] if (n + i, n + j) in cost else None)
                    for j in range(i + 1)
                ]
                for i in range(m)
            ]
            gradient = [_dot(G[i::m], ahead, lu[i]) for i in range(m)]
            free: list[Scalar] = [1.0] * m
            for i in range(m):
                Q[i][i] = Q[i][i] + mu[0] * abs(Q[i][i])
            smallest = _SMALLEST_PIVOT[self.made.dtype]
            if s.boxed:
                room = [(low - a, high - a) for a, low, high in zip(u, bounds[:m], bounds[m:], strict=True)]
                L, inverse, sound, torques, free = within_box(Q, gradient, room, smallest)
                gradient = [
                    where(_pushed(g, *sides), 0.0 * g, g) for g, sides in zip(gradient, room, strict=True)
                ]
            else:
                L, inverse, sound = ldl(Q, smallest)
                torques = solved(L, inverse, [-g for g in gradient])
            expected, largest, good = so_far
            for g, k in zip(gradient, torques, strict=True):
                expected = expected + g * k
                largest = _larger(largest, abs(g))
            packed = [L[i][j] for i in range(m) for j in range(i)]
            state: list[Scalar] = [expected, largest, good * sound]
            return [packed, inverse, free, torques, state]

        registers: list[Place] = [EXPECTED, GRADIENT, SOUND]
        reads = [self._slopes(n, m), self._y(n, m), places, cells("gradients", m, n, K)]
        reads += [cells("ahead", s.full), controls, limits, [mu], registers]
        writes = [cells("factor", m * (m - 1) // 2), cells("inverse", m), cells("free", m)]
        writes += [cells("forward", m, 0, K), registers]
        return self.made.step(factor, reads, writes, apart=True)

    def _columns(self) -> Statement:
        """For each column of the state: Qux, its part of the gains, the gradient of the value function."""
        s = self.shape
        n, m, v, w = s.states, s.controls, s.full, s.width
        mixed = "crossed" in self._blocks()
        table = strided("crossed", m, n, J) if mixed else []

        def column(
            Gu: Any, Y: Any, crossed: Any, packed: Any, inverse: Any, free: Any, torques: Any, G: Any, ahead: Any,
            gradient: Any
        ) -> list[list[Scalar]]:  # fmt: skip
            Q = [_dot(Gu[i::m], Y, crossed[i] if mixed else None) for i in range(m)]
            total = _dot(Q, torques, _dot(G, ahead, gradient[0] + gradient[1]))
            if s.boxed:
                Q = [a * f for a, f in zip(Q, free, strict=True)]
            L = [list(packed[i * (i - 1) // 2 : i * (i + 1) // 2]) for i in range(m)]
            z = forward_substituted(L, Q)
            scaled = [a * d for a, d in zip(z, inverse, strict=True)]
            gains = back_substituted(L, [-a for a in scaled])
            return [z, scaled, gains, [total]]

        reads = [self._slopes(n, m), strided("Y", v, w, J), table, cells("factor", m * (m - 1) // 2)]
        reads += [cells("inverse", m), cells("free", m) if s.boxed else []]
        reads += [cells("forward", m, 0, K)]
        reads += [strided("slopes", v, w, J, K), cells("ahead", v)]
        reads += [[Element("gradients", J, K), Element("behind", J)]]
        writes = [strided("z", m, n, J), strided("scaled", m, n, J), strided("feedback", m, n, J, K)]
        step = self.made.step(column, reads, [*writes, [Element("vx", J)]], apart=True)
        return _columns(0, n, step)

    def _value(self) -> list[Statement]:
        """V of this stage: the block qv by columns, the symmetric blocks by half."""
        s = self.shape
        n, m, v, w, q = s.states, s.controls, s.full, s.width, s.shifted
        found: list[Statement] = []
        if q:
            _, cost = self._cost(range(q), range(q, n))

            def mixed(Y: Any, G: Any, scaled: Any, z: Any, own: Any) -> list[list[Scalar]]:
                block = []
                for i in range(q):
                    total = _dot(Y[i::q], G, own[i] if cost else None)
                    for a in range(m):
                        total = total - scaled[a * q + i] * z[a]
                    block.append(total)
                return [block]

            own = strided("lqv", q, v, J) if cost else []
            reads = [self._y(0, q), strided("slopes", v, w, J + q, K)]
            reads += [
                [p for a in range(m) for p in cells("scaled", q, a * n)],
                strided("z", m, n, J + q),
                own,
            ]
            step = self.made.step(mixed, reads, [strided("Vqv", q, v, J)], apart=True)
            found.append(_columns(0, v, step))
            found.append(self._positions())
        return [*found, self._velocities()]

    def _positions(self) -> Statement:
        """Vqq."""
        s = self.shape
        n, m, v, q = s.states, s.controls, s.full, s.shifted
        places, cost = self._cost(range(q), range(q))

        def block(G: Any, Y: Any, Pvq: Any, Pqq: Any, scaled: Any, z: Any, costs: Any) -> list[list[Scalar]]:
            found: list[Scalar] = []
            for i in range(q):
                for j in range(i + 1):
                    total = Pqq[i * q + j]
                    if (i, j) in cost:
                        total = total + costs[cost[i, j]]
                    for k in range(v):
                        total = total + Y[k * q + i] * G[k * q + j]
                        total = total + G[k * q + i] * Pvq[k * q + j]
                    for a in range(m):
                        total = total - scaled[a * q + i] * z[a * q + j]
                    found.append(total)
            return [found]

        own = [[p for a in range(m) for p in cells(key, q, a * n)] for key in ("scaled", "z")]
        reads = [self._slopes(0, q), self._y(0, q), cells("Pvq", q * v), cells("Pqq", q * q), *own, places]
        return self.made.step(block, reads, [cells("Vqq", q * (q + 1) // 2)], apart=True)

    def _velocities(self) -> Statement:
        """Vvv."""
        s = self.shape
        n, m, v, q = s.states, s.controls, s.full, s.shifted
        places, cost = self._cost(range(q, n), range(q, n))

        def block(G: Any, Y: Any, scaled: Any, z: Any, costs: Any) -> list[list[Scalar]]:
            found: list[Scalar] = []
            for i in range(v):
                for j in range(i + 1):
                    at = (q + i, q + j)
                    total = _dot(G[i::v], Y[j::v], costs[cost[at]] if at in cost else None)
                    for a in range(m):
                        total = total - scaled[a * v + i] * z[a * v + j]
                    found.append(total)
            return [found]

        own = [[p for a in range(m) for p in cells(key, v, a * n + q)] for key in ("scaled", "z")]
        reads = [self._slopes(q, v), self._y(q, v), *own, places]
        return self.made.step(block, reads, [cells("Vvv", v * (v + 1) // 2)], apart=True)

    def passed_on(self, row: Whole) -> Statement:
        """V of the stage ``row`` as P of the one before, and its gradient beyond the gap."""
        s = self.shape
        n, v, q, h = s.states, s.full, s.shifted, s.step

        def moved(Vqq: Any, Vqv: Any, Vvv: Any, vx: Any, gap: Any, so_far: Any) -> list[list[Scalar]]:
            full = lambda packed, i, j: packed[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)]  # noqa: E731
            qq = [[full(Vqq, i, j) for j in range(q)] for i in range(q)]
            qv = [[Vqv[i * v + j] for j in range(v)] for i in range(q)]
            vv = [[full(Vvv, i, j) for j in range(v)] for i in range(v)]
            largest = so_far[0]
            for value in vx:
                largest = _larger(largest, abs(value))
            by_q = [_dot([*qq[i], *qv[i]], gap, vx[i]) for i in range(q)]
            by_v = [_dot([*(qv[k][i] for k in range(q)), *vv[i]], gap, vx[q + i]) for i in range(v)]
            ahead = [b + h * a for a, b in zip(by_q, by_v, strict=True)] if q else by_v
            Pqv = [[h * qq[i][j] + qv[i][j] for j in range(v)] for i in range(q)]
            Pvv = [[vv[i][j] for j in range(v)] for i in range(v)]
            for i in range(v if q else 0):
                for j in range(i + 1):
                    Pvv[i][j] = Pvv[j][i] = vv[i][j] + h * (Pqv[i][j] + qv[j][i])
            behind: list[Scalar] = [*by_q, *[0.0] * v]
            Pvq = [[Pqv[i][j] for i in range(q)] for j in range(v)]
            return [_flat(qq), _flat(Pvq), _flat(Pvv), ahead, behind, [largest]]

        reads = [cells("Vqq", q * (q + 1) // 2), cells("Vqv", q * v), cells("Vvv", v * (v + 1) // 2)]
        reads += [cells("vx", n), cells("gaps", n, 0, row), [LARGEST]]
        writes = [cells("Pqq", q * q), cells("Pvq", q * v), cells("Pvv", v * v), cells("ahead", v)]
        return self.made.step(moved, reads, [*writes, cells("behind", n), [LARGEST]], apart=True)


def _columns(first: int, stop: int, *body: Statement) -> For:
    return For("j", whole(first), whole(stop), list(body), parallel=True, repeatable=True)


def _dot(a: Sequence[Scalar], b: Sequence[Scalar], start: Scalar | None = None) -> Scalar:
    pairs = list(zip(a, b, strict=True))
    if start is None:
        start = pairs[0][0] * pairs[0][1]
        pairs = pairs[1:]
    for x, y in pairs:
        start = start + x * y
    return start


def _pushed(gradient: Any, low: Any, high: Any) -> Any:
    """Whether an entry at its limit is pushed outwards; ``low`` and ``high`` are what is left to the limits."""
    return ((low >= 0.0) & (gradient > 0.0)) | ((high <= 0.0) & (gradient < 0.0))


def _larger(a: Any, b: Any) -> Scalar:
    return where(a < b, b, a)


def _flat(rows: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    return [value for row in rows for value in row]


def ldl(Q: Sequence[Sequence[Any]], smallest: float) -> tuple[list[list[Scalar]], list[Scalar], Scalar]:
    """(rows of L below its ones, 1/D, 1 if no pivot is negative else 0) of L D Lᵀ; Q is given by half.

    A pivot that is not positive counts as infinite: its direction, which the cost does not notice, is left alone.

    Args:
        Q: lower half of the matrix.
        smallest: pivot that counts as positive, in units of the diagonal.
    """
    m = len(Q)
    L: list[list[Scalar]] = []
    inverse: list[Scalar] = []
    sound: Scalar = 1.0
    for i in range(m):
        raw: list[Any] = []  # L_ij D_j
        for j in range(i):
            total = Q[i][j]
            for k in range(j):
                total = total - raw[k] * L[j][k]
            raw.append(total)
        row = [a * d for a, d in zip(raw, inverse, strict=True)]
        pivot = Q[i][i]
        for a, b in zip(raw, row, strict=True):
            pivot = pivot - a * b
        least = smallest * abs(Q[i][i])
        good = pivot > least
        inverse.append(where(good, 1.0 / where(good, pivot, 1.0), 0.0))
        sound = where(pivot >= -least, sound, 0.0)
        L.append(row)
    return L, inverse, sound


def solved(L: Sequence[Sequence[Any]], inverse: Sequence[Any], b: Sequence[Any]) -> list[Scalar]:
    """(L D Lᵀ)⁻¹ b."""
    return back_substituted(L, [z * d for z, d in zip(forward_substituted(L, b), inverse, strict=True)])


def within_box(
    Q: Sequence[Sequence[Any]], gradient: Sequence[Any], room: Sequence[tuple[Any, Any]], smallest: float
) -> tuple[list[list[Scalar]], list[Scalar], Scalar, list[Scalar], list[Scalar]]:
    """The smallest ½ kᵀQk + gradient·k with k between its limits, by ``PASSES`` of an active set method.

    Args:
        Q: lower half of the matrix.
        gradient: at k = 0.
        room: (lower, upper) of each entry of k, which contain 0.
        smallest: pivot that counts as positive.

    Returns:
        (L, 1/D, soundness) of the free entries with ones for those that are held, k, and 1 for free entries.
    """
    m = len(Q)
    full = [[Q[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)]
    zero = [0.0 * g for g in gradient]
    below = [where((low >= 0.0) & (g > 0.0), 1.0, 0.0) for g, (low, _) in zip(gradient, room, strict=True)]
    above = [where((high <= 0.0) & (g < 0.0), 1.0, 0.0) for g, (_, high) in zip(gradient, room, strict=True)]
    k, free, L, inverse, sound = list(zero), list(zero), [], [], 1.0
    for turn in range(PASSES):
        free = [where(a + b > 0.5, 0.0, 1.0) for a, b in zip(below, above, strict=True)]
        fixed = [
            where(a > 0.5, low, where(b > 0.5, high, z))
            for a, b, (low, high), z in zip(below, above, room, zero, strict=True)
        ]
        pulled = [_dot(full[i], fixed, gradient[i]) for i in range(m)]
        masked = [[Q[i][j] * (free[i] * free[j]) for j in range(i + 1)] for i in range(m)]
        for i in range(m):
            masked[i][i] = masked[i][i] + (1.0 - free[i])
        L, inverse, sound = ldl(masked, smallest)
        k = solved(L, inverse, [-(g * f) for g, f in zip(pulled, free, strict=True)])
        k = [a + b for a, b in zip(k, fixed, strict=True)]
        if turn == PASSES - 1:
            break
        left = [_dot(full[i], k, gradient[i]) for i in range(m)]  # 0 where free
        for i, (low, high) in enumerate(room):
            is_free = free[i] > 0.5
            below[i] = where(is_free, where(k[i] < low, 1.0, 0.0), where(left[i] > 0.0, below[i], 0.0))
            above[i] = where(is_free, where(k[i] > high, 1.0, 0.0), where(left[i] < 0.0, above[i], 0.0))
    return L, inverse, sound, k, free


def forward_substituted(L: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Scalar]:
    """L⁻¹ b; L has ones on its diagonal, which are not given."""
    found: list[Any] = []
    for i, value in enumerate(b):
        for j in range(i):
            value = value - L[i][j] * found[j]
        found.append(value)
    return found


def back_substituted(L: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Scalar]:
    """L⁻ᵀ b."""
    found = list(b)
    for i in reversed(range(len(b))):
        for k in range(i + 1, len(b)):
            found[i] = found[i] - L[k][i] * found[k]
    return found
