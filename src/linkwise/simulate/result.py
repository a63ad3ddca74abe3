"""What a simulation gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.contact.effort import DEFAULT_ACCURACY
from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.core.once import once
from linkwise.core.summaries import Summarised, Summary
from linkwise.core.upper import upper
from linkwise.model.coordinates import velocity_coordinates
from linkwise.robot.robot import Robot
from linkwise.simulate.watch import (
    Divergence,
    Excursion,
    Unmet,
    beyond_range,
    excursions,
    first_lost,
    lost,
    unmet,
)

if TYPE_CHECKING:
    from linkwise.report import Plot


@dataclass(frozen=True, repr=False)
class Result(Summarised):
    """A simulated motion. Rows are moments in time; leading axes are those of the batch.

    All values of one row belong to the same time: the state at ``t``, what was measured there, and
    the torque that acts from then on.
    """

    robot: Robot
    """The robot that moved (not the controller's model)."""
    t: np.ndarray
    """[s], shape (rows,)."""
    q: np.ndarray
    """[rad or m], shape (..., rows, nq)."""
    qd: np.ndarray
    tau: np.ndarray
    """Torques that acted, without friction [N·m or N], shape (..., rows, n)."""
    reference: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    """q_d, q̇_d, q̈_d, each broadcastable to q."""
    final_q: np.ndarray
    """The state at the end, which is one step after the last row at the latest: shapes (..., nq) and (..., n)."""
    final_qd: np.ndarray
    duration: float
    """[s]"""
    recorded: dict[str, np.ndarray] = field(default_factory=dict)
    """What else was asked for: command, q_measured, qd_measured, memory."""
    step: float = 0.0
    """Of the integrator [s]."""
    contact_numbers: dict[str, np.ndarray] = field(default_factory=dict)
    """Friction and ground height of every candidate of contact, shape (..., contacts)."""
    accuracy: float | None = None
    """Residual that steps with contact were asked for; None: 1e-6."""
    worst_residual: np.ndarray | None = None
    """The largest residual of all steps with contact, also those between the rows, shape (...); None where the loop
    over time was not one kernel."""

    def _summary(self) -> Summary:
        robots, rows = self.q.shape[:-2], len(self.t)
        many = f", {' × '.join(map(str, robots))} robots" if robots else ""
        title = f"Simulation of {self.robot.name}{many}: {self.duration:g} s, {rows} rows"
        names = [each.name for each in velocity_coordinates(self.robot)]
        notes = ["[rad or m, s, N·m or N]"]
        if self.diverged.any():
            notes.append(f"{int(self.diverged.sum())} diverged: see divergence, diverged_at")
        speeds, torques = (np.abs(_on_host(x)).reshape(-1, len(names)) for x in (self.qd, self.tau))
        if not speeds.size:
            return Summary(title, ("joint",), [[name] for name in names], notes)
        columns, cells = (
            ["joint", ">largest speed", ">largest torque"],
            [speeds.max(axis=0), torques.max(axis=0)],
        )
        if self.reference is not None:
            errors = _on_host(self.error).reshape(-1, len(names))
            columns += [">largest error", ">rms error"]
            cells += [np.abs(errors).max(axis=0), np.sqrt((errors**2).mean(axis=0))]
        return Summary(title, columns, list(zip(names, *cells, strict=True)), notes)

    def plot(self, place: int | tuple[int, ...] = 0) -> Plot:
        """Positions, velocities, torques and, with a reference, errors over time: the plots of the report.

        Args:
            place: which robot of a batch.
        """
        which = (place if isinstance(place, tuple) else (place,)) if self.q.ndim > 2 else ()
        q, qd, tau = (_on_host(x)[which] for x in (self.q, self.qd, self.tau))
        error = None if self.reference is None else _on_host(self.error)[which]
        return upper("report").simulation_plot(self.robot, self.t, q, qd, tau, error)

    @property
    def error(self) -> np.ndarray:
        """q − q_d [rad or m], shape (..., rows, n): for ball and floating joints the step from q_d to q."""
        if self.reference is None:
            raise ValueError("this simulation had no reference")
        reference = self.reference[0]
        if is_foreign(self.q):
            from linkwise.gpu.rollout import placed_like

            reference = placed_like(reference, self.q)
        if self.robot.nq != self.robot.dof:
            return self.robot.difference(reference, self.q)
        return self.q - reference

    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together [J], shape (..., rows)."""
        return self.robot.kinetic_energy(self.q, self.qd) + self.robot.potential_energy(self.q)

    def constraint_errors(self) -> np.ndarray:
        """How far constraints are from being met, shape (..., rows, constraint_rows): sine of the angle, gap [m]."""
        return self.robot.constraint_errors(self.q)

    # -- contact ----------------------------------------------------------------------------------------------

    @once
    def contact_forces(self) -> np.ndarray:
        """Forces of contacts on the robot [N], shape (..., rows, contacts, 3), mean over the step after each row.

        In the axes of the contact, the normal last. Forces of ``Plant.push`` are not part of ``tau`` and not counted.
        """
        return self._contact("contact_forces")

    @once
    def slip(self) -> np.ndarray:
        """Speed at which closed contacts slide after the step that follows each row [m/s], (..., rows, contacts)."""
        speeds = np.linalg.norm(self._contact("contact_velocities")[..., :2], axis=-1)
        return np.where(self.contact_forces[..., 2] > 0.0, speeds, 0.0)

    @once
    def residual(self) -> np.ndarray:
        """How far each step is from the laws of contact, shape (..., rows); see ``Robot.contact_residual``."""
        return self._contact("contact_residual")

    @property
    def inexact_contacts(self) -> str | None:
        """What is to say about steps whose laws of contact are not kept to the accuracy; None: there are none."""
        if self.worst_residual is None:
            return None
        worst, asked = _on_host(self.worst_residual), self.accuracy or DEFAULT_ACCURACY
        count = int((worst > asked).sum())
        if not count:
            return None
        robots = f" of {count} of {worst.size} robots" if worst.size > 1 else ""
        return (
            f"steps{robots} keep the laws of contact to {np.nanmax(worst):.1g} only (accuracy {asked:g}); residual has "
            "them row by row, and a smaller step may help"
        )

    @once
    def contact_gaps(self) -> np.ndarray:
        """Distances of the candidates of contact [m], shape (..., rows, contacts); negative inside."""
        heights = _on_host(self.contact_numbers["ground_height"])[..., np.newaxis, :]
        return self.robot.contact_gaps(_on_host(self.q), ground_height=heights)

    @once
    def penetration(self) -> np.ndarray:
        """How deep the candidates of contact are inside of what they touch [m], shape (..., rows, contacts)."""
        return np.maximum(-self.contact_gaps, 0.0)

    @once
    def contact_frames(self) -> np.ndarray:
        """Points and axes of the candidates of contact, shape (..., rows, contacts, 4, 4); ``Robot.contact_frames``."""
        heights = _on_host(self.contact_numbers["ground_height"])[..., np.newaxis, :]
        return self.robot.contact_frames(_on_host(self.q), ground_height=heights)

    @property
    def contact_points(self) -> np.ndarray:
        """Where the candidates touch, in the base frame [m], shape (..., rows, contacts, 3)."""
        return self.contact_frames[..., :3, 3]

    @once
    def contact_arrows(self) -> np.ndarray:
        """The forces of contacts in axes of the base [N], shape (..., rows, contacts, 3)."""
        axes = self.contact_frames[..., :3, :3]
        return (axes * self.contact_forces[..., np.newaxis, :]).sum(axis=-1)

    def _contact(self, name: str) -> np.ndarray:
        """A function of the robot's contacts in every row."""
        numbers = {key: _on_host(value)[..., np.newaxis, :] for key, value in self.contact_numbers.items()}
        q, qd, tau = (_on_host(x) for x in (self.q, self.qd, self.tau))
        return getattr(self.robot, name)(q, qd, tau, step=self.step, accuracy=self.accuracy, **numbers)

    # -- what cannot be right ---------------------------------------------------------------------------------

    @once
    def diverged(self) -> np.ndarray:
        """Which robots end in a state that is not finite or faster than any joint (1e6 rad/s or m/s), shape (...,)."""
        return np.asarray(lost(self.robot, _on_host(self.final_q), _on_host(self.final_qd)).any(axis=-1))

    @once
    def diverged_at(self) -> np.ndarray:
        """[s], shape (...,): the first row that is lost, the end where only the final state is; else infinity."""
        rows = lost(self.robot, _on_host(self.q), _on_host(self.qd)).any(axis=-1)
        times = np.append(self.t, self.duration)
        ends = np.concatenate([rows, self.diverged[..., np.newaxis]], axis=-1)
        return np.where(ends.any(axis=-1), times[np.argmax(ends, axis=-1)], np.inf)

    @once
    def divergence(self) -> Divergence | None:
        """When which joint was lost, of the first robot that diverged; None where none did. As exact as the rows."""
        if not self.diverged.any():
            return None
        place = tuple(int(k) for k in np.argwhere(self.diverged)[0])
        q, qd = self._with_the_end(place)
        found = first_lost(self.robot, np.append(self.t, self.duration), q, qd)
        assert found is not None
        return Divergence(*found, place)

    @once
    def left_range(self) -> list[Excursion]:
        """Joints beyond their range in some row or at the end, with time and distance: only stops hold them."""
        return list(self.excursions())

    @once
    def unmet(self) -> list[Unmet]:
        """Constraints that were not kept to 1e-4 rad or m in some row or at the end."""
        q, final = _on_host(self.q), _on_host(self.final_q)[..., np.newaxis, :]
        return unmet(self.robot, np.append(self.t, self.duration), np.concatenate([q, final], axis=-2))

    def excursions(self) -> Iterator[Excursion]:
        """Those of ``left_range``, one after the other."""
        q, final = _on_host(self.q), _on_host(self.final_q)[..., np.newaxis, :]
        yield from excursions(self.robot, self.t, q)
        known = beyond_range(self.robot, q)
        names = self.robot.joint_names
        for found in excursions(self.robot, np.array([self.duration]), final):
            if not known[(*found.robot, names.index(found.joint))]:
                yield found

    def beyond_range(self) -> np.ndarray:
        """Which joints of which robots have left their range, shape (..., joints)."""
        q, final = _on_host(self.q), _on_host(self.final_q)[..., np.newaxis, :]
        return beyond_range(self.robot, q) | beyond_range(self.robot, final)

    def _with_the_end(self, place: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇ of one robot, (rows + 1, nq) and (rows + 1, n): the rows and the final state."""
        q, qd, last_q, last_qd = (_on_host(x)[place] for x in (self.q, self.qd, self.final_q, self.final_qd))
        return np.vstack([q, last_q]), np.vstack([qd, last_qd])


def _on_host(array: Any) -> np.ndarray:
    """An array of any library as one of NumPy."""
    if not is_foreign(array):
        return array
    if hasattr(array, "get"):
        return array.get()
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)
