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

J, R, C = name("j"), name("r"), name("c")
EXPECTED, GRADIENT, LARGEST, SOUND = (Register(key) for key in ("expected", "gradient", "largest", "sound"))
"""Of a sweep: first-order change of the cost, largest |Q_u| of a free torque, largest multiplier, whether no pivot was
negative (1)."""
LEAST_STAGES, MOST_STAGES = 4, 16  # of a chunk
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
    """Statements of the sweep. Stages are taken in chunks: stage k is row r of chunk c. Derivatives are kept for one
    chunk alone, so that they stay in a near cache."""

    def __init__(self, shape: Shape, horizon: int, procedure: Procedure):
        self.shape, self.horizon, self.made = shape, horizon, procedure
        self.chunk = chunk_of(horizon)
        self.k = C * self.chunk + R
        self.slot = {pair: k for k, pair in enumerate(shape.slots)}

    def arrays(self) -> list[Array]:
        s, N = self.shape, self.horizon
        n, v, q, m = s.states, s.full, s.shifted, s.controls
        near = {"slopes": v * s.width, "gradients": s.width, "hessians": len(s.slots)}
        single = {"Pqq": q * q, "Pvq": q * v, "Pvv": v * v, "Vqq": q * (q + 1) // 2, "Vqv": q * v}
        single |= {"Vvv": v * (v + 1) // 2, "vx": n, "ahead": v, "behind": n, "Y": v * s.width}
        single |= {"z": m * n, "scaled": m * n, "factor": m * (m - 1) // 2, "inverse": m, "free": m}
        single |= {"Quu": m * (m + 1) // 2}
        single |= {key: len(rows) * len(columns) for key, (rows, columns) in self._blocks().items()}
        return [
            *(Array(key, "scratch", size, self.chunk) for key, size in near.items()),
            Array("feedback", "scratch", m * n, N),
            Array("forward", "scratch", m, N),
            Array("gaps", "scratch", n, N + 1),
            *(Array(key, "scratch", size) for key, size in single.items() if size),
        ]

    # -- places

    def _slopes(self, column: int, count: int) -> list[Place]:
        """G of this stage, columns from ``column`` on, row by row."""
        s = self.shape
        return [p for i in range(s.full) for p in cells("slopes", count, i * s.width + column, R)]

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
                    places.append(Element("hessians", whole(self.slot[pair]), R))
        return places, found

    # -- statements

    def stage(self, controls: list[Place], limits: list[Place], mu: Place) -> list[Statement]:
        """What a stage does with the value function that ``passed_on`` left."""
        first = [*self._spread_costs(), *self._products()]
        factors = [*self._torque_hessian(), self._factor(controls, limits, mu)]
        return [*first, *factors, self._columns(), *self._value()]

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
            reads = [P, strided("slopes", v, w, J, R), strided("Pvq", v, q, J)]
            step = self.made.step(shifted, reads, [strided("Y", v, w, J)], apart=True)
            found.append(_columns(0, q, step))
        step = self.made.step(plain, [P, strided("slopes", v, w, J, R)], [strided("Y", v, w, J)], apart=True)
        return [*found, _columns(q, w, step)]

    def _torque_hessian(self) -> list[Statement]:
        """Quu, row by row."""
        s = self.shape
        n, m, v, w = s.states, s.controls, s.full, s.width
        found: list[Statement] = []
        for i in range(m):
            places, cost = self._cost(range(n + i, n + i + 1), range(n, n + i + 1))

            def row(
                Gi: Any, Y: Any, costs: Any, i: int = i, cost: dict[tuple[int, int], int] = cost
            ) -> list[list[Scalar]]:
                at = [(n + i, n + j) for j in range(i + 1)]
                starts = [costs[cost[pair]] if pair in cost else None for pair in at]
                return [[_dot(Gi, Y[j :: i + 1], starts[j]) for j in range(i + 1)]]

            reads = [strided("slopes", v, w, n + i, R), self._y(n, i + 1), places]
            found.append(self.made.step(row, reads, [cells("Quu", i + 1, i * (i + 1) // 2)], apart=True))
        return found

    def _factor(self, controls: list[Place], limits: list[Place], mu: Place) -> Statement:
        """Factors of Quu, Qu, which torques are held at their limits, and the feed-forward torques."""
        s = self.shape
        n, m = s.states, s.controls

        def factor(
            G: Any, packed_Q: Any, lu: Any, ahead: Any, u: Any, bounds: Any, mu: Any, so_far: Any
        ) -> list[list[Scalar]]:
            Q = [list(packed_Q[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]) for i in range(m)]
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
        reads = [self._slopes(n, m), cells("Quu", m * (m + 1) // 2), cells("gradients", m, n, R)]
        reads += [cells("ahead", s.full), controls, limits, [mu], registers]
        writes = [cells("factor", m * (m - 1) // 2), cells("inverse", m), cells("free", m)]
        writes += [cells("forward", m, 0, self.k), registers]
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
        reads += [cells("forward", m, 0, self.k)]
        reads += [strided("slopes", v, w, J, R), cells("ahead", v)]
        reads += [[Element("gradients", J, R), Element("behind", J)]]
        writes = [strided("z", m, n, J), strided("scaled", m, n, J), strided("feedback", m, n, J, self.k)]
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
                    block.append(_without(scaled[i::q], z, total))
                return [block]

            own = strided("lqv", q, v, J) if cost else []
            reads = [self._y(0, q), strided("slopes", v, w, J + q, R)]
            reads += [
                [p for a in range(m) for p in cells("scaled", q, a * n)],
                strided("z", m, n, J + q),
                own,
            ]
            step = self.made.step(mixed, reads, [strided("Vqv", q, v, J)], apart=True)
            found.append(_columns(0, v, step))
            found += self._positions()
        return [*found, *self._velocities()]

    def _positions(self) -> list[Statement]:
        """Vqq, row by row: a step that is short keeps its values in registers."""
        s = self.shape
        n, m, v, w, q = s.states, s.controls, s.full, s.width, s.shifted
        found: list[Statement] = []
        for i in range(q):
            places, cost = self._cost(range(i, i + 1), range(i + 1))

            def row(
                Yi: Any, Gi: Any, G: Any, Pvq: Any, own: Any, Pqq: Any, z: Any, costs: Any,
                i: int = i, cost: dict[tuple[int, int], int] = cost,
            ) -> list[list[Scalar]]:  # fmt: skip
                entries: list[Scalar] = []
                for j in range(i + 1):
                    total = Pqq[j] + costs[cost[i, j]] if (i, j) in cost else Pqq[j]
                    total = _dot(Yi, G[j :: i + 1], total)
                    total = _dot(Gi, Pvq[j :: i + 1], total)
                    entries.append(_without(own, z[j :: i + 1], total))
                return [entries]

            reads = [strided("Y", v, w, i), strided("slopes", v, w, i, R), self._slopes(0, i + 1)]
            reads += [[p for k in range(v) for p in cells("Pvq", i + 1, k * q)], strided("scaled", m, n, i)]
            reads += [
                cells("Pqq", i + 1, i * q),
                [p for a in range(m) for p in cells("z", i + 1, a * n)],
                places,
            ]
            found.append(self.made.step(row, reads, [cells("Vqq", i + 1, i * (i + 1) // 2)], apart=True))
        return found

    def _velocities(self) -> list[Statement]:
        """Vvv, row by row."""
        s = self.shape
        n, m, v, w, q = s.states, s.controls, s.full, s.width, s.shifted
        found: list[Statement] = []
        for i in range(v):
            places, cost = self._cost(range(q + i, q + i + 1), range(q, q + i + 1))

            def row(
                Gi: Any,
                Y: Any,
                own: Any,
                z: Any,
                costs: Any,
                i: int = i,
                cost: dict[tuple[int, int], int] = cost,
            ) -> list[list[Scalar]]:
                entries: list[Scalar] = []
                for j in range(i + 1):
                    at = (q + i, q + j)
                    total = _dot(Gi, Y[j :: i + 1], costs[cost[at]] if at in cost else None)
                    entries.append(_without(own, z[j :: i + 1], total))
                return [entries]

            reads = [strided("slopes", v, w, q + i, R), self._y(q, i + 1), strided("scaled", m, n, q + i)]
            reads += [[p for a in range(m) for p in cells("z", i + 1, a * n + q)], places]
            found.append(self.made.step(row, reads, [cells("Vvv", i + 1, i * (i + 1) // 2)], apart=True))
        return found

    def passed_on(self, row: Whole) -> list[Statement]:
        """V of the stage ``row`` as P of the one before, and its gradient beyond the gap."""
        s = self.shape
        n, v, q = s.states, s.full, s.shifted

        def largest(vx: Any, so_far: Any) -> list[list[Scalar]]:
            found = so_far[0]
            for value in vx:
                found = _larger(found, abs(value))
            return [[found]]

        return [
            self.made.step(largest, [cells("vx", n), [LARGEST]], [[LARGEST]]),
            *(self._gradient(row, i) for i in range(v)),
            *(self._moved(i) for i in range(v)),
            *([] if q else [self.made.step(lambda: [[0.0] * n], [], [cells("behind", n)])]),
        ]

    def _gradient(self, row: Whole, i: int) -> Statement:
        """Entry i of the gradient by q and by v', where the gap of the stage has been crossed."""
        s = self.shape
        n, v, q, h = s.states, s.full, s.shifted, s.step

        def gradient(by_q: Any, by_v: Any, vx: Any, gap: Any) -> list[list[Scalar]]:
            ahead = _dot(by_v, gap, vx[-1])
            if not q:
                return [[ahead], []]
            behind = _dot(by_q, gap, vx[0])
            return [[ahead + h * behind], [behind, 0.0]]

        by_q = [*_packed("Vqq", q, i), *cells("Vqv", v, i * v)] if q else []
        by_v = [*strided("Vqv", q, v, i), *_packed("Vvv", v, i)]
        vx = [*cells("vx", 1 if q else 0, i), *cells("vx", 1, q + i)]
        behind = [*cells("behind", 1, i), *cells("behind", 1, q + i)] if q else []
        reads = [by_q, by_v, vx, cells("gaps", n, 0, row)]
        return self.made.step(gradient, reads, [cells("ahead", 1, i), behind], apart=True)

    def _moved(self, i: int) -> Statement:
        """Row i of P, up to its diagonal; both halves are written."""
        s = self.shape
        v, q, h = s.full, s.shifted, s.step

        def moved(qq: Any, qv: Any, vq: Any, vv: Any) -> list[list[Scalar]]:
            if not q:
                return [[], [], [*vv, *vv[:i]]]
            Pqv = [h * a + b for a, b in zip(qq, qv, strict=True)]
            Pvv = [c + h * (a + b) for a, b, c in zip(Pqv, vq, vv, strict=False)]
            return [list(qq), Pqv, [*Pvv, *Pvv[:i]]]

        reads = [_packed("Vqq", q, i) if q else [], cells("Vqv", v, i * v) if q else []]
        reads += [strided("Vqv", i + 1 if q else 0, v, i), cells("Vvv", i + 1, i * (i + 1) // 2)]
        writes = [cells("Pqq", q, i * q), strided("Pvq", v if q else 0, q, i)]
        return self.made.step(
            moved, reads, [*writes, [*cells("Pvv", i + 1, i * v), *strided("Pvv", i, v, i)]], apart=True
        )


def _packed(array: str, size: int, i: int) -> list[Place]:
    """Row i of a symmetric matrix that is stored by half."""
    return [Element(array, whole(max(i, j) * (max(i, j) + 1) // 2 + min(i, j))) for j in range(size)]


def chunk_of(horizon: int) -> int:
    """How many stages are linearised at a time: the largest divisor of the horizon up to ``MOST_STAGES``, if it fills
    vectors; else all."""
    found = max(size for size in range(1, MOST_STAGES + 1) if horizon % size == 0)
    return found if found >= LEAST_STAGES else horizon


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


def _without(a: Sequence[Scalar], b: Sequence[Scalar], start: Scalar) -> Scalar:
    """start − a·b."""
    for x, y in zip(a, b, strict=True):
        start = start - x * y
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
