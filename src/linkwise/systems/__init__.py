"""Generated code inside other systems: functional mock-up units (FMI) and controllers for ros2_control."""

from linkwise.systems.fmu import VERSIONS, Fmu
from linkwise.systems.fmu_model import SystemExportError
from linkwise.systems.ros2_control import Ros2Controller

__all__ = ["VERSIONS", "Fmu", "Ros2Controller", "SystemExportError"]
