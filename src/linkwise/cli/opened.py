"""Opening a written page in the browser, where there is one with a window."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path


def open_in_browser(page: Path) -> bool:
    """Open a page; False where no browser can show it, such as over ssh: text browsers would take the terminal."""
    display = any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
    )
    if sys.platform.startswith("linux") and not display:
        return False
    return webbrowser.open(page.resolve().as_uri())
