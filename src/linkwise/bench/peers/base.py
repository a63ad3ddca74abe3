"""What an adapter of another library gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.robot.engine_coordinates import Coordinates

States = Mapping[
    str, np.ndarray
]  # "q", "qd", "qdd", "tau", each of shape (states, n), in the order of Linkwise

INPUTS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "bias_torques": ("q", "qd"),
    "gravity_torques": ("q",),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
}
MATRICES = ("mass_matrix", "inverse_mass_matrix")
INVERSES = ("forward_dynamics", "inverse_mass_matrix")  # not reduced by adding the torques of followers


class Refusal(Exception):
    """The library is here but cannot take this robot; the message says why."""


@dataclass(frozen=True)
class Task:
    """Work that is ready to be timed: ``run`` does it, ``result`` gives what it computes, in the order of Linkwise."""

    path: str  # how the library does it
    run: Callable[[], Any]
    result: Callable[[], np.ndarray]


class Peer:
    """Another library that has taken the robot. An adapter gives ``call``, and ``batch`` where it has something better
    than a loop."""

    name: str
    version: str
    order: np.ndarray  # the place of each coordinate of Linkwise among the peer's
    precisions: tuple[str, ...] = ("float64",)
    slow = False  # milliseconds per state: not worth a large batch
    engine: Coordinates | None = None  # where coordinates are more than numbers in another order

    def has(self, function: str) -> bool:
        """Whether the library has this function."""
        if self.engine is not None and not self.engine.square and function in INVERSES:
            return False
        return self.call(function) is not None

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        """(its name, a function of one state that gives an array), or None if the library has no such function."""
        raise NotImplementedError

    def coordinates(self, name: str, values: np.ndarray) -> np.ndarray:
        """States of shape (states, n) as the library has them."""
        moved = np.empty_like(values)
        moved[:, self.order] = values
        return moved

    def ordered(self, function: str, values: np.ndarray) -> np.ndarray:
        """Results of the library, with or without a leading axis of states, in the order of Linkwise."""
        rows = values[..., self.order]
        return rows[..., self.order, :] if function in MATRICES else rows

    def argument(self, row: np.ndarray) -> Any:
        """One vector of one state as the library takes it fastest."""
        return row

    def inputs(self, function: str, states: States) -> list[np.ndarray]:
        """What the function takes, in the library's coordinates."""
        return [self.coordinates(name, states[name]) for name in INPUTS[function]]

    def one(self, function: str, states: States) -> Task | None:
        """The first state, called from Python; None if there is no such function."""
        found = self.call(function)
        if found is None:
            return None
        path, call = found
        state = [self.argument(np.ascontiguousarray(values[0])) for values in self.inputs(function, states)]
        run = _bound(call, state)
        return Task(path, run, lambda: self.ordered(function, np.array(run())))

    def batch(self, function: str, states: States) -> Task | None:
        """All states with one thread, the fastest way there is from Python; None if there is no such function."""
        found = self.call(function)
        if found is None:
            return None
        path, call = found
        columns = [np.ascontiguousarray(values) for values in self.inputs(function, states)]
        rows = [tuple(self.argument(row) for row in state) for state in zip(*columns, strict=True)]

        def loop() -> None:
            for row in rows:
                call(*row)

        def result() -> np.ndarray:
            return self.ordered(function, np.array([np.array(call(*row)) for row in rows]))

        return Task(f"loop of {path}", loop, result)

    def result(self, function: str, states: States) -> np.ndarray | None:
        """The results for all states; None if there is no such function."""
        if self.engine is not None:
            return self._converted(function, states, self.engine)
        task = self.batch(function, states)
        if task is None:
            return None
        task.run()
        return task.result()

    def _converted(self, function: str, states: States, engine: Coordinates) -> np.ndarray | None:
        """The results for all states, one by one, by the conversions of an engine."""
        found = self.call(function)
        if found is None:
            return None
        q, qd = states["q"], states["qd"]
        theirs = {"q": engine.positions(q), "qd": engine.velocities(q, qd)}
        theirs["qdd"] = engine.accelerations(q, qd, states["qdd"])
        if engine.square:
            theirs["tau"] = engine.torques(q, states["tau"])
        rows = zip(*(np.ascontiguousarray(theirs[name]) for name in INPUTS[function]), strict=True)
        results = np.array([np.array(found[1](*row)) for row in rows])
        if function == "mass_matrix":
            return engine.own_matrix(q, results)
        if function == "inverse_mass_matrix":
            return engine.own_inverse(q, results)
        if function == "forward_dynamics":
            return engine.own_accelerations(q, qd, results)
        if function == "bias_torques":
            # theirs are at zero acceleration of their velocities, ours at that of ours
            mass = self.call("mass_matrix")
            assert mass is not None
            left = engine.accelerations(q, qd, np.zeros_like(qd))
            results += np.array(
                [np.array(mass[1](row)) @ a for row, a in zip(theirs["q"], left, strict=True)]
            )
        return engine.own_torques(q, results)


def _bound(call: Callable[..., Any], state: list[Any]) -> Callable[[], Any]:
    """The call with its arguments in place, without unpacking while it is timed."""
    if len(state) == 1:
        (q,) = state
        return lambda: call(q)
    if len(state) == 2:
        q, v = state
        return lambda: call(q, v)
    q, v, a = state
    return lambda: call(q, v, a)
