"""Collisions: capsules around the links of a robot, and their distances to each other, to a floor and to boxes.

The distances are functions over any scalar (``linkwise.collision.distance``): in ``@linkwise.kernel`` they become part
of a kernel with derivatives and C.
"""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.collision.clearance import Clearance, Contact
from linkwise.collision.distance import (
    Segment,
    box_distance,
    plane_distance,
    segment_box_distance,
    segment_distance,
    sphere_distance,
)
from linkwise.collision.room import Box, Room
from linkwise.collision.shapes import Shapes, Tool, shapes_of

__all__ = [
    "Box",
    "Clearance",
    "Contact",
    "Room",
    "Segment",
    "Shapes",
    "Tool",
    "box_distance",
    "plane_distance",
    "segment_box_distance",
    "segment_distance",
    "shapes_of",
    "sphere_distance",
]

explain(globals(), "collision")
answer_for(__name__)
