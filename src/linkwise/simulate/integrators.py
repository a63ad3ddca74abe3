"""Fixed-step integrators over any scalar.

Each takes ``acceleration(place, q, qd)`` and gives (q, q̇) one step later; ``place`` is where in the step the
acceleration is needed: 0 at its begin, 0.5 in the middle, 1 at its end. ``Space`` says how positions move:
orientations by rotation vectors, q ⊗ exp(φ), so that quaternions keep their length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms import coordinates, dense
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, where, while_loop

Acceleration = Callable[[float, list[Scalar], list[Scalar]], list[Scalar]]


class Space:
    """Positions that are added like numbers."""

    def moved(self, q: Sequence[Scalar], step: Sequence[Scalar]) -> list[Scalar]:
        """The positions after a step along the velocity coordinates."""
        return dense.added(q, step)

    def step_rates(self, step: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
        """How fast a step grows at the velocities ``qd`` where it has led."""
        return list(qd)


class Manifold(Space):
    """Positions of ball and floating joints among them."""

    def __init__(self, links: Mechanism):
        self.links = links

    def moved(self, q, step):
        return coordinates.moved(self.links, q, step)

    def step_rates(self, step, qd):
        return coordinates.step_rates(self.links, step, qd)


def space_of(links: Mechanism) -> Space:
    """The positions of a robot."""
    return Manifold(links) if any(link.free for link in links) else Space()


Integrator = Callable[..., tuple[list[Scalar], list[Scalar]]]


def semi_implicit_euler(
    acceleration: Acceleration, q, qd, h: Scalar, space: Space | None = None
) -> tuple[list[Scalar], list[Scalar]]:
    """Order 1; the new velocity moves the position: where the inertia is constant, energy does not drift."""
    new = dense.added(qd, _scaled(h, acceleration(0.0, list(q), list(qd))))
    return (space or Space()).moved(q, _scaled(h, new)), new


def rk4(
    acceleration: Acceleration, q, qd, h: Scalar, space: Space | None = None
) -> tuple[list[Scalar], list[Scalar]]:
    """Order 4: the classical Runge–Kutta method; on manifolds that of Munthe-Kaas, which integrates the step."""
    space = space or Space()
    q, v1 = list(q), list(qd)
    half, sixth = 0.5 * h, (1.0 / 6.0) * h
    a1 = acceleration(0.0, q, v1)
    v2, step2 = dense.added(qd, _scaled(half, a1)), _scaled(half, v1)
    a2, rate2 = acceleration(0.5, space.moved(q, step2), v2), space.step_rates(step2, v2)
    v3, step3 = dense.added(qd, _scaled(half, a2)), _scaled(half, rate2)
    a3, rate3 = acceleration(0.5, space.moved(q, step3), v3), space.step_rates(step3, v3)
    v4, step4 = dense.added(qd, _scaled(h, a3)), _scaled(h, rate3)
    a4, rate4 = acceleration(1.0, space.moved(q, step4), v4), space.step_rates(step4, v4)
    step = _scaled(sixth, _weighted(v1, rate2, rate3, rate4))
    return space.moved(q, step), dense.added(qd, _scaled(sixth, _weighted(a1, a2, a3, a4)))


def rk4_in_a_loop(
    acceleration: Acceleration, q, qd, h: Scalar, space: Space | None = None
) -> tuple[list[Scalar], list[Scalar]]:
    """``rk4`` with its stages as turns of a loop: the code of one acceleration instead of four. The acceleration must
    not depend on its place in the step."""
    space = space or Space()
    n, nq, half = len(qd), len(q), 0.5 * h

    def stage(k, *state):
        position, (v, step, total_a, last_a, total_rate, last_rate) = state[:nq], _parts(state[nq:], n)
        a = acceleration(0.5, list(position), v)
        rate = [where(k < 0.5, x, y) for x, y in zip(v, space.step_rates(step, v), strict=True)]
        length = where(k < 1.5, half, h)
        step = _scaled(length, rate)
        sums = _summed(k, total_a, last_a, a), a, _summed(k, total_rate, last_rate, rate), rate
        following = (space.moved(q, step), dense.added(qd, _scaled(length, a)), step, *sums)
        return (k + 1.0, *(x for part in following for x in part))

    zero = 0.0 * h
    state = while_loop(lambda k, *_: k < 3.5, stage, (zero, *q, *qd, *[zero] * (5 * n)))
    _, _, total_a, _, total_rate, _ = _parts(state[1 + nq :], n)
    sixth = (1.0 / 6.0) * h
    return space.moved(q, _scaled(sixth, total_rate)), dense.added(qd, _scaled(sixth, total_a))


INTEGRATORS: dict[str, Integrator] = {"rk4": rk4, "semi_implicit_euler": semi_implicit_euler}


def _scaled(h: Scalar, rate: Sequence[Scalar]) -> list[Scalar]:
    return [h * x for x in rate]


def _parts(values: Sequence[Scalar], size: int) -> list[list[Scalar]]:
    """Parts of equal length."""
    return [list(values[k : k + size]) for k in range(0, len(values), size)]


def _summed(
    k: Scalar, total: Sequence[Scalar], last: Sequence[Scalar], rate: Sequence[Scalar]
) -> list[Scalar]:
    """The sum of ``_weighted`` after stage k of 0 … 3: the two in the middle are added to each other first."""
    return [
        where(k < 0.5, x, where(k < 1.5, t, t + where(k < 2.5, 2.0 * (before + x), x)))
        for t, before, x in zip(total, last, rate, strict=True)
    ]


def _weighted(first, second, third, fourth) -> list[Scalar]:
    return [a + 2.0 * (b + c) + d for a, b, c, d in zip(first, second, third, fourth, strict=True)]
