"""Files outside the folder of a robot file are opened only where the user allows their folder."""

import json

import pytest

import linkwise as lw
from linkwise.cli.app import run

BODY = '<body name="b"><joint name="j"/><geom size=".1"/></body>'


@pytest.fixture
def folders(tmp_path):
    """A robot that includes, attaches and takes a mesh from folders beside its own."""
    for name in ("robot", "common", "parts"):
        (tmp_path / name).mkdir()
    (tmp_path / "common" / "body.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    (tmp_path / "common" / "child.xml").write_text(f"<mujoco><worldbody>{BODY}</worldbody></mujoco>")
    (tmp_path / "parts" / "p.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n")
    robots = {
        "include": '<worldbody><include file="../common/body.xml"/></worldbody>',
        "attach": '<asset><model name="c" file="../common/child.xml"/></asset>'
        '<worldbody><attach model="c" body="b" prefix="x_"/></worldbody>',
        "mesh": '<compiler meshdir="../parts"/><asset><mesh name="p" file="p.obj"/></asset><worldbody>'
        '<body name="b"><joint name="j"/><geom type="mesh" mesh="p"/></body></worldbody>',
        "absolute": f'<worldbody><include file="{tmp_path}/common/body.xml"/></worldbody>',
    }
    for name, text in robots.items():
        (tmp_path / "robot" / f"{name}.xml").write_text(f"<mujoco>{text}</mujoco>")
    return tmp_path


@pytest.mark.parametrize("name", ["include", "attach", "mesh", "absolute"])
def test_a_folder_that_is_allowed(folders, name):
    path = folders / "robot" / f"{name}.xml"
    with pytest.raises(lw.ModelError, match="file"):
        lw.load(path)
    with pytest.raises(lw.ModelError, match="outside"):
        lw.load(path, allow=[folders / "robot"])
    allowed = [folders / "common", str(folders / "parts")]
    assert lw.load(path, allow=allowed).dof == 1


def test_the_command_line_allows_folders(folders, capsys):
    arguments = ["info", str(folders / "robot" / "include.xml"), "--json"]
    assert run(arguments) == 2
    assert "outside" in capsys.readouterr().err
    assert run([*arguments, "--allow", str(folders / "common")]) == 0
    assert json.loads(capsys.readouterr().out)["dof"] == 1


def test_symbolic_links_do_not_leave_an_allowed_folder(folders):
    (folders / "common" / "link.xml").symlink_to(folders / "parts" / "body.xml")
    (folders / "parts" / "body.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    path = folders / "robot" / "linked.xml"
    path.write_text('<mujoco><worldbody><include file="../common/link.xml"/></worldbody></mujoco>')
    with pytest.raises(lw.ModelError, match="outside"):
        lw.load(path, allow=[folders / "common"])
