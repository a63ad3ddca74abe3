"""``robot.show()``: a frame in a notebook, which is on another port of the same machine; elsewhere the browser."""

import functools
import http.server
import sys
import threading
import time
import types
import webbrowser

import pytest

import browser
import linkwise as lw

pytest.importorskip("viser")


@pytest.fixture
def notebook(monkeypatch):
    """A process that looks like the kernel of a notebook."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


@pytest.fixture
def site(tmp_path):
    """A server of this machine on a port of its own, as Jupyter's is; gives its folder and port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("host", ["localhost"])  # 127.0.0.1 works too; a browser takes long
def test_a_notebook_shows_the_live_page_in_a_frame(notebook, site, chrome, host):
    folder, port = site
    driver = chrome
    browser.reset(driver, 720, 500)
    shown = lw.load("two_link").show({"joint1": 0.3, "joint2": 0.5}, live=True, port=0, shadows=False)
    try:
        assert list(shown.page.live.q) == [0.3, 0.5]
        assert shown.page.url in repr(shown)
        (folder / "notebook.html").write_text(f"<!DOCTYPE html><body>{shown._repr_html_()}</body>")
        driver.get(f"http://{host}:{port}/notebook.html")
        frame = driver.find_element("tag name", "iframe")
        assert f"http://{host}:{shown.page.port}/" in frame.get_attribute("src")
        driver.switch_to.frame(frame)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (
            driver.find_elements("tag name", "canvas") and shown.page.server.get_clients()
        ):
            time.sleep(0.05)
        assert driver.find_elements("tag name", "canvas"), driver.page_source[:500]
        assert shown.page.server.get_clients(), "the page's websocket is not connected"
    finally:
        driver.get("about:blank")
        shown.close()


def test_a_notebook_shows_a_page_without_a_server(notebook, tmp_path, chrome, monkeypatch):
    """The page works from a file; no socket is opened, and a hostile name stays text."""
    monkeypatch.setattr("socket.socket.bind", None)
    robot = lw.load("two_link")
    named = lw.Robot('"></iframe><b id="out">', robot.links, robot.joints)
    shown = named.show({"joint1": 0.3, "joint2": 0.5})
    monkeypatch.undo()
    assert "MB" in repr(shown)
    page = tmp_path / "notebook.html"
    page.write_text(f"<!DOCTYPE html><body>{shown._repr_html_()}</body>", encoding="utf-8")
    browser.reset(chrome, 720, 500)
    chrome.get(page.as_uri())
    assert not chrome.find_elements("id", "out")
    chrome.switch_to.frame(chrome.find_element("tag name", "iframe"))
    end = time.monotonic() + 60
    while time.monotonic() < end and not chrome.execute_script("return Boolean(window.linkwise)"):
        time.sleep(0.05)
    home = chrome.execute_script("return window.linkwise.data.home")
    assert home == pytest.approx([0.3, 0.5])
    chrome.get("about:blank")


def test_elsewhere_the_browser_is_opened(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setitem(sys.modules, "IPython", None)
    page = lw.load("two_link").show(port=0, wait=False)
    try:
        assert opened == [page.url]
        assert page.url in capsys.readouterr().out
        assert page.url in repr(page)
    finally:
        page.close()
