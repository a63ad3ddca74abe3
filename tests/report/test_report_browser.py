"""A report in a real browser: light and dark, wide and narrow, with numbers under the pointer; nothing complains."""

import time

import numpy as np
import pytest

import linkwise as lw
from browser import errors, reset
from linkwise.report import Report, Section, sections
from linkwise.report.page import Commands, Framed
from linkwise.view.offline.page import page_file

pytest.importorskip("selenium")


@pytest.fixture(scope="module")
def driver(chrome):
    reset(chrome, 1100, 800)
    return chrome


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    robot = lw.load("panda")
    t = np.linspace(0, 1, 50)
    q = np.sin(t)[:, np.newaxis] * np.ones(7)
    report = Report("A motion", "of a Panda")
    report.add(sections.robot(robot, q[10]))
    report.add(sections.motion(robot, t, q, q))
    report.add(sections.torques(robot, t, robot.gravity_torques(q)))
    report.add(Section("Go on", [Commands([("Look at it:", "linkwise view panda")])]))
    report.add(Section("View", [Framed("the robot", page_file(robot))]))
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


def test_tables_are_not_clipped_and_a_phone_can_read_plots(driver, address):
    size = {"height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1280, **size})
    driver.get(address)
    clipped = "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert driver.execute_script(clipped) == 0
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, **size})
    heights = "return [...document.querySelectorAll('svg.plot g.x text')].map(e => e.getBoundingClientRect().height)"
    assert min(driver.execute_script(heights)) > 12


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


ZOOM = """
    const plot = document.querySelector("svg.plot"), area = plot.getBoundingClientRect();
    const numbers = () => [...plot.querySelectorAll("g.x text")].map((text) => text.textContent).join(" ");
    const place = {clientX: area.left + area.width / 2, clientY: area.top + 60, bubbles: true, cancelable: true};
    const seen = [numbers()];
    const now = (event) => { plot.dispatchEvent(event); seen.push(numbers()); };
    now(new WheelEvent("wheel", {...place, deltaY: -100}));
    now(new MouseEvent("dblclick", place));
    now(new KeyboardEvent("keydown", {key: "+", bubbles: true}));
    now(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
    now(new KeyboardEvent("keydown", {key: "0", bubbles: true}));
    plot.dispatchEvent(new PointerEvent("pointerdown", {...place, clientX: area.left + 0.3 * area.width}));
    plot.dispatchEvent(new PointerEvent("pointermove", {...place, clientX: area.left + 0.5 * area.width}));
    now(new PointerEvent("pointerup", {...place, clientX: area.left + 0.5 * area.width}));
    return seen;
"""


def test_plots_zoom_by_wheel_keys_and_dragging(driver, address):
    driver.get(address)
    whole, wheel, again, keys, moved, reset, dragged = driver.execute_script(ZOOM)
    assert whole == again == reset
    assert len({whole, wheel, moved, dragged}) == 4
    assert len({whole, keys, moved}) == 3
    assert float(dragged.split()[-1]) < 0.55
    assert not errors(driver)


def test_a_link_unfolds_its_section(driver, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    from linkwise.report import Section, Text

    report = Report("Folds")
    report.add(Section("First", [Text("one")]))
    report.add(Section("Second", [Text("two")], folded=True))
    driver.get(report.write(tmp_path / "folds.html").as_uri())
    opened = "return document.querySelector('details').open"
    assert not driver.execute_script(opened)
    driver.find_element("css selector", "nav a[href='#s1']").click()
    WebDriverWait(driver, 10).until(lambda driver: driver.execute_script(opened))  # by an event of its own


def test_commands_are_copied_and_the_view_inside_is_drawn(driver, address):
    driver.get(address)
    button = driver.find_element("css selector", "button.copy")
    driver.execute_script("arguments[0].click()", button)  # the page may still be scrolling
    assert driver.execute_script("return getSelection().toString()") == "linkwise view panda"
    frame = driver.find_element("css selector", "iframe.framed")
    driver.execute_script("arguments[0].scrollIntoView()", frame)
    driver.switch_to.frame(frame)
    try:
        for _ in range(100):
            if driver.find_elements("css selector", "input[type=range]"):
                break
            time.sleep(0.1)
        assert len(driver.find_elements("css selector", "input[type=range]")) >= 7
        assert driver.find_elements("css selector", "canvas")
    finally:
        driver.switch_to.default_content()
    assert not errors(driver)
