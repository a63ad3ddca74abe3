"""Findings in robot files: each fault put into a file is found, with its line; a good file has none."""

import numpy as np
import pytest

from research import robot_files

LINK = """  <link name="{name}">
    <inertial><origin xyz="{com}"/><mass value="{mass}"/>
      <inertia ixx="{i[0]}" iyy="{i[1]}" izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
"""
JOINT = """  <joint
      name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{next}"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="{low}" upper="1" effort="{effort}" velocity="{velocity}"/></joint>
"""
GOOD = {"com": "0.1 0 0", "mass": 1.0, "i": (0.01, 0.01, 0.01)}
JOINTS = {"low": -1, "effort": 17, "velocity": 2.3}


def written(path, links=(), joints=()):
    """A chain of three joints; ``links`` and ``joints`` are changes of the first ones."""
    changes = [*links, *({} for _ in range(3 - len(links)))]
    text = '<robot name="arm">\n  <link name="l0"/>\n'
    text += "".join(LINK.format(name=f"l{k + 1}", **{**GOOD, **change}) for k, change in enumerate(changes))
    limits = [*joints, *({} for _ in range(3 - len(joints)))]
    text += "".join(JOINT.format(k=k, next=k + 1, **{**JOINTS, **change}) for k, change in enumerate(limits))
    path.write_text(text + "</robot>\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("links", "joints", "kind", "element"),
    [
        ([{"i": (0.01, 0.01, 0.05)}], [], "impossible", "l1"),
        ([{}, {"i": (900.0, 900.0, 900.0)}], [], "units", "l2"),
        ([{}, {"com": "100 0 0"}], [], "units", "l2"),
        ([{"i": (1e-12, 1e-12, 1e-12)}], [], "units", "l1"),
        ([{}, {}, {"i": (0.0, 0.0, 0.0)}], [], "massless", "l3"),
        ([], [{"low": 1}], "limits", "j0"),
        ([], [{"effort": 100}] * 3, "limits", "j0"),
        ([], [{"velocity": 10}] * 3, "limits", "j0"),
    ],
)
def test_a_fault_is_found_with_its_line(tmp_path, links, joints, kind, element):
    path = written(tmp_path / "arm.urdf", links, joints)
    (found,) = robot_files.findings(path)
    assert (found.kind, found.element) == (kind, element)
    line = robot_files.line_of(path, element)
    assert f'name="{element}"' in "\n".join(path.read_text().splitlines()[line - 1 : line + 1])


def test_a_good_file_has_no_finding_and_a_broken_one_its_reason(tmp_path):
    assert robot_files.findings(written(tmp_path / "arm.urdf")) == []
    (tmp_path / "broken.urdf").write_text('<robot name="x"><link/></robot>')
    (found,) = robot_files.findings(tmp_path / "broken.urdf")
    assert found.kind == "unreadable"
    assert found.words


def test_the_page_counts_what_it_lists(tmp_path):
    written(tmp_path / "a.urdf", [{"i": (0.01, 0.01, 0.05)}])
    written(tmp_path / "b.urdf")
    files = robot_files.robot_files([tmp_path])
    robot_files.FILES[:] = files
    found = robot_files.counts(np.arange(2.0))
    text = robot_files.page(files, found, {"mine": tmp_path})
    assert "2 files; 1 without a finding." in text
    assert "| inertias that no body can have | 1 | 1 |" in text
    assert "| a.urdf | 3 l1 | moments 0.01" in text


def test_rows_of_equal_files_and_elements_are_joined(tmp_path):
    """Limits of the same joints are one row; a second file with the same rows refers to the first."""
    faults = [{"i": (0.01, 0.01, 0.05)}, {"i": (0.01, 0.01, 0.06)}], [{"effort": 100, "velocity": 10}] * 3
    for name in ("a.urdf", "b.urdf"):
        written(tmp_path / name, *faults)
    written(tmp_path / "c.urdf", [{"i": (-0.01, 0.01, 0.02)}])
    files = robot_files.robot_files([tmp_path])
    robot_files.FILES[:] = files
    text = robot_files.page(files, robot_files.counts(np.arange(3.0)), {"mine": tmp_path})
    assert "all 3 turning joints have the effort limit 100 N·m and the velocity limit 10 rad/s |" in text
    assert "| b.urdf | | as a.urdf: 3 rows |" in text
    assert "| c.urdf | 3 l1 | moments -0.01, 0.01, 0.02 |" in text
