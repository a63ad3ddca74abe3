"""A study as it is written down, read and checked: a TOML file, or the same tables in Python."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.core.once import once
from linkwise.errors import LinkwiseError
from linkwise.files.settings import read_toml
from linkwise.robot.loading import load
from linkwise.robot.robot import Robot
from linkwise.study import steps
from linkwise.study.code import object_name
from linkwise.study.errors import StudyError
from linkwise.study.reduce import keep as keeping
from linkwise.study.reduce.keep import Failure, Keep
from linkwise.study.sampling import sobol, variables
from linkwise.study.sampling.variables import DESIGNS, Variable
from linkwise.study.schema import StudySettings, file_name
from linkwise.study.steps.base import Step

FORMAT = 2
"""Of the store: raised when stores of before can no longer be completed."""
COMPRESSIONS = ("zstd", "lz4", "none")
MOST_POINTS = 1 << 53


@dataclass(frozen=True, eq=False)
class Description:
    """Everything that decides the results of a study."""

    name: str
    robot: Robot
    robot_source: str | None
    """Where workers find the robot: a bundled name or an absolute path; None if it only exists in this process."""
    robot_options: Mapping[str, Any]
    seed: int
    samples: int | None
    chunk: int | None
    retries: int
    compression: str
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    keeps: tuple[Keep, ...]
    failures: tuple[Failure, ...]
    tables: Mapping[str, Any]
    """As it was written, in types that JSON has."""

    def text(self) -> str:
        """What is kept in the store, in the order in which it was written."""
        return json.dumps({"format": FORMAT, "robot_content": self.robot_content, **self.tables}, indent=1)

    @once
    def robot_content(self) -> str:
        """Digest of everything that defines the robot."""
        return robot_hash(self.robot)

    @once
    def identity(self) -> dict[str, Any]:
        """The code and the robot that compute it, see ``study.identity``."""
        from linkwise.study import identity

        return identity.of(self)

    def digest(self) -> str:
        """Equal digests, equal studies; the title and the number of retries do not count, the order of entries does.

        What computes it is the ``identity``.
        """
        decisive = {key: value for key, value in self.tables.items() if key not in ("name", "retries")}
        order = [list(self.tables.get(key, ())) for key in ("vary", "compute", "keep", "failures")]
        known = {"format": FORMAT, "order": order, **decisive}
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def robot_hash(robot: Robot) -> str:
    """Digest of everything that defines a robot."""
    return hashlib.sha256(repr(robot.content()).encode()).hexdigest()


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Path]:
    """The tables of a TOML file and the folder that its paths are relative to."""
    return read_toml(path, StudyError), Path(path).parent.resolve()


def describe(
    tables: Mapping[str, Any],
    folder: Path | None = None,
    robot: Robot | None = None,
    robot_source: str | None = None,
) -> Description:
    """Read and check all tables; paths are relative to ``folder``. ``robot``, which was loaded from ``robot_source``,
    takes the place of the one that they name."""
    table = StudySettings(tables)
    robot, source, options = _robot(table, folder or Path.cwd(), robot)
    source = source or robot_source
    samples = table.whole("samples", 1, None)
    seed = table.get("seed", int, 0)
    varied = variables.read(table.get("vary", dict), robot, table.choice("design", DESIGNS, "random"))
    for variable in varied:
        if variable.kind == "grid":
            file_name(variable.name, f"vary.{variable.name}")
    for name in table.get("compute", dict, {}):
        file_name(name, f"compute.{name}")
    _check_sampling(varied, samples)
    computed = steps.read(table.get("compute", dict, {}), robot, varied, seed)
    kept = keeping.read(table.get("keep", dict, {}))
    failures = keeping.read_failures(table.get("failures", dict, {}), [v.name for v in varied])
    if not kept and not failures:
        raise StudyError("keep: nothing is kept; give a table keep or failures")
    description = Description(
        table.get("name", str, ""),
        robot,
        source,
        options,
        seed,
        samples,
        table.whole("chunk", 1, None),
        table.whole("retries", 0, 2),
        table.choice("compression", COMPRESSIONS, "zstd"),
        tuple(varied),
        tuple(computed),
        tuple(kept),
        tuple(failures),
        _plain(tables),
    )
    table.finish()
    return description


def _robot(
    table: StudySettings, folder: Path, known: Robot | None
) -> tuple[Robot, str | None, dict[str, Any]]:
    """(robot, where others find it, how it is changed)."""
    given = table.raw("robot")
    if known is not None or isinstance(given, Robot):
        return known or given, None, {}
    options: dict[str, Any] = {}
    if isinstance(given, Mapping):
        inner = StudySettings(given, "robot")
        for key, kind in (("gravity", list), ("lock", dict)):
            if key in inner:
                options[key] = inner.get(key, kind)
        given = inner.get("load", str)
        inner.finish()
    if not isinstance(given, (str, os.PathLike)):
        raise table.fail("robot", f"expected the name of a robot or a file, got {given!r}")
    inside = folder / given
    source = str(inside) if inside.is_file() else os.fspath(given)
    try:
        robot = load(source, **options)
    except (LinkwiseError, OSError) as error:
        raise StudyError(f"robot: {error}") from None
    return robot, str(Path(source).resolve()) if Path(source).is_file() else source, options


def _check_sampling(varied: list[Variable], samples: int | None) -> None:
    drawn = [variable for variable in varied if variable.draws]
    if drawn and samples is None:
        raise StudyError(
            f"samples: missing; vary.{drawn[0].name} is drawn at random; give the number of samples"
        )
    if not drawn and samples not in (None, 1):
        raise StudyError(f"samples: {samples} of them, but nothing is drawn at random")
    dimensions = sum(variable.draws for variable in drawn if variable.design == "sobol")
    if dimensions > sobol.dimensions():
        raise StudyError(
            f"design: Sobol's sequence has {sobol.dimensions()} dimensions here, the study needs {dimensions}"
        )
    points = samples or 1
    for variable in varied:
        points *= len(variable.values) if variable.kind == "grid" else 1
    if points >= MOST_POINTS:
        raise StudyError(f"the study has {points} points; the most is 2^53")


def _plain(value: Any) -> Any:
    """The same in types that JSON has; objects by their names, their content belongs to the identity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, Robot):
        return {"object": value.name}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"object": object_name(value)}
