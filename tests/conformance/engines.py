"""What the comparisons with Pinocchio need: where robot files are, and Pinocchio in the terms of Linkwise."""

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

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
    """A URDF file in Pinocchio, its joints in the order of a robot of Linkwise, one coordinate per joint."""

    pin: Any
    model: Any
    data: Any
    joints: list  # Pinocchio's joint models in our order
    columns: list[int]  # where our coordinates are among Pinocchio's velocities

    @classmethod
    def of(cls, pin, model, robot: lw.Robot) -> "Pinocchio":
        joints = [model.joints[model.getJointId(name)] for name in robot.joint_names]
        return cls(pin, model, model.createData(), joints, [joint.idx_v for joint in joints])

    def configuration(self, q) -> np.ndarray:
        """Pinocchio has (cos q, sin q) for a continuous joint."""
        full = self.pin.neutral(self.model)
        for joint, value in zip(self.joints, q, strict=True):
            full[joint.idx_q : joint.idx_q + joint.nq] = (
                value if joint.nq == 1 else (np.cos(value), np.sin(value))
            )
        return full

    def velocity(self, v) -> np.ndarray:
        full = np.zeros(self.model.nv)
        full[self.columns] = v
        return full

    def inverse_dynamics(self, q, qd, qdd) -> np.ndarray:
        parts = self.configuration(q), self.velocity(qd), self.velocity(qdd)
        return self.pin.rnea(self.model, self.data, *parts)[self.columns]

    def forward_dynamics(self, q, qd, tau) -> np.ndarray:
        parts = self.configuration(q), self.velocity(qd), self.velocity(tau)
        return self.pin.aba(self.model, self.data, *parts)[self.columns]

    def mass_matrix(self, q) -> np.ndarray:
        return self._symmetric(self.pin.crba(self.model, self.data, self.configuration(q)))

    def inverse_mass_matrix(self, q) -> np.ndarray:
        return self._symmetric(self.pin.computeMinverse(self.model, self.data, self.configuration(q)))

    def _symmetric(self, upper) -> np.ndarray:
        full = np.triu(upper) + np.triu(upper, 1).T
        return full[np.ix_(self.columns, self.columns)]

    def jacobian(self, q, link: str) -> np.ndarray:
        """Angular rows first, base axes."""
        frame = self.model.getFrameId(link, self.pin.FrameType.BODY)
        axes = self.pin.LOCAL_WORLD_ALIGNED
        J = self.pin.computeFrameJacobian(self.model, self.data, self.configuration(q), frame, axes)
        return J[[3, 4, 5, 0, 1, 2]][:, self.columns]

    def regressor(self, q, qd, qdd) -> np.ndarray:
        """Ten columns for every moving link, in our order."""
        parts = self.configuration(q), self.velocity(qd), self.velocity(qdd)
        Y = self.pin.computeJointTorqueRegressor(self.model, self.data, *parts)
        wanted = [10 * (joint.id - 1) + k for joint in self.joints for k in PINOCCHIO_PARAMETERS]
        return Y[np.ix_(self.columns, wanted)]


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
