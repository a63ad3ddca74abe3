"""A first look at a robot: oddities of its file, agreement, speed, C code, payload, a fast motion, one report."""

from linkwise.tour.agreed import Agreed, compare_engines
from linkwise.tour.capability import Capability, payload_capability
from linkwise.tour.code import Code, code_sizes
from linkwise.tour.held import held_still, tool_link
from linkwise.tour.look import PARTS, Tour, look_at
from linkwise.tour.motions import FastMotion, fast_motion
from linkwise.tour.odd import oddities
from linkwise.tour.page import tour_report

__all__ = [
    "PARTS",
    "Agreed",
    "Capability",
    "Code",
    "FastMotion",
    "Tour",
    "code_sizes",
    "compare_engines",
    "fast_motion",
    "held_still",
    "look_at",
    "oddities",
    "payload_capability",
    "tool_link",
    "tour_report",
]
