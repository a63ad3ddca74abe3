"""Attributes that people try on links and joints, and where the value is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_INSTEAD = {
    "Link": {
        "inertia.mass": "mass m weight",
        "inertia.com": "com c r center_of_mass centre_of_mass cog lever",
        "inertia.matrix_about_com": "I inertia_matrix tensor moments inertia_tensor",
    },
    "Joint": {
        "limits.lower": "lower qlim q_min lower_limit min lower_bound",
        "limits.upper": "upper q_max upper_limit max upper_bound range",
        "limits.velocity": "velocity max_velocity velocity_limit speed",
        "limits.effort": "effort max_effort torque_limit effort_limit torque",
        "viscous_friction": "damping viscous B",
        "coulomb_friction": "friction coulomb Tc frictionloss",
        "rotor_inertia": "armature Jm rotor motor_inertia",
        "origin": "pose transform placement xyz rpy",
    },
}


class Hinted:
    """Raises an AttributeError that says where the value is."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            for place, names in _INSTEAD.get(kind, {}).items():
                if name in names.split():
                    raise AttributeError(f"{name}: use {kind.lower()}.{place}")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
