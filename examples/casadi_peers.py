"""Forward dynamics for CasADi by other ways: a call from Python, adam, and Pinocchio."""

from __future__ import annotations

import importlib
import subprocess

import numpy as np

import linkwise as lw

_kept = []  # CasADi does not keep the Python object of a callback


def compiled(kernel, folder):
    """A kernel as C with its Jacobian, compiled and loaded."""
    import casadi as ca

    code, library = folder / "arm.c", folder / "arm.so"
    code.write_text(kernel.source("casadi", function_name="arm"))
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", code, "-o", library, "-lm"], check=True)
    return ca.external("arm", str(library))


def called(kernel):
    """A kernel that CasADi calls from Python; its derivatives are finite differences."""
    import casadi as ca

    class Called(ca.Callback):
        def __init__(self):
            ca.Callback.__init__(self)
            self.construct("called", {"enable_fd": True})

        def get_n_in(self):
            return len(kernel.inputs)

        def get_sparsity_in(self, k):
            return ca.Sparsity.dense(kernel.inputs[k][1], 1)

        def get_sparsity_out(self, k):
            return ca.Sparsity.dense(kernel.outputs[k][1][0], 1)

        def eval(self, arguments):
            return [ca.DM(kernel(*(np.ravel(x.full()) for x in arguments)))]

    _kept.append(Called())
    return _kept[-1]


def others(robot, folder) -> dict:
    """Functions of other libraries, or why there is none; each is compared with Linkwise first."""
    file = folder / "arm.urdf"
    lw.save(robot, file)
    found = {}
    for name, make in (("adam", _adam), ("pinocchio.casadi", _pinocchio)):
        try:
            function = make(robot, file)
        except ImportError:
            found[name] = "is not installed"
            continue
        state = [np.full(robot.dof, x) for x in (0.3, 0.2, 0.1)]
        known = robot.forward_dynamics(*state, friction=False)
        assert np.allclose(np.ravel(function(*state).full()), known, rtol=1e-6), name
        found[name] = function
    return found


def _symbols(robot):
    import casadi as ca

    return [ca.SX.sym(name, robot.dof) for name in ("q", "qd", "tau")]


def _adam(robot, file):
    import casadi as ca

    gravity = np.array([*robot.gravity, 0.0, 0.0, 0.0])
    make = importlib.import_module("adam.casadi").KinDynComputations
    model = make(str(file), list(robot.joint_names), gravity=gravity)
    q, qd, tau = _symbols(robot)
    still = np.eye(4), q, np.zeros(6), qd
    M, bias = model.mass_matrix_fun()(*still[:2])[6:, 6:], model.bias_force_fun()(*still)[6:]
    return ca.Function("adam", [q, qd, tau], [ca.solve(M, tau - bias)])


def _pinocchio(robot, file):
    import casadi as ca

    own = importlib.import_module("pinocchio")
    pin = importlib.import_module("pinocchio.casadi")
    model = pin.Model(own.buildModelFromUrdf(str(file)))
    q, qd, tau = _symbols(robot)
    return ca.Function("pinocchio", [q, qd, tau], [pin.aba(model, model.createData(), q, qd, tau)])
