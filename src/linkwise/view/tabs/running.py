"""What is simulated in real time while a target in the scene is dragged."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.report.svg import escape
from linkwise.view.scene import quaternion

if TYPE_CHECKING:
    from linkwise.view.page import Page

FRAME = 1 / 30  # [s]


class Running:
    """A folder with a checkbox that shows a handle for a target, and a thread that simulates in real time.

    Args:
        page: the page.
    """

    folder: ClassVar[str]
    label: ClassVar[str]
    hint: ClassVar[str]

    def __init__(self, page: Page):
        self.page, self.gui = page, page.server.gui
        with self.gui.add_folder(self.folder):
            self.on = self.gui.add_checkbox(self.label, initial_value=False, hint=self.hint)
            self.build()
            self.says = self.gui.add_html("")
        self.on.on_update(lambda _event: self.switch())
        self.page.handles.append((self.on, self.switch))
        self.handle: Any = None
        self._running = threading.Event()
        self._thread: threading.Thread | None = None

    def build(self) -> None:
        """Add further controls."""

    def start(self) -> None:
        """Prepare the controller, and show the handle by ``show_handle``."""
        raise NotImplementedError

    def aim(self, position: Any, wxyz: Any) -> None:
        """Another target: position [m] and quaternion of the handle."""
        raise NotImplementedError

    def frame(self) -> None:
        """Simulate ``FRAME`` seconds and show the robot."""
        raise NotImplementedError

    def switch(self) -> None:
        """Start or stop as the checkbox says."""
        if not self.on.value:
            self.stop()
            return
        if self._running.is_set():
            return
        self.page.only_handle(self.on)
        self.say("preparing the controller …")
        try:
            self.start()
        except (LinkwiseError, ValueError) as error:
            self.say(str(error))
            return
        self.say("drag the handle in the scene")
        self._running.set()
        self._thread = threading.Thread(target=self._run, name="linkwise-running", daemon=True)
        self._thread.start()

    def show_handle(self, name: str, pose: np.ndarray, scale: float = 0.28) -> None:
        """A handle at a pose (4, 4); ``scale`` is a part of the robot's reach."""
        self.handle = self.page.server.scene.add_transform_controls(
            name, scale=scale * self.page.scene.bones.reach, depth_test=False
        )
        self.handle.position, self.handle.wxyz = pose[:3, 3], quaternion(pose[:3, :3])
        self.handle.on_update(lambda event: self.aim(event.target.position, event.target.wxyz))

    def say(self, text: str) -> None:
        self.says.content = (
            f'<div class="lw-result" style="padding:.3em .8em;font-size:.85em">{escape(text)}</div>'
        )

    def stop(self) -> None:
        """End the simulation and remove the handle."""
        self._running.clear()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0)
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        self.says.content = ""

    def _run(self) -> None:
        while self._running.is_set():
            begin = time.perf_counter()
            with self.page.lock:
                if self._running.is_set():
                    self.frame()
            time.sleep(max(0.0, FRAME - (time.perf_counter() - begin)))
