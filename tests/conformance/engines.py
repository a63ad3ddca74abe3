"""What the comparisons with Pinocchio need: where robot files are, and Pinocchio in the terms of Linkwise."""

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import compat

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

# Pinocchio's m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in the order m, h, Ixx, Ixy, Ixz, Iyy, Iyz, Izz
PINOCCHIO_PARAMETERS = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)


def example_robots() -> list[Path]:
    """The URDF files of the wheel example-robot-data; none where it is not installed."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())).resolve() for file in files if file.name.endswith(".urdf"))


def shared_robots() -> list[Path]:
    """The URDF files of the shared data, malformed ones too; none where there is no such folder."""
    return sorted(DATA.rglob("*.urdf"))


def title(path: Path) -> str:
    """A short name that tells files of the same name apart."""
    return (
        "/".join(path.parts[path.parts.index("robots") + 1 :])
        if "robots" in path.parts
        else str(path.relative_to(DATA))
    )


@dataclass
class Pinocchio:
    """A URDF file in Pinocchio, its coordinates in the order of a robot of Linkwise."""

    pin: Any
    model: Any
    data: Any
    robot: lw.Robot

    @classmethod
    def of(cls, pin, model, robot: lw.Robot) -> "Pinocchio":
        turn_planar_joints(pin, model, robot)
        return cls(pin, model, model.createData(), robot)

    def configuration(self, q) -> np.ndarray:
        return compat.q_to_pinocchio(self.robot, self.model, q)

    def rates(self, q) -> np.ndarray:
        return compat.pinocchio_rates(self.robot, self.model, q)

    def acceleration(self, v) -> np.ndarray:
        """Ṫ q̇: what Pinocchio's velocities v = T q̇ add to its accelerations; only planar joints have some."""
        found = np.zeros(self.model.nv)
        for joint in self.planar():
            x, y, turn = range(joint.idx_v, joint.idx_v + 3)
            found[x], found[y] = v[turn] * v[y], -v[turn] * v[x]
        return found

    def planar(self) -> list:
        return [joint for joint in self.model.joints if joint.shortname() == "JointModelPlanar"]

    def inverse_dynamics(self, q, qd, qdd) -> np.ndarray:
        T = self.rates(q)
        parts = self.configuration(q), T @ qd, T @ qdd + self.acceleration(T @ qd)
        return T.T @ self.pin.rnea(self.model, self.data, *parts)

    def forward_dynamics(self, q, qd, tau) -> np.ndarray:
        T = self.rates(q)
        inverse = np.linalg.inv(T)
        parts = self.configuration(q), T @ qd, inverse.T @ tau
        return inverse @ (self.pin.aba(self.model, self.data, *parts) - self.acceleration(T @ qd))

    def mass_matrix(self, q) -> np.ndarray:
        T = self.rates(q)
        return T.T @ self._symmetric(self.pin.crba(self.model, self.data, self.configuration(q))) @ T

    def inverse_mass_matrix(self, q) -> np.ndarray:
        back = np.linalg.inv(self.rates(q))
        upper = self.pin.computeMinverse(self.model, self.data, self.configuration(q))
        return back @ self._symmetric(upper) @ back.T

    def _symmetric(self, upper) -> np.ndarray:
        return np.triu(upper) + np.triu(upper, 1).T

    def jacobian(self, q, link: str) -> np.ndarray:
        """Angular rows first, base axes."""
        frame = self.model.getFrameId(link, self.pin.FrameType.BODY)
        axes = self.pin.LOCAL_WORLD_ALIGNED
        J = self.pin.computeFrameJacobian(self.model, self.data, self.configuration(q), frame, axes)
        return J[[3, 4, 5, 0, 1, 2]] @ self.rates(q)

    def regressor(self, q, qd, qdd) -> np.ndarray:
        """Ten columns for every moving link, in our order; for robots without planar joints."""
        T = self.rates(q)
        parts = self.configuration(q), T @ qd, T @ qdd + self.acceleration(T @ qd)
        Y = self.pin.computeJointTorqueRegressor(self.model, self.data, *parts)
        wanted = [
            10 * (self.model.getJointId(name) - 1) + k
            for name in self.robot.joint_names
            for k in PINOCCHIO_PARAMETERS
        ]
        return T.T @ Y[:, wanted]


def turn_planar_joints(pin, model, robot: lw.Robot) -> None:
    """Pinocchio (4.1) takes z as the normal of every planar joint, whatever its <axis>: turn its model to the plane of
    the file."""
    axes = {joint.name: joint.axis for joint in robot.joints}
    for number in range(1, model.njoints):
        name = model.names[number]
        if f"{name}_theta" not in axes or name in axes:
            continue
        R = np.column_stack([axes[f"{name}_{part}"] for part in ("x", "y", "theta")])
        turn = pin.SE3(R, np.zeros(3))
        model.jointPlacements[number] = model.jointPlacements[number] * turn
        for child in range(1, model.njoints):
            if model.parents[child] == number:
                model.jointPlacements[child] = turn.inverse() * model.jointPlacements[child]
        for frame in model.frames:
            if frame.parentJoint == number:
                frame.placement = turn.inverse() * frame.placement
        model.inertias[number] = turn.inverse().act(model.inertias[number])


def relative_error(ours, theirs) -> float:
    """‖ours − theirs‖ / ‖theirs‖ over all states; absolute where theirs is zero."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    size = float(np.linalg.norm(theirs))
    return float(np.linalg.norm(ours - theirs)) / (size or 1.0)


def nearly_singular(matrices, tolerance: float = 1e-12) -> bool:
    """Whether a mass matrix, with its diagonal scaled to one, is singular to round-off in some state."""
    for M in matrices:
        diagonal = np.sqrt(np.clip(np.diag(M), 0.0, None))
        if not diagonal.all() or np.linalg.eigvalsh(M / np.outer(diagonal, diagonal))[0] < tolerance:
            return True
    return False
