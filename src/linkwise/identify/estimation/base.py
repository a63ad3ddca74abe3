"""The independent columns of a regression, and what the recording says about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.friction import Friction
from linkwise.identify.estimation.rank import STATES, independent, random_states, regrouping_order
from linkwise.identify.estimation.regression import Regression, axis_names
from linkwise.identify.estimation.solvers import column_lengths
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

UNSEEN = 1e-3  # singular value, of the largest, without information below; recorded arms have 5e-3 and more
NOTHING = 1e-9  # the same without any information: estimates leave such a direction out
OPEN = 1e-6  # squared entry of a unit vector of these, from which a parameter may be anything
STILL = 0.01  # [rad or m] a joint that stays within this does not move: what is seen of its drive is noise
SHARE = 0.3  # entry of a unit singular vector from which a parameter takes part in it


# Terms that links can cause as well: a rotor turns with its link, a weight on a vertical slide is a constant torque.
SHARED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "rotor_inertia": lambda qd, qdd: qdd,
    "offset": lambda qd, qdd: np.ones_like(qd),
    "forward": lambda qd, qdd: np.where(qd > 0, 1.0, 0.0),
    "backward": lambda qd, qdd: np.where(qd < 0, -1.0, 0.0),
}


def base_of(robot: Robot, axes: np.ndarray, friction: Friction, seed: int = 0) -> BaseParameters:
    """Base parameters of links, rotors and friction terms: what can be distinguished in recordings of this robot.

    Links, and terms that they can cause as well, by rank at random states; other terms are parameters of their own.
    """
    q, qd, qdd = random_states(robot, STATES, seed)
    count = 10 * robot.dof
    columns = [robot.regressor(q, qd, qdd)[..., :count]]
    names = axis_names(robot, axes)
    labels, others = list(robot.parameter_labels[:count]), []
    for axis, terms in enumerate(friction):
        for term in terms:
            label = f"{names[axis]}.{term.label}"
            if term.kind in SHARED:
                labels.append(label)
                shape = SHARED[term.kind](product(qd, axes[axis]), product(qdd, axes[axis]))
                columns.append((shape[:, None] * axes[axis])[..., None])
            else:
                others.append(label)
    found = independent(
        np.concatenate(columns, axis=-1).reshape(-1, len(labels)), labels, regrouping_order(labels, robot)
    )
    return in_order(found, tuple(labels), friction, names, others, count)


def in_order(
    found: BaseParameters,
    labels: tuple[str, ...],
    friction: Friction,
    names: list[str],
    others: list[str],
    links: int,
) -> BaseParameters:
    """The same with all terms, in the order of the regression's columns."""
    terms = (f"{names[a]}.{term.label}" for a, terms in enumerate(friction) for term in terms)
    order = [*labels[:links], *terms]
    kept = [label for label in order if label in found.labels or label in set(others)]
    combination = np.zeros((len(kept), len(order)))
    for row, label in enumerate(kept):
        if label in found.labels:
            source = found.combination[found.labels.index(label)]
            for factor, other in zip(source, labels, strict=True):
                combination[row, order.index(other)] = factor
        else:
            combination[row, order.index(label)] = 1.0
    columns = tuple(order.index(label) for label in kept)
    return BaseParameters(
        tuple(kept), combination, columns, np.full(len(kept), np.nan), tuple(order), found.gap
    )


@dataclass(frozen=True)
class Excitation:
    """What a recording can distinguish: condition number of the scaled columns, and what has no information.

    ``absent`` parameters cause no torque in it, parameters of one group of ``mixed`` cannot be distinguished,
    ``still`` joints hardly move. ``unknown`` parameters may be anything: some direction that they take part in causes
    no torque at all.
    """

    condition: float
    absent: tuple[str, ...]
    mixed: tuple[tuple[str, ...], ...]
    still: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.absent and not self.mixed and not self.still

    def words(self) -> str:
        """One sentence; empty where nothing is missing."""
        parts = []
        if self.still:
            parts.append(f"{_some(self.still)} hardly move{'s' if len(self.still) == 1 else ''}")
        if self.absent:
            parts.append(f"nothing depends on {_some(self.absent)}")
        parts += [f"{_some(group)} cannot be told apart" for group in self.mixed[:4]]
        if len(self.mixed) > 4:
            parts.append(f"and {len(self.mixed) - 4} more such groups")
        return f"too little excitation: {'; '.join(parts)}" if parts else ""


def excitation_of(regression: Regression, weights: np.ndarray) -> Excitation:
    """Examine the columns of a regression with independent columns, and the motion."""
    W, _ = regression.compressed(weights)
    sizes = np.sqrt((W**2).sum(axis=0))
    present = sizes > 1e-12 * sizes.max()
    absent = tuple(label for label, here in zip(regression.labels, present, strict=True) if not here)
    labels = [label for label, here in zip(regression.labels, present, strict=True) if here]
    s, Vt = linear.svd(W[:, present] / column_lengths(W[:, present]))
    mixed = tuple(
        tuple(label for label, part in zip(labels, row, strict=True) if abs(part) > SHARE)
        for value, row in zip(s, Vt, strict=True)
        if value < UNSEEN * s[0]
    )
    groups = tuple(dict.fromkeys(group for group in mixed if group))
    free = (Vt[s < NOTHING * s[0]] ** 2).sum(axis=0) > OPEN
    unknown = (*absent, *(label for label, here in zip(labels, free, strict=True) if here))
    return Excitation(float(s[0] / max(s[-1], 1e-300)), absent, groups, _still_joints(regression), unknown)


def _still_joints(regression: Regression) -> tuple[str, ...]:
    observer = regression.observer
    if observer is None:
        return ()
    q = np.concatenate([signals.q for signals in observer.signals])
    names = observer.names[: observer.joints]
    return tuple(name for name, span in zip(names, np.ptp(q, axis=0), strict=True) if span < STILL)


def _some(labels: tuple[str, ...], most: int = 6) -> str:
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
