"""Measured poses from a table: joint positions beside where the tool was seen.

Columns q1 … qn (or other usual names), x y z [m], and for orientations one of qx qy qz qw (a quaternion), rx ry rz (a
rotation vector), roll pitch yaw [rad] (about fixed axes, as in URDF). Units may be named in the header: ``x [mm]``,
``yaw [deg]``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from linkwise.files.tables import NumberTable, TableError, read
from linkwise.files.tables import units as known_units
from linkwise.files.tables.columns import find_columns, in_si_units
from linkwise.identify.errors import LogError
from linkwise.model.transform import Transform
from linkwise.motion.kinematics.rotations import turn_about
from linkwise.robot.robot import Robot

POSITIONS = ("{}", "p{}", "t{}", "pos_{}", "position_{}", "position.{}", "pos{}", "tool_{}", "p_{}")
QUATERNIONS = ("q{}", "q_{}", "quat_{}", "quaternion_{}", "orientation.{}", "orientation_{}", "o{}")
VECTORS = ("r{}", "r_{}", "rot_{}", "rotvec_{}", "rotation_{}")
ANGLES = ("roll", "pitch", "yaw")
TOO_FAR = 20.0  # [m] no arm reaches that far, and no measuring device stands there


def read_poses(path: str | os.PathLike[str], robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(q, poses) of a file: joint positions (N, n), and poses (N, 4, 4), or (N, 3) without orientations.

    Args:
        path: a CSV (or other text), NPZ or Parquet file.
        robot: whose joints the columns belong to.

    Raises:
        LogError: columns are missing or rows are incomplete; the message names them.
    """
    try:
        table = read(path)
        columns = find_columns(table, "position", robot.joint_names)
        if columns is None:
            raise LogError(
                f"{table.path}: no columns of joint positions for {robot.dof} joints{table.listed()}; expected q1 … "
                f"q{robot.dof}"
            )
        q, _ = in_si_units(table, "position", columns)
    except LogError:
        raise
    except TableError as error:
        raise LogError(str(error)) from None
    places = _places(table)
    where = _group(places, POSITIONS, "xyz")
    if where is None:
        raise LogError(f"{table.path}: no columns of measured positions{table.listed()}; expected x, y and z")
    positions = _in_units(table, where, {"m": 1.0, "mm": 1e-3})
    rotations = _rotations(table, places)
    _check_rows(table, q, positions, rotations)
    if np.abs(positions).max() > TOO_FAR:
        raise LogError(
            f"{table.path}: measured positions reach {np.abs(positions).max():.4g} m; they look like mm "
            f"(name the unit in the header: {table.column(where[0])} [mm])"
        )
    if rotations is None:
        return q, positions
    poses = np.tile(np.eye(4), (len(q), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations, positions
    return q, poses


def _places(table: NumberTable) -> dict[str, int]:
    return {known_units.split(name)[0].strip().lower(): k for k, name in enumerate(table.names or ())}


def _group(places: dict[str, int], patterns: Sequence[str], letters: str) -> list[int] | None:
    for pattern in patterns:
        names = [pattern.format(letter) for letter in letters]
        if all(name in places for name in names):
            return [places[name] for name in names]
    return None


def _in_units(table: NumberTable, columns: Sequence[int], factors: dict[str, float]) -> np.ndarray:
    """Columns (N, k) times the factors of the units that the header names."""
    found = np.array(table.values[:, list(columns)])
    for place, k in enumerate(columns):
        unit = known_units.split((table.names or ())[k])[1]
        if not unit and table.units is not None:
            unit = known_units.spelled(table.units[k])
        if unit and unit not in factors:
            raise LogError(f"{table.path}: {table.column(k)}: no unit {unit!r}; valid: {', '.join(factors)}")
        found[:, place] *= factors[unit] if unit else 1.0
    return found


def _rotations(table: NumberTable, places: dict[str, int]) -> np.ndarray | None:
    """(N, 3, 3), or None without columns of orientations."""
    angles = {"rad": 1.0, "deg": np.pi / 180}
    columns = _group(places, QUATERNIONS, "xyzw")
    if columns is not None:
        xyzw = table.values[:, columns]
        usable = np.isfinite(xyzw).all(axis=1) & (np.abs(np.linalg.norm(xyzw, axis=1) - 1.0) < 0.01)
        safe = np.where(usable[:, None], xyzw, [0.0, 0.0, 0.0, 1.0])
        found = np.stack([Transform.from_quaternion((0, 0, 0), row[[3, 0, 1, 2]]).rotation for row in safe])
        found[~usable] = np.nan
        return found
    columns = _group(places, VECTORS, "xyz")
    if columns is not None:
        vectors = _in_units(table, columns, angles)
        found = turn_about(np.nan_to_num(vectors))
        found[~np.isfinite(vectors).all(axis=1)] = np.nan
        return found
    if all(name in places for name in ANGLES):
        rpy = _in_units(table, [places[name] for name in ANGLES], angles)
        found = np.stack([Transform.from_rpy((0, 0, 0), row).rotation for row in np.nan_to_num(rpy)])
        found[~np.isfinite(rpy).all(axis=1)] = np.nan
        return found
    return None


def _check_rows(
    table: NumberTable, q: np.ndarray, positions: np.ndarray, rotations: np.ndarray | None
) -> None:
    parts = [q, positions] + ([] if rotations is None else [rotations.reshape(len(q), -1)])
    bad = ~np.isfinite(np.concatenate(parts, axis=1)).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise LogError(
            f"{table.place(row)}: a number is missing or not finite, or a quaternion is not of length 1"
        )
