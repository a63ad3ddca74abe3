"""Methods of robots and kernels of every kind travel to other processes, before and after they have been called."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Gains, GravityPD, Policy
from linkwise.robot.kernels import kernels_of
from linkwise.robot.robot import Robot
from linkwise.simulate.loop import step_kernel

PUBLIC = [
    name
    for name, method in inspect.getmembers(Robot, inspect.isroutine)
    if not name.startswith("_") and {"q", "qd"} & set(inspect.signature(method).parameters)
    if name not in ("show", "plot", "as_ode")  # a page, a picture, a function
]
STATES = ("q", "qd", "qdd", "tau", "v")


def robot_for(name: str) -> Robot:
    """One that the method takes."""
    if "constraint" in name or name in ("delassus_matrix", "impact"):
        return lw.load("ur10e").with_constraints(
            [lw.Point(lw.load("ur10e").default_frame(), [0.3, 0.2, 0.5])]
        )
    if name.startswith("contact_"):
        return lw.load("two_link").with_contacts([lw.Contact(lw.load("two_link").default_frame())])
    return lw.load("ur10e" if name in ("task_inertia", "consistent_inverse") else "two_link")


def arguments(name: str, *batch: int, dtype=np.float64) -> list[np.ndarray]:
    """One array for each state that a method takes."""
    taken = [p for p in inspect.signature(getattr(Robot, name)).parameters if p in STATES]
    if name == "directions":  # of the samples of a motion
        batch = (*batch, 4)
    rng = np.random.default_rng(1)
    return [rng.uniform(0.1, 1, (*batch, robot_for(name).dof)).astype(dtype) for _ in taken]


def leaves(value):
    """The arrays in whatever a method returns."""
    if isinstance(value, (np.ndarray, np.generic)):
        return [np.asarray(value)]
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return []


def same(a, b) -> bool:
    return len(leaves(a)) == len(leaves(b)) and all(map(np.array_equal, leaves(a), leaves(b)))


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("calls", ["none", "one state", "batches", "float32"])
def test_every_method(name, calls):
    robot = robot_for(name)
    one = arguments(name)
    for _ in range(0 if calls == "none" else 3):
        given = {
            "one state": one,
            "batches": one if name in ("filter", "conjugate_gradient") else arguments(name, 5),
            "float32": arguments(name, dtype=np.float32),
        }[calls]
        getattr(robot, name)(*given)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(getattr(robot, name), protocol))
        assert same(twin(*one), getattr(robot, name)(*one))
    travelled = pickle.loads(pickle.dumps({"robot": robot, "method": getattr(robot, name)}))
    assert travelled["method"].__name__ == name
    assert travelled["robot"] == robot


def test_the_methods_are_found():
    assert {"inverse_dynamics", "forward_dynamics", "pose", "jacobian", "velocity", "regressor"} <= set(
        PUBLIC
    )


@lw.kernel(q=2)
def product(q):
    return q[0] * q[1]


def kernels() -> dict:
    robot = lw.load("two_link")
    plain = robot.kernel("inverse_dynamics")
    parametric = robot.kernel("inverse_dynamics", inputs="payload")
    controller = GravityPD(robot, Gains(kp=10.0, kd=1.0))
    found = {
        "plain": plain,
        "float32": robot.kernel("inverse_dynamics", dtype="float32"),
        "of a frame": robot.kernel("pose"),
        "loops over links": lw.planar_chain(300).kernel("inverse_dynamics"),
        "several outputs": robot.kernel("forward_dynamics_derivatives"),
        "iterated": robot.kernel("forward_dynamics", algorithm="conjugate_gradient"),
        "parametric": parametric,
        "whole": parametric.whole,
        "main": parametric.main,
        "prelude": parametric.prelude,
        "controller": controller.kernel(1e-3),
        "step": step_kernel(robot),
        "of the user": product,
    }
    for name in ("plain", "float32", "parametric", "controller", "of the user"):
        found[f"{name}, vjp"] = found[name].vjp()
        found[f"{name}, vjp by q"] = found[name].vjp("q")
        found[f"{name}, jacobian"] = found[name].jacobian("q")
    found["vjp of vjp"] = plain.vjp().vjp("q")
    found["vjp of jacobian"] = plain.jacobian("q").vjp("qd")
    found["jacobian of vjp"] = parametric.vjp("payload").jacobian("q")
    return found


KERNELS = kernels()


@pytest.mark.parametrize("kind", KERNELS)
def test_every_kind_of_kernel(kind):
    kernel = KERNELS[kind]
    rng = np.random.default_rng(2)
    given = [rng.uniform(0.1, 1.0, (3, size)) for _, size in kernel.inputs]
    for _ in range(2):  # before and after it has been called
        twin = pickle.loads(pickle.dumps(kernel))
        assert (twin.inputs, twin.outputs, twin.dtype) == (kernel.inputs, kernel.outputs, kernel.dtype)
        assert same(twin(*given), kernel(*given))


def test_closed_loops_travel():
    robot = lw.load("two_link")
    controller = GravityPD(robot, Gains(kp=10.0, kd=1.0))
    lw.simulate.simulate(robot, controller, [0.1, 0.2], duration=0.01)
    (kernel,) = [kernel for key, kernel in kernels_of(robot).items() if key[0] == "rollout"]
    twin = pickle.loads(pickle.dumps(kernel))
    assert twin.identity("float64") == kernel.identity("float64")


def test_kernels_of_policies_travel():
    kernel = Policy.random((4, 3, 2), 1).kernel("float64")
    rng = np.random.default_rng(3)
    given = [rng.uniform(-1.0, 1.0, (3, size)) for _, size in kernel.inputs]
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(*given), kernel(*given))


CHILD = """
import pickle, sys
import numpy as np
method, kernel = pickle.load(sys.stdin.buffer)
print(method(np.array([0.1, 0.2])).tolist(), kernel(np.ones(2), np.ones(2), np.ones(2), np.ones(2))[0].tolist())
"""


def test_to_another_process():
    robot = lw.load("two_link")
    q = np.array([0.1, 0.2])
    wanted = robot.gravity_torques(q)
    robot.gravity_torques(q)
    kernel = robot.kernel("inverse_dynamics").vjp()
    data = pickle.dumps((robot.gravity_torques, kernel))
    ran = subprocess.run([sys.executable, "-c", CHILD], input=data, capture_output=True, timeout=120)
    ones = kernel(np.ones(2), np.ones(2), np.ones(2), np.ones(2))[0]
    assert ran.stdout.decode().strip() == f"{wanted.tolist()} {ones.tolist()}", ran.stderr.decode()


def test_what_has_no_name_says_so():
    with pytest.raises(TypeError, match="cannot be pickled; make it again"):
        pickle.dumps(lw.kernel(x=2)(lambda x: x[0] * x[1]).vjp())
