"""Steps with contact against closed forms, MuJoCo beside them: the table of docs/contact.md.

Every row is one experiment with a known result: what the textbook says, what Linkwise computes and what MuJoCo computes
with its default settings (``solref``, ``solimp``) and elliptic cones, for the same masses, candidates, friction and
step. The second table has the criteria of Le Lidec et al., "Contact models in robotics: a comparative analysis" (arXiv
2304.06372): which laws an engine keeps; other engines by the model that the paper says they solve.

    python benchmarks/contact_physics.py [--seconds 60] [--quick] [--write FILE.md]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from contact_parts.peers import in_mujoco
from contact_parts.problems import problems_of, solved_by_pinocchio
from contact_parts.robots import ratio

import linkwise as lw

GRAVITY = 9.81
STEP = 0.002
SLOPE = math.radians(20.0)
REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def body(mass=2.0, size=(0.2, 0.3, 0.1), slope=0.0) -> lw.Robot:
    """A body that floats; a slope is a tilted gravity."""
    x, y, z = size
    inertia = mass / 12.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    gravity = (GRAVITY * math.sin(slope), 0.0, -GRAVITY * math.cos(slope))
    link = lw.Link("body", lw.Inertia.from_com(mass, (0.0, 0.0, 0.0), inertia))
    return lw.Robot("body", [link], [], gravity=gravity).with_base("floating")


def box(friction: float, slope=0.0, **options) -> lw.Robot:
    contact = lw.Contact.box("body", (0.2, 0.3, 0.1), friction=friction, **options)
    return body(slope=slope).with_contacts([contact])


class Ours:
    """A robot that is stepped by Linkwise."""

    name = "Linkwise"

    def __init__(self, robot: lw.Robot, q, qd=None, step: float = STEP):
        self.robot, self.step = robot, step
        self.q, self.qd, self.tau = (
            np.array(q, float),
            np.zeros(robot.dof) if qd is None else np.array(qd, float),
            np.zeros(robot.dof),
        )
        self.kernel = robot.kernel("contact_step", step=step)

    def advance(self) -> None:
        self.q, self.qd, self.impulse = self.kernel(self.q, self.qd, self.tau)

    @property
    def energy(self) -> float:
        return float(self.robot.kinetic_energy(self.q, self.qd) + self.robot.potential_energy(self.q))

    @property
    def force(self) -> float:
        return float(self.impulse[:, 2].sum() / self.step)


class Theirs:
    """The same robot in MuJoCo."""

    name = "MuJoCo"

    def __init__(self, robot: lw.Robot, q, qd=None, step: float = STEP):
        import mujoco

        self.mujoco, self.robot = mujoco, robot
        self.model, self.data = in_mujoco(robot, elliptic=True)
        self.model.opt.timestep = step
        q = np.array(q, float)
        self.data.qpos[:] = np.concatenate([q[:3], [q[6]], q[3:6], q[7:]])
        if qd is not None:
            qd = np.array(qd, float)
            self.data.qvel[:] = np.concatenate([self._turn @ qd[3:6], qd[:3], qd[6:]])

    @property
    def _turn(self) -> np.ndarray:
        """MuJoCo's linear velocities are in world axes, ours in those of the body."""
        found = np.zeros(9)
        self.mujoco.mju_quat2Mat(found, self.data.qpos[3:7])
        return found.reshape(3, 3)

    def advance(self) -> None:
        self.mujoco.mj_step(self.model, self.data)

    @property
    def q(self) -> np.ndarray:
        p = self.data.qpos
        return np.concatenate([p[:3], p[4:7], [p[3]], p[7:]])

    @property
    def qd(self) -> np.ndarray:
        v = self.data.qvel
        return np.concatenate([v[3:6], self._turn.T @ v[:3], v[6:]])

    @property
    def energy(self) -> float:
        return float(self.robot.kinetic_energy(self.q, self.qd) + self.robot.potential_energy(self.q))

    @property
    def force(self) -> float:
        found, total = np.zeros(6), 0.0
        for k in range(self.data.ncon):
            self.mujoco.mj_contactForce(self.model, self.data, k, found)
            total += found[0]
        return total


def run(engine, robot, q, seconds, qd=None, step=STEP, watch=None):
    world = engine(robot, q, qd, step)
    seen = []
    for _ in range(round(seconds / step)):
        world.advance()
        if watch is not None:
            seen.append(watch(world))
    return world, seen


def at(height: float, x: float = 0.0) -> np.ndarray:
    start = REST.copy()
    start[0], start[2] = x, height
    return start


# -- experiments: each gives (what the textbook says, what an engine says), as text -----------------------------------


def sticks(engine, seconds):
    """Block on a slope of 20°, μ = 0.5: drift"""
    world, _ = run(engine, box(0.5, SLOPE), at(0.05), seconds)
    settled = 0.0 if engine is Ours else _settled(engine, seconds)
    return "0 m", f"{abs(world.q[0] - settled):.1e} m in {seconds:g} s"


def _settled(engine, seconds) -> float:
    """Where a soft block is after a tenth of a second: falling into the ground is not counted as creep."""
    return run(engine, box(0.5, SLOPE), at(0.05), min(0.1, seconds))[0].q[0]


def slides(engine, seconds):
    """Block on a slope of 20°, μ = 0.2: acceleration"""
    wanted = GRAVITY * (math.sin(SLOPE) - 0.2 * math.cos(SLOPE))
    world, _ = run(engine, box(0.2, SLOPE), at(0.05), 1.0)
    return f"{wanted:.6f} m/s²", f"{world.qd[3] / 1.0:.6f} m/s²"


def stops(engine, seconds):
    """Block thrown at 1 m/s, μ = 0.5: distance, step 0.2 ms"""
    world, _ = run(engine, box(0.5), at(0.05), 0.5, qd=[0, 0, 0, 1.0, 0, 0], step=2e-4)
    return f"{1.0 / (2 * 0.5 * GRAVITY):.5f} m", f"{world.q[0]:.5f} m"


def rolls(engine, seconds):
    """Ball on a slope of 10°, μ = 0.8: acceleration, slip"""
    slope, radius = math.radians(10.0), 0.1
    robot = body(size=(0.1, 0.1, 0.1), slope=slope).with_contacts(
        [lw.Contact("body", radius=radius, friction=0.8)]
    )
    inertia = 2.0 / 12.0 * 0.02
    wanted = GRAVITY * math.sin(slope) / (1.0 + inertia / (2.0 * radius**2))
    world, _ = run(engine, robot, at(radius), 1.0)
    speed = lw.Robot.velocity(robot, world.q, world.qd, "body")
    return f"{wanted:.5f} m/s², 0", f"{speed[3]:.5f} m/s², {abs(speed[3] - radius * speed[1]):.0e} m/s"


def bounces(engine, seconds):
    """Ball dropped from 1 m, restitution 0.5: height after it, step 0.2 ms"""
    robot = body().with_contacts([lw.Contact("body", radius=0.1, restitution=0.5)])
    if engine is Theirs:
        return "0.2500 m", "has no restitution"
    _, heights = run(engine, robot, at(1.1), 0.75, step=2e-4, watch=lambda world: world.q[2] - 0.1)
    return "0.2500 m", f"{max(heights[2300:]):.4f} m"


def rocks(engine, seconds):
    """Block tilted by 2° on an edge, 0.1 × 0.4 m: angular speed when it lands, step 0.2 ms"""
    width, height, tilt = 0.1, 0.4, math.radians(2.0)
    robot = body(size=(width, 0.3, height)).with_contacts(
        [lw.Contact.box("body", (width, 0.3, height), friction=1.0)]
    )
    diagonal = 0.5 * math.hypot(width, height)
    lean = math.atan2(width, height)
    about_edge = 2.0 / 12.0 * (width**2 + height**2) + 2.0 * diagonal**2
    fall = diagonal * (math.cos(lean - tilt) - math.cos(lean))
    wanted = math.sqrt(2.0 * 2.0 * GRAVITY * fall / about_edge)
    start = np.array(
        [0.0, 0.0, diagonal * math.cos(lean - tilt), 0.0, math.sin(0.5 * tilt), 0.0, math.cos(0.5 * tilt)]
    )
    _, rates = run(engine, robot, start, 0.4, step=2e-4, watch=lambda world: abs(world.qd[1]))
    return f"{wanted:.4f} rad/s", f"{max(rates):.4f} rad/s"


def gains(engine, seconds):
    """Cube thrown with 3 m/s and 5 rad/s: largest gain of energy in a step"""
    rng = np.random.default_rng(0)
    most = -np.inf
    for _ in range(5):
        q = at(0.4)
        q[3:] = rng.normal(size=4)
        q[3:] /= np.linalg.norm(q[3:])
        qd = np.concatenate([5.0 * rng.normal(size=3), 3.0 * rng.normal(size=3)])
        contact = lw.Contact.box("body", (0.2, 0.2, 0.2), friction=0.6)
        world = engine(body(size=(0.2, 0.2, 0.2)).with_contacts([contact]), q, qd)
        last, start = world.energy, abs(world.energy) + 1.0
        for _ in range(1000):
            world.advance()
            now = world.energy
            most, last = max(most, (now - last) / start), now
    return "0", f"{max(most, 0.0):.0e} of it"


def heavy(engine, seconds, below=False):
    """100 kg on 10 g (a slide between them): force on the ground, depth"""
    robot, _ = ratio(heavy_below=below)
    start = np.concatenate([at(0.05), [0.0]])
    world, _ = run(engine, robot, start, min(seconds, 10.0))
    depth = float(-np.min(robot.contact_gaps(world.q)))
    return f"{100.01 * GRAVITY:.2f} N, 0 m", f"{world.force:.2f} N, {max(depth, 0.0):.0e} m"


def light(engine, seconds):
    """10 g on 100 kg: force on the ground, depth"""
    return heavy(engine, seconds, below=True)


def spins(engine, seconds):
    """Ball spinning at 5 rad/s, torsional friction 10 mm: speed after 50 ms"""
    robot = body(size=(0.1, 0.1, 0.1)).with_contacts(
        [lw.Contact("body", radius=0.1, torsional_friction=0.01)]
    )
    inertia = 2.0 / 12.0 * 0.02
    wanted = 5.0 - 0.01 * 2.0 * GRAVITY / inertia * 0.05
    if engine is Theirs:
        return f"{wanted:.5f} rad/s", "(condim 4, not compared)"
    world, _ = run(engine, robot, at(0.1), 0.05, qd=[0, 0, 5.0, 0, 0, 0])
    return f"{wanted:.5f} rad/s", f"{world.qd[2]:.5f} rad/s"


def sinks(engine, seconds):
    """Ball on a spring of 2000 N/m: depth at rest"""
    robot = body().with_contacts([lw.Contact("body", radius=0.1, stiffness=2000.0, damping=60.0)])
    if engine is Theirs:
        return "9.8100 mm", "(solref, not compared)"
    world, _ = run(engine, robot, at(0.1), 3.0)
    return f"{1e3 * 2.0 * GRAVITY / 2000.0:.4f} mm", f"{1e3 * (0.1 - world.q[2]):.4f} mm"


EXPERIMENTS = (sticks, slides, stops, rolls, bounces, rocks, gains, heavy, light, spins, sinks)

CRITERIA = (
    ("", "Linkwise", "MuJoCo", "LCP (Bullet, ODE)", "CCP (Drake)", "NCP (Pinocchio's ADMM)"),
    ("Signorini's condition", "yes", "relaxed", "yes", "relaxed", "yes"),
    ("Coulomb's cone", "yes", "yes, or a pyramid", "pyramid", "yes", "yes"),
    ("maximum dissipation", "yes", "yes", "in the pyramid", "yes", "yes"),
    ("block on a slope at rest (measured)", "yes", "creeps", "", "", ""),
    ("100 kg on 10 g (measured)", "yes", "no", "", "", ""),
    ("states that are not solved are marked", "yes", "no", "no", "no", "yes"),
)
"""Those of arXiv 2304.06372, and what this script measures."""


def pinocchio_lines() -> list[str]:
    """Pinocchio's contact solvers on single problems of the block on a slope and of two boxes with 10⁴ of mass ratio.

    They solve problems, not steps: these are those of Linkwise's own step.
    """
    try:
        import pinocchio as pin
    except ImportError:
        return []
    if not hasattr(pin, "PGSConstraintSolver"):
        return []
    lower, upper = (
        lw.Body.box((0.2, 0.3, 0.1), mass=mass, name=name)
        for mass, name in ((0.01, "lower"), (100.0, "upper"))
    )
    scene = lw.Scene([lower, upper, lw.Ground(friction=0.8)])
    two = np.concatenate([at(0.05), at(0.15)])
    lines = [
        "",
        "| problem | ADMM, default | ADMM, tightest | PGS, default | PGS, tightest |",
        "|---" * 5 + "|",
    ]
    for name, robot, q in (
        ("block on a slope of 20° at rest, μ = 0.5", box(0.5, SLOPE), at(0.05)),
        ("100 kg on 10 g", scene, two),
    ):
        resting = tuple(np.zeros((1, robot.dof)) for _ in range(2))
        problems, cells = problems_of(robot, (q[None], *resting)), []
        for method, tightest in (("ADMM", False), ("ADMM", True), ("PGS", False), ("PGS", True)):
            p = solved_by_pinocchio(pin, problems, 0, method, tightest)
            if p is None:
                cells.append("does not end")
                continue
            closed = p[2::3] > 0.0
            slip = np.abs(problems.velocities(p[None])[0].reshape(-1, 3)[closed]).max()
            cells.append(f"{slip:.0e} m/s, residual {problems.residual(p[None])[0]:.0e}")
        lines.append(f"| {name}: largest velocity of its closed contacts | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of the longest experiments")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", default=[each.__name__ for each in EXPERIMENTS])
    parser.add_argument("--write", help="a file that takes the tables")
    options = parser.parse_args()
    seconds = 0.2 if options.quick else options.seconds
    engines = [Ours]
    try:
        import mujoco  # noqa: F401

        engines.append(Theirs)
    except ImportError:
        print("MuJoCo is not installed")
    lines = [
        "| experiment | closed form | " + " | ".join(engine.name for engine in engines) + " |",
        "|---" * (2 + len(engines)) + "|",
    ]
    for experiment in EXPERIMENTS:
        if experiment.__name__ in options.only:
            found = [experiment(engine, seconds) for engine in engines]
            values = " | ".join(value for _, value in found)
            lines.append(f"| {(experiment.__doc__ or '').strip()} | {found[0][0]} | {values} |")
            print(lines[-1], flush=True)
    lines += ["", *(f"| {' | '.join(row)} |" for row in CRITERIA)]
    lines.insert(len(lines) - len(CRITERIA) + 1, "|---" * len(CRITERIA[0]) + "|")
    lines += pinocchio_lines()
    print("\n".join(lines))
    if options.write:
        Path(options.write).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
