"""Signed distances over any scalar, for kernels of users: those with which contacts are computed, too."""

from linkwise.algorithms.contact.distance import (
    Point,
    Segment,
    box_direction,
    box_distance,
    box_error,
    box_normal,
    dot,
    length,
    nearest_part,
    nearest_part_to_box,
    nearest_parts,
    plane_distance,
    segment_box_distance,
    segment_distance,
    sphere_distance,
)

__all__ = [
    "Point",
    "Segment",
    "box_direction",
    "box_distance",
    "box_error",
    "box_normal",
    "dot",
    "length",
    "nearest_part",
    "nearest_part_to_box",
    "nearest_parts",
    "plane_distance",
    "segment_box_distance",
    "segment_distance",
    "sphere_distance",
]
