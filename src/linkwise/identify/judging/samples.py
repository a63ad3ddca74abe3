"""Faults that samples of a recording show by themselves, before any model: columns without a signal or of another one,
signals that are held, cut off or have no sign, rows that repeat or jump, velocities that are no slopes of positions.

Each has a margin that correct recordings keep away from: encoders and currents that are rounded repeat values as well.
"""

from __future__ import annotations

import itertools

import numpy as np

from linkwise.identify.recordings.log import Log
from linkwise.robot.robot import Robot
from linkwise.solve import linear

MOVES = 0.02  # part of a joint's largest speed from which it moves
LIKE = 0.9  # correlation of recorded velocities and slopes from which their ratio is known
USUAL = 0.98  # share of the slopes that are compared, without the largest
FACTOR = 1.1  # ratio of both, or its inverse, from which one of them is wrong
SAME = 1.05  # ratios of joints within this factor of each other are one fault
CUT_OFF = 0.02  # share of samples at the largest torque, one after the other, from which it was cut off
RUN = 3  # samples one after the other that make a stretch
REPEATED = 0.2  # share of moving samples in which a whole row repeats the one before
HELD = 0.35  # share of moving samples in which no torque changes, from which torques are held
STEPS = 3  # rows in which a held signal stays the same, at least
IN_STEP = 0.95  # share of its changes that are this many rows apart, or a multiple
CHANGES = 50  # that make a rhythm
FROZEN = 0.3  # [s] for which a torque stays the same although the robot moves, and
LONGER = 20.0  # times as long as 95 % of its other stretches, from which its recording stopped for that time
ACCELERATES = 0.1  # of the usual bend of positions: a joint at constant speed may have a constant torque
JUMP = 5.0  # times the largest step of a joint around it, and
FAR = 0.05  # part of the joint's range, from which a step of positions is a jump
STANDS = 0.05  # [rad or m] range of positions that is noise where the robot stands
SEVERAL = 2.5  # times the smallest step, of a coarse encoder's counts
AROUND = 5  # steps before and after, with which one is compared
LIKE_OTHERS = 0.2  # part of a step by which it differs from a multiple of those around it, in any joint
NEAR_MULTIPLE = 0.25  # of a step: so near to one, two or three times those around it
LOST = 0.02  # share of such steps that are two or three times as large, from which rows are missing
REGULAR = 0.9  # share of steps that are one, two or three times as large: else positions are noise
SPIKE = 10.0  # times the bend that 95 % of the samples have, and
TALL = 0.5  # part of the range of 98 % of the torques, from which a single sample is a spike
OFTEN = 1e-3  # share of the samples from which spikes matter
TOUCHES = 4  # times that a torque without a sign comes near zero
NEAR_ZERO, AWAY = 0.03, 0.2  # parts of its largest value that count as near, and as away from it
COPIED = 0.99999  # correlation from which two columns are the same signal
LATE = 0.015  # [s] that velocities are later than the slopes of positions, from which they are called late
LESS = 0.5  # part of the difference that is left after shifting them
LEVELS = 200  # different torques of a joint from which it is no coarse converter
SURE = 0.95  # correlation of slopes over short and long times, from which noise of encoders counts little in them
UNLIKE = 0.5  # correlation of velocities and such slopes, under which the column holds something else
SLOWEST = (
    0.02  # [rad/s or m/s] root mean square under which velocities may be below what their sensor resolves
)
WRAPS = 5  # times that a torque steps over nearly its whole range between two samples, and
WHOLE = 0.85  # part of the range that is such a step, and
STEEP = 10.0  # times the step that 95 % of the samples have, from which a counter has overflowed


def sample_faults(robot: Robot, log: Log) -> list[str]:
    """What is wrong with single columns and rows of a recording, in words.

    Args:
        robot: for names of joints.
        log: the recording.
    """
    faults = _empty_columns(robot, log)
    if faults:
        return faults
    moving = _moving_rows(log)
    faults = (
        _disorder(log)
        or _repetitions(log, moving)
        or _columns_on_hold(robot, log, moving)
        or _stopped(robot, log, moving)
    )
    faults = faults or _jumps(robot, log) or _lost_rows(log)
    faults = faults or _velocities(robot, log) or _delay_of_velocities(log) or _no_velocities(robot, log)
    faults = faults or _overflows(robot, log)
    if faults:
        return faults
    faults = [*_torques_without_sign(robot, log), *_spikes(robot, log), *_cut_off(robot, log)]
    return faults or _copies_in_other_units(robot, log)


def _empty_columns(robot: Robot, log: Log) -> list[str]:
    """Columns without a signal, and columns of torques that are those of something else."""
    names = robot.joint_names
    still = [name for name, tau in zip(names, log.tau.T, strict=True) if np.ptp(tau) == 0.0]
    if still:
        return [f"torques of {', '.join(still)} never change: nothing was recorded in this column"]
    still = [name for name, q in zip(names, log.q.T, strict=True) if np.ptp(q) == 0.0]
    if still:
        said = "was locked (lock it in the robot as well, --lock)" if len(still) < log.dof else "did not move"
        return [f"positions of {', '.join(still)} never change: it {said}, or nothing was recorded"]
    for j, k in itertools.combinations(range(log.dof), 2):
        if np.array_equal(log.tau[:, j], log.tau[:, k]):
            return [f"torques of {names[j]} and {names[k]} are the same numbers: one column was taken twice"]
    for j, name in enumerate(names):
        others = {"positions": log.q[:, j], "velocities": None if log.qd is None else log.qd[:, j]}
        for what, x in others.items():
            if x is not None and _alike(log.tau[:, j], x) > COPIED:
                return [f"torques of {name} are its {what}: this column holds something else than torques"]
    return []


def _copies_in_other_units(robot: Robot, log: Log) -> list[str]:
    """Columns of torques that are multiples of each other."""
    for (one, x), (other, y) in itertools.combinations(zip(robot.joint_names, log.tau.T, strict=True), 2):
        if _alike(x, y) > COPIED:
            return [
                f"torques of {one} and {other} are the same signal in other units: one column was taken twice"
            ]
    return []


def _alike(x: np.ndarray, y: np.ndarray) -> float:
    """Magnitude of the correlation."""
    x, y = x - x.mean(), y - y.mean()
    return abs(linear.dot(x, y)) / max(float(np.sqrt((x**2).sum() * (y**2).sum())), 1e-300)


def _velocities(robot: Robot, log: Log) -> list[str]:
    """Recorded velocities by the slopes of positions, over some samples so that noise counts little."""
    if log.qd is None or len(log) < 50:
        return []
    wide = round(0.02 * (len(log) - 1) / max(log.duration, 1e-9))
    gap = max(1, min(wide, len(log) // 200))  # stamps may be far too short
    slope = (log.q[2 * gap :] - log.q[: -2 * gap]) / (log.t[2 * gap :] - log.t[: -2 * gap])[:, None]
    given = log.qd[gap:-gap]
    ratios = {}
    for name, v, s in zip(robot.joint_names, given.T, slope.T, strict=True):
        usual = np.abs(s) <= np.quantile(np.abs(s), USUAL)  # a single jump has a slope of its own
        v, s = v[usual], s[usual]
        sizes = np.sqrt((v**2).sum() * (s**2).sum())
        if s.any() and not v.any():
            return [f"velocities of {name} are zero though it moves: nothing was recorded in this column"]
        if sizes > 0.0 and abs(linear.dot(v, s)) > LIKE * sizes:
            ratios[name] = linear.dot(v, s) / float((s**2).sum())
    wrong = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR < ratio < FACTOR}
    if not wrong:
        return []
    values = np.array(list(wrong.values()))
    middle = float(np.median(values))
    if len(wrong) == len(ratios) > 1 and (np.abs(values / middle - 1.0) < SAME - 1.0).all():
        if middle < 0.0:
            return ["velocities of all joints have the opposite sign of the slopes of their positions"]
        return [
            f"recorded velocities of all joints are {middle:.3g} times the slopes of their positions: time stamps "
            f"have another unit or the rate is another (multiplying times with {1 / middle:.3g}), or velocities "
            "have another unit"
        ]
    said = ", ".join(f"{name} {ratio:.3g}" for name, ratio in wrong.items())
    return [
        f"recorded velocities are not the slopes of positions, but these times as large: {said}; the column of "
        "velocities or that of positions has another unit, sign or order"
    ]


def _moving_rows(log: Log) -> np.ndarray:
    """Rows, but the first, in which positions change as they do in motion, (N − 1,)."""
    steps = np.abs(np.diff(log.q, axis=0))
    usual = np.quantile(steps, 0.9, axis=0)
    near = (steps / np.maximum(usual, 1e-300)).max(axis=1)
    # a row that repeats has no step: a joint moves where it does around it
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(near, 5, mode="edge"), 11).max(axis=1)
    return wide > MOVES


def _disorder(log: Log) -> list[str]:
    """Rows that have nothing to do with those before: squared steps of rows in any order are twice the variance."""
    variance = log.q.var(axis=0)
    steps = (np.diff(log.q, axis=0) ** 2).mean(axis=0)
    if (
        len(log) < CHANGES
        or np.ptp(log.q, axis=0).max() < STANDS
        or not (steps > variance)[variance > 0.0].all()
    ):
        return []
    return [
        "positions of a row have nothing to do with those of the row before: rows are not in the order of time, or a "
        "sample was kept only rarely; sort them by the time at which they were recorded"
    ]


def _repetitions(log: Log, moving: np.ndarray) -> list[str]:
    """Rows that repeat the one before, whole or in their torques, though the robot moves."""
    if moving.sum() < 50:
        return []
    same_q, same_tau = ((np.diff(x, axis=0) == 0.0).all(axis=1)[moving] for x in (log.q, log.tau))
    rows = float((same_q & same_tau).mean())
    if rows > REPEATED:
        return [
            f"{100 * rows:.0f} % of the rows repeat the one before although the robot moves: rows are doubled, or the "
            "signals were recorded more often than they change; leave out the repetitions"
        ]
    held = float((same_tau & ~same_q).mean())
    if held > HELD:
        return [
            f"torques of all joints stay the same in {100 * held:.0f} % of the rows in which positions change: they "
            "were held, because they are recorded at a lower rate or the recording stopped"
        ]
    return []


def _columns_on_hold(robot: Robot, log: Log, moving: np.ndarray) -> list[str]:
    """Signals that change only once in several rows, always after the same number of rows."""
    said = []
    for what, values in (("positions", log.q), ("torques", log.tau)):
        rows = {
            name: rows
            for name, x in zip(robot.joint_names, values.T, strict=True)
            if (rows := _rhythm((np.diff(x) != 0.0) & moving))
        }
        if rows:
            who = "all joints" if len(rows) == log.dof else ", ".join(rows)
            said.append(
                f"{what} of {who} change only once in {max(rows.values())} rows: they were held, because they are "
                "recorded at a lower rate; use the rows in which they change"
            )
    return said


def _stopped(robot: Robot, log: Log, moving: np.ndarray) -> list[str]:
    """Torques that stay exactly the same for a while, zero or between their limits, though their joints accelerate."""
    said, values = {}, []
    for name, tau, q in zip(robot.joint_names, log.tau.T, log.q.T, strict=True):
        ends = np.concatenate([[0], np.flatnonzero((np.diff(tau) != 0.0) | ~moving) + 1, [len(tau)]])
        lengths = np.diff(ends)
        first = int(ends[np.argmax(lengths)])
        last = first + int(lengths.max()) - 1
        stays = float(log.t[last] - log.t[first])
        if stays <= FROZEN or lengths.max() <= LONGER * float(np.quantile(lengths, 0.95)):
            continue
        bend = np.abs(np.diff(q, 2))
        accelerates = float(bend[first : last - 1].mean()) > ACCELERATES * float(bend.mean())
        if accelerates and (tau[first] == 0.0 or tau.min() < tau[first] < tau.max()):
            said[name] = (stays, float(log.t[first]))
            values.append(float(tau[first]))
    if not said:
        return []
    stays, begin = max(said.values())
    who = "all joints" if len(said) == log.dof > 1 else ", ".join(said)
    what = "the same" if any(values) else "zero"
    return [
        f"torques of {who} stay {what} for {stays:.2g} s from {begin:.4g} s on although the robot moves: they were not "
        "recorded there, or the last value was held; leave this part out"
    ]


def _rhythm(changes: np.ndarray) -> int:
    """Number of rows in which a held signal stays the same; 0 where its changes have no rhythm."""
    rows = np.flatnonzero(changes)
    if len(rows) < CHANGES:
        return 0
    step = int(np.median(np.diff(rows)))
    if step < STEPS:
        return 0
    # a clock that slips moves the rhythm: changes are compared with the one before
    return step if float((np.diff(rows) % step == 0).mean()) > IN_STEP else 0


def _jumps(robot: Robot, log: Log) -> list[str]:
    """Steps of positions that are far larger than those before and after."""
    steps = np.abs(np.diff(log.q, axis=0))
    gaps = np.diff(log.t)
    usual = float(np.median(gaps))
    steps /= np.maximum(gaps / max(usual, 1e-300), 1.0)[:, None]  # a gap in the stamps explains a large step
    reach = 10
    said = []
    for name, step, q in zip(robot.joint_names, steps.T, log.q.T, strict=True):
        padded = np.pad(step, reach, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).copy()
        windows[:, reach - 1 : reach + 2] = 0.0
        counts = SEVERAL * float(step[step > 0.0].min(initial=np.inf)) if step.any() else 0.0  # of an encoder
        far = max(FAR * float(np.quantile(q, 0.99) - np.quantile(q, 0.01)), counts)
        rows = np.flatnonzero((step > JUMP * windows.max(axis=1)) & (step > far))
        if len(rows):
            count = f", and {len(rows) - 1} times more" if len(rows) > 1 else ""
            said.append(f"{name} by {q[rows[0] + 1] - q[rows[0]]:.3g} after row {rows[0] + 1}{count}")
    if not said:
        return []
    return [
        f"positions jump ({'; '.join(said)}): rows are missing though the stamps go on, recordings were joined, an "
        "encoder counts from zero again after a turn, or single samples are wrong; cut the recording there"
    ]


def _lost_rows(log: Log) -> list[str]:
    """Steps of all joints together that are two or three times those around them, under stamps that say nothing of it.
    Of noise, or where the clock is irregular, steps are no multiples of each other."""
    gaps = np.diff(log.t)
    steps = np.diff(log.q, axis=0) * (float(np.median(gaps)) / gaps)[:, None]
    steps /= np.maximum(np.sqrt((steps**2).mean(axis=0)), 1e-300)
    if len(steps) < CHANGES:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(steps, ((AROUND, AROUND), (0, 0)), mode="edge"), 2 * AROUND + 1, axis=0
    )
    around = np.median(np.delete(windows, AROUND, axis=-1), axis=-1)
    size = (around**2).sum(axis=1)
    times = (steps * around).sum(axis=1) / np.maximum(size, 1e-300)
    apart = ((steps - times[:, None] * around) ** 2).sum(axis=1)
    fast = (size > float(np.median(size))) & (apart < LIKE_OTHERS**2 * (steps**2).sum(axis=1))
    near = np.abs(times - np.round(times)) < NEAR_MULTIPLE
    once, more = (
        (fast & near & here).sum() for here in (np.round(times) == 1, np.isin(np.round(times), (2, 3)))
    )
    if fast.sum() < CHANGES or more < LOST * fast.sum() or once + more < REGULAR * fast.sum():
        return []
    return [
        f"{100 * more / fast.sum():.2g} % of the steps of positions are two or three times those before and after, of "
        "all joints at once: rows are missing though the stamps go on; record the stamps, or use a part without gaps"
    ]


def _delay_of_velocities(log: Log) -> list[str]:
    """Velocities that are those of an earlier time."""
    if log.qd is None or len(log) < 50:
        return []
    step = log.duration / (len(log) - 1)
    reach = min(round(0.3 / step), len(log) // 10)
    slope = np.gradient(log.q, log.t, axis=0)
    found = []
    for v, s in zip(log.qd.T, slope.T, strict=True):
        if np.ptp(s) == 0.0:
            continue
        inside = v[reach : len(v) - reach]
        left = []
        for shift in range(-reach, reach + 1, max(1, round(0.005 / step))):
            x = s[reach - shift : len(s) - reach - shift]
            factor = linear.dot(x, inside) / max(float((x**2).sum()), 1e-300)
            left.append((float(((inside - factor * x) ** 2).sum()), abs(shift), shift))
        now = next(error for error, _, shift in left if abs(shift) < max(1, round(0.005 / step)))
        error, _, shift = min(left)
        if error < LESS * now:
            found.append(shift * step)
    if len(found) <= log.dof // 2 or abs(float(np.median(found))) < LATE:
        return []
    late = float(np.median(found))
    when = "earlier" if late > 0 else "later"
    return [
        f"recorded velocities are those of positions about {1e3 * abs(late):.2g} ms {when}: they were filtered or are "
        "of another clock; leave the column out"
    ]


def _no_velocities(robot: Robot, log: Log) -> list[str]:
    """Columns of velocities that hold something else: means over some samples do not follow the slopes of positions
    there, which noise hardly disturbs."""
    if log.qd is None or len(log) < 200:
        return []
    t, q, sums = log.t, log.q, np.cumsum(log.qd, axis=0)
    gap = max(2, min(round(0.04 * (len(log) - 1) / max(log.duration, 1e-9)), len(log) // 50))

    def slopes(wide: int) -> np.ndarray:
        here = slice(gap - wide // 2, len(q) - gap - wide // 2)
        there = slice(here.start + wide, here.stop + wide)
        return (q[there] - q[here]) / (t[there] - t[here])[:, None]

    near, far = slopes(gap), slopes(2 * gap)
    given = (
        sums[gap - gap // 2 + gap : len(q) - gap // 2] - sums[gap - gap // 2 : len(q) - gap - gap // 2]
    ) / gap
    said = []
    for name, v, s, other in zip(robot.joint_names, given.T, near.T, far.T, strict=True):
        moves = float(np.sqrt((s**2).mean())) > SLOWEST and np.ptp(v) > 0.0
        if moves and _alike(s, other) > SURE and _alike(v, s) < UNLIKE:
            said.append(name)
    if not said:
        return []
    return [
        f"recorded velocities of {', '.join(said)} do not follow the slopes of positions: the column holds something "
        "else, such as accelerations or another joint; leave the velocities out, or name the right column"
    ]


def _overflows(robot: Robot, log: Log) -> list[str]:
    """Torques that step from one end of their range to the other again and again: a whole number overflows."""
    said = []
    reach = min(3, len(log) // 4)
    for name, tau, q in zip(robot.joint_names, log.tau.T, log.q.T, strict=True):
        steps = np.abs(np.diff(tau))
        far = (steps > WHOLE * np.ptp(tau)) & (steps > STEEP * float(np.quantile(steps, 0.95)))
        rows = np.flatnonzero(far)
        rows = rows[(rows >= reach) & (rows < len(q) - reach - 1)]
        # dry friction of a joint that carries nothing steps as far, where it turns back
        before, after = q[rows] - q[rows - reach], q[rows + 1 + reach] - q[rows + 1]
        onward = int((before * after > 0.0).sum())
        if onward >= WRAPS and onward > WHOLE * len(rows):
            said.append(f"{name} {len(rows)} times")
    if not said:
        return []
    return [
        f"torques step from one end of their range to the other between two samples ({', '.join(said)}): a "
        "counter or a whole number overflows; add the range where it does"
    ]


def _torques_without_sign(robot: Robot, log: Log) -> list[str]:
    """Torques that come down to zero again and again and never go through it."""
    bare = []
    for name, tau in zip(robot.joint_names, log.tau.T, strict=True):
        size = np.abs(tau) / max(float(np.abs(tau).max()), 1e-300)
        # noise near zero counts once: in between, the torque has to be away from it
        places = np.where(size < NEAR_ZERO, -1, np.where(size > AWAY, 1, 0))
        times = int((np.diff(places[places != 0]) == -2).sum())
        if (tau.min() >= 0.0 or tau.max() <= 0.0) and times >= TOUCHES:
            bare.append(name)
    if not bare:
        return []
    return [
        f"torques of {', '.join(bare)} come down to zero again and again and never change their sign: only their size "
        "was recorded"
    ]


def _spikes(robot: Robot, log: Log) -> list[str]:
    """Single samples of torques that are far from both neighbours."""
    said = []
    for name, tau in zip(robot.joint_names, log.tau.T, strict=True):
        bend = np.abs(tau[1:-1] - 0.5 * (tau[2:] + tau[:-2]))
        alone = np.minimum(np.abs(np.diff(tau))[1:], np.abs(np.diff(tau))[:-1])
        low, high = np.quantile(tau, [0.01, 0.99])
        size = max(SPIKE * float(np.quantile(bend, 0.95)), TALL * float(high - low))
        outside = (tau[1:-1] > high + TALL * (high - low)) | (tau[1:-1] < low - TALL * (high - low))
        count = int(((alone > size) & outside).sum())
        if count > OFTEN * len(tau):
            said.append(f"{name} {count}")
    if not said:
        return []
    return [
        f"torques have single samples far from their neighbours ({', '.join(said)}): messages were damaged; leave "
        "these rows out, or use the robust estimator"
    ]


def _cut_off(robot: Robot, log: Log) -> list[str]:
    cut = []
    for name, tau in zip(robot.joint_names, log.tau.T, strict=True):
        for sign in (1.0, -1.0):
            top = float((sign * tau).max())
            at = sign * tau == top
            stretches = at[RUN - 1 :].copy()
            for k in range(1, RUN):
                stretches &= at[RUN - 1 - k : len(at) - k]
            if top > 0.0 and float(stretches.mean()) > CUT_OFF and len(np.unique(tau)) > LEVELS:
                cut.append(f"{name} at {sign * top:.4g}")
    if not cut:
        return []
    return [f"torques look cut off: {', '.join(cut)}; the drive or its sensor was at its limit"]


__all__ = ["sample_faults"]
