"""``linkwise tour``: a first look at any robot that can be read, without a traceback, and what it says is true."""

from __future__ import annotations

import html
import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.support import headings
from linkwise.cli.tour import _show_payload
from linkwise.tour import agreed, code, payload_capability, tool_link
from linkwise.tour.look import _attempted
from linkwise.tour.odd import oddities

INERTIA = '<mass value="{mass}"/><inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/>'


def link(name: str, mass: float = 1.0, i: float = 0.01) -> str:
    body = f"<inertial>{INERTIA.format(mass=mass, i=i)}</inertial>" if mass else ""
    return f'<link name="{name}">{body}</link>'


def joint(
    name: str, parent: str, child: str, more: str = "", kind: str = "revolute", xyz: str = "0.3 0 0"
) -> str:
    limit = '<limit lower="-1" upper="1" effort="20" velocity="2"/>' if "limit" not in more else more
    mimic = more if "mimic" in more else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="0 1 0"/>{limit}{mimic}</joint>'
    )


ARM = [link("base"), link("a"), link("b", 2.0), joint("j1", "base", "a"), joint("j2", "a", "b")]
FINGERS = [
    *(link("left", 0.1), link("right", 0.1)),
    joint("finger1", "b", "left", '<limit lower="0" upper="0.04" effort="5" velocity="1"/>', "prismatic"),
    joint("finger2", "b", "right", '<mimic joint="finger1"/>', "prismatic"),
]
ROBOTS = {  # contents, options, a word among the oddities
    "gripper": ([*ARM, *FINGERS], [], "follows another joint"),
    "floating tree": ([*ARM, link("c"), joint("j3", "base", "c")], ["--base", "floating"], "friction"),
    "one joint without limits": (
        [link("base"), link("a"), joint("j", "base", "a", "<!-- no limit -->", "continuous")],
        [],
        "no joint has an effort limit",
    ),
    "massless links": ([link("base"), link("a", 0), link("b", 0), *ARM[3:]], [], "no mass"),
    "inertia of another unit": ([*ARM[:2], link("b", 1.0, 5000.0), *ARM[3:]], [], "unit may be wrong"),
    "exported without limits": (
        [*ARM[:3], joint("j1", "base", "a", '<limit lower="0" upper="0" effort="0" velocity="0"/>'), ARM[4]],
        [],
        "lower and upper limit are equal",
    ),
    "nothing moves": ([link("base")], [], ""),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No other engines, one round, no C compiler, one algorithm each: what is slow about a tour."""
    monkeypatch.setattr(agreed, "ENGINES", ())
    monkeypatch.setattr(agreed, "TIMED", ("mass_matrix",))
    monkeypatch.setattr(agreed, "ROUNDS", 1)
    monkeypatch.setattr(code, "compiler", lambda: None)
    monkeypatch.setattr(agreed, "EVERY_ALGORITHM", 0)
    monkeypatch.setattr(code, "FUNCTIONS", ("gravity_torques",))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", ROBOTS)
def test_any_robot_is_looked_at(linkwise, here, kind):
    parts, options, odd = ROBOTS[kind]
    (here / "arm.urdf").write_text(f'<robot name="my arm">{"".join(parts)}</robot>')
    ran = linkwise("tour", "arm.urdf", "--no-open", "--json", *options)
    assert ran.status == 0, ran.err
    found = ran.json
    assert odd in " | ".join(found["odd"])
    assert found["report"] == "my_arm-tour.html"
    assert "A first look at my arm" in (here / "my_arm-tour.html").read_text(encoding="utf-8")
    if kind == "nothing moves":
        assert found["payload"] == {"refused": "no joint moves"}
    elif kind != "massless links":
        assert found["agreement"]["disagree"] == 0 < found["agreement"]["agree"]
    if kind in ("floating tree", "gripper"):
        assert bool(found["payload"]["held"]) == (kind == "floating tree")
        assert found["motion"]["duration"] > 0


def test_what_is_said_in_words(linkwise, here):
    ran = linkwise("tour", "two_link", "--no-open", "--out", "page.html")
    assert ran.status == 0, ran.err
    for words in (
        "two_link: 2 moving joints",
        "Payload",
        "Fast motion",
        "comparisons agree",
        "C code",
        "page.html",
    ):
        assert words in ran.out
    page = (here / "page.html").read_text(encoding="utf-8")
    assert page.count('<button type="button" class="copy"') >= 6
    assert "linkwise generate two_link inverse_dynamics" in page
    (view,) = re.findall(r'srcdoc="([^"]+)"', page)
    assert html.unescape(view).startswith("<!")  # the whole page of the movable view
    assert "<h2>What is in two_link</h2>" in page


def test_limits_that_were_never_entered_are_flagged(tmp_path, capsys):
    """All joints alike in round numbers, and a load that no arm of this weight holds."""

    def arm(effort, velocity):
        parts = [link("l0", 0.0), *(link(f"l{k}", 0.2, 1e-3) for k in range(1, 5))]
        for k, (most, fast) in enumerate(zip(effort, velocity, strict=True)):
            limit = f'<limit lower="-1" upper="1" effort="{most}" velocity="{fast}"/>'
            parts.append(joint(f"j{k}", f"l{k}", f"l{k + 1}", limit, xyz="0.1 0 0"))
        (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{"".join(parts)}</robot>')
        return lw.load(tmp_path / "arm.urdf")

    doubtful, real = arm([100.0] * 4, [10.0] * 4), arm([1.9, 1.5, 0.9, 0.4], [3.0, 3.1, 4.2, 5.0])
    assert sum("a placeholder?" in text for text in oddities(doubtful)) == 2
    assert not any("a placeholder?" in text for text in oddities(real))
    for robot, flagged in ((doubtful, True), (real, False)):
        found = payload_capability(robot, positions=200)
        assert found.mass == pytest.approx(0.8)
        assert found.doubtful == bool(found.payload.min() > found.mass) == flagged
        _show_payload(found)
        assert ("may be placeholders" in capsys.readouterr().out) == flagged


def test_the_report_opens_itself(linkwise, here, monkeypatch):
    seen = []
    monkeypatch.setattr("webbrowser.open", lambda address: not seen.append(address))
    monkeypatch.setenv("DISPLAY", ":0")
    assert linkwise("tour", "two_link", "--out", "page.html").status == 0
    assert seen == [(here / "page.html").as_uri()]
    linkwise("tour", "two_link", "--out", "page.html", "--no-open")
    assert len(seen) == 1
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(headings.sys, "platform", "linux")
    headings.open_in_browser("file:///page.html")  # without windows a text browser would take the terminal
    assert len(seen) == 1


def test_bad_input_is_one_line(linkwise, here):
    assert "nowhere.urdf" in linkwise("tour", "nowhere.urdf").refused()
    assert "flange" in linkwise("tour", "two_link", "--frame", "flange").refused()
    assert "missing" in linkwise("tour", "two_link", "--out", "missing/page.html").refused()


def test_the_payload_is_the_largest_that_keeps_the_limits():
    robot = lw.load("panda")
    found = payload_capability(robot, positions=200, seed=3)
    worst = int(np.argmin(found.payload))
    from linkwise.tour.held import positions_within_limits

    q = positions_within_limits(robot, 200, 3)[worst]
    share = np.abs(robot.with_payload(float(found.payload[worst])).gravity_torques(q)) / robot.effort_limits
    assert share.max() == pytest.approx(1.0, abs=1e-9)
    assert int(share.argmax()) == found.limiting[worst]


def test_a_load_hangs_between_the_fingers(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm">{"".join([*ARM, *FINGERS])}</robot>')
    assert tool_link(lw.load(path)) == "b"
    assert tool_link(lw.load("panda")) == lw.load("panda").link_names[-1]


def test_one_part_that_fails_leaves_the_others(monkeypatch):
    def fails():
        raise ZeroDivisionError("division by zero")

    assert _attempted(lw.load("two_link"), fails) == "division by zero"
    monkeypatch.setenv("LINKWISE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        _attempted(lw.load("two_link"), fails)


def test_links_without_mass_explain_why_mujoco_disagrees(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<link name="tip"><inertial>{INERTIA.format(mass=0, i=0.01)}</inertial></link>'
        '<joint name="j" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="10"/></joint>'
        '<joint name="f" type="fixed"><parent link="rod"/><child link="tip"/></joint></robot>'
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = lw.load(path)
    texts = [str(each.message) for each in caught]
    assert any(text.startswith(str(path)) for text in texts)
    assert "arm.urdf: link 'tip': mass is zero but moments are not" in oddities(robot, texts)
    found = agreed.compare_engines(robot, path)
    assert found.weightless == ("tip",)
    assert not found.wrong or found.reason.endswith("without mass: tip")
