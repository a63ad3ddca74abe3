"""A real browser without a window: Debian's chromium, driven by selenium."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars"),
)


def start(folder: Path, width: int = 1400, height: int = 900, *more: str):
    """A driver with its own profile in ``folder``; skips the test where there is no browser."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium or chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    profile = tempfile.mkdtemp(prefix="profile-", dir=folder)
    for option in (*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={profile}", *more):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def errors(driver) -> list[str]:
    """What the page complained about; a lost websocket at the end of a server is no complaint."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] == "SEVERE" and "WebSocket connection" not in entry["message"]
    ]


def reset(driver, width: int, height: int) -> None:
    """Give a browser that other tests have used a window of this size, its own colours and an empty log."""
    driver.get("about:blank")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get_log("browser")
