"""The example of a package: a program with the whole cycle around its controller, which runs as it is.

Read, check, reference, law, limits, and the safe stop where something is wrong. The two functions that know the drives
stand at its beginning; in their place is an arm that is simulated where the package has ``forward_dynamics``, and that
follows the reference otherwise. A package without a controller gets a program that calls its functions once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwise.core import foreign
from linkwise.embedded.coded import Coded
from linkwise.embedded.entry import Options
from linkwise.embedded.package_files import support_file
from linkwise.robot.robot import Robot

SECONDS = 2.5
"""Simulated time of the example [s]."""
_MEASURED = {"q": "q", "qd": "qd", "q_d": "q_d", "qd_d": "qd_d", "qdd_d": "qdd_d", "tau": "tau"}


def program(robot: Robot, prefix: str, functions: Sequence[Coded], options: Options) -> str:
    """The text of example.c.

    Args:
        robot: the robot.
        prefix: how names of the package begin.
        functions: those of the package.
        options: choices that it was made with.
    """
    law = controller(functions)
    if law is None or robot.nq != robot.dof or not robot.dof:
        return _calls(robot, prefix, functions)
    return _Cycle(robot, prefix, functions, options, law).text()


def controller(functions: Sequence[Coded]) -> Coded | None:
    """The first function that is a law: torques from a measured state and a reference."""
    for f in functions:
        titles = {a.array.title for a in f.arguments}
        if {"q", "qd", "q_d", "qd_d", "qdd_d", "tau"} <= titles and not f.function.nest.numbers:
            return f
    return None


class _Cycle:
    """The parts of the program with a controller."""

    def __init__(self, robot: Robot, prefix: str, functions: Sequence[Coded], options: Options, law: Coded):
        self.robot, self.prefix, self.options, self.law = robot, prefix, options, law
        self.named = {f.entry.name: f for f in functions}
        self.declared: list[str] = []

    def text(self) -> str:
        """The program."""
        law, start, end = self.law, *self._move()
        moves = "trajectory" in self.named
        parts = {
            "about": foreign.c_comment(f"{law.entry.name} of {self.robot.name}"),
            "prefix": self.prefix,
            "big": self.prefix.upper(),
            "period": self._number(self.options.period),
            "seconds": repr(SECONDS),
            "start": self._numbers(start),
            "end": self._numbers(end if moves else start),
            "drives": self._drives(),
            "reference": self._reference(),
            "law": self._law(),
            "stop_time": self._number(self.options.stop_time if "safe_stop" in self.named else 0.0),
            "stop": self._stop(),
            "remembered": self._remembered(),
        }
        text = support_file("example.c.in")
        for name, value in {**parts, "declared": "".join(self.declared)}.items():
            text = text.replace(f"@{name}@", value)
        return text

    def _move(self) -> tuple[np.ndarray, np.ndarray]:
        """A move inside of the ranges: from where the joints rest, a tenth of their range or 0.2 rad or m."""
        limits, neutral = self.robot.limits, np.asarray(self.robot.neutral, dtype=float)
        low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        start = np.clip(neutral, low + 0.25 * (high - low), high - 0.25 * (high - low))
        if self.options.trajectory is not None:
            motion = self.options.trajectory
            return tuple(np.asarray(motion.at(time).q, dtype=float) for time in (0.0, SECONDS))  # type: ignore[return-value]
        return start, start + np.minimum(0.2, 0.1 * (high - low))

    def _number(self, value: float) -> str:
        return repr(float(np.clip(value, -1e30, 1e30))) + ("f" if self.law.real == "float" else "")

    def _numbers(self, values: np.ndarray) -> str:
        return ", ".join(map(self._number, np.asarray(values, dtype=float)))

    def _call(self, f: Coded, places: Mapping[str, str], with_settings: bool = False) -> str:
        """A call of a function; arguments without a place get an array of zeros."""
        passed = ["&settings"] if with_settings else []
        for a in f.arguments:
            title = a.array.title
            if with_settings and title in f.entry.settings:
                continue
            if title not in places:
                name = f"{f.entry.name}_{a.name}"
                self.declared.append(f"static real {name}[{max(1, a.size or 0)}];\n")
                passed.append(name)
            else:
                passed.append(places[title])
        suffix = "_with" if with_settings else ""
        return f"{f.name}{suffix}({', '.join(passed)})"

    def _drives(self) -> str:
        forward = self.named.get("forward_dynamics")
        if forward is None:
            return (
                "    (void)tau; /* no forward_dynamics in this package: the joints go where the reference says */\n"
                "    for (int k = 0; k < N; ++k) {\n"
                "        arm_qd[k] = (q_d[k] - arm_q[k]) / period;\n        arm_q[k] = q_d[k];\n    }\n"
            )
        places = {"q": "arm_q", "qd": "arm_qd", "tau": "tau", "qdd": "qdd"}
        return (
            f"    real qdd[N];\n    (void)q_d;\n    (void){self._call(forward, places)};\n"
            "    for (int k = 0; k < N; ++k) {\n"
            "        arm_qd[k] += period * qdd[k];\n        arm_q[k] += period * arm_qd[k];\n    }\n"
        )

    def _reference(self) -> str:
        trajectory = self.named.get("trajectory")
        if trajectory is None:
            return "    (void)now; /* no trajectory in this package: the target stands still */\n"
        if any(a.array.title == "duration" for a in trajectory.arguments):
            self.declared.append("static const real move_time[1] = {2}; /* [s] */\n")
        places = {**_MEASURED, "time": "now", "duration": "move_time", "start": "start", "end": "end"}
        return f"    (void){self._call(trajectory, places)};\n"

    def _law(self) -> str:
        tuned = bool(self.law.entry.settings)
        places = {**_MEASURED, "memory": "memory", "next_memory": "next_memory"}
        call = self._call(self.law, places, tuned)
        lines = ""
        if tuned:
            lines = (
                f"    /* gains and limits may change in every cycle */\n"
                f"    const {self.law.name}_settings settings = {self.law.name}_defaults;\n"
            )
        sizes = {a.array.title: a.size for a in self.law.arguments}
        if (size := sizes.get("memory")) is not None:
            self.declared.append(f"static real memory[{size}], next_memory[{size}];\n")
        status = self.law.function.status
        return lines + (f"    return {call};\n" if status is not None else f"    {call};\n    return 0;\n")

    def _remembered(self) -> str:
        kept = any(a.array.title == "memory" for a in self.law.arguments)
        return "            (void)memcpy(memory, next_memory, sizeof memory);\n" if kept else ""

    def _stop(self) -> str:
        stop = self.named.get("safe_stop")
        if stop is None:
            return (
                "    (void)since;\n    (void)good;\n    (void)q;\n    (void)qd;\n"
                "    /* no safe_stop in this package: no torques, and brakes at once */\n"
                "    for (int k = 0; k < N; ++k) {\n        tau[k] = 0;\n    }\n"
            )
        places = {
            **_MEASURED,
            "time": "since",
            "stop_q": "stop_q",
            "stop_qd": "stop_qd",
            "feedback": "good",
        }
        return f"    (void){self._call(stop, places)};\n"


def _calls(robot: Robot, prefix: str, functions: Sequence[Coded]) -> str:
    """A program that calls every function once, loops apart."""
    declared, calls = [], []
    for f in functions:
        if f.function.nest.numbers or any(a.size is None for a in f.arguments):
            continue
        short, passed = f.entry.name, []
        for a in f.arguments:
            name = f"{short}_{a.name}"
            values = ""
            if a.array.title in ("q", "q_d", "estimated_q") and a.size == robot.nq:
                values = " = {" + ", ".join(map(repr, np.asarray(robot.neutral, float).tolist())) + "}"
            declared.append(f"static {prefix}_real {name}[{max(1, a.size or 0)}]{values};\n")
            passed.append(name)
        shown = next((a for a in f.arguments if a.array.kind == "output"), None)
        calls.append(f"    (void){f.name}({', '.join(passed)});\n")
        if shown is not None and shown.size:
            calls.append(
                f'    (void)printf("{f.name}: {shown.name}[0] = %g\\n", (double){short}_{shown.name}[0]);\n'
            )
    return (
        "/* Calls every function of this package once; make example builds and runs it. */\n\n"
        f'#include "{prefix}.h"\n\n#include <stdio.h>\n\n{"".join(declared)}\n'
        f"int main(void)\n{{\n{''.join(calls)}    return 0;\n}}\n"
    )
