"""Which frames are held by the ground, and when: the schedule of contacts of a problem, and its equations. Over any
scalar.

A frame that is held has no velocity after the step: with w = q̇ + h q̈ its rows are

    J(q) w = 0                                   (``hold="velocity"``)

which stops a foot that comes down within that step, as an inelastic impact does, so a phase begins with its impact and
needs no stage of its own. The other rule is that of accelerations,

    J q̈ + J̇ q̇ + d J q̇ = 0                        (``hold="acceleration"``)

which leaves a foot the velocity with which it came down, up to the rate d at which it decays. Together with
M q̈ + b = S u + Jᵀ f they are one system of equations for accelerations and forces. Whether a frame is held is a number
of the stage, 1 or 0, so that all phases are one program: rows of frames that are not held are replaced by f = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.arguments.flags import flag
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_motion import FrameMotion, in_axes
from linkwise.scalar import Scalar
from linkwise.spatial import Vector

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot

ACTIVE = "contacts.active"
POINT, SURFACE = 3, 6
HOLDS = ("velocity", "acceleration")


@dataclass(frozen=True, eq=False)
class ContactSchedule:
    """Frames that the ground holds, stage by stage.

    Args:
        frames: links or named frames, whose origins are held.
        active: which are held in which stage: (horizon, number of frames) of 0 and 1, one row for all stages, or
            {frame: [(first, stop), …]} in stages; frames that are not named there are never held.
        surface: False: points, three components of force each; True: flat feet, which do not turn either, with three
            components of the moment about the frame's origin as well.
        hold: "velocity" or "acceleration", see the module.
        damping: rate at which the velocity of a held frame decays [1/s], for ``hold="acceleration"``.
    """

    frames: Sequence[str]
    active: Any = 1.0
    surface: bool = False
    hold: str = "velocity"
    damping: float = 50.0

    def __post_init__(self):
        if isinstance(self.frames, str) or not self.frames:
            raise ProblemError(f"contacts: frames: expected a list of names, got {self.frames!r:.80}")
        object.__setattr__(self, "frames", tuple(self.frames))
        object.__setattr__(self, "surface", flag("surface", self.surface))
        for name in self.frames:
            if self.frames.count(name) > 1:
                raise ProblemError(f"contacts: frames: {name!r} is named twice")
        if self.hold not in HOLDS:
            raise ProblemError(f"contacts: hold: expected one of {', '.join(HOLDS)}, got {self.hold!r}")
        arguments.number("contacts: damping", self.damping, least=0.0)

    @property
    def size(self) -> int:
        """Rows of one frame: 3 or 6."""
        return SURFACE if self.surface else POINT

    @property
    def rows(self) -> int:
        """Rows of all frames: numbers of their forces."""
        return self.size * len(self.frames)

    def check(self, robot: Robot) -> None:
        """Refuse frames that the robot does not have.

        Args:
            robot: the robot.
        """
        for name in self.frames:
            robot.locate(name)

    def table(self, horizon: int) -> np.ndarray:
        """``active`` as (horizon + 1, number of frames); the last row repeats the one before.

        Args:
            horizon: number of stages.
        """
        count = len(self.frames)
        if isinstance(self.active, Mapping):
            table = np.zeros((horizon, count))
            for name, spans in self.active.items():
                if name not in self.frames:
                    raise ProblemError(f"contacts: active: no frame {name!r} among {', '.join(self.frames)}")
                for first, stop in spans:
                    table[first:stop, self.frames.index(name)] = 1.0
        else:
            given = arguments.table("contacts: active", self.active, count, horizon)
            table = np.array(np.broadcast_to(given, (horizon, count)))
        if not np.isin(table, (0.0, 1.0)).all():
            raise ProblemError("contacts: active: expected 0 (not held) or 1 (held)")
        return np.vstack([table, table[-1:]])

    def key(self) -> tuple[Any, ...]:
        """What decides the code."""
        return (self.frames, self.surface, self.hold, float(self.damping))

    # -- equations

    def flags(self, active: Sequence[Scalar]) -> list[Scalar]:
        """Whether it is held, for every row.

        Args:
            active: of every frame, 1 or 0.
        """
        return [value for value in active for _ in range(self.size)]

    def jacobian(self, dynamics: Dynamics, q: Sequence[Scalar]) -> Rows:
        """J (rows, n): linear, then angular velocity of every frame; of points in base axes, of surfaces in the
        frame's own.

        Args:
            dynamics: of the problem.
            q: positions, nq scalars.
        """
        columns = []
        for name in self.frames:
            J = dynamics.frame_function("jacobian", name, q=q)
            columns.append([self._ordered(dynamics, name, q, column) for column in zip(*J, strict=True)])
        return [list(row) for own in columns for row in zip(*own, strict=True)]

    def _ordered(
        self, dynamics: Dynamics, name: str, q: Sequence[Scalar], six: Sequence[Scalar]
    ) -> list[Scalar]:
        """The rows of a frame of its (angular, linear) velocity or acceleration."""
        if not self.surface:
            return list(six[3:])
        T = dynamics.frame_function("pose", name, q=q)
        R = [row[:3] for row in T[:3]]
        return [dense.dot([row[k] for row in R], part) for part in (six[3:], six[:3]) for k in range(3)]

    def push_slopes(self, dynamics: Dynamics, q: Sequence[Scalar], force: Sequence[Scalar]) -> Rows | None:
        """Derivatives of Jᵀ f by q along the velocity coordinates at fixed f; None where coordinates are coupled.

        A column (a, l) of the Jacobian turns with a coordinate j that carries its axis, δ(a, l) = (aⱼ × a, aⱼ × l). A
        coordinate j that it carries moves the frame's origin by lⱼ, δl = a × lⱼ. Rows of surfaces turn with the frame.

        Args:
            dynamics: of the problem.
            q: positions, nq scalars.
            force: of all rows, at fixed numbers.
        """
        places = self._places(dynamics)
        if places is None:
            return None
        links, n = dynamics.links, dynamics.dof
        total: Rows = [[0.0] * n for _ in range(n)]
        for number, name in enumerate(self.frames):
            body, _ = dynamics.robot.locate(name)
            own = [i for i, k in enumerate(places) if body >= 0 and k in (body, *links.ancestors(body))]
            J = dynamics.frame_function("jacobian", name, q=q)
            angular, linear = ({i: Vector(*(row[i] for row in J[at : at + 3])) for i in own} for at in (0, 3))
            push, *moment = self._in_base_axes(dynamics, name, q, force[number * self.size :][: self.size])
            turned = {i: push.cross(angular[i]) for i in own}
            for i in own:
                for j in own:
                    carries = places[j] == places[i] or places[j] in links.ancestors(places[i])
                    value = linear[i].dot(turned[j]) if carries else linear[j].dot(turned[i])
                    if moment:
                        away = linear[i].dot(turned[j]) + angular[i].dot(moment[0].cross(angular[j]))
                        value = 0.0 if carries else value - away
                    total[i][j] = total[i][j] + value
        return total

    @staticmethod
    def _places(dynamics: Dynamics) -> list[int] | None:
        """The link that each velocity coordinate moves; None where coordinates are coupled."""
        links = dynamics.links
        places = [k for k, _ in links.coordinates()]
        several = any(len(link.axes) > 1 and not link.free for link in links)
        return None if several or len(places) != dynamics.dof else places

    def rate_slopes(
        self, dynamics: Dynamics, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]
    ) -> Rows | None:
        """Derivatives of ``rates`` by q along the velocity coordinates and by q̇, and by the duration of the step where
        it is chosen, see ``contact_motion``; None where coordinates are coupled.

        Args:
            dynamics: of the problem.
            q: positions, nq scalars.
            qd: velocities, n scalars.
            qdd: accelerations, n scalars.
        """
        places = self._places(dynamics)
        if places is None:
            return None
        links, n = dynamics.links, dynamics.dof
        found: Rows = []
        for name in self.frames:
            body, _ = dynamics.robot.locate(name)
            chain = [*reversed(links.ancestors(body)), body] if body >= 0 else []
            groups = [[i for i, k in enumerate(places) if k == link] for link in chain]
            J = dynamics.frame_function("jacobian", name, q=q)
            R = None
            if self.surface:
                R = [row[:3] for row in dynamics.frame_function("pose", name, q=q)[:3]]
            if self.hold == "velocity":
                found += self._velocity_slopes(dynamics, J, groups, R, qd, qdd)
            else:
                motion = FrameMotion(J, groups, qd, qdd, self.damping)
                found += [[*row, *[0.0] * dynamics.timed] for row in self._slopes(motion, n, R)]
        return found

    def _slopes(self, motion: FrameMotion, n: int, R: Rows | None) -> Rows:
        """Rows of one frame, accelerations."""
        rows: Rows = [[0.0] * (2 * n) for _ in range(self.size)]
        velocity, acceleration = motion.after[0]
        turning, turned = motion.before[-1][1], motion.before[-1][0]
        wholes = [acceleration + self.damping * velocity, turning + self.damping * turned]
        for c in motion.columns():
            by_q, by_qd = (c.acceleration, c.angular_acceleration), (c.by_rate, c.angular_by_rate)
            _set(rows, c.number, in_axes(R, wholes, by_q, c.angular))
            _set(rows, n + c.number, in_axes(R, wholes, by_qd))
        return rows

    def _velocity_slopes(
        self,
        dynamics: Dynamics,
        J: Rows,
        groups: Sequence[Sequence[int]],
        R: Rows | None,
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
    ) -> Rows:
        """Rows of one frame, velocities after the step."""
        n, h = dynamics.dof, dynamics.step
        after = [v + h * a for v, a in zip(qd, qdd, strict=True)]
        motion = FrameMotion(J, groups, after, [0.0] * n)
        inverse = 1.0 / h
        velocities = [inverse * motion.after[0][0], inverse * motion.before[-1][0]]
        rows: Rows = [[0.0] * (2 * n + dynamics.timed) for _ in range(self.size)]
        for c in motion.columns():
            turned = (inverse * c.velocity, inverse * c.turning)
            _set(rows, c.number, in_axes(R, velocities, turned, c.angular))
            _set(rows, n + c.number, in_axes(R, velocities, (inverse * c.linear, inverse * c.angular)))
        if dynamics.timed:
            pulled = FrameMotion(J, groups, qdd, [0.0] * n)
            changes = (pulled.after[0][0], pulled.before[-1][0])
            by_step = [inverse * (a - v) for a, v in zip(changes, velocities, strict=True)]
            _set(rows, 2 * n, in_axes(R, velocities, by_step))
        return rows

    def _in_base_axes(
        self, dynamics: Dynamics, name: str, q: Sequence[Scalar], force: Sequence[Scalar]
    ) -> list[Vector]:
        """Force, and moment of surfaces, of a frame in base axes."""
        parts = [force[k : k + 3] for k in range(0, self.size, 3)]
        if not self.surface:
            return [Vector(*part) for part in parts]
        R = [row[:3] for row in dynamics.frame_function("pose", name, q=q)[:3]]
        return [Vector(*(dense.dot(row, part) for row in R)) for part in parts]

    def rates(
        self, dynamics: Dynamics, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]
    ) -> list[Scalar]:
        """What is zero for every frame that is held: J q̈ + γ(q, q̇) [m/s² and rad/s²].

        Args:
            dynamics: of the problem.
            q: positions, nq scalars.
            qd: velocities, n scalars.
            qdd: accelerations, n scalars.
        """
        h, found = dynamics.step, []
        for name in self.frames:
            if self.hold == "velocity":
                after = [v + h * a for v, a in zip(qd, qdd, strict=True)]
                rates = [v * (1.0 / h) for v in dynamics.frame_function("velocity", name, q=q, qd=after)]
            else:
                speed = dynamics.frame_function("velocity", name, q=q, qd=qd)
                drift = dynamics.frame_function("jacobian_rate", name, q=q, qd=qd)
                own = dynamics.frame_function("velocity", name, q=q, qd=qdd)
                rates = [a + b + self.damping * v for a, b, v in zip(own, drift, speed, strict=True)]
            found += self._ordered(dynamics, name, q, rates)
        return found


def _set(rows: Rows, column: int, values: Sequence[Scalar]) -> None:
    for row, value in zip(rows, values, strict=False):
        row[column] = value
