"""A package that is not installed: one line that says which pip install to run."""

import sys

import pytest

STUDY = """
robot = "two_link"
samples = 10
[vary]
q = { uniform = [-1.0, 1.0] }
[compute]
g = { function = "gravity_torques" }
[keep]
g = ["mean"]
"""


def test_studies(linkwise, tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.setitem(sys.modules, "zarr", None)
    said = linkwise("study", tmp_path / "study.toml", "--out", tmp_path / "study").refused()
    assert "pip install 'linkwise[cluster]'" in said
    assert not (tmp_path / "study").exists()


def test_meshes_that_need_a_reader(monkeypatch):
    from linkwise.errors import MissingExtraError
    from linkwise.geometry.meshes import read_mesh

    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'linkwise\[view\]'"):
        read_mesh(b"v 0 0 0", ".obj", "file")
