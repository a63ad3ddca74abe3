"""``robot.show()``: the 3-D page in a frame of a notebook, or in the browser."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments.flags import flag, flag_or_none
from linkwise.core import foreign
from linkwise.view.page import PORT, Page, serve

if TYPE_CHECKING:
    from linkwise.motion import Trajectory
    from linkwise.robot.robot import Robot


class Embedded:
    """A page that a notebook shows in a frame; ``page`` is the page itself, stopped by ``close``.

    Args:
        page: the page.
        height: of the frame [pixels].
    """

    def __init__(self, page: Page, height: int):
        self.page, self.height = page, height

    def _repr_html_(self) -> str:
        """A frame with the page, under the host name that the notebook itself has: browsers send the page's cookie
        only to the same one."""
        port, address = self.page.port, self.page.url
        frame = f"linkwise-{port}"
        return (
            f'<iframe id="{frame}" src="{address}" title="{foreign.html_text(self.page.robot.name)}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
            f'<script>if(location.hostname==="localhost")document.getElementById("{frame}").src='
            f'"{address.replace("127.0.0.1", "localhost")}"</script>'
        )

    def close(self) -> None:
        self.page.close()

    def __repr__(self) -> str:
        return f"<Embedded: {foreign.line(self.page.robot.name)} at {self.page.url}; .close() stops it>"


def show(
    robot: Robot,
    q: Sequence[float] | np.ndarray | None = None,
    source: str | os.PathLike[str] | None = None,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    motion: Trajectory | None = None,
    frame: str | None = None,
    port: int = PORT,
    dark: bool = False,
    shadows: bool = True,
    height: int = 480,
    wait: bool | None = None,
) -> Embedded | Page:
    """Show a robot on its 3-D page.

    A notebook gets an object that it shows in a frame; elsewhere the page is opened in the browser.

    Args:
        robot: the robot.
        q: its position [rad or m], shape (nq,).
        source: the file that it came from, for its meshes; by default the one that it was loaded from.
        meshes: further folders with meshes.
        motion: a motion to play.
        frame: the frame that carries the load and can be dragged.
        port: port of the page; the next free one if it is busy.
        dark: a dark page.
        shadows: False draws without shadows and reflections, several times as fast on machines without a graphics card.
        height: of the frame in a notebook [pixels].
        wait: whether to wait until Ctrl+C; by default in scripts, which would end at once.
    """
    dark, shadows, wait = flag("dark", dark), flag("shadows", shadows), flag_or_none("wait", wait)
    notebook = in_notebook()
    page = serve(
        robot,
        source,
        meshes=meshes,
        motion=motion,
        frame=frame,
        port=port,
        dark=dark,
        shadows=shadows,
        framed=notebook,
    )
    if q is not None:
        page.pose(q)
    if notebook:
        return Embedded(page, height)
    import webbrowser

    print(f"{foreign.line(robot.name)} is at {page.url}")
    webbrowser.open(page.url)
    if wait if wait is not None else not _interactive():
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            page.close()
    return page


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _interactive() -> bool:
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "IPython" in sys.modules
