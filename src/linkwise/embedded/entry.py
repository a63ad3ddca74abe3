"""What a generated function is: its kernel, what it is in words, numbers for its header and its check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.compiler.emit.c import AnyProgram
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.rollout import RolloutKernel
from linkwise.errors import LinkwiseError
from linkwise.motion import Trajectory


class EntryError(LinkwiseError, ValueError):
    """A function cannot be generated for this robot; the message says why."""


@dataclass(frozen=True)
class Options:
    """Choices that decide what is generated."""

    dtype: str = "float64"
    algorithm: str | None = None
    frame: str | None = None
    friction: bool = True
    wrench: bool = False
    payload: bool = False
    """Whether a payload, ten numbers, is an argument of functions and controllers."""
    period: float = 1e-3
    """Sample period of controllers and observers, step of loops [s]."""
    frequency: float = 10.0
    """Of the gains [rad/s]."""
    damping: float = 1.0
    torque_limits: Sequence[float] | None = None
    """[N·m or N]; None: the effort limits of the robot."""
    controller: str = "computed_torque"
    """The one of ``closed_loop``."""
    stop: str = "hold"
    """The mode of ``safe_stop``: "hold" or "ramp"."""
    stop_time: float = 0.5
    """Of ``safe_stop`` [s]."""
    trajectory: Trajectory | None = None
    """The motion of ``trajectory`` and ``closed_loop``; None: quintic moves between any two positions."""
    constant_time: bool = False
    """Whether nothing that is read may depend on data; ``Package`` sets it."""
    integrator: str = "rk4"
    horizon: int = 30
    """Steps of the plans of ``mpc``."""
    step: float = 0.01
    """Duration of each [s]."""
    iterations: int = 1
    """Of the solver, in a call of ``mpc``."""
    weights: str | None = None
    """File of the network of ``policy``."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("payload",) if self.payload else ()

    @property
    def payload_frame(self) -> str | None:
        """The frame that carries the payload; None: the only leaf, or there is none."""
        return self.frame if self.payload else None


@dataclass(frozen=True)
class Entry:
    """One function of a package."""

    name: str
    summary: str
    kernel: Kernel | RolloutKernel
    dtype: str
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Values that parameters of a loop have in simulations: what the check uses."""
    examples: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Values of inputs for the check, one after the other."""
    definitions: Mapping[str, int] = field(default_factory=dict)
    """Whole numbers for the header."""
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Constant arrays for callers."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What arguments are, where their names do not say it."""
    states: Callable[[int], Mapping[str, np.ndarray]] | None = None
    """Inputs of the check for a number of states, (states, size) each; None: typical ones by their names."""

    @property
    def program(self) -> AnyProgram:
        return self.kernel.program(self.dtype)
