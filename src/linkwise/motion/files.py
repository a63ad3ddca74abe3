"""Motions in text files: a line per point in time, columns t, q1 … qn, qd1 … qdn, qdd1 … qddn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise import outputs
from linkwise.errors import LinkwiseError
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.splines import quintic_spline, through_samples
from linkwise.motion.trajectory import Samples, Trajectory


class MotionFileError(LinkwiseError, ValueError):
    """A file with a motion is wrong; the message names the file and the reason."""


def write_csv(path: str | os.PathLike[str], motion: Trajectory | Samples, *, rate: float = 1000.0) -> None:
    """Write a motion with all digits; a trajectory at ``rate`` samples per second. The file appears whole or
    not at all.
    """
    samples = motion.sampled(rate) if isinstance(motion, Trajectory) else motion
    n = samples.q.shape[1]
    header = ",".join(["t", *(f"{name}{k}" for name in ("q", "qd", "qdd") for k in range(1, n + 1))])
    rows = np.column_stack([samples.t, samples.q, samples.qd, samples.qdd]).tolist()
    outputs.write(path, "\n".join([header, *(",".join(map(repr, row)) for row in rows)]) + "\n")


def read_csv(path: str | os.PathLike[str]) -> PiecewisePolynomial:
    """The motion in a file, as quintic pieces through its points.

    With velocities and accelerations in the file these are met too; from positions alone it is a quintic
    spline.
    """
    header, values = _table(path)
    if "t" not in header:
        raise MotionFileError(f"{path}: no column t; it has {', '.join(header)}")
    t = values[:, header.index("t")]
    columns = {name: _columns(path, header, values, name) for name in ("q", "qd", "qdd")}
    q, qd, qdd = columns.values()
    if q is None:
        raise MotionFileError(f"{path}: no columns q1 …; it has {', '.join(header)}")
    try:
        if qd is None or qdd is None:
            return quintic_spline(t, q)
        return through_samples(Samples(t, q, qd, qdd))
    except ValueError as error:
        raise MotionFileError(f"{path}: {error}") from None


def _table(path: str | os.PathLike[str]) -> tuple[list[str], np.ndarray]:
    """The names in the header, and the numbers under it; blank lines and those that start with # are skipped."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise MotionFileError(f"{path}: not a text file ({error.reason} at byte {error.start})") from None
    lines = [
        (k, line)
        for k, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(lines) < 3:
        raise MotionFileError(f"{path}: expected a header and at least two lines of numbers")
    header = [name.strip() for name in lines[0][1].split(",")]
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise MotionFileError(f"{path}: two columns are called {twice[0]!r}")
    rows = []
    for k, line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(header):
            raise MotionFileError(
                f"{path}, line {k}: expected {len(header)} columns, as the header says; got {len(cells)}"
            )
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError as error:
            raise MotionFileError(f"{path}, line {k}: {error}") from None
    return header, np.array(rows)


def _columns(path, header: Sequence[str], values: np.ndarray, name: str) -> np.ndarray | None:
    """The columns name1, name2, … as far as they go; None if there are none."""
    wanted = [f"{name}{k}" for k in range(1, len(header) + 1)]
    present = [column for column in wanted if column in header]
    if present != wanted[: len(present)]:
        missing = next(column for column in wanted if column not in header)
        raise MotionFileError(f"{path}: no column {missing}, but {present[-1]}")
    return values[:, [header.index(column) for column in present]] if present else None
