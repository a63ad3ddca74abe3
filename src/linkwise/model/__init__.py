"""What a robot is, and how it comes from a file."""

from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.model import Frame, Joint, Limits, Link, Mimic, Model
from linkwise.model.transform import Transform

__all__ = ["LABELS", "Frame", "Inertia", "Joint", "Limits", "Link", "Mimic", "Model", "Transform"]
