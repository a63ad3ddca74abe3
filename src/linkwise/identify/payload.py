"""Payloads from a loaded and an unloaded run, and drive gains from a payload that is known.

In the unloaded run a load has no torques; in the loaded one it adds to the last link's parameters. So its ten
parameters are ten more columns, and both runs are fitted at once: what the runs have in common is the robot, and
what they differ in is the load. With a load of known mass the same equations give the gains of the drives instead
(Gautier and Briot 2014): measured currents i_j = k_j (Y_j x + load_j), unknown k_j and x. The mass is needed: twice the
gains, masses and friction cause the same currents. Centre of mass and inertia of the load are estimated where they are
not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.base import base_of, excitation_of
from linkwise.identify.estimation.coloured import uncertainty
from linkwise.identify.estimation.estimate import Estimate, quantile
from linkwise.identify.estimation.estimators import weighted
from linkwise.identify.estimation.friction import check_springs, friction_named
from linkwise.identify.estimation.lag import Lag, as_given, estimate_lag, shifted
from linkwise.identify.estimation.physical import STRENGTH, physical_from_gram
from linkwise.identify.estimation.prior import prior_bodies
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.estimation.solvers import column_lengths
from linkwise.identify.recordings.log import Log, as_logs, with_motors
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.model.coordinates import check_torques
from linkwise.model.inertia import LABELS, Inertia
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product, pseudo_inverse, solve_least_squares, triangle

ROWS = (
    ("mass", "kg"),
    *((f"centre of mass {axis}", "m") for axis in "xyz"),
    *((f"I{axes} about it", "kg·m²") for axes in ("xx", "xy", "xz", "yy", "yz", "zz")),
)
UNKNOWN_MASS = (
    "drive gains: they cannot be told apart from masses: twice the gains with twice all masses and friction cause the "
    "same currents. Record a second time with a load of known mass, and give that mass"
)
GAIN_DEVIATION = (
    0.13  # of gains that others published: two sets for one arm differ by 12 to 40 %, 19 % in the mean
)
UNSEEN = 0.3  # relative standard deviation of a gain from which the recordings do not determine it


@dataclass(frozen=True)
class PayloadRow:
    """One number of a load: that of the possible body, which is what robots carry, by least squares, and an interval
    around the former, see ``Payload.table``."""

    name: str
    unit: str
    value: float
    least_squares: float
    lower: float
    upper: float


@dataclass(frozen=True, repr=False)
class Payload(Summarised):
    """A load as a possible body in the axes of ``frame``, and its ten parameters there by least squares.

    ``estimate`` holds the unconstrained estimate of m hx hy hz Ixx … Izz with its covariance; ``lags`` are those of the
    torques in the unloaded and in the loaded recordings. ``gain_deviation`` is the relative standard deviation of the
    torques' scale, the gains of the drives, which the covariance includes: the load is known no better. ``unknown``
    parameters of the estimate may be anything: no torque depends on some direction that they take part in.
    """

    inertia: Inertia
    frame: str
    estimate: Estimate
    lags: tuple[Lag, Lag] = (Lag(), Lag())
    gain_deviation: float = 0.0
    unknown: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """[kg]"""
        return self.inertia.mass

    @property
    def com(self) -> np.ndarray:
        """Centre of mass in the frame [m], shape (3,)."""
        return self.inertia.com

    def table(self, level: float = 0.95) -> list[PayloadRow]:
        """Mass, centre of mass and inertia about it, with confidence intervals.

        The intervals are around the possible body: noise and the uncertainty of the drive gains as the unconstrained
        estimate has them, and the distance to it, as those of ``Identification.table``. Centre of mass and inertia are
        not linear in what is estimated, so their deviations follow from its covariance to first order. Both ends are
        infinite where the recordings say nothing at all.
        """
        free, slopes = _about_com(self.estimate.x)
        covariance, freedom = self.estimate.covariance, self.estimate.freedom
        deviations = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0))
        if freedom is not None:  # of a sum of variances (Satterthwaite 1946)
            parts = slopes**2 * np.diag(covariance)
            whole = (parts**2 / freedom).sum(axis=1)
            freedom = np.where(whole > 0.0, parts.sum(axis=1) ** 2 / np.maximum(whole, 1e-300), np.inf)
        reach = quantile(level, freedom) * deviations
        possible, _ = _about_com(np.array(self.inertia.parameters))
        reach = np.hypot(reach, possible - free)
        nothing = np.array([label in self.unknown for label in self.estimate.labels])
        reach[(slopes[:, nothing] != 0.0).any(axis=1)] = np.inf
        return [
            PayloadRow(name, unit, *map(float, numbers))
            for (name, unit), numbers in zip(
                ROWS, np.stack([possible, free, possible - reach, possible + reach], axis=1), strict=True
            )
        ]

    def carried_by(self, robot: Robot) -> Robot:
        """A robot with this load."""
        return robot.with_payload(self.mass, self.com.tolist(), self.inertia.matrix_about_com, self.frame)


def identify_payload(
    robot: Robot,
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    *,
    frame: str | None = None,
    friction: str = "coulomb",
    cutoff: float | None = None,
    strength: float = STRENGTH,
    lag: float | None = None,
    gain_deviation: float | None = None,
) -> Payload:
    """The load carried in the loaded recordings, but not in the unloaded ones.

    Args:
        robot: the robot without the load.
        unloaded: recordings without the load.
        loaded: recordings with it.
        frame: that carries the load; by default the only leaf.
        friction: model of friction, see ``friction.MODELS``.
        cutoff: of the filters [Hz]; by default chosen from the data.
        strength: of the prior.
        lag: how much later than positions torques were recorded [s]; by default estimated as by ``identify``, of the
            unloaded and of the loaded recordings apart.
        gain_deviation: relative standard deviation of the drive gains, which intervals include; by default
            ``GAIN_DEVIATION``, and 0 for torque sensors behind the gears.
    """
    check_torques(robot, "identification")
    check_springs(robot, friction)
    with one_thread():
        runs = _Runs.of(robot, unloaded, loaded, cutoff)
        if gain_deviation is None:
            gain_deviation = GAIN_DEVIATION if runs.loaded[0].log.sensed == "motor" else 0.0
        name = robot.default_frame() if frame is None else frame
        lags = runs.lags(lag)
        regression, own = _with_load(runs, lags, name, friction)
        robot, count = runs.robot, 10 * robot.dof
        independent = regression.pick(sorted([*own, *range(count, count + 10)]))
        found = weighted(independent)
        unknown = excitation_of(independent, found.weights).unknown
        prior = np.vstack(
            [prior_bodies(robot), Inertia.from_com(1.0, (0, 0, 0), (0.01, 0.01, 0.01)).parameters]
        )
        rotors = [k for k, label in enumerate(regression.labels) if label.endswith(".rotor_inertia")]
        gram, right = regression.gram(found.weights)
        x = physical_from_gram(gram, right, prior, strength=strength, nonnegative=rotors).x
        places = [found.labels.index(f"payload.{label}") for label in LABELS]
        body = Inertia.from_parameters(x[count : count + 10].tolist())
        estimated = _with_gains(_part(found, places), gain_deviation)
        return Payload(body, name, estimated, lags, gain_deviation, unknown)


@dataclass(frozen=True, repr=False)
class DriveGains(Summarised):
    """Torque per unit of current of each drive, shape (n,), and standard deviations.

    ``load`` is the estimate of what was not known of the load; None where all of it was. ``lags`` are those of the
    currents in the unloaded and in the loaded recordings.
    """

    gains: np.ndarray
    deviations: np.ndarray
    iterations: int
    freedom: np.ndarray | None = None
    load: Estimate | None = None
    lags: tuple[Lag, Lag] = (Lag(), Lag())

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) ends of confidence intervals, each (n,)."""
        freedom = None if self.freedom is None else float(self.freedom.min())
        reach = quantile(level, freedom) * self.deviations
        return self.gains - reach, self.gains + reach


def drive_gains(
    robot: Robot,
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    load: Inertia | float | None,
    *,
    frame: str | None = None,
    friction: str = "coulomb",
    cutoff: float | None = None,
    start: float | Sequence[float] = 10.0,
    lag: float | None = None,
) -> DriveGains:
    """Gains of the drives from runs whose ``tau`` are currents, with and without a load of known mass.

    Args:
        robot: the robot without the load.
        unloaded: recordings without the load.
        loaded: recordings with it.
        load: the known load, in ``frame``; or its mass [kg] where centre of mass and inertia are not known: they
            are estimated too.
        frame: that carries the load; by default the only leaf.
        friction: model of friction, see ``friction.MODELS``.
        cutoff: of the filters [Hz]; by default chosen from the data.
        start: rough estimate of the gains [N·m/A or N/A].
        lag: how much later than positions currents were recorded [s]; by default estimated as by ``identify``, of the
            unloaded and of the loaded recordings apart.

    Raises:
        IdentificationError: no mass is given, or the recordings do not determine the gains.
    """
    known = _known_load(load)
    check_springs(robot, friction)
    with one_thread():
        runs = _Runs.of(robot, unloaded, loaded, cutoff)
        name = robot.default_frame() if frame is None else frame
        gains = np.broadcast_to(np.asarray(start, dtype=float), (robot.dof,))
        count = 10 * robot.dof

        def found(lags: tuple[Lag, Lag]) -> DriveGains:
            regression, own = _with_load(runs, lags, name, friction)
            caused = product(regression.Y[..., count : count + len(known)], known)
            unknown = regression.pick(sorted([*own, *range(count + len(known), count + 10)]))
            return replace(_gains(robot, unknown, caused, gains), lags=lags)

        first = found(runs.lags(lag, gains))
        # joints share the masses of links, so a lag is that of torques: look again with the gains that were found
        lags = runs.lags(lag, first.gains)
        return first if lags == first.lags else found(lags)


@dataclass(frozen=True)
class _Runs:
    """The unloaded and the loaded recordings, with torques as they were recorded."""

    robot: Robot
    """Without its motors of several joints: they are axes of the recordings."""
    unloaded: list[Signals]
    loaded: list[Signals]

    @classmethod
    def of(
        cls, robot: Robot, unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], cutoff: float | None
    ) -> _Runs:
        empty, full = (with_motors(robot, as_logs(logs)) for logs in (unloaded, loaded))
        first = condition(empty[0], cutoff=cutoff)
        return cls(
            robot.with_motors(()) if robot.motors else robot,
            [first, *(condition(log, cutoff=first.cutoff) for log in empty[1:])],
            [condition(log, cutoff=first.cutoff) for log in full],
        )

    def lags(self, lag: float | None, gains: np.ndarray | float = 1.0) -> tuple[Lag, Lag]:
        """Of both kinds of recordings: that given, or estimated from torques, gains times what was recorded."""
        if lag is not None:
            return as_given(lag), as_given(lag)
        empty, full = (
            estimate_lag(Observer(self.robot, [replace(s, tau=s.tau * gains) for s in each]))
            for each in (self.unloaded, self.loaded)
        )
        return empty, full

    def shifted(self, lags: tuple[Lag, Lag]) -> list[Signals]:
        """All recordings, with torques of the same time as the motion."""
        pairs = zip((self.unloaded, self.loaded), lags, strict=True)
        return [shifted(each, lag) for signals, lag in pairs for each in signals]


def _known_load(load: Inertia | float | None) -> np.ndarray:
    """The parameters of a load that are known: all ten, or the mass."""
    if load is None:
        raise IdentificationError(UNKNOWN_MASS)
    known = np.array(load.parameters) if isinstance(load, Inertia) else np.array([float(load)])
    if not (np.isfinite(known).all() and known[0] > 0):
        raise IdentificationError(
            f"drive gains: mass of the load: expected a positive number, got {known[0]:g}"
        )
    return known


def _gains(
    robot: Robot, regression: Regression, known: np.ndarray, start: np.ndarray, iterations: int = 50
) -> DriveGains:
    """Gauss–Newton on i_j = k_j (Y_j x + known_j), every joint weighted by its residuals."""
    n, p = regression.dof, len(regression.labels)
    k, x = 1.0 / start, np.zeros(p)
    size = np.sqrt((regression.tau**2).mean(axis=0))
    for number in range(iterations):
        torque = product(regression.Y, x) + known
        slopes = np.concatenate([k[:, None] * regression.Y, torque[:, :, None] * np.eye(n)], axis=2)
        residual = regression.tau - k * torque
        spread = size if number == 0 else np.maximum(np.sqrt((residual**2).mean(axis=0)), 1e-9 * size)
        linear = replace(regression, Y=slopes[..., :p] if number == 0 else slopes, tau=residual)
        W, y = linear.compressed(1.0 / spread)
        length = column_lengths(W)
        step = solve_least_squares(W / length, y, 1e-12) / length
        x = x + step[:p]
        if number == 0:
            continue  # the robot first, with the gains as guessed
        k = k + step[p:]
        if not np.isfinite(k).all():
            break
        if np.abs(step[p:]).max() <= 1e-8 * np.abs(k).max():
            half = pseudo_inverse(triangle(W / length)) / length[:, None]
            covariance, spare = uncertainty(linear, 1.0 / spread, np.zeros(p + n), product(half, half.T))
            deviations = np.sqrt(np.diag(covariance)[p:]) / k**2
            _check_gains(robot, 1.0 / k, deviations)
            load = _load_estimate(regression, x, covariance, spread, number, spare)
            return DriveGains(1.0 / k, deviations, number, spare[p:], load)
    raise IdentificationError(
        "drive gains: no convergence; the load may be too small to be seen, or start too far away"
    )


def _check_gains(robot: Robot, gains: np.ndarray, deviations: np.ndarray) -> None:
    """Raise where the recordings say nothing of a gain: the load is not in them, or hardly seen."""
    bad = [
        name
        for name, gain, spread in zip(robot.joint_names, gains, deviations, strict=True)
        if not (gain > 0 and spread < UNSEEN * gain)
    ]
    if bad:
        raise IdentificationError(
            f"drive gains: the recordings do not determine those of {', '.join(bad)}: a load of this mass is hardly "
            "seen in the difference of the loaded and the unloaded recordings, or signs of currents differ"
        )


def _load_estimate(
    regression: Regression,
    x: np.ndarray,
    covariance: np.ndarray,
    spread: np.ndarray,
    iterations: int,
    freedom: np.ndarray,
) -> Estimate | None:
    """What was not known of the load, out of all that was estimated."""
    places = [place for place, label in enumerate(regression.labels) if label.startswith("payload.")]
    if not places:
        return None
    return Estimate(
        "drive gains",
        tuple(regression.labels[place] for place in places),
        x[places],
        covariance[np.ix_(places, places)],
        spread,
        1.0 / spread,
        float("nan"),
        len(regression),
        (f"{iterations} iterations",),
        freedom[places],
    )


def _about_com(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it (10,) of ten parameters m h I, and the slopes (10, 10)."""
    m, h, about_origin = parameters[0], parameters[1:4], parameters[4:]
    found, slopes = parameters.astype(float).copy(), np.eye(10)
    safe = m if m != 0 else np.nan  # a load without mass has no centre of mass
    c = h / safe
    found[1:4] = c
    slopes[1:4, 1:4] = np.eye(3) / safe
    slopes[1:4, 0] = -c / safe
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    for place, (a, b) in enumerate(pairs, 4):
        # about the origin: I + m (c·c δ − c cᵀ), with m c cᵀ = h hᵀ/m
        same = a == b
        found[place] = about_origin[place - 4] - ((h @ h if same else 0.0) - h[a] * h[b]) / safe
        slopes[place, 0] = (c @ c if same else 0.0) - c[a] * c[b]
        change = -2 * c if same else np.zeros(3)
        change[a] += c[b]
        change[b] += c[a]
        slopes[place, 1:4] = change
    return found, slopes


def _with_load(runs: _Runs, lags: tuple[Lag, Lag], frame: str, friction: str) -> tuple[Regression, list[int]]:
    """A regression of both runs, with ten columns of the load after the links' that are zero in unloaded runs; and the
    columns of the robot's own base parameters in it."""
    robot = runs.robot
    observer = Observer(robot, runs.shifted(lags))
    names = friction_named(friction, robot.dof, len(observer.axes) - robot.dof)
    plain = observer.regression(names)
    edges = (0, *plain.edges, len(plain))
    begin = edges[len(runs.unloaded)]
    body, pose = robot.locate(frame)
    if body < 0:
        raise IdentificationError(f"payload: {frame} does not move")
    here = robot.carrier(robot.moving_joints[body].body_link)[1].inverse() @ pose
    units = np.array(
        [Inertia.from_parameters(row.tolist()).expressed_in(here).parameters for row in np.eye(10)]
    )
    columns = product(plain.Y[..., 10 * body : 10 * body + 10], units.T)
    columns[:begin] = 0.0
    count = plain.links
    base = base_of(robot, observer.axes, names)
    return (
        replace(
            plain,
            Y=np.concatenate([plain.Y[..., :count], columns, plain.Y[..., count:]], axis=2),
            labels=(*plain.labels[:count], *(f"payload.{label}" for label in LABELS), *plain.labels[count:]),
            links=count + 10,
        ),
        [k if k < count else k + 10 for k in base.columns],
    )


def _with_gains(estimate: Estimate, deviation: float) -> Estimate:
    """Gains that are too large by a part make all parameters too large by that part.

    That variance is given, not estimated, so it has no degrees of freedom (Satterthwaite 1946)."""
    covariance = estimate.covariance + deviation**2 * np.outer(estimate.x, estimate.x)
    ratio = np.maximum(np.diag(covariance) / np.maximum(np.diag(estimate.covariance), 1e-300), 1.0)
    freedom = None if estimate.freedom is None else estimate.freedom * ratio**2
    return replace(estimate, covariance=covariance, freedom=freedom)


def _part(estimate: Estimate, places: list[int]) -> Estimate:
    return replace(
        estimate,
        labels=tuple(estimate.labels[k] for k in places),
        x=estimate.x[places],
        covariance=estimate.covariance[np.ix_(places, places)],
        freedom=None if estimate.freedom is None else estimate.freedom[places],
    )
