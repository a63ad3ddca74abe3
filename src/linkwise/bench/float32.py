"""What float32 costs on one robot: the error of rounding the inputs, and that of computing with short words, apart.

The inputs of a float32 program are rounded whatever it does then. The error which that alone causes in the result is
the difference of two float64 results, of rounded and of exact inputs. What the program adds is the difference of the
float32 result and the float64 result of the same rounded inputs. An algorithm is as good as float32 allows where the
second is not larger than the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.functions.table import FUNCTIONS, ITERATED
from linkwise.robot.robot import Robot

EPS = float(np.finfo(np.float32).eps)
BOUND = 1e-3  # relative error of a result, from which short words are a risk
WORST = 0.99  # of the states have at most the error that is called large
LOOKED_AT = ("inverse_dynamics", "gravity_torques", "mass_matrix", "forward_dynamics", "inverse_mass_matrix")


@dataclass(frozen=True)
class Rounding:
    """Errors of one algorithm, each the largest entry's in parts of the result's largest entry.

    ``inputs`` and ``arithmetic`` are medians over the states, ``large`` is the error of both together that 99 % of the
    states do not exceed. ``refusal`` says why there is none.
    """

    function: str
    algorithm: str
    inputs: float = float("nan")
    arithmetic: float = float("nan")
    large: float = float("nan")
    refusal: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether the error is above ``BOUND``, or is no number."""
        return not self.refusal and not self.large <= BOUND


def algorithms(function: str) -> tuple[str, ...]:
    """All of a function, iterations too."""
    more = FUNCTIONS[ITERATED].algorithms if function == "forward_dynamics" else ()
    return (*FUNCTIONS[function].algorithms, *more)


def count() -> int:
    """How many rows ``rounding_errors`` gives."""
    return sum(len(algorithms(function)) for function in LOOKED_AT)


def rounding_errors(
    robot: Robot, states: Mapping[str, np.ndarray], functions: tuple[str, ...] = LOOKED_AT
) -> Iterator[Rounding]:
    """The errors of every algorithm of some functions, at these states."""
    for function in functions:
        for algorithm in algorithms(function):
            try:
                yield _measured(robot, states, function, algorithm)
            except LinkwiseError as error:
                yield Rounding(function, algorithm, refusal=str(error))


def _measured(robot: Robot, states: Mapping[str, np.ndarray], function: str, algorithm: str) -> Rounding:
    method = getattr(robot, function)
    given = [states[name] for name in FUNCTIONS[function].inputs]
    short = [x.astype(np.float32) for x in given]
    rounded = [x.astype(float) for x in short]
    exact, of_rounded = method(*given, algorithm=algorithm), method(*rounded, algorithm=algorithm)
    in_float32 = method(*short, algorithm=algorithm).astype(float)
    rows = tuple(range(1, exact.ndim))
    size = np.maximum(np.abs(exact).max(axis=rows), 1e-300)
    inputs = np.abs(of_rounded - exact).max(axis=rows) / size
    arithmetic = np.abs(in_float32 - of_rounded).max(axis=rows) / size
    both = np.abs(in_float32 - exact).max(axis=rows) / size
    return Rounding(
        function,
        algorithm,
        float(np.median(inputs)),
        float(np.median(arithmetic)),
        float(np.quantile(both, WORST)),
    )
