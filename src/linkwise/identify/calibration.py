"""Geometric calibration: kinematic parameters of a robot from measured poses of its tool.

Errors of joint origins, joint zeros, the pose of the base in the frame of the measuring device and the pose of the
target in the tool's frame are estimated together by Gauss–Newton on measured minus computed poses. Not all of them can
be told apart (a shift along a joint's axis is one along the next parallel axis as well): those that others can cause
are found by singular values and left out. The first error model of this kind is that of S. Hayati, "Robot arm geometric
link parameter estimation", 1983.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import UnknownNameError, suggest
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.kinematic_chain import (
    GeometricParameter,
    KinematicChain,
    geometric_parameters,
    path_to,
)
from linkwise.model.coordinates import check_one_axis
from linkwise.motion.kinematics.rotations import rotation_vector
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

GROUPS = ("base", "tool", "offsets", "origins")
SEEN = 1e-4  # smallest singular value of unit columns at which a parameter is told apart from those before it
ITERATIONS = 50
ENOUGH = 1e-10  # [m or rad] steps at which the iteration ends
RIGID = 1e-6  # error of a rotation matrix
OUTLYING = 5.0  # standard deviations from which a measurement is named
EXACT = 1e-12  # [m or rad] residuals weigh no more below this


@dataclass(frozen=True)
class PoseErrors:
    """Distances [m] and angles [rad] between measured and computed poses, (N,); angles are None without measured
    orientations."""

    distances: np.ndarray
    angles: np.ndarray | None

    @property
    def distance(self) -> float:
        """Root mean square [m]."""
        return _rms(self.distances)

    @property
    def angle(self) -> float | None:
        """Root mean square [rad]."""
        return None if self.angles is None else _rms(self.angles)


@dataclass(frozen=True, repr=False)
class Calibration(Summarised):
    """A calibrated robot.

    ``base`` (4, 4) is the robot's base in the frame of the measuring device, ``tool`` (4, 4) the measured target in
    ``frame``: a measured pose is base · robot.pose(q, frame) · tool. ``estimate`` are the errors that were found, with
    standard deviations; ``left_out`` are those that the others can cause as well. ``before`` and ``after`` judge the
    robot as given (with the best base and tool) and the calibrated one on ``held_out`` measurements.
    """

    given: Robot
    robot: Robot
    frame: str
    base: np.ndarray
    tool: np.ndarray
    estimate: Estimate
    units: tuple[str, ...]
    left_out: tuple[str, ...]
    before: PoseErrors
    after: PoseErrors
    fitted: PoseErrors
    """Of the measurements that were fitted."""
    held_out: int
    iterations: int
    outliers: tuple[int, ...] = ()
    """Numbers, from 0, of measurements that are far from all others."""

    def poses(self, q: Any) -> np.ndarray:
        """Computed poses (..., 4, 4) of the target in the frame of the device, for positions q (..., n)."""
        return self.base @ self.robot.pose(q, frame=self.frame) @ self.tool

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated robot as .urdf or .toml."""
        from linkwise.robot.loading import save

        save(self.robot, path)

    def _summary(self) -> Summary:
        lower, upper = self.estimate.interval()
        rows = list(
            zip(
                self.estimate.labels,
                self.estimate.x,
                self.estimate.deviations,
                lower,
                upper,
                self.units,
                strict=True,
            )
        )
        columns = ("parameter", ">value", ">standard deviation", ">from", ">to", "unit")
        return Summary(f"Calibration of {self.given.name} at {self.frame}", columns, rows, self.words())

    def words(self) -> list[str]:
        """What the calibration reached, in sentences."""
        what = f"{self.held_out} held-out measurements" if self.held_out else "the fitted measurements"
        said = [
            f"{what}: {_error(self.before)} before, {_error(self.after)} after; fitted: {_error(self.fitted)} (rms)"
        ]
        if self.left_out:
            said.append(f"cannot be told apart from the others, left out: {', '.join(self.left_out)}")
        if self.outliers:
            rows = ", ".join(str(k + 1) for k in self.outliers[:10])
            said.append(f"measurements that are far from all others: {rows} (counted from 1)")
        return said


def calibrate(
    robot: Robot,
    q: Any,
    poses: Any,
    *,
    frame: str | None = None,
    parameters: Sequence[str] = GROUPS,
    base: Any = None,
    tool: Any = None,
    validation: float | tuple[Any, Any] = 0.25,
    iterations: int = ITERATIONS,
) -> Calibration:
    """Calibrate the geometry of a robot.

    Args:
        robot: the robot as its file says.
        q: joint positions as the controller shows them [rad or m], (N, n).
        poses: measured poses of the tool (N, 4, 4), or positions alone [m], (N, 3).
        frame: whose pose was measured; by default the only leaf.
        parameters: what is looked for: "base" (the robot in the frame of the device), "tool" (the target in the
            frame), "offsets" (zeros of the joints), "origins" (shifts and turns of joint origins).
        base: rough pose of the robot's base in the frame of the device (4, 4); by default found from the data where
            "base" is among the parameters, else the unit matrix.
        tool: rough pose (4, 4) or position (3,) of the target in the frame; by default the frame itself.
        validation: share of the measurements that is held out and only judged, evenly spread, or (q, poses) of
            others; 0: none.
        iterations: most iterations.

    Returns:
        The calibrated robot with standard deviations, and its accuracy on held-out measurements.

    Raises:
        IdentificationError: measurements are too few or no poses, or the iteration does not converge.
    """
    check_one_axis(robot, "calibration")
    name = robot.default_frame() if frame is None else frame
    wanted = _parameters_of_groups(robot, parameters, name)
    measured = _Measured.of(robot, q, poses, "")
    fitted, held_out = _fitted_and_judged(robot, measured, validation)
    start = _start(robot, fitted, name, base, tool, "base" in parameters)
    # base and tool first: a target on the axis of the last joint, as a frame often is, shows less than the real one
    simple, _ = _identifiable(start, fitted, [each for each in wanted if each.group in ("base", "tool")])
    placed = _fit(start, start, fitted, simple, iterations)[0] if simple else start
    kept, left_out = _identifiable(placed, fitted, wanted)
    chain, estimate, count = _fit(start, placed, fitted, kept, iterations)
    judged = held_out if held_out is not None else fitted
    calibrated = chain.robot(robot)
    return Calibration(
        robot,
        calibrated,
        name,
        chain.elements[0],
        chain.elements[-1],
        estimate,
        tuple(each.unit for each in kept),
        left_out,
        _errors(judged, _computed_poses(robot, placed, judged, name)),
        _errors(judged, _computed_poses(calibrated, chain, judged, name)),
        _errors(fitted, chain.poses()),
        0 if held_out is None else len(held_out.q),
        count,
        _outliers(fitted, chain),
    )


# -- measurements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Measured:
    q: np.ndarray
    positions: np.ndarray
    """(N, 3)"""
    rotations: np.ndarray | None
    """(N, 3, 3)"""
    rows: np.ndarray
    """Their numbers in what was given."""

    @classmethod
    def of(cls, robot: Robot, q: Any, poses: Any, what: str) -> _Measured:
        try:
            q, T = np.asarray(q, dtype=float), np.asarray(poses, dtype=float)
        except (TypeError, ValueError):
            raise IdentificationError(f"{what}q and poses: expected numbers") from None
        if q.ndim != 2 or q.shape[1] != robot.dof:
            raise IdentificationError(f"{what}q: expected shape (N, {robot.dof}), got {q.shape}")
        if T.shape not in ((len(q), 4, 4), (len(q), 3)):
            raise IdentificationError(
                f"{what}poses: expected shape ({len(q)}, 4, 4), or positions ({len(q)}, 3), got {T.shape}"
            )
        bad = ~(np.isfinite(q).all(axis=1) & np.isfinite(T.reshape(len(q), -1)).all(axis=1))
        if bad.any():
            raise IdentificationError(f"{what}measurement {int(np.argmax(bad)) + 1} is not finite")
        rows = np.arange(len(q))
        if T.ndim == 2:
            return cls(q, T, None, rows)
        R = T[:, :3, :3]
        off = np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max(axis=(1, 2)) + np.abs(np.linalg.det(R) - 1.0)
        if (off > RIGID).any():
            raise IdentificationError(
                f"{what}poses: that of measurement {int(np.argmax(off)) + 1} is no rotation and translation"
            )
        return cls(q, T[:, :3, 3], R, rows)

    def pick(self, which: np.ndarray) -> _Measured:
        rotations = None if self.rotations is None else self.rotations[which]
        return _Measured(self.q[which], self.positions[which], rotations, self.rows[which])


def _fitted_and_judged(
    robot: Robot, measured: _Measured, validation: Any
) -> tuple[_Measured, _Measured | None]:
    """(what is fitted, what is only judged)."""
    if isinstance(validation, tuple):
        others, poses = validation
        return measured, _Measured.of(robot, others, poses, "validation: ")
    if not (isinstance(validation, (int, float)) and 0.0 <= validation < 1.0):
        raise IdentificationError(
            f"validation: expected a share from 0 to 1, or (q, poses), got {validation!r}"
        )
    count = round(validation * len(measured.q))
    if count == 0:
        return measured, None
    out = np.zeros(len(measured.q), dtype=bool)
    out[((np.arange(count) + 0.5) * len(measured.q) / count).astype(int)] = True
    return measured.pick(~out), measured.pick(out)


def _parameters_of_groups(robot: Robot, parameters: Sequence[str], frame: str) -> list[GeometricParameter]:
    groups = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    for group in groups:
        if group not in GROUPS:
            raise UnknownNameError(f"parameters: no {group!r}; {suggest(str(group), GROUPS)}")
    joints, _ = path_to(robot, frame)
    if not joints:
        raise IdentificationError(f"calibration: {frame} does not move")
    found = [each for each in geometric_parameters(joints) if each.group in groups]
    if not found:
        raise IdentificationError("parameters: nothing to calibrate")
    return found


# -- the fit ----------------------------------------------------------------------------------------------------------


def _start(robot: Robot, measured: _Measured, frame: str, base: Any, tool: Any, free: bool) -> KinematicChain:
    """The chain as given, with the base where it fits best."""
    ends = _pose("tool", tool)
    chain = KinematicChain.of(robot, measured.q, frame, _pose("base", base), ends)
    if base is not None or not free:
        return chain
    return KinematicChain.of(robot, measured.q, frame, _nearest_base(chain.poses(), measured), ends)


def _pose(name: str, given: Any) -> np.ndarray:
    """A pose (4, 4) of a pose, a position or nothing."""
    found = np.eye(4)
    if given is None:
        return found
    array = np.asarray(given, dtype=float)
    if array.shape == (3,):
        found[:3, 3] = array
    elif array.shape == (4, 4):
        found = array
    else:
        raise IdentificationError(
            f"{name}: expected a pose (4, 4) or a position (3,), got shape {array.shape}"
        )
    return found


def _nearest_base(computed: np.ndarray, measured: _Measured) -> np.ndarray:
    """The base (4, 4) with which computed poses come nearest to measured ones (Kabsch 1976)."""
    a, b = computed[:, :3, 3], measured.positions
    spread = (b - b.mean(axis=0)).T @ (a - a.mean(axis=0))
    if measured.rotations is not None:
        size = max(float(np.mean((a - a.mean(axis=0)) ** 2)), 1e-12)
        spread = spread + size * np.einsum("nij,nkj->ik", measured.rotations, computed[:, :3, :3])
    U, _, Vt = np.linalg.svd(spread)
    R = U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))]) @ Vt
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = R, b.mean(axis=0) - R @ a.mean(axis=0)
    return found


def _identifiable(
    chain: KinematicChain, measured: _Measured, wanted: Sequence[GeometricParameter]
) -> tuple[list[GeometricParameter], tuple[str, ...]]:
    """Parameters that these measurements tell apart, in order, and the labels of the others."""
    turns, shifts = chain.slopes(wanted)
    size = np.sqrt(np.mean((measured.positions - measured.positions.mean(axis=0)) ** 2)) or 1.0
    parts = [shifts] if measured.rotations is None else [shifts, size * turns]
    J = np.concatenate([part.reshape(-1, len(wanted)) for part in parts])
    length = np.linalg.norm(J, axis=0)
    triangle = linear.triangle(J / np.where(length > 0, length, 1.0))
    kept: list[int] = []
    for k in range(len(wanted)):
        if length[k] <= 1e-9 * length.max() or len(kept) == len(triangle):
            continue
        if float(linear.singular_values(triangle[:, [*kept, k]])[-1]) > SEEN:
            kept.append(k)
    left = tuple(each.label for k, each in enumerate(wanted) if k not in kept)
    return [wanted[k] for k in kept], left


def _check_enough(measured: _Measured, kept: Sequence[GeometricParameter]) -> None:
    rows = len(measured.q) * (3 if measured.rotations is None else 6)
    if rows <= len(kept):
        raise IdentificationError(
            f"calibration: {len(measured.q)} measurements for {len(kept)} parameters; expected more of them"
        )


def _fit(
    first: KinematicChain,
    chain: KinematicChain,
    measured: _Measured,
    kept: Sequence[GeometricParameter],
    iterations: int,
) -> tuple[KinematicChain, Estimate, int]:
    """Gauss–Newton; positions and orientations are weighted by the standard deviations of their residuals.

    Errors are counted from the ``first`` chain.
    """
    _check_enough(measured, kept)
    weights = np.ones(2)
    spread = np.ones(2)
    count = len(measured.q)
    for number in range(1, iterations + 1):
        p, r = _residuals(chain, measured)
        left = 1.0 - len(kept) / (3 * count if r is None else 6 * count)
        spread = np.array([_rms(x) / np.sqrt(left) if x is not None else 1.0 for x in (p, r)])
        weights = 1.0 / np.maximum(spread, EXACT)
        turns, shifts = chain.slopes(kept)
        rows = [weights[0] * shifts.reshape(-1, len(kept))]
        right = [weights[0] * p.reshape(-1)]
        if r is not None:
            rows.append(weights[1] * turns.reshape(-1, len(kept)))
            right.append(weights[1] * r.reshape(-1))
        J, y = np.concatenate(rows), np.concatenate(right)
        length = np.linalg.norm(J, axis=0)
        step = linear.solve_least_squares(J / length, y, 1e-12) / length
        following = chain.corrected(kept, step)
        if not np.isfinite(following.poses()).all():
            break
        chain = following
        if np.abs(step).max() <= ENOUGH:
            half = linear.pseudo_inverse(linear.triangle(J / length)) / length[:, None]
            s = linear.singular_values(J / length)
            estimate = Estimate(
                "calibration",
                tuple(each.label for each in kept),
                chain.errors_from(first, kept),
                product(half, half.T),
                spread,
                weights,
                float(s[0] / s[-1]),
                count,
                freedom=np.full(len(kept), float(max(len(y) - len(kept), 1))),
            )
            return chain, estimate, number
    raise IdentificationError(
        f"calibration: not converged after {iterations} iterations: poses and positions do not belong together, units "
        "differ (m and rad are expected), or tool= must say roughly where the target is"
    )


def _residuals(chain: KinematicChain, measured: _Measured) -> tuple[np.ndarray, np.ndarray | None]:
    """Measured minus computed positions (N, 3) and, as rotation vectors, orientations (N, 3)."""
    poses = chain.poses()
    positions = measured.positions - poses[:, :3, 3]
    if measured.rotations is None:
        return positions, None
    return positions, rotation_vector(measured.rotations @ np.swapaxes(poses[:, :3, :3], 1, 2))


# -- judging ----------------------------------------------------------------------------------------------------------


def _computed_poses(robot: Robot, chain: KinematicChain, measured: _Measured, frame: str) -> np.ndarray:
    """Poses by a robot, with the base and the tool of a chain."""
    return chain.elements[0] @ robot.pose(measured.q, frame=frame) @ chain.elements[-1]


def _errors(measured: _Measured, poses: np.ndarray) -> PoseErrors:
    distances = np.linalg.norm(measured.positions - poses[:, :3, 3], axis=1)
    if measured.rotations is None:
        return PoseErrors(distances, None)
    turned = rotation_vector(measured.rotations @ np.swapaxes(poses[:, :3, :3], 1, 2))
    return PoseErrors(distances, np.linalg.norm(turned, axis=1))


def _outliers(measured: _Measured, chain: KinematicChain) -> tuple[int, ...]:
    """Fitted measurements that are far from all others, by median deviations."""
    errors = _errors(measured, chain.poses())
    bad = np.zeros(len(measured.q), dtype=bool)
    for values in (errors.distances, errors.angles):
        if values is not None:
            bad |= values > OUTLYING * max(float(np.median(values)), EXACT)
    return tuple(int(k) for k in measured.rows[bad])


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _error(errors: PoseErrors) -> str:
    angle = "" if errors.angle is None else f" and {np.degrees(errors.angle):.3g}°"
    return f"{1e3 * errors.distance:.3g} mm{angle}"
