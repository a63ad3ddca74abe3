"""Linkwise: the dynamics of robot arms, link by link."""

from linkwise.core import children as _children  # noqa: F401  (first: ``python -m linkwise`` leaves the current folder)

# isort: split
from linkwise import registered as _registered  # noqa: F401  (it registers parts above)
from linkwise.arguments.explained import explain, explain_methods
from linkwise.arguments.guesses import answer_for as _answer_for
from linkwise.compiler.runtime import thread_limits as _thread_limits  # noqa: F401  (it registers itself)
from linkwise.errors import (
    ArgumentError,
    ConstraintError,
    ConvergenceError,
    DtypeError,
    ExportWarning,
    LinkwiseError,
    MissingExtraError,
    ModelError,
    ModelWarning,
    ShapeError,
    SingularError,
    SlowWarning,
    TraceError,
    UnknownNameError,
)
from linkwise.language import dot, empty, loop, span, variable, whole_numbers, zeros
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Transform
from linkwise.model.bodies import Body
from linkwise.model.constraints import Coupling, Point, Weld
from linkwise.model.contacts import Contact, Ground, Stop, Tendon
from linkwise.model.elastic import Elastic
from linkwise.model.fluid import DragBody, Fluid
from linkwise.model.motors import Motor
from linkwise.model.shapes import Shape
from linkwise.robot.loading import (
    Scene,
    general_chain,
    load,
    planar_chain,
    quadruped,
    random_robot,
    robots,
    save,
)
from linkwise.robot.robot import Robot
from linkwise.robot.user import atan2, cos, kernel, maximum, minimum, sign, sin, sqrt, where
from linkwise.study import open_study, study
from linkwise.version import __version__

_PARTS = (
    "collision",
    "compat",
    "control",
    "embedded",
    "environments",
    "frameworks",
    "gpu",
    "identify",
    "motion",
    "optimal",
    "realtime",
    "report",
    "simulate",
    "systems",
    "tour",
    "view",
)


def __getattr__(name: str):
    """Parts that are imported when they are first used: ``lw.compat``, ``lw.motion`` …"""
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"linkwise.{name}")
    if name.startswith("_"):  # other programs ask every object for such names: no suggestions
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    from linkwise.arguments.guesses import module_answer, public_names

    said = module_answer(name, (*__all__, *_PARTS), public_names(Robot), robots())
    if "; did you mean" in said or said.endswith(repr(name)):  # no answer of the table: a name of a part?
        import importlib

        for part in _PARTS:
            if name in getattr(importlib.import_module(f"linkwise.{part}"), "__all__", ()):
                said = f"{name}: use linkwise.{part}.{name}"
                break
    raise AttributeError(said)


__all__ = [
    "ArgumentError",
    "Body",
    "ConstraintError",
    "Contact",
    "ConvergenceError",
    "Coupling",
    "DragBody",
    "DtypeError",
    "Elastic",
    "ExportWarning",
    "Fluid",
    "Frame",
    "Ground",
    "Inertia",
    "Joint",
    "Limits",
    "Link",
    "LinkwiseError",
    "Mimic",
    "MissingExtraError",
    "ModelError",
    "ModelWarning",
    "Motor",
    "Point",
    "Robot",
    "Scene",
    "Shape",
    "ShapeError",
    "SingularError",
    "SlowWarning",
    "Stop",
    "Tendon",
    "TraceError",
    "Transform",
    "UnknownNameError",
    "Weld",
    "__version__",
    "atan2",
    "cos",
    "dot",
    "empty",
    "general_chain",
    "kernel",
    "load",
    "loop",
    "maximum",
    "minimum",
    "open_study",
    "planar_chain",
    "quadruped",
    "random_robot",
    "robots",
    "save",
    "sign",
    "sin",
    "span",
    "sqrt",
    "study",
    "variable",
    "where",
    "whole_numbers",
    "zeros",
]

explain(globals())
explain_methods(Robot, "Robot")
_answer_for("linkwise.robot.robot")
del explain, explain_methods
