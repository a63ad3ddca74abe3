"""Every public function of robots with floating and planar bases, ball, helical and coupled joints: a table.

A row is a function of the robot and what it must be, from Pinocchio's model of all joints: with velocities v = T q̇ of
that model, τ = Tᵀτ, M = TᵀMT and J = J T. T orders velocities and adds those of followers; it is constant for these
joints, so derivatives along velocities transform alike.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from evaluation import assert_near, value

import linkwise as lw
from linkwise import Joint, Link, ModelError, Robot, compat
from linkwise.algorithms import centroidal
from linkwise.bench.peers.built import pinocchio_model
from linkwise.functions.table import mechanism_of
from linkwise.model.joint import Mimic
from strategies import body, direction, pose

pin = pytest.importorskip("pinocchio")

ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
WORLD = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def chain(name: str, kinds: tuple[str, ...], base: str = "fixed", *, mimic: bool = False) -> Robot:
    rng = np.random.default_rng(len(kinds))
    links, joints = [Link("base", body(rng))], []
    for k, kind in enumerate(kinds):
        parent = links[max(0, k - k % 2)].name  # a tree with branches of two links
        joints.append(
            Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), axis=direction(rng),
                  pitch=0.25 if kind == "helical" else 0.0, rotor_inertia=0.1 * (k % 2))
        )  # fmt: skip
        links.append(Link(f"link{k}", body(rng)))
    if mimic:
        joints[-1] = replace(joints[-1], mimic=Mimic(joints[0].name, -0.7, 0.3, True))
    return Robot(name, links, joints, gravity=(0.5, -2.0, -9.0)).with_base(base)


ROBOTS = {
    "floating": chain("floating", ("revolute", "prismatic", "revolute"), "floating"),
    "planar": chain("planar", ("revolute", "revolute", "prismatic"), "planar"),
    "ball": chain("ball", ("ball", "revolute", "ball")),
    "helical": chain("helical", ("helical", "prismatic", "helical", "revolute")),
    "coupled": chain("coupled", ("revolute", "ball", "revolute", "revolute"), "floating", mimic=True),
}


class Case:
    """A robot in one state, here and in Pinocchio."""

    def __init__(self, robot: Robot):
        self.robot = robot
        self.model = pinocchio_model(pin, robot)
        self.model.gravity.linear = np.array(robot.gravity)
        self.model.armature = np.array([j.rotor_inertia for j in robot.moving_joints for _ in range(j.dof)])
        self.data = self.model.createData()
        self.them = compat.coordinates(robot, "pinocchio", self.model)
        rng = np.random.default_rng(3)
        self.q = robot.random(rng)
        self.qd, self.qdd = rng.normal(size=(2, robot.dof))
        self.T = self.them.velocity_matrix(self.q)
        self.p, self.v, self.a = compat.to_pinocchio(robot, self.q, self.qd, self.qdd, model=self.model)
        self.frame = robot.moving_joints[-1].child
        self.body = len(robot.moving_joints)

    def torques(self, qd: bool = True, qdd: bool = True, gravity: bool = True) -> np.ndarray:
        model = self.model.copy()
        if not gravity:
            model.gravity.linear = np.zeros(3)
        tau = pin.rnea(model, model.createData(), self.p, qd * self.v, qdd * self.a)
        return self.T.T @ tau

    def mass(self) -> np.ndarray:
        M = np.array(pin.crba(self.model, self.data, self.p))
        return self.T.T @ (np.triu(M) + np.triu(M, 1).T) @ self.T

    def torque_slopes(self, qdd=None) -> tuple[np.ndarray, np.ndarray]:
        a = self.a if qdd is None else self.T @ qdd
        pin.computeRNEADerivatives(self.model, self.data, self.p, self.v, a)
        return tuple(self.T.T @ np.array(D) @ self.T for D in (self.data.dtau_dq, self.data.dtau_dv))

    def acceleration(self) -> np.ndarray:
        """Of zero torques."""
        return -np.linalg.solve(self.mass(), self.torques(qdd=False))

    def jacobian(self) -> np.ndarray:
        pin.computeJointJacobians(self.model, self.data, self.p)
        return np.array(pin.getJointJacobian(self.model, self.data, self.body, WORLD))[ANGULAR_FIRST] @ self.T

    def classical(self) -> np.ndarray:
        pin.forwardKinematics(self.model, self.data, self.p, self.v, 0.0 * self.a)
        return pin.getClassicalAcceleration(self.model, self.data, self.body, WORLD).vector[ANGULAR_FIRST]

    def place(self) -> np.ndarray:
        pin.forwardKinematics(self.model, self.data, self.p)
        return self.data.oMi[self.body].homogeneous

    def momentum(self) -> tuple[np.ndarray, np.ndarray]:
        pin.dccrba(self.model, self.data, self.p, self.v)
        return np.array(self.data.Ag)[ANGULAR_FIRST] @ self.T, (np.array(self.data.dAg) @ self.v)[
            ANGULAR_FIRST
        ]

    def forward_slopes(self) -> tuple[np.ndarray, ...]:
        by_q, by_qd = self.torque_slopes(self.acceleration())
        inverse = np.linalg.inv(self.mass())
        return -inverse @ by_q, -inverse @ by_qd, inverse

    def kinetic(self) -> float:
        return 0.5 * self.qd @ self.mass() @ self.qd


def still(case: Case) -> np.ndarray:
    return np.zeros(case.robot.dof)


# function -> (what it is given, what it must be)
TABLE = {
    "inverse_dynamics": (lambda c: {"q": c.q, "qd": c.qd, "qdd": c.qdd}, lambda c: c.torques()),
    "bias_torques": (lambda c: {"q": c.q, "qd": c.qd}, lambda c: c.torques(qdd=False)),
    "gravity_torques": (lambda c: {"q": c.q}, lambda c: c.torques(qd=False, qdd=False)),
    "velocity_torques": (lambda c: {"q": c.q, "qd": c.qd}, lambda c: c.torques(qdd=False, gravity=False)),
    "mass_matrix": (lambda c: {"q": c.q}, Case.mass),
    "inverse_mass_matrix": (lambda c: {"q": c.q}, lambda c: np.linalg.inv(c.mass())),
    "forward_dynamics": (lambda c: {"q": c.q, "qd": c.qd, "tau": still(c)}, Case.acceleration),
    "iterated_forward_dynamics": (lambda c: {"q": c.q, "qd": c.qd, "tau": still(c)}, Case.acceleration),
    "kinetic_energy": (lambda c: {"q": c.q, "qd": c.qd}, Case.kinetic),
    "potential_energy": (lambda c: {"q": c.q}, lambda c: pin.computePotentialEnergy(c.model, c.data, c.p)),
    "pose": (lambda c: {"q": c.q, "frame": c.frame}, Case.place),
    "jacobian": (lambda c: {"q": c.q, "frame": c.frame}, Case.jacobian),
    "velocity": (lambda c: {"q": c.q, "qd": c.qd, "frame": c.frame}, lambda c: c.jacobian() @ c.qd),
    "jacobian_rate": (lambda c: {"q": c.q, "qd": c.qd, "frame": c.frame}, Case.classical),
    "center_of_mass": (lambda c: {"q": c.q}, lambda c: pin.centerOfMass(c.model, c.data, c.p)),
    "com_jacobian": (lambda c: {"q": c.q}, lambda c: pin.jacobianCenterOfMass(c.model, c.data, c.p) @ c.T),
    "centroidal_matrix": (lambda c: {"q": c.q}, lambda c: c.momentum()[0]),
    "centroidal_momentum": (lambda c: {"q": c.q, "qd": c.qd}, lambda c: c.momentum()[0] @ c.qd),
    "centroidal_bias": (lambda c: {"q": c.q, "qd": c.qd}, lambda c: c.momentum()[1]),
    "inverse_dynamics_derivatives": (
        lambda c: {"q": c.q, "qd": c.qd, "qdd": c.qdd},
        lambda c: c.torque_slopes()[0],
    ),
    "forward_dynamics_derivatives": (
        lambda c: {"q": c.q, "qd": c.qd, "tau": still(c)},
        lambda c: c.forward_slopes()[0],
    ),
}


@pytest.mark.parametrize("kind", ROBOTS)
def test_every_function_by_every_algorithm(kind):
    case = Case(ROBOTS[kind])
    for name, (given, wanted) in TABLE.items():
        expected = np.asarray(wanted(case))
        for algorithm in lw.functions.table.FUNCTIONS[name].algorithms:
            found = value(case.robot, name, algorithm, **given(case))
            loose = "derivatives" in name or "forward" in name or "inverse_mass" in name
            assert_near(
                found,
                expected,
                1e-8 if loose else 1e-10,
                np.abs(expected).max() + 1.0,
                f"{name}, {algorithm}",
            )


@pytest.mark.parametrize("kind", ROBOTS)
def test_identities(kind):
    """Ṁ − 2C is skew, regressors, base parameters as many as the rank, task inertia, parts of the acceleration."""
    case = Case(ROBOTS[kind])
    robot, q, qd, qdd = case.robot, case.q, case.qd, case.qdd
    C = value(robot, "coriolis_matrix", q=q, qd=qd)
    assert_near(C @ qd, value(robot, "velocity_torques", q=q, qd=qd), 1e-10, np.abs(C).max() + 1, "C q̇")
    step = 1e-5
    moved = [value(robot, "mass_matrix", q=robot.integrate(q, sign * step * qd)) for sign in (1, -1)]
    skew = (moved[0] - moved[1]) / (2 * step) - 2 * C
    assert_near(skew, -skew.T, 1e-7, np.abs(C).max() + 1, "Ṁ − 2C")
    Y = value(robot, "regressor", q=q, qd=qd, qdd=qdd)
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
    assert_near(Y @ robot.parameters, tau, 1e-10, np.abs(tau).max(), "regressor")
    rng = np.random.default_rng(0)
    states = (robot.random(rng, 60), *rng.normal(size=(2, 60, robot.dof)))
    W = value(robot, "regressor", **dict(zip(("q", "qd", "qdd"), states, strict=True)))
    W = W.reshape(-1, W.shape[-1])
    base = robot.base_parameters()
    assert len(base.labels) == np.linalg.matrix_rank(
        W / np.maximum(np.linalg.norm(W, axis=0), 1e-9), tol=1e-9
    )
    assert_near(W[:, list(base.columns)] @ base.values, W @ robot.parameters, 1e-8, np.abs(W).max(), "base")
    parts = robot.acceleration_parts(q, qd, tau)
    assert_near(sum(parts), qdd, 1e-8, np.abs(qdd).max() + 1, "parts of the acceleration")
    if any(joint.free for joint in robot.moving_joints):
        for call in (lambda: robot.christoffel(q), lambda: robot.kernel("christoffel").program()):
            with pytest.raises(ModelError, match="the rates of no coordinates; use coriolis_matrix"):
                call()
    J, M = case.jacobian(), case.mass()
    if np.linalg.matrix_rank(J, tol=1e-6) == 6:
        task = value(robot, "task_inertia", q=q, frame=case.frame)
        assert_near(
            task, np.linalg.inv(J @ np.linalg.solve(M, J.T)), 1e-7, np.abs(task).max(), "task inertia"
        )


@pytest.mark.parametrize("kind", ["floating", "coupled"])
def test_compiled_functions_payloads_parameters_and_gradients(kind):
    case = Case(ROBOTS[kind])
    robot, q, qd, qdd = case.robot, case.q, case.qd, case.qdd
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert_near(tau, case.torques(), 1e-10, np.abs(tau).max(), "compiled")
    carried = robot.with_payload(1.5, (0.1, 0.2, 0.0), (0.1, 0.1, 0.1), frame=case.frame)
    moment = lw.Inertia.from_com(1.5, (0.1, 0.2, 0.0), (0.1, 0.1, 0.1)).parameters
    found = robot.kernel("inverse_dynamics", inputs=("payload",), frame=case.frame)(q, qd, qdd, moment)
    assert_near(found, carried.inverse_dynamics(q, qd, qdd), 1e-10, np.abs(found).max(), "payload")
    label = f"{robot.moving_joints[0].child}.m"
    heavier = robot.with_parameters({label: 9.0})
    found = robot.kernel("inverse_dynamics", inputs=(label,))(q, qd, qdd, np.array([9.0]))
    assert_near(found, heavier.inverse_dynamics(q, qd, qdd), 1e-10, np.abs(found).max(), "a parameter")
    weights = np.linspace(-1.0, 1.0, robot.dof)
    by_qdd = robot.kernel("inverse_dynamics").vjp("qdd")(q, qd, qdd, weights)
    assert_near(by_qdd, weights @ case.mass(), 1e-10, np.abs(by_qdd).max(), "vjp")
    assert np.isinf(robot.limits.upper[:7]).all()
    assert (robot.limits.upper.shape, robot.limits.effort.shape) == ((robot.nq,), (robot.dof,))


def test_c_has_the_same_bits(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    case = Case(ROBOTS["coupled"])
    kernel = case.robot.kernel("forward_dynamics")
    (tmp_path / "robot.c").write_text(kernel.source("c", function_name="accelerate"))
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "robot.c"]
    ran = subprocess.run([*command, "-o", "robot.so", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    out, tau = np.empty(case.robot.dof), still(case)
    call = ctypes.CDLL(str(tmp_path / "robot.so")).accelerate
    call(*(ctypes.c_void_p(x.ctypes.data) for x in (case.q, case.qd, tau, out)))
    np.testing.assert_array_equal(out, kernel(case.q, case.qd, tau))


def test_a_frame_that_no_joint_moves_gives_way_to_no_force():
    links = mechanism_of(lw.load("two_link"))
    found = centroidal.task_mobility(links, [0.1, 0.2], -1, lw.Transform.identity())
    np.testing.assert_array_equal(found, np.zeros((6, 6)))
