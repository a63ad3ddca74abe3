"""A problem in Crocoddyl: its own dynamics (Pinocchio), its own residuals, its own FDDP."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.bench.peers.built import pinocchio_model
from linkwise.optimal import (
    CenterOfMass,
    Effort,
    JointTracking,
    Problem,
    SphereAvoidance,
    TipTracking,
    TipVelocity,
)
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.parameter_table import LOWER, UPPER


def frame_velocity(crocoddyl: Any, pin: Any, state: Any, frame: int, wanted: np.ndarray, nu: int) -> Any:
    """The velocity of a frame in world axes as a residual.

    ``ResidualModelFrameVelocity`` of Crocoddyl 3.2.1 leaves the turning of the frame out of its derivative by q in
    these axes (central differences of its cost show it), so that FDDP stops beside the optimum.
    """

    class FrameVelocity(crocoddyl.ResidualModelAbstract):
        def __init__(self):
            crocoddyl.ResidualModelAbstract.__init__(self, state, 6, nu, True, True, False)
            self.model, self.data = state.pinocchio, state.pinocchio.createData()

        def calc(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            nq = self.model.nq
            pin.forwardKinematics(self.model, self.data, x[:nq], x[nq:], np.zeros(self.model.nv))
            pin.updateFramePlacements(self.model, self.data)
            moving = pin.getFrameVelocity(self.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED)
            data.r[:] = moving.vector - wanted

        def calcDiff(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            nq = self.model.nq
            zero = np.zeros(self.model.nv)
            pin.computeForwardKinematicsDerivatives(self.model, self.data, x[:nq], x[nq:], zero)
            pin.updateFramePlacements(self.model, self.data)
            by_q, by_v = pin.getFrameVelocityDerivatives(self.model, self.data, frame, pin.LOCAL)
            v = pin.getFrameVelocity(self.model, self.data, frame, pin.LOCAL)
            R = self.data.oMf[frame].rotation
            turning = by_v[3:]  # angular velocity per joint rate
            slopes = by_q - np.vstack([pin.skew(v.linear) @ turning, pin.skew(v.angular) @ turning])
            both = np.kron(np.eye(2), R)
            data.Rx[:] = np.hstack([both @ slopes, both @ by_v])

    return FrameVelocity()


def sphere_gap(
    crocoddyl: Any,
    pin: Any,
    state: Any,
    frame: int,
    at: Any,
    center: np.ndarray,
    sizes: tuple[float, float],
    nu: int,
) -> Any:
    """max(0, margin − distance) of a sphere on a frame and one in the room; sizes: (sum of the radii, margin)."""
    reach, margin = sizes

    class SphereGap(crocoddyl.ResidualModelAbstract):
        def __init__(self):
            crocoddyl.ResidualModelAbstract.__init__(self, state, 1, nu, True, False, False)
            self.model, self.data = state.pinocchio, state.pinocchio.createData()

        def _away(self, x: np.ndarray) -> tuple[np.ndarray, float]:
            pin.forwardKinematics(self.model, self.data, x[: self.model.nq])
            pin.updateFramePlacements(self.model, self.data)
            away = self.data.oMf[frame].act(np.asarray(at, float)) - center
            return away, margin - (float(np.linalg.norm(away)) - reach)

        def calc(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            data.r[0] = max(0.0, self._away(x)[1])

        def calcDiff(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            away, inside = self._away(x)
            data.Rx[:] = 0.0
            if inside > 0.0:
                axes = pin.LOCAL_WORLD_ALIGNED
                J = pin.computeFrameJacobian(self.model, self.data, x[: self.model.nq], frame, axes)
                arm = self.data.oMf[frame].rotation @ np.asarray(at, float)
                moved = J[:3] - pin.skew(arm) @ J[3:]
                data.Rx[: self.model.nv] = -(away / np.linalg.norm(away)) @ moved

    return SphereGap()


def some_motors(crocoddyl: Any, state: Any, driven: Any) -> Any:
    """Motors at some joints of a robot with a fixed base."""

    chosen = np.zeros((state.nv, len(driven)))
    for k, joint in enumerate(driven):
        chosen[joint, k] = 1.0

    class SomeMotors(crocoddyl.ActuationModelAbstract):
        def __init__(self):
            crocoddyl.ActuationModelAbstract.__init__(self, state, len(driven))

        def calc(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            if u is not None:
                data.tau = chosen @ u

        def calcDiff(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            data.dtau_du = chosen

        def commands(self, data: Any, x: np.ndarray, tau: np.ndarray) -> None:
            data.u = chosen.T @ tau

        def torqueTransform(self, data: Any, x: np.ndarray, u: Any = None) -> None:
            data.Mtau = chosen.T

    return SomeMotors()


class InCrocoddyl:
    """The problem as a shooting problem; states are converted both ways."""

    def __init__(self, problem: Problem):
        import crocoddyl
        import pinocchio

        self.crocoddyl, self.pinocchio, self.problem = crocoddyl, pinocchio, problem
        self._kept: list[Any] = []  # residuals in Python must outlive the models that call them
        robot = problem.robot
        self.model = pinocchio_model(pinocchio, robot)
        self.model.gravity.linear = np.array(robot.gravity)
        self.model.armature = np.array(
            [j.rotor_inertia for j in robot.coordinate_joints for _ in range(j.dof)]
        )
        self.floats = any(joint.type == "floating" for joint in robot.coordinate_joints)
        for name in self._frames():
            self._add_frame(name)
        self.state = crocoddyl.StateMultibody(self.model)
        floating, full = crocoddyl.ActuationModelFloatingBase, crocoddyl.ActuationModelFull
        if not self.floats and problem.nu < robot.dof:
            self.actuation = some_motors(crocoddyl, self.state, problem.dynamics.driven)
            self._kept.append(self.actuation)
        else:
            self.actuation = (floating if self.floats else full)(self.state)
        known: dict[bytes, Any] = {}  # stages with the same parameters are one model
        stages = [self._stage(p, known) for p in problem.p[:-1]]
        end = self._model(problem.terminal, problem.p[-1], 0.0)
        x0 = self.converted(problem.x0)
        self.shooting = crocoddyl.ShootingProblem(x0, stages, end)
        self.shooting.nthreads = 1

    def _stage(self, p: np.ndarray, known: dict[bytes, Any]) -> Any:
        if p.tobytes() not in known:
            model = known[p.tobytes()] = self._model(self.problem.costs, p, self.problem.step)
            if self.problem.boxed:
                model.u_lb, model.u_ub = (p[self.problem.where(side)] for side in (LOWER, UPPER))
        return known[p.tobytes()]

    def _frames(self) -> list[str | None]:
        """Frames of costs and contacts."""
        problem, contacts = self.problem, self.problem.dynamics.contacts
        terms = (*problem.costs, *problem.terminal)
        names = [term.frame for term in terms if hasattr(term, "frame")]
        spheres = [term for term in terms if isinstance(term, SphereAvoidance)]
        names += [frame for term in spheres for frame, _, _ in term.spheres(problem.robot)]
        return list(dict.fromkeys([*names, *(contacts.frames if contacts else ())]))

    def _held(self, p: np.ndarray) -> Any:
        """The contacts of a stage, with the rule of accelerations."""
        c, contacts = self.crocoddyl, self.problem.dynamics.contacts
        assert contacts.hold == "acceleration"
        held = c.ContactModelMultiple(self.state, self.actuation.nu)
        for name, active in zip(contacts.frames, p[self.problem.where(ACTIVE)], strict=True):
            if active:
                gains = np.array([0.0, contacts.damping])
                axes = self.pinocchio.LOCAL_WORLD_ALIGNED
                frame = self._frame(name)
                nu = self.actuation.nu
                if contacts.surface:
                    own, local = self.pinocchio.SE3.Identity(), self.pinocchio.LOCAL
                    model = c.ContactModel6D(self.state, frame, own, local, nu, gains)
                else:
                    model = c.ContactModel3D(self.state, frame, np.zeros(3), axes, nu, gains)
                held.addContact(name, model)
        return held

    def _order(self, rates: np.ndarray) -> np.ndarray:
        """Velocities of a floating base: (ω, v) or (v, ω), either way."""
        if not self.floats:
            return rates
        return np.concatenate([rates[..., 3:6], rates[..., :3], rates[..., 6:]], axis=-1)

    def converted(self, x: np.ndarray) -> np.ndarray:
        nq = self.problem.robot.nq
        return np.concatenate([x[..., :nq], self._order(x[..., nq:])], axis=-1)

    def _model(self, costs: Any, p: np.ndarray, dt: float) -> Any:
        c = self.crocoddyl
        total = c.CostModelSum(self.state, self.actuation.nu)
        for cost in costs:
            values = {
                name.removeprefix(f"{cost.label}."): p[self.problem.where(name)]
                for name in self.problem.parameters
                if name.startswith(f"{cost.label}.")
            }
            for name, residual, weights in self._residuals(cost, values):
                activation = c.ActivationModelWeightedQuad(np.asarray(weights, float))
                total.addCost(
                    f"{cost.label}.{name}", c.CostModelResidual(self.state, activation, residual), 1.0
                )
        if self.problem.dynamics.contacts is None:
            model = c.DifferentialActionModelFreeFwdDynamics(self.state, self.actuation, total)
        else:
            model = c.DifferentialActionModelContactFwdDynamics(
                self.state, self.actuation, self._held(p), total, 0.0, True
            )
        return c.IntegratedActionModelEuler(model, dt)

    def _residuals(self, cost: Any, values: dict[str, np.ndarray]) -> list[tuple[str, Any, Any]]:
        c, nu, robot = self.crocoddyl, self.actuation.nu, self.problem.robot
        if isinstance(cost, CenterOfMass):
            residual = c.ResidualModelCoMPosition(self.state, values["target"], nu)
            return [("c", residual, values["weight"])]
        if isinstance(cost, Effort):
            return [("u", c.ResidualModelControl(self.state, values["target"]), values["weight"])]
        if isinstance(cost, JointTracking):
            n = robot.dof
            q = values.get("target", robot.neutral)
            x = self.converted(np.concatenate([q, values.get("velocity", np.zeros(n))]))
            weights = [values.get(name, np.zeros(n)) for name in ("weight", "velocity_weight")]
            return [
                (
                    "x",
                    c.ResidualModelState(self.state, x, nu),
                    np.concatenate([self._order(w) for w in weights]),
                )
            ]
        if isinstance(cost, SphereAvoidance):
            found = []
            for k, (name, center, radius) in enumerate(cost.spheres(robot)):
                sizes = (values["radius"][0] + radius, values["margin"][0])
                residual = sphere_gap(
                    c, self.pinocchio, self.state, self._frame(name), center, values["center"], sizes, nu
                )
                self._kept.append(residual)
                found.append((f"sphere{k}", residual, values["weight"]))
            return found
        frame = self._frame(cost.frame)
        if isinstance(cost, TipVelocity):
            order = [3, 4, 5, 0, 1, 2]
            residual = frame_velocity(c, self.pinocchio, self.state, frame, values["target"][order], nu)
            self._kept.append(residual)
            return [("v", residual, values["weight"][order])]
        assert isinstance(cost, TipTracking)
        found = []
        if cost.position is not None:
            residual = c.ResidualModelFrameTranslation(self.state, frame, values["position"], nu)
            found.append(("p", residual, values["position_weight"]))
        if cost.orientation is not None:
            R = self.pinocchio.Quaternion(values["orientation"]).matrix()
            residual = c.ResidualModelFrameRotation(self.state, frame, R, nu)
            found.append(("R", residual, values["orientation_weight"]))
        return found

    def _add_frame(self, name: str | None) -> None:
        body, pose = self.problem.robot.locate(name)
        place = self.pinocchio.SE3(pose.rotation, pose.translation)
        kind = self.pinocchio.FrameType.OP_FRAME
        self.model.addFrame(self.pinocchio.Frame(f"target {name}", body + 1, 0, place, kind))

    def _frame(self, name: str | None) -> int:
        return self.model.getFrameId(f"target {name}")

    def solver(self, stop: float = 1e-14) -> Any:
        kind = self.crocoddyl.SolverBoxFDDP if self.problem.boxed else self.crocoddyl.SolverFDDP
        solver = kind(self.shooting)
        solver.th_stop = stop
        return solver

    def solve(
        self, xs: np.ndarray, us: np.ndarray, iterations: int = 500, stop: float = 1e-14
    ) -> tuple[float, int, str]:
        """(cost, iterations, whether it converged) from this first guess; ``stop``: |Qu|² at which it has."""
        solver = self.solver(stop)
        done = solver.solve([*self.converted(xs)], [*us], iterations, False, 1e-9)
        self.trajectory = np.array(solver.xs), np.array(solver.us)
        return float(solver.cost), int(solver.iter), "converged" if done else f"stopped at {solver.stop:.1e}"
