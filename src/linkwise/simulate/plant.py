"""What is controlled: a robot with its friction, its sensors and its drives. Over any scalar.

The numbers of a plant are inputs of its kernels, so that another value needs no other kernel, and a batch may
have other values for every robot; only what a plant has at all (noise, a quantisation, a delay) decides the
code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.arguments.flags import flag
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, rint, where
from linkwise.simulate import arguments
from linkwise.simulate.arguments import SimulationError

MOST_BITS = 48  # of a converter: more steps than a double can resolve

Values = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True)
class Sensors:
    """How positions and velocities are measured; each number for all joints or (n,). Zero: without that
    flaw.
    """

    position_noise: float | np.ndarray = 0.0
    """Standard deviation [rad or m]."""
    velocity_noise: float | np.ndarray = 0.0
    """Standard deviation [rad/s or m/s]; of a tachometer."""
    resolution: float | np.ndarray = 0.0
    """Position of one encoder count [rad or m]."""
    velocity: str = "measured"
    """"measured": by a tachometer; "difference": from two positions one sample apart, through a first-order
    filter.
    """
    cutoff: float = np.inf
    """Of that filter [rad/s]."""

    def __post_init__(self):
        if self.velocity not in ("measured", "difference"):
            raise SimulationError(f"velocity: expected 'measured' or 'difference', got {self.velocity!r}")
        for name in ("position_noise", "velocity_noise", "resolution"):
            arguments.array(name, getattr(self, name), least=0.0)
        if self.cutoff != np.inf:
            arguments.number("cutoff", self.cutoff, above=0.0)

    @classmethod
    def encoders(cls, counts_per_turn, gear_ratio, **options) -> Sensors:
        """Incremental encoders on the motors: counts per motor turn, motor turns per joint turn (its sign is
        not used).

        Args:
            counts_per_turn: of the motor, one number or (n,).
            gear_ratio: motor turns per joint turn; its sign is not used.
            **options: further fields of ``Sensors``.
        """
        turns = np.abs(arguments.array("gear_ratio", gear_ratio))
        arguments.array("gear_ratio", turns, above=0.0)
        counts = arguments.array("counts_per_turn", counts_per_turn, above=0.0) * turns
        return cls(resolution=2 * np.pi / counts, **{"velocity": "difference", **options})

    @property
    def noisy(self) -> bool:
        return bool(
            np.any(np.asarray(self.position_noise) != 0) or np.any(np.asarray(self.velocity_noise) != 0)
        )

    @property
    def counts(self) -> bool:
        return bool(np.any(np.asarray(self.resolution) != 0))

    @property
    def differs(self) -> bool:
        return self.velocity == "difference"

    def numbers(self, dof: int, period: float) -> dict[str, np.ndarray]:
        """The inputs of a kernel, by name.

        Args:
            dof: number of joints.
            period: the sample period [s].
        """
        found: dict[str, np.ndarray] = {}
        if self.noisy:
            found["position_noise"] = arguments.per_joint("position_noise", self.position_noise, dof)
            found["velocity_noise"] = arguments.per_joint("velocity_noise", self.velocity_noise, dof)
        if self.counts:
            found["resolution"] = arguments.per_joint("resolution", self.resolution, dof)
        if self.differs:
            found["filter_gain"] = np.array([1.0 - np.exp(-self.cutoff * period)])
        return found

    def measured(
        self,
        values: Values,
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        memory: Sequence[Scalar],
        period: Scalar,
        drawn: Sequence[Scalar],
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """(measured q, measured q̇, next memory); the memory is the last measured q and the filtered q̇.

        ``drawn`` are 2n random numbers of variance 1, where there is noise.

        Args:
            values: numbers of the sensors by name.
            q: positions, n scalars.
            qd: velocities, n scalars.
            memory: what the last sample left.
            period: the sample period [s].
            drawn: random numbers.
        """
        n = len(q)
        q, qd = list(q), list(qd)
        if self.noisy:
            q = [x + s * z for x, s, z in zip(q, values["position_noise"], drawn[:n], strict=True)]
            qd = [x + s * z for x, s, z in zip(qd, values["velocity_noise"], drawn[n:], strict=True)]
        if self.counts:
            q = [_rounded(x, r) for x, r in zip(q, values["resolution"], strict=True)]
        if not self.differs:
            return q, qd, []
        last, filtered = memory[:n], memory[n:]
        (gain,), rate = values["filter_gain"], 1.0 / period
        qd = [f + gain * (rate * (x - old) - f) for x, old, f in zip(q, last, filtered, strict=True)]
        return q, qd, [*q, *qd]

    def memory(self, q: np.ndarray) -> np.ndarray:
        """The memory before the first sample, for robots at rest at q (..., n)."""
        if not self.differs:
            return np.zeros((*q.shape[:-1], 0))
        if self.counts:
            resolution = np.broadcast_to(self.resolution, q.shape[-1:])
            safe = np.where(resolution > 0, resolution, 1.0)
            q = np.where(resolution > 0, np.rint(q / safe) * safe, q)
        return np.concatenate([q, np.zeros_like(q)], axis=-1)


@dataclass(frozen=True)
class Drives:
    """How torques are made: a voltage, limited and in steps, times a torque per volt."""

    torque_per_volt: float | np.ndarray | None = None
    """[N·m/V or N/V], one number or (n,); None: ideal drives."""
    volts: float = 10.0
    """The range is ± this."""
    bits: int | None = 12
    """Of the digital-to-analog converter over the whole range; None: no steps."""

    def __post_init__(self):
        if self.torque_per_volt is not None:
            arguments.array("torque_per_volt", self.torque_per_volt, above=0.0)
        arguments.number("volts", self.volts, above=0.0)
        if self.bits is not None and arguments.whole("bits", self.bits, 1) > MOST_BITS:
            raise SimulationError(f"bits: expected at most {MOST_BITS}, got {self.bits}")

    @property
    def ideal(self) -> bool:
        return self.torque_per_volt is None

    def numbers(self, dof: int) -> dict[str, np.ndarray]:
        """The inputs of a kernel, by name."""
        if self.ideal:
            return {}
        found = {
            "torque_per_volt": arguments.per_joint("torque_per_volt", self.torque_per_volt, dof),
            "volts": np.array([self.volts]),
        }
        if self.bits is not None:
            found["volt_step"] = np.array([2 * self.volts / 2**self.bits])
        return found

    def driven(self, values: Values, tau: Sequence[Scalar]) -> list[Scalar]:
        """The torques that result from the wanted ones.

        Args:
            values: numbers of the drives by name.
            tau: wanted torques, n scalars.
        """
        if self.ideal:
            return list(tau)
        (most,) = values["volts"]
        found = []
        for wanted, gain in zip(tau, values["torque_per_volt"], strict=True):
            u = wanted / gain
            if self.bits is not None:
                (step,) = values["volt_step"]
                u = step * rint(u / step)
                top = most - step  # one step less on the positive side, as with any two's complement
            else:
                top = most
            u = where(u > top, top, where(u < -most, -most, u))
            found.append(gain * u)
        return found


@dataclass(frozen=True)
class Push:
    """An external force on the robot between two times, constant during a control period: give a torque or a wrench."""

    torque: float | np.ndarray | None = None
    """On the joints [N·m or N], one number or (n,)."""
    wrench: Sequence[float] | np.ndarray | None = None
    """(moment, force) [N·m, N], (6,), at the origin of ``frame`` in its axes."""
    frame: str | None = None
    """None: the only leaf."""
    begin: float = 0.0
    """[s]."""
    end: float = np.inf
    """[s]."""

    def __post_init__(self):
        if (self.torque is None) == (self.wrench is None):
            raise SimulationError("push: expected a torque or a wrench, one of them")
        if self.wrench is not None and arguments.array("push: wrench", self.wrench).shape != (6,):
            raise SimulationError(f"push: wrench: expected six numbers, got {self.wrench!r}")
        arguments.number("push: begin", self.begin, least=0.0)
        if self.end != np.inf:
            arguments.number("push: end", self.end, least=self.begin)

    def numbers(self, dof: int) -> dict[str, np.ndarray]:
        """The inputs of a kernel, by name."""
        found = {"push_begin": np.array([self.begin]), "push_end": np.array([self.end])}
        if self.torque is not None:
            return found | {"push_torque": arguments.per_joint("push_torque", self.torque, dof)}
        return found | {"push_wrench": np.asarray(self.wrench, dtype=float)}

    def torques(
        self, links: Mechanism, robot: Robot, values: Values, q: Sequence[Scalar], time: Scalar
    ) -> list[Scalar]:
        """The torques at a time [s].

        Args:
            links: the robot prepared for torques.
            robot: the robot.
            values: numbers of the push by name.
            q: positions, nq scalars.
            time: [s].
        """
        (begin,), (end,) = values["push_begin"], values["push_end"]
        if self.torque is not None:
            pushed = list(values["push_torque"])
        else:
            pushed = coordinates.torques_of_wrench(links, q, values["push_wrench"], *robot.locate(self.frame))
        return [where(time < begin, 0.0, where(time < end, t, 0.0)) for t in pushed]


@dataclass(frozen=True)
class Plant:
    """A robot to be controlled. ``breakaway``: static friction over Coulomb friction, from 1 on. ``push``: an external
    force.
    """

    robot: Robot
    friction: bool = True
    breakaway: float = 1.0
    sensors: Sensors = field(default_factory=Sensors)
    drives: Drives = field(default_factory=Drives)
    push: Push | None = None

    def __post_init__(self):
        object.__setattr__(self, "friction", flag("friction", self.friction))
        arguments.number("breakaway", self.breakaway, least=1.0)
        if self.push is not None:
            self.push.numbers(self.robot.dof)
            if self.push.wrench is not None:
                self.robot.locate(self.push.frame)


def _rounded(x: Scalar, resolution: Scalar) -> Scalar:
    safe = where(resolution > 0.0, resolution, 1.0)
    return where(resolution > 0.0, safe * rint(x / safe), x)
