"""Every file of a store lost, added, cut, exchanged or changed: that is noticed, and nothing else than the manifest
names is counted."""

import os
import random
import shutil
import warnings

import numpy as np
import pytest
from stores import contents

import linkwise as lw
from linkwise.cli import main
from linkwise.study.errors import StoppedError, StudyError, StudyWarning
from linkwise.study.store.status import status
from linkwise.study.store.verify import known, strays, verify

TABLES = {
    "robot": "two_link",
    "seed": 3,
    "samples": 60,
    "chunk": 20,
    "vary": {"q": {"uniform": [-3.0, 3.0]}, "payload.mass": {"grid": [0.0, 2.0]}},
    "compute": {"g": {"function": "gravity_torques"}, "load": "max(abs(g))"},
    "keep": {"g": {"raw": True, "statistics": ["mean", "max"]}, "load": {"quantiles": [0.5]}},
    "failures": {"heavy": "load > 10"},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A complete store, one of another seed, and one that was stopped after four of six chunks."""
    folder = tmp_path_factory.mktemp("stores")
    lw.study(TABLES).run(folder / "complete", progress=False)
    lw.study({**TABLES, "seed": 4}).run(folder / "other", progress=False)
    from linkwise.study import run

    take, left = run._Progress.take, iter([True] * 4)

    def stopping(progress, outcome, journal):
        if not next(left, False):
            raise StoppedError("stopped")
        take(progress, outcome, journal)

    study, partial = lw.study(TABLES), folder / "partial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run._Progress, "take", stopping)
        with pytest.raises(StoppedError):
            study.run(partial, progress=False, threads=1)
    for one in strays(partial, known(partial)):  # they were written, but not recorded
        (partial / one.file).unlink()
    return folder


def numbers(path):
    """Everything that a store is read for; warnings of the store are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", StudyWarning)
        results = lw.open_study(path)
        data = results.dataset().load()
        arrays = {name: np.asarray(data[name]).tolist() for name in data.variables}
        tables = {name: results.table(name).to_pydict() for name in results.tables()}
        return repr((arrays, data.attrs, tables, results.complete))


def damages(path, other, rng):
    """(what, changed files) of every way to damage every file; None: the file is deleted."""
    files = contents(path)
    names = sorted(files)
    for name in names:
        data = files[name]
        yield f"delete {name}", {name: None}
        yield f"empty {name}", {name: b""}
        yield f"cut {name}", {name: data[: rng.randrange(len(data))]}
        yield f"append to {name}", {name: data + b"\0"}
        for _ in range(2):
            place = rng.randrange(len(data))
            flipped = data[place] ^ (1 << rng.randrange(8))
            yield f"flip {name} at {place}", {name: data[:place] + bytes([flipped]) + data[place + 1 :]}
        neighbour = rng.choice([each for each in names if files[each] != data])
        yield f"exchange {name} and {neighbour}", {name: files[neighbour], neighbour: data}
        if files[name] != other.get(name, files[name]):
            yield f"{name} of another study", {name: other[name]}
        folder, _, last = name.rpartition("/")
        if folder:
            head, dot, ending = last.rpartition(".")
            added = (
                f"{int(head or ending) + 90:0{len(head or ending)}d}" if (head or ending).isdigit() else None
            )
            if added:
                yield (
                    f"a copy of {name}",
                    {f"{folder}/{added}{dot if head else ''}{ending if head else ''}": data},
                )


def change(path, changed):
    for name, data in changed.items():
        if data is None:
            os.unlink(path / name)
        else:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)


@pytest.mark.parametrize("kind", ["complete", "partial"])
def test_every_damage_is_noticed(stores, tmp_path, kind):
    """By ``verify`` where the store is complete; by reading, or reading gives the numbers of before."""
    good, other = contents(stores / kind), contents(stores / "other")
    path = tmp_path / "store"
    shutil.copytree(stores / kind, path)
    before = numbers(path)
    unnoticed, wrong = [], []
    for what, changed in damages(path, other, random.Random(0)):
        change(path, changed)
        try:
            found = verify(path)
            noticed = bool(found.damage) or found.torn
        except StudyError:
            noticed = True
        try:
            same = numbers(path) == before
        except Exception:  # of Linkwise, Zarr or PyArrow
            same = True
        if not noticed and kind == "complete":
            unnoticed.append(what)
        if not same and not noticed:
            wrong.append(what)
        for name in changed:
            change(path, {name: good.get(name)})
    assert not unnoticed
    assert not wrong
    assert contents(path) == good


def test_a_lost_file_is_in_the_status(stores, tmp_path, capsys):
    for kind in ("complete", "partial"):
        good = contents(stores / kind)
        for name in [each for each in good if each.startswith(("data.zarr/g/c", "tables"))][:3]:
            path = tmp_path / f"{kind}-{len(name)}"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(stores / kind, path)
            assert not status(path).damage
            os.unlink(path / name)
            found = status(path)
            assert not found.complete
            if kind == "complete" or found.damage:
                assert [one.partition(" ")[0] for one in found.damage] == [name]
    assert main(["study", "--status", str(path)]) == (1 if found.damage else 0)
    capsys.readouterr()


def test_tables_count_what_the_manifest_names(stores, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(stores / "complete", path)
    results = lw.open_study(path)
    rows = results.table("failures/heavy").num_rows
    assert rows
    part = next((path / "tables" / "failures" / "heavy").iterdir())
    shutil.copy(part, part.with_name("0000000099.parquet"))
    shutil.copy(part, path / "tables" / "extra.parquet")
    assert results.table("failures/heavy").num_rows == rows
    assert "extra" not in results.tables()
    assert {one.file for one in verify(path).damage} == {
        "tables/extra.parquet",
        "tables/failures/heavy/0000000099.parquet",
    }
    with pytest.raises(
        StudyError, match=r"extra\.parquet was not written by the study: remove it; and 1 more"
    ):
        lw.study(TABLES).run(path, resume=True, progress=False)


@pytest.mark.parametrize("kind", ["complete", "partial"])
def test_a_store_without_its_manifest_is_not_complete(stores, tmp_path, capsys, kind):
    path = tmp_path / "store"
    shutil.copytree(stores / kind, path)
    for name in ("journal", "digests.json"):
        (path / name).unlink(missing_ok=True)
    (path / "tables" / "errors").mkdir(parents=True)
    (path / "tables" / "errors" / "0000000001.parquet").write_bytes(b"of a run before")
    assert not lw.open_study(path).complete
    assert main(["study", "--status", str(path)]) == 2
    assert (
        "journal and digests.json are missing: it is not known what was computed" in capsys.readouterr().err
    )
    assert main(["study", "--verify", str(path)]) == 1
    with pytest.raises(StudyError, match="not known what was computed"):
        lw.open_study(path).dataset()
    with pytest.warns(StudyWarning, match="all of it is computed again"):
        lw.study(TABLES).run(path, resume=True, progress=False)
    assert contents(path) == contents(stores / "complete")
