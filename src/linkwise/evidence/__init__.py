"""Bounds that hold for every state of a box, not for the states that were tried.

Ranges and rounding errors of generated programs, constants of the equation of motion, and the sheet of them that goes
with a C package.
"""

from linkwise.evidence.box import Box, BoxError, box_of
from linkwise.evidence.certified_bounds import Certificate, OutputBounds, certify
from linkwise.evidence.fixed_point import Fixed, fixed_point
from linkwise.evidence.forms import EvidenceError, Problem
from linkwise.evidence.motion_constants import Constants, constants
from linkwise.evidence.sheet import CertifiedPackage
from linkwise.evidence.sub_boxes import Divided, divide

__all__ = [
    "Box",
    "BoxError",
    "Certificate",
    "CertifiedPackage",
    "Constants",
    "Divided",
    "EvidenceError",
    "Fixed",
    "OutputBounds",
    "Problem",
    "box_of",
    "certify",
    "constants",
    "divide",
    "fixed_point",
]
