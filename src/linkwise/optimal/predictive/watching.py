"""Which measured states predictive control believes, and what its model misses. Arithmetic over any scalar.

Every sample is compared with the state that the last torques should have led to. A reading that no working sensor gives
(it is not a number, or further from the prediction than the arm can be) is replaced by the prediction; several of them
in a row are a fault. So is a position that stays the same, bit by bit, while torques should have moved the joint: a
frozen encoder, or a joint that is blocked. Where it should be by now is asked of the model, from there on and not from
the reading: an arm that stands upright falls. A fault stays until the memory is set to zeros; the joints in question
then go on as predicted, so that the arm can be braked.

Where readings are believed, the difference between measured and predicted velocities is integrated to a constant
acceleration that the model misses (a payload, other masses, friction): a disturbance observer of one time constant.
What it says while a position does not change may come from an encoder that is frozen, so control does not use it yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.control.bounds import all_finite, or_zero
from linkwise.scalar import Condition, Scalar, clipped, where

NO_FAULT, IMPLAUSIBLE, STILL = 0.0, 1.0, 2.0
"""Codes: none; readings that cannot be; a position that does not change though the joint should move."""
PATIENCE = 4.0
"""Implausible samples in a row that are a fault."""
TIME_CONSTANT = 0.03
"""[s] of the disturbance observer."""
LESSON = 2.0
"""[rad/s² or m/s²] that one sample may add to a disturbance of up to ``LARGEST``: one bad reading does little harm."""
LARGEST, UNREST = 40.0, 4.0
"""[rad/s² or m/s²], disturbances: a larger one is none of masses or friction, but comes from readings that cannot be.
Joints with dry friction get what it causes on top of it: that of a light joint is a large acceleration.
The second: a change of their sum while the position of a joint without dry friction does not change at all is a
fault, because the motion of a joint whose encoder is frozen disturbs the others."""
LONGEST = 0.1
"""[s] between two samples after which nothing is predicted: the next one is believed."""
USUAL_SPEED = 10.0
"""[rad/s or m/s] in place of limits that are larger or not known."""
SPEED_GATE, POSITION_GATE = 0.3, (0.01, 0.005)
"""Largest difference between measured and predicted velocities, by the speed limit; and of positions [rad], [m] beyond
what that makes in a sample."""
STILL_MOTION, STILL_SPEED, STILL_START = (0.05, 0.02), 0.25, 0.1
"""Predicted motion [rad], [m] of a joint whose position does not change that is a fault; or a tenth of it at a quarter
of the speed limit."""
STILL_TIME = 0.1
"""[s] that a position does not change before disturbances of other joints count: at the start all are learnt."""
FADING = 1.0
"""[s] over which the predicted motion of a joint whose position does not change is forgotten."""
PARTS = (
    *("position", "velocity", "disturbance", "apparent", "lesson", "before"),
    *("still_speed", "still_motion", "still_time", "suspect", "raw", "lost"),
)
SINGLES = ("bad", "fault", "joint", "known")


@dataclass(frozen=True)
class Memory:
    """What is kept from sample to sample: n numbers of each of ``PARTS``, one of each of ``SINGLES``."""

    dof: int

    @property
    def size(self) -> int:
        """Numbers in all; zeros before the first sample."""
        return len(PARTS) * self.dof + len(SINGLES)

    def split(self, memory: Sequence[Any]) -> dict[str, Any]:
        """Lists and single numbers by name."""
        n = self.dof
        found: dict[str, Any] = {name: list(memory[k * n : (k + 1) * n]) for k, name in enumerate(PARTS)}
        return found | dict(zip(SINGLES, memory[len(PARTS) * n :], strict=True))

    def joined(self, parts: dict[str, Any]) -> list[Any]:
        """The memory of these parts."""
        return [v for name in PARTS for v in parts[name]] + [parts[name] for name in SINGLES]


@dataclass(frozen=True)
class Watched:
    """The result for one sample."""

    state: list[Scalar]
    """Positions and velocities to control with: measured, or predicted where a reading is not believed."""
    modelled: list[Scalar]
    """Positions and velocities by the model of joints whose readings do not change; of others those above. What torques
    cause is asked there: an arm that stands upright falls further from where it has fallen to."""
    disturbance: list[Scalar]
    """Accelerations that the model misses [rad/s² or m/s²]."""
    fault: Scalar
    """One of the codes."""
    joint: Scalar
    """The number of the joint in question; −1 without a fault."""
    doubted: Scalar
    """1 where some reading of this sample was not believed."""
    known: Scalar
    """1 from the first sample of numbers on."""
    memory: list[Scalar]


@dataclass(frozen=True)
class _Reading:
    """One joint in one sample."""

    position: Scalar
    velocity: Scalar
    modelled: tuple[Scalar, Scalar]
    disturbance: Scalar
    apparent: Scalar
    """The disturbance that readings show, whether other joints are suspected or not."""
    lesson: Scalar
    """What this sample adds to it, once the next one shows that the position still changes."""
    before: Scalar
    still_speed: Scalar
    still_motion: Scalar
    still_time: Scalar
    """[s] since the position last changed."""
    suspect: Scalar
    """1 where the joint should have moved a little since its position last changed."""
    doubted: Condition
    frozen: Condition


@dataclass(frozen=True)
class _Verdict:
    """All joints in one sample."""

    doubted: Scalar
    bad: Scalar
    """Samples in a row with a reading that was not believed."""
    fault: Scalar
    joint: Scalar
    begins: Condition
    """Whether the fault is one of this sample."""


def watched(
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    acceleration: Sequence[Scalar],
    period: Scalar,
    speed: Sequence[Scalar],
    revolute: Sequence[bool],
    rubbing: Sequence[float],
    memory: Sequence[Scalar],
) -> Watched:
    """The rule for one sample.

    Args:
        q: measured positions, n scalars.
        qd: measured velocities.
        acceleration: that the torques of the last sample should cause.
        period: since the last sample [s].
        speed: limits of speed.
        revolute: whether a joint turns.
        rubbing: accelerations that the dry friction of a joint causes, 0 without any; it may hold the joint.
        memory: of the last sample; zeros at first.
    """
    layout = Memory(len(q))
    sound = all_finite(memory)
    old = layout.split([where(sound, value, 0.0) for value in memory])
    good = all_finite([*q, *qd])
    had_one = old["known"] > 0.5
    fresh = (old["known"] <= 0.5) | (period > LONGEST)
    h = clipped(or_zero(period), 0.0, LONGEST)
    unrest: Scalar = 0.0 * h
    for value in old["apparent"]:
        unrest = unrest + value
    suspected = _suspected(q, old, 0.0 * h)
    readings = [
        _reading(
            *(q[i], qd[i], or_zero(acceleration[i]), h, clipped(speed[i], 0.0, USUAL_SPEED), revolute[i]),
            {name: old[name][i] for name in PARTS},
            good,
            fresh,
            had_one,
            suspected,
            rubbing[i],
            unrest,
        )
        for i in range(len(q))
    ]
    verdict = _verdict(readings, old, 0.0 * h)
    parts = _kept(q, good, readings, verdict, old)
    return Watched(
        [*parts["position"], *parts["velocity"]],
        [*(reading.modelled[0] for reading in readings), *(reading.modelled[1] for reading in readings)],
        parts["disturbance"],
        verdict.fault,
        verdict.joint,
        verdict.doubted,
        parts["known"],
        layout.joined(parts),
    )


def _suspected(q: Sequence[Scalar], old: dict[str, Any], zero: Scalar) -> Scalar:
    """1 where some joint should have moved a little and has not: nothing is learnt until that is clear."""
    suspected = zero
    for x, raw, suspect in zip(q, old["raw"], old["suspect"], strict=True):
        suspected = where((abs(x - raw) <= 0.0) & (suspect > 0.5), 1.0, suspected)
    return suspected


def _verdict(readings: Sequence[_Reading], old: dict[str, Any], zero: Scalar) -> _Verdict:
    """What the readings of all joints say together; a fault stays."""
    doubted = frozen = zero
    culprit: Scalar = zero - 1.0
    for i, reading in enumerate(readings):
        doubted = where(reading.doubted, 1.0, doubted)
        frozen = where(reading.frozen, 1.0, frozen)
        culprit = where((culprit < -0.5) & (reading.doubted | reading.frozen), float(i), culprit)
    bad = where(doubted > 0.5, old["bad"] + 1.0, 0.0)
    fault = where(frozen > 0.5, STILL, where(bad >= PATIENCE, IMPLAUSIBLE, NO_FAULT))
    before = old["fault"] > 0.5
    begins = (fault > 0.5) & (old["fault"] <= 0.5)
    fault = where(before, old["fault"], fault)
    joint = where(before, old["joint"], where(fault > 0.5, culprit, -1.0))
    return _Verdict(doubted, bad, fault, joint, begins)


def _kept(
    q: Sequence[Scalar],
    good: Condition,
    readings: Sequence[_Reading],
    verdict: _Verdict,
    old: dict[str, Any],
) -> dict[str, Any]:
    """The parts of the memory after this sample."""
    known = where(good, 1.0, old["known"])
    return {
        "position": [reading.position for reading in readings],
        "velocity": [reading.velocity for reading in readings],
        "disturbance": [reading.disturbance for reading in readings],
        "apparent": [reading.apparent for reading in readings],
        "lesson": [reading.lesson for reading in readings],
        "before": [reading.before for reading in readings],
        "still_speed": [reading.still_speed for reading in readings],
        "still_motion": [reading.still_motion for reading in readings],
        "still_time": [reading.still_time for reading in readings],
        "suspect": [reading.suspect for reading in readings],
        "raw": [where(good, x, last) for x, last in zip(q, old["raw"], strict=True)],
        "lost": [
            where(verdict.begins & (reading.doubted | reading.frozen), 1.0, last)
            for reading, last in zip(readings, old["lost"], strict=True)
        ],
        "bad": verdict.bad,
        "fault": verdict.fault,
        "joint": verdict.joint,
        "known": known,
    }


def _reading(
    q: Scalar, qd: Scalar, acceleration: Scalar, h: Scalar, speed: Scalar, revolute: bool,
    old: dict[str, Scalar], good: Condition, fresh: Condition, had_one: Condition, suspected: Scalar,
    rubs: float, unrest: Scalar,
) -> _Reading:  # fmt: skip
    before: Any = old["velocity"]
    v = before + h * acceleration
    x = old["position"] + 0.5 * h * (before + v)
    gate = SPEED_GATE * speed
    fast_enough = abs(qd - v) <= gate
    plausible = fast_enough & (abs(q - x) <= h * gate + POSITION_GATE[not revolute])
    lost = old["lost"] > 0.5
    believed = good & (fresh | plausible) & (old["lost"] <= 0.5)
    # a position that does not change, bit by bit, while torques, or a tachometer, say that the joint moves
    same = (abs(q - old["raw"]) <= 0.0) & had_one
    still_time = where(same, old["still_time"] + h, 0.0)
    fade = 1.0 - (1.0 / FADING) * h
    free_speed = fade * old["still_speed"] + h * acceleration
    measured_faster = good & (abs(qd) > abs(free_speed))
    along = where(measured_faster, qd, free_speed)
    free_motion = fade * old["still_motion"] + h * along
    most = STILL_MOTION[not revolute]
    fast = (abs(free_speed) > STILL_SPEED * speed) & (abs(free_motion) > STILL_START * most)
    moving = fast | (abs(free_motion) > most)
    if not rubs:
        moving = moving | ((still_time > STILL_TIME) & (abs(unrest - old["before"]) > UNREST))
    frozen = same & moving & (old["lost"] <= 0.5)
    suspect = where(abs(free_motion) > STILL_START * most, 1.0, old["suspect"])
    position = where(frozen, q + free_motion, where(believed, q, x))
    # a tachometer may still work where an encoder does not; a speed of exactly zero may come from the encoder
    tachometer = good & lost & fast_enough & (abs(qd) > 0.0)
    velocity = where(frozen, along, where(believed | tachometer, qd, v))
    # nothing is learnt from a position that does not change: it would hide that it should. A sample counts when the
    # position changes again: the first reading of a frozen encoder is that of a working one, but for its speed of zero
    apparent = old["apparent"] + where(fresh | same, 0.0, old["lesson"])
    largest, most_learnt = LARGEST + rubs, LESSON * (1.0 + rubs / LARGEST)
    strained = abs(apparent) > largest
    apparent = clipped(apparent, -largest, largest)
    known = old["disturbance"]
    learnt = where(fresh | same, 0.0, where(believed | tachometer, 1.0, 0.0)) > 0.5
    beyond = qd - v - h * (apparent - known)
    certain = where(same | (suspected > 0.5), 0.0, 1.0) > 0.5
    apart = same & (old["lost"] <= 0.5)
    lesson = clipped(beyond / (TIME_CONSTANT + 2.0 * h), -most_learnt, most_learnt)
    lesson = where(learnt, lesson, where(same, old["lesson"], 0.0))
    return _Reading(
        position,
        velocity,
        (where(apart, q + free_motion, position), where(apart, along, velocity)),
        where(certain, known + clipped(apparent - known, -most_learnt, most_learnt), known),
        apparent,
        lesson,
        where(still_time > STILL_TIME, old["before"], unrest),
        where(same, free_speed, where(abs(v) > abs(velocity), v, velocity)),
        where(same, free_motion, 0.0),
        still_time,
        where(same, suspect, 0.0),
        where(believed, where(learnt & strained, 1.0, 0.0), where(lost, 0.0, 1.0)) > 0.5,
        frozen,
    )
