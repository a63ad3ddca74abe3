"""What is in the store of a study."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.study.errors import StudyError, needed
from linkwise.study.store import DATA, JOURNAL, TABLES, read_study


class Results:
    """A store opened for reading."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._known = read_study(self.path)

    @property
    def description(self) -> dict[str, Any]:
        """The study as it was written down."""
        return self._known["study"]

    @property
    def complete(self) -> bool:
        """Whether every chunk is done; if not, some were set aside (see the table "aside") or never reached."""
        return not (self.path / JOURNAL).exists()

    def dataset(self) -> Any:
        """Raw arrays and reductions as an xarray Dataset, with dimensions, coordinates and units; read when used."""
        return needed("xarray").open_zarr(self.path / DATA)

    def tables(self) -> list[str]:
        """Names of the tables that there are."""
        folder = self.path / TABLES
        found = [path.stem for path in sorted(folder.glob("*.parquet"))]
        return found + [f"failures/{name}" for name in self.description.get("failures", {})]

    def table(self, name: str) -> Any:
        """A table as a PyArrow Table: "extremes", "aside", "failures/NAME"."""
        dataset = needed("pyarrow.dataset")
        path = self.path / TABLES / name
        if path.is_dir():
            return dataset.dataset(sorted(map(str, path.glob("*.parquet"))), format="parquet").to_table()
        if name.removeprefix("failures/") in self.description.get("failures", {}):
            return needed("pyarrow").table({"point": np.empty(0, np.int64)})
        path = path.with_name(path.name + ".parquet")
        if not path.exists():
            raise StudyError(
                f"{self.path}: no table {name!r}; there are: {', '.join(self.tables()) or 'none'}"
            )
        return dataset.dataset(path, format="parquet").to_table()

    def __repr__(self) -> str:
        return f"<Results {str(self.path)!r}{'' if self.complete else ', incomplete'}>"
