"""What people see of results and robots: tables and drawings, never ``object at 0x…``."""

import base64
import importlib
import inspect
from xml.etree import ElementTree

import numpy as np
import pytest

import linkwise as lw
from linkwise.core.summaries import MOST_ROWS, Summarised, Summary, described

MODULES = (
    *(
        "linkwise",
        "linkwise.compat",
        "linkwise.control",
        "linkwise.gpu",
        "linkwise.identify",
        "linkwise.motion",
    ),
    *(
        "linkwise.realtime",
        "linkwise.report",
        "linkwise.simulate",
        "linkwise.view",
        "linkwise.study",
        "linkwise.robot.ode",
    ),
)
OTHERS = (
    "linkwise.robot.diagnose",
    "linkwise.functions.base_parameters",
    "linkwise.study.results",
    "linkwise.study.api",
)


def public_classes():
    found = {}
    for name in (*MODULES, *OTHERS):
        module = importlib.import_module(name)
        listed = getattr(module, "__all__", None)
        for key in [k for k in vars(module) if not k.startswith("_")] if listed is None else listed:
            value = getattr(module, key)
            own = inspect.isclass(value) and value.__module__.startswith("linkwise" if listed else name)
            if own and not issubclass(value, BaseException) and value is not lw.Scene:  # which makes a Robot
                found[f"{value.__module__}.{key}"] = value
    return found


@pytest.mark.parametrize("name", public_classes())
def test_every_public_class_prints_itself(name):
    assert public_classes()[name].__repr__ is not object.__repr__


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def results(robot):
    """One of everything that a session gives."""
    motion = lw.motion.quintic([0.0, 0.0], [1.0, -0.5], 1.0)
    law = lw.control.Tracking(robot, lw.control.Gains.from_frequency(20.0))
    rows = motion.sampled(100.0)
    log = lw.identify.Log(rows.t, rows.q, robot.inverse_dynamics(rows.q, rows.qd, rows.qdd), name="run")
    arm = lw.load("ur10e")
    return {
        "motion": motion,
        "samples": motion.sampled(points=11),
        "series": lw.motion.FourierSeries([0.0, 0.0], [[0.1, 0.2]], [[0.0, 0.1]], 2.0),
        "simulation": lw.simulate.simulate(robot, law, motion, duration=0.1),
        "batch": lw.simulate.simulate(robot, law, motion, duration=0.01, q=np.zeros((3, 2))),
        "still": lw.simulate.simulate(robot, lw.control.Passive(robot), duration=0.01, q=[0.1, 0.2]),
        "one position": arm.inverse_kinematics(arm.pose(arm.random(1))),
        "positions": arm.inverse_kinematics(arm.pose(arm.random(1, 3))),
        "log": log,
        "filter": robot.filter([0.1, 0.2], [0.0, 0.0], [0.0, 0.0]),
        "iterations": robot.conjugate_gradient([0.1, 0.2], [0.0, 0.0], [0.0, 1.0]),
        "base parameters": robot.base_parameters(),
    }


KINDS = (
    *("motion", "samples", "series", "simulation", "batch", "still", "one position", "positions", "log"),
    *("filter", "iterations", "base parameters"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_results_print_a_table(results, kind):
    text = repr(results[kind])
    assert " at 0x" not in text
    assert "array(" not in text
    lines = text.splitlines()
    assert 2 < len(lines) < 30
    assert max(map(len, lines)) < 160
    page = ElementTree.fromstring(results[kind]._repr_html_())
    assert len(page.findall(".//tbody/tr")) >= 2 - (kind == "one position")


def test_tables_have_the_numbers(results):
    motion = repr(results["motion"])
    assert "PiecewisePolynomial: 2 joints, 1 s" in motion
    assert "1.875" in motion  # the largest speed of a quintic from 0 to 1 in 1 s
    simulation = results["simulation"]
    assert f"{np.abs(simulation.tau[:, 1]).max():.4g}" in repr(simulation)
    assert "3 robots" in repr(results["batch"])
    assert "3 of 3 targets reached" in repr(results["positions"])


@pytest.mark.parametrize("kind", ["motion", "samples", "series", "simulation", "batch", "still"])
def test_motions_and_simulations_are_plotted(results, robot, kind, tmp_path):
    result = results[kind]
    plots = [result.plot()]
    if kind in ("motion", "samples", "series"):
        plots.append(result.plot(robot))
    if kind == "batch":
        plots.append(result.plot(2))
    for plot in plots:
        drawing = ElementTree.fromstring(plot._repr_svg_())
        lines = [x for x in drawing.iter() if x.tag.endswith("path") and x.get("stroke-width") == "1.8"]
        assert len(lines) == 2 * len(plot.figures)
        assert plot.save(tmp_path / "plot.svg").read_text() == plot.svg + "\n"
    names = robot.joint_names if kind not in ("motion", "samples", "series") else ("joint 1", "joint 2")
    assert all(name in plots[0].svg for name in names)
    assert ("error" in plots[0].svg) == (kind in ("simulation", "batch"))


@pytest.mark.parametrize("name", lw.robots())
def test_a_notebook_shows_a_robot_with_its_joints_and_limits(name):
    robot = lw.load(name)
    page = ElementTree.fromstring(robot._repr_html_())
    drawing = page.find(".//img").get("src").removeprefix("data:image/svg+xml;base64,")
    assert ElementTree.fromstring(base64.b64decode(drawing)).tag.endswith("svg")
    rows = page.findall(".//tbody/tr")
    assert [row[0].text for row in rows] == list(robot.joint_names)
    shown = ElementTree.tostring(page, encoding="unicode")
    for joint in robot.coordinate_joints:
        if joint.turns and np.isfinite(joint.limits.upper):
            assert f"… {np.degrees(joint.limits.upper):.4g}".replace("-", "−") in shown
    q = lw.report.bent_position(robot)
    lower, upper = robot.limits.lower, robot.limits.upper
    assert ((lower <= q) & (q <= upper)).all()


def test_moving_bases_are_shown():
    page = ElementTree.fromstring(lw.load("two_link", base="floating")._repr_html_())
    assert page.findall(".//tbody/tr")[0][1].text == "floating"


def test_long_tables_and_odd_values():
    long = Summary("many", ("a", ">b"), [[k, float(k)] for k in range(MOST_ROWS + 3)])
    assert "… and 3 more" in long.text()
    assert "<b>a &lt; b</b>" in Summary("a < b", ("x",), [["<y>"]]).html()
    assert "&lt;y&gt;" in Summary("a < b", ("x",), [["<y>"]]).html()
    assert described(np.zeros((3, 4))) == "3 × 4 numbers, 0 … 0"
    assert described(np.array([1.0, 2.5])) == "1, 2.5"
    assert described(None) == "None"
    assert described({}) == described([]) == "none"
    assert described({"a": 1}) == "1 by name: a"
    assert described(object()) == "object"

    class Own(Summarised):
        def __init__(self):
            self.size, self._hidden = 3, 4

    assert repr(Own()) == "Own\n  size  3"
