"""Every byte of a store is checked: a single flipped bit is found, wherever it is."""

import json
import warnings

import numpy as np
import pytest
import xarray
from faults import TINY, flips
from stores import contents

import linkwise as lw
from linkwise.cli import main
from linkwise.study.errors import StoppedError, StudyError, StudyWarning
from linkwise.study.store.verify import verify


@pytest.fixture
def complete(tmp_path):
    return lw.study(TINY).run(tmp_path / "complete", progress=False).path


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """Half of the chunks are done."""
    from linkwise.study.engines.local import LocalEngine

    real = LocalEngine.run

    def run(self, plan, store, chunks):
        yield from real(self, plan, store, chunks[:3])
        raise StoppedError("pulled the plug")

    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "run", run)
        with pytest.raises(StoppedError):
            lw.study(TINY).run(tmp_path / "unfinished", progress=False)
    return tmp_path / "unfinished"


@pytest.mark.parametrize("state", ["complete", "unfinished"])
def test_every_flipped_bit_is_found(state, request):
    store = request.getfixturevalue(state)
    assert verify(store).damage == ()
    missed = [where for where in flips(store, 150, seed=1) if not verify(store).damage]
    assert not missed
    assert verify(store).damage == (), "they were turned back"


@pytest.mark.parametrize("state", ["complete", "unfinished"])
def test_resume_puts_right_what_was_flipped(state, request, tmp_path):
    """Or says what is damaged."""
    expected = contents(lw.study(TINY).run(tmp_path / "expected", progress=False).path)
    store = request.getfixturevalue(state)
    before = contents(store)
    refused = 0
    study = lw.study(TINY)
    for where in flips(store, 12, seed=2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StudyWarning)
            if "study.json" in where:
                with pytest.raises(StudyError, match=r"study\.json has other bytes|not the folder"):
                    study.run(store, resume=True, progress=False)
                refused += 1
            else:
                study.run(store, resume=True, progress=False)
                assert contents(store) == expected
        for name in contents(store).keys() - before.keys():
            (store / name).unlink()
        for name, data in before.items():
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            (store / name).write_bytes(data)
    assert refused < 10


def test_zarr_finds_a_flipped_bit_in_every_raw_piece_and_reduction(complete):
    """Also without Linkwise: xarray refuses to read it."""
    for name in ("g", "g_mean", "payload.mass"):
        path = next(p for p in (complete / "data.zarr" / name / "c").rglob("*") if p.is_file())
        data = path.read_bytes()
        path.write_bytes(bytes([data[0], data[1] ^ 4, *data[2:]]))
        with pytest.raises(Exception, match=r"(?i)checksum"):
            xarray.open_zarr(complete / "data.zarr")[name].load()
        path.write_bytes(data)


def test_what_is_read_through_results_is_checked(complete):
    for name, read in (
        ("data.zarr/zarr.json", lambda r: r.dataset()),
        ("data.zarr/g/zarr.json", lambda r: r.dataset()),
        ("tables/extremes.parquet", lambda r: r.table("extremes")),
        ("tables/failures/heavy/0000000003.parquet", lambda r: r.table("failures/heavy")),
        ("digests.json", lambda r: r.dataset()),
        ("study.json", lambda r: r),
    ):
        data = (complete / name).read_bytes()
        (complete / name).write_bytes(data.replace(b"e", b"d", 1))
        with pytest.raises(StudyError, match=rf"{name}.* has other bytes"):
            read(lw.open_study(complete))
        (complete / name).write_bytes(data)


def test_the_command_names_array_chunk_and_file(complete, capsys):
    path = complete / "data.zarr" / "g" / "c" / "1" / "2" / "0"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    (complete / "data.zarr" / "g_mean" / "c" / "0").unlink()
    (complete / "tables" / "more.parquet").write_bytes(b"")
    assert main(["study", "--verify", str(complete)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "data.zarr/g/c/1/2/0 (array g, chunk 1, 2, 0) has other bytes than were written in piece 0 of 1",
        "data.zarr/g_mean/c/0 (array g_mean, chunk 0) is missing",
        "tables/more.parquet was not written by the study",
    ]
    assert main(["study", "--verify", str(complete), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["file"], one["array"], one["chunk"]) for one in found["damage"][:2]] == [
        ("data.zarr/g/c/1/2/0", "g", "1, 2, 0"),
        ("data.zarr/g_mean/c/0", "g_mean", "0"),
    ]


def test_the_command_on_an_undamaged_store(complete, capsys):
    assert main(["study", "--verify", str(complete)]) == 0
    assert "all as they were written" in capsys.readouterr().out
    assert main(["study", "--verify", str(complete.parent)]) == 2


def test_a_torn_record_is_no_damage(unfinished):
    journal = unfinished / "journal"
    journal.write_bytes(journal.read_bytes()[:-5])
    found = verify(unfinished)
    assert found.torn
    assert found.damage == ()


def test_what_changes_before_the_finish_is_written_again(tmp_path, monkeypatch):
    """A file that is damaged while the run goes on."""
    from linkwise.study import run as running

    expected = contents(lw.study(TINY).run(tmp_path / "expected", progress=False).path)
    real, store = running._check_written, tmp_path / "store"

    def check(*arguments):
        path = store / "data.zarr" / "g" / "c" / "0" / "1" / "0"
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
        return real(*arguments)

    monkeypatch.setattr(running, "_check_written", check)
    with pytest.warns(StudyWarning, match=r"g/c/0/1/0 has other bytes .* in piece 0 of 1; computed again"):
        lw.study(TINY).run(store, progress=False)
    assert contents(store) == expected


def test_a_disk_that_loses_what_is_written(tmp_path, monkeypatch):
    from linkwise.study.store import digests

    real = digests.problem
    monkeypatch.setattr(
        digests, "problem", lambda path, entry: "is bad" if "/g/c/1/" in str(path) else real(path, entry)
    )
    with (
        pytest.warns(StudyWarning),
        pytest.raises(StoppedError, match="is bad, also after it was written again"),
    ):
        lw.study(TINY).run(tmp_path / "store", progress=False)


def test_shards_that_change_places_are_found(complete):
    """Each is undamaged, but not where it was written."""
    folder = complete / "data.zarr" / "g" / "c" / "0"
    a, b = (folder / "0" / "0"), (folder / "1" / "0")
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    assert {damage.file for damage in verify(complete).damage} == {
        "data.zarr/g/c/0/0/0",
        "data.zarr/g/c/0/1/0",
    }


def test_values_are_as_before_checksums(complete):
    data = lw.open_study(complete).dataset().load()
    assert np.array_equal(data.g_max, data.g.max(dim=("payload.mass", "sample")))
