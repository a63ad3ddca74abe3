"""A report in a real browser: light and dark, wide and narrow, with numbers under the pointer; nothing complains."""

import numpy as np
import pytest

import linkwise as lw
from browser import errors, start
from linkwise.report import Report, sections

pytest.importorskip("selenium")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    chrome = start(tmp_path_factory.mktemp("browser"), 1100, 800)
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    robot = lw.load("panda")
    t = np.linspace(0, 1, 50)
    q = np.sin(t)[:, np.newaxis] * np.ones(7)
    report = Report("A motion", "of a Panda")
    report.add(sections.robot(robot, q[10]))
    report.add(sections.motion(robot, t, q, q))
    report.add(sections.torques(robot, t, robot.gravity_torques(q)))
    return report.write(tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.mark.parametrize("width", [1100, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_has_its_colours(driver, address, width, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    paper = driver.execute_script(
        "return getComputedStyle(document.querySelector('section')).backgroundColor"
    )
    shades = [int(part) for part in paper[4:-1].split(",")]
    assert (min(shades) > 200) == (scheme == "light")
    assert not errors(driver)


def test_numbers_under_the_pointer(driver, address):
    driver.get(address)
    shown = driver.execute_script("""
        const plot = document.querySelector("svg.plot"), area = plot.getBoundingClientRect();
        const place = {clientX: area.left + area.width / 2, clientY: area.top + 20, bubbles: true};
        plot.dispatchEvent(new PointerEvent("pointermove", place));
        const tip = plot.closest("figure").querySelector(".tip");
        return tip.hidden ? "" : tip.textContent;
    """)
    assert "panda_joint1" in shown
    assert not errors(driver)
