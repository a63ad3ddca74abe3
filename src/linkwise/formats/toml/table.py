"""Tables of a robot file in TOML: poses, inertias, limits, drives."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError, ModelWarning, warn
from linkwise.files.settings import Settings
from linkwise.joint_laws import TERMS
from linkwise.model.axes import MOVING_TYPES
from linkwise.model.dh import radians
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Limits
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


class RobotSettings(Settings):
    """One table of a robot file."""

    error = ModelError
    between = ": "

    def finite(self, key: str, value: Any, infinite: bool = False) -> float:
        """A number that a robot can have; a limit may be infinite."""
        number = super().finite(key, value, infinite)
        if infinite:
            return limit(number)
        if not in_range(number):
            raise self.fail(key, expected(number))
        return number

    def angle(self, key: str) -> float:
        """In radians under ``key``, in degrees under ``key_deg``; 0 when neither is there."""
        if self.one_of(key, f"{key}_deg") == f"{key}_deg":
            return radians(self.number(f"{key}_deg"))
        return self.number(key, 0.0)

    # -- lists -----------------------------------------------------------------------------------------------

    def vector(self, key: str) -> np.ndarray:
        return np.array(self.numbers(key, 3)) if key in self.values else np.zeros(3)

    def matrix(self, key: str) -> np.ndarray:
        rows: Any = self.values[key]
        if _length(rows) != 3 or any(_length(row) != 3 for row in rows):
            raise self.fail(key, f"expected three rows of three numbers, got {rows!r}")
        return np.array([[self.finite(key, entry) for entry in row] for row in rows])

    # -- what several tables have in common ------------------------------------------------------------------

    def pose(self) -> Transform:
        """xyz [m] with rpy [rad], rpy_deg or a rotation matrix."""
        xyz = self.vector("xyz")
        given = self.one_of("rpy", "rpy_deg", "rotation")
        if given == "rotation":
            R = self.matrix("rotation")
            if np.max(np.abs(R @ R.T - np.eye(3))) > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
                raise self.fail("rotation", "the three rows are not those of a rotation matrix")
            return Transform(R, xyz)
        if given == "rpy_deg":
            return Transform.from_rpy(xyz, [radians(angle) for angle in self.numbers("rpy_deg", 3)])
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
                raise self.fail("", "com is given without mass")
            if self.has("inertia"):
                raise self.fail("", "inertia (about the centre of mass) is given without mass")
        mass = self.number("mass", 0.0)
        vector = self.vector(centre) if centre else np.zeros(3)
        moments = self._moments(about) if about else np.zeros(6)
        if about == "inertia" or (about is None and centre == "com"):
            if centre == "first_moment" and mass == 0:
                raise self.fail(
                    "", "first_moment and inertia without mass: give inertia_about_origin instead"
                )
            return Inertia.from_com(mass, vector / mass if centre == "first_moment" else vector, moments)
        first = mass * vector if centre == "com" else vector
        return Inertia.from_parameters([mass, *first, *moments])

    def _moments(self, key: str) -> np.ndarray:
        """Six numbers Ixx Ixy Ixz Iyy Iyz Izz: from a labelled table, six or three numbers, or a matrix."""
        value: Any = self.values[key]
        if isinstance(value, dict):
            labelled = RobotSettings(cast("dict[str, Any]", value), self.where(key))
            labelled.allow(PRODUCTS)
            return np.array([labelled.number(label, 0.0) for label in PRODUCTS])
        if _length(value) == 3 and all(isinstance(row, list) for row in value):
            I = self.matrix(key)
            if not np.array_equal(I, I.T):
                raise self.fail(key, "the matrix is not symmetric")
            return I[np.triu_indices(3)]
        if _length(value) == 3:
            xx, yy, zz = self.numbers(key, 3)
            return np.array([xx, 0.0, 0.0, yy, 0.0, zz])
        if _length(value) == 6:
            return np.array(self.numbers(key, 6))
        forms = "a list of those six, the three on the diagonal, or a 3×3 matrix"
        raise self.fail(key, f"expected a table of {', '.join(PRODUCTS)}, {forms}, got {value!r}")

    def limits(self, joint_type: str) -> Limits:
        """limits = [lower, upper] in rad or m, limits_deg in degrees; velocity_limit, effort_limit."""
        kind = MOVING_TYPES.get(joint_type)
        if kind is not None and kind.slides and self.has("limits_deg", "velocity_limit_deg"):
            raise self.fail("", "limits of a prismatic joint are lengths: limits, velocity_limit")
        lower, upper = -math.inf, math.inf
        given = self.one_of("limits", "limits_deg")
        if given:
            lower, upper = self.numbers(given, 2, infinite=True)
            if lower > upper:  # occurs in published files, and has no effect on the dynamics
                message = f"{self.where(given)}: the lower limit {lower:g} is above the upper {upper:g}"
                warn(message, ModelWarning)
            if given == "limits_deg":
                lower, upper = radians(lower), radians(upper)
        speed = self.one_of("velocity_limit", "velocity_limit_deg")
        velocity = self.number(speed, infinite=True) if speed else math.inf
        if speed == "velocity_limit_deg":
            velocity = radians(velocity)
        effort = self.number("effort_limit", math.inf, infinite=True)
        return Limits(lower, upper, velocity, effort)

    def drive(self) -> dict[str, Any]:
        """Rotor inertia, friction and further laws as seen at the joint; the first two also on the motor's side.

        Seen through the gear, inertia and viscous friction grow with G², Coulomb friction with |G|. The two
        Coulomb magnitudes stand for positive and negative speed of the *joint*, also where G is negative.
        """
        if self.has("motor_inertia", "motor_viscous", "motor_coulomb") and not self.has("gear_ratio"):
            raise self.fail("", "motor_inertia, motor_viscous and motor_coulomb need gear_ratio")
        gear = self.number("gear_ratio", 1.0)
        if gear == 0:
            raise self.fail("gear_ratio", "expected a number other than 0")
        terms: dict[str, Any] = {}
        for name, motor in (("rotor_inertia", "motor_inertia"), ("viscous_friction", "motor_viscous")):
            terms[name] = (
                gear**2 * self.number(motor) if self.one_of(name, motor) == motor else self.number(name, 0.0)
            )
        given = self.one_of("coulomb_friction", "motor_coulomb")
        scale = abs(gear) if given == "motor_coulomb" else 1.0
        forward, backward = self._pair(given) if given else (0.0, 0.0)
        if given == "motor_coulomb" and min(forward, backward) < 0:
            raise self.fail(
                "motor_coulomb", "expected magnitudes (no sign) for forward and backward motion of the joint"
            )
        terms["coulomb_friction"] = (scale * forward, scale * backward)
        terms["terms"] = {name: self.number(name) for name in TERMS if self.has(name)}
        return terms

    def _pair(self, key: str) -> tuple[float, float]:
        value = self.values[key]
        if not isinstance(value, list):
            both = self.number(key)
            return both, both
        forward, backward = self.numbers(key, 2)
        return forward, backward


def _length(value: Any) -> int:
    """The length of a list; −1 for anything else."""
    return len(cast("list[Any]", value)) if isinstance(value, list) else -1
