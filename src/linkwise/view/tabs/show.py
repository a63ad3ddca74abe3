"""Visibility of meshes, skeleton, ellipsoids, masses, frames, names."""

from __future__ import annotations

from linkwise.report.svg import escape
from linkwise.view.parts import group_labels
from linkwise.view.tabs.tab import Tab


class ShowTab(Tab):
    """A checkbox for each group in the scene."""

    title = "Show"

    def build(self) -> None:
        scene = self.page.scene
        self.boxes = {}
        shown = {
            **group_labels(self.page.robot, scene.bones.reach, scene.has_meshes),
            "frames": ("frames", False),
            "names": ("names of the joints", False),
        }
        for group, (label, visible) in shown.items():
            if not scene.groups[group]:
                continue
            box = self.gui.add_checkbox(label, initial_value=visible)
            box.on_update(lambda _event, group=group: scene.show(group, self.boxes[group].value))
            self.boxes[group] = box
            scene.show(group, visible)
        floor = self.gui.add_checkbox("floor", initial_value=True)
        floor.on_update(
            lambda _event: setattr(
                self.page.server.scene.get_handle_by_name("/floor"), "visible", floor.value
            )
        )
        shadows = self.gui.add_checkbox("shadows", initial_value=self.page.shadows)
        shadows.on_update(lambda _event: self.page.shade(shadows.value))
        centre = self.gui.add_button("Centre the view")
        centre.on_click(lambda _event: self.page.centre())
        dark = self.gui.add_checkbox("dark page", initial_value=self.page.dark)
        dark.on_update(lambda _event: self.page.darken(dark.value))
        self.gui.add_markdown(
            "An ellipsoid is the body of even density with the mass and inertia of its link. The floor is drawn only: "
            "contacts are part of simulations, whose forces page.replay(result) shows as arrows."
        )
        if self.page.looks.problems:
            lines = "".join(f"<li>{escape(problem)}</li>" for problem in self.page.looks.problems[:20])
            self.gui.add_html(f'<div style="padding:.6em;font-size:.8em">Not shown:<ul>{lines}</ul></div>')
