"""Drive ripple in what a fitted robot leaves of the torques: lines of its spectrum over the joint's position.

Ripple is above the cut-off of most fits (240 periods per turn at 1 rad/s are 38 Hz), so torques are taken as they were
recorded. A line is sought where the spectrum of the residual, weighted with functions of the speed, is largest. It is
accepted by prediction: without each motion in turn the line is sought again, fitted and used to predict that motion;
lines of noise predict nothing. Joints that stick show no ripple, so lines vanish at rest unless a part that does not
depend on the speed clearly helps to predict. Of speeds beyond those of the recording nothing is known, and functions of
the speed may grow there: they are fitted as if lines vanished at such speeds. See ``joint_laws.ripple`` for the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.estimation.motions import left_over
from linkwise.identify.estimation.regression import Observer
from linkwise.joint_laws.ripple import LINES, POWERS, SPEED, amplitude, count
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

ROWS = 30000  # recorded samples that are used of all recordings together
FEWEST = 500  # samples in motion
MOVES = 0.01  # [rad/s or m/s] from which a joint moves; at rest it may stick anywhere
PERIODS = 8.0  # of a line within the range of the motion, at least: slower ones are errors of the links
PER_TURN, PER_METRE = 1000.0, 2000.0 * np.pi  # highest line of joints that turn, and that slide [rad/m]
PHASES = 16  # bins of the position per period of the highest line
FINE = 4.0  # points of the spectrum per line width
WORTH = 0.005  # smallest reduction of the squared error of left-out motions
AT_REST_WORTH = 0.1  # the same by the part of all lines that does not depend on the speed, and acts at rest
UNSEEN = 0.5  # weight of a line that vanishes at speeds beyond the recorded ones, of that of the samples
EXTREMES = 0.005  # share of the samples with the highest speeds in a direction, which are too few to know a line from
RIDGE = 1e-2  # of unit columns: functions of the speed are nearly the same over a small range of speeds


@dataclass(frozen=True)
class Line:
    """A line of a joint: periods per turn (of a joint that slides rad/m), root mean square of its torque along the
    recordings [N·m or N], and by how much the joint's residual on left-out motions fell with it [%]."""

    joint: str
    count: float
    size: float
    gain: float

    @property
    def text(self) -> str:
        return (
            f"{self.joint}: {self.count:g} periods per turn, {self.size:.3g} N·m rms, lowers its residual on left-out "
            f"motions by {self.gain:.2g} %"
        )


@dataclass(frozen=True, repr=False)
class Ripple(Summarised):
    """Lines that were accepted, and the numbers of the robot's joints by their labels."""

    lines: tuple[Line, ...] = ()
    numbers: dict[str, float] | None = None

    def of(self, robot: Robot) -> Robot:
        """The robot with this ripple."""
        return robot.with_parameters(self.numbers) if self.numbers else robot


def find_ripple(observer: Observer, robot: Robot) -> Ripple:
    """Lines in what a robot leaves of the recorded torques.

    Args:
        observer: the recordings.
        robot: fitted to them.
    """
    q, qd, rest, motion = left_over(observer, robot, ROWS)
    lines: list[Line] = []
    numbers: dict[str, float] = {}
    for j, joint in enumerate(robot.coordinate_joints):
        moves = np.abs(qd[:, j]) > MOVES
        if moves.sum() >= FEWEST and np.ptp(q[moves, j]) > 0.0:
            search = Search(q[moves, j], qd[moves, j], rest[moves, j], motion[moves], bool(joint.revolute))
            search.run()
            lines += [
                Line(joint.name, *each)
                for each in zip(search.counts, search.sizes(), search.gains, strict=True)
            ]
            numbers |= {f"{joint.name}.{name}": value for name, value in search.numbers().items()}
    return Ripple(tuple(lines), numbers)


class Search:
    """Lines of one joint, one after the other: positions, speeds, residuals and numbers of motions, each (N,)."""

    def __init__(self, q: np.ndarray, qd: np.ndarray, rest: np.ndarray, motion: np.ndarray, turns: bool):
        self.q, self.rest, self.turns = q, rest, turns
        self.speed = float(np.sqrt((qd**2).mean()))
        w = qd / np.sqrt(qd**2 + self.speed**2)
        self._all_powers = np.stack([w**k for k in range(POWERS)], axis=1)
        self.first = 1
        """The lowest power of the speed: with 0, lines act at rest as well."""
        least, most = np.quantile(w, [EXTREMES, 1.0 - EXTREMES])
        grid = np.linspace(-1.0, 1.0, 81)
        outside = grid[(grid < least) | (grid > most)]
        functions = np.stack([outside**k for k in range(POWERS)], axis=1)
        self._unseen = 0.5 * product(functions.T, functions) / len(grid)  # 0.5: the mean square of a wave
        self.folds = [motion == k for k in np.unique(motion)]
        self.counts: list[float] = []
        self.gains: list[float] = []
        self._columns: dict[float, np.ndarray] = {}

    @property
    def powers(self) -> np.ndarray:
        """Functions of the speed, (N, POWERS − first)."""
        return self._all_powers[:, self.first :]

    @property
    def _width(self) -> int:
        """Columns of a line."""
        return 2 * (POWERS - self.first)

    def run(self) -> None:
        """Add lines as long as each lowers the error on left-out motions by more than its standard error; then the
        part that does not depend on the speed, in the same way."""
        if len(self.folds) < 2:
            return
        self._add_lines()
        if not self.counts:
            return
        moving, self.first, self._columns = self._left_out([self.counts for _ in self.folds]), 0, {}
        better = moving - self._left_out([self.counts for _ in self.folds])
        if better.sum() < max(_doubt(better), AT_REST_WORTH * float(moving.sum())):
            self.first, self._columns = 1, {}

    def _add_lines(self) -> None:
        error = self._left_out([[] for _ in self.folds])
        while len(self.counts) < LINES:
            spectra = self._spectra()
            if spectra is None:
                return
            frequencies, each = spectra
            whole = each.sum(axis=0)
            found = [self._highest(frequencies, whole - one) for one in each]
            better = error - self._left_out([[*self.counts, n] for n in found])
            if better.sum() < max(_doubt(better), WORTH * float(error.sum())):
                return
            self.counts.append(self._highest(frequencies, whole))
            before, error = error, self._left_out([self.counts for _ in self.folds])
            self.gains.append(100.0 * (1.0 - float(np.sqrt(error.sum() / before.sum()))))

    def sizes(self) -> list[float]:
        """Root mean square of the torque of each line."""
        x = self._solution(self.counts, np.ones(len(self.q), bool)).reshape(-1, self._width)
        return [
            float(np.sqrt((product(self._line(n), own) ** 2).mean()))
            for n, own in zip(self.counts, x, strict=True)
        ]

    def numbers(self) -> dict[str, float]:
        """Those of the joint, by the names of the law."""
        if not self.counts:
            return {}
        x = self._solution(self.counts, np.ones(len(self.q), bool)).reshape(len(self.counts), 2, -1)
        found = {SPEED: self.speed}
        for line, (n, waves) in enumerate(zip(self.counts, x, strict=True), 1):
            found[count(line)] = n
            for wave, own in zip(("cos", "sin"), waves.tolist(), strict=True):
                found |= {amplitude(line, wave, k): value for k, value in enumerate(own, self.first)}
        return found

    # -- the spectrum -------------------------------------------------------------------------------------------------

    def _spectra(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Frequencies (F,) and Σ r b e^(inq) of every motion for speed functions b without correlation,
        (motions, F, functions); None where the motion is too small for any line."""
        most = PER_TURN if self.turns else PER_METRE
        q = self.q - self.q.min()
        if self.turns:
            q = q % (2.0 * np.pi)
        span = float(q.max())
        width = 2.0 * np.pi / (PHASES * most)
        length = 1 << int(np.ceil(np.log2(max(FINE * span / width, 2.0))))
        frequencies = 2.0 * np.pi / (length * width) * np.arange(length // 2)
        wanted = (frequencies >= PERIODS * 2.0 * np.pi / max(span, 1e-9)) & (frequencies <= most)
        if not wanted.any():
            return None
        everywhere = np.ones(len(self.q), bool)
        left = self.rest - self._torque_of_lines(
            self.counts, self._solution(self.counts, everywhere, beyond=0.0), everywhere
        )
        weighted = linear.orthonormal(self.powers) * left[:, None]
        place = np.minimum((q / width).astype(int), length - 1)
        found = []
        for inside in self.folds:
            bins = [np.bincount(place[inside], values[inside], length) for values in weighted.T]
            found.append(np.fft.rfft(np.stack(bins), axis=1)[:, : length // 2][:, wanted].T)
        return frequencies[wanted], np.stack(found)

    def _highest(self, frequencies: np.ndarray, spectrum: np.ndarray) -> float:
        """Where the spectrum (F, functions) is largest; of a joint that turns a whole number."""
        n = float(frequencies[int(np.argmax((np.abs(spectrum) ** 2).sum(axis=1)))])
        return float(round(n)) if self.turns else n

    # -- fits ---------------------------------------------------------------------------------------------------------

    def _line(self, n: float) -> np.ndarray:
        """Columns of a line, cosine first, (N, 2 · functions of the speed)."""
        if n not in self._columns:
            sine, cosine = linear.sine_and_cosine(n * self.q)
            self._columns[n] = np.concatenate(
                [wave[:, None] * self.powers for wave in (cosine, sine)], axis=1
            )
        return self._columns[n]

    def _torque_of_lines(self, counts: Sequence[float], x: np.ndarray, where: np.ndarray) -> np.ndarray:
        total = np.zeros(int(where.sum()))
        for n, own in zip(counts, x.reshape(-1, self._width), strict=True):
            total = total + product(self._line(n)[where], own)
        return total

    def _solution(self, counts: Sequence[float], where: np.ndarray, beyond: float = UNSEEN) -> np.ndarray:
        """Least squares of lines, (lines · 2 · powers,); ``beyond`` is the weight of speeds that were not recorded."""
        if not counts:
            return np.zeros(0)
        C = np.concatenate([self._line(n)[where] for n in counts], axis=1)
        unseen = beyond * float(where.sum()) * self._unseen[self.first :, self.first :]
        gram = product(C.T, C) + np.kron(np.eye(2 * len(counts)), unseen)
        size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        scaled = gram / (size[:, None] * size) + RIDGE * np.eye(len(gram))
        return linear.solve(scaled, product(C.T, self.rest[where]) / size) / size

    def _left_out(self, counts: Sequence[Sequence[float]]) -> np.ndarray:
        """Squared error of every motion, predicted with its lines fitted to all others, (motions,)."""
        return np.array(
            [
                (
                    (self.rest[inside] - self._torque_of_lines(own, self._solution(own, ~inside), inside))
                    ** 2
                ).sum()
                for inside, own in zip(self.folds, counts, strict=True)
            ]
        )


def _doubt(better: np.ndarray) -> float:
    """Standard error of the sum of what motions gain."""
    return float(np.sqrt(len(better)) * better.std(ddof=1))


__all__ = ["Line", "Ripple", "find_ripple"]
