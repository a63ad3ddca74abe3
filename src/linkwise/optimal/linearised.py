"""The next state of a step with its derivatives. Over any scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.algorithms import dense
from linkwise.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows


@dataclass(frozen=True, eq=False)
class Linearised:
    """The next state and its derivatives: δq̇' = velocity · (δq, δq̇, δu), and δq' = turn δq + h gain δq̇'.

    ``turn`` and ``gain`` are None where they are identities. Integrators other than the semi-implicit one have no such
    structure; ``full`` then holds (A, B) and ``velocity`` its rows of q̇'.
    """

    next_state: list[Scalar]
    velocity: Rows
    """Rows of q̇', n × (2n + m)."""
    step: Any
    turn: Rows | None = None
    gain: Rows | None = None
    full: tuple[Rows, Rows] | None = None
    remembered: int = 0
    """Torques of the step before that are part of the state: 0 or m."""
    by_duration: tuple[Sequence[Scalar], Sequence[Scalar]] | None = None
    """(∂q̇'/∂h, q̇') where durations are chosen; ∂(q', q̇')/∂h⁻ where ``full`` holds the rest."""
    begins: Scalar = 1.0
    """1 where the duration of the step is chosen in this stage, 0 where it is that of the step before."""

    def matrices(self) -> tuple[Rows, Rows]:
        """(A, B) with δx' = A δx + B δu; entries that are always zero or one are numbers."""
        n, kept = len(self.velocity), []
        if self.full is not None:
            A, B = self.full
        else:
            moved = self.velocity if self.gain is None else dense.product(self.gain, self.velocity)
            turn = dense.identity(n) if self.turn is None else self.turn
            rows = [[self.step * v for v in row] for row in moved]
            rows = [
                [*(a + b for a, b in zip(row[:n], own, strict=True)), *row[n:]]
                for row, own in zip(rows, turn, strict=True)
            ] + self.velocity
            A, B = [list(row[: 2 * n]) for row in rows], [list(row[2 * n :]) for row in rows]
            if self.by_duration is not None:
                changed, rates = self.by_duration
                moved = [self.step * a + v for a, v in zip(changed, rates, strict=True)]
                if self.gain is not None:
                    moved = [dense.dot(row, moved) for row in self.gain]
                B = [[*row, self.begins * entry] for row, entry in zip(B, [*moved, *changed], strict=True)]
                kept = [(1.0 - self.begins) * entry for entry in [*moved, *changed]]
        m, zero = self.remembered, 0.0
        if self.full is not None and self.by_duration is not None:
            kept = [*self.by_duration[0], *self.by_duration[1]]
        if m:
            A = [[*row, *[zero] * m] for row in A] + [[zero] * (2 * n + m) for _ in range(m)]
            B = [*B, *([*row, *[zero] * (len(B[0]) - m)] for row in dense.identity(m))]
        if kept:
            rest: Rows = [[zero] for _ in range(m)]
            A = [[*row, *entry] for row, entry in zip(A, [*([entry] for entry in kept), *rest], strict=True)]
            A.append([*[zero] * (2 * n + m), 1.0 - self.begins])
            B.append([*[zero] * (len(B[0]) - 1), self.begins])
        return A, B
