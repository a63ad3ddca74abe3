"""Base class of tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from linkwise.view.page import Page


class Tab:
    """A tab of the panel; created inside its viser tab, so that its controls appear there."""

    title: ClassVar[str]

    def __init__(self, page: Page):
        self.page = page
        self.gui = page.server.gui
        self.build()

    def build(self) -> None:
        """Add the controls."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop background threads."""
