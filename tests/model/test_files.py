"""Robots by name and by path, and files that are written whole or not at all."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from linkwise.errors import ModelError, ModelWarning, UnknownNameError
from linkwise.formats import files
from linkwise.model import Inertia, Joint, Link, Model

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
URDF = b'<robot name="r"><link name="a"/></robot>'
BOX = b'<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
MJCF = b'<mujoco model="m"><worldbody><body name="a">' + BOX + b"</body></worldbody></mujoco>"


BODY = Inertia.from_com(1, (0.1, 0, 0), (1, 1, 1))


def arm(inertia: Inertia = BODY, name: str = "arm") -> Model:
    return Model(name, [Link("base"), Link("tip", inertia)], [Joint("elbow", "revolute", "base", "tip")])


@pytest.fixture
def put(tmp_path):
    def write(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


# -- names --------------------------------------------------------------------------------------------------


def test_bundled_robots_load_silently():
    assert {"panda", "puma560", "two_link"} <= set(files.bundled_names())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in files.bundled_names():
            assert files.read(name).dof > 0


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ModelError,
        match=r"pum560: neither a file nor a bundled robot; did you mean 'puma560'\? valid: .*panda",
    ):
        files.read("pum560")


def test_a_name_goes_before_a_file(put, monkeypatch, tmp_path):
    put("panda", URDF)
    monkeypatch.chdir(tmp_path)
    assert files.read("panda").dof == 7
    assert files.read("./panda").name == "r"
    assert files.read(Path("panda")).name == "r"


# -- which reader -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.urdf", URDF, "r"),
        ("a.xml", URDF, "r"),
        ("a.XML", b"\n<?xml version='1.0'?>" + URDF, "r"),
        ("a.xml", MJCF, "m"),
        ("a.urdf", MJCF, "m"),
        ("a.mjcf", b"\xef\xbb\xbf\n" + MJCF, "m"),
        ("a", URDF, "r"),
    ],
)
@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
def test_the_root_element_decides_between_urdf_and_mjcf(put, name, data, expected):
    assert files.read(put(name, data)).name == expected


def test_every_way_to_name_a_file(put):
    path = put("a.urdf", URDF)
    for source in (path, str(path), os.fsencode(path)):
        assert files.read(source).name == "r"


def test_a_repair_is_reported_once(put):
    with pytest.warns(ModelWarning) as caught:
        files.read(put("a.urdf", b"\n<?xml version='1.0'?>" + URDF))
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.urdf", b"", "the file is empty"),
        ("a.toml", b" \n", "the file is empty"),
        ("a.urdf", b"\x00\xff\x13junk", "not well-formed XML"),
        ("a.toml", b"\x00\xff\x13junk", ""),
        ("a.spec", b"\x00\xff\x13junk", ""),
        ("a.yaml", b"a: 1", "unknown ending '.yaml'; a robot is read from .urdf, .xml, .toml, .spec"),
        ("a", b"\x00\xff\x13junk", "unknown ending ''"),
        ("a.xml", b"<sdf/>", "the root element is <sdf>; expected <robot> (URDF) or <mujoco> (MJCF)"),
        ("a.urdf", b"<!DOCTYPE robot><robot/>", "document type"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_file(put, name, data, message):
    path = put(name, data)
    with pytest.raises(ModelError) as caught:
        files.read(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(ModelError, match=r"x\.urdf: no such file \(bundled robots: .*puma560"):
        files.read(tmp_path / "x.urdf")
    with pytest.raises(ModelError, match="it is a directory"):
        files.read(tmp_path)
    with pytest.raises(ModelError, match="cannot be read: File name too long"):
        files.read("x" * 5000 + ".urdf")
    with pytest.raises(ModelError, match="cannot be read: embedded null"):
        files.read("a\0b.urdf")
    for nothing in ("", None, 3, [], 1.5):
        with pytest.raises(ModelError, match="expected the name of a robot or the path of a file, got"):
            files.read(nothing)


def test_what_is_not_a_regular_file(tmp_path):
    pipe = tmp_path / "a.urdf"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match="it is not a regular file"):
        files.read(pipe)


def test_huge_files_are_refused(put, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    with pytest.raises(ModelError, match=r"it has 40 bytes; at most 10 are read"):
        files.read(put("a.urdf", URDF))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(put):
    path = put("a.urdf", URDF)
    path.chmod(0)
    with pytest.raises(ModelError, match="cannot be read: Permission denied"):
        files.read(path)


# -- options ------------------------------------------------------------------------------------------------


def test_gravity_and_lock():
    model = files.read("panda", gravity=np.array([0, 1, 0]), lock={"panda_joint7": 0.5})
    assert model.gravity == (0, 1, 0)
    assert model.dof == 6


@pytest.mark.parametrize("gravity", [3, "abc", (1, 2), [[0, 0, 1]], (0, 0, None), (0, 0, float("nan"))])
def test_bad_gravity(gravity):
    with pytest.raises(ModelError, match="gravity: expected three"):
        files.read("two_link", gravity=gravity)


def test_bad_locks():
    with pytest.raises(UnknownNameError, match="no moving joint 'elbw'"):
        files.read("two_link", lock={"elbw": 0.0})
    for lock in (3, ["panda_joint1"]):
        with pytest.raises(ModelError, match="lock: expected joint names with positions"):
            files.read("panda", lock=lock)
    with pytest.raises(
        ModelError, match="lock: position of joint 'panda_joint1': expected a number, got 'x'"
    ):
        files.read("panda", lock={"panda_joint1": "x"})
    with pytest.raises(ModelError, match="lock: position of joint 'panda_joint1': expected a finite number"):
        files.read("panda", lock={"panda_joint1": float("nan")})


def test_impossible_inertias(tmp_path):
    path = tmp_path / "arm.urdf"
    files.save(arm(Inertia.from_com(1, (0, 0, 0), (1, 1, 3))), path)
    with pytest.warns(ModelWarning, match=r"arm\.urdf: link 'tip': .*triangle inequality"):
        files.read(path)
    with pytest.raises(ModelError, match=r"arm\.urdf: link 'tip': .*triangle inequality"):
        files.read(path, strict=True)


@pytest.mark.skipif(not (DATA / "urdf").is_dir(), reason=f"no robot files at {DATA / 'urdf'}")
def test_a_malformed_file_with_impossible_inertias():
    path = DATA / "urdf" / "malformed" / "FloBaRoID" / "kuka_lwr4_gaz.urdf"
    with pytest.warns(ModelWarning, match=r"kuka_lwr4_gaz\.urdf: link '.*': (inertia|principal)"):
        assert files.read(path).dof == 7
    with pytest.raises(ModelError, match=r"kuka_lwr4_gaz\.urdf: link '.*'"):
        files.read(path, strict=True)


# -- writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".urdf", ".toml", ".URDF"])
@pytest.mark.parametrize("name", ["panda", "puma_valera", "stanford", "two_link"])
def test_what_is_saved_is_read_back(tmp_path, name, ending):
    model = files.read(name)
    files.save(model, tmp_path / f"arm{ending}")
    assert files.read(tmp_path / f"arm{ending}") == model
    assert [entry.name for entry in tmp_path.iterdir()] == [f"arm{ending}"]


def test_an_old_file_is_replaced_and_a_link_is_followed(put, tmp_path):
    old = put("old.urdf", URDF)
    (tmp_path / "link.urdf").symlink_to(old)
    files.save(arm(), tmp_path / "link.urdf")
    assert (tmp_path / "link.urdf").is_symlink()
    assert files.read(old).name == "arm"


def test_a_failed_save_leaves_the_old_file(put, tmp_path, monkeypatch):
    path = put("arm.urdf", URDF)
    with pytest.raises(ModelError, match=r"arm\.urdf: link 'tip': it has a first moment"):
        files.save(arm(Inertia(0.0, (1.0, 0.0, 0.0))), path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match=r"arm\.urdf: cannot be written: No space left on device"):
        files.save(arm(), path)
    assert path.read_bytes() == URDF
    assert [entry.name for entry in tmp_path.iterdir()] == ["arm.urdf"]


def test_places_that_cannot_be_written(tmp_path):
    for path in ("arm.mjcf", "arm", "arm.spec"):
        with pytest.raises(ModelError, match=r"unknown ending .*; a robot is saved as \.urdf, \.toml, \.xml"):
            files.save(arm(), tmp_path / path)
    with pytest.raises(ModelError, match="cannot be written: no such folder as"):
        files.save(arm(), tmp_path / "no" / "arm.urdf")
    (tmp_path / "folder.urdf").mkdir()
    with pytest.raises(ModelError, match="cannot be written: a folder; expected the name of a file"):
        files.save(arm(), tmp_path / "folder.urdf")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.urdf"]
    with pytest.raises(ModelError, match="cannot be written: embedded null"):
        files.save(arm(), "a\0.urdf")
    with pytest.raises(ModelError, match="expected the name of a robot or the path"):
        files.save(arm(), None)
