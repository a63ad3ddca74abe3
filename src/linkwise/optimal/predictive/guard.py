"""What stands between a plan and the motors: limits of speed and position kept one sample ahead, and a stop law.

Torques of a plan are checked with the model before they are sent. They are changed as little as accelerations need so
that, one period later, every joint is below its speed limit and can still stop before the end of its range with half
of the torque that it has left. Where the torque limits do not allow that, all joints are braked,

    q̈ = −k q̇        with the largest k, up to ``STOP_RATE``, that the torque limits allow:

every joint gets slower, whatever the coupling between them is. The disturbance that ``watching`` estimates counts as a
part of the model. ``aimed`` is the other side: targets that the arm can follow, and weights for the state it is in.
Everything is arithmetic over scalars: Python, the real-time loop and C packages have the same rule and the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms import coordinates, dense, joint_terms
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control.bounds import or_zero
from linkwise.core.once import once
from linkwise.functions.table import mechanism_of
from linkwise.model.coordinates import velocity_coordinates
from linkwise.optimal.costs import Point
from linkwise.optimal.limits import StateLimits
from linkwise.optimal.predictive import braking, progress, watching
from linkwise.optimal.rotations import (
    matrix_of_quaternion,
    product_of_quaternions,
    quaternion_of_matrix,
    rotation_vector,
)
from linkwise.scalar import Scalar, clipped, cos, maximum, minimum, sin, sqrt, where
from linkwise.simulate.friction import dry_friction

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.model.mechanism import Mechanism
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot

AS_PLANNED, LIMITED, BRAKED = 0.0, 1.0, 2.0
"""What was done with the torques of a plan."""
FAR = 1e9
"""In place of limits that are infinite."""
SHORTEST = 5e-3
"""[s] ahead that are checked at least: a sample that comes late does no harm."""
REVERSAL = 0.02
"""[rad/s or m/s] over which the compensation of dry friction changes its direction."""
INTENDED = 0.05
"""[s] of acceleration that say where a joint at rest is meant to go."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Limits of positions [rad or m] and speeds, each (n,); infinite where there are none."""

    lower: np.ndarray
    upper: np.ndarray
    speed: np.ndarray

    @classmethod
    def of(cls, robot: Robot, position: Any = True, velocity: Any = True) -> Bounds:
        """Those of a robot, or others.

        Args:
            robot: the robot, of joints with one coordinate each.
            position: True: the robot's; False: none; or (lower, upper), each one number or (n,).
            velocity: True: the robot's; False: none; or one number or (n,).
        """
        limits = StateLimits(position=position, velocity=velocity)
        n = robot.dof
        pair = limits.positions(robot)
        lower, upper = (np.full(n, -np.inf), np.full(n, np.inf)) if pair is None else map(np.array, pair)
        speeds = limits.velocities(robot)
        return cls(lower, upper, np.full(n, np.inf) if speeds is None else np.array(speeds[1]))

    def numbers(self) -> dict[str, np.ndarray]:
        """Inputs of the kernels by name; finite."""
        return {
            "lowest": np.maximum(self.lower, -FAR),
            "highest": np.minimum(self.upper, FAR),
            "speed": np.minimum(self.speed, FAR),
        }


@dataclass(frozen=True)
class Guarded:
    """The result for one sample."""

    tau: list[Scalar]
    """Torques of the motors, finite and within their limits [N·m or N]."""
    acceleration: list[Scalar]
    """That they should cause, for ``watching``."""
    action: Scalar
    """One of the codes."""


@dataclass(frozen=True, eq=False)
class Guard:
    """The functions for one robot, and their kernels."""

    dynamics: Dynamics
    robot: Robot
    """With its own friction, which plans smooth."""
    dtype: str = "float64"
    frame: str | None = None
    """Whose pose is the target, where one is."""
    of_pose: bool = False
    """Whether the target is a pose."""

    @property
    def whole(self) -> bool:
        """Whether every acceleration can be commanded: a motor for each coordinate and no constraints."""
        return self.dynamics.nu == self.dynamics.dof and not self.dynamics.robot.constraints

    @once
    def links(self) -> Mechanism:
        """Those of the robot with its own friction."""
        return mechanism_of(self.robot, base_parameters=True)

    @once
    def revolute(self) -> list[bool]:
        """Whether a coordinate is an angle."""
        return [coordinate.revolute for coordinate in velocity_coordinates(self.dynamics.robot)]

    @once
    def rubbing(self) -> list[float]:
        """Accelerations that dry friction of a coordinate alone causes in the neutral position, 0 without any."""
        d, n = self.dynamics, self.dynamics.dof
        limits = coordinates.dry_friction_limits(self.links, [1.0] * n, [0.0] * n)
        inertia = np.diag(np.asarray(d.robot.mass_matrix(d.robot.neutral)))
        damping = np.array(d.damping) if d.damping else np.zeros(n)
        inertia = inertia + (SHORTEST - d.step) * damping
        return [max(map(float, pair)) / float(m) for pair, m in zip(limits, inertia, strict=True)]  # type: ignore[arg-type]

    # -- over scalars -------------------------------------------------------------------------------------------------

    def model(
        self, q: Sequence[Scalar], qd: Sequence[Scalar], period: Scalar
    ) -> tuple[Rows, Any, list[Scalar]]:
        """(M, its solver, torques without acceleration); M has the stiff viscous friction of the period, see
        ``dynamics.implicitly_damped``, in place of that of a step of plans."""
        links, n = self.dynamics.links, self.dynamics.dof
        still: list[Scalar] = [0.0] * n
        M, _ = coordinates.coefficients(links, q)
        for i, damping in enumerate(self.dynamics.damping):
            if damping:
                M[i][i] = M[i][i] + (period - self.dynamics.step) * damping
        friction = self.dynamics.friction and not joint_terms.has_load_friction(links)
        bias = coordinates.inverse_dynamics(links, q, qd, still, friction=friction)
        L, inverse = dense.factorised(M)
        return M, lambda right: dense.solved(L, inverse, right), bias

    def guarded(
        self,
        state: Sequence[Scalar],
        modelled: Sequence[Scalar],
        torque: Sequence[Scalar],
        disturbance: Sequence[Scalar],
        stop: Scalar,
        period: Scalar,
        low: Sequence[Scalar],
        high: Sequence[Scalar],
        lowest: Sequence[Scalar],
        highest: Sequence[Scalar],
        speed: Sequence[Scalar],
    ) -> Guarded:
        """Torques for one sample.

        Args:
            state: positions and velocities, 2n scalars.
            modelled: those of ``watching``, for what the torques cause.
            torque: of the plan, for the model without disturbance, m scalars.
            disturbance: accelerations that the model misses.
            stop: 1: brake, whatever the plan says.
            period: until the next torques [s].
            low: lower limits of the torques.
            high: upper limits.
            lowest: lower limits of positions.
            highest: upper limits of positions.
            speed: limits of speed.
        """
        d = self.dynamics
        n = d.dof
        q, v = list(state[:n]), list(state[n:])
        h = clipped(period, SHORTEST, watching.LONGEST)
        M, solve, bias = self.model(q, v, h)
        missed = [dense.dot(row, disturbance) for row in M]
        # limits of the torques of the model without disturbance, of all coordinates
        least: list[Scalar] = [0.0] * n
        most: list[Scalar] = [0.0] * n
        for k, a, b in zip(d.driven, low, high, strict=True):
            least[k], most[k] = a + missed[k], b + missed[k]
        wanted = braking.within(d.torques([or_zero(t) for t in torque]), least, most)
        if not self.whole:
            k = braking.stop_rate(M, bias, v, least, most, h, d.driven)
            slower = [b - k * dense.dot(row, v) for b, row in zip(bias, M, strict=True)]
            slower = braking.within(slower, least, most)
            sent = [where(stop > 0.5, b, w) for b, w in zip(slower, wanted, strict=True)]
            action: Scalar = where(stop > 0.5, BRAKED, AS_PLANNED)
        else:
            rubbing = Rubbing(self, M, solve, q, v, bias, h)
            sent, action = self._kept(rubbing, wanted, stop, least, most, (lowest, highest, speed))
        tau = [
            or_zero(clipped(sent[k] - missed[k], a, b)) for k, a, b in zip(d.driven, low, high, strict=True)
        ]
        caused = self._caused(modelled, tau, disturbance, h)
        return Guarded(tau, [or_zero(a) for a in caused], action)

    def _caused(
        self, modelled: Sequence[Scalar], tau: Sequence[Scalar], disturbance: Sequence[Scalar], h: Scalar
    ) -> list[Scalar]:
        """Accelerations by torques of the motors and the disturbance."""
        d = self.dynamics
        q, v = list(modelled[: d.dof]), list(modelled[d.dof :])
        M, solve, bias = self.model(q, v, h)
        sent = [t + dense.dot(row, disturbance) for t, row in zip(d.torques(tau), M, strict=True)]
        if not self.whole:
            return d.acceleration(q, v, sent)
        return Rubbing(self, M, solve, q, v, bias, h).accelerations(sent)

    def _kept(
        self,
        rubbing: Rubbing,
        wanted: Sequence[Scalar],
        stop: Scalar,
        least: Sequence[Scalar],
        most: Sequence[Scalar],
        limits: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]],
    ) -> tuple[list[Scalar], Scalar]:
        """Torques near the wanted ones that keep limits one sample ahead, else those of braking; and what was done.

        Args:
            rubbing: the model in this state.
            wanted: torques of the plan, of all coordinates.
            stop: 1: brake.
            least: lower limits of the torques.
            most: upper limits.
            limits: lower and upper ones of positions, those of speed.
        """
        M, v, bias, h = rubbing.M, rubbing.v, rubbing.smooth_bias, rubbing.h
        planned = rubbing.solve([t - b for t, b in zip(wanted, bias, strict=True)])
        k = braking.stop_rate(M, rubbing.bias, v, least, most, h, self.dynamics.driven)
        planned = [where(stop > 0.5, -k * x, a) for x, a in zip(v, planned, strict=True)]
        reserve = [maximum(0.0 * b, minimum(t - b, b - s)) for s, t, b in zip(least, most, bias, strict=True)]
        ahead = [
            braking.speeds_that_stop(x, brake, h, *of_joint)
            for x, brake, *of_joint in zip(rubbing.q, braking.decelerations(M, reserve), *limits, strict=True)
        ]
        rate = braking.APPROACH / h
        slowest = [rate * (a - x) for (a, _), x in zip(ahead, v, strict=True)]
        fastest = [rate * (b - x) for (_, b), x in zip(ahead, v, strict=True)]
        changed = [clipped(a, s, f) for a, s, f in zip(planned, slowest, fastest, strict=True)]
        safe = [clipped(0.0 * h, s, f) for s, f in zip(slowest, fastest, strict=True)]
        safe = [where(stop > 0.5, c, a) for c, a in zip(changed, safe, strict=True)]
        some: Scalar = where(stop > 0.5, 1.0, 0.0 * h)
        for a, c in zip(planned, changed, strict=True):
            some = where(abs(a - c) > 0.0, 1.0, some)
        braked = braking.nearest(M, rubbing.bias, safe, least, most)
        asked = rubbing.torques(changed, wanted, some)
        part = braking.part_towards(braked, asked, least, most)
        sent = [where(part < 1.0, a + part * (b - a), b) for a, b in zip(braked, asked, strict=True)]
        brake = braking.missed(ahead, v, rubbing.accelerations(sent), h, limits[2])
        sent = [where(brake > 0.5, a, b) for a, b in zip(braked, sent, strict=True)]
        some = where(part < 1.0, 1.0, some)
        brake = where(stop > 0.5, 1.0, brake)
        action = where(brake > 0.5, BRAKED, where(some > 0.5, LIMITED, AS_PLANNED))
        return braking.within(sent, least, most), action

    def aimed(
        self,
        state: Sequence[Scalar],
        target: Sequence[Scalar],
        disturbance: Sequence[Scalar],
        reach: Sequence[Scalar],
        low: Sequence[Scalar],
        high: Sequence[Scalar],
        lowest: Sequence[Scalar],
        highest: Sequence[Scalar],
        frequency: Scalar,
    ) -> dict[str, list[Scalar]]:
        """Numbers of the standard problem for the state that the arm is in.

        The joints' target is taken into their range, and at most ``reach`` away from where they are. Torques count
        from those that hold the arm, as accelerations: their scale is M⁻¹/ω². Limits of torques leave room for the
        disturbance.

        Args:
            state: positions and velocities, 2n scalars.
            target: of the joints, n scalars.
            disturbance: accelerations that the model misses.
            reach: largest distance of the target that a plan sees, n scalars.
            low: lower limits of the torques.
            high: upper limits.
            lowest: lower limits of positions.
            highest: upper limits of positions.
            frequency: ω [rad/s].
        """
        d = self.dynamics
        n = d.dof
        q, still = list(state[:n]), [0.0] * n
        M, solve, hold = self.model(q, still, SHORTEST)
        missed = [dense.dot(row, disturbance) for row in M]
        near = [
            clipped(clipped(t, a, b), x - r, x + r)
            for t, a, b, x, r in zip(target, lowest, highest, q, reach, strict=True)
        ]
        scale = 1.0 / (frequency * frequency)
        units = [[1.0 if i == k else 0.0 for i in range(n)] for k in d.driven]
        columns = [solve(unit) for unit in units]
        least = [a + missed[k] for k, a in zip(d.driven, low, strict=True)]
        most = [b + missed[k] for k, b in zip(d.driven, high, strict=True)]
        return {
            "aimed_at": near,
            "hold": [clipped(hold[k], a, b) for k, a, b in zip(d.driven, least, most, strict=True)],
            "scale": [scale * column[k] for k in d.driven for column in columns],
            "least": least,
            "most": most,
        }

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> bytes:
        d = self.dynamics
        parts = (name, self.robot.content(), d.robot.content(), d.friction, d.driven, d.damping, d.step)
        return repr(parts).encode()

    @once
    def watch(self) -> Kernel:
        """(q, qd, acceleration, period, speed, memory) -> ``watching.Watched``."""
        n, size = self.dynamics.dof, watching.Memory(self.dynamics.dof).size
        sizes = {"q": n, "qd": n, "acceleration": n, "period": 1, "speed": n, "memory": size}
        shapes = {"believed": (2 * n,), "modelled": (2 * n,), "disturbance": (n,)}
        shapes |= {"verdict": (4,), "next_memory": (size,)}

        def function(q, qd, acceleration, period, speed, memory):
            found = watching.watched(
                q, qd, acceleration, period[0], speed, self.revolute, self.rubbing, memory
            )
            return {
                "believed": found.state,
                "modelled": found.modelled,
                "disturbance": found.disturbance,
                "verdict": [found.fault, found.joint, found.doubted, found.known],
                "next_memory": found.memory,
            }

        return traced_kernel("watch", function, sizes, shapes, self.dtype, self._key("watch"))

    @once
    def command(self) -> Kernel:
        """(believed, torque, …) -> ``Guarded``."""
        n, m = self.dynamics.dof, self.dynamics.nu
        sizes = {
            "believed": 2 * n,
            "modelled": 2 * n,
            "torque": m,
            "disturbance": n,
            "stop": 1,
            "period": 1,
            "low": m,
            "high": m,
        }
        sizes |= {"lowest": n, "highest": n, "speed": n}
        shapes = {"tau": (m,), "acceleration": (n,), "action": (1,)}

        def function(
            believed, modelled, torque, disturbance, stop, period, low, high, lowest, highest, speed
        ):
            found = self.guarded(
                believed, modelled, torque, disturbance, stop[0], period[0], low, high, lowest, highest, speed
            )
            return {
                "tau": found.tau,
                "acceleration": found.acceleration,
                "action": [found.action],
            }

        return traced_kernel("guard", function, sizes, shapes, self.dtype, self._key("guard"))

    @once
    def aim(self) -> Kernel:
        """(believed, target, …) -> near, hold, scale, least, most of ``aimed``."""
        n, m = self.dynamics.dof, self.dynamics.nu
        sizes = {
            "believed": 2 * n,
            "target": n,
            "disturbance": n,
            "reach": n,
            "low": m,
            "high": m,
            "lowest": n,
        }
        sizes |= {"highest": n, "frequency": 1}
        shapes = {"aimed_at": (n,), "hold": (m,), "scale": (m * m,), "least": (m,), "most": (m,)}

        def function(believed, target, disturbance, reach, low, high, lowest, highest, frequency):
            return self.aimed(believed, target, disturbance, reach, low, high, lowest, highest, frequency[0])

        return traced_kernel("aim", function, sizes, shapes, self.dtype, self._key("aim"))

    @once
    def progress(self) -> Kernel:
        """Whether the target is approached: (believed, target or distance, …, memory) -> ``progress.judged``."""
        n, size = self.dynamics.dof, len(progress.MEMORY)
        sizes = {"believed": 2 * n, "period": 1, "speed": n}
        sizes |= {"distance": 2} if self.of_pose else {"target": n, "lowest": n, "highest": n}
        shapes = {"progress": (3,), "next_memory": (size,)}

        def function(believed, period, speed, **others):
            if self.of_pose:
                away = list(others["distance"])
            else:
                ends = zip(others["target"], others["lowest"], others["highest"], believed[:n], strict=True)
                away = [abs(clipped(t, low, high) - q) for t, low, high, q in ends]
            fast = [
                abs(v) / minimum(s, watching.USUAL_SPEED) for v, s in zip(believed[n:], speed, strict=True)
            ]
            verdict, memory = progress.judged(
                progress.largest(away), progress.largest(fast), period[0], others["memory"]
            )
            return {"progress": verdict, "next_memory": memory}

        return traced_kernel(
            "progress",
            function,
            sizes | {"memory": size},
            shapes,
            self.dtype,
            self._key(f"progress {self.of_pose}"),
        )

    @once
    def tip(self) -> Kernel:
        """(believed, position, orientation, reach [m, rad]) -> a pose on the way to a target that may be far away."""
        n = self.dynamics.dof
        sizes = {"believed": 2 * n, "position": 3, "orientation": 4, "reach": 2}
        shapes = {"near_position": (3,), "near_orientation": (4,), "distance": (2,)}

        def function(believed, position, orientation, reach):
            return pose_on_the_way(self.dynamics, self.frame, believed[:n], position, orientation, reach)

        return traced_kernel("aim_tip", function, sizes, shapes, self.dtype, self._key(f"tip {self.frame}"))


@dataclass(frozen=True, eq=False)
class Rubbing:
    """Dry friction of one state: plans have a smooth law in its place, which does not hold joints at rest."""

    guard: Guard
    M: Rows
    solve: Any
    q: Sequence[Scalar]
    v: Sequence[Scalar]
    smooth_bias: list[Scalar]
    """Torques without acceleration by the model of the plan."""
    h: Scalar

    @property
    def dry(self) -> bool:
        """Whether there is dry friction that the rule of ``simulate`` is for."""
        links = self.guard.links
        return (
            self.guard.dynamics.friction
            and joint_terms.has_dry_friction(links)
            and not joint_terms.has_load_friction(links)
            and not links.coupled
        )

    @once
    def bias(self) -> list[Scalar]:
        """Torques without acceleration and without dry friction."""
        if not self.dry:
            return self.smooth_bias
        links, still = self.guard.links, [0.0] * len(self.v)
        own = coordinates.inverse_dynamics(links, self.q, self.v, still, friction=False)
        return [a + b for a, b in zip(own, coordinates.smooth_friction(links, self.q, self.v), strict=True)]

    def torques(
        self, accelerations: Sequence[Scalar], wanted: Sequence[Scalar], some: Scalar
    ) -> list[Scalar]:
        """Torques for accelerations, with what overcomes dry friction; else the plan's where none differs."""
        if not self.dry:
            nearest = [dense.dot(row, accelerations) + b for row, b in zip(self.M, self.bias, strict=True)]
            return [where(some > 0.5, a, b) for a, b in zip(nearest, wanted, strict=True)]
        links, n = self.guard.links, len(self.v)
        limits = coordinates.dry_friction_limits(links, [1.0] * n, [0.0] * n)
        found: list[Scalar] = []
        for row, b, v, a, (forward, backward) in zip(
            self.M, self.bias, self.v, accelerations, limits, strict=True
        ):
            part = clipped((1.0 / REVERSAL) * (v + INTENDED * a), -1.0, 1.0)
            found.append(dense.dot(row, accelerations) + b + part * where(part > 0.0, forward, backward))
        return found

    def accelerations(self, torques: Sequence[Scalar]) -> list[Scalar]:
        """What torques cause, on average over the period."""
        free = self.solve([t - b for t, b in zip(torques, self.bias, strict=True)])
        if not self.dry:
            return free
        links, h = self.guard.links, self.h
        speeds = [v + h * a for v, a in zip(self.v, free, strict=True)]
        friction = dry_friction(links, self.M, self.v, speeds, h, 1.0)
        slowed = self.solve([a + b for a, b in zip(friction.torques, friction.gradual, strict=True)])
        return [
            where(slides > 0.5, a + b, -v / h)
            for slides, a, b, v in zip(friction.sliding, free, slowed, self.v, strict=True)
        ]


def pose_on_the_way(
    dynamics: Dynamics,
    frame: str | None,
    q: Sequence[Scalar],
    position: Sequence[Scalar],
    orientation: Sequence[Scalar],
    reach: Sequence[Scalar],
) -> dict[str, list[Scalar]]:
    """The pose on the straight line from a frame to its target that is at most a distance and an angle away.

    Args:
        dynamics: of the robot.
        frame: the frame; None: the only leaf.
        q: positions of the joints.
        position: of the target [m], 3 scalars.
        orientation: of the target, a quaternion (x, y, z, w).
        reach: largest distance [m] and angle [rad].
    """
    T = Point(dynamics, [*q, *[0.0] * dynamics.dof], None, {}).of_frame("pose", frame)
    R = [row[:3] for row in T[:3]]
    away = [a - T[k][3] for k, a in enumerate(position)]
    distance = sqrt(dense.dot(away, away))
    part = where(distance > reach[0], reach[0] / where(distance > reach[0], distance, 1.0), 1.0)
    turn = rotation_vector(dense.product(dense.transposed(R), matrix_of_quaternion(orientation)))
    angle = sqrt(dense.dot(turn, turn))
    far = angle > reach[1]
    half = 0.5 * where(far, reach[1], 0.0)
    axis = [x / where(far, angle, 1.0) for x in turn]
    step = [sin(half) * x for x in axis]
    turned = product_of_quaternions(quaternion_of_matrix(R), [*step, cos(half)])
    return {
        "near_position": [T[k][3] + part * a for k, a in enumerate(away)],
        "near_orientation": [where(far, a, b) for a, b in zip(turned, orientation, strict=True)],
        "distance": [distance, angle],
    }


def finite_torques(limits: np.ndarray) -> np.ndarray:
    """Torque limits with numbers in place of infinities."""
    return np.clip(limits, -FAR, FAR)
