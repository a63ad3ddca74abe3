"""How far a tool is turned away from its target: a smooth potential on SO(3), and the moments that follow from it.

No continuous function of the rotation alone has a single rest position: at 180° every law without a memory has to
change the way round. A rotation vector, or a quaternion with the sign of its real part, jumps there. Here the
moment is the gradient of a smooth potential, so it passes through zero at 180° without a jump.

With the error rotation E (θ about the unit vector a), the half angles s = sin(θ/2) and c = cos(θ/2), b = √(1 + δ²) and
u = √(c² + δ²):

    V = 2 s² (aᵀ K a) · 2b/(b + u),        for K = k·1:  V = 4 k b (b − u),  moment = k b sin θ / u · a.

For small angles V = ½ θ² aᵀKa. Up to about 120° the moment is nearly 2k sin(θ/2), 1.6 k at 120°, and falls to zero at
180° over the last 2δ [rad]. V grows with θ for every axis, so the target is the only position at which it is least, for
every positive K. At 180° a tool at rest stays there: that rest position is unstable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import dense
from linkwise.scalar import Scalar, sqrt

Rows = list[list[Scalar]]
SMOOTHING = 0.25
"""δ: the part of a half turn, as a cosine, over which the moment changes its direction at 180°."""
_OUTER = (1.0 + SMOOTHING * SMOOTHING) ** 0.5  # b


@dataclass(frozen=True, eq=False)
class RotationError:
    """Of a rotation matrix E, which turns the target's axes into those of the tool."""

    E: Rows
    sine: list[Scalar]
    """sin θ · a."""
    u: Scalar
    """√(cos²(θ/2) + δ²)."""

    @classmethod
    def of(cls, E: Rows) -> RotationError:
        sine = [
            0.5 * (E[2][1] - E[1][2]),
            0.5 * (E[0][2] - E[2][0]),
            0.5 * (E[1][0] - E[0][1]),
        ]
        trace = E[0][0] + E[1][1] + E[2][2]
        return cls(E, sine, sqrt(0.25 * trace + (0.25 + SMOOTHING * SMOOTHING)))

    def vector(self) -> list[Scalar]:
        """The gradient for K = 1, an error vector [rad]: b sin θ / u · a."""
        factor = _OUTER / self.u
        return [factor * x for x in self.sine]

    def moment(self, K: Rows) -> list[Scalar]:
        """∂V/∂(turn) [N·m]: the moment against which the spring turns, in the axes of K [N·m/rad], 3×3."""
        gradient, twice = self._plain(K)
        sum_ = _OUTER + self.u
        scale = 2.0 * _OUTER / sum_
        more = 0.5 * _OUTER * twice / (self.u * (sum_ * sum_))
        return [scale * m + more * x for m, x in zip(gradient, self.sine, strict=True)]

    def potential(self, K: Rows) -> Scalar:
        """V [J]."""
        return self._plain(K)[1] * (2.0 * _OUTER / (_OUTER + self.u))

    def _plain(self, K: Rows) -> tuple[list[Scalar], Scalar]:
        """Gradient and value of tr(G (1 − E)) = 2 s² aᵀKa with G = ½ tr(K) 1 − K."""
        half = 0.5 * (K[0][0] + K[1][1] + K[2][2])
        G = [[half - K[i][j] if i == j else -K[i][j] for j in range(3)] for i in range(3)]
        A = dense.product(self.E, G)
        gradient = [A[2][1] - A[1][2], A[0][2] - A[2][0], A[1][0] - A[0][1]]
        return gradient, half - (A[0][0] + A[1][1] + A[2][2])

    def coupling(self, pull: Sequence[Scalar]) -> list[Scalar]:
        """½ (tr E − Eᵀ) pull: the moment that a spring between turn and position gives for K_rt x = ``pull``."""
        trace = self.E[0][0] + self.E[1][1] + self.E[2][2]
        columns = dense.transposed(self.E)
        return [0.5 * (trace * pull[i] - dense.dot(columns[i], pull)) for i in range(3)]
