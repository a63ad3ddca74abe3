"""From the options of a call to the kernel that computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime.arrays import Array
from linkwise.functions.contact_functions import CONTACT_FUNCTIONS, CONTACT_INPUTS, DEFAULT_STEP
from linkwise.functions.table import FUNCTIONS, ITERATED, Setting, function_named
from linkwise.robot.constrained import checked_kernel
from linkwise.robot.kernels import chosen_algorithm, compiled, evaluate
from linkwise.robot.kernels import kernel as make_kernel
from linkwise.robot.results import frame_of

if TYPE_CHECKING:
    from linkwise.compiler.parametric import ParametricKernel
    from linkwise.functions.base_parameters import BaseParameters
    from linkwise.robot.robot import Robot

LOOKED_INTO = (  # a NaN in the results means a singular matrix
    *("forward_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives"),
    *("task_inertia", "consistent_inverse"),
)
FRAME_FUNCTIONS = ("pose", "jacobian", "velocity", "jacobian_rate", "task_inertia", "consistent_inverse")


def kernel(
    self: Robot,
    function: str | Sequence[str],
    *,
    algorithm: str | None = None,
    dtype: str = "float64",
    inputs: str | Sequence[str] = (),
    friction: bool = True,
    frame: str | None = None,
    wrench: bool = False,
    base_parameters: bool | None = None,
    step: float = DEFAULT_STEP,
    accuracy: float | None = None,
    smoothing: float = 0.0,
) -> Kernel | ParametricKernel:
    """A function of this robot as a compiled object that is called with arrays and can be counted, differentiated
    and printed.

    Args:
        function: a name such as "inverse_dynamics". A list of names gives one kernel that computes what they have
            in common once and returns a tuple of all results; it takes ``dtype``, ``friction`` and ``frame`` only.
        algorithm: one of ``algorithms(function)``.
        dtype: "float64" or "float32".
        inputs: parameters that stay inputs at run time, after the state: "payload" (ten numbers m hx hy hz Ixx Ixy
            Ixz Iyy Iyz Izz about the origin and along the axes of ``frame``) or labels of ``parameter_labels``; of
            contact functions also time_step, contact_friction, ground_height and start_impulse.
        friction: whether viscous and Coulomb terms count.
        frame: of poses, Jacobians, wrenches and payloads; by default the only leaf.
        wrench: whether an external wrench is an input.
        base_parameters: whether inertial parameters are regrouped first; by default where results are the same.
        step: of contact functions: length of the step [s], where it is no input.
        accuracy: of contact functions: largest residual that nearly all states should have.
        smoothing: of derivatives of contact functions [m/s], see ``contact_step``.

    Returns:
        The kernel, compiled when it is called first.

    Raises:
        UnknownNameError: no such function, algorithm, frame or parameter.
    """
    friction, wrench = flag("friction", friction), flag("wrench", wrench)
    if not isinstance(function, str):
        return _combined(self, function, dtype, friction, frame, algorithm or inputs or wrench)
    inputs = (inputs,) if isinstance(inputs, str) else tuple(dict.fromkeys(inputs))
    name = function
    if name == "forward_dynamics" and algorithm in FUNCTIONS[ITERATED].algorithms:
        name = ITERATED
    row = function_named(name)
    regroup = row.regroups if base_parameters is None else flag("base_parameters", base_parameters)
    if regroup and not row.regroups:
        raise ValueError(f"base_parameters: regrouping would change the result of {name}")
    if frame is not None:
        self.locate(frame)
    touching = {given: given in inputs for given in CONTACT_INPUTS} if name in CONTACT_FUNCTIONS else {}
    inputs = tuple(given for given in inputs if given not in touching)
    needs_frame = wrench or "payload" in inputs or name in FRAME_FUNCTIONS
    setting = Setting(
        self,
        friction=friction,
        frame=frame_of(self, frame) if needs_frame else None,
        wrench=wrench,
        base_parameters=regroup,
        parameters=inputs,
    )
    if touching:
        own = self.contact_setting({"step": step, "accuracy": accuracy, "smoothing": smoothing, **touching})
        setting = replace(own, friction=friction, base_parameters=regroup, parameters=inputs)
    return make_kernel(row, setting, chosen_algorithm(row, setting, algorithm), dtype)


def _combined(
    robot: Robot, names: Sequence[str], dtype: str, friction: bool, frame: str | None, others: object
) -> Kernel:
    from linkwise.robot.combined import combined_kernel

    if others:
        raise ValueError("kernel: several functions in one kernel take dtype, friction and frame only")
    needs_frame = any(name in FRAME_FUNCTIONS for name in names)
    setting = Setting(robot, friction=friction, frame=frame_of(robot, frame) if needs_frame else None)
    return combined_kernel(tuple(names), setting, dtype)


def base_parameters(self: Robot, *, first: Sequence[str] = (), links_only: bool = False) -> BaseParameters:
    """The smallest set of parameters that leaves every torque unchanged: labels, values, combinations.

    Args:
        first: parameters to be kept where there is a choice (Izaguirre puts rotor inertias first).
        links_only: whether rotor inertia and friction are left out.
    """
    from linkwise.functions.base_parameters import base_parameters

    return base_parameters(self, first=first, links_only=links_only)


def compute(
    robot: Robot,
    name: str,
    given: dict[str, Any],
    out: Any,
    threads: int | None,
    *,
    algorithm: str | None = None,
    wrench: Array | None = None,
    **options: Any,
) -> Any:
    """A function of the table with the options of a call."""
    setting = setting_of(robot, name, wrench=wrench is not None, **options)
    if wrench is not None:
        given["wrench"] = wrench
    return evaluate(name, setting, algorithm, given, out, threads)


def setting_of(
    robot: Robot,
    name: str,
    *,
    frame: str | None = None,
    wrench: bool = False,
    wrench_frame: str | None = None,
    friction: bool = True,
) -> Setting:
    """What the options of a call mean."""
    if name in FRAME_FUNCTIONS:
        frame = frame_of(robot, frame)
    elif wrench:
        frame = frame_of(robot, wrench_frame)
    elif wrench_frame is not None:
        robot.locate(wrench_frame)  # an unknown name is an error even without a wrench
        frame = wrench_frame
    return Setting(robot, friction=flag("friction", friction), frame=frame, wrench=wrench)


def kernel_for(self: Robot, method: str, options: Mapping[str, Any]) -> tuple[Any, bool] | None:
    """The kernel that computes a method with these options, and whether a NaN in its results is looked into.

    None where a call is more than one kernel.

    Args:
        method: its name.
        options: its options; ``wrench`` and ``start`` say whether these are given.
    """
    options = dict(options)
    algorithm = options.pop("algorithm", None)
    if method == "inverse_dynamics":
        nearest = options.pop("nearest", False)
        if nearest or (self.passive and self.constraints):
            return None
    if method == "forward_dynamics":
        if self.constraints or algorithm in FUNCTIONS[ITERATED].algorithms:
            found = checked_kernel(self, algorithm, options)
            return None if found is None else (found, True)
        if any(options.pop(name, None) for name in ("tolerance", "limit", "start", "stabilization")):
            return None
    touches = method in CONTACT_FUNCTIONS
    setting = self.contact_setting(options) if touches else setting_of(self, method, **options)
    found = compiled(method, setting, algorithm)
    if found is None or method not in LOOKED_INTO:
        return None if found is None else (found, False)
    from linkwise.algorithms.singularity import may_be_singular

    looked_into = method in FRAME_FUNCTIONS or bool(self.constraints) or may_be_singular(setting.links())
    return found, looked_into
