"""A robot on a web page: sliders, torques as bars and colours, motions, controllers, generated code."""

from linkwise.errors import MissingExtraError
from linkwise.view.page import Page, serve

__all__ = ["MissingExtraError", "Page", "serve"]
