"""Which feet are held, how large the errors of the rows are, and which reading of the base and lag predict best.

All of it is decided on some samples of the recordings by plain least squares (links, rotors, viscous and smooth Coulomb
friction, offsets). At first all feet count as held at all times, which is right whatever they touch. The force of a
foot is needed where the rows that it alone can explain are not explained without it: that decides which feet are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.errors import needed
from linkwise.identify.estimation.friction import AxisSignals, friction_named
from linkwise.identify.estimation.friction import column as term_column
from linkwise.identify.walking import rotations
from linkwise.identify.walking.contacts import Foot, jacobians, orthonormal, projected
from linkwise.identify.walking.observer import BASE, floating_base_of, force_basis
from linkwise.identify.walking.states import WalkingSignals
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

CUTOFFS = (5.0, 8.0, 12.0, 20.0, 30.0)  # [Hz] that are tried
ROWS = 900  # samples of all recordings together by which is decided
FOLDS = 5  # stretches of time, each left out of one fit
RIDGE = 1e-10  # of unit columns
FIRST = 0.05  # errors of rows in parts of the torques, before anything is known
ROUNDS = 3  # in which the errors of rows are estimated
LARGEST, SMALLEST = 1e3, 1e-6  # bounds of errors of rows, in parts of the first guess
MANY_TIMES = 4.0  # typical size of what is left of a free foot's rows, from which its force is needed
MAJORITY = 0.015  # [s] before and after a sample, in which most flags decide
AROUND = 0.6  # periods of the cut-off before and after a touch in which a foot counts as held as well
FALLING = 0.3  # of gravity, felt by the base: less is a flight
LATEST, STEP = 0.03, 0.002  # [s] lags that are tried, and how far apart
SHARP = 4.0  # times the least error, from which errors one step away are no parabola
FORCE = 0.1  # of the weight, from which a measured force is a contact
AGREED = 0.8  # of the samples at which flags and forces agree, below which another order of the feet is tried


@dataclass
class Rows:
    """Rows of base and joints at some samples of a recording, with forces: columns (n, dof, p), torques (n, dof)."""

    robot: Robot
    signals: WalkingSignals
    feet: tuple[Foot, ...]
    where: np.ndarray
    columns: np.ndarray
    torques: np.ndarray

    @classmethod
    def of(
        cls, robot: Robot, signals: WalkingSignals, feet: Sequence[Foot], base: PlainBase, most: int
    ) -> Rows:
        """At ``most`` samples of a recording, without its ends."""
        margin = min(int(2 * signals.rate / signals.cutoff), len(signals) // 10)
        where = np.unique(np.linspace(margin, len(signals) - margin - 1, most).astype(int))
        q, v, a = (x[where] for x in signals.states)
        torques = np.concatenate([np.zeros((len(where), BASE)), signals.tau[where]], axis=1)
        return cls(robot, signals, tuple(feet), where, base.columns_of(signals, where, (q, v, a)), torques)

    def without_forces(self, held: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(columns, torques) in scaled rows without the forces that are held (N, feet + 1) at all samples."""
        Q = self.basis(held, scale)
        return projected(Q, self.columns / scale[:, None]), projected(Q, self.torques / scale)

    def left(self, held: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Diagonal of the projection, (n, dof)."""
        return 1.0 - (self.basis(held, scale) ** 2).sum(axis=2)

    def basis(self, held: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Orthonormal columns of the forces that are held, (n, dof, k)."""
        q, up = self.signals.states[0][self.where], self.signals.up[self.where]
        return force_basis(self.robot, self.feet, q, up, held[self.where], scale)


class PlainBase:
    """Columns of the base parameters of links and smooth friction.

    Args:
        robot: the robot.
    """

    def __init__(self, robot: Robot):
        self.robot, self.joints = robot, robot.dof - BASE
        self.friction = friction_named("smooth", self.joints)
        self.base = floating_base_of(robot, self.friction)
        self.placed = [(axis, term) for axis, terms in enumerate(self.friction) for term in terms]
        self.links = 10 * len(robot.labelled_bodies())

    def columns_of(
        self, signals: WalkingSignals, where: np.ndarray, states: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Columns (n, dof, p) of the base parameters at samples of a recording."""
        Y = np.zeros((len(where), self.robot.dof, self.links + len(self.placed)))
        Y[..., : self.links] = np.asarray(self.robot.regressor(*states))[..., : self.links]
        moved = [x[where] for x in (signals.q, signals.qd, signals.qdd)]
        motion = AxisSignals.of(moved[0], moved[1], moved[2], np.zeros_like(moved[0]), np.eye(self.joints))
        for k, (axis, term) in enumerate(self.placed, self.links):
            Y[:, BASE + axis, k] = term_column(motion, term)[:, axis]
        return Y[..., list(self.base.columns)]


def first_scale(robot: Robot, signals: Sequence[WalkingSignals]) -> np.ndarray:
    """Guessed standard deviations of the rows' errors, (dof,)."""
    tau = np.concatenate([s.tau for s in signals])
    sizes = np.sqrt((tau**2).mean(axis=0))
    sizes = np.maximum(sizes, 0.1 * max(float(sizes.max()), 1e-300))
    bodies = robot.labelled_bodies()
    weight = sum(max(body.mass, 0.0) for body in bodies) * float(
        np.sqrt((np.asarray(robot.gravity) ** 2).sum())
    )
    largest = max(float(sizes.max()), 1e-300)
    return FIRST * np.concatenate([np.full(3, largest), np.full(3, max(weight, largest)), sizes])


def fitted(rows: Sequence[Rows], held: Sequence[np.ndarray], scale: np.ndarray, rounds: int = ROUNDS):
    """(parameters (p,), standard deviations of the rows (dof,)) of least squares without the forces that are held."""
    start = scale
    x = np.zeros(rows[0].columns.shape[2])
    for number in range(rounds + 1):
        parts = [r.without_forces(h, scale) for r, h in zip(rows, held, strict=True)]
        Y, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        x = solution(Y, y)
        if number < rounds:
            left = np.concatenate([r.left(h, scale) for r, h in zip(rows, held, strict=True)]).sum(axis=0)
            errors = ((y - product(Y, x)) ** 2).sum(axis=0)
            freedom = max(float(left.sum()) - len(x), 1.0) / max(float(left.sum()), 1e-300)
            grown = np.sqrt(errors / np.maximum(left * freedom, 1e-300))
            grown = np.where(left > 1e-9 * len(y), grown, 1.0)
            grown[:3], grown[3:BASE] = (
                np.sqrt((grown[part] ** 2).mean()) for part in (slice(0, 3), slice(3, BASE))
            )
            scale = np.clip(scale * np.clip(grown, 1e-3, 1e3), SMALLEST * start, LARGEST * start)
    return x, scale


def solution(Y: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares of rows Y (n, dof, p) and y (n, dof)."""
    return _scaled_solution(*_gram(Y, y))


def _gram(Y: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    W = Y.reshape(-1, Y.shape[2])
    return product(W.T, W), product(W.T, y.reshape(-1))


def _scaled_solution(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    return _scaled_solutions(gram, right[:, None])[:, 0]


def _scaled_solutions(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """For each column of ``right`` (p, k), (p, k)."""
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))[:, None]
    unit = gram / length / length.T
    return linear.solve(unit + RIDGE * np.eye(len(length)), right / length) / length


def left_out_error(rows: Sequence[Rows], held: Sequence[np.ndarray], scale: np.ndarray) -> float:
    """Error of rows of stretches of time that were left out, without forces, in % of the torques without them."""
    fits = [r.without_forces(h, scale) for r, h in zip(rows, held, strict=True)]
    plain = [r.without_forces(h, np.ones_like(scale)) for r, h in zip(rows, held, strict=True)]
    Y, y, Z, z = (np.concatenate([part[k] for part in parts]) for parts in (fits, plain) for k in (0, 1))
    fold = np.arange(len(y)) * FOLDS // len(y)
    grams = [_gram(Y[fold == k], y[fold == k]) for k in range(FOLDS)]
    gram, right = (np.sum([each[k] for each in grams], axis=0) for k in (0, 1))
    wrong = 0.0
    for k, (own, mine) in enumerate(grams):
        x = _scaled_solution(gram - own, right - mine)
        wrong += float(((z[fold == k] - product(Z[fold == k], x)) ** 2).sum())
    return 100.0 * float(np.sqrt(wrong / max(float((z**2).sum()), 1e-300)))


def all_held(signals: WalkingSignals, feet: Sequence[Foot], hanging: bool = False) -> np.ndarray:
    """Every foot held at all times; or the base alone, of a robot that hangs. Shape (N, feet + 1)."""
    held = np.full((len(signals), len(feet) + 1), not hanging)
    held[:, -1] = hanging
    return held


def needed_forces(
    robot: Robot, signals: WalkingSignals, feet: Sequence[Foot], error: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """How much of the error (N, dof) [N·m or N] each foot alone can explain, in standard deviations, (N, feet)."""
    q, found = signals.states[0], []
    columns = [jacobians(robot, foot, q, signals.up) / scale[:, None] for foot in feet]
    whitened = error / scale
    for k, own in enumerate(columns):
        others = [c for j, c in enumerate(columns) if j != k]
        Q = orthonormal(np.concatenate(others, axis=2)) if others else np.zeros((len(q), robot.dof, 0))
        mine, rest = orthonormal(projected(Q, own)), projected(Q, whitened)
        size = ((mine * rest[:, :, None]).sum(axis=1) ** 2).sum(axis=1)
        found.append(np.sqrt(size / own.shape[2]))
    return np.stack(found, axis=1)


@dataclass(frozen=True)
class Held:
    """Which feet, and the base (last), are held at the samples of signals, (N, feet + 1), and how that was decided."""

    held: np.ndarray
    notes: tuple[str, ...]


def decide(robot: Robot, signals: WalkingSignals, feet: Sequence[Foot], sizes: np.ndarray) -> Held:
    """Feet that are held: those with a flag in the recording, and those whose force is needed.

    Args:
        robot: the robot.
        signals: the conditioned recording.
        feet: what may touch the ground.
        sizes: how much of the errors each foot explains, see ``needed_forces``.
    """
    flags, notes = recorded_flags(robot, signals, feet)
    sizes = _median_of_three(sizes)
    if flags is not None:
        flags, order = _in_order(_majority(flags, max(1, round(MAJORITY * signals.rate))), sizes, feet)
        notes += order
    limits = np.array(
        [_limit(size, None if flags is None else flags[:, k]) for k, size in enumerate(sizes.T)]
    )
    needs = sizes > limits
    if flags is None:
        notes.append("contacts: from the forces that the model needs")
        touching = needs
    else:
        missed, idle = float((needs & ~flags).mean()), float((flags & ~needs).mean())
        notes.append(
            f"contacts: from the recording; at {100 * missed:.2g} % of the samples of a foot the model needs a force "
            f"where the recording has no contact (taken as contact), at {100 * idle:.2g} % the other way round"
        )
        touching = needs | flags
    reach = max(1, int(np.ceil(AROUND * signals.rate / signals.cutoff)))
    held = _neighbours(touching, reach)
    base, said = _carried_by_others(robot, signals, touching)
    free = 1.0 - float(held.mean())
    notes += [f"feet are free at {100 * free:.3g} % of the samples", *said]
    return Held(np.concatenate([held, base[:, None]], axis=1), tuple(notes))


def recorded_flags(
    robot: Robot, signals: WalkingSignals, feet: Sequence[Foot]
) -> tuple[np.ndarray | None, list[str]]:
    """Contacts (N, feet) as the recording has them, by flags or by measured forces; None where it has none."""
    log, notes = signals.log, []
    stamps = log.t if signals.stamps is None else signals.stamps
    near = np.clip(np.searchsorted(0.5 * (stamps[1:] + stamps[:-1]), signals.t), 0, len(stamps) - 1)
    flags = getattr(log, "contacts", None)
    if flags is not None and flags.shape[1] == len(feet):
        return _by_names(flags[near] > 0.5 * max(float(flags.max()), 1e-300), log, feet), notes
    forces = getattr(log, "foot_forces", None)
    if flags is not None:
        notes.append(f"contacts: {flags.shape[1]} columns for {len(feet)} feet were not used")
    if forces is not None and forces.shape[1] == 3 * len(feet):
        forces = np.sqrt((forces.reshape(len(forces), len(feet), 3) ** 2).sum(axis=2))
    if forces is None or forces.shape[1] != len(feet):
        return None, notes
    notes.append("contacts: from measured forces")
    weight = float(np.quantile(np.abs(forces).sum(axis=1), 0.5))
    return np.abs(forces[near]) > FORCE * weight, notes


def _by_names(flags: np.ndarray, log, feet: Sequence[Foot]) -> np.ndarray:
    """Flags in the order of the feet, where the recording names them."""
    names = [name.lower() for name in getattr(log, "feet", ())]
    if len(names) != len(feet):
        return flags
    places = []
    for foot in feet:
        like = [k for k, name in enumerate(names) if name in foot.name.lower() or foot.name.lower() in name]
        if len(like) != 1:
            return flags
        places.append(like[0])
    return flags[:, places] if len(set(places)) == len(feet) else flags


def _in_order(flags: np.ndarray, sizes: np.ndarray, feet: Sequence[Foot]) -> tuple[np.ndarray, list[str]]:
    """Flags in the order in which they agree with the forces that the model needs."""
    strong = sizes > np.exp(np.log(np.maximum(sizes, 1e-12)).mean(axis=0))
    agree = np.array(
        [[(flags[:, j] == strong[:, k]).mean() for j in range(len(feet))] for k in range(len(feet))]
    )
    best = _best_columns(agree)
    own = float(np.trace(agree)) / len(feet)
    other = float(sum(agree[k, j] for k, j in enumerate(best))) / len(feet)
    if own > AGREED or other < own + 0.5 * (1.0 - own) or best == list(range(len(feet))):
        return flags, []
    order = ", ".join(feet[best.index(j)].name for j in range(len(feet)))
    return flags[:, best], [f"contacts: columns are those of {order}, by which the model needs forces"]


def _best_columns(agree: np.ndarray) -> list[int]:
    """A column for each row with the largest sum, greedily: exchanges of two as long as they help."""
    best = list(range(len(agree)))
    improved = True
    while improved:
        improved = False
        for a in range(len(best)):
            for b in range(a):
                now = agree[a, best[a]] + agree[b, best[b]]
                if agree[a, best[b]] + agree[b, best[a]] > now + 1e-9:
                    best[a], best[b] = best[b], best[a]
                    improved = True
    return best


def _limit(sizes: np.ndarray, flags: np.ndarray | None) -> float:
    """The size from which a foot's force is needed: beyond what is typical where it is free."""
    free = sizes[~flags] if flags is not None else sizes[sizes <= _valley(sizes)]
    if len(free) < 20:
        return 0.0
    return MANY_TIMES * float(np.median(free))


def _valley(sizes: np.ndarray) -> float:
    """The size that divides two groups best (Otsu's threshold of logarithms)."""
    values = np.sort(np.log(np.maximum(sizes, 1e-12)))
    count = np.arange(1, len(values))
    total = np.cumsum(values)
    low, high = total[:-1] / count, (total[-1] - total[:-1]) / count[::-1]
    return float(np.exp(values[int(np.argmax(count * count[::-1] * (high - low) ** 2))]))


def _median_of_three(sizes: np.ndarray) -> np.ndarray:
    """The median of three neighbours: single samples do not decide."""
    if len(sizes) < 3:
        return sizes
    padded = np.concatenate([sizes[:1], sizes, sizes[-1:]])
    return np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)


def _majority(flags: np.ndarray, reach: int) -> np.ndarray:
    """What most samples within ``reach`` of a sample say: single wrong flags do not count."""
    count = np.cumsum(np.concatenate([np.zeros((1, flags.shape[1])), flags]), axis=0)
    last = np.minimum(np.arange(len(flags)) + reach + 1, len(flags))
    first = np.maximum(np.arange(len(flags)) - reach, 0)
    return count[last] - count[first] > 0.5 * (last - first)[:, None]


def _neighbours(flags: np.ndarray, reach: int) -> np.ndarray:
    """True within ``reach`` samples of a True."""
    count = np.cumsum(np.concatenate([np.zeros((1, flags.shape[1])), flags]), axis=0)
    last = np.minimum(np.arange(len(flags)) + reach + 1, len(flags))
    first = np.maximum(np.arange(len(flags)) - reach, 0)
    return count[last] - count[first] > 0


def _carried_by_others(
    robot: Robot, signals: WalkingSignals, touching: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Samples (N,) at which no foot touches and the base does not fall: something else holds it."""
    q, _, a = signals.states
    down = rotations.turned_back(rotations.matrices(q[:, 3:7]), np.broadcast_to(robot.gravity, (len(q), 3)))
    felt = np.sqrt(((a[:, 3:6] - down) ** 2).sum(axis=1))
    earth = float(np.sqrt((np.asarray(robot.gravity) ** 2).sum()))
    alone = ~touching.any(axis=1)
    if not alone.any() or float(np.median(felt[alone])) < FALLING * earth:
        return np.zeros(len(q), bool), []
    share = 100 * float(alone.mean())
    said = f"something else than feet holds the base at {share:.3g} % of the samples: its rows are not used there"
    return np.asarray(alone), [said]


def lag_profile(
    rows: Sequence[Rows], held: Sequence[np.ndarray], scale: np.ndarray
) -> tuple[float, float, float]:
    """(lag [s], its standard deviation [s], part by which it lowers the squared error of left-out stretches) of torques
    behind the motion. The deviation is that of the jackknife: the lag is found without each stretch in turn."""
    lags = np.arange(-round(LATEST / STEP), round(LATEST / STEP) + 1) * STEP
    bases = [r.basis(h, scale) for r, h in zip(rows, held, strict=True)]
    Y = np.concatenate([projected(Q, r.columns / scale[:, None]) for r, Q in zip(rows, bases, strict=True)])
    y = np.concatenate([_at_lags(r, Q, scale, lags) for r, Q in zip(rows, bases, strict=True)])
    joined = np.concatenate([Y, y], axis=2)  # columns, then torques by lag
    fold = np.arange(len(y)) * FOLDS // len(y)
    parts = [joined[fold == k].reshape(-1, joined.shape[2]) for k in range(FOLDS)]
    grams = [product(part.T, part) for part in parts]
    whole, count = np.sum(grams, axis=0), Y.shape[2]
    fitted_errors, left_out = [], np.zeros(len(lags))
    for gram in (np.zeros_like(whole), *grams):
        fit, others = whole - gram, slice(count, None)
        x = _scaled_solutions(fit[:count, :count], fit[:count, others])
        errors = np.diag(fit)[others] - (x * fit[:count, others]).sum(axis=0)
        fitted_errors.append(errors)
        inside = (x * product(gram[:count, :count], x)).sum(axis=0)
        left_out += np.diag(gram)[others] - 2.0 * (x * gram[:count, others]).sum(axis=0) + inside
    seconds, *without = (_minimum(lags, errors) for errors in fitted_errors)
    spread = np.array(without) - np.mean(without)
    deviation = float(np.sqrt((FOLDS - 1) / FOLDS * (spread**2).sum()))
    none, best = needed("scipy.interpolate", "identify").CubicSpline(lags, left_out)([0.0, seconds]).tolist()
    return seconds, deviation, 1.0 - best / max(none, 1e-300)


def _at_lags(rows: Rows, Q: np.ndarray, scale: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Torques of rows taken later by each of ``lags`` [s], scaled and without forces, (n, dof, lags)."""
    t = rows.signals.t
    spline = needed("scipy.interpolate", "identify").CubicSpline(t, rows.signals.tau, axis=0)
    tau = np.stack([spline(np.clip(t[rows.where] + lag, t[0], t[-1])) for lag in lags], axis=2)
    full = np.concatenate([np.zeros((len(tau), BASE, len(lags))), tau], axis=1)
    return projected(Q, full / scale[:, None])


def _minimum(lags: np.ndarray, errors: np.ndarray) -> float:
    """The lag with the least error, between the steps by a parabola."""
    best = int(np.argmin(errors))
    if not 0 < best < len(lags) - 1:
        return float(lags[best])
    before, here, after = errors[best - 1 : best + 2]
    bend = before - 2 * here + after
    smooth = min(before, after) < SHARP * here  # else the minimum is where it is
    return float(lags[best] + STEP * (0.5 * (before - after) / bend if bend > 0 and smooth else 0.0))
