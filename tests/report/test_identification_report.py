"""The report of an identification: every part is there, in words and numbers that fit what was found."""

import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from browser import errors, start
from linkwise.motion import FourierSeries
from linkwise.report import heat_map, identification_report

pytest.importorskip("clarabel")


def log_of(robot, seed: int, *, axes=None, name: str = "log", still: bool = False):
    from linkwise.identify import Log

    rng = np.random.default_rng(seed)
    t = np.arange(900) / 100.0
    size = rng.normal(size=(2, 4, robot.dof)) * 0.3
    if still:
        size[:, :, -1] = 0.0
    q, qd, qdd = FourierSeries(np.zeros(robot.dof), *size, period=9.0).at(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    if axes is not None:
        tau = tau + 0.5 * np.sign(qd @ axes[0])[:, None] * axes[0]
    return Log(t, q, tau + 0.01 * rng.normal(size=tau.shape), name=name, axes=axes)


@pytest.fixture(scope="module")
def found():
    from linkwise.identify import identify

    robot = lw.load("two_link").with_parameters({"joint1.viscous_friction": 0.4})
    logs = log_of(robot, 1, name="train"), log_of(robot, 2, name="test")
    return identify(lw.load("two_link"), logs[0], validation=logs[1], friction="coulomb")


@pytest.fixture(scope="module")
def page(found) -> str:
    return identification_report(found, command="linkwise identify <arm>").html()


def test_every_part_is_there(found, page):
    titles = re.findall(r"<h2>([^<]+)</h2>", page)
    wanted = [
        "In short",
        "How it was run",
        "Processing",
        "How well it predicts",
        "Friction",
        "Base parameters",
    ]
    wanted += ["Correlations", "Links of the saved robot", "The reduced model", "Coverage of states"]
    wanted += ["Simulation beside the recording", "What is left in the residuals"]
    assert set(wanted) <= set(titles)
    assert "linkwise identify &lt;arm&gt;" in page
    for row in found.table():
        assert row.label in page
    for line in found.signals[0].record:
        assert line in page
    assert f"{found.validation.total:.3g} %" in page
    assert f"{found.of_prior[0].total:.3g} %" in page


def test_what_was_saved_and_the_verdict_come_first(found):
    page = identification_report(found, written={"robot": "arm2.urdf", "code": "arm.c"})
    assert page.sections[0].title == "In short"
    text = page.sections[0].html(0)
    row = found.verdict()[0]
    assert text.index("arm2.urdf") < text.index("arm.c") < text.index(row.cells[1])
    assert row.plain() == found.summary()["verdict"][0]
    assert row.code == row.saved_robot == found.validations[0].total
    assert row.best == "saved robot"


def test_twelve_recordings_are_folded(found):
    from dataclasses import replace

    many = {key: 12 * getattr(found, key) for key in ("validations", "of_prior", "of_reduced")}
    text = identification_report(replace(found, **many)).html()
    opened = re.sub(r"<details(?! open)[^>]*>.*?</summary>", "<fold>", text)
    assert text.count("11 more recordings") == 2
    first = text[: text.index("11 more recordings")]
    assert first.count("<table") == 2  # the verdict with all twelve, and the joints of the first recording
    assert opened.count("<fold>") >= 2


def test_coverage_tells_new_states_from_fitted_ones():
    from linkwise.report.coverage import outside

    around = np.linspace(0, 2 * np.pi, 400)
    q, qd = np.sin(around), np.cos(around)
    assert not outside(q, qd, 0.99 * q, 0.99 * qd).any()
    assert outside(q, qd, 2 * q, 2 * qd).all()


def test_residuals_name_what_helps(found):
    from dataclasses import replace

    from linkwise.report.residual_patterns import residual_patterns

    judged = found.validation
    q, qd, _ = judged.motion
    rng = np.random.default_rng(0)
    cases = {
        "another friction law": 0.5 * np.tanh(20 * qd),
        "repeats with the position": 0.5 * np.sin(9 * q),
        "drifts": 0.5 * np.linspace(-1, 1, len(q))[:, None] * np.ones(2),
        "noise, ripple or elasticity": 0.5 * rng.normal(size=q.shape),
    }
    for words, extra in cases.items():
        changed = replace(judged, measured=judged.predicted + extra)
        section = residual_patterns(replace(found, validations=(changed,))).html(0)
        assert words in section, words


def test_the_identified_robot_follows_the_recording(found):
    after, before = found.replay()
    assert after.window == pytest.approx(0.25)
    assert (after.deviation < 0.1 * after.moved).all()
    assert before is not None
    assert before.deviation[0] > 2 * after.deviation[0]  # it has no friction


def test_every_joint_has_its_pictures(found):
    names = [figure.name for section in identification_report(found).sections for figure in section.figures]
    assert len(names) == len(set(names))
    assert {"torque_test_joint1", "torque_test_joint2", "friction_1", "friction_2", "coverage_1"} <= set(
        names
    )
    assert {"simulation_joint1", "simulation_joint2"} <= set(names)
    assert {"correlation", "reduced_operations", "robot"} <= set(names)


def test_estimators_side_by_side(found, page):
    """All of them on one page; with little noise they agree within the intervals, but for a few."""
    assert "weighted, chosen" in page
    for name in ("ordinary", "total", "robust", "ridge"):
        assert f"<td>{name}</td>" in page
    rows = re.findall(r"<td>(?:ordinary|robust)</td>(.*?)</tr>", page)
    outside = [int(re.findall(r"<td class=n>([^<]*)</td>", row)[-1]) for row in rows]
    assert max(outside) <= len(found.base) // 2


def test_reduced_model_side_by_side(found, page):
    after = found.reduction.operations
    assert f"{after.multiplications + after.divisions} / {after.additions}" in page
    before = found.reduction.operations_before
    assert f"{before.multiplications + before.divisions} / {before.additions}" in page


def test_write_report(found, tmp_path):
    found.write_report(tmp_path / "arm.html")
    assert [path.name for path in tmp_path.iterdir()] == ["arm.html"]
    assert (tmp_path / "arm.html").stat().st_size < 6_000_000


def test_warnings_in_plain_words():
    """A joint that does not move, and no separate recording: both are said at the top."""
    from linkwise.identify import identify

    robot = lw.load("two_link")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = identify(robot, log_of(robot, 1, still=True), friction="coulomb")
    text = identification_report(found).html()
    assert found.warnings
    assert "Too little excitation" in text
    assert "a separate one (--validate)" in text
    assert "⚠" in text


def test_coupled_motors_and_sliding_joints():
    """Axes that are no joints have friction curves of their own; forces are in N."""
    from linkwise.identify import identify

    robot = lw.load("stanford")
    axes = np.zeros((1, 6))
    axes[0, 4:] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = identify(robot, log_of(robot, 3, axes=axes), friction="coulomb")
    report = identification_report(found)
    names = [figure.name for section in report.sections for figure in section.figures]
    assert "friction_7" in names
    text = report.html()
    assert "+".join(robot.joint_names[4:]) in text
    assert "friction [N]" in text
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text)


def test_a_heat_map_has_a_cell_per_correlation():
    matrix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.4], [0.0, -0.4, 1.0]])
    svg = heat_map(matrix, ["a<b", "b", "c"])
    assert svg.count("<rect") == 1 + 7  # the frame, and what is not zero
    assert "a&lt;b and b: 0.50" in svg
    assert svg.count("#d55e00") == 2  # negative ones


@pytest.mark.parametrize("width", [1280, 400])
def test_in_a_browser(found, tmp_path, width):
    pytest.importorskip("selenium")
    path = tmp_path / "arm.html"
    found.write_report(path)
    driver = start(tmp_path, width, 800)
    try:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(path.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        shown = driver.execute_script("""
            const plot = [...document.querySelectorAll("figure")].find(f => f.textContent.includes("friction [N·m]"))
                .querySelector("svg.plot"), area = plot.getBoundingClientRect();
            plot.dispatchEvent(new PointerEvent("pointermove", {clientX: area.left + area.width / 2, clientY: 5}));
            return plot.closest("figure").querySelector(".tip").textContent;
        """)
        assert "rad/s" in shown
        boxes = driver.execute_script("""
            return [...document.querySelectorAll("table")].map((table) => [table.closest(".pair") !== null,
                getComputedStyle(table.parentElement).overflowX, table.offsetWidth - table.parentElement.clientWidth]);
        """)
        assert all(overflow == "auto" for _, overflow, _ in boxes)  # each scrolls in its own box
        joints = [wider for paired, _, wider in boxes if paired]
        assert joints
        assert width < 1280 or max(joints) <= 0  # nothing of the joints' table is cut off
        assert not errors(driver)
    finally:
        driver.quit()


def test_friction_curves_go_through_the_measured_dots(found):
    """The dots are torques without links and rotor: the true friction with noise, and the curve is their middle."""
    from linkwise.report.identified_parameters import _measured_friction

    speeds, measured, load = _measured_friction(found)
    assert load.shape == (2,)
    for joint, viscous in enumerate((0.4, 0.0)):
        dots = measured[joint]
        assert dots is not None
        curve = found.fit.steady_friction(joint, speeds[:, joint], load[joint])
        moving = np.abs(speeds[:, joint]) > 0.1
        assert np.abs(np.mean((dots - curve)[moving])) < 0.01
        assert np.std((dots - curve)[moving]) < 0.05
        slope = np.polyfit(speeds[moving, joint], curve[moving], 1)[0]
        assert slope == pytest.approx(viscous, abs=0.05)
