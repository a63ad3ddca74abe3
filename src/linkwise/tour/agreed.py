"""Agreement with the engines that are installed, and speed beside them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linkwise.bench import agreement
from linkwise.bench.agreement import Finding
from linkwise.bench.clock import is_busy, one_core
from linkwise.bench.comparison import Group, Timing, compare
from linkwise.bench.peers import Peer, find
from linkwise.bench.subject import Subject, random_states, rigid, without_drives
from linkwise.robot.robot import Robot

ENGINES = ("pinocchio", "mujoco", "pybullet", "robotics_toolbox")
STATES = 10  # of the comparison
TIMED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
BATCH, ROUNDS = 1000, 3
EVERY_ALGORITHM = (
    16  # most coordinates with which every algorithm is compared: compiling them takes long for more
)


@dataclass(frozen=True)
class Agreed:
    """Comparisons at random states, times per state, and why an engine is absent."""

    findings: list[Finding]
    timings: list[Timing]
    absent: dict[str, str]
    busy: bool
    """Whether other programs were running while it was timed."""
    weightless: tuple[str, ...] = ()
    """Links with moments of inertia and no mass, which MuJoCo leaves out where it reads the file itself."""

    @property
    def engines(self) -> list[str]:
        """Other libraries that were compared, with their versions."""
        known = tuple(ENGINES)
        return list(dict.fromkeys(f.who for f in self.findings if f.who.startswith(known)))

    @property
    def wrong(self) -> list[Finding]:
        """Comparisons that disagree."""
        return [finding for finding in self.findings if finding.verdict == "DISAGREES"]

    @property
    def reason(self) -> str:
        """Why comparisons disagree, where it is known."""
        if not self.weightless or not all(finding.who.startswith("mujoco") for finding in self.wrong):
            return ""
        return f"MuJoCo leaves out the moments of inertia of links without mass: {', '.join(self.weightless)}"

    @property
    def agreeing(self) -> int:
        """How many comparisons agree."""
        return sum(finding.verdict == "agrees" for finding in self.findings)

    @property
    def worst(self) -> float:
        """The largest relative difference among those that agree."""
        agreed = [f.difference or 0.0 for f in self.findings if f.verdict == "agrees"]
        return max(agreed, default=0.0)


def compare_engines(robot: Robot, source: Path | None = None, base: str = "fixed") -> Agreed:
    """Compare algorithms and engines at random states, then time the engines.

    Args:
        robot: the robot.
        source: its file, where it was read unchanged.
        base: how its base moves: "fixed", "floating" or "planar".
    """
    plain = rigid(robot)
    with tempfile.TemporaryDirectory() as folder:
        peers, absent = find(Subject.of(plain, Path(folder), source, base), ENGINES)
        every = robot.dof <= EVERY_ALGORITHM
        findings = list(agreement.compare(plain, random_states(plain, STATES), peers, every=every))
    with tempfile.TemporaryDirectory() as folder:
        busy = is_busy()
        timings = list(_timed(robot, Path(folder), base))
    weightless = [
        link.name for link in robot.links if not link.inertia.mass and any(link.inertia.parameters[4:])
    ]
    return Agreed(findings, timings, absent, busy, tuple(weightless))


def _timed(robot: Robot, folder: Path, base: str) -> Iterator[Timing]:
    plain = without_drives(rigid(robot))
    peers: list[Peer]
    peers, _ = find(Subject.of(plain, folder, None, base), ("linkwise", *ENGINES))
    peers = [peer for peer in peers if peer.engine is None]  # converting coordinates is no time of the engine
    with one_core():
        for function in TIMED:
            for states in (1, BATCH):
                yield from compare(plain, peers, Group(function, states, "float64"), ROUNDS)
