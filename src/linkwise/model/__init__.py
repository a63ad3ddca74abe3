"""What a robot is, and how it comes from a file."""

from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.joint import Joint, Limits, Mimic
from linkwise.model.model import Frame, Link, Model
from linkwise.model.transform import Transform

__all__ = ["LABELS", "Frame", "Inertia", "Joint", "Limits", "Link", "Mimic", "Model", "Transform"]
