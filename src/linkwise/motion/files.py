"""Motions in files: a row per point in time, columns t, q1 … qn, qd1 … qdn, qdd1 … qddn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from linkwise.files import outputs
from linkwise.files.tables import NumberTable, TableError, numbered, read, render
from linkwise.files.tables.columns import counted_joints, find_columns, in_si_units
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.splines import quintic_spline, through_samples
from linkwise.motion.trajectory import Samples, Trajectory


class MotionFileError(TableError):
    """A file with a motion is wrong; the message names the file and the reason."""


def write_csv(path: str | os.PathLike[str], motion: Trajectory | Samples, *, rate: float = 1000.0) -> None:
    """Write a motion with all digits; a trajectory at ``rate`` samples per second. The file appears whole or
    not at all.

    Args:
        path: the file.
        motion: a trajectory or samples.
        rate: samples of a trajectory per second [Hz].
    """
    samples = motion.sampled(rate) if isinstance(motion, Trajectory) else motion
    columns = {"t": samples.t} | numbered("q", samples.q) | numbered("qd", samples.qd)
    outputs.write(path, render(columns | numbered("qdd", samples.qdd)))


def read_csv(path: str | os.PathLike[str], joints: Sequence[str] | None = None) -> PiecewisePolynomial:
    """The motion in a file (CSV or other text, NPZ, Parquet), as quintic pieces through its points.

    With velocities and accelerations in the file these are met too; from positions alone it is a quintic
    spline.

    Args:
        path: the file; ``-`` is standard input.
        joints: names of the joints, for columns such as ``q.JOINT`` and for files without a header, which have t,
            q or t, q, qd, qdd in this order. Without it there must be numbered columns, one or more.

    Raises:
        MotionFileError: a file that cannot be read, has no such columns, or has numbers that are not finite.
    """
    try:
        table = read(path)
        if table.names is None:
            table = _with_names(table, joints)
        names = [str(k) for k in range(1, counted_joints(table) + 1)] if joints is None else joints
        if not names:
            raise TableError(f"{table.path}: no columns q1 …{table.listed()}")
        found = {}
        for quantity in ("time", "position", "velocity", "acceleration"):
            columns = find_columns(table, quantity, names)
            if columns is not None:
                table.picked(columns)
                found[quantity] = in_si_units(table, quantity, columns)[0]
        for quantity, column in (("time", "t"), ("position", "q1 …")):
            if quantity not in found:
                given = counted_joints(table) if quantity == "position" else 0
                missing = (
                    f"no column {column}"
                    if not given
                    else f"a motion of {given} joints, expected {len(names)}"
                )
                raise TableError(f"{table.path}: {missing}{table.listed()}")
    except TableError as error:
        raise MotionFileError(str(error)) from None
    t, q = found["time"][:, 0], found["position"]
    if len(t) < 2:
        raise MotionFileError(f"{table.path}: one row; expected at least two lines of numbers")
    try:
        if "velocity" not in found or "acceleration" not in found:
            return quintic_spline(t, q)
        return through_samples(Samples(t, q, found["velocity"], found["acceleration"]))
    except ValueError as error:
        raise MotionFileError(f"{table.path}: {error}") from None


def _with_names(table: NumberTable, joints: Sequence[str] | None) -> NumberTable:
    """Names for columns in the usual order."""
    width = table.values.shape[1]
    if joints is None:
        raise TableError(f"{table.path}: no header; expected columns t, q1 …, and if known qd1 …, qdd1 …")
    n = len(joints)
    for quantities in (("q",), ("q", "qd", "qdd")):
        if width == 1 + n * len(quantities):
            names = [f"{quantity}{k}" for quantity in quantities for k in range(1, n + 1)]
            return replace(table, names=("t", *names))
    raise TableError(
        f"{table.path}: {width} columns without a header; expected {1 + n} (t, q) or {1 + 3 * n} (t, q, qd, qdd) "
        f"for {n} joints"
    )
