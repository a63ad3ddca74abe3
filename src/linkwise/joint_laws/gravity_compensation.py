"""Weight that something outside the equation of motion carries: ``gravcomp`` of MuJoCo, a counterweight, a balancer."""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar


class GravityCompensation(Law):
    """A force against gravity on the link behind the joint, as large as the weight of a mass with a first moment, both
    in the frame of the joint's child link. It acts on all joints before it: see ``algorithms.gravity_compensation``."""

    name = "gravity_compensation"
    parameters = (
        Parameter("compensated_mass", "compensated mass", ("kg", "kg")),
        *(
            Parameter(f"compensated_h{axis}", f"compensated first moment along {axis}", ("kg·m", "kg·m"))
            for axis in "xyz"
        ),
    )
    on_body = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """Nothing along the joint alone."""
        return 0.0
