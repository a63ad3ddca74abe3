"""The robot's parameters that vary, as inputs of its kernels: labels, and a payload from mass, centre and inertia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.scalar import Scalar
from linkwise.study.sampling.variables import Variable

PAYLOAD = "payload"


@dataclass(frozen=True)
class RobotParameters:
    """Which variables set which parameters."""

    variables: tuple[Variable, ...]

    @classmethod
    def of(cls, variables: Sequence[Variable]) -> RobotParameters:
        return cls(tuple(v for v in variables if v.labels or v.name.split(".")[0] == PAYLOAD))

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What stays an input of a kernel: labels, and "payload"."""
        labels = [label for variable in self.variables for label in variable.labels]
        loaded = any(not variable.labels for variable in self.variables)
        return (*((PAYLOAD,) if loaded else ()), *labels)

    def scalars(self, known: Mapping[str, Any]) -> dict[str, list[Scalar]]:
        """The scalars of every input, for symbols by the variables' names."""
        return self._from(
            {v.name: np.ravel(np.asarray(known[v.name], dtype=object)).tolist() for v in self.variables}
        )

    def arrays(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The array (count, size) of every input, for arrays by the variables' names."""
        columns: dict[str, list[Any]] = {
            v.name: list(given[v.name].reshape(len(given[v.name]), -1).T) for v in self.variables
        }
        return {
            name: np.stack(np.broadcast_arrays(*cast("list[Any]", parts)), axis=-1)
            for name, parts in self._from(columns).items()
        }

    def _from(self, columns: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
        elements: dict[str, list[Scalar]] = {}
        for variable in self.variables:
            for label, column in zip(variable.labels, columns[variable.name], strict=False):
                elements[label] = [column]
        if PAYLOAD in columns:
            elements[PAYLOAD] = list(columns[PAYLOAD])
        elif f"{PAYLOAD}.mass" in columns:
            elements[PAYLOAD] = _ten_numbers(
                columns[f"{PAYLOAD}.mass"][0],
                columns.get(f"{PAYLOAD}.com", (0.0,) * 3),
                columns.get(f"{PAYLOAD}.inertia", (0.0,) * 6),
            )
        return elements


def _ten_numbers(mass: Scalar, com: Sequence[Scalar], inertia: Sequence[Scalar]) -> list[Scalar]:
    """m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz about the frame's origin, from the inertia about the centre of mass."""
    x, y, z = com
    hx, hy, hz = mass * x, mass * y, mass * z
    moved = (hy * y + hz * z, -(hx * y), -(hx * z), hx * x + hz * z, -(hy * z), hx * x + hy * y)
    return [mass, hx, hy, hz, *(a + b for a, b in zip(inertia, moved, strict=True))]
