"""The tabs of the panel, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.view.stance import stands
from linkwise.view.tabs.tab import Tab

if TYPE_CHECKING:
    from linkwise.view.page import Page


def build(page: Page) -> list[Tab]:
    """Tabs that apply to this robot, in the order of the panel."""
    from linkwise.view.tabs.code import CodeTab
    from linkwise.view.tabs.control import ControlTab
    from linkwise.view.tabs.joints import JointsTab
    from linkwise.view.tabs.motion import MotionTab
    from linkwise.view.tabs.show import ShowTab
    from linkwise.view.tabs.standing import BodyTab

    group = page.server.gui.add_tab_group()
    kinds: tuple[type[Tab], ...] = (JointsTab, MotionTab, ControlTab, CodeTab, ShowTab)
    if any(joint.free for joint in page.robot.coordinate_joints):
        kinds = (JointsTab, CodeTab, ShowTab)  # motions are for joints with one coordinate each
        if stands(page.robot):
            kinds = (JointsTab, BodyTab, CodeTab, ShowTab)
    if page.robot.constraints:
        kinds = (JointsTab, CodeTab, ShowTab)  # and they would open loops
    if not page.robot.dof:
        kinds = (ShowTab,)
    made = []
    for kind in kinds:
        with group.add_tab(kind.title):
            made.append(kind(page))
    return made
