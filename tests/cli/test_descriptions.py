"""ROBOT as a name of the package robot_descriptions; a stand-in package, since the real one downloads."""

import sys

import pytest

import linkwise as lw

URDF = """URDF_PATH = {path!r}
PACKAGE_PATH = {folder!r}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package robot_descriptions with a URDF arm, an MJCF arm, one that cannot be fetched and one of xacro."""
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    urdf = tmp_path / "arm.urdf"
    lw.save(lw.load("two_link"), urdf)
    mjcf = tmp_path / "arm.xml"
    mjcf.write_text(
        '<mujoco model="hand"><worldbody><body name="b"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        '<joint name="j" axis="0 0 1"/></body></worldbody></mujoco>'
    )
    files = {
        "__init__": "",
        "_cache": "raise RuntimeError('imported without need')",
        "twolink_description": URDF.format(path=str(urdf), folder=str(tmp_path)),
        "hand_mj_description": f"MJCF_PATH = {str(mjcf)!r}",
        "far_description": "raise OSError('Could not resolve host\\n over two lines')",
        "xacro_description": "XACRO_PATH = 'arm.xacro'",
        "panda_description": "raise RuntimeError('bundled names go first')",
    }
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "robot"),
    [
        ("twolink_description", "two_link"),
        ("twolink", "two_link"),
        ("hand_mj_description", "hand"),
        ("hand", "hand"),
    ],
)
def test_a_description_is_a_robot(linkwise, package, name, robot):
    ran = linkwise("info", name, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["name"] == robot


def test_load_takes_the_same_names(package, monkeypatch):
    assert lw.load("twolink_description").name == lw.load("twolink").name == "two_link"
    assert lw.load("hand", gravity=(0, 0, 0)).gravity == (0, 0, 0)
    with pytest.raises(lw.ModelError, match="did you mean 'twolink_description'"):
        lw.load("twolnk_description")
    with pytest.raises(lw.ModelError, match="could not fetch it: OSError"):
        lw.load("far_description")
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(lw.ModelError, match="pip install robot_descriptions"):
        lw.load("ur5e_description")


def test_bundled_names_go_first(linkwise, package):
    assert linkwise("info", "panda", "--json").json["name"] == "panda"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("twolnk_description", "did you mean 'twolink_description'?"),
        ("zzzzz_description", "it has 5 others"),
        ("far_description", "could not fetch it: OSError: Could not resolve host over two lines"),
        ("xacro_description", "neither a URDF nor an MJCF file"),
        ("pandda", "did you mean 'panda'?"),
    ],
)
def test_what_is_wrong_is_said(linkwise, package, name, expected):
    assert expected in linkwise("info", name).refused()


def test_without_the_package(linkwise, monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    assert "pip install robot_descriptions" in linkwise("info", "ur5e_description").refused()
    assert "did you mean 'panda'?" in linkwise("info", "pandda").refused()
