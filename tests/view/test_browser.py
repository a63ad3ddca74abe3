"""The page in a real browser: it loads, a slider moves the arm, the bars change, nothing complains."""

from __future__ import annotations

import io
import statistics
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from test_page import free_port

import linkwise as lw
from browser import errors, reset
from linkwise.view import player
from linkwise.view.page import Page, serve

pytest.importorskip("viser")
pytest.importorskip("selenium")
CSS = "css selector"
PATIENCE = 60.0  # [s]: a busy machine draws slowly in software
REPEATS = 5

# Presses an arrow key on a slider and answers when the bars have changed, with the milliseconds between.
PRESS = """
const [slider, bars, done] = arguments, begin = performance.now();
const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now() - begin); });
watch.observe(bars.parentElement, {childList: true, subtree: true, characterData: true});
slider.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', code: 'ArrowRight', bubbles: true}));
"""


@pytest.fixture(scope="module")
def driver(chrome):
    reset(chrome, 720, 500)  # software draws every pixel
    chrome.set_script_timeout(PATIENCE)
    yield chrome
    chrome.get("about:blank")


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def open_page(driver, page: Page) -> None:
    driver.get(page.url)
    wait_for_bars(driver)
    until(lambda: len(sliders(driver)) >= page.robot.dof, "the sliders")
    until(lambda: drawn(driver), "a picture of the robot")


def wait_for_bars(driver) -> None:
    until(lambda: driver.find_elements(CSS, ".lw-bar"), "the bars")


def sliders(driver) -> list:
    return driver.find_elements(CSS, "[role=slider]")


def picture(driver) -> np.ndarray:
    """The 3-D part of the page, shape (rows, columns, 3)."""
    from PIL import Image

    data = driver.find_element(CSS, "canvas").screenshot_as_png
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=int)


def drawn(driver) -> bool:
    seen = picture(driver)
    rows, columns = seen.shape[:2]
    middle = seen[rows // 4 : 3 * rows // 4, columns // 4 : 3 * columns // 4]
    return len(np.unique(middle.reshape(-1, 3), axis=0)) > 200  # more shades than an empty floor has


def torques(driver) -> list[float]:
    """In one step: the page replaces its bars while a motion is played."""
    script = "return [...document.querySelectorAll('.lw-bar')].map(bar => parseFloat(bar.dataset.torque))"
    return driver.execute_script(script)


def choose_tab(driver, title: str) -> None:
    """By the keyboard, as tabs answer to pointers and keys only."""
    press(driver, "[role=tab]", title)


def click(driver, label: str) -> None:
    press(driver, "button", label)


def press(driver, kind: str, label: str) -> None:
    """Press what has this label, when it is there."""
    script = """
        const found = [...document.querySelectorAll(arguments[0])].find(e => e.textContent.trim() === arguments[1]);
        for (const kind of ['keydown', 'keyup'])
            found?.dispatchEvent(new KeyboardEvent(kind, {key: 'Enter', code: 'Enter', bubbles: true}));
        found?.click();
        return Boolean(found);
    """

    def pressed() -> bool:
        return driver.execute_script(script, kind, label)

    until(pressed, f"{kind} {label}")


def text_of(driver, selector: str) -> str:
    return driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


@pytest.fixture(scope="module")
def puma(driver):
    page = serve(lw.load("puma560"), port=free_port(), shadows=False)
    page.pose(np.array([0.3, 0.5, -2.2, 0.4, 0.6, 0.0]))
    open_page(driver, page)
    yield page
    page.close()


def test_the_page_shows_the_robot_and_its_torques(driver, puma):
    np.testing.assert_allclose(torques(driver), puma.robot.gravity_torques(puma.live.q), rtol=1e-4, atol=1e-5)
    assert not errors(driver)


def test_every_control_has_a_name(driver, puma):
    """For screen readers; the field of a slider has that of the slider."""
    nameless = """
        const named = e => e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim() || e.title;
        const controls = document.querySelectorAll('[role=slider], input:not([type=hidden]), button');
        return [...controls].filter(e => !named(e)).map(e => e.outerHTML.slice(0, 200));
    """
    until(lambda: not driver.execute_script(nameless), "names of all controls")
    assert "shoulder [°]" in [slider.get_attribute("aria-label") for slider in sliders(driver)]


def test_a_slider_moves_the_arm_and_changes_the_bars(driver, puma, capsys):
    before, seen = torques(driver), picture(driver)
    (client,) = puma.server.get_clients().values()
    camera = np.array(client.camera.position)
    shoulder = sliders(driver)[1]
    waits = [
        driver.execute_async_script(PRESS, shoulder, driver.find_element(CSS, ".lw-bars"))
        for _ in range(REPEATS)
    ]
    until(lambda: abs(puma.live.q[1] - 0.5) > 0.005, "the shoulder")
    until(lambda: torques(driver) != before, "other bars")
    until(lambda: np.abs(picture(driver) - seen).max() > 50, "another picture")
    np.testing.assert_allclose(torques(driver), puma.robot.gravity_torques(puma.live.q), rtol=1e-4, atol=1e-5)
    (client,) = puma.server.get_clients().values()  # the key is still down, and the camera has not moved
    np.testing.assert_allclose(client.camera.position, camera, atol=1e-3)
    with capsys.disabled():
        print(
            f"\nslider to bars: median {statistics.median(waits):.1f} ms, largest {max(waits):.1f} ms of {REPEATS}"
        )
    assert not errors(driver)


@pytest.fixture(autouse=True)
def few_frames(monkeypatch):
    """Software draws fewer pictures a second than are sent: the page would work through the rest before it answers."""
    monkeypatch.setattr(player, "FRAMES_PER_SECOND", 2.0)


def test_a_motion_is_played_with_its_torques(driver, puma):
    choose_tab(driver, "Motion")
    click(driver, "Play")
    until(lambda: driver.find_elements(CSS, ".lw-plot svg path"), "the plot")
    before = torques(driver)
    until(lambda: torques(driver) != before, "bars in step")
    click(driver, "Pause")
    assert not errors(driver)


def test_a_controller_is_watched(driver, puma):
    control = next(tab for tab in puma.tabs if tab.title == "Control")
    control.factor.value, control.frequency.value = 300.0, 3.0  # so wrong that one sees it
    choose_tab(driver, "Control")
    click(driver, "Simulate and play")
    until(lambda: "largest error" in text_of(driver, ".lw-result"), "a result")
    click(driver, "Stop")
    assert not errors(driver)


def test_the_code_tab_shows_c(driver, puma):
    choose_tab(driver, "Code")
    until(lambda: "void gravity_torques(" in text_of(driver, ".lw-code pre"), "the source")
    assert not errors(driver)


# Connects to a websocket; answers "closed", or the kind of the first message.
CONNECT = """
const [url, protocol, done] = arguments, socket = new WebSocket(url, protocol);
socket.onmessage = () => { socket.close(); done('message'); };
socket.onclose = () => done('closed');
"""
# What a page can find out about another address: the status, or "blocked".
FETCH = """
const [url, done] = arguments;
fetch(url, {credentials: 'include'}).then(found => done(found.status), () => done('blocked'));
"""


@pytest.fixture
def other_site():
    """A web site on another port of this machine: a server that answers every request with an empty page."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>other</title>")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


PANEL = """
const panel = [...document.querySelectorAll('.mantine-Paper-root')].find(e => getComputedStyle(e).position === 'fixed');
if (!panel) return null;
const box = panel.getBoundingClientRect();
if (arguments[0]) document.elementFromPoint(box.width / 2, box.top + 24).click();
return [box.left, box.width, box.top, window.innerWidth, window.innerHeight];
"""


def test_on_a_phone_the_panel_has_the_whole_width_and_hides_at_a_tap(driver, puma):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        until(lambda: driver.execute_script(PANEL, False), "the panel of a phone")
        until(lambda: driver.execute_script(PANEL, False)[1] == 390, "its width")
        left, width, top, wide, high = driver.execute_script(PANEL, True)
        assert (left, width, wide) == (0, 390, 390)
        assert top >= high / 2
        until(lambda: driver.execute_script(PANEL, False)[2] > 0.9 * high, "a panel that is hidden")
        driver.execute_script(PANEL, True)
        until(lambda: driver.execute_script(PANEL, False)[2] < 0.6 * high, "a panel that is back")
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        reset(driver, 720, 500)
        open_page(driver, puma)


def test_pages_of_other_sites_cannot_connect(driver, puma, other_site):
    """In the browser that has the page open, so that its cookie is there."""
    import viser

    protocol = f"viser-v{viser.__version__}"
    if not driver.current_url.startswith(puma.url):
        driver.get(puma.url)
    wait_for_bars(driver)
    own, rebound = (f"ws://{name}:{puma.port}" for name in ("127.0.0.1", "evil.example"))
    assert driver.execute_async_script(CONNECT, own, protocol) == "message"
    connected = len(puma.server.get_clients())
    for site in ("127.0.0.1", "localhost", "evil.example"):  # the first is the same site with another port
        driver.get(f"http://{site}:{other_site}/")
        until(lambda: driver.title == "other", "the other site")
        for target in (own, rebound, f"{own}/?token=x"):
            assert driver.execute_async_script(CONNECT, target, protocol) == "closed"
        assert driver.execute_async_script(FETCH, f"http://127.0.0.1:{puma.port}/") == "blocked"
    assert len(puma.server.get_clients()) < connected
    driver.get(f"http://evil.example:{puma.port}/?token={puma.access.token}")  # DNS rebinding
    assert "Refused: unknown Host" in driver.page_source
    driver.get(f"http://localhost:{puma.port}/")  # a host for which there is no cookie
    assert "Refused: no valid token" in driver.page_source
    driver.get_log("browser")
    driver.get(puma.url)
    assert "token=" in driver.current_url
    driver.refresh()
    wait_for_bars(driver)
    # the browser may ask for the icon of the refused page late
    assert not [line for line in errors(driver) if "favicon" not in line]


@pytest.fixture(scope="module")
def without_meshes(driver, tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.urdf"
    lw.save(lw.load("puma560"), path)
    page = serve(lw.load(path), path, port=free_port(), shadows=False)
    page.pose(np.zeros(6))  # links beside each other: all ellipsoids are seen
    open_page(driver, page)
    yield page
    page.close()


def test_a_file_without_meshes_with_ellipsoids(driver, without_meshes):
    page = without_meshes
    before = picture(driver)
    for group in ("ellipsoids", "masses"):
        page.scene.show(group, True)
    until(lambda: np.abs(picture(driver) - before).max() > 50, "the ellipsoids")
    assert not page.scene.has_meshes
    np.testing.assert_allclose(torques(driver), page.live.gravity(), rtol=1e-4, atol=1e-5)
    assert not errors(driver)
