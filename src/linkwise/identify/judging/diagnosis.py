"""Why a robot does not explain a recording: the cause in words, and what the residual would be without it.

Some hundred samples are fitted under every hypothesis (``hypotheses``, and directions of gravity): by least squares of
the base parameters, which takes milliseconds, then the most promising ones by possible bodies with friction that
brakes. A hypothesis is reported where residuals of recorded torques fall far and none of them rises. Where the file has
masses, their torques are compared with the measured ones as well: they notice what other masses could explain, such as
a robot that hangs from the ceiling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.identify.errors import LogError
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.estimation.weights import FINEST, combined, solved
from linkwise.identify.judging.hypotheses import Hypothesis, Recording, hypotheses
from linkwise.identify.judging.samples import sample_faults
from linkwise.identify.judging.screening import (
    EARTH,
    Agreement,
    Screen,
    Weighing,
    thinned,
    torque_sizes,
)
from linkwise.identify.judging.searched import searched
from linkwise.identify.recordings.layout import Layout
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import Signals
from linkwise.identify.recordings.units import check
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

GOOD = 0.03  # relative residual of every joint under which no other cause is sought
UNLIKE_ANY = 0.5  # the same where no hypothesis helps: another robot
VISIBLE = (
    0.2  # share of a joint's torque that is not friction, of one joint at least, where masses are compared
)
UNLIKE = 0.3  # agreement with the file's masses under which they contradict the recording
PROMISING = (
    1.1  # times that residuals fall by least squares, from which a hypothesis is fitted by possible bodies
)
TIED = 0.9  # the same for hypotheses that only possible bodies or the file's masses can distinguish
IMPOSSIBLE = (
    1.3  # residual by possible bodies per that of least squares from which bodies or friction are impossible
)
LOWER, MUCH_LOWER = (
    1.3,
    1.6,
)  # times that residuals fall on average, and that of one joint, where a cause is reported
FAR_LOWER = 2.0  # times that the residual of a joint falls whose torque alone is corrected
AS_GOOD = 0.95  # the same where the file's masses decide
SMALL = 0.05  # torques under this part of the largest but one count less
RISE = 0.85  # the same for a joint whose residual rises: more is only accepted where others fall far
NO_RISE = 0.95  # the same for another clock, which is that of all joints,
CLOCK = 1.6  # and times that residuals fall on average: right ones 2.2 and more, noise of accelerations 1.3
CONVINCED = 0.5  # rise of the agreement with the file's masses from which it decides
TRIED = 5  # hypotheses that are fitted by possible bodies, for each of the reasons to do so
CAUSES = 3  # at most so many together
MOST_EQUALS = 3  # hypotheses that explain as much as the best: of more, none is reported
CLEAR = 1.1  # times that residuals fall more than with every other hypothesis, where one alone is reported
SURER = 0.2  # or by how much the file's masses agree better
AGREES = 0.7  # agreement with the file's masses that a cause leads to,
DECISIVE = 2.5  # or times that residuals fall on average where those masses may be guesses
HEAVY = math.sqrt(2.0)  # times the file's weight from which it is nearer to twice than to once
LIKELIER = 1.3  # times nearer to the file's masses, where these decide between two causes
STEPS = 4  # of the search for a direction of gravity
ALONG_AXIS = 0.07  # [rad] from an axis of the base: gravity is said to be along it
TILTED = 0.09  # [rad] smallest change of direction that is reported
OTHER_SIZE = 2.0  # times the torques of the file's masses from which the file or the units are doubted


@dataclass(frozen=True)
class Fitted:
    """A hypothesis and the relative residuals under it, by recorded column of torques, (n,)."""

    hypothesis: Hypothesis
    Y: np.ndarray
    residuals: np.ndarray
    agreement: float


@dataclass(frozen=True)
class Diagnosis:
    """Why a robot does not explain recordings: ``causes`` in the recordings, from which further errors follow; and
    ``remarks`` about sizes and limits, from which none does. ``contradicted``: causes are signs, orders, zeros, units
    or gravity that differ from the robot's, so whatever is fitted to these recordings is not this robot."""

    causes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    contradicted: bool = False


def diagnose(robot: Robot, signals: Sequence[Signals]) -> Diagnosis:
    """Causes for which this robot does not explain these recordings; nothing where it does.

    Args:
        robot: the robot as it was given.
        signals: the conditioned recordings.
    """
    found = tuple(
        dict.fromkeys(
            words for s in signals for words in (_units(s.log, robot) or sample_faults(robot, s.log))
        )
    )
    if found:
        return Diagnosis(found)
    with one_thread():
        screen = Screen(robot, signals[0].log.axes)
        if not screen.determined_by(signals):
            return Diagnosis()
        search = Search(screen, thinned(signals, np.asarray(robot.gravity, dtype=float)))
        found = search.causes() if search.suspicious else []
    sizes = _sizes(robot, search.start_agreement) if screen.trusted else []
    if found and not (sizes and search.of_drives):
        return Diagnosis(tuple(found), contradicted=True)
    if search.weightless and not search.explained:
        return Diagnosis((_partly_weightless(robot, screen.weighed(search.recording)),), contradicted=True)
    unlike = screen.trusted and search.surely_unlike(UNLIKE_ANY)
    other = search.suspicious and unlike and not search.explained
    limits = _limits(robot, signals) if search.suspicious else []
    if other and not limits:
        return Diagnosis(remarks=(_another(robot),))
    return Diagnosis(remarks=(*sizes, *limits))


def diagnose_late(robot: Robot, signals: Sequence[Signals], corrected: Sequence[Signals]) -> Diagnosis:
    """The same of recordings with a lag: what the corrected ones do not show was caused by the lag.

    Args:
        robot: the robot as it was given.
        signals: the conditioned recordings. A lag found in them may be an effect of a cause.
        corrected: the same without the lag.
    """
    found = diagnose(robot, signals)
    if not found.causes:
        return found
    after = diagnose(robot, corrected)
    return found if after.causes else after


class Search:
    """Tries hypotheses on a recording, one on top of the other."""

    def __init__(self, screen: Screen, recording: Recording):
        self.screen, self.recording = screen, recording
        self.robot = screen.robot
        size = torque_sizes(recording.tau)
        # of the largest but one: a single column may be in another unit
        usual = float(np.sort(size)[-2:].min())
        self.weights = np.minimum(1.0, size / (SMALL * usual))
        Y = screen.columns(recording)
        self.start_agreement = screen.agreement(recording, Y)
        self.start = self._fit(Hypothesis("", "", recording), Y)
        self.weightless = screen.trusted and screen.weighed(recording).weightless
        """Whether torques have the inertia of the file's masses, but not their weight."""
        self.of_drives = False
        """Whether the causes are torques of single joints alone: with other gains of all drives some stand out."""
        self.explained = False
        """Whether a hypothesis was accepted, told from others or not, that the file's masses agree with."""

    @property
    def suspicious(self) -> bool:
        """Whether a cause should be sought at all."""
        return (
            float(self.start.residuals.max()) > GOOD or self.weightless or self._masses_contradict(self.start)
        )

    def _masses_contradict(self, fitted: Fitted) -> bool:
        return self.screen.trusted and fitted.agreement < UNLIKE

    def surely_unlike(self, limit: float) -> bool:
        """Whether the agreement with the file's masses is below a limit by two standard errors: some seconds of a
        motion may show little of them. Where friction is nearly all of every torque, what is left of it is not masses.

        Args:
            limit: agreement.
        """
        if not (self.start_agreement.share >= VISIBLE).any():
            return False
        agreement, deviation = self.screen.agreement_range(self.recording, self.start.Y)
        return agreement + 2.0 * deviation < limit

    def causes(self) -> list[str]:
        """What was wrong, in one sentence for all causes together."""
        now, said, equals = self.start, [], []
        for number in range(CAUSES):
            better, rivals = self._better(now)
            if better is None:
                break
            self.explained |= not self.screen.trusted or better.agreement >= UNLIKE_ANY
            if number == 0:  # of several causes each may be found first
                equals = [rival for rival in rivals if not self._clearer(now, better, rival)]
            said.append(better.hypothesis)
            now = better
        if not said or not self._is_convincing(now):
            return []
        self.of_drives = all(each.drive is not None for each in said)
        if not equals:
            return [_sentence(self.robot, said, self.start, now)]
        if len(said) > 1 or len(equals) >= MOST_EQUALS:
            return []
        each = [_sentence(self.robot, [one.hypothesis], self.start, one) for one in (now, *equals)]
        return [f"one of these, which torques do not distinguish: {'; or '.join(each)}"]

    def _clearer(self, now: Fitted, best: Fitted, rival: Fitted) -> bool:
        """Whether a hypothesis is better than another one by the stated margin, or means the same."""
        if best.hypothesis.corrected.same_as(rival.hypothesis.corrected):
            return True
        if self.screen.trusted and best.agreement - rival.agreement >= SURER:
            return True
        return self._fall(now, best) >= CLEAR * self._fall(now, rival)

    def _is_convincing(self, last: Fitted) -> bool:
        """Whether the file's masses, where there are some, agree with the corrected recording."""
        if not self.screen.trusted or last.agreement >= AGREES or self._takes_weight_away(last):
            return True
        drive = last.hypothesis.drive
        if drive is not None and self._falls(self.start.residuals, last.residuals)[drive] >= DECISIVE:
            return True
        return self._fall(self.start, last) >= DECISIVE

    def _better(self, now: Fitted) -> tuple[Fitted | None, list[Fitted]]:
        """The best hypothesis on top of others, None where none explains the recording much better, and the others
        that would be accepted."""
        tried = [self._fit(h, Y) for h, Y in self._shortlist(now)]
        good = [each for each in tried if self._is_accepted(now, each) and not self._leaves_weightless(each)]
        good = self._of_likely_size(good)
        best = max(good, key=lambda each: self._fall(now, each) * (1.0 + 0.1 * each.agreement), default=None)
        return best, [each for each in good if each is not best]

    def _of_likely_size(self, good: list[Fitted]) -> list[Fitted]:
        """Without those of another clock, or of weight that counts twice, that need other masses than the file's: links
        twice as heavy that move more slowly have the same torques as weight that counts twice."""
        clocks, weights = ([f for f in good if getattr(f.hypothesis, kind)] for kind in ("clock", "weight"))
        if not (clocks and weights and self.screen.trusted):
            return good
        sizes = [abs(math.log(self.screen.size(f.hypothesis.corrected, f.Y))) for f in (*clocks, *weights)]
        unlikely = [
            f
            for f, size in zip((*clocks, *weights), sizes, strict=True)
            if size > min(sizes) + math.log(LIKELIER)
        ]
        return [f for f in good if not any(f is each for each in unlikely)]

    def _is_accepted(self, now: Fitted, other: Fitted) -> bool:
        fall = self._falls(now.residuals, other.residuals)
        if fall.min() * np.sqrt(max(self._fall(now, other), 1.0)) < RISE:
            return False
        if other.hypothesis.clock and (fall.min() < NO_RISE or self._fall(now, other) < CLOCK):
            return False
        if other.hypothesis.weight and not self._is_heavy():
            return False
        if self._fall(now, other) >= LOWER and fall.max() >= MUCH_LOWER:
            return True
        drive = other.hypothesis.drive
        if drive is not None and fall[drive] >= FAR_LOWER:
            return True
        if self._takes_weight_away(other) and now is self.start:
            return self._fall(now, other) >= AS_GOOD
        surer = self.screen.trusted and other.agreement - now.agreement >= CONVINCED
        return surer and self._fall(now, other) >= AS_GOOD

    def _is_heavy(self) -> bool:
        """Whether torques have the inertia of the file's masses, and twice their weight."""
        if not self.screen.trusted:
            return False
        found = self.screen.weighed(self.recording)
        return vector_length(found.gravity) > HEAVY * EARTH and found.inertial > 1.0 / HEAVY

    def _takes_weight_away(self, fitted: Fitted) -> bool:
        """Whether a hypothesis takes gravity away from torques that have none."""
        return self.weightless and not fitted.hypothesis.corrected.gravity.any()

    def _leaves_weightless(self, fitted: Fitted) -> bool:
        """Whether torques without weight stay so under a hypothesis: it explains what a wrong compensation left."""
        if not self.weightless or self._takes_weight_away(fitted):
            return False
        return self.screen.weighed(fitted.hypothesis.corrected).weightless

    def _falls(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """How many times each residual falls; less for torques that are so small that anything may disturb them."""
        return (np.maximum(before, FINEST) / np.maximum(after, FINEST)) ** self.weights

    def _fall(self, before: Fitted, after: Fitted) -> float:
        return _mean(self._falls(before.residuals, after.residuals))

    def _shortlist(self, now: Fitted) -> list[tuple[Hypothesis, np.ndarray]]:
        """Hypotheses worth a fit by possible bodies, with their columns."""
        recording, screen = now.hypothesis.corrected, self.screen
        squares = by_channel(recording, screen.least_squares(recording, now.Y))
        ranked = []
        for h in itertools.chain(
            hypotheses(self.robot, recording), searched(screen, recording, now.Y), self._gravities(now)
        ):
            if h.clock and self.weightless:
                continue
            Y = screen.columns(h.corrected) if h.moves else now.Y
            residuals = by_channel(h.corrected, screen.least_squares(h.corrected, Y))
            ranked.append((_mean(self._falls(squares, residuals)), h, Y))
        ranked.sort(key=lambda each: -each[0])
        chosen = [(h, Y) for fall, h, Y in ranked if fall >= PROMISING][:TRIED]
        impossible = now.residuals > IMPOSSIBLE * np.maximum(squares, FINEST)
        if impossible.any() or self._masses_contradict(now):
            ties = [(h, Y) for fall, h, Y in ranked if TIED <= fall < PROMISING]
            ties.sort(key=lambda each: -screen.agreement(each[0].corrected, each[1]).overall)
            signs = [each for each in ties[TRIED:] if self._may_be_signs(each[0], impossible)]
            chosen += [*ties[:TRIED], *signs]
        if self.weightless and now is self.start:
            found = [(h, Y) for _, h, Y in ranked if not h.corrected.gravity.any()]
            chosen += [each for each in found if not any(each[0] is h for h, _ in chosen)]
        return chosen

    def _may_be_signs(self, hypothesis: Hypothesis, impossible: np.ndarray) -> bool:
        """Whether it changes the sign of a joint that needs impossible bodies or friction, or those of all joints."""
        if hypothesis.all_joints:
            return int(impossible.sum()) > 1
        return hypothesis.drive is not None and bool(impossible[hypothesis.drive])

    def _fit(self, hypothesis: Hypothesis, Y: np.ndarray) -> Fitted:
        recording = hypothesis.corrected
        residuals = by_channel(recording, self.screen.possible(recording, Y))
        return Fitted(hypothesis, Y, residuals, self.screen.agreement(recording, Y).overall)

    # -- gravity ------------------------------------------------------------------------------------------------------

    def _gravities(self, now: Fitted) -> Iterator[Hypothesis]:
        """Gravity along the axes of the base, along the directions that explain most, and none."""
        recording = now.hypothesis.corrected
        parts = self.screen.by_gravity(recording.q)[..., self.screen.base]
        size = vector_length(recording.gravity) or EARTH
        Y = now.Y[..., self.screen.base] - combined(recording.gravity, parts)
        corners = [np.array(d) for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)]
        starts = [size * d / vector_length(d) for d in corners]

        def residual(gravity: np.ndarray) -> float:
            return _mean(solved(self.screen.squares(recording, Y + combined(gravity, parts)))[0])

        best = sorted(starts, key=residual)[:2]
        refined = [
            self._direction_near(recording, Y, parts, g) for g in (recording.gravity, *best) if g.any()
        ]
        axes = [size * sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]
        tried = [recording.gravity]
        for gravity in (*axes, *refined, np.zeros(3)):
            if min(_angle(gravity, other) for other in tried) > TILTED:
                tried.append(gravity)
                words = _gravity_words(gravity)
                yield Hypothesis(words[0], words[1], replace(recording, gravity=gravity))

    def _direction_near(
        self, recording: Recording, Y: np.ndarray, parts: np.ndarray, g: np.ndarray
    ) -> np.ndarray:
        """The direction near g that explains most, by Gauss and Newton's method."""
        size = vector_length(g)
        for _ in range(STEPS):
            here = Y + combined(g, parts)
            _, x = solved(self.screen.squares(recording, here))
            slopes = np.moveaxis(product(parts, x), 0, -1)  # of the torques by gravity, (N, n, 3)
            _, both = solved(self.screen.squares(recording, np.concatenate([here, slopes], axis=-1)))
            moved = g + both[-3:]
            g = size * moved / max(vector_length(moved), 1e-9)
        nearest = size * np.eye(3)[int(np.argmax(np.abs(g)))] * np.sign(g[int(np.argmax(np.abs(g)))])
        return nearest if _angle(g, nearest) < ALONG_AXIS else g


def by_channel(recording: Recording, residuals: np.ndarray) -> np.ndarray:
    """Residuals of joints in the order of the recorded columns of torques."""
    placed = np.empty_like(residuals)
    placed[recording.channels] = residuals
    return placed


def _mean(positive: np.ndarray) -> float:
    """Geometric mean: of residuals, every joint counts, however small its torques."""
    return math.exp(float(linear.logarithm(positive).mean()))


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    """[rad] between two vectors; π where one of them is zero."""
    sizes = vector_length(a) * vector_length(b)
    return float(np.arccos(np.clip(linear.dot(a, b) / sizes, -1.0, 1.0))) if sizes else np.pi


# -- words ------------------------------------------------------------------------------------------------------------


def _gravity_words(gravity: np.ndarray) -> tuple[str, str]:
    if not gravity.any():
        return "torques look compensated for gravity", "gravity=(0, 0, 0) (--gravity 0,0,0)"
    numbers = [f"{round(float(g), 2) + 0.0:g}" for g in gravity]
    along = np.abs(gravity) > 0.999 * vector_length(gravity)
    where = f"{'+' if gravity[along][0] > 0 else '−'}{'xyz'[int(np.argmax(along))]}" if along.any() else ""
    where = where or f"({', '.join(numbers)})"
    return (
        f"gravity looks directed along {where} of the base in this recording",
        f"gravity=({', '.join(numbers)}) (--gravity {','.join(numbers)})",
    )


def _sentence(robot: Robot, said: Sequence[Hypothesis], before: Fitted, after: Fitted) -> str:
    """Causes, what to do, and what it does to the residuals."""
    causes, remedies = (
        " and ".join(dict.fromkeys(each)) for each in zip(*((h.cause, h.remedy) for h in said), strict=True)
    )
    first, last = before.residuals, after.residuals
    tau = np.sqrt((before.hypothesis.corrected.tau**2).sum(axis=0))
    total = [100 * vector_length(r * tau) / vector_length(tau) for r in (first, last)]
    where = ""
    if total[0] < 1.5 * total[1]:  # a joint with small torques
        k = int(np.argmax(first / np.maximum(last, FINEST)))
        where, total = f" of the torque of {robot.joint_names[k]}", [100 * float(r[k]) for r in (first, last)]
    if total[0] < 1.1 * total[1]:
        return f"{causes}: {remedies} agrees with the masses of {robot.name}, which contradict it as it is"
    return f"{causes}: {remedies} lowers the residual{where} from {total[0]:.2g} % to {total[1]:.2g} %"


# -- units, sizes and limits ------------------------------------------------------------------------------------------


def _units(log: Log, robot: Robot) -> list[str]:
    """Numbers that cannot be in SI units."""
    try:
        check(log, robot, Layout(), log.name)
    except LogError as error:
        return [str(error)]
    return []


def _partly_weightless(robot: Robot, found: Weighing) -> str:
    """Torques from which another model's gravity was taken away."""
    share = vector_length(found.gravity) / (EARTH * found.inertial)
    return (
        f"torques have the inertia of the masses in {robot.name}, but only {share:.2g} times the weight that belongs "
        "to it: they look compensated for gravity by a model that differs from this robot; record them with gravity, "
        "or add the torques of that model"
    )


def _another(robot: Robot) -> str:
    """Torques that do not resemble those of the file's masses, whatever is changed."""
    return (
        f"torques do not resemble those of the masses in {robot.name}, and no other order, sign, zero position, unit "
        "or direction of gravity explains them: the recording is of another robot, or the file's masses are guesses"
    )


def _sizes(robot: Robot, found: Agreement) -> list[str]:
    """Torques that resemble those of the file's masses, but are much larger or smaller."""
    alike = (found.correlation > 0.9) & (found.share > 0.25)
    if not alike.any():
        return []
    # one joint in another unit is a cause of its own: the middle one, of two in the middle the one that says less
    scales = np.sort(found.scale[alike])
    middle = scales[[(len(scales) - 1) // 2, len(scales) // 2]]
    size = float(min(middle, key=lambda each: max(each, 1.0 / max(each, 1e-300))))
    if 1 / OTHER_SIZE < size < OTHER_SIZE:
        return []
    each = ", ".join(
        f"{name} {scale:.2g}"
        for name, scale, here in zip(robot.joint_names, found.scale, alike, strict=True)
        if here
    )
    return [
        f"measured torques are {size:.2g} times those of the masses in {robot.name} ({each}): the recording is of "
        "another robot or another size of it, the robot carries a load, torques are currents or those of motors before "
        "their gears (drive.gains or drive.reduction in the layout), or the file's masses are guesses"
    ]


def _limits(robot: Robot, signals: Sequence[Signals]) -> list[str]:
    """Positions that this robot cannot reach."""
    low = np.min([s.q.min(axis=0) for s in signals], axis=0)
    high = np.max([s.q.max(axis=0) for s in signals], axis=0)
    outside = []
    for k, joint in enumerate(robot.coordinate_joints):
        lower, upper = joint.limits.lower, joint.limits.upper
        slack = 0.05 * (upper - lower)
        if np.isfinite(slack) and slack > 0 and (low[k] < lower - slack or high[k] > upper + slack):
            outside.append(
                f"{joint.name} moves from {low[k]:.3g} to {high[k]:.3g} (limits {lower:.3g} to {upper:.3g})"
            )
    if not outside:
        return []
    return [
        f"{robot.name} cannot reach all positions: {'; '.join(outside)}: the recording is of another robot, its "
        "joints are in another order or counted from other zero positions, or the file's limits are wrong"
    ]
