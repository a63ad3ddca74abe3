"""What is on disk: shards that Zarr reads, journals that survive, folders that are what they say."""

import hashlib
import multiprocessing

import numpy as np
import pytest

import linkwise as lw
from linkwise.study.errors import StudyError
from linkwise.study.store import digests, files
from linkwise.study.store.folder import STUDY, read_study, study_text
from linkwise.study.store.journal import Journal
from linkwise.study.store.pack import packed, unpacked
from linkwise.study.store.shards import ShardLayout


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("outer", "inner", "chunk"),
    [((1000,), (3,), (256,)), ((70_000,), (2, 2), (65_536,)), ((5, 3, 40), (), (1, 2, 40)), ((7,), (), (7,))],
)
def test_zarr_reads_what_is_written(tmp_path, compression, dtype, outer, inner, chunk):
    zarr = pytest.importorskip("zarr")
    layout = ShardLayout(outer, inner, chunk, dtype, compression)
    zarr.create_array(tmp_path / "a", **layout.metadata())
    values = np.random.default_rng(0).normal(size=(*outer, *inner))
    elements = int(np.prod(inner, dtype=int))
    for place in np.ndindex(*(-(-n // c) for n, c in zip(outer, chunk, strict=True))):
        box = tuple(slice(p * c, (p + 1) * c) for p, c in zip(place, chunk, strict=True))
        columns = np.ascontiguousarray(values[box].reshape(-1, elements).T)
        shard = layout.shard(files.Folder(tmp_path), "a", place)
        for part in np.array_split(columns, 3, axis=1):
            shard.add(part)
        shard.add(np.zeros((elements, 5)))  # does not belong to it
        shard.finish()
        entry = shard.put()
        assert digests.problem(tmp_path / "a" / layout.key(place), entry) is None
    assert np.array_equal(zarr.open_array(tmp_path / "a", mode="r")[...], values.astype(dtype))


def test_packed_arrays_come_back():
    arrays = {"a/b": np.arange(6.0).reshape(2, 3), "none": np.empty((0, 4)), "n": np.array([2**60])}
    found, facts = unpacked(packed(arrays, {"chunk": 3, "text": "a\nb"}))
    assert facts == {"chunk": 3, "text": "a\nb"}
    assert all(np.array_equal(found[k], arrays[k]) and found[k].dtype == arrays[k].dtype for k in arrays)


@pytest.mark.parametrize("cut", [1, 5, 12, 16])
def test_a_torn_journal_loses_its_last_record_only(tmp_path, cut):
    path = tmp_path / "journal"
    journal = Journal(path)
    for record in (b"one", b"two" * 100, b"three"):
        journal.append(record)
    journal.close()
    path.write_bytes(path.read_bytes()[:-cut])
    journal = Journal(path)
    assert list(journal.records()) == [b"one", b"two" * 100]
    journal.append(b"four")
    journal.close()
    journal = Journal(path)
    assert list(journal.records()) == [b"one", b"two" * 100, b"four"]
    journal.close()


def test_a_flipped_bit_ends_the_journal(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append(b"one")
    journal.append(b"two")
    journal.close()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    journal = Journal(path)
    assert list(journal.records()) == [b"one"]
    journal.close()


def _hold(path, ready, done):
    journal = Journal(path)
    ready.set()
    done.wait(30)
    journal.close()


def test_one_process_at_a_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "journal", ready, done))
    other.start()
    assert ready.wait(60)
    with pytest.raises(StudyError, match="another process"):
        Journal(tmp_path / "journal")
    done.set()
    other.join()
    Journal(tmp_path / "journal").close()


def test_what_dead_writers_left_is_swept(tmp_path):
    folder = tmp_path / "a" / "b"
    files.Folder(tmp_path).write("a/b/kept", b"x")
    (folder / ".aside-kept-1-2").write_bytes(b"y")
    files.sweep(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_a_store_of_another_study(small, run, tmp_path):
    store = run(small).path
    for change, word in (
        ({"seed": 4}, "seed differs"),
        ({"samples": 41_000}, "samples differs"),
        ({"robot": lw.load("two_link").with_gravity((0, 0, -1))}, "robot"),
        ({"keep": {"tau": ["mean"]}}, "keep"),
    ):
        with pytest.raises(StudyError, match=f"belongs to another study.*{word}"):
            lw.study({**small, **change}).run(store, resume=True)
    lw.study({**small, "name": "another title"}).run(store, resume=True)


def test_a_store_of_another_version(small, run):
    store = run(small).path
    known = read_study(store)
    (store / STUDY).write_text(study_text({**known, "linkwise": "0.0.9"}))
    with pytest.raises(StudyError, match=r"store0: linkwise 0\.0\.9 became"):
        lw.study(small).run(store, resume=True)


def test_the_text_of_a_store_that_was_written_long_ago_is_still_read(tmp_path):
    """Byte by byte: other spaces would make every older store a damaged one."""
    written = """{
 "linkwise": "0.3.0",
 "digest": "abc",
 "study": {
  "format": 2,
  "seed": 3
 },
 "sha256": "DIGEST"
}"""
    rest = written.replace(',\n "sha256": "DIGEST"', "")
    (tmp_path / STUDY).write_text(written.replace("DIGEST", hashlib.sha256(rest.encode()).hexdigest()))
    known = read_study(tmp_path)
    assert known == {"linkwise": "0.3.0", "digest": "abc", "study": {"format": 2, "seed": 3}}
    (tmp_path / STUDY).write_text((tmp_path / STUDY).read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(StudyError, match="other bytes than were written"):
        read_study(tmp_path)


def test_not_a_store(small, tmp_path):
    with pytest.raises(StudyError, match="not the folder of a study"):
        lw.study(small).run(tmp_path)
    with pytest.raises(StudyError, match="nothing to resume"):
        lw.study(small).run(tmp_path / "none", resume=True)
    with pytest.raises(StudyError, match="does not exist"):
        lw.study(small).run(tmp_path / "no" / "folder")
    with pytest.raises(StudyError, match="not the folder of a study"):
        lw.open_study(tmp_path)


def test_what_a_killed_start_left_is_removed(small, tmp_path):
    """But not what another process is making, nor anything else that looks a little alike."""
    store = tmp_path / "torques.study"
    left = tmp_path / ".torques.study-123456-0123456789ab"
    (left / "data.zarr").mkdir(parents=True)
    alike = [tmp_path / name for name in (".torques.study-x-0123456789ab", ".other.study-1-0123456789ab")]
    for folder in alike:
        folder.mkdir()
    making = files.NewFolder(store)
    lw.study(small).run(store, progress=False)
    assert not left.exists()
    assert making.folder.path.exists()
    assert all(folder.exists() for folder in alike)
    making.close()
    assert sorted(tmp_path.iterdir()) == sorted([store, *alike])


@pytest.mark.parametrize("name", ["../../x", "a/b", ".hidden", "", "a\\b", "a\nb", "..", "x" * 200])
def test_names_that_would_leave_the_folder(small, tmp_path, name):
    value = {"grid": [0.0, 1.0]}
    for change in (
        {"failures": {name: "load > 1"}},
        {"compute": {**small["compute"], name: "load * 2"}, "keep": {name: "raw"}},
        {
            "vary": {**small["vary"], name: value},
            "compute": {**small["compute"], "y": "load"},
            "keep": {name: "raw"},
        },
    ):
        with pytest.raises(StudyError, match=r"expected a (name|text)"):
            lw.study({**small, **change})
    with pytest.raises(StudyError, match="no table"):
        lw.study(small).run(tmp_path / "s", progress=False).table("../../x")


def test_two_arrays_of_one_name(small):
    small["compute"]["tau_mean"] = "load * 2"
    small["keep"]["tau_mean"] = "raw"
    with pytest.raises(
        StudyError, match=r"keep\.tau_mean: the array tau_mean would also be that of keep\.tau"
    ):
        lw.study(small)
