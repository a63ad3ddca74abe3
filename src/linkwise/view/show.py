"""``robot.show()``: a page of the robot in a frame of a notebook, or the 3-D page in the browser."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments.flags import flag, flag_or_none
from linkwise.core import foreign
from linkwise.view.offline import page_file
from linkwise.view.page import PORT, Page, serve

if TYPE_CHECKING:
    from linkwise.motion import Trajectory
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result


class Framed:
    """A page file in a frame of a notebook: it is stored with the notebook, and needs neither server nor network.

    Args:
        robot: the robot, for the title of the frame.
        text: the page.
        height: of the frame [pixels].
    """

    def __init__(self, robot: Robot, text: str, height: int):
        self.robot, self.text, self.height = robot, text, height

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{foreign.html_page(self.text)}" title="{foreign.html_text(self.robot.name)}" '
            f'sandbox="allow-scripts allow-downloads" style="width:100%;height:{self.height}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Framed: {foreign.line(self.robot.name)}, {len(self.text) / 1e6:.2f} MB>"


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
    result: Result | None = None,
    frame: str | None = None,
    live: bool | None = None,
    port: int = PORT,
    dark: bool = False,
    shadows: bool = True,
    height: int = 480,
    wait: bool | None = None,
) -> Framed | Embedded | Page:
    """Show a robot on its page.

    A notebook gets a page file in a frame, which needs no server; elsewhere the live page is opened in the browser.

    Args:
        robot: the robot.
        q: its position [rad or m], shape (nq,).
        source: the file that it came from, for its meshes; by default the one that it was loaded from.
        meshes: further folders with meshes.
        motion: a motion to play.
        result: a simulation to play, with arrows for the forces of contacts.
        frame: the frame that carries the load and can be dragged.
        live: the live page, served by this process; by default in a notebook a page file and elsewhere the live page.
        port: port of the page; the next free one if it is busy.
        dark: a dark page.
        shadows: False draws without shadows and reflections, several times as fast on machines without a graphics card.
        height: of the frame in a notebook [pixels].
        wait: whether to wait until Ctrl+C; by default in scripts, which would end at once.
    """
    dark, shadows, wait = flag("dark", dark), flag("shadows", shadows), flag_or_none("wait", wait)
    live = flag_or_none("live", live)
    notebook = in_notebook()
    if notebook and not live:
        at = None if q is None else np.asarray(q, dtype=float)
        text = page_file(
            robot, source, meshes=meshes, motion=motion, frame=frame, q=at, dark=dark or None, result=result
        )
        return Framed(robot, text, height)
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
    if result is not None:
        page.replay(result)
    if notebook:
        return Embedded(page, height)
    import webbrowser

    waits = wait if wait is not None else not _interactive()
    try:  # whoever reads the address may press Ctrl+C at once
        print(f"{foreign.line(robot.name)} is at {page.url}")
        webbrowser.open(page.url)
        while waits:
            time.sleep(3600)
    except KeyboardInterrupt:
        page.close()
        if not waits:
            raise
    return page


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _interactive() -> bool:
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "IPython" in sys.modules
