"""What happens while torques are held for a sample: how far mean accelerations are from those at its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.control.whole_body.mobilities import Halves, flat, support_rows
from linkwise.control.whole_body.tasks import State, vector
from linkwise.language import array, dot, elementwise, empty, span, straight, variable, zeros
from linkwise.scalar import maximum
from linkwise.solve.factors import solve

if TYPE_CHECKING:
    from linkwise.control.whole_body.law import WholeBody

MARGIN = 0.05
"""Of what a mean acceleration gains: left for what the prediction does not know."""
SIMPSON = {
    "time": (0.5, 0.5, 1.0),
    "weight": (0.0, 4 / 6, 1 / 6),
    "back": (0.5, 0.0, 0.0),
    "on": (0.0, 1.0, 0.0),
}
"""Of three accelerations in a sample: after which share of it, their weights in the mean one, how far the mean one up
to the next is back towards the first, and how far the guess of the next goes on."""
UNNOTICED = 1e-7
"""Of a bound of acceleration, from 1 on: less than that is not too fast."""


@dataclass(frozen=True, eq=False)
class Supports:
    """What stands during a sample."""

    J: Any
    """Rows of the supports, (held, n)."""
    factors: tuple[Any, Any]
    """Of their mobility."""
    wrench: Any
    """With which they push at the beginning, (held,)."""
    slip: Any
    """By how much they are accelerated beside what they should be, (held,)."""


class HeldTorques:
    """The prediction of one sample.

    Args:
        law: the controller.
        given: its inputs by name, as arrays.
        factors: numbers of the mass matrix (``Halves``) and bias torques, in the state of the sample.
    """

    def __init__(self, law: WholeBody, given: dict[str, Any], factors: Any):
        self.law, self.given, self.factors = law, given, factors
        self.robot, self.n = law.robot, law.robot.dof
        self.gained = zeros(max(1, len(law.bounds.limited)))
        """What mean accelerations of limited joints gain on those of the beginning; see ``foretell``."""

    @property
    def foretold(self) -> bool:
        """Whether it is predicted how accelerations of joints change while torques are held."""
        return self.law.bounds.ahead and bool(self.law.bounds.limited)

    @property
    def kept(self) -> bool:
        """Whether bounds of joints are kept by mean accelerations: not with supports, whose pyramids would have to be
        kept by mean forces, too. There ``too_fast`` says what is not kept."""
        return self.foretold and not self.law.supports

    def changed(self, tau: Any, places: Sequence[int]) -> tuple[Any, Any]:
        """How far the middles of bounds of a joint's acceleration at the beginning are moved, and how much narrower the
        bounds are, so that both this acceleration and the mean one while torques are held keep them: then no velocity
        between the ends of the sample passes what the ends keep.

        Args:
            tau: torques, (n,).
            places: of the bounds of limited joints among those that the solver moves.
        """
        self.foretell(tau)
        moved, narrowed = zeros(self.law.rows.movable), zeros(self.law.rows.movable)
        for k, place in enumerate(places):
            moved[place] = -0.5 * self.gained[k]
            narrowed[place] = (0.5 + MARGIN) * abs(self.gained[k])
        return moved, narrowed

    def foretell(self, tau: Any, supports: Supports | None = None) -> None:
        """What mean accelerations of limited joints gain on those of the beginning (``gained``) while torques are held
        and supports go on as they are, with what they slip by at the beginning: Simpson's rule with accelerations
        half-way through the sample, found twice, and at its end.

        Args:
            tau: torques, (n,).
            supports: None: nothing stands.
        """
        n = self.n
        first, found, net = empty(n), empty(n), empty(n)
        pushed, off = [], None
        if supports is not None:
            pushed, off = [array(supports.wrench), supports.J], empty(supports.slip.shape[0])
        straight(self.accelerations, [tau, self.factors, *pushed], [first])
        mean, guess, sums = array(first), array(first), elementwise(lambda a: a / 6.0, first)
        table = {name: array(list(column)) for name, column in SIMPSON.items()}
        for stage in span(3):
            time = variable(self.law.bounds.period * table["time"][stage])
            reads = [self.given["q"], self.given["qd"], tau, mean, guess, time]
            if supports is not None:
                straight(self._left_over, [*reads, pushed[0]], [net, off])
                self._push_on(supports, net, off, pushed[0])
            else:
                straight(self._left_over, reads, [net])
            straight(self.by_masses, [net, self.factors], [found])
            for i in span(n):
                a = guess[i] + found[i]
                sums[i] = sums[i] + table["weight"][stage] * a
                mean[i] = a + table["back"][stage] * (first[i] - a)
                guess[i] = a + table["on"][stage] * (a - first[i])
        for place, k in enumerate(self.law.bounds.limited):
            motor = self.law.motors[k]
            self.gained[place] = sums[motor] - first[motor]

    def _left_over(
        self, q: Any, qd: Any, tau: Any, mean: Any, guess: Any, time: Any, wrench: Any = ()
    ) -> list[list[Any]]:
        """[torques that guessed accelerations leave over after a time with mean ones], and [by how much supports are
        accelerated by the guess beside what they should be]."""
        law, robot, t = self.law, self.robot, time[0]
        qd, qdd = vector([v + t * a for v, a in zip(qd, mean, strict=True)]), vector(guess)
        q = robot.integrate(vector(q), vector([t * (v - 0.5 * t * a) for v, a in zip(qd, mean, strict=True)]))
        net = [t - x for t, x in zip(tau, robot.inverse_dynamics(q, qd, qdd, friction=False), strict=True)]
        if not law.supports:
            return [net]
        parts = [support_rows(State(robot, q, qd), support, law.damping) for support in law.supports]
        rows, wanted = (flat(part[side] for part in parts) for side in (0, 1))
        for w, row in zip(wrench, rows, strict=True):
            net = [x + w * j for x, j in zip(net, row, strict=True)]
        return [net, [vector(row) @ qdd - x for row, x in zip(rows, wanted, strict=True)]]

    def _push_on(self, supports: Supports, net: Any, off: Any, wrench: Any) -> None:
        """Add to wrenches, and to the torques that are left over, what holds the supports."""
        J, owners, change = supports.J, self.law._support_of_rows(), empty(self.n)
        straight(self.by_masses, [net, self.factors], [change])
        for k, owner in enumerate(owners):
            off[k] = self.given["stance"][owner] * (supports.slip[k] - dot(J[k, :], change, off[k]))
        more = solve(*supports.factors, off)
        for k in span(len(owners)):
            wrench[k] = wrench[k] + more[k]
        for i in span(self.n):
            net[i] = dot(J[:, i], more, net[i])

    def by_masses(self, net: Any, factors: Any) -> list[list[Any]]:
        """[M⁻¹ net]."""
        return [Halves.of_numbers(self.robot, factors[: -self.n]).solved(net)]

    def moved(self, limits: Any, moved: Any, narrowed: Any) -> Any:
        """Right sides of inequalities with the bounds among them moved and narrowed.

        Args:
            limits: right sides.
            moved, narrowed: as ``changed`` gives them.
        """
        found = array(limits)
        upper = self.law.rows.moving
        lower = upper + self.law.rows.bounds
        for k in span(self.law.rows.bounds):
            found[upper + k] = limits[upper + k] + moved[k] - narrowed[k]
            found[lower + k] = limits[lower + k] - moved[k] - narrowed[k]
        return found

    def too_fast(self, qdd: Any, least: Any, most: Any, beyond: Any) -> Any:
        """How much too fast the worst joint is after the sample [rad/s or m/s]; after ``foretell``.

        Args:
            qdd: accelerations at the beginning, (n,).
            least, most: bounds of those of limited joints.
            beyond: how much too fast the worst joint is at the beginning.
        """
        law = self.law
        worst = variable(beyond)
        for place, k in enumerate(law.bounds.limited):
            a = qdd[law.motors[k]] + self.gained[place]
            for excess, bound in ((a - most[place], most[place]), (least[place] - a, least[place])):
                worst.value = maximum(
                    worst.value, law.bounds.period * (excess - UNNOTICED * (1.0 + abs(bound)))
                )
        return worst.value

    def accelerations(self, tau: Any, factors: Any, wrench: Any = (), J: Any = ()) -> list[list[Any]]:
        """[M⁻¹ (Sᵀ τ + Jᵀ w − h)].

        Args:
            tau: torques, (n,).
            factors: as for the constructor.
            wrench, J: of the supports.
        """
        halved, bias = Halves.of_numbers(self.robot, factors[: -self.n]), factors[-self.n :]
        net = [t - b for t, b in zip(tau, bias, strict=True)]
        for k, w in enumerate(wrench):
            net = [x + w * J[k * self.n + i] for i, x in enumerate(net)]
        return [halved.solved(net)]
