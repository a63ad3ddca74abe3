"""What the tests of this folder share."""

from pretended import pretended

__all__ = ["pretended"]
