"""A robot on a web page: sliders, torques as bars and colours, motions, controllers, generated code."""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.errors import MissingExtraError
from linkwise.view.offline import page_file, write_page
from linkwise.view.page import Page, serve
from linkwise.view.show import Embedded, Framed, show

__all__ = ["Embedded", "Framed", "MissingExtraError", "Page", "page_file", "serve", "show", "write_page"]

explain(globals(), "view")
answer_for(__name__)
