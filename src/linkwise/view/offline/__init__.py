"""Page files: one HTML file with a robot, its sliders, torques, motions and code, which needs no network."""

from linkwise.view.offline.page import MOST_BYTES, page_file, write_page

__all__ = ["MOST_BYTES", "page_file", "write_page"]
