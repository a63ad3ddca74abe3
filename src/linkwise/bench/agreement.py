"""Agreement of every algorithm of a function, and of every other library, on the same states.

Torques and mass matrices are compared entry by entry, relative to the largest. Accelerations are judged by their
residual, ‖ID(q̈) − τ‖ / (‖τ‖ + ‖b‖ + ‖M‖‖q̈‖), and an inverse by ‖M M⁻¹ − 1‖ / (‖M‖‖M⁻¹‖): so an ill-conditioned mass
matrix neither hides a wrong result nor makes a right one look wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwise.bench.peers.base import INPUTS, Peer
from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot

FUNCTIONS = tuple(INPUTS)
JUDGED_ALONE = ("forward_dynamics", "inverse_mass_matrix")  # by a residual, not beside another result
ALGORITHM_TOLERANCE = 1e-11  # round-off of a few hundred operations, with room for ill-conditioned arms
ENGINE_TOLERANCE = 1e-9  # file readers of two libraries differ by the last digits of angles


@dataclass(frozen=True)
class Finding:
    """One comparison: library, function, error, or why there is none."""

    function: str
    who: str
    difference: float | None
    tolerance: float
    refusal: str = ""
    reference: bool = False  # the others are compared with this one
    alone: bool = False  # there is no other result to compare this one with
    empty: bool = False  # nothing but zeros was compared, which any two agree on

    @property
    def verdict(self) -> str:
        if self.reference:
            return "reference"
        if self.alone:
            return "not compared"
        if self.difference is None:
            return "refuses"
        if self.empty and self.difference <= self.tolerance:
            return "only zeros"
        return "agrees" if self.difference <= self.tolerance else "DISAGREES"


def compare(
    robot: Robot, states: Mapping[str, np.ndarray], peers: Sequence[Peer] = (), *, every: bool = True
) -> Iterator[Finding]:
    """A finding for every function and algorithm, and for every function of every peer.

    Args:
        robot: the robot.
        states: q, qd, qdd and tau.
        peers: other libraries.
        every: False compares the default algorithm of each function only.
    """
    for function in FUNCTIONS:
        answered = False  # whether there is a result of ours that a peer can be compared with
        algorithms = robot.algorithms(function)
        for number, algorithm in enumerate(algorithms if every else algorithms[:1]):
            if number == 0 and function not in JUDGED_ALONE:
                answered = True
                yield Finding(function, algorithm, None, ALGORITHM_TOLERANCE, reference=True)
            else:
                run = partial(own_result, robot, function, states, algorithm)
                found = _judged(robot, function, algorithm, states, run, ALGORITHM_TOLERANCE)
                answered = answered or not found.refusal
                yield found
        for peer in peers:
            if peer.has(function) and not answered:
                reason = "every algorithm here refuses, so there is nothing to compare it with"
                yield Finding(
                    function, f"{peer.name} {peer.version}", None, ENGINE_TOLERANCE, reason, alone=True
                )
            elif peer.has(function):
                run = partial(peer.result, function, states)
                yield _judged(robot, function, f"{peer.name} {peer.version}", states, run, ENGINE_TOLERANCE)


def count(robot: Robot, peers: Sequence[Peer] = ()) -> int:
    """How many findings ``compare`` will give."""
    ours = sum(len(robot.algorithms(function)) for function in FUNCTIONS)
    return ours + sum(peer.has(function) for function in FUNCTIONS for peer in peers)


def own_result(
    robot: Robot, function: str, states: Mapping[str, np.ndarray], algorithm: str | None = None
) -> np.ndarray:
    """A function of the robot without friction; None is the default algorithm."""
    options: dict[str, Any] = (
        {"friction": False} if function in ("inverse_dynamics", "forward_dynamics") else {}
    )
    if algorithm is not None and len(robot.algorithms(function)) > 1:
        options["algorithm"] = algorithm
    return getattr(robot, function)(*(states[name] for name in INPUTS[function]), **options)


def _judged(robot: Robot, function: str, who: str, states, run, tolerance: float) -> Finding:
    try:
        result = run()
        far = difference(robot, function, states, result)
    except LinkwiseError as error:
        return Finding(function, who, None, tolerance, str(error))
    return Finding(function, who, far, tolerance, empty=not np.any(result))


def difference(robot: Robot, function: str, states: Mapping[str, np.ndarray], result: np.ndarray) -> float:
    """How far a result is from that of the function's default algorithm, or its residual; worst state."""
    q = states["q"]
    if function == "forward_dynamics":
        return residual(robot, q, states["qd"], states["tau"], result, friction=False)
    if function == "inverse_mass_matrix":
        M = robot.mass_matrix(q)
        off = _norms(M @ result - np.eye(robot.dof), 2)
        return _worst(off / (_norms(M, 2) * _norms(result, 2)))
    wanted = own_result(robot, function, states)
    scale = np.abs(wanted).max()
    return _worst(np.abs(result - wanted) / (scale if scale > 0 else 1.0))


def residual(robot: Robot, q, qd, tau, qdd, *, friction: bool) -> float:
    """‖ID(q̈) − τ‖ / (‖τ‖ + ‖b‖ + ‖M‖‖q̈‖), worst state."""
    off = robot.inverse_dynamics(q, qd, qdd, friction=friction) - tau
    bias = robot.inverse_dynamics(q, qd, np.zeros_like(qdd), friction=friction)
    scale = _norms(tau, 1) + _norms(bias, 1) + _norms(robot.mass_matrix(q), 2) * _norms(qdd, 1)
    return _worst(_norms(off, 1) / np.where(scale > 0, scale, 1.0))


def _norms(values: np.ndarray, axes: int) -> np.ndarray:
    return np.sqrt((values**2).sum(axis=tuple(range(-axes, 0))))


def _worst(values: np.ndarray) -> float:
    """The largest; a NaN is larger than everything."""
    largest = float(np.max(values)) if np.size(values) else 0.0
    return float("inf") if np.isnan(largest) else largest
