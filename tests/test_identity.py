"""Which code this is, by content."""

import time

import pytest

from linkwise.core import identity


def test_every_file_of_the_package_counts():
    files = identity.package_files()
    assert {"robot/robot.py", "study/engines/native.py", "compiler/runtime/cache.py"} <= set(files)
    assert any(path.endswith(".toml") for path in files), "data files, too"
    assert not any("__pycache__" in path for path in files)
    assert identity.package_digest() == identity.tree_digest(files)


def test_content_names_and_places_count(tmp_path):
    def digest():
        return identity.tree_digest(dict(identity.files_below(tmp_path)))

    (tmp_path / "a.py").write_text("x")
    first = digest()
    (tmp_path / "a.py").write_text("y")
    second = digest()
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    third = digest()
    (tmp_path / "inner").mkdir()
    (tmp_path / "b.py").rename(tmp_path / "inner" / "b.py")
    assert len({first, second, third, digest()}) == 4
    (tmp_path / "inner" / "broken").symlink_to(tmp_path / "nowhere")
    assert digest()
    (tmp_path / "inner" / "__pycache__").mkdir()
    before = digest()
    (tmp_path / "inner" / "__pycache__" / "b.pyc").write_text("compiled")
    assert digest() == before


@pytest.mark.parametrize("years", [0, -30, 5], ids=["clock right", "clock behind", "clock ahead"])
def test_a_file_changed_after_the_import_is_no_ones_content(tmp_path, monkeypatch, years):
    """The code in memory may be the one from before, so no other process may take what is filed under the new one.
    Files that were not changed keep their digests with any clock, also one that is set right while a process runs."""
    clock = time.time_ns
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x")
    plain = dict(identity.files_below(tmp_path))
    time.sleep(0.02)  # times of files advance in steps
    monkeypatch.setattr(time, "time_ns", lambda: clock() + years * 365 * 24 * 3600 * 10**9)
    imported = identity.Imported(tmp_path, str(tmp_path / "a.py"))
    assert dict(identity.files_below(tmp_path, imported)) == plain
    if years < 0:
        monkeypatch.setattr(time, "time_ns", clock)
        assert dict(identity.files_below(tmp_path, imported)) == plain
    if years > 0:
        return  # times of changed files are not those of the clock: nothing can be told
    time.sleep(0.02)
    (tmp_path / "b.py").write_text("y")
    now, after = dict(identity.files_below(tmp_path)), dict(identity.files_below(tmp_path, imported))
    assert now["b.py"] != after["b.py"]
    assert now["a.py"] == after["a.py"] == plain["a.py"]


def test_parts_are_kept_apart():
    assert identity.digest(b"ab", b"c") != identity.digest(b"a", b"bc")


def test_a_package_in_an_archive(tmp_path):
    archive = tmp_path / "packages.zip"
    archive.write_bytes(b"one")
    before = dict(identity.files_below(archive / "linkwise"))
    archive.write_bytes(b"two")
    assert list(before) == ["packages.zip"]
    assert dict(identity.files_below(archive / "linkwise")) != before
