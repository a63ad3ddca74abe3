"""Which combinations of a robot's parameters its torques depend on.

A. Izaguirre et al., 1992, section 6.1, (25)–(29): the columns of the regressor at random states are taken one after the
other; a column that the earlier ones already span is dropped and its parameter is added to theirs. Columns are scaled
first, and the gap between the last independent column and the first dependent one is reported: it shows how certain
the decision is. The symbolic rules (``linkwise.model.regroup``) give the same number of parameters of the links where
no special geometry allows more; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import LinkwiseError, UnknownNameError, suggest

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

DEPENDENT = (
    1e-9  # what is left of a unit column after the earlier ones, under which it counts as spanned by them
)


@dataclass(frozen=True, repr=False)
class BaseParameters(Summarised):
    """A smallest set of parameters that leaves every torque unchanged.

    ``labels`` name the parameter that leads each combination; ``combination @ robot.parameters`` are the values.
    """

    labels: tuple[str, ...]
    combination: np.ndarray  # (base parameters, parameters)
    columns: tuple[int, ...]  # columns of the regressor that stay
    values: np.ndarray
    parameter_labels: tuple[str, ...]
    gap: tuple[float, float]  # (smallest independent, largest dependent) remainder of a unit column

    def __len__(self) -> int:
        return len(self.labels)

    def _summary(self) -> Summary:
        rows = [[label, self.values[k], self.expression(k)] for k, label in enumerate(self.labels)]
        title = f"{len(self)} base parameters of {len(self.parameter_labels)}"
        return Summary(title, ("label", ">value", "combination"), rows)

    def expression(self, k: int, digits: int = 6) -> str:
        """The combination behind base parameter k in words, such as ``link2.Ixx - link2.Iyy``."""
        text = ""
        terms = list(zip(self.parameter_labels, self.combination[k], strict=True))
        lead = self.columns[k]
        for label, factor in [terms[lead], *terms[:lead], *terms[lead + 1 :]]:
            if factor == 0.0:
                continue
            size = abs(factor)
            term = label if size == 1.0 else f"{size:.{digits}g}·{label}"
            if not text:
                text = term if factor > 0 else f"-{term}"
            else:
                text += f" {'+' if factor > 0 else '-'} {term}"
        return text

    def __str__(self) -> str:
        rows = (f"{self.values[k]: .6g}  {self.expression(k)}" for k in range(len(self)))
        return f"{len(self)} base parameters of {len(self.parameter_labels)}\n" + "\n".join(rows)


def base_parameters(
    robot: Robot,
    *,
    first: Sequence[str] = (),
    links_only: bool = False,
    seed: int = 0,
    states: int | None = None,
) -> BaseParameters:
    """See ``Robot.base_parameters``."""
    links_only, labels = flag("links_only", links_only), robot.parameter_labels
    for label in first:
        if label not in labels:
            raise UnknownNameError(f"first: no parameter {label!r}; {suggest(label, labels)}")
    W = _observations(robot, seed, states)
    kept = [k for k in range(len(labels)) if not links_only or k < 10 * len(robot.moving_joints)]
    order = sorted(kept, key=lambda k: (first.index(labels[k]) if labels[k] in first else len(first), k))
    scale = np.linalg.norm(W, axis=0)
    scale = np.where(scale > DEPENDENT * scale.max(initial=0.0), scale, 0.0)
    moving = [k for k in order if scale[k] > 0.0]
    independent, remainders = _sequential(W[:, moving] / scale[moving])
    columns = [moving[k] for k in independent]
    dependent = [k for k in moving if k not in set(columns)]
    combination = np.zeros((len(columns), len(labels)))
    combination[np.arange(len(columns)), columns] = 1.0
    if dependent and columns:
        combination[:, dependent] = _coefficients(
            W[:, columns] / scale[columns], W[:, dependent], scale[columns]
        )
    chosen = set(independent)
    small = max((r for k, r in enumerate(remainders) if k not in chosen), default=0.0)
    large = min((r for k, r in enumerate(remainders) if k in chosen), default=1.0)
    if small > 1e-3 * large:
        raise LinkwiseError(
            f"{robot.name}: no clear gap between independent and dependent parameters ({large:.1e} and {small:.1e})"
        )
    return BaseParameters(
        labels=tuple(labels[k] for k in columns),
        combination=combination,
        columns=tuple(columns),
        values=combination @ robot.parameters,
        parameter_labels=labels,
        gap=(large, small),
    )


def _observations(robot: Robot, seed: int, states: int | None) -> np.ndarray:
    """The regressor at random states, rows of all joints below one another."""
    n, p = robot.dof, len(robot.parameter_labels)
    count = states or max(40, 4 * p // max(n, 1))
    rng = np.random.default_rng(seed)
    if any(joint.free for joint in robot.coordinate_joints):
        q, (qd, qdd) = robot.random(rng, count), rng.uniform(-2.0, 2.0, size=(2, count, n))
    else:
        q, qd, qdd = rng.uniform(-2.0, 2.0, size=(3, count, n))
    return robot.regressor(q, qd, qdd).reshape(count * n, p)


def _sequential(columns: np.ndarray) -> tuple[list[int], list[float]]:
    """Columns not spanned by earlier independent ones, and how much of each is left beside those."""
    independent: list[int] = []
    remainders: list[float] = []
    basis = np.empty((columns.shape[0], 0))
    for k in range(columns.shape[1]):
        rest = columns[:, k].copy()
        for _ in range(2):
            rest -= basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        remainders.append(size)
        if size > DEPENDENT:
            independent.append(k)
            basis = np.column_stack([basis, rest / size])
    return independent, remainders


def _coefficients(scaled: np.ndarray, dependent: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """How each dependent column is made of the independent ones, refined once, cleaned of round-off."""
    found, *_ = np.linalg.lstsq(scaled, dependent, rcond=None)
    correction, *_ = np.linalg.lstsq(scaled, dependent - scaled @ found, rcond=None)
    beta = (found + correction) / scale[:, None]
    size = np.max(np.abs(beta), axis=0, initial=0.0)
    beta = np.where(np.abs(beta) < 1e-11 * np.maximum(size, 1.0), 0.0, beta)
    whole = np.round(beta)
    return np.where(np.abs(beta - whole) < 1e-11, whole, beta)
