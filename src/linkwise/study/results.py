"""What is in the store of a study."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.core.summaries import Summarised, Summary, described
from linkwise.errors import warn
from linkwise.study.errors import StudyError, StudyWarning, needed
from linkwise.study.store.folder import (
    DATA,
    ERRORS,
    FAILURES,
    JOURNAL,
    STUDY,
    TABLES,
    complete,
    read_study,
    zarr_quiet,
)
from linkwise.study.store.journal import running
from linkwise.study.store.verify import (
    ExpectedFiles,
    Verification,
    files_of,
    known,
    quick_problems,
    strays,
    verify,
)


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
        return complete(self.path)

    def dataset(self) -> Any:
        """Raw arrays and reductions as an xarray Dataset, with dimensions, coordinates and units; read when used.

        Reductions that leave points out say so: attribute ``points_left_out``, array ``NAME_left_out``.
        """
        listed = self._check(lambda name: name.startswith(f"{DATA}/"))
        if listed is not None and (unlisted := strays(self.path, listed)):
            unlisted = [damage for damage in unlisted if damage.array]
            if unlisted and self.complete:
                raise StudyError(f"{self.path}: {unlisted[0]}; remove it")
            if unlisted and running(self.path / JOURNAL) is False:
                more = f" and {len(unlisted) - 1} more" if len(unlisted) > 1 else ""
                warn(f"{self.path}: {unlisted[0].file}{more} have no record in the {JOURNAL}", StudyWarning)
        with zarr_quiet():
            return needed("xarray").open_zarr(self.path / DATA)

    def verify(self) -> Verification:
        """Compare every file with what was written; ``damage`` names those that differ."""
        return verify(self.path)

    def _check(self, chosen: Callable[[str], bool]) -> ExpectedFiles | None:
        """The manifest, after a check that it and some files have the bytes that were written; of raw arrays only the
        checksums are compared. None: the store was made before there were manifests."""
        if self.description.get("format") == 1:
            return None
        listed = known(self.path, self._known["digest"])
        chosen_files = ExpectedFiles(
            {name: entries for name, entries in listed.entries.items() if chosen(name) or name == STUDY},
            listed.required,
        )
        damage = listed.damage or quick_problems(self.path, chosen_files)
        if damage:
            raise StudyError(
                f"{self.path}: {damage[0]}; linkwise study {self.path} --resume computes it again"
            )
        return listed

    def _table_files(self) -> list[str]:
        """The files of all tables that the manifest names."""
        if self.description.get("format") == 1:
            names = files_of(self.path)
        else:
            names = [name for name in known(self.path).entries if (self.path / name).exists()]
        return sorted(name for name in names if name.startswith(f"{TABLES}/"))

    def tables(self) -> list[str]:
        """Names of the tables that there are."""
        parts = [name.removeprefix(f"{TABLES}/") for name in self._table_files()]
        names = [name.removesuffix(".parquet") for name in parts if "/" not in name]
        names += [ERRORS] if any(name.startswith(f"{ERRORS}/") for name in parts) else []
        return names + [f"{FAILURES}/{name}" for name in self.description.get(FAILURES, {})]

    def table(self, name: str) -> Any:
        """A table as a PyArrow Table: "extremes", "errors", "aside", "failures/NAME"."""
        if name not in self.tables():
            raise StudyError(
                f"{self.path}: no table {name!r}; there are: {', '.join(self.tables()) or 'none'}"
            )

        def of_table(file: str) -> bool:
            return file.startswith(f"{TABLES}/{name}/") or file == f"{TABLES}/{name}.parquet"

        self._check(of_table)
        parts = [str(self.path / file) for file in filter(of_table, self._table_files())]
        if not parts:
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
