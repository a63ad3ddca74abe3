"""The table of costs: what a motion is judged by. Over any scalar.

A least-squares cost is ½ Σ wᵢ rᵢ², given by its residuals r and weights w; its Hessian is taken as Σ wᵢ ∇rᵢ ∇rᵢᵀ (Gauss
and Newton), which is never negative. Costs of the running part are rates: they are multiplied by the time step and
summed. Targets and weights are run-time parameters: another value never compiles again.

Every cost has a name. Its parameters are ``NAME.target``, ``NAME.weight`` …; a terminal cost with the name of a running
one uses the same parameters, with its own values in the last row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms import dense, kinematics
from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.errors import LinkwiseError, TraceError
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.rotations import (
    matrix_of_quaternion,
    quaternion_of,
    rotation_vector,
    rotation_vector_slopes,
)
from linkwise.scalar import Scalar, where

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot


@dataclass(eq=False)
class Point:
    """One point of a trajectory as costs and limits see it; what several of them need is computed once."""

    dynamics: Dynamics
    x: Sequence[Scalar]
    u: Sequence[Scalar] | None
    """None at the end of the horizon."""
    values: Mapping[str, Sequence[Scalar]]
    """Parameters by name."""
    known_forces: Sequence[Scalar] | None = None
    """Of the contacts, where they are known already."""

    def __post_init__(self):
        self.q, self.qd, self.last = self.dynamics.split(self.x)
        self.last = self.last[: self.dynamics.remembered]

    @property
    def torques(self) -> Sequence[Scalar]:
        """Of the motors, for costs of the running part."""
        return () if self.u is None else self.u[: self.dynamics.motors]

    @property
    def tau(self) -> list[Scalar] | None:
        """Torques of all velocity coordinates."""
        return None if self.u is None else self.dynamics.torques(self.u)

    @once
    def acceleration(self) -> list[Scalar]:
        return self.dynamics.acceleration(self.q, self.qd, self.dynamics.torques(self.torques))

    @once
    def forces(self) -> Sequence[Scalar]:
        """Of the contacts, frame by frame."""
        if self.known_forces is not None:
            return self.known_forces
        return self.dynamics.touching(self.q, self.qd, self.dynamics.torques(self.torques))[1]

    def of_frame(self, name: str, frame: str | None, *rates: Sequence[Scalar]) -> Any:
        """``pose``, ``jacobian`` or ``velocity`` of a frame, see ``linkwise.algorithms.kinematics``."""
        known = self.__dict__.setdefault("_frames", {})
        key = (name, frame)
        if key not in known:
            given = dict(zip(("q", "qd"), (self.q, *rates), strict=False))
            known[key] = self.dynamics.frame_function(name, frame, **given)
        return known[key]

    def link_points(self, links: Sequence[tuple[int, Sequence[float]]]) -> list[list[Scalar]]:
        """Points of prepared links in the base frame [m]: (index of the link or −1, its coordinates there)."""
        from linkwise.algorithms import coupling
        from linkwise.spatial import Vector

        mechanism = self.dynamics.links
        if "_poses" not in self.__dict__:
            at = coupling.expanded(mechanism, self.q, positions=True)
            self.__dict__["_poses"] = kinematics.link_poses(mechanism, at)
        poses = self.__dict__["_poses"]
        return [
            list(point) if body < 0 else [*(poses[body].rotation @ Vector(*point) + poses[body].position)]
            for body, point in links
        ]


@dataclass(frozen=True)
class Terms:
    """Residuals and their weights; slopes by (δx, u), one row per residual, where they are known without the graph."""

    residuals: list[Scalar]
    weights: list[Scalar]
    slopes: Rows | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Cost:
    """The base of all costs."""

    name: str = ""
    """Of its parameters; by default that of its kind."""

    kind = "cost"
    running_only = False
    """Whether it needs torques, which the end of the horizon has not."""
    remembers = False
    """Whether the torques of the step before must be part of the state."""
    of_forces = False
    """Whether its residuals are functions of the forces of contacts alone."""
    from_zero = ("weight", "velocity_weight", "position_weight", "orientation_weight")
    """Those of its parameters that are not negative."""
    above_zero = ()
    """Those of its parameters that are positive."""

    @property
    def label(self) -> str:
        return self.name or self.kind

    def parameters(self, robot: Robot, dynamics: Dynamics, rows: int) -> dict[str, np.ndarray]:
        """Values by name (without the cost's own), (size,) or (rows, size).

        Args:
            robot: the robot.
            dynamics: its step.
            rows: stages of the table, the end included.
        """
        raise NotImplementedError

    def terms(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> Terms:
        """Residuals and weights, for a least-squares cost.

        Args:
            point: state and torques.
            values: the cost's parameters by name.
        """
        raise NotImplementedError

    def check(self, dynamics: Dynamics) -> None:
        """Refuse what does not fit the robot."""

    def key(self) -> tuple[Any, ...]:
        """What decides the code: everything but the values of parameters."""
        return (type(self).__name__, self.label)


@dataclass(frozen=True, eq=False)
class JointTracking(Cost):
    """½ Σ wᵢ (q ⊟ target)ᵢ², and the same for velocities: differences along the velocity coordinates."""

    target: Any = None
    """Positions [rad or m], (nq,) or (rows, nq); None: not counted."""
    weight: Any = 1.0
    """One number or (n,), from 0 on [1/rad² or 1/m²]."""
    velocity: Any = None
    """Velocities [rad/s or m/s], one number, (n,) or (rows, n); None: not counted."""
    velocity_weight: Any = 1.0
    """One number or (n,)."""

    kind = "joints"

    def check(self, dynamics: Dynamics) -> None:
        if self.target is None and self.velocity is None:
            raise ProblemError(f"{self.label}: expected a target, a velocity or both")

    def parameters(self, robot, dynamics, rows):
        found = {}
        if self.target is not None:
            found["target"] = arguments.table(f"{self.label}: target", self.target, robot.nq, rows)
            found["weight"] = arguments.weights(f"{self.label}: weight", self.weight, robot.dof, rows)
        if self.velocity is not None:
            name = f"{self.label}: velocity"
            found["velocity"] = arguments.table(name, self.velocity, robot.dof, rows)
            found["velocity_weight"] = arguments.weights(
                f"{name}_weight", self.velocity_weight, robot.dof, rows
            )
        return found

    def terms(self, point, values):
        dynamics, residuals, weights = point.dynamics, [], []
        slopes: Rows = []
        n, width = dynamics.dof, dynamics.nx + dynamics.nu
        if self.target is not None:
            from linkwise.algorithms import coordinates

            residuals += coordinates.difference(dynamics.links, values["target"], point.q)
            weights += values["weight"]
            slopes += _position_slopes(dynamics, values["target"], point.q, width)
        if self.velocity is not None:
            residuals += [v - w for v, w in zip(point.qd, values["velocity"], strict=True)]
            weights += values["velocity_weight"]
            slopes += _units(n, width, n)
        return Terms(residuals, weights, slopes)

    def key(self):
        return (*super().key(), self.target is None, self.velocity is None)


@dataclass(frozen=True, eq=False)
class TipTracking(Cost):
    """½ w |p − p*|² + ½ w |log(R*ᵀ R)|²: position and orientation of a frame."""

    target: Any
    """Pose (4, 4) or (rows, 4, 4), or a position (3,) or (rows, 3) [m] where orientation does not count."""
    position: Any = 1.0
    """Weight of the position, one number or (3,) [1/m²]; None: not counted."""
    orientation: Any = None
    """Weight of the orientation, one number or (3,) [1/rad²]; None: not counted."""
    frame: str | None = None
    """By default the only leaf."""

    kind = "tip"

    def check(self, dynamics: Dynamics) -> None:
        if self.position is None and self.orientation is None:
            raise ProblemError(f"{self.label}: expected a weight of position or orientation")
        dynamics.robot.locate(self.frame)

    def parameters(self, robot, dynamics, rows):
        found = {}
        place, turn = arguments.poses(
            f"{self.label}: target", self.target, rows, self.orientation is not None
        )
        if self.position is not None:
            found["position"] = place
            found["position_weight"] = arguments.weights(f"{self.label}: position", self.position, 3, rows)
        if self.orientation is not None:
            found["orientation"] = quaternion_of(turn)
            found["orientation_weight"] = arguments.weights(
                f"{self.label}: orientation", self.orientation, 3, rows
            )
        return found

    def terms(self, point, values):
        dynamics = point.dynamics
        T = point.of_frame("pose", self.frame)
        J = point.of_frame("jacobian", self.frame)
        residuals, weights, slopes = [], [], []
        pad: list[Scalar] = [0.0] * (dynamics.nx + dynamics.nu - dynamics.dof)
        if self.position is not None:
            residuals += [T[k][3] - values["position"][k] for k in range(3)]
            weights += values["position_weight"]
            slopes += [[*row, *pad] for row in J[3:]]
        if self.orientation is not None:
            R = [row[:3] for row in T[:3]]
            wanted = matrix_of_quaternion(values["orientation"])
            w = rotation_vector(dense.product(dense.transposed(wanted), R))
            residuals += w
            weights += values["orientation_weight"]
            own = dense.product(dense.transposed(R), J[:3])  # angular velocity in the frame's own axes
            slopes += [[*row, *pad] for row in dense.product(rotation_vector_slopes(w), own)]
        return Terms(residuals, weights, slopes)

    def key(self):
        return (*super().key(), self.position is None, self.orientation is None, self.frame)


@dataclass(frozen=True, eq=False)
class TipVelocity(Cost):
    """½ Σ wᵢ (v − v*)ᵢ²: angular and linear velocity of a frame's origin, in base axes."""

    target: Any = 0.0
    """(angular, linear) [rad/s, m/s], one number, (6,) or (rows, 6)."""
    weight: Any = 1.0
    """One number or (6,); zeros leave components out."""
    frame: str | None = None
    """By default the only leaf."""

    kind = "tip_velocity"

    def check(self, dynamics: Dynamics) -> None:
        dynamics.robot.locate(self.frame)

    def parameters(self, robot, dynamics, rows):
        return {
            "target": arguments.table(f"{self.label}: target", self.target, 6, rows),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, 6, rows),
        }

    def terms(self, point, values):
        velocity = point.of_frame("velocity", self.frame, point.qd)
        residuals = [v - w for v, w in zip(velocity, values["target"], strict=True)]
        return Terms(residuals, list(values["weight"]))

    def key(self):
        return (*super().key(), self.frame)


@dataclass(frozen=True, eq=False)
class Effort(Cost):
    """½ Σ wᵢ (u − target)ᵢ²: torques of the joints with motors."""

    weight: Any = 1.0
    """One number or (m,) [1/(N·m)² or 1/N²]."""
    target: Any = 0.0
    """Torques that cost nothing [N·m or N], one number, (m,) or (rows, m)."""

    kind = "effort"
    running_only = True

    def parameters(self, robot, dynamics, rows):
        return {
            "target": arguments.table(f"{self.label}: target", self.target, dynamics.motors, rows),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, dynamics.motors, rows),
        }

    def terms(self, point, values):
        dynamics = point.dynamics
        residuals = [u - t for u, t in zip(point.torques, values["target"], strict=True)]
        slopes = _units(dynamics.motors, dynamics.nx + dynamics.nu, dynamics.nx)
        return Terms(residuals, list(values["weight"]), slopes)


@dataclass(frozen=True, eq=False)
class ScaledEffort(Cost):
    """½ |S (u − target)|²: torques as what they cause, with a matrix S such as an inverse mass matrix."""

    scale: Any = 1.0
    """One number, (m,) for a diagonal matrix, or (m, m)."""
    target: Any = 0.0
    """Torques that cost nothing [N·m or N], one number, (m,) or (rows, m)."""

    kind = "effort"
    running_only = True

    def parameters(self, robot, dynamics, rows):
        m = dynamics.motors
        S = np.asarray(self.scale, dtype=float)
        if S.ndim < 2:
            S = np.diag(np.broadcast_to(S, (m,)))
        return {
            "target": arguments.table(f"{self.label}: target", self.target, m, rows),
            "scale": arguments.numbers(f"{self.label}: scale", S, (m, m)).reshape(m * m),
        }

    def terms(self, point, values):
        dynamics, m = point.dynamics, point.dynamics.motors
        away = [u - t for u, t in zip(point.torques, values["target"], strict=True)]
        S = [list(values["scale"][i * m : (i + 1) * m]) for i in range(m)]
        pad: list[Scalar] = [0.0] * dynamics.nx
        last: list[Scalar] = [0.0] * (dynamics.nu - m)
        return Terms([dense.dot(row, away) for row in S], [1.0] * m, [[*pad, *row, *last] for row in S])


@dataclass(frozen=True, eq=False)
class Smoothness(Cost):
    """½ Σ wᵢ q̈ᵢ², or ½ Σ wᵢ ((u − u⁻)/h)ᵢ² with the torques u⁻ of the step before, which become part of the state."""

    weight: Any = 1.0
    """One number, or (n,) for accelerations and (m,) for torques."""
    of: str = "acceleration"
    """"acceleration" or "torque"."""

    kind = "smoothness"
    running_only = True

    def check(self, dynamics: Dynamics) -> None:
        if self.of not in ("acceleration", "torque"):
            raise ProblemError(f"{self.label}: of: expected 'acceleration' or 'torque', got {self.of!r}")

    @property
    def remembers(self) -> bool:  # type: ignore[override]
        return self.of == "torque"

    def parameters(self, robot, dynamics, rows):
        size = dynamics.motors if self.remembers else robot.dof
        return {"weight": arguments.weights(f"{self.label}: weight", self.weight, size)}

    def terms(self, point, values):
        dynamics, weights = point.dynamics, list(values["weight"])
        nx, nu = dynamics.nx, dynamics.nu
        if not self.remembers and (dynamics.timed or dynamics.contacts or dynamics.through):
            return Terms(list(point.acceleration), weights)
        if not self.remembers:
            by_q, by_qd, by_u = dynamics.acceleration_slopes(point.x, point.torques)
            zeros: list[Scalar] = [0.0] * dynamics.remembered
            rows = [[*a, *b, *zeros, *c] for a, b, c in zip(by_q, by_qd, by_u, strict=True)]
            return Terms(list(point.acceleration), weights, rows)
        rate = 1.0 / dynamics.step
        residuals = [rate * (u - before) for u, before in zip(point.torques, point.last, strict=True)]
        if dynamics.timed:
            return Terms(residuals, weights)
        slopes: Rows = [
            [rate if k == nx + i else -rate if k == 2 * dynamics.dof + i else 0.0 for k in range(nx + nu)]
            for i in range(nu)
        ]
        return Terms(residuals, weights, slopes)

    def key(self):
        return (*super().key(), self.of)


@dataclass(frozen=True, eq=False)
class SphereAvoidance(Cost):
    """½ w Σ max(0, margin − d)²: signed distances d [m] between spheres on links and spheres in the room."""

    center: Any
    """Centre of the obstacle in the base frame [m], (3,) or (rows, 3)."""
    radius: float = 0.1
    """Of the obstacle [m]."""
    on: Sequence[tuple[str, Sequence[float], float]] = ()
    """Spheres of the robot: (link or frame, centre in it [m], radius [m]); by default one of 0.05 m at the tip."""
    margin: float = 0.05
    """Distance from which the cost begins [m]."""
    weight: float = 1.0
    """[1/m²]."""

    kind = "sphere"
    from_zero = ("radius", "margin", "weight")

    def spheres(self, robot: Robot) -> list[Ball | tuple[None, Sequence[float], float]]:
        return spheres_on(self.on)

    def check(self, dynamics: Dynamics) -> None:
        check_spheres(dynamics, self.label, self.on)

    def parameters(self, robot, dynamics, rows):
        numbers = [
            arguments.number(f"{self.label}: {k}", getattr(self, k), least=0.0) for k in ("radius", "margin")
        ]
        return {
            "center": arguments.table(f"{self.label}: center", self.center, 3, rows),
            "radius": np.array(numbers[:1]),
            "margin": np.array(numbers[1:]),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, 1),
        }

    def terms(self, point, values):
        (radius,), (margin,), (weight,) = values["radius"], values["margin"], values["weight"]
        residuals = []
        for place, own in places_of_spheres(point, spheres_on(self.on)):
            d = sphere_gap(place, values["center"], own + radius)
            residuals.append(where(d < margin, margin - d, 0.0 * d))
        return Terms(residuals, [weight] * len(residuals))

    def key(self):
        return (*super().key(), tuple((f, tuple(map(float, c)), float(r)) for f, c, r in self.on))


Ball = tuple[str, Sequence[float], float]


def spheres_on(given: Sequence[Ball]) -> list[Ball | tuple[None, Sequence[float], float]]:
    """Spheres of a robot; where none are given, one at its tip."""
    return [*given] or [(None, (0.0, 0.0, 0.0), 0.05)]


def check_spheres(dynamics: Dynamics, label: str, given: Sequence[Ball]) -> None:
    """Refuse spheres of a robot on frames that it does not have, and centres and radii that are not numbers."""
    for frame, center, radius in spheres_on(given):
        dynamics.robot.locate(frame)
        arguments.numbers(f"{label}: centre on {frame}", center, (3,))
        arguments.number(f"{label}: radius on {frame}", radius, least=0.0)


def places_of_spheres(
    point: Point, spheres: Sequence[tuple[str | None, Sequence[float], float]]
) -> list[tuple[list[Scalar], float]]:
    """(centre in the base frame, radius) of every sphere on a link."""
    mechanism, robot = point.dynamics.links, point.dynamics.robot
    where_from = []
    for frame, center, _ in spheres:
        body, pose = robot.locate(frame)
        at = pose if body < 0 else mechanism[body].file_frame @ pose
        where_from.append((body, (at.rotation @ np.asarray(center, float) + at.translation).tolist()))
    return list(zip(point.link_points(where_from), [radius for *_, radius in spheres], strict=True))


def sphere_gap(place: Sequence[Scalar], center: Sequence[Scalar], radii: Scalar) -> Scalar:
    """Signed distance of two spheres [m]."""
    from linkwise.collision.distance import sphere_distance

    return sphere_distance(tuple(place), tuple(center)) - radii  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Own(Cost):
    """A function of the user's own, ``function(q, qd, tau, **parameters)``, traced with arrays of symbols.

    It returns one scalar, whose exact Hessian is used, or with ``least_squares`` an array of residuals r for ½ Σ r².
    Methods of robots and the functions of ``linkwise`` (sin, sqrt, where …) may be used. At the end of the horizon
    ``tau`` is None.
    """

    function: Callable[..., Any]
    values: Mapping[str, Any] = field(default_factory=dict)
    """Its further arguments by name: numbers (size,) or (rows, size) that stay run-time parameters."""
    least_squares: bool = False
    """Whether it returns residuals."""

    kind = "own"
    from_zero = ()

    def __post_init__(self):
        object.__setattr__(self, "least_squares", flag("least_squares", self.least_squares))

    def check(self, dynamics: Dynamics) -> None:
        if not callable(self.function):
            raise ProblemError(f"{self.label}: expected a function, got {self.function!r:.80}")

    def parameters(self, robot, dynamics, rows):
        return {
            key: arguments.table(f"{self.label}: {key}", value, max(np.shape(value)[-1:] or (1,)), rows)
            for key, value in self.values.items()
        }

    def terms(self, point, values):
        residuals = [*np.atleast_1d(self._called(point, values)).ravel()]
        return Terms(residuals, [1.0] * len(residuals))

    def value(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> Scalar:
        """What the function returns: one scalar.

        Args:
            point: state and torques.
            values: its further arguments by name.
        """
        found = np.asarray(self._called(point, values), dtype=object)
        if found.size != 1:
            raise ProblemError(
                f"{self.label}: expected one scalar, got shape {found.shape}; residuals need least_squares=True"
            )
        value: Any = found.item()
        if not (isinstance(value, (int, float, np.number)) or hasattr(value, "graph")):
            raise TraceError(f"{self.label}: expected one scalar, got a {type(value).__name__}")
        return found.item()

    def _called(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> Any:
        given = {key: _array(value) for key, value in values.items()}
        tau = point.tau
        arrays = (_array(point.q), _array(point.qd), None if tau is None else _array(tau))
        try:
            return self.function(*arrays, **given)
        except LinkwiseError:
            raise
        except Exception as error:
            raise TraceError(f"{self.label} cannot be traced: {type(error).__name__}: {error}") from error

    def key(self):
        return (*super().key(), id(self.function), self.least_squares, tuple(self.values))


def cost_value(costs: Sequence[Cost], point: Point, scale: Any) -> Scalar:
    """The sum of some costs at a point, times a scale."""
    total: Scalar = 0.0
    for cost in costs:
        values = values_of(cost.label, point.values)
        if isinstance(cost, Own) and not cost.least_squares:
            total = total + cost.value(point, values)
        else:
            terms = cost.terms(point, values)
            for w, r in zip(terms.weights, terms.residuals, strict=True):
                total = total + (0.5 * w) * (r * r)
    return scale * total


def values_of(label: str, values: Mapping[str, Sequence[Scalar]]) -> dict[str, Sequence[Scalar]]:
    """Parameters of one cost or limit, by their names without its own."""
    start = f"{label}."
    return {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}


def _array(values: Sequence[Scalar]) -> np.ndarray:
    """Numbers, which methods of robots take, or symbols."""
    if all(isinstance(value, (int, float)) for value in values):
        return np.array(values, dtype=float)
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _position_slopes(dynamics: Dynamics, target: Sequence[Scalar], q: Sequence[Scalar], width: int) -> Rows:
    """Derivatives of q ⊟ target along the velocity coordinates."""
    from linkwise.algorithms import coordinates

    return [
        [*row, *[0.0] * (width - dynamics.dof)]
        for row in coordinates.difference_slopes(dynamics.links, target, q)
    ]


def _units(count: int, width: int, first: int) -> Rows:
    """Rows of an identity that begins at column ``first``."""
    return [[1.0 if k == first + i else 0.0 for k in range(width)] for i in range(count)]
