"""Fixed-step integrators over any scalar.

Each takes ``acceleration(place, q, qd)`` and gives (q, q̇) one step later; ``place`` is where in the step the
acceleration is asked for: 0 at its begin, 0.5 in the middle, 1 at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.scalar import Scalar

Acceleration = Callable[[float, list[Scalar], list[Scalar]], list[Scalar]]
Integrator = Callable[
    [Acceleration, Sequence[Scalar], Sequence[Scalar], Scalar], tuple[list[Scalar], list[Scalar]]
]


def semi_implicit_euler(acceleration: Acceleration, q, qd, h: Scalar) -> tuple[list[Scalar], list[Scalar]]:
    """Order 1; the new velocity moves the position: where the inertia is constant, energy does not drift."""
    new = _moved(qd, h, acceleration(0.0, list(q), list(qd)))
    return _moved(q, h, new), new


def rk4(acceleration: Acceleration, q, qd, h: Scalar) -> tuple[list[Scalar], list[Scalar]]:
    """Order 4: the classical Runge–Kutta method."""
    q, v1 = list(q), list(qd)
    half, sixth = 0.5 * h, (1.0 / 6.0) * h
    a1 = acceleration(0.0, q, v1)
    v2 = _moved(qd, half, a1)
    a2 = acceleration(0.5, _moved(q, half, v1), v2)
    v3 = _moved(qd, half, a2)
    a3 = acceleration(0.5, _moved(q, half, v2), v3)
    v4 = _moved(qd, h, a3)
    a4 = acceleration(1.0, _moved(q, h, v3), v4)
    return _moved(q, sixth, _weighted(v1, v2, v3, v4)), _moved(qd, sixth, _weighted(a1, a2, a3, a4))


INTEGRATORS: dict[str, Integrator] = {"rk4": rk4, "semi_implicit_euler": semi_implicit_euler}


def _moved(x: Sequence[Scalar], h: Scalar, rate: Sequence[Scalar]) -> list[Scalar]:
    return [a + h * b for a, b in zip(x, rate, strict=True)]


def _weighted(first, second, third, fourth) -> list[Scalar]:
    return [a + 2.0 * (b + c) + d for a, b, c, d in zip(first, second, third, fourth, strict=True)]
