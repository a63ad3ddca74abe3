"""An external force on a link: drag a handle away from the link, and see the torques that hold against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from linkwise.view.page import Page

COLOUR = (213, 94, 0)
FULL = 0.5  # length of the arrow of the force that ``STRONG`` scales give, as a fraction of the reach
STRONG = 100.0  # [N] at that length, by default


class Push:
    """Controls of the force, an arrow, and the handle."""

    def __init__(self, page: Page, gui: Any):
        self.page = page
        self.handle: Any = None
        self.arrow: Any = None
        self.moving = False  # True while the program itself moves the handle
        if not page.robot.dof:
            return
        links = tuple(joint.child for joint in page.robot.moving_joints)
        with gui.add_folder("External force", expand_by_default=False):
            self.link = gui.add_dropdown("link", links, initial_value=links[-1])
            self.drag = gui.add_checkbox(
                "drag the link",
                initial_value=False,
                hint="a force from the link to the handle; the joints hold still",
            )
            self.strength = gui.add_slider(
                "full force [N]",
                min=1.0,
                max=1000.0,
                step=1.0,
                initial_value=STRONG,
                hint=f"of an arrow of {FULL:.0%} of the reach",
            )
            self.result = gui.add_html("")
        self.link.on_update(lambda _event: self.show())
        self.drag.on_update(lambda _event: self.show())
        self.strength.on_update(lambda _event: self.pulled())
        page.followers.append(self.follow)
        page.handles.append((self.drag, self.show))

    def show(self) -> None:
        """Add or remove the handle; without it there is no force."""
        for node in (self.handle, self.arrow):
            if node is not None:
                node.remove()
        self.handle = self.arrow = None
        live = self.page.live
        live.pushed, live.force = (self.link.value if self.drag.value else None), np.zeros(3)
        self.result.content = ""
        if self.drag.value:
            self.page.only_handle(self.drag)
            self.handle = self.page.server.scene.add_transform_controls(
                "/push", scale=0.2 * self.page.scene.bones.reach, disable_rotations=True, depth_test=False
            )
            self.handle.position = self.origin()
            self.handle.on_update(lambda _event: None if self.moving else self.pulled())
        self.page.refresh()

    def origin(self) -> np.ndarray:
        """Where the force acts, in base axes [m]."""
        return self.page.robot.pose(self.page.live.q, self.link.value)[:3, 3]

    def pulled(self) -> None:
        """Take the force from the handle's place."""
        if self.handle is None:
            return
        length = FULL * self.page.scene.bones.reach
        self.page.live.force = (np.array(self.handle.position) - self.origin()) * self.strength.value / length
        self.page.refresh()

    def follow(self, q: np.ndarray) -> None:
        """Move handle and arrow with the robot; the force stays."""
        if self.handle is None:
            return
        force, start = self.page.live.force, self.origin()
        end = start + force * FULL * self.page.scene.bones.reach / self.strength.value
        self.moving = True
        self.handle.position = end
        self.moving = False
        self.arrow = self.page.server.scene.add_arrows(
            "/force",
            np.array([[start, end]]),
            colors=COLOUR,
            shaft_radius=0.012,
            head_radius=0.03,
            head_length=0.06,
        )
        size = float(np.linalg.norm(force))
        x, y, z = force
        self.result.content = (
            f'<div class="lw-force" style="padding:.2em .8em;font-size:.85em">{size:.4g} N '
            f"({x:.3g}, {y:.3g}, {z:.3g}) in base axes, at the origin of the link</div>"
        )
