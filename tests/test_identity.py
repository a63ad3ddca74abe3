"""Which code this is, by content."""

import time

from linkwise import identity


def test_every_file_of_the_package_counts():
    files = identity.package_files()
    assert {"robot.py", "study/native.py", "compiler/cache.py"} <= set(files)
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


def test_a_file_changed_after_the_import_is_no_ones_content(tmp_path):
    """The code in memory may be the one from before, so no other process may take what is filed under the new one."""
    (tmp_path / "a.py").write_text("x")
    later, earlier = time.time_ns() + 10**10, time.time_ns() - 10**10
    plain = dict(identity.files_below(tmp_path))
    assert dict(identity.files_below(tmp_path, later)) == plain
    assert dict(identity.files_below(tmp_path, earlier)) != plain


def test_parts_are_kept_apart():
    assert identity.digest(b"ab", b"c") != identity.digest(b"a", b"bc")


def test_a_package_in_an_archive(tmp_path):
    archive = tmp_path / "packages.zip"
    archive.write_bytes(b"one")
    before = dict(identity.files_below(archive / "linkwise"))
    archive.write_bytes(b"two")
    assert list(before) == ["packages.zip"]
    assert dict(identity.files_below(archive / "linkwise")) != before
