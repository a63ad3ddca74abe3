"""A TOML table with every key checked: errors name the file, the table, the key and what was expected."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from linkwise.errors import ModelError, ModelWarning
from linkwise.joint_laws import TERMS
from linkwise.model.dh import radians
from linkwise.model.inertia import Inertia
from linkwise.model.model import Limits
from linkwise.model.quantity import expected, in_range, limit
from linkwise.model.transform import Transform

PRODUCTS = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
INERTIAL_KEYS = ("mass", "com", "first_moment", "inertia", "inertia_about_origin")
POSE_KEYS = ("xyz", "rpy", "rpy_deg", "rotation")
LIMIT_KEYS = ("limits", "limits_deg", "velocity_limit", "velocity_limit_deg", "effort_limit")
DRIVE_KEYS = (
    *("rotor_inertia", "viscous_friction", "coulomb_friction"),
    *("motor_inertia", "gear_ratio", "motor_viscous", "motor_coulomb"),
    *TERMS,
)

ROTATION_TOLERANCE = 1e-6  # a matrix further from a rotation than this is a mistake, not rounding


class Table:
    """One table of a file, ``where`` being how messages name it."""

    def __init__(self, values: Mapping[str, Any], where: str):
        self.values = values
        self.where = where

    def fail(self, message: str) -> NoReturn:
        raise ModelError(f"{self.where}: {message}")

    def allow(self, keys: Iterable[str]) -> None:
        """Refuse every key that is not one of these."""
        valid = list(keys)
        for key in self.values:
            if key not in valid:
                close = difflib.get_close_matches(key, valid, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]!r}? " if close else ""
                self.fail(f"unknown key {key!r}; {hint}valid: {', '.join(valid)}")

    def has(self, *keys: str) -> bool:
        return any(key in self.values for key in keys)

    def one_of(self, *keys: str) -> str | None:
        """The key that is given, None if none is; two spellings of one quantity are a mistake."""
        given = [key for key in keys if key in self.values]
        if len(given) > 1:
            self.fail(f"{given[0]!r} and {given[1]!r} exclude each other")
        return given[0] if given else None

    # -- single values ---------------------------------------------------------------------------------------

    def text(self, key: str, default: str | None = None) -> str:
        if key not in self.values:
            if default is None:
                self.fail(f"missing key {key!r}")
            return default
        value = self.values[key]
        if not isinstance(value, str):
            self.fail(f"{key} = {value!r}: expected a text")
        return value

    def choice(self, key: str, valid: Iterable[str], default: str | None = None) -> str:
        value, names = self.text(key, default), list(valid)
        if value not in names:
            self.fail(f"{key} = {value!r}: expected one of {', '.join(names)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(f"{key} = {value!r}: expected true or false")
        return value

    def number(self, key: str, default: float | None = None, *, infinite: bool = False) -> float:
        if key not in self.values:
            if default is None:
                self.fail(f"missing key {key!r}")
            return default
        return self._float(key, self.values[key], infinite)

    def _float(self, key: str, value: Any, infinite: bool = False) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{key}: expected a number, got {value!r}")
        try:
            number = float(value)
        except OverflowError:
            self.fail(f"{key}: the number is too large")
        if infinite and not math.isnan(number):
            return limit(number)
        if not math.isfinite(number):
            self.fail(f"{key}: {number} is not a finite number")
        if not in_range(number):
            self.fail(f"{key}: {expected(number)}")
        return number

    def angle(self, key: str) -> float:
        """In radians under ``key``, in degrees under ``key_deg``; 0 when neither is there."""
        if self.one_of(key, f"{key}_deg") == f"{key}_deg":
            return radians(self.number(f"{key}_deg"))
        return self.number(key, 0.0)

    # -- lists -----------------------------------------------------------------------------------------------

    def list(self, key: str, count: int, *, infinite: bool = False) -> list[float]:
        value = self.values[key]
        if not isinstance(value, list) or len(value) != count:
            got = f"{len(value)} entries" if isinstance(value, list) else repr(value)
            self.fail(f"{key}: expected a list of {count} numbers, got {got}")
        return [self._float(key, entry, infinite) for entry in value]

    def vector(self, key: str) -> np.ndarray:
        return np.array(self.list(key, 3)) if key in self.values else np.zeros(3)

    def matrix(self, key: str) -> np.ndarray:
        rows = self.values[key]
        square = isinstance(rows, list) and [len(row) if isinstance(row, list) else 0 for row in rows] == [
            3,
            3,
            3,
        ]
        if not square:
            self.fail(f"{key}: expected three rows of three numbers, got {rows!r}")
        return np.array([[self._float(key, entry) for entry in row] for row in rows])

    # -- what several tables have in common ------------------------------------------------------------------

    def pose(self) -> Transform:
        """xyz [m] with rpy [rad], rpy_deg or a rotation matrix."""
        xyz = self.vector("xyz")
        given = self.one_of("rpy", "rpy_deg", "rotation")
        if given == "rotation":
            R = self.matrix("rotation")
            if np.max(np.abs(R @ R.T - np.eye(3))) > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
                self.fail("rotation: the three rows are not those of a rotation matrix")
            return Transform(R, xyz)
        if given == "rpy_deg":
            return Transform.from_rpy(xyz, [radians(angle) for angle in self.list("rpy_deg", 3)])
        return Transform.from_rpy(xyz, self.vector("rpy").tolist())

    def inertia(self) -> Inertia:
        """mass, its centre (or first moment), and the inertia about the centre (or about the origin).

        Where no inertia is given, a mass with ``com`` is a point; with ``first_moment``, the inertia about
        the origin is zero.
        """
        centre = self.one_of("com", "first_moment")
        about = self.one_of("inertia", "inertia_about_origin")
        if not self.has("mass"):
            if self.has("com"):
                self.fail("com is given without mass")
            if self.has("inertia"):
                self.fail("inertia (about the centre of mass) is given without mass")
        mass = self.number("mass", 0.0)
        vector = self.vector(centre) if centre else np.zeros(3)
        moments = self._moments(about) if about else np.zeros(6)
        if about == "inertia" or (about is None and centre == "com"):
            if centre == "first_moment" and mass == 0:
                self.fail("first_moment and inertia without mass: give inertia_about_origin instead")
            return Inertia.from_com(mass, vector / mass if centre == "first_moment" else vector, moments)
        first = mass * vector if centre == "com" else vector
        return Inertia.from_parameters([mass, *first, *moments])

    def _moments(self, key: str) -> np.ndarray:
        """Six numbers Ixx Ixy Ixz Iyy Iyz Izz: from a labelled table, six or three numbers, or a matrix."""
        value = self.values[key]
        if isinstance(value, dict):
            labelled = Table(value, f"{self.where}: {key}")
            labelled.allow(PRODUCTS)
            return np.array([labelled.number(label, 0.0) for label in PRODUCTS])
        if isinstance(value, list) and len(value) == 3 and all(isinstance(row, list) for row in value):
            I = self.matrix(key)
            if not np.array_equal(I, I.T):
                self.fail(f"{key}: the matrix is not symmetric")
            return I[np.triu_indices(3)]
        if isinstance(value, list) and len(value) == 3:
            xx, yy, zz = self.list(key, 3)
            return np.array([xx, 0.0, 0.0, yy, 0.0, zz])
        if isinstance(value, list) and len(value) == 6:
            return np.array(self.list(key, 6))
        forms = "a list of those six, the three on the diagonal, or a 3×3 matrix"
        return self.fail(f"{key}: expected a table of {', '.join(PRODUCTS)}, {forms}, got {value!r}")

    def limits(self, joint_type: str) -> Limits:
        """limits = [lower, upper] in rad or m, limits_deg in degrees; velocity_limit, effort_limit."""
        if joint_type == "prismatic" and self.has("limits_deg", "velocity_limit_deg"):
            self.fail("limits of a prismatic joint are lengths: limits, velocity_limit")
        lower, upper = -math.inf, math.inf
        given = self.one_of("limits", "limits_deg")
        if given:
            lower, upper = self.list(given, 2, infinite=True)
            if lower > upper:  # found in the wild, and harmless to the dynamics
                message = f"{self.where}: {given}: the lower limit {lower:g} is above the upper {upper:g}"
                warnings.warn(message, ModelWarning, stacklevel=2)
            if given == "limits_deg":
                lower, upper = radians(lower), radians(upper)
        speed = self.one_of("velocity_limit", "velocity_limit_deg")
        velocity = self.number(speed, infinite=True) if speed else math.inf
        if speed == "velocity_limit_deg":
            velocity = radians(velocity)
        effort = self.number("effort_limit", math.inf, infinite=True)
        return Limits(lower, upper, velocity, effort)

    def drive(self) -> dict[str, Any]:
        """Rotor inertia, friction and further laws as the joint feels them; the first two also on the motor's side.

        Seen through the gear, inertia and viscous friction grow with G², Coulomb friction with |G|. The two
        Coulomb magnitudes stand for positive and negative speed of the *joint*, also where G is negative.
        """
        if self.has("motor_inertia", "motor_viscous", "motor_coulomb") and not self.has("gear_ratio"):
            self.fail("motor_inertia, motor_viscous and motor_coulomb need gear_ratio")
        gear = self.number("gear_ratio", 1.0)
        if gear == 0:
            self.fail("gear_ratio: expected a number other than 0")
        found: dict[str, Any] = {}
        for name, motor in (("rotor_inertia", "motor_inertia"), ("viscous_friction", "motor_viscous")):
            found[name] = (
                gear**2 * self.number(motor) if self.one_of(name, motor) == motor else self.number(name, 0.0)
            )
        given = self.one_of("coulomb_friction", "motor_coulomb")
        scale = abs(gear) if given == "motor_coulomb" else 1.0
        forward, backward = self._pair(given) if given else (0.0, 0.0)
        if given == "motor_coulomb" and min(forward, backward) < 0:
            self.fail(
                "motor_coulomb: expected magnitudes (no sign) for forward and backward motion of the joint"
            )
        found["coulomb_friction"] = (scale * forward, scale * backward)
        found["terms"] = {name: self.number(name) for name in TERMS if self.has(name)}
        return found

    def _pair(self, key: str) -> tuple[float, float]:
        value = self.values[key]
        if not isinstance(value, list):
            both = self.number(key)
            return both, both
        forward, backward = self.list(key, 2)
        return forward, backward
