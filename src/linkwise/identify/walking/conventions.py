"""What recorded numbers of a base mean: order of quaternions, axes of velocities, what an accelerometer shows.

Files do not say it, and every logger has its own habit. Each question is decided by what agrees with the other signals:
the angular velocity that quaternions mean with the gyroscope, velocities with slopes of positions, accelerations with
gravity. What was decided, and by which agreement, is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as combinations

import numpy as np

from linkwise.identify.errors import LogError
from linkwise.identify.recordings.derivatives import central_difference, low_pass
from linkwise.identify.walking import rotations

UNIT = 0.02  # largest distance of a quaternion's length from one
EARTH = 9.81  # [m/s²]
SMOOTH = 8.0  # [Hz] below which signals are compared
SURE = 0.8  # of the mismatch of the usual reading, under which another one is taken
ALIKE = 0.5  # relative mismatch above which two signals are not the same quantity
DEGREES = 180.0 / np.pi
ORDERS = {"x, y, z, w": (0, 1, 2, 3), "w, x, y, z": (1, 2, 3, 0)}


@dataclass
class Readings:
    """Recorded arrays of a base as they are in the file, by quantity; ``decide`` gives them their meaning.

    Args:
        path: of the file, for messages.
        t: times [s], (N,).
        found: arrays by quantity, as in ``columns.NAMES``.
        gravity: of the robot in the world [m/s²], (3,).
        named: whether quaternions are in the order x, y, z, w by the names of their columns.
    """

    path: str
    t: np.ndarray
    found: dict[str, np.ndarray]
    gravity: np.ndarray
    named: bool = False

    def __post_init__(self) -> None:
        self.notes: list[str] = []
        self.rate = (len(self.t) - 1) / float(self.t[-1] - self.t[0])

    def decide(self) -> dict[str, np.ndarray]:
        """Fields of a ``WalkingLog`` from the recorded arrays."""
        given = dict(self.found)
        pose = given.pop("base_pose", None)
        if pose is not None:
            given.setdefault("base_position", pose[:, :3])
            given.setdefault("base_orientation", pose[:, 3:])
        twist = given.pop("base_twist", None)
        if "base_orientation" in given:
            given["base_orientation"] = self._orientation(given, twist)
        self._check_gyro(given)
        if twist is not None:
            self._twist(given, twist)
        elif "base_velocity" in given:
            given["base_velocity"] = self._velocity(given, given["base_velocity"])
        if twist is None and "base_angular_velocity" in given:
            given["base_angular_velocity"] = self._spin(given, given["base_angular_velocity"])
        if "accelerometer" in given:
            given["accelerometer"] = self._accelerometer(given)
        return given

    def _smooth(self, x: np.ndarray) -> np.ndarray:
        return low_pass(x, self.rate, min(SMOOTH, 0.2 * self.rate))

    def _slope(self, x: np.ndarray) -> np.ndarray:
        return central_difference(self._smooth(x), self.rate)

    def _mismatch(self, a: np.ndarray, b: np.ndarray) -> float:
        """‖a − b‖ / ‖b‖ of slow parts, without their means: offsets of sensors do not count."""
        a, b = (x - x.mean(axis=0) for x in (a, b))
        return float(np.sqrt(((a - b) ** 2).sum() / max(float((b**2).sum()), 1e-300)))

    # -- orientation --------------------------------------------------------------------------------------------------

    def _orientation(self, given: dict[str, np.ndarray], twist: np.ndarray | None) -> np.ndarray:
        raw = given["base_orientation"]
        lengths = np.sqrt((raw**2).sum(axis=1))
        worst = int(np.argmax(np.abs(lengths - 1.0)))
        if abs(lengths[worst] - 1.0) > UNIT:
            raise LogError(
                f"{self.path}: row {worst + 1}: the quaternion of the base has the length {lengths[worst]:.4g}; "
                "expected 1"
            )
        orders = {"x, y, z, w": ORDERS["x, y, z, w"]} if self.named else ORDERS
        readings = {}
        for (order, places), inverse in combinations(orders.items(), (False, True)):
            q = rotations.continuous(raw[:, places])
            readings[order, inverse] = q * np.array([-1.0, -1.0, -1.0, 1.0]) if inverse else q
        errors, by = {}, ""
        spins = self._recorded_spins(given, twist)
        if spins:
            for key, q in readings.items():
                inside = rotations.angular_velocity(q, self._slope(q))
                rates = (
                    [inside] if "gyro" in given else [inside, rotations.turned(rotations.matrices(q), inside)]
                )
                errors[key] = min(self._mismatch(rate, spin) for rate, spin in combinations(rates, spins))
            by = "agrees with the gyroscope" if "gyro" in given else "agrees with the angular velocity"
        if not errors or min(errors.values()) > ALIKE:
            errors = {key: 1.0 - float(rotations.matrices(q)[:, 2, 2].mean()) for key, q in readings.items()}
            if "accelerometer" in given:
                errors = {key: self._tilt(q, given["accelerometer"]) for key, q in readings.items()}
            by = "the base is upright"
        usual = ("x, y, z, w", False)
        best = min(errors, key=lambda key: (round(errors[key], 9), key[1], key != usual))
        order, inverse = best
        direct = next(key for key in errors if key[0] == order and not key[1])
        if inverse and errors[best] > SURE * errors[direct]:
            best, inverse = direct, False
        turned = ", from world to base" if inverse else ""
        why = "by the names of its columns" if self.named and not inverse else f"so that it {by}"
        if not by.startswith("agrees") and why.startswith("so that it"):
            why = f"so that {by}"
        self.notes.append(f"quaternion of the base: {order}{turned}, {why}")
        return readings[best]

    def _recorded_spins(self, given: dict[str, np.ndarray], twist: np.ndarray | None) -> list[np.ndarray]:
        """What may be the angular velocity: of the gyroscope in axes of the base, else in those of base or world, as
        three numbers or as one half of six; without what is zero throughout."""
        halves = [] if twist is None else [twist[:, :3], twist[:, 3:]]
        single = given.get("gyro", given.get("base_angular_velocity"))
        found = halves if single is None else [single]
        return [self._smooth(spin) for spin in found if float(np.abs(spin).max()) > 0]

    def _tilt(self, q: np.ndarray, felt: np.ndarray) -> float:
        """How far the accelerometer is from up, as orientations have it: squared, in parts of gravity; 0 to 4."""
        up = rotations.turned_back(rotations.matrices(q), np.broadcast_to(-self.gravity, (len(q), 3)))
        a, b = (
            x / np.sqrt(np.maximum((x**2).sum(axis=1, keepdims=True), 1e-300))
            for x in (self._smooth(felt), up)
        )
        return float(((a - b) ** 2).sum(axis=1).mean())

    def _check_gyro(self, given: dict[str, np.ndarray]) -> None:
        """Units of the gyroscope against the orientations."""
        if "gyro" not in given or "base_orientation" not in given:
            return
        q = given["base_orientation"]
        spin, gyro = rotations.angular_velocity(q, self._slope(q)), self._smooth(given["gyro"])
        size = float(np.sqrt((spin**2).sum()))
        ratio = float((gyro * spin).sum()) / max(size**2, 1e-300)
        if size / np.sqrt(len(spin)) > 0.01 and 0.5 < ratio / DEGREES < 2.0:
            raise LogError(
                f"{self.path}: the gyroscope shows {ratio:.3g} times the angular velocity of the orientations: it "
                "looks like deg/s; give rad/s"
            )

    # -- velocities ---------------------------------------------------------------------------------------------------

    def _velocity(self, given: dict[str, np.ndarray], v: np.ndarray, quiet: bool = False) -> np.ndarray:
        """Velocity of the base in world axes."""
        if "base_orientation" not in given:
            raise LogError(f"{self.path}: the velocity of the base is of use only with its orientation")
        R = rotations.matrices(given["base_orientation"])
        readings = {"world": v, "base": rotations.turned(R, v)}
        errors, by = self._travel_errors(given, R, readings)
        best = min(errors, key=lambda key: errors[key]) if errors else "world"
        if errors and errors[best] > SURE * errors["world"]:
            best = "world"
        if not quiet:
            self.notes.append(f"velocity of the base: in axes of the {best}, {by}")
        return readings[best]

    def _travel_errors(
        self, given: dict[str, np.ndarray], R: np.ndarray, readings: dict[str, np.ndarray]
    ) -> tuple[dict[str, float], str]:
        if "base_position" in given:
            slope = self._slope(given["base_position"])
            return {key: self._mismatch(self._smooth(v), slope) for key, v in readings.items()}, (
                "which agrees with the slope of its positions"
            )
        if "accelerometer" in given:
            felt = rotations.turned(R, self._smooth(given["accelerometer"]))
            return {key: self._mismatch(self._slope(v), felt) for key, v in readings.items()}, (
                "which agrees with the accelerometer"
            )
        return {}, "assumed"

    def _spin(self, given: dict[str, np.ndarray], w: np.ndarray) -> np.ndarray:
        """Angular velocity in axes of the base."""
        if "base_orientation" not in given:
            return w
        q = given["base_orientation"]
        R, spin = rotations.matrices(q), rotations.angular_velocity(q, self._slope(q))
        readings = {"base": w, "world": rotations.turned_back(R, w)}
        errors = {key: self._mismatch(self._smooth(value), spin) for key, value in readings.items()}
        best = "world" if errors["world"] < SURE * errors["base"] else "base"
        self.notes.append(
            f"angular velocity of the base: in axes of the {best}, which agrees with orientations"
        )
        return readings[best]

    def _twist(self, given: dict[str, np.ndarray], twist: np.ndarray) -> None:
        """Six velocities of the base: which three are angular, and in which axes."""
        halves = (twist[:, :3], twist[:, 3:])
        if "base_orientation" in given:
            q = given["base_orientation"]
            spin = rotations.angular_velocity(q, self._slope(q))
            R = rotations.matrices(q)
            sizes = [
                min(self._mismatch(self._smooth(x), spin) for x in (half, rotations.turned_back(R, half)))
                for half in halves
            ]
        else:
            gyro = given.get("gyro")
            sizes = [1.0, 0.0] if gyro is None else [self._mismatch(half, gyro) for half in halves]
        angular = 0 if sizes[0] < SURE * sizes[1] else 1
        self.notes.append(
            f"velocities of the base: {'angular, linear' if angular == 0 else 'linear, angular'}"
        )
        given.setdefault("base_angular_velocity", halves[angular])
        given["base_angular_velocity"] = self._spin(given, given["base_angular_velocity"])
        if "base_orientation" in given:
            given.setdefault("base_velocity", halves[1 - angular])
            given["base_velocity"] = self._velocity(given, given["base_velocity"])

    # -- what is felt -------------------------------------------------------------------------------------------------

    def _accelerometer(self, given: dict[str, np.ndarray]) -> np.ndarray:
        """Specific force: +9.81 upwards at rest."""
        felt = given["accelerometer"]
        earth = float(np.sqrt((self.gravity**2).sum()))
        size = float(np.sqrt((felt.mean(axis=0) ** 2).sum()))
        if "base_orientation" not in given:
            if earth and not 0.5 < size / earth < 2.0:
                raise LogError(
                    f"{self.path}: the accelerometer shows {size:.3g} m/s² on average; expected about {earth:.3g}, "
                    "with gravity in it, in m/s²"
                )
            return felt
        R = rotations.matrices(given["base_orientation"])
        up = rotations.turned_back(R, np.broadcast_to(-self.gravity, felt.shape))
        along = float((felt * up).sum()) / max(float((up**2).sum()), 1e-300)
        if abs(along - 1.0 / EARTH) < 0.03 and earth:
            self.notes.append("accelerometer: in multiples of gravity, brought to m/s²")
            return EARTH * felt
        if abs(along) < 0.3:
            self.notes.append("accelerometer: without gravity, which was added")
            return felt + up
        if along < 0:
            self.notes.append("accelerometer: shows −9.81 upwards at rest, its sign was changed")
            return -felt
        if not 0.5 < along < 2.0:
            raise LogError(
                f"{self.path}: the accelerometer shows {along:.3g} times gravity along the vertical; expected about 1"
            )
        return felt
