"""What every tab is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from linkwise.view.page import Page


class Tab:
    """A tab of the panel; made inside its own viser tab, so that what it adds appears there."""

    title: ClassVar[str]

    def __init__(self, page: Page):
        self.page = page
        self.gui = page.server.gui
        self.build()

    def build(self) -> None:
        """Add the controls."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop what runs in the background."""
