"""What is in the store of a study."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.study.errors import StudyError, needed
from linkwise.study.store import DATA, ERRORS, FAILURES, JOURNAL, TABLES, read_study
from linkwise.study.verify import Verification, known, problems, verify
from linkwise.summaries import Summarised, Summary, described


class Results(Summarised):
    """A store opened for reading."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._known = read_study(self.path)

    @property
    def description(self) -> dict[str, Any]:
        """The study as it was written down."""
        return self._known["study"]

    @property
    def identity(self) -> dict[str, Any] | None:
        """The code and the robot that computed it: digests of Linkwise's files, the robot, and your own functions."""
        return self._known.get("identity")

    @property
    def accepted_changes(self) -> list[dict[str, Any]]:
        """Changes of code or robot that were accepted while it was computed: when, what changed, which chunks
        (runs of their numbers) had been computed before. Empty: all of it was computed by the same code."""
        return self._known.get("accepted_changes", [])

    @property
    def complete(self) -> bool:
        """Whether every point is done; if not, some failed (see the table "errors"), or chunks were set aside (see
        the table "aside") or not computed."""
        return not (self.path / JOURNAL).exists()

    def dataset(self) -> Any:
        """Raw arrays and reductions as an xarray Dataset, with dimensions, coordinates and units; read when used.

        Reductions that leave points out say so: attribute ``points_left_out``, array ``NAME_left_out``.
        """
        self._check(lambda name: name.startswith(f"{DATA}/") and name.endswith("/zarr.json"))
        return needed("xarray").open_zarr(self.path / DATA)

    def verify(self) -> Verification:
        """Compare every file with what was written; ``damage`` names those that differ."""
        return verify(self.path)

    def _check(self, chosen: Callable[[str], bool]) -> None:
        """That some files have the bytes that were written."""
        if self.description.get("format") == 1:
            return  # made before digests were kept
        listed = known(self.path)
        damage = listed.damage if self.complete else []
        damage = damage or problems(self.path, listed, filter(chosen, listed.entries))
        if damage:
            raise StudyError(
                f"{self.path}: {damage[0]}; linkwise study {self.path} --resume computes it again"
            )

    def tables(self) -> list[str]:
        """Names of the tables that there are."""
        folder = self.path / TABLES
        found = [path.stem for path in sorted(folder.glob("*.parquet"))]
        found += [ERRORS] if (folder / ERRORS).is_dir() else []
        return found + [f"{FAILURES}/{name}" for name in self.description.get(FAILURES, {})]

    def table(self, name: str) -> Any:
        """A table as a PyArrow Table: "extremes", "errors", "aside", "failures/NAME"."""
        if name not in self.tables():
            raise StudyError(
                f"{self.path}: no table {name!r}; there are: {', '.join(self.tables()) or 'none'}"
            )
        path = self.path / TABLES / name
        self._check(lambda file: file.startswith((f"{TABLES}/{name}/", f"{TABLES}/{name}.parquet")))
        parts = sorted(map(str, path.glob("*.parquet"))) if path.is_dir() else [f"{path}.parquet"]
        if not parts or not os.path.exists(parts[0]):
            return needed("pyarrow").table({"point": np.empty(0, np.int64)})
        return needed("pyarrow.dataset").dataset(parts, format="parquet").to_table()

    def _summary(self) -> Summary:
        study = self.description
        rows = [["robot", described(study.get("robot"))], ["complete", "yes" if self.complete else "no"]]
        for key in ("grid", "variables", "quantities", "reductions", "keep", "failures"):
            if study.get(key):
                rows.append([key, described(study[key])])
        rows.append(["tables", ", ".join(self.tables()) or "none"])
        return Summary(f"Results in {self.path.name}", ("", ""), rows, ["dataset() has the arrays"])
