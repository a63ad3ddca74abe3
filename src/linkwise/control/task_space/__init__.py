"""Laws for the tool of a robot: impedance, operational space, admittance, force, hand guiding; avoidance of limits."""

from linkwise.control.task_space.admittance import CartesianAdmittance
from linkwise.control.task_space.avoidance import Avoiding
from linkwise.control.task_space.hand_guiding import HandGuiding
from linkwise.control.task_space.hybrid import HybridForceMotion
from linkwise.control.task_space.impedance import CartesianImpedance
from linkwise.control.task_space.operational_space import OperationalSpace
from linkwise.control.task_space.tool import usual_inertia

__all__ = [
    "Avoiding",
    "CartesianAdmittance",
    "CartesianImpedance",
    "HandGuiding",
    "HybridForceMotion",
    "OperationalSpace",
    "usual_inertia",
]
