"""The folder of a study on disk.

    data.zarr/           raw arrays, reductions and coordinates, with dimensions, units and the study's description
    tables/              Parquet: the extremes and where they are, the points that failed, chunks that were set aside
    study.json           the study itself, and the version that computes it
    journal              what has been done, as long as something is left to do

Nothing in it tells when, where or by how many workers it was made.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import linkwise
from linkwise.study import files
from linkwise.study.axes import SAMPLE, Chunk
from linkwise.study.errors import StudyError, needed
from linkwise.study.keep import Keep
from linkwise.study.plan import Plan
from linkwise.study.quantities import JOINT
from linkwise.study.shards import Layout, Shard

DATA, TABLES, STUDY, JOURNAL = "data.zarr", "tables", "study.json", "journal"


class Store:
    """The store of a plan at a path."""

    def __init__(self, path: str | os.PathLike[str], plan: Plan):
        self.path = Path(path)
        self.plan = plan
        self.layouts = {keep.name: self._layout(keep) for keep in plan.raws}

    def _layout(self, keep: Keep) -> Layout:
        axes, quantity = self.plan.axes, self.plan.quantity(keep.name)
        outer, chunk = axes.shape, axes.chunk_shape
        if self.plan.by_sample(keep.name):
            outer, chunk = outer[-1:], chunk[-1:]
        return Layout(outer, quantity.shape, chunk, keep.dtype, self.plan.description.compression)

    # -- making and opening -----------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the folder: it appears whole or not at all."""
        aside = self.path.with_name(f".{self.path.name}-{os.getpid()}-{os.urandom(6).hex()}")
        try:
            aside.mkdir(parents=True)
            with zarr_quiet():
                self._create_data(aside / DATA)
            files.write(aside / STUDY, self._study().encode())
            (aside / JOURNAL).touch()
            aside.rename(self.path)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _study(self) -> str:
        known = json.loads(self.plan.description.text())
        return json.dumps(
            {"linkwise": linkwise.__version__, "digest": self.plan.description.digest(), "study": known},
            indent=1,
        )

    def check(self) -> None:
        """That an existing folder belongs to this study and this version."""
        known = read_study(self.path)
        if known["linkwise"] != linkwise.__version__:
            raise StudyError(
                f"{self.path}: made by linkwise {known['linkwise']}, this is {linkwise.__version__}; "
                "finish it with that version, or write to another folder"
            )
        if known["digest"] != self.plan.description.digest():
            raise StudyError(f"{self.path}: belongs to another study ({self._difference(known['study'])})")

    def _difference(self, other: dict[str, Any]) -> str:
        own = json.loads(self.plan.description.text())
        for key in sorted({*own, *other} - {"name", "retries"}):
            if own.get(key) != other.get(key):
                if isinstance(own.get(key), dict) and isinstance(other.get(key), dict):
                    inner = {k for k in {*own[key], *other[key]} if own[key].get(k) != other[key].get(k)}
                    return f"{key}.{min(inner)} differs"
                return "the robot differs" if key == "robot_content" else f"{key} differs"
        return "its description differs"

    @property
    def complete(self) -> bool:
        return not (self.path / JOURNAL).exists()

    # -- data -------------------------------------------------------------------------------------------------------

    def _create_data(self, path: Path) -> None:
        zarr = needed("zarr")
        description = self.plan.description
        attributes = {
            "title": description.name,
            "linkwise": linkwise.__version__,
            "robot": self.plan.robot.name,
            "seed": description.seed,
            "study": description.text(),
        }
        group = zarr.create_group(path, attributes=attributes)
        for name, layout in self.layouts.items():
            quantity = self.plan.quantity(name)
            outer = (SAMPLE,) if self.plan.by_sample(name) else self.plan.axes.names
            group.create_array(
                name,
                **layout.metadata(),
                dimension_names=(*outer, *quantity.axes),
                attributes={**described(quantity.unit, quantity.text), "_FillValue": "AAAAAAAA+H8="}
                if layout.dtype == "float64"
                else described(quantity.unit, quantity.text),
            )
        for variable in description.variables:
            if variable.kind == "grid":
                scalar = len(variable.values[0]) == 1
                values = np.array(variable.values)[:, 0] if scalar else np.array(variable.values)
                names = (variable.name,) if scalar else (variable.name, *variable.quantity.axes)
                add_array(group, variable.name, values, names, variable.quantity.unit, variable.quantity.text)
        for slot in self.plan.slots.values():
            if slot.quantity.entries:
                (axis,) = slot.quantity.axes
                add_array(
                    group, axis, np.array(slot.quantity.entries, dtype=object), (axis,), "", "parameter"
                )
        if self.plan.robot.dof:
            add_array(
                group, JOINT, np.array(self.plan.robot.joint_names, dtype=object), (JOINT,), "", "joint"
            )
        zarr.consolidate_metadata(path)

    def group(self) -> Any:
        """The Zarr group, for writing."""
        return needed("zarr").open_group(self.path / DATA, mode="r+", use_consolidated=False)

    def shards(self, chunk: Chunk) -> dict[str, Shard]:
        """Room for the raw values of a chunk, by quantity."""
        found = {}
        for name, layout in self.layouts.items():
            place = self._place(name, chunk)
            if place is not None:
                found[name] = layout.shard(self.path / DATA / name, place)
        return found

    def shard_path(self, name: str, chunk: Chunk) -> str:
        """The file of a shard, in the store."""
        place = self._place(name, chunk)
        assert place is not None
        return str(Path(DATA) / name / self.layouts[name].key(place))

    def _place(self, name: str, chunk: Chunk) -> tuple[int, ...] | None:
        """Where a chunk's part of an array goes; None: nowhere."""
        if not self.plan.by_sample(name):
            return chunk.place
        # the samples are the same at every combination of the grids
        return None if any(chunk.place[:-1]) else chunk.place[-1:]

    def write_table(self, name: str, data: bytes) -> dict[str, int]:
        """Put a Parquet file in its place."""
        path = Path(TABLES) / name
        return {str(path): files.write(self.path / path, data)}

    def has(self, sizes: dict[str, int]) -> bool:
        """Whether all these files are there, with these sizes."""
        try:
            return all((self.path / name).stat().st_size == size for name, size in sizes.items())
        except OSError:
            return False


def add_array(
    group: Any, name: str, values: np.ndarray, axes: tuple[str, ...], unit: str, text: str, **facts: Any
) -> None:
    """A small array, written at once."""
    codecs = needed("zarr.codecs")
    dtype = "string" if values.dtype == object else values.dtype
    attributes = {**described(unit, text), **facts}
    if values.dtype == np.float64:
        attributes["_FillValue"] = "AAAAAAAA+H8="
    array = group.create_array(
        name,
        shape=values.shape,
        chunks=tuple(max(1, n) for n in values.shape),
        dtype=dtype,
        fill_value=np.nan if values.dtype == np.float64 else None,
        dimension_names=axes,
        attributes=attributes,
        compressors=codecs.ZstdCodec(level=3),
        overwrite=True,
    )
    array[...] = values


def described(unit: str, text: str) -> dict[str, str]:
    return {key: value for key, value in (("units", unit), ("long_name", text)) if value}


def read_study(path: Path) -> dict[str, Any]:
    """What ``study.json`` says."""
    try:
        known = json.loads((path / STUDY).read_text(encoding="utf-8"))
        if not {"linkwise", "digest", "study"} <= set(known):
            raise ValueError
        return known
    except (OSError, ValueError):
        raise StudyError(f"{path}: not the folder of a study") from None


@contextmanager
def zarr_quiet() -> Iterator[None]:
    """Without the warnings of Zarr about what is not in its specification yet."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        yield
