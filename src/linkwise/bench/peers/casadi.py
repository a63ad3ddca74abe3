"""CasADi-generated C: the functions of ``urdf2casadi``, compiled with the system's compiler."""

from __future__ import annotations

import importlib
from typing import Any

from linkwise.bench.peers.base import INPUTS, Peer, Refusal
from linkwise.bench.peers.c_loop import CompiledC, compiler, loop_source, real_of
from linkwise.bench.subject import Subject

BUILDERS = {
    "inverse_dynamics": "get_inverse_dynamics_rnea",
    "forward_dynamics": "get_forward_dynamics_aba",
    "mass_matrix": "get_inertia_matrix_crba",
}


def make(subject: Subject) -> Peer:
    """urdf2casadi with this robot: a chain from the base to the only leaf, without rotor inertia."""
    casadi: Any = importlib.import_module("casadi")
    parser: Any = importlib.import_module("urdf2casadi.urdfparser")
    compiler()
    robot = subject.robot
    if subject.urdf is None:
        raise Refusal(subject.refusal)
    if len(robot.leaf_names) != 1 or any(joint.rotor_inertia for joint in robot.moving_joints):
        raise Refusal("takes chains without rotor inertia only")
    description = parser.URDFparser()
    description.from_file(str(subject.urdf))
    return CasadiC(casadi, description, subject)


class CasadiC(CompiledC):
    """CasADi's code generator."""

    name = "casadi C"

    def __init__(self, casadi: Any, description: Any, subject: Subject):
        super().__init__(subject.robot.dof)
        self.casadi, self.description, self.robot = casadi, description, subject.robot
        self.version = casadi.__version__

    def has(self, function: str) -> bool:
        return function in BUILDERS

    def source(self, function: str, dtype: str) -> str:
        robot, real = self.robot, real_of(dtype)
        options = {} if function == "mass_matrix" else {"gravity": list(robot.gravity)}
        built = getattr(self.description, BUILDERS[function])(robot.base, robot.default_frame(), **options)
        symbols = [self.casadi.SX.sym(f"a{k}", robot.dof) for k in range(len(INPUTS[function]))]
        step = self.casadi.Function(
            "one_state", symbols, [self.casadi.densify(built(*symbols))], {"cse": True}
        )
        generator = self.casadi.CodeGenerator("one_state.c", {"casadi_real": real})
        generator.add(step)
        pointers = ", ".join(f"a{k}" for k in range(len(symbols)))
        call = (
            f"const {real} *arg[{step.sz_arg()}] = {{{pointers}}}; {real} *res[{step.sz_res()}] = {{out}}; "
            f"{real} w[{max(step.sz_w(), 1)}]; one_state(arg, res, 0, w, 0);"
        )
        return generator.dump() + loop_source(function, dtype, self.dof, call)
