"""What happens while torques are held for a sample: how far mean accelerations are from those at its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.control.whole_body.mobilities import Halves, flat, support_rows
from linkwise.control.whole_body.tasks import State, vector
from linkwise.language import array, dot, elementwise, empty, span, straight, variable, zeros
from linkwise.scalar import maximum
from linkwise.solve.factors import solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.control.whole_body.law import WholeBody
    from linkwise.robot.robot import Robot

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


class HeldTorques:
    """Part of ``Sample``, which has the arrays and says what its unknowns are."""

    law: WholeBody
    given: dict[str, Any]
    robot: Robot
    n: int
    held: int
    gained: Any
    factors: Any
    held_factors: tuple[Any, Any]
    J: Any
    beyond: Any
    least: Any
    most: Any

    def _torques(self, x: Any) -> Any:
        """Torques (n,) of the unknowns."""
        raise NotImplementedError

    def _moving_places(self) -> Sequence[int]:
        """Where bounds of joints are among those that the solver moves."""
        raise NotImplementedError

    @property
    def ahead(self) -> bool:
        """Whether bounds of joints are kept by mean accelerations: not with supports, whose pyramids would have to be
        kept by mean forces, too. There ``_too_fast`` says what is not kept."""
        return self._foretold and not self.held

    @property
    def _foretold(self) -> bool:
        """Whether it is predicted how accelerations of joints change while torques are held."""
        return self.law.bounds.ahead and bool(self.law.bounds.limited)

    def _changed(self, x: Any) -> tuple[Any, Any]:
        """How far the middles of bounds of a joint's acceleration at the beginning are moved, and how much narrower the
        bounds are, so that both this acceleration and the mean one while the torques x are held keep them: then no
        velocity between the ends of the sample passes what the ends keep."""
        law = self.law
        self._foretell(self._torques(x))
        moved, narrowed = zeros(law.rows.movable), zeros(law.rows.movable)
        for k, place in enumerate(self._moving_places()):
            moved[place] = -0.5 * self.gained[k]
            narrowed[place] = (0.5 + MARGIN) * abs(self.gained[k])
        return moved, narrowed

    def _foretell(self, tau: Any, wrench: Any = None, slip: Any = None) -> None:
        """What mean accelerations of limited joints gain on those of the beginning (``gained``) while torques are held
        and supports go on as they are, with what they slip by at the beginning: Simpson's rule with accelerations
        half-way through the sample, found twice, and at its end."""
        n, held = self.n, self.held
        first, found, net = empty(n), empty(n), empty(n)
        pushed, off = ([array(wrench), self.J], empty(held)) if held else ([], None)
        straight(self._accelerations, [tau, self.factors, *pushed], [first])
        mean, guess, sums = array(first), array(first), elementwise(lambda a: a / 6.0, first)
        table = {name: array(list(column)) for name, column in SIMPSON.items()}
        for stage in span(3):
            time = variable(self.law.bounds.period * table["time"][stage])
            reads = [self.given["q"], self.given["qd"], tau, mean, guess, time]
            if held:
                straight(self._left_over, [*reads, pushed[0]], [net, off])
                self._push_on(net, off, slip, pushed[0])
            else:
                straight(self._left_over, reads, [net])
            straight(self._accelerated, [net, self.factors], [found])
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
        if not self.held:
            return [net]
        parts = [support_rows(State(robot, q, qd), support, law.damping) for support in law.supports]
        rows, wanted = (flat(part[side] for part in parts) for side in (0, 1))
        for w, row in zip(wrench, rows, strict=True):
            net = [x + w * j for x, j in zip(net, row, strict=True)]
        return [net, [vector(row) @ qdd - x for row, x in zip(rows, wanted, strict=True)]]

    def _push_on(self, net: Any, off: Any, slip: Any, wrench: Any) -> None:
        """Add to wrenches, and to the torques that are left over, what holds the supports."""
        held, owners, change = self.held, self.law._support_of_rows(), empty(self.n)
        straight(self._accelerated, [net, self.factors], [change])
        for k in range(held):
            off[k] = self.given["stance"][owners[k]] * (slip[k] - dot(self.J[k, :], change, off[k]))
        more = solve(*self.held_factors, off)
        for k in span(held):
            wrench[k] = wrench[k] + more[k]
        for i in span(self.n):
            net[i] = dot(self.J[:, i], more, net[i])

    def _accelerated(self, net: Any, factors: Any) -> list[list[Any]]:
        """[M⁻¹ net]."""
        return [Halves.of_numbers(self.robot, factors[: -self.n]).solved(net)]

    def _moved(self, limits: Any, moved: Any, narrowed: Any) -> Any:
        """Right sides of inequalities with the bounds among them moved and narrowed."""
        found = array(limits)
        upper = self.law.rows.moving
        lower = upper + self.law.rows.bounds
        for k in span(self.law.rows.bounds):
            found[upper + k] = limits[upper + k] + moved[k] - narrowed[k]
            found[lower + k] = limits[lower + k] - moved[k] - narrowed[k]
        return found

    def _too_fast(self, qdd: Any) -> Any:
        """How much too fast the worst joint is after the sample [rad/s or m/s]; after ``_foretell``."""
        law = self.law
        most = variable(self.beyond[0])
        for place, k in enumerate(law.bounds.limited):
            a = qdd[law.motors[k]] + self.gained[place]
            for excess, bound in (
                (a - self.most[place], self.most[place]),
                (self.least[place] - a, self.least[place]),
            ):
                most.value = maximum(
                    most.value, law.bounds.period * (excess - UNNOTICED * (1.0 + abs(bound)))
                )
        return most.value

    def _accelerations(self, tau: Any, factors: Any, wrench: Any = (), J: Any = ()) -> list[list[Any]]:
        """[M⁻¹ (Sᵀ τ + Jᵀ w − h)]."""
        halved, bias = Halves.of_numbers(self.robot, factors[: -self.n]), factors[-self.n :]
        net = [t - b for t, b in zip(tau, bias, strict=True)]
        for k, w in enumerate(wrench):
            net = [x + w * J[k * self.n + i] for i, x in enumerate(net)]
        return [halved.solved(net)]
