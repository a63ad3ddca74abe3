"""Arguments of generated functions: what they are, in words and units, and typical values for the check."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.embedded.entries import Entry
from linkwise.robot.robot import Robot

_POSITIONS, _SPEEDS, _ACCELERATIONS = "[rad or m]", "[rad/s or m/s]", "[rad/s^2 or m/s^2]"
_TORQUES = "[N*m or N]"

UNITS = {
    "q": f"joint positions {_POSITIONS}",
    "qd": f"joint velocities {_SPEEDS}",
    "qdd": f"joint accelerations {_ACCELERATIONS}",
    "tau": f"joint torques or forces {_TORQUES}",
    "q_d": f"reference: positions {_POSITIONS}",
    "qd_d": f"reference: velocities {_SPEEDS}",
    "qdd_d": f"reference: accelerations {_ACCELERATIONS}",
    "reference": f"positions {_POSITIONS}, velocities, accelerations, one after the other",
    "memory": "what the controller remembers; zeros before the first call",
    "touch": "impulses of every contact [N*s], then the largest residual so far; zeros before the first call",
    "next_memory": "to be given to the next call as memory",
    "next_q": f"next positions {_POSITIONS}",
    "next_qd": f"next velocities {_SPEEDS}",
    "estimated_q": f"estimated positions {_POSITIONS}",
    "estimated_qd": f"estimated velocities {_SPEEDS}",
    "path_q": f"positions before every step {_POSITIONS}",
    "path_qd": f"velocities before every step {_SPEEDS}",
    "payload": "m [kg], m*c (3) [kg*m], Ixx Ixy Ixz Iyy Iyz Izz [kg*m^2] about the origin of the frame",
    "impulse": "of every contact, normal last [N*s]",
    "velocities": "of every contact after the step, normal last [m/s]",
    "gaps": "of every contact [m]",
    "time_step": "length of the step [s]",
    "contact_friction": "coefficient of friction of every contact",
    "ground_height": "height of the ground under every contact [m]",
    "start_impulse": "impulses to start from, three for every contact [N*s]",
    "wrench": "external wrench on the frame: moment (3) [N*m], force (3) [N]",
    "time": "since the start of the move, or of the stop [s]",
    "duration": "of the move [s]",
    "start": f"of the move {_POSITIONS}",
    "end": f"of the move {_POSITIONS}",
    "way": f"end minus start of the move {_POSITIONS}",
    "rate": "1 / duration of the move [1/s]",
    "stop_q": f"last good positions when the stop began {_POSITIONS}",
    "stop_qd": f"last good velocities when the stop began {_SPEEDS}",
    "feedback": "1: measured q and qd are good; 0: they are not used",
    "number": "of the step; 0 before the first",
    "step": "length of a step [s]",
    "breakaway": "stiction by Coulomb friction; 1: none",
    "inertia": "inertia matrix, row by row [kg*m^2 or kg]",
    "gravity": f"gravity torques {_TORQUES}",
    "torques": f"velocity and friction torques {_TORQUES}",
    "kp": "proportional gains [1/s^2]",
    "kd": "derivative gains [1/s]",
    "ki": "integral gains [1/s^3]",
    "mass_matrix": "row by row [kg*m^2, kg*m or kg]",
    "inverse_mass_matrix": "row by row",
    "gravity_torques": f"gravity torques {_TORQUES}",
    "pose": "homogeneous matrix, row by row: rotation, position [m]",
    "jacobian": "6 x n, row by row: angular (3), then linear",
    "velocity": "angular (3) [rad/s], linear (3) [m/s]",
    "kinetic_energy": "[J]",
    "potential_energy": "[J]",
    "center_of_mass": "[m] in the base frame",
    "external_torque": f"estimated external torques {_TORQUES}",
    "contact": "1 for joints with an external torque beyond the threshold, else 0",
    "fault": "1 where a number that the function needs is not finite, else 0",
    "collision": "1 from the first contact on, else 0",
    "q_measured": f"measured positions {_POSITIONS}",
    "parameters": "estimated parameters",
    "deviations": "standard deviations of the estimates",
    "residual": f"measured less expected torques {_TORQUES}",
    "consistency": "mean square of innovations by their variance; about 1 where noise is as stated",
    "room": "memory for the computation",
}


def typical(robot: Robot, entry: Entry, sizes: Mapping[str, int], count: int) -> dict[str, np.ndarray]:
    """Values of every input for ``count`` states, (count, size) each: positions within their limits, fixed seed.

    Args:
        robot: the robot.
        entry: the function.
        sizes: number of scalars of every input.
        count: number of states.
    """
    rng = np.random.default_rng(7)
    found: dict[str, np.ndarray] = {}
    for name, size in sizes.items():
        if name in entry.settings:
            found[name] = np.clip(entry.settings[name], -1e30, 1e30) * rng.uniform(0.5, 1.5, (count, size))
        elif name in entry.parameters:
            found[name] = np.broadcast_to(entry.parameters[name], (count, size)).astype(float)
        elif name in entry.examples:
            found[name] = np.resize(entry.examples[name], (count, size))
        elif name == "payload":
            found[name] = _payloads(rng, count)
        elif name in ("q", "q_d", "start", "end", "estimated_q", "target", "stop_q"):
            found[name] = _positions(robot, rng, count)
        elif name in ("number", "memory", "touch"):
            found[name] = np.zeros((count, size))
        elif name == "time":
            found[name] = rng.uniform(-0.5, 1.5, (count, size))
        elif name in ("duration", "breakaway", "rate"):
            found[name] = np.ones((count, size))
        elif name == "restitution":
            found[name] = rng.uniform(0, 1, (count, size))
        elif name == "inertia":
            found[name] = np.array([np.ravel(robot.mass_matrix(q)) for q in _positions(robot, rng, count)])
        else:
            found[name] = rng.uniform(-1, 1, (count, size)) * (10.0 if name == "tau" else 1.0)
    return found


SPECIAL = (
    np.nan,
    np.inf,
    -np.inf,
    1.7e308,
    -1.7e308,
    3e38,
    -3e38,
    5e-324,
    -0.0,
    2.0**31,
    -(2.0**63),
    1e30,
    0.0,
)
"""Numbers that are no states of a robot; float32 rounds some of them to infinities and zeros."""


def spoiled(given: Mapping[str, np.ndarray], seed: int = 5) -> dict[str, np.ndarray]:
    """The same inputs with special numbers in them: at all places, at one, at some; another one in every state.

    Args:
        given: values of every input, (states, size) each.
        seed: of the places.
    """
    rng = np.random.default_rng(seed)
    made = {name: np.array(values) for name, values in given.items()}
    places = [(name, k) for name, values in made.items() for k in range(values.shape[1])]
    count = len(next(iter(made.values()))) if made else 0
    for state in range(count):
        number, turn = SPECIAL[state % len(SPECIAL)], state // len(SPECIAL)
        share = (1.0 if turn == 0 else 0.3) if turn % 2 == 0 else 0.0
        chosen = rng.random(len(places)) < share
        chosen[rng.integers(len(places))] = True
        with np.errstate(over="ignore", under="ignore"):
            for name, k in (place for place, is_chosen in zip(places, chosen, strict=True) if is_chosen):
                made[name][state, k] = number
    return made


def _positions(robot: Robot, rng: np.random.Generator, count: int) -> np.ndarray:
    if robot.nq != robot.dof:
        return np.array([robot.random(rng=rng) for _ in range(count)])
    limits = [joint.limits for joint in robot.coordinate_joints]
    low = np.array([each.lower if np.isfinite(each.lower) else -np.pi for each in limits])
    high = np.array([each.upper if np.isfinite(each.upper) else np.pi for each in limits])
    return rng.uniform(low, high, (count, robot.dof))


def _payloads(rng: np.random.Generator, count: int) -> np.ndarray:
    """Spheres of up to 5 kg within 10 cm."""
    mass, center = rng.uniform(0, 5, count), rng.uniform(-0.1, 0.1, (count, 3))
    squares = (center**2).sum(axis=1)
    own = np.eye(3) * 0.01 + squares[:, None, None] * np.eye(3) - center[:, :, None] * center[:, None, :]
    inertia = (mass[:, None, None] * own)[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    return np.column_stack([mass, mass[:, None] * center, inertia])
