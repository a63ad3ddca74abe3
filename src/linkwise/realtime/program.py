"""Generated functions of the two-rate structure: compiler programs and C source."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.compiler.emit import c
from linkwise.compiler.ir.program import Dtype, Program, trace
from linkwise.control import MomentumObserver
from linkwise.control.safe_stop import stop_kernel_with_settings
from linkwise.core.once import once
from linkwise.functions.table import mechanism_of
from linkwise.realtime.limits import SettingsError
from linkwise.robot.robot import Robot
from linkwise.simulate.loop import step_of

C_FILES = ("types.h", "base.c", "checks.c", "stop.c", "harness.c", "simulated.c")


class TwoRatePrograms:
    """Izaguirre's split of one robot's dynamics (1992, section 3), and its plant for simulation.

    ``inertia``: D_ij with rotor inertias and the gravity torques D_i, of q. ``velocity``: Coriolis and
    centrifugal torques of q and q̇, and friction at the planned speed. ``synchronous``: Σ_j D_ij v_j + D_i +
    velocity torques with v = q̈_d − K_d ė − K_p e.

    Args:
        model: the robot of the controller.
        plant: the robot that is simulated; by default the same.
        period: of the synchronous task [s].
        observer: what watches for collisions; None: nothing does.
    """

    def __repr__(self) -> str:
        return f"<TwoRatePrograms of {self.model.name}>"

    def __init__(
        self,
        model: Robot,
        plant: Robot | None = None,
        period: float = 1e-3,
        observer: MomentumObserver | None = None,
    ):
        self.model = model
        self.plant_robot = model if plant is None else plant
        for robot in (self.model, self.plant_robot):
            if (free := next((joint for joint in robot.coordinate_joints if joint.free), None)) is not None:
                raise SettingsError(
                    f"{robot.name}: joint {free.name} is {free.type}; "
                    "the real-time loop takes joints with one coordinate each"
                )
        self.period = period
        self.watching = observer

    @property
    def dof(self) -> int:
        return self.model.dof

    def program(self, name: str, dtype: Dtype = "float64") -> Program:
        """One of the tasks in another precision.

        Args:
            name: "inertia", "velocity" or "synchronous".
            dtype: "float64" or "float32".
        """
        tasks = {"inertia": self._inertia, "velocity": self._velocity, "synchronous": self._synchronous}
        return tasks[name](dtype)

    @once
    def inertia(self) -> Program:
        return self.program("inertia")

    def _inertia(self, dtype: Dtype) -> Program:
        links = mechanism_of(self.model, base_parameters=True)

        def function(q):
            D, gravity = coordinates.coefficients(links, q)
            return {"inertia": D, "gravity": gravity}

        n = self.dof
        return trace(function, {"q": n}, {"inertia": (n, n), "gravity": (n,)}, name="inertia", dtype=dtype)

    @once
    def velocity(self) -> Program:
        return self.program("velocity")

    def _velocity(self, dtype: Dtype) -> Program:
        links = mechanism_of(self.model, base_parameters=True)

        def function(q, qd, qd_d):
            moving = coordinates.velocity_torques(links, q, qd)
            return [a + b for a, b in zip(moving, coordinates.friction(links, q, qd_d), strict=True)]

        n = self.dof
        return trace(function, {"q": n, "qd": n, "qd_d": n}, {"torques": (n,)}, name="velocity", dtype=dtype)

    @once
    def synchronous(self) -> Program:
        return self.program("synchronous")

    def _synchronous(self, dtype: Dtype) -> Program:
        n = self.dof

        def function(inertia, gravity, torques, q, qd, reference, kp, kd):
            q_d, qd_d, qdd_d = (reference[k * n : (k + 1) * n] for k in range(3))
            v = [qdd_d[i] - kd[i] * (qd[i] - qd_d[i]) - kp[i] * (q[i] - q_d[i]) for i in range(n)]
            rows = [inertia[n * i : n * i + n] for i in range(n)]
            return [
                sum((d * a for d, a in zip(row, v, strict=True)), start=g + t)
                for row, g, t in zip(rows, gravity, torques, strict=True)
            ]

        sizes = {
            "inertia": n * n,
            "gravity": n,
            "torques": n,
            "q": n,
            "qd": n,
            "reference": 3 * n,
            "kp": n,
            "kd": n,
        }
        return trace(function, sizes, {"tau": (n,)}, name="synchronous", dtype=dtype)

    @once
    def plant(self) -> Program:
        """One period of the plant: semi-implicit Euler, with its friction, constraints and contacts."""
        robot = self.plant_robot
        links = mechanism_of(robot, base_parameters=True)

        def function(q, qd, tau):
            new = step_of(robot, links)(q, qd, tau, self.period)
            return {"next_q": new[0], "next_qd": new[1]}

        n = self.dof
        return trace(function, {"q": n, "qd": n, "tau": n}, {"next_q": (n,), "next_qd": (n,)}, name="plant")

    @once
    def safe_stop(self) -> Program:
        """Torques of the stop sequence."""
        return stop_kernel_with_settings(self.model).program("float64")  # type: ignore[return-value]

    @once
    def observer(self) -> Program | None:
        """One sample of the momentum observer, with the time since the last one as an input."""
        if self.watching is None:
            return None
        made = self.watching.recursion(None)
        shapes = {name: shape for name, shape in made.outputs.items() if name != "wrench"}
        shapes |= {"next_memory": (made.memory,)}

        def function(**given):
            found = made.function(**given)
            return {name: found[name] for name in shapes}

        return trace(function, {**made.inputs, "memory": made.memory}, shapes, name="observer")

    def source(self) -> str:
        """The whole C file: the generated functions, the loop with its checks and stops, the simulated plant."""
        parts = [
            "/* Generated for " + self.model.name.replace("*/", "") + ". */",
            "#define _GNU_SOURCE",
            f"#define JOINTS {self.dof}",
            "#include <stdint.h>",
        ]
        if self.watching is not None:
            parts.append(f"#define OBSERVER_MEMORY {self.watching.memory_size}")
        parts += [static_function(c.source(program), program.name) for program in self.tasks()]
        return "\n".join([*parts, *map(file_text, C_FILES)])

    def tasks(self) -> list[Program]:
        """All generated functions."""
        tasks = [self.inertia, self.velocity, self.synchronous, self.plant, self.safe_stop]
        return tasks if self.observer is None else [*tasks, self.observer]

    def files(self, prefix: str) -> dict[str, str]:
        """The same for programs in C: a header and a source, with names that begin with ``prefix``."""
        guard = f"{prefix.upper()}_H"
        head = [
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdint.h>",
            "",
            f"#define JOINTS {self.dof}",
            "",
        ]
        texts = {
            f"{prefix}.h": "\n".join([*head, file_text("types.h"), "#endif", ""]),
            f"{prefix}.c": self.source(),
        }
        names = re.compile(r"\b(run(?=\()|rows_needed|time_synchronous|simulated_(?:read|write|brake))\b")
        return {name: names.sub(rf"{prefix}_\1", text) for name, text in texts.items()}


def static_function(text: str, name: str) -> str:
    """C source whose function is not visible outside of its file.

    Args:
        text: the source.
        name: of the function.
    """
    return re.sub(rf"\n(void|int) {name}\(", rf"\nstatic \1 {name}(", text)


def file_text(name: str) -> str:
    """One of the C files of this folder."""
    return resources.files("linkwise.realtime").joinpath(name).read_text(encoding="utf-8")


def numbers_for_timing(programs: TwoRatePrograms, seed: int = 0) -> np.ndarray:
    """Typical inputs of the synchronous task in one array."""
    from linkwise.compiler.ir.interpret import run

    rng = np.random.default_rng(seed)
    n = programs.dof
    q, qd, q_d, qd_d, qdd_d = rng.uniform(-1, 1, (5, n))
    D, gravity = run(programs.inertia, q)
    (torques,) = run(programs.velocity, q, qd, qd_d)
    return np.concatenate(
        [D.ravel(), gravity, torques, q, qd, q_d, qd_d, qdd_d, np.full(n, 100.0), np.full(n, 20.0)]
    )
