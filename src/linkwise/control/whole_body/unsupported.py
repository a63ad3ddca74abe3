"""One sample of whole-body control where every joint has a motor and nothing stands: accelerations are the unknowns.

Then Jacobians are rows of tasks as they are, a posture is a diagonal, and bounds of joints are boxes. Torques M q̈ + h
are rows, for motors with a limit, which is kept whatever happens. Without such limits nothing is asked of the mass
matrix: the torques are those of inverse dynamics. ``sample`` has torques as unknowns, for other robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linkwise.control.whole_body.limits import UNLIMITED
from linkwise.control.whole_body.mobilities import Halves, flat
from linkwise.control.whole_body.sample import Sample
from linkwise.control.whole_body.tasks import State, vector
from linkwise.language import dot, empty, span, straight, zeros
from linkwise.solve.limited import within


class UnsupportedSample(Sample):
    """The arrays of a sample with accelerations as unknowns."""

    def _allocate(self) -> None:
        self.jacobians = empty(max(1, self.task_rows), self.n)
        self.first_bias = len(Halves.places(self.robot)) + self.n
        self.massive = self.holding.foretold or bool(self.law.rows.firm)
        self.M = empty(self.n, self.n)

    def _read_model(self) -> None:
        mass = [self.M, self.factors] if self.massive else []
        self._read([self.jacobians, self.low, self.high, self.beyond, self.least, self.most, *mass])

    def _model(self, q: Any, qd: Any, targets: Any, gains: Any, braking: Any = None) -> list[list[Any]]:
        law = self.law
        bounds = law.bounds if braking is None else replace(law.bounds, deceleration=braking)
        state = State(self.robot, vector(q), vector(qd))
        jacobians, wanted = self._task_rows(state, targets, gains)
        apart = [separation.row(state, law.bounds.period) for separation in law.separations]
        jacobians += [gradient for gradient, _ in apart]
        limits = self._bounds(bounds, q, qd, [least for _, least in apart])
        found = [flat(jacobians) or [0.0] * self.n, *(values or [0.0] for values in limits)]
        if self.massive:
            halved = Halves.at(self.robot, state.q)
            found += [flat(halved.M), [*halved.numbers(), *self.robot.bias_torques(state.q, state.qd)]]
        return found + wanted

    def _hold_supports(self) -> None:
        """Nothing stands."""

    def _express_tasks(self) -> None:
        at = 0
        for task in self.law.tasks:
            self.b[task.label] = self.wanted[task.label]
            self.A[task.label] = None
            if not task.posture:
                self.A[task.label] = self.jacobians[at : at + task.size(self.robot), :]
                at += task.size(self.robot)
        self.apart = self.jacobians[at:, :]

    def _limits(self) -> tuple[Any, Any]:
        law, rows, n = self.law, self.law.rows, self.n
        limits = empty(rows.count)
        for k in range(rows.boxes):
            limits[k] = UNLIMITED
            limits[rows.boxes + k] = UNLIMITED
        for place, k in enumerate(law.bounds.limited):
            limits[k] = self.high[place]
            limits[rows.boxes + k] = -self.low[place]
        S: Any = zeros(rows.bounds, n) if rows.bounds else None
        upper, lower = rows.moving, rows.moving + rows.bounds
        for place, k in enumerate(law.limited_torques):
            bias = self.factors[self.first_bias + k]
            for j in span(n, parallel=True):
                S[place, j] = self.M[k, j]
            limits[upper + place] = law.bounds.torque[k] - bias
            limits[lower + place] = law.bounds.torque[k] + bias
        for number in range(len(law.separations)):
            place, bound = len(law.limited_torques) + number, len(law.bounds.limited) + number
            for j in span(n, parallel=True):
                S[place, j] = self.apart[number, j]
            limits[upper + place] = self.high[bound]
            limits[lower + place] = -self.low[bound]
        return S, limits

    def _moving_places(self) -> Sequence[int]:
        return self.law.bounds.limited

    def _torques(self, x: Any) -> Any:
        tau = empty(self.n)
        if not self.massive:
            straight(self._inverse_dynamics, [self.given["q"], self.given["qd"], x], [tau])
            return tau
        for i in span(self.n):
            tau[i] = dot(self.M[i, :], x, self.factors[self.first_bias + i])
        return tau

    def _by_torques(self, x: Any, slope: Any) -> tuple[Any, Any]:
        if not self.massive:
            return x, slope
        found = empty(self.n)
        straight(self.holding.by_masses, [slope, self.factors], [found])
        return self._torques(x), found

    def _inverse_dynamics(self, q: Any, qd: Any, qdd: Any) -> list[list[Any]]:
        return [list(self.robot.inverse_dynamics(vector(q), vector(qd), vector(qdd), friction=False))]

    def _commanded(self, x: Any) -> tuple[Any, Any]:
        """(torques within their limits, accelerations by them)."""
        tau = self._torques(x)
        if not self.law.limited_torques:
            return tau, x
        for k in self.law.limited_torques:
            torque = self.law.bounds.torque[k]
            tau[k] = within(tau[k], -torque, torque)
        return tau, super()._moved_by(tau, x, None)

    def _moved_by(self, tau: Any, x: Any, supports: Any) -> Any:
        return x
