"""Reports: one file, offline, light; sections from plain data."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import linkwise as lw
from linkwise.report import HtmlTable, Report, Section, Text, robot_picture, sections

T = np.linspace(0, 2, 101)


@pytest.fixture(scope="module")
def robot():
    return lw.load("stanford")  # turns and slides


@pytest.fixture(scope="module")
def report(robot) -> Report:
    rng = np.random.default_rng(0)
    q, qd, tau = rng.normal(size=(3, 101, robot.dof))
    made = Report("A <title>", "and a subtitle")
    made.add(sections.facts({"command": "linkwise & more", "robot": robot.name}))
    made.add(sections.robot(robot, q[0], ghosts=[q[1]], trace=robot.pose(q)[:, :3, 3]))
    made.add(sections.motion(robot, T, q, qd))
    made.add(sections.torques(robot, T, tau))
    made.add(sections.agreement([sections.Agreement("inverse_dynamics", "newton_euler", 0.0, 1e-16)]))
    made.add(sections.operations([sections.Counts("f", "a", (10, 5), (20, 10), [("Khosla", 30, 20)])], "arm"))
    made.add(
        sections.timings([sections.Timing("f", "linkwise", 12.3), sections.Timing("f", "pinocchio", 900.0)])
    )
    made.add(sections.tracking(robot, T, {"computed torque": 0.01 * q}))
    labels = [f"link{k}.m" for k in range(50)]
    fit = {"t": T, "measured": tau, "predicted": tau + 0.1, "names": robot.joint_names}
    made.add(sections.identification(labels, np.arange(50.0), np.ones(50), **fit))
    return made


def test_the_page_needs_nothing_else(report):
    text = report.html()
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text), "something from elsewhere"
    assert "@import" not in text
    assert "<title>A &lt;title&gt;</title>" in text
    assert "linkwise &amp; more" in text
    assert len(text) < 6_000_000
    for section in report.sections:
        assert section.title.replace("&", "&amp;") in text


def test_figures_are_files(report, tmp_path):
    written = report.write_figures(tmp_path / "figures")
    assert len(written) == len({path.name for path in written}) > 10
    for path in written:
        root = ET.fromstring(path.read_text(encoding="utf-8"))
        assert root.get("width")
        assert "var(" not in path.read_text(encoding="utf-8")


def test_written_whole_or_not_at_all(report, tmp_path):
    path = report.write(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(lw.LinkwiseError, match="cannot be written"):
        report.write(tmp_path / "nowhere" / "report.html")


def test_turning_and_sliding_joints_have_plots_of_their_own(report):
    names = [figure.name for section in report.sections for figure in section.figures]
    assert {"positions", "positions_sliding", "torques", "torques_sliding"} <= set(names)


def test_tables_drop_what_is_not_known():
    table = HtmlTable(["a", ">b"], [["x", 1]], ["<note>"]).html()
    assert "<td class=n>1</td>" in table
    assert "&lt;note&gt;" in table
    section = sections.torques(lw.load("puma560"), T, np.ones((101, 6)))
    assert "limit" not in section.html(0)
    assert "limit" in sections.torques(lw.load("panda"), T, np.ones((101, 7))).html(0)


def test_text_is_escaped():
    assert Section("<h>", [Text("<script>")]).html(0).count("&lt;") == 2


@pytest.mark.parametrize("name", [*lw.robots(), "tree"])
def test_every_robot_has_a_picture(name):
    robot = lw.random_robot(3, 8, tree=True) if name == "tree" else lw.load(name)
    drawing = ET.fromstring(robot_picture(robot, np.zeros(robot.dof)))
    numbers = re.findall(r"nan|inf", ET.tostring(drawing, encoding="unicode"))
    assert not numbers
    assert len(drawing.findall(".//{*}ellipse")) >= 3 * robot.dof


def test_a_picture_without_gravity():
    robot = lw.load("two_link").with_gravity((0, 0, 0))
    assert "<svg" in robot_picture(robot, np.zeros(2))


def test_limits_that_a_motion_leaves_are_explained():
    arm = lw.load("panda")
    q = np.zeros((101, 7))
    q[:, 3] = np.linspace(-1.0, 0.5, 101)  # its range ends at −4°
    shown = sections.motion(arm, T, q, np.gradient(q, T, axis=0)).html(0)
    assert "panda_joint4 leaves its range of" in shown
    assert "not enforced" in shown
    assert "leaves its velocity" not in shown
    tau = np.zeros((101, 7))
    tau[60:, 6] = 500.0
    words = sections.torques(arm, T, tau).html(0)
    assert "panda_joint7 needs 500 N·m, more than its limit of 12 N·m: first at 1.2 s" in words


def test_small_torques_have_a_scale_of_their_own():
    arm = lw.load("puma560")
    tau = np.sin(T)[:, np.newaxis] * np.array([40.0, 60.0, 20.0, 1.0, 0.5, 0.2])
    figures = sections.torques(arm, T, tau).figures
    assert [figure.name for figure in figures] == ["torques", "torques_small"]
    assert "wrist_bend" in figures[1].legend
    assert "wrist_bend" not in figures[0].legend
    alike = sections.torques(arm, T, np.sin(T)[:, np.newaxis] * np.ones(6)).figures
    assert [figure.name for figure in alike] == ["torques"]


def test_one_bar_is_a_sentence():
    shown = sections.timings([sections.Timing("mass_matrix", "linkwise", 12.3)])
    assert not shown.figures
    assert "linkwise: 12.3 ns." in shown.html(0)


def test_friction_is_shown_where_it_is_used():
    arm = lw.load("puma560")
    assert "viscous friction" in sections.robot(arm, np.zeros(6)).html(0)
    assert "viscous friction" not in sections.robot(arm, np.zeros(6), friction=False).html(0)
