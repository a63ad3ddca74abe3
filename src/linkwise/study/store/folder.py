"""The folder of a study on disk.

    data.zarr/           raw arrays, reductions and coordinates, with dimensions, units and the study's description
    tables/              Parquet: the extremes and where they are, the points that failed, chunks that were set aside
    study.json           the study itself, and the version that computes it
    journal              what has been done, as long as something is left to do
    digests.json         what the bytes of all other files are, when nothing is left to do

One of the last two is the manifest: it alone says what was computed. Files that it does not name do not count.

Its content does not depend on when, where or by how many workers it was made. Arrays are built in memory and written
by ``files`` as everything else is, so that the order in which things become durable is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.study import identity
from linkwise.study.errors import StudyError, needed
from linkwise.study.plan import Plan
from linkwise.study.quantities import JOINT
from linkwise.study.reduce.keep import Keep
from linkwise.study.sampling.axes import SAMPLE, Chunk
from linkwise.study.store import digests, files
from linkwise.study.store.digests import Entries
from linkwise.study.store.journal import framed
from linkwise.study.store.pack import packed
from linkwise.study.store.shards import Shard, ShardLayout
from linkwise.version import __version__

DATA, TABLES, STUDY, JOURNAL = "data.zarr", "tables", "study.json", "journal"
FAILURES, ERRORS = "failures", "errors"
"""Folders of tables, with a file for each chunk that has some."""
_OWN_DIGEST = "sha256"


class Store:
    """The store of a plan at a path."""

    def __init__(self, path: str | os.PathLike[str], plan: Plan):
        self.path = Path(path)
        self.plan = plan
        self.folder = files.Folder(self.path)
        self.layouts = {keep.name: self._layout(keep) for keep in plan.raws}

    def _layout(self, keep: Keep) -> ShardLayout:
        axes, quantity = self.plan.axes, self.plan.quantity(keep.name)
        outer, chunk = axes.shape, axes.chunk_shape
        if self.plan.by_sample(keep.name):
            outer, chunk = outer[-1:], chunk[-1:]
        return ShardLayout(outer, quantity.shape, chunk, keep.dtype, self.plan.description.compression)

    # -- making and opening -----------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the folder: it appears whole or not at all. Remains of processes that were killed are removed."""
        files.sweep_new_folders(self.path)
        made = files.NewFolder(self.path)
        try:
            content = self.arrays().files()
            # study.json has a digest of its own: it may be written again later
            first = created(content, self.plan.description.digest())
            start = {STUDY: self._study().encode(), JOURNAL: framed(first)}
            made.folder.write_all({**content, **start})
            made.put()
        finally:
            made.close()

    def restore(self) -> None:
        """Put right what was there before anything was computed; a run that is finishing has changed the group."""
        content = self.arrays().files()
        del content[f"{DATA}/zarr.json"]
        wrong = {
            name: data
            for name, data in content.items()
            if digests.problem(self.path / name, digests.of(data)) is not None
        }
        if wrong:
            self.folder.write_all(wrong)

    def reopen(self, leftovers: Iterable[str]) -> None:
        """Begin again in a store; ``leftovers`` are files that are removed at the end unless they are written again."""
        first = created(self.arrays().files(), self.plan.description.digest())
        rest = packed({}, {"leftovers": sorted(leftovers)})
        self.folder.write(JOURNAL, framed(first) + framed(rest))
        self.folder.remove([digests.NAME])

    def _study(self) -> str:
        description = self.plan.description
        return study_text(
            {
                "linkwise": __version__,
                "digest": description.digest(),
                "study": json.loads(description.text()),
                "axes": self.plan.axes.facts(),
                "layout": self.plan.layout(),
                "identity": description.identity,
            }
        )

    def check(self) -> list[str]:
        """That an existing folder belongs to this study. What has changed since in the code or the robot."""
        known = read_study(self.path)
        if known["digest"] != self.plan.description.digest():
            raise StudyError(f"{self.path}: belongs to another study ({self._difference(known['study'])})")
        layout = self.plan.layout()
        before = known.get("layout", layout)
        for name in {**before, **layout}:
            if before.get(name) != layout.get(name):
                raise StudyError(
                    f"{self.path}: belongs to another study ({name} has other elements than before)"
                )
        made_by = known.get("identity") and {**known["identity"], "linkwise": known["linkwise"]}
        return identity.changes(made_by, self.plan.description.identity)

    def accept(self, changes: list[str], done: Iterable[int]) -> None:
        """Go on with other code than before, and keep a record of that."""
        known = read_study(self.path)
        record = identity.accepted(known.get("identity"), changes, done)
        known["accepted_changes"] = [*known.get("accepted_changes", ()), record]
        known |= {"linkwise": __version__, "identity": self.plan.description.identity}
        self.folder.write(STUDY, study_text(known).encode())

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
        return complete(self.path)

    # -- data -------------------------------------------------------------------------------------------------------

    def arrays(self, **attributes: Any) -> ArrayFiles:
        """What is known of the arrays before anything is computed: raw arrays without values, and coordinates."""
        description = self.plan.description
        files = ArrayFiles(
            {
                "title": description.name,
                "linkwise": __version__,
                "robot": self.plan.robot.name,
                "seed": description.seed,
                "study": description.text(),
                **attributes,
            }
        )
        for name, layout in self.layouts.items():
            quantity = self.plan.quantity(name)
            outer = (SAMPLE,) if self.plan.by_sample(name) else self.plan.axes.names
            files.add_empty(
                name,
                layout.metadata(),
                (*outer, *quantity.axes),
                {**described(quantity.unit, quantity.text), **_fill_value(layout.dtype)},
            )
        for variable in description.variables:
            if variable.kind == "grid":
                scalar = len(variable.values[0]) == 1
                values = np.array(variable.values)[:, 0] if scalar else np.array(variable.values)
                names = (variable.name,) if scalar else (variable.name, *variable.quantity.axes)
                files.add(variable.name, values, names, variable.quantity.unit, variable.quantity.text)
        labelled = [slot.quantity for slot in self.plan.slots.values() if slot.quantity.entries]
        for axis, entries in {quantity.axes[0]: quantity.entries for quantity in labelled}.items():
            files.add(axis, np.array(entries, dtype=object), (axis,), "", "parameter")
        if self.plan.robot.dof:
            files.add(JOINT, np.array(self.plan.robot.joint_names, dtype=object), (JOINT,), "", "joint")
        return files

    def raw(self, name: str) -> Any:
        """A raw array, for reading."""
        return needed("zarr").open_array(self.path / DATA / name, mode="r")

    def shards(self, chunk: Chunk) -> dict[str, Shard]:
        """Room for the raw values of a chunk, by quantity."""
        shards = {}
        for name, layout in self.layouts.items():
            place = self._place(name, chunk)
            if place is not None:
                shards[name] = layout.shard(self.folder, f"{DATA}/{name}", place)
        return shards

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

    def write_table(self, name: str, data: bytes) -> Entries:
        """Put a Parquet file in its place."""
        path = f"{TABLES}/{name}"
        self.folder.write(path, data)
        return {path: digests.of(data)}

    def problem(self, entries: Entries) -> str | None:
        """The first of these files whose bytes are not those of its entry, and how it differs; None: all are right."""
        for name, entry in entries.items():
            difference = digests.problem(self.path / name, entry)
            if difference:
                return f"{name} {difference}"
        return None


class ArrayFiles:
    """A Zarr group that is built in memory."""

    def __init__(self, attributes: Mapping[str, Any]):
        self._files: dict[str, Any] = {}
        self._store = needed("zarr.storage").MemoryStore(self._files)
        with zarr_quiet():
            self._group = needed("zarr").create_group(self._store, attributes=dict(attributes))

    def add_empty(
        self, name: str, metadata: Mapping[str, Any], axes: tuple[str, ...], attributes: Mapping[str, Any]
    ) -> None:
        """An array whose values are written by others."""
        with zarr_quiet():
            self._group.create_array(name, **metadata, dimension_names=axes, attributes=dict(attributes))

    def add(
        self, name: str, values: np.ndarray, axes: tuple[str, ...], unit: str, text: str, **facts: Any
    ) -> None:
        """A small array with its values."""
        codecs = needed("zarr.codecs")
        dtype: Any = str if values.dtype == object else values.dtype
        with zarr_quiet():
            array = self._group.create_array(
                name,
                shape=values.shape,
                chunks=tuple(max(1, n) for n in values.shape),
                dtype=dtype,
                fill_value=np.nan if values.dtype == np.float64 else None,
                dimension_names=axes,
                attributes={**described(unit, text), **facts, **_fill_value(str(values.dtype))},
                compressors=[codecs.ZstdCodec(level=3), codecs.Crc32cCodec()],
            )
            array[...] = values

    def files(self) -> dict[str, bytes]:
        """Every file of the group, by its name in the store."""
        with zarr_quiet():
            needed("zarr").consolidate_metadata(self._store)
        return {f"{DATA}/{name}": content.to_bytes() for name, content in sorted(self._files.items())}


def _fill_value(dtype: str) -> dict[str, str]:
    """Attribute that marks NaN as missing values for xarray."""
    return {"_FillValue": "AAAAAAAA+H8="} if dtype == "float64" else {}


def created(content: Mapping[str, bytes], study: str) -> bytes:
    """The first record of a journal: the files that were there before anything was computed, and the digest of the
    study."""
    entries = {name: digests.of(data) for name, data in content.items()}
    return packed({}, {"created": entries, "study": study})


def complete(path: Path) -> bool:
    """Whether nothing is left to do: there is no journal, but the list of all files, which is written at the end."""
    if (path / JOURNAL).exists():
        return False
    return (path / digests.NAME).is_file() or read_study(path)["study"].get("format") == 1


def described(unit: str, text: str) -> dict[str, str]:
    return {key: value for key, value in (("units", unit), ("long_name", text)) if value}


def study_text(known: Mapping[str, Any]) -> str:
    """The content of ``study.json``, which ends with a digest of the rest."""
    return json.dumps({**known, _OWN_DIGEST: _own_digest(known)}, indent=1)


def _own_digest(known: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(known, indent=1).encode()).hexdigest()


def read_study(path: Path) -> dict[str, Any]:
    """What ``study.json`` says."""
    try:
        data = (path / STUDY).read_bytes()
    except OSError:
        raise StudyError(f"{path}: not the folder of a study") from None
    try:
        known = json.loads(data)
        if not {"linkwise", "digest", "study"} <= set(known):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        if any(word in data for word in (b'"sha256"', b'"digest"')):  # one of them may be what is damaged
            raise _damage_error(path) from None
        raise StudyError(f"{path}: not the folder of a study") from None
    digest = known.pop(_OWN_DIGEST, None)
    before_digests = digest is None and known["study"].get("format") == 1
    if not before_digests and study_text(known).encode() != data:
        raise _damage_error(path)
    return known


def _damage_error(path: Path) -> StudyError:
    return StudyError(f"{path}: {STUDY} has other bytes than were written; restore it from a copy")


@contextmanager
def zarr_quiet() -> Iterator[None]:
    """Without the warnings of Zarr about what is not in its specification yet."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        yield
