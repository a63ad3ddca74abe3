"""Collisions: capsules and spheres around the links of a robot, their distances to each other, to a floor, to boxes and
to the obstacles of a world.

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
from linkwise.collision.spheres import Spheres, spheres_of
from linkwise.collision.validity.validity import Clearances, Validity, validity_of
from linkwise.collision.world import Cuboid, HalfSpace, HeightField, PointCloud, Rod, Sphere, World
from linkwise.collision.world_file import read_world, write_world

__all__ = [
    "Box",
    "Clearance",
    "Clearances",
    "Contact",
    "Cuboid",
    "HalfSpace",
    "HeightField",
    "PointCloud",
    "Rod",
    "Room",
    "Segment",
    "Shapes",
    "Sphere",
    "Spheres",
    "Tool",
    "Validity",
    "World",
    "box_distance",
    "plane_distance",
    "read_world",
    "segment_box_distance",
    "segment_distance",
    "shapes_of",
    "sphere_distance",
    "spheres_of",
    "validity_of",
    "write_world",
]

explain(globals(), "collision")
answer_for(__name__)
