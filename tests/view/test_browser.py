"""The page in a real browser: it loads, a slider moves the arm, the bars change, nothing complains.

With LINKWISE_SCREENSHOTS=FOLDER the pictures of the documentation are made on the way.
"""

from __future__ import annotations

import io
import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_page import free_port

import linkwise as lw
from browser import errors, start
from linkwise.view.page import Page, serve

pytest.importorskip("viser")
WebDriverException = pytest.importorskip("selenium.common.exceptions").WebDriverException
CSS = "css selector"
SHOTS = os.environ.get("LINKWISE_SCREENSHOTS")
PATIENCE = 60.0  # [s]: a busy machine draws slowly in software
REPEATS = 15

# Presses an arrow key on a slider and answers when the bars have changed, with the milliseconds between.
PRESS = """
const [slider, bars, done] = arguments, begin = performance.now();
const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now() - begin); });
watch.observe(bars.parentElement, {childList: true, subtree: true, characterData: true});
for (const kind of ['keydown', 'keyup'])  // a key that stays down would turn the camera too
    slider.dispatchEvent(new KeyboardEvent(kind, {key: 'ArrowRight', code: 'ArrowRight', bubbles: true}));
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    size = (1400, 900) if SHOTS else (720, 500)  # software draws every pixel
    # the names of another site, for the tests of access
    resolver = "--host-resolver-rules=MAP *.example 127.0.0.1"
    chrome = start(tmp_path_factory.mktemp("browser"), *size, resolver)
    chrome.set_script_timeout(PATIENCE)
    yield chrome
    chrome.quit()


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.1)


def open_page(driver, page: Page) -> None:
    driver.get(page.url)
    until(lambda: driver.find_elements(CSS, ".lw-bar"), "the bars")
    until(lambda: len(sliders(driver)) >= page.robot.dof, "the sliders")
    until(lambda: drawn(driver), "a picture of the robot")


def sliders(driver) -> list:
    return driver.find_elements(CSS, "[role=slider]")


def picture(driver) -> np.ndarray:
    """The 3-D part of the page, shape (rows, columns, 3)."""
    from PIL import Image

    data = driver.find_element(CSS, "canvas").screenshot_as_png
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=int)


def drawn(driver) -> bool:
    rows, columns = picture(driver).shape[:2]
    middle = picture(driver)[rows // 4 : 3 * rows // 4, columns // 4 : 3 * columns // 4]
    return len(np.unique(middle.reshape(-1, 3), axis=0)) > 200  # more shades than an empty floor has


def torques(driver) -> list[float]:
    """In one step: the page replaces its bars while a motion is played."""
    script = "return [...document.querySelectorAll('.lw-bar')].map(bar => parseFloat(bar.dataset.torque))"
    return driver.execute_script(script)


def choose_tab(driver, title: str) -> None:
    press(driver, "[role=tab]", title)


def click(driver, label: str) -> None:
    press(driver, "button", label)


def press(driver, kind: str, label: str) -> None:
    """Press what has this label, when it is there."""

    def pressed() -> bool:
        script = "return [...document.querySelectorAll(arguments[0])].find(e => e.textContent.trim() === arguments[1])"
        found = driver.execute_script(script, kind, label)
        if found is None:
            return False
        try:
            found.click()
        except WebDriverException:  # replaced or covered just now
            return False
        return True

    until(pressed, f"{kind} {label}")


def text_of(driver, selector: str) -> str:
    return driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


def shoot(driver, name: str) -> None:
    """Save a picture for the documentation, if asked, without the browser's word on its graphics card."""
    if SHOTS:
        driver.execute_script("document.querySelectorAll('[class*=Notification]').forEach(e => e.remove())")
        time.sleep(1.0)
        target = Path(SHOTS) / f"{name}.png"
        from PIL import Image

        image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        image.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(target, optimize=True)


@pytest.fixture(scope="module")
def puma(driver):
    page = serve(lw.load("puma560"), port=free_port(), shadows=bool(SHOTS))
    page.pose(np.array([0.3, 0.5, -2.2, 0.4, 0.6, 0.0]))
    open_page(driver, page)
    yield page
    page.close()


def test_the_page_shows_the_robot_and_its_torques(driver, puma):
    np.testing.assert_allclose(torques(driver), puma.robot.gravity_torques(puma.live.q), rtol=1e-4, atol=1e-5)
    shoot(driver, "view-puma560")
    assert not errors(driver)


def test_a_slider_moves_the_arm_and_changes_the_bars(driver, puma, capsys):
    before, seen = torques(driver), picture(driver)
    shoulder = sliders(driver)[1]
    waits = [
        driver.execute_async_script(PRESS, shoulder, driver.find_element(CSS, ".lw-bars"))
        for _ in range(REPEATS)
    ]
    until(lambda: abs(puma.live.q[1] - 0.5) > 0.01, "the shoulder")
    until(lambda: torques(driver) != before, "other bars")
    until(lambda: np.abs(picture(driver) - seen).max() > 50, "another picture")
    np.testing.assert_allclose(torques(driver), puma.robot.gravity_torques(puma.live.q), rtol=1e-4, atol=1e-5)
    with capsys.disabled():
        print(
            f"\nslider to bars: median {statistics.median(waits):.1f} ms, largest {max(waits):.1f} ms of {REPEATS}"
        )
    assert not errors(driver)


def test_a_motion_is_played_with_its_torques(driver, puma):
    choose_tab(driver, "Motion")
    click(driver, "Play")
    until(lambda: driver.find_elements(CSS, ".lw-plot svg path"), "the plot")
    before = torques(driver)
    until(lambda: torques(driver) != before, "bars in step")
    time.sleep(2.0 if SHOTS else 0.0)
    shoot(driver, "view-motion")
    click(driver, "Pause")
    assert not errors(driver)


def test_a_controller_is_watched(driver, puma):
    control = next(tab for tab in puma.tabs if tab.title == "Control")
    control.factor.value, control.frequency.value = 300.0, 3.0  # so wrong that one sees it
    choose_tab(driver, "Control")
    click(driver, "Simulate and play")
    until(lambda: "largest error" in text_of(driver, ".lw-result"), "a result")
    time.sleep(3.0 if SHOTS else 0.0)
    shoot(driver, "view-control")
    click(driver, "Stop")
    assert not errors(driver)


def test_the_code_tab_shows_c(driver, puma):
    choose_tab(driver, "Code")
    until(lambda: "void gravity_torques(" in text_of(driver, ".lw-code pre"), "the source")
    shoot(driver, "view-code")
    assert not errors(driver)


def panda() -> tuple[lw.Robot, Path | None, dict]:
    """With its meshes, where example-robot-data is installed."""
    fingers = {"panda_finger_joint1": 0.03}  # the other finger follows
    path = installed("panda_description/urdf/panda.urdf")
    if path is None:
        return lw.load("panda"), None, {}
    return lw.load(path, lock=fingers), path, {"q": [0.2, -0.3, 0.1, -1.9, 0.1, 1.8, 0.8], "load": 2.0}


def tree() -> tuple[lw.Robot, Path | None, dict]:
    """A hand: four fingers on one palm."""
    path = installed("allegro_hand_description/urdf/allegro_left_hand.urdf")
    if path is None:
        return lw.random_robot(4, 9, tree=True), None, {}
    return (
        lw.load(path),
        path,
        {"q": [0, 0.3, 0.2, 0.2, 0, 0.5, 0.4, 0.3, 0, 0.8, 0.6, 0.5, 0.9, 0.3, 0.3, 0.3]},
    )


def without_meshes(folder: Path) -> tuple[lw.Robot, Path | None, dict]:
    path = folder / "iiwa.urdf"
    lw.save(lw.load("iiwa14"), path)
    shown = {"show": {"ellipsoids": True, "masses": True}}
    return lw.load(path), path, {"q": [0.3, 0.7, 0.2, -1.2, 0.3, 0.9, 0.0], **shown}


def installed(name: str) -> Path | None:
    import importlib.metadata

    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(file.locate()) for file in map(_Located, files) if file.name.endswith(name)), None)


class _Located:
    def __init__(self, file):
        self.name, self.locate = str(file), file.locate


@pytest.mark.parametrize("kind", [*(["panda", "tree"] if SHOTS else []), "no-meshes"])
def test_other_robots(driver, tmp_path, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot, path, look = {"panda": panda, "tree": tree, "no-meshes": lambda: without_meshes(tmp_path)}[
            kind
        ]()
    page = serve(robot, path, port=free_port(), shadows=bool(SHOTS))
    if "q" in look:
        page.pose(np.array(look["q"]))
    page.carry(look.get("load", 0.0))
    for group, visible in look.get("show", {}).items():
        page.scene.show(group, visible)
    open_page(driver, page)
    assert page.scene.has_meshes == (path is not None and kind != "no-meshes")
    np.testing.assert_allclose(torques(driver), page.live.gravity(), rtol=1e-4, atol=1e-5)
    time.sleep(3.0 if SHOTS else 0.0)
    shoot(driver, f"view-{kind}")
    assert not errors(driver)
    page.close()


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


def test_pages_of_other_sites_cannot_connect(driver, puma, other_site):
    """In the browser that has the page open, so that its cookie is there."""
    import viser

    protocol = f"viser-v{viser.__version__}"
    open_page(driver, puma)
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
    open_page(driver, puma)
    assert "token=" in driver.current_url
    driver.refresh()
    until(lambda: driver.find_elements(CSS, ".lw-bar"), "the bars after a reload")
    # the browser may ask for the icon of the refused page late
    assert not [line for line in errors(driver) if "favicon" not in line]
